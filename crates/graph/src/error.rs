//! What goes wrong: [`Error`] for whoever builds and runs graphs, [`NodeError`] for whoever writes nodes.

use crate::{CheckpointId, Interrupt, Name, RunId, StoppedBy, control::CancelReason};

/// What a node, and a `main` around a graph, returns: `?` takes any error.
pub type Result<T, E = NodeError> = std::result::Result<T, E>;

/// Any error, boxed.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A failure of a graph as a whole: in building it, in a run, in what is stored of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The graph has faults; these are all of them.
    #[error("the graph `{graph}` cannot be built:\n  {}", faults.join("\n  "))]
    Build {
        /// The graph's name.
        graph: Name,
        /// One sentence per fault.
        faults: Vec<String>,
    },
    /// An update or an input names a channel that the state does not have.
    #[error("unknown channel `{channel}` (known: {known})")]
    UnknownChannel {
        /// The name that was given.
        channel: String,
        /// The names there are.
        known: String,
    },
    /// A value does not fit its channel, on the way in, out of a store, or into JSON.
    #[error("channel `{channel}`: {source}")]
    BadChannel {
        /// The channel.
        channel: String,
        /// What serde says.
        source: serde_json::Error,
    },
    /// An input writes a channel that is not part of the graph's input.
    #[error("channel `{channel}` is not part of the input of `{graph}` (input: {input})")]
    NotAnInput {
        /// The graph.
        graph: Name,
        /// The channel that was written.
        channel: &'static str,
        /// The channels that may be.
        input: String,
    },
    /// The context of a run does not fit the type that the graph was built with, or it takes none.
    #[error("the context of `{graph}`: {why}")]
    BadContext {
        /// The graph.
        graph: Name,
        /// What is wrong.
        why: String,
    },
    /// An update was given as something else than an object.
    #[error("an update is a JSON object keyed by channel, not {0}")]
    NotAnObject(&'static str),
    /// Two nodes wrote a channel without a reducer in one superstep (or both replaced one with).
    ///
    /// The superstep is open and what its tasks wrote is saved: resuming fails again the same way.
    /// Give the channel a reducer, or go on from an older checkpoint with `fork` or `update_as`.
    #[error(
        "`{first}` and `{second}` both wrote `{channel}` in superstep {superstep}; give it a reducer"
    )]
    TwoWriters {
        /// The channel.
        channel: &'static str,
        /// The node declared first.
        first: Name,
        /// The other.
        second: Name,
        /// Where it happened.
        superstep: i64,
    },
    /// A reducer refused a write.
    #[error("channel `{channel}` refused what `{node}` wrote: {why}")]
    Refused {
        /// The channel.
        channel: &'static str,
        /// The node that wrote.
        node: Name,
        /// The reducer's words.
        why: String,
    },
    /// A node went where it had not said it might.
    #[error("`{node}` went to `{target}`, which it did not declare (declared: {declared})")]
    Undeclared {
        /// The node that chose.
        node: Name,
        /// Its choice.
        target: Name,
        /// What it declared.
        declared: String,
    },
    /// A branch or a `Command` chose nothing.
    #[error("`{0}` chose no target; to end there, choose END")]
    NoTarget(Name),
    /// The run ended although a join still waits: one of its sources was never reached.
    #[error("the run ended while the join into `{target}` still waits for {}", missing.join(", "))]
    DeadJoin {
        /// The node that never ran.
        target: Name,
        /// The sources that were not reached.
        missing: Vec<String>,
    },
    /// A node failed, after all its attempts.
    #[error("node `{node}` failed: {source}")]
    Node {
        /// The node.
        node: Name,
        /// What it returned.
        source: BoxError,
    },
    /// A superstep took longer than the run's step timeout.
    #[error("superstep {superstep} took longer than {after:?} (still running: {})", running.join(", "))]
    StepTimeout {
        /// Which superstep.
        superstep: i64,
        /// The limit.
        after: std::time::Duration,
        /// The nodes that had not finished.
        running: Vec<String>,
    },
    /// The recursion limit was reached. Everything finished is saved; `resume` goes on.
    #[error("still running after {0} supersteps; the state is saved and can be continued")]
    RecursionLimit(u64),
    /// Subgraphs call each other without an end, or nearly so.
    #[error("the subgraph `{graph}` would run more than {limit} levels deep")]
    TooDeep {
        /// The graph that did not run.
        graph: Name,
        /// How many levels there may be.
        limit: usize,
    },
    /// Two tasks of one superstep called the same persistent subgraph, which has one state for the thread.
    #[error(
        "the persistent subgraph `{0}` was called twice in one superstep, but has one state for the thread: \
         call it once, or let it keep none"
    )]
    TwoCallers(Name),
    /// A branch, a reducer, or the way a value is written or read panicked. (A node that panics has
    /// failed: [`Error::Node`].) As after a crash: what was saved is saved, and `resume` goes on.
    #[error("panicked outside of a node, in a branch, a reducer or a value's form: {0}")]
    Panicked(String),
    /// Another run drives the thread, or moved it on; nothing of this step was saved.
    #[error("thread `{thread}` is driven by {}; nothing of this run's step was saved", holder.map_or("another run".to_owned(), |h| format!("run {h}")))]
    Conflict {
        /// The thread.
        thread: String,
        /// Who has it, where that is known.
        holder: Option<RunId>,
    },
    /// The thread cannot be deleted, nor one of its runs: something that belongs to it beside its steps is not over.
    #[error("thread `{thread}` is still needed: {why}")]
    StillNeeded {
        /// The thread.
        thread: String,
        /// What is not over, and what to do about it.
        why: String,
    },
    /// An answer names no open question: it is unknown, or was answered before.
    #[error("no interrupt `{0}` is waiting (it may have been answered already)")]
    UnknownInterrupt(String),
    /// `resume` or an answer on a thread where nothing is pending.
    #[error("nothing is waiting on thread `{0}`")]
    NothingToResume(String),
    /// A command without update and target.
    #[error("a command that starts a run needs an update or a target")]
    EmptyCommand,
    /// [`crate::Outcome::done`] on a run that paused.
    #[error("the run paused on {} question(s) where an end was expected", .0.len())]
    Paused(Vec<Interrupt>),
    /// [`crate::Outcome::done`] on a run that was drained or stopped at a breakpoint.
    #[error("the run stopped before {} where an end was expected", .0.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "))]
    Stopped(Vec<Name>),
    /// A question without a store could never be answered.
    #[error(
        "`{0}` asked a question, but the graph runs without a store and could never be resumed"
    )]
    InterruptWithoutStore(Name),
    /// A graph that was built with a store is run without saying on which thread.
    #[error("the graph `{0}` saves its steps: run it on a thread (`graph.open(\"name\")`)")]
    NoThread(Name),
    /// A thread's name is empty or longer than 200 characters.
    #[error("a thread's name has 1 to 200 characters, not {0}")]
    BadThread(usize),
    /// A name or a key takes more bytes than any store keeps; nothing was written.
    #[error("{what} takes at most {most} bytes, not {bytes}")]
    LongKey {
        /// What is too long.
        what: &'static str,
        /// So many it takes.
        bytes: usize,
        /// So many it may.
        most: usize,
    },
    /// A checkpoint, an update or a run option names a node that the graph does not have.
    #[error("the graph `{graph}` has no node `{node}`")]
    UnknownNode {
        /// The graph.
        graph: Name,
        /// The name.
        node: String,
    },
    /// There is no thread of this name.
    #[error("there is no thread `{0}`")]
    UnknownThread(String),
    /// A run that has come to its end is not begun again; what it left is on its thread.
    #[error("run {0} is over; nothing more is done under its id")]
    RunOver(RunId),
    /// There is no run of this id.
    #[error("there is no run {0}")]
    UnknownRun(RunId),
    /// The thread has no such checkpoint.
    #[error("thread `{thread}` has no checkpoint {checkpoint}")]
    UnknownCheckpoint {
        /// The thread.
        thread: String,
        /// The id that was given.
        checkpoint: CheckpointId,
    },
    /// What is stored cannot be read.
    #[error("checkpoint {checkpoint} of thread `{thread}` cannot be read: {why}")]
    Corrupt {
        /// The thread, with the namespace of a subgraph.
        thread: String,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// What is wrong with it.
        why: String,
    },
    /// The store failed.
    #[error("store: {0}")]
    Store(BoxError),
    /// The run was cancelled.
    #[error("the run was cancelled ({0})")]
    Cancelled(CancelReason),
    /// `blocking` inside an async runtime would stop the runtime's thread.
    #[error(
        "a blocking call inside an async runtime; use the async one (in `spawn_blocking` by `Handle::block_on`)"
    )]
    BlockingInAsync,
    /// No runtime could be started for a blocking call.
    #[error("no runtime for a blocking call: {0}")]
    Runtime(std::io::Error),
}

