//! What a run tells while it runs: which events, in which order, and never before they are saved.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Talk {
    topic: String,
    #[reduce(append)]
    log: Vec<String>,
}

const SEND: Each<u64> = Each::new("send");

async fn log(_: &Talk, ctx: &Ctx) -> Result<Update<Talk>> {
    Ok(Talk::update().log([ctx.node().to_owned()]))
}

async fn wait(seconds: &u64, _: &Talk, ctx: &Ctx) -> Result<Update<Talk>> {
    tokio::time::sleep(Duration::from_secs(*seconds)).await;
    Ok(Talk::update().log([ctx.node().to_owned()]))
}

fn talk() -> Builder<Talk> {
    Graph::<Talk>::new("talk")
}

/// The events of a run as JSON, without what differs from run to run, and the run's end.
async fn told(
    run: Start<Talk>,
    modes: impl AsRef<[Mode]>,
) -> (Vec<Value>, Result<Outcome<Talk>, Error>) {
    let mut stream = run.stream(modes);
    let mut all = Vec::new();
    while let Some(event) = stream.next().await {
        let mut json = serde_json::to_value(&event).unwrap();
        assert_eq!(json["seq"], all.len());
        let map = json.as_object_mut().unwrap();
        for key in ["seq", "run_id", "thread_id", "task", "superstep"] {
            map.remove(key);
        }
        if map["namespace"] == "" {
            map.remove("namespace");
        }
        all.push(json);
    }
    (all, stream.outcome().await)
}

/// Each event in a word or two.
async fn words(run: Start<Talk>, modes: impl AsRef<[Mode]>) -> Vec<String> {
    let mut stream = run.stream(modes);
    let mut all = Vec::new();
    while let Some(event) = stream.next().await {
        let place = event.superstep;
        all.push(match event.data {
            EventData::Values { state } => {
                format!(
                    "{place} values {}",
                    state.get::<Talk>().unwrap().log.join(" ")
                )
            }
            EventData::Update { node, .. } => format!("{place} update {node}"),
            EventData::Interrupt(question) => format!("{place} interrupt {}", question.key),
            EventData::Custom { node, data } => format!("{place} custom {node} {data}"),
            EventData::Message(message) => format!("{place} message {}", message.id),
            EventData::TaskStart { node, .. } => format!("{place} start {node}"),
            EventData::TaskEnd { node, .. } => format!("{place} end {node}"),
            EventData::Checkpoint { next, .. } => format!("{place} checkpoint {}", next.join(" ")),
            other => panic!("{other:?}"),
        });
    }
    all
}

fn two_then_one() -> Graph<Talk> {
    talk()
        .node("slow", with(2, wait))
        .node("fast", with(1, wait))
        .node("last", log)
        .start(["slow", "fast"])
        .join(["slow", "fast"], "last")
        .end("last")
        .build()
        .unwrap()
}

// 76.
#[tokio::test(start_paused = true)]
async fn updates_come_as_tasks_finish_and_values_once_per_superstep_in_declared_order() {
    let expected = [
        "-1 values ",
        "0 update fast",
        "0 update slow",
        "0 values slow fast",
        "1 update last",
        "1 values slow fast last",
    ];
    let modes = [Mode::Values, Mode::Updates];
    let graph = two_then_one();
    assert_eq!(words(graph.run(Talk::update()), modes).await, expected);
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let thread = graph.thread(&MemoryStore::shared(), "t");
        let run = thread.run(Talk::update()).durability(durability);
        assert_eq!(words(run, modes).await, expected, "{durability:?}");
    }
}

// 76.
#[tokio::test]
async fn an_update_event_holds_what_the_node_wrote_by_channel() {
    async fn write(_: &Talk, _: &Ctx) -> Result<Update<Talk>> {
        Ok(Talk::update()
            .topic("new")
            .replace_log(vec!["x".to_owned()]))
    }
    let graph = talk()
        .node("write", write)
        .node("idle", async |_: &Talk, _: &Ctx| Ok(Talk::update()))
        .start("write")
        .edge("write", "idle")
        .end("idle")
        .build()
        .unwrap();
    let (events, outcome) = told(graph.run(Talk::update()), [Mode::Updates]).await;
    assert_eq!(
        events,
        [
            json!({"type": "update", "node": "write", "update": {"topic": "new", "log": ["x"]}}),
            json!({"type": "update", "node": "idle", "update": {}}),
        ]
    );
    assert_eq!(outcome.unwrap().done().unwrap().topic, "new");
}

