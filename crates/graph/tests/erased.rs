//! Graphs without their state's type: what a server does with `Arc<dyn AnyGraph>`, in JSON.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

/// What the desk knows.
#[derive(State, Clone, Default, Debug, JsonSchema)]
struct Desk {
    /// The question.
    question: String,
    #[reduce(append)]
    log: Vec<String>,
    budget: Option<u32>,
    secret: String,
}

#[derive(State, Clone, Default, Debug, JsonSchema)]
struct Inner {
    topic: String,
    #[reduce(append)]
    notes: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Tenant {
    name: String,
}

const ITEM: Each<u32> = Each::new("item");

async fn look(desk: &Desk, ctx: &Ctx) -> Result<Update<Desk>> {
    let tenant = ctx.context::<Tenant>().map_or("nobody", |t| &t.name);
    Ok(Desk::update()
        .log([format!("looked at {} for {tenant}", desk.question)])
        .secret("hidden"))
}

async fn ask(desk: &Desk, ctx: &Ctx) -> Result<Update<Desk>> {
    let answer: Value = ctx.interrupt("ok", &desk.question)?;
    Ok(Desk::update().log([format!("answer {answer}")]))
}

async fn item(n: u32, _: &Desk, _: &Ctx) -> Result<Update<Desk>> {
    Ok(Desk::update().log([format!("item {n}")]))
}

async fn last(_: &Desk, _: &Ctx) -> Result<Update<Desk>> {
    Ok(Desk::update().log(["last".to_owned()]))
}

fn desk() -> Arc<dyn AnyGraph> {
    let graph = Graph::<Desk>::new("desk")
        .node("look", look)
        .node("ask", ask)
        .node("last", last)
        .each(ITEM, item)
        .start("look")
        .branch(
            "look",
            |d| if d.budget.is_some() { "ask" } else { "last" },
            ["ask", "last"],
        )
        .branch(
            "ask",
            |d| {
                if d.log.len() > 9 {
                    vec![ITEM.send(0)]
                } else {
                    vec!["last".into()]
                }
            },
            [ITEM.name(), "last"],
        )
        .edge(ITEM, "last")
        .end("last")
        .input(["question", "budget"])
        .output(["question", "log"])
        .context::<Tenant>();
    Arc::new(graph.build().unwrap())
}

/// A desk whose one node is a graph that asks.
fn nested() -> Arc<dyn AnyGraph> {
    async fn ask(i: &Inner, ctx: &Ctx) -> Result<Update<Inner>> {
        let answer: String = ctx.interrupt("which", &i.topic)?;
        Ok(Inner::update().notes([format!("{} {answer}", i.topic)]))
    }
    let inner = Graph::<Inner>::new("inner").node("ask", ask);
    let inner = inner.start("ask").end("ask").build().unwrap();
    let node = inner.mapped(
        |d: &Desk| Inner::update().topic(d.question.as_str()),
        |i: Inner| Desk::update().log(i.notes),
    );
    let graph = Graph::<Desk>::new("nested").node("sub", node);
    Arc::new(graph.start("sub").end("sub").build().unwrap())
}

fn scope(thread: &str, namespace: &str) -> Scope {
    Scope {
        thread: thread.into(),
        namespace: namespace.into(),
    }
}

async fn run(
    graph: &Arc<dyn AnyGraph>,
    place: Option<(&Store, &str)>,
    ask: AnyAsk,
) -> Result<Outcome<Value>, Error> {
    graph.start(place, Request::new(ask))?.outcome().await
}

fn input(json: Value) -> AnyAsk {
    AnyAsk::Input(json)
}

async fn state(graph: &Arc<dyn AnyGraph>, store: &Store, thread: &str) -> Value {
    let snapshot = graph.snapshot(store, &scope(thread, ""), None).await;
    (*snapshot.unwrap().unwrap().state).clone()
}

// SERVER-NEEDS 14.
#[tokio::test]
async fn graphs_over_different_states_live_under_one_roof() {
    let all: BTreeMap<String, Arc<dyn AnyGraph>> = [desk(), nested()]
        .into_iter()
        .map(|g| (g.name().to_owned(), g))
        .collect();
    let names: Vec<_> = all.keys().collect();
    assert_eq!(names, ["desk", "nested"]);
    let outcome = run(&all["desk"], None, input(json!({"question": "x"}))).await;
    assert_eq!(
        outcome.unwrap().done().unwrap(),
        json!({"question": "x", "log": ["looked at x for nobody", "last"]})
    );
    let drawing = all["nested"].drawing();
    let sub = drawing.nodes.iter().find(|n| n.name == "sub").unwrap();
    let inside = sub.inside.as_ref().unwrap();
    assert_eq!((inside.name.as_ref(), inside.nodes.len()), ("inner", 3));
}

// 2, SERVER-NEEDS 15.
#[test]
fn schemas_say_what_goes_in_and_out_and_nothing_is_required() {
    let question = json!({"description": "The question.", "type": "string"});
    let log = json!({"type": "array", "items": {"type": "string"}});
    let budget = json!({"type": ["integer", "null"], "format": "uint32", "minimum": 0});
    let schema = |properties: Value| {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Desk",
            "description": "What the desk knows.",
            "type": "object",
            "properties": properties,
        })
    };
    let expected = Schemas {
        input: schema(json!({"question": question, "budget": budget})),
        output: schema(json!({"question": question, "log": log})),
        state: schema(json!({
            "question": question, "log": log, "budget": budget, "secret": {"type": "string"},
        })),
        context: json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Tenant",
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        }),
    };
    assert_eq!(desk().schemas(), expected);
    let plain = nested().schemas();
    assert_eq!((plain.context, &plain.input), (Value::Null, &plain.state));
}

