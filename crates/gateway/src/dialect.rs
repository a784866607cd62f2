//! The JSON action format, and the two ways in which a session answers a failed call.
//!
//! Agents give a model's text to [`parse_action`] and its calls to a session. An empty answer is not
//! judged here: the agent ends with `llm_empty` before it parses anything.

use crate::call::ToolCall;
use crate::json::{Bounds, Json, Shape, Style, View, is_python_space, quote};
use crate::stop::{InvalidAction, Stop};

/// What a failed call does to the run. One field of a session's scope; the code is the same for both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// JSON actions: the run ends with the failure's reason.
    Strict,
    /// A provider's tool calls: the model reads the failure and the run goes on.
    #[default]
    Native,
}

impl Dialect {
    /// Whether calls that were denied, or that no tool answers to, count for loops. In the strict dialect
    /// the first of them ends the run: the article's order of checks never gets as far as loops.
    pub(crate) fn watches_refusals(self) -> bool {
        self == Dialect::Native
    }
}

/// A valid action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Call a tool.
    Tool(ToolCall),
    /// The answer, without space around it.
    Final(String),
}

/// Reads one action from a model's text, untrusted as it is.
///
/// The order of the checks is part of the contract: `bad_json` (no JSON, or `kind` is `invalid`, which
/// is how the article marks it), `not_object`, `bad_kind`, then for `final` `extra_keys` and
/// `missing_answer`, for `tool` `extra_keys`, `missing_tool_name` and `bad_args`. Absent or `null`
/// arguments are none. A blank name is a name; the policy will deny it.
///
/// ```
/// use paraph_gateway::{Step, parse_action};
/// assert_eq!(parse_action(r#"{"kind":"final","answer":" Yes. "}"#)?, Step::Final("Yes.".into()));
/// let error = parse_action(r#"{"kind":"tool","args":{},"why":"?"}"#).unwrap_err();
/// assert_eq!(error.to_string(), "invalid_action:extra_keys");
/// # Ok::<(), paraph_gateway::Stop>(())
/// ```
pub fn parse_action(text: &str) -> Result<Step, Stop> {
    let json = Json::read(text, Bounds::default()).map_err(|_| InvalidAction::BadJson);
    Ok(json.and_then(|json| action(json.view()))?)
}

fn action(action: View<'_>) -> Result<Step, InvalidAction> {
    let Shape::Object(mut entries) = action.shape() else {
        return Err(InvalidAction::NotObject);
    };
    let mut has_only = |known: &[&str]| match entries.all(|(key, _)| known.contains(&key)) {
        true => Ok(()),
        false => Err(InvalidAction::ExtraKeys),
    };
    match action.get("kind").and_then(View::as_str) {
        Some("invalid") => Err(InvalidAction::BadJson),
        Some("final") => {
            has_only(&["kind", "answer"])?;
            let answer = action.get("answer").and_then(View::as_str).unwrap_or("");
            match answer.trim_matches(is_python_space) {
                "" => Err(InvalidAction::MissingAnswer),
                answer => Ok(Step::Final(answer.to_owned())),
            }
        }
        Some("tool") => {
            has_only(&["kind", "name", "args"])?;
            let name = match action.get("name").and_then(View::as_str) {
                None | Some("") => return Err(InvalidAction::MissingToolName),
                Some(name) => name.to_owned(),
            };
            let args = match action.get("args").map(|args| (args, args.shape())) {
                None | Some((_, Shape::Null)) => Json::empty_object(),
                Some((args, Shape::Object(_))) => args.to_json(),
                Some(_) => return Err(InvalidAction::BadArgs),
            };
            Ok(Step::Tool(ToolCall::from_args(name, args)))
        }
        _ => Err(InvalidAction::BadKind),
    }
}

/// What a result object shows as `raw_action` of a text that is no valid action: its JSON, or the text
/// inside an object of the kind `invalid` if it is none.
///
/// ```
/// use paraph_gateway::raw_action;
/// assert_eq!(raw_action("{\"kind\": 7}").to_string(), r#"{"kind":7}"#);
/// assert_eq!(raw_action("Yes!").to_string(), r#"{"kind":"invalid","raw":"Yes!"}"#);
/// ```
pub fn raw_action(text: &str) -> Json {
    let bounds = Bounds::default();
    Json::read(text, bounds).unwrap_or_else(|_| {
        // The wrapped text may be larger than what a model may send.
        let whole = Bounds {
            bytes: usize::MAX,
            ..bounds
        };
        let wrapped = format!(
            r#"{{"kind":"invalid","raw":{}}}"#,
            quote(text, Style::Exact)
        );
        Json::read(&wrapped, whole).unwrap_or_else(|_| Json::empty_object())
    })
}

impl From<InvalidAction> for Stop {
    fn from(detail: InvalidAction) -> Stop {
        Stop::InvalidAction(detail)
    }
}

#[cfg(test)]
mod tests;
