//! Bug reports of other projects, turned around, as far as they concern whole agents. Each test begins
//! with the letter and number of the report in the project's own log of them.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use futures::StreamExt as _;
use paraph_agents::{Agent, AgentEventData, Case, RunResult, Stores, Terms, react, support};
use paraph_gateway::{
    Dialect, DynTool, Event, EventKind, Field, Gateway, Json, Limits, MemoryStore, Policy,
    ToolError,
};
use paraph_models::{
    ChatModel, ChatRequest, Chunk, ChunkStream, MISSING_RESULT, Message, ModelError, Repair,
    ScriptedModel, ToolCallDelta,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Plays its turns, each a list of pieces, and notes what it was sent.
struct Played {
    turns: Vec<Vec<Result<Chunk, ModelError>>>,
    sent: Mutex<Vec<String>>,
}

impl Played {
    fn new(turns: impl IntoIterator<Item = Vec<Result<Chunk, ModelError>>>) -> Arc<Played> {
        Arc::new(Played {
            turns: turns.into_iter().collect(),
            sent: Mutex::default(),
        })
    }

    fn sent(&self) -> Vec<String> {
        self.sent.lock().unwrap().clone()
    }
}

impl ChatModel for Played {
    fn name(&self) -> &str {
        "played"
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        let mut sent = self.sent.lock().unwrap();
        let turn = self.turns.get(sent.len()).cloned().unwrap();
        let said = |m: &Message| format!("{} {}", m.kind(), m.text());
        let said: Vec<_> = request.messages.iter().map(said).collect();
        sent.push(said.join("\n"));
        futures::stream::iter(turn).boxed()
    }
}

fn says(text: &str) -> Vec<Result<Chunk, ModelError>> {
    vec![Ok(Chunk::text(text))]
}

fn case() -> Case {
    Case {
        user: 42,
        question: "Refund?".to_owned(),
    }
}

/// An agent with a tool that counts how often it ran.
fn hands_over() -> (Agent, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let counter = ran.clone();
    let schema = json!({"type": "object"});
    let tool = DynTool::new("transfer_back", "Hands over", schema, move |_: Json| {
        counter.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, ToolError>("done") }
    });
    let gateway = Gateway::builder(MemoryStore::shared())
        .dynamic(tool)
        .policy(
            Policy::new()
                .allow(["transfer_back"])
                .allow_unregistered(["ghost"]),
        )
        .build()
        .unwrap();
    (react("worker", "Work.", gateway).unwrap(), ran)
}

fn calls(id: &str, name: &str, arguments: &str) -> Vec<Result<Chunk, ModelError>> {
    vec![Ok(Chunk {
        tool_calls: vec![ToolCallDelta {
            index: Some(0),
            id: Some(id.to_owned()),
            name: Some(name.to_owned()),
            arguments: arguments.to_owned(),
            ..ToolCallDelta::default()
        }],
        ..Chunk::default()
    })]
}

/// An agent whose tool counts how often it was begun, and does not come back.
fn never_comes_back(records: Arc<dyn paraph_gateway::Store>) -> (Agent, Arc<AtomicUsize>) {
    let begun = Arc::new(AtomicUsize::new(0));
    let counter = begun.clone();
    let schema = json!({"type": "object"});
    let tool = DynTool::new("post", "Posts", schema, move |_: Json| {
        counter.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<Result<String, ToolError>>()
    });
    let gateway = Gateway::builder(records)
        .dynamic(tool)
        .policy(Policy::new().allow(["post"]))
        .build()
        .unwrap();
    (react("poster", "Post.", gateway).unwrap(), begun)
}

