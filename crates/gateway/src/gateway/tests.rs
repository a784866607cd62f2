//! What the builder refuses, warns of, and shows to a model.

use super::*;
use crate::json::Json;
use crate::store::MemoryStore;
use crate::tool::Level;
use serde_json::{Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Query {
    #[expect(dead_code, reason = "only its schema matters here")]
    query: String,
}

fn dynamic(name: &str, schema: Value) -> DynTool {
    DynTool::new(name, "about", schema, async |args: Json| {
        Ok::<_, ToolError>(args)
    })
}

fn builder() -> Builder {
    let search = async |_: Query| Ok("found");
    Gateway::builder(MemoryStore::shared())
        .read("search", "Searches", search)
        .read("search_docs", "Searches", search)
}

fn faults(builder: Builder) -> Vec<String> {
    match builder.build() {
        Err(Error::Build(faults)) => faults.iter().map(ToString::to_string).collect(),
        other => panic!("not built by mistake: {other:?}"),
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let policy = Policy::new()
        .allow(["search", "serach", "srch_*", "", "write"])
        .ask("serch_docs", crate::Ask::default());
    let mut write = dynamic("write", json!({}));
    write.level = Level::Write;
    let builder = builder()
        .dynamic(dynamic("search", json!({})))
        .dynamic(dynamic("drop *", json!({})))
        .dynamic(dynamic("odd", json!({"type": "string"})))
        .dynamic(write)
        .policy(policy);
    assert_eq!(
        faults(builder),
        [
            "`search` is registered twice",
            "`drop *` is no tool name: 1 to 128 letters, digits, `_`, `-` or `.`",
            "the schema of `odd` cannot be used: arguments are an object, and it wants \"string\"",
            "the policy has an empty pattern",
            "`write` is an effect (write): `allow` is not enough, it needs `ask`",
            "the policy names `serach`, which is not registered; did you mean `search`?",
            "the policy names `srch_*`, which is not registered",
            "the policy names `serch_docs`, which is not registered; did you mean `search_docs`?",
        ]
    );
}

#[test]
fn an_effect_cannot_slip_in_under_a_pattern() {
    for level in [Level::Write, Level::Execute, Level::Delete] {
        let tool = || {
            let mut tool = dynamic("drop_table", json!({}));
            tool.level = level;
            tool
        };
        let allowed = builder().dynamic(tool()).policy(Policy::new().allow(["*"]));
        assert_eq!(
            faults(allowed),
            [format!(
                "`drop_table` is an effect ({level}): `allow` is not enough, it needs `ask`"
            )]
        );
        let denied = Policy::new().allow(["*"]).deny(["drop_*"]);
        assert!(builder().dynamic(tool()).policy(denied).build().is_ok());
        assert!(builder().dynamic(tool()).build().is_ok());
    }
}

#[test]
fn names_that_are_allowed_or_denied_in_vain_are_warnings() {
    let policy = Policy::new()
        .allow_unregistered(["serach", "search", "rm"])
        .deny(["drop_*", "seerch"]);
    let gateway = builder().policy(policy).build().unwrap();
    assert_eq!(
        gateway.warnings(),
        [
            "`serach` is allowed, but no such tool is registered: a call of it will end as tool_missing:serach; did you mean `search`?",
            "`rm` is allowed, but no such tool is registered: a call of it will end as tool_missing:rm",
            "`seerch` is denied, but no such tool is registered; did you mean `search`?",
        ]
    );
}

#[test]
fn the_catalogue_does_not_shrink_by_the_policy() {
    let gateway = builder().policy(Policy::new().deny(["*"])).build().unwrap();
    let names: Vec<_> = gateway
        .catalogue()
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, ["search", "search_docs"]);
    assert_eq!(
        serde_json::to_value(&gateway.catalogue()[0]).unwrap(),
        json!({
            "name": "search",
            "about": "Searches",
            "level": "read",
            "schema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "title": "Query",
                "type": "object",
                "properties": {"query": {"type": "string"}},
                "required": ["query"],
                "additionalProperties": false,
            },
        })
    );
}
