//! What the two databases have in common: statements with bound values, rows, and a transaction.
//!
//! All rules of this crate are written once, as code over [`Tx`] (`checkpoints.rs` and its neighbours); a
//! database brings statements to their answers and decides what becomes one transaction. Values are always
//! bound, never part of a statement's text.

use futures::future::BoxFuture;
use std::borrow::Cow;

/// A value bound to a statement, or found in a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Int(i64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

/// One statement. Its parameters are `$1`, `$2`, … in both databases.
#[derive(Clone, Debug)]
pub(crate) struct Statement<'a> {
    pub(crate) sql: &'static str,
    pub(crate) values: Vec<Cell<'a>>,
}

/// What a statement answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) rows: Vec<Row>,
    /// How many rows it wrote.
    pub(crate) written: u64,
}

/// One row, read by place. What is not of the expected type is a damaged row and an error, never a panic.
#[derive(Clone, Debug)]
pub(crate) struct Row(pub(crate) Vec<Cell<'static>>);

/// A transaction that somebody else begins and ends.
pub(crate) trait Tx: Send {
    /// Brings statements to their answers, in order. A database that is reached over a network sends them
    /// all before it waits for the first answer, so what depends on an answer belongs into a next call.
    fn all<'t>(
        &'t mut self,
        statements: Vec<Statement<'t>>,
    ) -> BoxFuture<'t, Result<Vec<Answer>, SqlError>>;
}

/// Why a database did not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SqlError {
    /// Another try may go better: locked, restarted, disconnected.
    #[error("{0}")]
    Transient(String),
    /// It will not: full, read-only, damaged, a mistake of ours.
    #[error("{0}")]
    Lasting(String),
}
