//! A run to be: what to begin with, how to run it, and the future that does.
//!
//! Made by `graph.rs`, `thread.rs` and `any.rs`. It takes the lease, brings the thread to where the run
//! begins (`resume.rs`, where it goes on), hands it to the driver, and says how that came to rest.

mod rest;
mod resume;

use crate::{
    CheckpointId, Command, Control, Durability, Error, Graph, Mode, Name, Outcome, RunId,
    RunOptions, State, StoppedBy, Stream,
    attempt::guarded,
    checkpoint::{Claim, Lease, Loaded, RunStart, Scope, Store},
    control::Ending,
    drive::drive,
    event::Modes,
    graph::{Names, Shape},
    journal::{Events, record::Log},
    live::Live,
    session::{RunShared, Session, lock},
    thread::check_name,
};
use futures::{FutureExt, future::BoxFuture};
use rest::{LeftBehind, Rested, watch};
use serde::Serialize;
use serde_json::Value;
use std::{any::Any, future::IntoFuture, sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// How many events may wait for their reader.
const UNREAD: usize = 64;

/// What a run begins with.
pub(crate) enum Ask<S: State> {
    Input(Command<S>),
    /// A command from outside: at least an update or a target.
    Command(Command<S>),
    Answers(Vec<(String, Result<Value, String>)>),
    Continue,
}

/// A run to be: set it up, then `.await` it, `.stream(…)` it, or run it `.blocking()`.
#[must_use = "a run does nothing until it is awaited or streamed"]
pub struct Start<S: State> {
    graph: Graph<S>,
    place: Option<(Store, String)>,
    ask: Ask<S>,
    update: Option<S::Update>,
    at: Option<CheckpointId>,
    options: RunOptions,
    context: Option<Arc<dyn Any + Send + Sync>>,
    run: RunId,
    subgraphs: bool,
    control: Control,
    /// A run that was over, but for saying so, when its process ended.
    left_behind: Option<LeftBehind>,
}

impl<S: State> Start<S> {
    pub(crate) fn new(graph: Graph<S>, place: Option<(Store, String)>, ask: Ask<S>) -> Self {
        Start {
            graph,
            place,
            ask,
            update: None,
            at: None,
            options: RunOptions::default(),
            context: None,
            run: RunId::fresh(),
            subgraphs: false,
            control: Control::default(),
            left_behind: None,
        }
    }

    /// All options at once.
    pub fn options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }

    /// How many supersteps the run may take.
    pub fn limit(mut self, supersteps: u64) -> Self {
        self.options.limit = supersteps;
        self
    }

    /// When supersteps are saved.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    /// The longest time one superstep may take.
    pub fn step_timeout(mut self, limit: Duration) -> Self {
        self.options.step_timeout = Some(limit);
        self
    }

    /// How many nodes may run at the same time.
    pub fn max_concurrency(mut self, nodes: usize) -> Self {
        self.options.max_concurrency = Some(nodes);
        self
    }

    /// Stops before these nodes run; `*` is every node, `sub|node` one of a subgraph.
    pub fn pause_before(mut self, nodes: impl Into<Names>) -> Self {
        self.options.pause_before.extend(nodes.into().0);
        self
    }

    /// Stops after these nodes have run.
    pub fn pause_after(mut self, nodes: impl Into<Names>) -> Self {
        self.options.pause_after.extend(nodes.into().0);
        self
    }

    /// Stored with each checkpoint of the run.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options.metadata.insert(key.into(), value.into());
        self
    }

    /// What nodes find under `ctx.context::<T>()`, in subgraphs too.
    pub fn context<T: Send + Sync + 'static>(mut self, context: T) -> Self {
        self.context = Some(Arc::new(context));
        self
    }

    pub(crate) fn context_any(mut self, context: Option<Arc<dyn Any + Send + Sync>>) -> Self {
        self.context = context;
        self
    }

    /// Begins at an older checkpoint instead of the head, on a new branch: replay, or another answer
    /// to an old question. What came after stays as it is.
    pub fn at(mut self, checkpoint: CheckpointId) -> Self {
        self.at = Some(checkpoint);
        self
    }

    /// Writes to the state in the same atomic step in which the run is resumed or answered, or before
    /// the input of one that begins.
    pub fn with_update(mut self, update: S::Update) -> Self {
        self.update = Some(update);
        self
    }

    /// Gives the run an id that was made elsewhere.
    pub fn run_id(mut self, run: RunId) -> Self {
        self.run = run;
        self
    }

    /// Whether the stream carries values, updates, tasks and checkpoints of subgraphs too. Their
    /// custom events and messages it always carries.
    pub fn subgraphs(mut self, yes: bool) -> Self {
        self.subgraphs = yes;
        self
    }

    /// A handle to cancel or drain the run from elsewhere.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// The run as a stream of events.
    pub fn stream(self, modes: impl AsRef<[Mode]>) -> Stream<S> {
        let modes = modes.as_ref();
        let (events, reader) = if modes.is_empty() {
            (None, None)
        } else {
            let (sender, reader) = mpsc::channel(UNREAD);
            let events = Events {
                sender,
                modes: Modes::of(modes),
                subgraphs: self.subgraphs,
            };
            (Some(events), Some(reader))
        };
        let control = self.control.clone();
        Stream::new(reader, Box::pin(self.execute(events)), control)
    }

    /// Runs to the end on this thread, from code without a runtime.
    ///
    /// # Errors
    /// [`Error::BlockingInAsync`] inside a runtime, and those of the run.
    pub fn blocking(self) -> Result<Outcome<S>, Error> {
        if tokio::runtime::Handle::try_current().is_ok() {
            return Err(Error::BlockingInAsync);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            // Nodes may need whatever of Tokio the program was built with.
            .enable_all()
            .build();
        runtime
            .map_err(Error::Runtime)?
            .block_on(self.into_future())
    }

    /// The run itself. Of a thousand runs that wait there are as many of these in memory, so that neither this
    /// nor what it awaits holds anything twice: an argument of an `async fn` that is changed or awaited is.
    fn execute(
        mut self,
        events: Option<Events>,
    ) -> impl Future<Output = Result<Outcome<S>, Error>> + Send {
        let told = Told(self.control.clone(), Ending::Failed);
        let work = async move { self.go(events).await };
        // Nodes that panic have failed; here end the panics of what runs between them.
        guarded(work).map(move |outcome| {
            told.of(match &outcome {
                Ok(Outcome::Stopped {
                    why: StoppedBy::Drain,
                    ..
                }) => Ending::Drained,
                Ok(_) => Ending::Finished,
                Err(Error::Cancelled(_)) => Ending::Cancelled,
                Err(_) => Ending::Failed,
            });
            outcome
        })
    }

    async fn go(&mut self, events: Option<Events>) -> Result<Outcome<S>, Error> {
        let shape = self.graph.0.clone();
        self.check(&shape)?;
        if let Some(reason) = self.control.cancelled() {
            // Nothing has begun, so there is nothing to record.
            return Err(Error::Cancelled(reason));
        }
        let lease = match &self.place {
            None => None,
            Some((store, name)) => Some(store.lease(name, self.claim(&shape)).await?),
        };
        let session = Arc::new(self.session(&shape, events, lease.as_ref()));
        let _watched = lease.as_ref().and_then(|lease| watch(lease, &session.run));
        let rested = match guarded(self.begin(&shape, &session)).await {
            Err(error) => Rested::at_once(error),
            Ok(mut live) => {
                let end = guarded(drive(&mut live, &shape, &session)).await;
                let ended = rest::rest(&mut live, &shape, &session, end).await;
                Rested::of(*live, &shape, &session, ended)
            }
        };
        let outcome = rested.finish(&session).await;
        if let Some(over) = self.left_behind.take() {
            rest::finish_for(over, &session).await;
        }
        drop(lease);
        outcome
    }

    fn claim(&self, shape: &Shape<S>) -> Claim {
        Claim {
            run: self.run,
            start: Some(RunStart {
                graph: shape.name.to_string(),
                arguments: self.options.arguments.clone(),
            }),
        }
    }

    fn check(&self, shape: &Shape<S>) -> Result<(), Error> {
        match &self.place {
            None if shape.store.is_some() => return Err(Error::NoThread(shape.name.clone())),
            None => {}
            Some((_, name)) => check_name(name)?,
        }
        shape.check_options(&self.options)?;
        match &self.ask {
            Ask::Input(command) => shape.check_input(&command.update),
            Ask::Command(command)
                if command.goto.is_empty() && S::writes(&command.update).is_empty() =>
            {
                Err(Error::EmptyCommand)
            }
            _ => Ok(()),
        }
    }

    fn session(
        &mut self,
        shape: &Shape<S>,
        events: Option<Events>,
        lease: Option<&Lease>,
    ) -> Session {
        let options = std::mem::take(&mut self.options);
        let epoch = lease.map_or(0, |lease| lease.epoch);
        let log = match &self.place {
            Some((store, _)) if store.keeps_events() => Log::of(&options.log),
            _ => None,
        };
        let run = RunShared {
            context: self.context.take(),
            control: self.control.clone(),
            events,
            log,
            ..RunShared::new(self.run, epoch, options, shape.clock.clone())
        };
        let (store, thread) = match &self.place {
            None => (None, ""),
            Some((store, name)) => (Some(store.clone()), name.as_str()),
        };
        let scope = Scope {
            thread: thread.into(),
            namespace: "".into(),
        };
        let halt = self.control.token.clone();
        Session {
            memory: shape.memory.clone(),
            ..Session::new(Arc::new(run), store, scope, String::new(), halt)
        }
    }

    /// Brings the run to where it begins, saved.
    async fn begin(&mut self, shape: &Shape<S>, session: &Session) -> Result<Box<Live<S>>, Error> {
        let head = load(session, None).await?;
        let at = match (self.at, &head) {
            (Some(at), Some(head)) if at == head.id => None,
            (at, _) => at,
        };
        let older = older(session, at).await?;
        match std::mem::replace(&mut self.ask, Ask::Continue) {
            Ask::Input(command) | Ask::Command(command) => {
                let mut live = Box::new(restore_at(shape, session, None, (head, older))?);
                // Those were given to tasks that are dropped now.
                lock(&session.run.answers).clear();
                self.write_first(&mut live, shape)?;
                live.input(shape, session, command).await?;
                Ok(live)
            }
            // Boxed: most runs begin with an input.
            Ask::Continue => Box::pin(self.resume(shape, session, (head, older), Vec::new())).await,
            Ask::Answers(given) => {
                let given = given.into_iter().map(|(id, answer)| match answer {
                    Ok(answer) => Ok((id, answer)),
                    Err(e) => Err(Error::store(format!("the answer to {id} is no JSON: {e}"))),
                });
                let given = given.collect::<Result<Vec<_>, _>>()?;
                Box::pin(self.resume(shape, session, (head, older), given)).await
            }
        }
    }

    /// What is written besides an input comes before it.
    fn write_first(&mut self, live: &mut Live<S>, shape: &Shape<S>) -> Result<(), Error> {
        let Some(update) = self.update.take() else {
            return Ok(());
        };
        live.keep_finished(shape);
        live.apply(shape, update)
    }
}

