//! A session seen from outside: the order of its checks, what they consume, and what a key remembers.

#![expect(
    clippy::unwrap_used,
    reason = "a fixture that cannot be made ends the test"
)]

mod stage;

use paraph_gateway::*;
use serde_json::{Value, json};
use stage::seen;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

/// A gateway with a tool that counts how often it runs, and tools that misbehave.
struct Fixture {
    gateway: Gateway,
    store: Arc<dyn Store>,
    runs: Arc<AtomicUsize>,
}

fn slow(name: &str, takes: Duration, timeout: Duration) -> DynTool {
    let mut tool = DynTool::new(
        name,
        "takes its time",
        json!({}),
        move |_: Json| async move {
            tokio::time::sleep(takes).await;
            Ok::<_, ToolError>("done")
        },
    );
    tool.timeout = timeout;
    tool
}

fn fixture_in(store: Arc<dyn Store>, policy: Policy) -> Fixture {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let mut pay = DynTool::new("pay", "pays", json!({}), async |_: Json| {
        Ok::<_, ToolError>("paid")
    });
    pay.level = Level::Write;
    let second = Duration::from_secs(1);
    let gateway = Gateway::builder(store.clone())
        .read("echo", "Says it back", move |args: Text| {
            counter.fetch_add(1, Ordering::SeqCst);
            async move { Ok(args.text) }
        })
        .read("fail", "Fails", async |args: Text| {
            Err::<(), _>(ToolError::new(format!("no luck with Bearer {}", args.text)))
        })
        .read("picky", "Does not like it", async |_: Text| {
            Err::<(), _>(ToolError::bad_args("not this text"))
        })
        .dynamic(slow("slow", second * 60, second * 5))
        .dynamic(slow("patient", second * 60, second * 600))
        .dynamic(pay)
        .policy(policy)
        .build()
        .unwrap();
    Fixture {
        gateway,
        store,
        runs,
    }
}

fn fixture() -> Fixture {
    let policy = Policy::new()
        .allow(["echo", "fail", "picky", "slow", "patient"])
        .allow_unregistered(["ghost"])
        .ask("pay", Ask::default())
        .deny(["drop_*"]);
    fixture_in(MemoryStore::shared(), policy)
}

fn native() -> Scope {
    Scope::new("agent", "thread")
}

fn strict() -> Scope {
    Scope {
        dialect: Dialect::Strict,
        ..native()
    }
}

fn call(name: &str, text: &str) -> ToolCall {
    ToolCall::new(name, &json!({ "text": text }).to_string()).unwrap()
}

/// The reason of a call, or `ok`, in either dialect.
fn reason(reply: Result<Reply, Stop>) -> String {
    match reply {
        Ok(Reply::Observed(seen)) => seen.failure.map_or("ok".to_owned(), |it| it.to_string()),
        Ok(Reply::Waiting(_)) => "waits for a person".to_owned(),
        Ok(other) => format!("{other:?}"),
        Err(stop) => stop.to_string(),
    }
}

