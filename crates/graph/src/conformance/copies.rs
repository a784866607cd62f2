//! The rules about copies of threads, and about sizes.

use super::{
    Checked, is_conflict,
    scene::{self, fails, note, same, text},
    stage::{Stage, View, entry, machine, stands, whats},
};
use crate::{
    Error, LogQuery, NoteKind, PatchKind, RunId, RunStatus, Source, Standing, ThreadStatus,
};
use serde_json::{Value, json};

/// Where [`scenery`] has checkpoints.
pub(super) const SPACES: [&str; 3] = ["", "a:1", "a:1|b"];

/// A thread with all that there can be: branches, subgraphs, notes, all kinds of pieces, a log.
pub(super) async fn scenery(t: &Stage, run: RunId) -> Checked {
    for namespace in SPACES {
        let t = t.within(namespace);
        let line = t
            .line((run, 6), None, |i, put| {
                put.metadata.superstep = i as i64 - 1;
                put.metadata.source = if i == 0 { Source::Input } else { Source::Loop };
                put.metadata.user.insert("who".into(), json!({"n": i}));
                let list = |kind, json: &Value| vec![scene::delta("list", kind, json)];
                put.deltas = match i % 3 {
                    0 => list(PatchKind::Append, &json!([i, "x".repeat(100)])),
                    1 => list(PatchKind::Edit, &json!({"set": [[0, "e"]], "append": [i]})),
                    _ => vec![scene::delta("text", PatchKind::Whole, &json!(i))],
                };
                put.notes = vec![note(1, NoteKind::Memo, "m", &i.to_string())];
                put.events = vec![entry(run, &format!("{namespace} {i}"))];
                let mut same = entry(run, "same");
                same.same = put
                    .deltas
                    .iter()
                    .map(|delta| delta.channel.clone())
                    .collect();
                put.events.push(same);
            })
            .await?;
        // A branch from the middle, which is the head then.
        let mut fork = t.put(line.get(2).copied(), line.last().copied());
        fork.metadata.source = Source::Fork;
        fork.metadata.run = run;
        fork.deltas = vec![scene::delta("list", PatchKind::Append, &json!(["fork"]))];
        let at = fork.id;
        t.s.save(fork).await?;
        for (task, key) in [(2, "b"), (1, "a"), (2, "a"), (2, "b")] {
            let left = vec![note(task, NoteKind::Memo, key, "1")];
            t.s.try_note(at, left).await.map_err(text)?;
        }
    }
    Ok(())
}

/// How all of it reads.
pub(super) async fn reads(t: &Stage) -> Result<Vec<Vec<View>>, String> {
    let mut all = Vec::new();
    for namespace in SPACES {
        all.push(t.within(namespace).reads().await?);
    }
    Ok(all)
}

pub(super) async fn copied(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    scenery(&t, run).await?;
    let mut end = t.end(run, RunStatus::Success);
    end.standing = Some(Standing {
        values: Some(json!({"x": 1})),
        ..Standing::IDLE
    });
    t.finish(end).await?;
    drop(lease);
    let says = json!({"a": "b"}).as_object().cloned().unwrap_or_default();
    t.threads.describe(t.name(), says).await.map_err(text)?;
    let (original, row) = (reads(&t).await?, t.row().await?);
    let mut copy = t.on_thread(&format!("{} copy", t.name()));
    t.threads.copy(t.name(), copy.name()).await.map_err(text)?;
    same("the copy", &reads(&copy).await?, &original)?;
    let spaces = t.threads.namespaces(copy.name()).await.map_err(text)?;
    same("its namespaces", spaces, SPACES.map(str::to_owned).into())?;
    let copied = copy.row().await?;
    same("its name", copied.name.as_str(), copy.name())?;
    same(
        "whether it has a UUID of its own",
        copied.uuid == row.uuid,
        false,
    )?;
    same("its status", copied.status, ThreadStatus::Idle)?;
    same("its holder", copied.holder, None)?;
    let said = |row: &crate::ThreadRow| {
        (
            row.graph.clone(),
            row.metadata.clone(),
            row.head,
            row.values.clone(),
        )
    };
    same("its row", said(&copied), said(&row))?;
    same(
        "the run's thread",
        t.run(run).await?.thread.as_str(),
        t.name(),
    )?;
    // What is done to one is not done to the other.
    copy.had().await?;
    let head = copied.head;
    let mut more = copy.put(head, head);
    more.deltas = vec![scene::delta("list", PatchKind::Append, &json!(["more"]))];
    copy.s.save(more).await?;
    same("the original", &reads(&t).await?, &original)?;
    let changed = reads(&copy).await?;
    same(
        "whether it was deleted",
        t.threads.delete(t.name()).await.map_err(text)?,
        true,
    )?;
    same("the copy alone", reads(&copy).await?, changed)?;
    // What was open is open anew: its tasks have other identities there.
    let last = copy.row().await?.head;
    let mut open = copy.put(last, last);
    open.machine = machine(&["ask"]);
    open.standing = Some(Standing {
        interrupts: vec![super::stage::question("q")],
        ..stands(ThreadStatus::Interrupted, &["ask"])
    });
    copy.s.save(open).await?;
    let second = copy.on_thread(&format!("{} again", copy.name()));
    t.threads
        .copy(copy.name(), second.name())
        .await
        .map_err(text)?;
    let row = second.row().await?;
    same("the open copy", row.status, ThreadStatus::Interrupted)?;
    same(
        "what is due there",
        row.next,
        stands(ThreadStatus::Busy, &["ask"]).next,
    )?;
    same("its questions", row.interrupts, vec![])
}

