//! Postgres as a database of this crate.
