//! The documents in memory, and which of their passages fit a query best.
//!
//! Passages are ranked by Okapi BM25 over the words that they have in common with the query; the title of a document
//! counts with each of its passages. The order is stable: equal ones stand as their documents do.

use std::collections::HashMap;
use std::ops::Range;

use super::folder::{LeftOut, Reason};
use super::passage::passages;
use crate::page::{readable_html, readable_text};
use crate::said::cut;
use paraph_retrieval::{Bm25, wanted, words};

/// What an address of a document begins with.
pub(super) const SCHEME: &str = "local:";

/// The most characters of a title.
const MAX_TITLE: usize = 300;

/// A document.
pub(super) struct Document {
    pub(super) url: String,
    pub(super) title: String,
    pub(super) text: String,
}

/// A passage that fits.
pub(super) struct Fit<'i> {
    pub(super) document: &'i Document,
    pub(super) content: &'i str,
    pub(super) score: f64,
}

struct Passage {
    document: usize,
    range: Range<usize>,
}

/// Documents and the words of their passages.
#[derive(Default)]
pub(super) struct Index {
    documents: Vec<Document>,
    by_url: HashMap<String, usize>,
    passages: Vec<Passage>,
    words: Bm25,
}

impl Index {
    /// Of paths and texts. What has no text is left out, and so is a path that was there before.
    pub(super) fn of(files: Vec<(String, String)>, left_out: &mut LeftOut) -> Index {
        let mut index = Index::default();
        for (path, text) in files {
            let document = document(&path, &text);
            if document.text.is_empty() {
                left_out.add(Reason::Empty, &path);
            } else if index.by_url.contains_key(&document.url) {
                left_out.add(Reason::Twice, &path);
            } else {
                index.add(document);
            }
        }
        index
    }

    pub(super) fn documents(&self) -> &[Document] {
        &self.documents
    }

    pub(super) fn by_url(&self, url: &str) -> Option<&Document> {
        self.documents.get(*self.by_url.get(url)?)
    }

    fn add(&mut self, document: Document) {
        let number = self.documents.len();
        let title = words(&document.title);
        for range in passages(&document.text) {
            let own = words(document.text.get(range.clone()).unwrap_or_default());
            self.words.add(own.into_iter().chain(title.iter().cloned()));
            self.passages.push(Passage {
                document: number,
                range,
            });
        }
        self.by_url.insert(document.url.clone(), number);
        self.documents.push(document);
    }

    /// The passages that fit best, the best one first: one of each document, and only if too few documents fit,
    /// further ones of the same.
    pub(super) fn search(&self, query: &str, most: usize) -> Vec<Fit<'_>> {
        let ranked = self.ranked(query);
        let mut shown = vec![false; self.documents.len()];
        let (mut first, mut further) = (Vec::new(), Vec::new());
        for fit in ranked
            .iter()
            .filter_map(|(at, score)| self.fit(*at, *score))
        {
            let (number, fit) = fit;
            match shown.get_mut(number) {
                Some(known) if !*known => {
                    *known = true;
                    first.push(fit);
                }
                _ if further.len() < most => further.push(fit),
                _ => {}
            }
            if first.len() >= most {
                break;
            }
        }
        let missing = most.saturating_sub(first.len());
        first.extend(further.into_iter().take(missing));
        first
    }

    fn fit(&self, passage: u32, score: f64) -> Option<(usize, Fit<'_>)> {
        let passage = self.passages.get(passage as usize)?;
        let document = self.documents.get(passage.document)?;
        let content = document.text.get(passage.range.clone())?;
        let fit = Fit {
            document,
            content,
            score,
        };
        Some((passage.document, fit))
    }

    fn ranked(&self, query: &str) -> Vec<(u32, f64)> {
        let query = wanted(&readable_text(query));
        let scores = self
            .words
            .scores(query.iter().map(|word| (word.as_str(), 1.0)));
        let passages = (0_u32..).zip(scores);
        let mut ranked: Vec<_> = passages.filter(|(_, score)| *score > 0.0).collect();
        ranked.sort_by(|(a, of_a), (b, of_b)| of_b.total_cmp(of_a).then(a.cmp(b)));
        ranked
    }
}

fn document(path: &str, raw: &str) -> Document {
    let lower = path.to_ascii_lowercase();
    let (title, text) = match lower.ends_with(".html") || lower.ends_with(".htm") {
        true => readable_html(raw),
        false => (None, readable_text(raw)),
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    let title = title.or_else(|| heading(&text));
    let title = title.unwrap_or_else(|| readable_text(name));
    Document {
        url: url(path),
        title: cut(title, MAX_TITLE),
        text,
    }
}

/// The address of a path: whatever could mean something else in an address is written in percent.
fn url(path: &str) -> String {
    let mut url = String::from(SCHEME);
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => url.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => url.push(char::from(byte)),
            byte => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

/// The first heading: after `#`, or a line that is underlined. What stands in a fence or in a head of settings between
/// `---` is none.
fn heading(text: &str) -> Option<String> {
    let mut before = "";
    let mut inside: Option<&str> = None;
    for (number, line) in text.lines().map(str::trim).enumerate() {
        if let Some(mark) = inside {
            if line.starts_with(mark) {
                inside = None;
                before = "";
            }
            continue;
        }
        let marked = line.trim_start_matches('#');
        let depth = line.len() - marked.len();
        let said = marked.trim_end_matches('#').trim();
        if (1..=6).contains(&depth) && marked.starts_with([' ', '\t']) && !said.is_empty() {
            return Some(said.to_owned());
        }
        if is_rule(line) && !before.is_empty() {
            return Some(before.to_owned());
        }
        inside = ["```", "~~~"]
            .into_iter()
            .find(|mark| line.starts_with(mark));
        if number == 0 && line == "---" {
            inside = Some("---");
        }
        before = if is_rule(line) { "" } else { line };
    }
    None
}

/// A line of one mark, as it stands below headings.
fn is_rule(line: &str) -> bool {
    let mut marks = line.chars();
    let first = marks.next().filter(|mark| "=-~^*+#".contains(*mark));
    line.len() >= 3 && first.is_some_and(|first| marks.all(|mark| mark == first))
}
