//! The examples of rules, tried: whether each call is spoken about as its rule says.
//!
//! `check` asks when a gateway is built, `paraph policy test` for a person. Nothing here decides about a call.

use super::fault::RuleFault;
use super::rule::{self, Example, Facts, Rule};
use super::{Policy, time};
use crate::json::{Bounds, Json};
use crate::tool::{Level, ToolSpec};
use serde::Serialize;

/// An example that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// The rule's name.
    pub rule: String,
    /// `matching` or `not_matching`.
    pub list: &'static str,
    /// Its place in the list, from 1.
    pub number: usize,
    /// What is wrong with it; nothing if it comes out as its rule says.
    pub fault: Option<String>,
}

impl Tried {
    /// The same as a mistake of its rule, if it is one.
    pub(super) fn fault(self) -> Option<RuleFault> {
        let (list, number) = (self.list, self.number);
        let fault = |why| RuleFault::Example { list, number, why };
        self.fault.map(fault)
    }
}

impl Policy {
    /// Tries every example of every rule, in the order in which they are written. A rule that cannot be read fails
    /// all of its own.
    pub fn try_examples(&self, tools: &[ToolSpec]) -> Vec<Tried> {
        self.rules
            .iter()
            .flat_map(|rule| match rule::Compiled::of(rule) {
                Ok(_) => tried(rule, tools),
                Err(fault) => unread(rule, &fault),
            })
            .collect()
    }
}

/// The examples of one rule; none if it cannot be read.
pub(super) fn tried(rule: &Rule, tools: &[ToolSpec]) -> Vec<Tried> {
    let Ok(compiled) = rule::Compiled::of(rule) else {
        return Vec::new();
    };
    each(rule, |example, wanted| {
        example_fault((rule, &compiled), example, wanted, tools)
    })
}

fn unread(rule: &Rule, fault: &RuleFault) -> Vec<Tried> {
    each(rule, |_, _| {
        Some(format!("its rule cannot be read: {fault}"))
    })
}

fn each(rule: &Rule, fault: impl Fn(&Example, bool) -> Option<String>) -> Vec<Tried> {
    let lists = [
        ("matching", &rule.examples.matching, true),
        ("not_matching", &rule.examples.not_matching, false),
    ];
    let mut all = Vec::new();
    for (list, examples, wanted) in lists {
        for (index, example) in examples.iter().enumerate() {
            all.push(Tried {
                rule: rule.name.clone(),
                list,
                number: index + 1,
                fault: fault(example, wanted),
            });
        }
    }
    all
}

/// Why an example does not come out as wanted, if it does not.
fn example_fault(
    (rule, compiled): (&Rule, &rule::Compiled),
    example: &Example,
    wanted: bool,
    tools: &[ToolSpec],
) -> Option<String> {
    let text = match example.args.as_str() {
        "" => "{}",
        text => text,
    };
    let args = match Json::read(text, Bounds::default()) {
        Ok(args) => args,
        Err(error) => return Some(format!("has arguments that cannot be read: {error}")),
    };
    let tool = match (example.tool.as_str(), rule.tools.first()) {
        ("", Some(first)) => first,
        (tool, _) => tool,
    };
    let registered = tools.iter().find(|spec| spec.name == tool);
    // What is not known to be harmless is not.
    let level = match (registered, example.level) {
        (Some(spec), _) => spec.level,
        (None, level) => level.unwrap_or(Level::Write),
    };
    let facts = Facts {
        agent: &example.agent,
        user: &example.user,
        tenant: &example.tenant,
        tainted: &example.origin,
        minute: example.at.map(time::minute_of_day),
        args: args.view(),
    };
    match (compiled.silence(tool, level, &facts), wanted) {
        (None, true) | (Some(_), false) => None,
        (None, false) => Some("is spoken about, and is not to be".to_owned()),
        (Some(misfit), true) => Some(format!(
            "is not spoken about: {}",
            compiled.words(misfit, tool)
        )),
    }
}
