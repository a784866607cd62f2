//! The stores that outlive a process, each fresh for one run: a file of SQLite, or a database of the Postgres
//! server that the harness has started.
//!
//! Called by `case` and by the shapes that measure stores themselves. The files lie beside the binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use paraph_graph::Threads;
use paraph_store::Options;
use tokio_postgres::{Client, NoTls};

use crate::{Fault, Kept, Setting};

/// The variable by which a process of the harness tells those that it starts where Postgres is.
pub const POSTGRES: &str = "PARAPH_BENCH_POSTGRES";

static SERVER: OnceLock<String> = OnceLock::new();

/// Says where the Postgres server is: a URL without a database. Only the first word counts.
pub fn set_postgres(url: String) {
    let _ = SERVER.set(url);
}

/// Where the Postgres server is, if there is one.
pub(crate) fn postgres() -> Option<String> {
    SERVER.get().cloned()
}

/// Where files are put, made if it is not there.
pub(crate) fn folder() -> Result<PathBuf, Fault> {
    let folder = std::env::current_exe()?.with_file_name("bench-data");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// A place for one store.
pub(crate) struct Ground {
    url: String,
    /// The file, for SQLite.
    path: Option<PathBuf>,
    /// The database's size when it was empty, for Postgres.
    empty: u64,
}

impl Ground {
    /// A fresh place, or one that is kept under a name; nothing where nothing outlives the process.
    pub(crate) async fn lay(setting: Setting, name: Option<&str>) -> Result<Option<Ground>, Fault> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let fresh = || {
            format!(
                "run_{}_{}",
                std::process::id(),
                NEXT.fetch_add(1, Ordering::Relaxed)
            )
        };
        let label = name.map_or_else(fresh, str::to_owned);
        Ok(match setting.kept {
            Kept::Nowhere | Kept::Memory => None,
            Kept::Sqlite(_) => Some(Ground::file(&label)?),
            Kept::Postgres(_) => Some(Ground::database(&label).await?),
        })
    }

    fn file(label: &str) -> Result<Ground, Fault> {
        let path = folder()?.join(format!("{label}.db"));
        Ok(Ground {
            url: format!("sqlite://{}", path.display()),
            path: Some(path),
            empty: 0,
        })
    }

    async fn database(label: &str) -> Result<Ground, Fault> {
        let server = SERVER.get().ok_or("there is no Postgres here")?;
        let admin = connect(&format!("{server}/postgres")).await?;
        let there = admin
            .query("SELECT 1 FROM pg_database WHERE datname = $1", &[&label])
            .await?;
        if there.is_empty() {
            admin
                .batch_execute(&format!("CREATE DATABASE \"{label}\""))
                .await?;
        }
        let url = format!("{server}/{label}");
        let empty = size(&connect(&url).await?).await?;
        Ok(Ground {
            url,
            path: None,
            empty,
        })
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The file, for SQLite.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Opens it.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Threads>, Fault> {
        Ok(paraph_store::open(&self.url, Options::default())
            .await?
            .threads)
    }

    /// The bytes that it takes, when nobody has it open any more.
    pub(crate) async fn bytes(&self) -> Result<u64, Fault> {
        let Some(path) = &self.path else {
            let client = connect(&self.url).await?;
            return Ok(size(&client).await?.saturating_sub(self.empty));
        };
        let log = path.with_extension("db-wal");
        // Whoever closes a file last brings its log in, in a thread of its own.
        let until = Instant::now() + Duration::from_secs(3);
        while log.exists() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let mut bytes = fs::metadata(path)?.len();
        bytes += fs::metadata(&log).map_or(0, |log| log.len());
        Ok(bytes)
    }

    /// Removes it.
    pub(crate) async fn clear(&self) -> Result<(), Fault> {
        let Some(path) = &self.path else {
            let (server, label) = self
                .url
                .rsplit_once('/')
                .ok_or("a URL without a database")?;
            let admin = connect(&format!("{server}/postgres")).await?;
            admin
                .batch_execute(&format!("DROP DATABASE \"{label}\" WITH (FORCE)"))
                .await?;
            return Ok(());
        };
        for end in ["db", "db-wal", "db-shm"] {
            // The log and its index are gone when the file was closed well.
            let _ = fs::remove_file(path.with_extension(end));
        }
        let _ = fs::remove_dir_all(path.with_extension("db-owners"));
        Ok(())
    }
}

async fn size(client: &Client) -> Result<u64, Fault> {
    let row = client
        .query_one("SELECT pg_database_size(current_database())", &[])
        .await?;
    Ok(u64::try_from(row.get::<_, i64>(0))?)
}

/// A connection to a database of the server.
pub(crate) async fn connect(url: &str) -> Result<Client, Fault> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // It ends with the client; what was wrong the client hears too.
    tokio::spawn(connection);
    Ok(client)
}
