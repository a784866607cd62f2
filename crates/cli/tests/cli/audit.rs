//! Anchors of the audit, what is erased beside it, and approvals that somebody wrote into the store by hand.

use crate::approvals::{Shop, Waiting, pays, says};
use crate::sandbox::{Ended, Sandbox};
use crate::stand_in::{Answer, StandIn};
use paraph_gateway::{ActionRow, Change, Person, Signer, State, Vote};
use serde_json::{Value, json};

fn anchors(sandbox: &Sandbox, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(sandbox.path(name)).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

impl Shop {
    fn audit(&self, args: &[&str]) -> Ended {
        self.sandbox.run(&[&["audit"], args].concat())
    }

    /// A call that was approved and done.
    fn done(&self, thread: &str) -> Waiting {
        let waiting = self.asked(thread);
        let args = [
            "approve",
            &waiting.id,
            "--digest",
            &waiting.digest,
            "--quiet",
        ];
        let approved = self.approvals(&args);
        assert_eq!(approved.code, 0, "{}", approved.err);
        waiting
    }
}

#[test]
fn an_anchor_goes_to_a_file_a_command_or_a_server() {
    let server = StandIn::start(|_| Answer::json(200, &json!({})));
    let shop = Shop::new();
    shop.done("t-1");
    shop.sandbox
        .file(".env", "PARAPH_AUDIT_ANCHOR_TOKEN=hunter2");
    let url = format!("{}/anchors", server.url());
    for to in ["file:kept.jsonl", "command:cat >> kept.jsonl", &url] {
        let anchored = shop.audit(&["anchor", "--to", to]);
        assert_eq!(
            (anchored.code, anchored.out.as_str()),
            (0, ""),
            "{}",
            anchored.err
        );
        assert!(anchored.err.contains("is anchored in "), "{}", anchored.err);
    }
    let seen = server.seen();
    assert_eq!(
        (seen.len(), seen[0].method.as_str(), seen[0].target.as_str()),
        (1, "POST", "/anchors")
    );
    assert_eq!(seen[0].header("authorization"), Some("Bearer hunter2"));
    let sent = String::from_utf8(seen[0].body.clone()).unwrap();
    let mut kept = std::fs::read_to_string(shop.sandbox.path("kept.jsonl")).unwrap();
    kept.push_str(&sent);
    shop.sandbox.file("all.jsonl", &kept);
    // That they were made is in the chain, and each fits it.
    let whole = shop
        .audit(&["verify", "--anchor", "all.jsonl", "--json"])
        .json();
    assert_eq!(
        (
            &whole["whole"],
            &whole["anchored"],
            &whole["last_anchor_seq"]
        ),
        (&json!(true), &json!(3), &json!(7))
    );
    let table = [
        ("nowhere", "--to: that is no place for anchors"),
        ("file:", "--to: that is no place for anchors"),
        (
            "http://anchors.example/",
            "plain http is for this machine only",
        ),
        ("file:data/paraph/paraph.db", "belongs to the store"),
        ("command:exit 3", "--to: a command: it ended with"),
    ];
    for (to, expected) in table {
        let refused = shop.audit(&["anchor", "--to", to]);
        assert!(
            refused.code != 0 && refused.err.contains(expected),
            "{to}: {}",
            refused.err
        );
    }
}

#[test]
fn anchors_are_kept_by_themselves_after_so_many_entries_and_a_failure_stops_nothing() {
    let shop = Shop::new();
    let settings = |place: &str| {
        let text = format!("[audit]\nanchor = \"{place}\"\nanchor_every = 3\n");
        shop.sandbox.file("paraph.toml", &text);
    };
    settings("file:kept.jsonl");
    // One entry of the question; five of approving and doing.
    shop.asked("t-0");
    assert_eq!(anchors(&shop.sandbox, "kept.jsonl"), Vec::<Value>::new());
    let waiting = shop.asked("t-1");
    let args = [
        "approve",
        &waiting.id,
        "--digest",
        &waiting.digest,
        "--quiet",
    ];
    assert_eq!(shop.approvals(&args).code, 0);
    let kept = anchors(&shop.sandbox, "kept.jsonl");
    assert!(!kept.is_empty(), "{kept:?}");
    let whole = shop
        .audit(&["verify", "--anchor", "kept.jsonl", "--json"])
        .json();
    assert_eq!(
        (&whole["whole"], &whole["anchored"]),
        (&json!(true), &json!(kept.len()))
    );

    settings("command:exit 3");
    let ended = shop.done_with_warning("t-2");
    assert!(
        ended
            .err
            .contains("warning: the audit could not be anchored (a command)"),
        "{}",
        ended.err
    );
    // With a place that works the next one comes.
    settings("file:kept.jsonl");
    shop.asked("t-3");
    assert_eq!(anchors(&shop.sandbox, "kept.jsonl").len(), kept.len() + 1);

    shop.sandbox.file(
        "paraph.toml",
        "[audit]\nanchor = \"file:x\"\nanchor_every = 0\n",
    );
    let wrong = shop.approvals(&["list"]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.err.contains("no number of entries from 1 to 1000000"),
        "{}",
        wrong.err
    );
}

impl Shop {
    /// The same as `done`, where something is warned of.
    fn done_with_warning(&self, thread: &str) -> Ended {
        let waiting = self.asked(thread);
        let args = [
            "approve",
            &waiting.id,
            "--digest",
            &waiting.digest,
            "--quiet",
        ];
        let approved = self.approvals(&args);
        assert_eq!(
            (approved.code, approved.out.as_str()),
            (0, "It is done.\n"),
            "{}",
            approved.err
        );
        approved
    }
}

#[test]
fn what_is_personal_is_erased_once_somebody_said_yes_and_the_chain_says_so() {
    let shop = Shop::new();
    let waiting = shop.done("t-1");
    let other = shop.done("t-2");
    let erase = ["erase", "--action", &waiting.id, "--reason", "asked for"];
    let unasked = shop.audit(&erase);
    assert_eq!(unasked.code, 2);
    assert!(
        unasked
            .err
            .contains("there is nobody to ask whether what is personal"),
        "{}",
        unasked.err
    );
    let erased = shop.audit(&[&erase[..], &["--yes", "--json"]].concat());
    assert_eq!(
        (erased.code, &erased.json()["erased"]),
        (0, &json!(5)),
        "{}",
        erased.err
    );
    let again = shop.audit(&[&erase[..], &["--yes"]].concat());
    assert_eq!((again.code, again.out.as_str()), (0, ""));
    assert!(
        again.err.contains("nothing personal about action"),
        "{}",
        again.err
    );

    let whole = shop.audit(&["verify", "--json"]).json();
    assert_eq!(
        (&whole["whole"], &whole["erased"], &whole["erased_untold"]),
        (&json!(true), &json!(5), &json!(0))
    );
    let listed = shop.audit(&["list"]).out;
    assert_eq!(listed.matches("(erased)").count(), 5, "{listed}");
    assert!(
        listed.contains("erased") && listed.contains("asked for"),
        "{listed}"
    );
    // Evidence about it says that it is gone; evidence about the other has it.
    for (waiting, gone) in [(&waiting, 5), (&other, 0)] {
        let packed = shop.audit(&["pack", &waiting.id]);
        shop.sandbox.file("pack.json", &packed.out);
        let proven = shop.audit(&["verify", "--pack", "pack.json"]);
        assert_eq!(proven.code, 0, "{}", proven.out);
        assert_eq!(
            proven.out.matches("(who and why: erased)").count(),
            gone,
            "{}",
            proven.out
        );
    }
    for flags in [
        vec!["--reason", "x"],
        vec!["--user", "a", "--subject", "b", "--reason", "x"],
    ] {
        let wrong = shop.audit(&[&["erase"], &flags[..]].concat());
        assert_eq!(wrong.code, 2, "{}", wrong.err);
    }
    let bad = shop.audit(&["erase", "--user", "ann", "--reason", " ", "--yes"]);
    assert_eq!(bad.code, 2, "{}", bad.err);
    assert!(bad.err.contains("--reason: say why"), "{}", bad.err);
}

/// Writes an approval into the store as somebody would who can write to it and has not the key.
fn forge(sandbox: &Sandbox, id: &str) {
    let url = format!(
        "sqlite://{}",
        sandbox.path("data/paraph/paraph.db").display()
    );
    let id = id.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let opened = paraph_store::open(&url, paraph_store::Options::default())
            .await
            .unwrap();
        let row = paraph_gateway::Approvals::new(opened.gateway.clone())
            .show(id)
            .await
            .unwrap();
        let vote = Vote {
            by: Signer::Person(Person::verified("the-boss")),
            digest: row.digest.clone(),
            at_ms: row.action.said.created_ms + 1,
            seal: Some("0".repeat(64)),
        };
        let forged = ActionRow {
            state: State::Approved,
            version: row.version + 1,
            votes: vec![vote],
            ..row
        };
        let change = Change {
            actions: vec![forged],
            ..Change::default()
        };
        opened.gateway.commit(change).await.unwrap();
    });
}

