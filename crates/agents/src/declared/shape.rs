//! Reads a file's text by the table of its keys: what is right becomes JSON, what is wrong a mistake.
//!
//! Called by `check`. A faulty value is left out of the JSON, so that what concerns other keys is found in the same
//! go. It knows no key by name.

mod words;

use super::keys::{Form, Kind, MAX_JSON_DEPTH, SECRET, Table};
use super::mistake::{Mistakes, did_you_mean};
use paraph_gateway::instant;
use serde_json::{Map, Number, Value};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeFloat, DeInteger, DeTable, DeValue};
use words::{called, example, small, words};

/// Where a value stands, and how it is called.
#[derive(Clone)]
struct Spot {
    key: String,
    at: Range<usize>,
}

impl Spot {
    fn of(key: impl Into<String>, at: Range<usize>) -> Spot {
        Spot {
            key: key.into(),
            at,
        }
    }
}

/// The JSON of a file whose syntax is right, and every mistake in its shape.
pub(super) fn shape(
    root: &Spanned<DeTable<'_>>,
    table: &Table,
    mistakes: &mut Mistakes<'_>,
) -> Value {
    Value::Object(read_table(
        root.get_ref(),
        table,
        &Spot::of("", 0..0),
        mistakes,
    ))
}

/// The key of a value inside a table, as mistakes show it.
fn inside(table: &str, name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = match !name.is_empty() && name.chars().all(plain) {
        true => name.to_owned(),
        false => format!("{:?}", short(name)),
    };
    match table {
        "" => name,
        table => format!("{table}.{name}"),
    }
}

fn short(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn read_table(
    found: &DeTable<'_>,
    table: &Table,
    spot: &Spot,
    mistakes: &mut Mistakes<'_>,
) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, value) in found {
        let text = name.get_ref().as_ref();
        let key = inside(&spot.key, text);
        let Some(known) = table.keys.iter().find(|known| known.name == text) else {
            let names = table.keys.iter().map(|known| known.name);
            let whose = match spot.key.as_str() {
                "" => "there is no key".to_owned(),
                table => format!("`{table}` has no key"),
            };
            let what = format!("{whose} `{}`", short(text));
            mistakes.add(name.span(), &key, what, did_you_mean(text, names));
            continue;
        };
        let read = read(value, &known.kind, &Spot::of(key, value.span()), mistakes);
        out.extend(read.map(|value| (text.to_owned(), value)));
    }
    let whole = match spot.key.as_str() {
        "" => "the file".to_owned(),
        table => format!("`{table}`"),
    };
    for known in table.keys.iter().filter(|known| known.required) {
        if !found.contains_key(known.name) {
            let (key, example) = (inside(&spot.key, known.name), example(&known.kind));
            let what = format!("{whole} has no `{}`", known.name);
            let instead = format!("write `{} = {example}`: {}", known.name, small(known.about));
            mistakes.add(spot.at.clone(), &key, what, instead);
        }
    }
    one_of(found, table, spot, mistakes);
    out
}

/// Exactly one of some keys is needed.
fn one_of(found: &DeTable<'_>, table: &Table, spot: &Spot, mistakes: &mut Mistakes<'_>) {
    let there: Vec<_> = found
        .iter()
        .filter(|(name, _)| table.one_of.contains(&name.get_ref().as_ref()))
        .collect();
    let names: Vec<_> = table
        .one_of
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    match there.as_slice() {
        [] if !names.is_empty() => {
            let whole = match spot.key.as_str() {
                "" => "the file".to_owned(),
                table => format!("`{table}`"),
            };
            let what = format!("{whole} has neither {}", names.join(" nor "));
            mistakes.add(spot.at.clone(), &spot.key, what, "write one of them");
        }
        [_, (second, _), ..] => {
            let key = inside(&spot.key, second.get_ref());
            let is_there = |name: &&&str| found.contains_key(**name);
            let names = table.one_of.iter().filter(is_there);
            let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
            let what = format!("{} exclude each other", names.join(" and "));
            mistakes.add(second.span(), &key, what, "keep one of them");
        }
        _ => {}
    }
}

