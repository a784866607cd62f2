//! Saving a superstep, and notes on one.
//!
//! Two steps of a transaction each: the first takes the thread's row, compares and reads what the rest
//! depends on; the second writes, and nobody waits for it before the transaction's end.

use super::{
    doc::ThreadDoc,
    read::{self, Placed, base_of, chain, chain_read, find, find_base},
    rows::{CheckpointRow, PieceKey, corrupt, note_insert},
    standing::{Touch, new_thread},
    taken::{Fence, Taken, refused},
};
use crate::{
    channels::{self, Named, Newest},
    codec::{Codec, pressed},
    database::Fault,
    error::damaged,
    events::{self, PieceAt},
    sql::{Answer, Row, Statement, Tx, next, one},
};
use paraph_graph::{CheckpointId, Entry, Error, Note, Notes, PatchKind, Put, Scope, Standing};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

/// What is to be saved, with its long documents compressed, since a transaction makes others wait.
pub(crate) struct Ready<T> {
    what: T,
    /// For each delta or note.
    frames: Vec<Option<Vec<u8>>>,
}

impl Ready<Put> {
    pub(crate) fn put(put: Put) -> Self {
        let frames = put.deltas.iter().map(|delta| pressed(&delta.json));
        let frames = frames.collect();
        Ready { what: put, frames }
    }
}

impl Ready<Notes> {
    pub(crate) fn notes(notes: Notes) -> Self {
        let frames = notes.notes.iter().map(|note| pressed(note.json.as_bytes()));
        let frames = frames.collect();
        let what = notes;
        Ready { what, frames }
    }
}

impl<T> Ready<T> {
    fn frame(&self, at: usize) -> Option<&[u8]> {
        self.frames.get(at)?.as_deref()
    }
}

/// Saves a superstep.
pub(crate) async fn put(
    tx: &mut dyn Tx,
    codec: &Codec,
    scope: &Scope,
    ready: &Ready<Put>,
) -> Result<(), Fault> {
    let put = &ready.what;
    let guarded = match guard(tx, codec, scope, put).await? {
        Some(guarded) => guarded,
        None => {
            // The first write to a thread, or to a scope.
            if let Some(refused) = make(tx, codec, scope, put).await? {
                return Err(refused.into());
            }
            let again = guard(tx, codec, scope, put).await?;
            again.ok_or_else(|| damaged(format!("scope `{scope}`"), "it cannot be made"))?
        }
    };
    write(tx, codec, scope, ready, guarded).await
}

/// What a put depends on.
struct Guarded {
    taken: Taken,
    scope: i64,
    parent: Option<(CheckpointRow, Option<Named>)>,
    /// What [`values_find`] found.
    doc: Option<Row>,
}

/// So many numbers a put may need: an edit may write down the whole value before it.
fn numbers(put: &Put) -> usize {
    let edits = put.deltas.iter().filter(|d| d.kind == PatchKind::Edit);
    put.deltas.len() + edits.count() + put.notes.len()
}

