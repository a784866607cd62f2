//! A store that counts its durable writes, and ends the process before or after a chosen one.
//!
//! Called by `child`, between the engine and the real store. A refused write is said aloud: whoever was stopped
//! beyond its lease shows by it that the store let nothing through.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use paraph_graph::{
    CheckpointId, Checkpoints, Claim, Entry, Error, HistoryQuery, Lease, Loaded, Notes, Put,
    RunEnd, Scope, Store,
};

use tokio::time::{Instant, sleep};

use crate::child::{Stop, When};
use crate::outside::say;

/// The writes that a store is asked for.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Lease,
    Put,
    Note,
    Finish,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Lease => "lease",
            Kind::Put => "put",
            Kind::Note => "note",
            Kind::Finish => "finish",
        })
    }
}

/// The store of a child.
pub(crate) struct Watched {
    inner: Store,
    stop: Option<Stop>,
    next: AtomicUsize,
    kinds: Mutex<Vec<Kind>>,
}

impl Watched {
    pub(crate) fn over(inner: Store, stop: Option<Stop>) -> Self {
        Watched {
            inner,
            stop,
            next: AtomicUsize::new(0),
            kinds: Mutex::default(),
        }
    }

    /// The writes so far, in the order in which they were asked for, with spaces between.
    pub(crate) fn writes(&self) -> String {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        kinds
            .iter()
            .map(Kind::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// One write more; its number. Must come before the store is asked, which may begin at once.
    fn begin(&self, kind: Kind) -> usize {
        let at = self.next.fetch_add(1, Ordering::SeqCst);
        self.kinds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(kind);
        self.die(at, When::Before);
        at
    }

    async fn end<T>(
        &self,
        (kind, at): (Kind, usize),
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let done = work.await;
        match &done {
            Ok(_) => self.die(at, When::After),
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

    /// Ends the process without a word to anybody, if it is to end here.
    fn die(&self, at: usize, when: When) {
        if self
            .stop
            .as_ref()
            .is_some_and(|stop| stop.write == at && stop.when == when)
        {
            std::process::abort();
        }
    }
}

impl Checkpoints for Watched {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> BoxFuture<'a, Result<Lease, Error>> {
        let at = self.begin(Kind::Lease);
        Box::pin(self.end((Kind::Lease, at), self.patiently(thread, claim)))
    }

    fn finish<'a>(&'a self, thread: &'a str, end: RunEnd) -> BoxFuture<'a, Result<(), Error>> {
        let at = self.begin(Kind::Finish);
        Box::pin(self.end((Kind::Finish, at), self.inner.finish(thread, end)))
    }

    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> BoxFuture<'a, Result<(), Error>> {
        let at = self.begin(Kind::Put);
        Box::pin(self.end((Kind::Put, at), self.inner.put(scope, put)))
    }

    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> BoxFuture<'a, Result<(), Error>> {
        let at = self.begin(Kind::Note);
        Box::pin(self.end((Kind::Note, at), self.inner.note(scope, notes)))
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
