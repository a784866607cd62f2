//! Limits of time: of an attempt, of silence, of a superstep.

use paraph_graph::*;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    #[reduce(append)]
    log: Vec<String>,
}

type Count = Arc<AtomicU32>;

fn hit(count: &Count) -> u32 {
    count.fetch_add(1, Ordering::SeqCst) + 1
}

fn log(line: impl Into<String>) -> Update<Case> {
    Case::update().log([line.into()])
}

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];
const MS: Duration = Duration::from_millis(1);

fn ms(n: u32) -> Duration {
    MS * n
}

// 72.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_ended_and_tried_again() {
    let graph = Graph::<Case>::new("g")
        .node("a", async |_: &Case, ctx: &Ctx| {
            if ctx.attempt() == 1 {
                tokio::time::sleep(ms(101)).await;
            }
            tokio::time::sleep(ms(99)).await;
            Ok(log(format!("attempt {}", ctx.attempt())))
        })
        .policy(
            "a",
            Policy {
                attempts: 2,
                backoff: ms(5),
                timeout: Some(ms(100)),
                ..Policy::default()
            },
        )
        .start("a")
        .end("a")
        .build()
        .unwrap();
    let begin = Instant::now();
    assert_eq!(
        graph.invoke(Case::update()).await.unwrap().log,
        ["attempt 2"]
    );
    assert_eq!(begin.elapsed(), ms(100 + 5 + 99));
}

// 72.
#[tokio::test(start_paused = true)]
async fn a_timeout_for_good_is_on_record_as_one() {
    let graph = Graph::<Case>::new("g")
        .node("a", async |_: &Case, _: &Ctx| {
            std::future::pending::<()>().await;
            Ok(log("never"))
        })
        .policy(
            "a",
            Policy {
                timeout: Some(ms(100)),
                ..Policy::default()
            },
        )
        .start("a")
        .end("a")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let error = thread.run(Case::update()).await.unwrap_err();
    let Error::Node { source, .. } = &error else {
        panic!("{error}")
    };
    let timed_out = TimedOut {
        after: ms(100),
        idle: false,
    };
    assert_eq!(source.downcast_ref::<TimedOut>(), Some(&timed_out));
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    let error = snapshot.tasks[0].error.clone().unwrap();
    assert_eq!(
        (error.kind, &*error.message),
        (FailureKind::Timeout, "timed out after 100ms")
    );
}

async fn lively(sign: &&'static str, _: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    for _ in 0..5 {
        tokio::time::sleep(ms(80)).await;
        match *sign {
            "heartbeat" => ctx.heartbeat(),
            "emit" => ctx.emit("here").await?,
            "message" => ctx.message("m", MessagePhase::Chunk, "x", &[]).await?,
            "step" => ctx.step("s", async { Ok(()) }).await?,
            _ => {}
        }
    }
    Ok(log(*sign))
}

// 72.
#[tokio::test(start_paused = true)]
async fn an_idle_limit_ends_a_silent_node_and_no_other() {
    for (sign, lives) in [
        ("heartbeat", true),
        ("emit", true),
        ("message", true),
        ("step", true),
        ("silence", false),
    ] {
        let graph = Graph::<Case>::new("g")
            .node("a", with(sign, lively))
            .policy(
                "a",
                Policy {
                    idle: Some(ms(100)),
                    ..Policy::default()
                },
            )
            .start("a")
            .end("a")
            .build()
            .unwrap();
        let begin = Instant::now();
        match graph.invoke(Case::update()).await {
            Ok(state) => assert_eq!((state.log, lives), (vec![sign.to_owned()], true)),
            Err(error) => {
                assert_eq!(
                    error.to_string(),
                    "node `a` failed: timed out after 100ms without a sign of life"
                );
                assert!(!lives && begin.elapsed() <= ms(110), "{sign}");
            }
        }
    }
}

// 72. Life inside a subgraph is life of the node that it is.
#[tokio::test(start_paused = true)]
async fn an_idle_limit_on_a_subgraph_counts_what_its_nodes_do() {
    for (sign, lives) in [("emit", true), ("silence", false)] {
        let inner = Graph::<Case>::new("inner")
            .node("a", with(sign, lively))
            .start("a")
            .end("a")
            .build()
            .unwrap();
        let middle = Graph::<Case>::new("middle")
            .node("in", inner.shared())
            .start("in")
            .end("in")
            .build()
            .unwrap();
        let graph = Graph::<Case>::new("g")
            .node("sub", middle.shared())
            .policy(
                "sub",
                Policy {
                    idle: Some(ms(100)),
                    ..Policy::default()
                },
            )
            .start("sub")
            .end("sub")
            .build()
            .unwrap();
        let ended = graph.invoke(Case::update()).await;
        assert_eq!(ended.is_ok(), lives, "{sign}: {ended:?}");
    }
}

/// A memory store that takes its time to write.
struct Slow(Store, Duration);

type Future<'a, T> = futures::future::BoxFuture<'a, Result<T, Error>>;

