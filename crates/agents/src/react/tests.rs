//! The message loop: order, failures, deadlines. Its outcomes beside the other dialect are in `tests/`.

use super::*;
use crate::Terms;
use crate::outcome::RunResult;
use futures::future::BoxFuture;
use paraph_gateway::{DynTool, Gateway, Json, Limits, MemoryStore, Policy, ToolError};
use paraph_graph::{
    CheckpointId, Checkpoints, Claim, Entry, HistoryQuery, Lease, Loaded, Notes, Put, Scope, Store,
};
use paraph_models::{Body, ChatModel, Chunk, ChunkStream, ScriptedModel, ToolCallDelta};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Wait {
    seconds: u64,
}

fn gateway() -> Gateway {
    Gateway::builder(MemoryStore::shared())
        .read("wait", "Waits", async |wait: Wait| {
            tokio::time::sleep(Duration::from_secs(wait.seconds)).await;
            match wait.seconds {
                13 => Err(ToolError::new("an unlucky number")),
                seconds => Ok(seconds),
            }
        })
        .policy(Policy::new().allow(["wait"]))
        .build()
        .unwrap()
}

async fn run(script: &str, limits: Limits) -> crate::MessageResult {
    let model = ScriptedModel::parse(script, "script").unwrap();
    let terms = Terms {
        limits,
        ..Terms::new(Arc::new(model), "t")
    };
    let agent = react("waiter", "Wait.", gateway()).unwrap();
    match agent.start("Go", &terms).await.unwrap().result().await {
        RunResult::Messages(result) => result,
        _ => panic!("a run with messages has another result"),
    }
}

fn calls(arguments: &[&str]) -> String {
    let calls = arguments.iter().enumerate().map(|(n, arguments)| {
        serde_json::json!({"id": format!("c{n}"), "name": "wait", "arguments": arguments})
    });
    serde_json::json!({ "tool_calls": calls.collect::<Vec<_>>() }).to_string()
}

