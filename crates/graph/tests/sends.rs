//! Sends: one task per payload, in the order sent, each with its own limits, questions and subgraph.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Report {
    docs: Vec<String>,
    #[reduce(append)]
    log: Vec<String>,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Part {
    n: u64,
    of: String,
}

const PART: Each<Part> = Each::new("part");
const WORK: Each<u64> = Each::new("work");

async fn log(_: &Report, ctx: &Ctx) -> Result<Update<Report>> {
    Ok(Report::update().log([ctx.node().to_owned()]))
}

async fn idle(_: &Report, _: &Ctx) -> Result<Update<Report>> {
    Ok(Report::update())
}

async fn work(n: u64, _: &Report, _: &Ctx) -> Result<Update<Report>> {
    // The first one sent is the last to finish.
    tokio::time::sleep(Duration::from_secs(10_u64.saturating_sub(n))).await;
    Ok(Report::update().log([n.to_string()]))
}

fn graph() -> Builder<Report> {
    Graph::<Report>::new("report")
}

// 25.
#[tokio::test(start_paused = true)]
async fn each_payload_is_a_task_and_results_come_in_the_order_sent() {
    let graph = graph()
        .node("split", idle)
        .each(WORK, work)
        .start("split")
        .branch("split", |_| WORK.send_all([3, 1, 2, 1]), WORK)
        .end(WORK)
        .build()
        .unwrap();
    let state = graph.invoke(Report::update()).await.unwrap();
    assert_eq!(state.log, ["3", "1", "2", "1"]);
}

// 25.
#[tokio::test]
async fn a_payload_is_any_type_and_the_node_sees_the_state_too() {
    async fn part(part: Part, report: &Report, _: &Ctx) -> Result<Update<Report>> {
        let Part { n, of } = part;
        Ok(Report::update().log([format!("{n} of {of}: {}", report.docs[n as usize])]))
    }
    let graph = graph()
        .each(PART, part)
        .start_branch(
            |r| {
                PART.send_all((0..r.docs.len() as u64).map(|n| Part {
                    n,
                    of: "docs".to_owned(),
                }))
            },
            PART,
        )
        .end(PART)
        .build()
        .unwrap();
    let docs = ["x".to_owned(), "y".to_owned()];
    let state = graph.invoke(Report::update().docs(docs)).await.unwrap();
    assert_eq!(state.log, ["0 of docs: x", "1 of docs: y"]);
}

// 25.
#[tokio::test]
async fn a_payload_that_does_not_fit_its_node_fails_that_task() {
    const AS_TEXT: Each<String> = Each::new("work");
    let graph = graph()
        .each(WORK, work)
        .start_branch(|_| AS_TEXT.send("seven".to_owned()), WORK)
        .end(WORK)
        .build()
        .unwrap();
    let error = graph.invoke(Report::update()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "node `work` failed: the payload does not fit: invalid type: string \"seven\", expected u64 at line 1 column 7"
    );
}

// 25.
#[tokio::test]
async fn a_payload_to_a_plain_node_and_an_each_node_without_one_are_refused() {
    const TO_PLAIN: Each<u64> = Each::new("plain");
    let to = |target: fn() -> Target| {
        graph()
            .node("plain", log)
            .each(WORK, work)
            .start_branch(move |_| target(), ["plain", WORK.name()])
            .end(["plain", WORK.name()])
            .build()
            .unwrap()
    };
    for (target, name) in [
        ((|| TO_PLAIN.send(1)) as fn() -> Target, "plain"),
        (|| "work".into(), "work"),
    ] {
        let error = to(target).invoke(Report::update()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "`__start__` went to `{name}`, which it did not declare (declared: plain, work)"
            )
        );
    }
}

// 26.
#[tokio::test(start_paused = true)]
async fn plain_targets_come_before_sends_whether_a_branch_or_a_command_chose_them() {
    async fn choose(_: &Report, _: &Ctx) -> Result<Command<Report>> {
        Ok(Command::goto(WORK.send(3))
            .and_goto("plain")
            .and_goto_all(WORK.send_all([1, 2])))
    }
    let by_command = graph()
        .node("choose", choose)
        .each(WORK, work)
        .node("plain", log)
        .start("choose")
        .commands("choose", [WORK.name(), "plain"]);
    let by_branch = graph()
        .node("choose", idle)
        .each(WORK, work)
        .node("plain", log)
        .start("choose")
        .branch(
            "choose",
            |_| vec![WORK.send(3), "plain".into(), WORK.send(1), WORK.send(2)],
            [WORK.name(), "plain"],
        );
    for builder in [by_command, by_branch] {
        let graph = builder.end([WORK.name(), "plain"]).build().unwrap();
        let state = graph.invoke(Report::update()).await.unwrap();
        assert_eq!(state.log, ["plain", "3", "1", "2"]);
    }
}

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Inner {
    topic: String,
    #[reduce(append)]
    notes: Vec<String>,
}

