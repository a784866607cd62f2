//! Refunds through the binary: proposed, decided by a person, made once whatever happens to the process; by the
//! support agent and by an agent that is configuration alone.

use crate::sandbox::{Ended, Sandbox, tool};
use crate::stand_in::{Answer, StandIn};
use paraph_gateway::{ActionRow, Approvals, State};
use serde_json::{Value, json};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WANTS: &str = "Please refund me now.";
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks for a refund on a thread; the run then waits for a person.
fn propose(sandbox: &Sandbox, thread: &str, env: &[(&str, &str)]) -> Ended {
    let args = [
        "run",
        "support",
        WANTS,
        "--model",
        "rehearsal",
        "--thread",
        thread,
        "--json",
    ];
    let ended = sandbox.run_with(&args, env, "");
    assert_eq!(ended.code, 5, "{}{}", ended.out, ended.err);
    ended
}

fn resume(sandbox: &Sandbox, thread: &str, env: &[(&str, &str)]) -> Ended {
    let args = ["runs", "resume", "--thread", thread, "--json"];
    sandbox.run_with(&args, env, "")
}

/// The process that goes on with a run.
fn resuming(sandbox: &Sandbox, thread: &str, env: &[(&str, &str)]) -> Child {
    let mut command = sandbox.command(&["runs", "resume", "--thread", thread, "--quiet"]);
    command.envs(env.iter().copied());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// What a person does at the desk of the sandbox's store.
fn at_desk<T>(sandbox: &Sandbox, work: impl AsyncFnOnce(Approvals) -> T) -> T {
    let path = data(sandbox, "paraph.db");
    let url = format!("sqlite://{}", path.display());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let opened = paraph_store::open(&url, paraph_store::Options::default());
        work(Approvals::new(opened.await.unwrap().gateway.clone())).await
    })
}

/// Approves all that waits, and gives it.
fn approve_all(sandbox: &Sandbox) -> Vec<ActionRow> {
    at_desk(sandbox, async |desk| {
        let waiting = desk.waiting().await.unwrap();
        for row in &waiting {
            desk.approve(row.id(), &row.digest, "ann").await.unwrap();
        }
        waiting
    })
}

fn data(sandbox: &Sandbox, name: &str) -> PathBuf {
    sandbox.path("data").join("paraph").join(name)
}

/// The lines of the ledger; none if it is not there.
fn ledger(sandbox: &Sandbox) -> Vec<Value> {
    let text = std::fs::read_to_string(data(sandbox, "refunds.jsonl")).unwrap_or_default();
    let lines = text.lines().map(serde_json::from_str);
    lines.map(Result::unwrap).collect()
}

/// How many whole lines it has, while somebody may be writing.
fn whole_lines(sandbox: &Sandbox) -> usize {
    let bytes = std::fs::read(data(sandbox, "refunds.jsonl")).unwrap_or_default();
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Looks until something is there.
fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::yield_now();
    }
}

