//! [`Messages`]: a conversation, and how it grows.
//!
//! Agents keep one as a channel of their state and use [`Messages::add`] as its reducer; the result says what
//! changed, so that a store can write the change alone. Ids are looked up in an index and never scanned for.
//! This module must not invent ids: a message brings its own.

mod repair;
mod trim;

use std::collections::{HashMap, HashSet};
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use repair::{MISSING_RESULT, Repair, Repaired, repair};
pub use trim::{Trimmed, Window, trim};

use crate::error::Error;
use crate::message::{Body, Message, REMOVE_ALL};

/// A list of messages that is written as a plain JSON array.
///
/// The same type serves as state and as update. As an update it may hold removals and repeat ids; [`Messages::add`]
/// resolves them. It reads from an array or from one bare message (`"Hello"`, `{"role":…}`).
///
/// ```
/// use paraph_models::{Message, Messages};
/// let mut history = Messages::from("Hello");
/// let edit = history.add([Message::ai("Good day"), Message::human("Bye")])?;
/// assert_eq!(edit.appended_from, 1);
/// assert_eq!(history.len(), 3);
/// # Ok::<(), paraph_models::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Messages {
    list: Vec<Message>,
    /// Position of each id among the first `indexed` messages; the rest is indexed when an edit needs it.
    index: HashMap<String, usize>,
    indexed: usize,
}

/// What [`Messages::add`] changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Positions below `appended_from` whose message was replaced by another, ascending.
    pub edited: Vec<usize>,
    /// From this position on all messages are new. Equal to the length if none is.
    pub appended_from: usize,
    /// Positions have shifted (something was removed): only the whole list says what is there now.
    /// Then `edited` is empty and `appended_from` is 0.
    pub replaced: bool,
}

impl Messages {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Merges new messages in, as LangGraph's `add_messages` does:
    /// - an id that is there is replaced in place; a new id is appended; of one id several times the last counts;
    /// - a removal takes its message out; removed and added again in one batch it keeps its place;
    /// - [`Message::remove_all`] drops everything before it, in the list and in the batch.
    ///
    /// Two batches in a row give what one long batch gives, except that a message removed in the first and
    /// added again in the second has lost its place.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if a removal names an id that is not there; then nothing is changed.
    pub fn add(&mut self, new: impl IntoIterator<Item = Message>) -> Result<Edit, Error> {
        let mut new: Vec<Message> = new.into_iter().collect();
        let marker = new.iter().rposition(is_remove_all);
        if let Some(marker) = marker {
            new.drain(..=marker);
            let mut fresh = Self::new();
            fresh.merge(new)?;
            *self = fresh;
            return Ok(Edit::whole());
        }
        self.merge(new)
    }

    fn merge(&mut self, new: Vec<Message>) -> Result<Edit, Error> {
        self.extend_index();
        self.check_removals(&new)?;
        let appended_from = self.list.len();
        let mut edited = Vec::new();
        let mut removed: HashSet<usize> = HashSet::new();
        for message in new {
            let at = self.index.get(&message.id).copied();
            match (at, &message.body) {
                (Some(at), Body::Remove) => {
                    removed.insert(at);
                }
                (Some(at), _) => {
                    removed.remove(&at);
                    if at < appended_from {
                        edited.push(at);
                    }
                    if let Some(place) = self.list.get_mut(at) {
                        *place = message;
                    }
                }
                (None, _) => {
                    self.index.insert(message.id.clone(), self.list.len());
                    self.list.push(message);
                }
            }
        }
        self.indexed = self.list.len();
        if removed.is_empty() {
            edited.sort_unstable();
            edited.dedup();
            return Ok(Edit {
                edited,
                appended_from,
                replaced: false,
            });
        }
        let mut at = 0..;
        self.list
            .retain(|_| at.next().is_none_or(|at| !removed.contains(&at)));
        self.index.clear();
        self.indexed = 0;
        Ok(Edit::whole())
    }

    /// Refuses a batch with a removal of an unknown id before anything is touched.
    fn check_removals(&self, new: &[Message]) -> Result<(), Error> {
        if !new.iter().any(is_removal) {
            return Ok(());
        }
        let mut seen = HashSet::new();
        for message in new {
            let known = seen.contains(message.id.as_str()) || self.index.contains_key(&message.id);
            if is_removal(message) && !known {
                return Err(Error::UnknownMessage {
                    id: message.id.clone(),
                });
            }
            seen.insert(message.id.as_str());
        }
        Ok(())
    }

    fn extend_index(&mut self) {
        for (at, message) in self.list.iter().enumerate().skip(self.indexed) {
            self.index.insert(message.id.clone(), at);
        }
        self.indexed = self.list.len();
    }

    /// The messages, oldest first.
    pub fn as_slice(&self) -> &[Message] {
        &self.list
    }

    /// Gives the messages away, oldest first.
    pub fn into_vec(self) -> Vec<Message> {
        self.list
    }
}

impl Edit {
    fn whole() -> Self {
        Self {
            edited: Vec::new(),
            appended_from: 0,
            replaced: true,
        }
    }
}

fn is_removal(message: &Message) -> bool {
    matches!(message.body, Body::Remove)
}

fn is_remove_all(message: &Message) -> bool {
    is_removal(message) && message.id == REMOVE_ALL
}

impl Deref for Messages {
    type Target = [Message];

    fn deref(&self) -> &[Message] {
        &self.list
    }
}

impl PartialEq for Messages {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl From<Vec<Message>> for Messages {
    fn from(list: Vec<Message>) -> Self {
        Self {
            list,
            ..Self::default()
        }
    }
}

impl<const N: usize> From<[Message; N]> for Messages {
    fn from(list: [Message; N]) -> Self {
        Vec::from(list).into()
    }
}

impl From<Message> for Messages {
    fn from(message: Message) -> Self {
        vec![message].into()
    }
}

impl From<&str> for Messages {
    fn from(text: &str) -> Self {
        Message::human(text).into()
    }
}

impl From<String> for Messages {
    fn from(text: String) -> Self {
        Message::human(text).into()
    }
}

impl FromIterator<Message> for Messages {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        Vec::from_iter(messages).into()
    }
}

impl IntoIterator for Messages {
    type Item = Message;
    type IntoIter = std::vec::IntoIter<Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Message;
    type IntoIter = std::slice::Iter<'a, Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl Serialize for Messages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.list.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Messages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor;

        impl<'de> Visitor<'de> for ListVisitor {
            type Value = Messages;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of messages or one message")
            }

            fn visit_str<E>(self, text: &str) -> Result<Messages, E> {
                Ok(text.into())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Messages, A::Error> {
                let mut list = Vec::new();
                while let Some(message) = seq.next_element()? {
                    list.push(message);
                }
                Ok(list.into())
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Messages, A::Error> {
                let message = Message::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(message.into())
            }
        }

        deserializer.deserialize_any(ListVisitor)
    }
}

impl JsonSchema for Messages {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Messages".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": generator.subschema_for::<Message>() })
    }
}

#[cfg(test)]
mod tests;
