//! Postgres as a database of this crate: a pool of connections, lanes that write, a lock that shows who is alive,
//! and a connection for what must not be late.
//!
//! Opened by whoever composes a program; everything but the opening is in [`Durable`]. Any number of
//! processes may use the same database. Connections are made again by themselves.
//!
//! All of it runs on a small runtime of its own: callers come from runtimes that end sooner than the store.
//! Between the program and the server there may be a pooler only if it keeps sessions: statements are
//! prepared, and locks held, per session.

mod address;
mod cell;
mod clock;
mod fault;
mod keeper;
mod lane;
mod patience;
mod reads;
mod schema;
mod session;
mod tls;
mod urgent;

use crate::{
    database::{Database, Fault, Lock, Work},
    durable::Durable,
    error::Error,
    options::Options,
    sql::SqlError,
};
use address::Address;
use clock::Clock;
use deadpool_postgres::{Hook, HookError, ManagerConfig, Pool, RecyclingMethod, Runtime as Timer};
use futures::future::BoxFuture;
use keeper::Held;
use lane::{Job, Lane, Waiting};
use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{runtime::Runtime, sync::mpsc};
use tokio_postgres_rustls::MakeRustlsConnect;
use uuid::Uuid;

/// A store in a Postgres database, which any number of processes share.
pub type Postgres = Durable<PostgresServer>;

/// The database below a [`Postgres`].
pub struct PostgresServer {
    shared: Arc<Shared>,
    lanes: Vec<mpsc::UnboundedSender<Box<dyn Job>>>,
    /// Hears when the last lane has ended.
    ended: Mutex<std::sync::mpsc::Receiver<Infallible>>,
    runtime: Own,
}

/// What was queued is written before the store is closed, so that a program which ends gives its leases back; but a
/// server that is away is not waited for.
impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.lanes.clear();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(CLOSING);
    }
}

/// The store's runtime. It must not wait for its threads inside another one, so it ends in the background.
struct Own(Option<Runtime>);

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// What all tasks of an opened store have in common.
struct Shared {
    pool: Pool,
    /// One connection for what must not be late.
    urgent: Pool,
    clock: Clock,
    owner: Arc<str>,
    patience: Duration,
    /// Whether patience was at its end, and nothing went well since.
    gave_up: AtomicBool,
    lease: Duration,
}

/// How long a server is waited for that somebody has already waited for in vain: what ends a run is several
/// writes and reads, and each of them waiting anew would be minutes.
const BRIEF: Duration = Duration::from_secs(1);

impl Shared {
    /// How long what begins now is tried.
    fn patience(&self) -> Duration {
        match self.gave_up.load(Ordering::Relaxed) {
            true => self.patience.min(BRIEF),
            false => self.patience,
        }
    }

    /// Something was answered, or nobody waits for it any more.
    fn saw(&self, answered: bool) {
        self.gave_up.store(!answered, Ordering::Relaxed);
    }
}

/// How long closing waits for what is queued.
const CLOSING: Duration = Duration::from_secs(2);

/// More lanes than that commit no faster.
const MOST_LANES: usize = 4;

/// How long opening waits for a server that does not listen (yet).
const OPENING: Duration = Duration::from_secs(3);

impl Postgres {
    /// Connects to `postgres://user:password@host:port/database`, and makes the tables if they are not there.
    ///
    /// The parameters are those of `libpq`; for `sslmode`, `require` encrypts, and `verify-full` also checks
    /// the certificate, against the authorities in `sslrootcert` or the platform's. Uses up to
    /// [`Options::connections`] connections, and two more: one shows that this process is alive, one keeps its
    /// leases.
    ///
    /// # Errors
    /// Why the server or the database cannot be used, in a sentence without the password; a wrong key; a
    /// format newer than this program.
    pub async fn connect(url: &str, options: Options) -> Result<Self, Error> {
        let address = Address::read(url)?;
        let runtime = runtime().map_err(|e| Error::Open {
            place: address.place(),
            why: e.to_string(),
        })?;
        let (limits, handle) = (options.clone(), runtime.handle().clone());
        // Also if this future is dropped while it waits.
        let runtime = Own(Some(runtime));
        let mut server = handle
            .spawn(async move { open(&address, &limits).await })
            .await
            .unwrap_or_else(|e| Err(Error::Database(format!("opening was ended: {e}"))))?;
        server.runtime = runtime;
        Durable::over(server, options).await
    }
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("paraph-postgres")
        .enable_all()
        .build()
}

