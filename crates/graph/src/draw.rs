//! A graph as nodes and edges, and as text for Mermaid and Graphviz.

use crate::{
    END, START,
    name::Name,
    node::Inner,
    topology::{Route, Topology},
};
use serde::Serialize;
use std::fmt::Write as _;

/// Nodes and edges of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drawing {
    /// The graph's name.
    pub name: Name,
    /// The start, the nodes in the order of their declaration, the end if something leads there.
    pub nodes: Vec<DrawnNode>,
    /// In the order of the nodes they leave.
    pub edges: Vec<DrawnEdge>,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DrawnNode {
    /// Its name; `__start__` and `__end__` for the two that are not nodes.
    pub name: Name,
    /// Whether it waits until nothing else is due.
    pub deferred: bool,
    /// Whether it runs once per send.
    pub each: bool,
    /// The graph inside, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside: Option<Box<Drawing>>,
}

/// One edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DrawnEdge {
    /// The node it leaves.
    pub from: Name,
    /// The node it leads to.
    pub to: Name,
    /// What kind it is.
    pub kind: EdgeKind,
    /// What is written on it: when it is taken, in the words of whoever built the graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Name>,
}

impl DrawnEdge {
    /// What is written on it, in one line: its label, or of an unlabelled one that is taken when its node failed "error".
    #[must_use]
    pub fn words(&self) -> Option<&str> {
        let fixed = (self.kind == EdgeKind::OnError).then_some("error");
        self.label.as_deref().or(fixed)
    }
}

/// What makes an edge fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    /// Always.
    Fixed,
    /// When the branch or command chooses it.
    Conditional,
    /// When the other sources of the join have finished too.
    Join,
    /// When the node has failed.
    OnError,
}

impl Drawing {
    pub(crate) fn of(
        name: &Name,
        topology: &Topology,
        inner: &dyn Fn(usize) -> Option<Inner>,
    ) -> Self {
        let mut drawing = Drawing {
            name: name.clone(),
            nodes: vec![plain(START)],
            edges: Vec::new(),
        };
        for (i, shape) in topology.nodes.iter().enumerate() {
            drawing.nodes.push(DrawnNode {
                name: shape.name.clone(),
                deferred: shape.deferred,
                each: shape.each,
                inside: inner(i).map(|graph| Box::new(graph.drawing())),
            });
        }
        drawing.leave(topology, START.into(), &topology.start, false);
        for shape in &topology.nodes {
            let joins = !shape.joins.is_empty();
            drawing.leave(topology, shape.name.clone(), &shape.route, joins);
            for &join in &shape.joins {
                let target = topology.name(topology.joins[join].target);
                drawing.edge(topology, &shape.name, target, EdgeKind::Join);
            }
            if let Some(handler) = shape.handler {
                let handler = topology.name(handler);
                drawing.edge(topology, &shape.name, handler, EdgeKind::OnError);
            }
        }
        if drawing.edges.iter().any(|e| e.to == END) {
            drawing.nodes.push(plain(END));
        }
        drawing
    }

    fn leave(&mut self, topology: &Topology, from: Name, route: &Route, joins: bool) {
        match route {
            Route::Edges(to) if to.is_empty() && !joins => {
                self.edge(topology, &from, END.into(), EdgeKind::Fixed)
            }
            Route::Edges(to) => {
                for &to in to {
                    self.edge(topology, &from, topology.name(to), EdgeKind::Fixed);
                }
            }
            Route::Branch(to) | Route::Commands(to) => {
                for to in to {
                    let to = to.map_or(END.into(), |i| topology.name(i));
                    self.edge(topology, &from, to, EdgeKind::Conditional);
                }
            }
        }
    }

    fn edge(&mut self, topology: &Topology, from: &Name, to: Name, kind: EdgeKind) {
        self.edges.push(DrawnEdge {
            label: topology.labels.of(from, &to),
            from: from.clone(),
            to,
            kind,
        });
    }

    /// As Mermaid text; with `xray`, subgraphs are drawn open.
    #[must_use]
    pub fn mermaid(&self, xray: bool) -> String {
        let mut text = String::from("flowchart TD\n");
        self.mermaid_part(&mut text, "", 1, xray);
        text
    }

