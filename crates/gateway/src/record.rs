//! What is remembered of a call, and what a caller gets back.
//!
//! The session makes records, a store keeps them, agents read them for their trace rows.

use crate::action::ActionId;
use crate::json::{Bounds, Json};
use crate::policy::{Decision, Verdict};
use crate::redact::Redacted;
use crate::stop::{Failure, Stop};
use crate::tool::ToolCommand;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which run a record belongs to. Two runs are the same only if all four are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunRef {
    /// Whose data it is.
    pub tenant: String,
    /// The agent's name.
    pub agent: String,
    /// The thread's name.
    pub thread: String,
    /// The run's id.
    pub run: String,
}

/// One call that was counted.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The run.
    pub run: Arc<RunRef>,
    /// The name of the call: the same key is the same call.
    pub key: String,
    /// The order in which the run's calls were admitted, from 1.
    pub seq: u64,
    /// The step of the model it was part of, 0 if the agent counts none.
    pub step: u64,
    /// The fencing token of the lease it was made under.
    pub epoch: u64,
    /// The tool's name as the model gave it.
    pub tool: String,
    /// The arguments' text, complete.
    pub arguments: String,
    /// The first twelve digits of `args_digest`, for traces.
    pub args_hash: String,
    /// SHA-256 of the canonical arguments.
    pub args_digest: String,
    /// The action that was made of it, if it needs a signature. An edited one has another in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// What the policy decided about it; nothing before it was asked, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Ruling>,
    /// How it ended; nothing while it is under way, or if it was cut off before it ended.
    pub outcome: Option<Outcome>,
    /// What the tool gave, if that is more than the model was shown.
    pub full_output: Option<String>,
    /// Milliseconds that the tool ran.
    pub ms: u64,
}

/// What the policy decided about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    /// What.
    pub is: Ruled,
    /// Which rule decided, as [`crate::Decision::rule`] names it. Nothing if no rule spoke, and then the call is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The grant that signed in a person's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// The hash of the policy.
    pub policy: String,
}

/// A verdict without its particulars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruled {
    /// It may run.
    Allowed,
    /// Somebody has to sign it.
    Asked,
    /// It may not run.
    Denied,
}

impl Ruling {
    /// What stands of a decision with a call.
    pub(crate) fn of(decision: &Decision<'_>) -> Ruling {
        let is = match decision.verdict {
            Verdict::Allowed => Ruled::Allowed,
            Verdict::Ask(_) => Ruled::Asked,
            Verdict::Denied { .. } => Ruled::Denied,
        };
        Ruling {
            is,
            rule: decision.rule.map(str::to_owned),
            grant: None,
            policy: decision.policy.to_owned(),
        }
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With something to read, if only a failure.
    Observed(Observation),
    /// With the end of the run.
    Stopped(Stop),
}

/// Without the secrets in its texts, which it keeps as they are.
impl std::fmt::Debug for CallRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallRecord")
            .field("run", &self.run)
            .field("key", &self.key)
            .field("seq", &self.seq)
            .field("step", &self.step)
            .field("epoch", &self.epoch)
            .field("tool", &self.tool)
            .field("arguments", &Redacted(&self.arguments))
            .field("args_digest", &self.args_digest)
            .field("ruling", &self.ruling)
            .field("outcome", &self.outcome)
            .field("full_output", &self.full_output.as_deref().map(Redacted))
            .field("ms", &self.ms)
            .finish_non_exhaustive()
    }
}

/// Without the secrets in its texts, which it keeps as they are.
impl std::fmt::Debug for Observation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observation")
            .field("tool", &self.tool)
            .field("args_hash", &self.args_hash)
            .field("content", &Redacted(&self.content))
            .field("failure", &self.failure)
            .field("artifact", &self.artifact.as_deref().map(Redacted))
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

impl CallRecord {
    /// Whether the tool ran and succeeded.
    pub fn ok(&self) -> bool {
        matches!(&self.outcome, Some(Outcome::Observed(seen)) if seen.ok())
    }

    /// The reason of a call that failed.
    pub fn stop_reason(&self) -> Option<String> {
        match self.outcome.as_ref()? {
            Outcome::Observed(seen) => seen.failure.as_ref().map(ToString::to_string),
            Outcome::Stopped(stop) => Some(stop.to_string()),
        }
    }
}

/// What a call hands back when the run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// Something for the model to read.
    Observed(Observation),
    /// A person has to decide, or what came of an effect is not known yet. Save, and call again under the same key
    /// when the run is woken.
    Waiting(Waiting),
    /// The tool waits for something that the caller knows of ([`crate::ToolError::unfinished`]). The call
    /// has no outcome yet and runs again under its key.
    Unfinished,
}

/// What a call waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Why.
    pub why: Why,
    /// The action.
    pub action: ActionId,
    /// Its digest, which whoever decides has to name.
    pub digest: String,
    /// The key of the call.
    pub key: String,
    /// The tool.
    pub tool: String,
    /// What would happen, in words.
    pub says: String,
    /// When it can no longer be started, in milliseconds since the Unix epoch.
    pub expires_ms: u64,
    /// When to look again, in milliseconds since the Unix epoch; nothing if only a person can help.
    pub due_ms: Option<u64>,
    /// What the gateway found when it came to wait for this, in words; nothing if people have to decide at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// Why a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// People have to decide.
    Approval,
    /// They have to decide anew, since a kill switch came between, or whoever signed may not any more.
    Held,
    /// It was signed, and could not be looked at once more before it was started. Nothing was done.
    Unchecked,
    /// It was sent, and nobody saw what came of it.
    Unknown,
    /// A kill switch is on: however it stands, nothing more is done about it until the switch is off.
    Killed,
}

/// What the model reads.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// The tool's name as the model gave it.
    pub tool: String,
    /// Twelve digits that stand for the arguments.
    pub args_hash: String,
    /// JSON text: what the tool gave. If that was too long, a string with its head, a notice and its
    /// tail; if the call failed, an object with `error` (the reason) and `message`.
    pub content: String,
    /// What went wrong, if anything did.
    pub failure: Option<Failure>,
    /// JSON text that the tool gave for the program, whole. It is not for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// What the tool wants to happen in the program. The gateway does not look inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<ToolCommand>,
    /// The action that this came of, if it needed a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
}

impl Observation {
    /// Whether there is no failure: the tool ran and succeeded, or a person's words stand in its place.
    pub fn ok(&self) -> bool {
        self.failure.is_none()
    }

    /// The content as JSON, with every digit: for histories and result objects.
    pub fn json(&self) -> Json {
        // Tools are our side of the door, so size is not bounded here; depth always is.
        let bounds = Bounds {
            bytes: usize::MAX,
            depth: Bounds::MAX_DEPTH,
            digits: usize::MAX,
        };
        Json::read(&self.content, bounds).unwrap_or_else(|_| Json::string(&self.content))
    }

    /// The content as text for a message: a JSON string without its quotes, anything else as it is.
    pub fn text(&self) -> String {
        match self.json().view().as_str() {
            Some(text) => text.to_owned(),
            None => self.content.clone(),
        }
    }
}
