//! What is long and seldom written of a thread: what people say of it, and its state when it came to rest.

use crate::{
    codec::{Codec, Place},
    error::damaged,
    sql::{Row, Statement},
};
use paraph_graph::Error;
use serde_json::{Map, Value};

/// A row of table `thread_doc`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ThreadDoc {
    pub(crate) metadata: Map<String, Value>,
    pub(crate) state: Option<Value>,
}

impl ThreadDoc {
    pub(crate) fn find(thread: &str) -> Statement<'_> {
        Statement::new(
            "SELECT d.metadata, d.metadata_packed, d.state, d.state_packed, d.sum \
             FROM thread t JOIN thread_doc d ON d.thread = t.id WHERE t.name = $1",
            [thread.into()],
        )
    }

    /// From five columns of a row, the first of which is `at`. One that is not there says nothing.
    pub(crate) fn read(
        codec: &Codec,
        thread: &str,
        row: Option<&mut Row>,
        at: usize,
    ) -> Result<Self, Error> {
        let bad = |why: String| damaged(format!("what is said of thread `{thread}`"), why);
        let Some(row) = row else {
            return Ok(ThreadDoc::default());
        };
        // Its sum is never null, so it is an outer join that found nothing.
        let sum = row.opt_int(at + 4).map_err(|e| bad(e.to_string()))?;
        let Some(sum) = sum else {
            return Ok(ThreadDoc::default());
        };
        let docs = [
            ("metadata", row.take(at), row.take(at + 1)),
            ("state", row.take(at + 2), row.take(at + 3)),
        ];
        let place = Place::new("thread_doc").text(thread);
        let [metadata, state] = codec.take(&place, &[], docs, sum).map_err(bad)?;
        let mut doc = ThreadDoc::default();
        if let Some(json) = metadata {
            let read = serde_json::from_slice(&json);
            doc.metadata = read.map_err(|e| bad(format!("`metadata`: {e}")))?;
        }
        if let Some(json) = state {
            let read = serde_json::from_slice(&json);
            doc.state = Some(read.map_err(|e| bad(format!("`state`: {e}")))?);
        }
        Ok(doc)
    }

    pub(crate) fn save(&self, codec: &Codec, thread: &str, row: i64) -> Statement<'static> {
        // Values are always JSON.
        let metadata = (!self.metadata.is_empty())
            .then(|| serde_json::to_vec(&self.metadata).unwrap_or_default());
        let state = self.state.as_ref();
        let state = state.map(|state| serde_json::to_vec(state).unwrap_or_default());
        let docs = [
            ("metadata", metadata.as_deref()),
            ("state", state.as_deref()),
        ];
        let (docs, sum) = codec.put(&Place::new("thread_doc").text(thread), &[], docs);
        let [metadata, state] = docs.map(|doc| doc.owned().cells());
        let [metadata, metadata_packed] = metadata;
        let [state, state_packed] = state;
        Statement::new(
            "INSERT INTO thread_doc (thread, metadata, metadata_packed, state, state_packed, sum) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (thread) DO UPDATE SET \
             metadata = excluded.metadata, metadata_packed = excluded.metadata_packed, \
             state = excluded.state, state_packed = excluded.state_packed, sum = excluded.sum",
            [
                row.into(),
                metadata,
                metadata_packed,
                state,
                state_packed,
                sum.into(),
            ],
        )
    }
}