const RESEARCH: Each<String> = Each::new("research");

/// A subgraph that asks about its topic, after a first step that counts.
fn asking(ran: &Arc<AtomicUsize>) -> Builder<Report> {
    async fn prepare(ran: &Arc<AtomicUsize>, i: &Inner, _: &Ctx) -> Result<Update<Inner>> {
        ran.fetch_add(1, Ordering::SeqCst);
        Ok(Inner::update().notes([format!("prepared {}", i.topic)]))
    }
    async fn ask(i: &Inner, ctx: &Ctx) -> Result<Update<Inner>> {
        let answer: String = ctx.interrupt("which", &i.topic)?;
        Ok(Inner::update().notes([format!("{}={answer}", i.topic)]))
    }
    let inner = Graph::<Inner>::new("inner")
        .node("prepare", with(ran.clone(), prepare))
        .node("ask", ask)
        .start("prepare")
        .edge("prepare", "ask")
        .end("ask")
        .build()
        .unwrap();
    graph()
        .each(
            RESEARCH,
            inner.mapped_each(
                |topic: String, _: &Report| Inner::update().topic(topic),
                |i: Inner| Report::update().log([i.notes.join(" ")]),
            ),
        )
        .start_branch(|r: &Report| RESEARCH.send_all(r.docs.clone()), RESEARCH)
        .end(RESEARCH)
}

// 27.
#[tokio::test]
async fn five_sends_to_a_subgraph_ask_five_questions_and_one_map_answers_them_all() {
    let ran = Arc::new(AtomicUsize::new(0));
    let graph = asking(&ran).build().unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let topics = ["a", "b", "c", "d", "e"];
    let input = Report::update().docs(topics.map(str::to_owned));
    let outcome = thread.run(input).await.unwrap();
    let asked = outcome.interrupts();
    let questions: Vec<_> = asked.iter().map(|q| q.question.clone()).collect();
    assert_eq!(questions, topics.map(|t| json!(t)));
    let answers: BTreeMap<_, _> = asked
        .iter()
        .map(|q| {
            (
                q.id.clone(),
                json!(q.question.as_str().unwrap().to_uppercase()),
            )
        })
        .collect();
    assert_eq!(answers.len(), 5, "every question has an id of its own");

    // Each subgraph has its own namespace and its own state.
    let tasks = thread.snapshot(None).await.unwrap().unwrap().tasks;
    for (task, topic) in tasks.iter().zip(topics) {
        let namespace = &task.child.as_ref().unwrap().namespace;
        assert_eq!(*namespace, format!("research:{}", task.id));
        let child = thread.subgraph(namespace, None).await.unwrap().unwrap();
        assert_eq!(
            *child.state,
            json!({"topic": topic, "notes": [format!("prepared {topic}")]})
        );
    }
    let state = thread.answers(answers).await.unwrap().done().unwrap();
    let expected = topics.map(|t| format!("prepared {t} {t}={}", t.to_uppercase()));
    assert_eq!(state.log, expected);
    assert_eq!(ran.load(Ordering::SeqCst), 5, "no subgraph began twice");
}

// 27, 28, 49.
#[tokio::test]
async fn questions_of_sends_are_answered_one_by_one_in_any_order() {
    let ran = Arc::new(AtomicUsize::new(0));
    let store = MemoryStore::shared();
    let docs = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
    let first = asking(&ran).build().unwrap().thread(&store, "t");
    let mut open = first
        .run(Report::update().docs(docs))
        .await
        .unwrap()
        .interrupts()
        .to_vec();
    for topic in ["b", "c"] {
        // Each time from a graph built anew, as in another process.
        let thread = asking(&ran).build().unwrap().thread(&store, "t");
        let place = open.iter().position(|q| q.question == topic).unwrap();
        let id = open.remove(place).id;
        let outcome = thread.answer(&id, topic.to_uppercase()).await.unwrap();
        assert_eq!(outcome.interrupts(), open);
    }
    let thread = asking(&ran).build().unwrap().thread(&store, "t");
    let state = thread.answer(&open[0].id, "A").await.unwrap().done();
    assert_eq!(
        state.unwrap().log,
        ["prepared a a=A", "prepared b b=B", "prepared c c=C"]
    );
    assert_eq!(ran.load(Ordering::SeqCst), 3);
}

