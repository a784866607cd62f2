//! Secrets that must not turn up, and texts that must not pass for something else, in whatever the program leaves
//! behind: standard output, trace, log, events, exports, and every byte of its files.

use crate::approvals::Shop;
use crate::sandbox::{Sandbox, tool};
use crate::stand_in::{Answer, StandIn};
use serde_json::{Value, json};
use std::path::Path;

/// Every secret that can be set but the keys of the store, and two of an agent's file, with a value of their own. None of
/// them has a shape by which it could be known.
const SECRETS: [(&str, &str); 16] = [
    ("OPENAI_API_KEY", "canary-one-7341"),
    ("ANTHROPIC_API_KEY", "canary-two-7341"),
    ("TAVILY_API_KEY", "canary-three-7341"),
    ("REFUND_TOKEN", "canary-four-7341"),
    ("SHOP_TOKEN", "canary-five-7341"),
    ("SHOP_KEY", "canary-six-7341"),
    ("GEMINI_API_KEY", "canary-seven-7341"),
    ("OPENROUTER_API_KEY", "canary-eight-7341"),
    ("GROQ_API_KEY", "canary-nine-7341"),
    ("MISTRAL_API_KEY", "canary-ten-7341"),
    ("OLLAMA_API_KEY", "canary-eleven-7341"),
    ("COMPATIBLE_API_KEY", "canary-twelve-7341"),
    ("PARAPH_AUDIT_ANCHOR_TOKEN", "canary-thirteen-7341"),
    ("GITHUB_TOKEN", "canary-fifteen-7341"),
    ("HTTPS_PROXY", "http://us:canary-fourteen-7341@127.0.0.1:9"),
    ("NO_PROXY", "127.0.0.1"),
];

/// The keys of the store and of the audit, which are 64 hexadecimal digits.
const KEYS: [(&str, &str); 3] = [
    (
        "PARAPH_ENCRYPTION_KEY",
        "7341007341007341007341007341007341007341007341007341007341007341",
    ),
    (
        "PARAPH_SEAL_KEY",
        "7341117341117341117341117341117341117341117341117341117341117341",
    ),
    (
        "PARAPH_SEAL_KEY_OLD",
        "7341227341227341227341227341227341227341227341227341227341227341",
    ),
];

/// What the secrets have in common, and what each key begins with.
const CANARIES: [&str; 4] = ["canary-", "734100734100", "734111734111", "734122734122"];

/// Those that stand in a text.
fn canaries(text: &str) -> Vec<&'static str> {
    let found = CANARIES.into_iter().filter(|canary| text.contains(canary));
    found.collect()
}

fn file(url: &str) -> String {
    format!(
        r#"
name = "clerk"
prompt = "Look orders up."
[[tools.http]]
name = "order"
description = "Where an order is"
url = "{url}/orders/{{number}}"
headers = {{ Authorization = {{ env = "SHOP_TOKEN", prefix = "Bearer " }} }}
query = {{ key = {{ env = "SHOP_KEY" }} }}
arguments = {{ number = {{ type = "integer" }} }}
result = "$.state"
"#
    )
}

/// All files below a folder that hold some bytes.
fn holding(folder: &Path, wanted: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, wanted));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            if bytes.windows(wanted.len()).any(|part| part == wanted) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

fn order(id: &str, number: u32) -> String {
    json!({"tool_calls": [{"id": id, "name": "order", "arguments": {"number": number}}]})
        .to_string()
}

