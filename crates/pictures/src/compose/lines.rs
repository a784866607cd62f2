//! The lines of edges with their arrows and labels.
//!
//! A line leaves a box and enters the next one straight down; it moves sideways only between two layers, where no
//! box is.

use super::{PLATE, Rows, SMALL, arrow, text};
use crate::{
    font::Font,
    layered::{Arranged, Chain},
    palette::Role,
    plan::{Edge, Plan, Style},
    scene::{Curve, Group, Point, Rect, Shape},
};

/// An arrow's length.
const ARROW: f64 = 9.0;
/// How far the first edge from a node to itself goes out, and each further one beyond the last.
const LOOP: f64 = 30.0;
const FURTHER: f64 = 12.0;
/// Between such an edge and its label, and between two labels.
const BESIDE: f64 = 3.0;
/// Half the distance between where such an edge leaves and where it comes back.
const MOUTH: f64 = 8.0;

/// How much room a node needs at its right for edges to itself.
pub(super) fn room(plan: &Plan, node: usize, font: &Font) -> f64 {
    let loops = loops(plan, node);
    let Some(further) = loops.len().checked_sub(1) else {
        return 0.0;
    };
    let texts = loops.iter().filter_map(|edge| edge.label.as_deref());
    let widths = texts.map(|text| font.width(text, SMALL) + 6.0 + BESIDE);
    LOOP + FURTHER * further as f64 + widths.sum::<f64>()
}

/// The edges from a node to itself, from the innermost; their labels stand beside one another in the same order.
fn loops(plan: &Plan, node: usize) -> Vec<&Edge> {
    let own = plan
        .edges
        .iter()
        .filter(|edge| edge.from == node && edge.to == node);
    let mut loops: Vec<&Edge> = own.collect();
    loops.sort_by_key(|edge| (edge.label.is_some(), edge.kind));
    loops
}

/// Draws the lines.
pub(super) fn draw(
    plan: &Plan,
    arranged: &Arranged,
    rows: &Rows,
    spots: &[Rect],
    groups: &mut Vec<Group>,
) {
    for (edge, chain) in plan.edges.iter().zip(&arranged.chains) {
        if edge.from != edge.to {
            let shapes = line(edge, chain, rows, spots);
            groups.push(titled(plan, edge, shapes));
        }
    }
    for (node, &spot) in spots.iter().enumerate() {
        for (place, edge) in loops(plan, node).into_iter().enumerate() {
            let out = LOOP + FURTHER * place as f64;
            groups.push(titled(plan, edge, around(spot, out, edge.kind)));
        }
    }
}

fn titled(plan: &Plan, edge: &Edge, shapes: Vec<Shape>) -> Group {
    let name = |node: usize| plan.nodes.get(node).map_or("", |node| node.full.as_str());
    let (from, to) = (name(edge.from), name(edge.to));
    Group {
        title: format!("{from} → {to} ({})", edge.words()),
        shapes,
    }
}

fn line(edge: &Edge, chain: &Chain, rows: &Rows, spots: &[Rect]) -> Vec<Shape> {
    let (upper, lower) = match chain.upwards {
        true => (spots[edge.to], spots[edge.from]),
        false => (spots[edge.from], spots[edge.to]),
    };
    let (Some(first), Some(last)) = (chain.stops.first(), chain.stops.last()) else {
        return Vec::new();
    };
    let (top, bottom) = (upper.y + upper.height, lower.y);
    // Where the arrow is, the line ends at its back.
    let (back, front) = if chain.upwards {
        (ARROW, 0.0)
    } else {
        (0.0, ARROW)
    };
    let start = Point::new(first.x, top + back);
    let mut curves = Vec::new();
    let mut here = start;
    for pair in chain.stops.windows(2) {
        let [one, other] = pair else { continue };
        // Straight out of the layer, as low as its highest box goes; then to the side; then straight on.
        let leave = Point::new(one.x, rows.bottom(one.layer).max(here.y));
        let is_last = other.layer == last.layer;
        let enter = rows.top(other.layer);
        let enter = Point::new(
            other.x,
            if is_last {
                enter.min(bottom - front)
            } else {
                enter
            },
        );
        straight(&mut curves, here, leave);
        bend(&mut curves, leave, enter);
        here = enter;
    }
    let end = Point::new(last.x, bottom - front);
    straight(&mut curves, here, end);
    let tip = match chain.upwards {
        true => arrow(Point::new(first.x, top), (0.0, ARROW), edge.kind),
        false => arrow(Point::new(last.x, bottom), (0.0, -ARROW), edge.kind),
    };
    let role = Role::Edge(edge.kind);
    vec![
        Shape::Line {
            start,
            curves,
            role,
        },
        tip,
    ]
}

