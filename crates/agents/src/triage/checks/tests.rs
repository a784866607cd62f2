//! How checks stand together, by tables.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use super::*;
use serde_json::json;

fn pull(state: &str, runs: Value, statuses: Value) -> Value {
    json!({"number": 9, "state": state, "head_sha": "abc", "check_runs": runs, "statuses": statuses})
}

fn run(name: &str, status: &str, conclusion: Option<&str>) -> Value {
    json!({"name": name, "status": status, "conclusion": conclusion})
}

fn status(context: &str, state: &str) -> Value {
    json!({"context": context, "state": state})
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn checks_stand_by_runs_and_statuses_together() {
    let ok = run("build", "completed", Some("success"));
    let bad = run("test", "completed", Some("failure"));
    let waits = run("test", "in_progress", None);
    let table = [
        (vec![], CiState::None),
        (vec![pull("open", json!([]), json!([]))], CiState::None),
        (vec![pull("open", json!([ok]), json!([]))], CiState::Passing),
        (
            vec![pull("open", json!([ok, waits]), json!([]))],
            CiState::Pending,
        ),
        (
            vec![pull("open", json!([ok, bad]), json!([]))],
            CiState::Failing,
        ),
        // Failing beats pending, also across pull requests.
        (
            vec![
                pull("open", json!([waits]), json!([])),
                pull("open", json!([bad]), json!([])),
            ],
            CiState::Failing,
        ),
        // Only a status fails, only a run fails, a status waits.
        (
            vec![pull("open", json!([]), json!([status("ci", "error")]))],
            CiState::Failing,
        ),
        (
            vec![pull("open", json!([bad]), json!([status("ci", "success")]))],
            CiState::Failing,
        ),
        (
            vec![pull(
                "open",
                json!([]),
                json!([status("a", "success"), status("b", "pending")]),
            )],
            CiState::Pending,
        ),
        // The newest of a name counts.
        (
            vec![pull(
                "open",
                json!([]),
                json!([status("ci", "success"), status("ci", "failure")]),
            )],
            CiState::Passing,
        ),
        (
            vec![pull(
                "open",
                json!([run("test", "queued", None), bad]),
                json!([]),
            )],
            CiState::Pending,
        ),
        (vec![pull("closed", json!([bad]), json!([]))], CiState::None),
        (
            vec![pull(
                "open",
                json!([run("x", "completed", Some("cancelled"))]),
                json!([]),
            )],
            CiState::Passing,
        ),
        (
            vec![pull(
                "open",
                json!([run("x", "completed", Some("timed_out"))]),
                json!([]),
            )],
            CiState::Failing,
        ),
        (
            vec![pull(
                "open",
                json!([run("x", "completed", Some("action_required"))]),
                json!([]),
            )],
            CiState::Pending,
        ),
    ];
    for (pulls, expected) in table {
        let ci = ci(&pulls, &mut Vec::new()).unwrap();
        assert_eq!(ci.state, expected, "{pulls:?}");
    }
}

#[test]
fn what_is_not_known_is_no_good_news() {
    let table = [
        (
            json!({"number": 9, "state": "open", "statuses": []}),
            "`check_runs` of the pull request 9 is no list",
        ),
        (
            pull(
                "open",
                json!([run("x", "completed", Some("exploded"))]),
                json!([]),
            ),
            "the pull request 9: a check run ended as `exploded`, which is not known",
        ),
        (
            pull("open", json!([run("x", "completed", None)]), json!([])),
            "the pull request 9: a check run has ended without a conclusion",
        ),
        (
            pull("open", json!([]), json!([status("x", "odd")])),
            "the pull request 9: a status is `odd`, which is not known",
        ),
        (
            json!({"state": "open"}),
            "a linked pull request has no number",
        ),
    ];
    for (pull, expected) in table {
        assert_eq!(ci(&[pull], &mut Vec::new()), Err(expected.to_owned()));
    }
}

#[test]
fn a_commit_without_a_pull_request_is_a_signal() {
    let commit = |runs: Value| json!({"number": null, "state": "commit", "head_sha": "abc", "check_runs": runs, "statuses": []});
    let bad = commit(json!([run("x", "completed", Some("failure"))]));
    let read = ci(&[bad], &mut Vec::new()).unwrap();
    assert_eq!((read.state, read.pulls[0].number), (CiState::Failing, None));
    assert_eq!(
        ci(&[commit(json!({}))], &mut Vec::new()),
        Err("`check_runs` of the linked commit is no list".to_owned())
    );
}

#[test]
fn names_of_checks_lose_what_cannot_be_seen() {
    let mut hidden = Vec::new();
    let bad = run("te\u{200b}st\nrun", "completed", Some("failure"));
    let ci = ci(&[pull("open", json!([bad]), json!([]))], &mut hidden).unwrap();
    assert_eq!(ci.pulls[0].failing, ["test run"]);
    assert_eq!(hidden[0].place, "checks of the pull request 9");
}
