//! Waits, limits and reasons, on a paused clock.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::message::Message;
use crate::scripted::ScriptedModel;

const SECOND: Duration = Duration::from_secs(1);

fn scripted(lines: &[&str]) -> ScriptedModel {
    ScriptedModel::parse(&lines.join("\n"), "test.jsonl").unwrap()
}

fn retrying(lines: &[&str]) -> Retrying<ScriptedModel> {
    Retrying::new(scripted(lines), RetryPolicy::default())
}

fn request() -> ChatRequest {
    ChatRequest::new([Message::human("go")])
}

fn request_within(time: Duration) -> ChatRequest {
    ChatRequest {
        deadline: Some(Instant::now() + time),
        ..request()
    }
}

/// The answer's text, or the reason there is none, with the attempts made and the seconds it took.
async fn outcome(model: &Retrying<ScriptedModel>, request: &ChatRequest) -> (String, usize, f64) {
    let start = Instant::now();
    let made = model.model.attempts();
    let end = match model.complete(request).await {
        Ok(reply) => reply.message.text().into_owned(),
        Err(error) => error.reason().to_owned(),
    };
    let seconds = start.elapsed().as_secs_f64();
    (end, model.model.attempts() - made, seconds)
}

const RATE_LIMITED: &str =
    r#"{"error":{"kind":"http","status":429,"retry_after":30},"delay_ms":0}"#;
const OVERLOADED: &str = r#"{"error":{"kind":"http","status":503}}"#;
const ANSWER: &str = r#"{"content":"hello there"}"#;