// 79.
#[tokio::test]
async fn the_first_result_is_told_while_the_second_task_still_runs() {
    async fn until(go: &Arc<Notify>, _: &Talk, ctx: &Ctx) -> Result<Update<Talk>> {
        go.notified().await;
        Ok(Talk::update().log([ctx.node().to_owned()]))
    }
    let go = Arc::new(Notify::new());
    let graph = talk()
        .node("first", log)
        .node("second", with(go.clone(), until))
        .start(["first", "second"])
        .end(["first", "second"])
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    for run in [
        graph.run(Talk::update()),
        graph.thread(&store, "t").run(Talk::update()),
    ] {
        let mut stream = run.stream([Mode::Updates]);
        let Some(EventData::Update { node, .. }) = stream.next().await.map(|e| e.data) else {
            panic!("no update")
        };
        assert_eq!(node, "first");
        // Only now may the second one end.
        go.notify_one();
        let state = stream.outcome().await.unwrap().done().unwrap();
        assert_eq!(state.log, ["first", "second"]);
    }
}

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Inner {
    #[reduce(append)]
    notes: Vec<String>,
}

/// A graph whose node `sub` is a subgraph whose node `deep` is one again; each speaks.
fn nested() -> Graph<Talk> {
    async fn speak(_: &Inner, ctx: &Ctx) -> Result<Update<Inner>> {
        ctx.emit(ctx.node()).await?;
        let tags = ["quiet".to_owned()];
        ctx.message("m1", MessagePhase::Chunk, "Hel", &tags).await?;
        Ok(Inner::update().notes([ctx.node().to_owned()]))
    }
    let deep = Graph::<Inner>::new("deep")
        .node("leaf", speak)
        .start("leaf")
        .end("leaf")
        .build()
        .unwrap();
    let sub = Graph::<Inner>::new("sub")
        .node("own", speak)
        .node(
            "deep",
            deep.mapped(
                |_: &Inner| Inner::update(),
                |i: Inner| Inner::update().notes(i.notes),
            ),
        )
        .start("own")
        .edge("own", "deep")
        .end("deep")
        .build()
        .unwrap();
    talk()
        .node(
            "sub",
            sub.mapped(
                |_: &Talk| Inner::update(),
                |i: Inner| Talk::update().log(i.notes),
            ),
        )
        .start("sub")
        .end("sub")
        .build()
        .unwrap()
}

/// The nodes of a namespace: task ids left out.
fn nodes_of(namespace: &str) -> String {
    let nodes = namespace.split('|').map(|n| n.split(':').next().unwrap());
    nodes.collect::<Vec<_>>().join("/")
}

// 76.
#[tokio::test]
async fn events_of_subgraphs_say_where_they_come_from_and_come_when_asked_for() {
    let modes = [Mode::Updates, Mode::Custom, Mode::Messages, Mode::Values];
    let run = async |subgraphs: bool, stored: bool| {
        let store = MemoryStore::shared();
        let start = if stored {
            nested().thread(&store, "t").run(Talk::update())
        } else {
            nested().run(Talk::update())
        };
        let mut stream = start.subgraphs(subgraphs).stream(modes);
        let mut all = Vec::new();
        while let Some(event) = stream.next().await {
            let json = serde_json::to_value(&event).unwrap();
            let kind = json["type"].as_str().unwrap();
            all.push(format!("{}: {kind}", nodes_of(&event.scope.namespace)));
        }
        stream.outcome().await.unwrap().done().unwrap();
        all
    };
    for stored in [false, true] {
        assert_eq!(
            run(false, stored).await,
            [
                ": values",
                "sub: custom",
                "sub: message",
                "sub/deep: custom",
                "sub/deep: message",
                ": update",
                ": values",
            ]
        );
        assert_eq!(
            run(true, stored).await,
            [
                ": values",
                "sub: values",
                "sub: custom",
                "sub: message",
                "sub: update",
                "sub: values",
                "sub/deep: values",
                "sub/deep: custom",
                "sub/deep: message",
                "sub/deep: update",
                "sub/deep: values",
                "sub: update",
                "sub: values",
                ": update",
                ": values",
            ]
        );
    }
}

