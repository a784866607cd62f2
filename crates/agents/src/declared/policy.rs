//! From the rules of an agent file to the gateway's, for the tools that there are.
//!
//! The gateway is built with these, `check` judges them, and `paraph policy` asks them ([`DeclaredPolicy`]).

use super::file::PolicySpec;
use super::keys::LEVELS;
use super::prompt::fill;
use crate::Error;
use paraph_gateway::{
    Binding, Decimal, Grant, Level, Policy, Rule, Scalar, Targets, Then, ToolSpec, Verdict,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// What stands before a level in the name of the rule that holds for it.
const LEVEL_RULE: &str = "levels.";

/// Whether a pattern fits a name, as the gateway sees it.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    Policy::new().allow([pattern]).verdict(name) == Verdict::Allowed
}

/// The rules of one agent of a file, with the tools that are known without connecting to anything.
#[derive(Clone, Debug)]
pub struct DeclaredPolicy {
    /// The agent's name.
    pub agent: String,
    /// What its file says.
    pub spec: PolicySpec,
    /// Its tools, but for those of MCP servers.
    pub tools: Vec<ToolSpec>,
    /// The file's variables.
    pub variables: BTreeMap<String, String>,
    /// The settings of the MCP servers that have others, called `server__tool`.
    pub servers: BTreeMap<String, Value>,
}

impl DeclaredPolicy {
    /// What its runs are about, with the variables of the file.
    ///
    /// # Errors
    /// [`Error::BadTarget`].
    pub fn targets(&self) -> Result<Targets, Error> {
        targets_of(&self.spec, &self.variables)
    }

    /// The gateway's rules, if its tools are these.
    pub fn policy(&self, tools: &[ToolSpec]) -> Policy {
        policy_of(&self.spec, tools)
    }

    /// One of its tools; of a name that only an MCP server can know, what the server's settings say of it.
    pub fn tool(&self, name: &str) -> Option<ToolSpec> {
        if let Some(known) = self.tools.iter().find(|tool| tool.name == name) {
            return Some(known.clone());
        }
        let (server, tool) = name.split_once("__")?;
        let levels = self.servers.get(server)?.get("levels");
        let said = levels.and_then(|levels| levels.get(tool).or_else(|| levels.get("*")));
        let said = said.and_then(|said| serde_json::from_value(said.clone()).ok());
        Some(ToolSpec {
            name: name.to_owned(),
            about: String::new(),
            schema: Value::Null,
            level: said.unwrap_or(Level::Write),
        })
    }
}

/// The gateway's rules for these tools. Those that nothing else lets run are judged by what they do to the world.
///
/// The gateway wants every rule to fit a tool, and in a file one may be meant for a tool that comes and goes with its
/// server: what fits no tool is left out.
pub(crate) fn policy_of(spec: &PolicySpec, tools: &[ToolSpec]) -> Policy {
    let ask = spec.ask.unwrap_or_default();
    let there = |pattern: &String| tools.iter().any(|tool| fits(pattern, &tool.name));
    let listed = |patterns: &[String]| -> Vec<String> {
        patterns
            .iter()
            .filter(|pattern| there(pattern))
            .cloned()
            .collect()
    };
    let mut policy = Policy {
        allow: listed(spec.allow.as_deref().unwrap_or_default()),
        deny: spec.deny.clone(),
        ask: listed(&spec.approve)
            .into_iter()
            .map(|pattern| (pattern, ask))
            .collect(),
        ..Policy::new()
    };
    let rules = spec.rules.iter().filter_map(|rule| narrowed(rule, &listed));
    policy.rules = rules.collect();
    let by_level = level_rules(spec, tools, &policy);
    policy.rules.extend(by_level);
    let signing = |grant: &&Grant| there(&grant.tool);
    policy.grants = spec.grants.iter().filter(signing).cloned().collect();
    policy.flow.untrusted = listed(&spec.flow.untrusted);
    policy.flow.bound = spec
        .flow
        .bound
        .iter()
        .map(|binding| Binding {
            tools: listed(&binding.tools),
            ..binding.clone()
        })
        .filter(|binding| !binding.tools.is_empty())
        .collect();
    policy
}

