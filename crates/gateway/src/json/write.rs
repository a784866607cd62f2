//! The writers: one loop over a list of open containers, for the exact text, for Python's canonical
//! text, and for text with values replaced (redaction). Also `serde`'s view of a value.

use super::{Json, Shape, View, stable};
use serde::ser::{Error as _, Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use std::fmt::Write as _;

/// How values are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// As they came: order of keys, digits, characters.
    Exact,
    /// As Python's `json.dumps` with sorted keys, no spaces and ASCII only.
    Python,
}

/// A container that is being written.
enum Open<'a> {
    Array(super::Items<'a>),
    Object(super::Entries<'a>),
    Sorted(std::vec::IntoIter<(&'a str, View<'a>)>),
}

/// Writes a value as compact JSON. `replace` sees every value before it is written, with its key if it
/// is an object's, and may give the JSON text to stand in its place.
pub(crate) fn write<'a>(
    root: View<'a>,
    style: Style,
    mut replace: impl FnMut(Option<&'a str>, View<'a>) -> Option<String>,
) -> String {
    let mut out = String::new();
    let mut open: Vec<Open<'a>> = Vec::new();
    let mut next = Some((None, root));
    loop {
        if let Some((key, value)) = next.take() {
            match replace(key, value) {
                Some(text) => out.push_str(&text),
                None => open.extend(start(value, style, &mut out)),
            }
        }
        let Some(container) = open.last_mut() else {
            return out;
        };
        let (entry, end) = match container {
            Open::Array(items) => (items.next().map(|value| (None, value)), ']'),
            Open::Object(entries) => (entries.next().map(keyed), '}'),
            Open::Sorted(entries) => (entries.next().map(keyed), '}'),
        };
        let Some((key, value)) = entry else {
            out.push(end);
            open.pop();
            continue;
        };
        if !out.ends_with(['[', '{']) {
            out.push(',');
        }
        if let Some(key) = key {
            quote_into(&mut out, key, style);
            out.push(':');
        }
        next = Some((key, value));
    }
}

fn keyed<'a>((key, value): (&'a str, View<'a>)) -> (Option<&'a str>, View<'a>) {
    (Some(key), value)
}

/// Writes a plain value, or the beginning of a container, which is handed back.
fn start<'a>(value: View<'a>, style: Style, out: &mut String) -> Option<Open<'a>> {
    match value.shape() {
        Shape::Null => out.push_str("null"),
        Shape::Bool(yes) => out.push_str(if yes { "true" } else { "false" }),
        Shape::Number(digits) if style == Style::Python => {
            out.push_str(&stable::python_number(digits));
        }
        Shape::Number(digits) => out.push_str(digits),
        Shape::String(text) => quote_into(out, text, style),
        Shape::Array(items) => {
            out.push('[');
            return Some(Open::Array(items));
        }
        Shape::Object(entries) => {
            out.push('{');
            return Some(match style {
                Style::Exact => Open::Object(entries),
                Style::Python => {
                    // Rust compares strings by their bytes, which is by code point, as Python does.
                    let mut sorted: Vec<_> = entries.collect();
                    sorted.sort_by_key(|(key, _)| *key);
                    Open::Sorted(sorted.into_iter())
                }
            });
        }
    }
    None
}

/// A JSON string literal.
pub(crate) fn quote(text: &str, style: Style) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quote_into(&mut out, text, style);
    out
}

/// Appends a JSON string literal.
pub(crate) fn quote_into(out: &mut String, text: &str, style: Style) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(character),
            _ if style == Style::Exact && character >= ' ' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing into a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

/// Nested, with the digits of numbers as they came (in `serde_json`'s text writers; elsewhere a number
/// is `serde_json`'s raw value). The depth is bounded by the reader.
impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.shape() {
            Shape::Null => serializer.serialize_unit(),
            Shape::Bool(yes) => serializer.serialize_bool(yes),
            Shape::Number(digits) => serde_json::value::RawValue::from_string(digits.to_owned())
                .map_err(S::Error::custom)?
                .serialize(serializer),
            Shape::String(text) => serializer.serialize_str(text),
            Shape::Array(items) => {
                let mut array = serializer.serialize_seq(None)?;
                for item in items {
                    array.serialize_element(&item)?;
                }
                array.end()
            }
            Shape::Object(entries) => {
                let mut object = serializer.serialize_map(None)?;
                for (key, value) in entries {
                    object.serialize_entry(key, &value)?;
                }
                object.end()
            }
        }
    }
}

/// As [`View`] does it.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.view().serialize(serializer)
    }
}
