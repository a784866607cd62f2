//! Which way issues go, by tables, and that incomplete evidence goes to people.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use super::super::checks::{Ci, LinkedPull};
use super::super::evidence::Incomplete;
use super::*;
use proptest::prelude::*;

fn issue(body: &str) -> IssueEvidence {
    IssueEvidence {
        body: body.to_owned(),
        state: "open".to_owned(),
        ..IssueEvidence::default()
    }
}

fn failing(evidence: IssueEvidence) -> IssueEvidence {
    let pull = LinkedPull {
        number: Some(3),
        state: "open".into(),
        head_sha: "f".into(),
        failing: vec!["test".into()],
        pending: Vec::new(),
        passing: 0,
    };
    IssueEvidence {
        ci: Ci {
            state: CiState::Failing,
            pulls: vec![pull],
        },
        ..evidence
    }
}

const LONG: &str =
    "When I press the third button twice, the window closes and all my text is gone.";

#[test]
fn each_rule_decides_where_it_is_the_first_that_applies() {
    let missing = |evidence: IssueEvidence| IssueEvidence {
        incomplete: vec![Incomplete {
            what: "comments".into(),
            why: "a page is missing".into(),
        }],
        ..evidence
    };
    let pending = IssueEvidence {
        ci: Ci {
            state: CiState::Pending,
            pulls: Vec::new(),
        },
        ..issue(LONG)
    };
    let table = [
        (issue(LONG), Class::HumanReview, "detailed"),
        (issue("it broke"), Class::AiInvestigation, "sparse"),
        (issue(""), Class::AiInvestigation, "sparse"),
        (failing(issue(LONG)), Class::Deterministic, "failing_checks"),
        (
            failing(issue("it broke")),
            Class::Deterministic,
            "failing_checks",
        ),
        (pending, Class::HumanReview, "detailed"),
        (
            missing(issue("it broke")),
            Class::HumanReview,
            "incomplete_evidence",
        ),
        (
            missing(failing(issue(LONG))),
            Class::HumanReview,
            "incomplete_evidence",
        ),
        (
            IssueEvidence {
                state: "closed".into(),
                ..failing(issue("x"))
            },
            Class::HumanReview,
            "closed",
        ),
        (
            IssueEvidence {
                locked: true,
                ..issue("x")
            },
            Class::HumanReview,
            "locked",
        ),
        (
            IssueEvidence {
                is_pull_request: true,
                ..issue("x")
            },
            Class::HumanReview,
            "pull_request",
        ),
    ];
    let settings = TriageSettings::default();
    for (evidence, class, rule) in table {
        let decided = classify(&evidence, &settings);
        assert_eq!(
            (decided.class, decided.rule.as_str()),
            (class, rule),
            "{evidence:?}"
        );
    }
}

#[test]
fn the_threshold_is_a_setting_and_the_reason_says_it() {
    let settings = TriageSettings {
        sparse_below: 3,
        ..TriageSettings::default()
    };
    let decided = classify(&issue("it broke"), &settings);
    assert_eq!(decided.class, Class::HumanReview);
    let decided = classify(&issue("hi"), &settings);
    let why = "without the template's lines the text has 2 characters, fewer than 3";
    assert_eq!((decided.why.as_str(), decided.characters), (why, 2));
}

#[test]
fn lines_of_templates_do_not_count() {
    let table = [
        (
            "### What happened?\n\nIt broke\n\n### Version\n\n_No response_",
            "It broke",
        ),
        ("- [ ] I searched\n- [x] I read\n* [X] all of it\nhm", "hm"),
        (
            "**Describe the bug**\nno idea\n**Logs:**\nN/A\n---\n***",
            "no idea",
        ),
        (
            "#1 is broken\n####### seven\n#hashtag",
            "#1 is broken ####### seven #hashtag",
        ),
        (
            "- [link](x) stays\n-[ ]glued",
            "- [link](x) stays -[ ]glued",
        ),
        ("a   b\n\n\tc", "a b c"),
    ];
    for (body, expected) in table {
        assert_eq!(without_template(body), expected, "{body:?}");
    }
}

proptest! {
    /// Incomplete evidence never reaches a model, whatever else is said.
    #[test]
    fn incomplete_evidence_goes_to_people(body in any::<String>(), locked in any::<bool>(), fails in any::<bool>()) {
        let mut evidence = IssueEvidence { locked, ..issue(&body) };
        if fails { evidence = failing(evidence); }
        evidence.incomplete.push(Incomplete { what: "x".into(), why: "y".into() });
        let decided = classify(&evidence, &TriageSettings::default());
        prop_assert_eq!(decided.class, Class::HumanReview);
    }
}