/// What the runs of an agent are about, with its variables filled in.
///
/// # Errors
/// [`Error::BadTarget`] for one that is to be a number and is none.
pub(super) fn targets_of(
    spec: &PolicySpec,
    variables: &BTreeMap<String, String>,
) -> Result<Targets, Error> {
    let target = |(name, written): (&String, &Value)| {
        let number = written.get("number").and_then(Value::as_str);
        let scalar = match (number, written) {
            (Some(text), _) => Decimal::read(&fill(text, variables)).map(Scalar::Number),
            (None, Value::String(text)) => Some(Scalar::Text(fill(text, variables))),
            (None, written) => serde_json::from_value(written.clone()).ok(),
        };
        match scalar {
            Some(scalar) => Ok((name.clone(), scalar)),
            None => Err(Error::BadTarget(name.clone())),
        }
    };
    spec.targets.iter().map(target).collect()
}

/// The texts of targets, in which variables may stand, with the way to each.
pub(super) fn target_texts(spec: &PolicySpec) -> impl Iterator<Item = (Vec<&str>, &str)> {
    spec.targets.iter().filter_map(|(name, written)| {
        let number = written.get("number").and_then(Value::as_str);
        match (number, written.as_str()) {
            (Some(text), _) => Some((vec![name.as_str(), "number"], text)),
            (None, Some(text)) => Some((vec![name.as_str()], text)),
            (None, None) => None,
        }
    })
}

/// A rule as far as it is about tools that are there; nothing if it can speak about none of their calls.
fn narrowed(rule: &Rule, listed: &dyn Fn(&[String]) -> Vec<String>) -> Option<Rule> {
    let (tools, origin) = (listed(&rule.tools), listed(&rule.origin));
    // An origin that nothing fits must not become one that anything does.
    if tools.is_empty() || origin.is_empty() != rule.origin.is_empty() {
        return None;
    }
    let mut narrowed = Rule {
        tools,
        origin,
        ..rule.clone()
    };
    if narrowed != *rule {
        // They were tried when the file was read, with the tools that they name.
        narrowed.examples = Default::default();
    }
    Some(narrowed)
}

/// What holds for tools that nothing else lets run, as rules of the gateway.
fn level_rules(spec: &PolicySpec, tools: &[ToolSpec], written: &Policy) -> Vec<Rule> {
    // A question or a denial narrows what holds already; only who allows takes a tool out of its level.
    let letting = Policy {
        rules: written
            .rules
            .iter()
            .filter(|rule| rule.then == Then::Allow)
            .cloned()
            .collect(),
        ..written.clone()
    };
    let levels = [Level::Read, Level::Write, Level::Execute, Level::Delete];
    let mut rules = Vec::new();
    for level in levels {
        let then = match by_level(spec, level) {
            "allow" => Then::Allow,
            "approve" => Then::Ask(spec.ask.unwrap_or_default()),
            _ => continue,
        };
        let own = tools.iter().filter(|tool| {
            let verdict = letting.verdict_at(&tool.name, level);
            tool.level == level && verdict == (Verdict::Denied { named: false })
        });
        let names: Vec<_> = own.map(|tool| tool.name.clone()).collect();
        if !names.is_empty() {
            rules.push(Rule::new(format!("{LEVEL_RULE}{level}"), then, names));
        }
    }
    rules
}

/// Whether a name is that of a rule which levels make.
pub(super) fn is_taken(name: &str) -> bool {
    let level = name.strip_prefix(LEVEL_RULE);
    level.is_some_and(|level| LEVELS.contains(&level))
}

fn by_level(spec: &PolicySpec, level: Level) -> &str {
    match (spec.levels.get(&level.to_string()), level) {
        (Some(rule), _) => rule,
        (None, Level::Read) if spec.allow.is_none() => "allow",
        (None, Level::Read) => "deny",
        (None, _) => "approve",
    }
}
