//! Keeps what must outlive the process, in SQLite or in Postgres: checkpoints, threads, runs, events,
//! long-term memory, and the gateway's records.
//!
//! The traits are those of the engine and of the gateway. All SQL of the project is in here; no rule of
//! the engine is.
#![allow(dead_code, reason = "being built")]

mod database;
mod sql;
