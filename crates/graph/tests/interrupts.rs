//! Questions: how a run pauses on them, how they are answered, what runs again and what does not.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use tokio::sync::Notify;

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    topic: String,
    #[reduce(append)]
    log: Vec<String>,
}

type Count = Arc<AtomicU32>;

fn count() -> Count {
    Count::default()
}

fn hit(count: &Count) -> u32 {
    count.fetch_add(1, Ordering::SeqCst) + 1
}

fn hits(count: &Count) -> u32 {
    count.load(Ordering::SeqCst)
}

fn log(line: impl Into<String>) -> Update<Case> {
    Case::update().log([line.into()])
}

/// One node that counts its executions, asks under its own name and logs the answer.
async fn ask(runs: &Count, _: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    hit(runs);
    let answer: Value = ctx.interrupt("ask", format!("{}?", ctx.node()))?;
    Ok(log(format!("{}: {answer}", ctx.node())))
}

fn one(runs: &Count) -> Graph<Case> {
    Graph::<Case>::new("one")
        .node("a", with(runs.clone(), ask))
        .start("a")
        .end("a")
        .build()
        .unwrap()
}

/// `a` and `b` ask side by side, `c` only works; `end` runs when all are done.
fn three(runs: &[Count; 3]) -> Graph<Case> {
    Graph::<Case>::new("three")
        .node("a", with(runs[0].clone(), ask))
        .node("b", with(runs[1].clone(), ask))
        .node(
            "c",
            with(runs[2].clone(), async |runs: &Count, _: &Case, _: &Ctx| {
                hit(runs);
                Ok(log("c"))
            }),
        )
        .node("end", async |_: &Case, _: &Ctx| Ok(log("end")))
        .start(["a", "b", "c"])
        .join(["a", "b", "c"], "end")
        .end("end")
        .build()
        .unwrap()
}

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

// 45, 46.
#[tokio::test]
async fn a_question_pauses_the_run_and_its_answer_runs_the_node_again_from_its_top() {
    for durability in ALL {
        let runs = count();
        let store = MemoryStore::shared();
        let thread = one(&runs).thread(&store, "t");
        let run = thread.run(Case::update().topic("x")).durability(durability);
        let mut stream = run.stream([Mode::Updates]);
        let mut told = Vec::new();
        while let Some(event) = stream.next().await {
            told.push(event.data);
        }
        let [EventData::Interrupt(asked)] = &told[..] else {
            panic!("{told:?}")
        };
        let outcome = stream.outcome().await.unwrap();
        assert_eq!(outcome.interrupts(), std::slice::from_ref(asked));
        assert_eq!(outcome.state().topic, "x");
        assert_eq!(
            (
                &*asked.node,
                &*asked.key,
                &*asked.namespace,
                &asked.question
            ),
            ("a", "ask", "", &json!("a?"))
        );
        assert_eq!(asked.id.len(), 32);

        // Another process: the store is all that is needed.
        let thread = one(&runs).thread(&store, "t");
        let snapshot = thread.snapshot(None).await.unwrap().unwrap();
        assert_eq!(snapshot.interrupts, std::slice::from_ref(asked));
        assert_eq!(snapshot.tasks[0].interrupts, std::slice::from_ref(asked));
        assert!(!snapshot.finished);
        let done = thread
            .answer(&asked.id, 5)
            .durability(durability)
            .await
            .unwrap();
        assert_eq!(done.done().unwrap().log, ["a: 5"]);
        assert_eq!(hits(&runs), 2);
    }
}

// 47.
#[tokio::test]
async fn two_questions_in_a_row_take_three_executions_and_keep_the_first_answer() {
    let runs = count();
    let graph = Graph::<Case>::new("g")
        .node(
            "a",
            with(runs.clone(), async |runs: &Count, _: &Case, ctx: &Ctx| {
                hit(runs);
                let first: String = ctx.interrupt("q", "first?")?;
                let second: String = ctx.interrupt("q", "second?")?;
                Ok(log(first).log([second]))
            }),
        )
        .start("a")
        .end("a")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let first = thread.run(Case::update()).await.unwrap().interrupts()[0].clone();
    let second = thread.answer(&first.id, "one").await.unwrap().interrupts()[0].clone();
    assert_eq!(
        (first.question, second.question),
        (json!("first?"), json!("second?"))
    );
    assert_ne!(first.id, second.id);
    let done = thread
        .answer(&second.id, "two")
        .await
        .unwrap()
        .done()
        .unwrap();
    assert_eq!(
        (done.log, hits(&runs)),
        (vec!["one".into(), "two".into()], 3)
    );
}

