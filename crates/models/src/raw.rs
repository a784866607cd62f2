//! JSON that keeps the text it was given.
//!
//! `serde_json::Value` rounds `2512292042121000001.5` and everything above 64 bits; what a model wrote must
//! reach tools, approvals and audits digit by digit. [`RawJson`] therefore holds checked text. It is used for
//! tool-call arguments, content blocks and all fields this crate does not understand.
//! It must not interpret values: reading numbers safely is the gateway's work.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::Error;

/// Deepest nesting of arrays and objects that is taken in. Common readers stop at 128 levels; the rest is room for
/// the message, state and event around a value.
pub const MAX_DEPTH: usize = 100;

/// Largest text of one tool call's arguments, in bytes.
pub const MAX_ARGUMENT_BYTES: usize = 1024 * 1024;

/// Fields of a JSON object by name, each with its exact text.
pub type Fields = BTreeMap<String, RawJson>;

/// One JSON value as text: valid, at most [`MAX_DEPTH`] deep, on one line.
///
/// The text is what was given, except that line breaks between tokens become spaces, so that a value never
/// tears a JSON-lines file or an event stream. Cloning shares the text. Two values are equal if their texts are.
///
/// ```
/// use paraph_models::RawJson;
/// let exact = RawJson::parse("{\"id\": 251229204212100000123}")?;
/// assert_eq!(exact.as_str(), "{\"id\": 251229204212100000123}");
/// assert_eq!(serde_json::to_string(&exact).unwrap(), "{\"id\": 251229204212100000123}");
/// # Ok::<(), paraph_models::Error>(())
/// ```
#[derive(Clone)]
pub struct RawJson(Arc<RawValue>);

impl RawJson {
    /// Takes JSON text in.
    ///
    /// # Errors
    /// [`Error::Json`] if the text is not exactly one JSON value, [`Error::TooDeep`] if it nests too deeply.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let raw = serde_json::from_str::<Box<RawValue>>(text).map_err(|e| json("JSON", &e))?;
        Self::checked(raw)
    }

    /// Writes a value as JSON.
    ///
    /// # Errors
    /// [`Error::Json`] if the value cannot be written as JSON, [`Error::TooDeep`] if it nests too deeply.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        let raw = serde_json::value::to_raw_value(value).map_err(|e| json("JSON", &e))?;
        Self::checked(raw)
    }

    /// The exact text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Reads the text as `T`. With `serde_json::Value` large numbers lose digits; prefer a type that says
    /// what it expects.
    ///
    /// # Errors
    /// [`Error::Json`] if the text does not describe a `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(self.as_str()).map_err(|e| json("JSON value", &e))
    }

    /// Whether the value is `null`, which for LangChain's clients is the same as absent.
    pub fn is_null(&self) -> bool {
        self.as_str() == "null"
    }

    fn checked(raw: Box<RawValue>) -> Result<Self, Error> {
        if !scan(raw.get())? {
            return Ok(Self(raw.into()));
        }
        // Inside strings JSON allows no line break, so every one found is white space between tokens.
        let line = raw.get().replace(['\n', '\r'], " ");
        let raw = RawValue::from_string(line).map_err(|e| json("JSON", &e))?;
        Ok(Self(raw.into()))
    }
}

/// Checks the depth of valid JSON text without recursion and says whether it has line breaks.
fn scan(text: &str) -> Result<bool, Error> {
    let (mut depth, mut in_string, mut escaped, mut breaks) = (0_usize, false, false, false);
    for byte in text.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(Error::TooDeep { limit: MAX_DEPTH });
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'\n' | b'\r' => breaks = true,
            _ => {}
        }
    }
    Ok(breaks)
}

fn json(what: &'static str, error: &serde_json::Error) -> Error {
    Error::Json {
        what,
        problem: error.to_string(),
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RawJson {}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::checked(raw).map_err(D::Error::custom)
    }
}

/// The arguments of a tool call: one JSON object, at most [`MAX_ARGUMENT_BYTES`] long, with its exact text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Arguments(
    /// `None` stands for `{}`, so that a call without arguments needs no allocation and cannot fail.
    Option<RawJson>,
);

impl Arguments {
    /// Takes the text of a JSON object in. Blank text and `null` mean `{}`, since many models
    /// write nothing when a tool takes nothing.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::TooDeep`], or [`Error::Json`] if the text is not one JSON object.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed == "null" {
            return Ok(Self::default());
        }
        if text.len() > MAX_ARGUMENT_BYTES {
            return Err(too_large());
        }
        RawJson::parse(trimmed).and_then(Self::try_from)
    }

    /// Writes a value as arguments.
    ///
    /// # Errors
    /// As [`Arguments::parse`]; in particular if the value is not written as a JSON object.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        RawJson::of(value).and_then(Self::try_from)
    }

    /// The exact text.
    pub fn as_str(&self) -> &str {
        self.0.as_ref().map_or("{}", RawJson::as_str)
    }

    /// Reads the arguments as `T`; see [`RawJson::decode`].
    ///
    /// # Errors
    /// [`Error::Json`] if they do not describe a `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(self.as_str()).map_err(|e| json("tool call arguments", &e))
    }
}

fn too_large() -> Error {
    Error::TooLarge {
        what: "a tool call's arguments",
        limit: MAX_ARGUMENT_BYTES,
    }
}

impl TryFrom<RawJson> for Arguments {
    type Error = Error;

    fn try_from(raw: RawJson) -> Result<Self, Error> {
        if raw.as_str().len() > MAX_ARGUMENT_BYTES {
            return Err(too_large());
        }
        if raw.is_null() || raw.as_str() == "{}" {
            return Ok(Self::default());
        }
        if !raw.as_str().starts_with('{') {
            return Err(Error::Json {
                what: "tool call arguments",
                problem: "not a JSON object".to_owned(),
            });
        }
        Ok(Self(Some(raw)))
    }
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(raw) => raw.serialize(serializer),
            None => serializer.serialize_map(Some(0))?.end(),
        }
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawJson::deserialize(deserializer)?
            .try_into()
            .map_err(D::Error::custom)
    }
}
