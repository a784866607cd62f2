//! Where nothing is saved before the end: whatever ends a run, what was finished before is saved, and so are
//! attempts, failures and cancellations.

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

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    #[reduce(append)]
    log: Vec<String>,
    #[reduce(below_ten)]
    sum: u32,
    owner: String,
    #[reduce(append, ephemeral)]
    alerts: Vec<String>,
    #[reduce(append)]
    after: Vec<String>,
}

fn below_ten(sum: &mut u32, new: u32) -> Result<(), String> {
    match *sum + new {
        all @ 0..10 => *sum = all,
        all => return Err(format!("{all} is too much")),
    }
    Ok(())
}

type Runs = Arc<AtomicU32>;

async fn step(_: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    Ok(Case::update().log([ctx.node().to_owned()]))
}

/// What a node writes in the superstep that cannot be closed.
type Writes = fn() -> Update<Case>;

/// Two steps, then `left` and `right` in one superstep (or `left` alone), then a branch.
fn graph(runs: &Runs, left: Writes, right: Option<Writes>, to: &'static str) -> Graph<Case> {
    let counted = |writes: Writes| {
        with(
            (runs.clone(), writes),
            async |(runs, writes): &(Runs, Writes), _: &Case, _: &Ctx| {
                runs.fetch_add(1, Ordering::SeqCst);
                Ok(writes())
            },
        )
    };
    let mut graph = Graph::<Case>::new("g")
        .node("a", step)
        .node("b", step)
        .node("left", counted(left));
    if let Some(right) = right {
        graph = graph.node("right", counted(right)).end("right");
    }
    let first = match right {
        Some(_) => vec!["left", "right"],
        None => vec!["left"],
    };
    graph
        .node("end", step)
        .start("a")
        .edge("a", "b")
        .edge("b", first)
        .branch(
            "left",
            move |case: &Case| {
                assert_ne!(to, "panics", "the branch");
                // What is empty again in the next superstep is there for the branch of its own.
                match (to, case.alerts.is_empty()) {
                    ("by alert", false) => "end",
                    ("by alert", true) => "nowhere",
                    (to, _) => to,
                }
            },
            ["end"],
        )
        .end("end")
        .build()
        .unwrap()
}

fn left() -> Update<Case> {
    Case::update()
        .log(["left".to_owned()])
        .owner("left")
        .sum(4)
        .after(["left".to_owned()])
        .alerts(["bell".to_owned()])
}

fn right() -> Update<Case> {
    Case::update()
        .log(["right".to_owned()])
        .after(["right".to_owned()])
}

/// What is said, what the second node writes and where the first goes; and what would be right.
fn faults() -> [(
    &'static str,
    Option<Writes>,
    &'static str,
    Writes,
    &'static str,
); 5] {
    let both: Writes = || right().owner("right");
    let too_much: Writes = || right().sum(8);
    let fine: Writes = || right().sum(1);
    [
        (
            "`left` and `right` both wrote `owner` in superstep 2; give it a reducer",
            Some(both),
            "end",
            fine,
            "end",
        ),
        (
            "channel `sum` refused what `right` wrote: 12 is too much",
            Some(too_much),
            "end",
            fine,
            "end",
        ),
        (
            "`left` went to `nowhere`, which it did not declare (declared: end)",
            Some(fine),
            "nowhere",
            fine,
            "by alert",
        ),
        (
            "`left` went to `nowhere`, which it did not declare (declared: end)",
            None,
            "nowhere",
            fine,
            "by alert",
        ),
        (
            "panicked outside of a node, in a branch, a reducer or a value's form: assertion `left != right` \
             failed: the branch\n  left: \"panics\"\n right: \"panics\"",
            Some(fine),
            "panics",
            fine,
            "by alert",
        ),
    ]
}

