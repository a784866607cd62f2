//! `paraph approvals approve` and `reject`: the decision, and then the run that waits for it.

use super::{Listed, desk, flag, looked_at, refused};
use crate::args::{AfterwardsArgs, ApproveArgs, RejectArgs, RespondArgs};
use crate::commands::runs::go_on;
use crate::config::Config;
use crate::failure::{FINISHED, Failure, WAITING};
use crate::output::{note, print_json};
use crate::person::local;
use crate::stores::Kept;
use crate::terminal::{printable, printable_line};
use paraph_agents::is_called_from;
use paraph_gateway::{ActionRow, RunRef};
use paraph_graph::{RunId, RunQuery, RunRow, RunStatus};

/// The longest text of an action in a note, in characters.
const SAYS: usize = 300;

/// What was decided, if it was neither yes nor no.
pub(super) const CHANGE: &str = "asked to be changed";
pub(super) const ANSWERED: &str = "answered in words, and not done,";

/// How many runs are read at a time, and how many are looked at for the one that called an agent.
const PAGE: usize = 200;
const FARTHEST: usize = 10_000;

pub(super) async fn approve(
    kept: &Kept,
    config: &Config,
    args: &ApproveArgs,
) -> Result<u8, Failure> {
    let row = looked_at(kept, &args.which).await?;
    let by = local(&config.environment);
    let now = desk(kept).approve(row.id(), &row.digest, by.as_str()).await;
    let now = now.map_err(|error| refused(kept, error))?;
    note(&match now.version == row.version {
        true => format!("action {} was approved by {by} before", row.id()),
        false => told("approved", &by, &now),
    });
    if now.state.is_undecided() {
        let (given, needed) = (now.votes.len(), now.action.said.quorum);
        note(&format!(
            "{given} of {needed} approvals are given; it waits for the others"
        ));
        if args.then.printing.json {
            print_json(&Listed::of(&now))?;
        }
        return Ok(WAITING);
    }
    afterwards(kept, config, &now, &args.then).await
}

pub(super) async fn reject(kept: &Kept, config: &Config, args: &RejectArgs) -> Result<u8, Failure> {
    let row = looked_at(kept, &args.which).await?;
    let by = local(&config.environment);
    let desk = desk(kept);
    let now = desk
        .reject(row.id(), &row.digest, by.as_str(), &args.reason)
        .await;
    let now = now.map_err(|error| refused(kept, error))?;
    note(&match now.version == row.version {
        true => format!("action {} was refused by {by} before", row.id()),
        false => told("refused", &by, &now),
    });
    afterwards(kept, config, &now, &args.then).await
}

pub(super) async fn ask_change(
    kept: &Kept,
    config: &Config,
    args: &RejectArgs,
) -> Result<u8, Failure> {
    let row = looked_at(kept, &args.which).await?;
    let by = local(&config.environment);
    let desk = desk(kept);
    let now = desk
        .ask_change(row.id(), &row.digest, by.as_str(), &args.reason)
        .await;
    let now = now.map_err(|error| refused(kept, error))?;
    note(&told(CHANGE, &by, &now));
    afterwards(kept, config, &now, &args.then).await
}

pub(super) async fn respond(
    kept: &Kept,
    config: &Config,
    args: &RespondArgs,
) -> Result<u8, Failure> {
    let row = looked_at(kept, &args.which).await?;
    let by = local(&config.environment);
    let desk = desk(kept);
    let now = desk
        .respond(row.id(), &row.digest, by.as_str(), &args.answer)
        .await;
    let now = now.map_err(|error| refused(kept, error))?;
    note(&told(ANSWERED, &by, &now));
    afterwards(kept, config, &now, &args.then).await
}

/// What was decided, for the one who did.
pub(super) fn told(what: &str, by: &str, row: &ActionRow) -> String {
    format!(
        "{what} by {by} (unverified): {}",
        printable_line(&row.action.said.says, SAYS)
    )
}

/// Drives the run of an action about which somebody has decided.
pub(super) async fn afterwards(
    kept: &Kept,
    config: &Config,
    row: &ActionRow,
    then: &AfterwardsArgs,
) -> Result<u8, Failure> {
    let said = &row.action.said;
    let flag = flag(kept);
    let stands = |run: &str| {
        let run = printable_line(run, SAYS);
        format!("the decision stands; go on with the run: paraph runs resume {run}{flag}")
    };
    let run = match waiting_run(kept, &said.run).await {
        Ok(run) => run,
        Err(failure) => return Err(and(failure, &stands(&said.run.run))),
    };
    let stands = stands(&run.id.to_string());
    if then.no_run {
        note(&stands);
        if then.printing.json {
            print_json(&Listed::of(row))?;
        }
        return Ok(FINISHED);
    }
    match go_on(kept, config, run, &then.printing).await {
        Err(failure) => Err(and(failure, &stands)),
        Ok(code) => Ok(code),
    }
}

/// A failure after something that stays as it is.
fn and(failure: Failure, stands: &str) -> Failure {
    let more = |text: String| format!("{text}\n{stands}");
    match failure {
        Failure::Usage(text) => Failure::Usage(more(text)),
        Failure::Broken(text) => Failure::Broken(more(text)),
        Failure::Refused(text) => Failure::Refused(more(text)),
        Failure::ClosedPipe => Failure::ClosedPipe,
    }
}

/// The run that `paraph run` began: the action's own, or that of the agent whose agents asked for it.
pub(super) async fn waiting_run(kept: &Kept, run: &RunRef) -> Result<RunRow, Failure> {
    let gone = || {
        Failure::Usage(format!(
            "run {} is not in {} any more, and nothing of it goes on",
            printable(&run.run),
            kept.shown
        ))
    };
    let id: RunId = run.run.parse().map_err(|_| gone())?;
    let row = kept.threads.run(id).await?.ok_or_else(gone)?;
    if !row.arguments.is_null() {
        return Ok(row);
    }
    let mut callers = callers(kept, &row.thread).await?;
    match (callers.pop(), callers.is_empty()) {
        (Some(caller), true) => Ok(caller),
        (None, _) => Err(Failure::Usage(format!(
            "run {} was not begun by `paraph run`, and what began it was not found (thread `{}`)",
            row.id,
            printable(&row.thread)
        ))),
        // The names of their threads begin alike for as long as a name of a called agent's thread tells.
        (Some(last), false) => {
            let runs = callers.iter().chain([&last]).map(|row| row.id.to_string());
            Err(Failure::Usage(format!(
                "several runs may have called the agent that asked: go on with the right one by `paraph runs resume` ({})",
                runs.collect::<Vec<_>>().join(", ")
            )))
        }
    }
}

/// The runs on whose threads agents are called that work on this one: of each thread the newest.
async fn callers(kept: &Kept, thread: &str) -> Result<Vec<RunRow>, Failure> {
    let mut found: Vec<RunRow> = Vec::new();
    let mut query = RunQuery {
        limit: Some(PAGE),
        ..RunQuery::default()
    };
    while query.offset < FARTHEST {
        let page = kept.threads.runs(&query).await?;
        let whole = page.len() < PAGE;
        for row in page {
            let calls = !row.arguments.is_null() && is_called_from(thread, &row.thread);
            if calls && !found.iter().any(|known| known.thread == row.thread) {
                found.push(row);
            }
        }
        if whole {
            break;
        }
        query.offset += PAGE;
    }
    // One that is over is meant only if none goes on.
    let goes_on = |row: &RunRow| row.status != RunStatus::Success;
    if found.iter().any(goes_on) {
        found.retain(goes_on);
    }
    Ok(found)
}
