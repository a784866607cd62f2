//! Tools: what an agent may have called, typed at compile time or known only at run time.
//!
//! A tool gets arguments that its schema has already accepted. It never decides whether it may run;
//! the session does. The erased form that the session runs is in `registered.rs`, schemas are checked
//! in `schema.rs`, as far as `effort.rs` says that this can be done in reasonable work. What a tool gives
//! is in `output.rs`, what it finds around its call in `context.rs`, how it says how far it is in
//! `progress.rs`. What `#[tool]` expands to calls `function.rs`.

mod context;
mod effort;
pub(crate) mod function;
mod output;
mod progress;
mod registered;
mod schema;
#[cfg(test)]
mod tests;

use crate::action::Resolved;
use crate::effect::{self, Effect, Found, Retry};
use crate::json::Json;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::sync::Arc;
use std::time::Duration;

pub use context::{FromContext, Injections, Missing, ToolContext};
pub use output::{IntoOutput, ToolCommand, ToolOutput};
pub(crate) use progress::Queue;
pub use progress::{Listener, Progress, ProgressReport};
pub(crate) use registered::{Named, Registered, Tried, decode};

/// How long a tool may run unless it says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// How many bytes of a tool's output the model reads unless the tool says otherwise.
pub const DEFAULT_OUTPUT_CAP: usize = 32_000;

/// What an effect answers whoever runs it as if it were any tool.
const BY_WARRANT: &str = "an effect runs by its warrant alone";

/// What a tool does to the world. A promise of its author: the gateway cannot look inside.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Reads, and changes nothing: running it twice does no harm.
    #[default]
    Read,
    /// Changes something that can be changed back.
    Write,
    /// Runs code or commands.
    Execute,
    /// Destroys something.
    Delete,
}

impl Level {
    /// Whether it changes the world, so that an allowance is not enough to run it.
    pub fn is_effect(self) -> bool {
        self != Level::Read
    }
}

impl Level {
    /// The level of this name.
    pub(crate) fn from_name(name: &str) -> Option<Level> {
        let all = [Level::Read, Level::Write, Level::Execute, Level::Delete];
        all.into_iter().find(|level| level.to_string() == name)
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Level::Read => "read",
            Level::Write => "write",
            Level::Execute => "execute",
            Level::Delete => "delete",
        })
    }
}

/// A tool with arguments of a Rust type.
///
/// The JSON Schema that the model sees and that arguments are checked against is the type's; at its top
/// level it accepts no other keys. Arguments are decoded from their text: `u128`, `i128` and
/// `Box<serde_json::value::RawValue>` get every digit.
///
/// The gateway cuts a tool off at its timeout by dropping the future. A tool that blocks its thread
/// cannot be cut off; blocking work belongs on a thread of its own.
///
/// ```
/// use paraph_gateway::{Gateway, MemoryStore, Policy, Tool, ToolError};
/// use std::{collections::HashMap, time::Duration};
///
/// struct Phonebook(HashMap<String, String>);
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Who {
///     /// First name.
///     name: String,
/// }
///
/// impl Tool for Phonebook {
///     type Args = Who;
///     type Output = String;
///     const NAME: &'static str = "phone_number";
///     const ABOUT: &'static str = "Finds somebody's number";
///
///     async fn run(&self, who: Who) -> Result<String, ToolError> {
///         let number = self.0.get(&who.name);
///         number.cloned().ok_or_else(|| ToolError::new(format!("nobody is called {}", who.name)))
///     }
///
///     fn timeout(&self) -> Duration {
///         Duration::from_secs(1)
///     }
/// }
///
/// let gateway = Gateway::builder(MemoryStore::shared())
///     .tool(Phonebook(HashMap::new()))
///     .policy(Policy::new().allow(["phone_number"]))
///     .build()?;
/// assert_eq!(gateway.catalogue()[0].schema["properties"]["name"]["description"], "First name.");
/// # Ok::<(), paraph_gateway::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tool",
    note = "a function `f` with `#[tool]` is registered as `.tool(f {{}})`, one without as `.read(\"name\", \"what it does\", f)`"
)]
pub trait Tool: Send + Sync + 'static {
    /// What it takes: a type whose JSON form is an object.
    type Args: DeserializeOwned + JsonSchema + Send;
    /// What it gives: anything that can be written as JSON, which the model reads, or a [`ToolOutput`].
    type Output: IntoOutput;
    /// Its name: 1 to 128 letters, digits, `_`, `-` or `.`.
    const NAME: &'static str;
    /// What it does, for the model.
    const ABOUT: &'static str;
    /// What it does to the world.
    const LEVEL: Level = Level::Read;

    /// Does it. An error is something the model may read.
    fn run(&self, args: Self::Args)
    -> impl Future<Output = Result<Self::Output, ToolError>> + Send;

    /// Does it, with a view of the call. It is this that the gateway calls; a tool that wants nothing of
    /// the context leaves it as it is, and one that does may let `run` call it with
    /// [`ToolContext::nowhere`].
    fn run_in(
        &self,
        args: Self::Args,
        context: &ToolContext<'_>,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send {
        let _ = context;
        self.run(args)
    }

    /// How long it may take.
    fn timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }

    /// How many bytes of its output the model reads; the whole is kept in the call's record.
    fn output_cap(&self) -> usize {
        DEFAULT_OUTPUT_CAP
    }
}