// The report behind it: langgraph#5672 and PR8634.
#[tokio::test]
async fn a_superstep_that_cannot_be_closed_is_saved_as_open_with_what_its_tasks_wrote() {
    for (why, second, to, mended, mended_to) in faults() {
        let runs = Runs::default();
        let store = MemoryStore::new();
        let as_store = store.clone() as Store;
        let broken = graph(&runs, left, second, to).thread(&as_store, "t");
        let run = broken.run(Case::update()).durability(Durability::Exit);
        assert_eq!(run.await.unwrap_err().to_string(), why);
        let ran = runs.load(Ordering::SeqCst);
        // What was finished before is there, and what is finished in it is done.
        let snapshot = broken.snapshot(None).await.unwrap().unwrap();
        assert_eq!(snapshot.state.log[..2], ["a", "b"], "{why}");
        assert!(
            !snapshot.finished && snapshot.tasks.iter().all(|t| t.done),
            "{why}"
        );
        let row = store.thread("t").await.unwrap().unwrap();
        assert_eq!(row.status, ThreadStatus::Error);
        // Resuming fails again the same way, and runs nothing again.
        let again = broken.resume().durability(Durability::Exit).await;
        assert_eq!(again.unwrap_err().to_string(), why);
        assert_eq!(runs.load(Ordering::SeqCst), ran, "{why}");
        // A graph that is mended goes on from there, where the fault was in the branch.
        if mended_to == "by alert" {
            let mended = graph(&runs, left, second.map(|_| mended), mended_to);
            let mended = mended.thread(&as_store, "t").resume().await;
            let state = mended.unwrap().done().unwrap();
            let expected: &[&str] = match second {
                Some(_) => &["a", "b", "left", "right", "end"],
                None => &["a", "b", "left", "end"],
            };
            assert_eq!(state.log, expected, "{why}");
            assert_eq!(state.sum, 4 + u32::from(second.is_some()));
            assert_eq!(runs.load(Ordering::SeqCst), ran, "{why}");
        } else {
            // Or a person writes what the one task should have written.
            let by_hand = Case::update().log(["by hand".to_owned()]);
            broken.update_as("right", by_hand).await.unwrap();
            let state = broken.resume().await.unwrap().done().unwrap();
            let mut sorted = state.log.clone();
            sorted.sort_unstable();
            assert!(sorted.contains(&"left".to_owned()), "{why}: {sorted:?}");
            assert!(sorted.contains(&"by hand".to_owned()), "{why}: {sorted:?}");
            assert_eq!(state.sum, 4, "{why}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_and_failures_are_saved_when_the_run_ends() {
    let runs = Runs::default();
    let graph = Graph::<Case>::new("g")
        .node("a", step)
        .node(
            "fails",
            with(runs.clone(), async |runs: &Runs, _: &Case, ctx: &Ctx| {
                runs.fetch_add(1, Ordering::SeqCst);
                Err::<Update<Case>, _>(NodeError::msg(format!("attempt {}", ctx.attempt())))
            }),
        )
        .policy(
            "fails",
            Policy {
                attempts: 3,
                backoff: Duration::from_secs(60),
                ..Policy::default()
            },
        )
        .start("a")
        .edge("a", "fails")
        .end("fails")
        .build()
        .unwrap();
    // The run is dropped while it waits for its second attempt.
    let store = MemoryStore::shared();
    let thread = graph.thread(&store, "dropped");
    let mut stream = thread
        .run(Case::update())
        .durability(Durability::Exit)
        .stream([Mode::Updates]);
    let control = stream.control();
    stream.next().await.unwrap();
    let rest = tokio::time::timeout(Duration::from_secs(1), stream.next());
    assert!(rest.await.is_err());
    drop(stream);
    assert_eq!(control.ended().await, Ending::Cancelled);
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!(snapshot.state.log, ["a"]);
    let error = snapshot.tasks[0].error.clone().unwrap();
    assert_eq!(
        (error.kind, &*error.message),
        (FailureKind::Cancelled, "disconnect")
    );
    // It goes on with the second attempt and fails for good after the third, which is on record.
    let failed = thread.resume().durability(Durability::Exit).await;
    assert_eq!(
        failed.unwrap_err().to_string(),
        "node `fails` failed: attempt 3"
    );
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    let error = snapshot.tasks[0].error.clone().unwrap();
    assert_eq!(
        (error.kind, &*error.message, error.attempts),
        (FailureKind::Error, "attempt 3", 3)
    );
}
