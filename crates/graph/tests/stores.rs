//! Stores: the conformance suite on memory, threads side by side, and a store that fails.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod faulty;

use faulty::{Calls, Fault, Faulty};
use paraph_graph::*;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

// 80.
#[tokio::test(flavor = "multi_thread")]
async fn the_memory_store_does_what_every_store_must() {
    let store = MemoryStore::shared();
    let mut broken = Vec::new();
    for rule in conformance::RULES {
        broken.extend(rule.check(&store).await.err());
    }
    assert_eq!(broken, []);
    assert_eq!(conformance::RULES.len(), 21);
}

/// Loses what it is told in one way.
struct Lossy(Store, &'static str);

impl Checkpoints for Lossy {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> Future<'a, Lease> {
        match self.1 {
            "leases" => Box::pin(async {
                Ok(Lease {
                    epoch: 1,
                    wish: None,
                    guard: None,
                })
            }),
            _ => self.0.lease(thread, claim),
        }
    }
    fn put<'a>(&'a self, scope: &'a Scope, mut put: Put) -> Future<'a, ()> {
        match self.1 {
            "epochs" => put.epoch = u64::MAX,
            "notes" => put.notes.clear(),
            "deltas" => put.deltas.truncate(1),
            "parents" => put.parent = put.expect,
            "users" => put.metadata.user.clear(),
            "heads" => {
                return Box::pin(async move {
                    put.expect = self.0.load(scope, None).await?.map(|l| l.id);
                    self.0.put(scope, put).await
                });
            }
            _ => {}
        }
        self.0.put(scope, put)
    }
    fn note<'a>(&'a self, scope: &'a Scope, mut notes: Notes) -> Future<'a, ()> {
        if self.1 == "keys" {
            notes.notes.iter_mut().for_each(|note| note.key.clear());
        }
        self.0.note(scope, notes)
    }
    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> Future<'a, Option<Loaded>> {
        let at = if self.1 == "past" { None } else { at };
        self.0.load(scope, at)
    }
    fn history<'a>(&'a self, scope: &'a Scope, query: &'a HistoryQuery) -> Future<'a, Vec<Entry>> {
        Box::pin(async move {
            let mut all = self.0.history(scope, query).await?;
            if self.1 == "order" {
                all.reverse();
            }
            Ok(all)
        })
    }
}

type Future<'a, T> = futures::future::BoxFuture<'a, Result<T, Error>>;

// 80. The suite finds what it is there to find.
#[tokio::test]
async fn a_store_that_does_otherwise_is_found_out() {
    let ways = [
        "leases", "epochs", "notes", "deltas", "parents", "users", "heads", "keys", "past", "order",
    ];
    for way in ways {
        let store: Store = Arc::new(Lossy(MemoryStore::shared(), way));
        let mut found = false;
        for rule in conformance::RULES {
            found = found || rule.check(&store).await.is_err();
        }
        assert!(found, "nobody notices lost {way}");
    }
}

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    turn: u32,
    #[reduce(append)]
    log: Vec<String>,
}

fn log(line: impl Into<String>) -> Update<Case> {
    Case::update().log([line.into()])
}

async fn step(_: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    Ok(log(ctx.node()))
}

// 6.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_threads_run_at_the_same_time_and_do_not_mix() {
    let graph = Graph::<Case>::new("g")
        .node("a", async |c: &Case, ctx: &Ctx| {
            tokio::task::yield_now().await;
            Ok(log(format!("{} {}", ctx.thread(), c.turn)))
        })
        .start("a")
        .end("a")
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    let running: Vec<_> = (0..100)
        .map(|i| {
            let thread = graph.thread(&store, format!("t{i}"));
            tokio::spawn(async move {
                for turn in 0..3 {
                    thread.run(Case::update().turn(turn)).await?;
                }
                Ok::<_, Error>(thread.snapshot(None).await?.unwrap().state)
            })
        })
        .collect();
    for (i, running) in running.into_iter().enumerate() {
        let state = running.await.unwrap().unwrap();
        let expected: Vec<_> = (0..3).map(|turn| format!("t{i} {turn}")).collect();
        assert_eq!((state.turn, &state.log), (2, &expected));
    }
}

