//! Reads a document into a store, under a name that the store does not have yet.
//!
//! The document comes from outside: all of it is checked before anything is written, and what was written
//! is removed again if the store fails half-way.

use super::{CheckpointPart, Document, FORMAT, Head, Run, ScopePart, VERSION, elsewhere, owner};
use crate::failure::Failure;
use crate::stores::Kept;
use paraph_gateway::{Add, CallRecord, Change};
use paraph_graph::{
    CheckpointId, Claim, Delta, Lease, LogEntry, Note, Notes, PatchKind, Put, RunId, RunRow,
    RunStart, RunStatus, Scope, Standing, ThreadStatus, Threads, with_origin,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many events go into one transaction.
const EVENTS: usize = 500;

/// What was read into the store.
#[derive(Debug, Serialize)]
pub(crate) struct Imported {
    pub(crate) name: String,
    pub(crate) checkpoints: usize,
    pub(crate) runs: usize,
    /// Runs that the store had already, and which stay as they are.
    pub(crate) runs_left: usize,
    pub(crate) events: usize,
    /// Actions that its runs wait for, and which stay in the store that it was exported from.
    pub(crate) actions_left: usize,
}

/// Reads the document and writes the thread.
pub(crate) async fn import(
    kept: &Kept,
    text: &[u8],
    name: Option<&str>,
) -> Result<Imported, Failure> {
    let threads = &*kept.threads;
    let document = parse(text)?;
    let own = document.thread.name.clone();
    let name = name.unwrap_or(&own).to_owned();
    crate::commands::check_thread_name("the thread's name", &name)?;
    if threads.thread(&name).await?.is_some() {
        return Err(Failure::Usage(format!(
            "there is a thread `{name}` already: import under another name with --as"
        )));
    }
    let written = Import {
        threads,
        records: &*kept.opened.gateway,
        name: &name,
        document: &document,
    }
    .all()
    .await;
    match written {
        Ok(mut imported) => {
            for run in &document.runs {
                let run = (run.graph.as_str(), name.as_str(), run.id);
                imported.actions_left += elsewhere(kept, run).await?.len();
            }
            Ok(imported)
        }
        Err(failure) => {
            // Half a thread is of no use to anybody.
            if let Err(error) = threads.delete(&name).await {
                let warning =
                    format!("warning: what was written of `{name}` could not be removed: {error}");
                crate::output::note(&crate::terminal::printable(&warning));
            }
            Err(failure)
        }
    }
}

/// The document, with everything in it checked that the store would take as it is.
fn parse(text: &[u8]) -> Result<Document, Failure> {
    #[derive(Deserialize)]
    struct Kind {
        format: String,
        version: u32,
    }
    let wrong =
        |why: &dyn std::fmt::Display| Failure::Usage(format!("this is no exported thread: {why}"));
    // First what it is: another version may have other fields.
    let kind: Kind = serde_json::from_slice(text).map_err(|error| wrong(&error))?;
    if kind.format != FORMAT {
        return Err(wrong(&format_args!("its format is `{}`", kind.format)));
    }
    if kind.version == 0 || kind.version > VERSION {
        return Err(Failure::Usage(format!(
            "the thread was exported in version {} of the format, and this program reads up to {VERSION}: \
             use the version that exported it or a newer one",
            kind.version
        )));
    }
    let document: Document = serde_json::from_slice(text).map_err(|error| wrong(&error))?;
    let mut scopes = BTreeSet::new();
    for scope in &document.scopes {
        if !scopes.insert(&scope.namespace) {
            return Err(wrong(&format_args!(
                "the scope `{}` is there twice",
                scope.namespace
            )));
        }
        in_order(scope).map_err(|why| wrong(&why))?;
    }
    Ok(document)
}

/// Checkpoints come the oldest first, and each follows one that was there before, or brings the whole state.
fn in_order(scope: &ScopePart) -> Result<(), String> {
    let mut before: Option<CheckpointId> = None;
    let mut there = BTreeSet::new();
    for checkpoint in &scope.checkpoints {
        let id = checkpoint.id;
        if before.is_some_and(|before| before >= id) {
            return Err(format!("checkpoint {id} comes too late"));
        }
        let orphan = checkpoint
            .parent
            .is_none_or(|parent| !there.contains(&parent));
        let partial = checkpoint
            .channels
            .iter()
            .find(|channel| orphan && channel.kind != PatchKind::Whole);
        if let Some(channel) = partial {
            return Err(format!(
                "checkpoint {id} has only a part of channel `{}`, and nothing to put it to",
                channel.channel
            ));
        }
        before = Some(id);
        there.insert(id);
    }
    Ok(())
}

struct Import<'a> {
    threads: &'a dyn Threads,
    records: &'a dyn paraph_gateway::Store,
    name: &'a str,
    document: &'a Document,
}

