//! Writing to a thread between runs: to its state, as nodes, on a new branch, in a subgraph.
//!
//! Called by `thread.rs` and `any.rs`. Each write takes the thread's lease and is one put. How an
//! update is folded and where nodes lead is decided in `live.rs`.

use crate::{
    CheckpointId, Command, Error, RunId, State,
    any::Base,
    attempt::Tried,
    checkpoint::{Claim, Note, NoteKind, Notes, Scope, Source, Store},
    graph::Shape,
    ids::{Birth, TaskId},
    live::Live,
    name::Name,
    run::{Status, Task},
    session::Session,
    start::{load, older, restore_at},
    subgraph::owner,
    thread::{check_name, outside},
};
use std::sync::Arc;

/// A place on a thread: a scope, and a checkpoint of it.
pub struct Spot<B> {
    /// The thread, and the subgraph.
    pub scope: Scope,
    /// The checkpoint; the head, if none.
    pub at: Option<CheckpointId>,
    /// In a subgraph over its parent's state: that state.
    pub base: Option<B>,
}

impl Spot<Base> {
    pub(crate) fn typed<S: State>(self) -> Spot<Arc<S>> {
        Spot {
            scope: self.scope,
            at: self.at,
            base: self.base.and_then(|base| base.downcast().ok()),
        }
    }
}

/// What is written.
pub(crate) enum Write<S: State> {
    /// Nothing: the tasks of the checkpoint are due again, on a new branch.
    Fork,
    /// To the state; what is due stays so.
    State(S::Update),
    /// As if these nodes had run.
    As(Vec<(Name, Command<S>)>),
}

/// Takes the thread and writes to it; the checkpoint that came of it.
pub(crate) async fn write<S: State>(
    shape: &Shape<S>,
    store: &Store,
    spot: Spot<Arc<S>>,
    write: Write<S>,
) -> Result<CheckpointId, Error> {
    check_name(&spot.scope.thread)?;
    let run = RunId::fresh();
    let lease = store
        .lease(&spot.scope.thread, Claim { run, start: None })
        .await?;
    let session = outside(shape, store, spot.scope, (run, lease.epoch));
    let head = load(&session, None).await?;
    let at = match (spot.at, &head) {
        // At the head there is nothing to branch from; but a fork forgets what tasks have left.
        (Some(at), Some(head)) if at == head.id && !matches!(write, Write::Fork) => None,
        (at, _) => at,
    };
    let older = older(&session, at).await?;
    let notes = head.as_ref().map(|h| h.notes.clone()).unwrap_or_default();
    let live = restore_at(shape, &session, spot.base, (head, older))?;
    let id = match write {
        Write::As(updates) => write_as(live, shape, &session, updates).await,
        Write::State(update) if at.is_none() => {
            put_update(live, shape, &session, (update, notes)).await
        }
        Write::State(update) => branch(live, shape, &session, Some(update)).await,
        Write::Fork => branch(live, shape, &session, None).await,
    };
    drop(lease);
    id
}

async fn put_update<S: State>(
    mut live: Live<S>,
    shape: &Shape<S>,
    session: &Session,
    (update, notes): (S::Update, Vec<Note>),
) -> Result<CheckpointId, Error> {
    live.apply(shape, update)?;
    let id = session.journal.next_id();
    live.run.superstep += 1;
    live.save(shape, session, (id, Source::Update), notes)
        .await?;
    Ok(id)
}

async fn branch<S: State>(
    mut live: Live<S>,
    shape: &Shape<S>,
    session: &Session,
    update: Option<S::Update>,
) -> Result<CheckpointId, Error> {
    let id = session.journal.next_id();
    live.run.renew(id.uuid());
    live.reset_tasks();
    let source = match update {
        None => Source::Fork,
        Some(update) => {
            live.apply(shape, update)?;
            Source::Update
        }
    };
    live.run.superstep += 1;
    live.save(shape, session, (id, source), Vec::new()).await?;
    Ok(id)
}

