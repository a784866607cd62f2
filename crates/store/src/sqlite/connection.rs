//! A connection to the file: how it is opened, what it is set to, how statements run on it, and what its
//! errors mean.

use crate::{
    error::Error,
    sql::{Answer, Cell, Row, SqlError, Statement, Tx},
};
use futures::future::BoxFuture;
use rusqlite::{
    Connection, ErrorCode, OpenFlags,
    backup::{Backup, StepResult},
    config::DbConfig,
    types::{ToSqlOutput, ValueRef},
};
use std::{
    hash::{BuildHasher, Hasher, RandomState},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// How many prepared statements a connection keeps. More than this crate has.
const STATEMENTS: usize = 256;

/// How much of the file a connection keeps in memory, in KiB; it takes so much only where it is read or written.
const CACHE_KIB: i64 = 16 * 1024;

/// What is said of a file that could be read, and is to be written to.
pub(super) const READ_ONLY: &str =
    "the file is read-only; give this user the right to write to it and to its folder";

/// Where the file is, how it may be used, and how long to wait for others who use it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    path: Arc<Path>,
    patience: Duration,
    access: Access,
}

/// How a file may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// By whoever has the right to write to it.
    Write,
    /// Only read, beside somebody who writes, or has left something in its log.
    Read,
    /// Only read, and nobody writes to it: nothing beside the file is looked at or made.
    Still,
}

