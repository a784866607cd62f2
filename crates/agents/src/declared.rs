//! Agents that stand in a TOML file: read, checked, described as a JSON Schema, and built.
//!
//! The command line reads a file with [`read_agent_file`] and hands in what it has to offer as a [`Supply`]: this crate
//! opens no connection, starts no program and knows no secret.
//!
//! - `keys`: the one table of what may stand in a file; `schema`: the same as JSON Schema.
//! - `shape`: from text to JSON by that table. `check`: what else can be wrong. `mistake`: how it is said.
//! - `policy`: from the rules of a file to the gateway's.
//! - `child`: an agent that another calls as a tool. `context`: how much of a conversation is shown,
//!   `summary`: what stands for the rest. `output`: answers
//!   that have to fit a schema.
//! - `file`: what a file says, as data. `prompt`: variables in prompts.
//! - `build`: an agent from a file ([`declared`]). `actions`: the loop of one with JSON actions; one with tool calls is
//!   one of [`react`](crate::react()). `rehearsal`: how the rehearsal model plays its part.

mod actions;
mod build;
mod check;
mod child;
mod context;
mod drawing;
mod file;
mod keys;
mod mistake;
mod output;
mod policy;
mod prompt;
mod rehearsal;
mod schema;
mod shape;
mod summary;

pub use build::{Parts, Voice, declared, declared_drawing, declared_reader};
pub use check::{Checked, HttpFacts, JudgeMcp, Supply, read_agent_file, read_policies};
pub use child::caller_of;
pub(crate) use context::{beside, shown};
pub use file::{
    AgentFile, AgentSpec, BudgetSpec, ContextSpec, DaySpec, OutputSpec, PolicySpec, ToolsSpec,
    WhenFull,
};
pub use mistake::Mistake;
pub(crate) use output::Output;
pub use policy::DeclaredPolicy;
pub(crate) use rehearsal::rehearse;
pub use schema::agent_schema;
pub(crate) use summary::{Sent, Summary, within};
