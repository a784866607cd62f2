//! The store and the memory in this process do what every store and every memory must.

use paraph_graph::{Memory, MemoryOf, MemoryStore, Threads, conformance};
use std::sync::Arc;

#[tokio::test]
async fn the_store_in_memory_keeps_the_rules_about_threads() {
    let store: Arc<dyn Threads> = MemoryStore::with_events();
    let mut broken = Vec::new();
    for rule in conformance::THREAD_RULES {
        broken.extend(rule.check(&store).await.err());
    }
    assert_eq!(broken, []);
}

#[tokio::test]
async fn the_memory_in_this_process_keeps_the_rules_about_memory() {
    let memory: Arc<dyn Memory> = Arc::new(MemoryOf::default());
    let mut broken = Vec::new();
    for rule in conformance::MEMORY_RULES {
        broken.extend(rule.check(&memory).await.err());
    }
    assert_eq!(broken, []);
}
