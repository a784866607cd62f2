//! Quotations: where they are in a paragraph, and whether they stand in a source.
//!
//! Called by `claim`. A quotation stands in a text if its words are there in their order and nothing else between
//! them, blanks, dashes, quotation marks, ligatures and emphasis apart; what an ellipsis leaves out may be anything,
//! if it is not long. Work is bounded: what is too much to look up is refused.

use std::collections::HashMap;
use std::ops::Range;

use paraph_gateway::is_hidden;

use super::code::contains;
use super::mark::marked;
use crate::research::source::Library;

/// The fewest words of a quotation that is looked up.
pub(super) const MIN_WORDS: usize = 4;
/// The fewest words between two ellipses: of single words anything could be put together.
const MIN_PART: usize = 3;
/// The most bytes that an ellipsis may leave out.
const MAX_GAP: usize = 2_000;
/// The most quotations of a text that are looked up.
const MAX_QUOTES: usize = 2_000;
/// The most bytes of sources that are searched for one text.
const MAX_SEARCHED: usize = 1 << 30;
/// How many places are tried at which a part begins.
const MAX_TRIES: usize = 64;

/// Opening marks with what closes them.
const PAIRS: [(char, &str); 13] = [
    ('“', "”“"),
    ('„', "“”"),
    ('«', "»"),
    ('»', "«"),
    ('‹', "›"),
    ('「', "」"),
    ('『', "』"),
    ('‘', "’"),
    ('‚', "‘’"),
    ('‟', "”“‟"),
    ('❝', "❞❝"),
    ('〝', "〞〟"),
    ('《', "》"),
];
/// Marks that close as well as they open, where nothing else tells which.
const BOTH: &str = "\"'”’″";

/// A quotation in a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quoted {
    pub(super) open: Range<usize>,
    pub(super) inner: Range<usize>,
    /// Nothing if no mark closes it.
    pub(super) close: Option<Range<usize>>,
}

impl Quoted {
    /// Whether it begins with a mark that only begins quotations, and none ends it in its paragraph.
    pub(super) fn is_torn(&self, text: &str) -> bool {
        let mark = text
            .get(self.open.clone())
            .and_then(|mark| mark.chars().next());
        self.close.is_none() && mark.is_some_and(|mark| !BOTH.contains(mark))
    }
}

/// Whether a span of code is a quotation in truth: it begins like one, or cites.
pub(super) fn is_quotation(span: &str) -> bool {
    let inside = span.trim_matches('`').trim_start();
    let opens = inside
        .chars()
        .next()
        .is_some_and(|c| c == '"' || PAIRS.iter().any(|(open, _)| *open == c));
    opens || span.contains(|c| marked(c).is_some())
}

/// The quotations of a paragraph, in order, without overlap.
pub(super) fn quotations(text: &str, code: &[Range<usize>]) -> Vec<Quoted> {
    let mut found = Vec::new();
    let mut open: Option<(usize, char)> = None;
    let mut before = ' ';
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |(_, c)| *c);
        if !contains(code, at) {
            match open {
                Some((start, mark)) if ends(mark, c, before, next) => {
                    let inner = start + mark.len_utf8()..at;
                    let open_range = start..inner.start;
                    found.push(Quoted {
                        open: open_range,
                        inner,
                        close: Some(at..at + c.len_utf8()),
                    });
                    open = None;
                }
                None if begins(c, before, next) => open = Some((at, c)),
                _ => {}
            }
        }
        before = c;
    }
    // Without an end, some marks are something else: an apostrophe, inches, the end of what began in code.
    let stray = |(start, mark): &(usize, char)| {
        let next = text
            .get(start + mark.len_utf8()..)
            .and_then(|rest| rest.chars().next());
        "'‘‚’″”".contains(*mark) || (*mark == '"' && next.is_none_or(char::is_whitespace))
    };
    if let Some((start, mark)) = open.filter(|open| !stray(open)) {
        let inner = start + mark.len_utf8()..text.len();
        found.push(Quoted {
            open: start..inner.start,
            inner,
            close: None,
        });
    }
    found
}

