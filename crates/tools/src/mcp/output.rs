//! What a model reads of a server's result: its JSON, or its texts, with a line for what is neither.
//!
//! Called for each result. Pure. A result larger than the gateway keeps is cut here to its head and its tail.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// The most bytes of a result that are handed on; the gateway keeps a little more than this, quoted.
const MAX_BYTES: usize = 6 << 20;

/// What stands for content of a kind that came into the protocol later.
const UNKNOWN: &str = "[content of an unknown kind, not shown]";

/// A result for the model; `Err` with the server's words if it says that the call failed.
pub(super) fn read(result: CallToolResult) -> Result<Value, String> {
    let failed = result.is_error == Some(true);
    let value = match result.structured_content {
        Some(json) if !failed && json.to_string().len() <= MAX_BYTES => json,
        Some(json) if result.content.is_empty() => Value::from(shortened(json.to_string())),
        _ => {
            let blocks: Vec<String> = result.content.into_iter().map(block).collect();
            Value::from(shortened(blocks.join("\n\n")))
        }
    };
    match (failed, value) {
        (false, Value::String(text)) if text.trim().is_empty() => {
            Ok(Value::from("(done; the server answered nothing)"))
        }
        (false, value) => Ok(value),
        (true, Value::String(text)) if !text.trim().is_empty() => Err(text),
        (true, _) => Err("the server says that it failed, and not why".to_owned()),
    }
}

fn block(block: ContentBlock) -> String {
    let left_out = |kind: &str, mime: &str, base64: &str| {
        format!(
            "[{kind}, {mime}, {} bytes, not shown]",
            base64.len() / 4 * 3
        )
    };
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => left_out("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => left_out("sound", &audio.mime_type, &audio.data),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => left_out(&uri, mime_type.as_deref().unwrap_or("data"), &blob),
            _ => UNKNOWN.to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[{}: {}]", link.name, link.uri),
        _ => UNKNOWN.to_owned(),
    }
}

/// Two thirds from its head, one from its tail, and a line between them.
fn shortened(text: String) -> String {
    if text.len() <= MAX_BYTES {
        return text;
    }
    let head = text.floor_char_boundary(MAX_BYTES / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_BYTES / 3);
    format!(
        "{}\n[{} of {} bytes are left out here]\n{}",
        text.get(..head).unwrap_or_default(),
        tail - head,
        text.len(),
        text.get(tail..).unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use serde_json::json;

    fn reading(json: Value) -> Result<Value, String> {
        read(serde_json::from_value(json).unwrap())
    }

    #[test]
    fn json_is_given_as_json_texts_as_text_and_the_rest_is_named() {
        let text = |text: &str| json!({"type": "text", "text": text});
        for (result, expected) in [
            (json!({"content": [text("a")]}), Ok(json!("a"))),
            (
                json!({"content": [text("a"), text("b")]}),
                Ok(json!("a\n\nb")),
            ),
            (
                json!({"content": [text("{}")], "structuredContent": {"n": 1}}),
                Ok(json!({"n": 1})),
            ),
            (
                json!({"content": [], "structuredContent": [1]}),
                Ok(json!([1])),
            ),
            (
                json!({"content": []}),
                Ok(json!("(done; the server answered nothing)")),
            ),
            (
                json!({"content": [text("no"), text("way")], "isError": true}),
                Err("no\n\nway".to_owned()),
            ),
            (
                json!({"content": [], "isError": true}),
                Err("the server says that it failed, and not why".to_owned()),
            ),
            (
                json!({"content": [
                    {"type": "image", "mimeType": "image/png", "data": "AAAAAAAA"},
                    {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
                    {"type": "resource", "resource": {"uri": "x://1", "text": "inside"}},
                    {"type": "resource", "resource": {"uri": "x://2", "blob": "AAAA"}},
                    {"type": "resource_link", "uri": "x://3", "name": "three"},
                ]}),
                Ok(json!(
                    "[image, image/png, 6 bytes, not shown]\n\n[sound, audio/wav, 3 bytes, not shown]\n\n\
                          [x://1]\ninside\n\n[x://2, data, 3 bytes, not shown]\n\n[three: x://3]"
                )),
            ),
        ] {
            assert_eq!(reading(result.clone()), expected, "{result}");
        }
    }

    #[test]
    fn a_result_of_many_megabytes_is_cut_to_head_and_tail() {
        let long = "é".repeat(10 << 20);
        let cut = reading(json!({"content": [{"type": "text", "text": long}]})).unwrap();
        let cut = cut.as_str().unwrap();
        assert!(cut.len() <= MAX_BYTES + 100, "{}", cut.len());
        assert!(cut.contains("[14680064 of 20971520 bytes are left out here]"));
        assert!(cut.starts_with('é') && cut.ends_with('é'));
    }
}
