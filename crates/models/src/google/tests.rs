//! Requests as Google's server wants them, and its answers.

use serde_json::{Value, json};

use super::*;
use crate::chat::{Assembler, ChatReply, FinishReason, ResponseFormat, ToolChoice, ToolSpec};
use crate::http::Event;
use crate::message::{Message, ToolCall, Usage};
use crate::raw::Arguments;

#[test]
fn content_is_found_under_any_base_url() {
    let table = [
        (
            "https://generativelanguage.googleapis.com",
            "g-1",
            "https://generativelanguage.googleapis.com/v1beta/models/g-1:generateContent",
        ),
        (
            "http://127.0.0.1:1/v1alpha/",
            "g-1",
            "http://127.0.0.1:1/v1alpha/models/g-1:generateContent",
        ),
        (
            "https://host/vertex?x=1",
            "tunedModels/a",
            "https://host/vertex/v1beta/tunedModels/a:generateContent?x=1",
        ),
    ];
    for (address, model, url) in table {
        let google = Google::new(model, base(address).unwrap());
        assert_eq!(google.url(Wire::Whole).as_str(), url);
    }
    let google = Google::new("g 1", base("http://h").unwrap());
    let url = "http://h/v1beta/models/g%201:streamGenerateContent?alt=sse";
    assert_eq!(google.url(Wire::Events).as_str(), url);
}

