//! What a thin server needs of the engine: one test per point of that list, by its number.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

#[derive(State, Clone, Default, Debug, PartialEq, schemars::JsonSchema)]
struct Case {
    topic: String,
    #[reduce(append)]
    log: Vec<String>,
    #[reduce(put_by_id)]
    posts: Vec<Post>,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Post {
    id: u32,
    text: String,
}

/// Replaces posts of the same id in place, adds the others.
fn put_by_id(all: &mut Vec<Post>, new: Vec<Post>) -> Change {
    let from = all.len();
    let mut at = Vec::new();
    for post in new {
        match all.iter().position(|p| p.id == post.id) {
            Some(i) => {
                all[i] = post;
                at.extend((i < from).then_some(i));
            }
            None => all.push(post),
        }
    }
    Change::list(at, from)
}

fn log(line: impl Into<String>) -> Update<Case> {
    Case::update().log([line.into()])
}

fn post(id: u32, text: &str) -> Update<Case> {
    Case::update().posts([Post {
        id,
        text: text.into(),
    }])
}

async fn step(_: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    Ok(log(ctx.node()))
}

async fn ask(_: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    let answer: Value = ctx.interrupt("ask", format!("{}?", ctx.node()))?;
    Ok(log(format!("{} {answer}", ctx.node())))
}

/// `done` finishes, `ask` waits, `sub` is a graph in which `inner` waits, `bad` fails if told to.
fn desk() -> Graph<Case> {
    let sub = Graph::<Case>::new("sub")
        .node("inner", ask)
        .start("inner")
        .end("inner")
        .build()
        .unwrap();
    Graph::<Case>::new("desk")
        .node("first", step)
        .node("done", step)
        .node("ask", ask)
        .node("sub", sub.shared())
        .node("bad", async |c: &Case, _: &Ctx| {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            match &*c.topic {
                "bad" => Err(NodeError::msg("no luck")),
                _ => Ok(log("good")),
            }
        })
        .node("last", step)
        .start("first")
        .edge("first", ["done", "ask", "sub", "bad"])
        .join(["done", "ask", "sub", "bad"], "last")
        .end("last")
        .build()
        .unwrap()
}

fn on(store: &Store) -> Thread<Case> {
    desk().thread(store, "t")
}

async fn snapshot(thread: &Thread<Case>) -> Snapshot<Case> {
    thread.snapshot(None).await.unwrap().unwrap()
}

fn ids(snapshot: &Snapshot<Case>) -> Vec<TaskId> {
    snapshot.tasks.iter().map(|t| t.id).collect()
}

// SERVER-NEEDS 1.
#[tokio::test]
async fn no_1_a_task_keeps_its_identity_over_updates_and_a_fork_renews_it() {
    let thread = on(&MemoryStore::shared());
    thread.run(Case::update()).await.unwrap();
    let before = snapshot(&thread).await;
    thread.update(Case::update().topic("x")).await.unwrap();
    let after = snapshot(&thread).await;
    assert_eq!(ids(&after), ids(&before));
    assert_eq!(after.interrupts, before.interrupts);
    let child = after.tasks[2].child.as_ref().unwrap();
    assert_eq!(child.namespace, format!("sub:{}", after.tasks[2].id));
    assert_eq!(after.tasks[0].id.uuid().get_version_num(), 8);
    // Answering after the update asks nothing again, and nothing that finished runs again.
    let answers = after
        .interrupts
        .iter()
        .map(|q| (q.id.clone(), json!("yes")));
    let done = thread.answers(answers).await.unwrap().done().unwrap();
    assert_eq!(
        done.log,
        [
            "first",
            "done",
            "ask \"yes\"",
            "inner \"yes\"",
            "good",
            "last"
        ]
    );
    thread.fork(before.checkpoint).await.unwrap();
    let forked = snapshot(&thread).await;
    assert_eq!(forked.tasks.len(), before.tasks.len());
    assert!(ids(&forked).iter().all(|id| !ids(&before).contains(id)));
}

// SERVER-NEEDS 2.
#[tokio::test]
async fn no_2_an_update_carries_what_the_open_superstep_has_left_in_one_put() {
    let store = MemoryStore::shared();
    let thread = on(&store);
    thread.run(Case::update()).await.unwrap();
    let before = thread.history().await.unwrap().len();
    let at = thread.update(log("by hand")).await.unwrap();
    assert_eq!(thread.history().await.unwrap().len(), before + 1);
    // Nothing but the new checkpoint itself is needed to go on.
    let scope = Scope {
        thread: "t".into(),
        namespace: "".into(),
    };
    let kinds: Vec<_> = store
        .load(&scope, Some(at))
        .await
        .unwrap()
        .unwrap()
        .notes
        .iter()
        .map(|n| n.kind)
        .collect();
    assert_eq!(kinds.iter().filter(|k| **k == NoteKind::Done).count(), 2);
    assert_eq!(
        kinds.iter().filter(|k| **k == NoteKind::Question).count(),
        2
    );
    assert_eq!(
        snapshot(&thread).await.state.log,
        ["first", "by hand", "done", "good"]
    );
}

// SERVER-NEEDS 3.
#[tokio::test]
async fn no_3_a_snapshot_lists_its_tasks_with_all_that_is_known_of_them() {
    let thread = on(&MemoryStore::shared());
    thread.run(Case::update().topic("bad")).await.unwrap_err();
    let snapshot = snapshot(&thread).await;
    let names: Vec<_> = snapshot.tasks.iter().map(|t| t.node.to_string()).collect();
    assert_eq!(names, ["done", "ask", "sub", "bad"]);
    let [done, ask, sub, bad] = &snapshot.tasks[..] else {
        panic!()
    };
    assert_eq!(
        (done.done, &done.result),
        (true, &Some(json!({"log": ["done"]})))
    );
    assert_eq!(ask.interrupts[0].question, json!("ask?"));
    assert_eq!(
        (ask.done, &ask.result, &ask.error, &ask.child),
        (false, &None, &None, &None)
    );
    let child = sub.child.clone().unwrap();
    assert_eq!(sub.interrupts[0].namespace, child.namespace);
    let inner = thread
        .subgraph(&child.namespace, child.checkpoint)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(inner.tasks[0].interrupts, sub.interrupts);
    let error = TaskError {
        kind: FailureKind::Error,
        message: "no luck".into(),
        attempts: 1,
    };
    assert_eq!(bad.error, Some(error));
    let open: Vec<_> = snapshot
        .interrupts
        .iter()
        .map(|q| q.node.to_string())
        .collect();
    assert_eq!(open, ["ask", "inner"]);
    assert_eq!(snapshot.next, ["ask", "sub", "bad"]);
    // The same as JSON, for the wire.
    let json = serde_json::to_value(bad).unwrap();
    assert_eq!(
        json["error"],
        json!({"kind": "error", "message": "no luck", "attempts": 1})
    );
}

// SERVER-NEEDS 4.
#[tokio::test]
async fn no_4_a_failure_is_on_record_until_its_task_has_finished() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let store = MemoryStore::shared();
        on(&store)
            .run(Case::update().topic("bad"))
            .durability(durability)
            .await
            .unwrap_err();
        // Another process sees it.
        let thread = on(&store);
        let failed = snapshot(&thread).await.tasks[3].error.clone().unwrap();
        assert_eq!(
            (failed.kind, &*failed.message),
            (FailureKind::Error, "no luck")
        );
        thread.update(Case::update().topic("good")).await.unwrap();
        assert!(snapshot(&thread).await.tasks[3].error.is_some());
        thread.resume().durability(durability).await.unwrap();
        let mended = &snapshot(&thread).await.tasks[3];
        assert_eq!((&mended.error, mended.done), (&None, true));
    }
}

