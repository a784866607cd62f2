//! The server's clock, by which all who share it go.
//!
//! Asked now and then; in between, this process only counts how much later it is.

use super::{
    Shared,
    fault::{pool_error, sql_error},
    patience::Patience,
};
use crate::{database::Fault, sql::SqlError};
use deadpool_postgres::{PoolError, TimeoutType, Timeouts};
use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

/// How long an answer is good for.
const GOOD: Duration = Duration::from_secs(10);

/// How far this machine's two clocks may be apart before the server is asked again: it slept, or somebody
/// set one.
const APART: Duration = Duration::from_secs(1);

/// How long a connection is waited for that all may use.
const SOON: Duration = Duration::from_millis(50);

/// What the server said last.
#[derive(Default)]
pub(super) struct Clock(Mutex<Option<Reading>>);

#[derive(Clone, Copy)]
struct Reading {
    server_ms: u64,
    at: Instant,
    wall: SystemTime,
}

impl Clock {
    /// Without asking, if what the server said is still good.
    pub(super) fn now(&self) -> Option<u64> {
        let reading = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let later = reading.at.elapsed();
        let wall = reading.wall.elapsed().ok()?;
        let good = later < GOOD && later.abs_diff(wall) < APART;
        good.then(|| reading.server_ms + millis(later))
    }

    /// Milliseconds since the Unix epoch. Waits for a server that is away, as writes do.
    pub(super) async fn ask(&self, shared: &Shared) -> Result<u64, Fault> {
        let began = tokio::time::Instant::now();
        let mut patience = Patience::new(shared.patience());
        loop {
            match self.ask_once(shared).await {
                Err(Fault::Sql(SqlError::Transient(_))) if !patience.is_over(began) => {
                    patience.wait().await;
                }
                said => {
                    shared.saw(!matches!(said, Err(Fault::Sql(SqlError::Transient(_)))));
                    return said;
                }
            }
        }
    }

    async fn ask_once(&self, shared: &Shared) -> Result<u64, Fault> {
        if let Some(now) = self.now() {
            return Ok(now);
        }
        let timeouts = Timeouts {
            wait: Some(SOON),
            ..shared.pool.timeouts()
        };
        // A lease is kept by this clock, too, so it must not wait for whatever holds all connections.
        let client = match shared.pool.timeout_get(&timeouts).await {
            Err(PoolError::Timeout(TimeoutType::Wait)) => shared.urgent.get().await,
            got => got,
        };
        let client = client.map_err(|e| pool_error(&e))?;
        let asked = Instant::now();
        let select = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let statement = client
            .prepare_cached(select)
            .await
            .map_err(|e| sql_error(&e))?;
        let row = client
            .query_one(&statement, &[])
            .await
            .map_err(|e| sql_error(&e))?;
        let said: i64 = row.try_get(0).map_err(|e| sql_error(&e))?;
        let said = u64::try_from(said)
            .map_err(|_| SqlError::Lasting("the server's clock is before 1970".to_owned()))?;
        // It looked somewhere between the question and the answer.
        let server_ms = said + millis(asked.elapsed() / 2);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Reading {
            server_ms,
            at: Instant::now(),
            wall: SystemTime::now(),
        });
        Ok(server_ms)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
