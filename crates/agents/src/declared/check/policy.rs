//! The lists of a policy, and budgets: whether they fit the tools that there are. (Rules and grants: `rules`.)

use super::rules::is_merely_allowed;
use super::tools::Tools;
use super::{Checker, Whose};
use crate::declared::file::{AgentSpec, PolicySpec};
use crate::declared::policy::{fits, policy_of};
use paraph_gateway::{Dialect, Grant, ToolSpec, Verdict};
use std::time::{SystemTime, UNIX_EPOCH};

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
        if tools.has(pattern) || tools.may_have(pattern) {
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
        for tool in tools.known.iter().filter(|tool| fits(pattern, &tool.name)) {
            if !is_merely_allowed(rules, tool) {
                continue;
            }
            let (name, level) = (&tool.name, tool.level);
            let what = format!("`{name}` changes something ({level}): to be allowed is not enough");
            let instead = format!("name it in `policy.approve`: `approve = [\"{name}\"]`");
            self.wrong_entry((whose, &["policy", "allow"]), pattern, what, instead);
        }
    }

    /// A run that waits needs somebody, and whoever wrote the file should know.
    fn tell_of_waiting(&mut self, whose: Whose<'_>, rules: &PolicySpec, tools: &Tools) {
        let policy = policy_of(rules, &tools.known);
        let now_ms = now_ms();
        let in_time = |grant: &&Grant| grant.until > now_ms;
        let signed = |tool: &&ToolSpec| {
            let mut grants = rules.grants.iter().filter(in_time);
            grants.any(|grant| grant.tool == tool.name)
        };
        let asked = tools.known.iter().filter(|tool| {
            let verdict = policy.verdict_at(&tool.name, tool.level);
            matches!(verdict, Verdict::Ask(_))
        });
        let (signed, asked): (Vec<_>, Vec<_>) = asked.partition(signed);
        let names = |tools: &[&ToolSpec]| {
            let names: Vec<_> = tools
                .iter()
                .map(|tool| format!("`{}`", tool.name))
                .collect();
            names.join(", ")
        };
        let path: &[&str] = match rules.approve.is_empty() {
            true => &["tools"],
            false => &["policy", "approve"],
        };
        for (tools, when) in [(asked, "each time"), (signed, "unless a grant signs it")] {
            if tools.is_empty() {
                continue;
            }
            let what = format!(
                "a person has to approve {} {when}: the run waits until somebody does (`paraph approvals list`)",
                names(&tools)
            );
            let at = self.places().of(whose, path);
            self.remarks.add(at, &whose.key(path), what, "");
        }
    }

    /// A last answer has to fit into the budget, and is a model's that calls tools the provider's way.
    fn reserve(&mut self, whose: Whose<'_>, spec: &AgentSpec) {
        let Some(reserve) = spec.budget.synthesis_reserve else {
            return;
        };
        let path = &["budget", "synthesis_reserve"];
        if spec.dialect == Dialect::Strict {
            let what = "with dialect = \"strict\" a run that meets a limit just stops: `synthesis_reserve` does nothing";
            self.wrong((whose, path), what, "leave one of the two out");
        }
        if let Some(most) = spec.budget.max_tokens
            && reserve >= most
        {
            let what = format!(
                "`synthesis_reserve` keeps {reserve} tokens back, and `max_tokens` is {most}: nothing is left for the run"
            );
            self.wrong((whose, path), what, "write less");
        }
    }

    pub(super) fn budget(&mut self, whose: Whose<'_>, spec: &AgentSpec, tools: &Tools) {
        let path = &["budget", "per_tool"];
        for name in spec.budget.per_tool.keys() {
            if tools.may_have(name) || tools.known.iter().any(|known| known.name == *name) {
                continue;
            }
            let what = format!("`budget.per_tool` names `{name}`, and this agent has no such tool");
            let advice = tools.advice(name);
            self.wrong((whose, &[path[0], path[1], name]), what, advice);
        }
        self.reserve(whose, spec);
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

/// Now, by this machine's clock: what has ended by then is no mistake of the file's, but whoever reads it should know.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