#[test]
fn an_approval_that_was_written_by_hand_starts_nothing_and_is_found() {
    let shop = Shop::new();
    let key = "5a".repeat(32);
    shop.sandbox.file("seal.key", &format!("{key}\n"));
    shop.sandbox.file(".env", "PARAPH_SEAL_KEY_FILE=seal.key\n");
    // What is approved at the desk is done.
    shop.done("t-1");
    assert_eq!(shop.paid().len(), 1);
    assert_eq!(shop.audit(&["verify"]).code, 0);

    shop.script(&[&pays(8, 1), &says("Done.")]);
    let waiting = shop.asked("t-2");
    forge(&shop.sandbox, &waiting.id);
    let found = shop.audit(&["verify"]);
    assert_eq!(found.code, 6, "{}", found.out);
    let line = format!("FORGED  action {} is approved", waiting.id);
    assert!(found.out.contains(&line), "{}", found.out);
    let json = shop.audit(&["verify", "--json"]).json();
    assert_eq!(json["unproved"], json!([waiting.id]));
    let doctor = shop.sandbox.run(&["doctor"]);
    assert!(
        doctor.out.contains("approvals are proved by the key of "),
        "{}",
        doctor.out
    );
    assert!(
        doctor.out.contains("without approvals of this desk's key"),
        "{}",
        doctor.out
    );
    let resumed = shop
        .sandbox
        .run(&["runs", "resume", "--thread", "t-2", "--json"]);
    // Nothing starts, and people who have the key decide anew.
    assert_eq!(
        (resumed.code, resumed.reason().as_str()),
        (5, "approval_pending")
    );
    assert_eq!(shop.paid().len(), 1);
    assert_eq!(shop.show(&waiting)["state"], "held");
}

