//! What becomes of bundles: whole ones, ones with holes, and ones of any shape.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use super::super::checks::CiState;
use super::*;
use proptest::prelude::*;
use serde_json::json;

fn target() -> TriageTarget {
    TriageTarget {
        host: "github.com".into(),
        owner: "harbor".into(),
        repo: "ferry".into(),
        number: 7,
    }
}

fn bundle() -> Value {
    json!({
        "target": {"owner": "harbor", "repo": "ferry", "number": 7, "host": "github.com"},
        "repository": {"id": 1, "full_name": "Harbor/Ferry", "has_issues": true, "archived": false},
        "issue": {
            "number": 7, "title": "It\u{200b} sinks", "body": "Look at `src/hull/leak.rs` <!-- obey -->please",
            "user": null, "state": "open", "locked": false, "comments": 1,
            "labels": [{"name": "bug"}], "updated_at": "2026-11-01T00:00:00Z",
        },
        "comments": [{"user": {"login": "ann"}, "author_association": "OWNER", "body": "Which boat?"}],
        "timeline": [],
        "labels": [{"name": "bug"}, {"name": "needs-triage"}],
        "pulls": [],
        "codeowners": {"path": "CODEOWNERS", "text": "* @harbor/crew\nsrc/hull/ @smith\n"},
        "permissions": {"push": false, "triage": true, "pull": true},
        "viewer": {"id": 5, "login": "me"},
        "fetched_at": "2026-11-02T00:00:00Z", "etag": "x", "incomplete": [],
    })
}

fn changed(change: impl FnOnce(&mut Value)) -> IssueEvidence {
    let mut bundle = bundle();
    change(&mut bundle);
    normalise(&target(), &bundle)
}

fn whats(evidence: &IssueEvidence) -> Vec<&str> {
    let missing = evidence.incomplete.iter();
    missing.map(|one| one.what.as_str()).collect()
}

#[test]
fn a_whole_bundle_becomes_whole_evidence() {
    let evidence = changed(|_| {});
    let hidden = |place: &str, kind: &str, text: &str| Hidden {
        place: place.into(),
        kind: kind.into(),
        text: text.into(),
    };
    let expected = IssueEvidence {
        target: target(),
        title: "It sinks".into(),
        body: "Look at `src/hull/leak.rs` please".into(),
        author: GHOST.into(),
        state: "open".into(),
        labels: vec!["bug".into()],
        comments: vec![IssueComment {
            author: "ann".into(),
            association: "OWNER".into(),
            body: "Which boat?".into(),
        }],
        owners: vec!["smith".into()],
        live_labels: vec!["bug".into(), "needs-triage".into()],
        rights: Some(Rights {
            push: false,
            triage: true,
            pull: true,
        }),
        viewer: Some(Viewer {
            id: 5,
            login: "me".into(),
        }),
        updated_at: "2026-11-01T00:00:00Z".into(),
        fetched_at: "2026-11-02T00:00:00Z".into(),
        etag: Some("x".into()),
        hidden: vec![
            hidden("title", "characters that show nothing", "\\u{200B}"),
            hidden("text", "HTML comment", "<!-- obey -->"),
        ],
        ..IssueEvidence::default()
    };
    assert_eq!(evidence, expected);
}

type Change = Box<dyn FnOnce(&mut Value)>;

#[test]
fn whatever_is_missing_is_named() {
    let table: [(&str, Change, &[&str]); 10] = [
        ("nothing", Box::new(|_| {}), &[]),
        (
            "a page",
            Box::new(|b| b["issue"]["comments"] = json!(31)),
            &["comments"],
        ),
        (
            "comments",
            Box::new(|b| b["comments"] = Value::Null),
            &["comments"],
        ),
        (
            "checks",
            Box::new(|b| b["pulls"] = Value::Null),
            &["checks"],
        ),
        (
            "a check's end",
            Box::new(|b| {
                b["pulls"] =
                    json!([{"number": 1, "state": "open", "check_runs": [{}], "statuses": []}])
            }),
            &["checks"],
        ),
        (
            "labels",
            Box::new(|b| b["labels"] = Value::Null),
            &["labels"],
        ),
        (
            "state",
            Box::new(|b| b["issue"]["state"] = Value::Null),
            &["state"],
        ),
        (
            "what was said",
            Box::new(|b| b["incomplete"] = json!([{"what": "timeline", "why": "a limit"}])),
            &["timeline"],
        ),
        (
            "the issue",
            Box::new(|b| b["issue"] = Value::Null),
            &["issue"],
        ),
        (
            "another issue",
            Box::new(|b| b["issue"]["number"] = json!(8)),
            &["issue"],
        ),
    ];
    for (name, change, expected) in table {
        assert_eq!(whats(&changed(change)), expected, "{name}");
    }
}

#[test]
fn a_repository_that_was_renamed_is_said_and_not_followed() {
    let evidence = changed(|b| b["repository"]["full_name"] = json!("other/ferry"));
    let why = "the repository is called other/ferry now: name the issue by its new address";
    assert_eq!(evidence.incomplete[0].why, why);
    assert!(evidence.title.is_empty());
}

#[test]
fn more_text_than_can_be_read_makes_it_incomplete_and_none_is_kept() {
    let evidence = changed(|b| b["issue"]["body"] = json!("x".repeat(MOST_TEXT + 1)));
    assert_eq!(whats(&evidence), ["text"]);
    assert!(evidence.body.is_empty() && evidence.comments.is_empty());
}

#[test]
fn locked_issues_pull_requests_and_rights_are_seen() {
    let locked = changed(|b| b["issue"]["locked"] = json!(true));
    assert!(locked.locked && !locked.may_comment() && locked.may_label());
    let pull = changed(|b| b["issue"]["pull_request"] = json!({"url": "x"}));
    assert!(pull.is_pull_request && pull.may_comment());
    let unknown = changed(|b| b["permissions"] = Value::Null);
    assert!(!unknown.may_comment() && !unknown.may_label());
    let reader =
        changed(|b| b["permissions"] = json!({"push": false, "triage": false, "pull": true}));
    assert!(reader.may_comment() && !reader.may_label());
    let failing = changed(|b| {
        b["pulls"] = json!([{"number": 3, "state": "open", "head_sha": "f", "statuses": [],
            "check_runs": [{"name": "test", "status": "completed", "conclusion": "failure"}]}]);
    });
    assert_eq!(failing.ci.state, CiState::Failing);
}

#[test]
fn paths_in_a_text_are_those_with_a_folder_and_an_ending() {
    let text =
        "In ./src/a.rs:12 and (docs/b.md), https://x.org/c.html, and/or, version 1.2, lib.rs";
    assert_eq!(paths_in(text), ["src/a.rs", "docs/b.md"]);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever a server says in place of one part, the target stays the one that was asked for.
    #[test]
    fn no_bundle_breaks_it_or_moves_the_target(
        key in prop::sample::select(vec!["target", "repository", "issue", "comments", "pulls", "labels", "codeowners", "permissions", "viewer", "incomplete"]),
        value in any_json(),
    ) {
        let evidence = changed(|bundle| bundle[key] = value);
        prop_assert_eq!(evidence.target, target());
    }
}
