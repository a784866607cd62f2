//! How a run is to be run: one struct for the library, the command line and a server.

use crate::{Durability, Mode, Name};
use serde_json::{Map, Value};
use std::time::Duration;

/// Everything that can be said about one run besides its input.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// How many supersteps the run may take. What is finished then is saved; `resume` goes on.
    pub limit: u64,
    /// When supersteps are saved.
    pub durability: Durability,
    /// The longest time one superstep may take.
    pub step_timeout: Option<Duration>,
    /// How many nodes may run at the same time, subgraphs' nodes included.
    pub max_concurrency: Option<usize>,
    /// Stop before these nodes run; `*` is every node, `sub|node` a node of a subgraph.
    pub pause_before: Vec<Name>,
    /// Stop after these nodes have run.
    pub pause_after: Vec<Name>,
    /// Stored with each checkpoint.
    pub metadata: Map<String, Value>,
    /// Stored with the run, for whoever takes it up again in another process; null leaves what is
    /// there.
    pub arguments: Value,
    /// Which events the thread's log keeps, if its store has one, of subgraphs too; interrupts go with
    /// the updates. [`Mode::Values`] is never kept: whole states would make a log grow with its square.
    pub log: Vec<Mode>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            limit: 10_007,
            durability: Durability::Sync,
            step_timeout: None,
            max_concurrency: None,
            pause_before: Vec::new(),
            pause_after: Vec::new(),
            metadata: Map::new(),
            arguments: Value::Null,
            log: vec![
                Mode::Updates,
                Mode::Messages,
                Mode::Custom,
                Mode::Checkpoints,
            ],
        }
    }
}

impl RunOptions {
    /// Whether `path` is among `wanted`.
    pub(crate) fn names(wanted: &[Name], path: &str) -> bool {
        wanted.iter().any(|w| w == "*" || w == path)
    }
}
