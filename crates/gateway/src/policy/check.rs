//! What is wrong with a policy, all of it at once, before anything is judged by it.
//!
//! The gateway's builder asks; it is not built if there is an answer. Nothing here decides about a call.

use super::condition::{Condition, Operator};
use super::decimal::Exact;
use super::example::{Tried, tried};
use super::fault::RuleFault;
use super::flow::Binding;
use super::pointer::Pointer;
use super::rule::{self, Rule, Then};
use super::scalar::Scalar;
use super::{Policy, Verdict, closest, fits, flow, grant};
use crate::error::Fault;
use crate::tool::ToolSpec;
use std::collections::{BTreeMap, BTreeSet};

/// The longest name of a rule or a grant, in bytes.
const MAX_NAME: usize = 64;

impl Policy {
    /// What is wrong with this policy for these tools: unknown tools and arguments, what cannot be read,
    /// conditions that contradict each other, effects that are merely allowed, and examples that do not
    /// come out as their rule says. Nothing if it is fine.
    pub fn check(&self, tools: &[ToolSpec]) -> Vec<Fault> {
        let mut faults = self.list_faults(tools);
        let mut names = BTreeSet::new();
        for rule in &self.rules {
            let mut found = rule_faults(rule, tools);
            found.extend(self.origin_faults(rule, tools));
            if !names.insert(&rule.name) {
                found.push(RuleFault::Twice);
            }
            faults.extend(in_part(&format!("rule `{}`", rule.name), found));
        }
        let mut names = BTreeSet::new();
        for grant in &self.grants {
            let mut found = grant_faults(grant, tools);
            if !names.insert(&grant.name) {
                found.push(RuleFault::Twice);
            }
            faults.extend(in_part(&format!("grant `{}`", grant.name), found));
        }
        faults.extend(in_part("flow rules", self.flow_faults(tools)));
        faults
    }

    fn list_faults(&self, tools: &[ToolSpec]) -> Vec<Fault> {
        let asked = || self.ask.iter().map(|(pattern, _)| pattern);
        let mut faults = Vec::new();
        let all = self.allow.iter().chain(&self.allow_unregistered);
        if all.chain(asked()).chain(&self.deny).any(String::is_empty) {
            faults.push(Fault::EmptyPattern);
        }
        for tool in tools {
            let effect = tool.level.is_effect();
            if effect && self.verdict_at(&tool.name, tool.level) == Verdict::Allowed {
                faults.push(Fault::EffectAllowed {
                    tool: tool.name.clone(),
                    level: tool.level,
                });
            }
        }
        for pattern in self.allow.iter().chain(asked()) {
            if !pattern.is_empty() && !is_registered(pattern, tools) {
                faults.push(Fault::UnknownTool {
                    name: pattern.clone(),
                    suggestion: suggestion(pattern, tools),
                });
            }
        }
        for (pattern, ask) in &self.ask {
            if ask.quorum == 0 {
                faults.extend(in_part(
                    &format!("rule `ask:{pattern}`"),
                    vec![RuleFault::NoQuorum],
                ));
            }
        }
        faults
    }

    /// Origins that no run can have read from: their rule would never speak.
    fn origin_faults(&self, rule: &Rule, tools: &[ToolSpec]) -> Vec<RuleFault> {
        let untrusted = |name: &str| {
            let mut patterns = self.flow.untrusted.iter();
            patterns.any(|pattern| fits(pattern, name))
        };
        let read = |origin: &&String| {
            let mut names = tools.iter().map(|tool| tool.name.as_str());
            names.any(|name| fits(origin, name) && untrusted(name))
        };
        let all = rule.origin.iter().filter(|origin| !origin.is_empty());
        all.filter(|origin| !read(origin))
            .map(|origin| RuleFault::Trusted(origin.clone()))
            .collect()
    }

    fn flow_faults(&self, tools: &[ToolSpec]) -> Vec<RuleFault> {
        let mut faults = pattern_faults(&self.flow.untrusted, tools, false);
        if self.flow.untrusted.iter().any(String::is_empty) {
            faults.push(RuleFault::EmptyPattern("untrusted"));
        }
        for binding in &self.flow.bound {
            faults.extend(binding_faults(binding, tools));
        }
        faults
    }
}

