//! Removing a thread with all that belongs to it.

use super::living::{Living, Owner, dispossess};
use crate::{
    database::{Database, Fault},
    durable::Durable,
    error::damaged,
    gateway,
    sql::{Statement, Tx},
};
use paraph_graph::{Error, RunId};
use std::sync::Arc;

/// What of a thread's row matters here. Its documents are not read: a damaged thread can be deleted too.
struct Found {
    id: i64,
    holder: Option<RunId>,
    owner: Owner,
}

/// Finds the thread; nobody else writes to it until this transaction is over.
async fn hold(tx: &mut dyn Tx, name: &str) -> Result<Option<Found>, Fault> {
    let hold = Statement::new(
        "UPDATE thread SET epoch = epoch WHERE name = $1",
        [name.into()],
    );
    let find = Statement::new(
        "SELECT id, holder, owner, expires_ms FROM thread WHERE name = $1",
        [name.into()],
    );
    let row = tx.all(vec![hold, find]).await?.pop();
    let Some(row) = row.and_then(|answer| answer.first()) else {
        return Ok(None);
    };
    let bad =
        |e: crate::sql::BadCell| damaged(format!("the row of thread `{name}`"), e.to_string());
    // Whoever cannot be read holds nothing.
    let until = row.unsigned(3).unwrap_or(0);
    let owner = row.opt_text(2).ok().flatten();
    Ok(Some(Found {
        id: row.int(0).map_err(bad)?,
        holder: row.opt_parsed(1, "a run").ok().flatten(),
        owner: owner.map(|owner| (owner.to_owned(), until)),
    }))
}

/// Refuses what has to stay, since an action of the gateway on it is not over.
pub(crate) async fn is_settled(
    tx: &mut dyn Tx,
    thread: &str,
    run: Option<&str>,
) -> Result<(), Fault> {
    match gateway::unsettled(tx, thread, run).await? {
        None => Ok(()),
        Some(why) => Err(Fault::Refused(Error::StillNeeded {
            thread: thread.to_owned(),
            why,
        })),
    }
}

async fn delete(tx: &mut dyn Tx, living: &Living, name: &str) -> Result<bool, Fault> {
    let mut statements = Vec::new();
    let found = hold(tx, name).await?;
    is_settled(tx, name, None).await?;
    if let Some(found) = &found {
        if found.holder.is_some() && living.has(&found.owner) {
            return Err(Fault::Refused(Error::Conflict {
                thread: name.to_owned(),
                holder: found.holder,
            }));
        }
        dispossess(tx, found.id).await?;
        // In this order, whether or not the database removes rows with what they belong to.
        statements.extend(
            [
                "DELETE FROM event WHERE thread = $1",
                "DELETE FROM note WHERE scope IN (SELECT id FROM scope WHERE thread = $1)",
                "DELETE FROM piece WHERE scope IN (SELECT id FROM scope WHERE thread = $1)",
                "DELETE FROM checkpoint WHERE scope IN (SELECT id FROM scope WHERE thread = $1)",
                "DELETE FROM scope WHERE thread = $1",
                "DELETE FROM thread_doc WHERE thread = $1",
                "DELETE FROM thread WHERE id = $1",
            ]
            .map(|sql| Statement::new(sql, [found.id.into()])),
        );
    }
    statements.extend(gateway::forget(name, None));
    let runs = "DELETE FROM run WHERE thread = $1";
    statements.push(Statement::new(runs, [name.into()]));
    tx.all(statements).await?;
    Ok(found.is_some())
}

impl<D: Database> Durable<D> {
    pub(super) async fn delete_thread(&self, name: &str) -> Result<bool, Error> {
        let living = Arc::new(self.living_on(&[name]).await?);
        let lane = name;
        let name = Arc::<str>::from(name);
        self.write(lane, move |tx| {
            let (living, name) = (living.clone(), name.clone());
            Box::pin(async move { delete(tx, &living, &name).await })
        })
        .await
    }
}
