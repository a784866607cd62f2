//! Agents that stand in TOML files: made, checked, described, run, gone on with.

use crate::sandbox::{Sandbox, tool};
use crate::stand_in::{Answer, StandIn};
use serde_json::{Value, json};

/// An agent with JSON actions that has the tool `think`.
const STRICT: &str = r#"
name = "clerk"
dialect = "strict"
prompt = "Serve {{shop}}."
variables = { shop = "the corner shop" }
task = "Count the apples"
[tools]
builtin = ["think"]
[budget]
max_steps = 4
"#;

/// The same with tool calls.
const NATIVE: &str = r#"
name = "clerk"
prompt = "Serve {{shop}}."
variables = { shop = "the corner shop" }
model = "scripted:lines.jsonl"
[tools]
builtin = ["think"]
"#;

/// A line of a script that calls `think`.
fn thinks(id: &str, about: &str) -> String {
    json!({"tool_calls": [{"id": id, "name": "think", "arguments": {"reflection": about}}]})
        .to_string()
}

fn says(text: &str) -> String {
    json!({ "content": text }).to_string()
}

#[test]
fn a_folder_is_made_that_runs_at_once_and_is_never_written_over() {
    let sandbox = Sandbox::new();
    let made = sandbox.run(&["init", "planner"]);
    assert_eq!(
        (made.code, made.out.as_str()),
        (
            0,
            "planner/agent.toml\nplanner/.env.example\nplanner/.gitignore\n"
        )
    );
    assert!(
        made.err.contains("paraph run planner/agent.toml"),
        "{}",
        made.err
    );
    let checked = sandbox.run(&["check", "planner/agent.toml"]);
    assert_eq!(
        (checked.code, checked.out.as_str(), checked.err.as_str()),
        (0, "planner/agent.toml: no mistakes\n", "")
    );
    let ran = sandbox.run(&[
        "run",
        "planner/agent.toml",
        "Plan a day in Basel",
        "--json",
        "--quiet",
    ]);
    let result = ran.json();
    assert_eq!(
        (ran.code, result["stop_reason"].as_str()),
        (0, Some("success")),
        "{}{}",
        ran.out,
        ran.err
    );
    assert_eq!(result["trace"][0]["tool"], "think");
    assert!(
        result["answer"]
            .as_str()
            .unwrap()
            .contains("You asked: Plan a day in Basel")
    );
    assert_eq!(result["messages"][0]["type"], "human");

    sandbox.file("planner/.env.example", "MINE=1");
    std::fs::remove_file(sandbox.path("planner/.gitignore")).unwrap();
    let again = sandbox.run(&["init", "planner"]);
    assert_eq!(again.code, 2);
    assert!(
        again.err.contains(
            "there already: planner/agent.toml, planner/.env.example. Nothing was written"
        ),
        "{}",
        again.err
    );
    assert!(!sandbox.path("planner/.gitignore").exists());
    assert_eq!(
        std::fs::read_to_string(sandbox.path("planner/.env.example")).unwrap(),
        "MINE=1"
    );
}

