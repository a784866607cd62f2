//! What a tool finds of the graph that called it: questions to people, long-term memory, the run's context.
//!
//! A tool gets it by `#[inject]`. It holds references only and lasts as long as the call.

use paraph_gateway::{FromContext, Missing, ToolContext, ToolError};
use paraph_graph::{Ctx, Memory, NodeError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::{Mutex, PoisonError};

/// The graph around a tool's call: `#[inject] runtime: ToolRuntime<'_>`.
///
/// ```
/// use paraph_agents::ToolRuntime;
/// use paraph_gateway::{ToolError, tool};
///
/// /// Books a table.
/// #[tool]
/// async fn book(guests: u8, #[inject] runtime: ToolRuntime<'_>) -> Result<String, ToolError> {
///     // Ends the task, and with it the run; when the answer is there, the call runs again from here.
///     let sure: bool = runtime.ask("sure", format!("A table for {guests}?"))?;
///     Ok(if sure { "booked" } else { "not booked" }.to_owned())
/// }
/// ```
pub struct ToolRuntime<'c> {
    ctx: &'c Ctx,
    site: &'c CallSite,
}

/// One call, as its tool node knows it.
pub(crate) struct CallSite {
    id: String,
    /// Why the tool did not end.
    waits: Mutex<Option<NodeError>>,
}

impl CallSite {
    pub(crate) fn new(id: &str) -> CallSite {
        CallSite {
            id: id.to_owned(),
            waits: Mutex::new(None),
        }
    }

    /// Keeps what the tool waits for: its own error cannot carry it.
    pub(crate) fn waits(&self, error: NodeError) -> ToolError {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        *waits = Some(error);
        ToolError::unfinished()
    }

    /// What the tool waits for, on its way to the engine.
    pub(crate) fn waits_for(self) -> NodeError {
        let waits = self
            .waits
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        waits.unwrap_or_else(|| NodeError::msg("a tool did not end, and asked for nothing"))
    }
}

impl ToolRuntime<'_> {
    /// The id that the model gave the call.
    #[must_use]
    pub fn tool_call_id(&self) -> &str {
        &self.site.id
    }

    /// The task that makes the call.
    #[must_use]
    pub fn ctx(&self) -> &Ctx {
        self.ctx
    }

    /// Asks a person, as [`Ctx::interrupt`] does. The first time this ends the call: pass the error on
    /// with `?`. When the answer is there, the tool runs again from its top and this returns it; other
    /// calls of the same message are not run again.
    ///
    /// # Errors
    /// The question, on its way to the engine.
    pub fn ask<T: DeserializeOwned>(
        &self,
        name: &str,
        question: impl Serialize,
    ) -> Result<T, ToolError> {
        self.pass(self.ctx.interrupt(name, question))
    }

    /// Does `work` once, as [`Ctx::step`] does: not again when the tool runs again after a question.
    ///
    /// # Errors
    /// Those of `work`, which the model reads. One of the engine's ends the task.
    pub async fn step<T, F>(&self, name: &str, work: F) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, ToolError>>,
    {
        let mut failed = None;
        let done = self
            .ctx
            .step(name, async {
                work.await.map_err(|error| {
                    failed = Some(error);
                    NodeError::msg("the tool failed")
                })
            })
            .await;
        match failed {
            Some(error) => Err(error),
            None => self.pass(done),
        }
    }

    /// Long-term memory, across threads.
    ///
    /// # Errors
    /// If the graph was built without one: a mistake of the program, which ends the run.
    pub fn memory(&self) -> Result<&dyn Memory, ToolError> {
        self.ctx
            .memory()
            .map_err(|_| Missing::of::<dyn Memory>().into())
    }

    /// What the caller gave the run with `.context(…)`.
    ///
    /// # Errors
    /// If the run has none of this type: a mistake of the program, which ends the run.
    pub fn context<T: Send + Sync + 'static>(&self) -> Result<&T, ToolError> {
        self.ctx.context().map_err(|_| Missing::of::<T>().into())
    }

    fn pass<T>(&self, result: Result<T, NodeError>) -> Result<T, ToolError> {
        result.map_err(|error| self.site.waits(error))
    }
}

impl std::fmt::Debug for ToolRuntime<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolRuntime")
            .field("tool_call_id", &self.site.id)
            .finish_non_exhaustive()
    }
}

impl<'c> FromContext<'c> for ToolRuntime<'c> {
    fn from_context(context: &'c ToolContext<'_>) -> Result<Self, Missing> {
        let found = context.get().zip(context.get());
        let (ctx, site) = found.ok_or_else(Missing::of::<ToolRuntime<'_>>)?;
        Ok(ToolRuntime { ctx, site })
    }
}
