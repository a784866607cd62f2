//! Building a graph and running it plainly: what `build` refuses, what goes in and out, threads,
//! contexts, memories, and calls from code without a runtime.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use futures::future::join_all;
use paraph_graph::*;
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    title: String,
    number: u32,
    owner: Option<String>,
    #[reduce(append)]
    log: Vec<String>,
}

async fn log(_: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    Ok(Case::update().log([ctx.node().to_owned()]))
}

async fn jump(_: &Case, _: &Ctx) -> Result<Command<Case>> {
    Ok(Command::goto(END))
}

const EACH: Each<u32> = Each::new("each");

async fn one(n: u32, _: &Case, _: &Ctx) -> Result<Update<Case>> {
    Ok(Case::update().log([n.to_string()]))
}

fn graph() -> Builder<Case> {
    Graph::<Case>::new("case")
}

/// A graph of one node that logs its name.
fn single() -> Graph<Case> {
    graph()
        .node("only", log)
        .start("only")
        .end("only")
        .build()
        .unwrap()
}

fn faults(builder: Builder<Case>) -> Vec<String> {
    match builder.build() {
        Err(Error::Build { graph, faults }) => {
            assert_eq!(graph, "case");
            faults
        }
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it was built"),
    }
}

#[test]
fn a_label_needs_an_edge_and_is_one_short_line() {
    let valid = || {
        graph()
            .node("alpha", log)
            .node("omega", log)
            .start("alpha")
            .branch("alpha", |_| END, ["omega", END])
            .end("omega")
            .label("alpha", "omega", "has more")
    };
    assert!(valid().label("omega", END, "x".repeat(60)).build().is_ok());
    let wrong = valid()
        .label("alpha", "omegga", "typed badly")
        .label(START, "omega", "too early")
        .label("nobody", END, "gone")
        .label("alpha", END, "two\nlines")
        .label("omega", END, "x".repeat(61))
        .label("alpha", "omega", "again");
    assert_eq!(
        faults(wrong),
        [
            "a label names the edge from `alpha` to `omegga`, which is not there (did you mean `omega`?)",
            "a label names the edge from `__start__` to `omega`, which is not there",
            "a label names the edge from `nobody` to `__end__`, which is not there",
            "the label of the edge from `alpha` to `__end__` is not one line of 1 to 60 characters",
            "the label of the edge from `omega` to `__end__` is not one line of 1 to 60 characters",
            "the edge from `alpha` to `omega` has two labels",
        ]
    );
}

// 1.
#[test]
fn a_wrong_name_is_a_fault_wherever_it_stands() {
    let valid = || {
        graph()
            .node("alpha", log)
            .node("omega", log)
            .start("alpha")
            .edge("alpha", "omega")
            .end("omega")
    };
    let table: [(Builder<Case>, &str); 13] = [
        (
            valid().edge("alpha", "omegga"),
            "an edge names `omegga`, which is not a node (did you mean `omega`?)",
        ),
        (
            valid().edge("nobody", "omega"),
            "an edge names `nobody`, which is not a node",
        ),
        (
            valid().edge("alpha", END),
            "an edge names `__end__`, which is not a node (to end there, write .end(…) or choose END in a branch)",
        ),
        (
            valid().commands(START, "omega"),
            "a command names `__start__`, which is not a node",
        ),
        (
            valid().start("nobody"),
            "the start names `nobody`, which is not a node",
        ),
        (
            valid().join(["alpha", "nobody"], "omega"),
            "a join names `nobody`, which is not a node",
        ),
        (
            valid().end("nobody"),
            "an end names `nobody`, which is not a node",
        ),
        (
            valid().deferred("nobody"),
            "`deferred` names `nobody`, which is not a node",
        ),
        (
            valid().hidden("nobody"),
            "`hidden` names `nobody`, which is not a node",
        ),
        (
            valid().policy("nobody", Policy::default()),
            "a policy names `nobody`, which is not a node",
        ),
        (
            valid().policy_for_all(Policy {
                on_error: Some("nobody".into()),
                ..Policy::default()
            }),
            "`on_error` names `nobody`, which is not a node",
        ),
        (
            valid().cache_key("nobody", |c| c.number),
            "a cache key names `nobody`, which is not a node",
        ),
        (
            valid().input("titel"),
            "the input names `titel`, which is not a channel (did you mean `title`?)",
        ),
    ];
    for (builder, fault) in table {
        assert_eq!(faults(builder), [fault]);
    }
}