#[test]
fn all_mistakes_are_told_with_their_places() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "agent.toml",
        "name = \"clerk\"\nprompt = \"{{shop}}\"\nmodle = \"x\"\n[tools]\nbuiltin = [\"thnik\"]\n",
    );
    let told = "agent.toml:2:11: the prompt uses `{{shop}}`, and `variables` has no `shop`; write it below [variables]: `shop = \"…\"`\n\
                agent.toml:3:1: there is no key `modle`; did you mean `model`?\n\
                agent.toml:5:12: there is no builtin tool `thnik`; did you mean `think`?\n";
    let checked = sandbox.run(&["check", "agent.toml"]);
    assert_eq!(
        (checked.code, checked.out.as_str(), checked.err.as_str()),
        (2, told, "3 mistakes\n")
    );
    let ran = sandbox.run(&["run", "agent.toml", "x"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(
        ran.err.contains("agent.toml has 3 mistakes:") && ran.err.contains("agent.toml:5:12:"),
        "{}",
        ran.err
    );
    let report = sandbox.run(&["check", "agent.toml", "--json"]);
    let json: Value = report.json();
    assert_eq!(
        (report.code, &json["ok"], &json["mistakes"][1]),
        (
            2,
            &json!(false),
            &json!({
                "line": 3, "column": 1, "key": "modle", "what": "there is no key `modle`", "instead": "did you mean `model`?",
            })
        )
    );
    let missing = sandbox.run(&["check", "none.toml"]);
    assert_eq!(missing.code, 2);
    assert!(
        missing.err.contains("none.toml: No such file"),
        "{}",
        missing.err
    );
}

#[test]
fn http_tools_are_checked_by_the_program_that_makes_them() {
    let sandbox = Sandbox::new();
    let tool = "[[tools.http]]\nname = \"order\"\ndescription = \"x\"\nurl = \"ftp://shop.example.com/{number}\"\nmethod = \"POST\"\n";
    sandbox.file(
        "agent.toml",
        &format!("name = \"clerk\"\nprompt = \"x\"\n{tool}"),
    );
    let checked = sandbox.run(&["check", "agent.toml"]);
    assert_eq!(checked.code, 2);
    assert!(
        checked
            .out
            .contains("agent.toml:3:1: the tool `order`: `url`:"),
        "{}",
        checked.out
    );
}

#[test]
fn the_schema_is_printed_for_editors() {
    let sandbox = Sandbox::new();
    let schema = sandbox.run(&["schema", "agent"]).json();
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    assert_eq!(
        schema["properties"]["dialect"]["enum"],
        json!(["native", "strict"])
    );
}

#[test]
fn an_agent_with_json_actions_gives_the_articles_result() {
    let sandbox = Sandbox::new();
    sandbox.file("shop/clerk.toml", STRICT);
    let spec = sandbox.script(&[
        &tool("think", r#"{"reflection":"count"}"#),
        r#"{"kind":"final","answer":"Twelve."}"#,
    ]);
    let ran = sandbox.run(&[
        "run",
        "shop/clerk.toml",
        "--json",
        "--quiet",
        "--model",
        &spec,
    ]);
    let result = ran.json();
    let keys: Vec<_> = ["status", "stop_reason", "answer", "trace", "history"]
        .iter()
        .map(|key| ran.out.find(&format!("\n  \"{key}\"")))
        .collect();
    assert!(
        keys.is_sorted() && keys.iter().all(Option::is_some),
        "{}",
        ran.out
    );
    assert_eq!((ran.code, &result["answer"]), (0, &json!("Twelve.")));
    assert_eq!(
        result["history"][0]["action"],
        json!({"kind": "tool", "name": "think", "args": {"reflection": "count"}})
    );
    assert_eq!(
        result["history"][0]["observation"],
        json!("Noted, keep to it: count")
    );

    // The first failed call ends the run, by its own reason.
    let table = [
        (
            tool("web_search", r#"{"query":"x"}"#),
            "tool_denied:web_search",
        ),
        (tool("think", "{}"), "tool_bad_args:think"),
        ("Twelve.".to_owned(), "invalid_action:bad_json"),
    ];
    for (content, reason) in table {
        let spec = sandbox.script(&[&content]);
        let ran = sandbox.run(&[
            "run",
            "shop/clerk.toml",
            "--json",
            "--quiet",
            "--model",
            &spec,
        ]);
        assert_eq!((ran.code, ran.reason().as_str()), (3, reason));
    }
}

#[test]
fn the_files_settings_hold_unless_the_command_says_otherwise() {
    let sandbox = Sandbox::new();
    let loops = "loop = \"off\"\n";
    sandbox.file("clerk.toml", &format!("{loops}{STRICT}"));
    let think = tool("think", r#"{"reflection":"count"}"#);
    let spec = sandbox.script(&[think.as_str(); 6]);
    let run = |more: &[&str]| {
        let args = ["run", "clerk.toml", "--json", "--quiet", "--model", &spec];
        sandbox.run(&[&args[..], more].concat()).reason()
    };
    assert_eq!(run(&[]), "max_steps");
    assert_eq!(run(&["--loop", "exact"]), "loop_detected");
    assert_eq!(run(&["--max-tool-calls", "2"]), "max_tool_calls");
    assert_eq!(run(&["--deny", "think"]), "tool_denied:think");
    let missing = sandbox.script(&[&tool("fly", "{}")]);
    let allowed = sandbox.run(&[
        "run",
        "clerk.toml",
        "--json",
        "--allow",
        "fly",
        "--model",
        &missing,
    ]);
    assert_eq!(allowed.reason(), "tool_missing:fly");
}

#[test]
fn prompts_are_filled_in_and_unknown_variables_refused() {
    let sandbox = Sandbox::new();
    sandbox.file("clerk.toml", STRICT);
    let shown = |more: &[&str]| {
        let args = ["run", "clerk.toml", "--verbose", "--model", "rehearsal"];
        sandbox.run(&[&args[..], more].concat())
    };
    assert!(shown(&[]).err.contains("system | Serve the corner shop."));
    assert!(
        shown(&["--var", "shop=a = b"])
            .err
            .contains("system | Serve a = b.")
    );
    let table: [(&[&str], &str); 3] = [
        (
            &["--var", "shpo=x"],
            "the file has no variable `shpo`: did you mean `shop`?",
        ),
        (&["--var", "shop"], "write NAME=VALUE"),
        (
            &["--var", "shop=a", "--var", "shop=b"],
            "--var: `shop` is given twice",
        ),
    ];
    for (more, expected) in table {
        let ended = shown(more);
        assert_eq!(ended.code, 2, "{more:?}");
        assert!(ended.err.contains(expected), "{}", ended.err);
    }
    let support = sandbox.run(&["run", "support", "--var", "a=b"]);
    assert!(
        support.err.contains("`support` is no agent in a file"),
        "{}",
        support.err
    );
}

#[test]
fn models_are_found_from_the_files_folder_and_a_thread_goes_on() {
    let sandbox = Sandbox::new();
    sandbox.file("shop/clerk.toml", NATIVE).file(
        "shop/lines.jsonl",
        &[thinks("a", "one"), says("First.")].join("\n"),
    );
    let first = sandbox.run(&[
        "run",
        "shop/clerk.toml",
        "One?",
        "--json",
        "--quiet",
        "--thread",
        "t",
    ]);
    assert_eq!(
        (first.code, &first.json()["answer"]),
        (0, &json!("First.")),
        "{}",
        first.err
    );
    sandbox.file("shop/lines.jsonl", &says("Second."));
    let second = sandbox.run(&[
        "run",
        "shop/clerk.toml",
        "Two?",
        "--json",
        "--quiet",
        "--thread",
        "t",
    ]);
    let texts: Vec<_> = second.json()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].clone())
        .collect();
    assert_eq!(
        texts,
        [
            "One?",
            "",
            "Noted, keep to it: one",
            "First.",
            "Two?",
            "Second."
        ]
    );
    let other = sandbox.run(&["run", "shop/clerk.toml", "x", "--quiet"]);
    assert_eq!(other.code, 0, "{}", other.err);
    let nothing = sandbox.run(&["run", "shop/clerk.toml"]);
    assert_eq!(nothing.code, 2);
    assert!(
        nothing
            .err
            .contains("what is it to do? paraph run shop/clerk.toml \"TASK\""),
        "{}",
        nothing.err
    );
}

#[cfg(unix)]
#[test]
fn a_killed_run_is_resumed_from_elsewhere_unless_its_file_says_something_else() {
    use crate::resuming::start;
    let sandbox = Sandbox::new();
    let hangs = json!({"content": "Twelve.", "delay_ms": 3_600_000}).to_string();
    let lines = |last: &str| [thinks("a", "count"), last.to_owned()].join("\n");
    sandbox
        .file("shop/clerk.toml", NATIVE)
        .file("shop/lines.jsonl", &lines(&hangs));
    let args = [
        "run",
        "shop/clerk.toml",
        "How many?",
        "--events",
        "--max-seconds",
        "3600",
        "--var",
        "shop=A",
    ];
    let hanging = start(&sandbox, &args, 2);
    let id = hanging.run_id();
    hanging.end("-KILL");
    sandbox.file("shop/lines.jsonl", &lines(&says("Twelve.")));
    let resume = || sandbox.run(&["runs", "resume", &id, "--json", "--quiet"]);

    sandbox.file("shop/clerk.toml", &NATIVE.replace("Serve", "Ignore"));
    let changed = resume();
    assert_eq!(changed.code, 2);
    assert!(
        changed
            .err
            .contains("clerk.toml has changed since the run began"),
        "{}",
        changed.err
    );
    std::fs::remove_file(sandbox.path("shop/clerk.toml")).unwrap();
    let gone = resume();
    assert_eq!(gone.code, 2);
    assert!(
        gone.err.contains("which is no longer there"),
        "{}",
        gone.err
    );

    // What does not matter to a run that goes on may change.
    sandbox.file(
        "shop/clerk.toml",
        &format!("# Mine\nabout = \"Counts\"\n{NATIVE}[budget]\nmax_steps = 1\n"),
    );
    let resumed = resume();
    assert_eq!(
        (resumed.code, &resumed.json()["answer"]),
        (0, &json!("Twelve.")),
        "{}",
        resumed.err
    );
    assert_eq!(resumed.json()["trace"].as_array().unwrap().len(), 1);

    // Its result can be read when the file is gone.
    std::fs::remove_file(sandbox.path("shop/clerk.toml")).unwrap();
    let shown = sandbox.run(&["runs", "show", &id, "--json"]).json();
    assert_eq!(shown["result"]["answer"], json!("Twelve."));
    assert_eq!(
        shown["arguments"]["file"]["variables"],
        json!({"shop": "A"})
    );
}

#[test]
fn an_http_tool_is_called_with_a_secret_that_nobody_sees() {
    let sandbox = Sandbox::new();
    let server = StandIn::start(|seen| {
        let known = seen
            .headers
            .iter()
            .any(|(name, value)| name == "authorization" && value == "Bearer hunter2hunter2");
        let body = json!({"items": [{"state": if known { "sent" } else { "?" }}]});
        Answer::json(200, &body)
    });
    let file = format!(
        r#"
name = "clerk"
prompt = "Look orders up."
[[tools.http]]
name = "order"
description = "Where an order is"
url = "{}/orders/{{number}}"
headers = {{ Authorization = {{ env = "SHOP_TOKEN", prefix = "Bearer " }} }}
arguments = {{ number = {{ type = "integer" }} }}
result = "$.items[0].state"
"#,
        server.url()
    );
    sandbox.file("clerk.toml", &file);
    let call = json!({"tool_calls": [{"id": "a", "name": "order", "arguments": {"number": 7}}]})
        .to_string();
    let spec = sandbox.lines(&[&call, &says("It was sent.")]);
    let args = [
        "run",
        "clerk.toml",
        "Where is 7?",
        "--json",
        "--model",
        &spec,
    ];
    let ran = sandbox.run_with(&args, &[("SHOP_TOKEN", "hunter2hunter2")], "");
    let result = ran.json();
    assert_eq!(
        (ran.code, &result["messages"][2]["content"]),
        (0, &json!("sent")),
        "{}{}",
        ran.out,
        ran.err
    );
    assert_eq!(server.seen()[0].target, "/orders/7");
    assert!(!ran.out.contains("hunter2") && !ran.err.contains("hunter2"));
    let without = sandbox.run(&args);
    assert_eq!(without.code, 2);
    assert!(
        without.err.contains("the secret SHOP_TOKEN is not set"),
        "{}",
        without.err
    );
}

#[test]
fn what_has_to_be_approved_waits_and_is_said_to() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "clerk.toml",
        &NATIVE.replace("[tools]", "[policy]\napprove = [\"think\"]\n[tools]"),
    );
    let checked = sandbox.run(&["check", "clerk.toml"]);
    assert_eq!(checked.code, 0);
    assert!(
        checked
            .err
            .contains("a person has to approve `think` each time"),
        "{}",
        checked.err
    );
    let spec = sandbox.lines(&[&thinks("a", "x"), &says("Refused.")]);
    let ran = sandbox.run(&[
        "run",
        "clerk.toml",
        "x",
        "--json",
        "--quiet",
        "--model",
        &spec,
    ]);
    assert_eq!(
        (ran.code, &ran.json()["stop_reason"]),
        (5, &json!("approval_pending"))
    );
}

