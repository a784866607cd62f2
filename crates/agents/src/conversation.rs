//! A conversation as a channel of a graph's state: a checkpoint stores what was added, not the whole.
//!
//! The list itself, and how it grows, is `paraph_models`'; this is the seam to the engine. What works on
//! any state with a conversation asks for [`HasMessages`].

use paraph_graph::{Change, List, State, Update};
use paraph_models::{Edit, Error, Message, Messages};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// A list of messages for a state: `#[reduce(add_messages, list)] messages: Conversation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Conversation(pub Messages);

impl Deref for Conversation {
    type Target = Messages;

    fn deref(&self) -> &Messages {
        &self.0
    }
}

impl List for Conversation {
    type Item = Message;

    fn from_items(items: Vec<Message>) -> Self {
        Conversation(items.into())
    }

    fn into_items(self) -> Vec<Message> {
        self.0.into_vec()
    }

    fn items(&self) -> &[Message] {
        self.0.as_slice()
    }

    fn append_items(&mut self, items: Vec<Message>) {
        if self.0.is_empty() {
            self.0 = items.into();
        } else {
            self.put(items);
        }
    }

    fn set_item(&mut self, index: usize, item: Message) {
        if self.items().get(index).is_some_and(|old| old.id == item.id) {
            self.put(vec![item]);
        } else if index < self.items().len() {
            let mut all = std::mem::take(&mut self.0).into_vec();
            if let Some(place) = all.get_mut(index) {
                *place = item;
            }
            self.0 = all.into();
        }
    }
}

impl Conversation {
    /// Stored messages hold no removals, which alone could be refused.
    fn put(&mut self, items: Vec<Message>) {
        if let Err(error) = self.0.add(items) {
            tracing::warn!(%error, "a stored message was not taken");
        }
    }
}

/// A state with a conversation: what the tool node and [`crate::tools_condition`] work on.
///
/// ```
/// use paraph_agents::{Conversation, HasMessages, add_messages};
/// use paraph_graph::{State, Update};
/// use paraph_models::Message;
///
/// #[derive(State, Clone, Default)]
/// struct Chat {
///     #[reduce(add_messages, list)]
///     messages: Conversation,
///     city: String,
/// }
///
/// impl HasMessages for Chat {
///     fn conversation(&self) -> &Conversation {
///         &self.messages
///     }
///     fn say(update: Update<Chat>, messages: Vec<Message>) -> Update<Chat> {
///         update.messages(messages)
///     }
/// }
/// ```
pub trait HasMessages: State {
    /// The conversation.
    fn conversation(&self) -> &Conversation;

    /// Adds messages to what an update writes.
    #[must_use]
    fn say(update: Update<Self>, messages: Vec<Message>) -> Update<Self>;
}

/// A state that is nothing but a conversation.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct MessagesState {
    /// The conversation.
    #[reduce(add_messages, list)]
    pub messages: Conversation,
}

impl HasMessages for MessagesState {
    fn conversation(&self) -> &Conversation {
        &self.messages
    }

    fn say(update: Update<MessagesState>, messages: Vec<Message>) -> Update<MessagesState> {
        update.messages(messages)
    }
}

/// The reducer of a conversation: ids replace, removals remove, everything else is appended.
///
/// # Errors
/// [`Error::UnknownMessage`] if a removal names a message that is not there.
pub fn add_messages(all: &mut Conversation, new: Conversation) -> Result<Change, Error> {
    let Edit {
        edited,
        appended_from,
        replaced,
    } = all.0.add(new.0)?;
    Ok(match replaced {
        true => Change::Replaced,
        false if edited.is_empty() && appended_from == all.len() => Change::Unchanged,
        false => Change::list(edited, appended_from),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(State, Clone, Default, Debug, PartialEq)]
    struct Chat {
        #[reduce(add_messages, list)]
        messages: Conversation,
    }

    fn message(id: &str, text: &str) -> Message {
        Message {
            id: id.to_owned(),
            ..Message::human(text)
        }
    }

    #[test]
    fn a_change_says_what_a_checkpoint_has_to_store() {
        let start = || Conversation::from_items(vec![message("a", "1"), message("b", "2")]);
        let table = [
            (vec![], Change::Unchanged),
            (vec![message("c", "3")], Change::Appended(2)),
            (
                vec![message("a", "!"), message("c", "3")],
                Change::list(vec![0], 2),
            ),
            (vec![Message::remove("a")], Change::Replaced),
        ];
        for (new, expected) in table {
            let mut all = start();
            let change = add_messages(&mut all, Conversation::from_items(new.clone()));
            assert_eq!(change.unwrap(), expected, "{new:?}");
        }
        let unknown = Conversation::from_items(vec![Message::remove("x")]);
        assert!(add_messages(&mut start(), unknown).is_err());
    }

    #[test]
    fn stored_pieces_bring_back_the_conversation() {
        let mut all = Conversation::from_items(vec![message("a", "1")]);
        all.append_items(vec![message("b", "2")]);
        all.set_item(0, message("a", "one"));
        all.set_item(1, message("z", "two"));
        all.set_item(9, message("q", "lost"));
        assert_eq!(
            all,
            Conversation::from_items(vec![message("a", "one"), message("z", "two")])
        );
    }

    #[test]
    fn a_state_takes_messages_from_json() {
        let update = Chat::update_from_json(serde_json::json!({"messages": "Hello"}));
        assert!(update.is_ok());
    }
}
