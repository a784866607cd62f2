//! The gateway's records and counters in Postgres.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod cluster;
mod gateway;

use cluster::Cluster;
use paraph_gateway::Store;
use paraph_store::{Options, Postgres};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn the_gateways_records_are_kept_as_it_needs_them() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let options = Options::default();
    let store = Postgres::connect(&cluster.url(), options).await;
    let store: Arc<dyn Store> = Arc::new(store.unwrap());
    gateway::keeps_the_rules(&store, "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_that_are_first_one_is() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..2 {
        let store = Postgres::connect(&cluster.url(), Options::default()).await;
        stores.push(Arc::new(store.unwrap()));
    }
    gateway::one_of_two_is_first(&stores, "thread").await;
}
