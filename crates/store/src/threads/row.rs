//! The row of a thread as it is read, with what it repeats of states and of metadata.
//!
//! Called by the parts of `threads` and by what works on whole threads. Status, what is due and what is
//! asked are written by `checkpoints/standing.rs` in the transactions of a run.

use super::living::Owner;
use crate::{
    checkpoints::{ThreadDoc, due_read, status_of},
    codec::Codec,
    database::Fault,
    error::damaged,
    sql::{BadCell, Row, Statement, Tx, one},
};
use paraph_graph::{Error, RunId, ThreadRow};

/// The columns of a thread's row, from `thread t` with the head `s` and the documents `d`.
macro_rules! select {
    ($which:literal) => {
        concat!(
            "SELECT t.name, t.uuid, t.graph, t.status, t.holder, t.created_ms, t.updated_ms, s.head, \
             t.next, t.interrupts, t.interrupts_packed, t.sum, \
             d.metadata, d.metadata_packed, d.state, d.state_packed, d.sum, t.owner, t.expires_ms, t.id \
             FROM thread t \
             LEFT JOIN scope s ON s.thread = t.id AND s.namespace = '' \
             LEFT JOIN thread_doc d ON d.thread = t.id ",
            $which
        )
    };
}
pub(crate) use select;

/// A thread's row as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// `holder` is whoever is written down, also if it is gone.
    pub(crate) row: ThreadRow,
    /// The row's number.
    pub(crate) id: i64,
    /// The process that has the lease, and until when.
    pub(crate) owner: Owner,
}

/// Reads a row of [`select`].
///
/// # Errors
/// If it is damaged.
pub(crate) fn read(codec: &Codec, mut row: Row) -> Result<Stored, Error> {
    let name = row.text(0).unwrap_or("?").to_owned();
    let bad = |why: String| damaged(format!("the row of thread `{name}`"), why);
    let bad_cell = |e: BadCell| bad(e.to_string());
    row.text(0).map_err(bad_cell)?;
    let holder: Option<RunId> = row.opt_parsed(4, "a run").map_err(bad_cell)?;
    let owner = match (holder, row.opt_text(17).map_err(bad_cell)?) {
        (Some(_), Some(owner)) => Some((owner.to_owned(), row.unsigned(18).map_err(bad_cell)?)),
        _ => None,
    };
    let next_text = row.text(8).map_err(bad_cell)?.to_owned();
    let asked = (row.take(9), row.take(10));
    let sum = row.int(11).map_err(bad_cell)?;
    let (next, interrupts) = due_read(codec, &name, &next_text, asked, sum).map_err(bad)?;
    let doc = ThreadDoc::read(codec, &name, Some(&mut row), 12)?;
    let status = status_of(row.text(3).map_err(bad_cell)?);
    Ok(Stored {
        id: row.int(19).map_err(bad_cell)?,
        owner,
        row: ThreadRow {
            uuid: row.parsed(1, "a UUID").map_err(bad_cell)?,
            graph: row.opt_text(2).map_err(bad_cell)?.map(str::to_owned),
            status: status.ok_or_else(|| bad("its status is not known".to_owned()))?,
            holder,
            created_ms: row.unsigned(5).map_err(bad_cell)?,
            updated_ms: row.unsigned(6).map_err(bad_cell)?,
            metadata: doc.metadata,
            head: row.opt_parsed(7, "a checkpoint").map_err(bad_cell)?,
            next,
            interrupts,
            values: doc.state,
            name,
        },
    })
}

/// The row of one thread.
pub(crate) async fn find(
    tx: &mut dyn Tx,
    codec: &Codec,
    name: &str,
) -> Result<Option<Stored>, Fault> {
    let find = Statement::new(select!("WHERE t.name = $1"), [name.into()]);
    let row = one(tx, find).await?.first();
    Ok(row.map(|row| read(codec, row)).transpose()?)
}

/// The same, and nobody else writes to the thread until this transaction is over.
pub(crate) async fn hold(
    tx: &mut dyn Tx,
    codec: &Codec,
    name: &str,
) -> Result<Option<Stored>, Fault> {
    let hold = Statement::new(
        "UPDATE thread SET epoch = epoch WHERE name = $1",
        [name.into()],
    );
    let find = Statement::new(select!("WHERE t.name = $1"), [name.into()]);
    let row = tx.all(vec![hold, find]).await?.pop();
    let row = row.and_then(|answer| answer.first());
    Ok(row.map(|row| read(codec, row)).transpose()?)
}
