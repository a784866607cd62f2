//! Which edges run upwards, so that the others form no cycle.
//!
//! First step of the layout. The nodes are walked depth first in the order of their declaration, which starts at the
//! graph's start: an edge to a node that is still being walked closes a cycle.

use super::Link;

#[derive(Clone, Copy, PartialEq)]
enum Walk {
    Ahead,
    Open,
    Done,
}

/// For each link whether it is drawn from below to above. Edges from a node to itself are not.
pub(super) fn upwards(nodes: usize, links: &[Link]) -> Vec<bool> {
    let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (place, link) in links.iter().enumerate() {
        leaving[link.from].push(place);
    }
    let mut upwards = vec![false; links.len()];
    let mut walk = vec![Walk::Ahead; nodes];
    for first in 0..nodes {
        if walk[first] != Walk::Ahead {
            continue;
        }
        walk[first] = Walk::Open;
        // No recursion: a chain may be as long as there are nodes.
        let mut path = vec![(first, 0)];
        while let Some((node, next)) = path.last_mut() {
            let Some(&place) = leaving[*node].get(*next) else {
                walk[*node] = Walk::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let (from, to) = (*node, links[place].to);
            match walk[to] {
                Walk::Open => upwards[place] = from != to,
                Walk::Done => {}
                Walk::Ahead => {
                    walk[to] = Walk::Open;
                    path.push((to, 0));
                }
            }
        }
    }
    upwards
}
