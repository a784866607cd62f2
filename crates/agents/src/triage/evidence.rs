//! From what the forge says of an issue to evidence with types: bounded, without what readers do not see, and honest
//! about what is missing. Pure.
//!
//! Whatever is missing, cut, or cannot be understood stands under `incomplete`, and then no model is asked.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::checks::{Ci, ci};
use super::hidden::{Hidden, visible, visible_line};
use super::owner::owners;
use super::settings::TriageTarget;
use crate::research::short;

/// The most bytes of text that evidence has in all: more makes it incomplete.
const MOST_TEXT: usize = 1 << 20;

/// The most comments that are kept.
const MOST_COMMENTS: usize = 1_000;

/// The most paths that an owner is looked for by.
const MOST_PATHS: usize = 50;

/// The longest names, in characters.
const LONGEST_NAME: usize = 100;
const LONGEST_TITLE: usize = 1_000;

/// Who wrote something whose account is gone.
pub(super) const GHOST: &str = "ghost";

/// What is known of an issue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueEvidence {
    /// The issue, as the person named it.
    pub target: TriageTarget,
    /// Its title as a reader sees it.
    pub title: String,
    /// Its text as a reader sees it.
    pub body: String,
    /// Who wrote it; `ghost` if the account is gone.
    pub author: String,
    /// `open` or `closed`.
    pub state: String,
    /// Whether only people with rights may still comment.
    pub locked: bool,
    /// Whether it is a pull request in truth.
    pub is_pull_request: bool,
    /// The labels that it has.
    pub labels: Vec<String>,
    /// Its comments, the oldest first.
    pub comments: Vec<IssueComment>,
    /// The checks of linked pull requests.
    pub ci: Ci,
    /// Who owns what it is about, by CODEOWNERS; without `@`.
    pub owners: Vec<String>,
    /// The labels that the repository has now.
    pub live_labels: Vec<String>,
    /// What the acting user may do; nothing if that is not known.
    pub rights: Option<Rights>,
    /// Who acts; nothing if that is not known.
    pub viewer: Option<Viewer>,
    /// When it was changed last, as the forge writes it.
    pub updated_at: String,
    /// When it was read, as the forge's client writes it.
    pub fetched_at: String,
    /// Stands for all that was read, if the forge's client says it: a proposal made from it names it.
    pub etag: Option<String>,
    /// What is missing, and why.
    pub incomplete: Vec<Incomplete>,
    /// What a reader of the page would not see. It is no part of the texts above.
    pub hidden: Vec<Hidden>,
}

/// A comment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueComment {
    /// Who wrote it; `ghost` if the account is gone.
    pub author: String,
    /// What they are to the repository, as the forge says it: `OWNER`, `NONE`, …
    pub association: String,
    /// Its text as a reader sees it.
    pub body: String,
}

/// What the acting user may do in the repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// Write.
    pub push: bool,
    /// Put labels on issues.
    pub triage: bool,
    /// Read.
    pub pull: bool,
}

/// Who acts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Viewer {
    /// The number that stays theirs.
    pub id: u64,
    /// Their name.
    pub login: String,
}

/// Something that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incomplete {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

impl IssueEvidence {
    /// Evidence of which there is none: nothing could be read.
    pub(super) fn unreadable(target: TriageTarget, why: &str) -> IssueEvidence {
        IssueEvidence {
            target,
            incomplete: vec![Incomplete {
                what: "issue".to_owned(),
                why: short(why, LONGEST_TITLE),
            }],
            ..IssueEvidence::default()
        }
    }

    /// Whether the acting user may comment there.
    pub(super) fn may_comment(&self) -> bool {
        let Some(rights) = self.rights else {
            return false;
        };
        rights.push || (!self.locked && (rights.triage || rights.pull))
    }

    /// Whether the acting user may put labels there.
    pub(super) fn may_label(&self) -> bool {
        self.rights
            .is_some_and(|rights| rights.push || rights.triage)
    }
}

