//! How a store is opened.

use crate::seal::Seal;
use std::time::Duration;

/// How a store is opened. The default fits one process and several alike.
#[derive(Clone, Debug)]
pub struct Options {
    /// Encrypts what is stored: values, metadata, notes, events and arguments. A store is opened with
    /// the key it was made with, or without one for ever.
    pub key: Option<Seal>,
    /// How long a lease outlives the last sign of its process; renewed every third of that.
    pub lease: Duration,
    /// How long a database that is locked, restarting or gone is asked again before that is an error.
    pub patience: Duration,
    /// At most so many connections at a time (SQLite: for reading).
    pub connections: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            key: None,
            lease: Duration::from_secs(30),
            patience: Duration::from_secs(30),
            connections: 8,
        }
    }
}
