//! Rows, logs and whole threads on SQLite: the rules that every store keeps, and what only a file shows.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::{
    CancelReason, CheckpointId, Checkpoints, Claim, Delta, EventLog, Keep, LogEntry, LogQuery,
    Memory, Metadata, Note, NoteKind, PatchKind, Put, RunEnd, RunId, RunStart, RunStatus, Scope,
    Source, Standing, Threads, conformance,
};
use paraph_store::{Options, Sqlite};
use std::{sync::Arc, time::Duration};

fn options(key: Option<&str>) -> Options {
    Options {
        key: key.map(|digit| digit.repeat(64).parse().unwrap()),
        ..Options::default()
    }
}

async fn keeps_the_rules(key: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.db");
    let store = Arc::new(Sqlite::open(&path, options(key)).await.unwrap());
    let (threads, memory): (Arc<dyn Threads>, Arc<dyn Memory>) = (store.clone(), store);
    let mut broken = Vec::new();
    for rule in conformance::THREAD_RULES {
        broken.extend(rule.check(&threads).await.err());
    }
    for rule in conformance::MEMORY_RULES {
        broken.extend(rule.check(&memory).await.err());
    }
    assert_eq!(broken, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_the_rules_about_threads_and_memory() {
    keeps_the_rules(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_them_with_encryption_too() {
    keeps_the_rules(Some("5")).await;
}

async fn open(path: &std::path::Path) -> Arc<Sqlite> {
    Arc::new(Sqlite::open(path, options(None)).await.unwrap())
}

fn claim(run: RunId) -> Claim {
    Claim {
        run,
        start: Some(RunStart::default()),
    }
}

fn put(head: Option<CheckpointId>, run: RunId, epoch: u64) -> Put {
    Put {
        id: CheckpointId::fresh(),
        parent: head,
        expect: head,
        metadata: Metadata {
            source: Source::Loop,
            superstep: 0,
            run,
            created_ms: 1,
            user: serde_json::Map::new(),
        },
        machine: br#"{"superstep":0}"#.to_vec(),
        deltas: Vec::new(),
        notes: Vec::new(),
        epoch,
        standing: None,
        events: Vec::new(),
    }
}

fn told(run: RunId, same: &[&str]) -> LogEntry {
    LogEntry {
        run,
        namespace: String::new(),
        created_ms: 1,
        json: r#"{"type":"updates"}"#.to_owned(),
        same: same.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_written_by_one_process_reaches_the_driver_in_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let (driver, other) = (open(&path).await, open(&path).await);
    let run = RunId::fresh();
    let mut lease = driver.lease("thread", claim(run)).await.unwrap();
    let row = other.cancel(run, CancelReason::Superseded).await.unwrap();
    assert!(row.live, "its driver is in another store, and lives");
    let wish = lease.wish.as_mut().unwrap();
    let told = tokio::time::timeout(Duration::from_secs(20), wish.wait_for(Option::is_some));
    assert_eq!(
        *told.await.unwrap().unwrap(),
        Some(CancelReason::Superseded)
    );
    let end = RunEnd {
        run,
        epoch: lease.epoch,
        status: RunStatus::Cancelled,
        error: None,
        standing: None,
        events: Vec::new(),
    };
    driver.finish("thread", end).await.unwrap();
    let row = Threads::run(&*other, run).await.unwrap().unwrap();
    assert_eq!((row.status, row.live), (RunStatus::Cancelled, false));
    assert!(row.cancel.unwrap().done_ms.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn growth_of_a_log_is_seen_from_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let (writer, reader) = (open(&path).await, open(&path).await);
    let waiting = tokio::spawn(async move {
        let grown = tokio::time::timeout(Duration::from_secs(20), reader.grown("thread", 0));
        grown.await.unwrap().unwrap();
        reader
            .events("thread", &LogQuery::default())
            .await
            .unwrap()
            .len()
    });
    let run = RunId::fresh();
    let mut first = put(None, run, 0);
    first.events = vec![told(run, &[])];
    Checkpoints::put(&*writer, &scope(""), first).await.unwrap();
    assert_eq!(waiting.await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_removed_leaves_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    let sql = rusqlite::Connection::open(&path).unwrap();
    let count = |table: &str| -> i64 {
        let count = format!("SELECT COUNT(*) FROM {table}");
        sql.query_row(&count, [], |row| row.get(0)).unwrap()
    };
    let run = RunId::fresh();
    let lease = store.lease("thread", claim(run)).await.unwrap();
    let mut head = None;
    for i in 0..100 {
        for namespace in ["", "sub"] {
            let mut next = put(head.filter(|_| namespace.is_empty()), run, lease.epoch);
            if namespace.is_empty() {
                head = Some(next.id);
            } else if i > 0 {
                continue;
            }
            let kind = match i % 10 {
                9 => PatchKind::Edit,
                _ => PatchKind::Append,
            };
            let json = match i % 10 {
                9 => r#"{"set":[[0,"edited"]],"append":["9"]}"#.to_owned(),
                _ => format!("[\"{i}\"]"),
            };
            next.deltas = vec![Delta {
                channel: "list".to_owned(),
                kind,
                json: json.into_bytes(),
            }];
            next.notes = vec![Note {
                task: uuid::Uuid::from_u128(1).into(),
                kind: NoteKind::Memo,
                key: String::new(),
                json: "1".to_owned(),
            }];
            next.events = vec![told(run, &["list"])];
            Checkpoints::put(&*store, &scope(namespace), next)
                .await
                .unwrap();
        }
    }
    let end = RunEnd {
        run,
        epoch: lease.epoch,
        status: RunStatus::Success,
        error: None,
        standing: Some(Standing {
            values: Some(serde_json::json!({"x": 1})),
            ..Standing::IDLE
        }),
        events: Vec::new(),
    };
    store.finish("thread", end).await.unwrap();
    store.trim("thread", 1000).await.unwrap();
    let before = store.load(&scope(""), None).await.unwrap().unwrap();
    let pruned = store.prune("thread", Keep::Last(3)).await.unwrap();
    assert_eq!(pruned.checkpoints, 97);
    let after = store.load(&scope(""), None).await.unwrap().unwrap();
    let pieces = |loaded: &paraph_graph::Loaded| loaded.channels[0].1.len();
    // The three newest changes, one of them an edit, and the value before them, which had been edited.
    assert_eq!((pieces(&before), pieces(&after)), (100, 4));
    assert_eq!(count("checkpoint"), 3 + 1);
    assert_eq!(count("note"), 3 + 1);
    assert_eq!(count("piece"), 4 + 1);
    assert!(Threads::delete(&*store, "thread").await.unwrap());
    let tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut tables = sql.prepare(tables).unwrap();
    let tables = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
    for table in tables.map(Result::unwrap).filter(|table| table != "store") {
        assert_eq!(count(&table), 0, "{table}");
    }
}

fn scope(namespace: &str) -> Scope {
    Scope {
        thread: "thread".into(),
        namespace: namespace.into(),
    }
}