fn in_part(part: &str, faults: Vec<RuleFault>) -> impl Iterator<Item = Fault> {
    faults.into_iter().map(move |fault| Fault::Policy {
        part: part.to_owned(),
        fault,
    })
}

fn rule_faults(rule: &Rule, tools: &[ToolSpec]) -> Vec<RuleFault> {
    let mut faults = Vec::new();
    if !is_name(&rule.name) {
        faults.push(RuleFault::BadName);
    }
    faults.extend(rule::Compiled::of(rule).err());
    faults.extend(pattern_faults(&rule.tools, tools, rule.then != Then::Deny));
    let pointers = rule.when.iter().map(|one| one.pointer.as_str());
    faults.extend(argument_faults(&rule.tools, pointers, tools));
    faults.extend(contradictions(&rule.when));
    faults.extend(tried(rule, tools).into_iter().filter_map(Tried::fault));
    faults
}

fn grant_faults(grant: &grant::Grant, tools: &[ToolSpec]) -> Vec<RuleFault> {
    let mut faults = Vec::new();
    if !is_name(&grant.name) {
        faults.push(RuleFault::BadName);
    }
    faults.extend(grant::Compiled::of(grant).err());
    let own = std::slice::from_ref(&grant.tool);
    if !grant.tool.contains('*') {
        faults.extend(pattern_faults(own, tools, true));
    }
    let caps = grant.at_most.iter().chain(&grant.sum_per_day);
    let pointers = caps.map(|(pointer, _)| pointer.as_str());
    let conditions = grant.when.iter().map(|one| one.pointer.as_str());
    faults.extend(argument_faults(own, pointers.chain(conditions), tools));
    faults.extend(contradictions(&grant.when));
    faults
}

fn binding_faults(binding: &Binding, tools: &[ToolSpec]) -> Vec<RuleFault> {
    let mut faults: Vec<_> = flow::Compiled::of(binding).err().into_iter().collect();
    faults.extend(pattern_faults(&binding.tools, tools, false));
    if binding.target.is_empty() {
        faults.push(RuleFault::BadName);
    }
    let pointers = std::iter::once(binding.pointer.as_str());
    faults.extend(argument_faults(&binding.tools, pointers, tools));
    faults
}

/// Patterns for tools that name none. One with a `*` may be meant for tools that come and go, unless it
/// is to let them run.
fn pattern_faults(patterns: &[String], tools: &[ToolSpec], lets_run: bool) -> Vec<RuleFault> {
    let mut faults = Vec::new();
    for pattern in patterns.iter().filter(|pattern| !pattern.is_empty()) {
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.*".contains(&byte);
        if !pattern.bytes().all(fine) {
            faults.push(RuleFault::BadPattern(pattern.clone()));
        } else if (lets_run || !pattern.contains('*')) && !is_registered(pattern, tools) {
            faults.push(RuleFault::UnknownTool {
                name: pattern.clone(),
                suggestion: suggestion(pattern, tools),
            });
        }
    }
    faults
}

/// Pointers to arguments that none of the tools takes. Of a tool that takes any arguments nothing is known.
fn argument_faults<'p>(
    patterns: &[String],
    pointers: impl Iterator<Item = &'p str>,
    tools: &[ToolSpec],
) -> Vec<RuleFault> {
    let meant = tools
        .iter()
        .filter(|tool| patterns.iter().any(|pattern| fits(pattern, &tool.name)));
    let mut known = BTreeSet::new();
    let mut some = false;
    for tool in meant {
        let Some(arguments) = arguments(tool) else {
            return Vec::new();
        };
        known.extend(arguments);
        some = true;
    }
    let mut faults = Vec::new();
    for text in pointers.filter(|_| some) {
        let pointer = Pointer::read(text);
        let argument = pointer.as_ref().and_then(Pointer::argument);
        let Some(argument) = argument.filter(|argument| !known.contains(argument)) else {
            continue;
        };
        let close = closest(argument, known.iter().copied());
        faults.push(RuleFault::UnknownArgument {
            pointer: text.to_owned(),
            suggestion: close
                .map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))),
        });
    }
    faults
}

