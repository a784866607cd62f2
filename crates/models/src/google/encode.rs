//! A [`ChatRequest`] as the body of Google's `generateContent`. Pure; called by [`super`] only.
//!
//! The rules that its server insists on are kept here: turns alternate, instructions stand apart, a result has the
//! name of its call's tool, and what was signed goes back where it stood.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::PROVIDER;
use crate::chat::{CALL_SIGNATURE, ChatRequest, ResponseFormat, ToolChoice};
use crate::error::ModelError;
use crate::message::{Body, Message, ToolBody, ToolCall, ToolStatus};
use crate::parts::{Part, parts, safe_name, unreadable_arguments};
use crate::raw::Arguments;

/// What Google's documentation gives for calls that another model made: Gemini 3 refuses a turn whose first call has
/// no signature.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Value>,
    contents: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    #[serde(skip_serializing_if = "is_empty")]
    generation_config: Value,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    parts: Vec<WirePart<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<String>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: String,
    args: Cow<'a, Arguments>,
}

fn is_empty(config: &Value) -> bool {
    config.as_object().is_none_or(serde_json::Map::is_empty)
}

/// The request body as JSON.
pub(super) fn body(request: &ChatRequest, model: &str) -> Result<Vec<u8>, ModelError> {
    let tools: Vec<Value> = request.tools.iter().map(declaration).collect();
    let wire = WireRequest {
        system_instruction: system(request),
        contents: turns(&request.messages, model)?,
        // Servers refuse a choice where there is nothing to choose from.
        tool_config: tool_config(&request.tool_choice).filter(|_| !tools.is_empty()),
        tools: match tools.is_empty() {
            true => Vec::new(),
            false => vec![json!({ "functionDeclarations": tools })],
        },
        generation_config: generation_config(request),
    };
    serde_json::to_vec(&wire).map_err(|error| ModelError::BadRequest {
        message: format!("the request cannot be written: {error}"),
    })
}

/// All instructions, wherever they stand: this protocol has one place for them.
fn system(request: &ChatRequest) -> Option<Value> {
    let messages = request.messages.iter();
    let instructions = messages.filter(|message| matches!(message.body, Body::System));
    let texts = instructions.map(Message::text);
    let texts: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| json!({ "parts": [{ "text": texts.join("\n\n") }] }))
}

fn turns<'a>(messages: &'a [Message], model: &str) -> Result<Vec<Turn<'a>>, ModelError> {
    let calls = messages.iter().flat_map(Message::tool_calls);
    let calls = calls.map(|call| (call.id.as_str(), call.name.as_str()));
    let invalid = messages.iter().flat_map(Message::invalid_tool_calls);
    let invalid = invalid.map(|call| (call.id.as_str(), call.name.as_deref().unwrap_or("unknown")));
    let names: HashMap<&str, &str> = calls.chain(invalid).collect();
    let wants_signatures = model.contains("gemini-3");
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for message in messages {
        let (role, parts) = match &message.body {
            Body::System | Body::Remove => continue,
            Body::Human => ("user", content(message)?),
            Body::Ai(_) => ("model", spoken(message, wants_signatures)?),
            Body::Tool(tool) => ("user", result(message, tool, &names)?),
        };
        match turns.last_mut() {
            _ if parts.is_empty() => {}
            Some(last) if last.role == role => last.parts.extend(parts),
            _ => turns.push(Turn { role, parts }),
        }
    }
    Ok(turns)
}

fn text<'a>(text: impl Into<Cow<'a, str>>) -> WirePart<'a> {
    WirePart {
        text: Some(text.into()),
        ..WirePart::default()
    }
}

fn content(message: &Message) -> Result<Vec<WirePart<'_>>, ModelError> {
    let parts = parts(message, PROVIDER)?.into_iter();
    Ok(parts.map(part).collect())
}

fn part<'a>(part: Part) -> WirePart<'a> {
    match part {
        Part::Text(said) => text(said),
        Part::Address(uri) => WirePart {
            file_data: Some(json!({ "fileUri": uri })),
            ..WirePart::default()
        },
        Part::Data { media_type, base64 } => WirePart {
            inline_data: Some(json!({ "mimeType": media_type, "data": base64 })),
            ..WirePart::default()
        },
    }
}

