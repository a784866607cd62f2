//! The checkpoints of one scope.
//!
//! Each points to the newest piece of each channel, each piece to the one before it: what did not change is
//! shared, and reading any checkpoint costs its state, not its history.

use crate::{
    checkpoint::{Entry, HistoryQuery, Loaded, Note, NoteKind, Piece, Put},
    ids::{CheckpointId, TaskId},
    session::lock,
    state::PatchKind,
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

/// The checkpoints of one scope.
#[derive(Clone, Default)]
pub(super) struct Line {
    pub(super) head: Option<CheckpointId>,
    pub(super) checkpoints: BTreeMap<CheckpointId, Checkpoint>,
}

#[derive(Clone)]
pub(super) struct Checkpoint {
    pub(super) entry: Entry,
    pub(super) machine: Vec<u8>,
    pub(super) channels: Vec<(Arc<str>, Arc<Link>)>,
    changed: Vec<String>,
    pub(super) notes: NotesKept,
}

/// The notes on one checkpoint. Most have none, and keep no room for them.
#[derive(Clone, Default)]
pub(super) struct NotesKept(Option<Box<Notes>>);

/// In the order in which they were written, each findable by what it is, so that ten thousand tasks do not
/// make ten thousand scans.
#[derive(Clone, Default)]
struct Notes {
    in_order: BTreeMap<u64, Note>,
    places: HashMap<(TaskId, NoteKind, String), u64>,
    next: u64,
}

impl NotesKept {
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Note> {
        self.0.iter().flat_map(|notes| notes.in_order.values())
    }
}

impl Extend<Note> for NotesKept {
    fn extend<T: IntoIterator<Item = Note>>(&mut self, notes: T) {
        for note in notes {
            let kept = self.0.get_or_insert_default();
            let what = (note.task, note.kind, note.key.clone());
            if let Some(older) = kept.places.insert(what, kept.next) {
                kept.in_order.remove(&older);
            }
            kept.in_order.insert(kept.next, note);
            kept.next += 1;
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
pub(super) struct Link {
    pub(super) piece: Piece,
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

impl Link {
    fn pieces(self: &Arc<Link>) -> Vec<Piece> {
        let mut all = vec![self.piece.clone()];
        let mut next = lock(&self.before).clone();
        while let Some(link) = next {
            all.push(link.piece.clone());
            next = lock(&link.before).clone();
        }
        all.reverse();
        all
    }
}

impl Line {
    /// Adds a checkpoint. Whether it may come here was checked before: `put.parent`, if it names one, is
    /// there.
    pub(super) fn add(&mut self, put: Put) {
        let parent = put.parent.and_then(|id| self.checkpoints.get(&id));
        let mut channels = parent.map(|p| p.channels.clone()).unwrap_or_default();
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
        self.head = Some(put.id);
        let checkpoint = Checkpoint {
            entry: Entry {
                id: put.id,
                parent: put.parent,
                metadata: put.metadata,
            },
            machine: put.machine,
            channels,
            changed,
            notes: put.notes.into_iter().collect(),
        };
        self.checkpoints.insert(put.id, checkpoint);
    }

    pub(super) fn load(&self, at: Option<CheckpointId>) -> Option<Loaded> {
        let kept = self.checkpoints.get(&at.or(self.head)?)?;
        Some(Loaded {
            id: kept.entry.id,
            parent: kept.entry.parent,
            metadata: kept.entry.metadata.clone(),
            machine: kept.machine.clone(),
            channels: kept
                .channels
                .iter()
                .map(|(name, link)| (name.to_string(), link.pieces()))
                .collect(),
            changed: kept.changed.clone(),
            notes: kept.notes.in_order().cloned().collect(),
        })
    }

    pub(super) fn history(&self, query: &HistoryQuery) -> Vec<Entry> {
        let newest_first = self.checkpoints.values().rev();
        let wanted = newest_first
            .map(|kept| &kept.entry)
            .filter(|entry| query.wants(entry))
            .take(query.limit.unwrap_or(usize::MAX));
        wanted.cloned().collect()
    }

    /// Keeps the checkpoints that are wanted; the newest of them is the head. Gives those that go.
    pub(super) fn retain(&mut self, wanted: impl Fn(&Checkpoint) -> bool) -> Vec<Checkpoint> {
        let gone = self.checkpoints.extract_if(.., |_, kept| !wanted(kept));
        let gone = gone.map(|(_, kept)| kept).collect();
        self.head = self.checkpoints.keys().next_back().copied();
        gone
    }

    /// The piece that the newest checkpoint stores of a channel.
    pub(super) fn newest_piece(&self, channel: &str) -> Option<Piece> {
        let newest = self.checkpoints.get(&self.head?)?;
        if !newest.changed.iter().any(|changed| changed == channel) {
            return None;
        }
        let (_, link) = newest
            .channels
            .iter()
            .find(|(name, _)| **name == *channel)?;
        Some(link.piece.clone())
    }
}
