//! A thread at one checkpoint, as readers see it: the state, what is due, and how each task stands.

use crate::{
    CheckpointId, Error, FailureKind, Interrupt, Name, RunId, State, TaskId,
    checkpoint::{HistoryQuery, Loaded, Metadata, Note, NoteKind, Scope, Source, Store},
    edit::Spot,
    graph::Shape,
    live::Live,
    run::Status,
    session::Session,
    state::PatchKind,
    subgraph::owner,
    thread::outside,
    wire,
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::Arc};

/// A thread at one checkpoint.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot<S> {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// The one it follows.
    pub parent: Option<CheckpointId>,
    /// How, when and by whom it was written.
    pub metadata: Metadata,
    /// Whether the run is over. An empty `next` does not say that: after a crash all tasks may be
    /// done and the superstep still open.
    pub finished: bool,
    /// The state.
    pub state: Arc<S>,
    /// The channels that were ever written; the others have their defaults.
    pub written: Vec<&'static str>,
    /// The nodes that are not done; at a named checkpoint, all that were due there.
    pub next: Vec<Name>,
    /// The tasks of the open superstep.
    pub tasks: Vec<TaskView>,
    /// All open questions.
    pub interrupts: Vec<Interrupt>,
}

/// How one task stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskView {
    /// Stays the same however often it runs.
    pub id: TaskId,
    /// Its node.
    pub node: Name,
    /// Whether it has finished.
    pub done: bool,
    /// What it was sent, if it was sent something.
    pub payload: Option<Value>,
    /// What it wrote, once it has finished. Of a task that was alone in its superstep this is what the
    /// next checkpoint changed: the value after it, where that is not a list.
    pub result: Option<Value>,
    /// Why its last run failed, if it did.
    pub error: Option<TaskError>,
    /// What it asks now.
    pub interrupts: Vec<Interrupt>,
    /// All it ever asked here, answered or not.
    pub asked: Vec<Interrupt>,
    /// The answers it was given here, by interrupt.
    pub answers: BTreeMap<String, Value>,
    /// The subgraph that runs in it, if its node is one.
    pub child: Option<ChildView>,
}

/// Why a task failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskError {
    /// The kind.
    pub kind: FailureKind,
    /// The error's text.
    pub message: String,
    /// How often it was tried.
    pub attempts: u32,
}

/// A subgraph in a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChildView {
    /// Its namespace, for [`crate::Thread::subgraph`].
    pub namespace: String,
    /// Its newest checkpoint in this task, or where it stood before; nothing if it has not begun.
    pub checkpoint: Option<CheckpointId>,
}

/// Reads a snapshot of a graph or subgraph.
pub(crate) async fn read<S: State>(
    shape: &Shape<S>,
    store: &Store,
    spot: Spot<Arc<S>>,
) -> Result<Option<Snapshot<S>>, Error> {
    let at = spot.at;
    let session = outside(shape, store, spot.scope, (RunId::fresh(), 0));
    let Some(loaded) = store.load(session.scope(), at).await? else {
        return Ok(None);
    };
    let (notes, parent) = (loaded.notes.clone(), loaded.parent);
    let (checkpoint, metadata) = (loaded.id, loaded.metadata.clone());
    let mut live = Live::restore(shape, &session, spot.base, loaded)?;
    let mut tasks = views(shape, &session, &live, &notes)?;
    children(shape, store, &session, &live, &mut tasks).await?;
    if at.is_some() {
        result_of_single(shape, store, &session, checkpoint, &mut tasks).await?;
    }
    let written = live.written().iter().zip(S::CHANNELS);
    let written = written.filter_map(|(w, c)| w.then_some(c.name)).collect();
    let state = if at.is_some() {
        std::mem::take(&mut live.state)
    } else {
        Arc::new(live.shown())
    };
    let mut next = crate::start::next(&live, shape);
    if at.is_some() {
        next = live
            .run
            .tasks
            .iter()
            .map(|t| shape.topology.name(t.node))
            .collect();
        next.dedup();
    }
    Ok(Some(Snapshot {
        checkpoint,
        parent,
        metadata,
        finished: live.run.is_over(),
        state,
        written,
        next,
        tasks,
        interrupts: live.run.waiting(),
    }))
}

fn views<S: State>(
    shape: &Shape<S>,
    session: &Session,
    live: &Live<S>,
    notes: &[Note],
) -> Result<Vec<TaskView>, Error> {
    let mut views = Vec::new();
    for task in &live.run.tasks {
        let payload = task.payload.as_ref();
        let mut view = TaskView {
            id: session.task(task.birth),
            node: shape.topology.name(task.node),
            done: task.status == Status::Done,
            payload: payload
                .map(|p| serde_json::from_str(p.get()))
                .transpose()
                .map_err(Error::store)?,
            result: None,
            error: None,
            interrupts: match &task.status {
                Status::Waiting(asked) => asked.clone(),
                Status::Due | Status::Done => Vec::new(),
            },
            asked: Vec::new(),
            answers: BTreeMap::new(),
            child: None,
        };
        let id = view.id;
        for note in notes.iter().filter(|n| n.task == id) {
            view.add::<S>(note)?;
        }
        views.push(view);
    }
    Ok(views)
}

