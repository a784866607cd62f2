//! What is done with the file as a whole: a copy of it, its format, and whether SQLite finds it in order.
//!
//! Called by the command line, by path: none of this needs the store to be open, and all of it may happen
//! while others use it. The codec's sums are checked where documents are read, not here.

use super::{
    Sqlite,
    connection::{self, Place, cannot_open},
    migrate,
};
use crate::error::Error;
use std::{path::Path, time::Duration};

/// How many complaints of SQLite are told.
const COMPLAINTS: &str = "PRAGMA integrity_check(100)";

impl Sqlite {
    /// Copies the file, as of one moment, into a new file for its owner only. What is encrypted stays so.
    ///
    /// # Errors
    /// [`Error::Open`] naming the file that cannot be read, or the copy that cannot be made; a copy that
    /// is there already is left alone.
    pub async fn backup(
        path: impl AsRef<Path>,
        copy: impl AsRef<Path>,
        patience: Duration,
    ) -> Result<(), Error> {
        let (path, copy) = (path.as_ref().to_owned(), copy.as_ref().to_owned());
        aside(move || {
            let (place, from) = there(&path, patience)?.first()?;
            let mut how = std::fs::OpenOptions::new();
            how.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut how, 0o600);
            how.open(&copy)
                .map_err(|e| cannot_open(&copy, format!("the copy cannot be made ({e})")))?;
            place.copy_to(&from, &copy).map_err(|e| {
                // Half a copy would pass for a whole one.
                let _ = std::fs::remove_file(&copy);
                cannot_open(&copy, format!("the copy cannot be made ({e})"))
            })
        })
        .await
    }

    /// The format of the file, without bringing it up to date; nothing if there is no file, or an empty
    /// one. Also says which format this program writes.
    ///
    /// # Errors
    /// [`Error::Open`] if the file is none of ours.
    pub async fn format(path: impl AsRef<Path>) -> Result<(Option<i64>, i64), Error> {
        let path = path.as_ref().to_owned();
        aside(move || {
            let newest = migrate::newest();
            if std::fs::metadata(&path).map_or(true, |found| found.is_file() && found.len() == 0) {
                return Ok((None, newest));
            }
            let (place, connection) = there(&path, Duration::from_secs(5))?.first()?;
            let found = place.patiently(|| migrate::format_of(&connection));
            let found = found.map_err(|e| place.refused(&e))?;
            migrate::whose(&connection, &place)?;
            Ok((Some(found), newest))
        })
        .await
    }

    /// The mode of a file that others than its owner may read or write, as `chmod` takes it; nothing if it
    /// is private, not there, or the system knows no modes. Files that are made here are private.
    #[must_use]
    pub fn open_to_others(path: impl AsRef<Path>) -> Option<u32> {
        connection::open_to_others(path.as_ref())
    }

    /// What SQLite finds wrong with the file; nothing if it is in order.
    ///
    /// # Errors
    /// [`Error::Open`] if the file cannot be read at all.
    pub async fn complaints(path: impl AsRef<Path>) -> Result<Vec<String>, Error> {
        let path = path.as_ref().to_owned();
        aside(move || {
            let (place, connection) = there(&path, Duration::from_secs(5))?.first()?;
            let found = place.patiently(|| {
                let mut check = connection.prepare(COMPLAINTS)?;
                let found = check.query_map([], |row| row.get::<_, String>(0))?;
                found.collect::<rusqlite::Result<Vec<_>>>()
            });
            let mut found = found.map_err(|e| place.refused(&e))?;
            found.retain(|complaint| complaint != "ok");
            Ok(found)
        })
        .await
    }
}

/// A file that is there: none is made by looking at it.
fn there(path: &Path, patience: Duration) -> Result<Place, Error> {
    match path.is_file() {
        true => Place::new(path, patience),
        false => Err(cannot_open(path, "there is no such file".to_owned())),
    }
}

/// Work that waits for the disk.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|e| Error::Database(format!("the work was ended: {e}")))?
}