/// A01, langgraph#4289: a turn with calls was saved and their results were not. A08, autogen#3408: the same,
/// seen by whoever loads the conversation while the call was pending.
#[tokio::test]
async fn a01_a08_a_call_without_result_is_answered_as_unknown_said_once_and_not_made_again() {
    let records = MemoryStore::shared();
    let (agent, begun) = never_comes_back(records.clone());
    let model = Played::new([
        calls("c1", "post", "{}"),
        calls("c2", "nowhere", "{}"),
        says("Hello."),
    ]);
    let terms = Terms::new(model.clone(), "t");
    let mut run = agent.start("Post it", &terms).await.unwrap();
    while let Some(event) = run.next().await {
        if let AgentEventData::ToolStarted { .. } = event.data {
            break;
        }
    }
    run.control()
        .request_cancel(paraph_graph::CancelReason::User);
    let cancelled = run.result().await;
    assert_eq!(cancelled.stop().to_string(), "cancelled");

    let mut run = agent.start("hello?", &terms).await.unwrap();
    let mut told = Vec::new();
    let mut answer = None;
    while let Some(event) = run.next().await {
        match event.data {
            AgentEventData::HistoryRepaired {
                step,
                repairs,
                count,
            } => told.push((step, repairs, count)),
            AgentEventData::RunEnded { result, .. } => answer = result.answer().map(str::to_owned),
            _ => {}
        }
    }
    assert_eq!(answer.as_deref(), Some("Hello."));
    let answered = Repair::Answered {
        call_id: "c1".to_owned(),
        tool: "post".to_owned(),
    };
    assert_eq!(told, [(1, vec![answered], 1)]);
    assert_eq!(begun.load(Ordering::SeqCst), 1);
    let chain = records.audit("local", 0, 100).await.unwrap();
    let events = chain.iter().map(|entry| Event::read(&entry.event).unwrap());
    let repaired: Vec<_> = events
        .filter(|event| event.kind == EventKind::HistoryRepaired)
        .map(|event| event.fields)
        .collect();
    let fields = [
        ("count".to_owned(), Field::from(1_u64)),
        ("unanswered".to_owned(), Field::from("post")),
    ];
    assert_eq!(repaired, [BTreeMap::from(fields)]);
    let sent = model.sent();
    let expected = format!("human Post it\nai \ntool {MISSING_RESULT}\nhuman hello?");
    assert!(sent[1].ends_with(&expected), "{}", sent[1]);
}

