//! `paraph threads prune`, and the retention that the settings ask for after a run.

use super::row;
use crate::args::PruneArgs;
use crate::cells::{age, count, now_ms};
use crate::config::Config;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json};
use crate::stores::Kept;
use crate::terminal::printable;
use paraph_graph::{Keep, RunId, RunQuery, RunStatus, ThreadQuery};
use serde::Serialize;
use std::time::Duration;

/// How many threads are listed at once.
const PAGE: usize = 500;

/// How many runs are looked at for one that is not over.
const RUNS: usize = 50;

#[derive(Default, Serialize)]
struct Outcome {
    thread: String,
    checkpoints: u64,
    events: u64,
    /// Left alone: something on it is pending.
    pending: bool,
    /// What that is.
    waits: Option<Pending>,
    dry_run: bool,
}

/// What is pending on a thread.
#[derive(Serialize)]
struct Pending {
    /// The newest run that is not over, if there is one.
    run: Option<RunId>,
    run_status: Option<String>,
    because: String,
}

pub(super) async fn prune(kept: &Kept, args: &PruneArgs) -> Result<u8, Failure> {
    let keep = keep(args)?;
    let names = match &args.name {
        Some(name) => vec![row(kept, name).await?.name],
        None => all(kept).await?,
    };
    let mut outcomes = Vec::new();
    for name in names {
        let outcome = match done(kept, &name, (keep, args.dry_run)).await {
            // One of many that is busy holds up no other.
            Err(paraph_graph::Error::Conflict { holder, .. }) if args.all => {
                busy(name, holder, args.dry_run)
            }
            done => done?,
        };
        if !args.json {
            print(&in_words(&outcome))?;
        }
        outcomes.push(outcome);
    }
    match (args.json, outcomes.is_empty()) {
        (true, _) => print_json(&outcomes)?,
        (false, true) => note("no threads yet"),
        (false, false) => {}
    }
    Ok(FINISHED)
}

fn keep(args: &PruneArgs) -> Result<Keep, Failure> {
    match (args.keep, args.older_than.as_deref()) {
        (Some(0), _) => Err(Failure::usage(
            "--keep: at least one checkpoint stays; to delete all, use `threads delete`",
        )),
        (Some(last), _) => Ok(Keep::Last(last)),
        (None, Some(text)) => {
            let age = age(text).map_err(|why| Failure::Usage(format!("--older-than: {why}")))?;
            Ok(since(age))
        }
        (None, None) => Err(Failure::usage("--keep N or --older-than AGE")),
    }
}

fn since(age: Duration) -> Keep {
    let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    Keep::Since(now_ms().saturating_sub(age))
}

async fn all(kept: &Kept) -> Result<Vec<String>, Failure> {
    let mut query = ThreadQuery {
        limit: Some(PAGE),
        ..ThreadQuery::default()
    };
    let mut names = Vec::new();
    loop {
        let page = kept.threads.threads(&query).await?;
        names.extend(page.iter().map(|row| row.name.clone()));
        if page.len() < PAGE {
            return Ok(names);
        }
        query.offset += page.len();
    }
}

/// Prunes, or only asks what that would do.
async fn done(
    kept: &Kept,
    name: &str,
    (keep, dry_run): (Keep, bool),
) -> Result<Outcome, paraph_graph::Error> {
    let pruned = match dry_run {
        true => kept.threads.prunable(name, keep).await?,
        false => kept.threads.prune(name, keep).await?,
    };
    Ok(Outcome {
        thread: name.to_owned(),
        checkpoints: pruned.checkpoints,
        events: pruned.events,
        pending: pruned.pending,
        waits: match pruned.pending {
            true => Some(pending(kept, name).await?),
            false => None,
        },
        dry_run,
    })
}

/// What is pending on a thread.
async fn pending(kept: &Kept, name: &str) -> Result<Pending, paraph_graph::Error> {
    let newest = RunQuery {
        thread: Some(name.to_owned()),
        limit: Some(RUNS),
        ..RunQuery::default()
    };
    let runs = kept.threads.runs(&newest).await?;
    let unfinished = runs.iter().find(|run| run.status != RunStatus::Success);
    let row = kept.threads.thread(name).await?;
    let because = match &row {
        Some(row) if !row.interrupts.is_empty() => {
            let asking = row
                .interrupts
                .iter()
                .map(|asked| format!("`{}`", asked.node));
            format!(
                "{} waits for an answer",
                asking.collect::<Vec<_>>().join(", ")
            )
        }
        Some(row) if !row.next.is_empty() => format!("{} is due", super::names(&row.next)),
        _ => match unfinished {
            Some(_) => "it is not over".to_owned(),
            None => "its last superstep is not closed".to_owned(),
        },
    };
    Ok(Pending {
        run: unfinished.map(|run| run.id),
        run_status: unfinished.map(|run| super::super::runs::standing(run, None)),
        because,
    })
}

/// What one of many does that is busy just now.
fn busy(name: String, holder: Option<RunId>, dry_run: bool) -> Outcome {
    Outcome {
        thread: name,
        pending: true,
        waits: Some(Pending {
            run: holder,
            run_status: Some(crate::cells::word(RunStatus::Running)),
            because: "a run drives it".to_owned(),
        }),
        dry_run,
        ..Outcome::default()
    }
}

fn in_words(outcome: &Outcome) -> String {
    let name = printable(&outcome.thread);
    if let Some(pending) = &outcome.waits {
        let because = printable(&pending.because);
        return match (pending.run, &pending.run_status) {
            (Some(run), Some(status)) => format!(
                "`{name}`: left alone, since something on it is pending: {because}, and run {run} is {status}"
            ),
            _ => format!("`{name}`: left alone, since something on it is pending: {because}"),
        };
    }
    let would = if outcome.dry_run {
        "would delete"
    } else {
        "deleted"
    };
    format!(
        "`{name}`: {would} {}, {}",
        count(outcome.checkpoints, "checkpoint"),
        count(outcome.events, "event")
    )
}

/// Prunes a thread after a run on it, as `[retention]` says. A run is worth more than its pruning.
pub(crate) async fn after_run(kept: &Kept, config: &Config, thread: &str) -> Result<(), Failure> {
    for keep in retention(config)? {
        if let Err(error) = kept.threads.prune(thread, keep).await {
            let warning = format!("warning: old checkpoints were not deleted: {error}");
            note(&printable(&warning));
        }
    }
    Ok(())
}

/// What the settings keep.
pub(crate) fn retention(config: &Config) -> Result<Vec<Keep>, Failure> {
    let mut keeps = Vec::new();
    if let Some(found) = config.get("retention.keep_last")? {
        match found.text.parse() {
            Ok(last) if last > 0 => keeps.push(Keep::Last(last)),
            _ => {
                let why = format!("`{}` is no number of checkpoints, at least 1", found.text);
                return Err(found.wrong("retention.keep_last", why));
            }
        }
    }
    if let Some(found) = config.get("retention.older_than")? {
        let age = age(&found.text).map_err(|why| found.wrong("retention.older_than", why))?;
        keeps.push(since(age));
    }
    Ok(keeps)
}
