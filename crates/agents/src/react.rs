//! The loop with a provider's tool calls: ask the model, make all its calls at once, ask again.
//!
//! The calls of one turn are tasks beside each other: one that waits or fails holds up no other, and the
//! results come in the order of the calls. What a call does wrong the model reads; budget and loops end the run.

use crate::asking::{Asking, Early};
use crate::conversation::{Conversation, add_messages};
use crate::ending::{Ending, keep_first};
use crate::outcome::{RunResult, TraceRow, of_messages};
use crate::run::{AgentRun, Application, Begin, Beginning, Route, outcome_of, start};
use crate::spent::Spent;
use crate::terms::check_task;
use crate::{AgentEventData, Error, Terms};
use paraph_gateway::{Dialect, Gateway, Stop, ToolCall};
use paraph_graph::{
    CheckpointId, Ctx, Drawing, END, Each, Goto, Graph, MemoryStore, RunId, State, Store, Update,
    with,
};
use paraph_models::{Body, ChatRequest, Message, Messages, ToolSpec, repair};

const MODEL: &str = "model";
const CALL: Each<usize> = Each::new("call");

/// The state of a run with messages.
#[derive(State, Clone, Default)]
pub(crate) struct ReactState {
    /// The conversation. The instructions are not part of it.
    #[reduce(add_messages, list)]
    messages: Conversation,
    /// All tool calls, the failed ones too.
    #[reduce(append)]
    trace: Vec<TraceRow>,
    /// The decision that is being carried out.
    step: u64,
    /// How many of its calls the budget has room for: the first ones, in every run alike, however the
    /// tasks are scheduled.
    slots: u64,
    /// What the run has used of the model.
    spent: Option<Spent>,
    /// Why the run ends.
    #[reduce(keep_first)]
    ending: Option<Ending>,
}

/// An agent that calls tools the provider's way.
///
/// ```
/// use paraph_agents::{React, Terms};
/// use paraph_gateway::{Gateway, MemoryStore, Policy};
/// use paraph_models::ScriptedModel;
/// use std::sync::Arc;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Sum { terms: Vec<i64> }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = Gateway::builder(MemoryStore::shared())
///     .read("add", "Adds whole numbers", async |sum: Sum| Ok(sum.terms.iter().sum::<i64>()))
///     .policy(Policy::new().allow(["add"]))
///     .build()?;
/// let script = r#"{"tool_calls":[{"name":"add","arguments":{"terms":[2,3]}}]}
/// {"content":"It is 5."}"#;
/// let model = ScriptedModel::parse(script, "sums.jsonl")?;
/// let agent = React::new("sums", "Be brief.", gateway)?;
/// let terms = Terms::new(Arc::new(model), "homework");
/// let result = agent.start("How much is 2 and 3?", &terms).await?.result().await;
/// assert_eq!(result.answer(), Some("It is 5."));
/// # Ok(())
/// # }
/// ```
pub struct React {
    name: String,
    gateway: Gateway,
    graph: Graph<ReactState>,
    store: Store,
}

/// What the model node needs beside the run's context.
struct Speaker {
    instructions: String,
    tools: Vec<ToolSpec>,
}

impl React {
    /// An agent with these instructions and the tools of this gateway.
    ///
    /// # Errors
    /// [`Error::Graph`], which would be a mistake of this crate.
    pub fn new(
        name: impl Into<String>,
        instructions: impl Into<String>,
        gateway: Gateway,
    ) -> Result<React, Error> {
        let name = name.into();
        let tools = gateway.catalogue().iter().map(|tool| ToolSpec {
            name: tool.name.clone(),
            description: tool.about.clone(),
            schema: tool.schema.clone(),
        });
        let speaker = Speaker {
            instructions: instructions.into(),
            tools: tools.collect(),
        };
        let graph = Graph::<ReactState>::new(name.clone())
            .node(MODEL, with(speaker, speak))
            .each(CALL, make_call)
            .start(MODEL)
            .branch(MODEL, after_model, [CALL.name(), END])
            .branch(CALL, after_calls, [MODEL, END])
            .build()?;
        Ok(React {
            name,
            gateway,
            graph,
            store: MemoryStore::shared(),
        })
    }

    /// The same on a store that may outlive the process. (The gateway brings its own.)
    #[must_use]
    pub fn on(self, store: Store) -> React {
        React { store, ..self }
    }

    /// The graph, to be drawn.
    pub fn drawing(&self) -> Drawing {
        self.graph.drawing()
    }

