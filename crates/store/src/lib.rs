//! Keeps what must outlive the process, in SQLite or in Postgres: checkpoints, threads, runs, events,
//! long-term memory, the gateway's records, and the corpus.
//!
//! The traits are those of the engine, of the gateway and of retrieval. All SQL of the project is in here; no rule of
//! the engine is. Rules are written once, over a transaction that either database offers.
//!
//! # Where to look
//! - What a database must offer: `sql` (statements, rows, a transaction), `database` (reads and writes).
//! - The two of them: `sqlite`, `postgres`.
//! - How documents are kept: `codec`, `seal`.
//! - The rules: `checkpoints`, `channels` and `lease`; `threads`, `runs`, `copy`, `prune`, `stats`,
//!   `events`, `memory`, `gateway`, `corpus` and `verify`. They are methods of the one type in `durable`.
#![expect(
    private_bounds,
    reason = "which databases there are is this crate's own business"
)]

mod channels;
mod checkpoints;
mod codec;
mod copy;
mod corpus;
mod database;
mod durable;
mod error;
mod events;
mod gateway;
mod lease;
mod memory;
mod open;
mod options;
#[cfg(feature = "postgres")]
mod postgres;
mod prune;
mod runs;
mod seal;
mod sql;
mod sqlite;
mod stats;
mod threads;
mod verify;

pub use durable::Durable;
pub use error::Error;
pub use gateway::GatewayCounts;
pub use open::{Opened, open};
pub use options::Options;
#[cfg(feature = "postgres")]
pub use postgres::{Postgres, PostgresServer};
pub use seal::{BadKey, KeyMismatch, Seal};
pub use sqlite::Sqlite;
pub use verify::Verify;
