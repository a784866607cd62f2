//! Agents that another one called and whose effects wait for people: which run goes on, and whose questions end with it.

use crate::approvals::{Shop, pays, says};
use serde_json::{Value, json};

/// A clerk that has a payer pay back.
fn called(shop: &Shop) {
    let asks = json!({"id": "a", "name": "payer", "arguments": {"task": "Pay order 7 back."}});
    let asks = json!({ "tool_calls": [asks] }).to_string();
    let done = says("Done.");
    shop.sandbox
        .file("clerk.jsonl", &[asks, done.clone()].join("\n"));
    shop.sandbox
        .file("payer.jsonl", &[pays(7, 4900), done].join("\n"));
    let agent = format!(
        r#"
name = "clerk"
prompt = "Serve."
model = "scripted:clerk.jsonl"
tools = {{ agents = ["payer"] }}
budget = {{ max_children = 2, max_seconds = 600 }}
[agents.payer]
about = "Pays back"
prompt = "Pay."
model = "scripted:payer.jsonl"
[[agents.payer.tools.http]]
name = "pay_back"
description = "Pays money back."
method = "POST"
url = "{}/refunds"
plain_http = true
body = {{ order = "{{order}}", cents = "{{cents}}" }}
arguments = {{ order = {{ type = "integer" }}, cents = {{ type = "integer" }} }}
[agents.payer.policy]
approve = ["pay_back"]
"#,
        shop.server.url()
    );
    shop.sandbox.file("clerk.toml", &agent);
}

/// Begins a run whose payer comes to wait: what it waits for, as listings have it.
fn waits(shop: &Shop, thread: &str) -> Value {
    let run = ["run", "clerk.toml", "Pay.", "--json", "--quiet"];
    let ended = shop
        .sandbox
        .run(&[&run[..], &["--thread", thread]].concat());
    assert_eq!(ended.code, 5, "{}{}", ended.out, ended.err);
    let id = ended.json()["approvals"][0]["id"].clone();
    let listed = shop.approvals(&["list", "--json"]).json();
    let rows = listed.as_array().unwrap();
    rows.iter().find(|row| row["id"] == id).unwrap().clone()
}

/// The newest run on this very thread.
fn run_on(shop: &Shop, thread: &str) -> String {
    let shown = ["runs", "show", "--thread", thread, "--json"];
    let shown = shop.sandbox.run(&shown).json();
    shown["run_id"].as_str().unwrap().to_owned()
}

fn state(shop: &Shop, row: &Value) -> Value {
    let id = row["id"].as_str().unwrap();
    shop.approvals(&["show", id, "--json"]).json()["state"].clone()
}

#[test]
fn of_threads_with_long_names_that_begin_alike_the_right_one_goes_on() {
    let shop = Shop::new();
    called(&shop);
    let long = "x".repeat(150);
    let threads = ["a", "b"].map(|end| format!("{long}{end}"));
    let [one, other] = [0, 1].map(|index| waits(&shop, &threads[index]));
    let text = |name: &str| other[name].as_str().unwrap();
    let (id, digest) = (text("id"), text("digest"));
    let approved = ["approve", id, "--digest", digest, "--json", "--quiet"];
    let approved = shop.approvals(&approved);
    assert_eq!(approved.code, 0, "{}{}", approved.out, approved.err);
    assert_eq!(approved.json()["answer"], json!("Done."));
    assert_eq!(shop.paid(), [json!({"order": 7, "cents": 4900})]);
    assert_eq!(state(&shop, &one), json!("pending"));
    // The one that was called is none that a person goes on with.
    let child = one["run_id"].as_str().unwrap();
    let resumed = shop.sandbox.run(&["runs", "resume", child]);
    let caller = run_on(&shop, &threads[0]);
    let said = format!(
        "run {child} is that of an agent which another called, and goes on with its caller: paraph runs resume {caller}\n"
    );
    assert_eq!(
        (resumed.code, resumed.err.ends_with(&said)),
        (2, true),
        "{}",
        resumed.err
    );
}

