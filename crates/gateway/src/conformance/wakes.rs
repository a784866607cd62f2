//! Whom to wake.

use super::Checked;
use super::scene::{Scene, action, next, same, text, wake};
use crate::store::{Change, Wake};

async fn of(t: &Scene) -> Result<Vec<Wake>, String> {
    let all = t.store()?.wakes(usize::MAX).await.map_err(text)?;
    let ours = all.into_iter().filter(|wake| wake.run.thread == t.tag);
    Ok(ours.collect())
}

fn woken(wakes: Vec<Wake>) -> Change {
    Change {
        woken: wakes,
        ..Change::default()
    }
}

pub(super) async fn one_wake(t: Scene) -> Checked {
    let row = action(&t.run("1"), "order:1", "{}")?;
    let changed = next(&row);
    let (old, new) = (wake(&row, "k", 7), wake(&changed, "k", 7));
    let other = wake(&row, "other", 7);
    t.commit(Change {
        wake: vec![old.clone(), other.clone(), new.clone()],
        ..Change::default()
    })
    .await?;
    let mut seen = of(&t).await?;
    seen.sort();
    let mut both = vec![new.clone(), other.clone()];
    both.sort();
    same("the newest of each", seen, both.clone())?;
    let elsewhere = Wake {
        run: t.run("2"),
        ..new.clone()
    };
    let later = Wake {
        due_ms: 8,
        ..new.clone()
    };
    let about = Wake {
        action: action(&t.run("1"), "order:1", "{}")?.id(),
        ..new.clone()
    };
    t.commit(woken(vec![old.clone(), elsewhere, later.clone(), about]))
        .await?;
    let mut seen = of(&t).await?;
    seen.sort();
    same("others are not it", seen, both)?;
    t.commit(woken(vec![new.clone()])).await?;
    same("the same one", of(&t).await?, vec![other.clone()])?;
    // What is removed is what was there before the change.
    t.commit(Change {
        wake: vec![other.clone()],
        ..woken(vec![other.clone()])
    })
    .await?;
    same("removed, and put anew", of(&t).await?, vec![other.clone()])?;
    t.commit(woken(vec![other])).await?;
    same("none", of(&t).await?, vec![])
}

pub(super) async fn wakes_in_order(t: Scene) -> Checked {
    let store = t.store()?;
    let row = action(&t.run("1"), "order:1", "{}")?;
    let wakes: Vec<Wake> = [3, 1_900_000_000_000, 0, 5, 4, 1, 2]
        .into_iter()
        .map(|due_ms| wake(&row, &format!("k{due_ms}"), due_ms))
        .collect();
    t.commit(Change {
        wake: wakes.clone(),
        ..Change::default()
    })
    .await?;
    let mut expected = wakes.clone();
    expected.sort_by_key(|wake| wake.due_ms);
    same("ours", of(&t).await?, expected)?;
    let all = store.wakes(usize::MAX).await.map_err(text)?;
    same("in order", all.is_sorted_by_key(|wake| wake.due_ms), true)?;
    for limit in [0, 1, 4] {
        let some = store.wakes(limit).await.map_err(text)?;
        let first: Vec<Wake> = all.iter().take(limit).cloned().collect();
        same("the first", some, first)?;
    }
    t.commit(woken(wakes)).await
}
