//! What an agent may call. Pure rules; the builder checks them, the session asks them.
//!
//! The strictest rule that fits decides, in whatever order the rules were written: a denial, then a
//! question to a person, then an allowance. No rule at all is a denial. The page `policies` of the crate's
//! manual shows all of it by example.
//!
//! - `rule`, `condition` (with `pointer`, `scalar`, `decimal`, `pattern`, `time`): what rules are made of.
//! - `ask`, `grant`, `flow`: how people are asked, what may sign for them, what untrusted text closes.
//! - `engine`: decides. `account`: how it came to a decision. `explain`, `hash`: words, a name.
//! - `check` and `fault`: what is wrong with a policy; `example`: the examples of its rules, tried.

mod account;
mod ask;
mod check;
mod condition;
mod decimal;
mod engine;
mod example;
mod explain;
mod fault;
mod flow;
mod grant;
mod hash;
mod pattern;
mod pointer;
mod rule;
mod scalar;
mod time;

pub use account::{Account, GrantHeard, Heard, Part};
pub use ask::Ask;
pub use condition::{Condition, Operator};
pub use decimal::Decimal;
pub use engine::{Decision, PolicyEngine, Request};
pub use example::Tried;
pub use fault::RuleFault;
pub use flow::{Binding, Flow, Targets};
pub(crate) use grant::grants_of;
pub use grant::{Fit, Grant, GrantUse, Take};
pub(crate) use pattern::{closest, fits};
pub use rule::{Example, Examples, Hours, Rule, Then};
pub use scalar::Scalar;
pub(crate) use time::day;
pub use time::instant;

use crate::tool::Level;
use serde::{Deserialize, Serialize};

/// The rules of one agent.
///
/// The lists name tools, or several with `*` for any text (`drop_*`, `*_secret`, `*`). What depends on
/// arguments, people, times or what a run has read is a [`Rule`].
///
/// ```
/// use paraph_gateway::{Ask, Policy, Verdict};
/// let policy = Policy::new().allow(["search_*", "pay"]).ask("pay", Ask::default()).deny(["*_private"]);
/// assert_eq!(policy.verdict("search_docs"), Verdict::Allowed);
/// assert_eq!(policy.verdict("search_private"), Verdict::Denied { named: true });
/// assert_eq!(policy.verdict("rm"), Verdict::Denied { named: false });
/// assert!(matches!(policy.verdict("pay"), Verdict::Ask(_)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Names and patterns that are allowed. Each has to fit a registered tool.
    pub allow: Vec<String>,
    /// Names that are allowed whether or not such a tool is registered: a call of one that is not ends
    /// as `tool_missing`, and the gateway warns when it is built.
    pub allow_unregistered: Vec<String>,
    /// Names and patterns that a person has to approve, each time.
    #[serde(deserialize_with = "ask::read_list")]
    pub ask: Vec<(String, Ask)>,
    /// Names and patterns that are never allowed.
    pub deny: Vec<String>,
    /// Rules that look further than at the name.
    pub rules: Vec<Rule>,
    /// Standing signatures.
    pub grants: Vec<Grant>,
    /// What holds after a run has read untrusted text.
    pub flow: Flow,
}

/// What the policy says about one name, or about one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may run.
    Allowed,
    /// A person has to approve it.
    Ask(Ask),
    /// It may not run.
    Denied {
        /// A rule denies it; otherwise no rule names it.
        named: bool,
    },
}

impl Policy {
    /// No rules: everything is denied.
    pub fn new() -> Policy {
        Policy::default()
    }

    /// Allows tools that read.
    #[must_use]
    pub fn allow(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Policy {
        self.allow.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Allows names that may not be registered; see [`Policy::allow_unregistered`].
    #[must_use]
    pub fn allow_unregistered(
        mut self,
        tools: impl IntoIterator<Item = impl Into<String>>,
    ) -> Policy {
        self.allow_unregistered
            .extend(tools.into_iter().map(Into::into));
        self
    }

    /// Asks a person before the tool runs.
    #[must_use]
    pub fn ask(mut self, tool: impl Into<String>, ask: Ask) -> Policy {
        self.ask.push((tool.into(), ask));
        self
    }

    /// Denies tools, whatever else allows them.
    #[must_use]
    pub fn deny(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Policy {
        self.deny.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Adds a rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Policy {
        self.rules.push(rule);
        self
    }

    /// Adds a standing signature.
    #[must_use]
    pub fn grant(mut self, grant: Grant) -> Policy {
        self.grants.push(grant);
        self
    }

    /// Says whose output strangers may have written: after a run has read it, an effect reaches only what
    /// the program bound.
    #[must_use]
    pub fn untrusted(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Policy {
        let tools = tools.into_iter().map(Into::into);
        self.flow.untrusted.extend(tools);
        self
    }

    /// Says which argument of a tool is a target that the program binds, and under which name.
    #[must_use]
    pub fn bound(
        mut self,
        tool: impl Into<String>,
        pointer: impl Into<String>,
        target: impl Into<String>,
    ) -> Policy {
        self.flow.bound.push(Binding {
            tools: vec![tool.into()],
            pointer: pointer.into(),
            target: target.into(),
        });
        self
    }

    /// The most that the rules can say about a call of a tool of this name, before its arguments are
    /// known. What depends on more than the name only counts where it lets something run;
    /// [`PolicyEngine::decide`] says what holds for one call.
    pub fn verdict(&self, name: &str) -> Verdict {
        self.most(name, None)
    }

    /// The same of a tool of which it is known what it does to the world.
    pub fn verdict_at(&self, name: &str, level: Level) -> Verdict {
        self.most(name, Some(level))
    }

    fn most(&self, name: &str, level: Option<Level>) -> Verdict {
        let named = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, name));
        let always = |rule: &&Rule| rule.always_speaks(name, level);
        let ever = |rule: &&Rule| rule.may_speak(name, level);
        let denies = |rule: &Rule| rule.then == Then::Deny;
        if named(&self.deny) || self.rules.iter().filter(always).any(denies) {
            return Verdict::Denied { named: true };
        }
        let asks = |rule: &Rule| match rule.then {
            Then::Ask(ask) => Some(ask),
            Then::Allow | Then::Deny => None,
        };
        let listed = self.ask.iter().filter(|(pattern, _)| fits(pattern, name));
        let listed = listed.map(|(_, ask)| *ask);
        let ruled = self.rules.iter().filter(always).filter_map(asks);
        if let Some(ask) = listed.chain(ruled).reduce(Ask::stricter) {
            return Verdict::Ask(ask);
        }
        let allows = |rule: &Rule| rule.then == Then::Allow;
        if named(&self.allow)
            || named(&self.allow_unregistered)
            || self.rules.iter().filter(ever).any(allows)
        {
            return Verdict::Allowed;
        }
        match self.rules.iter().filter(ever).find_map(asks) {
            Some(ask) => Verdict::Ask(ask),
            None => Verdict::Denied { named: false },
        }
    }

    /// 64 hexadecimal digits that stand for these rules: SHA-256 over their canonical JSON. The same rules
    /// have the same hash in every build.
    pub fn hash(&self) -> String {
        hash::of(self)
    }
}

#[cfg(test)]
mod tests;
