//! What a user may use in a day, and what is set aside for a model call: counted in the store, before the work begins.
//!
//! A call is counted in the commit that first writes its record, so that no crash counts it twice or not at all. What a
//! model call may use at most is written down before the call and settled after it. If the process dies in between,
//! nobody knows what the provider charged: what was set aside counts as spent, for the run and for the day.

use super::{Session, broken};
use crate::budget::{DayFigure, Reserved, Spend, UNLIMITED};
use crate::policy::day;
use crate::record::RunRef;
use crate::stop::Stop;
use crate::store::{Add, Change, Guard, StoreError};
use std::sync::Arc;

/// Counters of a run: what is set aside for model calls under way.
pub(super) const HELD: [&str; 2] = ["held_tokens", "held_micro_dollars"];

/// What stands before the day in the names of a user's counters.
const DAY: &str = "day/";

const DAY_MS: u64 = 24 * 3600 * 1000;

/// What a model call may use at most, set aside in the run's purse and, where something is limited, in the store.
///
/// Dropped without being settled, it comes back to the purse; in the store it stays taken, since the call may have been
/// charged.
#[must_use = "what is set aside has to be settled"]
#[derive(Debug)]
pub struct SetAside {
    session: Session,
    purse: Reserved,
    most: Spend,
    /// The day on which it was taken, if the user's day is limited; nothing if the store was not told at all.
    stored: Option<Option<String>>,
}

impl Session {
    /// Sets aside the most that a model call may use, before it is made.
    ///
    /// # Errors
    /// If the run, or the user on this day, has not so much left; if the store fails.
    pub async fn set_aside(&self, most: impl Into<Spend>) -> Result<SetAside, Stop> {
        let most = most.into();
        let budget = &self.0.budget;
        let purse = budget.reserve(most)?;
        let day_limits = budget.per_user_day();
        let stored = match (budget.limits_models(), day_limits.limits_models()) {
            (false, false) => None,
            (_, by_day) => {
                let mut change = Change {
                    add: self.held(most),
                    ..Change::default()
                };
                let mut of = None;
                if by_day {
                    if most.micro_dollars.is_none() && day_limits.micro_dollars != UNLIMITED {
                        return Err(Stop::MaxCost);
                    }
                    let today = day(self.now().await?);
                    let takes = [
                        (DayFigure::Tokens, most.tokens, day_limits.tokens),
                        (
                            DayFigure::Money,
                            most.micro_dollars.unwrap_or(0),
                            day_limits.micro_dollars,
                        ),
                    ];
                    for (figure, by, limit) in takes {
                        self.count_day(&mut change, &today, (figure, by), limit);
                    }
                    of = Some(today);
                }
                self.commit(change).await.map_err(broken)?;
                Some(of)
            }
        };
        Ok(SetAside {
            session: self.clone(),
            purse,
            most,
            stored,
        })
    }

    /// The counters of what is set aside for a model call.
    fn held(&self, most: Spend) -> Vec<Add> {
        let amounts = [most.tokens, most.micro_dollars.unwrap_or(0)];
        let counters = HELD.into_iter().zip(amounts).filter(|(_, by)| *by > 0);
        let adds = counters.map(|(counter, by)| Add {
            run: self.0.run.clone(),
            counter: counter.to_owned(),
            by,
        });
        adds.collect()
    }

    /// Counts a call that the store does not know yet, if the user's day is limited.
    pub(super) async fn count_call_of_day(&self, change: &mut Change) -> Result<(), StoreError> {
        let limit = self.0.budget.per_user_day().tool_calls;
        if limit != UNLIMITED {
            let today = day(self.0.parts.store.now_ms().await?);
            self.count_day(change, &today, (DayFigure::ToolCalls, 1), limit);
        }
        Ok(())
    }

    /// Adds to one of the user's figures of a day, on the condition that it stays within its limit.
    fn count_day(
        &self,
        change: &mut Change,
        today: &str,
        (figure, by): (DayFigure, u64),
        limit: u64,
    ) {
        if limit == UNLIMITED {
            return;
        }
        let (run, counter) = (self.of_user(), counter(today, figure));
        change.guards.push(Guard::Most {
            run: run.clone(),
            counter: counter.clone(),
            most: limit,
        });
        change.add.push(Add { run, counter, by });
    }

    /// Whose counters those of a user are: they outlive runs and threads.
    fn of_user(&self) -> Arc<RunRef> {
        let scope = &self.0.scope;
        Arc::new(RunRef {
            tenant: scope.tenant.clone(),
            agent: String::new(),
            thread: String::new(),
            run: format!("user/{}", scope.user),
        })
    }
}

impl SetAside {
    /// What it really was. It may be more than was set aside, by what one answer can be off.
    ///
    /// # Errors
    /// If the store fails: then what was set aside stays taken there.
    pub async fn spend(self, used: impl Into<Spend>) -> Result<(), Stop> {
        let used = used.into();
        let SetAside {
            session,
            purse,
            most,
            stored,
        } = self;
        purse.spend(used);
        let Some(today) = stored else {
            return Ok(());
        };
        let mut change = Change {
            give_back: session.held(most),
            ..Change::default()
        };
        let figures = [
            (DayFigure::Tokens, most.tokens, used.tokens),
            (
                DayFigure::Money,
                most.micro_dollars.unwrap_or(0),
                used.micro_dollars.unwrap_or(0),
            ),
        ];
        let limits = session.0.budget.per_user_day();
        for (figure, most, used) in figures {
            let Some(today) = today.as_deref().filter(|_| match figure {
                DayFigure::Money => limits.micro_dollars != UNLIMITED,
                _ => limits.tokens != UNLIMITED,
            }) else {
                continue;
            };
            let (list, by) = match most >= used {
                true => (&mut change.give_back, most - used),
                false => (&mut change.add, used - most),
            };
            if by > 0 {
                list.push(Add {
                    run: session.of_user(),
                    counter: counter(today, figure),
                    by,
                });
            }
        }
        session.commit(change).await.map_err(broken)
    }
}

fn counter(today: &str, figure: DayFigure) -> String {
    format!("{DAY}{today}/{}", figure.name())
}

/// The end of a run that met the limit of its user's day, if this is the guard of one.
pub(super) fn of_day(guard: &Guard) -> Option<Stop> {
    let Guard::Most { counter, most, .. } = guard else {
        return None;
    };
    let (today, figure) = counter.strip_prefix(DAY)?.split_once('/')?;
    let what = DayFigure::named(figure)?;
    let until = crate::policy::instant(&format!("{today}T00:00:00Z"))?;
    let until = day(until.saturating_add(DAY_MS));
    let (amount, of) = match what {
        DayFigure::ToolCalls => (most.to_string(), "tool calls"),
        DayFigure::Tokens => (most.to_string(), "tokens"),
        DayFigure::Money => (
            format!("{}.{:06}", most / 1_000_000, most % 1_000_000),
            "US dollars",
        ),
    };
    Some(Stop::UserDay {
        what,
        text: format!(
            "of the {amount} {of} that this user has for {today} not enough are left; they are there again from {until}T00:00:00Z on"
        ),
    })
}
