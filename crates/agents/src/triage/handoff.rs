//! What a person is left with where nothing is posted: why, and related issues. Pure.
//!
//! The evidence, the diagnosis and the checks stand beside it in the run's result. Nothing can be posted from here.

use serde::{Deserialize, Serialize};

use super::doors::Retrieved;
use super::settings::TriageTarget;

/// The most related issues that are named.
const MOST: usize = 5;

/// How an issue came to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffKind {
    /// Checks did not let a diagnosis pass.
    Escalated,
    /// It was never a model's.
    HandedOff,
}

/// A hand-over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Handoff {
    /// How it came to it.
    pub kind: HandoffKind,
    /// Why, a sentence for each reason.
    pub why: Vec<String>,
    /// Issues of the corpus above the floor, the best first.
    pub related: Vec<RelatedIssue>,
}

/// An issue that may be about the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelatedIssue {
    /// `owner/repo` and the number: `harbor/ferry#3`.
    pub issue: String,
    /// Its title.
    pub title: String,
    /// Its address.
    pub url: String,
    /// How relevant it is.
    pub score: f64,
}

/// The issues above the floor, each once, without the analysed one.
pub(super) fn related(target: &TriageTarget, retrieved: &Retrieved) -> Vec<RelatedIssue> {
    let mut all: Vec<RelatedIssue> = Vec::new();
    if retrieved.no_floor.is_some() {
        return all;
    }
    for snippet in retrieved.snippets.iter().filter(|one| one.above_floor) {
        let issue = format!("{}#{}", snippet.repo, snippet.number);
        let known = all.iter().any(|one| one.issue == issue);
        if known || target.is_itself(&snippet.repo, snippet.number) || all.len() == MOST {
            continue;
        }
        all.push(RelatedIssue {
            issue,
            title: snippet.title.clone(),
            url: snippet.url.clone(),
            score: snippet.score,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::doors::Snippet;
    use super::*;

    #[test]
    fn related_issues_are_above_the_floor_each_once_and_never_the_issue_itself() {
        let snippet = |repo: &str, number, above_floor| Snippet {
            id: format!("{repo}-{number}"),
            repo: repo.into(),
            number,
            title: "t".into(),
            url: "u".into(),
            text: String::new(),
            score: 0.5,
            above_floor,
        };
        let target = TriageTarget {
            host: "h".into(),
            owner: "a".into(),
            repo: "b".into(),
            number: 1,
        };
        let mut retrieved = Retrieved {
            snippets: vec![
                snippet("a/b", 2, true),
                snippet("A/B", 1, true),
                snippet("a/b", 2, true),
                snippet("a/b", 3, false),
                snippet("c/d", 1, true),
            ],
            no_floor: None,
        };
        let found = related(&target, &retrieved);
        let names: Vec<_> = found.iter().map(|one| one.issue.as_str()).collect();
        assert_eq!(names, ["a/b#2", "c/d#1"]);
        retrieved.no_floor = Some("small".into());
        assert!(related(&target, &retrieved).is_empty());
    }
}
