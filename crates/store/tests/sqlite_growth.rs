//! What is stored grows with what happened, and reads as another store would have it.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod suite;

use paraph_graph::{Checkpoints, HistoryQuery, MemoryStore, NoteKind, PatchKind};
use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::{path::Path, sync::Arc};
use suite::{Line, list, note, open, plain};

async fn long(path: &Path, steps: usize) -> u64 {
    let store = open(path).await;
    let mut line = Line::on("t");
    for i in 0..steps {
        let text = format!("{i} ").repeat(200);
        let list = ("list", PatchKind::Append, json!([text]));
        let count = ("count", PatchKind::Whole, json!(i));
        line.step(&*store, &[list, count]).await;
    }
    drop(store);
    std::fs::metadata(path).unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_times_the_steps_take_ten_times_the_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let hundred = long(&folder.path().join("a.db"), 100).await;
    let thousand = long(&folder.path().join("b.db"), 1000).await;
    assert!(thousand < hundred * 11, "{thousand} and {hundred} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_edited_again_and_again_is_written_down_whole_now_and_then() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path).await;
    let mut line = Line::on("t");
    let items: Vec<_> = (0..100)
        .map(|i| json!(format!("item {i} ").repeat(10)))
        .collect();
    line.step(&*store, &[("list", PatchKind::Append, json!(items))])
        .await;
    let mut expected = items;
    let mut line_of = Vec::new();
    for i in 0..400 {
        let item = json!(format!("edited {i} ").repeat(20));
        expected[i % 100] = item.clone();
        let edit = json!({"set": [[i % 100, item]], "append": []});
        let id = line
            .step(&*store, &[("list", PatchKind::Edit, edit.clone())])
            .await;
        line_of.push((id, edit, expected.clone()));
    }
    for (id, edit, expected) in line_of.iter().step_by(37).chain(line_of.last()) {
        let loaded = store.load(&line.scope, Some(*id)).await.unwrap().unwrap();
        assert_eq!(list(&loaded, "list"), *expected);
        let pieces = &loaded.channels[0].1;
        let bytes: usize = pieces.iter().map(|piece| piece.json.len()).sum();
        let state = json!(expected).to_string().len();
        // The state, edits as long again, one more, and the slack.
        assert!(
            bytes < 2 * state + 8192,
            "{bytes} bytes are read for {state}"
        );
        let last: Value = serde_json::from_slice(&pieces.last().unwrap().json).unwrap();
        assert_eq!(
            (pieces.last().unwrap().kind, last),
            (PatchKind::Edit, edit.clone())
        );
    }
    let file = Connection::open(&path).unwrap();
    let sum =
        "SELECT sum(length(value)), sum(CASE WHEN kind = 'whole' THEN 1 ELSE 0 END) FROM piece";
    let (bytes, wholes): (i64, i64) = file
        .query_row(sum, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert!((2..=10).contains(&wholes), "{wholes} times");
    assert!(bytes < 4 * 400 * 200, "{bytes} bytes for 400 edits");
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_that_are_read_together_share_their_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path().join("a.db")).await;
    let mut line = Line::on("t");
    for i in 0..600 {
        line.step(&*store, &[("list", PatchKind::Append, json!([i]))])
            .await;
    }
    let views = store
        .views(&line.scope, &HistoryQuery::default())
        .await
        .unwrap();
    let history = store
        .history(&line.scope, &HistoryQuery::default())
        .await
        .unwrap();
    let ids: Vec<_> = views.iter().map(|view| view.id).collect();
    assert_eq!(
        ids,
        history.iter().map(|entry| entry.id).collect::<Vec<_>>()
    );
    let first = |i: usize| &views[i].channels[0].1[0].json;
    assert!(
        views
            .iter()
            .enumerate()
            .all(|(i, _)| Arc::ptr_eq(first(i), first(0)))
    );
    for (i, view) in views.iter().enumerate().step_by(97) {
        let alone = store
            .load(&line.scope, Some(view.id))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(plain(view), plain(&alone), "{i}");
    }
}

/// One step of a random history.
#[derive(Clone, Debug)]
struct Step {
    /// After which of the earlier ones; the head, usually.
    parent: Option<prop::sample::Index>,
    changes: Vec<(u8, u8)>,
    notes: Vec<(u8, u8)>,
}

fn step() -> impl Strategy<Value = Step> {
    let parent = prop::option::weighted(0.2, any::<prop::sample::Index>());
    let changes = prop::collection::vec((0..6_u8, 0..3_u8), 0..4);
    let notes = prop::collection::vec((0..3_u8, 0..3_u8), 0..3);
    (parent, changes, notes).prop_map(|(parent, changes, notes)| Step {
        parent,
        changes,
        notes,
    })
}

async fn same_as_in_memory(steps: Vec<Step>) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path().join("a.db")).await;
    let memory = MemoryStore::shared();
    let mut line = Line::on("t");
    let mut ids = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        let mut deltas = Vec::new();
        let mut seen = Vec::new();
        for (channel, kind) in &step.changes {
            if seen.contains(channel) {
                continue;
            }
            seen.push(*channel);
            // Long enough for an edit now and then to wear a chain out.
            let item = json!("x".repeat(usize::from(*channel) * 700 + i));
            let change = match kind {
                0 => (PatchKind::Whole, json!([item])),
                1 => (PatchKind::Append, json!([item, i])),
                _ => (PatchKind::Edit, json!({"set": [], "append": [item]})),
            };
            deltas.push((format!("c{channel}"), change.0, change.1));
        }
        let deltas: Vec<_> = deltas
            .iter()
            .map(|(name, kind, json)| (name.as_str(), *kind, json.clone()))
            .collect();
        let mut put = line.put(&deltas);
        if let Some(parent) = &step.parent
            && !ids.is_empty()
        {
            put.parent = Some(*parent.get(&ids));
        }
        let noted = |(task, key): &(u8, u8)| {
            note(
                u128::from(*task),
                NoteKind::Memo,
                &key.to_string(),
                &i.to_string(),
            )
        };
        put.notes = step.notes.iter().map(noted).collect();
        ids.push(put.id);
        line.head = Some(put.id);
        memory.put(&line.scope, put.clone()).await.unwrap();
        Checkpoints::put(&*store, &line.scope, put).await.unwrap();
        let notes = line.notes(step.notes.iter().rev().map(noted).collect());
        memory.note(&line.scope, notes.clone()).await.unwrap();
        store.note(&line.scope, notes).await.unwrap();
    }
    let values = |loaded: paraph_graph::Loaded| {
        let mut lists: Vec<_> = loaded
            .channels
            .iter()
            .map(|(name, _)| (name.clone(), list(&loaded, name)))
            .collect();
        lists.sort_by(|a, b| a.0.cmp(&b.0));
        let mut changed = loaded.changed.clone();
        changed.sort();
        (
            loaded.id,
            loaded.parent,
            loaded.metadata,
            changed,
            loaded.notes,
            lists,
        )
    };
    for id in ids {
        let ours = store.load(&line.scope, Some(id)).await.unwrap().unwrap();
        let theirs = memory.load(&line.scope, Some(id)).await.unwrap().unwrap();
        assert_eq!(values(ours), values(theirs));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn at_every_point_of_any_history_it_reads_as_the_store_in_memory(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(same_as_in_memory(steps));
    }
}
