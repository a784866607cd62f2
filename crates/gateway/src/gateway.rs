//! The gateway: the tools and the policy of an agent, checked against each other once.
//!
//! A program builds one per agent and opens a session per run. Nothing runs here; see `session.rs`.

use crate::approvals::Approvals;
use crate::budget::{Budget, Limits, Usage};
use crate::effect::Effect;
use crate::error::{Error, Fault};
use crate::kill::Kills;
use crate::policy::{Policy, PolicyEngine, Verdict, closest, fits};
use crate::redact::{Redaction, Redactor};
use crate::rights::Rights;
use crate::seal::{Seal, SealKey};
use crate::session::{Scope, Session};
use crate::stop::Stop;
use crate::store::Store;
use crate::tool::{DynTool, IntoOutput, Named, Registered, Tool, ToolError, ToolSpec};
use serde::de::DeserializeOwned;
use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

/// The only door between an agent and the world. A cheap handle.
///
/// ```
/// use paraph_gateway::{Gateway, Limits, MemoryStore, Policy, Scope};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct City { name: String }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = Gateway::builder(MemoryStore::shared())
///     .read("greet", "Greets a city", async |city: City| Ok(format!("Hello, {}!", city.name)))
///     .policy(Policy::new().allow(["greet"]))
///     .build()?;
/// let session = gateway.session(Scope::new("greeter", "thread-1"), Limits::default()).await?;
/// # let _ = session;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) rules: PolicyEngine,
    pub(crate) redactor: Redactor,
    pub(crate) kills: Kills,
    pub(crate) seal: Seal,
    pub(crate) rights: Option<Arc<dyn Rights>>,
    /// What every tool may have injected.
    pub(crate) provided: Vec<Arc<dyn Any + Send + Sync>>,
    tools: HashMap<String, Registered>,
    catalogue: Vec<ToolSpec>,
    warnings: Vec<String>,
}

impl Gateway {
    /// Begins a gateway whose records this store keeps.
    pub fn builder(store: Arc<dyn Store>) -> Builder {
        Builder {
            store,
            policy: Policy::new(),
            redaction: Redaction::default(),
            seal: Seal::default(),
            rights: None,
            provided: Vec::new(),
            tools: Vec::new(),
        }
    }

    /// What a model is shown: every registered tool, in the order of registration. The policy does not
    /// shrink it; a denied tool answers that it is denied.
    pub fn catalogue(&self) -> &[ToolSpec] {
        &self.0.catalogue
    }

    /// Remarks on the policy that are no mistakes, for whoever starts the program.
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// Whether any call may have to wait for a person: then the store has to outlive the process.
    pub fn may_ask(&self) -> bool {
        let waits = |tool: &ToolSpec| match self.0.rules.policy().verdict(&tool.name) {
            Verdict::Denied { .. } => false,
            Verdict::Ask(_) => true,
            Verdict::Allowed => tool.level.is_effect(),
        };
        self.catalogue().iter().any(waits)
    }

    /// The desk at the gateway's store.
    pub fn approvals(&self) -> Approvals {
        Approvals::with(self.0.store.clone(), self.0.seal.clone())
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0
    }

    /// What takes secrets out of whatever is logged or shown.
    pub fn redactor(&self) -> &Redactor {
        &self.0.redactor
    }

    /// Opens a run with limits of its own. What the run used in an earlier life is read back.
    pub async fn session(&self, scope: Scope, limits: Limits) -> Result<Session, Stop> {
        self.session_in(scope, Budget::new(limits)).await
    }

    /// Opens a run that goes on, of which the caller knows that it has used so much: what a program
    /// saves of its own steps may be newer than what the gateway was told. Of steps, tokens and money the
    /// larger figure counts; of the rest, the gateway's.
    pub async fn resume(
        &self,
        scope: Scope,
        limits: Limits,
        known: &Usage,
    ) -> Result<Session, Stop> {
        self.resume_in(scope, Budget::new(limits), known).await
    }

    /// [`Gateway::resume`] for a run that spends from this purse.
    pub async fn resume_in(
        &self,
        scope: Scope,
        budget: Budget,
        known: &Usage,
    ) -> Result<Session, Stop> {
        Session::open(self.0.clone(), scope, budget, known).await
    }

    /// Opens a run that spends from this purse: a child of another run, with a run id of its own.
    ///
    /// The purse is charged with what the run used in earlier lives, so each opening takes a purse of its
    /// own.
    pub async fn session_in(&self, scope: Scope, budget: Budget) -> Result<Session, Stop> {
        Session::open(self.0.clone(), scope, budget, &Usage::default()).await
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.catalogue().iter().map(|tool| &tool.name).collect();
        f.debug_struct("Gateway")
            .field("tools", &names)
            .field("policy", self.0.rules.policy())
            .finish_non_exhaustive()
    }
}

impl Parts {
    pub(crate) fn tool(&self, name: &str) -> Option<&Registered> {
        self.tools.get(name)
    }

    /// The names that a model could use instead of a wrong one: all that are not denied, also where people are asked.
    pub(crate) fn usable_names(&self) -> impl Iterator<Item = &str> {
        let policy = self.rules.policy();
        let names = self.catalogue.iter().map(|tool| tool.name.as_str());
        names.filter(|name| !matches!(policy.verdict(name), Verdict::Denied { .. }))
    }
}

