//! Regression of the gates: cases with one right outcome each, every one a whole run of the agent, graded by code.
//!
//! The cases stand in `evaluation/gates.toml`. A run gets its evidence and its snippets from the case, its model says what
//! the case says, a decision is taken if the case has one, and what was posted is what an effect of our own received.
//! A gate that fails once has failed: nothing here is an average.

mod stage;

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use super::classify::Class;
use super::diagnosis::{Citation, Severity};

/// The cases.
const CASES: &str = include_str!("evaluation/gates.toml");

/// A case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateCase {
    /// Its name: `review/citation-below-floor`.
    pub id: String,
    /// Whether it is one of the kinds that the system we follow has.
    #[serde(default)]
    pub original: bool,
    #[serde(default)]
    issue: CaseIssue,
    #[serde(default)]
    snippets: Option<Vec<CaseSnippet>>,
    #[serde(default)]
    no_floor: Option<String>,
    /// What the model that diagnoses says.
    #[serde(default)]
    says: Option<Said>,
    /// What it says instead, letter by letter, one text for each time it is asked.
    #[serde(default)]
    lines: Vec<String>,
    /// What the model that criticises says; empty for nothing.
    #[serde(default = "criticism")]
    critic: String,
    /// `approve` or `reject`; nothing if nobody decides.
    #[serde(default)]
    decision: Option<String>,
    expect: Expected,
}

fn criticism() -> String {
    "The source may be about another version.".to_owned()
}

/// An issue, as far as it differs from an ordinary one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CaseIssue {
    title: String,
    body: String,
    state: String,
    locked: bool,
    pull_request: bool,
    number: u64,
    full_name: String,
    /// Texts of its comments.
    comments: Vec<String>,
    /// How many comments it says that it has, if that is another number.
    counted: Option<u64>,
    /// Names of checks that failed, that have not ended, and that ended well.
    failing: Vec<String>,
    pending: Vec<String>,
    passing: Vec<String>,
    /// Contexts of statuses that failed.
    failing_status: Vec<String>,
    /// How the linked pull request stands.
    pull_state: String,
    /// A conclusion that nobody knows.
    odd_conclusion: bool,
    /// What whoever read it says is missing.
    missing: Vec<String>,
    /// Why nothing could be read.
    unreadable: Option<String>,
    labels: Vec<String>,
    /// `write`, `triage`, `read` or `unknown`.
    rights: String,
    nobody: bool,
    codeowners: Option<String>,
}

impl Default for CaseIssue {
    fn default() -> CaseIssue {
        let labels = [
            "needs-triage",
            "severity:low",
            "severity:medium",
            "severity:high",
        ];
        CaseIssue {
            title: "Menus in the wrong language".to_owned(),
            body: "odd".to_owned(),
            state: "open".to_owned(),
            locked: false,
            pull_request: false,
            number: 7,
            full_name: "harbor/ferry".to_owned(),
            comments: Vec::new(),
            counted: None,
            failing: Vec::new(),
            pending: Vec::new(),
            passing: Vec::new(),
            failing_status: Vec::new(),
            pull_state: "open".to_owned(),
            odd_conclusion: false,
            missing: Vec::new(),
            unreadable: None,
            labels: labels.map(str::to_owned).to_vec(),
            rights: "triage".to_owned(),
            nobody: false,
            codeowners: None,
        }
    }
}

/// A snippet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseSnippet {
    id: String,
    #[serde(default = "three")]
    number: u64,
    #[serde(default = "ferry")]
    repo: String,
    text: String,
    score: f64,
    above: bool,
}

fn three() -> u64 {
    3
}

fn ferry() -> String {
    "harbor/ferry".to_owned()
}

/// A diagnosis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    #[serde(default = "cause")]
    cause: String,
    severity: Severity,
    #[serde(default)]
    steps: Vec<String>,
    #[serde(default)]
    citations: Vec<Citation>,
}

fn cause() -> String {
    "The cache key leaves out the locale.".to_owned()
}

/// The one right outcome.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    class: Class,
    #[serde(default)]
    rule: Option<String>,
    stop: String,
    /// How many posts arrived.
    #[serde(default)]
    posts: usize,
    /// The label of the proposal; empty for none.
    #[serde(default)]
    label: Option<String>,
    /// What the proposal's comment has in it, and what it has not.
    #[serde(default)]
    contains: Vec<String>,
    #[serde(default)]
    lacks: Vec<String>,
}

/// A case that did not come out as it must.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GateFailure {
    /// The case.
    pub id: String,
    /// Which time, from 1.
    pub trial: u64,
    /// What was wrong.
    pub why: String,
}

/// What came of all cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GateReport {
    /// How many cases there are.
    pub cases: u64,
    /// How many of them are of the kinds of the system we follow.
    pub original: u64,
    /// How often each was run.
    pub trials: u64,
    /// How many cases passed each time.
    pub passed: u64,
    /// The failures.
    pub failures: Vec<GateFailure>,
}

impl GateReport {
    /// Whether every case passed every time.
    pub fn holds(&self) -> bool {
        self.failures.is_empty() && self.cases > 0
    }
}

/// The cases of the gates.
///
/// # Errors
/// What is wrong with the file, which is a mistake of this crate.
pub fn gate_cases() -> Result<Vec<GateCase>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        case: Vec<GateCase>,
    }
    let file: File = toml::from_str(CASES).map_err(|error| error.to_string())?;
    let names: BTreeSet<&str> = file.case.iter().map(|case| case.id.as_str()).collect();
    match names.len() == file.case.len() {
        true => Ok(file.case),
        false => Err("two cases have one name".to_owned()),
    }
}

/// Runs each case so many times.
pub async fn run_gates(cases: &[GateCase], trials: u64) -> GateReport {
    let mut failures = Vec::new();
    for case in cases {
        for trial in 1..=trials {
            if let Err(why) = stage::run(case).await {
                failures.push(GateFailure {
                    id: case.id.clone(),
                    trial,
                    why,
                });
            }
        }
    }
    let failed: BTreeSet<&str> = failures.iter().map(|one| one.id.as_str()).collect();
    let count = |count: usize| count as u64;
    GateReport {
        cases: count(cases.len()),
        original: count(cases.iter().filter(|case| case.original).count()),
        trials,
        passed: count(cases.len() - failed.len()),
        failures,
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot be set up has failed"
    )]

    use super::*;

    #[tokio::test]
    async fn every_gate_holds_and_there_are_enough_of_them() {
        let cases = gate_cases().unwrap();
        let original = cases.iter().filter(|case| case.original).count();
        assert!(
            original >= 11 && cases.len() - original >= 60,
            "{original} of {}",
            cases.len()
        );
        let report = run_gates(&cases, 1).await;
        assert!(report.holds(), "{:#?}", report.failures);
        assert_eq!(report.passed, cases.len() as u64);
    }

    #[tokio::test]
    async fn a_case_that_comes_out_otherwise_is_a_failure_with_its_reason() {
        let mut case = gate_cases().unwrap().swap_remove(0);
        case.expect.stop = "handed_off".to_owned();
        let report = run_gates(&[case], 2).await;
        assert!(!report.holds());
        assert_eq!((report.passed, report.failures.len()), (0, 2));
        assert!(
            report.failures[0].why.contains("the run ended with"),
            "{report:?}"
        );
    }
}
