//! What the parts of one run share: the run itself, and per graph or subgraph a session.

use crate::{
    Error, Name,
    checkpoint::{Notes, Put, Scope, Store},
    clock::Clock,
    control::{Control, Halt},
    event::{Event, EventData},
    ids::{Birth, RunId, TaskId},
    journal::{Events, Journal, Work, record::Log},
    memory::Memory,
    options::RunOptions,
};
use futures::future::BoxFuture;
use serde_json::{Value, value::RawValue};
use std::{
    any::Any,
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
};
use tokio::sync::Semaphore;

/// Locks a mutex whose holders never leave it half-changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One run, with all its subgraphs.
pub(crate) struct RunShared {
    pub(crate) id: RunId,
    pub(crate) options: RunOptions,
    pub(crate) context: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) control: Control,
    pub(crate) events: Option<Events>,
    /// How many nodes may run at once; a subgraph's node takes none while its own nodes run.
    pub(crate) permits: Option<Arc<Semaphore>>,
    pub(crate) epoch: u64,
    /// Answers by interrupt, for whichever task asks.
    pub(crate) answers: Mutex<HashMap<String, Value>>,
    /// Those answers that no task has looked at yet; the others wake nobody.
    pub(crate) fresh: Mutex<HashSet<String>>,
    /// What still saves for subgraphs that were cut off in the middle, by namespace.
    pub(crate) left: Mutex<HashMap<Arc<str>, Work>>,
    pub(crate) clock: Arc<dyn Clock>,
    /// What the thread's log gets, if its store keeps one.
    pub(crate) log: Option<Log>,
    /// Whether the thread's lease is lost: another may drive it by now, and nothing more is written.
    pub(crate) lost: Arc<AtomicBool>,
    /// Whether this is no run but a look at a thread, or a write to it between runs.
    pub(crate) outside: bool,
}

impl RunShared {
    /// A run of this kind, of which nothing has happened.
    pub(crate) fn new(id: RunId, epoch: u64, options: RunOptions, clock: Arc<dyn Clock>) -> Self {
        let permits = options
            .max_concurrency
            .map(|n| Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS))));
        RunShared {
            id,
            options,
            context: None,
            control: Control::default(),
            events: None,
            permits,
            epoch,
            answers: Mutex::default(),
            fresh: Mutex::default(),
            left: Mutex::default(),
            clock,
            log: None,
            lost: Arc::default(),
            outside: false,
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// [`crate::Checkpoints::put`], while the thread is this run's.
    pub(crate) fn put<'a>(&self, store: &'a Store, scope: &'a Scope, put: Put) -> Saving<'a> {
        match self.is_lost() {
            true => refused(scope),
            false => store.put(scope, put),
        }
    }

    /// [`crate::Checkpoints::note`], while the thread is this run's.
    pub(crate) fn note<'a>(&self, store: &'a Store, scope: &'a Scope, notes: Notes) -> Saving<'a> {
        match self.is_lost() {
            true => refused(scope),
            false => store.note(scope, notes),
        }
    }

    /// Waits for what was left behind by the subgraph of a namespace, or by all: what it began to
    /// save must not come in between later.
    pub(crate) async fn settle(&self, namespace: Option<&str>) {
        let mut left: Vec<Work> = Vec::new();
        match namespace {
            Some(namespace) => left.extend(lock(&self.left).remove(namespace)),
            None => left.extend(lock(&self.left).drain().map(|(_, work)| work)),
        }
        for work in left {
            if let Ok(Err(error)) = work.await {
                tracing::warn!(%error, "a subgraph that was cut off could not be saved to its end");
            }
        }
    }
}

pub(crate) type Saving<'a> = BoxFuture<'a, Result<(), Error>>;

fn refused<'a>(scope: &Scope) -> Saving<'a> {
    let thread = scope.thread.to_string();
    Box::pin(std::future::ready(Err(Error::Conflict {
        thread,
        holder: None,
    })))
}

