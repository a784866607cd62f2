//! Requests as Anthropic's server wants them, and its answers.

use serde_json::{Value, json};

use super::*;
use crate::chat::{Assembler, ChatReply, FinishReason, ResponseFormat, ToolChoice, ToolSpec};
use crate::http::Event;
use crate::message::{Message, ToolCall, Usage};
use crate::raw::Arguments;

#[test]
fn messages_are_found_under_any_base_url() {
    let table = [
        (
            "https://api.anthropic.com",
            "https://api.anthropic.com/v1/messages",
        ),
        ("http://127.0.0.1:1/", "http://127.0.0.1:1/v1/messages"),
        (
            "https://host/anthropic",
            "https://host/anthropic/v1/messages",
        ),
        (
            "https://host/anthropic/v1/",
            "https://host/anthropic/v1/messages",
        ),
        ("https://host/a/messages?x=1", "https://host/a/messages?x=1"),
    ];
    for (base, url) in table {
        assert_eq!(endpoint(base).unwrap().as_str(), url);
    }
}

fn body(request: &ChatRequest) -> Value {
    let bytes = encode::body(request, "c-1", Wire::Whole).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// The messages of a request as sent.
fn sent(messages: &[Message]) -> Value {
    body(&ChatRequest::new(messages.to_vec()))["messages"].take()
}

fn call(id: &str, name: &str, args: &str) -> ToolCall {
    ToolCall::new(id, name, Arguments::parse(args).unwrap())
}

#[test]
fn instructions_stand_apart_wherever_they_stood() {
    let request = ChatRequest::new([
        Message::system("be brief"),
        Message::human("hi"),
        Message::system("be kind"),
    ]);
    let plain = json!({
        "model": "c-1", "max_tokens": 8192, "temperature": 0.0, "system": "be brief\n\nbe kind",
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "hi" }] }],
    });
    assert_eq!(body(&request), plain);
}

#[test]
fn a_full_request_says_all_it_was_given() {
    let tool = ToolSpec {
        name: "add".into(),
        description: "Adds.".into(),
        schema: json!({ "properties": { "n": { "type": "integer" } } }),
    };
    let base = ChatRequest {
        tools: vec![tool],
        max_tokens: Some(50),
        temperature: None,
        ..ChatRequest::new([Message::human("hi")])
    };
    let table = [
        (ToolChoice::Auto, Value::Null),
        (ToolChoice::None, json!({ "type": "none" })),
        (ToolChoice::Required, json!({ "type": "any" })),
        (
            ToolChoice::Tool("add".into()),
            json!({ "type": "tool", "name": "add" }),
        ),
    ];
    for (tool_choice, choice) in table {
        let sent = body(&ChatRequest {
            tool_choice,
            ..base.clone()
        });
        assert_eq!(sent["tool_choice"], choice);
        assert_eq!(
            sent["tools"],
            json!([{ "name": "add", "description": "Adds.",
                "input_schema": { "type": "object", "properties": { "n": { "type": "integer" } } } }])
        );
        assert_eq!(
            (&sent["max_tokens"], &sent["temperature"]),
            (&json!(50), &Value::Null)
        );
    }
}

#[test]
fn turns_alternate_and_results_come_first_in_the_turn_behind_their_calls() {
    let messages = [
        Message::human("one"),
        Message::human("two"),
        Message::ai_calling(
            "",
            vec![call("a", "add", "{\"n\":1}"), call("b.1", "sub it", "{}")],
        ),
        Message::tool("a", "7"),
        Message::tool_error("b.1", ""),
        Message::human("and?"),
        Message::ai(" "),
    ];
    let text = |text: &str| json!({ "type": "text", "text": text });
    assert_eq!(
        sent(&messages),
        json!([
            { "role": "user", "content": [text("one"), text("two")] },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "a", "name": "add", "input": { "n": 1 } },
                { "type": "tool_use", "id": "idb_2e_1", "name": "sub_it", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": [text("7")] },
                { "type": "tool_result", "tool_use_id": "idb_2e_1", "is_error": true },
                text("and?"),
            ] },
        ])
    );
}

#[test]
fn arguments_of_the_past_keep_every_digit() {
    let args = "{\"id\":251229204212100000123.10}";
    let request = ChatRequest::new([Message::ai_calling("", vec![call("a", "pay", args)])]);
    let bytes = encode::body(&request, "c-1", Wire::Whole).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains(args), "{text}");
}

