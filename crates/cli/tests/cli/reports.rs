//! Bug reports of other projects, turned around, as far as they concern the whole program. Each test begins with the
//! letter and number of the report in the project's own log of them.

use crate::approvals::{Shop, pays};
use serde_json::json;

fn says(text: &str) -> String {
    json!({ "content": text }).to_string()
}

/// An agent that calls one that calls one that calls one, whose tool a person has to approve.
fn deep(shop: &Shop) -> String {
    let asks = |name: &str| {
        json!({"tool_calls": [{"id": "a", "name": name, "arguments": {"task": "Pay back."}}]})
            .to_string()
    };
    for (name, next) in [("one", "two"), ("two", "three"), ("three", "four")] {
        let file = format!("{name}.jsonl");
        shop.sandbox
            .file(&file, &[asks(next), says("Done.")].join("\n"));
    }
    let pays = pays(7, 4900);
    shop.sandbox
        .file("four.jsonl", &[pays, says("Done.")].join("\n"));
    let above = |name: &str, next: &str| {
        format!(
            "[agents.{name}]\nabout = \"x\"\nprompt = \"x\"\nmodel = \"scripted:{name}.jsonl\"\n\
             tools = {{ agents = [\"{next}\"] }}\nbudget = {{ max_children = 4 }}\n"
        )
    };
    format!(
        r#"
name = "clerk"
prompt = "Serve."
model = "scripted:one.jsonl"
tools = {{ agents = ["two"] }}
budget = {{ max_children = 8, max_seconds = 600 }}
{}{}
[agents.four]
about = "Pays"
prompt = "Pay."
model = "scripted:four.jsonl"
[[agents.four.tools.http]]
name = "pay_back"
description = "Pays money back."
method = "POST"
url = "{}/refunds"
plain_http = true
body = {{ order = "{{order}}", cents = "{{cents}}" }}
arguments = {{ order = {{ type = "integer" }}, cents = {{ type = "integer" }} }}
[agents.four.policy]
approve = ["pay_back"]
"#,
        above("two", "three"),
        above("three", "four"),
        shop.server.url()
    )
}

/// D14, openai-agents-python#4414: what is approved three delegations deep did not run, or ran again. D22,
/// humanlayer#835: what waits inside an agent that was called was nowhere to be decided about.
#[test]
fn d14_d22_what_waits_three_agents_deep_is_listed_can_be_decided_about_and_is_done_once() {
    let shop = Shop::new();
    shop.sandbox.file("clerk.toml", &deep(&shop));
    let run = [
        "run",
        "clerk.toml",
        "Pay order 7 back.",
        "--thread",
        "t",
        "--json",
        "--quiet",
    ];
    let ended = shop.sandbox.run(&run);
    assert_eq!(ended.code, 5, "{}{}", ended.out, ended.err);
    // As many as the run says it waits for are in the list, and each of them takes a decision.
    let asked = ended.json()["approvals"].as_array().unwrap().clone();
    let listed = shop.approvals(&["list", "--json"]).json();
    assert_eq!((asked.len(), listed.as_array().unwrap().len()), (1, 1));
    assert_eq!(listed[0]["id"], asked[0]["id"]);
    let text = |name: &str| asked[0][name].as_str().unwrap().to_owned();
    let (id, digest) = (text("id"), text("digest"));
    assert_eq!(shop.server.seen(), []);
    let approved = shop.approvals(&["approve", &id, "--digest", &digest]);
    assert_eq!(approved.code, 0, "{}{}", approved.out, approved.err);
    let paid = || -> Vec<_> { shop.server.seen().iter().map(|seen| seen.json()).collect() };
    let once = [Some(json!({"order": 7, "cents": 4900}))];
    assert_eq!(paid(), once);
    assert_eq!(shop.approvals(&["list", "--json"]).json(), json!([]));
    let shown = shop.approvals(&["show", &id, "--json"]).json();
    assert_eq!(shown["state"], "succeeded", "{shown}");
    let runs = shop
        .sandbox
        .run(&["runs", "resume", "--thread", "t", "--json", "--quiet"]);
    assert_eq!(paid(), once, "{}{}", runs.out, runs.err);
}
