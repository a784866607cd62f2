//! Writes a thread as a document. Holds a few checkpoints at a time, however long the history is.

use super::{ChannelPart, CheckpointPart, EventPart, FORMAT, Head, NotePart, Run, VERSION, owner};
use crate::failure::Failure;
use crate::pieces;
use crate::stores::Kept;
use paraph_gateway::READ_IN;
use paraph_graph::{
    CheckpointId, Entry, HistoryQuery, Loaded, LogQuery, RunQuery, Scope, ThreadRow, Threads,
};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::Write;

/// Where the document goes, and what that is called.
pub(crate) struct Out<'w> {
    to: Box<dyn Write + Send + 'w>,
    place: String,
}

impl<'w> Out<'w> {
    pub(crate) fn new(to: impl Write + Send + 'w, place: impl Into<String>) -> Out<'w> {
        Out {
            to: Box::new(to),
            place: place.into(),
        }
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.to.write_all(text.as_bytes());
        self.told(written)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let flushed = self.to.flush();
        self.told(flushed)
    }

    fn told(&self, written: std::io::Result<()>) -> Result<(), Failure> {
        written.map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Broken(format!("{}: {error}", self.place)),
        })
    }
}

/// How many checkpoints are read at once.
const CHECKPOINTS: usize = 32;
/// How many runs are read at once.
const RUNS: usize = 200;

/// Writes the thread. Whoever fails half-way throws away what was written.
pub(crate) async fn export(kept: &Kept, row: &ThreadRow, out: &mut Out<'_>) -> Result<(), Failure> {
    let threads = &*kept.threads;
    let name = row.name.as_str();
    let head = Head {
        name: row.name.clone(),
        uuid: row.uuid.to_string(),
        graph: row.graph.clone(),
        status: row.status,
        created_ms: row.created_ms,
        updated_ms: row.updated_ms,
        metadata: row.metadata.clone(),
        next: row.next.clone(),
        interrupts: row.interrupts.clone(),
        values: row.values.clone(),
    };
    let now = crate::cells::time(crate::cells::now_ms());
    out.text(&format!(
        "{{\n\"format\": \"{FORMAT}\",\n\"version\": {VERSION},\n\"exported_at\": \"{now}\",\n\
         \"paraph\": \"{}\",\n\"thread\": {},\n\"runs\": [",
        env!("CARGO_PKG_VERSION"),
        serde_json::to_string(&head)?
    ))?;
    runs(kept, name, out).await?;
    out.text("],\n\"scopes\": [")?;
    for (n, namespace) in threads.namespaces(name).await?.iter().enumerate() {
        let comma = if n > 0 { "," } else { "" };
        let shown = serde_json::to_string(namespace)?;
        out.text(&format!(
            "{comma}\n{{\"namespace\": {shown}, \"checkpoints\": ["
        ))?;
        let scope = Scope {
            thread: name.into(),
            namespace: namespace.as_str().into(),
        };
        checkpoints(threads, &scope, out).await?;
        out.text("]}")?;
    }
    out.text("],\n\"events\": [")?;
    events(threads, name, out).await?;
    out.text("]\n}\n")?;
    out.flush()
}

/// One element of a list, on a line of its own.
fn element(out: &mut Out<'_>, first: &mut bool, value: &impl Serialize) -> Result<(), Failure> {
    let comma = if std::mem::take(first) { "" } else { "," };
    let text = serde_json::to_string(value)?;
    out.text(&format!("{comma}\n{text}"))
}

async fn runs(kept: &Kept, name: &str, out: &mut Out<'_>) -> Result<(), Failure> {
    let mut query = RunQuery {
        thread: Some(name.to_owned()),
        limit: Some(RUNS),
        oldest_first: true,
        ..RunQuery::default()
    };
    let mut first = true;
    loop {
        let page = kept.threads.runs(&query).await?;
        for row in &page {
            let owner = owner(&row.graph, name, row.id);
            let records = &kept.opened.gateway;
            let calls = records.calls(&owner).await.map_err(unread)?;
            let mut counters = records.counters(&owner).await.map_err(unread)?;
            // Whoever reads it in says so anew.
            counters.remove(READ_IN);
            let run = Run {
                calls,
                counters,
                id: row.id,
                graph: row.graph.clone(),
                status: row.status,
                arguments: row.arguments.clone(),
                created_ms: row.created_ms,
                updated_ms: row.updated_ms,
                attempts: row.attempts,
                error: row.error.clone(),
            };
            element(out, &mut first, &run)?;
        }
        if page.len() < RUNS {
            return Ok(());
        }
        query.offset += page.len();
    }
}

