//! The log of a thread: entries are appended with what they tell of, read by whoever joins later.
//!
//! `checkpoints.rs` and `lease.rs` append ([`append`]) in their own transactions and then say that the log
//! has grown ([`Growth`]). What an entry has in common with the checkpoint it was saved with is stored
//! once, as the checkpoint's pieces, and put back on reading.

use crate::{
    checkpoints::rows::PieceRow,
    codec::{Codec, Place},
    database::{Database, Fault},
    durable::Durable,
    error::damaged,
    sql::{Row, Statement, Tx, one},
};
use futures::future::BoxFuture;
use paraph_graph::{Error, EventLog, LogEntry, LogQuery, Logged, Scope, fill};
use serde_json::value::RawValue;
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::watch;

/// How often a log is looked at that another process may write to.
const POLL: Duration = Duration::from_millis(250);

/// Where a piece is stored: the row of its scope, and its number there.
pub(crate) type PieceAt = (i64, u64);

/// Tells those who wait that a log has grown. Only of this process; others are seen by looking.
#[derive(Debug, Default)]
pub(crate) struct Growth(Mutex<HashMap<Arc<str>, watch::Sender<()>>>);

impl Growth {
    /// The thread's log has new entries.
    pub(crate) fn grew(&self, thread: &str) {
        let mut waited_for = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waited_for
            .get(thread)
            .is_some_and(|to| to.send(()).is_err())
        {
            waited_for.remove(thread);
        }
    }

    fn watch(&self, thread: &str) -> watch::Receiver<()> {
        let mut waited_for = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever begins to wait clears away what nobody waits for any more.
        waited_for.retain(|_, to| to.receiver_count() > 0);
        let to = waited_for.entry(thread.into());
        to.or_insert_with(|| watch::channel(()).0).subscribe()
    }
}

/// What an entry's `pieces` says: channel → row of the scope, number of the piece.
pub(crate) type Same = BTreeMap<String, PieceAt>;

/// Appends entries to a thread's log, whose newest has the number `seq`; says the new newest number, which
/// belongs into the thread's row. `piece` finds what the same transaction stores for a channel.
///
/// # Errors
/// If an entry names a channel that is not stored.
pub(crate) fn append(
    codec: &Codec,
    thread: (i64, &str),
    seq: u64,
    entries: &[LogEntry],
    piece: impl Fn(&str) -> Option<PieceAt>,
) -> Result<(Vec<Statement<'static>>, u64), Error> {
    let mut newest = seq;
    let mut statements = Vec::with_capacity(entries.len());
    for entry in entries {
        newest += 1;
        let mut same = Same::new();
        for channel in &entry.same {
            let at = piece(channel).ok_or_else(|| {
                damaged(
                    format!("an event of thread `{}`", thread.1),
                    format!("it names channel `{channel}`, which is not saved with it"),
                )
            })?;
            same.insert(channel.clone(), at);
        }
        let event = Stored {
            seq: newest,
            run: entry.run.to_string(),
            created_ms: entry.created_ms,
            same,
            json: entry.json.as_bytes().into(),
        };
        statements.push(event.insert(codec, thread));
    }
    Ok((statements, newest))
}

/// A row of table `event`.
pub(crate) struct Stored<'a> {
    pub(crate) seq: u64,
    pub(crate) run: String,
    pub(crate) created_ms: u64,
    pub(crate) same: Same,
    /// Without what `same` names.
    pub(crate) json: Cow<'a, [u8]>,
}

impl Stored<'_> {
    /// Writes it as a new row.
    pub(crate) fn insert(&self, codec: &Codec, thread: (i64, &str)) -> Statement<'static> {
        let pieces = same_text(&self.same);
        let fixed = pieces.clone().unwrap_or_default();
        let place = place(thread.1, self.seq, &self.run);
        let docs = [("value", Some(&*self.json))];
        let ([doc], sum) = codec.put(&place, &[fixed.as_bytes()], docs);
        let [value, packed] = doc.owned().cells();
        Statement::new(
            "INSERT INTO event (thread, seq, run, created_ms, pieces, value, value_packed, sum) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            [
                thread.0.into(),
                self.seq.into(),
                self.run.clone().into(),
                self.created_ms.into(),
                pieces.into(),
                value,
                packed,
                sum.into(),
            ],
        )
    }
}

