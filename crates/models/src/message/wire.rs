//! How a [`Message`] is written to and read from JSON.
//!
//! Called by serde. Reading goes through the raw fields of the object, since neither untagged enums nor flattened
//! fields can carry exact text. This module must not drop a field in silence.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Deserializer, Serialize};

use super::{
    AiBody, Body, Content, InvalidToolCall, Message, ToolBody, ToolCall, ToolStatus, Usage,
    fresh_id,
};
use crate::error::Error;
use crate::raw::{Arguments, Fields, RawJson};

/// Fields with a place of their own; they never stand in [`Message::extra`].
const KNOWN: [&str; 13] = [
    "type",
    "role",
    "content",
    "id",
    "name",
    "tool_calls",
    "invalid_tool_calls",
    "usage_metadata",
    "tool_call_id",
    "status",
    "artifact",
    "additional_kwargs",
    "response_metadata",
];

/// Where LangChain remembers that a system message was a developer message.
pub(crate) const OPENAI_ROLE: &str = "__openai_role__";

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind())?;
        map.serialize_entry("content", &self.content)?;
        map.serialize_entry("id", &self.id)?;
        if let Some(name) = &self.name {
            map.serialize_entry("name", name)?;
        }
        match &self.body {
            Body::Human | Body::System | Body::Remove => {}
            Body::Ai(ai) => write_ai(ai, &mut map)?,
            Body::Tool(tool) => {
                map.serialize_entry("tool_call_id", &tool.tool_call_id)?;
                map.serialize_entry("status", &tool.status)?;
                if let Some(artifact) = &tool.artifact {
                    map.serialize_entry("artifact", artifact)?;
                }
            }
        }
        for (key, fields) in [
            ("additional_kwargs", &self.additional_kwargs),
            ("response_metadata", &self.response_metadata),
        ] {
            if !fields.is_empty() {
                map.serialize_entry(key, fields)?;
            }
        }
        let unknown = |key: &&String| !KNOWN.contains(&key.as_str());
        for key in self.extra.keys().filter(unknown) {
            map.serialize_entry(key, &self.extra.get(key))?;
        }
        map.end()
    }
}

