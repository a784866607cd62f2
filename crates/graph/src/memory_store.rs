//! Checkpoints in this process: a real store in all but durability.
//!
//! Each checkpoint points to the newest piece of each channel, each piece to the one before it: what
//! did not change is shared, and reading any checkpoint costs its state, not its history.

use crate::{
    Error,
    checkpoint::{
        Checkpoints, Claim, Entry, HistoryQuery, Lease, Loaded, Note, NoteKind, Notes, Piece, Put,
        Scope, Store,
    },
    ids::{CheckpointId, RunId, TaskId},
    session::lock,
    state::PatchKind,
};
use futures::future::BoxFuture;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

/// Keeps everything until it is dropped. Clones of the `Arc` share it.
#[derive(Default)]
pub struct MemoryStore(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    scopes: HashMap<Scope, Line>,
    leases: Arc<Mutex<HashMap<Arc<str>, Held>>>,
}

/// Who may write to a thread.
#[derive(Default)]
struct Held {
    epoch: u64,
    holder: Option<RunId>,
}

/// The checkpoints of one scope.
#[derive(Default)]
struct Line {
    head: Option<CheckpointId>,
    checkpoints: BTreeMap<CheckpointId, Kept>,
}

struct Kept {
    entry: Entry,
    machine: Vec<u8>,
    channels: Vec<(Arc<str>, Arc<Link>)>,
    changed: Vec<String>,
    notes: NotesKept,
}

/// The notes on one checkpoint: in the order in which they were written, each findable by what it is,
/// so that ten thousand tasks do not make ten thousand scans.
#[derive(Default)]
struct NotesKept {
    in_order: BTreeMap<u64, Note>,
    places: HashMap<(TaskId, NoteKind, String), u64>,
    next: u64,
}

impl Extend<Note> for NotesKept {
    fn extend<T: IntoIterator<Item = Note>>(&mut self, notes: T) {
        for note in notes {
            let what = (note.task, note.kind, note.key.clone());
            if let Some(older) = self.places.insert(what, self.next) {
                self.in_order.remove(&older);
            }
            self.in_order.insert(self.next, note);
            self.next += 1;
        }
    }
}

impl FromIterator<Note> for NotesKept {
    fn from_iter<T: IntoIterator<Item = Note>>(notes: T) -> Self {
        let mut all = NotesKept::default();
        all.extend(notes);
        all
    }
}

/// A piece and the ones before it, as far as they are needed to read it.
struct Link {
    piece: Piece,
    before: Mutex<Option<Arc<Link>>>,
}

impl Drop for Link {
    // A list of ten thousand pieces must not be dropped by ten thousand nested calls.
    fn drop(&mut self) {
        let mut next = lock(&self.before).take();
        while let Some(link) = next {
            next = Arc::into_inner(link).and_then(|mut link| {
                link.before
                    .get_mut()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take()
            });
        }
    }
}

impl MemoryStore {
    /// A fresh one, as graphs take it.
    #[must_use]
    pub fn shared() -> Store {
        Arc::new(Self::default())
    }

    /// Bytes of state, machines and notes held. For measuring.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let inner = lock(&self.0);
        let mut seen = std::collections::HashSet::new();
        let mut bytes = 0;
        for kept in inner
            .scopes
            .values()
            .flat_map(|line| line.checkpoints.values())
        {
            bytes += kept.machine.len()
                + kept
                    .notes
                    .in_order
                    .values()
                    .map(|n| n.json.len())
                    .sum::<usize>();
            for (_, link) in &kept.channels {
                // Older pieces are the newest of an older checkpoint, so each is met here.
                if seen.insert(Arc::as_ptr(link)) {
                    bytes += link.piece.json.len();
                }
            }
        }
        bytes
    }
}

/// Gives a thread back when the lease is dropped.
struct Release {
    leases: Arc<Mutex<HashMap<Arc<str>, Held>>>,
    thread: Arc<str>,
    epoch: u64,
}

impl Drop for Release {
    fn drop(&mut self) {
        if let Some(held) = lock(&self.leases).get_mut(&self.thread)
            && held.epoch == self.epoch
        {
            held.holder = None;
        }
    }
}

impl Inner {
    fn fenced(&self, scope: &Scope, epoch: u64) -> Result<(), Error> {
        match lock(&self.leases).get(&scope.thread) {
            Some(held) if held.epoch > epoch => Err(conflict(&scope.thread, held.holder)),
            _ => Ok(()),
        }
    }

