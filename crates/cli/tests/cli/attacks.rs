//! What a hostile user tried, and must not get: a finished run that goes on, a store that is overwritten.

use crate::sandbox::{Ended, FINAL, PROFILE, Sandbox};
use serde_json::json;

/// A run on this thread of the store `s.db`; gives its id.
fn ran(sandbox: &Sandbox, thread: &str) -> String {
    let spec = sandbox.script(&[PROFILE, FINAL]);
    let ended = on(
        sandbox,
        &[
            "run", "support", "--model", &spec, "--thread", thread, "--events",
        ],
    );
    assert_eq!(ended.code, 0, "{}", ended.err);
    let first: serde_json::Value = serde_json::from_str(ended.out.lines().next().unwrap()).unwrap();
    first["run_id"].as_str().unwrap().to_owned()
}

fn on(sandbox: &Sandbox, args: &[&str]) -> Ended {
    sandbox.run(&[args, &["--store", "sqlite://s.db"]].concat())
}

#[test]
fn a_run_that_is_over_is_not_run_again_when_its_checkpoints_are_gone() {
    let sandbox = Sandbox::new();
    let first = ran(&sandbox, "t");
    ran(&sandbox, "t");
    let pruned = on(&sandbox, &["threads", "prune", "t", "--keep", "1"]);
    assert_eq!(pruned.code, 0, "{}", pruned.err);
    let before = on(&sandbox, &["threads", "show", "t", "--json"]).json();
    let resumed = on(&sandbox, &["runs", "resume", &first]);
    assert_eq!((resumed.code, resumed.out.as_str()), (2, ""));
    assert!(resumed.err.contains("was over already"), "{}", resumed.err);
    assert_eq!(
        on(&sandbox, &["threads", "show", "t", "--json"]).json(),
        before
    );
    let row = on(&sandbox, &["runs", "show", &first, "--json"]).json();
    assert_eq!(
        (&row["status"], &row["attempts"]),
        (&json!("success"), &json!(1))
    );
}

#[test]
fn an_imported_run_without_checkpoints_is_not_run_again_unless_it_was_cut_off() {
    let sandbox = Sandbox::new();
    let first = ran(&sandbox, "t");
    ran(&sandbox, "t");
    let export = on(&sandbox, &["threads", "export", "t"]).json();
    // Whatever the first one's row says, the thread went on after it.
    for status in ["success", "error", "cancelled", "running"] {
        let sandbox = Sandbox::new();
        let mut document = export.clone();
        document["runs"][0]["status"] = json!(status);
        let parts = document["scopes"][0]["checkpoints"].as_array_mut().unwrap();
        // The second run's first checkpoint has the whole state when those before it are gone.
        let newest = parts.pop().unwrap();
        let mut whole = std::collections::BTreeMap::new();
        for part in parts.iter().chain([&newest]) {
            for channel in part["channels"].as_array().unwrap() {
                let name = channel["channel"].as_str().unwrap().to_owned();
                if channel["kind"] == "whole" || !whole.contains_key(&name) {
                    let mut channel = channel.clone();
                    channel["kind"] = json!("whole");
                    whole.insert(name, channel);
                }
            }
        }
        let mut newest = newest;
        newest["channels"] = whole.into_values().collect();
        document["scopes"][0]["checkpoints"] = json!([newest]);
        document["events"] = json!([]);
        sandbox.file("t.json", &document.to_string());
        let imported = on(&sandbox, &["threads", "import", "t.json"]);
        assert_eq!(imported.code, 0, "{}", imported.err);
        sandbox.script(&[PROFILE, FINAL]);
        let resumed = on(&sandbox, &["runs", "resume", &first]);
        assert_eq!((resumed.code, resumed.out.as_str()), (2, ""), "{status}");
        let expected = match status {
            "success" => "was over already",
            _ => "has gone on since",
        };
        assert!(resumed.err.contains(expected), "{status}: {}", resumed.err);
    }
}

