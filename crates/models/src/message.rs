//! [`Message`]: one turn of a conversation, in LangChain's JSON shape.
//!
//! Agents keep messages in their state, chat models send and receive them, existing clients render them.
//! A message has its id from the moment it is made or read; nothing later may invent one, or a replay would
//! see other ids than the run it repeats. The JSON side is in `message/wire.rs`.

mod wire;

pub(crate) use wire::OPENAI_ROLE;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::raw::{Arguments, Fields, RawJson};

/// The id of a removal that means "every message so far" (LangGraph's marker).
pub const REMOVE_ALL: &str = "__remove_all__";

/// One message of a conversation.
///
/// # JSON
/// Written as LangChain writes it: `type` (`human`, `ai`, `system`, `tool`, `remove`), `content`, `id`, and what
/// the role has; empty fields are left out. Read leniently: also `role` (`user`, `assistant`, `developer`, …),
/// a pair `["user", "text"]`, a plain string (a human message), OpenAI's form of tool calls, and
/// LangChain's `lc` constructor form. Fields this crate does not know are kept in [`Message::extra`] and written again;
/// a known field on a role that cannot have it is an error.
///
/// ```
/// use paraph_models::Message;
/// let message: Message = serde_json::from_str(r#"{"role": "user", "content": "Hello", "id": "m1"}"#)?;
/// assert_eq!(serde_json::to_string(&message)?, r#"{"type":"human","content":"Hello","id":"m1"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Unique within a conversation: a time-ordered UUID unless whoever made the message gave another.
    pub id: String,
    /// Who speaks, with what only that speaker has.
    pub body: Body,
    /// What is said.
    pub content: Content,
    /// The speaker's name, or the tool's.
    pub name: Option<String>,
    /// LangChain's bag for provider-specific request fields.
    pub additional_kwargs: Fields,
    /// LangChain's bag for provider-specific answer fields, such as `finish_reason`.
    pub response_metadata: Fields,
    /// Fields nobody here understands, kept as they came.
    pub extra: Fields,
}

/// Who speaks, and the parts of a [`Message`] that only this speaker has.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// The person.
    Human,
    /// The instructions of the application.
    System,
    /// The model.
    Ai(AiBody),
    /// The result of a tool call.
    Tool(ToolBody),
    /// Not a turn: an order to [`Messages::add`](crate::Messages::add) to remove the message of this id.
    Remove,
}

/// What only a model's message has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AiBody {
    /// The tools the model wants called, in its order.
    pub tool_calls: Vec<ToolCall>,
    /// Calls whose arguments are no JSON object; they cannot run, but the model must hear about them.
    pub invalid_tool_calls: Vec<InvalidToolCall>,
    /// What the answer cost.
    pub usage: Option<Box<Usage>>,
}

/// What only a tool's message has.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolBody {
    /// The [`ToolCall::id`] this is the result of.
    pub tool_call_id: String,
    /// Whether the tool did what it should.
    pub status: ToolStatus,
    /// A full result for the application that the model does not see.
    pub artifact: Option<RawJson>,
}

/// Whether a tool call succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    /// It did.
    #[default]
    Success,
    /// It did not; the content says why.
    Error,
}

/// A tool the model wants called.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Ties the result to the call. A provider may use an id again on later turns.
    pub id: String,
    /// The tool, as the model spelled it.
    pub name: String,
    /// The arguments, digit by digit.
    pub args: Arguments,
    /// Fields nobody here understands, kept as they came.
    pub extra: Fields,
}

impl ToolCall {
    /// A call without extra fields.
    pub fn new(id: impl Into<String>, name: impl Into<String>, args: Arguments) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            args,
            extra: Fields::new(),
        }
    }
}

/// A call that cannot run, with the text the model wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidToolCall {
    /// Ties the error message to the call.
    pub id: String,
    /// The tool, if the model named one.
    pub name: Option<String>,
    /// The arguments as the model wrote them.
    pub args: String,
    /// Why they cannot be used.
    pub error: String,
}

/// Tokens of one model call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Both together.
    pub total_tokens: u64,
    /// Shares of the input, by LangChain's names: `cache_read`, `cache_creation`, `audio`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input_token_details: BTreeMap<String, u64>,
    /// Shares of the output: `reasoning`, `audio`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub output_token_details: BTreeMap<String, u64>,
}

impl Usage {
    /// Usage without details.
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            total_tokens: input_tokens.saturating_add(output_tokens),
            ..Self::default()
        }
    }

    /// The usage of two calls together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let details = |one: &BTreeMap<String, u64>, other: &BTreeMap<String, u64>| {
            let mut sums = one.clone();
            for (name, tokens) in other {
                let sum = sums.entry(name.clone()).or_default();
                *sum = sum.saturating_add(*tokens);
            }
            sums
        };
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            input_token_details: details(&self.input_token_details, &other.input_token_details),
            output_token_details: details(&self.output_token_details, &other.output_token_details),
        }
    }
}

