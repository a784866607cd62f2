//! The log of a thread: what runs told is kept with what they saved, in the order of telling, and grows with
//! what happened.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use serde_json::{Value, json};
use std::sync::Arc;

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Chat {
    title: String,
    #[reduce(append)]
    lines: Vec<String>,
}

fn line(text: impl Into<String>) -> Update<Chat> {
    Chat::update().lines([text.into()])
}

/// A node that talks, then a subgraph beside a question.
fn graph() -> Graph<Chat> {
    let inner = Graph::<Chat>::new("inner")
        .node("deep", async |_: &Chat, ctx: &Ctx| {
            ctx.emit("from below").await?;
            Ok(line("deep"))
        })
        .start("deep")
        .end("deep")
        .build()
        .unwrap();
    Graph::<Chat>::new("chat")
        .node("talk", async |_: &Chat, ctx: &Ctx| {
            ctx.emit(json!({"progress": 1})).await?;
            ctx.message("m1", MessagePhase::Start, json!(null), &[])
                .await?;
            for piece in ["Good ", "morn", "ing"] {
                ctx.message("m1", MessagePhase::Chunk, json!(piece), &[])
                    .await?;
            }
            ctx.message("m1", MessagePhase::Finish, json!({"tokens": 3}), &[])
                .await?;
            ctx.message("m2", MessagePhase::Chunk, json!("alone"), &[])
                .await?;
            Ok(line("talk"))
        })
        .node("sub", inner.shared())
        .node("ask", async |_: &Chat, ctx: &Ctx| {
            Ok(line(ctx.interrupt::<String>("q", "sure?")?))
        })
        .start("talk")
        .edge("talk", "sub")
        .edge("sub", "ask")
        .end("ask")
        .build()
        .unwrap()
}

/// The events as they read, without what differs from run to run.
async fn told(thread: &Thread<Chat>) -> Vec<Value> {
    let logged = thread.events(&LogQuery::default()).await.unwrap();
    let seqs: Vec<u64> = logged.iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, (1..=logged.len() as u64).collect::<Vec<_>>());
    let read = |entry: &Logged| {
        assert!(entry.created_ms > 1_600_000_000_000);
        let mut event: Value = serde_json::from_str(&entry.json).unwrap();
        let object = event.as_object_mut().unwrap();
        assert_eq!(object.remove("run_id").unwrap(), json!(entry.run));
        assert_eq!(object.remove("thread_id").unwrap(), json!("t"));
        assert!(!object.contains_key("seq"));
        for volatile in ["id", "parent", "task"] {
            if object["type"] != "message" || volatile == "task" {
                object.remove(volatile);
            }
        }
        let namespace = object.remove("namespace").unwrap();
        if let Some((node, _)) = namespace.as_str().unwrap().split_once(':') {
            object.insert("in".to_owned(), json!(node));
        }
        event
    };
    logged.iter().map(read).collect()
}

