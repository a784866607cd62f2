//! `sequential_N`: a chain of N nodes that do nothing, so that only the stepping itself is seen.

use std::sync::Arc;

use paraph_graph::{Ctx, Graph, Result, State, Update};
use serde::Serialize;

use crate::case::{Case, Floor, Step, step};
use crate::{Fault, Setting, Shape};

#[derive(State, Clone, Default, Serialize)]
struct Chain {
    #[reduce(append)]
    items: Vec<String>,
}

async fn pass(_: &Chain, _: &Ctx) -> Result<Update<Chain>> {
    Ok(Chain::update())
}

pub(super) fn case(length: usize) -> Result<Box<dyn Shape>, Fault> {
    let mut graph = Graph::<Chain>::new("sequential");
    for at in 0..length {
        graph = graph.node(name(at), pass);
        graph = match at {
            0 => graph.start([name(0)]),
            _ => graph.edge(name(at - 1), [name(at)]),
        };
    }
    let nodes: Arc<[Step<Chain, Vec<String>>]> =
        (0..length).map(|_| step(|_| Vec::new())).collect();
    Ok(Box::new(Case {
        name: format!("sequential_{length}"),
        graph: graph.end([name(length - 1)]).build()?,
        input: Box::new(Chain::update),
        events: length,
        node_runs: length,
        durable: Vec::new(),
        floor: Box::new(move |setting| Box::pin(floor(nodes.clone(), setting))),
        check: Box::new(|chain| chain.items.is_empty()),
    }))
}

fn name(at: usize) -> String {
    format!("node_{at}")
}

async fn floor(nodes: Arc<[Step<Chain, Vec<String>>]>, setting: Setting) -> Floor<Chain> {
    let mut floor = Floor::from(Chain::default());
    for node in nodes.iter() {
        let new = node(&floor.state).await;
        floor.tell(setting, &new);
        floor.state.items.extend(new);
    }
    floor
}