#[test]
fn files_are_described_drawn_and_examined_like_other_agents() {
    let sandbox = Sandbox::new();
    sandbox
        .file("clerk.toml", STRICT)
        .file("talker.toml", NATIVE)
        .file("lines.jsonl", &says("Hi."));
    let listed = sandbox.run(&["agents", "talker.toml"]);
    assert!(
        listed
            .out
            .starts_with("clerk: An agent in a file\n  model   scripted:"),
        "{}",
        listed.out
    );
    assert!(
        listed.out.contains("    think  read  Takes a note"),
        "{}",
        listed.out
    );
    let json = sandbox.run(&["agents", "clerk.toml", "--json"]).json();
    assert_eq!(
        (&json[0]["dialect"], &json[0]["limits"]["max_steps"]),
        (&json!("strict"), &json!(4))
    );
    assert!(sandbox.run(&["graph", "clerk.toml"]).out.contains("decide"));
    assert!(sandbox.run(&["graph", "talker.toml"]).out.contains("model"));
    let examined = sandbox.run(&["doctor", "talker.toml"]);
    assert_eq!(examined.code, 0, "{}", examined.out);
    assert!(
        examined.out.contains("talker.toml has no mistakes"),
        "{}",
        examined.out
    );
    sandbox.file("bad.toml", "name = 1");
    let examined = sandbox.run(&["doctor", "bad.toml"]);
    assert_eq!(examined.code, 2);
    assert!(examined.out.contains("bad.toml:1:8:"), "{}", examined.out);
}

