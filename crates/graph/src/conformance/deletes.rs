//! The rules about what is removed whole: threads, and what runs wrote.

use super::{
    Checked,
    copies::{SPACES, reads, scenery},
    is_conflict,
    scene::{self, fails, same, text},
    stage::{Stage, View, entry, machine, whats},
};
use crate::{
    CheckpointId, Error, HistoryQuery, LogQuery, PatchKind, RunId, RunStatus, Standing,
    ThreadStatus,
};
use serde_json::{Map, json};

pub(super) async fn deleted(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    scenery(&t, run).await?;
    t.finish(t.end(run, RunStatus::Success)).await?;
    drop(lease);
    let neighbour = t.on_thread(&format!("{} 2", t.name()));
    scenery(&neighbour, RunId::fresh()).await?;
    let before = reads(&neighbour).await?;
    let says = json!({"secret": 1})
        .as_object()
        .cloned()
        .unwrap_or_default();
    t.threads.describe(t.name(), says).await.map_err(text)?;
    same(
        "deleted",
        t.threads.delete(t.name()).await.map_err(text)?,
        true,
    )?;
    same(
        "deleted again",
        t.threads.delete(t.name()).await.map_err(text)?,
        false,
    )?;
    same(
        "the row",
        t.threads.thread(t.name()).await.map_err(text)?,
        None,
    )?;
    same("the run", t.threads.run(run).await.map_err(text)?, None)?;
    same("the log", t.log(LogQuery::default()).await?, vec![])?;
    same(
        "sizes",
        t.threads.stats(Some(t.name())).await.map_err(text)?,
        vec![],
    )?;
    same(
        "namespaces",
        t.threads.namespaces(t.name()).await.map_err(text)?,
        vec![],
    )?;
    for namespace in SPACES {
        let t = t.within(namespace);
        same("a head", t.s.load(None).await?.map(|l| l.id), None)?;
        same(
            "a history",
            t.s.history(HistoryQuery::default()).await?,
            vec![],
        )?;
    }
    same("the neighbour", reads(&neighbour).await?, before)?;
    // Of a new thread of the name nothing is known.
    let new = t.on_thread(t.name());
    let mut put = new.put(None, None);
    put.events = vec![entry(run, "new")];
    new.s.save(put).await?;
    same("the new row", new.row().await?.metadata, Map::new())?;
    let log = whats(&new.log(LogQuery::default()).await?)?;
    same("the new log", log, vec![(1, "new".to_owned())])
}

pub(super) async fn delete_refused(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    t.s.save(t.put(None, None)).await?;
    let before = t.reads().await?;
    let is_run = |e: &Error| matches!(e, Error::Conflict { holder, .. } if *holder == Some(run));
    fails("a deletion", t.threads.delete(t.name()).await, is_run)?;
    same("the thread", t.reads().await?, before)?;
    same("the run", t.run(run).await?.live, true)?;
    t.finish(t.end(run, RunStatus::Success)).await?;
    drop(lease);
    same(
        "deleted",
        t.threads.delete(t.name()).await.map_err(text)?,
        true,
    )
}

pub(super) async fn epochs(mut t: Stage) -> Checked {
    let mut newest = 0;
    for _ in 0..3 {
        let run = RunId::fresh();
        let lease = t.begin(run).await?;
        same("whether the epoch grew", lease.epoch > newest, true)?;
        newest = lease.epoch;
        let put = t.put(None, None);
        t.s.save(put.clone()).await?;
        t.finish(t.end(run, RunStatus::Success)).await?;
        drop(lease);
        same(
            "deleted",
            t.threads.delete(t.name()).await.map_err(text)?,
            true,
        )?;
        // Whoever had the lease does not know that yet.
        let late = t.put(Some(put.id), Some(put.id));
        fails("a late put", t.s.try_put(late).await, is_conflict)?;
        let first = t.s.try_put(t.put(None, None)).await;
        fails("a late put as the first", first, is_conflict)?;
        same(
            "the thread",
            t.threads.thread(t.name()).await.map_err(text)?,
            None,
        )?;
    }
    Ok(())
}

/// A thread made anew, without a lease, under the name of one that was deleted.
pub(super) async fn made_anew(mut t: Stage) -> Checked {
    let other = format!("{} 2", t.name());
    let described = t.threads.describe(&other, Map::new()).await;
    described.map_err(text)?;
    for copies in [false, true] {
        let run = RunId::fresh();
        let lease = t.begin(run).await?;
        let epoch = t.s.epoch;
        t.s.save(t.put(None, None)).await?;
        t.finish(t.end(run, RunStatus::Success)).await?;
        drop(lease);
        t.threads.delete(t.name()).await.map_err(text)?;
        let made = match copies {
            true => t.threads.copy(&other, t.name()).await,
            false => t.threads.describe(t.name(), Map::new()).await.map(drop),
        };
        made.map_err(text)?;
        let late = t.s.try_put(t.put(None, None)).await;
        fails("a put of one who had the old thread", late, is_conflict)?;
        let late = t.threads.finish(t.name(), t.end(run, RunStatus::Error));
        fails("an end of one who had it", late.await, is_conflict)?;
        let next = RunId::fresh();
        let lease = t.begin(next).await?;
        same("whether the epoch grew", t.s.epoch > epoch, true)?;
        t.s.save(t.put(None, None)).await?;
        t.finish(t.end(next, RunStatus::Success)).await?;
        drop(lease);
        t.threads.delete(t.name()).await.map_err(text)?;
    }
    Ok(())
}

