//! A corpus in memory: for tests, rehearsals, and programs that read theirs anew each time.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;

use crate::corpus::{
    Batch, Corpus, CorpusState, Cursor, Identity, Kept, Known, MAX_BATCH, check_batch,
};
use crate::document::IssueRef;
use crate::error::Error;
use crate::floor::Floor;
use crate::vectors::Vectors;

/// A corpus that is gone with the process.
#[derive(Debug, Default)]
pub struct MemoryCorpus(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    revision: u64,
    identity: Option<Identity>,
    documents: BTreeMap<IssueRef, Kept>,
    cursors: BTreeMap<String, Cursor>,
    floors: Vec<Floor>,
}

impl MemoryCorpus {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        // Every change is made whole before the lock is given back.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn done<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, Result<T, Error>> {
    Box::pin(ready(Ok(value)))
}

impl Rows {
    fn apply(&mut self, batch: Batch) -> Result<(), Error> {
        check_batch(self.identity.as_ref(), &batch)?;
        self.revision += 1;
        self.identity = Some(batch.identity);
        for id in &batch.remove {
            self.documents.remove(id);
        }
        for kept in batch.put {
            self.documents.insert(kept.document.id(), kept);
        }
        if let Some(cursor) = batch.cursor {
            self.cursors.insert(cursor.repo.clone(), cursor);
        }
        Ok(())
    }

    fn clear(&mut self, repo: Option<&str>) {
        let revision = self.revision + 1;
        match repo.map(str::to_lowercase) {
            None => *self = Rows::default(),
            Some(repo) => {
                self.documents.retain(|id, _| id.repo != repo);
                self.cursors.remove(&repo);
            }
        }
        self.revision = revision;
    }
}

impl Corpus for MemoryCorpus {
    fn state(&self) -> BoxFuture<'_, Result<CorpusState, Error>> {
        let rows = self.rows();
        done(CorpusState {
            revision: rows.revision,
            identity: rows.identity.clone(),
            documents: rows.documents.len() as u64,
        })
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(ready(self.rows().apply(batch)))
    }

    fn page<'a>(
        &'a self,
        after: Option<&'a IssueRef>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Kept>, Error>> {
        let rows = self.rows();
        let later = rows
            .documents
            .iter()
            .filter(|(id, _)| after.is_none_or(|after| *id > after));
        done(
            later
                .take(limit.min(MAX_BATCH))
                .map(|(_, kept)| kept.clone())
                .collect(),
        )
    }

    fn get<'a>(&'a self, id: &'a IssueRef) -> BoxFuture<'a, Result<Option<Kept>, Error>> {
        done(self.rows().documents.get(id).cloned())
    }

    fn known<'a>(&'a self, repo: &'a str) -> BoxFuture<'a, Result<Vec<Known>, Error>> {
        let repo = repo.to_lowercase();
        let rows = self.rows();
        let own = rows.documents.iter().filter(|(id, _)| id.repo == repo);
        let known = own.map(|(id, kept)| Known {
            number: id.number,
            hash: kept.document.content_hash(),
        });
        done(known.collect())
    }

    fn cursors(&self) -> BoxFuture<'_, Result<Vec<Cursor>, Error>> {
        done(self.rows().cursors.values().cloned().collect())
    }

    fn clear<'a>(&'a self, repo: Option<&'a str>) -> BoxFuture<'a, Result<(), Error>> {
        self.rows().clear(repo);
        done(())
    }

    fn rebase(&self, identity: Identity) -> BoxFuture<'_, Result<(), Error>> {
        let mut rows = self.rows();
        rows.revision += 1;
        for kept in rows.documents.values_mut() {
            kept.vectors = Vectors::default();
        }
        rows.identity = Some(identity);
        done(())
    }

    fn floors(&self) -> BoxFuture<'_, Result<Vec<Floor>, Error>> {
        done(self.rows().floors.clone())
    }

    fn keep_floors(&self, floors: Vec<Floor>) -> BoxFuture<'_, Result<(), Error>> {
        self.rows().floors = floors;
        done(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_a_corpus() {
        for rule in crate::conformance::RULES {
            assert_eq!(rule.check(&MemoryCorpus::default()).await, Ok(()));
        }
    }
}
