//! The support agent: a customer asks for a refund, the agent looks facts up and answers.
//!
//! The model only decides. Each decision is one JSON action, untrusted as it is; every call passes the
//! gateway. As a graph: `think` asks the model, `act` hands its call to the gateway, and so on until
//! there is an answer or a reason to stop. With [`Dialect::Native`] the same tools, policy and gateway
//! run in the message loop of [`React`].
//!
//! The article's contract holds: order of the checks, reasons, what consumes budget, shape of the
//! result. Where it is met differently on purpose is listed in the gateway's guide.

mod documents;
mod prompt;
mod tools;

use crate::asking::{Early, RunContext};
use crate::ending::{Ending, keep_first};
use crate::outcome::{RunResult, TraceRow, of_actions};
use crate::run::{AgentRun, Application, Beginning, Route, start};
use crate::terms::check_task;
use crate::{Error, React, Terms};
use paraph_gateway::{Dialect, Gateway, Limits, Step, Stop, ToolCall, parse_action};
use paraph_graph::{Ctx, Drawing, END, Graph, MemoryStore, State, Store, Update, with};
use paraph_models::{ChatRequest, Message, ResponseFormat};
use serde::{Deserialize, Serialize};

#[cfg(test)]
pub(crate) use prompt::goal;
pub(crate) use prompt::read_goal;
pub(crate) use tools::TOOLS;

/// The agent's name.
const NAME: &str = "support";
const THINK: &str = "think";
const ACT: &str = "act";

/// What the customer wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The customer's number.
    pub user: u64,
    /// What they ask.
    pub question: String,
}

/// What a run may use unless told otherwise: 8 decisions, 5 calls, 20 seconds.
pub(crate) fn limits() -> Limits {
    Limits {
        tool_calls: 5,
        ..Limits::default()
    }
}

/// The state of a run with JSON actions.
#[derive(State, Clone, Default)]
pub(crate) struct SupportState {
    /// The task as the model is given it.
    goal: String,
    /// The finished steps.
    #[reduce(append)]
    history: Vec<Turn>,
    /// All tool calls, the failed one too.
    #[reduce(append)]
    trace: Vec<TraceRow>,
    /// What the model wants done next.
    decided: Option<Decision>,
    /// Why the run ends.
    #[reduce(keep_first)]
    ending: Option<Ending>,
}

/// A finished step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    step: u64,
    call: ToolCall,
    /// JSON text, so that no digit is lost in a checkpoint.
    observation: String,
}

/// A call that the model wants made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Decision {
    step: u64,
    call: ToolCall,
}

/// The support agent, ready to run.
///
/// ```
/// use paraph_agents::{Case, Rehearsal, Support, Terms};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), paraph_agents::Error> {
/// let support = Support::new(&[], &[])?;
/// let case = Case { user: 42, question: "Can I get a refund now?".into() };
/// let terms = Terms::new(Arc::new(Rehearsal), "case-7");
/// let result = support.start(&case, &terms).await?.result().await;
/// assert!(result.answer().unwrap().contains("49.00 USD"));
/// assert_eq!(result.trace().len(), 3);
/// # Ok(())
/// # }
/// ```
pub struct Support {
    gateway: Gateway,
    graph: Graph<SupportState>,
    react: React,
    store: Store,
}

impl Support {
    /// An agent whose allowlist is its three tools and `allow`, without `deny`.
    ///
    /// # Errors
    /// [`Error::Gateway`] if a rule is faulty.
    pub fn new(allow: &[String], deny: &[String]) -> Result<Support, Error> {
        let gateway = tools::gateway(allow, deny)?;
        Ok(Support {
            graph: graph(gateway.clone())?,
            react: React::new(NAME, prompt::NATIVE_INSTRUCTIONS, gateway.clone())?,
            gateway,
            store: MemoryStore::shared(),
        })
    }

    /// Remarks on the rules that are no mistakes.
    pub fn warnings(&self) -> &[String] {
        self.gateway.warnings()
    }

    /// What a run may use unless told otherwise.
    pub fn limits() -> Limits {
        limits()
    }

    /// The graph, to be drawn.
    pub fn drawing(&self) -> Drawing {
        self.graph.drawing()
    }

    /// Starts a run. It runs while its events are read.
    ///
    /// # Errors
    /// [`Error::EmptyTask`], [`Error::LongTask`], [`Error::Stopped`].
    pub async fn start(&self, case: &Case, terms: &Terms) -> Result<AgentRun, Error> {
        let case = Case {
            question: check_task(&case.question)?.to_owned(),
            user: case.user,
        };
        let goal = prompt::goal(&case);
        if terms.dialect == Dialect::Native {
            return self.react.start(&goal, terms).await;
        }
        let beginning = Beginning {
            agent: NAME,
            graph: &self.graph,
            store: &self.store,
            gateway: &self.gateway,
            // A new run on a thread begins anew: what an earlier one found belongs to its own question.
            input: SupportState::update()
                .goal(goal.clone())
                .replace_history(Vec::new())
                .replace_trace(Vec::new())
                .decided(None)
                .replace_ending(None),
            task: goal,
        };
        start::<Support>(beginning, terms).await
    }
}

