//! `paraph runs list`.

use super::{RunJson, standing};
use crate::args::RunsListArgs;
use crate::cells::{short_time, status, word};
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::stores::Kept;
use crate::suggest::hint;
use crate::terminal::printable_line;
use paraph_graph::{RunQuery, RunRow, RunStatus};

/// The longest name that is shown in a column, in characters.
const NAME: usize = 60;

const STATUSES: [RunStatus; 7] = [
    RunStatus::Pending,
    RunStatus::Running,
    RunStatus::Success,
    RunStatus::Paused,
    RunStatus::Stopped,
    RunStatus::Error,
    RunStatus::Cancelled,
];

pub(super) async fn list(kept: &Kept, args: &RunsListArgs) -> Result<u8, Failure> {
    if let Some(thread) = &args.thread {
        crate::commands::threads::row(kept, thread).await?;
    }
    let query = RunQuery {
        thread: args.thread.clone(),
        status: args.status.as_deref().map(wanted).transpose()?,
        limit: Some(args.limit),
        offset: args.offset,
        ..RunQuery::default()
    };
    let rows = kept.threads.runs(&query).await?;
    if args.json {
        print_json(&rows.iter().map(RunJson::of).collect::<Vec<_>>())?;
        return Ok(FINISHED);
    }
    if rows.is_empty() {
        let all = query.thread.is_none() && query.status.is_none() && query.offset == 0;
        note(match all {
            true => "no runs yet; `paraph run` makes one",
            false => "no run fits",
        });
        return Ok(FINISHED);
    }
    let head = ["RUN", "THREAD", "GRAPH", "STATUS", "BEGUN", "UPDATED"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(line));
    print(&table(&lines))?;
    if rows.len() == args.limit {
        note(&format!(
            "there may be more: --offset {}",
            args.offset + rows.len()
        ));
    }
    Ok(FINISHED)
}

fn wanted(text: &str) -> Result<RunStatus, Failure> {
    status(text).ok_or_else(|| {
        let known = STATUSES.map(word);
        let hint = hint(text, known.iter().map(String::as_str));
        Failure::Usage(format!(
            "--status: `{text}` is no status of a run{hint} (known: {})",
            known.join(", ")
        ))
    })
}

fn line(row: &RunRow) -> Vec<String> {
    vec![
        row.id.to_string(),
        printable_line(&row.thread, NAME),
        printable_line(&row.graph, NAME),
        standing(row),
        short_time(row.created_ms),
        short_time(row.updated_ms),
    ]
}
