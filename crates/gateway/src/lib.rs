//! The only way from a model to a tool. A model proposes a call; this crate decides whether it happens.
//!
//! An agent builds a [`Gateway`] of [`Tool`]s ([`tool`](macro@tool) makes one of a function) and a [`Policy`] and opens a
//! [`Session`] per run.
//! [`Session::call`] counts a call, judges it, checks its arguments, runs it within its time, once per
//! key, and records it. What a model wrote comes in through [`parse_action`] or [`ToolCall::native`];
//! graphs and models themselves are not known here.
//!
//! ```
//! use paraph_gateway::*;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Word { word: String }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gateway = Gateway::builder(MemoryStore::shared())
//!     .read("count_letters", "Counts the letters of a word", async |args: Word| Ok(args.word.len()))
//!     .policy(Policy::new().allow(["count_letters"]))
//!     .build()?;
//! let session = gateway.session(Scope::new("teacher", "lesson-1"), Limits::default()).await?;
//!
//! let call = ToolCall::native("count_letters", r#"{"word":"paraph"}"#);
//! let Reply::Observed(seen) = session.call("1", &call).await? else { panic!() };
//! assert_eq!(seen.content, "6");
//!
//! let call = ToolCall::native("delete_word", r#"{"word":"paraph"}"#);
//! let Reply::Observed(seen) = session.call("2", &call).await? else { panic!() };
//! assert_eq!(seen.failure.unwrap().to_string(), "tool_denied:delete_word");
//! # Ok(()) }
//! ```
//!
//! The [`guide`] shows each part by example and lists where we differ from the article we follow; the
//! page [`policies`] is about rules.
//!
//! # Layout
//! - `json`: the bounded reader of whatever comes from outside; `call`: a tool call, and its hash.
//! - `canonical`: the one spelling of a JSON value that is signed and chained.
//! - `dialect`: the JSON action format, and what a failed call does to the run.
//! - `stop`: the reasons for which runs end, and failures that a model reads.
//! - `tool`, `policy`, `loops`, `budget`: what may be called, by whom, how often, at what cost.
//! - `gateway`, `session`, `book`: the door, one run of it, and what that run remembers.
//! - `audit`: the chain of what happened, and what checks it.
//! - `record`, `store`: what is kept; [`conformance`]: what every store must do; `output`, `redact`, `display`: what is
//!   shown.

mod json;

mod action;
mod audit;
mod call;
mod canonical;
mod dialect;
mod stop;

mod budget;
mod effect;
mod kill;
mod loops;
mod policy;
mod tool;

mod approvals;
mod book;
mod gateway;
mod rights;
mod seal;
mod session;

pub mod examples;

mod record;
mod store;

mod display;
mod output;
mod redact;

mod error;

pub mod conformance;

#[doc = include_str!("docs/guide.md")]
pub mod guide {}

#[doc = include_str!("docs/policy.md")]
pub mod policies {}

/// What `#[tool]` expands to. Not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use crate::tool::function::{blocking, fallible};
    pub use schemars;
    pub use serde;
}

pub use action::{
    Action, ActionId, ActionRow, BadAction, Changed, Ended, Evidence, Person, Proposal, Resolved,
    Sending, Signer, State, Vote,
};
pub use approvals::{
    AnchorDue, ApprovalError, Approvals, Astray, AstrayFault, Finding, Revocation, Whose,
};
pub use audit::{
    Anchor, AuditEntry, BadAnchor, BadLine, Broken, BrokenLink, Draft, Event, EventKind, Field,
    Head, Pack, PackError, PackReport, PackStep, Salt, Verified, Verifier,
};
pub use budget::{
    BegunStep, Budget, DayFigure, DayLimits, Late, Limits, Pause, Price, Reserved, Spend,
    UNLIMITED, Usage,
};
pub use call::{ToolCall, args_hash};
pub use canonical::{
    CanonicalError, CanonicalFault, MAX_CANONICAL_BYTES, Numbers, canonical, canonical_of,
};
pub use dialect::{Dialect, Step, parse_action, raw_action};
pub use display::{Shown, Warning, is_hidden};
pub use effect::{Attempt, Effect, EffectError, Found, Retry, Signed, Warrant};
pub use error::{Error, Fault};
pub use gateway::{Builder, Gateway};
pub use json::{Bounds, Entries, Items, Json, JsonError, JsonFault, Shape, View};
pub use loops::LoopRule;
pub use paraph_gateway_derive::tool;
pub use policy::{
    Account, Ask, Binding, Condition, Decimal, Decision, Example, Examples, Fit, Flow, Grant,
    GrantHeard, GrantUse, Heard, Hours, Operator, Part, Policy, PolicyEngine, Request, Rule,
    RuleFault, Scalar, Take, Targets, Then, Tried, Verdict, instant,
};
pub use record::{CallRecord, Observation, Outcome, Reply, Ruled, Ruling, RunRef, Waiting, Why};
pub use redact::{Redaction, Redactor};
pub use rights::{Entitled, Rights};
pub use seal::{BadSealKey, SealKey};
pub use session::{Scope, Session, SetAside};
pub use stop::{Explanation, Failure, InvalidAction, LlmError, Status, Stop};
pub use store::{
    Add, Change, Erase, Find, Guard, Kill, MemoryStore, READ_IN, Store, StoreError, StoreFuture,
    StoreLayer, Wake,
};
pub use tool::{
    DEFAULT_OUTPUT_CAP, DEFAULT_TIMEOUT, DynTool, FromContext, Injections, IntoOutput, Level,
    Listener, LookUp, Missing, Progress, ProgressReport, Tool, ToolCommand, ToolContext, ToolError,
    ToolOutput, ToolSpec, schema_fault,
};
