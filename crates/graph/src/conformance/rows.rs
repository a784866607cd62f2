//! The rules about rows of threads.

use super::{
    Checked, is_conflict, is_unknown,
    scene::{fails, same, text},
    stage::{Stage, question, stands},
};
use crate::{
    CancelReason, CheckpointId, Claim, Error, Keep, LogQuery, RunId, RunStatus, Standing,
    ThreadQuery, ThreadStatus,
};
use serde_json::{Map, Value, json};

pub(super) async fn nothing(t: Stage) -> Checked {
    let (name, run) = (t.name(), RunId::fresh());
    same("the row", t.threads.thread(name).await.map_err(text)?, None)?;
    same("the run", t.threads.run(run).await.map_err(text)?, None)?;
    same("the log", t.log(LogQuery::default()).await?, vec![])?;
    same("trimmed", t.threads.trim(name, 9).await.map_err(text)?, 0)?;
    same(
        "deleted",
        t.threads.delete(name).await.map_err(text)?,
        false,
    )?;
    same(
        "sizes",
        t.threads.stats(Some(name)).await.map_err(text)?,
        vec![],
    )?;
    let no_thread = |e: &Error| matches!(e, Error::UnknownThread(thread) if thread == name);
    let no_run = |e: &Error| matches!(e, Error::UnknownRun(id) if *id == run);
    let other = format!("{name} 2");
    fails("a copy", t.threads.copy(name, &other).await, no_thread)?;
    fails(
        "a prune",
        t.threads.prune(name, Keep::Last(1)).await,
        no_thread,
    )?;
    let cancel = t.threads.cancel(run, CancelReason::User).await;
    fails("a cancellation", cancel, no_run)?;
    fails("a removal", t.threads.delete_runs(&[run]).await, no_run)?;
    same(
        "the copy",
        t.threads.thread(&other).await.map_err(text)?,
        None,
    )?;
    t.s.save(t.put(None, None)).await?;
    let keep = Keep::UpTo(CheckpointId::fresh());
    fails(
        "a prune to nowhere",
        t.threads.prune(name, keep).await,
        is_unknown,
    )
}

pub(super) async fn standing(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    let mut put = t.put(None, None);
    put.standing = Some(Standing {
        interrupts: vec![question("q1"), question("q2")],
        ..stands(ThreadStatus::Busy, &["a", "b"])
    });
    t.s.save(put.clone()).await?;
    let first = t.row().await?;
    same("the name", first.name.as_str(), t.name())?;
    same("the status", first.status, ThreadStatus::Busy)?;
    same(
        "what is due",
        &first.next,
        &stands(ThreadStatus::Busy, &["a", "b"]).next,
    )?;
    same(
        "the questions",
        &first.interrupts,
        &vec![question("q1"), question("q2")],
    )?;
    same("the head", first.head, Some(put.id))?;
    same("the values", &first.values, &None)?;
    same("the graph", first.graph.as_deref(), Some("a graph"))?;
    // A put that says nothing of it leaves it, and one of a subgraph is not the thread's head.
    t.s.save(t.put(Some(put.id), Some(put.id))).await?;
    t.within("sub").s.save(t.put(None, None)).await?;
    let second = t.row().await?;
    same("the status after", second.status, ThreadStatus::Busy)?;
    same("the questions after", &second.interrupts, &first.interrupts)?;
    same(
        "the head after",
        second.head,
        t.s.load(None).await?.map(|head| head.id),
    )?;
    same("the UUID", second.uuid, first.uuid)?;
    let mut end = t.end(run, RunStatus::Success);
    let values = json!({"text": "x", "n": [1, u64::MAX]});
    end.standing = Some(Standing {
        values: Some(values.clone()),
        ..Standing::IDLE
    });
    t.finish(end).await?;
    drop(lease);
    let third = t.row().await?;
    same("the status at the end", third.status, ThreadStatus::Idle)?;
    same(
        "what is due at the end",
        third.next.len() + third.interrupts.len(),
        0,
    )?;
    same(
        "the values at the end",
        &third.values,
        &Some(values.clone()),
    )?;
    same("the time", third.created_ms, first.created_ms)?;
    // Values are left where nothing is said of them, and are none where they are said to be none.
    let head = t.s.load(None).await?.map(|head| head.id);
    let mut more = t.put(head, head);
    more.standing = Some(Standing::IDLE);
    let mut none = t.put(Some(more.id), Some(more.id));
    none.standing = Some(Standing {
        values: Some(Value::Null),
        ..Standing::IDLE
    });
    t.s.save(more).await?;
    same("the values later", t.row().await?.values, Some(values))?;
    t.s.save(none).await?;
    let last = t.row().await?.values.filter(|values| !values.is_null());
    same("the values at last", last, None)
}

