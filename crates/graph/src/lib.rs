//! Runs a typed state graph step by step: saves after each step, pauses on a question, tells what
//! happened.
//!
//! A graph is async functions over one typed state. All nodes that are due run at the same time,
//! their updates are merged in the order of declaration, the superstep is saved, and the edges say
//! what is due next.
//!
//! ```
//! use paraph_graph::*;
//! #[derive(State, Clone, Default)]
//! struct Greeting { name: String, text: String }
//!
//! async fn greet(state: &Greeting, _: &Ctx) -> Result<Update<Greeting>> {
//!     Ok(Greeting::update().text(format!("Hello, {}!", state.name)))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<()> {
//! let graph = Graph::<Greeting>::new("hello").node("greet", greet).start("greet").end("greet").build()?;
//! assert_eq!(graph.invoke(Greeting::update().name("Ada")).await?.text, "Hello, Ada!");
//! # Ok(()) }
//! ```
//!
//! # Layout
//! What users write: [`State`] and reducers, nodes and [`Command`], [`Builder`] and [`Graph`],
//! [`Thread`] and [`Start`]. What runs it: the pure step machine (`run`), one driver (`drive`), a run
//! in memory (`live`), one task under its policy (`attempt`), saving and telling (`journal`). What
//! stores implement: [`Checkpoints`] and [`Memory`]. This crate knows no model, no tool, no HTTP and
//! no SQL.

mod any;
mod attempt;
mod builder;
mod cache;
mod checkpoint;
mod clock;
pub mod conformance;
mod control;
mod ctx;
pub mod docs;
mod draw;
mod drive;
mod edit;
mod error;
mod event;
mod graph;
mod ids;
mod journal;
mod live;
mod memory;
mod memory_store;
mod name;
mod node;
mod options;
mod policy;
mod run;
mod session;
mod snapshot;
mod start;
mod state;
mod stream;
mod subgraph;
mod thread;
mod topology;
mod wire;

pub use any::{AnyAsk, AnyGraph, AnyWrite, AsNode, Request, Schemas};
pub use builder::Builder;
pub use checkpoint::{
    Checkpoints, Delta, Entry, HistoryQuery, Lease, Loaded, Metadata, Note, NoteKind, Piece, Put,
    Scope, Source, Store,
};
pub use clock::{Clock, SystemClock};
pub use control::{CancelReason, Control, Ending};
pub use ctx::{Ctx, LeaseView};
pub use draw::{Drawing, DrawnEdge, DrawnNode, EdgeKind};
pub use error::{BoxError, Error, NodeError, Result, TimedOut};
pub use event::{Event, EventData, MessageEvent, MessagePhase, Mode, StateView, UpdateView};
pub use graph::{Graph, Names};
pub use ids::{CheckpointId, RunId, TaskId};
pub use journal::Durability;
pub use memory::{Item, Memory, MemoryOf, Namespace, Query};
pub use memory_store::MemoryStore;
pub use name::Name;
pub use node::{
    Command, END, Each, Goto, IntoEach, IntoNode, Node, NodeFn, Reply, START, Target, Update, With,
    with,
};
pub use options::RunOptions;
pub use paraph_graph_derive::State;
pub use policy::Policy;
pub use run::{Failed, Interrupt};
pub use snapshot::{ChildView, Snapshot, TaskError, TaskView};
pub use start::Start;
pub use state::{Change, Channel, IntoChange, List, Patch, PatchKind, Rejected, State, reduce};
pub use stream::{Outcome, StoppedBy, Stream};
pub use subgraph::{Mapped, Shared, SharedGoto};
pub use thread::Thread;
pub use wire::FailureKind;

/// What `#[derive(State)]` expands to. Not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use crate::state::channel::{
        Write, bad, check, decode, decode_list, encode, encode_list, fold, length, length_list,
        no_channel, note, object, read, since, since_list, tell, told, unknown, write, write_last,
        writes,
    };
    pub use crate::state::{Change, Channel, List, Patch, PatchKind, Rejected, reduce};
    pub use serde_json::{Error as JsonError, Map, Value};
}
