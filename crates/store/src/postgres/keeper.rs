//! Who is alive: each opened store holds a lock at the server, on a connection of its own, under its name.
//!
//! The lock goes when the process ends, be it without a word. Whoever wants a dead owner's leases asks whether
//! somebody has the lock. The answer only makes things quicker: what is written under a lease that was
//! taken is refused by its epoch.

use super::{Shared, address::Address, fault::words, lane::number, patience::Patience};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The class of the locks of owners.
const OWNERS: i64 = 0x7061_7242;

/// How long a lock has to be free to be no accident: an owner whose connection was lost makes another in
/// less.
const ACCIDENT: Duration = Duration::from_millis(300);

/// How often the connection is used, so that nobody on the way takes it for forgotten.
const SIGN: Duration = Duration::from_secs(20);

/// Holds the lock until the store is dropped, again after each loss of the connection.
pub(super) async fn hold(
    shared: Weak<Shared>,
    address: Address,
    tls: MakeRustlsConnect,
    first: Held,
) {
    let mut held = first;
    loop {
        let why = held.lost().await;
        tracing::debug!(%why, "the connection that shows this process is alive was lost");
        let mut patience = Patience::new(Duration::MAX);
        held = loop {
            let Some(owner) = shared.upgrade().map(|shared| shared.owner.clone()) else {
                return;
            };
            match Held::take(&address, &tls, &owner).await {
                Ok(held) => break held,
                Err(_) => patience.wait().await,
            }
        };
    }
}

/// A connection with the lock.
pub(super) struct Held {
    client: Client,
    connection: JoinHandle<Result<(), tokio_postgres::Error>>,
}

impl Held {
    /// Waits while the server still holds the lock for a lost connection of the same owner.
    pub(super) async fn take(
        address: &Address,
        tls: &MakeRustlsConnect,
        owner: &str,
    ) -> Result<Held, tokio_postgres::Error> {
        let (client, connection) = address.config.connect(tls.clone()).await?;
        let connection = tokio::spawn(connection);
        client
            .batch_execute(&format!(
                "SET lock_timeout = 0; SET statement_timeout = 0; SELECT pg_advisory_lock({OWNERS}, {})",
                number(owner)
            ))
            .await?;
        Ok(Held { client, connection })
    }

    /// Waits until the connection is of no more use; says why.
    async fn lost(&mut self) -> String {
        loop {
            tokio::select! {
                ended = &mut self.connection => {
                    return match ended {
                        Ok(Err(e)) => words(&e),
                        _ => "it was closed".to_owned(),
                    };
                }
                () = tokio::time::sleep(SIGN) => {
                    if let Err(e) = self.client.batch_execute("").await {
                        return words(&e);
                    }
                }
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Whether nobody holds the lock of this owner, and it is no accident of the moment. In doubt `false`.
pub(super) async fn is_gone(shared: &Arc<Shared>, owner: &str) -> bool {
    if owner == &*shared.owner || !looks_gone(shared, owner).await {
        return false;
    }
    tokio::time::sleep(ACCIDENT).await;
    looks_gone(shared, owner).await
}

async fn looks_gone(shared: &Shared, owner: &str) -> bool {
    // A server that was just started has heard of nobody yet.
    let select = "SELECT NOT EXISTS (SELECT 1 FROM pg_locks \
           WHERE locktype = 'advisory' AND classid::bigint = $1 AND objid::bigint = $2 AND objsubid = 2 \
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) \
         AND clock_timestamp() - pg_postmaster_start_time() > $3::bigint * interval '1 millisecond'";
    let Ok(client) = shared.pool.get().await else {
        return false;
    };
    let lease = i64::try_from(shared.lease.as_millis()).unwrap_or(i64::MAX);
    // Both halves of a lock's number are shown without a sign.
    let unsigned = number(owner) & 0xffff_ffff;
    let Ok(statement) = client.prepare_cached(select).await else {
        return false;
    };
    let row = client
        .query_one(&statement, &[&OWNERS, &unsigned, &lease])
        .await;
    row.and_then(|row| row.try_get(0)).unwrap_or(false)
}
