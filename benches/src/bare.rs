//! The floor of a durable store: a table without any meaning, into which the same bytes are committed in the same
//! number of transactions, with the same settings of the database.
//!
//! Called by `case`. What a run saves besides its changes are its lease, its input and its end.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio_postgres::{Client, Statement};

use crate::ground::{Ground, connect};
use crate::{Fault, Save};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS bare (id INTEGER PRIMARY KEY, value TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO bare (value) VALUES (?1)";

/// A connection with its one table.
pub(crate) enum Bare {
    Sqlite(Connection),
    Postgres(Client, Statement),
}

impl Bare {
    pub(crate) async fn open(ground: &Ground) -> Result<Bare, Fault> {
        let Some(path) = ground.path() else {
            let client = connect(ground.url()).await?;
            client
                .batch_execute(
                    "CREATE TABLE IF NOT EXISTS bare (id BIGSERIAL PRIMARY KEY, value TEXT NOT NULL)",
                )
                .await?;
            let insert = client
                .prepare("INSERT INTO bare (value) VALUES ($1)")
                .await?;
            return Ok(Bare::Postgres(client, insert));
        };
        let database = Connection::open(path)?;
        database.pragma_update(None, "journal_mode", "WAL")?;
        database.pragma_update(None, "synchronous", "FULL")?;
        database.execute(TABLE, ())?;
        Ok(Bare::Sqlite(database))
    }

    /// Commits changes as a run with that durability would; says how long that took.
    pub(crate) async fn commit(
        &mut self,
        save: Save,
        changes: &[Vec<u8>],
    ) -> Result<Duration, Fault> {
        let small = format!("\"{}\"", "-".repeat(98));
        let changes: Vec<&str> = changes
            .iter()
            .map(|change| std::str::from_utf8(change))
            .collect::<Result<_, _>>()?;
        let start = Instant::now();
        self.transaction(&[&small]).await?;
        if save == Save::Exit {
            self.transaction(&changes).await?;
        } else {
            // The input, then each change by itself.
            self.transaction(&[&small]).await?;
            for change in changes {
                self.transaction(&[change]).await?;
            }
        }
        self.transaction(&[&small]).await?;
        Ok(start.elapsed())
    }

    async fn transaction(&mut self, values: &[&str]) -> Result<(), Fault> {
        match self {
            Bare::Sqlite(database) => {
                let work = database.transaction()?;
                for value in values {
                    work.prepare_cached(INSERT)?.execute([value])?;
                }
                work.commit()?;
            }
            Bare::Postgres(client, insert) => {
                let work = client.transaction().await?;
                for value in values {
                    work.execute(insert, &[value]).await?;
                }
                work.commit().await?;
            }
        }
        Ok(())
    }

    /// All that was committed, in order.
    pub(crate) async fn read(&mut self) -> Result<Vec<String>, Fault> {
        const SELECT: &str = "SELECT value FROM bare ORDER BY id";
        match self {
            Bare::Sqlite(database) => {
                let mut select = database.prepare(SELECT)?;
                let values = select.query_map((), |row| row.get(0))?;
                Ok(values.collect::<Result<_, _>>()?)
            }
            Bare::Postgres(client, _) => {
                let rows = client.query(SELECT, &[]).await?;
                Ok(rows.iter().map(|row| row.get(0)).collect())
            }
        }
    }
}
