//! Who passes on what a run says while it works: a node's context, or the loop by hand.
//!
//! Model calls and tool calls are the same in both; only this differs.

use crate::AgentEventData;
use crate::waits::Waits;
use futures::future::BoxFuture;
use paraph_graph::{Ctx, MessagePhase, NodeError};
use serde_json::Value;

/// Passes on what happens.
pub(crate) trait Teller: Sync {
    /// An event.
    fn emit(&self, data: AgentEventData) -> BoxFuture<'_, Result<(), NodeError>>;

    /// A piece of an answer, for whoever watches it grow. The run goes on if nobody does.
    fn chunk<'a>(&'a self, id: &'a str, shown: Value) -> BoxFuture<'a, ()>;

    /// The key of the one tool call that is made here.
    fn call_key(&self) -> String;

    /// Waits for people: this is how the work ends for now.
    fn wait(&self, waits: &Waits) -> NodeError;
}

impl Teller for Ctx {
    fn emit(&self, data: AgentEventData) -> BoxFuture<'_, Result<(), NodeError>> {
        Box::pin(Ctx::emit(self, data))
    }

    fn chunk<'a>(&'a self, id: &'a str, shown: Value) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let _ = self.message(id, MessagePhase::Chunk, shown, &[]).await;
        })
    }

    fn call_key(&self) -> String {
        self.key("call")
    }

    fn wait(&self, waits: &Waits) -> NodeError {
        // It never gives anything but the question.
        let asked: Result<(), NodeError> = Ctx::wait(self, crate::waits::APPROVAL, waits);
        asked
            .err()
            .unwrap_or_else(|| NodeError::msg("an approval was answered without being asked"))
    }
}