// SERVER-NEEDS 5.
#[tokio::test]
async fn no_5_the_history_keeps_what_was_asked_and_answered_and_what_tasks_wrote() {
    let thread = on(&MemoryStore::shared());
    thread.run(Case::update()).await.unwrap();
    let asked_at = snapshot(&thread).await;
    let answers = asked_at
        .interrupts
        .iter()
        .map(|q| (q.id.clone(), json!(*q.node)));
    thread.answers(answers).await.unwrap().done().unwrap();
    let old = thread
        .snapshot(Some(asked_at.checkpoint))
        .await
        .unwrap()
        .unwrap();
    let asked = &asked_at.interrupts;
    assert_eq!(old.tasks[1].asked, asked[..1]);
    assert_eq!(
        old.tasks[1].answers,
        BTreeMap::from([(asked[0].id.clone(), json!("ask"))])
    );
    assert_eq!(
        old.tasks[2].answers,
        BTreeMap::from([(asked[1].id.clone(), json!("inner"))])
    );
    assert!(old.interrupts.is_empty());
    let results: Vec<_> = old
        .tasks
        .iter()
        .map(|t| t.result.clone().unwrap())
        .collect();
    let line = |text: &str| json!({"log": [text]});
    assert_eq!(
        results,
        [
            line("done"),
            line("ask \"ask\""),
            line("inner \"inner\""),
            line("good")
        ]
    );
    // A task that was alone in its superstep left no note; what it wrote is known all the same.
    let input = thread.history().await.unwrap().last().unwrap().id;
    let first = thread.snapshot(Some(input)).await.unwrap().unwrap();
    assert_eq!(
        (first.tasks[0].done, &first.tasks[0].result),
        (true, &Some(line("first")))
    );
}

