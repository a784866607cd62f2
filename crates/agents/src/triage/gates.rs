//! Whether a diagnosis may be proposed: named checks in code, each with its reason. Pure.
//!
//! No text of a model decides here, neither the one that wrote the diagnosis nor the one that criticised it: what counts
//! are ids, scores, letters of quotes, labels and rights. All checks are made, so that a person sees each that failed.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use super::diagnosis::Diagnosis;
use super::doors::Retrieved;
use super::evidence::IssueEvidence;
use super::settings::TriageSettings;
use crate::research::short;

/// A quote with fewer characters than this shows nothing, unless it is the whole snippet.
const SHORTEST_QUOTE: usize = 16;

/// The most characters of an id or a quote that a reason repeats.
const SHOWN: usize = 80;

/// A check, by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name, as it stands in a stop reason.
    pub name: String,
    /// Whether it holds.
    pub passed: bool,
    /// What was found, in a sentence.
    pub why: String,
}

/// What becomes of a diagnosis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewOutcome {
    /// A person is asked whether it may be posted.
    Approve,
    /// A person takes over, and nothing can be posted from there.
    EscalateToHuman,
}

/// The review of a diagnosis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewResult {
    /// By the checks alone.
    pub outcome: ReviewOutcome,
    /// All checks.
    pub checks: Vec<Check>,
    /// What an independent model says against the diagnosis: for people, and for nothing else.
    pub reasoning: Option<String>,
}

impl ReviewResult {
    /// What these checks, and nothing but them, make of a diagnosis.
    pub(super) fn of(checks: Vec<Check>, reasoning: Option<String>) -> ReviewResult {
        let outcome = match checks.iter().all(|check| check.passed) && !checks.is_empty() {
            true => ReviewOutcome::Approve,
            false => ReviewOutcome::EscalateToHuman,
        };
        ReviewResult {
            outcome,
            checks,
            reasoning,
        }
    }

    /// The names of the checks that failed, in order.
    pub fn failed(&self) -> Vec<&str> {
        let failed = self.checks.iter().filter(|check| !check.passed);
        failed.map(|check| check.name.as_str()).collect()
    }
}

/// What is checked.
#[derive(Clone, Copy)]
pub struct Gated<'a> {
    /// The issue.
    pub evidence: &'a IssueEvidence,
    /// What was found in the corpus in this run.
    pub retrieved: &'a Retrieved,
    /// What a model said.
    pub diagnosis: &'a Diagnosis,
    /// The label that would be proposed.
    pub label: Option<&'a str>,
    /// Whether an independent model gave its criticism, or why not.
    pub criticism: Result<(), &'a str>,
    /// The rules.
    pub settings: &'a TriageSettings,
}

/// All checks of a diagnosis, in a fixed order.
pub fn checks(gated: Gated<'_>) -> Vec<Check> {
    let made: [(&str, Result<String, String>); 11] = [
        ("evidence_complete", evidence_complete(gated)),
        ("floor_valid", floor_valid(gated)),
        ("citations_present", citations_present(gated)),
        ("citations_retrieved", citations_retrieved(gated)),
        ("citations_not_self", citations_not_self(gated)),
        ("citations_above_floor", citations_above_floor(gated)),
        ("quotes_verbatim", quotes_verbatim(gated)),
        ("severity_allowed", severity_allowed(gated)),
        ("labels_exist", labels_exist(gated)),
        ("permissions", permissions(gated)),
        ("review_given", review_given(gated)),
    ];
    let check = |(name, found): (&str, Result<String, String>)| Check {
        name: name.to_owned(),
        passed: found.is_ok(),
        why: found.unwrap_or_else(|why| why),
    };
    made.into_iter().map(check).collect()
}

fn evidence_complete(gated: Gated<'_>) -> Result<String, String> {
    match gated.evidence.incomplete.first() {
        None => Ok("nothing is missing".to_owned()),
        Some(first) => Err(format!("{}: {}", first.what, first.why)),
    }
}

fn floor_valid(gated: Gated<'_>) -> Result<String, String> {
    match &gated.retrieved.no_floor {
        None => Ok("the corpus has a floor that was fitted for it".to_owned()),
        Some(why) => Err(format!("there is no floor: {why}")),
    }
}

