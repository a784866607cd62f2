//! One line of a script: what it may say, and what the model does then. Called by [`super`] only.

use std::time::Duration;

use serde::Deserialize;

use crate::chat::{Chunk, FinishReason, ToolCallDelta};
use crate::error::{ModelError, TimeLimit};
use crate::message::Usage;
use crate::raw::{Arguments, RawJson};

/// Longest delay a script may ask for, in milliseconds: an hour.
const MAX_DELAY_MS: u64 = 3_600_000;

/// Most pieces one scripted answer is streamed in.
const MAX_PIECES: usize = 64;

/// What one attempt does.
#[derive(Debug)]
pub(super) struct Line {
    /// How long the attempt takes.
    pub(super) delay: Duration,
    /// How it ends.
    pub(super) outcome: Result<Vec<Chunk>, ModelError>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    #[serde(default, deserialize_with = "present")]
    content: Option<Option<String>>,
    tool_calls: Option<Vec<WireCall>>,
    usage: Option<WireUsage>,
    error: Option<WireError>,
    #[serde(default)]
    delay_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireCall {
    id: Option<String>,
    name: String,
    arguments: Option<RawJson>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireUsage {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireError {
    kind: Kind,
    status: Option<u16>,
    retry_after: Option<f64>,
    #[serde(default)]
    message: String,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Timeout,
    Connection,
    Http,
}

/// Tells `"content": null`, an empty answer, from a line without `content`.
fn present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl Line {
    /// Reads a line; the error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("the line is blank".to_owned());
        }
        let wire: Wire = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if wire.delay_ms > MAX_DELAY_MS {
            return Err(format!("`delay_ms` is above {MAX_DELAY_MS}"));
        }
        let delay = Duration::from_millis(wire.delay_ms);
        let answers = wire.content.is_some() || wire.tool_calls.is_some();
        let outcome = match wire.error {
            Some(_) if answers || wire.usage.is_some() => {
                return Err("`error` stands beside an answer".to_owned());
            }
            Some(error) => Err(failure(&error)?),
            None if !answers => {
                return Err("neither `content`, `tool_calls` nor `error`".to_owned());
            }
            None => Ok(answer(wire)?),
        };
        Ok(Self { delay, outcome })
    }
}

fn failure(wire: &WireError) -> Result<ModelError, String> {
    if wire.kind != Kind::Http {
        if wire.status.is_some() || wire.retry_after.is_some() {
            return Err("`status` and `retry_after` belong to the kind `http`".to_owned());
        }
        return Ok(match wire.kind {
            Kind::Timeout => ModelError::Timeout {
                limit: TimeLimit::Server,
                after: None,
            },
            _ => ModelError::Connect {
                message: "scripted".to_owned(),
            },
        });
    }
    let status = wire.status.unwrap_or_default();
    if !(400..=599).contains(&status) {
        return Err("`status` of an http error is a number from 400 to 599".to_owned());
    }
    let retry_after = match wire.retry_after {
        Some(seconds) => Some(
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| "`retry_after` is a number of seconds".to_owned())?,
        ),
        None => None,
    };
    Ok(ModelError::from_status(
        status,
        "",
        &wire.message,
        retry_after,
    ))
}

/// The answer in the pieces a streaming provider would send: words, then calls, then usage.
fn answer(wire: Wire) -> Result<Vec<Chunk>, String> {
    let text = wire.content.flatten().unwrap_or_default();
    let mut chunks: Vec<Chunk> = Vec::new();
    for word in text.split_inclusive(' ') {
        let full = chunks.len() >= MAX_PIECES;
        match chunks.last_mut() {
            Some(last) if full => last.text.push_str(word),
            _ => chunks.push(Chunk::text(word)),
        }
    }
    let calls = wire.tool_calls.unwrap_or_default();
    let finish_reason = if calls.is_empty() {
        FinishReason::Stop
    } else {
        FinishReason::ToolCalls
    };
    for (index, call) in (0..).zip(calls) {
        let delta = ToolCallDelta {
            index: Some(index),
            id: call.id,
            name: Some(call.name),
            arguments: arguments(call.arguments)?,
            signature: None,
        };
        chunks.push(Chunk {
            tool_calls: vec![delta],
            ..Chunk::default()
        });
    }
    chunks.push(Chunk {
        usage: wire
            .usage
            .map(|u| Usage::new(u.input_tokens, u.output_tokens)),
        finish_reason: Some(finish_reason),
        ..Chunk::default()
    });
    Ok(chunks)
}

/// An object stands for itself, a string for the raw text a model might write.
fn arguments(raw: Option<RawJson>) -> Result<String, String> {
    let Some(raw) = raw else {
        return Ok(String::new());
    };
    if raw.as_str().starts_with('"') {
        return raw.decode().map_err(|error| error.to_string());
    }
    Arguments::try_from(raw)
        .map(|arguments| arguments.as_str().to_owned())
        .map_err(|_| "`arguments` is neither an object nor text".to_owned())
}
