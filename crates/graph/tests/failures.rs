//! Failures: what is tried again, who takes over, what is on record, and how a run goes on after one.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
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

fn hits(count: &Count) -> u32 {
    count.load(Ordering::SeqCst)
}

fn log(line: impl Into<String>) -> Update<Case> {
    Case::update().log([line.into()])
}

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];
const MS: Duration = Duration::from_millis(1);

fn ms(n: u32) -> Duration {
    MS * n
}

/// Fails in its first `n` executions.
async fn flaky((n, runs): &(u32, Count), _: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    let run = hit(runs);
    if run <= *n {
        return Err(NodeError::msg(format!("failure {run}")));
    }
    Ok(log(format!("{} at attempt {}", ctx.node(), ctx.attempt())))
}

fn flaky_alone(n: u32, runs: &Count, policy: Policy) -> Graph<Case> {
    Graph::<Case>::new("g")
        .node("a", with((n, runs.clone()), flaky))
        .policy("a", policy)
        .start("a")
        .end("a")
        .build()
        .unwrap()
}

// 66.
#[tokio::test(start_paused = true)]
async fn of_two_siblings_one_fails_and_only_that_one_runs_again() {
    for durability in ALL {
        let (fine, bad) = (Count::default(), Count::default());
        let graph = Graph::<Case>::new("g")
            .node("fine", with((0, fine.clone()), flaky))
            .node("bad", with((2, bad.clone()), flaky))
            .policy(
                "bad",
                Policy {
                    attempts: 2,
                    ..Policy::default()
                },
            )
            .start(["fine", "bad"])
            .end(["fine", "bad"])
            .build()
            .unwrap();
        let thread = graph.thread(&MemoryStore::shared(), "t");
        let error = thread
            .run(Case::update())
            .durability(durability)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "node `bad` failed: failure 2");
        assert_eq!((hits(&fine), hits(&bad)), (1, 2));

        let snapshot = thread.snapshot(None).await.unwrap().unwrap();
        assert_eq!(snapshot.state.log, ["fine at attempt 1"]);
        assert_eq!(snapshot.next, ["bad"]);
        let [fine_task, bad_task] = &snapshot.tasks[..] else {
            panic!()
        };
        assert_eq!(
            fine_task.result,
            Some(serde_json::json!({"log": ["fine at attempt 1"]}))
        );
        assert!(fine_task.done && fine_task.error.is_none());
        let error = bad_task.error.clone().unwrap();
        assert_eq!(
            error,
            TaskError {
                kind: FailureKind::Error,
                message: "failure 2".into(),
                attempts: 2
            }
        );
        // Read by its id, the checkpoint shows the state that was saved in it.
        let raw = thread
            .snapshot(Some(snapshot.checkpoint))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (raw.state.log.len(), raw.next),
            (0, vec!["fine".into(), "bad".into()])
        );

        let done = thread
            .resume()
            .durability(durability)
            .await
            .unwrap()
            .done()
            .unwrap();
        assert_eq!(done.log, ["fine at attempt 1", "bad at attempt 1"]);
        assert_eq!((hits(&fine), hits(&bad)), (1, 3), "{durability:?}");
    }
}

// 67.
#[tokio::test(start_paused = true)]
async fn waits_between_attempts_double_up_to_a_most_and_the_last_error_is_the_one_told() {
    let times: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let graph = Graph::<Case>::new("g")
        .node(
            "a",
            with(
                (Instant::now(), times.clone()),
                async |(begin, times): &(Instant, Arc<Mutex<Vec<Duration>>>),
                       _: &Case,
                       ctx: &Ctx| {
                    times.lock().unwrap().push(begin.elapsed());
                    Err::<Update<Case>, _>(NodeError::msg(format!("attempt {}", ctx.attempt())))
                },
            ),
        )
        .policy(
            "a",
            Policy {
                attempts: 5,
                backoff: ms(10),
                backoff_max: ms(30),
                ..Policy::default()
            },
        )
        .start("a")
        .end("a")
        .build()
        .unwrap();
    let error = graph.invoke(Case::update()).await.unwrap_err();
    assert_eq!(error.to_string(), "node `a` failed: attempt 5");
    let times: Vec<_> = times
        .lock()
        .unwrap()
        .iter()
        .map(Duration::as_millis)
        .collect();
    assert_eq!(times, [0, 10, 30, 60, 90]);
}

