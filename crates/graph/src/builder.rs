//! Building a graph: nodes, edges and rules by name, checked all at once.

use crate::{
    Error, Policy, State,
    checkpoint::Store,
    clock::{Clock, SystemClock},
    graph::{Branch, CacheKey, Graph, Names, ReadContext, Shape},
    memory::Memory,
    name::Name,
    node::{Each, Goto, IntoEach, IntoNode, Node},
    subgraph::MAX_LEVELS,
    topology::{Draft, DraftNode, Topology},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    any::Any,
    collections::HashSet,
    sync::{Arc, Mutex},
};

/// Nodes first, then how they lead to each other; [`Builder::build`] checks all of it.
#[must_use]
pub struct Builder<S: State> {
    name: Name,
    draft: Draft,
    nodes: Vec<Arc<dyn Node<S>>>,
    branches: Vec<(Name, Branch<S>)>,
    policies: Vec<(Name, Policy)>,
    policy_for_all: Policy,
    cache_keys: Vec<(Name, CacheKey<S>)>,
    input: Option<Vec<Name>>,
    output: Option<Vec<Name>>,
    context: Option<(Value, ReadContext)>,
    store: Option<Store>,
    memory: Option<Arc<dyn Memory>>,
    clock: Arc<dyn Clock>,
}

