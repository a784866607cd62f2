//! What must not be late: leases that are kept, and the wishes that are looked for. It has a connection of its own, so
//! that it waits behind no write, no read and no long transaction, and a limit to what it waits for.
//!
//! Called through `Database::write_soon` and `read_soon`. Each work is a transaction of its own; it takes no lock on a
//! name, so it may do no more than one statement whose conditions the server looks at itself.

use super::{
    Shared,
    fault::{pool_error, sql_error},
    session::Session,
};
use crate::{
    database::{Fault, Work},
    sql::SqlError,
};
use futures::FutureExt;
use std::{panic::AssertUnwindSafe, time::Duration};

/// How long a work may take: a part of the time for which a lease that is not renewed lasts.
fn limit(lease: Duration) -> Duration {
    (lease / 6).clamp(Duration::from_secs(1), Duration::from_secs(5))
}

/// What its connection is set to. A row that somebody else has locked is waited for only briefly, since those behind
/// it wait as long; and no disk is waited for: a lease that a crash of the server makes shorter harms nobody.
pub(super) fn settings(lease: Duration) -> String {
    let locked = limit(lease) / 10;
    format!(
        "SELECT set_config('lock_timeout', '{}', false), set_config('synchronous_commit', 'off', false)",
        locked.as_millis()
    )
}

/// Does the work once. `begin` is what begins its transaction.
pub(super) async fn once<T>(
    shared: &Shared,
    work: &Work<T>,
    begin: &'static str,
) -> Result<T, Fault> {
    let limit = limit(shared.lease);
    let done = tokio::time::timeout(limit, transact(shared, work, begin)).await;
    done.unwrap_or_else(|_| {
        Err(Fault::Sql(SqlError::Transient(format!(
            "the server did not answer within {limit:?}"
        ))))
    })
}

async fn transact<T>(shared: &Shared, work: &Work<T>, begin: &'static str) -> Result<T, Fault> {
    let client = shared.urgent.get().await.map_err(|e| pool_error(&e))?;
    // Whoever is cut off in the middle leaves a connection that is of no more use.
    let mut client = Borrowed(Some(client));
    let Some(open) = &client.0 else {
        return Err(Fault::Sql(SqlError::Transient("no connection".to_owned())));
    };
    let mut session = Session::new(open);
    session.command(begin);
    let done = AssertUnwindSafe(work(&mut session)).catch_unwind().await;
    let done =
        done.unwrap_or_else(|_| Err(Fault::Sql(SqlError::Lasting("a write panicked".to_owned()))))?;
    if !session.is_idle() {
        session.end("COMMIT").await.map_err(|e| sql_error(&e))?;
    }
    client.give_back();
    Ok(done)
}

/// A connection that goes back to the pool only if everything went well.
struct Borrowed(Option<deadpool_postgres::Client>);

impl Borrowed {
    fn give_back(&mut self) {
        self.0 = None;
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            let _ = deadpool_postgres::Client::take(client);
        }
    }
}
