//! The functions behind `#[derive(State)]`: one write, many writes, and the stored form of a channel.
//!
//! Called by generated code only. Must not know of nodes or stores; everything here is pure.

use super::{Change, IntoChange, text};
use crate::Error;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// One channel's name and rules, as declared on its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The field's name.
    pub name: &'static str,
    /// Whether a reducer folds several writes; without one, two writers are an error.
    pub reduced: bool,
    /// Back to its default in each superstep that does not write it.
    pub ephemeral: bool,
    /// Never saved.
    pub untracked: bool,
    /// Names under which older checkpoints know it.
    pub was: &'static [&'static str],
}

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

/// What one update says about one channel.
#[derive(Clone, Debug)]
pub enum Write<T> {
    /// One write, for the reducer.
    One(T),
    /// As it is, past the reducer.
    Replace(T),
    /// Several writes of the same node, in order, perhaps after a replacement.
    Many {
        /// The replacement that came first, if one did.
        base: Option<T>,
        /// The writes after it.
        then: Vec<T>,
    },
}

impl<T> Write<T> {
    fn replaces(&self) -> bool {
        matches!(self, Write::Replace(_) | Write::Many { base: Some(_), .. })
    }
    fn parts(self) -> (Option<T>, Vec<T>) {
        match self {
            Write::One(v) => (None, vec![v]),
            Write::Replace(v) => (Some(v), Vec::new()),
            Write::Many { base, then } => (base, then),
        }
    }
}

impl<T: Clone> Write<T> {
    /// Adds the writes of one superstep to the write that stands for all before them. That it comes
    /// to the same is what a reducer must be associative for.
    pub fn gather<'a, C: IntoChange>(
        channel: &Channel,
        all: &mut Option<Write<T>>,
        writes: impl Iterator<Item = Option<&'a Write<T>>> + Clone,
        reduce: impl Fn(&mut T, T) -> C,
    ) -> Result<(), Rejected>
    where
        T: 'a,
    {
        if channel.ephemeral {
            // What was written before is not there any more.
            *all = None;
        }
        let replacing = writes.clone().position(|w| w.is_some_and(Write::replaces));
        for (writer, write) in writes.enumerate() {
            let Some(write) = write else { continue };
            if replacing.is_some_and(|r| r != writer) {
                continue;
            }
            let earlier = if write.replaces() { None } else { all.take() };
            let replaces = earlier.as_ref().unwrap_or(write).replaces();
            let earlier = earlier.map(Write::parts).unwrap_or_default();
            let (base, then) = write.clone().parts();
            let mut values = earlier
                .0
                .into_iter()
                .chain(earlier.1)
                .chain(base)
                .chain(then);
            let Some(mut sum) = values.next() else {
                continue;
            };
            for value in values {
                reduce(&mut sum, value)
                    .into_change()
                    .map_err(|why| Rejected::Refused {
                        channel: channel.name,
                        writer,
                        why,
                    })?;
            }
            *all = Some(if replaces {
                Write::Replace(sum)
            } else {
                Write::One(sum)
            });
        }
        Ok(())
    }
}

/// Why the updates of one superstep could not be folded.
#[derive(Debug, PartialEq, Eq)]
pub enum Rejected {
    /// Two updates (by position) wrote a channel that takes one.
    TwoWriters {
        /// The channel's name.
        channel: &'static str,
        /// Position of the first writer.
        first: usize,
        /// Position of the second.
        second: usize,
    },
    /// A reducer refused a write.
    Refused {
        /// The channel's name.
        channel: &'static str,
        /// Position of the writer.
        writer: usize,
        /// The reducer's words.
        why: String,
    },
}

/// Adds a write to what an update already says about a channel without a reducer: the later wins.
pub fn write_last<T>(slot: &mut Option<Write<T>>, value: T) {
    *slot = Some(Write::One(value));
}

/// Adds a write to what an update already says about a channel with a reducer.
pub fn write<T>(slot: &mut Option<Write<T>>, value: T) {
    *slot = Some(match slot.take() {
        None => Write::One(value),
        Some(earlier) => {
            let (base, mut then) = earlier.parts();
            then.push(value);
            Write::Many { base, then }
        }
    });
}

