//! An agent that can be run, whichever it is: one of the program's, or one that stands in a file.
//!
//! Commands describe one by its name ([`Described::of`]) and open it on a store. A new agent of the program's needs a line
//! in [`own`].

use crate::agent_file::{checked, folder, is_file};
use crate::choice::chosen;
use crate::config::Config;
use crate::failure::Failure;
use crate::mcp::Servers;
use crate::output::note;
use crate::research::StartedResearch;
use crate::started::{Started, StartedFile};
use crate::stores::Kept;
use crate::terminal::printable;
use crate::triage::StartedTriage;
use paraph_agents::{
    Agent, AgentFile, AgentInfo, AgentSpec, Checked, Parts, ResearchSettings, Stores, ToolInfo,
    Voice, declared, declared_drawing, declared_reader, research, sample_tools, support,
    support_that_refunds, weather,
};
use paraph_gateway::{Dialect, DynTool, Level};
use paraph_graph::Drawing;
use paraph_models::{ChatModel, ModelSpec, SchemaMode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The agent whose tools come from outside.
pub(crate) const WEATHER: &str = "weather";
/// The agent that looks things up and reports.
pub(crate) const RESEARCH: &str = "research";
/// The agent that looks after issues.
pub(crate) const TRIAGE: &str = "triage";
/// The agent that answers customers.
const SUPPORT: &str = "support";

/// An agent by its name, before anything is opened.
pub(crate) struct Described {
    pub(crate) info: AgentInfo,
    /// Its file, if it stands in one.
    pub(crate) file: Option<AgentPath>,
}

/// An agent's file, read and checked.
pub(crate) struct AgentPath {
    /// Where it is, from the root.
    pub(crate) path: PathBuf,
    pub(crate) checked: Checked,
}

/// What is said on the command line about an agent's tools and prompt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said<'a> {
    pub(crate) allow: &'a [String],
    pub(crate) deny: &'a [String],
    pub(crate) variables: Option<&'a BTreeMap<String, String>>,
    /// Whether agents in a file speak by the models that it names.
    pub(crate) own_models: bool,
    /// Whether a run goes on.
    pub(crate) resumed: bool,
    /// Whether the model is the rehearsal, which must not need a network.
    pub(crate) rehearsed: bool,
    /// How research is done.
    pub(crate) research: Option<&'a StartedResearch>,
    /// Which issue triage is about, and how it is done.
    pub(crate) triage: Option<&'a StartedTriage>,
    /// The store, where an agent reads more there than its threads.
    pub(crate) kept: Option<&'a Kept>,
}

impl<'a> Said<'a> {
    /// What was said when a run was started.
    pub(crate) fn of(started: &'a Started) -> Said<'a> {
        let file = started.file.as_ref();
        Said {
            allow: &started.allow,
            deny: &started.deny,
            variables: file.map(|file| &file.variables),
            own_models: file.is_some_and(|file| file.own_models),
            resumed: true,
            rehearsed: started.is_rehearsed(),
            research: started.research.as_ref(),
            triage: started.triage.as_ref(),
            kept: None,
        }
    }
}

impl Described {
    /// The agent of this name, or in this file.
    pub(crate) fn of(name: &str) -> Result<Described, Failure> {
        if !is_file(name) {
            let info = crate::commands::agent(name)?;
            return Ok(Described { info, file: None });
        }
        let checked = checked(Path::new(name))?;
        let path = std::fs::canonicalize(name)
            .map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
        let file = AgentPath { path, checked };
        Ok(Described {
            info: AgentInfo {
                fallbacks: file.fallbacks(&file.checked.file.main)?,
                ..info(&file.checked.file)
            },
            file: Some(file),
        })
    }

    /// The agent of a run that was started before. A file that says something else now is refused: what the run
    /// remembers was made by other rules.
    pub(crate) fn started(started: &Started) -> Result<Described, Failure> {
        let Some(file) = &started.file else {
            return Described::of(&started.agent);
        };
        let shown = file.path.display();
        if !file.path.exists() {
            return Err(Failure::Usage(format!(
                "the run's agent stood in {shown}, which is no longer there: put the file back to go on with the run"
            )));
        }
        let Some(path) = file.path.to_str() else {
            return Err(Failure::Usage(format!("{shown}: the path is not UTF-8")));
        };
        let described = Described::of(path)?;
        let now = described.file.as_ref().map(|now| now.checked.file.digest());
        if now.as_ref() != Some(&file.digest) {
            return Err(Failure::Usage(format!(
                "{shown} has changed since the run began: its prompts, tools, rules or forms are others (its model, \
                 budget, loop rule and descriptions may change). Put it back to go on with the run, or ask again on \
                 the same thread: paraph run {shown} TASK --thread NAME"
            )));
        }
        Ok(described)
    }

