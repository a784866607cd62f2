//! Leases: who may write to a thread, and until when.
//!
//! A lease is two things: an epoch, by which every write is checked where it is written, and a time until
//! which nobody else takes the thread. The first makes it safe, the second only polite; so a process that
//! was stopped for long can do no harm when it goes on.

mod beat;

use crate::{
    checkpoints::{Taken, Touch, new_thread, refused, values, values_find},
    codec::Codec,
    database::{Database, Fault},
    durable::Durable,
    error::damaged,
    events, runs,
    sql::{Answer, BadCell, Statement, Tx, next, one},
};
use paraph_graph::{CancelReason, Claim, Error, Lease, RunEnd, RunId};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// The leases that this opened store holds; a thread of its own keeps them fresh.
#[derive(Debug)]
pub(crate) struct Leases {
    book: Mutex<Book>,
    /// Ends that thread when it is dropped.
    _stop: mpsc::Sender<()>,
}

#[derive(Debug, Default)]
struct Book {
    /// By epoch.
    held: HashMap<u64, Held>,
    /// Runs that are about to get a lease: it may be in the database already, and not yet in `held`.
    claiming: HashMap<RunId, usize>,
}

#[derive(Debug)]
struct Held {
    thread: Arc<str>,
    run: RunId,
    wish: watch::Sender<Option<CancelReason>>,
    /// When others may take it, unless it is renewed.
    until: Instant,
}

impl Leases {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a run that this store drives know that it is to end. The first reason counts.
    pub(crate) fn wish(&self, run: RunId, reason: CancelReason) {
        for held in self.book().held.values().filter(|held| held.run == run) {
            held.wish(reason);
        }
    }

    /// Whether a run of this store holds a lease, or somebody besides `asking` is about to take one for it.
    fn has(&self, run: RunId, asking: RunId) -> bool {
        let book = self.book();
        let claims = book.claiming.get(&run).copied().unwrap_or_default();
        claims > usize::from(asking == run) || book.held.values().any(|held| held.run == run)
    }

    /// When the first of the leases ends, unless it is renewed; nothing while there are none.
    fn first_to_end(&self) -> Option<Instant> {
        self.book().held.values().map(|held| held.until).min()
    }

    fn hold(&self, epoch: u64, held: Held) {
        self.book().held.insert(epoch, held);
    }

    /// Whether it was held until now.
    fn let_go(&self, epoch: u64) -> bool {
        self.book().held.remove(&epoch).is_some()
    }
}

impl Held {
    fn wish(&self, reason: CancelReason) {
        self.wish.send_if_modified(|wish| {
            // Who has lost the lease may write no more, whatever else was wished before.
            let counts = match wish {
                None => true,
                Some(CancelReason::LeaseLost) => false,
                Some(_) => reason == CancelReason::LeaseLost,
            };
            if counts {
                *wish = Some(reason);
            }
            counts
        });
    }
}

/// A run that is about to get a lease.
struct Claiming<'a>(&'a Leases, RunId);

impl<'a> Claiming<'a> {
    fn new(leases: &'a Leases, run: RunId) -> Self {
        *leases.book().claiming.entry(run).or_default() += 1;
        Claiming(leases, run)
    }
}

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        let mut book = self.0.book();
        if let Some(count) = book.claiming.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                book.claiming.remove(&self.1);
            }
        }
    }
}

/// Gives a thread back when the lease is dropped and the run has not come to rest by then.
struct Release<D: Database> {
    db: Arc<D>,
    leases: Arc<Leases>,
    thread: Arc<str>,
    epoch: u64,
}

impl<D: Database> Drop for Release<D> {
    fn drop(&mut self) {
        if !self.leases.let_go(self.epoch) {
            return;
        }
        let (thread, epoch) = (self.thread.clone(), self.epoch);
        // It is queued by the call; nobody waits for it.
        let written = self.db.write(
            &self.thread,
            Box::new(move |tx| {
                let thread = thread.clone();
                Box::pin(async move {
                    let free = Statement::new(
                        "UPDATE thread SET holder = NULL, owner = NULL, expires_ms = 0 \
                         WHERE name = $1 AND epoch = $2",
                        [(&*thread).into(), epoch.into()],
                    );
                    Ok(tx.later(vec![free]).await?)
                })
            }),
        );
        drop(written);
    }
}