// 1.
#[test]
fn names_that_cannot_be_are_faults() {
    let named = |name: &'static str| {
        faults(
            graph()
                .node("first", log)
                .node(name, log)
                .start(["first", name])
                .end(["first", name]),
        )
    };
    assert_eq!(named("first"), ["two nodes are called `first`"]);
    assert_eq!(named(START), ["`__start__` is reserved"]);
    assert_eq!(named(END), ["`__end__` is reserved"]);
    let separator = "`a:b` contains `|` or `:`, which separate namespaces";
    assert_eq!(named("a:b"), [separator]);
    let separator = "`a|b` contains `|` or `:`, which separate namespaces";
    assert_eq!(named("a|b"), [separator]);
    assert_eq!(named(""), ["a node's name has 1 to 200 bytes, not 0"]);
}

// 1.
#[test]
fn no_start_no_way_on_and_what_is_said_twice_are_faults() {
    assert_eq!(
        faults(graph().node("alone", log)),
        [
            "the graph has no start: say .start(\"node\")",
            "`alone` leads nowhere: give it an edge, a branch, a join, or .end(\"alone\")",
        ]
    );
    let lost = graph()
        .node("first", log)
        .node("lost", log)
        .start("first")
        .end(["first", "lost"]);
    assert_eq!(
        faults(lost),
        ["`lost` is never reached: nothing leads to it"]
    );
    let twice = graph()
        .node("first", log)
        .start("first")
        .end("first")
        .start_branch(|_| "first", "first");
    assert_eq!(
        faults(twice),
        ["the graph has both a start and a start branch"]
    );
    let twice = graph()
        .node("first", log)
        .node("second", log)
        .node("last", log)
        .start(["first", "second"])
        .join(["first", "second"], "last")
        .join(["second", "first"], "last")
        .end("last");
    assert_eq!(
        faults(twice),
        ["the same join into `last` is declared twice"]
    );
    let sent = graph()
        .each(EACH, one)
        .start_branch(|_| EACH.send(1), EACH)
        .deferred(EACH)
        .end(EACH);
    assert_eq!(
        faults(sent),
        ["`each` cannot be deferred: it runs when it is sent to"]
    );
    let twice = graph()
        .node("first", log)
        .end("first")
        .start_branch(|_| "first", "first")
        .start_branch(|_| "first", "first");
    assert_eq!(faults(twice), ["the graph has two start branches"]);
}

// 1, 33.
#[test]
fn a_node_with_two_ways_on_is_a_fault() {
    let routed = |more: fn(Builder<Case>) -> Builder<Case>| {
        let plain = graph()
            .node("work", log)
            .node("jump", jump)
            .each(EACH, one)
            .node("last", log)
            .start(["work", "jump"])
            .branch("last", |_| EACH.send(1), [EACH.name(), END])
            .end(EACH);
        faults(more(plain))
    };
    assert_eq!(
        routed(|b| b
            .commands("jump", ["last", END])
            .edge("work", "last")
            .branch("work", |_| END, [END])),
        ["`work` has edges or joins and a branch: a node goes on in one way"]
    );
    assert_eq!(
        routed(|b| b
            .commands("jump", ["last", END])
            .edge("jump", "last")
            .end("work")),
        ["`jump` has edges or joins and commands: a node goes on in one way"]
    );
    assert_eq!(
        routed(|b| b.end(["work", "jump"])),
        ["`jump` returns a Command: declare where it may go with .commands(\"jump\", [..])"]
    );
    assert_eq!(
        routed(|b| b.commands("work", "last").commands("jump", "last")),
        ["`work` has declared commands but returns an update only"]
    );
    assert_eq!(
        routed(|b| b.commands("jump", ["last", END]).edge("work", "each")),
        [
            "an edge leads to `each`, which takes a payload: send to it from a branch or a command",
            "`work` leads nowhere: give it an edge, a branch, a join, or .end(\"work\")",
        ]
    );
}

