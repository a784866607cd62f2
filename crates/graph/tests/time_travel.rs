//! Going back: replay, forks, and writing to a thread between runs.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use tokio::sync::Notify;

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    topic: String,
    #[reduce(append)]
    log: Vec<String>,
    #[reduce(add)]
    sum: u32,
}

type Runs = Arc<[AtomicU32; 3]>;

fn counts(runs: &Runs) -> [u32; 3] {
    runs.each_ref().map(|n| n.load(Ordering::SeqCst))
}

fn log(line: impl Into<String>) -> Update<Case> {
    Case::update().log([line.into()])
}

async fn step(runs: &Runs, case: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    let place = ["a", "b", "c"]
        .iter()
        .position(|n| *n == ctx.node())
        .unwrap();
    runs[place].fetch_add(1, Ordering::SeqCst);
    Ok(log(format!("{}{}", ctx.node(), case.topic)).sum(1))
}

/// `a`, `b`, `c`, one after the other.
fn line(runs: &Runs) -> Graph<Case> {
    Graph::<Case>::new("line")
        .node("a", with(runs.clone(), step))
        .node("b", with(runs.clone(), step))
        .node("c", with(runs.clone(), step))
        .start("a")
        .sequence(["a", "b", "c"])
        .end("c")
        .build()
        .unwrap()
}

async fn oldest_first(thread: &Thread<Case>) -> Vec<Entry> {
    let mut history = thread.history().await.unwrap();
    history.reverse();
    history
}

async fn logs(thread: &Thread<Case>, entries: &[Entry]) -> Vec<String> {
    let mut all = Vec::new();
    for entry in entries {
        let snapshot = thread.snapshot(Some(entry.id)).await.unwrap().unwrap();
        all.push(snapshot.state.log.join(","));
    }
    all
}

// 58, 59.
#[tokio::test]
async fn replaying_from_the_middle_runs_only_what_came_after_on_a_branch_of_its_own() {
    let runs = Runs::default();
    let thread = line(&runs).thread(&MemoryStore::shared(), "t");
    thread.run(Case::update()).await.unwrap();
    let before = oldest_first(&thread).await;
    assert_eq!(logs(&thread, &before).await, ["", "a", "a,b", "a,b,c"]);

    let done = thread
        .resume()
        .at(before[1].id)
        .await
        .unwrap()
        .done()
        .unwrap();
    assert_eq!((done.log.join(","), done.sum), ("a,b,c".to_owned(), 3));
    assert_eq!(counts(&runs), [1, 2, 2]);

    let after = oldest_first(&thread).await;
    assert_eq!(after[..4], before[..]);
    assert_eq!(
        logs(&thread, &after).await,
        ["", "a", "a,b", "a,b,c", "a", "a,b", "a,b,c"]
    );
    let parents: Vec<_> = after.iter().map(|e| e.parent).collect();
    let ids: Vec<_> = after.iter().map(|e| Some(e.id)).collect();
    assert_eq!(
        parents,
        [None, ids[0], ids[1], ids[2], ids[1], ids[4], ids[5]]
    );
    let places: Vec<_> = after[4..]
        .iter()
        .map(|e| (e.metadata.source, e.metadata.superstep))
        .collect();
    assert_eq!(
        places,
        [(Source::Fork, 1), (Source::Loop, 2), (Source::Loop, 3)]
    );
}

// 58. LangGraph saves a fork that changes nothing when it replays the end; ours says that nothing is due.
#[tokio::test]
async fn replaying_the_first_checkpoint_runs_everything_and_the_last_one_nothing() {
    let runs = Runs::default();
    let thread = line(&runs).thread(&MemoryStore::shared(), "t");
    thread.run(Case::update()).await.unwrap();
    let first = oldest_first(&thread).await;
    thread
        .resume()
        .at(first[0].id)
        .await
        .unwrap()
        .done()
        .unwrap();
    assert_eq!(counts(&runs), [2, 2, 2]);
    for end in [first[3].id, oldest_first(&thread).await.last().unwrap().id] {
        let error = thread.resume().at(end).await.unwrap_err();
        assert!(matches!(error, Error::NothingToResume(_)), "{error}");
    }
    assert_eq!(counts(&runs), [2, 2, 2]);
}

