//! The rules about pruning: what goes, what stays, and that what stays reads as before.

use super::{
    Checked, is_conflict,
    scene::{self, fails, note, same, text},
    stage::{Stage, View, entry, machine, stands},
};
use crate::{
    CheckpointId, Keep, LogQuery, NewRun, NoteKind, PatchKind, Pruned, Put, RunId, RunStart,
    RunStatus, Standing, ThreadStatus,
};
use serde_json::json;

/// Fills puts with all kinds of pieces, of lists and of others.
fn mixed(i: usize, put: &mut Put) {
    put.metadata.created_ms = 1_000 * (i as u64 + 1);
    put.metadata.user.insert("n".into(), json!(i));
    let list = match i % 4 {
        0 | 2 => scene::delta("list", PatchKind::Append, &json!([i, "x".repeat(50)])),
        1 => {
            let edit = json!({"set": [[0, format!("edited {i}")]], "append": [i]});
            scene::delta("list", PatchKind::Edit, &edit)
        }
        _ => scene::delta("text", PatchKind::Whole, &json!(format!("text {i}"))),
    };
    put.deltas = vec![list];
    if i == 0 {
        let once = scene::delta("once", PatchKind::Whole, &json!("from the start"));
        let log = scene::delta("log", PatchKind::Append, &json!(["first"]));
        put.deltas.extend([once, log]);
    }
    put.notes = vec![note(1, NoteKind::Memo, "m", &i.to_string())];
}

impl Stage {
    /// Prunes, when it was asked what that would do.
    async fn prune(&self, keep: Keep) -> Result<Pruned, String> {
        let before = self.reads().await?;
        let foreseen = self.threads.prunable(self.name(), keep).await;
        let foreseen = foreseen.map_err(text)?;
        same("what is there after asking", self.reads().await?, before)?;
        let pruned = self.threads.prune(self.name(), keep).await.map_err(text)?;
        same("what was foreseen", foreseen, pruned)?;
        Ok(pruned)
    }

    /// Goes on from the head, which must read as it should then.
    async fn goes_on(&self) -> Checked {
        let before = self.reads().await?;
        let head = before.last().ok_or("nothing is left")?;
        let mut put = self.put(Some(head.id), Some(head.id));
        let edit = json!({"set": [[0, "on"]], "append": ["end"]});
        put.deltas = vec![scene::delta("list", PatchKind::Edit, &edit)];
        self.s.save(put).await?;
        let after = self.reads().await?;
        let (last, rest) = after.split_last().ok_or("nothing is there")?;
        same("what was there", rest, &before[..])?;
        let mut list = head.values.get("list").cloned().unwrap_or_default();
        if let Some(items) = list.as_array_mut() {
            if let Some(first) = items.first_mut() {
                *first = json!("on");
            }
            items.push(json!("end"));
        }
        same("the list", last.values.get("list"), Some(&list))
    }
}

fn ids(views: &[View]) -> Vec<CheckpointId> {
    views.iter().map(|view| view.id).collect()
}

pub(super) async fn pruned_last(t: Stage) -> Checked {
    let line = t.line((RunId::fresh(), 40), None, mixed).await?;
    for (keep, left) in [(99, 40), (33, 33), (7, 7), (1, 1), (0, 1)] {
        let before = t.reads().await?;
        let pruned = t.prune(Keep::Last(keep)).await?;
        let removed = (before.len() - left) as u64;
        same(
            "what was removed",
            (pruned.checkpoints, pruned.pending),
            (removed, false),
        )?;
        let after = t.reads().await?;
        let expected = before.get(before.len() - left..).unwrap_or_default();
        same(&format!("what {keep} left"), &after[..], expected)?;
    }
    let first = line.first().copied();
    same(
        "the first",
        t.s.load(first).await?.map(|loaded| loaded.id),
        None,
    )?;
    same("the head", t.row().await?.head, line.last().copied())?;
    t.goes_on().await
}

pub(super) async fn pruned_since(t: Stage) -> Checked {
    t.line((RunId::fresh(), 12), None, mixed).await?;
    let before = t.reads().await?;
    for (since, left) in [(0, 12), (1_000, 12), (5_500, 7), (12_000, 1), (u64::MAX, 1)] {
        t.prune(Keep::Since(since)).await?;
        let expected = before.get(before.len() - left..).unwrap_or_default();
        same(
            &format!("what is left since {since}"),
            &t.reads().await?[..],
            expected,
        )?;
    }
    t.goes_on().await
}

