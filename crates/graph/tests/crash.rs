//! Kills: a run is cut at every single write, in every durability, and ends as the uncut one.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod faulty;

use faulty::{Calls, Fault, Faulty};
use paraph_graph::*;
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    #[reduce(append)]
    log: Vec<String>,
    #[reduce(add)]
    sum: u32,
    last: String,
    rounds: u32,
}

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Inner {
    #[reduce(append)]
    words: Vec<String>,
}

/// How often each thing was done.
type Done = Arc<Mutex<BTreeMap<String, u32>>>;

fn did(done: &Done, what: impl Into<String>) {
    *done.lock().unwrap().entry(what.into()).or_default() += 1;
}

const ITEM: Each<u32> = Each::new("item");

async fn item(done: &Done, n: u32, case: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    let doubled = ctx
        .step("double", async {
            did(done, format!("step {n} in round {}", case.rounds));
            Ok(n * 2)
        })
        .await?;
    if n == 1 {
        let answer: String = ctx.interrupt("sure", format!("{n} in round {}?", case.rounds))?;
        return Ok(Case::update()
            .log([format!("item {doubled} {answer}")])
            .sum(doubled));
    }
    Ok(Case::update().log([format!("item {doubled}")]).sum(doubled))
}

fn inner() -> Graph<Inner> {
    Graph::<Inner>::new("inner")
        .node("one", async |i: &Inner, _: &Ctx| {
            Ok(Inner::update().words([format!("one {}", i.words.len())]))
        })
        .node("two", async |i: &Inner, ctx: &Ctx| {
            let answer: String = ctx.interrupt("word", "a word?")?;
            Ok(Inner::update().words([format!("{answer} {}", i.words.len())]))
        })
        .start("one")
        .edge("one", "two")
        .end("two")
        .build()
        .unwrap()
}

/// Two rounds of: a fan-out whose items step and ask, beside subgraphs (one persistent) that ask and a
/// node whose handler takes over; then a join that closes the round.
fn graph(done: &Done) -> Graph<Case> {
    let enter = |_: &Case| Inner::update();
    Graph::<Case>::new("all")
        .node("plan", async |c: &Case, _: &Ctx| {
            Ok(Case::update().log([format!("plan {}", c.rounds)]))
        })
        .each(ITEM, with(done.clone(), item))
        .node(
            "plain",
            inner().mapped(enter, |i: Inner| Case::update().log([i.words.join(",")])),
        )
        .node(
            "lasting",
            inner()
                .mapped(enter, |i: Inner| Case::update().last(i.words.join(",")))
                .persistent(),
        )
        .node("bad", async |_: &Case, _: &Ctx| {
            Err::<Update<Case>, _>(NodeError::msg("bad"))
        })
        .node("handler", async |_: &Case, ctx: &Ctx| {
            Ok(Case::update().log([format!("handled {}", ctx.failure().unwrap().message)]))
        })
        .node("close", async |c: &Case, _: &Ctx| {
            Ok(Case::update()
                .rounds(c.rounds + 1)
                .log([format!("close {}", c.rounds)]))
        })
        .policy(
            "bad",
            Policy {
                attempts: 2,
                backoff: std::time::Duration::ZERO,
                on_error: Some("handler".into()),
                ..Policy::default()
            },
        )
        .start("plan")
        .branch(
            "plan",
            |_| {
                let mut to = ITEM.send_all(0..3);
                to.append(&mut vec!["plain".into(), "lasting".into(), "bad".into()]);
                to
            },
            [
                Name::from("plain"),
                "lasting".into(),
                "bad".into(),
                ITEM.into(),
            ],
        )
        .end("bad")
        .join(
            [
                Name::from("plain"),
                "lasting".into(),
                "handler".into(),
                ITEM.into(),
            ],
            "close",
        )
        .branch(
            "close",
            |c: &Case| if c.rounds < 2 { "plan" } else { END },
            ["plan", END],
        )
        .build()
        .unwrap()
}

/// One attempt to bring the thread on: begins, answers or resumes, as the store says.
async fn once(thread: &Thread<Case>, durability: Durability) -> Result<Option<Case>, Error> {
    let run = match thread.snapshot(None).await? {
        None => thread.run(Case::update().log(["begin".to_owned()])),
        Some(snapshot) if snapshot.finished => return Ok(Some((*snapshot.state).clone())),
        Some(snapshot) if snapshot.interrupts.is_empty() => thread.resume(),
        // The newest question first, one at a time.
        Some(snapshot) => {
            let question = snapshot.interrupts.last().unwrap();
            let answer = format!("yes to {}", question.question);
            thread.answers([(question.id.clone(), json!(answer))])
        }
    };
    run.durability(durability).await.map(|_| None)
}

