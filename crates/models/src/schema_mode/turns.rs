//! The conversation as a model without tool calls reads it: its own steps as JSON, results as messages. Pure.

use serde_json::json;

use crate::message::{Body, Content, Message, ToolBody, ToolStatus};

/// Whether any call or result is in the history.
pub(super) fn has_calls(history: &[Message]) -> bool {
    history.iter().any(|message| {
        matches!(message.body, Body::Tool(_))
            || !message.tool_calls().is_empty()
            || !message.invalid_tool_calls().is_empty()
    })
}

/// The history as text. With the name of the final action, answers of the past are written as the steps they were.
///
/// Results that follow each other, and what the person says then, become one message: many models are trained on
/// turns that alternate, and some servers insist on it.
pub(super) fn written(history: &[Message], final_action: Option<&str>) -> Vec<Message> {
    let mut turns: Vec<Message> = Vec::new();
    for message in history {
        match &message.body {
            Body::Remove => {}
            Body::Ai(_) => turns.push(spoken(message, final_action)),
            Body::Tool(tool) => {
                let text = result(tool, message, history);
                push_human(
                    &mut turns,
                    Message {
                        content: text.into(),
                        body: Body::Human,
                        name: None,
                        ..message.clone()
                    },
                );
            }
            Body::Human => push_human(&mut turns, message.clone()),
            Body::System => turns.push(message.clone()),
        }
    }
    turns
}

fn push_human(turns: &mut Vec<Message>, next: Message) {
    if let Some(last) = turns.last_mut()
        && last.body == Body::Human
        && let (Content::Text(before), Content::Text(more)) = (&mut last.content, &next.content)
    {
        before.push_str("\n\n");
        before.push_str(more);
        return;
    }
    turns.push(next);
}

/// What the model said, with its calls as the JSON that makes them.
fn spoken(message: &Message, final_action: Option<&str>) -> Message {
    let text = message.text();
    let calls = message.tool_calls().iter();
    // The exact text of the arguments, which no JSON value could carry.
    let calls = calls.map(|call| {
        format!(
            "{{\"action\":{},\"arguments\":{}}}",
            json!(call.name),
            call.args.as_str()
        )
    });
    let invalid = message.invalid_tool_calls().iter();
    let invalid = invalid.map(|call| {
        format!(
            "{{\"action\":{},\"arguments\":{}}}",
            json!(call.name),
            call.args
        )
    });
    let mut lines: Vec<String> = calls.chain(invalid).collect();
    match final_action {
        Some(action) if lines.is_empty() => {
            lines.push(json!({ "action": action, "answer": text }).to_string());
        }
        _ if !text.trim().is_empty() => lines.insert(0, text.into_owned()),
        _ => {}
    }
    Message {
        body: Body::Ai(crate::message::AiBody::default()),
        content: lines.join("\n").into(),
        ..message.clone()
    }
}

/// A result, with the tool it comes from.
fn result(tool: &ToolBody, message: &Message, history: &[Message]) -> String {
    let made = history.iter().rev().find_map(|message| {
        let call = message
            .tool_calls()
            .iter()
            .find(|call| call.id == tool.tool_call_id);
        call.map(|call| call.name.as_str())
    });
    let name = made.or(message.name.as_deref()).unwrap_or("the action");
    let text = message.text();
    match tool.status {
        ToolStatus::Success => format!("Result of {name}: {text}"),
        ToolStatus::Error => format!("{name} failed: {text}"),
    }
}

#[cfg(test)]
mod tests;