/// What is known of an issue: of a bundle that was read, or of why none could be. It never fails; what cannot be understood
/// is missing.
pub fn issue_evidence(target: &TriageTarget, read: Result<&Value, &str>) -> IssueEvidence {
    match read {
        Ok(bundle) => normalise(target, bundle),
        Err(why) => IssueEvidence::unreadable(target.clone(), why),
    }
}

/// Collects what is missing.
struct Missing(Vec<Incomplete>);

impl Missing {
    fn add(&mut self, what: &str, why: impl Into<String>) {
        self.0.push(Incomplete {
            what: what.to_owned(),
            why: why.into(),
        });
    }
}

/// Makes evidence of a bundle. It never fails: what cannot be understood is missing.
pub(super) fn normalise(target: &TriageTarget, bundle: &Value) -> IssueEvidence {
    let mut missing = Missing(Vec::new());
    let mut hidden = Vec::new();
    let issue = &bundle["issue"];
    if !issue.is_object() {
        return IssueEvidence {
            incomplete: [
                reported(bundle),
                unread("there is no issue in what was read"),
            ]
            .concat(),
            ..IssueEvidence::unreadable(target.clone(), "")
        };
    }
    if let Some(why) = another_issue(target, bundle) {
        return IssueEvidence {
            incomplete: [reported(bundle), unread(&why)].concat(),
            ..IssueEvidence::unreadable(target.clone(), "")
        };
    }
    let title = visible_line("title", text(&issue["title"]), &mut hidden);
    let body = visible("text", text(&issue["body"]), &mut hidden);
    let comments = comments(bundle, &mut missing, &mut hidden);
    let ci = checks(bundle, &mut missing, &mut hidden);
    let state = text(&issue["state"]);
    if !matches!(state, "open" | "closed") {
        missing.add("state", "whether the issue is open is not said");
    }
    let length: usize = comments.iter().map(|comment| comment.body.len()).sum();
    if length.saturating_add(body.len()) > MOST_TEXT {
        missing.add(
            "text",
            format!("the issue has more than {MOST_TEXT} bytes of text, and was not read whole"),
        );
    }
    let within = length.saturating_add(body.len()) <= MOST_TEXT;
    IssueEvidence {
        target: target.clone(),
        title: short(&title, LONGEST_TITLE),
        owners: owners_of(bundle, &body),
        body: if within { body } else { String::new() },
        author: name(&issue["user"], &mut hidden),
        state: state.to_owned(),
        locked: issue["locked"].as_bool().unwrap_or_default(),
        is_pull_request: issue["pull_request"].is_object(),
        labels: labels(&issue["labels"]).unwrap_or_default(),
        comments: if within { comments } else { Vec::new() },
        ci,
        live_labels: match labels(&bundle["labels"]) {
            Some(labels) => labels,
            None => {
                missing.add("labels", "the repository's labels are not known");
                Vec::new()
            }
        },
        rights: rights(&bundle["permissions"]),
        viewer: viewer(&bundle["viewer"]),
        updated_at: text(&issue["updated_at"]).to_owned(),
        fetched_at: text(&bundle["fetched_at"]).to_owned(),
        etag: bundle["etag"].as_str().map(str::to_owned),
        incomplete: [reported(bundle), missing.0].concat(),
        hidden,
    }
}

fn unread(why: &str) -> Vec<Incomplete> {
    vec![Incomplete {
        what: "issue".to_owned(),
        why: why.to_owned(),
    }]
}

/// Why what was read is about something else than what was asked for, if it is.
fn another_issue(target: &TriageTarget, bundle: &Value) -> Option<String> {
    let number = bundle["issue"]["number"].as_u64();
    if number != Some(target.number) {
        let read = number.map_or("none".to_owned(), |number| number.to_string());
        return Some(format!(
            "the issue {} was asked for, and {read} was read",
            target.number
        ));
    }
    let full_name = bundle["repository"]["full_name"].as_str()?;
    let own = format!("{}/{}", target.owner, target.repo);
    (!full_name.eq_ignore_ascii_case(&own)).then(|| {
        format!(
            "the repository is called {} now: name the issue by its new address",
            short(full_name, LONGEST_NAME)
        )
    })
}

