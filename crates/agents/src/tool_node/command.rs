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
fn further(mut added: Value) -> Result<Vec<Message>, String> {
    if added.get("$replace").is_some() {
        return Err("it may add to the conversation, and not replace it".to_owned());
    }
    // Several writes of one update, as the engine writes them down.
    let writes = match added.get_mut("$each").map(Value::take) {
        Some(Value::Array(writes)) => writes,
        _ => vec![added],
    };
    let mut messages = Vec::new();
    for write in writes {
        let more: Conversation =
            serde_json::from_value(write).map_err(|error| error.to_string())?;
        messages.extend(more.0.into_vec());
    }
    match messages
        .iter()
        .any(|message| message.tool_call_id().is_some())
    {
        true => Err("the result of a call is the tool's text: it may not add another".to_owned()),
        false => Ok(messages),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MessagesState, add_messages};

    #[derive(State, Clone, Default)]
    struct Chat {
        #[reduce(add_messages, list)]
        messages: Conversation,
        #[reduce(append)]
        notes: Vec<String>,
    }

    impl HasMessages for Chat {
        fn conversation(&self) -> &Conversation {
            &self.messages
        }

        fn say(update: Update<Chat>, messages: Vec<Message>) -> Update<Chat> {
            update.messages(messages)
        }
    }

    #[test]
    fn whatever_an_update_says_of_other_channels_survives_and_its_messages_follow_the_result() {
        let update = Chat::update()
            .notes(["a".to_owned()])
            .replace_notes(vec!["b".to_owned()])
            .notes(["c".to_owned()])
            .messages([Message::human("1")])
            .messages([Message::ai("2"), Message::human("3")]);
        let command = update_command::<Chat>(&update).unwrap();
        let channel = Channel::of::<Chat>();
        let result = Message::tool("x", "done");
        let (read, goto) = read::<Chat>(&command.goto("on"), channel.as_ref(), result).unwrap();
        assert_eq!(goto, ["on"]);
        let json = Chat::update_to_json(&read).unwrap();
        assert_eq!(json["notes"], serde_json::json!(["b", "c"]));
        let note: Value = serde_json::from_str(&Chat::note(&read).unwrap()).unwrap();
        assert_eq!(note["notes"]["$replace"], serde_json::json!(["b"]));
        let texts: Vec<_> = json["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| &m["content"])
            .collect();
        assert_eq!(texts, ["done", "1", "2", "3"]);
    }

    #[test]
    fn the_conversation_s_channel_is_found_by_what_is_written_to_it() {
        let name = |channel: Option<Channel>| channel.map(|Channel(name)| name);
        assert_eq!(
            name(Channel::of::<MessagesState>()).as_deref(),
            Some("messages")
        );
        assert_eq!(name(Channel::of::<Chat>()).as_deref(), Some("messages"));
    }
}
