//! The corpus of issues: documents and vectors by repository and number, cursors, floors, and what it was made with.
//!
//! Called through [`Corpus`] by whoever reads issues in, and by retrieval, which does all ranking. Rows only are kept
//! here, sealed like all others: no index of their words is, for that would have the words in it. Every change is one
//! transaction, in one order, and takes the next revision.

mod rows;

use crate::{
    codec::Codec,
    database::{Database, Fault, Lock, LockOn},
    durable::Durable,
    error::damaged,
    sql::{BadCell, Cell, Statement, Tx, one},
};
use futures::{FutureExt, future::BoxFuture};
use paraph_retrieval::{
    Batch, Corpus, CorpusState, Cursor, Error, Floor, Identity, IssueRef, Kept, Known, MAX_BATCH,
    check_batch,
};
use std::sync::Arc;

/// Changes of the corpus are in one order, over all processes.
const LANE: &str = "corpus";

const STATE: &str =
    "SELECT revision, identity, (SELECT COUNT(*) FROM corpus_document) FROM corpus WHERE one = 1";

/// The next revision, with what the corpus was made with from then on.
fn revised(identity: Option<&Identity>) -> Result<Statement<'static>, paraph_graph::Error> {
    let identity = identity.map(serde_json::to_string).transpose();
    let identity = identity.map_err(paraph_graph::Error::store)?;
    Ok(Statement::new(
        "INSERT INTO corpus (one, revision, identity) VALUES (1, 1, $1) \
         ON CONFLICT (one) DO UPDATE SET revision = corpus.revision + 1, identity = excluded.identity",
        [identity.into()],
    ))
}

async fn state(tx: &mut dyn Tx) -> Result<CorpusState, Fault> {
    let Some(row) = one(tx, Statement::new(STATE, [])).await?.first() else {
        return Ok(CorpusState::default());
    };
    let bad = |why: String| damaged("the row of table `corpus`", why);
    let cell = |e: BadCell| bad(e.to_string());
    let identity = row
        .opt_text(1)
        .map_err(cell)?
        .map(serde_json::from_str)
        .transpose();
    Ok(CorpusState {
        revision: row.unsigned(0).map_err(cell)?,
        identity: identity.map_err(|e| bad(e.to_string()))?,
        documents: row.unsigned(2).map_err(cell)?,
    })
}

async fn apply(tx: &mut dyn Tx, codec: &Codec, batch: &Batch) -> Result<Result<(), Error>, Fault> {
    let state = state(tx).await?;
    if let Err(refused) = check_batch(state.identity.as_ref(), batch) {
        return Ok(Err(refused));
    }
    let mut statements = vec![revised(Some(&batch.identity))?];
    for id in &batch.remove {
        statements.extend(rows::remove(id));
    }
    for kept in &batch.put {
        statements.extend(rows::put(codec, kept)?);
    }
    if let Some(cursor) = &batch.cursor {
        statements.push(rows::put_cursor(codec, cursor)?);
    }
    tx.later(statements).await?;
    Ok(Ok(()))
}

async fn clear(tx: &mut dyn Tx, repo: Option<&str>) -> Result<(), Fault> {
    let Some(repo) = repo else {
        let tables = [
            "DELETE FROM corpus_document",
            "DELETE FROM corpus_vectors",
            "DELETE FROM corpus_cursor",
            "DELETE FROM corpus_floors",
        ];
        let mut statements = vec![revised(None)?];
        statements.extend(tables.map(|sql| Statement::new(sql, [])));
        return Ok(tx.later(statements).await?);
    };
    let state = state(tx).await?;
    let tables = [
        "DELETE FROM corpus_document WHERE repo = $1",
        "DELETE FROM corpus_vectors WHERE repo = $1",
        "DELETE FROM corpus_cursor WHERE repo = $1",
    ];
    let mut statements = vec![revised(state.identity.as_ref())?];
    statements.extend(tables.map(|sql| Statement::new(sql, [Cell::from(repo)])));
    Ok(tx.later(statements).await?)
}

/// Reads all of it; says of each row what is wrong with it.
pub(crate) async fn verify(
    tx: &mut dyn Tx,
    codec: &Codec,
    problems: &mut Vec<String>,
) -> Result<(), Fault> {
    if let Err(fault) = state(tx).await {
        problems.push(fault.to_string());
    }
    let mut after = None;
    loop {
        let answer = one(tx, rows::page(after.as_ref(), PAGE)).await?;
        let Some(last) = answer.rows.last() else {
            break;
        };
        after = Some(rows::id(last)?);
        for row in answer.rows {
            if let Err(error) = rows::read(codec, row) {
                problems.push(error.to_string());
            }
        }
    }
    for row in one(tx, rows::cursors()).await?.rows {
        if let Err(error) = rows::read_cursor(codec, row) {
            problems.push(error.to_string());
        }
    }
    for row in one(tx, rows::floors()).await?.rows {
        if let Err(error) = rows::read_floors(codec, row) {
            problems.push(error.to_string());
        }
    }
    Ok(())
}

