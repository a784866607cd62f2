//! Encryption at rest, and what of a plain store can be read without this program.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_gateway::{Add, CallRecord, Change, Store as _};
use paraph_graph::{
    CheckpointId, Checkpoints, Claim, Delta, Error, EventLog, Interrupt, LogEntry, LogQuery,
    Memory, Metadata, Name, Note, NoteKind, PatchKind, Put, Query, RunEnd, RunId, RunStart,
    RunStatus, Scope, Source, Standing, ThreadStatus, Threads,
};
use paraph_store::{KeyMismatch, Options, Seal, Sqlite};
use rusqlite::Connection;
use serde_json::{Map, Value, json};
use std::{path::Path, sync::Arc};

/// Stands in every document.
const SECRET: &str = "xyzzy-plugh";

fn key(digit: &str) -> Option<Seal> {
    Some(digit.repeat(64).parse().unwrap())
}

async fn open(path: &Path, key: Option<Seal>) -> Result<Sqlite, paraph_store::Error> {
    let options = Options {
        key,
        ..Options::default()
    };
    Sqlite::open(path, options).await
}

fn put(head: Option<CheckpointId>, run: RunId, epoch: u64, value: &Value) -> Put {
    Put {
        id: CheckpointId::fresh(),
        parent: head,
        expect: head,
        metadata: Metadata {
            source: Source::Loop,
            superstep: 0,
            run,
            created_ms: 1,
            user: Map::from_iter([("who".to_owned(), json!(SECRET))]),
        },
        machine: json!({"superstep": 0, "x": SECRET})
            .to_string()
            .into_bytes(),
        deltas: vec![Delta {
            channel: "list".to_owned(),
            kind: PatchKind::Append,
            json: json!([value]).to_string().into_bytes(),
        }],
        notes: vec![Note {
            task: uuid::Uuid::from_u128(1).into(),
            kind: NoteKind::Memo,
            key: "memo".to_owned(),
            json: json!(SECRET).to_string(),
        }],
        epoch,
        standing: Some(Standing {
            status: ThreadStatus::Interrupted,
            next: vec![Name::from("node")],
            interrupts: vec![Interrupt {
                id: "q".to_owned(),
                node: Name::from("node"),
                key: "k".to_owned(),
                namespace: String::new(),
                question: json!(SECRET),
                answer_schema: None,
                refused: None,
            }],
            values: Some(json!({"x": SECRET})),
        }),
        events: vec![LogEntry {
            run,
            namespace: String::new(),
            created_ms: 1,
            json: json!({"type": "custom", "x": SECRET}).to_string(),
            same: Vec::new(),
        }],
    }
}

fn call(run: RunId) -> CallRecord {
    CallRecord {
        run: Arc::new(paraph_gateway::RunRef {
            tenant: "t".to_owned(),
            agent: "a".to_owned(),
            thread: "thread".to_owned(),
            run: run.to_string(),
        }),
        key: "k".to_owned(),
        seq: 1,
        step: 1,
        epoch: 1,
        tool: "tool".to_owned(),
        arguments: json!({"x": SECRET}).to_string(),
        args_hash: String::new(),
        args_digest: String::new(),
        action: None,
        ruling: None,
        outcome: None,
        full_output: None,
        ms: 0,
    }
}

/// Writes to every table, each document with the secret in it.
async fn fill(store: &Sqlite) -> RunId {
    let scope = Scope {
        thread: "thread".into(),
        namespace: "".into(),
    };
    let run = RunId::fresh();
    let start = Some(RunStart {
        graph: "graph".to_owned(),
        arguments: json!({"x": SECRET}),
    });
    let lease = store.lease("thread", Claim { run, start }).await.unwrap();
    let first = put(None, run, lease.epoch, &json!(SECRET));
    let long = format!("{SECRET}{}", "long ".repeat(10_000));
    let second = put(Some(first.id), run, lease.epoch, &json!(long));
    Checkpoints::put(store, &scope, first).await.unwrap();
    Checkpoints::put(store, &scope, second).await.unwrap();
    let end = RunEnd {
        run,
        epoch: lease.epoch,
        status: RunStatus::Error,
        error: Some(format!("error: {SECRET}")),
        standing: None,
        events: Vec::new(),
    };
    store.finish("thread", end).await.unwrap();
    let says = Map::from_iter([("x".to_owned(), json!(SECRET))]);
    store.describe("thread", says).await.unwrap();
    let namespace = ["notes".to_owned()];
    let memory = Memory::put(store, &namespace, "key", json!({"x": SECRET}), None);
    memory.await.unwrap();
    let call = call(run);
    let change = Change {
        add: vec![Add {
            run: call.run.clone(),
            counter: "n".to_owned(),
            by: 1,
        }],
        calls: vec![call],
        ..Change::default()
    };
    store.commit(change).await.unwrap();
    run
}

