//! The rules about writing: what is refused, what replaces what, and in which order things happen.

use super::{
    Checked, is_conflict, is_unknown,
    scene::{self, Scene, fails, note, same, value_of},
};
use crate::{
    CheckpointId, Claim, Error, HistoryQuery, LONGEST_KEY, Note, NoteKind, PatchKind, RunId, Scope,
    Source,
};
use futures::{FutureExt, future::join_all};
use serde_json::json;

pub(super) async fn empty(s: Scene) -> Checked {
    same("the head", s.load(None).await?.is_none(), true)?;
    let some = s.load(Some(CheckpointId::fresh())).await?;
    same("a checkpoint", some.is_none(), true)?;
    same(
        "the history",
        s.history(HistoryQuery::default()).await?,
        vec![],
    )
}

pub(super) async fn roundtrip(s: Scene) -> Checked {
    let mut first = s.put(None, None);
    first
        .metadata
        .user
        .insert("ours".into(), json!({"deep": [1, null]}));
    first.metadata.source = Source::Input;
    first.machine = br#"{"superstep":0,"tasks":[]}"#.to_vec();
    first.deltas = vec![
        scene::delta("text", PatchKind::Whole, &json!("x")),
        scene::delta("list", PatchKind::Append, &json!([1, 2])),
    ];
    first.notes = vec![note(1, NoteKind::Memo, "a", "1")];
    let mut second = s.put(Some(first.id), Some(first.id));
    second.metadata.superstep = 7;
    second.deltas = vec![scene::delta("list", PatchKind::Append, &json!([3]))];
    for put in [&first, &second] {
        s.save(put.clone()).await?;
    }
    for at in [None, Some(second.id)] {
        let loaded = s.load(at).await?.ok_or("nothing loaded")?;
        same("the id", loaded.id, second.id)?;
        same("the parent", loaded.parent, Some(first.id))?;
        same("the metadata", &loaded.metadata, &second.metadata)?;
        same("the machine", &loaded.machine, &second.machine)?;
        same("what changed", &loaded.changed, &vec!["list".to_owned()])?;
        same("the notes", &loaded.notes, &vec![])?;
        same("the text", value_of(&loaded, "text")?, Some(json!("x")))?;
        same(
            "the list",
            value_of(&loaded, "list")?,
            Some(json!([1, 2, 3])),
        )?;
        same(
            "a channel that is not there",
            value_of(&loaded, "none")?,
            None,
        )?;
    }
    let loaded = s.load(Some(first.id)).await?.ok_or("nothing loaded")?;
    same("the first parent", loaded.parent, None)?;
    same("the first metadata", &loaded.metadata, &first.metadata)?;
    same("the first machine", &loaded.machine, &first.machine)?;
    same("the first notes", &loaded.notes, &first.notes)?;
    same(
        "the first list",
        value_of(&loaded, "list")?,
        Some(json!([1, 2])),
    )
}

pub(super) async fn compare_and_set(s: Scene) -> Checked {
    let first = s.put(None, None);
    s.save(first.clone()).await?;
    for expect in [None, Some(CheckpointId::fresh())] {
        let mut late = s.put(Some(first.id), expect);
        late.deltas = vec![scene::delta("text", PatchKind::Whole, &json!("late"))];
        fails("a late put", s.try_put(late).await, is_conflict)?;
    }
    let head = s.load(None).await?.ok_or("the head is gone")?;
    same("the head", head.id, first.id)?;
    same("the text", value_of(&head, "text")?, None)?;
    same(
        "the history",
        s.history(HistoryQuery::default()).await?.len(),
        1,
    )
}

pub(super) async fn two_writers(s: Scene) -> Checked {
    let mut head = None;
    for round in 0..20 {
        let writers: Vec<_> = (0..2).map(|_| s.put(head, head)).collect();
        let ids: Vec<_> = writers.iter().map(|put| put.id).collect();
        let at_once = writers.into_iter().map(|put| {
            let s = s.clone();
            tokio::spawn(async move { s.try_put(put).await })
        });
        let mut won = Vec::new();
        for (done, id) in join_all(at_once).await.into_iter().zip(ids) {
            match done.map_err(|e| e.to_string())? {
                Ok(()) => won.push(id),
                Err(e) => fails("the loser", Err::<(), _>(e), is_conflict)?,
            }
        }
        same(&format!("the winners of round {round}"), won.len(), 1)?;
        head = won.first().copied();
        same("the head", s.load(None).await?.map(|l| l.id), head)?;
    }
    Ok(())
}

pub(super) async fn unknown_parent(s: Scene) -> Checked {
    let orphan = s.put(Some(CheckpointId::fresh()), None);
    fails("an orphan", s.try_put(orphan).await, is_unknown)?;
    same("the head", s.load(None).await?.is_none(), true)
}