// SERVER-NEEDS 5, 7: also what it replaced in a list, as items and not as a patch.
#[tokio::test]
async fn no_5_the_result_of_a_task_that_edits_a_list_is_the_items_it_wrote() {
    let graph = Graph::<Case>::new("g")
        .node("a", async |_: &Case, _: &Ctx| Ok(post(1, "old")))
        .node("b", async |_: &Case, _: &Ctx| {
            Ok(post(2, "new").posts([Post {
                id: 1,
                text: "edited".into(),
            }]))
        })
        .start("a")
        .edge("a", "b")
        .end("b")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let state = thread.run(Case::update()).await.unwrap().done().unwrap();
    let texts: Vec<_> = state.posts.iter().map(|p| &*p.text).collect();
    assert_eq!(texts, ["edited", "new"]);
    let before = thread.history().await.unwrap()[1].id;
    let old = thread.snapshot(Some(before)).await.unwrap().unwrap();
    let expected = json!({"posts": [{"id": 1, "text": "edited"}, {"id": 2, "text": "new"}]});
    assert_eq!(old.tasks[0].result, Some(expected));
}

async fn model(_: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    let tags = ["draft".to_owned()];
    ctx.message("m1", MessagePhase::Start, json!({}), &tags)
        .await?;
    ctx.message("m1", MessagePhase::Chunk, json!({"content": "Hel"}), &tags)
        .await?;
    ctx.message("m1", MessagePhase::Finish, json!({"usage": 3}), &tags)
        .await?;
    ctx.message("m2", MessagePhase::Error, json!({"error": "cut"}), &[])
        .await?;
    Ok(log("said"))
}

// SERVER-NEEDS 6.
#[tokio::test]
async fn no_6_pieces_of_messages_are_events_that_say_where_they_come_from() {
    let inner = Graph::<Case>::new("inner")
        .node("model", model)
        .start("model")
        .end("model")
        .build()
        .unwrap();
    let graph = Graph::<Case>::new("outer")
        .node("first", step)
        .node("talk", inner.shared())
        .start("first")
        .edge("first", "talk")
        .end("talk")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let run = RunId::fresh();
    let mut stream = thread
        .run(Case::update())
        .run_id(run)
        .stream([Mode::Messages]);
    let mut told = Vec::new();
    while let Some(event) = stream.next().await {
        told.push(event);
    }
    let task = told[0].task().unwrap();
    let namespace = told[0].scope.namespace.to_string();
    assert!(namespace.starts_with("talk:"), "{namespace}");
    let line = |seq: u64, id: &str, phase: &str, payload: Value, tagged: bool| {
        let mut line = json!({
            "seq": seq, "run_id": run, "thread_id": "t", "namespace": namespace, "superstep": 0,
            "task": task, "type": "message", "node": "model", "id": id, "phase": phase, "payload": payload,
        });
        if tagged {
            line["tags"] = json!(["draft"]);
        }
        line
    };
    let told: Vec<_> = told
        .iter()
        .map(|e| serde_json::to_value(e).unwrap())
        .collect();
    assert_eq!(
        told,
        [
            line(0, "m1", "start", json!({}), true),
            line(1, "m1", "chunk", json!({"content": "Hel"}), true),
            line(2, "m1", "finish", json!({"usage": 3}), true),
            line(3, "m2", "error", json!({"error": "cut"}), false),
        ]
    );
}

