//! From an agent file to an agent that runs: its gateway, its graph, its instructions.
//!
//! Called by whoever composes a program, with the tools and stores that it has. Which model runs, and within what
//! limits, is said when a run begins ([`Terms`](crate::Terms)), as for every agent.

use super::actions::actions;
use super::child::Child;
use super::drawing::Called;
use super::file::{AgentFile, AgentSpec, OutputSpec, PolicySpec};
use super::mistake::did_you_mean;
use super::output::Output;
use super::policy::{policy_of, targets_of};
use super::prompt::fill;
use crate::react::{Speech, speaking};
use crate::{Agent, Error, Stores};
use paraph_gateway::{Dialect, DynTool, Fault, Gateway, Price, ToolSpec};
use paraph_graph::Drawing;
use paraph_models::ChatModel;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a program brings for the agents of a file.
pub struct Parts {
    /// Where threads and records are kept.
    pub stores: Stores,
    /// The tools of each agent that come from outside the file, by the agent's name.
    pub tools: BTreeMap<String, Vec<DynTool>>,
    /// The models of agents that have one of their own, by the agent's name. The others speak by their caller's.
    pub voices: BTreeMap<String, Voice>,
    /// What stands for variables in prompts, over what the file says.
    pub variables: BTreeMap<String, String>,
    /// Names that the main agent may call besides, whether or not there are such tools.
    pub allow: Vec<String>,
    /// What it may not call, whatever the file says.
    pub deny: Vec<String>,
}

/// A model, and what it costs.
#[derive(Clone)]
pub struct Voice {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// Its price, if it is known.
    pub price: Option<Price>,
}

/// The main agent of a file. Its dialect is the file's.
///
/// # Errors
/// [`Error::UnknownVariable`] for a variable that the file does not have; [`Error::BadTarget`]; [`Error::Gateway`] and
/// [`Error::EffectAllowed`] if the tools and the rules do not fit together.
///
/// ```
/// use paraph_agents::{Parts, Rehearsal, Stores, Supply, Terms, declared, read_agent_file};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let supply = Supply {
///     builtin: &[],
///     arguments: &|_| None,
///     http: None,
///     mcp: None,
///     read: &|_| Err("no files here".into()),
/// };
/// let text = "name = \"greeter\"\nprompt = \"Greet people in {{town}}.\"\nvariables = { town = \"Basel\" }\n";
/// let file = read_agent_file(text, &supply).map_err(|mistakes| format!("{mistakes:?}"))?.file;
/// let agent = declared(&file, Parts::of(Stores::in_memory()))?;
/// let terms = Terms { limits: file.main.limits(), ..Terms::new(Arc::new(Rehearsal::Declared), "morning") };
/// let result = agent.start("Say hello.", &terms).await?.result().await;
/// assert!(result.answer().is_some_and(|answer| answer.contains("Say hello.")));
/// # Ok(()) }
/// ```
pub fn declared(file: &AgentFile, parts: Parts) -> Result<Agent, Error> {
    let variables = variables(file, &parts.variables)?;
    let rules = (parts.allow.clone(), parts.deny.clone());
    let mut building = Building {
        file,
        parts,
        variables,
        built: BTreeMap::new(),
    };
    let agent = building.agent(&file.name, &file.main, rules)?;
    let drawing = Called::of(file, &building.built).drawing(&agent, &file.main);
    let mut agent = agent.drawn(drawing);
    let called = building.built.into_iter();
    agent.called = called
        .map(|(name, child)| (name, child.agent.gateway.clone()))
        .collect();
    Ok(agent)
}

/// An agent of a file that can only be looked at: its results, its drawing, its branches. It needs no file and no
/// tools.
///
/// # Errors
/// [`Error::Graph`], which would be a mistake of this crate.
pub fn declared_reader(name: &str, dialect: Dialect, stores: Stores) -> Result<Agent, Error> {
    let mut file = AgentFile {
        name: name.to_owned(),
        ..AgentFile::default()
    };
    file.main.dialect = dialect;
    declared(&file, Parts::of(stores))
}

/// The drawing of a file's main agent, and of those that it calls. It needs no tools, so that nothing is opened for it.
///
/// # Errors
/// [`Error::BadOutput`] for a form of answers that is none; [`Error::Graph`], which would be a mistake of this crate.
pub fn declared_drawing(file: &AgentFile) -> Result<Drawing, Error> {
    let mut file = file.clone();
    for spec in std::iter::once(&mut file.main).chain(file.agents.values_mut()) {
        // Rules are about tools, of which there are none here.
        spec.policy = PolicySpec::default();
        spec.prompt.clear();
    }
    Ok(declared(&file, Parts::of(Stores::in_memory()))?.drawing())
}

