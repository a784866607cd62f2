//! What no reader of threads comes across: rows and references that somebody damaged are found and named,
//! and one does not hide the others.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod suite;

use paraph_graph::{Checkpoints, LogEntry, NoteKind, PatchKind};
use paraph_store::Verify;
use rusqlite::Connection;
use serde_json::json;
use std::path::Path;
use suite::{Line, lease, note, open, start};

/// A store with a thread `t` of two checkpoints.
async fn filled(path: &Path) {
    let store = open(path).await;
    let mut line = Line::on("t");
    line.epoch = lease(&*store, "t", &start(line.run)).await.epoch;
    for i in 0..2 {
        let mut put = line.put(&[("list", PatchKind::Append, json!([i]))]);
        put.notes = vec![note(1, NoteKind::Memo, "k", "1")];
        put.events = vec![LogEntry {
            run: line.run,
            namespace: String::new(),
            created_ms: 5,
            json: "{}".to_owned(),
            same: Vec::new(),
        }];
        line.head = Some(put.id);
        Checkpoints::put(&*store, &line.scope, put).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_damaged_beside_the_threads_is_found_and_named() {
    let table = [
        (
            "INSERT INTO gateway_call VALUES ('[\"t\",\"r\",\"\",\"\"]', 'call', 1, '{}', NULL, 0)",
            "gateway call `call`",
        ),
        (
            "INSERT INTO memory VALUES ('', 'key', 1, 1, NULL, '{}', NULL, 0)",
            "document `key` of memory",
        ),
        (
            "UPDATE scope SET head = '01920000-0000-7000-8000-000000000000'",
            "the head of thread `t`: checkpoint 01920000-0000-7000-8000-000000000000 is not there",
        ),
        (
            "UPDATE scope SET head = NULL",
            "the head of thread `t`: it names none",
        ),
        (
            "UPDATE thread SET seq = 1",
            "its newest number of the log is 1 there, and one has 2",
        ),
        (
            "UPDATE thread SET counter = 0",
            "its newest number of pieces and notes is 0 there",
        ),
        ("DELETE FROM event WHERE seq = 1", ""),
    ];
    for (damage, expected) in table {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        filled(&path).await;
        let store = open(&path).await;
        assert_eq!(store.problems().await.unwrap(), Vec::<String>::new());
        Connection::open(&path)
            .unwrap()
            .execute(damage, [])
            .unwrap();
        let problems = store.problems().await.unwrap();
        let count = usize::from(!expected.is_empty());
        assert_eq!(problems.len(), count, "{damage}: {problems:?}");
        assert!(
            problems.iter().all(|p| p.contains(expected)),
            "{damage}: {problems:?}"
        );
        let scope = Line::on("t").scope;
        assert_eq!(store.checkpoints(&scope).await.unwrap().len(), 2);
        let places = store.places("t").await.unwrap();
        assert_eq!(places.last(), Some(&2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_format_below_all_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    filled(&path).await;
    let file = Connection::open(&path).unwrap();
    file.pragma_update(None, "user_version", -1).unwrap();
    let error = paraph_store::Sqlite::open(&path, paraph_store::Options::default()).await;
    let text = error.err().unwrap().to_string();
    assert!(
        text.contains("its format is -1") && text.len() < 300,
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_does_not_lie_in_the_file_any_more() {
    use paraph_graph::Threads;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    let secret = json!({"secret": "hunter2-hunter2"})
        .as_object()
        .cloned()
        .unwrap();
    store.describe("t", secret).await.unwrap();
    assert!(store.delete("t").await.unwrap());
    drop(store);
    let has = |path: &Path| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(15).any(|window| window == b"hunter2-hunter2")
    };
    // The last connection brings all that was written into the file, and leaves nothing beside it.
    let file = Connection::open(&path).unwrap();
    file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    assert!(!has(&path));
}
