//! Properties of whole runs over random graphs: finish order, cuts and storage change nothing.

#![allow(clippy::unwrap_used, reason = "what cannot be set up fails the test")]

use paraph_graph::*;
use proptest::prelude::*;
use std::sync::Arc;

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Log {
    #[reduce(append)]
    seen: Vec<String>,
    rounds: u32,
}

/// How often each node gives way before it writes: another table, another finish order.
type Delays = Arc<Vec<usize>>;

async fn write(delays: &Delays, log: &Log, ctx: &Ctx) -> Result<Update<Log>> {
    let n: usize = ctx.node()[1..].parse()?;
    for _ in 0..delays[n % delays.len()] {
        tokio::task::yield_now().await;
    }
    Ok(Log::update().seen([format!("{} of {}", ctx.node(), log.seen.len())]))
}

async fn gate(log: &Log, _: &Ctx) -> Result<Update<Log>> {
    Ok(Log::update().rounds(log.rounds + 1))
}

/// What leads to each node after the first: plain edges, or a join.
#[derive(Clone, Debug)]
enum Leads {
    Edges(Vec<usize>),
    Join(Vec<usize>),
}

fn shapes() -> impl Strategy<Value = Vec<Leads>> {
    let node = |i: usize| {
        let from = prop::collection::btree_set(0..i, 1..=i.min(3));
        (from, any::<bool>()).prop_map(|(from, join)| {
            let from: Vec<_> = from.into_iter().collect();
            if join && from.len() > 1 {
                Leads::Join(from)
            } else {
                Leads::Edges(from)
            }
        })
    };
    (2..7usize).prop_flat_map(move |n| (1..n).map(node).collect::<Vec<_>>())
}

fn name(i: usize) -> Name {
    format!("n{i}").into()
}

/// The nodes, all of them into a deferred gate that goes round twice.
fn graph(shape: &[Leads], delays: Vec<usize>) -> Graph<Log> {
    let delays = Arc::new(delays);
    let mut builder = Graph::<Log>::new("random");
    for i in 0..=shape.len() {
        builder = builder.node(name(i), with(delays.clone(), write));
    }
    for (i, into) in shape.iter().enumerate() {
        match into {
            Leads::Edges(from) => {
                for j in from {
                    builder = builder.edge(name(*j), name(i + 1));
                }
            }
            Leads::Join(from) => {
                let from: Vec<Name> = from.iter().map(|j| name(*j)).collect();
                builder = builder.join(from, name(i + 1));
            }
        }
    }
    for i in 0..=shape.len() {
        builder = builder.edge(name(i), "gate");
    }
    builder
        .node("gate", gate)
        .start(vec![name(0)])
        .deferred("gate")
        .branch(
            "gate",
            |l| if l.rounds < 2 { "n0" } else { END },
            ["n0", END],
        )
        .build()
        .unwrap()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(work)
}