#[test]
fn what_a_later_run_s_agents_ask_for_stays_when_an_older_run_of_the_thread_is_cancelled() {
    let shop = Shop::new();
    called(&shop);
    let first = waits(&shop, "t");
    let older = run_on(&shop, "t");
    let second = waits(&shop, "t");
    // The second run left the first behind, and took back what that had asked for.
    assert_eq!(state(&shop, &first), json!("cancelled"));
    let newer = run_on(&shop, "t");
    assert_ne!(older, newer);
    let cancelled = shop.sandbox.run(&["runs", "cancel", &older]);
    assert_eq!(cancelled.code, 0, "{}{}", cancelled.out, cancelled.err);
    assert_eq!(state(&shop, &second), json!("pending"));
    let cancelled = shop.sandbox.run(&["runs", "cancel", &newer]);
    assert_eq!(cancelled.code, 0, "{}{}", cancelled.out, cancelled.err);
    assert_eq!(state(&shop, &second), json!("cancelled"));
    assert_eq!(shop.paid(), Vec::<Value>::new());
}

#[test]
fn a_thread_stays_as_long_as_an_agent_that_was_called_there_waits() {
    let shop = Shop::new();
    called(&shop);
    let row = waits(&shop, "t-1");
    waits(&shop, "t-2");
    let delete = ["threads", "delete", "t-1", "--yes"];
    let refused = shop.sandbox.run(&delete);
    assert_eq!(refused.code, 6, "{}{}", refused.out, refused.err);
    let why = format!(
        "thread `t-1` is still needed: action {} of the agent payer, which was called there, is pending",
        row["id"].as_str().unwrap()
    );
    assert!(refused.err.contains(&why), "{why}: {}", refused.err);
    // Nothing is lost by it: the action is done, and then nothing holds the thread.
    let text = |name: &str| row[name].as_str().unwrap();
    let approve = ["approve", text("id"), "--digest", text("digest"), "--quiet"];
    let approved = shop.approvals(&approve);
    assert_eq!(approved.code, 0, "{}{}", approved.out, approved.err);
    assert_eq!(shop.paid(), [json!({"order": 7, "cents": 4900})]);
    let deleted = shop.sandbox.run(&delete);
    assert_eq!(deleted.code, 0, "{}{}", deleted.out, deleted.err);
}

#[test]
fn what_a_called_agent_waits_for_is_not_lost_by_a_switch_for_its_caller() {
    for scope in ["agent:clerk", "tool:payer", "global", "tenant:local"] {
        let shop = Shop::new();
        called(&shop);
        let row = waits(&shop, "t");
        let run = run_on(&shop, "t");
        let switch = |how: &str| {
            let mut args = vec!["kill", how, "--scope", scope];
            args.extend(
                ["--reason", "odd refunds"]
                    .iter()
                    .take(2 * usize::from(how == "on")),
            );
            let put = shop.sandbox.run(&args);
            assert_eq!(put.code, 0, "{scope}: {}", put.err);
        };
        switch("on");
        let id = row["id"].as_str().unwrap();
        let digest = row["digest"].as_str().unwrap();
        let approve = ["approve", id, "--digest", digest, "--json"];
        let held = [
            shop.sandbox.run(&["runs", "resume", &run, "--json"]),
            shop.approvals(&approve),
        ];
        for held in held {
            assert_eq!(held.code, 5, "{scope}: {}{}", held.out, held.err);
            let asked = &held.json()["approvals"][0];
            assert_eq!(
                (asked["id"].as_str(), asked["why"].as_str()),
                (Some(id), Some("killed")),
                "{scope}"
            );
            let told = format!("the kill switch is on for {scope} (by ");
            assert_eq!(held.err.matches(&told).count(), 1, "{scope}: {}", held.err);
        }
        assert_eq!(shop.paid(), Vec::<Value>::new(), "{scope}");
        switch("off");
        let done = shop.approvals(&approve);
        assert_eq!(done.code, 0, "{scope}: {}{}", done.out, done.err);
        assert_eq!(done.json()["answer"], "Done.", "{scope}");
        assert_eq!(shop.paid(), [json!({"order": 7, "cents": 4900})], "{scope}");
    }
}