#[test]
fn a_thread_of_a_files_agent_is_forked_without_the_file() {
    let sandbox = Sandbox::new();
    sandbox.file("clerk.toml", NATIVE).file(
        "lines.jsonl",
        &[thinks("a", "one"), says("First.")].join("\n"),
    );
    assert_eq!(
        sandbox
            .run(&["run", "clerk.toml", "One?", "--quiet", "--thread", "t"])
            .code,
        0
    );
    std::fs::remove_file(sandbox.path("clerk.toml")).unwrap();
    let history = sandbox.run(&["threads", "history", "t", "--json"]).json();
    let first = history.as_array().unwrap().last().unwrap();
    let id = first["checkpoint_id"]
        .as_str()
        .or(first["checkpoint"].as_str())
        .or(first["id"].as_str())
        .unwrap()
        .to_owned();
    let forked = sandbox.run(&["threads", "fork", "t", &id]);
    assert_eq!(forked.code, 0, "{}", forked.err);
}

/// A clerk that asks a counter, each with a script of its own.
const TWO: &str = r#"
name = "clerk"
prompt = "Serve."
model = "scripted:clerk.jsonl"
[tools]
agents = ["counter"]
[budget]
max_children = 2
[agents.counter]
about = "Counts things"
prompt = "Count."
model = "scripted:counter.jsonl"
tools = { builtin = ["think"] }
budget = { max_steps = 2 }
"#;

