//! `paraph runs list`.

use super::{RunJson, standing};
use crate::args::RunsListArgs;
use crate::cells::{short_time, status, word};
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::stores::Kept;
use crate::suggest::hint;
use crate::terminal::printable_line;
use paraph_gateway::Stop;
use paraph_graph::{RunQuery, RunRow, RunStatus};
use serde::Serialize;

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

/// A run in a list.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    run: RunJson<'a>,
    /// With what it ended, if it is over and its end is still there.
    stop_reason: Option<String>,
}

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
    let stops = stops(kept, &rows).await;
    if args.json {
        let listed = rows.iter().zip(&stops).map(|(row, stop)| Listed {
            run: RunJson::of(row),
            stop_reason: stop.as_ref().map(ToString::to_string),
        });
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
    lines.extend(
        rows.iter()
            .zip(&stops)
            .map(|(row, stop)| line(row, stop.as_ref())),
    );
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

/// With what runs that are over ended. One that cannot be read any more has no reason here, but is listed.
async fn stops(kept: &Kept, rows: &[RunRow]) -> Vec<Option<Stop>> {
    let mut stops = Vec::with_capacity(rows.len());
    for row in rows {
        stops.push(match row.status {
            RunStatus::Success => match super::show::result(kept, row).await {
                Ok(result) => result.map(|result| result.stop().clone()),
                Err(_) => None,
            },
            _ => None,
        });
    }
    stops
}

fn line(row: &RunRow, stop: Option<&Stop>) -> Vec<String> {
    vec![
        row.id.to_string(),
        printable_line(&row.thread, NAME),
        printable_line(&row.graph, NAME),
        match stop {
            // It came to its end, but not to what was asked of it.
            Some(stop) if stop.exit_code() != FINISHED => {
                printable_line(&format!("ended: {stop}"), NAME)
            }
            _ => standing(row),
        },
        short_time(row.created_ms),
        short_time(row.updated_ms),
    ]
}
