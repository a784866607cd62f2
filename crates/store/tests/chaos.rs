//! Runs on a Postgres that is restarted under them again and again: they end as if nothing had happened.
//!
//! Thirty runs and a few restarts; `PARAPH_CHAOS_RUNS=500` is the long form, with a restart every 5 to 20 seconds and
//! the server down for up to 5. `PARAPH_CHAOS_SEED` repeats the pauses of an earlier run, which are printed.
#![cfg(feature = "postgres")]
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod cluster;

use cluster::{Cluster, Stop};
use paraph_graph::*;
use paraph_store::{Options, Postgres};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::watch;

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    name: String,
    #[reduce(append)]
    log: Vec<String>,
    #[reduce(add)]
    sum: u64,
    round: u64,
    rounds: u64,
}

/// The world outside: under which keys it was told to do what, and how often.
#[derive(Clone, Default)]
struct World {
    effects: Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>,
    told: Arc<AtomicU32>,
}

impl World {
    fn tell(&self, what: String, key: String) -> u64 {
        self.told.fetch_add(1, Ordering::Relaxed);
        let mut effects = self.effects.lock().unwrap();
        effects.entry(what).or_default().insert(key);
        1
    }
}

/// Runs wait here for their next rounds, so that they are in the middle of something at each restart.
struct Gate {
    open: watch::Sender<u64>,
    waiting: watch::Sender<u64>,
}

#[derive(Clone)]
struct Around {
    world: World,
    gate: Arc<Gate>,
}

impl Around {
    fn new(open: u64) -> Around {
        Around {
            world: World::default(),
            gate: Arc::new(Gate {
                open: watch::channel(open).0,
                waiting: watch::channel(0).0,
            }),
        }
    }
}

/// Rounds between two restarts.
const ROUNDS: u64 = 4;

const ITEM: Each<u64> = Each::new("item");

async fn plan(around: &Around, c: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    let stage = c.round / ROUNDS;
    if c.round.is_multiple_of(ROUNDS) {
        around.gate.waiting.send_modify(|waiting| *waiting += 1);
        let mut open = around.gate.open.subscribe();
        open.wait_for(|open| *open > stage).await?;
    }
    let (world, what, key) = (
        around.world.clone(),
        format!("{} plan {}", c.name, c.round),
        ctx.key("plan"),
    );
    let n: u64 = ctx
        .step("plan", async move { Ok(world.tell(what, key)) })
        .await?;
    Ok(Case::update().log([format!("plan {}", c.round)]).sum(n))
}

async fn item(around: &Around, n: u64, c: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    let (world, what, key) = (
        around.world.clone(),
        format!("{} item {n} of {}", c.name, c.round),
        ctx.key("item"),
    );
    let one: u64 = ctx
        .step("item", async move { Ok(world.tell(what, key)) })
        .await?;
    Ok(Case::update()
        .log([format!("item {n} of {}", c.round)])
        .sum(one))
}

/// Rounds of: a plan, three items side by side, and an end.
fn graph(around: &Around) -> Graph<Case> {
    Graph::<Case>::new("rounds")
        .node("plan", with(around.clone(), plan))
        .each(ITEM, with(around.clone(), item))
        .node("close", async |c: &Case, _: &Ctx| {
            Ok(Case::update().round(c.round + 1))
        })
        .start("plan")
        .branch("plan", |_| ITEM.send_all(0..3), ITEM)
        .join(ITEM, "close")
        .branch(
            "close",
            |c: &Case| if c.round < c.rounds { "plan" } else { END },
            ["plan", END],
        )
        .build()
        .unwrap()
}

/// A point of a history as far as two runs that went alike have it in common.
type Line = (Source, i64, Vec<Name>, Case);

fn line(at: &Snapshot<Case>) -> Line {
    let metadata = &at.metadata;
    (
        metadata.source,
        metadata.superstep,
        at.next.clone(),
        (*at.state).clone(),
    )
}

/// Oldest first.
async fn history(thread: &Thread<Case>) -> Vec<Line> {
    let mut all = Vec::new();
    for entry in thread.history().await.unwrap().into_iter().rev() {
        all.push(line(
            &thread.snapshot(Some(entry.id)).await.unwrap().unwrap(),
        ));
    }
    all
}

