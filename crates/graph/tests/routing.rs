//! Where a run goes: branches, fan-out, joins, deferred nodes, loops and their limits.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Path {
    #[reduce(append)]
    log: Vec<String>,
    rounds: u32,
    choice: String,
    #[reduce(add)]
    tally: u32,
}

async fn log(_: &Path, ctx: &Ctx) -> Result<Update<Path>> {
    Ok(Path::update().log([format!("{}@{}", ctx.node(), ctx.superstep())]))
}

fn path(nodes: impl IntoIterator<Item = &'static str>) -> Builder<Path> {
    nodes
        .into_iter()
        .fold(Graph::<Path>::new("path"), |graph, name| {
            graph.node(name, log)
        })
}

async fn run(builder: Builder<Path>) -> Vec<String> {
    let graph = builder.build().unwrap();
    graph.invoke(Path::update()).await.unwrap().log
}

// 18.
#[tokio::test]
async fn a_branch_that_names_several_nodes_runs_them_in_one_superstep() {
    let graph = path(["a", "b", "c", "d"])
        .start("a")
        .branch("a", |_| ["d", "b", "b"], ["b", "c", "d"])
        .edge("b", "c")
        .end(["c", "d"]);
    assert_eq!(run(graph).await, ["a@0", "b@1", "d@1", "c@2"]);
}

// 18.
#[tokio::test]
async fn a_branch_to_the_end_ends_its_own_path_only() {
    let graph = path(["a", "b", "c", "d"])
        .start(["a", "b"])
        .branch("a", |_| END, [END])
        .branch("b", |_| [Name::from(END), Name::from("c")], ["c", END])
        .edge("c", "d")
        .end("d");
    assert_eq!(run(graph).await, ["a@0", "b@0", "c@1", "d@2"]);
}

// 18, ours: an empty choice is an error, not a silent end.
#[tokio::test]
async fn a_branch_that_chooses_nothing_or_something_undeclared_fails_the_run() {
    let choosing = |choose: fn(&Path) -> Vec<&'static str>| {
        path(["a", "b", "c"])
            .start(["a", "c"])
            .branch("a", choose, ["b"])
            .end(["b", "c"])
            .build()
            .unwrap()
    };
    let error = choosing(|_| vec![]).invoke(Path::update()).await;
    let error = error.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`a` chose no target; to end there, choose END"
    );
    assert!(matches!(error, Error::NoTarget(node) if node == "a"));
    for (target, wrong) in [("c", "c"), ("ghost", "ghost"), (END, "__end__")] {
        let graph = path(["a", "b", "c"])
            .start(["a", "c"])
            .branch("a", move |_| target, ["b"])
            .end(["b", "c"])
            .build()
            .unwrap();
        assert_eq!(
            graph.invoke(Path::update()).await.unwrap_err().to_string(),
            format!("`a` went to `{wrong}`, which it did not declare (declared: b)")
        );
    }
}

// 19.
#[tokio::test]
async fn a_join_of_uneven_paths_runs_its_target_once_after_both() {
    let graph = path(["a", "b", "c", "c2", "d"])
        .start("a")
        .edge("a", ["b", "c"])
        .edge("c", "c2")
        .join(["b", "c2"], "d")
        .end("d");
    assert_eq!(run(graph).await, ["a@0", "b@1", "c@1", "c2@2", "d@3"]);
}

// 19.
#[tokio::test]
async fn two_plain_edges_into_a_node_are_an_or_and_run_it_for_each_superstep_they_fire_in() {
    let uneven = path(["a", "b", "c", "c2", "d"])
        .start("a")
        .edge("a", ["b", "c"])
        .edge("c", "c2")
        .edge("b", "d")
        .edge("c2", "d")
        .end("d");
    assert_eq!(
        run(uneven).await,
        ["a@0", "b@1", "c@1", "c2@2", "d@2", "d@3"]
    );
    let even = path(["a", "b", "c", "d"])
        .start("a")
        .edge("a", ["b", "c"])
        .edge("b", "d")
        .edge("c", "d")
        .end("d");
    assert_eq!(run(even).await, ["a@0", "b@1", "c@1", "d@2"]);
}

// 19.
#[tokio::test]
async fn a_join_and_a_plain_edge_into_one_node_run_it_for_each() {
    let graph = path(["a", "b", "c", "c2", "e", "d"])
        .start("a")
        .edge("a", ["b", "c", "e"])
        .edge("c", "c2")
        .join(["b", "c2"], "d")
        .edge("e", "d")
        .end("d");
    assert_eq!(
        run(graph).await,
        ["a@0", "b@1", "c@1", "e@1", "c2@2", "d@2", "d@3"]
    );
}

// 19.
#[tokio::test]
async fn one_node_may_be_a_source_of_two_joins_and_have_an_edge_too() {
    let graph = path(["a", "b", "c", "ab", "ac", "alone"])
        .start(["a", "b", "c"])
        .join(["a", "b"], "ab")
        .join(["c", "a"], "ac")
        .edge("a", "alone")
        .end(["ab", "ac", "alone"]);
    assert_eq!(
        run(graph).await,
        ["a@0", "b@0", "c@0", "ab@1", "ac@1", "alone@1"]
    );
}