// 2, 7.
#[tokio::test]
async fn a_request_that_does_not_fit_is_refused_with_the_place_named() {
    let refused = async |ask: AnyAsk| match run(&desk(), None, ask).await {
        Err(error) => error.to_string(),
        Ok(outcome) => panic!("{outcome:?}"),
    };
    let table = [
        (
            input(json!({"questoin": "x"})),
            "unknown channel `questoin` (known: question, log, budget, secret)",
        ),
        (
            input(json!({"budget": "x"})),
            "channel `budget`: invalid type: string \"x\", expected u32",
        ),
        (
            input(json!({"secret": "x"})),
            "channel `secret` is not part of the input of `desk` (input: question, budget)",
        ),
        (
            input(json!(["x"])),
            "an update is a JSON object keyed by channel, not an array",
        ),
        (
            AnyAsk::Command {
                update: Value::Null,
                goto: vec![],
            },
            "a command that starts a run needs an update or a target",
        ),
        (
            AnyAsk::Command {
                update: json!({}),
                goto: vec![("ghost".to_owned(), None)],
            },
            "`__start__` went to `ghost`, which it did not declare (declared: look, ask, last, item, END)",
        ),
        (
            AnyAsk::Command {
                update: Value::Null,
                goto: vec![("item".to_owned(), Some(json!("x")))],
            },
            "node `item` failed: the payload does not fit: invalid type: string \"x\", expected u32 at line 1 column 3",
        ),
    ];
    for (ask, expected) in table {
        assert_eq!(refused(ask).await, expected);
    }
}

// SERVER-NEEDS 8.
#[tokio::test]
async fn a_context_is_read_as_its_type_or_refused() {
    let with_context = async |graph: Arc<dyn AnyGraph>, context: Value| {
        let mut request = Request::new(input(json!({"question": "x"})));
        request.context = Some(context);
        graph.start(None, request)?.outcome().await?.done()
    };
    let done = with_context(desk(), json!({"name": "acme"})).await.unwrap();
    assert_eq!(done["log"][0], "looked at x for acme");
    let wrong = with_context(desk(), json!({"nom": "acme"})).await;
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "the context of `desk`: missing field `name`"
    );
    let none = with_context(nested(), json!({})).await.unwrap_err();
    assert_eq!(none.to_string(), "the context of `nested`: it takes none");
}

// SERVER-NEEDS 10, 35.
#[tokio::test]
async fn a_command_goes_to_nodes_with_payloads_on_a_thread_or_without() {
    let store = MemoryStore::shared();
    let command = || AnyAsk::Command {
        update: json!({"log": {"$replace": ["begun"]}}),
        goto: vec![
            ("item".to_owned(), Some(json!(2))),
            ("item".to_owned(), Some(json!(1))),
        ],
    };
    for place in [None, Some((&store, "t"))] {
        let done = run(&desk(), place, command()).await.unwrap().done();
        assert_eq!(
            done.unwrap()["log"],
            json!(["begun", "item 2", "item 1", "last"])
        );
    }
    let end = AnyAsk::Command {
        update: json!({"question": "over"}),
        goto: vec![(END.to_owned(), None)],
    };
    let done = run(&desk(), Some((&store, "t")), end).await.unwrap().done();
    assert_eq!(done.unwrap()["question"], "over");
}

