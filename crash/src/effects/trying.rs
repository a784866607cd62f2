//! One errand with its kills, said by a seed or by named places; and many of them, several at a time.
//!
//! Called by `paraph-crash prove` and by tests.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use uuid::Uuid;

use super::World;
use super::acting::Flaw;
use super::driving::{Api, Errand};
use super::judging::{Judged, Traces, judge, mark, plant};
use crate::Fault;
use crate::child::{Stop, When};
use crate::launch::{Attempt, End, Launch, Line, Running};
use crate::place::Stand;
use crate::seed::Seed;
use crate::tally::Tally;

/// After so many kills an errand is left alone.
const MOST_KILLS: u64 = 3;

/// More children than any errand needs.
const MOST_CHILDREN: usize = 10;

/// What a series of errands is about.
#[derive(Clone, Copy)]
pub struct Errands<'a> {
    /// How children are started.
    pub launch: &'a Launch,
    /// Where the stores are.
    pub stand: &'a Stand,
    /// Whom the effect reaches.
    pub api: Api,
    /// A fault in the effect.
    pub flaw: Option<Flaw>,
    /// How many errands go on at the same time.
    pub workers: usize,
}

impl Errands<'_> {
    fn title(&self, kind: &str) -> String {
        let flaw = match self.flaw {
            None => "",
            Some(Flaw::NoLook) => ", without a look",
            Some(Flaw::KeyPerAttempt) => ", a key per attempt",
        };
        format!("{} {} {kind}{flaw}", self.stand.name(), self.api.name())
    }
}

/// How a child is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// So long after it was started.
    Kill(Duration),
    /// So long after it said that the approval is saved, or that it acts.
    KillActing(Duration),
    Stop(Stop),
}

/// How an errand went.
struct Went {
    judged: Judged,
    cuts: usize,
    /// The deeds of each child, as far as it could say.
    deeds: Vec<Vec<String>>,
    /// How long the first child lived.
    lived: Duration,
}

/// What all errands of a series share.
struct Ground<'a> {
    plan: Errands<'a>,
    world: World,
    life: Duration,
    deeds: Vec<String>,
}

impl<'a> Ground<'a> {
    /// Does the errand uncut, to know how long it takes and what is done in it.
    async fn lay(plan: Errands<'a>) -> Result<Ground<'a>, Fault> {
        let mut ground = Ground {
            plan,
            world: World::start()?,
            life: Duration::ZERO,
            deeds: Vec::new(),
        };
        // Twice, since the first reads the program from the disk.
        for _ in 0..2 {
            let alone = ground.run("uncut", |_| None).await?;
            if !alone.judged.wrong.is_empty() {
                let wrong = alone.judged.wrong.join("\n");
                return Err(format!("{}:\n{wrong}", plan.title("uncut")).into());
            }
            ground.life = alone.lived;
            ground.deeds = alone.deeds.into_iter().next().unwrap_or_default();
        }
        // Several at a time take longer, and a kill after the end is none.
        let more = 1.0 + 0.2 * plan.workers.saturating_sub(1) as f64;
        ground.life = ground.life.mul_f64(more);
        Ok(ground)
    }

    async fn run(&self, name: &str, cut: impl Fn(usize) -> Option<Cut>) -> Result<Went, Fault> {
        let name = format!("errand-{:?}-{name}", self.plan.api).to_lowercase();
        self.plan.stand.clear(&name);
        let mut errand = Errand {
            place: self.plan.stand.place(&name),
            // Trials of several calls may share a Postgres.
            thread: format!("{name}-{}", Uuid::now_v7().simple()),
            run: Uuid::now_v7(),
            api: self.plan.api,
            world: self.world.address(),
            flaw: self.plan.flaw,
            stop: None,
        };
        let mut attempts: Vec<Attempt> = Vec::new();
        while attempts.len() < MOST_CHILDREN {
            let cut = cut(attempts.len());
            errand.stop = match cut {
                Some(Cut::Stop(stop)) => Some(stop),
                _ => None,
            };
            let attempt = end(self.plan.launch.start(&errand)?, cut)?;
            let over = attempt.end != End::Cut;
            if let Some(mark) = mark(&attempt)
                && !over
            {
                plant(&self.world, &errand.thread, mark);
            }
            attempts.push(attempt);
            if over {
                break;
            }
        }
        let judged = judge(Traces {
            errand: &errand,
            attempts: &attempts,
            world: &self.world,
        })
        .await?;
        if judged.wrong.is_empty() {
            self.plan.stand.clear(&name);
        }
        self.world.forget(&errand.thread);
        Ok(Went {
            judged,
            cuts: attempts
                .iter()
                .filter(|attempt| attempt.end == End::Cut)
                .count(),
            deeds: attempts.iter().map(deeds).collect(),
            lived: attempts
                .first()
                .map(|first| first.lived)
                .unwrap_or_default(),
        })
    }

    /// Any moment of an uncut life, and a little longer, so that its very end is hit too. In half of the cases a moment
    /// after the approval: most of a life is spent before.
    fn at_random(&self, chance: &mut Seed) -> Cut {
        match chance.below(2) {
            0 => Cut::Kill(self.life.mul_f64(chance.share() * 1.05)),
            _ => Cut::KillActing(self.life.mul_f64(chance.share() * 0.4)),
        }
    }

    /// Lets several threads work at the same time, until each is through.
    fn work(&self, task: impl Fn() + Sync) {
        thread::scope(|scope| {
            for _ in 0..self.plan.workers.max(1) {
                scope.spawn(&task);
            }
        });
    }
}

/// Waits for a child's end, or makes it.
fn end(mut child: Running, cut: Option<Cut>) -> Result<Attempt, Fault> {
    match cut {
        Some(Cut::Kill(at)) => child.end(Some(at)),
        Some(Cut::KillActing(later)) => {
            // A child that finds it approved says so no more: then it is killed at its end, or not at all.
            child.read_until(|line| match line {
                Line::Other(line) => line.starts_with("approved ") || line == "acts",
                Line::Writes(_) => true,
                _ => false,
            });
            let at = child.lived() + later;
            child.end(Some(at))
        }
        Some(Cut::Stop(_)) | None => child.end(None),
    }
}

fn deeds(attempt: &Attempt) -> Vec<String> {
    let said = attempt.lines.iter().find_map(|line| match line {
        Line::Writes(deeds) => Some(deeds.clone()),
        _ => None,
    });
    said.unwrap_or_default()
}

/// A tally that several threads fill.
struct Filled(Mutex<Tally>);

impl Filled {
    fn new(title: String) -> Filled {
        let mut tally = Tally::of(title);
        for what in [KILLS, LOST, DOUBLES, STUCK] {
            tally.count(what, 0);
        }
        Filled(Mutex::new(tally))
    }

