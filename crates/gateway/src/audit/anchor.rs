//! An anchor: the number and hash of an entry, kept where the owner of the chain cannot change it.

use super::{Head, ascii, is_hash};
use crate::canonical::{Numbers, canonical_of};
use serde::{Deserialize, Serialize};

/// Bytes of an anchor's line.
const MAX_LINE: usize = 16 << 10;

/// That a chain had this entry at this time. Its text is one line of JSON, for files, commands and services.
///
/// ```
/// use paraph_gateway::{Anchor, Head};
/// let head = Head { seq: 7, hash: "ab".repeat(32) };
/// let anchor = Anchor::new("acme", &head, 1_790_000_000_000);
/// assert_eq!(anchor.to_string().parse::<Anchor>()?, anchor);
/// # Ok::<(), paraph_gateway::BadAnchor>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchor {
    /// The form, `paraph/anchor/v1`.
    anchor: Form,
    /// When it was made, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The entry's hash.
    pub hash: String,
    /// The entry's number.
    pub seq: u64,
    /// Whose chain.
    pub tenant: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Form {
    #[serde(rename = "paraph/anchor/v1")]
    V1,
}

/// A text that is no anchor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no anchor: {0}")]
pub struct BadAnchor(String);

impl Anchor {
    /// An anchor of the last entry of a chain.
    pub fn new(tenant: impl Into<String>, head: &Head, at_ms: u64) -> Anchor {
        Anchor {
            anchor: Form::V1,
            at_ms,
            hash: head.hash.clone(),
            seq: head.seq,
            tenant: tenant.into(),
        }
    }
}

/// One line of JSON in ASCII, without its end.
impl std::fmt::Display for Anchor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = canonical_of(self, Numbers::IntegersOnly).map_err(|_| std::fmt::Error)?;
        f.write_str(&ascii(&text))
    }
}

impl std::str::FromStr for Anchor {
    type Err = BadAnchor;

    fn from_str(line: &str) -> Result<Anchor, BadAnchor> {
        let line = line.trim_ascii();
        if line.len() > MAX_LINE {
            return Err(BadAnchor("the line is too long".to_owned()));
        }
        let anchor: Anchor =
            serde_json::from_str(line).map_err(|error| BadAnchor(error.to_string()))?;
        match is_hash(&anchor.hash) {
            true => Ok(anchor),
            false => Err(BadAnchor("`hash` is not 64 hexadecimal digits".to_owned())),
        }
    }
}