// 60.
#[tokio::test]
async fn forks_from_one_point_do_not_know_of_each_other() {
    let runs = Runs::default();
    let thread = line(&runs).thread(&MemoryStore::shared(), "t");
    thread.run(Case::update()).await.unwrap();
    let middle = oldest_first(&thread).await[1].id;
    let mut ends = Vec::new();
    for topic in ["1", "2"] {
        thread
            .fork_with(middle, Case::update().topic(topic))
            .await
            .unwrap();
        let done = thread.resume().await.unwrap().done().unwrap();
        ends.push((done.log.join(","), done.sum));
    }
    assert_eq!(ends, [("a,b1,c1".to_owned(), 3), ("a,b2,c2".to_owned(), 3)]);
    // As a node, in one call: `b` need not run.
    thread
        .fork_as(middle, [("b".into(), log("by hand").sum(5).into())])
        .await
        .unwrap();
    let done = thread.resume().await.unwrap().done().unwrap();
    assert_eq!(
        (done.log.join(","), done.sum),
        ("a,by hand,c".to_owned(), 7)
    );
    assert_eq!(counts(&runs), [1, 3, 4]);
    let history = oldest_first(&thread).await;
    let branches = history
        .iter()
        .filter(|e| e.parent == Some(middle))
        .map(|e| e.metadata.source);
    assert_eq!(
        branches.collect::<Vec<_>>(),
        [Source::Loop, Source::Update, Source::Update, Source::Update]
    );
}

// 60. What tasks had left on a checkpoint belongs to it alone.
#[tokio::test]
async fn a_fork_does_not_inherit_what_finished_siblings_wrote() {
    let runs = Runs::default();
    let graph = Graph::<Case>::new("g")
        .node("a", with(runs.clone(), step))
        .node("b", async |_: &Case, ctx: &Ctx| {
            Ok(log(ctx.interrupt::<String>("q", "?")?))
        })
        .start(["a", "b"])
        .end(["a", "b"])
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Case::update()).await.unwrap();
    assert_eq!(paused.state().log, ["a"]);
    let here = thread.history().await.unwrap()[0].id;
    thread.fork(here).await.unwrap();
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!((snapshot.state.log.len(), snapshot.next.len()), (0, 2));
    thread.resume().await.unwrap();
    assert_eq!(counts(&runs), [2, 0, 0]);
}

async fn ask_twice(_: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    let first: String = ctx.interrupt("first", "1?")?;
    let second: String = ctx.interrupt("second", "2?")?;
    Ok(log(first).log([second]))
}

fn asking() -> Graph<Case> {
    Graph::<Case>::new("asking")
        .node("a", ask_twice)
        .start("a")
        .end("a")
        .build()
        .unwrap()
}

fn open<S>(outcome: &Outcome<S>) -> (String, String) {
    let [question] = outcome.interrupts() else {
        panic!("{:?}", outcome.interrupts())
    };
    (
        question.id.clone(),
        question.question.as_str().unwrap().to_owned(),
    )
}

// 61, 62. LangGraph keeps ids over replays; ours are new on a fork, since old answers must not fit.
#[tokio::test]
async fn a_replay_asks_again_under_a_new_id_and_can_be_answered() {
    let thread = asking().thread(&MemoryStore::shared(), "t");
    let (first, _) = open(&thread.run(Case::update()).await.unwrap());
    let (second, _) = open(&thread.answer(&first, "x").await.unwrap());
    thread.answer(&second, "y").await.unwrap().done().unwrap();
    let asked_at = oldest_first(&thread).await[0].id;
    let (again, question) = open(&thread.resume().at(asked_at).await.unwrap());
    assert_ne!(again, first);
    assert_eq!(question, "1?");
    let (next, question) = open(&thread.answer(&again, "X").await.unwrap());
    assert_eq!(question, "2?");
    let done = thread.answer(&next, "Y").await.unwrap().done().unwrap();
    assert_eq!(done.log, ["X", "Y"]);
    // A second replay is another branch again.
    let (third, _) = open(&thread.resume().at(asked_at).await.unwrap());
    assert!(third != again && third != first);
}

// 62.
#[tokio::test]
async fn an_old_question_can_be_answered_otherwise_in_one_call_and_the_next_one_comes_anew() {
    let thread = asking().thread(&MemoryStore::shared(), "t");
    let (first, _) = open(&thread.run(Case::update()).await.unwrap());
    let (second, _) = open(&thread.answer(&first, "x").await.unwrap());
    thread.answer(&second, "y").await.unwrap().done().unwrap();
    let history = oldest_first(&thread).await;
    let (again, question) = open(&thread.answer(&first, "X").at(history[0].id).await.unwrap());
    assert_eq!(question, "2?");
    let done = thread.answer(&again, "Y").await.unwrap().done().unwrap();
    assert_eq!(done.log, ["X", "Y"]);
    // Both at once.
    let both = [(first.clone(), json!("1")), (second, json!("2"))];
    let done = thread
        .answers(both)
        .at(history[0].id)
        .await
        .unwrap()
        .done()
        .unwrap();
    assert_eq!(done.log, ["1", "2"]);
    let error = thread
        .answer("nobody", 1)
        .at(history[0].id)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::UnknownInterrupt(_)), "{error}");
    let old = thread.snapshot(Some(history[1].id)).await.unwrap().unwrap();
    assert_eq!(old.state.log, ["x", "y"]);
}

