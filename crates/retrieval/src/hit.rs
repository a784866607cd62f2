//! What is asked of a corpus, and what it answers.
//!
//! Plain data; `retriever` answers, `floor` judges the answers.

use serde::Serialize;

use crate::chunk::{Chunk, embedded};
use crate::document::{Document, IssueRef};
use crate::error::Error;

/// How many hits a query wants if it does not say.
pub const DEFAULT_K: usize = 3;

/// The most hits of a query.
pub const MAX_K: usize = 100;

/// How much of a query is read, in characters.
const MAX_QUERY: usize = 65_536;

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// A few words, or a whole issue: its title in the first line, and below it what else it says.
    pub text: String,
    /// How many hits are wanted, 1 to [`MAX_K`].
    pub k: usize,
    /// Issues that are not to be found: the one that is being looked at. A document of another repository with the same
    /// number and title as the query is that issue too, from before its repository was renamed.
    pub exclude: Vec<IssueRef>,
    /// Only issues of these repositories.
    pub repos: Option<Vec<String>>,
    /// Only issues that are open.
    pub open_only: bool,
    /// How many chunks of one issue may be found; 1 finds related issues, more find more to cite.
    pub chunks_per_issue: usize,
}

impl Query {
    /// Looks for a text, in everything.
    pub fn new(text: impl Into<String>) -> Self {
        Query {
            text: text.into(),
            k: DEFAULT_K,
            exclude: Vec::new(),
            repos: None,
            open_only: false,
            chunks_per_issue: 1,
        }
    }

    /// Looks for issues like this one, which itself is left out.
    pub fn of(document: &Document) -> Self {
        Query {
            exclude: vec![document.id()],
            ..Query::new(embedded(&document.title, &document.text()))
        }
    }

    /// # Errors
    /// [`Error::Query`] with what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |problem: &str| {
            Err(Error::Query {
                problem: problem.to_owned(),
            })
        };
        if self.text.trim().is_empty() {
            return refuse("the text is empty");
        }
        if !(1..=MAX_K).contains(&self.k) {
            return refuse("between 1 and 100 hits can be asked for");
        }
        if self.chunks_per_issue == 0 {
            return refuse("of each issue at least one chunk is shown");
        }
        Ok(())
    }

    /// As much of the text as is read.
    pub(crate) fn read(&self) -> &str {
        head(self.text.trim(), MAX_QUERY)
    }

    /// Its first line, which an issue's title is.
    pub(crate) fn title(&self) -> &str {
        self.read().lines().next().unwrap_or_default()
    }
}

/// At most so many characters of a text.
pub(crate) fn head(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((at, _)) => text.get(..at).unwrap_or(text),
        None => text,
    }
}

/// A chunk that was found, with all that speaks for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// What was found.
    pub chunk: Chunk,
    /// By this hits are ordered: `cosine`, `lexical` and what the titles have in common, added up.
    pub fused: f64,
    /// How close the meaning of the issue's closest chunk is, -1 to 1; none if nothing was embedded.
    pub cosine: Option<f64>,
    /// BM25 of the issue, title and text together, the title counting three times.
    pub bm25: f64,
    /// The same as a share of what the query itself would score, 0 to 1: comparable between queries.
    pub lexical: f64,
    /// The issue's rank by its words, from 1; none if it shares none.
    pub lexical_rank: Option<usize>,
    /// The issue's rank by meaning, from 1.
    pub dense_rank: Option<usize>,
    /// Rare identifiers and errors that stand in the query and in the issue.
    pub shared: Vec<String>,
    /// Whether words speak for it too: among the first three by words, or with something in `shared`.
    pub agrees: bool,
    /// How far [`Hit::relevance`] lies above that of the next issue, by whatever measure there is.
    pub margin: f64,
}

impl Hit {
    /// What floors are on: the cosine, or `lexical` where nothing was embedded.
    pub fn relevance(&self) -> f64 {
        self.cosine.unwrap_or(self.lexical)
    }

    /// Which issue it is of.
    pub fn issue(&self) -> IssueRef {
        IssueRef::new(&self.chunk.repo, self.chunk.number)
    }
}
