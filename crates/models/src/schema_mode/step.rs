//! What a model wrote, as a call or as the final answer. Pure; called by [`super`] only.

use super::shape::Shape;
use crate::chat::{Chunk, FinishReason, ToolCallDelta};
use crate::raw::Fields;
use crate::structured::json_in;

/// One step of a model.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// It wants a tool called.
    Call {
        name: String,
        /// As it wrote them, digit by digit.
        arguments: String,
    },
    /// It has its answer.
    Answer(String),
}

impl Step {
    /// Reads a step; the error says what is wrong with it, in words for the model.
    pub(super) fn read(text: &str, shape: &Shape) -> Result<Self, String> {
        let (exact, value) = json_in(text)?;
        if !value.is_object() {
            return Err("it is no JSON object".to_owned());
        }
        let mut fields: Fields = serde_json::from_str(exact).map_err(|error| error.to_string())?;
        let action = fields.remove("action").ok_or("it has no `action`")?;
        let action: String = action.decode().map_err(|_| "its `action` is no text")?;
        if action != shape.final_action() {
            let arguments = fields.remove("arguments");
            return Ok(Self::Call {
                name: action,
                arguments: arguments.map_or_else(|| "{}".to_owned(), |raw| raw.as_str().to_owned()),
            });
        }
        let answer = fields.remove("answer").ok_or("it has no `answer`")?;
        if !shape.answer_is_text {
            return Ok(Self::Answer(answer.as_str().to_owned()));
        }
        match answer.decode::<String>() {
            Ok(answer) if answer.trim().is_empty() => Err("its `answer` is empty".to_owned()),
            Ok(answer) => Ok(Self::Answer(answer)),
            Err(_) => Err("its `answer` is no text".to_owned()),
        }
    }

    /// The step as a provider with tool calls would stream it.
    pub(super) fn chunk(self) -> Chunk {
        match self {
            Self::Answer(text) => Chunk {
                finish_reason: Some(FinishReason::Stop),
                ..Chunk::text(text)
            },
            Self::Call { name, arguments } => Chunk {
                tool_calls: vec![ToolCallDelta {
                    index: Some(0),
                    name: Some(name),
                    arguments,
                    ..ToolCallDelta::default()
                }],
                finish_reason: Some(FinishReason::ToolCalls),
                ..Chunk::default()
            },
        }
    }
}