// 48.
#[tokio::test]
async fn a_question_in_a_loop_is_asked_until_the_answer_will_do() {
    let graph = Graph::<Case>::new("g")
        .node("a", async |_: &Case, ctx: &Ctx| {
            loop {
                let age: i64 = ctx.interrupt("age", "how old?")?;
                if age > 0 {
                    return Ok(log(age.to_string()));
                }
            }
        })
        .start("a")
        .end("a")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let mut open = thread.run(Case::update()).await.unwrap().interrupts()[0].clone();
    for (answer, key) in [(-1, "age#1"), (0, "age#2")] {
        let id = open.id.clone();
        open = thread.answer(&id, answer).await.unwrap().interrupts()[0].clone();
        assert_eq!(open.key, key);
    }
    let done = thread.answer(&open.id, 7).await.unwrap();
    assert_eq!(done.done().unwrap().log, ["7"]);
}

// 48. 1.2.24's response schema: an answer that does not fit is refused and asked again.
#[tokio::test]
async fn an_answer_of_the_wrong_type_is_asked_again_under_the_same_id() {
    let runs = count();
    let graph = Graph::<Case>::new("g")
        .node(
            "a",
            with(runs.clone(), async |runs: &Count, _: &Case, ctx: &Ctx| {
                hit(runs);
                let yes: bool = ctx.interrupt_for("sure", "sure?")?;
                Ok(log(yes.to_string()))
            }),
        )
        .start("a")
        .end("a")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let first = thread.run(Case::update()).await.unwrap().interrupts()[0].clone();
    assert_eq!(first.answer_schema.as_ref().unwrap()["type"], "boolean");
    let again = thread
        .answer(&first.id, "maybe")
        .await
        .unwrap()
        .interrupts()[0]
        .clone();
    assert_eq!(again.id, first.id);
    assert!(
        again
            .refused
            .unwrap()
            .contains("invalid type: string \"maybe\"")
    );
    // Going on without a new answer does not try the old one again.
    let still = thread.resume().await.unwrap().interrupts()[0].clone();
    assert_eq!((still.id, hits(&runs)), (first.id.clone(), 2));
    let done = thread.answer(&first.id, true).await.unwrap();
    assert_eq!(done.done().unwrap().log, ["true"]);
}

// 49, 50.
#[tokio::test]
async fn parallel_questions_are_all_asked_and_answered_one_by_one_or_together() {
    for together in [true, false] {
        let runs = [count(), count(), count()];
        let thread = three(&runs).thread(&MemoryStore::shared(), "t");
        let paused = thread.run(Case::update()).await.unwrap();
        let open = paused.interrupts().to_vec();
        let questions: Vec<_> = open.iter().map(|q| q.question.clone()).collect();
        assert_eq!(questions, [json!("a?"), json!("b?")]);
        assert_eq!(paused.state().log, ["c"]);
        let done = if together {
            let answers = open
                .iter()
                .map(|q| (q.id.clone(), json!(q.node.to_string())));
            thread.answers(answers).await.unwrap()
        } else {
            let paused = thread.answer(&open[1].id, "b").await.unwrap();
            assert_eq!(paused.interrupts(), [open[0].clone()]);
            assert_eq!(paused.state().log, ["b: \"b\"", "c"]);
            thread.answer(&open[0].id, "a").await.unwrap()
        };
        let expected = ["a: \"a\"", "b: \"b\"", "c", "end"];
        assert_eq!(done.done().unwrap().log, expected);
        assert_eq!(runs.map(|r| hits(&r)), [2, 2, 1]);
    }
}

