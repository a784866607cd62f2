//! Subgraphs that last: one state per thread, and where it stands after going back in time.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod nesting;

use nesting::*;
use paraph_graph::*;
use serde_json::json;

// 40.
#[tokio::test]
async fn a_plain_subgraph_starts_anew_in_each_run_and_a_persistent_one_goes_on_per_thread() {
    let store = MemoryStore::shared();
    let run = async |graph: &Graph<Outer>, thread: &str, turn: u32| {
        let thread = graph.thread(&store, thread);
        let input = Outer::update().turn(turn).replace_log(Vec::new());
        thread.run(input).await.unwrap().done().unwrap().log
    };
    let plain = calling(&counting(), false);
    assert_eq!(run(&plain, "plain", 1).await, ["turn 1"]);
    assert_eq!(run(&plain, "plain", 2).await, ["turn 2"]);

    let persistent = calling(&counting(), true);
    assert_eq!(run(&persistent, "p", 1).await, ["turn 1"]);
    assert_eq!(run(&persistent, "p", 2).await, ["turn 1 + turn 2"]);
    assert_eq!(run(&persistent, "other", 3).await, ["turn 3"]);
    assert_eq!(run(&persistent, "p", 4).await, ["turn 1 + turn 2 + turn 4"]);
}

// 40.
#[tokio::test]
async fn without_a_store_a_persistent_subgraph_starts_anew() {
    let graph = calling(&counting(), true);
    for turn in 1..3 {
        let state = graph.invoke(Outer::update().turn(turn)).await.unwrap();
        assert_eq!(state.log, [format!("turn {turn}")]);
    }
}

// 40.
#[tokio::test]
async fn two_persistent_nodes_of_one_graph_have_states_of_their_own() {
    let child = counting();
    let node = |name: &'static str| {
        child
            .mapped(
                move |_: &Outer| Inner::update().word(name),
                |i: Inner| log(format!("{} {}", i.seen[0], i.count)),
            )
            .persistent()
    };
    let graph = Graph::<Outer>::new("two")
        .node("a", node("a"))
        .node("b", node("b"))
        .start_branch(
            |o: &Outer| {
                if o.turn == 1 {
                    vec!["a"]
                } else {
                    vec!["a", "b"]
                }
            },
            ["a", "b"],
        )
        .end(["a", "b"])
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    thread.run(Outer::update().turn(1)).await.unwrap();
    let state = thread.run(Outer::update().turn(2)).await.unwrap();
    assert_eq!(state.state().log, ["a 1", "a 2", "b 1"]);
}

// 40. A persistent subgraph is one line of states; two calls at once would tear it.
#[tokio::test]
async fn a_persistent_subgraph_that_is_sent_to_twice_in_one_superstep_says_so() {
    const CHILD: Each<String> = Each::new("child");
    let slow = Graph::<Inner>::new("slow")
        .node("n", async |_: &Inner, _: &Ctx| {
            tokio::task::yield_now().await;
            Ok(seen("n"))
        })
        .start("n")
        .end("n")
        .build()
        .unwrap();
    let graph = Graph::<Outer>::new("g")
        .node("split", async |_: &Outer, _: &Ctx| Ok(Outer::update()))
        .each(
            CHILD,
            slow.mapped_each(
                |word: String, _: &Outer| Inner::update().word(word),
                |i: Inner| log(i.word),
            )
            .persistent(),
        )
        .start("split")
        .branch(
            "split",
            |o| CHILD.send_all((0..o.turn).map(|i| i.to_string())),
            CHILD,
        )
        .end(CHILD)
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    let one = graph.thread(&store, "one").run(Outer::update().turn(1));
    assert_eq!(one.await.unwrap().done().unwrap().log, ["0"]);
    let thread = graph.thread(&store, "two");
    let two = thread.run(Outer::update().turn(2)).await;
    // The one that finished is on record, and the other is told the same again.
    for error in [two.unwrap_err(), thread.resume().await.unwrap_err()] {
        assert_eq!(
            error.to_string(),
            "the persistent subgraph `child` was called twice in one superstep, but has one state for \
             the thread: call it once, or let it keep none"
        );
    }
    // One after the other, in one superstep each, they may.
    let again = thread.run(Outer::update().turn(1)).await.unwrap();
    assert_eq!(again.done().unwrap().log.last().unwrap(), "0");
}

fn asking(runs: Count) -> Graph<Inner> {
    Graph::<Inner>::new("asking")
        .node(
            "first",
            with(runs.clone(), async |runs: &Count, _: &Inner, _: &Ctx| {
                hit(runs);
                Ok(seen("first"))
            }),
        )
        .node("ask", async |i: &Inner, ctx: &Ctx| {
            let answer: String = ctx.interrupt("ask", format!("{}?", i.word))?;
            Ok(seen(answer))
        })
        .start("first")
        .edge("first", "ask")
        .end("ask")
        .build()
        .unwrap()
}

