//! Why a corpus cannot be used, or cannot be asked.

use paraph_models::ModelError;

/// What is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that is none of a repository.
    #[error("`{repo}` is no repository: write owner/name")]
    Repo {
        /// As it was given, cut.
        repo: String,
    },
    /// An issue that no corpus takes.
    #[error("issue {document} cannot be kept: {problem}")]
    Document {
        /// Which one.
        document: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A line of a file that is no issue.
    #[error("line {line}: {problem}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A question that cannot be asked.
    #[error("this cannot be searched for: {problem}")]
    Query {
        /// What is wrong with it.
        problem: String,
    },
    /// The corpus was made with another embedding model or another form of text than what asks now.
    #[error(
        "the corpus was made with {kept}, and this asks with {asked}: their vectors cannot be compared. Use what it was \
         made with, or make its vectors anew (`paraph corpus refresh --reembed`)"
    )]
    Identity {
        /// What the corpus was made with.
        kept: String,
        /// What it is asked with.
        asked: String,
    },
    /// A floor that was fitted for something else.
    #[error(
        "the {kind} floor was fitted for {fitted}, and this is {found}: calibrate again (`paraph corpus calibrate`)"
    )]
    FloorOfAnother {
        /// `topical` or `duplicate`.
        kind: String,
        /// For what it was fitted.
        fitted: String,
        /// What it was asked about.
        found: String,
    },
    /// More than a corpus or a call takes.
    #[error("{what}: {found}, and the limit is {limit}")]
    Limit {
        /// What there is too much of.
        what: String,
        /// How much there is.
        found: usize,
        /// How much there may be.
        limit: usize,
    },
    /// The embedding model.
    #[error("the texts could not be embedded: {0}")]
    Embedding(#[from] ModelError),
    /// Vectors that do not fit what they were asked for.
    #[error("the embedding model answered with {problem}")]
    Vectors {
        /// What is wrong with them.
        problem: String,
    },
    /// Pools that no floor can be fitted on.
    #[error("this cannot be calibrated: {problem}")]
    Calibration {
        /// What is missing or wrong.
        problem: String,
    },
    /// What is kept of the corpus cannot be read.
    #[error("{place} cannot be read: {problem}")]
    Damaged {
        /// What it is.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Where issues come from.
    #[error("{0}")]
    Source(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Where the corpus is kept.
    #[error("{0}")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// An error of where a corpus is kept.
    pub fn store(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Error::Store(Box::new(error))
    }

    /// An error of where issues come from.
    pub fn source(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Error::Source(Box::new(error))
    }
}