/// Takes thread and head; nothing if either was not as expected.
async fn guard(
    tx: &mut dyn Tx,
    codec: &Codec,
    scope: &Scope,
    put: &Put,
) -> Result<Option<Guarded>, Fault> {
    let grows = (put.events.len(), numbers(put));
    let touch = Touch {
        thread: &scope.thread,
        epoch: put.epoch,
        now_ms: Some(put.metadata.created_ms),
        grows,
        standing: put.standing.as_ref(),
    };
    let head = Statement::new(
        "UPDATE scope SET head = $4 WHERE thread = (SELECT id FROM thread WHERE name = $1) \
         AND namespace = $2 AND head IS NOT DISTINCT FROM $3 RETURNING id",
        [
            (&*scope.thread).into(),
            (&*scope.namespace).into(),
            put.expect.map(|id| id.to_string()).into(),
            put.id.to_string().into(),
        ],
    );
    let mut statements = vec![touch.statement(codec), head];
    if let Some(parent) = put.parent {
        statements.extend([find(scope, Some(parent)), find_base(scope, parent)]);
    }
    statements.extend(values_find(&scope.thread, put.standing.as_ref()));
    let mut answers = tx.all(statements).await?.into_iter();
    let taken = Taken::read(&scope.thread, next(&mut answers)?, grows)?;
    let scope_row = next(&mut answers)?.first();
    let (Some(taken), Some(scope_row)) = (taken, scope_row) else {
        return Ok(None);
    };
    let parent = match put.parent {
        None => None,
        Some(parent) => {
            let found = read::found(codec, scope, next(&mut answers)?, false)?;
            let Placed { row, .. } = found.ok_or_else(|| unknown(scope, parent))?;
            let base = base_of(codec, scope, &row, next(&mut answers)?.first())?;
            Some((row, base))
        }
    };
    let doc = answers.next().and_then(Answer::first);
    let scope = id_of(scope, &scope_row)?;
    Ok(Some(Guarded {
        taken,
        scope,
        parent,
        doc,
    }))
}

fn unknown(scope: &Scope, checkpoint: CheckpointId) -> Error {
    Error::UnknownCheckpoint {
        thread: scope.to_string(),
        checkpoint,
    }
}

fn id_of(scope: &Scope, row: &Row) -> Result<i64, Error> {
    row.int(0)
        .map_err(|e| damaged(format!("the row of scope `{scope}`"), e.to_string()))
}

/// Makes the rows of thread and scope where they are missing, or says why the put is refused.
async fn make(
    tx: &mut dyn Tx,
    codec: &Codec,
    scope: &Scope,
    put: &Put,
) -> Result<Option<Error>, Fault> {
    let thread = &*scope.thread;
    let fence = Fence::of(tx, thread, put.epoch).await?;
    let is_old = match &fence {
        Some(fence) => fence.is_newer,
        // Whoever has a lease has made the thread: where it is not, it was deleted since.
        None => put.epoch > 0,
    };
    let conflict = || match &fence {
        Some(fence) => fence.conflict(thread),
        None => Error::Conflict {
            thread: thread.to_owned(),
            holder: None,
        },
    };
    if is_old || put.expect.is_some() {
        return Ok(Some(conflict()));
    }
    let names = || [(&*scope.thread).into(), (&*scope.namespace).into()];
    let (events, numbers) = (put.events.len() as u64, numbers(put) as u64);
    let statements = vec![
        // A thread that was there has been taken already, and will be once more: its log has no gaps.
        Statement::new(
            "UPDATE thread SET seq = seq - $3, counter = counter - $4 \
             WHERE name = $1 AND epoch <= $2",
            [
                (&*scope.thread).into(),
                put.epoch.into(),
                events.into(),
                numbers.into(),
            ],
        ),
        // Only whoever has no lease comes here without a thread, and is held up by none.
        new_thread(
            codec,
            &scope.thread,
            put.metadata.created_ms,
            Some(put.epoch),
        ),
        Statement::new(
            "SELECT s.head FROM thread t JOIN scope s ON s.thread = t.id \
             WHERE t.name = $1 AND s.namespace = $2",
            names(),
        ),
        Statement::new(
            "INSERT INTO scope (thread, namespace, head) SELECT id, $2, NULL FROM thread \
             WHERE name = $1 ON CONFLICT (thread, namespace) DO NOTHING",
            names(),
        ),
    ];
    let mut answers = tx.all(statements).await?.into_iter().skip(2);
    // A scope that is there was not taken because of its head.
    let was_there = next(&mut answers)?.first().is_some();
    Ok(was_there.then(conflict))
}

/// A piece's JSON, and what it was compressed to.
type Document<'a> = (Cow<'a, [u8]>, Option<&'a [u8]>);