#[test]
fn a_history_with_calls_is_sent_with_the_tools_it_speaks_of() {
    let request = ChatRequest::new([
        Message::ai_calling("", vec![call("a", "add", "{}"), call("b", "add", "{}")]),
        Message::tool("a", "1"),
        Message::tool("b", "2"),
    ]);
    let sent = body(&request);
    assert_eq!(
        sent["tools"],
        json!([{ "name": "add", "input_schema": { "type": "object" } }])
    );
    assert_eq!(sent["tool_choice"], json!({ "type": "none" }));
}

#[test]
fn a_demanded_schema_is_closed_and_a_json_object_is_asked_for_in_words() {
    let schema = json!({ "$schema": "x", "type": "object", "properties": {
        "minimum": { "type": "integer", "minimum": 1 },
        "list": { "type": "array", "maxItems": 3, "items": { "type": "object", "enum": [{ "maximum": 1 }] } } } });
    let request = |response_format| ChatRequest {
        response_format,
        ..ChatRequest::new([Message::human("hi")])
    };
    let sent = body(&request(ResponseFormat::JsonSchema {
        name: "x".into(),
        schema,
        strict: true,
    }));
    let closed = json!({ "type": "object", "additionalProperties": false, "properties": {
        "minimum": { "type": "integer" },
        "list": { "type": "array",
            "items": { "type": "object", "additionalProperties": false, "enum": [{ "maximum": 1 }] } } } });
    assert_eq!(
        sent["output_config"],
        json!({ "format": { "type": "json_schema", "schema": closed } })
    );
    let sent = body(&request(ResponseFormat::JsonObject));
    assert_eq!(
        sent["system"],
        "Answer with one JSON object and with nothing before or after it."
    );
}

#[test]
fn pictures_of_any_form_are_sent_and_unknown_blocks_refused() {
    let message = |blocks: Value| -> Message {
        serde_json::from_value(json!({ "type": "human", "content": blocks })).unwrap()
    };
    let data = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "QUJD" } });
    let forms = [
        json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,QUJD" } }),
        json!({ "type": "image", "base64": "QUJD", "mime_type": "image/png" }),
        json!({ "type": "image", "source_type": "base64", "data": "QUJD", "mime_type": "image/png" }),
        data.clone(),
    ];
    for form in forms {
        assert_eq!(
            sent(&[message(json!([form]))])[0]["content"],
            json!([data]),
            "{form}"
        );
    }
    let linked = message(json!(["look", { "type": "image", "url": "https://host/x.png" }]));
    assert_eq!(
        sent(&[linked])[0]["content"],
        json!([{ "type": "text", "text": "look" },
            { "type": "image", "source": { "type": "url", "url": "https://host/x.png" } }])
    );
    let odd = ChatRequest::new([message(json!([{ "type": "hologram" }]))]);
    let error = encode::body(&odd, "c-1", Wire::Whole).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the model refused the request: a content block of type `hologram` cannot be sent to anthropic: no known form"
    );
}

/// The answer of a stream of events.
fn streamed(events: &[Value]) -> Result<ChatReply, ModelError> {
    let mut reader = Reader::default();
    let mut assembler = Assembler::with_id("m");
    let provider = Some(PROVIDER.to_owned());
    assembler.push(Chunk {
        provider,
        ..Chunk::default()
    })?;
    for event in events {
        if let Event::Chunks(chunks) = reader.read(&event.to_string())? {
            for chunk in chunks {
                assembler.push(chunk)?;
            }
        }
    }
    assembler.finish()
}

