//! Channels as checkpoints keep them: whole, or for lists only what is new.
//!
//! Called by what `#[derive(State)]` generates, and pure. Which pieces there are is the engine's business.

use super::{Change, channel::Write, text};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// How a stored piece of a channel is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchKind {
    /// The whole value.
    Whole,
    /// A JSON array of items that come at the end of the list.
    Append,
    /// `{"set": [[index, item], …], "append": [item, …]}`.
    Edit,
}

/// What a checkpoint stores of one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// How `json` is to be read.
    pub kind: PatchKind,
    /// JSON text in UTF-8.
    pub json: Vec<u8>,
}

/// A list channel of which checkpoints store new and edited items only.
///
/// `Vec<T>` is one by itself; another type says so with `#[reduce(…, list)]`.
pub trait List: Sized {
    /// One item.
    type Item: Serialize + DeserializeOwned;
    /// A list of these items.
    fn from_items(items: Vec<Self::Item>) -> Self;
    /// The items, by value.
    fn into_items(self) -> Vec<Self::Item>;
    /// The items, in order.
    fn items(&self) -> &[Self::Item];
    /// Puts items at the end. (Not called `extend`: a glob import of this crate would make that of
    /// `Vec` ambiguous.)
    fn append_items(&mut self, items: Vec<Self::Item>);
    /// Replaces the item at an index that is below the length.
    fn set_item(&mut self, index: usize, item: Self::Item);
}

impl<T: Serialize + DeserializeOwned> List for Vec<T> {
    type Item = T;
    fn from_items(items: Vec<T>) -> Self {
        items
    }
    fn into_items(self) -> Vec<T> {
        self
    }
    fn items(&self) -> &[T] {
        self
    }
    fn append_items(&mut self, mut items: Vec<T>) {
        if self.is_empty() {
            *self = items;
        } else {
            self.append(&mut items);
        }
    }
    fn set_item(&mut self, index: usize, item: T) {
        if let Some(slot) = self.get_mut(index) {
            *slot = item;
        }
    }
}

/// Stores the whole value, whatever changed.
pub fn encode<T: Serialize + DeserializeOwned>(
    value: &T,
    _: &Change,
) -> Result<Patch, serde_json::Error> {
    Ok(Patch {
        kind: PatchKind::Whole,
        json: text::write::<_, T>(value)?,
    })
}

#[derive(Serialize)]
struct EditOut<'a, T> {
    set: Vec<(usize, &'a T)>,
    append: &'a [T],
}

#[derive(Deserialize)]
struct EditIn<T> {
    set: Vec<(usize, T)>,
    append: Vec<T>,
}

/// Stores of a list what the change says is new.
pub fn encode_list<L: List>(list: &L, change: &Change) -> Result<Patch, serde_json::Error> {
    let items = list.items();
    let (kind, json) = match change {
        Change::Appended(from) if *from <= items.len() => {
            let json = text::write::<_, Vec<L::Item>>(&items[*from..])?;
            (PatchKind::Append, json)
        }
        Change::Edited { at, from } if *from <= items.len() => {
            let edit = EditOut {
                set: at
                    .iter()
                    .filter_map(|&i| items.get(i).map(|item| (i, item)))
                    .collect(),
                append: &items[*from..],
            };
            let json = text::write::<_, EditIn<L::Item>>(&edit)?;
            (PatchKind::Edit, json)
        }
        _ => {
            let json = text::write::<_, Vec<L::Item>>(items)?;
            (PatchKind::Whole, json)
        }
    };
    Ok(Patch { kind, json })
}

/// Only lists have a length.
pub fn length<T>(_: &T) -> usize {
    0
}

/// The number of items.
pub fn length_list<L: List>(list: &L) -> usize {
    list.items().len()
}

/// Brings a whole value back. A piece of another kind is an error: the type of the channel changed.
pub fn decode<T: DeserializeOwned>(
    slot: &mut T,
    kind: PatchKind,
    json: &[u8],
) -> Result<(), serde_json::Error> {
    if kind != PatchKind::Whole {
        return Err(serde::de::Error::custom(
            "it was saved as a list and is none any more",
        ));
    }
    *slot = serde_json::from_slice(json)?;
    Ok(())
}

/// Brings a list back, piece by piece.
pub fn decode_list<L: List>(
    list: &mut L,
    kind: PatchKind,
    json: &[u8],
) -> Result<(), serde_json::Error> {
    match kind {
        PatchKind::Whole => *list = L::from_items(serde_json::from_slice(json)?),
        PatchKind::Append => list.append_items(serde_json::from_slice(json)?),
        PatchKind::Edit => {
            let edit: EditIn<L::Item> = serde_json::from_slice(json)?;
            for (index, item) in edit.set {
                if index >= list.items().len() {
                    return Err(serde::de::Error::custom(format!(
                        "an edit of item {index} in a list of {}",
                        list.items().len()
                    )));
                }
                list.set_item(index, item);
            }
            list.append_items(edit.append);
        }
    }
    Ok(())
}

/// What has been written to a channel since `change` began.
pub fn since<T: Clone>(value: &T, change: &Change) -> Option<Write<T>> {
    (*change != Change::Unchanged).then(|| Write::Replace(value.clone()))
}

/// The same for a list of which only new items need to be handed on.
pub fn since_list<L: List + Clone>(list: &L, change: &Change) -> Option<Write<L>>
where
    L::Item: Clone,
{
    match change {
        Change::Unchanged => None,
        Change::Appended(from) => list
            .items()
            .get(*from..)
            .map(|new| Write::One(L::from_items(new.to_vec()))),
        Change::Edited { .. } | Change::Replaced => Some(Write::Replace(list.clone())),
    }
}

/// The error for a channel index that generated code never asks for.
pub fn no_channel(index: usize) -> serde_json::Error {
    serde::ser::Error::custom(format!("no channel {index}"))
}