#[test]
fn a_new_seal_key_goes_on_with_what_was_approved_under_the_one_before_it() {
    let (old, new) = ("5a".repeat(32), "6b".repeat(32));
    let shop = Shop::new();
    let keys = |lines: String| shop.sandbox.file(".env", &lines);
    keys(format!("PARAPH_SEAL_KEY={old}\n"));
    let waiting = shop.asked("t-1");
    let approved = shop.approvals(&waiting.approve(&["--no-run"]));
    assert_eq!(approved.code, 0, "{}", approved.err);
    shop.sandbox.file("old.key", &old);
    keys(format!(
        "PARAPH_SEAL_KEY={new}\nPARAPH_SEAL_KEY_OLD_FILE=old.key\n"
    ));
    assert_eq!(shop.audit(&["verify"]).code, 0);
    let resume = ["runs", "resume", "--thread", "t-1", "--json"];
    let resumed = shop.sandbox.run(&resume);
    assert_eq!(resumed.code, 0, "{}{}", resumed.out, resumed.err);
    assert_eq!(shop.paid().len(), 1);
    // Without the old key such an approval is one that nobody can prove.
    keys(format!("PARAPH_SEAL_KEY={old}\n"));
    shop.script(&[&pays(8, 1), &says("Done.")]);
    let waiting = shop.asked("t-2");
    let approved = shop.approvals(&waiting.approve(&["--no-run"]));
    assert_eq!(approved.code, 0, "{}", approved.err);
    keys(format!("PARAPH_SEAL_KEY={new}\n"));
    assert_eq!(shop.audit(&["verify"]).code, 6);
    let resume = ["runs", "resume", "--thread", "t-2", "--json"];
    assert_eq!(shop.sandbox.run(&resume).reason(), "approval_pending");
    assert_eq!(shop.show(&waiting)["state"], "held");
    assert_eq!(shop.paid().len(), 1);
    keys(format!("PARAPH_SEAL_KEY_OLD={old}\n"));
    let alone = shop.audit(&["verify"]);
    let said = "`seal_key_old`: it stands beside a new key, and PARAPH_SEAL_KEY is not set";
    assert!(alone.code == 2 && alone.err.contains(said), "{}", alone.err);
    assert!(!alone.err.contains(&old), "{}", alone.err);
}

