//! An agent of a file that speaks in JSON actions: one decision, one call, until there is an answer or a reason to
//! stop. The first failed call ends the run.
//!
//! The loop is the support agent's, over any tools; what its model reads is in `payload`. Only `build` makes it.

mod payload;

use crate::asking::{Asking, Early};
use crate::calling::Called;
use crate::ending::{Ending, keep_first};
use crate::outcome::{ActionEcho, HistoryRow, RunResult, TraceRow, of_actions};
use crate::react::Speech;
use crate::run::{Application, Route};
use crate::spent::Spent;
use crate::{Agent, AgentEventData, Error};
use paraph_gateway::{Dialect, Gateway, Injections, Step, Stop, ToolCall, parse_action};
use paraph_graph::{Ctx, END, Graph, State, Update, with};
use paraph_models::{ChatRequest, Message, ResponseFormat};
use payload::{instructions, observation, payload};
use serde::{Deserialize, Serialize};

const DECIDE: &str = "decide";
pub(super) const ACT: &str = "act";

/// The state of a run with JSON actions.
#[derive(State, Clone, Default)]
pub(crate) struct ActionsState {
    /// What was asked on the thread before, and answered.
    #[reduce(append)]
    exchanges: Vec<Exchange>,
    /// What is to be done.
    task: String,
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

/// A task that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Exchange {
    task: String,
    answer: String,
}

/// A finished step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Turn {
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

/// What the deciding node needs beside the run's context.
struct Decider {
    speech: Speech,
    gateway: Gateway,
}

/// An agent that speaks in JSON actions.
pub(super) fn actions(name: String, speech: Speech, gateway: Gateway) -> Result<Agent, Error> {
    let decider = Decider {
        speech: Speech {
            instructions: instructions(&speech.instructions),
            ..speech
        },
        gateway: gateway.clone(),
    };
    let graph = Graph::<ActionsState>::new(name.clone())
        .node(DECIDE, with(decider, decide))
        .node(ACT, act)
        .start(DECIDE)
        .branch(DECIDE, next, [ACT, END])
        .branch(ACT, next, [DECIDE, END])
        .label(DECIDE, ACT, "calls a tool")
        .label(DECIDE, END, "answers or stops")
        .label(ACT, DECIDE, "has a result")
        .label(ACT, END, "stops")
        .build()?;
    Ok(Agent::new(name, graph, gateway))
}

fn next(state: &ActionsState) -> &'static str {
    match (&state.ending, &state.decided) {
        (Some(_), _) => END,
        (None, Some(_)) => ACT,
        (None, None) => DECIDE,
    }
}

impl Application for ActionsState {
    const DIALECT: Dialect = Dialect::Strict;

    /// What was answered on the thread stays.
    fn fresh(task: &str) -> Update<ActionsState> {
        ActionsState::update()
            .task(task)
            .replace_history(Vec::new())
            .replace_trace(Vec::new())
            .step(0)
            .decided(None)
            .spent(None)
            .replace_ending(None)
    }

    fn route(&self) -> Route {
        // A call that ended the run stays in the state: it says at which node that was.
        let stopped = |ending: &Ending| format!("stopped: {}", ending.stop);
        let (from, cause) = match (&self.ending, &self.decided) {
            (None, Some(_)) => (DECIDE, "the model wants a tool".to_owned()),
            (None, None) => (ACT, "the model has something new to read".to_owned()),
            (Some(ending), Some(_)) => (ACT, stopped(ending)),
            (Some(ending), None) if ending.stop == Stop::Success => {
                (DECIDE, "the model has its answer".to_owned())
            }
            (Some(ending), None) => (DECIDE, stopped(ending)),
        };
        Route {
            from: from.into(),
            cause,
        }
    }

    fn task(&self) -> String {
        self.task.clone()
    }

    fn spent(&self) -> Option<&Spent> {
        self.spent.as_ref()
    }

    fn ending(&self) -> Option<Ending> {
        self.ending.clone()
    }

