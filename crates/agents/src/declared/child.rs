//! An agent that another one calls as a tool: a run of its own, on a thread of its own, out of its caller's purse.
//!
//! The thread is named after the call's key, so that a caller that goes on in another process finds the run again and
//! does not begin a second one. What happens in it is told among the caller's events. A child that stops is something
//! its caller reads.

use super::build::Voice;
use crate::run_context::RunContext;
use crate::teller::Teller;
use crate::tool_node::CallSite;
use crate::waits::Waits;
use crate::{Agent, AgentEventData, AgentRun, Error, RunResult, Terms};
use paraph_gateway::{
    Budget, DynTool, Json, Limits, LoopRule, Stop, ToolContext, ToolError, ToolOutput, UNLIMITED,
    View, Why,
};
use paraph_graph::{Ctx, HistoryQuery, RunId, RunRow, Scope, Store};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// How much longer than its run a call may take: for opening and closing.
const GRACE: Duration = Duration::from_secs(10);

/// How long a call may take of which nobody limits the time.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How much of the caller's thread stands in the name of the child's, in characters.
const SHOWN_THREAD: usize = 80;

/// How much of the call's key stands there, in hexadecimal digits.
const SHOWN_KEY: usize = 16;

fn shown(thread: &str) -> String {
    thread.chars().take(SHOWN_THREAD).collect()
}

/// The argument of a called agent's run that names its caller's.
const CALLED_BY: &str = "called_by_run";

/// The run by which this one was called, if its agent was called as a tool of another.
pub fn caller_of(run: &RunRow) -> Option<RunId> {
    run.arguments.get(CALLED_BY)?.as_str()?.parse().ok()
}

/// An agent that can be called.
pub(super) struct Child {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) agent: Agent,
    pub(super) limits: Limits,
    pub(super) loops: LoopRule,
    /// Nothing if it speaks by its caller's model.
    pub(super) voice: Option<Voice>,
    pub(super) threads: Store,
}

impl Child {
    /// As a tool that takes a task.
    pub(super) fn tool(self: &Arc<Child>) -> DynTool {
        let schema = json!({
            "type": "object",
            "properties": {
                "task": {
                    "type": "string",
                    "minLength": 1,
                    "description": "What it is to do. It knows nothing else: say all that it needs.",
                },
            },
            "required": ["task"],
            "additionalProperties": false,
        });
        let child = self.clone();
        let mut tool =
            DynTool::in_context(&self.name, &self.about, schema, move |args, context| {
                let child = child.clone();
                Box::pin(async move { child.call(&args, context).await })
            });
        tool.timeout = match self.limits.seconds {
            UNLIMITED => LONGEST,
            seconds => Duration::from_secs(seconds).saturating_add(GRACE),
        };
        let child = self.clone();
        tool.waiting_under_switches(move |_, context| {
            let child = child.clone();
            Box::pin(async move { child.still_waits(context).await })
        })
    }

    /// What a call that was begun waits for while a kill switch holds its caller: what its run waited for when it came to
    /// rest. Nothing of it goes on.
    async fn still_waits(&self, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let by_agents = || ToolError::new("an agent can only be called by an agent");
        let ctx: &Ctx = context.get().ok_or_else(by_agents)?;
        let site: &CallSite = context.get().ok_or_else(by_agents)?;
        let caller: &Arc<RunContext> = ctx.context().map_err(|_| by_agents())?;
        let thread = self.thread(caller, context.key());
        let mut approvals = crate::waits::approvals(&self.agent.questions(&thread).await?);
        for approval in &mut approvals {
            approval.why = Why::Killed;
        }
        match approvals.is_empty() {
            true => Err(ToolError::new("it waits for nothing")),
            false => Err(site.waits(Teller::wait(ctx, &Waits { approvals }))),
        }
    }

    async fn call(&self, args: &Json, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let task = args
            .view()
            .get("task")
            .and_then(View::as_str)
            .unwrap_or_default();
        let by_agents = || ToolError::new("an agent can only be called by an agent");
        let ctx: &Ctx = context.get().ok_or_else(by_agents)?;
        let caller: &Arc<RunContext> = ctx.context().map_err(|_| by_agents())?;
        let session = caller.session.get().ok_or_else(by_agents)?;
        let purse = self.carve(session.budget(), context.key())?;
        let terms = Terms {
            arguments: json!({ CALLED_BY: ctx.run_id() }),
            ..self.terms(caller, purse, context.key())
        };
        let run = self.begin(task, &terms).await;
        let run = match run.map_err(|error| ToolError::new(error.to_string()))? {
            Begun::Under(run) => run,
            Begun::Over(result) => return self.outcome(&result, None),
        };
        let (result, detail) = self.follow(run, ctx).await?;
        let approvals = result.approvals().to_vec();
        if !approvals.is_empty() {
            // Its caller waits for what it waits for, and then goes on with it.
            let site: &CallSite = context.get().ok_or_else(by_agents)?;
            return Err(site.waits(Teller::wait(ctx, &Waits { approvals })));
        }
        self.outcome(&result, detail)
    }

