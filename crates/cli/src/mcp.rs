//! The MCP servers of agents in files: their settings, their connections, and what is worth knowing of both.
//!
//! `tools.rs` hands out their tools, `research.rs` has one searched, `doctor` prints what is to be reviewed of them. A server is started or reached
//! only for a run, or when `doctor` is told to go online.

use crate::config::Config;
use crate::failure::Failure;
use crate::suggest::hint;
use crate::terminal::{printable, printable_json};
use crate::tools::{outbound, secret};
use futures::future::join_all;
use paraph_agents::{AgentFile, AgentSpec};
use paraph_gateway::{DynTool, Level};
use paraph_tools::{
    Error, McpClient, McpOptions, McpPins, McpReview, McpServer, McpTool, Outbound,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The key of a server's table that is ours and not the server's.
pub(crate) const PINS: &str = "pins";

/// Every mistake in the settings of a server.
pub(crate) fn mistakes(name: &str, settings: &Value) -> Vec<String> {
    match read(name, settings, Path::new("")) {
        Ok((server, _)) => server.mistakes(),
        Err(why) => vec![why],
    }
}

/// What those of its tools do to the world of which its settings say nothing by name.
pub(crate) fn level(settings: &Value) -> Level {
    let said = settings.get("levels").and_then(|levels| levels.get("*"));
    let said = said.and_then(|said| serde_json::from_value(said.clone()).ok());
    said.unwrap_or(Level::Write)
}

/// A server, and what was reviewed of it. Its folder begins at the file's, and so does a program that is a path.
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
    if let Some(command) = &mut server.command {
        if command.contains('/') {
            *command = folder.join(&command).to_string_lossy().into_owned();
        }
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
    name: String,
    /// Whether its settings say how it is searched.
    searched: bool,
    client: McpClient,
}

impl Servers {
    /// Connects to those that an agent of the file uses, all at the same time: to all of them or to none.
    pub(crate) async fn connect(
        config: &Config,
        file: &AgentFile,
        folder: &Path,
    ) -> Result<Servers, Failure> {
        let (servers, failures) = Servers::attempt(config, file, folder).await?;
        if failures.is_empty() {
            return Ok(servers);
        }
        servers.close().await;
        Err(Failure::Usage(failures.join("\n")))
    }

    /// The same, to as many as there are, with what kept the others from being used.
    pub(crate) async fn attempt(
        config: &Config,
        file: &AgentFile,
        folder: &Path,
    ) -> Result<(Servers, Vec<String>), Failure> {
        let agents = file.all().map(|(agent, _)| agent);
        let used: BTreeSet<&str> = agents.flat_map(|agent| file.servers(agent)).collect();
        if used.is_empty() {
            return Ok((Servers::default(), Vec::new()));
        }
        let outbound = outbound(config)?;
        let connecting = used.into_iter().map(async |name| {
            let settings = file.mcp.get(name).unwrap_or(&Value::Null);
            Server::connect((config, &outbound), (name, settings), folder).await
        });
        let (mut servers, mut failures) = (Vec::new(), Vec::new());
        for connected in join_all(connecting).await {
            match connected {
                Ok(server) => servers.push(server),
                Err(why) => failures.push(why),
            }
        }
        Ok((Servers(servers), failures))
    }

    /// Connects to one of a file, whoever uses it, to search it: its tools that do so.
    pub(crate) async fn to_search(
        config: &Config,
        (name, settings): (&str, &Value),
        folder: &Path,
    ) -> Result<(Servers, Vec<DynTool>), Failure> {
        let outbound = outbound(config)?;
        let server = Server::connect((config, &outbound), (name, settings), folder);
        let server = server.await.map_err(Failure::Usage)?;
        let tools = server.client.sources();
        let servers = Servers(vec![server]);
        match tools {
            Ok(tools) => Ok((servers, tools)),
            Err(error) => {
                servers.close().await;
                let advice = match error {
                    Error::Disabled { .. } => "; paraph doctor FILE --online prints what to review",
                    _ => "",
                };
                Err(Failure::Usage(format!("{error}{advice}")))
            }
        }
    }

    /// The tools of an agent.
    pub(crate) fn tools(&self, file: &AgentFile, agent: &str) -> Vec<DynTool> {
        let servers = self.of(file, agent);
        servers.flat_map(|server| server.client.tools()).collect()
    }

    fn of(&self, file: &AgentFile, agent: &str) -> impl Iterator<Item = &Server> {
        let own = file.servers(agent);
        let used = move |server: &&Server| own.contains(&&*server.name);
        self.0.iter().filter(used)
    }

    pub(crate) fn all(&self) -> &[Server] {
        &self.0
    }

    /// What keeps a run from being what its file says, and is no mistake that could be seen before.
    pub(crate) fn remarks(&self, file: &AgentFile) -> Vec<String> {
        let of_tools = self.0.iter().flat_map(Server::remarks);
        of_tools.chain(self.unknown_rules(file)).collect()
    }

    /// The rules and budgets of all agents that name tools which their servers do not have.
    fn unknown_rules(&self, file: &AgentFile) -> BTreeSet<String> {
        let mut remarks = BTreeSet::new();
        for (agent, spec) in file.all() {
            let named = names(spec);
            for server in self.of(file, agent) {
                remarks.extend(named.iter().filter_map(|name| server.unknown(name)));
            }
        }
        remarks
    }

    /// Ends all connections; processes are given a moment to end by themselves.
    pub(crate) async fn close(&self) {
        join_all(self.0.iter().map(|server| server.client.close())).await;
    }
}

/// The names of tools in an agent's rules and budget.
fn names(spec: &AgentSpec) -> BTreeSet<&str> {
    let rules = &spec.policy;
    let allowed = rules.allow.iter().flatten();
    let ruled = allowed.chain(&rules.deny).chain(&rules.approve);
    let further = rules
        .rules
        .iter()
        .flat_map(|rule| rule.tools.iter().chain(&rule.origin));
    let signed = rules.grants.iter().map(|grant| &grant.tool);
    let flow = &rules.flow;
    let bound = flow.bound.iter().flat_map(|binding| &binding.tools);
    let ruled = ruled
        .chain(further)
        .chain(signed)
        .chain(&flow.untrusted)
        .chain(bound);
    let named = ruled.chain(spec.budget.per_tool.keys());
    named.map(String::as_str).collect()
}

impl Server {
    async fn connect(
        (config, outbound): (&Config, &Outbound),
        (name, settings): (&str, &Value),
        folder: &Path,
    ) -> Result<Server, String> {
        let (server, pins) = read(name, settings, folder)?;
        let secret = |name: &str| secret(config, name);
        let options = McpOptions {
            secrets: Some(&secret),
            pins,
        };
        let searched = server.sources.is_some();
        let client = McpClient::connect(outbound, &server, options).await;
        Ok(Server {
            name: name.to_owned(),
            searched,
            client: client.map_err(|error| error.to_string())?,
        })
    }

    /// How it is spoken with, and what it has.
    pub(crate) async fn summary(&self) -> String {
        let protocol = self.client.protocol().await.unwrap_or_default();
        let tools = self.client.listed().len();
        format!("{}: protocol {protocol}, tools: {tools}", self.name)
    }

    /// What is to be said of a name that only one of its tools could have, and none has.
    fn unknown(&self, name: &str) -> Option<String> {
        let rest = name.strip_prefix(&*self.name)?;
        let tools = self.client.listed();
        let mut names = tools.iter().map(|tool| &*tool.name);
        if !rest.starts_with("__") || name.contains('*') || names.any(|known| known == name) {
            return None;
        }
        let close = hint(name, tools.iter().map(|tool| &*tool.name));
        let server = &self.name;
        Some(format!(
            "a rule or a budget names `{name}`, and the MCP server `{server}` has no such tool{close}"
        ))
    }

    /// What is to be said of its tools that cannot be used: first, if there are such, of those that somebody has to
    /// review.
    fn remarks(&self) -> Vec<String> {
        let (name, tools) = (&self.name, self.client.listed());
        let open: Vec<&McpTool> = tools.iter().filter(|tool| is_to_review(tool)).collect();
        let first = open.first().map(|first| {
            let why = first.review.refusal().unwrap_or_default();
            format!(
                "{} of {} tools of the MCP server `{name}` cannot be used, such as `{}`: {why}; \
                 paraph doctor FILE --online prints what to review",
                open.len(),
                tools.len(),
                first.name
            )
        });
        let unusable = tools.iter().filter_map(|tool| match &tool.review {
            McpReview::Unusable { why } => Some(format!(
                "`{}` cannot be used: the JSON Schema of its arguments is faulty: {why}",
                tool.name
            )),
            _ => None,
        });
        // What is to be reviewed was said, and keeps it from being searched too.
        let sources = (self.searched && open.is_empty()).then(|| self.client.sources());
        let sources = sources.and_then(Result::err).map(|error| {
            format!("the MCP server `{name}` cannot be searched as `sources` says: {error}")
        });
        first.into_iter().chain(unusable).chain(sources).collect()
    }

    /// What a person reviews, and the lines for the agent's file that say it was, with those that said so before: TOML
    /// in which the server's words are comments, whatever they contain.
    pub(crate) fn to_review(&self) -> Option<String> {
        let tools = self.client.listed();
        if !tools.iter().any(is_to_review) {
            return None;
        }
        let mut text = format!("[mcp.{}.pins]\n", self.name);
        for tool in &tools {
            match tool.review {
                McpReview::Unusable { .. } | McpReview::Gone => continue,
                McpReview::Fine => text.push_str("# As it was.\n"),
                _ => {
                    for line in tool.description.lines() {
                        text.push_str(&format!("# {}\n", printable(line)));
                    }
                    let schema = printable_json(tool.schema.to_string());
                    text.push_str(&format!("# arguments: {schema}\n"));
                }
            }
            let (name, pin) = (&tool.name, &tool.pin);
            text.push_str(&format!(
                "{name} = {{ description = \"{}\", schema = \"{}\", hints = \"{}\" }}\n",
                pin.description, pin.schema, pin.hints
            ));
        }
        Some(text)
    }
}

/// Whether a tool could be used if somebody had read what its server says of it.
fn is_to_review(tool: &McpTool) -> bool {
    matches!(
        tool.review,
        McpReview::Unreviewed | McpReview::Changed { .. }
    )
}
