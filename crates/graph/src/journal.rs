//! Saving and telling for one scope of one run: nothing is told before it is saved.
//!
//! Holds what the three durabilities differ in. The driver and `Ctx` hand it checkpoints, notes and
//! events; it must not know what they mean. What goes into the thread's log is in `record`, the task
//! behind a run in `saver`.

pub(crate) mod record;
mod saver;

pub(crate) use saver::Work;

use crate::{
    Error,
    checkpoint::{Delta, Note, Notes, Put, Scope, Store},
    event::{Event, Mode, Modes},
    ids::CheckpointId,
    log::LogEntry,
    session::{RunShared, Saving, lock},
};
use saver::{Behind, Item, Mark};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::mpsc;

/// When a superstep is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Before the next superstep begins.
    #[default]
    Sync,
    /// While the next one runs; events wait for it.
    Async,
    /// When the run stops, however it stops.
    Exit,
}

/// Where events go.
#[derive(Clone)]
pub(crate) struct Events {
    pub(crate) sender: mpsc::Sender<Event>,
    pub(crate) modes: Modes,
    pub(crate) subgraphs: bool,
}

impl Events {
    /// Tells what the reader can take at once; the rest stays in `told`. A reader that went away cancels the
    /// run by other means.
    fn tell_now(&self, told: &mut Vec<Event>) {
        let mut rest = told.drain(..);
        while let Some(event) = rest.next() {
            if let Err(mpsc::error::TrySendError::Full(event)) = self.sender.try_send(event) {
                let left = std::iter::once(event).chain(rest).collect();
                *told = left;
                return;
            }
        }
    }

    /// Tells all of them, and waits only while the reader is behind. That wait is boxed: it takes much room, and
    /// every future that tells something would have to keep it free.
    async fn tell(&self, mut told: Vec<Event>) {
        self.tell_now(&mut told);
        if !told.is_empty() {
            Box::pin(self.tell_in_time(told)).await;
        }
    }

    async fn tell_in_time(&self, told: Vec<Event>) {
        for event in told {
            // As above, of a reader that went away.
            let _ = self.sender.send(event).await;
        }
    }
}

pub(crate) struct Journal {
    pub(crate) store: Option<Store>,
    pub(crate) scope: Scope,
    run: Arc<RunShared>,
    place: Mutex<Place>,
    behind: Behind,
}

/// A checkpoint on its way to the store.
enum Begun<'a> {
    /// By the saver.
    Behind(Result<Mark, Error>),
    Saving(Saving<'a>),
}

/// Which superstep is open, and what of it is saved.
#[derive(Default)]
struct Place {
    /// The checkpoint at which the open superstep began.
    head: Option<CheckpointId>,
    /// The newest checkpoint that the store has, or will have when the saver is through.
    saved: Option<CheckpointId>,
    /// What the next checkpoint follows (or that it follows none), where that is not `saved`.
    branch_from: Option<Option<CheckpointId>>,
    /// Notes on a head that is not saved yet.
    held: Vec<Note>,
}

impl Journal {
    pub(crate) fn new(run: Arc<RunShared>, store: Option<Store>, scope: Scope) -> Self {
        Journal {
            store,
            scope,
            run,
            place: Mutex::default(),
            behind: Behind::default(),
        }
    }

    fn durability(&self) -> Durability {
        self.run.options.durability
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        lock(&self.place)
    }

    pub(crate) fn head(&self) -> Option<CheckpointId> {
        self.place().head
    }

    /// An id for the next checkpoint, greater than all before it.
    pub(crate) fn next_id(&self) -> CheckpointId {
        let place = self.place();
        CheckpointId::after(place.head.max(place.saved))
    }

    pub(crate) fn saved(&self) -> Option<CheckpointId> {
        self.place().saved
    }

    /// A superstep opens at `head`. What was held for the one before is in the checkpoint itself.
    pub(crate) fn open(&self, head: CheckpointId) {
        let mut place = self.place();
        place.head = Some(head);
        place.held.clear();
    }

