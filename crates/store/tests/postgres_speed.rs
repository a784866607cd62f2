//! How fast a Postgres store is beside a bare commit of the same bytes on the same server. By hand, since a test must not
//! depend on time: `cargo test --release -p paraph-store --test postgres_speed -- --ignored --nocapture`.
#![cfg(feature = "postgres")]
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod cluster;

use cluster::Cluster;
use paraph_graph::*;
use paraph_store::{Options, Postgres};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

fn put(head: Option<CheckpointId>, text: &str) -> Put {
    Put {
        id: CheckpointId::fresh(),
        parent: head,
        expect: head,
        metadata: Metadata {
            source: Source::Loop,
            superstep: 0,
            run: "0192f0c1-2345-7abc-8def-0123456789ab".parse().unwrap(),
            created_ms: 1,
            user: serde_json::Map::new(),
        },
        machine: br#"{"tasks":[]}"#.to_vec(),
        deltas: vec![Delta {
            channel: "messages".to_owned(),
            kind: PatchKind::Append,
            json: serde_json::to_vec(&[text]).unwrap(),
        }],
        notes: Vec::new(),
        epoch: 0,
        standing: None,
        events: Vec::new(),
    }
}

/// `n` puts on one thread, each after the one before; how long each took.
async fn line(store: &Store, thread: &str, n: usize, text: &str) -> Vec<Duration> {
    let scope = Scope {
        thread: thread.into(),
        namespace: "".into(),
    };
    let (mut head, mut took) = (None, Vec::new());
    for _ in 0..n {
        let put = put(head, text);
        head = Some(put.id);
        let began = Instant::now();
        store.put(&scope, put).await.unwrap();
        took.push(began.elapsed());
    }
    took
}

fn median(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took[took.len() / 2]
}

/// Text that packs about as well as prose does.
fn prose(bytes: usize) -> String {
    let mut n = 1_u64;
    let mut text = String::new();
    while text.len() < bytes {
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text.push_str(
            ["the ", "of ", "state ", "graph ", "runs ", "x7", "9a ", "Q"][(n >> 61) as usize],
        );
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time"]
async fn puts_beside_bare_commits() {
    let Some(cluster) = Cluster::durable() else {
        return;
    };
    let store = Postgres::connect(&cluster.url(), Options::default())
        .await
        .unwrap();
    let store: Store = Arc::new(store);
    let (bare, connection) = tokio_postgres::connect(&cluster.url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    bare.batch_execute("CREATE TABLE bare (n bigint PRIMARY KEY, x bytea); ALTER TABLE bare ALTER x SET STORAGE EXTERNAL")
        .await
        .unwrap();
    let insert = bare
        .prepare("INSERT INTO bare VALUES ($1, $2)")
        .await
        .unwrap();
    let mut n = 0_i64;
    for bytes in [400, 40_000] {
        let text = prose(bytes);
        line(&store, &format!("warm {bytes}"), 50, &text).await;
        let (mut floor, mut ours) = (Vec::new(), Vec::new());
        for round in 0..10 {
            for _ in 0..20 {
                n += 1;
                let began = Instant::now();
                bare.execute(&insert, &[&n, &text.as_bytes()])
                    .await
                    .unwrap();
                floor.push(began.elapsed());
            }
            ours.extend(line(&store, &format!("t {bytes} {round}"), 20, &text).await);
        }
        let (floor, ours) = (median(floor), median(ours));
        println!(
            "put of {bytes} bytes {ours:?}, bare commit {floor:?}: {:.2}",
            ours.as_secs_f64() / floor.as_secs_f64()
        );
    }
    for round in 0..3 {
        let began = Instant::now();
        let all: Vec<_> = (0..100)
            .map(|n| {
                let store = store.clone();
                tokio::spawn(async move {
                    line(&store, &format!("many {round} {n}"), 10, "a short text").await
                })
            })
            .collect();
        for one in all {
            one.await.unwrap();
        }
        println!("100 threads of 10 small puts: {:?}", began.elapsed());
    }
}
