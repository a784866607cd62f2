//! The rules about rows of runs: how they begin, end, wait and are cancelled.

use super::{
    Checked, is_conflict,
    scene::{fails, same, text},
    stage::{Stage, stands},
};
use crate::{
    CancelReason, Claim, Error, Lease, NewRun, RunId, RunQuery, RunRow, RunStart, RunStatus,
    ThreadStatus,
};
use serde_json::{Value, json};
use std::time::Duration;

/// What of a row does not hang on the clock.
fn said(row: &RunRow) -> (RunStatus, bool, u32, Value, Option<String>, Option<String>) {
    (
        row.status,
        row.live,
        row.attempts,
        row.arguments.clone(),
        row.strategy.clone(),
        row.error.clone(),
    )
}

pub(super) async fn begun(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let arguments = json!({"text": "hello"});
    let lease = t.begin(run).await?;
    let row = t.run(run).await?;
    same("the id", row.id, run)?;
    same("the thread", row.thread.as_str(), t.name())?;
    same("the graph", row.graph.as_str(), "a graph")?;
    let running = (RunStatus::Running, true, 1, arguments.clone(), None, None);
    same("the row", said(&row), running)?;
    let mut end = t.end(run, RunStatus::Error);
    end.error = Some("it b\u{0}roke: é".to_owned());
    end.standing = Some(stands(ThreadStatus::Error, &["a"]));
    t.finish(end).await?;
    drop(lease);
    let ended = t.run(run).await?;
    let error = Some("it b\u{0}roke: é".to_owned());
    let failed = (RunStatus::Error, false, 1, arguments.clone(), None, error);
    same("the row at the end", said(&ended), failed)?;
    // Taken up again with no arguments, it keeps those it had.
    let again = Claim {
        run,
        start: Some(RunStart {
            graph: "another graph".to_owned(),
            arguments: Value::Null,
        }),
    };
    let lease = t.threads.lease(t.name(), again).await.map_err(text)?;
    let row = t.run(run).await?;
    let running = (RunStatus::Running, true, 2, arguments, None, None);
    same("the row when it goes on", said(&row), running)?;
    same("its graph", row.graph.as_str(), "another graph")?;
    same("its beginning", row.created_ms, ended.created_ms)?;
    drop(lease);
    // The row of a run belongs to one thread.
    let other = t.on_thread(&format!("{} 2", t.name()));
    let start = Some(RunStart::default());
    let there = other
        .threads
        .lease(other.name(), Claim { run, start })
        .await;
    fails("the same run elsewhere", there, is_conflict)
}

pub(super) async fn ended(mut t: Stage) -> Checked {
    let statuses = [
        RunStatus::Success,
        RunStatus::Paused,
        RunStatus::Stopped,
        RunStatus::Error,
        RunStatus::Cancelled,
    ];
    for status in statuses {
        let run = RunId::fresh();
        let lease = t.begin(run).await?;
        let epoch = t.s.epoch;
        t.finish(t.end(run, status)).await?;
        same("the status", t.run(run).await?.status, status)?;
        // It was given back with that, though nobody has dropped it.
        let next = RunId::fresh();
        let second = t.begin(next).await?;
        let mut late = t.end(run, RunStatus::Success);
        late.epoch = epoch;
        let refused = t.threads.finish(t.name(), late).await;
        fails("an end under an old lease", refused, is_conflict)?;
        same("the status then", t.run(run).await?.status, status)?;
        drop(lease);
        same("the holder", t.row().await?.holder, Some(next))?;
        t.finish(t.end(next, RunStatus::Success)).await?;
        drop(second);
    }
    Ok(())
}

pub(super) async fn over(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    t.finish(t.end(run, RunStatus::Success)).await?;
    drop(lease);
    let before = t.run(run).await?;
    let start = Some(RunStart::default());
    let late = t.threads.lease(t.name(), Claim { run, start }).await;
    let is_over = |e: &Error| matches!(e, Error::RunOver(over) if *over == run);
    fails("taking it up again", late, is_over)?;
    same("its row", t.run(run).await?, before)?;
    same("the holder", t.row().await?.holder, None)
}

