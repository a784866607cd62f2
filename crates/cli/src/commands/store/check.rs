//! `paraph store check`: reads everything there is, and so verifies every sum and every reference.
//!
//! Through the same traits as everybody else: what can be read here can be read by a run. One damaged row
//! does not hide the others.

use crate::args::StoreJsonArgs;
use crate::cells::count;
use crate::failure::{BROKEN, FINISHED, Failure};
use crate::output::{print, print_json};
use crate::pieces;
use crate::portable::pages;
use crate::stores::Kept;
use crate::terminal::printable;
use paraph_gateway::{ApprovalError, StoreError};
use paraph_graph::{
    CheckpointId, Entry, HistoryQuery, Loaded, LogQuery, Logged, RunQuery, Scope, ThreadQuery,
};
use paraph_store::Sqlite;
use serde::Serialize;
use std::collections::BTreeSet;

/// How many checkpoints are read at once.
const CHECKPOINTS: usize = 32;
/// How many rows are listed at once.
const ROWS: usize = 500;

#[derive(Default, Serialize)]
struct Found {
    store: String,
    ok: bool,
    threads: u64,
    runs: u64,
    checkpoints: u64,
    events: u64,
    /// Each names thread, checkpoint, channel and row, as far as it has them.
    problems: Vec<String>,
}

pub(super) async fn check(kept: &Kept, args: &StoreJsonArgs) -> Result<u8, Failure> {
    let mut found = Found {
        store: kept.shown.clone(),
        ..Found::default()
    };
    if let Some(file) = &kept.file {
        match Sqlite::complaints(file).await {
            Ok(complaints) => found.problems.extend(complaints),
            Err(error) => found.problems.push(error.to_string()),
        }
    }
    if let Some(verify) = &kept.opened.verify {
        match verify.problems().await {
            Ok(problems) => problems.iter().for_each(|problem| found.problem(problem)),
            Err(error) => found.problem(error),
        }
    }
    threads(kept, &mut found).await;
    actions(kept, &mut found).await;
    found.ok = found.problems.is_empty();
    match args.json {
        true => print_json(&found)?,
        false => print(&printable(&in_words(&found)))?,
    }
    Ok(if found.ok { FINISHED } else { BROKEN })
}