// SERVER-NEEDS 7, as far as the engine goes: the channel itself lives with the messages.
#[tokio::test]
async fn no_7_a_channel_that_replaces_by_id_is_stored_by_what_changed_and_told_without_markers() {
    let graph = Graph::<Case>::new("g")
        .node("edit", async |_: &Case, _: &Ctx| Ok(post(2, "two!")))
        .node("clear", async |_: &Case, _: &Ctx| {
            Ok(Case::update().replace_posts(vec![Post {
                id: 9,
                text: "nine".into(),
            }]))
        })
        .start("edit")
        .edge("edit", "clear")
        .end("clear")
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    let thread = graph.thread(&store, "t");
    let input = post(1, "one").posts([Post {
        id: 2,
        text: "two".into(),
    }]);
    let mut stream = thread.run(input).stream([Mode::Updates]);
    let mut told = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventData::Update { update, .. } = event.data {
            told.push(update);
        }
    }
    let expected = [
        json!({"posts": [{"id": 2, "text": "two!"}]}),
        json!({"posts": [{"id": 9, "text": "nine"}]}),
    ];
    assert_eq!(told, expected);
    let scope = Scope {
        thread: "t".into(),
        namespace: "".into(),
    };
    let edited = thread.history().await.unwrap()[1].id;
    let loaded = store.load(&scope, Some(edited)).await.unwrap().unwrap();
    let (_, pieces) = loaded
        .channels
        .iter()
        .find(|(name, _)| name == "posts")
        .unwrap();
    let piece = pieces.last().unwrap();
    let json: Value = serde_json::from_slice(&piece.json).unwrap();
    assert_eq!(
        (piece.kind, json),
        (
            PatchKind::Edit,
            json!({"set": [[1, {"id": 2, "text": "two!"}]], "append": []})
        )
    );
}

