//! The pure parts: errors' bodies, waits, event streams.

use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::refusal::{Refusal, retry_after};
use super::server::wait_of;
use super::sse::SseDecoder;
use crate::error::ModelError;

#[test]
fn an_errors_body_gives_its_words_in_any_known_form() {
    let table = [
        (
            r#"{"error":{"message":"no","type":"t","code":"c"}}"#,
            ("c t", "no"),
        ),
        (
            r#"{"error":{"message":"no","type":"t","code":400}}"#,
            ("400 t", "no"),
        ),
        (r#"{"error":"no"}"#, ("", "no")),
        (r#"{"message":"no"}"#, ("", "no")),
        (r#"{"detail":[1]}"#, ("", "[1]")),
        ("upstream is down", ("", "upstream is down")),
        ("<html><h1>502</h1></html>", ("", "")),
        ("", ("", "")),
    ];
    for (body, (code, message)) in table {
        let read = Refusal::read(body.as_bytes());
        assert_eq!(
            (read.code.as_str(), read.message.as_str()),
            (code, message),
            "{body}"
        );
    }
}

#[test]
fn every_providers_refusals_have_their_reason() {
    let table = [
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            "llm_error:context_overflow",
        ),
        (
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"x"}}"#,
            "llm_error:context_overflow",
        ),
        (
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            "llm_error:auth",
        ),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "llm_error:server",
        ),
        (
            0,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "llm_error:server",
        ),
        (
            0,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"x"}}"#,
            "llm_error:rate_limited",
        ),
        (
            0,
            r#"{"type":"error","error":{"type":"timeout_error","message":"x"}}"#,
            "llm_error:server",
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#,
            "llm_error:auth",
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}]"#,
            "llm_error:context_overflow",
        ),
        (
            0,
            r#"{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}"#,
            "llm_error:server",
        ),
        (
            0,
            r#"{"error":{"message":"x","status":"RESOURCE_EXHAUSTED"}}"#,
            "llm_error:rate_limited",
        ),
    ];
    for (status, body, reason) in table {
        let refusal = Refusal {
            status,
            ..Refusal::read(body.as_bytes())
        };
        assert_eq!(refusal.into_error().reason(), reason, "{status} {body}");
    }
}

#[test]
fn google_asks_for_a_wait_in_the_body() {
    let body = r#"{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":[
        {"@type":"type.googleapis.com/google.rpc.Help"},
        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37.5s"}]}}"#;
    let error = Refusal::read(body.as_bytes()).into_error();
    assert_eq!(error.retry_after(), Some(Duration::from_millis(37_500)));
}

#[test]
fn a_model_without_a_temperature_is_told_from_a_temperature_out_of_range() {
    let table = [
        (
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported.",
            true,
        ),
        ("`temperature` is deprecated for this model.", true),
        ("temperature: range: 0..1", false),
        ("max_tokens is not supported", false),
    ];
    for (message, none) in table {
        let refusal = |status| Refusal {
            status,
            message: message.to_owned(),
            ..Refusal::default()
        };
        assert_eq!(refusal(400).wants_no_temperature(), none, "{message}");
        assert!(!refusal(422).wants_no_temperature());
    }
}

