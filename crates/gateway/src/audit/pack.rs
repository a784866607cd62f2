//! An evidence pack: all that a third party needs to check one action, in one text.
//!
//! The command line makes one from the store and checks one from a file. It has the action's bytes, the stretch of
//! the chain from the first entry about it, and anchors. Entries about other things stand there as their hash only:
//! they hold the chain together and tell nothing. Checking needs the text and nothing else; how far it can be
//! trusted depends on an anchor that was kept by somebody else.

mod check;

pub use check::{PackReport, PackStep};

use super::{Anchor, AuditEntry, Broken, BrokenLink, Event, EventKind, Head, ascii};
use crate::call::sha256;
use crate::canonical;
use serde::{Deserialize, Serialize};

/// What stands before an action's bytes when they are hashed.
const ACTION_DOMAIN: &str = "paraph/action/v1";
/// Bytes of a pack.
const MAX_BYTES: usize = 64 << 20;
/// Entries of a pack.
const MAX_LINKS: usize = 1 << 19;

/// An evidence pack. Its text is one JSON document.
///
/// ```
/// use paraph_gateway::{AuditEntry, Event, EventKind, Pack};
/// let bytes = r#"{"id":"a1","tenant":"acme"}"#;
/// # use sha2::{Digest, Sha256};
/// # let hash = Sha256::digest(format!("paraph/action/v1{bytes}"));
/// # let digest: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
/// let event = |kind, state: &str| Event {
///     action: Some("a1".into()),
///     digest: Some(digest.clone()),
///     state: Some(state.into()),
///     ..Event::new(kind, "acme", 0)
/// };
/// let mut pack = Pack::of(bytes, &digest)?;
/// let mut head = None;
/// for (kind, state) in [(EventKind::Proposed, "pending"), (EventKind::Decided, "rejected")] {
///     let entry = AuditEntry::link(head.as_ref(), event(kind, state).draft());
///     head = Some(entry.head());
///     pack.see(entry)?;
/// }
/// let text = pack.close(&[]).to_string();
/// let report = Pack::check(&text, &[])?;
/// assert_eq!((report.attempts, report.state.as_deref()), (0, Some("rejected")));
/// # Ok::<(), paraph_gateway::PackError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pack {
    pack: Form,
    action: String,
    tenant: String,
    digest: String,
    bytes: String,
    /// The entry before the first one here; nothing if that is the first of the chain.
    after: Option<Head>,
    links: Vec<Link>,
    anchors: Vec<Anchor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Form {
    #[serde(rename = "paraph/pack/v1")]
    V1,
}

/// An entry about the action or a kill switch, or the hash of the event of another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Link {
    Whole(Box<AuditEntry>),
    Sealed(String),
}

/// Why a pack proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// It is too large.
    #[error("the pack is too large")]
    TooLarge,
    /// It is no pack of this version.
    #[error("no evidence pack: {0}")]
    Unreadable(String),
    /// The bytes are not canonical JSON of an action.
    #[error("the action's bytes cannot be read: {0}")]
    Bytes(String),
    /// The digest is not that of the bytes.
    #[error("the bytes have the digest {of_bytes}, and the pack says {said}")]
    Digest {
        /// What was computed.
        of_bytes: String,
        /// What the pack says.
        said: String,
    },
    /// An entry about the action is about other bytes.
    #[error("entry {seq} is about bytes with another digest")]
    OtherBytes {
        /// The entry.
        seq: u64,
    },
    /// The chain is not whole.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The stretch does not begin with the proposal of the action.
    #[error("the entry that proposes the action is missing")]
    NoProposal,
    /// An anchor in the pack is not of its chain.
    #[error("the pack brings an anchor of another chain, that of `{tenant}`")]
    OtherChain {
        /// Whose chain.
        tenant: String,
    },
    /// Something that happened to the action is left out.
    #[error("before entry {seq}, an entry about the action is left out")]
    LeftOut {
        /// The first entry after what is left out.
        seq: u64,
    },
}

