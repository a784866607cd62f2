//! What of a drawing is shown: nodes and edges by number, with names that are safe to show and short enough.
//!
//! Each of the three forms begins here. A plan is never larger than the bounds say; nothing here knows of places.

use crate::Error;
use paraph_graph::{Drawing, DrawnNode, END, EdgeKind, Name, START};
use std::collections::{BTreeMap, BTreeSet};

/// How many nodes are drawn, those inside opened subgraphs included.
pub const MAX_NODES: usize = 2_000;
/// How many edges are drawn, those inside opened subgraphs included.
pub const MAX_EDGES: usize = 10_000;
/// How many levels of subgraphs are opened.
pub const MAX_DEPTH: usize = 16;

/// A longer full name is cut where it is shown on demand: it is there to be read.
const MAX_FULL_NAME: usize = 500;

/// What is written on an edge that is followed when its node failed, unless it has a label of its own.
const ERROR: &str = "error";

/// Labels longer than this are shortened as names are.
const LONGEST_LABEL: usize = 30;

/// How names are shortened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// How many characters are shown at most.
    pub(crate) longest: usize,
    /// What stands for those that are left out.
    pub(crate) mark: &'static str,
}

/// A graph to be drawn.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<Edge>,
}

/// One node.
#[derive(Debug)]
pub(crate) struct Node {
    /// What stands in its box.
    pub(crate) label: String,
    /// Its whole name.
    pub(crate) full: String,
    pub(crate) deferred: bool,
    pub(crate) each: bool,
    pub(crate) kind: Kind,
}

/// What a node is.
#[derive(Debug)]
pub(crate) enum Kind {
    Start,
    End,
    Plain,
    /// A subgraph that is shown as one node.
    Closed,
    /// A subgraph that is shown with what is inside.
    Open(Plan),
}

/// One edge, between nodes by their numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) kind: Style,
    /// What is written on it.
    pub(crate) label: Option<String>,
}

impl Edge {
    /// When it is followed: its kind, and what is written on it.
    pub(crate) fn words(&self) -> String {
        match &self.label {
            Some(label) if self.kind != Style::OnError || label != ERROR => {
                format!("{}: {label}", self.kind.words())
            }
            _ => self.kind.words().to_owned(),
        }
    }
}

/// How an edge is drawn, which is its kind, in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Style {
    Fixed,
    Conditional,
    Join,
    OnError,
}

impl Style {
    /// When such an edge is followed.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Style::Fixed => "always",
            Style::Conditional => "conditional",
            Style::Join => "join: waits for all",
            Style::OnError => "on error",
        }
    }

    fn of(kind: EdgeKind) -> Style {
        match kind {
            EdgeKind::Fixed => Style::Fixed,
            EdgeKind::Conditional => Style::Conditional,
            EdgeKind::Join => Style::Join,
            EdgeKind::OnError => Style::OnError,
        }
    }
}

impl Node {
    /// What is said below its name.
    pub(crate) fn marks(&self) -> Vec<&'static str> {
        let closed = matches!(self.kind, Kind::Closed);
        let all = [
            (closed, "subgraph"),
            (self.each, "each"),
            (self.deferred, "deferred"),
        ];
        let said = all.into_iter().filter(|(is, _)| *is);
        said.map(|(_, word)| word).collect()
    }
}

impl Plan {
    /// The plan of a drawing; `xray` opens subgraphs, and `cut` shortens names.
    ///
    /// # Errors
    /// When the drawing is too large, or an edge leads nowhere.
    pub(crate) fn of(drawing: &Drawing, xray: bool, cut: Cut) -> Result<Plan, Error> {
        let mut reader = Reader {
            xray,
            cut,
            nodes: 0,
            edges: 0,
        };
        reader.read(drawing, 0)
    }

    /// Which kinds of edges there are, in subgraphs too.
    pub(crate) fn styles(&self) -> BTreeSet<Style> {
        let mut found: BTreeSet<Style> = self.edges.iter().map(|edge| edge.kind).collect();
        for node in &self.nodes {
            if let Kind::Open(inside) = &node.kind {
                found.extend(inside.styles());
            }
        }
        found
    }
}

struct Reader {
    xray: bool,
    cut: Cut,
    nodes: usize,
    edges: usize,
}

