//! Canonical JSON: the one spelling of a value, so that the same value has the same bytes and digest.
//!
//! What is signed (actions) and what is chained (audit events) is written with this and nothing else. Keys
//! and strings are as in JCS (RFC 8785): keys sorted by their UTF-16 units, as few escapes as JSON allows,
//! no space. Strings keep their characters as they are: nothing is normalised (no NFC), since two texts
//! that merely look alike are not the same bytes. Integers differ from JCS on purpose: they keep every
//! digit, while JCS rounds them to doubles. Nothing here knows what the value means.

use crate::json::{
    Bounds, Entries, Items, Json, JsonError, Shape, Style, View, ecmascript_float, quote_into,
};
use serde::Serialize;
use std::fmt::Write as _;

/// The longest canonical text there is, in bytes.
pub const MAX_CANONICAL_BYTES: usize = 4 << 20;

/// Characters of a pointer that an error repeats.
const MAX_POINTER: usize = 200;

/// Which numbers a value may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Integers of any size, without point and exponent. `1.0` and `1e2` are refused: a caller whose schema
    /// takes them for integers writes them as such first.
    IntegersOnly,
    /// Others too. They become the shortest decimal of the nearest double, as in JCS: `1.0` is written `1`.
    Any,
}

/// Why a value has no canonical text. It names the place, and never repeats a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at `{pointer}`")]
pub struct CanonicalError {
    /// JSON pointer (RFC 6901) of the value, empty for the whole; cut if it is very long.
    pub pointer: String,
    /// What is wrong there.
    pub fault: CanonicalFault,
}

/// What keeps a value from being canonical.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalFault {
    /// The text had this key twice in one object. The pointer is empty: the reader keeps only the key.
    #[error("the key `{0}` comes twice in one object")]
    RepeatedKey(String),
    /// A number with a point or an exponent where only integers may be.
    #[error("a number that is no integer")]
    NoInteger,
    /// A number beyond the range of a double.
    #[error("a number too large for a double")]
    TooLargeNumber,
    /// The text would have more than [`MAX_CANONICAL_BYTES`].
    #[error("the canonical text is too long")]
    TooLong,
    /// A Rust value that cannot be written as JSON, or only as JSON that the reader refuses.
    #[error("no readable JSON ({0})")]
    Unreadable(String),
}

impl CanonicalError {
    fn whole(fault: CanonicalFault) -> CanonicalError {
        CanonicalError {
            pointer: String::new(),
            fault,
        }
    }
}

/// The canonical text of a value. Reading it and writing it again gives the same text.
///
/// ```
/// use paraph_gateway::{Bounds, Json, Numbers, canonical};
/// let json = Json::read(r#"{"to": "\u00e9", "cents": -0, "a": [1.50, 12345678901234567890]}"#, Bounds::default())?;
/// assert_eq!(canonical(&json, Numbers::Any)?, r#"{"a":[1.5,12345678901234567890],"cents":0,"to":"é"}"#);
///
/// let wrong = canonical(&json, Numbers::IntegersOnly).unwrap_err();
/// assert_eq!(wrong.to_string(), "a number that is no integer at `/a/0`");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn canonical(json: &Json, numbers: Numbers) -> Result<String, CanonicalError> {
    if let Some(key) = json.repeated_key() {
        let key = key.chars().take(MAX_POINTER).collect();
        return Err(CanonicalError::whole(CanonicalFault::RepeatedKey(key)));
    }
    let mut writer = Writer {
        numbers,
        out: String::new(),
        open: Vec::new(),
    };
    writer.write(json.view())?;
    Ok(writer.out)
}

/// The canonical text of a Rust value, by way of its JSON.
///
/// ```
/// use paraph_gateway::{Numbers, canonical_of};
/// #[derive(serde::Serialize)]
/// struct Refund { order: u64, amount_cents: u64 }
/// let refund = Refund { order: 7, amount_cents: 4200 };
/// assert_eq!(canonical_of(&refund, Numbers::IntegersOnly)?, r#"{"amount_cents":4200,"order":7}"#);
/// # Ok::<(), paraph_gateway::CanonicalError>(())
/// ```
pub fn canonical_of(
    value: &(impl Serialize + ?Sized),
    numbers: Numbers,
) -> Result<String, CanonicalError> {
    let unreadable = |why: String| CanonicalError::whole(CanonicalFault::Unreadable(why));
    let text = serde_json::to_string(value).map_err(|error| unreadable(error.to_string()))?;
    let json = read(&text).map_err(|error| unreadable(error.to_string()))?;
    canonical(&json, numbers)
}

