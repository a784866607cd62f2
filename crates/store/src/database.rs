//! What a database offers the rules: reads, and writes in the order in which they were asked for.

use crate::sql::{SqlError, Tx};
use futures::future::BoxFuture;
use std::sync::Arc;

/// Work inside a transaction. It may be done again, when a connection is lost before it is known whether
/// the transaction was committed; what it did before is undone then. It waits for nothing but `Tx::all` and
/// `Tx::later`.
pub(crate) type Work<T> =
    Box<dyn for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Fault>> + Send + Sync>;

/// What a write needs to itself until it is committed, where a database lets several write side by side.
///
/// A write has all its locks before its first statement, and every write takes its locks in the order that these
/// have: so no two ever wait for each other, whatever their works do, and what a work reads under a lock stays as
/// it was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lock {
    pub(crate) on: LockOn,
    pub(crate) name: String,
    /// Whether others may have it at the same time who say the same.
    pub(crate) shared: bool,
}

/// What a [`Lock`] is about. The order is that in which locks are taken: what all of a tenant's writes want comes
/// last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LockOn {
    /// A thread by its name, or another lane.
    Lane,
    /// An action of the gateway by its id.
    Action,
    /// The kill switches, all of them.
    Kills,
    /// A tenant's audit.
    Audit,
}

impl Lock {
    /// Nobody else has it meanwhile.
    pub(crate) fn alone(on: LockOn, name: impl Into<String>) -> Lock {
        Lock {
            on,
            name: name.into(),
            shared: false,
        }
    }
}

/// Why work came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The database.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// A rule. What this work did is undone; others in the same transaction stay.
    #[error(transparent)]
    Refused(#[from] paraph_graph::Error),
}

impl From<Fault> for paraph_graph::Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Sql(e) => paraph_graph::Error::store(e),
            Fault::Refused(e) => e,
        }
    }
}

/// One of the databases.
pub(crate) trait Database: Send + Sync + 'static {
    /// Queues work when it is called, and resolves when it is committed to disk. Works of one lane (a
    /// thread's name) are done in the order of these calls; many may share a transaction. Dropping the
    /// future takes nothing back.
    fn write<T: Send + 'static>(
        &self,
        lane: &str,
        work: Work<T>,
    ) -> BoxFuture<'static, Result<T, Fault>>;

    /// The same for work that needs more than its lane to itself. A database with one writer has no use for the
    /// locks.
    fn write_locked<T: Send + 'static>(
        &self,
        lane: &str,
        _locks: Vec<Lock>,
        work: Work<T>,
    ) -> BoxFuture<'static, Result<T, Fault>> {
        self.write(lane, work)
    }

    /// Work that only reads, all of it as of one moment.
    fn read<T: Send + 'static>(&self, work: Work<T>) -> BoxFuture<'static, Result<T, Fault>>;

    /// A write of one statement that must not be late, since a lease hangs on it. Where the database lets it,
    /// it waits behind no other work of this store, in no order with them, and not for long; and what it wrote
    /// may be gone when the server loses its power.
    fn write_soon<T: Send + 'static>(
        &self,
        lane: &str,
        work: Work<T>,
    ) -> BoxFuture<'static, Result<T, Fault>> {
        self.write(lane, work)
    }

    /// A read of one statement that must not be late, in the same way.
    fn read_soon<T: Send + 'static>(&self, work: Work<T>) -> BoxFuture<'static, Result<T, Fault>> {
        self.read(work)
    }

    /// Milliseconds since the Unix epoch, by the clock that all who share the database go by.
    fn now_ms(&self) -> BoxFuture<'static, Result<u64, Fault>>;

    /// The name under which this opened store holds leases; no other has it, also not after a restart.
    fn owner(&self) -> Arc<str>;

    /// Whether the owner of that name is certainly no more, so that its leases can be taken at once.
    /// `false` when in doubt: then they are taken when they have expired.
    fn is_gone(&self, owner: &str) -> BoxFuture<'static, bool>;
}
