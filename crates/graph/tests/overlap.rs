//! Tasks at the same time: they really overlap, use both threads, never starve each other, and their
//! order of finishing changes nothing. And what a superstep must not cost: a copy of the state.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use futures::future::BoxFuture;
use paraph_graph::*;
use proptest::prelude::*;
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread::ThreadId,
    time::Duration,
};
use tokio::{sync::Barrier, time::Instant};

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Work {
    #[reduce(append)]
    log: Vec<String>,
    last: u32,
}

const SEND: Each<u64> = Each::new("send");

fn work() -> Builder<Work> {
    Graph::<Work>::new("work")
}

async fn log(_: &Work, ctx: &Ctx) -> Result<Update<Work>> {
    Ok(Work::update().log([ctx.node().to_owned()]))
}

async fn meet(barrier: &Arc<Barrier>, n: u64, _: &Work, _: &Ctx) -> Result<Update<Work>> {
    // Passes only when all of them are here at once.
    barrier.wait().await;
    Ok(Work::update().log([n.to_string()]))
}

fn meeting(people: usize) -> Graph<Work> {
    let barrier = Arc::new(Barrier::new(people));
    work()
        .each(SEND, with(barrier, meet))
        .start_branch(move |_| SEND.send_all(0..people as u64), SEND)
        .end(SEND)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_hundred_tasks_of_one_superstep_are_all_under_way_at_once() {
    let state = meeting(100).invoke(Work::update()).await.unwrap();
    let expected: Vec<_> = (0..100).map(|n| n.to_string()).collect();
    assert_eq!(state.log, expected);
    let thread = meeting(100).thread(&MemoryStore::shared(), "t");
    let state = thread.run(Work::update()).await.unwrap().done().unwrap();
    assert_eq!(state.log, expected);
}

#[tokio::test]
async fn tasks_of_sibling_subgraphs_overlap_too() {
    let barrier = Arc::new(Barrier::new(2));
    async fn meet(barrier: &Arc<Barrier>, _: &Work, ctx: &Ctx) -> Result<Update<Work>> {
        barrier.wait().await;
        Ok(Work::update().log([ctx.node().to_owned()]))
    }
    let sub = |name: &'static str| {
        let graph = work().node(name, with(barrier.clone(), meet));
        graph.start(name).end(name).build().unwrap().shared()
    };
    let graph = work()
        .node("left", sub("in left"))
        .node("right", sub("in right"))
        .start(["left", "right"])
        .end(["left", "right"])
        .build()
        .unwrap();
    let state = graph.invoke(Work::update()).await.unwrap();
    assert_eq!(state.log, ["in left", "in right"]);
}

#[tokio::test(start_paused = true)]
async fn ten_nodes_that_wait_take_as_long_as_one() {
    async fn wait(_: &Work, ctx: &Ctx) -> Result<Update<Work>> {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(Work::update().log([ctx.node().to_owned()]))
    }
    let names = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let graph = names.into_iter().fold(work(), |g, n| g.node(n, wait));
    let graph = graph.start(names).end(names).build().unwrap();
    let before = Instant::now();
    let state = graph.invoke(Work::update()).await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_millis(20));
    assert_eq!(state.log, names);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_siblings_that_never_await_run_on_two_threads_at_once() {
    struct Both {
        barrier: std::sync::Barrier,
        threads: Mutex<HashSet<ThreadId>>,
    }
    async fn compute(both: &Arc<Both>, _: &Work, ctx: &Ctx) -> Result<Update<Work>> {
        // Blocks its thread until the other one is here: on one thread this would hang.
        both.barrier.wait();
        let this = std::thread::current().id();
        both.threads.lock().unwrap().insert(this);
        Ok(Work::update().log([ctx.node().to_owned()]))
    }
    let both = Arc::new(Both {
        barrier: std::sync::Barrier::new(2),
        threads: Mutex::default(),
    });
    let graph = work()
        .node("left", with(both.clone(), compute))
        .node("right", with(both.clone(), compute))
        .start(["left", "right"])
        .end(["left", "right"])
        .build()
        .unwrap();
    let state = graph.invoke(Work::update()).await.unwrap();
    assert_eq!(state.log, ["left", "right"]);
    assert_eq!(both.threads.lock().unwrap().len(), 2);
}

// 30.
#[derive(Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Gauge {
    async fn measure(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(10)).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Subgraphs in subgraphs, `width` at each level; only the leaves do work.
fn tree(gauge: &Arc<Gauge>, depth: u32, width: u64) -> Graph<Work> {
    async fn leaf(gauge: &Arc<Gauge>, _: u64, _: &Work, _: &Ctx) -> Result<Update<Work>> {
        gauge.measure().await;
        Ok(Work::update().log(["leaf".to_owned()]))
    }
    let graph = if depth == 0 {
        work().each(SEND, with(gauge.clone(), leaf))
    } else {
        let inner = tree(gauge, depth - 1, width);
        work().each(
            SEND,
            inner.mapped_each(
                |_: u64, _: &Work| Work::update(),
                |w: Work| Work::update().log(w.log),
            ),
        )
    };
    graph
        .start_branch(move |_| SEND.send_all(0..width), SEND)
        .end(SEND)
        .build()
        .unwrap()
}