fn body_for(model: &str, request: &ChatRequest) -> Value {
    let bytes = encode::body(request, model).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn body(request: &ChatRequest) -> Value {
    body_for("gemini-2", request)
}

fn call(id: &str, name: &str, args: &str) -> ToolCall {
    ToolCall::new(id, name, Arguments::parse(args).unwrap())
}

#[test]
fn a_plain_request_says_instructions_content_and_temperature_zero() {
    let request = ChatRequest::new([Message::system("be brief"), Message::human("hi")]);
    let plain = json!({
        "systemInstruction": { "parts": [{ "text": "be brief" }] },
        "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }],
        "generationConfig": { "temperature": 0.0 },
    });
    assert_eq!(body(&request), plain);
}

#[test]
fn a_full_request_says_all_it_was_given() {
    let tool = ToolSpec {
        name: "add".into(),
        description: "Adds.".into(),
        schema: json!({ "type": "object", "$defs": {} }),
    };
    let base = ChatRequest {
        tools: vec![tool],
        max_tokens: Some(50),
        temperature: None,
        response_format: ResponseFormat::JsonSchema {
            name: "x".into(),
            schema: json!({ "type": "object" }),
            strict: true,
        },
        ..ChatRequest::new([Message::human("hi")])
    };
    let table = [
        (ToolChoice::Auto, Value::Null),
        (
            ToolChoice::None,
            json!({ "functionCallingConfig": { "mode": "NONE" } }),
        ),
        (
            ToolChoice::Required,
            json!({ "functionCallingConfig": { "mode": "ANY" } }),
        ),
        (
            ToolChoice::Tool("add".into()),
            json!({ "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["add"] } }),
        ),
    ];
    for (tool_choice, config) in table {
        let sent = body(&ChatRequest {
            tool_choice,
            ..base.clone()
        });
        assert_eq!(sent["toolConfig"], config);
        let tools = json!([{ "functionDeclarations": [
            { "name": "add", "description": "Adds.", "parametersJsonSchema": { "type": "object", "$defs": {} } }] }]);
        assert_eq!(sent["tools"], tools);
        let config = json!({ "maxOutputTokens": 50, "responseMimeType": "application/json",
            "responseJsonSchema": { "type": "object" } });
        assert_eq!(sent["generationConfig"], config);
    }
}

#[test]
fn turns_alternate_and_results_are_named_after_their_calls() {
    let messages = [
        Message::human("one"),
        Message::ai_calling(
            "",
            vec![
                call("g1", "add", "{\"n\":1}"),
                call("call-m-1", "sub", "{}"),
            ],
        ),
        Message::tool("g1", "7"),
        Message::tool_error("call-m-1", "no"),
        Message::human("and?"),
    ];
    let contents = json!([
        { "role": "user", "parts": [{ "text": "one" }] },
        { "role": "model", "parts": [
            { "functionCall": { "id": "g1", "name": "add", "args": { "n": 1 } } },
            { "functionCall": { "name": "sub", "args": {} } },
        ] },
        { "role": "user", "parts": [
            { "functionResponse": { "id": "g1", "name": "add", "response": { "output": "7" } } },
            { "functionResponse": { "name": "sub", "response": { "error": "no" } } },
            { "text": "and?" },
        ] },
    ]);
    let request = ChatRequest::new(messages);
    assert_eq!(body(&request)["contents"], contents);
    // Gemini 3 wants the first call of a turn signed, also one that another model made.
    let third = body_for("gemini-3-pro", &request);
    let parts = &third["contents"][1]["parts"];
    assert_eq!(
        parts[0]["thoughtSignature"],
        "skip_thought_signature_validator"
    );
    assert_eq!(parts[1]["thoughtSignature"], Value::Null);
}

#[test]
fn arguments_of_the_past_keep_every_digit() {
    let args = "{\"id\":251229204212100000123.10}";
    let request = ChatRequest::new([Message::ai_calling("", vec![call("a", "pay", args)])]);
    let text = String::from_utf8(encode::body(&request, "g").unwrap()).unwrap();
    assert!(text.contains(args), "{text}");
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
        match reader.read(&event.to_string())? {
            Event::Chunks(chunks) => {
                for chunk in chunks {
                    assembler.push(chunk)?;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assembler.finish()
}

fn parts(parts: Value) -> Value {
    json!({ "candidates": [{ "content": { "role": "model", "parts": parts } }], "modelVersion": "g-1-001" })
}

#[test]
fn a_streamed_answer_is_text_thoughts_and_calls_and_its_signatures_go_back_where_they_stood() {
    let events = [
        parts(json!([{ "text": "hm, ", "thought": true }])),
        parts(json!([{ "text": "well", "thought": true }, { "text": "Grü" }])),
        parts(json!([{ "text": "ße", "thoughtSignature": "s-text" }])),
        parts(json!([
            { "functionCall": { "id": "g1", "name": "pay", "args": { "id": 1 } }, "thoughtSignature": "s-call" },
            { "functionCall": { "name": "now" } },
            { "executableCode": {} },
        ])),
        json!({ "candidates": [{ "index": 1, "content": {} }] }),
        json!({ "odd": 1 }),
        json!({ "candidates": [{ "content": { "parts": [] }, "finishReason": "STOP" }],
            "usageMetadata": { "promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 5,
                "thoughtsTokenCount": 3, "totalTokenCount": 18 } }),
    ];
    let reply = streamed(&events).unwrap();
    assert_eq!(reply.message.text(), "Grüße");
    assert_eq!(reply.message.reasoning().as_deref(), Some("hm, well"));
    let calls = reply.message.tool_calls().iter();
    let calls: Vec<_> = calls
        .map(|c| (c.id.as_str(), c.name.as_str(), c.args.as_str()))
        .collect();
    assert_eq!(
        calls,
        [("g1", "pay", "{\"id\":1}"), ("call-m-1", "now", "{}")]
    );
    let usage = Usage {
        input_token_details: [("cache_read".into(), 4)].into(),
        output_token_details: [("reasoning".into(), 3)].into(),
        ..Usage::new(10, 8)
    };
    assert_eq!(reply.usage, Some(usage));
    assert_eq!(reply.finish_reason, Some(FinishReason::ToolCalls));
    assert_eq!(reply.unknown_events, 3);
    assert_eq!(reply.model.as_deref(), Some("g-1-001"));
    // It goes back as it came, also from a checkpoint.
    let kept = serde_json::to_string(&reply.message).unwrap();
    let again: Message = serde_json::from_str(&kept).unwrap();
    assert_eq!(
        body(&ChatRequest::new([again]))["contents"][0]["parts"],
        json!([
            { "text": "Grü" },
            { "text": "ße", "thoughtSignature": "s-text" },
            { "functionCall": { "id": "g1", "name": "pay", "args": { "id": 1 } }, "thoughtSignature": "s-call" },
            { "functionCall": { "name": "now", "args": {} } },
        ])
    );
}

#[test]
fn arguments_of_an_answer_keep_every_digit() {
    let body = br#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"pay","args":{"id":251229204212100000123.10}}}]},"finishReason":"STOP"}]}"#;
    let mut assembler = Assembler::with_id("m");
    for chunk in read_whole(body).unwrap() {
        assembler.push(chunk).unwrap();
    }
    let reply = assembler.finish().unwrap();
    let call = &reply.message.tool_calls()[0];
    assert_eq!(call.args.as_str(), "{\"id\":251229204212100000123.10}");
    for wrong in ["", "<html>", "{}", "{\"candidates\":5}"] {
        let error = read_whole(wrong.as_bytes()).unwrap_err();
        assert_eq!(error.reason(), "llm_error:decode", "{wrong}");
    }
}

#[test]
fn blocked_requests_and_broken_calls_are_errors_and_reasons_to_stop_are_translated() {
    let table = [
        (
            json!({ "promptFeedback": { "blockReason": "SAFETY" } }),
            "the model refused the request: the request was blocked (SAFETY) ",
        ),
        (
            json!({ "candidates": [{ "finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "print(x)" }] }),
            "the model's answer cannot be read: the model's tool call was none (MALFORMED_FUNCTION_CALL) print(x)",
        ),
        (
            json!({ "error": { "code": 503, "message": "busy", "status": "UNAVAILABLE" } }),
            "the model's server failed: status 503: busy",
        ),
    ];
    for (event, text) in table {
        assert_eq!(streamed(&[event]).unwrap_err().to_string(), text);
    }
    let table = [
        ("STOP", FinishReason::Stop),
        ("MAX_TOKENS", FinishReason::Length),
        ("PROHIBITED_CONTENT", FinishReason::ContentFilter),
        ("OTHER", FinishReason::Other("OTHER".into())),
    ];
    for (word, reason) in table {
        let mut event = parts(json!([{ "text": "x" }]));
        event["candidates"][0]["finishReason"] = json!(word);
        assert_eq!(streamed(&[event]).unwrap().finish_reason, Some(reason));
    }
}
