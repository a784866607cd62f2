//! Structured output: an answer as a value of a type, from any model.
//!
//! Agents call [`StructuredOutput::with_structured_output`]. Where the model's server enforces schemas it is asked to;
//! elsewhere the schema stands in the instructions. Either way the answer is checked here, and a model that missed is
//! told what was wrong and asked again, a bounded number of times. The parts: `extract` (JSON out of prose), `strict`
//! (schemas as providers enforce them), `again` (asking until an answer can be read).

mod again;
mod extract;
mod strict;

use std::marker::PhantomData;

use jsonschema::{PatternOptions, Validator};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) use again::{Read, ask_until_read, with_instructions};
pub use extract::json_in;
pub(crate) use strict::{strict, without_lengths};

use crate::chat::{ChatModel, ChatReply, ChatRequest, ResponseFormat, ToolChoice};
use crate::error::{Error, ModelError};
use crate::message::Usage;

/// How often a model is asked at most, unless [`Structured::tries`] says otherwise.
const TRIES: u32 = 3;

/// How many mistakes a model is told of at once.
const MAX_TOLD: usize = 5;

/// How many bytes of one mistake it is told.
const MAX_MESSAGE: usize = 300;

/// Any model, asked for values of a type.
pub trait StructuredOutput: ChatModel {
    /// Answers as values of `T`, whose doc comments become the schema's descriptions.
    ///
    /// ```
    /// use paraph_models::{ChatRequest, Message, ScriptedModel, StructuredOutput};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct City { name: String, inhabitants: u64 }
    ///
    /// let script = r#"{"content": "It is {\"name\": \"Basel\"}"}
    /// {"content": "{\"name\": \"Basel\", \"inhabitants\": 177571}"}"#;
    /// let model = ScriptedModel::parse(script, "city.jsonl")?;
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let cities = model.with_structured_output::<City>()?;
    /// let found = cities.ask(&ChatRequest::new([Message::human("A city on the Rhine?")])).await?;
    /// assert_eq!((found.value.name.as_str(), found.value.inhabitants, found.tries), ("Basel", 177_571, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// # Ok::<(), paraph_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Json`] if the schema of `T` cannot be used.
    fn with_structured_output<T: DeserializeOwned + JsonSchema>(
        &self,
    ) -> Result<Structured<&Self, T>, Error> {
        let schema = schemars::schema_for!(T).to_value();
        Structured::new(self, &T::schema_name(), schema)
    }
}

impl<M: ChatModel + ?Sized> StructuredOutput for M {}

/// A model that answers with values of `T`.
///
/// - The answer is checked against the whole schema and read as `T`, with every digit of its numbers. JSON is also
///   found in a code fence or inside prose.
/// - Providers that enforce a schema *strictly* take only a part of JSON Schema: objects that are closed and whose
///   properties are all required. The schema is rewritten for them: an optional property becomes one that may be
///   `null`, and a `null` where the schema has none counts as absent. What cannot be rewritten (maps with free keys,
///   values of any kind, `allOf`, `not`, `if`, patterns of property names, more than ten levels or five thousand
///   properties) is sent as it is, without the demand to be strict.
/// - A type that is no object is asked for inside one, since providers want an object at the root.
/// - A model of which nobody knows that its server enforces schemas is given the schema in its instructions; so is
///   one whose server refuses the demand.
pub struct Structured<M, T> {
    model: M,
    target: Target,
    tries: u32,
    value: PhantomData<fn() -> T>,
}

/// What an answer has to be.
struct Target {
    name: String,
    /// As answers are checked.
    validator: Validator,
    /// As a model reads it in its instructions.
    shown: String,
    /// As a provider is asked to enforce it, and whether to the letter.
    enforced: (Value, bool),
    /// Whether the value stands inside an object of ours.
    wrapped: bool,
}

/// A value, with what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered<T> {
    /// The value.
    pub value: T,
    /// The answer it was read from.
    pub reply: ChatReply,
    /// How often the model was asked; more than 1 if it missed before.
    pub tries: u32,
    /// What all the answers together cost, as far as the provider said it.
    pub usage: Option<Usage>,
}

impl<M: ChatModel, T: DeserializeOwned> Structured<M, T> {
    /// Answers that match a schema known only at run time; `T` may be [`serde_json::Value`]. Characters of the
    /// name that providers refuse are replaced.
    ///
    /// # Errors
    /// [`Error::Json`] if the schema cannot be used.
    pub fn new(model: M, name: &str, schema: Value) -> Result<Self, Error> {
        let wrapped = schema.get("type").is_none_or(|kind| kind != "object");
        let schema = if wrapped {
            inside_object(schema)
        } else {
            schema
        };
        let validator = jsonschema::options()
            // A pattern may come from a stranger; backtracking would let it stop the process.
            .with_pattern_options(PatternOptions::regex())
            .build(&schema)
            .map_err(|error| Error::Json {
                what: "schema of an answer",
                problem: cut(error.to_string()),
            })?;
        let shown = schema.to_string();
        let enforced = match strict(&schema) {
            Some(strict) => (strict, true),
            None => (schema, false),
        };
        Ok(Self {
            model,
            target: Target {
                name: schema_name(name),
                validator,
                shown,
                enforced,
                wrapped,
            },
            tries: TRIES,
            value: PhantomData,
        })
    }

