//! What the model of an agent with JSON actions reads: the file's instructions with the protocol, and one payload per
//! decision. The whole history stays in the state; a payload shows the last steps.

use super::{ActionsState, Turn};
use paraph_gateway::{Bounds, Json, ToolSpec};
use serde::Serialize;
use serde_json::Value;

/// How many finished steps a payload shows.
const SHOWN_STEPS: usize = 12;
/// How many earlier tasks of the thread.
const SHOWN_EXCHANGES: usize = 5;
/// How much of each answer to them, in characters.
const SHOWN_ANSWER: usize = 2_000;

/// The protocol, in words.
const PROTOCOL: &str = r#"How you act: every reply of yours is one JSON object and nothing else, no Markdown and no words around it. To use a tool, write
{"kind":"tool","name":"<its name>","args":{<its arguments>}}
To finish, write
{"kind":"final","answer":"<your answer>"}
Other keys are not allowed. You get one JSON object each time: `task` is what to do, `tools` are the tools there are with the JSON Schema of their arguments, `history` is what you asked for and what came of it, and `earlier`, where it is there, is what was asked and answered before. Ask for one tool at a time, never twice for the same, and rely on what the tools returned."#;

/// The file's instructions with the protocol behind them.
pub(super) fn instructions(own: &str) -> String {
    format!("{}\n\n{PROTOCOL}", own.trim_end())
}

#[derive(Serialize)]
struct Payload<'a> {
    task: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<Earlier<'a>>,
    steps_done: usize,
    history: Vec<Done<'a>>,
    tools: Vec<Offer<'a>>,
}

#[derive(Serialize)]
struct Earlier<'a> {
    task: &'a str,
    answer: String,
}

#[derive(Serialize)]
struct Done<'a> {
    tool: &'a str,
    args: &'a Json,
    result: Json,
}

#[derive(Serialize)]
struct Offer<'a> {
    name: &'a str,
    description: &'a str,
    args: &'a Value,
}

/// The payload of the next decision.
pub(super) fn payload(
    state: &ActionsState,
    tools: &[ToolSpec],
) -> Result<String, serde_json::Error> {
    let hidden = state.history.len().saturating_sub(SHOWN_STEPS);
    let asked = state.exchanges.len().saturating_sub(SHOWN_EXCHANGES);
    serde_json::to_string(&Payload {
        task: &state.task,
        earlier: state
            .exchanges
            .iter()
            .skip(asked)
            .map(|had| Earlier {
                task: &had.task,
                answer: had.answer.chars().take(SHOWN_ANSWER).collect(),
            })
            .collect(),
        steps_done: state.history.len(),
        history: state
            .history
            .iter()
            .skip(hidden)
            .map(|turn| Done {
                tool: turn.call.name(),
                args: turn.call.args(),
                result: observation(turn),
            })
            .collect(),
        tools: tools
            .iter()
            .map(|tool| Offer {
                name: &tool.name,
                description: &tool.about,
                args: &tool.schema,
            })
            .collect(),
    })
}

/// What a step gave, as JSON with every digit.
pub(super) fn observation(turn: &Turn) -> Json {
    // The gateway wrote this text; bounds on size are for what comes from outside.
    let bounds = Bounds {
        bytes: usize::MAX,
        depth: Bounds::MAX_DEPTH,
        digits: usize::MAX,
    };
    Json::read(&turn.observation, bounds).unwrap_or_else(|_| Json::empty_object())
}
