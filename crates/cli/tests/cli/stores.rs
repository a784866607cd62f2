//! Where runs are kept: by default, by address, encrypted; and `paraph store …`.

use crate::sandbox::{Ended, FINAL, PROFILE, Sandbox};
use serde_json::json;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn ran(sandbox: &Sandbox, more: &[&str], env: &[(&str, &str)]) -> Ended {
    let spec = sandbox.script(&[PROFILE, FINAL]);
    let base = [
        "run", "support", "--model", &spec, "--thread", "t-1", "--quiet",
    ];
    sandbox.run_with(&[&base[..], more].concat(), env, "")
}

fn has(sandbox: &Sandbox, file: &str, text: &str) -> bool {
    let bytes = std::fs::read(sandbox.path(file)).unwrap();
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[test]
fn runs_are_kept_in_the_data_directory_unless_told_otherwise() {
    let sandbox = Sandbox::new();
    assert_eq!(ran(&sandbox, &[], &[]).code, 0);
    let file = sandbox.path("data/paraph/paraph.db");
    assert!(file.is_file());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode =
            |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    }
    // By a directory, a variable, a flag; each is a store of its own.
    let list = |args: &[&str], env: &[(&str, &str)]| {
        let json = sandbox
            .run_with(&[&["threads", "list", "--json"], args].concat(), env, "")
            .json();
        json.as_array().unwrap().len()
    };
    assert_eq!(list(&[], &[]), 1);
    assert_eq!(list(&[], &[("PARAPH_DATA_DIR", "elsewhere")]), 0);
    assert_eq!(list(&[], &[("PARAPH_STORE", "sqlite://v.db")]), 0);
    assert_eq!(
        list(
            &["--store", "sqlite://f.db"],
            &[("PARAPH_STORE", "sqlite://v.db")]
        ),
        0
    );
    assert_eq!(list(&["--store", "memory:"], &[]), 0);
    // Looking makes none.
    for name in ["elsewhere/paraph.db", "v.db", "f.db"] {
        assert!(!sandbox.path(name).exists(), "{name}");
    }
}

#[test]
fn a_store_that_cannot_be_opened_is_the_stores_failure() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "notes.db",
        "this is no database, but it is long enough to look like one to nobody",
    );
    sandbox.file("folder/x", "");
    let mut table = vec![
        ("sqlite://notes.db", "notes.db cannot be opened"),
        ("sqlite://folder", "folder cannot be opened"),
    ];
    let mut pipe = std::process::Command::new("mkfifo");
    if pipe
        .arg(sandbox.path("pipe"))
        .status()
        .is_ok_and(|made| made.success())
    {
        table.push((
            "sqlite://pipe",
            "pipe cannot be opened: it is no ordinary file",
        ));
    }
    for (url, expected) in table {
        let ended = ran(&sandbox, &["--store", url], &[]);
        assert_eq!((ended.code, ended.out.as_str()), (6, ""), "{url}");
        assert!(ended.err.contains(expected), "{url}: {}", ended.err);
    }
    // It was not touched.
    assert!(has(&sandbox, "notes.db", "this is no database"));
}

#[test]
fn an_encrypted_store_opens_with_its_key_alone_and_shows_it_to_nobody() {
    let sandbox = Sandbox::new();
    let key = [("PARAPH_ENCRYPTION_KEY", KEY)];
    let store = ["--store", "sqlite://x.db"];
    assert_eq!(ran(&sandbox, &store, &key).code, 0);
    for secret in ["get_user_profile", "Anna", "Yes.", KEY] {
        assert!(!has(&sandbox, "x.db", secret), "{secret}");
    }
    let show = |env: &[(&str, &str)]| {
        sandbox.run_with(
            &["threads", "show", "t-1", "--json", store[0], store[1]],
            env,
            "",
        )
    };
    assert_eq!(show(&key).json()["values"]["ending"]["answer"], "Yes.");
    // From a file too.
    sandbox.file("key", &format!("{KEY}\n"));
    assert_eq!(show(&[("PARAPH_ENCRYPTION_KEY_FILE", "key")]).code, 0);
    let other = KEY.replace("1f", "2f");
    for (env, expected) in [
        (vec![], "the store is encrypted"),
        (
            vec![("PARAPH_ENCRYPTION_KEY", other.as_str())],
            "PARAPH_ENCRYPTION_KEY: the store is encrypted under another key",
        ),
        (
            vec![("PARAPH_ENCRYPTION_KEY", "secret")],
            "PARAPH_ENCRYPTION_KEY: an encryption key has 64",
        ),
    ] {
        let ended = show(&env);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{expected}");
        assert!(ended.err.contains(expected), "{}", ended.err);
    }
    let settings = sandbox.run_with(&["config", "show", "--json"], &key, "");
    assert!(settings.out.contains("encryption_key") && !settings.out.contains(KEY));
    let doctor = sandbox.run_with(&["doctor"], &key, "");
    assert!(!doctor.out.contains(KEY));
    sandbox.file("paraph.toml", "encryption_key = \"x\"\n");
    let ended = sandbox.run(&["threads", "list"]);
    assert!(
        ended.code == 2
            && ended
                .err
                .contains("a secret does not belong into this file"),
        "{}",
        ended.err
    );
}

