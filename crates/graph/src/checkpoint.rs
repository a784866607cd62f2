//! What is saved, and the one trait that a store of checkpoints implements.
//!
//! Data only: JSON bytes by channel name. A store compares, appends and reads back; the rules are in
//! the engine. The same conformance suite runs on every implementation.

use crate::{
    Error,
    control::CancelReason,
    ids::{CheckpointId, RunId, TaskId},
    log::{EventLog, LogEntry},
    state::PatchKind,
    threads::{RunStatus, Standing},
};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::watch;

/// Where checkpoints belong: a thread, and within it the graph itself or one of its subgraphs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The thread's name.
    pub thread: Arc<str>,
    /// Empty for the graph itself, else `node:task` (or `node` for a persistent subgraph), with `|`
    /// between levels.
    pub namespace: Arc<str>,
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.namespace {
            "" => f.write_str(&self.thread),
            namespace => write!(f, "{}|{namespace}", self.thread),
        }
    }
}

/// What happened to one channel since the parent checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The channel.
    pub channel: String,
    /// How `json` is to be read.
    pub kind: PatchKind,
    /// JSON text in UTF-8.
    pub json: Vec<u8>,
}

/// How a checkpoint came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The input of a run.
    Input,
    /// A superstep.
    Loop,
    /// A person or program wrote to the thread between runs.
    Update,
    /// A new branch from an older checkpoint.
    Fork,
}

/// What is known of a checkpoint besides its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// How it came about.
    pub source: Source,
    /// Goes on over the runs of a thread; the input of a run is one before its first superstep.
    pub superstep: i64,
    /// The run that wrote it.
    pub run: RunId,
    /// When, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// What the caller gave with the run.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub user: Map<String, Value>,
}

/// One superstep to be saved: what changed, and the machine after it.
#[derive(Clone, Debug)]
pub struct Put {
    /// The new checkpoint; greater than every other of the scope.
    pub id: CheckpointId,
    /// The checkpoint it follows; a fork's is older than the head.
    pub parent: Option<CheckpointId>,
    /// The head that the writer saw. If the head is another by now, the answer is `Conflict`.
    pub expect: Option<CheckpointId>,
    /// See there.
    pub metadata: Metadata,
    /// The step machine, as JSON text.
    pub machine: Vec<u8>,
    /// What changed since `parent`.
    pub deltas: Vec<Delta>,
    /// Notes that the new checkpoint has from the start; of two with the same task, kind and key the
    /// later one.
    pub notes: Vec<Note>,
    /// The writer's lease; an older epoch than the thread's is refused with `Conflict`.
    pub epoch: u64,
    /// How the thread stands from here on; nothing in the scope of a subgraph.
    pub standing: Option<Standing>,
    /// What the thread's log gets in the same transaction.
    pub events: Vec<LogEntry>,
}

/// Notes on a checkpoint that is there already.
#[derive(Clone, Debug)]
pub struct Notes {
    /// The checkpoint.
    pub at: CheckpointId,
    /// The writer's lease.
    pub epoch: u64,
    /// See there.
    pub notes: Vec<Note>,
    /// What the thread's log gets in the same transaction.
    pub events: Vec<LogEntry>,
}

/// Who wants a thread, and what its row is to say of the run.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The run.
    pub run: RunId,
    /// Nothing for a write between runs, which leaves no row.
    pub start: Option<RunStart>,
}

/// What a run's row says from its start on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunStart {
    /// The name of the graph.
    pub graph: String,
    /// With what it was started, in the words of whoever started it; null leaves what is there, so
    /// that a run which is taken up again keeps its arguments.
    pub arguments: Value,
}

/// How a run came to rest.
#[derive(Clone, Debug)]
pub struct RunEnd {
    /// The run.
    pub run: RunId,
    /// Its lease, which is given back with this.
    pub epoch: u64,
    /// What its row says from here on.
    pub status: RunStatus,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// How the thread stands.
    pub standing: Option<Standing>,
    /// What the thread's log gets in the same transaction.
    pub events: Vec<LogEntry>,
}

/// What a task left on a checkpoint before its superstep ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The task; it keeps its id when it runs again.
    pub task: TaskId,
    /// What `json` is.
    pub kind: NoteKind,
    /// Which one of its kind: a memo's name, an answer's interrupt. Empty where a task has only one; at most
    /// [`crate::LONGEST_KEY`] bytes.
    pub key: String,
    /// JSON text.
    pub json: String,
}

/// What a note says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The task finished; its update and targets.
    Done,
    /// The task waits; its open questions.
    Question,
    /// A person's answer; `key` is the interrupt.
    Answer,
    /// The result of a `ctx.step`; `key` is its name.
    Memo,
    /// An attempt failed and another will follow: how many were made, and when the next is due.
    Retry,
    /// The task failed for good, or was cancelled: kind and message.
    Failure,
    /// The run stopped at a breakpoint here.
    Pause,
}