/// A value, if it is right.
fn read(
    value: &Spanned<DeValue<'_>>,
    kind: &Kind,
    spot: &Spot,
    mistakes: &mut Mistakes<'_>,
) -> Option<Value> {
    match (kind, value.get_ref()) {
        (Kind::Text { most, form }, DeValue::String(text)) => {
            fine(text, (*most, *form), spot, mistakes).then(|| text.as_ref().into())
        }
        (Kind::Word(words), DeValue::String(text)) => {
            if words.contains(&text.as_ref()) {
                return Some(text.as_ref().into());
            }
            let what = format!("`{}` is no value of `{}`", short(text), spot.key);
            mistakes.add(
                spot.at.clone(),
                &spot.key,
                what,
                did_you_mean(text, words.iter().copied()),
            );
            None
        }
        (Kind::Whole { least, most }, DeValue::Integer(number)) => {
            let fits = whole(number).and_then(|number| u64::try_from(number).ok());
            match fits.filter(|number| (*least..=*most).contains(number)) {
                Some(number) => Some(number.into()),
                None => refuse(kind, &number.to_string(), spot, mistakes),
            }
        }
        (Kind::Number { least, most }, DeValue::Integer(_) | DeValue::Float(_)) => {
            let (number, shown) = match value.get_ref() {
                DeValue::Float(float) => (real(float), float.to_string()),
                DeValue::Integer(number) => (whole(number).map(|n| n as f64), number.to_string()),
                _ => (None, String::new()),
            };
            let fits = number.filter(|number| (*least..=*most).contains(number));
            match fits.and_then(Number::from_f64) {
                Some(number) => Some(Value::Number(number)),
                None => refuse(kind, &shown, spot, mistakes),
            }
        }
        (Kind::Flag, DeValue::Boolean(flag)) => Some((*flag).into()),
        (Kind::List { most, of }, DeValue::Array(items)) => {
            list(items, (*most, of), spot, mistakes)
        }
        (Kind::Table(table), DeValue::Table(found)) => {
            Some(Value::Object(read_table(found, table, spot, mistakes)))
        }
        (Kind::Map { .. }, DeValue::Table(found)) => map(found, kind, spot, mistakes),
        (Kind::Setting, DeValue::String(text)) => {
            fine(text, (8_000, Form::Any), spot, mistakes).then(|| text.as_ref().into())
        }
        (Kind::Setting, DeValue::Table(found)) => {
            Some(Value::Object(read_table(found, &SECRET, spot, mistakes)))
        }
        (Kind::Integer, DeValue::Integer(number)) => match whole(number) {
            Some(number) => Some(number.into()),
            None => refuse(kind, &number.to_string(), spot, mistakes),
        },
        (Kind::Moment, DeValue::String(_) | DeValue::Datetime(_) | DeValue::Integer(_)) => {
            moment(value, spot, mistakes)
        }
        (Kind::Either(kinds), found) => match kinds.iter().find(|kind| may_be(kind, found)) {
            Some(kind) => read(value, kind, spot, mistakes),
            None => refuse(kind, called(found), spot, mistakes),
        },
        (Kind::Tuple(kinds), DeValue::Array(items)) => tuple(items, kinds, spot, mistakes),
        (Kind::Schema | Kind::Object, DeValue::Table(_)) | (Kind::Json, _) => {
            json(value, spot, 0, mistakes)
        }
        (_, found) => refuse(kind, called(found), spot, mistakes),
    }
}

