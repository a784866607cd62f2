//! What the gateway must not forget: records and counters, actions, whom to wake, kill switches and the audit.
//!
//! Called by the gateway's sessions and by its desk. What may be written is decided there; here the guards are looked
//! at and the change is made in one transaction (`commit`). Each kind of row has a module of its own. All but the
//! audit goes with its thread: `threads.rs` removes it by [`forget`], unless one of its actions is not over
//! ([`unsettled`]).

mod actions;
mod audit;
mod calls;
mod commit;
mod counts;
mod guards;
mod kills;
mod wakes;

pub(crate) use actions::unsettled;
pub use counts::GatewayCounts;
pub(crate) use counts::count;

use crate::{
    codec::Codec,
    database::{Database, Fault},
    durable::Durable,
    sql::{Answer, Cell, Statement, Tx, one},
};
use futures::{FutureExt, future::BoxFuture};
use paraph_gateway::{
    ActionRow, AuditEntry, CallRecord, Change, Find, Kill, RunRef, Store, StoreError, StoreFuture,
    Wake,
};
use std::{collections::BTreeMap, sync::Arc};

/// A run as one text.
fn name(run: &RunRef) -> String {
    let parts = [&run.thread, &run.run, &run.tenant, &run.agent];
    // A list of texts is always JSON.
    serde_json::to_string(&parts).unwrap_or_default()
}

/// The run of a [`name`]; nothing if that is none.
fn run_of(name: &str) -> Option<RunRef> {
    let [thread, run, tenant, agent] = serde_json::from_str(name).ok()?;
    Some(RunRef {
        tenant,
        agent,
        thread,
        run,
    })
}

/// The texts of all runs of a thread, or of one of them: from the first on, and before the second.
fn runs_of(thread: &str, run: Option<&str>) -> (String, String) {
    let list = match run {
        None => serde_json::to_string(&[thread]),
        Some(run) => serde_json::to_string(&[thread, run]),
    };
    let list = list.unwrap_or_default();
    let head = list.strip_suffix(']').unwrap_or(&list);
    // After the last part comes a comma, and a minus sign is the next character after a comma.
    (format!("{head},"), format!("{head}-"))
}

/// Removes what is kept of a thread's runs, or of one of them. Their part of the audit stays.
pub(crate) fn forget(thread: &str, run: Option<&str>) -> [Statement<'static>; 4] {
    let (from, to) = runs_of(thread, run);
    [
        "DELETE FROM gateway_call WHERE run >= $1 AND run < $2",
        "DELETE FROM gateway_counter WHERE run >= $1 AND run < $2",
        "DELETE FROM gateway_action WHERE run >= $1 AND run < $2",
        "DELETE FROM gateway_wake WHERE run >= $1 AND run < $2",
    ]
    .map(|sql| {
        let bounds: [Cell<'static>; 2] = [from.clone().into(), to.clone().into()];
        Statement::new(sql, bounds)
    })
}

/// Reads all of it; says of each row what is wrong with it.
pub(crate) async fn verify(
    tx: &mut dyn Tx,
    codec: &Codec,
    problems: &mut Vec<String>,
) -> Result<(), Fault> {
    calls::verify(tx, codec, problems).await?;
    actions::verify(tx, codec, problems).await?;
    wakes::verify(tx, codec, problems).await?;
    kills::verify(tx, codec, problems).await?;
    audit::verify(tx, codec, problems).await
}

fn broken(e: impl std::fmt::Display) -> StoreError {
    StoreError::Broken(e.to_string())
}

impl<D: Database> Durable<D> {
    /// A read of one statement; what `work` makes of the answer is the result.
    fn answer_to<T: Send + 'static>(
        &self,
        statement: Statement<'static>,
        work: impl Fn(&Codec, Answer) -> Result<T, paraph_graph::Error> + Send + Sync + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (codec, asked) = (self.codec.clone(), Arc::new((statement, work)));
        let done = self.read(move |tx| {
            let (codec, asked) = (codec.clone(), asked.clone());
            Box::pin(async move {
                let answer = one(tx, asked.0.clone()).await?;
                Ok((asked.1)(&codec, answer)?)
            })
        });
        done.map(|done| done.map_err(broken)).boxed()
    }
}

impl<D: Database> Store for Durable<D> {
    fn commit(&self, change: Change) -> StoreFuture<'_, ()> {
        let lane = commit::lane(&change).into_owned();
        let locks = commit::locks(&change, &lane);
        let (codec, change) = (self.codec.clone(), Arc::new(change));
        let done = self.write_locked(&lane, locks, move |tx| {
            let (codec, change) = (codec.clone(), change.clone());
            Box::pin(async move { commit::commit(tx, &codec, &change).await })
        });
        done.map(|done| done.map_err(broken).flatten()).boxed()
    }

    fn calls<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<CallRecord>> {
        let run = name(run);
        self.answer_to(calls::of_run(&run), move |codec, answer| {
            calls::all(codec, &run, answer)
        })
    }

    fn counters<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, BTreeMap<String, u64>> {
        let run = name(run);
        self.answer_to(calls::counters_of(&run), move |_, answer| {
            calls::counters(&run, answer)
        })
    }

    fn actions<'a>(&'a self, find: Find<'a>) -> StoreFuture<'a, Vec<ActionRow>> {
        let (codec, wanted) = (self.codec.clone(), Arc::new(actions::Wanted::from(&find)));
        let done = self.read(move |tx| {
            let (codec, wanted) = (codec.clone(), wanted.clone());
            Box::pin(async move { wanted.find(tx, &codec).await })
        });
        done.map(|done| done.map_err(broken)).boxed()
    }

    fn wakes(&self, limit: usize) -> StoreFuture<'_, Vec<Wake>> {
        self.answer_to(wakes::due_first(limit), wakes::all)
    }

    fn kills(&self) -> StoreFuture<'_, Vec<Kill>> {
        self.answer_to(kills::list(), kills::all)
    }

    fn audit<'a>(
        &'a self,
        tenant: &'a str,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditEntry>> {
        let tenant = tenant.to_owned();
        self.answer_to(
            audit::behind(&tenant, after, limit),
            move |codec, answer| audit::all(codec, &tenant, answer),
        )
    }

    fn now_ms(&self) -> StoreFuture<'_, u64> {
        Box::pin(async move { self.db.now_ms().await.map_err(broken) })
    }

    fn is_lasting(&self) -> bool {
        true
    }
}