/// On the store's own runtime, which then has all of its tasks.
async fn open(address: &Address, options: &Options) -> Result<PostgresServer, Error> {
    let tls = tls::connector(&address.trust).map_err(|why| Error::Open {
        place: address.place(),
        why,
    })?;
    let shared = Arc::new(Shared {
        pool: pool(address, &tls, (options, options.connections), "")?,
        urgent: pool(
            address,
            &tls,
            (options, 1),
            &urgent::settings(options.lease),
        )?,
        clock: Clock::default(),
        owner: Uuid::now_v7().to_string().into(),
        patience: options.patience,
        gave_up: AtomicBool::new(false),
        lease: options.lease,
    });
    let client = first_connection(&shared, address).await?;
    schema::up_to_date(&client, address).await?;
    if let Err(why) = lane::forget_old_marks(&client).await {
        tracing::debug!(%why, "old marks stay for now");
    }
    drop(client);
    let held = Held::take(address, &tls, &shared.owner)
        .await
        .map_err(|e| fault::opening(&deadpool_postgres::PoolError::Backend(e), address))?;
    tokio::spawn(keeper::hold(
        Arc::downgrade(&shared),
        address.clone(),
        tls,
        held,
    ));
    let (alive, ended) = std::sync::mpsc::channel();
    let lanes = (0..options.connections.clamp(1, MOST_LANES))
        .zip(0..)
        .map(|(_, index)| {
            let (to, queue) = mpsc::unbounded_channel();
            let shared = shared.clone();
            let lane = Lane {
                shared,
                index,
                queue,
                mark: 0,
            };
            let alive = alive.clone();
            tokio::spawn(async move {
                lane.work().await;
                drop(alive);
            });
            to
        })
        .collect();
    Ok(PostgresServer {
        shared,
        lanes,
        ended: Mutex::new(ended),
        runtime: Own(None),
    })
}

/// A pool of so many connections that wait for nobody for ever. `then` is what else they are set to.
fn pool(
    address: &Address,
    tls: &MakeRustlsConnect,
    (options, connections): (&Options, usize),
    then: &str,
) -> Result<Pool, Error> {
    let manager = deadpool_postgres::Manager::from_config(
        address.config.clone(),
        tls.clone(),
        ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        },
    );
    // A process that was stopped in the middle of a transaction must not hold its locks for ever.
    let asleep = (options.lease / 3).clamp(Duration::from_secs(1), Duration::from_secs(10));
    let locked = options
        .patience
        .clamp(Duration::from_secs(1), Duration::from_secs(10));
    let settings = format!(
        "SELECT set_config('idle_in_transaction_session_timeout', '{}', false), \
         set_config('lock_timeout', '{}', false); \
         SELECT set_config('synchronous_commit', 'on', false) \
         WHERE current_setting('synchronous_commit') = 'off'; {then}",
        asleep.as_millis(),
        locked.as_millis()
    );
    Pool::builder(manager)
        .max_size(connections.max(1))
        .runtime(Timer::Tokio1)
        .create_timeout(Some(Duration::from_secs(10)))
        .post_create(Hook::async_fn(move |client, _| {
            let settings = settings.clone();
            Box::pin(async move {
                client
                    .batch_execute(&settings)
                    .await
                    .map_err(HookError::Backend)
            })
        }))
        .build()
        .map_err(|e| Error::Open {
            place: address.place(),
            why: e.to_string(),
        })
}

