//! A list of issues as a source, and as lines of JSON: for corpora that are carried from place to place.
//!
//! The command line reads and writes them. A line that is none is an error with its number, and nothing is read in.

use std::collections::BTreeMap;

use futures::future::BoxFuture;

use crate::document::Document;
use crate::error::Error;
use crate::ingest::{IssueSource, Page, PageRequest};

/// How many issues a page has.
const PAGE: usize = 100;

/// Issues at hand, by repository, those that changed first coming first.
#[derive(Clone, Debug, Default)]
pub struct IssueList(BTreeMap<String, Vec<Document>>);

impl IssueList {
    /// Of documents in any order. Of two of one number the one that changed last is taken.
    pub fn new(documents: impl IntoIterator<Item = Document>) -> Self {
        let mut newest: BTreeMap<_, Document> = BTreeMap::new();
        for document in documents {
            let known = newest.get(&document.id());
            if known.is_none_or(|known| known.updated_at <= document.updated_at) {
                newest.insert(document.id(), document);
            }
        }
        let mut repos: BTreeMap<String, Vec<Document>> = BTreeMap::new();
        for (id, document) in newest {
            repos.entry(id.repo).or_default().push(document);
        }
        for documents in repos.values_mut() {
            documents.sort_by(|a, b| {
                a.updated_at
                    .cmp(&b.updated_at)
                    .then(a.number.cmp(&b.number))
            });
        }
        IssueList(repos)
    }

    /// Reads lines of JSON, one issue each; blank ones are skipped.
    ///
    /// ```
    /// use paraph_retrieval::IssueList;
    /// let line = r#"{"repo": "acme/boats", "number": 7, "title": "It sinks", "url": "https://example.org/7",
    ///     "updated_at": "2026-01-31T12:00:00Z"}"#.replace('\n', "");
    /// let list = IssueList::parse(&line)?;
    /// assert_eq!(list.repos().collect::<Vec<_>>(), ["acme/boats"]);
    /// # Ok::<(), paraph_retrieval::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Line`] with the first line that is no issue, and why.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut documents = Vec::new();
        for (place, line) in text.lines().enumerate() {
            let refuse = |problem: String| Error::Line {
                line: place + 1,
                problem,
            };
            if line.trim().is_empty() {
                continue;
            }
            let document: Document =
                serde_json::from_str(line).map_err(|e| refuse(e.to_string()))?;
            let document = document.tidied().map_err(|e| refuse(e.to_string()))?;
            documents.push(document);
        }
        Ok(IssueList::new(documents))
    }

    /// The repositories, in lower case, in order.
    pub fn repos(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// All issues.
    pub fn documents(&self) -> impl Iterator<Item = &Document> {
        self.0.values().flatten()
    }
}

impl IssueSource for IssueList {
    fn page<'a>(&'a self, request: &'a PageRequest) -> BoxFuture<'a, Result<Page, Error>> {
        let all = self
            .0
            .get(&request.repo.to_lowercase())
            .map_or(&[][..], Vec::as_slice);
        let since = request.since.as_deref().unwrap_or_default();
        let wanted: Vec<&Document> = all
            .iter()
            .filter(|document| document.updated_at.as_str() >= since)
            .collect();
        let number = request
            .page
            .as_deref()
            .and_then(|page| page.parse().ok())
            .unwrap_or(0_usize);
        let rest = wanted.get(number * PAGE..).unwrap_or_default();
        let page = Page {
            documents: rest
                .iter()
                .take(PAGE)
                .map(|document| (*document).clone())
                .collect(),
            gone: Vec::new(),
            next: (rest.len() > PAGE).then(|| (number + 1).to_string()),
        };
        Box::pin(std::future::ready(Ok(page)))
    }
}
