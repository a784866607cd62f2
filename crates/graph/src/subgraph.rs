//! A graph as a node of another: in from the parent's state, out to an update of it.
//!
//! A child saves in a namespace of its own, named by the parent's task, so that it goes on where it
//! was when that task runs again. A persistent child has one namespace per thread; which of its
//! checkpoints is meant stands in the parent's checkpoint, so that time travel needs no search.

use crate::{
    CheckpointId, Command, Ctx, Error, Graph, Interrupt, Name, NodeError, RunId, State,
    checkpoint::{HistoryQuery, Loaded, Note, NoteKind, Scope, Source, Store},
    drive::{End, drive, note_open},
    edit::Spot,
    error::Kind,
    graph::{Branch, Shape},
    ids::TaskId,
    live::Live,
    node::{Call, Goto, Inner, IntoEach, IntoNode, Node, Reply},
    run::Saved,
    session::{Session, lock},
    thread::outside,
    wire::FailureKind,
};
use serde::de::DeserializeOwned;
use std::{any::TypeId, marker::PhantomData, panic::resume_unwind, sync::Arc};
use tokio::task::JoinSet;

impl<C: State> Graph<C> {
    /// Makes a node of this graph: `enter` gives it its input, from the parent's state; `leave` makes of
    /// its final state what the parent writes, or a `Command` with which the parent goes elsewhere.
    pub fn mapped<P: State, I, O, R>(&self, enter: I, leave: O) -> Mapped<C, I, O>
    where
        I: Fn(&P) -> C::Update + Send + Sync + 'static,
        O: Fn(C) -> R + Send + Sync + 'static,
        R: Into<Command<P>>,
    {
        Mapped {
            graph: self.clone(),
            enter,
            leave,
            persistent: false,
        }
    }

    /// The same as an `each` node: every send runs the graph once, with its payload.
    pub fn mapped_each<W, P: State, I, O, R>(&self, enter: I, leave: O) -> Mapped<C, I, O>
    where
        I: Fn(W, &P) -> C::Update + Send + Sync + 'static,
        O: Fn(C) -> R + Send + Sync + 'static,
        R: Into<Command<P>>,
    {
        Mapped {
            graph: self.clone(),
            enter,
            leave,
            persistent: false,
        }
    }

    /// Makes a node of this graph whose parent has the same state. It begins with that state; its own
    /// writes, and nothing else, become the parent's.
    #[must_use]
    pub fn shared(&self) -> Shared<C> {
        Shared {
            graph: self.clone(),
            choose: None,
        }
    }

    /// The same, and its final state decides where the parent goes on.
    pub fn shared_goto<G: Into<Goto>>(
        &self,
        choose: impl Fn(&C) -> G + Send + Sync + 'static,
    ) -> Shared<C> {
        Shared {
            graph: self.clone(),
            choose: Some(Box::new(move |s| choose(s).into())),
        }
    }
}

impl Ctx {
    /// Runs a graph inside this task and returns its final state. When the task runs again, the
    /// graph goes on where it was; if it had finished, it does not run again. Several calls with the
    /// same `name` are told apart by order.
    ///
    /// # Errors
    /// The graph's failure, or its open questions: pass them on with `?`.
    pub async fn call<C: State>(
        &self,
        name: &str,
        graph: &Graph<C>,
        input: C::Update,
    ) -> Result<C, NodeError> {
        let label = self.ordinal("call", name);
        let _inside = self.enter()?;
        // The subgraph's nodes take permits of their own; to hold one meanwhile could starve them.
        let held = lock(&self.permit).take();
        let had = held.is_some();
        drop(held);
        let child = Child {
            shape: &graph.0,
            ctx: self,
            label: &label,
            persistent: false,
        };
        let ran = child.run(None, || Ok(input)).await;
        if had && let Some(permits) = &self.session.run.permits {
            *lock(&self.permit) = permits.clone().acquire_owned().await.ok();
        }
        Ok(Arc::unwrap_or_clone(ran?.live.state))
    }
}

