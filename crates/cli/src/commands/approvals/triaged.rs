//! What triage knows of a proposal, for whoever decides about it: what a reader of the issue would not see, what a
//! diagnosis cites and how relevant that is, and every check with its reason.
//!
//! It is read from the state of the run's thread and is no part of what is signed.

use crate::pieces::state;
use crate::stores::Kept;
use crate::terminal::printable_line;
use paraph_agents::{
    Check, Classification, Diagnosis, Hidden, IssueEvidence, ProposedAction, ReviewResult,
};
use paraph_gateway::ActionRow;
use paraph_graph::Scope;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// The longest line, in characters.
const LINE: usize = 600;

/// What is shown beside an action of triage.
#[derive(Serialize)]
pub(super) struct Triaged {
    classification: Option<Classification>,
    /// What was taken out of the texts, since no reader sees it.
    hidden: Vec<Hidden>,
    citations: Vec<Cited>,
    checks: Vec<Check>,
    /// What another model says against the diagnosis.
    criticism: Option<String>,
    remarks: Vec<String>,
}

#[derive(Serialize)]
struct Cited {
    id: String,
    score: Option<f64>,
    quote: String,
}

/// What is known of this action; nothing if it is none of triage's, or its thread has gone on.
pub(super) async fn triaged(kept: &Kept, row: &ActionRow) -> Option<Triaged> {
    let run = &row.action.said.run;
    if run.agent != crate::application::TRIAGE {
        return None;
    }
    let scope = Scope {
        thread: run.thread.as_str().into(),
        namespace: "".into(),
    };
    let loaded = kept.threads.load(&scope, None).await.ok()??;
    if loaded.metadata.run.to_string() != run.run {
        return None;
    }
    let channels = state(&loaded).ok()?;
    fn read<T: DeserializeOwned>(
        channels: &BTreeMap<String, crate::pieces::Raw>,
        name: &str,
    ) -> Option<T> {
        serde_json::from_str(channels.get(name)?.get()).ok()
    }
    let evidence: Option<Option<IssueEvidence>> = read(&channels, "evidence");
    let diagnosis: Option<Option<Diagnosis>> = read(&channels, "diagnosis");
    let review: Option<Option<ReviewResult>> = read(&channels, "review_result");
    let proposed: Option<Option<ProposedAction>> = read(&channels, "proposed_action");
    let classification: Option<Option<Classification>> = read(&channels, "classification");
    let scores: BTreeMap<String, f64> = read(&channels, "retrieved_scores").unwrap_or_default();
    let cited = diagnosis
        .flatten()
        .map_or(Vec::new(), |said| said.citations);
    let cited = cited.into_iter().map(|cited| Cited {
        score: scores.get(&cited.id).copied(),
        id: cited.id,
        quote: cited.quote,
    });
    let review = review.flatten();
    Some(Triaged {
        classification: classification.flatten(),
        hidden: evidence.flatten().map_or(Vec::new(), |known| known.hidden),
        citations: cited.collect(),
        criticism: review.as_ref().and_then(|review| review.reasoning.clone()),
        checks: review.map_or(Vec::new(), |review| review.checks),
        remarks: proposed
            .flatten()
            .map_or(Vec::new(), |action| action.remarks),
    })
}

impl Triaged {
    /// For somebody who decides at a terminal.
    pub(super) fn in_words(&self) -> String {
        let mut text = String::new();
        let mut part = |title: &str, lines: Vec<String>| {
            if lines.is_empty() {
                return;
            }
            text.push_str(&format!("\n{title}\n"));
            for line in lines {
                text.push_str(&format!("  {}\n", printable_line(&line, LINE)));
            }
        };
        let classified = self.classification.iter();
        part(
            "why it was proposed",
            classified
                .map(|class| format!("{} ({}): {}", class.class.name(), class.rule, class.why))
                .collect(),
        );
        part("what was made harmless in it", self.remarks.clone());
        part(
            "hidden in the issue (no reader sees it, and no model was sent it)",
            self.hidden
                .iter()
                .map(|hidden| format!("{}, {}: {}", hidden.place, hidden.kind, hidden.text))
                .collect(),
        );
        part(
            "what the diagnosis cites",
            self.citations
                .iter()
                .map(|cited| {
                    let score = cited
                        .score
                        .map_or("-".to_owned(), |score| format!("{score:.2}"));
                    format!("{score}  {}  \u{201c}{}\u{201d}", cited.id, cited.quote)
                })
                .collect(),
        );
        part(
            "checks",
            self.checks
                .iter()
                .map(|check| {
                    let mark = if check.passed { "holds " } else { "FAILED" };
                    format!("{mark} {}: {}", check.name, check.why)
                })
                .collect(),
        );
        part(
            "another model's criticism (it decides nothing)",
            self.criticism.iter().cloned().collect(),
        );
        text
    }
}
