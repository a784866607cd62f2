//! `paraph store backup`: a copy of the file, while others use it.

use crate::args::BackupArgs;
use crate::cells::bytes;
use crate::failure::{FINISHED, Failure};
use crate::output::{print, print_json};
use crate::stores::Kept;
use crate::terminal::printable;
use crate::writing::refuse_own;
use paraph_store::{Options, Sqlite};
use serde::Serialize;

#[derive(Serialize)]
struct Copied {
    store: String,
    file: String,
    bytes: u64,
}

pub(super) async fn backup(kept: &Kept, args: &BackupArgs) -> Result<u8, Failure> {
    let Some(path) = &kept.file else {
        return Err(Failure::Usage(format!(
            "{}: only a store in a file is copied by this; a Postgres is backed up by pg_dump, and single \
             threads by `paraph threads export`",
            kept.shown
        )));
    };
    let shown = args.file.display().to_string();
    refuse_own("FILE", &args.file, Some(path))?;
    // A link to nothing is something too.
    if args.file.symlink_metadata().is_ok() {
        return Err(Failure::Usage(format!(
            "{shown} is there already, and stays as it is"
        )));
    }
    let copied = Sqlite::backup(path, &args.file, Options::default().patience).await;
    copied.map_err(|error| Failure::Broken(error.to_string()))?;
    let size = std::fs::metadata(&args.file).map_or(0, |found| found.len());
    if args.json {
        print_json(&Copied {
            store: kept.shown.clone(),
            file: shown,
            bytes: size,
        })?;
        return Ok(FINISHED);
    }
    print(&printable(&format!(
        "copied {} to {shown} ({})",
        kept.shown,
        bytes(size)
    )))?;
    Ok(FINISHED)
}
