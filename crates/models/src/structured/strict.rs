//! Schemas as providers enforce them to the letter: closed objects whose properties are all required. Pure.

use serde_json::{Map, Value, json};

/// Deepest schema that is enforced to the letter.
const MAX_LEVELS: usize = 10;

/// Most properties of such a schema.
const MAX_PROPERTIES: usize = 5000;

/// Keywords that only say something about the value, or that say nothing which is enforced.
const DROPPED: [&str; 6] = [
    "$schema",
    "title",
    "default",
    "examples",
    "$comment",
    "deprecated",
];

/// Formats that are enforced; others, such as `uint32`, are words of ours.
const FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Keywords that stay as they are.
const KEPT: [&str; 16] = [
    "description",
    "type",
    "enum",
    "const",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "required",
    "additionalProperties",
];

/// The schema rewritten for strict enforcement; nothing if it cannot be.
///
/// An optional property becomes one that may be null. Lengths of strings stay: whoever cannot enforce them takes them
/// out when the request is written.
pub(crate) fn strict(schema: &Value) -> Option<Value> {
    let mut properties = 0;
    close(schema, 1, &mut properties)
}

/// Takes the bounds of strings out.
pub(crate) fn without_lengths(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(without_lengths),
        Value::Object(members) => {
            // A property of such a name has a schema for its value, and no number.
            members.retain(|key, value| {
                !value.is_number() || !["minLength", "maxLength"].contains(&key.as_str())
            });
            members.values_mut().for_each(without_lengths);
        }
        _ => {}
    }
}

fn close(schema: &Value, level: usize, properties: &mut usize) -> Option<Value> {
    let schema = schema.as_object()?;
    if level > MAX_LEVELS {
        return None;
    }
    let mut closed = Map::new();
    if let Some(target) = schema.get("$ref") {
        // Beside a reference nothing else may stand, but at the root, where the definitions are.
        closed.insert("$ref".to_owned(), target.clone());
    }
    for (key, value) in schema {
        let value = match key.as_str() {
            "$ref" | "properties" => continue,
            "description" if closed.contains_key("$ref") => continue,
            key if DROPPED.contains(&key) => continue,
            "format" if FORMATS.iter().any(|format| value == format) => value.clone(),
            "format" => continue,
            "oneOf" | "anyOf" => {
                let choices = value.as_array()?.iter();
                let choices = choices.map(|choice| close(choice, level + 1, properties));
                let choices = choices.collect::<Option<Vec<_>>>()?;
                if closed.insert("anyOf".to_owned(), choices.into()).is_some() {
                    return None;
                }
                continue;
            }
            "items" => close(value, level + 1, properties)?,
            "$defs" | "definitions" => {
                let all = value.as_object()?.iter();
                let all =
                    all.map(|(name, value)| Some((name.clone(), close(value, level, properties)?)));
                Value::Object(all.collect::<Option<_>>()?)
            }
            key if KEPT.contains(&key) => value.clone(),
            _ => return None,
        };
        closed.insert(key.clone(), value);
    }
    if is_kind(schema, "array") && !schema.contains_key("items") {
        return None;
    }
    if is_kind(schema, "object") || schema.contains_key("properties") {
        close_object(schema, &mut closed, level, properties)?;
    }
    let says_something = ["$ref", "anyOf", "type", "enum", "const"];
    says_something
        .iter()
        .any(|key| closed.contains_key(*key))
        .then_some(Value::Object(closed))
}

/// Closes an object, and requires all it has.
fn close_object(
    schema: &Map<String, Value>,
    closed: &mut Map<String, Value>,
    level: usize,
    properties: &mut usize,
) -> Option<()> {
    // An object with other properties than those named is a map.
    let open = schema.get("additionalProperties");
    if open.is_some_and(|open| open != false) {
        return None;
    }
    let named = schema.get("properties").and_then(Value::as_object);
    if named.is_none() && open.is_none() {
        return None;
    }
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let mut all = Map::new();
    for (name, value) in named.into_iter().flatten() {
        *properties += 1;
        if *properties > MAX_PROPERTIES {
            return None;
        }
        let value = close(value, level + 1, properties)?;
        let value = if is_required(name) {
            value
        } else {
            nullable(value)
        };
        all.insert(name.clone(), value);
    }
    closed.insert("required".to_owned(), all.keys().cloned().collect());
    closed.insert("properties".to_owned(), Value::Object(all));
    closed.insert("additionalProperties".to_owned(), Value::Bool(false));
    Some(())
}

fn is_kind(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        Some(one) => one == kind,
        None => false,
    }
}

/// The same schema, that takes null too.
fn nullable(schema: Value) -> Value {
    let null = json!({ "type": "null" });
    let Value::Object(mut schema) = schema else {
        return schema;
    };
    if is_kind(&schema, "null") {
        return Value::Object(schema);
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        if !choices.contains(&null) {
            choices.push(null);
        }
        return Value::Object(schema);
    }
    let plain = !schema.contains_key("enum") && !schema.contains_key("const");
    if let (true, Some(Value::String(kind))) = (plain, schema.get("type")) {
        let kinds = json!([kind, "null"]);
        schema.insert("type".to_owned(), kinds);
        return Value::Object(schema);
    }
    json!({ "anyOf": [schema, (null)] })
}

#[cfg(test)]
mod tests;
