//! What is done with whole threads, and what their rows say: the trait `Threads`.
//!
//! Called by the command line and by servers. Each method has its rules in a module of its own; what runs
//! write to these rows is in `checkpoints` and `lease`. No state is read for a row.

mod adopt;
mod delete;
mod describe;
mod list;
mod living;
mod namespaces;
mod row;

pub(crate) use delete::is_settled;
pub(crate) use living::{Living, Owner, dispossess, free, is_free, is_there};
pub(crate) use row::{Stored, find, hold};

use crate::{database::Database, durable::Durable};
use futures::future::BoxFuture;
use paraph_graph::{
    CancelReason, Error, Keep, NewRun, Pruned, RunId, RunQuery, RunRow, ThreadQuery, ThreadRow,
    ThreadStats, Threads,
};
use serde_json::{Map, Value};

impl<D: Database> Threads for Durable<D> {
    fn threads<'a>(
        &'a self,
        query: &'a ThreadQuery,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, Error>> {
        Box::pin(self.list(query))
    }

    fn thread<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<ThreadRow>, Error>> {
        Box::pin(self.find_thread(name))
    }

    fn describe<'a>(
        &'a self,
        name: &'a str,
        metadata: Map<String, Value>,
    ) -> BoxFuture<'a, Result<ThreadRow, Error>> {
        Box::pin(self.describe_thread(name, metadata))
    }

    fn namespaces<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        Box::pin(self.namespaces_of(name))
    }

    fn copy<'a>(&'a self, from: &'a str, to: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.copy_thread(from, to))
    }

    fn delete<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(self.delete_thread(name))
    }

    fn prune<'a>(&'a self, name: &'a str, keep: Keep) -> BoxFuture<'a, Result<Pruned, Error>> {
        Box::pin(self.prune_thread(name, keep))
    }

    fn prunable<'a>(&'a self, name: &'a str, keep: Keep) -> BoxFuture<'a, Result<Pruned, Error>> {
        Box::pin(self.prunable_of(name, keep))
    }

    fn adopt<'a>(
        &'a self,
        name: &'a str,
        created_ms: u64,
        runs: Vec<RunRow>,
    ) -> BoxFuture<'a, Result<Vec<RunId>, Error>> {
        Box::pin(self.adopt_runs(name, created_ms, runs))
    }

    fn delete_runs<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<Pruned, Error>> {
        Box::pin(self.remove_runs(runs))
    }

    fn submit<'a>(&'a self, run: NewRun) -> BoxFuture<'a, Result<RunRow, Error>> {
        Box::pin(self.submit_run(run))
    }

    fn runs<'a>(&'a self, query: &'a RunQuery) -> BoxFuture<'a, Result<Vec<RunRow>, Error>> {
        Box::pin(self.list_runs(query))
    }

    fn run<'a>(&'a self, run: RunId) -> BoxFuture<'a, Result<Option<RunRow>, Error>> {
        Box::pin(self.find_run(run))
    }

    fn cancel<'a>(
        &'a self,
        run: RunId,
        reason: CancelReason,
    ) -> BoxFuture<'a, Result<RunRow, Error>> {
        Box::pin(self.cancel_run(run, reason))
    }

    fn stats<'a>(
        &'a self,
        thread: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<ThreadStats>, Error>> {
        Box::pin(self.stats_of(thread))
    }
}
