//! The boxes of nodes: how large they are and what is in them.

use super::{Part, SIZE, SMALL, text};
use crate::{
    font::Font,
    palette::Role,
    plan::{Kind, Node},
    scene::{Group, Point, Rect, Shape},
};

/// Free space between a name and the sides of its box.
const SIDE: f64 = 16.0;
const HEIGHT: f64 = 38.0;
const HEIGHT_WITH_MARKS: f64 = 52.0;
const TERMINAL_HEIGHT: f64 = 30.0;
const LEAST_WIDTH: f64 = 72.0;
const LEAST_TERMINAL_WIDTH: f64 = 60.0;
/// How far the second sheet of a node that runs once per send looks out.
const SHEET: f64 = 4.0;
/// An opened subgraph: its title's height, and the space around what is inside.
const TITLE: f64 = 34.0;
const PADDING: f64 = 18.0;

/// What a node looks like, before it has a place.
pub(super) struct Face {
    pub(super) width: f64,
    pub(super) height: f64,
    /// What edges from the node to itself take at its right.
    pub(super) room: f64,
    inside: Option<Part>,
}

impl Face {
    pub(super) fn of(node: &Node, font: &Font, inside: Option<Part>) -> Face {
        let marks = node.marks().join(" · ");
        let name = font.width(&node.label, SIZE);
        let small = font.width(&marks, SMALL);
        let (width, height) = match (&node.kind, &inside) {
            (Kind::Open(_), Some(part)) => (
                part.width.max(name + small + 8.0) + 2.0 * PADDING,
                part.height + TITLE + PADDING,
            ),
            (Kind::Start | Kind::End, _) => (
                (name + 2.0 * SIDE).max(LEAST_TERMINAL_WIDTH),
                TERMINAL_HEIGHT,
            ),
            _ if marks.is_empty() => ((name + 2.0 * SIDE).max(LEAST_WIDTH), HEIGHT),
            _ => (
                (name.max(small) + 2.0 * SIDE).max(LEAST_WIDTH),
                HEIGHT_WITH_MARKS,
            ),
        };
        let sheet = if node.each && inside.is_none() {
            SHEET
        } else {
            0.0
        };
        Face {
            width: width + sheet,
            height: height + sheet,
            room: 0.0,
            inside,
        }
    }

    /// Draws the box into its place, which may be wider than was asked for.
    pub(super) fn draw(self, node: &Node, rect: Rect, font: &Font, groups: &mut Vec<Group>) {
        let marks = node.marks().join(" · ");
        let title = match marks.is_empty() {
            true => node.full.clone(),
            false => format!("{} ({})", node.full, node.marks().join(", ")),
        };
        let shapes = match (&node.kind, &self.inside) {
            (Kind::Open(_), Some(_)) => framed(node, &marks, rect, font),
            (Kind::Start | Kind::End, _) => terminal(node, rect, font),
            _ => plain(node, &marks, rect, font),
        };
        groups.push(Group { title, shapes });
        if let Some(part) = self.inside {
            let x = rect.x + (rect.width - part.width) / 2.0;
            super::take(groups, part.groups, x, rect.y + TITLE);
        }
    }
}

fn terminal(node: &Node, rect: Rect, font: &Font) -> Vec<Shape> {
    let radius = rect.height / 2.0;
    let role = Role::Terminal;
    vec![
        Shape::Box { rect, radius, role },
        text(&node.label, middle(rect), SIZE, Role::TerminalName, font),
    ]
}

fn plain(node: &Node, marks: &str, rect: Rect, font: &Font) -> Vec<Shape> {
    let boxed = |rect, radius, role| Shape::Box { rect, radius, role };
    let mut front = rect;
    let mut shapes = Vec::new();
    if node.each {
        front.width -= SHEET;
        front.height -= SHEET;
        front.y += SHEET;
        let behind = Rect {
            x: rect.x + SHEET,
            y: rect.y,
            ..front
        };
        shapes.push(boxed(behind, 6.0, Role::Node));
    }
    shapes.push(boxed(front, 6.0, Role::Node));
    if matches!(node.kind, Kind::Closed) {
        let inner = Rect {
            x: front.x + 3.5,
            y: front.y + 3.5,
            width: front.width - 7.0,
            height: front.height - 7.0,
        };
        shapes.push(boxed(inner, 3.5, Role::Inner));
    }
    let at = middle(front);
    if marks.is_empty() {
        shapes.push(text(&node.label, at, SIZE, Role::Name, font));
    } else {
        let (above, below) = (Point::new(at.x, at.y - 8.0), Point::new(at.x, at.y + 10.0));
        shapes.push(text(&node.label, above, SIZE, Role::Name, font));
        shapes.push(text(marks, below, SMALL, Role::Small, font));
    }
    shapes
}

fn framed(node: &Node, marks: &str, rect: Rect, font: &Font) -> Vec<Shape> {
    let (name, small) = (font.width(&node.label, SIZE), font.width(marks, SMALL));
    let y = rect.y + TITLE / 2.0;
    let left = rect.x + PADDING;
    let mut shapes = vec![
        Shape::Box {
            rect,
            radius: 10.0,
            role: Role::Frame,
        },
        text(
            &node.label,
            Point::new(left + name / 2.0, y),
            SIZE,
            Role::Name,
            font,
        ),
    ];
    if !marks.is_empty() {
        let at = Point::new(left + name + 8.0 + small / 2.0, y + 1.0);
        shapes.push(text(marks, at, SMALL, Role::Small, font));
    }
    shapes
}

fn middle(rect: Rect) -> Point {
    Point::new(rect.x + rect.width / 2.0, rect.y + rect.height / 2.0)
}