impl Error {
    /// Errors of the engine itself: no other attempt and no handler can make them good, and no node's
    /// name explains them.
    pub(crate) fn ends_the_run(&self) -> bool {
        matches!(
            self,
            Error::Conflict { .. }
                | Error::Store(_)
                | Error::Corrupt { .. }
                | Error::InterruptWithoutStore(_)
                | Error::RecursionLimit(_)
                | Error::TooDeep { .. }
                | Error::TwoCallers(_)
        )
    }

    /// Wraps a failure of a store.
    pub fn store(source: impl Into<BoxError>) -> Self {
        Error::Store(source.into())
    }
}

/// A node's failure, of any type: `?` makes one of every error. Questions to people travel in it too.
///
/// ```
/// use paraph_graph::NodeError;
/// fn parse(text: &str) -> Result<u32, NodeError> {
///     Ok(text.parse()?)
/// }
/// assert_eq!(parse("x").unwrap_err().to_string(), "invalid digit found in string");
/// ```
pub struct NodeError(pub(crate) Kind);

pub(crate) enum Kind {
    /// Questions, on their way from a task to the driver.
    Interrupt(Vec<Interrupt>),
    Failed(BoxError),
    /// The driver ended the task; not the task's own failure.
    Halted,
    /// A subgraph stopped between two of its supersteps.
    Stopped(StoppedBy),
}

