//! Schemas rewritten for strict enforcement, and those that cannot be.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use super::*;

#[test]
fn a_type_is_closed_and_what_is_optional_may_be_null() {
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema matters")]
    struct Person {
        /// As in the passport.
        name: String,
        age: Option<u8>,
        #[serde(default)]
        tags: Vec<Tag>,
        boss: Option<Box<Person>>,
    }
    #[derive(schemars::JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[expect(dead_code, reason = "only its schema matters")]
    enum Tag {
        New,
        Old,
    }
    let schema = schemars::schema_for!(Person).to_value();
    assert_eq!(
        strict(&schema).unwrap(),
        json!({
            "type": "object",
            "properties": {
                "name": { "description": "As in the passport.", "type": "string" },
                "age": { "type": ["integer", "null"], "minimum": 0, "maximum": 255 },
                "tags": { "type": ["array", "null"], "items": { "$ref": "#/$defs/Tag" } },
                "boss": { "anyOf": [{ "$ref": "#" }, { "type": "null" }] },
            },
            "required": ["age", "boss", "name", "tags"],
            "additionalProperties": false,
            "$defs": {
                "Tag": { "type": "string", "enum": ["new", "old"] },
            },
        })
    );
}

#[test]
fn choices_become_the_one_kind_that_is_enforced() {
    let schema = json!({
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": { "oneOf": [{ "type": "string", "format": "uuid" }, { "const": 1, "title": "One" }] },
            "b": { "enum": ["x"] },
            "c": { "anyOf": [{ "type": "null" }, { "type": "integer", "format": "int64" }] },
        },
    });
    assert_eq!(
        strict(&schema).unwrap(),
        json!({
            "type": "object",
            "required": ["a", "b", "c"],
            "properties": {
                "a": { "anyOf": [{ "type": "string", "format": "uuid" }, { "const": 1 }] },
                "b": { "anyOf": [{ "enum": ["x"] }, { "type": "null" }] },
                "c": { "anyOf": [{ "type": "null" }, { "type": "integer" }] },
            },
            "additionalProperties": false,
        })
    );
}

#[test]
fn what_cannot_be_enforced_is_left_alone() {
    let with = |value: Value| json!({ "type": "object", "properties": { "x": value }, "additionalProperties": false });
    let deep = (0..MAX_LEVELS).fold(json!({ "type": "string" }), |inner, _| with(inner));
    let table = [
        json!(true),
        json!({}),
        json!({ "description": "anything" }),
        json!({ "type": "object" }),
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        json!({ "type": "array" }),
        json!({ "type": "string", "not": { "const": "x" } }),
        json!({ "allOf": [{ "type": "string" }] }),
        json!({ "type": "object", "properties": {}, "patternProperties": { "^x": {} } }),
        json!({ "anyOf": [{ "type": "string" }], "oneOf": [{ "type": "string" }] }),
        deep.clone(),
    ];
    for schema in table {
        assert_eq!(strict(&with(schema.clone())), None, "{schema}");
    }
    assert!(strict(deep.pointer("/properties/x").unwrap()).is_some());
    let wide: Map<String, Value> = (0..=MAX_PROPERTIES)
        .map(|n| (n.to_string(), json!({ "type": "null" })))
        .collect();
    assert_eq!(
        strict(&json!({ "type": "object", "properties": wide })),
        None
    );
}

#[test]
fn bounds_of_strings_are_taken_out_and_nothing_else() {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "maxLength": { "type": "string", "maxLength": 5, "minLength": 1, "pattern": "x" },
            "all": { "type": "array", "maxItems": 2, "items": { "anyOf": [{ "type": "string", "maxLength": 1 }] } },
        },
    });
    without_lengths(&mut schema);
    assert_eq!(
        schema,
        json!({
            "type": "object",
            "properties": {
                "maxLength": { "type": "string", "pattern": "x" },
                "all": { "type": "array", "maxItems": 2, "items": { "anyOf": [{ "type": "string" }] } },
            },
        })
    );
}
