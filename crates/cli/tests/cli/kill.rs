//! Kill switches: put on in one process, met by the others; and the chain that tells of all of it.

use crate::approvals::{Shop, pays};
use crate::sandbox::Sandbox;
use serde_json::{Value, json};

#[test]
fn a_switch_stops_runs_until_it_is_taken_off() {
    let shop = Shop::new();
    let sandbox = &shop.sandbox;
    let on = sandbox.run(&["kill", "on", "--scope", "agent:clerk", "--reason", "odd"]);
    assert_eq!(on.code, 0, "{}", on.err);
    assert!(
        on.out.contains("paraph kill off --scope agent:clerk"),
        "{}",
        on.out
    );
    let status = sandbox.run(&["kill", "status", "--json"]).json();
    assert_eq!(
        (&status[0]["scope"], &status[0]["reason"]),
        (&json!("agent:clerk"), &json!("odd"))
    );
    let stopped = shop.run("t-1");
    assert_eq!(
        (stopped.code, stopped.reason().as_str()),
        (3, "killed_global")
    );
    let off = sandbox.run(&["kill", "off", "--scope", "agent:clerk"]);
    assert_eq!(
        (off.code, off.out.as_str()),
        (0, "the kill switch is off for agent:clerk\n")
    );
    let none = sandbox.run(&["kill", "status"]);
    assert!(none.err.contains("no kill switch is on"), "{}", none.err);
    let twice = sandbox.run(&["kill", "off", "--scope", "agent:clerk"]);
    assert_eq!(twice.code, 2);
    assert!(twice.err.contains("(none is on)"), "{}", twice.err);
    shop.asked("t-2");
}

#[test]
fn what_was_approved_and_not_started_is_decided_about_anew() {
    let shop = Shop::new();
    let waiting = shop.asked("t-1");
    let approve = ["approve", &waiting.id, "--digest", &waiting.digest];
    shop.approvals(&[&approve[..], &["--no-run"]].concat());
    let on = [
        "kill", "on", "--scope", "writes", "--reason", "odd", "--json",
    ];
    let on = shop.sandbox.run(&on).json();
    assert_eq!(on, json!({"scope": "writes", "on": true, "held": 1}));
    let held = shop.approvals(&["show", &waiting.id, "--json"]).json();
    assert_eq!(
        (&held["state"], &held["votes"]),
        (&json!("held"), &json!([]))
    );
    shop.sandbox.run(&["kill", "off", "--scope", "writes"]);
    let waits = shop
        .sandbox
        .run(&["runs", "resume", "--thread", "t-1", "--json"]);
    assert_eq!(waits.code, 5, "{}", waits.err);
    assert_eq!(shop.server.seen().len(), 0);
    let approved = shop.approvals(&[&approve[..], &["--quiet"]].concat());
    assert_eq!((approved.code, approved.out.as_str()), (0, "It is done.\n"));
    assert_eq!(shop.server.seen().len(), 1);
}

#[test]
fn what_a_run_asked_for_is_taken_back_when_it_ends_without_it() {
    let shop = Shop::new();
    let waiting = shop.asked("t-1");
    let approve = ["approve", &waiting.id, "--digest", &waiting.digest];
    let signed = shop.approvals(&[&approve[..], &["--no-run"]].concat());
    assert_eq!(signed.code, 0, "{}", signed.err);
    let end = shop.sandbox.run(&["runs", "cancel", "--thread", "t-1"]);
    assert!(end.err.contains("taken back"), "{}", end.err);
    let asked = shop.asked("t-2");
    shop.sandbox.run(&["runs", "cancel", "--thread", "t-2"]);
    // Whoever had approved it is told as well how it ended.
    for (waiting, why) in [
        (waiting, "its run was cancelled"),
        (asked, "its run was cancelled"),
    ] {
        let row = shop.approvals(&["show", &waiting.id, "--json"]).json();
        assert_eq!(
            (&row["state"], &row["ended"]["why"]),
            (&json!("cancelled"), &json!(why))
        );
        let late = ["approve", &waiting.id, "--digest", &waiting.digest];
        let late = shop.approvals(&late);
        assert_eq!(late.code, 6, "{}", late.err);
        assert!(late.err.contains("is cancelled already"), "{}", late.err);
    }
    assert_eq!(shop.server.seen().len(), 0);
}