// SERVER-NEEDS 10, 11.
#[tokio::test]
async fn a_question_is_answered_with_an_update_and_later_again_at_its_checkpoint() {
    let store = MemoryStore::shared();
    let graph = desk();
    let place = Some((&store, "t"));
    let begin = input(json!({"question": "buy?", "budget": 5}));
    let paused = run(&graph, place, begin).await.unwrap();
    let Outcome::Paused { state, interrupts } = paused else {
        panic!("{paused:?}")
    };
    assert_eq!(
        state,
        json!({"question": "buy?", "log": ["looked at buy? for nobody"]})
    );
    assert_eq!(interrupts[0].question, "buy?");
    let id = interrupts[0].id.clone();
    let snapshot = graph.snapshot(&store, &scope("t", ""), None).await;
    let snapshot = snapshot.unwrap().unwrap();
    assert_eq!(snapshot.interrupts, interrupts);
    assert_eq!(snapshot.next, ["ask"]);
    assert_eq!(snapshot.written, ["question", "log", "budget", "secret"]);
    assert_eq!(*snapshot.state, state, "as far as it is output");
    let asked_at = snapshot.checkpoint;

    // A resume without an answer leaves the question open.
    let still = run(&graph, place, AnyAsk::Resume).await.unwrap();
    assert_eq!(still.interrupts(), interrupts);

    let answers = |answer: Value| AnyAsk::Answers(vec![(id.clone(), answer)]);
    let mut request = Request::new(answers(Value::Null));
    request.update = Some(json!({"log": ["checked"]}));
    let done = graph.start(place, request).unwrap().outcome().await;
    assert_eq!(
        done.unwrap().done().unwrap()["log"],
        json!([
            "looked at buy? for nobody",
            "checked",
            "answer null",
            "last"
        ])
    );
    let again = run(&graph, place, answers(json!(1))).await;
    assert!(matches!(again, Err(Error::NothingToResume(_))));

    let mut request = Request::new(answers(json!({"yes": true})));
    request.at = Some(asked_at);
    let done = graph.start(place, request).unwrap().outcome().await;
    assert_eq!(
        done.unwrap().done().unwrap()["log"],
        json!(["looked at buy? for nobody", "answer {\"yes\":true}", "last"])
    );
}

#[tokio::test]
async fn history_writes_and_forks_go_through_the_erased_graph() {
    let store = MemoryStore::shared();
    let graph = desk();
    let begin = input(json!({"question": "a"}));
    run(&graph, Some((&store, "t")), begin)
        .await
        .unwrap()
        .done()
        .unwrap();
    let history = async |query: HistoryQuery| {
        let entries = graph
            .history(&store, &scope("t", ""), &query)
            .await
            .unwrap();
        entries.into_iter().map(|e| e.id).collect::<Vec<_>>()
    };
    let all = history(HistoryQuery::default()).await;
    assert_eq!(all.len(), 3);
    let newest = HistoryQuery {
        limit: Some(1),
        ..HistoryQuery::default()
    };
    assert_eq!(history(newest).await, all[..1]);

    // Written to the state alone, nothing is due.
    let to_state = AnyWrite::State(json!({"question": "b"}));
    let id = graph
        .write(&store, &scope("t", ""), None, to_state)
        .await
        .unwrap();
    let snapshot = graph.snapshot(&store, &scope("t", ""), Some(id)).await;
    let snapshot = snapshot.unwrap().unwrap();
    assert_eq!(
        (snapshot.finished, snapshot.metadata.source),
        (true, Source::Update)
    );
    assert_eq!(snapshot.state["question"], "b");

    // Written as a node, that node's branch says what is due.
    let as_node = AnyWrite::As(vec![AsNode::of("look", json!({"budget": 1}))]);
    graph
        .write(&store, &scope("t", ""), None, as_node)
        .await
        .unwrap();
    let snapshot = graph.snapshot(&store, &scope("t", ""), None).await;
    assert_eq!(snapshot.unwrap().unwrap().next, ["ask"]);

    // Back to where `look` had run, and on from there.
    let forked = graph.fork(&store, "t", all[1]).await.unwrap();
    assert_eq!(history(HistoryQuery::default()).await[0], forked);
    let done = run(&graph, Some((&store, "t")), AnyAsk::Resume).await;
    assert_eq!(
        done.unwrap().done().unwrap(),
        json!({"question": "a", "log": ["looked at a for nobody", "last"]})
    );

    let error = graph
        .write(
            &store,
            &scope("t", ""),
            None,
            AnyWrite::State(json!({"x": 1})),
        )
        .await;
    assert!(matches!(error, Err(Error::UnknownChannel { channel, .. }) if channel == "x"));
    let error = graph
        .write(
            &store,
            &scope("t", ""),
            None,
            AnyWrite::As(vec![AsNode::of("x", json!(null))]),
        )
        .await;
    assert!(matches!(error, Err(Error::UnknownNode { node, .. }) if node == "x"));
}

