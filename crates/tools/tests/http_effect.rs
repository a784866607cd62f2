//! HTTP tools from configuration that change something: what each answer means, what is sent again, and what is looked
//! up, against a server on this machine that counts.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stand_in;

use paraph_gateway::{
    ActionRow, Approvals, Ask, Gateway, Limits, MemoryStore, Policy, Reply, Scope, Session, State,
    Store, ToolCall, Waiting, Why,
};
use paraph_tools::{HttpTool, Outbound, OutboundSettings, http_tool};
use serde_json::{Value, json};
use stand_in::{Answer, Manner, Seen, StandIn};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A shop that cancels orders, once for each key, and can be asked about a key.
#[derive(Clone, Default)]
struct Shop(Arc<Mutex<BTreeMap<String, Value>>>);

impl Shop {
    fn cancelled(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn cancel(&self, asked: &Seen) -> Answer {
        let key = asked.header("idempotency-key").unwrap().to_owned();
        let order =
            json!({"order": asked.path().trim_start_matches("/orders/"), "state": "cancelled"});
        self.0.lock().unwrap().insert(key, order.clone());
        Answer::json(200, &order)
    }

    fn look(&self, asked: &Seen) -> Answer {
        let key = asked.path().trim_start_matches("/cancelled/").to_owned();
        match self.0.lock().unwrap().get(&key) {
            Some(order) => Answer::json(200, order),
            None => Answer::json(404, &json!({"error": "no such key"})),
        }
    }

    /// A server whose first answers to cancelling are these, after it has done what it was asked or not.
    fn server(&self, first: Vec<(bool, Answer)>) -> StandIn {
        let (shop, first) = (self.clone(), Mutex::new(first));
        StandIn::start(move |asked| {
            if asked.method == "GET" {
                return shop.look(asked);
            }
            let mut first = first.lock().unwrap();
            match first.is_empty() {
                true => shop.cancel(asked),
                false => {
                    let (does, answer) = first.remove(0);
                    if does {
                        shop.cancel(asked);
                    }
                    answer
                }
            }
        })
    }
}

struct Stage {
    tool: Value,
    store: Arc<dyn Store>,
    clock: Arc<AtomicU64>,
}

impl Stage {
    fn new(base: &str, more: &Value) -> Stage {
        let mut tool = json!({
            "name": "cancel_order", "description": "Cancels an order.", "method": "DELETE",
            "url": format!("{base}/orders/{{number}}"),
            "arguments": {"number": {"type": "integer"}},
            "timeout_seconds": 0.3,
        });
        for (key, value) in more.as_object().unwrap() {
            let value = match value.as_str() {
                Some(text) => text.replace("BASE", base).into(),
                None => value.clone(),
            };
            tool[key.as_str()] = value;
        }
        let clock = Arc::new(AtomicU64::new(1_000_000));
        let time = clock.clone();
        Stage {
            tool,
            store: MemoryStore::with_clock(move || time.load(Ordering::SeqCst)),
            clock,
        }
    }

    async fn session(&self) -> Session {
        let settings: HttpTool = serde_json::from_value(self.tool.clone()).unwrap();
        let outbound = Outbound::new(&OutboundSettings::default()).unwrap();
        let gateway = Gateway::builder(self.store.clone())
            .dynamic(http_tool(&outbound, &settings, &|_| None).unwrap())
            .policy(Policy::new().ask("cancel_order", Ask::default()))
            .build()
            .unwrap();
        let scope = Scope::new("shop", "order-7");
        gateway.session(scope, Limits::default()).await.unwrap()
    }

    /// Approves a call and makes it, once.
    async fn first(&self, session: &Session) -> Reply {
        let Reply::Waiting(asked) = session.call("k", &call()).await.unwrap() else {
            panic!()
        };
        let desk = Approvals::new(self.store.clone());
        desk.approve(asked.action, &asked.digest, "ann")
            .await
            .unwrap();
        session.call("k", &call()).await.unwrap()
    }

    async fn again(&self, session: &Session, seconds: u64) -> Reply {
        self.clock.fetch_add(seconds * 1_000, Ordering::SeqCst);
        session.call("k", &call()).await.unwrap()
    }

