//! `paraph agents`: which agents there are, with their tools, models and limits.

use crate::application::Described;
use crate::args::AgentsArgs;
use crate::failure::{FINISHED, Failure};
use crate::output::{print, print_json, table};
use paraph_agents::{AgentInfo, builtin};
use paraph_gateway::UNLIMITED;
use serde::Serialize;

/// One agent in JSON.
#[derive(Serialize)]
struct Row {
    name: String,
    about: String,
    dialect: paraph_gateway::Dialect,
    default_model: String,
    default_task: String,
    tools: Vec<paraph_agents::ToolInfo>,
    limits: LimitsRow,
}

/// Limits in JSON: `null` is no limit.
#[derive(Serialize)]
struct LimitsRow {
    max_steps: Option<u64>,
    max_tool_calls: Option<u64>,
    max_seconds: Option<u64>,
    max_tokens: Option<u64>,
}

pub(super) fn list(args: &AgentsArgs) -> Result<u8, Failure> {
    let agents = match &args.file {
        Some(name) => vec![described_in(name)?],
        None => builtin(),
    };
    if args.json {
        print_json(&agents.into_iter().map(row).collect::<Vec<_>>())?;
        return Ok(FINISHED);
    }
    for agent in agents {
        print(&described(&agent))?;
    }
    Ok(FINISHED)
}

/// An agent's file as if it were one of the program's.
fn described_in(name: &str) -> Result<AgentInfo, Failure> {
    let described = Described::of(name)?;
    let model = described.model()?;
    let info = described.info;
    Ok(AgentInfo {
        default_model: model.map_or(format!("openai:{}", info.default_model), |model| {
            model.to_string()
        }),
        ..info
    })
}

fn row(agent: AgentInfo) -> Row {
    let limit = |amount: u64| (amount != UNLIMITED).then_some(amount);
    Row {
        name: agent.name,
        about: agent.about,
        dialect: agent.dialect,
        default_model: agent.default_model,
        default_task: agent.default_task,
        tools: agent.tools,
        limits: LimitsRow {
            max_steps: limit(agent.limits.steps),
            max_tool_calls: limit(agent.limits.tool_calls),
            max_seconds: limit(agent.limits.seconds),
            max_tokens: limit(agent.limits.tokens),
        },
    }
}

/// The model in full: an agent of the program names one of OpenAI's, a file any.
fn model(named: &str) -> String {
    match named == "rehearsal" || named.contains(':') {
        true => named.to_owned(),
        false => format!("openai:{named}"),
    }
}

fn described(agent: &AgentInfo) -> String {
    let limits = &agent.limits;
    let tools: Vec<_> = agent
        .tools
        .iter()
        .map(|tool| {
            vec![
                format!("    {}", tool.name),
                tool.level.to_string(),
                tool.about.clone(),
            ]
        })
        .collect();
    format!(
        "{}: {}\n  model   {} unless told otherwise\n  limits  {} steps, {} tool calls, {} seconds\n  tools\n{}",
        agent.name,
        agent.about,
        model(&agent.default_model),
        limits.steps,
        limits.tool_calls,
        limits.seconds,
        table(&tools)
    )
}
