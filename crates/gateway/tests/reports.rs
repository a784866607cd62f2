//! Bug reports of other projects, turned around: what must not happen here. Each test names its report
//! by the letter and number of the project's own log of them.

#![expect(
    clippy::unwrap_used,
    reason = "a fixture that cannot be made ends the test"
)]

use paraph_gateway::*;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: i64,
}

struct Fixture {
    gateway: Gateway,
    runs: Arc<AtomicUsize>,
}

fn fixture() -> Fixture {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let mut refund = DynTool::new("refund", "refunds", json!({}), async |_: Json| {
        Ok::<_, ToolError>("refunded")
    });
    refund.level = Level::Write;
    let gateway = Gateway::builder(MemoryStore::shared())
        .read("add", "Adds one", move |args: Number| {
            counter.fetch_add(1, Ordering::SeqCst);
            async move {
                tokio::task::yield_now().await;
                Ok(args.n + 1)
            }
        })
        .dynamic(DynTool::new(
            "raw",
            "shows",
            json!({}),
            async |args: Json| Ok::<_, ToolError>(args),
        ))
        .dynamic(refund)
        .policy(
            Policy::new()
                .allow(["add", "raw"])
                .allow_unregistered(["ghost"])
                .ask("refund", Ask::default()),
        )
        .build()
        .unwrap();
    Fixture { gateway, runs }
}

async fn session(fixture: &Fixture, tool_calls: u64) -> Session {
    let limits = Limits {
        tool_calls,
        ..Limits::default()
    };
    let scope = Scope::new("agent", "thread");
    fixture.gateway.session(scope, limits).await.unwrap()
}

fn add(n: i64) -> ToolCall {
    ToolCall::new("add", &json!({ "n": n }).to_string()).unwrap()
}

fn reason(reply: Result<Reply, Stop>) -> String {
    match reply {
        Ok(Reply::Observed(seen)) => seen.failure.map_or("ok".to_owned(), |it| it.to_string()),
        Ok(Reply::Waiting(_)) => "waits for a person".to_owned(),
        Ok(other) => format!("{other:?}"),
        Err(stop) => stop.to_string(),
    }
}

fn content(reply: Result<Reply, Stop>) -> String {
    match reply {
        Ok(Reply::Observed(seen)) => seen.content,
        other => panic!("no observation: {other:?}"),
    }
}

