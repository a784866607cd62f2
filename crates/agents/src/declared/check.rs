//! What is wrong with an agent file, all of it at once.
//!
//! [`read_agent_file`] is the only way from a text to an [`AgentFile`]: `paraph check` and `paraph run` both take it.
//! The shape is judged by the table of keys; here is what concerns several keys, other files, or what the program has
//! to offer. Nothing is connected to, and no secret is looked up.

mod agents;
mod places;
mod policy;
mod rules;
mod texts;
mod tools;

use super::file::{AgentFile, AgentSpec};
use super::keys::{FILE, MAX_FILE};
use super::mistake::{Mistake, Mistakes, did_you_mean};
use super::policy::DeclaredPolicy;
use super::shape::shape;
use crate::ToolInfo;
use paraph_gateway::{Dialect, Level, Redaction, Redactor};
use paraph_models::{ModelSpec, providers};
use places::Places;
use serde_json::Value;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::DeTable;
use tools::Tools;

/// Tells every mistake in the settings of an MCP server, which it is given by its name.
pub type JudgeMcp = dyn Fn(&str, &Value) -> Vec<String>;

/// What the program that reads a file has to offer.
pub struct Supply<'s> {
    /// The tools that it brings.
    pub builtin: &'s [ToolInfo],
    /// The JSON Schema of what one of them takes, by its name; nothing if it is not known, and then a rule may look at
    /// any argument.
    pub arguments: &'s dyn Fn(&str) -> Option<Value>,
    /// What it says of an HTTP tool's settings; nothing if it has no HTTP tools.
    pub http: Option<&'s dyn Fn(&Value) -> HttpFacts>,
    /// Every mistake in an MCP server's settings; nothing if it has no MCP.
    pub mcp: Option<&'s JudgeMcp>,
    /// The text of a file whose path begins at the agent file's folder.
    pub read: &'s dyn Fn(&str) -> Result<String, String>,
}

/// What is known of an HTTP tool before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpFacts {
    /// What its call does to the world.
    pub level: Level,
    /// The JSON Schema of what it takes.
    pub schema: Value,
    /// Every mistake in its settings.
    pub mistakes: Vec<String>,
}

/// A file without mistakes.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// What it says.
    pub file: AgentFile,
    /// What is no mistake and yet worth knowing.
    pub remarks: Vec<Mistake>,
}

/// Reads an agent file.
///
/// # Errors
/// Every mistake in it, in the order of the text.
pub fn read_agent_file(text: &str, supply: &Supply<'_>) -> Result<Checked, Vec<Mistake>> {
    let mut checker = read(text, supply)?;
    let wrong = checker.examples.found;
    checker.mistakes.found.extend(wrong);
    match checker.mistakes.found {
        found if found.is_empty() => Ok(Checked {
            file: checker.file,
            remarks: in_order(checker.remarks.found),
        }),
        found => Err(in_order(found)),
    }
}

/// The policies of an agent file as the gateway will have them, for `paraph policy`: the main agent's first. Examples
/// of rules that do not come out as they should are no mistakes here: whoever asks tries them.
///
/// # Errors
/// Every other mistake in the file.
pub fn read_policies(text: &str, supply: &Supply<'_>) -> Result<Vec<DeclaredPolicy>, Vec<Mistake>> {
    let checker = read(text, supply)?;
    if !checker.mistakes.found.is_empty() {
        return Err(in_order(checker.mistakes.found));
    }
    let named = checker.file.all().zip(&checker.tools);
    let policies = named.map(|((agent, spec), tools)| DeclaredPolicy {
        agent: agent.to_owned(),
        spec: spec.policy.clone(),
        variables: checker.file.variables.clone(),
        tools: tools.known.clone(),
        servers: tools
            .servers
            .iter()
            .filter_map(|name| Some((name.clone(), checker.file.mcp.get(name)?.clone())))
            .collect(),
    });
    Ok(policies.collect())
}

/// Looks at all of a file.
fn read<'c>(text: &'c str, supply: &'c Supply<'c>) -> Result<Checker<'c>, Vec<Mistake>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut mistakes = Mistakes::of(text);
    if text.len() > MAX_FILE {
        let what = format!("the file has {} bytes; it may have {MAX_FILE}", text.len());
        mistakes.add(
            0..0,
            "",
            what,
            "put long prompts into files of their own (`prompt_file`)",
        );
        return Err(mistakes.found);
    }
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().unwrap_or(0..0);
        mistakes.add(at, "", format!("this is no TOML: {}", error.message()), "");
    }
    if !errors.is_empty() {
        // What was recovered would only make us complain of what is not there.
        return Err(in_order(mistakes.found));
    }
    let mut read = shape(&root, &FILE, &mut mistakes);
    let written = rules::taken(&mut read);
    let mut checker = Checker {
        file: serde_json::from_value(read).unwrap_or_default(),
        root,
        mistakes,
        remarks: Mistakes::of(text),
        examples: Mistakes::of(text),
        read: BTreeMap::new(),
        tools: Vec::new(),
        supply,
        text,
    };
    checker.typed(written);
    checker.check();
    Ok(checker)
}

