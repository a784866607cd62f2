//! Everything around checkpoints: the rows of threads and runs, and what is done with whole threads.
//!
//! The engine writes these rows in the transactions it makes anyway (`Put::standing`, `Claim`, `RunEnd`);
//! the command line and a server read them, and copy, prune and delete. A store that implements
//! [`Threads`] is complete.

use crate::{
    Error,
    checkpoint::{Checkpoints, RunStart},
    control::CancelReason,
    ids::{CheckpointId, RunId},
    log::EventLog,
    name::Name,
    run::Interrupt,
};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// How a thread stands, as far as its driver has said.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// See there.
    pub status: ThreadStatus,
    /// The nodes that are due.
    pub next: Vec<Name>,
    /// All open questions.
    pub interrupts: Vec<Interrupt>,
    /// The state as a JSON object, as far as it is part of the graph's output and saved at all, when the
    /// thread comes to rest; null, which means none, where its text is longer than [`Standing::LONGEST`].
    /// Nothing leaves what is there.
    pub values: Option<Value>,
}

impl Standing {
    /// The longest state that a thread's row repeats, in bytes of JSON.
    pub const LONGEST: usize = 64 * 1024;
}

/// How a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadStatus {
    /// Nothing is due: no run yet, or the last one is over.
    Idle,
    /// A run drives it; or drove it, and its process ended without a word ([`ThreadRow::holder`]).
    Busy,
    /// Waits: for an answer, at a breakpoint, after a drain, a limit or a cancellation.
    Interrupted,
    /// The last run failed; what is due can be resumed.
    Error,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Handed in; nobody has begun it.
    Pending,
    /// Somebody drives it; or drove it, and its process ended without a word ([`RunRow::live`]).
    Running,
    /// It is over.
    Success,
    /// It waits for answers.
    Paused,
    /// It stopped between two supersteps: a breakpoint, a drain.
    Stopped,
    /// It failed.
    Error,
    /// It was cancelled.
    Cancelled,
}

impl RunStatus {
    /// Whether nothing more happens unless somebody takes it up again.
    #[must_use]
    pub const fn rests(self) -> bool {
        !matches!(self, RunStatus::Pending | RunStatus::Running)
    }
}

/// The row of a thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadRow {
    /// Its name.
    pub name: String,
    /// Its id outside.
    pub uuid: Uuid,
    /// The graph of its last run.
    pub graph: Option<String>,
    /// How it stands.
    pub status: ThreadStatus,
    /// The run that has its lease, if one has.
    pub holder: Option<RunId>,
    /// When it was first written, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// When it was last written.
    pub updated_ms: u64,
    /// What people say of it.
    pub metadata: Map<String, Value>,
    /// The newest checkpoint of the graph itself.
    pub head: Option<CheckpointId>,
    /// The nodes that are due.
    pub next: Vec<Name>,
    /// All open questions.
    pub interrupts: Vec<Interrupt>,
    /// The state when the thread last came to rest, if it was short: see [`Standing::values`]. Without
    /// it (or with null) there is only the checkpoint to ask.
    pub values: Option<Value>,
}

/// The row of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRow {
    /// Its id.
    pub id: RunId,
    /// Its thread.
    pub thread: String,
    /// Its graph.
    pub graph: String,
    /// How it stands.
    pub status: RunStatus,
    /// Whether it has its thread's lease and its process is heard of.
    pub live: bool,
    /// With what it was started.
    pub arguments: Value,
    /// What to do while another run has the thread, in the words of whoever handed it in.
    pub strategy: Option<String>,
    /// When it was handed in or begun, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// When the row was last written.
    pub updated_ms: u64,
    /// How often it was begun.
    pub attempts: u32,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// Somebody's wish that it end.
    pub cancel: Option<CancelIntent>,
}

/// What happens to a row, for stores: all of them write down the same.
impl RunRow {
    /// A run that nobody has begun.
    #[must_use]
    pub fn pending(id: RunId, thread: &str, start: &RunStart, now_ms: u64) -> Self {
        RunRow {
            id,
            thread: thread.to_owned(),
            graph: start.graph.clone(),
            status: RunStatus::Pending,
            live: false,
            arguments: start.arguments.clone(),
            strategy: None,
            created_ms: now_ms,
            updated_ms: now_ms,
            attempts: 0,
            error: None,
            cancel: None,
        }
    }