impl Checkpoints for Slow {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> Future<'a, Lease> {
        self.0.lease(thread, claim)
    }
    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> Future<'a, ()> {
        Box::pin(async move {
            tokio::time::sleep(self.1).await;
            self.0.put(scope, put).await
        })
    }
    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> Future<'a, ()> {
        Box::pin(async move {
            tokio::time::sleep(self.1).await;
            self.0.note(scope, notes).await
        })
    }
    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> Future<'a, Option<Loaded>> {
        self.0.load(scope, at)
    }
    fn history<'a>(&'a self, scope: &'a Scope, query: &'a HistoryQuery) -> Future<'a, Vec<Entry>> {
        self.0.history(scope, query)
    }
}

// 72. What a timed-out attempt had begun to save is not in the way of the next one.
#[tokio::test(start_paused = true)]
async fn a_subgraph_that_timed_out_while_it_was_being_saved_goes_on_in_the_next_attempt() {
    for durability in [Durability::Sync, Durability::Async] {
        for slowness in [1, 7, 20, 45] {
            let runs = Count::default();
            let quick = async |_: &Case, ctx: &Ctx| Ok(log(ctx.node()));
            let inner = Graph::<Case>::new("inner")
                .node("a", quick)
                .node("b", quick)
                .node("c", quick)
                .node(
                    "slow",
                    with(runs.clone(), async |runs: &Count, _: &Case, _: &Ctx| {
                        if hit(runs) == 1 {
                            tokio::time::sleep(ms(100)).await;
                        }
                        Ok(log("slow"))
                    }),
                )
                .start("a")
                .sequence(["a", "b", "c", "slow"])
                .end("slow")
                .build()
                .unwrap();
            let graph = Graph::<Case>::new("g")
                .node("sub", inner.shared())
                .policy(
                    "sub",
                    Policy {
                        attempts: 20,
                        backoff: Duration::ZERO,
                        timeout: Some(ms(50)),
                        ..Policy::default()
                    },
                )
                .start("sub")
                .end("sub")
                .build()
                .unwrap();
            let store: Store = Arc::new(Slow(MemoryStore::shared(), ms(slowness)));
            let run = graph
                .thread(&store, "t")
                .run(Case::update())
                .durability(durability);
            let done = run.await.unwrap().done().unwrap();
            assert_eq!(
                done.log,
                ["a", "b", "c", "slow"],
                "{durability:?} {slowness}"
            );
        }
    }
}

// §1a: step_timeout.
#[tokio::test(start_paused = true)]
async fn a_superstep_that_takes_too_long_is_ended_and_says_who_was_slow() {
    for durability in ALL {
        let slow = Count::default();
        let graph = Graph::<Case>::new("g")
            .node("quick", async |_: &Case, _: &Ctx| Ok(log("quick")))
            .node(
                "slow",
                with(slow.clone(), async |runs: &Count, _: &Case, ctx: &Ctx| {
                    let n = ctx
                        .step("inside", async {
                            // A step is not torn apart, though the limit has passed.
                            tokio::time::sleep(ms(150)).await;
                            Ok(hit(runs))
                        })
                        .await?;
                    Ok(log(format!("slow {n}")))
                }),
            )
            .start(["quick", "slow"])
            .end(["quick", "slow"])
            .build()
            .unwrap();
        let thread = graph.thread(&MemoryStore::shared(), "t");
        let begin = Instant::now();
        let error = thread
            .run(Case::update())
            .step_timeout(ms(100))
            .durability(durability)
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "superstep 0 took longer than 100ms (still running: slow)"
        );
        assert_eq!(begin.elapsed(), ms(150));
        let snapshot = thread.snapshot(None).await.unwrap().unwrap();
        assert_eq!(
            snapshot.tasks[1].error.clone().unwrap().kind,
            FailureKind::Timeout
        );
        let done = thread
            .resume()
            .step_timeout(ms(100))
            .durability(durability)
            .await
            .unwrap();
        assert_eq!(done.done().unwrap().log, ["quick", "slow 1"]);
    }
}

// §1a: also one that runs alone, and inside a subgraph.
#[tokio::test(start_paused = true)]
async fn the_limit_of_a_superstep_ends_a_task_that_is_alone_and_one_inside_a_subgraph() {
    let inner = || {
        Graph::<Case>::new("inner")
            .node("slow", async |_: &Case, _: &Ctx| {
                tokio::time::sleep(ms(1000)).await;
                Ok(log("slow"))
            })
            .start("slow")
            .end("slow")
            .build()
            .unwrap()
    };
    let outer = Graph::<Case>::new("outer")
        .node("sub", inner().shared())
        .start("sub")
        .end("sub")
        .build()
        .unwrap();
    for graph in [inner(), outer] {
        let begin = Instant::now();
        let error = graph
            .run(Case::update())
            .step_timeout(ms(100))
            .await
            .unwrap_err();
        assert!(
            matches!(error, Error::StepTimeout { superstep: 0, .. }),
            "{error}"
        );
        assert_eq!(begin.elapsed(), ms(100));
    }
}
