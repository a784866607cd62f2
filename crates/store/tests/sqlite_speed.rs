//! How fast a SQLite store is beside a bare commit of the same bytes on the same disk. By hand, since a test must not
//! depend on time: `cargo test --release -p paraph-store --test sqlite_speed -- --ignored --nocapture`.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod suite;

use paraph_graph::{Checkpoints, PatchKind};
use serde_json::json;
use std::time::{Duration, Instant};
use suite::{Line, open};

/// How many commits are measured of each; those of store and floor alternate.
const COMMITS: usize = 300;

fn median(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took[took.len() / 2]
}

/// Text that packs about as well as prose does.
fn prose(seed: usize, bytes: usize) -> String {
    let words = ["the ", "of ", "state ", "graph ", "runs ", "x7", "9a ", "Q"];
    let mut n = seed as u64;
    let mut text = String::new();
    while text.len() < bytes {
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text.push_str(words[usize::try_from(n >> 61).unwrap()]);
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time"]
async fn a_put_beside_a_bare_commit_of_the_same_bytes() {
    for bytes in [200, 4_000, 40_000] {
        let folder = tempfile::tempdir().unwrap();
        let bare = rusqlite::Connection::open(folder.path().join("bare.db")).unwrap();
        let set = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (a)";
        bare.execute_batch(set).unwrap();
        let store = open(folder.path().join("a.db")).await;
        let mut line = Line::on("t");
        let (mut floor, mut ours) = (Vec::new(), Vec::new());
        for i in 0..COMMITS {
            let text = prose(i, bytes);
            let began = Instant::now();
            let mut insert = bare.prepare_cached("INSERT INTO t VALUES (?1)").unwrap();
            insert.execute([&text]).unwrap();
            floor.push(began.elapsed());
            let put = line.put(&[("list", PatchKind::Append, json!([text]))]);
            line.head = Some(put.id);
            let began = Instant::now();
            Checkpoints::put(&*store, &line.scope, put).await.unwrap();
            ours.push(began.elapsed());
        }
        let (floor, ours) = (median(floor), median(ours));
        let ratio = ours.as_secs_f64() / floor.as_secs_f64();
        println!("{bytes} bytes: {ours:?}, a bare commit {floor:?}, ratio {ratio:.2}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time"]
async fn a_hundred_threads_at_once_share_their_commits() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path().join("a.db")).await;
    let (began, before) = (Instant::now(), store.commits());
    let writers: Vec<_> = (0..100)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut line = Line::on(&n.to_string());
                for i in 0..22 {
                    let text = prose(i, if i % 2 == 0 { 3_600 } else { 36_000 });
                    line.step(&*store, &[("list", PatchKind::Append, json!([text]))])
                        .await;
                }
            })
        })
        .collect();
    for done in writers {
        done.await.unwrap();
    }
    let (took, commits) = (began.elapsed(), store.commits() - before);
    println!("2200 puts of 100 threads: {took:?}, {commits} commits");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time"]
async fn the_head_of_a_long_thread() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path().join("a.db")).await;
    let mut line = Line::on("t");
    for i in 0..1000 {
        let text = prose(i, 40_000);
        line.step(&*store, &[("list", PatchKind::Append, json!([text]))])
            .await;
    }
    let mut took = Vec::new();
    for _ in 0..10 {
        let began = Instant::now();
        let loaded = store.load(&line.scope, None).await.unwrap();
        took.push(began.elapsed());
        drop(loaded);
    }
    println!("1000 pieces of 40,000 bytes: {:?}", median(took));
}
