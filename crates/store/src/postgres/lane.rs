//! Writes: each lane is a queue and a task that makes transactions of what is queued.
//!
//! Works of one name are in one lane, in their order; lanes go side by side. Whoever commits waits for the disk, and what
//! is queued meanwhile is the next transaction. A transaction takes the locks of all of its works first, on their
//! names and on what else they need to themselves, in an order that all keep to: so processes which write to the
//! same wait for each other and see what the other wrote, and no two transactions wait for each other. It also leaves a mark in table `mark`: when a connection is lost at a COMMIT, the mark tells
//! whether that happened.

use super::{
    Shared,
    fault::{is_lost, pool_error, sql_error, words},
    patience::Patience,
    session::Session,
};
use crate::{
    database::{Fault, Lock, LockOn, Work},
    sql::{Cell, SqlError, Statement, Tx},
};
use futures::{FutureExt, future::BoxFuture};
use std::{panic::AssertUnwindSafe, sync::Arc};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use xxhash_rust::xxh3::xxh3_64;

/// How many works make one transaction at most. Each is a subtransaction; a server is quick with 64 of them.
const LARGEST: usize = 48;

/// The classes of locks, greater for what is taken later. (`keeper.rs` and `schema.rs` have those between.)
fn class(on: LockOn) -> i64 {
    match on {
        LockOn::Lane => 0x7061_7241,
        LockOn::Action => 0x7061_7244,
        LockOn::Kills => 0x7061_7245,
        LockOn::Audit => 0x7061_7246,
    }
}

/// A lock as the server knows it, in the order in which they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    class: i64,
    number: i64,
    /// Of two that are alike otherwise, the one that is not comes first, and will do.
    shared: bool,
}

impl Key {
    fn of(lock: &Lock) -> Key {
        Key {
            class: class(lock.on),
            number: number(&lock.name),
            shared: lock.shared,
        }
    }

    fn take(self) -> Statement<'static> {
        let sql = match self.shared {
            false => "SELECT pg_advisory_xact_lock($1::bigint::int, $2::bigint::int)",
            true => "SELECT pg_advisory_xact_lock_shared($1::bigint::int, $2::bigint::int)",
        };
        Statement::new(sql, [self.class.into(), self.number.into()])
    }
}

/// A work that waits for its turn.
pub(super) trait Job: Send {
    /// What it needs to itself.
    fn locks(&self) -> &[Key];
    /// Since when it waits.
    fn since(&self) -> Instant;
    /// Does it, and keeps what came of it.
    fn run<'t>(&'t mut self, tx: &'t mut dyn Tx) -> BoxFuture<'t, Ran>;
    /// Tells what came of it; nothing came of it where a failure is given.
    fn tell(self: Box<Self>, failure: Option<SqlError>);
}

/// How a work went.
pub(super) enum Ran {
    Well,
    /// What it did is to be undone.
    Undo,
    /// The transaction is of no more use.
    Again(SqlError),
}

/// A work and who waits for it.
pub(super) struct Waiting<T> {
    work: Work<T>,
    locks: Vec<Key>,
    since: Instant,
    outcome: Option<Result<T, Fault>>,
    to: oneshot::Sender<Result<T, Fault>>,
}

/// A number for a name; two names seldom have the same.
pub(super) fn number(name: &str) -> i64 {
    // The server locks 32 bits; which sign they have is its own affair.
    i64::from(xxh3_64(name.as_bytes()) as u32 as i32)
}

impl<T: Send + 'static> Waiting<T> {
    /// Both ends: what waits in a lane, and where its outcome is told.
    pub(super) fn ends(
        name: &str,
        locks: Vec<Lock>,
        work: Work<T>,
    ) -> (Box<dyn Job>, oneshot::Receiver<Result<T, Fault>>) {
        let (to, told) = oneshot::channel();
        let lane = Lock::alone(LockOn::Lane, name);
        let waiting = Waiting {
            work,
            locks: locks.iter().chain([&lane]).map(Key::of).collect(),
            since: Instant::now(),
            outcome: None,
            to,
        };
        (Box::new(waiting), told)
    }
}

