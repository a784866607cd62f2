//! The crate's one error type: why an agent cannot be set up, and why a tool node fails. What ends the run
//! of an agent is a stop reason.

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
    /// A variable was given that no prompt of the agent's file can use.
    #[error("the file has no variable `{name}`: {advice}")]
    UnknownVariable {
        /// Its name.
        name: String,
        /// What was probably meant, or what there is.
        advice: String,
    },
    /// A target of an agent's file is to be a number, and its variables make another text of it.
    #[error("`policy.targets.{0}` is to be a number, and what its variables make of it is none")]
    BadTarget(String),
    /// A rule of an agent's file allows what may change something.
    #[error(
        "`policy.allow` is not enough for `{tool}`, which may {level}: name it in `policy.approve`, or say what it does in \
         the `levels` of its server if it only reads"
    )]
    EffectAllowed {
        /// A tool of an MCP server.
        tool: String,
        /// What it may do.
        level: paraph_gateway::Level,
    },
    /// The settings of a research run are out of bounds.
    #[error("research cannot be done like this: {0}")]
    Research(String),
    /// The settings of a triage run are out of bounds.
    #[error("triage cannot be done like this: {0}")]
    Triage(String),
    /// The schema of an agent's answers cannot be used.
    #[error("the schema of the answer cannot be used: {0}")]
    BadOutput(String),
    /// A run was to go on, or to begin at a checkpoint, where nothing is due.
    #[error("nothing is left to do on thread `{0}` there")]
    NothingLeft(String),
    /// What a model said about a report is no judgement.
    #[error("the judge's answer cannot be used: {0}")]
    Judgement(String),
    /// The session could not be opened.
    #[error("the run cannot begin: {0}")]
    Stopped(paraph_gateway::Stop),
    /// A call at a tool node ended the run: its budget is used up, or the model is in a loop.
    #[error("a tool call ended the run: {0}")]
    Ended(paraph_gateway::Stop),
    /// A tool node was sent a call that the model's last message does not have.
    #[error("there is no tool call number {index}: the model's last message has {calls}")]
    NoToolCall {
        /// Its place among the calls.
        index: usize,
        /// How many there are.
        calls: usize,
    },
    /// A tool asked for something that cannot be done in the graph it was called from.
    #[error("the command of the tool `{tool}` does not fit: {why}")]
    BadCommand {
        /// The tool.
        tool: String,
        /// What does not fit.
        why: String,
    },
}