#[test]
fn a_seal_key_that_is_none_is_told_without_it() {
    let sandbox = Sandbox::new();
    let none = sandbox.run(&["doctor"]);
    assert!(
        none.out.contains("none: whoever can write to the store"),
        "{}",
        none.out
    );
    sandbox.file(".env", "PARAPH_SEAL_KEY=hunter2\n");
    let wrong = sandbox.run(&["run", "support"]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    assert!(
        wrong
            .err
            .contains("a seal key has 64 hexadecimal digits (32 bytes); this one has 7 characters"),
        "{}",
        wrong.err
    );
    assert!(!wrong.err.contains("hunter2"), "{}", wrong.err);
    let shown = sandbox.run(&["config", "show"]);
    assert!(!shown.out.contains("hunter2"), "{}", shown.out);
}

#[cfg(unix)]
#[test]
fn a_pipe_that_nobody_opens_holds_up_neither_a_pack_nor_a_report() {
    let sandbox = Sandbox::new();
    let pipe = sandbox.path("pipe.md");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let named = pipe.to_str().unwrap();
    let table: [(&[&str], &str); 3] = [
        (
            &["audit", "verify", "--pack", named],
            "nothing came from the other end of this pipe",
        ),
        (
            &["graph", "support", "-o", named, "--format", "mermaid"],
            "nobody reads from this pipe",
        ),
        (
            &["run", "research", "x", "--model", "rehearsal", "-o", named],
            "is no ordinary file, and a report would take its place",
        ),
    ];
    for (args, why) in table {
        let ended = sandbox.run(args);
        assert_eq!(ended.code, 2, "{args:?}: {}{}", ended.out, ended.err);
        assert!(ended.err.contains(why), "{args:?}: {}", ended.err);
    }
}

#[test]
fn a_row_that_the_audit_does_not_tell_of_is_found_without_a_key_and_without_an_anchor() {
    let shop = Shop::new();
    shop.done("t-1");
    shop.script(&[&pays(8, 1), &says("Done.")]);
    let waiting = shop.asked("t-2");
    let check = || shop.sandbox.run(&["store", "check"]);
    assert_eq!((shop.audit(&["verify"]).code, check().code), (0, 0));
    forge(&shop.sandbox, &waiting.id);
    let why = "it is approved (version 2), and the audit tells last that it is pending (version 1)";
    let found = shop.audit(&["verify"]);
    let line = format!("ASTRAY  action {}: {why}\n", waiting.id);
    assert!(
        found.code == 6 && found.out.contains(&line),
        "{}",
        found.out
    );
    let json = shop.audit(&["verify", "--json"]).json();
    assert_eq!(json["astray"], json!([{"action": waiting.id, "why": why}]));
    let checked = check();
    let line = format!("the audit of tenant `local`: action {}: {why}", waiting.id);
    assert!(
        checked.code == 6 && checked.out.contains(&line),
        "{}",
        checked.out
    );
}

#[test]
fn threads_that_went_or_came_leave_no_action_astray() {
    let shop = Shop::new();
    shop.done("t-1");
    let run = |args: &[&str]| {
        let ended = shop.sandbox.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {}{}", ended.out, ended.err);
        ended
    };
    run(&["threads", "export", "t-1", "-o", "t.json"]);
    run(&["threads", "delete", "t-1", "--yes"]);
    run(&["store", "check"]);
    run(&["threads", "import", "t.json"]);
    run(&["store", "check"]);
    run(&["audit", "verify"]);
}
