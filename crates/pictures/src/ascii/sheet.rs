//! A graph drawn on a grid: boxes three rows high, and between two layers as many rows as the lines need.

use super::{
    grid::{Grid, columns},
    list::titled,
    strokes,
    tracks::{Segment, assign},
};
use crate::{
    Error,
    layered::{Arranged, Chain, Link, Node as Slot, Spacing, Stop, arrange},
    plan::{Edge, Kind, Node, Plan},
};

const SPACING: Spacing = Spacing {
    boxes: 3.0,
    lines: 2.0,
    ports: 3.0,
    inset: 1.0,
    whole: true,
};
/// What an edge from a node to itself takes at the right of its box.
const LOOP: usize = 3;
/// Between the border of an opened subgraph and what is inside.
const PADDING: usize = 2;

/// Why a graph is not drawn.
#[derive(Debug)]
pub(super) enum Unfit {
    /// It needs so many columns.
    Wide(usize),
    /// Lines would lie on each other.
    Tangled,
}

/// A node before it has a place.
struct Face {
    title: String,
    /// Its box, which is an odd number of columns wide, so that it has a middle.
    width: usize,
    height: usize,
    room: usize,
    inside: Option<Grid>,
}

/// The space of a node's box.
#[derive(Clone, Copy)]
struct Spot {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

/// Draws a plan, if it fits into so many columns; boxes are `least` columns wide at least.
///
/// # Errors
/// When it has too many lines.
pub(super) fn draw(plan: &Plan, most: usize, least: usize) -> Result<Result<Grid, Unfit>, Error> {
    let mut faces = Vec::with_capacity(plan.nodes.len());
    for (place, node) in plan.nodes.iter().enumerate() {
        let loops = plan
            .edges
            .iter()
            .filter(|edge| edge.from == place && edge.to == place);
        let texts: Vec<&str> = loops.clone().filter_map(written).collect();
        let loops = loops.count();
        // There is place for one edge from a node to itself, and at a box of one row for none.
        let is_low = matches!(node.kind, Kind::Start | Kind::End);
        if loops > usize::from(!is_low) {
            return Ok(Err(Unfit::Tangled));
        }
        let inside = match &node.kind {
            Kind::Open(inside) => match draw(inside, most, least)? {
                Ok(grid) => Some(grid),
                Err(unfit) => return Ok(Err(unfit)),
            },
            _ => None,
        };
        let beside: usize = texts.iter().map(|text| columns(text) + 1).sum();
        faces.push(face(node, inside, loops * LOOP + beside, least));
    }
    let slots: Vec<Slot> = faces
        .iter()
        .zip(&plan.nodes)
        .map(|(face, node)| Slot {
            half: (face.width / 2) as f64,
            room: face.room as f64,
            last: matches!(node.kind, Kind::End),
        })
        .collect();
    let link = |edge: &Edge| Link {
        from: edge.from,
        to: edge.to,
        // What is even has its middle on a column; two more, so that two labels do not read as one.
        label: written(edge).map(|text| (columns(text) / 2 * 2 + 2) as f64),
    };
    let links: Vec<Link> = plan.edges.iter().map(link).collect();
    let arranged = arrange(&slots, &links, &SPACING)?;
    let width = arranged.width as usize + 1;
    if width > most {
        return Ok(Err(Unfit::Wide(width)));
    }
    Ok(Sheet::new(plan, &arranged, faces)
        .map_or(Err(Unfit::Tangled), |sheet| Ok(sheet.drawn(width))))
}

/// What is written on an edge. That one is followed on an error is said by its characters and the legend.
fn written(edge: &Edge) -> Option<&str> {
    let label = edge.label.as_deref()?;
    (edge.words() != edge.kind.words()).then_some(label)
}

fn face(node: &Node, inside: Option<Grid>, room: usize, least: usize) -> Face {
    let title = titled(node);
    let text = columns(&title);
    let (width, height) = match (&inside, &node.kind) {
        (Some(grid), _) => (
            grid.width.max(text + 4) + 2 + 2 * PADDING,
            grid.height() + 2,
        ),
        (None, Kind::Start | Kind::End) => (text + 4, 1),
        (None, Kind::Closed) => (text + 6, 3),
        (None, _) => ((text + 4).max(least), 3),
    };
    Face {
        title,
        width: width | 1,
        height,
        room,
        inside,
    }
}

struct Sheet<'a> {
    plan: &'a Plan,
    arranged: &'a Arranged,
    faces: Vec<Face>,
    spots: Vec<Spot>,
    /// Per layer its first row, and the row after its last.
    layers: Vec<(usize, usize)>,
    /// Per chain its segments.
    ways: Vec<Vec<Segment>>,
}

