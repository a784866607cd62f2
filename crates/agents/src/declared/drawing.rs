//! The drawing of an agent with those that it calls: one node each, beside the node that makes the calls.
//!
//! `build` calls it for the main agent of a file. No graph is changed by it: a called agent is a tool to its caller's
//! graph, and only a picture shows it as what it is.

use super::actions::ACT;
use super::child::Child;
use super::file::{AgentFile, AgentSpec};
use crate::{Agent, TOOLS};
use paraph_gateway::Dialect;
use paraph_graph::{Drawing, DrawnEdge, DrawnNode, END, EdgeKind, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The agents of a file, and which of them are drawn with what is inside.
pub(super) struct Called<'a> {
    file: &'a AgentFile,
    built: &'a BTreeMap<String, Arc<Child>>,
    /// Each is opened where it is met first, so that the whole never has more nodes than the file has agents for.
    opened: BTreeSet<String>,
}

impl<'a> Called<'a> {
    pub(super) fn of(file: &'a AgentFile, built: &'a BTreeMap<String, Arc<Child>>) -> Called<'a> {
        Called {
            file,
            built,
            opened: BTreeSet::new(),
        }
    }

    /// The drawing of an agent, with those that it calls.
    pub(super) fn drawing(&mut self, agent: &Agent, spec: &AgentSpec) -> Drawing {
        let mut drawing = agent.drawing();
        let caller = match spec.dialect {
            Dialect::Native => Name::from(TOOLS.name()),
            Dialect::Strict => Name::from(ACT),
        };
        // Those of this agent come before those further below, so that what is opened stands as high as it can.
        let callees = &spec.tools.agents;
        let first: Vec<bool> = callees
            .iter()
            .map(|callee| self.opened.insert(callee.clone()))
            .collect();
        for (callee, first) in callees.iter().zip(first) {
            let (Some(child), Some(spec)) = (self.built.get(callee), self.file.agents.get(callee))
            else {
                continue;
            };
            let inside = first.then(|| Box::new(self.drawing(&child.agent, spec)));
            add(&mut drawing, callee, &caller, inside);
        }
        drawing
    }
}

/// Adds a called agent before the end, and its edges.
fn add(drawing: &mut Drawing, callee: &str, caller: &Name, inside: Option<Box<Drawing>>) {
    let taken = drawing.nodes.iter().any(|node| *node.name == *callee);
    let name = match taken {
        true => Name::from(format!("{callee} (agent)")),
        false => Name::from(callee.to_owned()),
    };
    let end = drawing.nodes.iter().position(|node| node.name == END);
    let node = DrawnNode {
        name: name.clone(),
        deferred: false,
        each: false,
        inside,
    };
    drawing
        .nodes
        .insert(end.unwrap_or(drawing.nodes.len()), node);
    drawing.edges.push(DrawnEdge {
        from: caller.clone(),
        to: name.clone(),
        kind: EdgeKind::Conditional,
        label: Some("calls".into()),
    });
    drawing.edges.push(DrawnEdge {
        from: name,
        to: caller.clone(),
        kind: EdgeKind::Fixed,
        label: None,
    });
}

#[cfg(test)]
mod tests {
    use super::super::{declared_drawing, file::*};
    use super::*;
    use crate::{Parts, Stores, declared};

    fn calling(agents: &[&str], dialect: Dialect) -> AgentSpec {
        let agents = agents.iter().map(|name| (*name).to_owned()).collect();
        AgentSpec {
            dialect,
            tools: ToolsSpec {
                agents,
                ..ToolsSpec::default()
            },
            ..AgentSpec::default()
        }
    }

    /// `lead` calls `clerk` and an agent that is called as a node is; both of them call `archive`.
    fn file() -> AgentFile {
        AgentFile {
            name: "lead".to_owned(),
            main: AgentSpec {
                policy: PolicySpec {
                    allow: Some(vec!["no_such_tool".to_owned()]),
                    ..PolicySpec::default()
                },
                ..calling(&["clerk", "model"], Dialect::Native)
            },
            agents: BTreeMap::from([
                ("clerk".to_owned(), calling(&["archive"], Dialect::Strict)),
                ("model".to_owned(), calling(&["archive"], Dialect::Native)),
                ("archive".to_owned(), calling(&[], Dialect::Native)),
            ]),
            ..AgentFile::default()
        }
    }

    /// The names of the nodes, with those inside.
    fn names(drawing: &Drawing) -> Vec<String> {
        let named = drawing.nodes.iter().map(|node| match &node.inside {
            Some(inside) => format!("{}[{}]", node.name, names(inside).join(" ")),
            None => node.name.to_string(),
        });
        named.collect()
    }

    #[test]
    fn agents_that_are_called_are_nodes_and_each_is_opened_once() {
        let drawing = declared_drawing(&file()).unwrap();
        assert_eq!(
            names(&drawing),
            [
                "__start__",
                "model",
                "tools",
                "clerk[__start__ decide act archive[__start__ model tools __end__] __end__]",
                "model (agent)[__start__ model tools archive __end__]",
                "__end__"
            ]
        );
        let edges = drawing.edges.iter().rev().take(4);
        let edges: Vec<_> = edges
            .map(|edge| (edge.from.as_str(), edge.to.as_str(), edge.words()))
            .collect();
        assert_eq!(
            edges,
            [
                ("model (agent)", "tools", None),
                ("tools", "model (agent)", Some("calls")),
                ("clerk", "tools", None),
                ("tools", "clerk", Some("calls")),
            ]
        );
        let agent = AgentFile {
            main: calling(&["clerk", "model"], Dialect::Native),
            ..file()
        };
        let agent = declared(&agent, Parts::of(Stores::in_memory())).unwrap();
        assert_eq!(agent.drawing(), drawing);
    }
}
