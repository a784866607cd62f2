//! What a run leaves in the rows of its thread: how it stands, how the run ended, and that it can be ended
//! through them.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use futures::future::BoxFuture;
use paraph_graph::*;
use serde_json::{Value, json};
use std::{
    future::IntoFuture,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use tokio::sync::Notify;

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    title: String,
    #[reduce(append)]
    log: Vec<String>,
    #[reduce(untracked)]
    secret: String,
}

fn log(line: impl Into<String>) -> Update<Case> {
    Case::update().log([line.into()])
}

async fn step(_: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    Ok(log(ctx.node()))
}

/// A step, a question beside a step, an end.
fn asking() -> Graph<Case> {
    Graph::<Case>::new("asking")
        .node("first", step)
        .node("ask", async |_: &Case, ctx: &Ctx| {
            Ok(log(ctx.interrupt::<String>("q", "sure?")?))
        })
        .node("side", step)
        .node("last", async |_: &Case, _: &Ctx| {
            Ok(log("last").secret("not saved"))
        })
        .start("first")
        .edge("first", ["ask", "side"])
        .join(["ask", "side"], "last")
        .end("last")
        .build()
        .unwrap()
}

async fn row(store: &MemoryStore, thread: &str) -> ThreadRow {
    store.thread(thread).await.unwrap().unwrap()
}

async fn run_row(store: &MemoryStore, run: RunId) -> RunRow {
    store.run(run).await.unwrap().unwrap()
}

/// Status, next, questions, values.
fn stands(row: &ThreadRow) -> (ThreadStatus, Vec<String>, usize, Option<Value>) {
    let next = row.next.iter().map(ToString::to_string).collect();
    (row.status, next, row.interrupts.len(), row.values.clone())
}

#[tokio::test]
async fn the_rows_say_how_a_run_that_asks_and_is_answered_stands() {
    for durability in ALL {
        let store = MemoryStore::new();
        let thread = asking().thread(&(store.clone() as Store), "t");
        let (first, second) = (RunId::fresh(), RunId::fresh());
        let start = thread.run(Case::update().title("lost parcel"));
        let options = RunOptions {
            durability,
            arguments: json!({"from": "here"}),
            ..RunOptions::default()
        };
        let paused = start.options(options).run_id(first).await.unwrap();
        let of_thread = row(&store, "t").await;
        let values = json!({"title": "lost parcel", "log": ["first", "side"]});
        assert_eq!(
            stands(&of_thread),
            (
                ThreadStatus::Interrupted,
                vec!["ask".to_owned()],
                1,
                Some(values)
            )
        );
        assert_eq!(of_thread.graph.as_deref(), Some("asking"));
        assert_eq!(of_thread.holder, None);
        assert_eq!(of_thread.interrupts, paused.interrupts());
        let of_run = run_row(&store, first).await;
        assert_eq!(
            (of_run.status, of_run.live, of_run.attempts, &of_run.error),
            (RunStatus::Paused, false, 1, &None)
        );
        assert_eq!(of_run.arguments, json!({"from": "here"}));
        // The same run is taken up again, and keeps what it was started with.
        let answer = thread.answer(&paused.interrupts()[0].id, "yes");
        let answered = answer.durability(durability).run_id(first).await.unwrap();
        assert_eq!(answered.state().secret, "not saved");
        let values = json!({"title": "lost parcel", "log": ["first", "yes", "side", "last"]});
        let idle = (ThreadStatus::Idle, vec![], 0, Some(values));
        assert_eq!(stands(&row(&store, "t").await), idle, "{durability:?}");
        let of_run = run_row(&store, first).await;
        assert_eq!((of_run.status, of_run.attempts), (RunStatus::Success, 2));
        assert_eq!(of_run.arguments, json!({"from": "here"}));
        // A run that cannot begin is on record; the thread stands as it did.
        let nothing = thread.answer("unknown", 1).run_id(second).await;
        assert!(matches!(nothing, Err(Error::NothingToResume(_))));
        assert_eq!(stands(&row(&store, "t").await), idle);
        let of_run = run_row(&store, second).await;
        assert_eq!(of_run.status, RunStatus::Error);
        assert_eq!(of_run.error.unwrap(), "nothing is waiting on thread `t`");
    }
}

/// `a`, `b`, `c`, in which the title says what goes wrong.
fn going_wrong() -> Graph<Case> {
    Graph::<Case>::new("g")
        .node("a", step)
        .node("b", async |c: &Case, _: &Ctx| match &*c.title {
            "fails" => Err(NodeError::msg("no")),
            "panics" => panic!("out of order"),
            _ => Ok(log("b")),
        })
        .node("c", step)
        .start("a")
        .edge("a", "b")
        .branch(
            "b",
            |c: &Case| match &*c.title {
                "branches" => panic!("nowhere"),
                _ => "c",
            },
            ["c"],
        )
        .branch(
            "c",
            |c: &Case| if c.title == "loops" { "a" } else { END },
            ["a", END],
        )
        .build()
        .unwrap()
}

