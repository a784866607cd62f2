//! [`ModelError`]: why a model gave no usable answer, and which stop reason that is.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::did_you_mean;
use crate::message::Usage;

/// Why a model gave no usable answer. Its JSON is that of a recorded failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ModelError {
    /// The model did not answer within its own time limits.
    #[error("the model did not answer in time: {limit}{}", lasting(*.after))]
    Timeout {
        /// Which limit.
        limit: TimeLimit,
        /// How long that was, where it is ours.
        after: Option<Duration>,
    },
    /// The model's server could not be reached, or hung up before it answered.
    #[error("no connection to the model: {message}")]
    Connect {
        /// What the network said.
        message: String,
    },
    /// The run's own time is over; it ended before the model's limit, or at the same instant.
    #[error("the run's time is over")]
    OutOfTime,
    /// The model answered with neither text nor a tool call.
    #[error("the model's answer is empty")]
    Empty {
        /// What the empty answer cost, where the server said it.
        usage: Option<Box<Usage>>,
    },
    /// The key is missing, wrong or not allowed to do this (401, 403).
    #[error("the model refused the credentials: {message}")]
    Auth {
        /// What the server said, shortened.
        message: String,
    },
    /// Too many requests (429).
    #[error("the model is rate limited: {message}")]
    RateLimited {
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
        /// What the server said, shortened.
        message: String,
    },
    /// The server says that the request is wrong (other 4xx).
    #[error("the model refused the request: {message}")]
    BadRequest {
        /// What the server said, shortened.
        message: String,
    },
    /// The provider has no such model.
    #[error("{provider} has no model `{model}`{}{}", did_you_mean(.suggestion.as_deref()), there_are(.known))]
    UnknownModel {
        /// The provider.
        provider: String,
        /// The model that was asked for.
        model: String,
        /// The closest of the known names, if one is close.
        suggestion: Option<String>,
        /// The models that the server says it has, at most a few dozen; empty if it did not say.
        known: Vec<String>,
    },
    /// Several models were asked one after the other, and none answered.
    #[error("no model answered: {}", each_of(.tried))]
    AllFailed {
        /// All of them in the order in which they were asked, with their errors; the first was the wanted one.
        tried: Vec<(String, ModelError)>,
    },
    /// The request does not fit into the model's context.
    #[error("the request does not fit into the model's context: {message}")]
    ContextOverflow {
        /// What the server, or the check before sending, said.
        message: String,
    },
    /// The server failed (5xx).
    #[error("the model's server failed: {message}")]
    Server {
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
        /// What the server said, shortened.
        message: String,
    },
    /// The connection broke while the answer was being read.
    #[error("the connection broke in the middle of an answer: {message}")]
    Disconnected {
        /// What the network said.
        message: String,
    },
    /// The answer cannot be understood, or is larger than this crate reads.
    #[error("the model's answer cannot be read: {message}")]
    Decode {
        /// What is wrong with it.
        message: String,
    },
    /// The answer is not of the form that was asked for, however often the model was told.
    #[error("the model's answer is not of the form asked for, after {tries} tries: {problem}")]
    Mismatch {
        /// What is wrong with the last answer.
        problem: String,
        /// The last answer as the model wrote it.
        raw: String,
        /// How often the model was asked.
        tries: u32,
        /// What all the answers together cost, where the server said it.
        usage: Option<Box<Usage>>,
    },
    /// A scripted model has no line left.
    #[error("the script has no line for attempt {attempt}")]
    ScriptExhausted {
        /// The attempt that found no line, counted from 1.
        attempt: usize,
    },
    /// A replayed model has no answer to this request.
    #[error("nothing is recorded for this request: {message}")]
    NotRecorded {
        /// What changed since the recording, or how many requests it has.
        message: String,
    },
    /// What a recorded model said could not be written down.
    #[error("the recording cannot be written: {message}")]
    Recording {
        /// Which file, and why.
        message: String,
    },
}