// 1.
#[test]
fn handlers_that_handle_each_other_are_a_fault() {
    let handled_by = |name: &'static str| Policy {
        on_error: Some(name.into()),
        ..Policy::default()
    };
    let itself = graph()
        .node("first", log)
        .start("first")
        .end("first")
        .policy("first", handled_by("first"));
    assert_eq!(
        faults(itself),
        ["`first` handles failures that lead back to it"]
    );
    let circle = graph()
        .node("first", log)
        .node("second", log)
        .start("first")
        .end(["first", "second"])
        .policy("first", handled_by("second"))
        .policy("second", handled_by("first"));
    assert_eq!(
        faults(circle),
        [
            "`first` handles failures that lead back to it",
            "`second` handles failures that lead back to it"
        ]
    );
}

// 2.
#[tokio::test]
async fn a_line_of_nodes_runs_in_order_and_readers_see_the_output_channels_only() {
    let graph = graph()
        .node("one", log)
        .node("two", log)
        .node("three", log)
        .start("one")
        .sequence(["one", "two", "three"])
        .end("three")
        .output(["log", "title"])
        .build()
        .unwrap();
    let mut stream = graph
        .run(Case::update().title("t").number(1))
        .stream([Mode::Values]);
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventData::Values { state } = event.data {
            seen.push(state.json().unwrap());
        }
    }
    assert_eq!(
        seen,
        [
            json!({"title": "t", "log": []}),
            json!({"title": "t", "log": ["one"]}),
            json!({"title": "t", "log": ["one", "two"]}),
            json!({"title": "t", "log": ["one", "two", "three"]}),
        ]
    );
    // Rust code gets the whole state: the type says what there is.
    let state = stream.outcome().await.unwrap().done().unwrap();
    assert_eq!((state.number, state.log.len()), (1, 3));
}

// 2, ours: an input outside the schema is refused, not ignored.
#[tokio::test]
async fn an_input_outside_the_input_channels_is_refused() {
    let graph = graph()
        .node("only", log)
        .start("only")
        .end("only")
        .input(["title", "log"])
        .build()
        .unwrap();
    let error = graph
        .invoke(Case::update().title("t").number(1))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "channel `number` is not part of the input of `case` (input: title, log)"
    );
    let state = graph.invoke(Case::update().title("t")).await.unwrap();
    assert_eq!(state.log, ["only"]);
}

// 3, ours: every channel has a default, so an empty input is an input.
#[tokio::test]
async fn an_empty_input_runs_and_resuming_a_fresh_thread_is_an_error() {
    let state = single().invoke(Case::update()).await.unwrap();
    assert_eq!(
        state,
        Case {
            log: vec!["only".to_owned()],
            ..Case::default()
        }
    );
    let fresh = single().thread(&MemoryStore::shared(), "fresh");
    let error = fresh.resume().await.unwrap_err();
    assert_eq!(error.to_string(), "nothing is waiting on thread `fresh`");
    assert_eq!(fresh.history().await.unwrap(), []);
}

// 5.
#[tokio::test]
async fn zero_nothing_and_empty_are_values_to_be_written() {
    let clear = async |_: &Case, _: &Ctx| {
        Ok(Case::update()
            .title("")
            .number(0)
            .owner(None)
            .replace_log(Vec::new()))
    };
    let graph = graph()
        .node("clear", clear)
        .start("clear")
        .end("clear")
        .build()
        .unwrap();
    let full = Case::update()
        .title("full")
        .number(7)
        .owner(Some("ada".to_owned()))
        .log(["x".to_owned()]);
    let store = MemoryStore::shared();
    let thread = graph.thread(&store, "t");
    assert_eq!(
        thread.run(full).await.unwrap().done().unwrap(),
        Case::default()
    );
    let saved = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!(*saved.state, Case::default());
    assert_eq!(saved.written, ["title", "number", "owner", "log"]);
}