/// What a message says: text, or blocks of several media.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Content blocks as providers define them; each is an object with a `type`, or a string.
    Blocks(Vec<RawJson>),
}

impl Content {
    /// The text of it: all text blocks joined, other blocks left out.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Blocks(blocks) => Cow::Owned(blocks.iter().filter_map(block_text).collect()),
        }
    }

    /// Whether nothing is said: empty text or no blocks.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

/// The text of a `{"type":"text","text":…}` block or of a plain string.
fn block_text(block: &RawJson) -> Option<String> {
    #[derive(Deserialize)]
    struct TextBlock {
        r#type: String,
        text: String,
    }
    if block.as_str().starts_with('"') {
        return block.decode().ok();
    }
    let block: TextBlock = block.decode().ok()?;
    (block.r#type == "text").then_some(block.text)
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<RawJson>> for Content {
    fn from(blocks: Vec<RawJson>) -> Self {
        Self::Blocks(blocks)
    }
}

impl Message {
    /// A message with a fresh id.
    pub fn new(body: Body, content: impl Into<Content>) -> Self {
        Self {
            id: fresh_id(),
            body,
            content: content.into(),
            name: None,
            additional_kwargs: Fields::new(),
            response_metadata: Fields::new(),
            extra: Fields::new(),
        }
    }

    /// What the person says.
    pub fn human(content: impl Into<Content>) -> Self {
        Self::new(Body::Human, content)
    }

    /// What the model says, without calling a tool.
    pub fn ai(content: impl Into<Content>) -> Self {
        Self::new(Body::Ai(AiBody::default()), content)
    }

    /// What the model says while it calls tools.
    pub fn ai_calling(content: impl Into<Content>, tool_calls: Vec<ToolCall>) -> Self {
        let body = AiBody {
            tool_calls,
            ..AiBody::default()
        };
        Self::new(Body::Ai(body), content)
    }

    /// Instructions.
    pub fn system(content: impl Into<Content>) -> Self {
        Self::new(Body::System, content)
    }

    /// The result of the call `tool_call_id`.
    pub fn tool(tool_call_id: impl Into<String>, content: impl Into<Content>) -> Self {
        Self::tool_with(tool_call_id, content, ToolStatus::Success)
    }

    /// The result of the call `tool_call_id` that did not work.
    pub fn tool_error(tool_call_id: impl Into<String>, content: impl Into<Content>) -> Self {
        Self::tool_with(tool_call_id, content, ToolStatus::Error)
    }

    fn tool_with(
        tool_call_id: impl Into<String>,
        content: impl Into<Content>,
        status: ToolStatus,
    ) -> Self {
        let body = ToolBody {
            tool_call_id: tool_call_id.into(),
            status,
            artifact: None,
        };
        Self::new(Body::Tool(body), content)
    }

    /// An order to remove the message `id`.
    pub fn remove(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::new(Body::Remove, "")
        }
    }

    /// An order to remove every message before this one.
    pub fn remove_all() -> Self {
        Self::remove(REMOVE_ALL)
    }

    /// The text of the content; see [`Content::text`].
    pub fn text(&self) -> Cow<'_, str> {
        self.content.text()
    }

    /// The tools the model wants called; empty for other speakers.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match &self.body {
            Body::Ai(ai) => &ai.tool_calls,
            _ => &[],
        }
    }

    /// The calls that cannot run; empty for other speakers.
    pub fn invalid_tool_calls(&self) -> &[InvalidToolCall] {
        match &self.body {
            Body::Ai(ai) => &ai.invalid_tool_calls,
            _ => &[],
        }
    }

    /// The call this is the result of.
    pub fn tool_call_id(&self) -> Option<&str> {
        match &self.body {
            Body::Tool(tool) => Some(&tool.tool_call_id),
            _ => None,
        }
    }

    /// What the answer cost, where the model said it.
    pub fn usage(&self) -> Option<&Usage> {
        match &self.body {
            Body::Ai(ai) => ai.usage.as_deref(),
            _ => None,
        }
    }

    /// Whether the model speaks.
    pub fn is_ai(&self) -> bool {
        matches!(self.body, Body::Ai(_))
    }

    /// The `type` in JSON.
    pub fn kind(&self) -> &'static str {
        match self.body {
            Body::Human => "human",
            Body::System => "system",
            Body::Ai(_) => "ai",
            Body::Tool(_) => "tool",
            Body::Remove => "remove",
        }
    }
}

/// A time-ordered UUID: ids made later sort later.
pub(crate) fn fresh_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

#[cfg(test)]
mod tests;