impl Reader {
    fn read(&mut self, drawing: &Drawing, depth: usize) -> Result<Plan, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep { limit: MAX_DEPTH });
        }
        let advice = if depth > 0 {
            ": draw it without xray"
        } else {
            ""
        };
        count(
            &mut self.nodes,
            drawing.nodes.len(),
            "nodes",
            MAX_NODES,
            advice,
        )?;
        count(
            &mut self.edges,
            drawing.edges.len(),
            "edges",
            MAX_EDGES,
            advice,
        )?;
        let mut places: BTreeMap<&Name, usize> = BTreeMap::new();
        let mut nodes = Vec::with_capacity(drawing.nodes.len());
        for (place, node) in drawing.nodes.iter().enumerate() {
            places.entry(&node.name).or_insert(place);
            nodes.push(self.node(node, depth)?);
        }
        let mut seen = BTreeSet::new();
        let mut edges = Vec::with_capacity(drawing.edges.len());
        for edge in &drawing.edges {
            let (Some(&from), Some(&to)) = (places.get(&edge.from), places.get(&edge.to)) else {
                return Err(Error::UnknownNode {
                    from: clean(&edge.from),
                    to: clean(&edge.to),
                });
            };
            let kind = Style::of(edge.kind);
            let label = edge.words().map(|words| self.label(words));
            let edge = Edge {
                from,
                to,
                kind,
                label,
            };
            if seen.insert(edge.clone()) {
                edges.push(edge);
            }
        }
        let name = clean(&drawing.name);
        Ok(Plan { name, nodes, edges })
    }

    fn label(&self, words: &str) -> String {
        let longest = self.cut.longest.min(LONGEST_LABEL);
        shortened(
            &clean(words),
            Cut {
                longest,
                ..self.cut
            },
        )
    }

    fn node(&mut self, node: &DrawnNode, depth: usize) -> Result<Node, Error> {
        let kind = match &node.inside {
            Some(inside) if self.xray => Kind::Open(self.read(inside, depth + 1)?),
            Some(_) => Kind::Closed,
            None if node.name == START => Kind::Start,
            None if node.name == END => Kind::End,
            None => Kind::Plain,
        };
        let full = match kind {
            Kind::Start => "start".to_owned(),
            Kind::End => "end".to_owned(),
            _ => clean(&node.name),
        };
        Ok(Node {
            label: shortened(&full, self.cut),
            full,
            deferred: node.deferred,
            each: node.each,
            kind,
        })
    }
}

fn count(
    sum: &mut usize,
    more: usize,
    what: &'static str,
    limit: usize,
    advice: &'static str,
) -> Result<(), Error> {
    *sum += more;
    if *sum <= limit {
        return Ok(());
    }
    Err(Error::TooMany {
        what,
        count: *sum,
        limit,
        advice,
    })
}

/// A name on one line, without what would disturb a terminal or is no XML. An empty name becomes visible.
fn clean(name: &str) -> String {
    let shown = |character: char| match character {
        ' ' => ' ',
        '\t' | '\n' | '\r' => ' ',
        _ if character.is_control() || is_invisible(character) => '\u{fffd}',
        _ => character,
    };
    let text: String = name.chars().take(MAX_FULL_NAME).map(shown).collect();
    match text.trim() {
        "" => "(no name)".to_owned(),
        text => text.to_owned(),
    }
}

/// Marks that reorder or hide text, and code points that XML forbids.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
        | '\u{e0000}'..='\u{e007f}')
}

/// A text cut in its middle, because long names often differ at their ends.
fn shortened(text: &str, cut: Cut) -> String {
    let length = text.chars().count();
    if length <= cut.longest {
        return text.to_owned();
    }
    let kept = cut.longest.saturating_sub(cut.mark.chars().count());
    let tail = kept / 3;
    let head: String = text.chars().take(kept - tail).collect();
    let tail: String = text.chars().skip(length - tail).collect();
    format!("{}{}{}", head.trim_end(), cut.mark, tail.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_in_their_middle() {
        let cut = |text, longest, mark| shortened(text, Cut { longest, mark });
        let long = "summarise_the_whole_conversation_v2";
        assert_eq!(cut(long, 16, "…"), "summarise_…on_v2");
        assert_eq!(cut(long, 16, ".."), "summarise_..n_v2");
        assert_eq!(cut("short", 16, "…"), "short");
        assert_eq!(cut("a b", 1, "…"), "…");
    }

    #[test]
    fn names_lose_what_would_disturb() {
        assert_eq!(clean("a\u{1b}[31m\u{202e}b\nc"), "a\u{fffd}[31m\u{fffd}b c");
        assert_eq!(clean(" \u{9}"), "(no name)");
        assert_eq!(clean(&"x".repeat(900)).len(), MAX_FULL_NAME);
    }
}