impl<T: Send + 'static> Job for Waiting<T> {
    fn locks(&self) -> &[Key] {
        &self.locks
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn run<'t>(&'t mut self, tx: &'t mut dyn Tx) -> BoxFuture<'t, Ran> {
        Box::pin(async move {
            // One work's mistake must not end the lane of many.
            let outcome = AssertUnwindSafe((self.work)(tx)).catch_unwind().await;
            let outcome = outcome.unwrap_or_else(|_| {
                let why = "a write panicked; it was undone".to_owned();
                Err(Fault::Sql(SqlError::Lasting(why)))
            });
            let ran = match &outcome {
                Ok(_) => Ran::Well,
                Err(Fault::Sql(why @ SqlError::Transient(_))) => Ran::Again(why.clone()),
                Err(_) => Ran::Undo,
            };
            self.outcome = Some(outcome);
            ran
        })
    }

    fn tell(self: Box<Self>, failure: Option<SqlError>) {
        let outcome = match failure {
            Some(why) => Some(Err(Fault::Sql(why))),
            None => self.outcome,
        };
        if let Some(outcome) = outcome {
            // Whoever dropped the future does not want to know.
            let _ = self.to.send(outcome);
        }
    }
}

/// One lane.
pub(super) struct Lane {
    pub(super) shared: Arc<Shared>,
    pub(super) index: i64,
    pub(super) queue: mpsc::UnboundedReceiver<Box<dyn Job>>,
    /// The number of its newest transaction.
    pub(super) mark: i64,
}

/// How a transaction ended that did not succeed.
enum Missed {
    /// Nothing of it happened; another try may go better.
    Again(SqlError),
    /// Nothing of it happened, and nothing will.
    Never(SqlError),
    /// Nothing of it happened; one work failed for good, and it is not clear which.
    Apart,
    /// The connection was lost while the COMMIT was under way.
    Unknown(SqlError),
}

/// How so many works ended together of which nothing happened.
fn missed(why: SqlError, works: usize) -> Missed {
    match why {
        SqlError::Transient(_) => Missed::Again(why),
        SqlError::Lasting(_) if works > 1 => Missed::Apart,
        SqlError::Lasting(_) => Missed::Never(why),
    }
}

impl Lane {
    /// Until the store is dropped.
    pub(super) async fn work(mut self) {
        while let Some(first) = self.queue.recv().await {
            let mut batch = vec![first];
            while batch.len() < LARGEST
                && let Ok(job) = self.queue.try_recv()
            {
                batch.push(job);
            }
            self.see_through(batch).await;
        }
    }

    /// Commits all of them, be it one by one, or tells why not.
    async fn see_through(&mut self, mut batch: Vec<Box<dyn Job>>) {
        let mut patience = Patience::new(self.shared.patience());
        let mut apart = false;
        while !batch.is_empty() {
            // After a failure one at a time, so that a work which never succeeds takes no other with it.
            let width = match apart || !patience.is_fresh() {
                true => 1,
                false => batch.len(),
            };
            let rest = batch.split_off(width);
            let mut ended = self.commit(&mut batch).await;
            if let Err(Missed::Unknown(why)) = ended {
                ended = match self.happened(&why).await {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(missed(why, width)),
                    Err(unknown) => Err(Missed::Never(unknown)),
                };
            }
            match ended {
                Ok(()) => {
                    self.shared.saw(true);
                    batch.drain(..).for_each(|job| job.tell(None));
                }
                Err(Missed::Again(why) | Missed::Unknown(why)) => {
                    tracing::debug!(%why, "a transaction is tried again");
                    patience.wait().await;
                    for job in batch.extract_if(.., |job| patience.is_over(job.since())) {
                        self.shared.saw(false);
                        job.tell(Some(why.clone()));
                    }
                }
                Err(Missed::Apart) => apart = true,
                Err(Missed::Never(why)) => {
                    batch.drain(..).for_each(|job| job.tell(Some(why.clone())))
                }
            }
            batch.extend(rest);
        }
    }

    /// One transaction.
    async fn commit(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), Missed> {
        let client = match self.shared.pool.get().await {
            Ok(client) => client,
            Err(e) => {
                return Err(match pool_error(&e) {
                    why @ SqlError::Transient(_) => Missed::Again(why),
                    why @ SqlError::Lasting(_) => Missed::Never(why),
                });
            }
        };
        let ended = self.transact(&client, batch).await;
        if let Err(Missed::Again(_) | Missed::Unknown(_)) = ended {
            // It may be in the middle of anything, or gone.
            let _ = deadpool_postgres::Client::take(client);
        }
        ended
    }

