//! Many at the same time, from all handles there are.

use super::Checked;
use super::scene::{Scene, action, add, at, call, chained, draft, fresh, next, same, text};
use crate::action::{ActionRow, Ended, Signer};
use crate::store::{Change, Find, Guard, StoreError};
use futures::future::join_all;
use std::collections::BTreeMap;

/// Makes changes at the same time, each from the next handle.
async fn at_once(t: &Scene, changes: Vec<Change>) -> Result<Vec<Result<(), StoreError>>, String> {
    let mut tasks = Vec::new();
    for (n, change) in changes.into_iter().enumerate() {
        let store = t.handle(n)?;
        tasks.push(tokio::spawn(async move { store.commit(change).await }));
    }
    let ended = join_all(tasks).await.into_iter();
    ended.map(|done| done.map_err(|e| e.to_string())).collect()
}

/// How many were made; an error other than a refusal is one.
fn made(done: Vec<Result<(), StoreError>>) -> Result<usize, String> {
    let mut made = 0;
    for done in done {
        match done {
            Ok(()) => made += 1,
            Err(StoreError::Refused(_)) => {}
            Err(error) => return Err(text(error)),
        }
    }
    Ok(made)
}

pub(super) async fn one_first(t: Scene) -> Checked {
    let run = t.run("1");
    let change = |n: u64| {
        let key = format!("{}", n % 4);
        Change {
            guards: vec![fresh(&run, &key)],
            calls: vec![call(&run, &key, n)],
            add: vec![add(&run, "won", 1)],
            ..Change::default()
        }
    };
    let done = at_once(&t, (0..40).map(change).collect()).await?;
    same("how many were first", made(done)?, 4)?;
    let store = t.store()?;
    let counted = store.counters(&run).await.map_err(text)?;
    same("counted", counted, BTreeMap::from([("won".to_owned(), 4)]))?;
    let records = store.calls(&run).await.map_err(text)?;
    same("the records", records.len(), 4)
}

pub(super) async fn one_winner(t: Scene) -> Checked {
    let run = t.run("1");
    for round in 0..20 {
        let row = action(&run, &format!("order:{round}"), "{}")?;
        t.commit(Change {
            actions: vec![row.clone()],
            ..Change::default()
        })
        .await?;
        let change = |n: usize| {
            let won = ActionRow {
                ended: Some(Ended {
                    by: Signer::Clock,
                    why: n.to_string(),
                    at_ms: 1,
                }),
                ..next(&row)
            };
            Change {
                guards: vec![at(&row)],
                actions: vec![won],
                audit: vec![t.draft(n)],
                ..Change::default()
            }
        };
        let done = at_once(&t, (0..32).map(change).collect()).await?;
        let winner = done.iter().position(Result::is_ok);
        same("how many won", made(done)?, 1)?;
        let found = t.store()?.actions(Find::Id(row.id())).await.map_err(text)?;
        let why = found.first().and_then(|row| row.ended.clone());
        let why = why.map(|ended| ended.why);
        same("whose row it is", why, winner.map(|n| n.to_string()))?;
    }
    let audit = t.store()?.audit(&run.tenant, 0, usize::MAX).await;
    same("the audit", audit.map_err(text)?.len(), 20)
}

pub(super) async fn never_over(t: Scene) -> Checked {
    let (day, most) = (t.run("day"), 100);
    let change = |n: usize| {
        // Each from a run of its own, on a thread of its own: only the counter is the same.
        let mut run = (*t.run(&n.to_string())).clone();
        run.thread = format!("{} {n}", t.tag);
        let run = std::sync::Arc::new(run);
        Change {
            guards: vec![Guard::Most {
                run: day.clone(),
                counter: "cents".to_owned(),
                most,
            }],
            calls: vec![call(&run, "k", 1)],
            add: vec![add(&day, "cents", 1), add(&day, "cents", 2)],
            ..Change::default()
        }
    };
    let done = at_once(&t, (0..64).map(change).collect()).await?;
    same("how many passed", made(done)?, 33)?;
    let counted = t.store()?.counters(&day).await.map_err(text)?;
    same(
        "counted",
        counted,
        BTreeMap::from([("cents".to_owned(), 99)]),
    )
}

/// Claims until one is refused.
async fn claims(t: &Scene, n: usize, scope: &str) -> Checked {
    let (store, run) = (t.handle(n)?, t.run(&n.to_string()));
    for _ in 0..10_000 {
        let claim = Change {
            guards: vec![Guard::Alive {
                scopes: vec![scope.to_owned()],
            }],
            add: vec![add(&run, "sent", 1)],
            ..Change::default()
        };
        match store.commit(claim).await {
            Ok(()) => {}
            Err(StoreError::Refused(_)) => return Ok(()),
            Err(error) => return Err(text(error)),
        }
    }
    Err("the kill is never seen".to_owned())
}