pub(super) async fn lease(s: Scene) -> Checked {
    let (thread, runs) = (&*s.scope.thread, [RunId::fresh(), RunId::fresh()]);
    let first = s
        .store
        .lease(thread, claim(runs[0]))
        .await
        .map_err(scene::text)?;
    let second = s.store.lease(thread, claim(runs[1])).await;
    fails(
        "a second lease",
        second,
        |e| matches!(e, Error::Conflict { holder, .. } if *holder == Some(runs[0])),
    )?;
    let other = s
        .store
        .lease(&format!("{thread} other"), claim(runs[1]))
        .await;
    drop(other.map_err(|e| format!("another thread: {e}"))?);
    let epoch = first.epoch;
    drop(first);
    let third = s.lease_when_free(thread, runs[1]).await?;
    same("a greater epoch", third.epoch > epoch, true)
}

pub(super) async fn fence(mut s: Scene) -> Checked {
    let thread = s.scope.thread.clone();
    let old = s.lease_when_free(&thread, RunId::fresh()).await?;
    s.epoch = old.epoch;
    let first = s.put(None, None);
    s.save(first.clone()).await?;
    drop(old);
    let new = s.lease_when_free(&thread, RunId::fresh()).await?;
    let stale = s.put(Some(first.id), Some(first.id));
    fails("a stale put", s.try_put(stale).await, is_conflict)?;
    let stale = s.try_note(first.id, vec![note(1, NoteKind::Done, "", "1")]);
    fails("a stale note", stale.await, is_conflict)?;
    let inner = Scope {
        namespace: "sub".into(),
        ..s.scope.clone()
    };
    let stale = s.put(None, None);
    fails(
        "a stale put inside",
        s.store.put(&inner, stale).await,
        is_conflict,
    )?;
    let loaded = s.load(None).await?.ok_or("the head is gone")?;
    same("the head", (loaded.id, loaded.notes.len()), (first.id, 0))?;
    s.epoch = new.epoch;
    s.save(s.put(Some(first.id), Some(first.id))).await
}

pub(super) async fn notes(s: Scene) -> Checked {
    let put = s.put(None, None);
    s.save(put.clone()).await?;
    let all = [
        vec![
            note(1, NoteKind::Memo, "a", "1"),
            note(1, NoteKind::Memo, "b", "2"),
        ],
        vec![
            note(2, NoteKind::Memo, "a", "3"),
            note(1, NoteKind::Answer, "a", "4"),
        ],
        vec![note(1, NoteKind::Memo, "a", "5")],
    ];
    for notes in all {
        s.try_note(put.id, notes).await.map_err(scene::text)?;
    }
    let loaded = s.load(None).await?.ok_or("nothing loaded")?;
    let expected = vec![
        note(1, NoteKind::Memo, "b", "2"),
        note(2, NoteKind::Memo, "a", "3"),
        note(1, NoteKind::Answer, "a", "4"),
        note(1, NoteKind::Memo, "a", "5"),
    ];
    same("the notes", loaded.notes, expected)
}

pub(super) async fn notes_of_a_put(s: Scene) -> Checked {
    let mut put = s.put(None, None);
    put.notes = vec![
        note(1, NoteKind::Retry, "", "1"),
        note(2, NoteKind::Retry, "", "2"),
        note(1, NoteKind::Retry, "", "3"),
    ];
    s.save(put).await?;
    let loaded = s.load(None).await?.ok_or("nothing loaded")?;
    let expected = vec![
        note(2, NoteKind::Retry, "", "2"),
        note(1, NoteKind::Retry, "", "3"),
    ];
    same("the notes", loaded.notes, expected)
}

pub(super) async fn notes_belong(s: Scene) -> Checked {
    let first = s.put(None, None);
    s.save(first.clone()).await?;
    let written = vec![note(1, NoteKind::Done, "", "{}")];
    s.try_note(first.id, written.clone())
        .await
        .map_err(scene::text)?;
    let second = s.put(Some(first.id), Some(first.id));
    s.save(second.clone()).await?;
    let notes = async |at| Ok::<_, String>(s.load(at).await?.map(|l| l.notes));
    same("the notes of the next", notes(None).await?, Some(vec![]))?;
    same(
        "the notes of the first",
        notes(Some(first.id)).await?,
        Some(written.clone()),
    )?;
    // What is said late of an older checkpoint is said of that one.
    let late = note(2, NoteKind::Done, "", "{}");
    s.try_note(first.id, vec![late.clone()])
        .await
        .map_err(scene::text)?;
    let both = written.into_iter().chain([late]).collect::<Vec<Note>>();
    same("the first, later", notes(Some(first.id)).await?, Some(both))?;
    same("the next, later", notes(None).await?, Some(vec![]))
}

pub(super) async fn unknown_note(s: Scene) -> Checked {
    s.save(s.put(None, None)).await?;
    let nowhere = s.try_note(
        CheckpointId::fresh(),
        vec![note(1, NoteKind::Done, "", "1")],
    );
    fails("notes on nothing", nowhere.await, is_unknown)?;
    let loaded = s.load(None).await?.ok_or("nothing loaded")?;
    same("the notes", loaded.notes, vec![])
}

