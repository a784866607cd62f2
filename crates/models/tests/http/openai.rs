//! The OpenAI-compatible provider over real sockets, against a server that misbehaves in every way.
//!
//! Time limits are tested on a paused clock beside the retry layer; the few real ones here are far shorter than
//! what they interrupt, which never ends.

use std::time::Duration;

use futures::StreamExt;
use paraph_models::{
    ChatReply, ChatRequest, FinishReason, Message, ModelError, Proxies, RetryPolicy, Usage, collect,
};
use serde_json::json;

use crate::stand_in::{Play, StandIn, drip, init, model, once};
use tokio::net::TcpListener;
use tokio::time::Instant;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(80);

const ANSWER: &str = r#"{"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Grüße 🦀"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}"#;

fn request() -> ChatRequest {
    ChatRequest::new([Message::human("hi")])
}

/// One whole answer from one play.
async fn complete(play: Play) -> Result<ChatReply, ModelError> {
    let server = StandIn::start(vec![play]).await;
    model(&server.address, once(LONG))
        .complete(&request())
        .await
}

/// One streamed answer from one play.
async fn streamed(play: Play) -> Result<ChatReply, ModelError> {
    let server = StandIn::start(vec![play]).await;
    let model = model(&server.address, once(LONG));
    let request = request();
    collect(model.stream(&request), |_, _| {}).await
}

