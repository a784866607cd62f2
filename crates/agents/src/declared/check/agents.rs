//! Who calls whom: agents that are not there, that are never called, or that would call themselves.

use super::{Checker, Whose};
use crate::declared::mistake::did_you_mean;
use std::collections::BTreeSet;

/// How many agents may stand above one another, the main one included.
const MAX_DEPTH: usize = 5;

impl Checker<'_> {
    /// Checks `tools.agents` of all agents together.
    pub(super) fn calls(&mut self) {
        let names: Vec<String> = self.file.agents.keys().cloned().collect();
        let mut called = BTreeSet::new();
        let callers: Vec<_> = std::iter::once(None)
            .chain(names.iter().map(Some))
            .collect();
        for caller in callers {
            let whose = Whose(caller.map(String::as_str));
            for callee in self.callees(whose.0) {
                if names.contains(&callee) {
                    called.insert(callee);
                    continue;
                }
                let what = match callee == self.file.name {
                    true => format!("`{callee}` is the main agent, which nobody calls"),
                    false => format!("this file has no agent `{callee}`"),
                };
                let advice = did_you_mean(&callee, names.iter().map(String::as_str));
                self.wrong_entry((whose, &["tools", "agents"]), &callee, what, advice);
            }
        }
        for name in names.iter().filter(|name| !called.contains(*name)) {
            let what = format!("no agent calls `{name}`");
            let instead =
                format!("name it in the `tools.agents` of another: `agents = [\"{name}\"]`");
            self.wrong((Whose(None), &["agents", name]), what, instead);
        }
        self.descend(&mut Vec::new(), &mut BTreeSet::new(), None);
    }

    fn callees(&self, caller: Option<&str>) -> Vec<String> {
        let spec = match caller {
            None => Some(&self.file.main),
            Some(name) => self.file.agents.get(name),
        };
        spec.map(|spec| spec.tools.agents.clone())
            .unwrap_or_default()
    }

    /// Follows the calls downwards. `seen` are agents below which nothing is wrong.
    fn descend(
        &mut self,
        above: &mut Vec<String>,
        seen: &mut BTreeSet<(usize, String)>,
        caller: Option<&str>,
    ) {
        for callee in self.callees(caller) {
            let whose = Whose(caller);
            if !self.file.agents.contains_key(&callee)
                || seen.contains(&(above.len(), callee.clone()))
            {
                continue;
            }
            if let Some(first) = above.iter().position(|name| *name == callee) {
                let circle: Vec<_> = above
                    .iter()
                    .skip(first)
                    .chain([&callee])
                    .map(String::as_str)
                    .collect();
                let what = format!(
                    "agents call each other in a circle: {}",
                    circle.join(" -> ")
                );
                let instead = "take one of these calls out, so that every call comes to an end";
                self.wrong_entry((whose, &["tools", "agents"]), &callee, what, instead);
                continue;
            }
            if above.len() + 2 > MAX_DEPTH {
                let what = format!(
                    "`{callee}` would be called {} levels deep; {MAX_DEPTH} agents may stand above one another",
                    above.len() + 2
                );
                self.wrong_entry(
                    (whose, &["tools", "agents"]),
                    &callee,
                    what,
                    "let an agent further up call it",
                );
                continue;
            }
            above.push(callee.clone());
            self.descend(above, seen, Some(&callee));
            above.pop();
            seen.insert((above.len(), callee));
        }
    }
}
