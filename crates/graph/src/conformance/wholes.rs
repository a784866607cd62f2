//! The rules about whole threads: copies, deletion, removal of runs, sizes.

use super::{
    Checked, is_conflict,
    scene::{self, fails, note, same, text},
    stage::{Stage, View, entry, machine, stands, whats},
};
use crate::{
    CheckpointId, Error, HistoryQuery, LogQuery, NoteKind, PatchKind, RunId, RunStatus, Source,
    Standing, ThreadStatus,
};
use serde_json::{Map, Value, json};

/// Where [`scenery`] has checkpoints.
const SPACES: [&str; 3] = ["", "a:1", "a:1|b"];

/// A thread with all that there can be: branches, subgraphs, notes, all kinds of pieces, a log.
async fn scenery(t: &Stage, run: RunId) -> Checked {
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

async fn reads(t: &Stage) -> Result<Vec<Vec<View>>, String> {
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
    let copy = t.on_thread(&format!("{} copy", t.name()));
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
    let copy = t.on_thread(&format!("{} copy", t.name()));
    t.threads.copy(t.name(), copy.name()).await.map_err(text)?;
    same("the log", &copy.log(LogQuery::default()).await?, &log)?;
    same(
        "whether it was deleted",
        t.threads.delete(t.name()).await.map_err(text)?,
        true,
    )?;
    same("the log alone", &copy.log(LogQuery::default()).await?, &log)?;
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

pub(super) async fn strange(t: Stage) -> Checked {
    let strange = "Ünï\u{0}\u{1}cödé 漢字 🦀 '\"\\; -- \u{7f}\u{feff}\r\n\t%_";
    let mut t = t.on_thread(&format!("{} {strange}", t.name()));
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    let long = "x\u{0}é🦀".repeat(10 << 20 >> 3);
    let sub = t.within(strange);
    for (t, is_long) in [(&t, true), (&sub, false)] {
        t.line((run, 3), None, |i, put| {
            put.metadata.user.insert(strange.into(), json!(strange));
            put.deltas = vec![scene::delta(
                strange,
                PatchKind::Append,
                &json!([i, strange]),
            )];
            if is_long && i == 2 {
                put.deltas
                    .push(scene::delta("long", PatchKind::Whole, &json!(long)));
            }
            put.notes = vec![note(
                1,
                NoteKind::Memo,
                strange,
                &json!(strange).to_string(),
            )];
            put.events = vec![entry(run, strange)];
        })
        .await?;
    }
    let mut end = t.end(run, RunStatus::Success);
    end.error = Some(strange.to_owned());
    t.finish(end).await?;
    drop(lease);
    let says = json!({strange: strange})
        .as_object()
        .cloned()
        .unwrap_or_default();
    t.threads
        .describe(t.name(), says.clone())
        .await
        .map_err(text)?;
    let before = [t.reads().await?, sub.reads().await?];
    let copy = t.on_thread(&format!("{} copy {strange}", t.name()));
    t.threads.copy(t.name(), copy.name()).await.map_err(text)?;
    let copied = [copy.reads().await?, copy.within(strange).reads().await?];
    same("whether the copy is the same", copied == before, true)?;
    let pruned = t
        .threads
        .prune(t.name(), crate::Keep::Last(1))
        .await
        .map_err(text)?;
    same("how many were pruned", pruned.checkpoints, 4)?;
    let left = [t.reads().await?, sub.reads().await?];
    let newest = before.map(|views| views.into_iter().skip(2).collect::<Vec<_>>());
    same("whether the newest are the same", left == newest, true)?;
    let query = crate::ThreadQuery {
        metadata: says,
        ..crate::ThreadQuery::default()
    };
    let found = t.threads.threads(&query).await.map_err(text)?;
    let found = found
        .iter()
        .filter(|row| [t.name(), copy.name()].contains(&&*row.name));
    same("how many are found by it", found.count(), 2)?;
    let stats = t.threads.stats(Some(t.name())).await.map_err(text)?;
    let named = stats
        .iter()
        .flat_map(|s| &s.channels)
        .any(|(name, _)| name == strange);
    same("whether its channel is counted", named, true)?;
    let runs = crate::RunQuery {
        thread: Some(t.name().to_owned()),
        ..crate::RunQuery::default()
    };
    let runs = t.threads.runs(&runs).await.map_err(text)?;
    same(
        "its error",
        runs.first().and_then(|r| r.error.as_deref()),
        Some(strange),
    )?;
    same(
        "deleted",
        t.threads.delete(t.name()).await.map_err(text)?,
        true,
    )?;
    same(
        "deleted too",
        t.threads.delete(copy.name()).await.map_err(text)?,
        true,
    )
}
