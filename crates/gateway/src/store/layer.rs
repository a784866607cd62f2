//! A store before another one: whatever it does not do itself, that one does.
//!
//! For whoever looks at what is written, counts it, or lets it fail in a test.

use super::{Change, Find, Kill, Store, StoreFuture, Wake};
use crate::action::ActionRow;
use crate::audit::AuditEntry;
use crate::record::{CallRecord, RunRef};
use std::collections::BTreeMap;

/// What stands before another store. All its methods but one have the other store do the work; whoever implements it
/// writes down those that do more, and has a [`Store`].
#[expect(missing_docs, reason = "the methods are those of `Store`, one by one")]
pub trait StoreLayer: Send + Sync + 'static {
    /// The store behind it.
    fn inner(&self) -> &dyn Store;

    fn commit(&self, change: Change) -> StoreFuture<'_, ()> {
        self.inner().commit(change)
    }

    fn calls<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<CallRecord>> {
        self.inner().calls(run)
    }

    fn counters<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, BTreeMap<String, u64>> {
        self.inner().counters(run)
    }

    fn actions<'a>(&'a self, find: Find<'a>) -> StoreFuture<'a, Vec<ActionRow>> {
        self.inner().actions(find)
    }

    fn wakes(&self, limit: usize) -> StoreFuture<'_, Vec<Wake>> {
        self.inner().wakes(limit)
    }

    fn kills(&self) -> StoreFuture<'_, Vec<Kill>> {
        self.inner().kills()
    }

    fn audit<'a>(
        &'a self,
        tenant: &'a str,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditEntry>> {
        self.inner().audit(tenant, after, limit)
    }

    fn now_ms(&self) -> StoreFuture<'_, u64> {
        self.inner().now_ms()
    }

    fn is_lasting(&self) -> bool {
        self.inner().is_lasting()
    }
}

impl<L: StoreLayer> Store for L {
    fn commit(&self, change: Change) -> StoreFuture<'_, ()> {
        StoreLayer::commit(self, change)
    }

    fn calls<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<CallRecord>> {
        StoreLayer::calls(self, run)
    }

    fn counters<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, BTreeMap<String, u64>> {
        StoreLayer::counters(self, run)
    }

    fn actions<'a>(&'a self, find: Find<'a>) -> StoreFuture<'a, Vec<ActionRow>> {
        StoreLayer::actions(self, find)
    }

    fn wakes(&self, limit: usize) -> StoreFuture<'_, Vec<Wake>> {
        StoreLayer::wakes(self, limit)
    }

    fn kills(&self) -> StoreFuture<'_, Vec<Kill>> {
        StoreLayer::kills(self)
    }

    fn audit<'a>(
        &'a self,
        tenant: &'a str,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditEntry>> {
        StoreLayer::audit(self, tenant, after, limit)
    }

    fn now_ms(&self) -> StoreFuture<'_, u64> {
        StoreLayer::now_ms(self)
    }

    fn is_lasting(&self) -> bool {
        StoreLayer::is_lasting(self)
    }
}