#[test]
fn a_missing_model_is_told_from_other_refusals() {
    let table = [
        (
            404,
            r#"{"error":{"message":"The model `m-1` does not exist","code":"model_not_found"}}"#,
            true,
        ),
        (
            404,
            r#"{"error":{"message":"model \"m-1\" not found, try pulling it first"}}"#,
            true,
        ),
        (
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: m-1"}}"#,
            true,
        ),
        (
            404,
            r#"{"error":{"code":404,"message":"models/m-1 is not found for API version v1beta","status":"NOT_FOUND"}}"#,
            true,
        ),
        (
            400,
            r#"{"object":"error","message":"Invalid model: m-1","type":"invalid_model","code":"1500"}"#,
            true,
        ),
        (
            400,
            r#"{"error":{"message":"m-1 is not a valid model ID","code":400}}"#,
            true,
        ),
        (404, "<html>", false),
        (404, r#"{"detail":"Not Found"}"#, false),
        (
            400,
            r#"{"error":{"message":"the model m-1 wants no temperature","param":"temperature"}}"#,
            false,
        ),
        (500, r#"{"error":"model m-1 not found"}"#, false),
    ];
    for (status, body, missing) in table {
        let refusal = Refusal {
            status,
            ..Refusal::read(body.as_bytes())
        };
        assert_eq!(refusal.misses_model("m-1"), missing, "{status} {body}");
    }
}

#[test]
fn retry_after_is_seconds_or_a_date_by_the_servers_own_clock() {
    let now = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let date = "Sun, 09 Sep 2001 01:47:10 GMT"; // 30 seconds after `now`
    let skewed = "Sun, 09 Sep 2001 01:47:00 GMT";
    let table = [
        ("30", None, Some(30.0)),
        (" 1.5 ", None, Some(1.5)),
        ("0", None, Some(0.0)),
        (date, None, Some(30.0)),
        (date, Some(skewed), Some(10.0)),
        (skewed, Some(date), Some(0.0)),
        ("-1", None, None),
        ("NaN", None, None),
        ("soon", None, None),
    ];
    for (value, server, seconds) in table {
        let wait = retry_after(value, server, now);
        assert_eq!(
            wait,
            seconds.map(Duration::from_secs_f64),
            "{value} {server:?}"
        );
    }
}

#[test]
fn a_wait_beyond_all_numbers_is_a_wait_and_not_leave_to_try_at_once() {
    for value in ["1e300", "1e999", "inf", "99999999999999999999999"] {
        let wait = retry_after(value, None, UNIX_EPOCH);
        assert_eq!(wait, Some(Duration::MAX), "{value}");
    }
    let headers = HeaderMap::from_iter([(
        HeaderName::from_static("retry-after-ms"),
        HeaderValue::from_static("99999999999999999999999999"),
    )]);
    assert_eq!(wait_of(&headers), Some(Duration::MAX));
}

#[test]
fn long_or_multiline_server_messages_are_cut_to_one_line() {
    let error = ModelError::from_status(500, "", &"a\nb".repeat(1000), None).to_string();
    assert!(error.chars().count() < 400 && !error.contains('\n'));
}

/// The events of a stream cut at the given places.
fn decoded(bytes: &[u8], cuts: &[usize]) -> Vec<String> {
    let mut decoder = SseDecoder::default();
    let mut events = Vec::new();
    let mut rest = bytes;
    for cut in cuts {
        let (head, tail) = rest.split_at((*cut).min(rest.len()));
        events.extend(decoder.push(head));
        rest = tail;
    }
    events.extend(decoder.push(rest));
    events.extend(decoder.end());
    events
}

#[test]
fn event_streams_are_read_by_the_standard() {
    let table: [(&str, &[&str]); 10] = [
        ("data: a\n\ndata: b\n\n", &["a", "b"]),
        ("data: a\r\n\r\ndata: b\r\rdata:c\n\n", &["a", "b", "c"]),
        ("\u{feff}data: a\n\n", &["a"]),
        (": heartbeat\n\ndata: a\n\n", &["a"]),
        ("event: x\nid: 1\nretry: 5\ndata: a\n\n", &["a"]),
        ("data: a\ndata: b\n\n", &["a\nb"]),
        ("data\n\n", &[""]),
        ("data:  a\n\n", &[" a"]),
        ("\n\n\n", &[]),
        (
            "data: no blank line at the end",
            &["no blank line at the end"],
        ),
    ];
    for (stream, events) in table {
        assert_eq!(decoded(stream.as_bytes(), &[]), events, "{stream:?}");
    }
}

proptest! {
    #[test]
    fn an_event_stream_may_be_cut_anywhere_even_inside_a_character(
        texts in proptest::collection::vec("[a-zä日🦀]{1,8}", 1..6),
        ends in proptest::collection::vec(prop_oneof![Just("\n"), Just("\r\n"), Just("\r")], 6),
        cuts in proptest::collection::vec(0..9_usize, 0..40),
    ) {
        let mut stream = String::new();
        for (text, end) in texts.iter().zip(ends) {
            stream.push_str(&format!("data: {text}{end}{end}"));
        }
        prop_assert_eq!(decoded(stream.as_bytes(), &cuts), texts);
    }
}