    /// The thread stands at `head`, as it was loaded.
    pub(crate) fn at(&self, head: CheckpointId) {
        let mut place = self.place();
        place.head = Some(head);
        place.saved = Some(head);
    }

    /// The next checkpoint will be a new branch from `parent`.
    pub(crate) fn branch(&self, parent: Option<CheckpointId>) {
        let mut place = self.place();
        place.branch_from = (place.saved != parent).then_some(parent);
    }

    /// What the next checkpoint follows, and the head it expects.
    pub(crate) fn parent(&self) -> (Option<CheckpointId>, Option<CheckpointId>) {
        let place = self.place();
        (place.branch_from.unwrap_or(place.saved), place.saved)
    }

    fn saved_now(&self, id: CheckpointId) {
        let mut place = self.place();
        place.saved = Some(id);
        place.branch_from = None;
    }

    /// Whether checkpoints are held back until the run stops.
    pub(crate) fn holds_back(&self) -> bool {
        self.durability() == Durability::Exit
    }

    /// Whether anybody, the log or a reader, wants events of this mode from here.
    pub(crate) fn wants(&self, mode: Mode) -> bool {
        self.run.log.as_ref().is_some_and(|log| log.keeps(mode)) || self.reads(mode)
    }

    /// Whether the run's reader wants them.
    fn reads(&self, mode: Mode) -> bool {
        self.run.events.as_ref().is_some_and(|events| {
            let always = matches!(mode, Mode::Custom | Mode::Messages);
            events.modes.has(mode)
                && (always || events.subgraphs || self.scope.namespace.is_empty())
        })
    }

    pub(crate) fn is_heard(&self) -> bool {
        self.run.events.is_some() || self.run.log.is_some()
    }

    /// Lets the reader have what was told before the run goes on. Only where the reader itself polls
    /// the run: this waits without asking to be woken, since the reader comes back by itself.
    pub(crate) async fn give_way(&self) {
        let mut gave = false;
        std::future::poll_fn(|_| {
            let unread = self.run.events.as_ref().is_some_and(|events| {
                let sender = &events.sender;
                !sender.is_closed() && sender.capacity() < sender.max_capacity()
            });
            if unread && !std::mem::replace(&mut gave, true) {
                std::task::Poll::Pending
            } else {
                std::task::Poll::Ready(())
            }
        })
        .await;
    }

    /// Tells what the reader can take at once; the rest stays in `told`. Only without a store.
    pub(crate) fn tell_now(&self, told: &mut Vec<Event>) {
        match &self.run.events {
            Some(events) => events.tell_now(told),
            None => told.clear(),
        }
    }

    /// Writes into the log what is to be kept, and leaves in `told` what the reader wants.
    fn record(&self, told: &mut Vec<Event>, deltas: &[Delta]) -> Vec<LogEntry> {
        let Some(log) = &self.run.log else {
            return Vec::new();
        };
        let entries = log.take_with(told, deltas, self.run.clock.now_ms());
        self.leave_wanted(told);
        entries
    }

    /// The same, for the next that is saved.
    fn record_later(&self, told: &mut Vec<Event>) {
        let Some(log) = &self.run.log else { return };
        log.record(told, self.run.clock.now_ms());
        self.leave_wanted(told);
    }

    fn leave_wanted(&self, told: &mut Vec<Event>) {
        told.retain(|event| match event.data.mode() {
            Some(mode) => self.reads(mode),
            None => self.run.events.is_some(),
        });
    }

    async fn send(&self, told: Vec<Event>) {
        if let Some(events) = &self.run.events {
            events.tell(told).await;
        }
    }

    /// Tells what needs no saving. The log gets it with the next that is saved.
    pub(crate) async fn tell(&self, mut told: Vec<Event>) {
        self.record_later(&mut told);
        self.send(told).await;
    }

    /// The same for what tasks say between two savings, of which there may be much: the log is brought up
    /// before too much waits.
    pub(crate) async fn say(&self, event: Event) -> Result<(), Error> {
        self.tell(vec![event]).await;
        match &self.run.log {
            Some(log) if log.is_long() && !self.holds_back() => {
                self.note(Vec::new(), Vec::new(), false).await
            }
            _ => Ok(()),
        }
    }

