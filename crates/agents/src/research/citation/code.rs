//! Where code stands in a Markdown text: fenced blocks and spans between backticks.
//!
//! What a renderer shows letter by letter is read differently: no links, no quotations, no claims. Called by the
//! rules that look for these. Linear.

use std::collections::HashMap;
use std::ops::Range;

/// The fence that a line opens or closes: its character and length.
pub(super) fn fence(line: &str) -> Option<(char, usize)> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| "`~".contains(*c))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    let rest = line.get(length..).unwrap_or_default();
    // Backticks behind the fence make it a span of code in a paragraph.
    (length >= 3 && !(mark == '`' && rest.contains('`'))).then_some((mark, length))
}

/// Whether a line closes an open fence.
pub(super) fn closes(line: &str, (mark, length): (char, usize)) -> bool {
    let line = line.trim();
    line.chars().all(|c| c == mark) && line.len() >= length
}

/// The ranges of code, in order, without overlap.
pub(super) fn ranges(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<((char, usize), usize)> = None;
    let (mut at, mut paragraph) = (0, 0);
    for line in text.split_inclusive('\n') {
        let begin = at;
        at += line.len();
        match open {
            Some((mark, start)) if closes(line, mark) => {
                found.push(start..at);
                (open, paragraph) = (None, at);
            }
            Some(_) => {}
            None => {
                if let Some(mark) = fence(line) {
                    spans(text, paragraph..begin, &mut found);
                    open = Some((mark, begin));
                } else if line.trim().is_empty() {
                    spans(text, paragraph..begin, &mut found);
                    paragraph = at;
                }
            }
        }
    }
    match open {
        Some((_, start)) => found.push(start..text.len()),
        None => spans(text, paragraph..text.len(), &mut found),
    }
    found
}

/// The spans between runs of backticks of equal length, in one paragraph.
fn spans(text: &str, range: Range<usize>, found: &mut Vec<Range<usize>>) {
    let Some(bytes) = text.as_bytes().get(range.clone()) else {
        return;
    };
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let length = bytes.iter().skip(at).take_while(|b| **b == b'`').count();
        let escaped = at > 0 && bytes.get(at - 1) == Some(&b'\\');
        if *byte == b'`' && !escaped {
            runs.push((at, length));
        }
        at += length.max(1);
    }
    let mut by_length: HashMap<usize, Vec<usize>> = HashMap::new();
    for (start, length) in runs.iter().rev() {
        by_length.entry(*length).or_default().push(*start);
    }
    let mut end = 0;
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
        if let Some(close) = later.last() {
            end = close + length;
            found.push(range.start + start..range.start + end);
        }
    }
}

/// Whether a place is in one of the ranges.
pub(super) fn contains(ranges: &[Range<usize>], at: usize) -> bool {
    let next = ranges.partition_point(|range| range.end <= at);
    ranges.get(next).is_some_and(|range| range.contains(&at))
}