/// In the order of the text, each once, without what may be a secret.
fn in_order(mut found: Vec<Mistake>) -> Vec<Mistake> {
    let redactor = Redactor::new(&Redaction::default());
    for mistake in &mut found {
        mistake.what = redactor.text(&mistake.what);
        mistake.instead = redactor.text(&mistake.instead);
    }
    found.sort();
    found.dedup();
    found
}

/// A file that is being checked.
struct Checker<'c> {
    file: AgentFile,
    root: Spanned<DeTable<'c>>,
    mistakes: Mistakes<'c>,
    remarks: Mistakes<'c>,
    /// Examples of rules that do not come out as they should.
    examples: Mistakes<'c>,
    /// The places of the rules, grants and bindings that could be read, by the keys of their lists.
    read: BTreeMap<String, Vec<usize>>,
    /// What is known of the tools of each agent, the main one's first.
    tools: Vec<Tools>,
    supply: &'c Supply<'c>,
    text: &'c str,
}

/// Where an agent's keys stand: at the top, or in a table of `agents`.
#[derive(Clone, Copy)]
struct Whose<'n>(Option<&'n str>);

impl Whose<'_> {
    /// A key of this agent as mistakes show it. The place in a list is written `[n]`.
    fn key(self, path: &[&str]) -> String {
        let path = path.join(".").replace(".[", "[");
        match self.0 {
            None => path,
            Some(name) if path.is_empty() => format!("agents.{name}"),
            Some(name) => format!("agents.{name}.{path}"),
        }
    }
}

impl Checker<'_> {
    fn check(&mut self) {
        self.secrets();
        self.name();
        self.servers();
        let specs: Vec<(Option<String>, AgentSpec)> =
            std::iter::once((None, self.file.main.clone()))
                .chain(
                    self.file
                        .agents
                        .iter()
                        .map(|(name, spec)| (Some(name.clone()), spec.clone())),
                )
                .collect();
        for (name, spec) in &specs {
            let whose = Whose(name.as_deref());
            self.models(whose, spec);
            self.prompt(whose, spec);
            self.output(whose, spec);
            self.context(whose, spec);
            let tools = self.tools(whose, spec);
            self.policy(whose, spec, &tools);
            self.rules(whose, &spec.policy, &tools);
            self.budget(whose, spec, &tools);
            self.tools.push(tools);
        }
        self.calls();
        self.unused_variables();
    }

    fn places(&self) -> Places<'_> {
        Places(self.root.get_ref())
    }

    /// Notes a mistake at a key of an agent.
    fn wrong(
        &mut self,
        (whose, path): (Whose<'_>, &[&str]),
        what: impl Into<String>,
        instead: impl Into<String>,
    ) {
        let at = self.places().of(whose, path);
        self.mistakes.add(at, &whose.key(path), what, instead);
    }

    /// The same at one entry of a list.
    fn wrong_entry(
        &mut self,
        (whose, path): (Whose<'_>, &[&str]),
        entry: &str,
        what: impl Into<String>,
        instead: impl Into<String>,
    ) {
        let at = self.places().entry(whose, path, entry);
        self.mistakes.add(at, &whose.key(path), what, instead);
    }

    /// The main agent's name is also a graph's, and those of the program are taken.
    fn name(&mut self) {
        let name = self.file.name.clone();
        let main = Whose(None);
        let later = ["weather", "research", "triage"];
        let taken = crate::builtin().iter().any(|agent| agent.name == name);
        if taken || later.contains(&name.as_str()) {
            let what = format!("`{name}` is the name of a built-in agent");
            self.wrong((main, &["name"]), what, "choose another name");
        }
        if self.file.agents.contains_key(&name) {
            let what = format!("`{name}` is the main agent and one of `agents`");
            self.wrong((main, &["agents", &name]), what, "choose another name");
        }
    }

    fn models(&mut self, whose: Whose<'_>, spec: &AgentSpec) {
        if let Some(model) = &spec.model {
            self.model(model, (whose, &["model"]));
        }
        for fallback in &spec.fallbacks {
            self.model(fallback, (whose, &["fallbacks"]));
        }
        if spec.tool_mode.as_deref() == Some("schema") && spec.dialect == Dialect::Strict {
            let what = "with dialect = \"strict\" a model makes no tool calls, so `tool_mode` does nothing";
            self.wrong((whose, &["tool_mode"]), what, "leave one of the two out");
        }
    }

    fn model(&mut self, spec: &str, (whose, path): (Whose<'_>, &[&str])) {
        let Err(error) = spec.parse::<ModelSpec>() else {
            return;
        };
        let (what, instead) = match error {
            paraph_models::Error::UnknownProvider { .. } => {
                let head = spec.split(':').next().unwrap_or(spec).trim();
                let names = providers().iter().map(|provider| provider.name);
                let instead = match spec.contains(':') {
                    true => did_you_mean(
                        head,
                        names.chain(["rehearsal", "scripted", "record", "replay"]),
                    ),
                    false => format!("did you mean `openai:{spec}`, or `rehearsal`?"),
                };
                (format!("there is no model provider `{head}`"), instead)
            }
            error => (
                error.to_string(),
                "write provider:model, rehearsal, or scripted:FILE".to_owned(),
            ),
        };
        self.wrong_entry((whose, path), spec, what, instead);
    }
}

#[cfg(test)]
mod tests;
