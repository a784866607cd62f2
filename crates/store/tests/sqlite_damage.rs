//! Rows that somebody changed, cut short, swapped or removed: each is an error that says which one it is, and
//! never a value.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod suite;

use paraph_graph::{
    CheckpointId, Checkpoints, Error, EventLog, HistoryQuery, Interrupt, LogEntry, LogQuery,
    Memory, Name, NoteKind, PatchKind, Query, RunEnd, RunQuery, RunStatus, Standing, ThreadQuery,
    ThreadStatus, Threads,
};
use paraph_store::Sqlite;
use rusqlite::{Connection, types::Value as Cell};
use serde_json::{Value, json};
use std::{path::Path, sync::Arc};
use suite::{Line, lease, note, open, plain, start};

/// A store with a row or more in each table; the checkpoints of its thread `t`.
async fn filled(path: &Path) -> Vec<CheckpointId> {
    let store = open(path).await;
    let mut line = Line::on("t");
    let claim = start(line.run);
    let lease = lease(&*store, "t", &claim).await;
    line.epoch = lease.epoch;
    let long = "x".repeat(20_000);
    let mut ids = Vec::new();
    for i in 0..4 {
        let mut put = line.put(&[("list", PatchKind::Append, json!([i, "item"]))]);
        if i == 0 {
            let more = [
                ("long", PatchKind::Whole, json!(long)),
                ("a", PatchKind::Whole, json!("a")),
                ("b", PatchKind::Whole, json!("b")),
                ("c", PatchKind::Whole, json!("c")),
            ];
            put.deltas.extend(line.put(&more).deltas);
        }
        put.notes = vec![note(1, NoteKind::Memo, "k", "{\"v\":1}")];
        put.events = vec![LogEntry {
            run: line.run,
            namespace: String::new(),
            created_ms: 5,
            json: format!("{{\"type\":\"update\",\"n\":{i},\"update\":{{\"x\":1}}}}"),
            same: vec!["list".to_owned()],
        }];
        ids.push(put.id);
        Checkpoints::put(&*store, &line.scope, put.clone())
            .await
            .unwrap();
        line.head = Some(put.id);
    }
    let end = RunEnd {
        run: line.run,
        epoch: line.epoch,
        status: RunStatus::Error,
        error: Some("it failed".to_owned()),
        standing: Some(Standing {
            status: ThreadStatus::Interrupted,
            next: vec![Name::from("node")],
            interrupts: vec![Interrupt {
                id: "1".repeat(32),
                node: "node".into(),
                key: "ask".to_owned(),
                namespace: String::new(),
                question: json!("may I?"),
                answer_schema: None,
                refused: None,
            }],
            values: Some(json!({"list": [1]})),
        }),
        events: Vec::new(),
    };
    store.finish("t", end).await.unwrap();
    let about = json!({"about": "it"}).as_object().cloned().unwrap();
    store.describe("t", about).await.unwrap();
    let space = ["user".to_owned()];
    Memory::put(&*store, &space, "k", json!({"likes": "tea"}), None)
        .await
        .unwrap();
    ids
}

/// All that can be read of it, but for times and leases.
async fn everything(store: &Sqlite) -> Result<Value, Error> {
    let scope = Line::on("t").scope;
    let query = HistoryQuery::default();
    let head = store.load(&scope, None).await?.map(|l| plain(&l));
    let history = store.history(&scope, &query).await?;
    let views = store.views(&scope, &query).await?;
    let views: Vec<_> = views.iter().map(plain).collect();
    let thread = store.thread("t").await?;
    let threads = store.threads(&ThreadQuery::default()).await?;
    let runs = store.runs(&RunQuery::default()).await?;
    let events = store.events("t", &LogQuery::default()).await?;
    let found = store
        .search(&["user".to_owned()], &Query::default())
        .await?;
    let found: Vec<_> = found.iter().map(|item| (&item.key, &item.value)).collect();
    let thread = thread.map(|t| json!([t.next, t.interrupts, t.values, t.metadata]));
    let threads: Vec<_> = threads.iter().map(|t| json!([t.name, t.next])).collect();
    let runs: Vec<_> = runs.iter().map(|r| json!([r.arguments, r.error])).collect();
    let events: Vec<_> = events.iter().map(|e| json!([e.run, e.json])).collect();
    Ok(json!([
        head, history, views, thread, threads, runs, events, found
    ]))
}