/// The columns that [`read`] reads, from `event e`.
macro_rules! columns {
    ($from_where:literal) => {
        concat!(
            "SELECT e.seq, e.run, e.created_ms, e.pieces, e.value, e.value_packed, e.sum ",
            $from_where
        )
    };
}
pub(crate) use columns;

/// Reads a row of [`columns`].
///
/// # Errors
/// If it is damaged.
pub(crate) fn read(codec: &Codec, thread: &str, mut row: Row) -> Result<Stored<'static>, Error> {
    let seq = row.unsigned(0).unwrap_or_default();
    let bad = |why: String| damaged(format!("event {seq} of thread `{thread}`"), why);
    let bad_cell = |e: crate::sql::BadCell| bad(e.to_string());
    let run = row.text(1).map_err(bad_cell)?.to_owned();
    let pieces = row.opt_text(3).map_err(bad_cell)?.unwrap_or_default();
    let sum = row.int(6).map_err(bad_cell)?;
    let place = place(thread, row.unsigned(0).map_err(bad_cell)?, &run);
    let fixed = pieces.to_owned();
    let created_ms = row.unsigned(2).map_err(bad_cell)?;
    let same = match pieces {
        "" => Same::new(),
        text => serde_json::from_str(text).map_err(|e| bad(format!("`pieces`: {e}")))?,
    };
    let docs = [("value", row.take(4), row.take(5))];
    let [json] = codec
        .take(&place, &[fixed.as_bytes()], docs, sum)
        .map_err(bad)?;
    Ok(Stored {
        seq,
        run,
        created_ms,
        same,
        json: Cow::Owned(json.ok_or_else(|| bad("`value` is missing".to_owned()))?),
    })
}

fn place(thread: &str, seq: u64, run: &str) -> Place {
    Place::new("event").text(thread).int(seq).text(run)
}

fn same_text(same: &Same) -> Option<String> {
    // A map of numbers by name is always JSON.
    (!same.is_empty()).then(|| serde_json::to_string(same).unwrap_or_default())
}

/// Puts back what these entries have in common with checkpoints.
///
/// # Errors
/// If a piece is not there, or damaged.
pub(crate) async fn filled(
    tx: &mut dyn Tx,
    codec: &Codec,
    thread: &str,
    found: Vec<Stored<'_>>,
) -> Result<Vec<Logged>, Fault> {
    let mut wanted: Vec<PieceAt> = found
        .iter()
        .flat_map(|f| f.same.values().copied())
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    let pieces = pieces_at(tx, codec, thread, &wanted).await?;
    let mut all = Vec::with_capacity(found.len());
    for entry in found {
        let bad = |why: String| damaged(format!("event {} of thread `{thread}`", entry.seq), why);
        let mut update: BTreeMap<String, Box<RawValue>> = BTreeMap::new();
        for (channel, at) in &entry.same {
            let piece = pieces
                .get(at)
                .ok_or_else(|| bad(format!("what it says of channel `{channel}` is gone")))?;
            let json = serde_json::from_slice(piece)
                .map_err(|e| bad(format!("channel `{channel}`: {e}")))?;
            update.insert(channel.clone(), json);
        }
        let json = String::from_utf8(entry.json.into_owned()).map_err(|e| bad(e.to_string()))?;
        let run = entry.run.parse();
        all.push(Logged {
            seq: entry.seq,
            run: run.map_err(|_| bad(format!("`{}` is no run", entry.run)))?,
            created_ms: entry.created_ms,
            json: fill(&json, &update).map_err(bad)?,
        });
    }
    Ok(all)
}

async fn select(
    tx: &mut dyn Tx,
    codec: &Codec,
    thread: &str,
    query: &LogQuery,
) -> Result<Vec<Logged>, Fault> {
    let (after, limit) = (query.after, query.limit() as u64);
    let statement = match query.run {
        None => Statement::new(
            columns!(
                "FROM thread t JOIN event e ON e.thread = t.id \
                 WHERE t.name = $1 AND e.seq > $2 ORDER BY e.seq LIMIT $3"
            ),
            [thread.into(), after.into(), limit.into()],
        ),
        Some(run) => Statement::new(
            columns!(
                "FROM thread t JOIN event e ON e.thread = t.id \
                 WHERE t.name = $1 AND e.seq > $2 AND e.run = $4 ORDER BY e.seq LIMIT $3"
            ),
            [
                thread.into(),
                after.into(),
                limit.into(),
                run.to_string().into(),
            ],
        ),
    };
    let rows = one(tx, statement).await?.rows.into_iter();
    let found: Result<Vec<Stored<'static>>, Error> =
        rows.map(|row| read(codec, thread, row)).collect();
    filled(tx, codec, thread, found?).await
}