#[tokio::test]
async fn b01_broken_arguments_are_an_answer_to_the_model_and_the_tool_does_not_run() {
    let fixture = fixture();
    let session = session(&fixture, 6).await;
    let broken = ToolCall::native("add", r#"{"city":"Oslo","days":3"#);
    let told = content(session.call("1", &broken).await);
    assert_eq!(
        told,
        r#"{"error":"tool_bad_args:add","message":"The arguments do not fit `add`: expected `,` or `}` at byte 23"}"#
    );
    assert_eq!(session.budget().used().tool_calls, 1);
    assert_eq!(fixture.runs.load(Ordering::SeqCst), 0);
    // The retry is a call like any other; the same broken text again is a loop.
    assert_eq!(reason(session.call("2", &add(3)).await), "ok");
    assert_eq!(reason(session.call("3", &broken).await), "loop_detected");
}

#[tokio::test]
async fn b04_refused_calls_have_distinct_codes_and_the_same_one_again_is_a_loop() {
    let fixture = fixture();
    let session = session(&fixture, 5).await;
    let turn: Vec<_> = ["ghost", "ghost", "nowhere", "nowhere", "refund", "ghost"]
        .into_iter()
        .enumerate()
        .map(|(i, name)| (format!("turn-1/{i}"), ToolCall::new(name, "{}").unwrap()))
        .collect();
    let replies = session.call_all(&turn).await;
    let reasons: Vec<_> = replies.into_iter().map(reason).collect();
    let expected = [
        "tool_missing:ghost",
        "loop_detected",
        "tool_denied:nowhere",
        "loop_detected",
        "waits for a person",
        "max_tool_calls",
    ];
    assert_eq!(reasons, expected);
    // Asked again under its key, a call is neither counted again nor a loop.
    let again = session.call(&turn[0].0, &turn[0].1).await;
    assert_eq!(reason(again), "tool_missing:ghost");
    assert_eq!(session.budget().used().tool_calls, 5);
}

#[tokio::test]
async fn b04_a_refused_call_is_still_known_as_one_when_the_run_is_taken_up_again() {
    let fixture = fixture();
    for (name, code) in [
        ("ghost", "tool_missing:ghost"),
        ("nowhere", "tool_denied:nowhere"),
    ] {
        for (dialect, again) in [(Dialect::Native, "loop_detected"), (Dialect::Strict, code)] {
            let scope = Scope {
                run: format!("{name}-{dialect:?}"),
                dialect,
                ..Scope::new("agent", "thread")
            };
            let call = ToolCall::new(name, "{}").unwrap();
            let mut reasons = Vec::new();
            for key in ["1", "2"] {
                let opened = fixture.gateway.session(scope.clone(), Limits::default());
                let session = opened.await.unwrap();
                reasons.push(reason(session.call(key, &call).await));
            }
            assert_eq!(reasons, [code, again], "{dialect:?}");
        }
    }
}

#[tokio::test]
async fn b04_a_name_that_no_tool_has_is_told_apart_from_one_that_is_denied() {
    let fixture = fixture();
    let session = session(&fixture, 5).await;
    let unknown = content(
        session
            .call("1", &ToolCall::new("nowhere", "{}").unwrap())
            .await,
    );
    assert_eq!(
        unknown,
        r#"{"error":"tool_denied:nowhere","message":"You may not call `nowhere`: no tool has that name; there are add, raw, refund."}"#
    );
}

#[tokio::test]
async fn b05_a_provider_that_uses_a_call_id_again_makes_two_calls_by_key() {
    let fixture = fixture();
    let session = session(&fixture, 6).await;
    // The key is the run's own; a provider's id is no part of it.
    assert_eq!(content(session.call("turn-1/0", &add(3)).await), "4");
    assert_eq!(content(session.call("turn-2/0", &add(7)).await), "8");
    assert_eq!(fixture.runs.load(Ordering::SeqCst), 2);
    // An id that was used as key after all is refused; it never answers for another call.
    assert_eq!(
        session.call("turn-1/0", &add(7)).await,
        Err(Stop::KeyReused {
            key: "turn-1/0".into(),
            tool: "add".into()
        })
    );
}

#[tokio::test]
async fn b07_two_effects_under_one_key_fail_closed() {
    let fixture = fixture();
    let session = session(&fixture, 6).await;
    let refund =
        |cents: u32| ToolCall::new("refund", &json!({ "cents": cents }).to_string()).unwrap();
    assert_eq!(
        reason(session.call("x", &refund(10)).await),
        "waits for a person"
    );
    assert_eq!(reason(session.call("x", &refund(900)).await), "internal");
}

#[tokio::test]
async fn b14_of_200_calls_in_one_turn_the_cap_lets_the_first_six_run() {
    let fixture = fixture();
    let session = session(&fixture, 6).await;
    let calls: Vec<_> = (0..200).map(|i| (format!("turn/{i}"), add(i))).collect();
    let replies: Vec<_> = session
        .call_all(&calls)
        .await
        .into_iter()
        .map(reason)
        .collect();
    assert_eq!(
        replies,
        [vec!["ok"; 6], vec!["max_tool_calls"; 194]].concat()
    );
    assert_eq!(fixture.runs.load(Ordering::SeqCst), 6);
}

#[tokio::test]
async fn b15_large_integers_reach_the_tool_the_record_and_the_hash_with_every_digit() {
    let fixture = fixture();
    let session = session(&fixture, 6).await;
    let id = "2512292042121000001";
    assert_eq!(
        content(
            session
                .call(
                    "1",
                    &ToolCall::new("add", &format!(r#"{{"n":{id}}}"#)).unwrap()
                )
                .await
        ),
        "2512292042121000002"
    );
    let text = format!(r#"{{"id":{id},"longer":{id}{id}}}"#);
    let call = ToolCall::new("raw", &text).unwrap();
    assert_eq!(content(session.call("2", &call).await), text);
    let neighbour = ToolCall::new("raw", &text.replace("001}", "002}")).unwrap();
    assert_ne!(call.args_hash(), neighbour.args_hash());
    assert_eq!(session.records()[1].arguments, text);
}

#[tokio::test]
async fn b16_a_record_read_by_a_browser_shows_the_integer_that_was_used() {
    let fixture = fixture();
    let session = session(&fixture, 6).await;
    let call = ToolCall::new("raw", r#"{"id":2512292042121000001}"#).unwrap();
    session.call("1", &call).await.unwrap();
    // Arguments and outputs are texts inside the record, so no reader of it rounds them.
    let record = serde_json::to_value(&session.records()[0]).unwrap();
    assert_eq!(record["arguments"], r#"{"id":2512292042121000001}"#);
    assert_eq!(
        record["outcome"]["observed"]["content"],
        r#"{"id":2512292042121000001}"#
    );
    let brief = fixture.gateway.redactor().brief(&call, 80);
    assert_eq!(brief, r#"{"id":2512292042121000001}"#);
}

#[tokio::test]
async fn b18_arguments_nested_5000_deep_are_refused_and_nothing_breaks() {
    let fixture = fixture();
    let session = session(&fixture, 6).await;
    let deep = format!("{}1{}", r#"{"x":"#.repeat(5_000), "}".repeat(5_000));
    assert_eq!(
        ToolCall::new("refund", &deep).unwrap_err().fault,
        JsonFault::TooDeep
    );
    let call = ToolCall::native("refund", &deep);
    assert_eq!(
        reason(session.call("1", &call).await),
        "tool_bad_args:refund"
    );
    let action = format!(r#"{{"kind":"tool","name":"refund","args":{deep}}}"#);
    assert_eq!(
        parse_action(&action),
        Err(Stop::InvalidAction(InvalidAction::BadJson))
    );
    assert!(raw_action(&action).to_string().len() > 30_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f01_of_calls_in_parallel_never_more_start_than_there_are_slots() {
    for _ in 0..50 {
        let fixture = fixture();
        let session = session(&fixture, 6).await;
        let tasks: Vec<_> = (0..64)
            .map(|i| {
                let session = session.clone();
                tokio::spawn(async move { session.call(&format!("k{i}"), &add(i)).await })
            })
            .collect();
        let mut reasons = Vec::new();
        for task in tasks {
            reasons.push(reason(task.await.unwrap()));
        }
        reasons.sort();
        assert_eq!(
            reasons,
            [vec!["max_tool_calls"; 58], vec!["ok"; 6]].concat()
        );
        assert_eq!(fixture.runs.load(Ordering::SeqCst), 6);
        assert_eq!(session.budget().used().tool_calls, 6);
    }
}

#[tokio::test]
async fn f01_of_calls_in_one_turn_the_first_get_the_slots_in_every_run() {
    for _ in 0..20 {
        let fixture = fixture();
        let session = session(&fixture, 6).await;
        let calls: Vec<_> = (0..8).map(|i| (i.to_string(), add(i))).collect();
        let reasons: Vec<_> = session
            .call_all(&calls)
            .await
            .into_iter()
            .map(reason)
            .collect();
        assert_eq!(reasons, [vec!["ok"; 6], vec!["max_tool_calls"; 2]].concat());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f02_fifty_calls_at_once_are_counted_as_fifty() {
    let fixture = fixture();
    let session = session(&fixture, 100).await;
    let calls: Vec<_> = (0..50)
        .map(|i| {
            let session = session.clone();
            tokio::spawn(async move { session.call(&format!("k{i}"), &add(i)).await })
        })
        .collect();
    for call in calls {
        assert_eq!(reason(call.await.unwrap()), "ok");
    }
    assert_eq!(session.budget().used().tool_calls, 50);
    let order: Vec<_> = session.records().iter().map(|record| record.seq).collect();
    assert_eq!(order, (1..=50).collect::<Vec<_>>());
}

#[tokio::test]
async fn f11_steps_that_only_choose_wrong_tools_reach_the_cap_of_steps() {
    let fixture = fixture();
    let scope = Scope::new("agent", "thread");
    let limits = Limits {
        steps: 5,
        tool_calls: 100,
        ..Limits::default()
    };
    let session = fixture.gateway.session(scope, limits).await.unwrap();
    let mut steps = 0;
    let stop = loop {
        let step = match session.budget().step() {
            Ok(step) => step,
            Err(stop) => break stop,
        };
        steps = step;
        let wrong = ToolCall::new("no_such_tool", &json!({ "n": step }).to_string()).unwrap();
        assert_eq!(
            reason(session.call(&step.to_string(), &wrong).await),
            "tool_denied:no_such_tool"
        );
    };
    assert_eq!((steps, stop), (5, Stop::MaxSteps));
}

#[tokio::test(start_paused = true)]
async fn f14_when_several_limits_are_reached_at_once_one_fixed_reason_is_given() {
    let fixture = fixture();
    let scope = Scope::new("agent", "thread");
    let limits = Limits {
        steps: 1,
        tool_calls: 0,
        seconds: 1,
        ..Limits::default()
    };
    let session = fixture.gateway.session(scope, limits).await.unwrap();
    session.budget().step().unwrap();
    let denied = ToolCall::new("drop_it", "{}").unwrap();
    assert_eq!(session.call("1", &denied).await, Err(Stop::MaxToolCalls));
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    // Steps before time at a step, time before calls at a call.
    assert_eq!(session.budget().step(), Err(Stop::MaxSteps));
    assert_eq!(session.call("2", &denied).await, Err(Stop::MaxSeconds));
}
