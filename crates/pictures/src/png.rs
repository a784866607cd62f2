//! A picture as PNG: drawn in the process, on its own light ground, with the included font and no other.
//!
//! What is not in the font (Chinese, Japanese, Korean and the like) shows as an empty box; an SVG leaves such letters
//! to the reader's fonts.

use crate::{
    Error,
    compose::{CUT, compose},
    font::Font,
    palette::{Colour, Role},
    plan::Plan,
    scene::{Curve, Point, Rect, Scene, Shape},
};
use paraph_graph::Drawing;
use tiny_skia::{
    FillRule, LineCap, Paint as Ink, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};
use ttf_parser::OutlineBuilder;

/// How many pixels a PNG may have: they take four bytes each while it is drawn.
pub const MAX_PIXELS: u64 = 64_000_000;
/// The smallest scale.
pub const MIN_SCALE: f32 = 0.1;
/// The largest scale.
pub const MAX_SCALE: f32 = 8.0;

/// How far the control points of a quarter circle stand off, in parts of its radius.
const QUARTER: f64 = 0.552_284_75;

/// The drawing as a PNG file; with `xray`, subgraphs are drawn open. At `scale` 1 it has as many pixels as the
/// SVG says. Without a scale it is 2, or as much less as a large picture needs.
///
/// # Errors
/// When the graph or its picture is too large, the scale is none, or an edge names a node that is not there.
pub fn png(drawing: &Drawing, xray: bool, scale: Option<f32>) -> Result<Vec<u8>, Error> {
    if let Some(scale) = scale.filter(|scale| !(MIN_SCALE..=MAX_SCALE).contains(scale)) {
        return Err(Error::BadScale(scale));
    }
    let plan = Plan::of(drawing, xray, CUT)?;
    let scene = compose(&plan)?;
    painted(&scene, scale.unwrap_or_else(|| usual_scale(&scene)))?
        .encode_png()
        .map_err(|error| Error::Drawing(error.to_string()))
}

/// The scale at which a picture is sharp, or the largest at which it is not too large. In steps, so that a pixel is
/// a simple part of the picture's unit.
fn usual_scale(scene: &Scene) -> f32 {
    let fits = |scale: &f32| {
        let side = |length: f64| (length.ceil() + 1.0) * f64::from(*scale) + 1.0;
        side(scene.width) * side(scene.height) <= MAX_PIXELS as f64
    };
    let steps = [2.0, 1.5, 1.0, 0.75, 0.5, 0.25];
    steps.into_iter().find(fits).unwrap_or(MIN_SCALE)
}

fn painted(scene: &Scene, scale: f32) -> Result<Pixmap, Error> {
    let side = |length: f64| (length.ceil() * f64::from(scale)).ceil() as u64;
    let (width, height) = (side(scene.width), side(scene.height));
    let too_many = Error::TooManyPixels {
        width,
        height,
        limit: MAX_PIXELS,
    };
    if width.saturating_mul(height) > MAX_PIXELS {
        return Err(too_many);
    }
    let made = match (u32::try_from(width), u32::try_from(height)) {
        (Ok(width), Ok(height)) => Pixmap::new(width, height),
        _ => None,
    };
    let mut painter = Painter {
        pixels: made.ok_or(too_many)?,
        scale: Transform::from_scale(scale, scale),
        font: Font::included()?,
    };
    for shape in scene.groups.iter().flat_map(|group| &group.shapes) {
        painter.paint(shape);
    }
    Ok(painter.pixels)
}

struct Painter {
    pixels: Pixmap,
    scale: Transform,
    font: Font,
}

