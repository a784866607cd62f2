//! How many analyses a user may begin in a day, over all runs: counted in the gateway's store, before anything is read.
//!
//! A run counts once, however often it is taken up: its own counter and that of its user's day are raised in one write.

use crate::asking::Unfinished;
use paraph_gateway::{Add, Change, DayFigure, Guard, RunRef, Scope, Stop, Store, StoreError};
use std::sync::Arc;

/// What stands before the day in the name of the user's counter.
const COUNTER: &str = "analyses/";

/// The counter of a run that was counted.
const COUNTED: &str = "analysis";

/// Counts the run.
///
/// # Errors
/// [`Stop::UserDay`] if the user has begun as many as they may; the store's failures.
pub(super) async fn count(store: &dyn Store, scope: &Scope, limit: u64) -> Result<(), Stop> {
    let now = store.now_ms().await.map_err(broken)?;
    let today = date(now)?;
    let owner = |run: String| {
        Arc::new(RunRef {
            tenant: scope.tenant.clone(),
            agent: String::new(),
            thread: String::new(),
            run,
        })
    };
    let (of_run, of_user) = (
        owner(format!("triage/{}", scope.run)),
        owner(format!("user/{}", scope.user)),
    );
    let of_day = format!("{COUNTER}{today}");
    let counters = [
        (of_run, COUNTED.to_owned(), 1),
        (of_user, of_day.clone(), limit),
    ];
    let mut change = Change::default();
    for (run, counter, most) in counters {
        change.guards.push(Guard::Most {
            run: run.clone(),
            counter: counter.clone(),
            most,
        });
        change.add.push(Add {
            run,
            counter,
            by: 1,
        });
    }
    match store.commit(change).await {
        Ok(()) => Ok(()),
        Err(StoreError::Refused(guard)) => match &*guard {
            Guard::Most { counter, .. } if *counter == of_day => Err(used_up(now, &today, limit)?),
            // An earlier life of the run was counted.
            _ => Ok(()),
        },
        Err(error) => Err(broken(error)),
    }
}

fn used_up(now_ms: u64, today: &str, limit: u64) -> Result<Stop, Stop> {
    const DAY_MS: u64 = 24 * 3_600 * 1_000;
    let reset = date(now_ms.saturating_add(DAY_MS))?;
    Ok(Stop::UserDay {
        what: DayFigure::ToolCalls,
        text: format!(
            "the {limit} analyses that this user may begin on {today} are used up; there are new ones from {reset}T00:00:00Z on"
        ),
    })
}

/// The day in UTC.
fn date(ms: u64) -> Result<String, Stop> {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_millisecond(ms);
    let time = time.map_err(|error| Stop::Internal(format!("the store's clock: {error}")))?;
    Ok(time.strftime("%Y-%m-%d").to_string())
}

fn broken(error: StoreError) -> Stop {
    let stop = Stop::StoreError(error.to_string());
    debug_assert!(Unfinished::of(&stop).is_some());
    stop
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot be set up has failed"
    )]

    use super::*;
    use futures::future::join_all;
    use paraph_gateway::MemoryStore;

    fn scope(user: &str, run: &str) -> Scope {
        Scope {
            user: user.to_owned(),
            run: run.to_owned(),
            ..Scope::new("triage", "t")
        }
    }

    #[tokio::test]
    async fn a_user_has_so_many_a_day_and_a_run_counts_once() {
        let store = MemoryStore::shared();
        let begin = async |user: &str, run: &str| count(&*store, &scope(user, run), 2).await;
        assert_eq!(begin("ann", "1").await, Ok(()));
        for _ in 0..5 {
            assert_eq!(begin("ann", "1").await, Ok(()));
        }
        assert_eq!(begin("ann", "2").await, Ok(()));
        let refused = begin("ann", "3").await.unwrap_err();
        let Stop::UserDay { text, .. } = &refused else {
            panic!("{refused:?}")
        };
        let today = date(store.now_ms().await.unwrap()).unwrap();
        let start = format!(
            "the 2 analyses that this user may begin on {today} are used up; there are new ones from "
        );
        assert!(
            text.starts_with(&start) && text.ends_with("T00:00:00Z on"),
            "{text}"
        );
        assert_eq!(refused.exit_code(), 3);
        // Those that were begun go on, others are not concerned.
        assert_eq!(begin("ann", "2").await, Ok(()));
        assert_eq!(begin("bert", "4").await, Ok(()));
    }

    #[tokio::test]
    async fn parallel_runs_of_a_user_begin_no_more_than_they_may() {
        let store = MemoryStore::shared();
        let begun = (0..20).map(|run| {
            let store = store.clone();
            async move {
                count(&*store, &scope("ann", &run.to_string()), 7)
                    .await
                    .is_ok()
            }
        });
        let begun = join_all(begun).await;
        assert_eq!(begun.iter().filter(|ok| **ok).count(), 7);
    }
}