/// Whether a value is of a kind at all, however faulty it may be.
fn may_be(kind: &Kind, found: &DeValue<'_>) -> bool {
    match found {
        DeValue::String(_) => matches!(
            kind,
            Kind::Text { .. } | Kind::Word(_) | Kind::Setting | Kind::Moment | Kind::Json
        ),
        DeValue::Integer(_) => matches!(
            kind,
            Kind::Whole { .. } | Kind::Integer | Kind::Number { .. } | Kind::Moment | Kind::Json
        ),
        DeValue::Float(_) => matches!(kind, Kind::Number { .. } | Kind::Json),
        DeValue::Boolean(_) => matches!(kind, Kind::Flag | Kind::Json),
        DeValue::Datetime(_) => matches!(kind, Kind::Moment),
        DeValue::Array(_) => matches!(kind, Kind::List { .. } | Kind::Tuple(_) | Kind::Json),
        DeValue::Table(_) => matches!(
            kind,
            Kind::Table(_)
                | Kind::Map { .. }
                | Kind::Setting
                | Kind::Object
                | Kind::Schema
                | Kind::Json
        ),
    }
}

/// A moment as the gateway reads it: RFC 3339, or milliseconds.
fn moment(value: &Spanned<DeValue<'_>>, spot: &Spot, mistakes: &mut Mistakes<'_>) -> Option<Value> {
    let text = match value.get_ref() {
        DeValue::Integer(number) => {
            return match whole(number).and_then(|number| u64::try_from(number).ok()) {
                Some(number) => Some(number.into()),
                None => refuse(&Kind::Moment, &number.to_string(), spot, mistakes),
            };
        }
        DeValue::String(text) => text.to_string(),
        DeValue::Datetime(moment) => moment.to_string(),
        found => return refuse(&Kind::Moment, called(found), spot, mistakes),
    };
    match instant(&text) {
        Some(_) => Some(text.into()),
        None => {
            let what = format!(
                "`{}` cannot be `{}`: a moment has a date, a time and a zone",
                spot.key,
                short(&text)
            );
            let instead = format!("write {}", example(&Kind::Moment));
            mistakes.add(spot.at.clone(), &spot.key, what, instead);
            None
        }
    }
}

/// A list of exactly these kinds.
fn tuple(
    items: &DeArray<'_>,
    kinds: &'static [Kind],
    spot: &Spot,
    mistakes: &mut Mistakes<'_>,
) -> Option<Value> {
    if items.len() != kinds.len() {
        let found = format!("one of {}", items.len());
        return refuse(&Kind::Tuple(kinds), &found, spot, mistakes);
    }
    let both = items.iter().zip(kinds).enumerate();
    let read = both.map(|(n, (item, kind))| {
        let spot = Spot::of(format!("{}[{n}]", spot.key), item.span());
        read(item, kind, &spot, mistakes)
    });
    // Each is looked at, so that all mistakes are found in the same go.
    let read: Vec<Option<Value>> = read.collect();
    read.into_iter()
        .collect::<Option<Vec<_>>>()
        .map(Value::Array)
}

fn refuse(kind: &Kind, found: &str, spot: &Spot, mistakes: &mut Mistakes<'_>) -> Option<Value> {
    let what = format!("`{}` is {}, not {found}", spot.key, words(kind));
    let instead = format!("write {}", example(kind));
    mistakes.add(spot.at.clone(), &spot.key, what, instead);
    None
}

fn fine(text: &str, (most, form): (usize, Form), spot: &Spot, mistakes: &mut Mistakes<'_>) -> bool {
    // A name says at once how long it may be.
    let long = form.pattern().is_none_or(|_| form == Form::Filled) && text.len() > most;
    let what = match (long, form.fits(text)) {
        (false, true) => return true,
        (true, _) => format!(
            "`{}` has {} bytes; it may have {most}",
            spot.key,
            text.len()
        ),
        (false, false) if text.is_empty() => format!("`{}` is empty", spot.key),
        (false, false) => format!("`{}` cannot be `{}`", spot.key, short(text)),
    };
    mistakes.add(
        spot.at.clone(),
        &spot.key,
        what,
        format!("write {}", form.words()),
    );
    false
}

