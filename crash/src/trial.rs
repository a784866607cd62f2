//! One run with its kills, all of it said by a seed; and one run that ends at a named place.
//!
//! Called by `series`.

use std::time::Duration;

use uuid::Uuid;

use crate::Fault;
use crate::check::{Evidence, Findings, check};
use crate::child::{Order, Stop};
use crate::counter::Counter;
use crate::graphs::Shape;
use crate::history::Uncut;
use crate::launch::{Attempt, End, Launch, Line};
use crate::place::Stand;
use crate::seed::Seed;

/// After so many kills a run is left alone.
const MOST_KILLS: u64 = 3;

/// What is needed to run trials.
#[derive(Clone, Copy)]
pub struct Trial<'a> {
    /// How children are started.
    pub launch: &'a Launch,
    /// Where the stores are.
    pub stand: &'a Stand,
    /// The world.
    pub counter: &'a Counter,
    /// The graph.
    pub shape: Shape,
    /// The durability.
    pub durability: &'a str,
    /// How the run goes uncut.
    pub uncut: &'a Uncut,
    /// How long an uncut child lives.
    pub life: Duration,
}

/// How a trial went.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What was found.
    pub findings: Findings,
    /// How often a child was cut.
    pub cuts: usize,
    /// The writes of the first child, as far as it could say.
    pub writes: Vec<String>,
    /// How long the first child lived.
    pub lived: Duration,
}

impl Trial<'_> {
    /// A run that is killed at moments which the seed says.
    ///
    /// # Errors
    /// When the harness itself cannot go on.
    pub async fn by_seed(&self, seed: u64) -> Result<Verdict, Fault> {
        let mut chance = Seed(seed);
        let kills = 1 + chance.below(MOST_KILLS);
        let name = format!("{}-{}-{seed}", self.shape, self.durability);
        self.run(&name, |process| {
            // A little longer than an uncut life, so that its very end is hit too.
            let at = self.life.mul_f64(chance.share() * 1.05);
            ((process as u64) < kills).then_some(Cut::Kill(at))
        })
        .await
    }

    /// A run whose first child ends by itself at a place in the sequence of writes.
    ///
    /// # Errors
    /// When the harness itself cannot go on.
    pub async fn at_failpoint(&self, stop: Stop) -> Result<Verdict, Fault> {
        let when = format!("{:?}", stop.when).to_lowercase();
        let name = format!("{}-{}-{when}-{}", self.shape, self.durability, stop.write);
        self.run(&name, |process| (process == 0).then_some(Cut::Stop(stop)))
            .await
    }

    /// A run that nobody cuts.
    ///
    /// # Errors
    /// When the harness itself cannot go on.
    pub async fn left_alone(&self) -> Result<Verdict, Fault> {
        self.run(&format!("{}-{}-uncut", self.shape, self.durability), |_| {
            None
        })
        .await
    }

    async fn run(
        &self,
        name: &str,
        mut cut: impl FnMut(usize) -> Option<Cut>,
    ) -> Result<Verdict, Fault> {
        self.stand.clear(name);
        let mut order = Order {
            place: self.stand.place(name),
            // Trials of several calls may share a Postgres.
            thread: format!("{name}-{}", Uuid::now_v7().simple()),
            run: Uuid::now_v7(),
            shape: self.shape,
            durability: self.durability.to_owned(),
            counter: self.counter.address(),
            process: 0,
            takes_ms: 1,
            stop: None,
        };
        let mut attempts: Vec<Attempt> = Vec::new();
        loop {
            order.process = attempts.len();
            let cut = cut(order.process);
            let kill = match cut {
                Some(Cut::Kill(at)) => Some(at),
                _ => None,
            };
            order.stop = match cut {
                Some(Cut::Stop(stop)) => Some(stop),
                _ => None,
            };
            let attempt = self.launch.start(&order)?.end(kill)?;
            let cut = attempt.end == End::Cut;
            attempts.push(attempt);
            if !cut {
                break;
            }
        }
        let hits = self.counter.hits(&order.thread);
        let findings = check(Evidence {
            order: &order,
            attempts: &attempts,
            hits: &hits,
            uncut: self.uncut,
        })
        .await?;
        if findings.wrong.is_empty() {
            self.stand.clear(name);
        }
        let first = attempts.first();
        Ok(Verdict {
            findings,
            cuts: attempts
                .iter()
                .filter(|attempt| attempt.end == End::Cut)
                .count(),
            writes: first.map(writes).unwrap_or_default(),
            lived: first.map(|first| first.lived).unwrap_or_default(),
        })
    }
}

/// How a child is cut.
#[derive(Clone, Copy)]
enum Cut {
    Kill(Duration),
    Stop(Stop),
}

fn writes(attempt: &Attempt) -> Vec<String> {
    let said = attempt.lines.iter().find_map(|line| match line {
        Line::Writes(kinds) => Some(kinds.clone()),
        _ => None,
    });
    said.unwrap_or_default()
}
