//! Rows of threads, and what is done with whole threads by name: the trait `Threads`.
//!
//! Called by the command line and by servers. Statuses, what is due and what is asked are written by
//! `checkpoints.rs` and `lease.rs` ([`Stands`], [`state`]) in the transactions of the run; here they are
//! read. No row of a state is read for it.

use crate::{
    codec::{Codec, Place},
    error::damaged,
    runs::{document, word, word_at},
    sql::{BadCell, Cell, Row, Statement},
};
use paraph_graph::{Error, Interrupt, Name, RunId, Standing, ThreadRow};
use serde_json::Value;

/// How a thread stands, for the columns `status`, `next`, `interrupts`, `interrupts_packed` and `sum` of its
/// row, in this order.
pub(crate) struct Stands(pub(crate) [Cell<'static>; 5]);

impl Stands {
    pub(crate) fn new(codec: &Codec, thread: &str, standing: &Standing) -> Self {
        // Lists of names and of questions are always JSON.
        let next = serde_json::to_string(&standing.next).unwrap_or_default();
        let interrupts = (!standing.interrupts.is_empty())
            .then(|| serde_json::to_string(&standing.interrupts).unwrap_or_default());
        let docs = [("interrupts", interrupts.as_deref().map(str::as_bytes))];
        let ([interrupts], sum) = codec.put(&place(thread), &[next.as_bytes()], docs);
        let [interrupts, packed] = interrupts.owned().cells();
        let status = word(standing.status).into();
        Stands([status, next.into(), interrupts, packed, sum.into()])
    }
}

/// Which of the two long documents of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Long {
    Metadata,
    State,
}

impl Long {
    fn name(self) -> &'static str {
        match self {
            Long::Metadata => "metadata",
            Long::State => "state",
        }
    }

    fn place(self, thread: &str) -> Place {
        Place::new("thread_doc").text(thread).text(self.name())
    }

    /// Writes the document, over the older one.
    pub(crate) fn save(self, codec: &Codec, thread: (i64, &str), json: &str) -> Statement<'static> {
        let (doc, sum) = codec.put_one(&self.place(thread.1), json.as_bytes());
        let [value, packed] = doc.owned().cells();
        Statement::new(
            "INSERT INTO thread_doc (thread, name, value, value_packed, sum) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (thread, name) DO UPDATE SET value = excluded.value, \
             value_packed = excluded.value_packed, sum = excluded.sum",
            [
                thread.0.into(),
                self.name().into(),
                value,
                packed,
                sum.into(),
            ],
        )
    }

    /// Reads the document from its columns `value`, `value_packed` and `sum`, beginning at this one.
    fn read<T: serde::de::DeserializeOwned>(
        self,
        codec: &Codec,
        thread: &str,
        row: &mut Row,
        at: usize,
    ) -> Result<Option<T>, String> {
        let Some(sum) = row.opt_int(at + 2).map_err(|e| e.to_string())? else {
            return Ok(None);
        };
        let json = codec.take_one(&self.place(thread), row.take(at), row.take(at + 1), sum);
        let read = json.and_then(|json| document(Some(json)));
        read.map_err(|why| format!("`{}`: {why}", self.name()))
    }
}

/// Writes what a thread's row repeats of the state.
pub(crate) fn state(codec: &Codec, thread: (i64, &str), values: &Value) -> Statement<'static> {
    Long::State.save(codec, thread, &values.to_string())
}

fn place(thread: &str) -> Place {
    Place::new("thread").text(thread)
}

/// The columns of a thread's row, from `thread t` with the head `s` and the documents `m` and `d`.
macro_rules! select {
    ($which:literal) => {
        concat!(
            "SELECT t.name, t.uuid, t.graph, t.status, t.holder, t.created_ms, t.updated_ms, s.head, \
             t.next, t.interrupts, t.interrupts_packed, t.sum, m.value, m.value_packed, m.sum, \
             d.value, d.value_packed, d.sum, t.owner, t.expires_ms, t.id FROM thread t \
             LEFT JOIN scope s ON s.thread = t.id AND s.namespace = '' \
             LEFT JOIN thread_doc m ON m.thread = t.id AND m.name = 'metadata' \
             LEFT JOIN thread_doc d ON d.thread = t.id AND d.name = 'state' ",
            $which
        )
    };
}
pub(crate) use select;

/// A thread's row as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// `holder` is whoever is written down, also if it is gone.
    pub(crate) row: ThreadRow,
    /// The row's number.
    pub(crate) id: i64,
    /// The process that has the lease, and until when.
    pub(crate) owner: Option<(String, u64)>,
}

/// Reads a row of [`select`].
///
/// # Errors
/// If it is damaged.
pub(crate) fn read(codec: &Codec, mut row: Row) -> Result<Stored, Error> {
    let name = row.text(0).unwrap_or("?").to_owned();
    let bad = |why: String| damaged(format!("the row of thread `{name}`"), why);
    let bad_cell = |e: BadCell| bad(e.to_string());
    row.text(0).map_err(bad_cell)?;
    let holder: Option<RunId> = row.opt_parsed(4, "a run").map_err(bad_cell)?;
    let owner = match (holder, row.opt_text(18).map_err(bad_cell)?) {
        (Some(_), Some(owner)) => Some((owner.to_owned(), row.unsigned(19).map_err(bad_cell)?)),
        _ => None,
    };
    let next_text = row.text(8).map_err(bad_cell)?.to_owned();
    let next: Vec<Name> =
        serde_json::from_str(&next_text).map_err(|e| bad(format!("`next`: {e}")))?;
    let docs = [("interrupts", row.take(9), row.take(10))];
    let sum = row.int(11).map_err(bad_cell)?;
    let [interrupts] = codec
        .take(&place(&name), &[next_text.as_bytes()], docs, sum)
        .map_err(bad)?;
    let interrupts: Option<Vec<Interrupt>> =
        document(interrupts).map_err(|e| bad(format!("`interrupts`: {e}")))?;
    let metadata = Long::Metadata
        .read(codec, &name, &mut row, 12)
        .map_err(bad)?;
    let values = Long::State.read(codec, &name, &mut row, 15).map_err(bad)?;
    let status = word_at(&row, 3).map_err(bad)?;
    Ok(Stored {
        id: row.int(20).map_err(bad_cell)?,
        owner,
        row: ThreadRow {
            uuid: row.parsed(1, "a UUID").map_err(bad_cell)?,
            graph: row.opt_text(2).map_err(bad_cell)?.map(str::to_owned),
            status: status.ok_or_else(|| bad("`status` is missing".to_owned()))?,
            holder,
            created_ms: row.unsigned(5).map_err(bad_cell)?,
            updated_ms: row.unsigned(6).map_err(bad_cell)?,
            metadata: metadata.unwrap_or_default(),
            head: row.opt_parsed(7, "a checkpoint").map_err(bad_cell)?,
            next,
            interrupts: interrupts.unwrap_or_default(),
            values,
            name,
        },
    })
}
