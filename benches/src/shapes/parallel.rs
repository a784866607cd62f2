//! `parallel_N`: N nodes that wait 20 ms at the same time; `cpu_N`: N nodes that compute at the same time.

use std::hint::black_box;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use paraph_graph::{Ctx, Graph, IntoNode, State, Update};
use serde::Serialize;

use crate::case::{Case, Floor};
use crate::{Fault, Shape};

#[derive(State, Clone, Default, Serialize)]
struct Tally {
    #[reduce(append)]
    done: Vec<u64>,
}

const WAIT: Duration = Duration::from_millis(20);
/// Some ten milliseconds of arithmetic.
const TURNS: u64 = 10_000_000;

async fn wait(_: &Tally, _: &Ctx) -> paraph_graph::Result<Update<Tally>> {
    tokio::time::sleep(WAIT).await;
    Ok(Tally::update().done([1]))
}

async fn spin(_: &Tally, _: &Ctx) -> paraph_graph::Result<Update<Tally>> {
    Ok(Tally::update().done([compute()]))
}

fn compute() -> u64 {
    (0..TURNS).fold(1, |last: u64, turn| {
        black_box(last ^ turn).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// N nodes that wait; the floor waits N times at once, without tasks.
pub(super) fn waiting(count: usize) -> Result<Box<dyn Shape>, Fault> {
    let work = || async {
        tokio::time::sleep(WAIT).await;
        1
    };
    case(
        "parallel",
        count,
        siblings("parallel", count, wait)?,
        move || Box::pin(join_all((0..count).map(|_| work()))),
    )
}

/// N nodes that compute; the floor spawns N tasks.
pub(super) fn spinning(count: usize) -> Result<Box<dyn Shape>, Fault> {
    case("cpu", count, siblings("cpu", count, spin)?, move || {
        let tasks: Vec<_> = (0..count)
            .map(|_| tokio::spawn(async { compute() }))
            .collect();
        Box::pin(async move { join_all(tasks).await.into_iter().flatten().collect() })
    })
}

fn siblings<M>(
    name: &'static str,
    count: usize,
    node: impl IntoNode<Tally, M> + Copy,
) -> Result<Graph<Tally>, Fault> {
    let names: Vec<String> = (0..count).map(|at| format!("node_{at}")).collect();
    let mut graph = Graph::<Tally>::new(name);
    for name in &names {
        graph = graph.node(name.clone(), node);
    }
    Ok(graph.start(names.clone()).end(names).build()?)
}

fn case(
    name: &str,
    count: usize,
    graph: Graph<Tally>,
    floor: impl Fn() -> BoxFuture<'static, Vec<u64>> + Send + Sync + 'static,
) -> Result<Box<dyn Shape>, Fault> {
    Ok(Box::new(Case {
        name: format!("{name}_{count}"),
        graph,
        input: Box::new(Tally::update),
        events: count,
        node_runs: count,
        durable: Vec::new(),
        floor: Box::new(move |_| {
            let work = floor();
            Box::pin(async move { Floor::from(Tally { done: work.await }) })
        }),
        check: Box::new(move |tally| tally.done.len() == count),
    }))
}
