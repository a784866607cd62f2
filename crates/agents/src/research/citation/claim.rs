//! Claims and quotations of a text, block by block: what cites nothing is marked, what was not said is unquoted.
//!
//! The last of the rules that `check` calls before marks become numbers.

use std::ops::Range;

use super::block::{Block, Kind, blocks, indent, item};
use super::edit::{Edit, apply};
use super::mark::marked;
use super::quote::{Finder, Quoted, is_long, is_quotation, quotations};
use super::sentence::sentences;
use super::{Ledger, Lines, NOT_FOUND, RefusedKind, UNCITED, code};
use crate::research::source::Library;

/// The fewest words of a claim.
const MIN_WORDS: usize = 3;
/// The most words of a line that introduces a list.
const MAX_LEAD_IN: usize = 20;
/// The most words of a line that says whose the block quotation above it is.
const MAX_ATTRIBUTION: usize = 12;

/// Whether a section with this title, in small letters, says what the report does not know.
pub(super) fn is_missing(title: &str) -> bool {
    ["what is missing", "what's missing", "what’s missing"].contains(&title)
}

/// The text with its notes.
pub(super) fn check(text: &str, library: &Library, ledger: &mut Ledger) -> String {
    let all = blocks(text);
    let mut finder = Finder::new(library);
    let mut out = String::with_capacity(text.len());
    let mut missing = false;
    for (n, block) in all.iter().enumerate() {
        let next = all
            .iter()
            .skip(n + 1)
            .find(|block| block.kind != Kind::Blank);
        match block.kind {
            Kind::Heading | Kind::Head => {
                if block.kind == Kind::Heading {
                    missing = is_missing(&block.title);
                }
                let words = Words {
                    block,
                    lines: Lines::new(&block.text),
                    claims: false,
                    introduces: false,
                };
                out.push_str(&words.check(&mut finder, ledger));
                continue;
            }
            Kind::Code | Kind::Blank => {}
            Kind::Quote => {
                let before = all
                    .iter()
                    .take(n)
                    .rev()
                    .find(|block| block.kind != Kind::Blank);
                let said = block_quotation(block, (before, next), &mut finder, ledger);
                out.push_str(&said.unwrap_or_else(|| block.text.clone()));
                continue;
            }
            Kind::Text | Kind::Row => {
                let introduces =
                    next.is_some_and(|next| next.kind != Kind::Heading && next.line > block.line);
                let lines = Lines::new(&block.text);
                let words = Words {
                    block,
                    lines,
                    claims: !missing,
                    introduces,
                };
                out.push_str(&words.check(&mut finder, ledger));
                continue;
            }
        }
        out.push_str(&block.text);
    }
    out
}

fn cited(text: &str) -> Vec<usize> {
    let mut all: Vec<usize> = text.chars().filter_map(marked).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn words(text: &str) -> usize {
    text.split_whitespace()
        .filter(|word| word.contains(char::is_alphanumeric))
        .count()
}

/// A paragraph, an item or a row.
struct Words<'a> {
    block: &'a Block,
    lines: Lines,
    /// Whether what is said here has to be shown.
    claims: bool,
    /// Whether something follows that a last line with a colon may introduce.
    introduces: bool,
}