// SERVER-NEEDS 8.
#[tokio::test]
async fn no_8_one_struct_of_options_holds_for_the_run_and_its_subgraphs() {
    struct Tenant(&'static str);
    let inner = Graph::<Case>::new("inner")
        .node("a", async |_: &Case, ctx: &Ctx| {
            Ok(log(ctx.context::<Tenant>()?.0))
        })
        .node("b", step)
        .start("a")
        .edge("a", "b")
        .end("b")
        .build()
        .unwrap();
    let graph = Graph::<Case>::new("outer")
        .node("sub", inner.shared())
        .start("sub")
        .end("sub")
        .build()
        .unwrap();
    let options = RunOptions {
        limit: 9,
        durability: Durability::Async,
        pause_before: vec!["sub|a".into()],
        pause_after: vec!["sub|a".into()],
        metadata: json!({"who": "me"}).as_object().unwrap().clone(),
        ..RunOptions::default()
    };
    let store = MemoryStore::shared();
    let thread = graph.thread(&store, "t");
    let mut outcome = thread
        .run(Case::update())
        .options(options.clone())
        .context(Tenant("acme"))
        .await
        .unwrap();
    let mut stops = 0;
    while let Outcome::Stopped {
        why: StoppedBy::Breakpoint,
        next,
        ..
    } = &outcome
    {
        assert_eq!(next, &["sub"]);
        stops += 1;
        outcome = thread
            .resume()
            .options(options.clone())
            .context(Tenant("acme"))
            .await
            .unwrap();
    }
    assert_eq!(stops, 2);
    assert_eq!(outcome.done().unwrap().log, ["acme", "b"]);
    let namespace = {
        let input = thread.history().await.unwrap().last().unwrap().id;
        thread.snapshot(Some(input)).await.unwrap().unwrap().tasks[0]
            .child
            .clone()
            .unwrap()
            .namespace
    };
    let scope = Scope {
        thread: "t".into(),
        namespace: namespace.into(),
    };
    for entry in store
        .history(&scope, &HistoryQuery::default())
        .await
        .unwrap()
    {
        assert_eq!(entry.metadata.user["who"], "me");
    }
}

#[derive(Clone, Default)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

// SERVER-NEEDS 9.
#[tokio::test]
async fn no_9_each_checkpoint_says_whose_it_is_when_it_was_and_which_superstep() {
    let graph = Graph::<Case>::new("g")
        .node("a", step)
        .node("b", step)
        .clock(Arc::new(Hand(Arc::new(AtomicU64::new(1000)))))
        .start("a")
        .edge("a", "b")
        .end("b")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let runs = [RunId::fresh(), RunId::fresh()];
    for run in runs {
        thread
            .run(Case::update())
            .run_id(run)
            .metadata("user", "u1")
            .await
            .unwrap();
    }
    thread.update(log("x")).await.unwrap();
    let mut all = thread.history().await.unwrap();
    all.reverse();
    let places: Vec<_> = all
        .iter()
        .map(|e| {
            (
                e.metadata.source,
                e.metadata.superstep,
                e.metadata.created_ms,
            )
        })
        .collect();
    let expected = [
        (Source::Input, -1, 1000),
        (Source::Loop, 0, 1001),
        (Source::Loop, 1, 1002),
        (Source::Input, 2, 1003),
        (Source::Loop, 3, 1004),
        (Source::Loop, 4, 1005),
        (Source::Update, 5, 1006),
    ];
    assert_eq!(places, expected);
    for (i, entry) in all[..6].iter().enumerate() {
        assert_eq!(
            (entry.metadata.run, &entry.metadata.user["user"]),
            (runs[i / 3], &json!("u1"))
        );
    }
    let filter = json!({"source": "input", "user": "u1"})
        .as_object()
        .unwrap()
        .clone();
    let query = HistoryQuery {
        filter,
        limit: Some(1),
        ..HistoryQuery::default()
    };
    assert_eq!(thread.history_of(&query).await.unwrap(), [all[3].clone()]);
}

const ITEM: Each<u32> = Each::new("item");

fn shop() -> Graph<Case> {
    Graph::<Case>::new("shop")
        .node("a", step)
        .node("b", ask)
        .each(ITEM, async |n: u32, _: &Case, _: &Ctx| {
            Ok(log(format!("item {n}")))
        })
        .start("a")
        .branch("a", |_| ["b"], [Name::from("b"), ITEM.into()])
        .end([Name::from("b"), ITEM.into()])
        .build()
        .unwrap()
}

// SERVER-NEEDS 10.
#[tokio::test]
async fn no_10_a_run_may_begin_with_a_command_and_a_thread_be_written_to_in_every_way_in_one_call()
{
    let store = MemoryStore::shared();
    let shop = shop();
    let thread = shop.thread(&store, "command");
    let command = Command::update(log("go")).and_goto_all(ITEM.send_all([7, 8]));
    let done = thread.command(command).await.unwrap().done().unwrap();
    assert_eq!(done.log, ["go", "item 7", "item 8"]);
    let empty = thread
        .command(Command::update(Case::update()))
        .await
        .unwrap_err();
    assert!(matches!(empty, Error::EmptyCommand));
    let checkpoints = async |thread: &Thread<Case>| thread.history().await.unwrap().len();
    // On an empty thread, as a node, as the end, at a checkpoint: each is one checkpoint.
    let thread = shop.thread(&store, "writes");
    thread.update_as("a", log("as a")).await.unwrap();
    assert_eq!(
        (checkpoints(&thread).await, snapshot(&thread).await.next),
        (1, vec!["b".into()])
    );
    let as_a = thread.history().await.unwrap()[0].id;
    thread.update_as(END, log("the end")).await.unwrap();
    assert_eq!(
        (checkpoints(&thread).await, snapshot(&thread).await.finished),
        (2, true)
    );
    thread
        .fork_as(as_a, [("b".into(), log("as b").into())])
        .await
        .unwrap();
    let now = snapshot(&thread).await;
    assert_eq!(
        (checkpoints(&thread).await, now.finished, &now.state.log),
        (3, true, &vec!["as a".to_owned(), "as b".into()])
    );
    thread.fork_with(as_a, log("here")).await.unwrap();
    let now = snapshot(&thread).await;
    assert_eq!(
        (checkpoints(&thread).await, now.next, now.parent),
        (4, vec!["b".into()], Some(as_a))
    );
    // Resume and update together, atomically.
    let paused = thread.resume().await.unwrap();
    let id = paused.interrupts()[0].id.clone();
    let before = checkpoints(&thread).await;
    let run = thread.answer(&id, 1).with_update(log("with the answer"));
    let done = run.await.unwrap().done().unwrap();
    assert_eq!(done.log, ["as a", "here", "with the answer", "b 1"]);
    assert_eq!(checkpoints(&thread).await, before + 2);
}

// SERVER-NEEDS 11.
#[tokio::test]
async fn no_11_a_replay_or_another_answer_at_an_older_checkpoint_is_one_call() {
    let thread = shop().thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Case::update()).await.unwrap();
    let id = paused.interrupts()[0].id.clone();
    let asked_at = thread.history().await.unwrap()[0].id;
    thread.answer(&id, 1).await.unwrap().done().unwrap();
    let other = thread
        .answer(&id, 2)
        .at(asked_at)
        .with_update(log("then"))
        .await
        .unwrap();
    assert_eq!(other.done().unwrap().log, ["a", "then", "b 2"]);
    let replay = thread.resume().at(asked_at).await.unwrap();
    assert_ne!(replay.interrupts()[0].id, id);
    let input = thread.run(log("again")).at(asked_at).await.unwrap();
    assert_eq!(input.state().log, ["a", "again", "a"]);
    let command = thread
        .command(Command::goto(ITEM.send(3)))
        .at(asked_at)
        .await
        .unwrap();
    assert_eq!(command.done().unwrap().log, ["a", "item 3"]);
}

