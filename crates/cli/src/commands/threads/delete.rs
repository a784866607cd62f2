//! `paraph threads delete`: gone for good, so a person is asked first.

use super::row;
use crate::args::DeleteArgs;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print};
use crate::stores::Kept;
use crate::terminal::{printable, printable_line};
use std::io::{BufRead as _, IsTerminal as _, Write as _};

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
    if !args.yes && !confirmed(&args.names)? {
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

/// Asks on the terminal. Without one nobody can be asked, and nothing is taken for granted.
fn confirmed(names: &[String]) -> Result<bool, Failure> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(Failure::usage(
            "there is nobody to ask whether the threads are to be deleted for good: use --yes",
        ));
    }
    let names: Vec<_> = names.iter().map(|name| printable_line(name, 200)).collect();
    let mut out = std::io::stderr().lock();
    let _ = write!(
        out,
        "Delete {} for good, with all checkpoints, runs and events? [y/N] ",
        names.join(", ")
    );
    let _ = out.flush();
    let mut answer = String::new();
    input
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::Usage(format!("standard input: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
