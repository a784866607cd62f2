//! The pure parts: addresses, requests, answers.

use serde_json::{Value, json};

use super::*;
use crate::chat::{FinishReason, ResponseFormat, ToolCallDelta, ToolChoice, ToolSpec};
use crate::history::repair;
use crate::message::{Body, Content, InvalidToolCall, Message, ToolCall, Usage};
use crate::raw::Arguments;

#[test]
fn chat_completions_are_found_under_any_base_url() {
    let table = [
        (
            "https://api.openai.com/v1",
            "https://api.openai.com/v1/chat/completions",
        ),
        (
            "https://api.openai.com/v1/",
            "https://api.openai.com/v1/chat/completions",
        ),
        (
            "http://127.0.0.1:8081",
            "http://127.0.0.1:8081/v1/chat/completions",
        ),
        (
            "http://127.0.0.1:8081/",
            "http://127.0.0.1:8081/v1/chat/completions",
        ),
        (
            "https://host/openai/v1",
            "https://host/openai/v1/chat/completions",
        ),
        (
            "https://host/a/chat/completions",
            "https://host/a/chat/completions",
        ),
        (
            "https://host/d?api-version=1",
            "https://host/d/chat/completions?api-version=1",
        ),
    ];
    for (base, url) in table {
        assert_eq!(endpoint(base).unwrap().as_str(), url);
    }
    for wrong in [
        "",
        "api.openai.com",
        "ftp://host",
        "file:///x",
        "https://me:secret@host/v1",
    ] {
        let error = endpoint(wrong).unwrap_err().to_string();
        assert!(
            error.starts_with("base URL: ") && !error.contains("secret"),
            "{error}"
        );
    }
}

fn body(request: &ChatRequest, stream: bool, dialect: Dialect) -> Value {
    let bytes = encode::body(request, "m-1", stream, dialect).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn a_plain_request_says_model_messages_and_temperature_zero() {
    let request = ChatRequest::new([Message::system("be brief"), Message::human("hi")]);
    let plain = json!({
        "model": "m-1", "temperature": 0.0,
        "messages": [{ "role": "system", "content": "be brief" }, { "role": "user", "content": "hi" }],
    });
    assert_eq!(body(&request, false, Dialect::OpenAi), plain);
}

#[test]
fn a_full_request_says_all_it_was_given() {
    let call = ToolCall::new(
        "c1",
        "add",
        Arguments::parse(r#"{"n": 99999999999999999999}"#).unwrap(),
    );
    let request = ChatRequest {
        tools: vec![ToolSpec {
            name: "add".into(),
            description: "Adds.".into(),
            schema: json!({ "type": "object" }),
        }],
        tool_choice: ToolChoice::Tool("add".into()),
        max_tokens: Some(50),
        response_format: ResponseFormat::JsonObject,
        ..ChatRequest::new([
            Message::ai_calling("", vec![call]),
            Message::tool("c1", "7"),
        ])
    };
    let mut full = json!({
        "model": "m-1", "temperature": 0.0, "max_completion_tokens": 50, "stream": true,
        "stream_options": { "include_usage": true },
        "response_format": { "type": "json_object" },
        "tools": [{ "type": "function", "function": { "name": "add", "description": "Adds.", "parameters": { "type": "object" } } }],
        "tool_choice": { "type": "function", "function": { "name": "add" } },
        "messages": [
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "add", "arguments": "{\"n\": 99999999999999999999}" } }] },
            { "role": "tool", "content": "7", "tool_call_id": "c1" },
        ],
    });
    assert_eq!(body(&request, true, Dialect::OpenAi), full);
    let fields = full.as_object_mut().unwrap();
    let limit = fields.remove("max_completion_tokens").unwrap();
    fields.insert("max_tokens".into(), limit);
    assert_eq!(body(&request, true, Dialect::Compatible), full);
}

#[test]
fn a_schema_is_demanded_by_name() {
    let request = ChatRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "answer".into(),
            schema: json!({ "type": "object" }),
            strict: true,
        },
        tool_choice: ToolChoice::Required,
        temperature: None,
        ..ChatRequest::new([Message::human("hi")])
    };
    let sent = json!({
        "model": "m-1", "messages": [{ "role": "user", "content": "hi" }],
        "response_format": { "type": "json_schema", "json_schema": { "name": "answer", "schema": { "type": "object" }, "strict": true } },
    });
    assert_eq!(
        body(&request, false, Dialect::OpenAi),
        sent,
        "and no tool choice without tools"
    );
}