#[test]
fn no_output_goes_over_the_stores_own_files() {
    let sandbox = Sandbox::new();
    let run = ran(&sandbox, "t");
    std::fs::hard_link(sandbox.path("s.db"), sandbox.path("hard")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("s.db-wal", sandbox.path("soft")).unwrap();
    let names = [
        "s.db",
        "./s.db",
        "s.db-wal",
        "s.db-shm",
        "s.db-owners/x",
        "hard",
        "soft",
    ];
    let spec = sandbox.script(&[FINAL]);
    for name in names.into_iter().take(if cfg!(unix) { 7 } else { 5 }) {
        for args in [
            &["threads", "export", "t", "-o", name][..],
            &["store", "backup", name],
            &["run", "support", "--model", &spec, "--trace", name],
            &["runs", "resume", &run, "--trace", name],
        ] {
            let ended = on(&sandbox, args);
            assert_eq!(
                (ended.code, ended.out.as_str()),
                (2, ""),
                "{args:?}: {}",
                ended.err
            );
            assert!(
                ended.err.contains("belongs to the store"),
                "{args:?}: {}",
                ended.err
            );
        }
    }
    assert_eq!(on(&sandbox, &["store", "check"]).code, 0);
}

#[cfg(unix)]
#[test]
fn an_export_goes_through_links_and_into_devices() {
    use std::os::unix::fs::FileTypeExt as _;
    let sandbox = Sandbox::new();
    ran(&sandbox, "t");
    sandbox.file("real.json", "old").file("folder/x", "");
    std::os::unix::fs::symlink("real.json", sandbox.path("link.json")).unwrap();
    std::os::unix::fs::symlink("folder/new.json", sandbox.path("open.json")).unwrap();
    for (name, file) in [("link.json", "real.json"), ("open.json", "folder/new.json")] {
        let ended = on(&sandbox, &["threads", "export", "t", "-o", name]);
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert!(sandbox.path(name).is_symlink(), "{name}");
        let text = std::fs::read_to_string(sandbox.path(file)).unwrap();
        assert!(text.contains("paraph-thread"), "{name}");
    }
    // The pipe stands for every device: a test must not risk those of the machine.
    let made = std::process::Command::new("mkfifo")
        .arg(sandbox.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    let pipe = sandbox.path("pipe");
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let ended = on(&sandbox, &["threads", "export", "t", "-o", "pipe"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(reader.join().unwrap().contains("paraph-thread"));
    assert!(
        std::fs::symlink_metadata(pipe)
            .unwrap()
            .file_type()
            .is_fifo()
    );
}

#[test]
fn one_damaged_run_does_not_hide_the_others_from_the_check() {
    let sandbox = Sandbox::new();
    for thread in ["t-1", "t-2", "t-3"] {
        ran(&sandbox, thread);
    }
    let mut bytes = std::fs::read(sandbox.path("s.db")).unwrap();
    let text = br#""dialect":"strict""#;
    let at = bytes.windows(text.len()).position(|window| window == text);
    bytes[at.unwrap() + text.len() - 2] = b'x';
    std::fs::write(sandbox.path("s.db"), bytes).unwrap();
    let check = on(&sandbox, &["store", "check", "--json"]);
    assert_eq!(
        (check.code, &check.json()["runs"]),
        (6, &json!(2)),
        "{}",
        check.out
    );
    let problems = check.json()["problems"].as_array().unwrap().clone();
    assert_eq!(problems.len(), 1, "{problems:?}");
    let problem = problems[0].as_str().unwrap();
    assert!(problem.contains("the row of run "), "{problem}");
    let list = on(&sandbox, &["runs", "list"]);
    assert!(
        list.code == 6 && list.err.contains("the row of run "),
        "{}",
        list.err
    );
    // Who asks for another by a wrong name hears of that name.
    let other = on(&sandbox, &["runs", "show", "nonsense"]);
    assert!(
        other.code == 2 && other.err.contains("`nonsense` is no run's id"),
        "{}",
        other.err
    );
}

#[test]
fn looking_for_a_store_that_is_not_there_makes_none() {
    let sandbox = Sandbox::new();
    let id = "01920000-0000-7000-8000-000000000000";
    for args in [&["threads", "list"][..], &["runs", "list"]] {
        for json in [true, false] {
            let more = if json { &["--json"][..] } else { &[] };
            let ended = on(&sandbox, &[args, more].concat());
            let expected = if json { "[]\n" } else { "" };
            assert_eq!((ended.code, ended.out.as_str()), (0, expected), "{args:?}");
            let said = "there is no store at sqlite://s.db yet";
            assert!(ended.err.contains(said), "{args:?}: {}", ended.err);
        }
    }
    for args in [
        &["threads", "show", "t"][..],
        &["threads", "history", "t"],
        &["threads", "export", "t"],
        &["threads", "fork", "t", "--as", "u"],
        &["threads", "prune", "t", "--keep", "1"],
        &["threads", "delete", "t", "--yes"],
        &["runs", "show", id],
        &["runs", "events", id],
        &["runs", "resume", id],
        &["runs", "cancel", id],
        &["store", "check"],
        &["store", "stats"],
        &["store", "migrate"],
        &["store", "backup", "copy.db"],
    ] {
        let ended = on(&sandbox, args);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{args:?}");
        assert!(
            ended.err.contains("there is no store at"),
            "{args:?}: {}",
            ended.err
        );
    }
    for name in ["s.db", "s.db-owners", "copy.db"] {
        assert!(!sandbox.path(name).exists(), "{name}");
    }
}

#[test]
fn an_address_that_is_none_is_explained_and_no_password_is_shown() {
    let sandbox = Sandbox::new();
    for (url, expected) in [
        (
            "host=127.0.0.1 password=hunter2 port=1",
            "that is no address of a store",
        ),
        ("sqlite://:memory:", "a store in memory is called memory:"),
        ("sqlite://~/x.db", "`~` is not replaced here"),
        ("sqlite://x.db?mode=ro", "a path takes no options"),
    ] {
        for args in [
            &["threads", "list"][..],
            &["run", "support", "--model", "rehearsal"],
        ] {
            let ended = sandbox.run(&[args, &["--store", url]].concat());
            assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{url}");
            assert!(ended.err.contains(expected), "{url}: {}", ended.err);
            assert!(!ended.err.contains("hunter2"), "{url}: {}", ended.err);
        }
    }
    let left = std::fs::read_dir(sandbox.path(".")).unwrap();
    let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn an_import_takes_no_name_that_a_run_would_not() {
    let sandbox = Sandbox::new();
    ran(&sandbox, "t");
    let export = on(&sandbox, &["threads", "export", "t"]).json();
    for name in ["", &"x".repeat(201), "a\0b"] {
        let mut document = export.clone();
        document["thread"]["name"] = json!(name);
        sandbox.file("t.json", &document.to_string());
        let ended = on(&sandbox, &["threads", "import", "t.json"]);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{name:?}");
        assert!(ended.err.contains("a name has"), "{}", ended.err);
    }
    for args in [["threads", "list"], ["runs", "list"]] {
        let ended = on(&sandbox, &[&args[..], &["--limit", "0"]].concat());
        assert!(
            ended.code == 2 && ended.err.contains("at least 1 row"),
            "{}",
            ended.err
        );
    }
}

#[test]
fn a_run_that_did_not_end_well_is_not_listed_as_a_success() {
    let sandbox = Sandbox::new();
    ran(&sandbox, "good");
    let spec = sandbox.script(&[PROFILE, FINAL]);
    let args = [
        "run",
        "support",
        "--model",
        &spec,
        "--thread",
        "short",
        "--max-steps",
        "1",
    ];
    assert_eq!(on(&sandbox, &args).code, 3);
    let list = on(&sandbox, &["runs", "list"]).out;
    let line = |thread: &str| {
        let found = list.lines().find(|line| line.contains(thread));
        found.unwrap_or_else(|| panic!("{list}")).to_owned()
    };
    assert!(line("short").contains("stopped: max_steps"), "{list}");
    assert!(line("good").contains(" success "), "{list}");
    let rows = on(&sandbox, &["runs", "list", "--json"]).json();
    assert_eq!(
        (&rows[0]["stop_reason"], &rows[1]["stop_reason"]),
        (&json!("max_steps"), &json!("success"))
    );
    assert_eq!(
        (&rows[0]["status"], &rows[1]["status"]),
        (&json!("stopped"), &json!("success"))
    );
    for (status, thread) in [("success", "good"), ("stopped", "short")] {
        let args = ["runs", "list", "--json", "--status", status];
        let rows = on(&sandbox, &args).json();
        let threads: Vec<_> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| &row["thread"])
            .collect();
        assert_eq!(threads, [thread], "{status}");
        let none = on(&sandbox, &[&args[..], &["--offset", "1"]].concat());
        assert_eq!(none.json(), json!([]));
    }
    let shown = on(&sandbox, &["runs", "show", "--thread", "short", "--json"]).json();
    assert_eq!(
        (
            &shown["status"],
            &shown["stop_reason"],
            &shown["result"]["status"]
        ),
        (&json!("stopped"), &json!("max_steps"), &json!("stopped"))
    );
    let shown = on(&sandbox, &["runs", "show", "--thread", "short"]).out;
    assert!(shown.contains("stopped: max_steps"), "{shown}");
}
