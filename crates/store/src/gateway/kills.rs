//! Kill switches that are on. A row that cannot be read is an error for whoever asks: then nothing starts.

use crate::{
    codec::{Codec, Place},
    database::Fault,
    error::damaged,
    sql::{Answer, BadCell, Row, Statement, Tx, one},
};
use paraph_gateway::Kill;
use paraph_graph::Error;

fn place(scope: &str) -> Place {
    Place::new("gateway_kill").text(scope)
}

/// Puts a switch on, or says anew who, why and when.
pub(super) fn put(codec: &Codec, kill: &Kill) -> Result<Statement<'static>, Error> {
    let json = serde_json::to_string(kill).map_err(Error::store)?;
    let (doc, sum) = codec.put_one(&place(&kill.scope), json.as_bytes());
    let [value, packed] = doc.owned().cells();
    Ok(Statement::new(
        "INSERT INTO gateway_kill (scope, value, value_packed, sum) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (scope) DO UPDATE SET value = excluded.value, \
         value_packed = excluded.value_packed, sum = excluded.sum",
        [kill.scope.clone().into(), value, packed, sum.into()],
    ))
}

pub(super) fn remove(scope: &str) -> Statement<'static> {
    Statement::new(
        "DELETE FROM gateway_kill WHERE scope = $1",
        [scope.to_owned().into()],
    )
}

pub(super) fn list() -> Statement<'static> {
    let sql = "SELECT scope, value, value_packed, sum FROM gateway_kill ORDER BY scope";
    Statement::new(sql, [])
}

/// The scopes alone, which [`is_on`] reads.
pub(super) fn scopes() -> Statement<'static> {
    Statement::new("SELECT scope FROM gateway_kill", [])
}

/// Whether one of these is on.
pub(super) fn is_on(answer: &Answer, scopes: &[String]) -> Result<bool, Error> {
    let mut any = false;
    for row in &answer.rows {
        let bad = |e: BadCell| damaged("a row in table gateway_kill", e.to_string());
        let on = row.text(0).map_err(bad)?;
        any |= scopes.iter().any(|scope| scope == on);
    }
    Ok(any)
}

fn read(codec: &Codec, mut row: Row) -> Result<Kill, Error> {
    let scope = row.text(0).unwrap_or("?").to_owned();
    let bad = |why: String| damaged(format!("the row `{scope}` in table gateway_kill"), why);
    let cell = |e: BadCell| bad(e.to_string());
    row.text(0).map_err(cell)?;
    let sum = row.int(3).map_err(cell)?;
    let json = codec.take_one(&place(&scope), row.take(1), row.take(2), sum);
    let kill: Kill = serde_json::from_slice(&json.map_err(bad)?).map_err(|e| bad(e.to_string()))?;
    match kill.scope == scope {
        true => Ok(kill),
        false => Err(bad("it says that its scope is another".to_owned())),
    }
}

pub(super) fn all(codec: &Codec, answer: Answer) -> Result<Vec<Kill>, Error> {
    let rows = answer.rows.into_iter();
    rows.map(|row| read(codec, row)).collect()
}

/// Reads all switches; says of each what is wrong with it.
pub(super) async fn verify(
    tx: &mut dyn Tx,
    codec: &Codec,
    problems: &mut Vec<String>,
) -> Result<(), Fault> {
    for row in one(tx, list()).await?.rows {
        if let Err(why) = read(codec, row) {
            problems.push(why.to_string());
        }
    }
    Ok(())
}