#[tokio::test(start_paused = true)]
async fn the_next_attempt_comes_no_earlier_than_the_server_asks() {
    let (end, attempts, seconds) = outcome(&retrying(&[RATE_LIMITED, ANSWER]), &request()).await;
    assert_eq!((end.as_str(), attempts), ("hello there", 2));
    assert!((30.0..=37.6).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn there_is_exactly_one_layer_and_its_attempts_are_bounded() {
    let model = retrying(&[OVERLOADED, OVERLOADED, OVERLOADED, ANSWER]);
    let (end, attempts, seconds) = outcome(&model, &request()).await;
    assert_eq!((end.as_str(), attempts), ("llm_error:server", 3));
    assert!(
        (1.5..=1.9).contains(&seconds),
        "waits of 0.5 and 1 second: {seconds}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reply_says_how_many_attempts_it_took_streamed_or_whole() {
    let whole = retrying(&[OVERLOADED, ANSWER])
        .complete(&request())
        .await
        .unwrap();
    let model = retrying(&[OVERLOADED, ANSWER]);
    let request = request();
    let streamed = crate::chat::collect(model.stream(&request), |_, _| {})
        .await
        .unwrap();
    assert_eq!((whole.attempts, streamed.attempts), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn other_errors_are_not_tried_again() {
    let table = [
        (r#"{"error":{"kind":"timeout"}}"#, "llm_timeout"),
        (r#"{"error":{"kind":"connection"}}"#, "llm_timeout"),
        (
            r#"{"error":{"kind":"http","status":400}}"#,
            "llm_error:bad_request",
        ),
        (
            r#"{"error":{"kind":"http","status":401}}"#,
            "llm_error:auth",
        ),
        (
            r#"{"error":{"kind":"http","status":403}}"#,
            "llm_error:auth",
        ),
        (
            r#"{"error":{"kind":"http","status":413}}"#,
            "llm_error:context_overflow",
        ),
        (r#"{"content":null}"#, "llm_empty"),
    ];
    for (line, reason) in table {
        let outcome = outcome(&retrying(&[line, ANSWER]), &request()).await;
        assert_eq!(outcome, (reason.to_owned(), 1, 0.0), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_could_only_start_after_the_deadline_is_not_waited_for() {
    for seconds in [10, 30] {
        let request = request_within(seconds * SECOND);
        let outcome = outcome(&retrying(&[RATE_LIMITED, ANSWER]), &request).await;
        assert_eq!(outcome, ("llm_error:rate_limited".to_owned(), 1, 0.0));
    }
    let request = request_within(31 * SECOND);
    let (end, attempts, _) = outcome(&retrying(&[RATE_LIMITED, ANSWER]), &request).await;
    assert_eq!((end.as_str(), attempts), ("hello there", 2));
}

#[tokio::test(start_paused = true)]
async fn a_wait_above_the_longest_is_not_shortened() {
    let hour = r#"{"error":{"kind":"http","status":429,"retry_after":3600}}"#;
    let outcome = outcome(&retrying(&[hour, ANSWER]), &request()).await;
    assert_eq!(outcome, ("llm_error:rate_limited".to_owned(), 1, 0.0));
}

#[tokio::test(start_paused = true)]
async fn of_the_models_limit_and_the_runs_deadline_the_earlier_names_the_reason() {
    let slow = r#"{"content":"late","delay_ms":100000}"#;
    let table = [
        (61, "llm_timeout", 60.0),
        (60, "max_seconds", 60.0),
        (59, "max_seconds", 59.0),
        (0, "max_seconds", 0.0),
    ];
    for (deadline, reason, seconds) in table {
        let request = request_within(deadline * SECOND);
        let (end, _, took) = outcome(&retrying(&[slow]), &request).await;
        assert_eq!(end, reason, "{deadline}");
        // The timer wheel rounds up to a millisecond.
        assert!((took - seconds).abs() < 0.01, "{deadline}: {took}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_also_ends_an_attempt_that_follows_a_wait() {
    let slow = r#"{"content":"late","delay_ms":50000}"#;
    let request = request_within(40 * SECOND);
    let (end, attempts, seconds) = outcome(&retrying(&[RATE_LIMITED, slow]), &request).await;
    assert_eq!((end.as_str(), attempts), ("max_seconds", 2));
    assert!((seconds - 40.0).abs() < 0.01, "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn a_script_that_ends_during_a_retry_leaves_the_original_error() {
    let (end, attempts, _) = outcome(&retrying(&[OVERLOADED]), &request()).await;
    assert_eq!((end.as_str(), attempts), ("llm_error:server", 2));
    let (end, attempts, _) = outcome(&retrying(&[ANSWER]).after_one().await, &request()).await;
    assert_eq!((end.as_str(), attempts), ("llm_error:script_exhausted", 1));
}

impl Retrying<ScriptedModel> {
    async fn after_one(self) -> Self {
        self.complete(&request()).await.unwrap();
        self
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_fit_is_refused_before_it_is_sent() {
    let model = retrying(&[ANSWER]);
    let request = ChatRequest {
        context_window: Some(4),
        ..request()
    };
    let outcome = outcome(&model, &request).await;
    assert_eq!(outcome, ("llm_error:context_overflow".to_owned(), 0, 0.0));
}

/// A model whose stream gives one chunk and then fails, or hangs.
struct Breaks {
    hangs: bool,
    opened: AtomicU32,
}

impl ChatModel for Breaks {
    fn name(&self) -> &str {
        "breaks"
    }

    fn stream<'a>(&'a self, _: &'a ChatRequest) -> ChunkStream<'a> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        let first = stream::iter([Ok(Chunk::text("half an "))]);
        let error = ModelError::Server {
            retry_after: None,
            message: "gone".into(),
        };
        if self.hangs {
            return first.chain(stream::pending()).boxed();
        }
        first.chain(stream::iter([Err(error)])).boxed()
    }
}

async fn broken_stream(hangs: bool, request: &ChatRequest) -> (Vec<String>, u32, Duration) {
    let opened = AtomicU32::new(0);
    let model = Retrying::new(Breaks { hangs, opened }, RetryPolicy::default());
    let start = Instant::now();
    let show = |item: Result<Chunk, ModelError>| match item {
        Ok(chunk) => chunk.text,
        Err(error) => error.reason().to_owned(),
    };
    let seen = model.stream(request).map(show).collect().await;
    (
        seen,
        model.model.opened.load(Ordering::Relaxed),
        start.elapsed(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_has_begun_is_not_tried_again() {
    let (seen, opened, _) = broken_stream(false, &request()).await;
    assert_eq!(
        (seen, opened),
        (vec!["half an ".into(), "llm_error:server".into()], 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_hangs_ends_at_the_limit_of_its_attempt() {
    let (seen, opened, took) = broken_stream(true, &request()).await;
    assert_eq!(
        (seen, opened),
        (vec!["half an ".into(), "llm_timeout".into()], 1)
    );
    assert_eq!(took.as_secs(), 60);
    let (seen, _, took) = broken_stream(true, &request_within(7 * SECOND)).await;
    assert_eq!(seen, ["half an ", "max_seconds"]);
    assert_eq!(took.as_secs(), 7);
}

#[test]
fn waits_double_and_spread_by_a_quarter_at_most() {
    for _ in 0..1000 {
        let extra = jitter(8 * SECOND);
        assert!(extra < 2 * SECOND, "{extra:?}");
    }
}
