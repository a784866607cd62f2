//! What the three functions promise: complete files, safe text, the same bytes again, and errors that name the fault.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use paraph_graph::{Drawing, DrawnEdge, DrawnNode, EdgeKind, Name};
use paraph_pictures::{Error, ascii, png, svg};

fn node(name: &str) -> DrawnNode {
    DrawnNode {
        name: Name::from(name.to_owned()),
        deferred: false,
        each: false,
        inside: None,
    }
}

/// A graph of these edges.
fn drawing(edges: &[(&str, &str, EdgeKind)]) -> Drawing {
    let mut nodes: Vec<DrawnNode> = Vec::new();
    for name in edges.iter().flat_map(|(from, to, _)| [from, to]) {
        if nodes.iter().all(|node| *node.name != **name) {
            nodes.push(node(name));
        }
    }
    let edges = edges.iter().map(|(from, to, kind)| DrawnEdge {
        from: Name::from((*from).to_owned()),
        to: Name::from((*to).to_owned()),
        kind: *kind,
        label: None,
    });
    Drawing {
        name: "a <graph>".into(),
        nodes,
        edges: edges.collect(),
    }
}

fn small() -> Drawing {
    drawing(&[
        ("__start__", "a", EdgeKind::Fixed),
        ("a", "b", EdgeKind::Conditional),
        ("b", "a", EdgeKind::OnError),
        ("a", "c", EdgeKind::Join),
        ("c", "__end__", EdgeKind::Fixed),
    ])
}

/// What an SVG says its size is.
fn size(svg: &str) -> (u32, u32) {
    let number = |name: &str| {
        let start = svg.find(name).unwrap() + name.len();
        let digits = svg[start..].split('"').next().unwrap();
        digits.parse::<u32>().unwrap()
    };
    (number(" width=\""), number(" height=\""))
}

