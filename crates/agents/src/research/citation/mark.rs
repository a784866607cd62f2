//! Marks in the place of citations: one private character for each, which names a source of the library.
//!
//! [`mark`] replaces what was found by marks or by nothing; [`number`] writes the marks as numbers, when all other
//! rules are through. No text from outside has such a character: `plain` takes them out.

use std::collections::HashMap;
use std::ops::Range;

use super::edit::{Edit, apply};
use super::find::{Found, Kind, find};
use super::known::Known;
use super::shadow::Shadow;
use super::{Ledger, Lines, Reference, RefusedKind, code};
use crate::research::source::Library;

/// What a mark is in a shadow: the end of any address, and no part of any id.
pub(super) const SEEN: char = '\u{2}';

/// The first mark; sources are far fewer than there are private characters.
const FIRST: u32 = 0xf_0000;
const LAST: u32 = 0xf_fffd;

/// How often a text is gone through, should taking out one thing have made another.
const MAX_ROUNDS: usize = 4;

fn mark_of(place: usize) -> Option<char> {
    let code = u32::try_from(place).ok()?.checked_add(FIRST)?;
    (code <= LAST).then(|| char::from_u32(code)).flatten()
}

/// The place in the library of the source that a character marks.
pub(super) fn marked(c: char) -> Option<usize> {
    let code = u32::from(c);
    (FIRST..=LAST)
        .contains(&code)
        .then(|| usize::try_from(code - FIRST).ok())
        .flatten()
}

/// The text with marks where something is cited that was fetched, and nothing where it was not.
pub(super) fn mark(text: &str, known: &Known, ledger: &mut Ledger) -> String {
    let mut text = text.to_owned();
    for _ in 0..MAX_ROUNDS {
        let edits = judged(&text, known, ledger);
        if edits.is_empty() {
            break;
        }
        text = apply(&text, edits);
    }
    footnotes(&text, ledger)
}

fn judged(text: &str, known: &Known, ledger: &mut Ledger) -> Vec<Edit> {
    let shadow = Shadow::new(text);
    let code = code::ranges(text);
    let lines = Lines::new(text);
    let mut edits = Vec::new();
    for Found { chars, kind } in find(&shadow) {
        let range = shadow.range(chars);
        let line = lines.at(range.start);
        let written = text.get(range.clone()).unwrap_or_default();
        let by = match &kind {
            Kind::Ids(ids) => ids_marked(ids, known, (line, &mut *ledger)),
            Kind::Number if is_index(text, &range, &code) => continue,
            Kind::Number => {
                let why = "numbers of references are given by code";
                ledger.refuse(RefusedKind::Number, written, line, why);
                String::new()
            }
            Kind::Domain(host)
                if known.has_host(host) || written != written.to_ascii_lowercase() =>
            {
                continue;
            }
            kind => match known.leads_to(kind, written).and_then(mark_of) {
                Some(mark) => mark.to_string(),
                None => {
                    let why = "it was not fetched in this run";
                    ledger.refuse(RefusedKind::Address, written, line, why);
                    String::new()
                }
            },
        };
        // Pandoc's raised numbers and notes begin with a caret.
        let raised =
            kind == Kind::Number && text.get(..range.start).is_some_and(|t| t.ends_with('^'));
        let range = range.start - usize::from(raised)..range.end;
        edits.push(Edit { range, by });
    }
    edits
}

fn ids_marked(ids: &[String], known: &Known, (line, ledger): (usize, &mut Ledger)) -> String {
    let mut marks = String::new();
    for id in ids {
        match known.id(id).and_then(mark_of) {
            Some(mark) if marks.contains(mark) => {}
            Some(mark) => marks.push(mark),
            None => ledger.refuse(
                RefusedKind::Id,
                id,
                line,
                "no source with this id was fetched in this run",
            ),
        }
    }
    marks
}

/// In code, a number behind a name or an operator is an index or a list, and cites nothing.
fn is_index(text: &str, range: &Range<usize>, code: &[Range<usize>]) -> bool {
    let before = text
        .get(..range.start)
        .map(|before| before.trim_end_matches(' '));
    let last = before.and_then(|before| before.chars().next_back());
    let apart = text
        .get(..range.start)
        .is_some_and(|before| before.ends_with(' '));
    let operator = last.is_some_and(|c| "=(,:[{+-*/".contains(c));
    let name = !apart && last.is_some_and(|c| c.is_alphanumeric() || "_)]".contains(c));
    code::contains(code, range.start) && (operator || name)
}