impl Place {
    /// Makes the folder and the file, if they are not there, for their owner only.
    pub(super) fn new(path: &Path, patience: Duration) -> Result<Self, Error> {
        let path: Arc<Path> = absolute(path)?.into();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|e| cannot_open(&path, format!("its folder cannot be made ({e})")))?;
        }
        let place = Place {
            path,
            patience,
            access: Access::Write,
        };
        place.private(&place.path, true)?;
        Ok(place)
    }

    /// Makes a file for its owner only. One that is there is left as it is, or emptied.
    pub(super) fn private(&self, path: &Path, is_kept: bool) -> Result<(), Error> {
        let mut how = std::fs::OpenOptions::new();
        how.write(true).create_new(is_kept);
        if !is_kept {
            how.create(true).truncate(true);
        }
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut how, 0o600);
        match how.open(path) {
            Ok(_) => Ok(()),
            // That it is there already is the usual case.
            Err(e) if is_kept && e.kind() == std::io::ErrorKind::AlreadyExists => {
                // A pipe would keep us waiting for whoever writes into it, and a device would be written on.
                match std::fs::metadata(path) {
                    Ok(found) if !found.is_file() && !found.is_dir() => {
                        Err(cannot_open(path, "it is no ordinary file".to_owned()))
                    }
                    _ => Ok(()),
                }
            }
            Err(e) => Err(cannot_open(path, e.to_string())),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Says so in the log if others than its owner may read or write the file: it may be theirs on
    /// purpose, so it is left as it is.
    pub(super) fn warn_if_open_to_others(&self) {
        if let Some(mode) = open_to_others(&self.path) {
            tracing::warn!(
                path = %self.path.display(),
                mode = %format_args!("{mode:04o}"),
                "others than its owner may read or write the store's file; chmod 600 makes it private"
            );
        }
    }

    /// Whether nothing can be written here.
    pub(super) fn is_read_only(&self) -> bool {
        self.access != Access::Write
    }

    /// The first connection, which may still find an empty file; and the place as it may be used. Where
    /// nothing can be written, what is there can still be read.
    pub(super) fn first(self) -> Result<(Place, Connection), Error> {
        if self.is_protected() {
            // Not even tried: SQLite would make files beside it for reading.
            return self.only_read();
        }
        let opened = self.connect().and_then(|connection| {
            self.patiently(|| looked_at(&connection))?;
            Ok(connection)
        });
        match opened {
            Ok(connection) if !connection.is_readonly(rusqlite::MAIN_DB).unwrap_or(false) => {
                return Ok((self, connection));
            }
            // What the system forbids shows as one of these, by which file it was.
            Ok(_) => {}
            Err(e) if is_forbidden(&e) => {}
            Err(e) => return Err(self.refused(&e)),
        }
        self.only_read()
    }

    /// Whether this user may not write to the file itself.
    fn is_protected(&self) -> bool {
        let opened = std::fs::OpenOptions::new().write(true).open(&self.path);
        opened.is_err_and(|e| {
            use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
            matches!(e.kind(), PermissionDenied | ReadOnlyFilesystem)
        })
    }

    /// The same for a file that cannot be written to, or beside which nothing can be.
    fn only_read(self) -> Result<(Place, Connection), Error> {
        let mut log = self.path.as_os_str().to_owned();
        log.push("-wal");
        let log = PathBuf::from(log);
        // With a log SQLite needs a file of its own beside it, and makes that if it may. Without one it
        // shall make none: what one who only reads makes there would be in the owner's way.
        let access = match std::fs::metadata(&log) {
            Ok(found) if found.len() > 0 => Access::Read,
            _ => Access::Still,
        };
        let place = Place { access, ..self };
        let opened = place.connect().and_then(|connection| {
            place.patiently(|| looked_at(&connection))?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => Ok((place, connection)),
            Err(e) if access == Access::Read && is_forbidden(&e) => {
                let why = format!(
                    "it is read-only, and what was written last is in {} and not in it yet; open it once as \
                     somebody who may write to it and to its folder, or copy both files",
                    log.display()
                );
                Err(cannot_open(&place.path, why))
            }
            Err(e) => Err(place.refused(&e)),
        }
    }

    /// Copies the whole file, as of one moment, over another that is there and empty. It is read at once:
    /// page by page it would begin anew with everything that is written meanwhile.
    pub(super) fn copy_to(&self, connection: &Connection, copy: &Path) -> rusqlite::Result<()> {
        let mut to = Connection::open(copy)?;
        let copying = Backup::new(connection, &mut to)?;
        self.patiently(|| match copying.step(-1)? {
            StepResult::Done => Ok(()),
            StepResult::Locked => Err(busy(rusqlite::ffi::SQLITE_LOCKED)),
            // Not all of it in one step: that somebody has the file just now.
            _ => Err(busy(rusqlite::ffi::SQLITE_BUSY)),
        })
    }

    /// Writers do not wait for readers from here on. It stays in the file, so it is for files of ours only.
    pub(super) fn log_ahead(&self, connection: &Connection) -> Result<(), Error> {
        self.patiently(|| connection.pragma_update(None, "journal_mode", "WAL"))
            .map_err(|e| self.refused(&e))
    }

    /// Another connection to a file that is in order.
    pub(super) fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match self.access {
            Access::Write => {
                Connection::open_with_flags(&*self.path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE)?
            }
            Access::Read => {
                Connection::open_with_flags(&*self.path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY)?
            }
            Access::Still => Connection::open_with_flags(
                still(&self.path),
                flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
            )?,
        };
        // Waiting is done here, not by SQLite, whose waits grow in step in all processes.
        connection.busy_timeout(Duration::ZERO)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // Else statements are planned again and again, for the values that are bound to them.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        self.patiently(|| {
            connection.pragma_update(None, "synchronous", "FULL")?;
            connection.pragma_update(None, "foreign_keys", "ON")?;
            connection.pragma_update(None, "trusted_schema", "OFF")?;
            connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
            connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
            // What is deleted is not left lying in the file.
            connection.pragma_update(None, "secure_delete", "ON")
        })?;
        Ok(connection)
    }

    /// Does something again while others have the file locked, until it is done or patience has ended.
    pub(super) fn patiently<T>(
        &self,
        what: impl FnMut() -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.again_while(is_busy, what)
    }

    /// The same for what has errors of another kind.
    pub(super) fn again_while<T, E>(
        &self,
        busy: fn(&E) -> bool,
        mut what: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let began = Instant::now();
        let mut wait = Duration::from_micros(200);
        loop {
            match what() {
                Err(e) if busy(&e) && began.elapsed() < self.patience => {
                    std::thread::sleep(wait / 2 + jitter(wait));
                    wait = (wait * 2).min(Duration::from_millis(10));
                }
                done => return done,
            }
        }
    }

    /// What an error of SQLite means for whoever reads it.
    pub(super) fn error(&self, error: &rusqlite::Error) -> SqlError {
        let text = format!("{}: {}", self.path.display(), self.words(error));
        if is_busy(error) {
            SqlError::Transient(text)
        } else {
            SqlError::Lasting(text)
        }
    }

    /// The same, while the store is being opened.
    pub(super) fn refused(&self, error: &rusqlite::Error) -> Error {
        cannot_open(&self.path, self.words(error))
    }

    fn words(&self, error: &rusqlite::Error) -> String {
        let Some(code) = error.sqlite_error_code() else {
            return error.to_string();
        };
        match code {
            _ if is_busy(error) => format!(
                "another program has the file locked, for longer than {:?}",
                self.patience
            ),
            ErrorCode::DiskFull => {
                "the disk is full; nothing of this was written, make room and go on".to_owned()
            }
            ErrorCode::ReadOnly => READ_ONLY.to_owned(),
            ErrorCode::NotADatabase => {
                "the file is no database of ours (or is encrypted by other means); give another path"
                    .to_owned()
            }
            ErrorCode::DatabaseCorrupt => format!(
                "the file is damaged ({error}); keep it, and restore a backup (`store backup` makes them)"
            ),
            ErrorCode::CannotOpen => format!("the file cannot be opened ({error})"),
            ErrorCode::SystemIoFailure if is_write(error) => format!(
                "the system did not write to the file ({error}): the disk may be full, or files may not be \
                 larger here (`ulimit -f`); nothing of this was written, make room and go on"
            ),
            ErrorCode::SystemIoFailure => {
                format!("the system could not read or write the file ({error})")
            }
            _ => error.to_string(),
        }
    }
}

