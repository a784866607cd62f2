//! The gateway's records and counters on SQLite.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod gateway;

use paraph_gateway::{CallRecord, Change, RunRef, Store};
use paraph_graph::{Checkpoints, Claim, RunEnd, RunId, RunStart, RunStatus, Threads};
use paraph_store::{Options, Sqlite};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn the_gateways_records_are_kept_as_it_needs_them() {
    let folder = tempfile::tempdir().unwrap();
    for key in [None, Some("a")] {
        let path = folder.path().join(format!("{key:?}.db"));
        let options = || Options {
            key: key.map(|digit| digit.repeat(64).parse().unwrap()),
            ..Options::default()
        };
        let store: Arc<dyn Store> = Arc::new(Sqlite::open(&path, options()).await.unwrap());
        gateway::keeps_the_rules(&store, "a").await;
        drop(store);
        // The same in the file that was opened again, and on what is in memory.
        let store: Arc<dyn Store> = Arc::new(Sqlite::open(&path, options()).await.unwrap());
        gateway::keeps_the_rules(&store, "b").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_that_are_first_one_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..2 {
        let store = Sqlite::open(&path, Options::default()).await.unwrap();
        stores.push(Arc::new(store));
    }
    gateway::one_of_two_is_first(&stores, "thread").await;
}

fn record(thread: &str, run: &str) -> CallRecord {
    let run = Arc::new(RunRef {
        tenant: "t".to_owned(),
        agent: "a".to_owned(),
        thread: thread.to_owned(),
        run: run.to_owned(),
    });
    CallRecord {
        run,
        key: "k".to_owned(),
        seq: 1,
        step: 1,
        epoch: 1,
        tool: "tool".to_owned(),
        arguments: "{}".to_owned(),
        args_hash: String::new(),
        args_digest: String::new(),
        outcome: None,
        full_output: None,
        ms: 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_go_with_their_thread_and_with_their_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = Sqlite::open(&path, Options::default()).await.unwrap();
    let mut rows = Vec::new();
    for thread in ["th\"re,ad", "th\"re", "th\"re,ad2"] {
        for _ in 0..2 {
            let run = RunId::fresh();
            let start = Some(RunStart::default());
            let lease = store.lease(thread, Claim { run, start }).await.unwrap();
            let end = RunEnd {
                run,
                epoch: lease.epoch,
                status: RunStatus::Success,
                error: None,
                standing: None,
                events: Vec::new(),
            };
            store.finish(thread, end).await.unwrap();
            let record = record(thread, &run.to_string());
            let change = Change {
                calls: vec![record.clone()],
                ..Change::default()
            };
            store.commit(change).await.unwrap();
            rows.push((run, record));
        }
    }
    let left = async || {
        let mut left = Vec::new();
        for (i, (_, record)) in rows.iter().enumerate() {
            if !store.calls(&record.run).await.unwrap().is_empty() {
                left.push(i);
            }
        }
        left
    };
    assert_eq!(left().await, [0, 1, 2, 3, 4, 5]);
    store.delete_runs(&[rows[3].0]).await.unwrap();
    assert_eq!(left().await, [0, 1, 2, 4, 5]);
    assert!(Threads::delete(&store, "th\"re,ad").await.unwrap());
    assert_eq!(left().await, [2, 4, 5]);
}
