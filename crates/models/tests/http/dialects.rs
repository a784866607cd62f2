//! One table of cases that every protocol runs: an answer is whole or it is an error, whatever the network does.

use std::time::Duration;

use futures::StreamExt;
use paraph_models::{
    Arguments, ChatReply, ChatRequest, MISSING_RESULT, Message, ModelError, RetryPolicy, TimeLimit,
    ToolCall, Usage, collect, repair,
};
use serde_json::Value;

use crate::protocol::{ALL, Part, Protocol};
use crate::stand_in::{Play, StandIn, drip, model_of, once};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(80);

/// An answer with everything in it.
const ANSWER: [Part; 7] = [
    Part::Thought("hm, well"),
    Part::Ping,
    Part::Text("Grüße "),
    Part::News,
    Part::Text("🦀"),
    Part::Call(
        "t1",
        "pay",
        &["{\"id\":25122920421", "21000001,\"s\":\"", "ä\"}"],
    ),
    Part::Call("t2", "pay", &["{}"]),
];

const HALF: [Part; 2] = [Part::Text("half"), Part::Text(" of it")];

fn request() -> ChatRequest {
    ChatRequest::new([Message::human("hi")])
}

async fn streamed(protocol: Protocol, play: Play) -> Result<ChatReply, ModelError> {
    let server = StandIn::start(vec![play]).await;
    let model = model_of(protocol.provider(), &server.address, once(LONG));
    let request = request();
    collect(model.stream(&request), |_, _| {}).await
}

async fn whole(protocol: Protocol, play: Play) -> Result<ChatReply, ModelError> {
    let server = StandIn::start(vec![play]).await;
    let model = model_of(protocol.provider(), &server.address, once(LONG));
    model.complete(&request()).await
}

/// What an answer says, without what differs from call to call.
fn said(reply: &ChatReply) -> String {
    let calls = reply.message.tool_calls().iter();
    let calls: Vec<_> = calls
        .map(|call| format!("{} {} {}", call.id, call.name, call.args.as_str()))
        .collect();
    format!(
        "{} | {} | {}",
        reply.message.reasoning().unwrap_or_default(),
        reply.message.text(),
        calls.join(" | ")
    )
}

const SAID: &str =
    "hm, well | Grüße 🦀 | t1 pay {\"id\":2512292042121000001,\"s\":\"ä\"} | t2 pay {}";

fn check_whole(protocol: Protocol, reply: &ChatReply) {
    assert_eq!(said(reply), SAID, "{protocol:?}");
    let usage = Usage {
        input_token_details: [("cache_read".to_owned(), 4)].into(),
        ..Usage::new(10, 5)
    };
    assert_eq!(reply.usage, Some(usage), "{protocol:?}");
    assert_eq!(reply.model.as_deref(), Some("m-1"));
    assert_eq!(reply.provider.as_deref(), Some(protocol.provider()));
    let wire = serde_json::to_value(&reply.message).unwrap();
    assert_eq!(wire["content"], "Grüße 🦀", "no thought is an answer");
}

/// The head of an event stream, and these bytes in pieces cut at random.
fn shuffled(bytes: &[u8], seed: u64) -> Vec<Vec<u8>> {
    let mut pieces = vec![drip("").remove(0)];
    let (mut rest, mut random) = (bytes, seed);
    while !rest.is_empty() {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let cut = 1 + (random >> 33) as usize % 40;
        let (head, tail) = rest.split_at(cut.min(rest.len()));
        pieces.push(head.to_vec());
        rest = tail;
    }
    pieces
}

#[tokio::test]
async fn an_answer_is_the_same_whole_dripped_or_cut_anywhere() {
    for protocol in ALL {
        let reply = whole(protocol, Play::json(&protocol.whole(&ANSWER))).await;
        check_whole(protocol, &reply.unwrap());
        let (body, tail) = protocol.events(&ANSWER);
        let text = [body, tail].concat().concat();
        let mut plays = vec![
            Play::events(&text),
            Play::events(&text.replace('\n', "\r\n")),
        ];
        plays.extend((0..12).map(|seed| Play::Send(shuffled(text.as_bytes(), seed))));
        for play in plays {
            let reply = streamed(protocol, play).await.unwrap();
            check_whole(protocol, &reply);
            assert_eq!(reply.unknown_events, 1, "{protocol:?}");
        }
        // A server that answers whole although it was asked for events.
        let reply = streamed(protocol, Play::json(&protocol.whole(&ANSWER))).await;
        check_whole(protocol, &reply.unwrap());
    }
}

/// The turns of a request as it was sent: who speaks, with the tools that are called or answered for in it.
fn turns(protocol: Protocol, body: &Value) -> Vec<String> {
    let list = match protocol {
        Protocol::Google => &body["contents"],
        _ => &body["messages"],
    };
    let marks = ["\"tool_calls\"", "\"tool_use\"", "\"functionCall\""];
    let answers = [MISSING_RESULT, "result of it"];
    let turn = |turn: &Value| {
        let text = turn.to_string();
        let role = turn["role"].as_str().unwrap();
        let calls = marks.iter().any(|mark| text.contains(mark));
        let answers = answers.iter().any(|answer| text.contains(answer));
        match (calls, answers) {
            (true, false) => "call".to_owned(),
            (false, true) => "result".to_owned(),
            _ => role.to_owned(),
        }
    };
    list.as_array().unwrap().iter().map(turn).collect()
}

