//! A run with sends, commands, a subgraph over the same state and a deferred node, cut and failed at
//! random places: brought back often enough, it ends as the undisturbed one.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use proptest::prelude::*;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Job {
    parts: Vec<(u64, u64)>,
    #[reduce(append)]
    log: Vec<String>,
    #[reduce(add)]
    sum: u64,
    #[reduce(max)]
    most: u64,
    #[reduce(append, ephemeral)]
    topic: Vec<u64>,
    rounds: u32,
}

const STAGE: Each<(u64, u64)> = Each::new("stage");

/// Fails at the calls that the plan names, and takes its time.
struct Trouble {
    calls: AtomicUsize,
    fails_at: Vec<usize>,
    waits: Vec<u64>,
}

impl Trouble {
    async fn strike(&self) -> Result<()> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let wait = self.waits[call % self.waits.len()];
        tokio::time::sleep(Duration::from_millis(wait)).await;
        if self.fails_at.contains(&call) {
            return Err(NodeError::msg("trouble"));
        }
        Ok(())
    }
}

type Shared = Arc<Trouble>;

async fn stage(
    trouble: &Shared,
    (n, left): (u64, u64),
    _: &Job,
    ctx: &Ctx,
) -> Result<Command<Job>> {
    trouble.strike().await?;
    let seen = ctx.step("once", async { Ok(n) }).await?;
    trouble.strike().await?;
    let update = Job::update()
        .log([format!("{seen}/{left}")])
        .sum(n)
        .most(n)
        .topic([left]);
    let command = Command::update(update);
    Ok(match left {
        0 => command.and_goto(END),
        left => command
            .and_goto(STAGE.send((n, left - 1)))
            .and_goto("aside"),
    })
}

async fn write(trouble: &Shared, job: &Job, ctx: &Ctx) -> Result<Update<Job>> {
    trouble.strike().await?;
    let line = format!("{} saw {:?} of {}", ctx.node(), job.topic, job.sum);
    Ok(Job::update().log([line]).sum(1))
}

async fn close(trouble: &Shared, job: &Job, _: &Ctx) -> Result<Update<Job>> {
    trouble.strike().await?;
    Ok(Job::update()
        .rounds(job.rounds + 1)
        .log(["close".to_owned()]))
}

fn graph(trouble: &Shared) -> Graph<Job> {
    let inner = Graph::<Job>::new("inner")
        .node("one", with(trouble.clone(), write))
        .node("two", with(trouble.clone(), write))
        .start("one")
        .edge("one", "two")
        .end("two")
        .build()
        .unwrap();
    Graph::<Job>::new("job")
        .node("begin", with(trouble.clone(), write))
        .each(STAGE, with(trouble.clone(), stage))
        .node("inner", inner.shared())
        .node("aside", with(trouble.clone(), write))
        .node("close", with(trouble.clone(), close))
        .start("begin")
        .branch(
            "begin",
            |j| {
                let mut all = STAGE.send_all(j.parts.clone());
                all.extend(["inner".into(), "close".into()]);
                all
            },
            [STAGE.name(), "inner", "close"],
        )
        .commands(STAGE, [STAGE.name(), "aside", END])
        .end(["inner", "aside"])
        .deferred("close")
        .branch(
            "close",
            |j| if j.rounds < 2 { "begin" } else { END },
            ["begin", END],
        )
        .build()
        .unwrap()
}

#[derive(Clone, Debug)]
struct Plan {
    parts: Vec<(u64, u64)>,
    fails_at: Vec<usize>,
    waits: Vec<u64>,
    pauses: bool,
    durability: Durability,
}

fn plans() -> impl Strategy<Value = Plan> {
    let durability = prop_oneof![
        Just(Durability::Sync),
        Just(Durability::Async),
        Just(Durability::Exit)
    ];
    (
        prop::collection::vec((0_u64..50, 0_u64..3), 0..4),
        prop::collection::vec(0_usize..40, 0..5),
        prop::collection::vec(0_u64..20, 1..6),
        any::<bool>(),
        durability,
    )
        .prop_map(|(parts, fails_at, waits, pauses, durability)| Plan {
            parts,
            fails_at,
            waits,
            pauses,
            durability,
        })
}

