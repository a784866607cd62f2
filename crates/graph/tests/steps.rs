//! What a node may count on inside one task: steps done once, keys that stay, waiting for others.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use serde_json::json;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};
use tokio::sync::Notify;

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

fn single<M>(node: impl IntoNode<Case, M>) -> Graph<Case> {
    Graph::<Case>::new("single")
        .node("n", node)
        .start("n")
        .end("n")
        .build()
        .unwrap()
}

// 53, 46.
#[tokio::test]
async fn a_step_is_done_once_over_questions_failures_and_processes() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let (work, tries) = (Count::default(), Count::default());
        let graph = || {
            let counts = (work.clone(), tries.clone());
            single(with(
                counts,
                async |(work, tries): &(Count, Count), _: &Case, ctx: &Ctx| {
                    let n = ctx.step("work", async { Ok(hit(work)) }).await?;
                    let answer: String = ctx.interrupt("q", "?")?;
                    if hit(tries) == 1 {
                        return Err(NodeError::msg("after the answer"));
                    }
                    Ok(log(format!("{n} {answer}")))
                },
            ))
        };
        let store = MemoryStore::shared();
        let paused = graph()
            .thread(&store, "t")
            .run(Case::update())
            .durability(durability);
        let id = paused.await.unwrap().interrupts()[0].id.clone();
        let failed = graph()
            .thread(&store, "t")
            .answer(&id, "yes")
            .durability(durability)
            .await;
        assert_eq!(
            failed.unwrap_err().to_string(),
            "node `n` failed: after the answer"
        );
        let done = graph()
            .thread(&store, "t")
            .resume()
            .durability(durability)
            .await
            .unwrap();
        assert_eq!(done.done().unwrap().log, ["1 yes"]);
        assert_eq!(hits(&work), 1, "{durability:?}");
    }
}

// 53.
#[tokio::test(start_paused = true)]
async fn a_retry_finds_the_steps_of_the_attempt_before_also_without_a_store() {
    let work = Count::default();
    let graph = Graph::<Case>::new("g")
        .node(
            "n",
            with(work.clone(), async |work: &Count, _: &Case, ctx: &Ctx| {
                let n = ctx.step("work", async { Ok(hit(work)) }).await?;
                if ctx.attempt() < 3 {
                    return Err(NodeError::msg("again"));
                }
                Ok(log(format!("{n} at {}", ctx.attempt())))
            }),
        )
        .policy(
            "n",
            Policy {
                attempts: 3,
                ..Policy::default()
            },
        )
        .start("n")
        .end("n")
        .build()
        .unwrap();
    assert_eq!(graph.invoke(Case::update()).await.unwrap().log, ["1 at 3"]);
    let thread = graph.thread(&MemoryStore::shared(), "t");
    assert_eq!(
        thread.run(Case::update()).await.unwrap().state().log,
        ["2 at 3"]
    );
}

// 53. LangGraph's replay counts calls; a name that is used twice is told apart by order.
#[tokio::test]
async fn steps_of_the_same_name_are_told_apart_by_their_order() {
    let work = Count::default();
    let graph = single(with(
        work.clone(),
        async |work: &Count, _: &Case, ctx: &Ctx| {
            let mut all = Vec::new();
            for _ in 0..3 {
                all.push(
                    ctx.step("work", async { Ok(hit(work).to_string()) })
                        .await?,
                );
            }
            let answer: String = ctx.interrupt("q", "?")?;
            Ok(log(format!("{} {answer}", all.join(","))))
        },
    ));
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let id = thread.run(Case::update()).await.unwrap().interrupts()[0]
        .id
        .clone();
    assert_eq!(
        thread.answer(&id, "x").await.unwrap().done().unwrap().log,
        ["1,2,3 x"]
    );
}

#[tokio::test]
async fn a_failed_step_is_not_remembered_and_one_that_changed_its_type_is_an_error() {
    let work = Count::default();
    let graph = single(with(
        work.clone(),
        async |work: &Count, _: &Case, ctx: &Ctx| {
            if hit(work) == 1 {
                ctx.step::<u32>("a", async { Err(NodeError::msg("not yet")) })
                    .await?;
            }
            if hits(work) == 2 {
                ctx.step("a", async { Ok("text".to_owned()) }).await?;
                return Err(NodeError::msg("the second time"));
            }
            let n: u32 = ctx.step("a", async { Ok(1) }).await?;
            Ok(log(n.to_string()))
        },
    ));
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let texts = [
        thread.run(Case::update()).await.unwrap_err().to_string(),
        thread.resume().await.unwrap_err().to_string(),
        thread.resume().await.unwrap_err().to_string(),
    ];
    assert_eq!(
        texts,
        [
            "node `n` failed: not yet",
            "node `n` failed: the second time",
            "node `n` failed: the saved result of step `a` does not fit: invalid type: string \"text\", expected u32 at line 1 column 6",
        ]
    );
}

