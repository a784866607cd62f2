//! The crate's one error type: mistakes of the program that uses the gateway, found before a run.
//!
//! What goes wrong during a run is a [`crate::Stop`] or a [`crate::Failure`].

use crate::{JsonError, Level, RuleFault};

/// What a caller of this crate can do wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The gateway's tools and policy do not fit together. All mistakes at once.
    #[error("the gateway cannot be built:{}", .0.iter().map(|fault| format!("\n  {fault}")).collect::<String>())]
    Build(Vec<Fault>),
    /// A text is no JSON within the bounds.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A text is none of the stop reasons.
    #[error("`{0}` is no stop reason")]
    UnknownStop(String),
    /// A text names no way of detecting loops.
    #[error("`{0}` is no loop rule; there are exact, soft, cycle and off")]
    UnknownLoopRule(String),
    /// A text is no name of an action.
    #[error("`{0}` is no id of an action")]
    BadActionId(String),
    /// Costs are capped, but nobody said what the model costs.
    #[error("a cost limit needs the price of the model `{model}`, which is not configured")]
    UnknownPrice {
        /// The model as it was asked for.
        model: String,
    },
}

/// One mistake in the tools or the policy of a gateway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A rule names a tool that is not there.
    #[error("the policy names `{name}`, which is not registered{}", did_you_mean(suggestion.as_deref()))]
    UnknownTool {
        /// The name or pattern of the rule.
        name: String,
        /// The registered name that is closest, if one is close.
        suggestion: Option<String>,
    },
    /// A tool that changes something is allowed without asking.
    #[error("`{tool}` is an effect ({level}): `allow` is not enough, it needs `ask`")]
    EffectAllowed {
        /// The tool.
        tool: String,
        /// What it declares.
        level: Level,
    },
    /// A tool that changes something, and could do so without a signature.
    #[error(
        "`{tool}` changes something ({level}): it has to be an `Effect`, which runs by its warrant alone"
    )]
    NoWarrant {
        /// The tool.
        tool: String,
        /// What it declares.
        level: Level,
    },
    /// Two tools have one name.
    #[error("`{0}` is registered twice")]
    Twice(String),
    /// A name that providers or patterns could misread.
    #[error("`{0}` is no tool name: 1 to 128 letters, digits, `_`, `-` or `.`")]
    BadName(String),
    /// A rule with an empty pattern.
    #[error("the policy has an empty pattern")]
    EmptyPattern,
    /// A schema that cannot be compiled, or that no object can satisfy.
    #[error("the schema of `{tool}` cannot be used: {why}")]
    BadSchema {
        /// The tool.
        tool: String,
        /// What is wrong with it.
        why: String,
    },
    /// A rule, a grant or the flow rules of a policy.
    #[error("the {part}: {fault}")]
    Policy {
        /// Which: ``rule `no refunds at night` ``, ``grant `small` `` or `flow rules`.
        part: String,
        /// What is wrong with it.
        fault: RuleFault,
    },
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    match suggestion {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}
