//! The JSON Schema of an agent file, made from the same table as its reader: for editors that complete and check.
//!
//! `paraph schema agent` prints it. It says what stands in the table alone; what needs more than one key, or the
//! program, only `paraph check` finds.

use super::keys::{FILE, Form, Key, Kind, MOMENT, SECRET, Table};
use serde_json::{Map, Value, json};

/// The JSON Schema of agent files, draft 2020-12.
pub fn agent_schema() -> Value {
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An agent of Paraph, in TOML",
    });
    if let (Some(schema), Value::Object(file)) = (schema.as_object_mut(), table(&FILE)) {
        schema.extend(file);
    }
    schema
}

fn table(table: &Table) -> Value {
    let properties: Map<String, Value> = table
        .keys
        .iter()
        .map(|key| (key.name.to_owned(), property(key)))
        .collect();
    let required: Vec<_> = table
        .keys
        .iter()
        .filter(|key| key.required)
        .map(|key| key.name)
        .collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if !table.one_of.is_empty() {
        let each = table.one_of.iter().map(|name| json!({"required": [name]}));
        schema["oneOf"] = each.collect();
    }
    schema
}

fn property(key: &Key) -> Value {
    let mut schema = of(&key.kind);
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), key.about.into());
    }
    schema
}

fn of(kind: &Kind) -> Value {
    match kind {
        Kind::Text { most, form } => text(*most, *form),
        Kind::Word(words) => json!({"type": "string", "enum": words}),
        Kind::Whole { least, most } => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Kind::Number { least, most } => {
            json!({"type": "number", "minimum": least, "maximum": most})
        }
        Kind::Flag => json!({"type": "boolean"}),
        Kind::List { most, of: item } => {
            json!({"type": "array", "maxItems": most, "items": of(item)})
        }
        Kind::Table(found) => table(found),
        Kind::Map {
            most,
            names,
            of: value,
        } => json!({
            "type": "object",
            "maxProperties": most,
            "propertyNames": names.pattern().map_or(json!({}), |pattern| json!({"pattern": pattern})),
            "additionalProperties": of(value),
        }),
        Kind::Setting => json!({"anyOf": [{"type": "string"}, table(&SECRET)]}),
        Kind::Integer => json!({"type": "integer"}),
        Kind::Moment => json!({"anyOf": [
            {"type": "string", "pattern": MOMENT},
            {"type": "integer", "minimum": 0},
        ]}),
        Kind::Either(kinds) => json!({"anyOf": kinds.iter().map(of).collect::<Vec<_>>()}),
        Kind::Tuple(kinds) => json!({
            "type": "array",
            "prefixItems": kinds.iter().map(of).collect::<Vec<_>>(),
            "minItems": kinds.len(),
            "maxItems": kinds.len(),
        }),
        Kind::Object => json!({"type": "object"}),
        Kind::Json => json!({}),
        Kind::Schema => json!({"type": "object"}),
    }
}

/// The schema counts characters and the reader bytes: what the schema takes may still be too long.
fn text(most: usize, form: Form) -> Value {
    let mut schema = json!({"type": "string", "maxLength": most});
    if let Some(pattern) = form.pattern() {
        schema["pattern"] = pattern.into();
    }
    schema
}
