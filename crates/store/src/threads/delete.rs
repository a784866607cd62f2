//! Removing a thread with all that belongs to it.

use super::{living, row};
use crate::{
    codec::Codec,
    database::{Database, Fault},
    durable::Durable,
    gateway,
    sql::{Statement, Tx},
    threads::living::Living,
};
use paraph_graph::Error;
use std::sync::Arc;

async fn delete(
    tx: &mut dyn Tx,
    codec: &Codec,
    living: &Living,
    name: &str,
) -> Result<bool, Fault> {
    let mut statements = Vec::new();
    let found = row::hold(tx, codec, name).await?;
    if let Some(found) = &found {
        living::free(tx, living, found).await?;
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
        let (codec, lane) = (self.codec.clone(), name);
        let name = Arc::<str>::from(name);
        self.write(lane, move |tx| {
            let (codec, living, name) = (codec.clone(), living.clone(), name.clone());
            Box::pin(async move { delete(tx, &codec, &living, &name).await })
        })
        .await
    }
}
