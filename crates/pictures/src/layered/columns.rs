//! The x of each vertex, so that lines are straight where they can be.
//!
//! Fifth step of the layout: Brandes and Köpf, "Fast and simple horizontal coordinate assignment" (2001), with the
//! blocks compacted over their graph. Four layouts, each drawn to one corner, are laid over one another; the mean of
//! the middle two keeps every distance and is balanced.

use super::{Spacing, lattice::Lattice, settle::settle};
use std::collections::BTreeSet;

/// The x of each vertex; what stands furthest left begins at 0.
pub(super) fn columns(lattice: &Lattice, spacing: &Spacing) -> Vec<f64> {
    let crossed = crossed(lattice);
    let mut layouts = Vec::with_capacity(4);
    for upwards in [false, true] {
        for mirrored in [false, true] {
            let view = View::new(lattice, upwards, mirrored);
            let blocks = view.blocks(&crossed);
            layouts.push(view.compact(&blocks, spacing));
        }
    }
    let mut xs = balanced(lattice, &layouts);
    if spacing.whole {
        // All distances are whole, so that rounding keeps them.
        xs.iter_mut().for_each(|x| *x = (*x + 1e-6).round());
    }
    settle(lattice, spacing, &mut xs);
    let lefts = lattice
        .vertices
        .iter()
        .zip(&xs)
        .map(|(vertex, x)| x - vertex.left);
    let first = lefts.fold(f64::INFINITY, f64::min);
    xs.iter_mut().for_each(|x| *x -= first);
    xs
}

/// The lines that cross the inner part of a long line: long lines are kept straight, and the others give way.
fn crossed(lattice: &Lattice) -> BTreeSet<(usize, usize)> {
    let places = lattice.places();
    let passed = |v: usize| lattice.vertices[v].passed;
    let mut crossed = BTreeSet::new();
    for (upper, lower) in lattice.layers.iter().zip(lattice.layers.iter().skip(1)) {
        let (mut from, mut next) = (0, 0);
        for (place, &vertex) in lower.iter().enumerate() {
            let above = lattice.above[vertex].first();
            let inner = above.filter(|&&up| passed(vertex) && passed(up));
            if inner.is_none() && place + 1 < lower.len() {
                continue;
            }
            let to = inner.map_or(upper.len(), |&up| places[up]);
            for &low in &lower[next..=place] {
                for &up in &lattice.above[low] {
                    let outside = places[up] < from || places[up] > to;
                    if outside && !(passed(up) && passed(low)) {
                        crossed.insert((up, low));
                    }
                }
            }
            (from, next) = (to, place + 1);
        }
    }
    crossed
}

/// The lattice as it looks from one of its corners.
struct View<'a> {
    lattice: &'a Lattice,
    layers: Vec<Vec<usize>>,
    /// Per vertex its neighbours in the layer before, from this view's left to its right.
    before: Vec<Vec<usize>>,
    places: Vec<usize>,
    upwards: bool,
    mirrored: bool,
}