/// A10, openai-agents-python#1840: a draft that was refused is not replayed to the next model.
#[tokio::test]
async fn a10_a_refused_draft_is_not_in_what_the_next_run_of_the_thread_sends() {
    let draft = r#"{"kind":"final","answer":"DRAFT","why":"DRAFT"}"#;
    let broken = vec![
        Ok(Chunk::text("DRAFT")),
        Err(ModelError::Disconnected {
            message: "cut".to_owned(),
        }),
    ];
    let table = [
        (Dialect::Strict, says(draft), "invalid_action:extra_keys"),
        (Dialect::Native, broken, "llm_error:connection"),
    ];
    for (dialect, refused, reason) in table {
        let agent = support(&Stores::in_memory(), dialect, &[], &[]).unwrap();
        let last = match dialect {
            Dialect::Strict => says(r#"{"kind":"final","answer":"Yes."}"#),
            Dialect::Native => says("Yes."),
        };
        let model = Played::new([refused, last]);
        let terms = Terms::new(model.clone(), "t");
        let first = agent.start(&case(), &terms).await.unwrap().result().await;
        assert_eq!(first.stop().to_string(), reason);
        let second = agent.start(&case(), &terms).await.unwrap().result().await;
        assert_eq!(second.answer(), Some("Yes."));
        let sent = model.sent();
        assert_eq!(sent.len(), 2);
        assert!(!sent[1].contains("DRAFT"), "{}", sent[1]);
    }
}

/// B04, connectonion#1321: a model that asks for the same unknown tool five times in one turn.
#[tokio::test]
async fn b04_the_same_refused_call_again_is_a_loop_and_every_call_has_its_result() {
    for (name, code) in [("ghost", "tool_missing:ghost"), ("rm", "tool_denied:rm")] {
        let call = |n| json!({"id": format!("c{n}"), "name": name, "arguments": {}});
        let turn = json!({ "tool_calls": (0..5).map(call).collect::<Vec<_>>() });
        let model = ScriptedModel::parse(&turn.to_string(), "script").unwrap();
        let (agent, _) = hands_over();
        let terms = Terms::new(Arc::new(model), "t");
        let result = agent.start("Go", &terms).await.unwrap().result().await;
        let RunResult::Messages(result) = result else {
            panic!("a run with messages has another result")
        };
        let mut reasons: Vec<_> = result
            .trace
            .iter()
            .map(|row| row.stop_reason.clone().unwrap())
            .collect();
        // Parallel calls: which of the five was the first is nobody's promise.
        reasons.sort_by_key(|reason| reason != code);
        assert_eq!(reasons, [vec![code], vec!["loop_detected"; 4]].concat());
        assert_eq!(result.stop_reason.to_string(), "loop_detected");
        let answered = result.messages.iter().filter_map(|m| m.tool_call_id());
        let answered: Vec<_> = answered.collect();
        assert_eq!(answered, ["c0", "c1", "c2", "c3", "c4"]);
    }
}

/// B04 in turns of their own: the refusal is read, and the same call again ends the run.
#[tokio::test]
async fn b04_a_model_that_does_not_listen_to_a_refusal_is_stopped_as_looping() {
    let turn = json!({"tool_calls": [{"name": "ghost", "arguments": {"n": 1}}]});
    let script = format!("{turn}\n{turn}\n{turn}");
    let model = ScriptedModel::parse(&script, "script").unwrap();
    let (agent, _) = hands_over();
    let terms = Terms::new(Arc::new(model), "t");
    let result = agent.start("Go", &terms).await.unwrap().result().await;
    let reasons: Vec<_> = result
        .trace()
        .iter()
        .map(|row| row.stop_reason.as_deref().unwrap())
        .collect();
    assert_eq!(reasons, ["tool_missing:ghost", "loop_detected"]);
    assert_eq!(result.stop().to_string(), "loop_detected");
}

/// B22, langgraph-supervisor-py#35: a tool's name written as prose.
#[tokio::test]
async fn b22_a_tools_name_as_prose_is_text_and_calls_nothing() {
    let (agent, ran) = hands_over();
    let model = Played::new([says("transfer_back"), says("transfer_back()")]);
    let terms = Terms::new(model.clone(), "t");
    for answer in ["transfer_back", "transfer_back()"] {
        let result = agent.start("Go", &terms).await.unwrap().result().await;
        assert_eq!(result.answer(), Some(answer));
        assert!(result.trace().is_empty());
    }
    // Each run asked once: prose is an answer, so there is nothing to go round for.
    assert_eq!((model.sent().len(), ran.load(Ordering::SeqCst)), (2, 0));
}

/// B22 in the other dialect, and with a call that is made for real.
#[tokio::test]
async fn b22_prose_is_no_action_and_the_same_hand_over_again_ends_the_run() {
    let agent = support(&Stores::in_memory(), Dialect::Strict, &[], &[]).unwrap();
    let model = Played::new([says("transfer_back_to_supervisor")]);
    let terms = Terms::new(model, "t");
    let result = agent.start(&case(), &terms).await.unwrap().result().await;
    assert_eq!(result.stop().to_string(), "invalid_action:bad_json");

    let (agent, ran) = hands_over();
    let turn = json!({"content": "transfer_back", "tool_calls": [{"name": "transfer_back"}]});
    let script = format!("{turn}\n{turn}\n{turn}");
    let model = ScriptedModel::parse(&script, "script").unwrap();
    let terms = Terms::new(Arc::new(model), "t");
    let result = agent.start("Go", &terms).await.unwrap().result().await;
    assert_eq!(result.stop().to_string(), "loop_detected");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

/// F19, tavily-python#177: a search that is refused for its rate. The model reads an error and never an
/// empty result.
#[tokio::test]
async fn f19_a_refused_search_is_an_error_to_the_model_and_no_empty_list() {
    let schema = json!({"type": "object"});
    let search = DynTool::new("search", "Searches", schema, async |_: Json| {
        Err::<Vec<String>, _>(ToolError::new("429: too many requests, wait 30 s"))
    });
    let gateway = Gateway::builder(MemoryStore::shared())
        .dynamic(search)
        .policy(Policy::new().allow(["search"]))
        .build()
        .unwrap();
    let agent = react("searcher", "Search.", gateway).unwrap();
    let call = json!({"tool_calls": [{"id": "c1", "name": "search", "arguments": {}}]});
    let script = format!("{call}\n{}", json!({"content": "I could not search."}));
    let model = ScriptedModel::parse(&script, "script").unwrap();
    let terms = Terms::new(Arc::new(model), "t");
    let result = agent.start("Go", &terms).await.unwrap().result().await;
    assert_eq!(result.answer(), Some("I could not search."));
    let trace = result.trace();
    assert_eq!((trace.len(), trace[0].ok), (1, false));
    let json = result.to_json().unwrap();
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    let told = &read["messages"].as_array().unwrap()[2];
    assert_eq!(told["status"], "error");
    let text = told["content"].as_str().unwrap();
    assert!(text.contains("429: too many requests, wait 30 s"), "{text}");
}

/// A turn of very many calls with long arguments: each task reads its own call alone.
#[tokio::test]
async fn a_thousand_calls_with_long_arguments_are_answered_without_reading_all_for_each() {
    let call =
        |n: usize| json!({"name": "transfer_back", "arguments": {"n": n, "x": "y".repeat(7_000)}});
    let turn = json!({ "tool_calls": (0..1_000).map(call).collect::<Vec<_>>() });
    let script = format!("{turn}\n{}", json!({"content": "Done."}));
    let model = ScriptedModel::parse(&script, "script").unwrap();
    let (agent, ran) = hands_over();
    let terms = Terms {
        limits: Limits {
            tool_calls: 1_000,
            seconds: 3_600,
            ..Limits::default()
        },
        ..Terms::new(Arc::new(model), "t")
    };
    let result = agent.start("Go", &terms).await.unwrap().result().await;
    assert_eq!(result.answer(), Some("Done."));
    assert_eq!(ran.load(Ordering::SeqCst), 1_000);
}
