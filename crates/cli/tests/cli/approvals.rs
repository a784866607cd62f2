//! Effects that wait for people: shown to the byte, decided about at the command line, done once, and gone on with.

use crate::sandbox::{Ended, Sandbox};
use crate::stand_in::{Answer, Seen, StandIn};
use serde_json::{Value, json};

/// A shop that pays back, and remembers how often it was asked to.
pub(crate) struct Shop {
    pub(crate) server: StandIn,
    pub(crate) sandbox: Sandbox,
}

const SAYS: &str = r#"Call `pay_back` with {"cents":4900,"order":7}"#;

impl Shop {
    pub(crate) fn new() -> Shop {
        Shop::answering(|seen| Answer::json(200, &json!({"paid": seen.json().unwrap()["cents"]})))
    }

    /// A shop whose service answers by this.
    pub(crate) fn answering(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Shop {
        let server = StandIn::start(answer);
        let shop = Shop {
            server,
            sandbox: Sandbox::new(),
        };
        let agent = format!(
            r#"
name = "clerk"
prompt = "Serve."
[[tools.http]]
name = "pay_back"
description = "Pays money back."
method = "POST"
url = "{}/refunds"
plain_http = true
[tools.http.body]
order = "{{order}}"
cents = "{{cents}}"
[tools.http.arguments]
order = {{ type = "integer" }}
cents = {{ type = "integer" }}
[policy]
approve = ["pay_back"]
"#,
            shop.server.url()
        );
        shop.sandbox.file("clerk.toml", &agent);
        shop.script(&[&pays(7, 4900), &says("It is done.")]);
        shop
    }

    pub(crate) fn script(&self, lines: &[&str]) {
        self.sandbox.lines(lines);
    }

    /// Begins a run that comes to wait; gives what it waits for.
    pub(crate) fn asked(&self, thread: &str) -> Waiting {
        let ended = self.run(thread);
        assert_eq!(ended.code, 5, "{}{}", ended.out, ended.err);
        let result = ended.json();
        assert_eq!(
            (&result["status"], &result["stop_reason"]),
            (&json!("waiting"), &json!("approval_pending"))
        );
        let approvals = result["approvals"].as_array().unwrap();
        assert_eq!(approvals.len(), 1, "{result}");
        let text = |name: &str| approvals[0][name].as_str().unwrap().to_owned();
        Waiting {
            id: text("id"),
            digest: text("digest"),
        }
    }

    pub(crate) fn run(&self, thread: &str) -> Ended {
        self.sandbox.run(&[
            "run",
            "clerk.toml",
            "Pay order 7 back.",
            "--model",
            "scripted:script.jsonl",
            "--thread",
            thread,
            "--json",
        ])
    }

    pub(crate) fn approvals(&self, args: &[&str]) -> Ended {
        self.sandbox.run(&[&["approvals"], args].concat())
    }

    pub(crate) fn paid(&self) -> Vec<Value> {
        let seen = self.server.seen();
        seen.iter().map(|seen| seen.json().unwrap()).collect()
    }

    pub(crate) fn show(&self, waiting: &Waiting) -> Value {
        self.approvals(&["show", &waiting.id, "--json"]).json()
    }
}

pub(crate) struct Waiting {
    pub(crate) id: String,
    pub(crate) digest: String,
}

impl Waiting {
    /// The command that approves it, with more flags.
    pub(crate) fn approve<'w>(&'w self, more: &[&'w str]) -> Vec<&'w str> {
        [&["approve", &self.id, "--digest", &self.digest], more].concat()
    }
}

pub(crate) fn pays(order: u64, cents: u64) -> String {
    let call =
        json!({"id": "c1", "name": "pay_back", "arguments": {"order": order, "cents": cents}});
    json!({ "tool_calls": [call] }).to_string()
}

pub(crate) fn says(text: &str) -> String {
    json!({ "content": text }).to_string()
}

/// What the model read of its calls.
pub(crate) fn read(result: &Value) -> Vec<String> {
    let messages = result["messages"].as_array().unwrap();
    let tools = messages.iter().filter(|message| message["type"] == "tool");
    tools
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn nothing_happens_until_somebody_approves_and_then_it_happens_once() {
    let shop = Shop::new();
    let waiting = shop.asked("t-1");
    assert_eq!(shop.paid(), Vec::<Value>::new());

    let listed = shop.approvals(&["list", "--json"]).json();
    let row = &listed[0];
    assert_eq!(
        (&row["id"], &row["digest"], &row["state"], &row["agent"]),
        (
            &json!(waiting.id),
            &json!(waiting.digest),
            &json!("pending"),
            &json!("clerk")
        )
    );
    assert_eq!(
        (&row["tool"], &row["thread"], &row["says"]),
        (&json!("pay_back"), &json!("t-1"), &json!(SAYS))
    );
    assert!(row["expires_at"].as_str().unwrap().ends_with('Z'), "{row}");

    let approved = shop.approvals(&waiting.approve(&["--json"]));
    assert_eq!(approved.code, 0, "{}", approved.err);
    assert!(
        approved.err.contains("(unverified): Call `pay_back`"),
        "{}",
        approved.err
    );
    let result = approved.json();
    assert_eq!(result["answer"], "It is done.");
    assert_eq!(read(&result), [r#"{"paid":4900}"#]);
    assert_eq!(shop.paid(), [json!({"order": 7, "cents": 4900})]);

    let after = shop.show(&waiting);
    assert_eq!(
        (&after["state"], &after["attempts"], &after["receipt"]),
        (&json!("succeeded"), &json!(1), &json!({"paid": 4900}))
    );
    let again = shop.approvals(&waiting.approve(&["--json"]));
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(again.err.contains("before"), "{}", again.err);
    assert_eq!(again.json()["answer"], "It is done.");
    assert_eq!(shop.paid().len(), 1);
    let nothing = shop.approvals(&["list"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (0, ""));
    assert!(nothing.err.contains("nothing waits"), "{}", nothing.err);
}

#[test]
fn whoever_decides_sees_it_to_the_byte_with_the_command_that_approves_it() {
    let shop = Shop::new();
    let waiting = shop.asked("t-1");
    let shown = shop.approvals(&["show", &waiting.id]);
    assert_eq!((shown.code, shown.err.as_str()), (0, ""));
    for expected in [
        format!("effect    {SAYS}"),
        "state     pending: people have to decide".to_owned(),
        "tool      pay_back (write)".to_owned(),
        "  {\"cents\":4900,\"order\":7}\n".to_owned(),
        "  cents = 4900\n  order = 7\n".to_owned(),
        format!("digest    {}", waiting.digest),
        format!(
            "to approve  paraph approvals approve {} --digest {}\n",
            waiting.id, waiting.digest
        ),
        "min left)".to_owned(),
        "as local user".to_owned(),
    ] {
        assert!(shown.out.contains(&expected), "{expected}\n{}", shown.out);
    }
    let json = shop.show(&waiting);
    let bytes: Value = serde_json::from_str(json["bytes"].as_str().unwrap()).unwrap();
    assert_eq!(bytes["args"], json!({"order": 7, "cents": 4900}));
    assert_eq!(json["arguments"], bytes["args"]);
    let none = shop.approvals(&["show", "01920000-0000-7000-8000-000000000000"]);
    assert_eq!(none.code, 2);
    assert!(none.err.contains("there is no action"), "{}", none.err);
    let bad = shop.approvals(&["show", "x"]);
    assert_eq!(bad.code, 2);
    assert!(bad.err.contains("`x` is no action's id"), "{}", bad.err);
}

#[test]
fn what_was_not_looked_at_is_not_approved() {
    let shop = Shop::new();
    let waiting = shop.asked("t-1");
    let other = "0".repeat(64);
    let short = &waiting.digest[..11];
    let table: [(&[&str], &str); 4] = [
        (&[], "--digest is missing"),
        (&["--digest", &other], "that is not the digest"),
        (&["--digest", short], "12 to 64 hexadecimal digits"),
        (
            &["--digest", "not a digest!"],
            "12 to 64 hexadecimal digits",
        ),
    ];
    for (flags, expected) in table {
        let refused = shop.approvals(&[&["approve", waiting.id.as_str()], flags].concat());
        assert_eq!(refused.code, 2, "{}", refused.err);
        assert!(refused.err.contains(expected), "{}", refused.err);
        let look = format!("paraph approvals show {}", waiting.id);
        assert!(refused.err.contains(&look), "{}", refused.err);
    }
    assert_eq!(shop.show(&waiting)["state"], "pending");
    let prefix = &waiting.digest[..12].to_uppercase();
    let approved = shop.approvals(&["approve", &waiting.id, "--digest", prefix, "--quiet"]);
    assert_eq!((approved.code, approved.out.as_str()), (0, "It is done.\n"));
    assert_eq!(shop.paid().len(), 1);
}

#[test]
fn the_model_reads_why_somebody_said_no_and_nothing_happens() {
    let shop = Shop::new();
    let waiting = shop.asked("t-1");
    let reject = ["reject", &waiting.id, "--digest", &waiting.digest];
    let reasons = ["--reason", "that order was paid back on Monday", "--json"];
    let rejected = shop.approvals(&[&reject[..], &reasons].concat());
    assert_eq!(rejected.code, 0, "{}", rejected.err);
    let seen = read(&rejected.json());
    assert!(
        seen[0].contains("that order was paid back on Monday"),
        "{seen:?}"
    );
    let again = shop.approvals(&[&reject[..], &["--reason", "it is too much", "--json"]].concat());
    assert_eq!(
        (again.code, &again.out),
        (0, &rejected.out),
        "{}",
        again.err
    );
    let first = "the reason that was given first stands: that order was paid back on Monday";
    assert!(again.err.contains(first), "{}", again.err);
    let other = shop.approvals(&waiting.approve(&[]));
    assert_eq!(other.code, 6, "{}", other.err);
    assert!(
        other.err.contains("is rejected already (by "),
        "{}",
        other.err
    );
    assert_eq!(shop.paid(), Vec::<Value>::new());

    // The subject stays closed, until somebody opens it.
    shop.script(&[&pays(7, 4900), &says("It is done.")]);
    let closed = shop.run("t-1");
    assert_eq!(closed.code, 0, "{}", closed.err);
    let reopened = shop.approvals(&["reopen", &waiting.id]);
    assert_eq!(reopened.code, 0, "{}", reopened.err);
    assert!(reopened.err.contains("may ask about"), "{}", reopened.err);
    let twice = shop.approvals(&["reopen", &waiting.id]);
    assert_eq!(twice.code, 2);
    assert!(twice.err.contains("closes nothing"), "{}", twice.err);
    shop.asked("t-1");
}

#[test]
fn a_person_can_change_what_is_asked_for_and_that_is_what_is_signed() {
    let shop = Shop::new();
    let waiting = shop.asked("t-1");
    let edit = ["edit", &waiting.id, "--digest", &waiting.digest];
    let wrong = shop.approvals(&[&edit[..], &["--args", r#"{"order":7}"#]].concat());
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    assert!(
        wrong.err.contains("the changed arguments do not fit"),
        "{}",
        wrong.err
    );
    let no_terminal = shop.approvals(&edit);
    assert_eq!(no_terminal.code, 2);
    assert!(
        no_terminal.err.contains("--args is missing"),
        "{}",
        no_terminal.err
    );
    shop.sandbox
        .file("less.json", r#"{"order": 7, "cents": 500}"#);
    let edited = shop.approvals(&[&edit[..], &["--args", "@less.json", "--json"]].concat());
    assert_eq!(edited.code, 0, "{}", edited.err);
    let new = edited.json();
    let text = |name: &str| new[name].as_str().unwrap().to_owned();
    let new = Waiting {
        id: text("id"),
        digest: text("digest"),
    };
    assert_ne!((&new.id, &new.digest), (&waiting.id, &waiting.digest));
    let shown = shop.approvals(&["show", &new.id]).out;
    let changed = "\nwhat was changed\n  cents\n    - 4900\n    + 500\n";
    assert!(shown.contains(changed), "{shown}");
    assert_eq!(
        shop.show(&new)["diff"],
        json!([{"name": "cents", "before": ["4900"], "after": ["500"]}])
    );
    let old = shop.approvals(&waiting.approve(&[]));
    assert_eq!(old.code, 6, "{}", old.err);
    let instead = format!("In its place: paraph approvals show {}", new.id);
    assert!(old.err.contains(&instead), "{}", old.err);
    let approved = shop.approvals(&new.approve(&["--quiet"]));
    assert_eq!(approved.code, 0, "{}", approved.err);
    assert_eq!(shop.paid(), [json!({"order": 7, "cents": 500})]);
    assert_eq!(shop.show(&waiting)["replaced_by"], json!(new.id));
}

#[test]
fn a_decision_may_be_written_down_first_and_the_run_driven_later() {
    let shop = Shop::new();
    let waiting = shop.asked("t-1");
    let approved = shop.approvals(&waiting.approve(&["--no-run"]));
    assert_eq!((approved.code, approved.out.as_str()), (0, ""));
    assert_eq!(shop.show(&waiting)["state"], "approved");
    assert_eq!(shop.paid(), Vec::<Value>::new());
    let command = approved.err.split("paraph runs resume ").nth(1).unwrap();
    let run = command.trim();
    let resumed = shop.sandbox.run(&["runs", "resume", run, "--quiet"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "It is done.\n"));
    assert_eq!(shop.paid().len(), 1);
}

#[test]
fn a_decision_stands_if_its_run_cannot_be_driven_here() {
    let shop = Shop::new();
    let waiting = shop.asked("t-1");
    let agent = std::fs::read_to_string(shop.sandbox.path("clerk.toml")).unwrap();
    std::fs::remove_file(shop.sandbox.path("clerk.toml")).unwrap();
    let approved = shop.approvals(&waiting.approve(&[]));
    assert_eq!(approved.code, 2, "{}", approved.err);
    assert!(
        approved
            .err
            .contains("the decision stands; go on with the run: paraph runs resume "),
        "{}",
        approved.err
    );
    assert_eq!(shop.paid(), Vec::<Value>::new());
    shop.sandbox.file("clerk.toml", &agent);
    let resumed = shop
        .sandbox
        .run(&["runs", "resume", "--thread", "t-1", "--quiet"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "It is done.\n"));
    assert_eq!(shop.paid().len(), 1);
}

#[test]
fn a_run_that_waits_says_so_with_the_commands_that_help() {
    let shop = Shop::new();
    let args = [
        "run",
        "clerk.toml",
        "Pay.",
        "--model",
        "scripted:script.jsonl",
        "--store",
        "sqlite://here.db",
    ];
    let ended = shop.sandbox.run(&args);
    assert_eq!(ended.code, 5);
    assert!(
        ended
            .out
            .starts_with("Waiting: everything so far is saved.\n\nA person has to approve: Call"),
        "{}",
        ended.out
    );
    assert!(
        ended.out.contains(" --store sqlite://here.db\n"),
        "{}",
        ended.out
    );
    assert!(ended.err.contains("waits for a person"), "{}", ended.err);
    let command = ended.out.split("approve it  paraph ").nth(1).unwrap();
    let words: Vec<_> = command.lines().next().unwrap().split(' ').collect();
    let approved = shop.sandbox.run(&words);
    assert_eq!(
        (approved.code, approved.out.as_str()),
        (0, "It is done.\n"),
        "{}",
        approved.err
    );
    assert_eq!(shop.paid().len(), 1);
}

#[test]
fn what_comes_to_wait_is_among_the_events() {
    let shop = Shop::new();
    let args = ["run", "clerk.toml", "Pay.", "--events", "--model"];
    let ended = shop
        .sandbox
        .run(&[&args[..], &["scripted:script.jsonl"]].concat());
    let events = ended
        .out
        .lines()
        .map(|line| -> Value { serde_json::from_str(line).unwrap() });
    let asked: Vec<_> = events
        .filter(|event| event["type"] == "approval_asked")
        .collect();
    assert_eq!(asked.len(), 1, "{}", ended.out);
    assert_eq!(
        (&asked[0]["tool"], &asked[0]["says"], &asked[0]["why"]),
        (&json!("pay_back"), &json!(SAYS), &json!("approval"))
    );
}

#[test]
fn the_command_of_the_settings_is_told_what_waits() {
    let shop = Shop::new();
    shop.sandbox
        .file("paraph.toml", "[approvals]\nhook = \"cat > told.json\"\n");
    let waiting = shop.asked("t-1");
    let told = std::fs::read_to_string(shop.sandbox.path("told.json")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told[0]["id"], json!(waiting.id));
    shop.sandbox
        .file("paraph.toml", "[approvals]\nhook = \"exit 3\"\n");
    let ended = shop.run("t-2");
    assert_eq!(ended.code, 5);
    assert!(ended.err.contains("approvals.hook"), "{}", ended.err);
}

#[test]
fn an_agent_that_may_have_to_ask_refuses_a_store_that_dies_with_it() {
    let shop = Shop::new();
    let args = ["run", "clerk.toml", "Pay.", "--store", "memory:", "--model"];
    let refused = shop
        .sandbox
        .run(&[&args[..], &["scripted:script.jsonl"]].concat());
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("would die with this process"),
        "{}",
        refused.err
    );
    let denied = ["scripted:script.jsonl", "--deny", "pay_back", "--quiet"];
    let ran = shop.sandbox.run(&[&args[..], &denied].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "It is done.\n"));
    assert_eq!(shop.paid(), Vec::<Value>::new());
}

#[cfg(unix)]
#[test]
fn what_was_approved_is_done_once_though_the_first_process_was_killed() {
    let shop = Shop::new();
    let slow = json!({"content": "It is done.", "delay_ms": 3_600_000}).to_string();
    shop.script(&[&pays(7, 4900), &slow]);
    let waiting = shop.asked("t-1");
    let args = [
        "approvals",
        "approve",
        &waiting.id,
        "--digest",
        &waiting.digest,
        "--events",
    ];
    // It has done it, and asks the model what next.
    let hanging = crate::resuming::start(&shop.sandbox, &args, 2);
    hanging.end("-KILL");
    shop.script(&[&pays(7, 4900), &says("It is done.")]);
    let again = shop.approvals(&waiting.approve(&["--quiet"]));
    assert_eq!(
        (again.code, again.out.as_str()),
        (0, "It is done.\n"),
        "{}",
        again.err
    );
    assert_eq!(shop.paid().len(), 1);
}

#[test]
fn the_list_of_an_empty_store_is_empty() {
    let sandbox = Sandbox::new();
    let json = sandbox.run(&["approvals", "list", "--json"]);
    assert_eq!((json.code, json.out.as_str()), (0, "[]\n"));
    let show = sandbox.run(&["approvals", "show", "x"]);
    assert_eq!(show.code, 2);
    let shop = Shop::new();
    shop.asked("t-1");
    let rejected = shop.approvals(&["list", "--state", "rejected"]);
    assert!(
        rejected.err.contains("no action is in this state"),
        "{}",
        rejected.err
    );
    let wrong = shop.approvals(&["list", "--state", "rejectd"]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.err.contains("did you mean `rejected`"),
        "{}",
        wrong.err
    );
}

#[cfg(unix)]
#[test]
fn whoever_watches_sees_what_waits_and_what_comes() {
    use std::io::{BufRead as _, BufReader};
    let shop = Shop::new();
    let first = shop.asked("t-1");
    let mut command = shop.sandbox.command(&["approvals", "watch", "--json"]);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["id"], json!(first.id));
    let second = shop.asked("t-2");
    assert_eq!(next()["id"], json!(second.id));
    child.kill().unwrap();
    child.wait().unwrap();
}
