//! Why a store cannot be opened, or cannot do what it was asked.
//!
//! Opening answers with [`Error`]; the traits of the engine answer with theirs, which carries one of these
//! in [`paraph_graph::Error::Store`] where it is about more than one checkpoint.

/// What is wrong with a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address of a store is not of a form that is known.
    #[error("`{url}` is no store: {why} (sqlite://PATH, postgres://…, or memory:)")]
    Url {
        /// As it was given, without a password.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The file or the server cannot be used.
    #[error("the store {place} cannot be opened: {why}")]
    Open {
        /// The path, or the server without a password.
        place: String,
        /// The system's or the database's words, and what to do where that is known.
        why: String,
    },
    /// A newer version of this program wrote the store.
    #[error(
        "the store {place} has format {found}, and this version (paraph {version}) knows formats up to {known}: \
         use the version that wrote it or a newer one, or restore the backup that its `store migrate` made", version = env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// The path, or the server without a password.
        place: String,
        /// The format of the store.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// The encryption key is wrong or missing, or there should be none.
    #[error(transparent)]
    Key(crate::seal::KeyMismatch),
    /// A row cannot be read.
    #[error("{place} cannot be read: {why}")]
    Damaged {
        /// Table and row in words.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// The database did not do what it was asked.
    #[error("{0}")]
    Database(String),
}

/// That a row cannot be read, as the engine's traits answer it.
pub(crate) fn damaged(place: impl Into<String>, why: impl Into<String>) -> paraph_graph::Error {
    paraph_graph::Error::store(Error::Damaged {
        place: place.into(),
        why: why.into(),
    })
}
