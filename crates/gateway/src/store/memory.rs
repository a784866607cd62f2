//! The store that dies with the process: for tests, and for runs that need not outlive it.

use super::{Change, Find, Guard, Kill, Store, StoreError, StoreFuture, Wake};
use crate::action::{ActionId, ActionRow};
use crate::audit::{AuditEntry, Draft};
use crate::record::{CallRecord, RunRef};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// For tests, and for runs that need not outlive the process.
#[derive(Default)]
pub struct MemoryStore {
    kept: Mutex<Kept>,
    clock: Option<Box<dyn Fn() -> u64 + Send + Sync>>,
}

#[derive(Debug, Default)]
struct Kept {
    runs: HashMap<Arc<RunRef>, Run>,
    actions: BTreeMap<ActionId, ActionRow>,
    wakes: Vec<Wake>,
    kills: BTreeMap<String, Kill>,
    audit: BTreeMap<String, Vec<AuditEntry>>,
}

#[derive(Debug, Default)]
struct Run {
    calls: HashMap<String, CallRecord>,
    counters: BTreeMap<String, u64>,
}

impl MemoryStore {
    /// An empty one, as gateways take it.
    pub fn shared() -> Arc<dyn Store> {
        Arc::new(MemoryStore::default())
    }

    /// An empty one with another clock than the system's: milliseconds since the Unix epoch.
    pub fn with_clock(clock: impl Fn() -> u64 + Send + Sync + 'static) -> Arc<dyn Store> {
        Arc::new(MemoryStore {
            clock: Some(Box::new(clock)),
            ..MemoryStore::default()
        })
    }

    fn now(&self) -> u64 {
        match &self.clock {
            Some(clock) => clock(),
            None => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH);
                let ms = since.unwrap_or_default().as_millis();
                u64::try_from(ms).unwrap_or(u64::MAX)
            }
        }
    }

    fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Kept) -> Result<T, StoreError>,
    ) -> StoreFuture<'static, T> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(std::future::ready(work(&mut kept)))
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl Kept {
    fn holds(&self, guard: &Guard, change: &Change, now_ms: u64) -> bool {
        let found = |run: &Arc<RunRef>, key: &str| {
            self.runs.get(run).and_then(|run: &Run| run.calls.get(key))
        };
        match guard {
            Guard::Fresh { run, key } => found(run, key).is_none(),
            Guard::Open { run, key } => {
                found(run, key).is_some_and(|record| record.outcome.is_none())
            }
            Guard::At { id, version } => {
                let row = self.actions.get(id);
                row.is_some_and(|row| row.version == *version)
            }
            Guard::Alive { scopes } => !scopes.iter().any(|scope| self.kills.contains_key(scope)),
            Guard::Most { run, counter, most } => {
                let run_now = self.runs.get(run);
                let now = run_now.and_then(|run| run.counters.get(counter)).copied();
                let adds = change.add.iter();
                let adds = adds.filter(|add| add.run == *run && add.counter == *counter);
                adds.fold(now.unwrap_or(0), |sum, add| sum.saturating_add(add.by)) <= *most
            }
            Guard::Before { at_ms } => now_ms < *at_ms,
        }
    }

    fn write(&mut self, change: Change) {
        for record in change.calls {
            let run = self.runs.entry(record.run.clone()).or_default();
            run.calls.insert(record.key.clone(), record);
        }
        for add in change.add {
            let run = self.runs.entry(add.run).or_default();
            let counter = run.counters.entry(add.counter).or_default();
            *counter = counter.saturating_add(add.by);
        }
        for less in change.give_back {
            let run = self.runs.get_mut(&less.run);
            if let Some(counter) = run.and_then(|run| run.counters.get_mut(&less.counter)) {
                *counter = counter.saturating_sub(less.by);
            }
        }
        for row in change.actions {
            self.actions.insert(row.id(), row);
        }
        self.wakes.retain(|wake| !change.woken.contains(wake));
        for wake in change.wake {
            // There is one wake for each call that waits: the newest.
            self.wakes
                .retain(|other| (&other.run, &other.key) != (&wake.run, &wake.key));
            self.wakes.push(wake);
        }
        for scope in change.unkill {
            self.kills.remove(&scope);
        }
        for kill in change.kill {
            self.kills.insert(kill.scope.clone(), kill);
        }
        for draft in change.audit {
            self.seal(draft);
        }
        for erase in change.erase {
            let chain = self.audit.get_mut(&erase.tenant).into_iter().flatten();
            let named = chain.filter(|entry| entry.seq == erase.seq);
            named.for_each(|entry| entry.detail = None);
        }
    }

    fn seal(&mut self, draft: Draft) {
        let chain = self.audit.entry(draft.tenant().to_owned()).or_default();
        let head = chain.last().map(AuditEntry::head);
        chain.push(AuditEntry::link(head.as_ref(), draft));
    }

    fn find(&self, find: &Find<'_>) -> Vec<ActionRow> {
        let rows = self.actions.values();
        match find {
            Find::Id(id) => self.actions.get(id).cloned().into_iter().collect(),
            Find::Run(run) => rows
                .filter(|row| *row.action.said.run == **run)
                .cloned()
                .collect(),
            Find::Subject {
                tenant,
                thread,
                subject,
            } => rows
                .filter(|row| {
                    let said = &row.action.said;
                    said.run.tenant == *tenant
                        && said.run.thread == *thread
                        && said.subject == *subject
                })
                .cloned()
                .collect(),
            Find::States {
                states,
                after,
                limit,
            } => rows
                .filter(|row| states.contains(&row.state))
                .filter(|row| after.is_none_or(|after| row.id() > after))
                .take(*limit)
                .cloned()
                .collect(),
        }
    }
}