/// A step, a fan-out with a durable step, a subgraph, an end: every kind of write.
fn rich(work: &Arc<AtomicU32>) -> Graph<Case> {
    let inner = Graph::<Case>::new("inner")
        .node("i1", step)
        .node("i2", step)
        .start("i1")
        .edge("i1", "i2")
        .end("i2")
        .build()
        .unwrap();
    Graph::<Case>::new("rich")
        .node("a", step)
        .node(
            "memo",
            with(
                work.clone(),
                async |work: &Arc<AtomicU32>, _: &Case, ctx: &Ctx| {
                    let n = ctx
                        .step("work", async { Ok(work.fetch_add(1, Ordering::SeqCst)) })
                        .await?;
                    Ok(log(format!("memo {}", if n < 1000 { "done" } else { "" })))
                },
            ),
        )
        .node("sub", inner.shared())
        .node("end", step)
        .start("a")
        .edge("a", ["memo", "sub"])
        .join(["memo", "sub"], "end")
        .end("end")
        .build()
        .unwrap()
}

const RICH: [&str; 5] = ["a", "memo done", "i1", "i2", "end"];

// 4.
#[tokio::test]
async fn every_error_of_the_store_ends_the_run_in_every_durability_and_the_thread_goes_on() {
    for durability in ALL {
        for calls in [Calls::Puts, Calls::Notes, Calls::Loads] {
            for fault in [Fault::Fails, Fault::FailsAfter] {
                let mut at = 0;
                loop {
                    let what = format!("{durability:?}, {fault:?} at {at} of {calls:?}");
                    let store = MemoryStore::shared();
                    let faulty = Faulty::over(&store, calls, at, fault);
                    let graph = rich(&Arc::default());
                    let broken = graph.thread(&(faulty.clone() as Store), "t");
                    let ran = broken.run(Case::update()).durability(durability).await;
                    if faulty.count() <= at {
                        assert_eq!(ran.unwrap().done().unwrap().log, RICH, "{what}");
                        break;
                    }
                    let error = ran.expect_err(&what);
                    assert_eq!(error.to_string(), "store: the store is broken", "{what}");
                    // The same thread, the same store, which is whole again.
                    assert_eq!(finish(&broken, durability).await.log, RICH, "{what}");
                    at += 1;
                }
                let expected = match (durability, calls) {
                    (Durability::Exit, Calls::Puts) => 1,
                    (Durability::Exit, Calls::Notes) => 0,
                    (_, Calls::Loads) => 2,
                    _ => 3,
                };
                assert!(at >= expected, "{durability:?} {calls:?} {at}");
            }
        }
    }
}

/// Brings a thread to its end, from wherever it is.
async fn finish(thread: &Thread<Case>, durability: Durability) -> Case {
    let run = match thread.snapshot(None).await.unwrap() {
        None => thread.run(Case::update()),
        Some(snapshot) if snapshot.finished => return (*snapshot.state).clone(),
        Some(_) => thread.resume(),
    };
    run.durability(durability).await.unwrap().done().unwrap()
}

// 4.
#[tokio::test]
async fn errors_of_the_store_surface_from_reading_and_writing_too() {
    let store = MemoryStore::shared();
    let graph = rich(&Arc::default());
    graph.thread(&store, "t").run(Case::update()).await.unwrap();
    let with =
        |calls, at, fault| graph.thread(&(Faulty::over(&store, calls, at, fault) as Store), "t");
    let on = |calls, at| with(calls, at, Fault::Fails);
    let head = graph.thread(&store, "t").history().await.unwrap()[0].id;
    let errors = [
        on(Calls::Loads, 0).snapshot(None).await.err(),
        on(Calls::Loads, 0).update(log("x")).await.err(),
        on(Calls::Puts, 0).update(log("x")).await.err(),
        on(Calls::Puts, 0).update_as("a", log("x")).await.err(),
        on(Calls::Puts, 0).fork(head).await.err(),
        on(Calls::Loads, 1).fork(head).await.err(),
        on(Calls::Loads, 0).resume().await.err(),
        with(Calls::Writes, 0, Fault::Dies)
            .update(log("x"))
            .await
            .err(),
    ];
    for (i, error) in errors.into_iter().enumerate() {
        assert!(matches!(error, Some(Error::Store(_))), "{i}: {error:?}");
    }
    assert_eq!(
        graph.thread(&store, "t").history().await.unwrap()[0].id,
        head
    );
    // The store did it and could not say so: the caller is told of an error all the same.
    let unsaid = with(Calls::Writes, 0, Fault::DiesAfter)
        .update(log("x"))
        .await;
    assert!(matches!(unsaid, Err(Error::Store(_))), "{unsaid:?}");
    assert_ne!(
        graph.thread(&store, "t").history().await.unwrap()[0].id,
        head
    );
}

