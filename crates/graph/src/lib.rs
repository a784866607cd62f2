//! A graph engine with durable steps: async functions over one typed state, checkpointed after every
//! superstep.
//!
//! A run goes from superstep to superstep. Whatever is due runs at once; what it wrote is folded into the
//! state in the order in which the nodes were declared, and saved; then the routes say what is due. So a
//! run can stop anywhere (on a question to a person, at a breakpoint, by a crash) and go on in another
//! process.
//!
//! ```
//! use paraph_graph::*;
//!
//! #[derive(State, Clone, Default)]
//! struct Countdown { left: u32, #[reduce(append)] said: Vec<String> }
//!
//! async fn tick(count: &Countdown, _: &Ctx) -> Result<Update<Countdown>> {
//!     Ok(Countdown::update().said([count.left.to_string()]).left(count.left - 1))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<()> {
//! let graph = Graph::<Countdown>::new("countdown")
//!     .node("tick", tick)
//!     .start("tick")
//!     .branch("tick", |count| if count.left > 0 { "tick" } else { END }, ["tick", END])
//!     .build()?;
//! assert_eq!(graph.invoke(Countdown::update().left(3)).await?.said, ["3", "2", "1"]);
//! # Ok(()) }
//! ```
//!
//! Read the [guide](docs::guide) first: every feature by a compiled example. If you come from LangGraph,
//! [these](docs::differences) are the differences.
//!
//! # Where to look
//! - To write graphs: [`State`] and its reducers ([`reduce`]), [`Graph`] and its [`Builder`], [`Command`],
//!   [`Each`], [`Policy`]; in nodes [`Ctx`].
//! - To run them: [`Thread`], [`Start`], [`Stream`] with its [`Event`]s, [`Outcome`], [`Control`].
//! - To look back: [`Snapshot`], [`HistoryQuery`], [`Thread::fork`].
//! - To serve them without their types: [`AnyGraph`].
//! - To keep them elsewhere: [`Checkpoints`], [`Memory`], and the rules in [`conformance`] that every
//!   store must pass; [`MemoryStore`] is one in this process.
//!
//! This crate knows no model, no tool, no HTTP and no SQL. For who works on it: the pure step machine is
//! `run`, the one driver `drive`, a run in memory `live`, one task under its policy `attempt`, saving and
//! telling `journal`.

// What `#[derive(State)]` expands to names this crate, also here.
extern crate self as paraph_graph;

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
mod key;
mod live;
mod log;
mod memory;
mod memory_store;
mod name;
mod node;
mod options;
mod origin;
mod policy;
mod run;
mod session;
mod snapshot;
mod standing;
mod start;
mod state;
mod stream;
mod subgraph;
mod thread;
mod threads;
mod topology;
mod wire;

pub use any::{AnyAsk, AnyGraph, AnyWrite, AsNode, Request, Schemas};
pub use builder::Builder;
pub use checkpoint::{
    Checkpoints, Claim, Delta, Entry, HistoryQuery, Lease, Loaded, Metadata, Note, NoteKind, Notes,
    Piece, Put, RunEnd, RunStart, Scope, Source, Store,
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
pub use key::{LONGEST_KEY, memory_key_fits, note_key_fits};
pub use log::{EventLog, LogEntry, LogQuery, Logged, fill};
pub use memory::{Item, Memory, MemoryOf, Namespace, Query};
pub use memory_store::MemoryStore;
pub use name::Name;
pub use node::{
    Command, END, Each, Goto, IntoEach, IntoNode, Node, NodeFn, Reply, START, Target, Update, With,
    with,
};
pub use options::RunOptions;
pub use origin::with_origin;
pub use paraph_graph_derive::State;
pub use policy::Policy;
pub use run::{Failed, Interrupt};
pub use snapshot::{ChildView, Snapshot, TaskError, TaskView};
pub use start::Start;
pub use state::{Change, Channel, IntoChange, List, Patch, PatchKind, Rejected, State, reduce};
pub use stream::{Outcome, StoppedBy, Stream};
pub use subgraph::{Mapped, Shared};
pub use thread::Thread;
pub use threads::{
    CancelIntent, Keep, NewRun, Pruned, RunQuery, RunRow, RunStatus, Standing, ThreadQuery,
    ThreadRow, ThreadStats, ThreadStatus, Threads,
};
pub use wire::FailureKind;

/// What `#[derive(State)]` expands to. Not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use crate::state::channel::{Write, check, fold, write, write_last, writes};
    pub use crate::state::json::{note, object, read, tell, told, unknown};
    pub use crate::state::stored::{
        decode, decode_list, encode, encode_list, length, length_list, no_channel, since,
        since_list,
    };
    pub use crate::state::{Change, Channel, List, Patch, PatchKind, Rejected, reduce};
    pub use serde_json::{Error as JsonError, Map, Value};
}