/// The final state, or the error in words: a join may well be dead.
async fn ended(start: Start<Log>) -> Result<Log, String> {
    let outcome = start.await.map_err(|e| e.to_string())?;
    outcome.done().map_err(|e| e.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_result_does_not_depend_on_who_finishes_first(
        shape in shapes(),
        one in prop::collection::vec(0..4usize, 7),
        other in prop::collection::vec(0..4usize, 7),
    ) {
        block_on(async {
            let first = ended(graph(&shape, one).run(Log::update())).await;
            let second = ended(graph(&shape, other).run(Log::update())).await;
            prop_assert_eq!(first, second);
            Ok(())
        })?;
    }

    #[test]
    fn a_run_cut_at_any_superstep_and_resumed_ends_as_the_uncut_one(
        shape in shapes(),
        cuts in prop::collection::vec(1..4u64, 0..12),
        durability in prop::sample::select(vec![Durability::Sync, Durability::Async, Durability::Exit]),
    ) {
        block_on(async {
            let uncut = ended(graph(&shape, vec![0]).run(Log::update())).await;
            let store = MemoryStore::shared();
            let mut ran = false;
            for limit in cuts {
                // Each piece is driven by a graph of its own, as after a restart.
                let thread = graph(&shape, vec![0]).thread(&store, "t");
                let start = if ran { thread.resume() } else { thread.run(Log::update()) };
                ran = true;
                match start.limit(limit).durability(durability).await {
                    Err(Error::RecursionLimit(n)) => prop_assert_eq!(n, limit),
                    other => {
                        let end = other.and_then(Outcome::done).map_err(|e| e.to_string());
                        prop_assert_eq!(end, uncut);
                        return Ok(());
                    }
                }
            }
            let thread = graph(&shape, vec![0]).thread(&store, "t");
            let last = if ran { thread.resume() } else { thread.run(Log::update()) };
            prop_assert_eq!(ended(last).await, uncut);
            Ok(())
        })?;
    }

    #[test]
    fn stopping_and_reloading_after_every_superstep_changes_nothing(shape in shapes()) {
        block_on(async {
            let uncut = ended(graph(&shape, vec![0]).run(Log::update())).await;
            let store = MemoryStore::shared();
            let mut start = graph(&shape, vec![0]).thread(&store, "t").run(Log::update());
            loop {
                match start.pause_after(["*"]).await {
                    Ok(Outcome::Stopped { why: StoppedBy::Breakpoint, .. }) => {}
                    other => {
                        let end = other.and_then(Outcome::done).map_err(|e| e.to_string());
                        prop_assert_eq!(end, uncut);
                        return Ok(());
                    }
                }
                start = graph(&shape, vec![0]).thread(&store, "t").resume();
            }
        })?;
    }
}

/// Replaces an item with the same number, else adds it.
fn upsert(all: &mut Vec<(u8, String)>, new: Vec<(u8, String)>) -> Change {
    let from = all.len();
    let mut at = Vec::new();
    for (key, text) in new {
        match all.iter().position(|(k, _)| *k == key) {
            Some(i) => {
                all[i].1 = text;
                if i < from && !at.contains(&i) {
                    at.push(i);
                }
            }
            None => all.push((key, text)),
        }
    }
    at.sort_unstable();
    Change::list(at, from)
}

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Lists {
    #[reduce(append)]
    log: Vec<String>,
    #[reduce(upsert)]
    keyed: Vec<(u8, String)>,
    #[reduce(max)]
    most: u32,
    last: String,
    #[reduce(append, ephemeral)]
    now: Vec<u8>,
}

/// One write: by key, to the log, and sometimes past the reducers.
#[derive(Clone, Debug)]
enum Op {
    Log(Vec<String>),
    Keyed(Vec<(u8, String)>),
    Replace(Vec<(u8, String)>),
    Most(u32),
    Last(String),
    Now(u8),
    Nothing,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let item = || (0..6u8, "[a-c]{0,3}");
    let op = prop_oneof![
        prop::collection::vec("[a-c]{0,3}", 0..4).prop_map(Op::Log),
        prop::collection::vec(item(), 0..4).prop_map(Op::Keyed),
        prop::collection::vec(item(), 0..3).prop_map(Op::Replace),
        (0..9u32).prop_map(Op::Most),
        ".{0,4}".prop_map(Op::Last),
        any::<u8>().prop_map(Op::Now),
        Just(Op::Nothing),
    ];
    prop::collection::vec(op, 1..24)
}

fn update(op: &Op) -> Update<Lists> {
    let update = Lists::update();
    match op.clone() {
        Op::Log(items) => update.log(items),
        Op::Keyed(items) => update.keyed(items),
        Op::Replace(items) => update.replace_keyed(items),
        Op::Most(n) => update.most(n),
        Op::Last(text) => update.last(text),
        Op::Now(n) => update.now([n]),
        Op::Nothing => update,
    }
}

async fn apply(ops: &Arc<Vec<Op>>, _: &Lists, ctx: &Ctx) -> Result<Update<Lists>> {
    Ok(update(&ops[usize::try_from(ctx.superstep())?]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_checkpoint_reads_back_as_the_state_it_was_saved_from(ops in ops()) {
        block_on(async {
            let ops = Arc::new(ops);
            let graph = Graph::<Lists>::new("lists")
                .node("apply", with(ops.clone(), apply))
                .start("apply")
                .edge("apply", "apply") // the limit ends it
                .build()
                .unwrap();
            let store = MemoryStore::shared();
            let thread = graph.thread(&store, "t");
            let mut stream = thread.run(Lists::update()).limit(ops.len() as u64).stream([Mode::Values]);
            let mut states = Vec::new();
            while let Some(event) = stream.next().await {
                if let EventData::Values { state } = event.data {
                    states.push(state.get::<Lists>().unwrap().clone());
                }
            }
            prop_assert!(matches!(stream.outcome().await, Err(Error::RecursionLimit(_))));
            let history = thread.history().await.unwrap();
            prop_assert_eq!(history.len(), states.len());
            for (entry, state) in history.iter().rev().zip(&states) {
                let read = thread.snapshot(Some(entry.id)).await.unwrap().unwrap();
                prop_assert_eq!(&*read.state, state);
            }
            Ok(())
        })?;
    }
}