/// A graph as a node, from [`Graph::mapped`] or [`Graph::mapped_each`].
pub struct Mapped<C: State, I, O> {
    graph: Graph<C>,
    enter: I,
    leave: O,
    persistent: bool,
}

impl<C: State, I, O> Mapped<C, I, O> {
    /// Lets the graph keep its state from call to call on one thread. Only a store can keep it: without
    /// one each call begins anew.
    #[must_use]
    pub fn persistent(mut self) -> Self {
        self.persistent = true;
        self
    }
}

/// Marks the implementations for subgraphs.
pub struct Nested<R>(PhantomData<R>);

struct Sub<C: State, E, O> {
    graph: Graph<C>,
    enter: E,
    leave: O,
    persistent: bool,
}

impl<S, C, E, O> Node<S> for Sub<C, E, O>
where
    S: State,
    C: State,
    E: for<'a> Fn(&Call<'a, S>) -> Result<C::Update, NodeError> + Send + Sync + 'static,
    O: Fn(C) -> Command<S> + Send + Sync + 'static,
{
    fn call<'a>(&'a self, call: Call<'a, S>) -> Reply<'a, S> {
        Box::pin(async move {
            let child = Child {
                shape: &self.graph.0,
                ctx: call.ctx,
                label: &call.ctx.node,
                persistent: self.persistent,
            };
            let ran = child.run(None, || (self.enter)(&call)).await?;
            Ok(Command {
                child: ran.stands,
                ..(self.leave)(Arc::unwrap_or_clone(ran.live.state))
            })
        })
    }

    fn inner(&self) -> Option<Inner> {
        Some(self.graph.0.clone())
    }
}

impl<S, C, I, O, R> IntoNode<S, Nested<R>> for Mapped<C, I, O>
where
    S: State,
    C: State,
    I: Fn(&S) -> C::Update + Send + Sync + 'static,
    O: Fn(C) -> R + Send + Sync + 'static,
    R: Into<Command<S>> + 'static,
{
    fn commands(&self) -> bool {
        TypeId::of::<R>() == TypeId::of::<Command<S>>()
    }
    fn into_node(self) -> Arc<dyn Node<S>> {
        let (enter, leave) = (self.enter, self.leave);
        Arc::new(Sub {
            graph: self.graph,
            enter: move |call: &Call<'_, S>| Ok(enter(call.state)),
            leave: move |state: C| leave(state).into(),
            persistent: self.persistent,
        })
    }
}

impl<W, S, C, I, O, R> IntoEach<W, S, Nested<R>> for Mapped<C, I, O>
where
    W: DeserializeOwned + Send + 'static,
    S: State,
    C: State,
    I: Fn(W, &S) -> C::Update + Send + Sync + 'static,
    O: Fn(C) -> R + Send + Sync + 'static,
    R: Into<Command<S>> + 'static,
{
    fn commands(&self) -> bool {
        TypeId::of::<R>() == TypeId::of::<Command<S>>()
    }
    fn into_node(self) -> Arc<dyn Node<S>> {
        let (enter, leave) = (self.enter, self.leave);
        Arc::new(Sub {
            graph: self.graph,
            enter: move |call: &Call<'_, S>| Ok(enter(call.payload()?, call.state)),
            leave: move |state: C| leave(state).into(),
            persistent: self.persistent,
        })
    }
}

/// A graph that runs over its parent's state, from [`Graph::shared`] or [`Graph::shared_goto`].
pub struct Shared<S: State> {
    graph: Graph<S>,
    choose: Option<Branch<S>>,
}