#[derive(Debug, thiserror::Error)]
#[error("not found")]
struct NotFound;

// 67.
#[tokio::test(start_paused = true)]
async fn the_policy_decides_by_the_concrete_error_what_is_worth_another_attempt() {
    let policy = Policy {
        attempts: 3,
        retry_on: |e| e.downcast_ref::<NotFound>().is_none(),
        ..Policy::default()
    };
    let runs = Count::default();
    let graph = Graph::<Case>::new("g")
        .node(
            "a",
            with(runs.clone(), async |runs: &Count, _: &Case, _: &Ctx| {
                if hit(runs) == 1 {
                    return Err(NodeError::msg("busy"));
                }
                Err::<Update<Case>, _>(NotFound.into())
            }),
        )
        .policy("a", policy)
        .start("a")
        .end("a")
        .build()
        .unwrap();
    let error = graph.invoke(Case::update()).await.unwrap_err();
    let Error::Node { node, source } = error else {
        panic!("{error}")
    };
    assert_eq!(
        (&*node, source.is::<NotFound>(), hits(&runs)),
        ("a", true, 2)
    );
}

#[derive(Clone, Default)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

// 67, and beyond LangGraph: attempts and the time of the next one survive the process.
#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_goes_on_with_the_next_attempt_when_its_time_has_come() {
    for durability in ALL {
        let (runs, clock) = (Count::default(), Hand::default());
        let policy = Policy {
            attempts: 2,
            backoff: ms(1000),
            ..Policy::default()
        };
        let graph = || {
            Graph::<Case>::new("g")
                .node("a", with((1, runs.clone()), flaky))
                .policy("a", policy.clone())
                .clock(Arc::new(clock.clone()))
                .start("a")
                .end("a")
                .build()
                .unwrap()
        };
        let store = MemoryStore::shared();
        let thread = graph().thread(&store, "t");
        let run = thread.run(Case::update()).durability(durability);
        let control = run.control();
        let running = tokio::spawn(run.into_future());
        tokio::time::sleep(ms(100)).await;
        assert_eq!(
            control.cancel(CancelReason::Shutdown).await,
            Ending::Cancelled
        );
        assert!(matches!(
            running.await.unwrap(),
            Err(Error::Cancelled(CancelReason::Shutdown))
        ));

        clock.0.store(300, Ordering::SeqCst);
        let again = Instant::now();
        let done = graph()
            .thread(&store, "t")
            .resume()
            .durability(durability)
            .await
            .unwrap();
        assert_eq!(done.done().unwrap().log, ["a at attempt 2"]);
        assert_eq!(again.elapsed().as_millis(), 700, "{durability:?}");
    }
}

/// Says when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

// 68.
#[tokio::test]
async fn a_failure_ends_siblings_in_flight_and_is_the_error_of_the_run() {
    let dropped = Arc::new(AtomicBool::new(false));
    let graph = Graph::<Case>::new("g")
        .node(
            "waits",
            with(
                dropped.clone(),
                async |dropped: &Arc<AtomicBool>, _: &Case, _: &Ctx| {
                    let _guard = Dropped(dropped.clone());
                    std::future::pending::<()>().await;
                    Ok(log("never"))
                },
            ),
        )
        .node("fails", async |_: &Case, _: &Ctx| {
            tokio::task::yield_now().await;
            Err::<Update<Case>, _>(NodeError::msg("mine"))
        })
        .start(["waits", "fails"])
        .end(["waits", "fails"])
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let error = thread.run(Case::update()).await.unwrap_err();
    assert_eq!(error.to_string(), "node `fails` failed: mine");
    assert!(dropped.load(Ordering::SeqCst));
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!(snapshot.next, ["waits", "fails"]);
    assert_eq!(snapshot.tasks[0].error, None);
}

