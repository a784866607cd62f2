//! The commands, one file each. They parse what is left to parse, call libraries, and print.

mod agents;
mod completions;
mod config_show;
mod doctor;
mod explain;
mod graph;
mod run;

use crate::args::{Args, Command, ConfigCommand};
use crate::failure::Failure;
use crate::suggest::hint;
use paraph_agents::{AgentInfo, builtin};

/// Runs a command; gives the exit code.
pub(crate) fn dispatch(args: Args) -> Result<u8, Failure> {
    match args.command {
        Command::Run(args) => run::run(&args),
        Command::Agents(args) => agents::list(&args),
        Command::Graph(args) => graph::draw(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Doctor(args) => doctor::examine(&args),
        Command::Config {
            command: ConfigCommand::Show(args),
        } => config_show::show(&args),
        Command::Completions(args) => completions::write(&args),
    }
}

/// The built-in agent of this name.
fn agent(name: &str) -> Result<AgentInfo, Failure> {
    /// Agents that this version does not have yet.
    const LATER: [&str; 3] = ["weather", "research", "triage"];
    let all = builtin();
    if let Some(found) = all.iter().find(|agent| agent.name == name) {
        return Ok(found.clone());
    }
    if name.ends_with(".toml") {
        return Err(Failure::Usage(format!(
            "{name}: agents from TOML files come in a later version; `paraph agents` lists what there is"
        )));
    }
    if LATER.contains(&name) {
        return Err(Failure::Usage(format!(
            "the agent `{name}` comes in a later version; `paraph agents` lists what there is"
        )));
    }
    if name.contains(char::is_whitespace) {
        return Err(Failure::Usage(format!(
            "the agent comes before the task: paraph run support {name:?}"
        )));
    }
    let hint = hint(name, all.iter().map(|agent| agent.name));
    let names: Vec<_> = all.iter().map(|agent| agent.name).collect();
    Err(Failure::Usage(format!(
        "there is no agent `{name}`{hint} (known: {})",
        names.join(", ")
    )))
}

/// A runtime for commands that wait.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Broken(format!("no runtime: {error}")))
}
