//! [`Assembler`]: joins the pieces of an answer. Pure, apart from the id it draws when it starts.
//!
//! Providers interleave, repeat and leave out fields of tool-call pieces in ways of their own; the rules here
//! serve all of them, so that no provider needs a second assembler.

use super::reasoning::{Place, Thoughts};
use crate::chat::{ChatReply, Chunk, FinishReason, ToolCallDelta};
use crate::error::ModelError;
use crate::message::{AiBody, Body, Message, ToolCall, Usage, fresh_id};
use crate::raw::RawJson;

/// Largest answer, text and arguments together, in bytes.
pub const MAX_REPLY_BYTES: usize = 8 * 1024 * 1024;

/// Most tool calls in one answer.
pub const MAX_CALLS: usize = 1024;

/// Joins chunks into a [`ChatReply`].
///
/// Which call a piece belongs to: the one of its index; without an index the one of its id; without both
/// the last one, unless the piece names a tool, which starts another call. A piece with a name and an id other than
/// its index's call also starts another call (some servers give every call the same index).
///
/// ```
/// use paraph_models::{Assembler, Chunk, ToolCallDelta};
/// let piece = |name: Option<&str>, arguments: &str| Chunk {
///     tool_calls: vec![ToolCallDelta { index: Some(0), name: name.map(Into::into), arguments: arguments.into(), ..ToolCallDelta::default() }],
///     ..Chunk::default()
/// };
/// let mut answer = Assembler::new();
/// answer.push(piece(Some("search"), "{\"q\":"))?;
/// answer.push(piece(None, "\"rust\"}"))?;
/// let reply = answer.finish()?;
/// assert_eq!(reply.message.tool_calls()[0].args.as_str(), "{\"q\":\"rust\"}");
/// # Ok::<(), paraph_models::ModelError>(())
/// ```
#[derive(Debug)]
pub struct Assembler {
    message_id: String,
    text: String,
    thoughts: Thoughts,
    calls: Vec<Pending>,
    usage: Option<Usage>,
    finish_reason: Option<FinishReason>,
    model: Option<String>,
    provider: Option<String>,
    attempts: u32,
    unknown_events: u32,
    bytes: usize,
}

/// A call in the making.
#[derive(Debug, Default)]
struct Pending {
    index: Option<u32>,
    id: String,
    name: String,
    arguments: String,
    signature: Option<String>,
}

/// The field of a tool call for what its provider wants back with it.
pub(crate) const CALL_SIGNATURE: &str = "thought_signature";

impl Assembler {
    /// Starts an answer under a fresh message id.
    pub fn new() -> Self {
        Self::with_id(fresh_id())
    }

    /// Starts an answer under a given message id; the rest is then a function of the chunks alone.
    pub fn with_id(message_id: impl Into<String>) -> Self {
        Self {
            message_id: message_id.into(),
            text: String::new(),
            thoughts: Thoughts::default(),
            calls: Vec::new(),
            usage: None,
            finish_reason: None,
            model: None,
            provider: None,
            attempts: 0,
            unknown_events: 0,
            bytes: 0,
        }
    }

    /// The id that the message has, and that its chunks are shown under.
    pub fn message_id(&self) -> &str {
        &self.message_id
    }

    /// Adds the next piece.
    ///
    /// # Errors
    /// [`ModelError::Decode`] if the answer grows beyond [`MAX_REPLY_BYTES`] or [`MAX_CALLS`].
    pub fn push(&mut self, chunk: Chunk) -> Result<(), ModelError> {
        for delta in chunk.reasoning {
            let hidden = delta.redacted.as_ref().map_or(0, String::len);
            self.grow(delta.text.len() + delta.signature.len() + hidden)?;
            let at = Place {
                text: self.text.len(),
                calls: self.calls.len(),
            };
            if !self.thoughts.push(delta, at) {
                return Err(too_large("of too many blocks of reasoning".to_owned()));
            }
        }
        self.grow(chunk.text.len())?;
        self.text.push_str(&chunk.text);
        for delta in chunk.tool_calls {
            self.push_call(delta)?;
        }
        self.usage = chunk.usage.or(self.usage.take());
        self.finish_reason = chunk.finish_reason.or(self.finish_reason.take());
        self.model = chunk.model.or(self.model.take());
        self.provider = chunk.provider.or(self.provider.take());
        self.attempts = self.attempts.max(chunk.attempt);
        self.unknown_events = self.unknown_events.saturating_add(chunk.unknown_events);
        Ok(())
    }