/// The messages of a request as sent.
fn sent(messages: &[Message]) -> Value {
    body(&ChatRequest::new(messages.to_vec()), false, Dialect::OpenAi)["messages"].take()
}

/// B10, synalinks#31: an empty list of calls, which servers refuse.
#[test]
fn an_empty_list_of_calls_is_left_out() {
    let message: Message =
        serde_json::from_value(json!({ "role": "assistant", "content": "done", "tool_calls": [] }))
            .unwrap();
    assert_eq!(
        sent(&[message]),
        json!([{ "role": "assistant", "content": "done" }])
    );
}

/// B12, n8n#36774: an answer whose content is an empty list, sent again.
#[test]
fn an_empty_list_of_blocks_is_sent_as_null_beside_calls_and_as_empty_text_alone() {
    let call = ToolCall::new("c1", "now", Arguments::default());
    let calling = Message::ai_calling(Content::Blocks(vec![]), vec![call]);
    let silent = Message::human(Content::Blocks(vec![]));
    let function = json!({ "name": "now", "arguments": "{}" });
    assert_eq!(
        sent(&[calling, silent]),
        json!([
            { "role": "assistant", "content": null, "tool_calls": [{ "id": "c1", "type": "function", "function": function }] },
            { "role": "user", "content": "" },
        ])
    );
}

/// B01, pydantic-ai#4430: a history with broken arguments can still be sent.
#[test]
fn unreadable_arguments_of_the_past_are_sent_as_valid_json() {
    let mut turn = Message::ai("");
    if let Body::Ai(ai) = &mut turn.body {
        ai.invalid_tool_calls.push(InvalidToolCall {
            id: "c1".into(),
            name: Some("book a trip!".into()),
            args: "{\"city\":\"Os".into(),
            error: "cut".into(),
        });
    }
    let sent = sent(&repair(&[turn]).messages);
    let function = &sent[0]["tool_calls"][0]["function"];
    assert_eq!(function["name"], "book_a_trip_");
    let arguments: Value = serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(
        arguments,
        json!({ "unreadable_arguments": "{\"city\":\"Os" })
    );
    assert_eq!(sent[1]["tool_call_id"], "c1");
}

#[test]
fn blocks_developer_messages_and_names_keep_their_form_and_removals_are_not_sent() {
    let messages: Vec<Message> = serde_json::from_value(json!([
        { "role": "developer", "content": "be brief" },
        { "role": "user", "content": [{ "type": "text", "text": "look" }], "name": "Ada L." },
        { "type": "remove", "id": "x" },
    ]))
    .unwrap();
    assert_eq!(
        sent(&messages),
        json!([
            { "role": "developer", "content": "be brief" },
            { "role": "user", "content": [{ "type": "text", "text": "look" }], "name": "Ada_L_" },
        ])
    );
}

fn event(data: &str) -> Chunk {
    match read_event(data).unwrap() {
        Event::Chunks(mut chunks) if chunks.len() == 1 => chunks.remove(0),
        other => panic!("{data} is no chunk but {other:?}"),
    }
}

