//! The hash of a policy: what decisions and signatures name it by.

use super::Policy;
use crate::json::{Bounds, Json, stable};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;

/// 64 hexadecimal digits: SHA-256 over a prefix and the policy as JSON with sorted keys.
pub(super) fn of(policy: &Policy) -> String {
    let unbounded = Bounds {
        bytes: usize::MAX,
        digits: usize::MAX,
        ..Bounds::default()
    };
    // A policy is plain data, so that neither writing nor reading it can fail; if one did, the hash would
    // at least be no policy's.
    let text = serde_json::to_string(policy).unwrap_or_else(|error| error.to_string());
    let canonical = match Json::read(&text, unbounded) {
        Ok(json) => stable(json.view(), |text| Cow::Borrowed(text)),
        Err(error) => error.to_string(),
    };
    let digest = Sha256::new()
        .chain_update(b"paraph/policy/v1")
        .chain_update(canonical)
        .finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
