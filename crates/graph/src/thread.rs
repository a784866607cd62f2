//! A thread: one conversation or case on a store. Run it, answer it, look back, fork, write to it.

use crate::{
    CheckpointId, Command, Error, Graph, RunId, RunOptions, Snapshot, Start, State,
    any::{AnyWrite, AsNode, Base},
    checkpoint::{Entry, HistoryQuery, Scope, Store},
    edit::{self, Spot, Write},
    graph::Shape,
    log::{LogQuery, Logged},
    name::Name,
    session::{RunShared, Session},
    snapshot,
    start::{Ask, to_answer},
};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

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
        let spot = Spot {
            scope: self.scope(),
            at,
            base: None,
        };
        snapshot::read(&self.graph.0, &self.store, spot).await
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

    /// What the runs of the thread told, as its store kept it ([`RunOptions::log`]); nothing where the
    /// store keeps no events.
    ///
    /// # Errors
    /// [`Error::BadThread`], [`Error::Store`], [`Error::Corrupt`].
    pub async fn events(&self, query: &LogQuery) -> Result<Vec<Logged>, Error> {
        check_name(&self.name)?;
        match self.store.event_log() {
            Some(log) => log.events(&self.name, query).await,
            None => Ok(Vec::new()),
        }
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
        check_name(&self.name)?;
        let (inner, spot) = self.inside(namespace, at).await?;
        inner.snapshot_json(self.store.clone(), spot).await
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
        let (inner, spot) = self.inside(namespace, None).await?;
        let write = match as_node {
            None => AnyWrite::State(update),
            Some(node) => AnyWrite::As(vec![AsNode::of(node, update)]),
        };
        inner.write_json(self.store.clone(), spot, write).await
    }

    /// The graph that a namespace leads to, and the place of its checkpoints.
    pub(crate) async fn inside(
        &self,
        namespace: &str,
        at: Option<CheckpointId>,
    ) -> Result<(crate::node::Inner, Spot<Base>), Error> {
        let mut inner: crate::node::Inner = self.graph.0.clone();
        let mut spot = Spot {
            scope: self.scope(),
            at: None,
            base: None,
        };
        for level in namespace.split('|') {
            let node = level.split(':').next().unwrap_or(level);
            let child = inner.child(node).ok_or_else(|| Error::UnknownNode {
                graph: self.graph.0.name.clone(),
                node: namespace.to_owned(),
            })?;
            let scope = match &*spot.scope.namespace {
                "" => self.scope_of(level),
                outer => self.scope_of(&format!("{outer}|{level}")),
            };
            let base = inner.base(self.store.clone(), spot, level.to_owned());
            spot = Spot {
                base: base.await?,
                scope,
                at: None,
            };
            inner = child;
        }
        spot.at = at;
        Ok((inner, spot))
    }

    /// Goes back to a checkpoint: a new branch begins there, what came after stays as it is. Its
    /// tasks are due again, with new keys and new questions.
    ///
    /// # Errors
    /// [`Error::UnknownCheckpoint`], or [`Error::Conflict`] while a run drives the thread.
    pub async fn fork(&self, at: CheckpointId) -> Result<CheckpointId, Error> {
        self.write(Some(at), Write::Fork).await
    }

    /// [`Thread::fork`] and [`Thread::update`] in one step.
    ///
    /// # Errors
    /// Those of both.
    pub async fn fork_with(
        &self,
        at: CheckpointId,
        update: S::Update,
    ) -> Result<CheckpointId, Error> {
        self.write(Some(at), Write::State(update)).await
    }

    /// [`Thread::update_all`] at a checkpoint: a new branch begins there.
    ///
    /// # Errors
    /// As there, and [`Error::UnknownCheckpoint`].
    pub async fn fork_as(
        &self,
        at: CheckpointId,
        updates: impl IntoIterator<Item = (Name, Command<S>)>,
    ) -> Result<CheckpointId, Error> {
        let updates = updates.into_iter().collect();
        self.write(Some(at), Write::As(updates)).await
    }

    /// Writes to the state; what is due or waiting stays so, and what finished siblings wrote too.
    ///
    /// # Errors
    /// [`Error::Conflict`] while a run drives the thread; [`Error::Refused`].
    pub async fn update(&self, update: S::Update) -> Result<CheckpointId, Error> {
        self.write(None, Write::State(update)).await
    }

    /// Writes to the state as if `node` had just run and returned the update: its routing decides
    /// what is due. What has finished in the open superstep counts, with its routing; what has not
    /// is due no more. [`crate::START`] writes as an input does, [`crate::END`] leaves nothing due.
    /// For a node with commands it takes the `Command` that the node might have returned.
    ///
    /// # Errors
    /// [`Error::UnknownNode`], and those of [`Thread::update`] and of the node's routing.
    pub async fn update_as(
        &self,
        node: impl Into<Name>,
        update: impl Into<Command<S>>,
    ) -> Result<CheckpointId, Error> {
        let update = (node.into(), update.into());
        self.write(None, Write::As(vec![update])).await
    }

    /// Writes to the state as if these nodes had run together in one superstep.
    ///
    /// # Errors
    /// As [`Thread::update_as`]; [`Error::TwoWriters`]; [`Error::EmptyCommand`] for no nodes.
    pub async fn update_all(
        &self,
        updates: impl IntoIterator<Item = (Name, Command<S>)>,
    ) -> Result<CheckpointId, Error> {
        let updates = updates.into_iter().collect();
        self.write(None, Write::As(updates)).await
    }

    async fn write(
        &self,
        at: Option<CheckpointId>,
        write: Write<S>,
    ) -> Result<CheckpointId, Error> {
        let spot = Spot {
            scope: self.scope(),
            at,
            base: None,
        };
        edit::write(&self.graph.0, &self.store, spot, write).await
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
}

/// A session for looking at a thread or writing to it, without a run.
pub(crate) fn outside<S: State>(
    shape: &Shape<S>,
    store: &Store,
    scope: Scope,
    (run, epoch): (RunId, u64),
) -> Session {
    let shared = RunShared {
        outside: true,
        ..RunShared::new(run, epoch, RunOptions::default(), shape.clock.clone())
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
