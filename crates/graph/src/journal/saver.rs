//! The task that saves behind a run, with [`super::Durability::Async`]: in order, many at a time, each told
//! when it is saved.
//!
//! Called by the journal only. Handing over never waits and holds no lock over an `await`, so that no task
//! which is not polled for a while can hold up another; who is too far ahead waits afterwards.

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
    /// Hands an item over. Whoever does so waits for the mark: until then too many are before the item.
    pub(super) fn hand_over(
        &self,
        run: &Arc<RunShared>,
        (store, scope): (&Store, &Scope),
        item: Item,
    ) -> Result<Mark, Error> {
        let mut state = lock(&self.0);
        state.check()?;
        let task = state
            .task
            .get_or_insert_with(|| Task::begin(run.clone(), store.clone(), scope.clone()));
        task.handed += 1;
        // A saver that has stopped says so by its progress.
        let _ = task.queue.send(item);
        Ok(Mark {
            saved: task.handed.saturating_sub(BEHIND),
            progress: task.progress.clone(),
        })
    }

    /// Waits until all that was handed over is saved and told.
    pub(super) async fn flush(&self) -> Result<(), Error> {
        let mark = {
            let state = lock(&self.0);
            state.check()?;
            let Some(task) = &state.task else {
                return Ok(());
            };
            Mark {
                saved: task.handed,
                progress: task.progress.clone(),
            }
        };
        mark.reached().await
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

/// How far the saver is to be.
pub(super) struct Mark {
    saved: u64,
    progress: watch::Receiver<Progress>,
}

impl Mark {
    /// Waits until so many items are saved. The wait itself is boxed: most of the time there is none.
    pub(super) async fn reached(self) -> Result<(), Error> {
        if let Some(reached) = self.now() {
            return reached;
        }
        Box::pin(self.in_time()).await
    }

    /// What has come of it by now, if anything.
    fn now(&self) -> Option<Result<(), Error>> {
        let progress = self.progress.borrow();
        match &progress.failed {
            Some(error) => Some(Err(again(error))),
            None => (progress.saved >= self.saved).then_some(Ok(())),
        }
    }

    async fn in_time(mut self) -> Result<(), Error> {
        let saved = self.saved;
        let there = |p: &Progress| p.saved >= saved || p.failed.is_some();
        // The saver goes away without a word only with the runtime, or by a panic of the store.
        let lost = |_| Error::Cancelled(CancelReason::Shutdown);
        let progress = self.progress.wait_for(there).await.map_err(lost)?;
        match &progress.failed {
            None => Ok(()),
            Some(error) => Err(again(error)),
        }
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
            if let Some(events) = &run.events {
                events.tell(told).await;
            }
            progress.send_modify(|p| p.saved += 1);
        }
    }
    Ok(())
}

fn nothing<'a>() -> BoxFuture<'a, Result<(), Error>> {
    Box::pin(std::future::ready(Ok(())))
}
