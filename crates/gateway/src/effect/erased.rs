//! The one form in which a gateway holds every effect, typed or known only at run time.
//!
//! Called by the session, which has seen to it that the action was signed and may start. Only here are warrants made.

use super::warrant::key_of;
use super::{Attempt, Effect, EffectError, Found, Retry, Warrant, described};
use crate::action::{Action, Resolved};
use crate::canonical::{self, Numbers, canonical};
use crate::json::{Bounds, Json};
use crate::tool::{DynLook, DynRun, DynSubject, DynTargets, LookUp, ToolContext, ToolError};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// What is signed of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// The arguments with their defaults.
    pub(crate) args: Json,
    pub(crate) says: String,
    pub(crate) subject: String,
}

/// What came of handing an action to its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It happened; the receipt as JSON text.
    Done(String),
    /// It did not happen.
    Nothing(String),
    /// Nobody knows.
    Unknown(String),
}

/// What was found out about an attempt whose end nobody saw.
pub(crate) type Chance = Result<Found<String>, String>;

/// An effect whose types are forgotten.
pub(crate) trait Erased: Send + Sync {
    /// What would be signed of a call with these arguments.
    fn prepare(&self, args: &Json) -> Result<Prepared, ToolError>;

    /// What the effect finds out about arguments that were prepared.
    fn resolve(self: Arc<Self>, args: Json) -> BoxFuture<'static, Result<Resolved, ToolError>>;

    /// Does what was signed.
    fn send(self: Arc<Self>, action: Arc<Action>) -> BoxFuture<'static, Sent>;

    /// Looks what came of it.
    fn look(
        self: Arc<Self>,
        action: Arc<Action>,
        times: u64,
        since: Duration,
    ) -> BoxFuture<'static, Chance>;
}

pub(crate) fn typed<E: Effect>(effect: E) -> Arc<dyn Erased> {
    Arc::new(Typed(effect))
}

struct Typed<E>(E);

impl<E: Effect> Erased for Typed<E> {
    fn prepare(&self, args: &Json) -> Result<Prepared, ToolError> {
        let decoded: E::Args = crate::tool::decode(args)?;
        let says = guarded(|| self.0.describe(&decoded))?;
        let subject = guarded(|| self.0.subject(&decoded))?;
        Ok(Prepared {
            args: encoded(&decoded)?,
            says,
            subject,
        })
    }

    fn resolve(self: Arc<Self>, args: Json) -> BoxFuture<'static, Result<Resolved, ToolError>> {
        Box::pin(async move {
            let args = crate::tool::decode::<E::Args>(&args)?;
            let look = async { self.0.resolve(&args).await };
            let found = AssertUnwindSafe(look).catch_unwind().await;
            let found = found.map_err(|_| ToolError::new(PANICKED))??;
            match found.fault() {
                Some(fault) => Err(ToolError::new(fault)),
                None => Ok(found),
            }
        })
    }

    fn send(self: Arc<Self>, action: Arc<Action>) -> BoxFuture<'static, Sent> {
        Box::pin(async move {
            let args = match crate::tool::decode::<E::Args>(&action.said.args) {
                Ok(args) => args,
                Err(error) => return Sent::Nothing(error.text),
            };
            let run = async { self.0.run(Warrant::<E>::of(&action, args)).await };
            match AssertUnwindSafe(run).catch_unwind().await {
                Ok(Ok(receipt)) => match serde_json::to_string(&receipt) {
                    Ok(receipt) => Sent::Done(receipt),
                    Err(error) => Sent::Unknown(format!("its receipt is no JSON: {error}")),
                },
                Ok(Err(EffectError {
                    text,
                    nothing_happened: true,
                })) => Sent::Nothing(text),
                Ok(Err(error)) => Sent::Unknown(error.text),
                Err(_) => Sent::Unknown(PANICKED.to_owned()),
            }
        })
    }

    fn look(
        self: Arc<Self>,
        action: Arc<Action>,
        times: u64,
        since: Duration,
    ) -> BoxFuture<'static, Chance> {
        Box::pin(async move {
            let args = crate::tool::decode::<E::Args>(&action.said.args);
            let args = args.map_err(|error| error.text)?;
            let look = async {
                self.0
                    .reconcile(Attempt::<E>::of(&action, args, (times, since)))
                    .await
            };
            let found = AssertUnwindSafe(look).catch_unwind().await;
            Ok(match found.map_err(|_| PANICKED)?.map_err(|e| e.text)? {
                Found::Done(receipt) => {
                    let receipt = serde_json::to_string(&receipt);
                    Found::Done(receipt.map_err(|error| error.to_string())?)
                }
                Found::SendAgain => Found::SendAgain,
                Found::NotYet(wait) => Found::NotYet(wait),
                Found::CannotTell => Found::CannotTell,
            })
        })
    }
}

const PANICKED: &str = "it broke off with an internal error";