/// Reads a text that claims to be canonical, within the bounds of canonical texts.
pub(crate) fn read(text: &str) -> Result<Json, JsonError> {
    let bounds = Bounds {
        bytes: MAX_CANONICAL_BYTES,
        ..Bounds::default()
    };
    Json::read(text, bounds)
}

/// A container that is being written, with where in it the writer is.
enum Open<'a> {
    Array {
        items: Items<'a>,
        begun: usize,
    },
    Object {
        entries: std::vec::IntoIter<(&'a str, View<'a>)>,
        key: Option<&'a str>,
    },
}

struct Writer<'a> {
    numbers: Numbers,
    out: String,
    open: Vec<Open<'a>>,
}

impl<'a> Writer<'a> {
    /// One loop over the open containers, so that no value is too deep for the call stack.
    fn write(&mut self, root: View<'a>) -> Result<(), CanonicalError> {
        self.begin(root)?;
        while let Some(container) = self.open.last_mut() {
            let next = match container {
                Open::Array { items, begun } => items.next().inspect(|_| {
                    if *begun > 0 {
                        self.out.push(',');
                    }
                    *begun += 1;
                }),
                Open::Object { entries, key } => entries.next().map(|(name, value)| {
                    if key.replace(name).is_some() {
                        self.out.push(',');
                    }
                    quote_into(&mut self.out, name, Style::Exact);
                    self.out.push(':');
                    value
                }),
            };
            match next {
                Some(value) => self.begin(value)?,
                None => match self.open.pop() {
                    Some(Open::Array { .. }) => self.out.push(']'),
                    _ => self.out.push('}'),
                },
            }
        }
        Ok(())
    }

    /// Writes a plain value, or opens a container.
    fn begin(&mut self, value: View<'a>) -> Result<(), CanonicalError> {
        match value.shape() {
            Shape::Null => self.out.push_str("null"),
            Shape::Bool(yes) => self.out.push_str(if yes { "true" } else { "false" }),
            Shape::Number(digits) => self.number(digits)?,
            Shape::String(text) => quote_into(&mut self.out, text, Style::Exact),
            Shape::Array(items) => {
                self.out.push('[');
                self.open.push(Open::Array { items, begun: 0 });
            }
            Shape::Object(entries) => {
                self.out.push('{');
                self.open.push(Open::Object {
                    entries: sorted(entries).into_iter(),
                    key: None,
                });
            }
        }
        match self.out.len() > MAX_CANONICAL_BYTES {
            true => Err(self.fault(CanonicalFault::TooLong)),
            false => Ok(()),
        }
    }

    fn number(&mut self, digits: &str) -> Result<(), CanonicalError> {
        if !digits.contains(['.', 'e', 'E']) {
            // The reader lets no leading zeros through; only zero has two spellings left.
            self.out.push_str(if digits == "-0" { "0" } else { digits });
            return Ok(());
        }
        if self.numbers == Numbers::IntegersOnly {
            return Err(self.fault(CanonicalFault::NoInteger));
        }
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => {
                self.out.push_str(&ecmascript_float(number));
                Ok(())
            }
            _ => Err(self.fault(CanonicalFault::TooLargeNumber)),
        }
    }

    fn fault(&self, fault: CanonicalFault) -> CanonicalError {
        let mut pointer = String::new();
        for container in &self.open {
            match container {
                // Writing into a string cannot fail.
                Open::Array { begun: 0, .. } | Open::Object { key: None, .. } => {}
                Open::Array { begun, .. } => {
                    let _ = write!(pointer, "/{}", begun - 1);
                }
                Open::Object { key: Some(key), .. } => {
                    pointer.push('/');
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                }
            }
        }
        if let Some((cut, _)) = pointer.char_indices().nth(MAX_POINTER) {
            pointer.truncate(cut);
            pointer.push('…');
        }
        CanonicalError { pointer, fault }
    }
}

/// The entries in the order of their keys' UTF-16 units. That is not the order of code points: the
/// surrogates of U+10000 and above sort before U+E000.
fn sorted(entries: Entries<'_>) -> Vec<(&str, View<'_>)> {
    let mut sorted: Vec<_> = entries.collect();
    sorted.sort_by(|(a, _), (b, _)| match a.is_ascii() && b.is_ascii() {
        true => a.cmp(b),
        false => a.encode_utf16().cmp(b.encode_utf16()),
    });
    sorted
}

#[cfg(test)]
mod tests;
