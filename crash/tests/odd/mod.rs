//! A store that does something else with each change, to see that a proof finds it.

use paraph_gateway::{
    ActionRow, AuditEntry, CallRecord, Change, Find, Kill, RunRef, Store, StoreFuture, Wake,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Another store, which gets changed changes.
pub(crate) struct Odd {
    inner: Arc<dyn Store>,
    odd: fn(&mut Change),
}

impl Odd {
    pub(crate) fn over(inner: Arc<dyn Store>, odd: fn(&mut Change)) -> Arc<dyn Store> {
        Arc::new(Odd { inner, odd })
    }
}

impl Store for Odd {
    fn commit(&self, mut change: Change) -> StoreFuture<'_, ()> {
        (self.odd)(&mut change);
        self.inner.commit(change)
    }

    fn calls<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<CallRecord>> {
        self.inner.calls(run)
    }

    fn counters<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, BTreeMap<String, u64>> {
        self.inner.counters(run)
    }

    fn actions<'a>(&'a self, find: Find<'a>) -> StoreFuture<'a, Vec<ActionRow>> {
        self.inner.actions(find)
    }

    fn wakes(&self, limit: usize) -> StoreFuture<'_, Vec<Wake>> {
        self.inner.wakes(limit)
    }

    fn kills(&self) -> StoreFuture<'_, Vec<Kill>> {
        self.inner.kills()
    }

    fn audit<'a>(
        &'a self,
        tenant: &'a str,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditEntry>> {
        self.inner.audit(tenant, after, limit)
    }

    fn now_ms(&self) -> StoreFuture<'_, u64> {
        self.inner.now_ms()
    }

    fn is_lasting(&self) -> bool {
        self.inner.is_lasting()
    }
}
