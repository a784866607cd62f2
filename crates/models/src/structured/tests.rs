//! Values out of models: what they are asked, what is read, what is told to one that missed.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use serde::Deserialize;

use super::*;
use crate::chat::ChunkStream;
use crate::message::Message;
use crate::scripted::ScriptedModel;

/// A scripted model that remembers what it was asked.
pub(crate) struct Asked {
    script: ScriptedModel,
    enforces: bool,
    requests: Mutex<Vec<ChatRequest>>,
}

impl Asked {
    pub(crate) fn new(contents: &[&str], enforces: bool) -> Arc<Self> {
        let lines = contents.iter().map(|content| {
            let usage = json!({ "input_tokens": 10, "output_tokens": 1 });
            json!({ "content": content, "usage": usage }).to_string()
        });
        Self::script(&lines.collect::<Vec<_>>().join("\n"), enforces)
    }

    pub(crate) fn script(lines: &str, enforces: bool) -> Arc<Self> {
        Arc::new(Self {
            script: ScriptedModel::parse(lines, "s.jsonl").unwrap(),
            enforces,
            requests: Mutex::default(),
        })
    }

    pub(crate) fn requests(&self) -> Vec<ChatRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// The kinds and texts of what the n-th request said.
    pub(crate) fn said(&self, n: usize) -> Vec<(&'static str, String)> {
        let messages = self.requests()[n].messages.clone();
        let said = messages.iter().map(|m| (m.kind(), m.text().into_owned()));
        said.collect()
    }
}

impl ChatModel for Asked {
    fn name(&self) -> &str {
        "asked"
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        self.requests.lock().unwrap().push(request.clone());
        self.script.stream(request).boxed()
    }

    fn enforces_schemas(&self) -> bool {
        self.enforces
    }
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct City {
    name: String,
    #[schemars(range(max = 40))]
    millions: Option<u32>,
}

fn basel() -> City {
    City {
        name: "Basel".into(),
        millions: None,
    }
}

fn question() -> ChatRequest {
    ChatRequest::new([Message::human("A city?")])
}

const SCHEMA: &str = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"millions":{"format":"uint32","maximum":40,"minimum":0,"type":["integer","null"]},"name":{"type":"string"}},"required":["name"],"title":"City","type":"object"}"#;

fn instructions() -> String {
    format!(
        "Write one JSON value as your whole answer, with no words around it and no code fence. \
         It has to match this JSON Schema:\n{SCHEMA}"
    )
}

#[tokio::test]
async fn a_model_that_enforces_schemas_is_asked_to() {
    let model = Asked::new(&[r#"{"name":"Basel","millions":null}"#], true);
    let answered = model.with_structured_output::<City>().unwrap();
    let answered = answered.ask(&question()).await.unwrap();
    assert_eq!((answered.value, answered.tries), (basel(), 1));
    assert_eq!(answered.usage, Some(Usage::new(10, 1)));
    let [request] = &model.requests()[..] else {
        panic!("one request")
    };
    assert_eq!(model.said(0), [("human", "A city?".to_owned())]);
    assert_eq!(request.tool_choice, ToolChoice::None);
    assert_eq!(
        request.response_format,
        ResponseFormat::JsonSchema {
            name: "City".into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string" },
                    "millions": { "type": ["integer", "null"], "minimum": 0, "maximum": 40 },
                },
                "required": ["millions", "name"],
                "additionalProperties": false,
            }),
            strict: true,
        }
    );
}

#[tokio::test]
async fn any_other_model_reads_the_schema_in_its_instructions() {
    let model = Asked::new(&["Here:\n```json\n{\"name\": \"Basel\"}\n```"], false);
    let cities = model.with_structured_output::<City>().unwrap();
    let request = ChatRequest::new([Message::system("Be brief."), Message::human("A city?")]);
    assert_eq!(cities.ask(&request).await.unwrap().value, basel());
    assert_eq!(
        model.said(0),
        [
            ("system", format!("Be brief.\n\n{}", instructions())),
            ("human", "A city?".to_owned())
        ]
    );
    assert_eq!(model.requests()[0].response_format, ResponseFormat::Text);
}