// 6.
#[tokio::test]
async fn runs_on_one_thread_add_up_and_a_hundred_threads_do_not_mix() {
    let store = MemoryStore::shared();
    let graph = single();
    let runs = (0..100).map(|i| {
        let thread = graph.thread(&store, format!("t{i}"));
        tokio::spawn(async move {
            for part in ["a", "b"] {
                let input = Case::update().number(i).log([format!("{part}{i}")]);
                thread.run(input).await.unwrap().done().unwrap();
            }
        })
    });
    for run in join_all(runs).await {
        run.unwrap();
    }
    for i in 0..100 {
        let thread = graph.thread(&store, format!("t{i}"));
        let state = thread.snapshot(None).await.unwrap().unwrap().state;
        let expected = Case {
            number: i,
            log: vec![
                format!("a{i}"),
                "only".to_owned(),
                format!("b{i}"),
                "only".to_owned(),
            ],
            ..Case::default()
        };
        assert_eq!(*state, expected);
    }
}

// 7.
#[tokio::test]
async fn a_value_of_the_wrong_type_names_its_channel_and_null_fits_an_option() {
    let wrong = |json| Case::update_from_json(json).err().unwrap().to_string();
    assert_eq!(
        wrong(json!({"number": "seven"})),
        "channel `number`: invalid type: string \"seven\", expected u32"
    );
    assert_eq!(
        wrong(json!({"number": -1})),
        "channel `number`: invalid value: integer `-1`, expected u32"
    );
    assert_eq!(
        wrong(json!({"log": ["a", 1]})),
        "channel `log`: invalid type: integer `1`, expected a string"
    );
    assert_eq!(
        wrong(json!(5)),
        "an update is a JSON object keyed by channel, not a number"
    );
    let update = Case::update_from_json(json!({"owner": null, "title": "t"})).unwrap();
    let state = single().invoke(update).await.unwrap();
    assert_eq!((state.owner, state.title), (None, "t".to_owned()));
}

// 9.
#[tokio::test]
async fn a_run_leaves_nothing_behind_and_a_graph_frees_what_it_was_given() {
    async fn use_it(held: &Arc<str>, _: &Case, ctx: &Ctx) -> Result<Update<Case>> {
        let given: &Arc<str> = ctx.context()?;
        Ok(Case::update().title(format!("{held} {given}")))
    }
    let (dependency, context): (Arc<str>, Arc<str>) = ("dependency".into(), "context".into());
    let graph = graph()
        .node("a", with(dependency.clone(), use_it))
        .node("b", with(dependency.clone(), log_with))
        .start(["a", "b"])
        .end(["a", "b"])
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let run = graph.thread(&store, "t").run(Case::update());
        let run = run.context(context.clone()).durability(durability);
        let state = run.await.unwrap().done().unwrap();
        assert_eq!(state.title, "dependency context");
        assert_eq!(Arc::strong_count(&context), 1, "{durability:?}");
    }
    assert_eq!(Arc::strong_count(&dependency), 3);
    drop(graph);
    assert_eq!(Arc::strong_count(&dependency), 1);
}

async fn log_with(_: &Arc<str>, _: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    Ok(Case::update().log([ctx.node().to_owned()]))
}

// 9.
#[tokio::test]
async fn two_graphs_built_alike_share_no_results() {
    let calls = Arc::new(AtomicUsize::new(0));
    async fn count(calls: &Arc<AtomicUsize>, _: &Case, _: &Ctx) -> Result<Update<Case>> {
        let n = calls.fetch_add(1, Ordering::SeqCst);
        Ok(Case::update().title(n.to_string()))
    }
    let build = || {
        let cached = Policy {
            cache: Some(Duration::from_secs(60)),
            ..Policy::default()
        };
        let graph = graph().node("count", with(calls.clone(), count));
        let graph = graph.policy("count", cached).start("count").end("count");
        graph.build().unwrap()
    };
    let (first, second) = (build(), build());
    let mut titles = Vec::new();
    for graph in [&first, &second, &first.clone(), &second] {
        titles.push(graph.invoke(Case::update()).await.unwrap().title);
    }
    assert_eq!(titles, ["0", "1", "0", "1"]);
}