// 49, 51.
#[tokio::test]
async fn an_unknown_or_used_id_and_a_resume_with_nothing_to_answer_are_errors_that_change_nothing()
{
    let runs = [count(), count(), count()];
    let store = MemoryStore::shared();
    let graph = three(&runs);
    let fresh = graph
        .thread(&store, "fresh")
        .answer("x", 1)
        .await
        .unwrap_err();
    assert_eq!(fresh.to_string(), "nothing is waiting on thread `fresh`");
    let fresh = graph.thread(&store, "fresh").resume().await.unwrap_err();
    assert!(matches!(fresh, Error::NothingToResume(_)));

    let thread = graph.thread(&store, "t");
    let open = thread
        .run(Case::update())
        .await
        .unwrap()
        .interrupts()
        .to_vec();
    thread.answer(&open[0].id, "a").await.unwrap();
    let before = thread.history().await.unwrap();
    for answers in [
        vec![("nobody".to_owned(), json!(1))],
        vec![(open[0].id.clone(), json!(1))],
        vec![
            (open[1].id.clone(), json!(1)),
            ("nobody".to_owned(), json!(1)),
        ],
        vec![
            (open[1].id.clone(), json!(1)),
            (open[1].id.clone(), json!(2)),
        ],
    ] {
        let error = thread.answers(answers.clone()).await.unwrap_err();
        let bad = &answers.last().unwrap().0;
        assert!(
            matches!(&error, Error::UnknownInterrupt(id) if id == bad),
            "{error}"
        );
    }
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!(snapshot.interrupts, [open[1].clone()]);
    assert_eq!(thread.history().await.unwrap(), before);
    assert_eq!(runs.map(|r| hits(&r)), [2, 1, 1]);

    thread
        .answer(&open[1].id, "b")
        .await
        .unwrap()
        .done()
        .unwrap();
    let over = thread.answer(&open[1].id, "b").await.unwrap_err();
    assert!(matches!(over, Error::NothingToResume(_)), "{over}");
}

// 46. LangGraph cannot take None.
#[tokio::test]
async fn null_false_zero_and_empty_text_are_answers() {
    for answer in [
        json!(null),
        json!(false),
        json!(0),
        json!(""),
        json!([]),
        json!({}),
    ] {
        let thread = one(&count()).thread(&MemoryStore::shared(), "t");
        let id = thread.run(Case::update()).await.unwrap().interrupts()[0]
            .id
            .clone();
        let done = thread.answer(&id, answer.clone()).await.unwrap();
        assert_eq!(done.done().unwrap().log, [format!("a: {answer}")]);
    }
}

// 50.
#[tokio::test]
async fn a_question_does_not_end_a_sibling_that_is_still_running() {
    let gate = Arc::new(Notify::new());
    let slow = count();
    let graph = Graph::<Case>::new("g")
        .node(
            "ask",
            with(
                gate.clone(),
                async |gate: &Arc<Notify>, _: &Case, ctx: &Ctx| {
                    // The sibling goes on only after this one has asked.
                    gate.notify_one();
                    let answer: String = ctx.interrupt("q", "?")?;
                    Ok(log(answer))
                },
            ),
        )
        .node(
            "slow",
            with(
                (gate, slow.clone()),
                async |(gate, runs): &(Arc<Notify>, Count), _: &Case, _: &Ctx| {
                    hit(runs);
                    gate.notified().await;
                    tokio::task::yield_now().await;
                    Ok(log("slow"))
                },
            ),
        )
        .start(["ask", "slow"])
        .end(["ask", "slow"])
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Case::update()).await.unwrap();
    assert_eq!(paused.state().log, ["slow"]);
    let done = thread
        .answer(&paused.interrupts()[0].id, "yes")
        .await
        .unwrap();
    assert_eq!(done.done().unwrap().log, ["yes", "slow"]);
    assert_eq!(hits(&slow), 1);
}

// 51. LangGraph runs the node again; here nothing runs that has no answer.
#[tokio::test]
async fn resuming_without_an_answer_runs_nothing_and_keeps_the_question() {
    let runs = [count(), count(), count()];
    let thread = three(&runs).thread(&MemoryStore::shared(), "t");
    let open = thread
        .run(Case::update())
        .await
        .unwrap()
        .interrupts()
        .to_vec();
    let again = thread.resume().await.unwrap();
    assert_eq!(again.interrupts(), open);
    assert_eq!(again.state().log, ["c"]);
    assert_eq!(runs.map(|r| hits(&r)), [1, 1, 1]);
}