impl Parts {
    /// These stores, and nothing else.
    #[must_use]
    pub fn of(stores: Stores) -> Parts {
        Parts {
            stores,
            tools: BTreeMap::new(),
            voices: BTreeMap::new(),
            variables: BTreeMap::new(),
            allow: Vec::new(),
            deny: Vec::new(),
        }
    }
}

/// The agents of a file while they are built, those that are called before their callers.
struct Building<'f> {
    file: &'f AgentFile,
    parts: Parts,
    variables: BTreeMap<String, String>,
    built: BTreeMap<String, Arc<Child>>,
}

impl Building<'_> {
    fn agent(
        &mut self,
        name: &str,
        spec: &AgentSpec,
        rules: (Vec<String>, Vec<String>),
    ) -> Result<Agent, Error> {
        let mut tools = self.parts.tools.remove(name).unwrap_or_default();
        for callee in &spec.tools.agents {
            if let Some(child) = self.child(callee)? {
                tools.push(child.tool());
            }
        }
        let gateway = self.gateway(spec, tools, rules)?;
        let speech = Speech {
            instructions: fill(&spec.prompt, &self.variables),
            temperature: Some(spec.temperature.unwrap_or(0.0)),
            max_answer_tokens: spec.max_answer_tokens,
            context: spec.context.clone(),
            output: spec.output.as_ref().map(output).transpose()?,
        };
        let threads = self.parts.stores.threads.clone();
        let targets = targets_of(&spec.policy, &self.variables)?;
        let mut agent = match spec.dialect {
            Dialect::Native => speaking(name.to_owned(), speech, gateway)?,
            Dialect::Strict => actions(name.to_owned(), speech, gateway)?,
        };
        agent.targets = targets;
        let reserve = spec.budget.synthesis_reserve.unwrap_or(0);
        Ok(agent.keeping_back(reserve).on(threads))
    }

    /// An agent that is called, built once however many call it. The reader has seen to it that no agent is above
    /// itself.
    fn child(&mut self, name: &str) -> Result<Option<Arc<Child>>, Error> {
        if let Some(built) = self.built.get(name) {
            return Ok(Some(built.clone()));
        }
        let file = self.file;
        let Some(spec) = file.agents.get(name) else {
            return Ok(None);
        };
        let agent = self.agent(name, spec, (Vec::new(), Vec::new()))?;
        let child = Arc::new(Child {
            name: name.to_owned(),
            about: spec.about.clone().unwrap_or_default(),
            agent,
            limits: spec.limits(),
            loops: spec.loops,
            voice: self.parts.voices.get(name).cloned(),
            threads: self.parts.stores.threads.clone(),
        });
        self.built.insert(name.to_owned(), child.clone());
        Ok(Some(child))
    }

    /// The gateway of an agent: its tools, and the rules of its file over them.
    fn gateway(
        &self,
        spec: &AgentSpec,
        tools: Vec<DynTool>,
        (allow, deny): (Vec<String>, Vec<String>),
    ) -> Result<Gateway, Error> {
        let known: Vec<_> = tools
            .iter()
            .map(|tool| ToolSpec {
                name: tool.name.clone(),
                about: String::new(),
                schema: serde_json::Value::Null,
                level: tool.level,
            })
            .collect();
        let policy = policy_of(&spec.policy, &known)
            .allow_unregistered(allow)
            .deny(deny);
        let builder = self.parts.stores.gateway();
        let builder = tools
            .into_iter()
            .fold(builder, paraph_gateway::Builder::dynamic);
        builder.policy(policy).build().map_err(in_words_of_a_file)
    }
}

/// The reader knows the levels of all tools but those of MCP servers; what is wrong with theirs is said here.
fn in_words_of_a_file(error: paraph_gateway::Error) -> Error {
    if let paraph_gateway::Error::Build(faults) = &error
        && let Some(Fault::EffectAllowed { tool, level }) = faults.first()
    {
        return Error::EffectAllowed {
            tool: tool.clone(),
            level: *level,
        };
    }
    error.into()
}

fn output(spec: &OutputSpec) -> Result<Arc<Output>, Error> {
    let output = Output::new(&spec.schema, spec.repairs());
    output.map(Arc::new).map_err(Error::BadOutput)
}

/// The variables of a file, with what is said instead.
fn variables(
    file: &AgentFile,
    instead: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut all = file.variables.clone();
    for (name, value) in instead {
        match all.get_mut(name) {
            Some(known) => known.clone_from(value),
            None => {
                return Err(Error::UnknownVariable {
                    name: name.clone(),
                    advice: did_you_mean(name, file.variables.keys().map(String::as_str)),
                });
            }
        }
    }
    Ok(all)
}
