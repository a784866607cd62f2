//! What one step of a model may look like: the schema, and the same in words. Pure; called by [`super`] only.
//!
//! Servers that enforce a schema write properties in its order, and ours are in alphabetical order: hence `action`
//! stands before `answer` and `arguments`, so that a model decides what to do before it says with what.

use serde_json::{Map, Value, json};

use crate::chat::{ChatRequest, ResponseFormat, ToolChoice, ToolSpec};

/// Longest string in arguments, in characters, where the tool's schema names no bound.
const MAX_STRING: u64 = 500;

/// Longest list in arguments, where the tool's schema names no bound.
const MAX_ITEMS: u64 = 20;

/// Longest final answer, in characters. llama.cpp refuses more than 2,000 repetitions.
const MAX_ANSWER: u64 = 2000;

/// How deep a tool's schema is searched for strings and lists without a bound.
const MAX_LEVELS: usize = 32;

/// The forms that a step may have.
pub(super) struct Shape {
    schema: Value,
    /// The action that ends the conversation's turn; it is no tool's name.
    final_action: String,
    /// Whether the final answer is text, or JSON of a form that the request demands.
    pub(super) answer_is_text: bool,
    /// Whether a tool must be called.
    must_call: bool,
}

impl Shape {
    /// The forms for a request with tools.
    pub(super) fn of(request: &ChatRequest) -> Self {
        let mut final_action = "final_answer".to_owned();
        while request.tools.iter().any(|tool| tool.name == final_action) {
            final_action.push('_');
        }
        let wanted = |tool: &&ToolSpec| match &request.tool_choice {
            ToolChoice::Tool(name) => tool.name == *name,
            _ => true,
        };
        let mut definitions = Map::new();
        let tools = request.tools.iter().filter(wanted);
        let mut branches: Vec<Value> = tools.map(|tool| branch(tool, &mut definitions)).collect();
        let must_call = matches!(
            request.tool_choice,
            ToolChoice::Required | ToolChoice::Tool(_)
        ) && !branches.is_empty();
        let (answer, answer_is_text) = match &request.response_format {
            ResponseFormat::Text => (
                json!({ "type": "string", "minLength": 1, "maxLength": MAX_ANSWER }),
                true,
            ),
            ResponseFormat::JsonObject => (json!({ "type": "object" }), false),
            ResponseFormat::JsonSchema { schema, .. } => {
                (rooted(schema, &final_action, &mut definitions), false)
            }
        };
        if !must_call {
            branches.push(json!({
                "type": "object",
                "properties": { "action": { "const": final_action }, "answer": answer },
                "required": ["action", "answer"],
                "additionalProperties": false,
            }));
        }
        let mut schema = json!({ "oneOf": branches });
        if !definitions.is_empty() {
            schema["$defs"] = Value::Object(definitions);
        }
        Self {
            schema,
            final_action,
            answer_is_text,
            must_call,
        }
    }

    pub(super) fn schema(&self) -> &Value {
        &self.schema
    }

    pub(super) fn final_action(&self) -> &str {
        &self.final_action
    }

    /// The forms in words. The tools' own schemas are shown, without the bounds that are ours.
    pub(super) fn instructions(&self, tools: &[ToolSpec]) -> String {
        let mut text = String::from(
            "You act in steps. Each time you write one JSON object and nothing else. These are your actions:\n",
        );
        for tool in tools {
            let name = json!(tool.name);
            let about = tool.description.trim();
            let about = if about.is_empty() {
                String::new()
            } else {
                format!(" {about}")
            };
            let schema = shown(&tool.schema);
            text.push_str(&format!(
                "- {{\"action\": {name}, \"arguments\": {{…}}}}:{about} Its arguments by JSON Schema: {schema}\n"
            ));
        }
        if self.must_call {
            text.push_str("Take one of them now.");
            return text;
        }
        let (name, form) = (
            json!(self.final_action),
            if self.answer_is_text {
                "\"…\""
            } else {
                "…"
            },
        );
        text.push_str(&format!(
            "- {{\"action\": {name}, \"answer\": {form}}}: Ends your work with what you tell the person.\n\
             What an action brought you read in the next message. When you know enough, take {name}."
        ));
        text
    }
}

fn branch(tool: &ToolSpec, definitions: &mut Map<String, Value>) -> Value {
    let mut arguments = tool.schema.clone();
    bound(&mut arguments, MAX_LEVELS);
    if let Some(arguments) = arguments.as_object_mut() {
        arguments.remove("$schema");
    }
    json!({
        "type": "object",
        "properties": { "action": { "const": tool.name }, "arguments": rooted(&arguments, &tool.name, definitions) },
        "required": ["action", "arguments"],
        "additionalProperties": false,
    })
}

/// A schema for a place below the root. References in it lead from its own root, so one with references becomes a
/// definition, and they lead into it.
fn rooted(schema: &Value, name: &str, definitions: &mut Map<String, Value>) -> Value {
    let mut schema = schema.clone();
    let root = format!("#/$defs/{}", name.replace('~', "~0").replace('/', "~1"));
    if !redirect(&mut schema, &root) {
        return schema;
    }
    definitions.insert(name.to_owned(), schema);
    json!({ "$ref": root })
}

/// Lets references within the schema begin at another root; says whether there was one.
fn redirect(schema: &mut Value, root: &str) -> bool {
    match schema {
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |any, item| redirect(item, root) | any),
        Value::Object(members) => members.iter_mut().fold(false, |any, (key, value)| {
            let local = match (key.as_str(), &*value) {
                ("$ref", Value::String(target)) => target.strip_prefix('#').map(str::to_owned),
                _ => None,
            };
            match local {
                Some(path) => {
                    *value = Value::String(format!("{root}{path}"));
                    true
                }
                None => redirect(value, root) | any,
            }
        }),
        _ => false,
    }
}

/// Bounds strings and lists that have no bound.
fn bound(schema: &mut Value, levels: usize) {
    let (Some(schema), Some(levels)) = (schema.as_object_mut(), levels.checked_sub(1)) else {
        return;
    };
    let free = !["enum", "const", "format", "pattern"]
        .iter()
        .any(|key| schema.contains_key(*key));
    if is_kind(schema, "string") && free {
        schema.entry("maxLength").or_insert(json!(MAX_STRING));
    }
    if is_kind(schema, "array") {
        schema.entry("maxItems").or_insert(json!(MAX_ITEMS));
    }
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            ("items" | "additionalProperties", value) => bound(value, levels),
            ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                named.values_mut().for_each(|value| bound(value, levels));
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(all)) => {
                all.iter_mut().for_each(|value| bound(value, levels));
            }
            _ => {}
        }
    }
}

fn is_kind(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        Some(one) => one == kind,
        None => false,
    }
}

/// A tool's schema as a model reads it, without what says nothing to it.
fn shown(schema: &Value) -> Value {
    let mut shown = schema.clone();
    if let Some(schema) = shown.as_object_mut() {
        for key in ["$schema", "title", "additionalProperties"] {
            schema.remove(key);
        }
    }
    shown
}

#[cfg(test)]
mod tests;
