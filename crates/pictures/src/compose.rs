//! From a plan to a scene: boxes, lines and labels in pixels, subgraphs laid out for themselves inside their boxes.
//!
//! `svg` and `png` call it. It decides sizes and what a line looks like; where things stand is `layered`'s.

mod boxes;
mod legend;
mod lines;

#[cfg(test)]
mod tests;

use crate::{
    Error,
    font::Font,
    layered::{Arranged, Link, Node as Slot, Spacing, arrange},
    palette::Role,
    plan::{Cut, Kind, Plan, Style},
    scene::{Group, Point, Rect, Scene, Shape},
};
use boxes::Face;

/// How names are shortened in a picture; the whole name is shown when somebody points at the box.
pub(crate) const CUT: Cut = Cut {
    longest: 36,
    mark: "…",
};

/// Free space around the picture.
const MARGIN: f64 = 20.0;
/// Sizes of letters.
const SIZE: f64 = 14.0;
const SMALL: f64 = 11.0;
/// Height of what is written on a line.
const PLATE: f64 = 18.0;
/// Between two layers of boxes: at least, at most, and by how much more per pixel that a line runs sideways.
const GAP: f64 = 40.0;
const WIDEST_GAP: f64 = 120.0;
const SLOPE: f64 = 0.12;
/// Between two layers of which one has no boxes.
const NARROW_GAP: f64 = 24.0;

const SPACING: Spacing = Spacing {
    boxes: 32.0,
    lines: 18.0,
    ports: 14.0,
    inset: 14.0,
    whole: false,
};

/// A graph that has been laid out, with its left upper corner at 0.
struct Part {
    width: f64,
    height: f64,
    groups: Vec<Group>,
}

/// The heights of the layers.
struct Rows {
    tops: Vec<f64>,
    heights: Vec<f64>,
}

impl Rows {
    fn top(&self, layer: usize) -> f64 {
        self.tops.get(layer).copied().unwrap_or(0.0)
    }

    fn bottom(&self, layer: usize) -> f64 {
        self.top(layer) + self.heights.get(layer).copied().unwrap_or(0.0)
    }

    fn middle(&self, layer: usize) -> f64 {
        f64::midpoint(self.top(layer), self.bottom(layer))
    }
}

/// Lays a plan out and draws it.
///
/// # Errors
/// When its lines are too many.
pub(crate) fn compose(plan: &Plan) -> Result<Scene, Error> {
    let font = Font::included()?;
    let graph = part(plan, &font, false)?;
    let legend = legend::legend(plan, &font, graph.width);
    let inner = graph.width.max(legend.width);
    // Whole pixels, so that the ground covers the last of them too.
    let lower = (graph.height + 2.0 * MARGIN).ceil();
    let (width, mut height) = ((inner + 2.0 * MARGIN).ceil(), lower);
    let ground = |height| Group {
        title: String::new(),
        shapes: vec![Shape::Box {
            rect: Rect {
                x: 0.0,
                y: 0.0,
                width,
                height,
            },
            radius: 8.0,
            role: Role::Ground,
        }],
    };
    let mut groups = Vec::new();
    take(
        &mut groups,
        graph.groups,
        MARGIN + (inner - graph.width) / 2.0,
        MARGIN,
    );
    if !legend.groups.is_empty() {
        height = lower + legend.height + MARGIN;
        take(
            &mut groups,
            legend.groups,
            MARGIN + (inner - legend.width) / 2.0,
            lower,
        );
    }
    groups.insert(0, ground(height));
    Ok(Scene {
        title: plan.name.clone(),
        width,
        height,
        groups,
    })
}

/// Moves groups to where they belong in a larger whole.
fn take(into: &mut Vec<Group>, groups: Vec<Group>, x: f64, y: f64) {
    for mut group in groups {
        group.shapes.iter_mut().for_each(|shape| shape.shift(x, y));
        into.push(group);
    }
}