#[tokio::test]
async fn a_graph_with_a_store_runs_on_a_thread_only() {
    let store = MemoryStore::shared();
    let build = || graph().node("only", log).start("only").end("only");
    let graph = build().store(&store).build().unwrap();
    let error = graph.invoke(Case::update()).await.unwrap_err();
    assert!(matches!(&error, Error::NoThread(name) if name == "case"));
    assert_eq!(
        error.to_string(),
        "the graph `case` saves its steps: run it on a thread (`graph.open(\"name\")`)"
    );
    let thread = graph.open("t").unwrap();
    thread.run(Case::update()).await.unwrap().done().unwrap();
    let same = graph.thread(&store, "t").snapshot(None).await.unwrap();
    assert_eq!(same.unwrap().state.log, ["only"]);
    let without = build().build().unwrap();
    assert!(matches!(without.open("t").err(), Some(Error::NoThread(name)) if name == "case"));
}

// 2.
#[tokio::test]
async fn a_subgraph_refuses_an_input_outside_its_input_channels_too() {
    let inner = graph()
        .node("only", log)
        .start("only")
        .end("only")
        .input("title")
        .build()
        .unwrap();
    let node = inner.mapped(
        |c: &Case| Case::update().title("t").number(c.number),
        |_: Case| Case::update(),
    );
    let outer = graph().node("sub", node).start("sub").end("sub");
    let error = outer.build().unwrap().invoke(Case::update()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "channel `number` is not part of the input of `case` (input: title)"
    );
}

#[tokio::test]
async fn a_thread_has_a_name_of_1_to_200_characters() {
    let store = MemoryStore::shared();
    for (name, length) in [(String::new(), 0), ("ä".repeat(201), 201)] {
        let thread = single().thread(&store, name);
        let run = thread.run(Case::update()).await;
        assert!(matches!(run, Err(Error::BadThread(n)) if n == length));
        let snapshot = thread.snapshot(None).await;
        assert!(matches!(snapshot, Err(Error::BadThread(n)) if n == length));
    }
    let longest = single().thread(&store, "ä".repeat(200));
    longest.run(Case::update()).await.unwrap().done().unwrap();
}

