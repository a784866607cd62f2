//! The task that saves behind a run, with [`super::Durability::Async`]: in order, many at a time, each told
//! when it is saved.
//!
//! Called by the journal only. Handing over never waits and holds no lock over an `await`, so that no task
//! which is not polled for a while can hold up another; who is too far ahead waits afterwards.

use super::Events;
use crate::{
    Error,
    checkpoint::{Notes, Put, Scope, Store},
    control::CancelReason,
    event::Event,
    session::{RunShared, lock},
};
use futures::future::BoxFuture;
use std::sync::{Arc, Mutex};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

/// How many checkpoints and notes may wait to be saved before the run waits for them.
const BEHIND: u64 = 32;

pub(crate) type Work = JoinHandle<Result<(), Error>>;

pub(super) enum Item {
    Put(Box<Put>, Vec<Event>),
    Notes(Notes, Vec<Event>),
    Tell(Vec<Event>),
}

/// How far the saver is.
#[derive(Default)]
struct Progress {
    /// How many items are saved and told.
    saved: u64,
    /// What ended it. Nothing is saved after that: what follows a gap is of no use to anyone.
    failed: Option<Error>,
}

/// The saver, while there is one, and what became of those before it.
#[derive(Default)]
pub(super) struct Behind(Mutex<State>);

#[derive(Default)]
struct State {
    task: Option<Task>,
    failed: Option<Error>,
}

struct Task {
    queue: mpsc::UnboundedSender<Item>,
    work: Work,
    handed: u64,
    progress: watch::Receiver<Progress>,
}

impl Behind {
    /// Hands an item over; waits only while too many are before it.
    pub(super) async fn enqueue(
        &self,
        run: &Arc<RunShared>,
        (store, scope): (&Store, &Scope),
        item: Item,
    ) -> Result<(), Error> {
        let (place, progress) = {
            let mut state = lock(&self.0);
            state.check()?;
            let task = state
                .task
                .get_or_insert_with(|| Task::begin(run.clone(), store.clone(), scope.clone()));
            task.handed += 1;
            // A saver that has stopped says so by its progress.
            let _ = task.queue.send(item);
            (task.handed.saturating_sub(BEHIND), task.progress.clone())
        };
        reached(progress, place).await
    }

    /// Waits until all that was handed over is saved and told.
    pub(super) async fn flush(&self) -> Result<(), Error> {
        let (place, progress) = {
            let state = lock(&self.0);
            state.check()?;
            let Some(task) = &state.task else {
                return Ok(());
            };
            (task.handed, task.progress.clone())
        };
        reached(progress, place).await
    }

    /// The same, and ends the saver.
    pub(super) async fn finish(&self) -> Result<(), Error> {
        let work = self.leave();
        if let Some(work) = work {
            let ended = work
                .await
                .unwrap_or(Err(Error::Cancelled(CancelReason::Shutdown)));
            lock(&self.0).failed = ended.err();
        }
        lock(&self.0).check()
    }

    /// The saver goes on by itself with what it has.
    pub(super) fn leave(&self) -> Option<Work> {
        Some(lock(&self.0).task.take()?.work)
    }
}

impl State {
    fn check(&self) -> Result<(), Error> {
        match &self.failed {
            None => Ok(()),
            Some(error) => Err(again(error)),
        }
    }
}

impl Task {
    fn begin(run: Arc<RunShared>, store: Store, scope: Scope) -> Self {
        let (queue, items) = mpsc::unbounded_channel();
        let (told, progress) = watch::channel(Progress::default());
        Task {
            queue,
            work: tokio::spawn(save(run, store, scope, items, told)),
            handed: 0,
            progress,
        }
    }
}

/// Waits until so many items are saved.
async fn reached(mut progress: watch::Receiver<Progress>, saved: u64) -> Result<(), Error> {
    let there = |p: &Progress| p.saved >= saved || p.failed.is_some();
    // The saver goes away without a word only with the runtime, or by a panic of the store.
    let lost = |_| Error::Cancelled(CancelReason::Shutdown);
    let progress = progress.wait_for(there).await.map_err(lost)?;
    match &progress.failed {
        None => Ok(()),
        Some(error) => Err(again(error)),
    }
}

/// What went wrong once, for each who asks.
fn again(error: &Error) -> Error {
    match error {
        Error::Conflict { thread, holder } => Error::Conflict {
            thread: thread.clone(),
            holder: *holder,
        },
        Error::Cancelled(reason) => Error::Cancelled(*reason),
        Error::Store(e) => Error::store(e.to_string()),
        e => Error::store(e.to_string()),
    }
}

/// Saves in order, many at a time where many wait, and tells each one when it is saved.
async fn save(
    run: Arc<RunShared>,
    store: Store,
    scope: Scope,
    mut items: mpsc::UnboundedReceiver<Item>,
    progress: watch::Sender<Progress>,
) -> Result<(), Error> {
    let mut batch = Vec::new();
    while items.recv_many(&mut batch, BEHIND as usize).await > 0 {
        // All are begun before the first is waited for: a store may make one commit of them.
        let begun: Vec<_> = batch
            .drain(..)
            .map(|item| match item {
                Item::Put(put, told) => (run.put(&store, &scope, *put), told),
                Item::Notes(notes, told) => (run.note(&store, &scope, notes), told),
                Item::Tell(told) => (nothing(), told),
            })
            .collect();
        for (saving, told) in begun {
            if let Err(error) = saving.await {
                progress.send_modify(|p| p.failed = Some(again(&error)));
                return Err(error);
            }
            tell(run.events.as_ref(), told).await;
            progress.send_modify(|p| p.saved += 1);
        }
    }
    Ok(())
}

async fn tell(events: Option<&Events>, told: Vec<Event>) {
    let Some(events) = events else { return };
    for event in told {
        events.tell(event).await;
    }
}

fn nothing<'a>() -> BoxFuture<'a, Result<(), Error>> {
    Box::pin(std::future::ready(Ok(())))
}
