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

/// The triggers that keep the audit as it was written, with their statements; none in a file from before there was one.
const TRIGGERS: &str =
    "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name GLOB 'gateway_audit_*'";
const AUDIT: &str =
    "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'gateway_audit'";

/// Which there have to be.
const KEEPERS: [&str; 5] = [
    "gateway_audit_update",
    "gateway_audit_delete",
    "gateway_audit_insert",
    "gateway_audit_detail_update",
    "gateway_audit_detail_insert",
];

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

    /// What SQLite finds wrong with the file, and which of the triggers that guard the audit are not there as they were
    /// made; nothing if it is in order.
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
            let gone = place.patiently(|| unguarded(&connection));
            found.extend(gone.map_err(|e| place.refused(&e))?);
            Ok(found)
        })
        .await
    }
}

/// What keeps nobody from changing the audit any more. Somebody has taken it away: no version of ours does.
fn unguarded(connection: &rusqlite::Connection) -> rusqlite::Result<Vec<String>> {
    if connection.query_row(AUDIT, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(Vec::new());
    }
    let mut list = connection.prepare(TRIGGERS)?;
    let there = list.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let there: Vec<(String, String)> = there.collect::<rusqlite::Result<_>>()?;
    let guards = |name: &str| {
        let mut own = there.iter().filter(|(found, _)| found == name);
        own.any(|(_, statement)| statement.contains("RAISE(ABORT"))
    };
    let gone = KEEPERS.into_iter().filter(|name| !guards(name));
    Ok(gone
        .map(|name| {
            format!("the trigger `{name}` is gone: nothing keeps the audit from being changed")
        })
        .collect())
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