/// The lease of a thread as its row says it.
#[derive(Clone, Debug)]
struct Standing {
    epoch: u64,
    holder: Option<RunId>,
    owner: Option<String>,
    expires_ms: u64,
}

/// What came of asking for a lease.
enum Asked {
    Got(u64),
    /// Another run has it.
    Held(Standing),
}

/// What is asked for.
struct Wanted {
    thread: Arc<str>,
    claim: Claim,
    owner: Arc<str>,
    now_ms: u64,
    expires_ms: u64,
    /// The lease that may be taken away, after a look at who holds it.
    over: Option<u64>,
}

impl<D: Database> Durable<D> {
    /// Takes a thread for a run.
    pub(crate) async fn take(&self, thread: &str, claim: Claim) -> Result<Lease, Error> {
        let _claiming = Claiming::new(&self.leases, claim.run);
        let run = claim.run;
        let began = Instant::now();
        let now_ms = self.now_ms().await?;
        let wanted = |over| Wanted {
            thread: thread.into(),
            claim: claim.clone(),
            owner: self.db.owner(),
            now_ms,
            expires_ms: now_ms.saturating_add(millis(self.options.lease)),
            over,
        };
        let mut asked = self.ask(wanted(None)).await?;
        if let Asked::Held(standing) = &asked
            && !self.is_held(standing, run, now_ms).await
        {
            asked = self.ask(wanted(Some(standing.epoch))).await?;
        }
        match asked {
            Asked::Got(epoch) => Ok(self.lease_of(thread, run, epoch, began)),
            Asked::Held(standing) => Err(Error::Conflict {
                thread: thread.to_owned(),
                holder: standing.holder,
            }),
        }
    }

    async fn ask(&self, wanted: Wanted) -> Result<Asked, Error> {
        let (codec, wanted) = (self.codec.clone(), Arc::new(wanted));
        self.write(&wanted.thread.clone(), move |tx| {
            let (codec, wanted) = (codec.clone(), wanted.clone());
            Box::pin(async move { ask(tx, &codec, &wanted).await })
        })
        .await
    }

    fn lease_of(&self, thread: &str, run: RunId, epoch: u64, began: Instant) -> Lease {
        let (wish, wished) = watch::channel(None);
        let thread: Arc<str> = thread.into();
        let held = Held {
            thread: thread.clone(),
            run,
            wish,
            until: began + self.options.lease,
        };
        self.leases.hold(epoch, held);
        Lease {
            epoch,
            wish: Some(wished),
            guard: Some(Box::new(Release {
                db: self.db.clone(),
                leases: self.leases.clone(),
                thread,
                epoch,
            })),
        }
    }

    /// Whether the process that drives a thread, by its row, is heard of.
    async fn is_held(&self, standing: &Standing, asking: RunId, now_ms: u64) -> bool {
        let (Some(run), Some(owner)) = (standing.holder, &standing.owner) else {
            return false;
        };
        if **owner == *self.db.owner() {
            return self.leases.has(run, asking);
        }
        standing.expires_ms > now_ms && !self.db.is_gone(owner).await
    }

