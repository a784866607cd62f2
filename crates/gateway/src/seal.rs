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
pub struct SealKey(Arc<[u8; 32]>);

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
        SealKey(Arc::new(key))
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
        let proved = |vote: &Vote| {
            let (Some(mac), Some(seal)) = (self.mac(&row.action, vote), &vote.seal) else {
                return false;
            };
            // In a time that does not depend on where they differ.
            mac.verify_slice(&bytes(seal)).is_ok()
        };
        self.0.is_none() || row.votes.iter().all(proved)
    }

    fn proof(&self, action: &Action, vote: &Vote) -> Option<String> {
        let proof = self.mac(action, vote)?.finalize().into_bytes();
        Some(proof.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn mac(&self, action: &Action, vote: &Vote) -> Option<Hmac<Sha256>> {
        let key = self.0.as_ref()?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&*key.0).ok()?;
        let by = serde_json::to_string(&vote.by).ok()?;
        let parts = [DOMAIN, &action.id.to_string(), &vote.digest, &by];
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac.update(&vote.at_ms.to_be_bytes());
        Some(mac)
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    let pairs = digits.chunks_exact(2);
    pairs
        .filter_map(|pair| u8::try_from(pair.first()? * 16 + pair.get(1)?).ok())
        .collect()
}
