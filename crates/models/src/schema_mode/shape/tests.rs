//! The schema of a step, and its instructions.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use super::*;
use crate::message::Message;

fn tool(name: &str, schema: Value) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: format!("Does {name}."),
        schema,
    }
}

fn request(tools: Vec<ToolSpec>) -> ChatRequest {
    ChatRequest {
        tools,
        ..ChatRequest::new([Message::human("Go")])
    }
}

fn step(action: &str, key: &str, value: Value) -> Value {
    json!({
        "type": "object",
        "properties": { "action": { "const": action }, key: value },
        "required": ["action", key],
        "additionalProperties": false,
    })
}

fn answer() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_ANSWER })
}

#[test]
fn there_is_a_branch_for_each_tool_and_one_for_the_answer() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "text": { "type": "string" },
            "short": { "type": "string", "maxLength": 3 },
            "kind": { "type": "string", "enum": ["a"] },
            "day": { "type": ["string", "null"], "format": "date" },
            "all": { "type": "array", "items": { "type": ["string", "null"] } },
            "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            "type": { "type": "object", "additionalProperties": { "type": "string" } },
        },
    });
    let shape = Shape::of(&request(vec![tool("write", schema)]));
    let arguments = json!({
        "type": "object",
        "properties": {
            "text": { "type": "string", "maxLength": MAX_STRING },
            "short": { "type": "string", "maxLength": 3 },
            "kind": { "type": "string", "enum": ["a"] },
            "day": { "type": ["string", "null"], "format": "date" },
            "all": { "type": "array", "maxItems": MAX_ITEMS,
                     "items": { "type": ["string", "null"], "maxLength": MAX_STRING } },
            "either": { "anyOf": [{ "type": "string", "maxLength": MAX_STRING }, { "type": "integer" }] },
            "type": { "type": "object", "additionalProperties": { "type": "string", "maxLength": MAX_STRING } },
        },
    });
    assert_eq!(
        *shape.schema(),
        json!({ "oneOf": [step("write", "arguments", arguments), step("final_answer", "answer", answer())] })
    );
}

#[test]
fn references_lead_into_the_tools_own_definition() {
    let list = json!({
        "type": "object",
        "properties": { "next": { "$ref": "#" }, "item": { "$ref": "#/$defs/Item" } },
        "$defs": { "Item": { "type": "string" } },
    });
    let shape = Shape::of(&request(vec![tool("a/b", list)]));
    assert_eq!(
        *shape.schema(),
        json!({
            "oneOf": [
                step("a/b", "arguments", json!({ "$ref": "#/$defs/a~1b" })),
                step("final_answer", "answer", answer()),
            ],
            "$defs": { "a/b": {
                "type": "object",
                "properties": {
                    "next": { "$ref": "#/$defs/a~1b" },
                    "item": { "$ref": "#/$defs/a~1b/$defs/Item" },
                },
                "$defs": { "Item": { "type": "string", "maxLength": MAX_STRING } },
            } },
        })
    );
}

#[test]
fn the_choice_of_tools_decides_which_branches_there_are() {
    let branches = |choice: ToolChoice| {
        let empty = || json!({ "type": "object" });
        let shape = Shape::of(&ChatRequest {
            tool_choice: choice,
            ..request(vec![tool("a", empty()), tool("final_answer", empty())])
        });
        let all = shape.schema()["oneOf"].as_array().unwrap().clone();
        let names = all
            .iter()
            .map(|branch| branch["properties"]["action"]["const"].clone());
        names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        branches(ToolChoice::Auto),
        ["a", "final_answer", "final_answer_"]
    );
    assert_eq!(branches(ToolChoice::Required), ["a", "final_answer"]);
    assert_eq!(branches(ToolChoice::Tool("a".into())), ["a"]);
    // A tool that is not there cannot be demanded.
    assert_eq!(branches(ToolChoice::Tool("none".into())), ["final_answer_"]);
}

#[test]
fn a_demanded_form_is_the_form_of_the_final_answer() {
    let form = json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/X" } },
                       "$defs": { "X": { "type": "integer" } } });
    let shape = Shape::of(&ChatRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "n".into(),
            schema: form,
            strict: true,
        },
        ..request(vec![tool("a", json!({ "type": "object" }))])
    });
    assert!(!shape.answer_is_text);
    assert_eq!(
        shape.schema()["oneOf"][1],
        step(
            "final_answer",
            "answer",
            json!({ "$ref": "#/$defs/final_answer" })
        )
    );
    assert_eq!(
        shape.schema()["$defs"]["final_answer"]["properties"]["x"],
        json!({ "$ref": "#/$defs/final_answer/$defs/X" })
    );
}

#[test]
fn the_instructions_name_every_form() {
    let mut request = request(vec![tool(
        "look",
        json!({ "title": "Look", "type": "object", "properties": {} }),
    )]);
    assert_eq!(
        Shape::of(&request).instructions(&request.tools),
        "You act in steps. Each time you write one JSON object and nothing else. These are your actions:\n\
         - {\"action\": \"look\", \"arguments\": {…}}: Does look. Its arguments by JSON Schema: {\"properties\":{},\"type\":\"object\"}\n\
         - {\"action\": \"final_answer\", \"answer\": \"…\"}: Ends your work with what you tell the person.\n\
         What an action brought you read in the next message. When you know enough, take \"final_answer\"."
    );
    request.tool_choice = ToolChoice::Required;
    let told = Shape::of(&request).instructions(&request.tools);
    assert!(told.ends_with("Take one of them now."), "{told}");
}
