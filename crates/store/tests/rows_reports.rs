//! Public reports on what stores of other frameworks did with rows, each as a test (G11, G13, G15).
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::{
    Checkpoints, Ctx, Graph, HistoryQuery, Keep, Memory, Query, State, Store, ThreadQuery, Threads,
    Update,
};
use paraph_store::{Options, Sqlite};
use serde_json::{Map, Value, json};
use std::sync::Arc;

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    #[reduce(append)]
    log: Vec<String>,
    issue: Value,
}

/// Asks before it does anything.
fn careful() -> Graph<Case> {
    Graph::<Case>::new("careful")
        .node("look", async |_: &Case, _: &Ctx| {
            Ok(Case::update().log(["looked".to_owned()]))
        })
        .node(
            "act",
            async |_: &Case, ctx: &Ctx| -> paraph_graph::Result<Update<Case>> {
                let said: String = ctx.interrupt("may I?", json!("delete it"))?;
                Ok(Case::update().log([said]))
            },
        )
        .edge("look", "act")
        .end("act")
        .start("look")
        .build()
        .unwrap()
}

async fn open() -> (tempfile::TempDir, Arc<Sqlite>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = Sqlite::open(&path, Options::default()).await.unwrap();
    (folder, Arc::new(store))
}

/// G11, langchain-ai/langgraph#6661: a purge by age takes work away that waits for a person.
#[tokio::test(flavor = "multi_thread")]
async fn retention_never_touches_what_waits_for_a_person() {
    let (_folder, store) = open().await;
    let thread = careful().thread(&(store.clone() as Store), "thread");
    let outcome = thread.run(Case::update()).await.unwrap();
    let question = outcome.interrupts().first().unwrap().id.clone();
    let history = thread.history().await.unwrap().len();
    let (long_ago, now) = (Keep::Since(u64::MAX), Keep::Last(1));
    for keep in [long_ago, now] {
        let pruned = store.prune("thread", keep).await.unwrap();
        assert!(pruned.pending, "{pruned:?}");
        assert_eq!(pruned.checkpoints, 0);
    }
    let left = thread.history().await.unwrap().len();
    assert_eq!(left, history);
    let done = thread.answer(&question, "yes").await.unwrap();
    assert_eq!(done.state().log, ["looked", "yes"]);
    // Now nothing waits, and all but the head may go.
    let pruned = store.prune("thread", now).await.unwrap();
    assert!(!pruned.pending && pruned.checkpoints >= 2, "{pruned:?}");
    let state = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!(state.state.log, ["looked", "yes"]);
}

/// G13, langchain-ai/langgraph#5666 (CVE-2025-8709 and its family): the key of a filter became SQL.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_filter_is_never_part_of_a_statement() {
    let (_folder, store) = open().await;
    let thread = careful().thread(&(store.clone() as Store), "thread");
    thread.run(Case::update()).await.unwrap();
    let says = Map::from_iter([("kind".to_owned(), json!("x"))]);
    store.describe("thread", says).await.unwrap();
    let at = ["notes".to_owned()];
    let note = Memory::put(&*store, &at, "key", json!({"kind": "x"}), None);
    note.await.unwrap();
    let scope = paraph_graph::Scope {
        thread: "thread".into(),
        namespace: "".into(),
    };
    let all = store
        .history(&scope, &HistoryQuery::default())
        .await
        .unwrap();
    for key in [
        "x') OR 1=1 --",
        "kind' = 'x' OR '1'='1",
        "$.kind') --",
        "'; DROP TABLE thread; --",
        "\"; DELETE FROM checkpoint; --",
        "$1",
        "?",
    ] {
        let filter = Map::from_iter([(key.to_owned(), json!("x"))]);
        let query = HistoryQuery {
            filter: filter.clone(),
            ..HistoryQuery::default()
        };
        assert_eq!(store.history(&scope, &query).await.unwrap(), [], "{key}");
        let query = ThreadQuery {
            metadata: filter.clone(),
            ..ThreadQuery::default()
        };
        assert_eq!(store.threads(&query).await.unwrap(), [], "{key}");
        let query = Query {
            filter: filter.into_iter().collect(),
            ..Query::default()
        };
        assert_eq!(store.search(&at, &query).await.unwrap(), [], "{key}");
    }
    let left = store.history(&scope, &HistoryQuery::default()).await;
    assert_eq!(left.unwrap(), all);
    assert!(Threads::thread(&*store, "thread").await.unwrap().is_some());
}

/// G15, langchain-ai/langgraphjs#2346: what a user wrote looks like the store's own form and becomes
/// something else.
#[tokio::test(flavor = "multi_thread")]
async fn data_that_looks_like_a_form_of_the_store_stays_data() {
    let (_folder, store) = open().await;
    let graph = careful();
    let looks = [
        json!({"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "x"}}),
        json!({"set": [[0, "x"]], "append": []}),
        json!({"__type__": "datetime", "value": "x"}),
        json!({"$serde_json::private::Number": "1", "$serde_json::private::RawValue": "2"}),
        json!({"own": {"log": [1, 1, 1]}, "older": {}}),
        json!("\u{1}not packed"),
        json!("null"),
        json!(null),
    ];
    for (i, look) in looks.into_iter().enumerate() {
        let name = format!("thread {i}");
        let thread = graph.thread(&(store.clone() as Store), name.as_str());
        let text = look.to_string();
        let input = Case::update().issue(look.clone()).log([text.clone()]);
        let outcome = thread.run(input).await.unwrap();
        let question = outcome.interrupts().first().unwrap().id.clone();
        let done = thread.answer(&question, text.clone()).await.unwrap();
        assert_eq!(done.state().issue, look);
        let says = Map::from_iter([("lc".to_owned(), json!([look]))]);
        let row = store.describe(&name, says.clone()).await.unwrap();
        assert_eq!(row.metadata, says);
        store.copy(&name, &format!("{name} copy")).await.unwrap();
        store.prune(&name, Keep::Last(1)).await.unwrap();
        for name in [name.clone(), format!("{name} copy")] {
            let thread = graph.thread(&(store.clone() as Store), name.as_str());
            let state = thread.snapshot(None).await.unwrap().unwrap().state;
            assert_eq!(state.issue, look);
            assert_eq!(state.log, [text.clone(), "looked".to_owned(), text.clone()]);
        }
        let at = ["notes".to_owned()];
        Memory::put(&*store, &at, &text, look.clone(), None)
            .await
            .unwrap();
        let item = Memory::get(&*store, &at, &text).await.unwrap().unwrap();
        assert_eq!(item.value, look);
    }
}
