//! How the checks of linked pull requests stand: check runs and commit statuses together. Pure.
//!
//! Without a linked pull request there is no signal; what has not ended is not failing. Of runs and statuses of one
//! name the newest counts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use super::hidden::{Hidden, visible_line};
use crate::research::short;

/// The state of what is a commit and no pull request.
const COMMIT: &str = "commit";

/// The longest name of a check that is kept, in characters.
const LONGEST_NAME: usize = 80;

/// How all checks stand together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CiState {
    /// Neither an open pull request nor a commit is linked, or none has checks.
    #[default]
    None,
    /// All have ended, none of them badly.
    Passing,
    /// Some have not ended, and none has ended badly.
    Pending,
    /// At least one has ended badly.
    Failing,
}

/// A linked pull request, or a linked commit that belongs to none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedPull {
    /// Its number; none for a commit.
    pub number: Option<u64>,
    /// `open`, `closed` or `commit`.
    pub state: String,
    /// The commit whose checks these are.
    pub head_sha: String,
    /// The names of checks that failed.
    pub failing: Vec<String>,
    /// The names of checks that have not ended.
    pub pending: Vec<String>,
    /// How many ended well.
    pub passing: u64,
}

impl LinkedPull {
    /// Whether its checks say something of how things are now: those of a closed pull request are history.
    pub(super) fn counts(&self) -> bool {
        self.state == "open" || self.state == COMMIT
    }
}

/// The checks of all linked pull requests and commits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ci {
    /// How they stand, those of open pull requests and of commits alone.
    pub state: CiState,
    /// The pull requests.
    pub pulls: Vec<LinkedPull>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Well,
    Badly,
    NotYet,
}

/// Reads the pull requests of a bundle. What cannot be understood is said.
pub(super) fn ci(pulls: &[Value], hidden: &mut Vec<Hidden>) -> Result<Ci, String> {
    let mut all = Vec::new();
    for pull in pulls {
        all.push(linked(pull, hidden)?);
    }
    let open = || all.iter().filter(|pull| pull.counts());
    let state = if open().any(|pull| !pull.failing.is_empty()) {
        CiState::Failing
    } else if open().any(|pull| !pull.pending.is_empty()) {
        CiState::Pending
    } else if open().any(|pull| pull.passing > 0) {
        CiState::Passing
    } else {
        CiState::None
    };
    Ok(Ci { state, pulls: all })
}

fn linked(pull: &Value, hidden: &mut Vec<Hidden>) -> Result<LinkedPull, String> {
    let number = pull["number"].as_u64();
    let state = pull["state"].as_str();
    let named = match (number, state) {
        (Some(number), _) => format!("the pull request {number}"),
        (None, Some(COMMIT)) => "the linked commit".to_owned(),
        (None, _) => return Err("a linked pull request has no number".to_owned()),
    };
    let state = state.ok_or_else(|| format!("{named} has no state"))?;
    let mut newest: BTreeMap<String, Ended> = BTreeMap::new();
    for run in list(pull, "check_runs", &named)? {
        let ended = ended_run(run).map_err(|why| format!("{named}: {why}"))?;
        let app = run["app"]["slug"].as_str().unwrap_or_default();
        note(
            &mut newest,
            format!("run {app}"),
            (run["name"].as_str(), ended),
        );
    }
    for status in list(pull, "statuses", &named)? {
        let ended = ended_status(status).map_err(|why| format!("{named}: {why}"))?;
        note(
            &mut newest,
            "status".to_owned(),
            (status["context"].as_str(), ended),
        );
    }
    let place = format!("checks of {named}");
    let mut names = |wanted: Ended| -> Vec<String> {
        let of_kind = newest.iter().filter(|(_, ended)| **ended == wanted);
        let name = |(key, _): (&String, &Ended)| {
            let name = key.split_once('\n').map_or("", |(_, name)| name);
            short(&visible_line(&place, name, hidden), LONGEST_NAME)
        };
        of_kind.map(name).collect()
    };
    Ok(LinkedPull {
        number,
        state: state.to_owned(),
        head_sha: pull["head_sha"].as_str().unwrap_or_default().to_owned(),
        failing: names(Ended::Badly),
        pending: names(Ended::NotYet),
        passing: names(Ended::Well).len() as u64,
    })
}

fn list<'v>(pull: &'v Value, key: &str, named: &str) -> Result<&'v [Value], String> {
    match &pull[key] {
        Value::Array(all) => Ok(all),
        _ => Err(format!("`{key}` of {named} is no list")),
    }
}

/// Lists have the newest first, so that the first of a name stands.
fn note(newest: &mut BTreeMap<String, Ended>, kind: String, (name, ended): (Option<&str>, Ended)) {
    let key = format!("{kind}\n{}", name.unwrap_or("unnamed"));
    newest.entry(key).or_insert(ended);
}

fn ended_run(run: &Value) -> Result<Ended, String> {
    match run["status"].as_str() {
        Some("completed") => {}
        Some(_) => return Ok(Ended::NotYet),
        None => return Err("a check run has no status".to_owned()),
    }
    match run["conclusion"].as_str() {
        Some("failure" | "timed_out" | "startup_failure") => Ok(Ended::Badly),
        Some("success" | "neutral" | "skipped" | "cancelled" | "stale") => Ok(Ended::Well),
        // A person has something to do there first.
        Some("action_required") => Ok(Ended::NotYet),
        Some(other) => Err(format!(
            "a check run ended as `{}`, which is not known",
            short(other, 40)
        )),
        None => Err("a check run has ended without a conclusion".to_owned()),
    }
}

fn ended_status(status: &Value) -> Result<Ended, String> {
    match status["state"].as_str() {
        Some("failure" | "error") => Ok(Ended::Badly),
        Some("success") => Ok(Ended::Well),
        Some("pending") => Ok(Ended::NotYet),
        Some(other) => Err(format!(
            "a status is `{}`, which is not known",
            short(other, 40)
        )),
        None => Err("a status has no state".to_owned()),
    }
}

#[cfg(test)]
mod tests;
