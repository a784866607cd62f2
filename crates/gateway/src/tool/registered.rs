//! The one erased form in which a gateway holds every tool, and the one way to run it.
//!
//! Called by the session after all checks have passed. Panics of a tool end here.

use super::schema::Schema;
use super::{
    DynReady, DynTool, IntoOutput, Open, Tool, ToolContext, ToolError, ToolOutput, ToolSpec,
};
use crate::call::ToolCall;
use crate::effect::{self, Effect, Prepared};
use crate::json::Json;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Results above this are not kept at all: the store would have to carry them.
const MAX_OUTPUT: usize = 16 << 20;

/// A tool in the gateway.
pub(crate) struct Registered {
    pub(crate) spec: ToolSpec,
    pub(crate) timeout: Duration,
    pub(crate) output_cap: usize,
    /// What does it, if it changes the world: then `run` is not asked.
    pub(crate) effect: Option<Arc<dyn effect::Erased>>,
    ready: Option<Box<DynReady>>,
    waits: Option<Box<dyn Erased>>,
    schema: Schema,
    run: Box<dyn Erased>,
}

/// A tool on its way into the gateway, whose schema is not compiled yet.
pub(crate) struct Named {
    pub(crate) spec: ToolSpec,
    timeout: Duration,
    output_cap: usize,
    effect: Option<Arc<dyn effect::Erased>>,
    ready: Option<Box<DynReady>>,
    waits: Option<Box<dyn Erased>>,
    run: Box<dyn Erased>,
}

/// How a run of a tool ended, if it was not cut off.
pub(crate) enum Tried {
    Output(ToolOutput),
    Failed(ToolError),
    /// It did not end. With the reason, if the program is to blame.
    Open(Option<String>),
}

type Running<'a> = BoxFuture<'a, Result<ToolOutput, ToolError>>;

trait Erased: Send + Sync {
    /// Runs it with arguments, which stand in the text too.
    fn run<'a>(&'a self, args: (&Json, &str), context: &'a ToolContext<'_>) -> Running<'a>;
}

impl Named {
    pub(crate) fn typed<T: Tool>(tool: T) -> Named {
        Named {
            spec: ToolSpec {
                name: T::NAME.to_owned(),
                about: T::ABOUT.to_owned(),
                schema: super::schema::of_type::<T::Args>(),
                level: T::LEVEL,
            },
            timeout: tool.timeout(),
            output_cap: tool.output_cap(),
            effect: None,
            ready: None,
            waits: None,
            run: Box::new(Typed(tool)),
        }
    }

    /// An effect.
    pub(crate) fn effect<E: Effect>(effect: E) -> Named {
        Named {
            spec: ToolSpec {
                name: E::NAME.to_owned(),
                about: E::ABOUT.to_owned(),
                schema: super::schema::of_type::<E::Args>(),
                level: E::LEVEL,
            },
            timeout: effect.timeout(),
            output_cap: super::DEFAULT_OUTPUT_CAP,
            effect: Some(effect::typed(effect)),
            ready: None,
            waits: None,
            run: Box::new(Nothing),
        }
    }

    pub(crate) fn dynamic(tool: DynTool) -> Named {
        let (effect, run): (_, Box<dyn Erased>) = match (tool.effect, tool.level.is_effect()) {
            (Some(effect), _) => (Some(effect), Box::new(Nothing)),
            (None, true) => {
                let effect = effect::Dynamic {
                    name: tool.name.clone(),
                    run: tool.run,
                    look: tool.look,
                    retry: tool.retry,
                    subject: tool.subject,
                    targets: tool.targets,
                };
                (Some(Arc::new(effect)), Box::new(Nothing))
            }
            (None, false) => (None, Box::new(Dynamic(tool.run))),
        };
        Named {
            spec: ToolSpec {
                name: tool.name,
                about: tool.about,
                schema: tool.schema,
                level: tool.level,
            },
            timeout: tool.timeout,
            output_cap: tool.output_cap,
            effect,
            ready: tool.ready,
            waits: tool.waits.map(|waits| Box::new(Dynamic(waits)) as _),
            run,
        }
    }

    pub(crate) fn function<A, O, F, Fut>(name: String, about: String, run: F) -> Named
    where
        A: DeserializeOwned + schemars::JsonSchema + Send + 'static,
        O: IntoOutput + 'static,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        Named {
            spec: ToolSpec {
                name,
                about,
                schema: super::schema::of_type::<A>(),
                level: super::Level::Read,
            },
            timeout: super::DEFAULT_TIMEOUT,
            output_cap: super::DEFAULT_OUTPUT_CAP,
            effect: None,
            ready: None,
            waits: None,
            run: Box::new(Function(run, PhantomData)),
        }
    }

    /// Whether it changes something and has another way to be run than by a warrant.
    pub(crate) fn changes_without_warrant(&self) -> bool {
        self.spec.level.is_effect() && self.effect.is_none()
    }

    /// Compiles the schema; the error says what is wrong with it.
    pub(crate) fn register(self) -> Result<Registered, String> {
        Ok(Registered {
            schema: Schema::compile(&self.spec.schema)?,
            spec: self.spec,
            timeout: self.timeout,
            output_cap: self.output_cap,
            effect: self.effect,
            ready: self.ready,
            waits: self.waits,
            run: self.run,
        })
    }
}