    /// Whether this run may be begun on a thread, or taken up again.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it is that of another thread, [`Error::Cancelled`] if it was cancelled before
    /// anybody had begun it, [`Error::RunOver`] if it has come to its end.
    pub fn may_begin(&self, thread: &str) -> Result<(), Error> {
        if self.thread != thread {
            return Err(Error::Conflict {
                thread: self.thread.clone(),
                holder: Some(self.id),
            });
        }
        match (self.status, self.cancel) {
            (RunStatus::Success, _) => Err(Error::RunOver(self.id)),
            // Whoever begins it has not heard of that yet.
            (status, Some(cancel)) if self.attempts == 0 && status.rests() => {
                Err(Error::Cancelled(cancel.reason))
            }
            _ => Ok(()),
        }
    }

    /// Somebody drives it from now on.
    pub fn begin(&mut self, start: &RunStart, now_ms: u64) {
        if self.status.rests() {
            // It is taken up again: what was wished before is done with.
            self.cancel = None;
        }
        self.status = RunStatus::Running;
        self.attempts = self.attempts.saturating_add(1);
        self.updated_ms = now_ms;
        self.error = None;
        self.graph.clone_from(&start.graph);
        if !start.arguments.is_null() {
            self.arguments.clone_from(&start.arguments);
        }
    }

    /// It has come to rest. One that was over stays as it is.
    pub fn end(&mut self, status: RunStatus, error: Option<String>, now_ms: u64) {
        if self.status == RunStatus::Success {
            return;
        }
        self.status = status;
        self.error = error;
        self.updated_ms = now_ms;
        if status.rests()
            && let Some(cancel) = &mut self.cancel
        {
            cancel.done_ms.get_or_insert(now_ms);
        }
    }
}

/// A wish that a run end, as it was written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelIntent {
    /// Why.
    pub reason: CancelReason,
    /// When it was wished, in milliseconds since the Unix epoch.
    pub wished_ms: u64,
    /// When the run had ended; nothing while it has not.
    pub done_ms: Option<u64>,
}

/// A run to be begun later, by whoever comes first.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    /// Its id.
    pub id: RunId,
    /// Its thread, which need not be there.
    pub thread: String,
    /// What its row says.
    pub start: RunStart,
    /// See [`RunRow::strategy`].
    pub strategy: Option<String>,
}

/// Which threads are wanted; by default all, those last written first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadQuery {
    /// Only with this status.
    pub status: Option<ThreadStatus>,
    /// Only those whose last run was of this graph.
    pub graph: Option<String>,
    /// Only those whose metadata has all of these values.
    pub metadata: Map<String, Value>,
    /// At most so many.
    pub limit: Option<usize>,
    /// So many are left out first.
    pub offset: usize,
}

/// Which runs are wanted; by default all, the newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunQuery {
    /// Only on this thread.
    pub thread: Option<String>,
    /// Only with this status.
    pub status: Option<RunStatus>,
    /// At most so many.
    pub limit: Option<usize>,
    /// So many are left out first.
    pub offset: usize,
    /// The oldest first: the order of a queue.
    pub oldest_first: bool,
}

/// Which checkpoints stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The newest of each scope, at least one.
    Last(usize),
    /// Those that are not older than this, in milliseconds since the Unix epoch, and the head.
    Since(u64),
    /// Those up to this one, which becomes the head: what came after is undone, in subgraphs too.
    UpTo(CheckpointId),
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// How many checkpoints, those of subgraphs included.
    pub checkpoints: u64,
    /// How many entries of the log.
    pub events: u64,
    /// Whether nothing was done because something on the thread is pending: an open question, a
    /// breakpoint, a superstep that is not finished, a run that waits or goes on.
    pub pending: bool,
}

impl Pruned {
    /// Nothing was done, since something on the thread is pending.
    pub const PENDING: Pruned = Pruned {
        checkpoints: 0,
        events: 0,
        pending: true,
    };
}

/// How much a thread takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ThreadStats {
    /// The thread.
    pub thread: String,
    /// Checkpoints, those of subgraphs included.
    pub checkpoints: u64,
    /// Notes.
    pub notes: u64,
    /// Entries of the log.
    pub events: u64,
    /// Bytes stored for all of it.
    pub bytes: u64,
    /// Bytes stored for each channel, those of subgraphs included; the largest first.
    pub channels: Vec<(String, u64)>,
}

/// A complete store of threads.
pub trait Threads: Checkpoints + EventLog {
    /// Rows of threads, without loading their states.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    fn threads<'a>(
        &'a self,
        query: &'a ThreadQuery,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, Error>>;

