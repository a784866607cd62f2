//! Input that somebody made to do harm: escape sequences in every place that is shown, files that never
//! end or never begin, tasks beyond all bounds.

use crate::sandbox::{FINAL, Sandbox, tool};

/// Clears the screen, reorders text, and starts a control sequence in one character.
const ESCAPES: &str = "\u{1b}[2J\u{202e}\u{9b}2J\u{e0041}";

fn is_harmless(text: &str) -> bool {
    !text.contains(['\u{1b}', '\u{202e}', '\u{9b}', '\u{e0041}', '\r', '\u{7}'])
}

#[test]
fn mistakes_are_told_without_the_escape_sequences_they_quote() {
    let sandbox = Sandbox::new();
    sandbox.file("key.jsonl", r#"{"\u001b[2J\u202e":1}"#);
    sandbox.file("kind.jsonl", r#"{"error":{"kind":"\u001b[2J\u202e"}}"#);
    let table: [&[&str]; 8] = [
        &["run", "support", "--model", "scripted:key.jsonl"],
        &["run", "support", "--model", "scripted:kind.jsonl"],
        &["run", "support", "--model", ESCAPES],
        &["run", "support", "--loop", ESCAPES],
        &["run", "support", "--store", ESCAPES],
        &["run", "support", "--log", ESCAPES],
        &["run", ESCAPES],
        &["graph", ESCAPES],
    ];
    for args in table {
        let ended = sandbox.run(args);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{args:?}");
        assert!(is_harmless(&ended.err), "{args:?}: {:?}", ended.err);
    }
    let sandbox = Sandbox::new();
    sandbox.file("paraph.toml", "\"\\u001b[2J\\u202e\" = 1\n");
    let ended = sandbox.run(&["run", "support"]);
    assert!(
        ended.code == 2 && is_harmless(&ended.err),
        "{:?}",
        ended.err
    );
}

#[test]
fn settings_are_listed_without_escape_sequences() {
    let sandbox = Sandbox::new();
    sandbox.file(".env", &format!("OPENAI_MODEL=\"{ESCAPES}\"\n"));
    for args in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["doctor"],
    ] {
        let ended = sandbox.run_with(args, &[("OPENAI_API_KEY", "k")], "");
        assert!(is_harmless(&ended.out), "{args:?}: {:?}", ended.out);
        assert!(ended.out.contains("2J"), "{args:?}: {:?}", ended.out);
    }
}

#[test]
fn what_a_model_writes_forges_no_line_of_a_report() {
    let sandbox = Sandbox::new();
    let script = sandbox.script(&[&tool("x\\nWhat to do: run this\\nstep 9/9  think", "{}")]);
    let ended = sandbox.run(&["run", "support", "--model", &script]);
    assert_eq!(ended.code, 3, "{}", ended.err);
    let all = ended.out + &ended.err;
    let begins = |word: &str| all.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!(
        (begins("What to do: "), begins("step 9/9")),
        (1, 0),
        "{all}"
    );
}

#[test]
fn what_a_model_writes_is_shown_without_escape_sequences_and_json_keeps_its_value() {
    let name = format!("x{ESCAPES}\u{7}\r");
    let call = serde_json::json!({"kind": "tool", "name": name, "args": {(ESCAPES): ESCAPES}});
    let answer = serde_json::json!({"kind": "final", "answer": ESCAPES});
    let sandbox = Sandbox::new();
    for content in [call.to_string(), answer.to_string(), ESCAPES.to_owned()] {
        let spec = sandbox.script(&[&content]);
        for flag in ["--json", "--events", "--verbose"] {
            let ended = sandbox.run(&["run", "support", ESCAPES, "--model", &spec, flag]);
            assert!(is_harmless(&ended.out), "{flag}: {:?}", ended.out);
            assert!(is_harmless(&ended.err), "{flag}: {:?}", ended.err);
        }
    }
    let spec = sandbox.script(&[&answer.to_string()]);
    let ended = sandbox.run(&["run", "support", "--json", "--model", &spec]);
    assert_eq!(ended.json()["answer"], ESCAPES);
}

#[test]
fn a_task_beyond_all_bounds_is_refused_for_its_size_wherever_it_is_cut() {
    let sandbox = Sandbox::new();
    let args = ["run", "support", "-", "--model", "rehearsal"];
    for task in ["x".repeat(3 << 20), format!("x{}", "é".repeat(1 << 20))] {
        let ended = sandbox.run_with(&args, &[], &task);
        assert_eq!(ended.code, 2);
        assert_eq!(
            ended.err,
            "error: standard input: the task is larger than 1048576 bytes\n"
        );
    }
}

/// Each of these files would keep its reader waiting for ever.
#[cfg(unix)]
#[test]
fn a_pipe_without_another_end_is_a_mistake_and_no_hang() {
    type Run = (
        &'static str,
        &'static [&'static str],
        &'static [(&'static str, &'static str)],
    );
    let table: [Run; 5] = [
        ("pipe", &["run", "support", "--model", "scripted:pipe"], &[]),
        ("pipe", &["run", "support", "--trace", "pipe"], &[]),
        (".env", &["config", "show"], &[]),
        ("paraph.toml", &["run", "support"], &[]),
        (
            "pipe",
            &["run", "support"],
            &[("OPENAI_API_KEY_FILE", "pipe")],
        ),
    ];
    let threads = table.map(|(file, args, env)| {
        std::thread::spawn(move || {
            let sandbox = Sandbox::new();
            let made = std::process::Command::new("mkfifo")
                .arg(sandbox.path(file))
                .status();
            assert!(made.unwrap().success());
            let ended = sandbox.run_with(args, env, "");
            assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{args:?}");
            assert!(ended.err.contains("pipe"), "{args:?}: {}", ended.err);
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_script_may_come_out_of_a_pipe() {
    let sandbox = Sandbox::new();
    let made = std::process::Command::new("mkfifo")
        .arg(sandbox.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    let (path, line) = (
        sandbox.path("pipe"),
        serde_json::json!({ "content": FINAL }),
    );
    let writer = std::thread::spawn(move || std::fs::write(path, line.to_string()));
    let ended = sandbox.run(&["run", "support", "--json", "--model", "scripted:pipe"]);
    writer.join().unwrap().unwrap();
    assert_eq!(ended.reason(), "success");
}

#[test]
fn secrets_in_arguments_are_shown_nowhere() {
    const SECRET: &str = "sk-abcdefghijklmnopqrstuvwxyz";
    let sandbox = Sandbox::new();
    let args = format!(r#"{{"user_id":42,"api_key":"hunter2hunter2","note":"{SECRET}"}}"#);
    let spec = sandbox.script(&[&tool("get_user_profile", &args)]);
    for flags in [
        &["--events"][..],
        &["--verbose", "--log", "debug"],
        &["--log", "debug,json"],
    ] {
        let all: Vec<_> = ["run", "support", SECRET, "--model", &spec]
            .iter()
            .chain(flags)
            .copied()
            .collect();
        let ended = sandbox.run(&all);
        let shown = format!("{}{}", ended.out, ended.err);
        assert!(
            !shown.contains(SECRET) && !shown.contains("hunter2"),
            "{flags:?}: {shown}"
        );
    }
}

#[test]
fn a_usage_beyond_all_numbers_is_shown_and_ends_a_run_with_limits() {
    let sandbox = Sandbox::new();
    let most = u64::MAX;
    let call = tool("get_user_profile", r#"{"user_id":42}"#);
    let turn = |content: &str| {
        let usage = serde_json::json!({"input_tokens": most, "output_tokens": most});
        serde_json::json!({"content": content, "usage": usage}).to_string()
    };
    let spec = sandbox.lines(&[&turn(&call), &turn(FINAL)]);
    let ended = sandbox.run(&["run", "support", "--model", &spec]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "Yes.\n"));
    assert!(
        ended.err.contains(&format!("{most}+{most} tokens")),
        "{}",
        ended.err
    );
    let args = [
        "run",
        "support",
        "--json",
        "--model",
        &spec,
        "--max-tokens",
        "100000",
    ];
    let ended = sandbox.run(&args);
    assert_eq!((ended.code, ended.reason().as_str()), (3, "max_tokens"));
}

#[cfg(unix)]
#[test]
fn a_variable_that_cannot_be_read_is_named_and_not_passed_over() {
    use std::os::unix::ffi::OsStringExt as _;
    let sandbox = Sandbox::new();
    for (name, code) in [
        ("OPENAI_API_KEY", 2),
        ("OPENAI_API_KEY_FILE", 2),
        ("UNKNOWN", 0),
    ] {
        let mut command = sandbox.command(&["run", "support", "--model", "rehearsal"]);
        command.env(name, std::ffi::OsString::from_vec(b"sk-\xff".to_vec()));
        let output = command.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{name}: {err}");
        assert_eq!(
            err.contains(&format!("{name}: its value is not UTF-8")),
            code == 2,
            "{err}"
        );
    }
}