/// What a tool gave: its text as the response, pictures beside it.
fn result<'a>(
    message: &'a Message,
    tool: &'a ToolBody,
    names: &HashMap<&str, &str>,
) -> Result<Vec<WirePart<'a>>, ModelError> {
    let key = match tool.status {
        ToolStatus::Success => "output",
        ToolStatus::Error => "error",
    };
    let name = names.get(tool.tool_call_id.as_str()).copied();
    let name = name.or(message.name.as_deref()).unwrap_or("unknown");
    let mut response = json!({ "name": safe_name(name), "response": { key: message.text() } });
    if let Some(id) = sent_id(&tool.tool_call_id) {
        response["id"] = json!(id);
    }
    let mut sent = vec![WirePart {
        function_response: Some(response),
        ..WirePart::default()
    }];
    let rest = parts(message, PROVIDER)?.into_iter();
    sent.extend(rest.filter(|part| !matches!(part, Part::Text(_))).map(part));
    Ok(sent)
}

/// An id that a provider gave; one that was made here means that it gave none.
fn sent_id(id: &str) -> Option<&str> {
    (!id.is_empty() && !id.starts_with("call-")).then_some(id)
}

/// What the model said, with its signatures where they stood.
fn spoken(message: &Message, wants_signatures: bool) -> Result<Vec<WirePart<'_>>, ModelError> {
    let mut sent = Vec::new();
    let signed = message.signed_reasoning(PROVIDER);
    if signed.is_empty() {
        sent = content(message)?;
    } else {
        let whole = message.text().into_owned();
        let places: Vec<usize> = signed.iter().map(|block| block.at.text).collect();
        let before = whole.get(..places.first().copied().unwrap_or(0));
        sent.extend(
            before
                .filter(|said| !said.is_empty())
                .map(|said| text(said.to_owned())),
        );
        for (n, block) in signed.into_iter().enumerate() {
            let to = places.get(n + 1).copied().unwrap_or(whole.len());
            let said = whole.get(block.at.text..to).unwrap_or_default();
            sent.push(WirePart {
                thought_signature: block.signature,
                ..text(said.to_owned())
            });
        }
    }
    let valid = message.tool_calls().iter().map(|call| WirePart {
        function_call: Some(WireCall {
            id: sent_id(&call.id),
            name: safe_name(&call.name),
            args: Cow::Borrowed(&call.args),
        }),
        thought_signature: signature(call),
        ..WirePart::default()
    });
    let invalid = message.invalid_tool_calls().iter();
    let invalid = invalid.map(|call| WirePart {
        function_call: Some(WireCall {
            id: sent_id(&call.id),
            name: safe_name(call.name.as_deref().unwrap_or("unknown")),
            args: Cow::Owned(Arguments::parse(&unreadable_arguments(call)).unwrap_or_default()),
        }),
        ..WirePart::default()
    });
    let mut calls: Vec<WirePart<'_>> = valid.chain(invalid).collect();
    if wants_signatures
        && let Some(first) = calls.first_mut()
        && first.thought_signature.is_none()
    {
        first.thought_signature = Some(NOT_SIGNED.to_owned());
    }
    sent.extend(calls);
    Ok(sent)
}

fn signature(call: &ToolCall) -> Option<String> {
    call.extra.get(CALL_SIGNATURE)?.decode().ok()
}

fn declaration(tool: &crate::chat::ToolSpec) -> Value {
    json!({ "name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema })
}

fn tool_config(choice: &ToolChoice) -> Option<Value> {
    let config = match choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => json!({ "mode": "NONE" }),
        ToolChoice::Required => json!({ "mode": "ANY" }),
        ToolChoice::Tool(name) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
    };
    Some(json!({ "functionCallingConfig": config }))
}

fn generation_config(request: &ChatRequest) -> Value {
    let mut config = serde_json::Map::new();
    let mut say = |key: &str, value: Value| config.insert(key.to_owned(), value);
    if let Some(temperature) = request.temperature {
        say("temperature", json!(temperature));
    }
    if let Some(tokens) = request.max_tokens {
        say("maxOutputTokens", json!(tokens));
    }
    if request.response_format != ResponseFormat::Text {
        say("responseMimeType", json!("application/json"));
    }
    if let ResponseFormat::JsonSchema { schema, .. } = &request.response_format {
        say("responseJsonSchema", schema.clone());
    }
    Value::Object(config)
}
