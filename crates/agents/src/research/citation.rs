//! The gate for citations: what a writer cites is resolved here, and what was not read does not pass.
//!
//! The research agent calls [`check`] on the writer's text. The writer cites ids (`[src-1a2b3c4d]`); numbers, the list
//! of references and the marks are made by code. Pure and bounded; it must not ask a model, and it must not judge
//! whether a true quotation was understood.
//!
//! # Layout, in the order of work
//! - `plain`: what is hidden becomes visible or goes: characters, entities, tags, comments. `code`: where code stands.
//! - `lists`: lists of references that the writer made itself are cut out.
//! - `links`: links become their text and what they lead to. `shadow`, `find`: ids, numbers and addresses, however
//!   they are written. `known`: what the library has. `mark`: known ones become marks, the others go.
//! - `styles`, `author`: other ways to cite: footnotes, keys, numbers of works, authors and years.
//! - `block`, `sentence`, `quote`, `claim`: quotations are looked up, claims without a citation are marked.

mod author;
mod block;
mod claim;
mod code;
mod edit;
mod find;
mod known;
mod links;
mod lists;
mod mark;
mod plain;
mod quote;
mod sentence;
mod shadow;
mod styles;

#[cfg(test)]
mod tests;

use paraph_gateway::Shown;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

use super::source::Library;
use known::Known;

/// The most bytes of a text that are checked; what comes after is left out.
const MAX_TEXT: usize = 1 << 20;
/// The most refusals that are told one by one. All are counted.
const MAX_TOLD: usize = 1_000;
/// The most characters of a refused thing that are repeated.
const MAX_WHAT: usize = 200;

/// What stands behind a sentence that cites nothing.
pub(crate) const UNCITED: &str = "[uncited]";
/// What stands behind a quotation that is in none of the sources cited with it.
pub(crate) const NOT_FOUND: &str = "[quotation not found in the source]";
/// What stands behind an author and a year that no cited source has.
pub(crate) const NO_SUCH_WORK: &str = "[citation not found in the sources]";

/// A text whose citations were checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    /// The text, Markdown, with `[n]` where a source is cited and marks where something is missing.
    pub body: String,
    /// The cited sources by their numbers, from 1 on without gaps, in the order of their first use.
    pub references: Vec<Reference>,
    /// What was taken out or marked, in the order of the rules; at most a thousand.
    pub refused: Vec<Refused>,
    /// How much was claimed, cited, quoted and refused.
    pub figures: CitationFigures,
}

/// A line of the list of references.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// The number by which the text cites it.
    pub n: usize,
    /// The source's id.
    pub id: String,
    /// Its address.
    pub url: String,
    /// Its title; empty if none is known.
    pub title: String,
    /// When it was read first, as RFC 3339 in UTC.
    pub fetched_at: String,
    /// The SHA-256 of the text that was read first, in 64 hexadecimal digits.
    pub sha256: String,
}

/// What kind of thing was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusedKind {
    /// An id of a source that was not fetched.
    Id,
    /// A number or footnote that the writer made up.
    Number,
    /// An address, a DOI or an arXiv id that was not fetched.
    Address,
    /// A list of references of the writer's own.
    List,
    /// An author and a year that stand in no cited source.
    AuthorYear,
    /// A quotation that is not in a source cited with it.
    Quotation,
    /// Text behind the limit of what is checked.
    Length,
}

/// Something that did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// What kind of thing it is.
    pub kind: RefusedKind,
    /// The thing itself, shortened and fit to be shown on one line. It may be an address that nobody has read.
    pub what: String,
    /// The line of the checked text, from 1 on.
    pub place: usize,
    /// Why it did not pass.
    pub why: String,
}

/// What [`check`] counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CitationFigures {
    /// Sentences that claim something.
    pub claims: usize,
    /// Claims with a citation that passed.
    pub cited: usize,
    /// Claims without one.
    pub uncited: usize,
    /// Quotations of four words or more.
    pub quotes: usize,
    /// Quotations that were not found in what is cited with them.
    pub quotes_refused: usize,
    /// Ids, numbers, addresses, lists and author-year citations that did not pass.
    pub fabricated_refused: usize,
}

/// What the rules write down while they go through a text.
#[derive(Default)]
struct Ledger {
    refused: Vec<Refused>,
    figures: CitationFigures,
}

impl Ledger {
    fn refuse(&mut self, kind: RefusedKind, what: &str, place: usize, why: impl Into<String>) {
        match kind {
            RefusedKind::Quotation => self.figures.quotes_refused += 1,
            RefusedKind::Length => {}
            _ => self.figures.fabricated_refused += 1,
        }
        if self.refused.len() < MAX_TOLD {
            self.refused.push(Refused {
                kind,
                what: Shown::field(what.trim(), MAX_WHAT).text,
                place,
                why: why.into(),
            });
        }
    }
}

