//! What a run waits for at the gateway: actions that people have to decide about, or whose outcome nobody saw.
//!
//! A call that waits asks the engine's question under [`APPROVAL`]; an answer only wakes it, and it calls the gateway
//! again. The result of a run that rests says what it waits for.

use paraph_gateway::{ActionId, Waiting, Why};
use paraph_graph::Interrupt;
use serde::{Deserialize, Serialize};

/// The name of the question of a call that waits for a decision about its action.
pub const APPROVAL: &str = "approval";

/// The question: all that the call waits for, its own or that of an agent which it called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waits {
    pub(crate) approvals: Vec<Approval>,
}

/// An action that a run waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The action.
    pub id: ActionId,
    /// Its digest, which whoever decides has to name.
    pub digest: String,
    /// Why the run waits.
    pub why: Why,
    /// The tool.
    pub tool: String,
    /// What would happen, in words.
    pub says: String,
    /// When it can no longer be started, in milliseconds since the Unix epoch.
    pub expires_ms: u64,
    /// When to look again, in milliseconds since the Unix epoch, without anybody's decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_ms: Option<u64>,
    /// What the gateway found when it came to wait for this, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

impl From<Waiting> for Approval {
    fn from(waiting: Waiting) -> Approval {
        Approval {
            id: waiting.action,
            digest: waiting.digest,
            why: waiting.why,
            tool: waiting.tool,
            says: waiting.says,
            expires_ms: waiting.expires_ms,
            due_ms: waiting.due_ms,
            because: waiting.because,
        }
    }
}

/// A question of an agent's to a person that is not about an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Its id, which an answer names.
    pub id: String,
    /// What kind of question it is, such as `direction`.
    pub name: String,
    /// The question, in whatever form the agent asks it.
    pub question: serde_json::Value,
}

/// The questions that are none about actions.
pub(crate) fn questions(interrupts: &[Interrupt]) -> Vec<OpenQuestion> {
    let others = interrupts.iter().filter(|asked| asked.key != APPROVAL);
    let open = others.map(|asked| OpenQuestion {
        id: asked.id.clone(),
        name: asked.key.split('#').next().unwrap_or_default().to_owned(),
        question: asked.question.clone(),
    });
    open.collect()
}

/// What these questions are about, as far as they are ours.
pub(crate) fn approvals(interrupts: &[Interrupt]) -> Vec<Approval> {
    let ours = interrupts.iter().filter(|asked| asked.key == APPROVAL);
    let waits = ours.filter_map(|asked| {
        let waits: Result<Waits, _> = serde_json::from_value(asked.question.clone());
        waits.ok()
    });
    waits.flat_map(|waits| waits.approvals).collect()
}

/// Answers that wake all calls which wait at the gateway: each looks there how its action stands.
pub(crate) fn wakes(interrupts: &[Interrupt]) -> Vec<(String, serde_json::Value)> {
    let ours = interrupts.iter().filter(|asked| asked.key == APPROVAL);
    ours.map(|asked| (asked.id.clone(), true.into())).collect()
}