    /// The agent's file as it is stored with a run.
    pub(crate) fn started_file(
        &self,
        variables: &BTreeMap<String, String>,
        own_models: bool,
    ) -> Option<StartedFile> {
        self.file.as_ref().map(|file| StartedFile {
            path: file.path.clone(),
            digest: file.checked.file.digest(),
            variables: variables.clone(),
            own_models,
        })
    }

    /// The model that the file names, with paths that lead from here.
    pub(crate) fn model(&self) -> Result<Option<ModelSpec>, Failure> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        file.model(&file.checked.file.main)
    }

    /// Whether it may give money back.
    pub(crate) fn may_refund(&self) -> bool {
        match &self.file {
            None => self.info.name == SUPPORT,
            Some(file) => crate::tools::may_refund(&file.checked.file),
        }
    }

    /// A model as the main agent speaks by it.
    pub(crate) fn tooled(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        match &self.file {
            Some(file) => tooled(model, &file.checked.file.main),
            None => model,
        }
    }

    /// Its graph. Its tools are not in it, and so not needed.
    pub(crate) fn drawing(&self) -> Result<Drawing, Failure> {
        let (name, dialect, stores) = (&self.info.name, self.info.dialect, Stores::in_memory());
        match &self.file {
            None => Ok(own(name, &stores, dialect, Said::default(), Vec::new())?.drawing()),
            Some(file) => declared_drawing(&file.checked.file).map_err(Failure::usage),
        }
    }

    /// The agent on this store, with its MCP servers running.
    pub(crate) async fn open(
        &self,
        config: &Config,
        stores: Stores,
        said: Said<'_>,
    ) -> Result<Opened, Failure> {
        let Some(file) = &self.file else {
            let name = &self.info.name;
            if name == RESEARCH {
                return crate::research::open(config, (stores, &self.info), said).await;
            }
            if name == TRIAGE {
                return crate::triage::open(config, (stores, &self.info), said).await;
            }
            let tools = match (&**name, said.rehearsed) {
                (WEATHER, true) => sample_tools(),
                (WEATHER, false) => crate::tools::all(config)?,
                _ => vec![crate::tools::refund(config)?],
            };
            let agent = own(name, &stores, self.info.dialect, said, tools)?;
            return Ok(Opened {
                warnings: agent.warnings().to_vec(),
                servers: Servers::default(),
                agent,
            });
        };
        let voices = match said.own_models {
            true => file.voices(config, &self.info, said.resumed)?,
            false => BTreeMap::new(),
        };
        let folder = folder(&file.path);
        let file = &file.checked.file;
        let servers = Servers::connect(config, file, &folder).await?;
        let parts = Parts {
            tools: crate::tools::of_file(config, file, &servers)?,
            voices,
            variables: said.variables.cloned().unwrap_or_default(),
            allow: said.allow.to_vec(),
            deny: said.deny.to_vec(),
            ..Parts::of(stores)
        };
        let agent = declared(file, parts).map_err(Failure::usage)?;
        let mut warnings = servers.remarks(file);
        warnings.extend_from_slice(agent.warnings());
        Ok(Opened {
            agent,
            servers,
            warnings,
        })
    }
}

impl AgentPath {
    /// The model that an agent of the file names, with paths that lead from here.
    fn model(&self, spec: &AgentSpec) -> Result<Option<ModelSpec>, Failure> {
        spec.model
            .as_deref()
            .map(|spec| self.spec(spec))
            .transpose()
    }

    /// The models that stand in for it, in the same way.
    fn fallbacks(&self, spec: &AgentSpec) -> Result<Vec<String>, Failure> {
        let specs = spec.fallbacks.iter().map(|spec| self.spec(spec));
        specs.map(|spec| Ok(spec?.to_string())).collect()
    }

    fn spec(&self, spec: &str) -> Result<ModelSpec, Failure> {
        let spec = spec.parse().map_err(Failure::usage)?;
        Ok(crate::started::moved(spec, &folder(&self.path)))
    }