pub(super) async fn holder(mut t: Stage) -> Checked {
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    same("the holder", t.row().await?.holder, Some(run))?;
    same("whether it lives", t.run(run).await?.live, true)?;
    let second = Claim {
        run: RunId::fresh(),
        start: None,
    };
    let refused = t.threads.lease(t.name(), second).await;
    fails("a second lease", refused, is_conflict)?;
    t.finish(t.end(run, RunStatus::Success)).await?;
    same("the holder at the end", t.row().await?.holder, None)?;
    same("whether it lives then", t.run(run).await?.live, false)?;
    drop(lease);
    // A lease that is dropped without a word is given back too; that may take a moment.
    drop(t.begin(RunId::fresh()).await?);
    let lease = t.s.lease_when_free(t.name(), run).await?;
    same("the last holder", t.row().await?.holder, Some(run))?;
    drop(lease);
    Ok(())
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

pub(super) async fn described(mut t: Stage) -> Checked {
    let describe = async |value: Value| {
        let row = t
            .threads
            .describe(t.name(), map(value))
            .await
            .map_err(text)?;
        let read = t.row().await?;
        same("the row", &row, &read)?;
        Ok::<_, String>(row)
    };
    let made = describe(json!({"a": 1, "b": {"c": null}})).await?;
    same(
        "what it says",
        &made.metadata,
        &map(json!({"a": 1, "b": {"c": null}})),
    )?;
    same("its status", made.status, ThreadStatus::Idle)?;
    same("its head", made.head, None)?;
    let more = describe(json!({"a": null, "d": "\u{0}'é", "none": null})).await?;
    let says = map(json!({"b": {"c": null}, "d": "\u{0}'é"}));
    same("what it says then", &more.metadata, &says)?;
    same("the UUID", more.uuid, made.uuid)?;
    let run = RunId::fresh();
    let lease = t.begin(run).await?;
    t.s.save(t.put(None, None)).await?;
    let mut end = t.end(run, RunStatus::Success);
    let values = Some(json!({"x": 1}));
    end.standing = Some(Standing {
        values: values.clone(),
        ..Standing::IDLE
    });
    t.finish(end).await?;
    drop(lease);
    let row = t.row().await?;
    same("what it says at the end", &row.metadata, &says)?;
    let row = t
        .threads
        .describe(t.name(), Map::new())
        .await
        .map_err(text)?;
    same("the values", row.values, values)
}

/// Three threads of one kind, and what finds them: made in this order.
async fn three(t: &Stage) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for (i, status) in [
        ThreadStatus::Idle,
        ThreadStatus::Interrupted,
        ThreadStatus::Error,
    ]
    .into_iter()
    .enumerate()
    {
        let mut other = t.on_thread(&format!("{} {i}", t.name()));
        let says = json!({"kind": t.name(), "n": i, "odd": i % 2 == 1, "deep": {"n": [i]}});
        let made = other.threads.describe(other.name(), map(says)).await;
        made.map_err(text)?;
        other.had().await?;
        let mut put = other.put(None, None);
        put.standing = Some(stands(status, &[]));
        other.s.save(put).await?;
        names.push(other.name().to_owned());
    }
    Ok(names)
}

