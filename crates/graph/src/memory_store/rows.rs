//! The rows of threads and runs, and who has which thread.

use super::{Inner, MemoryStore, Shared, conflict, events::Log, line::Line, ready, unknown};
use crate::{
    Error,
    checkpoint::{Claim, Lease, Notes, Put, RunEnd, RunStart, Scope},
    clock::{Clock, SystemClock},
    control::CancelReason,
    ids::RunId,
    key::note_key_fits,
    log::LogEntry,
    name::Name,
    origin::with_origin,
    run::Interrupt,
    session::lock,
    threads::{
        CancelIntent, NewRun, RunQuery, RunRow, RunStatus, Standing, ThreadQuery, ThreadRow,
        ThreadStatus,
    },
};
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, hash_map::Entry},
    sync::Arc,
};
use tokio::sync::watch;
use uuid::Uuid;

/// A thread.
pub(super) struct Kept {
    uuid: Uuid,
    graph: Option<String>,
    status: ThreadStatus,
    created_ms: u64,
    updated_ms: u64,
    /// Which of all writes was the last to this thread.
    written: u64,
    metadata: Map<String, Value>,
    next: Vec<Name>,
    interrupts: Vec<Interrupt>,
    values: Option<Value>,
    /// Of the newest lease.
    epoch: u64,
    pub(super) holder: Option<Holder>,
    pub(super) scopes: BTreeMap<Arc<str>, Line>,
    pub(super) log: Log,
}

/// The run that has a thread.
pub(super) struct Holder {
    pub(super) run: RunId,
    wish: watch::Sender<Option<CancelReason>>,
}

/// Gives a thread back when the lease is dropped.
struct Release {
    shared: Arc<Shared>,
    thread: Arc<str>,
    epoch: u64,
}

impl Drop for Release {
    fn drop(&mut self) {
        let mut inner = lock(&self.shared.inner);
        if let Some(kept) = inner.threads.get_mut(&self.thread)
            && kept.epoch == self.epoch
        {
            kept.holder = None;
        }
    }
}

pub(super) fn lease(shared: &Arc<Shared>, thread: &str, claim: Claim) -> Result<Lease, Error> {
    let mut inner = lock(&shared.inner);
    if let Some(holder) = inner.holder(thread) {
        return Err(conflict(thread, Some(holder)));
    }
    if let Some(row) = inner.runs.get(&claim.run)
        && claim.start.is_some()
    {
        row.may_begin(thread)?;
    }
    inner.epoch += 1;
    let epoch = inner.epoch;
    let (wish, wished) = watch::channel(None);
    let now = SystemClock.now_ms();
    let thread: Arc<str> = thread.into();
    let kept = inner.touch(&thread, now);
    kept.epoch = epoch;
    kept.holder = Some(Holder {
        run: claim.run,
        wish,
    });
    if let Some(start) = claim.start {
        kept.graph = Some(start.graph.clone());
        inner.begin(claim.run, &thread, &start, now);
    }
    Ok(Lease {
        epoch,
        wish: Some(wished),
        guard: Some(Box::new(Release {
            shared: shared.clone(),
            thread,
            epoch,
        })),
    })
}

impl Kept {
    fn new(now_ms: u64) -> Self {
        Kept {
            uuid: Uuid::now_v7(),
            graph: None,
            status: ThreadStatus::Idle,
            created_ms: now_ms,
            updated_ms: now_ms,
            written: 0,
            metadata: Map::new(),
            next: Vec::new(),
            interrupts: Vec::new(),
            values: None,
            epoch: 0,
            holder: None,
            scopes: BTreeMap::new(),
            log: Log::default(),
        }
    }

