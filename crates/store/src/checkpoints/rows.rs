//! Rows of checkpoints, pieces and notes: how they are written, and how they are read back and checked.
//!
//! Called by the other parts of `checkpoints`, and by whatever copies, counts or removes whole rows. What
//! cannot be read is an error that names thread, checkpoint, channel and row, never a value.

use crate::{
    channels::{Named, kind_of, kind_text},
    codec::{Codec, Place},
    error::damaged,
    sql::{BadCell, Row, Statement},
};
use paraph_graph::{
    CheckpointId, Entry, Error, Metadata, Note, NoteKind, PatchKind, Scope, Source, TaskId,
};
use std::sync::Arc;

/// A row of table `checkpoint`.
#[derive(Clone, Debug)]
pub(crate) struct CheckpointRow {
    pub(crate) entry: Entry,
    /// JSON text.
    pub(crate) machine: Vec<u8>,
    pub(crate) named: Named,
    /// Nothing if `named` names all channels.
    pub(crate) base: Option<CheckpointId>,
}

/// How many columns [`checkpoint_columns`] has.
pub(crate) const CHECKPOINT_COLUMNS: usize = 13;

/// The columns that [`CheckpointRow::read`] reads, between two other parts of a statement; of `checkpoint c`.
macro_rules! checkpoint_columns {
    ($before:literal, $after:literal) => {
        concat!(
            "SELECT c.id, c.parent, c.source, c.superstep, c.run, c.created_ms, c.metadata, \
             c.metadata_packed, c.machine, c.machine_packed, c.channels, c.base, c.sum",
            $before,
            " ",
            $after
        )
    };
}
pub(crate) use checkpoint_columns;

const SOURCES: [(Source, &str); 4] = [
    (Source::Input, "input"),
    (Source::Loop, "loop"),
    (Source::Update, "update"),
    (Source::Fork, "fork"),
];

const NOTES: [(NoteKind, &str); 7] = [
    (NoteKind::Done, "done"),
    (NoteKind::Question, "question"),
    (NoteKind::Answer, "answer"),
    (NoteKind::Memo, "memo"),
    (NoteKind::Retry, "retry"),
    (NoteKind::Failure, "failure"),
    (NoteKind::Pause, "pause"),
];

