//! How the rehearsal model plays the part of an agent from a file, without a key and without a network.
//!
//! It knows no more than its tools' names and schemas: it takes a note with `think`, asks the agents it can call, and
//! answers with what it read. Tools that could reach outside it leaves alone, and says so.

use super::output::schema_in;
use paraph_models::{
    Body, ChatRequest, Chunk, FinishReason, Message, ResponseFormat, ToolCallDelta,
};
use serde_json::{Map, Value, json};

/// How much of a text it repeats, in characters.
const SHOWN: usize = 400;

/// What it has to go by.
struct Part {
    task: String,
    /// Names and schemas.
    tools: Vec<(String, Value)>,
    /// The schema of its answer, if it has one.
    form: Option<Value>,
    /// What was called for this task, and what came of it.
    seen: Vec<(String, String)>,
}

/// Its next move.
enum Move {
    Call(String, Value),
    Answer(String),
}

/// What it says to a request.
pub(crate) fn rehearse(request: &ChatRequest) -> Chunk {
    if let ResponseFormat::JsonSchema { schema, .. } = &request.response_format {
        return said(smallest(schema, schema, 0).to_string());
    }
    match of_payload(&request.messages) {
        Some(part) => said(match part.next() {
            Move::Call(name, args) => {
                json!({"kind": "tool", "name": name, "args": args}).to_string()
            }
            Move::Answer(answer) => json!({"kind": "final", "answer": answer}).to_string(),
        }),
        None => match of_conversation(request).next() {
            Move::Call(name, args) => Chunk {
                tool_calls: vec![ToolCallDelta {
                    index: Some(0),
                    signature: None,
                    id: None,
                    name: Some(name),
                    arguments: args.to_string(),
                }],
                finish_reason: Some(FinishReason::ToolCalls),
                ..Chunk::default()
            },
            Move::Answer(answer) => said(answer),
        },
    }
}

fn said(text: String) -> Chunk {
    Chunk {
        text,
        finish_reason: Some(FinishReason::Stop),
        ..Chunk::default()
    }
}

/// From the payload of an agent with JSON actions.
fn of_payload(messages: &[Message]) -> Option<Part> {
    let payload: Value = serde_json::from_str(&messages.last()?.text()).ok()?;
    let list = |key: &str| payload.get(key).and_then(Value::as_array);
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let tools = list("tools")?
        .iter()
        .filter_map(|tool| Some((text(tool, "name")?, tool.get("args")?.clone())));
    let seen = list("history")?.iter().filter_map(|done| {
        let result = done.get("result")?;
        let shown = result
            .as_str()
            .map_or_else(|| result.to_string(), str::to_owned);
        Some((text(done, "tool")?, shown))
    });
    Some(Part {
        form: None,
        task: text(&payload, "task")?,
        tools: tools.collect(),
        seen: seen.collect(),
    })
}

/// From a conversation: its last task, and what was called since.
fn of_conversation(request: &ChatRequest) -> Part {
    let messages = &request.messages;
    let last = messages
        .iter()
        .rposition(|message| message.body == Body::Human && message.name.is_none());
    let since = messages.iter().skip(last.unwrap_or(0));
    let calls: Vec<_> = since.clone().flat_map(Message::tool_calls).collect();
    let seen = since.filter_map(|message| {
        let id = message.tool_call_id()?;
        let call = calls.iter().find(|call| call.id == id)?;
        Some((call.name.clone(), message.text().into_owned()))
    });
    let instructions = messages.first().map(|first| first.text());
    Part {
        form: instructions.and_then(|text| schema_in(&text)),
        task: last
            .and_then(|at| messages.get(at))
            .map(|task| task.text().into_owned())
            .unwrap_or_default(),
        tools: request
            .tools
            .iter()
            .map(|tool| (tool.name.clone(), tool.schema.clone()))
            .collect(),
        seen: seen.collect(),
    }
}

impl Part {
    fn next(&self) -> Move {
        let open = self.tools.iter().find_map(|(name, schema)| {
            let done = self.seen.iter().any(|(seen, _)| seen == name);
            let args = self.arguments(name, schema).filter(|_| !done)?;
            Some(Move::Call(name.clone(), args))
        });
        open.unwrap_or_else(|| Move::Answer(self.answer()))
    }

    /// The arguments of a tool that certainly needs nothing from outside; nothing for others.
    fn arguments(&self, name: &str, schema: &Value) -> Option<Value> {
        let required: Vec<_> = schema
            .get("required")?
            .as_array()?
            .iter()
            .filter_map(Value::as_str)
            .collect();
        match (name, required.as_slice()) {
            ("think", ["reflection"]) => {
                Some(json!({"reflection": format!("The task is: {}", shown(&self.task))}))
            }
            // Only agents of the same file take a task.
            (_, ["task"]) => Some(json!({"task": shown(&self.task)})),
            _ => None,
        }
    }

    fn answer(&self) -> String {
        if let Some(schema) = &self.form {
            return smallest(schema, schema, 0).to_string();
        }
        let mut text = format!(
            "This is the rehearsal model, which thinks nothing. You asked: {}",
            shown(&self.task)
        );
        for (name, seen) in &self.seen {
            text.push_str(&format!("\nFrom `{name}` it read: {}", shown(seen)));
        }
        let unused: Vec<_> = self
            .tools
            .iter()
            .filter(|(name, _)| !self.seen.iter().any(|(seen, _)| seen == name))
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        if !unused.is_empty() {
            text.push_str(&format!("\nIt left alone: {}.", unused.join(", ")));
        }
        text
    }
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The smallest value that a schema takes, for schemas without much wit.
fn smallest(schema: &Value, root: &Value, depth: usize) -> Value {
    const MAX_DEPTH: usize = 16;
    let first = |key: &str| {
        schema
            .get(key)
            .and_then(Value::as_array)
            .and_then(|values| values.first())
    };
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    if let Some(value) = schema.get("const").or(first("enum")) {
        return value.clone();
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(target.trim_start_matches('#'));
        return target.map_or(Value::Null, |target| smallest(target, root, depth + 1));
    }
    if let Some(one) = first("anyOf").or(first("oneOf")) {
        return smallest(one, root, depth + 1);
    }
    let kind = schema.get("type");
    let kind = kind.and_then(|kind| kind.as_str().or_else(|| kind.as_array()?.first()?.as_str()));
    match kind {
        Some("object") => object(schema, root, depth),
        Some("array") => {
            let least = schema
                .get("minItems")
                .and_then(Value::as_u64)
                .unwrap_or(0)
                .min(100);
            let item = schema
                .get("items")
                .map_or(Value::Null, |item| smallest(item, root, depth + 1));
            (0..least).map(|_| item.clone()).collect()
        }
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(0)),
        Some("boolean") => json!(false),
        Some("string") => {
            let least = schema
                .get("minLength")
                .and_then(Value::as_u64)
                .unwrap_or(0)
                .min(10_000);
            json!(
                "rehearsal "
                    .repeat(1 + usize::try_from(least).unwrap_or(0) / 10)
                    .trim_end()
            )
        }
        _ => Value::Null,
    }
}

fn object(schema: &Value, root: &Value, depth: usize) -> Value {
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let entries: Map<String, Value> = required
        .filter_map(Value::as_str)
        .map(|name| {
            let property = schema.get("properties").and_then(|all| all.get(name));
            let value =
                property.map_or(Value::Null, |property| smallest(property, root, depth + 1));
            (name.to_owned(), value)
        })
        .collect();
    Value::Object(entries)
}
