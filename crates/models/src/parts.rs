//! What all encoders need: names that servers accept, and the parts of a message whatever form they came in. Pure.

use serde::Deserialize;
use serde_json::json;

use crate::error::ModelError;
use crate::message::{Content, InvalidToolCall, Message};
use crate::raw::RawJson;

/// A name that servers accept: a model may have called a tool by a name with spaces, and must be able to read
/// that it was wrong.
pub(crate) fn safe_name(name: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || "_-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().take(64).map(safe).collect();
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}

/// Servers parse arguments of the past; text that is no JSON goes as a string inside an object.
pub(crate) fn unreadable_arguments(call: &InvalidToolCall) -> String {
    json!({ "unreadable_arguments": call.args }).to_string()
}

/// A piece of a message's content.
#[derive(Debug, PartialEq)]
pub(crate) enum Part {
    /// Text; never empty.
    Text(String),
    /// A picture or document in base64.
    Data {
        /// Its type, as in `image/png`.
        media_type: String,
        /// The bytes.
        base64: String,
    },
    /// A picture at an address.
    Address(String),
}

#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    r#type: String,
    text: Option<String>,
    image_url: Option<ImageUrl>,
    url: Option<String>,
    base64: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    source: Option<Source>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ImageUrl {
    Object { url: String },
    Text(String),
}

/// Anthropic's form of a picture.
#[derive(Deserialize)]
struct Source {
    media_type: Option<String>,
    data: Option<String>,
    url: Option<String>,
}

/// Whether a block is what a model thought, in some provider's form. Only its own provider may read it.
pub(crate) fn is_reasoning(block: &RawJson) -> bool {
    const KINDS: [&str; 3] = ["reasoning", "thinking", "redacted_thinking"];
    let kind = block.decode::<Block>().map(|block| block.r#type);
    kind.is_ok_and(|kind| KINDS.contains(&kind.as_str()))
}

/// The parts of a message: text, pictures and documents in the forms of OpenAI, Anthropic and LangChain. Blocks of
/// reasoning, and calls that stand among the blocks as well as beside them, are no content.
///
/// # Errors
/// [`ModelError::BadRequest`] for a block that this provider cannot be sent, rather than an answer to half a question.
pub(crate) fn parts(message: &Message, provider: &str) -> Result<Vec<Part>, ModelError> {
    let blocks = match &message.content {
        Content::Text(text) if text.is_empty() => return Ok(Vec::new()),
        Content::Text(text) => return Ok(vec![Part::Text(text.clone())]),
        Content::Blocks(blocks) => blocks,
    };
    let mut parts = Vec::new();
    for block in blocks {
        if block.as_str().starts_with('"') {
            let text: String = block.decode().unwrap_or_default();
            parts.push(Part::Text(text));
            continue;
        }
        let read: Block = block
            .decode()
            .map_err(|error| unsendable("", &error.to_string(), provider))?;
        if is_reasoning(block) || matches!(read.r#type.as_str(), "tool_use" | "tool_call") {
            continue;
        }
        let kind = read.r#type.clone();
        parts.push(part(read).ok_or_else(|| unsendable(&kind, "no known form", provider))?);
    }
    parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
    Ok(parts)
}

fn part(block: Block) -> Option<Part> {
    if block.r#type == "text" || block.r#type.is_empty() {
        return block.text.map(Part::Text);
    }
    let source = block.source.as_ref();
    let address = match block.image_url {
        Some(ImageUrl::Object { url } | ImageUrl::Text(url)) => Some(url),
        None => block.url.or(source.and_then(|source| source.url.clone())),
    };
    if let Some(address) = address {
        let Some(data) = address.strip_prefix("data:") else {
            return Some(Part::Address(address));
        };
        let (media_type, base64) = data.split_once(";base64,")?;
        return Some(Part::Data {
            media_type: media_type.to_owned(),
            base64: base64.to_owned(),
        });
    }
    let base64 = block.base64.or(block.data);
    let base64 = base64.or(source.and_then(|source| source.data.clone()))?;
    let media_type = block.mime_type;
    let media_type = media_type.or(source.and_then(|source| source.media_type.clone()))?;
    Some(Part::Data { media_type, base64 })
}

fn unsendable(kind: &str, problem: &str, provider: &str) -> ModelError {
    ModelError::BadRequest {
        message: format!(
            "a content block of type `{kind}` cannot be sent to {provider}: {problem}"
        ),
    }
}
