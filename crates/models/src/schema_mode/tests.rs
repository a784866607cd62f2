//! A model without tool calls, driven through the mode.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use serde_json::json;

use super::*;
use crate::chat::{FinishReason, ToolSpec};
use crate::message::{Message, Usage};
use crate::structured::tests::Asked;

fn tools() -> Vec<ToolSpec> {
    vec![ToolSpec {
        name: "add".into(),
        description: "Adds.".into(),
        schema: json!({ "type": "object", "properties": { "n": { "type": "integer" } } }),
    }]
}

fn request() -> ChatRequest {
    ChatRequest {
        tools: tools(),
        ..ChatRequest::new([Message::human("Add 1")])
    }
}

#[tokio::test]
async fn a_step_becomes_a_native_call_with_its_exact_arguments() {
    let text = r#"{"action": "add", "arguments": {"n": 10000000000000000000001}}"#;
    let inner = Asked::new(&[text], true);
    let model = SchemaMode::new(inner.clone());
    let reply = model.complete(&request()).await.unwrap();
    let [call] = reply.message.tool_calls() else {
        panic!("one call")
    };
    assert_eq!(call.id, format!("call-{}-0", reply.message.id));
    assert_eq!(
        (call.name.as_str(), call.args.as_str()),
        ("add", r#"{"n": 10000000000000000000001}"#)
    );
    assert_eq!(reply.message.text(), "");
    assert_eq!(reply.finish_reason, Some(FinishReason::ToolCalls));
    assert_eq!((reply.usage, reply.attempts), (Some(Usage::new(10, 1)), 1));
    let asked = &inner.requests()[0];
    assert!(asked.tools.is_empty());
    assert_eq!(asked.max_tokens, Some(MAX_TOKENS));
    let ResponseFormat::JsonSchema {
        name,
        schema,
        strict,
    } = &asked.response_format
    else {
        panic!("a schema")
    };
    assert_eq!((name.as_str(), *strict), ("next_step", false));
    assert_eq!(
        schema["oneOf"][0]["properties"]["action"],
        json!({ "const": "add" })
    );
    let said = inner.said(0);
    assert_eq!((said[0].0, said.len()), ("system", 2));
    assert!(said[0].1.starts_with("You act in steps."));
}

#[tokio::test]
async fn the_final_answer_is_the_answers_text() {
    let model = SchemaMode::new(Asked::new(
        &[r#"{"action":"final_answer","answer":"It is 2."}"#],
        true,
    ));
    let reply = model.complete(&request()).await.unwrap();
    assert_eq!(reply.message.text(), "It is 2.");
    assert!(reply.message.tool_calls().is_empty());
    assert_eq!(reply.finish_reason, Some(FinishReason::Stop));
}

#[tokio::test]
async fn a_demanded_form_comes_as_the_json_of_the_answer() {
    let inner = Asked::new(&[r#"{"action":"final_answer","answer":{"n": 2}}"#], true);
    let request = ChatRequest {
        response_format: ResponseFormat::JsonObject,
        ..request()
    };
    let reply = SchemaMode::new(inner).complete(&request).await.unwrap();
    assert_eq!(reply.message.text(), r#"{"n": 2}"#);
}

#[tokio::test]
async fn what_is_no_step_is_asked_for_again_and_then_an_error() {
    let table = [
        ("Hm.", "there is no JSON in it"),
        ("[]", "it is no JSON object"),
        ("{}", "it has no `action`"),
        (r#"{"action": 5}"#, "its `action` is no text"),
        (r#"{"action": "final_answer"}"#, "it has no `answer`"),
        (
            r#"{"action": "final_answer", "answer": " "}"#,
            "its `answer` is empty",
        ),
        (
            r#"{"action": "final_answer", "answer": 5}"#,
            "its `answer` is no text",
        ),
    ];
    for (text, problem) in table {
        let good = r#"{"action":"final_answer","answer":"2"}"#;
        let inner = Asked::new(&[text, good], false);
        let reply = SchemaMode::new(inner.clone())
            .complete(&request())
            .await
            .unwrap();
        assert_eq!((reply.attempts, reply.usage), (2, Some(Usage::new(20, 2))));
        let told = inner.said(1).pop().unwrap().1;
        assert!(
            told.starts_with(&format!("This answer cannot be used: {problem}. ")),
            "{told}"
        );

        let error = SchemaMode::new(Asked::new(&[text; 3], false))
            .complete(&request())
            .await;
        let error = error.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the model's answer is not of the form asked for, after 3 tries: {problem}")
        );
    }
}

#[tokio::test]
async fn a_server_that_refuses_the_form_is_asked_without_it() {
    let lines = r#"{"error":{"kind":"http","status":400,"message":"response_format?"}}
{"content":"{\"action\":\"add\",\"arguments\":{\"n\":1}}"}"#;
    let inner = Asked::script(lines, true);
    let model = SchemaMode::new(inner.clone());
    let reply = model.complete(&request()).await.unwrap();
    assert_eq!(reply.message.tool_calls()[0].name, "add");
    assert_eq!(inner.requests()[1].response_format, ResponseFormat::Text);
    assert_eq!(inner.said(0), inner.said(1));
}

#[tokio::test]
async fn unknown_tools_and_wrong_arguments_are_for_whoever_runs_them() {
    let contents = [r#"{"action":"sub"}"#, r#"{"action":"add","arguments":[1]}"#];
    let model = SchemaMode::new(Asked::new(&contents, false));
    let unknown = model.complete(&request()).await.unwrap().message;
    assert_eq!(
        (
            unknown.tool_calls()[0].name.as_str(),
            unknown.tool_calls()[0].args.as_str()
        ),
        ("sub", "{}")
    );
    let wrong = model.complete(&request()).await.unwrap().message;
    assert_eq!(wrong.invalid_tool_calls()[0].args, "[1]");
}

#[tokio::test]
async fn without_tools_the_models_own_pieces_come_through() {
    let inner = Asked::new(&["one two three"; 2], true);
    let model = SchemaMode::new(inner.clone());
    let plain = ChatRequest::new([Message::human("Count")]);
    assert_eq!(model.stream(&plain).count().await, 4);
    assert_eq!(inner.said(0), [("human", "Count".to_owned())]);
    // Calls of the past are text for it all the same.
    let after = ChatRequest {
        tool_choice: ToolChoice::None,
        ..ChatRequest {
            messages: vec![Message::human("Count"), Message::tool("1", "three")],
            ..request()
        }
    };
    assert_eq!(model.stream(&after).count().await, 4);
    assert_eq!(
        inner.said(1),
        [("human", "Count\n\nResult of the action: three".to_owned())]
    );
    assert!(inner.requests()[1].tools.is_empty());
}

#[test]
fn a_mode_is_read_and_shown() {
    for (word, mode) in [("native", ToolMode::Native), ("schema", ToolMode::Schema)] {
        assert_eq!(word.parse::<ToolMode>().unwrap(), mode);
        assert_eq!(mode.to_string(), word);
        assert_eq!(json!(mode), json!(word));
    }
    assert_eq!(
        "json".parse::<ToolMode>().unwrap_err().to_string(),
        "unknown tool mode `json` (there are: native, schema)"
    );
}
