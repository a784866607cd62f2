//! Why a run ends, as a node writes it to its state. The outcome is made of it when the run is over.

use crate::waits::{Approval, OpenQuestion};
use paraph_gateway::Stop;
use paraph_graph::Change;
use serde::{Deserialize, Serialize};

/// The end of a run, as far as the state knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ending {
    /// The stop reason.
    pub(crate) stop: Stop,
    /// More about it, for people. Not part of the reason.
    pub(crate) detail: Option<String>,
    /// The answer, if there is one.
    pub(crate) answer: Option<String>,
    /// The text of an action that was refused, as the model wrote it.
    pub(crate) refused: Option<String>,
    /// What the run waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) approvals: Vec<Approval>,
    /// What it asks a person besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) questions: Vec<OpenQuestion>,
}

impl Ending {
    pub(crate) fn answered(answer: impl Into<String>) -> Ending {
        Ending {
            stop: Stop::Success,
            detail: None,
            answer: Some(answer.into()),
            refused: None,
            approvals: Vec::new(),
            questions: Vec::new(),
        }
    }

    pub(crate) fn refused(stop: Stop, text: impl Into<String>) -> Ending {
        Ending {
            refused: Some(text.into()),
            ..Ending::from(stop)
        }
    }
}

impl From<Stop> for Ending {
    fn from(stop: Stop) -> Ending {
        let detail = match &stop {
            Stop::Failed(failure) => Some(failure.tell()),
            Stop::Conflict(text) | Stop::StoreError(text) | Stop::Internal(text) => {
                Some(text.clone()).filter(|text| !text.is_empty())
            }
            Stop::UserDay { text, .. } => Some(text.clone()),
            Stop::KeyReused { key, tool } => Some(format!("`{key}` already stands for `{tool}`")),
            _ => None,
        };
        Ending {
            stop,
            detail,
            answer: None,
            refused: None,
            approvals: Vec::new(),
            questions: Vec::new(),
        }
    }
}

/// The first ending stands: parallel calls may each end the run, and a run has one reason.
pub(crate) fn keep_first(ending: &mut Option<Ending>, new: Option<Ending>) -> Change {
    match ending.is_none() && new.is_some() {
        true => {
            *ending = new;
            Change::Replaced
        }
        false => Change::Unchanged,
    }
}