/// What was written, as it is read back.
async fn seen(store: &Sqlite, run: RunId) -> Vec<String> {
    let scope = Scope {
        thread: "thread".into(),
        namespace: "".into(),
    };
    let loaded = store.load(&scope, None).await.unwrap().unwrap();
    let pieces = loaded.channels.iter().flat_map(|(_, pieces)| pieces);
    let pieces = pieces.map(|piece| String::from_utf8(piece.json.to_vec()).unwrap());
    let mut seen: Vec<String> = pieces.collect();
    seen.push(json!(loaded.metadata.user).to_string());
    seen.push(String::from_utf8(loaded.machine).unwrap());
    seen.extend(loaded.notes.into_iter().map(|note| note.json));
    let log = store.events("thread", &LogQuery::default()).await.unwrap();
    seen.extend(log.into_iter().map(|logged| logged.json));
    let row = Threads::thread(store, "thread").await.unwrap().unwrap();
    seen.push(json!(row).to_string());
    let row = Threads::run(store, run).await.unwrap().unwrap();
    seen.extend([row.arguments.to_string(), row.error.unwrap()]);
    let found = store.search(&[], &Query::from(SECRET)).await.unwrap();
    seen.extend(found.into_iter().map(|item| item.value.to_string()));
    let calls = store.calls(&call(run).run).await.unwrap();
    seen.extend(calls.into_iter().map(|call| call.arguments));
    seen
}

fn bytes(folder: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    files
        .filter(|path| path.is_file())
        .flat_map(|path| std::fs::read(path).unwrap())
        .collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_key_nothing_that_was_said_is_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path, key("5")).await.unwrap();
    let run = fill(&store).await;
    let before = seen(&store, run).await;
    assert_eq!(before.len(), 12);
    for text in &before {
        assert!(text.contains(SECRET), "{text}");
    }
    // Also not in the log of writes, nor in what the database left of older rows.
    assert!(!contains(&bytes(folder.path()), SECRET));
    drop(store);
    let file = bytes(folder.path());
    assert!(!contains(&file, SECRET));
    assert!(!contains(&file, "long long"));
    // Names, ids and statuses are there.
    for name in [
        "thread",
        "graph",
        "list",
        "interrupted",
        "notes",
        &run.to_string(),
    ] {
        assert!(contains(&file, name), "{name}");
    }
    let store = open(&path, key("5")).await.unwrap();
    assert_eq!(seen(&store, run).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_or_none_or_one_too_many_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let (sealed, plain) = (folder.path().join("a.db"), folder.path().join("b.db"));
    drop(open(&sealed, key("5")).await.unwrap());
    drop(open(&plain, None).await.unwrap());
    let table = [
        (&sealed, key("6"), KeyMismatch::Wrong),
        (&sealed, None, KeyMismatch::Missing),
        (&plain, key("5"), KeyMismatch::Plain),
    ];
    for (path, key, why) in table {
        let error = open(path, key).await.map(|_| ()).unwrap_err();
        assert!(
            matches!(&error, paraph_store::Error::Key(mismatch) if *mismatch == why),
            "{error}"
        );
        assert!(!error.to_string().contains(&"5".repeat(8)), "{error}");
    }
    // What was refused changed nothing.
    open(&sealed, key("5")).await.unwrap();
    open(&plain, None).await.unwrap();
}

/// The same documents in two rows of each table that has some.
async fn twins(store: &Sqlite) {
    for thread in ["one", "two"] {
        let scope = Scope {
            thread: thread.into(),
            namespace: "".into(),
        };
        let run = RunId::fresh();
        let first = put(None, run, 0, &json!("first"));
        let second = put(Some(first.id), run, 0, &json!("second"));
        Checkpoints::put(store, &scope, first).await.unwrap();
        Checkpoints::put(store, &scope, second).await.unwrap();
    }
}

