//! Asking until an answer can be read: each miss is told to the model, and after a bounded number of tries it is an
//! error. Called by structured output and by the schema mode. It must not retry failed calls: one layer does.

use crate::chat::{ChatModel, ChatReply, ChatRequest, FinishReason};
use crate::error::ModelError;
use crate::message::{Body, Content, Message, Usage};
use crate::raw::RawJson;

/// How many bytes of an answer that missed are shown to the model again.
const MAX_SHOWN: usize = 16 * 1024;

/// What was read, and what it took.
pub(crate) struct Read<T> {
    pub(crate) value: T,
    /// The answer that could be read; its attempts are those of all tries.
    pub(crate) reply: ChatReply,
    pub(crate) tries: u32,
    /// Of all tries.
    pub(crate) usage: Option<Usage>,
}

/// Asks at most so many times; `more` is what the model is reminded of after a miss.
pub(crate) async fn ask_until_read<M: ChatModel + ?Sized, T>(
    model: &M,
    mut request: ChatRequest,
    (tries, more): (u32, &str),
    read: impl Fn(&ChatReply) -> Result<T, String>,
) -> Result<Read<T>, ModelError> {
    let mut usage: Option<Usage> = None;
    let (mut attempts, mut tried) = (0_u32, 0);
    loop {
        let mut reply = model.complete(&request).await?;
        tried += 1;
        attempts = attempts.saturating_add(reply.attempts);
        usage = match (usage, &reply.usage) {
            (Some(before), Some(now)) => Some(before.plus(now)),
            (before, now) => before.or_else(|| now.clone()),
        };
        let mut problem = match read(&reply) {
            Ok(value) => {
                reply.attempts = attempts;
                return Ok(Read {
                    value,
                    reply,
                    tries: tried,
                    usage,
                });
            }
            Err(problem) => problem,
        };
        if reply.finish_reason == Some(FinishReason::Length) {
            problem = format!("it was cut off at the longest length that is allowed ({problem})");
        }
        let raw = reply.message.text().into_owned();
        if tried >= tries {
            return Err(ModelError::Mismatch {
                problem,
                raw,
                tries: tried,
                usage: usage.map(Box::new),
            });
        }
        tracing::debug!(model = model.name(), tried, %problem, "the model is asked again");
        let shown = raw
            .get(..raw.floor_char_boundary(MAX_SHOWN))
            .unwrap_or_default();
        request.messages.push(Message::ai(shown));
        request.messages.push(Message::human(format!(
            "This answer cannot be used: {problem}. Write it again without that mistake, as JSON alone.{more}"
        )));
    }
}

/// Puts a text to the end of the instructions, as a part of the first message: some models take no second one.
pub(crate) fn with_instructions(messages: &mut Vec<Message>, text: &str) {
    let first = messages
        .first_mut()
        .filter(|first| first.body == Body::System);
    let Some(first) = first else {
        messages.insert(0, Message::system(text));
        return;
    };
    match &mut first.content {
        Content::Text(own) => {
            own.push_str("\n\n");
            own.push_str(text);
        }
        Content::Blocks(blocks) => {
            let block = serde_json::json!({ "type": "text", "text": text });
            blocks.extend(RawJson::of(&block));
        }
    }
}
