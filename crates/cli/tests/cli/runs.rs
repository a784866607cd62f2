//! `paraph runs …`: what is stored of runs.

use crate::sandbox::{FINAL, PROFILE, Sandbox};
use serde_json::{Value, json};

/// A folder in which one run was made; and the run's id.
fn with_a_run() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[PROFILE, FINAL]);
    let ended = sandbox.run(&[
        "run", "support", "Refund?", "--model", &spec, "--thread", "t-1",
    ]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let list = sandbox.run(&["runs", "list", "--json"]).json();
    let id = list[0]["run_id"].as_str().unwrap().to_owned();
    (sandbox, id)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_run_is_listed_and_shown_with_what_it_was_started_with_and_how_it_ended() {
    let (sandbox, id) = with_a_run();
    let row = &sandbox.run(&["runs", "list", "--json"]).json()[0];
    let keys: Vec<_> = row
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "arguments",
        "attempts",
        "cancel",
        "created_at",
        "error",
        "graph",
        "live",
        "run_id",
        "status",
        "stop_reason",
        "thread",
        "updated_at",
    ];
    assert_eq!(keys, expected);
    assert_eq!(
        (&row["status"], &row["live"]),
        (&json!("success"), &json!(false))
    );
    let show = sandbox.run(&["runs", "show", &id, "--json"]).json();
    let started = &show["arguments"];
    assert_eq!(
        [
            &started["agent"],
            &started["model"],
            &started["user"],
            &started["task"],
            &started["loop"]
        ],
        [
            &json!("support"),
            &json!("scripted:script.jsonl"),
            &json!(42),
            &json!("Refund?"),
            &json!("exact")
        ]
    );
    assert_eq!(show["result"]["answer"], "Yes.");
    let newest = sandbox
        .run(&["runs", "show", "--thread", "t-1", "--json"])
        .json();
    assert_eq!(newest, show);
    let text = sandbox.run(&["runs", "show", &id]).out;
    assert!(
        text.contains("\nended with  success\n") && text.contains("Yes."),
        "{text}"
    );
    let text = sandbox.run(&["runs", "list"]).out;
    assert!(
        text.lines()
            .nth(1)
            .unwrap()
            .starts_with(&format!("{id}  t-1")),
        "{text}"
    );
}

#[test]
fn no_secret_is_stored_with_a_run() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[FINAL]);
    let env = [
        ("OPENAI_API_KEY", "hunter2"),
        ("OPENAI_BASE_URL", "http://me:hunter2@h/"),
    ];
    let args = [
        "run",
        "support",
        "--model",
        &spec,
        "--store",
        "sqlite://x.db",
    ];
    assert_eq!(sandbox.run_with(&args, &env, "").code, 0);
    let stored = std::fs::read(sandbox.path("x.db")).unwrap();
    assert!(!stored.windows(7).any(|bytes| bytes == b"hunter2"));
}

#[test]
fn the_log_of_a_run_is_lines_of_json_in_order() {
    let (sandbox, id) = with_a_run();
    let ended = sandbox.run(&["runs", "events", &id]);
    let events = lines(&ended.out);
    let seqs: Vec<_> = events
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
    assert!(events.iter().all(|event| event["run_id"] == id.as_str()));
    assert!(
        events
            .iter()
            .all(|event| event["time"].as_str().unwrap().ends_with('Z'))
    );
    let said = |kind: &str| {
        let own = events.iter().filter(|event| event["type"] == kind);
        own.count()
    };
    assert_eq!((said("step_started"), said("tool_ended")), (2, 1));
    assert!(events.iter().all(|event| event["thread_id"] == "t-1"));
    // From a place on, and of the whole thread, which has no other run.
    let rest = sandbox.run(&["runs", "events", &id, "--after", "3"]);
    assert_eq!(lines(&rest.out), events[3..]);
    let thread = sandbox.run(&["runs", "events", "--thread", "t-1"]);
    assert_eq!(thread.out, ended.out);
    // A run that rests has an end, also for those who follow it.
    let followed = sandbox.run(&["runs", "events", &id, "--follow"]);
    assert_eq!(followed.out, ended.out);
}