    fn mermaid_part(&self, text: &mut String, prefix: &str, depth: usize, xray: bool) {
        let pad = "    ".repeat(depth);
        for (i, node) in self.nodes.iter().enumerate() {
            let (id, label) = (format!("{prefix}n{i}"), mermaid_text(label(node)));
            match &node.inside {
                Some(inside) if xray => {
                    let _ = writeln!(text, "{pad}subgraph {id}[\"{label}\"]");
                    inside.mermaid_part(text, &format!("{id}_"), depth + 1, xray);
                    let _ = writeln!(text, "{pad}end");
                }
                Some(_) => {
                    let _ = writeln!(text, "{pad}{id}[[\"{label}\"]]");
                }
                None if node.name == START || node.name == END => {
                    let _ = writeln!(text, "{pad}{id}([\"{label}\"])");
                }
                None => {
                    let _ = writeln!(text, "{pad}{id}[\"{label}\"]");
                }
            }
        }
        for edge in &self.edges {
            let arrow = match edge.kind {
                EdgeKind::Fixed => "-->",
                EdgeKind::Conditional => "-.->",
                EdgeKind::Join => "==>",
                EdgeKind::OnError => "-.->",
            };
            let words = edge.words().map_or(String::new(), |words| {
                format!("|\"{}\"|", mermaid_text(words))
            });
            let id = |name: &Name| format!("{prefix}n{}", self.place(name));
            let _ = writeln!(
                text,
                "{pad}{} {arrow}{words} {}",
                id(&edge.from),
                id(&edge.to)
            );
        }
    }

    /// In Graphviz' DOT language; with `xray`, subgraphs are drawn open.
    #[must_use]
    pub fn dot(&self, xray: bool) -> String {
        let mut text = format!("digraph \"{}\" {{\n", dot_text(&self.name));
        text.push_str("    compound=true; fontname=\"sans-serif\";\n");
        text.push_str("    node [shape=box, style=rounded, fontname=\"sans-serif\"];\n");
        text.push_str("    edge [fontname=\"sans-serif\"];\n");
        self.dot_part(&mut text, "", 1, xray);
        text.push_str("}\n");
        text
    }

    fn dot_part(&self, text: &mut String, prefix: &str, depth: usize, xray: bool) {
        let pad = "    ".repeat(depth);
        for (i, node) in self.nodes.iter().enumerate() {
            let (id, label) = (format!("{prefix}n{i}"), dot_text(label(node)));
            match &node.inside {
                Some(inside) if xray => {
                    let _ = writeln!(text, "{pad}subgraph \"cluster_{id}\" {{");
                    let _ = writeln!(text, "{pad}    label=\"{label}\"; style=rounded;");
                    inside.dot_part(text, &format!("{id}_"), depth + 1, xray);
                    let _ = writeln!(text, "{pad}}}");
                }
                Some(_) => {
                    let _ = writeln!(text, "{pad}{id} [label=\"{label}\", peripheries=2];");
                }
                None if node.name == START || node.name == END => {
                    let _ = writeln!(text, "{pad}{id} [label=\"{label}\", shape=oval];");
                }
                None => {
                    let _ = writeln!(text, "{pad}{id} [label=\"{label}\"];");
                }
            }
        }
        for edge in &self.edges {
            let style = match edge.kind {
                EdgeKind::Fixed => "",
                EdgeKind::Conditional => "style=dashed",
                EdgeKind::Join => "style=bold",
                EdgeKind::OnError => "style=dotted",
            };
            let (from, to) = (self.place(&edge.from), self.place(&edge.to));
            let opened = |i: usize| self.nodes.get(i)?.inside.as_deref().filter(|_| xray);
            let mut attributes = Vec::new();
            // An open subgraph is left at its end and entered at its start; what is drawn stops at its border.
            let (mut tail, mut head) = (format!("{prefix}n{from}"), format!("{prefix}n{to}"));
            if let Some(inside) = opened(from) {
                attributes.push(format!("ltail=\"cluster_{tail}\""));
                let end = inside.nodes.iter().rposition(|n| n.name == END);
                tail = format!("{tail}_n{}", end.unwrap_or(0));
            }
            if opened(to).is_some() {
                attributes.push(format!("lhead=\"cluster_{head}\""));
                head.push_str("_n0");
            }
            attributes.extend((!style.is_empty()).then(|| style.to_owned()));
            let words = edge.words().map(dot_text);
            attributes.extend(words.map(|words| format!("label=\"{words}\"")));
            let list = if attributes.is_empty() {
                String::new()
            } else {
                format!(" [{}]", attributes.join(", "))
            };
            let _ = writeln!(text, "{pad}{tail} -> {head}{list};");
        }
    }

    fn place(&self, name: &Name) -> usize {
        self.nodes.iter().position(|n| n.name == *name).unwrap_or(0)
    }
}

fn plain(name: &'static str) -> DrawnNode {
    DrawnNode {
        name: name.into(),
        deferred: false,
        each: false,
        inside: None,
    }
}

fn label(node: &DrawnNode) -> &str {
    match &*node.name {
        START => "start",
        END => "end",
        name => name,
    }
}

/// Mermaid reads quotes, angle brackets and entities in labels; as entities they stay text.
fn mermaid_text(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
        .replace('#', "#35;")
        .replace('&', "#amp;")
        .replace('"', "#quot;")
        .replace('<', "#lt;")
        .replace('>', "#gt;")
}

fn dot_text(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
