//! A report's sentences with their citations, and texts made comparable. Called by the score only.
//!
//! It reads what the program itself has written: numbers in brackets, headings with `#`, marks of the check of
//! citations. On other texts it may part sentences in wrong places and never fails.

use std::collections::BTreeSet;

use crate::research::citation::{NO_SUCH_WORK, NOT_FOUND, UNCITED};

/// Headings behind which sources are listed.
const LISTS: [&str; 3] = ["sources", "references", "bibliography"];

/// What the check of citations writes into a text, which is not the writer's.
const MARKS: [&str; 3] = [UNCITED, NOT_FOUND, NO_SUCH_WORK];

/// How many letters of a word are compared, so that endings do not count.
const STEM: usize = 6;
/// The shortest word that carries meaning, in letters.
const SHORTEST: usize = 4;

/// Longer words that carry none.
const EMPTY_WORDS: [&str; 42] = [
    "about", "after", "also", "because", "been", "before", "being", "between", "both", "could",
    "does", "each", "from", "have", "into", "more", "most", "much", "must", "only", "other",
    "over", "same", "should", "some", "such", "than", "that", "their", "them", "then", "there",
    "these", "they", "this", "those", "were", "when", "which", "while", "with", "would",
];

/// Numbers that documents may write as words.
const NUMBER_WORDS: [(&str, &str); 16] = [
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("ten", "10"),
    ("eleven", "11"),
    ("twelve", "12"),
    ("fifteen", "15"),
    ("twenty", "20"),
    ("fifty", "50"),
    ("sixty", "60"),
    ("hundred", "100"),
];

/// A sentence of a report, without its marks.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sentence {
    pub(super) text: String,
    /// The numbers that it cites, each once.
    pub(super) cites: BTreeSet<u64>,
    /// Whether it is marked as one that cites nothing.
    pub(super) uncited: bool,
}

/// A report up to its list of sources.
pub(super) fn without_sources(report: &str) -> &str {
    let mut at = 0;
    for line in report.split_inclusive('\n') {
        let heading = line.trim().strip_prefix('#').map(|rest| {
            let rest = rest.trim_matches(|c: char| "#*: ".contains(c));
            rest.to_lowercase()
        });
        if heading.is_some_and(|heading| LISTS.contains(&heading.as_str())) {
            return report.get(..at).unwrap_or(report);
        }
        at += line.len();
    }
    report
}

/// The sentences of a text, without headings and code. A point of a list and a row of a table begin anew.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let mut all = Vec::new();
    let mut block = String::new();
    let mut in_code = false;
    for line in text.lines().map(str::trim) {
        let fence = line.starts_with("```") || line.starts_with("~~~");
        in_code ^= fence;
        let point = ["- ", "* ", "+ ", "|", "> "]
            .iter()
            .any(|mark| line.starts_with(mark));
        let ends = fence || in_code || line.is_empty() || line.starts_with('#');
        if ends || point || is_numbered(line) {
            part(&std::mem::take(&mut block), &mut all);
        }
        if !ends {
            block.push_str(line);
            block.push(' ');
        }
    }
    part(&block, &mut all);
    all
}

fn is_numbered(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && rest.starts_with(". ")
}

