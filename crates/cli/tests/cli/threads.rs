//! `paraph threads …`: what is stored of conversations can be looked at, branched, moved and removed.

use crate::sandbox::{BILLING, Ended, FINAL, PROFILE, Sandbox};
use serde_json::{Value, json};

/// A folder with one thread on which a tool was called and an answer given.
fn with_a_thread() -> Sandbox {
    let sandbox = Sandbox::new();
    asked(&sandbox, "t-1", &[PROFILE, FINAL]);
    sandbox
}

/// Asks on a thread, with a model that says these things.
fn asked(sandbox: &Sandbox, thread: &str, script: &[&str]) -> Ended {
    let spec = sandbox.script(script);
    let args = [
        "run", "support", "--model", &spec, "--thread", thread, "--json",
    ];
    let ended = sandbox.run(&args);
    assert_eq!(ended.code, 0, "{}", ended.err);
    ended
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// The ids of a thread's checkpoints, the newest first.
fn checkpoints(sandbox: &Sandbox, thread: &str) -> Vec<String> {
    let history = sandbox
        .run(&["threads", "history", thread, "--json"])
        .json();
    let ids = history.as_array().unwrap().iter();
    ids.map(|entry| entry["checkpoint"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_thread_is_listed_shown_and_looked_back_on() {
    let sandbox = with_a_thread();
    let list = sandbox.run(&["threads", "list", "--json"]).json();
    let row = &list[0];
    let expected = [
        "checkpoint",
        "created_at",
        "graph",
        "holder",
        "interrupts",
        "metadata",
        "name",
        "next",
        "status",
        "thread_id",
        "updated_at",
    ];
    assert_eq!(
        (list.as_array().unwrap().len(), keys(row)),
        (1, expected.to_vec())
    );
    assert_eq!(
        (&row["name"], &row["status"], &row["graph"], &row["next"]),
        (&json!("t-1"), &json!("idle"), &json!("support"), &json!([]))
    );
    assert!(row["updated_at"].as_str().unwrap().ends_with('Z'));

    let show = sandbox.run(&["threads", "show", "t-1", "--json"]).json();
    assert_eq!(show["thread_id"], row["thread_id"]);
    assert_eq!(show["values"]["ending"]["answer"], "Yes.");
    assert_eq!(show["values"]["trace"][0]["tool"], "get_user_profile");
    assert_eq!(show["at"]["checkpoint"], row["checkpoint"]);

    let history = sandbox.run(&["threads", "history", "t-1", "--json"]).json();
    let history = history.as_array().unwrap();
    let sources: Vec<_> = history.iter().map(|entry| &entry["source"]).collect();
    assert_eq!(sources, ["loop", "loop", "loop", "input"]);
    assert_eq!(history[0]["checkpoint"], row["checkpoint"]);
    assert_eq!(history[0]["parent"], history[1]["checkpoint"]);
    // As it was after the input.
    let first = history[3]["checkpoint"].as_str().unwrap();
    let was = sandbox
        .run(&["threads", "show", "t-1", "--at", first, "--json"])
        .json();
    assert_eq!(
        (&was["values"]["trace"], &was["values"]["ending"]),
        (&json!([]), &Value::Null)
    );
    let older = [
        "threads", "history", "t-1", "--json", "--limit", "1", "--before", first,
    ];
    assert_eq!(sandbox.run(&older).json(), json!([]));
}

#[test]
fn people_read_columns() {
    let sandbox = with_a_thread();
    let list = sandbox.run(&["threads", "list"]);
    let lines: Vec<_> = list.out.lines().collect();
    assert!(
        lines[0].starts_with("NAME  STATUS  GRAPH    UPDATED"),
        "{}",
        list.out
    );
    assert!(
        lines[1].starts_with("t-1   idle    support  20"),
        "{}",
        list.out
    );
    let show = sandbox.run(&["threads", "show", "t-1"]).out;
    assert!(
        show.contains("\nstatus      idle\n") && show.contains("\nstate\n"),
        "{show}"
    );
    let history = sandbox.run(&["threads", "history", "t-1", "--limit", "2"]);
    assert_eq!(history.out.lines().count(), 3);
    assert!(
        history.err.contains("there may be more: --before "),
        "{}",
        history.err
    );
}

#[test]
fn where_nothing_is_that_is_said_beside_the_output() {
    let sandbox = Sandbox::new();
    for (args, said) in [
        (
            ["threads", "list"],
            "no threads yet; `paraph run` makes one\n",
        ),
        (["runs", "list"], "no runs yet; `paraph run` makes one\n"),
    ] {
        let ended = sandbox.run(&args);
        assert_eq!((ended.code, ended.out.as_str()), (0, ""));
        let (first, second) = ended.err.split_at(said.len().min(ended.err.len()));
        assert_eq!(first, said);
        assert!(second.starts_with("there is no store at "), "{second}");
        let json = [args[0], args[1], "--json"];
        assert_eq!(sandbox.run(&json).json(), json!([]));
    }
    asked(&sandbox, "t", &[FINAL]);
    let none = sandbox.run(&["threads", "list", "--status", "error"]);
    assert_eq!(
        (none.out.as_str(), none.err.as_str()),
        ("", "no thread fits\n")
    );
}

#[test]
fn what_is_not_there_is_named_with_what_was_probably_meant() {
    let sandbox = with_a_thread();
    let no_checkpoint = "01920000-0000-7000-8000-000000000000";
    let table: [(&[&str], &str); 10] = [
        (
            &["threads", "show", "t-2"],
            "there is no thread `t-2`; did you mean `t-1`?",
        ),
        (
            &["threads", "history", "other"],
            "there is no thread `other`; `paraph threads list`",
        ),
        (&["threads", "export", "t"], "there is no thread `t`"),
        (
            &["threads", "delete", "t-1", "t-x", "--yes"],
            "there is no thread `t-x`",
        ),
        (
            &["threads", "prune", "x", "--keep", "1"],
            "there is no thread `x`",
        ),
        (
            &["threads", "show", "t-1", "--at", "7"],
            "--at: `7` is no checkpoint's id",
        ),
        (
            &["threads", "show", "t-1", "--at", no_checkpoint],
            "has no checkpoint",
        ),
        (
            &["threads", "fork", "t-1", no_checkpoint],
            "has no checkpoint",
        ),
        (
            &["threads", "list", "--status", "idel"],
            "did you mean `idle`?",
        ),
        (&["threads", "import", "none.json"], "none.json: "),
    ];
    for (args, expected) in table {
        let ended = sandbox.run(args);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{args:?}");
        assert!(ended.err.contains(expected), "{args:?}: {}", ended.err);
    }
    // The one that is there was not deleted beside the one that is not.
    assert_eq!(sandbox.run(&["threads", "show", "t-1"]).code, 0);
}

#[test]
fn a_thread_goes_on_in_another_process_with_what_was_said() {
    let sandbox = with_a_thread();
    let spec = sandbox.script(&[FINAL]);
    let args = [
        "run",
        "support",
        "And how much?",
        "--model",
        &spec,
        "--thread",
        "t-1",
        "--verbose",
    ];
    let second = sandbox.run(&args);
    assert_eq!(second.code, 0);
    let told =
        r#""earlier_exchanges": [{"question": "Can I get a refund now?", "answer": "Yes."}]"#;
    assert!(second.err.contains(told), "{}", second.err);
    // The result is the second run's alone.
    let show = sandbox.run(&["threads", "show", "t-1", "--json"]).json();
    assert_eq!(show["values"]["trace"], json!([]));
    assert_eq!(show["values"]["exchanges"].as_array().unwrap().len(), 2);
    assert_eq!(
        sandbox
            .run(&["runs", "list", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn a_thread_moves_from_one_store_to_another_whole() {
    let sandbox = with_a_thread();
    asked(&sandbox, "t-1", &[PROFILE, BILLING, FINAL]);
    let export = sandbox.run(&["threads", "export", "t-1", "-o", "t.json"]);
    assert_eq!((export.code, export.out.as_str()), (0, ""));
    let file: Value =
        serde_json::from_str(&std::fs::read_to_string(sandbox.path("t.json")).unwrap()).unwrap();
    assert_eq!(
        (&file["format"], &file["version"]),
        (&json!("paraph-thread"), &json!(1))
    );
    assert_eq!(
        sandbox.run(&["threads", "export", "t-1"]).json()["scopes"],
        file["scopes"]
    );

    let other = ["--store", "sqlite://other.db"];
    let run = |args: &[&str]| sandbox.run(&[args, &other].concat());
    let import = run(&["threads", "import", "t.json", "--json"]);
    let imported = import.json();
    assert_eq!(
        (
            &imported["name"],
            &imported["checkpoints"],
            &imported["runs"]
        ),
        (&json!("t-1"), &json!(10), &json!(2)),
        "{}",
        import.err
    );
    // The same state, history, runs and events, in the other store.
    let values = |ended: Ended| ended.json()["values"].clone();
    assert_eq!(
        values(run(&["threads", "show", "t-1", "--json"])),
        values(sandbox.run(&["threads", "show", "t-1", "--json"]))
    );
    assert_eq!(
        run(&["threads", "history", "t-1", "--json"]).json(),
        sandbox.run(&["threads", "history", "t-1", "--json"]).json()
    );
    let again = run(&["threads", "export", "t-1"]).json();
    assert_eq!(
        (&again["runs"], &again["thread"]["created_ms"]),
        (&file["runs"], &file["thread"]["created_ms"])
    );
    assert_eq!(again["scopes"], file["scopes"]);
    assert_eq!(again["events"], file["events"]);
    assert_eq!(run(&["store", "check"]).code, 0);
    let ids = |rows: Value| {
        let rows = rows.as_array().unwrap().clone();
        rows.iter()
            .map(|row| (row["run_id"].clone(), row.clone()))
            .collect::<Vec<_>>()
    };
    let (mut here, mut there) = (
        ids(sandbox.run(&["runs", "list", "--json"]).json()),
        ids(run(&["runs", "list", "--json"]).json()),
    );
    here.sort_by_key(|row| row.0.to_string());
    there.sort_by_key(|row| row.0.to_string());
    assert_eq!(here, there);

    let twice = run(&["threads", "import", "t.json"]);
    assert_eq!(twice.code, 2);
    assert!(
        twice.err.contains("there is a thread `t-1` already"),
        "{}",
        twice.err
    );
    let text = std::fs::read_to_string(sandbox.path("t.json")).unwrap();
    let from_stdin = ["threads", "import", "-", "--as", "t-2"];
    let renamed = sandbox.run_with(&[&from_stdin[..], &other].concat(), &[], &text);
    assert_eq!(
        renamed.out,
        format!(
            "imported `t-2`: 10 checkpoints, 0 runs (2 already there), {} events\n",
            file["events"].as_array().unwrap().len()
        )
    );
    assert_eq!(
        values(run(&["threads", "show", "t-2", "--json"])),
        values(run(&["threads", "show", "t-1", "--json"]))
    );
}

#[test]
fn a_document_that_is_none_leaves_no_thread() {
    let sandbox = with_a_thread();
    sandbox.file("a.json", "{}").file("b.json", "[1,2");
    let mut document = sandbox.run(&["threads", "export", "t-1"]).json();
    document["version"] = json!(9);
    sandbox.file("c.json", &document.to_string());
    document["version"] = json!(1);
    document["scopes"][0]["checkpoints"][2]["parent"] = json!(null);
    sandbox.file("d.json", &document.to_string());
    for (name, expected) in [
        ("a.json", "missing field `format`"),
        ("b.json", "this is no exported thread"),
        ("c.json", "use the version that exported it or a newer one"),
        ("d.json", "only a part of channel"),
    ] {
        let ended = sandbox.run(&["threads", "import", name, "--as", "new"]);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{name}");
        assert!(ended.err.contains(expected), "{name}: {}", ended.err);
    }
    assert_eq!(sandbox.run(&["threads", "show", "new"]).code, 2);
}

#[test]
fn a_run_begins_at_an_older_checkpoint_on_a_new_branch() {
    let sandbox = with_a_thread();
    let before = checkpoints(&sandbox, "t-1");
    // Where the model had its profile to read.
    let spec = sandbox.script(&[BILLING, r#"{"kind":"final","answer":"No."}"#]);
    let base = [
        "run", "support", "--json", "--model", &spec, "--thread", "t-1",
    ];
    let replay = sandbox.run(&[&base[..], &["--from", &before[1]]].concat());
    let result = replay.json();
    assert_eq!(
        (replay.code, &result["answer"]),
        (0, &json!("No.")),
        "{}",
        replay.err
    );
    let steps: Vec<_> = result["trace"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["step"])
        .collect();
    assert_eq!(steps, [1, 2]);
    let after = checkpoints(&sandbox, "t-1");
    assert!(after.ends_with(&before) && after.len() > before.len());
    // With a question of its own.
    let spec = sandbox.script(&[FINAL]);
    let other = [
        "run", "support", "Other?", "--json", "--model", &spec, "--thread", "t-1",
    ];
    let asked = sandbox.run(&[&other[..], &["--from", &before[1]]].concat());
    assert_eq!(asked.json()["trace"], json!([]));
    // Where nothing is due.
    let over = sandbox.run(&[&base[..], &["--from", &before[0]]].concat());
    assert_eq!(over.code, 2);
    assert!(over.err.contains("nothing is left to do"), "{}", over.err);
    let nameless = sandbox.run(&["run", "support", "--from", &before[0]]);
    assert_eq!(nameless.code, 2);
    assert!(nameless.err.contains("--thread"), "{}", nameless.err);
}

#[test]
fn a_thread_is_forked_and_copied() {
    let sandbox = with_a_thread();
    let before = checkpoints(&sandbox, "t-1");
    let copy = ["threads", "fork", "t-1", "--as", "copy", "--json"];
    assert_eq!(sandbox.run(&copy).json()["copy_of"], "t-1");
    assert_eq!(checkpoints(&sandbox, "copy"), before);
    let fork = ["threads", "fork", "t-1", &before[1], "--json"];
    let forked = sandbox.run(&fork);
    let head = forked.json()["checkpoint"].as_str().unwrap().to_owned();
    let after = checkpoints(&sandbox, "t-1");
    assert_eq!((&after[0], &after[1..]), (&head, &before[..]));
    // The copy knows nothing of it.
    assert_eq!(checkpoints(&sandbox, "copy"), before);
    let due = sandbox
        .run(&["threads", "list", "--status", "interrupted", "--json"])
        .json();
    assert_eq!(
        (&due[0]["name"], &due[0]["next"]),
        (&json!("t-1"), &json!(["think"]))
    );
    // What is due there runs.
    let spec = sandbox.script(&[r#"{"kind":"final","answer":"Branch."}"#]);
    let run = [
        "run", "support", "--json", "--model", &spec, "--thread", "t-1", "--from", &head,
    ];
    assert_eq!(sandbox.run(&run).json()["answer"], "Branch.");
    let taken = sandbox.run(&["threads", "fork", "t-1", "--as", "copy"]);
    assert_eq!(taken.code, 2);
    assert!(
        taken.err.contains("there is a thread `copy` already"),
        "{}",
        taken.err
    );
    let both = sandbox.run(&["threads", "fork", "t-1", &before[1], "--as", "b"]);
    assert!(
        both.out.contains("copied `t-1` to `b`\n`b` stands at "),
        "{}{}",
        both.out,
        both.err
    );
}

#[test]
fn a_thread_is_deleted_for_good_and_only_when_that_is_sure() {
    let sandbox = with_a_thread();
    let refused = sandbox.run(&["threads", "delete", "t-1"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("use --yes"), "{}", refused.err);
    let deleted = sandbox.run(&["threads", "delete", "t-1", "--yes"]);
    assert_eq!((deleted.code, deleted.out.as_str()), (0, "deleted `t-1`\n"));
    assert_eq!(
        sandbox.run(&["threads", "list", "--json"]).json(),
        json!([])
    );
    assert_eq!(sandbox.run(&["runs", "list", "--json"]).json(), json!([]));
    assert_eq!(sandbox.run(&["threads", "show", "t-1"]).code, 2);
    // A new one of the name knows nothing of it.
    let again = asked(&sandbox, "t-1", &[FINAL]);
    assert_eq!(again.json()["trace"], json!([]));
}

#[test]
fn old_checkpoints_are_pruned_and_the_state_stays() {
    let sandbox = with_a_thread();
    asked(&sandbox, "t-2", &[FINAL]);
    let show = || sandbox.run(&["threads", "show", "t-1", "--json"]).json()["values"].clone();
    let before = show();
    let dry = sandbox.run(&["threads", "prune", "t-1", "--keep", "1", "--dry-run"]);
    assert_eq!(dry.out, "`t-1`: would delete 3 checkpoints, 0 events\n");
    assert_eq!(checkpoints(&sandbox, "t-1").len(), 4);
    let pruned = sandbox
        .run(&["threads", "prune", "t-1", "--keep", "1", "--json"])
        .json();
    assert_eq!(
        (&pruned[0]["checkpoints"], &pruned[0]["pending"]),
        (&json!(3), &json!(false))
    );
    assert_eq!((checkpoints(&sandbox, "t-1").len(), show()), (1, before));
    // With the last checkpoint of a run go its events; what was foreseen is what is done.
    asked(&sandbox, "t-1", &[FINAL]);
    let prune = |more: &[&str]| {
        let args = [&["threads", "prune", "t-1", "--keep", "1", "--json"], more].concat();
        let mut pruned = sandbox.run(&args).json();
        pruned[0]["dry_run"].take();
        pruned[0].clone()
    };
    let foreseen = prune(&["--dry-run"]);
    assert!(foreseen["events"].as_u64().unwrap() > 5, "{foreseen}");
    assert_eq!(prune(&[]), foreseen);
    assert_eq!(sandbox.run(&["store", "check"]).code, 0);
    let young = sandbox
        .run(&["threads", "prune", "--all", "--older-than", "1d", "--json"])
        .json();
    let deleted: Vec<_> = young
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["checkpoints"])
        .collect();
    assert_eq!(deleted, [0, 0]);
    for (args, expected) in [
        (
            &["threads", "prune", "t-1", "--keep", "0"][..],
            "at least one checkpoint stays",
        ),
        (
            &["threads", "prune", "t-1", "--older-than", "soon"],
            "is no age",
        ),
        (&["threads", "prune", "t-1"], "--keep"),
        (&["threads", "prune", "--keep", "1"], "NAME"),
    ] {
        let ended = sandbox.run(args);
        assert_eq!(ended.code, 2, "{args:?}");
        assert!(ended.err.contains(expected), "{args:?}: {}", ended.err);
    }
}

#[test]
fn retention_in_the_settings_prunes_after_each_run() {
    let sandbox = Sandbox::new();
    sandbox.file("paraph.toml", "[retention]\nkeep_last = 2\n");
    asked(&sandbox, "t", &[PROFILE, FINAL]);
    assert_eq!(checkpoints(&sandbox, "t").len(), 2);
    for (text, expected) in [
        (
            "keep_last = 0\n",
            "paraph.toml:2: `retention.keep_last`: `0` is no number",
        ),
        (
            "older_than = \"soon\"\n",
            "paraph.toml:2: `retention.older_than`: `soon` is no age",
        ),
        (
            "keep = 3\n",
            "unknown key `retention.keep`; did you mean `retention.keep_last`?",
        ),
    ] {
        sandbox.file("paraph.toml", &format!("[retention]\n{text}"));
        let ended = sandbox.run(&["run", "support", "--model", "rehearsal"]);
        assert_eq!(ended.code, 2, "{text}");
        assert!(ended.err.contains(expected), "{text}: {}", ended.err);
    }
}

#[test]
fn a_thread_goes_on_with_the_agent_that_it_began_with() {
    let sandbox = with_a_thread();
    sandbox.file("clerk.toml", "name = \"clerk\"\nprompt = \"Be brief.\"\n");
    for agent in ["weather", "clerk.toml"] {
        let ended = sandbox.run(&[
            "run",
            agent,
            "hi",
            "--thread",
            "t-1",
            "--model",
            "rehearsal",
        ]);
        let name = agent.trim_end_matches(".toml");
        let said = format!(
            "thread `t-1` is a conversation with `support`, not with `{name}`: choose another --thread"
        );
        assert_eq!(ended.code, 2, "{}", ended.err);
        assert!(ended.err.contains(&said), "{}", ended.err);
    }
    asked(&sandbox, "t-1", &[FINAL]);
}