fn asks(id: &str, task: &str) -> String {
    json!({"tool_calls": [{"id": id, "name": "counter", "arguments": {"task": task}}]}).to_string()
}

#[test]
fn an_agent_calls_another_which_is_traced_and_paid_for() {
    let sandbox = Sandbox::new();
    sandbox.file("clerk.toml", TWO);
    sandbox.file(
        "clerk.jsonl",
        &[asks("a", "Apples?"), says("Twelve apples.")].join("\n"),
    );
    sandbox.file(
        "counter.jsonl",
        &[thinks("b", "count"), says("Twelve.")].join("\n"),
    );
    let ran = sandbox.run(&["run", "clerk.toml", "How many?", "--json"]);
    let result = ran.json();
    assert_eq!(
        (ran.code, &result["answer"]),
        (0, &json!("Twelve apples.")),
        "{}{}",
        ran.out,
        ran.err
    );
    assert_eq!(result["messages"][2]["content"], json!("Twelve."));
    let traced: Vec<_> = ran
        .err
        .lines()
        .filter(|line| line.starts_with("counter | "))
        .collect();
    assert!(
        traced
            .iter()
            .any(|line| line.contains("step 1/2  act    think")),
        "{}",
        ran.err
    );
    // Its call of a tool is one of the whole run's: a call of the agent and one of the agent's.
    assert!(
        ran.err.contains("budget steps 2/8, tool calls 2/6"),
        "{}",
        ran.err
    );
    let events = sandbox.run(&[
        "run",
        "clerk.toml",
        "How many?",
        "--events",
        "--model",
        "rehearsal",
    ]);
    let child = events
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|event| event["type"] == "child");
    let child = child.unwrap();
    assert_eq!(
        (&child["agent"], &child["event"]["type"]),
        (&json!("counter"), &json!("run_started"))
    );
    assert!(
        child["child_thread_id"]
            .as_str()
            .unwrap()
            .contains("/counter-")
    );
}