fn word_of<T: Copy + PartialEq>(words: &[(T, &'static str)], value: T) -> &'static str {
    let found = words.iter().find(|(known, _)| *known == value);
    found.map_or("?", |(_, word)| word)
}

fn of_word<T: Copy>(words: &[(T, &'static str)], word: &str) -> Option<T> {
    let found = words.iter().find(|(_, known)| *known == word);
    found.map(|(value, _)| *value)
}

/// What is wrong with a checkpoint, or with what belongs to it.
pub(crate) fn corrupt(
    scope: &Scope,
    checkpoint: CheckpointId,
    why: impl std::fmt::Display,
) -> Error {
    Error::Corrupt {
        thread: scope.to_string(),
        checkpoint,
        why: why.to_string(),
    }
}

impl CheckpointRow {
    fn place(&self, scope: &Scope) -> Place {
        let place = Place::new("checkpoint");
        let place = place.text(&scope.thread).text(&scope.namespace);
        place.text(&self.entry.id.to_string())
    }

    /// What the sum covers besides the documents.
    fn fixed(&self, channels: &str) -> String {
        let Entry {
            parent, metadata, ..
        } = &self.entry;
        let id = |id: Option<CheckpointId>| id.map(|id| id.to_string()).unwrap_or_default();
        format!(
            "{}\n{}\n{}\n{}\n{}\n{}\n{channels}",
            id(*parent),
            word_of(&SOURCES, metadata.source),
            metadata.superstep,
            metadata.run,
            metadata.created_ms,
            id(self.base),
        )
    }

    pub(crate) fn insert(&self, codec: &Codec, scope: &Scope, row: i64) -> Statement<'static> {
        let metadata = &self.entry.metadata;
        let channels = self.named.text();
        // A map of JSON values by name is always JSON.
        let user = (!metadata.user.is_empty())
            .then(|| serde_json::to_vec(&metadata.user).unwrap_or_default());
        let (docs, sum) = codec.put(
            &self.place(scope),
            &[self.fixed(&channels).as_bytes()],
            [
                ("metadata", user.as_deref()),
                ("machine", Some(&self.machine)),
            ],
        );
        let [user, machine] = docs.map(|doc| doc.owned().cells());
        let [user, user_packed] = user;
        let [machine, machine_packed] = machine;
        Statement::new(
            "INSERT INTO checkpoint (scope, id, parent, source, superstep, run, created_ms, metadata, \
             metadata_packed, machine, machine_packed, channels, base, sum) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
            [
                row.into(),
                self.entry.id.to_string().into(),
                self.entry.parent.map(|id| id.to_string()).into(),
                word_of(&SOURCES, metadata.source).into(),
                metadata.superstep.into(),
                metadata.run.to_string().into(),
                metadata.created_ms.into(),
                user,
                user_packed,
                machine,
                machine_packed,
                channels.into(),
                self.base.map(|id| id.to_string()).into(),
                sum.into(),
            ],
        )
    }

    /// From the first columns of a row, which are [`checkpoint_columns`].
    pub(crate) fn read(codec: &Codec, scope: &Scope, row: &mut Row) -> Result<Self, Error> {
        let id: CheckpointId = row
            .parsed(0, "the id of a checkpoint")
            .map_err(|e| damaged(format!("a checkpoint of thread `{scope}`"), e.to_string()))?;
        let bad = |why: String| corrupt(scope, id, format!("its row: {why}"));
        let mut read = CheckpointRow::plain(row, id).map_err(|e| bad(e.to_string()))?;
        let channels = row.text(10).map_err(|e| bad(e.to_string()))?.to_owned();
        let sum = row.int(12).map_err(|e| bad(e.to_string()))?;
        let docs = [
            ("metadata", row.take(6), row.take(7)),
            ("machine", row.take(8), row.take(9)),
        ];
        let fixed = read.fixed(&channels);
        let [user, machine] = codec
            .take(&read.place(scope), &[fixed.as_bytes()], docs, sum)
            .map_err(bad)?;
        if let Some(user) = user {
            read.entry.metadata.user =
                serde_json::from_slice(&user).map_err(|e| bad(format!("`metadata`: {e}")))?;
        }
        read.machine = machine.ok_or_else(|| bad("`machine` is missing".to_owned()))?;
        read.named = Named::read(&channels).map_err(bad)?;
        Ok(read)
    }

    fn plain(row: &Row, id: CheckpointId) -> Result<Self, BadCell> {
        let source = of_word(&SOURCES, row.text(2)?);
        Ok(CheckpointRow {
            entry: Entry {
                id,
                parent: row.opt_parsed(1, "the id of a checkpoint")?,
                metadata: Metadata {
                    source: source.ok_or(BadCell {
                        column: 2,
                        found: "another word",
                        wanted: "a source",
                    })?,
                    superstep: row.int(3)?,
                    run: row.parsed(4, "the id of a run")?,
                    created_ms: row.unsigned(5)?,
                    user: serde_json::Map::new(),
                },
            },
            machine: Vec::new(),
            named: Named::default(),
            base: row.opt_parsed(11, "the id of a checkpoint")?,
        })
    }
}

/// Which piece a row of table `piece` is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PieceKey<'a> {
    pub(crate) channel: &'a str,
    pub(crate) n: u64,
    pub(crate) kind: PatchKind,
    /// The piece it goes on from; a smaller number.
    pub(crate) before: Option<u64>,
}

impl PieceKey<'_> {
    fn place(&self, scope: &Scope) -> Place {
        let place = Place::new("piece");
        let place = place.text(&scope.thread).text(&scope.namespace);
        let place = place.text(self.channel).text(kind_text(self.kind));
        place.int(self.n).int(self.before.unwrap_or_default())
    }

    /// Writes it as a new row. `frame` is what [`crate::codec::pressed`] made of the JSON, if it was asked.
    pub(crate) fn insert<'a>(
        self,
        codec: &Codec,
        scope: &Scope,
        row: i64,
        (json, frame): (&'a [u8], Option<&[u8]>),
    ) -> Statement<'a> {
        let (doc, sum) = codec.put_pressed(&self.place(scope), json, frame);
        let [value, packed] = doc.cells();
        Statement::new(
            "INSERT INTO piece (scope, n, channel, kind, before, value, value_packed, sum) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            [
                row.into(),
                self.n.into(),
                self.channel.to_owned().into(),
                kind_text(self.kind).into(),
                self.before.into(),
                value,
                packed,
                sum.into(),
            ],
        )
    }
}