/// Goes on until the thread has finished; the store may be changed when an attempt fails.
async fn to_the_end(
    thread: &mut Thread<Case>,
    durability: Durability,
    mend: impl Fn() -> Thread<Case>,
) -> Case {
    for _ in 0..1000 {
        match once(thread, durability).await {
            Ok(Some(state)) => return state,
            Ok(None) => {}
            Err(Error::Store(_)) => *thread = mend(),
            Err(e) => panic!("{e}"),
        }
    }
    panic!("the thread does not end")
}

/// The state at every checkpoint, to compare histories by what they say.
async fn story(thread: &Thread<Case>) -> Vec<(Case, Vec<Name>)> {
    let mut all = Vec::new();
    for entry in thread.history().await.unwrap() {
        let snapshot = thread.snapshot(Some(entry.id)).await.unwrap().unwrap();
        all.push(((*snapshot.state).clone(), snapshot.next));
    }
    all
}

async fn killed_at_every_write(durability: Durability) {
    let uncut = Done::default();
    let store = MemoryStore::shared();
    let mut thread = graph(&uncut).thread(&store, "t");
    let expected = to_the_end(&mut thread, durability, || unreachable!()).await;
    assert_eq!(
        expected.log[..8],
        [
            "begin",
            "plan 0",
            "one 0,yes to \"a word?\" 1",
            "handled bad",
            "item 0",
            "item 2 yes to \"1 in round 0?\"",
            "item 4",
            "close 0",
        ]
    );
    assert_eq!(
        expected.last,
        "one 0,yes to \"a word?\" 1,one 2,yes to \"a word?\" 3"
    );
    let told = story(&thread).await;
    for fault in [Fault::Dies, Fault::DiesAfter] {
        let mut at = 0;
        loop {
            let done = Done::default();
            let store = MemoryStore::shared();
            let dying = Faulty::over(&store, Calls::Writes, at, fault);
            let mut thread = graph(&done).thread(&(dying.clone() as Store), "t");
            let mend = || graph(&done).thread(&store, "t");
            let state = to_the_end(&mut thread, durability, mend).await;
            let what = format!("{durability:?}, {fault:?} at {at}");
            assert_eq!(state, expected, "{what}");
            if durability != Durability::Exit {
                assert_eq!(story(&thread).await, told, "{what}");
            }
            if dying.count() <= at {
                assert_eq!(*done.lock().unwrap(), *uncut.lock().unwrap());
                break;
            }
            // At most what was between the work and its saving is done again.
            for (step, times) in done.lock().unwrap().iter() {
                assert!(*times <= 2, "{what}: {step} was done {times} times");
            }
            at += 1;
        }
        assert!(at > 10, "{durability:?} made {at} writes");
    }
}

// 4, 69, 80.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_killed_at_any_write_ends_as_the_uncut_one_with_sync() {
    killed_at_every_write(Durability::Sync).await;
}

// 4, 69, 80.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_killed_at_any_write_ends_as_the_uncut_one_with_async() {
    killed_at_every_write(Durability::Async).await;
}

// 4, 69, 80.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_killed_at_any_write_ends_as_the_uncut_one_with_exit() {
    killed_at_every_write(Durability::Exit).await;
}

// A store that fails once, here or there, and a process that lives on.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_once_at_any_write_costs_an_attempt_and_nothing_else() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let mut thread = graph(&Done::default()).thread(&MemoryStore::shared(), "t");
        let expected = to_the_end(&mut thread, durability, || unreachable!()).await;
        for fault in [Fault::Fails, Fault::FailsAfter] {
            let mut at = 0;
            loop {
                let done = Done::default();
                let store = MemoryStore::shared();
                let failing = Faulty::over(&store, Calls::Writes, at, fault);
                let mut thread = graph(&done).thread(&(failing.clone() as Store), "t");
                let mend = || graph(&done).thread(&(failing.clone() as Store), "t");
                let state = to_the_end(&mut thread, durability, mend).await;
                assert_eq!(state, expected, "{durability:?}, {fault:?} at {at}");
                if failing.count() <= at {
                    break;
                }
                at += 1;
            }
        }
    }
}