fn unread(error: paraph_gateway::StoreError) -> Failure {
    Failure::Broken(error.to_string())
}

async fn checkpoints(
    threads: &dyn Threads,
    scope: &Scope,
    out: &mut Out<'_>,
) -> Result<(), Failure> {
    let mut entries = threads.history(scope, &HistoryQuery::default()).await?;
    entries.reverse();
    let there: BTreeSet<CheckpointId> = entries.iter().map(|entry| entry.id).collect();
    let mut first = true;
    for page in pages(&entries, CHECKPOINTS) {
        let mut views = threads.views(scope, &page).await?;
        views.reverse();
        for view in &views {
            let whole = view.parent.is_none_or(|parent| !there.contains(&parent));
            let part = part(scope, view, whole)?;
            element(out, &mut first, &part)?;
        }
    }
    Ok(())
}

/// The queries that give these entries, so many at a time. Entries are the oldest first, an answer is not.
pub(crate) fn pages(entries: &[Entry], size: usize) -> Vec<HistoryQuery> {
    let ends = (size..entries.len() + size).step_by(size);
    ends.map(|end| HistoryQuery {
        before: entries.get(end).map(|entry| entry.id),
        limit: Some(size.min(entries.len() + size - end)),
        ..HistoryQuery::default()
    })
    .collect()
}

fn part(scope: &Scope, view: &Loaded, whole: bool) -> Result<CheckpointPart, Failure> {
    let damaged = |what: &str, why: String| {
        Failure::Broken(format!(
            "checkpoint {} of thread `{scope}` cannot be exported: {what}: {why}",
            view.id
        ))
    };
    let mut channels = Vec::new();
    for (channel, pieces) in &view.channels {
        let last = pieces.last().filter(|_| view.changed.contains(channel));
        let (kind, value) = match (whole, last) {
            (true, _) => (paraph_graph::PatchKind::Whole, pieces::value(pieces)),
            (false, Some(last)) => (last.kind, pieces::raw(&last.json)),
            (false, None) => continue,
        };
        channels.push(ChannelPart {
            channel: channel.clone(),
            kind,
            value: value.map_err(|why| damaged(&format!("channel `{channel}`"), why))?,
        });
    }
    channels.sort_by(|a, b| a.channel.cmp(&b.channel));
    let notes = view.notes.iter().map(|note| {
        Ok(NotePart {
            task: note.task,
            kind: note.kind,
            key: note.key.clone(),
            value: pieces::raw(note.json.as_bytes()).map_err(|why| damaged("a note", why))?,
        })
    });
    Ok(CheckpointPart {
        id: view.id,
        parent: view.parent,
        metadata: view.metadata.clone(),
        machine: pieces::raw(&view.machine).map_err(|why| damaged("the step machine", why))?,
        channels,
        notes: notes.collect::<Result<_, Failure>>()?,
    })
}

async fn events(threads: &dyn Threads, name: &str, out: &mut Out<'_>) -> Result<(), Failure> {
    let mut query = LogQuery::default();
    let mut first = true;
    loop {
        let page = threads.events(name, &query).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        query.after = last.seq;
        for entry in &page {
            let event = pieces::raw(entry.json.as_bytes()).map_err(|why| {
                Failure::Broken(format!("event {} of thread `{name}`: {why}", entry.seq))
            })?;
            let part = EventPart {
                seq: entry.seq,
                run: entry.run,
                created_ms: entry.created_ms,
                event,
            };
            element(out, &mut first, &part)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paraph_graph::{Metadata, RunId, Source};

    #[test]
    fn pages_cover_a_history_once() {
        for count in 0..12 {
            let entries: Vec<_> = (0..count)
                .map(|_| Entry {
                    id: CheckpointId::fresh(),
                    parent: None,
                    metadata: Metadata {
                        source: Source::Loop,
                        superstep: 0,
                        run: RunId::fresh(),
                        created_ms: 0,
                        user: serde_json::Map::new(),
                    },
                })
                .collect();
            let mut seen = Vec::new();
            for page in pages(&entries, 4) {
                let newest_first = entries.iter().rev().filter(|entry| page.wants(entry));
                let mut ids: Vec<_> = newest_first
                    .take(page.limit.unwrap_or(0))
                    .map(|entry| entry.id)
                    .collect();
                ids.reverse();
                seen.extend(ids);
            }
            let all: Vec<_> = entries.iter().map(|entry| entry.id).collect();
            assert_eq!(seen, all, "{count}");
        }
    }
}
