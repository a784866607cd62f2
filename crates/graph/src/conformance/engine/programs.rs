//! Random graphs, made from a number, that are cut at random and come to the same as uncut ones.
//!
//! A failure names its number, with which it can be run again.

use super::{
    super::{
        Checked,
        scene::{same, text},
    },
    Play,
    graphs::{Case, Done, inner, log},
    story, to_the_end,
};
use crate::{
    Ctx, Durability, Each, Error, Graph, Mode, Name, Result, State as _, Target, Update, with,
};
use std::ops::Range;

/// Numbers that follow from a seed: a xorshift generator, since all that counts is that they are the same
/// everywhere.
struct Dice(u64);

impl Dice {
    fn of(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below.max(1)
    }
}

/// What a node does besides writing its name.
#[derive(Clone, Copy)]
enum Habit {
    Nothing,
    Steps,
    Asks,
    Edits,
    Fails,
}

async fn work((done, habit): &(Done, Habit), case: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    let name = format!("{} {}", ctx.node(), case.turn);
    Ok(match habit {
        Habit::Nothing => log(name),
        Habit::Steps => {
            let work = async {
                done.did(&*name);
                Ok(case.log.len())
            };
            let n = ctx.step("work", work).await?;
            log(format!("{name} did {n}"))
        }
        Habit::Asks => log(format!("{name} {}", ctx.interrupt::<String>("q", &name)?)),
        Habit::Edits => log(name)
            .items([(case.turn % 3, ctx.node().to_owned())])
            .alerts(["bell".to_owned()]),
        Habit::Fails if ctx.attempt() < 2 => return Err(crate::NodeError::msg("not yet")),
        Habit::Fails => log(format!("{name} at last")).sum(1),
    })
}

const NAMES: [&str; 6] = ["n0", "n1", "n2", "n3", "n4", "n5"];
const SEND: Each<u32> = Each::new("send");

/// A graph of up to six nodes in layers, with sends and subgraphs, that goes round up to three times.
fn graph(seed: u64, done: &Done) -> Result<Graph<Case>, Error> {
    let mut dice = Dice::of(seed);
    let width = 1 + dice.roll(4) as usize;
    let (rounds, sends) = (1 + dice.roll(3) as u32, dice.roll(4) as u32);
    let names = NAMES.get(..width).unwrap_or(&NAMES);
    let mut graph = Graph::<Case>::new("program");
    for name in names {
        let habit = match dice.roll(6) {
            0 => Habit::Nothing,
            1 => Habit::Steps,
            2 => Habit::Asks,
            3 => Habit::Edits,
            _ => Habit::Fails,
        };
        graph = match dice.roll(5) {
            0 => {
                let node = inner()?.mapped(
                    |case: &Case| log(format!("in {}", case.turn)),
                    |case: Case| log(case.log.join(",")),
                );
                match dice.roll(2) {
                    0 => graph.node(*name, node),
                    _ => graph.node(*name, node.persistent()),
                }
            }
            _ => graph.node(*name, with((done.clone(), habit), work)),
        };
        let policy = crate::Policy {
            attempts: 3,
            backoff: std::time::Duration::ZERO,
            ..crate::Policy::default()
        };
        graph = graph.policy(*name, policy);
    }
    let all: Vec<Name> = names.iter().map(|name| Name::from(*name)).collect();
    let mut sources = all.clone();
    sources.push(SEND.into());
    graph
        .node("begin", async |case: &Case, _: &Ctx| {
            Ok(log(format!("round {}", case.turn)))
        })
        .each(
            SEND,
            with(
                done.clone(),
                async |_: &Done, n: u32, case: &Case, _: &Ctx| {
                    Ok(log(format!("sent {n} in {}", case.turn)).sum(n))
                },
            ),
        )
        .node("close", async |case: &Case, _: &Ctx| {
            Ok(Case::update().turn(case.turn + 1))
        })
        .start("begin")
        .branch(
            "begin",
            move |_| {
                let mut to: Vec<Target> = all.iter().map(|name| name.clone().into()).collect();
                // The join waits for the sends, so there is at least one.
                to.extend(SEND.send_all(0..=sends));
                to
            },
            sources.clone(),
        )
        .join(sources, "close")
        .branch(
            "close",
            move |case: &Case| {
                if case.turn < rounds {
                    "begin"
                } else {
                    crate::END
                }
            },
            ["begin", crate::END],
        )
        .build()
}

/// Runs the program of a seed uncut, then cut at random places, and compares.
async fn program(p: &Play, seed: u64) -> Checked {
    let uncut = Done::default();
    let whole = graph(seed, &uncut).map_err(text)?;
    let thread = p.thread(&whole, format!("{seed} uncut"));
    let expected = to_the_end(&thread, Durability::Sync).await?;
    let told = story(&thread).await?;
    let mut dice = Dice::of(!seed);
    for durability in super::ALL {
        let done = Done::default();
        let cut = graph(seed, &done).map_err(text)?;
        let what = format!("program {seed}, {durability:?}");
        let thread = p.thread(&cut, &what);
        let mut start = thread.run(Case::update());
        for _ in 0..4 {
            let mut stream = start.durability(durability).stream([
                Mode::Tasks,
                Mode::Updates,
                Mode::Checkpoints,
            ]);
            for _ in 0..=dice.roll(12) {
                if stream.next().await.is_none() {
                    break;
                }
            }
            let control = stream.control();
            drop(stream);
            control.ended().await;
            let now = thread.snapshot(None).await.map_err(text)?;
            start = match now {
                None => thread.run(Case::update()),
                Some(now) if now.finished || !now.interrupts.is_empty() => break,
                Some(_) => thread.resume(),
            };
        }
        same(
            &what,
            to_the_end(&thread, durability).await?,
            expected.clone(),
        )?;
        if durability != Durability::Exit {
            same(
                &format!("{what}: the history"),
                story(&thread).await?,
                told.clone(),
            )?;
        }
        same(&format!("{what}: steps"), done.all(), uncut.all())?;
    }
    Ok(())
}

pub(in crate::conformance) async fn random_programs(p: Play) -> Checked {
    programs(&p, 0..6).await
}

/// Runs the programs of these seeds.
pub(in crate::conformance) async fn programs(p: &Play, seeds: Range<u64>) -> Checked {
    for seed in seeds {
        program(p, seed).await?;
    }
    Ok(())
}
