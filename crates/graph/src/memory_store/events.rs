//! The log of a thread. Values that a checkpoint has too are shared with it.

use super::{MemoryStore, line::Line, ready};
use crate::{
    Error,
    checkpoint::Piece,
    ids::RunId,
    log::{EventLog, LogEntry, LogQuery, Logged, fill},
    session::lock,
};
use futures::future::BoxFuture;
use std::collections::{BTreeMap, VecDeque};

/// The entries of one thread.
#[derive(Clone, Default)]
pub(super) struct Log {
    pub(super) entries: VecDeque<Logging>,
    /// Of the newest.
    seq: u64,
}

#[derive(Clone)]
pub(super) struct Logging {
    seq: u64,
    pub(super) run: RunId,
    created_ms: u64,
    json: String,
    same: Vec<(String, Piece)>,
}

impl Logging {
    pub(super) fn len(&self) -> usize {
        self.json.len()
    }

    fn read(&self) -> Result<Logged, Error> {
        let pieces: Result<BTreeMap<_, _>, _> = self
            .same
            .iter()
            .map(|(name, piece)| Ok((name.clone(), serde_json::from_slice(&piece.json)?)))
            .collect();
        let pieces = pieces.map_err(|e: serde_json::Error| Error::store(e))?;
        Ok(Logged {
            seq: self.seq,
            run: self.run,
            created_ms: self.created_ms,
            json: fill(&self.json, &pieces).map_err(Error::store)?,
        })
    }
}

impl Log {
    /// Appends; `line` is the scope that was written with it. Says whether there was anything.
    pub(super) fn append(&mut self, entries: Vec<LogEntry>, line: Option<&Line>) -> bool {
        let grows = !entries.is_empty();
        for entry in entries {
            self.seq += 1;
            let piece = |name: String| Some((line?.newest_piece(&name)?, name));
            let same = entry.same.into_iter().filter_map(piece);
            self.entries.push_back(Logging {
                seq: self.seq,
                run: entry.run,
                created_ms: entry.created_ms,
                json: entry.json,
                same: same.map(|(piece, name)| (name, piece)).collect(),
            });
        }
        grows
    }

    fn select(&self, query: &LogQuery) -> Result<Vec<Logged>, Error> {
        // Entries have their numbers in order, so the first that is wanted is found by halving.
        let from = self.entries.partition_point(|e| e.seq <= query.after);
        let entries = self.entries.range(from..);
        let wanted = entries.filter(|e| query.run.is_none_or(|run| run == e.run));
        wanted.take(query.limit()).map(Logging::read).collect()
    }
}

impl EventLog for MemoryStore {
    fn events<'a>(
        &'a self,
        thread: &'a str,
        query: &'a LogQuery,
    ) -> BoxFuture<'a, Result<Vec<Logged>, Error>> {
        let inner = lock(&self.shared.inner);
        let found = inner.threads.get(thread).map(|kept| kept.log.select(query));
        ready(found.unwrap_or_else(|| Ok(Vec::new())))
    }

    fn grown<'a>(&'a self, thread: &'a str, after: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            loop {
                let grown = self.shared.grown.notified();
                let newest = {
                    let inner = lock(&self.shared.inner);
                    let log = inner.threads.get(thread).map(|kept| &kept.log);
                    log.and_then(|log| log.entries.back()).map_or(0, |e| e.seq)
                };
                if newest > after {
                    return Ok(());
                }
                grown.await;
            }
        })
    }

    fn trim<'a>(&'a self, thread: &'a str, upto: u64) -> BoxFuture<'a, Result<u64, Error>> {
        let mut inner = lock(&self.shared.inner);
        let Some(kept) = inner.threads.get_mut(thread) else {
            return ready(Ok(0));
        };
        let old = kept.log.entries.partition_point(|e| e.seq <= upto);
        kept.log.entries.drain(..old);
        ready(Ok(old as u64))
    }
}
