//! What can go wrong: [`Error`] for wrong input and configuration, [`ModelError`] for a model call that failed.
//!
//! A [`ModelError`] is a stop reason of the run and never a crash; [`ModelError::reason`] is the word that
//! scripts rely on. Neither may ever carry a secret.

mod model;

use std::path::PathBuf;

pub use model::{ModelError, TimeLimit};
pub(crate) use model::{shorten, speaks_of_context};

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
    /// A file of a local embedding model is missing or cannot be used.
    #[error("embedding model {}: {problem}", path.display())]
    EmbedderFile {
        /// The file.
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
    #[error("unknown model provider `{name}` (there are: {known}){}", did_you_mean(.suggestion.as_deref()))]
    UnknownProvider {
        /// The name that was asked for.
        name: String,
        /// The names there are, with commas.
        known: String,
        /// What was probably meant.
        suggestion: Option<String>,
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
    /// A provider has no server of its own, and no other was named.
    #[error(
        "{provider} needs the address of a server: set {variable}, or write http://host:port/v1#MODEL"
    )]
    MissingBaseUrl {
        /// The provider.
        provider: String,
        /// The environment variable that usually holds the address.
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

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |close| format!("; did you mean `{close}`?"))
}
