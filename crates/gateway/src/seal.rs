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

/// A key, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Seal(Option<Arc<[u8; 32]>>);

impl Seal {
    pub(crate) fn by(key: [u8; 32]) -> Seal {
        Seal(Some(Arc::new(key)))
    }

    /// Puts the proof on votes that have none.
    pub(crate) fn votes(&self, row: &mut ActionRow) {
        let action = row.action.clone();
        for vote in row.votes.iter_mut().filter(|vote| vote.seal.is_none()) {
            vote.seal = self.proof(&action, vote);
        }
    }

    /// Whether every vote has its proof, if there is a key.
    pub(crate) fn holds(&self, row: &ActionRow) -> bool {
        let proved = |vote: &Vote| {
            let (Some(mac), Some(seal)) = (self.mac(&row.action, vote), &vote.seal) else {
                return false;
            };
            // In a time that does not depend on where they differ.
            mac.verify_slice(&bytes(seal)).is_ok()
        };
        self.0.is_none() || (!row.votes.is_empty() && row.votes.iter().all(proved))
    }

    fn proof(&self, action: &Action, vote: &Vote) -> Option<String> {
        let proof = self.mac(action, vote)?.finalize().into_bytes();
        Some(proof.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn mac(&self, action: &Action, vote: &Vote) -> Option<Hmac<Sha256>> {
        let key = self.0.as_deref()?;
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
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    let pairs = digits.chunks_exact(2);
    pairs
        .filter_map(|pair| u8::try_from(pair.first()? * 16 + pair.get(1)?).ok())
        .collect()
}
