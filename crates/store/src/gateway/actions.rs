//! Actions: each with where it stands, as one document, and beside it the columns by which it is found.
//!
//! What the columns say is part of what the row's sum covers, and what its document is encrypted for. So nobody moves
//! an action to another state, or another action into its place, by changing a column.

use super::{name, runs_of};
use crate::{
    codec::{Codec, Place},
    database::Fault,
    error::damaged,
    sql::{Answer, BadCell, Cell, Row, Statement, Tx, one},
    verify::PAGE,
};
use paraph_gateway::{ActionId, ActionRow, Find, State};
use paraph_graph::Error;
use xxhash_rust::xxh3::Xxh3Default;

macro_rules! select {
    ($which:literal) => {
        concat!(
            "SELECT id, tenant, thread, run, subject, state, version, expires_ms, value, value_packed, sum \
             FROM gateway_action ",
            $which
        )
    };
}

/// What a row says beside its document.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Columns {
    id: String,
    tenant: String,
    thread: String,
    run: String,
    subject: i64,
    state: String,
    version: u64,
    expires_ms: u64,
}

impl Columns {
    fn of(row: &ActionRow) -> Columns {
        let said = &row.action.said;
        Columns {
            id: row.id().to_string(),
            tenant: said.run.tenant.clone(),
            thread: said.run.thread.clone(),
            run: name(&said.run),
            subject: subject(&said.run.tenant, &said.run.thread, &said.subject),
            state: row.state.name().to_owned(),
            version: storable(row.version),
            expires_ms: storable(said.expires_ms),
        }
    }

    fn read(row: &Row) -> Result<Columns, BadCell> {
        let text = |column| row.text(column).map(str::to_owned);
        Ok(Columns {
            id: text(0)?,
            tenant: text(1)?,
            thread: text(2)?,
            run: text(3)?,
            subject: row.int(4)?,
            state: text(5)?,
            version: row.unsigned(6)?,
            expires_ms: row.unsigned(7)?,
        })
    }

    fn place(&self) -> Place {
        let names = [&self.id, &self.tenant, &self.thread, &self.run, &self.state];
        let place = names
            .into_iter()
            .fold(Place::new("gateway_action"), |place, name| place.text(name));
        let place = place.int(self.subject.cast_unsigned());
        place.int(self.version).int(self.expires_ms)
    }
}

/// A number as a column keeps it.
fn storable(n: u64) -> u64 {
    n.min(i64::MAX.cast_unsigned())
}

/// What a subject is found by. Two may have the same: whoever finds a row looks what it is about.
fn subject(tenant: &str, thread: &str, subject: &str) -> i64 {
    let mut hash = Xxh3Default::new();
    for part in [tenant, thread, subject] {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.digest().cast_signed()
}

/// Reads a row of [`select`].
fn read(codec: &Codec, mut row: Row) -> Result<ActionRow, Error> {
    let at = |column| row.text(column).unwrap_or("?");
    let place = format!(
        "the row {} of tenant `{}` in table gateway_action",
        at(0),
        at(1)
    );
    let bad = |why: String| damaged(place.clone(), why);
    let columns = Columns::read(&row).map_err(|e| bad(e.to_string()))?;
    let sum = row.int(10).map_err(|e| bad(e.to_string()))?;
    let json = codec.take_one(&columns.place(), row.take(8), row.take(9), sum);
    let found: ActionRow =
        serde_json::from_slice(&json.map_err(bad)?).map_err(|e| bad(e.to_string()))?;
    match Columns::of(&found) == columns {
        true => Ok(found),
        false => Err(bad("its columns are those of another action".to_owned())),
    }
}

/// Writes an action, new or over what it was.
pub(super) fn put(codec: &Codec, row: &ActionRow) -> Result<Statement<'static>, Error> {
    let columns = Columns::of(row);
    let json = serde_json::to_string(row).map_err(Error::store)?;
    let (doc, sum) = codec.put_one(&columns.place(), json.as_bytes());
    let [value, packed] = doc.owned().cells();
    let values: [Cell<'static>; 11] = [
        columns.id.into(),
        columns.tenant.into(),
        columns.thread.into(),
        columns.run.into(),
        columns.subject.into(),
        columns.state.into(),
        columns.version.into(),
        columns.expires_ms.into(),
        value,
        packed,
        sum.into(),
    ];
    Ok(Statement::new(
        "INSERT INTO gateway_action \
         (id, tenant, thread, run, subject, state, version, expires_ms, value, value_packed, sum) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (id) DO UPDATE SET \
         tenant = excluded.tenant, thread = excluded.thread, run = excluded.run, \
         subject = excluded.subject, state = excluded.state, version = excluded.version, \
         expires_ms = excluded.expires_ms, value = excluded.value, \
         value_packed = excluded.value_packed, sum = excluded.sum",
        values,
    ))
}

/// The version of an action, which [`is_at`] reads.
pub(super) fn version_of(id: ActionId) -> Statement<'static> {
    Statement::new(
        "SELECT version FROM gateway_action WHERE id = $1",
        [id.to_string().into()],
    )
}