pub(super) fn cannot_open(path: &Path, why: String) -> Error {
    Error::Open {
        place: path.display().to_string(),
        why,
    }
}

/// The mode of a file that is open to others than its owner; nothing if it is private, or not there.
pub(super) fn open_to_others(path: &Path) -> Option<u32> {
    #[cfg(unix)]
    {
        let found = std::fs::metadata(path).ok()?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o777;
        (mode & 0o077 != 0).then_some(mode)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// With all links followed as far as the path exists, so that two ways to one file are one place.
fn absolute(path: &Path) -> Result<PathBuf, Error> {
    if path.as_os_str().is_empty() || path.is_dir() {
        let why = "it is a folder or no path at all; give the path of a file".to_owned();
        return Err(cannot_open(path, why));
    }
    std::fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .map_err(|e| cannot_open(path, e.to_string()))
}

/// Whether it is only that others use the file just now.
fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
        )
    )
}

/// Reads something of the file, which opening alone does not.
fn looked_at(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

/// Whether this user may not do to the file, or beside it, what was to be done.
fn is_forbidden(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
    )
}

/// Whether it was writing that failed.
fn is_write(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_FSYNC, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE};
    error.sqlite_error().is_some_and(|e| {
        [
            SQLITE_IOERR_WRITE,
            SQLITE_IOERR_FSYNC,
            SQLITE_IOERR_TRUNCATE,
        ]
        .contains(&e.extended_code)
    })
}

fn busy(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)
}

/// The address of a file to which nobody writes.
pub(super) fn still(path: &Path) -> String {
    let mut address = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b':' => {
                address.push(char::from(*byte));
            }
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    address.push_str("?immutable=1");
    address
}

/// A random part of a wait, so that two processes do not meet again and again.
fn jitter(wait: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish();
    let most = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX).max(1);
    Duration::from_micros(random % most)
}

/// An open transaction of a connection. All its answers are there when they are asked for.
pub(super) struct Open<'c> {
    pub(super) connection: &'c mut Connection,
    pub(super) place: &'c Place,
}

impl Tx for Open<'_> {
    fn all<'t>(
        &'t mut self,
        statements: Vec<Statement<'t>>,
    ) -> BoxFuture<'t, Result<Vec<Answer>, SqlError>> {
        let answers = statements
            .iter()
            .map(|statement| answer(self.connection, statement))
            .collect::<rusqlite::Result<Vec<_>>>()
            .map_err(|e| self.place.error(&e));
        Box::pin(std::future::ready(answers))
    }

    fn clock(&self) -> &'static str {
        "SELECT CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)"
    }
}

fn answer(connection: &Connection, statement: &Statement<'_>) -> rusqlite::Result<Answer> {
    let mut prepared = connection.prepare_cached(statement.sql)?;
    // `$2` is a name to SQLite, numbered by where it first stands.
    for i in 1..=prepared.parameter_count() {
        let number = prepared
            .parameter_name(i)
            .and_then(|name| name.get(1..)?.parse::<usize>().ok());
        let cell = number.and_then(|n| statement.values.get(n.checked_sub(1)?));
        let cell = cell.ok_or(rusqlite::Error::InvalidParameterCount(
            statement.values.len(),
            i,
        ))?;
        prepared.raw_bind_parameter(i, Bound(cell))?;
    }
    let columns = prepared.column_count();
    let mut rows = Vec::new();
    let mut raw = prepared.raw_query();
    while let Some(row) = raw.next()? {
        let cells = (0..columns).map(|i| Ok(cell(row.get_ref(i)?)));
        rows.push(Row(cells.collect::<rusqlite::Result<_>>()?));
    }
    drop(raw);
    let written = if prepared.readonly() {
        0
    } else {
        connection.changes()
    };
    Ok(Answer { rows, written })
}

/// What is no value of ours becomes one that whoever reads the row finds to be of a wrong type.
fn cell(value: ValueRef<'_>) -> Cell<'static> {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(n) => Cell::Int(n),
        ValueRef::Real(n) => Cell::Text(n.to_string().into()),
        ValueRef::Text(text) => match String::from_utf8(text.to_vec()) {
            Ok(text) => Cell::Text(text.into()),
            Err(e) => Cell::Bytes(e.into_bytes().into()),
        },
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec().into()),
    }
}

struct Bound<'a>(&'a Cell<'a>);

impl rusqlite::ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Cell::Null => ValueRef::Null,
            Cell::Int(n) => ValueRef::Integer(*n),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            Cell::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