// SERVER-NEEDS 12, and invariant 2: nothing is told before it is saved.
#[tokio::test]
async fn no_12_tasks_and_checkpoints_are_told_after_they_are_saved() {
    for durability in [Durability::Sync, Durability::Async] {
        let store = MemoryStore::shared();
        let thread = on(&store);
        let scope = Scope {
            thread: "t".into(),
            namespace: "".into(),
        };
        let modes = [Mode::Tasks, Mode::Checkpoints, Mode::Updates];
        let mut stream = thread
            .run(Case::update().topic("bad"))
            .durability(durability)
            .stream(modes);
        let (mut last, mut told) = (None, Vec::new());
        while let Some(event) = stream.next().await {
            let saved = store.load(&scope, last).await.unwrap();
            let noted = |kind| {
                let notes = &saved.as_ref().unwrap().notes;
                notes
                    .iter()
                    .any(|n| n.kind == kind && Some(n.task) == event.task())
            };
            match &event.data {
                EventData::Checkpoint { id, parent, .. } => {
                    assert_eq!(*parent, last);
                    assert!(store.load(&scope, Some(*id)).await.unwrap().is_some());
                    last = Some(*id);
                    told.push(format!("checkpoint {}", event.superstep));
                }
                EventData::TaskStart { node, .. } => told.push(format!("{node} begins")),
                EventData::TaskEnd {
                    node,
                    error,
                    interrupts,
                    result,
                    ..
                } => {
                    // The first node is alone: the checkpoint after it says what it did.
                    if event.superstep > 0 {
                        let kind = match (error, interrupts.is_empty(), result) {
                            (Some(_), ..) => NoteKind::Failure,
                            (None, false, _) => NoteKind::Question,
                            _ => NoteKind::Done,
                        };
                        assert!(noted(kind), "{node}");
                    }
                    told.push(format!("{node} ends"));
                }
                _ => {}
            }
        }
        assert_eq!(
            told[..4],
            [
                "checkpoint -1",
                "first begins",
                "first ends",
                "checkpoint 0"
            ]
        );
        told[4..].sort();
        let expected = [
            "ask begins",
            "ask ends",
            "bad begins",
            "bad ends",
            "done begins",
            "done ends",
            "sub begins",
            "sub ends",
        ];
        assert_eq!(told[4..], expected, "{durability:?}");
    }
}

