//! The graphs that the rules run, and how they count what was really done.

use crate::{
    Change, Ctx, Each, Error, Graph, Name, NodeError, Policy, Result, State, Update, with,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

/// A state with a channel of each way of being saved.
#[derive(State, Clone, Default, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) turn: u32,
    #[reduce(append)]
    pub(super) log: Vec<String>,
    #[reduce(by_id)]
    pub(super) items: Vec<(u32, String)>,
    #[reduce(add)]
    pub(super) sum: u32,
    #[reduce(append, ephemeral)]
    pub(super) alerts: Vec<String>,
}

/// Replaces items that are there, and appends the others.
fn by_id(all: &mut Vec<(u32, String)>, new: Vec<(u32, String)>) -> Change {
    let from = all.len();
    let mut at = Vec::new();
    for item in new {
        match all.iter().position(|(id, _)| *id == item.0) {
            Some(found) => {
                all[found] = item;
                at.push(found);
            }
            None => all.push(item),
        }
    }
    at.retain(|found| *found < from);
    at.sort_unstable();
    at.dedup();
    match (at.is_empty(), all.len() == from) {
        (true, true) => Change::Unchanged,
        _ => Change::list(at, from),
    }
}

pub(super) fn log(line: impl Into<String>) -> Update<Case> {
    Case::update().log([line.into()])
}

pub(super) async fn step(_: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    Ok(log(ctx.node()))
}

/// How often each thing was done.
#[derive(Clone, Default)]
pub(super) struct Done(Arc<Mutex<BTreeMap<String, u32>>>);

impl Done {
    pub(super) fn did(&self, what: impl Into<String>) {
        *crate::session::lock(&self.0)
            .entry(what.into())
            .or_default() += 1;
    }

    pub(super) fn all(&self) -> BTreeMap<String, u32> {
        crate::session::lock(&self.0).clone()
    }

    pub(super) fn clear(&self) {
        crate::session::lock(&self.0).clear();
    }

    /// What was done more than once.
    pub(super) fn repeated(&self) -> Vec<String> {
        let all = self.all().into_iter();
        all.filter_map(|(what, times)| (times > 1).then_some(what))
            .collect()
    }
}

pub(super) const ITEM: Each<u32> = Each::new("item");

/// Does its work once, and asks if it is the first.
async fn item(done: &Done, n: u32, case: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    let doubled = ctx
        .step("double", async {
            done.did(format!("item {n} in turn {}", case.turn));
            Ok(n * 2)
        })
        .await?;
    let said = match n {
        0 => ctx.interrupt("sure", format!("{n} in turn {}?", case.turn))?,
        _ => String::new(),
    };
    Ok(log(format!("item {doubled} {said}"))
        .sum(doubled)
        .items([(n, format!("turn {}", case.turn))]))
}

/// A graph of two nodes, of which the second asks.
pub(super) fn inner() -> Result<Graph<Case>, Error> {
    Graph::<Case>::new("inner")
        .node("one", async |case: &Case, _: &Ctx| {
            Ok(log(format!("one {}", case.log.len())))
        })
        .node("two", async |case: &Case, ctx: &Ctx| {
            let said: String = ctx.interrupt("word", "a word?")?;
            Ok(log(format!("two {} {said}", case.log.len())))
        })
        .start("one")
        .edge("one", "two")
        .end("two")
        .build()
}

/// Two turns of: a fan-out that steps and asks, beside subgraphs (one persistent) that ask, and a node whose
/// handler takes over; then a join that closes the turn.
pub(super) fn rich(done: &Done) -> Result<Graph<Case>, Error> {
    let leave = |case: Case| log(case.log.join(","));
    Graph::<Case>::new("rich")
        .node("plan", async |case: &Case, _: &Ctx| {
            Ok(log(format!("plan {}", case.turn)).alerts([format!("turn {}", case.turn)]))
        })
        .each(ITEM, with(done.clone(), item))
        .node("plain", inner()?.mapped(|_: &Case| Case::update(), leave))
        .node(
            "lasting",
            inner()?
                .mapped(|_: &Case| Case::update(), leave)
                .persistent(),
        )
        .node("bad", async |_: &Case, _: &Ctx| {
            Err::<Update<Case>, _>(NodeError::msg("bad"))
        })
        .node("handler", async |_: &Case, ctx: &Ctx| {
            let message = ctx.failure().map_or("", |failed| &failed.message);
            Ok(log(format!("handled {message}")))
        })
        .node("close", async |case: &Case, _: &Ctx| {
            Ok(log(format!("close {}", case.turn)).turn(case.turn + 1))
        })
        .policy(
            "bad",
            Policy {
                attempts: 2,
                backoff: Duration::ZERO,
                on_error: Some("handler".into()),
                ..Policy::default()
            },
        )
        .start("plan")
        .branch(
            "plan",
            |_| {
                let mut to = ITEM.send_all(0..3);
                to.append(&mut vec!["plain".into(), "lasting".into(), "bad".into()]);
                to
            },
            [
                Name::from("plain"),
                "lasting".into(),
                "bad".into(),
                ITEM.into(),
            ],
        )
        .end("bad")
        .join(
            [
                Name::from("plain"),
                "lasting".into(),
                "handler".into(),
                ITEM.into(),
            ],
            "close",
        )
        .branch(
            "close",
            |case: &Case| if case.turn < 2 { "plan" } else { crate::END },
            ["plan", crate::END],
        )
        .build()
}

/// `a`, then `ask` beside `side`, then `end`.
pub(super) fn asking() -> Result<Graph<Case>, Error> {
    Graph::<Case>::new("asking")
        .node("a", step)
        .node("ask", async |_: &Case, ctx: &Ctx| {
            Ok(log(ctx.interrupt::<String>("q", "sure?")?))
        })
        .node("side", step)
        .node("end", step)
        .start("a")
        .edge("a", ["ask", "side"])
        .join(["ask", "side"], "end")
        .end("end")
        .build()
}

/// `a`, `b`, `c` in a row, each of which writes how long the log was.
pub(super) fn chain() -> Result<Graph<Case>, Error> {
    async fn count(case: &Case, ctx: &Ctx) -> Result<Update<Case>> {
        Ok(log(format!("{} {}", ctx.node(), case.log.len()))
            .items([(case.turn, ctx.node().to_owned())])
            .sum(1))
    }
    Graph::<Case>::new("chain")
        .node("a", count)
        .node("b", count)
        .node("c", count)
        .start("a")
        .edge("a", "b")
        .edge("b", "c")
        .end("c")
        .build()
}
