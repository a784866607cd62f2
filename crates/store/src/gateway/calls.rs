//! Records of calls, and counters.

use super::name;
use crate::{
    codec::{Codec, Place},
    database::Fault,
    error::damaged,
    sql::{Answer, BadCell, Cell, Row, Statement, Tx},
    verify::each_row,
};
use paraph_gateway::{Add, CallRecord, RunRef};
use paraph_graph::Error;
use std::collections::BTreeMap;

/// A counter that earlier versions locked a run by. It may still be there; nobody is shown it.
const LOCK: &str = "\u{2}";

fn place(run: &str, key: &str, seq: u64) -> Place {
    Place::new("gateway_call").text(run).text(key).int(seq)
}

/// The columns that [`read`] takes.
macro_rules! select {
    ($($rest:literal)*) => {
        concat!("SELECT key, seq, value, value_packed, sum, run FROM gateway_call ", $($rest),*)
    };
}

/// `key, seq, value, value_packed, sum`.
pub(super) fn read(codec: &Codec, run: &str, mut row: Row) -> Result<CallRecord, Error> {
    let bad = |why: String| damaged(format!("a record of run {run} (table gateway_call)"), why);
    let cell = |e: BadCell| bad(e.to_string());
    let key = row.text(0).map_err(cell)?;
    let place = place(run, key, row.unsigned(1).map_err(cell)?);
    let sum = row.int(4).map_err(cell)?;
    let json = codec.take_one(&place, row.take(2), row.take(3), sum);
    serde_json::from_slice(&json.map_err(bad)?).map_err(|e| bad(e.to_string()))
}

/// The record of a call.
pub(super) fn find(run: &RunRef, key: &str) -> Statement<'static> {
    Statement::new(
        select!("WHERE run = $1 AND key = $2"),
        [name(run).into(), key.to_owned().into()],
    )
}

/// The records of a run.
pub(super) fn of_run(run: &str) -> Statement<'static> {
    let sql = select!("WHERE run = $1 ORDER BY seq, key");
    Statement::new(sql, [run.to_owned().into()])
}

pub(super) fn all(codec: &Codec, run: &str, answer: Answer) -> Result<Vec<CallRecord>, Error> {
    let rows = answer.rows.into_iter();
    rows.map(|row| read(codec, run, row)).collect()
}

/// Writes a record, new or over the older one.
pub(super) fn put(codec: &Codec, call: &CallRecord) -> Result<Statement<'static>, Error> {
    let run = name(&call.run);
    let json = serde_json::to_string(call).map_err(Error::store)?;
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

/// Raises a counter. It stays at the greatest number there is, which it never reaches.
pub(super) fn raise(add: &Add) -> Statement<'static> {
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

/// Lowers a counter, not below 0.
pub(super) fn lower(less: &Add) -> Statement<'static> {
    Statement::new(
        "UPDATE gateway_counter SET value = CASE WHEN value > $3 THEN value - $3 ELSE 0 END \
         WHERE run = $1 AND name = $2",
        [
            name(&less.run).into(),
            less.counter.clone().into(),
            less.by.into(),
        ],
    )
}

/// One counter: of the answer [`counter`] takes the first row, if there is one.
pub(super) fn counter_of(run: &RunRef, counter: &str) -> Statement<'static> {
    Statement::new(
        "SELECT name, value FROM gateway_counter WHERE run = $1 AND name = $2",
        [name(run).into(), counter.to_owned().into()],
    )
}

pub(super) fn counters_of(run: &str) -> Statement<'static> {
    Statement::new(
        "SELECT name, value FROM gateway_counter WHERE run = $1",
        [run.to_owned().into()],
    )
}

pub(super) fn counter(run: &str, row: &Row) -> Result<(String, u64), Error> {
    let bad = |e: BadCell| {
        let place = format!("a counter of run {run} (table gateway_counter)");
        damaged(place, e.to_string())
    };
    let name = row.text(0).map_err(bad)?.to_owned();
    Ok((name, row.unsigned(1).map_err(bad)?))
}

pub(super) fn counters(run: &str, answer: Answer) -> Result<BTreeMap<String, u64>, Error> {
    let all = answer.rows.iter().map(|row| counter(run, row));
    let shown =
        |pair: &Result<(String, u64), Error>| !pair.as_ref().is_ok_and(|(name, _)| name == LOCK);
    all.filter(shown).collect()
}

/// Reads the records of all runs; says of each what is wrong with it.
pub(super) async fn verify(
    tx: &mut dyn Tx,
    codec: &Codec,
    problems: &mut Vec<String>,
) -> Result<(), Fault> {
    let sql = select!("WHERE (run, key) > ($1, $2) ORDER BY run, key LIMIT $3");
    let see = |row: Row| {
        let (run, key) = (row.text(5).unwrap_or("?"), row.text(0).unwrap_or("?"));
        let (run, key) = (run.to_owned(), key.to_owned());
        if let Err(why) = read(codec, &run, row) {
            problems.push(format!("gateway call `{key}`: {why}"));
        }
    };
    each_row(tx, sql, ([5, 0], "a record of the gateway"), see).await
}
