//! Graphs without their state's type: JSON in and out by channel. What a server keeps by name.

use crate::{
    CheckpointId, Command, Drawing, Error, Graph, Mode, RunId, RunOptions, Snapshot, State, Stream,
    checkpoint::{Entry, HistoryQuery, Scope, Store},
    edit::{self, Spot, Write},
    graph::Shape,
    name::Name,
    node::Target,
    snapshot,
    start::{Ask, Start},
    subgraph::state_under,
};
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use std::{any::Any, sync::Arc};

/// What a run begins with, in JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyAsk {
    /// An object keyed by channel.
    Input(Value),
    /// An update (or null) and where to go: nodes, or nodes with a payload.
    Command {
        /// An object keyed by channel, or null.
        update: Value,
        /// Targets; none is like an input.
        goto: Vec<(String, Option<Value>)>,
    },
    /// Answers by interrupt.
    Answers(Vec<(String, Value)>),
    /// Nothing: go on.
    Resume,
}

/// A run to be, in JSON.
#[derive(Clone, Debug)]
pub struct Request {
    /// What it begins with.
    pub ask: AnyAsk,
    /// Written in the same atomic step, when resuming or answering.
    pub update: Option<Value>,
    /// The run's context, read as the type the graph was built with.
    pub context: Option<Value>,
    /// Where to begin, if not at the head.
    pub at: Option<CheckpointId>,
    /// See there.
    pub options: RunOptions,
    /// What to tell.
    pub modes: Vec<Mode>,
    /// Whether to tell of subgraphs too.
    pub subgraphs: bool,
    /// The run's id.
    pub run: RunId,
}

impl Request {
    /// A run that begins so, with defaults for the rest.
    #[must_use]
    pub fn new(ask: AnyAsk) -> Self {
        Request {
            ask,
            update: None,
            context: None,
            at: None,
            options: RunOptions::default(),
            modes: Vec::new(),
            subgraphs: false,
            run: RunId::fresh(),
        }
    }
}

/// A write to a thread between runs, in JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyWrite {
    /// To the state: an object keyed by channel. What is due or waiting stays so.
    State(Value),
    /// As if these nodes had run together: see [`crate::Thread::update_all`].
    As(Vec<AsNode>),
}

/// What one node is said to have returned.
#[derive(Clone, Debug, PartialEq)]
pub struct AsNode {
    /// The node, [`crate::START`] or [`crate::END`].
    pub node: String,
    /// An object keyed by channel, or null.
    pub update: Value,
    /// For a node with commands: where it goes, with payloads for `each` nodes.
    pub goto: Vec<(String, Option<Value>)>,
}

impl AsNode {
    /// A node that went on by its own edges.
    #[must_use]
    pub fn of(node: impl Into<String>, update: Value) -> Self {
        AsNode {
            node: node.into(),
            update,
            goto: Vec::new(),
        }
    }
}

/// A parent's state, without its type, under a subgraph that shares it.
pub(crate) type Base = Arc<dyn Any + Send + Sync>;

/// What a graph takes and gives, as JSON Schemas. Channels that have a default (all of them) are not
/// required.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Schemas {
    /// What an input may hold.
    pub input: Value,
    /// What readers are shown.
    pub output: Value,
    /// The whole state.
    pub state: Value,
    /// The run's context; null if it takes none.
    pub context: Value,
}

/// A graph without its state's type. Every [`Graph`] whose state also derives `JsonSchema` is one.
pub trait AnyGraph: Send + Sync + 'static {
    /// The graph's name.
    fn name(&self) -> &str;

    /// What it takes and gives.
    fn schemas(&self) -> Schemas;

    /// Nodes and edges, subgraphs inside their nodes.
    fn drawing(&self) -> Drawing;

    /// A run on a thread, or without a store.
    ///
    /// # Errors
    /// Those of reading the request: [`Error::UnknownChannel`], [`Error::BadChannel`],
    /// [`Error::NotAnObject`], [`Error::BadContext`]. Those of the run come from the stream.
    fn start(
        &self,
        place: Option<(&Store, &str)>,
        request: Request,
    ) -> Result<Stream<Value>, Error>;

    /// [`crate::Thread::snapshot`], of the graph (empty namespace) or a subgraph.
    fn snapshot<'a>(
        &'a self,
        store: &'a Store,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Snapshot<Value>>, Error>>;

    /// [`crate::Thread::history_of`].
    fn history<'a>(
        &'a self,
        store: &'a Store,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>>;

    /// Writes to the graph or a subgraph; on a new branch, where an older checkpoint is named.
    fn write<'a>(
        &'a self,
        store: &'a Store,
        scope: &'a Scope,
        at: Option<CheckpointId>,
        write: AnyWrite,
    ) -> BoxFuture<'a, Result<CheckpointId, Error>>;

    /// [`crate::Thread::fork`].
    fn fork<'a>(
        &'a self,
        store: &'a Store,
        thread: &'a str,
        at: CheckpointId,
    ) -> BoxFuture<'a, Result<CheckpointId, Error>>;

    /// The same graph as subgraphs are looked at.
    #[doc(hidden)]
    fn parts(&self) -> Arc<dyn AnyGraphParts>;
}

