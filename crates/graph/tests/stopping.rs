//! Stopping a run from outside: cancelling, dropping, draining, and what is on record afterwards.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    #[reduce(append)]
    log: Vec<String>,
}

fn log(line: impl Into<String>) -> Update<Case> {
    Case::update().log([line.into()])
}

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// What a test and the nodes of its graph share.
#[derive(Clone, Default)]
struct Shared(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Rung by a node that has begun.
    begun: Notify,
    /// Lets it go on.
    gate: Notify,
    runs: AtomicU32,
    dropped: AtomicU32,
}

impl Shared {
    fn runs(&self) -> u32 {
        self.0.runs.load(Ordering::SeqCst)
    }
    fn dropped(&self) -> u32 {
        self.0.dropped.load(Ordering::SeqCst)
    }
}

struct Guard(Shared);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

async fn step(_: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    Ok(log(ctx.node()))
}

/// Waits at the gate, the first time it runs.
async fn wait(shared: &Shared, _: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    if shared.0.runs.fetch_add(1, Ordering::SeqCst) == 0 {
        let _guard = Guard(shared.clone());
        shared.0.begun.notify_one();
        shared.0.gate.notified().await;
    }
    Ok(log(ctx.node()))
}

/// `a`, then `wait`, then `c`.
fn line(shared: &Shared) -> Graph<Case> {
    Graph::<Case>::new("line")
        .node("a", step)
        .node("wait", with(shared.clone(), wait))
        .node("c", step)
        .start("a")
        .sequence(["a", "wait", "c"])
        .end("c")
        .build()
        .unwrap()
}

async fn error_of(thread: &Thread<Case>, task: usize) -> (FailureKind, String) {
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    let error = snapshot.tasks[task].error.clone().unwrap();
    (error.kind, error.message)
}

// 69.
#[tokio::test]
async fn a_cancelled_run_ends_its_node_keeps_what_was_done_and_is_recorded_in_every_durability() {
    for durability in ALL {
        let shared = Shared::default();
        let thread = line(&shared).thread(&MemoryStore::shared(), "t");
        let run = thread.run(Case::update()).durability(durability);
        let control = run.control();
        let running = tokio::spawn(run.into_future());
        shared.0.begun.notified().await;
        assert_eq!(control.cancel(CancelReason::User).await, Ending::Cancelled);
        assert_eq!(shared.dropped(), 1);
        // The state can be read at once; the run's own answer says the same.
        let snapshot = thread.snapshot(None).await.unwrap().unwrap();
        assert_eq!(
            (&snapshot.state.log[..], snapshot.next),
            (&["a".to_owned()][..], vec!["wait".into()])
        );
        assert_eq!(
            error_of(&thread, 0).await,
            (FailureKind::Cancelled, "user".to_owned())
        );
        let ended = running.await.unwrap();
        assert!(matches!(ended, Err(Error::Cancelled(CancelReason::User))));
        let done = thread
            .resume()
            .durability(durability)
            .await
            .unwrap()
            .done()
            .unwrap();
        assert_eq!(
            (&done.log[..], shared.runs()),
            (&["a".to_owned(), "wait".into(), "c".into()][..], 2)
        );
    }
}

// 69.
#[tokio::test]
async fn the_first_reason_counts_and_a_run_that_is_over_cannot_be_cancelled() {
    let shared = Shared::default();
    let thread = line(&shared).thread(&MemoryStore::shared(), "t");
    let run = thread.run(Case::update());
    let control = run.control();
    let running = tokio::spawn(run.into_future());
    shared.0.begun.notified().await;
    control.request_cancel(CancelReason::Superseded);
    control.request_cancel(CancelReason::User);
    assert!(matches!(
        running.await.unwrap(),
        Err(Error::Cancelled(CancelReason::Superseded))
    ));
    let reasons = [
        (CancelReason::User, "user"),
        (CancelReason::Disconnect, "disconnect"),
        (CancelReason::Superseded, "superseded"),
        (CancelReason::Shutdown, "shutdown"),
        (CancelReason::LeaseLost, "lease_lost"),
    ];
    for (reason, text) in reasons {
        assert_eq!(reason.to_string(), text);
    }
    let run = thread.resume();
    let control = run.control();
    run.await.unwrap().done().unwrap();
    assert_eq!(control.cancel(CancelReason::User).await, Ending::Finished);
}