#[tokio::test]
async fn a_whole_answer_is_asked_for_and_read() {
    let server = StandIn::start(vec![Play::json(ANSWER)]).await;
    let model = model(&server.address, once(LONG));
    let reply = model.complete(&request()).await.unwrap();
    assert_eq!(model.name(), "openai:m");
    assert_eq!(reply.message.text(), "Grüße 🦀");
    assert_eq!(reply.usage, Some(Usage::new(5, 2)));
    assert_eq!(reply.finish_reason, Some(FinishReason::Stop));
    assert_eq!((reply.model.as_deref(), reply.attempts), (Some("m-1"), 1));
    let [request] = &server.requests()[..] else {
        panic!("one request")
    };
    assert!(
        request
            .head
            .starts_with("POST /v1/chat/completions HTTP/1.1\r\n")
    );
    assert_eq!(request.header("authorization"), Some("Bearer sk-canary"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let body = json!({ "model": "m", "temperature": 0.0, "messages": [{ "role": "user", "content": "hi" }] });
    assert_eq!(request.body, body);
}

#[tokio::test]
async fn a_stream_that_drips_byte_by_byte_is_joined_and_shown_piece_by_piece() {
    let events = concat!(
        ": warming up\n\n",
        "data: {\"model\":\"m-1\",\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"Grüße \"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"🦀\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"pay\",\"arguments\":\"\"}},{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"now\",\"arguments\":\"{\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\"}\"}},{\"index\":0,\"function\":{\"arguments\":\"{\\\"id\\\":2512292042121000001}\"}}]}}]}\n\n",
        "data: {\"object\":\"surprise\"}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n",
        "data: [DONE]\n\n",
    );
    let server = StandIn::start(vec![Play::events(events)]).await;
    let model = model(&server.address, once(LONG));
    let request = request();
    let mut shown = Vec::new();
    let mut ids = Vec::new();
    let reply = collect(model.stream(&request), |id, chunk| {
        ids.push(id.to_owned());
        shown.push(chunk.text.clone());
    });
    let reply = reply.await.unwrap();
    assert_eq!(shown.concat(), "Grüße 🦀");
    assert!(shown.len() >= 8 && ids.iter().all(|id| *id == reply.message.id));
    assert_eq!(reply.message.text(), "Grüße 🦀");
    let calls = reply.message.tool_calls().iter();
    let calls: Vec<_> = calls
        .map(|c| (c.id.as_str(), c.name.as_str(), c.args.as_str()))
        .collect();
    assert_eq!(
        calls,
        [
            ("a", "pay", "{\"id\":2512292042121000001}"),
            ("b", "now", "{}")
        ]
    );
    assert_eq!(reply.usage, Some(Usage::new(5, 2)));
    assert_eq!(reply.finish_reason, Some(FinishReason::ToolCalls));
    assert_eq!(reply.unknown_events, 1);
    let body = &server.requests()[0].body;
    assert_eq!(
        (&body["stream"], &body["stream_options"]),
        (&json!(true), &json!({ "include_usage": true }))
    );
}

#[tokio::test]
async fn a_server_that_answers_whole_when_asked_to_stream_is_understood() {
    let reply = streamed(Play::json(ANSWER)).await.unwrap();
    assert_eq!(reply.message.text(), "Grüße 🦀");
}

const HALF: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";

#[tokio::test]
async fn a_stream_that_breaks_off_is_no_answer() {
    let error = streamed(Play::events(HALF)).await.unwrap_err();
    assert_eq!(error.reason(), "llm_error:connection");
    let done =
        format!("{HALF}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"length\"}}]}}");
    let reply = streamed(Play::events(&done)).await.unwrap();
    assert_eq!(
        (reply.message.text().as_ref(), reply.finish_reason),
        ("half", Some(FinishReason::Length))
    );
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_has_its_reason() {
    let table = [
        (
            r#"{"error":{"message":"overloaded","type":"server_error"}}"#,
            "llm_error:server",
        ),
        (
            r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
            "llm_error:context_overflow",
        ),
        ("{\"choi", "llm_error:decode"),
    ];
    for (data, reason) in table {
        let error = streamed(Play::events(&format!("{HALF}data: {data}\n\n")))
            .await
            .unwrap_err();
        assert_eq!(error.reason(), reason, "{data}");
    }
}

#[tokio::test]
async fn what_came_before_an_error_is_given_before_it_and_nothing_is_tried_again() {
    let error = r#"{"error":{"message":"overloaded","type":"server_error"}}"#;
    let plays = vec![Play::events(&format!("{HALF}data: {error}\n\n"))];
    let server = StandIn::start(plays).await;
    let model = model(&server.address, RetryPolicy::default());
    let request = request();
    let mut stream = model.stream(&request);
    assert!(stream.next().await.unwrap().is_ok());
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.reason(), "llm_error:server");
    drop(stream);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn every_status_has_its_reason() {
    let overflow = r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#;
    let openai_overflow = r#"{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}"#;
    let table = [
        (400, "{}", "llm_error:bad_request"),
        (400, overflow, "llm_error:context_overflow"),
        (400, openai_overflow, "llm_error:context_overflow"),
        (401, "", "llm_error:auth"),
        (403, "no", "llm_error:auth"),
        (404, "<html>", "llm_error:bad_request"),
        (413, "", "llm_error:context_overflow"),
        (422, "{}", "llm_error:bad_request"),
        (429, "{}", "llm_error:rate_limited"),
        (500, "{}", "llm_error:server"),
        (502, "<html>", "llm_error:server"),
        (200, "<html>", "llm_error:decode"),
        (200, "{\"choices\":[]}", "llm_error:decode"),
        (
            200,
            r#"{"choices":[{"message":{"content":""}}]}"#,
            "llm_empty",
        ),
        (
            200,
            r#"{"error":{"message":"x","code":429}}"#,
            "llm_error:rate_limited",
        ),
    ];
    for (status, body, reason) in table {
        let error = complete(Play::status(status, "", body)).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{status} {body}: {error}");
    }
}

#[tokio::test]
async fn a_key_that_the_server_repeats_is_not_shown() {
    let body = r#"{"error":{"message":"Incorrect API key provided: sk-canary."}}"#;
    let error = complete(Play::status(401, "", body)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the model refused the credentials: status 401: Incorrect API key provided: [key]."
    );
    assert!(!format!("{error:?}").contains("sk-canary"));
    // Nor where an error comes in an answer that looks like a success.
    let body = r#"{"error":{"message":"sk-canary is wrong","code":"invalid_request"}}"#;
    let whole = complete(Play::status(200, "", body)).await.unwrap_err();
    let piece = streamed(Play::events(&format!("{HALF}data: {body}\n\n"))).await;
    for error in [whole, piece.unwrap_err()] {
        assert!(error.to_string().contains("[key] is wrong"), "{error}");
        assert!(!format!("{error:?}").contains("sk-canary"));
    }
}

#[tokio::test]
async fn a_rate_limit_is_waited_out_and_the_answer_says_so() {
    for whole in [true, false] {
        let limited = Play::status(429, "retry-after: 0\r\n", "{}");
        let server = StandIn::start(vec![limited, Play::json(ANSWER)]).await;
        let model = model(&server.address, RetryPolicy::default());
        let request = request();
        let reply = match whole {
            true => model.complete(&request).await,
            false => collect(model.stream(&request), |_, _| {}).await,
        };
        assert_eq!((reply.unwrap().attempts, server.requests().len()), (2, 2));
    }
}

#[tokio::test]
async fn a_wait_that_leaves_no_time_is_not_begun() {
    let limited = Play::status(429, "retry-after: 30\r\n", "{}");
    let server = StandIn::start(vec![limited]).await;
    let request = ChatRequest {
        deadline: Some(Instant::now() + Duration::from_secs(20)),
        ..request()
    };
    let error = model(&server.address, RetryPolicy::default())
        .complete(&request)
        .await;
    let error = error.unwrap_err();
    assert_eq!(error.reason(), "llm_error:rate_limited");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
}

#[tokio::test]
async fn a_server_that_hangs_is_left_at_the_limit() {
    for pieces in [vec![], drip(HALF)] {
        let server = StandIn::start(vec![Play::Hang(pieces)]).await;
        let model = model(&server.address, once(SHORT));
        let request = request();
        let error = collect(model.stream(&request), |_, _| {})
            .await
            .unwrap_err();
        assert_eq!(error.reason(), "llm_timeout");
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_left_when_the_runs_time_is_over() {
    let server = StandIn::start(vec![Play::Hang(vec![])]).await;
    let request = ChatRequest {
        deadline: Some(Instant::now() + SHORT),
        ..request()
    };
    let error = model(&server.address, once(LONG)).complete(&request).await;
    assert_eq!(error.unwrap_err().reason(), "max_seconds");
}

#[tokio::test]
async fn dropping_the_stream_hangs_up() {
    let mut server = StandIn::start(vec![Play::Hang(drip(HALF))]).await;
    let model = model(&server.address, once(LONG));
    let request = request();
    let mut stream = model.stream(&request);
    assert_eq!(stream.next().await.unwrap().unwrap().text, "half");
    drop(stream);
    server.client_gone().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_or_hangs_up_first_is_a_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = model(&address, once(LONG))
        .complete(&request())
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "llm_timeout");
    assert!(matches!(error, ModelError::Connect { .. }));
    let error = complete(Play::Send(vec![])).await.unwrap_err();
    assert_eq!(error.reason(), "llm_timeout");
}

#[tokio::test]
async fn a_connection_that_breaks_inside_the_answer_is_a_connection_error() {
    let cut =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"choi";
    let error = complete(Play::Send(vec![cut.to_vec()])).await.unwrap_err();
    assert_eq!(error.reason(), "llm_error:connection");
}

#[tokio::test]
async fn an_answer_without_end_is_cut_at_its_bound() {
    let head =
        |kind| format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    for (kind, piece) in [
        ("application/json", " "),
        ("text/event-stream", ": x\n"),
        ("text/event-stream", "x"),
    ] {
        let flood = Play::Flood(
            head(kind).into_bytes(),
            piece.repeat(64 * 1024).into_bytes(),
        );
        let error = streamed(flood).await.unwrap_err();
        assert_eq!(error.reason(), "llm_error:decode", "{kind} {piece:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_key_stays_here() {
    let other = StandIn::start(vec![Play::json(ANSWER)]).await;
    let location = format!("location: {}/v1/chat/completions\r\n", other.address);
    let error = complete(Play::status(307, &location, ""))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "llm_error:bad_request");
    assert!(error.to_string().contains("the server redirects"));
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn proxies_are_used_as_they_are_told() {
    let proxy = StandIn::start(vec![Play::json(ANSWER), Play::status(502, "", "")]).await;
    let proxies = Proxies {
        http: Some(proxy.address.clone()),
        https: Some(proxy.address.clone()),
        no_proxy: Some("127.0.0.1".into()),
    };
    let plain = init("http://model.invalid/v1", once(LONG), proxies.clone());
    assert_eq!(
        plain.complete(&request()).await.unwrap().message.text(),
        "Grüße 🦀"
    );
    let secure = init("https://model.invalid/v1", once(LONG), proxies.clone());
    assert_eq!(
        secure.complete(&request()).await.unwrap_err().reason(),
        "llm_timeout"
    );
    let lines: Vec<String> = proxy
        .requests()
        .iter()
        .map(|r| r.head.lines().next().unwrap().to_owned())
        .collect();
    assert_eq!(
        lines,
        [
            "POST http://model.invalid/v1/chat/completions HTTP/1.1",
            "CONNECT model.invalid:443 HTTP/1.1"
        ]
    );
    let server = StandIn::start(vec![Play::json(ANSWER)]).await;
    let direct = init(&server.address, once(LONG), proxies);
    assert!(direct.complete(&request()).await.is_ok());
}

#[tokio::test]
async fn an_answer_is_not_thrown_away_for_what_is_said_of_its_cost() {
    let table = [
        (
            r#"{"prompt_tokens":5.0,"completion_tokens":2}"#,
            Some(Usage::new(5, 2)),
        ),
        (
            r#"{"prompt_tokens":-1,"completion_tokens":2.5}"#,
            Some(Usage::new(0, 0)),
        ),
        (
            r#"{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"x":{"y":1}}}"#,
            Some(Usage::new(5, 2)),
        ),
        (
            r#"{"prompt_tokens":5,"completion_tokens":2,"completion_tokens_details":[]}"#,
            Some(Usage::new(5, 2)),
        ),
        (r#""free""#, None),
        ("null", None),
    ];
    for (usage, expected) in table {
        let events = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"hi\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n"
        );
        let reply = streamed(Play::events(&events)).await.unwrap();
        assert_eq!(
            (reply.message.text().as_ref(), &reply.usage),
            ("hi", &expected),
            "{usage}"
        );
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"hi"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
        );
        let reply = complete(Play::json(&body)).await.unwrap();
        assert_eq!(
            (reply.message.text().as_ref(), &reply.usage),
            ("hi", &expected),
            "{usage}"
        );
    }
}

#[tokio::test]
async fn a_character_that_was_cut_between_two_events_is_whole_again() {
    let events = [
        r#"{"choices":[{"index":null,"delta":{"content":"crab \ud83e"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"add","arguments":"{\"n\":\"\ud83e"}}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"\udd80!"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\udd80\"}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    ];
    let events: String = events.map(|event| format!("data: {event}\n\n")).concat();
    let reply = streamed(Play::events(&(events + "data: [DONE]\n\n")))
        .await
        .unwrap();
    assert_eq!(reply.message.text(), "crab 🦀!");
    assert_eq!(reply.message.tool_calls()[0].args.as_str(), r#"{"n":"🦀"}"#);
    let half = r#"{"choices":[{"message":{"content":"half \ud83e"},"finish_reason":"stop"}]}"#;
    let reply = complete(Play::json(half)).await.unwrap();
    assert_eq!(reply.message.text(), "half \u{fffd}");
}

#[tokio::test]
async fn what_is_no_answer_of_a_model_is_named() {
    let send = |head: &str, body: &str| {
        let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n{body}");
        Play::Send(vec![head.into_bytes()])
    };
    let table = [
        (
            "200 OK\r\ncontent-type: text/html; charset=utf-8",
            "<html>Sign in</html>",
            "a page for people (text/html)",
        ),
        (
            "200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 0",
            "",
            "nothing (status 200)",
        ),
        ("204 No Content", "", "nothing (status 204)"),
        (
            "200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip",
            "\u{1f}",
            "in an encoding that was not asked for (gzip)",
        ),
    ];
    for (head, body, what) in table {
        let expected = ModelError::Decode {
            message: format!("127.0.0.1 answered {what}; is the base URL right?"),
        };
        assert_eq!(streamed(send(head, body)).await.unwrap_err(), expected);
        assert_eq!(complete(send(head, body)).await.unwrap_err(), expected);
    }
}

#[tokio::test]
async fn a_whole_answer_is_given_although_its_stream_does_not_end() {
    let events =
        "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let reply = streamed(Play::Hang(drip(events))).await.unwrap();
    assert_eq!(reply.message.text(), "hi");
}
