//! Reads: each in a transaction of its own that sees one moment.
//!
//! The transaction is begun with the first statements and ended without waiting, so that a read of one step
//! costs one way to the server and back.

use super::{Shared, fault::pool_error, patience::Patience, session::Session};
use crate::{
    database::{Fault, Work},
    sql::SqlError,
};
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use tokio::time::Instant;

/// Does the work, again while the server is out of reach and patience lasts.
pub(super) async fn read<T>(shared: &Shared, work: &Work<T>) -> Result<T, Fault> {
    let mut patience = Patience::new(shared.patience());
    let since = Instant::now();
    loop {
        match once(shared, work).await {
            Err(Fault::Sql(SqlError::Transient(why))) if !patience.is_over(since) => {
                tracing::debug!(%why, "a read is tried again");
                patience.wait().await;
            }
            done => {
                shared.saw(!matches!(done, Err(Fault::Sql(SqlError::Transient(_)))));
                return done;
            }
        }
    }
}

async fn once<T>(shared: &Shared, work: &Work<T>) -> Result<T, Fault> {
    let client = shared.pool.get().await.map_err(|e| pool_error(&e))?;
    let mut session = Session::new(&client);
    session.command("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    let done = AssertUnwindSafe(work(&mut session)).catch_unwind().await;
    let done =
        done.unwrap_or_else(|_| Err(Fault::Sql(SqlError::Lasting("a read panicked".to_owned()))));
    match &done {
        Err(Fault::Sql(SqlError::Transient(_))) => {
            let _ = deadpool_postgres::Client::take(client);
        }
        _ if session.begun() => session.leave("COMMIT").await,
        _ => {}
    }
    done
}
