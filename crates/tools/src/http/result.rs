//! What of an answer a tool gives back: all of it, the part that a JSONPath names, or its text.
//!
//! Called by `http.rs` for answers whose status is a success. What is missing or empty is an error that says where:
//! a model that reads a bare empty list makes something up.

use reqwest::header::HeaderValue;
use serde_json::Value;
use serde_json_path::JsonPath;

use super::settings::{HttpFormat, HttpTool};
use crate::error::Error;
use crate::outbound::Fetched;
use crate::page::plain_text;
use crate::said::short;

/// What is wanted of an answer.
pub(super) enum Wanted {
    Text,
    Whole,
    Part {
        written: String,
        path: JsonPath,
        /// Whether the path can name one value only.
        singular: bool,
    },
}

impl Wanted {
    pub(super) fn new(settings: &HttpTool) -> Result<Wanted, String> {
        match (settings.format, &settings.result) {
            (HttpFormat::Text, None) => Ok(Wanted::Text),
            (HttpFormat::Text, Some(_)) => {
                Err("`result`: a part can be named of JSON only, and `format` is text".to_owned())
            }
            (HttpFormat::Json, None) => Ok(Wanted::Whole),
            (HttpFormat::Json, Some(written)) => match JsonPath::parse(written) {
                Ok(path) => Ok(Wanted::Part {
                    written: written.clone(),
                    path,
                    singular: is_singular(written),
                }),
                Err(error) => Err(format!(
                    "`result`: no JSONPath such as $.data.items[*].title: {}",
                    short(&error.to_string())
                )),
            },
        }
    }

    /// What the server is told that it may answer.
    pub(super) fn accept(&self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Wanted::Text => "text/plain, */*;q=0.5",
            _ => "application/json",
        })
    }

    /// That part of an answer.
    pub(super) fn of(&self, fetched: &Fetched) -> Result<Value, Error> {
        let value = match self {
            Wanted::Text => Value::from(plain_text(fetched)),
            Wanted::Whole => fetched.json()?,
            Wanted::Part {
                written,
                path,
                singular,
            } => {
                let whole = fetched.json()?;
                let found = path.query(&whole).all();
                match (found.as_slice(), singular) {
                    ([], _) => return Err(missing(fetched, written, &whole)),
                    ([one], true) => (*one).clone(),
                    (several, _) => several.iter().map(|value| (*value).clone()).collect(),
                }
            }
        };
        match is_empty(&value) {
            false => Ok(value),
            true => Err(Error::Nothing {
                problem: match self {
                    Wanted::Part { written, .. } => {
                        format!(
                            "{} found nothing: its answer is empty at {written}",
                            fetched.host()
                        )
                    }
                    _ => format!("{} found nothing: its answer is empty", fetched.host()),
                },
            }),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// What the answer has instead helps whoever wrote the path, and tells the model that it is not its fault.
fn missing(fetched: &Fetched, written: &str, whole: &Value) -> Error {
    let has = match whole {
        Value::Object(entries) => {
            let keys: Vec<&str> = entries.keys().map(String::as_str).take(12).collect();
            format!("an object with {}", keys.join(", "))
        }
        Value::Array(items) => format!("a list of {}", items.len()),
        _ => "a single value".to_owned(),
    };
    Error::Nothing {
        problem: short(&format!(
            "the answer of {} has nothing at {written}; it is {has}",
            fetched.host()
        )),
    }
}

/// Whether a path names one value at most: no wildcard, descent, filter, slice or list of names in it.
fn is_singular(path: &str) -> bool {
    let mut quote = None;
    let mut before = ' ';
    for c in path.chars() {
        match quote {
            Some(open) if c == open && before != '\\' => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if ['*', '?', ':', ','].contains(&c) || (c == '.' && before == '.') => {
                return false;
            }
            None => {}
        }
        before = c;
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use serde_json::json;

    fn result(path: Option<&str>, body: &str) -> Result<Value, String> {
        let settings = json!({
            "name": "n", "description": "d", "url": "https://api.example.com/", "result": path,
        });
        let wanted = Wanted::new(&serde_json::from_value(settings).unwrap())?;
        let fetched = Fetched {
            status: 200,
            url: "https://api.example.com/secret?key=s3cret".to_owned(),
            content_type: "application/json".to_owned(),
            retry_after: None,
            body: body.into(),
        };
        wanted.of(&fetched).map_err(|error| error.to_string())
    }

    #[test]
    fn the_named_part_is_given_one_value_or_a_list() {
        const BODY: &str =
            r#"{"items": [{"t": "a", "n": 2512292042121000001}, {"t": "b"}], "a.b": {"x": 1.5}}"#;
        for (path, expected) in [
            (Some("$.items[0].n"), json!(2_512_292_042_121_000_001_u64)),
            (Some("$.items[-1].t"), json!("b")),
            (Some("$.items[*].t"), json!(["a", "b"])),
            (Some("$.items[*].n"), json!([2_512_292_042_121_000_001_u64])),
            (Some("$..t"), json!(["a", "b"])),
            (Some("$.items[?@.t == 'b'].t"), json!(["b"])),
            (Some("$['a.b']['x']"), json!(1.5)),
            (Some("$"), serde_json::from_str(BODY).unwrap()),
            (None, serde_json::from_str(BODY).unwrap()),
        ] {
            assert_eq!(result(path, BODY), Ok(expected), "{path:?}");
        }
    }

    #[test]
    fn what_is_missing_or_empty_is_an_error_that_says_where() {
        const S: &str = "https://api.example.com";
        for (path, body, problem) in [
            (
                Some("$.a.b"),
                r#"{"a": {}, "c": 1}"#,
                format!("the answer of {S} has nothing at $.a.b; it is an object with a, c"),
            ),
            (
                Some("$.a"),
                "[1, 2]",
                format!("the answer of {S} has nothing at $.a; it is a list of 2"),
            ),
            (
                Some("$.a[*]"),
                r#"{"a": []}"#,
                format!("the answer of {S} has nothing at $.a[*]; it is an object with a"),
            ),
            (
                Some("$.a"),
                r#"{"a": []}"#,
                format!("{S} found nothing: its answer is empty at $.a"),
            ),
            (
                Some("$.a"),
                r#"{"a": null}"#,
                format!("{S} found nothing: its answer is empty at $.a"),
            ),
            (
                None,
                "[]",
                format!("{S} found nothing: its answer is empty"),
            ),
            (
                None,
                "",
                format!("the answer of {S} cannot be read: it is empty"),
            ),
            (
                None,
                "{\"a\":",
                format!(
                    "the answer of {S} cannot be read: it is no JSON: EOF while parsing a value at line 1 column 5"
                ),
            ),
        ] {
            assert_eq!(result(path, body), Err(problem), "{path:?} {body}");
        }
        let error = result(Some("data.items"), "{}").unwrap_err();
        assert!(
            error.starts_with("`result`: no JSONPath such as $.data.items[*].title: "),
            "{error}"
        );
        assert_eq!(result(Some("$.a"), r#"{"a": false}"#), Ok(json!(false)));
    }
}
