//! Every tool call passes here: validate, decide, reserve budget, ask if need be, run once, record.
//!
//! A model proposes; this crate decides. An agent builds a [`Gateway`] of [`Tool`]s and a [`Policy`],
//! opens a [`Session`] per run, and calls. The gateway knows no graph and no model: a graph gives it the
//! key of a call, a model's text comes in through [`parse_action`] or [`ToolCall::native`]. The
//! [`guide`] shows each part by example and lists where we differ from the article we follow.
//!
//! # Layout
//! - `json`: the bounded reader of whatever comes from outside; `call`: a tool call, and its hash.
//! - `dialect`: the JSON action format, and what a failed call does to the run.
//! - `stop`: why a run ends, and what a model may read instead.
//! - `tool`, `policy`, `loops`, `budget`: what may be called, by whom, how often, at what cost.
//! - `gateway`, `session`, `book`: the door, one run of it, and what that run remembers.
//! - `record`, `store`: what is kept; `output`, `redact`: what is shown.

mod json;

mod call;
mod dialect;
mod stop;

mod tool;

mod policy;

mod loops;

mod budget;

mod book;
mod gateway;
mod session;

mod record;
mod store;

mod output;
mod redact;

mod error;

#[doc = include_str!("docs/guide.md")]
pub mod guide {}

pub use budget::{Budget, Late, Limits, Pause, Price, Reserved, Spend, UNLIMITED, Usage};
pub use call::{ToolCall, args_hash};
pub use dialect::{Dialect, Step, parse_action, raw_action};
pub use error::{Error, Fault};
pub use gateway::{Builder, Gateway};
pub use json::{Bounds, Entries, Items, Json, JsonError, JsonFault, Shape, View};
pub use loops::LoopRule;
pub use policy::{Ask, Policy, Verdict};
pub use record::{CallRecord, Observation, Outcome, Reply, RunRef};
pub use redact::{Redaction, Redactor};
pub use session::{Scope, Session};
pub use stop::{Explanation, Failure, InvalidAction, LlmError, Status, Stop};
pub use store::{Add, Change, Guard, MemoryStore, Store, StoreError, StoreFuture};
pub use tool::{DEFAULT_OUTPUT_CAP, DEFAULT_TIMEOUT, DynTool, Level, Tool, ToolError, ToolSpec};