/// The pieces that a put adds, and what they make of the channels.
struct Pieces<'a> {
    rows: Vec<(PieceKey<'a>, Document<'a>)>,
    own: BTreeMap<String, Newest>,
    counter: u64,
}

async fn write(
    tx: &mut dyn Tx,
    codec: &Codec,
    scope: &Scope,
    ready: &Ready<Put>,
    guarded: Guarded,
) -> Result<(), Fault> {
    let put = &ready.what;
    let Guarded {
        taken,
        scope: scope_row,
        parent,
        doc,
    } = guarded;
    let named = parent
        .as_ref()
        .map(|(row, base)| (&row.named, base.as_ref()));
    let mut pieces = pieces(tx, codec, (scope, scope_row), ready, (&taken, named)).await?;
    let newest = |channel: &str| -> Option<PieceAt> {
        pieces.own.get(channel).map(|newest| (scope_row, newest.0))
    };
    let thread = (taken.thread, &*scope.thread);
    let (logged, _) = events::append(codec, thread, taken.seq, &put.events, newest)?;
    let (named, needs_base) = channels::after(named, std::mem::take(&mut pieces.own));
    let base = parent
        .as_ref()
        .map(|(row, _)| row.base.unwrap_or(row.entry.id));
    let row = CheckpointRow {
        entry: Entry {
            id: put.id,
            parent: put.parent,
            metadata: put.metadata.clone(),
        },
        machine: put.machine.clone(),
        named,
        base: base.filter(|_| needs_base),
    };
    let mut statements = vec![row.insert(codec, scope, scope_row)];
    for (key, (json, frame)) in &pieces.rows {
        statements.push(key.insert(codec, scope, scope_row, (json, *frame)));
    }
    let notes = latest(&put.notes).zip(pieces.counter + 1..);
    let notes = notes.map(|((_, note), n)| (note, n, None));
    statements.extend(notes.map(|note| note_insert(codec, scope, scope_row, put.id, note)));
    statements.extend(logged);
    statements.extend(values(codec, thread, doc, put.standing.as_ref())?);
    Ok(tx.later(statements).await?)
}

/// What [`values`] depends on, to be asked once the thread's row is taken; nothing where it writes nothing.
pub(crate) fn values_find<'a>(
    thread: &'a str,
    standing: Option<&Standing>,
) -> Option<Statement<'a>> {
    let values = standing.and_then(|standing| standing.values.as_ref());
    values.map(|_| ThreadDoc::find(thread))
}

/// Writes what is said of a thread beside its row: the state in which it came to rest.
///
/// # Errors
/// If the row that was found is damaged.
pub(crate) fn values(
    codec: &Codec,
    (row, thread): (i64, &str),
    mut found: Option<Row>,
    standing: Option<&Standing>,
) -> Result<Option<Statement<'static>>, Error> {
    let Some(values) = standing.and_then(|standing| standing.values.as_ref()) else {
        return Ok(None);
    };
    let mut doc = ThreadDoc::read(codec, thread, found.as_mut(), 0)?;
    doc.state = Some(values.clone());
    Ok(Some(doc.save(codec, thread, row)))
}

