//! Building a graph, and what a built one can do.

use crate::{
    Command, Drawing, Error, Policy, RunOptions, Start, State, Thread,
    attempt::Assignment,
    cache::Cache,
    checkpoint::Store,
    clock::{Clock, SystemClock},
    memory::Memory,
    node::{Each, Goto, IntoEach, IntoNode, Node},
    start::Ask,
    topology::{Draft, DraftNode, Topology},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    any::Any,
    borrow::Cow,
    sync::{Arc, Mutex},
};

/// A node's or a graph's name.
pub type Name = Cow<'static, str>;

/// One name or several.
pub struct Names(pub(crate) Vec<Name>);

impl From<&'static str> for Names {
    fn from(name: &'static str) -> Self {
        Names(vec![name.into()])
    }
}

impl From<Name> for Names {
    fn from(name: Name) -> Self {
        Names(vec![name])
    }
}

impl<P> From<Each<P>> for Names {
    fn from(each: Each<P>) -> Self {
        Names(vec![each.into()])
    }
}

impl<T: Into<Name>, const N: usize> From<[T; N]> for Names {
    fn from(names: [T; N]) -> Self {
        Names(names.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Name>> From<Vec<T>> for Names {
    fn from(names: Vec<T>) -> Self {
        Names(names.into_iter().map(Into::into).collect())
    }
}

type Branch<S> = Box<dyn Fn(&S) -> Goto + Send + Sync>;
/// A hash of what a node reads.
pub(crate) type CacheKey<S> = Box<dyn Fn(&S) -> Result<Vec<u8>, Error> + Send + Sync>;
/// Reads a run's context from JSON.
pub(crate) type ReadContext =
    Arc<dyn Fn(Value) -> Result<Arc<dyn Any + Send + Sync>, serde_json::Error> + Send + Sync>;

/// A checked graph.
pub(crate) struct Shape<S: State> {
    pub(crate) name: Name,
    pub(crate) topology: Arc<Topology>,
    pub(crate) nodes: Vec<Arc<dyn Node<S>>>,
    /// Whether a node is no subgraph.
    pub(crate) leaf: Vec<bool>,
    /// Nodes whose updates are not told.
    pub(crate) hidden: Vec<usize>,
    pub(crate) branches: Vec<Option<Branch<S>>>,
    pub(crate) start_branch: Option<Branch<S>>,
    pub(crate) policies: Vec<Policy>,
    pub(crate) cache_keys: Vec<Option<CacheKey<S>>>,
    pub(crate) cache: Mutex<Cache>,
    /// Channels cleared in each superstep that does not write them.
    pub(crate) ephemeral: Vec<usize>,
    /// Channels that an input may write; all, if none are named.
    pub(crate) input: Option<Vec<usize>>,
    /// Channels that readers see; all, if none are named.
    pub(crate) output: Option<Arc<[usize]>>,
    pub(crate) context: Option<(Value, ReadContext)>,
    pub(crate) store: Option<Store>,
    pub(crate) memory: Option<Arc<dyn Memory>>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl<S: State> Shape<S> {
    /// The key under which a task's result is cached, and the result if it is there.
    pub(crate) fn cached(
        &self,
        task: &Assignment,
        state: &S,
    ) -> Option<(crate::cache::Key, Option<Command<S>>)> {
        let ttl = self.policies[task.node].cache?;
        let read = match &self.cache_keys[task.node] {
            Some(key) => key(state),
            None => state
                .to_json()
                .and_then(|v| serde_json::to_vec(&v).map_err(Error::store)),
        };
        // What cannot be written as JSON cannot be recognised; the node then simply runs.
        let payload = task.payload.as_ref().map_or("", |p| p.get());
        let key = crate::cache::Key::of(task.node, &read.ok()?, payload);
        let hit = crate::session::lock(&self.cache).get(&key, ttl);
        Some((
            key,
            hit.and_then(|json| crate::wire::read_command(&json).ok()),
        ))
    }

    pub(crate) fn remember(&self, key: crate::cache::Key, command: &Command<S>) {
        // A persistent subgraph's result says where that subgraph stands: it is no value to reuse.
        if command.child.is_none()
            && let Ok(json) = crate::wire::write_command(command)
        {
            crate::session::lock(&self.cache).put(key, json);
        }
    }
}

/// A checked graph. Cheap to clone; holds no run.
pub struct Graph<S: State>(pub(crate) Arc<Shape<S>>);

impl<S: State> Clone for Graph<S> {
    fn clone(&self) -> Self {
        Graph(self.0.clone())
    }
}

impl<S: State> Graph<S> {
    /// Begins a graph over the state `S`.
    #[expect(clippy::new_ret_no_self, reason = "a graph begins as its builder")]
    #[must_use]
    pub fn new(name: impl Into<Name>) -> Builder<S> {
        Builder {
            name: name.into(),
            draft: Draft::default(),
            nodes: Vec::new(),
            branches: Vec::new(),
            policies: Vec::new(),
            policy_for_all: Policy::default(),
            cache_keys: Vec::new(),
            hidden: Vec::new(),
            input: None,
            output: None,
            context: None,
            store: None,
            memory: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// The graph's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Runs without a store, from an empty state, and returns the final one. A node that asks a
    /// question fails the run.
    ///
    /// # Errors
    /// Whatever ends the run: see [`Error`].
    pub async fn invoke(&self, input: S::Update) -> Result<S, Error> {
        self.run(input).await?.done()
    }

    /// The same, from code without a runtime.
    ///
    /// # Errors
    /// [`Error::BlockingInAsync`], and those of [`Graph::invoke`].
    pub fn invoke_blocking(&self, input: S::Update) -> Result<S, Error> {
        self.run(input).blocking()?.done()
    }

    /// A run without a store: set it up, then `.await` it or `.stream(…)` it.
    pub fn run(&self, input: S::Update) -> Start<S> {
        Start::new(self.clone(), None, Ask::Input(Command::update(input)))
    }

    /// A conversation or case on `store`. The name has 1 to 200 characters.
    pub fn thread(&self, store: &Store, name: impl Into<String>) -> Thread<S> {
        Thread {
            graph: self.clone(),
            store: store.clone(),
            name: name.into(),
        }
    }

    /// A thread on the store that the graph was built with.
    ///
    /// # Errors
    /// [`Error::NoThread`] if it was built without one.
    pub fn open(&self, name: impl Into<String>) -> Result<Thread<S>, Error> {
        let store = self
            .0
            .store
            .as_ref()
            .ok_or_else(|| Error::NoThread(self.0.name.clone()))?;
        Ok(self.thread(store, name))
    }

    /// Nodes and edges as data.
    #[must_use]
    pub fn drawing(&self) -> Drawing {
        crate::any::AnyGraphParts::drawing(&*self.0)
    }

    /// The graph as Mermaid text.
    #[must_use]
    pub fn mermaid(&self) -> String {
        self.drawing().mermaid(false)
    }

    /// The graph in Graphviz' DOT language.
    #[must_use]
    pub fn dot(&self) -> String {
        self.drawing().dot(false)
    }

    /// Forgets the cached results of these nodes (all, if none are named).
    pub fn clear_cache(&self, nodes: &[&str]) {
        let wanted: Vec<_> = nodes
            .iter()
            .filter_map(|n| self.0.topology.find(n))
            .collect();
        crate::session::lock(&self.0.cache).clear((!nodes.is_empty()).then_some(&wanted));
    }
}

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
    hidden: Vec<Name>,
    input: Option<Vec<Name>>,
    output: Option<Vec<Name>>,
    context: Option<(Value, ReadContext)>,
    store: Option<Store>,
    memory: Option<Arc<dyn Memory>>,
    clock: Arc<dyn Clock>,
}

impl<S: State> Builder<S> {
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
        self.hidden.extend(nodes.into().0);
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

    /// Only these channels may be written by an input.
    pub fn input(mut self, channels: impl Into<Names>) -> Self {
        self.input = Some(channels.into().0);
        self
    }

    /// Only these channels are shown to readers of JSON (values events, `AnyGraph`).
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

    /// Long-term memory for `ctx.memory()`.
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
        Ok(self.finish(topology, input, output))
    }

    fn channels(
        &self,
        what: &str,
        names: &Option<Vec<Name>>,
        faults: &mut Vec<String>,
    ) -> Option<Vec<usize>> {
        let find = |name: &Name| {
            let found = S::CHANNELS.iter().position(|c| c.name == name);
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
        input: Option<Vec<usize>>,
        output: Option<Vec<usize>>,
    ) -> Graph<S> {
        let count = self.nodes.len();
        let is_handler = |i: usize| topology.nodes.iter().any(|n| n.handler == Some(i));
        let mut policies: Vec<Policy> = (0..count)
            .map(|i| match is_handler(i) {
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
            hidden: self
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

impl<S: State> Shape<S> {
    /// Whether an update may be an input.
    pub(crate) fn check_input(&self, update: &S::Update) -> Result<(), Error> {
        let Some(input) = &self.input else {
            return Ok(());
        };
        let name = |i: usize| S::CHANNELS[i].name;
        match S::writes(update).into_iter().find(|i| !input.contains(i)) {
            None => Ok(()),
            Some(channel) => Err(Error::NotAnInput {
                graph: self.name.clone(),
                channel: name(channel),
                input: input
                    .iter()
                    .map(|&i| name(i))
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    /// Whether the options name nodes that there are, here or in a subgraph.
    pub(crate) fn check_options(&self, options: &RunOptions) -> Result<(), Error> {
        let named = options.pause_before.iter().chain(&options.pause_after);
        for path in named.filter(|path| *path != "*") {
            if !has_path(&self.topology, path, &|i| self.nodes[i].inner()) {
                return Err(Error::UnknownNode {
                    graph: self.name.clone(),
                    node: path.to_string(),
                });
            }
        }
        Ok(())
    }
}

/// Whether `path` (names with `|` between them) leads to a node.
pub(crate) fn has_path(
    topology: &Topology,
    path: &str,
    inner: &dyn Fn(usize) -> Option<crate::node::Inner>,
) -> bool {
    let (first, rest) = path
        .split_once('|')
        .map_or((path, None), |(f, r)| (f, Some(r)));
    let Some(node) = topology.find(first) else {
        return false;
    };
    match (rest, inner(node)) {
        (None, _) => true,
        (Some(rest), Some(inner)) => inner.has_path(rest),
        (Some(_), None) => false,
    }
}
