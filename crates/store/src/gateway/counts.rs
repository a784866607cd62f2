//! How much is kept of the gateway: counted by the database, no document is read.

use crate::{
    database::Fault,
    error::damaged,
    sql::{Answer, BadCell, Statement, Tx, next},
};
use std::collections::BTreeMap;

/// How many rows the gateway has in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayCounts {
    /// Records of calls.
    pub calls: u64,
    /// Actions, by the names of the states in which they stand.
    pub actions: BTreeMap<String, u64>,
    /// Runs that are to be woken.
    pub wakes: u64,
    /// Kill switches that are on.
    pub kills: u64,
    /// Entries of the audit, by tenant.
    pub audit: BTreeMap<String, u64>,
    /// Bytes of the documents of all of it.
    pub bytes: u64,
}

const COUNTS: [&str; 7] = [
    "SELECT COUNT(*) FROM gateway_call",
    "SELECT COUNT(*) FROM gateway_wake",
    "SELECT COUNT(*) FROM gateway_kill",
    "SELECT CAST(COALESCE(SUM(COALESCE(octet_length(value), 0) + COALESCE(octet_length(value_packed), 0)), 0) \
     AS BIGINT) FROM gateway_call",
    "SELECT CAST(COALESCE(SUM(COALESCE(octet_length(value), 0) + COALESCE(octet_length(value_packed), 0)), 0) \
     AS BIGINT) FROM gateway_action",
    "SELECT CAST(COALESCE(SUM(octet_length(event)), 0) AS BIGINT) FROM gateway_audit",
    "SELECT CAST(COALESCE(SUM(COALESCE(octet_length(value), 0) + COALESCE(octet_length(value_packed), 0)), 0) \
     AS BIGINT) FROM gateway_audit_detail",
];

const BY_NAME: [&str; 2] = [
    "SELECT state, COUNT(*) FROM gateway_action GROUP BY state",
    "SELECT tenant, COUNT(*) FROM gateway_audit GROUP BY tenant",
];

pub(crate) async fn count(tx: &mut dyn Tx) -> Result<GatewayCounts, Fault> {
    let all = COUNTS.into_iter().chain(BY_NAME);
    let answers = tx.all(all.map(|sql| Statement::new(sql, [])).collect());
    let mut answers = answers.await?.into_iter();
    let bad = |e: BadCell| damaged("what was counted of the gateway", e.to_string());
    let mut numbers = [0; COUNTS.len()];
    for number in &mut numbers {
        let row = next(&mut answers)?.first();
        *number = row.map_or(Ok(0), |row| row.unsigned(0)).map_err(bad)?;
    }
    let mut by_name = || -> Result<BTreeMap<String, u64>, Fault> {
        let Answer { rows, .. } = next(&mut answers)?;
        let pairs = rows
            .iter()
            .map(|row| Ok((row.text(0)?.to_owned(), row.unsigned(1)?)));
        Ok(pairs.collect::<Result<_, _>>().map_err(bad)?)
    };
    let [calls, wakes, kills, bytes @ ..] = numbers;
    Ok(GatewayCounts {
        calls,
        actions: by_name()?,
        wakes,
        kills,
        audit: by_name()?,
        bytes: bytes.iter().sum(),
    })
}
