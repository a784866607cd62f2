//! Writing: one thread with one connection, which commits together whatever has been queued meanwhile.
//!
//! A work that is refused takes nothing of the others with it: then all are done once more, each within a
//! savepoint. Nobody hears that it is done before all of it is on the disk.

use super::connection::{Open, Place};
use crate::{
    database::{Fault, Work},
    error::Error,
    sql::SqlError,
};
use futures::{FutureExt, future::BoxFuture};
use rusqlite::Connection;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};
use tokio::sync::oneshot;

/// How many works become one transaction at most.
const BATCH: usize = 256;

/// The way to the writing thread. It ends when this is dropped and the queue is empty.
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    commits: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(connection: Connection, place: Place) -> Result<Self, Error> {
        let (queue, jobs) = mpsc::channel();
        let commits = Arc::new(AtomicU64::new(0));
        let desk = Desk {
            connection,
            place,
            commits: commits.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("paraph-sqlite".to_owned())
            .spawn(move || desk.serve(&jobs))
            .map_err(|e| Error::Database(format!("no thread for writing: {e}")))?;
        Ok(Writer {
            queue: Some(queue),
            commits,
            thread: Some(thread),
        })
    }

    /// How many transactions were committed.
    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(super) fn queue<T: Send + 'static>(
        &self,
        work: Work<T>,
    ) -> BoxFuture<'static, Result<T, Fault>> {
        let (answer, answered) = oneshot::channel();
        let job = Asked {
            work,
            answer,
            result: None,
        };
        // If the thread is no more, the answer's sender is dropped with the job.
        if let Some(queue) = &self.queue {
            let _ = queue.send(Box::new(job));
        }
        Box::pin(async move {
            answered
                .await
                .unwrap_or_else(|_| lasting("the store's writing thread has ended"))
        })
    }
}

/// What was queued is written before the store is closed, so that a program which ends gives its leases back.
impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        let Some(thread) = self.thread.take() else {
            return;
        };
        if thread.thread().id() != std::thread::current().id() {
            // It ends without a value, and what panicked in it was told to those who waited.
            let _ = thread.join();
        }
    }
}

/// Work of any type.
trait Job: Send {
    /// Does it, and keeps what came of it; says whether it may be committed.
    fn run(&mut self, connection: &mut Connection, place: &Place) -> bool;

    /// Whoever waits hears what came of it, or why the transaction came to nothing.
    fn settle(self: Box<Self>, committed: Result<(), SqlError>);
}

struct Asked<T> {
    work: Work<T>,
    answer: oneshot::Sender<Result<T, Fault>>,
    result: Option<Result<T, Fault>>,
}

impl<T: Send> Job for Asked<T> {
    fn run(&mut self, connection: &mut Connection, place: &Place) -> bool {
        let mut tx = Open { connection, place };
        // A panic in one work must not end the thread that all others need.
        let done = catch_unwind(AssertUnwindSafe(|| (self.work)(&mut tx).now_or_never()));
        let result = match done {
            Ok(Some(result)) => result,
            Ok(None) => lasting("a transaction waited for something else than its statements"),
            Err(_) => lasting("a transaction panicked"),
        };
        let good = result.is_ok();
        self.result = Some(result);
        good
    }

    fn settle(self: Box<Self>, committed: Result<(), SqlError>) {
        let result = match (self.result, committed) {
            (Some(Err(fault)), _) => Err(fault),
            (_, Err(e)) => Err(Fault::Sql(e)),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => lasting("a transaction was left out"),
        };
        // Whoever asked may have gone.
        let _ = self.answer.send(result);
    }
}

fn lasting<T>(why: &str) -> Result<T, Fault> {
    Err(Fault::Sql(SqlError::Lasting(why.to_owned())))
}

/// The writing thread's own.
struct Desk {
    connection: Connection,
    place: Place,
    commits: Arc<AtomicU64>,
}

/// Why a batch was not committed.
enum Undone {
    /// SQLite took the whole transaction back because of one work.
    Torn,
    Failed(SqlError),
}

impl Desk {
    fn serve(mut self, jobs: &mpsc::Receiver<Box<dyn Job>>) {
        while let Ok(first) = jobs.recv() {
            let mut batch = vec![first];
            batch.extend(jobs.try_iter().take(BATCH - 1));
            self.together(batch);
        }
    }

    fn together(&mut self, mut batch: Vec<Box<dyn Job>>) {
        let committed = match self.transaction(&mut batch) {
            Ok(()) => Ok(()),
            // So that it is the fault of the one alone.
            Err(Undone::Torn) if batch.len() > 1 => {
                return batch.into_iter().for_each(|job| self.together(vec![job]));
            }
            Err(Undone::Torn) => Err(SqlError::Lasting(
                "the database took the transaction back".to_owned(),
            )),
            Err(Undone::Failed(e)) => Err(e),
        };
        for job in batch {
            job.settle(committed.clone());
        }
    }

    fn transaction(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), Undone> {
        self.statement("BEGIN IMMEDIATE")?;
        let mut written = self.all(batch)?;
        if batch.len() > 1 && written < batch.len() {
            // What the refused ones did before they were refused must not stay.
            self.statement("ROLLBACK")?;
            self.statement("BEGIN IMMEDIATE")?;
            written = self.each(batch)?;
        }
        if written == 0 {
            return self.statement("ROLLBACK");
        }
        self.statement("COMMIT")?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Does works until one is refused; says how many were not.
    fn all(&mut self, batch: &mut [Box<dyn Job>]) -> Result<usize, Undone> {
        let mut written = 0;
        for job in batch {
            if !self.one(job)? {
                break;
            }
            written += 1;
        }
        Ok(written)
    }

    /// Does each within a savepoint; says how many were not refused.
    fn each(&mut self, batch: &mut [Box<dyn Job>]) -> Result<usize, Undone> {
        let mut written = 0;
        for job in batch {
            self.statement("SAVEPOINT work")?;
            if self.one(job)? {
                written += 1;
            } else {
                self.statement("ROLLBACK TO work")?;
            }
            self.statement("RELEASE work")?;
        }
        Ok(written)
    }

    fn one(&mut self, job: &mut Box<dyn Job>) -> Result<bool, Undone> {
        let good = job.run(&mut self.connection, &self.place);
        match self.connection.is_autocommit() {
            true => Err(Undone::Torn),
            false => Ok(good),
        }
    }

    /// If it fails, nothing of the transaction stays.
    fn statement(&mut self, sql: &'static str) -> Result<(), Undone> {
        let connection = &self.connection;
        let done = self
            .place
            .patiently(|| connection.prepare_cached(sql)?.execute([]));
        done.map(drop).map_err(|e| {
            if !connection.is_autocommit() {
                // If that fails too, the next BEGIN says so.
                let _ = connection.execute_batch("ROLLBACK");
            }
            Undone::Failed(self.place.error(&e))
        })
    }
}