impl<'a> Sheet<'a> {
    /// Nothing if lines would lie on each other.
    fn new(plan: &'a Plan, arranged: &'a Arranged, faces: Vec<Face>) -> Option<Sheet<'a>> {
        let mut ways = segments(plan, arranged);
        let mut heights = vec![0; arranged.layers];
        for (spot, face) in arranged.nodes.iter().zip(&faces) {
            heights[spot.layer] = face.height.max(heights[spot.layer]);
        }
        for stop in arranged.chains.iter().filter_map(labelled) {
            heights[stop.layer] = heights[stop.layer].max(1);
        }
        let mut layers = Vec::with_capacity(arranged.layers);
        let mut y = 0;
        for (layer, height) in heights.into_iter().enumerate() {
            layers.push((y, y + height));
            // One row to leave the box, one for the arrows, and between them those in which lines turn.
            y += height + 2 + turn(arranged, &mut ways, layer)?;
        }
        let spots = arranged.nodes.iter().zip(&faces).map(|(spot, face)| {
            let (top, bottom) = layers[spot.layer];
            Spot {
                x: (spot.x - spot.half) as usize,
                y: top + (bottom - top - face.height) / 2,
                width: (spot.half * 2.0) as usize + 1,
                height: face.height,
            }
        });
        let spots = spots.collect();
        Some(Sheet {
            plan,
            arranged,
            faces,
            spots,
            layers,
            ways,
        })
    }

    fn drawn(&self, width: usize) -> Grid {
        let height = self.layers.last().map_or(0, |&(_, bottom)| bottom);
        let mut grid = Grid::new(width, height);
        // Lines to the side first: where one crosses another, the one that goes down is seen.
        for down in [false, true] {
            for (place, edge) in self.plan.edges.iter().enumerate() {
                self.line(&mut grid, place, edge, down);
            }
        }
        for (place, edge) in self.plan.edges.iter().enumerate() {
            self.turns(&mut grid, place, edge);
        }
        for (edge, chain) in self.plan.edges.iter().zip(&self.arranged.chains) {
            if let (Some(text), Some(stop)) = (written(edge), labelled(chain)) {
                let (top, bottom) = self.layers[stop.layer];
                let x = (stop.x as usize).saturating_sub(columns(text) / 2);
                grid.write(x, top + (bottom - top) / 2, text);
            }
        }
        for ((node, face), &spot) in self.plan.nodes.iter().zip(&self.faces).zip(&self.spots) {
            boxed(&mut grid, node, face, spot);
        }
        for edge in self.plan.edges.iter().filter(|edge| edge.from == edge.to) {
            around(&mut grid, self.spots[edge.from], edge);
        }
        grid
    }

    /// The row between two layers in which a segment turns.
    fn row(&self, layer: usize, segment: &Segment) -> usize {
        self.layers[layer].1 + 1 + segment.row
    }

    fn line(&self, grid: &mut Grid, place: usize, edge: &Edge, down: bool) {
        let (vertical, side) = strokes(edge.kind);
        let chain = &self.arranged.chains[place];
        let Some(last) = chain.stops.len().checked_sub(1) else {
            return;
        };
        for (segment, stop) in self.ways[place].iter().zip(&chain.stops) {
            let row = self.row(stop.layer, segment);
            if !down {
                let (left, right) = (
                    segment.above.min(segment.below),
                    segment.above.max(segment.below),
                );
                if left < right {
                    (left..=right).for_each(|x| grid.set(x, row, side));
                }
                continue;
            }
            let (bottom, next) = (self.layers[stop.layer].1, self.layers[stop.layer + 1].0);
            let turn = if segment.is_straight() { next } else { row };
            (bottom..turn).for_each(|y| grid.set(segment.above, y, vertical));
            (turn..next).for_each(|y| grid.set(segment.below, y, vertical));
        }
        if !down {
            return;
        }
        // Through the layers that it passes, and within the first and last if its boxes are lower than they are.
        for (number, stop) in chain.stops.iter().enumerate() {
            let (top, bottom) = self.layers[stop.layer];
            let into = number
                .checked_sub(1)
                .and_then(|before| self.ways[place].get(before));
            let out = self.ways[place].get(number);
            let (upper, lower) = self.ends(edge, chain.upwards);
            let (from, to) = match number {
                0 => (upper.y + upper.height, bottom),
                _ if number == last => (top, lower.y),
                _ => (top, bottom),
            };
            if let Some(x) = into.map(|s| s.below).or(out.map(|s| s.above)) {
                (from..to).for_each(|y| grid.set(x, y, vertical));
            }
        }
    }

    /// The boxes at the upper and the lower end of an edge.
    fn ends(&self, edge: &Edge, upwards: bool) -> (Spot, Spot) {
        let (upper, lower) = if upwards {
            (edge.to, edge.from)
        } else {
            (edge.from, edge.to)
        };
        (self.spots[upper], self.spots[lower])
    }

    /// The corners of a line, and its arrow.
    fn turns(&self, grid: &mut Grid, place: usize, edge: &Edge) {
        let chain = &self.arranged.chains[place];
        for (segment, stop) in self.ways[place].iter().zip(&chain.stops) {
            if !segment.is_straight() {
                let row = self.row(stop.layer, segment);
                grid.set(segment.above, row, '+');
                grid.set(segment.below, row, '+');
            }
        }
        let (upper, lower) = self.ends(edge, chain.upwards);
        match (self.ways[place].first(), self.ways[place].last()) {
            (Some(first), _) if chain.upwards => grid.set(first.above, upper.y + upper.height, '^'),
            (_, Some(last)) => grid.set(last.below, lower.y.saturating_sub(1), 'v'),
            _ => {}
        }
    }
}