    /// The models of the agents that are called, as far as they have their own.
    fn voices(
        &self,
        config: &Config,
        info: &AgentInfo,
        resumed: bool,
    ) -> Result<BTreeMap<String, Voice>, Failure> {
        let mut voices = BTreeMap::new();
        for (name, spec) in &self.checked.file.agents {
            if let Some(model) = self.model(spec)? {
                let info = AgentInfo {
                    fallbacks: self.fallbacks(spec)?,
                    ..info.clone()
                };
                let choice = chosen(config, &info, model, resumed)?;
                let voice = Voice {
                    model: tooled(choice.model, spec),
                    price: choice.price,
                };
                voices.insert(name.clone(), voice);
            }
        }
        Ok(voices)
    }
}

/// The model as an agent speaks by it: one that has no tool calls of its own makes them by a schema.
fn tooled(model: Arc<dyn ChatModel>, spec: &AgentSpec) -> Arc<dyn ChatModel> {
    match spec.tool_mode.as_deref() {
        Some("schema") => Arc::new(SchemaMode::new(model)),
        _ => model,
    }
}

/// What listings and defaults know of an agent in a file, but for the models that stand in for its own.
fn info(file: &AgentFile) -> AgentInfo {
    let main = &file.main;
    let builtin = crate::tools::builtin();
    let own = main.tools.builtin.iter().filter_map(|name| {
        let found = builtin.iter().find(|tool| tool.name == *name);
        found.cloned()
    });
    let text = |settings: &Value, key: &str| {
        settings
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let http = main.tools.http.iter().map(|settings| ToolInfo {
        name: text(settings, "name"),
        level: crate::tools::level(settings),
        about: text(settings, "description"),
    });
    let called = main.tools.agents.iter().filter_map(|name| {
        let about = file.agents.get(name)?.about.clone();
        Some(ToolInfo {
            name: name.clone(),
            level: Level::Read,
            about: about.unwrap_or_default(),
        })
    });
    let served = file.servers(&file.name).into_iter().map(|name| ToolInfo {
        name: format!("{name}__*"),
        level: file
            .mcp
            .get(name)
            .map(crate::mcp::level)
            .unwrap_or_default(),
        about: format!("What the MCP server `{name}` has"),
    });
    AgentInfo {
        name: file.name.clone(),
        about: main
            .about
            .clone()
            .unwrap_or_else(|| "An agent in a file".to_owned()),
        dialect: main.dialect,
        default_model: "gpt-4.1-mini".to_owned(),
        fallbacks: Vec::new(),
        default_task: main.task.clone().unwrap_or_default(),
        tools: own.chain(http).chain(called).chain(served).collect(),
        limits: main.limits(),
    }
}

/// An agent on a store, with what runs beside it.
pub(crate) struct Opened {
    pub(crate) agent: Agent,
    pub(crate) servers: Servers,
    pub(crate) warnings: Vec<String>,
}

impl Opened {
    /// Says what is remarkable about it.
    pub(crate) fn warn(&self) {
        for warning in &self.warnings {
            note(&format!("warning: {}", printable(warning)));
        }
    }

    /// Ends what runs beside the agent.
    pub(crate) async fn close(&self) {
        self.servers.close().await;
    }
}

/// The program's own agent of this name. Tools from outside are only needed to run it.
pub(crate) fn own(
    name: &str,
    stores: &Stores,
    dialect: Dialect,
    said: Said<'_>,
    tools: Vec<DynTool>,
) -> Result<Agent, Failure> {
    let (allow, deny) = (said.allow, said.deny);
    if name == WEATHER {
        return weather(stores, tools, allow, deny).map_err(Failure::usage);
    }
    if name == RESEARCH {
        let settings = ResearchSettings::default();
        return research(stores, tools, settings, (allow, deny)).map_err(Failure::usage);
    }
    if name == TRIAGE {
        return crate::triage::reader(stores);
    }
    let agent = match tools.into_iter().next() {
        Some(refund) => support_that_refunds(stores, dialect, refund, allow, deny),
        None => support(stores, dialect, allow, deny),
    };
    agent.map_err(Failure::usage)
}

/// The agent of a run that was started before, to be looked at: its file need not be there any more.
pub(crate) fn reader(stores: Stores, started: &Started) -> Result<Agent, Failure> {
    let dialect = started.dialect;
    if started.file.is_none() {
        let info = crate::commands::agent(&started.agent)?;
        return own(&info.name, &stores, dialect, Said::default(), Vec::new());
    }
    declared_reader(&started.agent, dialect, stores).map_err(Failure::usage)
}
