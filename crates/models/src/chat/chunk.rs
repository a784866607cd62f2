//! [`Chunk`]: one piece of an answer, whoever streams it.
//!
//! Providers make chunks, the [`Assembler`](super::Assembler) joins them, and the stream mode `messages` shows them.
//! A chunk says only what the provider said; ids and order are the assembler's business.

use serde::{Serialize, Serializer};
use serde_json::json;

use crate::message::Usage;

/// One piece of an answer. Every field may be absent from any piece.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    /// More text.
    pub text: String,
    /// More of what the model thought before it said it; no part of the answer.
    pub reasoning: Vec<ReasoningDelta>,
    /// More of some tool calls.
    pub tool_calls: Vec<ToolCallDelta>,
    /// What the answer cost, so far or in all; the last word counts.
    pub usage: Option<Usage>,
    /// Why the model stopped.
    pub finish_reason: Option<FinishReason>,
    /// The model that answers.
    pub model: Option<String>,
    /// The provider it answers through, by its name in a [`ModelSpec`](crate::ModelSpec).
    pub provider: Option<String>,
    /// Which attempt this is, from 1; 0 if nobody counted.
    pub attempt: u32,
    /// Events that were not understood.
    pub unknown_events: u32,
}

/// More of one tool call. Providers leave out what they like, so every field is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCallDelta {
    /// Which call of the answer this belongs to.
    pub index: Option<u32>,
    /// The call's id.
    pub id: Option<String>,
    /// The tool's name, or more of it.
    pub name: Option<String>,
    /// More of the arguments' text.
    pub arguments: String,
    /// What the provider wants back with this call in the next request, as it stands (Gemini's thought signature).
    pub signature: Option<String>,
}

/// More of what a model thinks. Some providers sign it and want it back unchanged with the calls that followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReasoningDelta {
    /// Which block of the answer this belongs to; without it the last one.
    pub index: Option<u32>,
    /// More text.
    pub text: String,
    /// More of the block's signature.
    pub signature: String,
    /// Reasoning that the provider encrypted instead of showing it.
    pub redacted: Option<String>,
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// The answer reached its longest length.
    Length,
    /// It wants tools called.
    ToolCalls,
    /// The provider held the answer back.
    ContentFilter,
    /// Another reason, in the provider's word.
    Other(String),
}

impl FinishReason {
    /// OpenAI's word for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Other(word) => word,
        }
    }
}

impl From<&str> for FinishReason {
    fn from(word: &str) -> Self {
        match word {
            "stop" => Self::Stop,
            "length" => Self::Length,
            "tool_calls" => Self::ToolCalls,
            "content_filter" => Self::ContentFilter,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl Chunk {
    /// A piece that is only text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A piece that is only reasoning.
    pub fn reasoning(text: impl Into<String>) -> Self {
        let delta = ReasoningDelta {
            text: text.into(),
            ..ReasoningDelta::default()
        };
        Self {
            reasoning: vec![delta],
            ..Self::default()
        }
    }

    /// Whether the model has said or thought something in this piece, and not only its server about it.
    pub fn is_spoken(&self) -> bool {
        !self.text.is_empty() || !self.tool_calls.is_empty() || !self.reasoning.is_empty()
    }

    /// The piece as LangChain's `AIMessageChunk`, which clients of the stream mode `messages` expect;
    /// `message_id` is that of the message being assembled.
    pub fn to_message_chunk(&self, message_id: &str) -> serde_json::Value {
        let mut chunk = json!({ "type": "AIMessageChunk", "content": self.text, "id": message_id });
        let thoughts = self.reasoning.iter().map(|delta| delta.text.as_str());
        let thoughts: String = thoughts.collect();
        if !thoughts.is_empty() {
            chunk["additional_kwargs"] = json!({ "reasoning_content": thoughts });
        }
        if !self.tool_calls.is_empty() {
            chunk["tool_call_chunks"] = json!(self.tool_calls);
        }
        if let Some(usage) = &self.usage {
            chunk["usage_metadata"] = json!(usage);
        }
        if let Some(reason) = &self.finish_reason {
            chunk["response_metadata"] = json!({ "finish_reason": reason.as_str() });
        }
        chunk
    }
}

impl Serialize for ToolCallDelta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let chunk = json!({
            "name": self.name, "args": self.arguments, "id": self.id, "index": self.index,
            "type": "tool_call_chunk",
        });
        chunk.serialize(serializer)
    }
}