// 64.
#[tokio::test]
async fn a_fork_is_a_sibling_checkpoint_with_the_same_state() {
    let thread = line(&Runs::default()).thread(&MemoryStore::shared(), "t");
    thread.run(Case::update()).await.unwrap();
    let history = oldest_first(&thread).await;
    let copy = thread.fork(history[2].id).await.unwrap();
    let (old, new) = (
        thread.snapshot(Some(history[2].id)).await.unwrap().unwrap(),
        thread.snapshot(Some(copy)).await.unwrap().unwrap(),
    );
    assert_eq!(*new.state, *old.state);
    assert_eq!((new.next, new.parent), (old.next, Some(history[2].id)));
    assert_ne!(new.tasks[0].id, old.tasks[0].id);
}

// 64.
#[tokio::test]
async fn a_thread_is_rebuilt_by_writing_as_its_nodes_superstep_by_superstep() {
    let wide = |runs: &Runs| {
        Graph::<Case>::new("wide")
            .node("a", with(runs.clone(), step))
            .node("b", with(runs.clone(), step))
            .node("c", with(runs.clone(), step))
            .start(["a", "b"])
            .join(["a", "b"], "c")
            .end("c")
            .build()
            .unwrap()
    };
    let (runs, none) = (Runs::default(), Runs::default());
    let store = MemoryStore::shared();
    let real = wide(&runs).thread(&store, "real");
    real.run(Case::update().topic("!")).await.unwrap();
    let copy = wide(&none).thread(&store, "copy");
    copy.update_as(START, Case::update().topic("!"))
        .await
        .unwrap();
    let both = [
        ("b".into(), log("b!").sum(1).into()),
        ("a".into(), log("a!").sum(1).into()),
    ];
    copy.update_all(both).await.unwrap();
    copy.update_as("c", log("c!").sum(1)).await.unwrap();
    let view = async |thread: &Thread<Case>| {
        let mut all = Vec::new();
        for entry in oldest_first(thread).await {
            let s = thread.snapshot(Some(entry.id)).await.unwrap().unwrap();
            all.push((
                (*s.state).clone(),
                s.next,
                s.finished,
                entry.metadata.superstep,
            ));
        }
        all
    };
    assert_eq!(view(&copy).await, view(&real).await);
    assert_eq!(counts(&none), [0, 0, 0]);
}

// 65.
#[tokio::test]
async fn writing_as_the_end_leaves_nothing_due_and_as_the_start_begins_anew() {
    let runs = Runs::default();
    let store = MemoryStore::shared();
    let thread = line(&runs).thread(&store, "t");
    thread.run(Case::update()).pause_before("b").await.unwrap();
    thread.update_as(END, log("over")).await.unwrap();
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    assert!(snapshot.finished && snapshot.next.is_empty());
    assert_eq!(snapshot.state.log, ["a", "over"]);
    assert!(matches!(
        thread.resume().await.unwrap_err(),
        Error::NothingToResume(_)
    ));

    thread
        .update_as(START, Case::update().topic("2"))
        .await
        .unwrap();
    assert_eq!(thread.snapshot(None).await.unwrap().unwrap().next, ["a"]);
    let done = thread.resume().await.unwrap().done().unwrap();
    assert_eq!(done.log, ["a", "over", "a2", "b2", "c2"]);

    // On a thread where nothing was before.
    let fresh = line(&runs).thread(&store, "fresh");
    fresh
        .update_as(START, Case::update().topic("3"))
        .await
        .unwrap();
    assert_eq!(
        fresh.resume().await.unwrap().done().unwrap().log,
        ["a3", "b3", "c3"]
    );
    let ended = line(&runs).thread(&store, "ended");
    ended.update_as(END, log("only this")).await.unwrap();
    assert!(ended.snapshot(None).await.unwrap().unwrap().finished);
    let plain = line(&runs).thread(&store, "plain");
    plain.update(log("only this")).await.unwrap();
    let snapshot = plain.snapshot(None).await.unwrap().unwrap();
    assert_eq!((snapshot.finished, snapshot.metadata.superstep), (true, -1));
}

