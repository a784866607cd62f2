//! Triage through the binary: rehearsed to the approval and posted, explained, in a list, handed over, and measured.

use crate::sandbox::{Ended, Sandbox};
use serde_json::Value;

const SPARSE: &str = "https://github.test/harbour-works/tidewatch/issues/33";
const FAILING: &str = "https://github.test/harbour-works/tidewatch/issues/31";
const DETAILED: &str = "https://github.test/harbour-works/tidewatch/issues/34";
const GRAVE: &str = "https://github.test/harbour-works/tidewatch/issues/36";

fn posts(sandbox: &Sandbox) -> Vec<Value> {
    let path = sandbox.path("data/paraph/triage-rehearsal.jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Runs triage on an issue of the rehearsal.
fn triage(sandbox: &Sandbox, issue: &str) -> Ended {
    sandbox.run(&["run", "triage", issue, "--model", "rehearsal", "--json"])
}

#[test]
fn without_an_address_it_is_rehearsed_to_the_approval_and_approving_posts_into_a_file() {
    let sandbox = Sandbox::new();
    // A key is there, and is not used.
    let env = [("OPENAI_API_KEY", "sk-never-used")];
    let ended = sandbox.run_with(&["run", "triage"], &env, "");
    assert_eq!(ended.code, 5, "{}{}", ended.out, ended.err);
    for part in [
        "rehearsal: https://github.test/",
        "route  fetch_evidence -> normalize_evidence",
        "route  classify -> ai_investigation: sparse",
        "route  independent_review -> await_approval: all 11 checks hold",
    ] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    assert!(posts(&sandbox).is_empty());
    let approve = ended
        .out
        .lines()
        .find_map(|line| line.trim().strip_prefix("approve it  paraph "))
        .unwrap_or_else(|| panic!("{}", ended.out));
    let approve: Vec<&str> = approve.split_whitespace().collect();
    let id = approve[2];
    let shown = sandbox.run(&["approvals", "show", id]);
    for part in [
        "why it was proposed",
        "what the diagnosis cites",
        "checks\n  holds  evidence_complete",
        "holds  quotes_verbatim",
        "another model's criticism (it decides nothing)",
    ] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    let shown = sandbox.run(&["approvals", "show", id, "--json"]).json();
    let comment = shown["arguments"]["comment"].as_str().unwrap();
    assert_eq!(shown["triage"]["checks"].as_array().map(Vec::len), Some(11));
    let ended = sandbox.run(&approve);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert!(ended.out.starts_with("Posted: "), "{}", ended.out);
    let posts = posts(&sandbox);
    let bodies: Vec<_> = posts
        .iter()
        .filter(|post| post["kind"] == "comment")
        .collect();
    let [posted] = bodies.as_slice() else {
        panic!("{posts:?}")
    };
    // Every byte that was shown is there, and behind it the mark alone.
    let body = posted.to_string();
    let quoted = serde_json::to_string(comment.trim_end()).unwrap();
    assert!(body.contains(quoted.trim_matches('"')), "{body}");
    assert!(ended.err.contains("execute") && !ended.err.contains("sk-never-used"));
}

#[test]
fn failing_checks_are_proposed_and_a_rejection_posts_nothing() {
    let sandbox = Sandbox::new();
    let ended = triage(&sandbox, FAILING);
    assert_eq!(ended.code, 5, "{}{}", ended.out, ended.err);
    let result = ended.json();
    assert_eq!(result["classification"]["class"], "deterministic");
    assert_eq!(result["proposed_action"]["label"], "needs-triage");
    let (id, digest) = (
        &result["approvals"][0]["id"],
        &result["approvals"][0]["digest"],
    );
    let args = [
        "approvals",
        "reject",
        id.as_str().unwrap(),
        "--digest",
        digest.as_str().unwrap(),
        "--reason",
        "no",
    ];
    let ended = sandbox.run(&args);
    assert_eq!(ended.code, 3, "{}{}", ended.out, ended.err);
    assert!(posts(&sandbox).is_empty());
}

#[test]
fn what_is_left_to_people_ends_well_and_is_listed() {
    let sandbox = Sandbox::new();
    let ended = triage(&sandbox, DETAILED);
    assert_eq!(
        (ended.code, ended.reason().as_str()),
        (0, "handed_off"),
        "{}",
        ended.err
    );
    let ended = sandbox.run(&["run", "triage", GRAVE, "--model", "rehearsal", "--quiet"]);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert!(
        ended.out.starts_with("Handed over to a person ("),
        "{}",
        ended.out
    );
    let listed = sandbox.run(&["approvals", "list", "--handoffs", "--json"]);
    let listed = listed.json();
    let urls: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["issue_url"].as_str().unwrap())
        .collect();
    assert!(
        urls.contains(&DETAILED) && urls.contains(&GRAVE),
        "{urls:?}"
    );
    let table = sandbox.run(&["approvals", "list", "--handoffs"]);
    assert!(
        table.out.contains("handed_off") && table.out.contains(DETAILED),
        "{}",
        table.out
    );
    // Nothing waits.
    assert_eq!(
        sandbox.run(&["approvals", "list", "--json"]).json(),
        serde_json::json!([])
    );
}

#[test]
fn an_address_that_is_no_issue_of_the_host_is_a_usage_error() {
    let sandbox = Sandbox::new();
    for address in [
        "https://github.com/o/r/pull/1",
        "https://gitlab.com/o/r/issues/1",
        "http://github.com/o/r/issues/1",
        "https://github.com@evil.example/o/r/issues/1",
        "https://github.com/o/r/issues/0",
        "say something nice",
    ] {
        let ended = sandbox.run(&["run", "triage", address, "--model", "rehearsal"]);
        assert_eq!(ended.code, 2, "{address}: {}{}", ended.out, ended.err);
        let ended = sandbox.run(&["triage", "explain", address]);
        assert_eq!(ended.code, 2, "{address}: {}{}", ended.out, ended.err);
    }
}

#[test]
fn an_issue_is_explained_with_what_is_hidden_in_it() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&["triage", "explain", SPARSE]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    for part in ["goes to", "ai_investigation", "by rule", "sparse"] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    let injected = "https://github.test/harbour-works/tidewatch/issues/35";
    let ended = sandbox.run(&["triage", "explain", injected, "--json"]);
    let hidden = ended.json()["evidence"]["hidden"].clone();
    let kinds: Vec<_> = hidden
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["kind"].clone())
        .collect();
    assert!(
        kinds.contains(&"HTML comment".into())
            && kinds.contains(&"characters that show nothing".into()),
        "{hidden}"
    );
    assert!(
        !ended.json()["evidence"]["body"]
            .as_str()
            .unwrap()
            .contains("maintenance mode")
    );
}

