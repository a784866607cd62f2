//! Data that is long, or strange, or looks like something else.

use super::Checked;
use super::scene::{Scene, action, add, call, chained, detailed, draft, fresh, same, text, wake};
use crate::action::{ActionRow, Ended, Signer};
use crate::record::RunRef;
use crate::store::{Change, Find, Kill};
use std::sync::Arc;

pub(super) async fn long_arguments(t: Scene) -> Checked {
    let store = t.store()?;
    let args = format!("{{\"text\":\"{}\"}}", "0123456789abcdeé".repeat(1 << 16));
    let row = action(&t.run("1"), "order:1", &args)?;
    let mut record = call(&t.run("1"), "k", 1);
    record.arguments = args;
    record.action = Some(row.id());
    t.commit(Change {
        calls: vec![record.clone()],
        actions: vec![row.clone()],
        ..Change::default()
    })
    .await?;
    let found = store.actions(Find::Id(row.id())).await.map_err(text)?;
    let is_it = found.first() == Some(&row) && found.len() == 1;
    same("the action", is_it, true)?;
    let intact = found.iter().all(|row| row.action.is_intact(&row.digest));
    same("its bytes", intact, true)?;
    let records = store.calls(&t.run("1")).await.map_err(text)?;
    same("the record", records == [record], true)
}

/// All characters there are.
fn characters() -> String {
    ('\0'..=char::MAX).collect()
}

pub(super) async fn any_text(t: Scene) -> Checked {
    let (store, all) = (t.store()?, characters());
    let some: String = all.chars().take(3000).collect();
    let odd: String = all
        .chars()
        .take(160)
        .chain("\u{202e}\u{feff}\u{10ffff}😀".chars())
        .collect();
    for (n, words) in [&some, &all].into_iter().enumerate() {
        let run = Arc::new(RunRef {
            tenant: format!("{} {n} {odd}", t.tag),
            agent: odd.clone(),
            thread: format!("{} {odd}", t.tag),
            run: odd.clone(),
        });
        let row = ActionRow {
            ended: Some(Ended {
                by: Signer::Clock,
                why: words.clone(),
                at_ms: 1,
            }),
            receipt: Some(words.clone()),
            // What is signed is not that long.
            ..action(&run, &some, "{}")?
        };
        let kill = Kill {
            scope: format!("tool:{} {odd}", t.tag),
            by: words.clone(),
            reason: words.clone(),
            at_ms: 1,
        };
        let woken = wake(&row, &odd, 3);
        t.commit(Change {
            guards: vec![fresh(&run, &odd)],
            calls: vec![call(&run, &odd, 1)],
            add: vec![add(&run, &odd, 1)],
            actions: vec![row.clone()],
            wake: vec![woken.clone()],
            kill: vec![kill.clone()],
            audit: vec![detailed(&run.tenant, n, words)],
            ..Change::default()
        })
        .await?;
        let find = Find::Subject {
            tenant: &run.tenant,
            thread: &run.thread,
            subject: &some,
        };
        let found = store.actions(find).await.map_err(text)?;
        same("the action", found == [row], true)?;
        let kills = store.kills().await.map_err(text)?;
        same("the switch", kills.contains(&kill), true)?;
        let wakes = store.wakes(usize::MAX).await.map_err(text)?;
        same("the wake", wakes.contains(&woken), true)?;
        let audit = store.audit(&run.tenant, 0, 9).await.map_err(text)?;
        let has = audit.iter().all(|entry| entry.detail.is_some());
        let numbers = chained(&run.tenant, &audit)?;
        same("the detail", (has, numbers), (true, vec![n as u64]))?;
        let counted = store.counters(&run).await.map_err(text)?;
        same("the counter", counted.get(&odd), Some(&1))?;
        t.commit(Change {
            woken: vec![woken],
            unkill: vec![kill.scope],
            ..Change::default()
        })
        .await?;
    }
    Ok(())
}

pub(super) async fn sql_names(t: Scene) -> Checked {
    let store = t.store()?;
    for (n, name) in [
        "'; DROP TABLE gateway_action; --",
        "\" OR \"1\"=\"1",
        "$1",
        "?1",
        "%",
        "_",
        "\\",
        "a'||'b",
        "NULL",
    ]
    .into_iter()
    .enumerate()
    {
        let run = Arc::new(RunRef {
            tenant: format!("{} {name}", t.tag),
            agent: name.to_owned(),
            thread: format!("{} {name}", t.tag),
            run: name.to_owned(),
        });
        let row = action(&run, name, &format!("{{\"n\":{n}}}"))?;
        let (woken, kill) = (wake(&row, name, 3), t.kill(name));
        t.commit(Change {
            guards: vec![fresh(&run, name)],
            calls: vec![call(&run, name, 1)],
            add: vec![add(&run, name, 1)],
            actions: vec![row.clone()],
            wake: vec![woken.clone()],
            kill: vec![kill.clone()],
            audit: vec![draft(&run.tenant, n)],
            ..Change::default()
        })
        .await?;
        let find = Find::Subject {
            tenant: &run.tenant,
            thread: &run.thread,
            subject: name,
        };
        same(
            "the action",
            store.actions(find).await.map_err(text)?,
            vec![row],
        )?;
        let records = store.calls(&run).await.map_err(text)?;
        same("the record", records, vec![call(&run, name, 1)])?;
        let audit = store.audit(&run.tenant, 0, 9).await.map_err(text)?;
        same("the audit", audit.len(), 1)?;
        t.commit(Change {
            woken: vec![woken],
            unkill: vec![kill.scope],
            ..Change::default()
        })
        .await?;
    }
    Ok(())
}
