//! Reading rows of runs, and handing a run in.

use super::{Stored, find, pending, read, save, select};
use crate::{
    codec::Codec,
    database::{Database, Fault},
    durable::Durable,
    sql::{Statement, Tx, one},
};
use paraph_graph::{Error, NewRun, RunId, RunQuery, RunRow};
use std::sync::Arc;

/// The statement for a query: which conditions there are is known beforehand, what they say is bound.
fn list(query: &RunQuery) -> Statement<'_> {
    macro_rules! by {
        ($which:literal) => {
            match query.oldest_first {
                true => select!($which " ORDER BY r.created_ms, r.id LIMIT $1 OFFSET $2"),
                false => select!($which " ORDER BY r.created_ms DESC, r.id DESC LIMIT $1 OFFSET $2"),
            }
        };
    }
    let sql = match (&query.thread, query.status) {
        (None, None) => by!(""),
        (Some(_), None) => by!("WHERE r.thread = $3"),
        (None, Some(_)) => by!("WHERE r.status = $3"),
        (Some(_), Some(_)) => by!("WHERE r.thread = $3 AND r.status = $4"),
    };
    let limit = query.limit.map_or(u64::MAX, |limit| limit as u64);
    let mut values = vec![limit.into(), (query.offset as u64).into()];
    values.extend(query.thread.as_deref().map(Into::into));
    values.extend(query.status.map(|status| super::word(status).into()));
    Statement::new(sql, values)
}

async fn select(tx: &mut dyn Tx, codec: &Codec, query: &RunQuery) -> Result<Vec<Stored>, Fault> {
    let rows = one(tx, list(query)).await?.rows.into_iter();
    Ok(rows.map(|row| read(codec, row)).collect::<Result<_, _>>()?)
}

async fn submit(tx: &mut dyn Tx, codec: &Codec, row: &RunRow) -> Result<(), Fault> {
    if let Some(older) = one(tx, find(row.id)).await?.first() {
        return Err(Fault::Refused(Error::Conflict {
            thread: read(codec, older)?.row.thread,
            holder: Some(row.id),
        }));
    }
    one(tx, save(codec, row)).await?;
    Ok(())
}

impl<D: Database> Durable<D> {
    pub(crate) async fn list_runs(&self, query: &RunQuery) -> Result<Vec<RunRow>, Error> {
        let (codec, query) = (self.codec.clone(), Arc::new(query.clone()));
        let found = self.read(move |tx| {
            let (codec, query) = (codec.clone(), query.clone());
            Box::pin(async move { select(tx, &codec, &query).await })
        });
        let found = found.await?;
        let living = self.living(found.iter().map(|found| &found.owner)).await?;
        Ok(found.into_iter().map(|found| found.told(&living)).collect())
    }

    pub(crate) async fn find_run(&self, run: RunId) -> Result<Option<RunRow>, Error> {
        let codec = self.codec.clone();
        let found = self.read(move |tx| {
            let codec = codec.clone();
            Box::pin(async move {
                let row = one(tx, find(run)).await?.first();
                Ok(row.map(|row| read(&codec, row)).transpose()?)
            })
        });
        let Some(found) = found.await? else {
            return Ok(None);
        };
        let living = self.living([&found.owner]).await?;
        Ok(Some(found.told(&living)))
    }

    pub(crate) async fn submit_run(&self, run: NewRun) -> Result<RunRow, Error> {
        let row = Arc::new(pending(&run, self.now_ms().await?));
        let (codec, saved) = (self.codec.clone(), row.clone());
        self.write(&run.thread, move |tx| {
            let (codec, row) = (codec.clone(), saved.clone());
            Box::pin(async move { submit(tx, &codec, &row).await })
        })
        .await?;
        Ok(Arc::unwrap_or_clone(row))
    }
}
