//! `paraph runs …`: what is stored of runs, and what can still be done with one.

mod cancel;
mod events;
mod list;
mod resume;
mod show;

pub(super) use resume::go_on;

use super::{on_listed, on_store};
use crate::args::{RunsCommand, WhichRun};
use crate::failure::{FINISHED, Failure};
use crate::stores::Kept;
use crate::suggest::hint;
use paraph_gateway::Stop;
use paraph_graph::{CancelReason, RunId, RunQuery, RunRow, RunStatus};
use serde::Serialize;
use serde_json::Value;

pub(super) fn run(command: &RunsCommand) -> Result<u8, Failure> {
    match command {
        RunsCommand::List(args) => on_listed(&args.store, ("runs", args.json), async |kept, _| {
            list::list(&kept, args).await
        }),
        RunsCommand::Show(args) => {
            on_store(&args.store, async |kept, _| show::show(&kept, args).await)
        }
        RunsCommand::Events(args) => on_store(&args.store, async |kept, _| {
            events::events(&kept, args).await
        }),
        RunsCommand::Resume(args) => on_store(&args.store, async |kept, config| {
            resume::resume(&kept, &config, args).await
        }),
        RunsCommand::Cancel(args) => on_store(&args.store, async |kept, config| {
            cancel::cancel(&kept, &config, args).await
        }),
    }
}

/// How many runs are looked at for a suggestion.
const KNOWN: usize = 1_000;

/// The run that is meant.
async fn row(kept: &Kept, which: &WhichRun) -> Result<RunRow, Failure> {
    match (&which.run, &which.thread) {
        (Some(id), _) => by_id(kept, id).await,
        (None, Some(thread)) => newest(kept, thread).await,
        (None, None) => Err(Failure::usage("a run's id, or --thread NAME")),
    }
}

/// The newest run of a thread.
async fn newest(kept: &Kept, thread: &str) -> Result<RunRow, Failure> {
    super::threads::row(kept, thread).await?;
    let newest = RunQuery {
        thread: Some(thread.to_owned()),
        limit: Some(1),
        ..RunQuery::default()
    };
    let mut rows = kept.threads.runs(&newest).await?;
    rows.pop()
        .ok_or_else(|| Failure::Usage(format!("there was no run on thread `{thread}`")))
}

async fn by_id(kept: &Kept, id: &str) -> Result<RunRow, Failure> {
    let parsed: Result<RunId, _> = id.trim().parse();
    if let Ok(id) = parsed
        && let Some(row) = kept.threads.run(id).await?
    {
        return Ok(row);
    }
    let some = RunQuery {
        limit: Some(KNOWN),
        ..RunQuery::default()
    };
    // A damaged row of another run only costs the suggestion.
    let rows = kept.threads.runs(&some).await;
    let is_empty = rows.as_ref().is_ok_and(Vec::is_empty);
    let rows = rows.unwrap_or_default();
    let known: Vec<_> = rows.iter().map(|row| row.id.to_string()).collect();
    let mut hint = hint(id, known.iter().map(String::as_str));
    if rows.iter().any(|row| row.thread == id) {
        hint = format!(
            "; `{id}` is a thread: use --thread {}",
            crate::stores::quoted(id)
        );
    }
    let what = match parsed {
        Ok(_) => format!("there is no run {id}"),
        Err(_) => format!("`{id}` is no run's id"),
    };
    let more = match (hint.is_empty(), is_empty) {
        (false, _) => hint,
        (true, true) => format!("; there are no runs in {}", kept.shown),
        (true, false) => "; `paraph runs list` lists those there are".to_owned(),
    };
    Err(Failure::Usage(format!("{what}{more}")))
}

/// A run in JSON: times as people and other programs read them.
#[derive(Serialize)]
struct RunJson<'a> {
    run_id: RunId,
    thread: &'a str,
    graph: &'a str,
    status: RunStatus,
    /// With what it ended, if it is over and its end is still there.
    stop_reason: Option<String>,
    /// Whether its process is heard of.
    live: bool,
    created_at: String,
    updated_at: String,
    attempts: u32,
    error: Option<&'a str>,
    cancel: Option<CancelJson>,
    arguments: &'a Value,
}

/// Somebody's wish that a run end.
#[derive(Serialize)]
struct CancelJson {
    reason: CancelReason,
    wished_at: String,
    done_at: Option<String>,
}

impl<'a> RunJson<'a> {
    /// The row, and with what the run ended if it is over and that is still there.
    fn of(row: &'a RunRow, stop: Option<&Stop>) -> RunJson<'a> {
        RunJson {
            run_id: row.id,
            thread: &row.thread,
            graph: &row.graph,
            status: status(row, stop),
            stop_reason: stop.map(ToString::to_string),
            live: row.live,
            created_at: crate::cells::time(row.created_ms),
            updated_at: crate::cells::time(row.updated_ms),
            attempts: row.attempts,
            error: row.error.as_deref(),
            cancel: row.cancel.map(|cancel| CancelJson {
                reason: cancel.reason,
                wished_at: crate::cells::time(cancel.wished_ms),
                done_at: cancel.done_ms.map(crate::cells::time),
            }),
            arguments: &row.arguments,
        }
    }
}

/// How a run stands: to the engine one is over, where to whoever started it a policy or a budget stopped it.
fn status(row: &RunRow, stop: Option<&Stop>) -> RunStatus {
    match (row.status, stop) {
        (RunStatus::Success, Some(stop)) if stop.exit_code() != FINISHED => RunStatus::Stopped,
        (status, _) => status,
    }
}

/// How a run stands, for people: one whose process is gone does not run, whatever its row says.
pub(super) fn standing(row: &RunRow, stop: Option<&Stop>) -> String {
    match (status(row, stop), stop) {
        (RunStatus::Running, _) if !row.live => "cut off".to_owned(),
        (RunStatus::Stopped, Some(stop)) => format!("stopped: {stop}"),
        (status, _) => crate::cells::word(status),
    }
}
