//! The rules about long-term memory.

use super::{
    Checked,
    scene::{long_key, same, text},
};
use crate::{Error, Item, LONGEST_KEY, Memory, Query, RunId};
use futures::future::join_all;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// A namespace of one rule's own.
#[derive(Clone)]
pub(super) struct Corner {
    memory: Arc<dyn Memory>,
    own: String,
}

impl Corner {
    pub(super) fn on(memory: Arc<dyn Memory>, rule: &str) -> Self {
        let own = format!("{rule} {}", RunId::fresh());
        Corner { memory, own }
    }

    fn at(&self, below: &[&str]) -> Vec<String> {
        let labels = [self.own.as_str()].into_iter().chain(below.iter().copied());
        labels.map(str::to_owned).collect()
    }

    async fn put(&self, below: &[&str], key: &str, value: Value) -> Checked {
        let at = self.at(below);
        self.memory.put(&at, key, value, None).await.map_err(text)
    }

    async fn get(&self, below: &[&str], key: &str) -> Result<Option<Item>, String> {
        self.memory.get(&self.at(below), key).await.map_err(text)
    }

    async fn delete(&self, below: &[&str], key: &str) -> Result<bool, String> {
        self.memory.delete(&self.at(below), key).await.map_err(text)
    }

    async fn search(&self, below: &[&str], query: Query) -> Result<Vec<Item>, String> {
        self.memory
            .search(&self.at(below), &query)
            .await
            .map_err(text)
    }

    /// The keys that a search finds, in its order.
    async fn keys(&self, below: &[&str], query: Query) -> Result<Vec<String>, String> {
        let found = self.search(below, query).await?;
        Ok(found.into_iter().map(|item| item.key).collect())
    }
}

fn all() -> Query {
    Query {
        limit: 1000,
        ..Query::default()
    }
}

fn sorted(mut keys: Vec<String>) -> Vec<String> {
    keys.sort();
    keys
}