impl<S: State> Shared<S> {
    /// Runs the graph over the parent's state: what it wrote, and where its final state leads.
    async fn run(&self, call: &Call<'_, S>) -> Result<Command<S>, NodeError> {
        let child = Child {
            shape: &self.graph.0,
            ctx: call.ctx,
            label: &call.ctx.node,
            persistent: false,
        };
        let base = Arc::new(call.state.clone());
        let nothing = || Ok(S::Update::default());
        let live = child.run(Some(base), nothing).await?.live;
        let goto = self.choose.as_ref().map(|choose| choose(&live.state).0);
        Ok(Command::update(live.own).and_goto_all(goto.unwrap_or_default()))
    }
}

impl<S: State> Node<S> for Shared<S> {
    fn call<'a>(&'a self, call: Call<'a, S>) -> Reply<'a, S> {
        Box::pin(async move { self.run(&call).await })
    }
    fn inner(&self) -> Option<Inner> {
        Some(self.graph.0.clone())
    }
    fn shares(&self) -> bool {
        true
    }
}

impl<S: State> IntoNode<S, Nested<()>> for Shared<S> {
    fn commands(&self) -> bool {
        self.choose.is_some()
    }
    fn into_node(self) -> Arc<dyn Node<S>> {
        Arc::new(self)
    }
}

/// The most levels, counted from the run's own graph. What walks over nested graphs may recurse.
pub(crate) const MAX_LEVELS: usize = 100;

/// How many nested graphs are polled on one stack. Unoptimised, a level takes 100 KB of the 2 MB that
/// a thread of a runtime has.
const LEVELS_A_STACK: usize = 4;

/// Drives a subgraph in a task of the runtime, which ends with the caller's.
async fn on_a_stack_of_its_own<C: State>(
    mut live: Box<Live<C>>,
    shape: &Arc<Shape<C>>,
    session: &Arc<Session>,
) -> (Box<Live<C>>, Result<End, Error>) {
    let (shape, session) = (shape.clone(), session.clone());
    let mut task = JoinSet::new();
    task.spawn(async move {
        let end = drive(&mut live, &shape, &session).await;
        (live, end)
    });
    match task.join_next().await {
        Some(Ok(driven)) => driven,
        Some(Err(e)) if e.is_panic() => resume_unwind(e.into_panic()),
        // The runtime is shutting down: nobody will poll this again.
        _ => std::future::pending().await,
    }
}

/// One call of a subgraph.
struct Child<'a, C: State> {
    shape: &'a Arc<Shape<C>>,
    ctx: &'a Ctx,
    label: &'a str,
    persistent: bool,
}

/// A subgraph that came to its end.
struct Ran<C: State> {
    live: Box<Live<C>>,
    /// For a persistent one: its namespace, and the checkpoint at which it stands.
    stands: Option<(String, CheckpointId)>,
}

