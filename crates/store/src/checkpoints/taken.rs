//! A thread's row as a writer takes it, or finds that it may not.
//!
//! Called by all that writes to a thread, with what `standing.rs` asked.

use crate::{
    database::Fault,
    error::damaged,
    sql::{Answer, BadCell, Statement, Tx, one},
};
use paraph_graph::{Error, RunId};

/// The thread's row when it was taken for this write.
pub(crate) struct Taken {
    pub(crate) thread: i64,
    /// The newest entry of the log before this write.
    pub(crate) seq: u64,
    /// The newest number of a piece or note before this write.
    pub(crate) counter: u64,
}

impl Taken {
    /// What [`Touch::statement`] answered; nothing if it wrote nothing.
    pub(crate) fn read(
        thread: &str,
        answer: Answer,
        (events, numbers): (usize, usize),
    ) -> Result<Option<Taken>, Error> {
        let Some(row) = answer.first() else {
            return Ok(None);
        };
        let read = || -> Result<Taken, BadCell> {
            Ok(Taken {
                thread: row.int(0)?,
                seq: row.unsigned(1)?.saturating_sub(events as u64),
                counter: row.unsigned(2)?.saturating_sub(numbers as u64),
            })
        };
        let bad = |e: BadCell| damaged(format!("the row of thread `{thread}`"), e.to_string());
        read().map(Some).map_err(bad)
    }
}

/// How a thread that was not taken stands to the writer.
pub(crate) struct Fence {
    /// Whether there is a newer lease than the writer's.
    pub(crate) is_newer: bool,
    holder: Option<RunId>,
}

impl Fence {
    /// Nothing if the thread is not there.
    pub(crate) async fn of(
        tx: &mut dyn Tx,
        thread: &str,
        epoch: u64,
    ) -> Result<Option<Fence>, Fault> {
        let select = Statement::new(
            "SELECT epoch, holder FROM thread WHERE name = $1",
            [thread.into()],
        );
        let Some(row) = one(tx, select).await?.first() else {
            return Ok(None);
        };
        let bad = |e: BadCell| damaged(format!("the row of thread `{thread}`"), e.to_string());
        Ok(Some(Fence {
            is_newer: row.unsigned(0).map_err(bad)? > epoch,
            holder: row.opt_parsed(1, "a run").map_err(bad)?,
        }))
    }

    /// Whoever has the newest lease is told of a moved head, not of itself.
    pub(crate) fn conflict(&self, thread: &str) -> Error {
        Error::Conflict {
            thread: thread.to_owned(),
            holder: self.holder.filter(|_| self.is_newer),
        }
    }
}

/// Why a thread's row was not taken; nothing if it is not there.
pub(crate) async fn refused(
    tx: &mut dyn Tx,
    thread: &str,
    epoch: u64,
) -> Result<Option<Error>, Fault> {
    let fence = Fence::of(tx, thread, epoch).await?;
    Ok(fence.map(|fence| fence.conflict(thread)))
}
