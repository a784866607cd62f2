//! The process that is killed: it opens the store, looks where the thread stands, and drives it until it is
//! done.
//!
//! Started by `launch` as `paraph-crash child ORDER`. What it says on standard output, a line each:
//! `began`, `memo EFFECT` (the step with this effect is saved), `saved SUPERSTEP CHECKPOINT NAMESPACE` (told by
//! the engine, so saved), `refused WRITE`, `writes KIND…`, `done`. An error goes to standard error, with exit code 2.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use paraph_graph::{
    Durability, Error, EventData, Graph, Mode, RunId, RunStatus, Start, State, Store, Thread,
    Threads,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Fault;
use crate::failpoint::Watched;
use crate::graphs::{Case, Shape};
use crate::outside::{Outside, say};
use crate::place::Place;

/// What a child is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The store.
    pub place: Place,
    /// The thread, which is also how the counter knows the trial.
    pub thread: String,
    /// The run; all processes of a trial drive the same.
    pub run: Uuid,
    /// The graph.
    pub shape: Shape,
    /// `sync`, `async` or `exit`.
    pub durability: String,
    /// Where the counter listens.
    pub counter: SocketAddr,
    /// Which process of the trial this is, from 0.
    pub process: usize,
    /// How long an effect takes besides, in milliseconds.
    pub takes_ms: u64,
    /// Where it ends by itself, if it does.
    pub stop: Option<Stop>,
}

/// A place in the sequence of durable writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Which write, from 0: leases, checkpoints, notes and ends of runs together.
    pub write: usize,
    /// On which side of it.
    pub when: When,
}

/// A side of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The store was not asked.
    Before,
    /// It has answered, and nobody heard it.
    After,
}

/// Drives the thread of an order to its end.
///
/// # Errors
/// Whatever the store or the engine said.
pub async fn obey(order: &Order) -> Result<(), Fault> {
    let rows = order.place.open().await?;
    let watched = Arc::new(Watched::over(rows.clone(), order.stop));
    let outside = Outside {
        counter: Some(order.counter),
        trial: order.thread.clone(),
        process: order.process,
        takes: Duration::from_millis(order.takes_ms),
    };
    say("began");
    let drive = Drive {
        graph: order.shape.graph(&outside)?,
        store: watched.clone(),
        rows: Some(rows),
        run: RunId::from(order.run),
        durability: durability(&order.durability)?,
    };
    let driven = drive.to_the_end(&order.thread, say).await;
    say(&format!("writes {}", watched.writes()));
    driven?;
    say("done");
    Ok(())
}

/// The durability of that name.
pub(crate) fn durability(name: &str) -> Result<Durability, Fault> {
    match name {
        "sync" => Ok(Durability::Sync),
        "async" => Ok(Durability::Async),
        "exit" => Ok(Durability::Exit),
        _ => Err(format!("no durability is called `{name}`; there are: sync, async, exit").into()),
    }
}

/// Somebody who drives a thread.
pub(crate) struct Drive {
    pub(crate) graph: Graph<Case>,
    pub(crate) store: Store,
    /// Where the run's row is, if the store has rows.
    pub(crate) rows: Option<Arc<dyn Threads>>,
    pub(crate) run: RunId,
    pub(crate) durability: Durability,
}

impl Drive {
    /// Begins, resumes or answers until nothing is left, and says each checkpoint that is saved.
    pub(crate) async fn to_the_end(&self, thread: &str, say: impl Fn(&str)) -> Result<(), Error> {
        let thread = self.graph.thread(&self.store, thread);
        // A run of either graph comes to rest three times at most; another process may be before us as often.
        const MOST: usize = 20;
        for _ in 0..MOST {
            let Some(start) = self.next(&thread).await? else {
                return Ok(());
            };
            let mut stream = start
                .run_id(self.run)
                .durability(self.durability)
                .subgraphs(true)
                .stream([Mode::Checkpoints]);
            while let Some(event) = stream.next().await {
                if let EventData::Checkpoint { id, .. } = event.data {
                    let (superstep, namespace) = (event.superstep, &event.scope.namespace);
                    say(&format!("saved {superstep} {id} {namespace}"));
                }
            }
            match stream.outcome().await {
                Ok(_) => {}
                // Another process resumed or answered while this one waited for the lease: look again.
                Err(Error::NothingToResume(_) | Error::UnknownInterrupt(_) | Error::RunOver(_)) => {
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::store(
            "the run is never done, or its row never says so",
        ))
    }

    /// What is to be done now; nothing if all is.
    async fn next(&self, thread: &Thread<Case>) -> Result<Option<Start<Case>>, Error> {
        let Some(stands) = thread.snapshot(None).await? else {
            return Ok(Some(thread.run(Case::update())));
        };
        if stands.finished {
            return Ok((!self.is_told().await?).then(|| thread.resume()));
        }
        if stands.interrupts.is_empty() {
            return Ok(Some(thread.resume()));
        }
        let answers = stands
            .interrupts
            .into_iter()
            .map(|question| (question.id, "yes".into()));
        Ok(Some(thread.answers(answers)))
    }

    /// Whether the run's row says that it is over.
    async fn is_told(&self) -> Result<bool, Error> {
        let Some(rows) = &self.rows else {
            return Ok(true);
        };
        let row = rows.run(self.run).await?;
        Ok(row.is_some_and(|row| row.status == RunStatus::Success))
    }
}