/// Why a tool failed. Made by `?` from any error, or from a text.
///
/// The model reads the text after it was redacted and cut, so it should say what the model can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// What went wrong.
    pub text: String,
    /// Whether the arguments were at fault: then the reason is `tool_bad_args`, else `tool_error`.
    pub bad_args: bool,
    /// Whether the tool, though it changes something, is certain that it changed nothing.
    pub(crate) nothing_happened: bool,
    /// Why the call has not ended at all, if it has not.
    pub(crate) open: Option<Open>,
}

/// Why a call stays open though its tool returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// It waits for something that its caller knows of.
    Waits,
    /// The program did not give what the tool needs.
    Misused,
}

impl ToolError {
    /// The tool could not do it.
    pub fn new(text: impl Into<String>) -> ToolError {
        ToolError {
            text: text.into(),
            bad_args: false,
            nothing_happened: false,
            open: None,
        }
    }

    /// The schema accepted the arguments, but the tool cannot.
    pub fn bad_args(text: impl Into<String>) -> ToolError {
        ToolError {
            bad_args: true,
            ..ToolError::new(text)
        }
    }

    /// A tool that changes something, and is known only at run time, is certain that nothing was changed and nothing will
    /// be: a plain failure. After any other error of such a tool nobody knows.
    pub fn nothing_happened(text: impl Into<String>) -> ToolError {
        ToolError {
            nothing_happened: true,
            ..ToolError::new(text)
        }
    }

    /// The tool has not ended: it waits for something that its caller knows of, such as a person's
    /// answer. Nothing is recorded, and under the same key the call runs again, from its top.
    #[must_use]
    pub fn unfinished() -> ToolError {
        ToolError {
            open: Some(Open::Waits),
            ..ToolError::new("it waits")
        }
    }

    /// The program made a mistake that no model can make good.
    fn misused(text: String) -> ToolError {
        ToolError {
            open: Some(Open::Misused),
            ..ToolError::new(text)
        }
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> ToolError {
        ToolError::new(error.to_string())
    }
}

pub(crate) type DynRun = dyn for<'c> Fn(Json, &'c ToolContext<'c>) -> BoxFuture<'c, Result<ToolOutput, ToolError>>
    + Send
    + Sync;

pub(crate) type DynLook =
    dyn Fn(Json, LookUp) -> BoxFuture<'static, Result<Found<ToolOutput>, ToolError>> + Send + Sync;

pub(crate) type DynSubject = dyn Fn(&Json) -> Result<String, ToolError> + Send + Sync;

pub(crate) type DynTargets = dyn Fn(&Json) -> Result<Resolved, ToolError> + Send + Sync;

pub(crate) type DynReady = dyn Fn() -> BoxFuture<'static, Result<(), ToolError>> + Send + Sync;

/// A call of a tool that is known only at run time, of which nobody saw what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookUp {
    /// The key it was sent with: what [`ToolContext::key`] gave the tool.
    pub key: String,
    /// How often it was sent.
    pub times: u64,
    /// How long ago it was sent last. What was not found may still arrive: then answer [`Found::NotYet`].
    pub since: Duration,
}

