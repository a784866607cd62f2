//! The shapes that are measured, and the ways to measure them.
//!
//! Used by the two binaries of this package: `paraph-bench` takes the time and prints the table,
//! `paraph-bench-count` counts allocations. Nothing here is shipped. In reading order:
//! - `setting`: what is switched on while a shape runs;
//! - `ground`: the stores that outlive a process, each fresh for one run;
//! - `bare`: the floor of those: a loop that commits the same bytes;
//! - `case`: one shape with its graph and its hand-written floor, run once;
//! - `mcp_server`: what the shape `mcp_N` talks to;
//! - [`shapes`]: all shapes by name; `benches/langgraph/bench.py` has the same ones;
//! - `sample`: many runs of several contenders, interleaved;
//! - `child`: what must be measured in a process of its own;
//! - `peer`: LangGraph, in a Python process;
//! - `table`: the result as text.

mod setting;

mod ground;

mod bare;

mod case;

mod mcp_server;

pub mod shapes;

mod sample;

mod child;

mod peer;

mod table;

pub use case::{Case, Fault, Floor, Run, Shape};
pub use child::{Counts, count, measure_peak, peak_of_this_process};
pub use ground::{POSTGRES, set_postgres};
pub use mcp_server::{MCP_SERVER, serve_mcp};
pub use peer::{Peer, Saver};
pub use sample::{Times, measure};
pub use setting::{Kept, Save, Setting};
pub use table::{LEGEND, Row, Table};