#[test]
fn a_refund_waits_for_a_person_and_is_then_made_once() {
    let sandbox = Sandbox::new();
    let waiting = propose(&sandbox, "t", &[]);
    let result = waiting.json();
    assert_eq!(
        (&result["status"], &result["stop_reason"]),
        (&json!("waiting"), &json!("approval_pending"))
    );
    let place = data(&sandbox, "refunds.jsonl");
    assert!(
        waiting.err.contains(&format!(
            "refunds: written into the ledger {}",
            place.display()
        )),
        "{}",
        waiting.err
    );
    assert_eq!(ledger(&sandbox), Vec::<Value>::new());

    let approved = approve_all(&sandbox);
    let [row] = approved.as_slice() else {
        panic!("{approved:?}")
    };
    assert_eq!(
        (
            &result["approvals"][0]["id"],
            &result["approvals"][0]["digest"]
        ),
        (&json!(row.id().to_string()), &json!(row.digest))
    );
    assert_eq!(
        row.action.said.says,
        "Refund 49.00 USD (4900 cents) to user 42. It is written into the refund ledger of this machine. The reason \
         given: the first payment was 10 days ago, within the 14 days of the policy (refund-v3)"
    );
    let done = resume(&sandbox, "t", &[]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    let lines = ledger(&sandbox);
    let name = lines[0]["refund"].as_str().unwrap();
    assert_eq!(
        done.json()["answer"],
        format!("Done: 49.00 USD are refunded to you (receipt {name}).")
    );
    assert_eq!(
        (&lines[0]["user_id"], &lines[0]["amount_cents"], lines.len()),
        (&json!(42), &json!(4_900), 1)
    );
    assert_eq!(resume(&sandbox, "t", &[]).out, done.out);
    assert_eq!(ledger(&sandbox), lines);
}

#[test]
fn a_refund_that_a_person_refuses_is_not_made_and_says_why() {
    let sandbox = Sandbox::new();
    propose(&sandbox, "t", &[]);
    at_desk(&sandbox, async |desk| {
        for row in desk.waiting().await.unwrap() {
            let why = "paid back by bank already";
            desk.reject(row.id(), &row.digest, "ann", why)
                .await
                .unwrap();
        }
    });
    let ended = resume(&sandbox, "t", &[]);
    assert_eq!(
        (ended.code, ended.reason().as_str()),
        (3, "approval_rejected")
    );
    assert!(
        ended.err.contains("paid back by bank already"),
        "{}",
        ended.err
    );
    assert_eq!(ledger(&sandbox), Vec::<Value>::new());
}

#[test]
fn nobody_is_asked_where_the_question_would_be_forgotten() {
    let sandbox = Sandbox::new();
    let run = |task: &str| {
        sandbox.run(&[
            "run",
            "support",
            task,
            "--model",
            "rehearsal",
            "--store",
            "memory:",
        ])
    };
    let plain = run("Can I get a refund now?");
    assert_eq!(plain.code, 0, "{}", plain.err);
    let refused = run(WANTS);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""));
    let why = "store: `issue_refund` needs a person's approval, and the store `memory:` forgets the question when this process ends";
    assert!(refused.err.contains(why), "{}", refused.err);
}

#[test]
fn where_refunds_go_is_a_setting() {
    let sandbox = Sandbox::new();
    let shown = sandbox.run_with(
        &["config", "show", "--json"],
        &[("REFUND_TOKEN", "s3cret-token")],
        "",
    );
    let rows = shown.json();
    let of = |key: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["key"] == key).unwrap()["value"].clone()
    };
    assert_eq!(
        [
            of("refund.ledger"),
            of("refund.base_url"),
            of("refund.token")
        ],
        [
            json!(data(&sandbox, "refunds.jsonl").display().to_string()),
            Value::Null,
            json!("********")
        ]
    );
    for (name, value, why) in [
        (
            "REFUND_LEDGER",
            "refunds.jsonl",
            "REFUND_LEDGER: the refund ledger: `refunds.jsonl` is no whole path of a file: write it from the root on",
        ),
        (
            "REFUND_BASE_URL",
            "http://pay.example",
            "REFUND_BASE_URL: http://pay.example: plain http is for this machine only",
        ),
    ] {
        let args = ["run", "support", "--model", "rehearsal"];
        let refused = sandbox.run_with(&args, &[(name, value)], "");
        assert_eq!(refused.code, 2, "{}", refused.err);
        assert!(refused.err.contains(why), "{}", refused.err);
    }
}

