//! `paraph threads history`: the checkpoints of a thread, the newest first.

use super::{checkpoint, row};
use crate::args::HistoryArgs;
use crate::cells::{short_time, time, word};
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::stores::Kept;
use paraph_graph::{CheckpointId, Entry, HistoryQuery, RunId, Scope, Source};
use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Serialize)]
struct EntryJson<'a> {
    checkpoint: CheckpointId,
    parent: Option<CheckpointId>,
    source: Source,
    superstep: i64,
    run: RunId,
    created_at: String,
    metadata: &'a Map<String, Value>,
}

pub(super) async fn history(kept: &Kept, args: &HistoryArgs) -> Result<u8, Failure> {
    let row = row(kept, &args.name).await?;
    let before = args.before.as_deref().map(|id| checkpoint(id, "--before"));
    let query = HistoryQuery {
        before: before.transpose()?,
        limit: Some(args.limit),
        ..HistoryQuery::default()
    };
    let scope = Scope {
        thread: row.name.as_str().into(),
        namespace: args.namespace.as_str().into(),
    };
    let entries = kept.threads.history(&scope, &query).await?;
    if args.json {
        print_json(&entries.iter().map(json).collect::<Vec<_>>())?;
        return Ok(FINISHED);
    }
    if entries.is_empty() {
        note("no checkpoints there");
        return Ok(FINISHED);
    }
    let head = [
        "CHECKPOINT",
        "SUPERSTEP",
        "SOURCE",
        "RUN",
        "CREATED",
        "PARENT",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(entries.iter().map(|entry| line(entry, &entries)));
    print(&table(&lines))?;
    if let (true, Some(last)) = (entries.len() == args.limit, entries.last()) {
        note(&format!("there may be more: --before {}", last.id));
    }
    Ok(FINISHED)
}

fn json(entry: &Entry) -> EntryJson<'_> {
    EntryJson {
        checkpoint: entry.id,
        parent: entry.parent,
        source: entry.metadata.source,
        superstep: entry.metadata.superstep,
        run: entry.metadata.run,
        created_at: time(entry.metadata.created_ms),
        metadata: &entry.metadata.user,
    }
}

/// The parent is named only where it is not the next line.
fn line(entry: &Entry, all: &[Entry]) -> Vec<String> {
    let next = all.iter().skip_while(|other| other.id != entry.id).nth(1);
    let parent = match (entry.parent, next) {
        (Some(parent), Some(next)) if next.id == parent => String::new(),
        (Some(parent), _) => parent.to_string(),
        (None, _) => "-".to_owned(),
    };
    vec![
        entry.id.to_string(),
        entry.metadata.superstep.to_string(),
        word(entry.metadata.source),
        entry.metadata.run.to_string(),
        short_time(entry.metadata.created_ms),
        parent,
    ]
}
