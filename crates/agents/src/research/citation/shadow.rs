//! A text as a reader or a renderer could come to see it: folded to plain small letters, decoded, without emphasis.
//!
//! Ids and addresses are looked for in here, however they are written: in capitals, full-width or mathematical
//! letters, percent-encoded, as entities, with emphasis or escapes in between. Each character knows which bytes of
//! the text it came from. Linear: what is decoded is decoded again as it is put down, so that nothing stays nested.

use paraph_gateway::is_hidden;
use std::ops::Range;

use super::mark::{SEEN, marked};
use super::plain::entity_char;

/// Stands for a decoded character that is not a part of any id, and can be a part of an address.
pub(super) const OTHER: char = '\u{1}';

/// The longest entity, in characters.
const MAX_ENTITY: usize = 32;

#[derive(Default)]
pub(super) struct Shadow {
    pub(super) chars: Vec<char>,
    spans: Vec<(usize, usize)>,
}

impl Shadow {
    pub(super) fn new(text: &str) -> Shadow {
        let mut shadow = Shadow::default();
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let escapes = c == '\\'
                && chars
                    .peek()
                    .is_some_and(|(_, next)| next.is_ascii_punctuation());
            let emphasis = matches!(c, '*' | '~' | '`');
            let span = (at, at + c.len_utf8());
            if marked(c).is_some() {
                shadow.put(SEEN, span);
            } else if !(escapes || emphasis || (is_hidden(c) && !c.is_whitespace())) {
                shadow.put(fold(c), span);
            }
        }
        shadow
    }

    /// The bytes of the text that some characters came from.
    pub(super) fn range(&self, chars: Range<usize>) -> Range<usize> {
        let start = self.spans.get(chars.start).map_or(0, |span| span.0);
        let end = chars
            .end
            .checked_sub(1)
            .and_then(|last| self.spans.get(last));
        start..end.map_or(start, |span| span.1).max(start)
    }

    pub(super) fn at(&self, place: usize) -> Option<char> {
        self.chars.get(place).copied()
    }

    /// Whether these letters stand at a place.
    pub(super) fn starts(&self, place: usize, letters: &str) -> bool {
        let mut here = self.chars.iter().skip(place);
        letters.chars().all(|letter| here.next() == Some(&letter))
    }

    pub(super) fn text(&self, chars: Range<usize>) -> String {
        self.chars.get(chars).unwrap_or_default().iter().collect()
    }

    fn put(&mut self, c: char, span: (usize, usize)) {
        let unfinished = !(c.is_ascii_alphanumeric() || c == ';' || c == '#');
        if unfinished && let Some((number, length)) = self.open_number() {
            self.replace(length, number);
        }
        self.chars.push(c);
        self.spans.push(span);
        while let Some((decoded, length)) = self.decoded() {
            self.replace(length, decoded);
        }
    }

    /// Puts one character, or none, in the place of the last ones.
    fn replace(&mut self, length: usize, by: Option<char>) {
        let keep = self.chars.len().saturating_sub(length);
        let start = self.spans.get(keep).map_or(0, |span| span.0);
        let end = self.spans.last().map_or(start, |span| span.1);
        self.chars.truncate(keep);
        self.spans.truncate(keep);
        if let Some(c) = by {
            self.chars.push(fold(c));
            self.spans.push((start, end));
        }
    }

    /// What the last characters decode to, if they are a whole code, and how many they are.
    fn decoded(&self) -> Option<(Option<char>, usize)> {
        let length = self.chars.len();
        match self.chars.last()? {
            ';' => {
                let from = length.saturating_sub(MAX_ENTITY);
                let tail = self.chars.get(from..length - 1)?;
                let ampersand = tail.iter().rposition(|c| *c == '&')?;
                let name: String = tail.get(ampersand + 1..)?.iter().collect();
                let c = entity_char(&name)?;
                Some((visible(c), tail.len() - ampersand + 1))
            }
            last if last.is_ascii_hexdigit() => {
                let [percent, high, low] = self.chars.last_chunk::<3>()?;
                let code = high.to_digit(16)? * 16 + low.to_digit(16)?;
                (*percent == '%').then(|| (percent_char(code), 3))
            }
            _ => None,
        }
    }

    /// A number entity that was not closed, which browsers read all the same.
    fn open_number(&self) -> Option<(Option<char>, usize)> {
        let tail = self
            .chars
            .get(self.chars.len().saturating_sub(MAX_ENTITY)..)?;
        let ampersand = tail.iter().rposition(|c| *c == '&')?;
        let name: String = tail.get(ampersand + 1..)?.iter().collect();
        let c = name
            .starts_with('#')
            .then(|| entity_char(&name))
            .flatten()?;
        Some((visible(c), tail.len() - ampersand))
    }
}