pub(super) async fn adopted(mut t: Stage) -> Checked {
    let there = RunId::fresh();
    let lease = t.begin(there).await?;
    t.finish(t.end(there, RunStatus::Paused)).await?;
    drop(lease);
    let old = t.run(there).await?;
    let row = |id: RunId, created_ms: u64| RunRow {
        thread: "elsewhere".to_owned(),
        status: RunStatus::Stopped,
        arguments: json!({"n": created_ms}),
        strategy: Some("reject".to_owned()),
        created_ms,
        updated_ms: created_ms + 5,
        attempts: 7,
        error: Some("no".to_owned()),
        ..RunRow::pending(id, "", &RunStart::default(), 0)
    };
    let (first, second) = (RunId::fresh(), RunId::fresh());
    let rows = vec![row(first, 10), row(there, 11), row(second, 12)];
    let written = t.threads.adopt(t.name(), 9, rows).await.map_err(text)?;
    same("what was written", written, vec![first, second])?;
    same("the thread's beginning", t.row().await?.created_ms, 9)?;
    for (id, created_ms) in [(first, 10), (second, 12)] {
        let expected = RunRow {
            thread: t.name().to_owned(),
            ..row(id, created_ms)
        };
        same("a row", t.run(id).await?, expected)?;
    }
    same("what was there", t.run(there).await?, old)?;
    // It goes on like any other.
    let lease = t.begin(first).await?;
    same("how often it was begun", t.run(first).await?.attempts, 8)?;
    let busy = t.threads.adopt(t.name(), 1, Vec::new()).await;
    fails("while a run drives the thread", busy, is_conflict)?;
    drop(lease);
    let new = t.on_thread(&format!("{} 2", t.name()));
    let made = new.threads.adopt(new.name(), 3, Vec::new()).await;
    same("what was written", made.map_err(text)?, vec![])?;
    same("a thread that was made", new.row().await?.created_ms, 3)
}

pub(super) async fn unwritten(t: Stage) -> Checked {
    let run = RunId::fresh();
    let lease = t.s.lease_when_free(t.name(), run).await?;
    same("the row", t.threads.run(run).await.map_err(text)?, None)?;
    let mut end = t.end(run, RunStatus::Success);
    end.epoch = lease.epoch;
    t.finish(end).await?;
    drop(lease);
    same(
        "the row at the end",
        t.threads.run(run).await.map_err(text)?,
        None,
    )
}

fn handing(t: &Stage, strategy: Option<&str>) -> NewRun {
    NewRun {
        id: RunId::fresh(),
        thread: t.name().to_owned(),
        start: RunStart {
            graph: "a graph".to_owned(),
            arguments: json!({"n": 1}),
        },
        strategy: strategy.map(str::to_owned),
    }
}

pub(super) async fn handed_in(mut t: Stage) -> Checked {
    let new = handing(&t, Some("enqueue"));
    let row = t.threads.submit(new.clone()).await.map_err(text)?;
    let strategy = Some("enqueue".to_owned());
    let waits = (
        RunStatus::Pending,
        false,
        0,
        json!({"n": 1}),
        strategy.clone(),
        None,
    );
    same("the row", said(&row), waits)?;
    same("the row as it is read", &t.run(new.id).await?, &row)?;
    same(
        "the thread",
        t.threads.thread(t.name()).await.map_err(text)?,
        None,
    )?;
    let again = t.threads.submit(new.clone()).await;
    let is_it = |e: &Error| matches!(e, Error::Conflict { holder, .. } if *holder == Some(new.id));
    fails("the same run again", again, is_it)?;
    let lease = t.begin(new.id).await?;
    let begun = t.run(new.id).await?;
    let arguments = json!({"text": "hello"});
    let runs = (RunStatus::Running, true, 1, arguments, strategy, None);
    same("the row when it runs", said(&begun), runs)?;
    same("its beginning", begun.created_ms, row.created_ms)?;
    drop(lease);
    Ok(())
}

pub(super) async fn queue(t: Stage) -> Checked {
    let mut ids = Vec::new();
    for _ in 0..4 {
        let new = handing(&t, None);
        ids.push(new.id);
        t.threads.submit(new).await.map_err(text)?;
    }
    let third = ids.get(2).copied().ok_or("no run")?;
    let cancelled = t.threads.cancel(third, CancelReason::User).await;
    cancelled.map_err(text)?;
    let list = async |status, limit, offset, oldest_first| {
        let query = RunQuery {
            thread: Some(t.name().to_owned()),
            status,
            limit,
            offset,
            oldest_first,
        };
        let rows = t.threads.runs(&query).await.map_err(text)?;
        let place = |row: &RunRow| ids.iter().position(|id| *id == row.id);
        Ok::<_, String>(rows.iter().filter_map(place).collect::<Vec<_>>())
    };
    let pending = Some(RunStatus::Pending);
    same("all", list(None, None, 0, false).await?, vec![3, 2, 1, 0])?;
    same(
        "the oldest",
        list(None, Some(2), 0, true).await?,
        vec![0, 1],
    )?;
    same("a page", list(None, Some(2), 1, false).await?, vec![2, 1])?;
    same(
        "the queue",
        list(pending, None, 0, true).await?,
        vec![0, 1, 3],
    )?;
    let cancelled = Some(RunStatus::Cancelled);
    same(
        "what is cancelled",
        list(cancelled, None, 0, true).await?,
        vec![2],
    )?;
    let everywhere = RunQuery {
        status: pending,
        oldest_first: true,
        ..RunQuery::default()
    };
    let rows = t.threads.runs(&everywhere).await.map_err(text)?;
    let ours = rows.iter().filter(|row| ids.contains(&row.id)).count();
    same("the queue of all threads", ours, 3)
}