fn tool_texts(result: &crate::MessageResult) -> Vec<String> {
    let tools = result
        .messages
        .iter()
        .filter(|m| m.tool_call_id().is_some());
    tools.map(|message| message.text().into_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_overlap_and_their_results_keep_the_order_of_the_calls() {
    let script = format!(
        "{}\n{}",
        calls(&[r#"{"seconds":9}"#, r#"{"seconds":1}"#, r#"{"seconds":5}"#]),
        r#"{"content":" Done. "}"#
    );
    let started = tokio::time::Instant::now();
    let result = run(&script, Limits::default()).await;
    assert_eq!(started.elapsed().as_secs(), 9);
    assert_eq!(result.answer.as_deref(), Some("Done."));
    assert_eq!(tool_texts(&result), ["9", "1", "5"]);
    let ids: Vec<_> = result
        .messages
        .iter()
        .filter_map(|m| m.tool_call_id())
        .collect();
    assert_eq!(ids, ["c0", "c1", "c2"]);
    assert_eq!(result.messages[0].body, Body::Human);
}

#[tokio::test(start_paused = true)]
async fn what_a_call_does_wrong_the_model_reads() {
    let script = format!(
        "{}\n{}",
        calls(&[r#"{"seconds":13}"#, r#"{"seconds":"#, r#"{"minutes":1}"#]),
        r#"{"content":"I give up."}"#
    );
    let result = run(&script, Limits::default()).await;
    let rows: Vec<_> = result
        .trace
        .iter()
        .map(|row| row.stop_reason.as_deref())
        .collect();
    let reasons = [
        "tool_error:wait",
        "tool_bad_args:wait",
        "tool_bad_args:wait",
    ];
    // Calls whose arguments are no JSON come last, since providers give them apart.
    assert_eq!(rows, reasons.map(Some));
    assert!(tool_texts(&result)[0].contains("an unlucky number"));
    assert_eq!(result.stop_reason, Stop::Success);
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_cut_off_when_the_runs_time_is_over() {
    let script = calls(&[r#"{"seconds":25}"#, r#"{"seconds":1}"#]);
    let result = run(&script, Limits::default()).await;
    assert_eq!(result.stop_reason, Stop::MaxSeconds);
    let oks: Vec<_> = result.trace.iter().map(|row| row.ok).collect();
    assert_eq!(oks, [false, true]);
    // Every call has its result, so that the conversation can go on elsewhere.
    assert_eq!(tool_texts(&result), ["max_seconds", "1"]);
}

#[tokio::test(start_paused = true)]
async fn a_tools_own_time_is_an_observation() {
    let script = format!(
        "{}\n{}",
        calls(&[r#"{"seconds":31}"#]),
        r#"{"content":"Too slow."}"#
    );
    let patient = Limits {
        seconds: 60,
        ..Limits::default()
    };
    let result = run(&script, patient).await;
    assert_eq!(
        result.trace[0].stop_reason.as_deref(),
        Some("tool_timeout:wait")
    );
    assert_eq!(result.answer.as_deref(), Some("Too slow."));
}

#[tokio::test]
async fn a_run_has_one_reason_though_several_calls_end_it() {
    let script = calls(&[r#"{"seconds":0}"#, r#"{"seconds":0}"#, r#"{"seconds":0}"#]);
    let result = run(&script, Limits::default()).await;
    assert_eq!(result.stop_reason, Stop::LoopDetected);
    assert_eq!(result.trace.iter().filter(|row| row.ok).count(), 1);
}

/// pydantic-ai PR#2978 and #1105: more parallel calls than the budget has.
#[tokio::test(flavor = "multi_thread")]
async fn of_more_calls_than_there_are_slots_the_first_ones_run() {
    let arguments: Vec<_> = (0..200)
        .map(|n| format!(r#"{{"seconds":0,"n":{n}}}"#))
        .collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let schema = serde_json::json!({"type": "object"});
    let echo = DynTool::new("wait", "Says it back", schema, async |args: Json| {
        Ok::<_, ToolError>(args)
    });
    let gateway = Gateway::builder(MemoryStore::shared())
        .dynamic(echo)
        .policy(Policy::new().allow(["wait"]))
        .build()
        .unwrap();
    let model = ScriptedModel::parse(&calls(&arguments), "script").unwrap();
    let agent = react("echo", "Echo.", gateway).unwrap();
    let run = agent
        .start("Go", &Terms::new(Arc::new(model), "t"))
        .await
        .unwrap();
    let RunResult::Messages(result) = run.result().await else {
        panic!("a run with messages has another result")
    };
    assert_eq!(result.stop_reason, Stop::MaxToolCalls);
    let ok: Vec<_> = result.trace.iter().map(|row| row.ok).collect();
    assert_eq!(ok, [vec![true; 6], vec![false; 194]].concat());
    assert_eq!(tool_texts(&result).len(), 200);
}

/// pi#8943 and openai-agents-python PR#2601: integers above 2^53.
#[tokio::test]
async fn every_digit_of_an_argument_reaches_the_tool_the_model_and_the_trace() {
    let schema = serde_json::json!({"type": "object"});
    let echo = DynTool::new("wait", "Says it back", schema, async |args: Json| {
        Ok::<_, ToolError>(args)
    });
    let gateway = Gateway::builder(MemoryStore::shared())
        .dynamic(echo)
        .policy(Policy::new().allow(["wait"]))
        .build()
        .unwrap();
    let args = r#"{"id":2512292042121000001,"x":1.50}"#;
    let script = format!("{}\n{}", calls(&[args]), r#"{"content":"Seen."}"#);
    let model = ScriptedModel::parse(&script, "script").unwrap();
    let agent = react("echo", "Echo.", gateway).unwrap();
    let mut run = agent
        .start("Go", &Terms::new(Arc::new(model), "t"))
        .await
        .unwrap();
    let mut shown = Vec::new();
    let mut texts = Vec::new();
    while let Some(event) = run.next().await {
        match event.data {
            AgentEventData::ToolEnded { args, .. } => shown.push(args),
            AgentEventData::RunEnded {
                result: RunResult::Messages(result),
                ..
            } => texts = tool_texts(&result),
            _ => {}
        }
    }
    assert_eq!(
        (shown, texts),
        (vec![args.to_owned()], vec![args.to_owned()])
    );
}

#[test]
fn the_graph_is_a_loop_of_two_nodes() {
    let agent = react("waiter", "Wait.", gateway()).unwrap();
    let names: Vec<_> = agent
        .drawing()
        .nodes
        .iter()
        .map(|node| node.name.to_string())
        .collect();
    assert_eq!(names, ["__start__", "model", "tools", "__end__"]);
}

#[test]
fn a_run_that_its_model_ends_is_over_at_the_model() {
    let table = [
        (Stop::LlmEmpty, MODEL),
        (Stop::MaxSteps, MODEL),
        (Stop::LoopDetected, TOOLS.name()),
    ];
    for (stop, from) in table {
        let asked = vec![Message::human("hi")];
        let state = ReactState {
            messages: paraph_graph::List::from_items(asked),
            ending: Some(Ending::from(stop.clone())),
            ..ReactState::default()
        };
        assert_eq!(Application::route(&state).from, from, "{stop}");
    }
}

/// A store of which one write fails, and has happened or not.
struct FailsOnce {
    inner: Store,
    writes: AtomicUsize,
    at: usize,
    happens: bool,
}

impl FailsOnce {
    fn write<'a>(
        &self,
        write: impl FnOnce() -> BoxFuture<'a, Result<(), paraph_graph::Error>>,
    ) -> BoxFuture<'a, Result<(), paraph_graph::Error>> {
        if self.writes.fetch_add(1, Ordering::SeqCst) != self.at {
            return write();
        }
        let written = self.happens.then(write);
        Box::pin(async move {
            if let Some(written) = written {
                written.await?;
            }
            Err(paraph_graph::Error::store("the disk is full"))
        })
    }
}

impl Checkpoints for FailsOnce {
    fn lease<'a>(
        &'a self,
        thread: &'a str,
        claim: Claim,
    ) -> BoxFuture<'a, Result<Lease, paraph_graph::Error>> {
        self.inner.lease(thread, claim)
    }

    fn put<'a>(
        &'a self,
        scope: &'a Scope,
        put: Put,
    ) -> BoxFuture<'a, Result<(), paraph_graph::Error>> {
        self.write(|| self.inner.put(scope, put))
    }

    fn note<'a>(
        &'a self,
        scope: &'a Scope,
        notes: Notes,
    ) -> BoxFuture<'a, Result<(), paraph_graph::Error>> {
        self.write(|| self.inner.note(scope, notes))
    }

    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, paraph_graph::Error>> {
        self.inner.load(scope, at)
    }

    fn history<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, paraph_graph::Error>> {
        self.inner.history(scope, query)
    }
}

/// Wants one call made, then answers; notes what it was asked.
#[derive(Default)]
struct Caller(Mutex<Vec<Vec<String>>>);

impl ChatModel for Caller {
    fn name(&self) -> &str {
        "caller"
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        let kinds = request.messages.iter().map(|m| m.kind().to_owned());
        let kinds: Vec<_> = kinds.collect();
        let has_result = kinds.iter().any(|kind| kind == "tool");
        self.0.lock().unwrap().push(kinds);
        let call = ToolCallDelta {
            name: Some("count".to_owned()),
            ..ToolCallDelta::default()
        };
        let chunk = match has_result {
            true => Chunk::text("Counted."),
            false => Chunk {
                tool_calls: vec![call],
                ..Chunk::default()
            },
        };
        Box::pin(futures::stream::iter([Ok(chunk)]))
    }
}

/// How a run ended whose write number `at` failed, or nothing if it had no such write.
async fn with_a_failed_write(at: usize, happens: bool) -> Option<(Vec<&'static str>, usize)> {
    let ran = Arc::new(AtomicUsize::new(0));
    let counter = ran.clone();
    let schema = serde_json::json!({"type": "object"});
    let count = DynTool::new("count", "Counts", schema, move |_: Json| {
        let n = counter.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, ToolError>(n) }
    });
    let gateway = Gateway::builder(MemoryStore::shared())
        .dynamic(count)
        .policy(Policy::new().allow(["count"]))
        .build()
        .unwrap();
    let store = Arc::new(FailsOnce {
        inner: paraph_graph::MemoryStore::shared(),
        writes: AtomicUsize::new(0),
        at,
        happens,
    });
    let agent = react("counter", "Count.", gateway.clone()).unwrap();
    let agent = agent.on(store.clone());
    let model = Arc::new(Caller::default());
    let terms = Terms::new(model.clone(), "t");
    let run = agent.start("Go", &terms).await.unwrap();
    let id = run.run_id();
    let result = run.result().await;
    if store.writes.load(Ordering::SeqCst) <= at {
        assert_eq!(result.answer(), Some("Counted."));
        return None;
    }
    assert_eq!(result.stop().to_string(), "store_error", "write {at}");
    let graph = graph("counter", Speech::of("Count.".to_owned()), &gateway).unwrap();
    let thread = graph.thread(&agent.store, "t");
    match thread.snapshot(None).await.unwrap() {
        Some(saved) if saved.finished => {}
        Some(_) => {
            let again = agent.resume(id, &terms).await.unwrap();
            assert_eq!(again.run_id(), id);
            assert_eq!(again.result().await.answer(), Some("Counted."));
        }
        None => {
            let begun = agent.start("Go", &terms).await.unwrap();
            begun.result().await;
        }
    }
    let saved = thread.snapshot(None).await.unwrap().unwrap();
    let asked = model.0.lock().unwrap().last().unwrap().clone();
    assert_eq!(asked, ["system", "human", "ai", "tool"], "write {at}");
    let kinds = saved.state.messages.iter().map(Message::kind);
    Some((kinds.collect(), ran.load(Ordering::SeqCst)))
}

/// A04, openai-agents-python#4615: the tool ran, but its result was not saved.
#[tokio::test]
async fn a04_whichever_write_fails_the_tool_runs_once_and_its_result_is_there_once() {
    for happens in [false, true] {
        let mut at = 0;
        while let Some((kinds, ran)) = with_a_failed_write(at, happens).await {
            assert_eq!(kinds, ["human", "ai", "tool", "ai"], "write {at}");
            assert_eq!(ran, 1, "write {at}");
            at += 1;
        }
        assert!(at > 3, "only {at} writes");
    }
}