impl Import<'_> {
    async fn all(&self) -> Result<Imported, Failure> {
        let head = &self.document.thread;
        let rows = self.document.runs.iter().map(|run| self.row(run));
        let adopted = self
            .threads
            .adopt(self.name, head.created_ms, rows.collect())
            .await?;
        for run in &self.document.runs {
            if adopted.contains(&run.id) {
                self.records(run).await?;
            }
        }
        let runs = adopted.len();
        let claim = Claim {
            run: RunId::fresh(),
            start: None,
        };
        let lease = self.threads.lease(self.name, claim).await?;
        let mut checkpoints = 0;
        for scope in &self.document.scopes {
            checkpoints += self.scope(scope, &lease).await?;
        }
        let events = self.events(&lease).await?;
        drop(lease);
        if !head.metadata.is_empty() || checkpoints == 0 {
            self.threads
                .describe(self.name, head.metadata.clone())
                .await?;
        }
        Ok(Imported {
            name: self.name.to_owned(),
            checkpoints,
            runs,
            runs_left: self.document.runs.len() - runs,
            events,
            actions_left: 0,
        })
    }

    /// A run's row, as it is here.
    fn row(&self, run: &Run) -> RunRow {
        let start = RunStart {
            graph: run.graph.clone(),
            arguments: run.arguments.clone(),
        };
        RunRow {
            // Nobody drives it here.
            status: match run.status.rests() {
                true => run.status,
                false => RunStatus::Stopped,
            },
            updated_ms: run.updated_ms,
            attempts: run.attempts,
            error: run.error.clone(),
            ..RunRow::pending(run.id, self.name, &start, run.created_ms)
        }
    }

    /// Writes what the gateway knows of a run.
    async fn records(&self, run: &Run) -> Result<(), Failure> {
        let owner = Arc::new(owner(&run.graph, self.name, run.id));
        let calls = run.calls.iter().map(|call| CallRecord {
            run: owner.clone(),
            ..call.clone()
        });
        let add = run.counters.iter().map(|(counter, by)| Add {
            run: owner.clone(),
            counter: counter.clone(),
            by: *by,
        });
        let mut change = Change {
            calls: calls.collect(),
            add: add.collect(),
            ..Change::default()
        };
        if change == Change::default() {
            return Ok(());
        }
        change.add.push(Add::read_in(owner));
        let written = self.records.commit(change).await;
        written.map_err(|error| Failure::Broken(error.to_string()))
    }

    async fn scope(&self, scope: &ScopePart, lease: &Lease) -> Result<usize, Failure> {
        let place = Scope {
            thread: self.name.into(),
            namespace: scope.namespace.as_str().into(),
        };
        let there: BTreeSet<_> = scope.checkpoints.iter().map(|c| c.id).collect();
        let last = scope.checkpoints.last().map(|checkpoint| checkpoint.id);
        let mut head = None;
        for checkpoint in &scope.checkpoints {
            let is_head = scope.namespace.is_empty() && Some(checkpoint.id) == last;
            let put = Put {
                // A parent that was pruned cannot be followed.
                parent: checkpoint.parent.filter(|parent| there.contains(parent)),
                expect: head,
                epoch: lease.epoch,
                standing: is_head.then(|| standing(&self.document.thread)),
                machine: self.machine(checkpoint)?,
                ..put(checkpoint)
            };
            self.threads.put(&place, put).await?;
            head = Some(checkpoint.id);
        }
        Ok(scope.checkpoints.len())
    }

    /// The thread is the same, also under another name: what its tasks left and asked is theirs.
    fn machine(&self, checkpoint: &CheckpointPart) -> Result<Vec<u8>, Failure> {
        let (machine, own) = (checkpoint.machine.get(), &self.document.thread.name);
        let origin = (self.name != own).then_some(own.as_str());
        let Some(origin) = origin else {
            return Ok(machine.as_bytes().to_vec());
        };
        with_origin(machine.as_bytes(), Some(origin)).map_err(|error| {
            let id = checkpoint.id;
            Failure::Usage(format!(
                "this is no exported thread: the machine of checkpoint {id}: {error}"
            ))
        })
    }

    /// The log goes to the newest checkpoint; its own order is what counts.
    async fn events(&self, lease: &Lease) -> Result<usize, Failure> {
        let scope = self
            .document
            .scopes
            .iter()
            .find(|scope| scope.namespace.is_empty());
        let Some(head) = scope.and_then(|scope| scope.checkpoints.last()) else {
            return Ok(0);
        };
        let place = Scope {
            thread: self.name.into(),
            namespace: "".into(),
        };
        for page in self.document.events.chunks(EVENTS) {
            let events = page.iter().map(|part| LogEntry {
                run: part.run,
                namespace: namespace(part.event.get()),
                created_ms: part.created_ms,
                json: part.event.get().to_owned(),
                same: Vec::new(),
            });
            let notes = Notes {
                at: head.id,
                epoch: lease.epoch,
                notes: Vec::new(),
                events: events.collect(),
            };
            self.threads.note(&place, notes).await?;
        }
        Ok(self.document.events.len())
    }
}