// 65. LangGraph guesses which node a plain update comes from; ours comes from none and routes nowhere.
#[tokio::test]
async fn a_plain_update_changes_the_state_only() {
    let runs = Runs::default();
    let thread = line(&runs).thread(&MemoryStore::shared(), "t");
    thread.run(Case::update()).pause_before("b").await.unwrap();
    let task = thread.snapshot(None).await.unwrap().unwrap().tasks[0].id;
    thread.update(Case::update().topic("!")).await.unwrap();
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!(
        (snapshot.next, snapshot.tasks[0].id),
        (vec!["b".into()], task)
    );
    assert_eq!(
        thread.resume().await.unwrap().done().unwrap().log,
        ["a", "b!", "c!"]
    );
}

const WORK: Each<u32> = Each::new("work");

fn routed() -> Graph<Case> {
    Graph::<Case>::new("routed")
        .node("choose", async |_: &Case, _: &Ctx| Ok(Command::goto("a")))
        .node("a", async |_: &Case, _: &Ctx| Ok(log("a")))
        .node("b", async |_: &Case, _: &Ctx| Ok(log("b")))
        .each(WORK, async |n: u32, _: &Case, _: &Ctx| {
            Ok(log(format!("work {n}")))
        })
        .start("choose")
        .commands("choose", ["a", "b", "work"])
        .branch("a", |c| if c.sum > 0 { "b" } else { END }, ["b", END])
        .end([Name::from("b"), WORK.into()])
        .build()
        .unwrap()
}

// 65, 35.
#[tokio::test]
async fn writing_as_a_node_follows_its_branch_and_as_a_command_node_its_command() {
    let store = MemoryStore::shared();
    let thread = |name: &str| routed().thread(&store, name);
    let branch = thread("branch");
    branch.update_as("a", Case::update().sum(1)).await.unwrap();
    assert_eq!(branch.resume().await.unwrap().done().unwrap().log, ["b"]);
    let ended = thread("ended");
    ended.update_as("a", log("x")).await.unwrap();
    assert!(ended.snapshot(None).await.unwrap().unwrap().finished);
    let command = thread("command");
    let goto = Command::update(log("by hand"))
        .and_goto("b")
        .and_goto_all(WORK.send_all([7, 8]));
    command.update_as("choose", goto).await.unwrap();
    let done = command.resume().await.unwrap().done().unwrap();
    assert_eq!(done.log, ["by hand", "b", "work 7", "work 8"]);
}

// 65, and every way in which such a write can be wrong: it changes nothing.
#[tokio::test]
async fn a_write_that_cannot_be_is_an_error_and_leaves_the_thread_as_it_was() {
    let thread = routed().thread(&MemoryStore::shared(), "t");
    thread.run(Case::update()).pause_before("a").await.unwrap();
    let before = thread.history().await.unwrap();
    let two = || ("a".into(), Case::update().topic("x").into());
    let errors = [
        thread.update_as("ghost", log("x")).await.unwrap_err(),
        thread
            .update_as("choose", log("no target"))
            .await
            .unwrap_err(),
        thread
            .update_as("choose", Command::goto("choose"))
            .await
            .unwrap_err(),
        thread
            .update_all([two(), ("b".into(), Case::update().topic("y").into())])
            .await
            .unwrap_err(),
        thread
            .update_all([two(), (START.into(), log("x").into())])
            .await
            .unwrap_err(),
        thread.update_all([]).await.unwrap_err(),
        thread.fork(uuid(7)).await.unwrap_err(),
        thread.fork_with(uuid(7), log("x")).await.unwrap_err(),
    ];
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "the graph `routed` has no node `ghost`",
            "`choose` chose no target; to end there, choose END",
            "`choose` went to `choose`, which it did not declare (declared: a, b, work)",
            "`a` and `b` both wrote `topic` in superstep 1; give it a reducer",
            "the graph `routed` has no node `__start__`",
            "a command that starts a run needs an update or a target",
            "thread `t` has no checkpoint 00000000-0000-0000-0000-000000000007",
            "thread `t` has no checkpoint 00000000-0000-0000-0000-000000000007",
        ]
    );
    assert_eq!(thread.history().await.unwrap(), before);
    assert_eq!(thread.resume().await.unwrap().done().unwrap().log, ["a"]);
}

fn uuid(n: u128) -> CheckpointId {
    format!("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", 0, 0, 0, 0, n)
        .parse()
        .unwrap()
}

