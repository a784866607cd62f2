//! What an effect found out about its arguments before anybody signed, and how that compares with what is so now.
//!
//! It is part of an action's bytes. The session asks the effect when it proposes an action, and once more before it
//! hands it over; people are shown what is not the same any more. Nothing here looks anywhere.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many targets, and how many preconditions, an action has at most.
const MAX_ENTRIES: usize = 32;

/// Bytes of a name.
const MAX_NAME: usize = 64;

/// Bytes of a value: an id, a state, a hash. A whole text is compared by its hash.
const MAX_VALUE: usize = 1 << 10;

/// What an effect found out about its arguments, by [`Effect::resolve`](crate::Effect::resolve). It is signed with them.
///
/// ```
/// use paraph_gateway::Resolved;
/// let seen = Resolved::new().target("repository", "R_kgDOA1").precondition("issue state", "open");
/// assert_eq!(seen.targets["repository"], "R_kgDOA1");
/// assert_eq!(seen.preconditions["issue state"], "open");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resolved {
    /// What the arguments' names stand for, as ids that no renaming changes.
    pub targets: BTreeMap<String, String>,
    /// What was seen and has to be so still when the action is handed over. Whoever would rather not have a text in
    /// the records for ever gives its hash.
    pub preconditions: BTreeMap<String, String>,
}

/// Something that is not as it was when an action was proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// What it is, by the name that the effect gave it.
    pub name: String,
    /// Whether it is a target; otherwise it is a precondition.
    pub target: bool,
    /// What was seen and signed; nothing if it was not there.
    pub seen: Option<String>,
    /// What is so now; nothing if it is gone.
    pub now: Option<String>,
}

impl Resolved {
    /// Nothing.
    #[must_use]
    pub fn new() -> Resolved {
        Resolved::default()
    }

    /// Says what a name in the arguments stands for.
    #[must_use]
    pub fn target(mut self, name: impl Into<String>, id: impl Into<String>) -> Resolved {
        self.targets.insert(name.into(), id.into());
        self
    }

    /// Says what was seen and has to stay so.
    #[must_use]
    pub fn precondition(mut self, name: impl Into<String>, seen: impl Into<String>) -> Resolved {
        self.preconditions.insert(name.into(), seen.into());
        self
    }

    /// Whether there is nothing to be looked at again.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty() && self.preconditions.is_empty()
    }

    /// What is not the same now.
    pub(crate) fn changes(&self, now: &Resolved) -> Vec<Changed> {
        let mut changes = differences(&self.targets, &now.targets, true);
        changes.extend(differences(&self.preconditions, &now.preconditions, false));
        changes
    }

    /// Why it is too much to be signed, if it is.
    pub(crate) fn fault(&self) -> Option<String> {
        for entries in [&self.targets, &self.preconditions] {
            if entries.len() > MAX_ENTRIES {
                return Some(format!(
                    "it found {} things where {MAX_ENTRIES} can be signed",
                    entries.len()
                ));
            }
            for (name, value) in entries {
                if name.is_empty() || name.len() > MAX_NAME || value.len() > MAX_VALUE {
                    return Some(format!(
                        "a name has 1 to {MAX_NAME} bytes and what stands for it at most {MAX_VALUE}: `{}` has {} and {}",
                        name.chars().take(MAX_NAME).collect::<String>(),
                        name.len(),
                        value.len()
                    ));
                }
            }
        }
        None
    }
}

fn differences(
    seen: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
    target: bool,
) -> Vec<Changed> {
    let gone = seen
        .iter()
        .filter(|(name, value)| now.get(*name) != Some(value));
    let gone = gone.map(|(name, value)| Changed {
        name: name.clone(),
        target,
        seen: Some(value.clone()),
        now: now.get(name).cloned(),
    });
    let new = now.iter().filter(|(name, _)| !seen.contains_key(*name));
    let new = new.map(|(name, value)| Changed {
        name: name.clone(),
        target,
        seen: None,
        now: Some(value.clone()),
    });
    gone.chain(new).collect()
}

/// As a sentence: ``the target `repository` was R_1 and is R_2``.
impl std::fmt::Display for Changed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.target {
            f.write_str("the target ")?;
        }
        let name = &self.name;
        match (&self.seen, &self.now) {
            (Some(seen), Some(now)) => write!(f, "`{name}` was {seen} and is {now}"),
            (Some(seen), None) => write!(f, "`{name}` was {seen} and is gone"),
            (None, Some(now)) => write!(f, "`{name}` was not there and is {now}"),
            (None, None) => write!(f, "`{name}` is not there"),
        }
    }
}