// 76.
#[tokio::test]
async fn pieces_of_messages_pass_through_with_their_labels() {
    async fn model(_: &Talk, ctx: &Ctx) -> Result<Update<Talk>> {
        let tags = ["nostream".to_owned()];
        ctx.message("m1", MessagePhase::Start, (), &[]).await?;
        ctx.message("m1", MessagePhase::Chunk, json!({"content": "Hi"}), &tags)
            .await?;
        ctx.message("m1", MessagePhase::Finish, json!({"tokens": 3}), &[])
            .await?;
        ctx.message("m2", MessagePhase::Error, "cut off", &[])
            .await?;
        Ok(Talk::update().log(["Hi".to_owned()]))
    }
    let graph = talk().node("model", model).start("model").end("model");
    let graph = graph.build().unwrap();
    let message = |id: &str, phase: &str, payload: Value| json!({"type": "message", "node": "model", "id": id, "phase": phase, "payload": payload});
    let mut tagged = message("m1", "chunk", json!({"content": "Hi"}));
    tagged["tags"] = json!(["nostream"]);
    let (events, _) = told(graph.run(Talk::update()), [Mode::Messages]).await;
    assert_eq!(
        events,
        [
            message("m1", "start", Value::Null),
            tagged,
            message("m1", "finish", json!({"tokens": 3})),
            message("m2", "error", json!("cut off")),
        ]
    );
    let (events, _) = told(graph.run(Talk::update()), [Mode::Custom]).await;
    assert_eq!(events, Vec::<Value>::new());
}

fn cached(ttl: u64) -> Policy {
    Policy {
        cache: Some(Duration::from_secs(ttl)),
        ..Policy::default()
    }
}

/// Counts its runs and logs the count.
async fn count(runs: &Arc<AtomicUsize>, _: &Talk, _: &Ctx) -> Result<Update<Talk>> {
    let n = runs.fetch_add(1, Ordering::SeqCst);
    Ok(Talk::update().log([n.to_string()]))
}

fn counting(policy: Policy) -> Builder<Talk> {
    let runs = Arc::new(AtomicUsize::new(0));
    talk()
        .node("count", with(runs, count))
        .policy("count", policy)
        .start("count")
        .end("count")
}