/// A checkpoint as read back.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The checkpoint.
    pub id: CheckpointId,
    /// The one it follows.
    pub parent: Option<CheckpointId>,
    /// See there.
    pub metadata: Metadata,
    /// The step machine, as JSON text.
    pub machine: Vec<u8>,
    /// The pieces of each channel that was ever written, oldest first, from its last whole value on;
    /// the channels in any order.
    pub channels: Vec<(String, Vec<Piece>)>,
    /// The channels that this checkpoint changed; the last piece of each is the change.
    pub changed: Vec<String>,
    /// In the order in which they were written.
    pub notes: Vec<Note>,
}

/// One stored piece of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How `json` is to be read.
    pub kind: PatchKind,
    /// JSON text in UTF-8.
    pub json: Arc<Vec<u8>>,
}

/// One line of a thread's history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The checkpoint.
    pub id: CheckpointId,
    /// The one it follows.
    pub parent: Option<CheckpointId>,
    /// See there.
    pub metadata: Metadata,
}

/// Which part of a history is wanted.
#[derive(Clone, Debug, Default)]
pub struct HistoryQuery {
    /// Only checkpoints older than this one.
    pub before: Option<CheckpointId>,
    /// Only checkpoints that follow this one.
    pub parent: Option<CheckpointId>,
    /// At most so many.
    pub limit: Option<usize>,
    /// Only those whose metadata (ours by field name, or the caller's) has all of these values.
    pub filter: Map<String, Value>,
}

impl HistoryQuery {
    /// Whether an entry is wanted, but for the limit.
    #[must_use]
    pub fn wants(&self, entry: &Entry) -> bool {
        if self.before.is_some_and(|before| entry.id >= before) {
            return false;
        }
        if self.parent.is_some() && entry.parent != self.parent {
            return false;
        }
        if self.filter.is_empty() {
            return true;
        }
        let own = serde_json::to_value(&entry.metadata).unwrap_or_default();
        let value = |key: &str| entry.metadata.user.get(key).or_else(|| own.get(key));
        self.filter
            .iter()
            .all(|(key, wanted)| value(key) == Some(wanted))
    }
}

/// The right to write to a thread, until it is dropped.
pub struct Lease {
    /// Grows with each lease of the thread, also over its deletion; a store refuses writes with an
    /// older one.
    pub epoch: u64,
    /// Becomes `Some` when the run is to end: somebody asked the store for it, or the lease is lost.
    pub wish: Option<watch::Receiver<Option<CancelReason>>>,
    /// Whatever the store needs to take it back; dropped with the lease.
    pub guard: Option<Box<dyn std::any::Any + Send + Sync>>,
}

/// Where checkpoints live.
///
/// Futures may be dropped at any time; what was begun may then have happened or not, but never in
/// part. `put` and `note` take effect in the order in which they were called on one scope.
pub trait Checkpoints: Send + Sync + 'static {
    /// Takes the thread for a run, whose row says `running` from here on. A store that several
    /// processes share gives a thread away whose holder died, or has not been heard of for long; until
    /// then it keeps the lease fresh by itself.
    ///
    /// # Errors
    /// [`Error::Conflict`] naming the holder while another run has it, or if there is a row of the run on
    /// another thread; [`Error::Cancelled`] if the run was cancelled before anybody had begun it;
    /// [`Error::RunOver`] if its row says `success`, and then the row stays as it is.
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> BoxFuture<'a, Result<Lease, Error>>;

    /// Writes down how a run came to rest, and gives its lease back. Stores without rows of runs do
    /// nothing here: dropping the lease gives it back.
    ///
    /// # Errors
    /// [`Error::Conflict`] for an old epoch.
    fn finish<'a>(&'a self, thread: &'a str, end: RunEnd) -> BoxFuture<'a, Result<(), Error>> {
        let _ = (thread, end);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Saves a superstep: deltas, machine and notes together, or nothing.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the head of the scope is no longer `put.expect`, or the epoch is old;
    /// [`Error::UnknownCheckpoint`] if there is no `put.parent`.
    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> BoxFuture<'a, Result<(), Error>>;

    /// Adds notes to a checkpoint, all or none. A note with the task, kind and key of an older one
    /// replaces it and comes last.
    ///
    /// # Errors
    /// [`Error::UnknownCheckpoint`], or [`Error::Conflict`] for an old epoch.
    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> BoxFuture<'a, Result<(), Error>>;

    /// The head, or the named checkpoint; nothing if there is none.
    ///
    /// # Errors
    /// [`Error::Store`] or [`Error::Corrupt`].
    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, Error>>;

    /// Newest first.
    ///
    /// # Errors
    /// [`Error::Store`].
    fn history<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>>;

    /// What [`Checkpoints::history`] lists, each as [`Checkpoints::load`] gives it. Pieces that several
    /// checkpoints share are the same allocation in a store that reads them at once.
    ///
    /// # Errors
    /// Those of both.
    fn views<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Loaded>, Error>> {
        Box::pin(async move {
            let mut views = Vec::new();
            for entry in self.history(scope, query).await? {
                views.extend(self.load(scope, Some(entry.id)).await?);
            }
            Ok(views)
        })
    }

    /// Whether the store keeps the events it is given. Without that a run spends nothing on them.
    fn keeps_events(&self) -> bool {
        false
    }

    /// Where the events can be read, if the store has a log.
    fn event_log(&self) -> Option<&dyn EventLog> {
        None
    }
}

/// What threads are opened on.
pub type Store = Arc<dyn Checkpoints>;
