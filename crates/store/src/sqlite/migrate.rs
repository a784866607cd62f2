//! The formats of the file, and the way from an older one to the newest.

use super::connection::{Place, cannot_open};
use crate::error::Error;
use rusqlite::{Connection, TransactionBehavior};
use std::path::PathBuf;

/// What makes format n+1 of format n, for n from 0.
const STEPS: [&str; 4] = [
    include_str!("v1.sql"),
    include_str!("v2.sql"),
    include_str!("v3.sql"),
    include_str!("v4.sql"),
];

/// How SQLite and `file` know whose a database is: "para" in ASCII.
const OURS: i64 = 0x7061_7261;

/// Brings the file to the newest format. An older one is copied first.
pub(super) fn up_to_date(connection: &mut Connection, place: &Place) -> Result<(), Error> {
    by_steps(connection, place, &STEPS)
}

pub(super) fn by_steps(
    connection: &mut Connection,
    place: &Place,
    steps: &[&str],
) -> Result<(), Error> {
    let refused = |e: rusqlite::Error| place.refused(&e);
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let found = place.patiently(|| format_of(connection)).map_err(refused)?;
    check(found, known, connection, place)?;
    place.log_ahead(connection)?;
    if found == known {
        return Ok(());
    }
    if found > 0 {
        back_up(connection, place, found)?;
    }
    let found = place.patiently(|| {
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been here while this one waited.
        let found = format_of(&step)?;
        if found < known {
            for sql in steps.iter().skip(usize::try_from(found).unwrap_or(0)) {
                step.execute_batch(sql)?;
            }
            step.pragma_update(None, "application_id", OURS)?;
            step.pragma_update(None, "user_version", known)?;
        }
        step.commit()?;
        Ok(found)
    });
    not_newer(found.map_err(refused)?, known, place)
}

/// Whether a file that can only be read is one of the newest format.
pub(super) fn is_up_to_date(connection: &Connection, place: &Place) -> Result<(), Error> {
    let known = newest();
    let found = place.patiently(|| format_of(connection));
    let found = found.map_err(|e| place.refused(&e))?;
    check(found, known, connection, place)?;
    if found < known {
        let why = format!(
            "its format is {found}, this program reads format {known}, and it cannot be brought up to date, for \
             it is read-only: open it once as somebody who may write to it and to its folder"
        );
        return Err(cannot_open(place.path(), why));
    }
    Ok(())
}

fn not_newer(found: i64, known: i64, place: &Place) -> Result<(), Error> {
    if found <= known {
        return Ok(());
    }
    Err(Error::Newer {
        place: place.path().display().to_string(),
        found,
        known,
    })
}

pub(super) fn newest() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

pub(super) fn format_of(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Refuses what a newer version wrote, and what is not ours.
fn check(found: i64, known: i64, connection: &Connection, place: &Place) -> Result<(), Error> {
    if found != 0 {
        whose(connection, place)?;
        if found < 0 {
            let why = format!("its format is {found}, and there is none below 0; restore a backup");
            return Err(cannot_open(place.path(), why));
        }
        return not_newer(found, known, place);
    }
    let tables = place
        .patiently(|| {
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| {
                row.get::<_, i64>(0)
            })
        })
        .map_err(|e| place.refused(&e))?;
    if tables > 0 {
        // Two processes may make the file at once: look again whether it is ours by now.
        return match format_of(connection) {
            Ok(found) if found > 0 => whose(connection, place),
            _ => Err(foreign(place)),
        };
    }
    Ok(())
}

pub(super) fn whose(connection: &Connection, place: &Place) -> Result<(), Error> {
    let id = place
        .patiently(|| connection.pragma_query_value(None, "application_id", |row| row.get(0)))
        .map_err(|e| place.refused(&e))?;
    match id {
        OURS => Ok(()),
        _ => Err(foreign(place)),
    }
}

fn foreign(place: &Place) -> Error {
    let why = "the file is a database of another program; give another path";
    cannot_open(place.path(), why.to_owned())
}

fn back_up(connection: &Connection, place: &Place, format: i64) -> Result<(), Error> {
    let mut name = place.path().as_os_str().to_owned();
    name.push(format!(".v{format}.bak"));
    let copy = PathBuf::from(name);
    place.private(&copy, false)?;
    place.copy_to(connection, &copy).map_err(|e| {
        let why = format!(
            "before its format changes it is copied to {}, and that failed ({e})",
            copy.display()
        );
        cannot_open(place.path(), why)
    })
}