impl ModelError {
    /// The stop reason of a run that ends with this error; one of the words every Paraph surface uses.
    ///
    /// A server that cannot be reached is `llm_timeout`, as is one that is too slow; a connection that
    /// breaks later is `llm_error:connection`. Where the run's own time ended first the reason is `max_seconds`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Timeout { .. } | Self::Connect { .. } => "llm_timeout",
            Self::OutOfTime => "max_seconds",
            Self::Empty { .. } => "llm_empty",
            Self::Auth { .. } => "llm_error:auth",
            Self::RateLimited { .. } => "llm_error:rate_limited",
            Self::BadRequest { .. } | Self::UnknownModel { .. } => "llm_error:bad_request",
            // The wanted model's trouble is what somebody has to look at; the others only stood in for it.
            Self::AllFailed { tried } => tried
                .first()
                .map_or("llm_error:server", |(_, error)| error.reason()),
            Self::ContextOverflow { .. } => "llm_error:context_overflow",
            Self::Server { .. } => "llm_error:server",
            Self::Disconnected { .. } => "llm_error:connection",
            Self::Decode { .. } | Self::Mismatch { .. } => "llm_error:decode",
            Self::ScriptExhausted { .. } | Self::NotRecorded { .. } => "llm_error:script_exhausted",
            Self::Recording { .. } => "store_error",
        }
    }

    /// Whether another model may well answer where this one did not; see [`Fallback`](crate::Fallback). Not if the
    /// run's time is over, and not if the request itself is wrong.
    pub fn concerns_this_model_only(&self) -> bool {
        match self {
            Self::OutOfTime
            | Self::BadRequest { .. }
            | Self::ScriptExhausted { .. }
            | Self::NotRecorded { .. }
            | Self::Recording { .. } => false,
            Self::AllFailed { tried } => {
                let mut errors = tried.iter().map(|(_, error)| error);
                errors.all(Self::concerns_this_model_only)
            }
            _ => true,
        }
    }

    /// The same error with another text in the place of a secret.
    pub(crate) fn without(mut self, secret: &str, instead: &str) -> Self {
        if let Self::Connect { message }
        | Self::Auth { message }
        | Self::RateLimited { message, .. }
        | Self::BadRequest { message }
        | Self::ContextOverflow { message }
        | Self::Server { message, .. }
        | Self::Disconnected { message }
        | Self::Decode { message } = &mut self
        {
            *message = message.replace(secret, instead);
        }
        self
    }

    /// Whether the same request may well succeed a little later: 429 and 5xx, nothing else.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::Server { .. })
    }

    /// How long the server asked to wait, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Server { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }

    /// The error that an HTTP status means. `message` and `code` are the server's own words, which alone
    /// tell an overlong request from another wrong one.
    pub(crate) fn from_status(
        status: u16,
        code: &str,
        message: &str,
        retry_after: Option<Duration>,
    ) -> Self {
        let text = shorten(message);
        let message = if text.is_empty() {
            format!("status {status}")
        } else {
            format!("status {status}: {text}")
        };
        match status {
            401 | 403 => Self::Auth { message },
            408 => Self::Timeout {
                limit: TimeLimit::Server,
                after: None,
            },
            429 => Self::RateLimited {
                retry_after,
                message,
            },
            500..=599 => Self::Server {
                retry_after,
                message,
            },
            413 => Self::ContextOverflow { message },
            _ if speaks_of_context(code) || speaks_of_context(&text) => {
                Self::ContextOverflow { message }
            }
            // Google says 400 where others say 401.
            _ if text.starts_with("API key not valid") => Self::Auth { message },
            _ => Self::BadRequest { message },
        }
    }
}

/// The limit on time that an answer missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeLimit {
    /// To the connection.
    Connect,
    /// From the request to the first word.
    FirstToken,
    /// From one piece of an answer to the next.
    Idle,
    /// To the end of the answer.
    Total,
    /// The server's own, or one nobody knows more about.
    Server,
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "no connection",
            Self::FirstToken => "no first word",
            Self::Idle => "it fell silent in the middle of its answer",
            Self::Total => "no whole answer",
            Self::Server => "the server gave up",
        })
    }
}

fn lasting(after: Option<Duration>) -> String {
    after.map_or_else(String::new, |after| format!(" for {after:?}"))
}

fn there_are(known: &[String]) -> String {
    match known {
        [] => String::new(),
        known => format!(" (there are: {})", known.join(", ")),
    }
}

fn each_of(tried: &[(String, ModelError)]) -> String {
    let each = tried.iter().map(|(name, error)| format!("{name}: {error}"));
    each.collect::<Vec<_>>().join("; ")
}

/// Servers agree on no code for this, so their known phrases are looked for.
pub(crate) fn speaks_of_context(text: &str) -> bool {
    const PHRASES: [&str; 10] = [
        "context_length_exceeded",
        "exceed_context_size",
        "context length",
        "context window",
        "context size",
        "maximum context",
        "prompt is too long",
        "too many tokens",
        "maximum number of tokens",
        "request_too_large",
    ];
    let text = text.to_ascii_lowercase();
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// At most 300 characters on one line, so that a server cannot flood a log with an error page.
pub(crate) fn shorten(text: &str) -> String {
    const LIMIT: usize = 300;
    let mut short: String = text
        .chars()
        .take(LIMIT)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(LIMIT).is_some() {
        short.push('…');
    }
    short.trim().to_owned()
}