// 52.
#[tokio::test]
async fn a_failing_sibling_fails_the_run_and_the_question_stays_open() {
    let asked = Arc::new(Notify::new());
    let fails = count();
    let graph = Graph::<Case>::new("g")
        .node(
            "a",
            with(
                (asked.clone(), fails.clone()),
                async |(asked, fails): &(Arc<Notify>, Count), _: &Case, _: &Ctx| {
                    asked.notified().await;
                    match hit(fails) {
                        1 => Err(NodeError::msg("no luck")),
                        _ => Ok(log("a")),
                    }
                },
            ),
        )
        .node(
            "b",
            with(
                asked.clone(),
                async |asked: &Arc<Notify>, _: &Case, ctx: &Ctx| {
                    let _last = Ring(asked.clone());
                    let answer: String = ctx.interrupt("q", "b?")?;
                    Ok(log(answer))
                },
            ),
        )
        .start(["a", "b"])
        .end(["a", "b"])
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let error = thread.run(Case::update()).await.unwrap_err();
    assert_eq!(error.to_string(), "node `a` failed: no luck");
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    let error = snapshot.tasks[0].error.as_ref().unwrap();
    assert_eq!(
        (&*error.message, error.kind),
        ("no luck", FailureKind::Error)
    );
    assert_eq!(snapshot.tasks[1].interrupts[0].question, json!("b?"));
    assert_eq!(snapshot.next, ["a", "b"]);
    // The answer resumes both: what failed is due again.
    asked.notify_one();
    let done = thread
        .answer(&snapshot.interrupts[0].id, "b")
        .await
        .unwrap();
    assert_eq!(done.done().unwrap().log, ["a", "b"]);
}

/// Rings when the node is left, so that its question is on its way.
struct Ring(Arc<Notify>);

impl Drop for Ring {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

// 53. The functional style: one node, and a question inside a step.
#[tokio::test]
async fn a_question_inside_a_step_is_asked_once_and_finished_steps_are_not_done_again() {
    let done = count();
    let graph = Graph::<Case>::new("entrypoint")
        .node(
            "main",
            with(done.clone(), async |done: &Count, _: &Case, ctx: &Ctx| {
                let first = ctx.step("first", async { Ok(hit(done)) }).await?;
                let answer = ctx
                    .step("ask", async { ctx.interrupt::<String>("q", "?") })
                    .await?;
                Ok(log(format!("{first} {answer}")))
            }),
        )
        .start("main")
        .end("main")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Case::update()).await.unwrap();
    assert_eq!(paused.interrupts().len(), 1);
    let state = thread
        .answer(&paused.interrupts()[0].id, "yes")
        .await
        .unwrap();
    assert_eq!(
        (state.done().unwrap().log, hits(&done)),
        (vec!["1 yes".to_owned()], 1)
    );
}

fn line() -> Graph<Case> {
    let step = async |s: &Case, ctx: &Ctx| Ok(log(format!("{} {}", ctx.node(), s.topic)));
    Graph::<Case>::new("line")
        .node("a", step)
        .node("b", step)
        .node("c", step)
        .start("a")
        .sequence(["a", "b", "c"])
        .end("c")
        .build()
        .unwrap()
}

// 54.
#[tokio::test]
async fn a_breakpoint_before_a_node_lets_the_state_be_edited_and_stops_once() {
    let thread = line().thread(&MemoryStore::shared(), "t");
    let run = thread
        .run(Case::update().topic("old"))
        .pause_before("b")
        .pause_after("b");
    let stopped = run.await.unwrap();
    let Outcome::Stopped { state, next, why } = stopped else {
        panic!("{stopped:?}")
    };
    assert_eq!(state.log, ["a old"]);
    assert_eq!((next, why), (vec!["b".into()], StoppedBy::Breakpoint));
    thread.update(Case::update().topic("new")).await.unwrap();
    let stopped = thread
        .resume()
        .pause_before("b")
        .pause_after("b")
        .await
        .unwrap();
    assert_eq!(stopped.state().log, ["a old", "b new"]);
    assert!(matches!(&stopped, Outcome::Stopped { next, .. } if next == &["c"]));
    let done = thread
        .resume()
        .pause_before("b")
        .pause_after("b")
        .await
        .unwrap();
    assert_eq!(done.done().unwrap().log, ["a old", "b new", "c new"]);

    let mut places: Vec<_> = thread.history().await.unwrap();
    places.reverse();
    let places: Vec<_> = places
        .iter()
        .map(|e| (e.metadata.source, e.metadata.superstep))
        .collect();
    let expected = [
        (Source::Input, -1),
        (Source::Loop, 0),
        (Source::Update, 1),
        (Source::Loop, 2),
        (Source::Loop, 3),
    ];
    assert_eq!(places, expected);
}

