//! How nodes lead to each other, checked once: names become indices, faults become sentences.
//!
//! Built by `Builder::build`, read by the step machine and the drawings. No state type in here.

mod labels;

use crate::{END, Name, START};
use labels::Labels;
use std::collections::{HashMap, HashSet};

/// What the builder was told, unchecked.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) nodes: Vec<DraftNode>,
    pub(crate) start: Vec<Name>,
    pub(crate) edges: Vec<(Name, Vec<Name>)>,
    pub(crate) joins: Vec<(Vec<Name>, Name)>,
    pub(crate) branches: Vec<(Name, Vec<Name>)>,
    pub(crate) commands: Vec<(Name, Vec<Name>)>,
    pub(crate) ends: Vec<Name>,
    pub(crate) deferred: Vec<Name>,
    pub(crate) hidden: Vec<Name>,
    /// Nodes that have a policy, and the handler it names.
    pub(crate) policies: Vec<(Name, Option<Name>)>,
    /// What is written on an edge in drawings: from, to, words.
    pub(crate) labels: Vec<(Name, Name, Name)>,
}

pub(crate) struct DraftNode {
    pub(crate) name: Name,
    /// Runs once per send.
    pub(crate) each: bool,
    /// Returns a `Command`.
    pub(crate) commands: bool,
}

/// A checked graph's shape. Nodes are known by their place in the declaration.
#[derive(Debug, Default)]
pub(crate) struct Topology {
    pub(crate) nodes: Vec<Shape>,
    pub(crate) joins: Vec<Join>,
    /// Where a run begins: fixed nodes, or what a start branch may choose.
    pub(crate) start: Route,
    /// What is written on edges in drawings.
    pub(crate) labels: Labels,
    index: HashMap<Name, usize>,
}

/// One node.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: Name,
    pub(crate) each: bool,
    pub(crate) route: Route,
    /// The joins it is a source of.
    pub(crate) joins: Vec<usize>,
    /// Waits until nothing else is due.
    pub(crate) deferred: bool,
    /// Who runs in its place when it failed.
    pub(crate) handler: Option<usize>,
}

/// How a node goes on. A node has one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// To all of these (none: its path ends here, or at a join).
    Edges(Vec<usize>),
    /// A function chooses among these; `None` is the end.
    Branch(Vec<Option<usize>>),
    /// The node's own `Command` chooses among these; `None` is the end.
    Commands(Vec<Option<usize>>),
}

impl Default for Route {
    fn default() -> Self {
        Route::Edges(Vec::new())
    }
}

/// `target` runs once when all `sources` have finished.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Join {
    pub(crate) sources: Vec<usize>,
    pub(crate) target: usize,
}

impl Topology {
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    pub(crate) fn name(&self, node: usize) -> Name {
        self.nodes[node].name.clone()
    }

    /// What `node` said it may choose, for error texts.
    pub(crate) fn declared(&self, route: &Route) -> String {
        let (Route::Branch(targets) | Route::Commands(targets)) = route else {
            return "none".to_owned();
        };
        targets
            .iter()
            .map(|t| t.map_or("END", |i| &self.nodes[i].name))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Checks a draft.
    ///
    /// # Errors
    /// All faults, in the order of the declarations.
    pub(crate) fn check(draft: &Draft) -> Result<Topology, Vec<String>> {
        let mut check = Check::new(draft);
        check.names();
        let start = check.start();
        let edges = check.edges();
        let (joins, sources) = check.joins();
        let of_nodes = draft.branches.iter().filter(|(from, _)| from != START);
        let branches = check.choices("a branch", of_nodes);
        let commands = check.choices("a command", draft.commands.iter());
        check.mentions();
        let mut nodes = Vec::with_capacity(draft.nodes.len());
        for (i, node) in draft.nodes.iter().enumerate() {
            let declared = [
                edges.get(&i).cloned().map(Route::Edges),
                branches.get(&i).cloned().map(Route::Branch),
                commands.get(&i).cloned().map(Route::Commands),
            ];
            let route = check.route(i, declared, sources.contains_key(&i));
            nodes.push(Shape {
                name: node.name.clone(),
                each: node.each,
                route,
                joins: sources.get(&i).cloned().unwrap_or_default(),
                deferred: draft.deferred.contains(&node.name),
                handler: check.handler(&node.name),
            });
        }
        let mut topology = Topology {
            nodes,
            joins,
            start,
            labels: Labels::default(),
            index: check.index,
        };
        let mut faults = check.faults;
        // A policy for all nodes would say the same of each.
        let mut said = HashSet::new();
        faults.retain(|fault| said.insert(fault.clone()));
        if faults.is_empty() {
            // Whatever cannot be reached follows from other faults while there are any.
            faults = topology.unreachable();
            faults.extend(topology.circular_handlers());
            topology.labels = Labels::read(&draft.labels, &topology, &mut faults);
        }
        if faults.is_empty() {
            Ok(topology)
        } else {
            Err(faults)
        }
    }

    /// A node whose failure would in the end be handled by itself could fail for ever.
    fn circular_handlers(&self) -> Vec<String> {
        let leads_back = |node: usize| {
            let handlers =
                std::iter::successors(self.nodes[node].handler, |&h| self.nodes[h].handler);
            handlers.take(self.nodes.len()).any(|h| h == node)
        };
        let circular = (0..self.nodes.len()).filter(|&i| leads_back(i));
        circular
            .map(|i| {
                format!(
                    "`{}` handles failures that lead back to it",
                    self.nodes[i].name
                )
            })
            .collect()
    }

    fn unreachable(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let mut next = targets(&self.start);
        while let Some(i) = next.pop() {
            if seen.insert(i) {
                let shape = &self.nodes[i];
                next.extend(targets(&shape.route));
                next.extend(shape.joins.iter().map(|&j| self.joins[j].target));
                next.extend(shape.handler);
            }
        }
        let lost = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(i, _)| !seen.contains(i));
        lost.map(|(_, n)| format!("`{}` is never reached: nothing leads to it", n.name))
            .collect()
    }
}