impl<S: State> Builder<S> {
    pub(crate) fn named(name: Name) -> Self {
        Builder {
            name,
            draft: Draft::default(),
            nodes: Vec::new(),
            branches: Vec::new(),
            policies: Vec::new(),
            policy_for_all: Policy::default(),
            cache_keys: Vec::new(),
            input: None,
            output: None,
            context: None,
            store: None,
            memory: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// Adds a node: an async function, a non-capturing async closure, `with(dependency, function)`,
    /// or a subgraph (`graph.mapped(…)`, `graph.shared()`).
    pub fn node<M>(mut self, name: impl Into<Name>, node: impl IntoNode<S, M>) -> Self {
        self.draft.nodes.push(DraftNode {
            name: name.into(),
            each: false,
            commands: node.commands(),
        });
        self.nodes.push(node.into_node());
        self
    }

    /// Adds a node that runs once per send, with its payload.
    pub fn each<P, M>(mut self, name: Each<P>, node: impl IntoEach<P, S, M>) -> Self {
        self.draft.nodes.push(DraftNode {
            name: name.into(),
            each: true,
            commands: node.commands(),
        });
        self.nodes.push(node.into_node());
        self
    }

    /// Where a run begins; several nodes run in parallel.
    pub fn start(mut self, nodes: impl Into<Names>) -> Self {
        self.draft.start.extend(nodes.into().0);
        self
    }

    /// Where a run begins, chosen from the input.
    pub fn start_branch<G: Into<Goto>>(
        self,
        choose: impl Fn(&S) -> G + Send + Sync + 'static,
        targets: impl Into<Names>,
    ) -> Self {
        self.branch(crate::START, choose, targets)
    }

    /// When `from` is done, `to` runs; several run in parallel. Two edges into one node are an *or*.
    pub fn edge(mut self, from: impl Into<Name>, to: impl Into<Names>) -> Self {
        self.draft.edges.push((from.into(), to.into().0));
        self
    }

    /// Each node leads to the next: `sequence(["a", "b", "c"])`.
    pub fn sequence(mut self, nodes: impl Into<Names>) -> Self {
        for pair in nodes.into().0.windows(2) {
            self.draft
                .edges
                .push((pair[0].clone(), vec![pair[1].clone()]));
        }
        self
    }

    /// When all of `from` are done, `to` runs once.
    pub fn join(mut self, from: impl Into<Names>, to: impl Into<Name>) -> Self {
        self.draft.joins.push((from.into().0, to.into()));
        self
    }

    /// When `from` is done, `choose` reads the state after the superstep and says where to go: a
    /// name, [`crate::END`], sends, or several of these.
    pub fn branch<G: Into<Goto>>(
        mut self,
        from: impl Into<Name>,
        choose: impl Fn(&S) -> G + Send + Sync + 'static,
        targets: impl Into<Names>,
    ) -> Self {
        let from = from.into();
        self.draft.branches.push((from.clone(), targets.into().0));
        self.branches
            .push((from, Box::new(move |s| choose(s).into())));
        self
    }

    /// Where the `Command`s of `from` may go.
    pub fn commands(mut self, from: impl Into<Name>, targets: impl Into<Names>) -> Self {
        self.draft.commands.push((from.into(), targets.into().0));
        self
    }

    /// What drawings write on an edge that is declared elsewhere, most usefully when a branch or a command takes it:
    /// `.label("model", END, "answers")`. [`crate::START`] and [`crate::END`] can be named; a run never reads it.
    pub fn label(
        mut self,
        from: impl Into<Name>,
        to: impl Into<Name>,
        words: impl Into<Name>,
    ) -> Self {
        let label = (from.into(), to.into(), words.into());
        self.draft.labels.push(label);
        self
    }

    /// These nodes lead nowhere further.
    pub fn end(mut self, nodes: impl Into<Names>) -> Self {
        self.draft.ends.extend(nodes.into().0);
        self
    }

    /// These nodes wait until nothing else is due.
    pub fn deferred(mut self, nodes: impl Into<Names>) -> Self {
        self.draft.deferred.extend(nodes.into().0);
        self
    }

    /// The updates of these nodes are not told to streams.
    pub fn hidden(mut self, nodes: impl Into<Names>) -> Self {
        self.draft.hidden.extend(nodes.into().0);
        self
    }

    /// How often, how long and with what fallback a node may run.
    pub fn policy(mut self, node: impl Into<Name>, policy: Policy) -> Self {
        let node = node.into();
        self.draft
            .policies
            .push((node.clone(), policy.on_error.clone()));
        self.policies.push((node, policy));
        self
    }

    /// The policy of every node that has none of its own. Handlers take its attempts and times, but
    /// neither its cache nor its handler. Subgraphs keep their own.
    pub fn policy_for_all(mut self, policy: Policy) -> Self {
        self.policy_for_all = policy;
        self
    }

    /// What of the state a cached node reads; without it, all of it.
    pub fn cache_key<K: Serialize>(
        mut self,
        node: impl Into<Name>,
        key: impl Fn(&S) -> K + Send + Sync + 'static,
    ) -> Self {
        let bytes = move |s: &S| serde_json::to_vec(&key(s)).map_err(Error::store);
        self.cache_keys.push((node.into(), Box::new(bytes)));
        self
    }

    /// Only these channels may be written by an input, from outside or from a parent graph.
    pub fn input(mut self, channels: impl Into<Names>) -> Self {
        self.input = Some(channels.into().0);
        self
    }

    /// Only these channels are shown to readers of JSON (values events, `AnyGraph`). Events of
    /// updates and tasks still hold all that a node wrote.
    pub fn output(mut self, channels: impl Into<Names>) -> Self {
        self.output = Some(channels.into().0);
        self
    }

    /// Runs take a context of this type, which `AnyGraph` reads from JSON.
    pub fn context<T>(mut self) -> Self
    where
        T: DeserializeOwned + schemars::JsonSchema + Send + Sync + 'static,
    {
        let read = |json| -> Result<Arc<dyn Any + Send + Sync>, serde_json::Error> {
            Ok(Arc::new(serde_json::from_value::<T>(json)?))
        };
        self.context = Some((schemars::schema_for!(T).into(), Arc::new(read)));
        self
    }

    /// The store of the graph's threads. Such a graph runs on a thread only.
    pub fn store(mut self, store: &Store) -> Self {
        self.store = Some(store.clone());
        self
    }

    /// Long-term memory for `ctx.memory()`, in subgraphs too that have none of their own.
    pub fn memory(mut self, memory: Arc<dyn Memory>) -> Self {
        self.memory = Some(memory);
        self
    }

    /// The time of day, for what is saved.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    /// [`Error::Build`] with every fault at once.
    pub fn build(mut self) -> Result<Graph<S>, Error> {
        let for_all = self.policy_for_all.on_error.clone();
        if let Some(handler) = &for_all {
            let named = |n: &Name| self.draft.policies.iter().any(|(node, _)| node == n);
            let rest: Vec<_> = self.draft.nodes.iter().map(|n| n.name.clone()).collect();
            let rest = rest.into_iter().filter(|n| !named(n) && n != handler);
            let rest: Vec<_> = rest.map(|n| (n, for_all.clone())).collect();
            self.draft.policies.extend(rest);
        }
        let mut faults = Vec::new();
        let input = self.channels("input", &self.input, &mut faults);
        let output = self.channels("output", &self.output, &mut faults);
        for (node, _) in &self.cache_keys {
            if !self.draft.nodes.iter().any(|n| n.name == *node) {
                faults.push(format!("a cache key names `{node}`, which is not a node"));
            }
        }
        let below = self.nodes.iter().filter_map(|n| n.inner());
        let levels = 1 + below.map(|inner| inner.levels()).max().unwrap_or(0);
        if levels > MAX_LEVELS {
            faults.push(format!(
                "its subgraphs are nested {levels} levels deep, more than {MAX_LEVELS}"
            ));
        }
        let topology = match Topology::check(&self.draft) {
            Ok(topology) if faults.is_empty() => topology,
            checked => {
                let all = checked.err().into_iter().flatten().chain(faults).collect();
                return Err(Error::Build {
                    graph: self.name,
                    faults: all,
                });
            }
        };
        Ok(self.finish(topology, levels, (input, output)))
    }

    fn channels(
        &self,
        what: &str,
        names: &Option<Vec<Name>>,
        faults: &mut Vec<String>,
    ) -> Option<Vec<usize>> {
        let find = |name: &Name| {
            let found = S::CHANNELS.iter().position(|c| *name == c.name);
            if found.is_none() {
                let known = S::CHANNELS.iter().map(|c| c.name);
                let hint = crate::topology::did_you_mean(name, known)
                    .map_or(String::new(), |n| format!(" (did you mean `{n}`?)"));
                faults.push(format!(
                    "the {what} names `{name}`, which is not a channel{hint}"
                ));
            }
            found
        };
        names
            .as_ref()
            .map(|all| all.iter().filter_map(find).collect())
    }

    fn finish(
        self,
        topology: Topology,
        levels: usize,
        (input, output): (Option<Vec<usize>>, Option<Vec<usize>>),
    ) -> Graph<S> {
        let count = self.nodes.len();
        let handlers: HashSet<usize> = topology.nodes.iter().filter_map(|n| n.handler).collect();
        let mut policies: Vec<Policy> = (0..count)
            .map(|i| match handlers.contains(&i) {
                false => self.policy_for_all.clone(),
                true => Policy {
                    cache: None,
                    on_error: None,
                    ..self.policy_for_all.clone()
                },
            })
            .collect();
        for (name, policy) in self.policies {
            if let Some(i) = topology.find(&name) {
                policies[i] = policy;
            }
        }
        let mut branches: Vec<Option<Branch<S>>> = (0..count).map(|_| None).collect();
        let mut start_branch = None;
        for (from, branch) in self.branches {
            match topology.find(&from) {
                Some(i) => branches[i] = Some(branch),
                None => start_branch = Some(branch),
            }
        }
        let mut cache_keys: Vec<Option<CacheKey<S>>> = (0..count).map(|_| None).collect();
        for (node, key) in self.cache_keys {
            if let Some(i) = topology.find(&node) {
                cache_keys[i] = Some(key);
            }
        }
        let is_ephemeral = |(i, c): (usize, &crate::Channel)| c.ephemeral.then_some(i);
        Graph(Arc::new(Shape {
            leaf: self.nodes.iter().map(|n| n.inner().is_none()).collect(),
            levels,
            hidden: self
                .draft
                .hidden
                .iter()
                .filter_map(|n| topology.find(n))
                .collect(),
            name: self.name,
            topology: Arc::new(topology),
            nodes: self.nodes,
            branches,
            start_branch,
            policies,
            cache_keys,
            cache: Mutex::default(),
            ephemeral: S::CHANNELS
                .iter()
                .enumerate()
                .filter_map(is_ephemeral)
                .collect(),
            input,
            output: output.map(Into::into),
            context: self.context,
            store: self.store,
            memory: self.memory,
            clock: self.clock,
        }))
    }
}
