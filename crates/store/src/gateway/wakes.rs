//! Whom to wake: one row for each call that waits, the newest.

use super::{name, run_of};
use crate::{
    codec::{Codec, Place},
    database::Fault,
    error::damaged,
    sql::{Answer, Cell, Row, Statement, Tx},
    verify::each_row,
};
use paraph_gateway::Wake;
use paraph_graph::Error;
use std::sync::Arc;

macro_rules! select {
    ($which:literal) => {
        concat!(
            "SELECT run, key, action, version, due_ms, sum FROM gateway_wake ",
            $which
        )
    };
}

fn sum_of(codec: &Codec, cells: (&str, &str, &str), numbers: (u64, u64)) -> i64 {
    let (run, key, action) = cells;
    let place = Place::new("gateway_wake").text(run).text(key).text(action);
    let ([], sum) = codec.put(&place.int(numbers.0).int(numbers.1), &[], []);
    sum
}

fn storable(n: u64) -> u64 {
    n.min(i64::MAX.cast_unsigned())
}

fn values(wake: &Wake) -> [Cell<'static>; 5] {
    [
        name(&wake.run).into(),
        wake.key.clone().into(),
        wake.action.to_string().into(),
        wake.version.into(),
        wake.due_ms.into(),
    ]
}

/// Writes a wake, in the place of an older one of its call.
pub(super) fn put(codec: &Codec, wake: &Wake) -> Statement<'static> {
    let (run, action) = (name(&wake.run), wake.action.to_string());
    let numbers = (storable(wake.version), storable(wake.due_ms));
    let sum = sum_of(codec, (&run, &wake.key, &action), numbers);
    let values: Vec<Cell<'static>> = values(wake).into_iter().chain([sum.into()]).collect();
    Statement::new(
        "INSERT INTO gateway_wake (run, key, action, version, due_ms, sum) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (run, key) DO UPDATE SET \
         action = excluded.action, version = excluded.version, due_ms = excluded.due_ms, \
         sum = excluded.sum",
        values,
    )
}

/// Removes a wake if it still is the same.
pub(super) fn remove(wake: &Wake) -> Statement<'static> {
    Statement::new(
        "DELETE FROM gateway_wake WHERE run = $1 AND key = $2 AND action = $3 AND version = $4 AND due_ms = $5",
        values(wake),
    )
}

pub(super) fn due_first(limit: usize) -> Statement<'static> {
    Statement::new(
        select!("ORDER BY due_ms, run, key LIMIT $1"),
        [(limit as u64).into()],
    )
}

fn read(codec: &Codec, row: &Row) -> Result<Wake, Error> {
    let at = |column| row.text(column).unwrap_or("?");
    let place = || format!("the row {} `{}` in table gateway_wake", at(0), at(1));
    let parts = || -> Result<(Wake, i64), String> {
        let text = |column| row.text(column).map_err(|e| e.to_string());
        let number = |column| row.unsigned(column).map_err(|e| e.to_string());
        let wake = Wake {
            run: Arc::new(run_of(text(0)?).ok_or("its run is none")?),
            key: text(1)?.to_owned(),
            action: row.parsed(2, "an action").map_err(|e| e.to_string())?,
            version: number(3)?,
            due_ms: number(4)?,
        };
        let cells = (text(0)?, text(1)?, text(2)?);
        let sum = sum_of(codec, cells, (wake.version, wake.due_ms));
        Ok((wake, sum))
    };
    let (wake, sum) = parts().map_err(|why| damaged(place(), why))?;
    match row.int(5) == Ok(sum) {
        true => Ok(wake),
        false => Err(damaged(place(), "the row does not fit its sum")),
    }
}

pub(super) fn all(codec: &Codec, answer: Answer) -> Result<Vec<Wake>, Error> {
    answer.rows.iter().map(|row| read(codec, row)).collect()
}

/// Reads all wakes; says of each what is wrong with it.
pub(super) async fn verify(
    tx: &mut dyn Tx,
    codec: &Codec,
    problems: &mut Vec<String>,
) -> Result<(), Fault> {
    let sql = select!("WHERE (run, key) > ($1, $2) ORDER BY run, key LIMIT $3");
    let see = |row: Row| {
        if let Err(why) = read(codec, &row) {
            problems.push(why.to_string());
        }
    };
    each_row(tx, sql, ([0, 1], "a row in table gateway_wake"), see).await
}
