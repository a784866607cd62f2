//! Nodes, and what they say besides their update: where a run goes on.
//!
//! The driver knows one form of node, the trait [`Node`]. Functions take that form in `function.rs`,
//! graphs in `subgraph.rs`. Nothing in here runs anything.

mod function;

use crate::{Ctx, Name, NodeError, State};
use futures::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::{marker::PhantomData, sync::Arc, time::Duration};

pub use function::{NodeFn, With, with};

/// The end of a path, as a target.
pub const END: &str = "__end__";
/// The name under which input is written, for `update_as`.
pub const START: &str = "__start__";

/// What nodes over `S` return: the type that `#[derive(State)]` makes beside it.
pub type Update<S> = <S as State>::Update;

/// What a node returns that chooses its own way: an update, and where it goes on. Where it may go is
/// declared with [`crate::Builder::commands`].
#[derive(Clone)]
pub struct Command<S: State> {
    pub(crate) update: S::Update,
    pub(crate) goto: Vec<Target>,
    /// Where a persistent subgraph stands now: its namespace and checkpoint.
    pub(crate) child: Option<(String, crate::CheckpointId)>,
}

impl<S: State> Command<S> {
    /// Only writes; targets are added to it.
    #[must_use]
    pub fn update(update: S::Update) -> Self {
        Command {
            update,
            goto: Vec::new(),
            child: None,
        }
    }

    /// Only goes on, to this target.
    #[must_use]
    pub fn goto(target: impl Into<Target>) -> Self {
        Self::update(S::Update::default()).and_goto(target)
    }

    /// Goes to this target as well, at the same time as to the others.
    #[must_use]
    pub fn and_goto(self, target: impl Into<Target>) -> Self {
        self.and_goto_all([target.into()])
    }

    /// Goes to all of these as well, such as [`Each::send_all`] makes.
    #[must_use]
    pub fn and_goto_all(mut self, targets: impl IntoIterator<Item = Target>) -> Self {
        self.goto.extend(targets);
        self
    }
}

/// Where a branch or a command leads: to a node by its name, to [`END`], or to an [`Each`] node with
/// the payload that it gets.
#[derive(Clone, Debug)]
pub struct Target {
    pub(crate) node: Name,
    /// JSON text, or why the payload could not be written as JSON.
    pub(crate) payload: Option<Result<Payload, String>>,
    /// A time limit for this one send, in place of the node's.
    pub(crate) timeout: Option<Duration>,
}

/// A send's payload as JSON text, shared between its target, its task and the store.
pub(crate) type Payload = Arc<RawValue>;

impl Target {
    /// Gives this send its own time limit per attempt, in place of the node's policy.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
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

/// The choice of a branch: a target, an array of targets, or a `Vec` of them.
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

/// The name of a node that runs once for each payload it is sent, with the payloads' type.
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
    /// For the node of this name.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Each(name, PhantomData)
    }

    /// The node's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// Makes one task in the next superstep, which gets this payload.
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

    /// Makes a task for each payload. What they write is folded in this order.
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

/// What a call leads to.
pub type Reply<'a, S> = BoxFuture<'a, Result<Command<S>, NodeError>>;

/// A node as the driver calls it.
pub trait Node<S: State>: Send + Sync + 'static {
    /// Runs the node once.
    fn call<'a>(&'a self, call: Call<'a, S>) -> Reply<'a, S>;

    /// The graph inside, if this node is one: such a node winds down by itself and takes no permit.
    #[doc(hidden)]
    fn inner(&self) -> Option<Inner> {
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

/// Whatever [`crate::Builder::node`] can make a node of. `Marker` tells functions, functions with
/// something of their own and graphs apart; it is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no node for a graph whose state is `{S}`",
    note = "a node is an `async fn(&{S}, &Ctx) -> Result<Update<{S}>>`, or one that returns `Result<Command<{S}>>`",
    note = "a closure has to be an async one with its types: `async |state: &{S}, ctx: &Ctx| …`"
)]
pub trait IntoNode<S: State, Marker> {
    /// Whether its results are commands, whose targets have to be declared.
    fn commands(&self) -> bool;
    /// Gives it the driver's form.
    fn into_node(self) -> Arc<dyn Node<S>>;
}

/// Whatever [`crate::Builder::each`] can make a node of: the same with a payload.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `each` node for payloads of type `{P}` in a graph whose state is `{S}`",
    note = "such a node is an `async fn({P}, &{S}, &Ctx)` with the results of any other node"
)]
pub trait IntoEach<P, S: State, Marker> {
    /// As [`IntoNode::commands`].
    fn commands(&self) -> bool;
    /// As [`IntoNode::into_node`].
    fn into_node(self) -> Arc<dyn Node<S>>;
}
