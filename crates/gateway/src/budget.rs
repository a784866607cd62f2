//! A run's purse: whatever work may use is taken out first, so that no parallel work uses it twice.
//!
//! Sessions count calls here, agents their steps, model calls and children. The bookkeeping is in
//! `purse.rs`, what purses are filled from others in `carving.rs`, a user's day in `day.rs`, the stopwatch in
//! `clock.rs`, prices in `price.rs`. Nothing here waits for anything but the clock, and nothing is saved here: a
//! session saves [`Usage`].

mod carving;
mod clock;
mod day;
mod price;
mod purse;
#[cfg(test)]
mod tests;

use crate::stop::Stop;
use carving::Origin;
pub(crate) use carving::Used;
use clock::Stopwatch;
pub use day::{DayFigure, DayLimits};
pub use price::Price;
use purse::{Amounts, Payer, Purse};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// No limit, in any field of [`Limits`].
pub const UNLIMITED: u64 = u64::MAX;

/// What a run may use at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Decisions of the model.
    pub steps: u64,
    /// Tool calls, also those that were denied.
    pub tool_calls: u64,
    /// Seconds in which the run is active. While a person is asked the time stands still.
    pub seconds: u64,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub micro_dollars: u64,
    /// Children that may be started, grandchildren included.
    pub children: u64,
    /// Calls of single tools, within `tool_calls`.
    pub per_tool: BTreeMap<String, u64>,
    /// What the run's user may use on one day in all runs together. It is no share of a purse: the store counts it.
    pub per_user_day: DayLimits,
}

impl Default for Limits {
    /// The article's library: 8 steps, 6 calls, 20 seconds. Tokens and money are not limited, children
    /// are not allowed.
    fn default() -> Limits {
        Limits {
            steps: 8,
            tool_calls: 6,
            seconds: 20,
            tokens: UNLIMITED,
            micro_dollars: UNLIMITED,
            children: 0,
            per_tool: BTreeMap::new(),
            per_user_day: DayLimits::default(),
        }
    }
}

impl Limits {
    /// No limit of any kind. A place to start from with `..`, not one to run with.
    pub fn unlimited() -> Limits {
        Limits {
            steps: UNLIMITED,
            tool_calls: UNLIMITED,
            seconds: UNLIMITED,
            tokens: UNLIMITED,
            micro_dollars: UNLIMITED,
            children: UNLIMITED,
            per_tool: BTreeMap::new(),
            per_user_day: DayLimits::default(),
        }
    }
}

/// What one piece of work used, or may use at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spend {
    /// Tokens, in and out.
    pub tokens: u64,
    /// Millionths of a US dollar; nothing if the price is not known. Unknown is not zero.
    pub micro_dollars: Option<u64>,
}

impl From<u64> for Spend {
    /// Money alone, in millionths of a US dollar.
    fn from(micro_dollars: u64) -> Spend {
        Spend {
            tokens: 0,
            micro_dollars: Some(micro_dollars),
        }
    }
}

/// What a run has used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Decisions of the model.
    pub steps: u64,
    /// Tool calls of the run itself.
    pub tool_calls: u64,
    /// Tool calls of its finished children.
    pub child_tool_calls: u64,
    /// Tokens, in and out, children included.
    pub tokens: u64,
    /// Money whose price was known, in millionths of a US dollar, children included.
    pub micro_dollars: u64,
    /// How many model calls had no known price.
    pub unpriced: u64,
    /// Children that were started.
    pub children: u64,
    /// Active time.
    pub active: Duration,
    /// The calls of each tool, children included.
    pub per_tool: BTreeMap<String, u64>,
}

impl Usage {
    /// The larger of each figure that a model call raises; the others are this one's.
    pub(crate) fn at_least(self, known: &Usage) -> Usage {
        Usage {
            steps: self.steps.max(known.steps),
            tokens: self.tokens.max(known.tokens),
            micro_dollars: self.micro_dollars.max(known.micro_dollars),
            unpriced: self.unpriced.max(known.unpriced),
            ..self
        }
    }

    fn totals(&self, active: Duration) -> Usage {
        Usage {
            active,
            per_tool: BTreeMap::new(),
            ..*self
        }
    }

    /// The whole cost in millionths of a US dollar; nothing if any price was unknown.
    pub fn cost(&self) -> Option<u64> {
        (self.unpriced == 0).then_some(self.micro_dollars)
    }
}