/// Which pieces come of the deltas, in which order.
async fn pieces<'a>(
    tx: &mut dyn Tx,
    codec: &Codec,
    (scope, scope_row): (&Scope, i64),
    ready: &'a Ready<Put>,
    (taken, parent): (&Taken, Option<(&Named, Option<&Named>)>),
) -> Result<Pieces<'a>, Fault> {
    let channels = parent
        .map(|(named, base)| named.all(base))
        .unwrap_or_default();
    let put = &ready.what;
    let mut all = Pieces {
        rows: Vec::with_capacity(put.deltas.len()),
        own: BTreeMap::new(),
        counter: taken.counter,
    };
    for (at, delta) in put.deltas.iter().enumerate() {
        let before = all.own.get(&delta.channel).or(channels.get(&delta.channel));
        let mut before = before.copied().filter(|_| delta.kind != PatchKind::Whole);
        let worn = before.filter(|before| delta.kind == PatchKind::Edit && before.is_worn());
        if let Some(Newest(n, ..)) = worn {
            let answer = one(tx, chain(scope_row, n)).await?;
            let whole = chain_read(codec, scope, (&delta.channel, n), answer)
                .and_then(|chain| {
                    channels::whole(chain.iter().map(|p| (p.kind, p.json.as_slice())))
                })
                .map_err(|why| corrupt(scope, put.parent.unwrap_or(put.id), why))?;
            let whole = (whole.into(), None);
            before = Some(all.add(&delta.channel, PatchKind::Whole, None, whole));
        }
        let document = ((&*delta.json).into(), ready.frame(at));
        let newest = all.add(&delta.channel, delta.kind, before, document);
        all.own.insert(delta.channel.clone(), newest);
    }
    Ok(all)
}

impl<'a> Pieces<'a> {
    fn add(
        &mut self,
        channel: &'a str,
        kind: PatchKind,
        before: Option<Newest>,
        document: Document<'a>,
    ) -> Newest {
        self.counter += 1;
        let newest = Newest::then(before, self.counter, kind, document.0.len());
        let key = PieceKey {
            channel,
            n: self.counter,
            kind,
            before: before.map(|before| before.0),
        };
        self.rows.push((key, document));
        newest
    }
}

/// Of notes with the same task, kind and key only the last; each with its place.
fn latest(notes: &[Note]) -> impl Iterator<Item = (usize, &Note)> {
    let mut seen = HashSet::new();
    let newest_first = notes.iter().enumerate().rev();
    let mut kept: Vec<(usize, &Note)> = newest_first
        .filter(|(_, note)| seen.insert((note.task, note.kind, &*note.key)))
        .collect();
    kept.reverse();
    kept.into_iter()
}

/// Adds notes to a checkpoint.
pub(crate) async fn note(
    tx: &mut dyn Tx,
    codec: &Codec,
    scope: &Scope,
    ready: &Ready<Notes>,
) -> Result<(), Fault> {
    let notes = &ready.what;
    let grows = (notes.events.len(), notes.notes.len());
    let touch = Touch {
        thread: &scope.thread,
        epoch: notes.epoch,
        now_ms: notes.events.last().map(|event| event.created_ms),
        grows,
        standing: None,
    };
    let is_there = Statement::new(
        "SELECT s.id FROM thread t JOIN scope s ON s.thread = t.id \
         JOIN checkpoint c ON c.scope = s.id AND c.id = $3 WHERE t.name = $1 AND s.namespace = $2",
        [
            (&*scope.thread).into(),
            (&*scope.namespace).into(),
            notes.at.to_string().into(),
        ],
    );
    let mut answers = tx
        .all(vec![touch.statement(codec), is_there])
        .await?
        .into_iter();
    let Some(taken) = Taken::read(&scope.thread, next(&mut answers)?, grows)? else {
        let refused = refused(tx, &scope.thread, notes.epoch).await?;
        return Err(refused.unwrap_or_else(|| unknown(scope, notes.at)).into());
    };
    let found = next(&mut answers)?.first();
    let scope_row = id_of(scope, &found.ok_or_else(|| unknown(scope, notes.at))?)?;
    let thread = (taken.thread, &*scope.thread);
    let (logged, _) = events::append(codec, thread, taken.seq, &notes.events, |_| None)?;
    let mut statements: Vec<Statement<'_>> = latest(&notes.notes)
        .zip(taken.counter + 1..)
        .map(|((at, note), n)| (note, n, ready.frame(at)))
        .map(|note| note_insert(codec, scope, scope_row, notes.at, note))
        .collect();
    statements.extend(logged);
    Ok(tx.later(statements).await?)
}
