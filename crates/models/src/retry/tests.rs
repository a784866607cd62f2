//! Waits, limits and reasons, on a paused clock.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::time::Instant;

use super::bounds::jitter;
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

/// F15, pi#9595: a layer of retries that did not wait as long as the server said.
#[tokio::test(start_paused = true)]
async fn the_next_attempt_comes_no_earlier_than_the_server_asks() {
    let (end, attempts, seconds) = outcome(&retrying(&[RATE_LIMITED, ANSWER]), &request()).await;
    assert_eq!((end.as_str(), attempts), ("hello there", 2));
    assert!((30.0..=37.6).contains(&seconds), "{seconds}");
}

/// F15: and there is no second layer around it.
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
async fn a_stream_that_hangs_ends_at_the_limit_of_its_silence_or_the_runs() {
    let (seen, opened, took) = broken_stream(true, &request()).await;
    assert_eq!(
        (seen, opened),
        (vec!["half an ".into(), "llm_timeout".into()], 1)
    );
    assert_eq!(took.as_secs(), 30);
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

/// A model whose pieces come after these many seconds each; a piece without text is a sign of life.
struct Slow(Vec<(u64, &'static str)>);

impl ChatModel for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn stream<'a>(&'a self, _: &'a ChatRequest) -> ChunkStream<'a> {
        let pieces = stream::iter(self.0.clone());
        let pieces = pieces.then(|(seconds, text)| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(Chunk::text(text))
        });
        pieces.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn each_limit_on_time_ends_a_streamed_answer_and_says_which_it_was() {
    let policy = RetryPolicy {
        timeout: 60 * SECOND,
        first_token: Some(20 * SECOND),
        idle: Some(10 * SECOND),
        ..RetryPolicy::default()
    };
    type Pieces = &'static [(u64, &'static str)];
    let table: [(Pieces, Option<&str>, u64); 7] = [
        (&[(19, "a"), (9, "b")], None, 28),
        (&[(21, "a")], Some("no first word for 20s"), 20),
        // A server that only shows that it lives has not begun to answer.
        (&[(15, ""), (15, "a")], Some("no first word for 20s"), 20),
        (
            &[(1, "a"), (11, "b")],
            Some("it fell silent in the middle of its answer for 10s"),
            11,
        ),
        (&[(1, "a"), (9, ""), (9, ""), (9, "b")], None, 28),
        (
            &[
                (9, "a"),
                (9, "b"),
                (9, "c"),
                (9, "d"),
                (9, "e"),
                (9, "f"),
                (9, "g"),
            ],
            Some("no whole answer for 60s"),
            60,
        ),
        (&[], None, 0),
    ];
    for (pieces, missed, seconds) in table {
        let model = Retrying::new(Slow(pieces.to_vec()), policy);
        let (request, start) = (request(), Instant::now());
        let mut last = None;
        let mut stream = model.stream(&request);
        while let Some(item) = stream.next().await {
            last = item.err();
        }
        let expected = missed.map(|missed| format!("the model did not answer in time: {missed}"));
        assert_eq!(last.map(|error| error.to_string()), expected, "{pieces:?}");
        assert_eq!(start.elapsed().as_secs(), seconds, "{pieces:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_failed_before_its_first_word_is_tried_again() {
    struct Twice(AtomicU32);

    impl ChatModel for Twice {
        fn name(&self) -> &str {
            "twice"
        }

        fn stream<'a>(&'a self, _: &'a ChatRequest) -> ChunkStream<'a> {
            let head = Chunk {
                model: Some("m".into()),
                ..Chunk::default()
            };
            let end = match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => Err(ModelError::Server {
                    retry_after: None,
                    message: "overloaded".into(),
                }),
                _ => Ok(Chunk::text("hello")),
            };
            stream::iter([Ok(head), end]).boxed()
        }
    }

    let model = Retrying::new(Twice(AtomicU32::new(0)), RetryPolicy::default());
    let request = request();
    let reply = crate::chat::collect(model.stream(&request), |_, _| {}).await;
    let reply = reply.unwrap();
    assert_eq!(
        (reply.message.text().as_ref(), reply.attempts),
        ("hello", 2)
    );
}

fn limited(lines: &[&str], limits: crate::limits::RateLimits) -> Retrying<ScriptedModel> {
    retrying(lines).within(Arc::new(Limiter::new(limits)))
}

#[tokio::test(start_paused = true)]
async fn each_attempt_waits_for_its_turn_and_no_longer_than_the_run_lasts() {
    let limits = crate::limits::RateLimits {
        requests_per_minute: std::num::NonZeroU32::new(2),
        ..Default::default()
    };
    let model = limited(&[OVERLOADED, ANSWER, ANSWER, ANSWER], limits);
    let (end, attempts, seconds) = outcome(&model, &request()).await;
    assert_eq!((end.as_str(), attempts), ("hello there", 2));
    assert!(seconds < 1.0, "{seconds}");
    let cut = outcome(&model, &request_within(3 * SECOND)).await;
    assert_eq!((cut.0.as_str(), cut.1), ("max_seconds", 0));
    // The third attempt's turn comes half a minute after the second; waiting is no time of the attempt.
    let (end, attempts, seconds) = outcome(&model, &request()).await;
    assert_eq!((end.as_str(), attempts), ("hello there", 1));
    assert!((26.0..30.0).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn what_the_server_counted_is_what_was_used_streamed_or_whole() {
    let limits = crate::limits::RateLimits {
        tokens_per_minute: std::num::NonZeroU64::new(600),
        ..Default::default()
    };
    let cheap = r#"{"content":"x","usage":{"input_tokens":1,"output_tokens":2}}"#;
    let model = limited(&[cheap; 3], limits);
    let request = ChatRequest {
        max_tokens: Some(590),
        ..request()
    };
    let start = Instant::now();
    model.complete(&request).await.unwrap();
    let streamed: Vec<_> = model.stream(&request).collect().await;
    assert!(streamed.iter().all(Result::is_ok));
    model.complete(&request).await.unwrap();
    assert!(start.elapsed() < 2 * SECOND, "{:?}", start.elapsed());
}
