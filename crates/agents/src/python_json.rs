//! JSON laid out as Python's `json.dumps` lays it out: a space after commas and colons, ASCII only.
//!
//! Prompts are written this way, so that a model sees from us what it would see from the article's
//! program. It changes the layout alone: order and digits stay as they are.

use serde::Serialize;
use std::fmt::Write as _;

/// A value in Python's layout.
///
/// ```
/// use paraph_agents::python_json;
/// let value = serde_json::json!({"name": "Zoë", "tags": ["a,b", 1.0], "none": null});
/// assert_eq!(python_json(&value)?, r#"{"name": "Zo\u00eb", "none": null, "tags": ["a,b", 1.0]}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn python_json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(lay_out(&serde_json::to_string(value)?))
}

/// Works on the compact text, so that it can neither lose a digit nor be too deep.
fn lay_out(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() + compact.len() / 4);
    let (mut in_string, mut escaped) = (false, false);
    for character in compact.chars() {
        match character {
            ' '..='~' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing into a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = in_string,
            '"' => in_string = !in_string,
            ',' | ':' if !in_string => out.push(' '),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_is_pythons() {
        // Written by CPython: json.dumps(json.loads(…), ensure_ascii=True).
        let table = [
            (r#"{}"#, r#"{}"#),
            (r#"{"a":[],"b":{}}"#, r#"{"a": [], "b": {}}"#),
            (r#"[1,2.5,-0.0,true,null]"#, r#"[1, 2.5, -0.0, true, null]"#),
            (r#"{"a,b":"c:d\"e,f"}"#, r#"{"a,b": "c:d\"e,f"}"#),
            (r#""back\\","x""#, r#""back\\", "x""#),
            ("\"é😀\u{7f}\\n\"", r#""\u00e9\ud83d\ude00\u007f\n""#),
        ];
        for (compact, expected) in table {
            assert_eq!(lay_out(compact), expected, "{compact}");
        }
    }
}