// 69. What is done inside a step is not torn apart.
#[tokio::test]
async fn a_cancel_waits_for_a_step_and_keeps_its_result() {
    let shared = Shared::default();
    let graph = Graph::<Case>::new("g")
        .node(
            "a",
            with(
                shared.clone(),
                async |shared: &Shared, _: &Case, ctx: &Ctx| {
                    let n = ctx
                        .step("work", async {
                            shared.0.begun.notify_one();
                            shared.0.gate.notified().await;
                            Ok(shared.0.runs.fetch_add(1, Ordering::SeqCst))
                        })
                        .await?;
                    let _guard = Guard(shared.clone());
                    Ok(log(n.to_string()))
                },
            ),
        )
        .start("a")
        .end("a")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let run = thread.run(Case::update());
    let control = run.control();
    let running = tokio::spawn(run.into_future());
    shared.0.begun.notified().await;
    control.request_cancel(CancelReason::User);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!running.is_finished());
    shared.0.gate.notify_one();
    assert_eq!(control.ended().await, Ending::Cancelled);
    assert_eq!(shared.dropped(), 0);
    let done = thread.resume().await.unwrap().done().unwrap();
    assert_eq!((&done.log[..], shared.runs()), (&["0".to_owned()][..], 1));
}

// 69, SERVER-NEEDS 13: a node that blocks its thread cannot be ended; the answer says what happened.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_blocks_is_waited_for_and_the_run_does_not_end_as_a_success() {
    let (begun, gate) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    let gate_end = std::sync::Mutex::new(gate.1);
    let node = with(
        (begun.0, gate_end),
        async |(begun, gate): &(
            std::sync::mpsc::Sender<()>,
            std::sync::Mutex<std::sync::mpsc::Receiver<()>>,
        ),
               _: &Case,
               _: &Ctx| {
            begun.send(())?;
            let waited = gate.lock().unwrap().recv();
            waited?;
            Ok(log("blocks"))
        },
    );
    let graph = Graph::<Case>::new("g")
        .node("blocks", node)
        .node("next", step)
        .start("blocks")
        .edge("blocks", "next")
        .end("next")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let run = thread.run(Case::update());
    let control = run.control();
    let running = tokio::spawn(run.into_future());
    begun.1.recv().unwrap();
    control.request_cancel(CancelReason::Shutdown);
    gate.0.send(()).unwrap();
    assert_eq!(control.ended().await, Ending::Cancelled);
    assert!(running.await.unwrap().is_err());
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!(
        (&snapshot.state.log[..], snapshot.next),
        (&["blocks".to_owned()][..], vec!["next".into()])
    );
}

// 69.
#[tokio::test]
async fn a_run_that_is_cancelled_before_it_begins_saves_nothing() {
    let thread = line(&Shared::default()).thread(&MemoryStore::shared(), "t");
    let run = thread.run(Case::update());
    run.control().request_cancel(CancelReason::User);
    assert!(matches!(
        run.await,
        Err(Error::Cancelled(CancelReason::User))
    ));
    assert!(thread.history().await.unwrap().is_empty());
}

fn nested(shared: &Shared) -> Graph<Case> {
    Graph::<Case>::new("nested")
        .node("sub", line(shared).shared())
        .node("beside", step)
        .node("after", step)
        .start(["sub", "beside"])
        .join(["sub", "beside"], "after")
        .end("after")
        .build()
        .unwrap()
}

