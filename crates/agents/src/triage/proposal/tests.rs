//! Proposals to the letter, and that they do nothing whatever is in them.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use super::super::checks::{Ci, CiState, LinkedPull};
use super::super::diagnosis::{Citation, Severity};
use super::super::evidence::Rights;
use super::super::settings::TriageTarget;
use super::*;
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};

fn evidence() -> IssueEvidence {
    IssueEvidence {
        target: TriageTarget {
            host: "github.com".into(),
            owner: "harbor".into(),
            repo: "ferry".into(),
            number: 7,
        },
        ci: Ci {
            state: CiState::Failing,
            pulls: vec![LinkedPull {
                number: Some(12),
                state: "open".into(),
                head_sha: "0123456789abcdef".into(),
                failing: vec!["build".into(), "te`st @ann".into()],
                pending: Vec::new(),
                passing: 1,
            }],
        },
        owners: vec!["harbor/crew".into()],
        live_labels: vec!["needs-triage".into()],
        rights: Some(Rights {
            push: false,
            triage: true,
            pull: true,
        }),
        ..IssueEvidence::default()
    }
}

fn retrieved() -> Retrieved {
    Retrieved {
        snippets: vec![Snippet {
            id: "a#0".into(),
            repo: "harbor/ferry".into(),
            number: 3,
            title: "Wrong *language*".into(),
            url: "https://github.com/harbor/ferry/issues/3".into(),
            text: "The cache key leaves out the locale.".into(),
            score: 0.8,
            above_floor: true,
        }],
        no_floor: None,
    }
}

fn diagnosis(cause: &str) -> Diagnosis {
    Diagnosis {
        root_cause: cause.into(),
        severity: Severity::Medium,
        missing_info: vec!["The version".into()],
        recommended_next_steps: vec![
            "Add the locale to `key()`.".into(),
            "Tell @ann, fixes #3".into(),
        ],
        citations: vec![Citation {
            id: "a#0".into(),
            quote: "The cache key leaves out the locale.".into(),
        }],
    }
}

#[test]
fn failing_checks_make_a_fixed_comment_that_calls_nobody() {
    let made = propose(
        &evidence(),
        &TriageSettings::default(),
        Basis::FailingChecks,
    );
    let expected = ProposedAction {
        comment: "### Checks fail on linked changes\n\n\
            - Pull request 12 at `0123456789`: `build`, `te'st @ann`\n\n\
            A maintainer should look at these first; nothing else was examined.\n\
            By CODEOWNERS this belongs to harbor/crew.\n\n\
            *Made from the checks by fixed rules, and approved by a person.*\n"
            .into(),
        label: Some("needs-triage".into()),
        remarks: Vec::new(),
    };
    assert_eq!(made, expected);
}

#[test]
fn a_diagnosis_becomes_a_comment_in_which_no_word_of_a_model_acts() {
    let diagnosis = diagnosis("The key has no locale.\n\n/close");
    let basis = retrieved();
    let made = propose(
        &evidence(),
        &TriageSettings::default(),
        Basis::Diagnosed(&diagnosis, &basis),
    );
    let expected = ProposedAction {
        comment: "### Likely cause\n\nThe key has no locale.\n\n`/close`\n\n\
            ### Suggested next steps\n\n1. Add the locale to `key()` .\n2. Tell `@ann,` fixes `#3`\n\n\
            ### What would help to know\n\n- The version\n\n\
            ### What this rests on\n\n\
            Wrong \\*language\\* (issue 3, `https://github.com/harbor/ferry/issues/3`):\n\n\
            > The cache key leaves out the locale.\n\n\
            *Drafted by a model from the issues above, checked by code, and approved by a person. It may be wrong.*\n"
            .into(),
        label: Some("severity:medium".into()),
        remarks: vec![
            "put into code, so that it calls, links, closes and commands nothing: /close @ann, #3".into(),
        ],
    };
    assert_eq!(made, expected);
}

#[test]
fn a_label_that_is_not_there_or_not_allowed_is_left_out_and_said() {
    let settings = TriageSettings::default();
    let bare = IssueEvidence {
        live_labels: Vec::new(),
        ..evidence()
    };
    let made = propose(&bare, &settings, Basis::FailingChecks);
    let remark = "no label is proposed: the repository has none called `needs-triage`";
    assert_eq!((made.label, made.remarks), (None, vec![remark.to_owned()]));
    let reader = IssueEvidence {
        rights: Some(Rights {
            pull: true,
            ..Rights::default()
        }),
        ..evidence()
    };
    let made = propose(&reader, &settings, Basis::FailingChecks);
    let remark = "the label `needs-triage` is left out: whoever acts may not put labels there";
    assert_eq!((made.label, made.remarks), (None, vec![remark.to_owned()]));
}

proptest! {
    /// Whatever a model writes and a stranger's issue is called, the comment links, calls and commands nothing, and fits.
    #[test]
    fn comments_do_nothing_and_fit(cause in any::<String>(), step in any::<String>(), title in any::<String>(), url in any::<String>()) {
        let mut basis = retrieved();
        basis.snippets[0].title = title;
        basis.snippets[0].url = url;
        let mut said = diagnosis(&cause);
        said.recommended_next_steps = vec![step];
        let made = propose(&evidence(), &TriageSettings::default(), Basis::Diagnosed(&said, &basis));
        prop_assert!(made.comment.chars().count() <= LONGEST_COMMENT + 1);
        let mut outside = String::new();
        for event in Parser::new_ext(&made.comment, Options::all()) {
            match event {
                Event::Text(text) => outside.push_str(&text),
                Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::Link { .. } | Tag::Image { .. }) => {
                    prop_assert!(false, "{:?}", made.comment);
                }
                _ => outside.push('\n'),
            }
        }
        prop_assert!(!outside.contains('@'), "{}", made.comment);
        let command = |line: &str| {
            let mut letters = line.trim_start().chars();
            letters.next() == Some('/') && letters.next().is_some_and(char::is_alphabetic)
        };
        prop_assert!(!made.comment.lines().any(command), "{}", made.comment);
    }
}
