//! How triage is done: thresholds, labels, caps, and whose voices speak. Plain data that the command line fills in; it
//! decides nothing.

use crate::{Rehearsal, Voice};
use paraph_gateway::Price;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::diagnosis::Severity;

/// The parts that models play in triage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TriageRole {
    /// Says what the cause may be, from the evidence and the snippets.
    Diagnosis,
    /// Criticises a diagnosis that it has not written, for the person who reads it.
    Reviewer,
}

impl TriageRole {
    /// All of them.
    pub const ALL: [TriageRole; 2] = [TriageRole::Diagnosis, TriageRole::Reviewer];

    /// Its name in configuration.
    pub fn name(self) -> &'static str {
        match self {
            TriageRole::Diagnosis => "diagnosis",
            TriageRole::Reviewer => "reviewer",
        }
    }
}

impl std::str::FromStr for TriageRole {
    type Err = String;

    fn from_str(name: &str) -> Result<TriageRole, String> {
        let known = TriageRole::ALL.into_iter().find(|role| role.name() == name);
        known.ok_or_else(|| {
            let all = TriageRole::ALL.map(TriageRole::name).join(", ");
            format!("`{name}` is no part of triage; there are {all}")
        })
    }
}

/// How triage is done. Every bound is kept by code, whatever models say.
#[derive(Clone)]
pub struct TriageSettings {
    /// An issue is sparse if fewer characters than this are left of its text without the template's lines.
    pub sparse_below: u64,
    /// The label that goes with the comment on failing checks; nothing for none.
    pub needs_triage_label: Option<String>,
    /// What stands before the severity in the label that goes with a diagnosis; nothing for no label.
    pub severity_prefix: Option<String>,
    /// The severities that a person may be asked to approve; what is graver goes to people without a proposal.
    pub severities: Vec<Severity>,
    /// How many snippets are looked for, 1 to [`TriageSettings::MOST_SNIPPETS`].
    pub snippets: u64,
    /// Analyses that one user may begin in one day, in UTC; nothing for no limit.
    pub per_user_day: Option<u64>,
    /// Who plays which part; the run's own model plays the others.
    pub voices: BTreeMap<TriageRole, Voice>,
}

impl Default for TriageSettings {
    fn default() -> TriageSettings {
        TriageSettings {
            sparse_below: 40,
            needs_triage_label: Some("needs-triage".to_owned()),
            severity_prefix: Some("severity:".to_owned()),
            severities: vec![Severity::Low, Severity::Medium],
            snippets: 3,
            per_user_day: Some(30),
            voices: BTreeMap::new(),
        }
    }
}

impl std::fmt::Debug for TriageSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TriageSettings")
            .field("sparse_below", &self.sparse_below)
            .field("needs_triage_label", &self.needs_triage_label)
            .field("severity_prefix", &self.severity_prefix)
            .field("severities", &self.severities)
            .field("snippets", &self.snippets)
            .field("per_user_day", &self.per_user_day)
            .field("voices", &self.voices.keys().collect::<Vec<_>>())
            .finish()
    }
}

impl TriageSettings {
    /// More snippets than this are refused.
    pub const MOST_SNIPPETS: u64 = 20;

    /// The settings of a rehearsal: both parts are played by rules, and nobody's day is counted.
    #[must_use]
    pub fn rehearsal() -> TriageSettings {
        let voice = |role| Voice {
            model: Arc::new(Rehearsal::Triage(role)),
            price: Some(Price {
                input: 0,
                output: 0,
                source: "the rehearsal model costs nothing".to_owned(),
            }),
        };
        TriageSettings {
            per_user_day: None,
            voices: TriageRole::ALL.map(|role| (role, voice(role))).into(),
            ..TriageSettings::default()
        }
    }

