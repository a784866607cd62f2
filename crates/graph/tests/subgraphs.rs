//! Graphs inside graphs: what they start from, what they hand back, where they go on.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod nesting;

use nesting::*;
use paraph_graph::*;
use serde_json::json;

// 39.
#[tokio::test]
async fn a_subgraph_over_the_same_state_sees_it_all_and_hands_back_only_its_own_changes() {
    let inner = Graph::<Outer>::new("inner")
        .node("s1", async |o: &Outer, _: &Ctx| {
            Ok(log(format!("s1 saw {}", o.log.join(","))))
        })
        .node("s2", async |o: &Outer, _: &Ctx| {
            Ok(log(format!("s2 saw {}", o.log.len())))
        })
        .start("s1")
        .edge("s1", "s2")
        .end("s2")
        .build()
        .unwrap();
    let graph = Graph::<Outer>::new("outer")
        .node("sub", inner.shared())
        .node("after", async |_: &Outer, _: &Ctx| Ok(log("after")))
        .start("sub")
        .edge("sub", "after")
        .end("after")
        .build()
        .unwrap();
    let expected = ["i", "s1 saw i", "s2 saw 2", "after"];
    assert_eq!(graph.invoke(log("i")).await.unwrap().log, expected);
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let state = thread.run(log("i")).await.unwrap().done().unwrap();
    assert_eq!(state.log, expected);
}

// 39.
#[tokio::test]
async fn a_subgraph_over_another_state_is_mapped_in_and_out() {
    let graph = calling(&counting(), false);
    let state = graph.invoke(Outer::update().turn(3)).await.unwrap();
    assert_eq!(
        state,
        Outer {
            turn: 3,
            log: vec!["turn 3".to_owned()],
            total: 1
        }
    );
}

// 41.
#[tokio::test]
async fn a_subgraph_in_a_loop_starts_anew_each_time_and_a_persistent_one_goes_on() {
    for (persistent, expected) in [(false, ["1", "1", "1"]), (true, ["1", "2", "3"])] {
        let node = counting().mapped(
            |_: &Outer| Inner::update(),
            |i: Inner| log(i.count.to_string()),
        );
        let graph = Graph::<Outer>::new("loop");
        let graph = if persistent {
            graph.node("child", node.persistent())
        } else {
            graph.node("child", node)
        };
        let graph = graph
            .start("child")
            .branch(
                "child",
                |o| if o.log.len() < 3 { "child" } else { END },
                ["child", END],
            )
            .build()
            .unwrap();
        let thread = graph.thread(&MemoryStore::shared(), "t");
        let state = thread.run(Outer::update()).await.unwrap();
        assert_eq!(state.state().log, expected, "persistent: {persistent}");
    }
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

// 41.
#[tokio::test]
async fn two_calls_in_one_node_are_two_subgraphs_and_a_finished_one_is_not_run_again() {
    let (first, second) = (count(), count());
    let graphs = (asking(first.clone()), asking(second.clone()));
    let graph = Graph::<Outer>::new("outer")
        .node(
            "both",
            with(
                graphs,
                async |(a, b): &(Graph<Inner>, Graph<Inner>), _: &Outer, ctx: &Ctx| {
                    let a = ctx.call("sub", a, Inner::update().word("a")).await?;
                    let b = ctx.call("sub", b, Inner::update().word("b")).await?;
                    Ok(log(a.seen.join(" ")).log([b.seen.join(" ")]))
                },
            ),
        )
        .start("both")
        .end("both")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Outer::update()).await.unwrap();
    assert_eq!(paused.interrupts()[0].question, json!("a?"));
    let paused = thread
        .answer(&paused.interrupts()[0].id, "yes")
        .await
        .unwrap();
    assert_eq!(paused.interrupts()[0].question, json!("b?"));
    let done = thread
        .answer(&paused.interrupts()[0].id, "no")
        .await
        .unwrap();
    assert_eq!(done.done().unwrap().log, ["first yes", "first no"]);
    assert_eq!((hits(&first), hits(&second)), (1, 1));
}

fn outer_of(child: &Graph<Inner>) -> Graph<Outer> {
    Graph::<Outer>::new("outer")
        .node(
            "child",
            child.mapped(
                |o: &Outer| Inner::update().word(format!("turn {}", o.turn)),
                |i: Inner| log(i.seen.join(" ")),
            ),
        )
        .start("child")
        .end("child")
        .build()
        .unwrap()
}

