//! The database itself: what shares a transaction, what is refused, what is heard of it, and what a file goes
//! through when its format is an older one.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

use super::*;
use crate::sql::{Statement, Tx, one};
use paraph_graph::{
    CheckpointId, Checkpoints, Delta, Metadata, PatchKind, Put, RunId, Scope, Source,
};
use rusqlite::Connection;
use std::time::Duration;

async fn store() -> (tempfile::TempDir, Sqlite) {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("a.db"), Options::default());
    let store = store.await.unwrap();
    (folder, store)
}

type Done = BoxFuture<'static, Result<(), paraph_graph::Error>>;

async fn add(tx: &mut dyn Tx, name: &str, by: i64) -> Result<(), Fault> {
    let add = "INSERT INTO gateway_counter (run, name, value) VALUES ('', $2, $1) \
               ON CONFLICT (run, name) DO UPDATE SET value = value + $1";
    one(tx, Statement::new(add, [by.into(), name.into()])).await?;
    Ok(())
}

fn count(store: &Sqlite, name: &'static str, by: i64) -> Done {
    store.write("", move |tx| {
        Box::pin(async move {
            add(tx, name, by).await?;
            if by < 0 {
                return Err(paraph_graph::Error::NoTarget("negative".into()).into());
            }
            Ok(())
        })
    })
}

async fn counted(store: &Sqlite, name: &'static str) -> i64 {
    let read = store.read(move |tx| {
        Box::pin(async move {
            let select = "SELECT value FROM gateway_counter WHERE name = $1";
            let row = one(tx, Statement::new(select, [name.into()]))
                .await?
                .first();
            Ok(row.map_or(0, |row| row.int(0).unwrap()))
        })
    });
    read.await.unwrap()
}

#[tokio::test]
async fn what_is_queued_together_shares_commits_and_a_refused_work_takes_nothing_with_it() {
    let (_folder, store) = store().await;
    let before = store.commits();
    let works: Vec<_> = (0..100)
        .map(|i| count(&store, "n", if i % 10 == 0 { -1 } else { 1 }))
        .collect();
    let done = futures::future::join_all(works).await;
    assert_eq!(done.iter().filter(|d| d.is_err()).count(), 10);
    assert_eq!(counted(&store, "n").await, 90);
    let commits = store.commits() - before;
    assert!(commits < 50, "{commits} commits for 100 works");
}

#[tokio::test]
async fn a_work_that_panics_or_waits_is_an_error_and_the_next_one_is_done() {
    let (_folder, store) = store().await;
    let panics: Done = store.write("", |tx| {
        Box::pin(async move {
            add(tx, "n", 1).await?;
            panic!("as a test does")
        })
    });
    let waits: Done = store.write("", |tx| {
        Box::pin(async move {
            add(tx, "n", 1).await?;
            tokio::task::yield_now().await;
            Ok(())
        })
    });
    let good = count(&store, "n", 1);
    assert_eq!(
        panics.await.unwrap_err().to_string(),
        "store: a transaction panicked"
    );
    let words = "store: a transaction waited for something else than its statements";
    assert_eq!(waits.await.unwrap_err().to_string(), words);
    good.await.unwrap();
    assert_eq!(counted(&store, "n").await, 1);
}

#[tokio::test]
async fn a_mistake_in_a_statement_is_an_error_in_words() {
    let (_folder, store) = store().await;
    let table = [
        ("SELECT elsewhere", "no such column: elsewhere"),
        ("SELECT $2", "Wrong number of parameters"),
        (
            "INSERT INTO store (one, epoch) VALUES (2, 0)",
            "CHECK constraint failed",
        ),
    ];
    for (sql, words) in table {
        let work: BoxFuture<'_, Result<(), _>> = store.write("", move |tx| {
            Box::pin(async move {
                one(tx, Statement::new(sql, [1_i64.into()])).await?;
                Ok(())
            })
        });
        let error = work.await.unwrap_err().to_string();
        assert!(error.contains(words), "{sql}: {error}");
    }
}

