//! What of a run's usage the store has been told of, and how usage is written as counters.
//!
//! Calls are not counted here: each has a record, and the records are counted when a run is opened.

use crate::budget::Usage;
use crate::record::{CallRecord, RunRef};
use crate::store::Add;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const COUNTERS: [&str; 7] = [
    "steps",
    "child_tool_calls",
    "tokens",
    "micro_dollars",
    "unpriced",
    "children",
    "active_ms",
];

type Figures = [u64; COUNTERS.len()];

/// In the order of [`COUNTERS`].
fn figures(used: &Usage) -> Figures {
    [
        used.steps,
        used.child_tool_calls,
        used.tokens,
        used.micro_dollars,
        used.unpriced,
        used.children,
        u64::try_from(used.active.as_millis()).unwrap_or(u64::MAX),
    ]
}

/// What the store knows of a run's usage.
#[derive(Debug)]
pub(super) struct Ledger(Mutex<Figures>);

/// What is on its way to the store. If it is dropped before it is [`Spent::told`], because the write failed
/// or its caller was cut off, it is told with the next write: rather twice than never.
#[must_use]
pub(super) struct Spent<'l> {
    ledger: &'l Ledger,
    figures: Figures,
    told: bool,
}

impl Ledger {
    /// The store knows this much.
    pub(super) fn knowing(used: &Usage) -> Ledger {
        Ledger(Mutex::new(figures(used)))
    }

    /// What the store does not know yet; it counts as told from here on.
    pub(super) fn take(&self, used: &Usage) -> Spent<'_> {
        let mut told = self.lock();
        let mut figures = figures(used);
        for (now, told) in figures.iter_mut().zip(told.iter_mut()) {
            *now = now.saturating_sub(*told);
            *told = told.saturating_add(*now);
        }
        Spent {
            ledger: self,
            figures,
            told: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Spent<'_> {
    fn drop(&mut self) {
        if !self.told {
            let mut told = self.ledger.lock();
            for (told, spent) in told.iter_mut().zip(self.figures) {
                *told = told.saturating_sub(spent);
            }
        }
    }
}

impl Spent<'_> {
    /// The store has it.
    pub(super) fn told(mut self) {
        self.told = true;
    }

    pub(super) fn adds(&self, run: &Arc<RunRef>) -> impl Iterator<Item = Add> {
        let figures = COUNTERS.into_iter().zip(self.figures);
        figures.filter(|(_, by)| *by > 0).map(|(counter, by)| Add {
            run: run.clone(),
            counter: counter.to_owned(),
            by,
        })
    }
}

/// What a run used in its earlier lives.
pub(super) fn usage(records: &[CallRecord], counters: &BTreeMap<String, u64>) -> Usage {
    let [
        steps,
        child_tool_calls,
        tokens,
        micro_dollars,
        unpriced,
        children,
        active_ms,
    ] = COUNTERS.map(|counter| counters.get(counter).copied().unwrap_or(0));
    let mut per_tool = BTreeMap::new();
    for record in records {
        *per_tool.entry(record.tool.clone()).or_default() += 1;
    }
    Usage {
        steps,
        tool_calls: records.len() as u64,
        child_tool_calls,
        tokens,
        micro_dollars,
        unpriced,
        children,
        active: Duration::from_millis(active_ms),
        per_tool,
    }
}