// 42.
#[tokio::test]
async fn a_paused_subgraph_can_be_read_and_written_by_the_namespace_of_its_task() {
    let graph = outer_of(&asking(count()));
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Outer::update().turn(1)).await.unwrap();
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    let child = snapshot.tasks[0].child.clone().unwrap();
    assert_eq!(child.namespace, format!("child:{}", snapshot.tasks[0].id));
    assert_eq!(paused.interrupts()[0].namespace, child.namespace);

    let inner = thread
        .subgraph(&child.namespace, None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(Some(inner.checkpoint), child.checkpoint);
    assert_eq!(inner.next, ["ask"]);
    assert_eq!(
        *inner.state,
        json!({"word": "turn 1", "count": 0, "seen": ["first"]})
    );
    assert_eq!(inner.interrupts, paused.interrupts());

    let update = json!({"seen": ["by hand"]});
    thread
        .update_subgraph(&child.namespace, update, None)
        .await
        .unwrap();
    let open = thread.snapshot(None).await.unwrap().unwrap().interrupts;
    assert_eq!(open, paused.interrupts());
    let done = thread.answer(&open[0].id, "yes").await.unwrap();
    assert_eq!(done.done().unwrap().log, ["first by hand yes"]);
}

// 42. The subgraph is written to as its asking node: the question is gone, the parent goes on.
#[tokio::test]
async fn writing_to_a_paused_subgraph_as_its_asking_node_lets_the_parent_go_on() {
    let graph = outer_of(&asking(count()));
    let thread = graph.thread(&MemoryStore::shared(), "t");
    thread.run(Outer::update().turn(1)).await.unwrap();
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    let namespace = snapshot.tasks[0].child.clone().unwrap().namespace;
    let (update, node) = (json!({"seen": ["instead"]}), Some("ask".to_owned()));
    thread
        .update_subgraph(&namespace, update, node)
        .await
        .unwrap();

    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!(
        (snapshot.interrupts, snapshot.next),
        (vec![], vec!["child".into()])
    );
    let done = thread.resume().await.unwrap();
    assert_eq!(done.done().unwrap().log, ["first instead"]);
}

// 42.
#[tokio::test]
async fn a_namespace_that_leads_nowhere_is_an_error() {
    let graph = outer_of(&counting());
    let thread = graph.thread(&MemoryStore::shared(), "t");
    thread.run(Outer::update()).await.unwrap();
    let error = thread.subgraph("chidl:1", None).await.unwrap_err();
    assert_eq!(error.to_string(), "the graph `outer` has no node `chidl:1`");
    assert!(thread.subgraph("child:1", None).await.unwrap().is_none());
}

// 42.
#[tokio::test]
async fn a_paused_subgraph_over_the_same_state_shows_the_whole_of_it() {
    let inner = Graph::<Outer>::new("inner")
        .node("s1", async |_: &Outer, _: &Ctx| Ok(log("s1")))
        .node("ask", async |_: &Outer, ctx: &Ctx| {
            Ok(log(ctx.interrupt::<String>("ask", "?")?))
        })
        .start("s1")
        .edge("s1", "ask")
        .end("ask")
        .build()
        .unwrap();
    let graph = Graph::<Outer>::new("outer")
        .node("sub", inner.shared())
        .start("sub")
        .end("sub")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    thread.run(log("i").turn(7)).await.unwrap();
    let snapshot = thread.snapshot(None).await.unwrap().unwrap();
    let namespace = snapshot.tasks[0].child.clone().unwrap().namespace;
    let inner = thread.subgraph(&namespace, None).await.unwrap().unwrap();
    assert_eq!(
        *inner.state,
        json!({"turn": 7, "log": ["i", "s1"], "total": 0})
    );

    // The parent is written to meanwhile: the subgraph sees it and does not hand it back again.
    thread.update(log("by hand")).await.unwrap();
    let done = thread
        .answer(&snapshot.interrupts[0].id, "yes")
        .await
        .unwrap();
    let mut log = done.done().unwrap().log;
    log.sort();
    assert_eq!(log, ["by hand", "i", "s1", "yes"]);
}

// 43.
#[tokio::test]
async fn a_subgraph_is_saved_when_its_parent_is() {
    let saved = async |durability: Durability| {
        let store = MemoryStore::shared();
        let graph = outer_of(&counting());
        let thread = graph.thread(&store, "t");
        thread
            .run(Outer::update())
            .durability(durability)
            .await
            .unwrap();
        let entries = thread.history().await.unwrap();
        let mut children = 0;
        for entry in &entries {
            let snapshot = thread.snapshot(Some(entry.id)).await.unwrap().unwrap();
            for child in snapshot.tasks.into_iter().filter_map(|t| t.child) {
                let scope = Scope {
                    thread: "t".into(),
                    namespace: child.namespace.into(),
                };
                children += store
                    .history(&scope, &HistoryQuery::default())
                    .await
                    .unwrap()
                    .len();
            }
        }
        (entries.len(), children)
    };
    assert_eq!(saved(Durability::Sync).await, (2, 2));
    assert_eq!(saved(Durability::Async).await, (2, 2));
    assert_eq!(saved(Durability::Exit).await, (1, 0));
}