/// One graph, with the graphs inside.
fn part(plan: &Plan, font: &Font, framed: bool) -> Result<Part, Error> {
    let mut faces = Vec::with_capacity(plan.nodes.len());
    for (place, node) in plan.nodes.iter().enumerate() {
        let inside = match &node.kind {
            Kind::Open(inside) => Some(part(inside, font, true)?),
            _ => None,
        };
        let mut face = Face::of(node, font, inside);
        face.room = lines::room(plan, place, font);
        faces.push(face);
    }
    let slots: Vec<Slot> = faces
        .iter()
        .zip(&plan.nodes)
        .map(|(face, node)| Slot {
            half: face.width / 2.0,
            room: face.room,
            last: matches!(node.kind, Kind::End),
        })
        .collect();
    let links: Vec<Link> = plan
        .edges
        .iter()
        .map(|edge| Link {
            from: edge.from,
            to: edge.to,
            label: edge
                .label
                .as_deref()
                .map(|text| font.width(text, SMALL) + 8.0),
        })
        .collect();
    let arranged = arrange(&slots, &links, &SPACING)?;
    let rows = rows(&arranged, &faces);
    let spots: Vec<Rect> = arranged
        .nodes
        .iter()
        .zip(&faces)
        .map(|(spot, face)| Rect {
            x: spot.x - spot.half,
            y: rows.middle(spot.layer) - face.height / 2.0,
            width: spot.half * 2.0,
            height: face.height,
        })
        .collect();
    let mut groups = Vec::new();
    for ((node, face), &rect) in plan.nodes.iter().zip(faces).zip(&spots) {
        face.draw(node, rect, font, &mut groups);
    }
    lines::draw(plan, &arranged, &rows, &spots, &mut groups);
    lines::draw_labels(plan, &arranged, &rows, (&spots, font, framed), &mut groups);
    Ok(Part {
        width: arranged.width,
        height: rows.bottom(arranged.layers.saturating_sub(1)),
        groups,
    })
}

/// Layers as high as what stands in them, with more between them where lines run far to the side.
fn rows(arranged: &Arranged, faces: &[Face]) -> Rows {
    let mut heights = vec![0.0_f64; arranged.layers];
    let mut gaps = vec![0.0_f64; arranged.layers];
    for (spot, face) in arranged.nodes.iter().zip(faces) {
        heights[spot.layer] = heights[spot.layer].max(face.height);
    }
    let bare: Vec<bool> = heights.iter().map(|&height| height == 0.0).collect();
    for chain in &arranged.chains {
        if let Some(stop) = chain.label.and_then(|label| chain.stops.get(label)) {
            heights[stop.layer] = heights[stop.layer].max(PLATE);
        }
        for pair in chain.stops.windows(2) {
            if let [upper, lower] = pair {
                let far = (upper.x - lower.x).abs();
                gaps[upper.layer] = gaps[upper.layer].max(far * SLOPE);
            }
        }
    }
    let mut tops = Vec::with_capacity(arranged.layers);
    let mut y = 0.0;
    for layer in 0..arranged.layers {
        tops.push(y);
        let narrow = bare[layer] || bare.get(layer + 1).is_some_and(|&bare| bare);
        let least = if narrow { NARROW_GAP } else { GAP };
        y += heights[layer] + (least + gaps[layer]).min(WIDEST_GAP);
    }
    Rows { tops, heights }
}

/// A text with its middle at a point.
fn text(text: &str, middle: Point, size: f64, role: Role, font: &Font) -> Shape {
    Shape::Text {
        at: Point::new(middle.x, middle.y + size * crate::font::CAPITALS / 2.0),
        width: font.width(text, size),
        size,
        text: text.to_owned(),
        role,
    }
}

/// A filled triangle whose tip is at a point, with its other end that far away in x and y.
fn arrow(tip: Point, (x, y): (f64, f64), style: Style) -> Shape {
    let half = if style == Style::Join { 0.6 } else { 0.48 };
    let base = Point::new(tip.x + x, tip.y + y);
    Shape::Arrow {
        points: [
            tip,
            Point::new(base.x + y * half, base.y + x * half),
            Point::new(base.x - y * half, base.y - x * half),
        ],
        role: Role::Edge(style),
    }
}