#[test]
fn a_damaged_row_is_found_and_named() {
    let sandbox = Sandbox::new();
    let store = ["--store", "sqlite://x.db"];
    assert_eq!(ran(&sandbox, &store, &[]).code, 0);
    let check = |more: &[&str]| sandbox.run(&[&["store", "check"], &store[..], more].concat());
    let fine = check(&["--json"]).json();
    assert_eq!(
        (&fine["ok"], &fine["threads"], &fine["checkpoints"]),
        (&json!(true), &json!(1), &json!(4))
    );
    assert!(
        check(&[])
            .out
            .starts_with("ok: sqlite://x.db: 1 thread, 1 run, 4 checkpoints and ")
    );
    // One letter of the state, in the file itself.
    let mut bytes = std::fs::read(sandbox.path("x.db")).unwrap();
    let text = br#"\"name\":\"Anna\""#;
    let found: Vec<_> = (0..bytes.len() - text.len())
        .filter(|at| bytes[*at..].starts_with(text))
        .collect();
    assert!(!found.is_empty());
    for at in found {
        bytes[at + text.len() - 3] = b'e';
    }
    std::fs::write(sandbox.path("x.db"), bytes).unwrap();
    let damaged = check(&[]);
    assert_eq!(damaged.code, 6);
    assert!(
        damaged.out.starts_with("DAMAGED: sqlite://x.db: "),
        "{}",
        damaged.out
    );
    assert!(
        damaged.out.contains("t-1") && damaged.out.contains("history"),
        "{}",
        damaged.out
    );
    // Nobody is given it for sound.
    assert!(
        damaged.out.contains("1 thread, 1 run, 4 checkpoints"),
        "{}",
        damaged.out
    );
    let shown = sandbox.run(&["threads", "show", "t-1", "--json", store[0], store[1]]);
    assert_eq!((shown.code, shown.out.as_str()), (6, ""));
    // But it can be got rid of.
    let deleted = sandbox.run(&["threads", "delete", "t-1", "--yes", store[0], store[1]]);
    assert_eq!(deleted.code, 0, "{}", deleted.err);
    assert_eq!(check(&[]).code, 0);
}

#[test]
fn sizes_are_told_per_thread_and_channel() {
    let sandbox = Sandbox::new();
    assert_eq!(ran(&sandbox, &[], &[]).code, 0);
    let stats = sandbox.run(&["store", "stats", "--json"]).json();
    let keys: Vec<_> = stats
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "bytes",
            "disk_free_bytes",
            "file_bytes",
            "gateway",
            "store",
            "threads"
        ]
    );
    let gateway = &stats["gateway"];
    let none = json!({"actions": {}, "audit": {}, "wakes": 0, "kills": 0});
    for (name, value) in none.as_object().unwrap() {
        assert_eq!(&gateway[name], value, "{name}");
    }
    let calls = gateway["calls"].as_u64().unwrap();
    assert!(calls > 0);
    let text = sandbox.run(&["store", "stats"]).out;
    let line = format!("\ngate   {calls} call");
    assert!(text.contains(&line), "{text}");
    let thread = &stats["threads"][0];
    assert_eq!(
        (&thread["thread"], &thread["checkpoints"]),
        (&json!("t-1"), &json!(4))
    );
    let channels = thread["channels"].as_array().unwrap();
    assert!(channels.iter().any(|channel| channel["channel"] == "trace"));
    let text = sandbox.run(&["store", "stats", "--thread", "t-1"]).out;
    assert!(
        text.contains("\nTHREAD  CHECKPOINTS  NOTES  EVENTS  SIZE\nt-1 "),
        "{text}"
    );
    assert!(text.contains("\nCHANNEL "), "{text}");
    assert_eq!(sandbox.run(&["store", "stats", "--thread", "x"]).code, 2);
}