impl Pack {
    /// A pack about an action, as yet without entries.
    ///
    /// # Errors
    /// If the bytes are no action, or not those of this digest.
    pub fn of(bytes: &str, digest: &str) -> Result<Pack, PackError> {
        let (action, tenant) = named(bytes)?;
        let pack = Pack {
            pack: Form::V1,
            action,
            tenant,
            digest: digest.to_owned(),
            bytes: bytes.to_owned(),
            after: None,
            links: Vec::new(),
            anchors: Vec::new(),
        };
        pack.same_digest()?;
        Ok(pack)
    }

    /// Takes the next entry of the tenant's chain. They all have to come, from the first about the action on; earlier
    /// ones are passed over.
    pub fn see(&mut self, entry: AuditEntry) -> Result<(), PackError> {
        let broken = |link| Broken {
            seq: entry.seq,
            link,
        };
        let event = Event::read(&entry.event).map_err(BrokenLink::Unreadable);
        let event = event.map_err(broken)?;
        let own = event.action.as_deref() == Some(&*self.action);
        if self.links.is_empty() && !own {
            self.after = Some(entry.head());
            return Ok(());
        }
        if self.links.len() >= MAX_LINKS {
            return Err(PackError::TooLarge);
        }
        self.links.push(match event.kind {
            _ if own => Link::Whole(Box::new(entry)),
            // A kill switch says which attempts must not be there. Who put it on is not this action's matter.
            EventKind::Killed | EventKind::Unkilled | EventKind::Revoked | EventKind::Restored => {
                Link::Whole(Box::new(AuditEntry {
                    detail: None,
                    ..entry
                }))
            }
            _ => Link::Sealed(sha256(&entry.event)),
        });
        Ok(())
    }

    /// Ends the pack: with the first anchor behind the last entry about the action if there is one, else with that
    /// entry.
    pub fn close(mut self, anchors: &[Anchor]) -> Pack {
        let own = |link: &Link| matches!(link, Link::Whole(entry) if self.is_about(entry));
        let own = self.links.iter().rposition(own).map_or(0, |at| at + 1);
        let before = self.after.as_ref().map_or(0, |head| head.seq);
        let place = |anchor: &Anchor| {
            let seq = anchor.seq.checked_sub(before).filter(|seq| *seq > 0)?;
            let at = usize::try_from(seq).ok()?;
            (anchor.tenant == self.tenant && at <= self.links.len()).then_some(at)
        };
        let end = anchors
            .iter()
            .filter_map(place)
            .filter(|at| *at >= own)
            .min();
        let end = end.unwrap_or(own);
        let kept = anchors
            .iter()
            .filter(|anchor| place(anchor).is_some_and(|at| at <= end));
        self.anchors = kept.cloned().collect();
        self.links.truncate(end);
        self
    }

    fn is_about(&self, entry: &AuditEntry) -> bool {
        Event::read(&entry.event).is_ok_and(|event| event.action.as_deref() == Some(&*self.action))
    }

    fn same_digest(&self) -> Result<(), PackError> {
        let of_bytes = sha256(&format!("{ACTION_DOMAIN}{}", self.bytes));
        match of_bytes == self.digest {
            true => Ok(()),
            false => Err(PackError::Digest {
                of_bytes,
                said: self.digest.chars().take(64).collect(),
            }),
        }
    }
}

/// The document, on one line.
impl std::fmt::Display for Pack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = serde_json::to_string(self).map_err(|_| std::fmt::Error)?;
        f.write_str(&ascii(&text))
    }
}

/// The id and the tenant that an action's bytes name.
fn named(bytes: &str) -> Result<(String, String), PackError> {
    let json = canonical::read(bytes).map_err(|error| PackError::Bytes(error.to_string()))?;
    if let Some(key) = json.repeated_key() {
        return Err(PackError::Bytes(format!("the key `{key}` comes twice")));
    }
    let name = |key: &str| {
        let text = json.view().get(key).and_then(|value| value.as_str());
        text.map(str::to_owned)
            .ok_or_else(|| PackError::Bytes(format!("`{key}` is missing")))
    };
    Ok((name("id")?, name("tenant")?))
}