#[tokio::test]
async fn whoever_only_reads_can_write_nothing() {
    let (_folder, store) = store().await;
    let read = store.read(|tx| Box::pin(async move { add(tx, "n", 1).await }));
    let error = read.await.unwrap_err().to_string();
    assert!(
        error.contains("read-only") || error.contains("readonly"),
        "{error}"
    );
}

fn put(head: Option<CheckpointId>, bytes: usize) -> Put {
    Put {
        id: CheckpointId::fresh(),
        parent: head,
        expect: head,
        metadata: Metadata {
            source: Source::Loop,
            superstep: 0,
            run: RunId::fresh(),
            created_ms: 1,
            user: serde_json::Map::new(),
        },
        machine: b"{}".to_vec(),
        deltas: vec![Delta {
            channel: "a".to_owned(),
            kind: PatchKind::Append,
            json: serde_json::to_vec(&["x".repeat(bytes)]).unwrap(),
        }],
        notes: Vec::new(),
        epoch: 0,
        standing: None,
        events: Vec::new(),
    }
}

async fn limit(store: &Sqlite, pages: &'static str) {
    let set: Done = store.write("", move |tx| {
        Box::pin(async move {
            one(tx, Statement::new(pages, [])).await?;
            Ok(())
        })
    });
    set.await.unwrap();
}

#[tokio::test]
async fn a_full_disk_is_said_nothing_is_half_written_and_it_goes_on_when_there_is_room() {
    let (_folder, store) = store().await;
    let scope = Scope {
        thread: "t".into(),
        namespace: "".into(),
    };
    limit(&store, "PRAGMA max_page_count = 60").await;
    let (mut head, mut refused) = (None, None);
    while refused.is_none() {
        let next = put(head, 10_000);
        let id = next.id;
        match Checkpoints::put(&store, &scope, next).await {
            Ok(()) => head = Some(id),
            Err(e) => refused = Some(e.to_string()),
        }
    }
    let words = "the disk is full; nothing of this was written, make room and go on";
    assert!(refused.as_ref().unwrap().contains(words), "{refused:?}");
    let loaded = store.load(&scope, None).await.unwrap().unwrap();
    assert_eq!(Some(loaded.id), head);
    // Of several works in one transaction the small ones are done.
    let big = Checkpoints::put(&store, &scope, put(head, 15_000));
    let small = count(&store, "n", 1);
    assert!(big.await.is_err());
    small.await.unwrap();
    limit(&store, "PRAGMA max_page_count = 100000").await;
    let next = put(head, 10_000);
    let id = next.id;
    Checkpoints::put(&store, &scope, next).await.unwrap();
    assert_eq!(store.load(&scope, None).await.unwrap().unwrap().id, id);
}

#[test]
fn what_sqlite_says_is_said_in_sentences_that_help() {
    let folder = tempfile::tempdir().unwrap();
    let place = connection::Place::new(&folder.path().join("a"), Duration::from_secs(1)).unwrap();
    let table = [
        (
            rusqlite::ffi::SQLITE_READONLY,
            "the file is read-only; give this user the right",
        ),
        (
            rusqlite::ffi::SQLITE_FULL,
            "the disk is full; nothing of this was written",
        ),
        (
            rusqlite::ffi::SQLITE_NOTADB,
            "the file is no database of ours",
        ),
        (rusqlite::ffi::SQLITE_CORRUPT, "the file is damaged"),
        (
            rusqlite::ffi::SQLITE_BUSY,
            "another program has the file locked, for longer than 1s",
        ),
        (
            rusqlite::ffi::SQLITE_IOERR,
            "the system could not read or write the file",
        ),
        (
            rusqlite::ffi::SQLITE_IOERR_WRITE,
            "the disk may be full, or files may not be larger here (`ulimit -f`)",
        ),
        (rusqlite::ffi::SQLITE_CANTOPEN, "the file cannot be opened"),
    ];
    for (code, words) in table {
        let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        let said = place.error(&error).to_string();
        assert!(said.contains(words), "{said}");
        assert!(
            said.contains(&folder.path().display().to_string()),
            "{said}"
        );
    }
}

