//! What the support agent's model reads: the instructions, and one payload per decision.
//!
//! The whole history stays in the state; a prompt carries a summary and the last steps, so that it does
//! not grow with the run.

use super::{Exchange, SupportState, Turn};
use crate::Case;
use crate::outcome::{ActionEcho, HistoryRow};
use crate::python_json;
use paraph_gateway::{Bounds, Json, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value};

/// How many finished steps a prompt shows in full.
const SHOWN_STEPS: usize = 3;
/// How many earlier questions of the same customer it shows.
const SHOWN_EXCHANGES: usize = 5;
/// How much of each answer to them, in characters.
const SHOWN_ANSWER: usize = 2_000;

/// For JSON actions.
pub(super) const INSTRUCTIONS: &str = r#"You decide the next move of a customer support agent. You never act yourself: a program carries out what you ask for and shows you the result.

Reply with exactly one JSON object, without any text around it. It is either a request for a tool,
{"kind":"tool","name":"<one of available_tools>","args":{<its arguments>}}
or, once the facts are there, the answer to the customer,
{"kind":"final","answer":"<one or two plain sentences>"}

- Rely only on what the tools returned; recent_history and state_summary hold it.
- earlier_exchanges, where it is there, is what the same customer asked before and was told. It explains what a question refers to; facts still come from the tools.
- issue_refund, where it is offered, moves money. Ask for it only if the customer wants the refund made now, the policy text that you have read grants it, and the amount is what this customer paid, in whole cents; name the rule in the reason. A person decides about it. Never say that money was refunded unless its receipt is in recent_history.
- Ask for one tool at a time, the one that settles the most, and never twice with the same arguments.
- Add no further keys, and no Markdown."#;

/// For a provider's tool calls.
pub(super) const NATIVE_INSTRUCTIONS: &str = "You are a customer support agent. Look facts up with \
     the tools before you answer, and rely only on what they return. Answer the customer in one or \
     two plain sentences, without Markdown. Where there is issue_refund, it moves money, and a person \
     decides about it: ask for it only if the customer wants the refund made now, the policy that you \
     read grants it, and the amount is what this customer paid, in whole cents; name the rule in the \
     reason. Say that money was refunded only if you have its receipt; if it was refused, say so and why.";

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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    earlier_exchanges: Vec<Earlier<'a>>,
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

/// What the customer asked before, and was told.
#[derive(Serialize)]
struct Earlier<'a> {
    question: &'a str,
    answer: String,
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
    state: &SupportState,
    tools: &[ToolSpec],
) -> Result<String, serde_json::Error> {
    let (goal, history) = (&state.goal, &state.history);
    let recent = history.len().saturating_sub(SHOWN_STEPS);
    python_json(&Payload {
        goal,
        earlier_exchanges: earlier(goal, &state.exchanges),
        state_summary: Summary {
            steps_completed: history.len(),
            tools_used: history.iter().map(|turn| turn.call.name()).collect(),
            last_observation: history.last().map(observation),
        },
        recent_history: history.iter().skip(recent).map(row).collect(),
        available_tools: tools.iter().map(offer).collect(),
    })
}

/// The newest exchanges with the customer whose question this is: others are nobody else's business.
fn earlier<'a>(goal: &str, exchanges: &'a [Exchange]) -> Vec<Earlier<'a>> {
    let Some(case) = read_goal(goal) else {
        return Vec::new();
    };
    let own = exchanges.iter().rev().filter(|had| had.user == case.user);
    let mut shown: Vec<_> = own
        .take(SHOWN_EXCHANGES)
        .map(|had| Earlier {
            question: &had.question,
            answer: had.answer.chars().take(SHOWN_ANSWER).collect(),
        })
        .collect();
    shown.reverse();
    shown
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