impl Found {
    fn problem(&mut self, problem: impl ToString) {
        let problem = problem.to_string();
        // A page and one of its rows may have the same to say.
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// The actions, beside what the audit tells of them.
async fn actions(kept: &Kept, found: &mut Found) {
    let desk = kept.desk();
    let mut tenants = BTreeSet::new();
    if let Some(verify) = &kept.opened.verify {
        match verify.gateway_counts().await {
            Ok(counts) => tenants.extend(counts.audit.into_keys()),
            Err(error) => found.problem(error),
        }
    }
    match desk.tenants().await {
        Ok(more) => tenants.extend(more),
        Err(error) => found.problem(unread(&error)),
    }
    for tenant in tenants {
        match desk.astray(&tenant).await {
            Ok(astray) => astray.iter().for_each(|one| {
                found.problem(format!("the audit of tenant `{tenant}`: {one}"));
            }),
            Err(error) => found.problem(unread(&error)),
        }
    }
}

/// What the store said of a row, as whoever else has read it says so.
fn unread(error: &ApprovalError) -> String {
    match error {
        ApprovalError::Store(StoreError::Broken(why)) => why.clone(),
        error => error.to_string(),
    }
}

/// The threads, by their rows and by those of their runs: what is damaged in one may stand in the other.
async fn threads(kept: &Kept, found: &mut Found) {
    let mut names = runs(kept, found).await;
    let mut query = ThreadQuery {
        limit: Some(ROWS),
        ..ThreadQuery::default()
    };
    loop {
        let size = query.limit.unwrap_or(1);
        match kept.threads.threads(&query).await {
            Ok(page) => {
                query.offset += page.len();
                let last = page.len() < size;
                names.extend(page.into_iter().map(|row| row.name));
                if last {
                    break;
                }
            }
            // Which one it is, each says for itself.
            Err(_) if size > 1 => query.limit = Some(1),
            Err(error) => {
                let known = found.problems.len();
                found.problem(error);
                query.offset += 1;
                // Not a row, but the store.
                if found.problems.len() == known {
                    break;
                }
            }
        }
    }
    for name in names {
        found.threads += 1;
        thread(kept, &name, found).await;
    }
}

async fn thread(kept: &Kept, name: &str, found: &mut Found) {
    // A list may leave out what a single row has.
    if let Err(error) = kept.threads.thread(name).await {
        found.problem(error);
    }
    let namespaces = match kept.threads.namespaces(name).await {
        Ok(namespaces) => namespaces,
        Err(error) => return found.problem(error),
    };
    for namespace in namespaces {
        let scope = Scope {
            thread: name.into(),
            namespace: namespace.as_str().into(),
        };
        self::scope(kept, &scope, found).await;
    }
    events(kept, name, found).await;
}

async fn scope(kept: &Kept, scope: &Scope, found: &mut Found) {
    let mut entries = match kept.threads.history(scope, &HistoryQuery::default()).await {
        Ok(entries) => entries,
        // One of them does not hide the others.
        Err(error) => {
            found.problem(error);
            return by_names(kept, scope, found).await;
        }
    };
    entries.reverse();
    found.checkpoints += entries.len() as u64;
    for (page, entries) in pages(&entries, CHECKPOINTS)
        .iter()
        .zip(entries.chunks(CHECKPOINTS))
    {
        match kept.threads.views(scope, page).await {
            Ok(views) if views.len() == entries.len() => {
                views.iter().for_each(|view| whole(scope, view, found));
            }
            // Which ones it is, each says for itself.
            Ok(_) | Err(_) => singly(kept, scope, entries, found).await,
        }
    }
}

async fn singly(kept: &Kept, scope: &Scope, entries: &[Entry], found: &mut Found) {
    for entry in entries {
        one(kept, scope, entry.id, found).await;
    }
}

/// The checkpoints of a scope that cannot be listed.
async fn by_names(kept: &Kept, scope: &Scope, found: &mut Found) {
    let Some(verify) = &kept.opened.verify else {
        return;
    };
    match verify.checkpoints(scope).await {
        Ok(ids) => {
            found.checkpoints += ids.len() as u64;
            for id in ids {
                one(kept, scope, id, found).await;
            }
        }
        Err(error) => found.problem(error),
    }
}

async fn one(kept: &Kept, scope: &Scope, id: CheckpointId, found: &mut Found) {
    match kept.threads.load(scope, Some(id)).await {
        Ok(Some(loaded)) => whole(scope, &loaded, found),
        Ok(None) => found.problem(format!("checkpoint {id} of thread `{scope}` is gone")),
        Err(error) => found.problem(error),
    }
}

/// Whether the pieces of a checkpoint make up a state.
fn whole(scope: &Scope, loaded: &Loaded, found: &mut Found) {
    let broken = |what: String| format!("checkpoint {} of thread `{scope}`: {what}", loaded.id);
    for (channel, pieces) in &loaded.channels {
        if let Err(why) = pieces::value(pieces) {
            found.problem(broken(format!("channel `{channel}`: {why}")));
        }
    }
    if let Err(why) = pieces::raw(&loaded.machine) {
        found.problem(broken(format!("the step machine: {why}")));
    }
}

async fn events(kept: &Kept, name: &str, found: &mut Found) {
    let mut query = LogQuery::default();
    loop {
        match kept.threads.events(name, &query).await {
            Ok(page) => {
                let Some(last) = page.last() else { return };
                query.after = last.seq;
                logged(name, &page, found);
            }
            Err(error) => {
                found.problem(error);
                return by_places(kept, name, query.after, found).await;
            }
        }
    }
}

/// The entries of a log that cannot be read page by page, from behind this place on.
async fn by_places(kept: &Kept, name: &str, after: u64, found: &mut Found) {
    let Some(verify) = &kept.opened.verify else {
        return;
    };
    let places = match verify.places(name).await {
        Ok(places) => places,
        Err(error) => return found.problem(error),
    };
    for place in places.into_iter().filter(|place| *place > after) {
        let one = LogQuery {
            after: place - 1,
            limit: 1,
            ..LogQuery::default()
        };
        match kept.threads.events(name, &one).await {
            Ok(page) => logged(name, &page, found),
            Err(error) => found.problem(error),
        }
    }
}

fn logged(name: &str, page: &[Logged], found: &mut Found) {
    found.events += page.len() as u64;
    for entry in page {
        if let Err(why) = pieces::raw(entry.json.as_bytes()) {
            found.problem(format!("event {} of thread `{name}`: {why}", entry.seq));
        }
    }
}

/// Reads the rows of all runs; gives the names of their threads.
async fn runs(kept: &Kept, found: &mut Found) -> BTreeSet<String> {
    let mut query = RunQuery {
        limit: Some(ROWS),
        ..RunQuery::default()
    };
    let mut names = BTreeSet::new();
    loop {
        let size = query.limit.unwrap_or(1);
        match kept.threads.runs(&query).await {
            Ok(page) => {
                found.runs += page.len() as u64;
                query.offset += page.len();
                let last = page.len() < size;
                names.extend(page.into_iter().map(|row| row.thread));
                if last {
                    return names;
                }
            }
            // Which one it is, each says for itself.
            Err(_) if size > 1 => query.limit = Some(1),
            Err(error) => {
                let known = found.problems.len();
                found.problem(error);
                query.offset += 1;
                // Not a row, but the store.
                if found.problems.len() == known {
                    return names;
                }
            }
        }
    }
}

fn in_words(found: &Found) -> String {
    let read = format!(
        "{}, {}, {} and {} were read",
        count(found.threads, "thread"),
        count(found.runs, "run"),
        count(found.checkpoints, "checkpoint"),
        count(found.events, "event"),
    );
    if found.ok {
        return format!("ok: {}: {read}, and are in order", found.store);
    }
    let mut text = format!(
        "DAMAGED: {}: {read}; {}\n",
        found.store,
        count(found.problems.len() as u64, "problem")
    );
    for problem in &found.problems {
        text.push_str(&format!("  {problem}\n"));
    }
    text
}