fn texts(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

pub(super) async fn kept(c: Corner) -> Checked {
    same("what is not there", c.get(&["a"], "k").await?, None)?;
    same("its removal", c.delete(&["a"], "k").await?, false)?;
    c.put(&["a"], "k", json!({"n": 1})).await?;
    let first = c.get(&["a"], "k").await?.ok_or("it is not there")?;
    same("the namespace", &first.namespace, &c.at(&["a"]))?;
    same("the key", first.key.as_str(), "k")?;
    same("the value", &first.value, &json!({"n": 1}))?;
    same("the score", first.score, None)?;
    same("the times", first.created_ms, first.updated_ms)?;
    c.put(&["a"], "k", json!([2])).await?;
    let second = c.get(&["a"], "k").await?.ok_or("it is gone")?;
    same("the new value", &second.value, &json!([2]))?;
    same("its beginning", second.created_ms, first.created_ms)?;
    same("its change", second.updated_ms >= first.updated_ms, true)?;
    same("another key", c.get(&["a"], "K").await?, None)?;
    same("another namespace", c.get(&[], "k").await?, None)?;
    same("the removal", c.delete(&["a"], "k").await?, true)?;
    same("a second removal", c.delete(&["a"], "k").await?, false)?;
    same("what is removed", c.get(&["a"], "k").await?, None)
}

pub(super) async fn below(c: Corner) -> Checked {
    let places: [&[&str]; 8] = [
        &[],
        &["a"],
        &["a", "b"],
        &["a", "b", "c"],
        &["ab"],
        &["A"],
        &["a "],
        &["a", ""],
    ];
    for (i, place) in places.into_iter().enumerate() {
        c.put(place, &i.to_string(), json!(i)).await?;
    }
    let found = async |below: &[&str]| Ok::<_, String>(sorted(c.keys(below, all()).await?));
    let every = texts(&["0", "1", "2", "3", "4", "5", "6", "7"]);
    same("all", found(&[]).await?, every)?;
    same(
        "below a",
        found(&["a"]).await?,
        texts(&["1", "2", "3", "7"]),
    )?;
    same("below b", found(&["a", "b"]).await?, texts(&["2", "3"]))?;
    same(
        "below an empty label",
        found(&["a", ""]).await?,
        texts(&["7"]),
    )?;
    same("below nothing", found(&["b"]).await?, texts(&[]))?;
    let names = c.memory.namespaces(&c.at(&[])).await.map_err(text)?;
    let mut expected: Vec<_> = places.into_iter().map(|place| c.at(place)).collect();
    expected.sort();
    same("the namespaces", names, expected)?;
    let names = c
        .memory
        .namespaces(&c.at(&["a", "b"]))
        .await
        .map_err(text)?;
    let expected = vec![c.at(&["a", "b"]), c.at(&["a", "b", "c"])];
    same("the namespaces below b", names, expected)?;
    let every = c.memory.namespaces(&[]).await.map_err(text)?;
    same(
        "whether all have ours",
        every.contains(&c.at(&["a "])),
        true,
    )?;
    same("whether all are in order", every.is_sorted(), true)?;
    c.delete(&["A"], "5").await?;
    let names = c.memory.namespaces(&c.at(&["A"])).await.map_err(text)?;
    same("an empty namespace", names, Vec::<Vec<String>>::new())
}

pub(super) async fn filtered(c: Corner) -> Checked {
    c.put(&[], "a", json!({"kind": "x", "n": 1, "deep": {"l": [1]}}))
        .await?;
    c.put(&[], "b", json!({"kind": "x", "n": 2, "none": null}))
        .await?;
    c.put(&[], "c", json!({"kind": "y", "n": 1})).await?;
    c.put(&[], "d", json!(["kind"])).await?;
    let table: [(Value, &[&str]); 8] = [
        (json!({}), &["a", "b", "c", "d"]),
        (json!({"kind": "x"}), &["a", "b"]),
        (json!({"kind": "x", "n": 1}), &["a"]),
        (json!({"n": "1"}), &[]),
        (json!({"deep": {"l": [1]}}), &["a"]),
        (json!({"none": null}), &["b"]),
        (json!({"' OR 1=1; --": 1}), &[]),
        (json!({"kind\u{0}": "x"}), &[]),
    ];
    for (filter, keys) in table {
        let filter: BTreeMap<String, Value> =
            serde_json::from_value(filter.clone()).map_err(text)?;
        let what = format!("what has {filter:?}");
        let query = Query { filter, ..all() };
        same(&what, sorted(c.keys(&[], query).await?), texts(keys))?;
    }
    Ok(())
}

/// Writes a document until its time is greater than that of all others.
async fn newest_now(c: &Corner, key: &str) -> Checked {
    loop {
        let before = c.search(&[], all()).await?;
        let newest = before.iter().filter(|item| item.key != key);
        let newest = newest.map(|item| item.updated_ms).max();
        c.put(&[], key, json!({"key": key})).await?;
        let item = c.get(&[], key).await?.ok_or("it is not there")?;
        if Some(item.updated_ms) > newest {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

pub(super) async fn newest(c: Corner) -> Checked {
    for key in ["b", "a", "c", "b"] {
        newest_now(&c, key).await?;
    }
    same(
        "the order",
        c.keys(&[], all()).await?,
        texts(&["b", "c", "a"]),
    )?;
    let blank = Query {
        text: Some("  ".to_owned()),
        ..all()
    };
    same(
        "the order without words",
        c.keys(&[], blank).await?,
        texts(&["b", "c", "a"]),
    )
}

pub(super) async fn ranked(c: Corner) -> Checked {
    c.put(&[], "one", json!({"text": "Green tea and cake"}))
        .await?;
    c.put(&[], "two", json!({"text": "black TEA"})).await?;
    c.put(&[], "green", json!({"text": "coffee", "n": 1}))
        .await?;
    c.put(&[], "four", json!({"text": "Ärger mit Öl"})).await?;
    let found = c.search(&[], Query::from("green tea")).await?;
    let scores: Vec<_> = found
        .iter()
        .map(|item| (item.key.as_str(), item.score))
        .collect();
    let (best, rest) = scores.split_first().ok_or("nothing was found")?;
    same("the best", best, &("one", Some(1.0)))?;
    let mut rest: Vec<_> = rest.to_vec();
    rest.sort_by_key(|(key, _)| *key);
    same(
        "the rest",
        rest,
        vec![("green", Some(0.5)), ("two", Some(0.5))],
    )?;
    same(
        "what none has",
        c.keys(&[], Query::from("juice")).await?,
        texts(&[]),
    )?;
    same(
        "large and small",
        c.keys(&[], Query::from("ÖL")).await?,
        texts(&["four"]),
    )?;
    let both = Query {
        filter: BTreeMap::from([("n".to_owned(), json!(1))]),
        ..Query::from("green")
    };
    same("with a filter", c.keys(&[], both).await?, texts(&["green"]))
}

pub(super) async fn cut(c: Corner) -> Checked {
    for i in 0..30 {
        c.put(
            &["deep"],
            &format!("{i:02}"),
            json!({"text": "word", "n": i}),
        )
        .await?;
    }
    same(
        "the usual limit",
        c.search(&[], Query::default()).await?.len(),
        10,
    )?;
    for text in [None, Some("word".to_owned())] {
        let page = async |limit, offset| {
            let text = text.clone();
            let query = Query {
                text,
                limit,
                offset,
                ..Query::default()
            };
            c.keys(&[], query).await
        };
        let every = page(1000, 0).await?;
        same("all", every.len(), 30)?;
        let mut pages = page(12, 0).await?;
        pages.extend(page(12, 12).await?);
        pages.extend(page(12, 24).await?);
        same("the pages", pages, every)?;
        same("none", page(0, 0).await?, texts(&[]))?;
        same("beyond", page(5, 30).await?, texts(&[]))?;
    }
    Ok(())
}

pub(super) async fn expired(c: Corner) -> Checked {
    let put = async |key: &str, ttl| {
        let at = c.at(&["e"]);
        let put = c.memory.put(&at, key, json!({"of": key}), ttl);
        put.await.map_err(text)
    };
    put("never", None).await?;
    put("late", Some(Duration::from_secs(3600))).await?;
    put("far", Some(Duration::MAX)).await?;
    put("now", Some(Duration::ZERO)).await?;
    put("soon", Some(Duration::from_millis(30))).await?;
    same("what lives for no time", c.get(&["e"], "now").await?, None)?;
    let mut tries = 0;
    while c.get(&["e"], "soon").await?.is_some() {
        tries += 1;
        if tries > 2000 {
            return Err("it does not expire".to_owned());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let left = texts(&["far", "late", "never"]);
    same("what is found", sorted(c.keys(&[], all()).await?), left)?;
    same(
        "the removal of what has expired",
        c.delete(&["e"], "soon").await?,
        false,
    )?;
    // Written over, it has the time that it is given then.
    put("late", Some(Duration::ZERO)).await?;
    same("what was cut short", c.get(&["e"], "late").await?, None)?;
    put("late", None).await?;
    same(
        "what was written anew",
        c.get(&["e"], "late").await?.is_some(),
        true,
    )?;
    for key in ["late", "never"] {
        c.delete(&["e"], key).await?;
    }
    put("far", Some(Duration::ZERO)).await?;
    let names = c.memory.namespaces(&c.at(&[])).await.map_err(text)?;
    same("the namespaces", names, Vec::<Vec<String>>::new())
}

pub(super) async fn any_text(c: Corner) -> Checked {
    let strange = [
        "",
        "\u{0}",
        "a\u{0}b\u{1}\u{2}\u{3}\u{4}",
        "Ünï cödé 漢字 🦀",
        "'\"\\; --",
        "%_*",
        "a/b.c|d",
        "\u{10ffff}\u{10ffff}",
    ];
    for (i, one) in strange.iter().enumerate() {
        for other in strange {
            c.put(
                &[one, other],
                other,
                json!({"one": one, "other": other, "i": i}),
            )
            .await?;
        }
    }
    for (i, one) in strange.iter().enumerate() {
        same(
            "how many are below it",
            c.search(&[one], all()).await?.len(),
            strange.len(),
        )?;
        for other in strange {
            let item = c
                .get(&[one, other], other)
                .await?
                .ok_or("it is not there")?;
            same(
                "the value",
                &item.value,
                &json!({"one": one, "other": other, "i": i}),
            )?;
            same("the namespace", &item.namespace, &c.at(&[one, other]))?;
        }
    }
    let long = format!("{}end", "x\u{0}é🦀".repeat(1 << 17));
    let numbers = json!([u64::MAX, i64::MIN, 1e300, 0.1, null, true]);
    c.put(
        &["long"],
        &long[..800],
        json!({"text": long, "numbers": numbers}),
    )
    .await?;
    let item = c
        .get(&["long"], &long[..800])
        .await?
        .ok_or("it is not there")?;
    same("the numbers", &item.value["numbers"], &numbers)?;
    same("the long text", item.value["text"] == json!(long), true)?;
    same(
        "the search",
        c.search(&["long"], Query::from("end")).await?.len(),
        1,
    )
}

pub(super) async fn at_once(c: Corner) -> Checked {
    let writes = (0..100).map(|i| {
        let c = c.clone();
        tokio::spawn(async move {
            let key = format!("{:02}", i % 50);
            c.put(&["x"], &key, json!({ "of": key })).await?;
            c.get(&["x"], &key).await
        })
    });
    for done in join_all(writes).await {
        let item = done
            .map_err(text)??
            .ok_or("what was written is not there")?;
        same("the value", &item.value, &json!({ "of": item.key }))?;
    }
    same("how many there are", c.search(&[], all()).await?.len(), 50)
}

pub(super) async fn long_names(c: Corner) -> Checked {
    // The rule's own label, and a mark for each of the two.
    let rest = LONGEST_KEY - c.own.len() - 2;
    for low in [false, true] {
        // An odd rest leaves one byte over.
        let label = long_key(rest - rest % 2, low);
        let key = long_key(LONGEST_KEY, low);
        c.put(&[&label], &key, json!(1)).await?;
        let found = c.get(&[&label], &key).await?.map(|item| item.value);
        same("the document", found, Some(json!(1)))?;
        for (label, key) in [(label.clone(), key.clone() + "x"), (label + "xx", key)] {
            let put = c.memory.put(&c.at(&[&label]), &key, json!(2), None).await;
            match put {
                Err(Error::LongKey { bytes, most, .. }) if bytes > most => {}
                other => return Err(format!("a longer name: {other:?}")),
            }
            same("what is kept of it", c.get(&[&label], &key).await?, None)?;
        }
    }
    Ok(())
}
