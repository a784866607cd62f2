//! Decisions at the command line that are neither yes nor no, two people at once, and what is hard to read.

use crate::approvals::{Shop, pays, read, says};
use crate::stand_in::{Answer, Manner};
use serde_json::{Value, json};
use std::process::Stdio;

#[test]
fn a_change_that_is_asked_for_goes_to_the_model_which_asks_again() {
    let shop = Shop::new();
    shop.script(&[&pays(7, 4900), &pays(7, 2000), &says("It is done.")]);
    let first = shop.asked("t-1");
    let words = ["ask-change", &first.id, "--digest", &first.digest, "--json"];
    let asked = shop.approvals(&[&words[..], &["--reason", "only 20 dollars"]].concat());
    // The run goes on to the next question.
    assert_eq!(asked.code, 5, "{}", asked.err);
    assert!(
        asked.err.contains("asked to be changed by "),
        "{}",
        asked.err
    );
    let next = asked.json()["approvals"][0].clone();
    let over = shop.show(&first);
    assert_eq!(
        (&over["state"], &over["closes"], &over["ended"]["why"]),
        (
            &json!("superseded"),
            &json!(false),
            &json!("only 20 dollars")
        )
    );
    let shown = shop.approvals(&["show", &first.id]);
    assert!(
        shown
            .out
            .contains("superseded: a person asked for a change first"),
        "{}",
        shown.out
    );
    let (id, digest) = (
        next["id"].as_str().unwrap(),
        next["digest"].as_str().unwrap(),
    );
    let approved = shop.approvals(&["approve", id, "--digest", digest, "--json"]);
    assert_eq!(approved.code, 0, "{}", approved.err);
    let seen = read(&approved.json());
    assert_eq!(
        seen,
        [
            r#"{"a_person":"asks for a change","happened":false,"words":"only 20 dollars"}"#,
            r#"{"paid":2000}"#
        ]
    );
    assert_eq!(shop.paid(), [json!({"order": 7, "cents": 2000})]);
    let late = shop.approvals(&["approve", &first.id, "--digest", &first.digest]);
    assert_eq!(late.code, 6, "{}", late.err);
    assert!(
        late.err.contains("is superseded already (by "),
        "{}",
        late.err
    );
}

