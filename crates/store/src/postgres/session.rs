//! A transaction on one connection: statements are prepared once per connection, and sent without waiting for
//! one another.
//!
//! Made by `lane.rs` for writes and by `reads.rs` for reads. What begins a transaction travels with its first
//! statements, and what nobody waits for with the next ones or with the end, so that neither costs time of
//! its own.

use super::{
    cell::{Bound, Found},
    fault::sql_error,
};
use crate::sql::{Answer, Cell, Row, SqlError, Statement, Tx};
use futures::{
    StreamExt,
    future::{BoxFuture, poll_fn},
};
use std::{pin::pin, task::Poll};
use tokio_postgres::{error::SqlState, types::Type};

/// How many statements are under way at a time.
const WIDEST: usize = 256;

/// A transaction, or the beginning of one.
pub(super) struct Session<'c> {
    client: &'c deadpool_postgres::Client,
    /// What goes before the next statements.
    before: Vec<Before>,
    /// Whether anything was sent.
    begun: bool,
    /// Whether something failed that goes before statements.
    torn: bool,
}

/// What goes before statements.
enum Before {
    /// A command without values.
    Command(&'static str),
    /// A statement of this database alone.
    Own(Statement<'static>),
    /// A statement of a work that does not wait for it.
    Later(Statement<'static>),
}

impl<'c> Session<'c> {
    pub(super) fn new(client: &'c deadpool_postgres::Client) -> Self {
        Session {
            client,
            before: Vec::new(),
            begun: false,
            torn: false,
        }
    }

    /// Sends a command with the next statements.
    pub(super) fn command(&mut self, command: &'static str) {
        self.before.push(Before::Command(command));
    }

    /// Sends a statement with the next ones; its answer is nobody's concern, unless it fails.
    pub(super) fn own(&mut self, statement: Statement<'static>) {
        self.before.push(Before::Own(statement));
    }

    /// Whether anything was sent.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// Whether nothing was sent, and no work waits for anything to be.
    pub(super) fn is_idle(&self) -> bool {
        let waits = |before: &Before| matches!(before, Before::Later(_));
        !self.begun && !self.before.iter().any(waits)
    }

    /// Whether something failed that another work may have handed over, so that it is not this one's fault.
    pub(super) fn is_torn(&self) -> bool {
        self.torn
    }

    /// Drops what the newest work handed over and is not sent yet.
    pub(super) fn forget_later(&mut self) {
        while let Some(Before::Later(_)) = self.before.last() {
            self.before.pop();
        }
    }

    /// Sends all that is left and the last command, and waits for the answers.
    pub(super) async fn end(&mut self, command: &'static str) -> Result<(), tokio_postgres::Error> {
        self.command(command);
        self.send(Vec::new()).await.map(|_| ())
    }

    /// Sends the last command and does not wait: the connection takes commands in their order.
    pub(super) async fn leave(&self, command: &'static str) {
        let mut last = pin!(self.client.batch_execute(command));
        poll_fn(|cx| {
            let _ = last.as_mut().poll(cx);
            Poll::Ready(())
        })
        .await;
    }

    async fn send(
        &mut self,
        statements: Vec<Statement<'_>>,
    ) -> Result<Vec<Answer>, tokio_postgres::Error> {
        self.begun = true;
        let mut before = std::mem::take(&mut self.before);
        let client = self.client;
        // What has to be prepared waits for the server; what begins the transaction has to come first all the same.
        let mut all: Vec<&Statement<'_>> = before.iter().filter_map(Before::statement).collect();
        all.extend(&statements);
        let prepared = match prepare(client, all).await {
            Ok(prepared) => prepared,
            // The work before may have failed, and the server takes nothing until that is rolled back. And
            // what parts the works must be sent whatever comes of these: without it the next ones would
            // stand alone, or take back what is not theirs.
            Err(why) => {
                let sent = one_by_one(client, std::mem::take(&mut before)).await;
                self.torn |= sent.is_err();
                // If it was this failure that the transaction came to grief by, it is the one to tell.
                sent.map_err(|e| if is_aborted(&e) { why } else { e })?;
                prepare(client, statements.iter().collect()).await?
            }
        };
        let mut prepared = prepared.into_iter();
        let mut under_way: Vec<BoxFuture<'_, Result<Answer, tokio_postgres::Error>>> = Vec::new();
        for before in &before {
            let prepared = before.statement().and_then(|_| prepared.next());
            under_way.push(Box::pin(before.go(client, prepared)));
        }
        for (prepared, statement) in prepared.zip(&statements) {
            under_way.push(Box::pin(ask(client, prepared, statement)));
        }
        let mut answers = in_order(under_way).await.map_err(|(at, e)| {
            self.torn |= at < before.len();
            e
        })?;
        answers.drain(..before.len().min(answers.len()));
        Ok(answers)
    }

    /// Sends what waits to go before statements.
    async fn flush(&mut self) -> Result<(), SqlError> {
        let sent = self.send(Vec::new()).await;
        sent.map(drop).map_err(|e| sql_error(&e))
    }
}

/// Whether the server only says that something before has failed.
fn is_aborted(e: &tokio_postgres::Error) -> bool {
    e.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION)
}

/// Sends what comes before, each when the last was answered.
async fn one_by_one(
    client: &deadpool_postgres::Client,
    before: Vec<Before>,
) -> Result<(), tokio_postgres::Error> {
    for before in before {
        let statement = before.statement().into_iter().collect();
        let prepared = prepare(client, statement).await?.pop();
        before.go(client, prepared).await?;
    }
    Ok(())
}

impl Before {
    fn statement(&self) -> Option<&Statement<'static>> {
        match self {
            Before::Command(_) => None,
            Before::Own(statement) | Before::Later(statement) => Some(statement),
        }
    }

    /// Does it. `prepared` is its statement, if it is one.
    async fn go(
        &self,
        client: &deadpool_postgres::Client,
        prepared: Option<tokio_postgres::Statement>,
    ) -> Result<Answer, tokio_postgres::Error> {
        match (self, prepared) {
            (Before::Command(command), _) => client.batch_execute(command).await?,
            (Before::Own(statement) | Before::Later(statement), Some(prepared)) => {
                // What the rows say is not read: nothing of ours may fail once the end is under way.
                let values = statement.values.iter().map(Bound);
                client.execute_raw(&prepared, values).await?;
            }
            // Each statement was prepared.
            (_, None) => {}
        }
        Ok(Answer::default())
    }
}

impl Tx for Session<'_> {
    fn all<'t>(
        &'t mut self,
        statements: Vec<Statement<'t>>,
    ) -> BoxFuture<'t, Result<Vec<Answer>, SqlError>> {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(statements.len());
            let mut left = statements.into_iter().peekable();
            while left.peek().is_some() {
                let some = left.by_ref().take(WIDEST).collect();
                answers.extend(self.send(some).await.map_err(|e| sql_error(&e))?);
            }
            Ok(answers)
        })
    }

    fn clock(&self) -> &'static str {
        // Not `now()`, which is when the transaction began: it may have waited for its locks since.
        "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    }

    fn later<'t>(
        &'t mut self,
        statements: Vec<Statement<'t>>,
    ) -> BoxFuture<'t, Result<(), SqlError>> {
        Box::pin(async move {
            for statement in statements {
                if self.before.len() >= WIDEST {
                    self.flush().await?;
                }
                self.before.push(Before::Later(statement.owned()));
            }
            Ok(())
        })
    }
}