/// Refuses two writers of a channel without a reducer, and two replacements of one with.
pub fn check<'a, T: 'a>(
    channel: &Channel,
    writes: impl Iterator<Item = Option<&'a Write<T>>>,
) -> Result<(), Rejected> {
    let mut seen = None;
    for (second, write) in writes.enumerate() {
        let counts = write.is_some_and(|w| !channel.reduced || w.replaces());
        if !counts {
            continue;
        }
        if let Some(first) = seen {
            return Err(Rejected::TwoWriters {
                channel: channel.name,
                first,
                second,
            });
        }
        seen = Some(second);
    }
    Ok(())
}

/// The updates of one superstep, seen through one channel.
pub struct Writes<'a, U, F> {
    updates: &'a mut [U],
    channel: F,
}

/// Looks at `updates` through the field that `channel` picks.
pub fn writes<U, T, F: Fn(&mut U) -> &mut Option<Write<T>>>(
    updates: &mut [U],
    channel: F,
) -> Writes<'_, U, F> {
    Writes { updates, channel }
}

/// Folds the writes of one superstep into a channel, in order.
///
/// A replacement wins over the writes of other nodes, whichever came first; writes that the same
/// node made after it are folded into it. For an ephemeral channel `change` says beforehand whether
/// it holds something to be cleared.
pub fn fold<U, T: Default, C: IntoChange>(
    channel: &Channel,
    slot: &mut T,
    writes: Writes<'_, U, impl Fn(&mut U) -> &mut Option<Write<T>>>,
    reduce: impl Fn(&mut T, T) -> C,
    change: &mut Change,
) -> Result<(), Rejected> {
    let Writes {
        updates,
        channel: at,
    } = writes;
    let replacing = updates
        .iter_mut()
        .position(|u| at(u).as_ref().is_some_and(Write::replaces));
    if channel.ephemeral
        && (*change != Change::Unchanged || updates.iter_mut().any(|u| at(u).is_some()))
    {
        *slot = T::default();
        *change = Change::Replaced;
    }
    let one = |writer: usize, slot: &mut T, value: T, change: &mut Change| {
        let made = reduce(slot, value)
            .into_change()
            .map_err(|why| Rejected::Refused {
                channel: channel.name,
                writer,
                why,
            })?;
        *change = std::mem::take(change).then(made);
        Ok(())
    };
    for (writer, update) in updates.iter_mut().enumerate() {
        let Some(write) = at(update).take() else {
            continue;
        };
        if replacing.is_some_and(|r| r != writer) {
            continue;
        }
        match write {
            Write::One(value) => one(writer, slot, value, change)?,
            other => {
                let (base, then) = other.parts();
                if let Some(base) = base {
                    *slot = base;
                    *change = Change::Replaced;
                }
                for value in then {
                    one(writer, slot, value, change)?;
                }
            }
        }
    }
    Ok(())
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

const REPLACE: &str = "$replace";
const EACH: &str = "$each";

/// Reads one channel's write from JSON.
pub fn read<T: DeserializeOwned>(channel: &'static str, value: Value) -> Result<Write<T>, Error> {
    let of = |v: Value| serde_json::from_value::<T>(v).map_err(|source| bad(channel, source));
    let Value::Object(mut map) = value else {
        return of(value).map(Write::One);
    };
    let marked = !map.is_empty() && map.keys().all(|k| k == REPLACE || k == EACH);
    if !marked {
        return of(Value::Object(map)).map(Write::One);
    }
    let base = map.remove(REPLACE).map(of).transpose()?;
    let then = match map.remove(EACH) {
        None => Vec::new(),
        Some(Value::Array(items)) => items.into_iter().map(of).collect::<Result<_, _>>()?,
        Some(_) => {
            return Err(bad(
                channel,
                serde::de::Error::custom("`$each` takes an array"),
            ));
        }
    };
    Ok(match base {
        Some(base) if then.is_empty() => Write::Replace(base),
        base => Write::Many { base, then },
    })
}

/// Adds one channel's write to the text of a note: replacements are marked, untracked channels left
/// out. What would not read back is an error now, while the thread can still be read.
pub fn note<T: Serialize + DeserializeOwned>(
    text: &mut Vec<u8>,
    channel: &Channel,
    write: Option<&Write<T>>,
) -> Result<(), Error> {
    let Some(write) = write.filter(|_| !channel.untracked) else {
        return Ok(());
    };
    let wrong = |source| bad(channel.name, source);
    let json = |value: &T| text::write::<T, T>(value).map_err(wrong);
    begin(text, channel)?;
    let (base, then) = match write {
        Write::One(value) => {
            let value = json(value)?;
            if looks_marked(&value) {
                mark(text, EACH, &[&value], true);
            } else {
                text.extend(value);
            }
            return Ok(());
        }
        Write::Replace(value) => (Some(value), None),
        Write::Many { base, then } => (base.as_ref(), Some(then)),
    };
    if let Some(base) = base {
        mark(text, REPLACE, &[&json(base)?], false);
    }
    if let Some(then) = then {
        let then = then.iter().map(json).collect::<Result<Vec<_>, _>>()?;
        if base.is_some() {
            text.pop();
        }
        let from = text.len();
        mark(text, EACH, &then, true);
        if base.is_some() {
            text[from] = b',';
        }
    }
    Ok(())
}

/// Whether a value holds one of our markers, or a text that looks like one. It is then wrapped, so that
/// it reads back as itself.
fn looks_marked(json: &[u8]) -> bool {
    let has = |marker: &str| json.windows(marker.len()).any(|w| w == marker.as_bytes());
    json.first() == Some(&b'{') && (has(REPLACE) || has(EACH))
}

/// Adds `{"marker":value}`, or `{"marker":[value,…]}`.
fn mark<V: AsRef<[u8]>>(text: &mut Vec<u8>, marker: &str, values: &[V], list: bool) {
    text.extend(b"{\"");
    text.extend(marker.as_bytes());
    text.extend(b"\":");
    if list {
        text.push(b'[');
    }
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        text.extend(value.as_ref());
    }
    if list {
        text.push(b']');
    }
    text.push(b'}');
}

