//! Anchors the audit while programs write to it: a store that counts what is added, and has an anchor kept elsewhere
//! when one is due.
//!
//! [`Kept`](super::Kept) puts it before the store where the settings name a place. No write waits for an anchor, and
//! none fails for want of one: what could not be kept is a warning, and is tried again after the next write.

use crate::anchors::Anchors;
use crate::output::note;
use crate::terminal::printable;
use paraph_gateway::{AnchorDue, Approvals, Change, Draft, Store, StoreFuture, StoreLayer};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

pub(super) struct Anchoring {
    inner: Arc<dyn Store>,
    written: mpsc::UnboundedSender<Written>,
}

/// What the one who keeps anchors is told.
enum Written {
    /// An entry was added to a tenant's chain.
    Entry(String),
    /// Somebody wants to know when all before is done.
    Settle(oneshot::Sender<()>),
}

impl Anchoring {
    pub(super) fn over(inner: Arc<dyn Store>, anchors: Anchors) -> Arc<Anchoring> {
        let (written, told) = mpsc::unbounded_channel();
        let keeper = Keeper {
            desk: Approvals::new(inner.clone()),
            anchors,
            left: BTreeMap::new(),
            warned: String::new(),
            resting: None,
        };
        tokio::spawn(keeper.work(told));
        Arc::new(Anchoring { inner, written })
    }

    /// Waits until what is due by now is kept, or could not be.
    pub(super) async fn settled(&self) {
        let (sender, receiver) = oneshot::channel();
        if self.written.send(Written::Settle(sender)).is_ok() {
            // If the keeper is gone there is nothing to wait for.
            let _ = receiver.await;
        }
    }
}

struct Keeper {
    desk: Approvals,
    anchors: Anchors,
    /// How many entries of each chain have to come before it is looked at again.
    left: BTreeMap<String, u64>,
    /// The last warning, so that the same is not told with every write.
    warned: String,
    /// Until then a place that was slow is not tried: whoever ends the program would wait for it each time.
    resting: Option<Instant>,
}

/// How long a place is left alone that kept us waiting.
const REST: Duration = Duration::from_secs(60);

/// From when on a place that answers so late is called slow.
const SLOW: Duration = Duration::from_secs(5);

impl Keeper {
    async fn work(mut self, mut told: mpsc::UnboundedReceiver<Written>) {
        while let Some(first) = told.recv().await {
            // What came meanwhile is one look, however slow the place is.
            let mut settling = Vec::new();
            let mut next = Some(first);
            while let Some(written) = next {
                match written {
                    Written::Settle(sender) => settling.push(sender),
                    Written::Entry(tenant) => {
                        let left = self.left.entry(tenant).or_insert(1);
                        *left = left.saturating_sub(1);
                    }
                }
                next = told.try_recv().ok();
            }
            for tenant in self.due() {
                let left = self.look(&tenant).await;
                self.left.insert(tenant, left);
            }
            for sender in settling {
                let _ = sender.send(());
            }
        }
    }

    fn due(&self) -> Vec<String> {
        let due = self.left.iter().filter(|(_, left)| **left == 0);
        due.map(|(tenant, _)| tenant.clone()).collect()
    }

    /// Keeps an anchor of a chain if one is due, and says after how many entries to look again.
    async fn look(&mut self, tenant: &str) -> u64 {
        if self.resting.is_some_and(|until| Instant::now() < until) {
            return 1;
        }
        let every = self.anchors.every;
        let begun = Instant::now();
        let kept = match self.desk.anchor_due(tenant, every).await {
            Ok(AnchorDue::In(left)) => return left,
            Ok(AnchorDue::Now(anchor)) => match self.anchors.keep(&anchor).await {
                Ok(()) => {
                    let place = self.anchors.shown();
                    let told = self.desk.anchored(&anchor, &place).await;
                    told.map_err(|error| error.to_string())
                }
                Err(why) => Err(why),
            },
            Err(error) => Err(error.to_string()),
        };
        match kept {
            Ok(()) => every,
            Err(why) => {
                self.resting = (begun.elapsed() >= SLOW).then(|| Instant::now() + REST);
                self.warn(&why);
                1
            }
        }
    }

    fn warn(&mut self, why: &str) {
        if self.warned != why {
            note(&printable(&format!(
                "warning: the audit could not be anchored ({}): {why}; it is tried again with the next entry",
                self.anchors.shown()
            )));
            why.clone_into(&mut self.warned);
        }
    }
}

impl StoreLayer for Anchoring {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn commit(&self, change: Change) -> StoreFuture<'_, ()> {
        let chains = change.audit.iter().map(Draft::tenant);
        let chains: Vec<String> = chains.map(str::to_owned).collect();
        let writing = self.inner.commit(change);
        Box::pin(async move {
            writing.await?;
            for tenant in chains {
                // Without a keeper there are no anchors, and its end was told.
                let _ = self.written.send(Written::Entry(tenant));
            }
            Ok(())
        })
    }
}