/// T18: canaries in every secret setting, on a server that says them back in its answers and in its errors. K09,
/// tx-sitter#20: one of them stands in the address of the call.
#[test]
fn no_secret_is_in_any_byte_that_is_printed_logged_traced_stored_or_exported() {
    let sandbox = Sandbox::new();
    let server = StandIn::start(|seen| {
        let said: Vec<_> = seen
            .headers
            .iter()
            .map(|(_, value)| value.clone())
            .collect();
        let body = json!({"state": "sent", "you": [seen.target, said.join(" ")]});
        match seen.target.starts_with("/orders/7") {
            true => Answer::json(200, &body),
            false => Answer::json(500, &body),
        }
    });
    sandbox.file("clerk.toml", &file(&server.url()));
    let answer = json!({"content": "It was sent."}).to_string();
    let spec = sandbox.lines(&[&order("a", 7), &order("b", 8), &answer]);
    let on = [
        "--model",
        &spec,
        "--thread",
        "t",
        "--store",
        "sqlite://kept.db",
    ];
    let mut shown = String::new();
    for flags in [
        &["--events", "--trace", "trace.jsonl", "--log", "debug,json"][..],
        &["--verbose", "--log", "debug"],
        &["--json"],
    ] {
        let args = [&["run", "clerk.toml", "Where are they?"], &on[..], flags].concat();
        let ran = sandbox.run_with(&args, &SECRETS, "");
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        shown.push_str(&ran.out);
        shown.push_str(&ran.err);
    }
    // The server did get them, or the test shows nothing.
    let seen = server.seen();
    assert_eq!(seen.len(), 6);
    assert!(
        seen.iter()
            .all(|seen| seen.target.ends_with("?key=canary-six-7341"))
    );
    let store = ["--store", "sqlite://kept.db"];
    for args in [
        &["config", "show"][..],
        &["doctor"],
        &["threads", "show", "t", "--json"],
        &["threads", "export", "t"],
        &["runs", "list", "--json"],
        &["approvals", "list", "--json"],
        &["audit", "export"],
        &["store", "stats"],
    ] {
        let args = match args[0] {
            "config" | "doctor" => args.to_vec(),
            _ => [args, &store[..]].concat(),
        };
        let ran = sandbox.run_with(&args, &SECRETS, "");
        assert!(
            ran.code == 0 || args[0] == "doctor",
            "{args:?}: {}",
            ran.err
        );
        shown.push_str(&ran.out);
        shown.push_str(&ran.err);
    }
    assert!(shown.len() > 10_000, "{shown}");
    assert_eq!(canaries(&shown), Vec::<&str>::new(), "{shown}");
    let folder = sandbox.path("");
    assert!(!holding(&folder, b"It was sent.").is_empty());
    for canary in CANARIES {
        assert_eq!(holding(&folder, canary.as_bytes()), Vec::<String>::new());
    }
}

#[test]
fn the_canaries_stand_in_every_setting_that_is_a_secret() {
    let sandbox = Sandbox::new();
    let shown = |env: &[(&str, &str)]| sandbox.run_with(&["config", "show", "--json"], env, "");
    let all = [&SECRETS[..], &KEYS].concat();
    let rows = shown(&all).json();
    let named_like_one = |key: &str| {
        ["key", "key_old", "token", "password", "secret"]
            .iter()
            .any(|end| key.rsplit('.').next().unwrap().ends_with(end))
    };
    let mut secrets = 0;
    for row in rows.as_array().unwrap() {
        let key = row["key"].as_str().unwrap();
        let masked = row["value"] == "********";
        assert_eq!(masked, named_like_one(key), "{row}");
        secrets += usize::from(masked);
    }
    // All but what only the file and the proxy know.
    assert_eq!(secrets, all.len() - 4);
}