#[tokio::test]
async fn the_log_has_what_was_told_in_its_order_though_nobody_read_it() {
    let checkpoint = |superstep: i64, source: &str, next: &[&str]| json!({"type": "checkpoint", "superstep": superstep, "source": source, "next": next});
    let message = |phase: &str, id: &str, payload: Value| json!({"type": "message", "node": "talk", "superstep": 0, "id": id, "phase": phase, "payload": payload});
    let of_sub = |mut event: Value| {
        event["in"] = json!("sub");
        event
    };
    let update = |superstep: i64, node: &str, text: &str| json!({"type": "update", "superstep": superstep, "node": node, "update": {"lines": [text]}});
    for durability in [Durability::Sync, Durability::Async] {
        let store: Store = MemoryStore::with_events();
        let thread = graph().thread(&store, "t");
        let paused = thread
            .run(Chat::update())
            .durability(durability)
            .await
            .unwrap();
        let question = paused.interrupts()[0].clone();
        let mut interrupt = json!(question);
        interrupt.as_object_mut().unwrap().remove("id");
        interrupt["type"] = json!("interrupt");
        interrupt["superstep"] = json!(2);
        let mut expected = vec![
            checkpoint(-1, "input", &["talk"]),
            json!({"type": "custom", "node": "talk", "superstep": 0, "data": {"progress": 1}}),
            message("start", "m1", json!(null)),
            json!({"type": "message", "node": "talk", "superstep": 0, "id": "m1", "phase": "chunk",
                "payloads": ["Good ", "morn", "ing"]}),
            message("finish", "m1", json!({"tokens": 3})),
            message("chunk", "m2", json!("alone")),
            update(0, "talk", "talk"),
            checkpoint(0, "loop", &["sub"]),
            of_sub(checkpoint(-1, "input", &["deep"])),
            of_sub(json!({"type": "custom", "node": "deep", "superstep": 0, "data": "from below"})),
            of_sub(update(0, "deep", "deep")),
            of_sub(checkpoint(0, "loop", &[])),
            update(1, "sub", "deep"),
            checkpoint(1, "loop", &["ask"]),
            interrupt,
        ];
        assert_eq!(told(&thread).await, expected, "{durability:?}");
        thread
            .answer(&question.id, "yes")
            .durability(durability)
            .await
            .unwrap();
        expected.push(update(2, "ask", "yes"));
        expected.push(checkpoint(2, "loop", &[]));
        assert_eq!(told(&thread).await, expected, "{durability:?}");
    }
}

#[tokio::test]
async fn with_exit_the_log_comes_with_what_is_saved_at_the_end() {
    let store: Store = MemoryStore::with_events();
    let thread = graph().thread(&store, "t");
    let run = thread.run(Chat::update()).durability(Durability::Exit);
    let mut stream = run.stream([Mode::Updates]);
    stream.next().await.unwrap();
    assert_eq!(told(&thread).await, [] as [Value; 0]);
    stream.outcome().await.unwrap();
    let kinds: Vec<_> = told(&thread).await;
    let kinds: Vec<_> = kinds.iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "custom",
            "message",
            "message",
            "message",
            "message",
            "update",
            "custom",
            "update",
            "update",
            "interrupt",
            "checkpoint"
        ]
    );
}

#[tokio::test]
async fn a_log_has_the_modes_that_were_asked_for_and_never_whole_states() {
    let store: Store = MemoryStore::with_events();
    for (modes, kinds) in [
        (vec![], vec![]),
        (vec![Mode::Values], vec![]),
        (vec![Mode::Custom], vec!["custom", "custom"]),
        (
            vec![Mode::Tasks, Mode::Values],
            vec!["task_start", "task_end"],
        ),
    ] {
        let thread = graph().thread(&store, format!("{modes:?}"));
        let options = RunOptions {
            log: modes,
            ..RunOptions::default()
        };
        let run = thread.run(Chat::update()).options(options);
        run.await.unwrap();
        let logged = thread.events(&LogQuery::default()).await.unwrap();
        let read = |entry: &Logged| serde_json::from_str::<Value>(&entry.json).unwrap();
        let mut seen: Vec<_> = logged.iter().map(read).map(|e| e["type"].clone()).collect();
        seen.dedup();
        if kinds.len() < 2 || kinds[0] != kinds[1] {
            seen.truncate(kinds.len());
        } else {
            seen.extend(seen.clone());
        }
        assert_eq!(seen, kinds);
    }
    // A store that keeps none is given none.
    let store = MemoryStore::new();
    let thread = graph().thread(&(store.clone() as Store), "t");
    thread.run(Chat::update()).await.unwrap();
    assert_eq!(store.events("t", &LogQuery::default()).await.unwrap(), []);
}