// 77.
#[tokio::test]
async fn an_update_from_the_cache_is_marked_and_updates_of_hidden_nodes_are_not_told() {
    let graph = counting(cached(60)).build().unwrap();
    let update = json!({"type": "update", "node": "count", "update": {"log": ["0"]}});
    let mut marked = update.clone();
    marked["cached"] = json!(true);
    for expected in [update, marked] {
        let (events, outcome) = told(graph.run(Talk::update()), [Mode::Updates]).await;
        assert_eq!(events, [expected]);
        assert_eq!(outcome.unwrap().done().unwrap().log, ["0"]);
    }

    let graph = talk()
        .node("open", log)
        .node("secret", log)
        .start("secret")
        .edge("secret", "open")
        .end("open")
        .hidden("secret")
        .build()
        .unwrap();
    let modes = [Mode::Updates, Mode::Values];
    assert_eq!(
        words(graph.run(Talk::update()), modes).await,
        [
            "-1 values ",
            "0 values secret",
            "1 update open",
            "1 values secret open"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_result_is_used_again_for_the_same_state_until_it_is_too_old_or_cleared() {
    let graph = counting(cached(60)).build().unwrap();
    let run = async |topic: &'static str| {
        let state = graph.invoke(Talk::update().topic(topic)).await.unwrap();
        state.log.join(" ")
    };
    assert_eq!(
        [run("a").await, run("b").await, run("a").await],
        ["0", "1", "0"]
    );
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(run("a").await, "0");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!([run("a").await, run("a").await], ["2", "2"]);
    graph.clear_cache(&["count"]);
    assert_eq!(run("a").await, "3");
    graph.clear_cache(&["another"]);
    assert_eq!(run("a").await, "3");
    graph.clear_cache(&[]);
    assert_eq!(run("a").await, "4");
}

#[tokio::test]
async fn a_cache_key_says_what_of_the_state_counts_and_failures_are_not_kept() {
    let graph = counting(cached(60))
        .cache_key("count", |t| t.topic.len())
        .build()
        .unwrap();
    let mut logs = Vec::new();
    for topic in ["a", "b", "long"] {
        let state = graph.invoke(Talk::update().topic(topic)).await.unwrap();
        logs.push(state.log.join(" "));
    }
    assert_eq!(logs, ["0", "0", "1"]);

    async fn fail_once(runs: &Arc<AtomicUsize>, _: &Talk, _: &Ctx) -> Result<Update<Talk>> {
        match runs.fetch_add(1, Ordering::SeqCst) {
            0 => Err(NodeError::msg("no")),
            n => Ok(Talk::update().log([n.to_string()])),
        }
    }
    let graph = talk()
        .node("count", with(Arc::new(AtomicUsize::new(0)), fail_once))
        .policy("count", cached(60))
        .start("count")
        .end("count")
        .build()
        .unwrap();
    assert!(matches!(
        graph.invoke(Talk::update()).await,
        Err(Error::Node { .. })
    ));
    for _ in 0..2 {
        assert_eq!(graph.invoke(Talk::update()).await.unwrap().log, ["1"]);
    }
}

#[tokio::test]
async fn cached_sends_differ_by_payload_and_cached_commands_go_where_they_went() {
    async fn double(runs: &Arc<AtomicUsize>, n: u64, _: &Talk, _: &Ctx) -> Result<Command<Talk>> {
        runs.fetch_add(1, Ordering::SeqCst);
        let update = Talk::update().log([(2 * n).to_string()]);
        let next = if n == 2 { "last" } else { END };
        Ok(Command::update(update).and_goto(next))
    }
    let runs = Arc::new(AtomicUsize::new(0));
    let graph = talk()
        .each(SEND, with(runs.clone(), double))
        .node("last", log)
        .start_branch(|_| SEND.send_all([1, 2]), SEND)
        .commands(SEND, ["last", END])
        .policy(SEND, cached(60))
        .end("last")
        .build()
        .unwrap();
    for _ in 0..2 {
        let state = graph.invoke(Talk::update()).await.unwrap();
        assert_eq!(state.log, ["2", "4", "last"]);
    }
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

// 78.
#[tokio::test]
async fn debug_tells_of_tasks_and_checkpoints_with_their_contents() {
    async fn fail(n: u64, _: &Talk, ctx: &Ctx) -> Result<Update<Talk>> {
        if n == 2 {
            return Err(NodeError::msg("two is too many"));
        }
        if n == 1 {
            ctx.interrupt::<String>("ok", "go on?")?;
        }
        Ok(Talk::update().log([n.to_string()]))
    }
    let graph = talk()
        .node("plain", log)
        .each(SEND, fail)
        .start("plain")
        .branch("plain", |t| SEND.send(t.topic.parse().unwrap_or(0)), SEND)
        .end(SEND)
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    let run = async |topic: &'static str| {
        let thread = graph.thread(&store, topic);
        let run = thread.run(Talk::update().topic(topic));
        let (mut events, outcome) = told(run, [Mode::Debug]).await;
        let mut ids = Vec::new();
        for event in &mut events {
            if event["type"] == "checkpoint" {
                let map = event.as_object_mut().unwrap();
                ids.push([map.remove("id").unwrap(), map.remove("parent").unwrap()]);
            }
            if let Some(asked) = event.get_mut("interrupts") {
                asked[0].as_object_mut().unwrap().remove("id");
            }
        }
        // Each checkpoint follows the one before it.
        assert_eq!(ids[0][1], Value::Null);
        assert!(ids.windows(2).all(|pair| pair[1][1] == pair[0][0]));
        (events, outcome)
    };
    let checkpoint = |source: &str, next: &[&str], topic: &str, log: &[&str]| json!({"type": "checkpoint", "source": source, "next": next, "state": {"topic": topic, "log": log}});
    let start = |payload: u64| json!({"type": "task_start", "node": "send", "payload": payload});
    let begins = |topic: &str, payload: u64| {
        vec![
            checkpoint("input", &["plain"], topic, &[]),
            json!({"type": "task_start", "node": "plain"}),
            json!({"type": "task_end", "node": "plain", "result": {"log": ["plain"]}}),
            checkpoint("loop", &["send"], topic, &["plain"]),
            start(payload),
        ]
    };

    let (events, outcome) = run("0").await;
    let mut expected = begins("0", 0);
    expected.push(json!({"type": "task_end", "node": "send", "result": {"log": ["0"]}}));
    expected.push(checkpoint("loop", &[], "0", &["plain", "0"]));
    assert_eq!(events, expected);
    assert_eq!(outcome.unwrap().done().unwrap().log, ["plain", "0"]);

    let (events, outcome) = run("1").await;
    let mut expected = begins("1", 1);
    expected.push(json!({"type": "interrupt", "node": "send", "key": "ok", "question": "go on?"}));
    expected.push(json!({
        "type": "task_end", "node": "send",
        "interrupts": [{"node": "send", "key": "ok", "question": "go on?"}],
    }));
    // The question of the event has an id as well.
    let events: Vec<_> = events
        .into_iter()
        .map(|mut event| {
            if event["type"] == "interrupt" {
                let id = event.as_object_mut().unwrap().remove("id").unwrap();
                assert_eq!(id, outcome.as_ref().unwrap().interrupts()[0].id);
            }
            event
        })
        .collect();
    assert_eq!(events, expected);

    let (events, outcome) = run("2").await;
    let mut expected = begins("2", 2);
    expected.push(json!({"type": "task_end", "node": "send", "error": "two is too many"}));
    assert_eq!(events, expected);
    assert_eq!(
        outcome.unwrap_err().to_string(),
        "node `send` failed: two is too many"
    );
}

// 78, SERVER-NEEDS 12.
#[tokio::test]
async fn start_and_end_of_a_task_share_its_id_and_superstep() {
    let graph = two_then_one();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    tokio::time::pause();
    let mut stream = thread.run(Talk::update()).stream([Mode::Tasks]);
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    while let Some(event) = stream.next().await {
        let place = (event.task().unwrap(), event.superstep);
        match event.data {
            EventData::TaskStart { node, .. } => starts.push((node, place)),
            EventData::TaskEnd { node, .. } => ends.push((node, place)),
            other => panic!("{other:?}"),
        }
    }
    // `fast` ends first; otherwise the same.
    ends.swap(0, 1);
    assert_eq!(starts, ends);
    let places: Vec<_> = starts.iter().map(|(n, (_, s))| (n.as_ref(), *s)).collect();
    assert_eq!(places, [("slow", 0), ("fast", 0), ("last", 1)]);
}

// DESIGN, invariant 2.
#[tokio::test]
async fn a_checkpoint_that_is_told_can_be_read() {
    for durability in [Durability::Sync, Durability::Async] {
        let store = MemoryStore::shared();
        let graph = two_then_one();
        let thread = graph.thread(&store, "t");
        tokio::time::pause();
        let run = thread.run(Talk::update()).durability(durability);
        let mut stream = run.stream([Mode::Checkpoints, Mode::Updates]);
        let mut read = Vec::new();
        while let Some(event) = stream.next().await {
            let saved = thread.snapshot(None).await.unwrap().unwrap();
            match event.data {
                EventData::Checkpoint { id, next, .. } => {
                    let saved = thread.snapshot(Some(id)).await.unwrap().unwrap();
                    assert_eq!(
                        saved.state.log.len(),
                        if next.is_empty() { 3 } else { read.len() }
                    );
                }
                EventData::Update { node, .. } => {
                    let log = &saved.state.log;
                    assert!(log.iter().any(|l| **l == *node), "{node} is not in {log:?}");
                    read.push(node);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(read, ["fast", "slow", "last"], "{durability:?}");
        tokio::time::resume();
    }
}

// DESIGN, invariant 2.
#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_is_held_back_is_told_when_it_is_saved() {
    let graph = two_then_one();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let exit = |start: Start<Talk>| start.durability(Durability::Exit);
    let modes = [Mode::Checkpoints, Mode::Values];
    assert_eq!(
        words(exit(thread.run(Talk::update())).pause_before("last"), modes).await,
        ["-1 values ", "0 values slow fast", "0 checkpoint last"]
    );
    let first = thread.history().await.unwrap();
    assert_eq!(first.len(), 1);
    let mut stream = exit(thread.resume()).stream([Mode::Checkpoints]);
    let Some(EventData::Checkpoint { id, parent, .. }) = stream.next().await.map(|e| e.data) else {
        panic!("no checkpoint")
    };
    assert_eq!(parent, Some(first[0].id));
    let saved = thread.snapshot(Some(id)).await.unwrap().unwrap();
    assert_eq!(saved.state.log, ["slow", "fast", "last"]);
    assert!(stream.next().await.is_none());
    assert_eq!(thread.history().await.unwrap().len(), 2);
}

async fn chatter(said: &Arc<AtomicUsize>, _: &Talk, ctx: &Ctx) -> Result<Update<Talk>> {
    for n in 0..1000 {
        ctx.emit(n).await?;
        said.fetch_add(1, Ordering::SeqCst);
    }
    Ok(Talk::update())
}

#[tokio::test]
async fn whoever_does_not_read_holds_the_speaker_up() {
    let said = Arc::new(AtomicUsize::new(0));
    let graph = talk()
        .node("chatter", with(said.clone(), chatter))
        .node("other", with(said.clone(), chatter))
        .start(["chatter", "other"])
        .end(["chatter", "other"])
        .build()
        .unwrap();
    let mut stream = graph.run(Talk::update()).stream([Mode::Custom]);
    for read in 1..=100 {
        stream.next().await.unwrap();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let ahead = said.load(Ordering::SeqCst) - read;
        assert!(ahead <= 65, "{ahead} events wait for their reader");
    }
    let state = stream.outcome().await.unwrap().done().unwrap();
    assert_eq!(state, Talk::default());
    assert_eq!(said.load(Ordering::SeqCst), 2000);
}

#[tokio::test]
async fn a_run_nobody_listens_to_is_not_held_up_and_a_detached_one_goes_on() {
    let said = Arc::new(AtomicUsize::new(0));
    let graph = talk()
        .node("chatter", with(said.clone(), chatter))
        .start("chatter")
        .end("chatter")
        .build()
        .unwrap();
    graph.invoke(Talk::update()).await.unwrap();
    let (events, _) = told(graph.run(Talk::update()), []).await;
    assert_eq!(events, Vec::<Value>::new());
    assert_eq!(said.load(Ordering::SeqCst), 2000);

    let mut stream = graph.run(Talk::update()).stream([Mode::Custom]);
    stream.next().await.unwrap();
    assert_eq!(stream.detach().ended().await, Ending::Finished);
    assert_eq!(said.load(Ordering::SeqCst), 3000);
}

// 45, 76.
#[tokio::test(start_paused = true)]
async fn a_question_is_told_at_once_and_the_siblings_end_after_it() {
    async fn ask(_: &Talk, ctx: &Ctx) -> Result<Update<Talk>> {
        let answer: String = ctx.interrupt("ask", "?")?;
        Ok(Talk::update().log([answer]))
    }
    let graph = talk()
        .node("ask", ask)
        .node("slow", with(1, wait))
        .start(["ask", "slow"])
        .end(["ask", "slow"])
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let modes = [Mode::Updates, Mode::Values];
    assert_eq!(
        words(thread.run(Talk::update()), modes).await,
        ["-1 values ", "0 interrupt ask", "0 update slow"]
    );
    let open = thread.snapshot(None).await.unwrap().unwrap().interrupts;
    // Only what happens now is told: the sibling is not told a second time.
    assert_eq!(
        words(thread.answer(&open[0].id, "yes"), modes).await,
        ["0 update ask", "0 values yes slow"]
    );
}
