//! The one place that makes what would be posted, for failing checks and for a diagnosis alike. Pure.
//!
//! The comment is complete but for the mark by which the effect recognises its own posts. All words of models and of
//! strangers in it do nothing ([`inert`]); what a person writes when they edit a proposal is posted as they wrote it.

use serde::{Deserialize, Serialize};

use super::diagnosis::Diagnosis;
use super::doors::{Retrieved, Snippet};
use super::evidence::IssueEvidence;
use super::neutral::{inert, inert_words};
use super::settings::TriageSettings;
use crate::research::short;

/// The longest comment, in characters. A forge takes 65,536 with the mark that is added.
pub(super) const LONGEST_COMMENT: usize = 60_000;

/// The most silenced words that a remark lists.
const LISTED: usize = 12;

/// The most pull requests and checks that a comment names.
const NAMED: usize = 10;

/// What would be posted, to the letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedAction {
    /// The comment, in Markdown.
    pub comment: String,
    /// The label that would be added.
    pub label: Option<String>,
    /// What whoever decides should know of it: words that were silenced, a label that is left out.
    pub remarks: Vec<String>,
}

/// What a proposal is made of.
#[derive(Clone, Copy)]
pub(super) enum Basis<'a> {
    /// Checks of linked pull requests fail.
    FailingChecks,
    /// A diagnosis that passed its checks, and what it cites.
    Diagnosed(&'a Diagnosis, &'a Retrieved),
}

/// What would be posted.
pub(super) fn propose(
    evidence: &IssueEvidence,
    settings: &TriageSettings,
    basis: Basis<'_>,
) -> ProposedAction {
    let mut silenced = Vec::new();
    let comment = match basis {
        Basis::FailingChecks => failing_checks(evidence, &mut silenced),
        Basis::Diagnosed(diagnosis, retrieved) => {
            diagnosed((evidence, diagnosis, retrieved), &mut silenced)
        }
    };
    let mut remarks = Vec::new();
    if !silenced.is_empty() {
        let more = silenced.len().saturating_sub(LISTED);
        let listed = silenced.iter().take(LISTED).map(|word| short(word, 60));
        let listed = listed.collect::<Vec<_>>().join(" ");
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        remarks.push(format!(
            "put into code, so that it calls, links, closes and commands nothing: {listed}{more}"
        ));
    }
    let label = match basis {
        Basis::FailingChecks => {
            existing(evidence, settings.needs_triage_label.clone(), &mut remarks)
        }
        Basis::Diagnosed(diagnosis, _) => settings.severity_label(diagnosis.severity),
    };
    let label = permitted(evidence, label, &mut remarks);
    ProposedAction {
        comment: short(&comment, LONGEST_COMMENT),
        label,
        remarks,
    }
}

/// A label that is not there is not proposed, and nothing makes it. (For a diagnosis that is one of its checks.)
fn existing(
    evidence: &IssueEvidence,
    label: Option<String>,
    remarks: &mut Vec<String>,
) -> Option<String> {
    let label = label?;
    let mut live = evidence.live_labels.iter();
    match live.any(|known| known.eq_ignore_ascii_case(&label)) {
        true => Some(label),
        false => {
            remarks.push(format!(
                "no label is proposed: the repository has none called `{label}`"
            ));
            None
        }
    }
}

/// Who may only comment proposes no label.
fn permitted(
    evidence: &IssueEvidence,
    label: Option<String>,
    remarks: &mut Vec<String>,
) -> Option<String> {
    let label = label?;
    if evidence.rights.is_none() || evidence.may_label() {
        return Some(label);
    }
    remarks.push(format!(
        "the label `{label}` is left out: whoever acts may not put labels there"
    ));
    None
}

fn failing_checks(evidence: &IssueEvidence, silenced: &mut Vec<String>) -> String {
    let mut text = "### Checks fail on linked changes\n\n".to_owned();
    let failing = evidence
        .ci
        .pulls
        .iter()
        .filter(|pull| pull.counts() && !pull.failing.is_empty());
    for pull in failing.take(NAMED) {
        let names = pull.failing.iter().take(NAMED).map(|name| {
            let plain = name.replace('`', "'");
            format!("`{plain}`")
        });
        let names = names.collect::<Vec<_>>().join(", ");
        let more = match pull.failing.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let commit: String = pull
            .head_sha
            .chars()
            .filter(char::is_ascii_hexdigit)
            .take(10)
            .collect();
        let at = if commit.is_empty() {
            String::new()
        } else {
            format!(" at `{commit}`")
        };
        let named = match pull.number {
            Some(number) => format!("Pull request {number}"),
            None => "Commit".to_owned(),
        };
        text.push_str(&format!("- {named}{at}: {names}{more}\n"));
    }
    text.push_str("\nA maintainer should look at these first; nothing else was examined.\n");
    if !evidence.owners.is_empty() {
        let owners = evidence.owners.iter().take(NAMED);
        let owners = owners.map(|owner| inert_words(owner, silenced));
        let owners = owners.collect::<Vec<_>>().join(", ");
        text.push_str(&format!("By CODEOWNERS this belongs to {owners}.\n"));
    }
    text.push_str("\n*Made from the checks by fixed rules, and approved by a person.*\n");
    text
}

fn diagnosed(
    (evidence, diagnosis, retrieved): (&IssueEvidence, &Diagnosis, &Retrieved),
    silenced: &mut Vec<String>,
) -> String {
    let cause = inert(&diagnosis.root_cause);
    silenced.extend(cause.silenced);
    let mut text = format!("### Likely cause\n\n{}\n", cause.text);
    let mut list = |title: &str, entries: &[String], numbered: bool| {
        if entries.is_empty() {
            return;
        }
        text.push_str(&format!("\n### {title}\n\n"));
        for (at, entry) in entries.iter().enumerate() {
            let mark = if numbered {
                format!("{}.", at + 1)
            } else {
                "-".to_owned()
            };
            text.push_str(&format!("{mark} {}\n", inert_words(entry, silenced)));
        }
    };
    list(
        "Suggested next steps",
        &diagnosis.recommended_next_steps,
        true,
    );
    list("What would help to know", &diagnosis.missing_info, false);
    text.push_str("\n### What this rests on\n");
    for cited in &diagnosis.citations {
        let Some(snippet) = retrieved.get(&cited.id) else {
            continue;
        };
        let quote = inert_words(&cited.quote, silenced);
        text.push_str(&format!(
            "\n{}\n> {quote}\n",
            named(evidence, snippet, silenced)
        ));
    }
    text.push_str(
        "\n*Drafted by a model from the issues above, checked by code, and approved by a person. It may be wrong.*\n",
    );
    text
}

/// An issue that is cited, without a link that would leave a trace in it.
fn named(evidence: &IssueEvidence, snippet: &Snippet, silenced: &mut Vec<String>) -> String {
    let mut unheard = Vec::new();
    let title = inert_words(&short(&snippet.title, 200), silenced);
    let own = format!("{}/{}", evidence.target.owner, evidence.target.repo);
    let place = match snippet.repo.eq_ignore_ascii_case(&own) {
        true => format!("issue {}", snippet.number),
        false => format!(
            "issue {} of {}",
            snippet.number,
            inert_words(&snippet.repo, &mut unheard)
        ),
    };
    let address = snippet.url.replace(['`', '\n', ' '], "");
    format!("{title} ({place}, `{address}`):\n")
}

#[cfg(test)]
mod tests;