// 71. A node that says it was cancelled has failed; the run was not cancelled.
#[tokio::test]
async fn a_node_that_fails_by_a_cancellation_of_its_own_fails_the_run() {
    let graph = Graph::<Case>::new("g")
        .node("a", async |_: &Case, _: &Ctx| {
            let task = tokio::spawn(std::future::pending::<()>());
            task.abort();
            task.await?;
            Ok(log("never"))
        })
        .start("a")
        .end("a")
        .build()
        .unwrap();
    let error = graph.invoke(Case::update()).await.unwrap_err();
    let Error::Node { source, .. } = &error else {
        panic!("{error}")
    };
    assert!(
        source
            .downcast_ref::<tokio::task::JoinError>()
            .unwrap()
            .is_cancelled()
    );
}

// 68.
#[tokio::test]
async fn a_panic_is_a_failure_of_its_node_alone_and_beside_others() {
    for names in [vec!["bad"], vec!["bad", "good"]] {
        let graph = Graph::<Case>::new("g")
            .node("bad", async |c: &Case, _: &Ctx| {
                assert!(!c.log.is_empty(), "the log is empty");
                Ok(log("bad"))
            })
            .node("good", async |_: &Case, _: &Ctx| Ok(log("good")))
            .start_branch(move |_| names.clone(), ["bad", "good"])
            .end(["bad", "good"])
            .build()
            .unwrap();
        let thread = graph.thread(&MemoryStore::shared(), "t");
        let error = thread.run(Case::update()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "node `bad` failed: panicked: the log is empty"
        );
        thread.update(log("x")).await.unwrap();
        let done = thread.resume().await.unwrap().done().unwrap();
        assert_eq!(done.log[..2], ["x", "bad"]);
    }
}

/// `a` fails, `apologise` takes over and goes to `sorry`; `a` itself would lead to `next`.
fn handled(bad: &Count, handler: &Count, attempts: u32) -> Graph<Case> {
    Graph::<Case>::new("handled")
        .node("a", with((u32::MAX, bad.clone()), flaky))
        .node(
            "apologise",
            with(
                handler.clone(),
                async |runs: &Count, _: &Case, ctx: &Ctx| {
                    hit(runs);
                    let failed = ctx.failure().cloned().unwrap();
                    let update = log(format!(
                        "{}: {} ({})",
                        failed.node, failed.message, failed.attempts
                    ));
                    Ok(Command::update(update).and_goto("sorry"))
                },
            ),
        )
        .node("sorry", async |_: &Case, _: &Ctx| Ok(log("sorry")))
        .node("next", async |_: &Case, _: &Ctx| Ok(log("next")))
        .node("sibling", async |_: &Case, _: &Ctx| Ok(log("sibling")))
        .policy(
            "a",
            Policy {
                attempts,
                on_error: Some("apologise".into()),
                ..Policy::default()
            },
        )
        .start_branch(
            |c: &Case| {
                if c.log.is_empty() {
                    vec!["a"]
                } else {
                    vec!["a", "sibling"]
                }
            },
            ["a", "sibling"],
        )
        .edge("a", "next")
        .commands("apologise", ["sorry"])
        .end(["sorry", "next", "sibling"])
        .build()
        .unwrap()
}

// 73.
#[tokio::test(start_paused = true)]
async fn a_handler_runs_after_the_last_attempt_and_goes_where_it_wants_in_the_same_superstep() {
    for durability in ALL {
        let (bad, handler) = (Count::default(), Count::default());
        let graph = handled(&bad, &handler, 2);
        let store = MemoryStore::shared();
        let alone = graph
            .thread(&store, "alone")
            .run(Case::update())
            .durability(durability)
            .await
            .unwrap();
        assert_eq!(alone.done().unwrap().log, ["a: failure 2 (2)", "sorry"]);
        let beside = graph
            .thread(&store, "beside")
            .run(log("x"))
            .durability(durability)
            .await
            .unwrap();
        assert_eq!(
            beside.done().unwrap().log,
            ["x", "a: failure 4 (2)", "sibling", "sorry"]
        );
        assert_eq!((hits(&bad), hits(&handler)), (4, 2), "{durability:?}");
        if durability != Durability::Exit {
            let supersteps: Vec<_> = graph
                .thread(&store, "alone")
                .history()
                .await
                .unwrap()
                .iter()
                .map(|e| e.metadata.superstep)
                .collect();
            assert_eq!(supersteps, [1, 0, -1]);
        }
    }
    assert_eq!(
        handled(&Count::default(), &Count::default(), 1)
            .invoke(Case::update())
            .await
            .unwrap()
            .log[0],
        "a: failure 1 (1)"
    );
}

