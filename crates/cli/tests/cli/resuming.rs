//! Runs that are interrupted, killed, cancelled from elsewhere or refused, and that go on afterwards.

use crate::sandbox::{BILLING, FINAL, PROFILE, Sandbox};
use crate::streams::send;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Stdio};

/// How long a line of a script waits that is to be interrupted.
const LONG: u64 = 3_600_000;

/// A script of these contents, the n-th of which (from 0) does not come.
pub(crate) fn script(contents: &[&str], hangs: usize) -> Vec<String> {
    let lines = contents.iter().enumerate().map(|(n, content)| {
        let delay = if n == hangs { LONG } else { 0 };
        json!({"content": content, "delay_ms": delay}).to_string()
    });
    lines.collect()
}

/// A run that hangs in a model call.
pub(crate) struct Hanging {
    child: Child,
    out: BufReader<ChildStdout>,
    /// What it told so far.
    events: Vec<Value>,
}

pub(crate) const CONTENTS: [&str; 3] = [PROFILE, BILLING, FINAL];

/// Starts a run whose n-th model call hangs, and waits until it does.
fn hanging(sandbox: &Sandbox, thread: &str, hangs: usize) -> Hanging {
    let lines = script(&CONTENTS, hangs);
    let spec = sandbox.lines(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let args = [
        "run",
        "support",
        "--model",
        &spec,
        "--thread",
        thread,
        "--events",
        "--max-seconds",
        "3600",
    ];
    start(sandbox, &args, hangs as u64 + 1)
}

/// Starts a run and waits until it asks the model for this step.
pub(crate) fn start(sandbox: &Sandbox, args: &[&str], step: u64) -> Hanging {
    let began = |event: &Value| event["type"] == "step_started" && event["step"] == step;
    start_until(sandbox, args, began)
}

/// Starts a run and waits until it tells such an event.
pub(crate) fn start_until(
    sandbox: &Sandbox,
    args: &[&str],
    told: impl Fn(&Value) -> bool,
) -> Hanging {
    let mut command = sandbox.command(args);
    command.env("OPENAI_TIMEOUT_SECONDS", "3600");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut events: Vec<Value> = Vec::new();
    while !events.last().is_some_and(&told) {
        let mut line = String::new();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "{events:?}");
        events.push(serde_json::from_str(&line).unwrap());
    }
    Hanging { child, out, events }
}

impl Hanging {
    pub(crate) fn run_id(&self) -> String {
        self.events[0]["run_id"].as_str().unwrap().to_owned()
    }

    /// Ends it by a signal; gives the exit code, the rest of its output, and its trace.
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, String, String) {
        send(signal, &self.child);
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        let mut trace = self.child.stderr.take().unwrap();
        trace.read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code(), out, err)
    }
}

/// The result of the run that nobody ended.
fn uncut() -> Value {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&CONTENTS);
    sandbox
        .run(&["run", "support", "--model", &spec, "--json"])
        .json()
}

/// The script again, without the wait.
fn heal(sandbox: &Sandbox) {
    sandbox.script(&CONTENTS);
}

#[test]
fn a_killed_run_goes_on_and_ends_as_if_it_had_not_been_killed() {
    let expected = uncut();
    for hangs in 0..3 {
        let sandbox = Sandbox::new();
        let run = hanging(&sandbox, "t-1", hangs);
        let id = run.run_id();
        run.end("-KILL");
        heal(&sandbox);
        let list = sandbox.run(&["runs", "list"]).out;
        assert!(list.contains("cut off"), "{list}");
        let resumed = match hangs {
            0 => sandbox.run(&["runs", "resume", "--thread", "t-1", "--json"]),
            _ => sandbox.run(&["runs", "resume", &id, "--json"]),
        };
        assert_eq!(
            (resumed.code, resumed.json()),
            (0, expected.clone()),
            "{}",
            resumed.err
        );
        let row = sandbox.run(&["runs", "show", &id, "--json"]).json();
        assert_eq!(
            (&row["status"], &row["attempts"]),
            (&json!("success"), &json!(2))
        );
        let thread = sandbox.run(&["threads", "show", "t-1", "--json"]).json();
        assert_eq!(thread["status"], "idle");
        assert_eq!(sandbox.run(&["store", "check"]).code, 0);
        // What had finished was not done again: each tool ended once in the whole log.
        let log = sandbox.run(&["runs", "events", &id]).out;
        assert_eq!(log.matches("\"tool_ended\"").count(), 2, "{log}");
    }
}