/// Tells those who wait for the run's end, also when its future is dropped.
struct Told(Control, Ending);

impl Told {
    /// Tells them now.
    fn of(mut self, ending: Ending) {
        self.1 = ending;
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.0.end(self.1);
    }
}

pub(crate) async fn load(
    session: &Session,
    at: Option<CheckpointId>,
) -> Result<Option<Loaded>, Error> {
    match &session.journal.store {
        None => Ok(None),
        Some(store) => store.load(session.scope(), at).await,
    }
}

/// The named checkpoint, if one is named.
pub(crate) async fn older(
    session: &Session,
    at: Option<CheckpointId>,
) -> Result<Option<Loaded>, Error> {
    let Some(at) = at else { return Ok(None) };
    let loaded = load(session, Some(at)).await?;
    loaded.map(Some).ok_or_else(|| Error::UnknownCheckpoint {
        thread: session.scope().to_string(),
        checkpoint: at,
    })
}

/// The thread as it stands, or as it stood at an older checkpoint from which a branch will go.
pub(crate) fn restore_at<S: State>(
    shape: &Shape<S>,
    session: &Session,
    base: Option<Arc<S>>,
    (head, older): (Option<Loaded>, Option<Loaded>),
) -> Result<Live<S>, Error> {
    let head_id = head.as_ref().map(|h| h.id);
    match (older, head) {
        (Some(older), _) => {
            let from = older.id;
            // The old branch's notes belong to it alone.
            let older = Loaded {
                notes: Vec::new(),
                ..older
            };
            let mut live = Live::restore(shape, session, base, older)?;
            // Whoever names it wants it to go on from there.
            live.untouched_since = None;
            if let Some(head) = head_id {
                session.journal.at(head);
            }
            session.journal.branch(Some(from));
            Ok(live)
        }
        (None, Some(head)) => Live::restore(shape, session, base, head),
        (None, None) => Ok(base.map_or_else(|| Live::new(Arc::default()), Live::over)),
    }
}

/// The nodes that are not done, each once.
pub(crate) fn next<S: State>(live: &Live<S>, shape: &Shape<S>) -> Vec<Name> {
    let open = live
        .run
        .tasks
        .iter()
        .filter(|t| t.status != crate::run::Status::Done);
    let mut names: Vec<_> = open.map(|t| shape.topology.name(t.node)).collect();
    names.dedup();
    names
}

impl<S: State> IntoFuture for Start<S> {
    type Output = Result<Outcome<S>, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;
    fn into_future(self) -> Self::IntoFuture {
        self.stream([]).into_outcome()
    }
}

/// One answer to a question, for [`crate::Thread::answer`].
pub(crate) fn to_answer(answer: impl Serialize) -> Result<Value, String> {
    serde_json::to_value(answer).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests;
