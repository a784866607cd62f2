//! What no reader of threads comes across: what the gateway keeps, the chains of its audit among it, documents of memory, the corpus, and what should
//! refer to something or be no smaller than it.
//!
//! Called by `store check`, which reads everything else through the traits that a run uses. Nothing here
//! changes anything.

use crate::{
    corpus,
    database::{Database, Fault},
    durable::Durable,
    error::damaged,
    gateway::{self, GatewayCounts},
    memory,
    sql::{BadCell, Row, Statement, Tx, one},
};
use futures::future::BoxFuture;
use paraph_graph::{CheckpointId, Error, Scope};

/// How many rows are in hand at a time.
pub(crate) const PAGE: u64 = 500;

/// Hands over every row of a query, a page at a time, in the order of two of its columns. Behind `$1` and `$2` the next
/// page begins, and it has `$3` rows.
pub(crate) async fn each_row(
    tx: &mut dyn Tx,
    sql: &'static str,
    (columns, what): ([usize; 2], &str),
    mut see: impl FnMut(Row) + Send,
) -> Result<(), Fault> {
    let mut at = [String::new(), String::new()];
    loop {
        let [first, second] = &at;
        let page = Statement::new(
            sql,
            [first.as_str().into(), second.as_str().into(), PAGE.into()],
        );
        let rows = one(tx, page).await?.rows;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        let bad = |e: BadCell| damaged(what, e.to_string());
        let [first, second] = columns.map(|column| last.text(column).map(str::to_owned));
        at = [first.map_err(bad)?, second.map_err(bad)?];
        rows.into_iter().for_each(&mut see);
    }
}

/// A store that can look for damage.
pub trait Verify: Send + Sync {
    /// What is wrong beside threads, runs, checkpoints and events themselves: a sentence for each row.
    ///
    /// # Errors
    /// [`Error::Store`] if the database does not answer.
    fn problems(&self) -> BoxFuture<'_, Result<Vec<String>, Error>>;

    /// The checkpoints of a scope, by their names alone: also if one of their rows is damaged. Oldest first.
    ///
    /// # Errors
    /// As [`Verify::problems`].
    fn checkpoints<'a>(
        &'a self,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Vec<CheckpointId>, Error>>;

    /// The places of a thread's log, by their numbers alone, in order.
    ///
    /// # Errors
    /// As [`Verify::problems`].
    fn places<'a>(&'a self, thread: &'a str) -> BoxFuture<'a, Result<Vec<u64>, Error>>;

    /// How much is kept of the gateway, for all threads.
    ///
    /// # Errors
    /// As [`Verify::problems`].
    fn gateway_counts(&self) -> BoxFuture<'_, Result<GatewayCounts, Error>>;
}

/// Heads that name nothing, or do not name what is there.
const HEADS: &str = "SELECT t.name, s.namespace, s.head FROM scope s JOIN thread t ON t.id = s.thread \
     WHERE (s.head IS NOT NULL AND NOT EXISTS \
     (SELECT 1 FROM checkpoint c WHERE c.scope = s.id AND c.id = s.head)) \
     OR (s.head IS NULL AND EXISTS (SELECT 1 FROM checkpoint c WHERE c.scope = s.id)) \
     ORDER BY t.name, s.namespace";

/// Threads whose number for the log is below what stands in it.
const SEQS: &str = "SELECT t.name, t.seq, e.seq FROM thread t JOIN \
     (SELECT thread, MAX(seq) AS seq FROM event GROUP BY thread) e ON e.thread = t.id \
     WHERE e.seq > t.seq ORDER BY t.name";

/// The same for pieces and notes.
const COUNTERS: &str = "SELECT t.name, t.counter, n.n FROM thread t JOIN \
     (SELECT s.thread AS thread, MAX(x.n) AS n FROM scope s JOIN \
     (SELECT scope, n FROM piece UNION ALL SELECT scope, n FROM note) x ON x.scope = s.id \
     GROUP BY s.thread) n ON n.thread = t.id WHERE n.n > t.counter ORDER BY t.name";

