//! Anchors of a tenant's chain: when one is due, and that one was made. Where they are kept is the program's affair.

use super::{ApprovalError, Approvals};
use crate::audit::{Anchor, Event, EventKind, Field, Head};
use crate::record::RunRef;
use crate::store::{Add, Change, Guard, StoreError};
use std::sync::Arc;

/// How many entries are read at a time.
const PAGE: usize = 500;

/// The counter that says which entry was anchored last.
const LAST: &str = "anchored";

/// Whether a chain has to be anchored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchorDue {
    /// It has: this is its last entry.
    Now(Anchor),
    /// Not before so many entries more.
    In(u64),
}

impl Approvals {
    /// Whether so many entries, `every` of them, have come since a tenant's chain was [anchored](Approvals::anchored)
    /// last. Its links are not looked at: whoever checks the chain against the anchor does that.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn anchor_due(&self, tenant: &str, every: u64) -> Result<AnchorDue, ApprovalError> {
        let last = self.last_anchored(tenant).await?;
        let (mut count, mut head): (u64, Option<Head>) = (0, None);
        loop {
            let after = head.as_ref().map_or(last, |head| head.seq);
            let page = self.store.audit(tenant, after, PAGE).await?;
            let whole = page.len() < PAGE;
            for entry in page {
                // That an anchor was made is no reason to make another.
                let told =
                    Event::read(&entry.event).is_ok_and(|event| event.kind == EventKind::Anchored);
                count = count.saturating_add(u64::from(!told));
                head = Some(entry.head());
            }
            if whole {
                break;
            }
        }
        let at_ms = self.now().await?;
        Ok(match head.filter(|_| count >= every.max(1)) {
            Some(head) => AnchorDue::Now(Anchor::new(tenant, &head, at_ms)),
            None => AnchorDue::In(every.max(1).saturating_sub(count).max(1)),
        })
    }

    /// Writes into the chain that an anchor of it is kept somewhere, once: if it says so of this entry or a later one
    /// already, nothing is written.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn anchored(&self, anchor: &Anchor, place: &str) -> Result<(), ApprovalError> {
        let last = self.last_anchored(&anchor.tenant).await?;
        if anchor.seq <= last {
            return Ok(());
        }
        let at_ms = self.now().await?;
        let event = Event::new(EventKind::Anchored, anchor.tenant.as_str(), at_ms);
        let event = event
            .with("seq", anchor.seq)
            .with("hash", anchor.hash.as_str());
        // An address may be somebody's.
        let draft = event.draft_with([("place".to_owned(), Field::from(place))].into());
        let counted = run(&anchor.tenant);
        let change = Change {
            guards: vec![Guard::Most {
                run: counted.clone(),
                counter: LAST.to_owned(),
                most: anchor.seq,
            }],
            add: vec![Add {
                run: counted,
                counter: LAST.to_owned(),
                by: anchor.seq - last,
            }],
            audit: vec![draft],
            ..Change::default()
        };
        match self.store.commit(change).await {
            Ok(()) | Err(StoreError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn last_anchored(&self, tenant: &str) -> Result<u64, ApprovalError> {
        let counters = self.store.counters(&run(tenant)).await?;
        Ok(counters.get(LAST).copied().unwrap_or_default())
    }
}

/// Whose counter it is: the chain's, and of none of its runs.
fn run(tenant: &str) -> Arc<RunRef> {
    Arc::new(RunRef {
        tenant: tenant.to_owned(),
        agent: String::new(),
        thread: String::new(),
        run: "anchors".to_owned(),
    })
}