/// Raised digits behind a sentence or a quotation are footnotes; behind a unit they are powers.
fn footnotes(text: &str, ledger: &mut Ledger) -> String {
    let raised = |c: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".contains(c);
    let mut edits: Vec<Edit> = Vec::new();
    let mut before = ' ';
    let mut inside = false;
    for (at, c) in text.char_indices() {
        let follows =
            raised(c) && (inside || ".,;:!?\"”»’)".contains(before) || marked(before).is_some());
        if follows {
            match edits.last_mut().filter(|last| last.range.end == at) {
                Some(last) => last.range.end += c.len_utf8(),
                None => edits.push(Edit {
                    range: at..at + c.len_utf8(),
                    by: String::new(),
                }),
            }
        }
        (before, inside) = (c, follows);
    }
    let lines = Lines::new(text);
    for edit in &edits {
        let written = text.get(edit.range.clone()).unwrap_or_default();
        let why = "numbers of references are given by code";
        ledger.refuse(
            RefusedKind::Number,
            written,
            lines.at(edit.range.start),
            why,
        );
    }
    apply(text, edits)
}

/// The text with `[n]` for its marks, and the references by their numbers.
pub(super) fn number(text: &str, library: &Library) -> (String, Vec<Reference>) {
    let text = in_no_parentheses(text);
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    let (mut out, mut references) = (String::with_capacity(text.len()), Vec::new());
    let mut run: Vec<usize> = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let Some(place) = marked(c) else {
            out.push(c);
            if c != ' '
                || !chars
                    .peek()
                    .is_some_and(|c| marked(*c).is_some_and(|next| run.contains(&next)))
            {
                run.clear();
            } else {
                out.pop();
            }
            continue;
        };
        let Some(source) = library.get(place).filter(|_| !run.contains(&place)) else {
            continue;
        };
        run.push(place);
        let n = *numbers.entry(place).or_insert(references.len() + 1);
        if n > references.len() {
            let first = source.versions.first();
            references.push(Reference {
                n,
                id: source.id.clone(),
                url: source.url.clone(),
                title: source.title.clone(),
                fetched_at: first
                    .map(|version| version.fetched_at.clone())
                    .unwrap_or_default(),
                sha256: first
                    .map(|version| version.sha256.clone())
                    .unwrap_or_default(),
            });
        }
        out.push_str(&format!("[{n}]"));
        // What follows must make no link and no definition of it.
        let follows = chars.peek().copied();
        if matches!(follows, Some('(' | '[')) || (follows == Some(':') && begins_line(&out)) {
            out.push(' ');
        }
    }
    (undefined(&clean(out)), references)
}

/// Whether nothing but numbers and marks of items stands in the last line.
fn begins_line(text: &str) -> bool {
    let line = text
        .get(text.floor_char_boundary(text.len().saturating_sub(80))..)
        .unwrap_or_default();
    let line = line.rsplit('\n').next().unwrap_or_default();
    !line.contains(char::is_alphabetic)
}

/// A text in which no line defines a link: the colon of one is escaped, which looks the same.
fn undefined(text: &str) -> String {
    let code = code::ranges(text);
    let (mut out, mut open, mut at) = (String::with_capacity(text.len()), false, 0);
    for line in text.split_inclusive('\n') {
        let markup = |c: char| c.is_whitespace() || c.is_ascii_digit() || ">-*+.)".contains(c);
        let begins = line.trim_start_matches(markup).starts_with('[');
        match line
            .split_once("]:")
            .filter(|_| (begins || open) && !code::contains(&code, at))
        {
            Some((label, rest)) => {
                out.push_str(label);
                out.push_str("]\\:");
                out.push_str(rest);
            }
            None => out.push_str(line),
        }
        open = (begins || open) && !line.contains(']') && !line.trim().is_empty();
        at += line.len();
    }
    out
}

/// A citation needs no parentheses around its brackets.
fn in_no_parentheses(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once('(') {
        out.push_str(before);
        let marks = inside.trim_start_matches(|c| marked(c).is_some());
        let length = inside.len() - marks.len();
        match marks.strip_prefix(')').filter(|_| length > 0) {
            Some(after) => {
                out.push_str(inside.get(..length).unwrap_or_default());
                rest = after;
            }
            None => {
                out.push('(');
                rest = inside;
            }
        }
    }
    out + rest
}

/// The last look: whatever the rules made of the text, no id and no address stays in it.
fn clean(mut text: String) -> String {
    for _ in 0..MAX_ROUNDS {
        let shadow = Shadow::new(&text);
        let left = find(&shadow)
            .into_iter()
            .filter(|found| !matches!(found.kind, Kind::Number | Kind::Domain(_)));
        let edits: Vec<Edit> = left
            .map(|found| Edit {
                range: shadow.range(found.chars),
                by: String::new(),
            })
            .collect();
        if edits.is_empty() {
            break;
        }
        text = apply(&text, edits);
    }
    text
}