pub(super) async fn hundred(s: Scene) -> Checked {
    let at_once = (0..100).map(|n| {
        let mut s = s.clone();
        s.scope.thread = format!("{} {n}", s.scope.thread).into();
        tokio::spawn(async move {
            let thread = s.scope.thread.clone();
            let lease = s.lease_when_free(&thread, RunId::fresh()).await?;
            s.epoch = lease.epoch;
            let mut head = None;
            for i in 0..10 {
                let mut put = s.put(head, head);
                put.deltas = vec![scene::delta(
                    "list",
                    PatchKind::Append,
                    &json!([n * 100 + i]),
                )];
                head = Some(put.id);
                let id = put.id;
                s.save(put).await?;
                s.try_note(id, vec![note(1, NoteKind::Done, "", "1")])
                    .await
                    .map_err(scene::text)?;
            }
            let loaded = s.load(None).await?.ok_or("nothing loaded")?;
            let expected: Vec<_> = (0..10).map(|i| n * 100 + i).collect();
            same(
                "the list",
                value_of(&loaded, "list")?,
                Some(json!(expected)),
            )
        })
    });
    for done in join_all(at_once).await {
        done.map_err(|e| e.to_string())??;
    }
    Ok(())
}

pub(super) async fn order(s: Scene) -> Checked {
    let mut puts = Vec::new();
    let mut head = None;
    for i in 0..20 {
        let mut put = s.put(head, head);
        put.deltas = vec![scene::delta("list", PatchKind::Append, &json!([i]))];
        head = Some(put.id);
        puts.push(put);
    }
    // All are called before the first is waited for.
    let mut begun = Vec::new();
    for put in puts {
        let id = put.id;
        begun.push(s.store.put(&s.scope, put));
        begun.push(s.store.note(
            &s.scope,
            s.notes(id, vec![note(1, NoteKind::Memo, "a", "1")]),
        ));
        begun.push(s.store.note(
            &s.scope,
            s.notes(id, vec![note(1, NoteKind::Memo, "a", "2")]),
        ));
    }
    for done in begun {
        done.await.map_err(scene::text)?;
    }
    let loaded = s.load(None).await?.ok_or("nothing loaded")?;
    let expected: Vec<_> = (0..20).collect();
    same(
        "the list",
        value_of(&loaded, "list")?,
        Some(json!(expected)),
    )?;
    same(
        "the notes",
        loaded.notes,
        vec![note(1, NoteKind::Memo, "a", "2")],
    )
}

pub(super) async fn dropped(s: Scene) -> Checked {
    let mut head = None;
    for round in 0..10 {
        let mut put = s.put(head, head);
        put.deltas = vec![scene::delta("list", PatchKind::Append, &json!([round]))];
        put.notes = vec![note(1, NoteKind::Memo, "a", &round.to_string())];
        let id = put.id;
        let writing = s.store.put(&s.scope, put);
        if round % 2 == 0 {
            drop(writing);
        } else if let Some(done) = writing.now_or_never() {
            done.map_err(scene::text)?;
        }
        // A next put says where things stand: it is refused only if the first one happened.
        let next = s.put(head, head);
        let next_id = next.id;
        head = match s.try_put(next).await {
            Ok(()) => Some(next_id),
            Err(e) => {
                fails("the next put", Err::<(), _>(e), is_conflict)?;
                let loaded = s.load(None).await?.ok_or("nothing loaded")?;
                same("the head", loaded.id, id)?;
                same(
                    "its notes",
                    loaded.notes,
                    vec![note(1, NoteKind::Memo, "a", &round.to_string())],
                )?;
                same("its change", loaded.changed, vec!["list".to_owned()])?;
                Some(id)
            }
        };
    }
    Ok(())
}

fn claim(run: RunId) -> Claim {
    Claim { run, start: None }
}

pub(super) async fn long_keys(s: Scene) -> Checked {
    let put = s.put(None, None);
    s.save(put.clone()).await?;
    let too_long = |e: &Error| matches!(e, Error::LongKey { bytes, most, .. } if bytes > most);
    for low in [false, true] {
        let key = scene::long_key(LONGEST_KEY, low);
        let kept = note(1, NoteKind::Memo, &key, "1");
        s.try_note(put.id, vec![kept.clone()])
            .await
            .map_err(scene::text)?;
        let longer = note(2, NoteKind::Memo, &(key + "x"), "2");
        let noted = s.try_note(put.id, vec![longer.clone()]).await;
        fails("a note of a longer key", noted, too_long)?;
        let mut next = s.put(Some(put.id), Some(put.id));
        next.notes = vec![longer];
        fails("a put with one", s.try_put(next).await, too_long)?;
        let loaded = s.load(None).await?.ok_or("nothing loaded")?;
        same("the newest note", loaded.notes.last(), Some(&kept))?;
    }
    Ok(())
}
