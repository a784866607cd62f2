//! Updates as JSON: read from it, written for notes (nothing is lost) and for readers (plain values).
//!
//! Called by what `#[derive(State)]` generates, and pure.

use super::{Channel, IntoChange, channel::Write, text};
use crate::Error;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

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
pub(crate) fn bad(channel: &str, source: serde_json::Error) -> Error {
    Error::BadChannel {
        channel: channel.to_owned(),
        source,
    }
}
