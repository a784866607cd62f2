//! `paraph threads delete`: gone for good, so a person is asked first.

use super::row;
use crate::args::DeleteArgs;
use crate::failure::{FINISHED, Failure};
use crate::output::{confirmed, note, print};
use crate::stores::Kept;
use crate::terminal::{printable, printable_line};

pub(super) async fn delete(kept: &Kept, args: &DeleteArgs) -> Result<u8, Failure> {
    // All names are looked up first: nothing is deleted if one of them is wrong.
    for name in &args.names {
        match kept.threads.thread(name).await {
            Ok(Some(_)) => {}
            Ok(None) => drop(row(kept, name).await?),
            // A damaged thread is not to be kept for ever.
            Err(error) => note(&printable(&format!("warning: {error}"))),
        }
    }
    let names = args.names.iter().map(|name| printable_line(name, 200));
    let question = format!(
        "Delete {} for good, with all checkpoints, runs and events?",
        names.collect::<Vec<_>>().join(", ")
    );
    if !args.yes && !confirmed(&question, "the threads are to be deleted for good")? {
        note("nothing was deleted");
        return Ok(FINISHED);
    }
    for name in &args.names {
        if kept.threads.delete(name).await? {
            print(&format!("deleted `{}`", printable(name)))?;
        }
    }
    Ok(FINISHED)
}
