//! `paraph threads …`: what is stored of conversations and cases.

mod delete;
mod fork;
mod history;
mod list;
mod moved;
mod prune;
mod show;

pub(super) use prune::{after_run, retention};

use super::{on_listed, on_store, opened};
use crate::args::ThreadsCommand;
use crate::failure::Failure;
use crate::stores::Kept;
use crate::suggest::hint;
use paraph_graph::{CheckpointId, ThreadQuery, ThreadRow};
use serde::Serialize;
use serde_json::{Map, Value};

pub(super) fn run(command: &ThreadsCommand) -> Result<u8, Failure> {
    match command {
        ThreadsCommand::List(args) => {
            on_listed(&args.store, ("threads", args.json), async |kept, _| {
                list::list(&kept, args).await
            })
        }
        ThreadsCommand::Show(args) => {
            on_store(&args.store, async |kept, _| show::show(&kept, args).await)
        }
        ThreadsCommand::History(args) => on_store(&args.store, async |kept, _| {
            history::history(&kept, args).await
        }),
        ThreadsCommand::Fork(args) => {
            on_store(&args.store, async |kept, _| fork::fork(&kept, args).await)
        }
        ThreadsCommand::Export(args) => on_store(&args.store, async |kept, _| {
            moved::export(&kept, args).await
        }),
        ThreadsCommand::Import(args) => {
            let config = super::config_of(&args.store)?;
            opened(config, async |kept, _| moved::import(&kept, args).await)
        }
        ThreadsCommand::Delete(args) => on_store(&args.store, async |kept, _| {
            delete::delete(&kept, args).await
        }),
        ThreadsCommand::Prune(args) => {
            on_store(&args.store, async |kept, _| prune::prune(&kept, args).await)
        }
    }
}

/// How many names are looked at for a suggestion.
const KNOWN: usize = 1_000;

/// The row of this thread, or a failure that suggests another.
pub(super) async fn row(kept: &Kept, name: &str) -> Result<ThreadRow, Failure> {
    if let Some(row) = kept.threads.thread(name).await? {
        return Ok(row);
    }
    let some = ThreadQuery {
        limit: Some(KNOWN),
        ..ThreadQuery::default()
    };
    // A damaged row of another thread only costs the suggestion.
    let rows = kept.threads.threads(&some).await;
    let is_empty = rows.as_ref().is_ok_and(Vec::is_empty);
    let rows = rows.unwrap_or_default();
    let hint = hint(name, rows.iter().map(|row| row.name.as_str()));
    let more = match (hint.is_empty(), is_empty) {
        (false, _) => hint,
        (true, true) => format!("; there are no threads in {}", kept.shown),
        (true, false) => "; `paraph threads list` lists those there are".to_owned(),
    };
    Err(Failure::Usage(format!("there is no thread `{name}`{more}")))
}

/// The id of a checkpoint, as somebody wrote it.
pub(super) fn checkpoint(text: &str, what: &str) -> Result<CheckpointId, Failure> {
    text.trim().parse().map_err(|_| {
        Failure::Usage(format!(
            "{what}: `{text}` is no checkpoint's id; `paraph threads history NAME` lists them"
        ))
    })
}

/// A thread in JSON: times as people and other programs read them.
#[derive(Serialize)]
struct ThreadJson<'a> {
    name: &'a str,
    thread_id: String,
    graph: Option<&'a str>,
    status: paraph_graph::ThreadStatus,
    /// The run that has it.
    holder: Option<paraph_graph::RunId>,
    created_at: String,
    updated_at: String,
    metadata: &'a Map<String, Value>,
    checkpoint: Option<CheckpointId>,
    next: &'a [paraph_graph::Name],
    interrupts: &'a [paraph_graph::Interrupt],
}

impl ThreadJson<'_> {
    fn of(row: &ThreadRow) -> ThreadJson<'_> {
        ThreadJson {
            name: &row.name,
            thread_id: row.uuid.to_string(),
            graph: row.graph.as_deref(),
            status: row.status,
            holder: row.holder,
            created_at: crate::cells::time(row.created_ms),
            updated_at: crate::cells::time(row.updated_ms),
            metadata: &row.metadata,
            checkpoint: row.head,
            next: &row.next,
            interrupts: &row.interrupts,
        }
    }
}

/// Nodes in a cell.
fn names(next: &[paraph_graph::Name]) -> String {
    next.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