/// A run's purse. A handle: clones spend from the same one.
///
/// ```
/// use paraph_gateway::{Budget, Limits, Stop};
/// let budget = Budget::new(Limits { steps: 1, ..Limits::default() });
/// assert_eq!(budget.step(), Ok(1));
/// assert_eq!(budget.step(), Err(Stop::MaxSteps));
/// ```
#[derive(Clone, Debug)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The purse this one was carved from.
    origin: Option<Origin>,
}

#[derive(Debug)]
struct State {
    purse: Purse,
    watch: Stopwatch,
    /// What its named children have used so far, as it was counted when they were dropped.
    children: BTreeMap<String, Used>,
}

impl Budget {
    /// A full purse. Its time runs from now on.
    pub fn new(limits: Limits) -> Budget {
        Budget::with_origin(limits, None)
    }

    fn with_origin(limits: Limits, origin: Option<Origin>) -> Budget {
        let watch = Stopwatch::started(limits.seconds);
        let purse = Purse::new(limits);
        Budget(Arc::new(Shared {
            state: Mutex::new(State {
                purse,
                watch,
                children: BTreeMap::new(),
            }),
            origin,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parent(&self) -> Option<&Budget> {
        self.0.origin.as_ref().map(|origin| &origin.from)
    }

    /// What is left. Of time, whole seconds; see [`Budget::time_left`] for the rest.
    pub fn left(&self) -> Limits {
        let seconds = match self.time_left() {
            Duration::MAX => UNLIMITED,
            left => left.as_secs(),
        };
        let mut left = self.lock().purse.left();
        left.seconds = seconds;
        left
    }

    /// What was used so far.
    pub fn used(&self) -> Usage {
        let state = self.lock();
        Usage {
            active: state.watch.elapsed(Instant::now()),
            ..state.purse.used().clone()
        }
    }

    /// What was used so far, but for the calls of each tool: those may be many names.
    pub(crate) fn totals(&self) -> Usage {
        let state = self.lock();
        state
            .purse
            .used()
            .totals(state.watch.elapsed(Instant::now()))
    }

    /// What the run may use in all.
    pub fn limits(&self) -> Limits {
        self.lock().purse.limits().clone()
    }

    /// Takes what an earlier life of the same run has used already.
    pub(crate) fn charge_earlier(&self, used: &Usage) {
        let mut state = self.lock();
        state.purse.charge_earlier(used);
        state.watch.add(used.active);
    }

    /// Begins a decision of the model and gives its number, from 1.
    ///
    /// When several limits are reached at once, steps are named before time.
    pub fn step(&self) -> Result<u64, Stop> {
        let late = self.is_late();
        let mut state = self.lock();
        state.purse.step(late)
    }

    /// [`Budget::step`] for a decision that may be cut off: it counts for good once it is
    /// [`BegunStep::made`]. One that is dropped before was no decision, and the next has its number.
    ///
    /// # Errors
    /// As [`Budget::step`].
    pub fn begin_step(&self) -> Result<BegunStep, Stop> {
        Ok(BegunStep {
            number: self.step()?,
            of: Some(self.clone()),
        })
    }

    /// Counts a call: first the time, then all calls, then those of this tool. Nothing is counted if
    /// any of them is used up.
    pub(crate) fn count_call(&self, tool: &str) -> Result<(), Stop> {
        if self.is_late() {
            return Err(Stop::MaxSeconds);
        }
        self.take_call(tool, Payer::Own)
    }

    /// Takes a call from this purse, and from those above it as far as they carry it. The parent is
    /// asked while this purse is locked, so that both are taken or none.
    fn take_call(&self, tool: &str, payer: Payer) -> Result<(), Stop> {
        let mut state = self.lock();
        state.purse.may_call(tool, payer)?;
        if let Some(parent) = self.parent() {
            parent.take_call(tool, state.purse.payer_above(payer))?;
        }
        state.purse.call(tool, payer);
        Ok(())
    }

    /// Sets aside the most that a model call may use, before it is made. What it did not use comes back
    /// when the reservation is settled or dropped.
    ///
    /// A limited purse refuses what has no known price.
    pub fn reserve(&self, most: impl Into<Spend>) -> Result<Reserved, Stop> {
        let most = most.into();
        self.hold(Amounts::of(most), most.micro_dollars.is_none())?;
        Ok(Reserved {
            from: self.clone(),
            most,
            settled: false,
        })
    }

    fn hold(&self, amounts: Amounts, unpriced: bool) -> Result<(), Stop> {
        let mut state = self.lock();
        state.purse.may_hold(amounts, unpriced)?;
        if let Some(parent) = self.parent() {
            parent.hold(state.purse.share_of_parent(amounts), unpriced)?;
        }
        state.purse.hold(amounts);
        Ok(())
    }

    fn settle(&self, held: Amounts, used: Amounts, unpriced: u64) {
        let mut state = self.lock();
        state.purse.settle(held, used, unpriced);
        if let Some(parent) = self.parent() {
            let (held, used) = (
                state.purse.share_of_parent(held),
                state.purse.share_of_parent(used),
            );
            parent.settle(held, used, 0);
        }
    }

    /// Whether model calls out of this purse are limited: by itself or by one above it.
    pub(crate) fn limits_models(&self) -> bool {
        let state = self.lock();
        let limits = state.purse.limits();
        let own = limits.tokens != UNLIMITED || limits.micro_dollars != UNLIMITED;
        own || self.parent().is_some_and(Budget::limits_models)
    }

    /// What this purse's user may use on one day: the stricter of its own limits and those above it.
    pub fn per_user_day(&self) -> DayLimits {
        let own = self.lock().purse.limits().per_user_day;
        match self.parent() {
            Some(parent) => own.stricter(parent.per_user_day()),
            None => own,
        }
    }

    /// When the run's time is up, if it goes on without a pause. Nothing if its time is not limited.
    pub fn deadline(&self) -> Option<Instant> {
        match self.time_left() {
            Duration::MAX => None,
            left => Instant::now().checked_add(left),
        }
    }

    /// The active time that is left; [`Duration::MAX`] if it is not limited.
    pub fn time_left(&self) -> Duration {
        let own = self.lock().watch.left(Instant::now());
        match self.parent() {
            Some(parent) => own.min(parent.time_left()),
            None => own,
        }
    }

    fn is_late(&self) -> bool {
        self.time_left().is_zero()
    }

    /// Stops the run's time as long as the pause lives: while a person is asked.
    pub fn pause(&self) -> Pause {
        self.lock().watch.pause(Instant::now());
        Pause(self.clone())
    }

    /// Waits for some work, but no longer than its own limit or the run's time. The earlier of the two
    /// names the reason; if both end at once it is the run's.
    ///
    /// ```
    /// use paraph_gateway::{Budget, Late, Limits};
    /// use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let budget = Budget::new(Limits { seconds: 20, ..Limits::default() });
    /// let model_call = std::future::pending::<String>();
    /// assert_eq!(budget.within(Duration::from_secs(60), model_call).await, Err(Late::Run));
    /// # }
    /// ```
    pub async fn within<F: Future>(&self, limit: Duration, work: F) -> Result<F::Output, Late> {
        let own = Instant::now().checked_add(limit);
        let (until, late) = match (own, self.deadline()) {
            (Some(own), Some(run)) if own < run => (own, Late::Own),
            (_, Some(run)) => (run, Late::Run),
            (Some(own), None) => (own, Late::Own),
            (None, None) => return Ok(work.await),
        };
        tokio::time::timeout_at(until, work).await.map_err(|_| late)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(origin) = &self.origin {
            origin.give_back(&state.purse);
        }
    }
}

/// Which of two limits a piece of work ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Its own.
    Own,
    /// The run's time.
    Run,
}

/// A decision of the model that is under way.
#[must_use = "a decision that is dropped was not made"]
#[derive(Debug)]
pub struct BegunStep {
    number: u64,
    /// Nothing once it was made.
    of: Option<Budget>,
}

impl BegunStep {
    /// Its number, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The model has decided, or failed: the step is used up.
    pub fn made(mut self) {
        self.of = None;
    }
}

impl Drop for BegunStep {
    fn drop(&mut self) {
        if let Some(budget) = &self.of {
            budget.lock().purse.give_step_back();
        }
    }
}

/// Money and tokens that are set aside. Dropped without being settled, all of it comes back.
#[must_use = "what is set aside comes back at once if the reservation is not kept"]
#[derive(Debug)]
pub struct Reserved {
    from: Budget,
    most: Spend,
    settled: bool,
}

impl Reserved {
    /// What it really was. It may be more than was reserved, by what one answer can be off; then the
    /// rest is taken too, even from an empty purse.
    pub fn spend(mut self, used: impl Into<Spend>) {
        let used = used.into();
        self.settled = true;
        let unpriced = u64::from(used.micro_dollars.is_none());
        self.from
            .settle(Amounts::of(self.most), Amounts::of(used), unpriced);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.settled {
            self.from
                .settle(Amounts::of(self.most), Amounts::default(), 0);
        }
    }
}

/// While it lives, the run's time stands still.
#[must_use = "the time goes on as soon as the pause is dropped"]
#[derive(Debug)]
pub struct Pause(Budget);

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.lock().watch.resume(Instant::now());
    }
}
