//! The file that says who owns which code: looked for where GitHub looks, in its order.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Target;
use super::client::{Client, unreadable};
use super::evidence::Of;
use crate::error::Error;

/// Where it may be; the first counts.
const PLACES: [&str; 3] = [".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"];

/// `{"path", "text"}`, or nothing where there is none.
pub(super) async fn read(client: &Client, target: &Target) -> Result<Value, Error> {
    for path in PLACES {
        let address = Of::new(target).repository(&format!("/contents/{path}"));
        let Some(got) = client.find(&address, path).await? else {
            continue;
        };
        return match text(&got.value) {
            Some(text) => Ok(json!({"path": path, "text": text})),
            None => Err(unreadable(
                path,
                "it is no file of a readable size".to_owned(),
            )),
        };
    }
    Ok(Value::Null)
}

/// The text of a file, as GitHub gives files: base64 in lines.
fn text(file: &Value) -> Option<String> {
    if file.get("encoding")?.as_str()? != "base64" {
        return None;
    }
    let mut content = file.get("content")?.as_str()?.to_owned();
    content.retain(|c| !c.is_ascii_whitespace());
    let bytes = STANDARD.decode(content).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_github_gives_it() {
        let file = json!({"encoding": "base64", "content": "KiAg\nQG1h\nZGFt\n"});
        assert_eq!(text(&file).as_deref(), Some("*  @madam"));
        for none in [
            json!([]),
            json!({"encoding": "none", "content": ""}),
            json!({"encoding": "base64", "content": "?"}),
        ] {
            assert_eq!(text(&none), None);
        }
    }
}