fn list(
    items: &DeArray<'_>,
    (most, of): (usize, &Kind),
    spot: &Spot,
    mistakes: &mut Mistakes<'_>,
) -> Option<Value> {
    if items.len() > most {
        let what = format!(
            "`{}` has {} entries; it may have {most}",
            spot.key,
            items.len()
        );
        mistakes.add(spot.at.clone(), &spot.key, what, "leave some out");
        return None;
    }
    let read = items.iter().enumerate().filter_map(|(n, item)| {
        let spot = Spot::of(format!("{}[{n}]", spot.key), item.span());
        read(item, of, &spot, mistakes)
    });
    let read: Vec<Value> = read.collect();
    Some(Value::Array(read))
}

fn map(
    found: &DeTable<'_>,
    kind: &Kind,
    spot: &Spot,
    mistakes: &mut Mistakes<'_>,
) -> Option<Value> {
    let Kind::Map { most, names, of } = kind else {
        return None;
    };
    if found.len() > *most {
        let what = format!(
            "`{}` has {} entries; it may have {most}",
            spot.key,
            found.len()
        );
        mistakes.add(spot.at.clone(), &spot.key, what, "leave some out");
        return None;
    }
    let mut out = Map::new();
    for (name, value) in found {
        let text = name.get_ref().as_ref();
        let key = inside(&spot.key, text);
        if !names.fits(text) {
            let what = format!("`{}` is no name for `{}`", short(text), spot.key);
            mistakes.add(name.span(), &key, what, format!("write {}", names.words()));
            continue;
        }
        // A table is complained about where its name stands.
        let at = match value.get_ref() {
            DeValue::Table(_) => name.span(),
            _ => value.span(),
        };
        let read = read(value, of, &Spot::of(key, at), mistakes);
        out.extend(read.map(|value| (text.to_owned(), value)));
    }
    Some(Value::Object(out))
}

/// Any value as JSON.
fn json(
    value: &Spanned<DeValue<'_>>,
    spot: &Spot,
    depth: usize,
    mistakes: &mut Mistakes<'_>,
) -> Option<Value> {
    let mut wrong = |what: String, instead: &str| {
        mistakes.add(value.span(), &spot.key, what, instead);
        None
    };
    if depth > MAX_JSON_DEPTH {
        return wrong(
            format!("`{}` is nested too deeply", spot.key),
            "make it flatter",
        );
    }
    match value.get_ref() {
        DeValue::String(text) => Some(text.as_ref().into()),
        DeValue::Boolean(flag) => Some((*flag).into()),
        DeValue::Integer(number) => match whole(number) {
            Some(number) => Some(number.into()),
            None => wrong(
                format!("`{}` holds the number {number}", spot.key),
                "write a number of 64 bits",
            ),
        },
        DeValue::Float(number) => match real(number).and_then(Number::from_f64) {
            Some(number) => Some(Value::Number(number)),
            None => wrong(
                format!("`{}` holds {number}, which is not JSON", spot.key),
                "write a finite number",
            ),
        },
        DeValue::Datetime(_) => wrong(
            format!("`{}` holds a date, which is not JSON", spot.key),
            "write it as a text, in quotes",
        ),
        DeValue::Array(items) => {
            let items = items
                .iter()
                .map(|item| json(item, spot, depth + 1, mistakes));
            items.collect::<Option<Vec<_>>>().map(Value::Array)
        }
        DeValue::Table(entries) => {
            let entries = entries.iter().map(|(name, value)| {
                let value = json(value, spot, depth + 1, mistakes)?;
                Some((name.get_ref().to_string(), value))
            });
            entries.collect::<Option<Map<_, _>>>().map(Value::Object)
        }
    }
}

fn whole(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
}

fn real(number: &DeFloat<'_>) -> Option<f64> {
    number.as_str().replace('_', "").parse().ok()
}