#[tokio::test]
async fn a_context_reaches_nodes_by_its_type_in_subgraphs_too() {
    #[derive(Debug)]
    struct Tenant(&'static str);
    async fn who(_: &Case, ctx: &Ctx) -> Result<Update<Case>> {
        let Tenant(name) = ctx.context::<Tenant>()?;
        Ok(Case::update().log([format!("{} for {name}", ctx.node())]))
    }
    let inner = graph().node("in", who).start("in").end("in").build();
    let inner = inner.unwrap();
    let outer = graph()
        .node("out", who)
        .node("sub", inner.shared())
        .start("out")
        .edge("out", "sub")
        .end("sub")
        .build()
        .unwrap();
    let state = outer.run(Case::update()).context(Tenant("acme")).await;
    assert_eq!(
        state.unwrap().done().unwrap().log,
        ["out for acme", "in for acme"]
    );
    let missing = "node `out` failed: the run has no context of type";
    for run in [
        outer.run(Case::update()),
        outer.run(Case::update()).context("a string"),
    ] {
        let error = run.await.unwrap_err().to_string();
        assert!(error.starts_with(missing), "{error}");
    }
}

fn graph_of_sub(inner: &Graph<Case>) -> Builder<Case> {
    graph().node("sub", inner.shared()).start("sub").end("sub")
}

#[tokio::test]
async fn nodes_share_a_memory_across_threads() {
    async fn remember(case: &Case, ctx: &Ctx) -> Result<Update<Case>> {
        let user = ["user".to_owned(), "42".to_owned()];
        let memory = ctx.memory()?;
        let before = memory.search(&user, &Query::default()).await?;
        memory
            .put(&user, &case.title, json!({"seen": true}), None)
            .await?;
        Ok(Case::update().log(before.into_iter().map(|item| item.key)))
    }
    let node = || {
        graph()
            .node("remember", remember)
            .start("remember")
            .end("remember")
    };
    let graph = node()
        .memory(Arc::new(MemoryOf::default()))
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    let mut logs = Vec::new();
    for name in ["first", "second"] {
        let run = graph.thread(&store, name).run(Case::update().title(name));
        logs.push(run.await.unwrap().done().unwrap().log);
    }
    assert_eq!(logs, [vec![], vec!["first".to_owned()]]);
    // A subgraph has its own memory, or else its parent's.
    let log_of = async |inner: Graph<Case>, outer: Option<MemoryOf>| {
        let builder = graph_of_sub(&inner);
        let graph = match outer {
            Some(memory) => builder.memory(Arc::new(memory)),
            None => builder,
        };
        let graph = graph.build().unwrap();
        let twice = ["1", "2"].map(|t| graph.invoke(Case::update().title(t)));
        let mut logs = Vec::new();
        for run in twice {
            logs.push(run.await.unwrap().log);
        }
        logs.pop().unwrap()
    };
    let own = node().memory(Arc::new(MemoryOf::default())).build();
    assert_eq!(log_of(own.unwrap(), None).await, ["1"]);
    let without = node().build().unwrap();
    assert_eq!(log_of(without, Some(MemoryOf::default())).await, ["1"]);

    let error = node()
        .build()
        .unwrap()
        .invoke(Case::update())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "node `remember` failed: the graph was built without a memory: .memory(…)"
    );
}

#[test]
fn code_without_a_runtime_calls_a_graph_and_code_inside_one_is_told() {
    let graph = graph()
        .node("left", log)
        .node("right", log)
        .start(["left", "right"])
        .end(["left", "right"])
        .build()
        .unwrap();
    let state = graph.invoke_blocking(Case::update().title("t")).unwrap();
    assert_eq!(state.log, ["left", "right"]);
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let outcome = thread.run(Case::update()).blocking().unwrap();
    assert_eq!(outcome.done().unwrap().log, ["left", "right"]);

    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let inside = runtime.block_on(async { graph.invoke_blocking(Case::update()) });
    assert!(matches!(inside, Err(Error::BlockingInAsync)));
    // As the error says: on a thread that may block, the runtime that is there does it.
    let handle = runtime.handle().clone();
    let blocking = runtime.spawn_blocking(move || handle.block_on(graph.invoke(Case::update())));
    let state = runtime.block_on(blocking).unwrap().unwrap();
    assert_eq!(state.log, ["left", "right"]);
}

#[test]
fn nodes_of_a_blocking_call_may_use_sockets_and_timers() {
    async fn serve(_: &Case, _: &Ctx) -> Result<Update<Case>> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let refused = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
        Ok(Case::update().title(if refused.is_err() { "nobody came" } else { "" }))
    }
    let graph = graph().node("serve", serve).start("serve").end("serve");
    let state = graph.build().unwrap().invoke_blocking(Case::update());
    assert_eq!(state.unwrap().title, "nobody came");
}

#[tokio::test]
async fn a_panic_in_a_node_is_a_failure_of_that_node() {
    static ARMED: AtomicBool = AtomicBool::new(true);
    async fn fragile(_: &Case, _: &Ctx) -> Result<Update<Case>> {
        assert!(!ARMED.swap(false, Ordering::SeqCst), "it broke");
        Ok(Case::update().title("whole"))
    }
    let graph = graph()
        .node("fragile", fragile)
        .start("fragile")
        .end("fragile")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let error = thread.run(Case::update()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "node `fragile` failed: panicked: it broke"
    );
    let state = thread.resume().await.unwrap().done().unwrap();
    assert_eq!(state.title, "whole");
}
