//! What a server's search found, and what a document of it says: from whatever JSON or text it answers.
//!
//! Called for each answer of a server that is searched. Pure. Nothing is asked for here, and no field is believed
//! further than that it is a text: an address that is none of the web becomes one of the server's own.

use std::collections::HashSet;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};

use super::sources::McpSources;
use crate::error::Error;
use crate::page::{Page, readable_html, readable_text};
use crate::said::cut;
use crate::search::Hit;

/// The most bytes of an id.
const MAX_ID: usize = 1_000;
/// The most characters of a title.
const MAX_TITLE: usize = 300;
/// How many characters of a result are kept.
const MAX_CONTENT: usize = 2_000;
/// The same of an answer that is one text: all results together.
const MAX_PROSE: usize = 12_000;
/// The most results that are looked at.
const MAX_HITS: usize = 100;
/// JSON in a text in JSON, and the like: how often it is unpacked.
const MAX_WRAPS: usize = 4;

const IDS: [&str; 5] = ["id", "url", "uri", "path", "link"];
const TITLES: [&str; 3] = ["title", "name", "heading"];
const TEXTS: [&str; 9] = [
    "text",
    "content",
    "snippet",
    "passage",
    "description",
    "summary",
    "body",
    "markdown",
    "excerpt",
];

/// What an id keeps of itself in an address.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'+')
    .remove(b',')
    .remove(b'=');

/// Where documents of a server have their addresses: `mcp:`, its name, and the document's id.
#[derive(Clone)]
pub(super) struct Place(String);

impl Place {
    pub(super) fn of(server: &str) -> Place {
        Place(format!("mcp:{server}/"))
    }

    /// The address of a document. One of the web is its own.
    fn address(&self, id: &str) -> String {
        match is_web(id) {
            true => id.to_owned(),
            false => format!("{}{}", self.0, utf8_percent_encode(id, PLAIN)),
        }
    }

    /// Where the whole of what a search answered stands. No id has such an address: its `?` would be written otherwise.
    fn search(&self, query: &str) -> String {
        format!("{}?search={}", self.0, utf8_percent_encode(query, PLAIN))
    }

    /// The id behind an address; nothing if it is that of a search. What is no address of ours is taken for an id.
    pub(super) fn id(&self, address: &str) -> Option<String> {
        let Some(rest) = address.strip_prefix(&*self.0) else {
            return Some(address.to_owned());
        };
        match rest.starts_with('?') {
            true => None,
            false => Some(percent_decode_str(rest).decode_utf8_lossy().into_owned()),
        }
    }
}

/// An address of the web that can stand in a list of sources as it is.
fn is_web(text: &str) -> bool {
    let web = text.starts_with("https://") || text.starts_with("http://");
    let odd = |c: char| c.is_whitespace() || c.is_control() || "<>\"`{}|\\^".contains(c);
    web && text.len() <= MAX_ID && text.is_ascii() && !text.contains(odd)
}

/// The value inside JSON in a text, and inside an object that has nothing but a `result`.
fn unwrapped(mut value: Value) -> Value {
    for _ in 0..MAX_WRAPS {
        value = match value {
            Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
                match serde_json::from_str(&text) {
                    Ok(inside @ (Value::Object(_) | Value::Array(_))) => inside,
                    _ => return Value::String(text),
                }
            }
            Value::Object(mut object) if object.len() == 1 && object.contains_key("result") => {
                object.remove("result").unwrap_or_default()
            }
            other => return other,
        };
    }
    value
}

/// What a search found, in the server's order.
pub(super) fn documents(place: &Place, answer: Value, said: &McpSources, query: &str) -> Vec<Hit> {
    let answer = unwrapped(answer);
    if let Some(list) = list(&answer) {
        return distinct(list.iter().filter_map(|item| hit(place, item, said)));
    }
    let text = match answer {
        Value::String(text) => text,
        Value::Object(object) => {
            text_of(&object).unwrap_or_else(|| Value::from(object).to_string())
        }
        other => other.to_string(),
    };
    let text = readable_text(&text);
    if text.is_empty()
        || said
            .nothing
            .as_deref()
            .is_some_and(|it| text.trim() == it.trim())
    {
        return Vec::new();
    }
    if said.lines {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && line.len() <= MAX_ID);
        return distinct(lines.map(|line| found(place, line, None, None)));
    }
    vec![Hit {
        title: cut(format!("Search for {query}"), MAX_TITLE),
        url: place.search(query),
        content: cut(text, MAX_PROSE),
        score: None,
    }]
}

