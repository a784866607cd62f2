//! Guards: what each means, and that a change is made as a whole or not at all.

use super::Checked;
use super::scene::{
    Scene, action, add, at, call, detailed, done, fresh, next, open, refused, same, text, wake,
};
use crate::action::ActionRow;
use crate::store::{Change, Erase, Find, Guard, Kill, Wake};
use std::collections::BTreeMap;

pub(super) async fn fresh_and_open(t: Scene) -> Checked {
    let (store, run) = (t.store()?, t.run("1"));
    let first = call(&run, "k", 1);
    let change = |guard: Guard, record| Change {
        guards: vec![guard],
        calls: vec![record],
        add: vec![add(&run, "calls", 1)],
        ..Change::default()
    };
    let early = store.commit(change(open(&run, "k"), first.clone())).await;
    refused("open, and not there", early, open(&run, "k"))?;
    same("no record", store.calls(&run).await.map_err(text)?, vec![])?;
    t.commit(change(fresh(&run, "k"), first.clone())).await?;
    let again = store
        .commit(change(fresh(&run, "k"), call(&run, "k", 2)))
        .await;
    refused("fresh no more", again, fresh(&run, "k"))?;
    let ended = done(first, "1");
    t.commit(change(open(&run, "k"), ended.clone())).await?;
    let late = store
        .commit(change(open(&run, "k"), call(&run, "k", 9)))
        .await;
    refused("open no more", late, open(&run, "k"))?;
    same(
        "the record",
        store.calls(&run).await.map_err(text)?,
        vec![ended],
    )?;
    let counted = store.counters(&run).await.map_err(text)?;
    same(
        "counted",
        counted,
        BTreeMap::from([("calls".to_owned(), 2)]),
    )
}

pub(super) async fn at_version(t: Scene) -> Checked {
    let (store, run) = (t.store()?, t.run("1"));
    let row = action(&run, "order:1", "{}")?;
    let put = |guards: Vec<Guard>, row: &ActionRow| Change {
        guards,
        actions: vec![row.clone()],
        ..Change::default()
    };
    let missing = store.commit(put(vec![at(&row)], &row)).await;
    refused("not there", missing, at(&row))?;
    t.commit(put(vec![], &row)).await?;
    let second = next(&row);
    let early = store.commit(put(vec![at(&second)], &second)).await;
    refused("a later version", early, at(&second))?;
    t.commit(put(vec![at(&row)], &second)).await?;
    let late = store.commit(put(vec![at(&row)], &row)).await;
    refused("an older version", late, at(&row))?;
    let found = store.actions(Find::Id(row.id())).await.map_err(text)?;
    same("the row", found, vec![second])
}

pub(super) async fn what_is_given_back_is_there_again(t: Scene) -> Checked {
    let (store, run) = (t.store()?, t.run("1"));
    let take = |by| Change {
        guards: vec![Guard::Most {
            run: run.clone(),
            counter: "cents".to_owned(),
            most: 10,
        }],
        add: vec![add(&run, "cents", by)],
        ..Change::default()
    };
    let give = |counter: &str, by| Change {
        give_back: vec![add(&run, counter, by)],
        ..Change::default()
    };
    t.commit(take(10)).await?;
    let full = store.commit(take(1)).await;
    refused("no room", full, take(1).guards.remove(0))?;
    t.commit(give("cents", 4)).await?;
    t.commit(take(4)).await?;
    // Never below nothing, and what was never counted stays so.
    t.commit(give("cents", 11)).await?;
    t.commit(give("others", 1)).await?;
    t.commit(take(10)).await?;
    let counted = store.counters(&run).await.map_err(text)?;
    same(
        "counted",
        counted,
        BTreeMap::from([("cents".to_owned(), 10)]),
    )
}

