//! `paraph runs list`.

use super::{RunJson, standing, status as status_of};
use crate::args::RunsListArgs;
use crate::cells::{short_time, status, word};
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::stores::Kept;
use crate::suggest::hint;
use crate::terminal::printable_line;
use paraph_gateway::Stop;
use paraph_graph::{RunQuery, RunRow, RunStatus};

/// How many runs are looked at together where how they ended decides.
const PAGE: usize = 200;

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
    let status = args.status.as_deref().map(wanted).transpose()?;
    let query = RunQuery {
        thread: args.thread.clone(),
        status,
        limit: Some(args.limit),
        offset: args.offset,
        ..RunQuery::default()
    };
    let rows = match status {
        Some(status @ (RunStatus::Success | RunStatus::Stopped)) => {
            ended(kept, query.clone(), status).await?
        }
        _ => with_ends(kept, kept.threads.runs(&query).await?).await,
    };
    if args.json {
        let listed = rows
            .iter()
            .map(|(row, stop)| RunJson::of(row, stop.as_ref()));
        print_json(&listed.collect::<Vec<_>>())?;
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
    lines.extend(rows.iter().map(|(row, stop)| line(row, stop.as_ref())));
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

/// Runs that ended so: the store says of both kinds only that they are over, so more are looked at.
async fn ended(
    kept: &Kept,
    wanted: RunQuery,
    ended: RunStatus,
) -> Result<Vec<(RunRow, Option<Stop>)>, Failure> {
    let limit = wanted.limit.unwrap_or(usize::MAX);
    let mut query = RunQuery {
        // What the engine itself stopped stands among them.
        status: (ended == RunStatus::Success).then_some(ended),
        limit: Some(PAGE),
        offset: 0,
        ..wanted.clone()
    };
    let (mut found, mut passed) = (Vec::new(), 0);
    loop {
        let page = kept.threads.runs(&query).await?;
        let is_last = page.len() < PAGE;
        query.offset += page.len();
        let over = |row: &RunRow| matches!(row.status, RunStatus::Success | RunStatus::Stopped);
        let page = page.into_iter().filter(over).collect();
        for (row, stop) in with_ends(kept, page).await {
            if status_of(&row, stop.as_ref()) != ended {
                continue;
            }
            if passed < wanted.offset {
                passed += 1;
            } else if found.len() < limit {
                found.push((row, stop));
            }
        }
        if is_last || found.len() >= limit {
            return Ok(found);
        }
    }
}

/// Runs, and with what those that are over ended. One that cannot be read any more has no reason here, but
/// is listed.
async fn with_ends(kept: &Kept, rows: Vec<RunRow>) -> Vec<(RunRow, Option<Stop>)> {
    let mut ends = Vec::with_capacity(rows.len());
    for row in rows {
        let stop = match row.status {
            RunStatus::Success => match super::show::result(kept, &row).await {
                Ok(result) => result.map(|result| result.stop().clone()),
                Err(_) => None,
            },
            _ => None,
        };
        ends.push((row, stop));
    }
    ends
}

fn line(row: &RunRow, stop: Option<&Stop>) -> Vec<String> {
    vec![
        row.id.to_string(),
        printable_line(&row.thread, NAME),
        printable_line(&row.graph, NAME),
        printable_line(&standing(row, stop), NAME),
        short_time(row.created_ms),
        short_time(row.updated_ms),
    ]
}