#[tokio::test]
async fn each_check_comes_before_the_next() {
    // Each call fails at its own check and at all later ones; the reason names the first.
    let table = [
        ("max_tool_calls", "drop_it", "{}", 0),
        ("tool_denied:drop_it", "drop_it", "[]", 1),
        ("tool_denied:nowhere", "nowhere", "{}", 1),
        ("tool_missing:ghost", "ghost", "{}", 1),
        ("loop_detected", "fail", "{}", 2),
        ("tool_bad_args:fail", "fail", r#"{"txt":1}"#, 1),
        ("tool_bad_args:pay", "pay", r#"{"text""#, 1),
        ("waits for a person", "pay", "{}", 1),
        ("tool_error:fail", "fail", r#"{"text":"x"}"#, 1),
        ("tool_bad_args:picky", "picky", r#"{"text":"x"}"#, 1),
    ];
    for (expected, name, arguments, tool_calls) in table {
        for scope in [strict(), native()] {
            let limits = Limits {
                tool_calls,
                ..Limits::default()
            };
            let session = fixture().gateway.session(scope, limits).await.unwrap();
            let call = ToolCall::native(name, arguments);
            if tool_calls == 2 {
                // The first time, the loop is not closed yet.
                assert_eq!(reason(session.call("0", &call).await), "tool_bad_args:fail");
            }
            assert_eq!(reason(session.call("1", &call).await), expected, "{name}");
        }
    }
}

#[tokio::test]
async fn failures_end_strict_runs_and_are_read_in_native_ones() {
    let failing = [
        (call("drop_it", ""), "tool_denied:drop_it"),
        (call("ghost", ""), "tool_missing:ghost"),
        (ToolCall::native("echo", "{}"), "tool_bad_args:echo"),
        (call("fail", ""), "tool_error:fail"),
    ];
    for (call, reason) in failing {
        let session = fixture()
            .gateway
            .session(strict(), Limits::default())
            .await
            .unwrap();
        let stop = session.call("1", &call).await.unwrap_err();
        assert_eq!((stop.to_string().as_str(), stop.exit_code()), (reason, 3));
        let session = fixture()
            .gateway
            .session(native(), Limits::default())
            .await
            .unwrap();
        let seen = seen(session.call("1", &call).await);
        let content: Value = serde_json::from_str(&seen.content).unwrap();
        assert_eq!(content["error"], reason);
        assert_eq!(seen.failure.unwrap().to_string(), reason);
    }
}

#[tokio::test]
async fn whatever_was_admitted_consumes_budget_and_has_a_record() {
    let session = fixture()
        .gateway
        .session(native(), Limits::default())
        .await
        .unwrap();
    session.budget().step().unwrap();
    let calls = [
        call("echo", "a"),
        call("drop_it", "a"),
        call("ghost", "a"),
        call("echo", "a"),
        ToolCall::native("echo", "{"),
        call("fail", "a"),
        call("echo", "b"),
    ];
    let mut reasons = Vec::new();
    for (i, call) in calls.iter().enumerate() {
        reasons.push(reason(session.call(&i.to_string(), call).await));
    }
    let expected = [
        "ok",
        "tool_denied:drop_it",
        "tool_missing:ghost",
        "loop_detected",
        "tool_bad_args:echo",
        "tool_error:fail",
        "max_tool_calls",
    ];
    assert_eq!(reasons, expected);
    let rows: Vec<_> = session
        .records()
        .into_iter()
        .map(|row| {
            (
                row.seq,
                row.step,
                row.key.clone(),
                row.stop_reason().unwrap_or("ok".into()),
            )
        })
        .collect();
    // The call that found no slot has no row: it was never admitted.
    let admitted: Vec<_> = (0..6_u64)
        .map(|i| (i + 1, 1, i.to_string(), expected[i as usize].to_owned()))
        .collect();
    assert_eq!(rows, admitted);
    assert_eq!(session.budget().left().tool_calls, 0);
}

#[tokio::test]
async fn a_known_key_gives_what_was_recorded_and_nothing_runs_or_counts() {
    let fixture = fixture();
    let session = fixture
        .gateway
        .session(native(), Limits::default())
        .await
        .unwrap();
    let echo = call("echo", "a");
    let first = seen(session.call("k", &echo).await);
    // The same arguments in another spelling are the same call.
    let spelled = ToolCall::new("echo", " { \"text\" : \"\\u0061\" } ").unwrap();
    for again in [&echo, &spelled] {
        assert_eq!(seen(session.call("k", again).await), first);
    }
    assert_eq!(fixture.runs.load(Ordering::SeqCst), 1);
    assert_eq!(session.budget().used().tool_calls, 1);
    // Under another key it is a loop; and that key stays one, however often it is tried.
    for _ in 0..2 {
        assert_eq!(session.call("other", &echo).await, Err(Stop::LoopDetected));
    }
    assert_eq!(session.budget().used().tool_calls, 2);
}

#[tokio::test]
async fn a_key_stands_for_one_call_only() {
    let session = fixture()
        .gateway
        .session(native(), Limits::default())
        .await
        .unwrap();
    session.call("k", &call("echo", "a")).await.unwrap();
    for other in [call("echo", "b"), call("fail", "a")] {
        let stop = session.call("k", &other).await.unwrap_err();
        assert_eq!(
            stop,
            Stop::KeyReused {
                key: "k".into(),
                tool: "echo".into()
            }
        );
        assert_eq!(
            (stop.to_string().as_str(), stop.exit_code()),
            ("internal", 6)
        );
    }
    assert_eq!(session.budget().used().tool_calls, 1);
}

#[tokio::test]
async fn the_same_key_at_the_same_time_is_a_conflict() {
    let session = fixture()
        .gateway
        .session(native(), Limits::default())
        .await
        .unwrap();
    let twice = [
        ("k".to_owned(), call("echo", "a")),
        ("k".to_owned(), call("echo", "a")),
    ];
    let replies = session.call_all(&twice).await;
    assert_eq!(
        replies.into_iter().map(reason).collect::<Vec<_>>(),
        ["ok", "conflict"]
    );
    assert_eq!(session.budget().used().tool_calls, 1);
    assert_eq!(reason(session.call("k", &call("echo", "a")).await), "ok");
}

#[tokio::test(start_paused = true)]
async fn of_a_tool_s_time_and_the_run_s_the_earlier_names_the_reason() {
    let within = async |seconds, name: &str| {
        let limits = Limits {
            seconds,
            ..Limits::default()
        };
        let session = fixture().gateway.session(native(), limits).await.unwrap();
        let started = tokio::time::Instant::now();
        let reason = reason(session.call("k", &ToolCall::new(name, "{}").unwrap()).await);
        (reason, started.elapsed().as_secs())
    };
    assert_eq!(
        within(20, "slow").await,
        ("tool_timeout:slow".to_owned(), 5)
    );
    assert_eq!(within(3, "slow").await, ("max_seconds".to_owned(), 3));
    assert_eq!(within(5, "slow").await, ("max_seconds".to_owned(), 5));
    assert_eq!(within(100, "patient").await, ("ok".to_owned(), 60));
    assert_eq!(within(UNLIMITED, "patient").await, ("ok".to_owned(), 60));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_run_s_time_cut_off_may_run_again_under_its_key() {
    let fixture = fixture();
    let limits = |seconds| Limits {
        seconds,
        ..Limits::default()
    };
    let patient = ToolCall::new("patient", "{}").unwrap();
    let session = fixture.gateway.session(native(), limits(20)).await.unwrap();
    assert_eq!(session.call("k", &patient).await, Err(Stop::MaxSeconds));
    let row = &session.records()[0];
    assert_eq!((row.outcome.is_none(), row.ms), (true, 20_000));
    // Its time is saved, so the same limit is used up; a later life with more time may go on.
    let again = fixture.gateway.session(native(), limits(20)).await.unwrap();
    assert_eq!(again.budget().time_left(), Duration::ZERO);
    let later = fixture
        .gateway
        .session(native(), limits(100))
        .await
        .unwrap();
    assert_eq!(reason(later.call("k", &patient).await), "ok");
    assert_eq!(later.budget().used().tool_calls, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_caller_was_aborted_may_run_again_under_its_key() {
    let session = fixture()
        .gateway
        .session(native(), Limits::default())
        .await
        .unwrap();
    let slow = ToolCall::new("slow", "{}").unwrap();
    let task = tokio::spawn({
        let (session, slow) = (session.clone(), slow.clone());
        async move { session.call("k", &slow).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(reason(session.call("k", &slow).await), "conflict");
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(reason(session.call("k", &slow).await), "tool_timeout:slow");
    assert_eq!(session.budget().used().tool_calls, 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_run_used_is_read_back_when_it_is_opened_again() {
    let fixture = fixture();
    let limits = Limits {
        steps: 4,
        tokens: 1_000,
        children: 3,
        per_tool: BTreeMap::from([("echo".to_owned(), 2)]),
        ..Limits::default()
    };
    let session = fixture
        .gateway
        .session(native(), limits.clone())
        .await
        .unwrap();
    session.budget().step().unwrap();
    session.call("a", &call("echo", "a")).await.unwrap();
    tokio::time::advance(Duration::from_millis(2_500)).await;
    session.budget().step().unwrap();
    let spend = Spend {
        tokens: 300,
        micro_dollars: None,
    };
    session.budget().reserve(spend).unwrap().spend(spend);
    drop(
        session
            .budget()
            .carve(Limits {
                tool_calls: 0,
                tokens: 0,
                ..Limits::default()
            })
            .unwrap(),
    );
    session.call("b", &call("fail", "b")).await.unwrap();
    session.budget().step().unwrap();
    session.save().await.unwrap();
    let before = session.budget().used();

    let again = fixture
        .gateway
        .session(native(), limits.clone())
        .await
        .unwrap();
    assert_eq!(again.budget().used(), before);
    // Whoever opens it may know of more steps and tokens than were saved, never of fewer.
    let known = Usage {
        steps: 4,
        tokens: 7,
        tool_calls: 9,
        ..Usage::default()
    };
    let topped = fixture
        .gateway
        .resume(native(), limits, &known)
        .await
        .unwrap();
    let expected = Usage {
        steps: 4,
        ..before.clone()
    };
    assert_eq!(topped.budget().used(), expected);
    assert_eq!(again.records(), session.records());
    let left = again.budget().left();
    assert_eq!(
        (left.steps, left.tool_calls, left.tokens, left.children),
        (1, 4, 700, 2)
    );
    assert_eq!((left.seconds, left.per_tool["echo"]), (17, 1));
    // Known keys are known, and so is what would close a loop.
    assert_eq!(reason(again.call("a", &call("echo", "a")).await), "ok");
    assert_eq!(
        reason(again.call("c", &call("echo", "a")).await),
        "loop_detected"
    );
    assert_eq!(fixture.runs.load(Ordering::SeqCst), 1);
    // Nothing is saved twice.
    again.save().await.unwrap();
    let counters = fixture.store.counters(&native().run_ref()).await.unwrap();
    assert_eq!(
        (counters["steps"], counters["tokens"], counters["active_ms"]),
        (3, 300, 2_500)
    );
}

#[tokio::test]
async fn a_fork_another_agent_and_another_tenant_start_afresh() {
    let fixture = fixture();
    let session = fixture
        .gateway
        .session(native(), Limits::default())
        .await
        .unwrap();
    session.call("k", &call("echo", "mine")).await.unwrap();
    let others = [
        Scope {
            run: "fork".into(),
            ..native()
        },
        Scope {
            agent: "other".into(),
            ..native()
        },
        Scope {
            tenant: "other".into(),
            ..native()
        },
        Scope {
            thread: "other".into(),
            ..native()
        },
    ];
    for scope in others {
        let other = fixture
            .gateway
            .session(scope, Limits::default())
            .await
            .unwrap();
        assert_eq!(other.records(), []);
        let seen = seen(other.call("k", &call("echo", "theirs")).await);
        assert_eq!(seen.content, "\"theirs\"");
    }
}

#[tokio::test]
async fn rules_that_became_stricter_hold_for_a_call_that_was_cut_off() {
    let store = MemoryStore::shared();
    let before = fixture_in(store.clone(), Policy::new().allow(["patient"]));
    let limits = || Limits {
        seconds: 0,
        ..Limits::default()
    };
    let patient = ToolCall::new("patient", "{}").unwrap();
    // A record without an outcome, as a crash leaves it.
    let record = CallRecord {
        run: Arc::new(native().run_ref()),
        key: "k".into(),
        seq: 1,
        step: 1,
        epoch: 1,
        tool: "patient".into(),
        arguments: "{}".into(),
        args_hash: patient.args_hash().into(),
        args_digest: "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a".into(),
        action: None,
        ruling: None,
        outcome: None,
        full_output: None,
        ms: 0,
    };
    let change = Change {
        calls: vec![record],
        ..Change::default()
    };
    before.store.commit(change).await.unwrap();
    let session = before.gateway.session(native(), limits()).await.unwrap();
    assert_eq!(session.call("k", &patient).await, Err(Stop::MaxSeconds));
    let after = fixture_in(store, Policy::new().allow(["patient"]).deny(["pat*"]));
    let session = after.gateway.session(native(), limits()).await.unwrap();
    assert_eq!(
        reason(session.call("k", &patient).await),
        "tool_denied:patient"
    );
}

#[tokio::test]
async fn two_drivers_of_one_run_cannot_both_have_a_key() {
    let fixture = fixture();
    let one = fixture
        .gateway
        .session(native(), Limits::default())
        .await
        .unwrap();
    let two = fixture
        .gateway
        .session(native(), Limits::default())
        .await
        .unwrap();
    assert_eq!(reason(one.call("k", &call("echo", "a")).await), "ok");
    assert_eq!(reason(two.call("k", &call("echo", "a")).await), "conflict");
    assert_eq!(fixture.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn long_output_is_cut_for_the_model_and_kept_in_the_record() {
    let mut long = DynTool::new("long", "says much", json!({}), async |_: Json| {
        Ok::<_, ToolError>("x".repeat(10_000))
    });
    long.output_cap = 90;
    let gateway = Gateway::builder(MemoryStore::shared())
        .dynamic(long)
        .policy(Policy::new().allow(["long"]))
        .build()
        .unwrap();
    let session = gateway.session(native(), Limits::default()).await.unwrap();
    let seen = seen(session.call("k", &ToolCall::new("long", "").unwrap()).await);
    assert!(seen.ok() && seen.content.len() < 250 && seen.text().contains("9912 of 10002 bytes"));
    let full = session.records()[0].full_output.clone().unwrap();
    assert_eq!(full, format!("\"{}\"", "x".repeat(10_000)));
}

#[tokio::test]
async fn a_tool_s_words_reach_the_model_redacted_and_bounded() {
    let session = fixture()
        .gateway
        .session(native(), Limits::default())
        .await
        .unwrap();
    let told = seen(session.call("1", &call("fail", "abcdef0123456789")).await);
    assert_eq!(
        told.failure.unwrap().tell(),
        "`fail` failed: no luck with Bearer [redacted]"
    );
    let long = seen(session.call("2", &call("fail", &"- ".repeat(50_000))).await);
    assert!(long.content.len() < 3_000);
}

/// What becomes of one write.
#[derive(Clone, Copy)]
enum Fate {
    /// It is refused, and nothing is written.
    Lost,
    /// It is written, and the answer is an error.
    Unanswered,
    /// It is written, and the answer never comes.
    Hanging,
}

/// A store with one write, counted from 1, that goes wrong.
struct Failing {
    inner: Arc<dyn Store>,
    write: usize,
    fate: Fate,
    writes: AtomicUsize,
}

impl Failing {
    fn at(write: usize, fate: Fate) -> Arc<Failing> {
        Arc::new(Failing {
            inner: MemoryStore::shared(),
            write,
            fate,
            writes: AtomicUsize::new(0),
        })
    }
}

impl StoreLayer for Failing {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn commit(&self, change: Change) -> StoreFuture<'_, ()> {
        let number = self.writes.fetch_add(1, Ordering::SeqCst) + 1;
        if number != self.write {
            return self.inner.commit(change);
        }
        Box::pin(async move {
            match self.fate {
                Fate::Lost => {}
                Fate::Unanswered => self.inner.commit(change).await?,
                Fate::Hanging => {
                    self.inner.commit(change).await?;
                    std::future::pending::<()>().await;
                }
            }
            Err(StoreError::Broken("the disk is full".into()))
        })
    }
}

/// The first write of a call is its beginning, the second its end.
#[tokio::test]
async fn what_cannot_be_recorded_does_not_run_or_did_not_happen() {
    let table = [
        // write, fate, runs at the first try, runs after the second
        (1, Fate::Lost, 0, 1),
        (1, Fate::Unanswered, 0, 1),
        (2, Fate::Lost, 1, 2),
        (2, Fate::Unanswered, 1, 1),
    ];
    for (write, fate, first, second) in table {
        let fixture = fixture_in(Failing::at(write, fate), Policy::new().allow(["echo"]));
        let session = fixture
            .gateway
            .session(strict(), Limits::default())
            .await
            .unwrap();
        session.budget().step().unwrap();
        let stop = session.call("k", &call("echo", "a")).await.unwrap_err();
        assert_eq!(stop, Stop::StoreError("the disk is full".into()));
        assert_eq!(fixture.runs.load(Ordering::SeqCst), first);
        // Tried again it is the same call: not counted twice, and no loop.
        assert_eq!(reason(session.call("k", &call("echo", "a")).await), "ok");
        assert_eq!(fixture.runs.load(Ordering::SeqCst), second);
        assert_eq!(session.budget().used().tool_calls, 1);
        let records = fixture.store.calls(&native().run_ref()).await.unwrap();
        assert_eq!((records.len(), records[0].ok()), (1, true));
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_was_aborted_while_it_waited_for_the_store_may_come_again() {
    for write in [1, 2] {
        let fixture = fixture_in(
            Failing::at(write, Fate::Hanging),
            Policy::new().allow(["echo"]),
        );
        let session = fixture
            .gateway
            .session(native(), Limits::default())
            .await
            .unwrap();
        session.budget().step().unwrap();
        let (echo, limit) = (call("echo", "a"), Duration::from_secs(1));
        let aborted = tokio::time::timeout(limit, session.call("k", &echo)).await;
        assert!(aborted.is_err());
        assert_eq!(reason(session.call("k", &echo).await), "ok");
        assert_eq!(fixture.runs.load(Ordering::SeqCst), 1);
        let counters = fixture.store.counters(&native().run_ref()).await.unwrap();
        // Nobody knows whether the first write arrived, so what it held is told again: rather twice.
        assert_eq!(counters["steps"], if write == 1 { 2 } else { 1 });
    }
}

#[tokio::test]
async fn a_denial_that_could_not_be_recorded_stays_a_denial() {
    for fate in [Fate::Lost, Fate::Unanswered] {
        let fixture = fixture_in(Failing::at(1, fate), Policy::new().allow(["fail"]));
        let session = fixture
            .gateway
            .session(native(), Limits::default())
            .await
            .unwrap();
        let echo = call("echo", "a");
        assert_eq!(reason(session.call("k", &echo).await), "store_error");
        assert_eq!(reason(session.call("k", &echo).await), "tool_denied:echo");
        assert_eq!(fixture.runs.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn loops_follow_the_session_s_rule() {
    let rules = [
        (LoopRule::Exact, ["ok", "ok", "loop_detected", "ok"]),
        (
            LoopRule::Soft,
            ["ok", "loop_detected", "loop_detected", "ok"],
        ),
        (LoopRule::Cycle, ["ok", "ok", "ok", "ok"]),
        (LoopRule::Off, ["ok", "ok", "ok", "ok"]),
    ];
    for (loops, expected) in rules {
        let scope = Scope { loops, ..native() };
        let session = fixture()
            .gateway
            .session(scope, Limits::default())
            .await
            .unwrap();
        let mut reasons = Vec::new();
        for (i, text) in ["a b", " a  b", "a b", "c"].iter().enumerate() {
            reasons.push(reason(
                session.call(&i.to_string(), &call("echo", text)).await,
            ));
        }
        assert_eq!(reasons, expected, "{loops}");
    }
    let scope = Scope {
        loops: LoopRule::Cycle,
        ..native()
    };
    let session = fixture()
        .gateway
        .session(scope, Limits::default())
        .await
        .unwrap();
    let mut last = String::new();
    for (i, text) in ["a", "b", "a", "b"].iter().enumerate() {
        last = reason(session.call(&i.to_string(), &call("echo", text)).await);
    }
    assert_eq!(last, "loop_detected");
}

#[tokio::test]
async fn a_child_s_calls_come_out_of_its_parent_s_purse() {
    let fixture = fixture();
    let limits = Limits {
        tool_calls: 3,
        children: 1,
        ..Limits::default()
    };
    let parent = fixture.gateway.session(native(), limits).await.unwrap();
    let share = Limits {
        tool_calls: 2,
        ..Limits::default()
    };
    let purse = parent.budget().carve(share).unwrap();
    let scope = Scope {
        run: "child".into(),
        ..native()
    };
    let child = fixture.gateway.session_in(scope, purse).await.unwrap();
    assert_eq!(reason(child.call("a", &call("echo", "a")).await), "ok");
    assert_eq!(reason(parent.call("a", &call("echo", "a")).await), "ok");
    assert_eq!(
        reason(parent.call("b", &call("echo", "b")).await),
        "max_tool_calls"
    );
    drop(child);
    assert_eq!(reason(parent.call("b", &call("echo", "b")).await), "ok");
    assert_eq!(
        reason(parent.call("c", &call("echo", "c")).await),
        "max_tool_calls"
    );
}

#[test]
fn sessions_go_between_threads() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<Session>();
    shared::<Gateway>();
    shared::<Budget>();
}

#[tokio::test]
async fn calls_and_records_survive_being_saved_in_a_state() {
    let session = fixture()
        .gateway
        .session(native(), Limits::default())
        .await
        .unwrap();
    let echo = ToolCall::new("echo", r#"{"text":"a"}"#).unwrap();
    session.call("1", &echo).await.unwrap();
    session
        .call("2", &ToolCall::native("echo", r#"{"text":"#))
        .await
        .unwrap();
    for record in session.records() {
        // By way of a value, as engines keep their states.
        let saved = serde_json::to_value(&record).unwrap();
        assert_eq!(serde_json::from_value::<CallRecord>(saved).unwrap(), record);
    }
    let big = ToolCall::native("any", r#"{"id":123456789012345678901234567890,"x":1e2}"#);
    for call in [echo, big, ToolCall::native("any", "{broken")] {
        let saved = serde_json::to_value(&call).unwrap();
        assert_eq!(serde_json::from_value::<ToolCall>(saved).unwrap(), call);
    }
}
