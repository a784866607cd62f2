//! What went wrong at the server or on the way to it: whether another try may go better, and in words.
//!
//! Pure. A password is in none of these words, since no message of the server or the client library has it.

use super::address::Address;
use crate::{error::Error, sql::SqlError};
use deadpool_postgres::{HookError, PoolError};
use std::{error::Error as _, io};
use tokio_postgres::error::SqlState;

/// For the rules.
pub(super) fn sql_error(e: &tokio_postgres::Error) -> SqlError {
    if may_go_better(e) {
        SqlError::Transient(words(e))
    } else {
        SqlError::Lasting(words(e))
    }
}

/// For the rules, when there is no connection.
pub(super) fn pool_error(e: &PoolError) -> SqlError {
    match backend(e) {
        Some(e) => sql_error(e),
        None => SqlError::Transient(match e {
            PoolError::Timeout(_) => "the server does not answer".to_owned(),
            e => e.to_string(),
        }),
    }
}

/// What the client library said, if it was that.
pub(super) fn backend(e: &PoolError) -> Option<&tokio_postgres::Error> {
    match e {
        PoolError::Backend(e) | PoolError::PostCreateHook(HookError::Backend(e)) => Some(e),
        _ => None,
    }
}

/// Whether the same again may go better: the connection is lost, the server is restarting or full of
/// connections, or somebody else was in the way.
pub(super) fn may_go_better(e: &tokio_postgres::Error) -> bool {
    let Some(code) = e.code() else {
        return is_lost(e);
    };
    is_lost(e)
        || code.code().starts_with("40")
        || [
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::CONFIGURATION_LIMIT_EXCEEDED,
        ]
        .contains(code)
}

/// Whether the connection is of no more use, so that it is not known what became of what was under way.
pub(super) fn is_lost(e: &tokio_postgres::Error) -> bool {
    match e.code() {
        // 08: the connection; 57P: the server goes down or comes up; 25P03: a transaction that slept too long.
        Some(code) => {
            let code = code.code();
            code.starts_with("08") || code.starts_with("57P") || code == "25P03"
        }
        // What is not understood, TLS among it, will not be understood the next time.
        None => {
            let odd = [io::ErrorKind::InvalidInput, io::ErrorKind::InvalidData];
            e.is_closed() || cause::<io::Error>(e).is_some_and(|io| !odd.contains(&io.kind()))
        }
    }
}

fn cause<T: std::error::Error + 'static>(e: &tokio_postgres::Error) -> Option<&T> {
    e.source().and_then(|cause| cause.downcast_ref())
}

/// In one line: what the server said with its code, or the chain of what happened on the way.
pub(super) fn words(e: &tokio_postgres::Error) -> String {
    if let Some(db) = e.as_db_error() {
        return match (db.code(), db.hint()) {
            (&SqlState::DISK_FULL, _) => format!("the server's disk is full: {}", db.message()),
            (&SqlState::READ_ONLY_SQL_TRANSACTION, _) => {
                "the server only reads (is it a standby?)".to_owned()
            }
            (&SqlState::PROGRAM_LIMIT_EXCEEDED, _) => format!(
                "a name or a key, such as the place of a deeply nested subgraph, is longer than the server's \
                 indexes take: {}",
                db.message()
            ),
            (code, Some(hint)) => format!("{} ({}; {hint})", db.message(), code.code()),
            (code, None) => format!("{} ({})", db.message(), code.code()),
        };
    }
    let mut words = e.to_string();
    let mut cause = e.source();
    while let Some(e) = cause {
        words.push_str(": ");
        words.push_str(&e.to_string());
        cause = e.source();
    }
    words
}

/// Why a store cannot be opened, with what to do about it.
pub(super) fn opening(e: &PoolError, at: &Address) -> Error {
    let why = match backend(e) {
        Some(e) => advice(e, at).unwrap_or_else(|| words(e)),
        None => match e {
            PoolError::Timeout(_) => format!("{} does not answer", at.hosts()),
            e => e.to_string(),
        },
    };
    Error::Open {
        place: at.place(),
        why,
    }
}

fn advice(e: &tokio_postgres::Error, at: &Address) -> Option<String> {
    if let Some(code) = e.code() {
        let said = words(e);
        return Some(match code.code() {
            "28P01" | "28000" => {
                format!(
                    "user `{}` is not let in; is the password right? ({said})",
                    at.user()
                )
            }
            "3D000" => format!(
                "the server has no database `{0}`; make it with `createdb {0}`",
                at.database()
            ),
            "57P03" => format!("the server is starting or stopping ({said})"),
            "42501" => format!(
                "user `{}` may not make tables there; grant it CREATE on the schema, or make it the owner of the database ({said})",
                at.user()
            ),
            _ => return None,
        });
    }
    let io = cause::<io::Error>(e)?;
    let hosts = at.hosts();
    Some(match io.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("nothing listens at {hosts}; is the server running?")
        }
        io::ErrorKind::TimedOut => format!("{hosts} does not answer"),
        io::ErrorKind::NotFound => format!("there is no socket at {hosts}"),
        _ if is_lookup(io) => format!("the host of {hosts} is not known ({io})"),
        _ => return None,
    })
}

/// Whether no server was asked because nobody knows where it is.
pub(super) fn is_unknown_host(e: &PoolError) -> bool {
    backend(e)
        .and_then(cause::<io::Error>)
        .is_some_and(is_lookup)
}

/// The standard library has no kind for it, but always these words.
fn is_lookup(e: &io::Error) -> bool {
    e.to_string().contains("failed to lookup address")
}
