//! What the support agent's model reads: the instructions, and one payload per decision.
//!
//! The whole history stays in the state; a prompt carries a summary and the last steps, so that it does
//! not grow with the run.

use super::{Case, Turn};
use crate::outcome::{ActionEcho, HistoryRow};
use crate::python_json;
use paraph_gateway::{Bounds, Json, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value};

/// How many finished steps a prompt shows in full.
const SHOWN_STEPS: usize = 3;

/// For JSON actions.
pub(super) const INSTRUCTIONS: &str = r#"You decide the next move of a customer support agent. You never act yourself: a program carries out what you ask for and shows you the result.

Reply with exactly one JSON object, without any text around it. It is either a request for a tool,
{"kind":"tool","name":"<one of available_tools>","args":{<its arguments>}}
or, once the facts are there, the answer to the customer,
{"kind":"final","answer":"<one or two plain sentences>"}

- Rely only on what the tools returned; recent_history and state_summary hold it.
- Ask for one tool at a time, the one that settles the most, and never twice with the same arguments.
- Add no further keys, and no Markdown."#;

/// For a provider's tool calls.
pub(super) const NATIVE_INSTRUCTIONS: &str = "You are a customer support agent. Look facts up with \
     the tools before you answer, and rely only on what they return. Answer the customer in one or \
     two plain sentences, without Markdown.";

/// What stands around the question in a task.
const ASKS: &str = " asks: ";
const DUTY: &str = " First check with the tools who the user is, what they pay and what the policy says. \
     Then answer briefly in English, naming the amount in USD and the reason.";

/// The task as the model is given it.
pub(crate) fn goal(case: &Case) -> String {
    format!("User {}{ASKS}{}{DUTY}", case.user, case.question)
}

/// The case that a task was made of, for a model that is a program.
pub(crate) fn read_goal(goal: &str) -> Option<Case> {
    let (user, rest) = goal.strip_prefix("User ")?.split_once(ASKS)?;
    Some(Case {
        user: user.parse().ok()?,
        question: rest.strip_suffix(DUTY)?.to_owned(),
    })
}

#[derive(Serialize)]
struct Payload<'a> {
    goal: &'a str,
    state_summary: Summary<'a>,
    recent_history: Vec<HistoryRow>,
    available_tools: Vec<Offer<'a>>,
}

#[derive(Serialize)]
struct Summary<'a> {
    steps_completed: usize,
    tools_used: Vec<&'a str>,
    last_observation: Option<Json>,
}

/// A tool as the payload offers it: each argument with its type alone.
#[derive(Serialize)]
struct Offer<'a> {
    name: &'a str,
    description: &'a str,
    args: Map<String, Value>,
}

/// The payload of the next decision.
pub(super) fn payload(
    goal: &str,
    history: &[Turn],
    tools: &[ToolSpec],
) -> Result<String, serde_json::Error> {
    let recent = history.len().saturating_sub(SHOWN_STEPS);
    python_json(&Payload {
        goal,
        state_summary: Summary {
            steps_completed: history.len(),
            tools_used: history.iter().map(|turn| turn.call.name()).collect(),
            last_observation: history.last().map(observation),
        },
        recent_history: history.iter().skip(recent).map(row).collect(),
        available_tools: tools.iter().map(offer).collect(),
    })
}

/// A finished step as results and prompts show it.
pub(super) fn row(turn: &Turn) -> HistoryRow {
    HistoryRow {
        step: turn.step,
        action: ActionEcho {
            kind: "tool",
            name: turn.call.name().to_owned(),
            args: turn.call.args().clone(),
        },
        observation: observation(turn),
    }
}

fn observation(turn: &Turn) -> Json {
    // The gateway wrote this text; a reader's bounds on size are for what comes from outside.
    let bounds = Bounds {
        bytes: usize::MAX,
        depth: Bounds::MAX_DEPTH,
        digits: usize::MAX,
    };
    Json::read(&turn.observation, bounds).unwrap_or_else(|_| Json::empty_object())
}

fn offer(tool: &ToolSpec) -> Offer<'_> {
    let properties = tool.schema.get("properties").and_then(Value::as_object);
    let args = properties.into_iter().flatten().map(|(name, schema)| {
        let kind = schema.get("type").cloned().unwrap_or_else(|| "any".into());
        (name.clone(), kind)
    });
    Offer {
        name: &tool.name,
        description: &tool.about,
        args: args.collect(),
    }
}
