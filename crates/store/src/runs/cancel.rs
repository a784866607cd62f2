//! The wish that a run end: written down for its driver, or done at once if it has none.

use super::{Stored, find, read, save, word};
use crate::{
    codec::Codec,
    database::{Database, Fault},
    durable::Durable,
    sql::{Statement, Tx, one},
    threads::{Living, dispossess},
};
use paraph_graph::{CancelIntent, CancelReason, Error, RunId, RunRow, RunStatus, ThreadStatus};
use std::sync::Arc;

async fn cancel(
    tx: &mut dyn Tx,
    codec: &Codec,
    living: &Living,
    (thread, run, reason): (&str, RunId, CancelReason),
) -> Result<Stored, Fault> {
    // Both rows stay as they are seen here until this is over.
    let hold = vec![
        Statement::new(
            "UPDATE thread SET epoch = epoch WHERE name = $1",
            [thread.into()],
        ),
        Statement::new(
            "UPDATE run SET status = status WHERE id = $1",
            [run.to_string().into()],
        ),
        find(run),
    ];
    let answer = tx.all(hold).await?.pop();
    let row = answer.and_then(|answer| answer.first());
    let mut found = read(codec, row.ok_or(Error::UnknownRun(run))?)?;
    let row = &mut found.row;
    if row.status.rests() {
        return Ok(found);
    }
    let intent = CancelIntent {
        reason,
        wished_ms: living.now_ms,
        done_ms: None,
    };
    let cancel = row.cancel.get_or_insert(intent);
    if !living.has(&found.owner) {
        cancel.done_ms.get_or_insert(living.now_ms);
        row.status = RunStatus::Cancelled;
    }
    row.updated_ms = living.now_ms;
    let save = save(codec, row);
    if found.owner.is_some() && row.status.rests() {
        leave(tx, &found).await?;
    }
    one(tx, save).await?;
    Ok(found)
}

/// The run's process ended without a word: its thread waits from now on, if anything is due on it.
async fn leave(tx: &mut dyn Tx, found: &Stored) -> Result<(), Fault> {
    let Some(thread) = found.thread else {
        return Ok(());
    };
    dispossess(tx, thread).await?;
    let stands = Statement::new(
        "UPDATE thread SET status = CASE next WHEN '[]' THEN $3 ELSE $4 END \
         WHERE id = $1 AND status = $2",
        [
            thread.into(),
            word(ThreadStatus::Busy).into(),
            word(ThreadStatus::Idle).into(),
            word(ThreadStatus::Interrupted).into(),
        ],
    );
    one(tx, stands).await?;
    Ok(())
}

impl<D: Database> Durable<D> {
    pub(crate) async fn cancel_run(
        &self,
        run: RunId,
        reason: CancelReason,
    ) -> Result<RunRow, Error> {
        let row = self.find_run(run).await?.ok_or(Error::UnknownRun(run))?;
        let living = Arc::new(self.living_on(&[&row.thread]).await?);
        let (codec, seen) = (self.codec.clone(), living.clone());
        let thread = Arc::<str>::from(row.thread.as_str());
        let found = self.write(&row.thread, move |tx| {
            let (codec, living, thread) = (codec.clone(), seen.clone(), thread.clone());
            Box::pin(async move { cancel(tx, &codec, &living, (&thread, run, reason)).await })
        });
        let row = found.await?.told(&living);
        if let Some(cancel) = row.cancel.filter(|_| row.live) {
            // A driver in this process need not wait until it is read back.
            self.leases.wish(run, cancel.reason);
        }
        Ok(row)
    }
}
