//! What can go wrong: [`Error`] for wrong input and configuration, [`ModelError`] for a model call that failed.
//!
//! A [`ModelError`] is a stop reason of the run and never a crash; [`ModelError::reason`] is the word that
//! scripts rely on. Neither may ever carry a secret.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::message::Usage;

/// Wrong input or configuration: something a person or a client has to put right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Text that should be JSON of a certain kind is not.
    #[error("{what}: {problem}")]
    Json {
        /// What was being read, for example "tool call arguments".
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// JSON nested deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
    #[error("JSON is nested deeper than {limit} levels")]
    TooDeep {
        /// The limit in levels.
        limit: usize,
    },
    /// Something is larger than this crate reads.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// A message names a role or type that does not exist here.
    #[error(
        "unknown message role `{0}` (known: human or user, ai or assistant, system or developer, tool, remove)"
    )]
    UnknownRole(String),
    /// A message lacks a field that its role needs.
    #[error("a message of role `{role}` needs the field `{field}`")]
    MissingField {
        /// The role as this crate spells it.
        role: &'static str,
        /// The field that is missing.
        field: &'static str,
    },
    /// A message has a field that its role cannot have.
    #[error("a message of role `{role}` cannot have the field `{field}`")]
    UnexpectedField {
        /// The role as this crate spells it.
        role: &'static str,
        /// The field that does not belong there.
        field: &'static str,
    },
    /// A removal names a message that is not in the list. Nothing was changed.
    #[error("cannot remove message `{id}`: no message has this id")]
    UnknownMessage {
        /// The id that was asked for.
        id: String,
    },
    /// A script cannot be read.
    #[error("script {}: {problem}", path.display())]
    ScriptFile {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        problem: String,
    },
    /// A line of a script is not what a script line has to be.
    #[error("script {}, line {line}: {problem}", path.display())]
    ScriptLine {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A recording cannot be read, or cannot be made.
    #[error("recording {}: {problem}", path.display())]
    Cassette {
        /// The folder, or the file in it.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// No tool mode has this name.
    #[error("unknown tool mode `{0}` (there are: native, schema)")]
    ToolMode(String),
    /// A model specification cannot be understood.
    #[error("model `{spec}`: {problem}")]
    Spec {
        /// The specification as it was given.
        spec: String,
        /// What is wrong with it.
        problem: String,
    },
    /// No provider has this name.
    #[error("unknown model provider `{name}` (there are: {known})")]
    UnknownProvider {
        /// The name that was asked for.
        name: String,
        /// The names there are, with commas.
        known: String,
    },
    /// The feature is part of the design and not of this version.
    #[error("{what} comes with a later version")]
    Later {
        /// What was asked for.
        what: String,
    },
    /// The rehearsal model was asked of this crate; each agent brings its own.
    #[error("the rehearsal model belongs to an agent; ask the agent for it")]
    Rehearsal,
    /// A provider needs a key and none was given.
    #[error("{provider} needs an API key: set {variable}")]
    MissingKey {
        /// The provider.
        provider: String,
        /// The environment variable that usually holds the key.
        variable: &'static str,
    },
    /// A base URL, proxy, certificate or key that cannot be used.
    #[error("{what}: {problem}")]
    Http {
        /// Which setting.
        what: String,
        /// Why it cannot be used.
        problem: String,
    },
}

/// Why a model gave no usable answer. Its JSON is that of a recorded failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ModelError {
    /// The model did not answer within its own time limit.
    #[error("the model did not answer in time")]
    Timeout,
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
            Self::Timeout | Self::Connect { .. } => "llm_timeout",
            Self::OutOfTime => "max_seconds",
            Self::Empty { .. } => "llm_empty",
            Self::Auth { .. } => "llm_error:auth",
            Self::RateLimited { .. } => "llm_error:rate_limited",
            Self::BadRequest { .. } => "llm_error:bad_request",
            Self::ContextOverflow { .. } => "llm_error:context_overflow",
            Self::Server { .. } => "llm_error:server",
            Self::Disconnected { .. } => "llm_error:connection",
            Self::Decode { .. } | Self::Mismatch { .. } => "llm_error:decode",
            Self::ScriptExhausted { .. } | Self::NotRecorded { .. } => "llm_error:script_exhausted",
            Self::Recording { .. } => "store_error",
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
            408 => Self::Timeout,
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
            _ => Self::BadRequest { message },
        }
    }
}

/// Servers agree on no code for this, so their known phrases are looked for.
pub(crate) fn speaks_of_context(text: &str) -> bool {
    const PHRASES: [&str; 8] = [
        "context_length_exceeded",
        "exceed_context_size",
        "context length",
        "context window",
        "context size",
        "maximum context",
        "prompt is too long",
        "too many tokens",
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