/// Begins a channel in the text of an object.
fn begin(text: &mut Vec<u8>, channel: &Channel) -> Result<(), Error> {
    text.push(if text.is_empty() { b'{' } else { b',' });
    serde_json::to_writer(&mut *text, channel.name).map_err(|source| bad(channel.name, source))?;
    text.push(b':');
    Ok(())
}

/// Adds one channel's write to the text of an update, as readers see it: plain values.
pub fn tell<T: Serialize + Clone, C: IntoChange>(
    text: &mut Vec<u8>,
    channel: &Channel,
    write: Option<&Write<T>>,
    reduce: impl Fn(&mut T, T) -> C,
) -> Result<(), Error> {
    let Some(write) = write else { return Ok(()) };
    let wrong = |source| bad(channel.name, source);
    begin(text, channel)?;
    let (base, then) = match write {
        Write::One(v) | Write::Replace(v) => {
            return serde_json::to_writer(text, v).map_err(wrong);
        }
        Write::Many { base, then } => (base, then),
    };
    let mut all = base.iter().chain(then).cloned();
    let mut sum = all.next();
    for value in all {
        if let Some(sum) = &mut sum {
            reduce(sum, value)
                .into_change()
                .map_err(|why| wrong(serde::ser::Error::custom(why)))?;
        }
    }
    serde_json::to_writer(text, &sum).map_err(wrong)
}

/// Ends the text of an update or a note.
pub fn told(mut text: Vec<u8>) -> Result<String, Error> {
    if text.is_empty() {
        return Ok("{}".to_owned());
    }
    text.push(b'}');
    String::from_utf8(text).map_err(Error::store)
}

/// The object that an update must be.
pub fn object(value: Value) -> Result<Map<String, Value>, Error> {
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Err(Error::NotAnObject("null")),
        Value::Bool(_) => Err(Error::NotAnObject("a boolean")),
        Value::Number(_) => Err(Error::NotAnObject("a number")),
        Value::String(_) => Err(Error::NotAnObject("a string")),
        Value::Array(_) => Err(Error::NotAnObject("an array")),
    }
}

/// The error for a name that is no channel.
pub fn unknown(channel: &str, channels: &[Channel]) -> Error {
    Error::UnknownChannel {
        channel: channel.to_owned(),
        known: super::known(channels),
    }
}

/// The error for a value that does not fit its channel.
pub fn bad(channel: &str, source: serde_json::Error) -> Error {
    Error::BadChannel {
        channel: channel.to_owned(),
        source,
    }
}

/// The error for a channel index that generated code never asks for.
pub fn no_channel(index: usize) -> serde_json::Error {
    serde::ser::Error::custom(format!("no channel {index}"))
}