// 69, through a subgraph.
#[tokio::test]
async fn a_cancel_reaches_into_subgraphs_which_go_on_where_they_were() {
    for durability in ALL {
        let shared = Shared::default();
        let thread = nested(&shared).thread(&MemoryStore::shared(), "t");
        let run = thread.run(Case::update()).durability(durability);
        let control = run.control();
        let running = tokio::spawn(run.into_future());
        shared.0.begun.notified().await;
        assert_eq!(control.cancel(CancelReason::User).await, Ending::Cancelled);
        assert!(running.await.unwrap().is_err());
        assert_eq!(shared.dropped(), 1);
        let snapshot = thread.snapshot(None).await.unwrap().unwrap();
        assert_eq!(
            error_of(&thread, 0).await,
            (FailureKind::Cancelled, "user".to_owned())
        );
        let namespace = &snapshot.tasks[0].child.as_ref().unwrap().namespace;
        let inner = thread.subgraph(namespace, None).await.unwrap().unwrap();
        assert_eq!(
            inner.tasks[0].error.clone().unwrap().kind,
            FailureKind::Cancelled
        );
        let done = thread
            .resume()
            .durability(durability)
            .await
            .unwrap()
            .done()
            .unwrap();
        assert_eq!(
            done.log,
            ["a", "wait", "c", "beside", "after"],
            "{durability:?}"
        );
        assert_eq!(shared.runs(), 2);
    }
}

// 70.
#[tokio::test]
async fn dropping_the_stream_cancels_the_run_and_says_so() {
    for durability in ALL {
        let shared = Shared::default();
        let thread = line(&shared).thread(&MemoryStore::shared(), "t");
        let mut stream = thread
            .run(Case::update())
            .durability(durability)
            .stream([Mode::Tasks]);
        let control = stream.control();
        while let Some(event) = stream.next().await {
            if matches!(&event.data, EventData::TaskStart { node, .. } if node == "wait") {
                break;
            }
        }
        drop(stream);
        assert_eq!(control.ended().await, Ending::Cancelled);
        assert_eq!(
            error_of(&thread, 0).await,
            (FailureKind::Cancelled, "disconnect".to_owned())
        );
        assert_eq!(shared.runs(), shared.dropped());
        assert_eq!(
            thread.resume().await.unwrap().done().unwrap().log,
            ["a", "wait", "c"]
        );
    }
}

// 70. A reader who is behind is no reason to hang.
#[tokio::test]
async fn dropping_a_stream_that_is_full_ends_the_run() {
    let graph = Graph::<Case>::new("g")
        .node("talks", async |_: &Case, ctx: &Ctx| {
            for i in 0..10_000 {
                ctx.emit(i).await?;
            }
            Ok(log("talked"))
        })
        .start("talks")
        .end("talks")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let mut stream = thread.run(Case::update()).stream([Mode::Custom]);
    let control = stream.control();
    stream.next().await.unwrap();
    drop(stream);
    assert_eq!(control.ended().await, Ending::Cancelled);
    assert_eq!(error_of(&thread, 0).await.1, "disconnect");
}

// 70.
#[tokio::test]
async fn a_run_or_stream_that_is_dropped_before_it_is_polled_has_done_nothing() {
    let shared = Shared::default();
    let thread = line(&shared).thread(&MemoryStore::shared(), "t");
    drop(thread.run(Case::update()));
    drop(thread.run(Case::update()).into_future());
    let stream = thread.run(Case::update()).stream([Mode::Values]);
    let control = stream.control();
    drop(stream);
    assert_eq!(control.ended().await, Ending::Cancelled);
    assert!(thread.history().await.unwrap().is_empty());
    assert_eq!(shared.runs(), 0);
}

// 70.
#[tokio::test]
async fn a_detached_run_goes_on_unread() {
    let shared = Shared::default();
    let thread = line(&shared).thread(&MemoryStore::shared(), "t");
    let mut stream = thread
        .run(Case::update())
        .stream([Mode::Updates, Mode::Values]);
    stream.next().await.unwrap();
    let control = stream.detach();
    shared.0.begun.notified().await;
    shared.0.gate.notify_one();
    assert_eq!(control.ended().await, Ending::Finished);
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!(
        (snapshot.finished, &snapshot.state.log[..]),
        (true, &["a".to_owned(), "wait".into(), "c".into()][..])
    );
}

/// Asks for a drain in the middle of its work.
async fn drains(shared: &Shared, _: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    shared.0.runs.fetch_add(1, Ordering::SeqCst);
    ctx.context::<Control>()?.request_drain();
    tokio::task::yield_now().await;
    Ok(log(ctx.node()))
}

