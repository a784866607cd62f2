//! Whether the runs that hold threads are heard of.
//!
//! Called before something is done that a run at work forbids. The question is asked outside of
//! transactions, since it may wait; inside, only owners of whom it was answered count as gone. So the
//! answer may be too careful and never too bold, and the leases' epochs make even that harmless.

use crate::{
    database::{Database, Fault},
    durable::Durable,
    sql::{Statement, Tx, one},
};
use paraph_graph::Error;
use std::{collections::HashSet, sync::Arc};

/// A process that has a lease, and until when.
pub(crate) type Owner = Option<(String, u64)>;

/// Which owners are gone.
#[derive(Clone, Debug)]
pub(crate) struct Living {
    pub(crate) now_ms: u64,
    gone: HashSet<String>,
}

impl Living {
    /// Whether a lease of this owner still counts.
    pub(crate) fn has(&self, owner: &Owner) -> bool {
        let alive =
            |(owner, until): &(String, u64)| *until > self.now_ms && !self.gone.contains(owner);
        owner.as_ref().is_some_and(alive)
    }
}

impl<D: Database> Durable<D> {
    /// Asks for these owners, each once.
    pub(crate) async fn living(
        &self,
        owners: impl IntoIterator<Item = &Owner>,
    ) -> Result<Living, Error> {
        let now_ms = self.now_ms().await?;
        let own = self.db.owner();
        let held = owners
            .into_iter()
            .flatten()
            .filter(|(_, until)| *until > now_ms);
        let asked: HashSet<&str> = held.map(|(owner, _)| owner.as_str()).collect();
        let mut gone = HashSet::new();
        for owner in asked {
            if owner != &*own && self.db.is_gone(owner).await {
                gone.insert(owner.to_owned());
            }
        }
        Ok(Living { now_ms, gone })
    }

    /// Asks for whoever has one of these threads now.
    pub(crate) async fn living_on(&self, threads: &[&str]) -> Result<Living, Error> {
        let names: Arc<[String]> = threads.iter().map(|name| (*name).to_owned()).collect();
        let owners = self.read(move |tx| {
            let names = names.clone();
            Box::pin(async move { owners(tx, &names).await })
        });
        self.living(&owners.await?).await
    }
}

async fn owners(tx: &mut dyn Tx, threads: &[String]) -> Result<Vec<Owner>, Fault> {
    let find = |name: &String| {
        Statement::new(
            "SELECT owner, expires_ms FROM thread WHERE name = $1 AND holder IS NOT NULL",
            [name.clone().into()],
        )
    };
    let answers = tx.all(threads.iter().map(find).collect()).await?;
    let rows = answers.into_iter().flat_map(|answer| answer.rows);
    // A damaged row is nobody's here; whoever reads it says so.
    let owner = |row: crate::sql::Row| Some((row.text(0).ok()?.to_owned(), row.unsigned(1).ok()?));
    Ok(rows.map(owner).collect())
}

/// Takes a thread from a holder that is gone, so that nothing more is accepted from it.
pub(crate) async fn dispossess(tx: &mut dyn Tx, thread: i64) -> Result<(), Fault> {
    let count = Statement::new("UPDATE store SET epoch = epoch + 1 WHERE one = 1", []);
    let take = Statement::new(
        "UPDATE thread SET epoch = (SELECT epoch FROM store WHERE one = 1), holder = NULL, owner = NULL, \
         expires_ms = 0 WHERE id = $1",
        [thread.into()],
    );
    tx.all(vec![count, take]).await?;
    Ok(())
}

/// Refuses a thread that a run drives.
pub(crate) fn is_free(living: &Living, found: &super::row::Stored) -> Result<(), Error> {
    match living.has(&found.owner) {
        false => Ok(()),
        true => Err(Error::Conflict {
            thread: found.row.name.clone(),
            holder: found.row.holder,
        }),
    }
}

/// A thread's lease as it is looked at before something is done to the thread as a whole.
pub(crate) async fn free(
    tx: &mut dyn Tx,
    living: &Living,
    found: &super::row::Stored,
) -> Result<(), Fault> {
    is_free(living, found)?;
    if found.row.holder.is_some() {
        dispossess(tx, found.id).await?;
    }
    Ok(())
}

/// Whether a statement finds a row.
pub(crate) async fn is_there(tx: &mut dyn Tx, find: Statement<'_>) -> Result<bool, Fault> {
    Ok(one(tx, find).await?.first().is_some())
}
