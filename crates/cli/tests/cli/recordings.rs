//! Models that are recorded and replayed: the same run without the model.

use crate::sandbox::{BILLING, FINAL, PROFILE, Sandbox};

/// Runs the support agent with this model; the result object and the exit code.
fn support(sandbox: &Sandbox, model: &str, more: &[&str]) -> (String, i32, String) {
    let mut args = vec!["run", "support", "--json", "--quiet", "--model", model];
    args.extend(more);
    let ended = sandbox.run(&args);
    (ended.out, ended.code, ended.err)
}

#[test]
fn a_replayed_run_gives_the_result_of_the_recorded_one() {
    let sandbox = Sandbox::new();
    let script = sandbox.script(&[PROFILE, BILLING, FINAL]);
    let recorded = support(&sandbox, &format!("record:tape,{script}"), &[]);
    assert_eq!(recorded.1, 0, "{recorded:?}");
    std::fs::remove_file(sandbox.path("script.jsonl")).unwrap();
    assert_eq!(support(&sandbox, "replay:tape", &[]), recorded);
    assert_eq!(support(&sandbox, "replay:tape", &[]), recorded);
}

#[test]
fn a_recorded_rehearsal_needs_no_file_but_the_recording() {
    let sandbox = Sandbox::new();
    let plain = support(&sandbox, "rehearsal", &[]);
    assert_eq!(support(&sandbox, "record:tape,rehearsal", &[]), plain);
    assert_eq!(support(&sandbox, "replay:tape", &[]), plain);
}

#[test]
fn a_failure_of_the_model_is_replayed_as_that_failure() {
    let sandbox = Sandbox::new();
    let profile = serde_json::json!({ "content": PROFILE }).to_string();
    let refused = r#"{"error":{"kind":"http","status":401,"message":"who are you?"}}"#;
    let script = sandbox.lines(&[&profile, refused]);
    let recorded = support(&sandbox, &format!("record:tape,{script}"), &[]);
    assert_eq!(recorded.1, 4, "{recorded:?}");
    assert!(recorded.0.contains("llm_error:auth"), "{recorded:?}");
    assert_eq!(support(&sandbox, "replay:tape", &[]), recorded);
}

#[test]
fn a_run_that_asks_something_else_is_told_what_changed() {
    let sandbox = Sandbox::new();
    support(&sandbox, "record:tape,rehearsal", &["--user", "42"]);
    let args = ["run", "support", "--model", "replay:tape", "--user", "7"];
    let ended = sandbox.run(&args);
    assert_eq!(ended.code, 4, "{}", ended.err);
    let told = "request 1 of ";
    assert!(ended.err.contains(told), "{}", ended.err);
    assert!(ended.err.contains("/content: recorded"), "{}", ended.err);
}

#[test]
fn a_folder_that_cannot_serve_is_a_mistake_of_the_caller() {
    let sandbox = Sandbox::new();
    let missing = support(&sandbox, "replay:tape", &[]);
    assert_eq!(missing.1, 2, "{missing:?}");
    assert!(missing.2.contains("recording tape: "), "{missing:?}");
    assert_eq!(support(&sandbox, "record:tape,rehearsal", &[]).1, 0);
    let again = support(&sandbox, "record:tape,rehearsal", &[]);
    assert_eq!(again.1, 2, "{again:?}");
    assert!(
        again.2.contains("name another folder, or remove it"),
        "{again:?}"
    );
}

#[cfg(unix)]
#[test]
fn a_run_that_was_cut_off_records_on_where_it_stood() {
    use crate::resuming::{CONTENTS, script, start};

    let sandbox = Sandbox::new();
    let lines = script(&CONTENTS, 1);
    let spec = sandbox.lines(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let model = format!("record:tape,{spec}");
    let rest = ["--events", "--max-seconds", "3600"];
    let begun = ["run", "support", "--model", &model, "--thread", "t"];
    let hanging = start(&sandbox, &[&begun[..], &rest[..]].concat(), 2);
    let id = hanging.run_id();
    hanging.end("-KILL");
    // The same script, but that nothing hangs any more.
    let spoken = script(&CONTENTS, usize::MAX);
    sandbox.lines(&spoken.iter().map(String::as_str).collect::<Vec<_>>());
    let resumed = sandbox.run(&["runs", "resume", &id, "--json", "--quiet"]);
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    let replayed = support(&sandbox, "replay:tape", &[]);
    assert_eq!(replayed.0, resumed.out, "{}", replayed.2);
}
