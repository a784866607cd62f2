//! Checks a chain, entry by entry, so that a chain of any length needs little memory.
//!
//! Called by the command line with pages from a store or with the lines of an export, and by `pack.rs`.

use super::anchor::Anchor;
use super::entry::{AuditEntry, GENESIS, Head};
use super::event::{Event, EventKind, Field};
use super::is_hash;
use super::signed::Signatures;
use super::spans::Spans;
use crate::call::sha256;
use std::collections::BTreeSet;

/// The first thing that is wrong with a chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {seq}: {link}")]
pub struct Broken {
    /// The number of the entry that is wrong, or that should be there.
    pub seq: u64,
    /// What is wrong with it.
    pub link: BrokenLink,
}

/// What can be wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BrokenLink {
    /// Others come in its place.
    #[error("it is missing; entry {found} stands in its place")]
    Missing {
        /// The number that comes.
        found: u64,
    },
    /// An earlier number comes.
    #[error("entry {found} stands in its place, a second time or out of order")]
    OutOfOrder {
        /// The number that comes.
        found: u64,
    },
    /// It names another predecessor than the one before it.
    #[error("it does not follow the entry before it")]
    NotNext,
    /// It is the first and names a predecessor.
    #[error("it is the first one and names one before it")]
    NotFirst,
    /// Its hash is not that of its content.
    #[error("it was changed: its hash is not that of its content")]
    Changed,
    /// Its event cannot be read.
    #[error("its event cannot be read: {0}")]
    Unreadable(String),
    /// It belongs to somebody else's chain.
    #[error("it belongs to the chain of another tenant")]
    OtherTenant,
    /// Its detail is not the one that was written.
    #[error("its detail was changed")]
    DetailChanged,
    /// It has a detail although it says that there is none.
    #[error("it has a detail that was not written with it")]
    DetailAdded,
    /// An anchor says otherwise.
    #[error("it is not the entry that was anchored at {at_ms} ms")]
    NotAnchored {
        /// When the anchor was made, in milliseconds since the Unix epoch.
        at_ms: u64,
    },
    /// The chain ends before an anchor.
    #[error("it was anchored at {at_ms} ms and is gone: the chain ends at entry {last}")]
    CutOff {
        /// When the anchor was made, in milliseconds since the Unix epoch.
        at_ms: u64,
        /// The last entry there is, 0 if there is none.
        last: u64,
    },
    /// The entry that was anchored last is not there any more.
    #[error("it was anchored and is gone: the chain ends at entry {last}")]
    Gone {
        /// The last entry there is, 0 if there is none.
        last: u64,
    },
    /// An attempt without a signature in force.
    #[error("an attempt was started that no approval in force covers")]
    Unsigned,
    /// The bytes that were started are not the ones that were signed.
    #[error("the digest of what was started is not the digest of what was approved")]
    OtherBytes,
    /// It was started after the signature had expired.
    #[error("an attempt was started after the approval had expired")]
    Late,
    /// It was started although a kill switch was on.
    #[error("an attempt was started while a kill switch was on")]
    Killed,
    /// It was started although the grant that signed it had been revoked.
    #[error("an attempt was started that a grant had signed which was revoked")]
    Revoked,
    /// It was started again although nobody had looked what came of it.
    #[error("an attempt was started again before anybody knew what came of the last one")]
    StartedTwice,
    /// More actions are open at once than any real chain has.
    #[error("more actions are open at once than can be followed")]
    TooMuchOpen,
}

/// What was found in a chain that is whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The last entry; nothing if the chain is empty.
    pub head: Option<Head>,
    /// How many entries were looked at.
    pub entries: u64,
    /// How many attempts there were, every one of them signed.
    pub attempts: u64,
    /// How many details are there and unchanged.
    pub details: u64,
    /// How many details were erased.
    pub erased: u64,
    /// How many of these no entry of the chain tells of: somebody took them away by hand.
    pub erased_untold: u64,
    /// How many anchors fit.
    pub anchored: u64,
    /// The newest anchor that fits. What comes after it could have been written anew by the owner of the chain.
    pub last_anchor: Option<Anchor>,
}

/// Checks a tenant's chain from its first entry on.
///
/// ```
/// use paraph_gateway::{AuditEntry, Event, EventKind, Verifier};
/// let first = AuditEntry::link(None, Event::new(EventKind::Killed, "acme", 0).draft());
/// let mut second = AuditEntry::link(Some(&first.head()), Event::new(EventKind::Unkilled, "acme", 9).draft());
/// let mut verifier = Verifier::new("acme", []);
/// verifier.see(&first)?;
/// second.event = second.event.replace("9", "8");
/// assert_eq!(
///     verifier.see(&second).unwrap_err().to_string(),
///     "entry 2: it was changed: its hash is not that of its content",
/// );
/// # Ok::<(), paraph_gateway::Broken>(())
/// ```
#[derive(Clone, Debug)]
pub struct Verifier {
    tenant: String,
    /// Those that are still ahead, the next one last.
    anchors: Vec<Anchor>,
    signatures: Signatures,
    /// The entries whose detail is gone, as far as no later entry has told of it.
    untold: BTreeSet<u64>,
    found: Verified,
}

