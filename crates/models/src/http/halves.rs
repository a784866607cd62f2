//! Characters that a server cut in two: JSON writes those beyond 16 bits as two escapes, and some servers put the first
//! into one event and the second into the next. Pure; called by what reads events and whole answers.
//!
//! No Rust string can hold half a character. So [`Halves::mark`] puts a character for private use in the place of each half,
//! before anything is decoded, and [`Halves::join`] puts the halves together again, whichever piece of an answer they are in.
//! What has no other half becomes U+FFFD.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::chat::Chunk;

/// A half stands as the character that is so far above it: in the last private plane, which texts do not use.
const PLANE: u32 = 0x10_0000;

/// What stands for half a character that nothing completes.
const LOST: char = char::REPLACEMENT_CHARACTER;

/// JSON text with a character in the place of each escape that is half a character; the same text if it has none.
fn marked(json: &str) -> Cow<'_, str> {
    let mut text = String::new();
    let (mut rest, mut at) = (json, 0);
    while let Some(found) = rest.get(at..).and_then(|ahead| ahead.find('\\')) {
        let start = at + found;
        let Some((unit, half)) = rest.get(start..).and_then(surrogate) else {
            // Whatever is escaped, it is one character, which may be a backslash itself.
            let escaped = rest.get(start + 1..).and_then(|rest| rest.chars().next());
            at = start + 1 + escaped.map_or(0, char::len_utf8);
            continue;
        };
        let after = start + ESCAPE;
        let other = rest.get(after..).and_then(surrogate);
        if half == Half::First && other.is_some_and(|(_, half)| half == Half::Second) {
            at = after + ESCAPE;
            continue;
        }
        text.push_str(rest.get(..start).unwrap_or_default());
        text.push(mark(unit));
        rest = rest.get(after..).unwrap_or_default();
        at = 0;
    }
    match text.is_empty() {
        true => Cow::Borrowed(json),
        false => Cow::Owned(text + rest),
    }
}

/// How long an escape such as `\ud83e` is.
const ESCAPE: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Half {
    First,
    Second,
}

/// The half with which a text begins, if it begins with the escape of one.
fn surrogate(text: &str) -> Option<(u16, Half)> {
    let digits = text.get(..ESCAPE)?.strip_prefix("\\u")?;
    let digits = digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then_some(digits);
    let unit = u16::from_str_radix(digits?, 16).ok()?;
    Some((unit, half(unit)?))
}

fn half(unit: u16) -> Option<Half> {
    match unit {
        0xd800..=0xdbff => Some(Half::First),
        0xdc00..=0xdfff => Some(Half::Second),
        _ => None,
    }
}

fn mark(unit: u16) -> char {
    char::from_u32(PLANE + u32::from(unit)).unwrap_or(LOST)
}

/// The half that a character stands for.
fn unmark(character: char) -> Option<(u16, Half)> {
    let unit = u32::from(character).checked_sub(PLANE)?;
    let unit = u16::try_from(unit).ok()?;
    Some((unit, half(unit)?))
}

/// Which text of an answer a piece belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Text,
    Reasoning(Option<u32>),
    Arguments(Option<u32>),
}

/// The first halves that wait for their second ones, of one answer.
#[derive(Default)]
pub(super) struct Halves {
    waiting: BTreeMap<Line, u16>,
    /// Whether any half was seen: until then a character for private use is what a model wrote.
    seen: bool,
}

impl Halves {
    /// JSON text as it can be decoded ([`marked`]).
    pub(super) fn mark<'t>(&mut self, json: &'t str) -> Cow<'t, str> {
        let marked = marked(json);
        self.seen |= matches!(marked, Cow::Owned(_));
        marked
    }

    /// Puts the halves of a chunk together, with those that waited. Nothing waits beyond the end of the answer.
    pub(super) fn join(&mut self, chunk: &mut Chunk) {
        if !self.seen {
            return;
        }
        let is_last = chunk.finish_reason.is_some();
        self.mend(Line::Text, &mut chunk.text);
        for delta in &mut chunk.reasoning {
            self.mend(Line::Reasoning(delta.index), &mut delta.text);
        }
        for delta in &mut chunk.tool_calls {
            self.mend(Line::Arguments(delta.index), &mut delta.arguments);
        }
        if is_last && self.waiting.remove(&Line::Text).is_some() {
            chunk.text.push(LOST);
        }
    }

    fn mend(&mut self, line: Line, text: &mut String) {
        let held = self.waiting.remove(&line);
        if text.is_empty() {
            // A piece that says nothing here comes between two that do.
            if let Some(held) = held {
                self.waiting.insert(line, held);
            }
            return;
        }
        let mut mended = String::with_capacity(text.len());
        let mut first = held;
        for character in text.chars() {
            match (first.take(), unmark(character)) {
                (Some(one), Some((other, Half::Second))) => mended.push(joined(one, other)),
                (lost, found) => {
                    mended.extend(lost.map(|_| LOST));
                    match found {
                        Some((unit, Half::First)) => first = Some(unit),
                        Some(_) => mended.push(LOST),
                        None => mended.push(character),
                    }
                }
            }
        }
        if let Some(first) = first {
            self.waiting.insert(line, first);
        }
        *text = mended;
    }
}

