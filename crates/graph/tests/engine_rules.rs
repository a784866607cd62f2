//! Graphs on the store in this process do what graphs do on every store; and random graphs, of which
//! `PARAPH_PROGRAMS=1000` takes the first thousand instead of the first sixty.

use paraph_graph::{MemoryStore, Threads, conformance};
use std::sync::Arc;

#[tokio::test]
async fn graphs_on_the_store_in_memory_keep_the_rules_of_all_stores() {
    let mut broken = Vec::new();
    for rule in conformance::ENGINE_RULES {
        // With a log and without.
        for store in [MemoryStore::with_events(), MemoryStore::new()] {
            let store: Arc<dyn Threads> = store;
            broken.extend(rule.check(&store).await.err());
        }
    }
    assert_eq!(broken, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_on_several_threads_keep_them_too() {
    let store: Arc<dyn Threads> = MemoryStore::with_events();
    let mut broken = Vec::new();
    for rule in conformance::ENGINE_RULES {
        broken.extend(rule.check(&store).await.err());
    }
    assert_eq!(broken, []);
}

// G27: temporalio/sdk-dotnet#330, a mismatch of replays that only random programs found.
#[tokio::test(flavor = "multi_thread")]
async fn g27_random_programs_that_are_cut_at_random_come_to_the_same_as_uncut_ones() {
    let seeds = std::env::var("PARAPH_PROGRAMS");
    let seeds = seeds.map_or(60, |n| n.parse().expect("PARAPH_PROGRAMS is a number"));
    let store: Arc<dyn Threads> = MemoryStore::new();
    assert_eq!(conformance::check_programs(&store, 0..seeds).await, Ok(()));
}