#[test]
fn of_two_that_were_approved_at_once_the_second_drifted_and_show_says_what_changed() {
    let sandbox = Sandbox::new();
    let mut rows = Vec::new();
    for thread in ["t-1", "t-2"] {
        propose(&sandbox, thread, &[]);
    }
    for row in approve_all(&sandbox) {
        rows.push(row);
    }
    assert_eq!(resume(&sandbox, "t-1", &[]).code, 0);
    let second = resume(&sandbox, "t-2", &[]);
    assert_eq!((second.reason().as_str(), second.code), ("drifted", 3));
    assert_eq!(ledger(&sandbox).len(), 1);

    let id = rows[1].id().to_string();
    let shown = sandbox.run(&["approvals", "show", &id]).out;
    for part in [
        "what has to be so still when it is done\n  given back to the user before = 0 refunds, 0.00 USD\n",
        "what is not so any more\n  given back to the user before\n    - 0 refunds, 0.00 USD\n    + 1 refund, 49.00 USD\n",
        "what it is done to\n  refunds go to = ",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let json = sandbox.run(&["approvals", "show", &id, "--json"]).json();
    assert_eq!(
        json["changed"],
        json!([{
            "name": "given back to the user before",
            "target": false,
            "seen": "0 refunds, 0.00 USD",
            "now": "1 refund, 49.00 USD",
        }])
    );
    assert_eq!(
        json["preconditions"]["given back to the user before"],
        "0 refunds, 0.00 USD"
    );
}

#[test]
fn killed_between_the_ledger_and_the_record_it_is_one_refund() {
    let sandbox = Sandbox::new();
    let mut hits = 0;
    for number in 1..=10 {
        let thread = format!("t-{number}");
        propose(&sandbox, &thread, &[]);
        let rows = approve_all(&sandbox);
        let lock = data(&sandbox, "refunds.jsonl.lock");
        let lock = File::options()
            .create(true)
            .append(true)
            .open(lock)
            .unwrap();
        lock.lock().unwrap();
        let mut going_on = resuming(&sandbox, &thread, &[]);
        let is_started = || {
            let state = at_desk(&sandbox, async |desk| desk.show(rows[0].id()).await);
            (state.unwrap().state == State::Executing).then_some(())
        };
        until("the attempt", is_started);
        let before = whole_lines(&sandbox);
        lock.unlock().unwrap();
        until("the line", || {
            (whole_lines(&sandbox) > before).then_some(())
        });
        going_on.kill().unwrap();
        going_on.wait().unwrap();
        let state = at_desk(&sandbox, async |desk| desk.show(rows[0].id()).await);
        let hit = state.unwrap().state == State::Executing;
        let done = resume(&sandbox, &thread, &[]);
        assert_eq!(done.code, 0, "{}{}", done.out, done.err);
        assert_eq!(ledger(&sandbox).len(), number);
        hits += usize::from(hit);
        if hits == 2 {
            return;
        }
    }
    assert!(hits > 0, "no process died in between");
}

#[test]
fn killed_before_the_answer_of_a_service_it_counts_one() {
    let till: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let counting = till.clone();
    let server = StandIn::start(move |asked| {
        let mut kept = counting.lock().unwrap();
        if let Some(key) = asked.header("idempotency-key") {
            if kept.iter().all(|(known, _)| known != key) {
                kept.push((key.to_owned(), asked.json().unwrap()));
            }
            return Answer::json(201, &json!({})).sent(crate::stand_in::Manner::Silent);
        }
        let key = asked.path().strip_prefix("/refunds/").unwrap();
        match kept.iter().find(|(known, _)| known == key) {
            Some((_, body)) => Answer::json(200, body),
            None => Answer::json(404, &json!({})),
        }
    });
    let sandbox = Sandbox::new();
    let url = server.url();
    let env = [("REFUND_BASE_URL", url.as_str())];
    let waiting = propose(&sandbox, "t", &env);
    assert!(waiting.err.contains(&format!("refunds: sent to {url}")));
    approve_all(&sandbox);
    let mut going_on = resuming(&sandbox, "t", &env);
    until("the request", || {
        (!till.lock().unwrap().is_empty()).then_some(())
    });
    going_on.kill().unwrap();
    going_on.wait().unwrap();
    let done = resume(&sandbox, "t", &env);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    let methods: Vec<_> = server.seen().into_iter().map(|seen| seen.method).collect();
    assert_eq!(
        (
            methods.last().map(String::as_str),
            till.lock().unwrap().len()
        ),
        (Some("GET"), 1)
    );
    assert_eq!(ledger(&sandbox), Vec::<Value>::new());
}

#[test]
fn an_agent_that_is_configuration_alone_refunds_the_same_way() {
    let sandbox = Sandbox::new();
    let twin = include_str!("../../../../examples/support-refund.toml");
    sandbox.file("support-refund.toml", twin);
    let checked = sandbox.run(&["check", "support-refund.toml"]);
    assert_eq!(
        (checked.code, checked.out.as_str()),
        (0, "support-refund.toml: no mistakes\n"),
        "{}",
        checked.err
    );
    let call = json!({"user_id": 42, "amount_cents": 4_900, "reason": "refund-v3"});
    let spec = sandbox.lines(&[
        &json!({"tool_calls": [{"id": "a", "name": "issue_refund", "arguments": call}]})
            .to_string(),
        &json!({"content": "49.00 USD are refunded."}).to_string(),
    ]);
    let args = [
        "run",
        "support-refund.toml",
        "--model",
        &spec,
        "--thread",
        "t",
        "--json",
    ];
    let waiting = sandbox.run(&args);
    assert_eq!(
        (waiting.code, waiting.reason().as_str()),
        (5, "approval_pending"),
        "{}",
        waiting.err
    );
    assert!(waiting.err.contains("refunds: written into the ledger "));
    approve_all(&sandbox);
    let done = resume(&sandbox, "t", &[]);
    assert_eq!(
        done.json()["answer"],
        "49.00 USD are refunded.",
        "{}",
        done.err
    );
    assert_eq!(ledger(&sandbox).len(), 1);
}

#[test]
fn denied_it_is_not_even_proposed() {
    let sandbox = Sandbox::new();
    let args = json!({"user_id": 42, "amount_cents": 1, "reason": "x"}).to_string();
    let spec = sandbox.script(&[&tool("issue_refund", &args)]);
    let flags = ["--allow", "issue_refund", "--deny", "issue_refund"];
    let ended =
        sandbox.run(&[&["run", "support", "--json", "--model", &spec][..], &flags].concat());
    assert_eq!(
        (ended.code, ended.reason().as_str()),
        (3, "tool_denied:issue_refund")
    );
    let wrong = json!({"user_id": 42, "amount_cents": 0, "reason": "x"}).to_string();
    let spec = sandbox.script(&[&tool("issue_refund", &wrong)]);
    let ended = sandbox.run(&["run", "support", "--json", "--model", &spec]);
    assert_eq!(
        (ended.code, ended.reason().as_str()),
        (3, "tool_bad_args:issue_refund")
    );
}

#[test]
fn a_ledger_that_would_keep_its_reader_waiting_is_refused_at_once() {
    let sandbox = Sandbox::new();
    let pipe = sandbox.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let named = pipe.to_str().unwrap();
    let args = ["run", "support", WANTS, "--model", "rehearsal"];
    let ended = sandbox.run_with(&args, &[("REFUND_LEDGER", named)], "");
    assert_eq!(ended.code, 2, "{}{}", ended.out, ended.err);
    let why = format!("`{named}` is there and is no ordinary file");
    assert!(ended.err.contains(&why), "{}", ended.err);
    // The same for a lock that is none.
    std::fs::create_dir(sandbox.path("books")).unwrap();
    let ledger = sandbox.path("books").join("refunds.jsonl");
    let lock = sandbox.path("books").join("refunds.jsonl.lock");
    let made = std::process::Command::new("mkfifo").arg(lock).status();
    assert!(made.unwrap().success());
    let env = [("REFUND_LEDGER", ledger.to_str().unwrap())];
    propose(&sandbox, "t", &env);
    approve_all(&sandbox);
    let ended = resume(&sandbox, "t", &env);
    assert!(
        ended.err.contains("no ordinary file is there"),
        "{}{}",
        ended.out,
        ended.err
    );
}