fn joined(first: u16, second: u16) -> char {
    let mut decoded = char::decode_utf16([first, second]);
    decoded.next().and_then(Result::ok).unwrap_or(LOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{FinishReason, ToolCallDelta};

    #[test]
    fn only_halves_are_marked() {
        let same = [
            r#"{"a":"plain"}"#,
            r#"{"a":"\ud83e\udd80 and \u00e9"}"#,
            r#"{"a":"\\ud83e is a path, C:\\udd80\\"}"#,
            r#"{"a":"\ud83"#,
            r#"{"a":"\"#,
        ];
        for json in same {
            assert_eq!(marked(json), json);
            assert!(matches!(marked(json), Cow::Borrowed(_)), "{json}");
        }
        let (first, second) = (mark(0xd83e), mark(0xdd80));
        let table = [
            (r#"{"a":"x\ud83e"}"#, format!(r#"{{"a":"x{first}"}}"#)),
            (r#"{"a":"\uDD80y"}"#, format!(r#"{{"a":"{second}y"}}"#)),
            (
                r#"{"a":"\\\ud83e","b":"\ud83e\udd80\udd80"}"#,
                format!(r#"{{"a":"\\{first}","b":"\ud83e\udd80{second}"}}"#),
            ),
        ];
        for (json, expected) in table {
            assert_eq!(marked(json), expected);
        }
    }

    /// A chunk with a text, arguments of the first and the second call, and perhaps the end.
    fn chunk(text: &str, calls: [&str; 2], last: bool) -> Chunk {
        let call = |(index, arguments): (u32, &str)| ToolCallDelta {
            index: Some(index),
            arguments: arguments.to_owned(),
            ..ToolCallDelta::default()
        };
        Chunk {
            tool_calls: (0..).zip(calls).map(call).collect(),
            finish_reason: last.then_some(FinishReason::Stop),
            ..Chunk::text(text)
        }
    }

    #[test]
    fn halves_find_each_other_over_pieces_and_each_text_has_its_own() {
        let (first, second) = (mark(0xd83e), mark(0xdd80));
        let one = |half: char| half.to_string();
        let pieces = [
            chunk(&format!("crab {first}"), [&one(first), ""], false),
            chunk("", ["", &one(first)], false),
            chunk(&format!("{second}!{second}"), [&one(second), "x"], false),
            chunk(&one(first), ["", ""], true),
        ];
        let mut halves = Halves {
            seen: true,
            ..Halves::default()
        };
        let mut joined = Vec::new();
        for mut piece in pieces {
            halves.join(&mut piece);
            let calls = piece.tool_calls.iter().map(|call| call.arguments.clone());
            joined.push((piece.text.clone(), calls.collect::<Vec<_>>()));
        }
        let is =
            |text: &str, calls: [&str; 2]| (text.to_owned(), calls.map(str::to_owned).to_vec());
        assert_eq!(
            joined,
            [
                is("crab ", ["", ""]),
                is("", ["", ""]),
                is("🦀!\u{fffd}", ["🦀", "\u{fffd}x"]),
                is("\u{fffd}", ["", ""]),
            ]
        );
    }

    #[test]
    fn characters_for_private_use_stay_while_no_half_was_seen() {
        let mut halves = Halves::default();
        let text = mark(0xd83e).to_string();
        let mut piece = Chunk::text(text.clone());
        assert_eq!(halves.mark("{}"), "{}");
        halves.join(&mut piece);
        assert_eq!(piece.text, text);
    }
}