// SERVER-NEEDS 13.
#[tokio::test]
async fn no_13_cancel_and_drain_say_what_really_happened() {
    let graph = Graph::<Case>::new("g")
        .node("a", async |c: &Case, _: &Ctx| match &*c.topic {
            "waits" => std::future::pending().await,
            "fails" => Err(NodeError::msg("no")),
            _ => Ok(log("a")),
        })
        .node("b", ask)
        .start("a")
        .edge("a", "b")
        .end("b")
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    let reasons = [
        CancelReason::User,
        CancelReason::Superseded,
        CancelReason::Shutdown,
        CancelReason::LeaseLost,
    ];
    for reason in reasons {
        let run = graph
            .thread(&store, reason.to_string())
            .run(Case::update().topic("waits"));
        let control = run.control();
        let running = tokio::spawn(run.into_future());
        tokio::task::yield_now().await;
        assert_eq!(control.cancel(reason).await, Ending::Cancelled);
        let ended = running.await.unwrap();
        assert!(matches!(ended, Err(Error::Cancelled(r)) if r == reason));
    }
    // What comes too late is told what had happened: a failure, a pause.
    for (topic, ending) in [("fails", Ending::Failed), ("", Ending::Finished)] {
        let run = graph
            .thread(&store, format!("late {topic}"))
            .run(Case::update().topic(topic));
        let control = run.control();
        let _ = run.await;
        assert_eq!(
            (
                control.cancel(CancelReason::User).await,
                control.drain().await
            ),
            (ending, ending)
        );
    }
    let run = graph.thread(&store, "drained").run(Case::update());
    let control = run.control();
    control.request_drain();
    let (outcome, ending) = tokio::join!(run.into_future(), control.drain());
    assert!(matches!(
        outcome,
        Ok(Outcome::Stopped {
            why: StoppedBy::Drain,
            ..
        })
    ));
    assert_eq!(ending, Ending::Drained);
}

// SERVER-NEEDS 14.
#[test]
fn no_14_a_graph_is_drawn_as_data_and_its_subgraphs_are_found_by_name() {
    let graph: Arc<dyn AnyGraph> = Arc::new(desk());
    let drawing = graph.drawing();
    let nodes: Vec<_> = drawing.nodes.iter().map(|n| n.name.to_string()).collect();
    assert_eq!(
        nodes,
        [
            "__start__",
            "first",
            "done",
            "ask",
            "sub",
            "bad",
            "last",
            "__end__"
        ]
    );
    let edge = |from: &str, to: &str, kind| {
        drawing
            .edges
            .iter()
            .any(|e| e.from == from && e.to == to && e.kind == kind)
    };
    assert!(edge("__start__", "first", EdgeKind::Fixed) && edge("sub", "last", EdgeKind::Join));
    let inside = drawing
        .nodes
        .iter()
        .find(|n| n.name == "sub")
        .and_then(|n| n.inside.as_ref())
        .unwrap();
    assert_eq!(&*inside.name, "sub");
    let child = graph.parts().child("sub").unwrap();
    assert_eq!(child.drawing(), **inside);
    assert!(graph.parts().child("done").is_none());
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Tenant {
    name: String,
}

// SERVER-NEEDS 15.
#[tokio::test]
async fn no_15_schemas_are_apart_nothing_with_a_default_is_required_and_unwritten_is_known() {
    let graph = Graph::<Case>::new("g")
        .node("a", step)
        .start("a")
        .end("a")
        .input(["topic"])
        .output(["log"])
        .context::<Tenant>()
        .build()
        .unwrap();
    let any: Arc<dyn AnyGraph> = Arc::new(graph.clone());
    let schemas = any.schemas();
    let channels = |schema: &Value| {
        schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(channels(&schemas.input), ["topic"]);
    assert_eq!(channels(&schemas.output), ["log"]);
    assert_eq!(channels(&schemas.state), ["log", "posts", "topic"]);
    assert_eq!(channels(&schemas.context), ["name"]);
    for schema in [&schemas.input, &schemas.output, &schemas.state] {
        assert_eq!(schema.get("required"), None);
    }
    let thread = graph.thread(&MemoryStore::shared(), "t");
    thread.run(Case::update().topic("")).await.unwrap();
    let now = snapshot(&thread).await;
    // `topic` was written with what is also its default; nobody wrote `posts`.
    assert_eq!(now.written, ["topic", "log"]);
    assert_eq!((&*now.state.topic, now.state.posts.len()), ("", 0));
    let ids: Vec<_> = thread
        .history()
        .await
        .unwrap()
        .iter()
        .map(|e| e.id)
        .collect();
    assert!(
        ids.windows(2)
            .all(|w| w[0] > w[1] && w[0].uuid().get_version_num() == 7)
    );
}