#[test]
fn a_backup_is_a_store_and_replaces_nothing() {
    let sandbox = Sandbox::new();
    assert_eq!(ran(&sandbox, &[], &[]).code, 0);
    let made = sandbox.run(&["store", "backup", "copy.db"]);
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(made.out.contains(" to copy.db ("), "{}", made.out);
    let from = |store: &str| {
        sandbox
            .run(&["threads", "show", "t-1", "--json", "--store", store])
            .json()
    };
    assert_eq!(
        from("sqlite://copy.db")["values"],
        sandbox.run(&["threads", "show", "t-1", "--json"]).json()["values"]
    );
    let again = sandbox.run(&["store", "backup", "copy.db"]);
    assert_eq!(again.code, 2);
    assert!(
        again.err.contains("copy.db is there already"),
        "{}",
        again.err
    );
    let memory = sandbox.run(&["store", "backup", "m.db", "--store", "memory:"]);
    assert!(
        memory.code == 2 && memory.err.contains("only a store in a file"),
        "{}",
        memory.err
    );
    assert!(!sandbox.path("m.db").exists());
}

#[test]
fn migrating_says_which_format_there_was_and_is() {
    let sandbox = Sandbox::new();
    let migrate = || sandbox.run(&["store", "migrate", "--json"]).json();
    assert_eq!(sandbox.run(&["store", "migrate"]).code, 2);
    assert_eq!(ran(&sandbox, &[], &[]).code, 0);
    let now = migrate()["now"].as_i64().unwrap();
    let again = migrate();
    assert_eq!(
        (&again["before"], &again["backup"]),
        (&json!(now), &json!(null))
    );
    let text = sandbox.run(&["store", "migrate"]).out;
    assert!(text.contains("which is this version's"), "{text}");
}

#[test]
fn the_doctor_knows_the_store() {
    let sandbox = Sandbox::new();
    let store = |sandbox: &Sandbox| {
        let checks = sandbox.run(&["doctor", "--json"]).json();
        let checks = checks.as_array().unwrap().clone();
        checks
            .into_iter()
            .find(|check| check["check"] == "store")
            .unwrap()
    };
    let before = store(&sandbox);
    assert_eq!(before["verdict"], "note");
    // Looking makes none.
    assert!(!sandbox.path("data/paraph/paraph.db").exists());
    assert_eq!(ran(&sandbox, &[], &[]).code, 0);
    assert_eq!(store(&sandbox)["verdict"], "ok");
    std::fs::write(sandbox.path("data/paraph/paraph.db"), "x".repeat(5_000)).unwrap();
    assert_eq!(store(&sandbox)["verdict"], "wrong");
}

/// The size of a file is limited as a full disk limits it: what is beyond cannot be written.
#[cfg(unix)]
#[test]
fn a_run_that_meets_a_full_disk_ends_so_and_goes_on_when_there_is_room() {
    let mut seen = std::collections::BTreeSet::new();
    for blocks in (100..1_000).step_by(100) {
        let sandbox = Sandbox::new();
        let command = format!(
            "ulimit -f {blocks}; exec {} run support --model rehearsal --thread t --json",
            env!("CARGO_BIN_EXE_paraph")
        );
        let mut shell = std::process::Command::new("sh");
        let paraph = sandbox.command(&[]);
        shell.env_clear();
        for (name, value) in paraph.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        let shell = shell.args(["-c", &command]).current_dir(sandbox.path("."));
        let output = shell.output().unwrap();
        let (out, err) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        match (output.status.code(), out.is_empty()) {
            (Some(6), true) => {
                assert!(err.contains("cannot be opened"), "{blocks}: {err}");
                seen.insert("opening");
            }
            (Some(6), false) => {
                assert!(out.contains("store_error"), "{blocks}: {out}");
                seen.insert("running");
            }
            (Some(0), false) => continue,
            other => panic!("{blocks}: {other:?} {out}{err}"),
        }
        // Nothing is half-written, and with room the run goes on, or another begins.
        let check = sandbox.run(&["store", "check"]);
        assert_eq!(check.code, 0, "{blocks}: {}", check.out);
        let rows = sandbox.run(&["runs", "list", "--json"]).json();
        let again = match rows.as_array().unwrap().is_empty() {
            false => sandbox.run(&["runs", "resume", "--thread", "t"]),
            true => sandbox.run(&["run", "support", "--model", "rehearsal", "--thread", "t"]),
        };
        assert!(
            again.out.contains("49.00 USD"),
            "{blocks}: {}{}",
            again.out,
            again.err
        );
    }
    assert!(seen.contains("running"), "{seen:?}");
}

