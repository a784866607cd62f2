//! [`Refusal`]: what a server says of a request it does not answer, in the words of any provider. Pure.
//!
//! Providers agree on no form, so all forms are read in one place; nothing unreadable becomes another error than
//! the status says.

use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::Value;

use crate::error::{ModelError, speaks_of_context};

/// Why a server did not answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Refusal {
    /// The HTTP status; 0 where the error came in the middle of an answer.
    pub(crate) status: u16,
    /// The server's words for it, with spaces between: code, type, the field that is wrong.
    pub(crate) code: String,
    /// What it says to people.
    pub(crate) message: String,
    /// How long it asks to wait.
    pub(crate) retry_after: Option<Duration>,
}

/// The `error` of an answer, whoever sent it.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum WireError {
    /// Only words.
    Text(String),
    /// OpenAI's, Anthropic's and Google's objects, which share most names.
    Object(Box<WireErrorObject>),
    /// Something else.
    Other(Value),
}

#[derive(Deserialize)]
pub(crate) struct WireErrorObject {
    message: Option<String>,
    r#type: Option<String>,
    code: Option<Value>,
    param: Option<Value>,
    status: Option<Value>,
    #[serde(default)]
    details: Option<Value>,
}

impl Refusal {
    /// Reads the body of an error; empty if it is nothing this crate knows. The status is the caller's to set.
    pub(crate) fn read(body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Body {
            error: Option<WireError>,
            message: Option<String>,
            detail: Option<Value>,
            r#type: Option<String>,
            code: Option<Value>,
        }
        // Google answers a stream that it refuses with a list of one.
        let unwrapped = body
            .strip_prefix(b"[")
            .and_then(|body| body.trim_ascii_end().strip_suffix(b"]"));
        let Ok(body) = serde_json::from_slice::<Body>(unwrapped.unwrap_or(body)) else {
            let text = String::from_utf8_lossy(body);
            let page = text.trim_start().starts_with('<');
            return Self {
                message: if page {
                    String::new()
                } else {
                    text.into_owned()
                },
                ..Self::default()
            };
        };
        if let Some(error) = body.error {
            return error.into();
        }
        let detail = body.detail.map(|detail| detail.to_string());
        Self {
            code: words([body.code, body.r#type.map(Value::String)]),
            message: body.message.or(detail).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Whether its code or message speaks of this word.
    pub(crate) fn speaks_of(&self, word: &str) -> bool {
        let has = |text: &str| text.to_ascii_lowercase().contains(word);
        has(&self.code) || has(&self.message)
    }

    /// Whether it says that this model cannot be told a temperature at all, as models that reason do. One that is out
    /// of range is the caller's to put right.
    pub(crate) fn wants_no_temperature(&self) -> bool {
        const WORDS: [&str; 3] = ["support", "deprecated", "only the default"];
        let refused = WORDS.iter().any(|word| self.speaks_of(word));
        self.status == 400 && self.speaks_of("temperature") && refused
    }

    /// The error of its status; of one that came with status 200, in the middle of a stream, only its words say what
    /// it is.
    pub(crate) fn into_error(self) -> ModelError {
        let code = self.code.as_str();
        let status = match self.status {
            0 => {
                let number = code.split(' ').find_map(|word| word.parse::<u16>().ok());
                number
                    .filter(|status| (400..=599).contains(status))
                    .unwrap_or_else(|| status_of(code, &self.message))
            }
            status => status,
        };
        ModelError::from_status(status, code, &self.message, self.retry_after)
    }

    /// Whether it says that this model does not exist.
    pub(crate) fn misses_model(&self, model: &str) -> bool {
        const CODES: [&str; 2] = ["model_not_found", "invalid_model"];
        if CODES.iter().any(|code| self.speaks_of(code)) {
            return true;
        }
        match self.status {
            404 => self.speaks_of("model"),
            400 => {
                let named = self.message.contains(model) || self.speaks_of("model name");
                let absent = [
                    "does not exist",
                    "not found",
                    "not a valid model",
                    "unknown model",
                ];
                named && absent.iter().any(|words| self.speaks_of(words))
            }
            _ => false,
        }
    }
}

/// The status that an error's words stand for.
fn status_of(code: &str, message: &str) -> u16 {
    let code = code.to_ascii_lowercase();
    let table: [(&[&str], u16); 5] = [
        (&["rate_limit", "resource_exhausted"], 429),
        (&["request_too_large"], 413),
        (&["invalid_request", "invalid_argument", "not_found"], 400),
        (&["authentication", "permission", "unauthenticated"], 401),
        (&["timeout_error", "deadline_exceeded"], 504),
    ];
    if speaks_of_context(&code) || speaks_of_context(message) {
        return 400;
    }
    let known = table
        .iter()
        .find(|(words, _)| words.iter().any(|word| code.contains(word)));
    known.map_or(500, |(_, status)| *status)
}

impl From<WireError> for Refusal {
    fn from(error: WireError) -> Self {
        let object = match error {
            WireError::Text(message) => {
                return Self {
                    message,
                    ..Self::default()
                };
            }
            WireError::Other(value) => {
                return Self {
                    message: value.to_string(),
                    ..Self::default()
                };
            }
            WireError::Object(object) => object,
        };
        let kind = object.r#type.map(Value::String);
        Self {
            code: words([object.code, kind, object.status, object.param]),
            message: object.message.unwrap_or_default(),
            retry_after: object.details.as_ref().and_then(retry_info),
            ..Self::default()
        }
    }
}

/// Codes as one text.
fn words<const N: usize>(codes: [Option<Value>; N]) -> String {
    let words = codes.into_iter().filter_map(|code| match code {
        Some(Value::String(word)) => Some(word),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Google's way to ask for a wait: a detail with `retryDelay`, as in `"37s"`.
fn retry_info(details: &Value) -> Option<Duration> {
    let delays = details.as_array()?.iter();
    let delay = delays.filter_map(|detail| detail.get("retryDelay")?.as_str());
    let mut seconds = delay.filter_map(|delay| delay.strip_suffix('s')?.parse().ok());
    wait_in_seconds(seconds.next()?)
}

/// A wait of so many seconds. More than there can be are a wait too: the longest one.
pub(super) fn wait_in_seconds(seconds: f64) -> Option<Duration> {
    let too_long = (seconds > 0.0).then_some(Duration::MAX);
    Duration::try_from_secs_f64(seconds).ok().or(too_long)
}

/// The wait that `Retry-After` asks for: seconds, or a date, which counts from the server's own `Date` if it sent one.
pub(super) fn retry_after(
    value: &str,
    server_date: Option<&str>,
    now: SystemTime,
) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return wait_in_seconds(seconds);
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let server = server_date.and_then(|date| httpdate::parse_http_date(date).ok());
    let wait = until.duration_since(server.unwrap_or(now));
    Some(wait.unwrap_or_default())
}
