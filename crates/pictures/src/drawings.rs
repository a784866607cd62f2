//! Drawings for the tests: written down in short, or drawn by lot.

use paraph_graph::{Drawing, DrawnEdge, DrawnNode, END, EdgeKind, Name, START};
use proptest::prelude::*;

/// A drawing from lines such as `a ?> b c`, where the arrow is `->`, `?>` (conditional), `=>` (join) or `!>` (on
/// error), and `a ?>yes b` writes "yes" on it. `S` and `E` are the start and the end; `name*` runs once per send and `name_` is deferred.
pub(crate) fn drawing(text: &str) -> Drawing {
    let mut drawing = Drawing {
        name: "small".into(),
        nodes: Vec::new(),
        edges: Vec::new(),
    };
    for line in text.split([';', '\n']) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [from, arrow, targets @ ..] = words.as_slice() else {
            continue;
        };
        let (arrow, label) = arrow.split_at(2.min(arrow.len()));
        let label = (!label.is_empty()).then(|| Name::from(label.replace('_', " ")));
        let kind = match arrow {
            "?>" => EdgeKind::Conditional,
            "=>" => EdgeKind::Join,
            "!>" => EdgeKind::OnError,
            _ => EdgeKind::Fixed,
        };
        for to in targets {
            let (from, to) = (node(&mut drawing, from), node(&mut drawing, to));
            let label = label.clone();
            drawing.edges.push(DrawnEdge {
                from,
                to,
                kind,
                label,
            });
        }
    }
    drawing
}

fn node(drawing: &mut Drawing, word: &str) -> Name {
    let plain = word.trim_end_matches(['*', '_']);
    let name = match plain {
        "S" => Name::from(START),
        "E" => Name::from(END),
        other => Name::from(other.to_owned()),
    };
    if drawing.nodes.iter().all(|node| node.name != name) {
        drawing.nodes.push(DrawnNode {
            name: name.clone(),
            deferred: word.ends_with('_'),
            each: word.ends_with('*'),
            inside: None,
        });
    }
    name
}

/// Puts one drawing into a node of another.
pub(crate) fn nested(mut outer: Drawing, name: &str, inside: Drawing) -> Drawing {
    for node in outer.nodes.iter_mut().filter(|node| *node.name == *name) {
        node.inside = Some(Box::new(inside.clone()));
    }
    outer
}

/// Any graph: cycles, edges from a node to itself, several between the same two, parts that hang together with
/// nothing.
pub(crate) fn any_drawing() -> impl Strategy<Value = Drawing> {
    let nodes = prop::collection::vec(("[a-z_]{1,20}", any::<(bool, bool)>()), 1..14);
    nodes.prop_flat_map(|nodes| {
        let count = nodes.len() + 2;
        let label = prop::option::of("[a-z ]{1,40}");
        let edges = prop::collection::vec((0..count, 0..count, 0..4_usize, label), 0..28);
        edges.prop_map(move |edges| assembled(&nodes, &edges))
    })
}

/// The places of an edge's two nodes, its kind and its label.
type Lot = (usize, usize, usize, Option<String>);

fn assembled(nodes: &[(String, (bool, bool))], edges: &[Lot]) -> Drawing {
    let named = |name: Name, deferred, each| DrawnNode {
        name,
        deferred,
        each,
        inside: None,
    };
    let mut all = vec![named(START.into(), false, false)];
    for (place, (name, (deferred, each))) in nodes.iter().enumerate() {
        all.push(named(format!("{name}{place}").into(), *deferred, *each));
    }
    all.push(named(END.into(), false, false));
    let kinds = [
        EdgeKind::Fixed,
        EdgeKind::Conditional,
        EdgeKind::Join,
        EdgeKind::OnError,
    ];
    let edges = edges.iter().map(|(from, to, kind, label)| DrawnEdge {
        from: all[*from].name.clone(),
        to: all[*to].name.clone(),
        kind: kinds[*kind],
        label: label.clone().map(Name::from),
    });
    Drawing {
        name: "any".into(),
        edges: edges.collect(),
        nodes: all,
    }
}
