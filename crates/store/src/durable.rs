//! A store over one of the databases: all rules are methods of [`Durable`], in the modules by their subject.
//!
//! Made by `sqlite.rs` and `postgres.rs` when they have opened a database and brought it up to date.

use crate::{
    codec::Codec,
    database::{Database, Fault, Lock, Work},
    error::{self, Error},
    events::Growth,
    lease::Leases,
    options::Options,
    seal,
    sql::{Statement, Tx, one},
};
use futures::future::BoxFuture;
use std::sync::Arc;

/// Checkpoints, threads, runs, events, memory and the gateway's records in one database.
///
/// Implements the traits that the engine and the gateway declare. Put it into an `Arc`; all who share it
/// share its connections and its leases.
pub struct Durable<D> {
    pub(crate) db: Arc<D>,
    pub(crate) codec: Arc<Codec>,
    pub(crate) options: Options,
    pub(crate) leases: Arc<Leases>,
    pub(crate) growth: Arc<Growth>,
}

impl<D: Database> Durable<D> {
    /// A store over an opened database whose tables are there.
    pub(crate) async fn over(db: D, options: Options) -> Result<Self, Error> {
        let codec = Codec::new(options.key.clone());
        let key_check = key_check(&db, &codec).await?;
        seal::fits(key_check.as_deref(), codec.seal()).map_err(Error::Key)?;
        let db = Arc::new(db);
        let leases = Leases::kept(&db, &options)?;
        Ok(Durable {
            db,
            codec: Arc::new(codec),
            options,
            leases,
            growth: Arc::default(),
        })
    }

    /// Queues work at once, so that works are done in the order in which they were called.
    pub(crate) fn write<T, W>(
        &self,
        lane: &str,
        work: W,
    ) -> BoxFuture<'static, Result<T, paraph_graph::Error>>
    where
        T: Send + 'static,
        W: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Fault>> + Send + Sync + 'static,
    {
        let done = self.db.write(lane, Box::new(work));
        Box::pin(async move { Ok(done.await?) })
    }

    /// The same for work that needs more than its lane to itself.
    pub(crate) fn write_locked<T, W>(
        &self,
        lane: &str,
        locks: Vec<Lock>,
        work: W,
    ) -> BoxFuture<'static, Result<T, paraph_graph::Error>>
    where
        T: Send + 'static,
        W: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Fault>> + Send + Sync + 'static,
    {
        let done = self.db.write_locked(lane, locks, Box::new(work));
        Box::pin(async move { Ok(done.await?) })
    }

    /// Reads as of one moment.
    pub(crate) fn read<T, W>(&self, work: W) -> BoxFuture<'static, Result<T, paraph_graph::Error>>
    where
        T: Send + 'static,
        W: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Fault>> + Send + Sync + 'static,
    {
        let done = self.db.read(Box::new(work));
        Box::pin(async move { Ok(done.await?) })
    }

    /// Now, by the clock of the database, in milliseconds since the Unix epoch.
    pub(crate) async fn now_ms(&self) -> Result<u64, paraph_graph::Error> {
        Ok(self.db.now_ms().await?)
    }
}

/// What the store says of its key; a new store says it from now on.
async fn key_check<D: Database>(db: &D, codec: &Codec) -> Result<Option<Vec<u8>>, Error> {
    let read = || -> Work<Option<Option<Vec<u8>>>> {
        Box::new(|tx| {
            Box::pin(async move {
                let select = Statement::new("SELECT key_check FROM store WHERE one = 1", []);
                let Some(row) = one(tx, select).await?.first() else {
                    return Ok(None);
                };
                let check = row
                    .opt_bytes(0)
                    .map_err(|e| error::damaged("the row of table `store`", e.to_string()))?;
                Ok(Some(check.map(<[u8]>::to_vec)))
            })
        })
    };
    if let Some(found) = db.read(read()).await.map_err(words)? {
        return Ok(found);
    }
    let check = codec.seal().map(seal::Seal::check);
    let make: Work<()> = Box::new(move |tx| {
        let check = check.clone();
        Box::pin(async move {
            // Another process may have been quicker; then its key counts.
            let insert = Statement::new(
                "INSERT INTO store (one, epoch, key_check) VALUES (1, 0, $1) ON CONFLICT DO NOTHING",
                [check.into()],
            );
            one(tx, insert).await?;
            Ok(())
        })
    });
    db.write("", make).await.map_err(words)?;
    Ok(db.read(read()).await.map_err(words)?.flatten())
}

fn words(fault: Fault) -> Error {
    Error::Database(fault.to_string())
}