// 54.
#[tokio::test]
async fn a_star_stops_at_every_node_and_each_stop_is_resumed_once() {
    for durability in ALL {
        let thread = line().thread(&MemoryStore::shared(), "t");
        let mut outcome = thread
            .run(Case::update())
            .pause_before("*")
            .durability(durability)
            .await
            .unwrap();
        let mut stops = Vec::new();
        while let Outcome::Stopped { next, .. } = &outcome {
            stops.push(next[0].to_string());
            outcome = thread
                .resume()
                .pause_before("*")
                .durability(durability)
                .await
                .unwrap();
        }
        assert_eq!(stops, ["a", "b", "c"], "{durability:?}");
        assert_eq!(outcome.done().unwrap().log.len(), 3);
    }
}

// 54, and 1.
#[tokio::test]
async fn a_breakpoint_at_a_node_that_is_not_there_is_an_error() {
    let thread = line().thread(&MemoryStore::shared(), "t");
    for run in [
        thread.run(Case::update()).pause_before("d"),
        thread.run(Case::update()).pause_after("a|b"),
    ] {
        assert!(matches!(run.await.unwrap_err(), Error::UnknownNode { .. }));
    }
    assert!(thread.history().await.unwrap().is_empty());
}

const WORK: Each<u32> = Each::new("work");

/// Each of `n` sends runs a subgraph in whose subgraph two questions are asked, one after the other.
fn deep(n: u32, runs: &Count) -> Graph<Case> {
    let inmost = Graph::<Case>::new("inmost")
        .node("q1", with(runs.clone(), ask))
        .node("q2", with(runs.clone(), ask))
        .start("q1")
        .edge("q1", "q2")
        .end("q2")
        .build()
        .unwrap();
    let middle = Graph::<Case>::new("middle")
        .node(
            "in",
            inmost.mapped(
                |c: &Case| Case::update().topic(c.topic.clone()),
                |c: Case| Case::update().log(c.log),
            ),
        )
        .start("in")
        .end("in")
        .build()
        .unwrap();
    Graph::<Case>::new("outer")
        .node("split", async |_: &Case, _: &Ctx| Ok(Case::update()))
        .each(
            WORK,
            middle.mapped_each(
                |i: u32, _: &Case| Case::update().topic(i.to_string()),
                |c: Case| log(format!("{} {}", c.topic, c.log.join(" "))),
            ),
        )
        .start("split")
        .branch("split", move |_| WORK.send_all(0..n), WORK)
        .end(WORK)
        .build()
        .unwrap()
}

