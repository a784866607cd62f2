//! Moves what stands far from its neighbours nearer to them, once every vertex has an x.
//!
//! `columns` calls it. What stands straight one over another moves as one, and all distances are kept: so nothing
//! gets less straight and nothing overlaps, and wide graphs become narrower.

use super::{Spacing, lattice::Lattice};

/// How often everything is looked at.
const PASSES: usize = 24;
/// Above so many vertices fewer passes are made.
const LARGE: usize = 6_000;
/// Differences that count as none.
const SAME: f64 = 1e-6;

pub(super) fn settle(lattice: &Lattice, spacing: &Spacing, xs: &mut [f64]) {
    let passes = if lattice.vertices.len() > LARGE {
        4
    } else {
        PASSES
    };
    let places = lattice.places();
    for _ in 0..passes {
        let mut moved = false;
        let unit = units(lattice, xs);
        for members in grouped(&unit) {
            let Some(wish) = wish(lattice, &unit, &members, xs) else {
                continue;
            };
            let slack = slack(lattice, spacing, &places, &members, xs);
            let step = wish.clamp(-slack.0, slack.1);
            let step = if spacing.whole { step.round() } else { step };
            if step.abs() > 0.25 {
                moved = true;
                members.iter().for_each(|&vertex| xs[vertex] += step);
            }
        }
        if !moved {
            break;
        }
    }
}

/// For each vertex which of those joined to it in straight lines is the first.
fn units(lattice: &Lattice, xs: &[f64]) -> Vec<usize> {
    let mut unit: Vec<usize> = (0..xs.len()).collect();
    for layer in &lattice.layers {
        for &vertex in layer {
            for &above in &lattice.above[vertex] {
                if (xs[above] - xs[vertex]).abs() < SAME {
                    unit[vertex] = unit[above];
                }
            }
        }
    }
    unit
}

fn grouped(unit: &[usize]) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new(); unit.len()];
    for (vertex, &first) in unit.iter().enumerate() {
        groups[first].push(vertex);
    }
    groups.retain(|members| !members.is_empty());
    groups
}

/// How far a unit would like to go: the median of where its lines lead.
fn wish(lattice: &Lattice, unit: &[usize], members: &[usize], xs: &[f64]) -> Option<f64> {
    let mut far = Vec::new();
    for &vertex in members {
        for &other in lattice.above[vertex].iter().chain(&lattice.below[vertex]) {
            if unit[other] != unit[vertex] {
                far.push(xs[other] - xs[vertex]);
            }
        }
    }
    far.sort_by(f64::total_cmp);
    let (low, high) = (
        far.get(far.len().checked_sub(1)? / 2)?,
        far.get(far.len() / 2)?,
    );
    // Between the middle two every place is as good, so the nearest is taken.
    Some(0.0_f64.clamp(*low, *high))
}

/// How far a unit can go to the left and to the right.
fn slack(
    lattice: &Lattice,
    spacing: &Spacing,
    places: &[usize],
    members: &[usize],
    xs: &[f64],
) -> (f64, f64) {
    let mut slack = (f64::INFINITY, f64::INFINITY);
    for &vertex in members {
        let layer = &lattice.layers[lattice.vertices[vertex].layer];
        let place = places[vertex];
        if let Some(&left) = place.checked_sub(1).and_then(|place| layer.get(place)) {
            let free = xs[vertex] - xs[left] - lattice.apart(left, vertex, spacing);
            slack.0 = slack.0.min(free.max(0.0));
        }
        if let Some(&right) = layer.get(place + 1) {
            let free = xs[right] - xs[vertex] - lattice.apart(vertex, right, spacing);
            slack.1 = slack.1.min(free.max(0.0));
        }
    }
    slack
}