/// A server that is starting is waited for; one that is not there, for a moment.
async fn first_connection(
    shared: &Shared,
    address: &Address,
) -> Result<deadpool_postgres::Client, Error> {
    let since = tokio::time::Instant::now();
    let mut pauses = patience::Patience::new(shared.patience);
    loop {
        let failed = match shared.pool.get().await {
            Ok(client) => return Ok(client),
            Err(e) => e,
        };
        let said = fault::backend(&failed);
        let hopeful = said.is_some_and(fault::may_go_better);
        let it_is_there = said.is_some_and(|e| e.code().is_some());
        let over = !it_is_there && since.elapsed() >= OPENING.min(shared.patience);
        if !hopeful || over || pauses.is_over(since) || fault::is_unknown_host(&failed) {
            return Err(fault::opening(&failed, address));
        }
        pauses.wait().await;
    }
}

impl PostgresServer {
    /// Work on the store's own runtime, as soon as this is called.
    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Fault>> {
        let Some(runtime) = &self.runtime.0 else {
            return Box::pin(std::future::ready(Err(closed())));
        };
        let task = runtime.spawn(work);
        Box::pin(async move { task.await.unwrap_or_else(|_| Err(closed())) })
    }
}

impl Database for PostgresServer {
    fn write<T: Send + 'static>(
        &self,
        lane: &str,
        work: Work<T>,
    ) -> BoxFuture<'static, Result<T, Fault>> {
        self.write_locked(lane, Vec::new(), work)
    }

    fn write_locked<T: Send + 'static>(
        &self,
        lane: &str,
        locks: Vec<Lock>,
        work: Work<T>,
    ) -> BoxFuture<'static, Result<T, Fault>> {
        let (job, told) = Waiting::ends(lane, locks, work);
        let count = u64::try_from(self.lanes.len()).unwrap_or(1).max(1);
        let which = usize::try_from(lane::number(lane).unsigned_abs() % count).unwrap_or(0);
        // Should there be no lane any more, the job is dropped, and `told` says so.
        if let Some(lane) = self.lanes.get(which) {
            let _ = lane.send(job);
        }
        Box::pin(async move { told.await.unwrap_or_else(|_| Err(closed())) })
    }

    fn read<T: Send + 'static>(&self, work: Work<T>) -> BoxFuture<'static, Result<T, Fault>> {
        let shared = self.shared.clone();
        self.run(async move { reads::read(&shared, &work).await })
    }

    fn write_soon<T: Send + 'static>(
        &self,
        _lane: &str,
        work: Work<T>,
    ) -> BoxFuture<'static, Result<T, Fault>> {
        let shared = self.shared.clone();
        self.run(async move { urgent::once(&shared, &work, "BEGIN").await })
    }

    fn read_soon<T: Send + 'static>(&self, work: Work<T>) -> BoxFuture<'static, Result<T, Fault>> {
        let shared = self.shared.clone();
        self.run(async move { urgent::once(&shared, &work, "BEGIN READ ONLY").await })
    }

    fn now_ms(&self) -> BoxFuture<'static, Result<u64, Fault>> {
        let shared = self.shared.clone();
        match shared.clock.now() {
            Some(now) => Box::pin(std::future::ready(Ok(now))),
            None => self.run(async move { shared.clock.ask(&shared).await }),
        }
    }

    fn owner(&self) -> Arc<str> {
        self.shared.owner.clone()
    }

    fn is_gone(&self, owner: &str) -> BoxFuture<'static, bool> {
        let (shared, owner) = (self.shared.clone(), owner.to_owned());
        let looked = self.run(async move { Ok(keeper::is_gone(&shared, &owner).await) });
        Box::pin(async move { looked.await.unwrap_or(false) })
    }
}

fn closed() -> Fault {
    Fault::Sql(SqlError::Lasting("the store was closed".to_owned()))
}

#[cfg(test)]
mod tests;
