//! What is written on edges in drawings: checked against the edges that there are.
//!
//! `Topology::check` calls it when nothing else is wrong. A run never reads a label.

use super::{Route, Topology, did_you_mean};
use crate::{END, Name, START};
use std::collections::HashMap;

/// A label of more characters would make an edge wider than the nodes that it joins.
pub(crate) const LONGEST_LABEL: usize = 60;

/// The labels by where their edges leave and where they lead.
#[derive(Debug, Default)]
pub(crate) struct Labels(HashMap<(Name, Name), Name>);

impl Labels {
    /// What is written on an edge.
    pub(crate) fn of(&self, from: &Name, to: &Name) -> Option<Name> {
        self.0.get(&(from.clone(), to.clone())).cloned()
    }

    /// Reads what was declared; what is wrong with it becomes faults.
    pub(super) fn read(
        declared: &[(Name, Name, Name)],
        topology: &Topology,
        faults: &mut Vec<String>,
    ) -> Labels {
        let mut labels = Labels::default();
        for (from, to, words) in declared {
            let edge = format!("the edge from `{from}` to `{to}`");
            let length = words.chars().count();
            if length == 0 || length > LONGEST_LABEL || words.chars().any(char::is_control) {
                faults.push(format!(
                    "the label of {edge} is not one line of 1 to {LONGEST_LABEL} characters"
                ));
            }
            let targets = targets(topology, from);
            if !targets.contains(to) {
                let near = did_you_mean(to, targets.iter().map(Name::as_str));
                let hint = near.map_or(String::new(), |name| format!(" (did you mean `{name}`?)"));
                faults.push(format!("a label names {edge}, which is not there{hint}"));
            }
            let key = (from.clone(), to.clone());
            if labels.0.insert(key, words.clone()).is_some() {
                faults.push(format!("{edge} has two labels"));
            }
        }
        labels
    }
}

/// All that a node is drawn to lead to.
fn targets(topology: &Topology, from: &Name) -> Vec<Name> {
    if from == START {
        return routed(topology, &topology.start, false);
    }
    let Some(shape) = topology
        .find(from)
        .and_then(|node| topology.nodes.get(node))
    else {
        return Vec::new();
    };
    let mut targets = routed(topology, &shape.route, !shape.joins.is_empty());
    let joins = shape.joins.iter().map(|&join| topology.joins[join].target);
    targets.extend(joins.chain(shape.handler).map(|node| topology.name(node)));
    targets
}

fn routed(topology: &Topology, route: &Route, joins: bool) -> Vec<Name> {
    match route {
        Route::Edges(to) if to.is_empty() && !joins => vec![END.into()],
        Route::Edges(to) => to.iter().map(|&node| topology.name(node)).collect(),
        Route::Branch(to) | Route::Commands(to) => {
            let named = |to: &Option<usize>| to.map_or(END.into(), |node| topology.name(node));
            to.iter().map(named).collect()
        }
    }
}
