//! Long-term memory in this process: documents in namespaces, found by place, field and words.

use futures::FutureExt;
use paraph_graph::*;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

#[derive(Default)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

struct Shelf {
    memory: MemoryOf,
    clock: Arc<Hand>,
}

fn space(path: &str) -> Namespace {
    path.split('/').map(str::to_owned).collect()
}

impl Shelf {
    /// Empty, at time 1.
    fn new() -> Self {
        let clock = Arc::new(Hand(AtomicU64::new(1)));
        Shelf {
            memory: MemoryOf::with_clock(clock.clone()),
            clock,
        }
    }

    /// Puts a document; each is a millisecond younger than the one before.
    fn put(&self, path: &str, key: &str, value: Value, ttl: Option<u64>) {
        let ttl = ttl.map(Duration::from_millis);
        let put = self
            .memory
            .put(&space(path), key, value, ttl)
            .now_or_never();
        assert!(matches!(put, Some(Ok(()))));
        self.clock.0.fetch_add(1, Ordering::SeqCst);
    }

    fn get(&self, path: &str, key: &str) -> Option<Item> {
        let got = self.memory.get(&space(path), key).now_or_never();
        got.and_then(Result::ok).flatten()
    }

    /// The keys found, best first.
    fn search(&self, path: &str, query: &Query) -> Vec<String> {
        let namespace = if path.is_empty() { vec![] } else { space(path) };
        let found = self.memory.search(&namespace, query).now_or_never();
        let found = found.and_then(Result::ok).unwrap_or_default();
        found.into_iter().map(|item| item.key).collect()
    }
}

#[test]
fn a_document_is_replaced_read_and_removed_under_its_name() {
    let shelf = Shelf::new();
    shelf.put("user/1", "diet", json!({"likes": "rice"}), None);
    shelf.put("user/2", "diet", json!({"likes": "bread"}), None);
    shelf.put("user/1", "diet", json!({"likes": "tea"}), None);
    let expected = Item {
        namespace: space("user/1"),
        key: "diet".to_owned(),
        value: json!({"likes": "tea"}),
        created_ms: 1,
        updated_ms: 3,
        score: None,
    };
    assert_eq!(shelf.get("user/1", "diet"), Some(expected));
    let delete = || shelf.memory.delete(&space("user/1"), "diet").now_or_never();
    assert!(matches!(delete(), Some(Ok(true))));
    assert!(matches!(delete(), Some(Ok(false))));
    assert_eq!(shelf.get("user/1", "diet"), None);
    assert_eq!(
        shelf.get("user/2", "diet").map(|item| item.value),
        Some(json!({"likes": "bread"}))
    );
}

#[test]
fn a_document_with_a_time_to_live_is_gone_after_it_and_a_new_write_begins_anew() {
    let shelf = Shelf::new();
    shelf.put("notes", "short", json!(1), Some(10));
    shelf.put("notes", "long", json!(2), None);
    shelf.put("notes", "renewed", json!(3), Some(10));
    shelf.clock.0.store(10, Ordering::SeqCst);
    shelf.put("notes", "renewed", json!(3), Some(10));
    let all = Query::default();
    assert_eq!(shelf.search("notes", &all).len(), 2);
    assert_eq!(shelf.get("notes", "short"), None);
    shelf.clock.0.store(20, Ordering::SeqCst);
    assert_eq!(shelf.search("notes", &all), ["long"]);
}

#[test]
fn a_search_goes_down_from_its_namespace_newest_first_page_by_page() {
    let shelf = Shelf::new();
    for (path, key) in [("a", "1"), ("a/b", "2"), ("a/b/c", "3"), ("ab", "4")] {
        shelf.put(path, key, json!({}), None);
    }
    let all = Query::default();
    assert_eq!(shelf.search("", &all), ["4", "3", "2", "1"]);
    assert_eq!(shelf.search("a", &all), ["3", "2", "1"]);
    assert_eq!(shelf.search("a/b", &all), ["3", "2"]);
    assert_eq!(shelf.search("b", &all), Vec::<String>::new());
    let page = Query {
        limit: 2,
        offset: 1,
        ..Query::default()
    };
    assert_eq!(shelf.search("", &page), ["3", "2"]);
    let below = |prefix: &[String]| {
        let found = shelf.memory.namespaces(prefix).now_or_never();
        found.and_then(Result::ok).unwrap_or_default()
    };
    assert_eq!(
        below(&space("a")),
        [space("a"), space("a/b"), space("a/b/c")]
    );
    assert_eq!(below(&[]).len(), 4);
}

#[test]
fn a_search_by_fields_and_words_ranks_by_how_many_words_it_finds() {
    let shelf = Shelf::new();
    shelf.put(
        "food",
        "soup",
        json!({"text": "Hot leek soup", "vegan": true}),
        None,
    );
    shelf.put(
        "food",
        "leek pie",
        json!({"text": "a pie", "vegan": false}),
        None,
    );
    shelf.put(
        "food",
        "tea",
        json!({"text": "hot tea", "vegan": true}),
        None,
    );
    shelf.put("food", "ice", json!({"text": "cold", "vegan": true}), None);
    assert_eq!(
        shelf.search("food", &"HOT leek".into()),
        ["soup", "leek pie", "tea"]
    );
    let vegan = BTreeMap::from([("vegan".to_owned(), json!(true))]);
    let both = Query {
        filter: vegan.clone(),
        ..Query::from("leek hot")
    };
    assert_eq!(shelf.search("food", &both), ["soup", "tea"]);
    let fields = Query {
        filter: vegan,
        ..Query::default()
    };
    assert_eq!(shelf.search("food", &fields), ["ice", "tea", "soup"]);
    let scores = shelf.memory.search(&space("food"), &both).now_or_never();
    let scores: Vec<_> = scores
        .and_then(Result::ok)
        .unwrap_or_default()
        .into_iter()
        .map(|item| item.score)
        .collect();
    assert_eq!(scores, [Some(1.0), Some(0.5)]);
}
