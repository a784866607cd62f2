//! The canonical text that hashes are made of: byte for byte what the article's Python writes.

use super::{Style, View, write};
use std::borrow::Cow;

/// Sorted keys, no spaces, ASCII only, Python's spelling of numbers. `change` may rewrite the texts of
/// string values; keys stay as they are.
pub(crate) fn stable(value: View<'_>, change: impl Fn(&str) -> Cow<'_, str>) -> String {
    write(value, Style::Python, |_, value| {
        let text = value.as_str()?;
        match change(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(changed) => Some(super::quote(&changed, Style::Python)),
        }
    })
}

/// Python's `str(int)` and `repr(float)` of a JSON number.
///
/// An integer literal stays exact, of any size. Anything with a point or an exponent is a float: the
/// shortest digits that read back as the same number, in fixed form between 1e-4 and 1e16.
pub(super) fn python_number(digits: &str) -> Cow<'_, str> {
    if digits == "-0" {
        return Cow::Borrowed("0");
    }
    if !digits.contains(['.', 'e', 'E']) {
        return Cow::Borrowed(digits);
    }
    // The reader let only numbers through, and Rust reads every one of them (too large is infinite).
    let Ok(number) = digits.parse::<f64>() else {
        return Cow::Borrowed(digits);
    };
    if number.is_infinite() {
        return Cow::Borrowed(if number < 0.0 {
            "-Infinity"
        } else {
            "Infinity"
        });
    }
    Cow::Owned(python_float(number))
}

/// The shortest decimal that reads back as the same number.
struct Decimal {
    /// The significant digits; none for zero.
    digits: String,
    /// Where the point stands, counted from before the first digit.
    point: isize,
}

/// The decimal of a finite float's absolute value.
fn decimal(number: f64) -> Decimal {
    let mut buffer = zmij::Buffer::new();
    let shortest = buffer.format_finite(number.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    let leading_zeros = all.len() - significant.len();
    Decimal {
        digits: significant.trim_end_matches('0').to_owned(),
        point: exponent.parse::<isize>().unwrap_or(0) + whole.len() as isize
            - leading_zeros as isize,
    }
}

impl Decimal {
    /// One digit before the point and the others after it, then the exponent.
    fn scientific(&self, sign: &str, exponent_width: usize) -> String {
        let (first, rest) = self.digits.split_at(1.min(self.digits.len()));
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if self.point > 0 { '+' } else { '-' };
        let exponent = (self.point - 1).unsigned_abs();
        format!("{sign}{first}{point}{rest}e{exponent_sign}{exponent:0exponent_width$}")
    }

    /// The digits before the point, filled up with zeros, and those after it.
    fn at_point(&self) -> (String, String) {
        let whole = self.point.unsigned_abs();
        let padded = format!("{:0<whole$}", self.digits);
        let (before, after) = padded.split_at(whole);
        (before.to_owned(), after.to_owned())
    }
}

/// `repr` of a finite float.
fn python_float(number: f64) -> String {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let decimal = decimal(number);
    let digits = &decimal.digits;
    if digits.is_empty() {
        return format!("{sign}0.0");
    }
    match decimal.point {
        -3..=0 => format!(
            "{sign}0.{}{digits}",
            "0".repeat(decimal.point.unsigned_abs())
        ),
        1..=16 => {
            let (whole, fraction) = decimal.at_point();
            let fraction = if fraction.is_empty() { "0" } else { &fraction };
            format!("{sign}{whole}.{fraction}")
        }
        _ => decimal.scientific(sign, 2),
    }
}

/// A finite float as ECMAScript's `Number::toString` writes it, which is what JCS (RFC 8785) asks for:
/// fixed form between 1e-6 and 1e21, no sign on zero, no point before nothing.
pub(crate) fn ecmascript_float(number: f64) -> String {
    let decimal = decimal(number);
    let digits = &decimal.digits;
    if digits.is_empty() {
        return "0".to_owned();
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    match decimal.point {
        -5..=0 => format!(
            "{sign}0.{}{digits}",
            "0".repeat(decimal.point.unsigned_abs())
        ),
        1..=21 => {
            let (whole, fraction) = decimal.at_point();
            let point = if fraction.is_empty() { "" } else { "." };
            format!("{sign}{whole}{point}{fraction}")
        }
        _ => decimal.scientific(sign, 1),
    }
}

/// What Python's `str.split` and `str.strip` take as space.
pub(crate) fn is_python_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// Trimmed, with every run of space as one space.
pub(crate) fn collapse_spaces(text: &str) -> Cow<'_, str> {
    let words = || text.split(is_python_space).filter(|word| !word.is_empty());
    let length: usize = words().map(|word| word.len() + 1).sum();
    // The same bytes if only single plain spaces stand between the words.
    if length == text.len() + 1 && text.split(' ').eq(words()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(words().collect::<Vec<_>>().join(" "))
}
