//! Graphs without their state's type: JSON in and out by channel. What a server keeps by name.

use crate::{
    CheckpointId, Command, Drawing, Error, Graph, Mode, RunId, RunOptions, Snapshot, State, Stream,
    checkpoint::{Entry, HistoryQuery, Scope, Store},
    graph::Shape,
    name::Name,
    node::Target,
    snapshot,
    start::{Ask, Start},
    thread::update_scope,
};
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

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
    /// [`Error::NotAnObject`]. Those of the run come from the stream.
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

    /// [`crate::Thread::update`], or `update_as` with a node; of the graph or a subgraph.
    fn update<'a>(
        &'a self,
        store: &'a Store,
        scope: &'a Scope,
        update: Value,
        as_node: Option<String>,
    ) -> BoxFuture<'a, Result<CheckpointId, Error>>;

    /// [`crate::Thread::fork`].
    fn fork<'a>(
        &'a self,
        store: &'a Store,
        thread: &'a str,
        at: CheckpointId,
    ) -> BoxFuture<'a, Result<CheckpointId, Error>>;

    /// The subgraph that a node is.
    #[doc(hidden)]
    fn parts(&self) -> Arc<dyn AnyGraphParts>;
}

/// What can be asked of any graph, also of one inside another.
#[doc(hidden)]
pub trait AnyGraphParts: Send + Sync {
    fn drawing(&self) -> Drawing;
    fn has_path(&self, path: &str) -> bool;
    fn child(&self, node: &str) -> Option<Arc<dyn AnyGraphParts>>;
    fn snapshot_json(
        self: Arc<Self>,
        store: Store,
        scope: Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'static, Result<Option<Snapshot<Value>>, Error>>;
    fn update_json(
        self: Arc<Self>,
        store: Store,
        scope: Scope,
        update: Value,
        as_node: Option<String>,
    ) -> BoxFuture<'static, Result<CheckpointId, Error>>;
}

impl<S: State> AnyGraphParts for Shape<S> {
    fn drawing(&self) -> Drawing {
        Drawing::of(&self.name, &self.topology, &|i| self.nodes[i].inner())
    }

    fn has_path(&self, path: &str) -> bool {
        crate::graph::has_path(&self.topology, path, &|i| self.nodes[i].inner())
    }

    fn child(&self, node: &str) -> Option<Arc<dyn AnyGraphParts>> {
        self.nodes[self.topology.find(node)?].inner()
    }

    fn snapshot_json(
        self: Arc<Self>,
        store: Store,
        scope: Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'static, Result<Option<Snapshot<Value>>, Error>> {
        Box::pin(async move {
            let snapshot = snapshot::read(&*self, &store, scope, at).await?;
            snapshot.map(|s| s.into_json(&self)).transpose()
        })
    }

    fn update_json(
        self: Arc<Self>,
        store: Store,
        scope: Scope,
        update: Value,
        as_node: Option<String>,
    ) -> BoxFuture<'static, Result<CheckpointId, Error>> {
        Box::pin(async move {
            let command = Command::update(update_or_none::<S>(update)?);
            update_scope(&*self, &store, scope, command, as_node.map(Name::from)).await
        })
    }
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
            (Some((_, read)), Some(json)) => {
                Some(read(json).map_err(|e| crate::state::channel::bad("context", e))?)
            }
            _ => None,
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

    fn update<'a>(
        &'a self,
        store: &'a Store,
        scope: &'a Scope,
        update: Value,
        as_node: Option<String>,
    ) -> BoxFuture<'a, Result<CheckpointId, Error>> {
        Box::pin(async move {
            let thread = self.thread(store, &*scope.thread);
            if !scope.namespace.is_empty() {
                return thread
                    .update_subgraph(&scope.namespace, update, as_node)
                    .await;
            }
            let update = update_or_none::<S>(update)?;
            match as_node {
                None => thread.update(update).await,
                Some(node) => thread.update_as(node, update).await,
            }
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
