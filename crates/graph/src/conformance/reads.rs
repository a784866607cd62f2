//! The rules about reading: histories, branches, values made of pieces, and what is kept apart.

use super::{
    Checked,
    scene::{self, Scene, note, same, value_of},
};
use crate::{Entry, HistoryQuery, NoteKind, PatchKind, Scope, Source};
use serde_json::{Value, json};

/// Six checkpoints; the last but one branches off from the second.
async fn six(s: &Scene) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    for i in 0..6 {
        let head = entries.last().map(|e| e.id);
        let second = entries.get(1).map(|e| e.id);
        let mut put = s.put(if i == 4 { second } else { head }, head);
        put.metadata.superstep = i;
        put.metadata.source = if i == 0 { Source::Input } else { Source::Loop };
        put.metadata.user.insert("odd".into(), json!(i % 2 == 1));
        let who = json!({"name": "x"});
        put.metadata.user.insert("who".into(), who);
        entries.push(Entry {
            id: put.id,
            parent: put.parent,
            metadata: put.metadata.clone(),
        });
        s.save(put).await?;
    }
    Ok(entries)
}

pub(super) async fn history(s: Scene) -> Checked {
    let entries = six(&s).await?;
    let id = |i: usize| entries.get(i).map(|e| e.id);
    let query = |before, parent, limit, filter: Value| HistoryQuery {
        before,
        parent,
        limit,
        filter: filter.as_object().cloned().unwrap_or_default(),
    };
    let all = || json!({});
    let table: [(&str, HistoryQuery, &[usize]); 12] = [
        ("all", query(None, None, None, all()), &[5, 4, 3, 2, 1, 0]),
        ("a limit", query(None, None, Some(2), all()), &[5, 4]),
        ("no room", query(None, None, Some(0), all()), &[]),
        ("before", query(id(3), None, None, all()), &[2, 1, 0]),
        ("a page", query(id(3), None, Some(1), all()), &[2]),
        ("children", query(None, id(1), None, all()), &[4, 2]),
        (
            "odd",
            query(None, None, None, json!({"odd": true})),
            &[5, 3, 1],
        ),
        (
            "two",
            query(None, None, None, json!({"odd": false, "source": "input"})),
            &[0],
        ),
        (
            "our own",
            query(None, None, None, json!({"superstep": 4})),
            &[4],
        ),
        (
            "deep",
            query(None, None, Some(1), json!({"who": {"name": "x"}})),
            &[5],
        ),
        (
            "nothing",
            query(None, None, None, json!({"odd": "true"})),
            &[],
        ),
        (
            "together",
            query(id(5), None, Some(1), json!({"odd": true})),
            &[3],
        ),
    ];
    for (what, query, places) in table {
        let expected: Vec<_> = places
            .iter()
            .filter_map(|i| entries.get(*i).cloned())
            .collect();
        same(what, s.history(query).await?, expected)?;
    }
    Ok(())
}

pub(super) async fn forks(s: Scene) -> Checked {
    let append = |n: i32| vec![scene::delta("list", PatchKind::Append, &json!([n]))];
    let mut line = Vec::new();
    let mut head = None;
    // 0 - 1 - 2, then 3 after 1, then 4 after 2, then 5 after nothing.
    for (n, parent) in [
        (0, None),
        (1, Some(0)),
        (2, Some(1)),
        (3, Some(1)),
        (4, Some(2)),
        (5, None),
    ] {
        let parent = parent.and_then(|i: usize| line.get(i).copied());
        let mut put = s.put(parent, head);
        put.deltas = append(n);
        head = Some(put.id);
        line.push(put.id);
        s.save(put).await?;
    }
    let expected = [
        json!([0]),
        json!([0, 1]),
        json!([0, 1, 2]),
        json!([0, 1, 3]),
        json!([0, 1, 2, 4]),
        json!([5]),
    ];
    for (id, expected) in line.iter().zip(expected) {
        let loaded = s.load(Some(*id)).await?.ok_or("a checkpoint is gone")?;
        same("the list", value_of(&loaded, "list")?, Some(expected))?;
    }
    same("the head", s.load(None).await?.map(|l| l.id), head)
}