// A kill without a word: the runtime goes, with everything in it, at any of many points.
#[test]
fn a_run_whose_runtime_is_torn_down_at_any_point_ends_as_the_uncut_one() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let runtime = || {
            tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .unwrap()
        };
        let mut thread = graph(&Done::default()).thread(&MemoryStore::shared(), "t");
        let expected = runtime().block_on(to_the_end(&mut thread, durability, || unreachable!()));
        let mut cuts = 0;
        for polls in 1..60 {
            let store = MemoryStore::shared();
            let done = Done::default();
            let mut thread = graph(&done).thread(&store, "t");
            let cut = runtime();
            let ended = cut.block_on(async {
                let thread = graph(&done).thread(&store, "t");
                let running = tokio::spawn(async move {
                    while once(&thread, durability).await.unwrap().is_none() {}
                });
                for _ in 0..polls {
                    tokio::task::yield_now().await;
                }
                running.is_finished()
            });
            drop(cut);
            cuts += u32::from(!ended);
            let state = runtime().block_on(to_the_end(&mut thread, durability, || unreachable!()));
            assert_eq!(state, expected, "{durability:?} after {polls}");
        }
        assert!(cuts > 5, "{durability:?} was cut {cuts} times only");
    }
}

// 69, 70: a task that is aborted drops its run, which winds down in the background and gives the thread
// back; nothing is lost and nothing is torn.
#[tokio::test]
async fn a_run_whose_task_is_aborted_at_any_point_ends_as_the_uncut_one() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let mut thread = graph(&Done::default()).thread(&MemoryStore::shared(), "t");
        let expected = to_the_end(&mut thread, durability, || unreachable!()).await;
        let mut cuts = 0;
        for polls in 1..60 {
            let (store, done) = (MemoryStore::shared(), Done::default());
            let thread = graph(&done).thread(&store, "t");
            let running =
                tokio::spawn(
                    async move { while once(&thread, durability).await.unwrap().is_none() {} },
                );
            for _ in 0..polls {
                tokio::task::yield_now().await;
            }
            running.abort();
            cuts += u32::from(running.await.is_err());
            let thread = graph(&done).thread(&store, "t");
            let state = loop {
                match once(&thread, durability).await {
                    Ok(None) => {}
                    Ok(Some(state)) => break state,
                    // The run that was dropped still has the thread.
                    Err(Error::Conflict { .. }) => tokio::task::yield_now().await,
                    Err(e) => panic!("{durability:?} after {polls}: {e}"),
                }
            };
            assert_eq!(state, expected, "{durability:?} after {polls}");
            // Graceful as it is, it lets steps finish: none is done twice.
            assert!(done.lock().unwrap().values().all(|times| *times == 1));
        }
        assert!(cuts > 5, "{durability:?} was cut {cuts} times only");
    }
}

/// `a`, `b`, `c`, each of which logs its name; alone, and as the only node of another graph.
fn lines() -> [(Graph<Case>, &'static str); 2] {
    let line = Graph::<Case>::new("line")
        .node("a", async |_: &Case, _: &Ctx| {
            Ok(Case::update().log(["a".to_owned()]))
        })
        .node("b", async |_: &Case, _: &Ctx| {
            Ok(Case::update().log(["b".to_owned()]))
        })
        .node("c", async |_: &Case, _: &Ctx| {
            Ok(Case::update().log(["c".to_owned()]))
        })
        .start("a")
        .sequence(["a", "b", "c"])
        .end("c")
        .build()
        .unwrap();
    let around = Graph::<Case>::new("around")
        .node("sub", line.clone().shared())
        .start("sub")
        .end("sub")
        .build()
        .unwrap();
    [(line, "b"), (around, "sub|b")]
}

#[tokio::test]
async fn a_kill_between_a_superstep_and_its_pause_skips_no_pause() {
    for (graph, pause) in lines() {
        for durability in [Durability::Sync, Durability::Async] {
            let store = MemoryStore::shared();
            // The first note of the run is that of the pause.
            let killed: Store = Faulty::over(&store, Calls::Notes, 0, Fault::Dies);
            let start = graph.thread(&killed, "t").run(Case::update());
            let cut = start.durability(durability).pause_after(pause).await;
            assert!(cut.is_err(), "{cut:?}");
            let thread = graph.thread(&store, "t");
            let stopped = thread.resume().durability(durability).pause_after(pause);
            let stopped = stopped.await.unwrap();
            let Outcome::Stopped { state, why, .. } = &stopped else {
                panic!("{pause}: {stopped:?}")
            };
            assert_eq!(*why, StoppedBy::Breakpoint);
            if pause == "b" {
                assert_eq!(state.log, ["a", "b"]);
            }
            let done = thread.resume().durability(durability).pause_after(pause);
            assert_eq!(done.await.unwrap().done().unwrap().log, ["a", "b", "c"]);
        }
    }
}