/// How the run ends when it is brought back, each time from a graph built anew, until it is over.
async fn disturbed(plan: &Plan) -> Job {
    let store = MemoryStore::shared();
    let trouble = Arc::new(Trouble {
        calls: AtomicUsize::new(0),
        fails_at: plan.fails_at.clone(),
        waits: plan.waits.clone(),
    });
    let input = Job::update().parts(plan.parts.clone());
    let mut next = graph(&trouble).thread(&store, "t").run(input);
    loop {
        next = next.durability(plan.durability);
        if plan.pauses {
            next = next.pause_before("*");
        }
        match next.await {
            Ok(Outcome::Done(state)) => return state,
            Ok(Outcome::Stopped { .. }) => {}
            Err(Error::Node { source, .. }) if source.to_string() == "trouble" => {}
            other => panic!("{other:?}"),
        }
        next = graph(&trouble).thread(&store, "t").resume();
    }
}

/// How it ends when nothing happens.
async fn undisturbed(plan: &Plan) -> Job {
    let calm = Arc::new(Trouble {
        calls: AtomicUsize::new(0),
        fails_at: Vec::new(),
        waits: vec![0],
    });
    let input = Job::update().parts(plan.parts.clone());
    graph(&calm).invoke(input).await.unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    // 28, 44, 66.
    #[test]
    fn a_run_that_is_cut_and_fails_anywhere_ends_as_the_undisturbed_one(plan in plans()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (expected, state) = runtime.block_on(async {
            (undisturbed(&plan).await, disturbed(&plan).await)
        });
        prop_assert_eq!(state, expected);
    }
}

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Numbers {
    score: f64,
    #[reduce(append)]
    scores: Vec<f32>,
    tree: serde_json::Value,
    none: Option<Option<u8>>,
}

async fn put(update: &NumbersUpdate, _: &Numbers, _: &Ctx) -> Result<Update<Numbers>> {
    Ok(update.clone())
}

/// A graph in which a node writes `update`, alone or beside another.
fn writing(update: NumbersUpdate, alone: bool) -> Graph<Numbers> {
    let graph = Graph::<Numbers>::new("numbers").node("put", with(update, put));
    let graph = if alone {
        graph.start("put").end("put")
    } else {
        let other = async |_: &Numbers, _: &Ctx| Ok(Numbers::update().none(None));
        graph
            .node("other", other)
            .start(["put", "other"])
            .end(["put", "other"])
    };
    graph.build().unwrap()
}

fn tree(depth: usize) -> serde_json::Value {
    (0..depth).fold(1.into(), |inner, _| vec![inner].into())
}

#[tokio::test]
async fn what_could_not_be_read_back_is_not_saved_and_the_thread_stays_readable() {
    let null = "invalid type: null, expected";
    let table = [
        (
            Numbers::update().score(f64::NAN),
            format!("channel `score`: {null} f64"),
        ),
        (
            Numbers::update().scores([1.0, f32::INFINITY]),
            format!("channel `scores`: {null} f32"),
        ),
        (
            Numbers::update().tree(tree(130)),
            "nested deeper than 120 levels".to_owned(),
        ),
    ];
    for (update, expected) in table {
        for alone in [true, false] {
            let store = MemoryStore::shared();
            let thread = writing(update.clone(), alone).thread(&store, "t");
            let input = Numbers::update().score(0.5);
            let error = thread.run(input).await.unwrap_err().to_string();
            assert!(error.contains(&expected), "{error}, not {expected}");
            let saved = thread.snapshot(None).await.unwrap().unwrap();
            assert_eq!((saved.state.score, saved.finished), (0.5, false));
            // A mended graph goes on from there.
            let mended = writing(Numbers::update().score(0.75), alone);
            let run = mended.thread(&store, "t").resume();
            assert_eq!(run.await.unwrap().done().unwrap().score, 0.75);
        }
    }
}

#[tokio::test]
async fn nulls_that_are_values_and_deep_trees_within_the_bound_are_saved() {
    for alone in [true, false] {
        let update = Numbers::update().tree(tree(110)).none(None);
        let update = if alone {
            update
        } else {
            Numbers::update().tree(tree(110))
        };
        let thread = writing(update, alone).thread(&MemoryStore::shared(), "t");
        let state = thread.run(Numbers::update()).await.unwrap().done().unwrap();
        assert_eq!(state.tree, tree(110));
        let saved = thread.snapshot(None).await.unwrap().unwrap();
        assert_eq!(*saved.state, state);
    }
}
