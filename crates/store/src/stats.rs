//! How much is stored, per thread and per channel.
//!
//! Called by `threads`. Counted by the database: no document is read.

use crate::{
    database::{Database, Fault},
    durable::Durable,
    error::damaged,
    sql::{BadCell, Row, Statement, Tx},
};
use paraph_graph::{Error, ThreadStats};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// What of a thread a row of a count is about.
#[derive(Clone, Copy)]
enum Of {
    Checkpoints,
    Notes,
    Events,
    /// With the name of a channel.
    Pieces,
    /// The rows of the thread itself and of its runs.
    Rest,
}

/// Name of the thread, how many, how many bytes; of one thread (`$1`) or of all (null).
const COUNTS: [(Of, &str); 5] = [
    (
        Of::Checkpoints,
        "SELECT t.name, COUNT(*), CAST(SUM(COALESCE(octet_length(c.metadata), 0) \
         + COALESCE(octet_length(c.metadata_packed), 0) + COALESCE(octet_length(c.machine), 0) \
         + COALESCE(octet_length(c.machine_packed), 0) + octet_length(c.channels)) AS BIGINT) \
         FROM thread t JOIN scope s ON s.thread = t.id JOIN checkpoint c ON c.scope = s.id \
         WHERE CAST($1 AS TEXT) IS NULL OR t.name = $1 GROUP BY t.name",
    ),
    (
        Of::Notes,
        "SELECT t.name, COUNT(*), CAST(SUM(COALESCE(octet_length(n.value), 0) \
         + COALESCE(octet_length(n.value_packed), 0)) AS BIGINT) \
         FROM thread t JOIN scope s ON s.thread = t.id JOIN note n ON n.scope = s.id \
         WHERE CAST($1 AS TEXT) IS NULL OR t.name = $1 GROUP BY t.name",
    ),
    (
        Of::Events,
        "SELECT t.name, COUNT(*), CAST(SUM(COALESCE(octet_length(e.value), 0) \
         + COALESCE(octet_length(e.value_packed), 0) + COALESCE(octet_length(e.pieces), 0)) AS BIGINT) \
         FROM thread t JOIN event e ON e.thread = t.id \
         WHERE CAST($1 AS TEXT) IS NULL OR t.name = $1 GROUP BY t.name",
    ),
    (
        Of::Pieces,
        "SELECT t.name, COUNT(*), CAST(SUM(COALESCE(octet_length(p.value), 0) \
         + COALESCE(octet_length(p.value_packed), 0)) AS BIGINT), p.channel \
         FROM thread t JOIN scope s ON s.thread = t.id JOIN piece p ON p.scope = s.id \
         WHERE CAST($1 AS TEXT) IS NULL OR t.name = $1 GROUP BY t.name, p.channel",
    ),
    (
        Of::Rest,
        "SELECT t.name, COUNT(*), CAST(SUM(octet_length(t.next) + COALESCE(octet_length(t.interrupts), 0) \
         + COALESCE(octet_length(t.interrupts_packed), 0) + COALESCE(octet_length(d.metadata), 0) \
         + COALESCE(octet_length(d.metadata_packed), 0) + COALESCE(octet_length(d.state), 0) \
         + COALESCE(octet_length(d.state_packed), 0)) AS BIGINT) \
         FROM thread t LEFT JOIN thread_doc d ON d.thread = t.id \
         WHERE CAST($1 AS TEXT) IS NULL OR t.name = $1 GROUP BY t.name",
    ),
];

#[derive(Default)]
struct Counted {
    stats: ThreadStats,
    channels: BTreeMap<String, u64>,
}

impl Counted {
    fn add(&mut self, of: Of, row: &Row) -> Result<(), BadCell> {
        let (n, bytes) = (row.unsigned(1)?, row.unsigned(2)?);
        self.stats.bytes += bytes;
        match of {
            Of::Checkpoints => self.stats.checkpoints = n,
            Of::Notes => self.stats.notes = n,
            Of::Events => self.stats.events = n,
            Of::Pieces => {
                self.channels.insert(row.text(3)?.to_owned(), bytes);
            }
            Of::Rest => {}
        }
        Ok(())
    }

    fn end(self, thread: String) -> ThreadStats {
        let mut channels: Vec<_> = self.channels.into_iter().collect();
        channels.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        ThreadStats {
            thread,
            channels,
            ..self.stats
        }
    }
}

async fn count(tx: &mut dyn Tx, thread: Option<&str>) -> Result<Vec<ThreadStats>, Fault> {
    let statements = COUNTS.map(|(_, sql)| Statement::new(sql, [thread.into()]));
    let answers = tx.all(statements.into()).await?;
    let mut all: HashMap<String, Counted> = HashMap::new();
    for ((of, _), answer) in COUNTS.into_iter().zip(answers) {
        for row in answer.rows {
            let bad = |e: BadCell| damaged("what was counted of a thread", e.to_string());
            let name = row.text(0).map_err(bad)?;
            let counted = all.entry(name.to_owned()).or_default();
            counted.add(of, &row).map_err(bad)?;
        }
    }
    let mut all: Vec<_> = all
        .into_iter()
        .map(|(name, counted)| counted.end(name))
        .collect();
    all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.thread.cmp(&b.thread)));
    Ok(all)
}

impl<D: Database> Durable<D> {
    pub(crate) async fn stats_of(&self, thread: Option<&str>) -> Result<Vec<ThreadStats>, Error> {
        let thread: Option<Arc<str>> = thread.map(Into::into);
        self.read(move |tx| {
            let thread = thread.clone();
            Box::pin(async move { count(tx, thread.as_deref()).await })
        })
        .await
    }
}