    /// Tells when all that was handed over before is saved.
    pub(crate) async fn tell_in_turn(&self, mut told: Vec<Event>) -> Result<(), Error> {
        self.record_later(&mut told);
        match &self.store {
            Some(store) if self.durability() == Durability::Async => {
                self.hand_over(store, Item::Tell(told))?.reached().await
            }
            _ => {
                self.send(told).await;
                Ok(())
            }
        }
    }

    /// Saves a checkpoint, then tells. The saving is begun before this is awaited, so that what waits for it
    /// does not hold the checkpoint too.
    pub(crate) fn put(
        &self,
        mut put: Put,
        mut told: Vec<Event>,
    ) -> impl Future<Output = Result<(), Error>> + Send + '_ {
        let id = put.id;
        let begun = self.store.as_ref().map(|store| {
            put.events = self.record(&mut told, &put.deltas);
            if self.durability() == Durability::Async {
                self.saved_now(id);
                let told = std::mem::take(&mut told);
                return Begun::Behind(self.hand_over(store, Item::Put(Box::new(put), told)));
            }
            Begun::Saving(self.run.put(store, &self.scope, put))
        });
        async move {
            match begun {
                None => {}
                Some(Begun::Behind(mark)) => return mark?.reached().await,
                Some(Begun::Saving(saving)) => {
                    saving.await?;
                    self.saved_now(id);
                }
            }
            self.send(told).await;
            Ok(())
        }
    }

    /// Saves notes on the open superstep, then tells. With [`Durability::Async`] it returns before
    /// that, unless `settled`.
    pub(crate) async fn note(
        &self,
        notes: Vec<Note>,
        mut told: Vec<Event>,
        settled: bool,
    ) -> Result<(), Error> {
        let Some(store) = &self.store else {
            self.send(told).await;
            return Ok(());
        };
        let Some((at, notes)) = self.held_or(notes) else {
            self.tell(told).await;
            return Ok(());
        };
        let notes = Notes {
            at,
            epoch: self.run.epoch,
            notes,
            events: self.record(&mut told, &[]),
        };
        if self.durability() == Durability::Async {
            let mark = self.hand_over(store, Item::Notes(notes, told))?;
            mark.reached().await?;
            return if settled { self.flush().await } else { Ok(()) };
        }
        self.run.note(store, &self.scope, notes).await?;
        self.send(told).await;
        Ok(())
    }

    /// Notes for a head that no store has yet.
    pub(crate) fn hold(&self, notes: Vec<Note>) {
        self.place().held.extend(notes);
    }

    /// Where notes are to be saved; nothing if they are held, since no store has the head yet.
    fn held_or(&self, notes: Vec<Note>) -> Option<(CheckpointId, Vec<Note>)> {
        let mut place = self.place();
        match place.head {
            Some(head) if place.saved == Some(head) => Some((head, notes)),
            _ => {
                place.held.extend(notes);
                None
            }
        }
    }

    /// The notes on a head that no store has yet; they go into its checkpoint.
    pub(crate) fn take_held(&self) -> Vec<Note> {
        std::mem::take(&mut self.place().held)
    }

    /// Hands something over to the saver; the run may be no farther ahead than the mark that it gives.
    fn hand_over(&self, store: &Store, item: Item) -> Result<Mark, Error> {
        let at = (store, &self.scope);
        self.behind.hand_over(&self.run, at, item)
    }

    /// What still saves behind a run, or a part of one, that is no more.
    pub(crate) fn abandon(&self) -> Option<Work> {
        self.behind.leave()
    }

    /// Waits until all that was handed over is saved and told.
    pub(crate) async fn flush(&self) -> Result<(), Error> {
        self.behind.flush().await
    }

    /// The same at the end of a run.
    pub(crate) async fn finish(&self) -> Result<(), Error> {
        self.behind.finish().await
    }
}