// A failure ends siblings, but one inside a step finishes and saves it (DESIGN 2.9).
#[tokio::test]
async fn a_sibling_inside_a_step_finishes_and_saves_it_when_the_run_fails() {
    let (inside, failed, work) = (
        Arc::new(Notify::new()),
        Arc::new(Notify::new()),
        Count::default(),
    );
    let graph = Graph::<Case>::new("g")
        .node(
            "steps",
            with(
                (inside.clone(), failed.clone(), work.clone()),
                async |(inside, failed, work): &(Arc<Notify>, Arc<Notify>, Count),
                       _: &Case,
                       ctx: &Ctx| {
                    let n = ctx
                        .step("work", async {
                            inside.notify_one();
                            failed.notified().await;
                            // By now the other node's failure has ended all but this step.
                            for _ in 0..100 {
                                tokio::task::yield_now().await;
                            }
                            Ok(hit(work))
                        })
                        .await?;
                    hit(work);
                    Ok(log(n.to_string()))
                },
            ),
        )
        .node(
            "fails",
            with(
                (inside, failed),
                async |(inside, failed): &(Arc<Notify>, Arc<Notify>), _: &Case, ctx: &Ctx| {
                    if ctx.thread() == "t" && inside_once(inside).await {
                        failed.notify_one();
                        return Err(NodeError::msg("down"));
                    }
                    Ok(log("up"))
                },
            ),
        )
        .start(["steps", "fails"])
        .end(["steps", "fails"])
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let error = thread.run(Case::update()).await.unwrap_err();
    assert_eq!(error.to_string(), "node `fails` failed: down");
    // The step was done and saved, what comes after it was not.
    assert_eq!(hits(&work), 1);
    let done = thread.resume().await.unwrap();
    assert_eq!(done.done().unwrap().log, ["1", "up"]);
    assert_eq!(hits(&work), 2);
}

/// Waits for the sibling the first time; it does not come by a second time.
async fn inside_once(inside: &Notify) -> bool {
    tokio::select! {
        biased;
        () = inside.notified() => true,
        () = async { for _ in 0..100 { tokio::task::yield_now().await } } => false,
    }
}

type Keys = Arc<Mutex<Vec<String>>>;

async fn keyed(keys: &Keys, _: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    keys.lock().unwrap().push(ctx.key("pay"));
    let answer: String = ctx.interrupt("q", "?")?;
    Ok(log(answer))
}

// 61, and DESIGN 2.8: a key stays over re-runs and updates, and is another one after a fork.
#[tokio::test]
async fn a_key_stays_the_same_when_a_task_runs_again_and_is_another_on_a_fork() {
    let keys = Keys::default();
    let graph = single(with(keys.clone(), keyed));
    let store = MemoryStore::shared();
    let thread = graph.thread(&store, "t");
    let first = thread.run(Case::update()).await.unwrap().interrupts()[0].clone();
    let paused_at = thread.history().await.unwrap()[0].id;
    thread.update(log("by hand")).await.unwrap();
    thread
        .answer(&first.id, "yes")
        .await
        .unwrap()
        .done()
        .unwrap();
    thread.fork(paused_at).await.unwrap();
    let forked = thread.resume().await.unwrap().interrupts()[0].clone();
    assert_ne!(forked.id, first.id);
    graph.thread(&store, "u").run(Case::update()).await.unwrap();
    let keys = keys.lock().unwrap().clone();
    assert_eq!(keys[0], keys[1]);
    assert_eq!(keys[0].len(), 32);
    assert_ne!(keys[0], keys[2]);
    assert_ne!(keys[0], keys[3]);
    assert_ne!(keys[2], keys[3]);
}

