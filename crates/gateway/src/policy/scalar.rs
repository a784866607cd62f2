//! A text, a number or a truth value that an argument is compared with.
//!
//! Conditions hold them as they were written, and compare with the form that was read once.

use super::decimal::{Decimal, Exact, inexact};
use crate::json::Shape;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};
use std::fmt;

/// A value of a rule. `null`, arrays and objects are none: their parts have pointers of their own.
///
/// In configuration it is a text, an integer or a truth value; a number that would not stay exact is
/// `{ number = "1e30" }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// `true` or `false`.
    Bool(bool),
    /// A number, which equals every way of writing the same number: `100` and `1e2`.
    Number(Decimal),
    /// A text, compared byte for byte.
    Text(String),
}

impl From<bool> for Scalar {
    fn from(yes: bool) -> Scalar {
        Scalar::Bool(yes)
    }
}

impl From<i64> for Scalar {
    fn from(number: i64) -> Scalar {
        Scalar::Number(number.into())
    }
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Scalar {
        Scalar::Text(text.to_owned())
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(yes) => yes.fmt(f),
            Scalar::Number(number) => number.fmt(f),
            Scalar::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Scalar::Bool(yes) => serializer.serialize_bool(*yes),
            Scalar::Text(text) => serializer.serialize_str(text),
            Scalar::Number(number) => {
                let text = number.to_string();
                match text.parse::<i64>() {
                    Ok(integer) if integer.to_string() == text => serializer.serialize_i64(integer),
                    _ => {
                        let mut map = serializer.serialize_map(Some(1))?;
                        map.serialize_entry("number", number)?;
                        map.end()
                    }
                }
            }
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> de::Visitor<'de> for Reader {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, an integer, a truth value, or `{ number = \"…\" }`")
    }

    fn visit_bool<E>(self, yes: bool) -> Result<Scalar, E> {
        Ok(yes.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar::Number(number.into()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Scalar, E> {
        Err(E::custom(inexact(number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(text.into())
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Scalar, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Number {
            number: Decimal,
        }
        let read = Number::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Scalar::Number(read.number))
    }
}

/// A scalar, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Bool(bool),
    Number(Exact),
    Text(String),
}

impl Value {
    pub(super) fn of(scalar: &Scalar) -> Value {
        match scalar {
            Scalar::Bool(yes) => Value::Bool(*yes),
            Scalar::Number(number) => Value::Number(number.exact()),
            Scalar::Text(text) => Value::Text(text.clone()),
        }
    }

    /// Whether an argument is this value. Nothing if the two are of different kinds.
    pub(super) fn equals(&self, shape: &Shape<'_>) -> Option<bool> {
        match (self, shape) {
            (Value::Bool(own), Shape::Bool(given)) => Some(own == given),
            (Value::Number(own), Shape::Number(given)) => Some(*own == Exact::read(given)?),
            (Value::Text(own), Shape::String(given)) => Some(own == given),
            _ => None,
        }
    }
}
