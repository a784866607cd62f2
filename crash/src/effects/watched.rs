//! The gateway's store of a child: each write is named by what it is about, and may be the last thing that happens.
//!
//! Made by `driving` over the real store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paraph_gateway::{Change, State, Store, StoreFuture, StoreLayer};

use crate::fuse::Fuse;
use crate::outside::say;

/// A store whose writes are places to die at.
pub(crate) struct WatchedActions {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) fuse: Arc<Fuse>,
    /// When the last attempt was begun, by the store's clock.
    pub(crate) claimed_ms: Arc<AtomicU64>,
}

/// What a write is about.
fn name(change: &Change) -> &'static str {
    let Some(row) = change.actions.first() else {
        return match change.woken.is_empty() {
            false => "woken",
            true => "usage",
        };
    };
    match row.state {
        State::Pending => "proposal",
        State::Approved | State::Rejected => "decision",
        State::Executing => "claim",
        State::Unknown => "unknown",
        State::Succeeded | State::Failed => "result",
        _ => "other",
    }
}

impl StoreLayer for WatchedActions {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn commit(&self, change: Change) -> StoreFuture<'_, ()> {
        let name = name(&change);
        if let ("claim", Some(row)) = (name, change.actions.first()) {
            self.claimed_ms.store(row.sending.at_ms, Ordering::SeqCst);
        }
        if matches!(name, "claim" | "unknown") {
            say("acts");
        }
        let at = self.fuse.begin(name);
        Box::pin(async move {
            let done = self.inner.commit(change).await;
            if done.is_ok() {
                self.fuse.end(at);
            }
            done
        })
    }
}
