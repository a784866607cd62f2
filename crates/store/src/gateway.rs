//! The gateway's records and counters: one write with conditions, two reads.
//!
//! Called by the gateway's sessions. What may be written is decided there; here the guards are looked at
//! and the change is made in one transaction. The records go with their thread: `threads.rs` removes them
//! by [`runs_of`].

use crate::{
    codec::{Codec, Place},
    database::{Database, Fault},
    durable::Durable,
    error::damaged,
    sql::{Answer, BadCell, Cell, Row, Statement, Tx, next, one},
    verify::PAGE,
};
use futures::{FutureExt, future::BoxFuture};
use paraph_gateway::{Add, CallRecord, Change, Guard, RunRef, Store, StoreError, StoreFuture};
use std::{collections::BTreeMap, sync::Arc};

/// The counter whose row stands for the run while a change is made; nobody is shown it.
const LOCK: &str = "\u{2}";

/// A run as one text.
fn name(run: &RunRef) -> String {
    let parts = [&run.thread, &run.run, &run.tenant, &run.agent];
    // A list of texts is always JSON.
    serde_json::to_string(&parts).unwrap_or_default()
}

/// The texts of all runs of a thread, or of one of them: from the first on, and before the second.
pub(crate) fn runs_of(thread: &str, run: Option<&str>) -> (String, String) {
    let list = match run {
        None => serde_json::to_string(&[thread]),
        Some(run) => serde_json::to_string(&[thread, run]),
    };
    let list = list.unwrap_or_default();
    let head = list.strip_suffix(']').unwrap_or(&list);
    // After the last part comes a comma, and a minus sign is the next character after a comma.
    (format!("{head},"), format!("{head}-"))
}

/// Removes the records and counters of [`runs_of`] a thread.
pub(crate) fn forget(thread: &str, run: Option<&str>) -> [Statement<'static>; 2] {
    let (from, to) = runs_of(thread, run);
    let within = |sql| {
        let bounds: [Cell<'static>; 2] = [from.clone().into(), to.clone().into()];
        Statement::new(sql, bounds)
    };
    [
        within("DELETE FROM gateway_call WHERE run >= $1 AND run < $2"),
        within("DELETE FROM gateway_counter WHERE run >= $1 AND run < $2"),
    ]
}

fn place(run: &str, key: &str, seq: u64) -> Place {
    Place::new("gateway_call").text(run).text(key).int(seq)
}

/// `key, seq, value, value_packed, sum`.
fn read(codec: &Codec, run: &str, row: Row) -> Result<CallRecord, String> {
    let bad = |why: String| format!("a record of run {run} cannot be read: {why}");
    let cell = |e: BadCell| bad(e.to_string());
    let place = place(
        run,
        row.text(0).map_err(cell)?,
        row.unsigned(1).map_err(cell)?,
    );
    let sum = row.int(4).map_err(cell)?;
    let mut cells = row.0.into_iter().skip(2);
    let (text, packed) = (cells.next(), cells.next());
    let json = codec
        .take_one(
            &place,
            text.unwrap_or_default(),
            packed.unwrap_or_default(),
            sum,
        )
        .map_err(bad)?;
    serde_json::from_slice(&json).map_err(|e| bad(e.to_string()))
}

/// Reads the records of all runs; says of each what is wrong with it.
pub(crate) async fn verify(
    tx: &mut dyn Tx,
    codec: &Codec,
    problems: &mut Vec<String>,
) -> Result<(), Fault> {
    let mut at = (String::new(), String::new());
    loop {
        let page = Statement::new(
            "SELECT key, seq, value, value_packed, sum, run FROM gateway_call \
             WHERE (run, key) > ($1, $2) ORDER BY run, key LIMIT $3",
            [at.0.as_str().into(), at.1.as_str().into(), PAGE.into()],
        );
        let rows = one(tx, page).await?.rows;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        let name = |column| last.text(column).map(str::to_owned);
        let bad = |e: BadCell| damaged("a record of the gateway", e.to_string());
        at = (name(5).map_err(bad)?, name(0).map_err(bad)?);
        for row in rows {
            let (run, key) = (row.text(5).unwrap_or("?"), row.text(0).unwrap_or("?"));
            let (run, key) = (run.to_owned(), key.to_owned());
            if let Err(why) = read(codec, &run, row) {
                problems.push(format!("gateway call `{key}`: {why}"));
            }
        }
    }
}

fn guarded(guard: &Guard) -> (String, &str) {
    let (Guard::Fresh { run, key } | Guard::Open { run, key }) = guard;
    (name(run), key)
}

/// The first guard that does not hold. Whoever changes a run's records waits here for whoever does it
/// just now, so that what is seen stays so.
async fn refused(tx: &mut dyn Tx, codec: &Codec, guards: &[Guard]) -> Result<Option<Guard>, Fault> {
    if guards.is_empty() {
        return Ok(None);
    }
    let places: Vec<_> = guards.iter().map(guarded).collect();
    let mut runs: Vec<&String> = places.iter().map(|(run, _)| run).collect();
    // In one order, so that no two wait for each other.
    runs.sort_unstable();
    runs.dedup();
    let lock = |run: &String| {
        Statement::new(
            "INSERT INTO gateway_counter (run, name, value) VALUES ($1, $2, 0) \
             ON CONFLICT (run, name) DO UPDATE SET value = gateway_counter.value",
            [run.clone().into(), LOCK.into()],
        )
    };
    let find = |(run, key): &(String, &str)| {
        Statement::new(
            "SELECT key, seq, value, value_packed, sum FROM gateway_call WHERE run = $1 AND key = $2",
            [run.clone().into(), (*key).to_owned().into()],
        )
    };
    let locks = runs.len();
    let look = runs.into_iter().map(lock).chain(places.iter().map(find));
    // Answered in this order: what is found is what there is once the locks are had.
    let answers = tx.all(look.collect()).await?;
    let mut found = answers.into_iter().skip(locks);
    for (guard, (run, _)) in guards.iter().zip(&places) {
        let row = next(&mut found)?.first();
        let record = row.map(|row| read(codec, run, row)).transpose();
        let record = record.map_err(paraph_graph::Error::store)?;
        let holds = match guard {
            Guard::Fresh { .. } => record.is_none(),
            Guard::Open { .. } => record.is_some_and(|record| record.outcome.is_none()),
        };
        if !holds {
            return Ok(Some(guard.clone()));
        }
    }
    Ok(None)
}

fn put(codec: &Codec, call: &CallRecord) -> Result<Statement<'static>, paraph_graph::Error> {
    let run = name(&call.run);
    let json = serde_json::to_string(call).map_err(paraph_graph::Error::store)?;
    let (doc, sum) = codec.put_one(&place(&run, &call.key, call.seq), json.as_bytes());
    let [value, packed] = doc.owned().cells();
    let key = Cell::from(call.key.clone());
    Ok(Statement::new(
        "INSERT INTO gateway_call (run, key, seq, value, value_packed, sum) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (run, key) DO UPDATE SET seq = excluded.seq, \
         value = excluded.value, value_packed = excluded.value_packed, sum = excluded.sum",
        [run.into(), key, call.seq.into(), value, packed, sum.into()],
    ))
}

