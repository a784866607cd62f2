//! The support agent: a customer asks about a refund, the agent looks facts up and answers. Where the program brings a
//! tool for it, it may also ask for the refund itself, which happens once a person has approved it.
//!
//! The model only decides. Each decision is one JSON action, untrusted as it is; every call passes the
//! gateway. As a graph: `think` asks the model, `act` hands its call to the gateway, and so on until
//! there is an answer or a reason to stop. With [`Dialect::Native`] the same tools, policy and gateway
//! run in the message loop of [`react`](crate::react()).
//!
//! The article's contract holds: order of the checks, reasons, what consumes budget, shape of the
//! result. Where it is met differently on purpose is listed in the gateway's guide.

mod documents;
mod prompt;
mod tools;

use crate::asking::{Asking, Early};
use crate::calling::Called;
use crate::ending::{Ending, keep_first};
use crate::outcome::{RunResult, TraceRow, of_actions};
use crate::run::{Application, Route};
use crate::spent::Spent;
use crate::terms::check_task;
use crate::{Agent, Case, Error, Stores, react};
use paraph_gateway::{
    Dialect, DynTool, Gateway, Injections, Limits, Step, Stop, ToolCall, parse_action,
};
use paraph_graph::{Ctx, END, Graph, State, Update, with};
use paraph_models::{ChatRequest, Message, ResponseFormat};
use serde::{Deserialize, Serialize};

#[cfg(test)]
pub(crate) use prompt::goal;
pub(crate) use prompt::read_goal;
pub(crate) use tools::{REFUND, TOOLS};

/// The agent's name.
pub(crate) const NAME: &str = "support";
const THINK: &str = "think";
const ACT: &str = "act";

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
    /// What was asked on the thread before, and answered.
    #[reduce(append)]
    exchanges: Vec<Exchange>,
    /// The task as the model is given it.
    goal: String,
    /// The finished steps.
    #[reduce(append)]
    history: Vec<Turn>,
    /// All tool calls, the failed one too.
    #[reduce(append)]
    trace: Vec<TraceRow>,
    /// The number of the last decision.
    step: u64,
    /// What the model wants done next.
    decided: Option<Decision>,
    /// What the run has used of the model.
    spent: Option<Spent>,
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

/// A question that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exchange {
    user: u64,
    question: String,
    answer: String,
}

/// A call that the model wants made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Decision {
    step: u64,
    call: ToolCall,
}

/// The support agent: its allowlist is its three tools and `allow`, without `deny`. It is asked [`Case`]s. With JSON
/// actions the model is told what this customer was answered on the thread before.
///
/// # Errors
/// [`Error::Gateway`] if a rule is faulty.
///
/// ```
/// use paraph_agents::{Case, Rehearsal, Stores, Terms, support};
/// use paraph_gateway::Dialect;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), paraph_agents::Error> {
/// let agent = support(&Stores::in_memory(), Dialect::Strict, &[], &[])?;
/// let case = Case { user: 42, question: "Can I get a refund now?".into() };
/// let terms = Terms::new(Arc::new(Rehearsal::Support), "case-7");
/// let result = agent.start(&case, &terms).await?.result().await;
/// assert!(result.answer().unwrap().contains("49.00 USD"));
/// assert_eq!(result.trace().len(), 3);
/// # Ok(())
/// # }
/// ```
pub fn support(
    stores: &Stores,
    dialect: Dialect,
    allow: &[String],
    deny: &[String],
) -> Result<Agent, Error> {
    with_tools(stores, dialect, None, (allow, deny))
}

/// The [`support`] agent with a tool that gives money back, about which a person is asked each time: `allow` does not
/// change that, `deny` takes it away. On what its runs wait for, people decide at a desk
/// ([`Approvals`](paraph_gateway::Approvals)) at the same store.
///
/// # Errors
/// As [`support`].
pub fn support_that_refunds(
    stores: &Stores,
    dialect: Dialect,
    refund: DynTool,
    allow: &[String],
    deny: &[String],
) -> Result<Agent, Error> {
    with_tools(stores, dialect, Some(refund), (allow, deny))
}

