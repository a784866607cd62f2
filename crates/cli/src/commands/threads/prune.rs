//! `paraph threads prune`, and the retention that the settings ask for after a run.

use super::row;
use crate::args::PruneArgs;
use crate::cells::{age, count, now_ms};
use crate::config::Config;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json};
use crate::stores::Kept;
use crate::terminal::printable;
use paraph_graph::{Entry, HistoryQuery, Keep, Scope, ThreadQuery};
use serde::Serialize;
use std::time::Duration;

/// How many threads are listed at once.
const PAGE: usize = 500;

#[derive(Default, Serialize)]
struct Outcome {
    thread: String,
    checkpoints: u64,
    events: Option<u64>,
    /// Left alone: something on it is pending.
    pending: bool,
    dry_run: bool,
}

pub(super) async fn prune(kept: &Kept, args: &PruneArgs) -> Result<u8, Failure> {
    let keep = keep(args)?;
    let names = match &args.name {
        Some(name) => vec![row(kept, name).await?.name],
        None => all(kept).await?,
    };
    let mut outcomes = Vec::new();
    for name in names {
        let outcome = match args.dry_run {
            true => would(kept, &name, keep).await?,
            false => match done(kept, &name, keep).await {
                // One of many that is busy holds up no other.
                Err(paraph_graph::Error::Conflict { .. }) if args.all => Outcome {
                    thread: name,
                    pending: true,
                    ..Outcome::default()
                },
                done => done?,
            },
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

async fn done(kept: &Kept, name: &str, keep: Keep) -> Result<Outcome, paraph_graph::Error> {
    let pruned = kept.threads.prune(name, keep).await?;
    Ok(Outcome {
        thread: name.to_owned(),
        checkpoints: pruned.checkpoints,
        events: Some(pruned.events),
        pending: pruned.pending,
        dry_run: false,
    })
}

/// What would be deleted. How many events that is, only the deleting finds out.
async fn would(kept: &Kept, name: &str, keep: Keep) -> Result<Outcome, Failure> {
    let row = row(kept, name).await?;
    let pending = !row.next.is_empty() || !row.interrupts.is_empty() || row.holder.is_some();
    let mut checkpoints = 0;
    if !pending {
        for namespace in kept.threads.namespaces(name).await? {
            let scope = Scope {
                thread: name.into(),
                namespace: namespace.as_str().into(),
            };
            let entries = kept
                .threads
                .history(&scope, &HistoryQuery::default())
                .await?;
            checkpoints += too_old(&entries, keep);
        }
    }
    Ok(Outcome {
        thread: name.to_owned(),
        checkpoints,
        events: None,
        pending,
        dry_run: true,
    })
}

/// How many of a scope's checkpoints, the newest first, would go.
fn too_old(entries: &[Entry], keep: Keep) -> u64 {
    let goes = |(place, entry): &(usize, &Entry)| match keep {
        Keep::Last(last) => *place >= last.max(1),
        Keep::Since(ms) => *place > 0 && entry.metadata.created_ms < ms,
        Keep::UpTo(id) => entry.id > id,
    };
    entries.iter().enumerate().filter(goes).count() as u64
}

fn in_words(outcome: &Outcome) -> String {
    let name = printable(&outcome.thread);
    if outcome.pending {
        return format!("`{name}`: left alone, since something on it is pending");
    }
    let would = if outcome.dry_run {
        "would delete"
    } else {
        "deleted"
    };
    let events = match outcome.events {
        Some(events) => format!(", {}", count(events, "event")),
        None => String::new(),
    };
    format!(
        "`{name}`: {would} {}{events}",
        count(outcome.checkpoints, "checkpoint")
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