/// `a` fails, `h` takes over: it waits for ever, fails, or asks, the first time; then it is done.
fn handled_badly(bad: &Count, how: &'static str, runs: &Count) -> Graph<Case> {
    Graph::<Case>::new("badly")
        .node("a", with((u32::MAX, bad.clone()), flaky))
        .node(
            "h",
            with(
                (how, runs.clone()),
                async |(how, runs): &(&'static str, Count), _: &Case, ctx: &Ctx| {
                    let failed = ctx.failure().cloned().unwrap();
                    match (*how, hit(runs)) {
                        ("waits", 1) => std::future::pending().await,
                        ("fails", 1) => return Err(NodeError::msg("the handler too")),
                        ("asks", _) => ctx.interrupt::<bool>("q", "well?").map(drop)?,
                        _ => {}
                    }
                    Ok(log(format!("{}: {}", failed.node, failed.message)))
                },
            ),
        )
        .policy(
            "a",
            Policy {
                on_error: Some("h".into()),
                ..Policy::default()
            },
        )
        .start("a")
        .end(["a", "h"])
        .build()
        .unwrap()
}

// 73.
#[tokio::test]
async fn a_run_that_stopped_inside_a_handler_goes_on_with_the_handler() {
    for durability in ALL {
        let (bad, handler) = (Count::default(), Count::default());
        let thread = handled_badly(&bad, "waits", &handler).thread(&MemoryStore::shared(), "t");
        let run = thread.run(Case::update()).durability(durability);
        let control = run.control();
        let running = tokio::spawn(run.into_future());
        while hits(&handler) == 0 {
            tokio::task::yield_now().await;
        }
        control.cancel(CancelReason::User).await;
        assert!(running.await.unwrap().is_err());
        let snapshot = thread.snapshot(None).await.unwrap().unwrap();
        assert_eq!(
            snapshot.tasks[0].error.clone().unwrap().kind,
            FailureKind::Cancelled
        );
        assert_eq!(snapshot.next, ["h"]);
        let done = thread.resume().await.unwrap().done().unwrap();
        assert_eq!(done.log, ["a: failure 1"]);
        assert_eq!((hits(&bad), hits(&handler)), (1, 2), "{durability:?}");
    }
}

// 73.
#[tokio::test]
async fn a_handler_that_fails_fails_the_run_and_is_what_runs_again() {
    let (bad, handler) = (Count::default(), Count::default());
    let thread = handled_badly(&bad, "fails", &handler).thread(&MemoryStore::shared(), "t");
    let error = thread.run(Case::update()).await.unwrap_err();
    assert_eq!(error.to_string(), "node `h` failed: the handler too");
    let done = thread.resume().await.unwrap().done().unwrap();
    assert_eq!(done.log, ["a: failure 1"]);
    assert_eq!((hits(&bad), hits(&handler)), (1, 2));
}

// 73.
#[tokio::test]
async fn a_handler_may_ask_and_a_question_is_no_failure() {
    let (bad, handler) = (Count::default(), Count::default());
    let thread = handled_badly(&bad, "asks", &handler).thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Case::update()).await.unwrap();
    assert_eq!(&*paused.interrupts()[0].node, "h");
    let done = thread
        .answer(&paused.interrupts()[0].id, true)
        .await
        .unwrap();
    assert_eq!(done.done().unwrap().log, ["a: failure 1"]);
    assert_eq!((hits(&bad), hits(&handler)), (1, 2));

    // A node with a handler asks: the handler does not run.
    let graph = Graph::<Case>::new("g")
        .node("a", async |_: &Case, ctx: &Ctx| {
            Ok(log(ctx.interrupt::<String>("q", "?")?))
        })
        .node("h", async |_: &Case, _: &Ctx| Ok(log("handled")))
        .policy(
            "a",
            Policy {
                on_error: Some("h".into()),
                attempts: 3,
                ..Policy::default()
            },
        )
        .start("a")
        .end(["a", "h"])
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Case::update()).await.unwrap();
    let done = thread
        .answer(&paused.interrupts()[0].id, "yes")
        .await
        .unwrap();
    assert_eq!(done.done().unwrap().log, ["yes"]);
}

