//! The file: how it is made, who may read it, and what cannot be opened and why.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod suite;

use paraph_graph::{Checkpoints, PatchKind, ThreadQuery, Threads};
use paraph_store::{Error, Options, Sqlite, open as open_url};
use rusqlite::Connection;
use serde_json::json;
use std::{path::Path, time::Duration};
use suite::{Line, open, plain};

async fn refusal(path: impl AsRef<Path>, options: Options) -> Error {
    match Sqlite::open(path, options).await {
        Ok(_) => panic!("it was opened"),
        Err(e) => e,
    }
}

fn hasty() -> Options {
    Options {
        patience: Duration::from_millis(100),
        ..Options::default()
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn all_files_of_a_store_are_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("not/there/yet/a.db");
    let store = open(&path).await;
    Line::on("t").step(&*store, &[]).await;
    let mode = |ending: &str| {
        let name = format!("{}{ending}", path.display());
        std::fs::metadata(name).unwrap().permissions().mode() & 0o777
    };
    let modes = ["", "-wal", "-shm", "-owners"].map(mode);
    assert_eq!(modes, [0o600, 0o600, 0o600, 0o700]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_opened_is_refused_in_a_sentence_and_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = "a letter to a friend, long enough to be taken for a page ".repeat(100);
    std::fs::write(at("letter"), &text).unwrap();
    let other = Connection::open(at("other")).unwrap();
    other.execute_batch("CREATE TABLE t (a)").unwrap();
    let newer = Connection::open(at("newer")).unwrap();
    let ours = "PRAGMA application_id = 0x70617261; PRAGMA user_version = 9; CREATE TABLE t (a)";
    newer.execute_batch(ours).unwrap();
    drop((other, newer));
    std::fs::create_dir(at("folder")).unwrap();
    let table = [
        ("letter", "the file is no database of ours"),
        ("other", "the file is a database of another program"),
        ("newer", "has format 9, and this version"),
        ("folder", "it is a folder"),
        ("letter/a.db", "its folder cannot be made"),
    ];
    for (name, words) in table {
        let before = std::fs::read(at(name)).ok();
        let error = refusal(at(name), hasty()).await.to_string();
        assert!(error.contains(words), "{name}: {error}");
        assert!(error.contains(&at(name).display().to_string()), "{error}");
        assert!(std::fs::read(at(name)).ok() == before, "{name} was changed");
    }
    let error = refusal("", hasty()).await.to_string();
    assert!(error.contains("no path at all"), "{error}");
    let newer = refusal(at("newer"), hasty()).await;
    assert!(matches!(
        newer,
        Error::Newer {
            found: 9,
            known: 4,
            ..
        }
    ));
    assert!(
        newer
            .to_string()
            .contains("use the version that wrote it or a newer one")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_another_program_has_locked_is_waited_for_and_then_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = Sqlite::open(&path, hasty()).await.unwrap();
    let mut line = Line::on("t");
    line.step(&store, &[]).await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let put = line.put(&[]);
    let locked = Checkpoints::put(&store, &line.scope, put)
        .await
        .unwrap_err();
    let words = "another program has the file locked, for longer than 100ms";
    assert!(locked.to_string().contains(words), "{locked}");
    // Whoever only reads does not mind.
    assert!(store.load(&line.scope, None).await.unwrap().is_some());
    other.execute_batch("COMMIT").unwrap();
    line.step(&store, &[]).await;
    let patient = Sqlite::open(&path, Options::default()).await.unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let put = line.put(&[]);
    let waiting = tokio::spawn(async move {
        Checkpoints::put(&patient, &line.scope, put).await.unwrap();
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    other.execute_batch("COMMIT").unwrap();
    waiting.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_cut_short_or_overwritten_is_an_error_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    let mut line = Line::on("t");
    for _ in 0..20 {
        let long = json!(["x".repeat(3000)]);
        line.step(&*store, &[("list", PatchKind::Append, long)])
            .await;
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let mut errors = 0;
    for at in (0..whole.len()).step_by(4096) {
        let mut overwritten = whole.clone();
        overwritten[at..(at + 4096).min(whole.len())].fill(0xa5);
        for bytes in [whole[..at].to_vec(), overwritten] {
            let copy = folder.path().join("copy.db");
            let is_empty = bytes.is_empty();
            std::fs::write(&copy, bytes).unwrap();
            let read = async {
                let store = Sqlite::open(&copy, hasty())
                    .await
                    .map_err(|e| e.to_string())?;
                let loaded = store.load(&line.scope, None).await;
                let threads = store.threads(&ThreadQuery::default()).await;
                threads.map_err(|e| e.to_string())?;
                loaded.map_err(|e| e.to_string())
            };
            match read.await {
                // Nothing is a new store.
                Ok(None) => assert!(is_empty, "page {}", at / 4096),
                Ok(Some(loaded)) => assert_eq!(Some(loaded.id), line.head),
                Err(why) => {
                    errors += 1;
                    assert!(!why.is_empty());
                }
            }
            let _ = std::fs::remove_file(&copy);
            let _ = std::fs::remove_file(format!("{}-wal", copy.display()));
            let _ = std::fs::remove_file(format!("{}-shm", copy.display()));
        }
    }
    assert!(errors > 20, "{errors} errors");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_may_make_the_same_store_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let opening: Vec<_> = (0..10)
        .map(|i| {
            let path = path.clone();
            tokio::spawn(async move {
                let store = Sqlite::open(path, Options::default()).await.unwrap();
                Line::on(&i.to_string()).step(&store, &[]).await;
            })
        })
        .collect();
    for done in opening {
        done.await.unwrap();
    }
    let store = open(&path).await;
    let threads = store.threads(&ThreadQuery::default()).await.unwrap();
    assert_eq!(threads.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_opened_store_wrote_another_reads_and_so_does_a_later_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let (one, other) = (open(&path).await, open(&path).await);
    let mut line = Line::on("t");
    let mut seen = Vec::new();
    for i in 0..5 {
        let delta = ("list", PatchKind::Append, json!([i]));
        line.step(if i % 2 == 0 { &*one } else { &*other }, &[delta])
            .await;
        let read = [&one, &other].map(|store| store.load(&line.scope, None));
        let read = futures::future::try_join_all(read).await.unwrap();
        let read: Vec<_> = read.iter().map(|l| plain(l.as_ref().unwrap())).collect();
        assert_eq!(read[0], read[1]);
        seen.push(read[0].clone());
    }
    drop((one, other));
    let later = open(&path).await;
    for expected in seen {
        let loaded = later.load(&line.scope, Some(expected.0)).await.unwrap();
        assert_eq!(plain(&loaded.unwrap()), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_below_sixteen_kibibytes_are_json_that_sqlite_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    let mut line = Line::on("t");
    line.step(
        &*store,
        &[(
            "list",
            PatchKind::Append,
            json!([{"a": "short"}, "x".repeat(15_000)]),
        )],
    )
    .await;
    line.step(
        &*store,
        &[("list", PatchKind::Append, json!(["x".repeat(17_000)]))],
    )
    .await;
    let file = Connection::open(&path).unwrap();
    let select = "SELECT json_extract(p.value, '$[0].a'), json_extract(c.metadata, '$.who'), \
                  json_extract(c.machine, '$.tasks') FROM piece p, checkpoint c WHERE p.n = 1";
    let read = file.query_row(select, [], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    });
    let texts = ("short".to_owned(), "x".to_owned(), "[]".to_owned());
    assert_eq!(read.unwrap(), texts);
    let packed = "SELECT value IS NULL, length(value_packed) FROM piece WHERE n = 2";
    let read = file.query_row(packed, [], |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)? < 1000))
    });
    assert_eq!(read.unwrap(), (true, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_opened_by_its_address() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let url = format!("sqlite://{}", path.display());
    let opened = open_url(&url, Options::default()).await.unwrap();
    Line::on("t").step(&*opened.threads, &[]).await;
    let again = open(&path).await;
    assert!(again.thread("t").await.unwrap().is_some());
    let memory = open_url("memory:", Options::default()).await.unwrap();
    Line::on("t").step(&*memory.threads, &[]).await;
    let table = [
        (
            "mysql://u:secret@h/db",
            "`mysql:…` is no store: its kind is not known",
        ),
        (
            "somewhere",
            "`somewhere:…` is no store: its kind is not known",
        ),
        (
            "memory:a",
            "`memory:a` is no store: a store in memory has no name",
        ),
        ("sqlite://", "it is a folder or no path at all"),
    ];
    for (url, words) in table {
        let error = match open_url(url, Options::default()).await {
            Ok(_) => panic!("{url} was opened"),
            Err(e) => e.to_string(),
        };
        assert!(
            error.contains(words) && !error.contains("secret"),
            "{error}"
        );
    }
}