    /// Starts a run. It runs while its events are read. On a thread that has a conversation the task is
    /// its next message. Whatever the terms say of the dialect, it is the provider's tool calls.
    ///
    /// # Errors
    /// [`Error::EmptyTask`], [`Error::LongTask`].
    pub async fn start(&self, task: &str, terms: &Terms) -> Result<AgentRun, Error> {
        let task = check_task(task)?;
        let begin = Begin::input(terms.run, fresh(task), task.to_owned());
        self.begin(begin, terms).await
    }

    /// Goes on with a run that was cut off or cancelled, with what it had finished, used and recorded.
    /// The terms are those it was started with.
    ///
    /// # Errors
    /// [`Error::NothingLeft`] if the thread has nothing that is due.
    pub async fn resume(&self, run: RunId, terms: &Terms) -> Result<AgentRun, Error> {
        self.begin(Begin::again(run), terms).await
    }

    /// Starts a run at an older checkpoint of the thread, on a new branch: with what was due there, or
    /// with a message that is put to the conversation as it was then.
    ///
    /// # Errors
    /// As [`React::start`] and [`React::resume`]; [`Error::Graph`] for an unknown checkpoint.
    pub async fn replay(
        &self,
        at: CheckpointId,
        task: Option<&str>,
        terms: &Terms,
    ) -> Result<AgentRun, Error> {
        let task = task.map(check_task).transpose()?;
        let input = task.map(|task| (fresh(task), task.to_owned()));
        self.begin(Begin::at(terms.run, at, input), terms).await
    }

    /// The result of a run that is over; nothing if the thread has none of this run that is.
    ///
    /// # Errors
    /// [`Error::Graph`] if the store cannot be read.
    pub async fn result(&self, run: RunId, thread: &str) -> Result<Option<RunResult>, Error> {
        let thread = self.graph.thread(&self.store, thread.to_owned());
        outcome_of::<React>(&thread, run).await
    }

    /// Goes back to a checkpoint of a thread: what runs there next begins on a new branch.
    ///
    /// # Errors
    /// [`Error::Graph`] for an unknown checkpoint, and while a run drives the thread.
    pub async fn fork(&self, thread: &str, at: CheckpointId) -> Result<CheckpointId, Error> {
        let thread = self.graph.thread(&self.store, thread.to_owned());
        Ok(thread.fork(at).await?)
    }

    async fn begin(
        &self,
        begin: Begin<Update<ReactState>>,
        terms: &Terms,
    ) -> Result<AgentRun, Error> {
        let beginning = Beginning {
            agent: &self.name,
            graph: &self.graph,
            store: &self.store,
            gateway: &self.gateway,
            begin,
        };
        let terms = Terms {
            dialect: Dialect::Native,
            ..terms.clone()
        };
        start::<React>(beginning, &terms).await
    }
}

/// The conversation goes on; what belongs to a run begins anew.
fn fresh(task: &str) -> Update<ReactState> {
    ReactState::update()
        .messages([Message::human(task)])
        .replace_trace(Vec::new())
        .step(0)
        .spent(None)
        .replace_ending(None)
}

impl Application for React {
    type State = ReactState;

    fn route(state: &ReactState) -> Route {
        let called = state.messages.last().is_some_and(|last| !last.is_ai());
        let from = if called { CALL.name() } else { MODEL };
        let cause = match &state.ending {
            Some(ending) if ending.stop == Stop::Success => "the model has its answer".to_owned(),
            Some(ending) => format!("stopped: {}", ending.stop),
            None if called => "the model has something new to read".to_owned(),
            None => "the model wants tools".to_owned(),
        };
        Route { from, cause }
    }

    fn task(state: &ReactState) -> String {
        let asked = state.messages.iter().rfind(|m| m.body == Body::Human);
        asked.map(|m| m.text().into_owned()).unwrap_or_default()
    }

    fn spent(state: &ReactState) -> Option<&Spent> {
        state.spent.as_ref()
    }

    fn ending(state: &ReactState) -> Option<Ending> {
        state.ending.clone()
    }

    fn result(state: Option<&ReactState>, ending: Ending) -> RunResult {
        match state {
            Some(state) => of_messages(ending, state.trace.clone(), state.messages.0.clone()),
            None => of_messages(ending, Vec::new(), Messages::new()),
        }
    }
}