/// The subgraph that an event tells of.
fn namespace(event: &str) -> String {
    let event: Value = serde_json::from_str(event).unwrap_or_default();
    let named = event.get("namespace").and_then(Value::as_str);
    named.unwrap_or_default().to_owned()
}

fn standing(head: &Head) -> Standing {
    Standing {
        status: match head.status {
            // Nobody drives it here.
            ThreadStatus::Busy => ThreadStatus::Interrupted,
            status => status,
        },
        next: head.next.clone(),
        interrupts: head.interrupts.clone(),
        values: head.values.clone(),
    }
}

/// A checkpoint without its place in the thread, and without its machine.
fn put(checkpoint: &CheckpointPart) -> Put {
    let deltas = checkpoint.channels.iter().map(|part| Delta {
        channel: part.channel.clone(),
        kind: part.kind,
        json: part.value.get().as_bytes().to_vec(),
    });
    let notes = checkpoint.notes.iter().map(|part| Note {
        task: part.task,
        kind: part.kind,
        key: part.key.clone(),
        json: part.value.get().to_owned(),
    });
    Put {
        id: checkpoint.id,
        parent: None,
        expect: None,
        metadata: checkpoint.metadata.clone(),
        machine: Vec::new(),
        deltas: deltas.collect(),
        notes: notes.collect(),
        epoch: 0,
        standing: None,
        events: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

    use super::*;

    fn document(change: impl FnOnce(&mut Value)) -> Vec<u8> {
        let id = CheckpointId::fresh();
        let mut document = serde_json::json!({
            "format": FORMAT,
            "version": VERSION,
            "thread": {"name": "t", "uuid": "", "graph": null, "status": "idle", "created_ms": 0,
                "updated_ms": 0, "metadata": {}, "next": [], "interrupts": [], "values": null},
            "runs": [],
            "scopes": [{"namespace": "", "checkpoints": [{
                "id": id, "parent": null, "machine": {}, "notes": [],
                "metadata": {"source": "input", "superstep": -1, "run": id, "created_ms": 0},
                "channels": [{"channel": "a", "kind": "whole", "value": 1}],
            }]}],
            "events": [],
        });
        change(&mut document);
        document.to_string().into_bytes()
    }

    #[test]
    fn what_is_no_exported_thread_is_refused_with_the_reason() {
        type Change = fn(&mut Value);
        let table: [(Change, &str); 8] = [
            (|d| d["format"] = "x".into(), "its format is `x`"),
            (|d| d["version"] = 9.into(), "reads up to 1"),
            (|d| d["version"] = 0.into(), "version 0"),
            (|d| d["surprise"] = 1.into(), "unknown field `surprise`"),
            (
                |d| d["thread"]["status"] = "odd".into(),
                "unknown variant `odd`",
            ),
            (
                |d| d["scopes"][0]["checkpoints"][0]["channels"][0]["kind"] = "append".into(),
                "only a part of channel `a`",
            ),
            (
                |d| {
                    let twice = d["scopes"][0]["checkpoints"][0].clone();
                    d["scopes"][0]["checkpoints"]
                        .as_array_mut()
                        .unwrap()
                        .push(twice);
                },
                "comes too late",
            ),
            (
                |d| {
                    let twice = d["scopes"][0].clone();
                    d["scopes"].as_array_mut().unwrap().push(twice);
                },
                "is there twice",
            ),
        ];
        assert!(parse(&document(|_| ())).is_ok());
        for (change, expected) in table {
            let Err(Failure::Usage(why)) = parse(&document(change)) else {
                panic!("{expected}")
            };
            assert!(why.contains(expected), "{why}");
        }
        assert!(parse(b"{").is_err());
        assert!(parse(b"").is_err());
    }
}
