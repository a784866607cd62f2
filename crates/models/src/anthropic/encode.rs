//! A [`ChatRequest`] as the body of Anthropic's messages. Pure; called by [`super`] only.
//!
//! The rules that its server insists on are kept here: turns alternate, instructions stand apart, results come first
//! in the turn behind their calls, no text is blank, ids have few characters, an answer has a longest length.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use super::PROVIDER;
use crate::chat::{ChatRequest, ResponseFormat, SignedBlock, ToolChoice, ToolSpec};
use crate::error::ModelError;
use crate::http::Wire;
use crate::message::{Body, Message, ToolBody, ToolStatus};
use crate::parts::{Part, parts, safe_name, unreadable_arguments};
use crate::raw::Arguments;

/// The longest answer where the request names none: Anthropic's protocol has no "as long as it takes", and this much
/// every current model can say.
const LONGEST_ANSWER: u32 = 8192;

/// What stands in for [`ResponseFormat::JsonObject`], which this protocol lacks.
const ONLY_JSON: &str = "Answer with one JSON object and with nothing before or after it.";

#[derive(Serialize)]
struct WireRequest<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    system: String,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: String,
    },
    Image {
        source: Source,
    },
    Document {
        source: Source,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: String,
        input: Cow<'a, Arguments>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "is_false")]
        is_error: bool,
    },
    Thinking {
        thinking: String,
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source {
    Base64 { media_type: String, data: String },
    Url { url: String },
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The request body as JSON.
pub(super) fn body(request: &ChatRequest, model: &str, wire: Wire) -> Result<Vec<u8>, ModelError> {
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    let mut choice = tool_choice(&request.tool_choice);
    if tools.is_empty() {
        // A history with calls is refused without the tools that it speaks of.
        tools = past_tools(&request.messages);
        choice = (!tools.is_empty()).then(|| json!({ "type": "none" }));
    }
    let wire = WireRequest {
        model,
        max_tokens: request.max_tokens.unwrap_or(LONGEST_ANSWER),
        system: system(request),
        messages: turns(&request.messages)?,
        tools,
        tool_choice: choice,
        temperature: request.temperature,
        output_config: output_config(&request.response_format),
        stream: (wire == Wire::Events).then_some(true),
    };
    serde_json::to_vec(&wire).map_err(|error| ModelError::BadRequest {
        message: format!("the request cannot be written: {error}"),
    })
}

/// All instructions, wherever they stand: this protocol has one place for them.
fn system(request: &ChatRequest) -> String {
    let messages = request.messages.iter();
    let instructions = messages.filter(|message| matches!(message.body, Body::System));
    let mut texts: Vec<Cow<'_, str>> = instructions.map(Message::text).collect();
    if request.response_format == ResponseFormat::JsonObject {
        texts.push(ONLY_JSON.into());
    }
    texts.retain(|text| !text.trim().is_empty());
    texts.join("\n\n")
}

/// The conversation, one turn after the other's.
fn turns(messages: &[Message]) -> Result<Vec<Turn<'_>>, ModelError> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for message in messages {
        let (role, content) = match &message.body {
            Body::System | Body::Remove => continue,
            Body::Human => ("user", content(message)?),
            Body::Ai(_) => ("assistant", assistant(message)?),
            Body::Tool(tool) => ("user", vec![result(message, tool)?]),
        };
        match turns.last_mut() {
            _ if content.is_empty() => {}
            Some(last) if last.role == role => last.content.extend(content),
            _ => turns.push(Turn { role, content }),
        }
    }
    Ok(turns)
}

fn content(message: &Message) -> Result<Vec<Block<'_>>, ModelError> {
    let parts = parts(message, PROVIDER)?.into_iter();
    let blocks = parts.map(|part| match part {
        Part::Text(text) => Block::Text { text },
        Part::Address(url) => Block::Image {
            source: Source::Url { url },
        },
        Part::Data { media_type, base64 } => {
            let picture = media_type.starts_with("image/");
            let data = base64;
            let source = Source::Base64 { media_type, data };
            match picture {
                true => Block::Image { source },
                false => Block::Document { source },
            }
        }
    });
    let blank = |block: &Block<'_>| matches!(block, Block::Text { text } if text.trim().is_empty());
    Ok(blocks.filter(|block| !blank(block)).collect())
}

fn result<'a>(message: &'a Message, tool: &'a ToolBody) -> Result<Block<'a>, ModelError> {
    Ok(Block::ToolResult {
        tool_use_id: safe_id(&tool.tool_call_id),
        content: content(message)?,
        is_error: tool.status == ToolStatus::Error,
    })
}

