//! How a person is asked.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::time::Duration;

/// How a person is asked. If several rules ask, the strictest of each counts.
///
/// In configuration `expires` is a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// How long the question stands.
    #[serde(with = "seconds")]
    pub expires: Duration,
    /// Whether whoever asked for the action may not be the one who approves it.
    pub not_by_requester: bool,
    /// How many different people have to approve it. At least one.
    pub quorum: u32,
    /// Whether only people count whose identity was verified by a sign-in.
    pub verified: bool,
}

impl Default for Ask {
    /// One hour, by anybody, once.
    fn default() -> Ask {
        Ask {
            expires: Duration::from_secs(3600),
            not_by_requester: false,
            quorum: 1,
            verified: false,
        }
    }
}

impl Ask {
    /// What satisfies both.
    #[must_use]
    pub(super) fn stricter(self, other: Ask) -> Ask {
        Ask {
            expires: self.expires.min(other.expires),
            not_by_requester: self.not_by_requester || other.not_by_requester,
            quorum: self.quorum.max(other.quorum),
            verified: self.verified || other.verified,
        }
    }
}

/// Who has to approve: `2 verified people other than the requester have`.
impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = self.quorum == 1;
        match one {
            true => f.write_str("a ")?,
            false => write!(f, "{} ", self.quorum)?,
        }
        if self.verified {
            f.write_str("verified ")?;
        }
        f.write_str(if one { "person " } else { "people " })?;
        if self.not_by_requester {
            f.write_str("other than the requester ")?;
        }
        f.write_str(if one { "has" } else { "have" })
    }
}

/// Durations as whole seconds.
mod seconds {
    use super::{Deserialize, Deserializer, Duration, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u64(time.as_secs())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_secs)
    }
}

/// Reads the list `ask`: names by themselves, or with how to ask, as in `["pay", ["wire", { quorum = 2 }]]`.
pub(super) fn read_list<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<(String, Ask)>, D::Error> {
    let entries = Vec::<Entry>::deserialize(from)?;
    Ok(entries
        .into_iter()
        .map(|Entry(name, ask)| (name, ask))
        .collect())
}

struct Entry(String, Ask);

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Entry, D::Error> {
        from.deserialize_any(EntryReader)
    }
}

struct EntryReader;

impl<'de> de::Visitor<'de> for EntryReader {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tool's name, or a list of a name and how to ask")
    }

    fn visit_str<E>(self, name: &str) -> Result<Entry, E> {
        Ok(Entry(name.to_owned(), Ask::default()))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut parts: A) -> Result<Entry, A::Error> {
        let missing = |count| de::Error::invalid_length(count, &"a name and how to ask");
        let name = parts.next_element()?.ok_or_else(|| missing(0))?;
        let ask = parts.next_element()?.ok_or_else(|| missing(1))?;
        match parts.next_element::<de::IgnoredAny>()? {
            Some(_) => Err(missing(3)),
            None => Ok(Entry(name, ask)),
        }
    }
}