// 44.
#[tokio::test]
async fn after_a_failure_in_a_subgraph_it_goes_on_at_the_failed_node_and_siblings_are_kept() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let (fine, bad, sibling) = (count(), count(), count());
        let child = Graph::<Inner>::new("child")
            .node(
                "fine",
                with(fine.clone(), async |n: &Count, _: &Inner, _: &Ctx| {
                    hit(n);
                    Ok(seen("fine"))
                }),
            )
            .node(
                "bad",
                with(bad.clone(), async |n: &Count, _: &Inner, _: &Ctx| {
                    if hit(n) == 1 {
                        return Err(NodeError::msg("broken"));
                    }
                    Ok(seen("mended"))
                }),
            )
            .start("fine")
            .edge("fine", "bad")
            .end("bad")
            .build()
            .unwrap();
        let graph = Graph::<Outer>::new("outer")
            .node(
                "sibling",
                with(sibling.clone(), async |n: &Count, _: &Outer, _: &Ctx| {
                    hit(n);
                    Ok(log("sibling"))
                }),
            )
            .node(
                "child",
                child.mapped(
                    |_: &Outer| Inner::update(),
                    |i: Inner| log(i.seen.join(" ")),
                ),
            )
            .start(["sibling", "child"])
            .end(["sibling", "child"])
            .build()
            .unwrap();
        let thread = graph.thread(&MemoryStore::shared(), "t");
        let error = thread
            .run(Outer::update())
            .durability(durability)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "node `bad` failed: broken");
        let snapshot = thread.snapshot(None).await.unwrap().unwrap();
        assert_eq!(snapshot.state.log, ["sibling"]);
        assert_eq!(snapshot.next, ["child"]);
        assert_eq!(
            snapshot.tasks[1].error.as_ref().unwrap().message,
            "node `bad` failed: broken"
        );
        let done = thread.resume().durability(durability).await.unwrap();
        assert_eq!(done.done().unwrap().log, ["sibling", "fine mended"]);
        assert_eq!(
            (hits(&fine), hits(&bad), hits(&sibling)),
            (1, 2, 1),
            "{durability:?}"
        );
    }
}

// 44. A retry of a node that is a graph goes on inside it as well.
#[tokio::test(start_paused = true)]
async fn a_retried_subgraph_goes_on_at_the_failed_node() {
    let (fine, bad) = (count(), count());
    let child = Graph::<Inner>::new("child")
        .node(
            "fine",
            with(fine.clone(), async |n: &Count, _: &Inner, _: &Ctx| {
                hit(n);
                Ok(seen("fine"))
            }),
        )
        .node(
            "bad",
            with(
                bad.clone(),
                async |n: &Count, _: &Inner, _: &Ctx| match hit(n) {
                    1 => Err(NodeError::msg("broken")),
                    _ => Ok(seen("mended")),
                },
            ),
        )
        .start("fine")
        .edge("fine", "bad")
        .end("bad")
        .build()
        .unwrap();
    let graph = Graph::<Outer>::new("outer")
        .node(
            "child",
            child.mapped(
                |_: &Outer| Inner::update(),
                |i: Inner| log(i.seen.join(" ")),
            ),
        )
        .policy(
            "child",
            Policy {
                attempts: 2,
                ..Policy::default()
            },
        )
        .start("child")
        .end("child")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let done = thread.run(Outer::update()).await.unwrap();
    assert_eq!(done.done().unwrap().log, ["fine mended"]);
    assert_eq!((hits(&fine), hits(&bad)), (1, 2));
}

// 44. A limit that was reached inside is not a failure that another attempt could mend.
#[tokio::test(start_paused = true)]
async fn the_recursion_limit_inside_a_subgraph_ends_the_run_and_is_not_retried() {
    let child = Graph::<Inner>::new("child")
        .node("again", async |i: &Inner, _: &Ctx| {
            Ok(Inner::update().count(i.count + 1))
        })
        .start("again")
        .branch(
            "again",
            |i: &Inner| if i.count < 5 { "again" } else { END },
            ["again", END],
        )
        .build()
        .unwrap();
    let graph = Graph::<Outer>::new("outer")
        .node(
            "child",
            child.mapped(
                |_: &Outer| Inner::update(),
                |i: Inner| Outer::update().total(i.count),
            ),
        )
        .policy(
            "child",
            Policy {
                attempts: 3,
                ..Policy::default()
            },
        )
        .start("child")
        .end("child")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let error = thread.run(Outer::update()).limit(3).await.unwrap_err();
    assert!(matches!(error, Error::RecursionLimit(3)), "{error}");
    let done = thread.resume().limit(3).await.unwrap();
    assert_eq!(done.done().unwrap().total, 5);
}

