//! What the kinds of lines mean, below the graph: only if there is more than one, and only those there are.

use super::{Part, SMALL, arrow, text};
use crate::{
    font::Font,
    palette::Role,
    plan::{Plan, Style},
    scene::{Curve, Group, Point, Shape},
};

const ROW: f64 = 20.0;
/// The sample's length, and the space after it and between two entries.
const SAMPLE: f64 = 34.0;
const AFTER: f64 = 8.0;
const BETWEEN: f64 = 24.0;
/// A legend may be wider than a narrow graph, up to this.
const LEAST_WIDTH: f64 = 240.0;

pub(super) fn legend(plan: &Plan, font: &Font, graph: f64) -> Part {
    let mut part = Part {
        width: 0.0,
        height: 0.0,
        groups: Vec::new(),
    };
    let styles = plan.styles();
    if styles.iter().all(|&style| style == Style::Fixed) {
        return part;
    }
    let most = graph.max(LEAST_WIDTH);
    let (mut x, mut y) = (0.0, ROW / 2.0);
    for style in styles {
        let words = font.width(style.words(), SMALL);
        if x > 0.0 && x + SAMPLE + AFTER + words > most {
            (x, y) = (0.0, y + ROW);
        }
        let tip = Point::new(x + SAMPLE, y);
        let at = Point::new(x + SAMPLE + AFTER + words / 2.0, y);
        part.groups.push(Group {
            title: String::new(),
            shapes: vec![
                Shape::Line {
                    start: Point::new(x, y),
                    curves: vec![Curve::Straight(Point::new(tip.x - 9.0, y))],
                    role: Role::Edge(style),
                },
                arrow(tip, (-9.0, 0.0), style),
                text(style.words(), at, SMALL, Role::Small, font),
            ],
        });
        x += SAMPLE + AFTER + words;
        part.width = part.width.max(x);
        x += BETWEEN;
    }
    part.height = y + ROW / 2.0;
    part
}
