//! What has to be true before a change is made: a question for each guard, and what its answer means.
//!
//! Whoever asks has the locks of `commit.rs`, so that what is seen stays so until the change is committed.

use super::{actions, calls, kills, name};
use crate::{
    codec::Codec,
    error::damaged,
    sql::{Answer, BadCell, Statement},
};
use paraph_gateway::{Change, Guard};
use paraph_graph::Error;

/// The one statement whose answer says whether a guard holds. `clock` asks for the time.
pub(super) fn question(guard: &Guard, clock: &'static str) -> Statement<'static> {
    match guard {
        Guard::Fresh { run, key } | Guard::Open { run, key } => calls::find(run, key),
        Guard::At { id, .. } => actions::version_of(*id),
        Guard::Alive { .. } => kills::scopes(),
        Guard::Most { run, counter, .. } => calls::counter_of(run, counter),
        Guard::Before { .. } => Statement::new(clock, []),
    }
}

/// Whether a guard of a change holds, by the answer to its [`question`].
///
/// # Errors
/// If what it is about is damaged.
pub(super) fn holds(
    codec: &Codec,
    guard: &Guard,
    change: &Change,
    answer: Answer,
) -> Result<bool, Error> {
    Ok(match guard {
        Guard::Fresh { .. } => answer.rows.is_empty(),
        Guard::Open { run, .. } => match answer.first() {
            None => false,
            Some(row) => calls::read(codec, &name(run), row)?.outcome.is_none(),
        },
        Guard::At { id, version } => actions::is_at(*id, answer, *version)?,
        Guard::Alive { scopes } => !kills::is_on(&answer, scopes)?,
        Guard::Most { run, counter, most } => {
            let row = answer.first();
            let now = row
                .map(|row| calls::counter(&name(run), &row))
                .transpose()?;
            let adds = change.add.iter();
            let adds = adds.filter(|add| add.run == *run && add.counter == *counter);
            let now = now.map_or(0, |(_, value)| value);
            adds.fold(now, |sum, add| sum.saturating_add(add.by)) <= *most
        }
        Guard::Before { at_ms } => {
            let bad = |e: BadCell| damaged("the database's clock", e.to_string());
            let row = answer.first();
            let row = row.ok_or_else(|| damaged("the database's clock", "it does not answer"))?;
            row.unsigned(0).map_err(bad)? < *at_ms
        }
    })
}
