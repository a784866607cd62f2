//! Other ways to cite: footnotes, keys of reference managers, marks of chat programs, numbers of papers and books.
//!
//! A writer cites ids and nothing else, so what is meant to lead a reader to a work in another way was made up, or
//! copied from a source together with numbers that mean nothing here. What can only be a citation goes. What names a
//! work in words gets a note, unless a source that was read has the same number or name. Called by `check` when ids
//! and addresses are marks; code is left alone.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::edit::{Edit, apply};
use super::{Ledger, Lines, NO_SUCH_WORK, RefusedKind, code};
use crate::research::source::{Library, Source};

/// What happens to what was found.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// It goes: the first group, or all of it.
    Goes(RefusedKind),
    /// A note follows, unless a source has the first group.
    IsNoted,
    /// The same, where files are what is read.
    IsNotedAmongFiles,
}
use Then::{Goes, IsNoted, IsNotedAmongFiles};

const NUMBER: Then = Goes(RefusedKind::Number);
const KEY: Then = Goes(RefusedKind::Id);

/// Patterns of the `regex` crate, which is linear.
const STYLES: [(&str, Then); 28] = [
    // Numbers in brackets that are no plain ones: other digits, letters before them, pages, Roman ones.
    (
        r"\[(?:pp?\.\s*\p{N}{1,6}(?:\s*[-–,]\s*\p{N}{1,6})*|\d{5,6}|[[\p{N}一二三四五六七八九十]--0-9]{1,6})\]",
        NUMBER,
    ),
    (r"\[[A-Z]{1,2}\p{Nd}{1,4}\]", NUMBER),
    (
        r"(?:^|[\s.,;:!?”’»\x22)])(\[(?:[ivxlc]{2,6}|[IVXLC]{2,6})\])",
        NUMBER,
    ),
    // "(ref. 7)", "reference 7".
    (
        r"(?i)\((?:see\s+|cf\.?\s+)?(?:refs?\.?|references?|sources?|footnotes?|fn\.?|citations?)[\s:#]*\p{Nd}{1,4}(?:\s*[-–,;&]\s*\p{Nd}{1,4})*\)",
        NUMBER,
    ),
    (
        r"(?i)\b(?:see\s+|cf\.?\s+)?(?:refs?\.|references?|footnotes?)\s*#?\p{Nd}{1,4}\b",
        NUMBER,
    ),
    // Raised numbers behind a word or a sentence; behind one or two letters they are powers.
    (
        r"(?:\p{L}{3}|[.,;:!?”’»\x22)])(\$?\^\{?\[?\p{Nd}{1,4}\]?\}?\^?\$?)",
        NUMBER,
    ),
    (r"(?:\p{L}{3}\s?)(\$\^\{?\p{Nd}{1,4}\}?\$)", NUMBER),
    (r"(?:\p{L}{3}|[.,;:!?”’»\x22)]\s?)([①-⓿❶-➓])", NUMBER),
    (r"\p{L}{3}([⁰¹²³⁴-⁹]+)", NUMBER),
    // What chat programs put into their answers.
    (
        r"(?i)【[^】\n]{0,80}(?:†|cite|turn\d|search\d|source)[^】\n]{0,80}】",
        NUMBER,
    ),
    (r"(?i)(?:file)?cite(?:\s?turn\d+[a-z]+\d+)+", NUMBER),
    (
        r"(?i)\[cite\s?:[^\]\n]{0,120}\]|:cite\b(?:\[[^\]\n]{0,120}\])?",
        NUMBER,
    ),
    // Keys of LaTeX, wikis, Pandoc and BibTeX.
    (
        r"\\[a-zA-Z]*cite[a-zA-Z]*\*?(?:\[[^\]\n]{0,80}\]){0,2}\{[^}\n]{0,200}\}",
        KEY,
    ),
    (
        r"(?i)\{\{\s*(?:cite|citation|sfn|ref|harv)[^}\n]{0,200}\}\}",
        KEY,
    ),
    (r"\[\[[^\]\n]{0,80}\p{Nd}{4}[^\]\n]{0,20}\]\]", KEY),
    (r"\[-?@[^\]\n]{1,200}\]", KEY),
    (r"(?:^|[\s(])(@[a-z][\w:-]{1,60}\p{Nd}{4}\w{0,20})", KEY),
    (r"\[[A-Z][A-Za-z]{1,12}\+?\p{Nd}{2,4}[a-z]?\]", KEY),
    // Addresses that are spelled so that programs do not open them, and people do.
    (
        r"(?i)\bh(?:tt|xx)ps?\s?(?:\[:\]|:)(?://|\\{1,2})[^\s)\]]+\S*",
        Goes(RefusedKind::Address),
    ),
    (
        r"(?i)\b[\w-]+(?:(?:\[\.\]|\(\.\)|\[dot\]|\(dot\))[\w-]+)+(?:/[^\s)\]]*)?",
        Goes(RefusedKind::Address),
    ),
    // Works by their numbers.
    (r"(?i)\bPMID:?\s*(\d{5,9})\b", IsNoted),
    (r"\bPMC\s?(\d{5,9})\b", IsNoted),
    (r"(?i)\bISBN(?:-1[03])?:?\s*(\d[\d-]{8,16}[\dX])\b", IsNoted),
    (r"(?i)\bISSN:?\s*(\d{4}-\d{3}[\dX])\b", IsNoted),
    (
        r"\b(?:RFC\s?-?|[Pp]atent\s+(?:[Nn]o\.?\s*)?(?:[A-Z]{2})?)(\d[\d,]{1,12}\d)\b",
        IsNoted,
    ),
    (r"\b(?:abs|pdf)/(\d{4}\.\d{4,5})(?:v\d{1,2})?\b", IsNoted),
    (
        r"\b(\d{2}(?:0[1-9]|1[0-2])\.\d{4,5})(?:v\d{1,2}\b|[)\]])",
        IsNoted,
    ),
    // Files that nobody has read, where files are read.
    (
        r"(?i)(?:^|[\s(\[“\x22'])([\w./-]*\w\.(?:pdf|docx?|odt|rtf|md|markdown|txt|html?|rst|adoc|csv|tsv|xlsx?|pptx?|epub|tex))\b",
        IsNotedAmongFiles,
    ),
];

