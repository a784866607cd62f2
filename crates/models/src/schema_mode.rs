//! [`SchemaMode`]: tool calls for a model that has none of its own.
//!
//! `tool_mode = "schema"`. The model is asked for one JSON object whose schema has a branch per tool and one for the
//! final answer; what it writes becomes a native tool call or the answer's text. So whoever drives a loop of tool
//! calls need not know. Made by [`init_chat_model`](crate::init_chat_model). The parts: `shape` (the schema), `turns`
//! (the conversation as such a model reads it), `step` (what it wrote). It must not judge calls: the gateway does.

mod shape;
mod step;
mod turns;

use std::fmt;
use std::str::FromStr;

use futures::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};

use crate::chat::{
    ChatModel, ChatReply, ChatRequest, Chunk, ChunkStream, ResponseFormat, ToolChoice,
};
use crate::error::{Error, ModelError};
use crate::structured::{Read, ask_until_read, with_instructions};
use shape::Shape;
use step::Step;

/// How often a model is asked for one step at most.
const TRIES: u32 = 3;

/// The longest step in tokens, where the request names none. A small model may repeat itself without end.
const MAX_TOKENS: u32 = 2048;

/// How a model calls tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolMode {
    /// By its provider's own tool calls.
    #[default]
    Native,
    /// By JSON that a schema enforces: for models without tool calls of their own.
    Schema,
}

impl fmt::Display for ToolMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Schema => "schema",
        })
    }
}

impl FromStr for ToolMode {
    type Err = Error;

    /// # Errors
    /// [`Error::ToolMode`] with the words there are.
    fn from_str(word: &str) -> Result<Self, Error> {
        match word {
            "native" => Ok(Self::Native),
            "schema" => Ok(Self::Schema),
            _ => Err(Error::ToolMode(word.to_owned())),
        }
    }
}

/// A model that calls tools by JSON, seen from outside as one that calls them natively.
///
/// - The schema is an `oneOf`: `{"action": NAME, "arguments": {…}}` per tool, and `{"action": "final_answer",
///   "answer": "…"}`. It is sent as a response format, for servers that enforce it, and described in the instructions.
/// - Strings and lists without a bound of their own get one, so that a small model comes to an end.
/// - A step is one call; the choice that a tool must be called leaves out the final answer.
/// - The history is sent as text: earlier calls as the JSON that made them, results as messages of the person.
/// - A step that is no such JSON is asked for again, three times in all, with what was wrong; then it is
///   [`ModelError::Mismatch`]. A server that refuses the response format is asked without it. Unknown tools and wrong arguments pass as calls: who runs them says what is wrong.
/// - The answer comes in one piece, when the step is complete. Without tools the model's own pieces come through.
///
/// ```
/// use paraph_models::{ChatModel, ChatRequest, Message, SchemaMode, ScriptedModel, ToolSpec};
///
/// let script = r#"{"content": "{\"action\": \"add\", \"arguments\": {\"terms\": [2, 3]}}"}"#;
/// let model = SchemaMode::new(ScriptedModel::parse(script, "sum.jsonl")?);
/// let add = ToolSpec {
///     name: "add".into(),
///     description: "Adds numbers".into(),
///     schema: serde_json::json!({"type": "object", "properties": {"terms": {"type": "array"}}}),
/// };
/// let request = ChatRequest { tools: vec![add], ..ChatRequest::new([Message::human("2 and 3?")]) };
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let reply = model.complete(&request).await?;
/// assert_eq!(reply.message.tool_calls()[0].name, "add");
/// assert_eq!(reply.message.tool_calls()[0].args.as_str(), r#"{"terms": [2, 3]}"#);
/// # Ok::<(), paraph_models::ModelError>(()) }).unwrap();
/// # Ok::<(), paraph_models::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SchemaMode<M> {
    model: M,
}

impl<M: ChatModel> SchemaMode<M> {
    /// Wraps a model, which should be one whose calls are retried already.
    pub fn new(model: M) -> Self {
        Self { model }
    }

    /// One step of the model, in the one piece that says it.
    async fn step(&self, request: &ChatRequest) -> Result<Chunk, ModelError> {
        let shape = Shape::of(request);
        let mut messages = turns::written(&request.messages, Some(shape.final_action()));
        with_instructions(&mut messages, &shape.instructions(&request.tools));
        let asked = ChatRequest {
            messages,
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            max_tokens: request.max_tokens.or(Some(MAX_TOKENS)),
            response_format: ResponseFormat::JsonSchema {
                name: "next_step".to_owned(),
                schema: shape.schema().clone(),
                strict: false,
            },
            ..request.clone()
        };
        let read = |reply: &ChatReply| Step::read(&reply.message.text(), &shape);
        let ask = |request: ChatRequest| ask_until_read(&self.model, request, (TRIES, ""), read);
        let read = match ask(asked.clone()).await {
            // A server that cannot enforce the form still has it in the instructions.
            Err(ModelError::BadRequest { message }) => {
                tracing::debug!(model = self.name(), %message, "a step is asked for without its schema");
                ask(ChatRequest {
                    response_format: ResponseFormat::Text,
                    ..asked
                })
                .await?
            }
            read => read?,
        };
        Ok(chunk(read))
    }
}

fn chunk(read: Read<Step>) -> Chunk {
    let Read {
        value,
        reply,
        usage,
        ..
    } = read;
    Chunk {
        usage,
        model: reply.model,
        provider: reply.provider,
        attempt: reply.attempts,
        unknown_events: reply.unknown_events,
        ..value.chunk()
    }
}

impl<M: ChatModel> ChatModel for SchemaMode<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        let calls = !request.tools.is_empty() && request.tool_choice != ToolChoice::None;
        if calls {
            return stream::once(self.step(request)).boxed();
        }
        if !turns::has_calls(&request.messages) {
            return self.model.stream(request);
        }
        let answered = async move {
            let plain = ChatRequest {
                messages: turns::written(&request.messages, None),
                tools: Vec::new(),
                tool_choice: ToolChoice::Auto,
                ..request.clone()
            };
            // The pieces borrow this request, so they are taken here.
            let pieces: Vec<_> = self.model.stream(&plain).collect().await;
            stream::iter(pieces)
        };
        stream::once(answered).flatten().boxed()
    }

    fn enforces_schemas(&self) -> bool {
        self.model.enforces_schemas()
    }

    fn go_on_after(&self, attempts: u64) {
        self.model.go_on_after(attempts);
    }
}

#[cfg(test)]
mod tests;