/// A02, letta#3273: a call without a result deep in a long history, which only a strict provider notices.
#[tokio::test]
async fn a02_an_orphan_deep_in_a_history_is_answered_on_every_protocol() {
    let call = |id: &str| {
        let call = ToolCall::new(id, "act", Arguments::parse("{}").unwrap());
        Message::ai_calling("", vec![call])
    };
    let mut history = Vec::new();
    for n in 0..20 {
        history.push(Message::human(format!("question {n}")));
        match n {
            5 => history.push(call("orphan")),
            10 => history.extend([call("c"), Message::tool("c", "result of it")]),
            _ => history.push(Message::ai("answer")),
        }
    }
    assert_eq!(history.len(), 41);
    let sent = repair(&history);
    assert_eq!(sent.repairs.len(), 1);
    for protocol in ALL {
        let server = StandIn::start(vec![Play::json(&protocol.whole(&HALF))]).await;
        let model = model_of(protocol.provider(), &server.address, once(LONG));
        let request = ChatRequest::new(sent.messages.clone());
        model.complete(&request).await.unwrap();
        let body = &server.requests()[0].body;
        let turns = turns(protocol, body);
        for (at, _) in turns.iter().enumerate().filter(|(_, turn)| *turn == "call") {
            assert_eq!(turns[at + 1], "result", "{protocol:?}: {turns:?}");
        }
        let calls = turns.iter().filter(|turn| *turn == "call").count();
        assert_eq!(calls, 2, "{protocol:?}: {turns:?}");
        assert_eq!(body.to_string().matches(MISSING_RESULT).count(), 1);
    }
}

#[tokio::test]
async fn the_key_goes_where_the_protocol_wants_it_and_nowhere_else() {
    for protocol in ALL {
        let (body, tail) = protocol.events(&HALF);
        let plays = vec![
            Play::json(&protocol.whole(&HALF)),
            Play::events(&[body, tail].concat().concat()),
        ];
        let server = StandIn::start(plays).await;
        let model = model_of(protocol.provider(), &server.address, once(LONG));
        let request = request();
        model.complete(&request).await.unwrap();
        collect(model.stream(&request), |_, _| {}).await.unwrap();
        for (sent, streamed) in server.requests().iter().zip([false, true]) {
            let (line, header, key) = protocol.call(streamed);
            assert_eq!(sent.head.lines().next(), Some(line));
            assert_eq!(sent.header(header), Some(key));
            assert_eq!(sent.head.matches("sk-canary").count(), 1);
            assert!(!sent.body.to_string().contains("sk-canary"));
        }
    }
}

#[tokio::test]
async fn an_answer_cut_at_any_byte_before_its_end_is_an_error_and_never_half_an_answer() {
    for protocol in ALL {
        let (body, tail) = protocol.events(&ANSWER);
        let open = body.concat();
        let whole = format!("{open}{}", tail.concat());
        // The data of the event that ends it, without the blank line, is enough.
        let end = open.len() + tail[0].trim_end().len();
        for cut in (0..whole.len()).step_by(7).chain(end - 3..end + 3) {
            let mut pieces = vec![drip("").remove(0)];
            pieces.push(whole.as_bytes()[..cut].to_vec());
            match streamed(protocol, Play::Send(pieces)).await {
                Ok(reply) => {
                    assert!(cut >= end, "{protocol:?} cut at {cut} of {end}");
                    assert_eq!(said(&reply), SAID);
                }
                Err(error) => {
                    assert!(cut < whole.len(), "{protocol:?} {error}");
                    let reason = error.reason();
                    let known = ["llm_error:connection", "llm_error:decode"];
                    assert!(known.contains(&reason), "{protocol:?} {cut}: {error}");
                }
            }
        }
    }
}

#[tokio::test]
async fn an_error_in_the_middle_is_told_after_what_came_before_it_and_nothing_is_tried_again() {
    let table = [
        (Part::Overloaded, "llm_error:server"),
        (Part::TooMany, "llm_error:rate_limited"),
    ];
    for protocol in ALL {
        for (part, reason) in table {
            let (body, tail) = protocol.events(&[Part::Text("half"), part]);
            let play = Play::events(&[body, tail].concat().concat());
            let server = StandIn::start(vec![play]).await;
            let model = model_of(protocol.provider(), &server.address, RetryPolicy::default());
            let request = request();
            let mut text = String::new();
            let error = collect(model.stream(&request), |_, chunk| {
                text.push_str(&chunk.text)
            });
            let error = error.await.unwrap_err();
            assert_eq!(
                (error.reason(), text.as_str()),
                (reason, "half"),
                "{protocol:?}"
            );
            assert!(!error.to_string().contains("sk-canary"), "{error}");
            assert_eq!(server.requests().len(), 1);
        }
    }
}