fn citations_present(gated: Gated<'_>) -> Result<String, String> {
    match gated.diagnosis.citations.len() {
        0 => Err("nothing is cited".to_owned()),
        1 => Ok("1 snippet is cited".to_owned()),
        cited => Ok(format!("{cited} snippets are cited")),
    }
}

/// Says of which cited ids something does not hold.
fn each(
    gated: Gated<'_>,
    well: &str,
    fault: impl Fn(&str, &str) -> Option<String>,
) -> Result<String, String> {
    let cited = gated.diagnosis.citations.iter();
    let faults: BTreeSet<String> = cited
        .filter_map(|cited| fault(&cited.id, &cited.quote))
        .collect();
    match faults.is_empty() {
        true => Ok(well.to_owned()),
        false => Err(faults.into_iter().collect::<Vec<_>>().join("; ")),
    }
}

fn citations_retrieved(gated: Gated<'_>) -> Result<String, String> {
    each(gated, "all were found in this run", |id, _| {
        let known = gated.retrieved.get(id).is_some();
        (!known).then(|| format!("`{}` was not found in this run", short(id, SHOWN)))
    })
}

fn citations_not_self(gated: Gated<'_>) -> Result<String, String> {
    each(gated, "none is of the issue itself", |id, _| {
        let snippet = gated.retrieved.get(id)?;
        let itself = gated
            .evidence
            .target
            .is_itself(&snippet.repo, snippet.number);
        itself.then(|| format!("`{}` is of the issue itself", short(id, SHOWN)))
    })
}

fn citations_above_floor(gated: Gated<'_>) -> Result<String, String> {
    each(gated, "all are above the floor", |id, _| {
        let snippet = gated.retrieved.get(id)?;
        let above = snippet.above_floor && snippet.score.is_finite();
        let above = above && gated.retrieved.no_floor.is_none();
        (!above).then(|| {
            format!(
                "`{}` is not above the floor ({:.2})",
                short(id, SHOWN),
                snippet.score
            )
        })
    })
}

fn quotes_verbatim(gated: Gated<'_>) -> Result<String, String> {
    each(gated, "all quotes stand in their snippets", |id, quote| {
        let snippet = gated.retrieved.get(id)?;
        let (quote, text) = (one_line(quote), one_line(&snippet.text));
        let length = quote.chars().count();
        if !text.contains(&quote) {
            return Some(format!(
                "`{}` does not say \u{201c}{}\u{201d}",
                short(id, SHOWN),
                short(&quote, SHOWN)
            ));
        }
        let enough = length >= SHORTEST_QUOTE || (quote == text && length > 0);
        (!enough).then(|| {
            format!(
                "the quote from `{}` has {length} characters, fewer than {SHORTEST_QUOTE}",
                short(id, SHOWN)
            )
        })
    })
}

/// A text whose breaks and runs of blanks are single blanks; all other letters count.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn severity_allowed(gated: Gated<'_>) -> Result<String, String> {
    let severity = gated.diagnosis.severity;
    match gated.settings.severities.contains(&severity) {
        true => Ok(format!("`{}` may be proposed", severity.name())),
        false => Err(format!(
            "`{}` always goes to a person, however right the diagnosis is",
            severity.name()
        )),
    }
}

fn labels_exist(gated: Gated<'_>) -> Result<String, String> {
    let Some(label) = gated.label else {
        return Ok("no label is proposed".to_owned());
    };
    // A forge takes labels for the same whose letters differ in case alone.
    let mut live = gated.evidence.live_labels.iter();
    match live.any(|known| known.eq_ignore_ascii_case(label)) {
        true => Ok(format!("`{label}` is there")),
        false => Err(format!("the repository has no label `{label}`")),
    }
}

fn permissions(gated: Gated<'_>) -> Result<String, String> {
    let evidence = gated.evidence;
    let Some(viewer) = &evidence.viewer else {
        return Err("who acts is not known".to_owned());
    };
    if !evidence.may_comment() {
        return Err(format!("{} may not comment there", viewer.login));
    }
    if gated.label.is_some() && !evidence.may_label() {
        return Err(format!("{} may not put labels there", viewer.login));
    }
    Ok(format!("{} may do it", viewer.login))
}

fn review_given(gated: Gated<'_>) -> Result<String, String> {
    match gated.criticism {
        Ok(()) => Ok("an independent criticism was written".to_owned()),
        Err(why) => Err(format!("no independent criticism was written: {why}")),
    }
}

#[cfg(test)]
mod tests;
