//! What an OpenAI-compatible server answers: whole answers and events. Pure; called by [`super`] only.
//!
//! Lenient in what may be absent, strict in what it makes of it: nothing unreadable is passed over in silence.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::chat::{Chunk, FinishReason, ReasoningDelta, ToolCallDelta};
use crate::error::{ModelError, shorten};
use crate::http::{Event, Refusal, WireError, count, counts, record};
use crate::message::{Content, Usage};
use crate::parts::is_reasoning;
use crate::raw::RawJson;

#[derive(Deserialize)]
struct WireAnswer {
    choices: Option<Vec<WireChoice>>,
    #[serde(default, deserialize_with = "record")]
    usage: Option<WireUsage>,
    model: Option<String>,
    error: Option<WireError>,
}

#[derive(Deserialize)]
struct WireChoice {
    index: Option<u32>,
    delta: Option<WireDelta>,
    message: Option<WireDelta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct WireDelta {
    content: Option<Content>,
    refusal: Option<String>,
    /// DeepSeek's, llama.cpp's and vLLM's name for what the model thinks.
    reasoning_content: Option<String>,
    /// OpenRouter's, Groq's and Ollama's.
    reasoning: Option<RawJson>,
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
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    total_tokens: Option<u64>,
    #[serde(default, deserialize_with = "counts")]
    prompt_tokens_details: BTreeMap<String, u64>,
    #[serde(default, deserialize_with = "counts")]
    completion_tokens_details: BTreeMap<String, u64>,
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
        return Ok(Event::chunk(Chunk::default()));
    }
    let answer: WireAnswer = serde_json::from_str(data).map_err(|error| unreadable(&error))?;
    chunk_of(answer).map(Event::chunk)
}

fn unreadable(error: &serde_json::Error) -> ModelError {
    ModelError::Decode {
        message: shorten(&error.to_string()),
    }
}

fn chunk_of(answer: WireAnswer) -> Result<Chunk, ModelError> {
    if let Some(error) = answer.error {
        return Err(Refusal::from(error).into_error());
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
        if choice.index.unwrap_or(0) != 0 {
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
        let thought = delta.thought();
        if !thought.is_empty() {
            chunk.reasoning.push(ReasoningDelta {
                text: thought,
                ..ReasoningDelta::default()
            });
        }
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

impl WireDelta {
    /// What the model thinks: in a field of its own under one of two names, or as a block of the content.
    fn thought(&self) -> String {
        if let Some(thought) = self
            .reasoning_content
            .as_ref()
            .filter(|text| !text.is_empty())
        {
            return thought.clone();
        }
        if let Some(thought) = self.reasoning.as_ref().and_then(|raw| raw.decode().ok()) {
            return thought;
        }
        match &self.content {
            Some(Content::Blocks(blocks)) => blocks
                .iter()
                .filter(|block| is_reasoning(block))
                .map(thought_of_block)
                .collect(),
            _ => String::new(),
        }
    }
}

/// Mistral's block: `{"type":"thinking","thinking":[{"type":"text","text":…}]}`, or with plain text.
fn thought_of_block(block: &RawJson) -> String {
    #[derive(Deserialize)]
    struct Thinking {
        thinking: Option<Content>,
    }
    let block = block.decode::<Thinking>().ok();
    let thinking = block.and_then(|block| block.thinking);
    thinking.map_or_else(String::new, |content| content.text().into_owned())
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
            signature: None,
        })
    }
}

impl WireUsage {
    /// OpenAI's counts by LangChain's names.
    fn into_usage(self) -> Usage {
        let details = |from: BTreeMap<String, u64>| {
            from.into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(key, count)| {
                    let key = match key.as_str() {
                        "cached_tokens" => "cache_read",
                        other => other.strip_suffix("_tokens").unwrap_or(other),
                    };
                    (key.to_owned(), count)
                })
                .collect()
        };
        let input_tokens = self.prompt_tokens.unwrap_or(0);
        let output_tokens = self.completion_tokens.unwrap_or(0);
        let sum = input_tokens.saturating_add(output_tokens);
        Usage {
            input_tokens,
            output_tokens,
            total_tokens: self.total_tokens.unwrap_or(sum),
            input_token_details: details(self.prompt_tokens_details),
            output_token_details: details(self.completion_tokens_details),
        }
    }
}
