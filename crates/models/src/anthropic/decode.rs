//! What Anthropic's server answers: whole answers and events. Pure; called by [`super`] only.
//!
//! Blocks are told apart by their index, however they interleave; what is unknown is counted.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::chat::{Chunk, FinishReason, ReasoningDelta, ToolCallDelta};
use crate::error::{ModelError, shorten};
use crate::http::{Event, EventReader, Refusal, WireError, count, counts, record};
use crate::message::Usage;
use crate::raw::RawJson;

#[derive(Deserialize)]
struct WireEvent {
    #[serde(default)]
    r#type: String,
    index: Option<u32>,
    message: Option<WireMessage>,
    content_block: Option<WireBlock>,
    delta: Option<WireDelta>,
    #[serde(default, deserialize_with = "record")]
    usage: Option<WireUsage>,
    error: Option<WireError>,
}

#[derive(Deserialize)]
struct WireMessage {
    model: Option<String>,
    content: Option<Vec<WireBlock>>,
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "record")]
    usage: Option<WireUsage>,
    error: Option<WireError>,
}

#[derive(Deserialize)]
struct WireBlock {
    #[serde(default)]
    r#type: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<RawJson>,
}

/// More of a block, or of the message. The fields say what it is, whatever its type is called.
#[derive(Deserialize)]
struct WireDelta {
    text: Option<String>,
    partial_json: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
struct WireUsage {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "counts")]
    output_tokens_details: BTreeMap<String, u64>,
}

/// Reads the events of one answer.
#[derive(Default)]
pub(super) struct Reader {
    usage: WireUsage,
    /// Inputs that came with the start of their call; they count if nothing follows.
    inputs: BTreeMap<Option<u32>, RawJson>,
}

/// Reads an answer that came whole.
pub(super) fn read_whole(body: &[u8]) -> Result<Vec<Chunk>, ModelError> {
    let message: WireMessage = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    if let Some(error) = message.error {
        return Err(Refusal::from(error).into_error());
    }
    let Some(content) = message.content else {
        return Err(ModelError::Decode {
            message: "the answer has no content".to_owned(),
        });
    };
    let mut chunks: Vec<Chunk> = (0..)
        .zip(content)
        .map(|(index, block)| {
            let input = block.input.clone();
            let mut chunk = block.start(Some(index));
            if let (Some(call), Some(input)) = (chunk.tool_calls.first_mut(), input) {
                input.as_str().clone_into(&mut call.arguments);
            }
            chunk
        })
        .collect();
    chunks.push(Chunk {
        usage: message.usage.map(|usage| usage.counted()),
        finish_reason: message.stop_reason.as_deref().map(finish_reason),
        model: message.model,
        ..Chunk::default()
    });
    Ok(chunks)
}

fn unreadable(error: &serde_json::Error) -> ModelError {
    ModelError::Decode {
        message: shorten(&error.to_string()),
    }
}

impl EventReader for Reader {
    fn read(&mut self, data: &str) -> Result<Event, ModelError> {
        if data.trim().is_empty() {
            return Ok(Event::chunk(Chunk::default()));
        }
        let event: WireEvent = serde_json::from_str(data).map_err(|error| unreadable(&error))?;
        if let Some(error) = event.error {
            return Err(Refusal::from(error).into_error());
        }
        Ok(Event::chunk(match event.r#type.as_str() {
            "message_stop" => return Ok(Event::Done),
            "ping" => Chunk::default(),
            "message_start" => self.start(event.message),
            "message_delta" => Chunk {
                usage: event.usage.map(|usage| self.count(usage)),
                finish_reason: event
                    .delta
                    .and_then(|delta| delta.stop_reason)
                    .map(|reason| finish_reason(&reason)),
                ..Chunk::default()
            },
            "content_block_start" => match event.content_block {
                Some(block) => self.block(event.index, block),
                None => unknown(),
            },
            "content_block_delta" => match event.delta {
                Some(delta) => self.delta(event.index, delta),
                None => unknown(),
            },
            "content_block_stop" => self.stop(event.index),
            _ => unknown(),
        }))
    }
}

fn unknown() -> Chunk {
    Chunk {
        unknown_events: 1,
        ..Chunk::default()
    }
}