    /// Writes down how a run came to rest, and gives its thread back.
    pub(crate) async fn give_back(&self, thread: &str, end: RunEnd) -> Result<(), Error> {
        let now_ms = self.now_ms().await?;
        let (epoch, logs) = (end.epoch, !end.events.is_empty());
        let (codec, name, end) = (self.codec.clone(), Arc::<str>::from(thread), Arc::new(end));
        let done = self.write(thread, move |tx| {
            let (codec, name, end) = (codec.clone(), name.clone(), end.clone());
            Box::pin(async move { give_back(tx, &codec, (&name, now_ms), &end).await })
        });
        done.await?;
        self.leases.let_go(epoch);
        if logs {
            self.growth.grew(thread);
        }
        Ok(())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn standing_of(thread: &str, answer: Answer) -> Result<Option<(i64, Standing)>, Error> {
    let Some(row) = answer.first() else {
        return Ok(None);
    };
    let read = || -> Result<(i64, Standing), BadCell> {
        let standing = Standing {
            epoch: row.unsigned(1)?,
            holder: row.opt_parsed(2, "a run")?,
            owner: row.opt_text(3)?.map(str::to_owned),
            expires_ms: row.unsigned(4)?,
        };
        Ok((row.int(0)?, standing))
    };
    let bad = |e: BadCell| damaged(format!("the row of thread `{thread}`"), e.to_string());
    read().map(Some).map_err(bad)
}

async fn ask(tx: &mut dyn Tx, codec: &Codec, wanted: &Wanted) -> Result<Asked, Fault> {
    let run = wanted.claim.run;
    // Written, so that in a database with several writers the others wait.
    let look = || {
        let thread = Statement::new(
            "UPDATE thread SET seq = seq WHERE name = $1 \
             RETURNING id, epoch, holder, owner, expires_ms",
            [(&*wanted.thread).into()],
        );
        vec![thread, runs::find(run)]
    };
    let mut answers = tx.all(look()).await?.into_iter();
    let mut found = standing_of(&wanted.thread, next(&mut answers)?)?;
    if found.is_none() {
        let mut make = vec![new_thread(codec, &wanted.thread, wanted.now_ms, None)];
        make.extend(look());
        answers = tx.all(make).await?.into_iter();
        next(&mut answers)?;
        found = standing_of(&wanted.thread, next(&mut answers)?)?;
    }
    let (id, standing) =
        found.ok_or_else(|| damaged(format!("thread `{}`", wanted.thread), "it cannot be made"))?;
    if standing.holder.is_some() && wanted.over != Some(standing.epoch) {
        return Ok(Asked::Held(standing));
    }
    let found = next(&mut answers)?.first();
    let begun = runs::begin(codec, found, &wanted.thread, &wanted.claim, wanted.now_ms)?;
    let count = "UPDATE store SET epoch = epoch + 1 WHERE one = 1 RETURNING epoch";
    let counted = one(tx, Statement::new(count, [])).await?.first();
    let epoch = counted.map(|row| row.unsigned(0)).transpose();
    let epoch = epoch
        .ok()
        .flatten()
        .filter(|epoch| *epoch > standing.epoch)
        .ok_or_else(|| {
            damaged(
                "the row of table `store`",
                "its epoch is older than a lease",
            )
        })?;
    let graph = wanted.claim.start.as_ref().map(|start| &*start.graph);
    let mut statements = vec![Statement::new(
        "UPDATE thread SET epoch = $2, holder = $3, owner = $4, expires_ms = $5, \
         graph = COALESCE($6, graph) WHERE id = $1",
        [
            id.into(),
            epoch.into(),
            run.to_string().into(),
            (&*wanted.owner).into(),
            wanted.expires_ms.into(),
            graph.into(),
        ],
    )];
    statements.extend(begun);
    tx.later(statements).await?;
    Ok(Asked::Got(epoch))
}

async fn give_back(
    tx: &mut dyn Tx,
    codec: &Codec,
    (thread, now_ms): (&str, u64),
    end: &RunEnd,
) -> Result<(), Fault> {
    let grows = (end.events.len(), 0);
    let touch = Touch {
        thread,
        epoch: end.epoch,
        now_ms: Some(now_ms),
        grows,
        standing: end.standing.as_ref(),
    };
    let mut look = vec![touch.statement(codec), runs::find(end.run)];
    look.extend(values_find(thread, end.standing.as_ref()));
    let mut answers = tx.all(look).await?.into_iter();
    let Some(taken) = Taken::read(thread, next(&mut answers)?, grows)? else {
        let refused = refused(tx, thread, end.epoch).await?;
        return Err(refused
            .unwrap_or_else(|| Error::UnknownThread(thread.to_owned()))
            .into());
    };
    let ended = runs::end(codec, next(&mut answers)?.first(), end, now_ms)?;
    let place = (taken.thread, thread);
    let doc = answers.next().and_then(Answer::first);
    let (logged, _) = events::append(codec, place, taken.seq, &end.events, |_| None)?;
    let mut statements = vec![Statement::new(
        "UPDATE thread SET holder = NULL, owner = NULL, expires_ms = 0 WHERE id = $1 AND epoch = $2",
        [taken.thread.into(), end.epoch.into()],
    )];
    statements.extend(ended);
    statements.extend(logged);
    statements.extend(values(codec, place, doc, end.standing.as_ref())?);
    Ok(tx.later(statements).await?)
}
