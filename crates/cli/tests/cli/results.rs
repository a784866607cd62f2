//! Result objects, byte for byte, and answers for people.

use crate::sandbox::{FINAL, PROFILE, Sandbox};

#[test]
fn the_result_object_is_written_to_the_letter() {
    let sandbox = Sandbox::new();
    let search =
        r#" {"args": {"query": "Crème 😀", "n": 1e2}, "name": "search_policy", "kind": "tool"} "#;
    let spec = sandbox.script(&[PROFILE, search]);
    let ended = sandbox.run(&["run", "support", "--json", "--quiet", "--model", &spec]);
    // `n` is no argument of the tool: the run stops, and the failed call is in the trace alone.
    let expected = r#"{
  "status": "stopped",
  "stop_reason": "tool_bad_args:search_policy",
  "trace": [
    {
      "step": 1,
      "tool": "get_user_profile",
      "args_hash": "feaa769a39ae",
      "ok": true
    },
    {
      "step": 2,
      "tool": "search_policy",
      "args_hash": "HASH",
      "ok": false,
      "stop_reason": "tool_bad_args:search_policy"
    }
  ],
  "history": [
    {
      "step": 1,
      "action": {
        "kind": "tool",
        "name": "get_user_profile",
        "args": {
          "user_id": 42
        }
      },
      "observation": {
        "user": {
          "id": 42,
          "name": "Anna",
          "country": "US",
          "tier": "pro"
        }
      }
    }
  ]
}
"#;
    let hash = paraph_gateway::ToolCall::new("search_policy", r#"{"query":"Crème 😀","n":1e2}"#);
    let expected = expected.replace("HASH", hash.unwrap().args_hash());
    assert_eq!(
        (ended.out.as_str(), ended.err.as_str()),
        (expected.as_str(), "")
    );
    assert_eq!(ended.code, 3);
}

#[test]
fn answers_and_refused_actions_stand_before_the_trace() {
    let sandbox = Sandbox::new();
    let table = [
        (
            "{\"kind\":\"final\",\"answer\":\"  Ça va 日本 \u{1F600}\\n\"}",
            "{\n  \"status\": \"ok\",\n  \"stop_reason\": \"success\",\n  \"answer\": \"Ça va 日本 \u{1F600}\",\n  \"trace\": [],\n  \"history\": []\n}\n",
            0,
        ),
        (
            r#"{"kind":"final","answer":"x","n":1.50e3}"#,
            "{\n  \"status\": \"stopped\",\n  \"stop_reason\": \"invalid_action:extra_keys\",\n  \"raw_action\": {\n    \"kind\": \"final\",\n    \"answer\": \"x\",\n    \"n\": 1.50e3\n  },\n  \"trace\": [],\n  \"history\": []\n}\n",
            3,
        ),
        (
            "I think",
            "{\n  \"status\": \"stopped\",\n  \"stop_reason\": \"invalid_action:bad_json\",\n  \"raw_action\": {\n    \"kind\": \"invalid\",\n    \"raw\": \"I think\"\n  },\n  \"trace\": [],\n  \"history\": []\n}\n",
            3,
        ),
    ];
    for (content, expected, code) in table {
        let spec = sandbox.script(&[content]);
        let ended = sandbox.run(&["run", "support", "--json", "--model", &spec]);
        assert_eq!(
            (ended.out.as_str(), ended.code),
            (expected, code),
            "{content}"
        );
    }
}

#[test]
fn exact_digits_reach_the_history() {
    let sandbox = Sandbox::new();
    let huge = r#"{"kind":"tool","name":"get_user_profile","args":{"user_id":170141183460469231731687303715884105727}}"#;
    let spec = sandbox.script(&[huge, FINAL]);
    let ended = sandbox.run(&["run", "support", "--json", "--model", &spec]);
    assert!(
        ended
            .out
            .contains("\"user_id\": 170141183460469231731687303715884105727\n")
    );
    assert!(
        ended
            .out
            .contains("user 170141183460469231731687303715884105727 not found")
    );
}

#[test]
fn the_rehearsal_answers_by_the_facts() {
    let sandbox = Sandbox::new();
    let table: [(&[&str], &str); 5] = [
        (&[], "Yes, you can get a refund of 49.00 USD"),
        (
            &["Could you reimburse me?"],
            "Yes, you can get a refund of 49.00 USD",
        ),
        (&["--user", "7"], "There is nothing to refund (0.00 USD)"),
        (
            &["--user", "99"],
            "I cannot tell whether a refund is possible, so none is: user 99 not found",
        ),
        (
            &["Which plan am I on?"],
            "Anna, you are on the pro_monthly plan",
        ),
    ];
    for (more, expected) in table {
        let args: Vec<&str> = ["run", "support", "--model", "rehearsal"]
            .iter()
            .chain(more)
            .copied()
            .collect();
        let ended = sandbox.run(&args);
        assert!(ended.out.starts_with(expected), "{}", ended.out);
        assert_eq!((ended.code, ended.out.lines().count()), (0, 1));
    }
}

#[test]
fn a_stop_is_explained_to_people() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[PROFILE, PROFILE]);
    let ended = sandbox.run(&["run", "support", "--quiet", "--model", &spec]);
    assert_eq!(ended.code, 3);
    let lines: Vec<_> = ended.out.lines().collect();
    assert_eq!(lines[0], "Stopped: loop_detected");
    assert!(lines[1].starts_with("The model asked again"));
    assert!(lines[2].starts_with("What to do: "));
}

#[test]
fn what_could_disturb_a_terminal_is_not_shown_to_people() {
    let sandbox = Sandbox::new();
    let evil = r#"{"kind":"tool","name":"rm\u001b[2J","args":{"a\u001b]0;x":"\u202e"}}"#;
    let spec = sandbox.script(&[evil]);
    let ended = sandbox.run(&["run", "support", "--model", &spec]);
    assert_eq!(ended.code, 3);
    for text in [&ended.out, &ended.err] {
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{202e}'),
            "{text:?}"
        );
    }
    let spec = sandbox.script(&[r#"{"kind":"final","answer":"\u001b[31mred"}"#]);
    let ended = sandbox.run(&["run", "support", "--model", &spec]);
    assert_eq!(ended.out, "\u{fffd}[31mred\n");
}
