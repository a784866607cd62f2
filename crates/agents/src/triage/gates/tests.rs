//! Each check by its own fault, and that no words open a gate.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use super::super::diagnosis::{Citation, Severity};
use super::super::doors::Snippet;
use super::super::evidence::{Incomplete, Rights, Viewer};
use super::super::settings::TriageTarget;
use super::*;
use proptest::prelude::*;

const TEXT: &str = "The cache key leaves out\nthe locale, so the first language wins.";

#[derive(Clone)]
struct Case {
    evidence: IssueEvidence,
    retrieved: Retrieved,
    diagnosis: Diagnosis,
    label: Option<&'static str>,
    criticism: Result<(), &'static str>,
}

fn case() -> Case {
    let snippet = |id: &str, number, score, above_floor| Snippet {
        id: id.into(),
        repo: "harbor/ferry".into(),
        number,
        title: "t".into(),
        url: "u".into(),
        text: TEXT.into(),
        score,
        above_floor,
    };
    Case {
        evidence: IssueEvidence {
            target: TriageTarget {
                host: "github.com".into(),
                owner: "Harbor".into(),
                repo: "ferry".into(),
                number: 7,
            },
            live_labels: vec!["Severity:low".into()],
            rights: Some(Rights {
                push: false,
                triage: true,
                pull: true,
            }),
            viewer: Some(Viewer {
                id: 1,
                login: "me".into(),
            }),
            ..IssueEvidence::default()
        },
        retrieved: Retrieved {
            snippets: vec![
                snippet("a#0", 3, 0.8, true),
                snippet("weak#0", 4, 0.2, false),
                snippet("self#0", 7, 0.99, true),
            ],
            no_floor: None,
        },
        diagnosis: Diagnosis {
            root_cause: "c".into(),
            severity: Severity::Low,
            missing_info: Vec::new(),
            recommended_next_steps: Vec::new(),
            citations: vec![cite("a#0", "leaves out the locale, so the first")],
        },
        label: Some("severity:low"),
        criticism: Ok(()),
    }
}

fn cite(id: &str, quote: &str) -> Citation {
    Citation {
        id: id.into(),
        quote: quote.into(),
    }
}

fn failed(change: impl FnOnce(&mut Case)) -> Vec<String> {
    let mut case = case();
    change(&mut case);
    let settings = TriageSettings::default();
    let made = checks(Gated {
        evidence: &case.evidence,
        retrieved: &case.retrieved,
        diagnosis: &case.diagnosis,
        label: case.label,
        criticism: case.criticism,
        settings: &settings,
    });
    let review = ReviewResult::of(made, Some("All fine, approve it at once!".into()));
    let failed: Vec<String> = review.failed().into_iter().map(str::to_owned).collect();
    let approved = review.outcome == ReviewOutcome::Approve;
    assert_eq!(approved, failed.is_empty());
    failed
}

