//! Many trials, several at a time, and what is printed of them.
//!
//! Called by `paraph-crash` and by tests.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::Fault;
use crate::child::{Stop, When};
use crate::counter::Counter;
use crate::graphs::Shape;
use crate::history::{Uncut, uncut};
use crate::launch::Launch;
use crate::place::Stand;
use crate::tally::{percent, shortened, upper_bound};
use crate::trial::{Trial, Verdict};

/// What a series is about.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// How children are started.
    pub launch: &'a Launch,
    /// Where the stores are.
    pub stand: &'a Stand,
    /// The graph.
    pub shape: Shape,
    /// The durability.
    pub durability: &'a str,
    /// How many trials go on at the same time.
    pub workers: usize,
}

/// How a series went.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// What it was about.
    pub title: String,
    /// How many runs.
    pub trials: usize,
    /// How many children were cut.
    pub cuts: usize,
    /// The runs that did not go well: which, and what was found.
    pub failed: Vec<(String, Vec<String>)>,
    /// See [`crate::Findings::repeats`].
    pub repeats: usize,
    /// See [`crate::Findings::renewed`].
    pub renewed: usize,
    /// How many effects there were in all runs, each counted once.
    pub effects: usize,
}

impl Series {
    fn take(&mut self, name: String, verdict: Result<Verdict, Fault>, effects: usize) {
        self.trials += 1;
        match verdict {
            Ok(verdict) => {
                self.cuts += verdict.cuts;
                self.repeats += verdict.findings.repeats;
                self.renewed += verdict.findings.renewed;
                self.effects += effects;
                if !verdict.findings.wrong.is_empty() {
                    self.failed.push((name, verdict.findings.wrong));
                }
            }
            Err(fault) => self
                .failed
                .push((name, vec![format!("the harness: {fault}")])),
        }
    }

    /// With 95 % certainty a kill does harm no more often than this, where none did.
    fn bound(&self) -> String {
        percent(upper_bound(self.cuts as u64, 0))
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<38} {:>5} runs, {:>5} kills, ",
            self.title, self.trials, self.cuts
        )?;
        match self.failed.len() {
            0 => write!(f, "0 failures (95 % bound {}), ", self.bound())?,
            failed => write!(f, "{failed} FAILURES, ")?,
        }
        write!(
            f,
            "{} of {} unkeyed effects done again",
            self.repeats, self.effects
        )?;
        if self.renewed > 0 {
            write!(f, ", {} keyed ones under a new key", self.renewed)?;
        }
        for (name, wrong) in &self.failed {
            write!(f, "\n  {name}")?;
            for line in wrong {
                write!(f, "\n    {}", shortened(line))?;
            }
        }
        Ok(())
    }
}

/// Runs by the seeds from `seed` on, until so many children were killed.
///
/// # Errors
/// When the uncut run does not go well.
pub fn random_kills(
    plan: Plan<'_>,
    runtime: &Handle,
    seed: u64,
    kills: usize,
) -> Result<Series, Fault> {
    let ground = Ground::lay(plan, runtime)?;
    let next = AtomicU64::new(seed);
    let killed = AtomicUsize::new(0);
    let series = ground.series("random kills");
    let series = Mutex::new(series);
    ground.work(|trial| {
        while killed.load(Ordering::SeqCst) < kills {
            let seed = next.fetch_add(1, Ordering::SeqCst);
            let verdict = runtime.block_on(trial.by_seed(seed));
            let cuts = verdict.as_ref().map_or(1, |verdict| verdict.cuts);
            killed.fetch_add(cuts, Ordering::SeqCst);
            let mut series = series.lock().unwrap_or_else(PoisonError::into_inner);
            series.take(format!("--seed {seed}"), verdict, ground.effects());
        }
    });
    Ok(series.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Every durable write once: a child that ends before it, and one that ends after it.
///
/// # Errors
/// When the uncut run does not go well.
pub fn failpoints(plan: Plan<'_>, runtime: &Handle) -> Result<Series, Fault> {
    let ground = Ground::lay(plan, runtime)?;
    let stops: Vec<(String, Stop)> = ground
        .writes
        .iter()
        .enumerate()
        .flat_map(|(write, kind)| {
            [When::Before, When::After].map(|when| {
                let side = if when == When::Before {
                    "before"
                } else {
                    "after"
                };
                (
                    format!("{side} write {write} ({kind})"),
                    Stop { write, when },
                )
            })
        })
        .collect();
    let next = AtomicUsize::new(0);
    let series = Mutex::new(ground.series("failpoints"));
    ground.work(|trial| {
        while let Some((name, stop)) = stops.get(next.fetch_add(1, Ordering::SeqCst)) {
            let verdict = runtime.block_on(trial.at_failpoint(*stop));
            let mut series = series.lock().unwrap_or_else(PoisonError::into_inner);
            series.take(name.clone(), verdict, ground.effects());
        }
    });
    Ok(series.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// What all trials of a series share.
struct Ground<'a> {
    plan: Plan<'a>,
    counter: Counter,
    uncut: Uncut,
    life: Duration,
    writes: Vec<String>,
}

impl<'a> Ground<'a> {
    /// Runs the graph uncut: in memory to know what is right, in a child to know how long it takes and what it
    /// writes.
    fn lay(plan: Plan<'a>, runtime: &Handle) -> Result<Self, Fault> {
        let mut ground = Ground {
            plan,
            counter: Counter::start()?,
            uncut: runtime.block_on(uncut(plan.shape, plan.durability))?,
            life: Duration::ZERO,
            writes: Vec::new(),
        };
        // Twice, since the first reads the program from the disk.
        for _ in 0..2 {
            let alone = runtime.block_on(ground.trial().left_alone())?;
            if !alone.findings.wrong.is_empty() {
                let wrong = alone.findings.wrong.join("\n");
                return Err(format!("{}, uncut:\n{wrong}", ground.series("").title).into());
            }
            (ground.life, ground.writes) = (alone.lived, alone.writes);
        }
        // Several at a time take longer, and a kill after the end is none.
        ground.life = ground
            .life
            .mul_f64(1.0 + 0.2 * plan.workers.saturating_sub(1) as f64);
        Ok(ground)
    }

    fn trial(&self) -> Trial<'_> {
        Trial {
            launch: self.plan.launch,
            stand: self.plan.stand,
            counter: &self.counter,
            shape: self.plan.shape,
            durability: self.plan.durability,
            uncut: &self.uncut,
            life: self.life,
        }
    }

    fn effects(&self) -> usize {
        self.plan.shape.effects().len()
    }

    fn series(&self, kind: &str) -> Series {
        let plan = &self.plan;
        Series {
            title: format!(
                "{} {} {} {kind}",
                plan.stand.name(),
                plan.shape,
                plan.durability
            ),
            ..Series::default()
        }
    }

    /// Lets several threads work at the same time, until each is through.
    fn work(&self, task: impl Fn(Trial<'_>) + Sync) {
        thread::scope(|scope| {
            for _ in 0..self.plan.workers.max(1) {
                scope.spawn(|| task(self.trial()));
            }
        });
    }
}