#[test]
fn a_run_is_logged_in_the_words_in_which_it_is_told() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[PROFILE, FINAL]);
    let args = [
        "run", "support", "--model", &spec, "--thread", "t", "--events",
    ];
    let told = lines(&sandbox.run(&args).out);
    let logged = lines(&sandbox.run(&["runs", "events", "--thread", "t"]).out);
    // Where it stands in the stream or in the log, and when it was told or saved.
    let words = |events: &[Value], kinds: &[&Value]| -> Vec<Value> {
        let of = events
            .iter()
            .filter(|event| kinds.contains(&&event["type"]));
        of.map(|event| {
            let mut event = event.clone();
            assert!(event["seq"].take().is_u64() && event["time"].take().is_string());
            event
        })
        .collect()
    };
    let both: Vec<_> = told
        .iter()
        .map(|event| &event["type"])
        .filter(|kind| logged.iter().any(|event| event["type"] == **kind))
        .collect();
    assert_eq!(words(&told, &both), words(&logged, &both));
    for kind in [
        "step_started",
        "model_answered",
        "decided",
        "tool_started",
        "tool_ended",
    ] {
        assert!(both.contains(&&json!(kind)), "{kind}: {both:?}");
    }
}

#[test]
fn runs_that_are_not_there_are_named_with_what_was_probably_meant() {
    let (sandbox, id) = with_a_run();
    let mut close = id.clone();
    close.replace_range(0..1, if id.starts_with('f') { "e" } else { "f" });
    let meant = format!("did you mean `{id}`?");
    let table: [(&[&str], &str); 7] = [
        (&["runs", "show", &close], &meant),
        (
            &["runs", "show", "t-1"],
            "`t-1` is a thread: use --thread t-1",
        ),
        (
            &["runs", "resume", "x"],
            "`x` is no run's id; `paraph runs list`",
        ),
        (&["runs", "cancel", "x"], "`x` is no run's id"),
        (
            &["runs", "events", "--thread", "t-2"],
            "did you mean `t-1`?",
        ),
        (
            &["runs", "list", "--status", "sucess"],
            "did you mean `success`?",
        ),
        (&["runs", "resume"], "--thread"),
    ];
    for (args, expected) in table {
        let ended = sandbox.run(args);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{args:?}");
        assert!(ended.err.contains(expected), "{args:?}: {}", ended.err);
    }
}

#[test]
fn a_run_that_is_over_gives_its_result_again_and_cannot_be_cancelled() {
    let (sandbox, id) = with_a_run();
    let again = sandbox.run(&["runs", "resume", &id]);
    assert_eq!((again.code, again.out.as_str()), (0, "Yes.\n"));
    assert!(again.err.contains("was over already"), "{}", again.err);
    let cancelled = sandbox.run(&["runs", "cancel", &id]);
    assert_eq!(cancelled.code, 0);
    assert!(
        cancelled
            .out
            .contains("was over already (success); nothing was cancelled"),
        "{}",
        cancelled.out
    );
    let json = sandbox.run(&["runs", "cancel", &id, "--json"]).json();
    assert_eq!(
        (&json["cancelled"], &json["ended"], &json["status"]),
        (&json!(false), &json!(true), &json!("success"))
    );
    // One that was stopped keeps its exit code.
    let spec = sandbox.script(&["{"]);
    let stopped = sandbox.run(&[
        "run", "support", "--model", &spec, "--thread", "t-2", "--json",
    ]);
    assert_eq!(stopped.code, 3);
    let again = sandbox.run(&["runs", "resume", "--thread", "t-2", "--json"]);
    assert_eq!((again.code, again.json()), (3, stopped.json()));
}
