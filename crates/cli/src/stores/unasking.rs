//! A store that dies with the process takes no action that a person would have to decide about: the question would be
//! gone before anybody has seen it. Calls that need nobody go on as ever.
//!
//! [`Kept`](super::Kept) puts it before such a store; the moment of refusal is that at which an action is proposed.

use paraph_gateway::{Change, Store, StoreError, StoreFuture, StoreLayer};
use std::sync::Arc;

/// What is said of it, from here on.
pub(crate) const FORGETS: &str = "needs a person's approval, and the store `memory:` forgets the question when this process ends";

pub(super) struct Unasking(pub(super) Arc<dyn Store>);

impl StoreLayer for Unasking {
    fn inner(&self) -> &dyn Store {
        &*self.0
    }

    fn commit(&self, change: Change) -> StoreFuture<'_, ()> {
        let Some(asked) = change.actions.first() else {
            return self.0.commit(change);
        };
        let refused = StoreError::Broken(format!(
            "`{}` {FORGETS}: leave --store out, or use sqlite://PATH or postgres://…",
            asked.action.said.tool
        ));
        Box::pin(std::future::ready(Err(refused)))
    }

    fn is_lasting(&self) -> bool {
        false
    }
}
