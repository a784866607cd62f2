//! What stands in a file and what may stand there, in words for whoever wrote it.
//!
//! Called by the reader for its mistakes. It judges nothing.

use super::super::keys::{Form, Kind};
use toml::de::DeValue;

/// What a value is, for people.
pub(super) fn called(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// What may stand there, for people.
pub(super) fn words(kind: &Kind) -> String {
    match kind {
        Kind::Text { .. } => "a text".to_owned(),
        Kind::Word(words) => format!("one of {}", words.join(", ")),
        Kind::Whole { least, most } if *most >= i64::MAX as u64 => {
            format!("a whole number from {least}")
        }
        Kind::Whole { least, most } => format!("a whole number from {least} to {most}"),
        Kind::Number { least, most } => format!("a number from {least} to {most}"),
        Kind::Flag => "true or false".to_owned(),
        Kind::List { .. } => "a list".to_owned(),
        Kind::Table(_) | Kind::Map { .. } => "a table".to_owned(),
        Kind::Setting => "a text, or a secret by its name".to_owned(),
        Kind::Integer => "a whole number".to_owned(),
        Kind::Moment => "a moment such as `2027-06-30T00:00:00Z`".to_owned(),
        Kind::Either(kinds) => {
            let all: Vec<_> = kinds.iter().map(words).collect();
            match all.split_last() {
                Some((last, others)) if !others.is_empty() => {
                    format!("{} or {last}", others.join(", "))
                }
                _ => all.concat(),
            }
        }
        Kind::Tuple(kinds) => {
            let all: Vec<_> = kinds.iter().map(words).collect();
            format!("a list of {}", all.join(" and "))
        }
        Kind::Object => "a table".to_owned(),
        Kind::Json => "a value".to_owned(),
        Kind::Schema => "a JSON Schema, as a table".to_owned(),
    }
}

/// An example of what may stand there.
pub(super) fn example(kind: &Kind) -> String {
    match kind {
        Kind::Text {
            form: Form::Name | Form::Tool | Form::Variable | Form::Pattern | Form::Rule,
            ..
        } => "\"a_name\"".to_owned(),
        Kind::Text {
            form: Form::Clock, ..
        } => "\"08:30\"".to_owned(),
        Kind::Text {
            form: Form::Decimal,
            ..
        } => "\"0.5\"".to_owned(),
        Kind::Text { .. } => "\"…\"".to_owned(),
        Kind::Word(words) => format!("\"{}\"", words.first().copied().unwrap_or_default()),
        Kind::Whole { least, most } => format!("{}", (*least).max(8).min(*most)),
        Kind::Number { least, most } => format!("{:.1}", least.max(0.5).min(*most)),
        Kind::Flag => "true".to_owned(),
        Kind::List { of, .. } => format!("[{}]", example(of)),
        Kind::Map { of, .. } => format!("{{ a_name = {} }}", example(of)),
        Kind::Table(table) => match table.keys.first() {
            Some(key) => format!("{{ {} = {} }}", key.name, example(&key.kind)),
            None => "{}".to_owned(),
        },
        Kind::Setting => "\"…\" or { env = \"NAME\" }".to_owned(),
        Kind::Integer => "5".to_owned(),
        Kind::Moment => "2027-06-30T00:00:00Z".to_owned(),
        Kind::Either(kinds) => kinds.first().map(example).unwrap_or_default(),
        Kind::Tuple(kinds) => {
            let all: Vec<_> = kinds.iter().map(example).collect();
            format!("[{}]", all.join(", "))
        }
        Kind::Object => "{ a_name = 5 }".to_owned(),
        Kind::Json => "a value".to_owned(),
        Kind::Schema => "{ type = \"object\" }".to_owned(),
    }
}

/// A sentence as part of another.
pub(super) fn small(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut letters = sentence.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}
