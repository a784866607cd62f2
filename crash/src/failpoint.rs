//! A store that counts its durable writes, and ends the process before or after a chosen one.
//!
//! Called by `child`, between the engine and the real store. A refused write is said aloud: whoever was stopped
//! beyond its lease shows by it that the store let nothing through.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use paraph_graph::{
    CheckpointId, Checkpoints, Claim, Entry, Error, HistoryQuery, Lease, Loaded, Notes, Put,
    RunEnd, Scope, Store,
};

use tokio::time::{Instant, sleep};

use crate::child::Stop;
use crate::fuse::Fuse;
use crate::outside::say;

/// The store of a child.
pub(crate) struct Watched {
    inner: Store,
    fuse: Arc<Fuse>,
}

impl Watched {
    pub(crate) fn over(inner: Store, stop: Option<Stop>) -> Self {
        Watched::with(inner, Arc::new(Fuse::new(stop)))
    }

    /// With a fuse that others go by too.
    pub(crate) fn with(inner: Store, fuse: Arc<Fuse>) -> Self {
        Watched { inner, fuse }
    }

    /// The writes so far, in the order in which they were asked for, with spaces between.
    pub(crate) fn writes(&self) -> String {
        self.fuse.deeds()
    }

    async fn end<T>(
        &self,
        (kind, at): (&'static str, usize),
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let done = work.await;
        match &done {
            Ok(_) => self.fuse.end(at),
            Err(Error::Conflict { .. }) => say(&format!("refused {kind}")),
            Err(_) => {}
        }
        done
    }

    /// Asks again while another process has the thread: one that was killed may still seem alive to a
    /// server for a moment, and one that is stopped keeps it until its lease is over.
    async fn patiently(&self, thread: &str, claim: Claim) -> Result<Lease, Error> {
        const PATIENCE: Duration = Duration::from_secs(12);
        let until = Instant::now() + PATIENCE;
        loop {
            match self.inner.lease(thread, claim.clone()).await {
                Err(Error::Conflict { .. }) if Instant::now() < until => {
                    sleep(Duration::from_millis(20)).await;
                }
                answer => return answer,
            }
        }
    }
}

impl Checkpoints for Watched {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> BoxFuture<'a, Result<Lease, Error>> {
        let at = self.fuse.begin("lease");
        Box::pin(self.end(("lease", at), self.patiently(thread, claim)))
    }

    fn finish<'a>(&'a self, thread: &'a str, end: RunEnd) -> BoxFuture<'a, Result<(), Error>> {
        let at = self.fuse.begin("finish");
        Box::pin(self.end(("finish", at), self.inner.finish(thread, end)))
    }

    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> BoxFuture<'a, Result<(), Error>> {
        let at = self.fuse.begin("put");
        Box::pin(self.end(("put", at), self.inner.put(scope, put)))
    }

    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> BoxFuture<'a, Result<(), Error>> {
        let at = self.fuse.begin("note");
        Box::pin(self.end(("note", at), self.inner.note(scope, notes)))
    }

    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, Error>> {
        self.inner.load(scope, at)
    }

    fn history<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>> {
        self.inner.history(scope, query)
    }

    fn views<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Loaded>, Error>> {
        self.inner.views(scope, query)
    }

    fn keeps_events(&self) -> bool {
        self.inner.keeps_events()
    }
}