/// One task for each call of the model's last message.
fn after_model(state: &ReactState) -> Goto {
    match (&state.ending, open_calls(state)) {
        (Some(_), _) | (None, 0) => END.into(),
        (None, calls) => CALL.send_all(0..calls).into(),
    }
}

fn after_calls(state: &ReactState) -> &'static str {
    match state.ending {
        Some(_) => END,
        None => MODEL,
    }
}

/// A call of the model's, ready for the gateway.
struct OpenCall {
    id: String,
    call: ToolCall,
}

/// The model's last message.
fn asked(state: &ReactState) -> Option<&Message> {
    state.messages.iter().rfind(|message| message.is_ai())
}

/// How many calls it has: also those whose arguments are no JSON, which the gateway counts and answers.
fn open_calls(state: &ReactState) -> usize {
    asked(state).map_or(0, |asked| {
        asked.tool_calls().len() + asked.invalid_tool_calls().len()
    })
}

/// One of them. Each task reads its own call alone: a turn may have many, with long arguments.
fn open_call(state: &ReactState, index: usize) -> Option<OpenCall> {
    let asked = asked(state)?;
    let fine = asked.tool_calls();
    if let Some(call) = fine.get(index) {
        return Some(OpenCall {
            id: call.id.clone(),
            call: ToolCall::native(call.name.clone(), call.args.as_str()),
        });
    }
    let call = asked.invalid_tool_calls().get(index - fine.len())?;
    Some(OpenCall {
        id: call.id.clone(),
        call: ToolCall::native(call.name.clone().unwrap_or_default(), &call.args),
    })
}

/// Asks the model.
async fn speak(
    speaker: &Speaker,
    state: &ReactState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ReactState>> {
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking,
        Err(early) => return Ok(ReactState::update().ending(Some(early.ending()?))),
    };
    let update = match answer(speaker, state, &asking, ctx).await {
        Ok(update) => update,
        Err(early) => ReactState::update().ending(Some(early.ending()?)),
    };
    Ok(update.spent(Some(asking.spent(ctx))))
}

async fn answer(
    speaker: &Speaker,
    state: &ReactState,
    run: &Asking<'_>,
    ctx: &Ctx,
) -> Result<Update<ReactState>, Early> {
    let begun = run.begin_step(ctx).await?;
    let step = begun.0;
    let mut messages = vec![Message::system(speaker.instructions.clone())];
    messages.extend(repair(&state.messages).messages);
    let request = ChatRequest {
        tools: speaker.tools.clone(),
        ..ChatRequest::new(messages)
    };
    let message = run.ask(ctx, begun, request).await?.message;
    let tools: Vec<_> = message
        .tool_calls()
        .iter()
        .map(|call| call.name.clone())
        .collect();
    let is_final = tools.is_empty() && message.invalid_tool_calls().is_empty();
    ctx.emit(AgentEventData::Decided {
        step,
        kind: if is_final { "final" } else { "tool" }.to_owned(),
        tools,
        stop_reason: None,
    })
    .await?;
    let ending = is_final.then(|| Ending::answered(message.text().trim()));
    let slots = run.session.budget().left().tool_calls;
    let update = ReactState::update()
        .step(step)
        .slots(slots)
        .messages([message]);
    Ok(match ending {
        Some(ending) => update.ending(Some(ending)),
        None => update,
    })
}

/// Makes one of the model's calls.
async fn make_call(
    index: usize,
    state: &ReactState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ReactState>> {
    let Some(OpenCall { id, call }) = open_call(state, index) else {
        let stop = Stop::Internal(format!("there is no call number {index}"));
        return Ok(ReactState::update().ending(Some(stop.into())));
    };
    let run = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(run) => run,
        Err(early) => return Ok(ReactState::update().ending(Some(early.ending()?))),
    };
    let (row, seen) = match index as u64 >= state.slots {
        true => {
            let stop = Stop::MaxToolCalls;
            let said = run.called(ctx, (state.step, 0), &call, Some(stop.clone()));
            (said.await?, Err(stop))
        }
        false => run.hand(ctx, state.step, &call).await?,
    };
    let update = ReactState::update().trace([row]);
    Ok(match seen {
        Ok(seen) if seen.ok() => update.messages([Message::tool(id, seen.text())]),
        Ok(seen) => update.messages([Message::tool_error(id, seen.text())]),
        // Every call has a result, in a conversation that ends here too.
        Err(stop) => update
            .messages([Message::tool_error(id, stop.to_string())])
            .ending(Some(stop.into())),
    })
}

#[cfg(test)]
mod tests;
