//! Async functions as nodes: with a payload or without, with something of their own or without.
//!
//! Rust gives a function that borrows its arguments a future type per lifetime, so a bound on it has to
//! hold for every lifetime; [`NodeFn`] is that bound for any arguments before the state. Called by the
//! builder through [`IntoNode`] and [`IntoEach`].

use super::{Call, Command, IntoEach, IntoNode, Node, Reply};
use crate::{Ctx, State};
use serde::de::DeserializeOwned;
use std::{any::TypeId, future::Future, sync::Arc};

/// An async function over `&S` and `&Ctx` whose arguments before these are the tuple `Args`.
pub trait NodeFn<'a, Args, S: State>: Send + Sync + 'static {
    /// What it gives if it does not fail.
    type Output: Into<Command<S>> + 'static;

    /// Begins a call.
    fn begin(&self, args: Args, state: &'a S, ctx: &'a Ctx) -> Reply<'a, S>;
}

macro_rules! functions_with {
    ($($arg:ident: $Arg:ident),*) => {
        impl<'a, $($Arg,)* S, F, Work, Output> NodeFn<'a, ($($Arg,)*), S> for F
        where
            S: State,
            F: Fn($($Arg,)* &'a S, &'a Ctx) -> Work + Send + Sync + 'static,
            Work: Future<Output = crate::Result<Output>> + Send + 'a,
            Output: Into<Command<S>> + 'static,
        {
            type Output = Output;

            fn begin(&self, ($($arg,)*): ($($Arg,)*), state: &'a S, ctx: &'a Ctx) -> Reply<'a, S> {
                let work = self($($arg,)* state, ctx);
                Box::pin(async move { work.await.map(Into::into) })
            }
        }
    };
}

functions_with!();
functions_with!(first: First);
functions_with!(first: First, second: Second);

/// What a node keeps for itself, and how it is called with that.
struct Kept<D, F> {
    own: D,
    begin: F,
}

impl<S, D, F> Node<S> for Kept<D, F>
where
    S: State,
    D: Send + Sync + 'static,
    F: for<'a> Fn(&'a D, Call<'a, S>) -> Reply<'a, S> + Send + Sync + 'static,
{
    fn call<'a>(&'a self, call: Call<'a, S>) -> Reply<'a, S> {
        (self.begin)(&self.own, call)
    }
}

fn keep<S, D, F>(own: D, begin: F) -> Arc<dyn Node<S>>
where
    S: State,
    D: Send + Sync + 'static,
    F: for<'a> Fn(&'a D, Call<'a, S>) -> Reply<'a, S> + Send + Sync + 'static,
{
    Arc::new(Kept { own, begin })
}

/// Whether the results of a function are commands: of updates the type is another.
fn gives_commands<Output: 'static, S: State>() -> bool {
    TypeId::of::<Output>() == TypeId::of::<Command<S>>()
}

/// Begins with the payload of a call, or fails the call without it.
fn with_payload<'a, P: DeserializeOwned, S: State>(
    call: &Call<'a, S>,
    begin: impl FnOnce(P) -> Reply<'a, S>,
) -> Reply<'a, S> {
    match call.payload() {
        Ok(payload) => begin(payload),
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}

/// Marks the implementations for functions.
pub struct Function;

impl<S, F> IntoNode<S, Function> for F
where
    S: State,
    F: for<'a> NodeFn<'a, (), S>,
{
    fn commands(&self) -> bool {
        gives_commands::<<F as NodeFn<'static, (), S>>::Output, S>()
    }

    fn into_node(self) -> Arc<dyn Node<S>> {
        keep((), move |(), call| self.begin((), call.state, call.ctx))
    }
}

impl<P, S, F> IntoEach<P, S, Function> for F
where
    P: DeserializeOwned + Send + 'static,
    S: State,
    F: for<'a> NodeFn<'a, (P,), S>,
{
    fn commands(&self) -> bool {
        gives_commands::<<F as NodeFn<'static, (P,), S>>::Output, S>()
    }

    fn into_node(self) -> Arc<dyn Node<S>> {
        keep((), move |(), call| {
            with_payload(&call, |payload| {
                self.begin((payload,), call.state, call.ctx)
            })
        })
    }
}

/// A function with something of its own, such as a model or a client, which it gets first.
///
/// This is instead of a closure that captures: what the future of such a closure borrows dies with the
/// closure. A method is a function too, whose own is `self`: `with(agent, Agent::think)`.
pub fn with<D: Send + Sync + 'static, F>(own: D, function: F) -> With<D, F> {
    With { own, function }
}

/// What [`with`] makes.
pub struct With<D, F> {
    own: D,
    function: F,
}

/// Marks the implementations for [`With`].
pub struct Dependent;

impl<D, S, F> IntoNode<S, Dependent> for With<D, F>
where
    D: Send + Sync + 'static,
    S: State,
    F: for<'a> NodeFn<'a, (&'a D,), S>,
{
    fn commands(&self) -> bool {
        gives_commands::<<F as NodeFn<'static, (&'static D,), S>>::Output, S>()
    }

    fn into_node(self) -> Arc<dyn Node<S>> {
        keep(self.own, move |own, call| {
            self.function.begin((own,), call.state, call.ctx)
        })
    }
}

impl<D, P, S, F> IntoEach<P, S, Dependent> for With<D, F>
where
    D: Send + Sync + 'static,
    P: DeserializeOwned + Send + 'static,
    S: State,
    F: for<'a> NodeFn<'a, (&'a D, P), S>,
{
    fn commands(&self) -> bool {
        gives_commands::<<F as NodeFn<'static, (&'static D, P), S>>::Output, S>()
    }

    fn into_node(self) -> Arc<dyn Node<S>> {
        keep(self.own, move |own, call| {
            with_payload(&call, |payload| {
                self.function.begin((own, payload), call.state, call.ctx)
            })
        })
    }
}
