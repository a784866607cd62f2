//! Lists of threads: filtered by their rows alone.
//!
//! Called by `threads`. What a filter of metadata names is never part of a statement: rows are read in
//! pages, and compared here.

use super::row::{Stored, read, select};
use crate::{
    codec::Codec,
    database::{Database, Fault},
    durable::Durable,
    runs::word,
    sql::{Statement, Tx, one},
};
use paraph_graph::{Error, ThreadQuery, ThreadRow};
use std::sync::Arc;

/// How many rows are looked through at a time when metadata decides.
const PAGE: u64 = 1000;

/// One page of rows in their order: last written first.
async fn page(
    tx: &mut dyn Tx,
    codec: &Codec,
    query: &ThreadQuery,
    (limit, offset): (u64, u64),
) -> Result<Vec<Stored>, Fault> {
    // Rows are chosen by their numbers first, so that nothing long is sorted.
    let list = Statement::new(
        select!(
            "WHERE t.id IN (SELECT id FROM thread \
             WHERE (CAST($1 AS TEXT) IS NULL OR status = $1) AND (CAST($2 AS TEXT) IS NULL OR graph = $2) \
             ORDER BY updated_ms DESC, id DESC LIMIT $3 OFFSET $4) \
             ORDER BY t.updated_ms DESC, t.id DESC"
        ),
        [
            query.status.map(word).into(),
            query.graph.as_deref().into(),
            limit.into(),
            offset.into(),
        ],
    );
    let rows = one(tx, list).await?.rows.into_iter();
    Ok(rows.map(|row| read(codec, row)).collect::<Result<_, _>>()?)
}

async fn select(tx: &mut dyn Tx, codec: &Codec, query: &ThreadQuery) -> Result<Vec<Stored>, Fault> {
    let limit = query.limit.map_or(u64::MAX, |limit| limit as u64);
    if query.metadata.is_empty() {
        return page(tx, codec, query, (limit, query.offset as u64)).await;
    }
    let mut wanted = Vec::new();
    let (mut offset, mut passed) = (0, 0);
    loop {
        let rows = page(tx, codec, query, (PAGE, offset)).await?;
        let is_last = (rows.len() as u64) < PAGE;
        for found in rows {
            let has = |(key, value)| found.row.metadata.get(key) == Some(value);
            if wanted.len() as u64 >= limit || !query.metadata.iter().all(has) {
                continue;
            }
            if passed < query.offset {
                passed += 1;
            } else {
                wanted.push(found);
            }
        }
        if is_last || wanted.len() as u64 >= limit {
            return Ok(wanted);
        }
        offset += PAGE;
    }
}

impl<D: Database> Durable<D> {
    pub(super) async fn list(&self, query: &ThreadQuery) -> Result<Vec<ThreadRow>, Error> {
        let (codec, query) = (self.codec.clone(), Arc::new(query.clone()));
        let found = self.read(move |tx| {
            let (codec, query) = (codec.clone(), query.clone());
            Box::pin(async move { select(tx, &codec, &query).await })
        });
        self.told(found.await?).await
    }

    /// Rows as they are told: a holder that is gone holds nothing.
    pub(super) async fn told(&self, found: Vec<Stored>) -> Result<Vec<ThreadRow>, Error> {
        let living = self.living(found.iter().map(|found| &found.owner)).await?;
        let told = |mut found: Stored| {
            if !living.has(&found.owner) {
                found.row.holder = None;
            }
            found.row
        };
        Ok(found.into_iter().map(told).collect())
    }
}