impl<'a> View<'a> {
    fn new(lattice: &'a Lattice, upwards: bool, mirrored: bool) -> View<'a> {
        let mut layers = lattice.layers.clone();
        let mut before = lattice.above.clone();
        if upwards {
            layers.reverse();
            before.clone_from(&lattice.below);
        }
        let mut places = vec![0; lattice.vertices.len()];
        for layer in &mut layers {
            if mirrored {
                layer.reverse();
            }
            for (place, &vertex) in layer.iter().enumerate() {
                places[vertex] = place;
            }
        }
        for list in &mut before {
            list.sort_by_key(|&v| places[v]);
        }
        View {
            lattice,
            layers,
            before,
            places,
            upwards,
            mirrored,
        }
    }

    /// For each vertex the first of its block: vertices of a block get the same x.
    fn blocks(&self, crossed: &BTreeSet<(usize, usize)>) -> Vec<usize> {
        let count = self.lattice.vertices.len();
        let mut root: Vec<usize> = (0..count).collect();
        let mut taken = vec![false; count];
        for layer in &self.layers {
            let mut free = 0;
            for &vertex in layer {
                let before = &self.before[vertex];
                let Some(last) = before.len().checked_sub(1) else {
                    continue;
                };
                for &other in &before[last / 2..=last.div_ceil(2)] {
                    let line = match self.upwards {
                        true => (vertex, other),
                        false => (other, vertex),
                    };
                    let place = self.places[other];
                    if !taken[other] && place >= free && !crossed.contains(&line) {
                        taken[other] = true;
                        root[vertex] = root[other];
                        free = place + 1;
                        break;
                    }
                }
            }
        }
        root
    }

    /// Pushes the blocks to the left as far as they go, then those that have room to the right.
    fn compact(&self, root: &[usize], spacing: &Spacing) -> Vec<f64> {
        let count = root.len();
        let (mut after, mut before) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for layer in &self.layers {
            for pair in layer.windows(2) {
                let &[left, right] = pair else { continue };
                let apart = match self.mirrored {
                    true => self.lattice.apart(right, left, spacing),
                    false => self.lattice.apart(left, right, spacing),
                };
                after[root[left]].push((root[right], apart));
                before[root[right]].push((root[left], apart));
            }
        }
        let sorted = sorted(root, &after, &before);
        let mut xs = vec![0.0_f64; count];
        for &block in &sorted {
            let limits = before[block].iter().map(|&(left, apart)| xs[left] + apart);
            xs[block] = limits.fold(0.0, f64::max);
        }
        for &block in sorted.iter().rev() {
            let limits = after[block].iter().map(|&(right, apart)| xs[right] - apart);
            let most = limits.fold(f64::INFINITY, f64::min);
            if most.is_finite() {
                xs[block] = xs[block].max(most);
            }
        }
        let sign = if self.mirrored { -1.0 } else { 1.0 };
        root.iter().map(|&block| xs[block] * sign).collect()
    }
}

/// The blocks so that each comes after those at its left.
fn sorted(root: &[usize], after: &[Vec<(usize, f64)>], before: &[Vec<(usize, f64)>]) -> Vec<usize> {
    let mut waiting: Vec<usize> = before.iter().map(Vec::len).collect();
    let is_first = |&block: &usize| root[block] == block && waiting[block] == 0;
    let mut sorted: Vec<usize> = (0..root.len()).filter(is_first).collect();
    let mut next = 0;
    while let Some(&block) = sorted.get(next) {
        next += 1;
        for &(right, _) in &after[block] {
            waiting[right] -= 1;
            if waiting[right] == 0 {
                sorted.push(right);
            }
        }
    }
    sorted
}

/// Lays the layouts over the narrowest of them and takes the mean of the middle two.
fn balanced(lattice: &Lattice, layouts: &[Vec<f64>]) -> Vec<f64> {
    let ends = |xs: &[f64]| {
        let mut ends = (f64::INFINITY, f64::NEG_INFINITY);
        for (vertex, x) in lattice.vertices.iter().zip(xs) {
            ends = (ends.0.min(x - vertex.left), ends.1.max(x + vertex.right));
        }
        ends
    };
    let all: Vec<(f64, f64)> = layouts.iter().map(|xs| ends(xs)).collect();
    let width = |(low, high): &(f64, f64)| high - low;
    let Some(&(low, high)) = all.iter().min_by(|a, b| width(a).total_cmp(&width(b))) else {
        return Vec::new();
    };
    let shift = |place: usize| match place % 2 {
        0 => low - all[place].0,
        _ => high - all[place].1,
    };
    let shifts: Vec<f64> = (0..all.len()).map(shift).collect();
    let count = lattice.vertices.len();
    let middle = (0..count).map(|vertex| {
        let found = layouts
            .iter()
            .zip(&shifts)
            .map(|(xs, shift)| xs[vertex] + shift);
        let mut found: Vec<f64> = found.collect();
        found.sort_by(f64::total_cmp);
        match found.as_slice() {
            [_, one, other, _] => (one + other) / 2.0,
            _ => 0.0,
        }
    });
    middle.collect()
}
