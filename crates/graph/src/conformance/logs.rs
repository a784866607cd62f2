//! The rules about logs.

use super::{
    Checked, is_conflict,
    scene::{self, fails, same, text},
    stage::{Stage, entry, whats},
};
use crate::{LogEntry, LogQuery, PatchKind, RunId, RunStatus};
use serde_json::{Value, json};
use std::time::Duration;

fn numbered(what: &[&str]) -> Vec<(u64, String)> {
    let texts = what.iter().map(|what| (*what).to_owned());
    (1..).zip(texts).collect()
}

pub(super) async fn log_order(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    let mut put = t.put(None, None);
    put.events = vec![entry(run, "a"), entry(run, "b")];
    t.s.save(put.clone()).await?;
    let mut notes = t.s.notes(put.id, vec![]);
    notes.events = vec![entry(run, "c")];
    t.threads.note(&t.s.scope, notes).await.map_err(text)?;
    let sub = t.within("sub");
    let mut child = sub.put(None, None);
    child.events = vec![entry(run, "d")];
    sub.s.save(child).await?;
    let mut end = t.end(run, RunStatus::Success);
    end.events = vec![entry(run, "e"), entry(run, "f")];
    t.finish(end).await?;
    drop(lease);
    let log = t.log(LogQuery::default()).await?;
    same(
        "the log",
        whats(&log)?,
        numbered(&["a", "b", "c", "d", "e", "f"]),
    )?;
    let times: Vec<_> = log
        .iter()
        .map(|logged| (logged.run, logged.created_ms))
        .collect();
    same("run and time", times, vec![(run, 1_700_000_000_123); 6])?;
    let text = log.first().map(|logged| logged.json.clone());
    same("the text", text, Some(entry(run, "a").json))
}

pub(super) async fn log_picks(t: Stage) -> Checked {
    let runs = [RunId::fresh(), RunId::fresh()];
    let mut put = t.put(None, None);
    put.events = (0..1100)
        .map(|i| entry(runs[i % 2], &i.to_string()))
        .collect();
    t.s.save(put).await?;
    let seqs = async |after, run, limit| {
        let log = t.log(LogQuery { after, run, limit }).await?;
        Ok::<_, String>(log.into_iter().map(|logged| logged.seq).collect::<Vec<_>>())
    };
    same(
        "without a limit",
        seqs(0, None, 0).await?,
        (1..=1000).collect(),
    )?;
    same(
        "the rest",
        seqs(1000, None, 0).await?,
        (1001..=1100).collect(),
    )?;
    same("a page", seqs(10, None, 3).await?, vec![11, 12, 13])?;
    same("all", seqs(0, None, 5000).await?.len(), 1100)?;
    same("of a run", seqs(5, Some(runs[1]), 3).await?, vec![6, 8, 10])?;
    same("of nobody", seqs(0, Some(RunId::fresh()), 0).await?, vec![])?;
    same("beyond", seqs(1100, None, 0).await?, vec![])?;
    same("far beyond", seqs(u64::MAX, None, 0).await?, vec![])
}

pub(super) async fn log_refused(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    let mut first = t.put(None, None);
    first.events = vec![entry(run, "a")];
    t.s.save(first.clone()).await?;
    let told = |mut put: crate::Put| {
        put.events = vec![entry(run, "refused")];
        put
    };
    let late = t.s.try_put(told(t.put(Some(first.id), None))).await;
    fails("a put on another head", late, is_conflict)?;
    let mut old = told(t.put(Some(first.id), Some(first.id)));
    old.epoch -= 1;
    fails(
        "a put under an old lease",
        t.s.try_put(old).await,
        is_conflict,
    )?;
    let mut notes = t.s.notes(first.id, vec![]);
    notes.events = vec![entry(run, "refused")];
    notes.epoch -= 1;
    let noted = t.threads.note(&t.s.scope, notes).await;
    fails("notes under an old lease", noted, is_conflict)?;
    let mut end = t.end(run, RunStatus::Success);
    end.events = vec![entry(run, "refused")];
    end.epoch -= 1;
    let ended = t.threads.finish(t.name(), end).await;
    fails("an end under an old lease", ended, is_conflict)?;
    let mut second = t.put(Some(first.id), Some(first.id));
    second.events = vec![entry(run, "b")];
    t.s.save(second).await?;
    drop(lease);
    let log = t.log(LogQuery::default()).await?;
    same("the log", whats(&log)?, numbered(&["a", "b"]))
}

/// An entry that leaves out these channels.
fn update(run: RunId, update: &Value, left_out: &[&str]) -> LogEntry {
    let event = json!({"type": "updates", "node": "n", "update": update});
    LogEntry {
        json: event.to_string(),
        same: left_out.iter().map(|name| (*name).to_owned()).collect(),
        ..entry(run, "")
    }
}

