//! The proof on an approval that it was written by somebody who has the key, and not by whoever can write to the store.
//!
//! The desk puts it on votes, the session looks at it before it starts an action. Without a key nothing is proved and
//! nothing is asked for. The key is never in the store.

use crate::action::{Action, ActionRow, Vote};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use std::sync::Arc;

/// What stands before what is proved, so that no other text has the same proof.
const DOMAIN: &str = "paraph/vote/v1";

/// The key under which approvals are proved. It is kept where the store's owner cannot read it, and shown nowhere.
///
/// ```
/// use paraph_gateway::SealKey;
/// let key: SealKey = "0f".repeat(32).parse()?;
/// assert_eq!(format!("{key:?}"), "SealKey");
/// let error = "0f0f".parse::<SealKey>().unwrap_err();
/// assert_eq!(error.to_string(), "a seal key has 64 hexadecimal digits (32 bytes); this one has 4 characters");
/// # Ok::<(), paraph_gateway::BadSealKey>(())
/// ```
#[derive(Clone)]
pub struct SealKey {
    key: Arc<[u8; 32]>,
    /// Those that came before it: what they prove still counts, and nothing new is proved by them.
    old: Vec<Arc<[u8; 32]>>,
}

impl SealKey {
    /// The same, with a key that came before it: what was approved under that one can still be started. Once nothing of
    /// that time is open any more, the old key is not needed.
    ///
    /// ```
    /// use paraph_gateway::SealKey;
    /// let key: SealKey = "0f".repeat(32).parse()?;
    /// let _ = key.after("1e".repeat(32).parse()?);
    /// # Ok::<(), paraph_gateway::BadSealKey>(())
    /// ```
    #[must_use]
    pub fn after(mut self, old: SealKey) -> SealKey {
        self.old.push(old.key);
        self.old.extend(old.old);
        self
    }
}

/// A text that is no key. It says nothing of the text but its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSealKey {
    /// It has another length.
    #[error("a seal key has 64 hexadecimal digits (32 bytes); this one has {0} characters")]
    Length(usize),
    /// It has other characters.
    #[error("a seal key has 64 hexadecimal digits (32 bytes); this one has other characters")]
    Digits,
}

impl From<[u8; 32]> for SealKey {
    fn from(key: [u8; 32]) -> SealKey {
        SealKey {
            key: Arc::new(key),
            old: Vec::new(),
        }
    }
}

impl std::str::FromStr for SealKey {
    type Err = BadSealKey;

    fn from_str(text: &str) -> Result<SealKey, BadSealKey> {
        let text = text.trim();
        match text.chars().count() {
            64 => {}
            count => return Err(BadSealKey::Length(count)),
        }
        let key = <[u8; 32]>::try_from(bytes(text));
        key.map(SealKey::from).map_err(|_| BadSealKey::Digits)
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey")
    }
}

/// A key, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Seal(Option<SealKey>);

impl Seal {
    pub(crate) fn by(key: SealKey) -> Seal {
        Seal(Some(key))
    }

    /// Puts the proof on the newest vote. Those that were there before have theirs, or are not ours.
    pub(crate) fn newest(&self, row: &mut ActionRow) {
        let action = row.action.clone();
        if let Some(vote) = row.votes.last_mut() {
            vote.seal = self.proof(&action, vote);
        }
    }

    /// Whether a signed action has its votes, and each its proof, if there is a key.
    pub(crate) fn holds(&self, row: &ActionRow) -> bool {
        self.0.is_none() || (!row.votes.is_empty() && self.votes_hold(row))
    }

    /// Whether every vote that there is has its proof, if there is a key.
    pub(crate) fn votes_hold(&self, row: &ActionRow) -> bool {
        let Some(keys) = &self.0 else {
            return true;
        };
        let proved = |vote: &Vote| {
            let Some(seal) = &vote.seal else {
                return false;
            };
            // In a time that does not depend on where they differ.
            let by = |key: &[u8; 32]| {
                mac(key, &row.action, vote)
                    .is_some_and(|mac| mac.verify_slice(&bytes(seal)).is_ok())
            };
            by(&keys.key) || keys.old.iter().any(|key| by(key))
        };
        row.votes.iter().all(proved)
    }

    fn proof(&self, action: &Action, vote: &Vote) -> Option<String> {
        let proof = mac(&self.0.as_ref()?.key, action, vote)?;
        let proof = proof.finalize().into_bytes();
        Some(proof.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

fn mac(key: &[u8; 32], action: &Action, vote: &Vote) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    let by = serde_json::to_string(&vote.by).ok()?;
    let parts = [DOMAIN, &action.id.to_string(), &vote.digest, &by];
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    mac.update(&vote.at_ms.to_be_bytes());
    Some(mac)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    let pairs = digits.chunks_exact(2);
    pairs
        .filter_map(|pair| u8::try_from(pair.first()? * 16 + pair.get(1)?).ok())
        .collect()
}
