//! Where on a box's side each line begins or ends.
//!
//! Last step of the layout. The lines of a side keep the order of their other ends and some distance; within that,
//! a line is drawn straight down if the boxes stand over one another.

use super::{Spacing, lattice::Lattice};

/// How often both ends of the lines are drawn towards each other.
const PASSES: usize = 6;

/// One side of one box: which lines touch it, from left to right, and how far they may go.
struct Side {
    ends: Vec<(usize, usize)>,
    low: f64,
    high: f64,
    apart: f64,
}

/// For each chain the x of each of its stops.
///
/// The places of long lines in `xs` may be moved a little, to where the lines end.
pub(super) fn ports(lattice: &Lattice, xs: &mut [f64], spacing: &Spacing) -> Vec<Vec<f64>> {
    let chains = lattice.chains.iter();
    let mut stops: Vec<Vec<f64>> = chains
        .map(|chain| chain.vertices.iter().map(|&vertex| xs[vertex]).collect())
        .collect();
    let sides = sides(lattice, xs, spacing);
    for side in &sides {
        for (place, &(chain, stop)) in side.ends.iter().enumerate() {
            stops[chain][stop] = side.usual(place);
        }
    }
    for pass in 0..PASSES {
        if pass == PASSES / 2 {
            nudge(lattice, xs, &mut stops, spacing);
        }
        for side in &sides {
            let wished: Vec<f64> = side
                .ends
                .iter()
                .enumerate()
                .map(|(place, &(chain, stop))| {
                    let beside = if stop == 0 { 1 } else { stop - 1 };
                    let other = stops[chain][beside];
                    match (side.low..=side.high).contains(&other) {
                        true => other,
                        false => side.usual(place),
                    }
                })
                .collect();
            let found = spread(&wished, side, spacing.whole);
            for (&(chain, stop), x) in side.ends.iter().zip(found) {
                stops[chain][stop] = x;
            }
        }
    }
    stops
}

/// Moves what is straight in the middle of a long line to above one of its ends, if that is near and there is room.
fn nudge(lattice: &Lattice, xs: &mut [f64], stops: &mut [Vec<f64>], spacing: &Spacing) {
    let places = lattice.places();
    for (way, stops) in lattice.chains.iter().zip(stops) {
        let Some(last) = stops.len().checked_sub(1).filter(|&last| last > 1) else {
            continue;
        };
        let here = stops[1];
        if stops[1..last].iter().any(|x| (x - here).abs() > 1e-6) {
            continue;
        }
        let near = |x: &f64| (x - here).abs() <= spacing.ports;
        let Some(there) = [stops[last], stops[0]].into_iter().find(near) else {
            continue;
        };
        let fits = way.vertices[1..last].iter().all(|&vertex| {
            let layer = &lattice.layers[lattice.vertices[vertex].layer];
            let place = places[vertex];
            let left = place.checked_sub(1).and_then(|left| layer.get(left));
            let right = layer.get(place + 1);
            left.is_none_or(|&left| there - xs[left] >= lattice.apart(left, vertex, spacing))
                && right
                    .is_none_or(|&right| xs[right] - there >= lattice.apart(vertex, right, spacing))
                && there >= lattice.vertices[vertex].left
        });
        if fits {
            for (stop, &vertex) in way.vertices.iter().enumerate().take(last).skip(1) {
                (xs[vertex], stops[stop]) = (there, there);
            }
        }
    }
}

fn sides(lattice: &Lattice, xs: &[f64], spacing: &Spacing) -> Vec<Side> {
    let mut below: Vec<Vec<(usize, usize)>> = vec![Vec::new(); lattice.nodes];
    let mut above = below.clone();
    for (chain, way) in lattice.chains.iter().enumerate() {
        if let (Some(&upper), Some(&lower)) = (way.vertices.first(), way.vertices.last()) {
            below[upper].push((chain, 0));
            above[lower].push((chain, way.vertices.len() - 1));
        }
    }
    let places = lattice.places();
    let other = |&(chain, stop): &(usize, usize)| {
        let beside = if stop == 0 { 1 } else { stop - 1 };
        (places[lattice.chains[chain].vertices[beside]], chain)
    };
    let mut sides = Vec::new();
    for (list, node) in below.into_iter().zip(0..).chain(above.into_iter().zip(0..)) {
        let mut ends: Vec<(usize, usize)> = list;
        if ends.is_empty() {
            continue;
        }
        ends.sort_by_key(other);
        let reach = (lattice.vertices[node].left - spacing.inset).max(0.0);
        let (low, high) = (xs[node] - reach, xs[node] + reach);
        let most = (high - low) / (ends.len() - 1).max(1) as f64;
        let apart = spacing.ports.min(most);
        sides.push(Side {
            ends,
            low,
            high,
            apart: if spacing.whole { apart.floor() } else { apart },
        });
    }
    sides
}

impl Side {
    /// Where a line goes that has no wish: all of them around the middle.
    fn usual(&self, place: usize) -> f64 {
        let middle = f64::midpoint(self.low, self.high);
        middle + (place as f64 - (self.ends.len() - 1) as f64 / 2.0) * self.apart
    }
}

/// Places as near to the wished ones as order, distance and the side's ends allow.
///
/// With the distances taken out this is isotonic regression, solved by pooling neighbours that violate the order.
fn spread(wished: &[f64], side: &Side, whole: bool) -> Vec<f64> {
    let taken = |place: usize| place as f64 * side.apart;
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (place, wish) in wished.iter().enumerate() {
        let mut pool = (wish - taken(place), 1);
        while let Some(&(mean, size)) = pools.last() {
            if mean <= pool.0 {
                break;
            }
            let sum = mean * size as f64 + pool.0 * pool.1 as f64;
            pool = (sum / (size + pool.1) as f64, size + pool.1);
            pools.pop();
        }
        pools.push(pool);
    }
    let last = (side.high - taken(wished.len().saturating_sub(1))).max(side.low);
    let flat = pools
        .iter()
        .flat_map(|&(mean, size)| std::iter::repeat_n(mean, size));
    flat.enumerate()
        .map(|(place, mean)| {
            let mean = mean.clamp(side.low, last);
            taken(place) + if whole { mean.round() } else { mean }
        })
        .collect()
}