pub(super) async fn log_same(t: Stage) -> Checked {
    let run = RunId::fresh();
    let numbers = json!([u64::MAX, 0.1, 1e300, "é\u{0}"]);
    let mut put = t.put(None, None);
    put.deltas = vec![
        scene::delta("list", PatchKind::Append, &numbers),
        scene::delta("text", PatchKind::Whole, &json!("x".repeat(20_000))),
    ];
    put.events = vec![
        update(run, &json!({"own": 1}), &["list", "text"]),
        update(run, &json!({"own": 2}), &[]),
        update(run, &json!({}), &["list"]),
    ];
    t.s.save(put.clone()).await?;
    // What comes later changes nothing of what was.
    let mut next = t.put(Some(put.id), Some(put.id));
    next.deltas = vec![
        scene::delta("list", PatchKind::Append, &json!([3])),
        scene::delta("text", PatchKind::Whole, &json!("y")),
    ];
    next.events = vec![update(run, &json!({"own": 3}), &["text"])];
    t.s.save(next).await?;
    let log = t.log(LogQuery::default()).await?;
    let updates = log.iter().map(|logged| {
        let event: Value = serde_json::from_str(&logged.json).map_err(text)?;
        same("the rest of it", &event["node"], &json!("n"))?;
        Ok::<_, String>(event["update"].clone())
    });
    let updates: Vec<Value> = updates.collect::<Result<_, _>>()?;
    let expected = vec![
        json!({"own": 1, "list": numbers, "text": "x".repeat(20_000)}),
        json!({"own": 2}),
        json!({"list": numbers}),
        json!({"own": 3, "text": "y"}),
    ];
    same("the updates", updates, expected)
}

pub(super) async fn log_not_saved(t: Stage) -> Checked {
    let run = RunId::fresh();
    let mut put = t.put(None, None);
    put.deltas = vec![scene::delta("list", PatchKind::Append, &json!([1]))];
    put.events = vec![entry(run, "a"), update(run, &json!({}), &["text"])];
    let refused = t.s.try_put(put).await;
    fails("the put", refused, |e| !is_conflict(e))?;
    same("the head", t.s.load(None).await?.is_none(), true)?;
    same("the log", t.log(LogQuery::default()).await?, vec![])?;
    let first = t.put(None, None);
    t.s.save(first.clone()).await?;
    // Notes save no channel.
    let mut notes = t.s.notes(
        first.id,
        vec![scene::note(1, crate::NoteKind::Done, "", "1")],
    );
    notes.events = vec![update(run, &json!({}), &["list"])];
    let refused = t.threads.note(&t.s.scope, notes).await;
    fails("the notes", refused, |e| !is_conflict(e))?;
    let notes = t.s.load(None).await?.map(|loaded| loaded.notes);
    same("the notes", notes, Some(vec![]))
}

pub(super) async fn log_grown(t: Stage) -> Checked {
    let run = RunId::fresh();
    let grown = |after| {
        let (threads, name) = (t.threads.clone(), t.name().to_owned());
        tokio::spawn(async move {
            let grown = threads.grown(&name, after);
            let grown = tokio::time::timeout(Duration::from_secs(20), grown).await;
            grown
                .map_err(|_| "nobody said that it had grown")?
                .map_err(text)
        })
    };
    // The thread is not there yet.
    let (first, second) = (grown(0), grown(1));
    tokio::task::yield_now().await;
    let mut put = t.put(None, None);
    put.events = vec![entry(run, "a")];
    t.s.save(put.clone()).await?;
    first.await.map_err(text)??;
    same("whether the second waits", second.is_finished(), false)?;
    let mut notes = t.s.notes(put.id, vec![]);
    notes.events = vec![entry(run, "b")];
    t.threads.note(&t.s.scope, notes).await.map_err(text)?;
    second.await.map_err(text)??;
    // What is there already is there at once.
    grown(0).await.map_err(text)?
}

pub(super) async fn log_trimmed(t: Stage) -> Checked {
    let run = RunId::fresh();
    let mut put = t.put(None, None);
    put.events = ["a", "b", "c", "d"].map(|what| entry(run, what)).into();
    t.s.save(put.clone()).await?;
    same(
        "trimmed",
        t.threads.trim(t.name(), 2).await.map_err(text)?,
        2,
    )?;
    same(
        "trimmed again",
        t.threads.trim(t.name(), 2).await.map_err(text)?,
        0,
    )?;
    let log = t.log(LogQuery::default()).await?;
    let rest = vec![(3, "c".to_owned()), (4, "d".to_owned())];
    same("the log", whats(&log)?, rest)?;
    same(
        "all trimmed",
        t.threads.trim(t.name(), u64::MAX).await.map_err(text)?,
        2,
    )?;
    let mut notes = t.s.notes(put.id, vec![]);
    notes.events = vec![entry(run, "e")];
    t.threads.note(&t.s.scope, notes).await.map_err(text)?;
    let log = t.log(LogQuery::default()).await?;
    same("the log then", whats(&log)?, vec![(5, "e".to_owned())])
}

pub(super) async fn log_texts(t: Stage) -> Checked {
    let run = RunId::fresh();
    let strange = "Ünï\u{0}cödé 漢字 🦀 '\"\\; -- \u{7f}\u{feff}\r\n\t";
    let long = format!("{strange}{}", "z\u{0}".repeat(1 << 16));
    let mut put = t.put(None, None);
    put.deltas = vec![scene::delta(strange, PatchKind::Whole, &json!(long))];
    put.events = vec![
        entry(run, strange),
        entry(run, &long),
        update(run, &json!({}), &[strange]),
    ];
    t.s.save(put).await?;
    let log = t.log(LogQuery::default()).await?;
    let seen = whats(&log)?.into_iter().map(|(_, what)| what);
    let seen: Vec<_> = seen.collect();
    same("how many", seen.len(), 3)?;
    same(
        "the strange one",
        seen.first().map(String::as_str),
        Some(strange),
    )?;
    same("the long one", seen.get(1) == Some(&long), true)?;
    let last = log.last().map(|logged| &*logged.json).unwrap_or_default();
    let last: Value = serde_json::from_str(last).map_err(text)?;
    same("the value", last["update"][strange] == json!(long), true)
}