/// What an effect says of its arguments; a panic is a mistake in them.
fn guarded<T>(say: impl FnOnce() -> T) -> Result<T, ToolError> {
    let said = std::panic::catch_unwind(AssertUnwindSafe(say));
    said.map_err(|_| ToolError::new(PANICKED))
}

fn encoded<A: serde::Serialize>(args: &A) -> Result<Json, ToolError> {
    let text = serde_json::to_string(args)?;
    Json::read(&text, Bounds::default()).map_err(|error| ToolError::new(error.to_string()))
}

/// What is signed of a call whose tool says nothing of itself. Its words and its subject are made of the canonical
/// arguments, as the signed bytes are: another spelling of the same number or another order of keys is the same.
pub(crate) fn as_it_is(name: &str, args: &Json) -> Result<Prepared, ToolError> {
    let text = canonical(args, Numbers::Any);
    let text = text.map_err(|error| ToolError::bad_args(error.to_string()))?;
    let args = canonical::read(&text);
    let args = args.map_err(|error| ToolError::bad_args(error.to_string()))?;
    Ok(Prepared {
        says: described(name, &args),
        subject: format!("{name} {args}"),
        args,
    })
}

/// A tool that is known only at run time, as an effect.
pub(crate) struct Dynamic {
    pub(crate) name: String,
    pub(crate) run: Box<DynRun>,
    pub(crate) look: Option<Box<DynLook>>,
    pub(crate) retry: Retry,
    pub(crate) subject: Option<Box<DynSubject>>,
    pub(crate) targets: Option<Box<DynTargets>>,
}

/// The longest subject that a tool known only at run time may name, in bytes.
const MAX_SUBJECT: usize = 500;

impl Erased for Dynamic {
    fn prepare(&self, args: &Json) -> Result<Prepared, ToolError> {
        let prepared = as_it_is(&self.name, args)?;
        let Some(subject) = &self.subject else {
            return Ok(prepared);
        };
        let subject = guarded(|| subject(&prepared.args))??;
        match subject.trim().len() {
            0 => Err(ToolError::bad_args("what it is about is empty")),
            1..=MAX_SUBJECT => Ok(Prepared {
                subject,
                ..prepared
            }),
            _ => Err(ToolError::bad_args(format!(
                "what it is about has more than {MAX_SUBJECT} bytes"
            ))),
        }
    }

    fn resolve(self: Arc<Self>, args: Json) -> BoxFuture<'static, Result<Resolved, ToolError>> {
        let found = match &self.targets {
            None => Ok(Resolved::new()),
            Some(targets) => guarded(|| targets(&args)).flatten(),
        };
        let found = found.and_then(|found| match found.fault() {
            Some(fault) => Err(ToolError::new(fault)),
            None => Ok(found),
        });
        Box::pin(std::future::ready(found))
    }

    fn send(self: Arc<Self>, action: Arc<Action>) -> BoxFuture<'static, Sent> {
        Box::pin(async move {
            let key = key_of(&action);
            let context = ToolContext::of_effect(&key);
            let run = async { (self.run)(action.said.args.clone(), &context).await };
            match AssertUnwindSafe(run).catch_unwind().await {
                Ok(Ok(output)) => Sent::Done(output.content),
                Ok(Err(error)) if error.bad_args || error.nothing_happened => {
                    Sent::Nothing(error.text)
                }
                Ok(Err(error)) => Sent::Unknown(error.text),
                Err(_) => Sent::Unknown(PANICKED.to_owned()),
            }
        })
    }

    fn look(
        self: Arc<Self>,
        action: Arc<Action>,
        times: u64,
        since: Duration,
    ) -> BoxFuture<'static, Chance> {
        Box::pin(async move {
            let Some(look) = &self.look else {
                return Ok(match self.retry {
                    Retry::CannotTell => Found::CannotTell,
                    Retry::SameKey => Found::SendAgain,
                });
            };
            let key = key_of(&action);
            let call = LookUp { key, times, since };
            let looking = async { look(action.said.args.clone(), call).await };
            let found = AssertUnwindSafe(looking).catch_unwind().await;
            Ok(match found.map_err(|_| PANICKED)?.map_err(|e| e.text)? {
                Found::Done(receipt) => Found::Done(receipt.content),
                // What the other side recognises may be sent again, however long nobody has seen it.
                Found::NotYet(_) if self.retry == Retry::SameKey => Found::SendAgain,
                Found::NotYet(wait) => Found::NotYet(wait),
                Found::SendAgain => Found::SendAgain,
                Found::CannotTell => Found::CannotTell,
            })
        })
    }
}

/// How long until what came of an attempt is looked up again, after so many attempts.
pub(crate) fn patience(times: u64) -> Duration {
    const FIRST: Duration = Duration::from_secs(1);
    const MOST: Duration = Duration::from_secs(600);
    let doubled = u32::try_from(times.min(16)).unwrap_or(16);
    FIRST.saturating_mul(1 << doubled).min(MOST)
}
