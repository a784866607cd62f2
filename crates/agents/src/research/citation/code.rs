//! Where code stands in a Markdown text: fenced blocks and spans between backticks.
//!
//! What a renderer shows letter by letter is read differently: no links, no quotations, no claims. Called by the
//! rules that look for these. Linear.

use std::collections::HashMap;
use std::ops::Range;

/// The fence that a line opens: its character and length. One that is indented may end with the item or quotation
/// that it stands in; it does not count, and its lines are read like all others.
pub(super) fn fence(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|c| "`~".contains(*c))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    let rest = line.get(length..).unwrap_or_default();
    // Backticks behind the fence make it a span of code in a paragraph.
    (length >= 3 && !(mark == '`' && rest.contains('`'))).then_some((mark, length))
}

/// Whether a line opens a fence inside of something, or indented.
fn is_inner_fence(line: &str) -> bool {
    let markup = |c: char| c.is_whitespace() || c.is_ascii_digit() || ">-*+.)".contains(c);
    let bare = line.trim_start_matches(markup);
    bare.len() < line.len() && (bare.starts_with("```") || bare.starts_with("~~~"))
}

/// Whether a line closes an open fence.
pub(super) fn closes(line: &str, (mark, length): (char, usize)) -> bool {
    let bare = line.trim_end().trim_start_matches(' ');
    let indent = line.len() - line.trim_start_matches(' ').len();
    indent <= 3 && bare.len() >= length && bare.chars().all(|c| c == mark)
}

/// The ranges of code, in order, without overlap. A span ends with its line: where a paragraph ends is not always
/// plain, and what is taken for code by mistake would be looked at less. For the same reason there is none behind
/// backticks that could pair with later lines.
pub(super) fn ranges(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<((char, usize), usize)> = None;
    let (mut at, mut unpaired) = (0, false);
    for line in text.split_inclusive('\n') {
        let begin = at;
        unpaired &= !line.trim().is_empty();
        at += line.len();
        match open {
            Some((mark, start)) if closes(line, mark) => {
                found.push(start..at);
                open = None;
            }
            Some(_) => {}
            None => match fence(line) {
                Some(mark) => open = Some((mark, begin)),
                // In an item or a quotation a fence ends when that ends. From here on nothing is surely code.
                None if is_inner_fence(line) => break,
                None => {
                    let before = found.len();
                    let whole = spans(text, begin..at, &mut found);
                    unpaired |= !whole;
                    if unpaired {
                        found.truncate(before);
                    }
                }
            },
        }
    }
    found.extend(open.map(|(_, start)| start..text.len()));
    found
}

/// The spans between runs of backticks of equal length, in one line. Says whether no run is left over.
fn spans(text: &str, range: Range<usize>, found: &mut Vec<Range<usize>>) -> bool {
    let Some(bytes) = text.as_bytes().get(range.clone()) else {
        return true;
    };
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let (mut at, mut odd) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let length = bytes.iter().skip(at).take_while(|b| **b == b'`').count();
        let escaped = at > 0 && bytes.get(at - 1) == Some(&b'\\');
        if *byte == b'`' && !escaped {
            runs.push((at, length));
        }
        odd |= *byte == b'`' && escaped;
        at += length.max(1);
    }
    let mut by_length: HashMap<usize, Vec<usize>> = HashMap::new();
    for (start, length) in runs.iter().rev() {
        by_length.entry(*length).or_default().push(*start);
    }
    let (mut end, mut whole) = (0, true);
    for (start, length) in runs {
        let Some(later) = by_length.get_mut(&length) else {
            continue;
        };
        while later.last().is_some_and(|other| *other <= start) {
            later.pop();
        }
        if start < end {
            continue;
        }
        match later.last() {
            Some(close) => {
                end = close + length;
                found.push(range.start + start..range.start + end);
            }
            None => whole = false,
        }
    }
    whole && !odd
}

/// Whether a place is in one of the ranges.
pub(super) fn contains(ranges: &[Range<usize>], at: usize) -> bool {
    let next = ranges.partition_point(|range| range.end <= at);
    ranges.get(next).is_some_and(|range| range.contains(&at))
}