static COMPILED: LazyLock<Vec<(Regex, Then)>> = LazyLock::new(|| {
    let compiled = STYLES
        .iter()
        .map(|(pattern, then)| (Regex::new(pattern), *then));
    compiled
        .filter_map(|(regex, then)| Some((regex.ok()?, then)))
        .collect()
});

/// The text without these ways to cite.
pub(super) fn check(text: &str, library: &Library, ledger: &mut Ledger) -> String {
    let mut found = found(text);
    found.sort_by_key(|(range, _, _)| (range.start, std::cmp::Reverse(range.end)));
    let lines = Lines::new(text);
    let among_files = library
        .iter()
        .any(|source| source.url.starts_with("local:"));
    let mut read = Read {
        library,
        known: HashMap::new(),
    };
    let (mut edits, mut until): (Vec<Edit>, usize) = (Vec::new(), 0);
    for (range, name, then) in found {
        if range.start < until {
            continue;
        }
        let written = text.get(range.clone()).unwrap_or_default();
        let line = lines.at(range.start);
        match then {
            Goes(kind) => {
                ledger.refuse(
                    kind,
                    written,
                    line,
                    "sources are cited by their ids, and numbered by code",
                );
                edits.push(Edit {
                    range: range.clone(),
                    by: String::new(),
                });
            }
            IsNotedAmongFiles if !among_files => continue,
            IsNoted | IsNotedAmongFiles => {
                if read.has(&name) {
                    continue;
                }
                ledger.refuse(
                    RefusedKind::Address,
                    written,
                    line,
                    "no source that was read has it",
                );
                edits.push(Edit {
                    range: range.end..range.end,
                    by: format!(" {NO_SUCH_WORK}"),
                });
            }
        }
        until = range.end;
    }
    apply(text, edits)
}

/// Where something is, what names it, and what happens to it.
type Place = (std::ops::Range<usize>, String, Then);

fn found(text: &str) -> Vec<Place> {
    let code = code::ranges(text);
    let mut all = Vec::new();
    for (regex, then) in COMPILED.iter() {
        for captures in regex.captures_iter(text) {
            let Some(whole) = captures.get(0) else {
                continue;
            };
            let first = captures.get(1);
            let range = match (then, first) {
                (Goes(_) | IsNotedAmongFiles, Some(first)) => first.range(),
                _ => whole.range(),
            };
            if !code::contains(&code, range.start) {
                let name = first.unwrap_or(whole).as_str().to_owned();
                all.push((range, name, *then));
            }
        }
    }
    all
}

/// The most names and numbers of one text that are looked up; further ones count as not read.
const MAX_LOOKED_UP: usize = 1_000;

/// What the sources say of names and numbers of works.
struct Read<'a> {
    library: &'a Library,
    known: HashMap<String, bool>,
}

impl Read<'_> {
    fn has(&mut self, name: &str) -> bool {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        if self.known.len() >= MAX_LOOKED_UP {
            return false;
        }
        let says = |source: &Source| {
            let texts = source.versions.iter().map(|version| version.text.as_str());
            texts
                .chain([source.title.as_str(), source.url.as_str()])
                .any(|text| text.contains(name))
        };
        let has = self.library.iter().any(says);
        self.known.insert(name.to_owned(), has);
        has
    }
}

#[cfg(test)]
mod tests {
    use super::{COMPILED, STYLES};

    #[test]
    fn every_pattern_is_one() {
        assert_eq!(COMPILED.len(), STYLES.len());
    }
}