pub(super) async fn most_counts_what_is_added(t: Scene) -> Checked {
    let (store, run, other) = (t.store()?, t.run("1"), t.run("2"));
    let most = |most| Guard::Most {
        run: run.clone(),
        counter: "cents".to_owned(),
        most,
    };
    let change = |limit, adds: &[u64]| Change {
        guards: vec![most(limit)],
        // The last two are others' business.
        add: adds
            .iter()
            .map(|by| add(&run, "cents", *by))
            .chain([add(&run, "tokens", 1000), add(&other, "cents", 1000)])
            .collect(),
        ..Change::default()
    };
    refused(
        "over at once",
        store.commit(change(9, &[10])).await,
        most(9),
    )?;
    t.commit(change(10, &[4, 6])).await?;
    t.commit(change(10, &[])).await?;
    refused("full", store.commit(change(10, &[1])).await, most(10))?;
    refused(
        "too far",
        store.commit(change(10, &[u64::MAX])).await,
        most(10),
    )?;
    refused("lowered", store.commit(change(9, &[])).await, most(9))?;
    let counted = store.counters(&run).await.map_err(text)?;
    same("counted", counted.get("cents"), Some(&10))
}

pub(super) async fn clock(t: Scene) -> Checked {
    const MINUTE: u64 = 60_000;
    let (store, run) = (t.store()?, t.run("1"));
    let now_ms = store.now_ms().await.map_err(text)?;
    let change = |at_ms| Change {
        guards: vec![Guard::Before { at_ms }],
        add: vec![add(&run, "n", 1)],
        ..Change::default()
    };
    t.commit(change(now_ms + 5 * MINUTE)).await?;
    t.commit(change(u64::MAX)).await?;
    for at_ms in [0, now_ms.saturating_sub(MINUTE)] {
        let late = store.commit(change(at_ms)).await;
        refused("over", late, Guard::Before { at_ms })?;
    }
    let counted = store.counters(&run).await.map_err(text)?;
    same("counted", counted.get("n"), Some(&2))
}

/// Every kind of write, and what is there before it.
struct Everything {
    row: ActionRow,
    gone: Wake,
    off: Kill,
    change: Change,
}

fn everything(t: &Scene, n: usize) -> Result<Everything, String> {
    let run = t.run(&n.to_string());
    let row = action(&run, "order:1", "{}")?;
    let gone = wake(&row, "gone", 5);
    let off = t.kill(&format!("off {n}"));
    let second = next(&row);
    let change = Change {
        guards: Vec::new(),
        calls: vec![call(&run, "new", 2)],
        add: vec![add(&run, "n", 1)],
        give_back: vec![add(&run, "given", 3)],
        wake: vec![wake(&second, "key", 6)],
        woken: vec![gone.clone()],
        kill: vec![t.kill(&format!("on {n}"))],
        unkill: vec![off.scope.clone()],
        audit: vec![t.draft(n)],
        actions: vec![second],
        erase: vec![Erase {
            tenant: run.tenant.clone(),
            // Each round adds two entries.
            seq: 2 * n as u64 + 1,
        }],
    };
    Ok(Everything {
        row,
        gone,
        off,
        change,
    })
}

impl Everything {
    /// What there is of it.
    async fn seen(&self, t: &Scene) -> Result<[usize; 9], String> {
        let (store, run) = (t.store()?, &self.row.action.said.run);
        let calls = store.calls(run).await.map_err(text)?.len();
        let counted = store.counters(run).await.map_err(text)?;
        let find = Find::Id(self.row.id());
        let rows = store.actions(find).await.map_err(text)?;
        let version = rows.first().map_or(0, |row| row.version);
        let wakes = store.wakes(usize::MAX).await.map_err(text)?;
        let has = |key: &str| wakes.iter().any(|wake| wake.run == *run && wake.key == key);
        let kills = store.kills().await.map_err(text)?;
        let on = |kill: &Kill| kills.contains(kill);
        let audit = store.audit(&run.tenant, 0, usize::MAX).await;
        let audit = audit.map_err(text)?;
        Ok([
            calls,
            counted.get("n").copied().unwrap_or(0) as usize,
            counted.get("given").copied().unwrap_or(0) as usize,
            version as usize,
            usize::from(has("gone")) + 2 * usize::from(has("key")),
            usize::from(on(&self.off)),
            usize::from(self.change.kill.iter().all(on)),
            audit.len(),
            usize::from(audit.iter().any(|entry| entry.detail.is_some())),
        ])
    }
}