// 28.
#[tokio::test]
async fn sends_that_had_finished_do_not_run_again_when_a_sibling_is_answered() {
    let runs = Arc::new(AtomicUsize::new(0));
    async fn count(
        runs: &Arc<AtomicUsize>,
        n: u64,
        _: &Report,
        ctx: &Ctx,
    ) -> Result<Update<Report>> {
        runs.fetch_add(1, Ordering::SeqCst);
        if n == 1 {
            let answer: u64 = ctx.interrupt("one", "how many?")?;
            return Ok(Report::update().log([format!("answer {answer}")]));
        }
        Ok(Report::update().log([n.to_string()]))
    }
    let graph = graph()
        .each(WORK, with(runs.clone(), count))
        .start_branch(|_| WORK.send_all([0, 1, 2]), WORK)
        .end(WORK)
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let outcome = thread.run(Report::update()).await.unwrap();
    assert_eq!(
        outcome.state().log,
        ["0", "2"],
        "finished siblings are shown"
    );
    let id = outcome.interrupts()[0].id.clone();
    let state = thread.answer(&id, 7).await.unwrap().done().unwrap();
    assert_eq!(state.log, ["0", "answer 7", "2"]);
    assert_eq!(runs.load(Ordering::SeqCst), 4);
}

// 29, ours: the branch is asked once, since all tasks of a node see the same state.
#[tokio::test(start_paused = true)]
async fn a_branch_after_sends_is_asked_once_and_its_target_runs_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let graph = graph()
        .each(WORK, work)
        .node("sum", log)
        .start_branch(|_| WORK.send_all([1, 2, 3]), WORK)
        .branch(
            WORK,
            move |_| {
                counter.fetch_add(1, Ordering::SeqCst);
                "sum"
            },
            ["sum"],
        )
        .end("sum")
        .build()
        .unwrap();
    let state = graph.invoke(Report::update()).await.unwrap();
    assert_eq!(state.log, ["1", "2", "3", "sum"]);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

// 29.
#[tokio::test(start_paused = true)]
async fn an_edge_after_sends_fires_once_and_commands_of_sends_go_their_own_ways() {
    let edge = graph()
        .each(WORK, work)
        .node("sum", log)
        .start_branch(|_| WORK.send_all([1, 2, 3]), WORK)
        .edge(WORK, "sum")
        .end("sum")
        .build()
        .unwrap();
    let state = edge.invoke(Report::update()).await.unwrap();
    assert_eq!(state.log, ["1", "2", "3", "sum"]);

    const STAGE: Each<(u64, u64)> = Each::new("stage");
    async fn stage((n, left): (u64, u64), _: &Report, _: &Ctx) -> Result<Command<Report>> {
        let update = Report::update().log([format!("{n}/{left}")]);
        let next = match left {
            0 => "sum".into(),
            left => STAGE.send((n, left - 1)),
        };
        Ok(Command::update(update).and_goto(next))
    }
    let own = graph()
        .each(STAGE, stage)
        .node("sum", log)
        .start_branch(|_| STAGE.send_all([(1, 0), (2, 1), (3, 2)]), STAGE)
        .commands(STAGE, [STAGE.name(), "sum"])
        .end("sum")
        .build()
        .unwrap();
    let state = own.invoke(Report::update()).await.unwrap();
    assert_eq!(
        state.log,
        [
            "1/0", "2/1", "3/2", "sum", "2/0", "3/1", "sum", "3/0", "sum"
        ]
    );
}

#[derive(Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

// 30.
#[tokio::test(start_paused = true)]
async fn no_more_tasks_run_at_once_than_allowed() {
    async fn measure(gauge: &Arc<Gauge>, n: u64, _: &Report, _: &Ctx) -> Result<Update<Report>> {
        let now = gauge.now.fetch_add(1, Ordering::SeqCst) + 1;
        gauge.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(10)).await;
        gauge.now.fetch_sub(1, Ordering::SeqCst);
        Ok(Report::update().log([n.to_string()]))
    }
    for (limit, expected) in [
        (Some(1), 1),
        (Some(3), 3),
        (None, 20),
        (Some(0), 1),
        (Some(usize::MAX), 20),
    ] {
        let gauge = Arc::new(Gauge::default());
        let graph = graph()
            .each(WORK, with(gauge.clone(), measure))
            .start_branch(|_| WORK.send_all(0..20), WORK)
            .end(WORK)
            .build()
            .unwrap();
        let mut run = graph.run(Report::update());
        if let Some(limit) = limit {
            run = run.max_concurrency(limit);
        }
        let state = run.await.unwrap().done().unwrap();
        assert_eq!(state.log.len(), 20);
        assert_eq!(gauge.most.load(Ordering::SeqCst), expected, "{limit:?}");
    }
}

