//! A file in, every mistake out: where it stands, what is wrong, what to write instead. And the JSON Schema beside
//! the reader: what one takes the other takes.

use super::*;
use crate::declared::policy::policy_of;
use crate::{PolicySpec, agent_schema};
use paraph_gateway::ToolSpec;
use serde_json::json;

type Beside = fn(&str) -> Result<String, String>;

/// What a program could offer, with two files beside the agent file.
fn supply() -> (Vec<ToolInfo>, Beside) {
    let tool = |name: &str, level| ToolInfo {
        name: name.to_owned(),
        level,
        about: "Does it".to_owned(),
    };
    let read: Beside = |path| match path {
        "prompt.md" => Ok("Serve {{shop}}.".to_owned()),
        "empty.md" => Ok(" \n".to_owned()),
        "environment" => Ok("HOME=/\0SHELL=sh\0".to_owned()),
        "key.md" => Ok("Use sk-proj-0123456789abcdef.".to_owned()),
        "answer.json" => Ok(r#"{"type": "object"}"#.to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let tools = vec![
        tool("think", Level::Read),
        tool("web_search", Level::Read),
        tool("pay", Level::Write),
    ];
    (tools, read)
}

fn read(text: &str) -> Result<Checked, Vec<Mistake>> {
    supplied(|supply| read_agent_file(text, supply))
}

/// What a reader gives that is handed what a program could offer.
fn supplied<T>(reader: impl FnOnce(&Supply<'_>) -> T) -> T {
    let (builtin, read) = supply();
    let http = |settings: &Value| HttpFacts {
        level: match settings.get("method") {
            Some(method) if method == "POST" => Level::Write,
            _ => Level::Read,
        },
        schema: Value::Null,
        mistakes: match settings.get("url") {
            Some(url) if url == "nonsense" => vec!["`url`: it is no address".to_owned()],
            _ => Vec::new(),
        },
    };
    let mcp = |name: &str, settings: &Value| match settings.get("url") {
        Some(url) if url == "nonsense" => vec![format!("`{name}` has no address")],
        _ => Vec::new(),
    };
    let supply = Supply {
        builtin: &builtin,
        arguments: &arguments,
        http: Some(&http),
        mcp: Some(&mcp),
        read: &read,
    };
    reader(&supply)
}

/// What the tool `pay` takes.
fn arguments(name: &str) -> Option<Value> {
    (name == "pay").then(|| {
        json!({
            "type": "object",
            "properties": {"user_id": {"type": "integer"}, "amount_cents": {"type": "integer"}},
            "additionalProperties": false,
        })
    })
}

/// A file without mistakes, and these lines behind its first two.
fn with(lines: &str) -> String {
    format!("name = \"clerk\"\nprompt = \"Be brief.\"\n{lines}")
}

fn mistakes(text: &str) -> Vec<String> {
    let found = read(text).err().unwrap_or_default();
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_says_what_it_says() {
    let text = with(
        r#"about = "Answers"
model = "openai:gpt-4.1-mini"
temperature = 0.5
max_answer_tokens = 500
dialect = "strict"
loop = "cycle"
task = "Say hello"
[tools]
builtin = ["think"]
[[tools.http]]
name = "order"
description = "An order"
url = "https://shop.example.com/orders/{number}"
arguments = { number = { type = "integer" } }
[policy]
deny = ["order"]
[budget]
max_steps = 3
max_cost = 0.25
per_tool = { think = 1 }
"#,
    );
    let file = read(&text).unwrap().file;
    let main = &file.main;
    assert_eq!(
        (file.name.as_str(), main.prompt.as_str()),
        ("clerk", "Be brief.")
    );
    assert_eq!(main.dialect, paraph_gateway::Dialect::Strict);
    assert_eq!(main.loops, paraph_gateway::LoopRule::Cycle);
    assert_eq!(
        (main.temperature, main.max_answer_tokens),
        (Some(0.5), Some(500))
    );
    assert_eq!(main.tools.http.len(), 1);
    let limits = main.limits();
    assert_eq!(
        (limits.steps, limits.tool_calls, limits.micro_dollars),
        (3, 6, 250_000)
    );
    assert_eq!(limits.per_tool.get("think"), Some(&1));
}

#[test]
fn what_the_program_does_not_have_cannot_be_used() {
    let (builtin, beside) = supply();
    let supply = Supply {
        builtin: &builtin,
        arguments: &arguments,
        http: None,
        mcp: None,
        read: &beside,
    };
    let text = with(
        "[mcp.files]\ncommand = \"a\"\n[[tools.http]]\nname = \"order\"\ndescription = \"x\"\nurl = \"https://a.example\"",
    );
    let mistakes = read_agent_file(&text, &supply).unwrap_err();
    let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(
        mistakes,
        [
            "3:6: this program has no MCP servers; leave `mcp` out",
            "5:1: this program has no HTTP tools; leave `tools.http` out",
        ]
    );
}

#[test]
fn a_prompt_may_stand_in_a_file_of_its_own() {
    let text = "name = \"clerk\"\nprompt_file = \"prompt.md\"\nvariables = { shop = \"A\", town = \"B\" }\n";
    let checked = read(text).unwrap();
    assert_eq!(checked.file.main.prompt, "Serve {{shop}}.");
    let remarks: Vec<_> = checked.remarks.iter().map(ToString::to_string).collect();
    assert_eq!(remarks, ["3:34: no prompt uses `{{town}}`; there are shop"]);
}

/// Lines behind those of a file without mistakes, and what is said of them.
const MISTAKES: &[(&str, &[&str])] = &[
    (
        "modle = \"x\"",
        &["3:1: there is no key `modle`; did you mean `model`?"],
    ),
    (
        "zebra = 1",
        &[
            "3:1: there is no key `zebra`; there are name, about, model, fallbacks, temperature, max_answer_tokens, dialect, tool_mode, prompt, prompt_file, task, loop, variables, tools, policy, budget, context, output, mcp, agents, schema_version, $schema",
        ],
    ),
    (
        "[budget]\nmax_step = 3",
        &["4:1: `budget` has no key `max_step`; did you mean `max_steps`?"],
    ),
    (
        "temperature = \"hot\"",
        &["3:15: `temperature` is a number from 0 to 2, not a text; write 0.5"],
    ),
    (
        "temperature = 3",
        &["3:15: `temperature` is a number from 0 to 2, not 3; write 0.5"],
    ),
    (
        "temperature = nan",
        &["3:15: `temperature` is a number from 0 to 2, not nan; write 0.5"],
    ),
    (
        "max_answer_tokens = 1.5",
        &[
            "3:21: `max_answer_tokens` is a whole number from 16 to 1000000, not a number with a fraction; write 16",
        ],
    ),
    (
        "[budget]\nmax_steps = 0",
        &["4:13: `budget.max_steps` is a whole number from 1 to 1000000, not 0; write 8"],
    ),
    (
        "dialect = \"json\"",
        &["3:11: `json` is no value of `dialect`; there are native, strict"],
    ),
    (
        "loop = \"exakt\"",
        &["3:8: `exakt` is no value of `loop`; did you mean `exact`?"],
    ),
    (
        "about = \" \"",
        &["3:9: `about` cannot be ` `; write a text that is not empty"],
    ),
    (
        "task = \"\"",
        &["3:8: `task` is empty; write a text that is not empty"],
    ),
    (
        "prompt_file = \"prompt.md\"",
        &[
            "3:1: `prompt` and `prompt_file` exclude each other; keep one of them",
            "3:15: the prompt uses `{{shop}}`, and `variables` has no `shop`; write it below [variables]: `shop = \"…\"`",
        ],
    ),
    (
        "model = \"opnai:gpt\"",
        &["3:9: there is no model provider `opnai`; did you mean `openai`?"],
    ),
    (
        "model = \"gpt-4o\"",
        &[
            "3:9: there is no model provider `gpt-4o`; did you mean `openai:gpt-4o`, or `rehearsal`?",
        ],
    ),
    (
        "[tools]\nbuiltin = [\"thnik\", 7]",
        &[
            "4:12: there is no builtin tool `thnik`; did you mean `think`?",
            "4:21: `tools.builtin[1]` is a text, not a whole number; write \"a_name\"",
        ],
    ),
    (
        "[tools]\nbuiltin = [\"think\", \"think\"]",
        &[
            "4:12: this agent has two tools called `think`; leave one out, or call it something else",
        ],
    ),
    (
        "[tools]\nbuiltin = \"think\"",
        &["4:11: `tools.builtin` is a list, not a text; write [\"a_name\"]"],
    ),
    (
        "[[tools.http]]\nname = \"a b\"\ndescription = \"x\"\nurl = \"https://a.example\"",
        &[
            "4:8: `tools.http[0].name` cannot be `a b`; write 1 to 128 letters, digits, `_`, `-` or `.`",
        ],
    ),
    (
        "[[tools.http]]\nname = \"order\"\nurl = \"https://a.example\"",
        &[
            "3:1: `tools.http[0]` has no `description`; write `description = \"…\"`: what it does and when to use it, for the model",
        ],
    ),
    (
        "[[tools.http]]\nname = \"order\"\ndescription = \"x\"\nurl = \"nonsense\"",
        &["3:1: the tool `order`: `url`: it is no address"],
    ),
    (
        "[[tools.http]]\nname = \"order\"\ndescription = \"x\"\nurl = \"https://a.example\"\nheaders = { X-Api-Key = \"abc\" }",
        &[
            "7:25: `tools.http[0].headers.X-Api-Key` holds what looks like a key or a password; put it into the environment or into a file, and write { env = \"NAME\" }: NAME, or NAME_FILE with the file's path",
        ],
    ),
    (
        "[[tools.http]]\nname = \"order\"\ndescription = \"x\"\nurl = \"https://a.example\"\nheaders = { X-Api-Key = { env = \"A B\" } }",
        &[
            "7:33: `tools.http[0].headers.X-Api-Key.env` cannot be `A B`; write a letter or `_`, then at most 63 letters, digits or `_`",
        ],
    ),
    (
        "about = \"use sk-abcdefghijklmnop\"",
        &[
            "3:9: `about` holds what looks like a key or a password; put it into the environment or into a file, and write { env = \"NAME\" }: NAME, or NAME_FILE with the file's path",
        ],
    ),
    (
        "[policy]\nallow = [\"thimk\"]",
        &["4:10: `policy.allow` names `thimk`, and this agent has no such tool; there is none"],
    ),
    (
        "[tools]\nbuiltin = [\"think\"]\n[policy]\ndeny = [\"thimk\"]",
        &[
            "6:9: `policy.deny` names `thimk`, and this agent has no such tool; did you mean `think`?",
        ],
    ),
    (
        "[tools]\nbuiltin = [\"pay\"]\n[policy]\nallow = [\"p*\"]",
        &[
            "6:10: `pay` changes something (write): to be allowed is not enough; name it in `policy.approve`: `approve = [\"pay\"]`",
        ],
    ),
    (
        "[policy]\nlevels = { write = \"allow\" }",
        &["4:20: `allow` is no value of `policy.levels.write`; there are approve, deny"],
    ),
    (
        "[budget]\nper_tool = { think = 1 }",
        &["4:22: `budget.per_tool` names `think`, and this agent has no such tool; there is none"],
    ),
    (
        "[budget]\nmax_children = 2",
        &[
            "4:16: `max_children` counts calls of agents, and this one has none in `tools.agents`; leave it out",
        ],
    ),
    (
        "dialect = \"strict\"\n[budget]\nsynthesis_reserve = 500",
        &[
            "5:21: with dialect = \"strict\" a run that meets a limit just stops: `synthesis_reserve` does nothing; leave one of the two out",
        ],
    ),
    (
        "[budget]\nmax_tokens = 500\nsynthesis_reserve = 500",
        &[
            "5:21: `synthesis_reserve` keeps 500 tokens back, and `max_tokens` is 500: nothing is left for the run; write less",
        ],
    ),
    (
        "[variables]\n\"a b\" = \"x\"",
        &[
            "4:1: `a b` is no name for `variables`; write a letter or `_`, then at most 63 letters, digits or `_`",
        ],
    ),
    (
        "[variables]\na = 1",
        &["4:5: `variables.a` is a text, not a whole number; write \"…\""],
    ),
    (
        "[tools]\nmcp = [\"files\"]",
        &["4:8: `tools.mcp` names `files`, and this file has no such server; there is none"],
    ),
    (
        "[mcp.files]\nargs = []",
        &["3:6: `mcp.files` has neither `command` nor `url`; write one of them"],
    ),
    (
        "[mcp.files]\nurl = \"nonsense\"",
        &["3:6: the MCP server `files`: `files` has no address"],
    ),
    (
        "[policy]\nallow = [\"files__read\", \"flies__read\"]\n[mcp.files]\ncommand = \"a\"",
        &[
            "4:25: `policy.allow` names `flies__read`, and this agent has no such tool; there are files__*",
        ],
    ),
    (
        "fallbacks = [\"openai:gpt-4o\", \"opnai:x\"]",
        &["3:31: there is no model provider `opnai`; did you mean `openai`?"],
    ),
    (
        "tool_mode = \"schema\"\ndialect = \"strict\"",
        &[
            "3:13: with dialect = \"strict\" a model makes no tool calls, so `tool_mode` does nothing; leave one of the two out",
        ],
    ),
    (
        "[context]\nwhen_full = \"trim\"",
        &[
            "3:2: `context` limits nothing; write `max_messages` or `max_tokens`, or leave `context` out",
        ],
    ),
    (
        "[output]\nschema = 1",
        &[
            "4:10: `output.schema` is a JSON Schema, as a table, not a whole number; write { type = \"object\" }",
        ],
    ),
    (
        "[agents.helper]\nprompt = \"x\"",
        &[
            "3:9: no agent calls `helper`; name it in the `tools.agents` of another: `agents = [\"helper\"]`",
            "3:9: `agents.helper` has no `about`; write `about = \"…\"`: what it does and when to ask it: what the agents that call it read of it",
        ],
    ),
    ("name = \"b\"", &["3:1: this is no TOML: duplicate key"]),
    (
        "a = \nb = 1\nc = [",
        &[
            "3:5: this is no TOML: string values must be quoted, expected literal string",
            "5:6: this is no TOML: unclosed array, expected `]`",
        ],
    ),
];

#[test]
fn each_mistake_says_where_what_and_what_instead() {
    let wrong: Vec<_> = MISTAKES
        .iter()
        .map(|(lines, expected)| (lines, mistakes(&with(lines)), expected))
        .filter(|(_, told, expected)| told != *expected)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_file_that_lacks_everything_is_told_so() {
    assert_eq!(
        mistakes(""),
        [
            "1:1: the file has neither `prompt` nor `prompt_file`; write one of them",
            "1:1: the file has no `name`; write `name = \"a_name\"`: what the agent is called: in threads, runs and listings",
        ]
    );
    let support = "name = \"support\"\nprompt = \"x\"";
    assert_eq!(
        mistakes(support),
        ["1:8: `support` is the name of a built-in agent; choose another name"]
    );
    let large = format!("# {}\n", "x".repeat(MAX_FILE));
    assert_eq!(
        mistakes(&large),
        [format!(
            "1:1: the file has {} bytes; it may have {MAX_FILE}; put long prompts into files of their own (`prompt_file`)",
            large.len()
        )]
    );
}

#[test]
fn files_beside_it_are_looked_at() {
    let table = [
        (
            "empty.md",
            "2:15: empty.md is empty; the path begins at this file's folder",
        ),
        (
            "environment",
            "2:15: environment is no text; the path begins at this file's folder",
        ),
        (
            "key.md",
            "2:15: key.md holds what looks like a key or a password; the path begins at this file's folder",
        ),
        (
            "none.md",
            "2:15: none.md cannot be read: no such file; the path begins at this file's folder",
        ),
    ];
    for (file, expected) in table {
        let text = format!("name = \"clerk\"\nprompt_file = \"{file}\"\n");
        assert_eq!(mistakes(&text), [expected]);
    }
}

#[test]
fn a_variable_is_missed_where_it_stands() {
    let text = "name = \"clerk\"\nprompt = \"\"\"\nBe brief.\nServe {{shpo}}.\n\"\"\"\nvariables = { shop = \"A\" }\n";
    assert_eq!(
        mistakes(text),
        [
            "4:7: the prompt uses `{{shpo}}`, and `variables` has no `shpo`; did you mean `{{shop}}`?",
        ]
    );
}

#[test]
fn secrets_are_found_and_never_repeated() {
    let token = format!("ghp_{}", "a1".repeat(18));
    let secrets = [
        format!("prompt = \"Use {token} always\""),
        format!("prompt = \"x\"\nmodel = \"{token}\""),
        format!("prompt = \"x\"\ndialect = \"{token}\""),
        "prompt = \"x\"\nabout = \"postgres://me:hunter2hunter2@db/x\"".to_owned(),
        "prompt = \"x\"\nabout = \"Bearer hunter2hunter2\"".to_owned(),
        "prompt = \"-----BEGIN PRIVATE KEY----- hunter2hunter2\"".to_owned(),
    ];
    for lines in secrets {
        let told = mistakes(&format!("name = \"clerk\"\n{lines}\n")).join("\n");
        assert!(
            told.contains("holds what looks like a key or a password"),
            "{lines}: {told}"
        );
        assert!(
            !told.contains(&token) && !told.contains("hunter2hunter2"),
            "{told}"
        );
    }
    let harmless = "Never ask for a password: refuse. The token=x stays. Bearer of news. sk-short. \
                    Write to me@example.com or https://example.com/a@b.";
    assert_eq!(
        mistakes(&format!("name = \"clerk\"\nprompt = \"{harmless}\"\n")),
        Vec::<String>::new()
    );
}

#[test]
fn whoever_writes_a_rule_that_makes_runs_wait_is_told() {
    let text = with("[tools]\nbuiltin = [\"think\", \"pay\"]\n[policy]\napprove = [\"pay\"]\n");
    let remarks: Vec<_> = read(&text)
        .unwrap()
        .remarks
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        remarks,
        [
            "6:11: a person has to approve `pay` each time: the run waits until somebody does (`paraph approvals list`)",
        ]
    );
}

#[test]
fn rules_are_completed_by_levels() {
    use paraph_gateway::Verdict;
    let tools = [
        ("read_a", Level::Read),
        ("read_b", Level::Read),
        ("write_a", Level::Write),
        ("wipe", Level::Delete),
    ];
    let tools = tools.map(|(name, level)| ToolSpec {
        name: name.to_owned(),
        about: String::new(),
        schema: Value::Null,
        level,
    });
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let levels = |levels: &[(&str, &str)]| {
        levels
            .iter()
            .map(|(level, rule)| ((*level).to_owned(), (*rule).to_owned()))
            .collect()
    };
    let table: [(PolicySpec, [&str; 4]); 4] = [
        (PolicySpec::default(), ["allow", "allow", "ask", "ask"]),
        (
            PolicySpec {
                allow: Some(names(&["read_a"])),
                ..PolicySpec::default()
            },
            ["allow", "deny", "ask", "ask"],
        ),
        (
            PolicySpec {
                deny: names(&["*_a"]),
                levels: levels(&[("delete", "deny")]),
                ..PolicySpec::default()
            },
            ["deny", "allow", "deny", "deny"],
        ),
        (
            PolicySpec {
                approve: names(&["read_*"]),
                allow: Some(names(&["read_b"])),
                ..PolicySpec::default()
            },
            ["ask", "ask", "ask", "ask"],
        ),
    ];
    for (spec, expected) in table {
        let policy = policy_of(&spec, &tools);
        let verdicts = tools
            .each_ref()
            .map(|tool| match policy.verdict(&tool.name) {
                Verdict::Allowed => "allow",
                Verdict::Ask(_) => "ask",
                Verdict::Denied { .. } => "deny",
            });
        assert_eq!(verdicts, expected, "{spec:?}");
    }
}

#[test]
fn only_what_matters_to_a_run_changes_the_digest() {
    let digest = |text: &str| read(text).unwrap().file.digest();
    let base = with("");
    let same = [
        "# A comment\n",
        "about = \"x\"\n",
        "task = \"x\"\n",
        "model = \"rehearsal\"\n",
        "loop = \"off\"\n",
        "[budget]\nmax_steps = 3\n",
    ];
    for lines in same {
        assert_eq!(digest(&with(lines)), digest(&base), "{lines}");
    }
    for lines in [
        "dialect = \"strict\"\n",
        "[tools]\nbuiltin = [\"think\"]\n",
        "temperature = 1\n",
    ] {
        assert_ne!(digest(&with(lines)), digest(&base), "{lines}");
    }
    assert_ne!(
        digest("name = \"clerk\"\nprompt = \"Be long.\""),
        digest(&base)
    );
}

/// The value of a text as its schema sees it.
fn as_json(text: &str) -> Value {
    toml::from_str(text).unwrap()
}

#[test]
fn the_schema_and_the_reader_take_and_refuse_the_same() {
    let schema = jsonschema::validator_for(&agent_schema()).unwrap();
    let fine = [
        "",
        "about = \"x\"",
        "temperature = 1",
        "temperature = 0.5",
        "[variables]\na = \"\"",
        "[tools]\nbuiltin = [\"think\"]",
        "[policy]\nlevels = { read = \"deny\" }",
        "[budget]\nmax_cost = 0.5\nmax_tokens = 0",
        "[budget]\nmax_tokens = 2000\nsynthesis_reserve = 1999",
        "\"$schema\" = \"agent.json\"\nschema_version = 1",
        "[[tools.http]]\nname = \"order\"\ndescription = \"x\"\nurl = \"https://a.example\"\nbody = [1, \"a\"]\nmethod = \"POST\"\nheaders = { A = \"b\", C = { env = \"D\" } }",
    ];
    for lines in fine {
        let text = with(lines);
        assert_eq!(mistakes(&text), Vec::<String>::new(), "{lines}");
        assert!(schema.is_valid(&as_json(&text)), "{lines}");
    }
    let faulty = [
        "modle = \"x\"",
        "temperature = \"hot\"",
        "temperature = 2.5",
        "max_answer_tokens = 15",
        "max_answer_tokens = 16.5",
        "dialect = \"json\"",
        "about = \"\"",
        "prompt_file = \"prompt.md\"",
        "[budget]\nmax_steps = 0",
        "[budget]\nmax_cost = -1",
        "[tools]\nbuiltin = [7]",
        "[tools]\nbuiltin = \"think\"",
        "[variables]\n\"a b\" = \"x\"",
        "[variables]\na = 1",
        "[policy]\nlevels = { write = \"allow\" }",
        "[policy]\nallow = [\"a b\"]",
        "[mcp.files]\nargs = []",
        "[mcp.files]\ncommand = \"a\"\nurl = \"https://a.example\"",
        "[agents.helper]\nprompt = \"x\"",
        "[agents.Helper]\nprompt = \"x\"\nabout = \"y\"",
        "[[tools.http]]\nname = \"order\"",
        "schema_version = 2",
        "[[tools.http]]\nname = \"order\"\ndescription = \"x\"\nurl = \"https://a.example\"\nheaders = { A = { name = \"B\" } }",
    ];
    for lines in faulty {
        let text = with(lines);
        assert!(!mistakes(&text).is_empty(), "{lines}");
        assert!(!schema.is_valid(&as_json(&text)), "{lines}");
    }
    for text in ["name = \"clerk\"", "prompt = \"x\""] {
        assert!(
            read(text).is_err() && !schema.is_valid(&as_json(text)),
            "{text}"
        );
    }
}

#[test]
fn the_table_describes_every_key_of_the_data() {
    // What the data would drop in silence would be a key that does nothing.
    let text = with("[tools]\nbuiltin = [\"think\"]\n");
    let read = serde_json::to_value(read(&text).unwrap().file).unwrap();
    let schema = agent_schema();
    let described = schema["properties"].as_object().unwrap();
    for key in described
        .keys()
        .filter(|key| !["$schema", "schema_version"].contains(&key.as_str()))
    {
        assert!(read.get(key).is_some(), "`{key}` is read and does nothing");
    }
    for key in read.as_object().unwrap().keys() {
        assert!(described.contains_key(key), "`{key}` is not described");
    }
}

mod rules;