impl Registered {
    /// Whether the schema accepts the arguments; the error says where it does not.
    pub(crate) fn check(&self, args: &Json) -> Result<(), String> {
        self.schema.check(args)
    }

    /// The same for those of a call that could be read.
    pub(crate) fn check_call(&self, call: &ToolCall) -> Result<(), String> {
        self.schema.check_text(call.text())
    }

    /// Whether a call of it could be carried out at all, as far as it says so.
    pub(crate) async fn ready(&self) -> Result<(), ToolError> {
        let Some(ready) = &self.ready else {
            return Ok(());
        };
        let asked = AssertUnwindSafe(async { ready().await }).catch_unwind();
        match asked.await {
            Ok(answer) => answer,
            Err(_) => Err(ToolError::new("it broke off with an internal error")),
        }
    }

    /// Whether a call that was begun still waits for something, as far as the tool says so. Nothing is done by it.
    pub(crate) async fn still_waits(&self, call: &ToolCall, context: &ToolContext<'_>) -> bool {
        let args = (call.args(), call.text());
        let Some(waits) = &self.waits else {
            return false;
        };
        let asked = AssertUnwindSafe(async { waits.run(args, context).await }).catch_unwind();
        let asked = tokio::time::timeout(super::DEFAULT_TIMEOUT, asked).await;
        matches!(asked, Ok(Ok(Err(error))) if error.open == Some(Open::Waits))
    }

    /// What would be signed of a call with these arguments.
    pub(crate) fn prepare(&self, args: &Json) -> Result<Prepared, ToolError> {
        match &self.effect {
            Some(effect) => effect.prepare(args),
            None => effect::as_it_is(&self.spec.name, args),
        }
    }

    /// Runs the tool. A panic is a failure like any other; its message stays out of the model's sight.
    pub(crate) async fn run(&self, call: &ToolCall, context: &ToolContext<'_>) -> Tried {
        let args = (call.args(), call.text());
        // The future is built inside the block, so that a panic before the first await is caught too.
        let guarded = AssertUnwindSafe(async { self.run.run(args, context).await }).catch_unwind();
        match guarded.await {
            Ok(Ok(output)) if output.content.len() > MAX_OUTPUT => {
                Tried::Failed(ToolError::new(format!(
                    "the output has {} bytes, more than the {MAX_OUTPUT} that can be kept",
                    output.content.len()
                )))
            }
            Ok(Ok(output)) => Tried::Output(output),
            Ok(Err(error)) => match error.open {
                None => Tried::Failed(error),
                Some(Open::Waits) => Tried::Open(None),
                Some(Open::Misused) => Tried::Open(Some(error.text)),
            },
            Err(_) => {
                tracing::error!(tool = self.spec.name, "a tool panicked");
                Tried::Failed(ToolError::new("it broke off with an internal error"))
            }
        }
    }
}

/// Stands where an effect is done by its warrant alone.
struct Nothing;

impl Erased for Nothing {
    fn run<'a>(&'a self, _: (&Json, &str), _: &'a ToolContext<'_>) -> Running<'a> {
        let refused = ToolError::new(super::BY_WARRANT);
        Box::pin(std::future::ready(Err(refused)))
    }
}

struct Typed<T>(T);

impl<T: Tool> Erased for Typed<T> {
    fn run<'a>(&'a self, args: (&Json, &str), context: &'a ToolContext<'_>) -> Running<'a> {
        let args = decode_text::<T::Args>(args);
        Box::pin(async move { self.0.run_in(args?, context).await?.into_output() })
    }
}

struct Function<A, F>(F, PhantomData<fn(A)>);

impl<A, O, F, Fut> Erased for Function<A, F>
where
    A: DeserializeOwned + Send + 'static,
    O: IntoOutput + 'static,
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
{
    fn run<'a>(&'a self, args: (&Json, &str), _: &'a ToolContext<'_>) -> Running<'a> {
        let args = decode_text::<A>(args);
        Box::pin(async move { (self.0)(args?).await?.into_output() })
    }
}

struct Dynamic(Box<super::DynRun>);

impl Erased for Dynamic {
    fn run<'a>(&'a self, (args, _): (&Json, &str), context: &'a ToolContext<'_>) -> Running<'a> {
        (self.0)(args.clone(), context)
    }
}

/// Typed arguments, from their exact text.
///
/// To JSON Schema `42.0` is an integer, to `serde` it is not. What the schema accepted is therefore
/// tried once more with whole floats written as integers; a field that wants a float takes those too.
pub(crate) fn decode<A: DeserializeOwned>(args: &Json) -> Result<A, ToolError> {
    decode_text((args, &args.to_string()))
}

/// The same for arguments whose text is there already.
fn decode_text<A: DeserializeOwned>((args, text): (&Json, &str)) -> Result<A, ToolError> {
    let exact = match serde_json::from_str(text) {
        Ok(decoded) => return Ok(decoded),
        Err(error) => error,
    };
    match super::schema::with_whole_floats_as_integers(args) {
        Some(text) => serde_json::from_str(&text).map_err(|_| exact),
        None => Err(exact),
    }
    .map_err(|error| ToolError::bad_args(error.to_string()))
}