impl<D: Database> EventLog for Durable<D> {
    fn events<'a>(
        &'a self,
        thread: &'a str,
        query: &'a LogQuery,
    ) -> BoxFuture<'a, Result<Vec<Logged>, Error>> {
        let (codec, thread, query) = (self.codec.clone(), Arc::<str>::from(thread), query.clone());
        self.read(move |tx| {
            let (codec, thread, query) = (codec.clone(), thread.clone(), query.clone());
            Box::pin(async move { select(tx, &codec, &thread, &query).await })
        })
    }

    fn grown<'a>(&'a self, thread: &'a str, after: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            loop {
                // Before the look, so that what comes after it is not missed.
                let mut grew = self.growth.watch(thread);
                let name = Arc::<str>::from(thread);
                let is_there = self.read(move |tx| {
                    let name = name.clone();
                    Box::pin(async move {
                        let look = Statement::new(
                            "SELECT e.seq FROM thread t JOIN event e ON e.thread = t.id \
                             WHERE t.name = $1 AND e.seq > $2 LIMIT 1",
                            [(&*name).into(), after.into()],
                        );
                        Ok(one(tx, look).await?.first().is_some())
                    })
                });
                if is_there.await? {
                    return Ok(());
                }
                // The sender is in the map for as long as this waits for it.
                let _ = tokio::time::timeout(POLL, grew.changed()).await;
            }
        })
    }

    fn trim<'a>(&'a self, thread: &'a str, upto: u64) -> BoxFuture<'a, Result<u64, Error>> {
        let name = Arc::<str>::from(thread);
        self.write(thread, move |tx| {
            let name = name.clone();
            Box::pin(async move {
                let delete = Statement::new(
                    "DELETE FROM event WHERE seq <= $2 \
                     AND thread = (SELECT id FROM thread WHERE name = $1)",
                    [(&*name).into(), upto.into()],
                );
                Ok(one(tx, delete).await?.written)
            })
        })
    }
}

/// The values of pieces, by where they are; those that are not there are left out.
async fn pieces_at(
    tx: &mut dyn Tx,
    codec: &Codec,
    thread: &str,
    wanted: &[PieceAt],
) -> Result<HashMap<PieceAt, Arc<Vec<u8>>>, Fault> {
    let find = |(scope, n): &PieceAt| {
        Statement::new(
            "SELECT p.n, p.channel, p.kind, p.before, p.value, p.value_packed, p.sum, s.namespace \
             FROM piece p JOIN scope s ON s.id = p.scope WHERE p.scope = $1 AND p.n = $2",
            [(*scope).into(), (*n).into()],
        )
    };
    let mut found = HashMap::with_capacity(wanted.len());
    let answers = tx.all(wanted.iter().map(find).collect()).await?;
    for (at, answer) in wanted.iter().zip(answers) {
        let Some(row) = answer.first() else {
            continue;
        };
        let bad = |why: String| damaged(format!("an event of thread `{thread}`"), why);
        let namespace = row.text(7).map_err(|e| bad(e.to_string()))?;
        let scope = Scope {
            thread: thread.into(),
            namespace: namespace.into(),
        };
        let piece = PieceRow::read(codec, &scope, row).map_err(bad)?;
        found.insert(*at, piece.json);
    }
    Ok(found)
}

/// The pieces that the log of a thread has in common with checkpoints.
///
/// # Errors
/// If an entry is damaged.
pub(crate) async fn pieces_told(
    tx: &mut dyn Tx,
    thread: i64,
    name: &str,
) -> Result<HashSet<PieceAt>, Fault> {
    let list = Statement::new(
        "SELECT pieces FROM event WHERE thread = $1 AND pieces IS NOT NULL",
        [thread.into()],
    );
    let mut told = HashSet::new();
    for row in one(tx, list).await?.rows {
        let bad = |why: String| damaged(format!("an event of thread `{name}`"), why);
        let text = row.text(0).map_err(|e| bad(e.to_string()))?;
        let same: Same = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
        told.extend(same.into_values());
    }
    Ok(told)
}