pub(super) async fn fenced_scopes(mut t: Stage) -> Checked {
    let (run, sub) = (RunId::fresh(), t.within("sub"));
    let lease = t.begin(run).await?;
    let epoch = t.s.epoch;
    t.s.save(t.put(None, None)).await?;
    t.finish(t.end(run, RunStatus::Success)).await?;
    drop(lease);
    let lease = t.begin(RunId::fresh()).await?;
    let mut late = sub.put(None, None);
    late.epoch = epoch;
    late.events = vec![entry(run, "late")];
    fails(
        "while another has the thread",
        sub.s.try_put(late.clone()).await,
        is_conflict,
    )?;
    drop(lease);
    t.s.lease_when_free(t.name(), RunId::fresh()).await?;
    fails("when nobody has it", sub.s.try_put(late).await, is_conflict)?;
    same("the scope", sub.s.load(None).await?.map(|l| l.id), None)?;
    same("the log", t.log(LogQuery::default()).await?, vec![])
}

pub(super) async fn deleted_runs(mut t: Stage) -> Checked {
    let runs = [RunId::fresh(), RunId::fresh(), RunId::fresh()];
    let mut head: Option<CheckpointId> = None;
    for run in runs {
        let lease = t.begin(run).await?;
        let line = t
            .line((run, 3), head, |i, put| {
                put.deltas = vec![scene::delta("list", PatchKind::Append, &json!([i]))];
                if i == 1 {
                    let edit = json!({"set": [[0, run.to_string()]], "append": []});
                    put.deltas = vec![scene::delta("list", PatchKind::Edit, &edit)];
                }
                put.events = vec![entry(run, &i.to_string())];
                put.machine = machine(if i == 2 { &[] } else { &["next"] });
            })
            .await?;
        head = line.last().copied();
        let sub = t.within(&format!("sub:{run}"));
        sub.s
            .save({
                let mut put = sub.put(None, None);
                put.metadata.run = run;
                put
            })
            .await?;
        let mut end = t.end(run, RunStatus::Success);
        end.standing = Some(Standing {
            values: Some(json!({"x": 1})),
            ..Standing::IDLE
        });
        t.finish(end).await?;
        drop(lease);
    }
    let before = t.reads().await?;
    // One in the middle: what came after it reads as before.
    let removed = t.threads.delete_runs(&runs[1..2]).await.map_err(text)?;
    same(
        "what was removed",
        (removed.checkpoints, removed.events),
        (4, 3),
    )?;
    let of = |runs: &[RunId]| -> Vec<View> {
        let stays = |view: &&View| runs.contains(&view.metadata.run);
        before.iter().filter(stays).cloned().collect()
    };
    same("what is left", t.reads().await?, of(&[runs[0], runs[2]]))?;
    same("the row", t.threads.run(runs[1]).await.map_err(text)?, None)?;
    let gone = t.within(&format!("sub:{}", runs[1]));
    same("its subgraph", gone.s.load(None).await?.map(|l| l.id), None)?;
    same("the head", t.row().await?.head, head)?;
    let log = t.log(LogQuery::default()).await?;
    same(
        "the log",
        log.iter().map(|l| l.seq).collect(),
        vec![1, 2, 3, 7, 8, 9],
    )?;
    // The last one: the thread stands where the one before it stood.
    t.threads.delete_runs(&runs[2..]).await.map_err(text)?;
    let left = of(&runs[..1]);
    same("what is left then", &t.reads().await?, &left)?;
    let row = t.row().await?;
    same("the head then", row.head, left.last().map(|view| view.id))?;
    same(
        "how it stands",
        (row.status, row.values),
        (ThreadStatus::Idle, None),
    )?;
    let mut put = t.put(row.head, row.head);
    put.deltas = vec![scene::delta("list", PatchKind::Append, &json!(["on"]))];
    t.s.save(put).await?;
    t.threads.delete_runs(&runs[..1]).await.map_err(text)?;
    same("how many are left", t.reads().await?.len(), 1)
}

pub(super) async fn deleted_runs_refused(mut t: Stage) -> Checked {
    let (first, second) = (RunId::fresh(), RunId::fresh());
    let lease = t.begin(first).await?;
    t.line((first, 2), None, |_, _| {}).await?;
    t.finish(t.end(first, RunStatus::Success)).await?;
    drop(lease);
    let before = t.reads().await?;
    let unknown = t.threads.delete_runs(&[first, second]).await;
    let is_it = |e: &Error| matches!(e, Error::UnknownRun(id) if *id == second);
    fails("an unknown run", unknown, is_it)?;
    same("the thread", &t.reads().await?, &before)?;
    let lease = t.begin(second).await?;
    let driven = t.threads.delete_runs(&[first, second]).await;
    fails("a run that goes on", driven, is_conflict)?;
    same("the thread then", &t.reads().await?, &before)?;
    same("the row", t.run(first).await?.status, RunStatus::Success)?;
    drop(lease);
    Ok(())
}