// 30.
#[tokio::test(start_paused = true)]
async fn one_permit_is_enough_for_subgraphs_in_subgraphs() {
    for permits in [1, 2] {
        let gauge = Arc::new(Gauge::default());
        let graph = tree(&gauge, 2, 3);
        let run = graph.run(Work::update()).max_concurrency(permits);
        let state = run.await.unwrap().done().unwrap();
        assert_eq!(state.log, vec!["leaf"; 27]);
        assert_eq!(gauge.most.load(Ordering::SeqCst), permits);
    }
}

struct Caller {
    gauge: Arc<Gauge>,
    inner: Graph<Work>,
}

async fn call(caller: &Caller, n: u64, _: &Work, ctx: &Ctx) -> Result<Update<Work>> {
    caller.gauge.measure().await;
    let inner = ctx.call("inner", &caller.inner, Work::update()).await?;
    caller.gauge.measure().await;
    Ok(Work::update().log([format!("{n} called {}", inner.log.len())]))
}

// 30.
#[tokio::test(start_paused = true)]
async fn one_permit_is_enough_for_tasks_that_call_graphs_themselves() {
    for permits in [1, 2, 5] {
        let gauge = Arc::new(Gauge::default());
        let caller = Caller {
            inner: tree(&gauge, 1, 2),
            gauge: gauge.clone(),
        };
        let graph = work()
            .each(SEND, with(caller, call))
            .start_branch(|_| SEND.send_all(0..4), SEND)
            .end(SEND)
            .build()
            .unwrap();
        let run = graph.run(Work::update()).max_concurrency(permits);
        let state = run.await.unwrap().done().unwrap();
        assert_eq!(
            state.log,
            ["0 called 4", "1 called 4", "2 called 4", "3 called 4"]
        );
        // Also while a graph is called, no more tasks work than there are permits.
        assert_eq!(gauge.most.load(Ordering::SeqCst), permits);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_in_which_tasks_finish_changes_nothing(
        waits in proptest::collection::vec(0_u64..50, 1..12),
        stored in any::<bool>(),
    ) {
        async fn wait(waits: &Arc<[u64]>, n: u64, _: &Work, _: &Ctx) -> Result<Update<Work>> {
            tokio::time::sleep(Duration::from_millis(waits[n as usize])).await;
            Ok(Work::update().log([n.to_string()]))
        }
        async fn wait_twice(waits: &Arc<[u64]>, _: &Work, ctx: &Ctx) -> Result<Update<Work>> {
            tokio::time::sleep(Duration::from_millis(waits[0] * 2)).await;
            Ok(Work::update().log([ctx.node().to_owned()]).last(7))
        }
        let count = waits.len() as u64;
        let waits: Arc<[u64]> = waits.into();
        let graph = work()
            .node("z", with(waits.clone(), wait_twice))
            .each(SEND, with(waits, wait))
            .node("a", log)
            .node("end", log)
            .start_branch(move |_| {
                let mut all = SEND.send_all(0..count);
                all.extend(["a".into(), "z".into()]);
                all
            }, ["z", "a", SEND.name()])
            .join([Name::from("z"), "a".into(), SEND.into()], "end")
            .end("end")
            .build()
            .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let state = runtime.block_on(async {
            let store = MemoryStore::shared();
            let run = if stored {
                graph.thread(&store, "t").run(Work::update())
            } else {
                graph.run(Work::update())
            };
            run.await.unwrap().done().unwrap()
        });
        let mut expected = vec!["z".to_owned(), "a".to_owned()];
        expected.extend((0..count).map(|n| n.to_string()));
        expected.push("end".to_owned());
        prop_assert_eq!(state, Work { log: expected, last: 7 });
    }
}

static CLONES: AtomicUsize = AtomicUsize::new(0);

/// A state that counts how often it is copied.
#[derive(State, Default)]
struct Heavy {
    rounds: u32,
    #[reduce(append)]
    log: Vec<u32>,
}

impl Clone for Heavy {
    fn clone(&self) -> Self {
        CLONES.fetch_add(1, Ordering::SeqCst);
        Heavy {
            rounds: self.rounds,
            log: self.log.clone(),
        }
    }
}

// DESIGN §2.1.
#[tokio::test]
async fn no_superstep_copies_the_state() {
    async fn count(h: &Heavy, _: &Ctx) -> Result<Update<Heavy>> {
        Ok(Heavy::update().rounds(h.rounds + 1).log([h.rounds]))
    }
    async fn side(h: &Heavy, _: &Ctx) -> Result<Update<Heavy>> {
        tokio::task::yield_now().await;
        Ok(Heavy::update().log([h.rounds]))
    }
    async fn item(n: u64, _: &Heavy, _: &Ctx) -> Result<Update<Heavy>> {
        Ok(Heavy::update().log([n as u32]))
    }
    let graph = Graph::<Heavy>::new("heavy")
        .node("count", count)
        .node("side", side)
        .each(SEND, item)
        .node("alone", async |_: &Heavy, _: &Ctx| Ok(Heavy::update()))
        .start(["count", "side"])
        .end("side")
        .branch("count", |_| SEND.send_all(0..3), SEND)
        .edge(SEND, "alone")
        .branch(
            "alone",
            |h| {
                if h.rounds < 50 {
                    vec!["count", "side"]
                } else {
                    vec![END]
                }
            },
            ["count", "side", END],
        )
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    let modes = [Mode::Updates, Mode::Tasks, Mode::Custom];
    let run = Heavy::update;
    let runs: [(&str, Stream<Heavy>); 5] = [
        ("plain", graph.run(run()).stream([])),
        ("told", graph.run(run()).stream(modes)),
        (
            "sync",
            graph.thread(&store, "sync").run(run()).stream(modes),
        ),
        (
            "async",
            graph
                .thread(&store, "async")
                .run(run())
                .durability(Durability::Async)
                .stream(modes),
        ),
        (
            "exit",
            graph
                .thread(&store, "exit")
                .run(run())
                .durability(Durability::Exit)
                .stream([]),
        ),
    ];
    for (name, run) in runs {
        let before = CLONES.load(Ordering::SeqCst);
        let state = run.outcome().await.unwrap().done().unwrap();
        assert_eq!((state.rounds, state.log.len()), (50, 250), "{name}");
        assert_eq!(CLONES.load(Ordering::SeqCst) - before, 0, "{name}");
    }

    // A second run on a thread reads the state once and does not copy it either.
    let before = CLONES.load(Ordering::SeqCst);
    let again = graph.thread(&store, "sync").run(run().rounds(0));
    again.await.unwrap().done().unwrap();
    assert_eq!(CLONES.load(Ordering::SeqCst) - before, 0);
}

/// A store that takes a second for each note.
struct Slow(MemoryStore);

impl Checkpoints for Slow {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> BoxFuture<'a, Result<Lease, Error>> {
        self.0.lease(thread, claim)
    }
    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> BoxFuture<'a, Result<(), Error>> {
        self.0.put(scope, put)
    }
    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.0.note(scope, notes).await
        })
    }
    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, Error>> {
        self.0.load(scope, at)
    }
    fn history<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>> {
        self.0.history(scope, query)
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_its_step_to_be_saved_is_not_held_up_by_a_sibling_that_ends() {
    let stepping = async |_: &Work, ctx: &Ctx| {
        ctx.step("one", async { Ok(1) }).await?;
        ctx.step("two", async { Ok(2) }).await?;
        Ok(Work::update().log(["stepping".to_owned()]))
    };
    let graph = work()
        .node("stepping", stepping)
        .node("sibling", log)
        .start(["stepping", "sibling"])
        .end(["stepping", "sibling"])
        .build()
        .unwrap();
    let store: Store = Arc::new(Slow(MemoryStore::default()));
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let run = graph
            .thread(&store, format!("{durability:?}"))
            .run(Work::update())
            .durability(durability);
        // Nobody waits for an hour: the paused clock gets there only if nothing else can happen.
        let ended = tokio::time::timeout(Duration::from_secs(3600), run).await;
        let work = ended
            .expect("the run stands still")
            .unwrap()
            .done()
            .unwrap();
        assert_eq!(work.log, ["stepping", "sibling"], "{durability:?}");
    }
}

// More steps at once than may wait for the saver, beside a sibling that is settled meanwhile.
#[tokio::test(start_paused = true)]
async fn a_hundred_steps_of_one_task_are_saved_behind_the_run_at_the_same_time() {
    let stepping = async |_: &Work, ctx: &Ctx| {
        let names: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let steps = names.iter().map(|n| ctx.step(n, async { Ok(1) }));
        let done = futures::future::try_join_all(steps).await?;
        Ok(Work::update().log([format!("{} steps", done.len())]))
    };
    let graph = work()
        .node("stepping", stepping)
        .node("sibling", log)
        .start(["stepping", "sibling"])
        .end(["stepping", "sibling"])
        .build()
        .unwrap();
    let store: Store = Arc::new(Slow(MemoryStore::default()));
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let run = graph
            .thread(&store, format!("{durability:?}"))
            .run(Work::update())
            .durability(durability);
        let ended = tokio::time::timeout(Duration::from_secs(3600), run).await;
        let work = ended
            .expect("the run stands still")
            .unwrap()
            .done()
            .unwrap();
        assert_eq!(work.log, ["100 steps", "sibling"], "{durability:?}");
    }
}