pub(super) async fn listed(t: Stage) -> Checked {
    let names = three(&t).await?;
    let hostile = "' OR 1=1; --$1\"\u{0}";
    let list = async |query: ThreadQuery| {
        let rows = t.threads.threads(&query).await.map_err(text)?;
        let mut places = Vec::new();
        for row in rows {
            places.extend(names.iter().position(|name| *name == row.name));
            if let Some(name) = names.iter().find(|name| **name == row.name) {
                same("a listed row", &row, &t.on_thread(name).row().await?)?;
            }
        }
        places.sort_unstable();
        Ok::<_, String>(places)
    };
    let kind = || map(json!({"kind": t.name()}));
    let by = |status, filter: Value| {
        let mut metadata = kind();
        metadata.extend(map(filter));
        ThreadQuery {
            status,
            metadata,
            ..ThreadQuery::default()
        }
    };
    let table: [(&str, ThreadQuery, &[usize]); 9] = [
        ("all", ThreadQuery::default(), &[0, 1, 2]),
        ("of a kind", by(None, json!({})), &[0, 1, 2]),
        ("idle", by(Some(ThreadStatus::Idle), json!({})), &[0]),
        (
            "of an error",
            by(Some(ThreadStatus::Error), json!({})),
            &[2],
        ),
        ("even", by(None, json!({"odd": false})), &[0, 2]),
        ("deep", by(None, json!({"deep": {"n": [1]}})), &[1]),
        ("both", by(Some(ThreadStatus::Idle), json!({"n": 1})), &[]),
        ("by another type", by(None, json!({"n": "1"})), &[]),
        ("hostile", by(None, json!({hostile: 1})), &[]),
    ];
    for (what, query, places) in table {
        same(what, list(query).await?, places.to_vec())?;
    }
    // Written last, listed first.
    let first = names.first().ok_or("no names")?;
    wait_a_millisecond(&t.on_thread(first)).await?;
    let rows = t
        .threads
        .threads(&by(None, json!({})))
        .await
        .map_err(text)?;
    same(
        "the first of the list",
        rows.first().map(|row| &row.name),
        Some(first),
    )?;
    let run = RunId::fresh();
    let mut other = t.on_thread(first);
    let graph = ThreadQuery {
        graph: Some("a graph".to_owned()),
        ..by(None, json!({}))
    };
    same("of the graph before", list(graph.clone()).await?, vec![])?;
    let lease = other.begin(run).await?;
    same("of the graph", list(graph).await?, vec![0])?;
    other.finish(other.end(run, RunStatus::Success)).await?;
    drop(lease);
    Ok(())
}

/// Writes to the thread until its row's time is greater than that of every other.
async fn wait_a_millisecond(t: &Stage) -> Checked {
    let newest = t.threads.threads(&ThreadQuery::default()).await;
    let newest = newest.map_err(text)?.iter().map(|row| row.updated_ms).max();
    loop {
        let row = t
            .threads
            .describe(t.name(), Map::new())
            .await
            .map_err(text)?;
        if Some(row.updated_ms) > newest {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

pub(super) async fn paged(t: Stage) -> Checked {
    let says = map(json!({"kind": t.name()}));
    for i in 0..25 {
        let name = format!("{} {i}", t.name());
        let made = t.threads.describe(&name, says.clone()).await;
        made.map_err(text)?;
    }
    let page = async |limit, offset| {
        let query = ThreadQuery {
            metadata: says.clone(),
            limit,
            offset,
            ..ThreadQuery::default()
        };
        let rows = t.threads.threads(&query).await.map_err(text)?;
        Ok::<_, String>(rows.into_iter().map(|row| row.name).collect::<Vec<_>>())
    };
    let all = page(None, 0).await?;
    same("how many there are", all.len(), 25)?;
    let mut paged = Vec::new();
    for offset in [0, 10, 20] {
        paged.extend(page(Some(10), offset).await?);
    }
    same("the pages", &paged, &all)?;
    same("a page of none", page(Some(0), 0).await?, vec![])?;
    same("a page beyond", page(Some(3), 25).await?, vec![])?;
    same(
        "the rest",
        page(None, 22).await?,
        all.get(22..).unwrap_or_default().to_vec(),
    )
}
