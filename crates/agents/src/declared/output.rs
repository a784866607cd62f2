//! Answers that are JSON of a given form: how a model is asked for one, and whether what it gave is one.
//!
//! Called by `react` for agents whose file has an `output`. It asks nobody; how often is the caller's business.

use jsonschema::{PatternOptions, Validator};
use paraph_gateway::{Bounds, Json};
use serde_json::Value;

/// How many mistakes a model is told of at once.
const MAX_TOLD: usize = 5;
/// How many bytes of one mistake.
const MAX_MESSAGE: usize = 300;

/// What stands before the schema in the instructions.
const FITS: &str = ", and it fits this JSON Schema:\n";

/// The schema in instructions that [`Output::instructions`] are the end of.
pub(super) fn schema_in(instructions: &str) -> Option<Value> {
    let (_, schema) = instructions.rsplit_once(FITS)?;
    serde_json::from_str(schema).ok()
}

/// The form of an answer.
pub(crate) struct Output {
    validator: Validator,
    schema: String,
    /// How often an answer that does not fit is asked for again.
    pub(crate) repairs: u32,
}

impl Output {
    /// # Errors
    /// What is wrong with the schema.
    pub(crate) fn new(schema: &Value, repairs: u32) -> Result<Output, String> {
        let validator = jsonschema::options()
            // Backtracking would let a pattern stop the process.
            .with_pattern_options(PatternOptions::regex())
            .build(schema)
            .map_err(|error| cut(error.to_string()))?;
        Ok(Output {
            validator,
            schema: schema.to_string(),
            repairs,
        })
    }

    /// What stands behind the instructions.
    pub(crate) fn instructions(&self) -> String {
        format!(
            "\n\nYour final answer is read by a program. It is one JSON value and nothing else, no Markdown and no words \
             around it{FITS}{}",
            self.schema
        )
    }

    /// The JSON in an answer, as it was written, if it fits; else what is wrong with it, for the model.
    pub(crate) fn read(&self, answer: &str) -> Result<String, String> {
        let (text, value) = json_in(answer).ok_or("it is no JSON")?;
        // The one who reads it may take the first of two where the schema saw the last.
        if let Some(key) = repeated(text) {
            return Err(format!(
                "the key {} stands twice in one object",
                cut(quoted(&key))
            ));
        }
        let errors = self.validator.iter_errors(&value).take(MAX_TOLD);
        let wrong: Vec<String> = errors
            .map(|error| match error.instance_path().to_string().as_str() {
                "" => cut(error.to_string()),
                place => format!("at {place}: {}", cut(error.to_string())),
            })
            .collect();
        match wrong.is_empty() {
            true => Ok(text.to_owned()),
            false => Err(wrong.join("; ")),
        }
    }

    /// How a model is told that its answer does not fit.
    pub(crate) fn complaint(why: &str) -> String {
        format!(
            "That answer does not fit the JSON Schema: {why}. Give the whole answer again, as JSON alone."
        )
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("repairs", &self.repairs)
            .finish_non_exhaustive()
    }
}

/// A JSON value with its text: the whole answer, what stands in a fence, or what stands from the first brace on.
fn json_in(answer: &str) -> Option<(&str, Value)> {
    let answer = answer.trim();
    let fenced = answer.split_once("```").and_then(|(_, rest)| {
        let (inside, _) = rest.split_once("```")?;
        let first_line = inside.split_once('\n');
        Some(first_line.map_or(inside, |(_, body)| body).trim())
    });
    let braced = answer.find('{').zip(answer.rfind('}'));
    let braced = braced.and_then(|(from, to)| answer.get(from..=to));
    let candidates = [Some(answer), fenced, braced].into_iter().flatten();
    candidates
        .into_iter()
        .find_map(|text| Some((text, serde_json::from_str(text).ok()?)))
}

/// A key that stands twice in one object of a text that is JSON.
fn repeated(text: &str) -> Option<String> {
    let bounds = Bounds {
        bytes: usize::MAX,
        depth: Bounds::MAX_DEPTH,
        digits: usize::MAX,
    };
    let json = Json::read(text, bounds).ok()?;
    json.repeated_key().map(str::to_owned)
}

fn quoted(key: &str) -> String {
    Value::from(key).to_string()
}

fn cut(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE));
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_found_checked_and_kept_digit_by_digit() {
        let schema =
            json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}}});
        let output = Output::new(&schema, 2).unwrap();
        let table = [
            (r#"{"n": 1.50}"#, Ok(r#"{"n": 1.50}"#)),
            ("```json\n{\"n\": 2}\n```", Ok(r#"{"n": 2}"#)),
            ("It is {\"n\": 3}, I think.", Ok(r#"{"n": 3}"#)),
            ("Three", Err("it is no JSON")),
            (
                r#"{"n": "3"}"#,
                Err(r#"at /n: "3" is not of type "number""#),
            ),
            (
                r#"{"n": 1, "m": [{"a\"": 1, "a\u0022": 2}]}"#,
                Err(r#"the key "a\"" stands twice in one object"#),
            ),
            ("{}", Err(r#""n" is a required property"#)),
            ("[1]", Err(r#"[1] is not of type "object""#)),
        ];
        for (answer, expected) in table {
            let read = output.read(answer);
            assert_eq!(
                read.as_deref().map_err(String::as_str),
                expected,
                "{answer}"
            );
        }
        assert!(output.instructions().contains(r#""required":["n"]"#));
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        let error = Output::new(&json!({"type": "objekt"}), 2).unwrap_err();
        assert!(error.contains("objekt"), "{error}");
    }
}
