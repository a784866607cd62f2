//! What another store knew of a thread that is moved here: since when it is there, and the rows of its runs.
//!
//! Called by `threads`. Its checkpoints come by the way on which a run writes them.

use super::{
    living::{Living, free, is_there},
    row,
};
use crate::{
    checkpoints::new_thread,
    codec::Codec,
    database::{Database, Fault},
    durable::Durable,
    error::damaged,
    runs,
    sql::{Statement, Tx, one},
};
use paraph_graph::{Error, RunId, RunRow};
use std::sync::Arc;

/// What is to be written down.
struct Adopted {
    name: String,
    created_ms: u64,
    runs: Vec<RunRow>,
}

async fn adopt(
    tx: &mut dyn Tx,
    codec: &Codec,
    living: &Living,
    asked: &Adopted,
) -> Result<Vec<RunId>, Fault> {
    let name = asked.name.as_str();
    one(tx, new_thread(codec, name, living.now_ms, None)).await?;
    let gone = || damaged(format!("the row of thread `{name}`"), "it is not there");
    let found = row::hold(tx, codec, name).await?.ok_or_else(gone)?;
    free(tx, living, &found).await?;
    let since = Statement::new(
        "UPDATE thread SET created_ms = $2 WHERE id = $1",
        [found.id.into(), asked.created_ms.into()],
    );
    one(tx, since).await?;
    let mut written = Vec::new();
    for run in &asked.runs {
        if !is_there(tx, runs::find(run.id)).await? {
            one(tx, runs::save(codec, run)).await?;
            written.push(run.id);
        }
    }
    Ok(written)
}

impl<D: Database> Durable<D> {
    pub(super) async fn adopt_runs(
        &self,
        name: &str,
        created_ms: u64,
        runs: Vec<RunRow>,
    ) -> Result<Vec<RunId>, Error> {
        let living = Arc::new(self.living_on(&[name]).await?);
        let on_it = |run: RunRow| RunRow {
            thread: name.to_owned(),
            ..run
        };
        let asked = Arc::new(Adopted {
            name: name.to_owned(),
            created_ms,
            runs: runs.into_iter().map(on_it).collect(),
        });
        let codec = self.codec.clone();
        self.write(name, move |tx| {
            let (codec, living, asked) = (codec.clone(), living.clone(), asked.clone());
            Box::pin(async move { adopt(tx, &codec, &living, &asked).await })
        })
        .await
    }
}
