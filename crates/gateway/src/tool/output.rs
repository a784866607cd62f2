//! What a tool gives: what the model reads, and beside it what is for the program alone.
//!
//! Tools make these, mostly without knowing it: whatever can be written as JSON becomes one. The session
//! records all parts with the call, so that a run that goes on gets the same ones again. What a command
//! means is its reader's business: the gateway carries it and never looks inside.

use super::ToolError;
use crate::json::{Bounds, Json, Shape, Style, quote};
use serde::{Deserialize, Serialize};

/// How many bytes an artifact may have, and how many an update.
const MAX_BESIDE: usize = 4 << 20;
/// How many targets a command may name.
const MAX_TARGETS: usize = 100;

/// The result of a tool: text or JSON for the model, and whatever is to go beside it.
///
/// ```
/// use paraph_gateway::{ToolCommand, ToolOutput};
/// let output = ToolOutput::text("3 rows, the first is `Ada`")
///     .artifact(&["Ada", "Bob", "Cyd"])?
///     .command(ToolCommand::update(&serde_json::json!({"rows": 3}))?.goto("report"))?;
/// # let _ = output;
/// # Ok::<(), paraph_gateway::ToolError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// JSON text: what the model reads.
    pub(crate) content: String,
    pub(crate) artifact: Option<String>,
    pub(crate) command: Option<ToolCommand>,
}

/// What a tool wants to happen in the program that called it: beside its text, which stays the one
/// thing that the model reads of the call.
///
/// In a graph it is an update of the state, keyed by channel, and the nodes to go to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolCommand {
    /// The JSON text of an object: what to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<String>,
    /// Where to go on; nowhere in particular if it is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub goto: Vec<String>,
}

impl ToolCommand {
    /// Writes this, an object keyed by what is to be written.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn update(update: &impl Serialize) -> Result<ToolCommand, ToolError> {
        Ok(ToolCommand {
            update: Some(serde_json::to_string(update)?),
            goto: Vec::new(),
        })
    }

    /// Goes there as well.
    #[must_use]
    pub fn goto(mut self, target: impl Into<String>) -> ToolCommand {
        self.goto.push(target.into());
        self
    }
}

impl ToolOutput {
    /// A text.
    #[must_use]
    pub fn text(text: &str) -> ToolOutput {
        ToolOutput::of_json(quote(text, Style::Exact))
    }

    /// Anything that can be written as JSON.
    ///
    /// # Errors
    /// If it cannot.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::of_json(serde_json::to_string(value)?))
    }

    fn of_json(content: String) -> ToolOutput {
        ToolOutput {
            content,
            artifact: None,
            command: None,
        }
    }

    /// Keeps this for the program, whole. The model never reads it.
    ///
    /// # Errors
    /// If it cannot be written as JSON, or is too large or too deep.
    pub fn artifact(mut self, artifact: &(impl Serialize + ?Sized)) -> Result<Self, ToolError> {
        let text = serde_json::to_string(artifact)?;
        beside("the artifact", &text)?;
        self.artifact = Some(text);
        Ok(self)
    }

    /// Asks for this to be done.
    ///
    /// # Errors
    /// If its update is no object, too large or too deep, or if it names too many targets or one without
    /// a name.
    pub fn command(mut self, command: ToolCommand) -> Result<Self, ToolError> {
        if let Some(update) = &command.update
            && !matches!(
                beside("the update", update)?.view().shape(),
                Shape::Object(_)
            )
        {
            return Err(ToolError::new("the update cannot be kept: it is no object"));
        }
        if command.goto.len() > MAX_TARGETS || command.goto.iter().any(String::is_empty) {
            let why = format!("a command has up to {MAX_TARGETS} targets, each with a name");
            return Err(ToolError::new(why));
        }
        self.command = Some(command);
        Ok(self)
    }
}

/// Reads what is to go beside the text, within bounds.
fn beside(what: &str, text: &str) -> Result<Json, ToolError> {
    let bounds = Bounds {
        bytes: MAX_BESIDE,
        depth: Bounds::default().depth,
        digits: usize::MAX,
    };
    Json::read(text, bounds)
        .map_err(|error| ToolError::new(format!("{what} cannot be kept: {error}")))
}

/// What a tool may return: a [`ToolOutput`], or anything that can be written as JSON.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    note = "a result is written as JSON: add `#[derive(serde::Serialize)]` to it, or return a `ToolOutput`"
)]
pub trait IntoOutput {
    /// As what the session records.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    fn into_output(self) -> Result<ToolOutput, ToolError>;
}

impl<T: Serialize> IntoOutput for T {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        ToolOutput::json(&self)
    }
}

// It has no JSON form of its own, so the implementation above leaves it out.
impl IntoOutput for ToolOutput {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}