async fn write_as<S: State>(
    mut live: Live<S>,
    shape: &Shape<S>,
    session: &Session,
    updates: Vec<(Name, Command<S>)>,
) -> Result<CheckpointId, Error> {
    if updates.is_empty() {
        return Err(Error::EmptyCommand);
    }
    wake_parents(&live, session).await?;
    let outside = |name: &Name| *name == crate::START || *name == crate::END;
    if updates.len() == 1 && updates.iter().any(|(name, _)| outside(name)) {
        for (name, command) in updates {
            let enters = name == crate::START;
            live.written_outside(shape, session, command.update, enters)
                .await?;
        }
    } else {
        live.close_as(shape, updates)?;
        live.commit(shape, session, Source::Update).await?;
    }
    session
        .journal
        .head()
        .ok_or_else(|| Error::NothingToResume(session.scope().to_string()))
}

impl<S: State> Live<S> {
    /// Puts `updates` in the place of what is open in the superstep. What has finished in it stays,
    /// but for the nodes that are named.
    fn close_as(
        &mut self,
        shape: &Shape<S>,
        updates: Vec<(Name, Command<S>)>,
    ) -> Result<(), Error> {
        let mut given = Vec::new();
        for (name, update) in updates {
            let node = shape.topology.find(&name);
            let node = node.ok_or_else(|| Error::UnknownNode {
                graph: shape.name.clone(),
                node: name.to_string(),
            })?;
            given.push((node, update));
        }
        let old = std::mem::take(&mut self.run.tasks);
        let done = std::mem::take(&mut self.done);
        let finished = old.into_iter().zip(done).filter_map(|(task, done)| {
            let named = given.iter().any(|(node, _)| *node == task.node);
            Some((task, done.filter(|_| !named)?))
        });
        let mut all: Vec<(Task, Command<S>)> = finished.collect();
        for ((node, update), index) in given.into_iter().zip(0..) {
            all.push((done_task(node, index), update));
        }
        // Folded in the order in which the superstep itself would have folded them.
        all.sort_by_key(|(task, _)| {
            (
                task.payload.is_some(),
                task.payload.is_none().then_some(task.node),
            )
        });
        for (task, update) in all {
            self.run.tasks.push(task);
            self.done.push(Some(update));
        }
        Ok(())
    }

    /// Writes as an input does, or leaves nothing due.
    async fn written_outside(
        &mut self,
        shape: &Shape<S>,
        session: &Session,
        update: S::Update,
        enters: bool,
    ) -> Result<(), Error> {
        self.keep_finished(shape);
        self.run.clear();
        self.apply(shape, update)?;
        if enters {
            self.enter(shape)?;
        }
        self.open(shape, session, Source::Update).await
    }
}

fn done_task(node: usize, index: u32) -> Task {
    Task {
        node,
        birth: Birth {
            at: uuid::Uuid::nil(),
            index,
        },
        payload: None,
        timeout: None,
        status: Status::Done,
        failed: None,
    }
}

/// Makes the tasks due again above a subgraph that is written to as its nodes: their questions, or
/// failures, are those of a superstep that is no more.
///
/// From the top down and before the write itself: if that is lost, a task only looks again.
async fn wake_parents<S: State>(live: &Live<S>, session: &Session) -> Result<(), Error> {
    let Some(store) = &session.journal.store else {
        return Ok(());
    };
    let mut above: Vec<(Scope, CheckpointId, TaskId)> = Vec::new();
    let mut task = live.run.owner;
    let mut namespace: &str = &session.scope().namespace;
    while let (Some(id), false) = (task, namespace.is_empty()) {
        namespace = namespace.rsplit_once('|').map_or("", |(outer, _)| outer);
        let scope = Scope {
            thread: session.scope().thread.clone(),
            namespace: namespace.into(),
        };
        let Some(head) = store.load(&scope, None).await? else {
            break;
        };
        task = owner(&head);
        above.push((scope, head.id, id));
    }
    for (scope, head, task) in above.iter().rev() {
        let again = serde_json::to_string(&Tried::default()).map_err(Error::store)?;
        let note = Note {
            task: *task,
            kind: NoteKind::Retry,
            key: String::new(),
            json: again,
        };
        let epoch = session.run.epoch;
        let notes = Notes {
            at: *head,
            epoch,
            notes: vec![note],
            events: Vec::new(),
        };
        store.note(scope, notes).await?;
    }
    Ok(())
}
