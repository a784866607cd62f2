//! Saving and telling for one scope of one run: nothing is told before it is saved.
//!
//! Holds what the three durabilities differ in. The driver and `Ctx` hand it checkpoints, notes and
//! events; it must not know what they mean.

use crate::{
    Error,
    checkpoint::{Note, Notes, Put, Scope, Store},
    control::CancelReason,
    event::{Event, Mode, Modes},
    ids::CheckpointId,
    session::lock,
};
use std::sync::{Mutex, MutexGuard};
use tokio::{sync::mpsc, task::JoinHandle};

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

/// How many checkpoints may wait to be saved with [`Durability::Async`].
const BEHIND: usize = 32;

/// Where events go.
#[derive(Clone)]
pub(crate) struct Events {
    pub(crate) sender: mpsc::Sender<Event>,
    pub(crate) modes: Modes,
    pub(crate) subgraphs: bool,
}

impl Events {
    pub(crate) async fn tell(&self, event: Event) {
        // Without a wait, as long as the reader keeps up. A reader that went away cancels the run by
        // other means.
        if let Err(mpsc::error::TrySendError::Full(event)) = self.sender.try_send(event) {
            let _ = self.sender.send(event).await;
        }
    }
}

pub(crate) struct Journal {
    pub(crate) store: Option<Store>,
    pub(crate) scope: Scope,
    pub(crate) epoch: u64,
    durability: Durability,
    events: Option<Events>,
    place: Mutex<Place>,
    saver: tokio::sync::Mutex<Saving>,
}

/// The task that saves behind the run, while there is one.
#[derive(Default)]
struct Saving {
    task: Option<Saver>,
    /// What ended one. Nothing is saved after it: what follows a gap is of no use to anyone.
    failed: Option<Error>,
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

pub(crate) type Work = JoinHandle<Result<(), Error>>;
type Saver = (mpsc::Sender<Item>, Work);

enum Item {
    Put(Box<Put>, Vec<Event>),
    Notes(CheckpointId, Vec<Note>, Vec<Event>),
    Tell(Vec<Event>),
}

impl Journal {
    pub(crate) fn new(
        store: Option<Store>,
        scope: Scope,
        epoch: u64,
        durability: Durability,
        events: Option<Events>,
    ) -> Self {
        Journal {
            store,
            scope,
            epoch,
            durability,
            events,
            place: Mutex::default(),
            saver: tokio::sync::Mutex::default(),
        }
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
        self.durability == Durability::Exit
    }

    pub(crate) fn wants(&self, mode: Mode) -> bool {
        self.events.as_ref().is_some_and(|events| {
            let always = matches!(mode, Mode::Custom | Mode::Messages);
            events.modes.has(mode)
                && (always || events.subgraphs || self.scope.namespace.is_empty())
        })
    }

    pub(crate) fn is_heard(&self) -> bool {
        self.events.is_some()
    }