#[test]
fn a_resumed_run_keeps_its_budget_and_its_place_in_the_script() {
    let sandbox = Sandbox::new();
    let run = hanging(&sandbox, "t-1", 1);
    let id = run.run_id();
    run.end("-KILL");
    heal(&sandbox);
    let resumed = sandbox.run(&["runs", "resume", &id, "--events"]);
    let first: Value = serde_json::from_str(resumed.out.lines().next().unwrap()).unwrap();
    assert_eq!(
        (
            &first["type"],
            &first["run_id"],
            &first["budget"]["steps"],
            &first["budget"]["tool_calls"]
        ),
        (&json!("run_started"), &json!(id), &json!(1), &json!(1))
    );
    let last: Value = serde_json::from_str(resumed.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["result"]["answer"], "Yes.");
    assert!(
        resumed.err.contains("budget steps 3/8, tool calls 2/5"),
        "{}",
        resumed.err
    );
}

#[test]
fn a_run_is_resumed_from_another_directory() {
    let sandbox = Sandbox::new();
    let run = hanging(&sandbox, "t-1", 1);
    let id = run.run_id();
    run.end("-KILL");
    heal(&sandbox);
    std::fs::create_dir(sandbox.path("elsewhere")).unwrap();
    let mut command = sandbox.command(&["runs", "resume", &id]);
    let output = command
        .current_dir(sandbox.path("elsewhere"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Yes.\n");
}

#[test]
fn a_run_that_was_cut_off_moves_with_its_thread_and_goes_on_there() {
    let sandbox = Sandbox::new();
    let run = hanging(&sandbox, "t-1", 1);
    let id = run.run_id();
    run.end("-KILL");
    heal(&sandbox);
    let export = sandbox.run(&["threads", "export", "t-1", "-o", "t.json"]);
    assert_eq!(export.code, 0, "{}", export.err);
    let other = |args: &[&str]| sandbox.run(&[args, &["--store", "sqlite://o.db"]].concat());
    assert_eq!(other(&["threads", "import", "t.json"]).code, 0);
    let resumed = other(&["runs", "resume", &id, "--json"]);
    assert_eq!(
        (resumed.code, resumed.json()),
        (0, uncut()),
        "{}",
        resumed.err
    );
    // With the calls it had made where it was.
    assert!(resumed.err.contains("tool calls 2/5"), "{}", resumed.err);
}

#[test]
fn a_thread_that_was_cut_off_goes_on_where_it_is_imported_under_any_name() {
    let expected = uncut();
    let sandbox = Sandbox::new();
    let run = hanging(&sandbox, "t-1", 2);
    let id = run.run_id();
    run.end("-KILL");
    heal(&sandbox);
    let export = sandbox.run(&["threads", "export", "t-1", "-o", "t.json"]);
    assert_eq!(export.code, 0, "{}", export.err);
    for name in ["t-1", "another"] {
        let url = format!("sqlite://{name}.db");
        let on = |args: &[&str]| sandbox.run(&[args, &["--store", &url]].concat());
        let imported = on(&["threads", "import", "t.json", "--as", name]);
        assert_eq!((imported.code, imported.err.as_str()), (0, ""));
        let stands = on(&["threads", "show", name, "--json"]).json();
        assert_eq!(stands["next"], json!(["think"]));
        let resumed = on(&["runs", "resume", &id, "--json"]);
        assert_eq!(
            (resumed.code, resumed.json()),
            (0, expected.clone()),
            "{}",
            resumed.err
        );
        let row = on(&["runs", "show", &id, "--json"]).json();
        assert_eq!(
            (&row["thread"], &row["attempts"]),
            (&json!(name), &json!(2))
        );
        // What had finished was not done again.
        let log = on(&["runs", "events", &id]).out;
        assert_eq!(log.matches("\"tool_ended\"").count(), 2, "{log}");
        assert_eq!(on(&["store", "check"]).code, 0);
    }
}

#[test]
fn what_is_pending_on_a_thread_that_is_not_pruned_is_named() {
    let sandbox = Sandbox::new();
    let run = hanging(&sandbox, "t-1", 1);
    let id = run.run_id();
    let prune = |more: &[&str]| {
        let args = ["threads", "prune", "--all", "--keep", "1"];
        sandbox.run(&[&args[..], more].concat())
    };
    let busy = prune(&[]).out;
    let drives = format!("is pending: a run drives it, and run {id} is running\n");
    assert!(busy.contains(&drives), "{busy}");
    run.end("-KILL");
    for more in [&[][..], &["--dry-run"]] {
        let left = prune(more).out;
        let because = format!("is pending: think is due, and run {id} is cut off\n");
        assert!(left.contains(&because), "{left}");
    }
    let json = prune(&["--json"]).json();
    let waits = json!({"run": id, "run_status": "cut off", "because": "think is due"});
    assert_eq!(
        (&json[0]["pending"], &json[0]["waits"]),
        (&json!(true), &waits)
    );
    heal(&sandbox);
    assert_eq!(sandbox.run(&["runs", "resume", &id]).code, 0);
    assert_eq!(prune(&["--json"]).json()[0]["pending"], json!(false));
}

#[test]
fn a_run_of_which_nothing_was_saved_begins_when_it_is_resumed() {
    let sandbox = Sandbox::new();
    heal(&sandbox);
    let run = sandbox.run(&[
        "run",
        "support",
        "--model",
        "scripted:script.jsonl",
        "--thread",
        "t",
    ]);
    assert_eq!(run.code, 0);
    // As after a kill between the lease and the first checkpoint.
    let mut document = sandbox.run(&["threads", "export", "t"]).json();
    document["scopes"] = json!([]);
    document["events"] = json!([]);
    document["runs"][0]["status"] = json!("running");
    document["runs"][0]["calls"] = json!([]);
    document["runs"][0]["counters"] = json!({});
    sandbox.file("t.json", &document.to_string());
    let other = |args: &[&str]| sandbox.run(&[args, &["--store", "sqlite://o.db"]].concat());
    assert_eq!(other(&["threads", "import", "t.json"]).code, 0);
    let resumed = other(&["runs", "resume", "--thread", "t", "--json"]);
    assert_eq!(
        (resumed.code, resumed.json()),
        (0, uncut()),
        "{}",
        resumed.err
    );
    let id = document["runs"][0]["id"].as_str().unwrap();
    let row = other(&["runs", "show", id, "--json"]).json();
    assert_eq!(row["status"], "success");
}

#[test]
fn ctrl_c_saves_and_says_how_to_go_on() {
    for signal in ["-INT", "-TERM"] {
        let sandbox = Sandbox::new();
        let run = hanging(&sandbox, "t-1", 1);
        let id = run.run_id();
        let (code, _, err) = run.end(signal);
        assert_eq!(code, Some(130));
        assert!(
            err.contains(&format!("saved; go on with: paraph runs resume {id}\n")),
            "{err}"
        );
        let row = sandbox.run(&["runs", "show", &id, "--json"]).json();
        assert_eq!(row["status"], "cancelled");
        heal(&sandbox);
        let resumed = sandbox.run(&["runs", "resume", &id, "--json"]);
        assert_eq!(
            (resumed.code, resumed.json()),
            (0, uncut()),
            "{}",
            resumed.err
        );
    }
}

#[test]
fn a_second_run_on_a_busy_thread_is_refused_and_named() {
    let sandbox = Sandbox::new();
    let run = hanging(&sandbox, "t-1", 1);
    let id = run.run_id();
    let spec = sandbox.script(&[FINAL]);
    let args = [
        "run", "support", "--model", &spec, "--thread", "t-1", "--json",
    ];
    let second = sandbox.run(&args);
    assert_eq!(
        (second.code, second.reason().as_str()),
        (6, "conflict"),
        "{}",
        second.err
    );
    assert_eq!(second.json()["trace"], json!([]));
    let text = sandbox.run(&args[..args.len() - 1]);
    assert!(text.out.contains(&id), "{}", text.out);
    // Nor can it be taken up a second time, forked or deleted.
    for args in [
        &["runs", "resume", &id][..],
        &["threads", "delete", "t-1", "--yes"],
        &["threads", "fork", "t-1", "--as", "copy"],
    ] {
        let ended = sandbox.run(args);
        assert_eq!(ended.code, 6, "{args:?}: {}{}", ended.out, ended.err);
        assert!(!ended.err.contains("of this run's step"), "{}", ended.err);
    }
    let list = sandbox.run(&["threads", "list", "--json"]).json();
    assert_eq!(
        (&list[0]["status"], &list[0]["holder"]),
        (&json!("busy"), &json!(id))
    );
    // Another thread is not in its way.
    let other = [
        "run", "support", "--model", &spec, "--thread", "t-2", "--json",
    ];
    assert_eq!(sandbox.run(&other).code, 0);
    run.end("-KILL");
}

#[test]
fn a_run_is_cancelled_from_another_process_which_learns_what_happened() {
    let sandbox = Sandbox::new();
    let run = hanging(&sandbox, "t-1", 1);
    let id = run.run_id();
    let cancelled = sandbox.run(&["runs", "cancel", &id]);
    assert_eq!(cancelled.code, 0, "{}{}", cancelled.out, cancelled.err);
    let took_hold = format!("run {id} was cancelled, wished 20");
    assert!(
        cancelled.out.starts_with(&took_hold) && cancelled.out.contains(", took hold 20"),
        "{}",
        cancelled.out
    );
    let Hanging {
        mut child, mut out, ..
    } = run;
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    let last: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(last["result"]["stop_reason"], "cancelled");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let row = sandbox.run(&["runs", "show", &id, "--json"]).json();
    assert_eq!(
        (&row["status"], &row["cancel"]["reason"]),
        (&json!("cancelled"), &json!("user"))
    );
    assert!(row["cancel"]["done_at"].is_string());
    // A wish that came true is not wished again.
    heal(&sandbox);
    let resumed = sandbox.run(&["runs", "resume", &id, "--json"]);
    assert_eq!(
        (resumed.code, resumed.json()),
        (0, uncut()),
        "{}",
        resumed.err
    );
}

#[test]
fn a_run_whose_process_is_dead_is_cancelled_at_once() {
    let sandbox = Sandbox::new();
    let run = hanging(&sandbox, "t-1", 0);
    let id = run.run_id();
    run.end("-KILL");
    let cancelled = sandbox
        .run(&["runs", "cancel", &id, "--no-wait", "--json"])
        .json();
    assert_eq!(
        (&cancelled["cancelled"], &cancelled["ended"]),
        (&json!(true), &json!(true))
    );
}

#[test]
fn a_run_whose_thread_went_on_is_not_resumed_but_can_be_run_again_from_there() {
    let sandbox = Sandbox::new();
    let run = hanging(&sandbox, "t-1", 1);
    let id = run.run_id();
    run.end("-KILL");
    let spec = sandbox.script(&[FINAL]);
    let args = [
        "run", "support", "Other?", "--model", &spec, "--thread", "t-1",
    ];
    let other = sandbox.run(&args);
    assert_eq!(other.code, 0);
    assert!(
        other
            .err
            .contains("was not finished; this one leaves it behind"),
        "{}",
        other.err
    );
    let refused = sandbox.run(&["runs", "resume", &id]);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""));
    let command = refused.err.rsplit_once("paraph run ").unwrap().1.trim();
    let words: Vec<_> = ["run"].into_iter().chain(command.split(' ')).collect();
    let spec = sandbox.script(&[BILLING, FINAL]);
    let again = sandbox.run(&[&words[..], &["--model", &spec, "--json"]].concat());
    assert_eq!(again.json(), uncut(), "{}", again.err);
}

#[test]
fn processes_share_a_store() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&CONTENTS);
    let children: Vec<_> = (0..6)
        .map(|n| {
            let thread = format!("t-{n}");
            let args = [
                "run", "support", "--model", &spec, "--thread", &thread, "--json",
            ];
            let mut command = sandbox.command(&args);
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let expected = uncut();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), result), (Some(0), expected.clone()));
    }
    let list = sandbox
        .run(&["threads", "list", "--status", "idle", "--json"])
        .json();
    assert_eq!(list.as_array().unwrap().len(), 6);
    assert_eq!(sandbox.run(&["store", "check"]).code, 0);
}

#[test]
fn followed_events_come_while_the_run_goes_on_and_end_with_it() {
    let sandbox = Sandbox::new();
    let run = hanging(&sandbox, "t-1", 1);
    let id = run.run_id();
    let mut command = sandbox.command(&["runs", "events", &id, "--follow"]);
    let mut follower = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut events = BufReader::new(follower.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"tool_ended\"") {
        line.clear();
        assert_ne!(events.read_line(&mut line).unwrap(), 0);
    }
    let (code, _, _) = run.end("-INT");
    assert_eq!(code, Some(130));
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
    assert_eq!(follower.wait().unwrap().code(), Some(0));
}
