//! Schemas and typed decoding: what reaches a tool, and what a tool cannot do to us.

use super::schema::Schema;
use super::*;
use crate::call::ToolCall;
use crate::json::Bounds;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn args(text: &str) -> Json {
    Json::read(text, Bounds::default()).unwrap()
}

fn tool<A, O, Fut>(run: impl Fn(A) -> Fut + Send + Sync + 'static) -> Registered
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    O: IntoOutput + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
{
    Named::function("tool".into(), "about".into(), run)
        .register()
        .unwrap()
}

/// What the schema or the tool says to the arguments.
async fn call(tool: &Registered, text: &str) -> Result<String, ToolError> {
    let call = ToolCall::native("tool", text);
    tool.check_call(&call).map_err(ToolError::bad_args)?;
    match tool.run(&call, &ToolContext::nowhere()).await {
        Tried::Output(output) => Ok(output.content),
        Tried::Failed(error) => Err(error),
        Tried::Open(_) => Err(ToolError::unfinished()),
    }
}

#[derive(Deserialize, JsonSchema)]
struct User {
    user_id: i64,
}

#[tokio::test]
async fn the_schema_decides_where_python_was_loose() {
    let tool = tool(async |user: User| Ok(user.user_id));
    assert_eq!(call(&tool, r#"{"user_id":42}"#).await.unwrap(), "42");
    // To JSON Schema these are the integer 42, as they were the same user to Python.
    assert_eq!(call(&tool, r#"{"user_id":42.0}"#).await.unwrap(), "42");
    assert_eq!(call(&tool, r#"{"user_id":4.2e1}"#).await.unwrap(), "42");
    assert_eq!(call(&tool, r#"{"user_id":-0}"#).await.unwrap(), "0");
    for wrong in [
        r#"{"user_id":"42"}"#,
        r#"{"user_id":true}"#,
        r#"{"user_id":[42]}"#,
        r#"{"user_id":null}"#,
        r#"{"user_id":42.5}"#,
        r#"{"user_id":1e999}"#,
        r#"{"user_id":99999999999999999999}"#,
        r#"{"user_id":42,"more":1}"#,
        r#"{"userid":42}"#,
        "{}",
    ] {
        assert!(call(&tool, wrong).await.unwrap_err().bad_args, "{wrong}");
    }
}

#[test]
fn a_mistake_is_told_with_its_place_and_in_bounds() {
    let schema =
        json!({"properties": {"a": {"items": {"type": "integer"}}, "b": {"type": "string"}}});
    let schema = Schema::compile(&schema).unwrap();
    assert_eq!(
        schema.check(&args(r#"{"a":[1,"x"],"b":2}"#)).unwrap_err(),
        r#"at /a/1: "x" is not of type "integer"; at /b: 2 is not of type "string""#
    );
    let mistakes = [
        (
            json!({"properties": {"city": {}, "days": {}}, "additionalProperties": false}),
            r#"{"citty":1,"x":2}"#,
            "there is no argument `citty`, `x`; there are `city`, `days`; the closest is `city`",
        ),
        (
            json!({"properties": {}, "additionalProperties": false}),
            r#"{"x":2}"#,
            "there is no argument `x`; it takes none",
        ),
        (
            json!({"properties": {"city": {"type": "string", "description": "Where."}, "days": {}},
                "required": ["city", "days", "more"]}),
            "{}",
            "the argument `city` is missing (string): Where.; the argument `days` is missing; \
             the argument `more` is missing",
        ),
    ];
    for (schema, given, expected) in mistakes {
        let said = Schema::compile(&schema).unwrap().check(&args(given));
        assert_eq!(said.unwrap_err(), expected);
    }
    let many = format!(
        r#"{{"a":[{}]}}"#,
        vec![format!("\"{}\"", "x".repeat(1_000)); 100].join(",")
    );
    assert!(schema.check(&args(&many)).unwrap_err().len() < 1_200);
}

#[derive(Deserialize, JsonSchema)]
struct Exact {
    signed: i128,
    unsigned: u128,
    float: f64,
    #[schemars(with = "Value")]
    raw: Box<serde_json::value::RawValue>,
}

#[tokio::test]
async fn every_digit_reaches_the_tool() {
    let text = r#"{"signed":-170141183460469231731687303715884105728,"unsigned":340282366920938463463374607431768211455,"float":0.1000000000000000055511151231257827,"raw":12345678901234567890123456789012345678901234567890.10}"#;
    let typed = tool(async |exact: Exact| {
        Ok((
            exact.signed.to_string(),
            exact.unsigned.to_string(),
            exact.float,
            exact.raw.get().to_owned(),
        ))
    });
    assert_eq!(
        call(&typed, text).await.unwrap(),
        r#"["-170141183460469231731687303715884105728","340282366920938463463374607431768211455",0.1,"12345678901234567890123456789012345678901234567890.10"]"#
    );
    let dynamic = DynTool::new("dynamic", "", json!({}), async |args: Json| {
        Ok::<_, ToolError>(args.to_string())
    });
    let dynamic = Named::dynamic(dynamic).register().unwrap();
    let output = call(&dynamic, text).await.unwrap();
    assert_eq!(serde_json::from_str::<String>(&output).unwrap(), text);
}

#[tokio::test]
async fn open_argument_types_stay_open_and_closed_ones_are_closed() {
    let open = tool(async |map: BTreeMap<String, i32>| Ok(map.len()));
    assert_eq!(call(&open, r#"{"a":1,"b":2}"#).await.unwrap(), "2");
    #[derive(Deserialize, JsonSchema)]
    struct Rest {
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }
    let flat = tool(async |rest: Rest| Ok(rest.rest.len()));
    assert_eq!(call(&flat, r#"{"a":1}"#).await.unwrap(), "1");
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}
    let nothing = tool(async |_: Nothing| Ok(()));
    assert_eq!(call(&nothing, "{}").await.unwrap(), "null");
    assert!(call(&nothing, r#"{"a":1}"#).await.unwrap_err().bad_args);
}

#[tokio::test]
async fn a_panic_is_a_failure_wherever_it_happens() {
    #[expect(unreachable_code, reason = "it panics before it can answer")]
    let early = tool(|_: User| {
        panic!("a secret");
        std::future::ready(Ok(()))
    });
    let late = tool(async |user: User| {
        tokio::task::yield_now().await;
        Ok(u8::try_from(user.user_id - 2).unwrap())
    });
    for tool in [early, late] {
        assert_eq!(
            call(&tool, r#"{"user_id":1}"#).await.unwrap_err(),
            ToolError::new("it broke off with an internal error")
        );
    }
}

#[test]
fn schemas_from_strangers_are_bounded() {
    let why = |schema: Value| Schema::compile(&schema).err().unwrap_or_default();
    let mut deep = json!({"type": "object"});
    for _ in 0..100 {
        deep = json!({"properties": {"a": deep}});
    }
    assert_eq!(why(deep), "it is too large");
    assert_eq!(why(json!({"enum": vec![0; 30_000]})), "it is too large");
    // Nothing is fetched, and no pattern can backtrack.
    assert_ne!(why(json!({"$ref": "https://example.org/schema.json"})), "");
    assert_ne!(why(json!({"properties": {"a": {"pattern": "(?=a)b"}}})), "");
    assert_ne!(why(json!({"properties": {"a": {"type": "int"}}})), "");
    let slow = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
    let text = format!(r#"{{"a":"{}b"}}"#, "a".repeat(50_000));
    assert!(Schema::compile(&slow).unwrap().check(&args(&text)).is_err());
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    let list = json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}},
        "additionalProperties": false,
    });
    let schema = Schema::compile(&list).unwrap();
    let deep = format!("{}{}{}", r#"{"next":"#.repeat(50), "{}", "}".repeat(50));
    assert_eq!(schema.check(&args(&deep)), Ok(()));
    let endless = Schema::compile(&json!({"$ref": "#"}));
    let _ = endless.map(|schema| schema.check(&args("{}")));
}

#[test]
fn a_schema_that_multiplies_its_own_work_is_not_followed_for_ever() {
    let nested = |n: usize| {
        let text = format!("{}{}{}", r#"{"a":"#.repeat(n), "{}", "}".repeat(n));
        args(&text)
    };
    let twice = |word: &str| json!({ word: [{"$ref": "#"}, {"$ref": "#"}] });
    let laughs = (1..40).fold(json!({"d0": {"type": "object"}}), |mut all, n| {
        let below = format!("#/$defs/d{}", n - 1);
        all[format!("d{n}")] = json!({"allOf": [{"$ref": below}, {"$ref": below}]});
        all
    });
    let many: Vec<_> = (0..9_000).map(|n| json!({"const": n})).collect();
    let table = [
        (json!({"properties": {"a": twice("allOf")}}), 60, 3),
        (json!({"properties": {"a": twice("anyOf")}}), 60, 3),
        (json!({"additionalProperties": twice("oneOf")}), 60, 3),
        (
            json!({"$anchor": "x", "properties": {"a": {"allOf": [{"$ref": "#x"}, {"$ref": "#x"}]}}}),
            60,
            3,
        ),
        (
            json!({"properties": {"a": {"$ref": "#"}}, "unevaluatedProperties": false}),
            60,
            3,
        ),
    ];
    let refusal = "they are nested too deeply, or too many, for this schema";
    for (schema, deep, flat) in table {
        let compiled = Schema::compile(&schema).unwrap();
        assert_eq!(
            compiled.check(&nested(deep)),
            Err(refusal.to_owned()),
            "{schema}"
        );
        assert_ne!(
            compiled.check(&nested(flat)),
            Err(refusal.to_owned()),
            "{schema}"
        );
    }
    let laughing = Schema::compile(&json!({"$ref": "#/$defs/d39", "$defs": laughs})).unwrap();
    assert_eq!(laughing.check(&nested(0)), Err(refusal.to_owned()));
    let wide = Schema::compile(&json!({"properties": {"l": {"items": {"anyOf": many}}}})).unwrap();
    let list = |n: usize| args(&format!(r#"{{"l":[{}]}}"#, vec!["1"; n].join(",")));
    assert_eq!(wide.check(&list(10_000)), Err(refusal.to_owned()));
    assert_eq!(wide.check(&list(10)), Ok(()));
    let own = json!({"$defs": {"x": {"$id": "https://example.org/x"}}});
    assert_eq!(
        Schema::compile(&own).err().unwrap(),
        "a part of it has an `$id` of its own"
    );
}

#[test]
fn an_error_becomes_a_tool_error_by_the_question_mark() {
    fn parse(text: &str) -> Result<u8, ToolError> {
        Ok(text.parse()?)
    }
    assert_eq!(
        parse("x").unwrap_err(),
        ToolError::new("invalid digit found in string")
    );
}
