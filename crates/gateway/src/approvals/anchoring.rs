//! Anchors of a tenant's chain: when one is due, and that one was made. Where they are kept is the program's affair.

use super::{ApprovalError, Approvals};
use crate::audit::{Anchor, Broken, BrokenLink, Event, EventKind, Field, Head, follows};
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
    /// last. The links from that entry on are checked: what is broken is not worth an anchor. Those before it are
    /// checked by whoever verifies the chain.
    ///
    /// # Errors
    /// [`ApprovalError::Broken`], [`ApprovalError::Store`].
    pub async fn anchor_due(&self, tenant: &str, every: u64) -> Result<AnchorDue, ApprovalError> {
        let last = self.last_anchored(tenant).await?;
        let mut head = self.entry(tenant, last).await?;
        let mut count: u64 = 0;
        loop {
            let after = head.as_ref().map_or(0, |head| head.seq);
            let page = self.store.audit(tenant, after, PAGE).await?;
            let whole = page.len() < PAGE;
            for entry in page {
                let seq = head.as_ref().map_or(0, |head| head.seq).saturating_add(1);
                let broken = |link| ApprovalError::Broken(Broken { seq, link });
                let next = follows(head.as_ref(), &entry).map_err(broken)?;
                let event = Event::read(&entry.event);
                let event = event.map_err(|why| broken(BrokenLink::Unreadable(why)))?;
                // That an anchor was made is no reason to make another.
                let told = event.kind == EventKind::Anchored;
                count = count.saturating_add(u64::from(!told));
                head = Some(next);
            }
            if whole {
                break;
            }
        }
        let at_ms = self.now().await?;
        Ok(
            match head.filter(|head| head.seq > last && count >= every.max(1)) {
                Some(head) => AnchorDue::Now(Anchor::new(tenant, &head, at_ms)),
                None => AnchorDue::In(every.max(1).saturating_sub(count).max(1)),
            },
        )
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

    /// The entry of this number as it is linked; nothing for none, before the first.
    async fn entry(&self, tenant: &str, seq: u64) -> Result<Option<Head>, ApprovalError> {
        let Some(before) = seq.checked_sub(1) else {
            return Ok(None);
        };
        let found = self.store.audit(tenant, before, 1).await?.pop();
        let link = match &found {
            Some(entry) if entry.seq == seq && entry.is_sealed() => return Ok(Some(entry.head())),
            Some(entry) if entry.seq == seq => BrokenLink::Changed,
            Some(entry) => BrokenLink::Missing { found: entry.seq },
            None => BrokenLink::Gone {
                last: self.last_entry(tenant).await?,
            },
        };
        Err(ApprovalError::Broken(Broken { seq, link }))
    }

    async fn last_entry(&self, tenant: &str) -> Result<u64, ApprovalError> {
        let mut last = 0;
        loop {
            let page = self.store.audit(tenant, last, PAGE).await?;
            last = page.last().map_or(last, |entry| entry.seq);
            if page.len() < PAGE {
                return Ok(last);
            }
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