/// The nodes that a route may lead to.
pub(crate) fn targets(route: &Route) -> Vec<usize> {
    match route {
        Route::Edges(to) => to.clone(),
        Route::Branch(to) | Route::Commands(to) => to.iter().flatten().copied().collect(),
    }
}

struct Check<'a> {
    draft: &'a Draft,
    index: HashMap<Name, usize>,
    faults: Vec<String>,
}

impl<'a> Check<'a> {
    fn new(draft: &'a Draft) -> Self {
        Check {
            draft,
            index: HashMap::new(),
            faults: Vec::new(),
        }
    }

    fn names(&mut self) {
        for (i, node) in self.draft.nodes.iter().enumerate() {
            let name = &node.name;
            if name.is_empty() || name.len() > 200 {
                self.faults.push(format!(
                    "a node's name has 1 to 200 bytes, not {}",
                    name.len()
                ));
            }
            if name == END || name == START {
                self.faults.push(format!("`{name}` is reserved"));
            }
            if name.contains(['|', ':']) {
                self.faults.push(format!(
                    "`{name}` contains `|` or `:`, which separate namespaces"
                ));
            }
            if self.index.insert(name.clone(), i).is_some() {
                self.faults.push(format!("two nodes are called `{name}`"));
            }
        }
    }

    fn find(&mut self, what: &str, name: &Name) -> Option<usize> {
        let found = self.index.get(name).copied();
        if found.is_none() {
            let known = self.draft.nodes.iter().map(|n| n.name.as_ref());
            let hint = if name == END {
                " (to end there, write .end(…) or choose END in a branch)".to_owned()
            } else {
                did_you_mean(name, known)
                    .map_or(String::new(), |n| format!(" (did you mean `{n}`?)"))
            };
            self.faults
                .push(format!("{what} names `{name}`, which is not a node{hint}"));
        }
        found
    }

    /// A node that runs without being sent a payload.
    fn find_plain(&mut self, what: &str, name: &Name) -> Option<usize> {
        let found = self.find(what, name)?;
        if self.draft.nodes[found].each {
            self.faults.push(format!(
                "{what} leads to `{name}`, which takes a payload: send to it from a branch or a command"
            ));
            return None;
        }
        Some(found)
    }

    fn start(&mut self) -> Route {
        let draft = self.draft;
        let mut branches = draft.branches.iter().filter(|(from, _)| from == START);
        if let Some((_, to)) = branches.next() {
            if branches.next().is_some() {
                self.faults
                    .push("the graph has two start branches".to_owned());
            }
            if !draft.start.is_empty() {
                self.faults
                    .push("the graph has both a start and a start branch".to_owned());
            }
            return Route::Branch(self.choice("the start branch", to));
        }
        if draft.start.is_empty() {
            self.faults
                .push("the graph has no start: say .start(\"node\")".to_owned());
        }
        let mut start: Vec<usize> = draft
            .start
            .iter()
            .filter_map(|n| self.find_plain("the start", n))
            .collect();
        start.sort_unstable();
        start.dedup();
        Route::Edges(start)
    }

    fn edges(&mut self) -> HashMap<usize, Vec<usize>> {
        let mut edges: HashMap<usize, Vec<usize>> = HashMap::new();
        for (from, to) in &self.draft.edges {
            let from = self.find("an edge", from);
            let to: Vec<_> = to
                .iter()
                .filter_map(|n| self.find_plain("an edge", n))
                .collect();
            if let (Some(from), false) = (from, to.is_empty()) {
                let all = edges.entry(from).or_default();
                all.extend(to);
                all.sort_unstable();
                all.dedup();
            }
        }
        edges
    }