/// The columns that hold documents, or say which documents belong together. (What names a row is not among
/// them: a row that is named otherwise is not there, and `store check` looks for what nobody refers to.)
const COLUMNS: [(&str, &[&str]); 8] = [
    (
        "run",
        &[
            "error",
            "error_packed",
            "arguments",
            "arguments_packed",
            "sum",
        ],
    ),
    (
        "checkpoint",
        &[
            "parent",
            "source",
            "superstep",
            "run",
            "created_ms",
            "metadata",
            "metadata_packed",
            "machine",
            "machine_packed",
            "channels",
            "base",
            "sum",
        ],
    ),
    (
        "piece",
        &["channel", "kind", "before", "value", "value_packed", "sum"],
    ),
    (
        "note",
        &["task", "kind", "key", "n", "value", "value_packed", "sum"],
    ),
    ("event", &["run", "pieces", "value", "value_packed", "sum"]),
    (
        "thread",
        &["next", "interrupts", "interrupts_packed", "sum"],
    ),
    (
        "thread_doc",
        &[
            "metadata",
            "metadata_packed",
            "state",
            "state_packed",
            "sum",
        ],
    ),
    ("memory", &["value", "value_packed", "sum"]),
];

/// What a cell is made into.
fn damaged(cell: &Cell) -> Vec<Cell> {
    match cell {
        Cell::Null => vec![
            Cell::Text("x".to_owned()),
            Cell::Blob(vec![1, 2, 3]),
            Cell::Integer(1),
        ],
        Cell::Integer(n) => vec![
            Cell::Integer(n ^ 1),
            Cell::Text("x".to_owned()),
            Cell::Real(1.5),
        ],
        Cell::Text(text) => {
            let mut shorter = text.clone();
            shorter.pop();
            let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
            let other = if first == "{" { "[" } else { "{" };
            vec![
                Cell::Text(shorter),
                Cell::Text(format!("{other}{rest}")),
                Cell::Blob(text.clone().into_bytes()),
                Cell::Integer(7),
                Cell::Null,
            ]
        }
        Cell::Blob(bytes) => {
            let mut flipped = bytes.clone();
            *flipped.last_mut().unwrap() ^= 1;
            vec![
                Cell::Blob(bytes[..bytes.len() - 1].to_vec()),
                Cell::Blob(flipped),
                Cell::Blob(Vec::new()),
                Cell::Null,
            ]
        }
        Cell::Real(_) => unreachable!("no column holds one"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_cell_is_an_error_and_never_another_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    filled(&path).await;
    let pristine = folder.path().join("pristine.db");
    std::fs::copy(&path, &pristine).unwrap();
    let store = open(&path).await;
    let whole = everything(&store).await.unwrap();
    let file = Connection::open(&path).unwrap();
    file.execute_batch("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF")
        .unwrap();
    file.execute("ATTACH ?1 AS pristine", [pristine.to_str().unwrap()])
        .unwrap();
    let mut tried = 0;
    for (table, columns) in COLUMNS {
        let key = match table {
            "thread" | "thread_doc" => "rowid",
            "checkpoint" | "run" => "id",
            "piece" => "n",
            "note" => "checkpoint",
            "event" => "seq",
            _ => "key",
        };
        let rows: Vec<Cell> = file
            .prepare(&format!("SELECT {key} FROM {table}"))
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for (row, column) in rows
            .iter()
            .flat_map(|row| columns.iter().map(move |c| (row, c)))
        {
            let select = format!("SELECT {column} FROM {table} WHERE {key} = ?1");
            let was: Cell = file.query_row(&select, [row], |row| row.get(0)).unwrap();
            for now in damaged(&was) {
                let update = format!("UPDATE OR IGNORE {table} SET {column} = ?2 WHERE {key} = ?1");
                // Some columns take no null.
                let Ok(changed) = file.execute(&update, rusqlite::params![row, now]) else {
                    continue;
                };
                let is: Cell = file.query_row(&select, [row], |row| row.get(0)).unwrap();
                if changed == 1 && is != was {
                    tried += 1;
                    let what = format!("{table}.{column} of {row:?}: {is:?} instead of {was:?}");
                    match everything(&store).await {
                        Err(e) => assert!(!e.to_string().is_empty(), "{what}"),
                        Ok(read) => panic!("{what}: read as if nothing were wrong\n{read}"),
                    }
                }
                let restore = format!(
                    "DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM pristine.{table}"
                );
                file.execute_batch(&restore).unwrap();
            }
        }
    }
    assert!(tried > 300, "{tried} cells were damaged");
    assert_eq!(everything(&store).await.unwrap(), whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_names_thread_checkpoint_channel_and_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let ids = filled(&path).await;
    let (first, head) = (ids[0].to_string(), ids[3].to_string());
    let pieces = |channel: &str| format!("channel `{channel}`, piece ");
    let table: [(String, String); 12] = [
        (
            "UPDATE piece SET value = '[0,\"other\"]' WHERE channel = 'list' AND before IS NULL".into(),
            pieces("list") + "1: `value` does not fit its sum",
        ),
        (
            "UPDATE piece SET value = (SELECT value FROM piece WHERE channel = 'b') WHERE channel = 'a'".into(),
            pieces("a"),
        ),
        (
            "UPDATE piece SET value_packed = substr(value_packed, 1, 20) WHERE channel = 'long'".into(),
            pieces("long"),
        ),
        (
            "DELETE FROM piece WHERE channel = 'list' AND before IS NULL".into(),
            pieces("list"),
        ),
        ("DELETE FROM piece WHERE channel = 'a'".into(), pieces("a")),
        (
            "UPDATE piece SET before = n WHERE channel = 'list' AND before IS NOT NULL".into(),
            "it goes on from a later one".into(),
        ),
        (
            format!("DELETE FROM checkpoint WHERE id = '{head}'"),
            "it is the head, and its row is gone".into(),
        ),
        (
            format!("DELETE FROM checkpoint WHERE id = '{first}'"),
            format!("checkpoint {first}, on which it is based, is gone"),
        ),
        (
            "UPDATE checkpoint SET machine = '{}'".into(),
            "its row: the row does not fit its sum".into(),
        ),
        (
            "UPDATE checkpoint SET superstep = 'many'".into(),
            "its row: column 3 is text, not a number".into(),
        ),
        (
            "UPDATE note SET value = '{\"v\":2}'".into(),
            "note memo `k` of task 00000000-0000-0000-0000-000000000001: ".into(),
        ),
        (
            "UPDATE piece SET value = x'ff' WHERE channel = 'c'".into(),
            pieces("c"),
        ),
    ];
    for (edit, words) in table {
        let copy = folder.path().join("copy.db");
        std::fs::copy(&path, &copy).unwrap();
        Connection::open(&copy)
            .unwrap()
            .execute_batch(&edit)
            .unwrap();
        let store = open(&copy).await;
        let error = store.load(&Line::on("t").scope, None).await.unwrap_err();
        match &error {
            Error::Corrupt {
                thread,
                checkpoint,
                why,
            } => {
                assert_eq!((&**thread, *checkpoint), ("t", ids[3]), "{edit}");
                assert!(why.contains(&words), "{edit}: {why}");
            }
            other => panic!("{edit}: {other}"),
        }
        // What does not need it goes on.
        assert!(store.threads(&ThreadQuery::default()).await.is_ok());
        drop(store);
        std::fs::remove_file(&copy).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_after_a_damaged_one_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let ids = filled(&path).await;
    let edit = "UPDATE checkpoint SET channels = '{}'";
    Connection::open(&path)
        .unwrap()
        .execute_batch(edit)
        .unwrap();
    let store: Arc<Sqlite> = open(&path).await;
    let mut line = Line::on("t");
    line.head = ids.last().copied();
    line.epoch = u64::MAX >> 2;
    let put = line.put(&[("list", PatchKind::Append, json!([9]))]);
    let error = Checkpoints::put(&*store, &line.scope, put)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    let count = "SELECT (SELECT count(*) FROM checkpoint), (SELECT count(*) FROM piece)";
    let file = Connection::open(&path).unwrap();
    let counts = file.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?)));
    assert_eq!(counts.unwrap(), (4_i64, 8_i64));
}
