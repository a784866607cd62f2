//! The rules of the engine's conformance suite on SQLite.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

use paraph_graph::{Store, conformance};
use paraph_store::{Options, Sqlite};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn every_rule_about_checkpoints_holds_on_one_file_that_is_opened_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut broken = Vec::new();
    for rule in conformance::RULES {
        let store = Sqlite::open(folder.path().join("a.db"), Options::default());
        let store: Store = Arc::new(store.await.unwrap());
        broken.extend(rule.check(&store).await.err());
    }
    assert_eq!(broken, []);
}