pub(super) async fn pruned_up_to(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    let subs = [t.within("a:1"), t.within("b"), t.within("late")];
    let early = subs[0].line((run, 2), None, mixed).await?;
    let _ = subs[1].line((run, 2), None, mixed).await?;
    let line = t
        .line((run, 6), None, |i, put| {
            mixed(i, put);
            put.machine = machine(if i == 5 { &[] } else { &["b", "b"] });
        })
        .await?;
    let _ = subs[0]
        .line((run, 2), early.last().copied(), |_, _| {})
        .await?;
    let _ = subs[2].line((run, 2), None, mixed).await?;
    let mut end = t.end(run, RunStatus::Success);
    end.standing = Some(Standing {
        values: Some(json!({"x": 1})),
        ..Standing::IDLE
    });
    t.finish(end).await?;
    drop(lease);
    let before = t.reads().await?;
    let at = line.get(3).copied().ok_or("no line")?;
    let pruned = t.prune(Keep::UpTo(at)).await?;
    same(
        "what was removed",
        (pruned.checkpoints, pruned.pending),
        (6, false),
    )?;
    let expected = before.get(..4).unwrap_or_default();
    same("what is left", &t.reads().await?[..], expected)?;
    let row = t.row().await?;
    same("the head", row.head, Some(at))?;
    // It stands where that checkpoint stands, and no longer where it came to rest.
    same("the status", row.status, ThreadStatus::Interrupted)?;
    same(
        "what is due",
        row.next,
        stands(ThreadStatus::Busy, &["b"]).next,
    )?;
    same("the values", row.values, None)?;
    let heads = async |t: &Stage| Ok::<_, String>(t.s.load(None).await?.map(|l| l.id));
    same(
        "the subgraph",
        heads(&subs[0]).await?,
        early.last().copied(),
    )?;
    same("the other one", subs[1].reads().await?.len(), 2)?;
    same("the late one", heads(&subs[2]).await?, None)?;
    let first = subs[2].put(None, None);
    subs[2].s.save(first).await?;
    t.goes_on().await?;
    // What is pending is undone too.
    let at = line.first().copied().ok_or("no line")?;
    let pruned = t.prune(Keep::UpTo(at)).await?;
    same("whether it is pending", pruned.pending, false)?;
    same("what is left at last", ids(&t.reads().await?), vec![at])
}

pub(super) async fn pruned_edits(t: Stage) -> Checked {
    // Long values, so that edits of them make a store write some of them down whole on its way.
    let fill = |i: usize, put: &mut Put| {
        let text = format!("{i} {}", "e".repeat(3000));
        put.deltas = vec![match i {
            0 => scene::delta("list", PatchKind::Append, &json!(["a", "b", "c"])),
            i if i % 5 == 0 => scene::delta("list", PatchKind::Append, &json!([i])),
            i => {
                let edit = json!({"set": [[i % 3, text]], "append": []});
                scene::delta("list", PatchKind::Edit, &edit)
            }
        }];
    };
    t.line((RunId::fresh(), 40), None, fill).await?;
    for left in [23, 11, 2, 1] {
        let before = t.reads().await?;
        t.prune(Keep::Last(left)).await?;
        let expected = before.get(before.len() - left..).unwrap_or_default();
        same(
            &format!("what {left} left"),
            t.reads().await? == expected,
            true,
        )?;
    }
    let stats = t.threads.stats(Some(t.name())).await.map_err(text)?;
    let bytes = stats.first().map(|stats| stats.bytes).unwrap_or_default();
    // Three long items and a few short ones; what was edited away is gone.
    same("whether little is left", bytes < 20_000, true)?;
    t.goes_on().await
}

pub(super) async fn pruned_forks(t: Stage) -> Checked {
    let run = RunId::fresh();
    let line = t.line((run, 10), None, mixed).await?;
    let mut head = line.last().copied();
    // Branches from old checkpoints, which are young themselves.
    for parent in [4, 2, 4] {
        let mut put = t.put(line.get(parent).copied(), head);
        let edit = json!({"set": [[1, "branch"]], "append": [parent]});
        put.deltas = vec![scene::delta("list", PatchKind::Edit, &edit)];
        head = Some(put.id);
        t.s.save(put).await?;
    }
    for left in [12, 9, 5, 3, 2, 1] {
        let before = t.reads().await?;
        t.prune(Keep::Last(left)).await?;
        let expected = before.get(before.len() - left..).unwrap_or_default();
        same(
            &format!("what {left} left"),
            &t.reads().await?[..],
            expected,
        )?;
    }
    t.goes_on().await
}

pub(super) async fn pruned_children(t: Stage) -> Checked {
    let run = RunId::fresh();
    let (child, grandchild) = (t.within("child"), t.within("child|deep"));
    let deep = grandchild.line((run, 8), None, mixed).await?;
    // As the engine writes down where a persistent subgraph stands.
    let names = |namespace: &str, id: CheckpointId| {
        let machine = json!({"superstep": 1, "children": {namespace: id}});
        machine.to_string().into_bytes()
    };
    let children = child
        .line((run, 8), None, |i, put| {
            mixed(i, put);
            if let Some(id) = deep.get(i) {
                put.machine = names("child|deep", *id);
            }
        })
        .await?;
    t.line((run, 4), None, |i, put| {
        mixed(i, put);
        if let Some(id) = children.get(i * 2) {
            put.machine = names("child", *id);
        }
    })
    .await?;
    let before = [
        t.reads().await?,
        child.reads().await?,
        grandchild.reads().await?,
    ];
    t.prune(Keep::Last(2)).await?;
    let expected: [&[usize]; 3] = [&[2, 3], &[4, 6, 7], &[4, 6, 7]];
    let after = [
        t.reads().await?,
        child.reads().await?,
        grandchild.reads().await?,
    ];
    for ((after, before), places) in after.iter().zip(&before).zip(expected) {
        let expected = places.iter().filter_map(|at| before.get(*at).cloned());
        same("what is left", after, &expected.collect::<Vec<_>>())?;
    }
    Ok(())
}

