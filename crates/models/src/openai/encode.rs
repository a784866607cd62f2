//! A [`ChatRequest`] as the body of a chat completion. Pure; called by [`super`] only.
//!
//! What providers refuse on the way back in is put right here: empty `tool_calls`, empty block lists, arguments
//! that are no JSON, tool names with characters of their own.

use serde::Serialize;
use serde_json::{Value, json};

use crate::chat::{ChatRequest, ResponseFormat, ToolChoice};
use crate::error::ModelError;
use crate::message::{Body, Content, InvalidToolCall, Message, ToolCall};
use crate::parts::{is_reasoning, safe_name, unreadable_arguments};
use crate::raw::RawJson;
use crate::structured::without_lengths;

/// Where OpenAI's own server differs from those that follow its protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dialect {
    /// api.openai.com: the limit is `max_completion_tokens`, the only name its newer models accept.
    OpenAi,
    /// Everyone else: `max_tokens`.
    Compatible,
}

#[derive(Serialize)]
struct WireRequest<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: WireContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireContent<'a> {
    Null,
    Text(&'a str),
    Blocks(Vec<&'a RawJson>),
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: String,
    arguments: std::borrow::Cow<'a, str>,
}

/// The request body as JSON.
pub(super) fn body(
    request: &ChatRequest,
    model: &str,
    stream: bool,
    dialect: Dialect,
) -> Result<Vec<u8>, ModelError> {
    let official = dialect == Dialect::OpenAi;
    let wire = WireRequest {
        model,
        messages: request.messages.iter().filter_map(message).collect(),
        temperature: request.temperature,
        max_tokens: request.max_tokens.filter(|_| !official),
        max_completion_tokens: request.max_tokens.filter(|_| official),
        tools: request.tools.iter().map(tool).collect(),
        // Servers refuse a choice where there is nothing to choose from.
        tool_choice: tool_choice(&request.tool_choice).filter(|_| !request.tools.is_empty()),
        response_format: response_format(&request.response_format, official),
        stream: stream.then_some(true),
        stream_options: stream.then(|| json!({ "include_usage": true })),
    };
    serde_json::to_vec(&wire).map_err(|error| ModelError::BadRequest {
        message: format!("the request cannot be written: {error}"),
    })
}

fn message(message: &Message) -> Option<WireMessage<'_>> {
    let valid = message.tool_calls().iter().map(call);
    let invalid = message.invalid_tool_calls().iter().map(invalid_call);
    let tool_calls: Vec<WireCall<'_>> = valid.chain(invalid).collect();
    let role = match &message.body {
        Body::Human => "user",
        Body::System if is_developer(message) => "developer",
        Body::System => "system",
        Body::Ai(_) => "assistant",
        Body::Tool(_) => "tool",
        Body::Remove => return None,
    };
    let content = match &message.content {
        Content::Text(text) => WireContent::Text(text),
        // What another provider's model thought is nothing that this one could read.
        Content::Blocks(blocks) => {
            WireContent::Blocks(blocks.iter().filter(|block| !is_reasoning(block)).collect())
        }
    };
    let content = match content {
        WireContent::Text("") if !tool_calls.is_empty() => WireContent::Null,
        WireContent::Blocks(blocks) if blocks.is_empty() && !tool_calls.is_empty() => {
            WireContent::Null
        }
        WireContent::Blocks(blocks) if blocks.is_empty() => WireContent::Text(""),
        content => content,
    };
    // A tool's name is in its call; strict servers refuse it on the result.
    let name = message.name.as_deref().filter(|_| role != "tool");
    Some(WireMessage {
        role,
        content,
        name: name.map(safe_name),
        tool_calls,
        tool_call_id: message.tool_call_id(),
    })
}

fn is_developer(message: &Message) -> bool {
    let role = message.additional_kwargs.get(crate::message::OPENAI_ROLE);
    role.is_some_and(|role| role.as_str() == "\"developer\"")
}

fn call(call: &ToolCall) -> WireCall<'_> {
    WireCall {
        id: &call.id,
        r#type: "function",
        function: WireFunction {
            name: safe_name(&call.name),
            arguments: call.args.as_str().into(),
        },
    }
}

fn invalid_call(call: &InvalidToolCall) -> WireCall<'_> {
    WireCall {
        id: &call.id,
        r#type: "function",
        function: WireFunction {
            name: safe_name(call.name.as_deref().unwrap_or("unknown")),
            arguments: unreadable_arguments(call).into(),
        },
    }
}

fn tool(tool: &crate::chat::ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": { "name": tool.name, "description": tool.description, "parameters": tool.schema },
    })
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Tool(name) => Some(json!({ "type": "function", "function": { "name": name } })),
    }
}

fn response_format(format: &ResponseFormat, official: bool) -> Option<Value> {
    match format {
        ResponseFormat::Text => None,
        ResponseFormat::JsonObject => Some(json!({ "type": "json_object" })),
        ResponseFormat::JsonSchema {
            name,
            schema,
            strict,
        } => {
            let mut schema = schema.clone();
            // OpenAI's own server refuses bounds of strings where it enforces to the letter; others need them.
            if official && *strict {
                without_lengths(&mut schema);
            }
            Some(json!({
                "type": "json_schema",
                "json_schema": { "name": name, "schema": schema, "strict": strict },
            }))
        }
    }
}