    fn result(state: Option<&ActionsState>, ending: Ending) -> RunResult {
        let Some(state) = state else {
            return of_actions(ending, Vec::new(), Vec::new());
        };
        let history = state.history.iter().map(|turn| HistoryRow {
            step: turn.step,
            action: ActionEcho {
                kind: "tool",
                name: turn.call.name().to_owned(),
                args: turn.call.args().clone(),
            },
            observation: observation(turn),
        });
        of_actions(ending, state.trace.clone(), history.collect())
    }
}

/// Asks the model for its next action.
async fn decide(
    decider: &Decider,
    state: &ActionsState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ActionsState>> {
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking,
        Err(early) => return Ok(ActionsState::update().ending(Some(early.ending()?))),
    };
    let decided = ask(decider, state, &asking, ctx).await;
    let update = ActionsState::update().spent(Some(asking.spent(ctx)));
    let ending = match decided {
        Ok(decision) => return Ok(update.step(decision.step).decided(Some(decision))),
        Err(early) => early.ending()?,
    };
    let exchange = ending.answer.clone().map(|answer| Exchange {
        task: state.task.clone(),
        answer,
    });
    Ok(update.exchanges(exchange).ending(Some(ending)))
}

async fn ask(
    decider: &Decider,
    state: &ActionsState,
    run: &Asking<'_>,
    ctx: &Ctx,
) -> Result<Decision, Early> {
    let begun = run.begin_step(ctx).await?;
    let step = begun.0;
    let payload = payload(state, decider.gateway.catalogue())
        .map_err(|error| Stop::Internal(error.to_string()))?;
    let speech = &decider.speech;
    let request = ChatRequest {
        response_format: ResponseFormat::JsonObject,
        temperature: speech.temperature,
        max_tokens: speech.max_answer_tokens,
        ..ChatRequest::new([
            Message::system(speech.instructions.clone()),
            Message::human(payload),
        ])
    };
    let reply = run.ask(ctx, begun, request).await?;
    let text = reply.message.text();
    if text.is_empty() {
        // A provider's tool call is no action.
        return Err(Stop::LlmEmpty.into());
    }
    let parsed = parse_action(&text);
    let (kind, tools, stop_reason) = match &parsed {
        Ok(Step::Tool(call)) => ("tool", vec![call.name().to_owned()], None),
        Ok(Step::Final(_)) => ("final", Vec::new(), None),
        Err(stop) => ("invalid", Vec::new(), Some(stop.clone())),
    };
    ctx.emit(AgentEventData::Decided {
        step,
        kind: kind.to_owned(),
        tools,
        stop_reason,
    })
    .await?;
    match parsed {
        Ok(Step::Tool(call)) => Ok(Decision { step, call }),
        Ok(Step::Final(answer)) => Err(Ending::answered(answer).into()),
        Err(stop) => Err(Ending::refused(stop, text.as_ref()).into()),
    }
}

/// Hands the model's call to the gateway.
async fn act(state: &ActionsState, ctx: &Ctx) -> paraph_graph::Result<Update<ActionsState>> {
    let Some(Decision { step, call }) = state.decided.clone() else {
        let stop = Stop::Internal("nothing was decided".to_owned());
        return Ok(ActionsState::update().ending(Some(stop.into())));
    };
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking,
        Err(early) => return Ok(ActionsState::update().ending(Some(early.ending()?))),
    };
    let calling = asking.calling(step);
    let id = format!("step-{step}");
    let injections = Injections::new().with(ctx);
    let (row, seen) = match calling.make(ctx, (&call, &id), injections).await? {
        Called::Seen(row, seen) => (row, Ok(seen)),
        Called::Stopped(row, stop) => (row, Err(stop)),
    };
    let update = ActionsState::update().trace([row]);
    Ok(match seen {
        Ok(seen) => update.decided(None).history([Turn {
            step,
            call,
            observation: seen.content,
        }]),
        Err(stop) => update.ending(Some(stop.into())),
    })
}