impl<C: State> Child<'_, C> {
    async fn run(
        &self,
        base: Option<Arc<C>>,
        input: impl FnOnce() -> Result<C::Update, NodeError> + Send,
    ) -> Result<Ran<C>, NodeError> {
        let session = Arc::new(self.session());
        self.is_only_caller(session.scope())?;
        let level = session.scope().namespace.split('|').count();
        if level >= MAX_LEVELS {
            return Err(Error::TooDeep {
                graph: self.shape.name.clone(),
                limit: MAX_LEVELS,
            }
            .into());
        }
        session.run.settle(Some(&session.scope().namespace)).await;
        let _cut_off = CutOff(&session);
        let mut live = match self.restored(&session, base.clone()).await? {
            Restored::Running(live) => live,
            Restored::Idle(mut live) => {
                if session.journal.store.is_some() {
                    live.run.owner = Some(self.ctx.task_id());
                }
                let input = input()?;
                self.shape.check_input(&input)?;
                live.input(self.shape, &session, Command::update(input))
                    .await?;
                live
            }
        };
        let (live, end) = match level.is_multiple_of(LEVELS_A_STACK) {
            true => on_a_stack_of_its_own(live, self.shape, &session).await,
            false => {
                let end = drive(&mut live, self.shape, &session).await;
                (live, end)
            }
        };
        self.rest(live, &session, end).await
    }

    /// A persistent subgraph has one state for the thread: two tasks of one superstep cannot both go on
    /// with it.
    fn is_only_caller(&self, scope: &Scope) -> Result<(), Error> {
        if !self.persistent || self.ctx.session.journal.store.is_none() {
            return Ok(());
        }
        let mut callers = lock(&self.ctx.session.callers);
        let own = self.ctx.task_id();
        match callers.insert(scope.namespace.to_string(), own) {
            Some(other) if other != own => Err(Error::TwoCallers(self.ctx.node.clone())),
            _ => Ok(()),
        }
    }

    fn namespace(&self) -> String {
        let up = self.ctx.session.scope();
        let own = if self.persistent {
            self.label.to_owned()
        } else {
            format!("{}:{}", self.label, self.ctx.task_id())
        };
        match &*up.namespace {
            "" => own,
            outer => format!("{outer}|{own}"),
        }
    }

    fn session(&self) -> Session {
        let up = &self.ctx.session;
        let scope = Scope {
            thread: up.scope().thread.clone(),
            namespace: self.namespace().into(),
        };
        let path = up.path_of(&Name::from(self.label.to_owned()));
        let store = up.journal.store.clone();
        let own = self.shape.memory.clone();
        Session {
            memory: own.or_else(|| up.memory.clone()),
            up: Some((self.ctx.pulse.of_subgraphs(), up.clone())),
            origin: up.origin.clone(),
            ..Session::new(up.run.clone(), store, scope, path, self.ctx.halt.clone())
        }
    }

    /// Where this call goes on.
    async fn restored(
        &self,
        session: &Session,
        base: Option<Arc<C>>,
    ) -> Result<Restored<C>, Error> {
        let fresh = |base: Option<Arc<C>>| {
            Box::new(base.map_or_else(|| Live::new(Arc::default()), Live::over))
        };
        let Some(store) = &session.journal.store else {
            return Ok(Restored::Idle(fresh(base)));
        };
        let Some(head) = store.load(session.scope(), None).await? else {
            return Ok(Restored::Idle(fresh(base)));
        };
        let head_id = head.id;
        if !self.persistent || owner(&head) == Some(self.ctx.task_id()) {
            let mut live = Live::restore(self.shape, session, base, head)?;
            self.take_answers(&mut live, session).await?;
            return Ok(Restored::Running(Box::new(live)));
        }
        let stood = lock(&self.ctx.session.children)
            .get(&*session.scope().namespace)
            .copied();
        let stood = match stood.map(CheckpointId::from) {
            Some(at) if is_update_of(store, session, &head, at).await? => Some(head_id),
            stood => stood,
        };
        let live = match stood {
            None => fresh(base),
            Some(at) if at == head_id => Box::new(Live::restore(self.shape, session, base, head)?),
            Some(at) => {
                let loaded = store.load(session.scope(), Some(at)).await?;
                let loaded = loaded.ok_or_else(|| Error::UnknownCheckpoint {
                    thread: session.scope().to_string(),
                    checkpoint: at,
                })?;
                Box::new(Live::restore(self.shape, session, base, loaded)?)
            }
        };
        // The parent went back in time: a new branch begins where the child stood then.
        session.journal.at(head_id);
        session.journal.branch(stood);
        Ok(Restored::Idle(live))
    }

    /// Makes the tasks due whose questions were answered from above.
    async fn take_answers(&self, live: &mut Live<C>, session: &Session) -> Result<(), Error> {
        let fresh = lock(&session.run.fresh).clone();
        let asked = live.run.waiting();
        let answered = live.run.answer(|id| fresh.contains(id));
        // A question from further below is left to the subgraph that asks it.
        let here = |q: &&Interrupt| q.namespace == *session.scope().namespace;
        for question in asked.iter().filter(here) {
            lock(&session.run.fresh).remove(&question.id);
        }
        let answers = lock(&session.run.answers).clone();
        let notes: Vec<Note> = answered
            .into_iter()
            .map(|(id, i)| Note {
                task: session.task(live.run.tasks[i].birth),
                kind: NoteKind::Answer,
                json: answers
                    .get(&id)
                    .map_or_else(|| "null".to_owned(), ToString::to_string),
                key: id,
            })
            .collect();
        if notes.is_empty() {
            return Ok(());
        }
        session.journal.note(notes, Vec::new(), true).await
    }

    /// Saves what must be, and tells the parent how the child came to rest.
    async fn rest(
        &self,
        mut live: Box<Live<C>>,
        session: &Session,
        end: Result<End, Error>,
    ) -> Result<Ran<C>, NodeError> {
        if matches!(end, Ok(End::Halted))
            && let Some(reason) = session.run.control.cancelled()
            && !session.run.is_lost()
        {
            note_open(&live, session, FailureKind::Cancelled, reason.to_string()).await?;
        }
        let over = matches!(end, Ok(End::Over));
        // A child that is over and not persistent is never read again: its result is the parent's.
        if !(over && session.journal.holds_back() && !self.persistent) {
            live.close(self.shape, session).await?;
        }
        match end? {
            End::Over => {
                let head = session.journal.saved().filter(|_| self.persistent);
                let stands = head.map(|head| (session.scope().namespace.to_string(), head));
                Ok(Ran { live, stands })
            }
            End::Waiting => Err(NodeError(Kind::Interrupt(live.run.waiting()))),
            End::Stopped(why) => Err(NodeError(Kind::Stopped(why))),
            End::Halted => Err(NodeError::halted()),
        }
    }
}

