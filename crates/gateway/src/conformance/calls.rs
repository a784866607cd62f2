//! Records and counters.

use super::Checked;
use super::scene::{Scene, add, call, done, fresh, same, text};
use crate::record::RunRef;
use crate::store::Change;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) async fn records(t: Scene) -> Checked {
    let (store, run) = (t.store()?, t.run("1"));
    same("no records", store.calls(&run).await.map_err(text)?, vec![])?;
    let [b, c, a] = [
        call(&run, "b", 2),
        call(&run, "c\u{0}'", 3),
        call(&run, "a", 1),
    ];
    t.commit(Change {
        calls: vec![b.clone(), c.clone(), a.clone()],
        ..Change::default()
    })
    .await?;
    let found = store.calls(&run).await.map_err(text)?;
    same("in order", found, vec![a.clone(), b.clone(), c.clone()])?;
    let b = done(b, "\u{0}\"done\"");
    t.commit(Change {
        calls: vec![b.clone()],
        ..Change::default()
    })
    .await?;
    let found = store.calls(&run).await.map_err(text)?;
    same("one replaced", found, vec![a, b, c])
}

pub(super) async fn counters(t: Scene) -> Checked {
    let (store, run) = (t.store()?, t.run("1"));
    let now = async || store.counters(&run).await.map_err(text);
    same("no counters", now().await?, BTreeMap::new())?;
    let raise = async |adds: &[(&str, u64)]| {
        let adds = adds.iter().map(|(name, by)| add(&run, name, *by));
        let change = Change {
            add: adds.collect(),
            ..Change::default()
        };
        t.commit(change).await?;
        now().await
    };
    let is = |pairs: &[(&str, u64)]| -> BTreeMap<String, u64> {
        let pairs = pairs.iter();
        pairs.map(|(name, n)| ((*name).to_owned(), *n)).collect()
    };
    let seen = raise(&[("steps", 1), ("a\u{0}b", 5)]).await?;
    same("two", seen, is(&[("a\u{0}b", 5), ("steps", 1)]))?;
    let seen = raise(&[("steps", 2), ("steps", 0), ("steps", 4)]).await?;
    same("several adds", seen, is(&[("a\u{0}b", 5), ("steps", 7)]))?;
    raise(&[("steps", u64::MAX), ("steps", 1)]).await?;
    let seen = raise(&[("steps", 1)]).await?;
    let most = i64::MAX.unsigned_abs();
    same("it stays", seen.get("steps") >= Some(&most), true)
}

pub(super) async fn runs_apart(t: Scene) -> Checked {
    let store = t.store()?;
    let tag = &t.tag;
    let of = |thread: String, run: &str| {
        Arc::new(RunRef {
            thread,
            ..(*t.run(run)).clone()
        })
    };
    // Names that would run into each other if they were only put together.
    let runs = [
        t.run("1"),
        t.run("1\",\"2"),
        of(format!("{tag}\",\"1"), "2"),
        of(format!("{tag} "), "1"),
        Arc::new(RunRef {
            agent: "another".to_owned(),
            ..(*t.run("1")).clone()
        }),
        Arc::new(RunRef {
            tenant: "another".to_owned(),
            ..(*t.run("1")).clone()
        }),
    ];
    for (i, run) in (1..).zip(&runs) {
        t.commit(Change {
            guards: vec![fresh(run, "k")],
            calls: vec![call(run, "k", i)],
            add: vec![add(run, "n", i)],
            ..Change::default()
        })
        .await?;
    }
    for (i, run) in (1..).zip(&runs) {
        let found = store.calls(run).await.map_err(text)?;
        same("its record", found, vec![call(run, "k", i)])?;
        let counters = store.counters(run).await.map_err(text)?;
        same(
            "its counter",
            counters,
            BTreeMap::from([("n".to_owned(), i)]),
        )?;
    }
    Ok(())
}
