//! The order within the layers, so that few lines cross.
//!
//! Fourth step of the layout: sweeps that put each vertex at the median of its neighbours in the layer before, then
//! exchanges of neighbours, as in Gansner, Koutsofios, North and Vo (1993). The best order that was seen is kept.

use super::lattice::Lattice;

/// How many sweeps there are at most, and how many without gain end them.
const SWEEPS: usize = 32;
const PATIENCE: usize = 8;
/// Above so many vertices neighbours are not exchanged and fewer sweeps made: the time would be felt.
const LARGE: usize = 6_000;

pub(super) fn order(lattice: &mut Lattice) {
    let large = lattice.vertices.len() > LARGE;
    let mut best = lattice.layers.clone();
    let mut fewest = crossings(lattice);
    let mut vain = 0;
    for sweep in 0..SWEEPS {
        if fewest == 0 || vain >= PATIENCE || (large && sweep >= PATIENCE) {
            break;
        }
        medians(lattice, sweep % 2 == 0, sweep % 4 >= 2);
        if !large {
            exchange(lattice);
        }
        let now = crossings(lattice);
        vain += 1;
        if now < fewest {
            fewest = now;
            vain = 0;
            best.clone_from(&lattice.layers);
        }
    }
    lattice.layers = best;
}

/// Orders each layer by the one above it (or below it, from the last up). Of equals, `turn` puts the later first.
fn medians(lattice: &mut Lattice, down: bool, turn: bool) {
    let mut places = lattice.places();
    let count = lattice.layers.len();
    for step in 1..count {
        let layer = if down { step } else { count - 1 - step };
        let beside = if down { &lattice.above } else { &lattice.below };
        let old = &lattice.layers[layer];
        let keys: Vec<Option<f64>> = old.iter().map(|&v| median(&beside[v], &places)).collect();
        let mut keyed: Vec<(f64, usize)> = Vec::with_capacity(old.len());
        keyed.extend(
            keys.iter()
                .zip(old)
                .filter_map(|(key, &v)| Some(((*key)?, v))),
        );
        if turn {
            keyed.reverse();
        }
        keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
        // Vertices without neighbours there stay where they are.
        let mut sorted = keyed.into_iter().map(|(_, vertex)| vertex);
        let new = keys.iter().zip(old).map(|(key, &vertex)| match key {
            Some(_) => sorted.next().unwrap_or(vertex),
            None => vertex,
        });
        let new: Vec<usize> = new.collect();
        for (place, &vertex) in new.iter().enumerate() {
            places[vertex] = place;
        }
        lattice.layers[layer] = new;
    }
}

/// The median place of the neighbours; of an even number, between the middle two and nearer to the denser side.
fn median(beside: &[usize], places: &[usize]) -> Option<f64> {
    let mut found: Vec<f64> = beside.iter().map(|&v| places[v] as f64).collect();
    found.sort_by(f64::total_cmp);
    let middle = found.len() / 2;
    let &high = found.get(middle)?;
    if found.len() % 2 == 1 {
        return Some(high);
    }
    let low = found[middle - 1];
    if found.len() == 2 {
        return Some((low + high) / 2.0);
    }
    let left = low - found[0];
    let right = found[found.len() - 1] - high;
    match left + right > 0.0 {
        true => Some((low * right + high * left) / (left + right)),
        false => Some((low + high) / 2.0),
    }
}

/// Exchanges neighbours as long as that takes crossings away.
fn exchange(lattice: &mut Lattice) {
    let mut places = lattice.places();
    for _ in 0..PATIENCE {
        let mut gained = false;
        for layer in 0..lattice.layers.len() {
            for right in 1..lattice.layers[layer].len() {
                let (one, other) = (
                    lattice.layers[layer][right - 1],
                    lattice.layers[layer][right],
                );
                let (mut now, mut then) = (0, 0);
                for beside in [&lattice.above, &lattice.below] {
                    now += between(&beside[one], &beside[other], &places);
                    then += between(&beside[other], &beside[one], &places);
                }
                if then < now {
                    lattice.layers[layer].swap(right - 1, right);
                    places.swap(one, other);
                    gained = true;
                }
            }
        }
        if !gained {
            break;
        }
    }
}

/// How many lines of two neighbours cross when the first stands at the left.
fn between(left: &[usize], right: &[usize], places: &[usize]) -> usize {
    let crossed = |&l: &usize| right.iter().filter(|&&r| places[r] < places[l]).count();
    left.iter().map(crossed).sum()
}

/// How many lines cross in all.
pub(super) fn crossings(lattice: &Lattice) -> usize {
    let places = lattice.places();
    let mut sum = 0;
    for (upper, lower) in lattice.layers.iter().zip(lattice.layers.iter().skip(1)) {
        // A Fenwick tree of the places that earlier lines lead to: each line crosses those that end further right.
        let mut tree = vec![0_usize; lower.len() + 1];
        let mut lines = 0;
        for &vertex in upper {
            let mut ends: Vec<usize> = lattice.below[vertex].iter().map(|&v| places[v]).collect();
            ends.sort_unstable();
            for &end in &ends {
                let (mut before, mut at) = (0, end + 1);
                while at > 0 {
                    before += tree[at];
                    at &= at - 1;
                }
                sum += lines - before;
            }
            for &end in &ends {
                let mut at = end + 1;
                while at < tree.len() {
                    tree[at] += 1;
                    at += at & at.wrapping_neg();
                }
                lines += 1;
            }
        }
    }
    sum
}
