//! How many rows a Postgres server looks at for a store, counted by itself. A table that nobody has counted yet, as
//! in a store's first minutes, must not make its planner walk through histories. Time is not measured.
#![cfg(feature = "postgres")]
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod cluster;
mod suite;

use cluster::Cluster;
use paraph_graph::{Checkpoints, PatchKind};
use paraph_store::{Options, Postgres};
use serde_json::json;
use suite::Line;

/// How long the history is.
const STEPS: u64 = 600;
/// What a step may cost in rows and entries of indexes: a handful for what it writes and what it follows.
const PER_STEP: u64 = 30;

/// Rows and entries of indexes that the server has looked at in the tables of checkpoints, once all who are
/// connected have gone and so have told.
fn looked_at(cluster: &Cluster, database: &str) -> u64 {
    let others = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'");
    while cluster.sql("postgres", &others) != "0" {}
    let sum = "SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname IN ('checkpoint', 'piece')) \
               + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN ('checkpoint', 'piece'))";
    cluster.sql(database, sum).parse().unwrap()
}

async fn store(url: &str) -> Postgres {
    let one = Options {
        connections: 1,
        ..Options::default()
    };
    Postgres::connect(url, one).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_is_written_and_read_without_walking_through_it() {
    let Some(cluster) = Cluster::with(&["autovacuum=off"]) else {
        return;
    };
    let url = cluster.database("long");
    let mut line = Line::on("t");
    let writing = store(&url).await;
    for _ in 0..STEPS {
        line.step(&writing, &[("log", PatchKind::Append, json!(["x"]))])
            .await;
    }
    drop(writing);
    let written = looked_at(&cluster, "long");
    assert!(written <= PER_STEP * STEPS, "{written} for the steps");

    let reading = store(&url).await;
    let head = Checkpoints::load(&reading, &line.scope, None).await;
    let channels = head.unwrap().unwrap().channels;
    assert_eq!(channels[0].1.len() as u64, STEPS);
    drop(reading);
    let read = looked_at(&cluster, "long") - written;
    assert!(read <= PER_STEP * STEPS, "{read} for the head");
}