type Change = Box<dyn FnOnce(&mut Case)>;

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn each_check_fails_by_its_own_fault_and_by_no_other() {
    let quote = "leaves out the locale, so the first";
    let table: Vec<(&str, Change, &[&str])> = vec![
        ("all is well", Box::new(|_| {}), &[]),
        (
            "something is missing",
            Box::new(|c| {
                c.evidence.incomplete.push(Incomplete {
                    what: "a".into(),
                    why: "b".into(),
                })
            }),
            &["evidence_complete"],
        ),
        (
            "no floor",
            Box::new(|c| c.retrieved.no_floor = Some("too small".into())),
            &["floor_valid", "citations_above_floor"],
        ),
        (
            "nothing cited",
            Box::new(|c| c.diagnosis.citations.clear()),
            &["citations_present"],
        ),
        (
            "an id that is made up",
            Box::new(move |c| c.diagnosis.citations.push(cite("b#9", quote))),
            &["citations_retrieved"],
        ),
        (
            "the issue itself",
            Box::new(move |c| c.diagnosis.citations.push(cite("self#0", quote))),
            &["citations_not_self"],
        ),
        (
            "a weak one among good ones",
            Box::new(move |c| c.diagnosis.citations.push(cite("weak#0", quote))),
            &["citations_above_floor"],
        ),
        (
            "a quote that is made up",
            Box::new(|c| c.diagnosis.citations[0].quote = "leaves out the region entirely".into()),
            &["quotes_verbatim"],
        ),
        (
            "a quote in other case",
            Box::new(|c| c.diagnosis.citations[0].quote = "LEAVES OUT THE LOCALE, so".into()),
            &["quotes_verbatim"],
        ),
        (
            "a quote of a word",
            Box::new(|c| c.diagnosis.citations[0].quote = "the locale".into()),
            &["quotes_verbatim"],
        ),
        (
            "an empty quote",
            Box::new(|c| c.diagnosis.citations[0].quote = " ".into()),
            &["quotes_verbatim"],
        ),
        (
            "a score that is none",
            Box::new(|c| c.retrieved.snippets[0].score = f64::NAN),
            &["citations_above_floor"],
        ),
        (
            "grave",
            Box::new(|c| c.diagnosis.severity = Severity::High),
            &["severity_allowed"],
        ),
        (
            "another label",
            Box::new(|c| c.label = Some("severity:odd")),
            &["labels_exist"],
        ),
        (
            "no label",
            Box::new(|c| {
                c.label = None;
                c.evidence.live_labels.clear();
            }),
            &[],
        ),
        (
            "nobody",
            Box::new(|c| c.evidence.viewer = None),
            &["permissions"],
        ),
        (
            "unknown rights",
            Box::new(|c| c.evidence.rights = None),
            &["permissions"],
        ),
        (
            "a reader with a label",
            Box::new(|c| {
                c.evidence.rights = Some(Rights {
                    push: false,
                    triage: false,
                    pull: true,
                })
            }),
            &["permissions"],
        ),
        (
            "a reader without",
            Box::new(|c| {
                c.label = None;
                c.evidence.rights = Some(Rights {
                    push: false,
                    triage: false,
                    pull: true,
                });
            }),
            &[],
        ),
        (
            "no criticism",
            Box::new(|c| c.criticism = Err("llm_timeout")),
            &["review_given"],
        ),
    ];
    for (name, change, expected) in table {
        assert_eq!(failed(change), expected, "{name}");
    }
}

#[test]
fn reasons_name_what_was_found() {
    let case = case();
    let settings = TriageSettings::default();
    let diagnosis = Diagnosis {
        severity: Severity::High,
        citations: vec![cite("weak#0", "made up by a model"), cite("b", "x")],
        ..case.diagnosis
    };
    let made = checks(Gated {
        evidence: &case.evidence,
        retrieved: &case.retrieved,
        diagnosis: &diagnosis,
        label: case.label,
        criticism: case.criticism,
        settings: &settings,
    });
    let whys: Vec<_> = made
        .iter()
        .filter(|check| !check.passed)
        .map(|check| check.why.as_str())
        .collect();
    assert_eq!(
        whys,
        [
            "`b` was not found in this run",
            "`weak#0` is not above the floor (0.20)",
            "`weak#0` does not say \u{201c}made up by a model\u{201d}",
            "`high` always goes to a person, however right the diagnosis is",
        ]
    );
}

proptest! {
    /// What a model writes, in the diagnosis or in the criticism, opens no gate that ids, letters and rights close.
    #[test]
    fn no_words_open_a_gate(cause in any::<String>(), id in "\\PC{0,30}", quote in any::<String>()) {
        let failed = failed(|case| {
            case.diagnosis.root_cause = cause;
            case.diagnosis.citations = vec![cite(&id, &quote)];
        });
        let honest = id == "a#0" && one_line(TEXT).contains(&one_line(&quote));
        prop_assert!(honest || !failed.is_empty());
    }
}
