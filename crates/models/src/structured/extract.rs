//! JSON out of what a model wrote, which may be prose with JSON in it. Pure.

use serde_json::Value;

/// The JSON in a text, with its exact text: the whole of it, a code fence in it, or from its first brace to its last.
///
/// # Errors
/// What is wrong with the whole, or with what looks most like JSON.
pub fn json_in(text: &str) -> Result<(&str, Value), String> {
    let whole = text.trim();
    let mut problem = None;
    for candidate in [Some(whole), fenced(whole), braced(whole)] {
        let Some(candidate) = candidate.filter(|text| !text.is_empty()) else {
            continue;
        };
        match serde_json::from_str(candidate) {
            Ok(value) => return Ok((candidate, value)),
            Err(error) if candidate.starts_with(['{', '[']) => {
                problem.get_or_insert(format!("it is no JSON: {error}"));
            }
            Err(_) => {}
        }
    }
    Err(problem.unwrap_or_else(|| "there is no JSON in it".to_owned()))
}

/// What stands in the first code fence.
fn fenced(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("```")?;
    // The fence's line may name a language.
    let (_, rest) = rest.split_once('\n')?;
    let (inside, _) = rest.split_once("```")?;
    Some(inside.trim())
}

fn braced(text: &str) -> Option<&str> {
    let start = text.find(['{', '['])?;
    let end = text.rfind(['}', ']'])?;
    text.get(start..=end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Result<&str, String> {
        json_in(text).map(|(exact, _)| exact)
    }

    #[test]
    fn json_is_found_alone_fenced_and_inside_prose() {
        let table = [
            (r#"{"a": 1}"#, r#"{"a": 1}"#),
            (" [1, 2]\n", "[1, 2]"),
            ("5", "5"),
            ("```json\n{\"a\": 1}\n```", r#"{"a": 1}"#),
            (
                "Sure!\n```\n{\"a\": 1}\n```\nAnything else {you} need?",
                r#"{"a": 1}"#,
            ),
            ("The answer is {\"a\": [1]}, as you see.", r#"{"a": [1]}"#),
            (
                "{\"n\": 10000000000000000000001}",
                "{\"n\": 10000000000000000000001}",
            ),
        ];
        for (text, json) in table {
            assert_eq!(found(text), Ok(json), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_of_what_looks_like_json() {
        let table = [
            ("", "there is no JSON in it"),
            ("I do not know.", "there is no JSON in it"),
            ("} no {", "there is no JSON in it"),
            (
                "{\"a\": ",
                "it is no JSON: EOF while parsing a value at line 1 column 5",
            ),
            (
                "So: {\"a\": x}",
                "it is no JSON: expected value at line 1 column 7",
            ),
        ];
        for (text, problem) in table {
            assert_eq!(found(text), Err(problem.to_owned()), "{text}");
        }
    }

    #[test]
    fn nesting_without_end_is_no_json() {
        let deep = "[".repeat(100_000);
        assert!(
            found(&deep)
                .unwrap_err()
                .contains("recursion limit exceeded")
        );
    }
}