/// What can be asked of any graph, also of one inside another.
#[doc(hidden)]
pub trait AnyGraphParts: Send + Sync {
    fn drawing(&self) -> Drawing;
    /// How many levels it has, itself and its subgraphs.
    fn levels(&self) -> usize;
    fn has_path(&self, path: &str) -> bool;
    fn child(&self, node: &str) -> Option<Arc<dyn AnyGraphParts>>;
    /// The state under the subgraph of a task (`node:task`), if that shares it.
    fn base(
        self: Arc<Self>,
        store: Store,
        spot: Spot<Base>,
        level: String,
    ) -> BoxFuture<'static, Result<Option<Base>, Error>>;
    fn snapshot_json(
        self: Arc<Self>,
        store: Store,
        spot: Spot<Base>,
    ) -> BoxFuture<'static, Result<Option<Snapshot<Value>>, Error>>;
    fn write_json(
        self: Arc<Self>,
        store: Store,
        spot: Spot<Base>,
        write: AnyWrite,
    ) -> BoxFuture<'static, Result<CheckpointId, Error>>;
}

impl<S: State> AnyGraphParts for Shape<S> {
    fn drawing(&self) -> Drawing {
        Drawing::of(&self.name, &self.topology, &|i| self.nodes[i].inner())
    }

    fn levels(&self) -> usize {
        self.levels
    }

    fn has_path(&self, path: &str) -> bool {
        crate::graph::has_path(&self.topology, path, &|i| self.nodes[i].inner())
    }

    fn child(&self, node: &str) -> Option<Arc<dyn AnyGraphParts>> {
        self.nodes[self.topology.find(node)?].inner()
    }

    fn base(
        self: Arc<Self>,
        store: Store,
        spot: Spot<Base>,
        level: String,
    ) -> BoxFuture<'static, Result<Option<Base>, Error>> {
        Box::pin(async move {
            let (node, task) = level.split_once(':').unwrap_or((&level, ""));
            let node = self.topology.find(node);
            if !node.is_some_and(|i| self.nodes[i].shares()) {
                return Ok(None);
            }
            let state = state_under(&*self, &store, spot.typed(), task).await?;
            Ok(state.map(|state| state as Base))
        })
    }

    fn snapshot_json(
        self: Arc<Self>,
        store: Store,
        spot: Spot<Base>,
    ) -> BoxFuture<'static, Result<Option<Snapshot<Value>>, Error>> {
        Box::pin(async move {
            let snapshot = snapshot::read(&*self, &store, spot.typed()).await?;
            snapshot.map(|s| s.into_json(&self)).transpose()
        })
    }

    fn write_json(
        self: Arc<Self>,
        store: Store,
        spot: Spot<Base>,
        write: AnyWrite,
    ) -> BoxFuture<'static, Result<CheckpointId, Error>> {
        Box::pin(async move {
            let write = read_write::<S>(write)?;
            edit::write(&*self, &store, spot.typed(), write).await
        })
    }
}

fn read_write<S: State>(write: AnyWrite) -> Result<Write<S>, Error> {
    let of_node = |one: AsNode| {
        let update = update_or_none::<S>(one.update)?;
        let targets = one.goto.into_iter().map(target);
        let command = Command::update(update).and_goto_all(targets);
        Ok((Name::from(one.node), command))
    };
    Ok(match write {
        AnyWrite::State(update) => Write::State(update_or_none::<S>(update)?),
        AnyWrite::As(all) => Write::As(all.into_iter().map(of_node).collect::<Result<_, Error>>()?),
    })
}

fn update_or_none<S: State>(json: Value) -> Result<S::Update, Error> {
    match json {
        Value::Null => Ok(S::Update::default()),
        json => S::update_from_json(json),
    }
}

fn target((node, payload): (String, Option<Value>)) -> Target {
    Target {
        payload: payload.map(|p| {
            serde_json::value::to_raw_value(&p)
                .map(Arc::from)
                .map_err(|e| e.to_string())
        }),
        ..Name::from(node).into()
    }
}

