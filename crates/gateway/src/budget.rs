//! A run's purse: whatever work may use is taken out first, so that no parallel work uses it twice.
//!
//! Sessions count calls here, agents their steps, model calls and children. The bookkeeping is in
//! `purse.rs`, the stopwatch in `clock.rs`, prices in `price.rs`. Nothing here waits for anything but
//! the clock, and nothing is saved here: a session saves [`Usage`].

mod clock;
mod day;
mod price;
mod purse;
#[cfg(test)]
mod tests;

use crate::stop::Stop;
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

/// Where a purse came from, and goes back to.
#[derive(Debug)]
struct Origin {
    from: Budget,
    /// What was taken out.
    taken: Amounts,
    /// What the purse above has counted already of what this one uses: by the same child, before it waited.
    counted: Used,
    share: Share,
}

/// What a purse was carved for.
#[derive(Debug)]
enum Share {
    Child,
    /// A child that may be carved for again.
    Named(String),
    /// A part of the same run that is kept for its end.
    KeptBack,
}

/// What a purse used of what it had from the one above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    amounts: Amounts,
    unpriced: u64,
}

#[derive(Debug)]
struct State {
    purse: Purse,
    watch: Stopwatch,
    /// What its named children have used so far, as it was counted when they were dropped.
    children: BTreeMap<String, Used>,
}

impl Used {
    /// As counters, by their names.
    pub(crate) const FIGURES: [&str; 5] = [
        "tool_calls",
        "tokens",
        "micro_dollars",
        "children",
        "unpriced",
    ];

    /// In the order of [`Used::FIGURES`].
    pub(crate) fn figures(self) -> [u64; 5] {
        let [calls, tokens, money, children] = self.amounts.figures();
        [calls, tokens, money, children, self.unpriced]
    }

    /// The same read back.
    pub(crate) fn of([calls, tokens, money, children, unpriced]: [u64; 5]) -> Used {
        Used {
            amounts: Amounts::of_figures([calls, tokens, money, children]),
            unpriced,
        }
    }

    fn less(self, other: Used) -> Used {
        Used {
            amounts: self.amounts.less(other.amounts),
            unpriced: self.unpriced.saturating_sub(other.unpriced),
        }
    }

    fn at_least(self, other: Used) -> Used {
        Used {
            amounts: self.amounts.at_least(other.amounts),
            unpriced: self.unpriced.max(other.unpriced),
        }
    }
}

impl Budget {
    /// A full purse. Its time runs from now on.
    pub fn new(limits: Limits) -> Budget {
        Budget::from(limits, None)
    }

    fn from(limits: Limits, origin: Option<Origin>) -> Budget {
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

    /// A child's purse, filled from this one.
    ///
    /// Calls, tokens, money and grandchildren are taken out of this purse at once, and what the child
    /// leaves comes back when the last handle of its purse is dropped. Steps, seconds and the caps of
    /// single tools are limits of the child's own; its time never outlasts the parent's. A share that is
    /// [`UNLIMITED`] is no share: the child then spends from this purse as it goes.
    pub fn carve(&self, share: Limits) -> Result<Budget, Stop> {
        self.carve_as(Share::Child, share, Used::default())
    }

    /// [`Budget::carve`] for a child that can wait and go on: the same name is the same child. It is one child however
    /// often it is carved for, and what it used before it waited is counted once.
    ///
    /// # Errors
    /// As [`Budget::carve`].
    pub fn carve_again(&self, name: &str, share: Limits) -> Result<Budget, Stop> {
        let counted = self.lock().children.get(name).copied();
        let share_of = Share::Named(name.to_owned());
        self.carve_as(share_of, share, counted.unwrap_or_default())
    }

    /// What is left, with what a child of this name has used of it before: what can be its share.
    pub fn left_for(&self, name: &str) -> Limits {
        let counted = self.lock().children.get(name).copied().unwrap_or_default();
        let [calls, tokens, money, children] = counted.amounts.figures();
        let left = self.left();
        // What is not limited stays so.
        Limits {
            tool_calls: left.tool_calls.saturating_add(calls),
            tokens: left.tokens.saturating_add(tokens),
            micro_dollars: left.micro_dollars.saturating_add(money),
            children: left.children.saturating_add(children),
            ..left
        }
    }

    /// A part of the run's tokens and money that nothing else can use, for what it does last: an answer that is written
    /// from what there is when the rest is used up. What is not used of it comes back when it is dropped.
    ///
    /// ```
    /// use paraph_gateway::{Budget, Limits, Stop};
    /// let budget = Budget::new(Limits { micro_dollars: 1_000, ..Limits::default() });
    /// let last = budget.keep_back(300)?;
    /// budget.reserve(700)?.spend(700);
    /// assert_eq!(budget.reserve(1).err(), Some(Stop::MaxCost));
    /// last.reserve(200)?.spend(200);                       // the last answer
    /// drop(last);
    /// assert_eq!((budget.used().micro_dollars, budget.left().micro_dollars), (900, 100));
    /// # Ok::<(), Stop>(())
    /// ```
    ///
    /// # Errors
    /// If there is not so much left.
    pub fn keep_back(&self, most: impl Into<Spend>) -> Result<Budget, Stop> {
        let most = most.into();
        let share = Limits {
            tokens: match most.tokens {
                0 => UNLIMITED,
                tokens => tokens,
            },
            micro_dollars: most.micro_dollars.unwrap_or(UNLIMITED),
            ..Limits::unlimited()
        };
        self.carve_as(Share::KeptBack, share, Used::default())
    }

    fn carve_as(&self, share_of: Share, share: Limits, counted: Used) -> Result<Budget, Stop> {
        let taken = match share_of {
            Share::KeptBack => Amounts::kept_back(&share),
            Share::Child | Share::Named(_) => Amounts::shared(&share).less(counted.amounts),
        };
        self.hold(taken, false)?;
        Ok(Budget::from(
            share,
            Some(Origin {
                from: self.clone(),
                taken,
                counted,
                share: share_of,
            }),
        ))
    }

    /// What this purse's user may use on one day: the stricter of its own limits and those above it.
    pub fn per_user_day(&self) -> DayLimits {
        let own = self.lock().purse.limits().per_user_day;
        match self.parent() {
            Some(parent) => own.stricter(parent.per_user_day()),
            None => own,
        }
    }

    /// What its named children have used so far; nothing if there are none.
    pub(crate) fn children(&self) -> BTreeMap<String, Used> {
        self.lock().children.clone()
    }

    /// What its named children had used in an earlier life, which its own usage includes.
    pub(crate) fn know_children(&self, children: BTreeMap<String, Used>) {
        self.lock().children = children;
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
        let Some(origin) = &self.origin else {
            return;
        };
        let used = Used {
            amounts: match origin.share {
                Share::KeptBack => state.purse.used_of_kept(),
                Share::Child | Share::Named(_) => state.purse.used_of(),
            },
            unpriced: state.purse.used().unpriced,
        };
        let new = used.less(origin.counted);
        origin.from.settle(origin.taken, new.amounts, new.unpriced);
        if let Share::Named(name) = &origin.share {
            let counted = used.at_least(origin.counted);
            let mut above = origin.from.lock();
            above.children.insert(name.clone(), counted);
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
