//! G07: two processes write to one file, two hundred times a second each: no error, and nothing lost.
//!
//! Three seconds here; `PARAPH_SHARED_SECONDS=30` is the long form.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod suite;

use paraph_graph::{Checkpoints, PatchKind};
use serde_json::json;
use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use suite::{Line, list, open};

const A_SECOND: u32 = 200;
/// Threads per process, so that a slow disk does not make it fewer.
const THREADS: u32 = 20;

fn seconds() -> u32 {
    let asked = std::env::var("PARAPH_SHARED_SECONDS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(3)
}

/// Not a test: what each of the two processes does.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by another test, as a process of its own"]
async fn child_that_writes() {
    let path = std::env::var("PARAPH_TEST_STORE").unwrap();
    let name = std::env::var("PARAPH_TEST_NAME").unwrap();
    let store = open(path).await;
    let began = Instant::now();
    let writers: Vec<_> = (0..THREADS)
        .map(|n| {
            let (store, thread) = (store.clone(), format!("{name} {n}"));
            tokio::spawn(async move {
                let mut line = Line::on(&thread);
                for i in 0..A_SECOND * seconds() / THREADS {
                    let due = Duration::from_secs(1) * i * THREADS / A_SECOND;
                    tokio::time::sleep_until((began + due).into()).await;
                    let delta = ("list", PatchKind::Append, json!([i]));
                    line.step(&*store, &[delta]).await;
                }
            })
        })
        .collect();
    for done in writers {
        done.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_on_one_file_lose_nothing_and_see_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let children = ["one", "other"].map(|name| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "child_that_writes"])
            .env("PARAPH_TEST_STORE", &path)
            .env("PARAPH_TEST_NAME", name)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    });
    for child in children {
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{said}");
    }
    let store = open(&path).await;
    let expected: Vec<_> = (0..A_SECOND * seconds() / THREADS)
        .map(|i| json!(i))
        .collect();
    for name in ["one", "other"] {
        for n in 0..THREADS {
            let scope = Line::on(&format!("{name} {n}")).scope;
            let loaded = store.load(&scope, None).await.unwrap().unwrap();
            assert_eq!(list(&loaded, "list"), expected);
        }
    }
}