    fn put(&mut self, scope: &Scope, put: Put) -> Result<(), Error> {
        self.fenced(scope, put.epoch)?;
        let line = self.scopes.entry(scope.clone()).or_default();
        if line.head != put.expect {
            return Err(conflict(&scope.thread, None));
        }
        let mut channels = match put.parent {
            None => Vec::new(),
            Some(parent) => line
                .checkpoints
                .get(&parent)
                .ok_or_else(|| unknown(scope, parent))?
                .channels
                .clone(),
        };
        let changed = put.deltas.iter().map(|d| d.channel.clone()).collect();
        for delta in put.deltas {
            let piece = Piece {
                kind: delta.kind,
                json: delta.json.into(),
            };
            let slot = channels
                .iter_mut()
                .find(|(name, _)| **name == *delta.channel);
            let before = match (&slot, delta.kind) {
                (Some((_, link)), PatchKind::Append | PatchKind::Edit) => Some(link.clone()),
                _ => None,
            };
            let link = Arc::new(Link {
                piece,
                before: Mutex::new(before),
            });
            match slot {
                Some((_, newest)) => *newest = link,
                None => channels.push((delta.channel.into(), link)),
            }
        }
        line.head = Some(put.id);
        line.checkpoints.insert(
            put.id,
            Kept {
                entry: Entry {
                    id: put.id,
                    parent: put.parent,
                    metadata: put.metadata,
                },
                machine: put.machine,
                channels,
                changed,
                notes: put.notes.into_iter().collect(),
            },
        );
        Ok(())
    }

    fn note(&mut self, scope: &Scope, at: CheckpointId, notes: Vec<Note>) -> Result<(), Error> {
        let line = self.scopes.get_mut(scope);
        let kept = line
            .and_then(|line| line.checkpoints.get_mut(&at))
            .ok_or_else(|| unknown(scope, at))?;
        kept.notes.extend(notes);
        Ok(())
    }

    fn load(&self, scope: &Scope, at: Option<CheckpointId>) -> Option<Loaded> {
        let line = self.scopes.get(scope)?;
        let kept = line.checkpoints.get(&at.or(line.head)?)?;
        Some(Loaded {
            id: kept.entry.id,
            parent: kept.entry.parent,
            metadata: kept.entry.metadata.clone(),
            machine: kept.machine.clone(),
            channels: kept
                .channels
                .iter()
                .map(|(name, link)| (name.to_string(), pieces(link)))
                .collect(),
            changed: kept.changed.clone(),
            notes: kept.notes.in_order.values().cloned().collect(),
        })
    }
}

fn pieces(newest: &Arc<Link>) -> Vec<Piece> {
    let mut all = vec![newest.piece.clone()];
    let mut next = lock(&newest.before).clone();
    while let Some(link) = next {
        all.push(link.piece.clone());
        next = lock(&link.before).clone();
    }
    all.reverse();
    all
}

fn conflict(thread: &str, holder: Option<RunId>) -> Error {
    Error::Conflict {
        thread: thread.to_owned(),
        holder,
    }
}

fn unknown(scope: &Scope, checkpoint: CheckpointId) -> Error {
    Error::UnknownCheckpoint {
        thread: scope.to_string(),
        checkpoint,
    }
}

fn ready<'a, T: Send + 'a>(value: Result<T, Error>) -> BoxFuture<'a, Result<T, Error>> {
    Box::pin(std::future::ready(value))
}

impl Checkpoints for MemoryStore {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> BoxFuture<'a, Result<Lease, Error>> {
        let leases = lock(&self.0).leases.clone();
        let thread: Arc<str> = thread.into();
        let mut all = lock(&leases);
        let held = all.entry(thread.clone()).or_default();
        if let Some(holder) = held.holder {
            return ready(Err(conflict(&thread, Some(holder))));
        }
        held.epoch += 1;
        held.holder = Some(claim.run);
        let epoch = held.epoch;
        drop(all);
        ready(Ok(Lease {
            epoch,
            wish: None,
            guard: Some(Box::new(Release {
                leases,
                thread,
                epoch,
            })),
        }))
    }

    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> BoxFuture<'a, Result<(), Error>> {
        ready(lock(&self.0).put(scope, put))
    }

    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> BoxFuture<'a, Result<(), Error>> {
        let mut inner = lock(&self.0);
        ready(
            inner
                .fenced(scope, notes.epoch)
                .and_then(|()| inner.note(scope, notes.at, notes.notes)),
        )
    }

    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, Error>> {
        ready(Ok(lock(&self.0).load(scope, at)))
    }

    fn history<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>> {
        let inner = lock(&self.0);
        let line = inner.scopes.get(scope);
        let newest_first = line.iter().flat_map(|l| l.checkpoints.values().rev());
        let wanted = newest_first
            .map(|kept| &kept.entry)
            .filter(|entry| query.wants(entry))
            .take(query.limit.unwrap_or(usize::MAX));
        ready(Ok(wanted.cloned().collect()))
    }
}
