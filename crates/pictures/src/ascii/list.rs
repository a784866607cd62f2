//! A graph as a list, for one that is too wide to be drawn: each node with the edges that leave it.

use crate::plan::{Kind, Node, Plan, Style};
use std::fmt::Write as _;

/// `needed` is how many columns a drawing would have taken, if that was the reason.
pub(super) fn list(plan: &Plan, needed: Option<usize>) -> String {
    let mut text = match needed {
        Some(columns) => format!("{} (a drawing would need {columns} columns)\n\n", plan.name),
        None => format!("{}\n\n", plan.name),
    };
    write_plan(&mut text, plan, 0);
    text
}

fn write_plan(text: &mut String, plan: &Plan, depth: usize) {
    let pad = "    ".repeat(depth);
    for (place, node) in plan.nodes.iter().enumerate() {
        let leaving: Vec<_> = plan
            .edges
            .iter()
            .filter(|edge| edge.from == place)
            .collect();
        if matches!(node.kind, Kind::End) && leaving.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{pad}{}", titled(node));
        if let Kind::Open(inside) = &node.kind {
            write_plan(text, inside, depth + 1);
        }
        for edge in leaving {
            let to = plan
                .nodes
                .get(edge.to)
                .map_or("", |node| node.label.as_str());
            let arrow = match edge.kind {
                Style::Fixed => "-->",
                Style::Conditional => "..>",
                Style::Join => "##>",
                Style::OnError => "~~>",
            };
            let _ = match edge.kind {
                Style::Fixed if edge.label.is_none() => writeln!(text, "{pad}  {arrow} {to}"),
                _ => writeln!(text, "{pad}  {arrow} {to}  ({})", edge.words()),
            };
        }
    }
}

/// A node's name with its marks.
pub(super) fn titled(node: &Node) -> String {
    let marks = node.marks();
    match marks.is_empty() {
        true => node.label.clone(),
        false => format!("{} ({})", node.label, marks.join(", ")),
    }
}
