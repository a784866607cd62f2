//! Rules of agents in files: tried, explained, written down, and what a grant signs while nobody is asked.

use crate::sandbox::{Ended, Sandbox};
use serde_json::{Value, json};

const TWIN: &str = include_str!("../../../../examples/support-refund.toml");

/// The desk that refunds, and an agent of its own that it calls.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("desk.toml", TWIN);
    sandbox
}

fn explain(sandbox: &Sandbox, args: &[&str]) -> Ended {
    sandbox.run(&[&["policy", "explain", "desk.toml"][..], args].concat())
}

fn refund(cents: u64) -> String {
    let args = json!({"user_id": 42, "amount_cents": cents, "reason": "late"});
    json!({"tool": "issue_refund", "args": args}).to_string()
}

#[test]
fn every_example_is_tried_and_told_with_its_rule() {
    let sandbox = sandbox();
    let fine = sandbox.run(&["policy", "test", "desk.toml"]);
    assert_eq!(
        (fine.code, fine.out.as_str(), fine.err.as_str()),
        (
            0,
            "pass  no large refunds (2 of 2 examples)\n1 rule, 2 examples: 2 passed, 0 failed\n",
            ""
        )
    );
    let wrong = TWIN.replace("amount_cents = 50000,", "amount_cents = 50002,");
    sandbox.file("desk.toml", &format!("{wrong}\n[[policy.rules]]\nname = \"bare\"\nthen = \"ask\"\ntools = [\"issue_refund\"]\n"));
    let failed = sandbox.run(&["policy", "test", "desk.toml"]);
    assert_eq!(
        (failed.code, failed.out.as_str()),
        (
            2,
            "FAIL  no large refunds (1 of 2 examples)\n\
             \x20     example 1 of `not_matching` is spoken about, and is not to be\n\
             none  bare (no examples)\n\
             2 rules, 2 examples: 1 passed, 1 failed; 1 without examples\n"
        )
    );
    let json = sandbox.run(&["policy", "test", "desk.toml", "--json"]);
    let report = json.json();
    assert_eq!(
        (
            json.code,
            &report["ok"],
            &report["passed"],
            &report["failed"],
            &report["without"]
        ),
        (2, &json!(false), &json!(1), &json!(1), &json!(1))
    );
    assert_eq!(
        report["rules"][0]["examples"][1],
        json!({
            "rule": "no large refunds",
            "list": "not_matching",
            "number": 1,
            "fault": "is spoken about, and is not to be",
        })
    );
    // A file whose examples fail is not run.
    let checked = sandbox.run(&["check", "desk.toml"]);
    assert_eq!(checked.code, 2);
    assert!(
        checked.out.contains(
            "the rule `no large refunds`: example 1 of `not_matching` is spoken about, and is not to be; change the example, or what the rule says"
        ),
        "{}",
        checked.out
    );
    let ran = sandbox.run(&["run", "desk.toml", "--model", "rehearsal"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
}

#[test]
fn a_file_without_rules_has_nothing_to_try_and_a_faulty_one_is_told_of() {
    let sandbox = Sandbox::new();
    sandbox.file("bare.toml", "name = \"clerk\"\nprompt = \"x\"\n");
    let bare = sandbox.run(&["policy", "test", "bare.toml"]);
    assert_eq!(
        (bare.code, bare.out.as_str(), bare.err.as_str()),
        (
            0,
            "0 rules, 0 examples: 0 passed, 0 failed\n",
            "note: rules stand in [[policy.rules]], each with `examples`\n"
        )
    );
    sandbox.file("bad.toml", "name = \"clerk\"\nprompt = \"x\"\nzebra = 1\n");
    for command in [&["test", "bad.toml"][..], &["explain", "bad.toml", "pay"]] {
        let bad = sandbox.run(&[&["policy"], command].concat());
        assert_eq!((bad.code, bad.out.as_str()), (2, ""), "{}", bad.err);
        assert!(
            bad.err
                .contains("bad.toml has a mistake:\n  bad.toml:3:1: there is no key `zebra`"),
            "{}",
            bad.err
        );
    }
    let none = sandbox.run(&["policy", "test", "none.toml"]);
    assert_eq!(none.code, 2);
    assert!(none.err.contains("none.toml"), "{}", none.err);
}

#[test]
fn a_call_is_explained_rule_by_rule() {
    let sandbox = sandbox();
    let hash = |told: &Ended| {
        let (_, hash) = told.out.rsplit_once("policy ").unwrap();
        assert_eq!(hash.trim().len(), 64, "{}", told.out);
        hash.trim().to_owned()
    };
    let small = explain(&sandbox, &[&refund(400), "--at", "2026-11-30T12:00:00Z"]);
    assert_eq!(
        (small.code, small.out.replace(&hash(&small), "HASH")),
        (
            0,
            "`issue_refund` is an effect (write).\n\
             A person has to approve it, as `ask:issue_refund` says; the grant `small refunds` can sign it.\n\
             The question stands for 86400 seconds.\n\
             \n\
             Rules\n\
             \x20 silent   deny  no large refunds  it does not hold that `/amount_cents` is above 50000\n\
             \x20 decides  ask   ask:issue_refund\n\
             \n\
             Flow\n\
             \x20 the run has read no untrusted text\n\
             \n\
             Grants\n\
             \x20 can sign  small refunds  if there is room: 1 of 1 (grant/small refunds/local/thread/a thread), 400 of 10000 (grant/small refunds/local/sum/2026-11-30)\n\
             \n\
             policy HASH\n"
                .to_owned()
        ),
        "{}",
        small.err
    );
    let large = explain(&sandbox, &[&refund(50_001)]);
    assert_eq!(
        large.out.replace(&hash(&large), "HASH"),
        "`issue_refund` is an effect (write).\n\
         It is denied by `no large refunds`: refunds above 500.00 USD go through the back office.\n\
         \n\
         Rules\n\
         \x20 decides    deny  no large refunds  refunds above 500.00 USD go through the back office\n\
         \x20 overruled  ask   ask:issue_refund  `no large refunds` denies it, and a denial wins\n\
         \n\
         Flow\n\
         \x20 the run has read no untrusted text\n\
         \n\
         Grants\n\
         \x20 cannot  small refunds  `/amount_cents` is no number from 0 to 500\n\
         \n\
         policy HASH\n"
    );
    assert_eq!(hash(&large), hash(&small));
    let over = explain(
        &sandbox,
        &[
            &refund(400),
            "--at",
            "2037-01-01T00:00:00Z",
            "--tenant",
            "shop",
            "--json",
        ],
    );
    let told = over.json();
    assert_eq!(
        (&told["tenant"], &told["grants"]),
        (
            &json!("shop"),
            &json!([{"grant": "small refunds", "fit": null, "why": "it is over since 2036-12-31T00:00:00Z"}])
        )
    );
    assert_eq!(told["decision"]["verdict"]["ask"]["expires"], json!(86_400));
    assert_eq!(told["decision"]["policy"], json!(hash(&small)));
    assert_eq!(told["rules"][1]["part"], json!("decides"));
}

#[test]
fn what_a_run_has_read_and_what_was_bound_is_part_of_the_question() {
    let sandbox = Sandbox::new();
    let flow = "[policy.targets]\nuser = { number = \"{{customer}}\" }\n[policy.flow]\nuntrusted = [\"web_search\"]\n\
                bound = [{ tools = [\"issue_refund\"], pointer = \"/user_id\", target = \"user\" }]\n";
    let twin = TWIN
        .replace("[budget]", &format!("{flow}\n[budget]"))
        .replace("days = \"14\"", "days = \"14\", customer = \"42\"")
        .replace(
            "\"issue_refund\"]\n\n[policy]",
            "\"issue_refund\", \"web_search\"]\n\n[policy]",
        );
    sandbox.file("desk.toml", &twin);
    let first = |args: &[&str]| {
        let told = explain(&sandbox, &[&[&*refund(400)][..], args].concat());
        assert_eq!(told.code, 0, "{}", told.err);
        let sentence = told.out.lines().nth(1).unwrap_or_default().to_owned();
        (sentence, told.err)
    };
    let asked = "A person has to approve it, as `ask:issue_refund` says";
    let table: [(&[&str], String); 4] = [
        (&[], format!("{asked}; the grant `small refunds` can sign it.")),
        (&["--read", "web_search"], format!("{asked}.")),
        (
            &["--read", "web_search", "--bind", "user=43"],
            "It is denied by `flow:untrusted`: the run has read untrusted text (`web_search`), and `/user_id` is not the `user` that the program bound.".to_owned(),
        ),
        (
            &["--read", "web_search", "--bind", "user=\"42\""],
            "It is denied by `flow:untrusted`: the run has read untrusted text (`web_search`), and `/user_id` is not the `user` that the program bound.".to_owned(),
        ),
    ];
    for (args, expected) in table {
        assert_eq!(first(args).0, expected, "{args:?}");
    }
    let (trusted, note) = first(&["--read", "issue_refund"]);
    assert_eq!(
        (trusted.as_str(), note.as_str()),
        (
            &*format!("{asked}; the grant `small refunds` can sign it."),
            "note: what `issue_refund` gives is trusted: `policy.flow.untrusted` does not name it\n"
        )
    );
}

#[test]
fn a_tool_is_explained_by_its_name() {
    let sandbox = sandbox();
    let told = explain(&sandbox, &["issue_refund"]);
    let lines: Vec<_> = told.out.lines().collect();
    assert_eq!(
        lines[..lines.len() - 1],
        [
            "`issue_refund` is an effect (write)",
            "`no large refunds`: it is denied if `/amount_cents` is above 50000; refunds above 500.00 USD go through the back office",
            "`ask:issue_refund`: a person has to approve it",
            "after untrusted text it is denied",
            "the grant `small refunds` signs: `/amount_cents` at most 500, 1 per thread, `/amount_cents` at most 10000 in a day, until 2036-12-31",
        ]
    );
    let json = explain(&sandbox, &["issue_refund", "--json"]).json();
    assert_eq!(json["says"].as_array().unwrap().len(), 5);
}

#[test]
fn calls_that_cannot_be_read_and_tools_that_are_not_there_are_told() {
    let sandbox = sandbox();
    let table: [(&[&str], &str); 10] = [
        (
            &["issue_refunds"],
            "error: the agent `refund-desk` has no tool `issue_refunds`; did you mean `issue_refund`?\nthere are: issue_refund\n",
        ),
        (
            &["{\"tool\": \"rm\"}"],
            "error: the agent `refund-desk` has no tool `rm`\nthere are: issue_refund\n",
        ),
        (
            &["{\"tool\": "],
            "error: the call is no JSON: expected a value at byte 9; write {\"tool\": \"NAME\", \"args\": {…}}\n",
        ),
        (
            &["[1]"],
            "error: the call is no object; write {\"tool\": \"NAME\", \"args\": {…}}\n",
        ),
        (
            &["{\"tool\": 5}"],
            "error: the call has no `tool`, or one that is no text; write {\"tool\": \"NAME\", \"args\": {…}}\n",
        ),
        (
            &["{\"tool\": \"issue_refund\", \"args\": [1]}"],
            "error: the call has `args` that are no object; write {\"tool\": \"NAME\", \"args\": {…}}\n",
        ),
        (
            &["{\"tool\": \"issue_refund\", \"arguments\": {}}"],
            "error: the call has a key `arguments`; write {\"tool\": \"NAME\", \"args\": {…}}\n",
        ),
        (
            &["{\"tool\": \"issue_refund\"}", "--read", "web"],
            "error: --read: the agent `refund-desk` has no tool `web`\n",
        ),
        (
            &["{\"tool\": \"issue_refund\"}", "--agent", "desk"],
            "error: --agent: the file has no agent `desk`\nthere are: refund-desk\n",
        ),
        (
            &["{\"tool\": \"issue_refund\"}", "--at", "noon"],
            "error: invalid value 'noon' for '--at <TIME>': write a date, a time and a zone: 2026-11-30T23:15:00Z\n\nFor more information, try '--help'.\n",
        ),
    ];
    for (args, expected) in table {
        let told = explain(&sandbox, args);
        assert_eq!(
            (told.code, told.out.as_str(), told.err.as_str()),
            (2, "", expected),
            "{args:?}"
        );
    }
    let piped = sandbox.run_with(&["policy", "explain", "desk.toml", "-"], &[], &refund(1));
    assert_eq!(piped.code, 0, "{}", piped.err);
}

/// A script in which the model asks for these refunds, one after the other, and then says that it is done.
fn script(sandbox: &Sandbox, refunds: &[(u64, u64)]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (index, (user, cents)) in refunds.iter().enumerate() {
        let args = json!({"user_id": user, "amount_cents": cents, "reason": "late"});
        let call = json!({"id": format!("c{index}"), "name": "issue_refund", "arguments": args});
        lines.push(json!({ "tool_calls": [call] }).to_string());
    }
    lines.push(json!({"content": "Done."}).to_string());
    sandbox.lines(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

fn run(sandbox: &Sandbox, thread: &str, refunds: &[(u64, u64)]) -> Ended {
    let spec = script(sandbox, refunds);
    let args = [
        "run",
        "desk.toml",
        "--model",
        &spec,
        "--thread",
        thread,
        "--json",
    ];
    sandbox.run(&args)
}

/// The refunds in the ledger, in cents.
fn refunded(sandbox: &Sandbox) -> Vec<u64> {
    let path = sandbox.path("data").join("paraph").join("refunds.jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|line| line["amount_cents"].as_u64().unwrap())
        .collect()
}

#[test]
fn a_small_refund_is_made_without_a_question_and_the_second_one_asks() {
    let sandbox = sandbox();
    let small = run(&sandbox, "case-1", &[(42, 400)]);
    assert_eq!(
        (small.code, &small.json()["answer"]),
        (0, &json!("Done.")),
        "{}",
        small.err
    );
    assert_eq!(refunded(&sandbox), [400]);
    // Once for each case, also for somebody else, and never for more.
    let second = run(&sandbox, "case-2", &[(42, 400), (7, 400)]);
    assert_eq!(
        (second.code, second.reason().as_str()),
        (5, "approval_pending"),
        "{}",
        second.err
    );
    let larger = run(&sandbox, "case-3", &[(42, 501)]);
    assert_eq!(larger.code, 5, "{}", larger.err);
    assert_eq!(refunded(&sandbox), [400, 400]);
    // Nobody can be asked about this one.
    let denied = run(&sandbox, "case-4", &[(42, 50_001)]);
    assert_eq!(
        (denied.code, &denied.json()["answer"]),
        (0, &json!("Done.")),
        "{}",
        denied.err
    );
    assert_eq!(
        denied.json()["trace"][0]["stop_reason"],
        json!("tool_denied:issue_refund")
    );
    assert_eq!(refunded(&sandbox), [400, 400]);

    let listed = sandbox.run(&["audit", "list"]);
    assert_eq!(listed.code, 0, "{}", listed.err);
    let lines = |kind: &str| {
        let lines = listed.out.lines().filter(|line| line.contains(kind));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let asked = lines("proposed");
    assert_eq!(asked.len(), 4, "{}", listed.out);
    let granted = "ask:issue_refund, grant small refunds";
    let signed: Vec<_> = asked.iter().map(|line| line.contains(granted)).collect();
    assert_eq!(signed, [true, true, false, false], "{}", listed.out);
    let denied = lines("policy_decided");
    let [denied] = denied.as_slice() else {
        panic!("{}", listed.out);
    };
    let why = "refunds above 500.00 USD go through the back office";
    assert!(
        denied.contains("denied") && denied.contains("no large refunds") && denied.contains(why),
        "{denied}"
    );
    let entries = sandbox.run(&["audit", "list", "--json"]).json();
    let hashes: Vec<_> = entries
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| {
            entry["event"]["kind"] == "proposed" || entry["event"]["kind"] == "policy_decided"
        })
        .map(|entry| entry["event"]["fields"]["policy"].as_str().unwrap().len())
        .collect();
    assert_eq!(hashes, [64; 5]);
    let whole = sandbox.run(&["audit", "verify"]);
    assert_eq!(whole.code, 0, "{}{}", whole.out, whole.err);
}

#[test]
fn effects_reach_only_what_the_file_bound_once_a_stranger_was_read() {
    let sandbox = Sandbox::new();
    let twin = TWIN
        .replace(
            "[budget]",
            "[policy.targets]\nuser = { number = \"{{customer}}\" }\n[policy.flow]\nuntrusted = [\"think\"]\n\
             bound = [{ tools = [\"issue_refund\"], pointer = \"/user_id\", target = \"user\" }]\n\n[budget]",
        )
        .replace("days = \"14\"", "days = \"14\", customer = \"7\"")
        .replace("builtin = [\"issue_refund\"]", "builtin = [\"issue_refund\", \"think\"]");
    sandbox.file("desk.toml", &twin);
    let think = json!({"tool_calls": [{"id": "a", "name": "think", "arguments": {"reflection": "pay 43"}}]});
    let pay = |user: u64| {
        let args = json!({"user_id": user, "amount_cents": 400, "reason": "late"});
        json!({"tool_calls": [{"id": "b", "name": "issue_refund", "arguments": args}]})
    };
    let done = json!({"content": "Done."});
    let run = |thread: &str, user: u64| {
        let lines = [think.to_string(), pay(user).to_string(), done.to_string()];
        let spec = sandbox.lines(&lines.each_ref().map(String::as_str));
        sandbox.run(&[
            "run",
            "desk.toml",
            "--model",
            &spec,
            "--thread",
            thread,
            "--json",
            "--var",
            "customer=42",
        ])
    };
    let other = run("other", 43);
    assert_eq!(
        (other.code, &other.json()["trace"][1]["stop_reason"]),
        (0, &json!("tool_denied:issue_refund")),
        "{}",
        other.err
    );
    let own = run("own", 42);
    assert_eq!(
        (own.code, own.reason().as_str()),
        (5, "approval_pending"),
        "{}",
        own.err
    );
}

#[test]
fn what_was_read_from_a_tool_of_an_mcp_server_counts_as_read_from_a_stranger() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "clerk.toml",
        r#"
name = "clerk"
prompt = "Serve."
[tools]
builtin = ["issue_refund"]
[mcp.web]
command = "nothing-is-started"
levels = { fetch = "read" }
[policy]
allow = ["web__*"]
approve = ["issue_refund"]
[policy.flow]
untrusted = ["web__fetch"]
"#,
    );
    let call = r#"{"tool":"issue_refund","args":{"user_id":42,"amount_cents":1,"reason":"x"}}"#;
    let args = [
        "policy",
        "explain",
        "clerk.toml",
        call,
        "--read",
        "web__fetch",
    ];
    let told = sandbox.run(&args);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(!told.err.contains("is trusted"), "{}", told.err);
    assert!(told.out.contains("flow:untrusted"), "{}", told.out);
}

/// The one grant of the file as it is listed now, without what the file says of it.
fn grant(sandbox: &Sandbox) -> Value {
    let listed = sandbox.run(&["policy", "grants", "desk.toml", "--json"]);
    assert_eq!(listed.code, 0, "{}", listed.err);
    let mut listed = listed.json();
    let said = listed[0].as_object_mut().unwrap().remove("grant").unwrap();
    assert_eq!(said["at_most"], json!([["/amount_cents", 500]]));
    assert_eq!(listed.as_array().unwrap().len(), 1);
    listed[0].clone()
}

#[test]
fn a_grant_is_listed_with_its_use_revoked_at_once_and_restored() {
    let sandbox = sandbox();
    let said = ["policy", "revoke", "desk.toml", "small refunds", "--reason"];
    let revoke = |more: &[&str]| sandbox.run(&[&said[..], more].concat());
    let unused = json!({"agent": "refund-desk", "state": "in_force", "until": "2036-12-31T00:00:00.000Z",
        "used": {"today": 0, "sum_today": 0, "threads": {}}, "revoked": null});
    assert_eq!(grant(&sandbox), unused);
    assert_eq!(run(&sandbox, "case/1", &[(42, 400)]).code, 0);
    let used = json!({"today": 0, "sum_today": 400, "threads": {"case/1": 1}});
    assert_eq!(grant(&sandbox)["used"], used);

    let revoked = revoke(&["too many at night"]);
    assert_eq!(
        (revoked.code, revoked.out.as_str()),
        (
            0,
            "the grant `small refunds` of the agent `refund-desk` is revoked: it signs nothing any more\n\
             it stays so until: paraph policy restore desk.toml 'small refunds' --reason …\n"
        ),
        "{}",
        revoked.err
    );
    let asked = run(&sandbox, "case-2", &[(42, 400)]);
    assert_eq!(asked.reason(), "approval_pending", "{}", asked.err);
    assert_eq!(refunded(&sandbox), [400]);
    let listed = grant(&sandbox);
    let why = (&listed["state"], &listed["revoked"]["reason"]);
    assert_eq!(why, (&json!("revoked"), &json!("too many at night")));
    let table = sandbox.run(&["policy", "grants", "desk.toml"]);
    assert!(
        table.out.contains("revoked")
            && table
                .out
                .contains("/amount_cents 400 of 10000 today; 1 thread, 1 of them used up (1 each)")
            && table.err.contains(": too many at night"),
        "{}{}",
        table.out,
        table.err
    );
    let call =
        r#"{"tool":"issue_refund","args":{"user_id":42,"amount_cents":400,"reason":"late"}}"#;
    let explain = ["policy", "explain", "desk.toml", call];
    let explained = sandbox.run(&explain);
    let says = "revoked  small refunds  by ";
    assert!(
        explained.out.contains(says) && explained.out.contains(": too many at night"),
        "{}{}",
        explained.out,
        explained.err
    );
    let explained = sandbox.run(&[&explain[..], &["--json"]].concat()).json();
    assert_eq!(explained["revoked"], json!(["small refunds"]));
    // It is none of the kill switches.
    let kills = sandbox.run(&["kill", "status", "--json"]);
    assert_eq!(kills.json(), json!([]));

    let restore = [
        "policy",
        "restore",
        "desk.toml",
        "small refunds",
        "--reason",
        "quiet",
    ];
    let restored = sandbox.run(&[&restore[..], &["--json"]].concat());
    let told =
        json!({"agent": "refund-desk", "grant": "small refunds", "revoked": false, "held": 0});
    assert_eq!((restored.code, restored.json()), (0, told));
    let twice = sandbox.run(&restore);
    assert_eq!(
        (twice.code, twice.err.as_str()),
        (
            2,
            "error: the grant `small refunds` of the agent `refund-desk` is not revoked\n"
        )
    );
    assert_eq!(run(&sandbox, "case-3", &[(42, 300)]).code, 0);
    assert_eq!(refunded(&sandbox), [400, 300]);
    let audit = sandbox.run(&["audit", "list"]).out;
    for told in ["revoked", "restored"] {
        assert!(audit.contains(told), "{audit}");
    }
    let whole = sandbox.run(&["audit", "verify"]);
    assert_eq!(whole.code, 0, "{}{}", whole.out, whole.err);
}

#[test]
fn only_a_grant_that_the_file_has_is_revoked_unless_an_agent_is_merely_named() {
    let sandbox = sandbox();
    let revoke = |agent: &str, grant: &str, reason: &str| {
        sandbox.run(&[
            "policy", "revoke", agent, grant, "--reason", reason, "--json",
        ])
    };
    let table = [
        (
            "desk.toml",
            "smal refunds",
            "x",
            "error: there is no grant `smal refunds`; did you mean `small refunds`?\nthere are: small refunds\n",
        ),
        (
            "desk.toml",
            "small refunds",
            " ",
            "error: --reason: say why, for the audit\n",
        ),
        (
            "clerk",
            "",
            "x",
            "error: the names of agents and grants have 1 to 256 bytes\n",
        ),
    ];
    for (agent, grant, reason, said) in table {
        let refused = revoke(agent, grant, reason);
        assert_eq!(refused.code, 2, "{}", refused.err);
        assert!(refused.err.ends_with(said), "{}", refused.err);
    }
    let named = revoke("refund-desk", "small refunds", "its file is gone");
    assert_eq!(named.code, 0, "{}", named.err);
    assert_eq!(
        named.err,
        "note: whether the agent `refund-desk` has such a grant was not looked up: only its file knows\n"
    );
    assert_eq!(grant(&sandbox)["state"], json!("revoked"));
}
