//! A store that fails, or dies, at a chosen call.

use futures::{FutureExt, future::BoxFuture};
use paraph_graph::*;
use std::sync::{Arc, Mutex};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The call fails and has not happened; later ones go well.
    Fails,
    /// The call fails though it has happened.
    FailsAfter,
    /// The call fails and has not happened, and so do all that follow: a process was killed.
    Dies,
    /// The same, but the call itself has happened.
    DiesAfter,
}

/// Which calls count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    Puts,
    Notes,
    Writes,
    Loads,
}

/// A memory store of which the call numbered `at` (from 0) goes wrong.
pub(crate) struct Faulty {
    inner: Store,
    calls: Calls,
    at: usize,
    fault: Fault,
    state: Mutex<(usize, bool)>,
}

impl Faulty {
    pub(crate) fn over(inner: &Store, calls: Calls, at: usize, fault: Fault) -> Arc<Self> {
        Arc::new(Faulty {
            inner: inner.clone(),
            calls,
            at,
            fault,
            state: Mutex::default(),
        })
    }

    /// How many of the calls there have been.
    pub(crate) fn count(&self) -> usize {
        self.state.lock().unwrap_or_else(|e| e.into_inner()).0
    }

    /// Does a call, or not.
    fn call<'a, T: Send + 'a>(
        &self,
        kind: Calls,
        work: impl FnOnce() -> BoxFuture<'a, Result<T, Error>>,
    ) -> BoxFuture<'a, Result<T, Error>> {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        let broken = || async { Err(Error::store("the store is broken")) }.boxed();
        if state.1 {
            return broken();
        }
        let writes = matches!(kind, Calls::Puts | Calls::Notes);
        if kind != self.calls && !(writes && self.calls == Calls::Writes) {
            return work();
        }
        state.0 += 1;
        if state.0 - 1 != self.at {
            return work();
        }
        state.1 = matches!(self.fault, Fault::Dies | Fault::DiesAfter);
        match self.fault {
            Fault::Fails | Fault::Dies => broken(),
            Fault::FailsAfter | Fault::DiesAfter => {
                let work = work();
                async move {
                    work.await?;
                    Err(Error::store("the store is broken"))
                }
                .boxed()
            }
        }
    }
}

impl Checkpoints for Faulty {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> BoxFuture<'a, Result<Lease, Error>> {
        self.inner.lease(thread, claim)
    }

    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> BoxFuture<'a, Result<(), Error>> {
        self.call(Calls::Puts, || self.inner.put(scope, put))
    }

    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> BoxFuture<'a, Result<(), Error>> {
        self.call(Calls::Notes, || self.inner.note(scope, notes))
    }

    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, Error>> {
        self.call(Calls::Loads, || self.inner.load(scope, at))
    }

    fn history<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>> {
        self.inner.history(scope, query)
    }
}