/// One graph's part of a run: the graph itself, or a subgraph called by one of its tasks.
pub(crate) struct Session {
    pub(crate) run: Arc<RunShared>,
    pub(crate) journal: Journal,
    /// The names of the nodes that lead here, with `|` between them; empty for the graph itself.
    pub(crate) path: String,
    /// In a subgraph: the task that it runs in, to which its life is a sign of life.
    pub(crate) up: Option<(Arc<AtomicU64>, Arc<Session>)>,
    /// Ends the tasks of this session, and those below.
    pub(crate) halt: Halt,
    pub(crate) superstep: AtomicI64,
    /// The superstep at which this run's limit is reached.
    pub(crate) stop: AtomicI64,
    pub(crate) memos: Mutex<HashMap<(TaskId, String), Arc<RawValue>>>,
    /// The persistent subgraph checkpoints as of the open superstep.
    pub(crate) children: Mutex<HashMap<String, uuid::Uuid>>,
    /// Which task of the open superstep has called a persistent subgraph, by its namespace.
    pub(crate) callers: Mutex<HashMap<String, TaskId>>,
    /// The graph's own, or its parent's.
    pub(crate) memory: Option<Arc<dyn Memory>>,
    /// The name under which the thread's tasks were born, if the thread was moved since: see `origin.rs`.
    pub(crate) origin: OnceLock<Arc<str>>,
}

impl Session {
    pub(crate) fn new(
        run: Arc<RunShared>,
        store: Option<Store>,
        scope: Scope,
        path: String,
        halt: Halt,
    ) -> Self {
        let journal = Journal::new(run.clone(), store, scope);
        Session {
            run,
            journal,
            path,
            up: None,
            halt,
            superstep: AtomicI64::new(0),
            stop: AtomicI64::new(i64::MAX),
            memos: Mutex::default(),
            children: Mutex::default(),
            callers: Mutex::default(),
            memory: None,
            origin: OnceLock::new(),
        }
    }

    /// A sign of life of the tasks in which this graph runs.
    pub(crate) fn beat(&self) {
        if let Some((pulse, up)) = &self.up {
            pulse.fetch_add(1, Ordering::Relaxed);
            up.beat();
        }
    }

    /// Waits until all that was handed over to be saved is saved, here and in the graphs around.
    pub(crate) async fn settled(&self) -> Result<(), Error> {
        let mut session = self;
        loop {
            session.journal.flush().await?;
            match &session.up {
                Some((_, up)) => session = up,
                None => return Ok(()),
            }
        }
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.journal.scope
    }

    /// Whether the tasks of this session are to end. The token's own answer takes a lock, so the graph
    /// itself, where only the run's control can have asked for it, looks there.
    pub(crate) fn is_halted(&self) -> bool {
        if self.is_root() {
            self.run.control.cancelled().is_some()
        } else {
            self.halt.is_cancelled()
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.journal.scope.namespace.is_empty()
    }

    pub(crate) fn task(&self, birth: Birth) -> TaskId {
        birth.task(self.born_on(), &self.scope().namespace)
    }

    pub(crate) fn key(&self, birth: Birth, parts: &[&str]) -> String {
        birth.key(self.born_on(), &self.scope().namespace, parts)
    }

    /// What the thread is called in the identities of its tasks.
    fn born_on(&self) -> &str {
        self.origin.get().unwrap_or(&self.scope().thread)
    }

    pub(crate) fn event(&self, birth: Option<Birth>, data: EventData) -> Event {
        Event {
            seq: 0,
            run: self.run.id,
            scope: self.scope().clone(),
            superstep: self.superstep.load(Ordering::Relaxed),
            birth,
            origin: self.origin.get().cloned(),
            cached: false,
            data,
        }
    }

    /// The path of a node of this session, as breakpoints name it.
    pub(crate) fn path_of(&self, node: &Name) -> String {
        if self.path.is_empty() {
            node.to_string()
        } else {
            format!("{}|{node}", self.path)
        }
    }
}
