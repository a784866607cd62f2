//! A store of each format, as an earlier program wrote it: it is read, and written to, for ever.
//!
//! `golden/vN.db` is made, for the newest format, by the test that is ignored here. It stays as it is when the
//! program changes; whoever changes the format adds a file.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod deeds;
mod suite;

use paraph_gateway::{Change, Find, State, Store as _};
use paraph_graph::{
    CheckpointId, Checkpoints, EventLog, HistoryQuery, LogEntry, LogQuery, Memory, Name, NoteKind,
    PatchKind, RunEnd, RunId, RunQuery, RunStatus, Scope, Source, Standing, TaskId, ThreadStatus,
    Threads,
};
use paraph_retrieval::{Batch, Corpus, Cursor, Document, Identity, IssueRef, Kept, Vectors};
use paraph_store::Sqlite;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use suite::{Line, list, note, open, start};
use uuid::Uuid;

fn golden(format: i64) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    folder.join(format!("v{format}.db"))
}

/// The formats there have been.
const FORMATS: [i64; 4] = [1, 2, 3, 4];

fn id(n: u128) -> Uuid {
    Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 | n)
}

fn long() -> Value {
    json!(["long ".repeat(5000)])
}

/// A checkpoint, what it follows, and what it changes.
type Step<'a> = (u128, Option<u128>, &'a [(&'a str, PatchKind, Value)]);

/// A thread with a fork, a subgraph, edits, long values, notes, a log and a run that failed.
async fn write(store: &Sqlite) {
    let mut line = Line::on("a thread of ünï\u{0}code");
    line.run = RunId::from(id(1));
    let lease = store
        .lease(&line.scope.thread, start(line.run))
        .await
        .unwrap();
    line.epoch = lease.epoch;
    let steps: [Step<'_>; 5] = [
        (
            10,
            None,
            &[
                ("list", PatchKind::Append, json!([1, 2])),
                ("text", PatchKind::Whole, json!("here")),
                (
                    "more",
                    PatchKind::Whole,
                    json!({"a": [1e300, -7, null, "\u{0}"]}),
                ),
                ("rest", PatchKind::Whole, json!(0)),
            ],
        ),
        (11, Some(10), &[("list", PatchKind::Append, json!([3]))]),
        (
            12,
            Some(11),
            &[(
                "list",
                PatchKind::Edit,
                json!({"set": [[0, 9]], "append": [4]}),
            )],
        ),
        (13, Some(11), &[("list", PatchKind::Append, long())]),
        (14, Some(13), &[("text", PatchKind::Whole, json!("there"))]),
    ];
    for (n, parent, deltas) in steps {
        let mut put = line.put(deltas);
        put.id = CheckpointId::from(id(n));
        put.parent = parent.map(|parent| CheckpointId::from(id(parent)));
        put.metadata.source = if n == 13 { Source::Fork } else { Source::Loop };
        put.notes = vec![note(n, NoteKind::Done, "", "{\"done\":true}")];
        put.events = vec![LogEntry {
            run: line.run,
            namespace: String::new(),
            created_ms: 1_700_000_000_000,
            json: format!("{{\"n\":{n},\"update\":{{\"other\":1}}}}"),
            same: deltas.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        }];
        line.head = Some(put.id);
        Checkpoints::put(store, &line.scope, put).await.unwrap();
    }
    store
        .note(
            &line.scope,
            line.notes(vec![note(14, NoteKind::Memo, "k\u{0}é", "1")]),
        )
        .await
        .unwrap();
    write_rest(store, &line).await;
}

async fn write_rest(store: &Sqlite, line: &Line) {
    let mut inner = line.clone();
    inner.scope.namespace = "sub:1".into();
    inner.head = None;
    let mut put = inner.put(&[("inner", PatchKind::Append, json!(["x"]))]);
    put.id = CheckpointId::from(id(20));
    Checkpoints::put(store, &inner.scope, put).await.unwrap();
    let end = RunEnd {
        run: line.run,
        epoch: line.epoch,
        status: RunStatus::Error,
        error: Some("it failed".to_owned()),
        standing: Some(Standing {
            status: ThreadStatus::Error,
            next: vec![Name::from("node")],
            interrupts: Vec::new(),
            values: Some(json!({"text": "there"})),
        }),
        events: Vec::new(),
    };
    store.finish(&line.scope.thread, end).await.unwrap();
    let about = json!({"about": "it"}).as_object().cloned().unwrap();
    store.describe(&line.scope.thread, about).await.unwrap();
    let space = ["user".to_owned(), "42".to_owned()];
    Memory::put(store, &space, "k", json!({"likes": "tea"}), None)
        .await
        .unwrap();
    write_gateway(store).await;
    write_corpus(store).await;
}

/// What the gateway keeps: of each kind something, since format 3.
fn of_gateway() -> Change {
    let thread = "a thread of ünï\u{0}code";
    let rows = [
        deeds::action(thread, 1, State::Pending),
        deeds::action("another", 2, State::Succeeded),
    ];
    Change {
        calls: vec![deeds::call(&deeds::run(thread, "1"))],
        wake: vec![deeds::wake(&rows[0])],
        kill: vec![deeds::kill("tool:\u{0}é")],
        actions: rows.to_vec(),
        ..deeds::audited(3)
    }
}

async fn write_gateway(store: &Sqlite) {
    store.commit(of_gateway()).await.unwrap();
}

async fn gateway_is_there(store: &Sqlite) {
    let should = of_gateway();
    for row in &should.actions {
        let found = store.actions(Find::Id(row.id())).await;
        assert_eq!(found, Ok(vec![row.clone()]));
    }
    let subject = Find::Subject {
        tenant: "acme",
        thread: "a thread of ünï\u{0}code",
        subject: "order:1",
    };
    let about = store.actions(subject).await.unwrap();
    assert_eq!(about, should.actions[..1]);
    let calls = store.calls(&should.calls[0].run).await.unwrap();
    assert_eq!(calls, should.calls);
    assert_eq!(store.wakes(9).await.unwrap(), should.wake);
    assert_eq!(store.kills().await.unwrap(), should.kill);
    let chain = store.audit("acme", 0, 9).await.unwrap();
    let checked = paraph_gateway::Verifier::check("acme", &chain, &[]).unwrap();
    assert_eq!((checked.entries, checked.details), (3, 3));
}

/// A corpus with an issue and how far its repository was read, since format 4.
fn of_corpus() -> Batch {
    let document = Document {
        repo: "Acme/Boats".into(),
        number: 7,
        title: "It sinks".into(),
        body: "ünï\u{0}code ".repeat(40),
        resolution: Some("Fixed.".into()),
        url: "https://example.org/7".into(),
        updated_at: "2026-01-31T12:00:00Z".into(),
        ..Document::default()
    };
    Batch {
        identity: Identity::embedded("test:two", 2),
        put: vec![Kept {
            document,
            vectors: Vectors::of(&[vec![1.0, -0.25]]).unwrap(),
        }],
        remove: vec![],
        cursor: Some(Cursor {
            repo: "acme/boats".into(),
            scope: "all".into(),
            since: None,
            newest: Some("2026-01-31T12:00:00Z".into()),
            page: Some("2".into()),
            finished_at: None,
        }),
    }
}

async fn write_corpus(store: &Sqlite) {
    store.apply(of_corpus()).await.unwrap();
}

async fn corpus_is_there(store: &Sqlite) {
    let should = of_corpus();
    let state = store.state().await.unwrap();
    assert_eq!(
        (state.identity, state.documents),
        (Some(should.identity), 1)
    );
    let id = IssueRef::new("acme/boats", 7);
    let kept = Corpus::get(store, &id).await.unwrap();
    assert_eq!(kept.as_ref(), should.put.first());
    assert_eq!(
        store.cursors().await.unwrap().first(),
        should.cursor.as_ref()
    );
}

#[tokio::test]
#[ignore = "writes the file that the other test reads: once per format"]
async fn write_the_golden_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    write(&store).await;
    drop(store);
    let (format, newest) = Sqlite::format(&path).await.unwrap();
    assert_eq!(format, Some(newest));
    let golden = golden(newest);
    assert!(!golden.exists(), "a golden store is never written again");
    std::fs::copy(path, golden).unwrap();
}

async fn checkpoints_are_there(store: &Sqlite, scope: &Scope) {
    let expected: [(u128, Vec<Value>, &str); 5] = [
        (10, vec![json!(1), json!(2)], "here"),
        (11, vec![json!(1), json!(2), json!(3)], "here"),
        (12, vec![json!(9), json!(2), json!(3), json!(4)], "here"),
        (
            13,
            vec![json!(1), json!(2), json!(3), long()[0].clone()],
            "here",
        ),
        (
            14,
            vec![json!(1), json!(2), json!(3), long()[0].clone()],
            "there",
        ),
    ];
    for (n, items, text) in expected {
        let at = Some(CheckpointId::from(id(n)));
        let loaded = store.load(scope, at).await.unwrap().unwrap();
        assert_eq!(list(&loaded, "list"), items, "{n}");
        let channel = |name: &str| {
            let (_, pieces) = loaded.channels.iter().find(|(c, _)| c == name).unwrap();
            serde_json::from_slice::<Value>(&pieces[0].json).unwrap()
        };
        assert_eq!(channel("text"), json!(text));
        assert_eq!(channel("more"), json!({"a": [1e300, -7, null, "\u{0}"]}));
        let first = note(n, NoteKind::Done, "", "{\"done\":true}");
        assert_eq!(loaded.notes[0], first);
        assert_eq!(loaded.notes.len(), if n == 14 { 2 } else { 1 });
        assert_eq!(loaded.machine, br#"{"tasks":[]}"#);
        assert_eq!(loaded.metadata.user.get("who"), Some(&json!("x")));
    }
    let history = store
        .history(scope, &HistoryQuery::default())
        .await
        .unwrap();
    let parents: Vec<_> = history
        .iter()
        .map(|e| e.parent.map(CheckpointId::uuid))
        .collect();
    assert_eq!(
        parents,
        [Some(id(13)), Some(id(11)), Some(id(11)), Some(id(10)), None]
    );
    let inner = Scope {
        namespace: "sub:1".into(),
        ..scope.clone()
    };
    let loaded = store.load(&inner, None).await.unwrap().unwrap();
    assert_eq!(list(&loaded, "inner"), [json!("x")]);
}

async fn rows_are_there(store: &Sqlite, scope: &Scope) {
    let row = store.thread(&scope.thread).await.unwrap().unwrap();
    assert_eq!((row.status, row.holder), (ThreadStatus::Error, None));
    assert_eq!(
        (row.head, row.next),
        (Some(CheckpointId::from(id(14))), vec![Name::from("node")])
    );
    assert_eq!(row.values, Some(json!({"text": "there"})));
    assert_eq!(json!(row.metadata), json!({"about": "it"}));
    let runs = store.runs(&RunQuery::default()).await.unwrap();
    assert_eq!(
        (runs[0].id, runs[0].status),
        (RunId::from(id(1)), RunStatus::Error)
    );
    assert_eq!(
        (&runs[0].arguments, runs[0].error.as_deref()),
        (&json!({"a": 1}), Some("it failed"))
    );
    let events = store
        .events(&scope.thread, &LogQuery::default())
        .await
        .unwrap();
    let events: Vec<Value> = events
        .iter()
        .map(|e| serde_json::from_str(&e.json).unwrap())
        .collect();
    assert_eq!(events.len(), 5);
    assert_eq!(
        events[1],
        json!({"n": 11, "update": {"other": 1, "list": [3]}})
    );
    assert_eq!(events[3]["update"]["list"], long());
    let found = Memory::get(store, &["user".to_owned(), "42".to_owned()], "k")
        .await
        .unwrap();
    assert_eq!(found.unwrap().value, json!({"likes": "tea"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_each_format_is_read_as_it_was_written_and_written_to() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        std::fs::copy(golden(format), &path).unwrap();
        let store = open(&path).await;
        if format < 3 {
            // What came with format 3 can be written to a file that was made before.
            write_gateway(&store).await;
        }
        if format < 4 {
            write_corpus(&store).await;
        }
        gateway_is_there(&store).await;
        corpus_is_there(&store).await;
        is_whole(&store).await;
        drop(store);

        // It is of the newest format now, and what it was lies beside it.
        let (now, newest) = Sqlite::format(&path).await.unwrap();
        assert_eq!(
            (now, newest),
            (Some(FORMATS[FORMATS.len() - 1]), FORMATS[FORMATS.len() - 1])
        );
        assert_eq!(
            Sqlite::complaints(&path).await.unwrap(),
            Vec::<String>::new()
        );
        let copy = folder.path().join(format!("a.db.v{format}.bak"));
        assert_eq!(copy.exists(), format != newest);
        if copy.exists() {
            let kept = Sqlite::format(&copy).await.unwrap().0;
            assert_eq!(kept, Some(format));
        }
    }
}

async fn is_whole(store: &Sqlite) {
    let scope = Line::on("a thread of ünï\u{0}code").scope;
    checkpoints_are_there(store, &scope).await;
    rows_are_there(store, &scope).await;

    let lease = store
        .lease(&scope.thread, start(RunId::fresh()))
        .await
        .unwrap();
    let mut line = Line {
        scope,
        epoch: lease.epoch,
        head: Some(CheckpointId::from(id(14))),
        run: RunId::fresh(),
    };
    line.step(store, &[("list", PatchKind::Append, json!([5]))])
        .await;
    let loaded = store.load(&line.scope, None).await.unwrap().unwrap();
    assert_eq!(list(&loaded, "list").last(), Some(&json!(5)));
    let task = TaskId::from(Uuid::from_u128(14));
    assert!(loaded.notes.iter().all(|note| note.task != task));
}
