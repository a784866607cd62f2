//! Scripts: what a line may say, and which attempt takes which line.

use std::time::Duration;

use futures::StreamExt;
use tokio::time::Instant;

use super::*;
use crate::message::{Message, ToolCall, Usage};
use crate::raw::Arguments;

fn script(text: &str) -> Result<ScriptedModel, Error> {
    ScriptedModel::parse(text, "s.jsonl")
}

async fn said(model: &impl ChatModel) -> String {
    match model.complete(&ChatRequest::new([])).await {
        Ok(reply) => reply.message.text().into_owned(),
        Err(error) => error.reason().to_owned(),
    }
}

#[tokio::test]
async fn the_nth_attempt_takes_line_n_also_after_a_resume() {
    let text = "{\"content\":\"1\"}\n{\"content\":\"2\"}\r\n{\"content\":\"3\"}\n\n";
    let model = script(text).unwrap();
    assert_eq!([said(&model).await, said(&model).await], ["1", "2"]);
    let resumed = script(text).unwrap().start_at(model.attempts());
    assert_eq!(
        [
            said(&resumed).await,
            said(&resumed).await,
            said(&resumed).await
        ],
        [
            "3",
            "llm_error:script_exhausted",
            "llm_error:script_exhausted"
        ]
    );
    assert_eq!(resumed.name(), "scripted:s.jsonl");
}

#[tokio::test]
async fn a_run_that_goes_on_after_some_attempts_takes_the_line_after_them() {
    let text = "{\"content\":\"1\"}\n{\"content\":\"2\"}\n";
    let model = crate::Retrying::new(script(text).unwrap(), crate::RetryPolicy::default());
    let shared: std::sync::Arc<dyn ChatModel> = std::sync::Arc::new(model);
    for (attempts, says) in [(1, "2"), (0, "1"), (u64::MAX, "llm_error:script_exhausted")] {
        shared.go_on_after(attempts);
        assert_eq!(said(&shared).await, says, "{attempts}");
    }
}

#[tokio::test]
async fn a_line_gives_text_calls_and_usage() {
    let line = r#"{"content":"let me see","tool_calls":[
        {"id":"c1","name":"pay","arguments":{"id":2512292042121000001}},
        {"id":"c2","name":"book","arguments":"{\"city\":\"Oslo\",\"days\":3"},
        {"id":"c3","name":"now"}],
        "usage":{"input_tokens":7,"output_tokens":5}}"#;
    let model = script(&line.replace('\n', " ")).unwrap();
    let reply = model.complete(&ChatRequest::new([])).await.unwrap();
    assert_eq!(reply.message.text(), "let me see");
    assert_eq!(reply.usage, Some(Usage::new(7, 5)));
    let exact = Arguments::parse(r#"{"id":2512292042121000001}"#).unwrap();
    let calls = [
        ToolCall::new("c1", "pay", exact),
        ToolCall::new("c3", "now", Arguments::default()),
    ];
    assert_eq!(reply.message.tool_calls(), calls);
    assert_eq!(
        reply.message.invalid_tool_calls()[0].args,
        "{\"city\":\"Oslo\",\"days\":3"
    );
}