fn straight(curves: &mut Vec<Curve>, from: Point, to: Point) {
    if (to.y - from.y).abs() > 0.05 {
        curves.push(Curve::Straight(to));
    }
}

fn bend(curves: &mut Vec<Curve>, from: Point, to: Point) {
    if (to.x - from.x).abs() < 0.05 {
        return straight(curves, from, to);
    }
    let middle = f64::midpoint(from.y, to.y);
    let (one, other) = (Point::new(from.x, middle), Point::new(to.x, middle));
    curves.push(Curve::Bend(one, other, to));
}

/// An edge from a node to itself, out of its right side and back in.
fn around(spot: Rect, out: f64, style: Style) -> Vec<Shape> {
    let (x, y) = (spot.x + spot.width, spot.y + spot.height / 2.0);
    let role = Role::Edge(style);
    // A cubic curve comes three quarters as near as its control points, and starts at two different places.
    let reach = x + (out - ARROW / 8.0 - 4.0) * 4.0 / 3.0;
    let high = MOUTH + out * 0.4;
    vec![
        Shape::Line {
            start: Point::new(x, y - MOUTH),
            curves: vec![Curve::Bend(
                Point::new(reach, y - high),
                Point::new(reach, y + high),
                Point::new(x + ARROW, y + MOUTH),
            )],
            role,
        },
        arrow(Point::new(x, y + MOUTH), (ARROW, 0.0), style),
    ]
}

/// Draws what is written on the lines, over all of them.
pub(super) fn draw_labels(
    plan: &Plan,
    arranged: &Arranged,
    rows: &Rows,
    (spots, font, framed): (&[Rect], &Font, bool),
    groups: &mut Vec<Group>,
) {
    let role = if framed {
        Role::FramePlate
    } else {
        Role::Plate
    };
    let width = |words: &str| font.width(words, SMALL) + 6.0;
    let stops = plan.edges.iter().zip(&arranged.chains);
    let mut places: Vec<(&Edge, &str, Point)> = stops
        .filter_map(|(edge, chain)| {
            let stop = chain.label.and_then(|label| chain.stops.get(label))?;
            let at = Point::new(stop.x, rows.middle(stop.layer));
            Some((edge, edge.label.as_deref()?, at))
        })
        .collect();
    for (node, spot) in spots.iter().enumerate() {
        let loops = loops(plan, node);
        let lines = LOOP + FURTHER * loops.len().saturating_sub(1) as f64;
        let mut x = spot.x + spot.width + lines;
        for edge in loops {
            let Some(words) = edge.label.as_deref() else {
                continue;
            };
            let middle = x + BESIDE + width(words) / 2.0;
            places.push((edge, words, Point::new(middle, spot.y + spot.height / 2.0)));
            x = middle + width(words) / 2.0;
        }
    }
    for (edge, words, at) in places {
        let width = width(words);
        let rect = Rect {
            x: at.x - width / 2.0,
            y: at.y - PLATE / 2.0,
            width,
            height: PLATE,
        };
        let plate = Shape::Box {
            rect,
            radius: 3.0,
            role,
        };
        let shapes = vec![plate, text(words, at, SMALL, Role::Edge(edge.kind), font)];
        groups.push(titled(plan, edge, shapes));
    }
}