fn draining(shared: &Shared, last: bool) -> Graph<Case> {
    let nodes: &[&'static str] = if last {
        &["a", "drains"]
    } else {
        &["a", "drains", "c"]
    };
    Graph::<Case>::new("draining")
        .node("a", step)
        .node("drains", with(shared.clone(), drains))
        .node("c", step)
        .start(if last { vec!["c", "a"] } else { vec!["a"] })
        .sequence(nodes.to_vec())
        .end(if last { vec!["drains", "c"] } else { vec!["c"] })
        .build()
        .unwrap()
}

/// Runs with a context through which a node can drain the run.
fn drainable(thread: &Thread<Case>, resume: bool) -> Start<Case> {
    let start = if resume {
        thread.resume()
    } else {
        thread.run(Case::update())
    };
    let control = start.control();
    start.context(control)
}

// 74.
#[tokio::test]
async fn a_drained_run_stops_before_the_next_superstep_and_is_resumed() {
    for durability in ALL {
        let shared = Shared::default();
        let thread = draining(&shared, false).thread(&MemoryStore::shared(), "t");
        let stopped = drainable(&thread, false)
            .durability(durability)
            .await
            .unwrap();
        let Outcome::Stopped { state, next, why } = stopped else {
            panic!("{stopped:?}")
        };
        assert_eq!(
            (state.log, next, why),
            (
                vec!["a".into(), "drains".into()],
                vec!["c".into()],
                StoppedBy::Drain
            )
        );
        let snapshot = thread.snapshot(None).await.unwrap().unwrap();
        assert_eq!(
            (snapshot.next, snapshot.tasks[0].error.clone()),
            (vec!["c".into()], None)
        );
        let done = drainable(&thread, true)
            .durability(durability)
            .await
            .unwrap()
            .done()
            .unwrap();
        assert_eq!(done.log, ["a", "drains", "c"]);
        assert_eq!(shared.runs(), 1, "{durability:?}");
    }
}

// 74.
#[tokio::test]
async fn a_drain_in_the_last_superstep_lets_the_run_finish() {
    let shared = Shared::default();
    let thread = draining(&shared, true).thread(&MemoryStore::shared(), "t");
    let run = drainable(&thread, false);
    let control = run.control();
    assert_eq!(run.await.unwrap().done().unwrap().log, ["a", "c", "drains"]);
    assert_eq!(control.drain().await, Ending::Finished);
}

// 74.
#[tokio::test]
async fn a_drain_inside_a_subgraph_stops_it_there_and_lets_siblings_finish() {
    for durability in ALL {
        let shared = Shared::default();
        let graph = Graph::<Case>::new("outer")
            .node("sub", draining(&shared, false).shared())
            .node("sibling", async |_: &Case, _: &Ctx| {
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                }
                Ok(log("sibling"))
            })
            .node("after", step)
            .start(["sub", "sibling"])
            .join(["sub", "sibling"], "after")
            .end("after")
            .build()
            .unwrap();
        let thread = graph.thread(&MemoryStore::shared(), "t");
        let stopped = drainable(&thread, false)
            .durability(durability)
            .await
            .unwrap();
        assert!(
            matches!(&stopped, Outcome::Stopped { why: StoppedBy::Drain, next, .. } if next == &["sub"]),
            "{stopped:?}"
        );
        assert_eq!(stopped.state().log, ["sibling"]);
        let done = drainable(&thread, true)
            .durability(durability)
            .await
            .unwrap()
            .done()
            .unwrap();
        assert_eq!(done.log, ["a", "drains", "c", "sibling", "after"]);
        assert_eq!(shared.runs(), 1, "{durability:?}");
    }
}

// 74.
#[tokio::test(start_paused = true)]
async fn draining_a_stream_reads_it_to_its_end_and_says_what_happened() {
    let graph = Graph::<Case>::new("g")
        .node("a", async |_: &Case, _: &Ctx| {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(log("a"))
        })
        .start("a")
        .edge("a", "a")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let mut stream = thread.run(Case::update()).stream([Mode::Updates]);
    stream.next().await.unwrap();
    assert_eq!(stream.drain().await, Ending::Drained);
    assert_eq!(
        thread.snapshot(None).await.unwrap().unwrap().state.log,
        ["a"]
    );
    let mut stream = thread.resume().stream([Mode::Updates]);
    stream.next().await.unwrap();
    assert_eq!(stream.cancel(CancelReason::User).await, Ending::Cancelled);
}