/// The results in an answer: the list that it is, or the one that it has.
fn list(answer: &Value) -> Option<&Vec<Value>> {
    match answer {
        Value::Array(list) => Some(list),
        Value::Object(object) => {
            let results = object.get("results").and_then(Value::as_array);
            results.or_else(|| {
                let mut lists = object.values().filter_map(Value::as_array);
                lists.find(|list| list.iter().any(Value::is_object))
            })
        }
        _ => None,
    }
}

fn hit(place: &Place, item: &Value, said: &McpSources) -> Option<Hit> {
    let object = match item {
        Value::String(id) => return usable(id).then(|| found(place, id, None, None)),
        Value::Object(object) => object,
        _ => return None,
    };
    let id = match &said.id {
        Some(field) => object.get(field).and_then(scalar),
        None => IDS
            .iter()
            .find_map(|field| object.get(*field).and_then(scalar)),
    };
    let id = id.filter(|id| usable(id))?;
    Some(found(place, &id, field(object, &TITLES), text_of(object)))
}

fn usable(id: &str) -> bool {
    !id.trim().is_empty() && id.len() <= MAX_ID
}

/// A text, or a number as one.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Without a passage, the title is what the search showed of a document.
fn found(place: &Place, id: &str, title: Option<String>, text: Option<String>) -> Hit {
    let title = title.unwrap_or_else(|| last_part(id).to_owned());
    let text = text.map(|text| readable_text(&text));
    let text = text.filter(|text| !text.is_empty());
    Hit {
        content: cut(text.unwrap_or_else(|| title.clone()), MAX_CONTENT),
        title: cut(title, MAX_TITLE),
        url: place.address(id),
        score: None,
    }
}

fn last_part(id: &str) -> &str {
    let part = id.trim_end_matches('/').rsplit('/').next();
    part.filter(|part| !part.is_empty()).unwrap_or(id)
}

fn distinct(hits: impl Iterator<Item = Hit>) -> Vec<Hit> {
    let mut seen = HashSet::new();
    hits.filter(|hit| seen.insert(hit.url.clone()))
        .take(MAX_HITS)
        .collect()
}

/// The first of these fields that is a text with something in it.
fn field(object: &Map<String, Value>, names: &[&str]) -> Option<String> {
    let mut texts = names
        .iter()
        .filter_map(|name| object.get(*name).and_then(Value::as_str));
    texts
        .find(|text| !text.trim().is_empty())
        .map(str::to_owned)
}

fn text_of(object: &Map<String, Value>) -> Option<String> {
    field(object, &TEXTS)
}

/// The part of a document that starts at a character. Where the document says an address of the web, it is cited by it.
pub(super) fn page_of(place: &Place, id: &str, answer: Value, start: usize) -> Result<Page, Error> {
    let mut title = None;
    let mut url = place.address(id);
    let text = match unwrapped(answer) {
        Value::String(text) => text,
        Value::Object(object) => {
            title = field(&object, &TITLES);
            if let Some(own) = field(&object, &["url", "uri", "link"]).filter(|own| is_web(own)) {
                url = own;
            }
            match TEXTS.iter().any(|name| object.contains_key(*name)) {
                true => text_of(&object).unwrap_or_default(),
                false => Value::from(object).to_string(),
            }
        }
        other => other.to_string(),
    };
    let (of_page, text) = match is_html(&text) {
        true => readable_html(&text),
        false => (None, readable_text(&text)),
    };
    if text.is_empty() {
        return Err(Error::Nothing {
            problem: "the document has no text".to_owned(),
        });
    }
    let title = title
        .or(of_page)
        .unwrap_or_else(|| last_part(id).to_owned());
    Page::part(Some(cut(title, MAX_TITLE)), url, &text, start)
}

fn is_html(text: &str) -> bool {
    let head: String = text.trim_start().chars().take(15).collect();
    let head = head.to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html")
}

#[cfg(test)]
mod tests;
