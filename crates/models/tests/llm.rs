//! Models against a server that nobody here wrote, with a real (and small) language model: what comes is of the right
//! form, what goes wrong has its reason. What the model says is of no interest.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod llm_server;

use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use llm_server::{CONTEXT, LlmServer};
use paraph_models::{
    Assembler, ChatModel, ChatReply, ChatRequest, FinishReason, Message, Recorder, Replay,
    ResponseFormat, StructuredOutput, ToolChoice, ToolMode, ToolSpec, cosine,
};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

/// A short question with a short answer.
fn capital() -> ChatRequest {
    ChatRequest {
        max_tokens: Some(24),
        ..ChatRequest::new([Message::human("What is the capital of France?")])
    }
}

/// Text, an end, and usage that adds up.
fn well_formed(reply: &ChatReply) {
    assert!(!reply.message.text().trim().is_empty());
    let ended = reply.finish_reason.as_ref().unwrap();
    assert!(
        matches!(ended, FinishReason::Stop | FinishReason::Length),
        "{ended:?}"
    );
    let usage = reply.usage.as_ref().unwrap();
    assert!(
        usage.input_tokens > 5 && (1..=24).contains(&usage.output_tokens),
        "{usage:?}"
    );
    assert_eq!(usage.total_tokens, usage.input_tokens + usage.output_tokens);
    assert_eq!(reply.unknown_events, 0);
}

#[tokio::test]
async fn it_answers_whole_and_in_pieces() {
    let Some(server) = LlmServer::start() else {
        return;
    };
    let model = server.model(ToolMode::Native);
    let request = capital();
    let whole = model.complete(&request).await.unwrap();
    well_formed(&whole);

    let mut stream = model.stream(&request);
    let mut assembler = Assembler::new();
    let mut spoken = 0;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.unwrap();
        spoken += usize::from(!chunk.text.is_empty());
        assembler.push(chunk).unwrap();
    }
    let pieces = assembler.finish().unwrap();
    well_formed(&pieces);
    assert!(spoken > 1, "it came in one piece");
    // At temperature 0 the same server says the same.
    assert_eq!(pieces.message.text(), whole.message.text());
    // What the prompt shares with the one before it was not read twice.
    let cached = &pieces.usage.unwrap().input_token_details;
    assert!(
        cached.get("cache_read").is_some_and(|n| *n > 0),
        "{cached:?}"
    );
}

#[derive(Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Bug,
    Question,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Ticket {
    kind: Kind,
    #[expect(dead_code, reason = "that it could be read is what is shown")]
    urgent: bool,
    #[schemars(length(max = 40))]
    title: String,
}

#[tokio::test]
async fn it_answers_with_values_of_a_type() {
    let Some(server) = LlmServer::start() else {
        return;
    };
    let model = server.model(ToolMode::Native);
    let tickets = model.with_structured_output::<Ticket>().unwrap();
    let request = ChatRequest {
        max_tokens: Some(128),
        ..ChatRequest::new([Message::human(
            "Sort this in: the app crashes when I log in.",
        )])
    };
    let answered = tickets.ask(&request).await.unwrap();
    assert_eq!(answered.tries, 1, "{answered:?}");
    assert!([Kind::Bug, Kind::Question].contains(&answered.value.kind));
    assert!(answered.value.title.chars().count() <= 40, "{answered:?}");
}

#[tokio::test]
async fn a_conversation_that_is_too_long_has_its_reason() {
    let Some(server) = LlmServer::start() else {
        return;
    };
    let model = server.model(ToolMode::Native);
    let request = ChatRequest::new([Message::human("word ".repeat(CONTEXT))]);
    let whole = model.complete(&request).await.unwrap_err();
    assert_eq!(whole.reason(), "llm_error:context_overflow", "{whole}");
    let first = model.stream(&request).next().await.unwrap().unwrap_err();
    assert_eq!(first.reason(), "llm_error:context_overflow", "{first}");
}

