//! A picture as SVG: one file that needs nothing else, readable in light and in dark.
//!
//! The colours are classes of a style sheet with a second set for dark surroundings; the file's size is bounded.

use crate::{
    Error,
    compose::{CUT, compose},
    font::FOR_SVG,
    palette::{Colour, Role},
    plan::Plan,
    scene::{Curve, Group, Point, Scene, Shape},
};
use paraph_graph::Drawing;
use std::fmt::Write as _;

/// How long an SVG may be, in bytes.
pub const MAX_SVG_BYTES: usize = 16 * 1024 * 1024;

/// The drawing as SVG; with `xray`, subgraphs are drawn open.
///
/// # Errors
/// When the graph or its picture is too large, or an edge names a node that is not there.
pub fn svg(drawing: &Drawing, xray: bool) -> Result<String, Error> {
    let plan = Plan::of(drawing, xray, CUT)?;
    let text = written(&compose(&plan)?);
    match text.len() <= MAX_SVG_BYTES {
        true => Ok(text),
        false => Err(Error::TooLong {
            what: "SVG",
            limit: MAX_SVG_BYTES,
        }),
    }
}

fn written(scene: &Scene) -> String {
    let (width, height) = (number(scene.width.ceil()), number(scene.height.ceil()));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n<style>\n",
        escaped(&scene.title)
    );
    styles(&mut text);
    text.push_str("</style>\n");
    for group in &scene.groups {
        write_group(&mut text, group);
    }
    text.push_str("</svg>\n");
    text
}

fn styles(text: &mut String) {
    let font: String = FOR_SVG.lines().collect();
    let _ = writeln!(
        text,
        "@font-face{{font-family:\"Paraph Roboto\";src:url(data:font/woff2;base64,{font}) format(\"woff2\")}}"
    );
    text.push_str(
        "text{font-family:\"Paraph Roboto\",Roboto,\"Helvetica Neue\",Arial,sans-serif;text-anchor:middle;font-kerning:none}\n",
    );
    classes(text, false);
    text.push_str("@media (prefers-color-scheme:dark){\n");
    classes(text, true);
    text.push_str("}\n");
}

/// One class per role; what only lines have, their dashes, is the same in both sets.
fn classes(text: &mut String, dark: bool) {
    for role in Role::ALL {
        let paint = role.paint(dark);
        let fill = paint.fill.map_or("none".to_owned(), colour);
        let _ = write!(text, ".{}{{fill:{fill}", paint.class);
        if let Some(stroke) = paint.stroke {
            let _ = write!(
                text,
                ";stroke:{};stroke-width:{}",
                colour(stroke.colour),
                number(stroke.width)
            );
            if let Some((dash, gap)) = stroke.dash {
                let _ = write!(text, ";stroke-dasharray:{} {}", number(dash), number(gap));
            }
        }
        text.push_str("}\n");
        if let (Role::Edge(_), Some(stroke)) = (role, paint.stroke) {
            let _ = writeln!(
                text,
                ".{}-ink{{fill:{}}}",
                paint.class,
                colour(stroke.colour)
            );
        }
    }
}

fn write_group(text: &mut String, group: &Group) {
    text.push_str("<g>");
    if !group.title.is_empty() {
        let _ = write!(text, "<title>{}</title>", escaped(&group.title));
    }
    text.push('\n');
    for shape in &group.shapes {
        write_shape(text, shape);
    }
    text.push_str("</g>\n");
}

fn write_shape(text: &mut String, shape: &Shape) {
    let _ = match shape {
        Shape::Box { rect, radius, role } => writeln!(
            text,
            "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>",
            role.paint(false).class,
            number(rect.x),
            number(rect.y),
            number(rect.width),
            number(rect.height),
            number(*radius)
        ),
        Shape::Line {
            start,
            curves,
            role,
        } => {
            let _ = write!(
                text,
                "<path class=\"{}\" d=\"M{}",
                role.paint(false).class,
                pair(*start)
            );
            for curve in curves {
                let _ = match curve {
                    Curve::Straight(end) => write!(text, "L{}", pair(*end)),
                    Curve::Bend(one, other, end) => {
                        write!(text, "C{} {} {}", pair(*one), pair(*other), pair(*end))
                    }
                };
            }
            writeln!(text, "\"/>")
        }
        Shape::Arrow { points, role } => {
            let [a, b, c] = points.map(pair);
            writeln!(text, "<path class=\"{}\" d=\"M{a}L{b}L{c}Z\"/>", ink(*role))
        }
        Shape::Text {
            at,
            width,
            size,
            text: words,
            role,
        } => writeln!(
            text,
            "<text class=\"{}\" x=\"{}\" y=\"{}\" font-size=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\">{}</text>",
            ink(*role),
            number(at.x),
            number(at.y),
            number(*size),
            number(*width),
            escaped(words)
        ),
    };
}

/// The class of what is filled with a role's colour.
fn ink(role: Role) -> String {
    let class = role.paint(false).class;
    match role {
        Role::Edge(_) => format!("{class}-ink"),
        _ => class.to_owned(),
    }
}

fn colour((red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn pair(point: Point) -> String {
    format!("{} {}", number(point.x), number(point.y))
}

/// With two digits at most, and none where none are needed.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        short => short.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let all = [1.0, 0.126, -0.001, 20.10, 100.0].map(number);
        assert_eq!(all, ["1", "0.13", "0", "20.1", "100"]);
    }
}
