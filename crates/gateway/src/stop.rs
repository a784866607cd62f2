//! Why a run ends: the one enum of stop reasons that every agent of the project uses.
//!
//! The gateway returns a [`Stop`] when a call ends the run; agents use the same enum for everything
//! else (a model's failure, a hand-over, a cancelled run). `Display` is the reason as scripts see it,
//! `FromStr` reads it back. What a reason means to a person stands in `explain.rs`. Nothing here does
//! any work: no clock, no store, no model.

mod explain;
mod failure;
#[cfg(test)]
mod tests;

use crate::budget::DayFigure;
use std::str::FromStr;

pub use explain::{Explanation, Status};
pub use failure::Failure;

/// The reason a run ended, or why it waits.
///
/// `to_string` gives the stop reason of the command-line contract (`tool_denied:rm`, `max_steps`, …).
/// Texts inside `Conflict`, `StoreError` and `Internal` are for logs and are not part of the reason,
/// so they do not survive being written and read.
///
/// ```
/// use paraph_gateway::{Status, Stop};
/// let stop: Stop = "tool_timeout:search".parse()?;
/// assert_eq!(stop.to_string(), "tool_timeout:search");
/// assert_eq!((stop.exit_code(), stop.status()), (3, Status::Stopped));
/// # Ok::<(), paraph_gateway::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The agent gave its final answer.
    #[error("success")]
    Success,
    /// The model has made as many decisions as the run may have.
    #[error("max_steps")]
    MaxSteps,
    /// The calls of the run, or those of one tool, are used up.
    #[error("max_tool_calls")]
    MaxToolCalls,
    /// The run's active time is used up.
    #[error("max_seconds")]
    MaxSeconds,
    /// The run's tokens are used up.
    #[error("max_tokens")]
    MaxTokens,
    /// The run's money is used up, or a capped run met a model without a known price.
    #[error("max_cost")]
    MaxCost,
    /// What the run's user may use in one day is used up, in all runs together. The text says by what, and when it comes
    /// back; it is for people and is not part of the reason.
    #[error("{what}")]
    UserDay {
        /// Which figure.
        what: DayFigure,
        /// In words, with the time of the reset.
        text: String,
    },
    /// The run may not start another child.
    #[error("max_children")]
    MaxChildren,
    /// The model asked for what it had already asked for.
    #[error("loop_detected")]
    LoopDetected,
    /// Several steps in a row changed nothing.
    #[error("no_progress")]
    NoProgress,
    /// One call failed, in a dialect in which that ends the run.
    #[error("{0}")]
    Failed(Failure),
    /// The model's answer is no valid action.
    #[error("invalid_action:{0}")]
    InvalidAction(InvalidAction),
    /// The model did not answer in time, or could not be reached.
    #[error("llm_timeout")]
    LlmTimeout,
    /// The model answered with nothing.
    #[error("llm_empty")]
    LlmEmpty,
    /// The model's service failed.
    #[error("llm_error:{0}")]
    LlmError(LlmError),
    /// A person has to decide; the run goes on afterwards.
    #[error("approval_pending")]
    ApprovalPending,
    /// What was approved is no longer what would happen.
    #[error("drifted")]
    Drifted,
    /// Everything is switched off.
    #[error("killed_global")]
    KilledGlobal,
    /// This tenant is switched off.
    #[error("killed_tenant")]
    KilledTenant,
    /// Tools that change something are switched off.
    #[error("writes_disabled")]
    WritesDisabled,
    /// This tool is switched off.
    #[error("tool_disabled:{0}")]
    ToolDisabled(String),
    /// Checks in code handed the case to a person; the text names them.
    #[error("escalated:{0}")]
    Escalated(String),
    /// The agent handed the case to a person by design.
    #[error("handed_off")]
    HandedOff,
    /// The run was interrupted from outside.
    #[error("cancelled")]
    Cancelled,
    /// Somebody else is at it: another driver has the run, or the same call has not ended yet. The text
    /// says which.
    #[error("conflict")]
    Conflict(String),
    /// The store could not be read or written. The text is the store's.
    #[error("store_error")]
    StoreError(String),
    /// A key was used again for another call: a mistake of the agent, not of its model.
    #[error("internal")]
    KeyReused {
        /// The key.
        key: String,
        /// The tool it stands for already.
        tool: String,
    },
    /// A fault of the program. The text says what was found.
    #[error("internal")]
    Internal(String),
}