fn graph(gateway: Gateway) -> Result<Graph<SupportState>, paraph_graph::Error> {
    Graph::<SupportState>::new(NAME)
        .node(THINK, with(gateway, think))
        .node(ACT, act)
        .start(THINK)
        .branch(THINK, next, [ACT, END])
        .branch(ACT, next, [THINK, END])
        .build()
}

/// Where the graph goes. Both branches ask the same question: is there an end, a call, or a result?
fn next(state: &SupportState) -> &'static str {
    match (&state.ending, &state.decided) {
        (Some(_), _) => END,
        (None, Some(_)) => ACT,
        (None, None) => THINK,
    }
}

impl Application for Support {
    type State = SupportState;

    fn route(state: &SupportState) -> Route {
        let (from, cause) = match (&state.ending, &state.decided) {
            (None, Some(_)) => (THINK, "the model wants a tool".to_owned()),
            (None, None) => (ACT, "the model has something new to read".to_owned()),
            (Some(ending), None) if ending.stop == Stop::Success => {
                (THINK, "the model has its answer".to_owned())
            }
            (Some(ending), None) => (THINK, format!("stopped: {}", ending.stop)),
            (Some(ending), Some(_)) => (ACT, format!("stopped: {}", ending.stop)),
        };
        Route { from, cause }
    }

    fn ending(state: &SupportState) -> Option<Ending> {
        state.ending.clone()
    }

    fn result(state: Option<&SupportState>, ending: Ending) -> RunResult {
        let (trace, history) = match state {
            Some(state) => (
                state.trace.clone(),
                state.history.iter().map(prompt::row).collect(),
            ),
            None => (Vec::new(), Vec::new()),
        };
        of_actions(ending, trace, history)
    }
}

/// Asks the model for its next action, and reads it.
async fn think(
    gateway: &Gateway,
    state: &SupportState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<SupportState>> {
    match decide(gateway, state, ctx).await {
        Ok(decision) => Ok(SupportState::update().decided(Some(decision))),
        Err(Early::Ending(ending)) => Ok(SupportState::update().ending(Some(*ending))),
        Err(Early::Node(error)) => Err(error),
    }
}

async fn decide(gateway: &Gateway, state: &SupportState, ctx: &Ctx) -> Result<Decision, Early> {
    let run = RunContext::of(ctx)?;
    let step = run.begin_step(ctx).await?;
    let payload = prompt::payload(&state.goal, &state.history, gateway.catalogue())
        .map_err(|error| Stop::Internal(error.to_string()))?;
    let request = ChatRequest {
        response_format: ResponseFormat::JsonObject,
        ..ChatRequest::new([
            Message::system(prompt::INSTRUCTIONS),
            Message::human(payload),
        ])
    };
    let reply = run.ask(ctx, step, request).await?;
    let text = reply.message.text();
    if text.is_empty() {
        // A tool call of the provider's is no action in this dialect.
        return Err(Stop::LlmEmpty.into());
    }
    let (decision, told) = match parse_action(&text) {
        Ok(Step::Tool(call)) => {
            let told = ("tool", vec![call.name().to_owned()], None);
            (Ok(Decision { step, call }), told)
        }
        Ok(Step::Final(answer)) => (Err(Ending::answered(answer)), ("final", Vec::new(), None)),
        Err(stop) => {
            let told = ("invalid", Vec::new(), Some(stop.clone()));
            (Err(Ending::refused(stop, text.as_ref())), told)
        }
    };
    let (kind, tools, stop_reason) = told;
    ctx.emit(crate::AgentEventData::Decided {
        step,
        kind: kind.to_owned(),
        tools,
        stop_reason,
    })
    .await?;
    decision.map_err(Early::from)
}

/// Hands the model's call to the gateway.
async fn act(state: &SupportState, ctx: &Ctx) -> paraph_graph::Result<Update<SupportState>> {
    let Some(Decision { step, call }) = state.decided.clone() else {
        let stop = Stop::Internal("there is no call to make".to_owned());
        return Ok(SupportState::update().ending(Some(stop.into())));
    };
    let (row, seen) = RunContext::of(ctx)?.hand(ctx, step, &call).await?;
    let update = SupportState::update().trace([row]);
    Ok(match seen {
        Ok(seen) => update.decided(None).history([Turn {
            step,
            call,
            observation: seen.content,
        }]),
        // The call stays in the state: it says at which node the run ended.
        Err(stop) => update.ending(Some(stop.into())),
    })
}

#[cfg(test)]
mod tests;