/// What a tool takes, if its schema accepts nothing else.
fn arguments(tool: &ToolSpec) -> Option<Vec<&str>> {
    let closed = tool.schema.get("additionalProperties") == Some(&serde_json::Value::Bool(false));
    let properties = tool
        .schema
        .get("properties")
        .and_then(serde_json::Value::as_object);
    match (closed, properties) {
        (true, Some(properties)) => Some(properties.keys().map(String::as_str).collect()),
        (true, None) => Some(Vec::new()),
        (false, _) => None,
    }
}

/// Pointers whose conditions no value meets.
fn contradictions(conditions: &[Condition]) -> Vec<RuleFault> {
    let mut by_pointer: BTreeMap<&str, Vec<&Operator>> = BTreeMap::new();
    for condition in conditions {
        let all = by_pointer.entry(&condition.pointer).or_default();
        all.push(&condition.is);
    }
    let impossible = by_pointer
        .into_iter()
        .filter(|(_, operators)| contradict(operators));
    impossible
        .map(|(pointer, _)| RuleFault::Impossible(pointer.to_owned()))
        .collect()
}

fn contradict(operators: &[&Operator]) -> bool {
    let (mut numbers, mut lengths) = (Interval::default(), Interval::default());
    let mut equal: Option<&Scalar> = None;
    let mut other = false;
    for operator in operators {
        match operator {
            Operator::AtMost(bound) => numbers.end(bound.exact(), true),
            Operator::Below(bound) => numbers.end(bound.exact(), false),
            Operator::AtLeast(bound) => numbers.begin(bound.exact(), true),
            Operator::Above(bound) => numbers.begin(bound.exact(), false),
            Operator::LengthAtMost(bound) => lengths.end(Exact::from(*bound), true),
            Operator::LengthAtLeast(bound) => lengths.begin(Exact::from(*bound), true),
            Operator::Equals(value) => {
                if let Scalar::Number(number) = value {
                    numbers.begin(number.exact(), true);
                    numbers.end(number.exact(), true);
                } else {
                    other |= equal.is_some_and(|earlier| earlier != value);
                    equal = Some(value);
                }
            }
            _ => {}
        }
    }
    let said = |wanted: &Operator| operators.contains(&wanted);
    let both = said(&Operator::Present) && said(&Operator::Absent);
    other || both || numbers.is_empty() || lengths.is_empty()
}

/// Bounds, each with whether it belongs to what it bounds.
#[derive(Default)]
struct Interval {
    low: Option<(Exact, bool)>,
    high: Option<(Exact, bool)>,
}

impl Interval {
    fn begin(&mut self, bound: Exact, included: bool) {
        let tighter =
            |(low, closed): &(Exact, bool)| bound > *low || (bound == *low && *closed && !included);
        if self.low.as_ref().is_none_or(tighter) {
            self.low = Some((bound, included));
        }
    }

    fn end(&mut self, bound: Exact, included: bool) {
        let tighter = |(high, closed): &(Exact, bool)| {
            bound < *high || (bound == *high && *closed && !included)
        };
        if self.high.as_ref().is_none_or(tighter) {
            self.high = Some((bound, included));
        }
    }

    fn is_empty(&self) -> bool {
        match (&self.low, &self.high) {
            (Some((low, from)), Some((high, to))) => low > high || (low == high && !(*from && *to)),
            _ => false,
        }
    }
}

fn is_name(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b" _-.".contains(&byte);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(fine)
}

fn is_registered(pattern: &str, tools: &[ToolSpec]) -> bool {
    tools.iter().any(|tool| fits(pattern, &tool.name))
}

fn suggestion(pattern: &str, tools: &[ToolSpec]) -> Option<String> {
    let known = tools.iter().map(|tool| tool.name.as_str());
    closest(pattern, known).map(str::to_owned)
}

#[cfg(test)]
mod tests;