fn write_ai<M: SerializeMap>(ai: &AiBody, map: &mut M) -> Result<(), M::Error> {
    if !ai.tool_calls.is_empty() {
        map.serialize_entry("tool_calls", &ai.tool_calls)?;
    }
    if !ai.invalid_tool_calls.is_empty() {
        map.serialize_entry("invalid_tool_calls", &ai.invalid_tool_calls)?;
    }
    if let Some(usage) = &ai.usage {
        map.serialize_entry("usage_metadata", usage)?;
    }
    Ok(())
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("args", &self.args)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("type", "tool_call")?;
        for (key, value) in &self.extra {
            if !["name", "args", "id", "type"].contains(&key.as_str()) {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

impl Serialize for InvalidToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("args", &self.args)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("error", &self.error)?;
        map.serialize_entry("type", "invalid_tool_call")?;
        map.end()
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Blocks(blocks) => blocks.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;

        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, a list of content blocks, or null")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(text.into())
            }

            fn visit_string<E>(self, text: String) -> Result<Content, E> {
                Ok(text.into())
            }

            fn visit_unit<E>(self) -> Result<Content, E> {
                Ok(Content::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element::<RawJson>()? {
                    if !block.as_str().starts_with(['{', '"']) {
                        return Err(A::Error::custom("a content block is an object or a string"));
                    }
                    blocks.push(block);
                }
                Ok(Content::Blocks(blocks))
            }
        }

        deserializer.deserialize_any(ContentVisitor)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MessageVisitor;

        impl<'de> Visitor<'de> for MessageVisitor {
            type Value = Message;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message: an object, a pair [role, content], or a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<Message, E> {
                Ok(Message::human(text))
            }

            fn visit_string<E>(self, text: String) -> Result<Message, E> {
                Ok(Message::human(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Message, A::Error> {
                let role: String = seq.next_element()?.ok_or_else(not_a_pair)?;
                let content: RawJson = seq.next_element()?.ok_or_else(not_a_pair)?;
                if seq.next_element::<RawJson>()?.is_some() {
                    return Err(not_a_pair());
                }
                let fields = Fields::from([("content".to_owned(), content)]);
                read(&role, fields).map_err(A::Error::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Message, A::Error> {
                let mut fields = Fields::new();
                while let Some((key, value)) = map.next_entry::<String, RawJson>()? {
                    fields.insert(key, value);
                }
                from_fields(fields).map_err(A::Error::custom)
            }
        }

        deserializer.deserialize_any(MessageVisitor)
    }
}

fn not_a_pair<E: serde::de::Error>() -> E {
    E::custom("a message as a list is a pair [role, content]")
}

fn from_fields(mut fields: Fields) -> Result<Message, Error> {
    if fields.contains_key("lc") {
        fields = constructor(fields)?;
    }
    let role: Option<String> = match take(&mut fields, "role")? {
        Some(role) => Some(role),
        None => take(&mut fields, "type")?,
    };
    let role = role.ok_or_else(|| Error::Json {
        what: "message",
        problem: "neither `type` nor `role` says who speaks".to_owned(),
    })?;
    read(&role, fields)
}

/// LangChain's own serialisation: `{"lc":1,"type":"constructor","id":[…,"HumanMessage"],"kwargs":{…}}`.
fn constructor(mut fields: Fields) -> Result<Fields, Error> {
    let path: Vec<String> = take(&mut fields, "id")?.unwrap_or_default();
    let mut inner: Fields = take(&mut fields, "kwargs")?.unwrap_or_default();
    let class = path.last().map(String::as_str).unwrap_or_default();
    inner.insert("type".to_owned(), RawJson::of(class)?);
    inner.remove("role");
    Ok(inner)
}

fn read(role: &str, mut fields: Fields) -> Result<Message, Error> {
    let role_name = role
        .strip_suffix("MessageChunk")
        .or(role.strip_suffix("Message"));
    if role_name.is_some() {
        // Chunks repeat their calls in a form of their own, which says nothing new once a message is whole.
        fields.remove("tool_call_chunks");
        fields.remove("chunk_position");
    }
    let body = match role_name.unwrap_or(role) {
        "human" | "user" | "Human" => Body::Human,
        "system" | "System" => Body::System,
        "developer" => Body::System,
        "ai" | "assistant" | "AI" => Body::Ai(read_ai(&mut fields)?),
        "tool" | "Tool" => Body::Tool(read_tool(&mut fields)?),
        "remove" | "Remove" => Body::Remove,
        _ => return Err(Error::UnknownRole(role.to_owned())),
    };
    let id: Option<String> = take(&mut fields, "id")?;
    let id = id.filter(|id| !id.is_empty());
    if matches!(body, Body::Remove) && id.is_none() {
        return Err(missing("remove", "id"));
    }
    let mut message = Message {
        id: id.unwrap_or_else(fresh_id),
        body,
        content: take(&mut fields, "content")?.unwrap_or_default(),
        name: take(&mut fields, "name")?,
        additional_kwargs: take(&mut fields, "additional_kwargs")?.unwrap_or_default(),
        response_metadata: take(&mut fields, "response_metadata")?.unwrap_or_default(),
        extra: Fields::new(),
    };
    if role == "developer" {
        let role = RawJson::of(role)?;
        message
            .additional_kwargs
            .insert(OPENAI_ROLE.to_owned(), role);
    }
    message.extra = rest(fields, message.kind())?;
    Ok(message)
}

/// What is left when all fields of the role are taken: unknown fields are kept, those of other roles refused
/// unless they say nothing.
fn rest(mut fields: Fields, role: &'static str) -> Result<Fields, Error> {
    // OpenAI's answers carry `type: "message"` beside the role; the role has been read.
    fields.remove("type");
    fields.retain(|_, value| !value.is_null());
    for field in KNOWN {
        match fields.remove(field) {
            Some(value) if value.as_str() != "[]" => {
                return Err(Error::UnexpectedField { role, field });
            }
            _ => {}
        }
    }
    Ok(fields)
}

fn read_ai(fields: &mut Fields) -> Result<AiBody, Error> {
    let mut ai = AiBody {
        usage: take::<Usage>(fields, "usage_metadata")?.map(Box::new),
        ..AiBody::default()
    };
    for call in take::<Vec<Fields>>(fields, "tool_calls")?.unwrap_or_default() {
        match read_call(call)? {
            Ok(call) => ai.tool_calls.push(call),
            Err(invalid) => ai.invalid_tool_calls.push(invalid),
        }
    }
    for mut call in take::<Vec<Fields>>(fields, "invalid_tool_calls")?.unwrap_or_default() {
        ai.invalid_tool_calls.push(InvalidToolCall {
            id: take(&mut call, "id")?.unwrap_or_else(fresh_id),
            name: take(&mut call, "name")?,
            args: take(&mut call, "args")?.unwrap_or_default(),
            error: take(&mut call, "error")?.unwrap_or_default(),
        });
    }
    Ok(ai)
}

/// Reads a call in LangChain's form or in OpenAI's (`function.arguments` as text).
fn read_call(mut call: Fields) -> Result<Result<ToolCall, InvalidToolCall>, Error> {
    let id: Option<String> = take(&mut call, "id")?;
    let id = id.filter(|id| !id.is_empty()).unwrap_or_else(fresh_id);
    call.remove("type");
    if let Some(mut function) = take::<Fields>(&mut call, "function")? {
        let name: Option<String> = take(&mut function, "name")?;
        let text: String = take(&mut function, "arguments")?.unwrap_or_default();
        return Ok(ToolCall::from_text(id, name, text).map(|mut valid| {
            valid.extra = call;
            valid
        }));
    }
    let name: Option<String> = take(&mut call, "name")?;
    let args: Option<Arguments> = take(&mut call, "args")?;
    Ok(Ok(ToolCall {
        id,
        name: name.ok_or(missing("ai", "tool_calls.name"))?,
        args: args.unwrap_or_default(),
        extra: call,
    }))
}

impl ToolCall {
    /// A call from what a model wrote; unusable text makes it an [`InvalidToolCall`] that keeps the text.
    pub(crate) fn from_text(
        id: String,
        name: Option<String>,
        text: String,
    ) -> Result<Self, InvalidToolCall> {
        let name = name.filter(|name| !name.is_empty());
        let error = match (Arguments::parse(&text), &name) {
            (Ok(args), Some(name)) => return Ok(Self::new(id, name, args)),
            (Ok(_), None) => "the call names no tool".to_owned(),
            (Err(error), _) => error.to_string(),
        };
        Err(InvalidToolCall {
            id,
            name,
            args: text,
            error,
        })
    }
}

fn read_tool(fields: &mut Fields) -> Result<ToolBody, Error> {
    let call: Option<String> = take(fields, "tool_call_id")?;
    Ok(ToolBody {
        tool_call_id: call.ok_or(missing("tool", "tool_call_id"))?,
        status: take::<ToolStatus>(fields, "status")?.unwrap_or_default(),
        artifact: fields.remove("artifact").filter(|value| !value.is_null()),
    })
}

fn missing(role: &'static str, field: &'static str) -> Error {
    Error::MissingField { role, field }
}

/// Takes a field out and reads it; `null` is the same as absent.
fn take<T: DeserializeOwned>(fields: &mut Fields, key: &str) -> Result<Option<T>, Error> {
    let Some(value) = fields.remove(key).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let read = serde_json::from_str(value.as_str());
    read.map(Some).map_err(|error| Error::Json {
        what: "message",
        problem: format!("field `{key}`: {error}"),
    })
}

impl JsonSchema for Message {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Message".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A message in LangChain's shape; also [role, content] or a plain string.",
            "type": ["object", "array", "string"],
            "properties": {
                "type": { "type": "string" },
                "role": { "type": "string" },
                "content": { "type": ["string", "array", "null"] },
                "id": { "type": ["string", "null"] },
                "name": { "type": ["string", "null"] },
                "tool_calls": { "type": ["array", "null"] },
                "tool_call_id": { "type": ["string", "null"] }
            }
        })
    }
}
