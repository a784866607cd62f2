//! The sentences of a paragraph.
//!
//! Abbreviations, initials and decimals end none; citations behind a full stop belong to the sentence before it, as
//! most writers mean it. Called by `claim`. Linear.

use std::ops::Range;

use super::code::contains;
use super::mark::marked;

/// Abbreviations that are followed by more of their sentence, in small letters without the last full stop.
const ABBREVIATIONS: [&str; 34] = [
    "e.g", "i.e", "cf", "vs", "al", "fig", "figs", "eq", "eqs", "sec", "ch", "dr", "mr", "mrs",
    "ms", "prof", "st", "approx", "ca", "resp", "ref", "refs", "vol", "ed", "eds", "pp", "p",
    "u.s", "u.k", "e.u", "z.b", "d.h", "bzw", "viz",
];

/// The sentences from a place on; `whole` are ranges in which none ends.
pub(super) fn sentences(text: &str, start: usize, whole: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut begin = start;
    let chars: Vec<(usize, char)> = text.char_indices().filter(|(at, _)| *at >= start).collect();
    let mut n = 0;
    while let Some((at, c)) = chars.get(n).copied() {
        n += 1;
        if !is_end(c) || contains(whole, at) {
            continue;
        }
        while chars.get(n).is_some_and(|(_, c)| is_end(*c)) {
            n += 1;
        }
        while chars.get(n).is_some_and(|(_, c)| closes(*c)) {
            n += 1;
        }
        let word = text.get(begin..at).unwrap_or_default();
        let after = behind_citations(&chars, n);
        if ends_here(word, c, &chars, n, after) {
            n = after.unwrap_or(n);
            let end = chars.get(n).map_or(text.len(), |(at, _)| *at);
            found.push(begin..end);
            begin = end;
        }
    }
    if text
        .get(begin..)
        .is_some_and(|rest| !rest.trim().is_empty())
    {
        // A tail of nothing but citations or marks belongs to the sentence before it.
        let rest = text.get(begin..).unwrap_or_default();
        match found.last_mut() {
            Some(last) if !rest.contains(char::is_alphanumeric) => last.end = text.len(),
            _ => found.push(begin..text.len()),
        }
    }
    found
}

fn is_end(c: char) -> bool {
    ".!?…。！？".contains(c)
}

fn closes(c: char) -> bool {
    "\"”’»)]*_'`“」』）".contains(c)
}

/// Where the citations end that follow a full stop, if they do not begin the next sentence.
fn behind_citations(chars: &[(usize, char)], mut n: usize) -> Option<usize> {
    let mut end = None;
    while let Some((_, c)) = chars.get(n) {
        if marked(*c).is_some() {
            end = Some(n + 1);
        } else if *c != ' ' {
            break;
        }
        n += 1;
    }
    let next = chars.get(n).map(|(_, c)| *c);
    // "[1] shows that …" goes on in small letters: its citation is a subject.
    end.filter(|_| !next.is_some_and(char::is_lowercase))
}

fn ends_here(
    sentence: &str,
    c: char,
    chars: &[(usize, char)],
    n: usize,
    after: Option<usize>,
) -> bool {
    let next = chars.get(n).map(|(_, c)| *c);
    if "。！？".contains(c) || after.is_some() {
        return true;
    }
    if !next.is_none_or(|c| c.is_whitespace() || marked(c).is_some()) {
        return false;
    }
    if c != '.' && c != '…' {
        return true;
    }
    let following = chars
        .get(n..)
        .unwrap_or_default()
        .iter()
        .map(|(_, c)| *c)
        .find(|c| !c.is_whitespace());
    if following.is_some_and(char::is_lowercase) {
        return false;
    }
    let tail = sentence
        .get(sentence.ceil_char_boundary(sentence.len().saturating_sub(40))..)
        .unwrap_or_default();
    let word = tail
        .rsplit(|c: char| c.is_whitespace() || "([\"“".contains(c))
        .next()
        .unwrap_or_default();
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    let numbered = word.eq_ignore_ascii_case("no") && following.is_some_and(|c| c.is_ascii_digit());
    let abbreviated = ABBREVIATIONS.contains(&word.to_lowercase().as_str());
    following.is_none() || !(initial || numbered || abbreviated)
}
