//! What a node is: from outside an async function over a borrowed state, from inside one boxed call.
//!
//! Users meet [`Command`], [`Each`], [`Target`] and [`with`]; the rest turns their functions into the
//! one erased form that the driver calls.

use crate::{Ctx, Name, NodeError, State};
use futures::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::{any::TypeId, future::Future, marker::PhantomData, sync::Arc};

/// The end of a path, as a target.
pub const END: &str = "__end__";
/// The name under which input is written, for `update_as`.
pub const START: &str = "__start__";

/// The update type of a state.
pub type Update<S> = <S as State>::Update;

/// An update and, for nodes declared with `commands`, where to go next.
#[derive(Clone)]
pub struct Command<S: State> {
    pub(crate) update: S::Update,
    pub(crate) goto: Vec<Target>,
    /// Where a persistent subgraph stands now: its namespace and checkpoint.
    pub(crate) child: Option<(String, crate::CheckpointId)>,
}

impl<S: State> Command<S> {
    /// Writes and, unless a target is added, goes nowhere.
    #[must_use]
    pub fn update(update: S::Update) -> Self {
        Command {
            update,
            goto: Vec::new(),
            child: None,
        }
    }

    /// Goes to one place and writes nothing.
    #[must_use]
    pub fn goto(target: impl Into<Target>) -> Self {
        Self::update(S::Update::default()).and_goto(target)
    }

    /// Adds a target; several run in parallel.
    #[must_use]
    pub fn and_goto(mut self, target: impl Into<Target>) -> Self {
        self.goto.push(target.into());
        self
    }

    /// Adds several targets at once, as `Each::send_all` makes them.
    #[must_use]
    pub fn and_goto_all(mut self, targets: impl IntoIterator<Item = Target>) -> Self {
        self.goto.extend(targets);
        self
    }
}

/// One place to go: a node, [`END`], or an [`Each`] node with a payload.
#[derive(Clone, Debug)]
pub struct Target {
    pub(crate) node: Name,
    /// JSON text, or why the payload could not be written as JSON.
    pub(crate) payload: Option<Result<Payload, String>>,
    /// A time limit for this one send, in place of the node's.
    pub(crate) timeout: Option<std::time::Duration>,
}

/// A send's payload as JSON text, shared between its target, its task and the store.
pub(crate) type Payload = Arc<RawValue>;

impl Target {
    /// Gives this send its own time limit per attempt, in place of the node's policy.
    #[must_use]
    pub fn timeout(mut self, limit: std::time::Duration) -> Self {
        self.timeout = Some(limit);
        self
    }
}

impl From<&'static str> for Target {
    fn from(node: &'static str) -> Self {
        Name::from(node).into()
    }
}

impl From<Name> for Target {
    fn from(node: Name) -> Self {
        Target {
            node,
            payload: None,
            timeout: None,
        }
    }
}

/// What a branch function returns: one target or several.
pub struct Goto(pub(crate) Vec<Target>);

impl<T: Into<Target>> From<T> for Goto {
    fn from(target: T) -> Self {
        Goto(vec![target.into()])
    }
}

impl<T: Into<Target>> From<Vec<T>> for Goto {
    fn from(targets: Vec<T>) -> Self {
        Goto(targets.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Target>, const N: usize> From<[T; N]> for Goto {
    fn from(targets: [T; N]) -> Self {
        Goto(targets.into_iter().map(Into::into).collect())
    }
}

/// The typed address of a node that runs once per payload.
///
/// ```
/// use paraph_graph::Each;
/// const SUMMARISE: Each<String> = Each::new("summarise");
/// let targets = SUMMARISE.send_all(["a".to_owned(), "b".to_owned()]);
/// assert_eq!(targets.len(), 2);
/// ```
pub struct Each<P>(&'static str, PhantomData<fn(P)>);

impl<P> Clone for Each<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Each<P> {}

impl<P: Serialize + DeserializeOwned + Send + 'static> Each<P> {
    /// The address of the node called `name`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Each(name, PhantomData)
    }

    /// The node's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// One task with this payload, in the next superstep.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the payload is handed over; borrowing it would tie the caller's hands later"
    )]
    pub fn send(self, payload: P) -> Target {
        let json = serde_json::value::to_raw_value(&payload);
        Target {
            payload: Some(json.map(Arc::from).map_err(|e| e.to_string())),
            ..Name::from(self.0).into()
        }
    }

    /// One task per payload; their results keep this order.
    pub fn send_all(self, payloads: impl IntoIterator<Item = P>) -> Vec<Target> {
        payloads.into_iter().map(|p| self.send(p)).collect()
    }
}

impl<P> From<Each<P>> for Name {
    fn from(each: Each<P>) -> Name {
        Name::fixed(each.0)
    }
}

/// One call of a node.
pub struct Call<'a, S> {
    pub(crate) state: &'a S,
    pub(crate) ctx: &'a Ctx,
    pub(crate) payload: Option<&'a RawValue>,
}

