//! Graphs and states that were written carelessly: panics outside of nodes, values that cannot be
//! written, nesting without an end, very many tasks and questions.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::json;
use std::sync::{Arc, OnceLock};

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// A value that is written as its number, refuses to be written as 1, panics as 2.
#[derive(Clone, Debug, Default, PartialEq)]
struct Odd(u8);

impl Serialize for Odd {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> std::result::Result<Z::Ok, Z::Error> {
        match self.0 {
            1 => Err(ser::Error::custom("it will not be written")),
            2 => panic!("writing panics"),
            n => serializer.serialize_u8(n),
        }
    }
}

impl<'d> Deserialize<'d> for Odd {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> std::result::Result<Odd, D::Error> {
        match u8::deserialize(deserializer)? {
            3 => Err(de::Error::custom("it will not be read")),
            4 => panic!("reading panics"),
            n => Ok(Odd(n)),
        }
    }
}

fn touchy(sum: &mut u64, n: u64) -> Change {
    assert_ne!(n, 13, "reducing panics");
    *sum += n;
    Change::Replaced
}

#[derive(State, Clone, Default, Debug, PartialEq, JsonSchema)]
struct Case {
    #[schemars(with = "u8")]
    odd: Odd,
    #[reduce(touchy)]
    sum: u64,
    #[reduce(append)]
    log: Vec<u64>,
}

const WORK: Each<Odd> = Each::new("work");
const COUNT: Each<u64> = Each::new("count");

