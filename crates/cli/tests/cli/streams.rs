//! What goes where: results on standard output, the trace on standard error, events as JSON lines;
//! readers that go away; interrupts.

use crate::sandbox::{FINAL, PROFILE, Sandbox};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

fn parsed(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_trace_says_step_phase_tool_arguments_hash_time_and_cause() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[PROFILE, FINAL]);
    let ended = sandbox.run(&["run", "support", "--model", &spec, "--thread", "t-1"]);
    let without_times: Vec<String> = ended
        .err
        .lines()
        // Where refunds go is said before the run begins.
        .skip_while(|line| !line.starts_with("run "))
        .map(|line| {
            let words = line.split(' ').map(|word| {
                let is_time = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
                if is_time { "N" } else { word }
            });
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    let model = &without_times[1];
    assert!(
        model.starts_with("step 1/8  think  tool get_user_profile  N ms  about "),
        "{model}"
    );
    assert_eq!(
        without_times[0],
        "run    support  model scripted:script.jsonl  thread t-1"
    );
    assert_eq!(
        without_times[2..5],
        [
            "route  think -> act: the model wants a tool",
            "step 1/8  act    get_user_profile {\"user_id\":42}  feaa769a39ae  N ms  ok",
            "route  act -> think: the model has something new to read",
        ]
    );
    assert_eq!(
        without_times[6],
        "route  think -> end: the model has its answer"
    );
    assert!(without_times[7].starts_with("budget steps 2/8, tool calls 1/5, "));
    assert!(without_times[7].ends_with("cost unknown"));
    assert_eq!(ended.out, "Yes.\n");
}

#[test]
fn a_trace_that_goes_to_no_terminal_is_plain() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[PROFILE]);
    let ended = sandbox.run(&["run", "support", "--model", &spec]);
    assert!(!ended.err.contains('\u{1b}') && !ended.err.contains('\r'));
}

#[test]
fn quiet_runs_say_nothing_and_verbose_ones_show_the_messages() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[FINAL]);
    assert_eq!(
        sandbox
            .run(&["run", "support", "--model", &spec, "--quiet"])
            .err,
        ""
    );
    let err = sandbox
        .run(&["run", "support", "Why?", "--model", &spec, "--verbose"])
        .err;
    assert!(
        err.contains("system | ") && err.contains("User 42 asks: Why?"),
        "{err}"
    );
    assert!(
        err.contains("ai | {\"kind\":\"final\",\"answer\":\"Yes.\"}"),
        "{err}"
    );
}

#[test]
fn events_are_one_schema_on_standard_output_and_in_the_trace_file() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[PROFILE, FINAL]);
    let args = [
        "run", "support", "--model", &spec, "--events", "--trace", "t.jsonl", "--thread", "t-1",
    ];
    let ended = sandbox.run(&args);
    let file = std::fs::read_to_string(sandbox.path("t.jsonl")).unwrap();
    assert_eq!(ended.out, file);
    let events = parsed(&ended.out);
    let types: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    let step = |more: &[&'static str]| {
        let think = [
            "step_started",
            "model_answered",
            "decided",
            "routed",
            "budget",
        ];
        think
            .into_iter()
            .chain(more.iter().copied())
            .collect::<Vec<_>>()
    };
    let mut expected = vec!["run_started"];
    expected.extend(step(&["tool_started", "tool_ended", "routed", "budget"]));
    expected.extend(step(&["run_ended"]));
    assert_eq!(types, expected);
    for (seq, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], seq);
        assert_eq!(event["thread_id"], "t-1");
        assert_eq!(event["run_id"], events[0]["run_id"]);
        let time = event["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
    }
    let last = events.last().unwrap();
    assert_eq!(
        (&last["exit_code"], &last["result"]["answer"]),
        (&0.into(), &"Yes.".into())
    );
}