impl Reader {
    fn start(&mut self, message: Option<WireMessage>) -> Chunk {
        let Some(message) = message else {
            return unknown();
        };
        Chunk {
            usage: message.usage.map(|usage| self.count(usage)),
            model: message.model,
            ..Chunk::default()
        }
    }

    fn block(&mut self, index: Option<u32>, block: WireBlock) -> Chunk {
        if let Some(input) = &block.input
            && !["{}", "null", "\"\""].contains(&input.as_str())
        {
            self.inputs.insert(index, input.clone());
        }
        block.start(index)
    }

    fn delta(&mut self, index: Option<u32>, delta: WireDelta) -> Chunk {
        if let Some(arguments) = delta.partial_json {
            if !arguments.is_empty() {
                self.inputs.remove(&index);
            }
            return call(ToolCallDelta {
                index,
                arguments,
                ..ToolCallDelta::default()
            });
        }
        if let Some(text) = delta.text {
            return Chunk::text(text);
        }
        if delta.thinking.is_none() && delta.signature.is_none() {
            return unknown();
        }
        thought(ReasoningDelta {
            index,
            text: delta.thinking.unwrap_or_default(),
            signature: delta.signature.unwrap_or_default(),
            redacted: None,
        })
    }

    fn stop(&mut self, index: Option<u32>) -> Chunk {
        match self.inputs.remove(&index) {
            Some(input) => call(ToolCallDelta {
                index,
                arguments: input.as_str().to_owned(),
                ..ToolCallDelta::default()
            }),
            None => Chunk::default(),
        }
    }

    /// What the answer cost so far: the server says at the start what came in and at the end what went out.
    fn count(&mut self, new: WireUsage) -> Usage {
        let old = std::mem::take(&mut self.usage);
        self.usage = WireUsage {
            input_tokens: new.input_tokens.or(old.input_tokens),
            output_tokens: new.output_tokens.or(old.output_tokens),
            cache_read_input_tokens: new.cache_read_input_tokens.or(old.cache_read_input_tokens),
            cache_creation_input_tokens: new
                .cache_creation_input_tokens
                .or(old.cache_creation_input_tokens),
            output_tokens_details: match new.output_tokens_details.is_empty() {
                true => old.output_tokens_details,
                false => new.output_tokens_details,
            },
        };
        self.usage.counted()
    }
}

fn call(delta: ToolCallDelta) -> Chunk {
    Chunk {
        tool_calls: vec![delta],
        ..Chunk::default()
    }
}

fn thought(delta: ReasoningDelta) -> Chunk {
    Chunk {
        reasoning: vec![delta],
        ..Chunk::default()
    }
}

impl WireBlock {
    /// The block as it begins; a call without its input.
    fn start(self, index: Option<u32>) -> Chunk {
        match self.r#type.as_str() {
            "text" => Chunk::text(self.text.unwrap_or_default()),
            "thinking" => thought(ReasoningDelta {
                index,
                text: self.thinking.unwrap_or_default(),
                signature: self.signature.unwrap_or_default(),
                redacted: None,
            }),
            "redacted_thinking" => thought(ReasoningDelta {
                index,
                redacted: self.data,
                ..ReasoningDelta::default()
            }),
            "tool_use" => call(ToolCallDelta {
                index,
                id: self.id,
                name: self.name,
                ..ToolCallDelta::default()
            }),
            _ => unknown(),
        }
    }
}

impl WireUsage {
    /// Anthropic's counts by LangChain's names: the input there includes what a cache read or kept.
    fn counted(&self) -> Usage {
        let cached = [
            ("cache_read", self.cache_read_input_tokens.unwrap_or(0)),
            (
                "cache_creation",
                self.cache_creation_input_tokens.unwrap_or(0),
            ),
        ];
        let mut input = self.input_tokens.unwrap_or(0);
        for (_, tokens) in cached {
            input = input.saturating_add(tokens);
        }
        let thought = self.output_tokens_details.get("thinking_tokens").copied();
        let some = |(name, tokens): (&str, u64)| (tokens > 0).then(|| (name.to_owned(), tokens));
        Usage {
            input_token_details: cached.into_iter().filter_map(some).collect(),
            output_token_details: some(("reasoning", thought.unwrap_or(0)))
                .into_iter()
                .collect(),
            ..Usage::new(input, self.output_tokens.unwrap_or(0))
        }
    }
}

fn finish_reason(word: &str) -> FinishReason {
    match word {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}