/// What goes wrong, how run and thread stand then, why, and what is due.
const ENDS: [(&str, RunStatus, ThreadStatus, Option<&str>, &str); 5] = [
    (
        "fails",
        RunStatus::Error,
        ThreadStatus::Error,
        Some("node `b` failed: no"),
        "b",
    ),
    (
        "panics",
        RunStatus::Error,
        ThreadStatus::Error,
        Some("node `b` failed: panicked: out of order"),
        "b",
    ),
    (
        "branches",
        RunStatus::Error,
        ThreadStatus::Error,
        Some("panicked outside of a node, in a branch, a reducer or a value's form: nowhere"),
        "b",
    ),
    (
        "loops",
        RunStatus::Stopped,
        ThreadStatus::Interrupted,
        Some("still running after 7 supersteps; the state is saved and can be continued"),
        "b",
    ),
    (
        "breaks",
        RunStatus::Stopped,
        ThreadStatus::Interrupted,
        None,
        "c",
    ),
];

#[tokio::test]
async fn the_rows_say_why_a_run_stopped_before_its_end() {
    let graph = going_wrong();
    for durability in ALL {
        let store = MemoryStore::new();
        for (title, of_run, of_thread, error, next) in ENDS {
            let run = RunId::fresh();
            let thread = graph.thread(&(store.clone() as Store), title);
            let start = thread.run(Case::update().title(title));
            let start = start.durability(durability).run_id(run).limit(7);
            let _ = match title {
                "breaks" => start.pause_before("c").await,
                _ => start.await,
            };
            let what = format!("{title} {durability:?}");
            let found = run_row(&store, run).await;
            assert_eq!(found.status, of_run, "{what}");
            assert_eq!(found.error.as_deref(), error, "{what}");
            let found = row(&store, title).await;
            assert_eq!(found.status, of_thread, "{what}");
            // Where nothing was saved before, the node is done and only its branch is to be asked again.
            let done = title == "branches" && durability == Durability::Exit;
            let next = (!done).then(|| Name::from(next));
            assert_eq!(found.next, Vec::from_iter(next), "{what}");
            assert_eq!(found.holder, None, "{what}");
        }
    }
}

#[tokio::test]
async fn while_a_run_goes_on_its_thread_is_busy_and_what_is_due_is_told() {
    let gate = Arc::new((Notify::new(), Notify::new()));
    let graph = waiting(&gate);
    let store = MemoryStore::new();
    let run = RunId::fresh();
    let thread = graph.thread(&(store.clone() as Store), "t");
    let running = tokio::spawn(thread.run(Case::update()).run_id(run).into_future());
    gate.0.notified().await;
    let busy = row(&store, "t").await;
    assert_eq!(
        stands(&busy),
        (ThreadStatus::Busy, vec!["wait".to_owned()], 0, None)
    );
    assert_eq!(busy.holder, Some(run));
    assert!(run_row(&store, run).await.live);
    gate.1.notify_one();
    running.await.unwrap().unwrap();
    assert_eq!(row(&store, "t").await.status, ThreadStatus::Idle);
}

