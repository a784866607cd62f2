//! Layered layout: which node stands in which layer and where in it, and where the lines between them run.
//!
//! The method is the one of Sugiyama, Tagawa and Toda: turn round the edges that close cycles, spread the nodes over
//! layers, let long edges pass through each layer in a place of their own, order the layers so that few lines cross,
//! and only then give everything its x. `compose` calls it with pixels and `ascii` with characters, and both decide
//! themselves how high a layer is. Because a line passes a layer only where it has a place, no line runs through a
//! node, whatever is drawn between the layers.

mod columns;
mod cycles;
mod lattice;
mod order;
mod ports;
mod ranks;
mod settle;

#[cfg(test)]
mod tests;

use crate::Error;
use lattice::Lattice;

/// A node to be placed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// Half of its box's width. A box that many lines touch may become wider.
    pub(crate) half: f64,
    /// What is kept free at its right, for edges from the node to itself.
    pub(crate) room: f64,
    /// Whether it stands below everything else.
    pub(crate) last: bool,
}

/// A line to be drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The width of what is written on it.
    pub(crate) label: Option<f64>,
}

/// How much is kept free, in the caller's unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spacing {
    /// Between two boxes of a layer.
    pub(crate) boxes: f64,
    /// Between a line and what is beside it.
    pub(crate) lines: f64,
    /// Between two lines that touch the same side of a box.
    pub(crate) ports: f64,
    /// Between the corner of a box and the first line.
    pub(crate) inset: f64,
    /// Whether every x is to be a whole number.
    pub(crate) whole: bool,
}

/// Where everything is. The smallest x is 0.
#[derive(Debug)]
pub(crate) struct Arranged {
    /// In the order of the nodes.
    pub(crate) nodes: Vec<Spot>,
    /// In the order of the links; an edge from a node to itself has no stops.
    pub(crate) chains: Vec<Chain>,
    /// How many layers there are.
    pub(crate) layers: usize,
    pub(crate) width: f64,
}

/// Where a node is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) layer: usize,
    /// The middle of its box.
    pub(crate) x: f64,
    /// Half of its box's width.
    pub(crate) half: f64,
}

/// The way of a line from above to below: one stop per layer, the first and last of them on boxes.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) stops: Vec<Stop>,
    /// Whether the edge runs upwards, from the last stop to the first.
    pub(crate) upwards: bool,
    /// The stop at which its label is centred.
    pub(crate) label: Option<usize>,
}

/// Where a line meets a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) layer: usize,
    pub(crate) x: f64,
}

/// Places nodes and lines.
///
/// # Errors
/// When there are too many lines between too many layers.
pub(crate) fn arrange(
    nodes: &[Node],
    links: &[Link],
    spacing: &Spacing,
) -> Result<Arranged, Error> {
    let upwards = cycles::upwards(nodes.len(), links);
    let ranks = ranks::ranks(nodes, links, &upwards);
    let mut lattice = Lattice::new(nodes, links, &upwards, &ranks, spacing)?;
    order::order(&mut lattice);
    let mut xs = columns::columns(&lattice, spacing);
    let ports = ports::ports(&lattice, &mut xs, spacing);
    Ok(arranged(&lattice, &xs, ports, upwards))
}

fn arranged(lattice: &Lattice, xs: &[f64], ports: Vec<Vec<f64>>, upwards: Vec<bool>) -> Arranged {
    let spots = lattice.vertices.iter().zip(xs).take(lattice.nodes);
    let nodes = spots.map(|(vertex, &x)| Spot {
        layer: vertex.layer,
        x,
        half: vertex.left,
    });
    let rights = lattice
        .vertices
        .iter()
        .zip(xs)
        .map(|(vertex, x)| x + vertex.right);
    let chains = lattice.chains.iter().zip(ports).zip(upwards);
    Arranged {
        nodes: nodes.collect(),
        width: rights.fold(0.0, f64::max),
        layers: lattice.layers.len(),
        chains: chains
            .map(|((chain, xs), upwards)| Chain {
                stops: chain
                    .vertices
                    .iter()
                    .zip(xs)
                    .map(|(&v, x)| Stop {
                        layer: lattice.vertices[v].layer,
                        x,
                    })
                    .collect(),
                upwards,
                label: chain.label,
            })
            .collect(),
    }
}