impl Store for MemoryStore {
    fn commit(&self, change: Change) -> StoreFuture<'_, ()> {
        let now_ms = self.now();
        self.with(|kept| {
            let failed = change
                .guards
                .iter()
                .find(|guard| !kept.holds(guard, &change, now_ms));
            if let Some(guard) = failed {
                return Err(StoreError::Refused(Box::new(guard.clone())));
            }
            kept.write(change);
            Ok(())
        })
    }

    fn calls<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<CallRecord>> {
        self.with(|kept| {
            let mut calls: Vec<_> = match kept.runs.get(run) {
                Some(run) => run.calls.values().cloned().collect(),
                None => Vec::new(),
            };
            calls.sort_by_key(|record| record.seq);
            Ok(calls)
        })
    }

    fn counters<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, BTreeMap<String, u64>> {
        self.with(|kept| {
            Ok(kept
                .runs
                .get(run)
                .map(|run| run.counters.clone())
                .unwrap_or_default())
        })
    }

    fn actions<'a>(&'a self, find: Find<'a>) -> StoreFuture<'a, Vec<ActionRow>> {
        self.with(|kept| Ok(kept.find(&find)))
    }

    fn wakes(&self, limit: usize) -> StoreFuture<'_, Vec<Wake>> {
        self.with(|kept| {
            let mut wakes = kept.wakes.clone();
            wakes.sort_by(|a, b| (a.due_ms, a).cmp(&(b.due_ms, b)));
            wakes.truncate(limit);
            Ok(wakes)
        })
    }

    fn kills(&self) -> StoreFuture<'_, Vec<Kill>> {
        self.with(|kept| Ok(kept.kills.values().cloned().collect()))
    }

    fn audit<'a>(
        &'a self,
        tenant: &'a str,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditEntry>> {
        self.with(|kept| {
            let chain = kept.audit.get(tenant).into_iter().flatten();
            let behind = chain.filter(|entry| entry.seq > after).take(limit);
            Ok(behind.cloned().collect())
        })
    }

    fn now_ms(&self) -> StoreFuture<'_, u64> {
        Box::pin(std::future::ready(Ok(self.now())))
    }

    fn is_lasting(&self) -> bool {
        false
    }
}
