//! The MCP servers of agents in files: their settings, their connections, and what is worth knowing of both.
//!
//! `tools.rs` hands out their tools, `doctor` prints what is to be reviewed of them. A server is started or reached
//! only for a run, or when `doctor` is told to go online.

use crate::config::Config;
use crate::failure::Failure;
use crate::suggest::hint;
use crate::tools::{outbound, secret};
use futures::future::{join_all, try_join_all};
use paraph_agents::{AgentFile, AgentSpec};
use paraph_gateway::DynTool;
use paraph_tools::{McpClient, McpOptions, McpPins, McpReview, McpServer, McpTool};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The key of a server's table that is ours and not the server's.
const PINS: &str = "pins";

/// Every mistake in the settings of a server.
pub(crate) fn mistakes(name: &str, settings: &Value) -> Vec<String> {
    match read(name, settings, Path::new("")) {
        Ok((server, _)) => server.mistakes(),
        Err(why) => vec![why],
    }
}

/// A server, and what was reviewed of it. Its folder begins at the file's.
fn read(name: &str, settings: &Value, folder: &Path) -> Result<(McpServer, McpPins), String> {
    let mut settings = settings.clone();
    let mut pins = McpPins::new();
    if let Some(table) = settings.as_object_mut() {
        if let Some(found) = table.remove(PINS) {
            pins = serde_json::from_value(found).map_err(|error| format!("`pins`: {error}"))?;
        }
        table.insert("name".to_owned(), name.into());
    }
    let mut server: McpServer =
        serde_json::from_value(settings).map_err(|error| error.to_string())?;
    if server.command.is_some() {
        let dir = server.dir.take().unwrap_or_default();
        // An empty path is no folder.
        server.dir = Some(folder.join(dir)).filter(|dir| !dir.as_os_str().is_empty());
    }
    Ok((server, pins))
}

/// The connected servers of a file.
#[derive(Default)]
pub(crate) struct Servers(Vec<Server>);

pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) client: McpClient,
}

impl Servers {
    /// Connects to those that an agent of the file uses, all at the same time.
    pub(crate) async fn connect(
        config: &Config,
        file: &AgentFile,
        folder: &Path,
    ) -> Result<Servers, Failure> {
        let agents = file.all().map(|(agent, _)| agent);
        let used: BTreeSet<&str> = agents.flat_map(|agent| file.servers(agent)).collect();
        if used.is_empty() {
            return Ok(Servers::default());
        }
        let outbound = outbound(config)?;
        let connecting = used.into_iter().map(async |name| {
            let settings = file.mcp.get(name).unwrap_or(&Value::Null);
            let (server, pins) = read(name, settings, folder).map_err(Failure::Usage)?;
            let secret = |name: &str| secret(config, name);
            let options = McpOptions {
                secrets: Some(&secret),
                pins,
            };
            let client = McpClient::connect(&outbound, &server, options).await;
            Ok::<_, Failure>(Server {
                name: name.to_owned(),
                client: client.map_err(Failure::usage)?,
            })
        });
        Ok(Servers(try_join_all(connecting).await?))
    }

    /// The tools of an agent.
    pub(crate) fn tools(&self, file: &AgentFile, agent: &str) -> Vec<DynTool> {
        let tools = self.of(file, agent).map(|server| server.client.tools());
        tools.flatten().collect()
    }

    fn of(&self, file: &AgentFile, agent: &str) -> impl Iterator<Item = &Server> {
        let own = file.servers(agent);
        self.0
            .iter()
            .filter(move |server| own.contains(&&*server.name))
    }

    pub(crate) fn all(&self) -> &[Server] {
        &self.0
    }

    /// What keeps a run from being what its file says, and is no mistake that could be seen before.
    pub(crate) fn remarks(&self, file: &AgentFile) -> Vec<String> {
        let reviews = self.0.iter().filter_map(Server::remark);
        reviews.chain(self.unknown_rules(file)).collect()
    }

    /// The rules of all agents that name tools which their servers do not have.
    pub(crate) fn unknown_rules(&self, file: &AgentFile) -> BTreeSet<String> {
        let agents = file.all();
        agents
            .flat_map(|(agent, spec)| self.unknown_names(file, agent, spec))
            .collect()
    }

    /// The names in an agent's rules and budgets that a server's tools could have and have not.
    fn unknown_names(&self, file: &AgentFile, agent: &str, spec: &AgentSpec) -> Vec<String> {
        let rules = &spec.policy;
        let listed = rules.allow.iter().flatten();
        let listed = listed.chain(&rules.deny).chain(&rules.approve);
        let named: BTreeSet<&String> = listed.chain(spec.budget.per_tool.keys()).collect();
        let mut remarks = Vec::new();
        for server in self.of(file, agent) {
            let tools = server.client.listed();
            let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
            let own = format!("{}__", server.name);
            let unknown = named.iter().filter(|name| {
                name.starts_with(&own) && !name.contains('*') && !names.contains(&name.as_str())
            });
            remarks.extend(unknown.map(|name| {
                let close = hint(name, names.iter().copied());
                format!("a rule names `{name}`, and the MCP server `{}` has no such tool{close}", server.name)
            }));
        }
        remarks
    }

    /// Ends all connections; processes are given a moment to end by themselves.
    pub(crate) async fn close(&self) {
        join_all(self.0.iter().map(|server| server.client.close())).await;
    }
}

impl Server {
    /// Its tools that are not what somebody reviewed.
    pub(crate) fn unreviewed(&self) -> Vec<McpTool> {
        let mut tools = self.client.listed();
        tools.retain(|tool| tool.review != McpReview::Fine);
        tools
    }

    /// How it is spoken with, and what it has.
    pub(crate) async fn summary(&self) -> String {
        let protocol = self.client.protocol().await.unwrap_or_default();
        let tools = self.client.listed().len();
        format!("{}: {tools} tools, protocol {protocol}", self.name)
    }

    /// What is to be said of tools that cannot be used.
    pub(crate) fn remark(&self) -> Option<String> {
        let unreviewed = self.unreviewed();
        let first = unreviewed.first()?;
        let (name, all) = (&self.name, self.client.listed().len());
        Some(format!(
            "{} of {all} tools of the MCP server `{name}` cannot be used, such as `{}`: nobody has reviewed them, or \
             they have changed since; paraph doctor FILE --online prints what to review",
            unreviewed.len(),
            first.name
        ))
    }

    /// What a person reviews, and the lines for the agent's file that say it was: TOML.
    pub(crate) fn to_review(&self) -> Option<String> {
        let tools = self.unreviewed();
        if tools.is_empty() {
            return None;
        }
        let mut text = format!("[mcp.{}.pins]\n", self.name);
        for tool in tools {
            for line in tool.description.lines() {
                text.push_str(&format!("# {line}\n"));
            }
            text.push_str(&format!("# arguments: {}\n", tool.schema));
            let pin = &tool.pin;
            text.push_str(&format!(
                "{} = {{ description = \"{}\", schema = \"{}\", hints = \"{}\" }}\n",
                tool.name, pin.description, pin.schema, pin.hints
            ));
        }
        Some(text)
    }
}
