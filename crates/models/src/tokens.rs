//! What a request will cost in tokens, estimated before it is sent.
//!
//! Used to reserve budget, to cut histories and to refuse a request that cannot fit. No tokenizer: each provider
//! has its own, and an estimate that errs a little upwards is what a reservation needs.

use crate::chat::{ChatRequest, ResponseFormat};
use crate::message::{Body, Content, Message};

/// Tokens that every message costs beside its text: role, separators.
const PER_MESSAGE: usize = 4;

/// The estimated tokens of a request, by where they come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// System messages.
    pub system: usize,
    /// All other messages, with their calls.
    pub messages: usize,
    /// Names, descriptions and schemas of the tools, and the schema of a demanded answer.
    pub tools: usize,
}

impl Estimate {
    /// Counts everything that is sent: a history that fits alone may not fit beside its tool schemas.
    pub fn of(request: &ChatRequest) -> Self {
        let mut estimate = Self::default();
        for message in &request.messages {
            let tokens = estimate_message(message);
            match message.body {
                Body::System => estimate.system = estimate.system.saturating_add(tokens),
                _ => estimate.messages = estimate.messages.saturating_add(tokens),
            }
        }
        for tool in &request.tools {
            let text = [&tool.name, &tool.description];
            let words: usize = text.iter().map(|text| estimate_text(text)).sum();
            estimate.tools += words + estimate_text(&tool.schema.to_string()) + PER_MESSAGE;
        }
        if let ResponseFormat::JsonSchema { schema, .. } = &request.response_format {
            estimate.tools += estimate_text(&schema.to_string());
        }
        estimate
    }

    /// All of it.
    pub fn total(&self) -> usize {
        let sum = self.system.saturating_add(self.messages);
        sum.saturating_add(self.tools)
    }
}

/// The estimated tokens of one message, with its calls.
pub fn estimate_message(message: &Message) -> usize {
    let content = match &message.content {
        Content::Text(text) => estimate_text(text),
        Content::Blocks(blocks) => blocks.iter().map(|b| estimate_text(b.as_str())).sum(),
    };
    let calls = message.tool_calls().iter();
    let calls: usize = calls
        .map(|call| estimate_text(&call.name) + estimate_text(call.args.as_str()) + PER_MESSAGE)
        .sum();
    let invalid = message.invalid_tool_calls().iter();
    let invalid: usize = invalid
        .map(|call| estimate_text(&call.args) + PER_MESSAGE)
        .sum();
    PER_MESSAGE + content + calls + invalid
}

/// The estimated tokens of a text: four ASCII characters a token, every other character a token of its own.
pub fn estimate_text(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().filter(|c| !c.is_ascii()).count();
    ascii.div_ceil(4) + others
}

#[cfg(test)]
mod tests;
