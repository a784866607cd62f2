//! Nodes and the places of long lines as vertices in layers, each joined only to the layers beside its own.
//!
//! Third step of the layout, and what the later ones read. `order` alone changes it, and only the layers.

use super::{Link, Node, Spacing};
use crate::Error;

/// How many places lines may take in the layers they pass.
const MAX_PASSES: usize = 60_000;

/// A node, or the place of a line in a layer that it passes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vertex {
    pub(super) layer: usize,
    /// What it takes at the left and right of its x.
    pub(super) left: f64,
    pub(super) right: f64,
    /// What is kept free at the right of a node's box, within `right`.
    pub(super) room: f64,
    /// Whether a line passes here.
    pub(super) passed: bool,
}

/// One link's vertices from above to below.
#[derive(Debug)]
pub(super) struct Way {
    /// Empty for an edge from a node to itself.
    pub(super) vertices: Vec<usize>,
    /// Which of them carries the label.
    pub(super) label: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Lattice {
    /// How many of the vertices are nodes; they come first.
    pub(super) nodes: usize,
    pub(super) vertices: Vec<Vertex>,
    /// Per layer its vertices from left to right.
    pub(super) layers: Vec<Vec<usize>>,
    /// Per vertex those it is joined to in the layer above, once per line.
    pub(super) above: Vec<Vec<usize>>,
    /// Per vertex those it is joined to in the layer below, once per line.
    pub(super) below: Vec<Vec<usize>>,
    /// In the order of the links.
    pub(super) chains: Vec<Way>,
}

impl Lattice {
    /// # Errors
    /// When lines pass through layers too many times.
    pub(super) fn new(
        nodes: &[Node],
        links: &[Link],
        upwards: &[bool],
        ranks: &[usize],
        spacing: &Spacing,
    ) -> Result<Lattice, Error> {
        let count = ranks.iter().max().map_or(0, |deepest| deepest + 1);
        let mut lattice = Lattice {
            nodes: nodes.len(),
            vertices: Vec::new(),
            layers: vec![Vec::new(); count],
            above: Vec::new(),
            below: Vec::new(),
            chains: Vec::new(),
        };
        for (node, &layer) in nodes.iter().zip(ranks) {
            lattice.add(Vertex {
                layer,
                left: node.half,
                right: node.half + node.room,
                room: node.room,
                passed: false,
            });
        }
        for (link, &upwards) in links.iter().zip(upwards) {
            let (upper, lower) = match upwards {
                true => (link.to, link.from),
                false => (link.from, link.to),
            };
            lattice.chain(upper, lower, link.label)?;
        }
        lattice.widen(spacing);
        lattice.first_order();
        Ok(lattice)
    }

    fn add(&mut self, vertex: Vertex) -> usize {
        self.vertices.push(vertex);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        self.vertices.len() - 1
    }

    fn chain(&mut self, upper: usize, lower: usize, label: Option<f64>) -> Result<(), Error> {
        let mut way = Way {
            vertices: Vec::new(),
            label: None,
        };
        if upper != lower {
            let (first, last) = (self.vertices[upper].layer, self.vertices[lower].layer);
            way.label = label.map(|_| (last - first) / 2);
            way.vertices.push(upper);
            for layer in first + 1..last {
                let half = match label {
                    Some(width) if way.label == Some(layer - first) => width / 2.0,
                    _ => 0.0,
                };
                let vertex = self.add(Vertex {
                    layer,
                    left: half,
                    right: half,
                    room: 0.0,
                    passed: true,
                });
                way.vertices.push(vertex);
            }
            way.vertices.push(lower);
            if self.vertices.len() - self.nodes > MAX_PASSES {
                return Err(Error::TooMany {
                    what: "crossings of lines and layers",
                    count: self.vertices.len() - self.nodes,
                    limit: MAX_PASSES,
                    advice: ": draw its subgraphs one by one, or use Mermaid or DOT",
                });
            }
        }
        for pair in way.vertices.windows(2) {
            if let &[upper, lower] = pair {
                self.below[upper].push(lower);
                self.above[lower].push(upper);
            }
        }
        self.chains.push(way);
        Ok(())
    }

    /// Makes boxes wide enough for the lines that touch them.
    fn widen(&mut self, spacing: &Spacing) {
        for node in 0..self.nodes {
            let most = self.above[node].len().max(self.below[node].len());
            let needed = most.saturating_sub(1) as f64 * spacing.ports / 2.0 + spacing.inset;
            let vertex = &mut self.vertices[node];
            let needed = if spacing.whole { needed.ceil() } else { needed };
            vertex.left = vertex.left.max(needed);
            vertex.right = vertex.left + vertex.room;
        }
    }

    /// Fills the layers by walking depth first, so that what hangs together stands together.
    fn first_order(&mut self) {
        let mut seen = vec![false; self.vertices.len()];
        for first in 0..self.nodes {
            let mut path = vec![first];
            while let Some(vertex) = path.pop() {
                if std::mem::replace(&mut seen[vertex], true) {
                    continue;
                }
                self.layers[self.vertices[vertex].layer].push(vertex);
                path.extend(self.below[vertex].iter().rev());
            }
        }
    }

    /// Each vertex's place in its layer.
    pub(super) fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.vertices.len()];
        for layer in &self.layers {
            for (place, &vertex) in layer.iter().enumerate() {
                places[vertex] = place;
            }
        }
        places
    }

    /// How far the middles of two neighbours in a layer must be apart.
    pub(super) fn apart(&self, left: usize, right: usize, spacing: &Spacing) -> f64 {
        let (left, right) = (&self.vertices[left], &self.vertices[right]);
        let free = match left.passed || right.passed {
            true => spacing.lines,
            false => spacing.boxes,
        };
        left.right + free + right.left
    }
}
