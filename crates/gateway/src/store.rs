//! Where records and counters are kept: one trait with one write, and a store that dies with the process.
//!
//! The rules are in the session; a store compares, adds and appends. Other stores implement the trait in
//! crates of their own.

use crate::record::{CallRecord, RunRef};
use futures::future::BoxFuture;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// What is written together. If one of the guards does not hold, none of it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// What has to be true before anything is written.
    pub guards: Vec<Guard>,
    /// Records to insert, or to replace by run and key.
    pub calls: Vec<CallRecord>,
    /// Counters to raise.
    pub add: Vec<Add>,
}

/// A condition of a [`Change`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The run has no record under this key.
    Fresh {
        /// The run.
        run: Arc<RunRef>,
        /// The key.
        key: String,
    },
    /// The run's record under this key is there and has no outcome yet.
    Open {
        /// The run.
        run: Arc<RunRef>,
        /// The key.
        key: String,
    },
}

/// Raises a run's counter, which begins at 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Add {
    /// The run.
    pub run: Arc<RunRef>,
    /// The counter's name.
    pub counter: String,
    /// By how much.
    pub by: u64,
}

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// This guard did not hold; nothing was written.
    #[error("somebody else was first: {0:?}")]
    Refused(Box<Guard>),
    /// The store is out of order. Whether anything was written is not known.
    #[error("{0}")]
    Broken(String),
}

/// What a store's methods return.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Keeps what the gateway must not forget.
///
/// A write is atomic, and a read sees every write that has returned.
///
/// ```
/// use paraph_gateway::{Change, CallRecord, MemoryStore, RunRef, Store, StoreFuture};
/// use std::{collections::BTreeMap, sync::{Arc, atomic::{AtomicU64, Ordering}}};
///
/// /// Counts the writes of another store.
/// struct Counted { inner: Arc<dyn Store>, writes: AtomicU64 }
///
/// impl Store for Counted {
///     fn commit(&self, change: Change) -> StoreFuture<'_, ()> {
///         self.writes.fetch_add(1, Ordering::Relaxed);
///         self.inner.commit(change)
///     }
///     fn calls<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<CallRecord>> { self.inner.calls(run) }
///     fn counters<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, BTreeMap<String, u64>> { self.inner.counters(run) }
/// }
/// # let _ = Counted { inner: MemoryStore::shared(), writes: AtomicU64::new(0) };
/// ```
pub trait Store: Send + Sync + 'static {
    /// Writes all of it, or nothing.
    fn commit(&self, change: Change) -> StoreFuture<'_, ()>;

    /// The run's records, in the order of their `seq`.
    fn calls<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<CallRecord>>;

    /// The run's counters.
    fn counters<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, BTreeMap<String, u64>>;
}

#[derive(Debug, Default)]
struct Run {
    calls: HashMap<String, CallRecord>,
    counters: BTreeMap<String, u64>,
}

/// For tests, and for runs that need not outlive the process.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<Runs>);

type Runs = HashMap<Arc<RunRef>, Run>;

impl MemoryStore {
    /// An empty one, as gateways take it.
    pub fn shared() -> Arc<dyn Store> {
        Arc::new(MemoryStore::default())
    }

    fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Runs) -> Result<T, StoreError>,
    ) -> StoreFuture<'static, T> {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(std::future::ready(work(&mut runs)))
    }
}

impl Store for MemoryStore {
    fn commit(&self, change: Change) -> StoreFuture<'_, ()> {
        self.with(|runs| {
            for guard in &change.guards {
                let found = |run: &Arc<RunRef>, key: &str| {
                    runs.get(run).and_then(|run: &Run| run.calls.get(key))
                };
                let holds = match guard {
                    Guard::Fresh { run, key } => found(run, key).is_none(),
                    Guard::Open { run, key } => {
                        found(run, key).is_some_and(|record| record.outcome.is_none())
                    }
                };
                if !holds {
                    return Err(StoreError::Refused(Box::new(guard.clone())));
                }
            }
            for record in change.calls {
                let run = runs.entry(record.run.clone()).or_default();
                run.calls.insert(record.key.clone(), record);
            }
            for add in change.add {
                let run = runs.entry(add.run).or_default();
                let counter = run.counters.entry(add.counter).or_default();
                *counter = counter.saturating_add(add.by);
            }
            Ok(())
        })
    }

    fn calls<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<CallRecord>> {
        self.with(|runs| {
            let mut calls: Vec<_> = match runs.get(run) {
                Some(run) => run.calls.values().cloned().collect(),
                None => Vec::new(),
            };
            calls.sort_by_key(|record| record.seq);
            Ok(calls)
        })
    }

    fn counters<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, BTreeMap<String, u64>> {
        self.with(|runs| {
            Ok(runs
                .get(run)
                .map(|run| run.counters.clone())
                .unwrap_or_default())
        })
    }
}
