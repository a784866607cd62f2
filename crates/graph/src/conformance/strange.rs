//! The rule about names and values of any text, for whole threads.

use super::{
    Checked,
    scene::{self, note, same, text},
    stage::{Stage, entry},
};
use crate::{Keep, NoteKind, PatchKind, RunId, RunQuery, RunStatus, ThreadQuery};
use serde_json::json;

const STRANGE: &str = "Ünï\u{0}\u{1}cödé 漢字 🦀 '\"\\; -- \u{7f}\u{feff}\r\n\t%_";

/// A thread and a subgraph with such names; the thread has ten megabytes at its head.
async fn written(t: &mut Stage) -> Result<Stage, String> {
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    let sub = t.within(STRANGE);
    let long = "x\u{0}é🦀".repeat(10 << 20 >> 3);
    for (t, is_long) in [(&*t, true), (&sub, false)] {
        t.line((run, 3), None, |i, put| {
            put.metadata.user.insert(STRANGE.into(), json!(STRANGE));
            put.deltas = vec![scene::delta(
                STRANGE,
                PatchKind::Append,
                &json!([i, STRANGE]),
            )];
            if is_long && i == 2 {
                put.deltas
                    .push(scene::delta("long", PatchKind::Whole, &json!(long)));
            }
            put.notes = vec![note(
                1,
                NoteKind::Memo,
                STRANGE,
                &json!(STRANGE).to_string(),
            )];
            put.events = vec![entry(run, STRANGE)];
        })
        .await?;
    }
    let mut end = t.end(run, RunStatus::Success);
    end.error = Some(STRANGE.to_owned());
    t.finish(end).await?;
    drop(lease);
    let says = json!({STRANGE: STRANGE})
        .as_object()
        .cloned()
        .unwrap_or_default();
    t.threads.describe(t.name(), says).await.map_err(text)?;
    Ok(sub)
}

pub(super) async fn strange(t: Stage) -> Checked {
    let mut t = t.on_thread(&format!("{} {STRANGE}", t.name()));
    let sub = written(&mut t).await?;
    let before = [t.reads().await?, sub.reads().await?];
    let copy = t.on_thread(&format!("{} copy {STRANGE}", t.name()));
    t.threads.copy(t.name(), copy.name()).await.map_err(text)?;
    let copied = [copy.reads().await?, copy.within(STRANGE).reads().await?];
    same("whether the copy is the same", copied == before, true)?;
    let pruned = t
        .threads
        .prune(t.name(), Keep::Last(1))
        .await
        .map_err(text)?;
    same("how many were pruned", pruned.checkpoints, 4)?;
    let left = [t.reads().await?, sub.reads().await?];
    let newest = before.map(|views| views.into_iter().skip(2).collect::<Vec<_>>());
    same("whether the newest are the same", left == newest, true)?;
    listed_so(&t, &copy).await?;
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

/// The rows, as lists have them.
async fn listed_so(t: &Stage, copy: &Stage) -> Checked {
    let query = ThreadQuery {
        metadata: json!({STRANGE: STRANGE})
            .as_object()
            .cloned()
            .unwrap_or_default(),
        ..ThreadQuery::default()
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
        .any(|(name, _)| name == STRANGE);
    same("whether its channel is counted", named, true)?;
    let runs = RunQuery {
        thread: Some(t.name().to_owned()),
        ..RunQuery::default()
    };
    let runs = t.threads.runs(&runs).await.map_err(text)?;
    same(
        "its error",
        runs.first().and_then(|r| r.error.as_deref()),
        Some(STRANGE),
    )
}
