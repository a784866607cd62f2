//! A store that does something else with each change, to see that a proof finds it.

use paraph_gateway::{Change, Store, StoreFuture, StoreLayer};
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

impl StoreLayer for Odd {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn commit(&self, mut change: Change) -> StoreFuture<'_, ()> {
        (self.odd)(&mut change);
        self.inner.commit(change)
    }
}
