//! Replaces parts of a text, and tidies up where something was taken out.
//!
//! Called by the rules that take things out. What is taken out never joins what stood around it into something new.

use std::ops::Range;

/// What is to stand in the place of a range; nothing to take it out.
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) by: String,
}

/// Words that introduce an address and mean nothing without it.
const LEAD_INS: [&str; 8] = [
    "(see", "(cf.", "(source:", "(via", "(doi:", "(from", "(at", "(arxiv:",
];

/// Carries out edits that are in order and do not overlap; one that overlaps an earlier one is left out.
pub(super) fn apply(text: &str, edits: Vec<Edit>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        let Some(between) = text.get(at..edit.range.start) else {
            continue;
        };
        out.push_str(between);
        at = edit.range.end;
        if edit.by.is_empty() {
            at += tidy(&mut out, text.get(at..).unwrap_or_default());
        } else {
            out.push_str(&edit.by);
        }
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Takes away what is empty now, and says how many bytes of the rest go with it.
fn tidy(out: &mut String, rest: &str) -> usize {
    let mut taken = 0;
    while let Some(open) = out.trim_end_matches(' ').chars().next_back() {
        let blanks = rest
            .get(taken..)
            .map_or(0, |r| r.len() - r.trim_start_matches(' ').len());
        let close = match open {
            '(' => ')',
            '[' => ']',
            '<' => '>',
            _ => match lead_in(out) {
                Some(length)
                    if rest
                        .get(taken + blanks..)
                        .is_some_and(|r| r.starts_with(')')) =>
                {
                    out.truncate(length + 1);
                    continue;
                }
                _ => break,
            },
        };
        if !rest
            .get(taken + blanks..)
            .is_some_and(|r| r.starts_with(close))
        {
            break;
        }
        out.truncate(out.trim_end_matches(' ').len() - 1);
        taken += blanks + 1;
    }
    let next = rest.get(taken..).and_then(|r| r.chars().next());
    let inside_line = !out.is_empty()
        && !out.trim_end_matches(' ').ends_with('\n')
        && !out.trim_end_matches(' ').is_empty();
    match next {
        None | Some(' ' | '\n' | '.' | ',' | ';' | ':' | '!' | '?' | ')' | ']' | '`')
            if inside_line =>
        {
            out.truncate(out.trim_end_matches(' ').len());
        }
        Some(c) if !c.is_whitespace() && out.ends_with(|c: char| !c.is_whitespace()) => {
            out.push(' ')
        }
        _ => {}
    }
    taken
}

/// Where the parenthesis begins in which nothing but a word of introduction is left.
fn lead_in(out: &str) -> Option<usize> {
    let trimmed = out.trim_end_matches(' ');
    let tail = trimmed.get(trimmed.floor_char_boundary(trimmed.len().saturating_sub(10))..)?;
    let tail = tail.to_ascii_lowercase();
    let word = LEAD_INS.iter().find(|word| tail.ends_with(*word))?;
    Some(trimmed.len() - word.len())
}
