//! Effects by HTTP, out of configuration alone: what each way in which a request can end means for the action, for the
//! run, and for how often anything is sent.

use crate::approvals::{Shop, Waiting, pays, read, says};
use crate::sandbox::{Ended, Sandbox};
use crate::stand_in::{Answer, Manner, Seen, StandIn};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What was done under each key, however often it was sent.
type Till = Arc<Mutex<BTreeMap<String, Value>>>;

/// A service that pays once for a key, tells by GET what it paid, and answers a payment by this: it is given how often
/// it was asked for one.
fn till(paying: impl Fn(usize, &Till, &Seen) -> Answer + Send + Sync + 'static) -> (Shop, Till) {
    let till = Till::default();
    let (kept, asked) = (till.clone(), Mutex::new(0));
    let shop = Shop::answering(move |seen| {
        if seen.method == "GET" {
            let key = seen.path().rsplit('/').next().unwrap();
            return match kept.lock().unwrap().get(key) {
                Some(paid) => Answer::json(200, paid),
                None => Answer::json(404, &json!({"error": "no such refund"})),
            };
        }
        let mut asked = asked.lock().unwrap();
        *asked += 1;
        paying(*asked, &kept, seen)
    });
    (shop, till)
}

/// Writes it down under its key.
fn pay(till: &Till, seen: &Seen) {
    let key = seen.header("idempotency-key").unwrap().to_owned();
    till.lock()
        .unwrap()
        .entry(key)
        .or_insert(json!({"paid": seen.json().unwrap()["cents"]}));
}

/// The clerk of this shop with more settings for its tool.
fn clerk(sandbox: &Sandbox, url: &str, more: &str) {
    let agent = format!(
        r#"
name = "clerk"
prompt = "Serve."
budget = {{ max_seconds = 600 }}
[[tools.http]]
name = "pay_back"
description = "Pays money back."
method = "POST"
url = "{url}/refunds"
{more}
body = {{ order = "{{order}}", cents = "{{cents}}" }}
arguments = {{ order = {{ type = "integer" }}, cents = {{ type = "integer" }} }}
[policy]
approve = ["pay_back"]
"#
    );
    sandbox.file("clerk.toml", &agent);
}

fn looked_up(shop: &Shop) -> String {
    let url = shop.server.url();
    format!("timeout_seconds = 1\nlookup_url = \"{url}/refunds/{{idempotency_key}}\"")
}

fn approved(shop: &Shop, waiting: &Waiting) -> Ended {
    shop.approvals(&waiting.approve(&["--json"]))
}

/// How often each method was asked for.
fn asked(shop: &Shop) -> Vec<String> {
    let seen = shop.server.seen();
    seen.into_iter().map(|seen| seen.method).collect()
}

/// The keys under which payments were sent.
fn keys(shop: &Shop) -> Vec<String> {
    let seen = shop.server.seen();
    let posts = seen.iter().filter(|seen| seen.method == "POST");
    posts
        .map(|seen| seen.header("idempotency-key").unwrap().to_owned())
        .collect()
}

/// What a person signs says what the run had read before it asked, and that is looked up where it is shown.
#[test]
fn an_effect_rests_on_what_the_run_had_read() {
    let shop = Shop::new();
    let looks = r#"builtin = ["think"]"#;
    let file = shop.sandbox.path("clerk.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text.replace(
        "prompt = \"Serve.\"",
        &format!("prompt = \"Serve.\"\n[tools]\n{looks}"),
    );
    shop.sandbox.file("clerk.toml", &text);
    let thinks = json!({"tool_calls": [{"id": "t", "name": "think", "arguments": {"reflection": "It is due."}}]});
    shop.script(&[&thinks.to_string(), &pays(7, 4900), &says("It is done.")]);
    let waiting = shop.asked("t");
    let evidence = shop.show(&waiting)["evidence"].clone();
    let hash = evidence["hash"].as_str().unwrap().to_owned();
    assert_eq!(evidence, json!({"calls": 1, "hash": hash, "holds": true}));
    let shown = shop.approvals(&["show", &waiting.id]).out;
    let line = format!("rests on  1 result that the run had read, {hash}\n");
    assert!(shown.contains(&line), "{shown}");
}

