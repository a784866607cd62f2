//! A tool call as a model proposes it: a name, and arguments that nobody has checked yet.
//!
//! Both dialects make these; the session judges them. A call can be saved in a graph's state: it is
//! written as its name and its argument text, so that no digit is lost on the way.

use crate::json::{Bounds, Json, JsonError, JsonFault, Shape, View, collapse_spaces, stable};
use crate::redact::Redacted;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;

/// Longer names are cut: they end up in stop reasons, and no tool has one.
const MAX_NAME: usize = 256;

/// What a model wants to have called.
///
/// ```
/// use paraph_gateway::ToolCall;
/// let call = ToolCall::new("search_policy", r#"{"query":"refund policy"}"#)?;
/// assert_eq!(call.args_hash(), "cfb7b9e24993");
/// let broken = ToolCall::native("search_policy", r#"{"query":"refu"#);      // a model's text, cut off
/// assert!(broken.fault().is_some());                                         // the session answers `tool_bad_args`
/// # Ok::<(), paraph_gateway::JsonError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct ToolCall {
    name: String,
    args: Json,
    /// The arguments as compact JSON, or what the model wrote if that is none.
    text: String,
    /// Why the text could not be read; then `args` is empty.
    broken: Option<JsonError>,
    digest: String,
}

/// Without the secrets in its arguments: calls end up in logs and in the messages of panics.
impl std::fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolCall")
            .field("name", &self.name)
            .field("arguments", &Redacted(&self.text))
            .finish_non_exhaustive()
    }
}

/// The saved form.
#[derive(Serialize, Deserialize)]
struct Written {
    name: String,
    arguments: String,
}

impl From<Written> for ToolCall {
    fn from(written: Written) -> ToolCall {
        ToolCall::native(written.name, &written.arguments)
    }
}

impl From<ToolCall> for Written {
    fn from(call: ToolCall) -> Written {
        Written {
            arguments: call.text,
            name: call.name,
        }
    }
}

impl ToolCall {
    /// A call with arguments that have to be a JSON object. An empty text and `null` are no arguments.
    pub fn new(name: impl Into<String>, arguments: &str) -> Result<ToolCall, JsonError> {
        let args = read_arguments(arguments)?;
        Ok(ToolCall::from_args(name.into(), args))
    }

    /// A call from a provider's native tool calls. It never fails: what a model wrote is counted and
    /// answered by the session, also when it is no JSON.
    pub fn native(name: impl Into<String>, arguments: &str) -> ToolCall {
        match read_arguments(arguments) {
            Ok(args) => ToolCall::from_args(name.into(), args),
            Err(fault) => ToolCall {
                name: cut_name(name.into()),
                args: Json::empty_object(),
                digest: sha256(&format!("unreadable:{arguments}")),
                text: arguments.to_owned(),
                broken: Some(fault),
            },
        }
    }

    pub(crate) fn from_args(name: String, args: Json) -> ToolCall {
        ToolCall {
            name: cut_name(name),
            digest: sha256(&canonical(args.view())),
            text: args.to_string(),
            args,
            broken: None,
        }
    }

    /// The tool's name, as the model gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The arguments: an object, `{}` if they could not be read.
    pub fn args(&self) -> &Json {
        &self.args
    }

    /// The argument text: compact JSON, or what the model wrote if that is none.
    pub fn arguments(&self) -> String {
        self.text.clone()
    }

    /// The same, to look at: it is written once for all who read it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Why the arguments could not be read.
    pub fn fault(&self) -> Option<&JsonError> {
        self.broken.as_ref()
    }

    /// Twelve hexadecimal digits that stand for the arguments in traces.
    pub fn args_hash(&self) -> &str {
        self.digest.get(..12).unwrap_or(&self.digest)
    }

    /// All 64 digits of the same hash: what "the same arguments" means to the gateway.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// The hash with the spaces of all string values normalised.
    pub(crate) fn soft_digest(&self) -> String {
        match &self.broken {
            Some(_) => sha256(&format!("unreadable:{}", collapse_spaces(&self.text))),
            None => sha256(&stable(self.args.view(), collapse_spaces)),
        }
    }
}

fn cut_name(mut name: String) -> String {
    if name.len() > MAX_NAME {
        name.truncate(name.floor_char_boundary(MAX_NAME));
        name.push('…');
    }
    name
}

fn read_arguments(text: &str) -> Result<Json, JsonError> {
    if text.trim().is_empty() {
        return Ok(Json::empty_object());
    }
    let json = Json::read(text, Bounds::default())?;
    match json.view().shape() {
        Shape::Object(_) => Ok(json),
        Shape::Null => Ok(Json::empty_object()),
        _ => Err(JsonError {
            at: 0,
            fault: JsonFault::Expected("an object with the arguments"),
        }),
    }
}

/// The hash of any JSON as the article computes it: twelve hexadecimal digits of the SHA-256 of its
/// canonical text. Whatever Python takes as false (`null`, `[]`, `0`, `""`, …) hashes as `{}`.
///
/// ```
/// use paraph_gateway::{Bounds, Json, args_hash};
/// assert_eq!(args_hash(Json::read(r#"{"user_id":42}"#, Bounds::default())?.view()), "feaa769a39ae");
/// # Ok::<(), paraph_gateway::JsonError>(())
/// ```
pub fn args_hash(args: View<'_>) -> String {
    let mut hash = sha256(&canonical(args));
    hash.truncate(12);
    hash
}

fn canonical(args: View<'_>) -> String {
    let text = stable(args, |text| Cow::Borrowed(text));
    match text.as_str() {
        "null" | "[]" | "false" | "0" | "0.0" | "-0.0" | "\"\"" => "{}".to_owned(),
        _ => text,
    }
}

pub(crate) fn sha256(text: &str) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let digest = Sha256::digest(text.as_bytes());
    let halves = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.map(|half| DIGITS[usize::from(half)]).collect()
}