/// What a PNG's header says its size is.
fn header(png: &[u8]) -> (u32, u32) {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(&png[12..16], b"IHDR");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[test]
fn the_same_graph_gives_the_same_bytes() {
    let drawing = small();
    assert_eq!(svg(&drawing, false), svg(&drawing, false));
    assert_eq!(png(&drawing, false, None), png(&drawing, false, None));
    assert_eq!(ascii(&drawing, false, 80), ascii(&drawing, false, 80));
}

#[test]
fn an_svg_needs_nothing_else_and_follows_the_surroundings() {
    let text = svg(&small(), false).unwrap();
    assert!(
        text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width="),
        "{text}"
    );
    assert!(text.ends_with("</svg>\n") && text.contains("<title>a &lt;graph&gt;</title>"));
    assert_eq!(text.matches("http").count(), 1, "only the namespace");
    assert!(
        text.contains("src:url(data:font/woff2;base64,d09GMg"),
        "the font is inside"
    );
    assert_eq!(text.matches("prefers-color-scheme:dark").count(), 1);
    for class in [
        "node",
        "always",
        "conditional",
        "join",
        "on-error",
        "ground",
    ] {
        assert_eq!(
            text.matches(&format!("\n.{class}{{")).count(),
            2,
            "{class} in light and dark"
        );
    }
    assert!(text.contains(">error</text>"));
    assert!(text.contains("<title>a → b (conditional)</title>\n<path class=\"conditional\""));
}

#[test]
fn names_are_text_whatever_is_in_them() {
    let evil = "<script>&\"\u{1b}\u{202e}\u{ffff}";
    let long = "n".repeat(300);
    let drawing = drawing(&[(evil, &long, EdgeKind::Fixed)]);
    let text = svg(&drawing, false).unwrap();
    assert!(
        text.contains(">&lt;script&gt;&amp;&quot;\u{fffd}\u{fffd}\u{fffd}</text>"),
        "{text}"
    );
    assert!(
        text.contains(&format!("<title>{long}</title>")),
        "the whole name is there"
    );
    assert!(text.contains(&format!(">{}…{}</text>", "n".repeat(24), "n".repeat(11))));
    let text = ascii(&drawing, false, 80).unwrap();
    assert!(
        text.contains("<script>&\"\u{fffd}\u{fffd}\u{fffd}"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn a_png_is_as_large_as_the_svg_times_the_scale() {
    let drawing = small();
    let (width, height) = size(&svg(&drawing, false).unwrap());
    assert_eq!(
        header(&png(&drawing, false, Some(1.0)).unwrap()),
        (width, height)
    );
    assert_eq!(
        header(&png(&drawing, false, None).unwrap()),
        (width * 2, height * 2)
    );
}

#[test]
fn a_png_shows_boxes_lines_and_letters_on_its_own_ground() {
    let file = png(&small(), false, Some(2.0)).unwrap();
    let pixels = tiny_skia::Pixmap::decode_png(&file).unwrap();
    let count = |red, green, blue| {
        let wanted = tiny_skia::PremultipliedColorU8::from_rgba(red, green, blue, 255).unwrap();
        pixels
            .pixels()
            .iter()
            .filter(|&&pixel| pixel == wanted)
            .count()
    };
    assert!(pixels.pixels().iter().all(|pixel| pixel.alpha() == 255));
    let all = pixels.pixels().len();
    assert!(count(255, 255, 255) > all / 2, "the ground");
    assert!(count(239, 244, 255) > 12_000, "three boxes");
    assert!(count(109, 76, 178) > 30, "a join's line");
    assert!(count(192, 57, 43) > 20, "an error's line and label");
    assert!(count(23, 32, 51) > 5, "letters");
}

#[test]
fn scales_and_sizes_that_cannot_be_are_refused() {
    let drawing = small();
    for scale in [0.0, -1.0, 9.0, f32::NAN, f32::INFINITY] {
        let error = png(&drawing, false, Some(scale)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the scale {scale} is not between 0.1 and 8")
        );
    }
    let names: Vec<String> = (0..120).map(|n| format!("node_{n}")).collect();
    let edges: Vec<_> = names
        .iter()
        .map(|name| ("root", name.as_str(), EdgeKind::Fixed))
        .collect();
    let error = png(&self::drawing(&edges), false, Some(8.0)).unwrap_err();
    assert!(matches!(error, Error::TooManyPixels { .. }), "{error}");
    assert!(
        error
            .to_string()
            .ends_with("at most 64000000 pixels are drawn: use a smaller scale, or SVG")
    );
}

#[test]
fn graphs_that_are_too_large_are_refused_by_name() {
    let mut large = small();
    large
        .nodes
        .extend((0..2_000).map(|n| node(&format!("n{n}"))));
    let said = svg(&large, false).unwrap_err().to_string();
    assert_eq!(said, "the graph has 2005 nodes, and at most 2000 are drawn");
    let mut dense = small();
    dense.edges = std::iter::repeat_n(dense.edges[0].clone(), 10_001).collect();
    let said = ascii(&dense, false, 80).unwrap_err().to_string();
    assert_eq!(
        said,
        "the graph has 10001 edges, and at most 10000 are drawn"
    );
    let mut outer = small();
    outer.nodes[1].inside = Some(Box::new(large));
    assert!(svg(&outer, false).is_ok(), "closed it is one node");
    let said = svg(&outer, true).unwrap_err().to_string();
    assert_eq!(
        said,
        "the graph has 2010 nodes, and at most 2000 are drawn: draw it without xray"
    );
    let mut deep = small();
    for _ in 0..17 {
        let inside = Some(Box::new(deep));
        deep = small();
        deep.nodes[1].inside = inside;
    }
    let said = svg(&deep, true).unwrap_err().to_string();
    assert_eq!(
        said,
        "the graph has subgraphs within subgraphs deeper than 16 levels"
    );
}

#[test]
fn an_edge_to_nowhere_is_an_error_that_names_it() {
    let mut broken = small();
    broken.nodes.pop();
    let said = svg(&broken, false).unwrap_err().to_string();
    assert_eq!(
        said,
        "the edge from `c` to `__end__` names a node that the graph does not have"
    );
}

#[test]
fn a_graph_of_nothing_is_a_small_picture() {
    let empty = drawing(&[]);
    assert_eq!(size(&svg(&empty, false).unwrap()), (40, 40));
    assert_eq!(ascii(&empty, false, 80).unwrap(), "");
    assert_eq!(header(&png(&empty, false, None).unwrap()), (80, 80));
}