    fn joins(&mut self) -> (Vec<Join>, HashMap<usize, Vec<usize>>) {
        let mut joins = Vec::new();
        let mut sources: HashMap<usize, Vec<usize>> = HashMap::new();
        for (from, to) in &self.draft.joins {
            let mut all: Vec<_> = from.iter().filter_map(|n| self.find("a join", n)).collect();
            all.sort_unstable();
            all.dedup();
            if all.is_empty() {
                self.faults
                    .push(format!("the join into `{to}` has no sources"));
            }
            if let Some(target) = self.find_plain("a join", to) {
                let join = Join {
                    sources: all,
                    target,
                };
                if joins.contains(&join) {
                    self.faults
                        .push(format!("the same join into `{to}` is declared twice"));
                    continue;
                }
                for &i in &join.sources {
                    sources.entry(i).or_default().push(joins.len());
                }
                joins.push(join);
            }
        }
        (joins, sources)
    }

    fn choice(&mut self, what: &str, to: &[Name]) -> Vec<Option<usize>> {
        let mut seen = HashSet::new();
        let targets: Vec<_> = to
            .iter()
            .filter_map(|n| {
                if n == END {
                    Some(None)
                } else {
                    self.find(what, n).map(Some)
                }
            })
            .filter(|target| seen.insert(*target))
            .collect();
        if to.is_empty() {
            self.faults.push(format!("{what} declares no targets"));
        }
        targets
    }

    fn choices<'b>(
        &mut self,
        what: &str,
        declared: impl Iterator<Item = &'b (Name, Vec<Name>)>,
    ) -> HashMap<usize, Vec<Option<usize>>> {
        let mut all: HashMap<usize, Vec<Option<usize>>> = HashMap::new();
        for (from, to) in declared {
            let from_index = self.find(what, from);
            let to = self.choice(&format!("{what} of `{from}`"), to);
            if let Some(i) = from_index
                && all.insert(i, to).is_some()
            {
                self.faults.push(format!("`{from}` has {what} twice"));
            }
        }
        all
    }

    /// Names that are mentioned without leading anywhere.
    fn mentions(&mut self) {
        let draft = self.draft;
        for name in &draft.ends {
            self.find("an end", name);
        }
        for name in &draft.deferred {
            let found = self.find("`deferred`", name);
            if found.is_some_and(|i| draft.nodes[i].each) {
                self.faults.push(format!(
                    "`{name}` cannot be deferred: it runs when it is sent to"
                ));
            }
        }
        for name in &draft.hidden {
            self.find("`hidden`", name);
        }
        for (name, handler) in &draft.policies {
            self.find("a policy", name);
            if let Some(handler) = handler {
                self.find_plain("`on_error`", handler);
            }
        }
    }

    fn handler(&self, node: &Name) -> Option<usize> {
        let (_, handler) = self.draft.policies.iter().rev().find(|(n, _)| n == node)?;
        self.index.get(handler.as_ref()?).copied()
    }

    /// One kind of routing per node.
    fn route(&mut self, i: usize, declared: [Option<Route>; 3], in_a_join: bool) -> Route {
        let [edges, branch, commands] = declared.each_ref().map(Option::is_some);
        let node = &self.draft.nodes[i];
        let name = &node.name;
        let ends = self.draft.ends.contains(name);

        let kinds: Vec<_> = [
            (edges || in_a_join, "edges or joins"),
            (branch, "a branch"),
            (commands, "commands"),
            (ends, "an end"),
        ]
        .into_iter()
        .filter_map(|(is, kind)| is.then_some(kind))
        .collect();
        match kinds.as_slice() {
            [] => self.faults.push(format!(
                "`{name}` leads nowhere: give it an edge, a branch, a join, or .end(\"{name}\")"
            )),
            [_] => {}
            several => self.faults.push(format!(
                "`{name}` has {}: a node goes on in one way",
                several.join(" and ")
            )),
        }
        if node.commands && !commands && !kinds.is_empty() {
            self.faults.push(format!(
                "`{name}` returns a Command: declare where it may go with .commands(\"{name}\", [..])"
            ));
        }
        if !node.commands && commands {
            self.faults.push(format!(
                "`{name}` has declared commands but returns an update only"
            ));
        }
        declared.into_iter().flatten().next().unwrap_or_default()
    }
}

/// The known name closest to a wrong one, if one is close.
pub(crate) fn did_you_mean<'a>(
    wrong: &str,
    known: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests;
