//! How runs end, and what their rows and the log say of it.

use super::{
    super::{
        Checked,
        scene::{fails, same, text},
    },
    ALL, Play,
    graphs::{Case, asking, chain, log, step},
    to_the_end,
};
use crate::{
    CancelReason, CheckpointId, Checkpoints, Claim, Ctx, Durability, Entry, Error, Graph,
    HistoryQuery, Lease, Loaded, LogQuery, Logged, Notes, Put, RunEnd, RunId, RunStatus, Scope,
    State as _, Store, ThreadStatus, with,
};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::{future::IntoFuture, sync::Arc};
use tokio::sync::Notify;

type Gate = Arc<(Notify, Notify)>;

/// A step, then a node that says that it is there and waits.
fn waiting(gate: &Gate) -> Result<Graph<Case>, Error> {
    Graph::<Case>::new("waiting")
        .node("a", step)
        .node(
            "wait",
            with(gate.clone(), async |gate: &Gate, _: &Case, _: &Ctx| {
                gate.0.notify_one();
                gate.1.notified().await;
                Ok(log("waited"))
            }),
        )
        .start("a")
        .edge("a", "wait")
        .end("wait")
        .build()
}

pub(in crate::conformance) async fn one_driver(p: Play) -> Checked {
    let gate = Gate::default();
    let graph = waiting(&gate).map_err(text)?;
    let thread = p.thread(&graph, "");
    let run = RunId::fresh();
    let running = tokio::spawn(thread.run(Case::update()).run_id(run).into_future());
    gate.0.notified().await;
    let row = p
        .threads
        .thread(thread.name())
        .await
        .map_err(text)?
        .ok_or("no row")?;
    let stands = (row.status, row.holder, row.next);
    same(
        "how it stands",
        stands,
        (ThreadStatus::Busy, Some(run), vec!["wait".into()]),
    )?;
    let row = p
        .threads
        .run(run)
        .await
        .map_err(text)?
        .ok_or("no row of the run")?;
    same(
        "how the run stands",
        (row.status, row.live),
        (RunStatus::Running, true),
    )?;
    let driven = |e: &Error| matches!(e, Error::Conflict { holder, .. } if *holder == Some(run));
    fails("a second run", thread.run(Case::update()).await, driven)?;
    fails("resuming it", thread.resume().await, driven)?;
    fails("a write", thread.update(log("x")).await, driven)?;
    let head = thread
        .history()
        .await
        .map_err(text)?
        .first()
        .map(|entry| entry.id);
    fails("a fork", thread.fork(head.ok_or("no head")?).await, driven)?;
    gate.1.notify_one();
    let ended = running.await.map_err(text)?.map_err(text)?;
    same(
        "its end",
        ended.state().log.join(" "),
        "a waited".to_owned(),
    )
}

pub(in crate::conformance) async fn cancelled_from_afar(p: Play) -> Checked {
    for durability in ALL {
        let gate = Gate::default();
        let graph = waiting(&gate).map_err(text)?;
        let thread = p.thread(&graph, format!("{durability:?}"));
        let run = RunId::fresh();
        let start = thread
            .run(Case::update())
            .durability(durability)
            .run_id(run);
        let running = tokio::spawn(start.into_future());
        gate.0.notified().await;
        p.threads
            .cancel(run, CancelReason::User)
            .await
            .map_err(text)?;
        let ended = running.await.map_err(text)?;
        let user = |e: &Error| matches!(e, Error::Cancelled(CancelReason::User));
        fails("the run", ended, user)?;
        let row = p
            .threads
            .run(run)
            .await
            .map_err(text)?
            .ok_or("no row of the run")?;
        same("its status", row.status, RunStatus::Cancelled)?;
        let done = row.cancel.and_then(|intent| intent.done_ms);
        same("whether it says when", done.is_some(), true)?;
        let now = thread
            .snapshot(None)
            .await
            .map_err(text)?
            .ok_or("nothing is there")?;
        let error = now.tasks.first().and_then(|task| task.error.clone());
        same("why", error.map(|e| e.message), Some("user".to_owned()))?;
        gate.1.notify_one();
        let state = thread.resume().durability(durability).await.map_err(text)?;
        same(
            "its end",
            state.state().log.join(" "),
            "a waited".to_owned(),
        )?;
    }
    Ok(())
}

/// A store under which processes end before they can say that their run has.
struct Silent(Store);

impl Checkpoints for Silent {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> BoxFuture<'a, Result<Lease, Error>> {
        self.0.lease(thread, claim)
    }
    fn finish<'a>(&'a self, _: &'a str, _: RunEnd) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> BoxFuture<'a, Result<(), Error>> {
        self.0.put(scope, put)
    }
    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> BoxFuture<'a, Result<(), Error>> {
        self.0.note(scope, notes)
    }
    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, Error>> {
        self.0.load(scope, at)
    }
    fn history<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>> {
        self.0.history(scope, query)
    }
}