    /// Lets the reader have what was told before the run goes on. Only where the reader itself polls
    /// the run: this waits without asking to be woken, since the reader comes back by itself.
    pub(crate) async fn give_way(&self) {
        let mut gave = false;
        std::future::poll_fn(|_| {
            let unread = self.events.as_ref().is_some_and(|events| {
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

    /// Tells what the reader can take at once; the rest stays in `told`.
    pub(crate) fn tell_now(&self, told: &mut Vec<Event>) {
        let Some(events) = &self.events else {
            return told.clear();
        };
        let mut rest = told.drain(..);
        while let Some(event) = rest.next() {
            if let Err(mpsc::error::TrySendError::Full(event)) = events.sender.try_send(event) {
                let left = std::iter::once(event).chain(rest).collect();
                *told = left;
                return;
            }
        }
    }

    /// Tells what needs no saving.
    pub(crate) async fn tell(&self, told: impl IntoIterator<Item = Event>) {
        if let Some(events) = &self.events {
            for event in told {
                events.tell(event).await;
            }
        }
    }

    /// Tells when all that was handed over before is saved.
    pub(crate) async fn tell_in_turn(&self, told: Vec<Event>) -> Result<(), Error> {
        match &self.store {
            Some(store) if self.durability == Durability::Async => {
                self.enqueue(store, Item::Tell(told)).await
            }
            _ => {
                self.tell(told).await;
                Ok(())
            }
        }
    }

    /// Saves a checkpoint, then tells.
    pub(crate) async fn put(&self, put: Put, told: Vec<Event>) -> Result<(), Error> {
        let Some(store) = &self.store else {
            self.tell(told).await;
            return Ok(());
        };
        let id = put.id;
        if self.durability == Durability::Async {
            self.saved_now(id);
            return self.enqueue(store, Item::Put(Box::new(put), told)).await;
        }
        store.put(&self.scope, put).await?;
        self.saved_now(id);
        self.tell(told).await;
        Ok(())
    }

    /// Saves notes on the open superstep, then tells. With [`Durability::Async`] it returns before
    /// that, unless `settled`.
    pub(crate) async fn note(
        &self,
        notes: Vec<Note>,
        told: Vec<Event>,
        settled: bool,
    ) -> Result<(), Error> {
        let Some(store) = &self.store else {
            self.tell(told).await;
            return Ok(());
        };
        let at = {
            let mut place = self.place();
            match place.head {
                Some(head) if place.saved == Some(head) => Some(head),
                _ => {
                    place.held.extend(notes.iter().cloned());
                    None
                }
            }
        };
        match at {
            Some(at) if self.durability == Durability::Async => {
                self.enqueue(store, Item::Notes(at, notes, told)).await?;
                if settled { self.flush().await } else { Ok(()) }
            }
            Some(at) => {
                let notes = Notes {
                    at,
                    epoch: self.epoch,
                    notes,
                    events: Vec::new(),
                };
                store.note(&self.scope, notes).await?;
                self.tell(told).await;
                Ok(())
            }
            None => {
                self.tell(told).await;
                Ok(())
            }
        }
    }

    /// The notes on a head that no store has yet; they go into its checkpoint.
    pub(crate) fn take_held(&self) -> Vec<Note> {
        std::mem::take(&mut self.place().held)
    }

    async fn enqueue(&self, store: &Store, item: Item) -> Result<(), Error> {
        let mut saving = self.saver.lock().await;
        saving.check()?;
        let (queue, _) = saving.task.get_or_insert_with(|| {
            let (queue, items) = mpsc::channel(BEHIND);
            let work = save(
                store.clone(),
                self.scope.clone(),
                self.epoch,
                self.events.clone(),
                items,
            );
            (queue, tokio::spawn(work))
        });
        if queue.send(item).await.is_ok() {
            return Ok(());
        }
        // The saver has stopped on an error; its result says which.
        saving.finish().await
    }

    /// What still saves behind a run, or a part of one, that is no more.
    pub(crate) fn abandon(&self) -> Option<Work> {
        let (_, work) = self.saver.try_lock().ok()?.task.take()?;
        Some(work)
    }

    /// Waits until all that was handed over is saved and told.
    pub(crate) async fn flush(&self) -> Result<(), Error> {
        self.saver.lock().await.finish().await
    }
}

impl Saving {
    fn check(&self) -> Result<(), Error> {
        match &self.failed {
            None => Ok(()),
            Some(Error::Conflict { thread, holder }) => Err(Error::Conflict {
                thread: thread.clone(),
                holder: *holder,
            }),
            Some(Error::Store(e)) => Err(Error::store(e.to_string())),
            Some(e) => Err(Error::store(e.to_string())),
        }
    }

    async fn finish(&mut self) -> Result<(), Error> {
        if let Some((queue, work)) = self.task.take() {
            drop(queue);
            let done = work
                .await
                .unwrap_or(Err(Error::Cancelled(CancelReason::Shutdown)));
            self.failed = done.err();
        }
        self.check()
    }
}

/// Saves in order, many at a time where many wait, and tells each one when it is saved.
async fn save(
    store: Store,
    scope: Scope,
    epoch: u64,
    events: Option<Events>,
    mut items: mpsc::Receiver<Item>,
) -> Result<(), Error> {
    let mut batch = Vec::new();
    while items.recv_many(&mut batch, BEHIND).await > 0 {
        // All are begun before the first is waited for: a store may make one commit of them.
        let begun: Vec<_> = batch
            .drain(..)
            .map(|item| match item {
                Item::Put(put, told) => (store.put(&scope, *put), told),
                Item::Notes(at, notes, told) => {
                    let notes = Notes {
                        at,
                        epoch,
                        notes,
                        events: Vec::new(),
                    };
                    (store.note(&scope, notes), told)
                }
                Item::Tell(told) => (nothing(), told),
            })
            .collect();
        for (saving, told) in begun {
            saving.await?;
            if let Some(events) = &events {
                for event in told {
                    events.tell(event).await;
                }
            }
        }
    }
    Ok(())
}

fn nothing<'a>() -> futures::future::BoxFuture<'a, Result<(), Error>> {
    Box::pin(std::future::ready(Ok(())))
}