// DESIGN 2.14: an answer wakes a waiting task and is not kept.
#[tokio::test]
async fn a_wait_is_woken_by_any_answer_and_asks_again_under_the_same_id() {
    let (store_says, runs) = (Count::default(), Count::default());
    let graph = single(with(
        (store_says.clone(), runs.clone()),
        async |(decided, runs): &(Count, Count), _: &Case, ctx: &Ctx| {
            hit(runs);
            if hits(decided) == 0 {
                return ctx.wait("approval", json!({"action": 7}));
            }
            Ok(log("approved"))
        },
    ));
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let first = thread.run(Case::update()).await.unwrap().interrupts()[0].clone();
    assert_eq!(
        (&first.question, &*first.key),
        (&json!({"action": 7}), "approval")
    );
    let again = thread
        .answer(&first.id, json!(null))
        .await
        .unwrap()
        .interrupts()[0]
        .clone();
    assert_eq!(again, first);
    assert_eq!(hits(&runs), 2);
    // Without a new answer it is not woken again.
    thread.resume().await.unwrap();
    assert_eq!(hits(&runs), 2);
    hit(&store_says);
    let done = thread.answer(&first.id, "whatever").await.unwrap();
    assert_eq!(done.done().unwrap().log, ["approved"]);
}

const WAIT: Each<u32> = Each::new("wait");

// DESIGN 2.14, inside a subgraph: a wait that was woken before is not woken by another's answer.
#[tokio::test]
async fn waits_of_one_subgraph_are_woken_one_by_one() {
    let open: Arc<Mutex<Vec<u32>>> = Arc::default();
    let runs: Arc<Mutex<Vec<u32>>> = Arc::default();
    type Two = (Arc<Mutex<Vec<u32>>>, Arc<Mutex<Vec<u32>>>);
    let inner = Graph::<Case>::new("inner")
        .node("split", async |_: &Case, _: &Ctx| Ok(Case::update()))
        .each(
            WAIT,
            with(
                (open.clone(), runs.clone()),
                async |(open, runs): &Two, i: u32, _: &Case, ctx: &Ctx| {
                    runs.lock().unwrap().push(i);
                    if open.lock().unwrap().contains(&i) {
                        return Ok(log(i.to_string()));
                    }
                    ctx.wait("w", i)
                },
            ),
        )
        .start("split")
        .branch("split", |_| WAIT.send_all(0..3), WAIT)
        .end(WAIT)
        .build()
        .unwrap();
    let graph = single(inner.shared());
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let asked = thread
        .run(Case::update())
        .await
        .unwrap()
        .interrupts()
        .to_vec();
    assert_eq!(
        asked.iter().map(|q| q.question.clone()).collect::<Vec<_>>(),
        [json!(0), json!(1), json!(2)]
    );
    runs.lock().unwrap().clear();
    thread.answer(&asked[1].id, "look").await.unwrap();
    thread.answer(&asked[0].id, "look").await.unwrap();
    assert_eq!(*runs.lock().unwrap(), [1, 0]);
    open.lock().unwrap().extend([0, 1, 2]);
    thread
        .answers(asked.iter().map(|q| (q.id.clone(), json!(1))))
        .await
        .unwrap()
        .done()
        .unwrap();
    assert_eq!(runs.lock().unwrap().len(), 5);
}

// DESIGN 2.14.
#[tokio::test]
async fn a_task_knows_its_run_its_lease_its_context_and_its_place() {
    struct Tenant(&'static str);
    let graph = single(async |_: &Case, ctx: &Ctx| {
        let tenant = ctx.context::<Tenant>()?.0;
        Ok(log(format!(
            "{tenant} {} {} {} {} {:?}",
            ctx.run_id(),
            ctx.lease().epoch,
            ctx.thread(),
            ctx.superstep(),
            ctx.failure(),
        )))
    });
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let run = RunId::fresh();
    let start = || thread.run(Case::update()).context(Tenant("acme"));
    let first = start().run_id(run).await.unwrap().done().unwrap();
    assert_eq!(first.log, [format!("acme {run} 1 t 0 None")]);
    let run = RunId::fresh();
    let second = start().run_id(run).await.unwrap().done().unwrap();
    assert_eq!(second.log[1], format!("acme {run} 2 t 2 None"));
    let error = thread.run(Case::update()).context(5u8).await.unwrap_err();
    assert!(
        error.to_string().contains("the run has no context of type"),
        "{error}"
    );
}

#[tokio::test]
async fn a_step_whose_name_no_store_keeps_does_no_work() {
    let work = Count::default();
    let graph = single(with(
        work.clone(),
        async |work: &Count, _: &Case, ctx: &Ctx| {
            let name = "x".repeat(LONGEST_KEY + 1);
            ctx.step(&name, async { Ok(hit(work)) }).await?;
            Ok(log("done"))
        },
    ));
    let store = MemoryStore::shared();
    let error = graph.thread(&store, "t").run(Case::update()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "node `n` failed: a step's name or a note's key takes at most 1024 bytes, not 1025"
    );
    assert_eq!(hits(&work), 0);
}
