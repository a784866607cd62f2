//! What an OpenAI-compatible server answers: whole answers, events, errors, waits. Pure; called by [`super`] only.
//!
//! Lenient in what may be absent, strict in what it makes of it: nothing unreadable is passed over in silence.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Deserialize;

use crate::chat::{Chunk, FinishReason, ToolCallDelta};
use crate::error::{ModelError, shorten, speaks_of_context};
use crate::message::{Content, Usage};
use crate::raw::RawJson;

/// One event of an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Event {
    /// A piece of it.
    Chunk(Chunk),
    /// Its end.
    Done,
}

#[derive(Deserialize)]
struct WireAnswer {
    choices: Option<Vec<WireChoice>>,
    usage: Option<WireUsage>,
    model: Option<String>,
    error: Option<WireError>,
}

#[derive(Deserialize)]
struct WireChoice {
    #[serde(default)]
    index: u32,
    delta: Option<WireDelta>,
    message: Option<WireDelta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct WireDelta {
    content: Option<Content>,
    refusal: Option<String>,
    tool_calls: Option<Vec<WireCall>>,
}

#[derive(Deserialize)]
struct WireCall {
    index: Option<u32>,
    id: Option<String>,
    function: Option<WireFunction>,
}

#[derive(Deserialize)]
struct WireFunction {
    name: Option<String>,
    arguments: Option<RawJson>,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<BTreeMap<String, Option<u64>>>,
    completion_tokens_details: Option<BTreeMap<String, Option<u64>>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WireError {
    Text(String),
    Object {
        message: Option<String>,
        r#type: Option<String>,
        code: Option<serde_json::Value>,
    },
    Other(serde_json::Value),
}

/// Reads an answer that came whole.
pub(super) fn read_whole(body: &[u8]) -> Result<Chunk, ModelError> {
    let answer: WireAnswer = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    if answer.error.is_none() && answer.choices.as_ref().is_none_or(Vec::is_empty) {
        return Err(ModelError::Decode {
            message: "the answer has no choices".to_owned(),
        });
    }
    chunk_of(answer)
}

/// Reads the data of one event.
pub(super) fn read_event(data: &str) -> Result<Event, ModelError> {
    let data = data.trim();
    if data == "[DONE]" {
        return Ok(Event::Done);
    }
    if data.is_empty() {
        return Ok(Event::Chunk(Chunk::default()));
    }
    let answer: WireAnswer = serde_json::from_str(data).map_err(|error| unreadable(&error))?;
    chunk_of(answer).map(Event::Chunk)
}

fn unreadable(error: &serde_json::Error) -> ModelError {
    ModelError::Decode {
        message: shorten(&error.to_string()),
    }
}

fn chunk_of(answer: WireAnswer) -> Result<Chunk, ModelError> {
    if let Some(error) = answer.error {
        return Err(error.into_error());
    }
    let understood = answer.choices.is_some() || answer.usage.is_some();
    let mut chunk = Chunk {
        usage: answer.usage.map(WireUsage::into_usage),
        model: answer.model.filter(|model| !model.is_empty()),
        unknown_events: u32::from(!understood),
        ..Chunk::default()
    };
    for choice in answer.choices.unwrap_or_default() {
        // Only one answer is asked for; others cannot be mixed into it.
        if choice.index != 0 {
            chunk.unknown_events += 1;
            continue;
        }
        let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
        if let Some(reason) = reason {
            chunk.finish_reason = Some(FinishReason::from(reason.as_str()));
        }
        let Some(delta) = choice.delta.or(choice.message) else {
            continue;
        };
        if let Some(content) = delta.content {
            chunk.text.push_str(&content.text());
        }
        if let Some(refusal) = delta.refusal {
            chunk.text.push_str(&refusal);
        }
        for call in delta.tool_calls.unwrap_or_default() {
            chunk.tool_calls.push(call.into_delta()?);
        }
    }
    Ok(chunk)
}

impl WireCall {
    fn into_delta(self) -> Result<ToolCallDelta, ModelError> {
        let (name, arguments) = match self.function {
            Some(function) => (function.name, function.arguments),
            None => (None, None),
        };
        let arguments = match arguments {
            None => String::new(),
            Some(raw) if raw.is_null() => String::new(),
            Some(raw) if raw.as_str().starts_with('"') => {
                raw.decode().map_err(|error| ModelError::Decode {
                    message: shorten(&error.to_string()),
                })?
            }
            // Some servers send the object itself where the protocol wants its text.
            Some(raw) => raw.as_str().to_owned(),
        };
        Ok(ToolCallDelta {
            index: self.index,
            id: self.id,
            name,
            arguments,
        })
    }
}

impl WireUsage {
    /// OpenAI's counts by LangChain's names.
    fn into_usage(self) -> Usage {
        let details = |from: Option<BTreeMap<String, Option<u64>>>| {
            let counts = from.unwrap_or_default().into_iter();
            counts
                .filter_map(|(key, count)| {
                    let count = count.filter(|count| *count > 0)?;
                    let key = match key.as_str() {
                        "cached_tokens" => "cache_read",
                        other => other.strip_suffix("_tokens").unwrap_or(other),
                    };
                    Some((key.to_owned(), count))
                })
                .collect()
        };
        let sum = self.prompt_tokens.saturating_add(self.completion_tokens);
        Usage {
            input_tokens: self.prompt_tokens,
            output_tokens: self.completion_tokens,
            total_tokens: self.total_tokens.unwrap_or(sum),
            input_token_details: details(self.prompt_tokens_details),
            output_token_details: details(self.completion_tokens_details),
        }
    }
}

impl WireError {
    /// Code and message.
    fn parts(self) -> (String, String) {
        match self {
            Self::Text(message) => (String::new(), message),
            Self::Object {
                message,
                r#type,
                code,
            } => {
                let code = match code {
                    Some(serde_json::Value::String(code)) => code,
                    Some(serde_json::Value::Number(code)) => code.to_string(),
                    _ => String::new(),
                };
                let words = [code, r#type.unwrap_or_default()];
                (words.join(" "), message.unwrap_or_default())
            }
            Self::Other(value) => (String::new(), value.to_string()),
        }
    }

    /// An error that came with status 200, in the middle of a stream: only its words say what it is.
    fn into_error(self) -> ModelError {
        let (code, message) = self.parts();
        let status = code.split(' ').find_map(|word| word.parse::<u16>().ok());
        if let Some(status @ 400..=599) = status {
            return ModelError::from_status(status, &code, &message, None);
        }
        let status = match code.as_str() {
            code if speaks_of_context(code) || speaks_of_context(&message) => 400,
            code if code.contains("rate_limit") => 429,
            code if code.contains("invalid_request") => 400,
            code if code.contains("authentication") || code.contains("permission") => 401,
            _ => 500,
        };
        ModelError::from_status(status, &code, &message, None)
    }
}

/// Code and message of an error's body; empty if it is no JSON this crate knows.
pub(super) fn read_error(body: &[u8]) -> (String, String) {
    #[derive(Deserialize)]
    struct Body {
        error: Option<WireError>,
        message: Option<String>,
        detail: Option<serde_json::Value>,
    }
    let Ok(body) = serde_json::from_slice::<Body>(body) else {
        let text = String::from_utf8_lossy(body);
        let page = text.trim_start().starts_with('<');
        return (
            String::new(),
            if page {
                String::new()
            } else {
                text.into_owned()
            },
        );
    };
    match body.error {
        Some(error) => error.parts(),
        None => {
            let detail = body.detail.map(|detail| detail.to_string());
            (String::new(), body.message.or(detail).unwrap_or_default())
        }
    }
}

/// A wait of so many seconds. More than there can be are a wait too: the longest one.
pub(super) fn wait_in_seconds(seconds: f64) -> Option<Duration> {
    let too_long = (seconds > 0.0).then_some(Duration::MAX);
    Duration::try_from_secs_f64(seconds).ok().or(too_long)
}

/// The wait that `Retry-After` asks for: seconds, or a date, which counts from the server's own `Date` if it sent one.
pub(super) fn retry_after(
    value: &str,
    server_date: Option<&str>,
    now: SystemTime,
) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return wait_in_seconds(seconds);
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let server = server_date.and_then(|date| httpdate::parse_http_date(date).ok());
    let wait = until.duration_since(server.unwrap_or(now));
    Some(wait.unwrap_or_default())
}
