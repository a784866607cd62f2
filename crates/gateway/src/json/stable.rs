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
    if number == 0.0 || (1e-4..1e16).contains(&number.abs()) {
        return Cow::Owned(format!("{number:?}"));
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(negative) => ('-', negative),
        None => ('+', exponent),
    };
    Cow::Owned(format!("{mantissa}e{sign}{exponent:0>2}"))
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