pub(super) async fn deltas(s: Scene) -> Checked {
    let steps = [
        (PatchKind::Append, json!([1, 2]), json!([1, 2])),
        (
            PatchKind::Edit,
            json!({"set": [[0, 9]], "append": [3]}),
            json!([9, 2, 3]),
        ),
        (PatchKind::Append, json!([4]), json!([9, 2, 3, 4])),
        (
            PatchKind::Edit,
            json!({"set": [[0, 8], [3, 5]], "append": []}),
            json!([8, 2, 3, 5]),
        ),
        (PatchKind::Whole, json!([7]), json!([7])),
        (
            PatchKind::Edit,
            json!({"set": [[0, 6]], "append": [1]}),
            json!([6, 1]),
        ),
        (PatchKind::Append, json!([]), json!([6, 1])),
        (PatchKind::Whole, json!([]), json!([])),
        (PatchKind::Append, json!([2]), json!([2])),
    ];
    let (mut head, mut line) = (None, Vec::new());
    for (i, (kind, piece, full)) in steps.into_iter().enumerate() {
        let mut put = s.put(head, head);
        put.deltas = vec![scene::delta("list", kind, &piece)];
        if i == 3 {
            put.deltas
                .push(scene::delta("text", PatchKind::Whole, &json!("here")));
        }
        head = Some(put.id);
        line.push((put.id, kind, piece, full, (i >= 3).then(|| json!("here"))));
        s.save(put).await?;
    }
    for (id, kind, piece, full, text) in line {
        let loaded = s.load(Some(id)).await?.ok_or("a checkpoint is gone")?;
        same("the list", value_of(&loaded, "list")?, Some(full))?;
        same("the text", value_of(&loaded, "text")?, text)?;
        // The last piece is this checkpoint's own change.
        let list = loaded.channels.iter().find(|(name, _)| name == "list");
        let last = list
            .and_then(|(_, pieces)| pieces.last())
            .ok_or("no pieces")?;
        same("the last kind", last.kind, kind)?;
        let last: Value = serde_json::from_slice(&last.json).map_err(scene::text)?;
        same("the last piece", last, piece)?;
    }
    Ok(())
}

pub(super) async fn scopes(s: Scene) -> Checked {
    let base = s.scope.thread.to_string();
    let threads = [
        base.clone(),
        format!("{base} "),
        format!("{base}|a"),
        base.to_uppercase(),
        format!("{base}%"),
        format!("{base}_"),
    ];
    let spaces = ["", "a", "a|b", "a:1", "A", "%", "é", "e\u{301}"];
    let mut all = Vec::new();
    for thread in &threads {
        for namespace in spaces {
            let scope = Scope {
                thread: thread.as_str().into(),
                namespace: namespace.into(),
            };
            let mut put = s.put(None, None);
            put.deltas = vec![scene::delta(
                "at",
                PatchKind::Whole,
                &json!(scope.to_string()),
            )];
            put.notes = vec![note(
                1,
                NoteKind::Memo,
                "at",
                &json!(scope.to_string()).to_string(),
            )];
            s.store
                .put(&scope, put.clone())
                .await
                .map_err(scene::text)?;
            all.push((scope, put));
        }
    }
    for (scope, put) in all {
        let loaded = s
            .store
            .load(&scope, None)
            .await
            .map_err(scene::text)?
            .ok_or("nothing loaded")?;
        same("the head", loaded.id, put.id)?;
        same("the notes", &loaded.notes, &put.notes)?;
        same(
            "the value",
            value_of(&loaded, "at")?,
            Some(json!(scope.to_string())),
        )?;
        let history = s.store.history(&scope, &HistoryQuery::default()).await;
        same("the history", history.map_err(scene::text)?.len(), 1)?;
    }
    Ok(())
}

pub(super) async fn texts(mut s: Scene) -> Checked {
    let strange = "Ünï\u{0}cödé 漢字 🦀 '\"\\; -- \u{7f}\u{feff}\r\n\t";
    s.scope.thread = format!("{} {strange}", s.scope.thread).into();
    s.scope.namespace = strange.into();
    let big = "x\u{0}é🦀".repeat(10 << 20 >> 3);
    let mut put = s.put(None, None);
    put.metadata.user.insert(strange.into(), json!(strange));
    put.deltas = vec![
        scene::delta(strange, PatchKind::Whole, &json!(strange)),
        scene::delta("big", PatchKind::Whole, &json!(big)),
        scene::delta(
            "numbers",
            PatchKind::Whole,
            &json!([u64::MAX, i64::MIN, 1e300, 0.1]),
        ),
    ];
    put.notes = vec![
        note(1, NoteKind::Memo, strange, &json!(strange).to_string()),
        note(1, NoteKind::Memo, "big", &json!(big).to_string()),
    ];
    s.save(put.clone()).await?;
    let loaded = s.load(None).await?.ok_or("nothing loaded")?;
    same("the metadata", &loaded.metadata, &put.metadata)?;
    same(
        "the text",
        value_of(&loaded, strange)?,
        Some(json!(strange)),
    )?;
    same(
        "the numbers",
        value_of(&loaded, "numbers")?,
        Some(json!([u64::MAX, i64::MIN, 1e300, 0.1])),
    )?;
    same(
        "the long text",
        value_of(&loaded, "big")? == Some(json!(big)),
        true,
    )?;
    same("the notes", loaded.notes == put.notes, true)
}

pub(super) async fn long(s: Scene) -> Checked {
    let (mut head, mut line) = (None, Vec::new());
    for i in 0..500 {
        let mut put = s.put(head, head);
        put.deltas = vec![scene::delta("list", PatchKind::Append, &json!([i]))];
        head = Some(put.id);
        line.push(put.id);
        s.save(put).await?;
    }
    for (i, id) in line.iter().enumerate().step_by(83) {
        let loaded = s.load(Some(*id)).await?.ok_or("a checkpoint is gone")?;
        let expected: Vec<_> = (0..=i).collect();
        same(
            "the list",
            value_of(&loaded, "list")?,
            Some(json!(expected)),
        )?;
    }
    let history = s.history(HistoryQuery::default()).await?;
    line.reverse();
    same(
        "the history",
        history.iter().map(|e| e.id).collect::<Vec<_>>(),
        line,
    )
}
