//! The loop with a provider's tool calls: ask the model, make all its calls at once, ask again.
//!
//! It is a graph of the tool node and its branch, as anybody can build one, with what makes it an agent:
//! a model within a budget, a trace, and one reason for which a run ends.

use crate::asking::{Asking, Early};
use crate::calling::Calling;
use crate::conversation::{Conversation, HasMessages, add_messages};
use crate::declared::{ContextSpec, Output, Sent, Summary, beside, within};
use crate::ending::{Ending, keep_first};
use crate::outcome::{RunResult, TraceRow, of_messages};
use crate::run::{Application, Route};
use crate::spent::Spent;
use crate::tool_node::{Desk, ToolNode};
use crate::tools_condition::{TOOLS, tools_condition};
use crate::{Agent, AgentEventData, Error};
use futures::future::BoxFuture;
use paraph_gateway::{Dialect, Gateway, LlmError, Stop};
use paraph_graph::{Ctx, END, Goto, Graph, NodeError, State, Update, with};
use paraph_models::{Body, ChatRequest, Estimate, Message, Messages, ToolSpec};
use std::sync::Arc;

const MODEL: &str = "model";

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
    /// What stands for the messages that the model is not shown any more.
    summary: Option<Summary>,
    /// How often an answer of the run did not have its form.
    misses: u32,
    /// Why the run ends.
    #[reduce(keep_first)]
    ending: Option<Ending>,
    /// Whether something is kept back for a last answer.
    kept_back: bool,
    /// What the model had to say when the budget was used up.
    last_answer: Option<String>,
}

/// The name under which an agent itself speaks in its conversation. A person's messages have none.
const CHECKER: &str = "checker";

/// An agent that calls tools the provider's way: with these instructions and the tools of this gateway.
///
/// # Errors
/// [`Error::Graph`], which would be a mistake of this crate.
///
/// ```
/// use paraph_agents::{Terms, react};
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
/// let agent = react("sums", "Be brief.", gateway)?;
/// let terms = Terms::new(Arc::new(model), "homework");
/// let result = agent.start("How much is 2 and 3?", &terms).await?.result().await;
/// assert_eq!(result.answer(), Some("It is 5."));
/// # Ok(())
/// # }
/// ```
pub fn react(
    name: impl Into<String>,
    instructions: impl Into<String>,
    gateway: Gateway,
) -> Result<Agent, Error> {
    speaking(name.into(), Speech::of(instructions.into()), gateway)
}

/// An agent that asks its model like this.
pub(crate) fn speaking(name: String, speech: Speech, gateway: Gateway) -> Result<Agent, Error> {
    let graph = graph(&name, speech, &gateway)?;
    Ok(Agent::new(name, graph, gateway))
}

fn graph(name: &str, speech: Speech, gateway: &Gateway) -> Result<Graph<ReactState>, Error> {
    let tools = gateway.catalogue().iter().map(|tool| ToolSpec {
        name: tool.name.clone(),
        description: tool.about.clone(),
        schema: tool.schema.clone(),
    });
    let speaker = Speaker {
        speech,
        tools: tools.collect(),
    };
    // A model whose answer does not have its form is asked again.
    let after = match &speaker.speech.output {
        Some(_) => vec![MODEL, TOOLS.name(), END],
        None => vec![TOOLS.name(), END],
    };
    let mut graph = Graph::<ReactState>::new(name.to_owned());
    if speaker.speech.output.is_some() {
        graph = graph.label(MODEL, MODEL, "answer has another form");
    }
    let graph = graph
        .node(MODEL, with(speaker, speak))
        .each(TOOLS, ToolNode::of_agent(Tools))
        .start(MODEL)
        .branch(MODEL, after_model, after)
        .branch(TOOLS, after_calls, [MODEL, END])
        .label(MODEL, TOOLS.name(), "calls tools")
        .label(MODEL, END, "answers or stops")
        .label(TOOLS, MODEL, "has results")
        .label(TOOLS, END, "stops")
        .build()?;
    Ok(graph)
}

/// How an agent asks its model.
#[derive(Clone, Debug)]
pub(crate) struct Speech {
    /// The instructions.
    pub(crate) instructions: String,
    /// 0 for the likeliest answer; nothing leaves it to the provider.
    pub(crate) temperature: Option<f64>,
    /// The longest answer.
    pub(crate) max_answer_tokens: Option<u32>,
    /// How much of the conversation the model is shown.
    pub(crate) context: Option<ContextSpec>,
    /// The form of its answer.
    pub(crate) output: Option<Arc<Output>>,
}