/// What whoever read it says is missing.
fn reported(bundle: &Value) -> Vec<Incomplete> {
    let entries = bundle["incomplete"].as_array().into_iter().flatten();
    let entry = |entry: &Value| Incomplete {
        what: short(text(&entry["what"]), LONGEST_NAME),
        why: short(text(&entry["why"]), LONGEST_TITLE),
    };
    entries.map(entry).collect()
}

fn comments(bundle: &Value, missing: &mut Missing, hidden: &mut Vec<Hidden>) -> Vec<IssueComment> {
    let Some(listed) = bundle["comments"].as_array() else {
        missing.add("comments", "the comments were not read");
        return Vec::new();
    };
    let counted = bundle["issue"]["comments"].as_u64().unwrap_or_default();
    if (listed.len() as u64) < counted {
        missing.add(
            "comments",
            format!(
                "the issue has {counted} comments, and {} were read",
                listed.len()
            ),
        );
    }
    if listed.len() > MOST_COMMENTS {
        missing.add(
            "comments",
            format!("of {} comments {MOST_COMMENTS} are looked at", listed.len()),
        );
    }
    let comment = |(at, comment): (usize, &Value)| IssueComment {
        author: name(&comment["user"], hidden),
        association: short(text(&comment["author_association"]), LONGEST_NAME),
        body: visible(
            &format!("comment {}", at + 1),
            text(&comment["body"]),
            hidden,
        ),
    };
    let kept = listed.iter().take(MOST_COMMENTS);
    kept.enumerate().map(comment).collect()
}

fn checks(bundle: &Value, missing: &mut Missing, hidden: &mut Vec<Hidden>) -> Ci {
    let Some(pulls) = bundle["pulls"].as_array() else {
        missing.add("checks", "linked pull requests were not looked for");
        return Ci::default();
    };
    ci(pulls, hidden).unwrap_or_else(|why| {
        missing.add("checks", why);
        Ci::default()
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Who it is. An account that is gone is nobody in particular.
fn name(user: &Value, hidden: &mut Vec<Hidden>) -> String {
    match user["login"].as_str() {
        Some(login) => short(&visible_line("name", login, hidden), LONGEST_NAME),
        None => GHOST.to_owned(),
    }
}

fn labels(value: &Value) -> Option<Vec<String>> {
    let listed = value.as_array()?.iter();
    let name = |label: &Value| label["name"].as_str().or(label.as_str()).map(str::to_owned);
    Some(listed.filter_map(name).collect())
}

fn rights(value: &Value) -> Option<Rights> {
    let may = |key: &str| value[key].as_bool().unwrap_or_default();
    value.is_object().then(|| Rights {
        push: may("push"),
        triage: may("triage"),
        pull: may("pull"),
    })
}

fn viewer(value: &Value) -> Option<Viewer> {
    Some(Viewer {
        id: value["id"].as_u64()?,
        login: short(value["login"].as_str()?, LONGEST_NAME),
    })
}

/// Who owns the paths that an issue's text names in code, or everything.
fn owners_of(bundle: &Value, body: &str) -> Vec<String> {
    let Some(file) = bundle["codeowners"]["text"].as_str() else {
        return Vec::new();
    };
    owners(file, &paths_in(body))
}

/// Paths in a text: words with a slash and a file's ending.
fn paths_in(text: &str) -> Vec<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let is_path = |word: &&str| {
        let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
        word.contains('/')
            && !word.contains("//")
            && (1..=5).contains(&ending.len())
            && ending.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let words = text.split(|c: char| !plain(c)).filter(is_path);
    let trimmed = words.map(|word| word.trim_start_matches("./").to_owned());
    trimmed.take(MOST_PATHS).collect()
}

#[cfg(test)]
mod tests;
