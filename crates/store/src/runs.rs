//! Rows of runs: handed in, begun, ended, cancelled.
//!
//! `lease.rs` begins and ends them ([`find`], then [`begin`] or [`end`]) in the transactions that take a
//! thread and give it back; `threads.rs` has the methods for everybody else. Whether a run is live is never
//! stored: it follows from the thread's lease and from whether its owner is heard of.

use crate::{
    codec::{Codec, Place},
    error::damaged,
    sql::{BadCell, Cell, Row, Statement},
    threads::{Living, Owner},
};
use paraph_graph::{CancelIntent, Claim, Error, NewRun, RunEnd, RunId, RunRow, RunStatus};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

mod cancel;
mod list;

/// The columns of a run's row, from `run r`, with the lease of its thread, from `thread t`.
macro_rules! select {
    ($($which:literal)*) => {
        concat!(
            "SELECT r.id, r.thread, r.graph, r.status, r.strategy, r.created_ms, r.updated_ms, \
             r.attempts, r.cancel_reason, r.cancel_wished_ms, r.cancel_done_ms, r.error, r.error_packed, \
             r.arguments, r.arguments_packed, r.sum, t.holder, t.owner, t.expires_ms, t.id \
             FROM run r LEFT JOIN thread t ON t.name = r.thread ",
            $($which),*
        )
    };
}
pub(crate) use select;

/// The row of one run; of the answer, [`begin`] and [`end`] take the first row.
pub(crate) fn find(run: RunId) -> Statement<'static> {
    Statement::new(select!("WHERE r.id = $1"), [run.to_string().into()])
}

/// A row as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// `live` is not known yet.
    pub(crate) row: RunRow,
    /// The process that has the thread's lease for this run, and until when.
    pub(crate) owner: Owner,
    /// The row of its thread, if it is there.
    pub(crate) thread: Option<i64>,
}

impl Stored {
    /// The row as it is told.
    pub(crate) fn told(self, living: &Living) -> RunRow {
        let live = self.row.status == RunStatus::Running && living.has(&self.owner);
        RunRow { live, ..self.row }
    }
}

/// Reads a row of [`select`].
///
/// # Errors
/// If it is damaged.
pub(crate) fn read(codec: &Codec, mut row: Row) -> Result<Stored, Error> {
    let name = row.text(0).unwrap_or("?").to_owned();
    let bad = |why: String| damaged(format!("the row of run {name}"), why);
    let bad_cell = |e: BadCell| bad(e.to_string());
    let id: RunId = row.parsed(0, "the id of a run").map_err(bad_cell)?;
    let cancel = match word_at(&row, 8).map_err(bad)? {
        None => None,
        Some(reason) => Some(CancelIntent {
            reason,
            wished_ms: row.unsigned(9).map_err(bad_cell)?,
            done_ms: match row.opt_int(10).map_err(bad_cell)? {
                None => None,
                Some(_) => Some(row.unsigned(10).map_err(bad_cell)?),
            },
        }),
    };
    let holder: Option<RunId> = row.opt_parsed(16, "a run").map_err(bad_cell)?;
    let owner = match row.opt_text(17).map_err(bad_cell)? {
        Some(owner) if holder == Some(id) => {
            Some((owner.to_owned(), row.unsigned(18).map_err(bad_cell)?))
        }
        _ => None,
    };
    let mut found = RunRow {
        id,
        thread: row.text(1).map_err(bad_cell)?.to_owned(),
        graph: row.text(2).map_err(bad_cell)?.to_owned(),
        status: word_at(&row, 3)
            .map_err(bad)?
            .ok_or_else(|| bad("`status` is missing".to_owned()))?,
        live: false,
        arguments: Value::Null,
        strategy: row.opt_text(4).map_err(bad_cell)?.map(str::to_owned),
        created_ms: row.unsigned(5).map_err(bad_cell)?,
        updated_ms: row.unsigned(6).map_err(bad_cell)?,
        attempts: u32::try_from(row.int(7).map_err(bad_cell)?).unwrap_or(u32::MAX),
        error: None,
        cancel,
    };
    let thread = row.opt_int(19).map_err(bad_cell)?;
    let sum = row.int(15).map_err(bad_cell)?;
    let docs = [
        ("error", row.take(11), row.take(12)),
        ("arguments", row.take(13), row.take(14)),
    ];
    let place = place(&found);
    let [error, arguments] = codec.take(&place, &[], docs, sum).map_err(bad)?;
    found.error = document(error).map_err(|e| bad(format!("`error`: {e}")))?;
    found.arguments = document(arguments)
        .map_err(|e| bad(format!("`arguments`: {e}")))?
        .unwrap_or_default();
    Ok(Stored {
        row: found,
        owner,
        thread,
    })
}