pub(super) async fn pruned_log(t: Stage) -> Checked {
    let runs = [RunId::fresh(), RunId::fresh(), RunId::fresh()];
    let mut head = None;
    for run in runs {
        let line = t
            .line((run, 4), head, |i, put| {
                mixed(i, put);
                let mut told = entry(run, &i.to_string());
                told.same = put
                    .deltas
                    .iter()
                    .map(|delta| delta.channel.clone())
                    .collect();
                put.events = vec![told];
            })
            .await?;
        head = line.last().copied();
    }
    let before = t.log(LogQuery::default()).await?;
    let pruned = t.prune(Keep::Last(6)).await?;
    same(
        "what was removed",
        (pruned.checkpoints, pruned.events),
        (6, 4),
    )?;
    let expected: Vec<_> = before
        .iter()
        .filter(|l| l.run != runs[0])
        .cloned()
        .collect();
    same("the log", t.log(LogQuery::default()).await?, expected)?;
    let pruned = t.prune(Keep::Last(1)).await?;
    same(
        "what was removed then",
        (pruned.checkpoints, pruned.events),
        (5, 4),
    )?;
    let expected: Vec<_> = before
        .iter()
        .filter(|l| l.run == runs[2])
        .cloned()
        .collect();
    same("the log then", t.log(LogQuery::default()).await?, expected)
}

pub(super) async fn pruned_never(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let mut line = t.line((run, 4), None, mixed).await?;
    let nothing = Pruned {
        pending: true,
        ..Pruned::default()
    };
    let asked = Standing {
        interrupts: vec![super::stage::question("q")],
        ..stands(ThreadStatus::Idle, &[])
    };
    let table = [
        ("a breakpoint", stands(ThreadStatus::Interrupted, &["a"])),
        (
            "a superstep that is not finished",
            stands(ThreadStatus::Busy, &["a"]),
        ),
        ("a failure", stands(ThreadStatus::Error, &["a"])),
        ("a question", asked),
    ];
    for (what, standing) in table {
        let head = line.last().copied();
        let mut put = t.put(head, head);
        put.standing = Some(standing);
        line.push(put.id);
        t.s.save(put).await?;
        let before = t.reads().await?;
        for keep in [Keep::Last(1), Keep::Since(u64::MAX)] {
            same(what, t.prune(keep).await?, nothing)?;
        }
        same("what is there", t.reads().await?, before)?;
    }
    let head = line.last().copied();
    let mut put = t.put(head, head);
    put.standing = Some(Standing::IDLE);
    t.s.save(put).await?;
    let waits = NewRun {
        id: RunId::fresh(),
        thread: t.name().to_owned(),
        start: RunStart::default(),
        strategy: None,
    };
    t.threads.submit(waits.clone()).await.map_err(text)?;
    same("a run that waits", t.prune(Keep::Last(1)).await?, nothing)?;
    let lease = t.begin(waits.id).await?;
    let driven = t.threads.prune(t.name(), Keep::Last(1)).await;
    fails("a driven thread", driven, is_conflict)?;
    let up_to = t.threads.prune(t.name(), Keep::UpTo(line[0])).await;
    fails("a driven thread, undone", up_to, is_conflict)?;
    same("how many are there", t.reads().await?.len(), 9)?;
    t.finish(t.end(waits.id, RunStatus::Success)).await?;
    drop(lease);
    same(
        "when it is over",
        t.prune(Keep::Last(1)).await?.checkpoints,
        8,
    )
}

pub(super) async fn pruned_often(t: Stage) -> Checked {
    let other = t.on_thread(&format!("{} 2", t.name()));
    let mut heads = [None, None];
    for run in 0..8 {
        for (at, stage) in [&t, &other].into_iter().enumerate() {
            let fill = |i, put: &mut Put| mixed(run * 5 + i, put);
            let line = stage.line((RunId::fresh(), 5), heads[at], fill);
            heads[at] = line.await?.last().copied();
        }
        t.prune(Keep::Last(3)).await?;
    }
    let values = |views: Vec<View>| -> Vec<_> {
        let from = views.len().saturating_sub(3);
        let newest = views.into_iter().skip(from);
        newest
            .map(|view| (view.metadata.user, view.changed, view.values))
            .collect()
    };
    same("what is left", t.reads().await?.len(), 3)?;
    let (pruned, whole) = (values(t.reads().await?), values(other.reads().await?));
    same("the newest", pruned, whole)
}
