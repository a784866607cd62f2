//! A thread: one conversation or case on a store. Run it, answer it, look back, fork, write to it.

use crate::{
    CheckpointId, Command, Error, Graph, RunId, RunOptions, Snapshot, Start, State,
    checkpoint::{Entry, HistoryQuery, Scope, Source, Store},
    control::Control,
    graph::Shape,
    ids::Birth,
    live::Live,
    name::Name,
    run::{Status, Task},
    session::{RunShared, Session},
    snapshot,
    start::{Ask, load, restore_at, to_answer},
};
use serde::Serialize;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// The longest name of a thread, in characters.
const LONGEST_NAME: usize = 200;

pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    match name.chars().count() {
        1..=LONGEST_NAME => Ok(()),
        n => Err(Error::BadThread(n)),
    }
}

/// A conversation or case on a store. Holds nothing itself; any process may open it again.
pub struct Thread<S: State> {
    pub(crate) graph: Graph<S>,
    pub(crate) store: Store,
    pub(crate) name: String,
}

impl<S: State> Thread<S> {
    /// The thread's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn start(&self, ask: Ask<S>) -> Start<S> {
        let place = (self.store.clone(), self.name.clone());
        Start::new(self.graph.clone(), Some(place), ask)
    }

    /// A run with this input, on the state the thread has. Questions that were open are dropped.
    pub fn run(&self, input: S::Update) -> Start<S> {
        self.start(Ask::Input(Command::update(input)))
    }

    /// A run that begins with a write and at the nodes named, instead of at the start.
    pub fn command(&self, command: Command<S>) -> Start<S> {
        self.start(Ask::Command(command))
    }

    /// Goes on where the thread stopped: after a failure, a crash, a limit, a breakpoint, a drain.
    /// Tasks that wait for an answer go on waiting.
    pub fn resume(&self) -> Start<S> {
        self.start(Ask::Continue)
    }

    /// Answers one open question and goes on.
    pub fn answer(&self, interrupt: &str, answer: impl Serialize) -> Start<S> {
        self.start(Ask::Answers(vec![(
            interrupt.to_owned(),
            to_answer(answer),
        )]))
    }

    /// Answers several open questions and goes on. Tasks without an answer are not run.
    pub fn answers(&self, answers: impl IntoIterator<Item = (String, Value)>) -> Start<S> {
        let answers = answers.into_iter().map(|(id, answer)| (id, Ok(answer)));
        self.start(Ask::Answers(answers.collect()))
    }

    /// The thread as it is now, or as it was at a checkpoint; `None` if there is nothing.
    ///
    /// Now means: with what finished tasks of the open superstep wrote. At a named checkpoint the
    /// state is the one that was saved there.
    ///
    /// # Errors
    /// [`Error::BadThread`], [`Error::Store`], [`Error::Corrupt`], [`Error::UnknownNode`].
    pub async fn snapshot(&self, at: Option<CheckpointId>) -> Result<Option<Snapshot<S>>, Error> {
        check_name(&self.name)?;
        snapshot::read(&self.graph.0, &self.store, self.scope(), at).await
    }

    /// All checkpoints, newest first.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn history(&self) -> Result<Vec<Entry>, Error> {
        self.history_of(&HistoryQuery::default()).await
    }

    /// Some checkpoints, newest first.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn history_of(&self, query: &HistoryQuery) -> Result<Vec<Entry>, Error> {
        self.store.history(&self.scope(), query).await
    }

    /// The snapshot of a subgraph, by the namespace that its task's view names; as JSON.
    ///
    /// # Errors
    /// [`Error::UnknownNode`] if the namespace leads to no subgraph; those of a store.
    pub async fn subgraph(
        &self,
        namespace: &str,
        at: Option<CheckpointId>,
    ) -> Result<Option<Snapshot<Value>>, Error> {
        let inner = self.inner(namespace)?;
        inner
            .snapshot_json(self.store.clone(), self.scope_of(namespace), at)
            .await
    }

    /// Writes to the state of a subgraph, as [`Thread::update`] or [`Thread::update_as`].
    ///
    /// # Errors
    /// As there, and [`Error::UnknownNode`] if the namespace leads to no subgraph.
    pub async fn update_subgraph(
        &self,
        namespace: &str,
        update: Value,
        as_node: Option<String>,
    ) -> Result<CheckpointId, Error> {
        let inner = self.inner(namespace)?;
        let scope = self.scope_of(namespace);
        inner
            .update_json(self.store.clone(), scope, update, as_node)
            .await
    }

    fn inner(&self, namespace: &str) -> Result<crate::node::Inner, Error> {
        let mut inner: crate::node::Inner = self.graph.0.clone();
        for level in namespace.split('|') {
            let node = level.split(':').next().unwrap_or(level);
            inner = inner.child(node).ok_or_else(|| Error::UnknownNode {
                graph: self.graph.0.name.clone(),
                node: namespace.to_owned(),
            })?;
        }
        Ok(inner)
    }

    /// Goes back to a checkpoint: a new branch begins there, what came after stays as it is. Its
    /// tasks are due again, with new keys and new questions.
    ///
    /// # Errors
    /// [`Error::UnknownCheckpoint`], or [`Error::Conflict`] while a run drives the thread.
    pub async fn fork(&self, at: CheckpointId) -> Result<CheckpointId, Error> {
        self.write(Some(at), |mut live, shape, session, _| {
            Box::pin(async move {
                let id = CheckpointId::fresh();
                live.run.renew(id.uuid());
                live.reset_tasks();
                live.run.superstep += 1;
                live.save(shape, session, (id, Source::Fork), Vec::new())
                    .await?;
                Ok(id)
            })
        })
        .await
    }

    /// Writes to the state; what is due or waiting stays so, and what finished siblings wrote too.
    ///
    /// # Errors
    /// [`Error::Conflict`] while a run drives the thread; [`Error::Refused`].
    pub async fn update(&self, update: S::Update) -> Result<CheckpointId, Error> {
        update_scope(
            &self.graph.0,
            &self.store,
            self.scope(),
            Command::update(update),
            None,
        )
        .await
    }

    /// Writes to the state as if `node` had just run alone and returned the update: its routing
    /// decides what is due. [`crate::START`] writes as an input does, [`crate::END`] leaves nothing
    /// due. For a node with commands it takes the `Command` that the node might have returned.
    ///
    /// # Errors
    /// [`Error::UnknownNode`], and those of [`Thread::update`] and of the node's routing.
    pub async fn update_as(
        &self,
        node: impl Into<Name>,
        update: impl Into<Command<S>>,
    ) -> Result<CheckpointId, Error> {
        let (node, update) = (Some(node.into()), update.into());
        update_scope(&self.graph.0, &self.store, self.scope(), update, node).await
    }

    /// Writes to the state as if these nodes had run together in one superstep.
    ///
    /// # Errors
    /// As [`Thread::update_as`], and [`Error::TwoWriters`].
    pub async fn update_all(
        &self,
        updates: impl IntoIterator<Item = (Name, Command<S>)>,
    ) -> Result<CheckpointId, Error> {
        let updates: Vec<_> = updates.into_iter().collect();
        self.write(None, |live, shape, session, _| {
            Box::pin(write_as(live, shape, session, updates))
        })
        .await
    }

    fn scope(&self) -> Scope {
        self.scope_of("")
    }

    fn scope_of(&self, namespace: &str) -> Scope {
        Scope {
            thread: self.name.as_str().into(),
            namespace: namespace.into(),
        }
    }

    async fn write<T>(
        &self,
        at: Option<CheckpointId>,
        work: impl for<'a> FnOnce(
            Live<S>,
            &'a Shape<S>,
            &'a Session,
            Vec<crate::checkpoint::Note>,
        ) -> futures::future::BoxFuture<'a, Result<T, Error>>,
    ) -> Result<T, Error> {
        write(&self.graph.0, &self.store, (self.scope(), at), work).await
    }
}

