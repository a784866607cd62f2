//! The tables: made when a store is opened on an empty database, by whoever comes first.
//!
//! Several processes may open a database at the same time; they wait for each other.

use super::{
    address::Address,
    fault::{opening, words},
};
use crate::error::Error;
use deadpool_postgres::{Client, PoolError};
use tokio_postgres::error::SqlState;

/// The formats so far, as the statements that lead from one to the next.
const FORMATS: &[&str] = &[
    include_str!("v1.sql"),
    include_str!("v2.sql"),
    include_str!("v3.sql"),
];

/// Brings a database up to date.
pub(super) async fn up_to_date(client: &Client, at: &Address) -> Result<(), Error> {
    let done = in_transaction(client, at).await;
    if done.is_err() {
        // The first error is the one to tell.
        let _ = client.batch_execute("ROLLBACK").await;
    }
    done
}

async fn in_transaction(client: &Client, at: &Address) -> Result<(), Error> {
    let failed = |e: tokio_postgres::Error| match e.code() {
        Some(&SqlState::DUPLICATE_TABLE) => Error::Open {
            place: at.place(),
            why: format!(
                "it holds tables of another program ({}); give this one a database of its own",
                words(&e)
            ),
        },
        _ => opening(&PoolError::Backend(e), at),
    };
    client
        .batch_execute("BEGIN; SELECT pg_advisory_xact_lock(x'70617243'::int, 0)")
        .await
        .map_err(failed)?;
    let row = client
        .query_one(
            "SELECT to_regclass('paraph_format') IS NOT NULL, current_setting('server_encoding')",
            &[],
        )
        .await
        .map_err(failed)?;
    let encoding: String = row.try_get(1).map_err(failed)?;
    if encoding != "UTF8" {
        return Err(Error::Open {
            place: at.place(),
            why: format!(
                "the database's encoding is {encoding}; make one with UTF8 (`createdb -E UTF8 -T template0 …`)"
            ),
        });
    }
    let found: i64 = match row.try_get(0).map_err(failed)? {
        false => 0,
        true => client
            .query_one("SELECT version FROM paraph_format", &[])
            .await
            .and_then(|row| row.try_get(0))
            .map_err(failed)?,
    };
    let known = i64::try_from(FORMATS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(Error::Newer {
            place: at.place(),
            found,
            known,
        });
    }
    for step in FORMATS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        client.batch_execute(step).await.map_err(failed)?;
    }
    if found < known {
        client
            .execute("UPDATE paraph_format SET version = $1", &[&known])
            .await
            .map_err(failed)?;
    }
    client.batch_execute("COMMIT").await.map_err(failed)
}