#[test]
fn a_run_that_kept_something_back_says_what_it_has_when_a_limit_stops_it() {
    let sandbox = Sandbox::new();
    let reserve = "budget = { max_steps = 2, synthesis_reserve = 2000 }";
    sandbox.file("clerk.toml", TWO);
    let counter = [thinks("b", "1"), thinks("c", "2"), says("Some, at least.")];
    sandbox.file("counter.jsonl", &counter.join("\n"));
    let clerk = [asks("a", "Apples?"), says("Some.")];
    sandbox.file("clerk.jsonl", &clerk.join("\n"));
    let run = ["run", "clerk.toml", "How many?", "--json"];
    let bare = sandbox.run(&run).json();
    let without = bare["messages"][2]["content"].as_str().unwrap();
    assert!(
        without.contains("stopped without an answer: max_steps"),
        "{bare}"
    );
    sandbox.file(
        "clerk.toml",
        &TWO.replace("budget = { max_steps = 2 }", reserve),
    );
    let ran = sandbox.run(&run);
    let with = "`counter` was stopped (max_steps), and had this to say: Some, at least.";
    assert_eq!(
        ran.json()["messages"][2]["content"],
        json!(with),
        "{}",
        ran.err
    );
    let traced =
        "counter | step 2/2  think  max_steps: a last answer, without tools, from what there is";
    assert!(ran.err.contains(traced), "{}", ran.err);
    // The same as the main agent: the limit is the reason, and the answer is there all the same.
    let alone = format!(
        "name = \"counter\"\nprompt = \"Count.\"\ntools = {{ builtin = [\"think\"] }}\n{reserve}\n"
    );
    sandbox.file("counter.toml", &alone);
    let run = [
        "run",
        "counter.toml",
        "Count.",
        "--model",
        "scripted:counter.jsonl",
    ];
    let ran = sandbox.run(&run);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (3, "Some, at least.\n"),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("stopped: max_steps; this is what could be said until then")
    );
    let json = sandbox
        .run(&[&run[..], &["--json", "--quiet"]].concat())
        .json();
    assert_eq!(
        [&json["status"], &json["stop_reason"], &json["answer"]],
        [
            &json!("stopped"),
            &json!("max_steps"),
            &json!("Some, at least.")
        ]
    );
}

