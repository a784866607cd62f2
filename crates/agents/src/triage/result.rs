//! What comes out of a triage run, for scripts and for people.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

use super::classify::Classification;
use super::diagnosis::Diagnosis;
use super::evidence::IssueEvidence;
use super::gates::ReviewResult;
use super::handoff::Handoff;
use super::proposal::ProposedAction;
use super::state::TriageState;
use crate::ending::Ending;
use crate::outcome::TraceRow;
use crate::waits::Approval;
use paraph_gateway::{Status, Stop};

/// The result of a triage run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriageResult {
    /// How the run stands.
    pub status: Status,
    /// Why it ended.
    pub stop_reason: Stop,
    /// What it waits for, if it does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Approval>,
    /// What was done, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The issue's address.
    pub issue_url: String,
    /// Which way it went, and why.
    pub classification: Option<Classification>,
    /// What is known of it.
    pub evidence: Option<IssueEvidence>,
    /// What a model says.
    pub diagnosis: Option<Diagnosis>,
    /// What was found in the corpus.
    pub retrieved_ids: Vec<String>,
    /// How relevant each of it is.
    pub retrieved_scores: BTreeMap<String, f64>,
    /// What the checks say.
    pub review_result: Option<ReviewResult>,
    /// What would be posted, or was.
    pub proposed_action: Option<ProposedAction>,
    /// What came of it: `comment {id, url}`, and `label` or `label_error`.
    pub execution_result: Option<Value>,
    /// What a person is left with, if nothing is posted.
    pub handoff: Option<Handoff>,
    /// All calls.
    pub trace: Vec<TraceRow>,
}

impl TriageResult {
    pub(super) fn of(state: Option<&TriageState>, ending: Ending) -> TriageResult {
        let state = state.cloned().unwrap_or_default();
        TriageResult {
            status: ending.stop.status(),
            stop_reason: ending.stop,
            approvals: ending.approvals,
            answer: ending.answer,
            issue_url: state.issue_url,
            classification: state.classification,
            evidence: state.evidence,
            diagnosis: state.diagnosis,
            retrieved_ids: state.retrieved_ids,
            retrieved_scores: state.retrieved_scores,
            review_result: state.review_result,
            proposed_action: state.proposed_action,
            execution_result: state.execution_result,
            handoff: state.handoff,
            trace: state.trace,
        }
    }

    /// A hand-over for people; nothing if there is none.
    pub fn handed_over(&self) -> Option<String> {
        let handoff = self.handoff.as_ref()?;
        let mut text = format!(
            "Handed over to a person ({}): {}\n",
            self.stop_reason, self.issue_url
        );
        if let Some(evidence) = self
            .evidence
            .as_ref()
            .filter(|known| !known.title.is_empty())
        {
            text.push_str(&format!("  {}\n", evidence.title));
        }
        for why in &handoff.why {
            text.push_str(&format!("  why      {why}\n"));
        }
        if let Some(diagnosis) = &self.diagnosis {
            let severity = diagnosis.severity.name();
            let cause = one_line(&diagnosis.root_cause);
            text.push_str(&format!("  a model's view, severity {severity}: {cause}\n"));
        }
        if let Some(reasoning) = self.review().and_then(|review| review.reasoning.as_deref()) {
            text.push_str(&format!(
                "  another model's criticism: {}\n",
                one_line(reasoning)
            ));
        }
        for issue in &handoff.related {
            text.push_str(&format!(
                "  related  {} ({:.2}) {} {}\n",
                issue.issue, issue.score, issue.title, issue.url
            ));
        }
        text.push_str("Nothing was posted, and nothing can be posted from here.");
        Some(text)
    }

    /// What was posted, for people; nothing if nothing was.
    pub fn posted(&self) -> Option<String> {
        let answer = self.answer.as_ref()?;
        let action = self.proposed_action.as_ref()?;
        Some(format!("{answer}\n\n{}", action.comment.trim_end()))
    }

    fn review(&self) -> Option<&ReviewResult> {
        self.review_result.as_ref()
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