/// What the model said, with its signed reasoning where it stood: in another order the server refuses it.
fn assistant(message: &Message) -> Result<Vec<Block<'_>>, ModelError> {
    let signed = message.signed_reasoning(PROVIDER);
    if signed.is_empty() {
        let mut blocks = content(message)?;
        blocks.extend(calls(message));
        return Ok(blocks);
    }
    let text = message.text();
    let mut rest = calls(message).into_iter();
    let mut blocks = Vec::new();
    let (mut from, mut called) = (0, 0);
    let say = |blocks: &mut Vec<Block<'_>>, text: Option<&str>| {
        let text = text.unwrap_or_default();
        if !text.trim().is_empty() {
            blocks.push(Block::Text {
                text: text.to_owned(),
            });
        }
    };
    for thought in signed {
        if thought.at.text > from {
            say(&mut blocks, text.get(from..thought.at.text));
            from = thought.at.text;
        }
        blocks.extend(rest.by_ref().take(thought.at.calls.saturating_sub(called)));
        called = called.max(thought.at.calls);
        blocks.push(thinking(thought));
    }
    say(&mut blocks, text.get(from..));
    blocks.extend(rest);
    Ok(blocks)
}

fn thinking<'a>(block: SignedBlock) -> Block<'a> {
    match block.redacted {
        Some(data) => Block::RedactedThinking { data },
        None => Block::Thinking {
            thinking: block.text,
            signature: block.signature.unwrap_or_default(),
        },
    }
}

fn calls(message: &Message) -> Vec<Block<'_>> {
    let valid = message.tool_calls().iter().map(|call| Block::ToolUse {
        id: safe_id(&call.id),
        name: safe_name(&call.name),
        input: Cow::Borrowed(&call.args),
    });
    let invalid = message.invalid_tool_calls().iter();
    let invalid = invalid.map(|call| Block::ToolUse {
        id: safe_id(&call.id),
        name: safe_name(call.name.as_deref().unwrap_or("unknown")),
        input: Cow::Owned(Arguments::parse(&unreadable_arguments(call)).unwrap_or_default()),
    });
    valid.chain(invalid).collect()
}

/// An id of letters, digits, `_` and `-` only. Other characters are written out, so that ids stay apart.
fn safe_id(id: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if !id.is_empty() && id.chars().all(plain) {
        return Cow::Borrowed(id);
    }
    let mut safe = String::from("id");
    for c in id.chars() {
        match plain(c) {
            true => safe.push(c),
            false => safe.push_str(&format!("_{:x}_", u32::from(c))),
        }
    }
    Cow::Owned(safe)
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": object(&tool.schema) })
}

/// The schema with the type that the server wants named.
fn object(schema: &Value) -> Value {
    let mut schema = match schema {
        Value::Object(fields) => fields.clone(),
        _ => serde_json::Map::new(),
    };
    schema.entry("type").or_insert_with(|| json!("object"));
    Value::Object(schema)
}

/// The tools that the history speaks of, by name alone.
fn past_tools(messages: &[Message]) -> Vec<Value> {
    let valid = messages.iter().flat_map(Message::tool_calls);
    let valid = valid.map(|call| call.name.as_str());
    let invalid = messages.iter().flat_map(Message::invalid_tool_calls);
    let invalid = invalid.map(|call| call.name.as_deref().unwrap_or("unknown"));
    let mut names: Vec<String> = valid.chain(invalid).map(safe_name).collect();
    names.sort_unstable();
    names.dedup();
    let names = names.into_iter();
    names
        .map(|name| json!({ "name": name, "input_schema": { "type": "object" } }))
        .collect()
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({ "type": "none" })),
        ToolChoice::Required => Some(json!({ "type": "any" })),
        ToolChoice::Tool(name) => Some(json!({ "type": "tool", "name": name })),
    }
}

fn output_config(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::Text | ResponseFormat::JsonObject => None,
        ResponseFormat::JsonSchema { schema, .. } => Some(json!({
            "format": { "type": "json_schema", "schema": closed(schema) },
        })),
    }
}

/// The schema in the part of JSON Schema that the server enforces: every object closed, no bounds on values. Whoever
/// asked checks the answer against the whole schema anyway.
fn closed(schema: &Value) -> Value {
    const UNENFORCED: [&str; 12] = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "$schema",
    ];
    // Names of properties and definitions are no keywords, whatever they are called.
    const NAMED: [&str; 3] = ["properties", "$defs", "definitions"];
    let Value::Object(fields) = schema else {
        return match schema {
            Value::Array(items) => items.iter().map(closed).collect(),
            plain => plain.clone(),
        };
    };
    let mut kept = serde_json::Map::new();
    for (key, value) in fields {
        if UNENFORCED.contains(&key.as_str()) {
            continue;
        }
        let value = match value {
            Value::Object(named) if NAMED.contains(&key.as_str()) => named
                .iter()
                .map(|(name, schema)| (name.clone(), closed(schema)))
                .collect(),
            value if ["enum", "const", "default", "examples"].contains(&key.as_str()) => {
                value.clone()
            }
            value => closed(value),
        };
        kept.insert(key.clone(), value);
    }
    if fields.get("type") == Some(&json!("object")) {
        kept.insert("additionalProperties".to_owned(), json!(false));
    }
    Value::Object(kept)
}
