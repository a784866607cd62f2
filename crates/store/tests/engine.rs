//! Graphs on SQLite and on Postgres do what graphs do on every store (`conformance::ENGINE_RULES`).
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod cluster;

use cluster::Cluster;
use paraph_graph::{Threads, conformance};
use paraph_store::{Options, Postgres, Sqlite};
use std::{sync::Arc, time::Instant};

async fn check(store: Arc<dyn Threads>) {
    let mut broken = Vec::new();
    for rule in conformance::ENGINE_RULES {
        let began = Instant::now();
        broken.extend(rule.check(&store).await.err());
        eprintln!("{:?} {}", began.elapsed(), rule.name);
    }
    assert_eq!(broken, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_on_sqlite_keep_the_rules_of_all_stores() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.db");
    let store = Sqlite::open(&path, Options::default()).await.unwrap();
    check(Arc::new(store)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_on_postgres_keep_the_rules_of_all_stores() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = Postgres::connect(&cluster.url(), Options::default()).await;
    check(Arc::new(store.unwrap())).await;
}
