//! Actions: where they are found, and in which order.

use super::Checked;
use super::scene::{Scene, action, add, call, draft, fresh, next, same, text};
use crate::action::{ActionId, ActionRow, State};
use crate::record::RunRef;
use crate::store::{Change, Find};
use std::sync::Arc;

fn put(rows: &[ActionRow]) -> Change {
    Change {
        actions: rows.to_vec(),
        ..Change::default()
    }
}

pub(super) async fn actions_found(t: Scene) -> Checked {
    let store = t.store()?;
    let (one, two) = (t.run("1"), t.run("2"));
    let rows = [
        action(&one, "order:1", r#"{"cents":1}"#)?,
        action(&two, "order:1", r#"{"cents":2}"#)?,
        action(&one, "order:2", r#"{"cents":3}"#)?,
        action(&one, "order:1", r#"{"cents":4}"#)?,
        action(&one, "", "{}")?,
    ];
    let [a, b, c, d, e] = &rows;
    // Written in another order than they were made.
    t.commit(put(&[d.clone(), a.clone(), e.clone()])).await?;
    t.commit(put(&[c.clone(), b.clone()])).await?;
    for row in &rows {
        let found = store.actions(Find::Id(row.id())).await.map_err(text)?;
        same("by id", found, vec![row.clone()])?;
    }
    let other = action(&one, "order:1", "{}")?;
    let found = store.actions(Find::Id(other.id())).await.map_err(text)?;
    same("by an id that is not there", found, vec![])?;
    let of_run = store.actions(Find::Run(&one)).await.map_err(text)?;
    let expected = vec![a.clone(), c.clone(), d.clone(), e.clone()];
    same("by run", of_run, expected)?;
    for (subject, expected) in [
        ("order:1", vec![a, b, d]),
        ("order:2", vec![c]),
        ("", vec![e]),
        ("order:", vec![]),
    ] {
        let find = Find::Subject {
            tenant: &one.tenant,
            thread: &one.thread,
            subject,
        };
        let found = store.actions(find).await.map_err(text)?;
        let expected: Vec<ActionRow> = expected.into_iter().cloned().collect();
        same("by subject", found, expected)?;
    }
    let changed = next(a);
    t.commit(put(std::slice::from_ref(&changed))).await?;
    let found = store.actions(Find::Id(a.id())).await.map_err(text)?;
    same("replaced", found, vec![changed])
}

pub(super) async fn actions_by_state(t: Scene) -> Checked {
    let store = t.store()?;
    let run = t.run("1");
    let mut rows = Vec::new();
    for (n, state) in State::ALL.into_iter().cycle().take(30).enumerate() {
        let row = action(&run, &format!("order:{n}"), "{}")?;
        rows.push(ActionRow { state, ..row });
    }
    t.commit(put(&rows)).await?;
    let list = async |states: &[State], after: Option<ActionId>, limit: usize| {
        let find = Find::States {
            states,
            after,
            limit,
        };
        store.actions(find).await.map_err(text)
    };
    let ids = |rows: &[ActionRow]| rows.iter().map(ActionRow::id).collect::<Vec<_>>();
    let several = [State::Unknown, State::Pending, State::Held, State::Pending];
    for states in [&several[..], &State::ALL, &[State::Cancelled], &[]] {
        let all = list(states, None, usize::MAX).await?;
        same(
            "in the order of their ids",
            all.is_sorted_by_key(ActionRow::id),
            true,
        )?;
        let wanted = all.iter().all(|row| states.contains(&row.state));
        same("in these states", wanted, true)?;
        let ours: Vec<_> = all
            .iter()
            .filter(|row| row.action.said.run == run)
            .collect();
        let expected: Vec<_> = rows
            .iter()
            .filter(|row| states.contains(&row.state))
            .collect();
        same("all of them", ours, expected)?;
        let mut paged = Vec::new();
        let mut after = None;
        loop {
            let page = list(states, after, 7).await?;
            same("a page", page.len() <= 7, true)?;
            let Some(last) = page.last() else { break };
            after = Some(last.id());
            paged.extend(page);
        }
        same("page by page", ids(&paged), ids(&all))?;
        same("none", list(states, None, 0).await?, vec![])?;
    }
    // Who leaves a state is not found in it any more.
    let over: Vec<_> = rows
        .into_iter()
        .map(|row| ActionRow {
            state: State::Failed,
            ..next(&row)
        })
        .collect();
    t.commit(put(&over)).await?;
    let open = list(&[State::Pending, State::Held], None, usize::MAX).await?;
    let ours = open.iter().filter(|row| row.action.said.run == run);
    same("none is left", ours.count(), 0)
}

pub(super) async fn tenants_apart(t: Scene) -> Checked {
    let store = t.store()?;
    let mine = t.run("1");
    let theirs = Arc::new(RunRef {
        tenant: format!("{} 2", mine.tenant),
        ..(*mine).clone()
    });
    let mut rows = Vec::new();
    for run in [&mine, &theirs] {
        let row = action(run, "order:1", "{}")?;
        t.commit(Change {
            guards: vec![fresh(run, "k")],
            calls: vec![call(run, "k", 1)],
            add: vec![add(run, "n", 1)],
            audit: vec![draft(&run.tenant, 1)],
            ..put(std::slice::from_ref(&row))
        })
        .await?;
        rows.push(row);
    }
    for (run, row) in [&mine, &theirs].into_iter().zip(rows) {
        let found = store.actions(Find::Run(run)).await.map_err(text)?;
        same("of the run", found, vec![row.clone()])?;
        let find = Find::Subject {
            tenant: &run.tenant,
            thread: &run.thread,
            subject: "order:1",
        };
        let found = store.actions(find).await.map_err(text)?;
        same("about the subject", found, vec![row])?;
        let audit = store.audit(&run.tenant, 0, 10).await.map_err(text)?;
        let seqs: Vec<u64> = audit.iter().map(|entry| entry.seq).collect();
        same("the audit", seqs, vec![1])?;
        let counted = store.counters(run).await.map_err(text)?;
        same("counted", counted.get("n"), Some(&1))?;
    }
    Ok(())
}
