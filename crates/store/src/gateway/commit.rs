//! A change as one transaction: its locks, its guards, its rows, and its entries in the audit.
//!
//! # Why a guard's answer stays true
//! SQLite has one writer, and a write is exclusive from its first statement on. On Postgres, where transactions run
//! side by side and each statement sees what was committed before it, a change takes a lock on all that it looks at or
//! writes before it looks:
//!
//! - the threads of all its runs, for records, counters and wakes;
//! - its actions, so that of two who saw the same version one waits, and then sees the other's;
//! - the kill switches: shared if it only looks ([`Guard::Alive`]), alone if it puts one on or takes one away. Whoever
//!   puts one on waits until all who looked have committed, and whoever looks from then on waits for that one and sees
//!   it. So when a kill has returned, nothing that it forbids is committed any more;
//! - the audit of each tenant that it adds to, so that no two entries come behind the same one.
//!
//! All locks are taken in one order before the first statement (`postgres/lane.rs`), those of the audit last. So
//! no two changes can each wait for the other, also when many share a transaction; and a transaction that waits for a
//! tenant's audit keeps nobody from it. They travel with the questions: a change with guards waits for the server twice,
//! one without once, however many locks it takes.

use super::{actions, audit, calls, guards, kills, wakes};
use crate::{
    codec::Codec,
    database::{Fault, Lock, LockOn},
    sql::{Answer, Statement, Tx, next},
};
use paraph_gateway::{ActionRow, Change, Draft, Guard, Head, RunRef, StoreError};
use std::borrow::Cow;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// All runs that a change is about.
fn runs(change: &Change) -> impl Iterator<Item = &Arc<RunRef>> {
    let guarded = change.guards.iter().filter_map(|guard| match guard {
        Guard::Fresh { run, .. } | Guard::Open { run, .. } | Guard::Most { run, .. } => Some(run),
        Guard::At { .. } | Guard::Alive { .. } | Guard::Before { .. } => None,
    });
    let calls = change.calls.iter().map(|call| &call.run);
    let actions = change.actions.iter().map(|row| &row.action.said.run);
    let counted = change.add.iter().chain(&change.give_back);
    let counted = counted.map(|add| &add.run);
    let woken = change.wake.iter().chain(&change.woken);
    let woken = woken.map(|wake| &wake.run);
    calls
        .chain(actions)
        .chain(counted)
        .chain(woken)
        .chain(guarded)
}

/// The thread among whose writes a change has its place.
pub(super) fn lane(change: &Change) -> Cow<'_, str> {
    runs(change)
        .next()
        .map_or(Cow::Borrowed(""), |run| lane_of(run))
}

/// What belongs to no thread, such as the counters of a user or of grants, has lanes of its own: one for all would make
/// everybody wait for everybody.
fn lane_of(run: &RunRef) -> Cow<'_, str> {
    match run.thread.is_empty() {
        false => Cow::Borrowed(&run.thread),
        true => Cow::Owned(format!("{}/{}", run.tenant, run.run)),
    }
}

/// What a change needs to itself beside its lane.
pub(super) fn locks(change: &Change, lane: &str) -> Vec<Lock> {
    let mut locks = BTreeSet::new();
    for other in runs(change)
        .map(|run| lane_of(run))
        .filter(|other| other != lane)
    {
        locks.insert(Lock::alone(LockOn::Lane, other.into_owned()));
    }
    let guarded = change.guards.iter().filter_map(|guard| match guard {
        Guard::At { id, .. } => Some(*id),
        _ => None,
    });
    for id in guarded.chain(change.actions.iter().map(ActionRow::id)) {
        locks.insert(Lock::alone(LockOn::Action, id.to_string()));
    }
    let looks = |guard: &Guard| matches!(guard, Guard::Alive { .. });
    if !change.kill.is_empty() || !change.unkill.is_empty() {
        locks.insert(Lock::alone(LockOn::Kills, ""));
    } else if change.guards.iter().any(looks) {
        locks.insert(Lock {
            shared: true,
            ..Lock::alone(LockOn::Kills, "")
        });
    }
    for draft in &change.audit {
        locks.insert(Lock::alone(LockOn::Audit, draft.tenant()));
    }
    locks.into_iter().collect()
}

/// Makes a change, or says which guard does not hold; then nothing was written.
pub(super) async fn commit(
    tx: &mut dyn Tx,
    codec: &Codec,
    change: &Change,
) -> Result<Result<(), StoreError>, Fault> {
    let clock = tx.clock();
    let tenants: BTreeSet<&str> = change.audit.iter().map(Draft::tenant).collect();
    let questions = change.guards.iter();
    let mut questions: Vec<_> = questions
        .map(|guard| guards::question(guard, clock))
        .collect();
    questions.extend(tenants.iter().map(|tenant| audit::newest(tenant)));
    let mut answers = match questions.is_empty() {
        true => Vec::new(),
        false => tx.all(questions).await?,
    }
    .into_iter();
    for guard in &change.guards {
        if !guards::holds(codec, guard, change, next(&mut answers)?)? {
            return Ok(Err(StoreError::Refused(Box::new(guard.clone()))));
        }
    }
    let heads = heads(&tenants, &mut answers)?;
    tx.later(statements(codec, change, heads)?).await?;
    Ok(Ok(()))
}

type Heads = BTreeMap<String, Option<Head>>;

/// The newest entries of these tenants.
fn heads(
    tenants: &BTreeSet<&str>,
    answers: &mut impl Iterator<Item = Answer>,
) -> Result<Heads, Fault> {
    let mut heads = Heads::new();
    for tenant in tenants {
        let head = audit::head(tenant, next(answers)?)?;
        heads.insert((*tenant).to_owned(), head);
    }
    Ok(heads)
}

/// What a change writes, in its order.
fn statements(
    codec: &Codec,
    change: &Change,
    mut heads: Heads,
) -> Result<Vec<Statement<'static>>, paraph_graph::Error> {
    let mut statements = Vec::new();
    for call in &change.calls {
        statements.push(calls::put(codec, call)?);
    }
    statements.extend(change.add.iter().map(calls::raise));
    statements.extend(change.give_back.iter().map(calls::lower));
    for row in &change.actions {
        statements.push(actions::put(codec, row)?);
    }
    statements.extend(change.woken.iter().map(wakes::remove));
    statements.extend(change.wake.iter().map(|wake| wakes::put(codec, wake)));
    statements.extend(change.unkill.iter().map(|scope| kills::remove(scope)));
    for kill in &change.kill {
        statements.push(kills::put(codec, kill)?);
    }
    statements.extend(audit::append(codec, &mut heads, &change.audit));
    statements.extend(change.erase.iter().map(audit::erase));
    Ok(statements)
}
