//! `paraph explain`: what a stop reason means, and what one can do about it.

use crate::args::ExplainArgs;
use crate::failure::{FINISHED, Failure};
use crate::output::{print, print_json, table};
use crate::suggest::hint;
use paraph_gateway::{Explanation, Status, Stop};
use serde::Serialize;

/// An explanation in JSON.
#[derive(Serialize)]
struct Row {
    reason: String,
    status: Status,
    exit_code: u8,
    happened: &'static str,
    remedy: &'static str,
}

pub(super) fn explain(args: &ExplainArgs) -> Result<u8, Failure> {
    let stops = match &args.reason {
        None => Stop::all(),
        Some(reason) => meant(reason)?,
    };
    let explained: Vec<_> = stops.iter().map(Stop::explain).collect();
    if args.json {
        print_json(&explained.into_iter().map(row).collect::<Vec<_>>())?;
    } else if args.reason.is_none() {
        print(&listed(&explained))?;
    } else {
        let texts: Vec<_> = explained.iter().map(in_words).collect();
        print(&texts.join("\n"))?;
    }
    Ok(FINISHED)
}

/// The reason, or all of a family (`tool_denied`, `llm_error`).
fn meant(reason: &str) -> Result<Vec<Stop>, Failure> {
    // As it is copied from what a run printed.
    let reason = reason
        .strip_prefix("Stopped:")
        .unwrap_or(reason)
        .trim_start();
    if let Ok(stop) = reason.parse() {
        return Ok(vec![stop]);
    }
    let all = Stop::all();
    let family = format!("{}:", reason.trim_end_matches(':'));
    let members: Vec<_> = all
        .iter()
        .filter(|stop| stop.to_string().starts_with(&family))
        .cloned()
        .collect();
    if !members.is_empty() {
        return Ok(members);
    }
    let names: Vec<_> = all.iter().map(ToString::to_string).collect();
    let hint = hint(reason, names.iter().map(String::as_str));
    let reason = crate::terminal::printable_line(reason, 100);
    Err(Failure::Usage(format!(
        "`{reason}` is no stop reason{hint}\nknown: {}",
        names.join(", ")
    )))
}

fn row(explanation: Explanation) -> Row {
    Row {
        reason: explanation.reason,
        status: explanation.status,
        exit_code: explanation.exit_code,
        happened: explanation.happened,
        remedy: explanation.remedy,
    }
}

fn listed(explained: &[Explanation]) -> String {
    let rows: Vec<_> = explained
        .iter()
        .map(|one| {
            vec![
                one.reason.clone(),
                one.exit_code.to_string(),
                one.happened.to_owned(),
            ]
        })
        .collect();
    table(&rows)
}

fn in_words(one: &Explanation) -> String {
    let reason = crate::terminal::printable_line(&one.reason, 300);
    format!(
        "{reason} ({}, exit code {})\n  What happened: {}\n  What to do:    {}\n",
        one.status, one.exit_code, one.happened, one.remedy
    )
}
