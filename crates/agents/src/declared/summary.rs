//! Conversations that are too long and whose older part is not to be forgotten: the model summarises it.
//!
//! A summary is made when the conversation is full, of so much that half of the room is free again, and kept in the
//! state: so it is paid for now and then and not at every step. If it cannot be had, older messages are left out.

use super::context::shown;
use super::file::{ContextSpec, WhenFull};
use crate::asking::Asking;
use crate::event::AgentEventData;
use paraph_graph::{Ctx, NodeError};
use paraph_models::{Body, ChatRequest, Message};
use serde::{Deserialize, Serialize};

/// The longest summary, in tokens.
const LONGEST: u32 = 600;
/// How much of one message is summarised, in characters.
const SHOWN: usize = 4_000;

const INSTRUCTIONS: &str = "You keep the notes of a conversation between a person and an agent that calls tools. Write \
    down what matters for going on: what was asked and answered, facts with their figures and names, what is still \
    open. Be brief, invent nothing, and give the notes alone.";

/// What a conversation was, up to one of its messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// The id of the last message that is part of it.
    until: String,
    pub(crate) text: String,
}

/// What of a conversation is sent.
pub(crate) struct Sent {
    pub(crate) messages: Vec<Message>,
    /// What stands for the rest.
    pub(crate) summary: Option<Summary>,
}

/// Brings a conversation within its limits. `known` is the summary that the state holds.
pub(crate) async fn within(
    messages: Vec<Message>,
    limits: &ContextSpec,
    known: Option<&Summary>,
    (run, ctx, step): (&Asking<'_>, &Ctx, u64),
) -> Result<Sent, NodeError> {
    if limits.when_full == WhenFull::Trim {
        return Ok(Sent {
            messages: shown(messages, limits).messages,
            summary: None,
        });
    }
    let (rest, known) = after(messages, known);
    let whole = shown(rest.clone(), limits);
    if whole.left_out.is_empty() {
        return Ok(Sent {
            messages: whole.messages,
            summary: known.cloned(),
        });
    }
    let half = shown(rest, &halved(limits));
    let Some(until) = half.left_out.last().map(|last| last.id.clone()) else {
        return Ok(Sent {
            messages: whole.messages,
            summary: known.cloned(),
        });
    };
    let request = ChatRequest {
        max_tokens: Some(LONGEST),
        ..ChatRequest::new([
            Message::system(INSTRUCTIONS),
            Message::human(notes(known, &half.left_out)),
        ])
    };
    match run.aside(request).await {
        Some(text) => {
            let messages = half.left_out.len() as u64;
            ctx.emit(AgentEventData::Summarised { step, messages })
                .await?;
            Ok(Sent {
                messages: half.messages,
                summary: Some(Summary { until, text }),
            })
        }
        None => Ok(Sent {
            messages: whole.messages,
            summary: known.cloned(),
        }),
    }
}

/// What is not part of the summary; the task of the run in any case.
fn after(messages: Vec<Message>, known: Option<&Summary>) -> (Vec<Message>, Option<&Summary>) {
    let at = known.and_then(|known| {
        messages
            .iter()
            .position(|message| message.id == known.until)
    });
    let (Some(at), Some(known)) = (at, known) else {
        return (messages, None);
    };
    let task = messages
        .iter()
        .rposition(|message| message.body == Body::Human);
    let task = task
        .filter(|task| *task <= at)
        .and_then(|task| messages.get(task))
        .cloned();
    let rest = messages.into_iter().skip(at + 1);
    (task.into_iter().chain(rest).collect(), Some(known))
}

fn halved(limits: &ContextSpec) -> ContextSpec {
    ContextSpec {
        max_messages: limits.max_messages.map(|most| most / 2),
        max_tokens: limits.max_tokens.map(|most| most / 2),
        ..limits.clone()
    }
}

/// What is summarised, as text.
fn notes(known: Option<&Summary>, messages: &[Message]) -> String {
    let mut text = known
        .map(|known| format!("Your notes so far:\n{}\n\n", known.text))
        .unwrap_or_default();
    text.push_str("What came next:\n");
    for message in messages {
        let said: String = message.text().chars().take(SHOWN).collect();
        text.push_str(&format!("{}: {said}\n", message.kind()));
        for call in message.tool_calls() {
            let args: String = call.args.as_str().chars().take(SHOWN).collect();
            text.push_str(&format!("calls {} {args}\n", call.name));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, message: Message) -> Message {
        Message {
            id: id.to_owned(),
            ..message
        }
    }

    #[test]
    fn what_is_summarised_is_not_shown_again_but_for_the_task() {
        let messages = vec![
            message("1", Message::human("old")),
            message("2", Message::ai("answer")),
            message("3", Message::human("task")),
            message("4", Message::ai("work")),
            message("5", Message::ai("more")),
        ];
        let ids = |until: &str| {
            let summary = Summary {
                until: until.to_owned(),
                text: String::new(),
            };
            let (rest, known) = after(messages.clone(), Some(&summary));
            let ids: String = rest.iter().map(|message| message.id.as_str()).collect();
            (ids, known.is_some())
        };
        let table = [
            ("2", "345", true),
            ("4", "35", true),
            ("5", "3", true),
            ("?", "12345", false),
        ];
        for (until, expected, known) in table {
            assert_eq!(ids(until), (expected.to_owned(), known), "{until}");
        }
    }
}
