//! Wrong usage: exit code 2, nothing on standard output, and a sentence that says what to do.

use crate::sandbox::{FINAL, Sandbox};

/// Flags, and what is said of them.
const MISTAKES: [(&[&str], &str); 25] = [
    (&["run"], "<AGENT>"),
    (
        &["run", "suport"],
        "there is no agent `suport`; did you mean `support`?",
    ),
    (
        &["run", "triage", "say something"],
        "is not the address of an issue",
    ),
    (&["run", "my-agent.toml"], "my-agent.toml: No such file"),
    (&["run", "support", "--frobnicate"], "--frobnicate"),
    (
        &["run", "support", "--json", "--events"],
        "cannot be used with",
    ),
    (
        &["run", "support", "--quiet", "--verbose"],
        "cannot be used with",
    ),
    (
        &["run", "support", "--user", "Anna"],
        "invalid value 'Anna'",
    ),
    (&["run", "support", "--user", "-1"], "'-1'"),
    (
        &["run", "support", "--max-steps", "many"],
        "--max-steps: `many` is no whole number",
    ),
    (&["run", "support", "--max-steps", "-1"], "-1"),
    (
        &["run", "support", "--max-seconds", "1.5"],
        "--max-seconds: `1.5` is no whole number",
    ),
    (
        &["run", "support", "--max-cost", "cheap"],
        "--max-cost: `cheap` is no sum of US dollars",
    ),
    (
        &["run", "support", "--loop", "fuzzy"],
        "--loop: `fuzzy` is no loop rule; there are exact, soft, cycle and off",
    ),
    (
        &["run", "support", "--log", "loud"],
        "--log: `loud` is no level",
    ),
    (
        &["run", "support", "--log", "info,xml"],
        "only `,json` may follow",
    ),
    (
        &["run", "support", "--store", "sqlite://"],
        "--store: a path stands behind sqlite://",
    ),
    (
        &["run", "support", "--store", "floppy"],
        "`floppy` is no kind of store",
    ),
    (
        &["run", "support", "--thread", ""],
        "--thread: a name has 1 to 200 characters, not 0",
    ),
    (&["run", "support", "--allow", ""], "empty pattern"),
    (&["run", "support", "  "], "the task is empty"),
    (&["run", "support", "--env-file", "none.env"], "none.env: "),
    (
        &["run", "support", "--thread", " \t "],
        "--thread: a name has something in it that can be seen",
    ),
    (
        &["run", "support", "--trace", "no/such/folder/t.jsonl"],
        "--trace: no/such/folder/t.jsonl: ",
    ),
    (&["graph", "support", "--format", "pdf"], "mermaid"),
];

#[test]
fn mistakes_on_the_command_line_are_named() {
    let sandbox = Sandbox::new();
    for (args, expected) in MISTAKES {
        let ended = sandbox.run(args);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{args:?}");
        assert!(ended.err.contains(expected), "{args:?}: {}", ended.err);
    }
}

#[test]
fn hurried_users_are_told_what_they_probably_meant() {
    let table: [(&[&str], &str); 7] = [
        (
            &["support"],
            "hint: an agent is run by `paraph run support`",
        ),
        (
            &["run", "Can I get it back?"],
            "the agent comes before the task: paraph run support \"Can I get it back?\"",
        ),
        (
            &["run", "support", "Can", "I"],
            "hint: put a task of several words in quotes",
        ),
        (
            &["run", "support", "--model", "gpt-4.1-mini"],
            "did you mean `openai:gpt-4.1-mini`?",
        ),
        (
            &["run", "support", "--model", "rehersal"],
            "did you mean `rehearsal`?",
        ),
        (
            &["run", "support", "--model", "openai"],
            "--model rehearsal, which needs none",
        ),
        (
            &["run", "support", "--store", "./runs.db"],
            "--store: `./runs.db` is a path; did you mean sqlite://./runs.db?",
        ),
    ];
    let sandbox = Sandbox::new();
    for (args, expected) in table {
        let ended = sandbox.run(args);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{args:?}");
        assert!(ended.err.contains(expected), "{args:?}: {}", ended.err);
    }
    let ended = sandbox.run(&["explain", "Stopped: max_steps"]);
    assert!(ended.out.starts_with("max_steps (stopped, exit code 3)"));
}

