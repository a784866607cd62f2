//! Where records, actions and counters are kept: one trait with one write. The store that dies with the process is in
//! `store/memory.rs`, what stands before another store in `store/layer.rs`.
//!
//! The rules are in the session and at the desk; a store compares, adds and appends. Other stores implement the trait
//! in crates of their own.

mod layer;
mod memory;

pub use layer::StoreLayer;
pub use memory::MemoryStore;

use crate::action::{ActionId, ActionRow, State};
use crate::audit::{AuditEntry, Draft};
use crate::record::{CallRecord, RunRef};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is written together. If one of the guards does not hold, none of it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// What has to be true before anything is written.
    pub guards: Vec<Guard>,
    /// Records to insert, or to replace by run and key.
    pub calls: Vec<CallRecord>,
    /// Counters to raise.
    pub add: Vec<Add>,
    /// Counters to lower again, by what was set aside and not used. None goes below 0.
    pub give_back: Vec<Add>,
    /// Actions to insert, or to replace by id.
    pub actions: Vec<ActionRow>,
    /// Runs to wake.
    pub wake: Vec<Wake>,
    /// Wakes to remove, each only if it still is the same.
    pub woken: Vec<Wake>,
    /// Kill switches to put.
    pub kill: Vec<Kill>,
    /// Kill switches to take away, by scope.
    pub unkill: Vec<String>,
    /// Entries for the audit. The store seals each behind the last one of its tenant.
    pub audit: Vec<Draft>,
    /// Details of the audit to erase for ever. Their entries stay.
    pub erase: Vec<Erase>,
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
    /// The action is there in this version.
    At {
        /// The action.
        id: ActionId,
        /// The version.
        version: u64,
    },
    /// None of these kill switches is on.
    Alive {
        /// Their scopes.
        scopes: Vec<String>,
    },
    /// With what this change adds, the counter is at most this.
    Most {
        /// Whose counter.
        run: Arc<RunRef>,
        /// The counter's name.
        counter: String,
        /// The most.
        most: u64,
    },
    /// By the store's clock it is earlier than this, in milliseconds since the Unix epoch.
    Before {
        /// The moment.
        at_ms: u64,
    },
}

/// Raises a run's counter, which begins at 0. Counters that outlive runs belong to a run of their own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Add {
    /// The run.
    pub run: Arc<RunRef>,
    /// The counter's name.
    pub counter: String,
    /// By how much.
    pub by: u64,
}

/// The counter of a run that says it was read in from elsewhere: its records came with it, its actions did not.
pub const READ_IN: &str = "read_in";

impl Add {
    /// Marks a run whose records are read in from elsewhere, for whoever writes them.
    pub fn read_in(run: Arc<RunRef>) -> Add {
        Add {
            run,
            counter: READ_IN.to_owned(),
            by: 1,
        }
    }
}

/// A run has something to do: about an action that was decided, or whose outcome can be looked up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Wake {
    /// The run.
    pub run: Arc<RunRef>,
    /// The key of the call that waits.
    pub key: String,
    /// The action.
    pub action: ActionId,
    /// The version of the action that it is about.
    pub version: u64,
    /// Not before this, in milliseconds since the Unix epoch.
    pub due_ms: u64,
}

impl Wake {
    /// What wakes the run of an action, at that time.
    pub(crate) fn of(row: &ActionRow, due_ms: u64) -> Wake {
        let said = &row.action.said;
        Wake {
            run: said.run.clone(),
            key: said.key.clone(),
            action: row.id(),
            version: row.version,
            due_ms,
        }
    }
}

/// A kill switch that is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kill {
    /// What it stops: `global`, `writes`, `agent:NAME`, `tool:NAME` or `tenant:NAME`. A row of the scope
    /// `grant:AGENT/NAME` says that this grant was revoked.
    pub scope: String,
    /// Who put it on.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// Names the detail of one entry of the audit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Erase {
    /// Whose chain.
    pub tenant: String,
    /// The number of the entry.
    pub seq: u64,
}

/// Which actions are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Find<'f> {
    /// One.
    Id(ActionId),
    /// Those of a run.
    Run(&'f RunRef),
    /// Those of a thread that are about a subject, the oldest first.
    Subject {
        /// Whose.
        tenant: &'f str,
        /// The thread.
        thread: &'f str,
        /// The subject.
        subject: &'f str,
    },
    /// All in these states, the oldest first.
    States {
        /// The states.
        states: &'f [State],
        /// Only those after this one.
        after: Option<ActionId>,
        /// At most so many.
        limit: usize,
    },
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
/// use paraph_gateway::{Change, MemoryStore, Store, StoreFuture, StoreLayer};
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
///
/// /// Counts the writes of another store.
/// struct Counted { inner: Arc<dyn Store>, writes: AtomicU64 }
///
/// impl StoreLayer for Counted {
///     fn inner(&self) -> &dyn Store { &*self.inner }
///     fn commit(&self, change: Change) -> StoreFuture<'_, ()> {
///         self.writes.fetch_add(1, Ordering::Relaxed);
///         self.inner.commit(change)
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let counted = Arc::new(Counted { inner: MemoryStore::shared(), writes: AtomicU64::new(0) });
/// let store: Arc<dyn Store> = counted.clone();
/// store.commit(Change::default()).await?;
/// assert_eq!((counted.writes.load(Ordering::Relaxed), store.is_lasting()), (1, false));
/// # Ok(()) }
/// ```
pub trait Store: Send + Sync + 'static {
    /// Writes all of it, or nothing.
    fn commit(&self, change: Change) -> StoreFuture<'_, ()>;

    /// The run's records, in the order of their `seq`.
    fn calls<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<CallRecord>>;

    /// The run's counters.
    fn counters<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, BTreeMap<String, u64>>;

    /// Actions.
    fn actions<'a>(&'a self, find: Find<'a>) -> StoreFuture<'a, Vec<ActionRow>>;

    /// The runs that have something to do, those that are due first.
    fn wakes(&self, limit: usize) -> StoreFuture<'_, Vec<Wake>>;

    /// The kill switches that are on.
    fn kills(&self) -> StoreFuture<'_, Vec<Kill>>;

    /// The entries of a tenant's audit behind one, in their order.
    fn audit<'a>(
        &'a self,
        tenant: &'a str,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditEntry>>;

    /// Now, by the clock that [`Guard::Before`] goes by: milliseconds since the Unix epoch.
    fn now_ms(&self) -> StoreFuture<'_, u64>;

    /// Whether what it keeps outlives the process.
    fn is_lasting(&self) -> bool;
}
