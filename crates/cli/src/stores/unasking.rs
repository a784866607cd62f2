//! A store that dies with the process takes no action that a person would have to decide about: the question would be
//! gone before anybody has seen it. Calls that need nobody go on as ever.
//!
//! [`Kept`](super::Kept) puts it before such a store; the moment of refusal is that at which an action is proposed.

use paraph_gateway::{
    ActionRow, AuditEntry, CallRecord, Change, Find, Kill, RunRef, Store, StoreError, StoreFuture,
    Wake,
};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct Unasking(pub(super) Arc<dyn Store>);

impl Store for Unasking {
    fn commit(&self, change: Change) -> StoreFuture<'_, ()> {
        let Some(asked) = change.actions.first() else {
            return self.0.commit(change);
        };
        let refused = StoreError::Broken(format!(
            "`{}` needs a person's approval, and the store `memory:` forgets the question when this process ends: \
             leave --store out, or use sqlite://PATH or postgres://…",
            asked.action.said.tool
        ));
        Box::pin(std::future::ready(Err(refused)))
    }

    fn calls<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<CallRecord>> {
        self.0.calls(run)
    }

    fn counters<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, BTreeMap<String, u64>> {
        self.0.counters(run)
    }

    fn actions<'a>(&'a self, find: Find<'a>) -> StoreFuture<'a, Vec<ActionRow>> {
        self.0.actions(find)
    }

    fn wakes(&self, limit: usize) -> StoreFuture<'_, Vec<Wake>> {
        self.0.wakes(limit)
    }

    fn kills(&self) -> StoreFuture<'_, Vec<Kill>> {
        self.0.kills()
    }

    fn audit<'a>(
        &'a self,
        tenant: &'a str,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditEntry>> {
        self.0.audit(tenant, after, limit)
    }

    fn now_ms(&self) -> StoreFuture<'_, u64> {
        self.0.now_ms()
    }

    fn is_lasting(&self) -> bool {
        false
    }
}