/// Where an edge's label stands.
fn labelled(chain: &Chain) -> Option<&Stop> {
    chain.label.and_then(|label| chain.stops.get(label))
}

/// The segments of all chains, without rows.
fn segments(plan: &Plan, arranged: &Arranged) -> Vec<Vec<Segment>> {
    let ways = plan
        .edges
        .iter()
        .zip(&arranged.chains)
        .map(|(edge, chain)| {
            let lower = arranged.nodes[if chain.upwards { edge.from } else { edge.to }];
            let last = chain.stops.len().saturating_sub(2);
            let pairs = chain.stops.windows(2).enumerate();
            let segments = pairs.map(|(number, pair)| Segment {
                above: pair[0].x as usize,
                below: pair[1].x as usize,
                reach: (number == last).then(|| {
                    let (low, high) = (lower.x - lower.half + 1.0, lower.x + lower.half - 1.0);
                    (low as usize, high as usize)
                }),
                row: 0,
            });
            segments.collect()
        });
    ways.collect()
}

/// Finds the rows in which the lines below a layer turn, and how many those are.
fn turn(arranged: &Arranged, ways: &mut [Vec<Segment>], layer: usize) -> Option<usize> {
    let mut found = Vec::new();
    for (chain, segments) in arranged.chains.iter().zip(&*ways) {
        let first = chain.stops.first().map_or(0, |stop| stop.layer);
        let here = layer
            .checked_sub(first)
            .and_then(|number| segments.get(number));
        found.extend(here.cloned());
    }
    let rows = assign(&mut found)?;
    let mut found = found.into_iter();
    for (chain, segments) in arranged.chains.iter().zip(ways) {
        let first = chain.stops.first().map_or(0, |stop| stop.layer);
        let here = layer
            .checked_sub(first)
            .and_then(|number| segments.get_mut(number));
        if let Some(here) = here {
            *here = found.next()?;
        }
    }
    Some(rows)
}

fn boxed(grid: &mut Grid, node: &Node, face: &Face, spot: Spot) {
    let middle = |text: &str| spot.x + (spot.width - columns(text).min(spot.width)) / 2;
    if let Some(inside) = &face.inside {
        grid.frame(spot.x, spot.y, spot.width, spot.height);
        grid.write(spot.x + 2, spot.y, &format!(" {} ", face.title));
        grid.paste(spot.x + (spot.width - inside.width) / 2, spot.y + 1, inside);
        return;
    }
    if matches!(node.kind, Kind::Start | Kind::End) {
        grid.write(spot.x, spot.y, "(");
        grid.write(spot.x + spot.width - 1, spot.y, ")");
        grid.write(middle(&face.title), spot.y, &face.title);
        return;
    }
    grid.frame(spot.x, spot.y, spot.width, spot.height);
    grid.write(middle(&face.title), spot.y + 1, &face.title);
    if matches!(node.kind, Kind::Closed) {
        grid.set(spot.x + 1, spot.y + 1, '|');
        grid.set(spot.x + spot.width - 2, spot.y + 1, '|');
    }
}

/// An edge from a node to itself: out of the lower right corner and back to the upper one.
fn around(grid: &mut Grid, spot: Spot, edge: &Edge) {
    let (down, side) = strokes(edge.kind);
    let (left, top, bottom) = (spot.x + spot.width, spot.y, spot.y + spot.height - 1);
    let right = left + LOOP - 1;
    grid.set(left, top, '<');
    grid.set(left, bottom, side);
    grid.set(left + 1, top, side);
    grid.set(left + 1, bottom, side);
    (top..=bottom).for_each(|y| grid.set(right, y, down));
    grid.set(right, top, '+');
    grid.set(right, bottom, '+');
    if let Some(text) = written(edge) {
        grid.write(right + 2, top + 1, text);
    }
}
