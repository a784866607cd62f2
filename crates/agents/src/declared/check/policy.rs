//! Rules and budgets: whether they fit the tools that there are.

use super::tools::Tools;
use super::{Checker, Whose};
use crate::declared::file::{AgentSpec, PolicySpec};
use paraph_gateway::{Level, Policy, Verdict};

/// Whether a pattern fits a name, as the gateway sees it.
fn fits(pattern: &str, name: &str) -> bool {
    Policy::new().allow([pattern]).verdict(name) == Verdict::Allowed
}

impl Checker<'_> {
    pub(super) fn policy(&mut self, whose: Whose<'_>, spec: &AgentSpec, tools: &Tools) {
        let rules = &spec.policy;
        let lists = [
            ("allow", rules.allow.as_deref().unwrap_or_default()),
            ("deny", &rules.deny),
            ("approve", &rules.approve),
        ];
        for (list, patterns) in lists {
            for pattern in patterns {
                self.rule(whose, (list, pattern), tools);
            }
        }
        for pattern in rules.allow.iter().flatten() {
            self.allowed_effects(whose, (rules, pattern), tools);
        }
        self.tell_of_waiting(whose, rules, tools);
    }

    /// A rule has to name a tool that is there.
    fn rule(&mut self, whose: Whose<'_>, (list, pattern): (&str, &str), tools: &Tools) {
        let known = tools.known.iter().any(|(name, _)| fits(pattern, name));
        if known || tools.may_have(pattern) {
            return;
        }
        let what = format!("`policy.{list}` names `{pattern}`, and this agent has no such tool");
        let advice = tools.advice(pattern);
        self.wrong_entry((whose, &["policy", list]), pattern, what, advice);
    }

    /// An effect needs a person, whatever allows it.
    fn allowed_effects(
        &mut self,
        whose: Whose<'_>,
        (rules, pattern): (&PolicySpec, &str),
        tools: &Tools,
    ) {
        let other = Policy::new()
            .allow(rules.approve.clone())
            .allow(rules.deny.clone());
        let effects = tools.known.iter().filter(|(name, level)| {
            level.is_effect() && fits(pattern, name) && other.verdict(name) != Verdict::Allowed
        });
        for (name, level) in effects {
            let what = format!("`{name}` changes something ({level}): to be allowed is not enough");
            let instead = format!("name it in `policy.approve`: `approve = [\"{name}\"]`");
            self.wrong_entry((whose, &["policy", "allow"]), pattern, what, instead);
        }
    }

    /// A run that waits needs somebody, and whoever wrote the file should know.
    fn tell_of_waiting(&mut self, whose: Whose<'_>, rules: &PolicySpec, tools: &Tools) {
        let policy = policy_of(rules, &tools.known);
        let asked: Vec<_> = tools
            .known
            .iter()
            .filter(|(name, _)| matches!(policy.verdict(name), Verdict::Ask(_)))
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        if asked.is_empty() {
            return;
        }
        let path: &[&str] = match rules.approve.is_empty() {
            true => &["tools"],
            false => &["policy", "approve"],
        };
        let what = format!(
            "a person has to approve {} each time: the run waits until somebody does (`paraph approvals list`)",
            asked.join(", ")
        );
        self.remarks
            .add(self.places.of(whose, path), &whose.key(path), what, "");
    }

    pub(super) fn budget(&mut self, whose: Whose<'_>, spec: &AgentSpec, tools: &Tools) {
        let path = &["budget", "per_tool"];
        for name in spec.budget.per_tool.keys() {
            if tools.may_have(name) || tools.known.iter().any(|(known, _)| known == name) {
                continue;
            }
            let what = format!("`budget.per_tool` names `{name}`, and this agent has no such tool");
            let advice = tools.advice(name);
            self.wrong((whose, &[path[0], path[1], name]), what, advice);
        }
        let children = spec.budget.max_children;
        match (spec.tools.agents.is_empty(), children) {
            (false, Some(0)) => {
                let what = "`max_children` is 0, and so `tools.agents` can never be called";
                self.wrong(
                    (whose, &["budget", "max_children"]),
                    what,
                    "write 1 or more, or leave it out",
                );
            }
            (true, Some(1..)) => {
                let what = "`max_children` counts calls of agents, and this one has none in `tools.agents`";
                self.wrong((whose, &["budget", "max_children"]), what, "leave it out");
            }
            _ => {}
        }
    }
}

/// The gateway's rules for these tools. Those that no rule names are judged by what they do to the world.
pub(crate) fn policy_of(spec: &PolicySpec, tools: &[(String, Level)]) -> Policy {
    let written = Policy {
        allow: spec.allow.clone().unwrap_or_default(),
        deny: spec.deny.clone(),
        ..Policy::new()
    };
    let written = spec
        .approve
        .iter()
        .fold(written, |policy, name| policy.ask(name, Default::default()));
    // The gateway wants every rule to fit a tool; patterns may be meant for tools that come and go.
    let mut policy = Policy {
        deny: spec.deny.clone(),
        ..Policy::new()
    };
    for (name, level) in tools {
        let rule = match written.verdict(name) {
            Verdict::Allowed => "allow",
            Verdict::Ask(_) => "approve",
            Verdict::Denied { named: true } => "deny",
            Verdict::Denied { named: false } => by_level(spec, *level),
        };
        policy = match rule {
            "allow" => policy.allow([name]),
            "approve" => policy.ask(name, Default::default()),
            _ => policy,
        };
    }
    policy
}

fn by_level(spec: &PolicySpec, level: Level) -> &str {
    match (spec.levels.get(&level.to_string()), level) {
        (Some(rule), _) => rule,
        (None, Level::Read) if spec.allow.is_none() => "allow",
        (None, Level::Read) => "deny",
        (None, _) => "approve",
    }
}