impl Words<'_> {
    fn check(&self, finder: &mut Finder<'_>, ledger: &mut Ledger) -> String {
        let text = self.block.text.as_str();
        let end = text.trim_end().len();
        let body = text.get(..end).unwrap_or_default();
        let code: Vec<Range<usize>> = code::ranges(body)
            .into_iter()
            .filter(|span| !is_quotation(body.get(span.clone()).unwrap_or_default()))
            .collect();
        let quoted = quotations(body, &code);
        let row = self.block.kind == Kind::Row;
        let parts = self.sentences(body, &quoted);
        let mut edits = Vec::new();
        let mut quoted = quoted.into_iter().peekable();
        for sentence in parts {
            let said = body.get(sentence.clone()).unwrap_or_default();
            let sources = cited(said);
            while let Some(quote) = quoted.next_if(|quote| quote.open.start < sentence.end) {
                self.quote(quote, (&sentence, &sources), finder, (ledger, &mut edits));
            }
            if self.is_claim(said, sentence.end == end) {
                ledger.figures.claims += 1;
                if sources.is_empty() {
                    ledger.figures.uncited += 1;
                    let trimmed = sentence.start
                        + said
                            .trim_end_matches(|c: char| c.is_whitespace() || (row && c == '|'))
                            .len();
                    edits.push(Edit {
                        range: trimmed..trimmed,
                        by: format!(" {UNCITED}"),
                    });
                } else {
                    ledger.figures.cited += 1;
                }
            }
        }
        edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
        apply(body, edits) + text.get(end..).unwrap_or_default()
    }

    /// A row or a heading is one sentence; elsewhere none ends inside a quotation.
    fn sentences(&self, body: &str, quoted: &[Quoted]) -> Vec<Range<usize>> {
        if matches!(self.block.kind, Kind::Row | Kind::Head | Kind::Heading) {
            return std::iter::once(0..body.len()).collect();
        }
        let closed = quoted.iter().filter(|quote| quote.close.is_some());
        let whole: Vec<Range<usize>> = closed.map(|quote| quote.inner.clone()).collect();
        sentences(body, self.block.prefix.min(body.len()), &whole)
    }

    fn quote(
        &self,
        quote: Quoted,
        (sentence, sources): (&Range<usize>, &[usize]),
        finder: &mut Finder<'_>,
        (ledger, edits): (&mut Ledger, &mut Vec<Edit>),
    ) {
        let text = self.block.text.as_str();
        let end = if quote.close.is_some() {
            quote.inner.end
        } else {
            sentence.end.max(quote.inner.start)
        };
        let said = text.get(quote.inner.start..end).unwrap_or_default();
        // In parts that are torn apart, each part would be too short.
        let torn = quote.is_torn(text) && words(said) > 1;
        if !is_long(said) && !torn {
            return;
        }
        ledger.figures.quotes += 1;
        let Some(why) = finder.refusal(said, sources) else {
            return;
        };
        let line = self.block.line + self.lines.at(quote.open.start) - 1;
        ledger.refuse(RefusedKind::Quotation, said, line, why);
        edits.push(Edit {
            range: quote.open,
            by: String::new(),
        });
        let note = format!(" {NOT_FOUND}");
        let behind = said.trim_end().len() + quote.inner.start;
        edits.push(Edit {
            range: quote.close.unwrap_or(behind..behind),
            by: note,
        });
    }

    fn is_claim(&self, said: &str, last: bool) -> bool {
        let bare = said
            .trim()
            .trim_end_matches(|c: char| marked(c).is_some() || " *_\"”)".contains(c));
        let question = bare.ends_with(['?', '？']);
        let lead_in =
            last && self.introduces && bare.ends_with([':', '：']) && words(bare) <= MAX_LEAD_IN;
        let dense = bare
            .chars()
            .filter(|c| ('\u{2e80}'..='\u{d7ff}').contains(c))
            .count();
        // A name and a figure in two cells say something.
        let fewest = MIN_WORDS - usize::from(self.block.kind == Kind::Row);
        self.claims && !question && !lead_in && (words(bare) >= fewest || dense >= 2 * MIN_WORDS)
    }
}

/// A block quotation that does not stand where it is said to, as plain text with a note; nothing if it does.
fn block_quotation(
    block: &Block,
    (before, after): (Option<&Block>, Option<&Block>),
    finder: &mut Finder<'_>,
    ledger: &mut Ledger,
) -> Option<String> {
    let bare = |line: &str| {
        let words = line.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
        words
            .get(item(words)..)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let lines: Vec<String> = block.text.lines().map(bare).collect();
    let mut sources = cited(&block.text);
    if let Some(before) = before.filter(|block| block.kind == Kind::Text) {
        let all = sentences(&before.text, before.prefix.min(before.text.len()), &[]);
        let last = all.last().and_then(|range| before.text.get(range.clone()));
        sources.extend(cited(last.unwrap_or_default()));
    }
    if let Some(after) =
        after.filter(|block| block.kind == Kind::Text && is_attribution(&block.text))
    {
        sources.extend(cited(&after.text));
    }
    let attributed = lines.len() > 1 && lines.last().is_some_and(|line| is_attribution(line));
    let quoted = lines
        .get(..lines.len() - usize::from(attributed))
        .unwrap_or_default();
    let mut refused = false;
    for paragraph in quoted.split(|line| line.is_empty()) {
        let said = paragraph.join(" ");
        let said = said.trim_matches(|c: char| marked(c).is_some() || "\"“”„«» ".contains(c));
        if is_long(said) {
            ledger.figures.quotes += 1;
            if let Some(why) = finder.refusal(said, &sources) {
                ledger.refuse(RefusedKind::Quotation, said, block.line, why);
                refused = true;
            }
        }
    }
    refused.then(|| unquoted(&block.text))
}

fn is_attribution(line: &str) -> bool {
    let line = line.trim();
    let cites = !line.is_empty() && !line.contains(char::is_alphanumeric);
    cites || (line.starts_with(['—', '–', '-', '―']) && words(line) <= MAX_ATTRIBUTION)
}

fn unquoted(text: &str) -> String {
    let end = text.trim_end().len();
    let mut out = String::with_capacity(text.len() + NOT_FOUND.len());
    for line in text.get(..end).unwrap_or_default().split_inclusive('\n') {
        let words = line.trim_start_matches([' ', '\t']);
        let kept = words.get(item(words)..).unwrap_or_default();
        let mark = words.get(..words.len() - kept.len()).unwrap_or_default();
        let rest = kept.trim_start_matches(['>', ' ']);
        out.push_str(line.get(..indent(line)).unwrap_or_default());
        out.push_str(if kept.starts_with('>') { mark } else { "" });
        out.push_str(if kept.starts_with('>') { rest } else { words });
    }
    // A fence that was inside the quotation must not open one now.
    let mut out = out.replace("```", "").replace("~~~", "");
    out.push_str(&format!(" {NOT_FOUND}"));
    out + text.get(end..).unwrap_or_default()
}