/// How many documents are in hand at a time while they are verified.
const PAGE: usize = 200;

impl<D: Database> Durable<D> {
    /// A change of the corpus, alone among those of all processes.
    fn change<T, W>(&self, work: W) -> BoxFuture<'static, Result<T, Error>>
    where
        T: Send + 'static,
        W: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Fault>> + Send + Sync + 'static,
    {
        let locks = vec![Lock::alone(LockOn::Lane, LANE)];
        let done = self.write_locked(LANE, locks, work);
        done.map(|done| done.map_err(Error::store)).boxed()
    }

    /// A read of one statement; what `work` makes of its rows is the result.
    fn rows_of<T: Send + 'static>(
        &self,
        statement: Statement<'static>,
        work: fn(&Codec, crate::sql::Row) -> Result<T, paraph_graph::Error>,
    ) -> BoxFuture<'static, Result<Vec<T>, Error>> {
        let codec = self.codec.clone();
        let done = self.read(move |tx| {
            let (codec, statement) = (codec.clone(), statement.clone());
            Box::pin(async move {
                let answer = one(tx, statement).await?;
                let rows = answer.rows.into_iter().map(|row| work(&codec, row));
                Ok(rows.collect::<Result<Vec<T>, _>>()?)
            })
        });
        done.map(|done| done.map_err(Error::store)).boxed()
    }
}

impl<D: Database> Corpus for Durable<D> {
    fn state(&self) -> BoxFuture<'_, Result<CorpusState, Error>> {
        let done = self.read(|tx| Box::pin(state(tx)));
        done.map(|done| done.map_err(Error::store)).boxed()
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<(), Error>> {
        let (codec, batch) = (self.codec.clone(), Arc::new(batch));
        let done = self.change(move |tx| {
            let (codec, batch) = (codec.clone(), batch.clone());
            Box::pin(async move { apply(tx, &codec, &batch).await })
        });
        done.map(Result::flatten).boxed()
    }

    fn page<'a>(
        &'a self,
        after: Option<&'a IssueRef>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Kept>, Error>> {
        self.rows_of(rows::page(after, limit.min(MAX_BATCH)), rows::read)
    }

    fn get<'a>(&'a self, id: &'a IssueRef) -> BoxFuture<'a, Result<Option<Kept>, Error>> {
        let found = self.rows_of(rows::get(id), rows::read);
        found.map(|found| Ok(found?.pop())).boxed()
    }

    fn known<'a>(&'a self, repo: &'a str) -> BoxFuture<'a, Result<Vec<Known>, Error>> {
        self.rows_of(rows::known(repo), |_, row| rows::read_known(&row))
    }

    fn cursors(&self) -> BoxFuture<'_, Result<Vec<Cursor>, Error>> {
        self.rows_of(rows::cursors(), rows::read_cursor)
    }

    fn clear<'a>(&'a self, repo: Option<&'a str>) -> BoxFuture<'a, Result<(), Error>> {
        let repo: Option<Arc<str>> = repo.map(|repo| repo.to_lowercase().into());
        self.change(move |tx| {
            let repo = repo.clone();
            Box::pin(async move { clear(tx, repo.as_deref()).await })
        })
    }

    fn rebase(&self, identity: Identity) -> BoxFuture<'_, Result<(), Error>> {
        let identity = Arc::new(identity);
        self.change(move |tx| {
            let identity = identity.clone();
            Box::pin(async move {
                let vectors = Statement::new("DELETE FROM corpus_vectors", []);
                Ok(tx.later(vec![revised(Some(&identity))?, vectors]).await?)
            })
        })
    }

    fn floors(&self) -> BoxFuture<'_, Result<Vec<Floor>, Error>> {
        let found = self.rows_of(rows::floors(), rows::read_floors);
        found
            .map(|found| Ok(found?.pop().unwrap_or_default()))
            .boxed()
    }

    fn keep_floors(&self, floors: Vec<Floor>) -> BoxFuture<'_, Result<(), Error>> {
        let (codec, floors) = (self.codec.clone(), Arc::new(floors));
        self.change(move |tx| {
            let (codec, floors) = (codec.clone(), floors.clone());
            Box::pin(async move { Ok(tx.later(vec![rows::put_floors(&codec, &floors)?]).await?) })
        })
    }
}