/// Takes the thread, loads it, and lets `work` write to it.
async fn write<S: State, T>(
    shape: &Shape<S>,
    store: &Store,
    (scope, at): (Scope, Option<CheckpointId>),
    work: impl for<'a> FnOnce(
        Live<S>,
        &'a Shape<S>,
        &'a Session,
        Vec<crate::checkpoint::Note>,
    ) -> futures::future::BoxFuture<'a, Result<T, Error>>,
) -> Result<T, Error> {
    check_name(&scope.thread)?;
    let run = RunId::fresh();
    let lease = store.lease(&scope.thread, run).await?;
    let session = outside(shape, store, scope, (run, lease.epoch));
    let head = load(&session, None).await?;
    let older = match at {
        None => None,
        Some(at) => {
            let unknown = || Error::UnknownCheckpoint {
                thread: session.scope().to_string(),
                checkpoint: at,
            };
            Some(load(&session, Some(at)).await?.ok_or_else(unknown)?)
        }
    };
    let notes = head.as_ref().map(|h| h.notes.clone()).unwrap_or_default();
    let live = restore_at(shape, &session, head, older)?;
    let written = work(live, shape, &session, notes).await;
    drop(lease);
    written
}

/// A session for looking at a thread or writing to it, without a run.
pub(crate) fn outside<S: State>(
    shape: &Shape<S>,
    store: &Store,
    scope: Scope,
    (run, epoch): (RunId, u64),
) -> Session {
    let shared = RunShared {
        id: run,
        options: RunOptions::default(),
        context: None,
        control: Control::default(),
        events: None,
        permits: None,
        epoch,
        answers: Mutex::default(),
        clock: shape.clock.clone(),
        memory: None,
    };
    let halt = shared.control.token.clone();
    Session::new(
        Arc::new(shared),
        Some(store.clone()),
        scope,
        String::new(),
        halt,
    )
}