/// A tool whose schema is known only at run time: from an MCP server, or from a file.
///
/// Its schema is taken as it is: what it does not forbid is allowed. References to other documents are
/// not followed, and patterns must be ones that are matched in linear time.
///
/// ```
/// use paraph_gateway::{DynTool, Gateway, Json, MemoryStore, ToolError};
/// let schema = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}});
/// let echo = DynTool::new("echo", "Says it back", schema, async |args: Json| Ok::<_, ToolError>(args));
/// let gateway = Gateway::builder(MemoryStore::shared()).dynamic(echo).build()?;
/// assert_eq!(gateway.catalogue()[0].name, "echo");
/// # Ok::<(), paraph_gateway::Error>(())
/// ```
pub struct DynTool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub about: String,
    /// The JSON Schema of its arguments.
    pub schema: serde_json::Value,
    /// What it does to the world. What is not known to be harmless is not: say `Write` if in doubt.
    pub level: Level,
    /// How long it may take.
    pub timeout: Duration,
    /// How many bytes of its output the model reads.
    pub output_cap: usize,
    /// If it changes something: what may be done when nobody saw what came of a call.
    pub retry: Retry,
    /// What does it by a warrant, if it is an effect of its own type: then `run` is not asked.
    pub(crate) effect: Option<Arc<dyn effect::Erased>>,
    run: Box<DynRun>,
    look: Option<Box<DynLook>>,
    subject: Option<Box<DynSubject>>,
    targets: Option<Box<DynTargets>>,
    ready: Option<Box<DynReady>>,
    waits: Option<Box<DynRun>>,
}

impl DynTool {
    /// An effect of its own type, for programs that compose all their tools as one list. It loses nothing: what is
    /// shown, signed, done and looked up is the effect's own, and a person is asked before.
    ///
    /// ```
    /// use paraph_gateway::{Ask, DynTool, Gateway, Level, MemoryStore, Policy, examples::Pay};
    /// let pay = DynTool::effect(Pay::default());
    /// assert_eq!((pay.name.as_str(), pay.level), ("pay", Level::Write));
    /// let gateway = Gateway::builder(MemoryStore::shared())
    ///     .dynamic(pay)
    ///     .policy(Policy::new().ask("pay", Ask::default()))
    ///     .build()?;
    /// # let _ = gateway;
    /// # Ok::<(), paraph_gateway::Error>(())
    /// ```
    pub fn effect<E: Effect>(effect: E) -> DynTool {
        let timeout = effect.timeout();
        let refused = async |_: Json| Err::<Json, _>(ToolError::new(BY_WARRANT));
        let mut tool = DynTool::new(E::NAME, E::ABOUT, schema::of_type::<E::Args>(), refused);
        tool.level = E::LEVEL;
        tool.timeout = timeout;
        tool.effect = Some(effect::typed(effect));
        tool
    }

