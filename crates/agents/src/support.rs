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

use crate::asking::{Asking, Early};
use crate::calling::Called;
use crate::ending::{Ending, keep_first};
use crate::outcome::{RunResult, TraceRow, of_actions};
use crate::run::{AgentRun, Application, Begin, Beginning, Route, outcome_of, start};
use crate::spent::Spent;
use crate::terms::check_task;
use crate::{Error, React, Stores, Terms};
use paraph_gateway::{Dialect, Gateway, Injections, Limits, Step, Stop, ToolCall, parse_action};
use paraph_graph::{
    CheckpointId, Ctx, Drawing, END, Graph, NodeError, RunId, State, Store, Update, with,
};
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
    /// An agent whose allowlist is its three tools and `allow`, without `deny`. What it does dies with
    /// the process; see [`Support::on`].
    ///
    /// # Errors
    /// [`Error::Gateway`] if a rule is faulty.
    pub fn new(allow: &[String], deny: &[String]) -> Result<Support, Error> {
        Support::on(&Stores::in_memory(), allow, deny)
    }

    /// The same on stores that may outlive the process.
    ///
    /// # Errors
    /// As [`Support::new`].
    pub fn on(stores: &Stores, allow: &[String], deny: &[String]) -> Result<Support, Error> {
        let gateway = tools::gateway(stores.records.clone(), allow, deny)?;
        let react = React::new(NAME, prompt::NATIVE_INSTRUCTIONS, gateway.clone())?;
        Ok(Support {
            graph: graph(gateway.clone())?,
            react: react.on(stores.threads.clone()),
            gateway,
            store: stores.threads.clone(),
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

    /// Starts a run. It runs while its events are read. On a thread on which this customer was answered
    /// before, the model is told what was asked and answered.
    ///
    /// # Errors
    /// [`Error::EmptyTask`], [`Error::LongTask`].
    pub async fn start(&self, case: &Case, terms: &Terms) -> Result<AgentRun, Error> {
        let goal = goal_of(case)?;
        if terms.dialect == Dialect::Native {
            return self.react.start(&goal, terms).await;
        }
        let begin = Begin::input(terms.run, fresh(&goal), goal);
        start::<Support>(self.beginning(), begin, terms).await
    }

    /// Goes on with a run that was cut off or cancelled, with what it had finished, used and recorded.
    /// The terms are those it was started with.
    ///
    /// # Errors
    /// [`Error::NothingLeft`] if the thread has nothing that is due.
    pub async fn resume(&self, run: RunId, terms: &Terms) -> Result<AgentRun, Error> {
        match terms.dialect {
            Dialect::Native => self.react.resume(run, terms).await,
            Dialect::Strict => start::<Support>(self.beginning(), Begin::again(run), terms).await,
        }
    }

    /// Starts a run at an older checkpoint of the thread, on a new branch: with what was due there, or
    /// with another case. What came after that checkpoint stays as it is.
    ///
    /// # Errors
    /// As [`Support::start`] and [`Support::resume`]; [`Error::Graph`] for an unknown checkpoint.
    pub async fn replay(
        &self,
        at: CheckpointId,
        case: Option<&Case>,
        terms: &Terms,
    ) -> Result<AgentRun, Error> {
        let goal = case.map(goal_of).transpose()?;
        if terms.dialect == Dialect::Native {
            return self.react.replay(at, goal.as_deref(), terms).await;
        }
        let begin = Begin::at(terms.run, at, goal.map(|goal| (fresh(&goal), goal)));
        start::<Support>(self.beginning(), begin, terms).await
    }

    /// The result of a run that is over; nothing if the thread has none of this run that is.
    ///
    /// # Errors
    /// [`Error::Graph`] if the store cannot be read.
    pub async fn result(
        &self,
        run: RunId,
        thread: &str,
        dialect: Dialect,
    ) -> Result<Option<RunResult>, Error> {
        match dialect {
            Dialect::Native => self.react.result(run, thread).await,
            Dialect::Strict => {
                let thread = self.graph.thread(&self.store, thread.to_owned());
                outcome_of::<Support>(&thread, run).await
            }
        }
    }

    /// Goes back to a checkpoint of a thread: what runs there next begins on a new branch.
    ///
    /// # Errors
    /// [`Error::Graph`] for an unknown checkpoint, and while a run drives the thread.
    pub async fn fork(
        &self,
        thread: &str,
        dialect: Dialect,
        at: CheckpointId,
    ) -> Result<CheckpointId, Error> {
        match dialect {
            Dialect::Native => self.react.fork(thread, at).await,
            Dialect::Strict => {
                let thread = self.graph.thread(&self.store, thread.to_owned());
                Ok(thread.fork(at).await?)
            }
        }
    }

    fn beginning(&self) -> Beginning<'_, SupportState> {
        Beginning {
            agent: NAME,
            graph: &self.graph,
            store: &self.store,
            gateway: &self.gateway,
        }
    }
}

fn goal_of(case: &Case) -> Result<String, Error> {
    Ok(prompt::goal(&Case {
        question: check_task(&case.question)?.to_owned(),
        user: case.user,
    }))
}

/// A new run on a thread begins anew: what an earlier one found belongs to its own question.
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

    fn task(state: &SupportState) -> String {
        state.goal.clone()
    }

    fn spent(state: &SupportState) -> Option<&Spent> {
        state.spent.as_ref()
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
    let (row, seen) = match calling.make(ctx, &call, Injections::new()).await? {
        Called::Seen(row, seen) => (row, Ok(seen)),
        Called::Stopped(row, stop) => (row, Err(stop)),
        Called::Waits => return Err(NodeError::msg("a tool waits, and nobody can be asked")),
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