fn begins(c: char, before: char, next: char) -> bool {
    let apart =
        before.is_whitespace() || "([{—–-*_/:,\u{2}".contains(before) || marked(before).is_some();
    match c {
        '"' => !before.is_ascii_digit(),
        '\'' | '’' => apart && next.is_alphabetic(),
        '”' | '″' => apart && !next.is_whitespace(),
        '»' | '›' => apart && !next.is_whitespace(),
        c => PAIRS.iter().any(|(open, _)| *open == c),
    }
}

fn ends(mark: char, c: char, before: char, next: char) -> bool {
    match mark {
        '"' => c == '"',
        '\'' => c == '\'' && !before.is_whitespace() && !next.is_alphanumeric(),
        '‘' | '‚' => "’‘".contains(c) && !next.is_alphanumeric(),
        '’' => c == '’' && !before.is_whitespace() && !next.is_alphanumeric(),
        '”' | '″' => c == mark,
        mark => PAIRS
            .iter()
            .any(|(open, close)| *open == mark && close.contains(c)),
    }
}

/// Whether something has enough words to be looked up. Scripts without blanks count by characters.
pub(super) fn is_long(text: &str) -> bool {
    let words = text.split(|c: char| c.is_whitespace() || "-–—/".contains(c));
    let dense = text
        .chars()
        .filter(|c| ('\u{2e80}'..='\u{d7ff}').contains(c))
        .count();
    words
        .filter(|word| word.contains(char::is_alphanumeric))
        .count()
        >= MIN_WORDS
        || dense >= 2 * MIN_WORDS
}

/// Looks quotations up in the sources of a library.
pub(super) struct Finder<'a> {
    library: &'a Library,
    texts: HashMap<usize, Vec<String>>,
    searched: usize,
    quotes: usize,
}