    async fn row(&self) -> ActionRow {
        let desk = Approvals::new(self.store.clone());
        desk.list(&State::ALL).await.unwrap().remove(0)
    }
}

fn call() -> ToolCall {
    ToolCall::native("cancel_order", r#"{"number":7}"#)
}

fn unknown(reply: Reply) -> Waiting {
    match reply {
        Reply::Waiting(waiting) if waiting.why == Why::Unknown => waiting,
        other => panic!("{other:?}"),
    }
}

fn read(reply: Reply) -> Value {
    match reply {
        Reply::Observed(seen) => serde_json::from_str(&seen.content).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_carries_its_key_and_its_receipt_is_what_the_server_said() {
    let shop = Shop::default();
    let server = shop.server(Vec::new());
    let stage = Stage::new(&server.url(), &json!({"result": "$.state"}));
    let session = stage.session().await;
    assert_eq!(read(stage.first(&session).await), "cancelled");
    let key = server.seen()[0]
        .header("idempotency-key")
        .unwrap()
        .to_owned();
    assert!(key.len() == 64 && shop.0.lock().unwrap().contains_key(&key));

    let named = Stage::new(&server.url(), &json!({"idempotency_header": "X-Request"}));
    let tool: HttpTool = serde_json::from_value(named.tool).unwrap();
    assert_eq!(tool.mistakes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_success_without_the_wanted_part_was_done_all_the_same() {
    for (answer, receipt) in [
        (Answer::new(204, "text/plain", ""), json!({"status": 204})),
        (
            Answer::json(200, &json!({"ok": 1})),
            json!({"status": 200, "note": "the answer of S has nothing at $.state; it is an object with ok"}),
        ),
    ] {
        let shop = Shop::default();
        let server = shop.server(vec![(true, answer)]);
        let stage = Stage::new(&server.url(), &json!({"result": "$.state"}));
        let session = stage.session().await;
        let said = read(stage.first(&session).await).to_string();
        let said = said.replace(&server.url(), "S");
        assert_eq!(said, receipt.to_string());
        assert_eq!(stage.row().await.state, State::Succeeded);
    }
}

#[tokio::test]
async fn only_what_the_file_says_and_a_refused_connection_mean_that_nothing_happened() {
    let more = json!({"nothing_happened": [404, 422]});
    for (status, nothing) in [
        (404, true),
        (422, true),
        (400, false),
        (409, false),
        (500, false),
    ] {
        let shop = Shop::default();
        let refusal = Answer::json(status, &json!({"error": "no"}));
        let server = shop.server(vec![(false, refusal)]);
        let stage = Stage::new(&server.url(), &more);
        let session = stage.session().await;
        let reply = stage.first(&session).await;
        let row = stage.row().await;
        match nothing {
            true => {
                assert_eq!(read(reply)["error"], "tool_error:cancel_order");
                assert_eq!(row.state, State::Failed);
            }
            false => {
                unknown(reply);
                assert_eq!(row.state, State::Unknown);
            }
        }
        let why = row.ended.unwrap().why;
        assert_eq!(why, format!("{} answered {status}: no", server.url()));
    }
    // Nobody listens there.
    let gone = StandIn::start(|_| Answer::new(200, "text/plain", "")).url();
    let stage = Stage::new(&gone, &json!({}));
    let session = stage.session().await;
    assert_eq!(
        read(stage.first(&session).await)["error"],
        "tool_error:cancel_order"
    );
    assert_eq!(stage.row().await.state, State::Failed);
}

fn in_manner(manner: Manner) -> Answer {
    Answer {
        manner,
        ..Answer::json(200, &json!({"state": "cancelled"}))
    }
}

#[tokio::test]
async fn what_nobody_saw_the_answer_of_is_looked_up_by_its_key() {
    // The answer did not come in time, or broke off; what was asked had been done.
    for manner in [Manner::Silent, Manner::CutOff] {
        let shop = Shop::default();
        let server = shop.server(vec![(true, in_manner(manner))]);
        let more = json!({"lookup_url": "BASE/cancelled/{idempotency_key}", "result": "$.state"});
        let stage = Stage::new(&server.url(), &more);
        let session = stage.session().await;
        assert!(unknown(stage.first(&session).await).due_ms.is_some());
        assert_eq!(read(stage.again(&session, 5).await), "cancelled");
        assert_eq!((shop.cancelled(), stage.row().await.sending.times), (1, 1));
    }
}

#[tokio::test]
async fn what_a_server_does_not_know_is_sent_again_only_when_it_can_no_longer_arrive() {
    let shop = Shop::default();
    let server = shop.server(vec![(false, in_manner(Manner::Silent))]);
    let more = json!({"lookup_url": "BASE/cancelled/{idempotency_key}?n={number}"});
    let stage = Stage::new(&server.url(), &more);
    let session = stage.session().await;
    unknown(stage.first(&session).await);
    unknown(stage.again(&session, 5).await);
    let why = stage.row().await.ended.unwrap().why;
    let host = server.url();
    let expected =
        format!("{host} did not answer in 0.3 seconds; looked up since: it may still arrive");
    assert_eq!(why, expected);
    assert_eq!((shop.cancelled(), stage.row().await.sending.times), (0, 1));
    assert_eq!(read(stage.again(&session, 60).await)["state"], "cancelled");
    assert_eq!((shop.cancelled(), stage.row().await.sending.times), (1, 2));
    let keys: Vec<_> = server.seen();
    let keys = keys
        .iter()
        .filter_map(|seen| seen.header("idempotency-key"));
    let keys: std::collections::BTreeSet<_> = keys.collect();
    assert_eq!(keys.len(), 1);
    let looked = server.seen()[1].target.clone();
    assert!(looked.ends_with("?n=7"), "{looked}");
}

#[tokio::test]
async fn a_server_that_recognises_keys_is_sent_the_same_again() {
    let shop = Shop::default();
    let server = shop.server(vec![(true, Answer::json(500, &json!({})))]);
    let stage = Stage::new(&server.url(), &json!({"recognises_key": true}));
    let session = stage.session().await;
    unknown(stage.first(&session).await);
    assert_eq!(read(stage.again(&session, 5).await)["state"], "cancelled");
    assert_eq!((shop.cancelled(), stage.row().await.sending.times), (1, 2));
}

#[tokio::test]
async fn where_nothing_can_be_looked_up_a_person_has_to_find_out() {
    let shop = Shop::default();
    let server = shop.server(vec![(true, Answer::json(500, &json!({})))]);
    let stage = Stage::new(&server.url(), &json!({}));
    let session = stage.session().await;
    unknown(stage.first(&session).await);
    assert_eq!(unknown(stage.again(&session, 5).await).due_ms, None);
    assert_eq!((shop.cancelled(), stage.row().await.sending.times), (1, 1));
}

#[test]
fn every_mistake_in_these_keys_is_named() {
    let mistakes = |more: Value| {
        let stage = Stage::new("http://127.0.0.1:9", &more);
        let tool: HttpTool = serde_json::from_value(stage.tool).unwrap();
        tool.mistakes()
    };
    for (more, mistake) in [
        (
            json!({"method": "GET", "recognises_key": true}),
            "`recognises_key`: it is about tools that change something, and this one reads",
        ),
        (
            json!({"nothing_happened": [409]}),
            "`nothing_happened`: 409 may mean that the same request is still under way",
        ),
        (
            json!({"nothing_happened": [500]}),
            "`nothing_happened`: only statuses from 400 to 499 can say that; 500 cannot",
        ),
        (
            json!({"lookup_url": "BASE/cancelled"}),
            "`lookup_url`: it has to say which call it is about, by {idempotency_key}",
        ),
        (
            json!({"lookup_url": "BASE/{idempotency_key}/{other}"}),
            "`lookup_url`: `{other}` is used, and `arguments` has no `other`",
        ),
        (
            json!({"idempotency_header": "Host"}),
            "`idempotency_header`: `Host` belongs to the connection",
        ),
        (
            json!({"idempotency_header": "x-key", "headers": {"X-Key": "1"}}),
            "`idempotency_header`: `x-key` is in `headers` too",
        ),
    ] {
        assert_eq!(mistakes(more), [mistake]);
    }
}
