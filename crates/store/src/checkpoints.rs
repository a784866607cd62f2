//! Saving and reading checkpoints: the rules of [`Checkpoints`], over either database.
//!
//! Called by the engine. What a channel, a machine or a note means is the engine's business.

mod doc;
pub(crate) mod read;
pub(crate) mod rows;
mod spread;
mod standing;
mod taken;
mod write;

use crate::{database::Database, durable::Durable};
use futures::future::BoxFuture;
use paraph_graph::{
    CheckpointId, Checkpoints, Claim, Entry, Error, EventLog, HistoryQuery, Lease, Loaded, Note,
    Notes, Put, RunEnd, Scope, note_key_fits,
};
use std::sync::Arc;

pub(crate) use doc::ThreadDoc;
pub(crate) use standing::{Touch, due_read, new_thread, status_of};
pub(crate) use taken::{Taken, refused};
use write::Ready;
pub(crate) use write::{values, values_find};

impl<D: Database> Checkpoints for Durable<D> {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> BoxFuture<'a, Result<Lease, Error>> {
        Box::pin(self.take(thread, claim))
    }

    fn finish<'a>(&'a self, thread: &'a str, end: RunEnd) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.give_back(thread, end))
    }

    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> BoxFuture<'a, Result<(), Error>> {
        if let Err(refused) = keys_fit(&put.notes) {
            return Box::pin(std::future::ready(Err(refused)));
        }
        let (codec, place) = (self.codec.clone(), scope.clone());
        let logs = !put.events.is_empty();
        let put = Arc::new(Ready::put(put));
        // Queued here and now: puts and notes take effect in the order in which they were called.
        let done = self.write(&scope.thread, move |tx| {
            let (codec, scope, put) = (codec.clone(), place.clone(), put.clone());
            Box::pin(async move { write::put(tx, &codec, &scope, &put).await })
        });
        Box::pin(self.heard(&scope.thread, logs, done))
    }

    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> BoxFuture<'a, Result<(), Error>> {
        if let Err(refused) = keys_fit(&notes.notes) {
            return Box::pin(std::future::ready(Err(refused)));
        }
        let (codec, place) = (self.codec.clone(), scope.clone());
        let logs = !notes.events.is_empty();
        let notes = Arc::new(Ready::notes(notes));
        let done = self.write(&scope.thread, move |tx| {
            let (codec, scope, notes) = (codec.clone(), place.clone(), notes.clone());
            Box::pin(async move { write::note(tx, &codec, &scope, &notes).await })
        });
        Box::pin(self.heard(&scope.thread, logs, done))
    }

    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, Error>> {
        let (codec, scope) = (self.codec.clone(), scope.clone());
        self.read(move |tx| {
            let (codec, scope) = (codec.clone(), scope.clone());
            Box::pin(async move { read::load(tx, &codec, &scope, at).await })
        })
    }

    fn history<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>> {
        let (codec, asked) = (self.codec.clone(), Arc::new((scope.clone(), query.clone())));
        self.read(move |tx| {
            let (codec, asked) = (codec.clone(), asked.clone());
            Box::pin(
                async move { read::select(tx, &codec, (&asked.0, &asked.1), read::entry).await },
            )
        })
    }

    fn views<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Loaded>, Error>> {
        let (codec, asked) = (self.codec.clone(), Arc::new((scope.clone(), query.clone())));
        self.read(move |tx| {
            let (codec, asked) = (codec.clone(), asked.clone());
            Box::pin(async move {
                let rows = read::select(tx, &codec, (&asked.0, &asked.1), |row| row).await?;
                read::with_states(tx, &codec, &asked.0, rows).await
            })
        })
    }

    fn event_log(&self) -> Option<&dyn EventLog> {
        Some(self)
    }

    fn keeps_events(&self) -> bool {
        true
    }
}

/// Whether all of them have keys that an index takes.
fn keys_fit(notes: &[Note]) -> Result<(), Error> {
    notes.iter().try_for_each(|note| note_key_fits(&note.key))
}

impl<D: Database> Durable<D> {
    /// Waits for a write, and then tells those who wait for the thread's log.
    async fn heard(
        &self,
        thread: &str,
        logs: bool,
        done: BoxFuture<'static, Result<(), Error>>,
    ) -> Result<(), Error> {
        done.await?;
        if logs {
            self.growth.grew(thread);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