#[cfg(unix)]
#[test]
fn a_disk_that_gets_short_is_said_unless_somebody_asked_not_to_be_told() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[FINAL]);
    // The last is more than any disk has.
    for (mib, expected) in [("0", false), ("18446744073709551615", true)] {
        let env = [("PARAPH_LOW_DISK_MIB", mib)];
        let ended = sandbox.run_with(&["run", "support", "--model", &spec], &env, "");
        let said = ended.err.contains("are left on the disk of sqlite://");
        assert_eq!((ended.code, said), (0, expected), "{mib}: {}", ended.err);
    }
}

#[test]
fn others_who_may_read_the_store_are_warned_of() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::new();
    let more = ["--store", "sqlite://s.db"];
    assert_eq!(ran(&sandbox, &more, &[]).err, "");
    for (mode, warned) in [(0o666, true), (0o644, true), (0o640, true), (0o600, false)] {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(sandbox.path("s.db"), permissions).unwrap();
        let list = sandbox.run(&[&["threads", "list"], &more[..]].concat());
        let warning = format!(
            "warning: others than its owner may read or write the store's file (mode {mode:04o}); chmod 600 s.db \
             makes it private\n"
        );
        let expected = if warned { warning } else { String::new() };
        assert_eq!((list.code, list.err), (0, expected));
    }
}

/// A store in a folder of its own, and the program run by somebody who may only read both.
#[cfg(unix)]
struct Shown {
    sandbox: Sandbox,
}

#[cfg(unix)]
impl Shown {
    fn all(&self, file: u32, folder: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        let set = |path: &std::path::Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&self.sandbox.path("."), 0o755);
        for entry in std::fs::read_dir(self.sandbox.path("shown")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                set(&path, file);
            }
        }
        set(&self.sandbox.path("shown"), folder);
    }

    fn run(&self, args: &[&str]) -> Ended {
        use std::os::unix::{fs::MetadataExt as _, process::CommandExt as _};
        let args = [args, &["--store", "sqlite://shown/s.db"]].concat();
        let mut command = self.sandbox.command(&args);
        // Root may write to everything.
        if std::fs::metadata(self.sandbox.path(".")).unwrap().uid() == 0 {
            command.uid(65_534).gid(65_534);
        }
        let output = command.output().unwrap();
        Ended {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn files(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.sandbox.path("shown")).unwrap();
        let mut names: Vec<_> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[cfg(unix)]
#[test]
fn a_store_that_can_only_be_read_is_read_and_left_as_it_is() {
    let shown = Shown {
        sandbox: Sandbox::new(),
    };
    let store = ["--store", "sqlite://shown/s.db"];
    assert_eq!(ran(&shown.sandbox, &store, &[]).code, 0);
    let before = shown.files();
    let reads: [&[&str]; 11] = [
        &["threads", "list"],
        &["threads", "list", "--json"],
        &["threads", "show", "t-1"],
        &["threads", "history", "t-1"],
        &["runs", "list"],
        &["runs", "list", "--status", "success", "--json"],
        &["runs", "show", "--thread", "t-1"],
        &["runs", "events", "--thread", "t-1"],
        &["threads", "prune", "t-1", "--keep", "1", "--dry-run"],
        &["store", "check"],
        &["store", "migrate"],
    ];
    let written: Vec<_> = reads
        .iter()
        .map(|args| shown.sandbox.run(&[args, &store[..]].concat()).out)
        .collect();
    for folder in [0o555, 0o777] {
        shown.all(0o444, folder);
        for (args, written) in reads.iter().zip(&written) {
            let read = shown.run(args);
            assert_eq!(
                (read.code, &read.out),
                (0, written),
                "{args:?}: {}",
                read.err
            );
        }
        assert_eq!(
            shown.run(&["store", "stats", "--json"]).json()["threads"][0]["thread"],
            "t-1"
        );
        let export = shown.run(&["threads", "export", "t-1"]).json();
        assert_eq!(export["runs"][0]["status"], "success");
        let spec = shown.sandbox.script(&[FINAL]);
        for args in [
            &["threads", "delete", "t-1", "--yes"][..],
            &["threads", "prune", "t-1", "--keep", "1"],
            &["threads", "fork", "t-1", "--as", "u"],
            &["run", "support", "--model", &spec, "--thread", "t-1"],
        ] {
            let refused = shown.run(args);
            let said = format!("{}{}", refused.out, refused.err);
            assert_eq!(refused.code, 6, "{args:?}: {said}");
            assert!(
                said.contains("the file is read-only; give this user"),
                "{args:?}: {said}"
            );
            // A run that was never stored cannot be gone on with.
            assert!(!said.contains("runs resume"), "{args:?}: {said}");
        }
        assert_eq!(shown.files(), before);
    }
    shown.all(0o600, 0o755);
    assert_eq!(ran(&shown.sandbox, &store, &[]).code, 0);
}
