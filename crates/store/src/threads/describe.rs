//! One thread's row, and what people say of it.

use super::row::{self, Stored};
use crate::{
    checkpoints::{ThreadDoc, new_thread},
    codec::Codec,
    database::{Database, Fault},
    durable::Durable,
    error::damaged,
    sql::{Statement, Tx, one},
};
use paraph_graph::{Error, ThreadRow};
use serde_json::{Map, Value};
use std::sync::Arc;

async fn describe(
    tx: &mut dyn Tx,
    codec: &Codec,
    name: &str,
    more: &Map<String, Value>,
    now_ms: u64,
) -> Result<Stored, Fault> {
    one(tx, new_thread(codec, name, now_ms, None)).await?;
    let gone = || damaged(format!("the row of thread `{name}`"), "it is not there");
    let mut found = row::hold(tx, codec, name).await?.ok_or_else(gone)?;
    let metadata = &mut found.row.metadata;
    for (key, value) in more {
        match value {
            Value::Null => metadata.remove(key),
            value => metadata.insert(key.clone(), value.clone()),
        };
    }
    found.row.updated_ms = now_ms;
    let touch = Statement::new(
        "UPDATE thread SET updated_ms = $2 WHERE id = $1",
        [found.id.into(), now_ms.into()],
    );
    let doc = ThreadDoc {
        metadata: metadata.clone(),
        state: found.row.values.clone(),
    };
    let save = doc.save(codec, name, found.id);
    tx.all(vec![touch, save]).await?;
    Ok(found)
}

impl<D: Database> Durable<D> {
    pub(super) async fn find_thread(&self, name: &str) -> Result<Option<ThreadRow>, Error> {
        let (codec, name) = (self.codec.clone(), Arc::<str>::from(name));
        let found = self.read(move |tx| {
            let (codec, name) = (codec.clone(), name.clone());
            Box::pin(async move { row::find(tx, &codec, &name).await })
        });
        let found = found.await?.into_iter().collect();
        Ok(self.told(found).await?.pop())
    }

    pub(super) async fn describe_thread(
        &self,
        name: &str,
        metadata: Map<String, Value>,
    ) -> Result<ThreadRow, Error> {
        let now_ms = self.now_ms().await?;
        let (codec, lane) = (self.codec.clone(), name);
        let asked = Arc::new((name.to_owned(), metadata));
        let found = self.write(lane, move |tx| {
            let (codec, asked) = (codec.clone(), asked.clone());
            Box::pin(async move { describe(tx, &codec, &asked.0, &asked.1, now_ms).await })
        });
        let found = found.await?;
        let row = found.row.clone();
        Ok(self.told(vec![found]).await?.pop().unwrap_or(row))
    }
}
