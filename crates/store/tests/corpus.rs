//! The corpus in both databases: the rules of every corpus, and what only a store has.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests"
)]

#[cfg(feature = "postgres")]
mod cluster;

use paraph_retrieval::{
    Batch, Corpus, Document, Identity, Kept, MemoryCorpus, Query, Retriever, Vectors, conformance,
};
use paraph_store::{Options, Sqlite, Verify};
use rusqlite::Connection;
use std::{path::Path, sync::Arc};

async fn open(path: &Path, key: Option<&str>) -> Arc<Sqlite> {
    Arc::new(Sqlite::open(path, options(key)).await.unwrap())
}

fn options(key: Option<&str>) -> Options {
    Options {
        key: key.map(|digit| digit.repeat(64).parse().unwrap()),
        ..Options::default()
    }
}

fn kept(number: u64, body: &str) -> Kept {
    Kept {
        document: Document {
            repo: "Acme/Boats".into(),
            number,
            title: format!("Boat {number} sinks"),
            body: body.into(),
            url: format!("https://example.org/issues/{number}"),
            updated_at: "2026-01-31T12:00:00Z".into(),
            ..Document::default()
        },
        vectors: Vectors::of(&[vec![1.0, number as f32]]).unwrap(),
    }
}

fn batch(put: Vec<Kept>) -> Batch {
    Batch {
        identity: Identity::embedded("test:two", 2),
        put,
        remove: vec![],
        cursor: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_all_rules_also_with_a_key() {
    let folder = tempfile::tempdir().unwrap();
    for key in [None, Some("a")] {
        let store = open(&folder.path().join(format!("{key:?}.db")), key).await;
        for rule in conformance::RULES {
            assert_eq!(rule.check(&*store).await, Ok(()));
        }
    }
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_all_rules_also_with_a_key() {
    use paraph_store::Postgres;
    for key in [None, Some("a")] {
        let Some(cluster) = cluster::Cluster::start() else {
            return;
        };
        let store = Postgres::connect(&cluster.url(), options(key))
            .await
            .unwrap();
        for rule in conformance::RULES {
            assert_eq!(rule.check(&store).await, Ok(()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_see_each_others_changes_and_keep_to_one_identity() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let (one, other) = (open(&path, None).await, open(&path, None).await);
    one.apply(batch(vec![kept(1, "At once.")])).await.unwrap();
    let retriever = Retriever::new(other.clone(), None);
    assert_eq!(
        retriever.search(&Query::new("sinks")).await.unwrap().len(),
        1
    );
    one.apply(batch(vec![kept(2, "Slowly.")])).await.unwrap();
    assert_eq!(
        retriever.search(&Query::new("sinks")).await.unwrap().len(),
        2
    );
    let lexical = Batch {
        identity: Identity::lexical(),
        ..batch(vec![])
    };
    assert!(other.apply(lexical).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_corpus_gives_the_same_answer_wherever_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let bodies = [
        "The hull leaks.",
        "It leaks when it rains.",
        "Nothing is known.",
        "The hull is gone.",
    ];
    let put = || {
        (1..)
            .zip(bodies)
            .map(|(number, body)| kept(number, body))
            .collect::<Vec<_>>()
    };
    let memory = Arc::new(MemoryCorpus::default());
    memory.apply(batch(put())).await.unwrap();
    let store = open(&folder.path().join("a.db"), Some("b")).await;
    store.apply(batch(put())).await.unwrap();
    let (memory, store) = (Retriever::new(memory, None), Retriever::new(store, None));
    let query = Query::new("the hull leaks");
    let expected = memory.search(&query).await.unwrap();
    assert_eq!(expected.len(), 3);
    assert_eq!(store.search(&query).await.unwrap(), expected);
    assert_eq!(
        store.floors().await.unwrap(),
        memory.floors().await.unwrap()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_key_no_word_of_an_issue_stands_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path, Some("c")).await;
    store
        .apply(batch(vec![kept(1, "The zanzibar leaks.")]))
        .await
        .unwrap();
    drop(store);
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(8).any(|window| window == b"zanzibar"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_outside_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path, None).await;
    store
        .apply(batch(vec![
            kept(1, "one"),
            kept(2, "two"),
            kept(3, "three"),
        ]))
        .await
        .unwrap();
    assert_eq!(store.problems().await.unwrap(), Vec::<String>::new());
    let other = Connection::open(&path).unwrap();
    for sql in [
        "UPDATE corpus_document SET value = replace(value, 'one', 'eno') WHERE number = 1",
        "UPDATE corpus_document SET hash = zeroblob(32) WHERE number = 2",
        "UPDATE corpus_vectors SET dims = 3 WHERE number = 3",
    ] {
        assert_eq!(other.execute(sql, []).unwrap(), 1);
    }
    let found = store.problems().await.unwrap();
    assert_eq!(
        found,
        [
            "store: the text of issue acme/boats#1 in the corpus cannot be read: `value` does not fit its sum",
            "store: the text of issue acme/boats#2 in the corpus cannot be read: `value` does not fit its sum",
            "store: the vectors of issue acme/boats#3 in the corpus cannot be read: `value` does not fit its sum",
        ]
    );
}
