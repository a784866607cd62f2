//! A tool's command as a graph takes it: an update by channel, the tool's own result in it, and targets.
//!
//! Pure. A command that does not fit is a mistake of the program: it ends the run with an error that
//! names the tool, and is never told to the model.

use crate::{Conversation, HasMessages};
use paraph_gateway::{ToolCommand, ToolError};
use paraph_graph::{State, Update};
use paraph_models::Message;
use serde_json::Value;

/// What a call leads to.
pub(super) struct Next<S: State> {
    pub(super) update: Update<S>,
    pub(super) goto: Vec<String>,
}

/// The name of the channel that holds the conversation.
pub(super) struct Channel(String);

impl Channel {
    /// The one that a state's messages are written to.
    pub(super) fn of<S: HasMessages>() -> Option<Channel> {
        let probe = S::say(S::update(), vec![Message::human("")]);
        match S::update_to_json(&probe) {
            Ok(Value::Object(map)) => map.into_iter().next().map(|(name, _)| Channel(name)),
            _ => None,
        }
    }
}

/// The command that writes this update to the state of the graph that the tool is called from.
///
/// ```
/// use paraph_agents::{MessagesState, update_command};
/// use paraph_gateway::{ToolError, ToolOutput, tool};
/// use paraph_graph::State;
///
/// #[derive(State, Clone, Default)]
/// struct Ticket { team: String }
///
/// /// Hands the ticket over.
/// #[tool]
/// fn assign(team: String) -> Result<ToolOutput, ToolError> {
///     let command = update_command::<Ticket>(&Ticket::update().team(&*team))?;
///     ToolOutput::text(&format!("assigned to {team}")).command(command.goto(team))
/// }
/// ```
///
/// # Errors
/// If a value cannot be written as JSON.
pub fn update_command<S: State>(update: &Update<S>) -> Result<ToolCommand, ToolError> {
    Ok(ToolCommand {
        update: Some(S::note(update)?),
        goto: Vec::new(),
    })
}

/// The update and the targets of a command, with the tool's result as the first message that is added.
pub(super) fn read<S: HasMessages>(
    command: &ToolCommand,
    channel: Option<&Channel>,
    result: Message,
) -> Result<(Update<S>, Vec<String>), String> {
    let mut json: Value = match &command.update {
        None => Value::Object(serde_json::Map::new()),
        Some(update) => serde_json::from_str(update).map_err(|e| e.to_string())?,
    };
    let added = match (&mut json, channel) {
        (Value::Object(map), Some(Channel(name))) => map.remove(name),
        _ => None,
    };
    let mut messages = vec![result];
    if let Some(added) = added {
        messages.extend(further(added)?);
    }
    let update = S::update_from_json(json).map_err(|error| error.to_string())?;
    Ok((S::say(update, messages), command.goto.clone()))
}

/// The messages that a command adds to the conversation. A call has one result, which is the tool's text.
fn further(added: Value) -> Result<Vec<Message>, String> {
    if added.get("$replace").is_some() || added.get("$each").is_some() {
        return Err("it may add to the conversation, and not replace it".to_owned());
    }
    let added: Conversation = serde_json::from_value(added).map_err(|error| error.to_string())?;
    match added.iter().any(|message| message.tool_call_id().is_some()) {
        true => Err("the result of a call is the tool's text: it may not add another".to_owned()),
        false => Ok(added.0.into_vec()),
    }
}