fn with_tools(
    stores: &Stores,
    dialect: Dialect,
    refund: Option<DynTool>,
    rules: (&[String], &[String]),
) -> Result<Agent, Error> {
    let gateway = tools::gateway(stores.gateway(), refund, rules)?;
    let agent = match dialect {
        Dialect::Strict => Agent::new(NAME.to_owned(), graph(gateway.clone())?, gateway),
        Dialect::Native => react(NAME, prompt::NATIVE_INSTRUCTIONS, gateway)?,
    };
    Ok(agent.told(goal_of).on(stores.threads.clone()))
}

fn goal_of(case: &Case) -> Result<String, Error> {
    Ok(prompt::goal(&Case {
        question: check_task(&case.question)?.to_owned(),
        user: case.user,
    }))
}

fn graph(gateway: Gateway) -> Result<Graph<SupportState>, paraph_graph::Error> {
    Graph::<SupportState>::new(NAME)
        .node(THINK, with(gateway, think))
        .node(ACT, act)
        .start(THINK)
        .branch(THINK, next, [ACT, END])
        .branch(ACT, next, [THINK, END])
        .label(THINK, ACT, "calls a tool")
        .label(THINK, END, "answers or stops")
        .label(ACT, THINK, "has a result")
        .label(ACT, END, "stops")
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

impl Application for SupportState {
    const DIALECT: Dialect = Dialect::Strict;

    /// What an earlier run found belongs to its own question.
    fn fresh(goal: &str) -> Update<SupportState> {
        SupportState::update()
            .goal(goal)
            .replace_history(Vec::new())
            .replace_trace(Vec::new())
            .step(0)
            .decided(None)
            .spent(None)
            .replace_ending(None)
    }

    fn route(&self) -> Route {
        let (from, cause) = match (&self.ending, &self.decided) {
            (None, Some(_)) => (THINK, "the model wants a tool".to_owned()),
            (None, None) => (ACT, "the model has something new to read".to_owned()),
            (Some(ending), None) if ending.stop == Stop::Success => {
                (THINK, "the model has its answer".to_owned())
            }
            (Some(ending), None) => (THINK, format!("stopped: {}", ending.stop)),
            (Some(ending), Some(_)) => (ACT, format!("stopped: {}", ending.stop)),
        };
        Route {
            from: from.into(),
            cause,
        }
    }

    fn task(&self) -> String {
        self.goal.clone()
    }

    fn spent(&self) -> Option<&Spent> {
        self.spent.as_ref()
    }

    fn ending(&self) -> Option<Ending> {
        self.ending.clone()
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
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking,
        Err(early) => return Ok(SupportState::update().ending(Some(early.ending()?))),
    };
    let decided = decide(gateway, state, &asking, ctx).await;
    let update = SupportState::update().spent(Some(asking.spent(ctx)));
    let ending = match decided {
        Ok(decision) => return Ok(update.step(decision.step).decided(Some(decision))),
        Err(early) => early.ending()?,
    };
    Ok(update
        .exchanges(exchange(state, &ending))
        .ending(Some(ending)))
}

/// What is remembered on the thread of a run that ends like this.
fn exchange(state: &SupportState, ending: &Ending) -> Option<Exchange> {
    let case = read_goal(&state.goal)?;
    Some(Exchange {
        user: case.user,
        question: case.question,
        answer: ending.answer.clone()?,
    })
}

async fn decide(
    gateway: &Gateway,
    state: &SupportState,
    run: &Asking<'_>,
    ctx: &Ctx,
) -> Result<Decision, Early> {
    let begun = run.begin_step(ctx).await?;
    let step = begun.0;
    let payload = prompt::payload(state, gateway.catalogue())
        .map_err(|error| Stop::Internal(error.to_string()))?;
    let request = ChatRequest {
        response_format: ResponseFormat::JsonObject,
        ..ChatRequest::new([
            Message::system(prompt::INSTRUCTIONS),
            Message::human(payload),
        ])
    };
    let reply = run.ask(ctx, begun, request).await?;
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
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking,
        Err(early) => return Ok(SupportState::update().ending(Some(early.ending()?))),
    };
    let calling = asking.calling(step);
    let id = format!("step-{step}");
    let injections = Injections::new().with(ctx);
    let (row, seen) = match calling.make(ctx, (&call, &id), injections).await? {
        Called::Seen(row, seen) => (row, Ok(seen)),
        Called::Stopped(row, stop) => (row, Err(stop)),
    };
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
