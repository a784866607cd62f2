//! The crate's one error type: why an agent cannot be set up. What ends a run is a stop reason.

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The agent's tools and policy do not fit together.
    #[error(transparent)]
    Gateway(#[from] paraph_gateway::Error),
    /// The agent's graph is faulty: a mistake of this crate.
    #[error(transparent)]
    Graph(#[from] paraph_graph::Error),
    /// There is nothing to do.
    #[error("the task is empty")]
    EmptyTask,
    /// The task is longer than an agent takes.
    #[error("the task has {bytes} bytes; an agent takes {limit}")]
    LongTask {
        /// Its length.
        bytes: usize,
        /// The longest task.
        limit: usize,
    },
    /// A run was to go on, or to begin at a checkpoint, where nothing is due.
    #[error("nothing is left to do on thread `{0}` there")]
    NothingLeft(String),
    /// The session could not be opened.
    #[error("the run cannot begin: {0}")]
    Stopped(paraph_gateway::Stop),
}