/// A step, and a node that says it is there and waits.
fn waiting(gate: &Arc<(Notify, Notify)>) -> Graph<Case> {
    async fn wait(gate: &Arc<(Notify, Notify)>, _: &Case, _: &Ctx) -> Result<Update<Case>> {
        gate.0.notify_one();
        gate.1.notified().await;
        Ok(log("waited"))
    }
    Graph::<Case>::new("waiting")
        .node("first", step)
        .node("wait", with(gate.clone(), wait))
        .start("first")
        .edge("first", "wait")
        .end("wait")
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_wish_in_the_store_ends_the_run_and_says_when_it_took_hold() {
    for durability in ALL {
        let gate = Arc::new((Notify::new(), Notify::new()));
        let store = MemoryStore::new();
        let run = RunId::fresh();
        let thread = waiting(&gate).thread(&(store.clone() as Store), "t");
        let start = thread.run(Case::update()).durability(durability);
        let running = tokio::spawn(start.run_id(run).into_future());
        gate.0.notified().await;
        let wished = store.cancel(run, CancelReason::User).await.unwrap();
        assert_eq!(wished.status, RunStatus::Running);
        assert_eq!(wished.cancel.unwrap().done_ms, None);
        let ended = running.await.unwrap();
        assert!(matches!(ended, Err(Error::Cancelled(CancelReason::User))));
        let found = run_row(&store, run).await;
        assert_eq!(found.status, RunStatus::Cancelled);
        assert!(found.cancel.unwrap().done_ms.is_some());
        // The cancellation is on record, with its reason, and the thread can be resumed.
        let snapshot = thread.snapshot(None).await.unwrap().unwrap();
        let error = snapshot.tasks[0].error.clone().unwrap();
        assert_eq!(
            (error.kind, &*error.message),
            (FailureKind::Cancelled, "user")
        );
        assert_eq!(row(&store, "t").await.status, ThreadStatus::Interrupted);
        gate.1.notify_one();
        let resumed = thread.resume().await.unwrap().done().unwrap();
        assert_eq!(resumed.log, ["first", "waited"]);
    }
}

/// Gives leases whose loss the test decides, and counts what is written.
struct Losing {
    inner: Store,
    wish: tokio::sync::watch::Sender<Option<CancelReason>>,
    writes: std::sync::atomic::AtomicUsize,
}

impl Losing {
    fn count(&self) {
        self.writes
            .fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

impl Checkpoints for Losing {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> BoxFuture<'a, Result<Lease, Error>> {
        Box::pin(async move {
            let lease = self.inner.lease(thread, claim).await?;
            Ok(Lease {
                wish: Some(self.wish.subscribe()),
                ..lease
            })
        })
    }
    fn finish<'a>(&'a self, thread: &'a str, end: RunEnd) -> BoxFuture<'a, Result<(), Error>> {
        self.count();
        self.inner.finish(thread, end)
    }
    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> BoxFuture<'a, Result<(), Error>> {
        self.count();
        self.inner.put(scope, put)
    }
    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> BoxFuture<'a, Result<(), Error>> {
        self.count();
        self.inner.note(scope, notes)
    }
    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, Error>> {
        self.inner.load(scope, at)
    }
    fn history<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>> {
        self.inner.history(scope, query)
    }
}

#[tokio::test]
async fn a_run_whose_lease_is_lost_writes_nothing_more() {
    for durability in ALL {
        let gate = Arc::new((Notify::new(), Notify::new()));
        let losing = Arc::new(Losing {
            inner: MemoryStore::shared(),
            wish: tokio::sync::watch::Sender::new(None),
            writes: Default::default(),
        });
        let thread = waiting(&gate).thread(&(losing.clone() as Store), "t");
        let start = thread.run(Case::update()).durability(durability);
        let running = tokio::spawn(start.into_future());
        gate.0.notified().await;
        if durability == Durability::Async {
            // Until the saver has done what it was given.
            while losing.writes.load(std::sync::atomic::Ordering::SeqCst) < 2 {
                tokio::task::yield_now().await;
            }
        }
        let before = losing.writes.load(std::sync::atomic::Ordering::SeqCst);
        losing.wish.send_replace(Some(CancelReason::LeaseLost));
        let ended = running.await.unwrap();
        assert!(
            matches!(ended, Err(Error::Cancelled(CancelReason::LeaseLost))),
            "{ended:?}"
        );
        let after = losing.writes.load(std::sync::atomic::Ordering::SeqCst);
        assert_eq!(after, before, "{durability:?}");
    }
}

#[tokio::test]
async fn a_run_whose_stream_is_dropped_ends_in_its_row_too() {
    let gate = Arc::new((Notify::new(), Notify::new()));
    let store = MemoryStore::new();
    let run = RunId::fresh();
    let thread = waiting(&gate).thread(&(store.clone() as Store), "t");
    let start = thread.run(Case::update()).run_id(run);
    let mut stream = start.stream([Mode::Updates]);
    let control = stream.control();
    stream.next().await.unwrap();
    drop(stream);
    assert_eq!(control.ended().await, Ending::Cancelled);
    let found = run_row(&store, run).await;
    assert_eq!(found.status, RunStatus::Cancelled);
    assert_eq!(
        found.error.as_deref(),
        Some("the run was cancelled (disconnect)")
    );
    assert_eq!(row(&store, "t").await.status, ThreadStatus::Interrupted);
}

#[tokio::test]
async fn writes_between_runs_say_how_the_thread_stands_and_leave_no_run() {
    let store = MemoryStore::new();
    let thread = asking().thread(&(store.clone() as Store), "t");
    thread.update(Case::update().title("new")).await.unwrap();
    let idle = |values: Value| (ThreadStatus::Idle, vec![], 0, Some(values));
    assert_eq!(
        stands(&row(&store, "t").await),
        idle(json!({"title": "new", "log": []}))
    );
    thread.run(Case::update()).await.unwrap();
    thread.update(Case::update().title("newer")).await.unwrap();
    let asked = row(&store, "t").await;
    assert_eq!(
        stands(&asked),
        (
            ThreadStatus::Interrupted,
            vec!["ask".to_owned()],
            1,
            Some(json!({"title": "newer", "log": ["first", "side"]}))
        )
    );
    // A fork asks again: nothing is asked yet, everything is due.
    let head = thread.history().await.unwrap()[0].id;
    thread.fork(head).await.unwrap();
    let forked = row(&store, "t").await;
    assert_eq!(
        (forked.status, forked.next.len(), forked.interrupts.len()),
        (ThreadStatus::Interrupted, 2, 0)
    );
    thread.update_as(END, log("by hand")).await.unwrap();
    assert_eq!(row(&store, "t").await.status, ThreadStatus::Idle);
    let runs = store.runs(&RunQuery::default()).await.unwrap();
    assert_eq!(runs.len(), 1);
}