#[test]
fn an_older_format_is_copied_and_then_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let place = connection::Place::new(&path, Duration::from_secs(5)).unwrap();
    let version = |connection: &Connection| -> i64 {
        connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .unwrap()
    };
    let (place, mut connection) = place.first().unwrap();
    let first = "CREATE TABLE a (x); INSERT INTO a VALUES (1);";
    migrate::by_steps(&mut connection, &place, &[first]).unwrap();
    assert_eq!(version(&connection), 1);
    let steps = [
        first,
        "ALTER TABLE a ADD COLUMN y",
        "UPDATE a SET y = x + 1",
    ];
    migrate::by_steps(&mut connection, &place, &steps).unwrap();
    let read = connection.query_row("SELECT x, y FROM a", [], |row| {
        Ok((row.get(0)?, row.get(1)?))
    });
    assert_eq!((version(&connection), read.unwrap()), (3, (1, 2)));
    let copy = Connection::open(folder.path().join("a.db.v1.bak")).unwrap();
    let read: i64 = copy
        .query_row("SELECT x FROM a", [], |row| row.get(0))
        .unwrap();
    assert_eq!((version(&copy), read), (1, 1));
    // A step that fails leaves the file as it was.
    let bad = [steps[0], steps[1], steps[2], "DROP TABLE a; SELECT nothing"];
    assert!(migrate::by_steps(&mut connection, &place, &bad).is_err());
    let read: i64 = connection
        .query_row("SELECT x FROM a", [], |row| row.get(0))
        .unwrap();
    assert_eq!((version(&connection), read), (3, 1));
    // A program that knows only the first step refuses it.
    let error = migrate::by_steps(&mut connection, &place, &[first]).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Newer {
                found: 3,
                known: 1,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_ends_beside_a_writer_that_never_rests() {
    let (folder, store) = store().await;
    let scope = Scope {
        thread: "t".into(),
        namespace: "".into(),
    };
    let mut head = None;
    for _ in 0..200 {
        let next = put(head, 20_000);
        head = Some(next.id);
        Checkpoints::put(&store, &scope, next).await.unwrap();
    }
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (store, stopped) = (Arc::new(store), stop.clone());
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                count(&store, "n", 1).await.unwrap();
            }
        }
    });
    while counted(&store, "n").await == 0 {
        tokio::task::yield_now().await;
    }
    let copy = folder.path().join("copy.db");
    let backup = Sqlite::backup(folder.path().join("a.db"), &copy, Duration::from_secs(30));
    let ended = tokio::time::timeout(Duration::from_secs(20), backup).await;
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.await.unwrap();
    ended.expect("the backup has no end").unwrap();
    let there = counted(&store, "n").await;
    drop(store);
    let copied = Sqlite::open(&copy, Options::default()).await.unwrap();
    assert_eq!(
        copied.load(&scope, None).await.unwrap().unwrap().id,
        head.unwrap()
    );
    let then = counted(&copied, "n").await;
    assert!((1..=there).contains(&then), "{then} of {there}");
    assert_eq!(
        Sqlite::complaints(&copy).await.unwrap(),
        Vec::<String>::new()
    );
}

#[test]
fn the_address_of_a_still_file_names_any_path() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.db", "a b?c#d%e&f.db", "ä;\u{1}=x", "file:y"] {
        let path = folder.path().join(name);
        let place = connection::Place::new(&path, Duration::from_secs(1)).unwrap();
        let (_, connection) = place.first().unwrap();
        connection.execute_batch("CREATE TABLE a (x)").unwrap();
        drop(connection);
        let flags =
            rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_URI;
        let still = Connection::open_with_flags(connection::still(&path), flags).unwrap();
        let tables: i64 = still
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 1, "{name}");
    }
}
