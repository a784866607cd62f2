//! Effects that say nothing of themselves: their words and their subject are made of the canonical arguments, and are
//! shown without secrets to everybody but whoever decides.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use paraph_gateway::*;
use serde_json::json;
use stage::{clocked, scope, seen, waits};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A gateway with a declared effect that takes anything, and how often that was done.
fn paying(store: Arc<dyn Store>, policy: Policy) -> (Gateway, Arc<AtomicUsize>) {
    let paid = Arc::new(AtomicUsize::new(0));
    let count = paid.clone();
    let mut pay = DynTool::new("pay", "Pays", json!({"type": "object"}), move |_: Json| {
        let count = count.clone();
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            Ok::<_, ToolError>("paid")
        }
    });
    pay.level = Level::Write;
    let gateway = Gateway::builder(store).dynamic(pay).policy(policy);
    (gateway.build().unwrap(), paid)
}

fn call(arguments: &str) -> ToolCall {
    ToolCall::native("pay", arguments)
}

/// The same arguments, written in other ways.
const SPELLINGS: [&str; 6] = [
    r#"{"cents":100,"order":"7"}"#,
    r#"{"cents":100.0,"order":"7"}"#,
    r#"{"cents":1e2,"order":"7"}"#,
    r#"{"cents":1.0E+2,"order":"7"}"#,
    r#"{"order":"7","cents":100}"#,
    r#"{ "cents" : 100, "order" : "\u0037" }"#,
];

#[tokio::test]
async fn what_was_refused_stays_refused_however_it_is_spelled() {
    let (store, _) = clocked(1_000_000);
    let policy = Policy::new().ask("pay", Ask::default());
    let (gateway, paid) = paying(store, policy);
    let session = gateway.session(scope(), Limits::unlimited()).await.unwrap();
    let first = waits(session.call("0", &call(SPELLINGS[2])).await.unwrap());
    assert_eq!(first.says, r#"Call `pay` with {"cents":100,"order":"7"}"#);
    let desk = gateway.approvals();
    let (id, digest) = (first.action, first.digest.as_str());
    desk.reject(id, digest, "ann", "not now").await.unwrap();
    for (n, spelling) in SPELLINGS.iter().enumerate() {
        let refused = session.call(&format!("again {n}"), &call(spelling)).await;
        let refused = match refused {
            // The same text a third time is a loop, which ends the run for its own reason.
            Err(Stop::LoopDetected) => continue,
            other => seen(other.unwrap()),
        };
        assert_eq!(
            refused.failure,
            Some(Failure::Rejected {
                tool: "pay".into(),
                why: "not now".into()
            }),
            "{spelling}"
        );
    }
    assert_eq!(paid.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_grant_signs_the_same_once_on_a_thread_however_it_is_spelled() {
    let (store, _) = clocked(1_000_000);
    let grant = Grant {
        at_most: vec![("/cents".into(), 500)],
        per_thread: Some(5),
        ..Grant::new("small", "pay", 10_000_000)
    };
    let policy = Policy::new().ask("pay", Ask::default()).grant(grant);
    let (gateway, paid) = paying(store.clone(), policy);
    for (n, spelling) in SPELLINGS.iter().enumerate() {
        let run = Scope {
            run: format!("run {n}"),
            ..scope()
        };
        let session = gateway.session(run, Limits::default()).await.unwrap();
        let reply = session.call("a", &call(spelling)).await.unwrap();
        if n == 0 {
            assert!(seen(reply).ok());
            continue;
        }
        // People are asked, and told that it was signed before.
        let asked = gateway.approvals().show(waits(reply).action).await.unwrap();
        assert!(asked.action.said.again.is_some(), "{spelling}");
    }
    assert_eq!(paid.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn secrets_of_a_declared_effect_stand_in_its_signed_bytes_alone() {
    const SECRETS: [&str; 3] = ["hunter2 CANARY", "0000CANARY", "sk-proj-CANARYcanary0123"];
    let (store, _) = clocked(1_000_000);
    let policy = Policy::new().ask("pay", Ask::default());
    let (gateway, _) = paying(store.clone(), policy);
    let session = gateway.session(scope(), Limits::default()).await.unwrap();
    let arguments = json!({
        "cents": 1, "password": SECRETS[0], "to": {"pin": SECRETS[1]}, "note": SECRETS[2],
    });
    let waiting = session.call("a", &call(&arguments.to_string())).await;
    let waiting = waits(waiting.unwrap());
    let desk = gateway.approvals();
    let (id, digest) = (waiting.action, waiting.digest.as_str());
    let edited = json!({"cents": 2, "password": SECRETS[0], "pin": SECRETS[1], "note": SECRETS[2]});
    let row = desk.show(id).await.unwrap();
    let new = gateway.edit(&row, digest, "ann", &edited.to_string()).await;
    let new = new.unwrap();
    let told = store.audit("local", 0, 100).await.unwrap();
    let told: String = told
        .iter()
        .map(|entry| format!("{} {}", entry.event, entry.detail.as_deref().unwrap_or("")))
        .collect();
    for secret in SECRETS {
        assert!(row.action.bytes.contains(secret), "whoever decides sees it");
        assert!(new.action.bytes.contains(secret), "whoever decides sees it");
        assert!(!waiting.says.contains(secret), "{}", waiting.says);
        assert!(!told.contains(secret), "{told}");
    }
    assert!(told.contains("[redacted]"), "{told}");
    assert!(waiting.says.contains(r#""cents":1"#), "{}", waiting.says);
    // Whoever wants it erased names it as it is.
    let whose = Whose::Subject(new.action.said.subject.clone());
    assert_eq!(desk.personal("local", &whose).await.unwrap().len(), 1);
}
