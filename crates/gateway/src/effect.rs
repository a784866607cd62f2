//! Effects: tools that change the world, and the proof that they need.
//!
//! An effect has no way to be run but [`Effect::run`], which takes a [`Warrant`]. Only the session makes one, from the
//! stored bytes of an action that was signed and that the store lets start now. The session holds effects in the form
//! of `effect/erased.rs`.

mod erased;
mod warrant;

use crate::action::Resolved;
use crate::json::Json;
use crate::tool::{DEFAULT_TIMEOUT, Level, ToolError};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use std::time::Duration;

pub(crate) use erased::{Chance, Dynamic, Erased, Prepared, Sent, as_it_is, patience, typed};
pub use warrant::{Attempt, Signed, Warrant};

/// A tool that changes the world.
///
/// What is signed is the arguments as they are when they have been decoded and encoded again, so that defaults are on
/// the screen. [`Effect::run`] is called once per signature; what it gives back is kept, and a second call of the same
/// action gets the same. If the process dies meanwhile, or the time is over, or `run` fails by `?`, nobody knows
/// whether the effect arrived: then [`Effect::reconcile`] has to find out.
///
/// ```
/// use paraph_gateway::*;
///
/// #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// struct Letter { to: String, text: String }
///
/// struct Post;
///
/// impl Post {
///     // Whoever writes takes the proof: then there is no other way to it.
///     async fn send(&self, proof: &Warrant<'_, Post>) -> std::io::Result<String> {
///         Ok(format!("{} under {}", proof.args.to, proof.key()))
///     }
/// }
///
/// impl Effect for Post {
///     type Args = Letter;
///     type Receipt = String;
///     const NAME: &'static str = "send_letter";
///     const ABOUT: &'static str = "Sends a letter";
///
///     fn describe(&self, letter: &Letter) -> String {
///         format!("Send a letter of {} characters to {}", letter.text.chars().count(), letter.to)
///     }
///
///     fn subject(&self, letter: &Letter) -> String {
///         format!("letters to {}", letter.to)
///     }
///
///     async fn run(&self, warrant: Warrant<'_, Self>) -> Result<String, EffectError> {
///         if warrant.args.text.is_empty() {
///             return Err(EffectError::nothing_happened("an empty letter is not sent"));
///         }
///         Ok(self.send(&warrant).await?)            // `?` says: nobody knows whether it arrived
///     }
///
///     async fn reconcile(&self, attempt: Attempt<'_, Self>) -> Result<Found<String>, ToolError> {
///         let _ = attempt.key();                    // the other side is asked what it has under this key
///         Ok(Found::SendAgain)
///     }
/// }
/// ```
pub trait Effect: Send + Sync + 'static {
    /// What it takes: a type whose JSON form is an object, and which is written as it is read.
    type Args: Serialize + DeserializeOwned + JsonSchema + Send + Sync;
    /// What the other side gives back, for the model and for the records.
    type Receipt: Serialize + DeserializeOwned + Send + Sync;
    /// Its name: 1 to 128 letters, digits, `_`, `-` or `.`.
    const NAME: &'static str;
    /// What it does, for the model.
    const ABOUT: &'static str;
    /// What it does to the world; never [`Level::Read`].
    const LEVEL: Level = Level::Write;

    /// What would happen, in plain words for the person who decides. It is part of what is signed.
    fn describe(&self, args: &Self::Args) -> String;

    /// What it is about, such as `order:7`: what a person refused about it stays refused on this thread, and what was
    /// done about it once is said when it is asked for again. Fine enough that another order is another subject,
    /// coarse enough that other words for the same are not.
    fn subject(&self, args: &Self::Args) -> String {
        let _ = args;
        Self::NAME.to_owned()
    }

    /// Looks at the world before anybody signs: what the names in the arguments stand for, and what has to be so still
    /// when it is done. What it finds is signed with the arguments, shown to whoever decides, and found in the warrant.
    ///
    /// It is asked again when the signed action is started and once more just before it is handed over. What is not the
    /// same then is not done: the action has `drifted`, also if it finds that the arguments fit nothing any more
    /// ([`ToolError::bad_args`]). If it fails otherwise, nothing is done either, and it is asked again later; if it fails
    /// before anything is signed, the call fails. It only looks, within [`Effect::timeout`]. Between
    /// its last look and the deed something may still change: an other side that takes conditions should be given them.
    fn resolve(
        &self,
        args: &Self::Args,
    ) -> impl Future<Output = Result<Resolved, ToolError>> + Send {
        let _ = args;
        std::future::ready(Ok(Resolved::new()))
    }

    /// Does it, once. There are no arguments beside the warrant: what is not signed is not there.
    ///
    /// It runs in a task of its own that the end of the run does not cut off, within [`Effect::timeout`].
    fn run(
        &self,
        warrant: Warrant<'_, Self>,
    ) -> impl Future<Output = Result<Self::Receipt, EffectError>> + Send;

    /// Finds out what came of an attempt whose end nobody saw. It only looks.
    fn reconcile(
        &self,
        attempt: Attempt<'_, Self>,
    ) -> impl Future<Output = Result<Found<Self::Receipt>, ToolError>> + Send;

    /// How long one attempt may take; after that nobody knows what came of it.
    fn timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }
}

/// What came of an attempt, as far as one can find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<R> {
    /// Nothing arrived, or sending it again under the same key does no harm.
    SendAgain,
    /// It happened.
    Done(R),
    /// It may still arrive: look again after this.
    NotYet(Duration),
    /// Only a person can find out.
    CannotTell,
}

/// Why an effect gave no receipt.
///
/// Made by `?` from any error, and then nobody knows whether the effect arrived. That nothing happened has to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectError {
    pub(crate) text: String,
    pub(crate) nothing_happened: bool,
}

impl EffectError {
    /// The effect did not happen and will not: a plain failure, which the model may read.
    pub fn nothing_happened(why: impl Into<String>) -> EffectError {
        EffectError {
            text: why.into(),
            nothing_happened: true,
        }
    }

    /// Nobody knows whether it happened.
    pub fn unknown(why: impl Into<String>) -> EffectError {
        EffectError {
            text: why.into(),
            nothing_happened: false,
        }
    }

    /// An error of a connection: if it was refused, or no address was found, nothing was sent and nothing happened;
    /// otherwise nobody knows. It looks at the whole chain of sources.
    pub fn of_connection(error: &(dyn std::error::Error + 'static)) -> EffectError {
        let refused = |error: &(dyn std::error::Error + 'static)| {
            let io = error.downcast_ref::<std::io::Error>();
            io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused)
        };
        let chain = std::iter::successors(Some(error), |error| error.source());
        EffectError {
            text: error.to_string(),
            nothing_happened: chain.into_iter().any(refused),
        }
    }
}

impl<E: std::error::Error> From<E> for EffectError {
    fn from(error: E) -> EffectError {
        EffectError::unknown(error.to_string())
    }
}

/// What may be done after an attempt of a tool whose program cannot look up what came of it: tools that are known only
/// at run time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// A person has to find out.
    #[default]
    CannotTell,
    /// The other side recognises the key, and does it once.
    SameKey,
}

/// What is signed of a call of a tool that is known only at run time.
pub(crate) fn described(name: &str, args: &Json) -> String {
    format!("Call `{name}` with {args}")
}