impl NodeError {
    /// A failure with only a text.
    pub fn msg(text: impl Into<String>) -> Self {
        NodeError(Kind::Failed(text.into().into()))
    }

    /// The concrete error, for retry policies.
    #[must_use]
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match &self.0 {
            Kind::Failed(e) => e.downcast_ref(),
            _ => None,
        }
    }

    pub(crate) fn halted() -> Self {
        NodeError(Kind::Halted)
    }
}

impl std::fmt::Display for NodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::Interrupt(asked) => write!(f, "{} question(s) are waiting", asked.len()),
            Kind::Failed(e) => e.fmt(f),
            Kind::Halted => f.write_str("the task was ended from outside"),
            Kind::Stopped(_) => f.write_str("the task's subgraph stopped between two supersteps"),
        }
    }
}

// `main` prints an error's `Debug`: people read it, so it is the sentence.
impl std::fmt::Debug for NodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

// `NodeError` is no `Error` itself. If it were, this would overlap with the reflexive `From`.
impl<E: std::error::Error + Send + Sync + 'static> From<E> for NodeError {
    fn from(e: E) -> Self {
        NodeError(Kind::Failed(Box::new(e)))
    }
}

/// An attempt took longer than its node's policy allows. Retried like any other failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("timed out after {after:?}{}", if *idle { " without a sign of life" } else { "" })]
pub struct TimedOut {
    /// The limit that was passed.
    pub after: std::time::Duration,
    /// Whether it was the idle timeout.
    pub idle: bool,
}
