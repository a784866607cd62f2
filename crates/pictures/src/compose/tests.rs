#![allow(clippy::unwrap_used, reason = "a failed test may panic")]
//! Pictures of graphs drawn by lot: what may not overlap does not, and lines keep out of boxes.

use super::*;
use crate::{
    drawings::{any_drawing, drawing, nested},
    scene::Curve,
};
use paraph_graph::Drawing;
use proptest::prelude::*;

fn scene(drawing: &Drawing, xray: bool) -> Scene {
    compose(&Plan::of(drawing, xray, CUT).unwrap()).unwrap()
}

/// The boxes of a scene's nodes, one per group; and those of opened subgraphs.
fn boxes(scene: &Scene) -> (Vec<Rect>, Vec<Rect>) {
    let (mut nodes, mut frames) = (Vec::new(), Vec::new());
    for group in &scene.groups {
        let mut union: Option<Rect> = None;
        for shape in &group.shapes {
            match shape {
                Shape::Box {
                    rect,
                    role: Role::Node | Role::Terminal,
                    ..
                } => {
                    union = Some(union.map_or(*rect, |other| around(other, *rect)));
                }
                Shape::Box {
                    rect,
                    role: Role::Frame,
                    ..
                } => frames.push(*rect),
                _ => {}
            }
        }
        nodes.extend(union);
    }
    (nodes, frames)
}

fn plates(scene: &Scene) -> Vec<Rect> {
    let shapes = scene.groups.iter().flat_map(|group| &group.shapes);
    let plates = shapes.filter_map(|shape| match shape {
        Shape::Box {
            rect,
            role: Role::Plate | Role::FramePlate,
            ..
        } => Some(*rect),
        _ => None,
    });
    plates.collect()
}

/// The labels of a scene, with the titles of the edges that they belong to.
fn titled_plates(scene: &Scene) -> Vec<(&str, Rect)> {
    let groups = scene.groups.iter();
    let found = groups.filter_map(|group| match group.shapes.first() {
        Some(Shape::Box {
            rect,
            role: Role::Plate | Role::FramePlate,
            ..
        }) => Some((group.title.as_str(), *rect)),
        _ => None,
    });
    found.collect()
}

fn around(one: Rect, other: Rect) -> Rect {
    let (x, y) = (one.x.min(other.x), one.y.min(other.y));
    Rect {
        x,
        y,
        width: (one.x + one.width).max(other.x + other.width) - x,
        height: (one.y + one.height).max(other.y + other.height) - y,
    }
}

fn overlap(one: &Rect, other: &Rect) -> bool {
    let apart = one.x + one.width <= other.x + 0.01
        || other.x + other.width <= one.x + 0.01
        || one.y + one.height <= other.y + 0.01
        || other.y + other.height <= one.y + 0.01;
    !apart
}

fn holds(outer: &Rect, inner: &Rect) -> bool {
    let union = around(*outer, *inner);
    let grown = union.width - outer.width + union.height - outer.height;
    grown + (outer.x - union.x) + (outer.y - union.y) < 0.01
}

/// Points along a line.
fn points(start: Point, curves: &[Curve]) -> Vec<Point> {
    let mut points = vec![start];
    let mut here = start;
    for curve in curves {
        let (one, other, end) = match *curve {
            Curve::Straight(end) => (here, end, end),
            Curve::Bend(one, other, end) => (one, other, end),
        };
        for step in 1..=40 {
            let t = f64::from(step) / 40.0;
            let u = 1.0 - t;
            let (a, b, c, d) = (u * u * u, 3.0 * u * u * t, 3.0 * u * t * t, t * t * t);
            points.push(Point::new(
                a * here.x + b * one.x + c * other.x + d * end.x,
                a * here.y + b * one.y + c * other.y + d * end.y,
            ));
        }
        here = end;
    }
    points
}

fn check(scene: &Scene) -> Result<(), TestCaseError> {
    let (nodes, frames) = boxes(scene);
    let (plates, whole) = (
        plates(scene),
        Rect {
            x: 0.0,
            y: 0.0,
            width: scene.width,
            height: scene.height,
        },
    );
    for (place, one) in nodes.iter().enumerate() {
        prop_assert!(holds(&whole, one));
        for other in nodes.iter().skip(place + 1).chain(&plates) {
            prop_assert!(!overlap(one, other), "{:?} and {:?}", one, other);
        }
        for frame in &frames {
            prop_assert!(holds(frame, one) || !overlap(frame, one));
        }
    }
    for (place, one) in plates.iter().enumerate() {
        prop_assert!(holds(&whole, one));
        for other in plates.iter().skip(place + 1) {
            prop_assert!(!overlap(one, other), "labels {:?} and {:?}", one, other);
        }
        for frame in &frames {
            prop_assert!(holds(frame, one) || !overlap(frame, one));
        }
    }
    let lines = scene.groups.iter();
    for group in lines.filter(|group| group.title.contains('→')) {
        check_line(scene, group, (&nodes, &frames))?;
    }
    Ok(())
}