/// Collects tools and a policy; all mistakes are told at once by [`Builder::build`].
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    store: Arc<dyn Store>,
    policy: Policy,
    redaction: Redaction,
    seal: Seal,
    rights: Option<Arc<dyn Rights>>,
    provided: Vec<Arc<dyn Any + Send + Sync>>,
    tools: Vec<Named>,
}

impl Builder {
    /// Registers a tool of its own type, or a function with `#[tool]`: `.tool(function {})`.
    pub fn tool<T: Tool>(mut self, tool: T) -> Builder {
        self.tools.push(Named::typed(tool));
        self
    }

    /// Registers an effect. The policy has to ask a person about it.
    pub fn effect<E: Effect>(mut self, effect: E) -> Builder {
        self.tools.push(Named::effect(effect));
        self
    }

    /// Registers a function that reads.
    pub fn read<A, O, Fut>(
        mut self,
        name: impl Into<String>,
        about: impl Into<String>,
        run: impl Fn(A) -> Fut + Send + Sync + 'static,
    ) -> Builder
    where
        A: DeserializeOwned + schemars::JsonSchema + Send + 'static,
        O: IntoOutput + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        self.tools
            .push(Named::function(name.into(), about.into(), run));
        self
    }

    /// Registers a tool whose schema is known only now.
    pub fn dynamic(mut self, tool: DynTool) -> Builder {
        self.tools.push(Named::dynamic(tool));
        self
    }

    /// Lets tools have this injected, by its type: a client, a setting. Of two of one type the later one
    /// counts; what is given to a single call comes before either.
    pub fn inject<T: Any + Send + Sync>(mut self, value: T) -> Builder {
        self.provided.push(Arc::new(value));
        self
    }

    /// Sets the rules. Without any, everything is denied.
    pub fn policy(mut self, policy: Policy) -> Builder {
        self.policy = policy;
        self
    }

    /// Asks for a proof on every approval that it was given by a desk with this key, which is not in the store.
    pub fn seal(mut self, key: impl Into<SealKey>) -> Builder {
        self.seal = Seal::by(key.into());
        self
    }

    /// Has it asked whether those who signed an action may still sign it, when it is started and just before it is
    /// handed over. Who may not any more makes it `held`: others have to decide.
    pub fn rights(mut self, rights: impl Rights) -> Builder {
        self.rights = Some(Arc::new(rights));
        self
    }

    /// Says what else is secret.
    pub fn redaction(mut self, redaction: Redaction) -> Builder {
        self.redaction = redaction;
        self
    }

    /// Checks everything and builds the gateway.
    pub fn build(self) -> Result<Gateway, Error> {
        let mut faults = Vec::new();
        let mut catalogue = Vec::new();
        let mut tools = HashMap::new();
        for named in self.tools {
            let spec = named.spec.clone();
            if !is_tool_name(&spec.name) {
                faults.push(Fault::BadName(spec.name.clone()));
            }
            if named.changes_without_warrant() {
                faults.push(Fault::NoWarrant {
                    tool: spec.name.clone(),
                    level: spec.level,
                });
            }
            match named.register() {
                Err(why) => faults.push(Fault::BadSchema {
                    tool: spec.name.clone(),
                    why,
                }),
                Ok(tool) => {
                    if tools.insert(spec.name.clone(), tool).is_some() {
                        faults.push(Fault::Twice(spec.name.clone()));
                    }
                }
            }
            catalogue.push(spec);
        }
        faults.extend(self.policy.check(&catalogue));
        if !faults.is_empty() {
            return Err(Error::Build(faults));
        }
        let warnings = policy_warnings(&self.policy, &catalogue);
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        Ok(Gateway(Arc::new(Parts {
            store: self.store,
            rules: PolicyEngine::new(self.policy, &catalogue),
            redactor: Redactor::new(&self.redaction),
            kills: Kills::default(),
            seal: self.seal,
            rights: self.rights,
            provided: self.provided,
            tools,
            catalogue,
            warnings,
        })))
    }
}

fn is_tool_name(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=128).contains(&name.len()) && name.bytes().all(fine)
}

fn policy_warnings(policy: &Policy, catalogue: &[ToolSpec]) -> Vec<String> {
    let registered = |pattern: &str| catalogue.iter().any(|tool| fits(pattern, &tool.name));
    let hint = |name: &str| match suggestion(name, catalogue) {
        Some(close) => format!("; did you mean `{close}`?"),
        None => String::new(),
    };
    let allowed = policy
        .allow_unregistered
        .iter()
        .filter(|name| !registered(name));
    let allowed = allowed.map(|name| {
        format!("`{name}` is allowed, but no such tool is registered: a call of it will end as tool_missing:{name}{}", hint(name))
    });
    // A pattern may be meant for tools that come and go; a name that denies nothing is worth a word.
    let denied = policy
        .deny
        .iter()
        .filter(|name| !name.contains('*') && !registered(name));
    let denied = denied.map(|name| {
        format!(
            "`{name}` is denied, but no such tool is registered{}",
            hint(name)
        )
    });
    allowed.chain(denied).collect()
}

fn suggestion(name: &str, catalogue: &[ToolSpec]) -> Option<String> {
    let known = catalogue.iter().map(|tool| tool.name.as_str());
    closest(name, known).map(str::to_owned)
}

#[cfg(test)]
mod tests;