fn visible(c: char) -> Option<char> {
    (c.is_whitespace() || !is_hidden(c)).then_some(c)
}

/// Bytes beyond ASCII are parts of characters that no id and no name of a scheme has.
fn percent_char(code: u32) -> Option<char> {
    let c = char::from_u32(code).filter(char::is_ascii)?;
    let plain = c.is_ascii_alphanumeric() || ":/.-_@?&=#%;".contains(c);
    if plain {
        Some(c)
    } else {
        (!c.is_control()).then_some(OTHER)
    }
}

/// A character as the plain one that it looks like.
fn fold(c: char) -> char {
    match c {
        'A'..='Z' => c.to_ascii_lowercase(),
        '\0'..='\u{7f}' => c,
        '‐'..='―' | '−' | '﹘' | '﹣' | '⁃' | '－' => '-',
        '【' | '〔' | '［' | '⟦' | '❲' | '〚' => '[',
        '】' | '〕' | '］' | '⟧' | '❳' | '〛' => ']',
        '∕' | '⁄' | '／' => '/',
        '：' | '꞉' | '∶' | '︰' | '﹕' => ':',
        '．' | '․' | '﹒' => '.',
        '％' | '﹪' => '%',
        '＆' => '&',
        '；' => ';',
        '＃' => '#',
        '＿' => '_',
        '＾' => '^',
        '０'..='９' | 'Ａ'..='Ｚ' | 'ａ'..='ｚ' => shifted(c, 0xfee0),
        '\u{1d400}'..='\u{1d6a3}' => {
            nth(b"abcdefghijklmnopqrstuvwxyz", (u32::from(c) - 0x1d400) % 26)
        }
        '\u{1d7ce}'..='\u{1d7ff}' => nth(b"0123456789", (u32::from(c) - 0x1d7ce) % 10),
        'Ⓐ'..='Ⓩ' => nth(b"abcdefghijklmnopqrstuvwxyz", u32::from(c) - 0x24b6),
        'ⓐ'..='ⓩ' => nth(b"abcdefghijklmnopqrstuvwxyz", u32::from(c) - 0x24d0),
        'а' | 'А' | 'α' => 'a',
        'с' | 'С' | 'ϲ' => 'c',
        'е' | 'Е' | 'ℯ' => 'e',
        'һ' | 'ℎ' | 'Н' => 'h',
        'р' | 'Р' | 'ρ' => 'p',
        'ѕ' | 'Ѕ' | 'ſ' => 's',
        'т' | 'Т' | 'τ' => 't',
        'г' | 'ᴦ' => 'r',
        'ԁ' => 'd',
        'Ь' => 'b',
        'ѡ' | 'ԝ' => 'w',
        _ => c,
    }
}

fn shifted(c: char, by: u32) -> char {
    let plain = u32::from(c).checked_sub(by).and_then(char::from_u32);
    plain.map_or(c, |c| c.to_ascii_lowercase())
}

fn nth(letters: &[u8], index: u32) -> char {
    let at = usize::try_from(index).unwrap_or_default();
    letters.get(at).map_or('?', |byte| char::from(*byte))
}
