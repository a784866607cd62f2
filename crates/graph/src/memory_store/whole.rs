//! What is done with whole threads: rows read, copies, removal, retention, sizes.

use super::{Inner, MemoryStore, conflict, line::Checkpoint, ready, rows::Kept, unknown};
use crate::{
    Error,
    checkpoint::Scope,
    clock::{Clock, SystemClock},
    control::CancelReason,
    ids::{CheckpointId, RunId},
    session::lock,
    threads::{
        Keep, NewRun, Pruned, RunQuery, RunRow, RunStatus, ThreadQuery, ThreadRow, ThreadStats,
        Threads,
    },
};
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

impl Threads for MemoryStore {
    fn threads<'a>(
        &'a self,
        query: &'a ThreadQuery,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, Error>> {
        ready(Ok(self.rows_of_threads(query)))
    }

    fn thread<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<ThreadRow>, Error>> {
        ready(Ok(self.row_of_thread(name)))
    }

    fn describe<'a>(
        &'a self,
        name: &'a str,
        metadata: Map<String, Value>,
    ) -> BoxFuture<'a, Result<ThreadRow, Error>> {
        ready(Ok(self.describe_thread(name, metadata)))
    }

    fn namespaces<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        let inner = lock(&self.shared.inner);
        let scopes = inner.threads.get(name).into_iter().flat_map(|t| &t.scopes);
        let has = scopes.filter(|(_, line)| !line.checkpoints.is_empty());
        ready(Ok(has
            .map(|(namespace, _)| namespace.to_string())
            .collect()))
    }

    fn copy<'a>(&'a self, from: &'a str, to: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        ready(lock(&self.shared.inner).copy(from, to))
    }

    fn delete<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<bool, Error>> {
        ready(lock(&self.shared.inner).delete(name))
    }

    fn prune<'a>(&'a self, name: &'a str, keep: Keep) -> BoxFuture<'a, Result<Pruned, Error>> {
        ready(lock(&self.shared.inner).prune(name, keep))
    }

    fn prunable<'a>(&'a self, name: &'a str, keep: Keep) -> BoxFuture<'a, Result<Pruned, Error>> {
        ready(lock(&self.shared.inner).prunable(name, keep))
    }

    fn adopt<'a>(
        &'a self,
        name: &'a str,
        created_ms: u64,
        runs: Vec<RunRow>,
    ) -> BoxFuture<'a, Result<Vec<RunId>, Error>> {
        ready(self.adopt_runs(name, created_ms, runs))
    }

    fn delete_runs<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<Pruned, Error>> {
        ready(lock(&self.shared.inner).delete_runs(runs))
    }

    fn submit<'a>(&'a self, run: NewRun) -> BoxFuture<'a, Result<RunRow, Error>> {
        ready(self.submit_run(run))
    }

    fn runs<'a>(&'a self, query: &'a RunQuery) -> BoxFuture<'a, Result<Vec<RunRow>, Error>> {
        ready(Ok(self.rows_of_runs(query)))
    }

    fn run<'a>(&'a self, run: RunId) -> BoxFuture<'a, Result<Option<RunRow>, Error>> {
        ready(Ok(self.row_of_run(run)))
    }

    fn cancel<'a>(
        &'a self,
        run: RunId,
        reason: CancelReason,
    ) -> BoxFuture<'a, Result<RunRow, Error>> {
        self.cancel_run(run, reason)
    }

    fn stats<'a>(
        &'a self,
        thread: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<ThreadStats>, Error>> {
        let inner = lock(&self.shared.inner);
        let wanted = |name: &str| thread.is_none_or(|thread| thread == name);
        let kept = inner.threads.iter().filter(|(name, _)| wanted(name));
        let mut all: Vec<_> = kept.map(|(name, kept)| kept.measure(name)).collect();
        all.sort_by(|a, b| (b.bytes, &a.thread).cmp(&(a.bytes, &b.thread)));
        ready(Ok(all))
    }
}

impl Inner {
    /// The thread, if nobody drives it.
    fn at_rest(&mut self, name: &str) -> Result<&mut Kept, Error> {
        if let Some(holder) = self.holder(name) {
            return Err(conflict(name, Some(holder)));
        }
        let missing = || Error::UnknownThread(name.to_owned());
        self.threads
            .get_mut(name)
            .map(|kept| &mut **kept)
            .ok_or_else(missing)
    }

