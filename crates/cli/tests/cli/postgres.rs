//! The same commands on a real Postgres: several processes, one database.

#[path = "../../../store/tests/cluster/mod.rs"]
mod cluster;

use crate::sandbox::{BILLING, FINAL, PROFILE, Sandbox};
use crate::streams::send;
use cluster::Cluster;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

/// Starts a run whose second answer does not come, shows that its thread is busy, and kills it; gives its id.
fn killed(sandbox: &Sandbox, store: &[(&str, &str)]) -> String {
    let hangs = json!({"content": BILLING, "delay_ms": 3_600_000}).to_string();
    let first = json!({ "content": PROFILE }).to_string();
    let spec = sandbox.lines(&[&first, &hangs]);
    let args = [
        "run",
        "support",
        "--model",
        &spec,
        "--thread",
        "t",
        "--events",
        "--max-seconds",
        "3600",
    ];
    let mut command = sandbox.command(&args);
    command
        .envs(store.iter().copied())
        .env("OPENAI_TIMEOUT_SECONDS", "3600");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"step_started\",\"step\":2") {
        line.clear();
        assert_ne!(events.read_line(&mut line).unwrap(), 0);
    }
    let event: Value = serde_json::from_str(&line).unwrap();
    let args = [
        "run",
        "support",
        "--model",
        "rehearsal",
        "--thread",
        "t",
        "--json",
    ];
    let busy = sandbox.run_with(&args, store, "");
    assert_eq!((busy.code, busy.reason().as_str()), (6, "conflict"));
    send("-KILL", &child);
    child.wait().unwrap();
    event["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn runs_are_kept_killed_resumed_and_moved_on_postgres() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let sandbox = Sandbox::new();
    let url = cluster.database("cli");
    // A server that has just begun cannot tell a dead process from one it has forgotten: then the lease counts.
    let store = [
        ("PARAPH_STORE", url.as_str()),
        ("PARAPH_LEASE_SECONDS", "2"),
    ];
    let run = |args: &[&str]| sandbox.run_with(args, &store, "");
    let uncut = {
        let spec = sandbox.script(&[PROFILE, BILLING, FINAL]);
        run(&[
            "run", "support", "--model", &spec, "--json", "--thread", "uncut",
        ])
    };
    assert_eq!(uncut.code, 0, "{}", uncut.err);

    let id = killed(&sandbox, &store);
    sandbox.script(&[PROFILE, BILLING, FINAL]);
    let resume = || run(&["runs", "resume", &id, "--json"]);
    let mut resumed = resume();
    for _ in 0..100 {
        if resumed.code != 6 {
            break;
        }
        assert!(
            resumed.err.contains("after 2 seconds at the latest"),
            "{}",
            resumed.err
        );
        resumed = resume();
    }
    assert_eq!(
        (resumed.code, resumed.json()),
        (0, uncut.json()),
        "{}",
        resumed.err
    );
    let check = run(&["store", "check"]);
    assert_eq!(check.code, 0, "{}", check.out);

    // Into a file, whole.
    assert_eq!(run(&["threads", "export", "t", "-o", "t.json"]).code, 0);
    let file = ["--store", "sqlite://f.db"];
    let import = sandbox.run(&[&["threads", "import", "t.json"], &file[..]].concat());
    assert_eq!(import.code, 0, "{}", import.err);
    let values = |ended: crate::sandbox::Ended| ended.json()["values"].clone();
    assert_eq!(
        values(sandbox.run(&[&["threads", "show", "t", "--json"], &file[..]].concat())),
        values(run(&["threads", "show", "t", "--json"]))
    );
    let backup = run(&["store", "backup", "b.db"]);
    assert!(
        backup.code == 2 && backup.err.contains("pg_dump"),
        "{}",
        backup.err
    );
    assert_eq!(run(&["threads", "delete", "t", "--yes"]).code, 0);
    let list = run(&["threads", "list", "--json"]).json();
    assert_eq!(list.as_array().unwrap().len(), 1);
}