/// The parent's task that a subgraph's checkpoint belongs to.
pub(crate) fn owner(loaded: &Loaded) -> Option<TaskId> {
    let saved = serde_json::from_slice::<Saved>(&loaded.machine);
    saved.ok()?.owner
}

/// Whether `head` is `at` but for what was written to it from outside.
async fn is_update_of(
    store: &Store,
    session: &Session,
    head: &Loaded,
    at: CheckpointId,
) -> Result<bool, Error> {
    let (mut source, mut parent) = (head.metadata.source, head.parent);
    while let (Source::Update, Some(before)) = (source, parent) {
        if before == at {
            return Ok(true);
        }
        let Some(loaded) = store.load(session.scope(), Some(before)).await? else {
            break;
        };
        (source, parent) = (loaded.metadata.source, loaded.parent);
    }
    Ok(false)
}

/// The parent's state under a subgraph that shares it: as it is at the newest checkpoint that has
/// the task.
pub(crate) async fn state_under<S: State>(
    shape: &Shape<S>,
    store: &Store,
    spot: Spot<Arc<S>>,
    task: &str,
) -> Result<Option<Arc<S>>, Error> {
    let session = outside(shape, store, spot.scope, (RunId::fresh(), 0));
    let all = HistoryQuery::default();
    for entry in store.history(session.scope(), &all).await? {
        let Some(loaded) = store.load(session.scope(), Some(entry.id)).await? else {
            continue;
        };
        let live = Live::restore(shape, &session, spot.base.clone(), loaded)?;
        let mut tasks = live.run.tasks.iter();
        if tasks.any(|t| session.task(t.birth).to_string() == task) {
            return Ok(Some(live.state));
        }
    }
    Ok(None)
}

/// Remembers what still saves for a call whose future is dropped, as a timeout does.
struct CutOff<'a>(&'a Session);

impl Drop for CutOff<'_> {
    fn drop(&mut self) {
        if let Some(work) = self.0.journal.abandon() {
            let namespace = self.0.scope().namespace.clone();
            lock(&self.0.run.left).insert(namespace, work);
        }
    }
}

enum Restored<C: State> {
    /// In the middle of the run that this call began earlier.
    Running(Box<Live<C>>),
    /// To be given its input.
    Idle(Box<Live<C>>),
}