    fn copy(&mut self, from: &str, to: &str) -> Result<(), Error> {
        if self.threads.contains_key(to) {
            return Err(conflict(to, self.holder(to)));
        }
        let (written, epoch) = (self.writes + 1, self.epoch);
        let kept = self.at_rest(from)?;
        let copy = kept.copied(to, SystemClock.now_ms(), (written, epoch))?;
        self.writes = written;
        self.threads.insert(to.into(), Box::new(copy));
        Ok(())
    }

    fn delete(&mut self, name: &str) -> Result<bool, Error> {
        if let Some(holder) = self.holder(name) {
            return Err(conflict(name, Some(holder)));
        }
        self.runs.retain(|_, row| row.thread != name);
        // A thread of this name that is made anew is newer than all who wrote to this one.
        self.epoch += 1;
        Ok(self.threads.remove(name).is_some())
    }

    /// The thread to be pruned; nothing if something on it is to go on.
    fn prunes(&mut self, name: &str, keep: Keep) -> Result<Option<&mut Kept>, Error> {
        let waits = |row: &RunRow| row.thread == name && row.status == RunStatus::Pending;
        let waits = self.runs.values().any(|row| waits(row));
        let kept = self.at_rest(name)?;
        if let Keep::UpTo(at) = keep {
            let root = kept.scopes.get("");
            if !root.is_some_and(|line| line.checkpoints.contains_key(&at)) {
                let scope = Scope {
                    thread: name.into(),
                    namespace: "".into(),
                };
                return Err(unknown(&scope, at));
            }
        } else if waits || kept.is_pending() {
            return Ok(None);
        }
        Ok(Some(kept))
    }

    fn prune(&mut self, name: &str, keep: Keep) -> Result<Pruned, Error> {
        match self.prunes(name, keep)? {
            Some(kept) => kept.prune(name, keep),
            None => Ok(Pruned::PENDING),
        }
    }

    fn prunable(&mut self, name: &str, keep: Keep) -> Result<Pruned, Error> {
        match self.prunes(name, keep)? {
            // Of a copy it takes as much.
            Some(kept) => kept.copied(name, 0, (0, 0))?.prune(name, keep),
            None => Ok(Pruned::PENDING),
        }
    }

    fn delete_runs(&mut self, runs: &[RunId]) -> Result<Pruned, Error> {
        let mut threads: HashSet<Arc<str>> = HashSet::new();
        for run in runs {
            let row = self.runs.get(run).ok_or(Error::UnknownRun(*run))?;
            if self.holder(&row.thread) == Some(*run) {
                return Err(conflict(&row.thread, Some(*run)));
            }
            threads.insert(row.thread.as_str().into());
        }
        for thread in &threads {
            if let Some(holder) = self.holder(thread) {
                return Err(conflict(thread, Some(holder)));
            }
        }
        let mut all = Pruned::default();
        self.runs.retain(|id, _| !runs.contains(id));
        for name in threads {
            let Some(kept) = self.threads.get_mut(&name) else {
                continue;
            };
            let head = kept.scopes.get("").and_then(|line| line.head);
            let lines = kept.scopes.values().flat_map(|line| &line.checkpoints);
            let stay = lines.filter(|(_, c)| !runs.contains(&c.entry.metadata.run));
            let mut stays: HashSet<CheckpointId> = stay.map(|(id, _)| *id).collect();
            kept.follow(&mut stays);
            let mut gone = Vec::new();
            for line in kept.scopes.values_mut() {
                gone.append(&mut line.retain(|c| stays.contains(&c.entry.id)));
            }
            let before = kept.log.entries.len();
            kept.log.entries.retain(|entry| !runs.contains(&entry.run));
            all.events += (before - kept.log.entries.len()) as u64;
            all.checkpoints += kept.forget(&gone).checkpoints;
            if kept.scopes.get("").and_then(|line| line.head) != head {
                kept.stand_at_head(&name)?;
            }
        }
        Ok(all)
    }
}