    /// Takes in how an errand went; how many kills it had.
    fn take(&self, name: String, went: Result<Went, Fault>) -> usize {
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match went {
            Ok(went) => {
                tally.count(KILLS, went.cuts as u64);
                tally.count(LOST, went.judged.lost);
                tally.count(DOUBLES, went.judged.doubles);
                tally.count(STUCK, went.judged.stuck);
                let again = went.judged.sendings.saturating_sub(1);
                tally.count("sent again", again);
                tally.take(name, went.judged.wrong);
                went.cuts
            }
            Err(fault) => {
                tally.take(name, vec![format!("the harness: {fault}")]);
                1
            }
        }
    }

    fn note(&self, line: String) {
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tally.notes.push(line);
    }

    fn done(self) -> Tally {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

const KILLS: &str = "kills";
const LOST: &str = "lost approvals";
/// What [`Tally::counted`] has the effects under that happened once too often.
pub const DOUBLES: &str = "double effects";
const STUCK: &str = "stuck";

/// Errands by the seeds from `seed` on, until so many children were killed at random moments.
///
/// # Errors
/// When the errand does not go well uncut.
pub fn random_places(
    plan: Errands<'_>,
    runtime: &Handle,
    seed: u64,
    kills: usize,
) -> Result<Tally, Fault> {
    let ground = runtime.block_on(Ground::lay(plan))?;
    let (next, killed) = (AtomicU64::new(seed), AtomicUsize::new(0));
    let tally = Filled::new(plan.title("random kills"));
    ground.work(|| {
        while killed.load(Ordering::SeqCst) < kills {
            let seed = next.fetch_add(1, Ordering::SeqCst);
            let mut chance = Seed(seed);
            let cuts: Vec<Cut> = (0..=chance.below(MOST_KILLS))
                .map(|_| ground.at_random(&mut chance))
                .collect();
            let name = seed.to_string();
            let went = runtime.block_on(ground.run(&name, |process| cuts.get(process).copied()));
            let cuts = tally.take(format!("--seed {seed}"), went);
            killed.fetch_add(cuts, Ordering::SeqCst);
        }
    });
    Ok(tally.done())
}

/// Every place once: a child that ends before each deed, and one that ends after it; then the same with the child
/// that comes after one which died when its message was under way.
///
/// # Errors
/// When the errand does not go well uncut.
pub fn every_place(plan: Errands<'_>, runtime: &Handle) -> Result<Tally, Fault> {
    let ground = runtime.block_on(Ground::lay(plan))?;
    let mut cuts: Vec<(String, Vec<Stop>)> = places("", &ground.deeds, &[]);
    let sent = ground.deeds.iter().position(|deed| deed == "send");
    let under_way = Stop {
        write: sent.ok_or("nothing is sent")?,
        when: When::After,
    };
    let first = [Cut::Stop(under_way)];
    let went = runtime.block_on(ground.run("under-way", |process| first.get(process).copied()))?;
    let second = went.deeds.get(1).cloned().unwrap_or_default();
    cuts.extend(places("sent, then ", &second, &[under_way]));
    let next = AtomicUsize::new(0);
    let tally = Filled::new(plan.title("each place"));
    tally.note(format!("deeds of one errand: {}", ground.deeds.join(" ")));
    tally.note(format!(
        "deeds after a death under way: {}",
        second.join(" ")
    ));
    tally.take("when it was sent".to_owned(), Ok(went));
    ground.work(|| {
        while let Some((name, stops)) = cuts.get(next.fetch_add(1, Ordering::SeqCst)) {
            let file = name.replace([' ', ',', '(', ')'], "-");
            let went = ground.run(&file, |process| stops.get(process).copied().map(Cut::Stop));
            tally.take(name.clone(), runtime.block_on(went));
        }
    });
    Ok(tally.done())
}

/// Both sides of each deed of the child that comes after these.
fn places(before: &str, deeds: &[String], first: &[Stop]) -> Vec<(String, Vec<Stop>)> {
    let mut all = Vec::new();
    for (write, deed) in deeds.iter().enumerate() {
        for (side, when) in [("before", When::Before), ("after", When::After)] {
            let mut stops = first.to_vec();
            stops.push(Stop { write, when });
            all.push((format!("{before}{side} deed {write} ({deed})"), stops));
        }
    }
    all
}