impl Painter {
    fn paint(&mut self, shape: &Shape) {
        match shape {
            Shape::Box { rect, radius, role } => {
                // The ground goes to the corners, so that nothing shines through.
                let radius = if *role == Role::Ground { 0.0 } else { *radius };
                self.draw(boxed(*rect, radius), *role);
            }
            Shape::Line {
                start,
                curves,
                role,
            } => {
                let mut path = PathBuilder::new();
                path.move_to(start.x as f32, start.y as f32);
                for curve in curves {
                    match curve {
                        Curve::Straight(end) => path.line_to(end.x as f32, end.y as f32),
                        Curve::Bend(one, other, end) => cubic(&mut path, *one, *other, *end),
                    }
                }
                self.draw(path.finish(), *role);
            }
            Shape::Arrow { points, role } => {
                let [a, b, c] = *points;
                let mut path = PathBuilder::new();
                path.move_to(a.x as f32, a.y as f32);
                path.line_to(b.x as f32, b.y as f32);
                path.line_to(c.x as f32, c.y as f32);
                path.close();
                self.fill(path.finish(), ink(*role));
            }
            Shape::Text {
                at,
                width,
                size,
                text,
                role,
            } => {
                let left = Point::new(at.x - width / 2.0, at.y);
                let mut pen = Pen {
                    path: PathBuilder::new(),
                    at: left,
                    scale: self.font.scale(*size),
                };
                let font = &self.font;
                font.letters(text, &mut |glyph, x| {
                    pen.at.x = left.x + x * size;
                    font.outline(glyph, &mut pen);
                });
                self.fill(pen.path.finish(), ink(*role));
            }
        }
    }

    fn draw(&mut self, path: Option<Path>, role: Role) {
        let paint = role.paint(false);
        if let Some(colour) = paint.fill {
            self.fill(path.clone(), colour);
        }
        let (Some(path), Some(line)) = (path, paint.stroke) else {
            return;
        };
        let dash = line
            .dash
            .and_then(|(dash, gap)| StrokeDash::new(vec![dash as f32, gap as f32], 0.0));
        let stroke = Stroke {
            width: line.width as f32,
            line_cap: LineCap::Butt,
            dash,
            ..Stroke::default()
        };
        self.pixels
            .stroke_path(&path, &inked(line.colour), &stroke, self.scale, None);
    }

    fn fill(&mut self, path: Option<Path>, colour: Colour) {
        if let Some(path) = path {
            self.pixels
                .fill_path(&path, &inked(colour), FillRule::Winding, self.scale, None);
        }
    }
}

/// The colour of what is filled, where a line's role has only a stroke.
fn ink(role: Role) -> Colour {
    let paint = role.paint(false);
    let stroke = paint.stroke.map(|stroke| stroke.colour);
    paint.fill.or(stroke).unwrap_or_default()
}

fn inked((red, green, blue): Colour) -> Ink<'static> {
    let mut ink = Ink::default();
    ink.set_color_rgba8(red, green, blue, 255);
    ink.anti_alias = true;
    ink
}

fn cubic(path: &mut PathBuilder, one: Point, other: Point, end: Point) {
    let [one, other, end] = [one, other, end].map(|point| (point.x as f32, point.y as f32));
    path.cubic_to(one.0, one.1, other.0, other.1, end.0, end.1);
}

fn boxed(rect: Rect, radius: f64) -> Option<Path> {
    let radius = radius.min(rect.width / 2.0).min(rect.height / 2.0);
    let (left, top) = (rect.x, rect.y);
    let (right, bottom) = (rect.x + rect.width, rect.y + rect.height);
    let near = radius * (1.0 - QUARTER);
    let point = Point::new;
    let mut path = PathBuilder::new();
    path.move_to((left + radius) as f32, top as f32);
    path.line_to((right - radius) as f32, top as f32);
    cubic(
        &mut path,
        point(right - near, top),
        point(right, top + near),
        point(right, top + radius),
    );
    path.line_to(right as f32, (bottom - radius) as f32);
    cubic(
        &mut path,
        point(right, bottom - near),
        point(right - near, bottom),
        point(right - radius, bottom),
    );
    path.line_to((left + radius) as f32, bottom as f32);
    cubic(
        &mut path,
        point(left + near, bottom),
        point(left, bottom - near),
        point(left, bottom - radius),
    );
    path.line_to(left as f32, (top + radius) as f32);
    cubic(
        &mut path,
        point(left, top + near),
        point(left + near, top),
        point(left + radius, top),
    );
    path.close();
    path.finish()
}

/// Puts a letter's outline where it belongs.
struct Pen {
    path: PathBuilder,
    at: Point,
    scale: f64,
}

impl Pen {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        let x = self.at.x + f64::from(x) * self.scale;
        let y = self.at.y - f64::from(y) * self.scale;
        (x as f32, y as f32)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let (one, other, end) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.path
            .cubic_to(one.0, one.1, other.0, other.1, end.0, end.1);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