#[test]
fn a_child_that_stops_is_something_its_caller_reads() {
    let sandbox = Sandbox::new();
    sandbox.file("clerk.toml", TWO);
    sandbox.file(
        "counter.jsonl",
        &[thinks("b", "1"), thinks("c", "2"), thinks("d", "3")].join("\n"),
    );
    sandbox.file(
        "clerk.jsonl",
        &[
            asks("a", "A?"),
            asks("b", "B?"),
            asks("c", "C?"),
            says("No idea."),
        ]
        .join("\n"),
    );
    let ran = sandbox.run(&["run", "clerk.toml", "How many?", "--json", "--quiet"]);
    let result = ran.json();
    assert_eq!(
        (ran.code, &result["answer"]),
        (0, &json!("No idea.")),
        "{}{}",
        ran.out,
        ran.err
    );
    let read: Vec<_> = [2, 4, 6]
        .map(|n| {
            result["messages"][n]["content"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .into();
    assert!(
        read[0].contains("`counter` stopped without an answer: max_steps"),
        "{read:?}"
    );
    assert!(
        read[2].contains("all calls of agents are used up"),
        "{read:?}"
    );
    assert_eq!(
        result["trace"][0]["stop_reason"],
        json!("tool_error:counter")
    );
}

#[cfg(unix)]
#[test]
fn a_caller_that_is_killed_while_its_agent_runs_goes_on_and_repeats_no_call() {
    let sandbox = Sandbox::new();
    let server = StandIn::start(|_| Answer::json(200, &json!({"apples": 12})));
    let stock = format!(
        "[[agents.counter.tools.http]]\nname = \"stock\"\ndescription = \"Counts\"\nurl = \"{}/stock\"\n",
        server.url()
    );
    let two = TWO.replace("tools = { builtin = [\"think\"] }\n", "");
    sandbox.file("clerk.toml", &format!("{two}{stock}"));
    let counts = json!({"tool_calls": [{"id": "b", "name": "stock", "arguments": {}}]}).to_string();
    let counter = |delay: u64| {
        let last = json!({"content": "Twelve.", "delay_ms": delay}).to_string();
        [counts.clone(), last].join("\n")
    };
    sandbox
        .file(
            "clerk.jsonl",
            &[asks("a", "Apples?"), says("Twelve apples.")].join("\n"),
        )
        .file("counter.jsonl", &counter(3_600_000));
    let args = [
        "run",
        "clerk.toml",
        "How many?",
        "--events",
        "--max-seconds",
        "3600",
    ];
    let hanging = crate::resuming::start_until(&sandbox, &args, |event| {
        event["type"] == "child"
            && event["event"]["type"] == "step_started"
            && event["event"]["step"] == 2
    });
    let id = hanging.run_id();
    hanging.end("-KILL");
    sandbox.file("counter.jsonl", &counter(0));
    let resumed = sandbox.run(&["runs", "resume", &id, "--json"]);
    let result = resumed.json();
    assert_eq!(
        (
            resumed.code,
            &result["answer"],
            &result["messages"][2]["content"]
        ),
        (0, &json!("Twelve apples."), &json!("Twelve.")),
        "{}",
        resumed.err
    );
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn models_that_stand_in_are_found_from_the_files_folder_and_take_over() {
    let sandbox = Sandbox::new();
    let server = StandIn::start(|_| Answer::json(401, &json!({"error": {"message": "no"}})));
    let (model, url) = ("model = \"scripted:lines.jsonl\"", server.url());
    let other = format!("model = \"{url}/v1#small\"\nfallbacks = [\"scripted:lines.jsonl\"]");
    sandbox
        .file("shop/clerk.toml", &NATIVE.replace(model, &other))
        .file("shop/lines.jsonl", &says("I stand in."));
    let ran = sandbox.run(&["run", "shop/clerk.toml", "x", "--json", "--quiet"]);
    assert_eq!(
        (ran.code, &ran.json()["answer"]),
        (0, &json!("I stand in.")),
        "{}{}",
        ran.out,
        ran.err
    );
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn circles_depths_and_lonely_agents_are_mistakes() {
    let agent = |name: &str, calls: &str| {
        format!(
            "[agents.{name}]\nabout = \"x\"\nprompt = \"x\"\ntools = {{ agents = [{calls}] }}\n"
        )
    };
    let start = "name = \"clerk\"\nprompt = \"x\"\ntools = { agents = [\"a\"] }\n";
    let table = [
        (
            format!("{}{}", agent("a", "\"b\""), agent("b", "\"a\"")),
            "agents call each other in a circle: a -> b -> a",
        ),
        (
            agent("a", "\"a\""),
            "agents call each other in a circle: a -> a",
        ),
        (
            agent("a", "\"clerk\""),
            "`clerk` is the main agent, which nobody calls",
        ),
        (
            format!("{}{}", agent("a", ""), agent("b", "")),
            "no agent calls `b`",
        ),
        (
            ["b", "c", "d", "e", ""]
                .iter()
                .zip(["a", "b", "c", "d", "e"])
                .map(|(to, name)| {
                    agent(
                        name,
                        &if to.is_empty() {
                            String::new()
                        } else {
                            format!("\"{to}\"")
                        },
                    )
                })
                .collect(),
            "`e` would be called 6 levels deep; 5 agents may stand above one another",
        ),
    ];
    let sandbox = Sandbox::new();
    for (agents, expected) in table {
        sandbox.file("clerk.toml", &format!("{start}{agents}"));
        let checked = sandbox.run(&["check", "clerk.toml"]);
        assert_eq!(checked.code, 2, "{agents}");
        assert!(checked.out.contains(expected), "{}", checked.out);
    }
}

#[test]
fn an_answer_has_the_form_that_the_file_wants_or_is_asked_for_again() {
    let sandbox = Sandbox::new();
    let form = "[output]\nrepairs = 1\nschema = { type = \"object\", required = [\"n\"], properties = { n = { type = \"integer\" } } }\n";
    sandbox.file(
        "clerk.toml",
        &format!("{}{form}", NATIVE.replace("model =", "# model =")),
    );
    let run = |lines: &[&str]| {
        let spec = sandbox.lines(lines);
        sandbox.run(&[
            "run",
            "clerk.toml",
            "How many?",
            "--json",
            "--quiet",
            "--model",
            &spec,
        ])
    };
    let fine = run(&[&says("Twelve."), &says("```json\n{\"n\": 12}\n```")]);
    assert_eq!(
        (fine.code, &fine.json()["answer"]),
        (0, &json!("{\"n\": 12}")),
        "{}",
        fine.err
    );
    let told = fine.json()["messages"][2]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        told.starts_with("That answer does not fit the JSON Schema: it is no JSON."),
        "{told}"
    );
    let never = run(&[
        &says("Twelve."),
        &says("{\"n\": \"12\"}"),
        &says("{\"n\": 12}"),
    ]);
    assert_eq!(
        (never.code, never.reason().as_str()),
        (4, "llm_error:decode")
    );
    assert!(never.json().get("answer").is_none());
    let rehearsed = sandbox.run(&[
        "run",
        "clerk.toml",
        "x",
        "--json",
        "--quiet",
        "--model",
        "rehearsal",
    ]);
    assert_eq!(rehearsed.code, 0, "{}", rehearsed.out);
}

#[test]
fn a_model_is_shown_no_more_of_a_conversation_than_the_file_says() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "clerk.toml",
        &format!("{NATIVE}[context]\nmax_messages = 3\n"),
    );
    for task in ["One?", "Two?", "Three?"] {
        sandbox.file("lines.jsonl", &says(&format!("{task}!")));
        let ran = sandbox.run(&["run", "clerk.toml", task, "--verbose", "--thread", "t"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.err.contains(&format!("human | {task}")));
        assert_eq!(
            ran.err.contains("human | One?"),
            task != "Three?",
            "{}",
            ran.err
        );
    }
    let all = sandbox.run(&["threads", "show", "t", "--json"]).out;
    assert!(
        all.contains("One?"),
        "nothing is forgotten, only not shown: {all}"
    );
}

#[test]
fn a_model_without_tool_calls_makes_them_by_a_schema() {
    let sandbox = Sandbox::new();
    sandbox.file("clerk.toml", &format!("tool_mode = \"schema\"\n{NATIVE}"));
    let lines = [
        says("{\"action\": \"think\", \"arguments\": {\"reflection\": \"count\"}}"),
        says("{\"action\": \"final_answer\", \"answer\": \"Twelve.\"}"),
    ];
    sandbox.file("lines.jsonl", &lines.join("\n"));
    let ran = sandbox.run(&["run", "clerk.toml", "How many?", "--json", "--quiet"]);
    assert_eq!(
        (ran.code, &ran.json()["answer"]),
        (0, &json!("Twelve.")),
        "{}{}",
        ran.out,
        ran.err
    );
    assert_eq!(ran.json()["trace"][0]["tool"], json!("think"));
}

#[test]
fn what_is_too_long_is_summarised_by_the_model_and_paid_for() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "clerk.toml",
        &format!("{NATIVE}[context]\nmax_messages = 3\nwhen_full = \"summarise\"\n"),
    );
    let run = |task: &str, lines: &[String]| {
        sandbox.file("lines.jsonl", &lines.join("\n"));
        let ran = sandbox.run(&["run", "clerk.toml", task, "--verbose", "--thread", "t"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.err
    };
    run("One?", &[says("1")]);
    run("Two?", &[says("2")]);
    let third = run("Three?", &[says("They counted to two."), says("3")]);
    assert!(third.contains("summarised 4 older messages"), "{third}");
    assert!(
        third.contains("They counted to two.") && !third.contains("human | One?"),
        "{third}"
    );
    let fourth = run("Four?", &[says("4")]);
    assert!(
        fourth.contains("They counted to two.") && fourth.contains("human | Three?"),
        "{fourth}"
    );
}
