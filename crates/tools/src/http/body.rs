//! JSON bodies with arguments in them.
//!
//! Called by `http.rs`. A text that is nothing but `{name}` becomes the argument as the model wrote it, with every
//! digit; in longer texts arguments are filled in as text.

use std::fmt::Write as _;

use paraph_gateway::Json;
use serde_json::Value;

use super::template::{Template, is_left_out};
use crate::error::Error;

/// The arguments in a body, or what is wrong with one of its texts.
pub(super) fn arguments(body: &Value) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut todo = vec![body];
    while let Some(value) = todo.pop() {
        match value {
            Value::String(text) => {
                found.extend(Template::read(text)?.arguments().map(str::to_owned));
            }
            Value::Array(items) => todo.extend(items),
            Value::Object(entries) => todo.extend(entries.values()),
            _ => {}
        }
    }
    Ok(found)
}

/// The body's text for these arguments.
pub(super) fn fill(body: &Value, args: &Json) -> Result<String, Error> {
    let mut text = String::new();
    write(body, args, &mut text)?;
    Ok(text)
}

/// A body is as deep as its configuration, which was read by a reader that bounds depth.
fn write(body: &Value, args: &Json, text: &mut String) -> Result<(), Error> {
    match body {
        Value::String(own) => {
            let template = Template::read(own).map_err(|problem| Error::config("body", problem))?;
            let whole = template.only().and_then(|name| args.view().get(name));
            let written = match whole {
                Some(value) => write!(text, "{value}"),
                None => write!(text, "{}", Value::from(template.fill(args)?)),
            };
            // Writing to a text cannot fail.
            written.map_err(|_| Error::config("body", "it cannot be written"))?;
        }
        Value::Array(items) => {
            text.push('[');
            let kept = items.iter().filter(|item| !leaves_out(item, args));
            for (at, item) in kept.enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                write(item, args, text)?;
            }
            text.push(']');
        }
        Value::Object(entries) => {
            text.push('{');
            let kept = entries.iter().filter(|(_, value)| !leaves_out(value, args));
            for (at, (name, value)) in kept.enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(value, args, text)?;
            }
            text.push('}');
        }
        plain => text.push_str(&plain.to_string()),
    }
    Ok(())
}

/// Whether a value is nothing but an argument that was left out.
fn leaves_out(value: &Value, args: &Json) -> bool {
    let template = value.as_str().and_then(|text| Template::read(text).ok());
    template.is_some_and(|template| template.only().is_some_and(|name| is_left_out(args, name)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use paraph_gateway::Bounds;
    use serde_json::json;

    #[test]
    fn arguments_keep_their_kind_and_their_digits_and_leave_with_their_place() {
        let body = json!({
            "filter": {"id": "{id}", "tags": ["{tag}", "fixed"], "q": "about {q}"},
            "gone": "{gone}", "list": "{list}", "limit": 5, "brace": "{{x}}",
        });
        let args = r#"{"id": 2512292042121000001, "q": "\"quotes\"", "list": [1.50, {"a": null}], "gone": null}"#;
        let args = Json::read(args, Bounds::default()).unwrap();
        assert_eq!(
            fill(&body, &args).unwrap(),
            r#"{"brace":"{x}","filter":{"id":2512292042121000001,"q":"about \"quotes\"","tags":["fixed"]},"limit":5,"list":[1.50,{"a":null}]}"#
        );
        let mut names = arguments(&body).unwrap();
        names.sort();
        assert_eq!(names, ["gone", "id", "list", "q", "tag"]);
        assert!(arguments(&json!(["{oops"])).is_err());
    }
}