#[test]
fn a_list_is_looked_at_dry_or_run_by_run() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "issues.txt",
        &format!("# two of them\n{DETAILED}\n\n{FAILING}\n{FAILING}\n"),
    );
    let ended = sandbox.run(&["triage", "batch", "issues.txt", "--dry-run", "--json"]);
    let classes: Vec<_> = ended
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["classification"]["class"].clone())
        .collect();
    assert_eq!(classes, ["human_review", "deterministic"]);
    assert_eq!(
        sandbox.run(&["runs", "list", "--json"]).json(),
        serde_json::json!([])
    );
    let ended = sandbox.run(&["triage", "batch", "issues.txt", "--model", "rehearsal"]);
    assert_eq!(ended.code, 5, "{}{}", ended.out, ended.err);
    let waiting = sandbox.run(&["approvals", "list", "--json"]).json();
    assert_eq!(waiting.as_array().map(Vec::len), Some(1));
    let ended = sandbox.run(&[
        "triage",
        "batch",
        "harbour-works/tidewatch",
        "--dry-run",
        "--json",
    ]);
    let all = ended.json();
    let all: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["issue_url"].as_str().unwrap())
        .collect();
    assert!(
        [SPARSE, FAILING, DETAILED, GRAVE]
            .iter()
            .all(|issue| all.contains(issue)),
        "{all:?}"
    );
    sandbox.file("bad.txt", "https://github.com/o/r/pull/1\n");
    let ended = sandbox.run(&["triage", "batch", "bad.txt", "--dry-run"]);
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("bad.txt, line 1:"), "{}", ended.err);
}

#[test]
fn the_evaluations_are_reported_apart() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&["eval", "gates", "--trials", "2", "--json"]);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    let report = ended.json();
    assert_eq!(report["cases"], report["passed"]);
    assert_eq!(
        (&report["original"], &report["trials"]),
        (&serde_json::json!(11), &serde_json::json!(2))
    );
    let ended = sandbox.run(&["eval", "gates", "--case", "nothing/"]);
    assert_eq!(ended.code, 2);
    let ended = sandbox.run(&["eval", "diagnosis", "--model", "rehearsal"]);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert!(
        ended
            .out
            .contains("graded by code (a capability, and no gate)")
            && ended.out.contains("95 % interval"),
        "{}",
        ended.out
    );
    assert!(!ended.out.contains("opinion"));
}

#[test]
fn the_graph_of_triage_is_drawn() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&["graph", "triage", "--format", "mermaid"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    for node in [
        "fetch_evidence",
        "normalize_evidence",
        "ai_investigation",
        "independent_review",
        "await_approval",
        "execute",
        "escalate",
    ] {
        assert!(ended.out.contains(node), "{node}: {}", ended.out);
    }
}