/// A piece as it was read.
#[derive(Clone, Debug)]
pub(crate) struct PieceRow {
    pub(crate) channel: String,
    pub(crate) n: u64,
    pub(crate) kind: PatchKind,
    pub(crate) before: Option<u64>,
    /// JSON text.
    pub(crate) json: Arc<Vec<u8>>,
}

impl PieceRow {
    /// From the columns n, channel, kind, before, value, value_packed, sum.
    ///
    /// # Errors
    /// What is wrong with it, in words that name the piece.
    pub(crate) fn read(codec: &Codec, scope: &Scope, mut row: Row) -> Result<Self, String> {
        let n = row.unsigned(0).map_err(|e| format!("a piece: {e}"))?;
        let channel = row.text(1).unwrap_or("?").to_owned();
        let bad = |why: String| format!("channel `{channel}`, piece {n}: {why}");
        let words = |e: BadCell| bad(e.to_string());
        row.text(1).map_err(words)?;
        let kind = kind_of(row.text(2).map_err(words)?);
        let kind = kind.ok_or_else(|| bad("its kind is not known".to_owned()))?;
        let before = match row.opt_int(3).map_err(words)? {
            None => None,
            Some(_) => Some(row.unsigned(3).map_err(words)?),
        };
        if before.is_some_and(|before| before >= n) {
            return Err(bad("it goes on from a later one".to_owned()));
        }
        let key = PieceKey {
            channel: &channel,
            n,
            kind,
            before,
        };
        let sum = row.int(6).map_err(words)?;
        let json = codec.take_one(&key.place(scope), row.take(4), row.take(5), sum);
        let json = json.map_err(bad)?.into();
        Ok(PieceRow {
            channel,
            n,
            kind,
            before,
            json,
        })
    }
}

fn note_place(scope: &Scope, at: CheckpointId, note: (&str, &str, &str), n: u64) -> Place {
    let (task, kind, key) = note;
    let place = Place::new("note");
    let place = place.text(&scope.thread).text(&scope.namespace);
    let place = place.text(&at.to_string()).text(task);
    place.text(kind).text(key).int(n)
}

/// Writes a note with its number, over an older one of its task, kind and key.
pub(crate) fn note_insert<'a>(
    codec: &Codec,
    scope: &Scope,
    row: i64,
    at: CheckpointId,
    note: (&'a Note, u64, Option<&[u8]>),
) -> Statement<'a> {
    let (note, n, frame) = note;
    let (task, kind) = (note.task.to_string(), word_of(&NOTES, note.kind));
    let place = note_place(scope, at, (&task, kind, &note.key), n);
    let (doc, sum) = codec.put_pressed(&place, note.json.as_bytes(), frame);
    let [value, packed] = doc.cells();
    Statement::new(
        "INSERT INTO note (scope, checkpoint, task, kind, key, n, value, value_packed, sum) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (scope, checkpoint, task, kind, key) DO UPDATE SET n = excluded.n, \
         value = excluded.value, value_packed = excluded.value_packed, sum = excluded.sum",
        [
            row.into(),
            at.to_string().into(),
            task.into(),
            kind.into(),
            (&*note.key).into(),
            n.into(),
            value,
            packed,
            sum.into(),
        ],
    )
}

/// A note of a checkpoint and its number, from the columns task, kind, key, n, value, value_packed, sum.
///
/// # Errors
/// What is wrong with it, in words that name the note.
pub(crate) fn note_read(
    codec: &Codec,
    scope: &Scope,
    at: CheckpointId,
    mut row: Row,
) -> Result<(Note, u64), String> {
    let name = |column| row.text(column).unwrap_or("?").to_owned();
    let (task, word, key) = (name(0), name(1), name(2));
    let bad = |why: String| format!("note {word} `{key}` of task {task}: {why}");
    let words = |e: BadCell| bad(e.to_string());
    let id: TaskId = row.parsed(0, "the id of a task").map_err(words)?;
    row.text(2).map_err(words)?;
    let kind = of_word(&NOTES, &word).ok_or_else(|| bad("its kind is not known".to_owned()))?;
    let (n, sum) = (row.unsigned(3).map_err(words)?, row.int(6).map_err(words)?);
    let place = note_place(scope, at, (&task, &word, &key), n);
    let json = codec.take_one(&place, row.take(4), row.take(5), sum);
    let json = String::from_utf8(json.map_err(bad)?).map_err(|e| bad(e.to_string()))?;
    let note = Note {
        task: id,
        kind,
        key,
        json,
    };
    Ok((note, n))
}