    /// What is wrong with them, if anything is.
    ///
    /// # Errors
    /// A sentence for the first mistake.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=Self::MOST_SNIPPETS).contains(&self.snippets) {
            return Err(format!(
                "`snippets` is {}; it can be 1 to {}",
                self.snippets,
                Self::MOST_SNIPPETS
            ));
        }
        let longest = Severity::ALL.map(|severity| severity.name().len());
        let longest = longest.into_iter().max().unwrap_or_default();
        let labels = [
            ("needs_triage_label", &self.needs_triage_label, 0),
            ("severity_prefix", &self.severity_prefix, longest),
        ];
        for (name, label, more) in labels {
            let Some(label) = label else { continue };
            let length = label.chars().count() + more;
            if label.trim().is_empty() || length > LONGEST_LABEL {
                return Err(format!(
                    "`{name}` makes a label of {length} characters; a label has 1 to {LONGEST_LABEL} and is not blank"
                ));
            }
        }
        if self.severities.contains(&Severity::High) {
            return Err(
                "`severities` has `high` in it: what is grave always goes to people first"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// The label that goes with a diagnosis.
    pub(crate) fn severity_label(&self, severity: Severity) -> Option<String> {
        let prefix = self.severity_prefix.as_ref()?;
        Some(format!("{prefix}{}", severity.name()))
    }
}

/// The longest name of a label that GitHub takes, in characters.
const LONGEST_LABEL: usize = 50;

/// The one issue that a run is about. It comes from the address that a person gave, by code; nothing that a run reads
/// can change it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriageTarget {
    /// The host of the address, such as `github.com`.
    pub host: String,
    /// Whose repository.
    pub owner: String,
    /// The repository's name.
    pub repo: String,
    /// The number.
    pub number: u64,
}

impl TriageTarget {
    /// The address of the page.
    pub fn url(&self) -> String {
        let TriageTarget {
            host,
            owner,
            repo,
            number,
        } = self;
        format!("https://{host}/{owner}/{repo}/issues/{number}")
    }

    /// As people write it: `owner/repo#7`.
    pub fn short(&self) -> String {
        format!("{}/{}#{}", self.owner, self.repo, self.number)
    }

    /// Whether an id of a snippet, or an address, is of the issue itself, however its letters are written.
    pub(crate) fn is_itself(&self, repo: &str, number: u64) -> bool {
        let own = format!("{}/{}", self.owner, self.repo);
        number == self.number && repo.eq_ignore_ascii_case(&own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_bounds_are_named_with_what_they_can_be() {
        let fine = TriageSettings::default;
        let table = [
            (fine(), Ok(())),
            (TriageSettings::rehearsal(), Ok(())),
            (
                TriageSettings {
                    snippets: 0,
                    ..fine()
                },
                Err("`snippets` is 0; it can be 1 to 20"),
            ),
            (
                TriageSettings {
                    needs_triage_label: Some(" ".to_owned()),
                    ..fine()
                },
                Err(
                    "`needs_triage_label` makes a label of 1 characters; a label has 1 to 50 and is not blank",
                ),
            ),
            (
                TriageSettings {
                    severity_prefix: Some("s".repeat(45)),
                    ..fine()
                },
                Err(
                    "`severity_prefix` makes a label of 51 characters; a label has 1 to 50 and is not blank",
                ),
            ),
            (
                TriageSettings {
                    severities: Severity::ALL.to_vec(),
                    ..fine()
                },
                Err("`severities` has `high` in it: what is grave always goes to people first"),
            ),
        ];
        for (settings, expected) in table {
            assert_eq!(settings.check(), expected.map_err(str::to_owned));
        }
    }

    #[test]
    fn parts_are_read_by_their_names_and_a_target_is_written_as_its_address() {
        for role in TriageRole::ALL {
            assert_eq!(role.name().parse(), Ok(role));
        }
        let error = "judge".parse::<TriageRole>();
        let expected = "`judge` is no part of triage; there are diagnosis, reviewer";
        assert_eq!(error, Err(expected.to_owned()));
        let target = TriageTarget {
            host: "github.com".into(),
            owner: "Harbor".into(),
            repo: "ferry".into(),
            number: 7,
        };
        assert_eq!(target.url(), "https://github.com/Harbor/ferry/issues/7");
        assert_eq!(target.short(), "Harbor/ferry#7");
        assert!(target.is_itself("harbor/FERRY", 7));
        assert!(!target.is_itself("harbor/ferry", 8));
    }
}
