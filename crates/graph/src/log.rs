//! The log of a thread: what its runs told, in one sequence, kept with what it tells of.
//!
//! The engine hands a store the entries of a superstep together with the superstep (`journal.rs`); whoever
//! joins later reads them here. Values that the checkpoint stores anyway are named and not repeated, so
//! that the log grows with what happened.

use crate::{Error, ids::RunId};
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// One event to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The run.
    pub run: RunId,
    /// The subgraph it happened in; empty for the graph itself.
    pub namespace: String,
    /// When, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// The event as a JSON object, but for `seq`.
    pub json: String,
    /// Channels that are missing from the object under `update`: there they have, exactly, the pieces
    /// that the same [`crate::Put`] stores for them.
    pub same: Vec<String>,
}

/// An event as it was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Logged {
    /// Its place in the thread's log, from 1. Grows by one, also over runs; gaps are what retention
    /// took.
    pub seq: u64,
    /// The run.
    pub run: RunId,
    /// When, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// The whole event as a JSON object, but for `seq`.
    pub json: String,
}

/// Which part of a log is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Only what comes after this one; 0 for all.
    pub after: u64,
    /// Only of this run.
    pub run: Option<RunId>,
    /// At most so many; 0 is read as 1,000.
    pub limit: usize,
}

impl LogQuery {
    /// How many entries one answer has at most where the caller does not say.
    pub const LIMIT: usize = 1000;

    /// The limit, where 0 stands for [`LogQuery::LIMIT`].
    #[must_use]
    pub fn limit(&self) -> usize {
        match self.limit {
            0 => Self::LIMIT,
            n => n,
        }
    }
}

/// Where events are kept. Appending is part of [`crate::Checkpoints`], since it is part of what is told.
pub trait EventLog: Send + Sync + 'static {
    /// Entries in their order.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    fn events<'a>(
        &'a self,
        thread: &'a str,
        query: &'a LogQuery,
    ) -> BoxFuture<'a, Result<Vec<Logged>, Error>>;

    /// Waits until the thread's log has an entry after this one.
    ///
    /// # Errors
    /// [`Error::Store`].
    fn grown<'a>(&'a self, thread: &'a str, after: u64) -> BoxFuture<'a, Result<(), Error>>;

    /// Forgets entries up to and including this one; says how many.
    ///
    /// # Errors
    /// [`Error::Store`].
    fn trim<'a>(&'a self, thread: &'a str, upto: u64) -> BoxFuture<'a, Result<u64, Error>>;
}

/// Puts pieces back into the `update` of an entry, for stores: `json` and `same` are those of a
/// [`LogEntry`], `pieces` the JSON texts by channel.
///
/// # Errors
/// What is wrong, in words.
pub fn fill(json: &str, pieces: &BTreeMap<String, Box<RawValue>>) -> Result<String, String> {
    if pieces.is_empty() {
        return Ok(json.to_owned());
    }
    // Raw, since numbers keep their digits and what is in them is nobody's business here.
    let mut event: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(json).map_err(|e| format!("an event is no object: {e}"))?;
    let update = event.get("update").map_or("{}", |update| update.get());
    let mut update: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(update).map_err(|e| format!("an update is no object: {e}"))?;
    update.extend(pieces.iter().map(|(k, v)| (k.clone(), v.clone())));
    let update = serde_json::value::to_raw_value(&update).map_err(|e| e.to_string())?;
    event.insert("update".to_owned(), update);
    serde_json::to_string(&event).map_err(|e| e.to_string())
}
