//! Which agents there are, as data: for listings and for defaults. It runs none of them.

use crate::{research, support, triage, weather};
use paraph_gateway::{Dialect, Level, Limits};
use serde::Serialize;

/// What is known of a built-in agent before it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentInfo {
    /// Its name on the command line.
    pub name: String,
    /// What it does.
    pub about: String,
    /// How its model says what it wants.
    pub dialect: Dialect,
    /// The model of OpenAI's that it uses unless told otherwise.
    pub default_model: String,
    /// Models that are asked when its own fails, as people write them.
    pub fallbacks: Vec<String>,
    /// What it does without a task.
    pub default_task: String,
    /// Its tools, in the order in which the model sees them.
    pub tools: Vec<ToolInfo>,
    /// What a run may use unless told otherwise.
    pub limits: Limits,
}

/// One tool of an agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolInfo {
    /// Its name.
    pub name: String,
    /// What it does to the world.
    pub level: Level,
    /// What it does.
    pub about: String,
}

/// The built-in agents.
pub fn builtin() -> Vec<AgentInfo> {
    let (name, about) = support::REFUND;
    let refund = ToolInfo {
        name: name.to_owned(),
        level: Level::Write,
        about: about.to_owned(),
    };
    let support = AgentInfo {
        name: "support".to_owned(),
        about: "Answers a customer's refund question from profile, billing and policy; refunds once a person approves"
            .to_owned(),
        dialect: Dialect::Strict,
        default_model: "gpt-4.1-mini".to_owned(),
        fallbacks: Vec::new(),
        default_task: "Can I get a refund now?".to_owned(),
        tools: reading(&support::TOOLS).chain([refund]).collect(),
        limits: support::limits(),
    };
    let weather = AgentInfo {
        name: "weather".to_owned(),
        about: "Finds a place on the web and compares its temperature now".to_owned(),
        dialect: Dialect::Native,
        default_model: "gpt-4o-mini".to_owned(),
        default_task:
            "Which is the first hotel you find in Boston, if it is lower than 30 degrees there?"
                .to_owned(),
        fallbacks: Vec::new(),
        tools: reading(&weather::TOOLS).collect(),
        limits: weather::limits(),
    };
    let research = AgentInfo {
        name: "research".to_owned(),
        about: "Looks a question up with several researchers and writes a report whose citations are checked".to_owned(),
        dialect: Dialect::Native,
        default_model: "gpt-4o".to_owned(),
        default_task: "Which measures against made-up answers are there in retrieval-augmented generation, and what do they bring?".to_owned(),
        fallbacks: Vec::new(),
        tools: reading(&research::TOOLS_OF_RESEARCHERS).collect(),
        limits: research::limits(),
    };
    vec![support, weather, research, triage_info()]
}

/// The triage agent, as the others are listed.
pub fn triage_info() -> AgentInfo {
    let (name, about) = triage::POSTS;
    let posts = ToolInfo {
        name: name.to_owned(),
        level: Level::Write,
        about: about.to_owned(),
    };
    AgentInfo {
        name: triage::NAME.to_owned(),
        about: "Finds out what a GitHub issue needs, and comments on it once a person has approved the bytes"
            .to_owned(),
        dialect: Dialect::Strict,
        default_model: "gpt-4o-mini".to_owned(),
        default_task: String::new(),
        fallbacks: Vec::new(),
        tools: reading(&triage::TOOLS).chain([posts]).collect(),
        limits: triage::limits(),
    }
}

/// Tools that read.
fn reading(tools: &[(&str, &str)]) -> impl Iterator<Item = ToolInfo> {
    let tool = |(name, about): &(&str, &str)| ToolInfo {
        name: (*name).to_owned(),
        level: Level::Read,
        about: (*about).to_owned(),
    };
    tools.iter().map(tool)
}