fn head(row: &Row) -> Result<String, BadCell> {
    let scope = match row.text(1)? {
        "" => format!("thread `{}`", row.text(0)?),
        namespace => format!("thread `{}`, namespace `{namespace}`", row.text(0)?),
    };
    Ok(match row.opt_text(2)? {
        Some(head) => {
            format!("the head of {scope}: checkpoint {head} is not there")
        }
        None => format!("the head of {scope}: it names none, and checkpoints are there"),
    })
}

fn below(what: &str, row: &Row) -> Result<String, BadCell> {
    Ok(format!(
        "the row of thread `{}`: its newest {what} is {} there, and one has {}",
        row.text(0)?,
        row.int(1)?,
        row.int(2)?
    ))
}

async fn references(tx: &mut dyn Tx) -> Result<Vec<String>, Fault> {
    let statements = [HEADS, SEQS, COUNTERS].map(|sql| Statement::new(sql, []));
    let answers = tx.all(statements.into()).await?;
    let mut problems = Vec::new();
    for (kind, answer) in answers.into_iter().enumerate() {
        for row in &answer.rows {
            let said = match kind {
                0 => head(row),
                1 => below("number of the log", row),
                _ => below("number of pieces and notes", row),
            };
            problems.push(said.unwrap_or_else(|bad| format!("the row of a thread: {bad}")));
        }
    }
    Ok(problems)
}

impl<D: Database> Verify for Durable<D> {
    fn problems(&self) -> BoxFuture<'_, Result<Vec<String>, Error>> {
        let codec = self.codec.clone();
        Box::pin(self.read(move |tx| {
            let codec = codec.clone();
            Box::pin(async move {
                let mut problems = references(tx).await?;
                gateway::verify(tx, &codec, &mut problems).await?;
                memory::verify(tx, &codec, &mut problems).await?;
                corpus::verify(tx, &codec, &mut problems).await?;
                Ok(problems)
            })
        }))
    }

    fn checkpoints<'a>(
        &'a self,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Vec<CheckpointId>, Error>> {
        let scope = scope.clone();
        Box::pin(self.read(move |tx| {
            let scope = scope.clone();
            Box::pin(async move {
                let list = Statement::new(
                    "SELECT c.id FROM checkpoint c JOIN scope s ON s.id = c.scope \
                     JOIN thread t ON t.id = s.thread WHERE t.name = $1 AND s.namespace = $2 ORDER BY c.id",
                    [(&*scope.thread).into(), (&*scope.namespace).into()],
                );
                let bad = |e: BadCell| damaged(format!("a checkpoint of `{scope}`"), e.to_string());
                let rows = one(tx, list).await?.rows;
                let ids = rows.iter().map(|row| row.parsed(0, "a checkpoint"));
                Ok(ids.collect::<Result<_, _>>().map_err(bad)?)
            })
        }))
    }

    fn places<'a>(&'a self, thread: &'a str) -> BoxFuture<'a, Result<Vec<u64>, Error>> {
        let thread = thread.to_owned();
        Box::pin(self.read(move |tx| {
            let thread = thread.clone();
            Box::pin(async move {
                let list = Statement::new(
                    "SELECT e.seq FROM event e JOIN thread t ON t.id = e.thread WHERE t.name = $1 \
                     ORDER BY e.seq",
                    [thread.as_str().into()],
                );
                let bad = |e: BadCell| damaged(format!("the log of `{thread}`"), e.to_string());
                let rows = one(tx, list).await?.rows;
                let places = rows.iter().map(|row| row.unsigned(0));
                Ok(places.collect::<Result<_, _>>().map_err(bad)?)
            })
        }))
    }

    fn gateway_counts(&self) -> BoxFuture<'_, Result<GatewayCounts, Error>> {
        Box::pin(self.read(|tx| Box::pin(gateway::count(tx))))
    }
}
