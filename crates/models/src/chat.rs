//! [`ChatModel`]: what every model is, whoever serves it.
//!
//! Agents call it; providers, the scripted model and the agents' rehearsal models implement it. A whole answer is
//! always a fold over a stream ([`collect`]), so that there is one way to put an answer together. The types here
//! are Paraph's own and never a provider library's.

mod assemble;
mod chunk;
mod reasoning;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub(crate) use assemble::CALL_SIGNATURE;
pub use assemble::{Assembler, MAX_CALLS, MAX_REPLY_BYTES};
pub use chunk::{Chunk, FinishReason, ReasoningDelta, ToolCallDelta};
pub(crate) use reasoning::SignedBlock;

use crate::error::ModelError;
use crate::limits::WaitListener;
use crate::message::{Message, Usage};
use crate::tokens::Estimate;

/// The pieces of an answer as they arrive. It ends after an error, or when the answer is complete.
pub type ChunkStream<'a> = BoxStream<'a, Result<Chunk, ModelError>>;

/// A model one can chat with.
///
/// Dropping the stream or the future cancels the call. Implementations must not retry: one layer does
/// ([`Retrying`](crate::Retrying)), and it also bounds the time.
///
/// ```
/// use futures::StreamExt;
/// use paraph_models::{ChatModel, ChatRequest, Chunk, ChunkStream, Message};
///
/// /// Says back what it hears.
/// struct Echo;
///
/// impl ChatModel for Echo {
///     fn name(&self) -> &str {
///         "echo"
///     }
///
///     fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
///         let heard = request.messages.last().map(|m| m.text().into_owned());
///         let chunk = Chunk::text(heard.unwrap_or_default());
///         futures::stream::iter([Ok(chunk)]).boxed()
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let request = ChatRequest::new([Message::human("Hello")]);
/// let reply = Echo.complete(&request).await?;
/// assert_eq!(reply.message.text(), "Hello");
/// # Ok::<(), paraph_models::ModelError>(()) }).unwrap();
/// ```
pub trait ChatModel: Send + Sync {
    /// Provider and model, as a person would name them: `openai:gpt-4.1-mini`.
    fn name(&self) -> &str;

    /// Answers piece by piece.
    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a>;

    /// Answers in one piece. Only a provider whose protocol has a cheaper way for this overrides it.
    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(collect(self.stream(request), |_, _| {}))
    }

    /// Whether whoever serves the model enforces [`ResponseFormat::JsonSchema`] by itself. Where it does not, or
    /// nobody knows, structured output puts the schema into the instructions.
    fn enforces_schemas(&self) -> bool {
        false
    }

    /// Tells the model that its run goes on, perhaps in another process, after so many attempts whose
    /// outcome was kept. Only a model that plays lines one after the other has a use for it.
    fn go_on_after(&self, _attempts: u64) {}
}

/// What a pointer to a model says is what the model says.
macro_rules! forwarded {
    ($($pointer:ty),*) => {$(
        impl<M: ChatModel + ?Sized> ChatModel for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
                (**self).stream(request)
            }

            fn complete<'a>(
                &'a self,
                request: &'a ChatRequest,
            ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
                (**self).complete(request)
            }

            fn enforces_schemas(&self) -> bool {
                (**self).enforces_schemas()
            }

            fn go_on_after(&self, attempts: u64) {
                (**self).go_on_after(attempts);
            }
        }
    )*};
}

forwarded!(&M, Arc<M>);

/// Folds a stream into the answer. `seen` is told each chunk with the id of the message it belongs to, in order,
/// for those who show an answer while it grows.
///
/// # Errors
/// The stream's error, or what [`Assembler::finish`] finds wrong with the whole.
pub async fn collect(
    mut stream: ChunkStream<'_>,
    mut seen: impl FnMut(&str, &Chunk) + Send,
) -> Result<ChatReply, ModelError> {
    let mut assembler = Assembler::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk?;
        seen(assembler.message_id(), &chunk);
        assembler.push(chunk)?;
    }
    assembler.finish()
}

/// What a model is asked.
///
/// [`ChatRequest::new`] gives temperature 0, no tools and text; other fields by struct update.
/// Send histories through [`repair`](crate::repair) first.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// The conversation, instructions first.
    pub messages: Vec<Message>,
    /// The tools the model may call.
    pub tools: Vec<ToolSpec>,
    /// Whether it may, must or must not call one.
    pub tool_choice: ToolChoice,
    /// 0 for the likeliest answer; `None` leaves it to the provider (some models accept no other).
    pub temperature: Option<f64>,
    /// The longest answer, in tokens.
    pub max_tokens: Option<u32>,
    /// The form of the answer.
    pub response_format: ResponseFormat,
    /// When the run's time is over. The call ends then with [`ModelError::OutOfTime`].
    pub deadline: Option<Instant>,
    /// The model's context in tokens, if known: a request estimated above it is refused before it is sent.
    pub context_window: Option<usize>,
    /// Who is told when the call waits for the limits of its provider.
    pub waits: Option<WaitListener>,
}

impl ChatRequest {
    /// A request for text, at temperature 0.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        Self {
            messages: messages.into_iter().collect(),
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            temperature: Some(0.0),
            max_tokens: None,
            response_format: ResponseFormat::Text,
            deadline: None,
            context_window: None,
            waits: None,
        }
    }

    /// What a budget has to set aside before the call: the estimated request and the longest answer.
    /// `None` if the answer has no limit.
    pub fn worst_case_tokens(&self) -> Option<usize> {
        let answer = usize::try_from(self.max_tokens?).ok()?;
        Some(Estimate::of(self).total().saturating_add(answer))
    }

    /// The time left until [`ChatRequest::deadline`].
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments object.
    pub schema: serde_json::Value,
}

/// Whether the model may call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must call one, whichever.
    Required,
    /// It must call this one.
    Tool(String),
}

/// The form of the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ResponseFormat {
    /// Any text.
    #[default]
    Text,
    /// Some JSON object.
    JsonObject,
    /// JSON that matches a schema.
    JsonSchema {
        /// A name for the schema; letters, digits, `_` and `-`.
        name: String,
        /// The JSON Schema.
        schema: serde_json::Value,
        /// Whether the provider shall enforce it to the letter.
        strict: bool,
    },
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatReply {
    /// The answer; [`Body::Ai`](crate::Body::Ai).
    pub message: Message,
    /// What it cost, where the provider said it (also in the message).
    pub usage: Option<Usage>,
    /// Why the model stopped, where the provider said it.
    pub finish_reason: Option<FinishReason>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// The provider it answered through, by its name in a [`ModelSpec`](crate::ModelSpec); none for models that have
    /// no server.
    pub provider: Option<String>,
    /// How many attempts the answer took, counting the last; more than 1 after a retry.
    pub attempts: u32,
    /// Events of the stream that this crate did not understand. They did not enter the answer.
    pub unknown_events: u32,
}

/// The pieces of an answer up to the first that says something, or to the end of one that says nothing. Until then
/// nobody has heard anything, and another attempt or another model may take its place.
pub(crate) async fn beginning(rest: &mut ChunkStream<'_>) -> Result<Vec<Chunk>, ModelError> {
    let mut begun = Vec::new();
    while let Some(chunk) = rest.next().await {
        let chunk = chunk?;
        let spoken = chunk.is_spoken();
        // Signs of life say nothing to anybody later.
        if chunk != Chunk::default() {
            begun.push(chunk);
        }
        if spoken {
            break;
        }
    }
    Ok(begun)
}
