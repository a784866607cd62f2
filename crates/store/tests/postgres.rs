//! Postgres as a store: the rules that every store keeps, and what only a server can do to it.
#![cfg(feature = "postgres")]
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod cluster;

use cluster::{Cluster, Stop};
use paraph_graph::{conformance, *};
use paraph_store::{Options, Postgres};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Notify;

async fn open(url: &str, options: Options) -> Store {
    Arc::new(Postgres::connect(url, options).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_store_does_what_every_store_must() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = Postgres::connect(&cluster.url(), Options::default()).await;
    let store = Arc::new(store.unwrap());
    let (threads, memory): (Arc<dyn Threads>, Arc<dyn Memory>) = (store.clone(), store.clone());
    let store: Store = store;
    let mut broken = Vec::new();
    for rule in conformance::RULES {
        broken.extend(rule.check(&store).await.err());
    }
    for rule in conformance::THREAD_RULES {
        broken.extend(rule.check(&threads).await.err());
    }
    for rule in conformance::MEMORY_RULES {
        broken.extend(rule.check(&memory).await.err());
    }
    assert_eq!(broken, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_on_postgres_do_what_they_do_on_every_store() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = Postgres::connect(&cluster.url(), Options::default()).await;
    let store: Arc<dyn Threads> = Arc::new(store.unwrap());
    let mut broken = Vec::new();
    for rule in conformance::ENGINE_RULES {
        broken.extend(rule.check(&store).await.err());
    }
    broken.extend(conformance::check_programs(&store, 0..2).await.err());
    assert_eq!(broken, []);
}

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    #[reduce(append)]
    log: Vec<String>,
    text: String,
}

/// What a graph's middle node waits for.
#[derive(Clone, Default)]
struct Gate {
    reached: Arc<Notify>,
    open: Arc<Notify>,
    runs: Arc<AtomicU32>,
}

fn log(text: &str) -> Update<Case> {
    Case::update().log([text.to_owned()])
}

/// Three nodes; the one in the middle waits at the gate, and has done a step before.
fn gated(gate: &Gate) -> Graph<Case> {
    Graph::<Case>::new("gated")
        .node("first", async |_: &Case, _: &Ctx| Ok(log("first")))
        .node(
            "middle",
            with(gate.clone(), async |gate: &Gate, _: &Case, ctx: &Ctx| {
                let runs = gate.runs.clone();
                ctx.step(
                    "count",
                    async move { Ok(runs.fetch_add(1, Ordering::Relaxed)) },
                )
                .await?;
                gate.reached.notify_one();
                gate.open.notified().await;
                Ok(log("middle"))
            }),
        )
        .node("last", async |_: &Case, _: &Ctx| Ok(log("last")))
        .start("first")
        .edge("first", "middle")
        .edge("middle", "last")
        .end("last")
        .build()
        .unwrap()
}

/// What is the same in the histories of two runs that went alike.
async fn history(thread: &Thread<Case>) -> Vec<(Source, i64)> {
    let entries = thread.history().await.unwrap().into_iter();
    entries
        .map(|e| (e.metadata.source, e.metadata.superstep))
        .collect()
}

// G01, langchain-ai/langgraph#5675: the server closes what is idle while a node waits for a model.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_closed_while_a_node_waits_costs_nothing() {
    let Some(cluster) = Cluster::with(&["fsync=off", "idle_session_timeout=100ms"]) else {
        return;
    };
    let store = open(&cluster.url(), Options::default()).await;
    let gate = Gate::default();
    let graph = gated(&gate);
    let pids = || {
        let all = "SELECT string_agg(pid::text, ',') FROM pg_stat_activity WHERE application_name = 'paraph'";
        cluster.sql("postgres", all)
    };
    for (name, by_the_server) in [("idle", true), ("cut", false)] {
        let thread = graph.thread(&store, name);
        let run = thread.run(Case::update().text("x"));
        let run = tokio::spawn(async move { run.await });
        gate.reached.notified().await;
        let before = pids();
        if !by_the_server {
            let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'paraph'";
            cluster.sql("postgres", cut);
        }
        // Until none of the connections is there that there were when the node began to wait.
        while before
            .split(',')
            .any(|pid| pids().split(',').any(|p| p == pid))
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        gate.open.notify_one();
        let state = run.await.unwrap().unwrap().done().unwrap();
        assert_eq!(state.log, ["first", "middle", "last"]);
        let supersteps = [2, 1, 0].map(|superstep| (Source::Loop, superstep));
        let all = [&supersteps[..], &[(Source::Input, -1)]].concat();
        assert_eq!(history(&thread).await, all);
    }
    assert_eq!(gate.runs.load(Ordering::Relaxed), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_key_no_document_can_be_read_with_sql() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let sealed = Options {
        key: Some("5e".repeat(32).parse().unwrap()),
        ..Options::default()
    };
    let store = open(&cluster.url(), sealed).await;
    let gate = Gate::default();
    gate.open.notify_one();
    let thread = gated(&gate).thread(&store, "t");
    let start = thread
        .run(Case::update().text("private"))
        .metadata("who", "private");
    start.await.unwrap();
    let read = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!(read.state.text, "private");
    for (table, columns) in [
        ("piece", "value"),
        ("note", "value"),
        ("event", "value"),
        ("checkpoint", "metadata, machine"),
        ("thread", "interrupts"),
        ("thread_doc", "metadata, state"),
        ("run", "arguments, error"),
    ] {
        let readable = format!("SELECT count(*), count(coalesce({columns})) FROM {table}");
        let said = cluster.sql("postgres", &readable);
        assert!(said.ends_with("|0"), "{table}: {said}");
        let told = format!("SELECT count(*) FROM {table} t WHERE t::text LIKE '%private%'");
        assert_eq!(cluster.sql("postgres", &told), "0", "{table}");
    }
}

// G02, langchain-ai/langgraph#1878: Postgres has no NUL in text.
#[tokio::test(flavor = "multi_thread")]
async fn texts_names_and_keys_with_nul_are_kept_and_json_can_be_read_with_sql() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = open(&cluster.url(), Options::default()).await;
    let graph = Graph::<Case>::new("g")
        .node("n", async |c: &Case, ctx: &Ctx| {
            let text = c.text.clone();
            let text: String = ctx.step("nul \0 key", async move { Ok(text) }).await?;
            Ok(Case::update().log([text, "größe".to_owned()]))
        })
        .start("n")
        .end("n")
        .build()
        .unwrap();
    let name = "thread \0 with \u{1} and \\0";
    let thread = graph.thread(&store, name);
    let text = "a\0b \\u0000 \u{1}0";
    let done = thread.run(Case::update().text(text)).await.unwrap();
    assert_eq!(done.state().log[0], text);
    // Another process reads the same.
    let other = open(&cluster.url(), Options::default()).await;
    let read = graph
        .thread(&other, name)
        .snapshot(None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(read.state.text, text);
    assert_eq!(read.state.log, [text, "größe"]);
    graph
        .thread(&store, "plain")
        .run(Case::update().text("x"))
        .await
        .unwrap();
    let words = "SELECT value::jsonb FROM piece JOIN scope ON scope.id = piece.scope \
                 JOIN thread ON thread.id = scope.thread WHERE name = 'plain' AND channel = 'log'";
    assert_eq!(cluster.sql("postgres", words), "[\"x\", \"größe\"]");
    let sources = "SELECT source, superstep FROM checkpoint ORDER BY id LIMIT 2";
    assert_eq!(cluster.sql("postgres", sources), "input|-1\nloop|0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_a_restart_of_the_server_and_can_be_resumed_after_a_longer_one() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let patient = open(&cluster.url(), Options::default()).await;
    let impatient = Options {
        patience: Duration::from_millis(300),
        ..Options::default()
    };
    let impatient = open(&cluster.url(), impatient).await;
    let gate = Gate::default();
    let graph = gated(&gate);
    let mut runs = Vec::new();
    for (store, name) in [(&patient, "patient"), (&impatient, "impatient")] {
        let run = graph.thread(store, name).run(Case::update());
        runs.push(tokio::spawn(async move { run.await }));
        gate.reached.notified().await;
    }
    cluster.stop(Stop::Abrupt);
    let down = Instant::now();
    gate.open.notify_waiters();
    let (impatient_run, patient_run) = (runs.pop().unwrap(), runs.pop().unwrap());
    let error = impatient_run.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Store(_)), "{error:?}");
    assert!(error.to_string().contains("Connection refused"), "{error}");
    assert!(
        down.elapsed() < Duration::from_secs(10),
        "{:?}",
        down.elapsed()
    );
    cluster.begin();
    let done = patient_run.await.unwrap().unwrap().done().unwrap();
    assert_eq!(done.log, ["first", "middle", "last"]);
    // What was saved is there, and what was not saved is done again, but for its step.
    gate.open.notify_one();
    let thread = graph.thread(&impatient, "impatient");
    let done = thread.resume().await.unwrap().done().unwrap();
    assert_eq!(done.log, ["first", "middle", "last"]);
    assert_eq!(gate.runs.load(Ordering::Relaxed), 2);
    assert_eq!(
        history(&thread).await,
        history(&graph.thread(&patient, "patient")).await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_stores_one_drives_a_thread_and_the_other_hears_which_run_does() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let one = open(&cluster.url(), Options::default()).await;
    let two = open(&cluster.url(), Options::default()).await;
    let gate = Gate::default();
    let graph = gated(&gate);
    let run = RunId::fresh();
    let first = graph.thread(&one, "t").run(Case::update()).run_id(run);
    let first = tokio::spawn(async move { first.await });
    gate.reached.notified().await;
    let second = graph
        .thread(&two, "t")
        .run(Case::update())
        .await
        .unwrap_err();
    assert!(
        matches!(&second, Error::Conflict { holder: Some(holder), .. } if *holder == run),
        "{second}"
    );
    gate.open.notify_one();
    first.await.unwrap().unwrap().done().unwrap();
    gate.open.notify_one();
    let third = graph.thread(&two, "t").run(Case::update()).await.unwrap();
    assert_eq!(third.done().unwrap().log.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_put_is_on_disk_before_it_is_told_whatever_the_server_is_set_to() {
    let Some(cluster) = Cluster::with(&["fsync=on", "synchronous_commit=off"]) else {
        return;
    };
    // A server writes its own figures down when a session ends.
    let syncs = || -> i64 {
        cluster
            .sql("postgres", "SELECT wal_sync FROM pg_stat_wal")
            .parse()
            .unwrap()
    };
    let store = open(&cluster.url(), Options::default()).await;
    let scope = Scope {
        thread: "t".into(),
        namespace: "".into(),
    };
    let puts = 50;
    let before = syncs();
    let mut head = None;
    for superstep in 0..puts {
        let id = CheckpointId::fresh();
        let put = Put {
            id,
            parent: head,
            expect: head,
            metadata: Metadata {
                source: Source::Loop,
                superstep,
                run: RunId::fresh(),
                created_ms: 1,
                user: serde_json::Map::new(),
            },
            machine: b"{}".to_vec(),
            deltas: Vec::new(),
            notes: Vec::new(),
            epoch: 0,
            standing: None,
            events: Vec::new(),
        };
        store.put(&scope, put).await.unwrap();
        head = Some(id);
    }
    drop(store);
    let all = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'paraph'";
    while cluster.sql("postgres", all) != "0" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let synced = syncs() - before;
    assert!(synced >= puts, "{puts} puts, {synced} syncs");
}