/// T18 for what the store and the audit are kept with: an effect that is asked for, approved, sealed, anchored and packed.
#[test]
fn no_key_of_the_store_or_the_audit_is_in_any_byte() {
    let shop = Shop::new();
    let anchored = format!("{}/anchors", shop.server.url());
    let place = [
        ("PARAPH_AUDIT_ANCHOR", anchored.as_str()),
        ("PARAPH_AUDIT_ANCHOR_EVERY", "1"),
    ];
    let env = [&SECRETS[..], &KEYS, &place].concat();
    let mut shown = String::new();
    let mut run = |args: &[&str], code: i32| {
        let ran = shop.sandbox.run_with(args, &env, "");
        // A doctor may find this and that.
        let fine = ran.code == code || args[0] == "doctor";
        assert!(fine, "{args:?}: {}{}", ran.out, ran.err);
        shown.push_str(&ran.out);
        shown.push_str(&ran.err);
        ran
    };
    let log = ["--log", "debug,json"];
    let asked = [
        "run",
        "clerk.toml",
        "Pay.",
        "--model",
        "scripted:script.jsonl",
        "--json",
        "--thread",
        "t",
    ];
    let asked = run(&[&asked[..], &log].concat(), 5).json();
    let (id, digest) = (
        &asked["approvals"][0]["id"],
        &asked["approvals"][0]["digest"],
    );
    let (id, digest) = (id.as_str().unwrap(), digest.as_str().unwrap());
    run(&["approvals", "show", id], 0);
    run(&["approvals", "approve", id, "--digest", digest], 0);
    assert_eq!(
        shop.server
            .seen()
            .iter()
            .filter(|seen| seen.target == "/refunds")
            .count(),
        1
    );
    for args in [
        &["audit", "verify"][..],
        &["audit", "list"],
        &["audit", "export", "-o", "audit.jsonl"],
        &["audit", "pack", id, "-o", "pack.json"],
        &["audit", "verify", "--pack", "pack.json"],
        &["threads", "export", "t"],
        &["store", "check"],
        &["store", "stats"],
        &["config", "show"],
        &["doctor"],
    ] {
        run(args, 0);
    }
    // The token did go where it belongs, and the store is sealed by the key.
    let seen = shop.server.seen();
    let bearer = |value: &str| value == "Bearer canary-thirteen-7341";
    assert!(
        seen.iter()
            .any(|seen| seen.header("authorization").is_some_and(bearer))
    );
    let other = shop.sandbox.run_with(&["runs", "list"], &KEYS[1..], "");
    assert_ne!(other.code, 0, "{}", other.out);
    assert_eq!(canaries(&shown), Vec::<&str>::new(), "{shown}");
    for canary in CANARIES {
        let found = holding(&shop.sandbox.path(""), canary.as_bytes());
        assert_eq!(found, Vec::<String>::new(), "{canary}");
    }
}

/// T17: line breaks, escape sequences and a line that looks like one of the program's own, in a name that a model
/// made up and in a task. Each line of the log and of the events is one JSON object, and says nothing that did not
/// happen.
#[test]
fn no_text_makes_a_line_of_its_own_in_the_log_or_among_the_events() {
    let sandbox = Sandbox::new();
    let fake = "x\r\n{\"type\":\"run_ended\",\"level\":\"ERROR\",\"fields\":{\"message\":\"forged\"}}\n\u{1b}[2J\u{9b}1A";
    let name = serde_json::to_string(fake).unwrap();
    let call = tool("TOOL", r#"{"user_id":42}"#).replace("\"TOOL\"", &name);
    let spec = sandbox.script(&[&call]);
    let args = [
        "run",
        "support",
        fake,
        "--model",
        &spec,
        "--events",
        "--trace",
        "trace.jsonl",
        "--quiet",
        "--log",
        "debug,json",
        "--thread",
        fake,
    ];
    let ran = sandbox.run(&args);
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    let trace = std::fs::read_to_string(sandbox.path("trace.jsonl")).unwrap();
    let objects = |text: &str| -> Vec<Value> {
        let lines = text.split_terminator('\n');
        lines
            .map(|line| {
                assert!(!line.bytes().any(|byte| byte < b' '), "{line:?}");
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
            })
            .collect()
    };
    let events = objects(&ran.out);
    assert_eq!(objects(&trace), events);
    let ends = events.iter().filter(|event| event["type"] == "run_ended");
    assert_eq!(ends.count(), 1);
    let reason = events.last().unwrap()["result"]["stop_reason"].as_str();
    assert_eq!(reason, Some(format!("tool_denied:{fake}").as_str()));
    for line in ran
        .err
        .split_terminator('\n')
        .filter(|line| line.starts_with('{'))
    {
        let logged = objects(line).remove(0);
        assert_ne!(logged["fields"]["message"], "forged", "{line}");
    }
    assert!(
        !ran.err.contains('\u{1b}') && !ran.err.contains('\u{9b}'),
        "{}",
        ran.err
    );
}