#[tokio::test]
async fn a_dropped_answer_frees_the_server() {
    let Some(server) = LlmServer::start() else {
        return;
    };
    let model = server.model(ToolMode::Native);
    // Two answers that cannot end soon take both of the server's slots.
    let long = json!({
        "type": "object",
        "properties": { "text": { "type": "string", "minLength": 2000 } },
        "required": ["text"],
    });
    let endless = ChatRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "long".into(),
            schema: long,
            strict: false,
        },
        ..ChatRequest::new([Message::human("Tell a long story.")])
    };
    let mut streams = [model.stream(&endless), model.stream(&endless)];
    for stream in &mut streams {
        stream.next().await.unwrap().unwrap();
    }
    drop(streams);
    well_formed(&model.complete(&capital()).await.unwrap());
    // Each of the two would have written at least 250 tokens before a slot was free.
    let written = server.tokens_written();
    assert!(written < 250, "{written} tokens were written");

    let late = ChatRequest {
        deadline: Some(Instant::now() + Duration::from_millis(300)),
        ..endless
    };
    let error = model.complete(&late).await.unwrap_err();
    assert_eq!(error.reason(), "max_seconds");
}

#[tokio::test]
async fn fifty_callers_at_once_are_all_answered() {
    let Some(server) = LlmServer::start() else {
        return;
    };
    let model = server.model(ToolMode::Native);
    let calls = (0..50).map(|n| {
        let model = model.clone();
        async move {
            let request = ChatRequest {
                max_tokens: Some(8),
                ..ChatRequest::new([Message::human(format!("Say {n}"))])
            };
            match n % 2 {
                0 => model.complete(&request).await,
                _ => paraph_models::collect(model.stream(&request), |_, _| {}).await,
            }
        }
    });
    for reply in join_all(calls).await {
        let reply = reply.unwrap();
        let usage = reply.usage.unwrap();
        assert!((1..=8).contains(&usage.output_tokens), "{usage:?}");
    }
}

#[tokio::test]
async fn texts_become_vectors() {
    let Some(server) = LlmServer::start() else {
        return;
    };
    let embedder = server.embedder();
    let mut texts: Vec<String> = (0..20).map(|n| format!("Text number {n}")).collect();
    texts.push(texts[3].clone());
    let embedded = embedder.embed(&texts).await.unwrap();
    assert_eq!(embedded.vectors.len(), texts.len());
    assert_eq!(embedder.dimension(), Some(576));
    assert!(
        embedded.tokens.is_some_and(|tokens| tokens >= 60),
        "{:?}",
        embedded.tokens
    );
    // Where they stand says whose they are.
    let close = |one: usize, other: usize| cosine(&embedded.vectors[one], &embedded.vectors[other]);
    assert!(
        close(3, 20) > 0.999 && close(3, 20) > close(4, 20),
        "{}",
        close(3, 20)
    );
    let error = embedder
        .embed(&["word ".repeat(CONTEXT * 2)])
        .await
        .unwrap_err();
    assert!(error.reason().starts_with("llm_error:"), "{error}");
}

fn weather() -> ToolSpec {
    ToolSpec {
        name: "get_weather".into(),
        description: "Tells the weather of a city.".into(),
        schema: json!({
            "type": "object",
            "properties": { "city": { "type": "string", "maxLength": 30 } },
            "required": ["city"],
            "additionalProperties": false,
        }),
    }
}

#[tokio::test]
async fn it_calls_tools_by_schema_and_what_it_said_is_replayed() {
    let Some(server) = LlmServer::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let model = Recorder::begin(dir.path(), server.model(ToolMode::Schema)).unwrap();
    let first = ChatRequest {
        tools: vec![weather()],
        tool_choice: ToolChoice::Required,
        max_tokens: Some(96),
        ..ChatRequest::new([Message::human("What is the weather in Paris?")])
    };
    let asked = model.complete(&first).await.unwrap();
    let [call] = asked.message.tool_calls() else {
        panic!("one call: {asked:?}")
    };
    assert_eq!(call.name, "get_weather");
    let args: serde_json::Value = call.args.decode().unwrap();
    assert!(args["city"].is_string(), "{args}");
    assert_eq!(asked.finish_reason, Some(FinishReason::ToolCalls));

    // Its result is told, and now it may only answer.
    let result = Message::tool(call.id.clone(), "18 °C, sunny");
    let second = ChatRequest {
        tool_choice: ToolChoice::None,
        max_tokens: Some(24),
        messages: [first.messages.clone(), vec![asked.message.clone(), result]].concat(),
        ..first.clone()
    };
    let answered = model.complete(&second).await.unwrap();
    well_formed(&answered);
    drop(server);

    let replay = Replay::open(dir.path()).unwrap();
    let again = replay.complete(&first).await.unwrap();
    assert_eq!(again.message.tool_calls()[0].args, call.args);
    let again = replay.complete(&second).await.unwrap();
    assert_eq!(again.message.text(), answered.message.text());
}
