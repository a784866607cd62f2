//! The order of the action checks as a table, and what must not crash.

use super::*;
use proptest::prelude::*;

fn reason(text: &str) -> String {
    parse_action(text).unwrap_err().to_string()
}

#[test]
fn the_order_of_checks_is_the_articles() {
    let table = [
        ("", "bad_json"),
        ("no json", "bad_json"),
        ("```json\n{}\n```", "bad_json"),
        (r#"{"kind":"final","answer":"yes"} thanks"#, "bad_json"),
        ("[]", "not_object"),
        ("\"tool\"", "not_object"),
        ("null", "not_object"),
        (r#"{"kind":"invalid","raw":"x","more":1}"#, "bad_json"),
        ("{}", "bad_kind"),
        (r#"{"kind":null}"#, "bad_kind"),
        (r#"{"kind":"Tool","name":"x"}"#, "bad_kind"),
        (r#"{"kind":["tool"]}"#, "bad_kind"),
        (r#"{"kind":{},"extra":1}"#, "bad_kind"),
        (r#"{"kind":"final","extra":1}"#, "extra_keys"),
        (
            r#"{"kind":"final","answer":"yes","name":"x"}"#,
            "extra_keys",
        ),
        (r#"{"kind":"final"}"#, "missing_answer"),
        (r#"{"kind":"final","answer":7}"#, "missing_answer"),
        (r#"{"kind":"final","answer":" \n\u001f"}"#, "missing_answer"),
        (r#"{"kind":"tool","extra":1}"#, "extra_keys"),
        (r#"{"kind":"tool"}"#, "missing_tool_name"),
        (r#"{"kind":"tool","name":""}"#, "missing_tool_name"),
        (r#"{"kind":"tool","name":7,"args":[]}"#, "missing_tool_name"),
        (r#"{"kind":"tool","name":"x","args":[]}"#, "bad_args"),
        (r#"{"kind":"tool","name":"x","args":"{}"}"#, "bad_args"),
        (r#"{"kind":"tool","name":"x","args":0}"#, "bad_args"),
    ];
    for (text, detail) in table {
        assert_eq!(reason(text), format!("invalid_action:{detail}"), "{text}");
    }
}

#[test]
fn what_crashes_or_slips_through_python_is_bad_json() {
    let digits = "9".repeat(4301);
    let deep = "[".repeat(100_000);
    let call = |args: &str| format!(r#"{{"kind":"tool","name":"x","args":{{"a":{args}}}}}"#);
    for text in [
        call(&digits),
        call(&format!("-{digits}")),
        call(&deep),
        call("NaN"),
        call("-Infinity"),
        call(r#""\ud800""#),
        call(r#""\udc00\ud800""#),
    ] {
        assert_eq!(reason(&text), "invalid_action:bad_json");
    }
}

#[test]
fn absent_and_null_arguments_are_none() {
    for text in [
        r#"{"kind":"tool","name":"x"}"#,
        r#"{"name":"x","args":null,"kind":"tool"}"#,
        r#"{"kind":"tool","name":"x","args":{}}"#,
        r#"{"kind":"final","kind":"tool","name":"x"}"#,
    ] {
        let step = Step::Tool(ToolCall::new("x", "{}").unwrap());
        assert_eq!(parse_action(text), Ok(step), "{text}");
    }
}

#[test]
fn a_blank_name_is_a_name_and_an_answer_is_stripped_as_python_does() {
    let Ok(Step::Tool(call)) = parse_action(r#"{"kind":"tool","name":" "}"#) else {
        panic!("a call")
    };
    assert_eq!(call.name(), " ");
    assert_eq!(
        parse_action("{\"kind\":\"final\",\"answer\":\"\\u001c\\u3000 yes\\u00a0\\n\"}"),
        Ok(Step::Final("yes".into()))
    );
}

#[test]
fn arguments_keep_their_digits_from_the_text_of_the_action() {
    let text = r#"{"kind":"tool","name":"x","args":{"id":2512292042121000001,"n":1e2,"z":-0}}"#;
    let Ok(Step::Tool(call)) = parse_action(text) else {
        panic!("a call")
    };
    assert_eq!(
        call.arguments(),
        r#"{"id":2512292042121000001,"n":1e2,"z":-0}"#
    );
}

#[test]
fn raw_action_shows_what_the_model_sent() {
    assert_eq!(
        raw_action("{\"kind\":\"tool\", \"kind\":1}").to_string(),
        r#"{"kind":1}"#
    );
    assert_eq!(
        raw_action("say \"hi\"").to_string(),
        r#"{"kind":"invalid","raw":"say \"hi\""}"#
    );
    let large = "x".repeat(2 << 20);
    assert_eq!(
        raw_action(&large).view().get("raw").and_then(View::as_str),
        Some(large.as_str())
    );
}

/// Something like an action: its parts, others, and what makes a text no JSON.
fn like_an_action() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("\"tool\"".to_owned()),
        Just("\"final\"".to_owned()),
        Just("\"invalid\"".to_owned()),
        Just("{}".to_owned()),
        Just("null".to_owned()),
        Just("2512292042121000001".to_owned()),
        Just("1e999".to_owned()),
        Just("[".repeat(400)),
        Just("\"\\ud800\"".to_owned()),
        Just("{\"a\":{\"a\":-0.0}}".to_owned()),
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
        any::<String>(),
    ];
    let key = prop_oneof![
        Just("kind".to_owned()),
        Just("name".to_owned()),
        Just("args".to_owned()),
        Just("answer".to_owned()),
        Just("k\\u0069nd".to_owned()),
        Just("more".to_owned()),
    ];
    let entries = proptest::collection::vec((key, value), 0..5).prop_map(|entries| {
        let written = entries
            .iter()
            .map(|(key, value)| format!("\"{key}\":{value}"));
        format!("{{{}}}", written.collect::<Vec<_>>().join(","))
    });
    let cut = (entries.clone(), any::<prop::sample::Index>()).prop_map(|(text, at)| {
        let end = text.floor_char_boundary(at.index(text.len() + 1));
        text.get(..end).unwrap_or_default().to_owned()
    });
    prop_oneof![4 => entries, 1 => cut, 1 => any::<String>()]
}

proptest! {
    #[test]
    fn fuzz_any_text_is_an_action_that_says_the_same_again_or_a_reason(text in like_an_action()) {
        let shown = raw_action(&text).to_string();
        match parse_action(&text) {
            Ok(Step::Tool(call)) => {
                prop_assert!(!call.name().is_empty());
                let name = serde_json::Value::from(call.name());
                let written = format!(r#"{{"kind":"tool","name":{name},"args":{}}}"#, call.args());
                prop_assert_eq!(parse_action(&written), Ok(Step::Tool(call)));
                prop_assert_eq!(parse_action(&shown), parse_action(&text));
            }
            Ok(Step::Final(answer)) => {
                prop_assert_eq!(answer.trim_matches(is_python_space), answer.as_str());
                prop_assert!(!answer.is_empty());
                prop_assert_eq!(parse_action(&shown), Ok(Step::Final(answer)));
            }
            Err(stop) => {
                let reason = stop.to_string();
                prop_assert!(reason.starts_with("invalid_action:"), "{}", reason);
                // What is shown of it is JSON, and no action either.
                prop_assert!(parse_action(&shown).is_err(), "{}", shown);
            }
        }
    }
}
