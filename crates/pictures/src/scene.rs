//! A picture as shapes, in pixels from its left upper corner: what `compose` makes, and what `svg` and `png` draw.

use crate::palette::Role;

/// A finished picture.
#[derive(Debug)]
pub(crate) struct Scene {
    /// What it is a picture of.
    pub(crate) title: String,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// From the lowest to the topmost.
    pub(crate) groups: Vec<Group>,
}

/// Shapes that belong together.
#[derive(Debug)]
pub(crate) struct Group {
    /// What is shown when somebody points at it; nothing for ornaments.
    pub(crate) title: String,
    pub(crate) shapes: Vec<Shape>,
}

/// One shape.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A box with round corners.
    Box { rect: Rect, radius: f64, role: Role },
    /// A line that bends: it starts at the first point, and each curve goes on from where the last one ended.
    Line {
        start: Point,
        curves: Vec<Curve>,
        role: Role,
    },
    /// A filled triangle.
    Arrow { points: [Point; 3], role: Role },
    /// One line of text.
    Text {
        /// Its middle, on the letters' baseline.
        at: Point,
        /// Its width and the size of its letters.
        width: f64,
        size: f64,
        text: String,
        role: Role,
    },
}

/// How a line goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Curve {
    /// Straight to a point.
    Straight(Point),
    /// To the last point, with the other two as control points.
    Bend(Point, Point, Point),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

impl Point {
    pub(crate) fn new(x: f64, y: f64) -> Point {
        Point { x, y }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Shape {
    /// Moves it.
    pub(crate) fn shift(&mut self, x: f64, y: f64) {
        let shift = |point: &mut Point| *point = Point::new(point.x + x, point.y + y);
        match self {
            Shape::Box { rect, .. } => {
                rect.x += x;
                rect.y += y;
            }
            Shape::Line { start, curves, .. } => {
                shift(start);
                for curve in curves {
                    match curve {
                        Curve::Straight(end) => shift(end),
                        Curve::Bend(one, other, end) => {
                            [one, other, end].into_iter().for_each(shift)
                        }
                    }
                }
            }
            Shape::Arrow { points, .. } => points.iter_mut().for_each(shift),
            Shape::Text { at, .. } => shift(at),
        }
    }
}