impl<S> Call<'_, S> {
    pub(crate) fn payload<P: DeserializeOwned>(&self) -> Result<P, NodeError> {
        let text = self.payload.map_or("null", RawValue::get);
        serde_json::from_str(text)
            .map_err(|e| NodeError::msg(format!("the payload does not fit: {e}")))
    }
}

/// The future of one call.
pub type Reply<'a, S> = BoxFuture<'a, Result<Command<S>, NodeError>>;

/// The one erased form of every node.
pub trait Node<S: State>: Send + Sync + 'static {
    /// Runs the node once.
    fn call<'a>(&'a self, call: Call<'a, S>) -> Reply<'a, S>;

    /// The graph inside, if this node is one: such a node winds down by itself and takes no permit.
    #[doc(hidden)]
    fn inner(&self) -> Option<Arc<dyn crate::any::AnyGraphParts>> {
        None
    }

    /// Whether the graph inside runs over its parent's state.
    #[doc(hidden)]
    fn shares(&self) -> bool {
        false
    }
}

/// A graph as a node, seen without its state's type.
pub(crate) type Inner = Arc<dyn crate::any::AnyGraphParts>;

/// `async fn(&S, &Ctx) -> Result<Update<S>>`, or with a `Command<S>`.
pub trait NodeFn<'a, S: State>: Send + Sync + 'static {
    /// What it returns when all went well.
    type Out: Into<Command<S>> + 'static;
    /// Calls it.
    fn call_fn(&'a self, state: &'a S, ctx: &'a Ctx) -> Reply<'a, S>;
}

impl<'a, S: State, F, Fut, Out> NodeFn<'a, S> for F
where
    F: Fn(&'a S, &'a Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, NodeError>> + Send + 'a,
    Out: Into<Command<S>> + 'static,
{
    type Out = Out;
    fn call_fn(&'a self, state: &'a S, ctx: &'a Ctx) -> Reply<'a, S> {
        let future = self(state, ctx);
        Box::pin(async move { future.await.map(Into::into) })
    }
}

/// `async fn(P, &S, &Ctx) -> …`, run once per send.
pub trait EachFn<'a, P, S: State>: Send + Sync + 'static {
    /// What it returns when all went well.
    type Out: Into<Command<S>> + 'static;
    /// Calls it.
    fn call_fn(&'a self, payload: P, state: &'a S, ctx: &'a Ctx) -> Reply<'a, S>;
}

impl<'a, P, S: State, F, Fut, Out> EachFn<'a, P, S> for F
where
    F: Fn(P, &'a S, &'a Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, NodeError>> + Send + 'a,
    Out: Into<Command<S>> + 'static,
{
    type Out = Out;
    fn call_fn(&'a self, payload: P, state: &'a S, ctx: &'a Ctx) -> Reply<'a, S> {
        let future = self(payload, state, ctx);
        Box::pin(async move { future.await.map(Into::into) })
    }
}

/// What `Builder::node` takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a node of a graph over `{S}`",
    note = "a node is `async fn(&{S}, &Ctx) -> Result<Update<{S}>>` (or `Result<Command<{S}>>`); write closures as `async |state: &{S}, ctx: &Ctx| …`"
)]
pub trait IntoNode<S: State, Marker> {
    /// Whether it returns a `Command`, and so needs declared targets.
    fn commands(&self) -> bool;
    /// The erased node.
    fn into_node(self) -> Arc<dyn Node<S>>;
}

/// What `Builder::each` takes: as [`IntoNode`], with a payload first.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an `each` node of a graph over `{S}` with payload `{P}`",
    note = "it is `async fn({P}, &{S}, &Ctx) -> Result<Update<{S}>>` (or `Result<Command<{S}>>`)"
)]
pub trait IntoEach<P, S: State, Marker> {
    /// Whether it returns a `Command`, and so needs declared targets.
    fn commands(&self) -> bool;
    /// The erased node.
    fn into_node(self) -> Arc<dyn Node<S>>;
}

/// Marks the implementations for functions.
pub struct Function;

struct FnNode<F>(F);

impl<S: State, F: for<'a> NodeFn<'a, S>> Node<S> for FnNode<F> {
    fn call<'a>(&'a self, call: Call<'a, S>) -> Reply<'a, S> {
        self.0.call_fn(call.state, call.ctx)
    }
}

impl<S: State, F: for<'a> NodeFn<'a, S>> IntoNode<S, Function> for F {
    fn commands(&self) -> bool {
        TypeId::of::<<F as NodeFn<'static, S>>::Out>() == TypeId::of::<Command<S>>()
    }
    fn into_node(self) -> Arc<dyn Node<S>> {
        Arc::new(FnNode(self))
    }
}

struct EachNode<P, F>(F, PhantomData<fn(P)>);

impl<P, S, F> Node<S> for EachNode<P, F>
where
    P: DeserializeOwned + Send + 'static,
    S: State,
    F: for<'a> EachFn<'a, P, S>,
{
    fn call<'a>(&'a self, call: Call<'a, S>) -> Reply<'a, S> {
        match call.payload() {
            Ok(payload) => self.0.call_fn(payload, call.state, call.ctx),
            Err(e) => Box::pin(std::future::ready(Err(e))),
        }
    }
}

impl<P, S, F> IntoEach<P, S, Function> for F
where
    P: DeserializeOwned + Send + 'static,
    S: State,
    F: for<'a> EachFn<'a, P, S>,
{
    fn commands(&self) -> bool {
        TypeId::of::<<F as EachFn<'static, P, S>>::Out>() == TypeId::of::<Command<S>>()
    }
    fn into_node(self) -> Arc<dyn Node<S>> {
        Arc::new(EachNode(self, PhantomData))
    }
}

/// A node with a model, a client or a setting: the function gets it first.
///
/// A closure that captures cannot be a node, since its future would borrow from the closure; this
/// is the way to give a node something of its own. A method is a function whose first argument is
/// `self`: `with(agent, Agent::think)`.
pub fn with<D: Send + Sync + 'static, F>(dependency: D, function: F) -> With<D, F> {
    With(dependency, function)
}

/// From [`with`].
pub struct With<D, F>(D, F);

/// Marks the implementations for [`With`].
pub struct Dependent;

/// `async fn(&D, &S, &Ctx) -> …`.
pub trait WithFn<'a, D, S: State>: Send + Sync + 'static {
    /// What it returns when all went well.
    type Out: Into<Command<S>> + 'static;
    /// Calls it.
    fn call_fn(&'a self, dependency: &'a D, state: &'a S, ctx: &'a Ctx) -> Reply<'a, S>;
}

impl<'a, D: 'a, S: State, F, Fut, Out> WithFn<'a, D, S> for F
where
    F: Fn(&'a D, &'a S, &'a Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, NodeError>> + Send + 'a,
    Out: Into<Command<S>> + 'static,
{
    type Out = Out;
    fn call_fn(&'a self, dependency: &'a D, state: &'a S, ctx: &'a Ctx) -> Reply<'a, S> {
        let future = self(dependency, state, ctx);
        Box::pin(async move { future.await.map(Into::into) })
    }
}

impl<D, S, F> Node<S> for With<D, F>
where
    D: Send + Sync + 'static,
    S: State,
    F: for<'a> WithFn<'a, D, S>,
{
    fn call<'a>(&'a self, call: Call<'a, S>) -> Reply<'a, S> {
        self.1.call_fn(&self.0, call.state, call.ctx)
    }
}

impl<D, S, F> IntoNode<S, Dependent> for With<D, F>
where
    D: Send + Sync + 'static,
    S: State,
    F: for<'a> WithFn<'a, D, S>,
{
    fn commands(&self) -> bool {
        TypeId::of::<<F as WithFn<'static, D, S>>::Out>() == TypeId::of::<Command<S>>()
    }
    fn into_node(self) -> Arc<dyn Node<S>> {
        Arc::new(self)
    }
}

/// `async fn(&D, P, &S, &Ctx) -> …`, run once per send.
pub trait WithEachFn<'a, D, P, S: State>: Send + Sync + 'static {
    /// What it returns when all went well.
    type Out: Into<Command<S>> + 'static;
    /// Calls it.
    fn call_fn(&'a self, dependency: &'a D, payload: P, state: &'a S, ctx: &'a Ctx)
    -> Reply<'a, S>;
}

impl<'a, D: 'a, P, S: State, F, Fut, Out> WithEachFn<'a, D, P, S> for F
where
    F: Fn(&'a D, P, &'a S, &'a Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, NodeError>> + Send + 'a,
    Out: Into<Command<S>> + 'static,
{
    type Out = Out;
    fn call_fn(
        &'a self,
        dependency: &'a D,
        payload: P,
        state: &'a S,
        ctx: &'a Ctx,
    ) -> Reply<'a, S> {
        let future = self(dependency, payload, state, ctx);
        Box::pin(async move { future.await.map(Into::into) })
    }
}

struct WithEach<D, P, F>(With<D, F>, PhantomData<fn(P)>);

impl<D, P, S, F> Node<S> for WithEach<D, P, F>
where
    D: Send + Sync + 'static,
    P: DeserializeOwned + Send + 'static,
    S: State,
    F: for<'a> WithEachFn<'a, D, P, S>,
{
    fn call<'a>(&'a self, call: Call<'a, S>) -> Reply<'a, S> {
        let With(dependency, function) = &self.0;
        match call.payload() {
            Ok(payload) => function.call_fn(dependency, payload, call.state, call.ctx),
            Err(e) => Box::pin(std::future::ready(Err(e))),
        }
    }
}

impl<D, P, S, F> IntoEach<P, S, Dependent> for With<D, F>
where
    D: Send + Sync + 'static,
    P: DeserializeOwned + Send + 'static,
    S: State,
    F: for<'a> WithEachFn<'a, D, P, S>,
{
    fn commands(&self) -> bool {
        TypeId::of::<<F as WithEachFn<'static, D, P, S>>::Out>() == TypeId::of::<Command<S>>()
    }
    fn into_node(self) -> Arc<dyn Node<S>> {
        Arc::new(WithEach(self, PhantomData))
    }
}