/// A lease that was dropped may take a store a moment.
async fn when_free<T, F: Future<Output = Result<T, Error>>>(
    work: impl Fn() -> F,
) -> Result<T, Error> {
    for _ in 0..1000 {
        match work().await {
            Err(Error::Conflict { .. }) => {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await
            }
            other => return other,
        }
    }
    work().await
}

pub(in crate::conformance) async fn left_behind(p: Play) -> Checked {
    let graph = chain().map_err(text)?;
    let silent: Store = Arc::new(Silent(p.store.clone()));
    for same_run in [true, false] {
        let name = p.name(same_run);
        let run = RunId::fresh();
        let cut = graph
            .thread(&silent, &*name)
            .run(Case::update())
            .run_id(run);
        cut.await.map_err(text)?;
        let row = p
            .threads
            .run(run)
            .await
            .map_err(text)?
            .ok_or("no row of the run")?;
        same("its status", row.status, RunStatus::Running)?;
        let thread = graph.thread(&p.store, &*name);
        let checkpoints = thread.history().await.map_err(text)?.len();
        let resume = || {
            let start = thread.resume();
            let start = if same_run { start.run_id(run) } else { start };
            start.into_future()
        };
        let resumed = when_free(resume).await;
        match same_run {
            true => {
                let state = resumed.map_err(text)?.done().map_err(text)?;
                same("its end", state.log.join(" "), "a 0 b 1 c 2".to_owned())?;
            }
            false => fails("another run", resumed, |e| {
                matches!(e, Error::NothingToResume(_))
            })?,
        }
        let row = p
            .threads
            .run(run)
            .await
            .map_err(text)?
            .ok_or("no row of the run")?;
        same("its status then", row.status, RunStatus::Success)?;
        let row = p
            .threads
            .thread(&name)
            .await
            .map_err(text)?
            .ok_or("no row")?;
        let values = row.values.unwrap_or_default();
        same("its values", values.get("sum").cloned(), Some(json!(3)))?;
        // Nothing was run again.
        let after = thread.history().await.map_err(text)?.len();
        same("how many checkpoints there are", after, checkpoints)?;
    }
    Ok(())
}

fn kinds(logged: &[Logged]) -> Result<Vec<String>, String> {
    let kind = |entry: &Logged| {
        let event: Value = serde_json::from_str(&entry.json).map_err(text)?;
        let word = |key: &str| {
            event
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        Ok(format!("{} {}", word("type"), word("node"))
            .trim()
            .to_owned())
    };
    logged.iter().map(kind).collect()
}

pub(in crate::conformance) async fn logged(p: Play) -> Checked {
    if !p.store.keeps_events() {
        return Ok(());
    }
    let graph = asking().map_err(text)?;
    for durability in [Durability::Sync, Durability::Async] {
        let thread = p.thread(&graph, format!("{durability:?}"));
        let long = "long ".repeat(2000);
        let run = thread.run(log(&*long)).durability(durability);
        run.await.map_err(text)?;
        to_the_end(&thread, durability).await?;
        let logged = thread.events(&LogQuery::default()).await.map_err(text)?;
        let mut kinds = kinds(&logged)?;
        // Siblings finish in any order.
        if let Some(siblings) = kinds.get_mut(3..5) {
            siblings.sort_unstable();
        }
        let expected = [
            "checkpoint",
            "update a",
            "checkpoint",
            "interrupt ask",
            "update side",
            "update ask",
            "checkpoint",
            "update end",
            "checkpoint",
        ];
        same("the log", kinds, expected.map(str::to_owned).to_vec())?;
        let seqs: Vec<u64> = logged.iter().map(|entry| entry.seq).collect();
        same("its numbers", seqs, (1..=9).collect())?;
        let state = thread
            .snapshot(None)
            .await
            .map_err(text)?
            .ok_or("nothing is there")?;
        same("the first line", state.state.log.first(), Some(&long))?;
    }
    Ok(())
}

pub(in crate::conformance) async fn logged_once(p: Play) -> Checked {
    if !p.store.keeps_events() {
        return Ok(());
    }
    let long = "long ".repeat(2000);
    let graph = Graph::<Case>::new("long")
        .node(
            "a",
            with(long.clone(), async |long: &String, _: &Case, _: &Ctx| {
                Ok(log(long.clone()).items([(1, long.clone())]).turn(1))
            }),
        )
        .start("a")
        .end("a")
        .build()
        .map_err(text)?;
    for durability in ALL {
        let thread = p.thread(&graph, format!("{durability:?}"));
        thread
            .run(Case::update())
            .durability(durability)
            .await
            .map_err(text)?;
        let logged = thread.events(&LogQuery::default()).await.map_err(text)?;
        let events: Result<Vec<Value>, _> = logged
            .iter()
            .map(|entry| serde_json::from_str(&entry.json))
            .collect();
        let events = events.map_err(text)?;
        let update = events.iter().find(|event| event["type"] == "update");
        let update = update
            .ok_or("the update is not told")?
            .get("update")
            .cloned();
        let expected = json!({"turn": 1, "log": [long], "items": [[1, long]]});
        same("the update", update, Some(expected))?;
    }
    Ok(())
}
