//! `paraph store migrate`: brings a store to this version's format. Every other command does so too when it
//! opens the store; this one says what it did.

use crate::args::StoreJsonArgs;
use crate::commands::{block_on, config_of};
use crate::failure::{FINISHED, Failure};
use crate::output::{print, print_json};
use crate::stores::{Kept, address, file_of, missing};
use crate::terminal::printable;
use paraph_store::Sqlite;
use serde::Serialize;

#[derive(Serialize)]
struct Migrated {
    store: String,
    /// The format that was found; nothing if there was no store, or if it is on a server.
    before: Option<i64>,
    /// The format now; nothing on a server.
    now: Option<i64>,
    /// The copy that was made before.
    backup: Option<String>,
}

pub(super) fn migrate(args: &StoreJsonArgs) -> Result<u8, Failure> {
    let config = config_of(&args.store)?;
    if let Some(missing) = missing(&config)? {
        return Err(Failure::Usage(format!("{missing}; `paraph run` makes one")));
    }
    let migrated = block_on(async {
        let file = file_of(&address(&config)?.text);
        let before = match &file {
            // What is wrong with the file, its opening says better.
            Some(file) => Sqlite::format(file)
                .await
                .map_or((None, None), |(found, newest)| (found, Some(newest))),
            None => (None, None),
        };
        let kept = Kept::open(&config).await?;
        let changed = matches!(before, (Some(found), Some(newest)) if found < newest);
        Ok::<_, Failure>(Migrated {
            store: kept.shown.clone(),
            before: before.0,
            now: before.1,
            backup: file
                .filter(|_| changed)
                .zip(before.0)
                .map(|(file, format)| format!("{}.v{format}.bak", file.display())),
        })
    })?;
    match args.json {
        true => print_json(&migrated)?,
        false => print(&printable(&in_words(&migrated)))?,
    }
    Ok(FINISHED)
}

fn in_words(migrated: &Migrated) -> String {
    let store = &migrated.store;
    match (migrated.before, migrated.now) {
        (Some(before), Some(now)) if before < now => {
            let copy = migrated.backup.as_deref().unwrap_or("nothing");
            format!("{store}: from format {before} to {now}; the old one was copied to {copy}")
        }
        (Some(_), Some(now)) => format!("{store}: has format {now}, which is this version's"),
        (None, Some(now)) => format!("{store}: made, in format {now}"),
        (_, None) => format!("{store}: is up to date"),
    }
}
