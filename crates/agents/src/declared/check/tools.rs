//! The tools of an agent: whether they are there, fit together, and are described without mistakes.

use super::{Checker, Whose};
use crate::declared::file::AgentSpec;
use crate::declared::mistake::did_you_mean;
use crate::declared::policy::fits;
use paraph_gateway::{Level, ToolSpec};
use serde_json::Value;

/// What is known of an agent's tools before it runs.
#[derive(Default)]
pub(super) struct Tools {
    /// Those that are known, as far as they are.
    pub(super) known: Vec<ToolSpec>,
    /// The MCP servers that have others: `server__tool`, where only the server knows which.
    pub(super) servers: Vec<String>,
}

impl Tools {
    /// Whether a name or a pattern fits a tool that is known.
    pub(super) fn has(&self, pattern: &str) -> bool {
        self.known.iter().any(|tool| fits(pattern, &tool.name))
    }

    /// Whether a name or a pattern can fit a tool that only a server knows.
    pub(super) fn may_have(&self, pattern: &str) -> bool {
        let prefixed = |server: &String| {
            let rest = pattern.strip_prefix(&**server);
            rest.is_some_and(|rest| rest.starts_with("__"))
        };
        !self.servers.is_empty() && (pattern.contains('*') || self.servers.iter().any(prefixed))
    }

    /// What to write instead of a name that no tool has.
    pub(super) fn advice(&self, name: &str) -> String {
        let of_servers: Vec<String> = self.servers.iter().map(|it| format!("{it}__*")).collect();
        let known = self.known.iter().map(|tool| tool.name.as_str());
        did_you_mean(name, known.chain(of_servers.iter().map(String::as_str)))
    }
}

impl Checker<'_> {
    pub(super) fn tools(&mut self, whose: Whose<'_>, spec: &AgentSpec) -> Tools {
        let mut tools = Tools::default();
        self.builtin(whose, spec, &mut tools);
        for settings in &spec.tools.http {
            self.http(whose, settings, &mut tools);
        }
        for name in &spec.tools.agents {
            self.add((whose, "agents"), called(name), &mut tools);
        }
        let servers = &self.file.mcp;
        let unknown: Vec<String> = spec
            .tools
            .mcp
            .iter()
            .flatten()
            .filter(|name| !servers.contains_key(*name))
            .cloned()
            .collect();
        for name in unknown {
            let what = format!("`tools.mcp` names `{name}`, and this file has no such server");
            let advice = did_you_mean(&name, self.file.mcp.keys().map(String::as_str));
            self.wrong_entry((whose, &["tools", "mcp"]), &name, what, advice);
        }
        let agent = whose.0.unwrap_or(&self.file.name);
        let servers = self.file.servers(agent).into_iter().map(str::to_owned);
        tools.servers = servers.collect();
        tools
    }

    /// Adds a tool, if it is the only one of its name.
    fn add(&mut self, (whose, list): (Whose<'_>, &str), tool: ToolSpec, tools: &mut Tools) {
        if tools.known.iter().any(|known| known.name == tool.name) {
            let what = format!("this agent has two tools called `{}`", tool.name);
            self.wrong_entry(
                (whose, &["tools", list]),
                &tool.name,
                what,
                "leave one out, or call it something else",
            );
            return;
        }
        tools.known.push(tool);
    }

    fn builtin(&mut self, whose: Whose<'_>, spec: &AgentSpec, tools: &mut Tools) {
        for name in &spec.tools.builtin {
            let found = self.supply.builtin.iter().find(|tool| tool.name == *name);
            let Some(level) = found.map(|tool| tool.level) else {
                let names = self.supply.builtin.iter().map(|tool| tool.name.as_str());
                let advice = did_you_mean(name, names);
                let what = format!("there is no builtin tool `{name}`");
                self.wrong_entry((whose, &["tools", "builtin"]), name, what, advice);
                continue;
            };
            let tool = ToolSpec {
                schema: (self.supply.arguments)(name).unwrap_or(Value::Null),
                level,
                ..called(name)
            };
            self.add((whose, "builtin"), tool, tools);
        }
    }

    fn http(&mut self, whose: Whose<'_>, settings: &Value, tools: &mut Tools) {
        let name = settings
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let Some(judge) = self.supply.http else {
            let what = "this program has no HTTP tools";
            self.wrong_entry(
                (whose, &["tools", "http"]),
                name,
                what,
                "leave `tools.http` out",
            );
            return;
        };
        // What is missing or of the wrong kind was said already.
        let complete = ["name", "description", "url"]
            .iter()
            .all(|key| settings.get(key).is_some());
        let (level, schema) = match complete {
            true => {
                let facts = judge(settings);
                for mistake in facts.mistakes {
                    let what = format!("the tool `{name}`: {mistake}");
                    self.wrong_entry((whose, &["tools", "http"]), name, what, "");
                }
                (facts.level, facts.schema)
            }
            false => (Level::Read, Value::Null),
        };
        let tool = ToolSpec {
            schema,
            level,
            ..called(name)
        };
        self.add((whose, "http"), tool, tools);
    }

    /// MCP servers stand once in a file, whoever uses them.
    pub(super) fn servers(&mut self) {
        let servers: Vec<(String, Value)> = self.file.mcp.clone().into_iter().collect();
        for (name, settings) in servers {
            let place: (_, &[&str]) = (Whose(None), &["mcp", &name]);
            let Some(judge) = self.supply.mcp else {
                self.wrong(place, "this program has no MCP servers", "leave `mcp` out");
                continue;
            };
            // What is missing was said already.
            if settings.get("command").is_some() == settings.get("url").is_some() {
                continue;
            }
            for mistake in judge(&name, &settings) {
                self.wrong(place, format!("the MCP server `{name}`: {mistake}"), "");
            }
        }
    }
}

/// A tool that reads, of which nothing but its name is known.
fn called(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        about: String::new(),
        schema: Value::Null,
        level: Level::Read,
    }
}
