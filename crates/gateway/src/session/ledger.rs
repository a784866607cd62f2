//! What of a run's usage the store has been told of, and how usage is written as counters.
//!
//! Calls are not counted here: each has a record, and the records are counted when a run is opened.

use super::daily::HELD;
use crate::budget::{Usage, Used};
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

/// What stands before the name of a child in the names of the counters that say what it used.
const CHILD: &str = "child/";

type Figures = [u64; COUNTERS.len()];

type Children = BTreeMap<String, Used>;

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
pub(super) struct Ledger(Mutex<Told>);

#[derive(Debug)]
struct Told {
    figures: Figures,
    children: Children,
}

/// What is on its way to the store. If it is dropped before it is [`Spent::told`], because the write failed
/// or its caller was cut off, it is told with the next write: rather twice than never.
#[must_use]
pub(super) struct Spent<'l> {
    ledger: &'l Ledger,
    figures: Figures,
    children: BTreeMap<String, [u64; Used::FIGURES.len()]>,
    told: bool,
}

impl Ledger {
    /// The store knows this much.
    pub(super) fn knowing(used: &Usage, children: Children) -> Ledger {
        let figures = figures(used);
        Ledger(Mutex::new(Told { figures, children }))
    }

    /// What the store does not know yet; it counts as told from here on.
    pub(super) fn take(&self, used: &Usage, of_children: &Children) -> Spent<'_> {
        let mut told = self.lock();
        let mut figures = figures(used);
        for (now, told) in figures.iter_mut().zip(told.figures.iter_mut()) {
            *now = now.saturating_sub(*told);
            *told = told.saturating_add(*now);
        }
        let mut children = BTreeMap::new();
        for (name, now) in of_children {
            let known = told.children.entry(name.clone()).or_default();
            if *known != *now {
                let mut new = now.figures();
                for (new, known) in new.iter_mut().zip(known.figures()) {
                    *new = new.saturating_sub(known);
                }
                children.insert(name.clone(), new);
                *known = *now;
            }
        }
        Spent {
            ledger: self,
            figures,
            children,
            told: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Spent<'_> {
    fn drop(&mut self) {
        if !self.told {
            let mut told = self.ledger.lock();
            for (told, spent) in told.figures.iter_mut().zip(self.figures) {
                *told = told.saturating_sub(spent);
            }
            for (name, spent) in &self.children {
                if let Some(known) = told.children.get_mut(name) {
                    let mut figures = known.figures();
                    for (told, spent) in figures.iter_mut().zip(spent) {
                        *told = told.saturating_sub(*spent);
                    }
                    *known = Used::of(figures);
                }
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
        // Most figures are nothing: names are made of the others alone.
        let figures = COUNTERS.into_iter().zip(self.figures);
        let figures = figures.filter(|(_, by)| *by > 0);
        let figures = figures.map(|(counter, by)| (counter.to_owned(), by));
        let children = self.children.iter().flat_map(|(name, figures)| {
            let figures = Used::FIGURES.into_iter().zip(*figures);
            let figures = figures.filter(|(_, by)| *by > 0);
            figures.map(move |(figure, by)| (format!("{CHILD}{name}/{figure}"), by))
        });
        figures.chain(children).map(|(counter, by)| Add {
            run: run.clone(),
            counter,
            by,
        })
    }
}

/// What the children of a run have used, as the run has counted it.
pub(super) fn children(counters: &BTreeMap<String, u64>) -> Children {
    let mut children: BTreeMap<String, [u64; Used::FIGURES.len()]> = BTreeMap::new();
    for (counter, value) in counters {
        let of_child = counter.strip_prefix(CHILD);
        let Some((name, figure)) = of_child.and_then(|rest| rest.rsplit_once('/')) else {
            continue;
        };
        let figures = children.entry(name.to_owned()).or_default();
        let at = Used::FIGURES.iter().position(|known| *known == figure);
        if let Some(slot) = at.and_then(|at| figures.get_mut(at)) {
            *slot = *value;
        }
    }
    let children = children.into_iter();
    children
        .map(|(name, figures)| (name, Used::of(figures)))
        .collect()
}

/// What a run used in its earlier lives. What is still set aside for a model call was so when a life ended: nobody knows
/// what that call was charged, so it counts as spent.
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
    let lost = HELD.map(|counter| counters.get(counter).copied().unwrap_or(0));
    let [lost_tokens, lost_money] = lost;
    let mut per_tool = BTreeMap::new();
    for record in records {
        *per_tool.entry(record.tool.clone()).or_default() += 1;
    }
    Usage {
        steps,
        tool_calls: records.len() as u64,
        child_tool_calls,
        tokens: tokens.saturating_add(lost_tokens),
        micro_dollars: micro_dollars.saturating_add(lost_money),
        unpriced,
        children,
        active: Duration::from_millis(active_ms),
        per_tool,
    }
}