#[test]
fn where_nobody_listens_nothing_happened_and_the_model_reads_so() {
    let shop = Shop::new();
    let gone = StandIn::start(|_| Answer::json(200, &json!({})));
    let url = gone.url();
    drop(gone);
    clerk(&shop.sandbox, &url, "");
    let waiting = shop.asked("t");
    let ended = approved(&shop, &waiting);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    let result = ended.json();
    assert_eq!(
        (&result["status"], &result["trace"][0]["stop_reason"]),
        (&json!("ok"), &json!("tool_error:pay_back"))
    );
    assert!(
        read(&result)[0].contains("could not be reached"),
        "{result}"
    );
    let row = shop.show(&waiting);
    assert_eq!(
        (&row["state"], &row["attempts"]),
        (&json!("failed"), &json!(1)),
        "{row}"
    );
}

#[test]
fn a_failing_server_that_had_paid_is_looked_up_and_not_asked_again() {
    let (shop, till) = till(|_, till, seen| {
        pay(till, seen);
        Answer::json(503, &json!({"error": "overloaded"}))
    });
    clerk(&shop.sandbox, &shop.server.url(), &looked_up(&shop));
    let waiting = shop.asked("t");
    let ended = approved(&shop, &waiting);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert_eq!(read(&ended.json()), [r#"{"paid":4900}"#]);
    assert!(
        ended
            .err
            .contains("nobody saw what came of it; looking again in 2 s"),
        "{}",
        ended.err
    );
    assert_eq!(shop.show(&waiting)["state"], json!("succeeded"));
    assert_eq!(asked(&shop), ["POST", "GET"]);
    assert_eq!(till.lock().unwrap().len(), 1);
}

#[test]
fn a_silent_server_that_recognises_keys_is_asked_again_under_the_same_key() {
    let (shop, till) = till(|asked, till, seen| match asked {
        1 => Answer::json(200, &json!({})).sent(Manner::Silent),
        _ => {
            pay(till, seen);
            Answer::json(200, &json!({"paid": 4900}))
        }
    });
    let settings = "timeout_seconds = 1\nrecognises_key = true";
    clerk(&shop.sandbox, &shop.server.url(), settings);
    let waiting = shop.asked("t");
    let ended = approved(&shop, &waiting);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert_eq!(read(&ended.json()), [r#"{"paid":4900}"#]);
    let keys = keys(&shop);
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    assert_eq!(till.lock().unwrap().len(), 1);
    let row = shop.show(&waiting);
    assert_eq!(
        (&row["state"], &row["attempts"]),
        (&json!("succeeded"), &json!(2))
    );
}

#[cfg(unix)]
#[test]
fn killed_between_the_request_and_its_answer_it_is_looked_up_and_not_sent_again() {
    let (shop, till) = till(|_, till, seen| {
        pay(till, seen);
        Answer::json(200, &json!({})).sent(Manner::Silent)
    });
    let settings = looked_up(&shop).replace("= 1\n", "= 600\n");
    clerk(&shop.sandbox, &shop.server.url(), &settings);
    let waiting = shop.asked("t");
    let decide = [&["approvals"], &waiting.approve(&["--quiet"])[..]].concat();
    let mut driving = shop.sandbox.command(&decide);
    let quiet = std::process::Stdio::null;
    driving.stdin(quiet()).stdout(quiet()).stderr(quiet());
    let mut driving = driving.spawn().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while till.lock().unwrap().is_empty() {
        assert!(std::time::Instant::now() < until, "nothing was sent");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    driving.kill().unwrap();
    driving.wait().unwrap();
    assert_eq!(shop.show(&waiting)["state"], json!("executing"));
    shop.script(&[&pays(7, 4900), &says("It is done.")]);
    let resumed = ["runs", "resume", "--thread", "t", "--json"];
    let ended = shop.sandbox.run(&resumed);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert_eq!(read(&ended.json()), [r#"{"paid":4900}"#]);
    assert_eq!(asked(&shop), ["POST", "GET"]);
    assert_eq!(shop.show(&waiting)["state"], json!("succeeded"));
}

#[cfg(unix)]
#[test]
fn killed_during_the_request_it_can_be_settled_though_the_agents_file_is_another_by_now() {
    let (shop, till) = till(|_, till, seen| {
        pay(till, seen);
        Answer::json(200, &json!({})).sent(Manner::Silent)
    });
    shop.sandbox.file("paraph.toml", "lease_seconds = 2\n");
    clerk(&shop.sandbox, &shop.server.url(), "plain_http = true");
    let waiting = shop.asked("t");
    let decide = [&["approvals"], &waiting.approve(&["--quiet"])[..]].concat();
    let mut driving = shop.sandbox.command(&decide);
    let quiet = std::process::Stdio::null;
    driving.stdin(quiet()).stdout(quiet()).stderr(quiet());
    let mut driving = driving.spawn().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while till.lock().unwrap().is_empty() {
        assert!(std::time::Instant::now() < until, "nothing was sent");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let (id, digest) = (&waiting.id, &waiting.digest);
    let words = [
        "settle",
        id,
        "--digest",
        digest,
        "--reason",
        "the till says so",
    ];
    let settle = || shop.approvals(&[&words[..], &["--happened", r#"{"paid":4900}"#]].concat());
    // As long as somebody sees to it, nobody else says what came of it.
    let early = settle();
    assert_eq!(early.code, 6, "{}{}", early.out, early.err);
    assert!(
        early.err.contains("is driven by a process"),
        "{}",
        early.err
    );
    driving.kill().unwrap();
    driving.wait().unwrap();
    let file = std::fs::read_to_string(shop.sandbox.path("clerk.toml")).unwrap();
    shop.sandbox
        .file("clerk.toml", &file.replace("Serve.", "Serve well."));
    let resumed = shop.sandbox.run(&["runs", "resume", "--thread", "t"]);
    assert_eq!(resumed.code, 2, "{}{}", resumed.out, resumed.err);
    while settle().err.contains("executing") {
        assert!(std::time::Instant::now() < until, "it is stuck");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let row = shop.show(&waiting);
    assert_eq!(
        (&row["state"], &row["receipt"], &row["ended"]["why"]),
        (
            &json!("succeeded"),
            &json!({"paid": 4900}),
            &json!("the till says so")
        )
    );
    let check = shop.sandbox.run(&["audit", "verify"]);
    assert_eq!(check.code, 0, "{}{}", check.out, check.err);
    assert_eq!(asked(&shop), ["POST"]);
}

#[test]
fn a_refusal_closes_what_the_file_says_that_a_call_is_about_and_the_place_it_goes_to_is_signed() {
    let shop = Shop::new();
    clerk(
        &shop.sandbox,
        &shop.server.url(),
        "subject = \"order {order}\"",
    );
    shop.script(&[&pays(7, 4900), &pays(7, 4901), &pays(8, 1), &says("No.")]);
    let waiting = shop.asked("t-1");
    let shown = shop.show(&waiting);
    let place = format!("POST {}/refunds", shop.server.url());
    assert_eq!(
        (&shown["subject"], &shown["targets"]),
        (&json!("order 7"), &json!({ "sent to": place }))
    );
    let words = shop.approvals(&["show", &waiting.id]);
    assert!(words.out.contains(&place), "{}", words.out);
    let reject = ["reject", &waiting.id, "--digest", &waiting.digest];
    let refused = shop.approvals(&[&reject[..], &["--reason", "paid already", "--json"]].concat());
    // The other amount for the same order is refused at once; another order is another matter.
    assert_eq!(refused.code, 5, "{}{}", refused.out, refused.err);
    let result = refused.json();
    let read = read(&result);
    assert_eq!(read.len(), 2, "{read:?}");
    assert!(
        read.iter().all(|read| read.contains("paid already")),
        "{read:?}"
    );
    let next = result["approvals"][0]["says"].as_str().unwrap();
    assert!(next.contains(r#"{"cents":1,"order":8}"#), "{next}");
    assert_eq!(asked(&shop), Vec::<String>::new());
}
