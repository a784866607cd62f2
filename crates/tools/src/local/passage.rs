//! A text in passages: paragraphs that belong together, none longer than a model reads in a list of results.
//!
//! Called for each document. A passage is a range of the text and nothing else, so that what a search shows stands in
//! the document word for word.

use std::ops::Range;

/// The most characters of a passage.
pub(super) const MAX_CHARS: usize = 1_200;

/// The passages of a text, in order. Together they hold everything but white space.
pub(super) fn passages(text: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut open: Option<Open> = None;
    for paragraph in paragraphs(text) {
        let part = text.get(paragraph.clone()).unwrap_or_default();
        let (chars, heading) = (part.chars().count(), part.starts_with('#'));
        let together = |open: &Open| {
            let between = text.get(open.range.end..paragraph.start);
            open.chars + chars + between.unwrap_or_default().chars().count()
        };
        let fits = |open: &Open| {
            let section_ends = heading && !open.only_headings;
            !section_ends && together(open) <= MAX_CHARS
        };
        match &mut open {
            Some(open) if fits(open) => {
                open.chars = together(open);
                open.range.end = paragraph.end;
                open.only_headings &= heading;
                continue;
            }
            _ => all.extend(open.take().map(|open| open.range)),
        }
        match chars > MAX_CHARS {
            true => all.extend(pieces(text, paragraph)),
            false => {
                open = Some(Open {
                    range: paragraph,
                    chars,
                    only_headings: heading,
                })
            }
        }
    }
    all.extend(open.map(|open| open.range));
    all
}

/// A passage that may still grow.
struct Open {
    range: Range<usize>,
    chars: usize,
    only_headings: bool,
}

/// What stands between blank lines.
fn paragraphs(text: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut open: Option<Range<usize>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let end = start + line.trim_end().len();
        match (&mut open, line.trim().is_empty()) {
            (_, true) => all.extend(open.take()),
            (Some(open), false) => open.end = end,
            (None, false) => open = Some(start..end),
        }
    }
    all.extend(open);
    all
}

/// A long paragraph, cut behind sentences, else between words, else anywhere.
fn pieces(text: &str, paragraph: Range<usize>) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let Range { mut start, end } = paragraph;
    while let Some(rest) = text.get(start..end).filter(|rest| !rest.is_empty()) {
        let limit = rest.char_indices().nth(MAX_CHARS).map(|(limit, _)| limit);
        let Some(head) = limit.and_then(|limit| rest.get(..limit)) else {
            all.push(start..end);
            break;
        };
        let sentence = [". ", "! ", "? ", ".\n", "。"]
            .iter()
            .filter_map(|mark| Some(head.rfind(mark)? + mark.len()))
            .max();
        let word = head.rfind(char::is_whitespace);
        let far_enough = |cut: &usize| *cut > head.len() / 2;
        let cut = sentence
            .filter(far_enough)
            .or(word.filter(far_enough))
            .unwrap_or(head.len());
        let piece = rest.get(..cut).unwrap_or(rest);
        all.push(start..start + piece.trim_end().len());
        let tail = rest.get(cut..).unwrap_or_default();
        start = end - tail.trim_start().len();
    }
    all
}
