//! Rules, grants and flow rules of a file: read one by one, and judged by the gateway's own check, with the place of
//! each mistake in the text.

use super::policy::now_ms;
use super::tools::Tools;
use super::{Checker, Whose};
use crate::declared::file::PolicySpec;
use crate::declared::mistake::did_you_mean;
use crate::declared::policy::{is_taken, target_texts};
use crate::declared::prompt::placeholders;
use paraph_gateway::{
    Decimal, Fault, Flow, Level, Policy, Rule, RuleFault, Then, ToolSpec, Verdict,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The keys of a policy that are read one by one, and where they stand.
const RULES: &[&str] = &["policy", "rules"];
const GRANTS: &[&str] = &["policy", "grants"];
const BOUND: &[&str] = &["policy", "flow", "bound"];

/// What one agent's policy says beside its lists, as JSON.
pub(super) struct Written {
    whose: Option<String>,
    rules: Vec<Value>,
    grants: Vec<Value>,
    bound: Vec<Value>,
}

/// Takes rules, grants and bindings out of a file's JSON: one that is faulty must not cost the rest of the file.
pub(super) fn taken(file: &mut Value) -> Vec<Written> {
    let mut all = Vec::new();
    let mut take = |whose: Option<&str>, spec: &mut Map<String, Value>| {
        let Some(policy) = spec.get_mut("policy").and_then(Value::as_object_mut) else {
            return;
        };
        let mut items = |key: &str| match policy.remove(key) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let (mut rules, grants) = (items("rules"), items("grants"));
        if let Some(ask) = policy.get("ask") {
            for rule in &mut rules {
                if rule["then"] == "ask" {
                    rule["then"] = json!({ "ask": ask });
                }
            }
        }
        let bound = policy
            .get_mut("flow")
            .and_then(Value::as_object_mut)
            .and_then(|flow| flow.remove("bound"));
        all.push(Written {
            whose: whose.map(str::to_owned),
            rules,
            grants,
            bound: match bound {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            },
        });
    };
    let Some(file) = file.as_object_mut() else {
        return all;
    };
    take(None, file);
    if let Some(agents) = file.get_mut("agents").and_then(Value::as_object_mut) {
        for (name, agent) in agents {
            if let Some(spec) = agent.as_object_mut() {
                take(Some(name), spec);
            }
        }
    }
    all
}

/// A part of a policy that was read, and its place in the list.
type Placed<T> = Vec<(usize, T)>;

impl Checker<'_> {
    /// Puts back what was taken, as far as it can be read.
    pub(super) fn typed(&mut self, written: Vec<Written>) {
        for written in written {
            let whose = Whose(written.whose.as_deref());
            let rules = self.each(whose, RULES, written.rules);
            let grants = self.each(whose, GRANTS, written.grants);
            let bound = self.each(whose, BOUND, written.bound);
            let spec = match &written.whose {
                None => Some(&mut self.file.main),
                Some(name) => self.file.agents.get_mut(name),
            };
            if let Some(spec) = spec {
                spec.policy.rules = rules;
                spec.policy.grants = grants;
                spec.policy.flow.bound = bound;
            }
        }
    }

    /// Reads the items of a list, but for those in which a mistake was found already.
    fn each<T: DeserializeOwned>(
        &mut self,
        whose: Whose<'_>,
        list: &[&str],
        items: Vec<Value>,
    ) -> Vec<T> {
        let places = self.places().tables(whose, list);
        let mut read = Vec::new();
        for (place, item) in places.into_iter().zip(items) {
            let path = at(list, place);
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let key = whose.key(&path);
            let inside = |found: &str| found.strip_prefix(&*key).is_some_and(begins_a_part);
            if self.mistakes.found.iter().any(|one| inside(&one.key)) {
                continue;
            }
            match serde_json::from_value(item) {
                Ok(item) => {
                    self.read.entry(whose.key(list)).or_default().push(place);
                    read.push(item);
                }
                Err(error) => self.wrong((whose, &path), format!("`{key}`: {error}"), ""),
            }
        }
        read
    }

    /// The places at which the items of a list were read from.
    fn placed<T: Clone>(&self, whose: Whose<'_>, list: &[&str], items: &[T]) -> Placed<T> {
        let places = self.read.get(&whose.key(list)).into_iter().flatten();
        places.copied().zip(items.iter().cloned()).collect()
    }

    /// Judges rules, grants and flow rules.
    pub(super) fn rules(&mut self, whose: Whose<'_>, spec: &PolicySpec, tools: &Tools) {
        let rules = self.placed(whose, RULES, &spec.rules);
        let grants = self.placed(whose, GRANTS, &spec.grants);
        let bound = self.placed(whose, BOUND, &spec.flow.bound);
        let mut names = BTreeSet::new();
        for (place, rule) in rules {
            let one = Policy {
                rules: vec![rule.clone()],
                flow: spec.flow.clone(),
                ..Policy::new()
            };
            let part = format!("rule `{}`", rule.name);
            let path = at(RULES, place);
            self.told((whose, &path, &part), one.check(&tools.known), tools);
            if !names.insert(rule.name.clone()) {
                self.twice((whose, &path), &part);
            }
            if is_taken(&rule.name) {
                let what = format!("the {part}: `policy.levels` makes a rule of this name");
                self.wrong_in((whose, &path, &["name"]), what, "choose another name");
            }
            self.allows_effects((whose, &path), (spec, &rule), tools);
        }
        let mut names = BTreeSet::new();
        for (place, grant) in grants {
            let part = format!("grant `{}`", grant.name);
            let path = at(GRANTS, place);
            let unique = names.insert(grant.name.clone());
            if grant.until <= now_ms() {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                let at = self.places().of(whose, &path);
                let what = format!("the {part} signs nothing any more: its `until` is past");
                self.remarks.add(at, &whose.key(&path), what, "");
            }
            let one = Policy::new().grant(grant);
            self.told((whose, &path, &part), one.check(&tools.known), tools);
            if !unique {
                self.twice((whose, &path), &part);
            }
        }
        let untrusted = Policy {
            flow: Flow {
                bound: Vec::new(),
                ..spec.flow.clone()
            },
            ..Policy::new()
        };
        let path: Vec<String> = ["policy", "flow"].map(str::to_owned).into();
        let part = "flow rules";
        self.told((whose, &path, part), untrusted.check(&tools.known), tools);
        for (place, binding) in bound {
            let one = Policy {
                flow: Flow {
                    untrusted: Vec::new(),
                    bound: vec![binding],
                },
                ..Policy::new()
            };
            let path = at(BOUND, place);
            self.told((whose, &path, part), one.check(&tools.known), tools);
        }
        self.targets(whose, spec);
    }

    /// Targets: whether their variables are there, and whether flow rules name others.
    fn targets(&mut self, whose: Whose<'_>, spec: &PolicySpec) {
        for (way, text) in target_texts(spec) {
            let names = placeholders(text);
            let is_known = |name: &&str| self.file.variables.contains_key(*name);
            let unknown = names.iter().copied().find(|name| !is_known(name));
            let steps = ["policy", "targets"].into_iter();
            let path: Vec<&str> = steps.chain(way.iter().copied()).collect();
            if let Some(name) = unknown {
                let what =
                    format!("a target uses `{{{{{name}}}}}`, and `variables` has no `{name}`");
                let known = self.file.variables.keys().map(String::as_str);
                let instead = did_you_mean(name, known);
                self.wrong((whose, &path), what, instead);
            } else if way.len() > 1 && names.is_empty() && Decimal::read(text).is_none() {
                let what = format!("`{}` is no number", whose.key(&path));
                let instead = "write one as JSON does, such as \"0.5\"";
                self.wrong((whose, &path), what, instead);
            }
        }
        let mut told = BTreeSet::new();
        for binding in &spec.flow.bound {
            let target = &binding.target;
            if spec.targets.contains_key(target) || !told.insert(target) {
                continue;
            }
            let what = format!(
                "nothing binds `{target}`: once a run has read untrusted text, {} never runs",
                binding.tools.join(", ")
            );
            let instead =
                format!("write into `policy.targets` what it is about: `{target} = \"…\"`");
            let at = self.places().of(whose, BOUND);
            self.remarks.add(at, &whose.key(BOUND), what, instead);
        }
    }

    /// Notes what the gateway finds wrong with one part of a policy.
    fn told(
        &mut self,
        (whose, path, part): (Whose<'_>, &[String], &str),
        faults: Vec<Fault>,
        tools: &Tools,
    ) {
        for fault in faults {
            let Fault::Policy { part: of, fault } = fault else {
                continue;
            };
            // Of what a server has, nothing is known before it is asked.
            let open = match &fault {
                RuleFault::UnknownTool { name, .. } => tools.may_have(name),
                RuleFault::Trusted(origin) => tools.may_have(origin),
                _ => false,
            };
            if of != part || open {
                continue;
            }
            let (what, instead) = match &fault {
                RuleFault::UnknownTool { name, .. } => (
                    format!("the {part}: this agent has no tool `{name}`"),
                    tools.advice(name),
                ),
                fault => (format!("the {part}: {fault}"), String::new()),
            };
            let inner = self.inner((whose, path), &fault);
            let inner: Vec<&str> = inner.iter().map(String::as_str).collect();
            if let RuleFault::Example { .. } = fault {
                let full = joined(path, &inner);
                let full: Vec<&str> = full.iter().map(String::as_str).collect();
                let place = self.places().of(whose, &full);
                let instead = "change the example, or what the rule says";
                self.examples.add(place, &whose.key(&full), what, instead);
            } else {
                self.wrong_in((whose, path, &inner), what, &instead);
            }
        }
    }

    /// Where in a rule, a grant or flow rules a fault stands.
    fn inner(&self, (whose, path): (Whose<'_>, &[String]), fault: &RuleFault) -> Vec<String> {
        let key = match fault {
            RuleFault::BadName | RuleFault::Twice => "name",
            RuleFault::NoTools | RuleFault::BadPattern(_) | RuleFault::UnknownTool { .. } => {
                match path.get(1).map(String::as_str) {
                    Some("grants") => "tool",
                    _ if path.len() == 2 => "untrusted",
                    _ => "tools",
                }
            }
            RuleFault::GrantForPattern(_) => "tool",
            RuleFault::EmptyPattern(list) => list,
            RuleFault::Trusted(_) => "origin",
            RuleFault::BadHours => "hours",
            RuleFault::NoQuorum => "then",
            RuleFault::BadPointer(pointer)
            | RuleFault::UnknownArgument { pointer, .. }
            | RuleFault::BadGlob(pointer)
            | RuleFault::NoValues(pointer)
            | RuleFault::Impossible(pointer) => {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                return self.places().pointing(whose, &path, pointer);
            }
            RuleFault::Example { list, number, .. } => {
                let place = format!("[{}]", number.saturating_sub(1));
                return vec!["examples".to_owned(), (*list).to_owned(), place];
            }
            _ => return Vec::new(),
        };
        vec![key.to_owned()]
    }

    fn wrong_in(
        &mut self,
        (whose, path, inner): (Whose<'_>, &[String], &[&str]),
        what: String,
        instead: &str,
    ) {
        let full = joined(path, inner);
        let full: Vec<&str> = full.iter().map(String::as_str).collect();
        self.wrong((whose, &full), what, instead);
    }

    fn twice(&mut self, (whose, path): (Whose<'_>, &[String]), part: &str) {
        let what = format!("there is another {part}");
        self.wrong_in((whose, path, &["name"]), what, "choose another name");
    }

    /// A rule that allows an effect: it would be taken for a grant, and is none.
    fn allows_effects(
        &mut self,
        (whose, path): (Whose<'_>, &[String]),
        (spec, rule): (&PolicySpec, &Rule),
        tools: &Tools,
    ) {
        if rule.then != Then::Allow {
            return;
        }
        let alone = Policy::new().rule(rule.clone());
        for tool in &tools.known {
            let lets = alone.verdict_at(&tool.name, tool.level) == Verdict::Allowed;
            if !lets || !is_merely_allowed(spec, tool) {
                continue;
            }
            let (name, level) = (&tool.name, tool.level);
            let what = format!(
                "the rule `{}` allows `{name}`, which changes something ({level}): to be allowed is not enough",
                rule.name
            );
            let instead = format!(
                "name it in `policy.approve`: `approve = [\"{name}\"]`; for what nobody is to be asked about, write a grant"
            );
            self.wrong_in((whose, path, &["then"]), what, &instead);
        }
    }
}

/// Whether an effect is allowed by lists or rules, and nothing written asks for it or denies it.
pub(super) fn is_merely_allowed(spec: &PolicySpec, tool: &ToolSpec) -> bool {
    let written = Policy {
        allow: spec.allow.clone().unwrap_or_default(),
        deny: spec.deny.clone(),
        ask: spec
            .approve
            .iter()
            .map(|pattern| (pattern.clone(), Default::default()))
            .collect(),
        rules: spec.rules.clone(),
        ..Policy::new()
    };
    tool.level != Level::Read && written.verdict_at(&tool.name, tool.level) == Verdict::Allowed
}

/// The way to an item of a list.
fn at(list: &[&str], place: usize) -> Vec<String> {
    let way = list.iter().map(|step| (*step).to_owned());
    way.chain([format!("[{place}]")]).collect()
}

fn joined(path: &[String], inner: &[&str]) -> Vec<String> {
    let inner = inner.iter().map(|step| (*step).to_owned());
    path.iter().cloned().chain(inner).collect()
}

/// Whether what follows a key is nothing or a part of it, and no longer name.
fn begins_a_part(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['.', '['])
}
