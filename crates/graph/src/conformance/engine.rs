//! Rules about graphs on a store: small graphs, driven through the public API, that must come to the same on
//! every store, with every durability, however often they are cut and taken up again.
//!
//! The other rules look at a store from below; these look at it as whoever runs graphs does.

mod branches;
mod cuts;
mod ends;
mod graphs;
mod programs;
mod questions;
mod subgraphs;

pub(super) use branches::*;
pub(super) use cuts::*;
pub(super) use ends::*;
pub(super) use programs::*;
pub(super) use questions::*;
pub(super) use subgraphs::*;

use super::scene::text;
use crate::{Durability, Error, Graph, Name, RunId, State as _, Store, Thread, Threads};
use graphs::Case;
use std::{fmt::Display, sync::Arc};

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// A store, and names for threads of one rule's own.
#[derive(Clone)]
pub(super) struct Play {
    threads: Arc<dyn Threads>,
    store: Store,
    name: String,
}

impl Play {
    pub(super) fn on(threads: Arc<dyn Threads>, rule: &str) -> Self {
        Play {
            store: threads.clone(),
            threads,
            name: format!("{rule} {}", RunId::fresh()),
        }
    }

    fn name(&self, which: impl Display) -> String {
        format!("{} {which}", self.name)
    }

    fn thread(&self, graph: &Graph<Case>, which: impl Display) -> Thread<Case> {
        graph.thread(&self.store, self.name(which))
    }
}

/// The state at every checkpoint and what was due there, newest first: a history by what it says.
async fn story(thread: &Thread<Case>) -> Result<Vec<(Case, Vec<Name>)>, String> {
    let mut all = Vec::new();
    for entry in thread.history().await.map_err(text)? {
        let snapshot = thread.snapshot(Some(entry.id)).await.map_err(text)?;
        let snapshot = snapshot.ok_or("a checkpoint of the history is not there")?;
        all.push((Arc::unwrap_or_clone(snapshot.state), snapshot.next));
    }
    Ok(all)
}

/// Brings a thread to its end from wherever it is, answering what is asked.
async fn to_the_end(thread: &Thread<Case>, durability: Durability) -> Result<Case, String> {
    for _ in 0..1000 {
        let run = match thread.snapshot(None).await.map_err(text)? {
            None => thread.run(Case::update()),
            Some(snapshot) if snapshot.finished => return Ok(Arc::unwrap_or_clone(snapshot.state)),
            Some(snapshot) => match snapshot.interrupts.first() {
                None => thread.resume(),
                Some(question) => {
                    thread.answer(&question.id, format!("yes to {}", question.question))
                }
            },
        };
        match run.durability(durability).await {
            Ok(_) => {}
            // The run that was dropped has the thread for a moment yet.
            Err(Error::Conflict { .. }) => {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            Err(e) => return Err(format!("bringing a thread to its end: {e}")),
        }
    }
    Err("a thread does not come to its end".to_owned())
}
