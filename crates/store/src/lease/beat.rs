//! What keeps leases fresh, and finds out that a run is to end: one thread per opened store.
//!
//! A thread with a small runtime of its own, since a node that blocks the program's runtime must not cost
//! it the lease.

use super::{Book, Leases, millis};
use crate::{
    database::{Database, Fault},
    error::Error,
    options::Options,
    runs::word_at,
    sql::{Statement, one},
};
use futures::future::join_all;
use paraph_graph::{CancelReason, RunId};
use std::{
    sync::{Arc, Mutex, Weak, mpsc},
    time::{Duration, Instant},
};

/// How often it is looked whether somebody wants a run to end.
const LOOK: Duration = Duration::from_millis(500);

/// How long a look may take: what is not seen by then is seen by the next one.
const GLANCE: Duration = Duration::from_secs(3);

impl Leases {
    /// None yet; from here on they are kept fresh.
    pub(crate) fn kept<D: Database>(db: &Arc<D>, options: &Options) -> Result<Arc<Self>, Error> {
        let (stop, stopped) = mpsc::channel();
        let leases = Arc::new(Leases {
            book: Mutex::new(Book::default()),
            _stop: stop,
        });
        let no_thread = |e| Error::Database(format!("no thread to keep leases: {e}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(no_thread)?;
        let beat = Beat {
            db: Arc::downgrade(db),
            leases: Arc::downgrade(&leases),
            lease: options.lease,
        };
        std::thread::Builder::new()
            .name("paraph-leases".to_owned())
            .spawn(move || beat.on(&runtime, &stopped))
            .map_err(no_thread)?;
        Ok(leases)
    }
}

struct Beat<D> {
    db: Weak<D>,
    leases: Weak<Leases>,
    lease: Duration,
}

impl<D: Database> Beat<D> {
    fn on(&self, runtime: &tokio::runtime::Runtime, stopped: &mpsc::Receiver<()>) {
        let renewal = self.lease / 3;
        let pause = renewal.clamp(Duration::from_millis(1), LOOK);
        let mut renewed = Instant::now();
        while stopped.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
            let (Some(db), Some(leases)) = (self.db.upgrade(), self.leases.upgrade()) else {
                return;
            };
            let Some(first) = leases.first_to_end() else {
                continue;
            };
            runtime.block_on(async {
                // A beat early rather than late; and at once for a lease that took long to get.
                let is_short = first.saturating_duration_since(Instant::now()) < renewal;
                if is_short || renewed.elapsed() + pause >= renewal {
                    let began = Instant::now();
                    // What could not be done is tried again with the next beat.
                    if renew(&*db, &leases, self.lease).await {
                        renewed = began;
                    }
                }
                // A database that does not answer now is asked again soon.
                let _ =
                    tokio::time::timeout(GLANCE.min(renewal.max(LOOK)), look(&*db, &leases)).await;
            });
        }
    }
}

/// Renews all leases; says whether all were renewed or lost. A run whose lease is lost is told so.
async fn renew<D: Database>(db: &D, leases: &Leases, lease: Duration) -> bool {
    let held: Vec<(u64, Arc<str>, Instant)> = leases
        .book()
        .held
        .iter()
        .map(|(epoch, held)| (*epoch, held.thread.clone(), held.until))
        .collect();
    let began = Instant::now();
    // No longer than until the next beat: whoever wants a run to end is to be heard, too.
    let most = lease / 3;
    let now_ms = tokio::time::timeout(most, db.now_ms()).await;
    let expires_ms = now_ms.ok().and_then(Result::ok);
    let expires_ms = expires_ms.map(|now| now.saturating_add(millis(lease)));
    let renewals = held.into_iter().map(|(epoch, thread, until)| async move {
        let renewing = async {
            match expires_ms {
                Some(expires_ms) => renew_one(db, &thread, epoch, expires_ms).await.ok(),
                None => None,
            }
        };
        // Whoever cannot be reached may have given the lease away by then.
        let left = until.saturating_duration_since(Instant::now());
        let left = left.clamp(
            Duration::from_millis(100),
            most.max(Duration::from_millis(100)),
        );
        let renewed = tokio::time::timeout(left, renewing).await.ok().flatten();
        (epoch, renewed)
    });
    let mut all = true;
    for (epoch, renewed) in join_all(renewals).await {
        all &= renewed.is_some();
        let mut book = leases.book();
        let Some(held) = book.held.get_mut(&epoch) else {
            continue;
        };
        match renewed {
            Some(true) => held.until = began + lease,
            Some(false) => held.wish(CancelReason::LeaseLost),
            None if held.until <= Instant::now() => held.wish(CancelReason::LeaseLost),
            None => {}
        }
    }
    all
}

/// Whether it was still ours.
async fn renew_one<D: Database>(
    db: &D,
    thread: &Arc<str>,
    epoch: u64,
    expires_ms: u64,
) -> Result<bool, Fault> {
    let (name, owner) = (thread.clone(), db.owner());
    let work = db.write_soon(
        thread,
        Box::new(move |tx| {
            let (name, owner) = (name.clone(), owner.clone());
            Box::pin(async move {
                let renew = Statement::new(
                    "UPDATE thread SET expires_ms = $4 \
                     WHERE name = $1 AND epoch = $2 AND owner = $3",
                    [
                        (&*name).into(),
                        epoch.into(),
                        (&*owner).into(),
                        expires_ms.into(),
                    ],
                );
                Ok(one(tx, renew).await?.written > 0)
            })
        }),
    );
    work.await
}

/// Looks whether runs are to end, wherever it was said.
async fn look<D: Database>(db: &D, leases: &Leases) {
    let wishes = db.read_soon(Box::new(|tx| {
        Box::pin(async move {
            let select = Statement::new(
                "SELECT id, cancel_reason FROM run WHERE status = 'running' \
                 AND cancel_wished_ms IS NOT NULL AND cancel_done_ms IS NULL",
                [],
            );
            let mut wishes: Vec<(RunId, CancelReason)> = Vec::new();
            for row in one(tx, select).await?.rows {
                // What is no run of ours, or no reason, is for those who list runs to complain of.
                let run = row.parsed(0, "a run").ok();
                wishes.extend(run.zip(word_at(&row, 1).ok().flatten()));
            }
            Ok(wishes)
        })
    }));
    for (run, reason) in wishes.await.unwrap_or_default() {
        leases.wish(run, reason);
    }
}