/// Parts a block where a sentence ends and no mark of it follows.
fn part(block: &str, all: &mut Vec<Sentence>) {
    let mut rest = block.trim();
    while !rest.is_empty() {
        let end = end_of_sentence(rest).unwrap_or(rest.len());
        let (sentence, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
        all.push(read(sentence));
        rest = tail.trim_start();
    }
}

fn end_of_sentence(text: &str) -> Option<usize> {
    text.match_indices(['.', '!', '?', '。'])
        .find_map(|(at, stop)| {
            let mut end = at + stop.len();
            let closing = |c: char| "\"'”’»)*_".contains(c);
            let tail = text.get(end..)?;
            end = text.len() - tail.trim_start_matches(closing).len();
            let tail = text.get(end..)?;
            let number = is_numbered(text) && text.get(..at)?.bytes().all(|b| b.is_ascii_digit());
            let ends = tail.is_empty() || tail.starts_with([' ', '[']);
            (ends && !number).then(|| text.len() - behind_marks(tail).len())
        })
}

/// What follows the marks that a text begins with.
fn behind_marks(text: &str) -> &str {
    let mut rest = text;
    while let Some(inside) = rest.trim_start().strip_prefix('[') {
        match inside.split_once(']') {
            Some((mark, tail)) if is_mark(mark) => rest = tail,
            _ => break,
        }
    }
    rest
}

fn is_mark(inside: &str) -> bool {
    MARKS.iter().any(|mark| says(mark, inside)) || numbers_in(inside).is_some()
}

/// Whether a mark has this between its brackets.
fn says(mark: &str, inside: &str) -> bool {
    mark.trim_matches(['[', ']']) == inside
}

/// `3` or `1, 2` as numbers.
fn numbers_in(inside: &str) -> Option<Vec<u64>> {
    inside.split(',').map(|n| n.trim().parse().ok()).collect()
}

fn read(sentence: &str) -> Sentence {
    let mut read = Sentence::default();
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('[') {
        read.text.push_str(before);
        match after.split_once(']') {
            Some((inside, tail)) if is_mark(inside) => {
                read.uncited |= says(UNCITED, inside);
                read.cites.extend(numbers_in(inside).unwrap_or_default());
                rest = tail;
            }
            _ => {
                read.text.push('[');
                rest = after;
            }
        }
    }
    read.text.push_str(rest);
    read.text = read.text.split_whitespace().collect::<Vec<_>>().join(" ");
    read
}

/// A text in one way of writing: lower case, single spaces, no marks of Markdown, no citations, `percent` for `%`,
/// numbers without commas.
pub(super) fn comparable(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let text = read(text).text;
    let mut characters = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        match c {
            '*' | '_' | '`' | '\\' => continue,
            ',' if before.is_ascii_digit() && after.is_ascii_digit() => continue,
            '%' => plain.push_str(" percent"),
            '‘' | '’' => plain.push('\''),
            '“' | '”' => plain.push('"'),
            '‐' | '‑' | '–' | '—' => plain.push('-'),
            c => plain.extend(c.to_lowercase()),
        }
        before = c;
    }
    let plain = plain.replace("per cent", "percent");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a phrase stands in a comparable text, and not only as a part of a longer word or number.
pub(super) fn holds(text: &str, phrase: &str) -> bool {
    let phrase = comparable(phrase);
    let joins = |next: Option<char>, beyond: Option<char>| match next {
        Some('.') => beyond.is_some_and(|c| c.is_ascii_digit()),
        next => next.is_some_and(char::is_alphanumeric),
    };
    !phrase.is_empty()
        && text.match_indices(&phrase).any(|(at, found)| {
            let mut before = text.get(..at).unwrap_or_default().chars().rev();
            let mut after = text.get(at + found.len()..).unwrap_or_default().chars();
            !joins(before.next(), before.next()) && !joins(after.next(), after.next())
        })
}

/// What a text is about: beginnings of its words, and its numbers.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Gist {
    pub(super) words: BTreeSet<String>,
    pub(super) numbers: BTreeSet<String>,
}

impl Gist {
    pub(super) fn of_sentence(text: &str) -> Gist {
        let mut gist = Gist::default();
        let text = comparable(text);
        let joins = |c: char| c.is_alphanumeric() || c == '.';
        for word in text.split(|c| !joins(c)).map(|word| word.trim_matches('.')) {
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                gist.numbers.insert(word.to_owned());
                continue;
            }
            for word in word.split('.') {
                let letters = word.chars().count();
                if letters >= SHORTEST && !EMPTY_WORDS.contains(&word) {
                    gist.words.insert(word.chars().take(STEM).collect());
                }
            }
        }
        gist
    }

    /// A document may write numbers as words.
    pub(super) fn of_document(text: &str) -> Gist {
        let mut gist = Gist::of_sentence(text);
        let text = comparable(text);
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            let known = NUMBER_WORDS.iter().find(|(name, _)| *name == word);
            gist.numbers
                .extend(known.map(|(_, digits)| (*digits).to_owned()));
        }
        gist
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.numbers.is_empty()
    }
}