#[test]
fn what_waits_or_is_approved_under_a_switch_is_not_lost_by_it() {
    let shop = Shop::new();
    let [pending, approved] = ["t-1", "t-2"].map(|thread| shop.asked(thread));
    let on = ["kill", "on", "--scope", "writes", "--reason", "odd refunds"];
    shop.sandbox.run(&on);
    let says = "the kill switch is on for writes (by ";
    let resume = |thread: &'static str| {
        let resume = ["runs", "resume", "--thread", thread, "--json"];
        shop.sandbox.run(&resume)
    };
    let waits = [
        resume("t-1"),
        shop.approvals(&approved.approve(&["--json"])),
    ];
    for waits in &waits {
        assert_eq!(
            (waits.code, waits.json()["approvals"][0]["why"].as_str()),
            (5, Some("killed")),
            "{}",
            waits.err
        );
        let told = waits.err.contains(says) && waits.err.contains(": odd refunds");
        assert!(told, "{}", waits.err);
    }
    // The listing of what waits names what nobody has to decide about, too.
    let listed = shop.approvals(&["list"]);
    let others = "1 action approved and not started: paraph approvals list --state approved\n";
    assert!(listed.err.contains(others), "{}", listed.err);
    let [one, other] = [&pending, &approved].map(|waiting| shop.show(waiting)["state"].clone());
    assert_eq!((one, other), (json!("pending"), json!("approved")));
    let shown = shop.approvals(&["show", &pending.id]);
    assert!(shown.err.contains(": odd refunds"), "{}", shown.err);
    let off = shop.sandbox.run(&["kill", "off", "--scope", "writes"]);
    let held = "off for writes; 1 action approved and not started: people decide anew";
    assert!(off.out.contains(held), "{}", off.out);
    assert_eq!(shop.server.seen().len(), 0);
    // What was approved is decided about anew, as what was held.
    let again = resume("t-2");
    let why = again.json()["approvals"][0]["why"].clone();
    assert_eq!((again.code, why), (5, json!("held")), "{}", again.err);
    for waiting in [&pending, &approved] {
        let done = shop.approvals(&waiting.approve(&["--quiet"]));
        assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    }
    assert_eq!(shop.server.seen().len(), 2);
}

#[test]
fn a_switch_is_for_one_name_and_says_so_if_nobody_has_it() {
    let shop = Shop::new();
    shop.asked("t-1");
    let on = |scope: &str| {
        let on = ["kill", "on", "--scope", scope, "--reason", "odd"];
        shop.sandbox.run(&on)
    };
    for scope in ["tool:pay*", "agent:*", "tool:*"] {
        let refused = on(scope);
        assert_eq!(refused.code, 2, "{scope}: {}", refused.err);
        assert!(refused.err.contains("and no pattern"), "{}", refused.err);
    }
    for (scope, known) in [
        ("tool:pay_back", true),
        ("tool:pay-back", false),
        ("agent:clerk", true),
        ("agent:clerk.toml", false),
        ("agent:support", true),
        ("tool:issue_refund", true),
    ] {
        let put = on(scope);
        assert_eq!(put.code, 0, "{scope}: {}", put.err);
        let warned = put.err.contains("is known in");
        assert_eq!(warned, !known, "{scope}: {}", put.err);
    }
    let stopped = shop.run("t-2");
    assert_eq!(stopped.code, 3, "{}", stopped.err);
    let told = "the kill switch is on for agent:clerk (by ";
    assert!(stopped.err.contains(told), "{}", stopped.err);
}

#[test]
fn a_switch_names_what_it_stops_and_why() {
    let sandbox = Sandbox::new();
    let scope = sandbox.run(&["kill", "on", "--scope", "everything", "--reason", "x"]);
    assert_eq!(scope.code, 2);
    assert!(
        scope.err.contains("--scope: `everything` is no scope"),
        "{}",
        scope.err
    );
    let why = sandbox.run(&["kill", "on", "--scope", "global", "--reason", " "]);
    assert_eq!(why.code, 2);
    assert!(why.err.contains("--reason: say why"), "{}", why.err);
    // A switch can be put on before anything has run, and the first run meets it.
    let sandbox = Sandbox::new();
    let status = sandbox.run(&["kill", "status"]);
    assert!(
        status.err.contains("there is no store at "),
        "{}",
        status.err
    );
    let on = || sandbox.run(&["kill", "on", "--scope", "global", "--reason", "not yet"]);
    let first = on();
    let made = " yet, and it was made for this switch: runs on other stores go on";
    assert!(first.code == 0 && first.err.contains(made), "{}", first.err);
    let again = on();
    assert!(
        again.code == 0 && !again.err.contains(made),
        "{}",
        again.err
    );
    let doctor = sandbox.run(&["doctor"]);
    assert!(
        doctor.out.contains("on for global by ") && doctor.out.contains(": not yet"),
        "{}",
        doctor.out
    );
}

