//! A policy in words, for one tool: what `paraph policy explain` prints of a tool's name.

use super::condition::Condition;
use super::engine::PolicyEngine;
use super::grant::Grant;
use super::rule::{Rule, Then};
use super::{closest, fits, time};
use crate::tool::Level;

impl PolicyEngine {
    /// What the policy says about a tool, a sentence each: what it does, the rules about it from the
    /// strictest on, what holds after untrusted text, and what may sign.
    pub fn explain(&self, tool: &str) -> Vec<String> {
        let Some(level) = self.level(tool) else {
            let close = match closest(tool, self.names()) {
                Some(close) => format!("; the closest is `{close}`"),
                None => String::new(),
            };
            return vec![format!(
                "`{tool}` is not registered, and so it is denied{close}"
            )];
        };
        let mut lines = vec![match level.is_effect() {
            true => format!("`{tool}` is an effect ({level})"),
            false => format!("`{tool}` only reads"),
        }];
        let rules = self.rule_lines(tool, level);
        if rules.is_empty() {
            lines.push("no rule allows it, and so it is denied".to_owned());
        }
        lines.extend(rules);
        lines.extend(self.flow_lines(tool, level));
        let grants = &self.policy().grants;
        lines.extend(
            grants
                .iter()
                .filter(|grant| grant.tool == tool)
                .map(of_grant),
        );
        lines
    }

    fn rule_lines(&self, tool: &str, level: Level) -> Vec<String> {
        let policy = self.policy();
        let fitting = |pattern: &&String| fits(pattern, tool);
        let about = |rule: &&Rule| {
            let levels = rule.levels.is_empty() || rule.levels.contains(&level);
            levels && rule.tools.iter().any(|pattern| fits(pattern, tool))
        };
        let rules = |wanted: fn(Then) -> bool| {
            let said = policy.rules.iter().filter(move |rule| wanted(rule.then));
            said.filter(about).map(of_rule)
        };
        let denied = policy.deny.iter().filter(fitting);
        let asked = policy.ask.iter().filter(|(pattern, _)| fits(pattern, tool));
        let listed = policy.allow.iter().chain(&policy.allow_unregistered);
        denied
            .map(|pattern| format!("`deny:{pattern}`: it is denied"))
            .chain(rules(|then| then == Then::Deny))
            .chain(asked.map(|(pattern, ask)| format!("`ask:{pattern}`: {ask} to approve it")))
            .chain(rules(|then| matches!(then, Then::Ask(_))))
            .chain(
                listed
                    .filter(fitting)
                    .map(|pattern| format!("`allow:{pattern}`: it is allowed")),
            )
            .chain(rules(|then| then == Then::Allow))
            .collect()
    }

    fn flow_lines(&self, tool: &str, level: Level) -> Vec<String> {
        let flow = &self.policy().flow;
        let mut lines = Vec::new();
        if self.is_untrusted(tool) {
            lines.push("what it gives is untrusted text".to_owned());
        }
        if !level.is_effect() {
            return lines;
        }
        let bound: Vec<_> = flow
            .bound
            .iter()
            .filter(|one| one.tools.iter().any(|pattern| fits(pattern, tool)))
            .map(|one| {
                format!(
                    "after untrusted text, `{}` has to be the `{}` that the program bound",
                    one.pointer, one.target
                )
            })
            .collect();
        if bound.is_empty() {
            lines.push("after untrusted text it is denied".to_owned());
        }
        lines.extend(bound);
        lines
    }
}

fn of_rule(rule: &Rule) -> String {
    let says = match rule.then {
        Then::Allow => "it is allowed".to_owned(),
        Then::Ask(ask) => format!("{ask} to approve it"),
        Then::Deny => "it is denied".to_owned(),
    };
    let mut parts = vec![format!("`{}`: {says}", rule.name)];
    for (word, patterns) in [
        ("for the agents", &rule.agents),
        ("for the users", &rule.users),
        ("for the tenants", &rule.tenants),
        ("after untrusted text from", &rule.origin),
    ] {
        if !patterns.is_empty() {
            parts.push(format!("{word} {}", patterns.join(", ")));
        }
    }
    parts.extend(rule.hours.map(|hours| format!("from {hours}")));
    parts.extend(conditions(&rule.when));
    let sentence = parts.join(" ");
    match rule.because.is_empty() {
        true => sentence,
        false => format!("{sentence}; {}", rule.because),
    }
}

fn conditions(all: &[Condition]) -> Option<String> {
    let texts: Vec<_> = all.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| format!("if {}", texts.join(" and ")))
}

fn of_grant(grant: &Grant) -> String {
    let mut limits: Vec<String> = Vec::new();
    for (pointer, cap) in &grant.at_most {
        limits.push(format!("`{pointer}` at most {cap}"));
    }
    if let Some(count) = grant.per_thread {
        limits.push(format!("{count} per thread"));
    }
    if let Some(count) = grant.per_day {
        limits.push(format!("{count} per day"));
    }
    if let Some((pointer, sum)) = &grant.sum_per_day {
        limits.push(format!("`{pointer}` at most {sum} in a day"));
    }
    let until = time::day(grant.until);
    let mut parts = vec![format!("the grant `{}` signs", grant.name)];
    for (word, patterns) in [
        ("for the agents", &grant.agents),
        ("for the users", &grant.users),
        ("for the tenants", &grant.tenants),
    ] {
        if !patterns.is_empty() {
            parts.push(format!("{word} {}", patterns.join(", ")));
        }
    }
    parts.extend(conditions(&grant.when));
    format!("{}: {}, until {until}", parts.join(" "), limits.join(", "))
}
