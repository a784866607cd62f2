//! Which subgraphs of a thread have checkpoints: for whoever reads a whole thread.
//!
//! Called by `threads`.

use crate::{
    database::Database,
    durable::Durable,
    error::damaged,
    sql::{BadCell, Statement, one},
};
use paraph_graph::Error;
use std::sync::Arc;

const LIST: &str = "SELECT s.namespace FROM thread t JOIN scope s ON s.thread = t.id \
     WHERE t.name = $1 AND EXISTS (SELECT 1 FROM checkpoint c WHERE c.scope = s.id) \
     ORDER BY s.namespace";

impl<D: Database> Durable<D> {
    pub(super) async fn namespaces_of(&self, name: &str) -> Result<Vec<String>, Error> {
        let name: Arc<str> = name.into();
        let found = self.read(move |tx| {
            let name = name.clone();
            Box::pin(async move {
                let list = Statement::new(LIST, [(&*name).into()]);
                let rows = one(tx, list).await?.rows;
                let names = rows.iter().map(|row| Ok(row.text(0)?.to_owned()));
                let names: Result<Vec<_>, BadCell> = names.collect();
                Ok(names
                    .map_err(|e| damaged(format!("a scope of thread `{name}`"), e.to_string()))?)
            })
        });
        found.await
    }
}