#[test]
fn somebody_answers_in_words_in_the_place_of_the_call() {
    let shop = Shop::new();
    let first = shop.asked("t-1");
    let words = ["respond", &first.id, "--digest", &first.digest, "--json"];
    let none = shop.approvals(&[&words[..], &["--answer", " "]].concat());
    assert_eq!(none.code, 2, "{}", none.err);
    let answered = shop.approvals(&[&words[..], &["--answer", "It is paid."]].concat());
    assert_eq!(answered.code, 0, "{}", answered.err);
    assert_eq!(
        read(&answered.json()),
        [r#"{"a_person":"answers","happened":false,"words":"It is paid."}"#]
    );
    assert_eq!(shop.paid(), Vec::<Value>::new());
    let listed = shop
        .approvals(&["list", "--state", "answered", "--json"])
        .json();
    assert_eq!(listed[0]["id"], json!(first.id));
}

#[test]
fn a_listing_has_its_columns_and_its_fields() {
    let shop = Shop::new();
    let waiting = shop.asked("t-1");
    let listed = shop.approvals(&["list"]);
    let lines: Vec<_> = listed.out.lines().collect();
    let head: Vec<_> = lines[0].split_whitespace().collect();
    assert_eq!(
        head,
        [
            "ID", "DIGEST", "STATE", "AGENT", "TOOL", "EXPIRES", "THREAD", "WHAT"
        ]
    );
    let cells: Vec<_> = lines[1].split_whitespace().collect();
    assert_eq!(
        (&cells[..5], cells[6]),
        (
            &[
                &*waiting.id,
                &waiting.digest[..12],
                "pending",
                "clerk",
                "pay_back"
            ][..],
            "t-1"
        )
    );
    let json = shop.approvals(&["list", "--json"]).json();
    for field in ["id", "digest", "state", "agent", "tool", "expires_at"] {
        assert!(json[0][field].is_string(), "{field}");
    }
}

/// Of two processes that decide at the same time one wins, and the other is told.
#[test]
fn of_two_people_who_decide_at_once_one_does_and_the_other_is_told() {
    let shop = Shop::new();
    for round in 0..6 {
        let thread = format!("t-{round}");
        let waiting = shop.asked(&thread);
        let start = |what: &str, reason: &[&str]| {
            let args = ["approvals", what, &waiting.id, "--digest", &waiting.digest];
            let mut command = shop
                .sandbox
                .command(&[&args[..], &["--no-run"], reason].concat());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        let yes = start("approve", &[]);
        let no = start("reject", &["--reason", "no"]);
        let ended = [yes, no].map(|child| child.wait_with_output().unwrap());
        let codes = ended.each_ref().map(|ended| ended.status.code().unwrap());
        let state = shop.show(&waiting)["state"].clone();
        let (loser, winner) = match codes {
            [0, 6] => (&ended[1], "approved"),
            [6, 0] => (&ended[0], "rejected"),
            other => panic!("{other:?}"),
        };
        assert_eq!(state, json!(winner));
        let told = String::from_utf8_lossy(&loser.stderr);
        assert!(
            told.contains(&format!("is {winner} already (by ")),
            "{told}"
        );
    }
}

#[test]
fn what_nobody_saw_the_end_of_is_settled_by_a_person() {
    for happened in [true, false] {
        let shop = Shop::answering(|_| Answer {
            manner: Manner::CutOff,
            ..Answer::json(200, &json!({"paid": 4900}))
        });
        let waiting = shop.asked("t-1");
        let args = [
            "approve",
            &waiting.id,
            "--digest",
            &waiting.digest,
            "--json",
        ];
        let sent = shop.approvals(&args);
        assert_eq!(sent.code, 5, "{}", sent.err);
        assert_eq!(shop.paid().len(), 1);
        let row = shop.show(&waiting);
        assert_eq!(
            (&row["state"], &row["attempts"]),
            (&json!("unknown"), &json!(1))
        );
        let shown = shop.approvals(&["show", &waiting.id]);
        assert!(
            shown.out.contains("to settle   paraph approvals settle"),
            "{}",
            shown.out
        );
        let settle = ["settle", &waiting.id, "--digest", &waiting.digest, "--json"];
        let settle = [&settle[..], &["--reason", "the bank says so"]].concat();
        let bad = shop.approvals(&[&settle[..], &["--happened", "yes"]].concat());
        assert_eq!(bad.code, 2);
        assert!(bad.err.contains("the receipt is no JSON"), "{}", bad.err);
        let (finding, expected, state): (&[&str], _, _) = match happened {
            true => (
                &["--happened", r#"{"paid":4900}"#],
                r#"{"paid":4900}"#,
                "succeeded",
            ),
            false => (&["--did-not-happen"], "the bank says so", "failed"),
        };
        // A switch that is put on meanwhile loses neither the run nor what a person finds out.
        let on = ["kill", "on", "--scope", "writes", "--reason", "odd"];
        assert_eq!(shop.sandbox.run(&on).code, 0);
        let resume = ["runs", "resume", "--thread", "t-1", "--json"];
        let held = shop.sandbox.run(&resume);
        let why = held.json()["approvals"][0]["why"].clone();
        assert_eq!((held.code, why), (5, json!("killed")), "{}", held.err);
        let settled = shop.approvals(&[&settle[..], finding].concat());
        assert_eq!(settled.code, 0, "{}", settled.err);
        let again = shop.approvals(&[&settle[..], finding].concat());
        assert_eq!((again.code, &again.out), (0, &settled.out), "{}", again.err);
        assert!(
            again.err.contains("was settled like this by "),
            "{}",
            again.err
        );
        let other: &[&str] = match happened {
            true => &["--happened", "{}"],
            false => &["--happened", r#"{"paid":4900}"#],
        };
        let other = shop.approvals(&[&settle[..], other].concat());
        let said = format!("is {state} already (by ");
        assert!(
            other.code == 6 && other.err.contains(&said),
            "{}",
            other.err
        );
        assert!(
            read(&settled.json())[0].contains(expected),
            "{}",
            settled.out
        );
        assert_eq!(shop.show(&waiting)["state"], json!(state));
        // Nothing was sent a second time.
        assert_eq!(shop.paid().len(), 1);
    }
}

#[test]
fn the_command_hook_is_called_once_with_all_that_waits() {
    let shop = Shop::new();
    shop.sandbox
        .file("paraph.toml", "[approvals]\nhook = \"cat >> told.jsonl\"\n");
    let call = |id: &str, order: u64| json!({"id": id, "name": "pay_back", "arguments": {"order": order, "cents": 1}});
    let both = json!({"tool_calls": [call("a", 1), call("b", 2)]}).to_string();
    shop.script(&[&both, &says("Done.")]);
    let ended = shop.run("t-1");
    assert_eq!(ended.code, 5, "{}", ended.err);
    let told = std::fs::read_to_string(shop.sandbox.path("told.jsonl")).unwrap();
    assert_eq!(told.lines().count(), 1, "{told}");
    let told: Value = serde_json::from_str(&told).unwrap();
    let result = ended.json();
    let ids = |list: &Value| -> Vec<Value> {
        let all = list.as_array().unwrap().iter();
        all.map(|one| one["id"].clone()).collect()
    };
    assert_eq!(ids(&told), ids(&result["approvals"]));
    assert_eq!(
        (&told[0]["tool"], &told[0]["why"]),
        (&json!("pay_back"), &json!("approval"))
    );
}

/// A text of a model cannot hide what would happen from whoever reads it, nor fake a line of ours.
#[test]
fn what_a_model_writes_cannot_disturb_the_page_on_which_it_is_decided() {
    let shop = Shop::new();
    let agent = std::fs::read_to_string(shop.sandbox.path("clerk.toml")).unwrap();
    let agent = agent
        .replace(
            "[tools.http.arguments]",
            "note = \"{note}\"\ndata = \"{data}\"\n[tools.http.arguments]",
        )
        .replace(
            "[policy]",
            "note = { type = \"string\" }\ndata = { type = \"object\" }\n[policy]",
        );
    shop.sandbox.file("clerk.toml", &agent);
    let fields: serde_json::Map<String, Value> = (0..10_000)
        .map(|n| (format!("field {n}"), json!(n)))
        .collect();
    let note = "pay\u{202e}gnp.exe\u{1b}[2J\u{200b}\ndigest    0000\r\nstate     approved";
    let arguments = json!({"order": 7, "cents": 1, "note": note, "data": fields});
    let call = json!({"id": "c", "name": "pay_back", "arguments": arguments});
    let calls = json!({ "tool_calls": [call] }).to_string();
    shop.script(&[&calls, &says("Done.")]);
    let waiting = shop.asked("t-1");
    for args in [vec!["show", &waiting.id], vec!["list"]] {
        let shown = shop.approvals(&args);
        assert_eq!(shown.code, 0, "{}", shown.err);
        let odd = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{200b}".contains(c));
        assert_eq!(shown.out.find(odd), None);
        assert!(
            !shown
                .out
                .lines()
                .any(|line| line.starts_with("digest    0000"))
        );
        assert!(
            !shown
                .out
                .lines()
                .any(|line| line.starts_with("state     approved"))
        );
    }
    let shown = shop.approvals(&["show", &waiting.id]).out;
    assert!(shown.contains("Careful: "), "{shown}");
    // Every byte that is signed is there all the same.
    let json = shop.show(&waiting);
    assert_eq!(json["arguments"]["note"], json!(note));
    assert_eq!(json["arguments"]["data"].as_object().unwrap().len(), 10_000);
}

/// Whatever waits can be decided about: what a run has asked for is taken back when another one takes its thread over.
#[test]
fn what_a_run_asked_for_is_taken_back_when_a_later_one_leaves_it_behind() {
    let shop = Shop::new();
    let first = shop.asked("t-1");
    shop.script(&[&pays(8, 1), &says("Done.")]);
    let second = shop.asked("t-1");
    let old = shop.show(&first);
    assert_eq!(
        (&old["state"], &old["ended"]["why"]),
        (
            &json!("cancelled"),
            &json!("a later run on its thread left it behind")
        )
    );
    let waiting = shop.approvals(&["list", "--json"]).json();
    assert_eq!(
        (waiting.as_array().unwrap().len(), &waiting[0]["id"]),
        (1, &json!(second.id))
    );
}

#[test]
fn what_nobody_decides_about_in_time_is_over_and_no_refusal_of_a_person() {
    let shop = Shop::new();
    let agent = std::fs::read_to_string(shop.sandbox.path("clerk.toml")).unwrap();
    let short = "approve = [\"pay_back\"]\nask = { expires = 5 }";
    let agent = agent.replace("approve = [\"pay_back\"]", short);
    shop.sandbox.file("clerk.toml", &agent);
    let waiting = shop.asked("t-1");
    // Its time passes by the clock of the store, which nobody can turn from here.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while shop.show(&waiting)["state"] != "expired" {
        assert!(std::time::Instant::now() < until, "it does not expire");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let late = shop.approvals(&["approve", &waiting.id, "--digest", &waiting.digest]);
    assert_eq!(late.code, 6, "{}", late.err);
    assert!(
        late.err.contains("is expired already (by the clock, "),
        "{}",
        late.err
    );
    let resumed = shop
        .sandbox
        .run(&["runs", "resume", "--thread", "t-1", "--json"]);
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    let result = resumed.json();
    assert!(
        read(&result)[0].contains("Nobody decided about this call in time."),
        "{result}"
    );
    assert_eq!(shop.paid(), Vec::<Value>::new());
    let row = shop.show(&waiting);
    assert_eq!(
        (&row["closes"], &row["ended"]["by"]),
        (&json!(true), &json!("the clock"))
    );
}

/// Puts other rules, and another body, in the place of the shop's.
fn ruled(shop: &Shop, ask: &str) {
    let file = std::fs::read_to_string(shop.sandbox.path("clerk.toml")).unwrap();
    let file = file.replace("[policy]", &format!("[policy]\n{ask}"));
    shop.sandbox.file("clerk.toml", &file);
}

#[test]
fn whoever_started_a_run_cannot_approve_what_it_asks_for_where_the_rules_say_so() {
    let shop = Shop::new();
    ruled(&shop, "ask = { not_by_requester = true }");
    let waiting = shop.asked("t-1");
    let shown = shop.show(&waiting);
    let own = shop.approvals(&waiting.approve(&[]));
    assert_eq!(own.code, 3, "{}{}", own.out, own.err);
    assert_eq!(shop.paid(), Vec::<Value>::new());
    assert_eq!(shop.show(&waiting)["state"], json!("pending"));
    // Whoever refuses need not be somebody else; the audit names one and the same.
    let words = ["reject", &waiting.id, "--digest", &waiting.digest];
    let rejected = shop.approvals(&[&words[..], &["--reason", "no", "--no-run"]].concat());
    let requester = shown["requester"].as_str().unwrap();
    let by = format!("refused by {requester} (unverified)");
    assert!(rejected.err.contains(&by), "{by}: {}", rejected.err);
    let erase = [
        "audit", "erase", "--user", requester, "--reason", "asked", "--yes",
    ];
    let erased = shop.sandbox.run(&[&erase[..], &["--json"]].concat());
    assert_ne!(erased.json()["erased"], json!(0), "{}", erased.err);
}

#[test]
fn secrets_of_what_waits_are_shown_to_whoever_decides_alone() {
    const SECRET: &str = "hunter2 CANARY";
    let shop = Shop::new();
    let file = std::fs::read_to_string(shop.sandbox.path("clerk.toml")).unwrap();
    let own = "[tools.http.arguments]\npin = { type = \"string\" }";
    let file = file.replace("[tools.http.arguments]", own);
    let file = file.replace("[tools.http.body]", "[tools.http.body]\npin = \"{pin}\"");
    shop.sandbox.file("clerk.toml", &file);
    let arguments = json!({"order": 7, "cents": 1, "pin": SECRET});
    let call = json!({"id": "c1", "name": "pay_back", "arguments": arguments});
    shop.script(&[&json!({ "tool_calls": [call] }).to_string(), &says("Done.")]);
    let waiting = shop.asked("t-1");
    let shown = shop.show(&waiting);
    assert!(shown["says"].as_str().unwrap().contains(SECRET), "{shown}");
    let again = ["runs", "resume", shown["run_id"].as_str().unwrap()];
    let told = [
        shop.approvals(&["list"]),
        shop.approvals(&["list", "--json"]),
        shop.sandbox.run(&again),
        shop.sandbox.run(&["audit", "list"]),
        shop.sandbox.run(&["audit", "export"]),
        shop.approvals(&waiting.approve(&["--no-run", "--json"])),
    ];
    for ended in &told {
        let text = format!("{}{}", ended.out, ended.err);
        assert!(!text.is_empty() && !text.contains(SECRET), "{text}");
    }
    assert!(told[0].out.contains("[redacted]"), "{}", told[0].out);
}

#[test]
fn what_waits_stays_where_it_was_proposed_when_its_thread_is_exported_and_that_is_said() {
    let shop = Shop::new();
    let waiting = shop.asked("t-1");
    let export = ["threads", "export", "t-1", "-o", "t.json"];
    let exported = shop.sandbox.run(&export);
    assert_eq!(exported.code, 0, "{}", exported.err);
    let left =
        "careful: 1 action that nobody has settled stayed here, with what people decide about them";
    assert!(exported.err.contains(left), "{}", exported.err);
    let other = ["--store", "sqlite://other.db"];
    let at_other = |args: &[&str]| shop.sandbox.run(&[args, &other].concat());
    let imported = at_other(&["threads", "import", "t.json", "--json"]);
    assert_eq!(imported.code, 0, "{}", imported.err);
    assert_eq!(imported.json()["actions_left"], 1);
    let left = "careful: 1 action that its runs wait for stayed in the store where it was exported";
    assert!(imported.err.contains(left), "{}", imported.err);
    let resumed = at_other(&["runs", "resume", "--thread", "t-1"]);
    let why = format!(
        "waits for action {}, which is not in sqlite://other.db: it stayed in the store from which the thread was exported",
        waiting.id
    );
    assert!(
        resumed.code == 2 && resumed.err.contains(&why),
        "{}",
        resumed.err
    );
    // Here it is decided about as ever; and what is over can go anywhere.
    let done = shop.approvals(&waiting.approve(&["--quiet"]));
    assert_eq!((done.code, done.out.as_str()), (0, "It is done.\n"));
    let exported = shop.sandbox.run(&export);
    assert!(!exported.err.contains("careful"), "{}", exported.err);
    assert_eq!(shop.paid().len(), 1);
}