impl Speech {
    fn of(instructions: String) -> Speech {
        Speech {
            instructions,
            temperature: Some(0.0),
            max_answer_tokens: None,
            context: None,
            output: None,
        }
    }
}

/// What an answer without calls leads to.
enum Finish {
    /// It has calls.
    NotYet,
    Ended(Ending),
    /// It does not have its form; this is what the model is told.
    Again(Message),
}

impl Speech {
    /// The instructions, with what is not shown of the conversation in short, and the form of the answer.
    fn instructions(&self, summary: Option<&Summary>) -> String {
        let before = summary.map(|summary| {
            let text = &summary.text;
            format!("\n\nBefore the messages that you see, this happened, in short:\n{text}")
        });
        let form = self.output.as_ref().map(|output| output.instructions());
        let (before, form) = (before.unwrap_or_default(), form.unwrap_or_default());
        format!("{}{before}{form}", self.instructions)
    }

    fn finish(&self, answer: &str, misses: u32) -> Finish {
        let Some(output) = &self.output else {
            return Finish::Ended(Ending::answered(answer.trim()));
        };
        match output.read(answer) {
            Ok(json) => Finish::Ended(Ending::answered(json)),
            Err(why) if misses < output.repairs => Finish::Again(Message {
                name: Some(CHECKER.to_owned()),
                ..Message::human(Output::complaint(&why))
            }),
            Err(why) => Finish::Ended(Ending {
                detail: Some(format!("the answer does not fit its schema: {why}")),
                ..Ending::from(Stop::LlmError(LlmError::Decode))
            }),
        }
    }
}

/// What the model node needs beside the run's context.
struct Speaker {
    speech: Speech,
    tools: Vec<ToolSpec>,
}

impl Speaker {
    /// What these limits leave for the conversation: instructions and tools are sent with every request.
    fn room(
        &self,
        limits: &ContextSpec,
        summary: Option<&Summary>,
    ) -> Result<ContextSpec, Box<Ending>> {
        let fixed = ChatRequest {
            tools: self.tools.clone(),
            ..ChatRequest::new([Message::system(self.speech.instructions(summary))])
        };
        beside(limits, Estimate::of(&fixed).total()).map_err(|detail| {
            Box::new(Ending {
                detail: Some(detail),
                ..Ending::from(Stop::LlmError(LlmError::ContextOverflow))
            })
        })
    }
}

impl HasMessages for ReactState {
    fn conversation(&self) -> &Conversation {
        &self.messages
    }

    fn say(update: Update<ReactState>, messages: Vec<Message>) -> Update<ReactState> {
        update.messages(messages)
    }
}

impl Application for ReactState {
    const DIALECT: Dialect = Dialect::Native;

    /// The conversation goes on.
    fn fresh(task: &str) -> Update<ReactState> {
        ReactState::update()
            .messages([Message::human(task)])
            .replace_trace(Vec::new())
            .step(0)
            .misses(0)
            .spent(None)
            .kept_back(false)
            .last_answer(None)
            .replace_ending(None)
    }

    fn route(&self) -> Route {
        let last = self.messages.last();
        let asked_again = last.is_some_and(|last| last.name.as_deref() == Some(CHECKER));
        // A model that gave no answer left the conversation as it was.
        let by_model = self.ending.as_ref().is_some_and(|ending| {
            matches!(
                ending.stop,
                Stop::LlmTimeout | Stop::LlmEmpty | Stop::LlmError(_) | Stop::MaxSteps
            )
        });
        let called = last.is_some_and(|last| !last.is_ai()) && !asked_again && !by_model;
        let from = if called { TOOLS.name() } else { MODEL };
        let cause = match &self.ending {
            Some(ending) if ending.stop == Stop::Success => "the model has its answer".to_owned(),
            Some(ending) if called && self.may_answer() => {
                format!("stopped: {}; a last answer is left", ending.stop)
            }
            Some(ending) => format!("stopped: {}", ending.stop),
            None if asked_again => "the answer does not have its form".to_owned(),
            None if called => "the model has something new to read".to_owned(),
            None => "the model wants tools".to_owned(),
        };
        Route {
            from: from.into(),
            cause,
        }
    }

    fn task(&self) -> String {
        let asked = self
            .messages
            .iter()
            .rfind(|m| m.body == Body::Human && m.name.is_none());
        asked.map(|m| m.text().into_owned()).unwrap_or_default()
    }

    fn spent(&self) -> Option<&Spent> {
        self.spent.as_ref()
    }

