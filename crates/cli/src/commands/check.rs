//! `paraph check`: every mistake in an agent file at once. It needs no network and no key.

use crate::agent_file::{line, read};
use crate::args::CheckArgs;
use crate::failure::{FINISHED, Failure, USAGE};
use crate::output::{note, print, print_json};
use paraph_agents::Mistake;
use serde::Serialize;

/// What was found, in JSON.
#[derive(Serialize)]
struct Report<'r> {
    file: String,
    ok: bool,
    mistakes: &'r [Mistake],
    remarks: &'r [Mistake],
}

pub(super) fn check(args: &CheckArgs) -> Result<u8, Failure> {
    let read = read(&args.file)?;
    let (mistakes, remarks): (&[Mistake], &[Mistake]) = match &read {
        Ok(checked) => (&[], &checked.remarks),
        Err(mistakes) => (mistakes, &[]),
    };
    let code = if mistakes.is_empty() { FINISHED } else { USAGE };
    if args.json {
        print_json(&Report {
            file: args.file.display().to_string(),
            ok: mistakes.is_empty(),
            mistakes,
            remarks,
        })?;
        return Ok(code);
    }
    for mistake in mistakes {
        print(&line(&args.file, mistake))?;
    }
    for remark in remarks {
        note(&format!("note: {}", line(&args.file, remark)));
    }
    match mistakes.len() {
        0 => print(&format!("{}: no mistakes", args.file.display()))?,
        1 => note("1 mistake"),
        many => note(&format!("{many} mistakes")),
    }
    Ok(code)
}