    /// One row.
    ///
    /// # Errors
    /// As [`Threads::threads`].
    fn thread<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<ThreadRow>, Error>>;

    /// Adds to a thread's metadata (null removes a key); makes the thread if it is not there.
    ///
    /// # Errors
    /// [`Error::Store`].
    fn describe<'a>(
        &'a self,
        name: &'a str,
        metadata: Map<String, Value>,
    ) -> BoxFuture<'a, Result<ThreadRow, Error>>;

    /// The namespaces of a thread that have checkpoints, in order: empty for the graph itself, the others
    /// for subgraphs. None for a thread that is not there.
    ///
    /// # Errors
    /// [`Error::Store`].
    fn namespaces<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<String>, Error>>;

    /// Copies a thread with all its scopes, checkpoints, notes and events, under another name. Runs are
    /// not copied. Tasks have other identities there, as after a fork: what they left and asked is on
    /// record only, and what was open is done and asked anew ([`Standing::of`]).
    ///
    /// # Errors
    /// [`Error::UnknownThread`]; [`Error::Conflict`] if there is one of the new name, or a run drives
    /// the old one.
    fn copy<'a>(&'a self, from: &'a str, to: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Removes a thread with all that belongs to it; says whether there was one.
    ///
    /// # Errors
    /// [`Error::Conflict`] naming the run that drives it.
    fn delete<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<bool, Error>>;

    /// Removes checkpoints, with their notes and what only they needed. What stays reads as before, but
    /// that an oldest one may name a parent that is gone. [`Keep::UpTo`] does it whatever is pending: it
    /// undoes a run, and the thread then stands where that checkpoint stands ([`Standing::of`]). Log entries of the removed checkpoints' runs
    /// go when none of the run's checkpoints stays.
    ///
    /// # Errors
    /// [`Error::UnknownThread`], [`Error::UnknownCheckpoint`], [`Error::Conflict`] while a run drives it.
    fn prune<'a>(&'a self, name: &'a str, keep: Keep) -> BoxFuture<'a, Result<Pruned, Error>>;

    /// What [`Threads::prune`] would remove now; nothing is changed.
    ///
    /// # Errors
    /// As there.
    fn prunable<'a>(&'a self, name: &'a str, keep: Keep) -> BoxFuture<'a, Result<Pruned, Error>>;

    /// Writes down what another store knew of a thread that is moved here: since when it is there, and its
    /// runs as they are told, on this thread. The thread is made if it is not there; runs that are there
    /// stay as they are. Says which were written. Nobody drives them here, so each should rest.
    ///
    /// # Errors
    /// [`Error::Conflict`] while a run drives the thread.
    fn adopt<'a>(
        &'a self,
        name: &'a str,
        created_ms: u64,
        runs: Vec<RunRow>,
    ) -> BoxFuture<'a, Result<Vec<RunId>, Error>>;

    /// Removes what these runs wrote: rows, checkpoints, events; but not a checkpoint on which a persistent
    /// subgraph of one that stays stands. A thread whose head is removed stands
    /// where the newest checkpoint left stands.
    ///
    /// # Errors
    /// [`Error::UnknownRun`]; [`Error::Conflict`] while one of them goes on.
    fn delete_runs<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<Pruned, Error>>;

    /// Hands in a run, to wait until somebody begins it.
    ///
    /// # Errors
    /// [`Error::Conflict`] if there is a run of this id.
    fn submit<'a>(&'a self, run: NewRun) -> BoxFuture<'a, Result<RunRow, Error>>;

    /// Rows of runs.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    fn runs<'a>(&'a self, query: &'a RunQuery) -> BoxFuture<'a, Result<Vec<RunRow>, Error>>;

    /// One row.
    ///
    /// # Errors
    /// As [`Threads::runs`].
    fn run<'a>(&'a self, run: RunId) -> BoxFuture<'a, Result<Option<RunRow>, Error>>;

    /// Writes down that a run is to end. Its driver learns of it by [`crate::Lease::wish`], in whatever
    /// process; one that nobody drives is `cancelled` at once; one that rests stays as it is. The first
    /// reason counts.
    ///
    /// # Errors
    /// [`Error::UnknownRun`].
    fn cancel<'a>(
        &'a self,
        run: RunId,
        reason: CancelReason,
    ) -> BoxFuture<'a, Result<RunRow, Error>>;

    /// How much is stored, per thread: the largest first, or only of one.
    ///
    /// # Errors
    /// [`Error::Store`].
    fn stats<'a>(
        &'a self,
        thread: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<ThreadStats>, Error>>;
}