#[tokio::test]
async fn a_state_that_is_long_is_not_repeated_in_the_row() {
    let store = MemoryStore::new();
    let thread = asking().thread(&(store.clone() as Store), "t");
    thread.run(Case::update().title("short")).await.unwrap();
    assert!(row(&store, "t").await.values.is_some());
    let long = "x".repeat(Standing::LONGEST);
    thread.run(Case::update().title(long)).await.unwrap();
    assert_eq!(row(&store, "t").await.values, None);
    thread.run(Case::update().title("short")).await.unwrap();
    assert!(row(&store, "t").await.values.is_some());
}

/// The thread as it stands in one store, written into another under another name.
async fn moved(from: &Store, name: &str, to: &Store, new: &str) {
    let scope = |thread: &str| Scope {
        thread: thread.into(),
        namespace: "".into(),
    };
    let all = HistoryQuery::default();
    let mut views = from.views(&scope(name), &all).await.unwrap();
    views.reverse();
    let mut head = None;
    for view in views {
        let changed = |(channel, _): &&(String, Vec<Piece>)| view.changed.contains(channel);
        let deltas = view.channels.iter().filter(changed);
        let deltas = deltas.map(|(channel, pieces)| Delta {
            channel: channel.clone(),
            kind: pieces.last().unwrap().kind,
            json: pieces.last().unwrap().json.to_vec(),
        });
        let put = Put {
            id: view.id,
            parent: view.parent,
            expect: head,
            metadata: view.metadata.clone(),
            machine: with_origin(&view.machine, Some(name)).unwrap(),
            deltas: deltas.collect(),
            notes: view.notes.clone(),
            epoch: 0,
            standing: None,
            events: Vec::new(),
        };
        head = Some(view.id);
        to.put(&scope(new), put).await.unwrap();
    }
}

/// Does something once, and asks.
async fn once(runs: &Arc<AtomicU32>, _: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    let memo: String = ctx
        .step("memo", async {
            runs.fetch_add(1, Ordering::SeqCst);
            Ok(ctx.key("effect"))
        })
        .await?;
    let answer: String = ctx.interrupt("sure", "really?")?;
    let is_same = memo == ctx.key("effect");
    Ok(log(format!("{answer} {is_same}")))
}

#[tokio::test]
async fn a_thread_that_was_moved_goes_on_with_what_its_tasks_left_and_a_copy_begins_anew() {
    let runs = Arc::new(AtomicU32::new(0));
    let graph = Graph::<Case>::new("g")
        .node("ask", with(runs.clone(), once))
        .node("then", async |_: &Case, ctx: &Ctx| {
            let answer: String = ctx.interrupt("again", "and now?")?;
            Ok(Case::update().log([answer]))
        })
        .start("ask")
        .sequence(["ask", "then"])
        .end("then")
        .build()
        .unwrap();
    let (old, new) = (MemoryStore::shared(), MemoryStore::new());
    let thread = graph.thread(&old, "t");
    thread.run(Case::update()).await.unwrap();
    let asked = thread.snapshot(None).await.unwrap().unwrap();
    moved(&old, "t", &(new.clone() as Store), "u").await;
    new.copy("u", "copy").await.unwrap();
    let moved = graph.thread(&(new.clone() as Store), "u");
    let stands = moved.snapshot(None).await.unwrap().unwrap();
    assert_eq!(stands.interrupts, asked.interrupts);
    assert_eq!(stands.tasks, asked.tasks);
    let question = asked.interrupts[0].id.clone();
    let paused = moved.answer(&question, "yes").await.unwrap();
    assert_eq!(
        (runs.load(Ordering::SeqCst), &*paused.state().log),
        (1, &["yes true".to_owned()][..])
    );
    // What is saved from here on is of the same thread still.
    let second = paused.interrupts()[0].id.clone();
    let done = moved.answer(&second, "now").await.unwrap().done().unwrap();
    assert_eq!(done.log, ["yes true", "now"]);
    // The copy asks its own question, and its work is its own.
    let copy = graph.thread(&(new.clone() as Store), "copy");
    let fresh = copy.resume().await.unwrap();
    assert_ne!(fresh.interrupts()[0].id, question);
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}
