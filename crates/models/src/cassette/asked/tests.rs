//! What of a request is compared, and how a difference is told.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use super::*;
use crate::message::ToolCall;
use crate::raw::Arguments;

fn history(call_id: &str, args: &str) -> Vec<Message> {
    let call = ToolCall::new(call_id, "refund", Arguments::parse(args).unwrap());
    vec![
        Message::system("Be fair."),
        Message::human("Refund me"),
        Message::ai_calling("", vec![call]),
        Message::tool_error(call_id, "no such order"),
    ]
}

#[test]
fn what_is_drawn_anew_in_each_run_does_not_count() {
    let one = ChatRequest::new(history("c1", "{}"));
    let other = ChatRequest {
        deadline: Some(tokio::time::Instant::now()),
        context_window: Some(1),
        ..ChatRequest::new(history("another", "{}"))
    };
    assert_eq!(asked(&one), asked(&other));
    assert_eq!(
        asked(&one),
        json!({
            "messages": [
                { "type": "system", "content": "Be fair." },
                { "type": "human", "content": "Refund me" },
                { "type": "ai", "content": "",
                  "tool_calls": [{ "id": "#1", "name": "refund", "args": "{}" }] },
                { "type": "tool", "content": "no such order", "tool_call_id": "#1", "status": "error" },
            ],
            "temperature": 0.0,
        })
    );
}

#[test]
fn everything_a_provider_sees_counts() {
    let base = || ChatRequest::new([Message::human("Hi")]);
    let tool = ToolSpec {
        name: "t".into(),
        description: "a".into(),
        schema: json!({ "type": "object" }),
    };
    let schema = ResponseFormat::JsonSchema {
        name: "n".into(),
        schema: json!({}),
        strict: true,
    };
    let table = [
        (
            ChatRequest {
                temperature: None,
                ..base()
            },
            "/temperature: recorded 0.0, now nothing",
        ),
        (
            ChatRequest {
                max_tokens: Some(5),
                ..base()
            },
            "/max_tokens: recorded nothing, now 5",
        ),
        (
            ChatRequest {
                tool_choice: ToolChoice::Tool("t".into()),
                ..base()
            },
            "/tool_choice: recorded nothing, now {\"tool\":\"t\"}",
        ),
        (
            ChatRequest {
                tool_choice: ToolChoice::Required,
                ..base()
            },
            "/tool_choice: recorded nothing, now \"required\"",
        ),
        (
            ChatRequest {
                response_format: ResponseFormat::JsonObject,
                ..base()
            },
            "/response_format: recorded nothing, now \"json_object\"",
        ),
        (
            ChatRequest {
                response_format: schema,
                ..base()
            },
            "/response_format: recorded nothing, now {\"name\":\"n\",\"schema\":{},\"strict\":true}",
        ),
        (
            ChatRequest {
                tools: vec![tool],
                ..base()
            },
            "/tools: recorded nothing, now [{\"description\":\"a\",\"name\":\"t\",\"schema\":{\"type\":\"object\"}}]",
        ),
        (
            ChatRequest::new([Message::system("Hi")]),
            "/messages/0/type: recorded \"human\", now \"system\"",
        ),
        (
            ChatRequest::new([Message::human("Ho")]),
            "/messages/0/content: recorded \"Hi\", now \"Ho\"",
        ),
        (
            ChatRequest::new([]),
            "/messages/0: recorded {\"content\":\"Hi\",\"type\":\"human\"}, now nothing",
        ),
    ];
    for (now, told) in table {
        assert_eq!(difference(&asked(&base()), &asked(&now)), told);
    }
}

#[test]
fn a_difference_is_told_at_its_place() {
    let told = |about: &str| {
        let tool = ToolSpec {
            name: "t".into(),
            description: about.into(),
            schema: json!({ "type": "object" }),
        };
        asked(&ChatRequest {
            tools: vec![tool],
            ..ChatRequest::new([])
        })
    };
    assert_eq!(
        difference(&told("a"), &told("b")),
        "/tools/0/description: recorded \"a\", now \"b\""
    );
}

#[test]
fn digits_count_that_no_float_could_tell_apart() {
    let asked = |args| asked(&ChatRequest::new(history("c", args)));
    let (one, other) = (
        asked(r#"{"order":10000000000000000000001}"#),
        asked(r#"{"order":10000000000000000000002}"#),
    );
    assert_eq!(
        difference(&one, &other),
        r#"/messages/2/tool_calls/0/args: recorded "…0000000000000001}", now "…0000000000000002}""#
    );
}

#[test]
fn long_texts_are_shown_where_they_part_and_many_differences_are_counted() {
    let long = format!("{}A{}", "x".repeat(100), "y".repeat(100));
    let now = long.replace('A', "ü");
    let (one, other) = (
        json!([long, 1, 2, 3, 4, 5, 6]),
        json!([now, 2, 3, 4, 5, 6, 7]),
    );
    let y = "y".repeat(44);
    let x = "x".repeat(15);
    assert_eq!(
        difference(&one, &other),
        format!(
            "/0: recorded \"…{x}A{y}…\", now \"…{x}ü{y}…\"; /1: recorded 1, now 2; /2: recorded 2, now 3; \
             /3: recorded 3, now 4; /4: recorded 4, now 5; and 2 more"
        )
    );
}

#[test]
fn a_float_is_the_same_after_it_was_written_and_read() {
    for temperature in [0.1, 0.7, 1.0 / 3.0, 0.30000000000000004] {
        let request = ChatRequest {
            temperature: Some(temperature),
            ..ChatRequest::new([])
        };
        let written = asked(&request).to_string();
        let read: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read, asked(&request));
    }
}