#[test]
fn a_trace_file_beside_a_result_is_the_owners_alone() {
    let sandbox = Sandbox::new();
    // A slip does not cost anybody a file.
    sandbox.file("t.jsonl", "old\n");
    let spec = sandbox.script(&[FINAL]);
    let slip = sandbox.run(&["run", "support", "--model", &spec, "--trace", "t.jsonl"]);
    let said = "error: --trace: t.jsonl is there and is no trace, and stays as it is: name another file, or delete this one\n";
    assert_eq!((slip.code, slip.err.as_str()), (2, said));
    assert_eq!(
        std::fs::read_to_string(sandbox.path("t.jsonl")).unwrap(),
        "old\n"
    );
    std::fs::write(sandbox.path("t.jsonl"), "").unwrap();
    let first = sandbox.run(&["run", "support", "--model", &spec, "--trace", "t.jsonl"]);
    assert_eq!(first.code, 0, "{}", first.err);
    let ended = sandbox.run(&[
        "run", "support", "--model", &spec, "--json", "--trace", "t.jsonl",
    ]);
    assert_eq!(ended.reason(), "success");
    let file = std::fs::read_to_string(sandbox.path("t.jsonl")).unwrap();
    assert_eq!(parsed(&file)[0]["type"], "run_started");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(sandbox.path("t.jsonl"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[PROFILE, FINAL]);
    let commands: [&[&str]; 4] = [
        &["explain"],
        &["completions", "bash"],
        &["run", "support", "--model", &spec, "--json", "--quiet"],
        &["run", "support", "--model", &spec, "--events", "--quiet"],
    ];
    for args in commands {
        let mut command = sandbox.command(args);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut child = command
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut err = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!((code, err.as_str()), (Some(0), ""), "{args:?}");
    }
}

/// Starts a run that hangs in its first model call, and waits until it does.
#[cfg(unix)]
fn hanging(sandbox: &Sandbox) -> (std::process::Child, BufReader<std::process::ChildStdout>) {
    let spec = sandbox.lines(&[r#"{"content":"{}","delay_ms":3600000}"#]);
    let args = [
        "run",
        "support",
        "--model",
        &spec,
        "--events",
        "--max-seconds",
        "3600",
    ];
    let mut command = sandbox.command(&args);
    command.env("OPENAI_TIMEOUT_SECONDS", "3600");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("step_started") {
        line.clear();
        assert_ne!(events.read_line(&mut line).unwrap(), 0);
    }
    (child, events)
}

#[cfg(unix)]
pub(crate) fn send(signal: &str, child: &std::process::Child) {
    let sent = std::process::Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_run_with_its_own_reason() {
    for signal in ["-INT", "-TERM"] {
        let sandbox = Sandbox::new();
        let (mut child, mut events) = hanging(&sandbox);
        send(signal, &child);
        let mut rest = String::new();
        events.read_to_string(&mut rest).unwrap();
        let last = parsed(&rest).pop().unwrap();
        assert_eq!(last["result"]["stop_reason"], "cancelled");
        let mut err = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        assert!(err.contains("interrupted: "), "{err}");
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_says_how_it_is_resumed_or_that_it_cannot_be() {
    for (store, expected) in [
        ("memory:", "there is nothing to resume"),
        ("sqlite://a b.db", " --store 'sqlite://a b.db'"),
    ] {
        let sandbox = Sandbox::new();
        let spec = sandbox.lines(&[r#"{"content":"{}","delay_ms":3600000}"#]);
        let args = [
            "run",
            "support",
            "--model",
            &spec,
            "--max-seconds",
            "3600",
            "--store",
            store,
        ];
        let mut command = sandbox.command(&args);
        command.env("OPENAI_TIMEOUT_SECONDS", "3600");
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut trace = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        // The run has begun, and with it the listening.
        while !line.starts_with("run ") {
            line.clear();
            assert_ne!(
                trace.read_line(&mut line).unwrap(),
                0,
                "it ended before it began"
            );
        }
        send("-INT", &child);
        let mut out = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        assert!(out.contains("Stopped: cancelled"), "{out}");
        assert!(out.contains(expected), "{out}");
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}
