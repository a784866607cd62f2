//! An agent that can be run, whichever it is: one of the program's, or one that stands in a file.
//!
//! Commands describe one by its name ([`Described::of`]), open it on a store, and then need not know which it is.

use crate::agent_file::{checked, folder, is_file};
use crate::choice::chosen;
use crate::config::Config;
use crate::failure::Failure;
use crate::mcp::Servers;
use crate::started::{Started, StartedFile};
use paraph_agents::{
    AgentFile, AgentInfo, AgentRun, AgentSpec, Case, Checked, Declared, Error, Parts, RunResult,
    Stores, Support, Terms, ToolInfo, Voice, Weather, sample_tools,
};
use paraph_gateway::{Dialect, DynTool, Level};
use paraph_graph::{CheckpointId, Drawing, RunId};
use paraph_models::{ChatModel, ModelSpec, SchemaMode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The agent whose tools come from outside.
pub(crate) const WEATHER: &str = "weather";

/// What an agent is to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// For whom the support agent acts.
    pub(crate) user: u64,
    /// Nothing for what is due at a checkpoint.
    pub(crate) task: Option<String>,
    /// Whether the loop by hand does it, where there is one.
    pub(crate) by_hand: bool,
}

impl Asked {
    fn case(&self) -> Option<Case> {
        Some(Case {
            user: self.user,
            question: self.task.clone()?,
        })
    }
}

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

    /// A model as the main agent speaks by it.
    pub(crate) fn tooled(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        match &self.file {
            Some(file) => tooled(model, &file.checked.file.main),
            None => model,
        }
    }

    /// Its graph. Its tools are not in it, and so not needed.
    pub(crate) fn drawing(&self) -> Result<Drawing, Failure> {
        let stores = Stores::in_memory();
        let agent = match &self.file {
            None => Application::builtin(&self.info.name, stores, Said::default(), Vec::new())?,
            Some(file) => {
                let declared =
                    Declared::reader(&self.info.name, file.checked.file.main.dialect, stores);
                Application::looked_at(declared.map_err(Failure::usage)?)
            }
        };
        Ok(agent.drawing())
    }

    /// The agent on this store, with its MCP servers running.
    pub(crate) async fn open(
        &self,
        config: &Config,
        stores: Stores,
        said: Said<'_>,
    ) -> Result<Application, Failure> {
        let Some(file) = &self.file else {
            let name = &self.info.name;
            let tools = match (&**name, said.rehearsed) {
                (WEATHER, true) => sample_tools(),
                (WEATHER, false) => crate::tools::all(config)?,
                _ => Vec::new(),
            };
            return Application::builtin(name, stores, said, tools);
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
        let agent = Declared::new(file, parts).map_err(Failure::usage)?;
        let mut warnings = servers.remarks(file);
        warnings.extend_from_slice(agent.warnings());
        Ok(Application::Declared(Box::new(InFile {
            agent,
            servers,
            warnings,
        })))
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
        tools: own.chain(http).chain(called).collect(),
        limits: main.limits(),
    }
}

/// An agent on a store.
pub(crate) enum Application {
    Support(Box<Support>),
    Weather(Box<Weather>),
    Declared(Box<InFile>),
}

/// An agent that stands in a file, with what runs beside it.
pub(crate) struct InFile {
    agent: Declared,
    servers: Servers,
    warnings: Vec<String>,
}

impl Application {
    /// The program's own agent of this name. Tools from outside are only needed to run it.
    pub(crate) fn builtin(
        name: &str,
        stores: Stores,
        said: Said<'_>,
        tools: Vec<DynTool>,
    ) -> Result<Application, Failure> {
        if name == WEATHER {
            let weather = Weather::on(&stores, tools, said.allow, said.deny);
            let weather = weather.map_err(Failure::usage)?;
            return Ok(Application::Weather(Box::new(weather)));
        }
        let support = Support::on(&stores, said.allow, said.deny);
        let support = support.map_err(Failure::usage)?;
        Ok(Application::Support(Box::new(support)))
    }

