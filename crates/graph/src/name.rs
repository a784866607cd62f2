//! Names of nodes and graphs: text that is cheap to hand around.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{borrow::Borrow, cmp::Ordering, fmt, hash::Hash, hash::Hasher, ops::Deref, sync::Arc};

/// A node's or a graph's name. Made from a `&'static str` or a `String`; a clone copies no text.
///
/// ```
/// use paraph_graph::Name;
/// let name = Name::from("fetch");
/// assert_eq!((name.len(), name == "fetch", name.to_string()), (5, true, "fetch".to_owned()));
/// ```
#[derive(Clone)]
pub struct Name(Text);

#[derive(Clone)]
enum Text {
    Fixed(&'static str),
    Shared(Arc<str>),
}

impl Name {
    /// A name that is known at compile time.
    #[must_use]
    pub const fn fixed(name: &'static str) -> Self {
        Name(Text::Fixed(name))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Fixed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self
    }
}

impl From<&'static str> for Name {
    fn from(name: &'static str) -> Self {
        Name::fixed(name)
    }
}

impl From<String> for Name {
    fn from(name: String) -> Self {
        Name(Text::Shared(name.into()))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<Name> for &str {
    fn eq(&self, other: &Name) -> bool {
        *self == other.as_str()
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

// As `str` hashes, so that a map keyed by names can be asked by text.
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Name::from)
    }
}