    /// The same under another name: another row, and nobody's.
    pub(super) fn copied(
        &self,
        name: &str,
        now_ms: u64,
        (written, epoch): (u64, u64),
    ) -> Result<Self, Error> {
        let mut copy = Kept {
            epoch,
            graph: self.graph.clone(),
            metadata: self.metadata.clone(),
            written,
            scopes: self.scopes.clone(),
            log: self.log.clone(),
            ..Kept::new(now_ms)
        };
        let lines = copy.scopes.values_mut();
        for kept in lines.flat_map(|line| line.checkpoints.values_mut()) {
            // Whatever the old one is a move of, this is another thread.
            if let Ok(machine) = with_origin(&kept.machine, None) {
                kept.machine = machine;
            }
        }
        copy.stand_at_head(name)?;
        copy.values.clone_from(&self.values);
        Ok(copy)
    }

    pub(super) fn stand(&mut self, standing: Standing) {
        self.status = standing.status;
        self.next = standing.next;
        self.interrupts = standing.interrupts;
        if let Some(values) = standing.values {
            self.values = Some(values).filter(|values| !values.is_null());
        }
    }

    /// Stands where its head stands.
    pub(super) fn stand_at_head(&mut self, name: &str) -> Result<(), Error> {
        let head = self.scopes.get("").and_then(|line| line.load(None));
        let standing = match &head {
            Some(head) => Standing::of(name, head)?,
            None => Standing::IDLE,
        };
        self.values = None;
        self.stand(standing);
        Ok(())
    }

    /// Whether something is to be done on it yet.
    pub(super) fn is_pending(&self) -> bool {
        self.status != ThreadStatus::Idle || !self.next.is_empty() || !self.interrupts.is_empty()
    }

    fn row(&self, name: &str) -> ThreadRow {
        ThreadRow {
            name: name.to_owned(),
            uuid: self.uuid,
            graph: self.graph.clone(),
            status: self.status,
            holder: self.holder.as_ref().map(|holder| holder.run),
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
            metadata: self.metadata.clone(),
            head: self.scopes.get("").and_then(|line| line.head),
            next: self.next.clone(),
            interrupts: self.interrupts.clone(),
            values: self.values.clone(),
        }
    }

    fn wanted(&self, query: &ThreadQuery) -> bool {
        query.status.is_none_or(|status| status == self.status)
            && (query.graph.is_none() || query.graph == self.graph)
            && query
                .metadata
                .iter()
                .all(|(key, value)| self.metadata.get(key) == Some(value))
    }
}

impl Inner {
    pub(super) fn holder(&self, thread: &str) -> Option<RunId> {
        Some(self.threads.get(thread)?.holder.as_ref()?.run)
    }

    pub(super) fn line(&self, scope: &Scope) -> Option<&Line> {
        self.threads
            .get(&scope.thread)?
            .scopes
            .get(&scope.namespace)
    }

    /// The thread, which is written to now; made, if it is not there.
    pub(super) fn touch(&mut self, thread: &Arc<str>, now_ms: u64) -> &mut Kept {
        self.writes += 1;
        let kept = self.threads.entry(thread.clone());
        let kept = kept.or_insert_with(|| Box::new(Kept::new(now_ms)));
        kept.updated_ms = now_ms;
        kept.written = self.writes;
        kept
    }

    /// The same for whoever has no lease.
    fn made(&mut self, name: &str) -> &mut Kept {
        let (epoch, is_new) = (self.epoch, !self.threads.contains_key(name));
        let kept = self.touch(&name.into(), SystemClock.now_ms());
        if is_new {
            // Whoever wrote to a thread of this name before it was deleted has an older one.
            kept.epoch = epoch;
        }
        kept
    }

    /// Whether a write under this lease may be.
    fn fenced(&self, thread: &str, epoch: u64) -> Result<(), Error> {
        match self.threads.get(thread) {
            Some(kept) if kept.epoch > epoch => {
                Err(conflict(thread, kept.holder.as_ref().map(|h| h.run)))
            }
            Some(_) => Ok(()),
            // Whoever has a lease has made the thread: it was deleted since.
            None if epoch > 0 => Err(conflict(thread, None)),
            None => Ok(()),
        }
    }

