//! Numbers of rules and arguments, compared exactly as decimals, from their text.
//!
//! Conditions, grants and bound targets compare with it. A number is never a float in here: identifiers
//! beyond 2^53 and amounts like `0.1` would become other numbers.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::cmp::Ordering;
use std::fmt;

/// Digits of an exponent that are read, leading zeros apart.
const MAX_EXPONENT_DIGITS: usize = 18;

/// The most digits that a rule's number may have.
const MAX_DIGITS: usize = 4300;

/// A number as somebody wrote it, in JSON's way of writing numbers.
///
/// In configuration it is an integer, or a text for what must not become a float: `"0.1"`, `"1e30"`.
///
/// ```
/// use paraph_gateway::Decimal;
/// assert_eq!(Decimal::read("12345678901234567890123").unwrap().to_string(), "12345678901234567890123");
/// assert_eq!(Decimal::from(5).to_string(), "5");
/// assert!(Decimal::read("07").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal(String);

impl Decimal {
    /// Reads a number: nothing if the text is none, or one with more than 4300 characters or with an
    /// exponent of more than 18 digits.
    pub fn read(text: &str) -> Option<Decimal> {
        let fine = text.len() <= MAX_DIGITS && Exact::read(text).is_some();
        fine.then(|| Decimal(text.to_owned()))
    }

    pub(crate) fn exact(&self) -> Exact {
        // What is no number was never let in.
        Exact::read(&self.0).unwrap_or_default()
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Decimal {
        Decimal(number.to_string())
    }
}

impl From<u64> for Decimal {
    fn from(number: u64) -> Decimal {
        Decimal(number.to_string())
    }
}

impl From<i32> for Decimal {
    fn from(number: i32) -> Decimal {
        Decimal(number.to_string())
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl de::Visitor<'_> for Reader {
    type Value = Decimal;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer, or a number as a text")
    }

    fn visit_i64<E>(self, number: i64) -> Result<Decimal, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Decimal, E> {
        Ok(number.into())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Decimal, E> {
        Err(E::custom(inexact(number)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Decimal, E> {
        Decimal::read(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

/// Why a float is refused where a number is wanted.
pub(super) fn inexact(number: f64) -> String {
    format!("{number} was read inexactly: write the number as a text, in quotes")
}

/// A number's value: `0.DIGITS` times ten to the power of `point`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exact {
    negative: bool,
    /// ASCII digits without zeros at either end; none for zero.
    digits: Vec<u8>,
    point: i64,
}

impl From<u64> for Exact {
    fn from(number: u64) -> Exact {
        Decimal::from(number).exact()
    }
}

impl Exact {
    /// Reads JSON's way of writing a number. Nothing for another text, or for an exponent that is longer
    /// than 18 digits: such a number compares with nothing.
    pub(crate) fn read(text: &str) -> Option<Exact> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let padded = whole.len() > 1 && whole.starts_with('0');
        if whole.is_empty() || padded || !digits(whole) || !digits(fraction) {
            return None;
        }
        let all = || whole.bytes().chain(fraction.bytes());
        let leading = all().take_while(|digit| *digit == b'0').count();
        let mut digits: Vec<u8> = all().skip(leading).collect();
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        if digits.is_empty() {
            return Some(Exact::default());
        }
        let point = i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()?;
        Some(Exact {
            negative,
            digits,
            point: point.checked_add(exponent)?,
        })
    }

    /// The number, if it is an integer from 0 on that fits.
    pub(crate) fn to_u64(&self) -> Option<u64> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let length = usize::try_from(self.point)
            .ok()
            .filter(|length| *length <= 20)?;
        if self.negative || self.digits.len() > length {
            return None;
        }
        let mut text = String::from_utf8(self.digits.clone()).ok()?;
        text.extend(std::iter::repeat_n('0', length - text.len()));
        text.parse().ok()
    }

    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }
}

fn read_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    if significant.len() > MAX_EXPONENT_DIGITS {
        return None;
    }
    let value = match significant {
        "" => 0,
        digits => digits.parse::<i64>().ok()?,
    };
    Some(if negative { -value } else { value })
}

impl Ord for Exact {
    fn cmp(&self, other: &Exact) -> Ordering {
        let magnitude = || {
            self.point
                .cmp(&other.point)
                .then_with(|| self.digits.cmp(&other.digits))
        };
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) if other.negative => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, true) if self.negative => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => match (self.negative, other.negative) {
                (false, true) => Ordering::Greater,
                (true, false) => Ordering::Less,
                (false, false) => magnitude(),
                (true, true) => magnitude().reverse(),
            },
        }
    }
}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Exact) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
