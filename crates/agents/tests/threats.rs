//! Threats, each tried out on whole runs: a kill switch that is put on at any moment of one, and an approval whose
//! run fails right behind it. Each test begins with the number of the threat in SECURITY.md, or of the report.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use futures::StreamExt as _;
use paraph_agents::{Agent, RunResult, Stores, Terms, react};
use paraph_gateway::examples::Pay;
use paraph_gateway::{
    Approvals, Ask, DynTool, Gateway, Json, Limits, Policy, Reply, Scope, State, Stop, Store,
    ToolCall, ToolError, Why,
};
use paraph_models::{
    ChatModel, ChatRequest, ChunkStream, ModelError, RetryPolicy, Retrying, ScriptedModel,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long a process may not yet have seen a switch that somebody put on, for calls that only read. Effects look
/// at the store itself.
const SEEN_WITHIN: Duration = Duration::from_secs(1);

/// A person at the switch.
async fn kill(records: &Arc<dyn Store>, scope: &str) {
    let desk = Approvals::new(records.clone());
    desk.kill(scope, "ann", "something is wrong").await.unwrap();
}

/// A model during whose n-th answer somebody puts the switch on.
struct Watched {
    inner: ScriptedModel,
    asked: AtomicUsize,
    at: usize,
    records: Arc<dyn Store>,
}

impl ChatModel for Watched {
    fn name(&self) -> &str {
        "watched"
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let answer = self.inner.stream(request);
        let switch = async move {
            if asked == self.at {
                kill(&self.records, "global").await;
                tokio::time::sleep(SEEN_WITHIN).await;
            }
        };
        let first = futures::stream::once(switch).filter_map(async |()| None);
        let both = first.map(Ok::<_, ModelError>).chain(answer);
        both.boxed()
    }
}

/// An agent with a tool that counts its calls, and one at whose end somebody puts the switch on.
fn agent(stores: &Stores, pay: &Pay, ran: &Arc<AtomicUsize>) -> Agent {
    let (counter, records) = (ran.clone(), stores.records.clone());
    let schema = json!({"type": "object"});
    let look = DynTool::new("look", "Looks", schema.clone(), move |_: Json| {
        counter.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, ToolError>("seen") }
    });
    let alarm = DynTool::new(
        "alarm",
        "Looks, and somebody is alarmed",
        schema,
        move |_: Json| {
            let records = records.clone();
            async move {
                kill(&records, "global").await;
                tokio::time::sleep(SEEN_WITHIN).await;
                Ok::<_, ToolError>("done")
            }
        },
    );
    let gateway = Gateway::builder(stores.records.clone())
        .dynamic(look)
        .dynamic(alarm)
        .effect(pay.clone())
        .policy(
            Policy::new()
                .allow(["look", "alarm"])
                .ask("pay", Ask::default()),
        )
        .build()
        .unwrap();
    react("clerk", "Work.", gateway)
        .unwrap()
        .on(stores.threads.clone())
}

fn calls(names: &[(&str, Value)]) -> String {
    let call = |(n, (name, args)): (usize, &(&str, Value))| json!({"id": format!("c{n}"), "name": name, "arguments": args});
    let calls: Vec<_> = names.iter().enumerate().map(call).collect();
    json!({ "tool_calls": calls }).to_string()
}

fn look(n: u32) -> (&'static str, Value) {
    ("look", json!({ "n": n }))
}

fn script(lines: &[String]) -> ScriptedModel {
    ScriptedModel::parse(&lines.join("\n"), "script").unwrap()
}

fn killed(result: &RunResult) {
    assert_eq!(result.stop(), &Stop::KilledGlobal);
}

#[tokio::test(start_paused = true)]
async fn t27_a_switch_put_on_while_the_model_answers_lets_none_of_its_calls_start() {
    for at in [1, 2] {
        let (stores, pay, ran) = (Stores::in_memory(), Pay::default(), Arc::default());
        let lines = [
            calls(&[look(1)]),
            calls(&[look(2), look(3)]),
            json!({"content": "Done."}).to_string(),
        ];
        let model = Watched {
            inner: script(&lines),
            asked: AtomicUsize::new(0),
            at,
            records: stores.records.clone(),
        };
        let terms = Terms::new(Arc::new(model), "t");
        let run = agent(&stores, &pay, &ran)
            .start("Go", &terms)
            .await
            .unwrap();
        killed(&run.result().await);
        // What ran was called before.
        assert_eq!(ran.load(Ordering::SeqCst), at - 1);
    }
}

