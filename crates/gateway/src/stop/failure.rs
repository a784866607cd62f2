//! What went wrong with one call, and what a model is told about it.
//!
//! The gateway makes these. In the native dialect the model reads them and the run goes on; in the
//! strict one the run ends with the same reason.

use serde::{Deserialize, Serialize};

/// One call that did not do what was asked.
///
/// `to_string` is the stop reason (`tool_denied:rm`), [`Failure::tell`] what the model reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Failure {
    /// The policy does not let this agent call the tool.
    #[error("tool_denied:{tool}")]
    Denied {
        /// The name as the model gave it.
        tool: String,
        /// In words for the model: which rule, and what there is instead.
        why: String,
    },
    /// The policy allows the name, but no such tool is registered.
    #[error("tool_missing:{tool}")]
    Missing {
        /// The name as the model gave it.
        tool: String,
    },
    /// The arguments are no JSON object, or not what the tool's schema asks for.
    #[error("tool_bad_args:{tool}")]
    BadArgs {
        /// The tool.
        tool: String,
        /// What is wrong, and where.
        detail: String,
    },
    /// The tool ran and failed, or panicked.
    #[error("tool_error:{tool}")]
    Error {
        /// The tool.
        tool: String,
        /// The tool's own words, redacted and cut to a bound.
        detail: String,
    },
    /// The tool took longer than its own limit.
    #[error("tool_timeout:{tool}")]
    Timeout {
        /// The tool.
        tool: String,
    },
    /// A person said no.
    #[error("approval_rejected")]
    Rejected {
        /// The tool.
        tool: String,
        /// The person's reason.
        why: String,
    },
    /// Nobody decided in time.
    #[error("approval_expired")]
    Expired {
        /// The tool.
        tool: String,
    },
}

impl Failure {
    /// The tool that was called.
    pub fn tool(&self) -> &str {
        match self {
            Failure::Denied { tool, .. }
            | Failure::Missing { tool }
            | Failure::BadArgs { tool, .. }
            | Failure::Error { tool, .. }
            | Failure::Timeout { tool }
            | Failure::Rejected { tool, .. }
            | Failure::Expired { tool } => tool,
        }
    }

    /// One sentence or two for the model: what happened, and what it must not try instead.
    pub fn tell(&self) -> String {
        const NO_WAY_AROUND: &str = "Do not look for another way to the same end.";
        match self {
            Failure::Denied { tool, why } if why.is_empty() => {
                format!("You may not call `{tool}`.")
            }
            Failure::Denied { tool, why } => format!("You may not call `{tool}`: {why}."),
            Failure::Missing { tool } => format!("There is no tool called `{tool}`."),
            Failure::BadArgs { tool, detail } => {
                format!("The arguments do not fit `{tool}`: {detail}")
            }
            Failure::Error { tool, detail } => format!("`{tool}` failed: {detail}"),
            Failure::Timeout { tool } => {
                format!("`{tool}` did not finish in the time it may take.")
            }
            Failure::Rejected { why, .. } => {
                format!("A person refused this call: {why}. {NO_WAY_AROUND}")
            }
            Failure::Expired { .. } => {
                format!("Nobody decided about this call in time. {NO_WAY_AROUND}")
            }
        }
    }

    /// The kinds that a call can fail with by itself, for listings.
    pub(super) fn calls(tool: &str) -> impl Iterator<Item = Failure> {
        let (tool, none) = (tool.to_owned(), String::new());
        [
            Failure::Denied {
                tool: tool.clone(),
                why: none.clone(),
            },
            Failure::Missing { tool: tool.clone() },
            Failure::BadArgs {
                tool: tool.clone(),
                detail: none.clone(),
            },
            Failure::Error {
                tool: tool.clone(),
                detail: none,
            },
            Failure::Timeout { tool },
        ]
        .into_iter()
    }

    /// The kinds that a person's decision, or the lack of one, makes.
    pub(super) fn decisions(tool: &str) -> impl Iterator<Item = Failure> {
        [
            Failure::Rejected {
                tool: tool.to_owned(),
                why: String::new(),
            },
            Failure::Expired {
                tool: tool.to_owned(),
            },
        ]
        .into_iter()
    }

    /// The same failure of another tool.
    pub(super) fn of_tool(mut self, name: &str) -> Failure {
        match &mut self {
            Failure::Denied { tool, .. }
            | Failure::Missing { tool }
            | Failure::BadArgs { tool, .. }
            | Failure::Error { tool, .. }
            | Failure::Timeout { tool }
            | Failure::Rejected { tool, .. }
            | Failure::Expired { tool } => name.clone_into(tool),
        }
        self
    }
}