/// `first` writes `odd` and `sum`; its branch sends a payload, panics, or ends.
fn graph(write: u8, sum: u64, send: Option<u8>) -> Graph<Case> {
    Graph::<Case>::new("odd")
        .node(
            "first",
            with(
                (write, sum),
                async |(write, sum): &(u8, u64), _: &Case, _: &Ctx| {
                    Ok(Case::update().odd(Odd(*write)).sum(*sum))
                },
            ),
        )
        .each(WORK, async |_: Odd, _: &Case, _: &Ctx| Ok(Case::update()))
        .start("first")
        .branch(
            "first",
            move |_| match send {
                Some(9) => panic!("choosing panics"),
                Some(n) => WORK.send(Odd(n)).into(),
                None => Goto::from(END),
            },
            [WORK.name(), END],
        )
        .end(WORK)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_panic_outside_of_a_node_ends_the_run_with_an_error_and_leaves_the_thread_usable() {
    let table = [
        (graph(0, 13, None), "reducing panics"),
        (graph(0, 0, Some(9)), "choosing panics"),
        (graph(0, 0, Some(2)), "writing panics"),
        (graph(2, 0, None), "writing panics"),
    ];
    for (bad, words) in table {
        for durability in ALL {
            let store = MemoryStore::shared();
            let thread = bad.thread(&store, "t");
            let run = thread.run(Case::update().log([1])).durability(durability);
            let mut stream =
                run.stream([Mode::Values, Mode::Updates, Mode::Tasks, Mode::Checkpoints]);
            while stream.next().await.is_some() {}
            let error = stream.outcome().await.unwrap_err();
            let text = error.to_string();
            assert!(
                matches!(error, Error::Panicked(_)) && text.contains(words),
                "{text}"
            );
            let good = graph(0, 1, None).thread(&store, "t");
            let done = good.run(Case::update().log([2])).await.unwrap();
            assert_eq!(done.state().sum, 1, "{words} {durability:?}");
        }
    }
    let error = graph(0, 13, None).invoke(Case::update()).await.unwrap_err();
    assert!(matches!(error, Error::Panicked(_)), "{error}");
}

#[tokio::test]
async fn a_value_that_panics_only_in_the_answer_of_a_served_graph_is_an_error_too() {
    let graph: Arc<dyn AnyGraph> = Arc::new(graph(2, 0, None));
    let outcome = graph.start(None, Request::new(AnyAsk::Input(json!({}))));
    let outcome = outcome.unwrap().outcome().await;
    let error = outcome.unwrap_err();
    assert!(
        matches!(&error, Error::Panicked(words) if words == "writing panics"),
        "{error}"
    );
}

#[tokio::test]
async fn a_payload_that_panics_when_it_is_read_fails_its_task() {
    for (payload, words) in [(3, "it will not be read"), (4, "panicked: reading panics")] {
        let error = graph(0, 0, Some(payload)).invoke(Case::update()).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("node `work` failed: ") && error.contains(words),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_value_that_cannot_be_written_is_an_error_that_names_its_channel() {
    for durability in ALL {
        let thread = graph(1, 0, None).thread(&MemoryStore::shared(), "t");
        let error = thread
            .run(Case::update())
            .durability(durability)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "channel `odd`: it will not be written");
    }
}

/// A cache key is asked for beside the node's own code, in a task of the runtime.
#[tokio::test]
async fn a_panic_in_one_of_several_tasks_outside_its_node_is_an_error_too() {
    let idle = async |_: &Case, _: &Ctx| Ok(Case::update());
    let graph = Graph::<Case>::new("keys")
        .node("a", idle)
        .node("b", idle)
        .policy_for_all(Policy {
            cache: Some(std::time::Duration::from_secs(60)),
            ..Policy::default()
        })
        .cache_key("b", |_: &Case| -> u64 { panic!("the key panics") })
        .start(["a", "b"])
        .end("a")
        .end("b")
        .build()
        .unwrap();
    let error = graph.invoke(Case::update()).await.unwrap_err();
    assert!(
        matches!(&error, Error::Panicked(words) if words == "the key panics"),
        "{error}"
    );
}

/// A graph in so many others.
fn nested(levels: usize) -> std::result::Result<Graph<Case>, Error> {
    let inner = Graph::<Case>::new("leaf")
        .node("n", async |_: &Case, _: &Ctx| Ok(Case::update().sum(1)))
        .start("n")
        .end("n")
        .build();
    (1..levels).fold(inner, |inner, _| {
        Graph::<Case>::new("around")
            .node("n", inner?.shared())
            .start("n")
            .end("n")
            .build()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_levels_of_subgraphs_run_on_the_stack_of_a_worker() {
    // In a task: the test's own thread may have another stack.
    let run = tokio::spawn(async {
        let graph = nested(100).unwrap();
        assert!(graph.drawing().mermaid(true).contains("n"));
        let plain = graph.invoke(Case::update()).await.unwrap();
        let thread = graph.thread(&MemoryStore::shared(), "t");
        let saved = thread.run(Case::update()).await.unwrap();
        (plain.sum, saved.state().sum)
    });
    assert_eq!(run.await.unwrap(), (1, 1));
}

#[test]
fn more_levels_are_refused_when_the_graph_is_built() {
    let error = nested(101).err().unwrap().to_string();
    assert!(
        error.contains("nested 101 levels deep, more than 100"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_that_calls_itself_for_ever_is_stopped() {
    type Itself = Arc<OnceLock<Graph<Case>>>;
    let itself = Itself::default();
    let graph = Graph::<Case>::new("endless")
        .node(
            "again",
            with(
                itself.clone(),
                async |itself: &Itself, _: &Case, ctx: &Ctx| {
                    let graph = itself.get().unwrap();
                    let inner = ctx.call("itself", graph, Case::update());
                    // The future of a function that calls itself has to be on the heap.
                    let inner: futures::future::BoxFuture<'_, _> = Box::pin(inner);
                    Ok(Case::update().log([inner.await?.sum]))
                },
            ),
        )
        .start("again")
        .end("again")
        .build()
        .unwrap();
    assert!(itself.set(graph.clone()).is_ok());
    for store in [None, Some(MemoryStore::shared())] {
        let graph = graph.clone();
        let run = tokio::spawn(async move {
            match store {
                None => graph.invoke(Case::update()).await.map(|_| ()),
                Some(store) => graph
                    .thread(&store, "t")
                    .run(Case::update())
                    .await
                    .map(|_| ()),
            }
        });
        let error = run.await.unwrap().unwrap_err();
        assert!(
            matches!(error, Error::TooDeep { limit: 100, .. }),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subgraph_on_a_stack_of_its_own_is_cancelled_with_its_run() {
    let waits = Arc::new(tokio::sync::Notify::new());
    let begun = waits.clone();
    let mut graph = Graph::<Case>::new("leaf")
        .node(
            "n",
            with(
                begun,
                async |begun: &Arc<tokio::sync::Notify>, _: &Case, _: &Ctx| {
                    begun.notify_one();
                    std::future::pending::<()>().await;
                    Ok(Case::update())
                },
            ),
        )
        .start("n")
        .end("n")
        .build()
        .unwrap();
    for _ in 0..9 {
        let around = Graph::<Case>::new("around").node("n", graph.shared());
        graph = around.start("n").end("n").build().unwrap();
    }
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let start = thread.run(Case::update());
    let control = start.control();
    let run = tokio::spawn(start.into_future());
    waits.notified().await;
    control.request_cancel(CancelReason::User);
    let error = run.await.unwrap().unwrap_err();
    assert!(
        matches!(error, Error::Cancelled(CancelReason::User)),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_tasks_and_a_thousand_questions_are_one_superstep_each() {
    let graph = Graph::<Case>::new("many")
        .node("split", async |_: &Case, _: &Ctx| Ok(Case::update()))
        .each(COUNT, async |n: u64, _: &Case, _: &Ctx| {
            Ok(Case::update().log([n]))
        })
        .start("split")
        .branch("split", |_| COUNT.send_all(0..10_000), COUNT)
        .end(COUNT)
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let done = thread.run(Case::update()).await.unwrap();
    assert_eq!(done.state().log, (0..10_000).collect::<Vec<u64>>());

    let graph = Graph::<Case>::new("asking")
        .node("split", async |_: &Case, _: &Ctx| Ok(Case::update()))
        .each(COUNT, async |n: u64, _: &Case, ctx: &Ctx| {
            let answer: u64 = ctx.interrupt("more", n)?;
            Ok(Case::update().log([answer]))
        })
        .start("split")
        .branch("split", |_| COUNT.send_all(0..1_000), COUNT)
        .end(COUNT)
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Case::update()).await.unwrap();
    let answers = paused.interrupts().iter().rev().map(|asked| {
        let twice = asked.question.as_u64().unwrap() * 2;
        (asked.id.clone(), twice.into())
    });
    let done = thread.answers(answers).await.unwrap();
    let expected: Vec<u64> = (0..1_000).map(|n| n * 2).collect();
    assert_eq!(done.state().log, expected);
}