#[tokio::test]
async fn a_value_that_the_checkpoint_has_is_not_kept_twice() {
    let long = "x".repeat(100_000);
    let graph = Graph::<Chat>::new("g")
        .node("a", {
            let long = long.clone();
            with(long, async |long: &String, _: &Chat, _: &Ctx| {
                Ok(line(long.clone()).title("short"))
            })
        })
        .start("a")
        .end("a")
        .build()
        .unwrap();
    for durability in ALL {
        let store = MemoryStore::with_events();
        let thread = graph.thread(&(store.clone() as Store), "t");
        thread
            .run(Chat::update())
            .durability(durability)
            .await
            .unwrap();
        let events = told(&thread).await;
        let update = events.iter().find(|e| e["type"] == "update").unwrap();
        assert_eq!(update["update"], json!({"title": "short", "lines": [long]}));
        if durability != Durability::Exit {
            let stats = store.stats(Some("t")).await.unwrap();
            assert!(stats[0].bytes < 102_000, "{:?}", stats[0]);
        }
    }
}

#[tokio::test]
async fn what_a_node_says_is_kept_before_too_much_of_it_waits() {
    let graph = Graph::<Chat>::new("g")
        .node("loud", async |_: &Chat, ctx: &Ctx| {
            for n in 0..100 {
                ctx.emit("y".repeat(10_000) + &n.to_string()).await?;
            }
            ctx.interrupt::<String>("q", "?")?;
            Ok(Chat::update())
        })
        .start("loud")
        .end("loud")
        .build()
        .unwrap();
    for durability in ALL {
        let store = MemoryStore::with_events();
        let thread = graph.thread(&(store.clone() as Store), "t");
        let mut stream = thread
            .run(Chat::update())
            .durability(durability)
            .stream([Mode::Custom]);
        for _ in 0..20 {
            stream.next().await.unwrap();
            // The saver, where there is one, has a turn.
            tokio::task::yield_now().await;
        }
        let early = store.events("t", &LogQuery::default()).await.unwrap();
        assert_eq!(early.len() > 20, durability != Durability::Exit);
        stream.outcome().await.unwrap();
        let said = told(&thread).await;
        let said = said.iter().filter(|e| e["type"] == "custom").count();
        assert_eq!(said, 100, "{durability:?}");
    }
}

#[tokio::test]
async fn whoever_waits_for_the_log_to_grow_is_woken_when_it_has() {
    let store = MemoryStore::with_events();
    let waiting = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            store.grown("t", 0).await.unwrap();
            store.events("t", &LogQuery::default()).await.unwrap().len()
        }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    let thread = graph().thread(&(store.clone() as Store), "t");
    thread.run(Chat::update()).await.unwrap();
    assert!(waiting.await.unwrap() > 0);
    let all = thread.events(&LogQuery::default()).await.unwrap();
    let page = LogQuery {
        after: 3,
        limit: 2,
        ..LogQuery::default()
    };
    assert_eq!(thread.events(&page).await.unwrap(), all[3..5]);
    assert_eq!(store.trim("t", 4).await.unwrap(), 4);
    assert_eq!(thread.events(&LogQuery::default()).await.unwrap(), all[4..]);
}

// What the reader asked for is all it gets, whatever the log keeps.
#[tokio::test]
async fn a_log_changes_nothing_for_the_reader() {
    let seen = async |store: Store, modes: &[Mode], subgraphs: bool| {
        let thread = graph().thread(&store, "t");
        let mut stream = thread
            .run(Chat::update())
            .subgraphs(subgraphs)
            .stream(modes);
        let mut seen = Vec::new();
        while let Some(event) = stream.next().await {
            let json = serde_json::to_value(&event).unwrap();
            seen.push((
                json["type"].clone(),
                json["node"].clone(),
                json["seq"].clone(),
            ));
        }
        seen
    };
    for subgraphs in [false, true] {
        for modes in [
            &[Mode::Updates][..],
            &[Mode::Custom],
            &[Mode::Values, Mode::Tasks],
            &[Mode::Messages, Mode::Checkpoints],
        ] {
            assert_eq!(
                seen(MemoryStore::with_events(), modes, subgraphs).await,
                seen(MemoryStore::shared(), modes, subgraphs).await,
                "{modes:?}"
            );
        }
    }
}
