//! A thread as one JSON document that needs nothing else to be read: `threads export` and `threads import`.
//!
//! The form is versioned; see `paraph threads export --help`. All values stand in it as plain JSON, however
//! the store keeps them. `write` reads a store, `read` writes to one: both through the engine's traits, so
//! that a thread can go from any store into any other.

mod left;
mod read;
mod write;

pub(crate) use left::{elsewhere, left_behind};
pub(crate) use read::import;
pub(crate) use write::{Out, export, pages};

use crate::pieces::Raw;
use paraph_gateway::{CallRecord, RunRef};
use paraph_graph::{
    CheckpointId, Interrupt, Metadata, Name, NoteKind, PatchKind, RunId, RunStatus, TaskId,
    ThreadStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What the document says it is.
pub(crate) const FORMAT: &str = "paraph-thread";
/// The version of the form that is written, and the newest that is read.
pub(crate) const VERSION: u32 = 1;

/// The whole document. Written piece by piece, in this order; read at once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Was looked at before the rest was read, like the version.
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u32,
    /// When, in RFC 3339; for people.
    #[serde(default, rename = "exported_at")]
    _exported_at: String,
    /// By which version; for people.
    #[serde(default, rename = "paraph")]
    _paraph: String,
    thread: Head,
    runs: Vec<Run>,
    scopes: Vec<ScopePart>,
    events: Vec<EventPart>,
}

/// The thread itself.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    name: String,
    uuid: String,
    graph: Option<String>,
    status: ThreadStatus,
    created_ms: u64,
    updated_ms: u64,
    metadata: Map<String, Value>,
    next: Vec<Name>,
    interrupts: Vec<Interrupt>,
    values: Option<Value>,
}

/// One run.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    id: RunId,
    graph: String,
    status: RunStatus,
    arguments: Value,
    created_ms: u64,
    updated_ms: u64,
    attempts: u32,
    error: Option<String>,
    /// The gateway's records of its calls, by which none of them is made twice. Actions, their signatures and the audit
    /// stay where they were made: a call whose action was not over is refused where its thread is read in.
    #[serde(default)]
    calls: Vec<CallRecord>,
    /// What it used beside its calls.
    #[serde(default)]
    counters: BTreeMap<String, u64>,
}

/// Whose records those of a run are, at the gateway.
fn owner(graph: &str, thread: &str, run: RunId) -> RunRef {
    paraph_gateway::Scope {
        run: run.to_string(),
        ..paraph_gateway::Scope::new(graph, thread)
    }
    .run_ref()
}

/// The graph itself, or one of its subgraphs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopePart {
    namespace: String,
    /// The oldest first.
    checkpoints: Vec<CheckpointPart>,
}

/// One checkpoint: what it changed over its parent, or the whole state where its parent is not in the
/// document.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointPart {
    id: CheckpointId,
    parent: Option<CheckpointId>,
    metadata: Metadata,
    machine: Raw,
    channels: Vec<ChannelPart>,
    notes: Vec<NotePart>,
}

/// One channel of a checkpoint.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChannelPart {
    channel: String,
    kind: PatchKind,
    value: Raw,
}

/// What a task left on a checkpoint.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotePart {
    task: TaskId,
    kind: NoteKind,
    key: String,
    value: Raw,
}

/// One entry of the log.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventPart {
    seq: u64,
    run: RunId,
    created_ms: u64,
    event: Raw,
}
