//! What a tool finds around its call: values that the program gives it and the model never sees.
//!
//! A program gives values to all calls when it builds the gateway, and to one call through
//! [`Injections`]. They are found by their type. Arguments come from the model and are another thing: no
//! name of an argument reaches a value in here, and none of these is part of a tool's schema.

use super::{Listener, Progress, ToolError};
use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

type Value = dyn Any + Send + Sync;

/// What the program gives to one call, for [`crate::Session::call_with`].
///
/// ```
/// use paraph_gateway::Injections;
/// struct Customer(u32);
/// let customer = Customer(7);
/// let injections = Injections::new().with(&customer);
/// # let _ = injections;
/// ```
#[derive(Clone, Default)]
pub struct Injections<'c> {
    values: Vec<&'c Value>,
    pub(crate) listener: Option<&'c dyn Listener>,
}

impl<'c> Injections<'c> {
    /// Nothing.
    #[must_use]
    pub fn new() -> Injections<'c> {
        Injections::default()
    }

    /// Lets tools find this value by its type. Of two of one type the later one is found.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, value: &'c T) -> Injections<'c> {
        self.values.push(value);
        self
    }

    /// Tells this one how far the tool is.
    #[must_use]
    pub fn listener(mut self, listener: &'c dyn Listener) -> Injections<'c> {
        self.listener = Some(listener);
        self
    }
}

impl fmt::Debug for Injections<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injections")
            .field("values", &self.values.len())
            .finish_non_exhaustive()
    }
}

/// A tool's view of its call.
pub struct ToolContext<'c> {
    key: &'c str,
    values: &'c [&'c Value],
    provided: &'c [Arc<Value>],
    progress: Progress,
}

impl<'c> ToolContext<'c> {
    /// The context of a tool that runs outside of any call, in a test: nothing is injected, and nobody
    /// listens.
    #[must_use]
    pub fn nowhere() -> ToolContext<'c> {
        ToolContext {
            key: "",
            values: &[],
            provided: &[],
            progress: Progress::default(),
        }
    }

    pub(crate) fn new(
        key: &'c str,
        injections: &'c Injections<'_>,
        provided: &'c [Arc<Value>],
        progress: Progress,
    ) -> ToolContext<'c> {
        ToolContext {
            key,
            values: &injections.values,
            provided,
            progress,
        }
    }

    /// The context of an effect: it has the key of its action, and nothing is injected.
    pub(crate) fn of_effect(key: &'c str) -> ToolContext<'c> {
        ToolContext {
            key,
            ..ToolContext::nowhere()
        }
    }

    /// The call's key: stays the same when the call runs again. For outside systems that recognise a
    /// repeated call.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key
    }

    /// Says how far the tool is; see [`Progress`].
    pub fn report(&self, value: impl serde::Serialize) {
        self.progress.report(value);
    }

    /// The value of this type: what was given to this call, else what was given to the gateway.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        let given = self.values.iter().rev().copied();
        let provided = self.provided.iter().rev().map(|value| &**value);
        given.chain(provided).find_map(|value| value.downcast_ref())
    }
}

impl fmt::Debug for ToolContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// What can be an injected parameter of a tool: `#[inject] client: &Client`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be injected into a tool",
    note = "inject a reference (`#[inject] client: &Client`), an `Arc`, a `Progress`, or an `Option` of one of these"
)]
pub trait FromContext<'c>: Sized {
    /// Takes it out of the call's context.
    ///
    /// # Errors
    /// [`Missing`] if nobody gave it.
    fn from_context(context: &'c ToolContext<'_>) -> Result<Self, Missing>;
}

/// A tool wants something injected that nobody gave: a mistake of the program, which ends the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    type_name: &'static str,
}

impl Missing {
    /// Nobody gave a value of this type.
    #[must_use]
    pub fn of<T: ?Sized>() -> Missing {
        Missing {
            type_name: type_name::<T>(),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it wants a `{}`, which nobody injected", self.type_name)
    }
}

impl From<Missing> for ToolError {
    fn from(missing: Missing) -> ToolError {
        ToolError::misused(missing.to_string())
    }
}

impl<'c, T: Any + Send + Sync> FromContext<'c> for &'c T {
    fn from_context(context: &'c ToolContext<'_>) -> Result<Self, Missing> {
        context.get().ok_or_else(Missing::of::<T>)
    }
}

/// One that the gateway was given, or an `Arc` that the call was given.
impl<'c, T: Any + Send + Sync> FromContext<'c> for Arc<T> {
    fn from_context(context: &'c ToolContext<'_>) -> Result<Self, Missing> {
        if let Some(given) = context.get::<Arc<T>>() {
            return Ok(given.clone());
        }
        let mut provided = context.provided.iter().rev().cloned();
        provided
            .find_map(|value| value.downcast().ok())
            .ok_or_else(Missing::of::<T>)
    }
}

impl<'c> FromContext<'c> for Progress {
    fn from_context(context: &'c ToolContext<'_>) -> Result<Self, Missing> {
        Ok(context.progress.clone())
    }
}

impl<'c, V: FromContext<'c>> FromContext<'c> for Option<V> {
    fn from_context(context: &'c ToolContext<'_>) -> Result<Self, Missing> {
        Ok(V::from_context(context).ok())
    }
}