    fn ending(&self) -> Option<Ending> {
        let mut ending = self.ending.clone()?;
        if ending.answer.is_none() {
            ending.answer.clone_from(&self.last_answer);
        }
        Some(ending)
    }

    fn result(state: Option<&ReactState>, ending: Ending) -> RunResult {
        match state {
            Some(state) => of_messages(ending, state.trace.clone(), state.messages.0.clone()),
            None => of_messages(ending, Vec::new(), Messages::new()),
        }
    }
}

fn after_model(state: &ReactState) -> Goto {
    match state.ending {
        Some(_) => END.into(),
        None if state
            .messages
            .last()
            .is_some_and(|last| last.body == Body::Human) =>
        {
            MODEL.into()
        }
        None => tools_condition(state),
    }
}

fn after_calls(state: &ReactState) -> &'static str {
    match state.ending {
        Some(_) if !state.may_answer() => END,
        _ => MODEL,
    }
}

impl ReactState {
    /// Whether the run is over but for a last answer.
    fn may_answer(&self) -> bool {
        self.kept_back && self.ending.as_ref().is_some_and(last_answer::may_follow)
    }
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
    let kept_back = asking.run.reserve.is_kept();
    let ended = match &state.ending {
        Some(ending) => Err(ending.clone()),
        None => match answer(speaker, state, &asking, ctx).await {
            Ok(update) => Ok(update),
            Err(early) => Err(early.ending()?),
        },
    };
    let update = match ended {
        Ok(update) => update,
        Err(ending) => {
            let last = match last_answer::may_follow(&ending) {
                true => last_answer::ask(speaker, state, (&asking, ctx), &ending).await?,
                false => None,
            };
            ReactState::update().ending(Some(ending)).last_answer(last)
        }
    };
    let update = update.kept_back(kept_back);
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
    let speech = &speaker.speech;
    let sound = run.sound(ctx, step, &state.messages).await?;
    let sound: Vec<Message> = sound.into_iter().map(shown).collect();
    let sent = match &speech.context {
        Some(limits) => {
            let room = speaker.room(limits, state.summary.as_ref());
            let limits = room.map_err(|ending| *ending)?;
            within(sound, &limits, state.summary.as_ref(), (run, ctx, step)).await?
        }
        None => Sent {
            messages: sound,
            summary: None,
        },
    };
    let instructions = speech.instructions(sent.summary.as_ref());
    let request = ChatRequest {
        tools: speaker.tools.clone(),
        temperature: speech.temperature,
        max_tokens: speech.max_answer_tokens,
        ..ChatRequest::new([vec![Message::system(instructions)], sent.messages].concat())
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
    let said = match is_final {
        true => speech.finish(&message.text(), state.misses),
        false => Finish::NotYet,
    };
    let slots = run.session.budget().left().tool_calls;
    let mut update = ReactState::update().step(step).slots(slots);
    if sent.summary.is_some() && sent.summary != state.summary {
        update = update.summary(sent.summary);
    }
    Ok(match said {
        Finish::NotYet => update.messages([message]),
        Finish::Ended(ending) => update.messages([message]).ending(Some(ending)),
        Finish::Again(complaint) => update
            .messages([message, complaint])
            .misses(state.misses.saturating_add(1)),
    })
}

/// A message as the model may see it: an artifact is for the program.
fn shown(mut message: Message) -> Message {
    if let Body::Tool(tool) = &mut message.body {
        tool.artifact = None;
    }
    message
}

/// The calls of this agent: in the session of its run, with a row for each, and an ending for the one
/// reason of a run.
struct Tools;

impl Desk<ReactState> for Tools {
    fn calling<'a>(
        &'a self,
        state: &'a ReactState,
        ctx: &'a Ctx,
    ) -> BoxFuture<'a, Result<Calling<'a>, Early>> {
        Box::pin(async move {
            let run = Asking::of(ctx, state.spent.as_ref(), state.step).await?;
            Ok(run.calling(state.step))
        })
    }

    fn slots(&self, state: &ReactState) -> u64 {
        state.slots
    }

    fn takes_commands(&self) -> bool {
        false
    }

    fn settle(
        &self,
        update: Update<ReactState>,
        row: Option<TraceRow>,
        stop: Option<Stop>,
    ) -> Result<Update<ReactState>, NodeError> {
        let update = update.trace(row);
        Ok(match stop {
            None => update,
            Some(stop) => update.ending(Some(stop.into())),
        })
    }
}

mod last_answer;
#[cfg(test)]
mod tests;
