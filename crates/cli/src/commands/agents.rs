//! `paraph agents`: which agents there are, with their tools, models and limits.

use crate::args::ListArgs;
use crate::failure::{FINISHED, Failure};
use crate::output::{print, print_json, table};
use paraph_agents::{AgentInfo, builtin};
use paraph_gateway::UNLIMITED;
use serde::Serialize;

/// One agent in JSON.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    about: &'static str,
    dialect: paraph_gateway::Dialect,
    default_model: &'static str,
    default_task: &'static str,
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

pub(super) fn list(args: &ListArgs) -> Result<u8, Failure> {
    let agents = builtin();
    if args.json {
        print_json(&agents.into_iter().map(row).collect::<Vec<_>>())?;
        return Ok(FINISHED);
    }
    for agent in agents {
        print(&described(&agent))?;
    }
    Ok(FINISHED)
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

fn described(agent: &AgentInfo) -> String {
    let limits = &agent.limits;
    let tools: Vec<_> = agent
        .tools
        .iter()
        .map(|tool| {
            vec![
                format!("    {}", tool.name),
                tool.level.to_string(),
                tool.about.to_owned(),
            ]
        })
        .collect();
    format!(
        "{}: {}\n  model   openai:{} unless told otherwise\n  limits  {} steps, {} tool calls, {} seconds\n  tools\n{}",
        agent.name,
        agent.about,
        agent.default_model,
        limits.steps,
        limits.tool_calls,
        limits.seconds,
        table(&tools)
    )
}
