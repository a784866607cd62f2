//! JSON from outside: a bounded, iterative reader that keeps the digits of numbers, and its writers.
//!
//! The gateway reads model output and arguments with it; agents read observations with it. A parsed
//! value is one flat list of nodes in document order, so that reading, writing, hashing, comparing,
//! cloning and dropping walk a list and never the call stack. Nothing here knows tools or policies.

mod read;
mod stable;
#[cfg(test)]
mod tests;
mod write;

pub use read::{Bounds, JsonError, JsonFault};
pub(crate) use stable::{collapse_spaces, ecmascript_float, is_python_space, stable};
pub(crate) use write::{Style, quote, quote_into, write};

/// One parsed JSON value. Only the reader makes one, so it is never deeper than [`Bounds::MAX_DEPTH`].
///
/// Numbers keep their text. Of a repeated key the last value counts, in the place of the first.
/// Two values are equal if they are written alike: `1` and `1.0` differ, as do two orders of keys.
///
/// ```
/// use paraph_gateway::{Bounds, Json, Shape};
/// let json = Json::read(r#"{"id": 2512292042121000001, "id": 1e2}"#, Bounds::default())?;
/// assert_eq!(json.to_string(), r#"{"id":1e2}"#);
/// assert_eq!(json.repeated_key(), Some("id"));
/// assert_eq!(json.view().get("id").map(|id| id.shape()), Some(Shape::Number("1e2")));
/// # Ok::<(), paraph_gateway::JsonError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Json {
    nodes: Box<[Node]>,
    /// The first key that was found twice in one object, for readers that must refuse it.
    repeated: Option<Box<str>>,
}

/// Arrays and objects say how many nodes they span, themselves included; an object's keys are string
/// nodes before their values.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Null,
    Bool(bool),
    Number(Box<str>),
    String(Box<str>),
    Array(usize),
    Object(usize),
}

impl Json {
    /// Reads one value. Duplicate keys, last one wins; `NaN`, `Infinity` and unpaired surrogates are
    /// refused, since they are no JSON.
    pub fn read(text: &str, bounds: Bounds) -> Result<Json, JsonError> {
        read::read(text, bounds)
    }

    /// `{}`.
    pub fn empty_object() -> Json {
        Json {
            nodes: Box::new([Node::Object(1)]),
            repeated: None,
        }
    }

    /// A string.
    pub(crate) fn string(text: &str) -> Json {
        Json {
            nodes: Box::new([Node::String(text.into())]),
            repeated: None,
        }
    }

    /// The value, to look into.
    pub fn view(&self) -> View<'_> {
        View(&self.nodes)
    }

    /// A key that the text had twice in one object.
    pub fn repeated_key(&self) -> Option<&str> {
        self.repeated.as_deref()
    }

    /// For code that takes `serde_json`'s values. Integers beyond 64 bits become floats there, and a
    /// number beyond the range of a float is an error.
    pub fn to_value(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::from_str(&self.to_string())
    }
}

/// As compact JSON, with the digits and the order as they came.
impl std::fmt::Display for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view().fmt(f)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.nodes == other.nodes
    }
}

impl Eq for Json {}

/// A look at a value inside a [`Json`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a>(&'a [Node]);

/// What a [`View`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was written.
    Number(&'a str),
    /// A string, unescaped.
    String(&'a str),
    /// An array's items.
    Array(Items<'a>),
    /// An object's entries; no key comes twice.
    Object(Entries<'a>),
}

impl<'a> View<'a> {
    /// What it is.
    pub fn shape(self) -> Shape<'a> {
        let inside = self.0.get(1..).unwrap_or_default();
        match self.0.first() {
            None | Some(Node::Null) => Shape::Null,
            Some(Node::Bool(yes)) => Shape::Bool(*yes),
            Some(Node::Number(digits)) => Shape::Number(digits),
            Some(Node::String(text)) => Shape::String(text),
            Some(Node::Array(_)) => Shape::Array(Items(inside)),
            Some(Node::Object(_)) => Shape::Object(Entries(Items(inside))),
        }
    }

    /// The value of a key, if this is an object that has it.
    pub fn get(self, key: &str) -> Option<View<'a>> {
        match self.shape() {
            Shape::Object(mut entries) => {
                entries.find_map(|(name, value)| (name == key).then_some(value))
            }
            _ => None,
        }
    }

    /// The text, if this is a string.
    pub fn as_str(self) -> Option<&'a str> {
        match self.shape() {
            Shape::String(text) => Some(text),
            _ => None,
        }
    }

    /// A value of its own.
    pub fn to_json(self) -> Json {
        Json {
            nodes: self.0.into(),
            repeated: None,
        }
    }

    /// The first value of a list of nodes, and the rest of the list.
    fn split(nodes: &'a [Node]) -> Option<(View<'a>, &'a [Node])> {
        let span = match nodes.first()? {
            Node::Array(span) | Node::Object(span) => *span,
            _ => 1,
        };
        let (value, rest) = nodes.split_at_checked(span)?;
        Some((View(value), rest))
    }
}

/// As compact JSON, with the digits and the order as they came.
impl std::fmt::Display for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&write(*self, Style::Exact, |_, _| None))
    }
}

/// The items of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Items<'a>(&'a [Node]);

impl<'a> Iterator for Items<'a> {
    type Item = View<'a>;

    fn next(&mut self) -> Option<View<'a>> {
        let (value, rest) = View::split(self.0)?;
        self.0 = rest;
        Some(value)
    }
}

/// The keys and values of an object, in the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries<'a>(Items<'a>);

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, View<'a>);

    fn next(&mut self) -> Option<(&'a str, View<'a>)> {
        let key = self.0.next()?.as_str()?;
        Some((key, self.0.next()?))
    }
}