pub(super) fn is_at(id: ActionId, answer: Answer, version: u64) -> Result<bool, Error> {
    let Some(row) = answer.first() else {
        return Ok(false);
    };
    let bad = |e: BadCell| {
        damaged(
            format!("the row {id} in table gateway_action"),
            e.to_string(),
        )
    };
    Ok(row.unsigned(0).map_err(bad)? == storable(version))
}

/// What is looked for, as long as it takes.
pub(super) enum Wanted {
    Id(String),
    Run(String),
    Subject {
        tenant: String,
        thread: String,
        subject: String,
    },
    States {
        states: Vec<&'static str>,
        after: String,
        limit: usize,
    },
}

impl From<&Find<'_>> for Wanted {
    fn from(find: &Find<'_>) -> Wanted {
        match find {
            Find::Id(id) => Wanted::Id(id.to_string()),
            Find::Run(run) => Wanted::Run(name(run)),
            Find::Subject {
                tenant,
                thread,
                subject,
            } => Wanted::Subject {
                tenant: (*tenant).to_owned(),
                thread: (*thread).to_owned(),
                subject: (*subject).to_owned(),
            },
            Find::States {
                states,
                after,
                limit,
            } => {
                let mut names: Vec<_> = states.iter().map(|state| state.name()).collect();
                names.sort_unstable();
                names.dedup();
                Wanted::States {
                    states: names,
                    after: after.map_or_else(String::new, |after| after.to_string()),
                    limit: *limit,
                }
            }
        }
    }
}

impl Wanted {
    pub(super) async fn find(
        &self,
        tx: &mut dyn Tx,
        codec: &Codec,
    ) -> Result<Vec<ActionRow>, Fault> {
        let answers = tx.all(self.statements()).await?;
        let mut rows: Vec<Row> = answers.into_iter().flat_map(|answer| answer.rows).collect();
        if let Wanted::States { limit, .. } = self {
            rows.sort_by(|a, b| a.text(0).ok().cmp(&b.text(0).ok()));
            rows.truncate(*limit);
        }
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            found.push(read(codec, row)?);
        }
        if let Wanted::Subject {
            tenant,
            thread,
            subject,
        } = self
        {
            found.retain(|row| {
                let said = &row.action.said;
                (&said.run.tenant, &said.run.thread, &said.subject) == (tenant, thread, subject)
            });
        }
        Ok(found)
    }

    fn statements(&self) -> Vec<Statement<'_>> {
        match self {
            Wanted::Id(id) => vec![Statement::new(
                select!("WHERE id = $1"),
                [id.as_str().into()],
            )],
            Wanted::Run(run) => vec![Statement::new(
                select!("WHERE run = $1 ORDER BY id"),
                [run.as_str().into()],
            )],
            Wanted::Subject {
                tenant,
                thread,
                subject: about,
            } => vec![Statement::new(
                select!("WHERE subject = $1 ORDER BY id"),
                [subject(tenant, thread, about).into()],
            )],
            // One for each state: then an index has the first of each in their order, however many there are.
            Wanted::States {
                states,
                after,
                limit,
            } => {
                let of = |state: &&'static str| {
                    Statement::new(
                        select!("WHERE state = $1 AND id > $2 ORDER BY id LIMIT $3"),
                        [
                            (*state).into(),
                            after.as_str().into(),
                            (*limit as u64).into(),
                        ],
                    )
                };
                states.iter().map(of).collect()
            }
        }
    }
}

/// Why a thread, or one of its runs, has to stay: an action of it is not over. Nothing if none is.
pub(crate) async fn unsettled(
    tx: &mut dyn Tx,
    thread: &str,
    run: Option<&str>,
) -> Result<Option<String>, Fault> {
    let (from, to) = runs_of(thread, run);
    let open = State::ALL.into_iter().filter(|state| !state.is_final());
    let find = |state: State| {
        Statement::new(
            "SELECT id, state FROM gateway_action \
             WHERE run >= $1 AND run < $2 AND state = $3 ORDER BY id LIMIT 1",
            [
                from.clone().into(),
                to.clone().into(),
                state.name().to_owned().into(),
            ],
        )
    };
    let answers = tx.all(open.map(find).collect()).await?;
    let rows = answers.into_iter().flat_map(|answer| answer.rows);
    let mut open: Vec<(String, String)> = rows
        .map(|row| {
            let text = |column| row.text(column).unwrap_or("?").to_owned();
            (text(0), text(1))
        })
        .collect();
    open.sort();
    Ok(open
        .first()
        .map(|(id, state)| format!("its action {id} is {state}, and has to be settled first")))
}

/// Reads all actions; says of each what is wrong with it.
pub(super) async fn verify(
    tx: &mut dyn Tx,
    codec: &Codec,
    problems: &mut Vec<String>,
) -> Result<(), Fault> {
    let mut after = String::new();
    loop {
        let page = Statement::new(
            select!("WHERE id > $1 ORDER BY id LIMIT $2"),
            [after.as_str().into(), PAGE.into()],
        );
        let rows = one(tx, page).await?.rows;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        let bad = |e: BadCell| damaged("an id in table gateway_action", e.to_string());
        after = last.text(0).map_err(bad)?.to_owned();
        for row in rows {
            if let Err(why) = read(codec, row) {
                problems.push(why.to_string());
            }
        }
    }
}