    /// The same with another number of tries in all; at least one is made.
    #[must_use]
    pub fn tries(self, tries: u32) -> Self {
        Self { tries, ..self }
    }

    /// Asks until an answer fits. The model may not call tools meanwhile. The format of the request is replaced.
    ///
    /// # Errors
    /// [`ModelError::Mismatch`] with the last answer's text if none fits; else what the model's call ends with.
    pub async fn ask(&self, request: &ChatRequest) -> Result<Answered<T>, ModelError> {
        let request = ChatRequest {
            tool_choice: ToolChoice::None,
            ..request.clone()
        };
        let enforced = if self.model.enforces_schemas() {
            match self.ask_enforced(&request).await {
                // Servers that do not know the demand, or not this schema, say so in no common way.
                Err(ModelError::BadRequest { message }) => {
                    tracing::debug!(model = self.model.name(), %message, "the schema goes into the instructions");
                    None
                }
                answered => Some(answered?),
            }
        } else {
            None
        };
        let read = match enforced {
            Some(read) => read,
            None => self.ask_instructed(request).await?,
        };
        Ok(Answered {
            value: read.value,
            reply: read.reply,
            tries: read.tries,
            usage: read.usage,
        })
    }

    async fn ask_enforced(&self, request: &ChatRequest) -> Result<Read<T>, ModelError> {
        let (schema, strict) = self.target.enforced.clone();
        let request = ChatRequest {
            response_format: ResponseFormat::JsonSchema {
                name: self.target.name.clone(),
                schema,
                strict,
            },
            ..request.clone()
        };
        self.ask_again(request, &format!("\n\n{}", self.target.instructions()))
            .await
    }

    async fn ask_instructed(&self, mut request: ChatRequest) -> Result<Read<T>, ModelError> {
        request.response_format = ResponseFormat::Text;
        with_instructions(&mut request.messages, &self.target.instructions());
        self.ask_again(request, "").await
    }

    async fn ask_again(&self, request: ChatRequest, more: &str) -> Result<Read<T>, ModelError> {
        let read = |reply: &ChatReply| self.target.read(&reply.message.text());
        ask_until_read(&self.model, request, (self.tries, more), read).await
    }
}

impl Target {
    fn instructions(&self) -> String {
        format!(
            "Write one JSON value as your whole answer, with no words around it and no code fence. \
             It has to match this JSON Schema:\n{}",
            self.shown
        )
    }

    /// The value in a text, or what is wrong with it.
    fn read<T: DeserializeOwned>(&self, text: &str) -> Result<T, String> {
        #[derive(Deserialize)]
        struct Wrapped<T> {
            value: T,
        }
        let (exact, mut value) = json_in(text)?;
        let mut wrong = self.mistakes(&value);
        let exact = match &wrong {
            None => exact.to_owned(),
            Some(_) => {
                // An absent property may have been made one that is null.
                drop_nulls(&mut value);
                wrong = self.mistakes(&value).and(wrong);
                value.to_string()
            }
        };
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        let read = match self.wrapped {
            true => serde_json::from_str(&exact).map(|wrapped: Wrapped<T>| wrapped.value),
            false => serde_json::from_str(&exact),
        };
        read.map_err(|error| cut(error.to_string()))
    }

    fn mistakes(&self, value: &Value) -> Option<String> {
        let told = self.validator.iter_errors(value).take(MAX_TOLD);
        let told = told.map(|error| match error.instance_path().to_string() {
            place if place.is_empty() => cut(error.to_string()),
            place => format!("at {place}: {}", cut(error.to_string())),
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

/// A schema as the only property of an object. Its definitions stay at the root, where references look for them;
/// one that refers to itself becomes a definition too.
fn inside_object(mut schema: Value) -> Value {
    let mut name = "value".to_owned();
    while schema.pointer(&format!("/$defs/{name}")).is_some() {
        name.push('_');
    }
    let own = format!("#/$defs/{name}");
    let refers_to_itself = refer(&mut schema, "#", &own);
    let mut object = json!({
        "type": "object",
        "properties": {},
        "required": ["value"],
        "additionalProperties": false,
    });
    if let Some(members) = schema.as_object_mut() {
        members.remove("$schema");
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = members.remove(key) {
                object[key] = definitions;
            }
        }
    }
    if refers_to_itself {
        object["$defs"][&name] = schema;
        schema = json!({ "$ref": own });
    }
    object["properties"]["value"] = schema;
    object
}

/// Lets every reference to one place lead to another; says whether there was one.
fn refer(schema: &mut Value, from: &str, to: &str) -> bool {
    match schema {
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |any, item| refer(item, from, to) | any),
        Value::Object(members) => members.iter_mut().fold(false, |any, (key, value)| {
            if key == "$ref" && value == from {
                *value = Value::String(to.to_owned());
                return true;
            }
            refer(value, from, to) | any
        }),
        _ => false,
    }
}

/// Takes out every member of an object that is null.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        _ => {}
    }
}

/// A name that providers take: 64 letters, digits, `_` and `-`.
fn schema_name(name: &str) -> String {
    let allowed = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().take(64).map(allowed).collect();
    if name.is_empty() {
        "answer".to_owned()
    } else {
        name
    }
}

fn cut(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE));
        message.push('…');
    }
    message
}

#[cfg(test)]
pub(crate) mod tests;