impl Verifier {
    /// A verifier with the anchors that were kept elsewhere. Those of other tenants do not count.
    pub fn new(tenant: impl Into<String>, anchors: impl IntoIterator<Item = Anchor>) -> Verifier {
        let tenant = tenant.into();
        let of_tenant = anchors.into_iter().filter(|anchor| anchor.tenant == tenant);
        let mut anchors: Vec<_> = of_tenant.collect();
        anchors.sort_by_key(|anchor| std::cmp::Reverse(anchor.seq));
        Verifier {
            tenant,
            anchors,
            signatures: Signatures::default(),
            untold: BTreeSet::new(),
            found: Verified::default(),
        }
    }

    /// Checks a whole chain that is in memory.
    pub fn check<'e>(
        tenant: impl Into<String>,
        entries: impl IntoIterator<Item = &'e AuditEntry>,
        anchors: &[Anchor],
    ) -> Result<Verified, Broken> {
        let mut verifier = Verifier::new(tenant, anchors.iter().cloned());
        for entry in entries {
            verifier.see(entry)?;
        }
        verifier.finish()
    }

    /// The number of the entry that has to come next: where a store continues to read.
    pub fn next_seq(&self) -> u64 {
        let last = self.found.head.as_ref().map_or(0, |head| head.seq);
        last.saturating_add(1)
    }

    /// Takes the next entry. After an error there is no going on.
    pub fn see(&mut self, entry: &AuditEntry) -> Result<(), Broken> {
        let seq = self.next_seq();
        self.follow(entry).map_err(|link| Broken { seq, link })
    }

    fn follow(&mut self, entry: &AuditEntry) -> Result<(), BrokenLink> {
        let head = follows(self.found.head.as_ref(), entry)?;
        let event = Event::read(&entry.event).map_err(BrokenLink::Unreadable)?;
        if event.tenant != self.tenant {
            return Err(BrokenLink::OtherTenant);
        }
        match detail(&event, entry)? {
            Detail::None => {}
            Detail::Whole => self.found.details += 1,
            Detail::Erased => {
                self.found.erased += 1;
                self.untold.insert(head.seq);
            }
        }
        if event.kind == EventKind::Erased
            && let Some(Field::Text(text)) = event.fields.get("entries")
            && let Some(spans) = Spans::read(text)
        {
            spans.remove_from(&mut self.untold);
        }
        self.anchor(&head)?;
        self.signatures.see(&event)?;
        self.found.entries += 1;
        self.found.head = Some(head);
        Ok(())
    }

    /// Compares an entry with the anchors that name it.
    fn anchor(&mut self, head: &Head) -> Result<(), BrokenLink> {
        while let Some(anchor) = self.anchors.pop_if(|anchor| anchor.seq <= head.seq) {
            if anchor.seq != head.seq || anchor.hash != head.hash {
                return Err(BrokenLink::NotAnchored {
                    at_ms: anchor.at_ms,
                });
            }
            self.found.anchored += 1;
            self.found.last_anchor = Some(anchor);
        }
        Ok(())
    }

    /// After the last entry: whether it is the last one that anybody knows of.
    pub fn finish(mut self) -> Result<Verified, Broken> {
        self.found.attempts = self.signatures.attempts();
        self.found.erased_untold = self.untold.len() as u64;
        let Some(anchor) = self.anchors.pop() else {
            return Ok(self.found);
        };
        Err(Broken {
            seq: anchor.seq,
            link: BrokenLink::CutOff {
                at_ms: anchor.at_ms,
                last: self.found.head.map_or(0, |head| head.seq),
            },
        })
    }
}

/// Whether an entry has the right number, predecessor and hash; then it is the new head.
pub(crate) fn follows(last: Option<&Head>, entry: &AuditEntry) -> Result<Head, BrokenLink> {
    let (before, prev) = last.map_or((0, GENESIS), |head| (head.seq, &head.hash));
    let found = entry.seq;
    match found.checked_sub(before) {
        None | Some(0) => return Err(BrokenLink::OutOfOrder { found }),
        Some(1) => {}
        Some(_) => return Err(BrokenLink::Missing { found }),
    }
    if entry.prev != prev {
        return Err(match last {
            Some(_) => BrokenLink::NotNext,
            None => BrokenLink::NotFirst,
        });
    }
    if !is_hash(&entry.hash) || !entry.is_sealed() {
        return Err(BrokenLink::Changed);
    }
    Ok(entry.head())
}

/// What there is beside an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// There never was anything.
    None,
    /// What was written is there.
    Whole,
    /// What was written is gone.
    Erased,
}

pub(super) fn detail(event: &Event, entry: &AuditEntry) -> Result<Detail, BrokenLink> {
    match (&event.detail, &entry.detail) {
        (None, None) => Ok(Detail::None),
        (None, Some(_)) => Err(BrokenLink::DetailAdded),
        (Some(_), None) => Ok(Detail::Erased),
        (Some(hash), Some(text)) if sha256(text) == *hash => Ok(Detail::Whole),
        (Some(_), Some(_)) => Err(BrokenLink::DetailChanged),
    }
}