async fn all_of(store: &Sqlite, thread: &str) -> Result<(), Error> {
    let scope = Scope {
        thread: thread.into(),
        namespace: "".into(),
    };
    Threads::thread(store, thread).await?;
    store.events(thread, &LogQuery::default()).await?;
    store
        .views(&scope, &paraph_graph::HistoryQuery::default())
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_changed_their_rows_are_found() {
    // Each with the sum of the row it comes from, as a careful forger would do it.
    let swaps = [
        "UPDATE piece SET (value, value_packed, sum) = (SELECT o.value, o.value_packed, o.sum FROM piece o \
         WHERE o.scope = piece.scope AND o.n <> piece.n) WHERE scope = 1",
        "UPDATE piece SET (value, value_packed, sum) = (SELECT o.value, o.value_packed, o.sum FROM piece o \
         WHERE o.scope <> piece.scope AND o.n = piece.n)",
        "UPDATE note SET (value, value_packed, sum) = (SELECT o.value, o.value_packed, o.sum FROM note o \
         WHERE o.scope <> note.scope AND o.n = note.n)",
        "UPDATE checkpoint SET (metadata, metadata_packed, machine, machine_packed, sum) = \
         (SELECT o.metadata, o.metadata_packed, o.machine, o.machine_packed, o.sum FROM checkpoint o \
         WHERE o.scope = checkpoint.scope AND o.id <> checkpoint.id) WHERE scope = 1",
        "UPDATE event SET (value, value_packed, sum) = (SELECT o.value, o.value_packed, o.sum FROM event o \
         WHERE o.thread <> event.thread AND o.seq = event.seq)",
        "UPDATE thread SET (interrupts, interrupts_packed, sum) = \
         (SELECT o.interrupts, o.interrupts_packed, o.sum FROM thread o WHERE o.id <> thread.id)",
        "UPDATE thread_doc SET (state, state_packed, sum) = \
         (SELECT o.state, o.state_packed, o.sum FROM thread_doc o WHERE o.thread <> thread_doc.thread)",
    ];
    for key in [None, key("7")] {
        for swap in swaps {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.db");
            let store = open(&path, key.clone()).await.unwrap();
            twins(&store).await;
            all_of(&store, "one").await.unwrap();
            let written = Connection::open(&path).unwrap().execute(swap, []).unwrap();
            assert!(written >= 2, "{swap}");
            let error = all_of(&store, "one").await.unwrap_err().to_string();
            assert!(error.contains("does not fit its sum"), "{swap}: {error}");
            assert!(error.contains("one"), "{swap}: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_short_documents_are_json_that_sql_can_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path, None).await.unwrap();
    let run = fill(&store).await;
    let sql = Connection::open(&path).unwrap();
    let one = |query: &str| -> String { sql.query_row(query, [], |row| row.get(0)).unwrap() };
    assert_eq!(
        one("SELECT value ->> 0 FROM piece WHERE n = (SELECT MIN(n) FROM piece)"),
        SECRET
    );
    assert_eq!(one("SELECT metadata ->> 'who' FROM checkpoint"), SECRET);
    assert_eq!(one("SELECT machine ->> 'x' FROM checkpoint"), SECRET);
    assert_eq!(one("SELECT value ->> '$' FROM note"), SECRET);
    assert_eq!(one("SELECT value ->> 'x' FROM event"), SECRET);
    assert_eq!(
        one("SELECT interrupts ->> '$[0].question' FROM thread"),
        SECRET
    );
    assert_eq!(one("SELECT state ->> 'x' FROM thread_doc"), SECRET);
    assert_eq!(one("SELECT metadata ->> 'x' FROM thread_doc"), SECRET);
    assert_eq!(one("SELECT arguments ->> 'x' FROM run"), SECRET);
    assert_eq!(
        one("SELECT error ->> '$' FROM run"),
        format!("error: {SECRET}")
    );
    assert_eq!(one("SELECT value ->> 'x' FROM memory"), SECRET);
    assert_eq!(one("SELECT value ->> 'tool' FROM gateway_call"), "tool");
    assert_eq!(one("SELECT id FROM run"), run.to_string());
    // The long one is compressed, and says so in its first byte.
    let packed = "SELECT hex(substr(value_packed, 1, 1)) FROM piece WHERE value IS NULL";
    assert_eq!(one(packed), "01");
    assert_eq!(
        one("SELECT CAST(COUNT(*) AS TEXT) FROM piece WHERE value IS NULL"),
        "1"
    );
}
