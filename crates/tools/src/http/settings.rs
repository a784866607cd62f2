//! What an HTTP tool's configuration can say, and every mistake it can contain.
//!
//! Plain data for whoever reads configuration files; `http.rs` makes tools of it. Keys that are not known are
//! refused when it is read.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use paraph_gateway::Level;
use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::result::Wanted;
use super::template::{Address, Template};
use super::{body, effect};
use crate::setting::{LevelName, Setting};

/// How long a call may take unless it is said, in seconds.
const DEFAULT_SECONDS: f64 = 20.0;

/// The longest that can be said.
const MAX_SECONDS: f64 = 600.0;

/// Headers that belong to the connection and not to a tool.
const NOT_OURS: [&str; 10] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "keep-alive",
];

/// A tool that is one HTTP request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpTool {
    /// Its name: letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// The method. `GET` if left out.
    #[serde(default)]
    pub method: HttpMethod,
    /// The address, with arguments in braces: `https://shop.example.com/orders/{number}?full={full}`. Arguments stand
    /// in the path and in values of the query only; a brace itself is written twice.
    pub url: String,
    /// Whether the address may be plain `http` beyond this machine. Whoever is on the way can read and change it.
    #[serde(default)]
    pub plain_http: bool,
    /// Headers: texts, or secrets as `{ env = "NAME", prefix = "Bearer " }`.
    #[serde(default)]
    pub headers: BTreeMap<String, Setting>,
    /// More parameters of the query: texts with arguments in braces, or secrets. One that is nothing but an argument
    /// is left out with it.
    #[serde(default)]
    pub query: BTreeMap<String, Setting>,
    /// The JSON body. A text that is nothing but an argument becomes its value, and is left out with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The arguments, each by the JSON Schema of its value. An argument with `optional = true` may be left out.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Map<String, Value>>")]
    pub arguments: BTreeMap<String, Value>,
    /// What the answer is. JSON if left out.
    #[serde(default)]
    pub format: HttpFormat,
    /// Which part of a JSON answer the model reads, as JSONPath: `$.data.items[*].title`. All of it if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// What the call does to the world. Only `read` runs: anything else waits for approvals by people. `GET` reads if
    /// nothing is said; a `POST` that only reads, such as a search, has to say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<LevelName>")]
    pub level: Option<Level>,
    /// What a call that changes something is about, with arguments in braces: `order {number}`. Then a refusal closes all
    /// calls about the same on its thread, and not only those with the same arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The header that carries the key of a call which changes something: the same on every attempt, and another for
    /// every call. `Idempotency-Key` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_header: Option<String>,
    /// Whether the server does what has the same key only once. Then a call whose answer nobody saw is sent again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recognises_key: bool,
    /// The statuses, of 400 to 499, by which the server says that it did nothing. After any other failure nobody knows
    /// what came of the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nothing_happened: Vec<u16>,
    /// Where a call is looked up whose answer nobody saw, with `{idempotency_key}` in it and arguments as in `url`. A
    /// success says that it was done, 404 that it was not; `result` names the receipt in either answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup_url: Option<String>,
    /// How long a call may take, in seconds, at most 600. 20 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// How many bytes of the result the model reads. The gateway's default if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<usize>,
}

/// The methods there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// Reads.
    #[default]
    Get,
    /// Reads or changes.
    Post,
    /// Changes.
    Put,
    /// Changes.
    Patch,
    /// Destroys.
    Delete,
}

/// What an answer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpFormat {
    /// JSON; anything else is an error.
    #[default]
    Json,
    /// Text, whatever the server calls it.
    Text,
}

impl HttpMethod {
    pub(super) fn as_http(self) -> Method {
        match self {
            HttpMethod::Get => Method::GET,
            HttpMethod::Post => Method::POST,
            HttpMethod::Put => Method::PUT,
            HttpMethod::Patch => Method::PATCH,
            HttpMethod::Delete => Method::DELETE,
        }
    }
}

impl HttpTool {
    /// What the call does to the world: what is said, else what the method usually does.
    pub fn level(&self) -> Level {
        self.level.unwrap_or(match self.method {
            HttpMethod::Get => Level::Read,
            HttpMethod::Post | HttpMethod::Put | HttpMethod::Patch => Level::Write,
            HttpMethod::Delete => Level::Delete,
        })
    }

