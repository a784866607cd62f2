//! The tools of an agent: whether they are there, fit together, and are described without mistakes.

use super::{Checker, Whose};
use crate::declared::file::AgentSpec;
use crate::declared::mistake::did_you_mean;
use paraph_gateway::Level;
use serde_json::Value;

/// What is known of an agent's tools before it runs.
#[derive(Default)]
pub(super) struct Tools {
    /// Names and levels.
    pub(super) known: Vec<(String, Level)>,
    /// The MCP servers that have others: `server__tool`, where only the server knows which.
    pub(super) servers: Vec<String>,
}

impl Tools {
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
        let known = self.known.iter().map(|(name, _)| name.as_str());
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
            self.add((whose, "agents"), name, Level::Read, &mut tools);
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
    fn add(
        &mut self,
        (whose, list): (Whose<'_>, &str),
        name: &str,
        level: Level,
        tools: &mut Tools,
    ) {
        if tools.known.iter().any(|(known, _)| known == name) {
            let what = format!("this agent has two tools called `{name}`");
            self.wrong_entry(
                (whose, &["tools", list]),
                name,
                what,
                "leave one out, or call it something else",
            );
            return;
        }
        tools.known.push((name.to_owned(), level));
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
            self.add((whose, "builtin"), name, level, tools);
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
        let level = match complete {
            true => {
                let facts = judge(settings);
                for mistake in facts.mistakes {
                    let what = format!("the tool `{name}`: {mistake}");
                    self.wrong_entry((whose, &["tools", "http"]), name, what, "");
                }
                facts.level
            }
            false => Level::Read,
        };
        self.add((whose, "http"), name, level, tools);
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