    /// Says whether the log has grown.
    pub(super) fn put(&mut self, scope: &Scope, mut put: Put) -> Result<bool, Error> {
        put.notes
            .iter()
            .try_for_each(|note| note_key_fits(&note.key))?;
        self.fenced(&scope.thread, put.epoch)?;
        let line = self.line(scope);
        if line.and_then(|line| line.head) != put.expect {
            return Err(conflict(&scope.thread, None));
        }
        if let Some(parent) = put.parent
            && !line.is_some_and(|line| line.checkpoints.contains_key(&parent))
        {
            return Err(unknown(scope, parent));
        }
        let saved = |name: &String| put.deltas.iter().any(|d| d.channel == *name);
        check_same(&put.events, saved)?;
        let kept = self.touch(&scope.thread, SystemClock.now_ms());
        let events = std::mem::take(&mut put.events);
        if let Some(standing) = put.standing.take() {
            kept.stand(standing);
        }
        if !kept.scopes.contains_key(&scope.namespace) {
            kept.scopes.insert(scope.namespace.clone(), Line::default());
        }
        let line = kept.scopes.get_mut(&scope.namespace);
        let line = line.map(|line| {
            line.add(put);
            &*line
        });
        Ok(kept.log.append(events, line))
    }

    /// Says whether the log has grown.
    pub(super) fn note(&mut self, scope: &Scope, notes: Notes) -> Result<bool, Error> {
        notes
            .notes
            .iter()
            .try_for_each(|note| note_key_fits(&note.key))?;
        self.fenced(&scope.thread, notes.epoch)?;
        let there = self
            .line(scope)
            .is_some_and(|line| line.checkpoints.contains_key(&notes.at));
        if !there {
            return Err(unknown(scope, notes.at));
        }
        check_same(&notes.events, |_| false)?;
        let kept = self.touch(&scope.thread, SystemClock.now_ms());
        let line = kept.scopes.get_mut(&scope.namespace);
        if let Some(at) = line.and_then(|line| line.checkpoints.get_mut(&notes.at)) {
            at.notes.extend(notes.notes);
        }
        Ok(kept.log.append(notes.events, None))
    }

    fn begin(&mut self, run: RunId, thread: &str, start: &RunStart, now_ms: u64) {
        let row = self.runs.entry(run);
        row.or_insert_with(|| Box::new(RunRow::pending(run, thread, start, now_ms)))
            .begin(start, now_ms);
    }

    /// Says whether the log has grown.
    pub(super) fn finish(&mut self, thread: &str, end: RunEnd) -> Result<bool, Error> {
        self.fenced(thread, end.epoch)?;
        check_same(&end.events, |_| false)?;
        let now = SystemClock.now_ms();
        let kept = self.touch(&thread.into(), now);
        if kept.epoch == end.epoch {
            kept.holder = None;
        }
        if let Some(standing) = end.standing {
            kept.stand(standing);
        }
        let grew = kept.log.append(end.events, None);
        if let Some(row) = self.runs.get_mut(&end.run) {
            row.end(end.status, end.error, now);
        }
        Ok(grew)
    }

    /// The row, with what only the lease says.
    fn run(&self, row: &RunRow) -> RunRow {
        RunRow {
            live: self.holder(&row.thread) == Some(row.id),
            ..row.clone()
        }
    }

    fn cancel(&mut self, id: RunId, reason: CancelReason) -> Result<RunRow, Error> {
        let row = self.runs.get_mut(&id).ok_or(Error::UnknownRun(id))?;
        if row.status.rests() {
            return Ok((**row).clone());
        }
        let now = SystemClock.now_ms();
        let intent = *row.cancel.get_or_insert(CancelIntent {
            reason,
            wished_ms: now,
            done_ms: None,
        });
        row.updated_ms = now;
        let kept = self.threads.get(&*row.thread);
        match kept.and_then(|kept| kept.holder.as_ref()) {
            Some(holder) if holder.run == id => {
                holder.wish.send_replace(Some(intent.reason));
            }
            _ => {
                row.status = RunStatus::Cancelled;
                row.cancel = Some(CancelIntent {
                    done_ms: Some(now),
                    ..intent
                });
            }
        }
        let row = (**row).clone();
        Ok(self.run(&row))
    }
}