async fn sent(t: &Scene) -> Result<u64, String> {
    let mut sum = 0;
    for n in 0..CLAIMERS {
        let counted = t.store()?.counters(&t.run(&n.to_string())).await;
        sum += counted.map_err(text)?.get("sent").copied().unwrap_or(0);
    }
    Ok(sum)
}

const CLAIMERS: usize = 3;

pub(super) async fn kill_wins(t: Scene) -> Checked {
    for round in 0..200 {
        let kill = t.kill("all");
        let tasks = (0..CLAIMERS).map(|n| {
            let (t, scope) = (t.clone(), kill.scope.clone());
            tokio::spawn(async move { claims(&t, n, &scope).await })
        });
        let tasks: Vec<_> = tasks.collect();
        let killer = t.handle(round + 1)?;
        let change = Change {
            kill: vec![kill.clone()],
            ..Change::default()
        };
        killer.commit(change).await.map_err(text)?;
        let at_kill = sent(&t).await?;
        for ended in join_all(tasks).await {
            ended.map_err(|e| e.to_string())??;
        }
        same("what was sent after the kill", sent(&t).await? - at_kill, 0)?;
        t.commit(Change {
            unkill: vec![kill.scope],
            ..Change::default()
        })
        .await?;
    }
    Ok(())
}

pub(super) async fn audit_gapless(t: Scene) -> Checked {
    let run = t.run("1");
    let tenants = [run.tenant.clone(), format!("{} 2", run.tenant)];
    let mut tasks = Vec::new();
    for n in 0..16 {
        let (t, store, tenants) = (t.clone(), t.handle(n)?, tenants.clone());
        tasks.push(tokio::spawn(async move {
            let run = t.run(&n.to_string());
            for i in 0..10 {
                // Now to one tenant, now to both, in either order; and now and then a change that is refused.
                let [a, b] = &tenants;
                let of = |tenant: &String| draft(tenant, n * 100 + i);
                let audit = match (n + i) % 3 {
                    0 => vec![of(a), of(b)],
                    1 => vec![of(b), of(a)],
                    _ => vec![of(a)],
                };
                let refused = Change {
                    guards: vec![Guard::Before { at_ms: 1 }],
                    audit: audit.clone(),
                    ..Change::default()
                };
                if i % 4 == 0 && store.commit(refused).await.is_ok() {
                    return Err("a guard did not hold, and the change was made".to_owned());
                }
                let change = Change {
                    add: vec![add(&run, "n", 1)],
                    audit,
                    ..Change::default()
                };
                store.commit(change).await.map_err(text)?;
            }
            Ok(())
        }));
    }
    for ended in join_all(tasks).await {
        ended.map_err(|e| e.to_string())??;
    }
    for (tenant, count) in tenants.iter().zip([160, 107]) {
        let chain = t.store()?.audit(tenant, 0, usize::MAX).await;
        let chain = chain.map_err(text)?;
        let mut numbers = chained(tenant, &chain)?;
        numbers.sort_unstable();
        numbers.dedup();
        same(
            "how many, each once",
            (chain.len(), numbers.len()),
            (count, count),
        )?;
    }
    Ok(())
}

pub(super) async fn no_deadlock(t: Scene) -> Checked {
    let rows = [
        action(&t.run("1"), "order:1", "{}")?,
        action(&t.run("2"), "order:2", "{}")?,
    ];
    t.commit(Change {
        actions: rows.to_vec(),
        ..Change::default()
    })
    .await?;
    let [a, b] = &rows;
    let change = |n: usize| {
        let order = match n % 2 {
            0 => [a, b],
            _ => [b, a],
        };
        let told = |row: &&ActionRow| draft(&format!("{} {}", t.tag, row.action.said.run.run), n);
        let own = |row: &&ActionRow| {
            let mut run = (*row.action.said.run).clone();
            run.thread = format!("{} {}", t.tag, run.run);
            std::sync::Arc::new(run)
        };
        Change {
            guards: vec![Guard::Alive {
                scopes: vec![t.kill("none").scope],
            }],
            calls: order.iter().map(|row| call(&own(row), "k", 1)).collect(),
            add: order.iter().map(|row| add(&own(row), "n", 1)).collect(),
            actions: order.iter().map(|row| (*row).clone()).collect(),
            audit: order.iter().map(told).collect(),
            kill: if n.is_multiple_of(8) {
                vec![t.kill("some")]
            } else {
                vec![]
            },
            ..Change::default()
        }
    };
    let done = at_once(&t, (0..48).map(change).collect()).await?;
    same("how many were made", made(done)?, 48)?;
    t.commit(Change {
        unkill: vec![t.kill("some").scope],
        ..Change::default()
    })
    .await
}