impl TaskView {
    fn add<S: State>(&mut self, note: &Note) -> Result<(), Error> {
        match note.kind {
            NoteKind::Done => {
                self.result = Some(wire::result::<S>(&note.json)?);
                self.error = None;
            }
            NoteKind::Question => {
                let asked: Vec<Interrupt> =
                    serde_json::from_str(&note.json).map_err(Error::store)?;
                for question in asked {
                    if !self.asked.iter().any(|q| q.id == question.id) {
                        self.asked.push(question);
                    }
                }
                self.error = None;
            }
            NoteKind::Answer => {
                let answer = serde_json::from_str(&note.json).map_err(Error::store)?;
                self.answers.insert(note.key.clone(), answer);
            }
            NoteKind::Failure => {
                let failure: wire::Failure =
                    serde_json::from_str(&note.json).map_err(Error::store)?;
                self.error = Some(TaskError {
                    kind: failure.kind,
                    message: failure.message,
                    attempts: failure.attempts,
                });
            }
            NoteKind::Memo | NoteKind::Retry | NoteKind::Pause => {}
        }
        Ok(())
    }
}

/// Where the subgraphs in the tasks stand.
async fn children<S: State>(
    shape: &Shape<S>,
    store: &Store,
    session: &Session,
    live: &Live<S>,
    tasks: &mut [TaskView],
) -> Result<(), Error> {
    for (view, task) in tasks.iter_mut().zip(&live.run.tasks) {
        if shape.leaf[task.node] {
            continue;
        }
        let scope = session.scope();
        let prefix = if scope.namespace.is_empty() {
            String::new()
        } else {
            format!("{}|", scope.namespace)
        };
        // A persistent subgraph has the node's name alone, a stateless one the task's id too.
        for own in [format!("{}:{}", view.node, view.id), view.node.to_string()] {
            let namespace = format!("{prefix}{own}");
            let child = Scope {
                thread: scope.thread.clone(),
                namespace: namespace.as_str().into(),
            };
            let one = HistoryQuery {
                limit: Some(1),
                ..HistoryQuery::default()
            };
            if let Some(entry) = store.history(&child, &one).await?.first() {
                let newest = store.load(&child, Some(entry.id)).await?;
                let its_own = newest.and_then(|l| owner(&l)) == Some(view.id);
                // A persistent one that other tasks moved on stands where it stood at this point.
                let stood = || live.run.children.get(&namespace).copied().map(Into::into);
                view.child = Some(ChildView {
                    checkpoint: its_own.then_some(entry.id).or_else(stood),
                    namespace,
                });
                break;
            }
        }
    }
    Ok(())
}

/// A task that was alone in its superstep left no note: what it wrote is what the next checkpoint
/// changed.
async fn result_of_single<S: State>(
    shape: &Shape<S>,
    store: &Store,
    session: &Session,
    at: CheckpointId,
    tasks: &mut [TaskView],
) -> Result<(), Error> {
    let [task] = tasks else { return Ok(()) };
    if task.result.is_some() {
        return Ok(());
    }
    let after = HistoryQuery {
        parent: Some(at),
        ..HistoryQuery::default()
    };
    let entries = store.history(session.scope(), &after).await?;
    let Some(entry) = entries.iter().find(|e| e.metadata.source == Source::Loop) else {
        return Ok(());
    };
    if let Some(next) = store.load(session.scope(), Some(entry.id)).await? {
        task.result = Some(Value::Object(changed(shape, &next)?));
        task.done = true;
        // What went wrong before it succeeded is no longer how it stands.
        task.error = None;
    }
    Ok(())
}

fn changed<S: State>(shape: &Shape<S>, next: &Loaded) -> Result<Map<String, Value>, Error> {
    let mut map = Map::new();
    for channel in &next.changed {
        let pieces = next.channels.iter().find(|(name, _)| name == channel);
        let Some(piece) = pieces.and_then(|(_, pieces)| pieces.last()) else {
            continue;
        };
        let json = serde_json::from_slice(&piece.json).map_err(|e| Error::Corrupt {
            thread: shape.name.to_string(),
            checkpoint: next.id,
            why: e.to_string(),
        })?;
        let json = match piece.kind {
            PatchKind::Edit => edited(&json),
            PatchKind::Whole | PatchKind::Append => json,
        };
        map.insert(channel.clone(), json);
    }
    Ok(map)
}

/// The items of an edit as one list: those that were replaced, then those that are new.
fn edited(edit: &Value) -> Value {
    let list = |key: &str| {
        edit.get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let replaced = list("set").filter_map(|pair| pair.get(1));
    replaced.chain(list("append")).cloned().collect()
}

impl<S: State> Snapshot<S> {
    /// The same with the state as JSON, as far as it is part of the graph's output.
    pub(crate) fn into_json(self, shape: &Shape<S>) -> Result<Snapshot<Value>, Error> {
        let state = crate::event::project(&*self.state, shape.output.as_deref())?;
        Ok(Snapshot {
            checkpoint: self.checkpoint,
            parent: self.parent,
            metadata: self.metadata,
            finished: self.finished,
            state: Arc::new(state),
            written: self.written,
            next: self.next,
            tasks: self.tasks,
            interrupts: self.interrupts,
        })
    }
}