pub(super) async fn copied_log(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    scenery(&t, run).await?;
    t.finish(t.end(run, RunStatus::Success)).await?;
    drop(lease);
    let trimmed = t.threads.trim(t.name(), 3).await.map_err(text)?;
    same("trimmed", trimmed, 3)?;
    let log = t.log(LogQuery::default()).await?;
    let mut copy = t.on_thread(&format!("{} copy", t.name()));
    t.threads.copy(t.name(), copy.name()).await.map_err(text)?;
    same("the log", &copy.log(LogQuery::default()).await?, &log)?;
    same(
        "whether it was deleted",
        t.threads.delete(t.name()).await.map_err(text)?,
        true,
    )?;
    same("the log alone", &copy.log(LogQuery::default()).await?, &log)?;
    copy.had().await?;
    let head = copy.row().await?.head;
    let mut more = copy.put(head, head);
    more.events = vec![entry(run, "more")];
    copy.s.save(more).await?;
    let newest = log.last().map(|logged| logged.seq).ok_or("no log")?;
    let rest = copy.log(LogQuery {
        after: newest,
        ..LogQuery::default()
    });
    same(
        "what comes after",
        whats(&rest.await?)?,
        vec![(newest + 1, "more".to_owned())],
    )
}

pub(super) async fn copy_refused(mut t: Stage) -> Checked {
    let other = t.on_thread(&format!("{} 2", t.name()));
    other.s.save(other.put(None, None)).await?;
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    t.s.save(t.put(None, None)).await?;
    let third = format!("{} 3", t.name());
    let driven = t.threads.copy(t.name(), &third).await;
    let is_run = |e: &Error| matches!(e, Error::Conflict { holder, .. } if *holder == Some(run));
    fails("a copy of a driven thread", driven, is_run)?;
    same(
        "the copy",
        t.threads.thread(&third).await.map_err(text)?,
        None,
    )?;
    t.finish(t.end(run, RunStatus::Success)).await?;
    drop(lease);
    let before = other.reads().await?;
    for target in [other.name(), t.name()] {
        let over = t.threads.copy(t.name(), target).await;
        fails("a copy over a thread", over, is_conflict)?;
    }
    same("the other thread", other.reads().await?, before)
}

pub(super) async fn stats(t: Stage) -> Checked {
    let run = RunId::fresh();
    scenery(&t, run).await?;
    let all = t.threads.stats(Some(t.name())).await.map_err(text)?;
    let [stats] = &all[..] else {
        return Err(format!("{} threads of one name", all.len()));
    };
    same("the thread", stats.thread.as_str(), t.name())?;
    same(
        "the counts",
        (stats.checkpoints, stats.notes, stats.events),
        (21, 27, 36),
    )?;
    let names: Vec<_> = stats
        .channels
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    same("the channels", names, vec!["list", "text"])?;
    let of_channels: u64 = stats.channels.iter().map(|(_, bytes)| bytes).sum();
    same(
        "whether there is more than values",
        stats.bytes > of_channels,
        true,
    )?;
    same("whether values are counted", of_channels > 600, true)?;
    let everywhere = t.threads.stats(None).await.map_err(text)?;
    same("whether it is among all", everywhere.contains(stats), true)?;
    let sorted = everywhere.is_sorted_by(|a, b| a.bytes >= b.bytes);
    same("whether the largest comes first", sorted, true)
}