#[tokio::test]
async fn an_error_before_the_first_word_is_tried_again() {
    for protocol in ALL {
        let (failed, _) = protocol.events(&[Part::Ping, Part::Overloaded]);
        let (body, tail) = protocol.events(&ANSWER);
        let plays = [failed.concat(), [body, tail].concat().concat()];
        let server = StandIn::start(plays.map(|play| Play::events(&play)).into()).await;
        let policy = RetryPolicy {
            first_wait: Duration::from_millis(1),
            ..RetryPolicy::default()
        };
        let model = model_of(protocol.provider(), &server.address, policy);
        let request = request();
        let reply = collect(model.stream(&request), |_, _| {}).await.unwrap();
        assert_eq!(
            (said(&reply).as_str(), reply.attempts),
            (SAID, 2),
            "{protocol:?}"
        );
    }
}

#[tokio::test]
async fn an_event_that_is_no_json_is_an_error() {
    for protocol in ALL {
        let (mut body, tail) = protocol.events(&HALF);
        body.push("data: {\"choi\n\n".to_owned());
        let play = Play::events(&[body, tail].concat().concat());
        let error = streamed(protocol, play).await.unwrap_err();
        assert_eq!(error.reason(), "llm_error:decode", "{protocol:?}");
    }
}

#[tokio::test]
async fn a_server_that_stalls_is_left_and_the_error_says_when_it_stalled() {
    for protocol in ALL {
        let policy = RetryPolicy {
            first_token: Some(SHORT),
            idle: Some(SHORT),
            ..once(LONG)
        };
        let (silent, _) = protocol.events(&[Part::Ping]);
        let (half, _) = protocol.events(&HALF);
        let table = [
            (silent.concat(), TimeLimit::FirstToken),
            (half.concat(), TimeLimit::Idle),
        ];
        for (events, limit) in table {
            let mut server = StandIn::start(vec![Play::Hang(drip(&events))]).await;
            let model = model_of(protocol.provider(), &server.address, policy);
            let request = request();
            let error = collect(model.stream(&request), |_, _| {})
                .await
                .unwrap_err();
            let after = Some(SHORT);
            assert_eq!(error, ModelError::Timeout { limit, after }, "{protocol:?}");
            server.client_gone().await;
        }
    }
}

#[tokio::test]
async fn dropping_a_stream_ends_the_call() {
    for protocol in ALL {
        let (half, _) = protocol.events(&HALF);
        let mut server = StandIn::start(vec![Play::Hang(drip(&half.concat()))]).await;
        let model = model_of(protocol.provider(), &server.address, once(LONG));
        let request = request();
        let mut stream = model.stream(&request);
        while !stream.next().await.unwrap().unwrap().is_spoken() {}
        drop(stream);
        server.client_gone().await;
    }
}

#[tokio::test]
async fn refusals_have_their_reason_and_their_wait_on_every_protocol() {
    let table = [
        (401, "", "llm_error:auth", None),
        (403, "", "llm_error:auth", None),
        (413, "", "llm_error:context_overflow", None),
        (422, "", "llm_error:bad_request", None),
        (
            429,
            "retry-after: 30\r\n",
            "llm_error:rate_limited",
            Some(30),
        ),
        (503, "retry-after: 2\r\n", "llm_error:server", Some(2)),
        (529, "", "llm_error:server", None),
    ];
    for protocol in ALL {
        for (status, headers, reason, wait) in table {
            let body = r#"{"error":{"message":"not with sk-canary"}}"#;
            let error = whole(protocol, Play::status(status, headers, body)).await;
            let error = error.unwrap_err();
            assert_eq!(error.reason(), reason, "{protocol:?} {status}");
            assert_eq!(error.retry_after(), wait.map(Duration::from_secs));
            assert!(!error.to_string().contains("sk-canary"), "{error}");
        }
        let other = StandIn::start(vec![]).await;
        let location = format!("location: {}/\r\n", other.address);
        let error = streamed(protocol, Play::status(308, &location, "")).await;
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("the server redirects")
        );
        assert_eq!(other.requests().len(), 0);
    }
}

#[tokio::test]
async fn a_model_that_wants_no_temperature_is_asked_without_it_and_remembered() {
    for protocol in ALL {
        let refusal = r#"{"error":{"message":"`temperature` is not supported by this model"}}"#;
        let plays = vec![
            Play::status(400, "", refusal),
            Play::json(&protocol.whole(&HALF)),
            Play::json(&protocol.whole(&HALF)),
        ];
        let server = StandIn::start(plays).await;
        let model = model_of(protocol.provider(), &server.address, once(LONG));
        for _ in 0..2 {
            model.complete(&request()).await.unwrap();
        }
        let told = server.requests();
        let told: Vec<bool> = told
            .iter()
            .map(|sent| sent.body.to_string().contains("temperature"))
            .collect();
        assert_eq!(told, [true, false, false], "{protocol:?}");
    }
}
