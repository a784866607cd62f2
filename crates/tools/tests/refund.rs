//! `issue_refund` through a gateway: asked for, approved, done once, looked up when nobody saw what came of it; in a
//! ledger, and at a stand-in for a service that counts.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stand_in;

use paraph_gateway::{
    Approvals, Ask, Gateway, Limits, MemoryStore, Observation, Policy, Reply, Scope, Session,
    State, Stop, Store, ToolCall, Waiting, Why,
};
use paraph_tools::{Base, Outbound, OutboundSettings, Refunds, issue_refund};
use serde_json::{Value, json};
use stand_in::{Answer, Manner, Seen, StandIn};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A gateway with the effect alone, at a store whose clock the test turns.
struct Stage {
    refunds: Refunds,
    store: Arc<dyn Store>,
    clock: Arc<AtomicU64>,
}

impl Stage {
    fn new(refunds: Refunds) -> Stage {
        let clock = Arc::new(AtomicU64::new(1_000_000));
        let time = clock.clone();
        Stage {
            refunds,
            store: MemoryStore::with_clock(move || time.load(Ordering::SeqCst)),
            clock,
        }
    }

    fn in_ledger(path: &Path) -> Stage {
        Stage::new(Refunds::Ledger(path.to_owned()))
    }

    fn at(server: &StandIn) -> Stage {
        Stage::new(Refunds::Service {
            base: Base::new(&server.url()).unwrap(),
            token: Some("s3cret-token".into()),
        })
    }

    /// A run in its n-th life.
    async fn session(&self, epoch: u64) -> Session {
        let outbound = Outbound::new(&OutboundSettings::default()).unwrap();
        let gateway = Gateway::builder(self.store.clone())
            .dynamic(issue_refund(&outbound, self.refunds.clone()).unwrap())
            .policy(Policy::new().ask("issue_refund", Ask::default()))
            .build()
            .unwrap();
        let scope = Scope {
            epoch,
            ..Scope::new("support", "case-7")
        };
        let limits = Limits {
            tool_calls: 50,
            ..Limits::default()
        };
        gateway.session(scope, limits).await.unwrap()
    }

    /// Proposes a refund and has it approved.
    async fn approved(&self, session: &Session) -> Waiting {
        let question = waits(session.call("k", &refund()).await.unwrap());
        let desk = Approvals::new(self.store.clone());
        let signed = desk.approve(question.action, &question.digest, "ann");
        assert_eq!(signed.await.unwrap().state, State::Approved);
        question
    }

    fn later(&self, seconds: u64) {
        self.clock.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }
}

fn refund() -> ToolCall {
    let args = json!({"user_id": 42, "amount_cents": 4_900, "reason": "refund-v3"});
    ToolCall::native("issue_refund", &args.to_string())
}

