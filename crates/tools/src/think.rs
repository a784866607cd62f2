//! `think`: a model writes down what it makes of things, and reads it back.
//!
//! It does nothing else. The confirmation repeats the reflection, so that the plan stands next to the results in the
//! conversation and is read again before the next step.

use paraph_gateway::DynTool;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::typed::tool;

const ABOUT: &str = "Stop and think before the next step. Write down what the results so far show, what is still \
    missing, and what to do next and why. Nothing happens outside; what was written is read back.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Thought {
    /// What is known, what is missing, and the plan from here.
    #[schemars(length(min = 1, max = 10_000))]
    reflection: String,
}

/// The tool `think`.
pub fn think() -> DynTool {
    tool("think", ABOUT, async |thought: Thought| {
        Ok(format!("Noted, keep to it: {}", thought.reflection))
    })
}