    async fn transact(
        &mut self,
        client: &deadpool_postgres::Client,
        batch: &mut [Box<dyn Job>],
    ) -> Result<(), Missed> {
        let mut session = Session::new(client);
        let works = batch.len();
        self.begin(&mut session, batch);
        let mut any = false;
        for job in batch {
            if works > 1 {
                session.command("SAVEPOINT work");
            }
            match job.run(&mut session).await {
                Ran::Again(why) => return Err(Missed::Again(why)),
                // What the work before had handed over may have failed only now.
                _ if works > 1 && session.is_torn() => {
                    session.leave("ROLLBACK").await;
                    return Err(Missed::Apart);
                }
                Ran::Well => any = true,
                Ran::Undo => {
                    session.forget_later();
                    if works > 1 {
                        session.command("ROLLBACK TO SAVEPOINT work");
                    }
                }
            }
            if works > 1 {
                session.command("RELEASE SAVEPOINT work");
            }
        }
        if !any || session.is_idle() {
            if session.begun() {
                session.leave("ROLLBACK").await;
            }
            return Ok(());
        }
        let Err(e) = session.end("COMMIT").await else {
            return Ok(());
        };
        let why = sql_error(&e);
        // Only when the server says so is it certain that it has not committed.
        if is_lost(&e) || e.code().is_none() {
            return Err(Missed::Unknown(why));
        }
        session.leave("ROLLBACK").await;
        Err(missed(why, works))
    }

    /// What goes with a transaction's first statements: the locks, in an order that all keep to, and the mark.
    fn begin(&mut self, session: &mut Session<'_>, batch: &[Box<dyn Job>]) {
        // Else what is read after a lock might be what there was before it, where a server is set to another level.
        session.command("BEGIN ISOLATION LEVEL READ COMMITTED");
        let locks = batch.iter().flat_map(|job| job.locks());
        let mut locks: Vec<Key> = locks.copied().collect();
        locks.sort_unstable();
        // Nobody takes one first shared and then alone: two who did would wait for each other.
        locks.dedup_by_key(|lock| (lock.class, lock.number));
        for lock in locks {
            session.own(lock.take());
        }
        self.mark += 1;
        session.own(Statement::new(
            "INSERT INTO mark (owner, lane, n, written_ms) \
             VALUES ($1, $2, $3, (extract(epoch FROM now()) * 1000)::bigint) \
             ON CONFLICT (owner, lane) DO UPDATE SET n = excluded.n, written_ms = excluded.written_ms",
            self.mark_values(self.mark),
        ));
    }

    fn mark_values(&self, n: i64) -> [Cell<'static>; 3] {
        [
            Cell::Text(self.shared.owner.to_string().into()),
            self.index.into(),
            n.into(),
        ]
    }

    /// Whether the newest transaction was committed. The mark's row is written to once more, which waits until
    /// a transaction that is still on its way has come to its end.
    async fn happened(&self, lost: &SqlError) -> Result<bool, SqlError> {
        let mut patience = Patience::new(self.shared.patience);
        let since = Instant::now();
        loop {
            match self.newest_mark().await {
                Ok(n) => return Ok(n == self.mark),
                Err(why) if patience.is_over(since) => {
                    self.shared.saw(false);
                    return Err(SqlError::Transient(format!(
                        "the connection was lost during a commit ({lost}) and could not be made again ({why}): \
                         whether this write was saved is not known"
                    )));
                }
                Err(_) => patience.wait().await,
            }
        }
    }

    async fn newest_mark(&self) -> Result<i64, String> {
        let client = self
            .shared
            .pool
            .get()
            .await
            .map_err(|e| pool_error(&e).to_string())?;
        let mut session = Session::new(&client);
        let write = Statement::new(
            "INSERT INTO mark (owner, lane, n, written_ms) VALUES ($1, $2, $3, 0) \
             ON CONFLICT (owner, lane) DO UPDATE SET owner = excluded.owner RETURNING n",
            self.mark_values(-1),
        );
        let answered = session.all(vec![write]).await;
        if let Err(SqlError::Transient(why)) = answered {
            let _ = deadpool_postgres::Client::take(client);
            return Err(why);
        }
        let answer = answered.map_err(|e| e.to_string())?.pop();
        let row = answer.and_then(crate::sql::Answer::first);
        row.ok_or("the server did not answer")?
            .int(0)
            .map_err(|e| e.to_string())
    }
}

/// Forgets the marks of owners that wrote nothing for a day; who still lives makes a new one.
pub(super) async fn forget_old_marks(client: &deadpool_postgres::Client) -> Result<(), String> {
    client
        .batch_execute(
            "DELETE FROM mark WHERE written_ms < (extract(epoch FROM now()) * 1000)::bigint - 86400000",
        )
        .await
        .map_err(|e| words(&e))
}
