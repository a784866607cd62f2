//! What Google's server answers: whole answers and events, which have one form. Pure; called by [`super`] only.

use serde::Deserialize;

use crate::chat::{Chunk, FinishReason, ReasoningDelta, ToolCallDelta};
use crate::error::{ModelError, shorten};
use crate::http::{Event, EventReader, Refusal, WireError, count, record};
use crate::message::Usage;
use crate::raw::RawJson;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAnswer {
    candidates: Option<Vec<Candidate>>,
    prompt_feedback: Option<Feedback>,
    #[serde(default, deserialize_with = "record")]
    usage_metadata: Option<WireUsage>,
    model_version: Option<String>,
    error: Option<WireError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    index: u32,
    content: Option<WireContent>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct WireContent {
    parts: Option<Vec<WirePart>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePart {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    thought_signature: Option<String>,
    function_call: Option<WireCall>,
}

#[derive(Deserialize)]
struct WireCall {
    id: Option<String>,
    name: Option<String>,
    args: Option<RawJson>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
    block_reason_message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireUsage {
    #[serde(default, deserialize_with = "count")]
    prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cached_content_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    thoughts_token_count: Option<u64>,
}

/// Reads the events of one answer.
#[derive(Default)]
pub(super) struct Reader {
    /// Calls so far: they come whole, one after the other, and unnumbered.
    calls: u32,
    /// Signatures so far that belong to text.
    signed: u32,
}

/// Reads an answer that came whole.
pub(super) fn read_whole(body: &[u8]) -> Result<Vec<Chunk>, ModelError> {
    let answer: WireAnswer = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    if answer.error.is_none() && answer.candidates.is_none() && answer.prompt_feedback.is_none() {
        return Err(ModelError::Decode {
            message: "the answer has no candidates".to_owned(),
        });
    }
    Reader::default().chunks(answer)
}

impl EventReader for Reader {
    fn read(&mut self, data: &str) -> Result<Event, ModelError> {
        if data.trim().is_empty() {
            return Ok(Event::chunk(Chunk::default()));
        }
        let answer: WireAnswer = serde_json::from_str(data).map_err(|error| unreadable(&error))?;
        self.chunks(answer).map(Event::Chunks)
    }
}

fn unreadable(error: &serde_json::Error) -> ModelError {
    ModelError::Decode {
        message: shorten(&error.to_string()),
    }
}

impl Reader {
    fn chunks(&mut self, answer: WireAnswer) -> Result<Vec<Chunk>, ModelError> {
        if let Some(error) = answer.error {
            return Err(Refusal::from(error).into_error());
        }
        if let Some(error) = answer.prompt_feedback.and_then(Feedback::into_error) {
            return Err(error);
        }
        let understood = answer.candidates.is_some() || answer.usage_metadata.is_some();
        let mut chunks = Vec::new();
        let mut last = Chunk {
            usage: answer.usage_metadata.map(WireUsage::into_usage),
            model: answer.model_version,
            unknown_events: u32::from(!understood),
            ..Chunk::default()
        };
        for candidate in answer.candidates.unwrap_or_default() {
            // Only one answer is asked for; others cannot be mixed into it.
            if candidate.index != 0 {
                last.unknown_events += 1;
                continue;
            }
            let parts = candidate.content.and_then(|content| content.parts);
            for part in parts.unwrap_or_default() {
                chunks.push(self.part(part));
            }
            if let Some(word) = candidate.finish_reason {
                last.finish_reason = Some(self.finish_reason(&word, candidate.finish_message)?);
            }
        }
        chunks.push(last);
        Ok(chunks)
    }

    fn part(&mut self, part: WirePart) -> Chunk {
        if let Some(call) = part.function_call {
            let delta = ToolCallDelta {
                index: Some(self.calls),
                id: call.id,
                name: call.name,
                arguments: call
                    .args
                    .map_or_else(String::new, |args| args.as_str().to_owned()),
                signature: part.thought_signature,
            };
            self.calls += 1;
            return Chunk {
                tool_calls: vec![delta],
                ..Chunk::default()
            };
        }
        let mut chunk = Chunk::default();
        let known = part.text.is_some() || part.thought_signature.is_some();
        if let Some(signature) = part.thought_signature {
            // It stands before the text that it came with, which is how its place is kept.
            self.signed += 1;
            chunk.reasoning.push(ReasoningDelta {
                index: Some(self.signed),
                signature,
                ..ReasoningDelta::default()
            });
        }
        match part.text {
            Some(text) if part.thought => chunk.reasoning.push(ReasoningDelta {
                index: Some(0),
                text,
                ..ReasoningDelta::default()
            }),
            Some(text) => chunk.text = text,
            None => chunk.unknown_events = u32::from(!known),
        }
        chunk
    }

    fn finish_reason(
        &self,
        word: &str,
        message: Option<String>,
    ) -> Result<FinishReason, ModelError> {
        Ok(match word {
            "STOP" if self.calls > 0 => FinishReason::ToolCalls,
            "STOP" => FinishReason::Stop,
            "MAX_TOKENS" => FinishReason::Length,
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
                FinishReason::ContentFilter
            }
            // What there is of the answer is no answer.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
                let said = shorten(&message.unwrap_or_default());
                return Err(ModelError::Decode {
                    message: format!("the model's tool call was none ({word}) {said}"),
                });
            }
            other => FinishReason::Other(other.to_owned()),
        })
    }
}

impl Feedback {
    /// The server would not show the model the request.
    fn into_error(self) -> Option<ModelError> {
        let reason = self.block_reason?;
        let said = shorten(&self.block_reason_message.unwrap_or_default());
        Some(ModelError::BadRequest {
            message: format!("the request was blocked ({reason}) {said}"),
        })
    }
}

impl WireUsage {
    /// Google's counts by LangChain's names: the output there includes what was thought.
    fn into_usage(self) -> Usage {
        let input = self.prompt_token_count.unwrap_or(0);
        let input = input.saturating_add(self.tool_use_prompt_token_count.unwrap_or(0));
        let thoughts = self.thoughts_token_count.unwrap_or(0);
        let output = self.candidates_token_count.unwrap_or(0);
        let output = output.saturating_add(thoughts);
        let cached = self.cached_content_token_count.unwrap_or(0);
        let some = |name: &str, tokens: u64| (tokens > 0).then(|| (name.to_owned(), tokens));
        Usage {
            input_token_details: some("cache_read", cached).into_iter().collect(),
            output_token_details: some("reasoning", thoughts).into_iter().collect(),
            ..Usage::new(input, output)
        }
    }
}