/// The schema of some of the channels, none of them required.
fn schema_of(state: &Value, only: Option<Vec<&'static str>>) -> Value {
    let mut schema = state.clone();
    if let Some(map) = schema.as_object_mut() {
        map.remove("required");
        if let (Some(only), Some(properties)) = (
            only,
            map.get_mut("properties").and_then(Value::as_object_mut),
        ) {
            properties.retain(|channel, _| only.contains(&channel.as_str()));
        }
    }
    schema
}

impl<S: State> Graph<S> {
    fn bad_context(&self, why: String) -> Error {
        Error::BadContext {
            graph: self.0.name.clone(),
            why,
        }
    }
}

impl<S: State + schemars::JsonSchema> AnyGraph for Graph<S> {
    fn name(&self) -> &str {
        Graph::name(self)
    }

    fn schemas(&self) -> Schemas {
        let state: Value = schemars::schema_for!(S).into();
        let names = |indices: &[usize]| indices.iter().map(|&i| S::CHANNELS[i].name).collect();
        Schemas {
            input: schema_of(&state, self.0.input.as_deref().map(names)),
            output: schema_of(&state, self.0.output.as_deref().map(names)),
            context: self
                .0
                .context
                .as_ref()
                .map_or(json!(null), |(schema, _)| schema.clone()),
            state: schema_of(&state, None),
        }
    }

    fn drawing(&self) -> Drawing {
        Graph::drawing(self)
    }

    fn start(
        &self,
        place: Option<(&Store, &str)>,
        request: Request,
    ) -> Result<Stream<Value>, Error> {
        let ask = match request.ask {
            AnyAsk::Input(input) => Ask::Input(Command::update(S::update_from_json(input)?)),
            AnyAsk::Command { update, goto } => {
                let update = update_or_none::<S>(update)?;
                let targets = goto.into_iter().map(target);
                Ask::Command(Command::update(update).and_goto_all(targets))
            }
            AnyAsk::Answers(answers) => Ask::Answers(
                answers
                    .into_iter()
                    .map(|(id, answer)| (id, Ok(answer)))
                    .collect(),
            ),
            AnyAsk::Resume => Ask::Continue,
        };
        let context = match (&self.0.context, request.context) {
            (_, None) => None,
            (Some((_, read)), Some(json)) => {
                Some(read(json).map_err(|e| self.bad_context(e.to_string()))?)
            }
            (None, Some(_)) => return Err(self.bad_context("it takes none".to_owned())),
        };
        let place = place.map(|(store, name)| (store.clone(), name.to_owned()));
        let mut start = Start::new(self.clone(), place, ask)
            .options(request.options)
            .context_any(context)
            .run_id(request.run)
            .subgraphs(request.subgraphs);
        if let Some(at) = request.at {
            start = start.at(at);
        }
        if let Some(update) = request.update {
            start = start.with_update(S::update_from_json(update)?);
        }
        let output = self.0.output.clone();
        let json = move |state: S| crate::event::project(&state, output.as_deref());
        Ok(start.stream(&request.modes).map(json))
    }

    fn snapshot<'a>(
        &'a self,
        store: &'a Store,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Snapshot<Value>>, Error>> {
        Box::pin(async move {
            let thread = self.thread(store, &*scope.thread);
            match &*scope.namespace {
                "" => thread
                    .snapshot(at)
                    .await?
                    .map(|s| s.into_json(&self.0))
                    .transpose(),
                namespace => thread.subgraph(namespace, at).await,
            }
        })
    }

    fn history<'a>(
        &'a self,
        store: &'a Store,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>> {
        store.history(scope, query)
    }

    fn write<'a>(
        &'a self,
        store: &'a Store,
        scope: &'a Scope,
        at: Option<CheckpointId>,
        write: AnyWrite,
    ) -> BoxFuture<'a, Result<CheckpointId, Error>> {
        Box::pin(async move {
            let thread = self.thread(store, &*scope.thread);
            let (inner, spot) = match &*scope.namespace {
                "" => (
                    self.parts(),
                    Spot {
                        scope: scope.clone(),
                        at,
                        base: None,
                    },
                ),
                namespace => thread.inside(namespace, at).await?,
            };
            inner.write_json(store.clone(), spot, write).await
        })
    }

    fn fork<'a>(
        &'a self,
        store: &'a Store,
        thread: &'a str,
        at: CheckpointId,
    ) -> BoxFuture<'a, Result<CheckpointId, Error>> {
        Box::pin(async move { self.thread(store, thread).fork(at).await })
    }

    fn parts(&self) -> Arc<dyn AnyGraphParts> {
        self.0.clone()
    }
}
