//! A checked graph, and what it can do.

use crate::{
    Builder, Command, Drawing, Error, Name, Policy, RunOptions, Start, State, Thread,
    attempt::Assignment,
    cache::Cache,
    checkpoint::Store,
    clock::Clock,
    memory::Memory,
    node::{Each, Goto, Node},
    start::Ask,
    topology::Topology,
};
use serde_json::Value;
use std::{
    any::Any,
    sync::{Arc, Mutex},
};

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

pub(crate) type Branch<S> = Box<dyn Fn(&S) -> Goto + Send + Sync>;
/// What a node reads, as bytes to be hashed.
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
    /// How many levels there are: this graph and the subgraphs below it.
    pub(crate) levels: usize,
    /// Nodes whose updates are not told.
    pub(crate) hidden: Vec<usize>,
    pub(crate) branches: Vec<Option<Branch<S>>>,
    pub(crate) start_branch: Option<Branch<S>>,
    pub(crate) policies: Vec<Policy>,
    pub(crate) cache_keys: Vec<Option<CacheKey<S>>>,
    pub(crate) cache: Mutex<Cache<Command<S>>>,
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
        Some((key, hit))
    }

    pub(crate) fn remember(&self, key: crate::cache::Key, command: &Command<S>) {
        // A persistent subgraph's result says where that subgraph stands: it is no value to reuse.
        if command.child.is_none() {
            crate::session::lock(&self.cache).put(key, command.clone());
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
    pub fn new(name: impl Into<Name>) -> Builder<S> {
        Builder::named(name.into())
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