#[test]
fn events_are_read_with_whatever_fields_they_have() {
    let delta = |index, id: Option<&str>, name: Option<&str>, arguments: &str| ToolCallDelta {
        index,
        id: id.map(Into::into),
        name: name.map(Into::into),
        arguments: arguments.into(),
        signature: None,
    };
    let calls = |tool_calls| Chunk {
        tool_calls,
        ..Chunk::default()
    };
    let table = [
        (
            r#"{"choices":[{"delta":{"role":"assistant","content":null}}]}"#,
            Chunk::default(),
        ),
        (
            r#"{"choices":[{"index":null,"delta":{"content":"hi"},"finish_reason":null}]}"#,
            Chunk::text("hi"),
        ),
        (
            r#"{"choices":[{"delta":{"content":[{"type":"text","text":"hi"}]}}]}"#,
            Chunk::text("hi"),
        ),
        (
            r#"{"choices":[{"delta":{"refusal":"no"}}]}"#,
            Chunk::text("no"),
        ),
        (
            r#"{"choices":[{"delta":{"tool_calls":[{"id":"c","function":{"name":"add"}},{"function":{"arguments":"{}"}}]}}]}"#,
            calls(vec![
                delta(None, Some("c"), Some("add"), ""),
                delta(None, None, None, "{}"),
            ]),
        ),
        (
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":{"n":1.10}}}]}}]}"#,
            calls(vec![delta(Some(1), None, None, "{\"n\":1.10}")]),
        ),
        (
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2,"audio_tokens":null},"completion_tokens_details":{"reasoning_tokens":3}}}"#,
            Chunk {
                usage: Some(Usage {
                    input_token_details: [("cache_read".into(), 2)].into(),
                    output_token_details: [("reasoning".into(), 3)].into(),
                    ..Usage::new(9, 4)
                }),
                ..Chunk::default()
            },
        ),
        (
            r#"{"model":"m-1-2026","choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
            Chunk {
                model: Some("m-1-2026".into()),
                finish_reason: Some(FinishReason::ToolCalls),
                ..Chunk::default()
            },
        ),
        (
            r#"{"ping":1}"#,
            Chunk {
                unknown_events: 1,
                ..Chunk::default()
            },
        ),
        (
            r#"{"choices":[{"index":1,"delta":{"content":"other"}}]}"#,
            Chunk {
                unknown_events: 1,
                ..Chunk::default()
            },
        ),
    ];
    for (data, chunk) in table {
        assert_eq!(event(data), chunk, "{data}");
    }
    assert_eq!(read_event(" [DONE] ").unwrap(), Event::Done);
    assert_eq!(read_event("{").unwrap_err().reason(), "llm_error:decode");
}

#[test]
fn what_a_model_thinks_is_read_under_all_its_names_and_kept_apart() {
    let table = [
        (
            r#"{"choices":[{"delta":{"content":"","reasoning_content":"hm"}}]}"#,
            Chunk::reasoning("hm"),
        ),
        (
            r#"{"choices":[{"delta":{"reasoning":"hm","reasoning_details":[{"text":"hm"}]}}]}"#,
            Chunk::reasoning("hm"),
        ),
        (
            r#"{"choices":[{"delta":{"reasoning":{"odd":1}}}]}"#,
            Chunk::default(),
        ),
        (
            r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}"#,
            Chunk::reasoning("hm"),
        ),
    ];
    for (data, chunk) in table {
        assert_eq!(event(data), chunk, "{data}");
    }
}

#[test]
fn errors_inside_a_stream_are_told_by_their_words() {
    let table = [
        (
            r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#,
            "llm_error:rate_limited",
        ),
        (
            r#"{"error":{"message":"x","code":429}}"#,
            "llm_error:rate_limited",
        ),
        (
            r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
            "llm_error:context_overflow",
        ),
        (
            r#"{"error":{"code":400,"message":"x","type":"exceed_context_size_error"}}"#,
            "llm_error:context_overflow",
        ),
        (
            r#"{"error":{"message":"x","type":"invalid_request_error"}}"#,
            "llm_error:bad_request",
        ),
        (
            r#"{"error":{"message":"x","type":"authentication_error"}}"#,
            "llm_error:auth",
        ),
        (r#"{"error":"it burns"}"#, "llm_error:server"),
        (r#"{"error":["odd"]}"#, "llm_error:server"),
    ];
    for (data, reason) in table {
        assert_eq!(read_event(data).unwrap_err().reason(), reason, "{data}");
    }
}

#[test]
fn what_a_model_thought_is_sent_to_no_other() {
    let thought: Message = serde_json::from_value(json!({ "type": "ai", "id": "m",
        "content": [{ "type": "thinking", "thinking": "hm", "signature": "s" }, { "type": "text", "text": "Yes." }],
        "additional_kwargs": { "reasoning_content": "hm" } }))
    .unwrap();
    let said = json!([{ "role": "assistant", "content": [{ "type": "text", "text": "Yes." }] }]);
    assert_eq!(sent(&[thought]), said);
}

#[test]
fn a_whole_answer_is_one_chunk() {
    let body = br#"{"id":"x","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#;
    let chunk = Chunk {
        usage: Some(Usage::new(1, 2)),
        model: Some("m".into()),
        finish_reason: Some(FinishReason::Stop),
        ..Chunk::text("hi")
    };
    assert_eq!(read_whole(body).unwrap(), chunk);
    for wrong in ["", "<html>", "{}", r#"{"choices":[]}"#, r#"{"choices":5}"#] {
        assert_eq!(
            read_whole(wrong.as_bytes()).unwrap_err().reason(),
            "llm_error:decode",
            "{wrong}"
        );
    }
}
