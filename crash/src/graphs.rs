//! What is run: a chain of three effects, and a graph with everything in it that is saved in a way of its
//! own.
//!
//! Each effect has a name that no other effect of the run has, so that whoever counts can tell a
//! repetition from another effect.

use paraph_graph::{Ctx, END, Each, Error, Graph, Result, State, Update, with};
use serde::{Deserialize, Serialize};

use crate::outside::Outside;

/// Which graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Three effects, one after the other.
    Steps,
    /// Two rounds of: three items beside a subgraph, one of them asking a person, and a subgraph whose list
    /// outlives its call.
    Branched,
}

impl Shape {
    /// Both.
    pub const ALL: [Shape; 2] = [Shape::Steps, Shape::Branched];

    /// The names of all effects of one run.
    pub fn effects(self) -> Vec<String> {
        match self {
            Shape::Steps => ["first", "second", "third"].map(str::to_owned).to_vec(),
            Shape::Branched => (0..ROUNDS)
                .flat_map(|round| {
                    let items = (0..ITEMS).map(move |item| format!("item {item} in {round}"));
                    items.chain(["one", "two", "keep"].map(|node| format!("{node} in {round}")))
                })
                .collect(),
        }
    }

    pub(crate) fn graph(self, outside: &Outside) -> Result<Graph<Case>, Error> {
        match self {
            Shape::Steps => steps(outside),
            Shape::Branched => branched(outside),
        }
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Shape::Steps => "steps",
            Shape::Branched => "branched",
        })
    }
}

const ROUNDS: u32 = 2;
const ITEMS: u32 = 3;

/// The state of either graph.
#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Case {
    #[reduce(append)]
    log: Vec<String>,
    #[reduce(add)]
    sum: u32,
    last: String,
    round: u32,
}

async fn one_of_three(outside: &Outside, case: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    outside.act(ctx, ctx.node()).await?;
    let line = format!("{} after {}", ctx.node(), case.log.len());
    Ok(Case::update().log([line.clone()]).last(line).sum(1))
}

fn steps(outside: &Outside) -> Result<Graph<Case>, Error> {
    let node = |_: &str| with(outside.clone(), one_of_three);
    Graph::<Case>::new("steps")
        .node("first", node("first"))
        .node("second", node("second"))
        .node("third", node("third"))
        .start("first")
        .sequence(["first", "second", "third"])
        .end("third")
        .build()
}

/// The state of the subgraphs.
#[derive(State, Clone, Debug, Default, PartialEq)]
struct Inner {
    round: u32,
    #[reduce(append)]
    kept: Vec<String>,
}

const ITEM: Each<u32> = Each::new("item");

async fn item(outside: &Outside, item: u32, case: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    let effect = format!("item {item} in {}", case.round);
    outside.act(ctx, &effect).await?;
    if item == 1 {
        let answer: String = ctx.interrupt("sure", format!("{effect}?"))?;
        return Ok(Case::update()
            .log([format!("{effect}: {answer}")])
            .sum(item));
    }
    Ok(Case::update().log([effect]).sum(item))
}

async fn inner_node(outside: &Outside, inner: &Inner, ctx: &Ctx) -> Result<Update<Inner>> {
    let effect = format!("{} in {}", ctx.node(), inner.round);
    outside.act(ctx, &effect).await?;
    Ok(Inner::update().kept([format!("{effect} after {}", inner.kept.len())]))
}

fn branched(outside: &Outside) -> Result<Graph<Case>, Error> {
    let node = || with(outside.clone(), inner_node);
    let passing = Graph::<Inner>::new("passing")
        .node("one", node())
        .node("two", node())
        .start("one")
        .sequence(["one", "two"])
        .end("two")
        .build()?;
    let lasting = Graph::<Inner>::new("lasting")
        .node("keep", node())
        .start("keep")
        .end("keep");
    let enter = |case: &Case| Inner::update().round(case.round);
    Graph::<Case>::new("branched")
        .node("plan", async |case: &Case, _: &Ctx| {
            Ok(Case::update().log([format!("plan {}", case.round)]))
        })
        .each(ITEM, with(outside.clone(), item))
        .node(
            "passing",
            passing.mapped(enter, |inner: Inner| {
                Case::update().log([inner.kept.join(", ")])
            }),
        )
        .node(
            "lasting",
            lasting
                .build()?
                .mapped(enter, |inner: Inner| {
                    Case::update().last(inner.kept.join(", "))
                })
                .persistent(),
        )
        .node("close", async |case: &Case, _: &Ctx| {
            Ok(Case::update()
                .round(case.round + 1)
                .log([format!("close {}", case.round)]))
        })
        .start("plan")
        .branch(
            "plan",
            |_| {
                let mut to = ITEM.send_all(0..ITEMS);
                to.extend(["passing".into(), "lasting".into()]);
                to
            },
            ["item", "passing", "lasting"],
        )
        .join(["item", "passing", "lasting"], "close")
        .branch(
            "close",
            |case| if case.round < ROUNDS { "plan" } else { END },
            ["plan", END],
        )
        .build()
}
