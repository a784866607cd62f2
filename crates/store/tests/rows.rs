//! Rows, logs and whole threads on SQLite: the rules that every store keeps, and what only a file shows.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::{Memory, Threads, conformance};
use paraph_store::{Options, Sqlite};
use std::sync::Arc;

fn options(key: Option<&str>) -> Options {
    Options {
        key: key.map(|digit| digit.repeat(64).parse().unwrap()),
        ..Options::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_the_rules_about_threads_and_memory() {
    for key in [None, Some("5")] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.db");
        let store = Arc::new(Sqlite::open(&path, options(key)).await.unwrap());
        let (threads, memory): (Arc<dyn Threads>, Arc<dyn Memory>) = (store.clone(), store);
        let mut broken = Vec::new();
        for rule in conformance::THREAD_RULES {
            let began = std::time::Instant::now();
            broken.extend(rule.check(&threads).await.err());
            eprintln!("{:?} {}", began.elapsed(), rule.name);
        }
        for rule in conformance::MEMORY_RULES {
            broken.extend(rule.check(&memory).await.err());
        }
        assert_eq!(broken, []);
    }
}
