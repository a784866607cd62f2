//! The layer of each node: below all that leads to it, and near what it is connected with.
//!
//! Second step of the layout. A labelled link spans two layers at least, so that its label has a layer to stand in.

use super::{Link, Node};

/// How often nodes are moved towards their neighbours.
const PASSES: usize = 8;

/// A link as it is drawn, from above to below.
struct Down {
    upper: usize,
    lower: usize,
    least: usize,
}

/// The layer of each node, from 0.
pub(super) fn ranks(nodes: &[Node], links: &[Link], upwards: &[bool]) -> Vec<usize> {
    let downs: Vec<Down> = links
        .iter()
        .zip(upwards)
        .filter(|(link, _)| link.from != link.to)
        .map(|(link, &upwards)| {
            let (upper, lower) = match upwards {
                true => (link.to, link.from),
                false => (link.from, link.to),
            };
            let least = if link.label.is_some() { 2 } else { 1 };
            Down {
                upper,
                lower,
                least,
            }
        })
        .collect();
    let (mut above, mut below) = (vec![Vec::new(); nodes.len()], vec![Vec::new(); nodes.len()]);
    for (place, down) in downs.iter().enumerate() {
        above[down.lower].push(place);
        below[down.upper].push(place);
    }
    let sorted = sorted(nodes.len(), &downs, &above, &below);
    let mut ranks = vec![0; nodes.len()];
    for &node in &sorted {
        ranks[node] = lowest(&downs, &above[node], &ranks);
    }
    let deepest = ranks.iter().copied().max().unwrap_or(0);
    for (node, rank) in ranks.iter_mut().enumerate() {
        // What leads nowhere can go down as far as there are layers.
        if nodes[node].last && below[node].is_empty() {
            *rank = deepest;
        }
    }
    tighten(nodes, &sorted, &downs, (&above, &below), &mut ranks);
    let top = ranks.iter().copied().min().unwrap_or(0);
    ranks.iter().map(|rank| rank - top).collect()
}

/// The nodes so that each comes after all that lead to it; of several, in the order of declaration.
fn sorted(nodes: usize, downs: &[Down], above: &[Vec<usize>], below: &[Vec<usize>]) -> Vec<usize> {
    let mut waiting: Vec<usize> = above.iter().map(Vec::len).collect();
    let mut sorted: Vec<usize> = (0..nodes).filter(|&node| waiting[node] == 0).collect();
    let mut next = 0;
    while let Some(&node) = sorted.get(next) {
        next += 1;
        for &down in &below[node] {
            let lower = downs[down].lower;
            waiting[lower] -= 1;
            if waiting[lower] == 0 {
                sorted.push(lower);
            }
        }
    }
    sorted
}

/// Moves nodes within what their neighbours allow, to where their links are shorter together.
fn tighten(
    nodes: &[Node],
    sorted: &[usize],
    downs: &[Down],
    (above, below): (&[Vec<usize>], &[Vec<usize>]),
    ranks: &mut [usize],
) {
    for _ in 0..PASSES {
        let mut moved = false;
        for &node in sorted.iter().rev() {
            let (ups, outs) = (above[node].len(), below[node].len());
            let better = match ups.cmp(&outs) {
                _ if nodes[node].last => continue,
                std::cmp::Ordering::Less => {
                    let limits = below[node]
                        .iter()
                        .map(|&d| ranks[downs[d].lower] - downs[d].least);
                    limits.min().unwrap_or(ranks[node])
                }
                std::cmp::Ordering::Greater => lowest(downs, &above[node], ranks),
                std::cmp::Ordering::Equal => continue,
            };
            moved |= better != ranks[node];
            ranks[node] = better;
        }
        if !moved {
            break;
        }
    }
}

/// The first layer below all that lead to a node.
fn lowest(downs: &[Down], above: &[usize], ranks: &[usize]) -> usize {
    let limits = above
        .iter()
        .map(|&d| ranks[downs[d].upper] + downs[d].least);
    limits.max().unwrap_or(0)
}