// 55, 27, 28.
#[tokio::test]
async fn questions_two_levels_down_in_a_fan_out_are_answered_each_by_its_id() {
    for durability in ALL {
        let runs = count();
        let graph = deep(3, &runs);
        let thread = graph.thread(&MemoryStore::shared(), "t");
        let paused = thread
            .run(Case::update())
            .durability(durability)
            .await
            .unwrap();
        let open = paused.interrupts().to_vec();
        assert_eq!(
            open.iter().map(|q| &*q.node).collect::<Vec<_>>(),
            ["q1", "q1", "q1"]
        );
        let levels = |q: &Interrupt| {
            q.namespace
                .split('|')
                .map(|l| l.split(':').next().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert!(open.iter().all(|q| levels(q) == ["work", "in"]), "{open:?}");
        // Each question is placed by the task that asks it.
        let tasks = thread.snapshot(None).await.unwrap().unwrap().tasks;
        for (task, question) in tasks.iter().zip(&open) {
            assert_eq!(task.interrupts, std::slice::from_ref(question));
        }
        // One answer: its second question comes, the others have not run again.
        let paused = thread
            .answer(&open[1].id, "x")
            .durability(durability)
            .await
            .unwrap();
        let nodes: Vec<_> = paused.interrupts().iter().map(|q| &*q.node).collect();
        assert_eq!((nodes, hits(&runs)), (vec!["q1", "q2", "q1"], 3 + 2));
        // A map answers all that is open, twice.
        let answers = |paused: &Outcome<Case>| {
            paused
                .interrupts()
                .iter()
                .map(|q| (q.id.clone(), json!(*q.node)))
                .collect::<Vec<_>>()
        };
        let paused = thread
            .answers(answers(&paused))
            .durability(durability)
            .await
            .unwrap();
        assert_eq!(paused.state().log, ["1 q1: \"x\" q2: \"q2\""]);
        let done = thread
            .answers(answers(&paused))
            .durability(durability)
            .await
            .unwrap();
        assert_eq!(
            done.done().unwrap().log,
            [
                "0 q1: \"q1\" q2: \"q2\"",
                "1 q1: \"x\" q2: \"q2\"",
                "2 q1: \"q1\" q2: \"q2\""
            ]
        );
        assert_eq!(hits(&runs), 3 * 4, "{durability:?}");
    }
}

// 55. Several questions of one subgraph: one is answered, the others' tasks do not run again, also
// when one of them was answered before and asks again.
#[tokio::test]
async fn in_a_subgraph_too_only_the_answered_task_runs() {
    let runs = [count(), count()];
    let inner = Graph::<Case>::new("inner")
        .node(
            "a",
            with(
                runs[0].clone(),
                async |runs: &Count, _: &Case, ctx: &Ctx| {
                    hit(runs);
                    let sure: bool = ctx.interrupt("sure", "a?")?;
                    Ok(log(sure.to_string()))
                },
            ),
        )
        .node("b", with(runs[1].clone(), ask))
        .start(["a", "b"])
        .end(["a", "b"])
        .build()
        .unwrap();
    let graph = Graph::<Case>::new("outer")
        .node("sub", inner.shared())
        .start("sub")
        .end("sub")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let open = thread
        .run(Case::update())
        .await
        .unwrap()
        .interrupts()
        .to_vec();
    let paused = thread.answer(&open[0].id, "not a bool").await.unwrap();
    assert_eq!(paused.interrupts()[0].id, open[0].id);
    assert_eq!(runs.each_ref().map(hits), [2, 1]);
    let paused = thread.answer(&open[1].id, "b").await.unwrap();
    assert_eq!(paused.interrupts().len(), 1);
    assert_eq!(runs.each_ref().map(hits), [2, 2]);
    let done = thread.answer(&open[0].id, true).await.unwrap();
    assert_eq!(done.done().unwrap().log, ["true", "b: \"b\""]);
    assert_eq!(runs.each_ref().map(hits), [3, 2]);
}

// 56.
#[tokio::test]
async fn naming_the_newest_checkpoint_is_like_naming_none() {
    let runs = count();
    let thread = one(&runs).thread(&MemoryStore::shared(), "t");
    let id = thread.run(Case::update()).await.unwrap().interrupts()[0]
        .id
        .clone();
    let head = thread.history().await.unwrap()[0].id;
    let done = thread.answer(&id, 1).at(head).await.unwrap();
    assert_eq!(done.done().unwrap().log, ["a: 1"]);
    let sources: Vec<_> = thread
        .history()
        .await
        .unwrap()
        .iter()
        .map(|e| e.metadata.source)
        .collect();
    assert_eq!(sources, [Source::Loop, Source::Input]);
}

// 46, 67. The answer given is used again by another attempt.
#[tokio::test(start_paused = true)]
async fn a_retry_after_an_answer_does_not_ask_again() {
    let runs = count();
    let graph = Graph::<Case>::new("g")
        .node(
            "a",
            with(runs.clone(), async |runs: &Count, _: &Case, ctx: &Ctx| {
                let answer: String = ctx.interrupt("q", "?")?;
                match hit(runs) {
                    1 => Err(NodeError::msg("flaky")),
                    _ => Ok(log(format!("{answer} at attempt {}", ctx.attempt()))),
                }
            }),
        )
        .policy(
            "a",
            Policy {
                attempts: 2,
                ..Policy::default()
            },
        )
        .start("a")
        .end("a")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let id = thread.run(Case::update()).await.unwrap().interrupts()[0]
        .id
        .clone();
    let done = thread.answer(&id, "yes").await.unwrap();
    assert_eq!(done.done().unwrap().log, ["yes at attempt 2"]);
}

// 45.
#[tokio::test]
async fn a_question_without_a_store_fails_the_run() {
    let error = one(&count()).invoke(Case::update()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`a` asked a question, but the graph runs without a store and could never be resumed"
    );
}

// New input while a question is open: it is dropped, what siblings wrote stays.
#[tokio::test]
async fn new_input_drops_open_questions_and_keeps_what_siblings_wrote() {
    let runs = [count(), count(), count()];
    let thread = three(&runs).thread(&MemoryStore::shared(), "t");
    let first = thread.run(Case::update()).await.unwrap();
    let second = thread.run(log("again")).await.unwrap();
    assert_eq!(second.state().log, ["c", "again", "c"]);
    let ids = |o: &Outcome<Case>| {
        o.interrupts()
            .iter()
            .map(|q| q.id.clone())
            .collect::<Vec<_>>()
    };
    assert_ne!(ids(&first), ids(&second));
    let old = thread.answer(&ids(&first)[0], 1).await.unwrap_err();
    assert!(matches!(old, Error::UnknownInterrupt(_)));
}