pub(super) async fn cancelled_early(t: Stage) -> Checked {
    let new = handing(&t, None);
    t.threads.submit(new.clone()).await.map_err(text)?;
    let cancel = async |reason| t.threads.cancel(new.id, reason).await.map_err(text);
    let row = cancel(CancelReason::Superseded).await?;
    same("the status", row.status, RunStatus::Cancelled)?;
    let intent = row.cancel.ok_or("no wish is written down")?;
    same("the reason", intent.reason, CancelReason::Superseded)?;
    same("whether it is done", intent.done_ms.is_some(), true)?;
    same("the row", &t.run(new.id).await?, &row)?;
    // It rests now: what is wished later changes nothing.
    same("a second wish", &cancel(CancelReason::User).await?, &row)?;
    // Nobody begins it who has not heard of that.
    let start = Some(RunStart::default());
    let claim = Claim { run: new.id, start };
    let late = t.threads.lease(t.name(), claim).await;
    let is_told = |e: &Error| matches!(e, Error::Cancelled(CancelReason::Superseded));
    fails("a beginning after that", late, is_told)?;
    same("the row then", &t.run(new.id).await?, &row)?;
    let lease = t.s.lease_when_free(t.name(), RunId::fresh()).await?;
    drop(lease);
    Ok(())
}

pub(super) async fn cancelled_at_work(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let mut lease = t.begin(run).await?;
    let row = t
        .threads
        .cancel(run, CancelReason::Superseded)
        .await
        .map_err(text)?;
    same(
        "the status",
        (row.status, row.live),
        (RunStatus::Running, true),
    )?;
    let again = t
        .threads
        .cancel(run, CancelReason::User)
        .await
        .map_err(text)?;
    let reason = again.cancel.map(|cancel| (cancel.reason, cancel.done_ms));
    same("the wish", reason, Some((CancelReason::Superseded, None)))?;
    same(
        "what the driver hears",
        wished(&mut lease).await?,
        CancelReason::Superseded,
    )?;
    t.finish(t.end(run, RunStatus::Cancelled)).await?;
    drop(lease);
    let ended = t.run(run).await?;
    same("the status at the end", ended.status, RunStatus::Cancelled)?;
    let cancel = ended.cancel.ok_or("the wish is gone")?;
    same(
        "the reason at the end",
        cancel.reason,
        CancelReason::Superseded,
    )?;
    same("whether it is done", cancel.done_ms.is_some(), true)
}

/// What the holder of a lease is told.
async fn wished(lease: &mut Lease) -> Result<CancelReason, String> {
    let wish = lease.wish.as_mut().ok_or("the lease knows of no wishes")?;
    let told = tokio::time::timeout(Duration::from_secs(10), wish.wait_for(Option::is_some));
    let told = told.await.map_err(|_| "the driver heard nothing")?;
    let reason = *told.map_err(text)?;
    reason.ok_or_else(|| "no reason".to_owned())
}

pub(super) async fn cancelled_after(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    let mut put = t.put(None, None);
    put.standing = Some(stands(ThreadStatus::Busy, &["a"]));
    t.s.save(put).await?;
    drop(lease);
    // Giving it back may take a moment.
    let mut tries = 0;
    while t.run(run).await?.live && tries < 2000 {
        tries += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    same(
        "its row before",
        t.run(run).await?.status,
        RunStatus::Running,
    )?;
    let row = t
        .threads
        .cancel(run, CancelReason::User)
        .await
        .map_err(text)?;
    same(
        "the status",
        (row.status, row.live),
        (RunStatus::Cancelled, false),
    )?;
    let done = row.cancel.and_then(|cancel| cancel.done_ms);
    same("whether it is done", done.is_some(), true)?;
    let lease = t.s.lease_when_free(t.name(), run).await?;
    drop(lease);
    Ok(())
}

pub(super) async fn taken_up(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    t.threads
        .cancel(run, CancelReason::User)
        .await
        .map_err(text)?;
    t.finish(t.end(run, RunStatus::Cancelled)).await?;
    drop(lease);
    let lease = t.begin(run).await?;
    let row = t.run(run).await?;
    same("the wish", row.cancel, None)?;
    same("the status", row.status, RunStatus::Running)?;
    let wish = lease.wish.as_ref().and_then(|wish| *wish.borrow());
    same("what the driver hears", wish, None)?;
    drop(lease);
    Ok(())
}
