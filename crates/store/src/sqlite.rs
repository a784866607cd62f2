//! SQLite as a database of this crate: one file, one writing thread, a few connections for reading.
//!
//! Opened by whoever composes a program; everything but the opening is in [`Durable`]. Several processes
//! may have the same file open.

mod connection;
mod migrate;
mod owners;
mod readers;
mod upkeep;
mod writer;

use crate::{
    database::{Database, Fault, Work},
    durable::Durable,
    error::Error,
    options::Options,
    sql::SqlError,
};
use futures::future::BoxFuture;
use owners::Owners;
use readers::Readers;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use writer::Writer;

/// A store in one file.
///
/// Beside the file `PATH` there are `PATH-wal` and `PATH-shm`, which belong to it while it is open, and the
/// folder `PATH-owners`, by which processes see whether one that held a thread is still alive.
pub type Sqlite = Durable<SqliteFile>;

/// The database below a [`Sqlite`].
pub struct SqliteFile {
    /// Nothing for a file that can only be read.
    writer: Option<Writer>,
    place: connection::Place,
    readers: Arc<Readers>,
    owners: Arc<Owners>,
}

impl Sqlite {
    /// Opens the file, makes it (for its owner only) if it is not there, and brings it up to date; before
    /// an older format is changed, the file is copied to `PATH.vN.bak`. A file that this user can only read
    /// is opened too: it can be read, and all writes are refused.
    ///
    /// # Errors
    /// Why the file cannot be used, in a sentence that says what to do where that is known; a wrong key;
    /// a format newer than this program.
    pub async fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let (patience, connections) = (options.patience, options.connections);
        let opened = tokio::task::spawn_blocking(move || {
            let file = connection::Place::new(&path, patience)?;
            let (file, mut first) = file.first()?;
            let folder = owners_folder(file.path());
            let readers = Arc::new(Readers::new(file.clone(), connections));
            if file.is_read_only() {
                migrate::is_up_to_date(&first, &file)?;
                return Ok(SqliteFile {
                    owners: Arc::new(Owners::look_on(&folder)),
                    readers,
                    writer: None,
                    place: file,
                });
            }
            file.warn_if_open_to_others();
            migrate::up_to_date(&mut first, &file)?;
            Ok(SqliteFile {
                owners: Arc::new(Owners::join(&folder)?),
                readers,
                writer: Some(Writer::start(first, file.clone())?),
                place: file,
            })
        });
        let file = opened
            .await
            .map_err(|e| Error::Database(format!("opening was ended: {e}")))??;
        Durable::over(file, options).await
    }

    /// How many transactions were committed since it was opened. For measuring: writes that are made at
    /// the same time share them.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.db.writer.as_ref().map_or(0, Writer::commits)
    }
}

/// Where the owners of leases have their locks.
fn owners_folder(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-owners");
    PathBuf::from(name)
}

impl Database for SqliteFile {
    fn write<T: Send + 'static>(
        &self,
        _lane: &str,
        work: Work<T>,
    ) -> BoxFuture<'static, Result<T, Fault>> {
        match &self.writer {
            Some(writer) => writer.queue(work),
            None => {
                let why = format!("{}: {}", self.place.path().display(), connection::READ_ONLY);
                Box::pin(std::future::ready(Err(Fault::Sql(SqlError::Lasting(why)))))
            }
        }
    }

    fn read<T: Send + 'static>(&self, work: Work<T>) -> BoxFuture<'static, Result<T, Fault>> {
        readers::read(self.readers.clone(), work)
    }

    fn now_ms(&self) -> BoxFuture<'static, Result<u64, Fault>> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        Box::pin(std::future::ready(Ok(ms)))
    }

    fn owner(&self) -> Arc<str> {
        self.owners.own()
    }

    fn is_gone(&self, owner: &str) -> BoxFuture<'static, bool> {
        let (owners, owner) = (self.owners.clone(), owner.to_owned());
        Box::pin(async move { owners.is_gone(&owner) })
    }
}

#[cfg(test)]
mod tests;