    /// A tool that reads, with the default timeout and output cap. It gets its arguments with every
    /// digit as the model wrote it.
    pub fn new<O, Fut>(
        name: impl Into<String>,
        about: impl Into<String>,
        schema: serde_json::Value,
        run: impl Fn(Json) -> Fut + Send + Sync + 'static,
    ) -> DynTool
    where
        O: IntoOutput,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        DynTool::with_progress(name, about, schema, move |args, _| run(args))
    }

    /// The same for a tool that says how far it is while it runs.
    pub fn with_progress<O, Fut>(
        name: impl Into<String>,
        about: impl Into<String>,
        schema: serde_json::Value,
        run: impl Fn(Json, Progress) -> Fut + Send + Sync + 'static,
    ) -> DynTool
    where
        O: IntoOutput,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        DynTool::in_context(name, about, schema, move |args, context| {
            let progress = Progress::from_context(context).unwrap_or_default();
            let running = run(args, progress);
            Box::pin(async move { running.await?.into_output() })
        })
    }

    /// The same for a tool that looks at its call: what was injected into it, and its key.
    pub fn in_context(
        name: impl Into<String>,
        about: impl Into<String>,
        schema: serde_json::Value,
        run: impl for<'c> Fn(Json, &'c ToolContext<'c>) -> BoxFuture<'c, Result<ToolOutput, ToolError>>
        + Send
        + Sync
        + 'static,
    ) -> DynTool {
        DynTool {
            name: name.into(),
            about: about.into(),
            schema,
            level: Level::Read,
            timeout: DEFAULT_TIMEOUT,
            output_cap: DEFAULT_OUTPUT_CAP,
            retry: Retry::default(),
            effect: None,
            run: Box::new(run),
            look: None,
            subject: None,
            targets: None,
            ready: None,
            waits: None,
        }
    }

    /// The same tool, and what says of arguments what a call is about, such as `order:7`; see [`Effect::subject`]. Without
    /// it each call of a tool that changes something is about all of its arguments: other ones are another matter, which a
    /// refusal does not close.
    ///
    /// ```
    /// use paraph_gateway::{DynTool, Json, Level, ToolError, View};
    /// let schema = serde_json::json!({"type": "object", "properties": {"order": {"type": "string"}}});
    /// let mut pay = DynTool::new("pay", "Pays", schema, async |args: Json| Ok::<_, ToolError>(args))
    ///     .with_subject(|args| match args.view().get("order").and_then(View::as_str) {
    ///         Some(order) => Ok(format!("order:{order}")),
    ///         None => Err(ToolError::bad_args("which order?")),
    ///     });
    /// pay.level = Level::Write;
    /// ```
    #[must_use]
    pub fn with_subject(
        mut self,
        subject: impl Fn(&Json) -> Result<String, ToolError> + Send + Sync + 'static,
    ) -> DynTool {
        self.subject = Some(Box::new(subject));
        self
    }

    /// The same tool, and what says of arguments to whom or what a call goes. It is signed with them, and looked at once
    /// more before the call is made.
    #[must_use]
    pub fn with_targets(
        mut self,
        targets: impl Fn(&Json) -> Result<Resolved, ToolError> + Send + Sync + 'static,
    ) -> DynTool {
        self.targets = Some(Box::new(targets));
        self
    }

    /// The same tool, and what says whether a call that it left open ([`ToolError::unfinished`]) still waits. It is asked
    /// in the place of the tool while a kill switch is on, and does nothing: if it answers that the call is unfinished, the
    /// call goes on waiting, else it ends with the switch as every other.
    #[must_use]
    pub fn waiting_under_switches(
        mut self,
        waits: impl for<'c> Fn(
            Json,
            &'c ToolContext<'c>,
        ) -> BoxFuture<'c, Result<ToolOutput, ToolError>>
        + Send
        + Sync
        + 'static,
    ) -> DynTool {
        self.waits = Some(Box::new(waits));
        self
    }

    /// The same tool, and what says whether a call of it could be carried out at all. It is asked before people are asked
    /// about a call, within the tool's time; they are not asked in vain, and the call fails with the error's text.
    #[must_use]
    pub fn asked_when_ready<Fut>(
        mut self,
        ready: impl Fn() -> Fut + Send + Sync + 'static,
    ) -> DynTool
    where
        Fut: Future<Output = Result<(), ToolError>> + Send + 'static,
    {
        self.ready = Some(Box::new(move || Box::pin(ready())));
        self
    }

    /// The same tool, and what finds out what came of a call whose end nobody saw. It is asked before `retry` is. It
    /// only looks.
    #[must_use]
    pub fn looked_up<O, Fut>(
        mut self,
        look: impl Fn(Json, LookUp) -> Fut + Send + Sync + 'static,
    ) -> DynTool
    where
        O: IntoOutput,
        Fut: Future<Output = Result<Found<O>, ToolError>> + Send + 'static,
    {
        self.look = Some(Box::new(move |args, call| {
            let looking = look(args, call);
            Box::pin(async move {
                Ok(match looking.await? {
                    Found::Done(receipt) => Found::Done(receipt.into_output()?),
                    Found::SendAgain => Found::SendAgain,
                    Found::NotYet(wait) => Found::NotYet(wait),
                    Found::CannotTell => Found::CannotTell,
                })
            })
        }));
        self
    }
}

impl std::fmt::Debug for DynTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DynTool")
            .field("name", &self.name)
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

/// What keeps the JSON Schema of a tool's arguments from being used, if anything does. A gateway with such a tool is
/// not built; whoever takes tools from strangers looks beforehand.
///
/// ```
/// use paraph_gateway::schema_fault;
/// use serde_json::json;
/// assert_eq!(schema_fault(&json!({"type": "object"})), None);
/// assert!(schema_fault(&json!({"type": "array"})).is_some());
/// ```
pub fn schema_fault(schema: &serde_json::Value) -> Option<String> {
    schema::Schema::compile(schema).err()
}

/// What a model is shown of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub about: String,
    /// The JSON Schema of its arguments.
    pub schema: serde_json::Value,
    /// What it does to the world.
    pub level: Level,
}