impl<'a> Finder<'a> {
    pub(super) fn new(library: &'a Library) -> Finder<'a> {
        Finder {
            library,
            texts: HashMap::new(),
            searched: 0,
            quotes: 0,
        }
    }

    /// Why a quotation does not stand in one of the cited sources; nothing if it does.
    pub(super) fn refusal(&mut self, quote: &str, cited: &[usize]) -> Option<String> {
        self.quotes += 1;
        let Some(parts) = parts(quote) else {
            return Some("between its ellipses are too few words to look up".to_owned());
        };
        if self.quotes > MAX_QUOTES {
            return Some(format!(
                "more than {MAX_QUOTES} quotations are not looked up"
            ));
        }
        for place in cited {
            match self.holds(*place, &parts) {
                Some(true) => return None,
                Some(false) => {}
                None => return Some("there is more to look up than is looked through".to_owned()),
            }
        }
        let other = (0..self.library.len())
            .find(|place| !cited.contains(place) && self.holds(*place, &parts) == Some(true));
        let other = other.and_then(|place| self.library.get(place));
        Some(match (other, cited.is_empty()) {
            (Some(source), _) => format!(
                "it stands in a source that is not cited with it: {} ({})",
                source.title, source.url
            ),
            (None, true) => "its sentence cites no source".to_owned(),
            (None, false) => "it stands in no source that is cited with it".to_owned(),
        })
    }

    /// Whether a source has the parts; nothing if too much was searched.
    fn holds(&mut self, place: usize, parts: &[String]) -> Option<bool> {
        let source = self.library.get(place)?;
        let texts = self.texts.entry(place).or_insert_with(|| {
            let versions = source.versions.iter().map(|version| version.text.as_str());
            versions
                .chain([source.title.as_str()])
                .map(normal)
                .collect()
        });
        for text in texts {
            self.searched = self.searched.saturating_add(text.len());
            if self.searched > MAX_SEARCHED {
                return None;
            }
            if stands(text, parts) {
                return Some(true);
            }
        }
        Some(false)
    }
}

/// The parts between ellipses, normal; nothing if one has too few words.
fn parts(quote: &str) -> Option<Vec<String>> {
    let text = normal(quote);
    let text = text
        .replace("[...]", "...")
        .replace("(...)", "...")
        .replace("[ ... ]", "...");
    let parts: Vec<String> = text
        .split("...")
        .map(|part| {
            part.trim_matches(|c: char| c == ' ' || ".,;:!?".contains(c))
                .to_owned()
        })
        .filter(|part| !part.is_empty())
        .collect();
    let few = |part: &String| {
        part.split(' ').count() < MIN_PART
            && !part.contains(|c| ('\u{2e80}'..='\u{d7ff}').contains(&c))
    };
    let broken = parts.is_empty() || (parts.len() > 1 && parts.iter().any(few));
    (!broken).then_some(parts)
}

/// Whether the parts stand in a text, in order, not far from each other.
fn stands(text: &str, parts: &[String]) -> bool {
    let Some((first, rest)) = parts.split_first() else {
        return false;
    };
    let mut from = 0;
    for _ in 0..MAX_TRIES {
        let Some(found) = find_word(text, first, from, true) else {
            return false;
        };
        from = found.start
            + text
                .get(found.start..)
                .and_then(|t| t.chars().next())
                .map_or(1, char::len_utf8);
        let mut end = found.end;
        let all = rest.iter().all(|part| {
            let limit =
                text.floor_char_boundary(end.saturating_add(MAX_GAP).saturating_add(part.len()));
            let next = text
                .get(..limit)
                .and_then(|text| find_word(text, part, end, false));
            end = next.as_ref().map_or(end, |range| range.end);
            next.is_some()
        });
        if all {
            return true;
        }
    }
    false
}

/// Where words stand by themselves. The first letter may be a capital here and none there.
fn find_word(text: &str, words: &str, from: usize, any_case: bool) -> Option<Range<usize>> {
    let other = any_case.then(|| flipped(words)).flatten();
    let mut from = from;
    for _ in 0..MAX_TRIES {
        let here = |words: &str| text.get(from..)?.find(words).map(|at| from + at);
        let start = [here(words), other.as_deref().and_then(here)]
            .into_iter()
            .flatten()
            .min()?;
        let end = start + words.len();
        let letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let before = text.get(..start).and_then(|t| t.chars().next_back());
        let after = text.get(end..).and_then(|t| t.chars().next());
        let first = words.chars().next();
        let last = words.chars().next_back();
        let inside = (letter(before) && letter(first)) || (letter(after) && letter(last));
        if !inside || is_dense(words) {
            return Some(start..end);
        }
        from = start
            + text
                .get(start..)
                .and_then(|t| t.chars().next())
                .map_or(1, char::len_utf8);
    }
    None
}

fn is_dense(words: &str) -> bool {
    words.contains(|c| ('\u{2e80}'..='\u{d7ff}').contains(&c))
}

fn flipped(words: &str) -> Option<String> {
    let first = words.chars().next()?;
    let other: String = match first.is_uppercase() {
        true => first.to_lowercase().collect(),
        false => first.to_uppercase().collect(),
    };
    let rest = words.get(first.len_utf8()..)?;
    // As many bytes, so that places stay the same.
    (other.len() == first.len_utf8() && other != first.to_string()).then(|| other + rest)
}

/// A text as texts are compared.
fn normal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            c if c.is_whitespace() => {
                if !out.ends_with(' ') && !out.is_empty() {
                    out.push(' ');
                }
            }
            '*' | '_' | '`' => {}
            c if is_hidden(c) || marked(c).is_some() => {}
            '“' | '”' | '„' | '«' | '»' | '‹' | '›' | '"' | '‘' | '’' | '‚' | '´' | '‛' | '「'
            | '」' | '『' | '』' | '‟' | '❝' | '❞' | '〝' | '〞' | '〟' | '《' | '》' | '″' => {
                out.push('\'')
            }
            '‐'..='―' | '−' => out.push('-'),
            '…' => out.push_str("..."),
            'ﬀ' => out.push_str("ff"),
            'ﬁ' => out.push_str("fi"),
            'ﬂ' => out.push_str("fl"),
            'ﬃ' => out.push_str("ffi"),
            'ﬄ' => out.push_str("ffl"),
            'ﬅ' | 'ﬆ' => out.push_str("st"),
            '\\' if rest.peek().is_some_and(char::is_ascii_punctuation) => {}
            c => out.push(c),
        }
    }
    out.truncate(out.trim_end().len());
    out
}