/// What is wrong with a model's action, in the order in which it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAction {
    /// JSON, but not an object.
    #[error("not_object")]
    NotObject,
    /// No JSON, or JSON beyond the reader's bounds.
    #[error("bad_json")]
    BadJson,
    /// `kind` is neither `tool` nor `final`.
    #[error("bad_kind")]
    BadKind,
    /// A key that this kind does not have.
    #[error("extra_keys")]
    ExtraKeys,
    /// `final` without a text.
    #[error("missing_answer")]
    MissingAnswer,
    /// `tool` without a name.
    #[error("missing_tool_name")]
    MissingToolName,
    /// `args` is not an object.
    #[error("bad_args")]
    BadArgs,
}

/// How a model's service failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// The key is missing, wrong, or lacks a right.
    #[error("auth")]
    Auth,
    /// Too many requests, or a quota is used up.
    #[error("rate_limited")]
    RateLimited,
    /// The service refused the request as malformed.
    #[error("bad_request")]
    BadRequest,
    /// The conversation is longer than the model's window.
    #[error("context_overflow")]
    ContextOverflow,
    /// The service failed by itself.
    #[error("server")]
    Server,
    /// The connection broke after the request was under way.
    #[error("connection")]
    Connection,
    /// The answer could not be read.
    #[error("decode")]
    Decode,
    /// A scripted model has no line left.
    #[error("script_exhausted")]
    ScriptExhausted,
}

const PLACEHOLDER: &str = "TOOL";

impl Stop {
    /// One of each, for listings: tools are called `TOOL`, checks `CHECKS`.
    pub fn all() -> Vec<Stop> {
        use InvalidAction as Bad;
        let tool = || PLACEHOLDER.to_owned();
        let mut all = vec![
            Stop::Success,
            Stop::MaxSteps,
            Stop::MaxToolCalls,
            Stop::MaxSeconds,
            Stop::MaxTokens,
            Stop::MaxCost,
            Stop::MaxChildren,
            Stop::LoopDetected,
            Stop::NoProgress,
        ];
        all.extend(Failure::calls(PLACEHOLDER).map(Stop::Failed));
        all.extend(
            [
                Bad::NotObject,
                Bad::BadJson,
                Bad::BadKind,
                Bad::ExtraKeys,
                Bad::MissingAnswer,
                Bad::MissingToolName,
                Bad::BadArgs,
            ]
            .map(Stop::InvalidAction),
        );
        all.extend([Stop::LlmTimeout, Stop::LlmEmpty]);
        all.extend(
            [
                LlmError::Auth,
                LlmError::RateLimited,
                LlmError::BadRequest,
                LlmError::ContextOverflow,
                LlmError::Server,
                LlmError::Connection,
                LlmError::Decode,
                LlmError::ScriptExhausted,
            ]
            .map(Stop::LlmError),
        );
        all.push(Stop::ApprovalPending);
        all.extend(Failure::decisions(PLACEHOLDER).map(Stop::Failed));
        all.extend([
            Stop::Drifted,
            Stop::KilledGlobal,
            Stop::KilledTenant,
            Stop::WritesDisabled,
            Stop::ToolDisabled(tool()),
            Stop::Escalated("CHECKS".into()),
            Stop::HandedOff,
            Stop::Cancelled,
            Stop::Conflict(String::new()),
            Stop::StoreError(String::new()),
            Stop::Internal(String::new()),
        ]);
        all
    }

    /// The same kind with another name in the place of `TOOL` or `CHECKS`.
    fn named(self, name: &str) -> Stop {
        match self {
            Stop::Failed(failure) => Stop::Failed(failure.of_tool(name)),
            Stop::ToolDisabled(_) => Stop::ToolDisabled(name.to_owned()),
            Stop::Escalated(_) => Stop::Escalated(name.to_owned()),
            other => other,
        }
    }
}

impl FromStr for Stop {
    type Err = crate::Error;

    /// Reads a reason as `Display` writes it. The part after the colon of `tool_…` and `escalated`
    /// may be any text, also one with colons.
    fn from_str(reason: &str) -> Result<Stop, crate::Error> {
        let (family, name) = reason.split_once(':').unwrap_or((reason, ""));
        Stop::all()
            .into_iter()
            .find(|stop| {
                let written = stop.to_string();
                written == reason
                    || (reason.contains(':')
                        && written.split_once(':').is_some_and(|(head, tail)| {
                            head == family && matches!(tail, PLACEHOLDER | "CHECKS")
                        }))
            })
            .map(|stop| stop.named(name))
            .ok_or_else(|| crate::Error::UnknownStop(reason.to_owned()))
    }
}

impl serde::Serialize for Stop {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Stop {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Stop, D::Error> {
        let reason = String::deserialize(deserializer)?;
        reason.parse().map_err(serde::de::Error::custom)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}