/// A graph whose one send takes `takes` and may take `own`, where its node may take `policy`.
fn timed(policy: u64, own: Option<u64>) -> Graph<Report> {
    let send = move || {
        let target = WORK.send(0);
        match own {
            Some(own) => target.timeout(Duration::from_secs(own)),
            None => target,
        }
    };
    let limit = Policy {
        timeout: Some(Duration::from_secs(policy)),
        ..Policy::default()
    };
    graph()
        .each(WORK, work)
        .start_branch(move |_| send(), WORK)
        .policy(WORK, limit)
        .end(WORK)
        .build()
        .unwrap()
}

// 31.
#[tokio::test(start_paused = true)]
async fn the_time_limit_of_a_send_goes_before_that_of_its_node() {
    let table = [
        (5, None, Err("timed out after 5s")),
        (5, Some(20), Ok(())),
        (20, Some(5), Err("timed out after 5s")),
        (20, None, Ok(())),
    ];
    for (policy, own, expected) in table {
        let result = timed(policy, own).invoke(Report::update()).await;
        let expected = expected.map_err(|e| format!("node `work` failed: {e}"));
        assert_eq!(
            result.map(drop).map_err(|e| e.to_string()),
            expected,
            "{policy} {own:?}"
        );
    }
}

// 31.
#[tokio::test(start_paused = true)]
async fn the_time_limit_of_a_send_is_saved_with_it() {
    for (policy, own, expected) in [
        (5, Some(20), "0".to_owned()),
        (
            20,
            Some(5),
            "node `work` failed: timed out after 5s".to_owned(),
        ),
    ] {
        let store = MemoryStore::shared();
        let before = timed(policy, own).thread(&store, "t");
        let stopped = before.run(Report::update()).pause_before(WORK).await;
        assert!(matches!(stopped, Ok(Outcome::Stopped { .. })));
        // The other process would itself send without a limit.
        let after = timed(policy, None).thread(&store, "t");
        let result = after.resume().await.and_then(Outcome::done);
        let shown = result.map_or_else(|e| e.to_string(), |s| s.log.join(""));
        assert_eq!(shown, expected);
    }
}

// 25.
#[tokio::test]
async fn payloads_survive_a_pause_and_stand_in_the_snapshot() {
    async fn fail_once(
        failed: &Arc<AtomicUsize>,
        part: Part,
        _: &Report,
        _: &Ctx,
    ) -> Result<Update<Report>> {
        if part.n == 1 && failed.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(NodeError::msg("first time"));
        }
        Ok(Report::update().log([format!("{}{}", part.of, part.n)]))
    }
    let failed = Arc::new(AtomicUsize::new(0));
    let part = |n| Part {
        n,
        of: "p".to_owned(),
    };
    let graph = graph()
        .each(PART, with(failed.clone(), fail_once))
        .start_branch(move |_| PART.send_all([0, 1, 2].map(part)), PART)
        .end(PART)
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let error = thread.run(Report::update()).pause_before(PART).await;
    assert!(matches!(error, Ok(Outcome::Stopped { .. })));
    let error = thread.resume().await.unwrap_err();
    assert_eq!(error.to_string(), "node `part` failed: first time");
    let saved = thread.snapshot(None).await.unwrap().unwrap();
    let payloads: Vec<_> = saved
        .tasks
        .iter()
        .map(|t| t.payload.clone().unwrap())
        .collect();
    assert_eq!(payloads, [0, 1, 2].map(|n| json!({"n": n, "of": "p"})));
    let state = thread.resume().await.unwrap().done().unwrap();
    assert_eq!(state.log, ["p0", "p1", "p2"]);
}

// 19, 25.
#[tokio::test]
async fn a_join_of_sends_and_a_node_is_reached_once_by_all_the_sends_together() {
    async fn quick(n: u64, _: &Report, _: &Ctx) -> Result<Update<Report>> {
        Ok(Report::update().log([n.to_string()]))
    }
    let graph = graph()
        .node("before", log)
        .node("other", log)
        .each(WORK, quick)
        .node("sum", log)
        .start(["before", "other"])
        .branch("before", |_| WORK.send_all([1, 2, 3]), WORK)
        .join(["other", WORK.name()], "sum")
        .end("sum")
        .build()
        .unwrap();
    let state = graph.invoke(Report::update()).await.unwrap();
    assert_eq!(state.log, ["before", "other", "1", "2", "3", "sum"]);
}