// 54, 65: what had finished in the open superstep is kept, with where it leads.
#[tokio::test]
async fn writing_as_the_node_that_waits_keeps_what_its_siblings_did() {
    let graph = Graph::<Case>::new("g")
        .node("a", async |_: &Case, _: &Ctx| Ok(log("a")))
        .node("b", async |_: &Case, ctx: &Ctx| {
            Ok(log(ctx.interrupt::<String>("q", "?")?))
        })
        .node("after a", async |_: &Case, _: &Ctx| Ok(log("after a")))
        .node("end", async |_: &Case, _: &Ctx| Ok(log("end")))
        .start(["a", "b"])
        .edge("a", "after a")
        .join(["after a", "b"], "end")
        .end("end")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    thread.run(Case::update()).await.unwrap();
    thread.update_as("b", log("b by hand")).await.unwrap();
    let done = thread.resume().await.unwrap().done().unwrap();
    assert_eq!(done.log, ["a", "b by hand", "after a", "end"]);

    let thread = graph.thread(&MemoryStore::shared(), "t");
    thread.run(Case::update()).await.unwrap();
    thread.update_as(END, Case::update()).await.unwrap();
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!(
        (snapshot.finished, &snapshot.state.log[..]),
        (true, &["a".to_owned()][..])
    );
}

// 60, 6: one thread, one writer.
#[tokio::test]
async fn a_thread_that_a_run_drives_cannot_be_written_to() {
    let (inside, gate) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let graph = Graph::<Case>::new("g")
        .node(
            "a",
            with(
                (inside.clone(), gate.clone()),
                async |(inside, gate): &(Arc<Notify>, Arc<Notify>), _: &Case, _: &Ctx| {
                    inside.notify_one();
                    gate.notified().await;
                    Ok(log("a"))
                },
            ),
        )
        .start("a")
        .end("a")
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    let run = RunId::fresh();
    let running = graph.thread(&store, "t").run(Case::update()).run_id(run);
    let running = tokio::spawn(running.into_future());
    inside.notified().await;
    let thread = graph.thread(&store, "t");
    let head = thread.history().await.unwrap()[0].id;
    for error in [
        thread.update(log("x")).await.unwrap_err(),
        thread.update_as("a", log("x")).await.unwrap_err(),
        thread.fork(head).await.unwrap_err(),
        thread.run(log("x")).await.unwrap_err(),
        thread.resume().await.unwrap_err(),
    ] {
        assert!(
            matches!(&error, Error::Conflict { thread, holder } if thread == "t" && *holder == Some(run)),
            "{error}"
        );
    }
    gate.notify_one();
    assert_eq!(running.await.unwrap().unwrap().done().unwrap().log, ["a"]);
    thread.update(log("x")).await.unwrap();
}

// 80: a history is in order also when the machine that wrote last has a clock that is ahead.
#[tokio::test]
async fn a_checkpoint_is_newer_than_its_head_though_the_clock_went_back() {
    let store = MemoryStore::shared();
    let thread = line(&Runs::default()).thread(&store, "t");
    thread.run(Case::update()).pause_before("c").await.unwrap();
    let scope = Scope {
        thread: "t".into(),
        namespace: "".into(),
    };
    let head = store.load(&scope, None).await.unwrap().unwrap();
    // The same checkpoint again, as if it had been written in the year 10889.
    let ahead = Put {
        id: "ffffffff-ffff-7fff-bfff-0000000000ff".parse().unwrap(),
        parent: Some(head.id),
        expect: Some(head.id),
        metadata: head.metadata,
        machine: head.machine,
        deltas: Vec::new(),
        notes: Vec::new(),
        epoch: u64::MAX,
        standing: None,
        events: Vec::new(),
    };
    let id = ahead.id;
    store.put(&scope, ahead).await.unwrap();
    thread.update(log("x")).await.unwrap();
    thread.resume().await.unwrap().done().unwrap();
    thread.fork(id).await.unwrap();
    let history = thread.history().await.unwrap();
    let parents: Vec<_> = history.iter().map(|e| e.parent).collect();
    let [fork, end, update, ..] = &history[..] else {
        panic!()
    };
    assert_eq!(parents[..3], [Some(id), Some(update.id), Some(id)]);
    assert!(fork.id > end.id && end.id > update.id && update.id > id);
}

// An update beside an input is written first, in the same step.
#[tokio::test]
async fn an_update_beside_an_input_is_written_before_it() {
    let thread = line(&Runs::default()).thread(&MemoryStore::shared(), "t");
    let run = thread
        .run(log("input"))
        .with_update(log("beside").topic("!"));
    let done = run.await.unwrap().done().unwrap();
    assert_eq!(done.log, ["beside", "input", "a!", "b!", "c!"]);
    assert_eq!(thread.history().await.unwrap().len(), 4);
}