// 19.
#[tokio::test]
async fn a_join_in_a_loop_waits_anew_in_each_round() {
    async fn count(p: &Path, ctx: &Ctx) -> Result<Update<Path>> {
        Ok(Path::update()
            .rounds(p.rounds + 1)
            .log([format!("{}@{}", ctx.node(), ctx.superstep())]))
    }
    let graph = Graph::<Path>::new("loop")
        .node("fan", log)
        .node("b", log)
        .node("c", log)
        .node("c2", log)
        .node("d", count)
        .start("fan")
        .edge("fan", ["b", "c"])
        .edge("c", "c2")
        .join(["b", "c2"], "d")
        .branch(
            "d",
            |p| if p.rounds < 2 { "fan" } else { END },
            ["fan", END],
        );
    assert_eq!(
        run(graph).await,
        [
            "fan@0", "b@1", "c@1", "c2@2", "d@3", "fan@4", "b@5", "c@5", "c2@6", "d@7"
        ]
    );
}

// 19, ours: a join whose source was skipped is an error, not a silent success.
#[tokio::test]
async fn a_run_that_ends_while_a_join_still_waits_is_an_error_that_names_who_is_missing() {
    let graph = path(["a", "b", "c", "d"])
        .start("a")
        .branch("a", |_| "b", ["b", "c"])
        .join(["b", "c"], "d")
        .end("d")
        .build()
        .unwrap();
    let error = graph.invoke(Path::update()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the run ended while the join into `d` still waits for `c`"
    );
}

// 20.
#[tokio::test]
async fn a_deferred_node_runs_once_after_the_longest_path() {
    let graph = path(["a", "b", "c", "c2", "c3", "d"])
        .start("a")
        .edge("a", ["b", "c"])
        .edge("c", "c2")
        .edge("c2", "c3")
        .edge("b", "d")
        .edge("c3", "d")
        .deferred("d")
        .end("d");
    assert_eq!(
        run(graph).await,
        ["a@0", "b@1", "c@1", "c2@2", "c3@3", "d@4"]
    );
}

// 20.
#[tokio::test]
async fn a_deferred_node_waits_for_paths_that_arise_while_it_waits() {
    const MORE: Each<u32> = Each::new("more");
    async fn more(n: u32, _: &Path, ctx: &Ctx) -> Result<Command<Path>> {
        let update = Path::update().log([format!("more{n}@{}", ctx.superstep())]);
        let next = if n > 0 { MORE.send(n - 1) } else { END.into() };
        Ok(Command::update(update).and_goto(next))
    }
    let graph = path(["a", "last"])
        .each(MORE, more)
        .start("a")
        .branch(
            "a",
            |_| vec![MORE.send(2), "last".into()],
            [MORE.name(), "last"],
        )
        .commands(MORE, [MORE.name(), END])
        .deferred("last")
        .end("last");
    assert_eq!(
        run(graph).await,
        ["a@0", "more2@1", "more1@2", "more0@3", "last@4"]
    );
}

// 20.
#[tokio::test]
async fn a_deferred_node_that_starts_other_work_may_be_due_again() {
    async fn again(p: &Path, ctx: &Ctx) -> Result<Update<Path>> {
        Ok(Path::update()
            .rounds(p.rounds + 1)
            .log([format!("{}@{}", ctx.node(), ctx.superstep())]))
    }
    let graph = Graph::<Path>::new("again")
        .node("work", log)
        .node("last", again)
        .start(["work", "last"])
        .edge("work", "last")
        .branch(
            "last",
            |p| if p.rounds < 2 { "work" } else { END },
            ["work", END],
        )
        .deferred("last");
    assert_eq!(run(graph).await, ["work@0", "last@1", "work@2", "last@3"]);
}

// 20.
#[tokio::test]
async fn deferred_nodes_survive_a_pause_while_they_wait() {
    let graph = path(["a", "b", "c", "d"])
        .start(["a", "b"])
        .edge("a", "d")
        .edge("b", "c")
        .edge("c", "d")
        .deferred("d")
        .end("d")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let outcome = thread.run(Path::update()).pause_before("c").await.unwrap();
    let Outcome::Stopped { next, why, .. } = &outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (&next[..], *why),
        (&["c".into()][..], StoppedBy::Breakpoint)
    );
    let state = thread.resume().await.unwrap().done().unwrap();
    assert_eq!(state.log, ["a@0", "b@0", "c@1", "d@2"]);
}

// 21, ours: the state after the superstep, with the siblings' writes.
#[tokio::test]
async fn a_branch_sees_what_the_whole_superstep_wrote() {
    async fn two(_: &Path, _: &Ctx) -> Result<Update<Path>> {
        Ok(Path::update().tally(2))
    }
    let graph = Graph::<Path>::new("committed")
        .node("a", two)
        .node("b", two)
        .node("both", log)
        .node("own", log)
        .start(["a", "b"])
        .branch(
            "a",
            |p| if p.tally == 4 { "both" } else { "own" },
            ["both", "own"],
        )
        .end(["b", "both", "own"]);
    assert_eq!(run(graph).await, ["both@1"]);
}

