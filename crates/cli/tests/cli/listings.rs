//! Listings, explanations, drawings, the doctor.

use crate::sandbox::Sandbox;
use paraph_gateway::Stop;

#[test]
fn agents_are_listed_for_people_and_for_programs() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&["agents"]);
    assert!(ended.out.starts_with("support: "));
    let json = sandbox.run(&["agents", "--json"]).json();
    assert_eq!(json[0]["name"], "support");
    assert_eq!(json[0]["limits"]["max_tool_calls"], 5);
    assert_eq!(json[0]["limits"]["max_tokens"], serde_json::Value::Null);
    let tools: Vec<_> = json[0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(
        tools,
        [
            "get_user_profile",
            "get_user_billing",
            "search_policy",
            "issue_refund"
        ]
    );
}

#[test]
fn the_graph_is_drawn() {
    let sandbox = Sandbox::new();
    let mermaid = sandbox.run(&["graph", "support"]).out;
    assert!(
        mermaid.starts_with("flowchart TD\n") && mermaid.contains("n1[\"think\"]"),
        "{mermaid}"
    );
    let dot = sandbox.run(&["graph", "support", "--format", "dot"]).out;
    assert!(dot.starts_with("digraph \"support\" {"), "{dot}");
}

#[test]
fn every_stop_reason_is_explained() {
    let sandbox = Sandbox::new();
    let all = Stop::all();
    let listed = sandbox.run(&["explain", "--json"]).json();
    let listed: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["reason"].as_str().unwrap().to_owned())
        .collect();
    let reasons: Vec<_> = all.iter().map(ToString::to_string).collect();
    assert_eq!(listed, reasons);
    for stop in &all {
        let ended = sandbox.run(&["explain", &stop.to_string()]);
        let head = format!(
            "{stop} ({}, exit code {})\n",
            stop.status(),
            stop.exit_code()
        );
        assert!(ended.out.starts_with(&head), "{}", ended.out);
        assert_eq!(ended.out.lines().count(), 3);
    }
    assert_eq!(sandbox.run(&["explain"]).out.lines().count(), all.len());
}

#[test]
fn a_reason_of_a_tool_or_a_whole_family_is_explained() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&["explain", "tool_denied:drop_table"]);
    assert!(
        ended
            .out
            .starts_with("tool_denied:drop_table (stopped, exit code 3)")
    );
    let ended = sandbox.run(&["explain", "invalid_action"]);
    assert_eq!(ended.out.matches("What happened").count(), 7);
    let ended = sandbox.run(&["explain", "tool_denied"]);
    assert_eq!(ended.out.matches("What happened").count(), 1);
}

#[test]
fn an_unknown_reason_is_answered_with_the_closest_and_with_all() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&["explain", "max_step"]);
    assert_eq!((ended.code, ended.out.as_str()), (2, ""));
    assert!(
        ended.err.contains("did you mean `max_steps`?"),
        "{}",
        ended.err
    );
    assert!(ended.err.contains("tool_timeout:TOOL"));
}

#[test]
fn the_doctor_finds_what_is_wrong_and_where() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&["doctor"]);
    assert_eq!(ended.code, 0, "{}", ended.out);
    assert!(ended.out.contains("rehearsal"));
    let table = [
        ("OPENAI_BASE_URL", "not a url", "model"),
        ("OPENAI_TIMEOUT_SECONDS", "soon", "OPENAI_TIMEOUT_SECONDS"),
        ("PARAPH_MODEL", "nonsense:x", "PARAPH_MODEL"),
        ("PARAPH_CA_FILE", "none.pem", "none.pem"),
    ];
    for (name, value, expected) in table {
        let env = [("OPENAI_API_KEY", "sk-x"), (name, value)];
        let ended = sandbox.run_with(&["doctor"], &env, "");
        assert_eq!(ended.code, 2, "{name}: {}", ended.out);
        let wrong: Vec<_> = ended
            .out
            .lines()
            .filter(|line| line.starts_with("WRONG"))
            .collect();
        assert!(
            wrong.len() == 1 && wrong[0].contains(expected),
            "{name}: {}",
            ended.out
        );
    }
    sandbox.file("paraph.toml", "modle = 1\n");
    let ended = sandbox.run(&["doctor", "--json"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended
            .json()
            .as_array()
            .unwrap()
            .iter()
            .any(|check| check["verdict"] == "wrong")
    );
}

#[test]
fn the_doctor_asks_nobody_unless_told_to() {
    let sandbox = Sandbox::new();
    let env = [
        ("OPENAI_API_KEY", "sk-x"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:9"),
    ];
    assert_eq!(sandbox.run_with(&["doctor"], &env, "").code, 0);
    let ended = sandbox.run_with(&["doctor", "--online"], &env, "");
    assert_eq!(ended.code, 2);
    assert!(ended.out.contains("llm_timeout"), "{}", ended.out);
}

#[test]
fn shells_get_their_completions() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ended = sandbox.run(&["completions", shell]);
        assert!(
            ended.code == 0 && ended.out.contains("max-tool-calls"),
            "{shell}"
        );
    }
}