#[tokio::test]
async fn a_miss_is_told_and_all_tries_are_paid_for() {
    let missed = r#"{"name": 5, "millions": 50}"#;
    let model = Asked::new(&["Basel.", missed, r#"{"name": "Basel"}"#], false);
    let cities = model.with_structured_output::<City>().unwrap();
    let answered = cities.ask(&question()).await.unwrap();
    assert_eq!((answered.value, answered.tries), (basel(), 3));
    assert_eq!(answered.usage, Some(Usage::new(30, 3)));
    assert_eq!(answered.reply.attempts, 3);
    let told = |problem: &str| {
        let text = "This answer cannot be used: PROBLEM. Write it again without that mistake, as JSON alone.";
        ("human", text.replace("PROBLEM", problem))
    };
    assert_eq!(
        model.said(2),
        [
            ("system", instructions()),
            ("human", "A city?".to_owned()),
            ("ai", "Basel.".to_owned()),
            told("there is no JSON in it"),
            ("ai", missed.to_owned()),
            told(
                "at /millions: 50 is greater than the maximum of 40; at /name: 5 is not of type \"string\""
            ),
        ]
    );
}

#[tokio::test]
async fn a_model_that_never_fits_is_an_error_with_its_words() {
    let model = Asked::new(&["one", "two", "three"], true);
    let cities = model.with_structured_output::<City>().unwrap().tries(2);
    let error = cities.ask(&question()).await.unwrap_err();
    assert_eq!(
        error,
        ModelError::Mismatch {
            problem: "there is no JSON in it".into(),
            raw: "two".into(),
            tries: 2,
            usage: Some(Box::new(Usage::new(20, 2))),
        }
    );
    assert_eq!(error.reason(), "llm_error:decode");
    assert_eq!(
        error.to_string(),
        "the model's answer is not of the form asked for, after 2 tries: there is no JSON in it"
    );
    // One that ignored the demand reads the schema with what it did wrong.
    assert!(
        model.said(1)[2]
            .1
            .ends_with(&format!("as JSON alone.\n\n{}", instructions()))
    );
}

#[tokio::test]
async fn a_server_that_refuses_the_demand_reads_the_schema_instead() {
    let lines = r#"{"error":{"kind":"http","status":400,"message":"response_format?"}}
{"content":"{\"name\":\"Basel\"}"}"#;
    let model = Asked::script(lines, true);
    let cities = model.with_structured_output::<City>().unwrap();
    assert_eq!(cities.ask(&question()).await.unwrap().value, basel());
    assert_eq!(model.said(1)[0], ("system", instructions()));
    assert_eq!(model.requests()[1].response_format, ResponseFormat::Text);
}

#[tokio::test]
async fn a_call_that_fails_is_not_asked_again() {
    let model = Asked::script(r#"{"error":{"kind":"http","status":401}}"#, true);
    let cities = model.with_structured_output::<City>().unwrap();
    let error = cities.ask(&question()).await.unwrap_err();
    assert_eq!(
        (error.reason(), model.requests().len()),
        ("llm_error:auth", 1)
    );
}

#[tokio::test]
async fn a_type_that_is_no_object_stands_inside_one() {
    let model = Asked::new(&[r#"{"value":[{"name":"Basel"},{"name":"Bern"}]}"#], true);
    let cities = model.with_structured_output::<Vec<City>>().unwrap();
    let found = cities.ask(&question()).await.unwrap().value;
    assert_eq!(found.len(), 2);
    let ResponseFormat::JsonSchema { name, schema, .. } = &model.requests()[0].response_format
    else {
        panic!("a schema")
    };
    assert_eq!(name, "Array_of_City");
    assert_eq!(schema["properties"]["value"]["type"], "array");
    assert_eq!(schema["$defs"]["City"]["additionalProperties"], false);
}

#[tokio::test]
async fn a_type_that_holds_itself_is_found_where_references_look_for_it() {
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    enum Tree {
        Leaf(i64),
        Node(Vec<Tree>),
    }
    let model = Asked::new(&[r#"{"value":{"Node":[{"Leaf":1},{"Node":[]}]}}"#], true);
    let trees = model.with_structured_output::<Tree>().unwrap();
    let found = trees.ask(&question()).await.unwrap().value;
    assert_eq!(found, Tree::Node(vec![Tree::Leaf(1), Tree::Node(vec![])]));
    let ResponseFormat::JsonSchema { schema, strict, .. } = &model.requests()[0].response_format
    else {
        panic!("a schema")
    };
    assert!(strict);
    assert_eq!(
        schema["properties"]["value"],
        json!({ "$ref": "#/$defs/value" })
    );
    let items = schema
        .pointer("/$defs/value/anyOf/1/properties/Node/items")
        .unwrap();
    assert_eq!(*items, json!({ "$ref": "#/$defs/value" }));
}

#[tokio::test]
async fn a_value_keeps_its_digits_and_its_own_nulls() {
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Deal {
        id: u128,
        #[serde(default)]
        fee: u8,
        note: Option<String>,
    }
    let text = r#"{"id":340282366920938463463374607431768211455,"fee":null,"note":null}"#;
    let plain = text.replace("\"fee\":null,", "");
    let deal = |id| Deal {
        id,
        fee: 0,
        note: None,
    };
    let model = Asked::new(&[&plain], true);
    let deals = model.with_structured_output::<Deal>().unwrap();
    assert_eq!(deals.ask(&question()).await.unwrap().value, deal(u128::MAX));
    // `fee` may be absent but not null: null is what strict enforcement makes of absent.
    let model = Asked::new(
        &[&text.replace("340282366920938463463374607431768211455", "7")],
        true,
    );
    let deals = model.with_structured_output::<Deal>().unwrap();
    assert_eq!(deals.ask(&question()).await.unwrap().value, deal(7));
}

#[tokio::test]
async fn a_schema_from_outside_serves_too() {
    let schema = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let model = Asked::new(&[r#"{"a": "x"}"#, r#"{"a": 1}"#], true);
    let counts = Structured::<_, Value>::new(&model, "my counts!", schema.clone()).unwrap();
    let answered = counts.ask(&question()).await.unwrap();
    assert_eq!((answered.value, answered.tries), (json!({ "a": 1 }), 2));
    assert_eq!(
        model.requests()[0].response_format,
        ResponseFormat::JsonSchema {
            name: "my_counts_".into(),
            schema,
            strict: false,
        }
    );
    let wrong =
        Structured::<_, Value>::new(&model, "n", json!({ "type": "object", "required": 5 }));
    let told = wrong.err().unwrap().to_string();
    assert!(told.starts_with("schema of an answer: "), "{told}");
}
