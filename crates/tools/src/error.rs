//! What can go wrong: configuration that cannot be used, and requests that did not bring what they should.
//!
//! Tools hand these to the model as they are, so each says what happened and, where there is one, the way on. None
//! carries a secret: of an address only scheme, host and port are told.

use std::time::Duration;

use paraph_gateway::ToolError;
use reqwest::Url;

use crate::github::GitHubFault;
use crate::outbound::shown;

/// Why something could not be set up or fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Configuration that cannot be used. A person has to put it right.
    #[error("{what}: {problem}")]
    Config {
        /// The part of the configuration.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An address that is none, or not one of a kind that is fetched.
    #[error("this address cannot be fetched: {problem}")]
    Url {
        /// What is wrong with it.
        problem: String,
    },
    /// An address that may not be reached from here. Nothing was sent.
    #[error("{host} may not be reached: it is {why}")]
    Forbidden {
        /// Scheme, host and port.
        host: String,
        /// What kind of address it is.
        why: &'static str,
    },
    /// No server has this name, or the look-up failed.
    #[error("{host} was not found: {problem}")]
    Unresolved {
        /// The name that was looked up.
        host: String,
        /// What the look-up said.
        problem: String,
    },
    /// The server was not reached.
    #[error("{host} could not be reached: {problem}")]
    Connect {
        /// Scheme, host and port.
        host: String,
        /// The network's reason.
        problem: String,
        /// Whether the request, or a part of it, may have been sent.
        sent: bool,
    },
    /// It took too long.
    #[error("{host} did not answer in {} seconds", after.as_secs_f64())]
    Timeout {
        /// Scheme, host and port.
        host: String,
        /// How long was waited.
        after: Duration,
    },
    /// The answer is larger than what is read.
    #[error("the answer of {host} is larger than the {limit} bytes that are read")]
    TooLarge {
        /// Scheme, host and port.
        host: String,
        /// The most that is read, unpacked.
        limit: usize,
    },
    /// Too many redirects, or a redirect that leads nowhere.
    #[error("{host} redirects {problem}")]
    Redirect {
        /// Scheme, host and port of the last server.
        host: String,
        /// What is wrong.
        problem: String,
    },
    /// An answer that broke off or cannot be read.
    #[error("the answer of {host} cannot be read: {problem}")]
    Broken {
        /// Scheme, host and port.
        host: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A status that is no success.
    #[error("{host} answered {status}{}{}", after_colon(.said), wait(.retry_after.as_deref()))]
    Status {
        /// Scheme, host and port.
        host: String,
        /// The status.
        status: u16,
        /// What the server said, shortened, without our secrets.
        said: String,
        /// When to try again, as the server said it: seconds or a date.
        retry_after: Option<String>,
    },
    /// An MCP server that is not to be used, or that says that something went wrong.
    #[error("the MCP server `{server}`: {problem}")]
    Server {
        /// Its name.
        server: String,
        /// What is wrong, be it in its own words.
        problem: String,
    },
    /// An MCP server that did not take a request at all, by an error of the protocol that says so. Nothing was done.
    #[error("the MCP server `{server}` did not take it: {problem}")]
    NotTaken {
        /// Its name.
        server: String,
        /// Why, in its own words.
        problem: String,
    },
    /// A tool of an MCP server that may not be called until somebody has reviewed it.
    #[error("`{tool}` is disabled: {why}; a person has to review it")]
    Disabled {
        /// The tool's name, as agents know it.
        tool: String,
        /// Why, and what of it changed.
        why: String,
    },
    /// A folder of documents that cannot be searched.
    #[error("the folder of sources `{folder}`: {problem}")]
    Folder {
        /// The folder, as it was given.
        folder: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An address that is no issue of the GitHub that is configured.
    #[error("`{address}` is not the address of an issue: {problem}; write {expected}")]
    NoIssue {
        /// What was given, shortened.
        address: String,
        /// What is wrong with it.
        problem: String,
        /// How such an address looks here.
        expected: String,
    },
    /// GitHub did not give or do what it was asked for.
    #[error("{what}: {fault}")]
    GitHub {
        /// What it was asked about, such as `acme/lamp#7`.
        what: String,
        /// Why there is nothing.
        fault: GitHubFault,
    },
    /// A successful answer without what was asked for.
    #[error("{problem}")]
    Nothing {
        /// What is missing, and what to try.
        problem: String,
    },
}

impl Error {
    /// Configuration that cannot be used.
    pub(crate) fn config(what: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::Config {
            what: what.into(),
            problem: problem.into(),
        }
    }

    pub(crate) fn forbidden(url: &Url, why: &'static str) -> Error {
        Error::Forbidden {
            host: shown(url),
            why,
        }
    }

    /// For the model: bad arguments where it wrote an address that cannot be fetched, else a failure.
    pub(crate) fn for_model(self) -> ToolError {
        match self {
            Error::Url { .. } | Error::Forbidden { .. } => ToolError::bad_args(self.to_string()),
            other => ToolError::new(other.to_string()),
        }
    }
}

fn after_colon(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

fn wait(retry_after: Option<&str>) -> String {
    match retry_after {
        None => String::new(),
        Some(when) if when.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("; it asks to wait {when} seconds")
        }
        Some(when) => format!("; it asks to wait until {when}"),
    }
}