impl Kept {
    fn prune(&mut self, name: &str, keep: Keep) -> Result<Pruned, Error> {
        let head = self.scopes.get("").and_then(|line| line.head);
        let mut stays = HashSet::new();
        for line in self.scopes.values() {
            let from = match keep {
                Keep::Last(n) => line.checkpoints.keys().nth_back(n.max(1) - 1).copied(),
                Keep::Since(_) | Keep::UpTo(_) => None,
            };
            let all = line.checkpoints.values();
            let wanted = all.filter(|kept| match keep {
                Keep::Last(_) => from.is_none_or(|from| kept.entry.id >= from),
                Keep::Since(ms) => {
                    kept.entry.metadata.created_ms >= ms || line.head == Some(kept.entry.id)
                }
                Keep::UpTo(at) => kept.entry.id <= at,
            });
            stays.extend(wanted.map(|kept| kept.entry.id));
        }
        self.follow(&mut stays);
        let mut gone = Vec::new();
        for line in self.scopes.values_mut() {
            gone.append(&mut line.retain(|kept| stays.contains(&kept.entry.id)));
        }
        let pruned = self.forget(&gone);
        if self.scopes.get("").and_then(|line| line.head) != head {
            self.stand_at_head(name)?;
        }
        Ok(pruned)
    }

    /// Adds the checkpoints of subgraphs that are named by the machines of those that stay: there a
    /// persistent subgraph stands.
    fn follow(&self, stays: &mut HashSet<CheckpointId>) {
        let lines = self.scopes.values().flat_map(|line| &line.checkpoints);
        let all: HashMap<_, _> = lines.map(|(id, kept)| (*id, kept)).collect();
        let mut unread: Vec<CheckpointId> = stays.iter().copied().collect();
        while let Some(kept) = unread.pop().and_then(|id| all.get(&id)) {
            let texts = kept.machine.split(|byte| *byte == b'"');
            for text in texts.filter(|text| text.len() == 36) {
                let id = std::str::from_utf8(text)
                    .ok()
                    .and_then(|text| text.parse().ok());
                if let Some(id) = id.filter(|id| all.contains_key(id))
                    && stays.insert(id)
                {
                    unread.push(id);
                }
            }
        }
    }

    /// Drops what belongs to checkpoints that are gone: empty scopes, and the events of runs of which
    /// nothing is left.
    fn forget(&mut self, gone: &[Checkpoint]) -> Pruned {
        self.scopes.retain(|_, line| !line.checkpoints.is_empty());
        let run = |kept: &Checkpoint| kept.entry.metadata.run;
        let mut runs: HashSet<RunId> = gone.iter().map(run).collect();
        for kept in self.scopes.values().flat_map(|l| l.checkpoints.values()) {
            runs.remove(&run(kept));
        }
        let before = self.log.entries.len();
        self.log.entries.retain(|entry| !runs.contains(&entry.run));
        Pruned {
            checkpoints: gone.len() as u64,
            events: (before - self.log.entries.len()) as u64,
            pending: false,
        }
    }

    pub(super) fn measure(&self, name: &str) -> ThreadStats {
        let mut stats = ThreadStats {
            thread: name.to_owned(),
            events: self.log.entries.len() as u64,
            ..ThreadStats::default()
        };
        let mut channels: BTreeMap<String, u64> = BTreeMap::new();
        let mut seen = HashSet::new();
        for kept in self.scopes.values().flat_map(|l| l.checkpoints.values()) {
            stats.checkpoints += 1;
            stats.bytes += kept.machine.len() as u64;
            for note in kept.notes.in_order() {
                stats.notes += 1;
                stats.bytes += note.json.len() as u64;
            }
            for (channel, link) in &kept.channels {
                // Older pieces are the newest of an older checkpoint, so each is met here.
                if seen.insert(Arc::as_ptr(link)) {
                    *channels.entry(channel.to_string()).or_default() +=
                        link.piece.json.len() as u64;
                }
            }
        }
        let events = self.log.entries.iter().map(|entry| entry.len());
        stats.bytes += channels.values().sum::<u64>() + events.sum::<usize>() as u64;
        stats.channels = channels.into_iter().collect();
        stats.channels.sort_by_key(|(_, bytes)| Reverse(*bytes));
        stats
    }
}