#[test]
fn models_that_cannot_be_had_are_named() {
    let table = [
        ("openai:gpt-4.1-mini", "OPENAI_API_KEY"),
        ("openai:", "no model stands behind the colon"),
        ("opnai:gpt", "opnai"),
        ("anthropic:claude", "ANTHROPIC_API_KEY"),
        ("record:cassette,anthropic:claude", "ANTHROPIC_API_KEY"),
        ("record:cassette", "record:DIR,SPEC"),
        ("replay:cassette", "recording cassette: "),
        ("scripted:none.jsonl", "none.jsonl"),
        ("scripted:", "scripted:FILE"),
        ("", "provider:model"),
    ];
    let sandbox = Sandbox::new();
    for (spec, expected) in table {
        let ended = sandbox.run(&["run", "support", "--model", spec]);
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (2, ""),
            "{spec}: {}",
            ended.err
        );
        assert!(ended.err.contains(expected), "{spec}: {}", ended.err);
    }
}

#[test]
fn a_wrong_line_of_a_script_is_named_by_its_number() {
    let table = [
        ("not json", "line 2"),
        (r#"{"contents":"x"}"#, "contents"),
        (r#"{"error":{"kind":"http"}}"#, "status"),
        ("{}", "neither"),
    ];
    let sandbox = Sandbox::new();
    for (line, expected) in table {
        let spec = sandbox.lines(&[r#"{"content":"{}"}"#, line]);
        let ended = sandbox.run(&["run", "support", "--model", &spec]);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{line}");
        assert!(
            ended.err.contains(expected) && ended.err.contains('2'),
            "{line}: {}",
            ended.err
        );
    }
}

#[test]
fn a_task_is_read_from_standard_input() {
    let sandbox = Sandbox::new();
    let args = ["run", "support", "-", "--model", "rehearsal"];
    let ended = sandbox.run_with(&args, &[], "What does my plan cost?\n");
    assert_eq!(
        ended.out,
        "Anna, you are on the pro_monthly plan, which costs 49.00 USD.\n"
    );
    assert_eq!(sandbox.run_with(&args, &[], "").code, 2);
    let long = "x".repeat(70_000);
    let ended = sandbox.run_with(&args, &[], &long);
    assert_eq!(ended.code, 2);
    assert!(
        ended.err.contains("70000 bytes; an agent takes 65536"),
        "{}",
        ended.err
    );
}

#[test]
fn a_thread_has_the_name_it_was_given() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[FINAL]);
    let name = "é".repeat(200);
    let ended = sandbox.run(&["run", "support", "--model", &spec, "--thread", &name]);
    assert!(ended.err.contains(&name), "{}", ended.err);
    let ended = sandbox.run(&[
        "run",
        "support",
        "--model",
        &spec,
        "--thread",
        &"é".repeat(201),
    ]);
    assert_eq!(ended.code, 2);
}

#[test]
fn help_and_version_are_everywhere() {
    let sandbox = Sandbox::new();
    let commands: [&[&str]; 29] = [
        &[],
        &["run"],
        &["agents"],
        &["graph"],
        &["explain"],
        &["doctor"],
        &["config"],
        &["config", "show"],
        &["completions"],
        &["threads"],
        &["threads", "list"],
        &["threads", "show"],
        &["threads", "history"],
        &["threads", "fork"],
        &["threads", "export"],
        &["threads", "import"],
        &["threads", "delete"],
        &["threads", "prune"],
        &["runs"],
        &["runs", "list"],
        &["runs", "show"],
        &["runs", "events"],
        &["runs", "resume"],
        &["runs", "cancel"],
        &["store"],
        &["store", "migrate"],
        &["store", "check"],
        &["store", "stats"],
        &["store", "backup"],
    ];
    for command in commands {
        for flag in ["--help", "--version"] {
            let args: Vec<&str> = command.iter().copied().chain([flag]).collect();
            let ended = sandbox.run(&args);
            assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{args:?}");
            assert!(ended.out.contains("paraph"), "{args:?}: {}", ended.out);
        }
    }
}
