//! The audit: one chain for each tenant.

use super::Checked;
use super::scene::{Scene, add, chained, detailed, draft, fresh, refused, same, text};
use crate::store::{Change, Erase, Guard};

pub(super) async fn audit_follows(t: Scene) -> Checked {
    let (store, run) = (t.store()?, t.run("1"));
    let read = async || store.audit(&run.tenant, 0, usize::MAX).await.map_err(text);
    same("none yet", read().await?, vec![])?;
    let change = |drafts: &[usize], guards: Vec<Guard>| Change {
        guards,
        audit: drafts.iter().map(|n| t.draft(*n)).collect(),
        ..Change::default()
    };
    t.commit(change(&[1, 2], vec![])).await?;
    let late = Guard::Before { at_ms: 1 };
    let done = store.commit(change(&[8, 9], vec![late.clone()])).await;
    refused("a change that is not made", done, late)?;
    t.commit(change(&[3], vec![fresh(&run, "k")])).await?;
    t.commit(Change {
        add: vec![add(&run, "n", 1)],
        ..change(&[4, 5, 6], vec![])
    })
    .await?;
    let entries = read().await?;
    let numbers = chained(&run.tenant, &entries)?;
    same("what they say", numbers, vec![1, 2, 3, 4, 5, 6])
}

pub(super) async fn audit_pages(t: Scene) -> Checked {
    let store = t.store()?;
    let tenant = t.run("").tenant.clone();
    let why = |n: usize| (n.is_multiple_of(3)).then(|| format!("ann {n} \u{e9}\0"));
    let drafts = (0..10).map(|n| match why(n) {
        Some(why) => detailed(&tenant, n, &why),
        None => t.draft(n),
    });
    t.commit(Change {
        audit: drafts.collect(),
        ..Change::default()
    })
    .await?;
    let all = store.audit(&tenant, 0, 100).await.map_err(text)?;
    let numbers = chained(&tenant, &all)?;
    same("the numbers", numbers, (0..10).collect())?;
    // That each is the one that was written, the chain shows; here, that each is where it belongs.
    let has: Vec<bool> = all.iter().map(|entry| entry.detail.is_some()).collect();
    let should = (0..10).map(|n| why(n).is_some()).collect();
    same("the details", has, should)?;
    for (after, limit) in [(0, 3), (3, 4), (9, 5), (10, 5), (0, 0), (u64::MAX, 1)] {
        let page = store.audit(&tenant, after, limit).await.map_err(text)?;
        let behind = all.iter().filter(|entry| entry.seq > after).take(limit);
        same("a page", page, behind.cloned().collect())?;
    }
    let other = store.audit(&t.tag, 0, 10).await.map_err(text)?;
    same("of nobody", other, vec![])
}

pub(super) async fn erased(t: Scene) -> Checked {
    let store = t.store()?;
    let (mine, other) = (t.run("").tenant.clone(), format!("{} 2", t.tag));
    let drafts = |tenant: &str| (1..5).map(|n| detailed(tenant, n, "ann")).collect();
    for tenant in [&mine, &other] {
        t.commit(Change {
            audit: drafts(tenant),
            ..Change::default()
        })
        .await?;
    }
    let erase = |seq| Erase {
        tenant: mine.clone(),
        seq,
    };
    // In the same change in which it is told that it was done. What is not there is erased already.
    for _ in 0..2 {
        t.commit(Change {
            audit: vec![draft(&mine, 9)],
            erase: vec![erase(2), erase(3), erase(99)],
            ..Change::default()
        })
        .await?;
    }
    for (tenant, should) in [
        (&mine, vec![true, false, false, true, false, false]),
        (&other, vec![true; 4]),
    ] {
        let entries = store.audit(tenant, 0, 99).await.map_err(text)?;
        chained(tenant, &entries)?;
        let left = entries.iter().map(|entry| entry.detail.is_some());
        same("the details that are left", left.collect(), should)?;
    }
    Ok(())
}