/// What a run's row says when it begins, or goes on; nothing for a claim that leaves no row. `found` is
/// what [`find`] found.
///
/// # Errors
/// If the row is damaged, and those of [`RunRow::may_begin`].
pub(crate) fn begin(
    codec: &Codec,
    found: Option<Row>,
    thread: &str,
    claim: &Claim,
    now_ms: u64,
) -> Result<Option<Statement<'static>>, Error> {
    let Some(start) = &claim.start else {
        return Ok(None);
    };
    let mut row = match found {
        Some(row) => read(codec, row)?.row,
        None => RunRow::pending(claim.run, thread, start, now_ms),
    };
    row.may_begin(thread)?;
    row.begin(start, now_ms);
    Ok(Some(save(codec, &row)))
}

/// What a run's row says when it has come to rest; nothing if it has no row.
///
/// # Errors
/// If the row is damaged.
pub(crate) fn end(
    codec: &Codec,
    found: Option<Row>,
    end: &RunEnd,
    now_ms: u64,
) -> Result<Option<Statement<'static>>, Error> {
    let Some(found) = found else {
        return Ok(None);
    };
    let mut row = read(codec, found)?.row;
    row.end(end.status, end.error.clone(), now_ms);
    Ok(Some(save(codec, &row)))
}

/// A row for a run that was just handed in.
pub(crate) fn pending(run: &NewRun, now_ms: u64) -> RunRow {
    let mut row = RunRow::pending(run.id, &run.thread, &run.start, now_ms);
    row.strategy.clone_from(&run.strategy);
    row
}

/// Writes a row, new or over the older one.
pub(crate) fn save(codec: &Codec, row: &RunRow) -> Statement<'static> {
    const SQL: &str = "INSERT INTO run (id, thread, graph, status, strategy, created_ms, updated_ms, attempts, \
        cancel_reason, cancel_wished_ms, cancel_done_ms, error, error_packed, arguments, arguments_packed, sum) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) \
        ON CONFLICT (id) DO UPDATE SET graph = excluded.graph, status = excluded.status, \
        updated_ms = excluded.updated_ms, attempts = excluded.attempts, \
        cancel_reason = excluded.cancel_reason, cancel_wished_ms = excluded.cancel_wished_ms, \
        cancel_done_ms = excluded.cancel_done_ms, error = excluded.error, \
        error_packed = excluded.error_packed, arguments = excluded.arguments, \
        arguments_packed = excluded.arguments_packed, sum = excluded.sum \
        WHERE run.thread = excluded.thread";
    let error = row
        .error
        .as_ref()
        .map(|e| Value::from(e.as_str()).to_string());
    let arguments = row.arguments.to_string();
    let docs = [
        ("error", error.as_deref().map(str::as_bytes)),
        ("arguments", Some(arguments.as_bytes())),
    ];
    let ([error, arguments], sum) = codec.put(&place(row), &[], docs);
    let ([error, error_packed], [arguments, arguments_packed]) =
        (error.owned().cells(), arguments.owned().cells());
    let cancel = row.cancel;
    let values: [Cell<'static>; 16] = [
        row.id.to_string().into(),
        row.thread.clone().into(),
        row.graph.clone().into(),
        word(row.status).into(),
        row.strategy.clone().into(),
        row.created_ms.into(),
        row.updated_ms.into(),
        i64::from(row.attempts).into(),
        cancel.map(|c| word(c.reason)).into(),
        cancel.map(|c| c.wished_ms).into(),
        cancel.and_then(|c| c.done_ms).into(),
        error,
        error_packed,
        arguments,
        arguments_packed,
        sum.into(),
    ];
    Statement::new(SQL, values)
}

fn place(row: &RunRow) -> Place {
    Place::new("run")
        .text(&row.id.to_string())
        .text(&row.thread)
}

/// A status, a source and the like, as columns have it: the word that serde gives it.
pub(crate) fn word(what: impl Serialize) -> String {
    match serde_json::to_value(what) {
        Ok(Value::String(word)) => word,
        // All that is written so is an enum without fields.
        _ => String::new(),
    }
}

/// Reads what [`word`] wrote; nothing for NULL.
///
/// # Errors
/// What is wrong, in words.
pub(crate) fn word_at<T: DeserializeOwned>(row: &Row, column: usize) -> Result<Option<T>, String> {
    let Some(text) = row.opt_text(column).map_err(|e| e.to_string())? else {
        return Ok(None);
    };
    serde_json::from_value(Value::from(text))
        .map(Some)
        .map_err(|_| format!("`{text}` is no word that is known there"))
}

/// A document that is JSON of a certain form.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn document<T: DeserializeOwned>(json: Option<Vec<u8>>) -> Result<Option<T>, String> {
    json.map(|json| serde_json::from_slice(&json).map_err(|e| e.to_string()))
        .transpose()
}
