//! Every stop reason that a scripted model can bring about, with its exit code, and the article's list
//! of what to test next.

use crate::sandbox::{BILLING, FINAL, PROFILE, Sandbox, tool};

/// A script, further flags, the reason and the exit code.
type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a str, i32);

fn check(table: &[Case<'_>]) {
    let sandbox = Sandbox::new();
    for (script, more, reason, code) in table {
        let spec = sandbox.script(script);
        let base = ["run", "support", "--json", "--model", &spec];
        let args: Vec<&str> = base.iter().chain(*more).copied().collect();
        let ended = sandbox.run(&args);
        assert_eq!(
            (ended.reason().as_str(), ended.code),
            (*reason, *code),
            "{script:?} {more:?}\n{}",
            ended.err
        );
    }
}

#[test]
fn budgets_stop_a_run() {
    let none = ["--max-steps", "0", "--max-seconds", "0"];
    check(&[
        (&[FINAL], &[], "success", 0),
        (&[PROFILE], &["--max-steps", "1"], "max_steps", 3),
        (&[PROFILE], &none, "max_steps", 3),
        (
            &[PROFILE, BILLING],
            &["--max-tool-calls", "1"],
            "max_tool_calls",
            3,
        ),
        (&[PROFILE], &["--max-tool-calls", "0"], "max_tool_calls", 3),
        (&[PROFILE], &["--max-seconds", "0"], "max_seconds", 3),
        (&[PROFILE], &["--max-tokens", "50"], "max_tokens", 3),
    ]);
}

#[test]
fn loops_stop_a_run_by_the_rule_that_was_chosen() {
    let spaced = tool("search_policy", r#"{"query":"refund policy"}"#);
    let more = tool("search_policy", r#"{"query":"  refund   policy "}"#);
    check(&[
        (&[PROFILE, PROFILE], &[], "loop_detected", 3),
        (&[PROFILE, PROFILE, FINAL], &["--loop", "off"], "success", 0),
        (
            &[PROFILE, PROFILE],
            &["--loop", "cycle"],
            "loop_detected",
            3,
        ),
        (&[&spaced, &more], &["--loop", "soft"], "loop_detected", 3),
        (&[&spaced, &more, FINAL], &[], "success", 0),
    ]);
}

#[test]
fn the_policy_and_the_registry_stop_a_run() {
    let search = tool("search_policy", r#"{"query":"refund"}"#);
    let text = tool("get_user_profile", r#"{"user_id":"42"}"#);
    let denied = "tool_denied:search_policy";
    let both = ["--deny", "search_policy", "--allow", "search_policy"];
    let rm = tool("rm", "{}");
    let blank = tool(" ", "{}");
    check(&[
        (&[&search], &["--deny", "search_policy"], denied, 3),
        (&[&search], &["--deny", "search_*"], denied, 3),
        (&[&search], &both, denied, 3),
        (&[&rm], &[], "tool_denied:rm", 3),
        (&[&blank], &[], "tool_denied: ", 3),
        (&[&rm], &["--allow", "rm"], "tool_missing:rm", 3),
        (&[&text], &[], "tool_bad_args:get_user_profile", 3),
    ]);
}

#[test]
fn invalid_actions_stop_a_run() {
    let table = [
        ("[1]", "not_object"),
        ("{", "bad_json"),
        (r#"{"kind":"think"}"#, "bad_kind"),
        (r#"{"kind":"tool","why":1}"#, "extra_keys"),
        (r#"{"kind":"final","answer":" "}"#, "missing_answer"),
        (r#"{"kind":"tool"}"#, "missing_tool_name"),
        (r#"{"kind":"tool","name":"x","args":[]}"#, "bad_args"),
    ];
    for (content, detail) in table {
        check(&[(&[content], &[], &format!("invalid_action:{detail}"), 3)]);
    }
}

#[test]
fn failures_of_the_model_stop_a_run_for_these_reasons() {
    let table: [(&[&str], &str); 10] = [
        (&[], "llm_error:script_exhausted"),
        (&[r#"{"error":{"kind":"timeout"}}"#], "llm_timeout"),
        (&[r#"{"error":{"kind":"connection"}}"#], "llm_timeout"),
        (&[r#"{"content":null}"#], "llm_empty"),
        (
            &[r#"{"error":{"kind":"http","status":401}}"#],
            "llm_error:auth",
        ),
        (
            &[r#"{"error":{"kind":"http","status":400}}"#],
            "llm_error:bad_request",
        ),
        (
            &[r#"{"error":{"kind":"http","status":413}}"#],
            "llm_error:context_overflow",
        ),
        // The original error is the reason when the lines run out during a retry.
        (
            &[r#"{"error":{"kind":"http","status":429,"retry_after":0}}"#],
            "llm_error:rate_limited",
        ),
        (
            &[r#"{"error":{"kind":"http","status":500,"retry_after":0}}"#; 3],
            "llm_error:server",
        ),
        // A provider's tool call is no action.
        (
            &[
                r#"{"content":null,"tool_calls":[{"name":"search_policy","arguments":{"query":"x"}}]}"#,
            ],
            "llm_empty",
        ),
    ];
    let sandbox = Sandbox::new();
    for (lines, reason) in table {
        let spec = sandbox.lines(lines);
        let ended = sandbox.run(&["run", "support", "--json", "--model", &spec]);
        assert_eq!(
            (ended.reason().as_str(), ended.code),
            (reason, 4),
            "{lines:?}"
        );
        assert_eq!(ended.json()["trace"], serde_json::json!([]));
    }
}

#[test]
fn a_slow_model_is_cut_off_by_its_own_limit() {
    let sandbox = Sandbox::new();
    let spec = sandbox.lines(&[r#"{"content":"{}","delay_ms":60000}"#]);
    let args = ["run", "support", "--json", "--model", &spec];
    let ended = sandbox.run_with(&args, &[("OPENAI_TIMEOUT_SECONDS", "0.05")], "");
    assert_eq!((ended.reason().as_str(), ended.code), ("llm_timeout", 4));
}

#[test]
fn costs_are_capped_by_configured_prices() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "paraph.toml",
        "[prices.scripted]\ninput_per_million = 0.40\noutput_per_million = 1.6\n",
    );
    let spec = sandbox.lines(&[
        r#"{"content":"{\"kind\":\"tool\",\"name\":\"get_user_profile\",\"args\":{\"user_id\":42}}","usage":{"input_tokens":20000,"output_tokens":1250}}"#,
        r#"{"content":"{\"kind\":\"final\",\"answer\":\"Yes.\"}","usage":{"input_tokens":10,"output_tokens":10}}"#,
    ]);
    let run = |most: &str| {
        sandbox.run(&[
            "run",
            "support",
            "--json",
            "--model",
            &spec,
            "--max-cost",
            most,
        ])
    };
    // The first answer costs 0.0100 dollars.
    let capped = run("0.01");
    assert_eq!((capped.reason().as_str(), capped.code), ("max_cost", 3));
    assert!(
        capped.err.contains("cost 0.0100/0.0100 USD"),
        "{}",
        capped.err
    );
    assert_eq!(run("1").reason(), "success");
}

#[test]
fn what_a_user_may_use_in_a_day_stops_the_next_run_and_says_when_it_is_over() {
    let sandbox = Sandbox::new();
    sandbox.file("paraph.toml", "[per_user_day]\nmax_tool_calls = 1\n");
    let spec = sandbox.script(&[PROFILE, FINAL]);
    let run = || sandbox.run(&["run", "support", "--json", "--model", &spec]);
    assert_eq!(run().reason(), "success");
    let stopped = run();
    assert_eq!(
        (stopped.reason().as_str(), stopped.code),
        ("max_tool_calls", 3)
    );
    assert!(
        stopped
            .err
            .contains("of the 1 tool calls that this user has for ")
            && stopped.err.contains("T00:00:00Z on"),
        "{}",
        stopped.err
    );
}

#[test]
fn without_the_policy_search_the_run_is_stopped_by_policy() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&[
        "run",
        "support",
        "--model",
        "rehearsal",
        "--json",
        "--deny",
        "search_policy",
    ]);
    let json = ended.json();
    assert_eq!(
        (ended.reason().as_str(), ended.code),
        ("tool_denied:search_policy", 3)
    );
    assert_eq!(json["trace"][2]["ok"], false);
    assert_eq!(json["history"].as_array().unwrap().len(), 2);
    // The catalogue that the model sees did not shrink: it did ask.
    assert!(ended.err.contains("act    search_policy"));
}

#[test]
fn with_one_tool_call_the_policy_stops_the_agent_and_not_the_model() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&[
        "run",
        "support",
        "--model",
        "rehearsal",
        "--json",
        "--max-tool-calls",
        "1",
    ]);
    let trace = serde_json::json!([
        {"step": 1, "tool": "get_user_profile", "args_hash": "feaa769a39ae", "ok": true},
        {"step": 2, "tool": "get_user_billing", "args_hash": "feaa769a39ae", "ok": false, "stop_reason": "max_tool_calls"},
    ]);
    assert_eq!(ended.json()["trace"], trace);
}

#[test]
fn another_user_gets_another_answer() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&[
        "run",
        "support",
        "--model",
        "rehearsal",
        "--json",
        "--user",
        "7",
    ]);
    let json = ended.json();
    assert_eq!(json["history"][0]["observation"]["user"]["name"], "Max");
    assert!(
        json["answer"]
            .as_str()
            .unwrap()
            .contains("nothing to refund")
    );
}

#[test]
fn an_allowed_tool_that_does_not_exist_is_missing_and_said_beforehand() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[&tool("get_user_profil", "{}")]);
    let ended = sandbox.run(&[
        "run",
        "support",
        "--model",
        &spec,
        "--json",
        "--allow",
        "get_user_profil",
    ]);
    assert_eq!(ended.reason(), "tool_missing:get_user_profil");
    assert!(
        ended
            .err
            .contains("warning: `get_user_profil` is allowed, but no such tool is registered")
    );
    assert!(ended.err.contains("did you mean `get_user_profile`?"));
}
