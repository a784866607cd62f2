//! The audit: one chain of entries for each tenant, and what is personal about them beside it.
//!
//! Rows are only added; triggers see to it that nobody else changes or removes one. How entries hang together is the
//! gateway's affair (`AuditEntry::link`): here they get their places, under the tenant's lock.

use crate::{
    codec::{Codec, Place},
    database::Fault,
    error::damaged,
    sql::{Answer, BadCell, Row, Statement, Tx, one},
    verify::PAGE,
};
use paraph_gateway::{AuditEntry, Draft, Erase, Head, Verifier};
use paraph_graph::Error;
use std::collections::BTreeMap;

macro_rules! select {
    ($which:literal) => {
        concat!(
            "SELECT a.seq, a.prev, a.hash, a.event, d.seq, d.value, d.value_packed, d.sum, a.tenant \
             FROM gateway_audit a \
             LEFT JOIN gateway_audit_detail d ON d.tenant = a.tenant AND d.seq = a.seq ",
            $which
        )
    };
}

fn place(tenant: &str, seq: u64) -> Place {
    Place::new("gateway_audit_detail").text(tenant).int(seq)
}

/// The newest entry of a tenant, which [`head`] reads.
pub(super) fn newest(tenant: &str) -> Statement<'static> {
    Statement::new(
        "SELECT seq, hash FROM gateway_audit WHERE tenant = $1 ORDER BY seq DESC LIMIT 1",
        [tenant.to_owned().into()],
    )
}

pub(super) fn head(tenant: &str, answer: Answer) -> Result<Option<Head>, Error> {
    let Some(row) = answer.first() else {
        return Ok(None);
    };
    let bad = |e: BadCell| damaged(format!("the audit of tenant `{tenant}`"), e.to_string());
    Ok(Some(Head {
        seq: row.unsigned(0).map_err(bad)?,
        hash: row.text(1).map_err(bad)?.to_owned(),
    }))
}

/// Gives drafts their places behind these heads, which move on.
pub(super) fn append(
    codec: &Codec,
    heads: &mut BTreeMap<String, Option<Head>>,
    drafts: &[Draft],
) -> Vec<Statement<'static>> {
    let mut statements = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let head = heads.entry(draft.tenant().to_owned()).or_default();
        let entry = AuditEntry::link(head.as_ref(), draft.clone());
        *head = Some(entry.head());
        statements.extend(insert(codec, draft.tenant(), &entry));
    }
    statements
}

fn insert(codec: &Codec, tenant: &str, entry: &AuditEntry) -> Vec<Statement<'static>> {
    let row = Statement::new(
        "INSERT INTO gateway_audit (tenant, seq, prev, hash, event) VALUES ($1, $2, $3, $4, $5)",
        [
            tenant.to_owned().into(),
            entry.seq.into(),
            entry.prev.clone().into(),
            entry.hash.clone().into(),
            entry.event.clone().into(),
        ],
    );
    let Some(detail) = &entry.detail else {
        return vec![row];
    };
    let (doc, sum) = codec.put_one(&place(tenant, entry.seq), detail.as_bytes());
    let [value, packed] = doc.owned().cells();
    let detail = Statement::new(
        "INSERT INTO gateway_audit_detail (tenant, seq, value, value_packed, sum) \
         VALUES ($1, $2, $3, $4, $5)",
        [
            tenant.to_owned().into(),
            entry.seq.into(),
            value,
            packed,
            sum.into(),
        ],
    );
    vec![row, detail]
}

/// Removes what is personal about an entry.
pub(super) fn erase(erase: &Erase) -> Statement<'static> {
    Statement::new(
        "DELETE FROM gateway_audit_detail WHERE tenant = $1 AND seq = $2",
        [erase.tenant.clone().into(), erase.seq.into()],
    )
}

pub(super) fn behind(tenant: &str, after: u64, limit: usize) -> Statement<'static> {
    Statement::new(
        select!("WHERE a.tenant = $1 AND a.seq > $2 ORDER BY a.seq LIMIT $3"),
        [
            tenant.to_owned().into(),
            after.into(),
            (limit as u64).into(),
        ],
    )
}

fn read(codec: &Codec, tenant: &str, mut row: Row) -> Result<AuditEntry, Error> {
    let seq = row.unsigned(0);
    let at = seq.as_ref().map_or("?".to_owned(), ToString::to_string);
    let bad_in = |table: &str, why: String| {
        damaged(
            format!("the row {at} of tenant `{tenant}` in table {table}"),
            why,
        )
    };
    let cell = |e: BadCell| bad_in("gateway_audit", e.to_string());
    let seq = seq.clone().map_err(cell)?;
    let text = |column| row.text(column).map(str::to_owned).map_err(cell);
    let (prev, hash, event) = (text(1)?, text(2)?, text(3)?);
    let bad = |why: String| bad_in("gateway_audit_detail", why);
    let detail = match row.opt_int(4).map_err(|e| bad(e.to_string()))? {
        None => None,
        Some(_) => {
            let sum = row.int(7).map_err(|e| bad(e.to_string()))?;
            let text = codec.take_one(&place(tenant, seq), row.take(5), row.take(6), sum);
            let text = String::from_utf8(text.map_err(bad)?);
            Some(text.map_err(|_| bad("it is no text".to_owned()))?)
        }
    };
    Ok(AuditEntry {
        seq,
        prev,
        hash,
        event,
        detail,
    })
}

pub(super) fn all(codec: &Codec, tenant: &str, answer: Answer) -> Result<Vec<AuditEntry>, Error> {
    let rows = answer.rows.into_iter();
    rows.map(|row| read(codec, tenant, row)).collect()
}

/// Goes along the chains of all tenants; says of each where it breaks, and of each detail that it cannot be read.
pub(super) async fn verify(
    tx: &mut dyn Tx,
    codec: &Codec,
    problems: &mut Vec<String>,
) -> Result<(), Fault> {
    let mut at = (String::new(), 0);
    // The chain that is gone along; nothing once it has broken.
    let mut chain: Option<Verifier> = None;
    loop {
        let page = Statement::new(
            select!("WHERE (a.tenant, a.seq) > ($1, $2) ORDER BY a.tenant, a.seq LIMIT $3"),
            [at.0.as_str().into(), at.1.into(), PAGE.into()],
        );
        let rows = one(tx, page).await?.rows;
        if rows.is_empty() {
            return Ok(());
        }
        for row in rows {
            let bad = |e: BadCell| damaged("a row in table gateway_audit", e.to_string());
            let place = (
                row.text(8).map_err(bad)?.to_owned(),
                row.unsigned(0).map_err(bad)?,
            );
            if place.0 != at.0 || at.1 == 0 {
                chain = Some(Verifier::new(place.0.clone(), []));
            }
            at = place;
            let entry = match read(codec, &at.0, row) {
                Ok(entry) => entry,
                Err(why) => {
                    problems.push(why.to_string());
                    chain = None;
                    continue;
                }
            };
            if let Some(Err(broken)) = chain.as_mut().map(|chain| chain.see(&entry)) {
                problems.push(format!(
                    "the audit of tenant `{}` (table gateway_audit): {broken}",
                    at.0
                ));
                chain = None;
            }
        }
    }
}
