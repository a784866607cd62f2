//! A thread's past as it can be compared: without ids and times, subgraphs included.
//!
//! Called by `check` on what was killed, and by `trial` for what the same graph leaves in memory when nobody
//! kills it.

use std::collections::BTreeMap;

use paraph_graph::{
    CheckpointId, Graph, HistoryQuery, MemoryStore, RunId, Scope, Snapshot, State, Store, TaskView,
};
use serde_json::{Value, json};

use crate::Fault;
use crate::child::{Drive, durability};
use crate::graphs::{Case, Shape};
use crate::outside::Outside;

/// How a run goes that nobody kills.
#[derive(Clone, Debug, PartialEq)]
pub struct Uncut {
    /// The final state.
    pub state: Value,
    /// The checkpoints of the graph and of each subgraph it called, oldest first.
    pub past: BTreeMap<String, Vec<Value>>,
}

/// Runs a graph to its end in memory, with a world that does nothing.
///
/// # Errors
/// Those of the engine.
pub async fn uncut(shape: Shape, durability_name: &str) -> Result<Uncut, Fault> {
    let drive = Drive {
        graph: shape.graph(&Outside::nowhere())?,
        store: MemoryStore::shared(),
        rows: None,
        run: RunId::fresh(),
        durability: durability(durability_name)?,
    };
    drive.to_the_end("uncut", |_| {}).await?;
    read(&drive.graph, &drive.store, ("uncut", true)).await
}

/// Reads how a thread went. Of a subgraph either all checkpoints, or only those that its newest one follows:
/// where a superstep of the parent may be lost, what the subgraph saved in it stays as a branch that nobody is on.
///
/// # Errors
/// Those of the store; a thread that is not there.
pub(crate) async fn read(
    graph: &Graph<Case>,
    store: &Store,
    (name, whole): (&str, bool),
) -> Result<Uncut, Fault> {
    let thread = graph.thread(store, name);
    let head = thread
        .snapshot(None)
        .await?
        .ok_or("the thread is not there")?;
    let mut past = BTreeMap::new();
    let mut own = Vec::new();
    let mut below: Vec<(String, String)> = Vec::new();
    for id in ids(store, name, "").await? {
        let at = thread
            .snapshot(Some(id))
            .await?
            .ok_or("a checkpoint is gone")?;
        let superstep = at.metadata.superstep;
        let children = at
            .tasks
            .iter()
            .filter_map(|task| Some((task, task.child.as_ref()?)));
        below.extend(children.map(|(task, child)| {
            // A namespace with a task's id in it is one call, the other kind is one for all calls.
            let label = match child.namespace.contains(':') {
                true => format!("{} of superstep {superstep}", task.node),
                false => child.namespace.clone(),
            };
            (label, child.namespace.clone())
        }));
        own.push(moment(&at, graph_state(&at.state)?));
    }
    past.insert(String::new(), own);
    for (label, namespace) in below {
        let mut moments = Vec::new();
        let mut follows = None;
        for id in ids(store, name, &namespace).await?.into_iter().rev() {
            let at = thread.subgraph(&namespace, Some(id)).await?;
            let at = at.ok_or("a checkpoint is gone")?;
            if whole || follows.is_none_or(|before| before == Some(id)) {
                follows = Some(at.parent);
                let state = (*at.state).clone();
                moments.push(moment(&at, state));
            }
        }
        moments.reverse();
        past.insert(label, moments);
    }
    Ok(Uncut {
        state: graph_state(&head.state)?,
        past,
    })
}

fn graph_state(state: &Case) -> Result<Value, Fault> {
    Ok(state.to_json()?)
}

/// The checkpoints of a scope, oldest first.
pub(crate) async fn ids(
    store: &Store,
    thread: &str,
    namespace: &str,
) -> Result<Vec<CheckpointId>, Fault> {
    let scope = Scope {
        thread: thread.into(),
        namespace: namespace.into(),
    };
    let query = HistoryQuery::default();
    let entries = store.history(&scope, &query).await?;
    Ok(entries.iter().rev().map(|entry| entry.id).collect())
}

fn moment<S>(at: &Snapshot<S>, state: Value) -> Value {
    json!({
        "source": at.metadata.source,
        "superstep": at.metadata.superstep,
        "has_parent": at.parent.is_some(),
        "finished": at.finished,
        "state": state,
        "next": at.next,
        "tasks": at.tasks.iter().map(task).collect::<Vec<_>>(),
    })
}

fn task(task: &TaskView) -> Value {
    // That a disk was full once stays written down; it says nothing of a task that is done.
    let error = task.error.as_ref().filter(|_| !task.done);
    json!({
        "node": task.node,
        "payload": task.payload,
        "done": task.done,
        "result": task.result,
        "error": error,
        "asked": task.asked.iter().map(|asked| json!([asked.key, asked.question])).collect::<Vec<_>>(),
        "answers": task.answers.values().collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_uncut_run_has_all_its_supersteps_and_those_of_its_subgraphs() {
        let steps = uncut(Shape::Steps, "sync").await.unwrap();
        assert_eq!(steps.past[""].len(), 4);
        assert_eq!(steps.state["sum"], 3);
        let branched = uncut(Shape::Branched, "sync").await.unwrap();
        let lengths: Vec<(&str, usize)> = branched
            .past
            .iter()
            .map(|(label, past)| (label.as_str(), past.len()))
            .collect();
        let expected = [
            ("", 7),
            ("lasting", 4),
            ("passing of superstep 0", 3),
            ("passing of superstep 3", 3),
        ];
        assert_eq!(lengths, expected);
        assert_eq!(
            branched.state["last"],
            "keep in 0 after 0, keep in 1 after 1"
        );
    }

    #[tokio::test]
    async fn two_uncut_runs_are_equal() {
        for durability in ["sync", "async", "exit"] {
            for shape in Shape::ALL {
                let (one, other) = (
                    uncut(shape, durability).await,
                    uncut(shape, durability).await,
                );
                assert_eq!(one.unwrap(), other.unwrap(), "{shape} {durability}");
            }
        }
    }
}
