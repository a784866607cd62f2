//! On what terms a run is made: plain data that the command line or a server fills in.

use crate::Error;
use paraph_gateway::{Budget, Limits, LoopRule, Price};
use paraph_graph::RunId;
use paraph_models::ChatModel;
use serde_json::Value;
use std::sync::Arc;

/// The most tokens that one answer may have in a run whose tokens or money are limited.
pub const ANSWER_TOKENS: u64 = 4_096;

/// The longest task, in bytes.
const MAX_TASK: usize = 64 * 1024;

/// The terms of one run. They say nothing about what the run is for.
#[derive(Clone)]
pub struct Terms {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// What the model costs. Without it the cost is unknown, and a capped run is refused.
    pub price: Option<Price>,
    /// What the run may use.
    pub limits: Limits,
    /// The purse that the run spends from, carved from another run's with these limits. Without one it has its own.
    pub purse: Option<Budget>,
    /// What counts as a loop.
    pub loops: LoopRule,
    /// For whom the agent acts, as whoever decides about its effects is named: rules that let nobody approve what they
    /// asked for compare the two, and a user's day is counted under it.
    pub user: String,
    /// The thread's name, 1 to 200 characters.
    pub thread: String,
    /// The id of a new run, if it was made elsewhere.
    pub run: Option<RunId>,
    /// Stored with the run, for whoever takes it up again in another process; null leaves what is there.
    pub arguments: Value,
    /// Whether the run tells every message that is sent and received.
    pub tell_messages: bool,
}

impl Terms {
    /// The article's terms with this model: 8 steps, 6 calls, 20 seconds, exact loops, for the user `local`.
    pub fn new(model: Arc<dyn ChatModel>, thread: impl Into<String>) -> Terms {
        Terms {
            model,
            price: None,
            limits: Limits::default(),
            purse: None,
            loops: LoopRule::default(),
            user: "local".to_owned(),
            thread: thread.into(),
            run: None,
            arguments: Value::Null,
            tell_messages: false,
        }
    }
}

impl std::fmt::Debug for Terms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terms")
            .field("model", &self.model.name())
            .field("limits", &self.limits)
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

/// A task as agents take it: without space around it, not empty, not too long.
pub(crate) fn check_task(task: &str) -> Result<&str, Error> {
    let task = task.trim();
    match task.len() {
        0 => Err(Error::EmptyTask),
        bytes if bytes > MAX_TASK => Err(Error::LongTask {
            bytes,
            limit: MAX_TASK,
        }),
        _ => Ok(task),
    }
}