#[tokio::test(start_paused = true)]
async fn t27_a_switch_put_on_while_a_tool_runs_lets_no_further_call_start() {
    let (stores, pay, ran) = (Stores::in_memory(), Pay::default(), Arc::default());
    let lines = [
        calls(&[("alarm", json!({}))]),
        calls(&[look(1), ("pay", json!({"cents": 1}))]),
        json!({"content": "Done."}).to_string(),
    ];
    let terms = Terms::new(Arc::new(script(&lines)), "t");
    let run = agent(&stores, &pay, &ran)
        .start("Go", &terms)
        .await
        .unwrap();
    let result = run.result().await;
    killed(&result);
    // The call that ran while it was put on ended as it ended.
    assert!(result.trace()[0].ok);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    let desk = Approvals::new(stores.records.clone());
    assert_eq!(desk.waiting().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn t27_a_switch_put_on_while_a_retry_waits_lets_no_call_start() {
    let (stores, pay, ran) = (Stores::in_memory(), Pay::default(), Arc::default());
    let lines = [
        r#"{"error":{"kind":"http","status":429,"retry_after":5}}"#.to_owned(),
        calls(&[look(1)]),
        json!({"content": "Done."}).to_string(),
    ];
    let model = Retrying::new(script(&lines), RetryPolicy::default());
    let terms = Terms::new(Arc::new(model), "t");
    let records = stores.records.clone();
    let somebody = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(2)).await;
        kill(&records, "global").await;
    });
    let run = agent(&stores, &pay, &ran)
        .start("Go", &terms)
        .await
        .unwrap();
    killed(&run.result().await);
    somebody.await.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn t27_a_switch_put_on_while_people_decide_holds_what_they_approved_also_in_the_next_process()
{
    for approves_first in [true, false] {
        let (stores, pay, ran) = (Stores::in_memory(), Pay::default(), Arc::default());
        let lines = [
            calls(&[("pay", json!({"cents": 1}))]),
            json!({"content": "Done."}).to_string(),
        ];
        let terms = || Terms::new(Arc::new(script(&lines)), "t");
        let run = agent(&stores, &pay, &ran)
            .start("Go", &terms())
            .await
            .unwrap();
        let id = run.run_id();
        let asked = run.result().await.approvals()[0].clone();
        let desk = Approvals::new(stores.records.clone());
        if approves_first {
            desk.approve(asked.id, &asked.digest, "ann").await.unwrap();
        }
        kill(&stores.records, "writes").await;
        if !approves_first {
            // Whoever decides now decides nothing that starts.
            let _ = desk.approve(asked.id, &asked.digest, "ann").await;
        }
        let next = agent(&stores, &pay, &ran)
            .resume(id, &terms())
            .await
            .unwrap();
        let stopped = next.result().await;
        // What was decided is not lost: the run waits until the switch is off.
        assert_eq!(stopped.stop(), &Stop::ApprovalPending, "{approves_first}");
        assert_eq!(stopped.approvals()[0].why, Why::Killed);
        assert!(pay.paid().is_empty());
        desk.unkill("writes", "ann").await.unwrap();
        assert!(pay.paid().is_empty());
        let row = desk.show(asked.id).await.unwrap();
        assert_ne!(row.state, State::Approved, "{approves_first}");
    }
}

/// An effect does not wait for that: no sleep in between.
#[tokio::test(start_paused = true)]
async fn t27_an_effect_sees_a_switch_at_once_though_its_process_looked_a_moment_ago() {
    let (stores, pay) = (Stores::in_memory(), Pay::default());
    let gateway = Gateway::builder(stores.records.clone())
        .effect(pay.clone())
        .policy(Policy::new().ask("pay", Ask::default()))
        .build()
        .unwrap();
    let scope = Scope::new("clerk", "t");
    let session = gateway.session(scope, Limits::default()).await.unwrap();
    let call = ToolCall::native("pay", r#"{"cents":1}"#);
    let Ok(Reply::Waiting(asked)) = session.call("k", &call).await else {
        panic!("it does not wait")
    };
    let desk = gateway.approvals();
    desk.approve(asked.action, &asked.digest, "ann")
        .await
        .unwrap();
    kill(&stores.records, "tool:pay").await;
    let Ok(Reply::Waiting(waits)) = session.call("k", &call).await else {
        panic!("it does not wait")
    };
    assert_eq!(waits.why, Why::Killed);
    let stop = session.call("new", &call).await.unwrap_err();
    assert_eq!(stop, Stop::ToolDisabled("pay".into()));
    assert!(pay.paid().is_empty());
}

/// D15, agent-framework#7458: the approval is used up and the tool has run, and then the turn fails.
#[tokio::test]
async fn d15_when_the_model_fails_behind_an_approved_effect_nothing_is_asked_or_done_twice() {
    let (stores, pay, ran) = (Stores::in_memory(), Pay::default(), Arc::default());
    let asks = calls(&[("pay", json!({"cents": 5}))]);
    let fails = r#"{"error":{"kind":"http","status":500}}"#.to_owned();
    let answer = json!({"content": "Paid."}).to_string();
    let lines = [asks, fails, answer];
    let terms = || Terms::new(Arc::new(script(&lines)), "t");
    let run = agent(&stores, &pay, &ran)
        .start("Go", &terms())
        .await
        .unwrap();
    let id = run.run_id();
    let asked = run.result().await.approvals()[0].clone();
    assert_eq!(asked.why, Why::Approval);
    let desk = Approvals::new(stores.records.clone());
    desk.approve(asked.id, &asked.digest, "ann").await.unwrap();
    let failed = agent(&stores, &pay, &ran)
        .resume(id, &terms())
        .await
        .unwrap();
    let failed = failed.result().await;
    assert_eq!(failed.stop().to_string(), "llm_error:server");
    assert_eq!(pay.paid().len(), 1);
    // The same decision again is the stored answer.
    let again = desk.approve(asked.id, &asked.digest, "ann").await.unwrap();
    assert_eq!(again.state, State::Succeeded);
    // The conversation goes on, knows what was done, and asks nobody.
    let lines = [json!({"content": "It was paid."}).to_string()];
    let terms = Terms::new(Arc::new(script(&lines)), "t");
    let next = agent(&stores, &pay, &ran)
        .start("And?", &terms)
        .await
        .unwrap();
    let RunResult::Messages(last) = next.result().await else {
        panic!("a run with messages has another result")
    };
    assert_eq!(last.answer.as_deref(), Some("It was paid."));
    let texts: Vec<_> = last
        .messages
        .iter()
        .map(|m| m.text().into_owned())
        .collect();
    assert!(
        texts.iter().any(|text| text.contains("paid 5 cents")),
        "{texts:?}"
    );
    assert_eq!(desk.waiting().await.unwrap(), []);
    assert_eq!(pay.paid().len(), 1);
}