fn delta(index: u32, delta: Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn start(index: u32, block: Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

#[test]
fn a_streamed_answer_is_text_thoughts_and_calls_however_its_blocks_interleave() {
    let events = [
        json!({ "type": "message_start", "message": { "model": "c-1-2026", "content": [],
            "usage": { "input_tokens": 10, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2, "output_tokens": 1 } } }),
        json!({ "type": "ping" }),
        start(
            0,
            json!({ "type": "thinking", "thinking": "", "signature": "" }),
        ),
        delta(0, json!({ "type": "thinking_delta", "thinking": "hm, " })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "well" })),
        delta(0, json!({ "type": "signature_delta", "signature": "sig-" })),
        delta(0, json!({ "type": "signature_delta", "signature": "1" })),
        json!({ "type": "content_block_stop", "index": 0 }),
        start(1, json!({ "type": "text", "text": "" })),
        delta(1, json!({ "type": "text_delta", "text": "Grüße" })),
        start(2, json!({ "type": "redacted_thinking", "data": "xyz" })),
        start(
            3,
            json!({ "type": "tool_use", "id": "t1", "name": "pay", "input": {} }),
        ),
        start(
            4,
            json!({ "type": "tool_use", "id": "t2", "name": "now", "input": { "whole": 1 } }),
        ),
        delta(3, json!({ "type": "input_json_delta", "partial_json": "" })),
        delta(
            3,
            json!({ "type": "input_json_delta", "partial_json": "{\"id\": 2512292042121" }),
        ),
        json!({ "type": "content_block_stop", "index": 4 }),
        delta(
            3,
            json!({ "type": "input_json_delta", "partial_json": "000001}" }),
        ),
        json!({ "type": "content_block_stop", "index": 3 }),
        json!({ "type": "news" }),
        start(5, json!({ "type": "server_tool_use", "id": "s" })),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" },
            "usage": { "output_tokens": 20, "output_tokens_details": { "thinking_tokens": 5 } } }),
        json!({ "type": "message_stop" }),
    ];
    let reply = streamed(&events).unwrap();
    assert_eq!(reply.message.text(), "Grüße");
    assert_eq!(reply.message.reasoning().as_deref(), Some("hm, well"));
    let calls = reply.message.tool_calls();
    assert_eq!(
        calls,
        [
            call("t1", "pay", "{\"id\": 2512292042121000001}"),
            call("t2", "now", "{\"whole\":1}")
        ]
    );
    let usage = Usage {
        input_token_details: [("cache_creation".into(), 2), ("cache_read".into(), 4)].into(),
        output_token_details: [("reasoning".into(), 5)].into(),
        ..Usage::new(16, 20)
    };
    assert_eq!(reply.usage, Some(usage));
    assert_eq!(reply.finish_reason, Some(FinishReason::ToolCalls));
    assert_eq!(reply.unknown_events, 2);
    assert_eq!(reply.model.as_deref(), Some("c-1-2026"));
    // It goes back as it came, also from a checkpoint.
    let kept = serde_json::to_string(&reply.message).unwrap();
    let again: Message = serde_json::from_str(&kept).unwrap();
    assert_eq!(
        sent(std::slice::from_ref(&again))[0]["content"],
        json!([
            { "type": "thinking", "thinking": "hm, well", "signature": "sig-1" },
            { "type": "text", "text": "Grüße" },
            { "type": "redacted_thinking", "data": "xyz" },
            { "type": "tool_use", "id": "t1", "name": "pay", "input": { "id": 2_512_292_042_121_000_001_i64 } },
            { "type": "tool_use", "id": "t2", "name": "now", "input": { "whole": 1 } },
        ])
    );
    // What was changed is not what was signed.
    let mut changed = again;
    changed.additional_kwargs.remove("reasoning_content");
    assert_eq!(sent(&[changed])[0]["content"][0]["type"], "text");
}

#[test]
fn a_whole_answer_is_the_same_as_a_streamed_one() {
    let body = br#"{"type":"message","model":"c-1","stop_reason":"end_turn","content":[
        {"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"hi"},
        {"type":"tool_use","id":"t","name":"pay","input":{"id":251229204212100000123}}],
        "usage":{"input_tokens":3,"output_tokens":2}}"#;
    let mut assembler = Assembler::with_id("m");
    for chunk in read_whole(body).unwrap() {
        assembler.push(chunk).unwrap();
    }
    let reply = assembler.finish().unwrap();
    assert_eq!(reply.message.text(), "hi");
    assert_eq!(reply.message.reasoning().as_deref(), Some("hm"));
    assert_eq!(
        reply.message.tool_calls(),
        [call("t", "pay", "{\"id\":251229204212100000123}")]
    );
    assert_eq!(
        (reply.usage, reply.finish_reason),
        (Some(Usage::new(3, 2)), Some(FinishReason::Stop))
    );
    for wrong in ["", "<html>", "{}", "{\"content\":5}"] {
        let error = read_whole(wrong.as_bytes()).unwrap_err();
        assert_eq!(error.reason(), "llm_error:decode", "{wrong}");
    }
}

#[test]
fn an_error_event_ends_the_answer_and_reasons_to_stop_are_translated() {
    let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    assert_eq!(streamed(&[error]).unwrap_err().reason(), "llm_error:server");
    let table = [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("refusal", FinishReason::ContentFilter),
        ("pause_turn", FinishReason::Other("pause_turn".into())),
    ];
    for (word, reason) in table {
        let events = [
            start(0, json!({ "type": "text", "text": "x" })),
            json!({ "type": "message_delta", "delta": { "stop_reason": word } }),
        ];
        assert_eq!(streamed(&events).unwrap().finish_reason, Some(reason));
    }
}