pub(super) async fn all_or_nothing(t: Scene) -> Checked {
    let store = t.store()?;
    let (now_ms, switch) = (store.now_ms().await.map_err(text)?, t.kill("the switch"));
    t.commit(Change {
        kill: vec![switch.clone()],
        ..Change::default()
    })
    .await?;
    for n in 0..6 {
        let every = everything(&t, n)?;
        let (row, run) = (&every.row, every.row.action.said.run.clone());
        t.commit(Change {
            calls: vec![call(&run, "old", 1)],
            add: vec![add(&run, "given", 5)],
            actions: vec![row.clone()],
            wake: vec![every.gone.clone()],
            kill: vec![every.off.clone()],
            audit: vec![detailed(&run.tenant, n, "why")],
            ..Change::default()
        })
        .await?;
        let most = |most| Guard::Most {
            run: run.clone(),
            counter: "n".to_owned(),
            most,
        };
        let alive = |scope: &str| Guard::Alive {
            scopes: vec![format!("{scope} and none"), scope.to_owned()],
        };
        let guards = [
            (fresh(&run, "old"), fresh(&run, "new")),
            (open(&run, "new"), open(&run, "old")),
            (at(&next(row)), at(row)),
            (most(0), most(1)),
            (alive(&switch.scope), alive("tool:nobody")),
            (
                Guard::Before { at_ms: 1 },
                Guard::Before {
                    at_ms: now_ms + 600_000,
                },
            ),
        ];
        let Some((fails, holds)) = guards.get(n).cloned() else {
            return Err("a guard is not tried".to_owned());
        };
        let change = |guard: Guard| Change {
            guards: vec![guard],
            ..every.change.clone()
        };
        let before = every.seen(&t).await?;
        same("before", before, [1, 0, 5, 1, 1, 1, 0, 2 * n + 1, 1])?;
        let stopped = store.commit(change(fails.clone())).await;
        refused("one guard does not hold", stopped, fails)?;
        same("nothing is written", every.seen(&t).await?, before)?;
        t.commit(change(holds)).await?;
        same(
            "all is written",
            every.seen(&t).await?,
            [2, 1, 2, 2, 2, 0, 1, 2 * n + 2, 0],
        )?;
        let kills = every.change.kill.iter().map(|kill| kill.scope.clone());
        t.commit(Change {
            unkill: kills.collect(),
            woken: every.change.wake.clone(),
            ..Change::default()
        })
        .await?;
    }
    t.commit(Change {
        unkill: vec![switch.scope],
        ..Change::default()
    })
    .await
}

pub(super) async fn first_guard(t: Scene) -> Checked {
    let (store, run) = (t.store()?, t.run("1"));
    t.commit(Change {
        calls: vec![call(&run, "k", 1)],
        ..Change::default()
    })
    .await?;
    let row = action(&run, "order:1", "{}")?;
    let guards = [
        open(&run, "k"),
        fresh(&run, "new"),
        at(&row),
        fresh(&run, "k"),
        Guard::Before { at_ms: 1 },
    ];
    let done = store
        .commit(Change {
            guards: guards.to_vec(),
            calls: vec![call(&run, "new", 2)],
            ..Change::default()
        })
        .await;
    refused("the third", done, at(&row))?;
    let found = store.calls(&run).await.map_err(text)?;
    same("the records", found, vec![call(&run, "k", 1)])
}
