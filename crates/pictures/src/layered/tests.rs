#![allow(clippy::unwrap_used, reason = "a failed test may panic")]
//! The layout on graphs drawn by lot, and its steps on small ones.

use super::*;
use proptest::prelude::*;

fn node(half: f64) -> Node {
    Node {
        half,
        room: 0.0,
        last: false,
    }
}

fn link((from, to): (usize, usize)) -> Link {
    Link {
        from,
        to,
        label: None,
    }
}

const PIXELS: Spacing = Spacing {
    boxes: 30.0,
    lines: 18.0,
    ports: 14.0,
    inset: 14.0,
    whole: false,
};
const CHARACTERS: Spacing = Spacing {
    boxes: 3.0,
    lines: 2.0,
    ports: 3.0,
    inset: 1.0,
    whole: true,
};

fn lattice(count: usize, links: &[(usize, usize)]) -> Lattice {
    let nodes: Vec<Node> = (0..count).map(|_| node(20.0)).collect();
    let links: Vec<Link> = links.iter().copied().map(link).collect();
    let upwards = cycles::upwards(count, &links);
    let ranks = ranks::ranks(&nodes, &links, &upwards);
    Lattice::new(&nodes, &links, &upwards, &ranks, &PIXELS).unwrap()
}

#[test]
fn edges_that_close_a_cycle_run_upwards() {
    let links = [(0, 1), (1, 2), (2, 0), (2, 2), (2, 1), (0, 2)].map(link);
    let upwards = cycles::upwards(3, &links);
    assert_eq!(upwards, [false, false, true, false, true, false]);
}

#[test]
fn nodes_stand_below_what_leads_to_them_and_the_last_at_the_bottom() {
    // 0 → 1 → 2 → 3, and 4, which leads to 3, stands beside 2 and not at the top; 5 is the end.
    let mut nodes = [node(20.0); 6];
    nodes[5].last = true;
    let links = [(0, 1), (1, 2), (2, 3), (4, 3), (0, 5)].map(link);
    let ranks = ranks::ranks(&nodes, &links, &[false; 5]);
    assert_eq!(ranks, [0, 1, 2, 3, 2, 3]);
}

#[test]
fn a_labelled_line_has_a_layer_for_its_label() {
    let mut links = [(0, 1)].map(link);
    links[0].label = Some(30.0);
    let arranged = arrange(&[node(20.0), node(20.0)], &links, &PIXELS).unwrap();
    let chain = &arranged.chains[0];
    assert_eq!(
        (arranged.layers, chain.stops.len(), chain.label),
        (3, 3, Some(1))
    );
}

#[test]
fn crossings_are_counted_and_taken_away() {
    let crossed = lattice(4, &[(0, 2), (0, 3), (1, 2), (1, 3)]);
    assert_eq!(order::crossings(&crossed), 1);
    // Six pairs that are declared criss-cross, and a tree whose leaves are.
    let mut pairs = lattice(12, &[(0, 11), (1, 10), (2, 9), (3, 8), (4, 7), (5, 6)]);
    pairs.layers = vec![vec![0, 1, 2, 3, 4, 5], vec![6, 7, 8, 9, 10, 11]];
    assert_eq!(order::crossings(&pairs), 15);
    order::order(&mut pairs);
    assert_eq!(order::crossings(&pairs), 0);
    let mut tree = lattice(7, &[(0, 1), (0, 2), (1, 5), (1, 3), (2, 4), (2, 6)]);
    tree.layers[2] = vec![3, 4, 5, 6];
    assert!(order::crossings(&tree) > 0);
    order::order(&mut tree);
    assert_eq!(order::crossings(&tree), 0);
}

#[test]
fn a_chain_is_one_straight_line() {
    let nodes = [node(20.0), node(50.0), node(10.0)];
    let arranged = arrange(&nodes, &[(0, 1), (1, 2)].map(link), &PIXELS).unwrap();
    let xs: Vec<f64> = arranged
        .chains
        .iter()
        .flat_map(|c| c.stops.iter().map(|s| s.x))
        .collect();
    assert_eq!(xs, [50.0; 4]);
}

#[test]
fn too_many_long_lines_are_refused() {
    // A chain of 400 nodes, each of which leads to each of the last ones too.
    let mut links: Vec<(usize, usize)> = (1..400).map(|n| (n - 1, n)).collect();
    links.extend((0..200).flat_map(|from| (398..400).map(move |to| (from, to))));
    let nodes = [node(1.0); 400];
    let links: Vec<Link> = links.into_iter().map(link).collect();
    let refused = arrange(&nodes, &links, &PIXELS).unwrap_err().to_string();
    let said =
        "crossings of lines and layers, and at most 60000 are drawn: draw its subgraphs one by one";
    assert!(refused.contains(said), "{refused}");
}

prop_compose! {
    fn graph()(count in 1..20_usize)(
        halves in prop::collection::vec(1..60_u8, count),
        links in prop::collection::vec((0..count, 0..count, any::<Option<u8>>()), 0..40),
    ) -> (Vec<u8>, Vec<(usize, usize, Option<u8>)>) {
        (halves, links)
    }
}

proptest! {
    #[test]
    fn nothing_overlaps_and_lines_end_on_their_boxes((halves, links) in graph(), whole: bool) {
        let spacing = if whole { CHARACTERS } else { PIXELS };
        let nodes: Vec<Node> = halves.iter().map(|&half| node(f64::from(half))).collect();
        let links: Vec<Link> = links.into_iter().map(|(from, to, label)| Link {
            from,
            to,
            label: label.map(|width| f64::from(width / 2 * 2)),
        }).collect();
        let arranged = arrange(&nodes, &links, &spacing).unwrap();
        // What stands in each layer, by its left and right ends.
        let mut layers: Vec<Vec<(f64, f64)>> = vec![Vec::new(); arranged.layers];
        for spot in &arranged.nodes {
            layers[spot.layer].push((spot.x - spot.half, spot.x + spot.half));
        }
        for (link, chain) in links.iter().zip(&arranged.chains) {
            if link.from == link.to {
                prop_assert!(chain.stops.is_empty());
                continue;
            }
            let ends = if chain.upwards { (link.to, link.from) } else { (link.from, link.to) };
            let (upper, lower) = (arranged.nodes[ends.0], arranged.nodes[ends.1]);
            let (first, last) = (chain.stops[0], chain.stops[chain.stops.len() - 1]);
            for (stop, spot) in [(first, upper), (last, lower)] {
                prop_assert_eq!(stop.layer, spot.layer);
                prop_assert!((stop.x - spot.x).abs() < spot.half, "{} on {}", stop.x, spot.x);
            }
            for pair in chain.stops.windows(2) {
                prop_assert_eq!(pair[0].layer + 1, pair[1].layer);
            }
            for (place, stop) in chain.stops.iter().enumerate().skip(1).take(chain.stops.len() - 2) {
                let half = if chain.label == Some(place) { link.label.unwrap() / 2.0 } else { 0.0 };
                layers[stop.layer].push((stop.x - half, stop.x + half));
            }
            if whole {
                prop_assert!(chain.stops.iter().all(|stop| stop.x.fract() == 0.0));
            }
        }
        for layer in &mut layers {
            layer.sort_by(|one, other| one.0.total_cmp(&other.0));
            for pair in layer.windows(2) {
                prop_assert!(pair[0].1 + spacing.lines.min(spacing.boxes) <= pair[1].0 + 1e-3, "{:?}", pair);
            }
            for (left, right) in layer {
                prop_assert!(*left > -1e-6 && *right < arranged.width + 1e-6);
            }
        }
    }
}