/// A counter stays at the greatest number there is, which it never reaches.
fn raise(add: &Add) -> Statement<'static> {
    Statement::new(
        "INSERT INTO gateway_counter (run, name, value) VALUES ($1, $2, $3) \
         ON CONFLICT (run, name) DO UPDATE SET value = CASE \
         WHEN gateway_counter.value > 9223372036854775807 - excluded.value THEN 9223372036854775807 \
         ELSE gateway_counter.value + excluded.value END",
        [
            name(&add.run).into(),
            add.counter.clone().into(),
            add.by.into(),
        ],
    )
}

async fn commit(
    tx: &mut dyn Tx,
    codec: &Codec,
    change: &Change,
) -> Result<Result<(), StoreError>, Fault> {
    if let Some(guard) = refused(tx, codec, &change.guards).await? {
        return Ok(Err(StoreError::Refused(Box::new(guard))));
    }
    let mut statements = Vec::with_capacity(change.calls.len() + change.add.len());
    for call in &change.calls {
        statements.push(put(codec, call)?);
    }
    statements.extend(change.add.iter().map(raise));
    tx.later(statements).await?;
    Ok(Ok(()))
}

fn broken(e: impl std::fmt::Display) -> StoreError {
    StoreError::Broken(e.to_string())
}

impl<D: Database> Durable<D> {
    /// A read about one run; what `work` makes of the answer is the result.
    fn of_run<T: Send + 'static>(
        &self,
        run: &RunRef,
        sql: &'static str,
        work: impl Fn(&Codec, &str, Answer) -> Result<T, String> + Send + Sync + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (run, codec, work) = (
            Arc::<str>::from(name(run)),
            self.codec.clone(),
            Arc::new(work),
        );
        let done = self.read(move |tx| {
            let (run, codec, work) = (run.clone(), codec.clone(), work.clone());
            Box::pin(async move {
                let answer = one(tx, Statement::new(sql, [(&*run).into()])).await?;
                Ok(work(&codec, &run, answer).map_err(paraph_graph::Error::store)?)
            })
        });
        done.map(|done| done.map_err(broken)).boxed()
    }
}

impl<D: Database> Store for Durable<D> {
    fn commit(&self, change: Change) -> StoreFuture<'_, ()> {
        let runs = change.calls.iter().map(|call| &call.run);
        let run = runs.chain(change.add.iter().map(|add| &add.run)).next();
        let lane = run.map_or("", |run| &run.thread).to_owned();
        let (codec, change) = (self.codec.clone(), Arc::new(change));
        let done = self.write(&lane, move |tx| {
            let (codec, change) = (codec.clone(), change.clone());
            Box::pin(async move { commit(tx, &codec, &change).await })
        });
        done.map(|done| done.map_err(broken).flatten()).boxed()
    }

    fn calls<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<CallRecord>> {
        let sql = "SELECT key, seq, value, value_packed, sum FROM gateway_call WHERE run = $1 \
                   ORDER BY seq, key";
        self.of_run(run, sql, |codec, run, answer| {
            let rows = answer.rows.into_iter();
            rows.map(|row| read(codec, run, row)).collect()
        })
    }

    fn counters<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, BTreeMap<String, u64>> {
        let sql = "SELECT name, value FROM gateway_counter WHERE run = $1";
        self.of_run(run, sql, |_, run, answer| {
            let bad = |e: BadCell| format!("a counter of run {run} cannot be read: {e}");
            let pair = |row: Row| Ok((row.text(0)?.to_owned(), row.unsigned(1)?));
            let pairs = answer.rows.into_iter().map(|row| pair(row).map_err(bad));
            let shown = |pair: &Result<(String, u64), String>| {
                !pair.as_ref().is_ok_and(|(name, _)| name == LOCK)
            };
            pairs.filter(shown).collect()
        })
    }
}