/// A channel that an entry leaves out must be one that is saved with it.
fn check_same(entries: &[LogEntry], saved: impl Fn(&String) -> bool) -> Result<(), Error> {
    let mut left_out = entries.iter().flat_map(|entry| &entry.same);
    match left_out.find(|name| !saved(name)) {
        None => Ok(()),
        Some(name) => Err(Error::store(format!(
            "an event names channel `{name}`, which is not saved with it"
        ))),
    }
}

impl MemoryStore {
    pub(super) fn rows_of_threads(&self, query: &ThreadQuery) -> Vec<ThreadRow> {
        let inner = lock(&self.shared.inner);
        let threads = inner.threads.iter();
        let mut found: Vec<_> = threads.filter(|(_, kept)| kept.wanted(query)).collect();
        found.sort_unstable_by_key(|(_, kept)| Reverse(kept.written));
        let page = found.into_iter().skip(query.offset);
        let page = page.take(query.limit.unwrap_or(usize::MAX));
        page.map(|(name, kept)| kept.row(name)).collect()
    }

    pub(super) fn row_of_thread(&self, name: &str) -> Option<ThreadRow> {
        let inner = lock(&self.shared.inner);
        Some(inner.threads.get(name)?.row(name))
    }

    pub(super) fn describe_thread(&self, name: &str, metadata: Map<String, Value>) -> ThreadRow {
        let mut inner = lock(&self.shared.inner);
        let kept = inner.made(name);
        for (key, value) in metadata {
            match value {
                Value::Null => kept.metadata.remove(&key),
                value => kept.metadata.insert(key, value),
            };
        }
        kept.row(name)
    }

    pub(super) fn submit_run(&self, run: NewRun) -> Result<RunRow, Error> {
        let mut inner = lock(&self.shared.inner);
        if let Some(there) = inner.runs.get(&run.id) {
            return Err(conflict(&there.thread, Some(run.id)));
        }
        let mut row = RunRow::pending(run.id, &run.thread, &run.start, SystemClock.now_ms());
        row.strategy = run.strategy;
        inner.runs.insert(run.id, Box::new(row.clone()));
        Ok(row)
    }

    pub(super) fn adopt_runs(
        &self,
        name: &str,
        created_ms: u64,
        runs: Vec<RunRow>,
    ) -> Result<Vec<RunId>, Error> {
        let mut inner = lock(&self.shared.inner);
        if let Some(holder) = inner.holder(name) {
            return Err(conflict(name, Some(holder)));
        }
        inner.made(name).created_ms = created_ms;
        let mut written = Vec::new();
        for run in runs {
            if let Entry::Vacant(vacant) = inner.runs.entry(run.id) {
                written.push(run.id);
                vacant.insert(Box::new(RunRow {
                    thread: name.to_owned(),
                    ..run
                }));
            }
        }
        Ok(written)
    }

    pub(super) fn rows_of_runs(&self, query: &RunQuery) -> Vec<RunRow> {
        let inner = lock(&self.shared.inner);
        let wanted = |row: &&RunRow| {
            query.thread.as_ref().is_none_or(|t| *t == row.thread)
                && query.status.is_none_or(|status| status == row.status)
        };
        let mut found: Vec<_> = inner
            .runs
            .values()
            .map(Box::as_ref)
            .filter(wanted)
            .collect();
        found.sort_unstable_by_key(|row| (row.created_ms, row.id));
        if !query.oldest_first {
            found.reverse();
        }
        let page = found.into_iter().skip(query.offset);
        let page = page.take(query.limit.unwrap_or(usize::MAX));
        page.map(|row| inner.run(row)).collect()
    }

    pub(super) fn row_of_run(&self, run: RunId) -> Option<RunRow> {
        let inner = lock(&self.shared.inner);
        Some(inner.run(inner.runs.get(&run)?))
    }

    pub(super) fn cancel_run<'a>(
        &self,
        run: RunId,
        reason: CancelReason,
    ) -> BoxFuture<'a, Result<RunRow, Error>> {
        ready(lock(&self.shared.inner).cancel(run, reason))
    }
}