// 42.
#[tokio::test]
async fn a_subgraph_is_read_and_written_by_its_namespace() {
    let store = MemoryStore::shared();
    let graph = nested();
    let begin = input(json!({"question": "tea"}));
    let paused = run(&graph, Some((&store, "t")), begin).await.unwrap();
    let snapshot = graph.snapshot(&store, &scope("t", ""), None).await;
    let task = snapshot.unwrap().unwrap().tasks.remove(0);
    assert_eq!(task.interrupts, paused.interrupts());
    let child = task.child.unwrap();
    let inside = scope("t", &child.namespace);
    let snapshot = graph.snapshot(&store, &inside, None).await;
    let snapshot = snapshot.unwrap().unwrap();
    assert_eq!(Some(snapshot.checkpoint), child.checkpoint);
    assert_eq!(*snapshot.state, json!({"topic": "tea", "notes": []}));
    assert_eq!(snapshot.next, ["ask"]);

    let write = AnyWrite::State(json!({"topic": "coffee"}));
    graph.write(&store, &inside, None, write).await.unwrap();
    let id = paused.interrupts()[0].id.clone();
    let answer = AnyAsk::Answers(vec![(id, json!("black"))]);
    let done = run(&graph, Some((&store, "t")), answer).await.unwrap();
    assert_eq!(done.done().unwrap()["log"], json!(["coffee black"]));
    assert_eq!(
        state(&graph, &store, "t").await["log"],
        json!(["coffee black"])
    );

    let nowhere = graph.snapshot(&store, &scope("t", "other:1"), None).await;
    assert!(matches!(nowhere, Err(Error::UnknownNode { node, .. }) if node == "other:1"));
}

// SERVER-NEEDS 6, 8, 9.
#[tokio::test]
async fn a_request_carries_the_run_id_options_and_modes() {
    let store = MemoryStore::shared();
    let graph = desk();
    let mut request = Request::new(input(json!({"question": "x"})));
    request.modes = vec![Mode::Values, Mode::Updates];
    request.options.pause_before = vec!["last".into()];
    let user = json!({"user": "ada"});
    request.options.metadata = user.as_object().unwrap().clone();
    let run_id = request.run;
    let mut stream = graph.start(Some((&store, "t")), request).unwrap();
    let mut told = Vec::new();
    while let Some(event) = stream.next().await {
        assert_eq!((event.run, &*event.scope.thread), (run_id, "t"));
        told.push(serde_json::to_value(&event.data).unwrap());
    }
    assert_eq!(
        told,
        [
            json!({"type": "values", "state": {"question": "x", "log": []}}),
            json!({"type": "update", "node": "look", "update": {
                "log": ["looked at x for nobody"], "secret": "hidden",
            }}),
            json!({"type": "values", "state": {"question": "x", "log": ["looked at x for nobody"]}}),
        ]
    );
    let outcome = stream.outcome().await.unwrap();
    let Outcome::Stopped { next, why, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((next, why), (vec!["last".into()], StoppedBy::Breakpoint));
    let of_user = HistoryQuery {
        filter: user.as_object().unwrap().clone(),
        ..HistoryQuery::default()
    };
    let entries = graph
        .history(&store, &scope("t", ""), &of_user)
        .await
        .unwrap();
    let shown: Vec<_> = entries
        .iter()
        .map(|e| (e.metadata.run, e.metadata.source, e.metadata.superstep))
        .collect();
    assert_eq!(
        shown,
        [(run_id, Source::Loop, 0), (run_id, Source::Input, -1)]
    );
    let done = run(&graph, Some((&store, "t")), AnyAsk::Resume).await;
    assert_eq!(done.unwrap().done().unwrap()["log"][1], "last");
}