    /// The agent of a run that was started before, to be looked at: its file need not be there any more.
    pub(crate) fn reader(stores: Stores, started: &Started) -> Result<Application, Failure> {
        if started.file.is_none() {
            let info = crate::commands::agent(&started.agent)?;
            return Application::builtin(&info.name, stores, Said::default(), Vec::new());
        }
        let declared = Declared::reader(&started.agent, started.dialect, stores);
        Ok(Application::looked_at(declared.map_err(Failure::usage)?))
    }

    /// An agent of a file without what it would need to run.
    fn looked_at(agent: Declared) -> Application {
        Application::Declared(Box::new(InFile {
            agent,
            servers: Servers::default(),
            warnings: Vec::new(),
        }))
    }

    /// Ends what runs beside the agent.
    pub(crate) async fn close(&self) {
        if let Application::Declared(declared) = self {
            declared.servers.close().await;
        }
    }

    pub(crate) fn warnings(&self) -> &[String] {
        match self {
            Application::Support(agent) => agent.warnings(),
            Application::Weather(agent) => agent.warnings(),
            Application::Declared(declared) => &declared.warnings,
        }
    }

    fn drawing(&self) -> Drawing {
        match self {
            Application::Support(agent) => agent.drawing(),
            Application::Weather(agent) => agent.drawing(),
            Application::Declared(declared) => declared.agent.drawing(),
        }
    }

    pub(crate) async fn start(&self, asked: &Asked, terms: &Terms) -> Result<AgentRun, Error> {
        match self {
            Application::Support(agent) => {
                let case = asked.case().ok_or(Error::EmptyTask)?;
                agent.start(&case, terms).await
            }
            Application::Weather(agent) => {
                let task = asked.task.as_deref().unwrap_or_default();
                match asked.by_hand {
                    true => agent.start_by_hand(task, terms).await,
                    false => agent.start(task, terms).await,
                }
            }
            Application::Declared(declared) => {
                declared
                    .agent
                    .start(asked.task.as_deref().unwrap_or_default(), terms)
                    .await
            }
        }
    }

    pub(crate) async fn resume(&self, run: RunId, terms: &Terms) -> Result<AgentRun, Error> {
        match self {
            Application::Support(agent) => agent.resume(run, terms).await,
            Application::Weather(agent) => agent.resume(run, terms).await,
            Application::Declared(declared) => declared.agent.resume(run, terms).await,
        }
    }

    pub(crate) async fn replay(
        &self,
        at: CheckpointId,
        asked: &Asked,
        terms: &Terms,
    ) -> Result<AgentRun, Error> {
        match self {
            Application::Support(agent) => agent.replay(at, asked.case().as_ref(), terms).await,
            Application::Weather(agent) => agent.replay(at, asked.task.as_deref(), terms).await,
            Application::Declared(declared) => {
                let task = asked.task.as_deref();
                declared.agent.replay(at, task, terms).await
            }
        }
    }

    pub(crate) async fn result(
        &self,
        run: RunId,
        thread: &str,
        dialect: Dialect,
    ) -> Result<Option<RunResult>, Error> {
        match self {
            Application::Support(agent) => agent.result(run, thread, dialect).await,
            Application::Weather(agent) => agent.result(run, thread).await,
            Application::Declared(declared) => declared.agent.result(run, thread).await,
        }
    }

    pub(crate) async fn fork(
        &self,
        thread: &str,
        dialect: Dialect,
        at: CheckpointId,
    ) -> Result<CheckpointId, Error> {
        match self {
            Application::Support(agent) => agent.fork(thread, dialect, at).await,
            Application::Weather(agent) => agent.fork(thread, at).await,
            Application::Declared(declared) => declared.agent.fork(thread, at).await,
        }
    }
}