/// That a line keeps out of boxes and of other lines' labels, stays in the picture, and ends at a box.
fn check_line(
    scene: &Scene,
    group: &Group,
    (nodes, frames): (&[Rect], &[Rect]),
) -> Result<(), TestCaseError> {
    for shape in &group.shapes {
        match shape {
            Shape::Line { start, curves, .. } => {
                for point in points(*start, curves) {
                    let inside = |rect: &Rect| {
                        point.x > rect.x + 0.02
                            && point.x < rect.x + rect.width - 0.02
                            && point.y > rect.y + 0.02
                            && point.y < rect.y + rect.height - 0.02
                    };
                    let hit = nodes.iter().find(|rect| inside(rect));
                    let title = &group.title;
                    prop_assert!(hit.is_none(), "{title} runs through {hit:?} at {point:?}");
                    let mut labels = titled_plates(scene).into_iter();
                    let hit = labels.find(|(other, rect)| other != title && inside(rect));
                    prop_assert!(hit.is_none(), "{title} runs through the label {hit:?}");
                    prop_assert!(point.x >= 0.0 && point.x <= scene.width);
                    prop_assert!(point.y >= 0.0 && point.y <= scene.height);
                }
            }
            Shape::Arrow {
                points: [tip, ..], ..
            } => {
                let touches = |rect: &Rect| {
                    let (right, bottom) = (rect.x + rect.width, rect.y + rect.height);
                    let across = tip.x > rect.x && tip.x < right;
                    across && ((tip.y - rect.y).abs() < 0.02 || (tip.y - bottom).abs() < 0.02)
                        || (tip.x - right).abs() < 0.02 && tip.y > rect.y && tip.y < bottom
                };
                prop_assert!(
                    nodes.iter().chain(frames).any(touches),
                    "{} ends nowhere",
                    group.title
                );
            }
            _ => {}
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn boxes_labels_and_lines_keep_out_of_each_other(drawing in any_drawing()) {
        check(&scene(&drawing, false))?;
    }

    #[test]
    fn opened_subgraphs_hold_what_is_inside(outer in any_drawing(), inner in any_drawing()) {
        let name = outer.nodes[1].name.to_string();
        let drawing = nested(outer, &name, inner);
        let scene = scene(&drawing, true);
        let (nodes, frames) = boxes(&scene);
        prop_assert_eq!(frames.len(), 1);
        let inside = nodes.iter().filter(|node| holds(&frames[0], node)).count();
        let expected = drawing.nodes[1].inside.as_ref().unwrap().nodes.len();
        prop_assert_eq!(inside, expected);
        check(&scene)?;
    }
}

#[test]
fn a_legend_says_only_what_is_there() {
    let words = |text: &str| {
        let scene = scene(&drawing(text), false);
        let shapes = scene.groups.into_iter().flat_map(|group| group.shapes);
        let small = shapes.filter_map(|shape| match shape {
            Shape::Text {
                text,
                role: Role::Small,
                ..
            } => Some(text),
            _ => None,
        });
        small.collect::<Vec<_>>()
    };
    assert_eq!(words("S -> a; a -> E"), Vec::<String>::new());
    assert_eq!(
        words("S -> a; a ?> E b; a !> b"),
        ["always", "conditional", "on error"]
    );
    assert_eq!(words("S => a"), ["join: waits for all"]);
}

#[test]
fn marks_stand_below_the_name_and_in_the_title() {
    let drawing = nested(drawing("S -> a*; a -> b_; b -> c"), "c", drawing("S -> x"));
    let scene = scene(&drawing, false);
    let titles: Vec<&str> = scene
        .groups
        .iter()
        .map(|group| group.title.as_str())
        .collect();
    let expected = [
        "",
        "start",
        "a (each)",
        "b (deferred)",
        "c (subgraph)",
        "start → a (always)",
        "a → b (always)",
        "b → c (always)",
    ];
    assert_eq!(titles, expected);
}

#[test]
fn labels_stand_on_their_edges_and_in_their_titles() {
    let text = "S -> ask; ask ?>calls_tools tools; ask ?>answers E; tools -> ask; ask ?>form ask";
    let scene = scene(&drawing(text), false);
    let titles: Vec<&str> = titled_plates(&scene).iter().map(|plate| plate.0).collect();
    assert_eq!(
        titles,
        [
            "ask → tools (conditional: calls tools)",
            "ask → end (conditional: answers)",
            "ask → ask (conditional: form)",
        ]
    );
    let shapes = scene.groups.iter().flat_map(|group| &group.shapes);
    let written = shapes.filter_map(|shape| match shape {
        Shape::Text {
            text,
            role: Role::Edge(_),
            ..
        } => Some(text.as_str()),
        _ => None,
    });
    let written: Vec<&str> = written.collect();
    assert_eq!(written, ["calls tools", "answers", "form"]);
}
