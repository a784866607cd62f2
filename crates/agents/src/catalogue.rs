//! Which agents there are, as data: for listings and for defaults. It runs none of them.

use crate::support;
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
    vec![AgentInfo {
        name: "support".to_owned(),
        about: "Answers a customer's refund question from profile, billing and policy".to_owned(),
        dialect: Dialect::Strict,
        default_model: "gpt-4.1-mini".to_owned(),
        fallbacks: Vec::new(),
        default_task: "Can I get a refund now?".to_owned(),
        tools: support::TOOLS
            .iter()
            .map(|(name, about)| ToolInfo {
                name: (*name).to_owned(),
                level: Level::Read,
                about: (*about).to_owned(),
            })
            .collect(),
        limits: support::limits(),
    }]
}