    fn push_call(&mut self, delta: ToolCallDelta) -> Result<(), ModelError> {
        let id = delta.id.filter(|id| !id.is_empty());
        let name = delta.name.filter(|name| !name.is_empty());
        let signed = delta.signature.as_ref().map_or(0, String::len);
        self.grow(delta.arguments.len() + signed + name.as_ref().map_or(0, String::len))?;
        let at = match self.place(delta.index, id.as_deref(), name.is_some()) {
            Some(at) => at,
            None if self.calls.len() >= MAX_CALLS => {
                return Err(too_large(format!("more than {MAX_CALLS} tool calls")));
            }
            None => {
                self.calls.push(Pending {
                    index: delta.index,
                    ..Pending::default()
                });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else {
            return Ok(());
        };
        if let Some(id) = id
            && call.id.is_empty()
        {
            call.id = id;
        }
        // Some servers repeat the whole name in every piece, others send it in parts.
        if let Some(name) = name
            && call.name != name
        {
            call.name.push_str(&name);
        }
        call.arguments.push_str(&delta.arguments);
        call.signature = delta.signature.or(call.signature.take());
        Ok(())
    }

    /// The call a piece belongs to; `None` if it starts one.
    fn place(&self, index: Option<u32>, id: Option<&str>, named: bool) -> Option<usize> {
        let last_where = |matches: &dyn Fn(&Pending) -> bool| self.calls.iter().rposition(matches);
        let other_id = |call: &Pending| id.is_some_and(|id| !call.id.is_empty() && call.id != id);
        if let Some(index) = index {
            let at = last_where(&|call| call.index == Some(index))?;
            let starts_another = named && self.calls.get(at).is_some_and(other_id);
            return (!starts_another).then_some(at);
        }
        if let Some(id) = id
            && let Some(at) = last_where(&|call| call.id == id)
        {
            return Some(at);
        }
        if named || id.is_some() {
            // The first piece may have had neither name nor id yet.
            let last = self.calls.last()?;
            let open = (last.name.is_empty() || !named) && !other_id(last);
            return (open && last.index.is_none()).then(|| self.calls.len() - 1);
        }
        self.calls.len().checked_sub(1)
    }

    fn grow(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_REPLY_BYTES {
            return Err(too_large(format!("larger than {MAX_REPLY_BYTES} bytes")));
        }
        Ok(())
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// [`ModelError::Empty`] if there is neither text nor a call.
    pub fn finish(mut self) -> Result<ChatReply, ModelError> {
        if self.text.is_empty() && self.calls.is_empty() {
            return Err(ModelError::Empty {
                usage: self.usage.map(Box::new),
            });
        }
        // Pieces of parallel calls may start in any order; the index says the model's.
        if self.calls.iter().all(|call| call.index.is_some()) {
            self.calls.sort_by_key(|call| call.index);
        }
        let mut body = AiBody {
            usage: self.usage.clone().map(Box::new),
            ..AiBody::default()
        };
        for (n, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            let id = if call.id.is_empty() {
                format!("call-{}-{n}", self.message_id)
            } else {
                call.id
            };
            let signature = call.signature.map(|signature| RawJson::of(&signature));
            match ToolCall::from_text(id, Some(call.name), call.arguments) {
                Ok(mut call) => {
                    if let Some(Ok(signature)) = signature {
                        call.extra.insert(CALL_SIGNATURE.to_owned(), signature);
                    }
                    body.tool_calls.push(call);
                }
                Err(invalid) => body.invalid_tool_calls.push(invalid),
            }
        }
        let mut message = Message {
            id: self.message_id,
            ..Message::new(Body::Ai(body), self.text)
        };
        self.thoughts.keep(self.provider.as_deref(), &mut message);
        let metadata = [
            (
                "finish_reason",
                self.finish_reason.as_ref().map(FinishReason::as_str),
            ),
            ("model_name", self.model.as_deref()),
        ];
        for (key, word) in metadata {
            if let Some(word) = word
                && let Ok(word) = RawJson::of(word)
            {
                message.response_metadata.insert(key.to_owned(), word);
            }
        }
        Ok(ChatReply {
            message,
            usage: self.usage,
            finish_reason: self.finish_reason,
            model: self.model,
            provider: self.provider,
            attempts: self.attempts.max(1),
            unknown_events: self.unknown_events,
        })
    }
}

impl Default for Assembler {
    fn default() -> Self {
        Self::new()
    }
}

fn too_large(problem: String) -> ModelError {
    ModelError::Decode {
        message: format!("the answer is {problem}"),
    }
}

#[cfg(test)]
mod tests;