    /// The child's share of its caller's purse: what its file says, as far as that is there. Of what its file does not
    /// limit and its caller's does, it gets half of what is left. One that waited and goes on is the same child: what it
    /// used before is counted once.
    fn carve(&self, purse: &Budget, key: &str) -> Result<Budget, ToolError> {
        let left = purse.left_for(key);
        let share = |own: u64, left: u64| match (own, left) {
            (own, UNLIMITED) => own,
            (UNLIMITED, left) => left / 2,
            (own, left) => own.min(left),
        };
        let limits = Limits {
            tool_calls: share(self.limits.tool_calls, left.tool_calls),
            tokens: share(self.limits.tokens, left.tokens),
            micro_dollars: share(self.limits.micro_dollars, left.micro_dollars),
            children: self.limits.children.min(left.children.saturating_sub(1)),
            ..self.limits.clone()
        };
        purse.carve_again(key, limits).map_err(|stop| {
            let name = &self.name;
            ToolError::new(match stop {
                Stop::MaxChildren => {
                    format!("`{name}` cannot be called again: all calls of agents are used up")
                }
                stop => format!("`{name}` cannot be called: {stop}"),
            })
        })
    }

    /// Its thread's name is for people; who called it stands in its run's arguments.
    fn terms(&self, caller: &RunContext, purse: Budget, key: &str) -> Terms {
        let (model, price) = match &self.voice {
            Some(voice) => (voice.model.clone(), voice.price.clone()),
            None => (caller.model.clone(), caller.price.clone()),
        };
        Terms {
            price,
            limits: purse.limits(),
            loops: self.loops,
            tell_messages: caller.tell_messages,
            purse: Some(purse),
            user: caller.scope.user.clone(),
            ..Terms::new(model, self.thread(caller, key))
        }
    }

    /// The thread of the run for a call of this key.
    fn thread(&self, caller: &RunContext, key: &str) -> String {
        let key = key.get(..SHOWN_KEY).unwrap_or(key);
        format!("{}/{}-{key}", shown(&caller.scope.thread), self.name)
    }

    /// Begins the run, or goes on with the one that an earlier process began for the same call.
    async fn begin(&self, task: &str, terms: &Terms) -> Result<Begun, Error> {
        let scope = Scope {
            thread: terms.thread.as_str().into(),
            namespace: "".into(),
        };
        let newest = HistoryQuery {
            limit: Some(1),
            ..HistoryQuery::default()
        };
        let Some(head) = self.threads.history(&scope, &newest).await?.pop() else {
            return Ok(Begun::Under(self.agent.start(task, terms).await?));
        };
        let run = head.metadata.run;
        if let Some(result) = self.agent.result(run, &terms.thread).await? {
            return Ok(Begun::Over(Box::new(result)));
        }
        match self.agent.resume(run, terms).await {
            Err(Error::NothingLeft(_)) => Ok(Begun::Under(self.agent.start(task, terms).await?)),
            run => Ok(Begun::Under(run?)),
        }
    }

    /// Runs it to its end, and tells its caller's readers what happens.
    async fn follow(
        &self,
        mut run: AgentRun,
        ctx: &Ctx,
    ) -> Result<(Box<RunResult>, Option<String>), ToolError> {
        while let Some(event) = run.next().await {
            match event.data {
                AgentEventData::RunEnded { result, detail, .. } => {
                    return Ok((Box::new(result), detail));
                }
                data => {
                    let told = AgentEventData::Child {
                        agent: self.name.clone(),
                        child_run_id: event.run_id,
                        child_thread_id: event.thread_id,
                        event: Box::new(data),
                    };
                    // Whoever watches may be gone; the child goes on without them.
                    if let Err(error) = ctx.emit(told).await {
                        tracing::debug!(%error, "what a child did was not told");
                    }
                }
            }
        }
        Err(ToolError::new(format!("`{}` told no end", self.name)))
    }

    /// The answer, or why there is none, in words that help its caller.
    fn outcome(&self, result: &RunResult, detail: Option<String>) -> Result<ToolOutput, ToolError> {
        use paraph_gateway::IntoOutput as _;
        let explanation = result.stop().explain();
        match (result.answer(), result.stop()) {
            (Some(answer), Stop::Success) => return answer.to_owned().into_output(),
            (Some(answer), _) => {
                let text = format!(
                    "`{}` was stopped ({}), and had this to say: {answer}",
                    self.name, explanation.reason
                );
                return text.into_output();
            }
            (None, _) => {}
        }
        let detail = detail
            .map(|detail| format!(" ({detail})"))
            .unwrap_or_default();
        Err(ToolError::new(format!(
            "`{}` stopped without an answer: {}. {}{detail}",
            self.name, explanation.reason, explanation.happened
        )))
    }
}

/// A run of a child.
enum Begun {
    Under(AgentRun),
    /// It had ended when its caller was cut off.
    Over(Box<RunResult>),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

    use super::*;
    use paraph_graph::RunStart;

    #[test]
    fn the_caller_stands_in_the_arguments_of_the_called_and_nowhere_else() {
        let (called, caller) = (RunId::fresh(), RunId::fresh());
        let table = [
            (json!({ CALLED_BY: caller }), Some(caller)),
            (json!({ CALLED_BY: "somebody" }), None),
            (json!({ CALLED_BY: 7 }), None),
            (json!({ "agent": "support" }), None),
            (json!(null), None),
        ];
        for (arguments, expected) in table {
            let start = RunStart {
                graph: "helper".to_owned(),
                arguments,
            };
            let row = RunRow::pending(called, "case/helper-0123456789abcdef", &start, 0);
            assert_eq!(caller_of(&row), expected, "{}", row.arguments);
        }
    }
}