/// Checks a thread against the undisturbed one: its history, the state at its end, and with `throughout` also the state
/// at each point before.
async fn went_alike(
    thread: &Thread<Case>,
    undisturbed: &Thread<Case>,
    wanted: &[Line],
    throughout: bool,
) {
    let lines = async |thread: &Thread<Case>| -> Vec<(Source, i64)> {
        let line = |e: Entry| (e.metadata.source, e.metadata.superstep);
        let entries = thread.history().await.unwrap();
        entries.into_iter().map(line).collect()
    };
    let name = thread.name();
    assert_eq!(lines(thread).await, lines(undisturbed).await, "{name}");
    let mut found = match throughout {
        true => history(thread).await,
        false => vec![line(&thread.snapshot(None).await.unwrap().unwrap())],
    };
    for state in found.iter_mut().map(|entry| &mut entry.3) {
        if state.name == name {
            state.name = undisturbed.name().to_owned();
        }
    }
    assert_eq!(found, wanted[wanted.len() - found.len()..], "{name}");
}

/// Starts a run and sees it through; how often it had to be resumed.
async fn see_through(thread: &Thread<Case>, input: Update<Case>) -> u32 {
    let mut resumed = 0;
    let mut run = thread.run(input).await;
    loop {
        match run {
            Ok(outcome) => {
                outcome.done().unwrap();
                return resumed;
            }
            Err(Error::Store(_)) => {
                resumed += 1;
                run = thread.resume().await;
            }
            Err(e) => panic!("{e}"),
        }
    }
}

/// Pauses that can be had again.
struct Pauses(u64);

impl Pauses {
    fn next(&mut self, between: Range<u64>) -> Duration {
        // xorshift
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Duration::from_millis(between.start + self.0 % (between.end - between.start))
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_on_a_server_that_is_restarted_again_and_again_end_as_if_it_was_not() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let long = number("PARAPH_CHAOS_RUNS");
    let runs = long.unwrap_or(30);
    let (restarts, up, down) = match long {
        Some(_) => (12, 5000..20_000, 0..5000),
        None => (5, 1..150, 0..500),
    };
    let seed = number("PARAPH_CHAOS_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.unwrap().as_millis() as u64
    });
    println!("PARAPH_CHAOS_SEED={seed}");
    let mut pauses = Pauses(seed | 1);
    let rounds = ROUNDS * restarts;

    let undisturbed = Around::new(u64::MAX);
    let undisturbed_thread = graph(&undisturbed).thread(&MemoryStore::shared(), "t");
    let input = |name: &str| Case::update().name(name).rounds(rounds);
    see_through(&undisturbed_thread, input("t")).await;
    let wanted = history(&undisturbed_thread).await;
    assert_eq!(
        undisturbed.world.effects.lock().unwrap().len() as u64,
        rounds * 4
    );

    let store = Postgres::connect(&cluster.url(), Options::default())
        .await
        .unwrap();
    let store: Store = Arc::new(store);
    let around = Around::new(0);
    let graph = graph(&around);
    let all: Vec<_> = (0..runs)
        .map(|n| {
            let name = format!("t{n}");
            let thread = graph.thread(&store, &*name);
            let input = input(&name);
            tokio::spawn(async move { see_through(&thread, input).await })
        })
        .collect();
    let began = Instant::now();
    for restart in 0..restarts {
        let mut waiting = around.gate.waiting.subscribe();
        waiting
            .wait_for(|waiting| *waiting >= runs * (restart + 1))
            .await
            .unwrap();
        around.gate.open.send_replace(restart + 1);
        tokio::time::sleep(pauses.next(up.clone())).await;
        let how = [Stop::Abrupt, Stop::Orderly][restart as usize % 2];
        let pause = pauses.next(down.clone());
        tokio::task::block_in_place(|| cluster.restart(how, pause));
    }
    let mut resumed = 0;
    for run in all {
        resumed += run.await.unwrap();
    }
    let told = around.world.told.load(Ordering::Relaxed);
    println!(
        "{runs} runs, {restarts} restarts in {:?}: {resumed} times resumed, {told} effects for {}",
        began.elapsed(),
        runs * rounds * 4
    );
    for n in 0..runs {
        let thread = graph.thread(&store, format!("t{n}"));
        went_alike(&thread, &undisturbed_thread, &wanted, n % 10 == 0).await;
    }
    let effects = around.world.effects.lock().unwrap();
    assert_eq!(effects.len() as u64, runs * rounds * 4);
    let twice: Vec<_> = effects.iter().filter(|(_, keys)| keys.len() != 1).collect();
    assert!(twice.is_empty(), "under several keys: {twice:?}");
}
