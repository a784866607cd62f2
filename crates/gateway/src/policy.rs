//! What an agent may call. Pure rules; the builder checks them, the session asks them.
//!
//! The strictest rule that fits a name decides, in whatever order the rules were written: a denial, then a
//! question to a person, then an allowance. No rule at all is a denial.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The rules of one agent.
///
/// A rule names a tool, or several with `*` for any text (`drop_*`, `*_secret`, `*`).
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
    pub ask: Vec<(String, Ask)>,
    /// Names and patterns that are never allowed.
    pub deny: Vec<String>,
}

/// How a person is asked. Until there is somebody to ask, the call is refused whatever this says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// How long the question stands.
    pub expires: Duration,
    /// Whether whoever asked for the action may not be the one who approves it.
    pub not_by_requester: bool,
}

impl Default for Ask {
    /// One hour, by anybody.
    fn default() -> Ask {
        Ask {
            expires: Duration::from_secs(3600),
            not_by_requester: false,
        }
    }
}

/// What the policy says about one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'p> {
    /// It may run.
    Allowed,
    /// A person has to approve it.
    Ask(&'p Ask),
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

    /// What the rules say about a tool of this name.
    pub fn verdict(&self, name: &str) -> Verdict<'_> {
        let named = |rules: &[String]| rules.iter().any(|pattern| fits(pattern, name));
        if named(&self.deny) {
            return Verdict::Denied { named: true };
        }
        if let Some((_, ask)) = self.ask.iter().find(|(pattern, _)| fits(pattern, name)) {
            return Verdict::Ask(ask);
        }
        match named(&self.allow) || named(&self.allow_unregistered) {
            true => Verdict::Allowed,
            false => Verdict::Denied { named: false },
        }
    }
}

/// Whether a pattern, in which `*` stands for any text, fits the whole name. Linear in the name for
/// each `*`, whatever the two are.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The known name that is closest to a mistyped one, if any is close.
pub(crate) fn closest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let length = name.chars().count();
    known
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= 1 + length / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests;
