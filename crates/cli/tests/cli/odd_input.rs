//! What Python's looseness made of odd arguments, and what crashed the article's program: each with the
//! outcome that our documentation names.

use crate::sandbox::{FINAL, Sandbox, tool};

#[test]
fn the_schema_decides_about_odd_arguments() {
    let profile = "get_user_profile";
    let search = "search_policy";
    // Name, arguments, the observation that the model reads, or nothing if the run stops.
    let table = [
        (profile, r#"{"user_id":42.0}"#, Some(r#""name": "Anna""#)),
        (profile, r#"{"user_id":4.2e1}"#, Some(r#""name": "Anna""#)),
        (profile, r#"{"user_id":-1}"#, Some("user -1 not found")),
        (profile, r#"{"user_id":1e30}"#, None),
        (profile, r#"{"user_id":42.5}"#, None),
        (profile, r#"{"user_id":"42"}"#, None),
        (profile, r#"{"user_id":true}"#, None),
        (profile, r#"{"user_id":null}"#, None),
        (profile, r#"{"user_id":[42]}"#, None),
        (profile, r#"{"user_id":42,"x":1}"#, None),
        (profile, "{}", None),
        (profile, "null", None),
        (search, r#"{"query":5}"#, None),
        (search, r#"{"query":""}"#, Some("refund-v3")),
    ];
    let sandbox = Sandbox::new();
    for (name, args, seen) in table {
        let spec = sandbox.script(&[&tool(name, args), FINAL]);
        let ended = sandbox.run(&["run", "support", "--json", "--model", &spec]);
        match seen {
            Some(seen) => {
                assert_eq!(ended.reason(), "success", "{args}");
                assert!(ended.out.contains(seen), "{args}: {}", ended.out);
            }
            None => assert_eq!(ended.reason(), format!("tool_bad_args:{name}"), "{args}"),
        }
    }
}

#[test]
fn an_empty_query_finds_the_first_document_alone() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[&tool("search_policy", r#"{"query":""}"#), FINAL]);
    let ended = sandbox.run(&["run", "support", "--json", "--model", &spec]);
    let matches = ended.json()["history"][0]["observation"]["matches"].clone();
    assert_eq!(matches.as_array().unwrap().len(), 1);
    assert_eq!(matches[0]["id"], "refund-v3");
}

#[test]
fn what_crashed_the_articles_program_is_a_clean_stop() {
    let digits = format!(
        r#"{{"kind":"tool","name":"x","args":{{"n":{}}}}}"#,
        "9".repeat(4301)
    );
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let table = [
        (r#"{"kind":["tool"]}"#, "invalid_action:bad_kind"),
        (r#"{"kind":{}}"#, "invalid_action:bad_kind"),
        (digits.as_str(), "invalid_action:bad_json"),
        (deep.as_str(), "invalid_action:bad_json"),
        (
            r#"{"kind":"final","answer":NaN}"#,
            "invalid_action:bad_json",
        ),
        (
            r#"{"kind":"final","answer":"\ud800"}"#,
            "invalid_action:bad_json",
        ),
        (r#"{"kind":"invalid","more":1}"#, "invalid_action:bad_json"),
        ("null", "invalid_action:not_object"),
        ("", "llm_empty"),
        ("{}", "invalid_action:bad_kind"),
        (" ", "invalid_action:bad_json"),
        ("```json\n{}\n```", "invalid_action:bad_json"),
    ];
    let sandbox = Sandbox::new();
    for (content, reason) in table {
        let spec = sandbox.script(&[content]);
        let ended = sandbox.run(&["run", "support", "--json", "--model", &spec]);
        let shown: String = content.chars().take(40).collect();
        assert_eq!(ended.reason(), reason, "{shown}");
    }
}

#[test]
fn denied_and_looped_calls_use_up_the_budget() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[&tool("rm", "{}")]);
    let ended = sandbox.run(&["run", "support", "--model", &spec]);
    assert!(ended.err.contains("tool calls 1/5"), "{}", ended.err);
}