// 57.
#[tokio::test]
async fn a_persistent_subgraph_that_finished_asks_anew_when_it_is_called_again() {
    let runs = count();
    let graph = calling(&asking(runs.clone()), true);
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let mut ids = Vec::new();
    for turn in 1..=2 {
        let paused = thread.run(Outer::update().turn(turn)).await.unwrap();
        let open = paused.interrupts();
        assert_eq!(open[0].question, json!(format!("turn {turn}?")));
        ids.push(open[0].id.clone());
        let done = thread
            .answer(&open[0].id, format!("answer {turn}"))
            .await
            .unwrap();
        done.done().unwrap();
    }
    assert_ne!(ids[0], ids[1]);
    let state = thread.snapshot(None).await.unwrap().unwrap().state;
    assert_eq!(
        state.log,
        ["first + answer 1", "first + answer 1 + first + answer 2"]
    );
    assert_eq!(hits(&runs), 2);
}

// 63.
#[tokio::test]
async fn going_back_in_time_brings_a_persistent_subgraph_to_where_it_stood_then() {
    let graph = calling(&counting(), true);
    let thread = graph.thread(&MemoryStore::shared(), "t");
    for turn in 1..=3 {
        thread.run(Outer::update().turn(turn)).await.unwrap();
    }
    let history = thread.history().await.unwrap();
    let after_one = history.iter().rev().nth(1).unwrap().id;
    let again = thread
        .run(Outer::update().turn(9))
        .at(after_one)
        .await
        .unwrap();
    assert_eq!(again.state().log, ["turn 1", "turn 1 + turn 9"]);
    // And the branch goes on from itself.
    let more = thread.run(Outer::update().turn(10)).await.unwrap();
    assert_eq!(more.state().log[2], "turn 1 + turn 9 + turn 10");
    // Back before the first call of all.
    let input = history.last().unwrap().id;
    let anew = thread.resume().at(input).await.unwrap();
    assert_eq!(anew.done().unwrap().log, ["turn 1"]);
    // The old end is still what it was, and so is the way on from there.
    let old_end = history[0].id;
    let old = thread
        .run(Outer::update().turn(4))
        .at(old_end)
        .await
        .unwrap();
    assert_eq!(old.state().log[3], "turn 1 + turn 2 + turn 3 + turn 4");
}

// 63.
#[tokio::test]
async fn a_subgraph_three_levels_deep_goes_back_in_time_with_its_parents() {
    let middle = Graph::<Inner>::new("middle")
        .node(
            "deep",
            counting()
                .mapped(
                    |i: &Inner| Inner::update().word(i.word.clone()),
                    |i: Inner| seen(format!("{}={}", i.word, i.count)).count(i.count),
                )
                .persistent(),
        )
        .start("deep")
        .end("deep")
        .build()
        .unwrap();
    let graph = calling(&middle, true);
    let thread = graph.thread(&MemoryStore::shared(), "t");
    for turn in 1..=2 {
        thread.run(Outer::update().turn(turn)).await.unwrap();
    }
    let state = thread.snapshot(None).await.unwrap().unwrap().state;
    assert_eq!(state.log, ["turn 1=1", "turn 1=1 + turn 2=2"]);
    let history = thread.history().await.unwrap();
    let second_input = history[1].id;
    let again = thread.resume().at(second_input).await.unwrap();
    assert_eq!(*again.state(), *state);
    let first_end = history[2].id;
    let other = thread
        .run(Outer::update().turn(8))
        .at(first_end)
        .await
        .unwrap();
    assert_eq!(other.state().log, ["turn 1=1", "turn 1=1 + turn 8=2"]);
}

// 63.
#[tokio::test]
async fn an_older_snapshot_names_the_place_of_a_persistent_subgraph_as_it_was() {
    let graph = calling(&counting(), true);
    let thread = graph.thread(&MemoryStore::shared(), "t");
    for turn in 1..=3 {
        thread.run(Outer::update().turn(turn)).await.unwrap();
    }
    let history = thread.history().await.unwrap();
    let mut counts = Vec::new();
    // Newest first; the inputs are where the child is due.
    for input in history
        .iter()
        .filter(|e| e.metadata.source == Source::Input)
    {
        let snapshot = thread.snapshot(Some(input.id)).await.unwrap().unwrap();
        let child = snapshot.tasks[0].child.clone();
        counts.push(
            match child.and_then(|c| Some((c.namespace, c.checkpoint?))) {
                None => json!(null),
                Some((namespace, at)) => {
                    let inner = thread
                        .subgraph(&namespace, Some(at))
                        .await
                        .unwrap()
                        .unwrap();
                    inner.state["count"].clone()
                }
            },
        );
    }
    assert_eq!(counts, [json!(3), json!(1), json!(null)]);
}

// 40. What was written to a finished persistent subgraph by hand is there at its next call.
#[tokio::test]
async fn a_write_to_a_persistent_subgraph_between_two_calls_is_seen_by_the_next() {
    let graph = calling(&counting(), true);
    let thread = graph.thread(&MemoryStore::shared(), "t");
    thread.run(Outer::update().turn(1)).await.unwrap();
    let update = json!({"count": 10});
    thread.update_subgraph("child", update, None).await.unwrap();
    let state = thread.run(Outer::update().turn(2)).await.unwrap();
    assert_eq!(state.state().total, 11);
}
