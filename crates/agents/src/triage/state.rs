//! The state of a triage run. The names of its channels are public: whoever reads a thread finds what was seen, said,
//! checked and proposed under them. No token is ever among it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::classify::Classification;
use super::diagnosis::Diagnosis;
use super::doors::Retrieved;
use super::evidence::IssueEvidence;
use super::gates::ReviewResult;
use super::handoff::Handoff;
use super::proposal::ProposedAction;
use crate::ending::{Ending, keep_first};
use crate::outcome::TraceRow;
use crate::spent::Spent;
use paraph_graph::State;
use serde_json::Value;

/// The state of a run.
#[derive(State, Clone, Default)]
pub(crate) struct TriageState {
    /// The issue's address.
    pub(crate) issue_url: String,
    /// What was read of it, as JSON text, until it is understood.
    pub(crate) bundle: Option<String>,
    /// What is known of it.
    pub(crate) evidence: Option<IssueEvidence>,
    /// Which way it goes.
    pub(crate) classification: Option<Classification>,
    /// What was found in the corpus.
    pub(crate) retrieved: Option<Retrieved>,
    /// The ids of it.
    pub(crate) retrieved_ids: Vec<String>,
    /// The scores of it.
    pub(crate) retrieved_scores: BTreeMap<String, f64>,
    /// What a model says.
    pub(crate) diagnosis: Option<Diagnosis>,
    /// Why there is no diagnosis, though a model was asked.
    pub(crate) no_diagnosis: Option<String>,
    /// What the checks say of it.
    pub(crate) review_result: Option<ReviewResult>,
    /// What would be posted.
    pub(crate) proposed_action: Option<ProposedAction>,
    /// The key of the call that posts it.
    pub(crate) post_key: Option<String>,
    /// What came of it.
    pub(crate) execution_result: Option<Value>,
    /// What a person is left with, if nothing is posted.
    pub(crate) handoff: Option<Handoff>,
    /// All calls.
    #[reduce(append)]
    pub(crate) trace: Vec<TraceRow>,
    /// The number of the last decision of a model.
    pub(crate) step: u64,
    /// What the run has used of its models.
    pub(crate) spent: Option<Spent>,
    /// The node that was last, and why the run goes where it goes.
    pub(crate) way: Way,
    /// Why the run ends.
    #[reduce(keep_first)]
    pub(crate) ending: Option<Ending>,
}

/// The node that was last, and why the run goes on as it does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Way {
    pub(crate) from: String,
    pub(crate) cause: String,
}

impl Way {
    pub(crate) fn of(from: &str, cause: impl Into<String>) -> Way {
        Way {
            from: from.to_owned(),
            cause: cause.into(),
        }
    }
}