/// Resolves and checks the citations of a text against what was fetched.
///
/// - Ids that were fetched become numbers, in the order of their first use; all other ids, numbers and addresses go.
///   An address that was fetched is a citation of it. A list of references that the writer made goes.
/// - A quotation of four words or more has to stand in a source that is cited in its sentence (a block quotation: in
///   it, in the sentence before, or in the line of attribution behind it). If not, its marks are taken away and a
///   note is put behind it.
/// - A sentence that claims something and cites nothing is marked `[uncited]`. Headings, questions, code, heads of
///   tables and the section "What is missing" claim nothing.
///
/// ```
/// use paraph_agents::{Library, Source, SourceKind, check_citations};
///
/// let read = (SourceKind::Page, "Reranking helps when the first stage is cheap.");
/// let source = Source::new("https://example.org/", "Reranking", read, "2026-01-31T10:00:00Z");
/// let text = format!("It helps \"when the first stage is cheap\" [{}], says https://made.up/.", source.id);
/// let checked = check_citations(&text, &Library(vec![source]));
/// assert_eq!(checked.body, "It helps \"when the first stage is cheap\" [1], says.");
/// assert_eq!(checked.figures.fabricated_refused, 1);
/// ```
pub fn check(text: &str, library: &Library) -> Checked {
    let mut ledger = Ledger::default();
    let known = Known::new(library);
    let text = plain::plain(unfenced(bounded(text, &mut ledger)));
    let (text, labels) = lists::cut(&text, &mut ledger);
    let text = resolved(text, &labels, &known, &mut ledger);
    let text = styles::check(&text, library, &mut ledger);
    let text = author::check(&text, library, &mut ledger);
    let text = claim::check(&text, library, &mut ledger);
    let (body, references) = mark::number(&text, library);
    Checked {
        body: trimmed(&body).to_owned(),
        references,
        refused: ledger.refused,
        figures: ledger.figures,
    }
}

/// A text out of the fence that some models put around all they write: it would count as code, in which nothing is
/// claimed.
fn unfenced(text: &str) -> &str {
    let whole = text.trim();
    let inside = whole.split_once('\n').and_then(|(first, rest)| {
        let mark = code::fence(first)?;
        let info = first.trim_start_matches(mark.0).trim();
        let is_text =
            ["", "markdown", "md", "text", "txt"].contains(&info.to_ascii_lowercase().as_str());
        let (inside, last) = rest.rsplit_once('\n').unwrap_or(("", rest));
        let ends = code::closes(last, mark) && !inside.lines().any(|line| code::closes(line, mark));
        (is_text && ends).then_some(inside)
    });
    inside.unwrap_or(text)
}

/// Without blanks around it, but for those before backticks: moved to the margin, these could begin code.
fn trimmed(body: &str) -> &str {
    let body = body.trim_matches('\n').trim_end();
    let first = body.trim_start();
    if first.starts_with(['`', '~']) {
        body
    } else {
        first
    }
}

/// How often a text is gone through, should taking something out of it have changed what is code.
const MAX_ROUNDS: usize = 4;

/// The text without links and tags, and with marks for what was fetched.
fn resolved(
    mut text: String,
    labels: &HashMap<String, String>,
    known: &Known,
    ledger: &mut Ledger,
) -> String {
    let mut round = |text: &str| {
        let text = links::unfold(&plain::untagged(text), labels);
        mark::mark(&text, known, ledger)
    };
    for _ in 0..MAX_ROUNDS {
        let next = round(&text);
        if next == text {
            return text;
        }
        text = next;
    }
    // It was made to change again and again: then nothing in it is code.
    round(&text.replace(['`', '~'], ""))
}

/// A text without any citation or address in it, for what is shown beside a checked text.
pub(crate) fn without_citations(text: &str) -> String {
    let nothing = Library::default();
    let mut ledger = Ledger::default();
    let text = plain::plain(bounded(text, &mut ledger));
    let text = resolved(text, &HashMap::new(), &Known::new(&nothing), &mut ledger);
    let (text, _) = mark::number(&text, &nothing);
    let without_stop = text.trim().trim_end_matches('.').is_empty();
    if without_stop {
        String::new()
    } else {
        text.trim().to_owned()
    }
}

fn bounded<'a>(text: &'a str, ledger: &mut Ledger) -> &'a str {
    let kept = text
        .get(..text.floor_char_boundary(MAX_TEXT))
        .unwrap_or_default();
    if kept.len() < text.len() {
        let why = format!("only the first {MAX_TEXT} bytes are checked; the rest is left out");
        let what = format!("{} bytes", text.len() - kept.len());
        ledger.refuse(
            RefusedKind::Length,
            &what,
            Lines::new(kept).at(kept.len()),
            why,
        );
    }
    kept
}

/// Where the lines of a text begin, to say in which one something is.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Lines {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines(breaks.map(|(at, _)| at).collect())
    }

    /// The number of the line in which a place is, from 1 on.
    fn at(&self, place: usize) -> usize {
        1 + self.0.partition_point(|end| *end < place)
    }
}
