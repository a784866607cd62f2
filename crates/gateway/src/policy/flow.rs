//! Flow rules: after a run has read what strangers wrote, its effects reach only what the program bound.
//!
//! A text cannot give orders about a target that it does not choose. The policy says which tools bring in
//! untrusted text and which argument of an effect is its target; the program, never the model, says for
//! each run what the target is. The engine asks here; who notes what a run has read is the session.

use super::fault::RuleFault;
use super::fits;
use super::pointer::Pointer;
use super::scalar::{Scalar, Value};
use crate::json::View;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a program bound for a run, by name: `"user"` to 42, `"issue"` to `"I_kwDO"`.
pub type Targets = BTreeMap<String, Scalar>;

/// Which tools bring in untrusted text, and where effects carry their targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Flow {
    /// Names and patterns of tools whose output strangers may have written.
    pub untrusted: Vec<String>,
    /// The targets of effects. An effect without one cannot happen in a run that read untrusted text.
    pub bound: Vec<Binding>,
}

/// An argument that has to be what the program bound for the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// Names and patterns of tools.
    pub tools: Vec<String>,
    /// A JSON pointer to the argument.
    pub pointer: String,
    /// The name under which the program binds the target.
    pub target: String,
}

/// A binding, read once.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    tools: Vec<String>,
    written: String,
    pointer: Pointer,
    target: String,
}

impl Compiled {
    pub(super) fn of(binding: &Binding) -> Result<Compiled, RuleFault> {
        if binding.tools.is_empty() {
            return Err(RuleFault::NoTools);
        }
        if binding.tools.iter().any(String::is_empty) {
            return Err(RuleFault::EmptyPattern("tools"));
        }
        let pointer = Pointer::read(&binding.pointer)
            .ok_or_else(|| RuleFault::BadPointer(binding.pointer.clone()))?;
        Ok(Compiled {
            tools: binding.tools.clone(),
            written: binding.pointer.clone(),
            pointer,
            target: binding.target.clone(),
        })
    }

    pub(super) fn is_about(&self, tool: &str) -> bool {
        self.tools.iter().any(|pattern| fits(pattern, tool))
    }

    /// Why the arguments do not keep to what was bound, if they do not.
    pub(super) fn breach(&self, args: View<'_>, targets: &Targets) -> Option<String> {
        let (pointer, target) = (&self.written, &self.target);
        let Some(bound) = targets.get(target) else {
            return Some(format!(
                "the program bound no `{target}`, which `{pointer}` has to be"
            ));
        };
        let given = self.pointer.find(args);
        let same = given.is_some_and(|given| Value::of(bound).equals(&given.shape()) == Some(true));
        (!same).then(|| format!("`{pointer}` is not the `{target}` that the program bound"))
    }
}
