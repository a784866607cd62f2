//! Leases on one file: who gives a thread away, when, and what a run learns of it.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod suite;

use paraph_graph::{
    CancelReason, Checkpoints, Error, PatchKind, RunEnd, RunId, RunQuery, RunStatus, ThreadQuery,
    Threads,
};
use paraph_store::{Options, Sqlite};
use rusqlite::Connection;
use serde_json::json;
use std::{
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};
use suite::{Line, claim, lease, open, start};

fn end(line: &Line, status: RunStatus) -> RunEnd {
    RunEnd {
        run: line.run,
        epoch: line.epoch,
        status,
        error: None,
        standing: None,
        events: Vec::new(),
    }
}

fn is_held_by(error: &Error, run: RunId) -> bool {
    matches!(error, Error::Conflict { holder: Some(holder), .. } if *holder == run)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_another_store_holds_is_refused_until_it_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let (one, other) = (open(&path).await, open(&path).await);
    let (first, second) = (RunId::fresh(), RunId::fresh());
    let held = one.lease("t", start(first)).await.unwrap();
    for store in [&one, &other] {
        let refused = store.lease("t", start(second)).await.err().unwrap();
        assert!(is_held_by(&refused, first), "{refused}");
    }
    // A refused claim leaves no row.
    let runs = one.runs(&RunQuery::default()).await.unwrap();
    assert_eq!(runs.iter().map(|run| run.id).collect::<Vec<_>>(), [first]);
    drop(held);
    let next = lease(&*other, "t", &start(second)).await;
    let mut line = Line::on("t");
    (line.epoch, line.run) = (next.epoch, second);
    other
        .finish("t", end(&line, RunStatus::Success))
        .await
        .unwrap();
    // It is free although its guard is still there; and that one gives nothing of the next away.
    let third = one.lease("t", claim(RunId::fresh())).await.unwrap();
    drop(next);
    let refused = other.lease("t", claim(second)).await.err().unwrap();
    assert!(matches!(refused, Error::Conflict { .. }));
    assert!(third.epoch > line.epoch);
    let runs = one.runs(&RunQuery::default()).await.unwrap();
    let states: Vec<_> = runs
        .iter()
        .map(|run| (run.id, run.status, run.live))
        .collect();
    let expected = [
        (second, RunStatus::Success, false),
        (first, RunStatus::Running, false),
    ];
    assert_eq!(states, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_want_a_thread_at_once_one_gets_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let stores = [open(&path).await, open(&path).await];
    let asking: Vec<_> = (0..40)
        .map(|i| {
            let store = stores[i % 2].clone();
            tokio::spawn(async move { store.lease("t", claim(RunId::fresh())).await })
        })
        .collect();
    let mut got = Vec::new();
    for asked in asking {
        match asked.await.unwrap() {
            Ok(lease) => got.push(lease),
            Err(e) => assert!(
                matches!(
                    e,
                    Error::Conflict {
                        holder: Some(_),
                        ..
                    }
                ),
                "{e}"
            ),
        }
    }
    assert_eq!(got.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_future_was_dropped_holds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path().join("a.db")).await;
    for _ in 0..20 {
        let asking = store.clone();
        let task = tokio::spawn(async move { asking.lease("t", claim(RunId::fresh())).await });
        tokio::task::yield_now().await;
        task.abort();
        drop(task.await);
        drop(lease(&*store, "t", &claim(RunId::fresh())).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_kept_fresh_for_longer_than_it_lasts_and_taken_when_its_owner_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let options = Options {
        lease: Duration::from_millis(600),
        ..Options::default()
    };
    let one = Arc::new(Sqlite::open(&path, options.clone()).await.unwrap());
    let mut line = Line::on("t");
    let held = one.lease("t", claim(line.run)).await.unwrap();
    line.epoch = held.epoch;
    let other = Arc::new(Sqlite::open(&path, options).await.unwrap());
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let refused = other.lease("t", claim(RunId::fresh())).await.err().unwrap();
    assert!(is_held_by(&refused, line.run), "{refused}");
    line.step(&*one, &[("a", PatchKind::Whole, json!(1))]).await;
    // As if it had been stopped for long: its lock is there, its time is over.
    let file = Connection::open(&path).unwrap();
    file.busy_timeout(Duration::from_secs(5)).unwrap();
    let stopped = "UPDATE thread SET expires_ms = 1";
    let mut taken = None;
    while taken.is_none() {
        file.execute_batch(stopped).unwrap();
        taken = other.lease("t", claim(RunId::fresh())).await.ok();
    }
    // What it writes from now on is refused, and it is told.
    let put = line.put(&[]);
    let refused = Checkpoints::put(&*one, &line.scope, put).await.unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Conflict {
                holder: Some(_),
                ..
            }
        ),
        "{refused}"
    );
    let refused = one
        .note(&line.scope, line.notes(Vec::new()))
        .await
        .unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Conflict {
                holder: Some(_),
                ..
            }
        ),
        "{refused}"
    );
    let refused = one
        .finish("t", end(&line, RunStatus::Success))
        .await
        .unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Conflict {
                holder: Some(_),
                ..
            }
        ),
        "{refused}"
    );
    let mut wish = held.wish.clone().unwrap();
    let wished = wish.wait_for(Option::is_some).await.unwrap();
    assert_eq!(*wished, Some(CancelReason::LeaseLost));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_learns_in_whatever_process_it_is_that_it_is_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let (one, other) = (open(&path).await, open(&path).await);
    let mut line = Line::on("t");
    let held = one.lease("t", start(line.run)).await.unwrap();
    line.epoch = held.epoch;
    let told = other
        .cancel(line.run, CancelReason::Superseded)
        .await
        .unwrap();
    assert_eq!((told.status, told.live), (RunStatus::Running, true));
    let mut wish = held.wish.clone().unwrap();
    let wished = *wish.wait_for(Option::is_some).await.unwrap();
    assert_eq!(wished, Some(CancelReason::Superseded));
    // The first reason counts.
    other.cancel(line.run, CancelReason::User).await.unwrap();
    one.finish("t", end(&line, RunStatus::Cancelled))
        .await
        .unwrap();
    let row = other.run(line.run).await.unwrap().unwrap();
    let cancel = row.cancel.unwrap();
    assert_eq!(
        (row.status, cancel.reason),
        (RunStatus::Cancelled, CancelReason::Superseded)
    );
    assert!(cancel.done_ms >= Some(cancel.wished_ms));
}