// 63. A plain subgraph starts anew on the new branch.
#[tokio::test]
async fn replaying_the_parent_runs_a_plain_subgraph_from_its_start() {
    let runs = count();
    let graph = outer_of(&asking(runs.clone()));
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Outer::update()).await.unwrap();
    let id = paused.interrupts()[0].id.clone();
    thread.answer(&id, "yes").await.unwrap().done().unwrap();
    let input = thread.history().await.unwrap().last().unwrap().id;
    let again = thread.resume().at(input).await.unwrap();
    assert_eq!(hits(&runs), 2);
    assert_ne!(again.interrupts()[0].id, id);
    let done = thread
        .answer(&again.interrupts()[0].id, "no")
        .await
        .unwrap();
    assert_eq!(done.done().unwrap().log, ["first no"]);
}

// 30. A parent that waits for its subgraph holds no permit.
#[tokio::test]
async fn a_limit_of_one_node_at_a_time_lets_subgraphs_run() {
    let graph = Graph::<Outer>::new("outer")
        .node(
            "a",
            counting().mapped(|_: &Outer| Inner::update(), |_: Inner| log("a")),
        )
        .node(
            "b",
            with(
                counting(),
                async |child: &Graph<Inner>, _: &Outer, ctx: &Ctx| {
                    ctx.call("c", child, Inner::update()).await?;
                    Ok(log("b"))
                },
            ),
        )
        .start(["a", "b"])
        .end(["a", "b"])
        .build()
        .unwrap();
    let state = graph.run(Outer::update()).max_concurrency(1).await.unwrap();
    assert_eq!(state.done().unwrap().log, ["a", "b"]);
}

/// `child` one level deeper.
fn wrapped(name: &'static str, child: &Graph<Inner>) -> Graph<Inner> {
    Graph::<Inner>::new(name)
        .node(
            "in",
            child.mapped(
                |i: &Inner| Inner::update().word(i.word.clone()),
                |i: Inner| Inner::update().seen(i.seen),
            ),
        )
        .start("in")
        .end("in")
        .build()
        .unwrap()
}

// 42, 63: three levels.
#[tokio::test]
async fn writing_to_a_subgraph_deep_down_as_its_node_wakes_all_above_it() {
    let graph = outer_of(&wrapped("middle", &asking(count())));
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Outer::update()).await.unwrap();
    let namespace = paused.interrupts()[0].namespace.clone();
    assert_eq!(namespace.split('|').count(), 2);
    let (update, node) = (json!({"seen": ["instead"]}), Some("ask".to_owned()));
    thread
        .update_subgraph(&namespace, update, node)
        .await
        .unwrap();
    let (middle, _) = namespace.split_once('|').unwrap();
    let middle = thread.subgraph(middle, None).await.unwrap().unwrap();
    assert_eq!(
        (middle.interrupts, middle.next),
        (vec![], vec!["in".into()])
    );
    let done = thread.resume().await.unwrap().done().unwrap();
    assert_eq!(done.log, ["first instead"]);
}

// 54: breakpoints at every level, beside a question.
#[tokio::test]
async fn a_star_stops_inside_subgraphs_too_and_a_question_beside_it_stays_open() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let runs = count();
        let graph = Graph::<Outer>::new("outer")
            .node(
                "child",
                wrapped("middle", &asking(runs.clone())).mapped(
                    |_: &Outer| Inner::update(),
                    |i: Inner| log(i.seen.join(" ")),
                ),
            )
            .node("beside", async |_: &Outer, ctx: &Ctx| {
                Ok(log(ctx.interrupt::<String>("q", "beside?")?))
            })
            .start(["child", "beside"])
            .end(["child", "beside"])
            .build()
            .unwrap();
        let thread = graph.thread(&MemoryStore::shared(), "t");
        let set_up = |start: Start<Outer>| start.pause_before("*").durability(durability);
        let mut outcome = set_up(thread.run(Outer::update())).await.unwrap();
        let mut stops = 0;
        while let Outcome::Stopped { next, .. } = &outcome {
            assert_eq!(next, &["child", "beside"]);
            stops += 1;
            outcome = set_up(thread.resume()).await.unwrap();
        }
        // Before both nodes, before `in`, before `first`, before `ask`.
        assert_eq!((stops, hits(&runs)), (4, 1), "{durability:?}");
        let answers = outcome
            .interrupts()
            .iter()
            .map(|q| (q.id.clone(), json!("yes")));
        let done = set_up(thread.answers(answers)).await.unwrap();
        assert_eq!(done.done().unwrap().log, ["first yes", "yes"]);
        assert_eq!(hits(&runs), 1);
    }
}