fn waits(reply: Reply) -> Waiting {
    match reply {
        Reply::Waiting(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

fn seen(reply: Reply) -> Observation {
    match reply {
        Reply::Observed(seen) => seen,
        other => panic!("{other:?}"),
    }
}

fn receipt(name: &str) -> Value {
    json!({
        "refund": name,
        "user_id": 42,
        "amount_cents": 4_900,
        "amount": "49.00 USD",
        "status": "refunded",
    })
}

fn read(seen: &Observation) -> Value {
    serde_json::from_str(&seen.content).unwrap()
}

/// A service that knows keys. What it counts is what it has refunded.
#[derive(Clone, Default)]
struct Till(Arc<Mutex<BTreeMap<String, Value>>>);

impl Till {
    /// As it should answer.
    fn answer(&self, asked: &Seen) -> Answer {
        let mut kept = self.0.lock().unwrap();
        let of = |key: &str, body: &Value| {
            let mut body = body.clone();
            body["id"] = format!("re_{}", &key[..4]).into();
            body
        };
        match (asked.method.as_str(), asked.path()) {
            ("POST", "/refunds") => {
                let key = asked.header("idempotency-key").unwrap().to_owned();
                let body = asked.json().unwrap();
                let kept = kept.entry(key.clone()).or_insert(body);
                Answer::json(201, &of(&key, kept))
            }
            ("GET", path) => {
                let key = path.strip_prefix("/refunds/").unwrap();
                match kept.get(key) {
                    Some(body) => Answer::json(200, &of(key, body)),
                    None => Answer::json(404, &json!({"error": "no such refund"})),
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn refunded(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

#[tokio::test]
async fn what_was_approved_is_in_the_ledger_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("refunds.jsonl");
    let stage = Stage::in_ledger(&path);
    let session = stage.session(1).await;
    let question = stage.approved(&session).await;
    assert!(!path.exists());
    assert_eq!(
        question.says,
        "Refund 49.00 USD (4900 cents) to user 42. It is written into the refund ledger of this machine. \
         The reason given: refund-v3"
    );
    let done = seen(session.call("k", &refund()).await.unwrap());
    assert_eq!(seen(session.call("k", &refund()).await.unwrap()), done);
    let text = std::fs::read_to_string(&path).unwrap();
    let line: Value = serde_json::from_str(text.trim_end()).unwrap();
    let name = line["refund"].as_str().unwrap();
    assert_eq!(read(&done), receipt(name));
    assert_eq!(
        (&line["action"], &line["digest"], &line["amount_cents"]),
        (
            &json!(question.action.to_string()),
            &json!(question.digest),
            &json!(4_900)
        )
    );
}

#[tokio::test]
async fn arguments_out_of_bounds_never_become_an_action() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::in_ledger(&folder.path().join("refunds.jsonl"));
    let session = stage.session(1).await;
    let long = "x".repeat(501);
    let good = json!({"user_id": 42, "amount_cents": 4_900, "reason": "refund-v3"});
    let with = |name: &str, value: Value| {
        let mut args = good.clone();
        args[name] = value;
        args
    };
    let table = [
        with("amount_cents", json!(0)),
        with("amount_cents", json!(-1)),
        with("amount_cents", json!(10_000_001)),
        with("amount_cents", json!(49.5)),
        with("amount_cents", json!("4900")),
        with("user_id", json!(-1)),
        with("user_id", json!(1.5)),
        with("reason", json!("")),
        with("reason", json!(" \n")),
        with("reason", json!(long)),
        with("currency", json!("EUR")),
        json!({"user_id": 42, "amount_cents": 1}),
        json!({}),
    ];
    for (number, args) in table.into_iter().enumerate() {
        let call = ToolCall::native("issue_refund", &args.to_string());
        let refused = seen(session.call(&number.to_string(), &call).await.unwrap());
        let failure = refused.failure.unwrap().to_string();
        assert_eq!(failure, "tool_bad_args:issue_refund", "{args}");
    }
    let largest = with("amount_cents", json!(10_000_000)).to_string();
    let largest = ToolCall::native("issue_refund", &largest);
    waits(session.call("largest", &largest).await.unwrap());
}

/// K02, razorpay-mcp-server#128: the gateway derives the key and sends it.
#[tokio::test]
async fn a_service_is_sent_the_refund_with_its_key_and_its_token() {
    let till = Till::default();
    let counting = till.clone();
    let server = StandIn::start(move |asked| counting.answer(asked));
    let stage = Stage::at(&server);
    let session = stage.session(1).await;
    stage.approved(&session).await;
    assert_eq!(server.seen(), []);
    let done = seen(session.call("k", &refund()).await.unwrap());
    let sent = server.seen();
    let [sent] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    let key = sent.header("idempotency-key").unwrap();
    assert_eq!(key.len(), 64);
    assert_eq!(sent.header("authorization"), Some("Bearer s3cret-token"));
    let body = json!({
        "user_id": 42,
        "amount_cents": 4_900,
        "currency": "USD",
        "reason": "refund-v3",
    });
    assert_eq!(sent.json(), Some(body));
    assert_eq!(read(&done), receipt(&format!("re_{}", &key[..4])));
}

/// K01, medusa#16681: a refund that is tried again after a timeout has the key of the first attempt.
#[tokio::test]
async fn a_lost_answer_is_looked_up_and_the_service_counts_one() {
    let till = Till::default();
    let counting = till.clone();
    let server = StandIn::start(move |asked| {
        let answer = counting.answer(asked);
        match asked.method.as_str() {
            "POST" => answer.sent(Manner::CutOff),
            _ => answer,
        }
    });
    let stage = Stage::at(&server);
    let session = stage.session(1).await;
    stage.approved(&session).await;
    assert_eq!(
        waits(session.call("k", &refund()).await.unwrap()).why,
        Why::Unknown
    );
    stage.later(10);
    let done = seen(session.call("k", &refund()).await.unwrap());
    assert_eq!(read(&done)["status"], "refunded");
    let methods: Vec<_> = server.seen().into_iter().map(|seen| seen.method).collect();
    assert_eq!(
        (methods, till.refunded()),
        (vec!["POST".into(), "GET".to_owned()], 1)
    );
}

/// K01: and where it has to be sent again, that is under the key of the first attempt.
#[tokio::test]
async fn a_request_that_never_arrived_is_sent_again_after_a_while_under_the_same_key() {
    let till = Till::default();
    let counting = till.clone();
    let first = AtomicU64::new(0);
    let server = StandIn::start(move |asked| {
        match asked.method == "POST" && first.fetch_add(1, Ordering::SeqCst) == 0 {
            true => Answer::json(502, &json!({"error": "upstream is down"})),
            false => counting.answer(asked),
        }
    });
    let stage = Stage::at(&server);
    let session = stage.session(1).await;
    stage.approved(&session).await;
    for seconds in [10, 60] {
        let question = waits(session.call("k", &refund()).await.unwrap());
        assert_eq!((question.why, till.refunded()), (Why::Unknown, 0));
        stage.later(seconds);
    }
    waits(session.call("k", &refund()).await.unwrap());
    stage.later(30);
    let done = seen(session.call("k", &refund()).await.unwrap());
    assert_eq!(read(&done)["amount"], "49.00 USD");
    let sent = server
        .seen()
        .into_iter()
        .filter(|seen| seen.method == "POST");
    let keys: Vec<_> = sent
        .map(|seen| seen.header("idempotency-key").unwrap().to_owned())
        .collect();
    assert_eq!((keys.len(), till.refunded()), (2, 1));
    assert_eq!(keys.first(), keys.last());
}

#[tokio::test]
async fn a_refusal_and_a_closed_door_are_plain_failures() {
    let refusing = StandIn::start(|_| {
        Answer::json(
            422,
            &json!({"error": {"message": "s3cret-token: closed account"}}),
        )
    });
    let gone = StandIn::start(|_| Answer::json(200, &json!({})));
    let closed = Refunds::Service {
        base: Base::new(&gone.url()).unwrap(),
        token: None,
    };
    drop(gone);
    for (stage, says) in [
        (
            Stage::at(&refusing),
            "answered 422: [secret]: closed account",
        ),
        (Stage::new(closed), "could not be reached: "),
    ] {
        let session = stage.session(1).await;
        stage.approved(&session).await;
        let failed = seen(session.call("k", &refund()).await.unwrap());
        assert_eq!(
            failed.failure.as_ref().unwrap().to_string(),
            "tool_error:issue_refund"
        );
        assert!(failed.content.contains(says), "{}", failed.content);
    }
}

#[tokio::test]
async fn an_answer_about_another_refund_confirms_nothing() {
    let server = StandIn::start(|_| {
        Answer::json(
            200,
            &json!({"id": "re_1", "user_id": 42, "amount_cents": 1}),
        )
    });
    let stage = Stage::at(&server);
    let session = stage.session(1).await;
    stage.approved(&session).await;
    let question = waits(session.call("k", &refund()).await.unwrap());
    assert_eq!(question.why, Why::Unknown);
    let row = Approvals::new(stage.store.clone())
        .show(question.action)
        .await
        .unwrap();
    let why = format!(
        "{} answered with another refund than the one it was sent",
        server.url()
    );
    assert_eq!(row.ended.unwrap().why, why);
}

#[tokio::test]
async fn of_two_refunds_that_were_approved_at_once_the_second_is_looked_at_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("refunds.jsonl");
    let stage = Stage::in_ledger(&path);
    let desk = Approvals::new(stage.store.clone());
    let session = stage.session(1).await;
    let other = json!({"user_id": 42, "amount_cents": 100, "reason": "late"});
    let calls = [
        refund(),
        ToolCall::native("issue_refund", &other.to_string()),
    ];
    let mut rows = Vec::new();
    for (key, call) in ["a", "b"].into_iter().zip(&calls) {
        let question = waits(session.call(key, call).await.unwrap());
        let row = desk.approve(question.action, &question.digest, "ann").await;
        rows.push(row.unwrap());
    }
    let resolved = &rows[1].action.said.resolved;
    assert_eq!(
        resolved.targets["refunds go to"],
        path.display().to_string()
    );
    assert!(seen(session.call("a", &calls[0]).await.unwrap()).ok());
    assert_eq!(session.call("b", &calls[1]).await, Err(Stop::Drifted));
    let row = desk.show(rows[1].id()).await.unwrap();
    assert_eq!(
        (row.state, row.changed[0].to_string()),
        (
            State::Drifted,
            "`given back to the user before` was 0 refunds, 0.00 USD and is 1 refund, 49.00 USD"
                .to_owned()
        )
    );
}

#[tokio::test]
async fn what_was_signed_for_one_ledger_is_not_written_into_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::in_ledger(&folder.path().join("a.jsonl"));
    stage.approved(&stage.session(1).await).await;
    let other = folder.path().join("b.jsonl");
    stage.refunds = Refunds::Ledger(other.clone());
    let session = stage.session(2).await;
    assert_eq!(session.call("k", &refund()).await, Err(Stop::Drifted));
    assert!(!other.exists());
}
