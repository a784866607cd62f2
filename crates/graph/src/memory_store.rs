//! Threads in this process: a real store in all but durability.
//!
//! What is kept of a scope is in `line`, rows and leases in `rows`, the log in `events`, and what is done
//! with whole threads in `whole`. One lock guards all of it; no call waits for anything else.

mod events;
mod line;
mod rows;
mod whole;

use crate::{
    Error,
    checkpoint::{
        Checkpoints, Claim, Entry, HistoryQuery, Lease, Loaded, Notes, Put, RunEnd, Scope, Store,
    },
    ids::{CheckpointId, RunId},
    log::EventLog,
    session::lock,
    threads::RunRow,
};
use futures::future::BoxFuture;
use rows::Kept;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};
use tokio::sync::Notify;

/// Keeps everything until it is dropped. Clones of the `Arc` share it.
#[derive(Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    keeps_events: bool,
}

#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    /// The log of some thread has grown.
    grown: Notify,
}

#[derive(Default)]
struct Inner {
    /// Boxed, as the runs are: a map that grows has room for twice as many, and copies them all.
    threads: HashMap<Arc<str>, Box<Kept>>,
    runs: HashMap<RunId, Box<RunRow>>,
    /// The newest lease of all.
    epoch: u64,
    /// Counts the writes, to say which thread was written last.
    writes: u64,
}

impl MemoryStore {
    /// A fresh one, as graphs take it.
    #[must_use]
    pub fn shared() -> Store {
        Self::new()
    }

    /// The same, for whoever reads its rows too ([`crate::Threads`]).
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// One that keeps the events of runs, which costs them something.
    #[must_use]
    pub fn with_events() -> Arc<Self> {
        Arc::new(MemoryStore {
            keeps_events: true,
            ..Self::default()
        })
    }

    /// Bytes of state, machines and notes held. For measuring.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let inner = lock(&self.shared.inner);
        let bytes = inner.threads.values().map(|kept| kept.measure("").bytes);
        usize::try_from(bytes.sum::<u64>()).unwrap_or(usize::MAX)
    }
}

fn conflict(thread: &str, holder: Option<RunId>) -> Error {
    Error::Conflict {
        thread: thread.to_owned(),
        holder,
    }
}

fn unknown(scope: &Scope, checkpoint: CheckpointId) -> Error {
    Error::UnknownCheckpoint {
        thread: scope.to_string(),
        checkpoint,
    }
}

fn ready<'a, T: Send + 'a>(value: Result<T, Error>) -> BoxFuture<'a, Result<T, Error>> {
    Box::pin(std::future::ready(value))
}

impl Checkpoints for MemoryStore {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> BoxFuture<'a, Result<Lease, Error>> {
        ready(rows::lease(&self.shared, thread, claim))
    }

    fn finish<'a>(&'a self, thread: &'a str, end: RunEnd) -> BoxFuture<'a, Result<(), Error>> {
        let finished = lock(&self.shared.inner).finish(thread, end);
        self.shared.tell_growth(finished)
    }

    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> BoxFuture<'a, Result<(), Error>> {
        let put = lock(&self.shared.inner).put(scope, put);
        self.shared.tell_growth(put)
    }

    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> BoxFuture<'a, Result<(), Error>> {
        let noted = lock(&self.shared.inner).note(scope, notes);
        self.shared.tell_growth(noted)
    }

    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, Error>> {
        let inner = lock(&self.shared.inner);
        ready(Ok(inner.line(scope).and_then(|line| line.load(at))))
    }

    fn history<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>> {
        let inner = lock(&self.shared.inner);
        let found = inner.line(scope).map(|line| line.history(query));
        ready(Ok(found.unwrap_or_default()))
    }

    fn keeps_events(&self) -> bool {
        self.keeps_events
    }

    fn event_log(&self) -> Option<&dyn EventLog> {
        Some(self)
    }
}

impl Shared {
    /// The answer to a write, which says whether the log has grown.
    fn tell_growth<'a>(&self, written: Result<bool, Error>) -> BoxFuture<'a, Result<(), Error>> {
        if let Ok(true) = written {
            self.grown.notify_waiters();
        }
        ready(written.map(|_| ()))
    }
}
