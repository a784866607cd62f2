//! One call at the gateway, told as it goes: that it began, how far it is, how it ended.
//!
//! Whatever hands a model's call to the gateway does it here: the tool node, and the agent with JSON
//! actions. What comes of it in a state is their business.

use crate::asking::Unfinished;
use crate::ending::Ending;
use crate::event::AgentEventData;
use crate::outcome::TraceRow;
use crate::teller::Teller;
use crate::tool_node::{CallSite, Held};
use crate::waits::{Approval, Waits};
use futures::future::BoxFuture;
use paraph_gateway::{
    Injections, Listener, Observation, ProgressReport, Redactor, Reply, Session, Stop, ToolCall,
    Waiting,
};
use paraph_graph::NodeError;
use tokio::time::Instant;

/// How many characters of a call's arguments are shown.
pub(crate) const SHOWN_ARGUMENTS: usize = 120;

/// Where calls are made, and which decision of the model they belong to.
pub(crate) struct Calling<'r> {
    pub(crate) session: Session,
    /// Keeps the session in its place meanwhile, where sessions come and go.
    #[expect(dead_code, reason = "it is held, not read")]
    pub(crate) held: Option<Held>,
    pub(crate) redactor: &'r Redactor,
    pub(crate) step: u64,
}

/// What came of a call.
pub(crate) enum Called {
    /// Something for the model to read.
    Seen(TraceRow, Observation),
    /// The run is to end.
    Stopped(TraceRow, Stop),
}

impl Calling<'_> {
    /// Calls a tool, once for the task that the teller belongs to, and says so. `id` is the model's name for the call.
    /// If the call waits for something, nothing is told of an end, and the question is the error.
    pub(crate) async fn make(
        &self,
        teller: &dyn Teller,
        (call, id): (&ToolCall, &str),
        injections: Injections<'_>,
    ) -> Result<Called, NodeError> {
        teller
            .emit(AgentEventData::ToolStarted {
                step: self.step,
                tool: call.name().to_owned(),
                args: self.redactor.brief(call, SHOWN_ARGUMENTS),
                args_hash: call.args_hash().to_owned(),
            })
            .await?;
        let telling = Telling {
            teller,
            step: self.step,
            args_hash: call.args_hash(),
        };
        let site = CallSite::new(id);
        let injections = injections.with(&site).listener(&telling);
        let started = Instant::now();
        let replied = self
            .session
            .call_with(&teller.call_key(), call, &injections)
            .await;
        let ms = elapsed_ms(started);
        match replied {
            Ok(Reply::Observed(seen)) => {
                let failure = seen.failure.clone().map(Stop::Failed);
                let row = self.ended(teller, ms, call, failure).await?;
                Ok(Called::Seen(row, seen))
            }
            Ok(Reply::Waiting(waiting)) => Err(self.waits(teller, waiting).await?),
            Ok(Reply::Unfinished) => Err(site.waits_for()),
            Ok(_) => self.stopped(teller, ms, call, Stop::ApprovalPending).await,
            Err(stop) => self.stopped(teller, ms, call, stop).await,
        }
    }

    /// Says that a call waits, and ends the work with the question.
    async fn waits(&self, teller: &dyn Teller, waiting: Waiting) -> Result<NodeError, NodeError> {
        let approval = Approval::from(waiting);
        teller
            .emit(AgentEventData::ApprovalAsked {
                step: self.step,
                approval: approval.clone(),
            })
            .await?;
        let approvals = vec![approval];
        Ok(teller.wait(&Waits { approvals }))
    }

    /// The same for a call that is not made, because the run is to end.
    pub(crate) async fn refuse(
        &self,
        teller: &dyn Teller,
        call: &ToolCall,
        stop: Stop,
    ) -> Result<Called, NodeError> {
        self.stopped(teller, 0, call, stop).await
    }

    /// Says that a call is not made, though the run goes on: its part has no room for it.
    pub(crate) async fn decline(
        &self,
        teller: &dyn Teller,
        call: &ToolCall,
        why: &str,
    ) -> Result<TraceRow, NodeError> {
        let stop = Stop::MaxToolCalls;
        let row = self.row(call, Some(&stop));
        self.tell_end(teller, (&row, call, 0), (Some(stop), Some(why.to_owned())))
            .await?;
        Ok(row)
    }

    async fn stopped(
        &self,
        teller: &dyn Teller,
        ms: u64,
        call: &ToolCall,
        stop: Stop,
    ) -> Result<Called, NodeError> {
        let row = self.ended(teller, ms, call, Some(stop.clone())).await?;
        match Unfinished::of(&stop) {
            Some(unfinished) => Err(unfinished.into()),
            None => Ok(Called::Stopped(row, stop)),
        }
    }

    /// Says how a call ended, and gives its row.
    async fn ended(
        &self,
        teller: &dyn Teller,
        ms: u64,
        call: &ToolCall,
        failure: Option<Stop>,
    ) -> Result<TraceRow, NodeError> {
        let row = self.row(call, failure.as_ref());
        let detail = failure.clone().and_then(|stop| Ending::from(stop).detail);
        self.tell_end(teller, (&row, call, ms), (failure, detail))
            .await?;
        Ok(row)
    }

    fn row(&self, call: &ToolCall, failure: Option<&Stop>) -> TraceRow {
        TraceRow {
            step: self.step,
            tool: call.name().to_owned(),
            args_hash: call.args_hash().to_owned(),
            ok: failure.is_none(),
            stop_reason: failure.map(ToString::to_string),
        }
    }

    async fn tell_end(
        &self,
        teller: &dyn Teller,
        (row, call, ms): (&TraceRow, &ToolCall, u64),
        (stop_reason, detail): (Option<Stop>, Option<String>),
    ) -> Result<(), NodeError> {
        let ended = AgentEventData::ToolEnded {
            step: self.step,
            tool: row.tool.clone(),
            args: self.redactor.brief(call, SHOWN_ARGUMENTS),
            args_hash: row.args_hash.clone(),
            ok: row.ok,
            ms,
            stop_reason,
            detail,
        };
        teller.emit(ended).await
    }
}

/// Passes a tool's progress on to whoever streams the run.
struct Telling<'c> {
    teller: &'c dyn Teller,
    step: u64,
    args_hash: &'c str,
}

impl Listener for Telling<'_> {
    fn progress(&self, report: ProgressReport) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Whoever watches may be gone; the tool goes on without them.
            let Ok(data) = serde_json::from_str(&report.json) else {
                return;
            };
            let told = AgentEventData::ToolProgress {
                step: self.step,
                tool: report.tool,
                args_hash: self.args_hash.to_owned(),
                data,
                left_out: report.left_out,
            };
            if let Err(error) = self.teller.emit(told).await {
                tracing::debug!(%error, "a tool's progress was not told");
            }
        })
    }
}

pub(crate) fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