// 4. A node that swallows the error of its step does not save the run from it.
#[tokio::test]
async fn an_error_of_the_store_that_a_node_swallows_is_still_told() {
    let graph = Graph::<Case>::new("g")
        .node("a", async |_: &Case, ctx: &Ctx| {
            let lost = ctx.step("s", async { Ok(1) }).await.is_err();
            Ok(log(format!("lost: {lost}")))
        })
        .start("a")
        .end("a")
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    let thread = graph.thread(
        &(Faulty::over(&store, Calls::Notes, 0, Fault::Fails) as Store),
        "t",
    );
    let state = thread.run(Case::update()).await.unwrap().done().unwrap();
    // In step with the store the node was told, and what it made of that is saved.
    assert_eq!(state.log, ["lost: true"]);
    let thread = graph.thread(
        &(Faulty::over(&store, Calls::Puts, 0, Fault::Fails) as Store),
        "u",
    );
    let error = thread
        .run(Case::update())
        .durability(Durability::Async)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "store: the store is broken");
}

/// Two drivers that both believe to have the thread: the second takes it from the first.
struct Stolen(Store, AtomicU32);

impl Checkpoints for Stolen {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> Future<'a, Lease> {
        // A lease that has run out is given to another while the first holder still lives.
        Box::pin(async move {
            let lease = self.0.lease(thread, claim).await?;
            Ok(Lease {
                epoch: lease.epoch,
                wish: None,
                guard: None,
            })
        })
    }
    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> Future<'a, ()> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.put(scope, put)
    }
    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> Future<'a, ()> {
        self.0.note(scope, notes)
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

// §4 no. 13: two workers on one thread; the one whose lease was taken over can write nothing more.
#[tokio::test]
async fn a_driver_whose_lease_was_taken_over_ends_with_a_conflict_and_overwrites_nothing() {
    for durability in ALL {
        let gate = Arc::new((tokio::sync::Notify::new(), tokio::sync::Notify::new()));
        let graph = Graph::<Case>::new("g")
            .node(
                "a",
                with(
                    gate.clone(),
                    async |gate: &Arc<(tokio::sync::Notify, tokio::sync::Notify)>,
                           c: &Case,
                           _: &Ctx| {
                        if c.turn == 1 {
                            gate.0.notify_one();
                            gate.1.notified().await;
                        }
                        Ok(log(format!("turn {}", c.turn)))
                    },
                ),
            )
            .node("b", step)
            .start("a")
            .edge("a", "b")
            .end("b")
            .build()
            .unwrap();
        let store: Store = Arc::new(Stolen(MemoryStore::shared(), AtomicU32::new(0)));
        let first = graph
            .thread(&store, "t")
            .run(Case::update().turn(1))
            .durability(durability);
        let first = tokio::spawn(first.into_future());
        gate.0.notified().await;
        let second = graph
            .thread(&store, "t")
            .run(Case::update().turn(2))
            .durability(durability);
        let second = second.await.unwrap().done().unwrap();
        assert_eq!(second.log, ["turn 2", "b"]);
        gate.1.notify_one();
        let error = first.await.unwrap().unwrap_err();
        assert!(
            matches!(error, Error::Conflict { .. }),
            "{durability:?}: {error}"
        );
        let state = graph
            .thread(&store, "t")
            .snapshot(None)
            .await
            .unwrap()
            .unwrap()
            .state;
        assert_eq!((state.turn, &state.log), (2, &second.log));
    }
}

// 42, 4: the two writes of an edit inside a subgraph may be cut apart; the question is then asked again.
#[tokio::test]
async fn a_cut_write_to_a_subgraph_loses_no_question() {
    let inner = Graph::<Case>::new("inner")
        .node("ask", async |_: &Case, ctx: &Ctx| {
            Ok(log(ctx.interrupt::<String>("q", "?")?))
        })
        .start("ask")
        .end("ask")
        .build()
        .unwrap();
    let graph = Graph::<Case>::new("outer")
        .node("sub", inner.shared())
        .start("sub")
        .end("sub")
        .build()
        .unwrap();
    for at in 0..2 {
        let store = MemoryStore::shared();
        let thread = graph.thread(&store, "t");
        let paused = thread.run(Case::update()).await.unwrap();
        let question = paused.interrupts()[0].clone();
        let broken = Faulty::over(&store, Calls::Writes, at, Fault::Fails);
        let broken = graph.thread(&(broken as Store), "t");
        let as_ask = Some("ask".to_owned());
        let update = serde_json::json!({"log": ["by hand"]});
        let write = broken.update_subgraph(&question.namespace, update, as_ask);
        assert!(matches!(write.await, Err(Error::Store(_))));
        let again = thread.resume().await.unwrap();
        assert_eq!(again.interrupts(), std::slice::from_ref(&question));
        let done = thread.answer(&question.id, "yes").await.unwrap();
        assert_eq!(done.done().unwrap().log, ["yes"]);
    }
}
