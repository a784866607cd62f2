//! Where an action stands: plain data that a store keeps beside the action's bytes.

use super::{Action, ActionId, Changed};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Where an action stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// People have to decide.
    Pending,
    /// It was signed, and nobody has started it.
    Approved,
    /// It was signed, and before it was started a kill switch came, or whoever signed lost the right to: people have to
    /// decide anew.
    Held,
    /// It was handed to its effect.
    Executing,
    /// It was handed to its effect, and nobody knows what came of it.
    Unknown,
    /// It happened.
    Succeeded,
    /// It did not happen, and will not.
    Failed,
    /// A person said no.
    Rejected,
    /// Nobody decided, or nobody started it, in time.
    Expired,
    /// A person changed it; another action stands in its place.
    Edited,
    /// What was signed is no longer what would happen.
    Drifted,
    /// Its run was ended before it was started.
    Cancelled,
    /// A person asked for a change before they decide, or a newer action about the same took its place.
    Superseded,
    /// A person answered in words; nothing was done.
    Answered,
}

impl State {
    /// Every state.
    pub const ALL: [State; 14] = [
        State::Pending,
        State::Approved,
        State::Held,
        State::Executing,
        State::Unknown,
        State::Succeeded,
        State::Failed,
        State::Rejected,
        State::Expired,
        State::Edited,
        State::Drifted,
        State::Cancelled,
        State::Superseded,
        State::Answered,
    ];

    /// The states that an action can go to from here, and no others.
    pub fn next(self) -> &'static [State] {
        use State::{
            Answered, Approved, Cancelled, Drifted, Edited, Executing, Expired, Failed, Held,
            Rejected, Succeeded, Superseded, Unknown,
        };
        match self {
            State::Pending => &[
                Approved, Held, Rejected, Edited, Expired, Cancelled, Superseded, Answered,
            ],
            State::Approved => &[Executing, Held, Drifted, Expired, Cancelled],
            State::Held => &[
                Approved, Rejected, Edited, Expired, Cancelled, Superseded, Answered,
            ],
            // To the last three only while it has not been handed over: it was claimed, and the look just before it is
            // handed over found that it must not be.
            State::Executing => &[Succeeded, Failed, Unknown, Approved, Held, Drifted],
            State::Unknown => &[Executing, Succeeded, Failed],
            Succeeded | Failed | Rejected | Expired | Edited | Drifted | Cancelled | Superseded
            | Answered => &[],
        }
    }

    /// Whether nothing will happen to it any more.
    pub fn is_final(self) -> bool {
        self.next().is_empty()
    }

    /// Whether a person can decide about it.
    pub fn is_undecided(self) -> bool {
        matches!(self, State::Pending | State::Held)
    }

    /// Its name, as listings and stores have it.
    pub fn name(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Approved => "approved",
            State::Held => "held",
            State::Executing => "executing",
            State::Unknown => "unknown",
            State::Succeeded => "succeeded",
            State::Failed => "failed",
            State::Rejected => "rejected",
            State::Expired => "expired",
            State::Edited => "edited",
            State::Drifted => "drifted",
            State::Cancelled => "cancelled",
            State::Superseded => "superseded",
            State::Answered => "answered",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Somebody who decides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Person {
    /// A name that stays theirs: a user id rather than a login.
    pub id: String,
    /// Whether somebody made sure that it is they.
    pub verified: bool,
}

impl Person {
    /// Somebody whose identity was made sure of.
    pub fn verified(id: impl Into<String>) -> Person {
        Person {
            id: id.into(),
            verified: true,
        }
    }
}

/// Somebody who says to be this person.
impl From<&str> for Person {
    fn from(id: &str) -> Person {
        Person {
            id: id.to_owned(),
            verified: false,
        }
    }
}

/// What decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signer {
    /// A person.
    Person(Person),
    /// A standing grant, by its name.
    Rule(String),
    /// Nobody, in time.
    Clock,
    /// The gateway, which looked at what had been done.
    Gateway,
}

/// An approval of one person or rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    /// Whose.
    pub by: Signer,
    /// Of which bytes.
    pub digest: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Proof that the gateway's own code wrote it: a keyed hash whose key is not in the store.
    pub seal: Option<String>,
}

impl Vote {
    /// The person whose it is, if it is a person's.
    pub(crate) fn person(&self) -> Option<&str> {
        match &self.by {
            Signer::Person(person) => Some(&person.id),
            Signer::Rule(_) | Signer::Clock | Signer::Gateway => None,
        }
    }
}

/// How often an action was handed to its effect, and under which lease last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    /// How often.
    pub times: u64,
    /// The epoch of the run's lease.
    pub epoch: u64,
    /// When it was handed over last, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// What came of it, or who decided that nothing will.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Who or what.
    pub by: Signer,
    /// Why, in their words, or what the effect said.
    pub why: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// An action and where it stands. Stores compare `version` before they replace one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRow {
    /// What it is about. Never changes.
    #[serde(with = "bytes")]
    pub action: Arc<Action>,
    /// The digest as it was when the action was proposed.
    pub digest: String,
    /// Where it stands.
    pub state: State,
    /// How often it changed, from 1.
    pub version: u64,
    /// Who approved it so far.
    pub votes: Vec<Vote>,
    /// That it was handed over.
    pub sending: Sending,
    /// Its receipt as JSON text, once it happened.
    pub receipt: Option<String>,
    /// How it ended.
    pub ended: Option<Ended>,
    /// When it should be looked at again, in milliseconds since the Unix epoch; nothing if only a person can help.
    pub due_ms: Option<u64>,
    /// What stands in its place.
    pub replaced_by: Option<ActionId>,
    /// Whether its subject is closed for the thread, because a person said no or nobody decided.
    pub closes: bool,
    /// Who let its subject be asked for again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened: Option<Ended>,
    /// If it drifted: what was not any more as it was when it was proposed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Changed>,
}

/// An action is stored as its bytes: everything else in it follows from them.
mod bytes {
    use super::{Action, Arc, Deserialize, Deserializer, Serialize, Serializer};
    use serde::de::Error as _;

    pub(super) fn serialize<S: Serializer>(
        action: &Arc<Action>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        action.bytes.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<Action>, D::Error> {
        let bytes = String::deserialize(deserializer)?;
        let action = Action::read(&bytes).map_err(D::Error::custom)?;
        Ok(Arc::new(action))
    }
}
