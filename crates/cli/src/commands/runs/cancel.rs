//! `paraph runs cancel`: a wish that is written down, whichever process drives the run, and what came of it.

use super::{RunJson, row, standing};
use crate::args::CancelArgs;
use crate::cells::time;
use crate::commands::approvals::take_back;
use crate::config::Config;
use crate::failure::{BROKEN, FINISHED, Failure};
use crate::output::{note, print, print_json};
use crate::person::local;
use crate::stores::Kept;
use crate::terminal::printable;
use paraph_gateway::Stop;
use paraph_graph::{CancelReason, RunRow, RunStatus};
use serde::Serialize;
use std::time::Duration;
use tokio::time::Instant;

/// How often the run is looked at.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Serialize)]
struct Outcome<'a> {
    /// Whether this made the run end.
    cancelled: bool,
    /// Whether the run has come to rest.
    ended: bool,
    #[serde(flatten)]
    run: RunJson<'a>,
}

pub(super) async fn cancel(kept: &Kept, config: &Config, args: &CancelArgs) -> Result<u8, Failure> {
    let before = row(kept, &args.which).await?;
    let mut row = kept.threads.cancel(before.id, CancelReason::User).await?;
    if !args.no_wait && !ended(&row) {
        note("cancelling; waiting until the run has ended");
        row = wait(kept, row, Duration::from_secs(args.wait)).await?;
    }
    let was_over = before.status.rests();
    if matches!(row.status, RunStatus::Cancelled | RunStatus::Paused) {
        let by = local(&config.environment);
        let taken = (by.as_str(), "its run was cancelled");
        take_back(kept, row.id, taken).await?;
    }
    let result = match row.status {
        RunStatus::Success => super::show::result(kept, &row).await.ok().flatten(),
        _ => None,
    };
    let stop = result.as_ref().map(paraph_agents::RunResult::stop);
    let outcome = Outcome {
        cancelled: row.status == RunStatus::Cancelled && !was_over,
        ended: ended(&row),
        run: RunJson::of(&row, stop),
    };
    match args.json {
        true => print_json(&outcome)?,
        false => print(&printable(&in_words(&row, stop, was_over)))?,
    }
    Ok(match outcome.ended || args.no_wait {
        true => FINISHED,
        // The wish stands, but it has not come true.
        false => BROKEN,
    })
}

fn ended(row: &RunRow) -> bool {
    row.status.rests()
}

/// Looks at the run until it has ended, or for so long.
async fn wait(kept: &Kept, mut row: RunRow, longest: Duration) -> Result<RunRow, Failure> {
    let until = Instant::now().checked_add(longest);
    loop {
        if let Some(now) = kept.threads.run(row.id).await? {
            row = now;
        }
        if !ended(&row) && !row.live {
            // Whoever would have seen the wish is gone, so nobody drives the run.
            row = kept.threads.cancel(row.id, CancelReason::User).await?;
        }
        if ended(&row) || until.is_some_and(|until| Instant::now() >= until) {
            return Ok(row);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// When it took hold, and what really happened.
fn in_words(row: &RunRow, stop: Option<&Stop>, was_over: bool) -> String {
    let id = row.id;
    if was_over && row.status == RunStatus::Paused {
        return format!(
            "run {id} waits, and nothing of it is under way; what it had asked for and nobody had started is taken back"
        );
    }
    if was_over {
        return format!(
            "run {id} was over already ({}); nothing was cancelled",
            standing(row, stop)
        );
    }
    let wish = row.cancel;
    let wished = wish.map_or_else(String::new, |cancel| {
        format!(", wished {}", time(cancel.wished_ms))
    });
    if !ended(row) {
        return format!(
            "run {id} has not ended yet{wished}; the wish stands, and its process will see it (`paraph runs show {id}`)"
        );
    }
    let done = wish.and_then(|cancel| cancel.done_ms);
    let took_hold = match (wish, done) {
        (Some(cancel), Some(done)) => format!(
            "{wished}, took hold {} ({} ms later)",
            time(done),
            done.saturating_sub(cancel.wished_ms)
        ),
        _ => wished,
    };
    match row.status {
        RunStatus::Cancelled => format!("run {id} was cancelled{took_hold}"),
        // It was quicker than the wish.
        _ => format!(
            "run {id} was not cancelled: it had come to its end ({}){took_hold}",
            standing(row, stop)
        ),
    }
}