async fn round(p: &Path, ctx: &Ctx) -> Result<Update<Path>> {
    let left = ctx.remaining_supersteps();
    let last = if ctx.is_last_superstep() { " last" } else { "" };
    Ok(Path::update()
        .rounds(p.rounds + 1)
        .log([format!("{left}{last}")]))
}

fn looping(until: u32) -> Graph<Path> {
    Graph::<Path>::new("loop")
        .node("round", round)
        .start("round")
        .branch(
            "round",
            move |p| if p.rounds < until { "round" } else { END },
            ["round", END],
        )
        .build()
        .unwrap()
}

// 22.
#[tokio::test]
async fn a_loop_counts_and_knows_how_many_supersteps_remain() {
    let state = looping(3).run(Path::update()).limit(4).await.unwrap();
    assert_eq!(state.done().unwrap().log, ["4", "3", "2"]);
    let state = looping(3).run(Path::update()).limit(3).await.unwrap();
    assert_eq!(state.done().unwrap().log, ["3", "2", "1 last"]);
    let error = looping(3).run(Path::update()).limit(2).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "still running after 2 supersteps; the state is saved and can be continued"
    );
}

// 22, 75.
#[tokio::test]
async fn a_run_over_its_limit_keeps_what_it_did_and_goes_on_with_a_fresh_limit() {
    let thread = looping(5).thread(&MemoryStore::shared(), "t");
    for done in [2, 4] {
        let run = if done == 2 {
            thread.run(Path::update())
        } else {
            thread.resume()
        };
        let error = run.limit(2).await.unwrap_err();
        assert!(matches!(error, Error::RecursionLimit(2)));
        let saved = thread.snapshot(None).await.unwrap().unwrap();
        assert_eq!(
            (saved.state.rounds, &saved.next[..]),
            (done, &["round".into()][..])
        );
    }
    let state = thread.resume().limit(2).await.unwrap().done().unwrap();
    assert_eq!(state.log, ["2", "1 last", "2", "1 last", "2"]);
}

// 24.
#[tokio::test]
async fn a_start_branch_chooses_from_the_input_and_may_hold_what_it_likes() {
    let names = ["a".to_owned(), "b".to_owned()];
    let graph = path(["a", "b"])
        .start_branch(
            move |p| -> Name {
                let known = names.contains(&p.choice);
                if known {
                    p.choice.clone().into()
                } else {
                    END.into()
                }
            },
            ["a", "b", END],
        )
        .end(["a", "b"])
        .build()
        .unwrap();
    for (choice, expected) in [("a", vec!["a@0"]), ("b", vec!["b@0"]), ("x", vec![])] {
        let state = graph.invoke(Path::update().choice(choice)).await.unwrap();
        assert_eq!(state.log, expected, "{choice}");
    }
}

// 24.
#[tokio::test]
async fn functions_and_sends_are_start_branches_too() {
    const EACH: Each<u32> = Each::new("each");
    async fn each(n: u32, _: &Path, _: &Ctx) -> Result<Update<Path>> {
        Ok(Path::update().log([n.to_string()]))
    }
    fn count(p: &Path) -> Vec<Target> {
        EACH.send_all(0..p.rounds)
    }
    let graph = Graph::<Path>::new("sends")
        .each(EACH, each)
        .start_branch(count, EACH)
        .end(EACH)
        .build()
        .unwrap();
    let state = graph.invoke(Path::update().rounds(3)).await.unwrap();
    assert_eq!(state.log, ["0", "1", "2"]);
    let error = graph.invoke(Path::update()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`__start__` chose no target; to end there, choose END"
    );
}

#[tokio::test]
async fn a_sequence_and_several_starts_run_as_declared() {
    let graph = path(["c", "b", "a", "z"])
        .start(["a", "b"])
        .start("c")
        .sequence(["a", "z"])
        .end(["b", "c", "z"]);
    assert_eq!(run(graph).await, ["c@0", "b@0", "a@0", "z@1"]);
}

#[tokio::test]
async fn each_round_of_a_loop_is_another_task_with_other_keys_and_steps_of_its_own() {
    async fn work(p: &Path, ctx: &Ctx) -> Result<Update<Path>> {
        let rounds = p.rounds;
        let made = ctx.step("make", async { Ok(rounds) }).await?;
        Ok(Path::update().rounds(p.rounds + 1).log([
            made.to_string(),
            ctx.key("pay"),
            ctx.task_id().to_string(),
        ]))
    }
    let graph = Graph::<Path>::new("loop")
        .node("work", work)
        .start("work")
        .branch(
            "work",
            |p| if p.rounds < 5 { "work" } else { END },
            ["work", END],
        )
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    for run in [
        graph.run(Path::update()),
        graph.thread(&store, "t").run(Path::update()),
    ] {
        let log = run.await.unwrap().done().unwrap().log;
        let column = |i: usize| log.iter().skip(i).step_by(3).cloned().collect::<Vec<_>>();
        assert_eq!(column(0), ["0", "1", "2", "3", "4"]);
        for mut ids in [column(1), column(2)] {
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), 5);
        }
    }
}