#[tokio::test]
async fn every_error_has_its_reason() {
    let table = [
        (r#"{"error":{"kind":"timeout"}}"#, "llm_timeout"),
        (r#"{"error":{"kind":"connection"}}"#, "llm_timeout"),
        (
            r#"{"error":{"kind":"http","status":401}}"#,
            "llm_error:auth",
        ),
        (
            r#"{"error":{"kind":"http","status":429,"retry_after":0.5}}"#,
            "llm_error:rate_limited",
        ),
        (
            r#"{"error":{"kind":"http","status":404}}"#,
            "llm_error:bad_request",
        ),
        (
            r#"{"error":{"kind":"http","status":400,"message":"maximum context length is 8192"}}"#,
            "llm_error:context_overflow",
        ),
        (
            r#"{"error":{"kind":"http","status":500}}"#,
            "llm_error:server",
        ),
        (
            r#"{"error":{"kind":"http","status":504}}"#,
            "llm_error:server",
        ),
        (r#"{"content":""}"#, "llm_empty"),
        (r#"{"content":null}"#, "llm_empty"),
        (r#"{"tool_calls":[]}"#, "llm_empty"),
    ];
    for (line, reason) in table {
        assert_eq!(said(&script(line).unwrap()).await, reason, "{line}");
    }
}

#[test]
fn a_wrong_line_is_refused_with_its_number_and_what_is_wrong() {
    let table = [
        ("", "the line is blank"),
        ("{", "EOF"),
        ("[]", "invalid"),
        ("{}", "neither `content`, `tool_calls` nor `error`"),
        (r#"{"delay_ms":1}"#, "neither `content`"),
        (r#"{"contents":"x"}"#, "unknown field `contents`"),
        (r#"{"content":5}"#, "expected a string"),
        (r#"{"content":"x","delay_ms":-1}"#, "invalid value"),
        (
            r#"{"content":"x","delay_ms":3600001}"#,
            "`delay_ms` is above",
        ),
        (
            r#"{"content":"x","error":{"kind":"timeout"}}"#,
            "`error` stands beside",
        ),
        (r#"{"error":{"kind":"odd"}}"#, "unknown variant `odd`"),
        (r#"{"error":{"kind":"http"}}"#, "from 400 to 599"),
        (
            r#"{"error":{"kind":"http","status":200}}"#,
            "from 400 to 599",
        ),
        (
            r#"{"error":{"kind":"timeout","status":500}}"#,
            "belong to the kind `http`",
        ),
        (
            r#"{"error":{"kind":"http","status":429,"retry_after":-1}}"#,
            "a number of seconds",
        ),
        (r#"{"tool_calls":[{"id":"c"}]}"#, "missing field `name`"),
        (
            r#"{"tool_calls":[{"name":"a","arguments":[1]}]}"#,
            "neither an object nor text",
        ),
    ];
    for (line, problem) in table {
        let error = script(&format!(
            "{{\"content\":\"ok\"}}\n{line}\n{{\"content\":\"ok\"}}"
        ));
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("script s.jsonl, line 2: "),
            "{line}: {error}"
        );
        assert!(error.contains(problem), "{line}: {error}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_a_typed_error() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing.jsonl");
    for path in [missing.as_path(), dir.path()] {
        let error = ScriptedModel::open(path).unwrap_err();
        assert!(matches!(error, Error::ScriptFile { .. }), "{error}");
    }
    let latin = dir.path().join("latin.jsonl");
    std::fs::write(&latin, b"{\"content\":\"\xe4\"}").unwrap();
    let error = ScriptedModel::open(&latin).unwrap_err();
    assert!(matches!(error, Error::ScriptFile { .. }), "{error}");
    let good = dir.path().join("good.jsonl");
    std::fs::write(&good, "\u{feff}{\"content\":\"x\"}").unwrap();
    assert!(ScriptedModel::open(&good).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_delay_passes_on_the_clock_before_the_answer_or_the_error() {
    let model = script("{\"content\":\"x\",\"delay_ms\":1500}\n{\"error\":{\"kind\":\"timeout\"},\"delay_ms\":500}").unwrap();
    let start = Instant::now();
    assert_eq!(said(&model).await, "x");
    assert_eq!(start.elapsed(), Duration::from_millis(1500));
    assert_eq!(said(&model).await, "llm_timeout");
    assert_eq!(start.elapsed(), Duration::from_millis(2000));
}

#[tokio::test]
async fn an_answer_streams_word_by_word_in_a_bounded_number_of_pieces() {
    let long = "word ".repeat(1000);
    let model = script(&format!(
        "{{\"content\":\"one two three\"}}\n{{\"content\":\"{long}\"}}"
    ))
    .unwrap();
    let request = ChatRequest::new([Message::human("go")]);
    let text = |chunk: Result<crate::chat::Chunk, _>| chunk.unwrap().text;
    let short: Vec<String> = model.stream(&request).map(text).collect().await;
    assert_eq!(short, ["one ", "two ", "three", ""]);
    let pieces: Vec<String> = model.stream(&request).map(text).collect().await;
    assert_eq!((pieces.len(), pieces.concat() == long), (65, true));
}

#[tokio::test]
async fn parallel_callers_take_each_line_once() {
    let lines: Vec<String> = (0..50)
        .map(|n| format!("{{\"content\":\"{n}\"}}"))
        .collect();
    let model = script(&lines.join("\n")).unwrap();
    let mut said = futures::future::join_all((0..50).map(|_| said(&model))).await;
    said.sort_by_key(|n| n.parse::<u32>().unwrap());
    let all: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(said, all);
}
