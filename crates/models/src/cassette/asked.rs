//! A request as it is written down and compared, and how two of them differ. Pure.
//!
//! What a provider never sees (message ids, deadlines, earlier usage) is left out, and call ids are numbered in
//! order, since they are drawn anew in each run. Texts that may hold long numbers stay texts.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::chat::{ChatRequest, ResponseFormat, ToolChoice, ToolSpec};
use crate::message::{Body, Content, Message};

/// How many differences are told.
const MAX_TOLD: usize = 5;

/// How many characters of a value are shown.
const MAX_SHOWN: usize = 60;

/// How many characters are shown before the place where two texts part.
const LEAD: usize = 15;

/// The request as JSON, the same for every run that asks the same.
pub(super) fn asked(request: &ChatRequest) -> Value {
    let mut calls = Calls::default();
    let messages = request.messages.iter().map(|m| message(m, &mut calls));
    let mut asked = Map::new();
    asked.insert("messages".to_owned(), messages.collect());
    if !request.tools.is_empty() {
        asked.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    let choice = match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Tool(name) => Some(json!({ "tool": name })),
    };
    let format = match &request.response_format {
        ResponseFormat::Text => None,
        ResponseFormat::JsonObject => Some(json!("json_object")),
        ResponseFormat::JsonSchema {
            name,
            schema,
            strict,
        } => Some(json!({ "name": name, "schema": schema, "strict": strict })),
    };
    let rest = [
        ("tool_choice", choice),
        ("temperature", request.temperature.map(|t| json!(t))),
        ("max_tokens", request.max_tokens.map(|n| json!(n))),
        ("response_format", format),
    ];
    for (key, value) in rest {
        if let Some(value) = value {
            asked.insert(key.to_owned(), value);
        }
    }
    as_read(Value::Object(asked))
}

/// Numbers as they are when they have been written and read again, which may move the last digit of a float.
fn as_read(value: Value) -> Value {
    serde_json::from_str(&value.to_string()).unwrap_or(value)
}

/// Numbers call ids in the order in which they appear.
#[derive(Default)]
struct Calls(HashMap<String, usize>);

impl Calls {
    fn number(&mut self, id: &str) -> String {
        let next = self.0.len() + 1;
        format!("#{}", self.0.entry(id.to_owned()).or_insert(next))
    }
}

fn message(message: &Message, calls: &mut Calls) -> Value {
    let content = match &message.content {
        Content::Text(text) => json!(text),
        Content::Blocks(blocks) => blocks.iter().map(|block| json!(block.as_str())).collect(),
    };
    let mut said = Map::new();
    said.insert("type".to_owned(), json!(message.kind()));
    said.insert("content".to_owned(), content);
    if let Some(name) = &message.name {
        said.insert("name".to_owned(), json!(name));
    }
    for (key, value) in &message.additional_kwargs {
        said.insert(format!("additional_kwargs.{key}"), json!(value.as_str()));
    }
    match &message.body {
        Body::Human | Body::System | Body::Remove => {}
        Body::Ai(ai) => {
            let valid = ai.tool_calls.iter().map(|call| {
                let id = calls.number(&call.id);
                json!({ "id": id, "name": call.name, "args": call.args.as_str() })
            });
            let mut made: Vec<Value> = valid.collect();
            made.extend(ai.invalid_tool_calls.iter().map(|call| {
                let id = calls.number(&call.id);
                json!({ "id": id, "name": call.name, "args": call.args, "invalid": true })
            }));
            if !made.is_empty() {
                said.insert("tool_calls".to_owned(), Value::Array(made));
            }
        }
        Body::Tool(tool) => {
            let id = calls.number(&tool.tool_call_id);
            said.insert("tool_call_id".to_owned(), json!(id));
            said.insert("status".to_owned(), json!(tool.status));
        }
    }
    Value::Object(said)
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "name": tool.name, "description": tool.description, "schema": tool.schema })
}

/// How a request differs from the recorded one, each place by its JSON pointer.
pub(super) fn difference(recorded: &Value, now: &Value) -> String {
    let mut told = Vec::new();
    compare(Some(recorded), Some(now), "", &mut told);
    let more = told.len().saturating_sub(MAX_TOLD);
    told.truncate(MAX_TOLD);
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    told.join("; ")
}

fn compare(recorded: Option<&Value>, now: Option<&Value>, at: &str, told: &mut Vec<String>) {
    match (recorded, now) {
        (recorded, now) if recorded == now => {}
        (Some(Value::Object(recorded)), Some(Value::Object(now))) => {
            let added = now.keys().filter(|key| !recorded.contains_key(*key));
            for key in recorded.keys().chain(added) {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                compare(recorded.get(key), now.get(key), &at, told);
            }
        }
        (Some(Value::Array(recorded)), Some(Value::Array(now))) => {
            for n in 0..recorded.len().max(now.len()) {
                compare(recorded.get(n), now.get(n), &format!("{at}/{n}"), told);
            }
        }
        (Some(Value::String(recorded)), Some(Value::String(now))) => {
            let from = parting(recorded, now);
            let (recorded, now) = (excerpt(recorded, from), excerpt(now, from));
            told.push(format!("{at}: recorded {recorded}, now {now}"));
        }
        (recorded, now) => {
            let (recorded, now) = (shown(recorded), shown(now));
            told.push(format!("{at}: recorded {recorded}, now {now}"));
        }
    }
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(value) => cut(&value.to_string()),
    }
}

/// The first characters of a text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// How many characters two texts have in common at their beginning.
fn parting(one: &str, other: &str) -> usize {
    one.chars()
        .zip(other.chars())
        .take_while(|(a, b)| a == b)
        .count()
}

/// A text around its character `from`, in quotes.
fn excerpt(text: &str, from: usize) -> String {
    let skipped = if from > LEAD * 2 { from - LEAD } else { 0 };
    let rest: String = text.chars().skip(skipped).take(MAX_SHOWN).collect();
    let before = if skipped > 0 { "…" } else { "" };
    let after = match text.chars().nth(skipped + MAX_SHOWN) {
        Some(_) => "…",
        None => "",
    };
    Value::String(format!("{before}{rest}{after}")).to_string()
}

#[cfg(test)]
mod tests;
