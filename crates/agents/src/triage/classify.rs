//! Which way an issue goes: by rules alone, with the reason of each. No model has a say. Pure.
//!
//! What is not understood goes to a person, never to a model.

use serde::{Deserialize, Serialize};

use super::checks::CiState;
use super::evidence::IssueEvidence;
use super::settings::TriageSettings;

/// Which way an issue goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Checks fail: a fixed comment is proposed.
    Deterministic,
    /// The issue says too little to be acted on: a model looks for what is meant.
    AiInvestigation,
    /// Everything else: a person takes over.
    HumanReview,
}

impl Class {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Class::Deterministic => "deterministic",
            Class::AiInvestigation => "ai_investigation",
            Class::HumanReview => "human_review",
        }
    }
}

/// The way that an issue goes, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classification {
    /// Which way.
    pub class: Class,
    /// The rule that decided: `incomplete_evidence`, `failing_checks`, `sparse`, …
    pub rule: String,
    /// Why it applies, in a sentence.
    pub why: String,
    /// How many characters are left of the text without the template's lines.
    pub characters: u64,
}

/// Which way an issue goes.
pub fn classify(evidence: &IssueEvidence, settings: &TriageSettings) -> Classification {
    let own_words = without_template(&evidence.body).chars().count() as u64;
    let (class, rule, why) = decide(evidence, settings, own_words);
    Classification {
        class,
        rule: rule.to_owned(),
        why,
        characters: own_words,
    }
}

fn decide(
    evidence: &IssueEvidence,
    settings: &TriageSettings,
    own_words: u64,
) -> (Class, &'static str, String) {
    let person = Class::HumanReview;
    if let Some(first) = evidence.incomplete.first() {
        let more = match evidence.incomplete.len() {
            1 => String::new(),
            all => format!(" (and {} more)", all - 1),
        };
        let why = format!(
            "the evidence is incomplete: {}: {}{more}",
            first.what, first.why
        );
        return (person, "incomplete_evidence", why);
    }
    if evidence.is_pull_request {
        let why = "it is a pull request and no issue".to_owned();
        return (person, "pull_request", why);
    }
    if evidence.state != "open" {
        let why = "the issue is closed, and nothing is said on it unasked".to_owned();
        return (person, "closed", why);
    }
    if evidence.locked {
        let why = "the conversation is locked".to_owned();
        return (person, "locked", why);
    }
    if evidence.ci.state == CiState::Failing {
        let failing = evidence.ci.pulls.iter().filter(|pull| pull.counts());
        let count: usize = failing.map(|pull| pull.failing.len()).sum();
        let why = format!("checks of linked pull requests or commits have failed: {count}");
        return (Class::Deterministic, "failing_checks", why);
    }
    let below = settings.sparse_below;
    if own_words < below {
        let why = format!(
            "without the template's lines the text has {own_words} characters, fewer than {below}"
        );
        return (Class::AiInvestigation, "sparse", why);
    }
    let why = format!(
        "no check has failed, and the text has {own_words} characters of its own: a person can act on it"
    );
    (person, "detailed", why)
}

/// What a reporter wrote by themselves: without headings, check boxes, rules, and the words that forms put where nothing
/// was said. One line.
pub(super) fn without_template(body: &str) -> String {
    let own = body
        .lines()
        .map(str::trim)
        .filter(|line| !is_template(line));
    let words: Vec<&str> = own.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

fn is_template(line: &str) -> bool {
    is_heading(line)
        || is_check_box(line)
        || is_rule(line)
        || is_bold_alone(line)
        || says_nothing(line)
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    let marks = line.len() - rest.len();
    (1..=6).contains(&marks) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// `- [ ] read the manual`, with any list mark.
fn is_check_box(line: &str) -> bool {
    let Some(rest) = line.strip_prefix(['-', '*', '+']) else {
        return false;
    };
    let rest = rest.trim_start();
    ["[ ]", "[x]", "[X]"].iter().any(|check| {
        rest.strip_prefix(check)
            .is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t']))
    })
}

fn is_rule(line: &str) -> bool {
    line.len() >= 3
        && ['-', '*', '_', '=']
            .iter()
            .any(|mark| line.chars().all(|c| c == *mark))
}

/// `**Steps:**`, which templates use as a heading.
fn is_bold_alone(line: &str) -> bool {
    let inside = line.strip_prefix("**").and_then(|rest| {
        let rest = rest.trim_end_matches(':');
        rest.strip_suffix("**")
    });
    inside.is_some_and(|inside| !inside.contains("**"))
}

fn says_nothing(line: &str) -> bool {
    let bare = line.trim_matches(['_', '*', '.', '-', ' ']).to_lowercase();
    matches!(bare.as_str(), "no response" | "n/a" | "none" | "tbd")
}

#[cfg(test)]
mod tests;