// 73. A failure inside a subgraph is one of its node in the parent.
#[tokio::test]
async fn a_handler_takes_over_from_a_subgraph() {
    let bad = Count::default();
    let inner = flaky_alone(u32::MAX, &bad, Policy::default());
    let graph = Graph::<Case>::new("g")
        .node("sub", inner.shared())
        .node("h", async |_: &Case, ctx: &Ctx| {
            Ok(log(ctx.failure().unwrap().message.clone()))
        })
        .policy(
            "sub",
            Policy {
                on_error: Some("h".into()),
                ..Policy::default()
            },
        )
        .start("sub")
        .end(["sub", "h"])
        .build()
        .unwrap();
    let state = graph.invoke(Case::update()).await.unwrap();
    assert_eq!(state.log, ["node `a` failed: failure 1"]);
}

// §1c: graph-wide rules hold for all nodes but those with their own; handlers take no handler.
#[tokio::test(start_paused = true)]
async fn a_policy_for_all_is_that_of_every_node_without_one() {
    let (a, b, h) = (Count::default(), Count::default(), Count::default());
    let graph = Graph::<Case>::new("g")
        .node("a", with((1, a.clone()), flaky))
        .node("b", with((1, b.clone()), flaky))
        .node("h", with((1, h.clone()), flaky))
        .policy_for_all(Policy {
            attempts: 2,
            on_error: Some("h".into()),
            ..Policy::default()
        })
        .policy(
            "b",
            Policy {
                on_error: Some("h".into()),
                ..Policy::default()
            },
        )
        .start("a")
        .edge("a", "b")
        .end(["b", "h"])
        .build()
        .unwrap();
    let state = graph.invoke(Case::update()).await.unwrap();
    assert_eq!(state.log, ["a at attempt 2", "h at attempt 2"]);
    assert_eq!([a, b, h].map(|n| hits(&n)), [2, 1, 2]);
}

// 75.
#[tokio::test]
async fn a_run_that_reached_its_limit_keeps_its_state_and_goes_on_with_a_new_one() {
    for durability in ALL {
        let graph = Graph::<Case>::new("g")
            .node("a", async |c: &Case, _: &Ctx| {
                Ok(log(c.log.len().to_string()))
            })
            .start("a")
            .branch("a", |c| if c.log.len() < 5 { "a" } else { END }, ["a", END])
            .build()
            .unwrap();
        let thread = graph.thread(&MemoryStore::shared(), "t");
        let error = thread
            .run(Case::update())
            .limit(2)
            .durability(durability)
            .await
            .unwrap_err();
        assert!(matches!(error, Error::RecursionLimit(2)), "{error}");
        let snapshot = thread.snapshot(None).await.unwrap().unwrap();
        assert_eq!(
            (&snapshot.state.log[..], snapshot.next),
            (&["0".to_owned(), "1".to_owned()][..], vec!["a".into()])
        );
        let error = thread
            .resume()
            .limit(2)
            .durability(durability)
            .await
            .unwrap_err();
        assert!(matches!(error, Error::RecursionLimit(2)), "{error}");
        let done = thread
            .resume()
            .limit(1)
            .durability(durability)
            .await
            .unwrap()
            .done()
            .unwrap();
        assert_eq!(done.log, ["0", "1", "2", "3", "4"]);
    }
}

#[tokio::test]
async fn a_task_that_succeeded_at_last_is_shown_without_its_older_failure() {
    for durability in [Durability::Sync, Durability::Async] {
        let runs = Count::default();
        let once = Policy {
            attempts: 1,
            ..Policy::default()
        };
        let graph = flaky_alone(1, &runs, once);
        let thread = graph.thread(&MemoryStore::shared(), "t");
        let failed = thread.run(Case::update()).durability(durability).await;
        assert!(matches!(failed, Err(Error::Node { .. })), "{failed:?}");
        let now = thread.snapshot(None).await.unwrap().unwrap();
        let error = now.tasks[0].error.as_ref().unwrap();
        assert_eq!((&*error.message, now.tasks[0].done), ("failure 1", false));
        thread.resume().durability(durability).await.unwrap();
        let then = thread.snapshot(Some(now.checkpoint)).await.unwrap();
        let task = then.unwrap().tasks.remove(0);
        assert_eq!((task.done, task.error), (true, None));
    }
}
