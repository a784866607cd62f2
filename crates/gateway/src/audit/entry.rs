//! An entry of the chain, and how it is sealed.

use super::event::Draft;
use super::{ascii, is_hash};
use crate::call::sha256;
use serde::{Deserialize, Serialize};

/// What stands before everything that is hashed, so that no other text has the same hash.
const DOMAIN: &str = "paraph/audit/v1";

/// What the first entry has in place of a predecessor's hash.
pub(super) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Bytes of one exported line.
const MAX_LINE: usize = 16 << 20;

/// The last entry of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Its number, from 1.
    pub seq: u64,
    /// Its hash.
    pub hash: String,
}

/// An entry in its place. Hashes are 64 hexadecimal digits.
///
/// ```
/// use paraph_gateway::{AuditEntry, Event, EventKind, Head};
/// let first = AuditEntry::link(None, Event::new(EventKind::Killed, "acme", 0).draft());
/// let second = AuditEntry::link(Some(&first.head()), Event::new(EventKind::Unkilled, "acme", 9).draft());
/// assert_eq!((second.seq, &second.prev), (2, &first.hash));
/// assert_eq!(second.event, r#"{"at_ms":9,"kind":"unkilled","tenant":"acme"}"#);
/// assert_eq!(AuditEntry::from_line(&second.to_line())?, second);
/// # Ok::<(), paraph_gateway::BadLine>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditEntry {
    /// Its number in its tenant's chain, from 1, without gaps.
    pub seq: u64,
    /// The hash of the entry before it; 64 zeros for the first.
    pub prev: String,
    /// SHA-256 of `paraph/audit/v1`, `prev`, `seq` in twenty digits, and the SHA-256 of `event`, all as text.
    pub hash: String,
    /// The event as canonical JSON in ASCII: one line, whatever is in it.
    pub event: String,
    /// What is personal about it, as JSON; nothing if there never was anything, or if it was erased. The event has
    /// its SHA-256.
    pub detail: Option<String>,
}

/// A line that is no entry as [`AuditEntry::to_line`] writes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no audit entry: {0}")]
pub struct BadLine(String);

impl AuditEntry {
    /// Gives an event its place behind the last entry of its tenant's chain. A store calls it inside the transaction
    /// that writes what the event is about, while nobody else can append to that chain.
    pub fn link(last: Option<&Head>, draft: Draft) -> AuditEntry {
        let (seq, prev) = match last {
            Some(head) => (head.seq.saturating_add(1), head.hash.clone()),
            None => (1, GENESIS.to_owned()),
        };
        AuditEntry {
            hash: seal(&prev, seq, &sha256(&draft.event)),
            seq,
            prev,
            event: draft.event,
            detail: draft.detail,
        }
    }

    /// What the next entry is linked to.
    pub fn head(&self) -> Head {
        Head {
            seq: self.seq,
            hash: self.hash.clone(),
        }
    }

    /// Whether its hash is that of its content.
    pub(crate) fn is_sealed(&self) -> bool {
        self.hash == seal(&self.prev, self.seq, &sha256(&self.event))
    }

    /// One line of an export, without its end: JSON in ASCII.
    pub fn to_line(&self) -> String {
        // Plain texts and a number are always JSON.
        ascii(&serde_json::to_string(self).unwrap_or_default())
    }

    /// Reads a line of an export. Any other spelling than that of [`AuditEntry::to_line`] is refused, so that every
    /// changed byte is found.
    pub fn from_line(line: &str) -> Result<AuditEntry, BadLine> {
        if line.len() > MAX_LINE {
            return Err(BadLine("the line is too long".to_owned()));
        }
        let entry: AuditEntry =
            serde_json::from_str(line).map_err(|error| BadLine(error.to_string()))?;
        match entry.to_line() == line {
            true => Ok(entry),
            false => Err(BadLine("it is not spelled as an export is".to_owned())),
        }
    }
}

/// The hash of an entry. Each part has a fixed length, so that no two different entries are hashed as one text.
pub(super) fn seal(prev: &str, seq: u64, event_hash: &str) -> String {
    debug_assert!(is_hash(event_hash));
    sha256(&format!("{DOMAIN}{prev}{seq:020}{event_hash}"))
}