    /// The JSON Schema of its arguments.
    pub fn schema(&self) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, schema) in &self.arguments {
            let mut schema = schema.clone();
            let entries = schema.as_object_mut();
            let optional = entries.and_then(|entries| entries.remove("optional"));
            match optional {
                // Many models write `null` for what they leave out.
                Some(Value::Bool(true)) => schema = or_null(schema),
                _ => required.push(name.as_str()),
            }
            properties.insert(name.clone(), schema);
        }
        json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        })
    }

    /// Every mistake in it, in words for the person who wrote it. What is not checked here is whether its secrets are
    /// set, and its arguments' schemas, which the gateway compiles.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let named = |c: char| c.is_ascii_alphanumeric() || ['_', '-', '.'].contains(&c);
        if self.name.is_empty() || self.name.len() > 128 || !self.name.chars().all(named) {
            mistakes.push("`name` is 1 to 128 letters, digits, `_`, `-` or `.`".to_owned());
        }
        if self.description.trim().is_empty() {
            mistakes
                .push("`description` is empty: a model would not know when to use it".to_owned());
        }
        self.check_method(&mut mistakes);
        let used = self.check_places(&mut mistakes);
        self.check_arguments(&used, &mut mistakes);
        mistakes.extend(effect::mistakes(self));
        if let Some(name) = &self.idempotency_header {
            let named = header_mistake(name, &Setting::Text(String::new()));
            mistakes.extend(named.map(|why| why.replacen("`headers`", "`idempotency_header`", 1)));
        }
        mistakes.extend(Wanted::new(self).err());
        let seconds = self.timeout_seconds.unwrap_or(DEFAULT_SECONDS);
        if !(seconds > 0.0 && seconds <= MAX_SECONDS) {
            mistakes.push("`timeout_seconds` is more than 0 and at most 600".to_owned());
        }
        mistakes
    }

    /// How long the exchange may take.
    pub(super) fn total(&self) -> Duration {
        let seconds = self.timeout_seconds.unwrap_or(DEFAULT_SECONDS);
        Duration::try_from_secs_f64(seconds.min(MAX_SECONDS)).unwrap_or(Duration::from_secs(20))
    }

    /// Its settings that may be secret.
    pub(super) fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.headers.values().chain(self.query.values())
    }

    fn check_method(&self, mistakes: &mut Vec<String>) {
        let reads = [HttpMethod::Get, HttpMethod::Post].contains(&self.method);
        if self.level == Some(Level::Read) && !reads {
            mistakes.push("`level` is read, and only GET and POST can be".to_owned());
        }
        if self.body.is_some() && self.method == HttpMethod::Get {
            mistakes.push("`body`: GET has none".to_owned());
        }
    }

    /// Checks all places where arguments and secrets stand; gives the arguments that are used, and those without
    /// which there is no address.
    fn check_places(&self, mistakes: &mut Vec<String>) -> Used {
        let mut used = Used::default();
        match Address::read(&self.url, self.plain_http) {
            Ok(address) => {
                used.needed = address.in_path().map(str::to_owned).collect();
                used.anywhere = used.needed.clone();
                let query = address.query.iter().map(|(_, template)| template);
                used.add(query.flat_map(Template::arguments));
            }
            Err(problem) => mistakes.push(format!("`url`: {problem}")),
        }
        for (name, setting) in &self.headers {
            mistakes.extend(header_mistake(name, setting));
        }
        for (name, setting) in &self.query {
            if let Setting::Text(text) = setting {
                match Template::read(text) {
                    Ok(template) => used.add(template.arguments()),
                    Err(problem) => mistakes.push(format!("`query`, `{name}`: {problem}")),
                }
            }
        }
        if let Some(body) = &self.body {
            match body::arguments(body) {
                Ok(found) => used.add(found.iter().map(String::as_str)),
                Err(problem) => mistakes.push(format!("`body`: {problem}")),
            }
        }
        used
    }

    fn check_arguments(&self, used: &Used, mistakes: &mut Vec<String>) {
        for name in &used.anywhere {
            if !self.arguments.contains_key(name) {
                mistakes.push(format!(
                    "`{{{name}}}` is used, and `arguments` has no `{name}`"
                ));
            }
        }
        for (name, schema) in &self.arguments {
            let Some(entries) = schema.as_object() else {
                mistakes.push(format!("`arguments`, `{name}`: write a JSON Schema"));
                continue;
            };
            let optional = entries.get("optional");
            if optional.is_some_and(|optional| !optional.is_boolean()) {
                mistakes.push(format!(
                    "`arguments`, `{name}`: `optional` is true or false"
                ));
            }
            if optional == Some(&Value::Bool(true)) && used.needed.contains(name) {
                mistakes.push(format!(
                    "`arguments`, `{name}`: it stands in the path and cannot be optional"
                ));
            }
            if !used.anywhere.contains(name) {
                mistakes.push(format!("`arguments`, `{name}`: it is used nowhere"));
            }
        }
    }
}

/// Which arguments are used.
#[derive(Default)]
struct Used {
    anywhere: BTreeSet<String>,
    needed: BTreeSet<String>,
}

impl Used {
    fn add<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.anywhere.extend(names.map(str::to_owned));
    }
}

fn header_mistake(name: &str, setting: &Setting) -> Option<String> {
    if HeaderName::try_from(name).is_err() {
        return Some(format!("`headers`: {name:?} is no name of a header"));
    }
    let lower = name.to_ascii_lowercase();
    if NOT_OURS.contains(&lower.as_str()) || lower.starts_with("proxy-") {
        return Some(format!("`headers`: `{name}` belongs to the connection"));
    }
    match setting {
        Setting::Text(text) if HeaderValue::from_str(text).is_err() => Some(format!(
            "`headers`, `{name}`: it has characters that no header can carry"
        )),
        Setting::Text(text) if text.contains(['{', '}']) => Some(format!(
            "`headers`, `{name}`: arguments cannot stand in headers; a secret is written {{ env = \"NAME\" }}"
        )),
        _ => None,
    }
}

/// The schema of a value that may also be `null`.
fn or_null(mut schema: Value) -> Value {
    let Some(entries) = schema.as_object_mut() else {
        return schema;
    };
    let names_values = [
        "enum", "const", "anyOf", "oneOf", "allOf", "not", "$ref", "if",
    ];
    if names_values.iter().all(|name| !entries.contains_key(*name)) {
        match entries.get_mut("type") {
            Some(Value::Array(kinds)) if !kinds.contains(&"null".into()) => {
                kinds.push("null".into())
            }
            Some(kind @ Value::String(_)) if *kind != "null" => *kind = json!([kind, "null"]),
            _ => {}
        }
        return schema;
    }
    let about = entries.remove("description");
    let mut either = json!({ "anyOf": [schema, {"type": "null"}] });
    if let (Some(about), Some(entries)) = (about, either.as_object_mut()) {
        entries.insert("description".to_owned(), about);
    }
    either
}