/// Prepares what was not prepared on this connection before; each text once.
async fn prepare(
    client: &deadpool_postgres::Client,
    statements: Vec<&Statement<'_>>,
) -> Result<Vec<tokio_postgres::Statement>, tokio_postgres::Error> {
    let mut kinds: Vec<(&'static str, Vec<Type>)> = Vec::new();
    let mut which = Vec::new();
    for statement in statements {
        let kind = (
            statement.postgres(),
            statement.values.iter().map(Bound::hint).collect::<Vec<_>>(),
        );
        let at = kinds.iter().position(|known| *known == kind);
        which.push(at.unwrap_or(kinds.len()));
        if at.is_none() {
            kinds.push(kind);
        }
    }
    let prepared = kinds
        .iter()
        .map(|(sql, types)| -> BoxFuture<'_, _> {
            Box::pin(client.prepare_typed_cached(sql, types))
        })
        .collect();
    let prepared = in_order(prepared).await.map_err(|(_, e)| e)?;
    Ok(which
        .into_iter()
        .filter_map(|at| prepared.get(at).cloned())
        .collect())
}

async fn ask(
    client: &deadpool_postgres::Client,
    prepared: tokio_postgres::Statement,
    statement: &Statement<'_>,
) -> Result<Answer, tokio_postgres::Error> {
    let values = statement.values.iter().map(Bound);
    let mut stream = pin!(client.query_raw(&prepared, values).await?);
    let mut rows = Vec::new();
    while let Some(row) = stream.next().await {
        let row = row?;
        let cells = (0..row.len())
            .map(|column| row.try_get::<_, Found>(column).map(|found| found.0))
            .collect::<Result<Vec<Cell<'static>>, _>>()?;
        rows.push(Row(cells));
    }
    // The server counts rows that were read as well.
    let written = match statement.postgres().trim_start().get(..6) {
        Some("SELECT") => 0,
        _ => stream.rows_affected().unwrap_or(0),
    };
    Ok(Answer { rows, written })
}

/// Begins all of them in their order, then waits for each in turn. The first failure ends it, and its place is
/// told; later ones only follow from it.
async fn in_order<T, E>(
    mut futures: Vec<BoxFuture<'_, Result<T, E>>>,
) -> Result<Vec<T>, (usize, E)> {
    let mut early = Vec::with_capacity(futures.len());
    poll_fn(|cx| {
        for future in &mut futures {
            early.push(future.as_mut().poll(cx));
            // What cannot even be sent: a COMMIT after it would keep half of the work.
            if let Some(Poll::Ready(Err(_))) = early.last() {
                break;
            }
        }
        Poll::Ready(())
    })
    .await;
    let mut done = Vec::with_capacity(futures.len());
    for (at, (future, early)) in futures.into_iter().zip(early).enumerate() {
        let ended = match early {
            Poll::Ready(ready) => ready,
            Poll::Pending => future.await,
        };
        done.push(ended.map_err(|e| (at, e))?);
    }
    Ok(done)
}