#[test]
fn the_audit_tells_who_decided_and_shows_that_nobody_changed_it() {
    let shop = Shop::new();
    let waiting = shop.asked("t-1");
    let approve = [
        "approve",
        &waiting.id,
        "--digest",
        &waiting.digest,
        "--quiet",
    ];
    shop.approvals(&approve);
    let listed = shop.sandbox.run(&["audit", "list", "--json"]).json();
    let kinds: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["event"]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "proposed",
            "decided",
            "revalidated",
            "attempt_started",
            "provider_replied"
        ]
    );
    let table = shop.sandbox.run(&["audit", "list"]);
    assert!(table.out.contains("(unverified)"), "{}", table.out);

    let anchored = shop
        .sandbox
        .run(&["audit", "anchor", "-o", "anchors.jsonl"]);
    assert_eq!(anchored.code, 0, "{}", anchored.err);
    let whole = shop
        .sandbox
        .run(&["audit", "verify", "--anchor", "anchors.jsonl", "--json"]);
    assert_eq!(whole.code, 0, "{}", whole.err);
    let whole = whole.json();
    assert_eq!(
        (&whole["whole"], &whole["entries"], &whole["attempts"]),
        (&json!(true), &json!(6), &json!(1))
    );
    assert_eq!(
        (&whole["anchored"], &whole["last_anchor_seq"]),
        (&json!(1), &json!(5))
    );
    let exported = shop.sandbox.run(&["audit", "export"]);
    assert_eq!(exported.out.lines().count(), 6);

    the_evidence_stands_alone(&shop, &waiting.id);

    // Another chain than the one that was anchored.
    let line = std::fs::read_to_string(shop.sandbox.path("anchors.jsonl")).unwrap();
    let mut other: Value = serde_json::from_str(&line).unwrap();
    other["seq"] = json!(2);
    shop.sandbox.file("other.jsonl", &format!("{other}\n"));
    let broken = shop
        .sandbox
        .run(&["audit", "verify", "--anchor", "other.jsonl"]);
    assert_eq!(broken.code, 6, "{}", broken.err);
    assert!(
        broken
            .out
            .starts_with("BROKEN  entry 2: it is not the entry that was anchored"),
        "{}",
        broken.out
    );
    shop.sandbox.file("none.jsonl", "x\n");
    let unreadable = shop
        .sandbox
        .run(&["audit", "verify", "--anchor", "none.jsonl"]);
    assert_eq!(unreadable.code, 2);
    assert!(
        unreadable.err.contains("line 1: no anchor"),
        "{}",
        unreadable.err
    );
}

/// The pack of an action, looked at where there is nothing else.
fn the_evidence_stands_alone(shop: &Shop, id: &str) {
    let packed = ["audit", "pack", id, "-o", "evidence.json"];
    let packed = [&packed[..], &["--anchor", "anchors.jsonl"]].concat();
    let packed = shop.sandbox.run(&packed);
    assert_eq!(packed.code, 0, "{}", packed.err);
    let evidence = std::fs::read_to_string(shop.sandbox.path("evidence.json")).unwrap();
    // Whoever checks it has nothing but the file, and perhaps an anchor.
    let elsewhere = Sandbox::new();
    elsewhere.file("evidence.json", &evidence).file(
        "changed.json",
        &evidence.replace("\\\"cents\\\":4900", "\\\"cents\\\":4901"),
    );
    let verify = ["audit", "verify", "--json", "--pack"];
    let proven = elsewhere.run(&[&verify[..], &["evidence.json"]].concat());
    assert_eq!(proven.code, 0, "{}{}", proven.out, proven.err);
    let proven = proven.json();
    assert_eq!(
        (&proven["whole"], &proven["action"], &proven["attempts"]),
        (&json!(true), &json!(id), &json!(1))
    );
    let changed = elsewhere.run(&[&verify[..], &["changed.json"]].concat());
    assert_eq!((changed.code, &changed.json()["whole"]), (6, &json!(false)));
}

#[test]
fn a_switch_for_one_tool_leaves_the_others() {
    let shop = Shop::new();
    let on = ["kill", "on", "--scope", "tool:pay_back", "--reason", "odd"];
    assert_eq!(shop.sandbox.run(&on).code, 0);
    let stopped = shop.run("t-1");
    assert_eq!(
        (stopped.code, stopped.reason().as_str()),
        (3, "tool_disabled:pay_back")
    );
    shop.script(&[&json!({"content": "Hello."}).to_string(), &pays(1, 1)]);
    let fine = shop.run("t-2");
    assert_eq!((fine.code, &fine.json()["answer"]), (0, &json!("Hello.")));
}
