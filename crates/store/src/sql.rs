//! What the two databases have in common: statements with bound values, rows, and a transaction.
//!
//! All rules of this crate are written once, as code over [`Tx`] (`checkpoints.rs` and its neighbours); a
//! database brings statements to their answers and decides what becomes one transaction. Values are always
//! bound, never part of a statement's text.

use futures::future::BoxFuture;
use std::borrow::Cow;

/// A value bound to a statement, or found in a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Cell<'a> {
    #[default]
    Null,
    Int(i64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

/// One statement. Its parameters are `$1`, `$2`, … in both databases.
#[derive(Clone, Debug)]
pub(crate) struct Statement<'a> {
    pub(crate) sql: &'static str,
    /// The same in other words for Postgres, where its planner could take the common ones for the long way.
    postgres: Option<&'static str>,
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

    /// The question what time it is, by the clock that all who share the database go by: a statement whose answer
    /// is one number, of milliseconds since the Unix epoch, at the moment at which it is answered.
    fn clock(&self) -> &'static str;

    /// Hands over statements whose answers nobody needs. They are done before whatever follows, and before the
    /// transaction ends. A database that is reached over a network sends them with what follows: should one
    /// fail then, so does the whole work, which need not hear of it.
    fn later<'t>(
        &'t mut self,
        statements: Vec<Statement<'t>>,
    ) -> BoxFuture<'t, Result<(), SqlError>> {
        Box::pin(async move { self.all(statements).await.map(drop) })
    }
}

/// Why a database did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SqlError {
    /// Another try may go better: locked, restarted, disconnected.
    #[error("{0}")]
    Transient(String),
    /// It will not: full, read-only, damaged, a mistake of ours.
    #[error("{0}")]
    Lasting(String),
}

/// A cell that is not what its column holds: a damaged row. Whoever reads says which row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column} is {found}, not {wanted}")]
pub(crate) struct BadCell {
    /// From 0.
    pub(crate) column: usize,
    pub(crate) found: &'static str,
    pub(crate) wanted: &'static str,
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: &'static str, values: impl Into<Vec<Cell<'a>>>) -> Self {
        Statement {
            sql,
            postgres: None,
            values: values.into(),
        }
    }

    /// With these words on Postgres.
    pub(crate) fn or_on_postgres(self, sql: &'static str) -> Self {
        Statement {
            postgres: Some(sql),
            ..self
        }
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn postgres(&self) -> &'static str {
        self.postgres.unwrap_or(self.sql)
    }

    /// The same with values of its own. Long documents are packed, and so their own already.
    pub(crate) fn owned(self) -> Statement<'static> {
        Statement {
            sql: self.sql,
            postgres: self.postgres,
            values: self.values.into_iter().map(Cell::owned).collect(),
        }
    }
}

impl Cell<'_> {
    fn owned(self) -> Cell<'static> {
        match self {
            Cell::Null => Cell::Null,
            Cell::Int(n) => Cell::Int(n),
            Cell::Text(text) => Cell::Text(Cow::Owned(text.into_owned())),
            Cell::Bytes(bytes) => Cell::Bytes(Cow::Owned(bytes.into_owned())),
        }
    }
}

/// One statement's answer.
pub(crate) async fn one(tx: &mut dyn Tx, statement: Statement<'_>) -> Result<Answer, SqlError> {
    let mut answers = tx.all(vec![statement]).await?;
    answers.pop().ok_or_else(unanswered)
}

/// The next of several answers, for whoever takes them by name.
pub(crate) fn next(answers: &mut impl Iterator<Item = Answer>) -> Result<Answer, SqlError> {
    answers.next().ok_or_else(unanswered)
}

fn unanswered() -> SqlError {
    SqlError::Lasting("a statement was not answered".to_owned())
}

impl Answer {
    /// The first row, where there is at most one.
    pub(crate) fn first(self) -> Option<Row> {
        self.rows.into_iter().next()
    }
}

impl Row {
    fn cell(&self, column: usize) -> &Cell<'static> {
        self.0.get(column).unwrap_or(&Cell::Null)
    }

    fn bad<T>(&self, column: usize, wanted: &'static str) -> Result<T, BadCell> {
        let found = match self.cell(column) {
            Cell::Null => "null",
            Cell::Int(_) => "a number",
            Cell::Text(_) => "text",
            Cell::Bytes(_) => "bytes",
        };
        Err(BadCell {
            column,
            found,
            wanted,
        })
    }

    /// A cell by value; it is null from then on.
    pub(crate) fn take(&mut self, column: usize) -> Cell<'static> {
        self.0
            .get_mut(column)
            .map(std::mem::take)
            .unwrap_or_default()
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64, BadCell> {
        match self.cell(column) {
            Cell::Int(n) => Ok(*n),
            _ => self.bad(column, "a number"),
        }
    }

    /// A number that is never below 0: a time, a count, an epoch.
    pub(crate) fn unsigned(&self, column: usize) -> Result<u64, BadCell> {
        u64::try_from(self.int(column)?).or_else(|_| self.bad(column, "a number from 0"))
    }

    pub(crate) fn opt_int(&self, column: usize) -> Result<Option<i64>, BadCell> {
        match self.cell(column) {
            Cell::Null => Ok(None),
            _ => self.int(column).map(Some),
        }
    }

    pub(crate) fn text(&self, column: usize) -> Result<&str, BadCell> {
        match self.cell(column) {
            Cell::Text(text) => Ok(text),
            _ => self.bad(column, "text"),
        }
    }

    pub(crate) fn opt_text(&self, column: usize) -> Result<Option<&str>, BadCell> {
        match self.cell(column) {
            Cell::Null => Ok(None),
            _ => self.text(column).map(Some),
        }
    }

    pub(crate) fn opt_bytes(&self, column: usize) -> Result<Option<&[u8]>, BadCell> {
        match self.cell(column) {
            Cell::Null => Ok(None),
            Cell::Bytes(bytes) => Ok(Some(bytes)),
            _ => self.bad(column, "bytes"),
        }
    }

    /// Text that reads as an id, a status or the like.
    pub(crate) fn parsed<T: std::str::FromStr>(
        &self,
        column: usize,
        wanted: &'static str,
    ) -> Result<T, BadCell> {
        self.text(column)?
            .parse()
            .or_else(|_| self.bad(column, wanted))
    }

    pub(crate) fn opt_parsed<T: std::str::FromStr>(
        &self,
        column: usize,
        wanted: &'static str,
    ) -> Result<Option<T>, BadCell> {
        match self.cell(column) {
            Cell::Null => Ok(None),
            _ => self.parsed(column, wanted).map(Some),
        }
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Cell::Text(text.into())
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Cell::Text(text.into())
    }
}

impl<'a> From<&'a [u8]> for Cell<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Cell::Bytes(bytes.into())
    }
}

impl From<Vec<u8>> for Cell<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Cell::Bytes(bytes.into())
    }
}

impl From<i64> for Cell<'_> {
    fn from(n: i64) -> Self {
        Cell::Int(n)
    }
}

/// Times and counts, which never come near the end; one that did would stay there.
impl From<u64> for Cell<'_> {
    fn from(n: u64) -> Self {
        Cell::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}
