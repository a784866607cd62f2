//! Where documents and their vectors are kept: the trait [`Corpus`], and what goes in and out.
//!
//! `ingest` writes, `retriever` reads, `calibrate` keeps its floors here. Implementations keep rows and know nothing of
//! ranking: all of them are ranked by the same code, in process, so that an answer does not depend on the database.

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::chunk::TEXT_FORM;
use crate::document::{Document, IssueRef};
use crate::error::Error;
use crate::floor::Floor;
use crate::vectors::Vectors;

/// The most documents of a batch or a page.
pub const MAX_BATCH: usize = 1_000;

/// What a corpus was made with. Vectors and floors of another cannot be used with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The embedder's name; none for a corpus that is searched by words only.
    pub model: Option<String>,
    /// How many numbers its vectors have; 0 without a model.
    pub dims: usize,
    /// The form of the texts, see [`TEXT_FORM`].
    pub text_form: u32,
}

impl Identity {
    /// Of a corpus that is searched by words only.
    pub fn lexical() -> Self {
        Identity {
            model: None,
            dims: 0,
            text_form: TEXT_FORM,
        }
    }

    /// Of a corpus whose chunks are embedded by this model, into vectors of so many numbers.
    pub fn embedded(model: &str, dims: usize) -> Self {
        Identity {
            model: Some(model.to_owned()),
            dims,
            text_form: TEXT_FORM,
        }
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.model {
            Some(model) => write!(f, "{model} ({} numbers)", self.dims)?,
            None => write!(f, "no embedding model")?,
        }
        write!(f, ", text form {}", self.text_form)
    }
}

/// A document, and the vectors of its chunks.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// As [`Document::tidied`] made it.
    pub document: Document,
    /// One for each of [`chunks`](crate::chunks), in order; none without a model, or before they are embedded.
    pub vectors: Vectors,
}

/// How far a repository was read, so that reading goes on from there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// `owner/name`, in lower case.
    pub repo: String,
    /// What was asked for, as whoever reads knows it again: another question begins anew.
    pub scope: String,
    /// All that changed before this time is there. RFC 3339.
    pub since: Option<String>,
    /// The newest change that was seen since; it becomes `since` when the last page is there.
    pub newest: Option<String>,
    /// The page to read next, in the source's own words; none when all was read.
    pub page: Option<String>,
    /// When the last page was read to its end. RFC 3339.
    pub finished_at: Option<String>,
}

/// Changes that are made together or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// What the vectors were made with. A corpus takes its first one for good, until it is cleared.
    pub identity: Identity,
    /// Documents that are new, or take the place of their older versions.
    pub put: Vec<Kept>,
    /// Documents that are no more.
    pub remove: Vec<IssueRef>,
    /// How far this has come.
    pub cursor: Option<Cursor>,
}

/// What is known of a document without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The issue's number.
    pub number: u64,
    /// [`Document::content_hash`].
    pub hash: [u8; 32],
}

/// What a corpus says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorpusState {
    /// Grows with every change, so that who has read it knows whether it is still the same.
    pub revision: u64,
    /// What it was made with; none while it is empty.
    pub identity: Option<Identity>,
    /// How many documents there are.
    pub documents: u64,
}

/// Documents by repository and number, with vectors; and the floors that were fitted on them.
///
/// Every implementation passes [`conformance`](crate::conformance). Names of repositories are compared in lower case.
pub trait Corpus: Send + Sync {
    /// What it says of itself, as of now.
    fn state(&self) -> BoxFuture<'_, Result<CorpusState, Error>>;

    /// Makes all changes of a batch, or none.
    ///
    /// # Errors
    /// [`Error::Identity`] if the corpus was made with something else; [`Error::Limit`] for more than [`MAX_BATCH`].
    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<(), Error>>;

    /// Documents in the order of their ids, those after `after`, at most `limit` (and at most [`MAX_BATCH`]).
    fn page<'a>(
        &'a self,
        after: Option<&'a IssueRef>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Kept>, Error>>;

    /// One document.
    fn get<'a>(&'a self, id: &'a IssueRef) -> BoxFuture<'a, Result<Option<Kept>, Error>>;

    /// What is there of a repository, by number.
    fn known<'a>(&'a self, repo: &'a str) -> BoxFuture<'a, Result<Vec<Known>, Error>>;

    /// How far each repository was read, by name.
    fn cursors(&self) -> BoxFuture<'_, Result<Vec<Cursor>, Error>>;

    /// Removes a repository with its cursor, or everything: then the corpus has no identity and no floors any more.
    fn clear<'a>(&'a self, repo: Option<&'a str>) -> BoxFuture<'a, Result<(), Error>>;

    /// Takes another identity: all vectors go, documents and cursors stay, and are searched by words until they are
    /// embedded again. Floors stay where they are, and do not fit any more.
    fn rebase(&self, identity: Identity) -> BoxFuture<'_, Result<(), Error>>;

    /// The floors that were fitted last.
    fn floors(&self) -> BoxFuture<'_, Result<Vec<Floor>, Error>>;

    /// Keeps floors in place of those that were there. This is no change of the corpus.
    fn keep_floors(&self, floors: Vec<Floor>) -> BoxFuture<'_, Result<(), Error>>;
}

/// What every implementation refuses of a batch before it changes anything.
///
/// # Errors
/// As [`Corpus::apply`].
pub fn check_batch(kept: Option<&Identity>, batch: &Batch) -> Result<(), Error> {
    let found = batch.put.len().max(batch.remove.len());
    if found > MAX_BATCH {
        return Err(Error::Limit {
            what: "documents in one batch".to_owned(),
            found,
            limit: MAX_BATCH,
        });
    }
    if let Some(kept) = kept.filter(|kept| **kept != batch.identity) {
        return Err(Error::Identity {
            kept: kept.to_string(),
            asked: batch.identity.to_string(),
        });
    }
    let dims = batch.identity.dims;
    let strange = batch.put.iter().find(|kept| {
        let has = kept.vectors.dims();
        !kept.vectors.is_empty() && has != dims
    });
    strange.map_or(Ok(()), |kept| {
        Err(Error::Vectors {
            problem: format!(
                "vectors of {} numbers where {dims} are kept",
                kept.vectors.dims()
            ),
        })
    })
}
