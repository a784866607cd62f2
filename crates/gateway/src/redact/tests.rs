//! Secrets by key and by shape, and what only looks like one.

use super::*;
use crate::json::{Bounds, Json};
use proptest::prelude::*;

fn json(text: &str) -> String {
    let json = Json::read(text, Bounds::default()).unwrap();
    Redactor::new(&Redaction::default()).json(json.view())
}

fn text(text: &str) -> String {
    Redactor::new(&Redaction::default()).text(text)
}

#[test]
fn values_of_secret_keys_are_gone_whole() {
    let table = [
        (r#"{"password":"x"}"#, r#"{"password":"[redacted]"}"#),
        (
            r#"{"db_Password":["a",{"b":1}]}"#,
            r#"{"db_Password":"[redacted]"}"#,
        ),
        (
            r#"{"apiKey":7,"API-KEY":"k"}"#,
            r#"{"apiKey":"[redacted]","API-KEY":"[redacted]"}"#,
        ),
        (
            r#"{"accessToken":"a","token":"b"}"#,
            r#"{"accessToken":"[redacted]","token":"[redacted]"}"#,
        ),
        (
            r#"{"Authorization":"x"}"#,
            r#"{"Authorization":"[redacted]"}"#,
        ),
        (
            r#"[{"deep":{"client_secret":"x"}}]"#,
            r#"[{"deep":{"client_secret":"[redacted]"}}]"#,
        ),
        // Whether there is a secret is none, and a count of tokens is none either.
        (
            r#"{"password":null,"secret":true}"#,
            r#"{"password":null,"secret":true}"#,
        ),
        (
            r#"{"max_tokens":100,"tokens":5}"#,
            r#"{"max_tokens":100,"tokens":5}"#,
        ),
        (
            r#"{"spinner":"x","author":"y"}"#,
            r#"{"spinner":"x","author":"y"}"#,
        ),
    ];
    for (given, expected) in table {
        assert_eq!(json(given), expected);
    }
}

#[test]
fn secret_shapes_are_gone_wherever_they_stand() {
    let key = "abcdefghijklmnopqrstuvwxyz0123456789";
    let table = [
        ("Bearer abcdef0123456789".to_owned(), "Bearer [redacted]"),
        (
            "got Authorization: Basic dXNlcjpwYXNz\nnext".to_owned(),
            "got Authorization: [redacted]\nnext",
        ),
        (
            "use Basic dXNlcjpwYXNz= now".to_owned(),
            "use Basic [redacted] now",
        ),
        (format!("sk-{key}"), "[redacted]"),
        (
            format!("it is ghp_{key}, or tvly-{key}."),
            "it is [redacted], or [redacted].",
        ),
        (
            format!("xoxb-{key} hf_{key} glpat-{key}"),
            "[redacted] [redacted] [redacted]",
        ),
        ("AKIAABCDEFGHIJKLMNOP".to_owned(), "[redacted]"),
        (
            format!("eyJhbGciOiJIUzI1NiJ9.{key}.{key} end"),
            "[redacted] end",
        ),
        (
            "postgres://ann:hunter2@db/x".to_owned(),
            "postgres://[redacted]@db/x",
        ),
        (
            "https://x/?api_key=abc123&q=1".to_owned(),
            "https://x/?api_key=[redacted]&q=1",
        ),
        (
            "https://x/?access_token=abc123".to_owned(),
            "https://x/?access_token=[redacted]",
        ),
        (
            r#"{"password": "hunter2"}"#.to_owned(),
            r#"{"password": "[redacted]"}"#,
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY----- after"
                .to_owned(),
            "[redacted] after",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\ncut off".to_owned(),
            "[redacted]",
        ),
        (
            "an ordinary sentence about basic tokens".to_owned(),
            "an ordinary sentence about basic tokens",
        ),
        ("mail ann@example.org".to_owned(), "mail ann@example.org"),
    ];
    for (given, expected) in table {
        assert_eq!(text(&given), expected);
    }
}

#[test]
fn card_numbers_with_a_right_check_digit_are_gone() {
    let table = [
        ("4111111111111111", "[redacted]"),
        ("pay 4111 1111 1111 1111 now", "pay [redacted] now"),
        ("5500-0000-0000-0004", "[redacted]"),
        ("3400 000000 00009", "[redacted]"),
        ("4111 1111 1111 1111 12", "[redacted] 12"),
        ("7 4111111111111111", "7 [redacted]"),
        ("4111111111111111 5500000000000004", "[redacted] [redacted]"),
        // A wrong check digit, no known beginning, a part of a longer number.
        ("4111111111111112", "4111111111111112"),
        ("1234567812345670", "1234567812345670"),
        ("94111111111111111", "94111111111111111"),
        ("id 2512292042121000001", "id 2512292042121000001"),
    ];
    for (given, expected) in table {
        assert_eq!(text(given), expected);
    }
    assert_eq!(json(r#"{"n":4111111111111111}"#), r#"{"n":"[redacted]"}"#);
    assert_eq!(
        json(r#"{"n":2512292042121000001}"#),
        r#"{"n":2512292042121000001}"#
    );
}

#[test]
fn what_else_is_secret_is_configured() {
    let redactor = Redactor::new(&Redaction {
        keys: vec!["patient_id".into()],
        emails: true,
    });
    let call = ToolCall::new("any", r#"{"patientId":"p7","who":"ann@example.org, bob"}"#).unwrap();
    assert_eq!(
        redactor.brief(&call, 200),
        r#"{"patientId":"[redacted]","who":"[redacted], bob"}"#
    );
}

#[test]
fn brief_arguments_are_cut_and_cannot_disturb_a_terminal() {
    let redactor = Redactor::new(&Redaction::default());
    let call = ToolCall::new("any", r#"{"q":"pay\u202Egnp.exe\u001b[2J\u200b"}"#).unwrap();
    assert_eq!(
        redactor.brief(&call, 200),
        r#"{"q":"pay\u202egnp.exe\u001b[2J\u200b"}"#
    );
    assert_eq!(redactor.brief(&call, 6), r#"{"q":"…"#);
    let broken = ToolCall::native("any", "{\"password\": \"hunter2\"\u{1b}[0m");
    assert_eq!(
        redactor.brief(&broken, 200),
        r#""{\"password\": \"[redacted]\"\u001b[0m""#
    );
}

proptest! {
    #[test]
    fn redacted_json_stays_json_with_the_same_keys(
        entries in prop::collection::btree_map("[a-z_]{1,12}", any::<String>(), 0..6)
    ) {
        let given = serde_json::to_string(&entries).unwrap();
        let redacted: std::collections::BTreeMap<String, String> =
            serde_json::from_str(&json(&given)).unwrap();
        prop_assert!(redacted.keys().eq(entries.keys()));
    }

    #[test]
    fn no_bearer_token_comes_through(before in "[ -~]{0,20}", token in "[A-Za-z0-9._~+/-]{12,40}") {
        let shown = text(&format!("{before} Bearer {token}"));
        prop_assert!(!shown.contains(&token), "{}", shown);
    }
}