/// [`Thread::update`] and [`Thread::update_as`], for the graph itself or a subgraph.
pub(crate) async fn update_scope<S: State>(
    shape: &Shape<S>,
    store: &Store,
    scope: Scope,
    update: Command<S>,
    as_node: Option<Name>,
) -> Result<CheckpointId, Error> {
    write(
        shape,
        store,
        (scope, None),
        |mut live, shape, session, notes| {
            Box::pin(async move {
                if let Some(node) = as_node {
                    return write_as(live, shape, session, vec![(node, update)]).await;
                }
                live.apply(shape, update.update)?;
                let id = CheckpointId::fresh();
                live.run.superstep += 1;
                live.save(shape, session, (id, Source::Update), notes)
                    .await?;
                Ok(id)
            })
        },
    )
    .await
}

async fn write_as<S: State>(
    mut live: Live<S>,
    shape: &Shape<S>,
    session: &Session,
    updates: Vec<(Name, Command<S>)>,
) -> Result<CheckpointId, Error> {
    let special = updates
        .iter()
        .find(|(n, _)| n == crate::START || n == crate::END);
    if let (Some((name, _)), 1) = (special, updates.len()) {
        let ends = name == crate::END;
        if let Some((_, command)) = updates.into_iter().next() {
            live.written_outside(shape, session, command.update, !ends)
                .await?;
        }
    } else {
        let mut tasks = Vec::new();
        let mut done = Vec::new();
        for ((name, update), index) in updates.into_iter().zip(0..) {
            let node = shape
                .topology
                .find(&name)
                .ok_or_else(|| Error::UnknownNode {
                    graph: shape.name.clone(),
                    node: name.to_string(),
                })?;
            tasks.push(Task {
                node,
                birth: Birth {
                    at: uuid::Uuid::nil(),
                    index,
                },
                payload: None,
                timeout: None,
                status: Status::Done,
                failed: None,
            });
            done.push(Some(update));
        }
        live.run.tasks = tasks;
        live.done = done;
        live.commit(shape, session, Source::Update).await?;
    }
    session
        .journal
        .head()
        .ok_or_else(|| Error::NothingToResume(session.scope().to_string()))
}

impl<S: State> Live<S> {
    /// Writes as an input does, or leaves nothing due.
    async fn written_outside(
        &mut self,
        shape: &Shape<S>,
        session: &Session,
        update: S::Update,
        enters: bool,
    ) -> Result<(), Error> {
        self.run.clear();
        self.apply(shape, update)?;
        if enters {
            self.enter(shape)?;
        }
        self.open(shape, session, Source::Update).await
    }
}