/// Not a test: what the process does that the next test kills.
#[tokio::test]
#[ignore = "run by another test, as a process of its own"]
async fn child_that_holds_a_thread() {
    let path = std::env::var("PARAPH_TEST_STORE").unwrap();
    let store = open(path).await;
    let mut line = Line::on("t");
    let held = store.lease("t", start(line.run)).await.unwrap();
    line.epoch = held.epoch;
    line.step(&*store, &[("a", PatchKind::Whole, json!(1))])
        .await;
    println!("holds {}", line.run);
    std::future::pending::<()>().await;
}

fn child(path: &std::path::Path) -> (Child, RunId) {
    use std::io::BufRead;
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--ignored",
            "--nocapture",
            "child_that_holds_a_thread",
        ])
        .env("PARAPH_TEST_STORE", path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let run = lines.map_while(Result::ok).find_map(|line| {
        let (_, run) = line.split_once("holds ")?;
        run.trim().parse().ok()
    });
    (child, run.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_thread_of_a_process_that_was_killed_is_taken_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let (mut child, run) = child(&path);
    let store = open(&path).await;
    let refused = store.lease("t", claim(RunId::fresh())).await.err().unwrap();
    assert!(is_held_by(&refused, run), "{refused}");
    let live = store.run(run).await.unwrap().unwrap();
    assert_eq!((live.status, live.live), (RunStatus::Running, true));
    child.kill().unwrap();
    child.wait().unwrap();
    let dead = store.run(run).await.unwrap().unwrap();
    assert_eq!((dead.status, dead.live), (RunStatus::Running, false));
    let threads = store.threads(&ThreadQuery::default()).await.unwrap();
    assert_eq!(threads[0].holder, None);
    // Its lease lasts 30 seconds; nobody waits for them.
    let taken = store.lease("t", start(RunId::fresh())).await.unwrap();
    assert!(taken.epoch > 1);
}
