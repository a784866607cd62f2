//! Bug reports of other projects, turned around, as far as they concern effects: who signs what, and what runs
//! of it. Each test names its report by the letter and number of the project's own log of them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use paraph_gateway::examples::Pay;
use paraph_gateway::*;
use serde::{Deserialize, Serialize};
use stage::{cents, scope, seen, waits};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Runs a command on a machine of its own, and counts how often.
#[derive(Clone, Default)]
struct Shell(Arc<AtomicUsize>);

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Line {
    command: String,
}

impl Effect for Shell {
    type Args = Line;
    type Receipt = String;
    const NAME: &'static str = "shell";
    const ABOUT: &'static str = "Runs a command";
    const LEVEL: Level = Level::Execute;

    fn describe(&self, line: &Line) -> String {
        format!("Run {}", line.command)
    }

    fn subject(&self, line: &Line) -> String {
        line.command.clone()
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<String, EffectError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        // Others get a chance to come in between.
        tokio::task::yield_now().await;
        Ok(format!("ran {}", warrant.args.command))
    }

    async fn reconcile(&self, _: Attempt<'_, Self>) -> Result<Found<String>, ToolError> {
        Ok(Found::CannotTell)
    }
}

fn command(line: &str) -> ToolCall {
    let args = serde_json::json!({ "command": line }).to_string();
    ToolCall::native("shell", &args)
}

/// Sends an order, whose number has more digits than a float keeps.
#[derive(Clone, Default)]
struct Ship(Arc<AtomicU64>);

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Order {
    id: u64,
}

impl Effect for Ship {
    type Args = Order;
    type Receipt = u64;
    const NAME: &'static str = "ship";
    const ABOUT: &'static str = "Sends an order";

    fn describe(&self, order: &Order) -> String {
        format!("Send order {}", order.id)
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<u64, EffectError> {
        self.0.store(warrant.args.id, Ordering::SeqCst);
        Ok(warrant.args.id)
    }

    async fn reconcile(&self, _: Attempt<'_, Self>) -> Result<Found<u64>, ToolError> {
        Ok(Found::CannotTell)
    }
}

/// B15, pi#8943, on the way of an effect: the person, the signed bytes, the effect and the evidence have every digit.
#[tokio::test]
async fn b15_large_integers_reach_the_person_the_signature_the_effect_and_the_evidence() {
    let id = 2_512_292_042_121_000_001;
    let (store, ship) = (MemoryStore::shared(), Ship::default());
    let gateway = Gateway::builder(store.clone())
        .effect(ship.clone())
        .policy(Policy::new().ask("ship", Ask::default()))
        .build()
        .unwrap();
    let session = gateway.session(scope(), Limits::default()).await.unwrap();
    let call = ToolCall::native("ship", &format!(r#"{{"id":{id}}}"#));
    let question = waits(session.call("k", &call).await);
    assert_eq!(question.says, format!("Send order {id}"));
    let desk = gateway.approvals();
    let row = desk.show(question.action).await.unwrap();
    let args = format!(r#""args":{{"id":{id}}}"#);
    assert!(row.action.bytes.contains(&args), "{}", row.action.bytes);
    desk.approve(row.id(), &row.digest, "ann").await.unwrap();
    assert_eq!(seen(session.call("k", &call).await).content, id.to_string());
    assert_eq!(ship.0.load(Ordering::SeqCst), id);
    let chain = desk.audit("local", 0, 100).await.unwrap();
    let digests = chain
        .iter()
        .filter_map(|entry| Event::read(&entry.event).unwrap().digest);
    let digests: Vec<_> = digests.collect();
    // Proposed, decided, looked at again, started and done: each of these very bytes.
    assert_eq!(digests, vec![row.digest.clone(); 5]);
    let row = desk.show(row.id()).await.unwrap();
    let mut pack = Pack::of(&row.action.bytes, &row.digest).unwrap();
    for entry in chain {
        pack.see(entry).unwrap();
    }
    let pack = serde_json::to_string(&pack.close(&[])).unwrap();
    assert!(pack.contains(&id.to_string()), "{pack}");
    assert!(row.action.is_intact(&row.digest));
}

/// D24, Cogtrix#1293: to look whether a call was made and to make it were two steps.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn d24_of_the_same_call_at_the_same_time_one_runs_and_all_get_its_result() {
    for _ in 0..20 {
        let shell = Shell::default();
        let gateway = Gateway::builder(MemoryStore::shared())
            .effect(shell.clone())
            .policy(Policy::new().ask("shell", Ask::default()))
            .build()
            .unwrap();
        let session = gateway.session(scope(), Limits::default()).await.unwrap();
        let question = waits(session.call("k", &command("ls")).await);
        let desk = gateway.approvals();
        desk.approve(question.action, &question.digest, "ann")
            .await
            .unwrap();
        let tasks: Vec<_> = (0..16)
            .map(|_| {
                let session = session.clone();
                tokio::spawn(async move { session.call("k", &command("ls")).await })
            })
            .collect();
        for task in tasks {
            match task.await.unwrap() {
                Ok(Reply::Observed(seen)) => assert_eq!(seen.content, r#""ran ls""#),
                // Who came while it ran is told so, and gets the result by coming again.
                Err(Stop::Conflict(_)) => {}
                other => panic!("{other:?}"),
            }
        }
        let again = seen(session.call("k", &command("ls")).await);
        assert_eq!(again.content, r#""ran ls""#);
        assert_eq!(shell.0.load(Ordering::SeqCst), 1);
        assert_eq!(session.budget().used().tool_calls, 1);
    }
}

/// E07, codex#21392: an option that runs a program, hidden from the check by a wrapper or by escapes. What runs
/// programs is asked about whatever its arguments look like, and a rule reads the value and not its spelling.
#[tokio::test]
async fn e07_no_spelling_of_a_command_gets_around_the_question_or_the_rule() {
    let shell = Shell::default();
    let never = Rule {
        when: vec![Condition::new("/command", Operator::Glob("*--pre*".into()))],
        because: "it runs a program".into(),
        ..Rule::new("programs", Then::Deny, ["shell"])
    };
    let asked = Policy::new().ask("shell", Ask::default());
    let forms = [
        r#"{"command":"rg --pre ./x pat"}"#,
        r#"{"command":"sh -c 'rg --pre ./x pat'"}"#,
        r#"{"command":"rg \u002d\u002dpre ./x pat"}"#,
        r#"{"\u0063ommand":"rg --\u0070re ./x pat"}"#,
        r#"{"command":"rg pat","command":"rg --pre ./x pat"}"#,
    ];
    for policy in [asked.clone(), asked.rule(never)] {
        let denies = !policy.rules.is_empty();
        let gateway = Gateway::builder(MemoryStore::shared())
            .effect(shell.clone())
            .policy(policy)
            .build()
            .unwrap();
        let scope = Scope {
            loops: LoopRule::Off,
            ..scope()
        };
        let session = gateway.session(scope, Limits::default()).await.unwrap();
        for form in forms {
            let call = ToolCall::native("shell", form);
            match (session.call(form, &call).await, denies) {
                (Ok(Reply::Waiting(waiting)), false) => {
                    assert!(
                        waiting.says.contains("rg --pre ./x pat"),
                        "{}",
                        waiting.says
                    );
                }
                (Ok(Reply::Observed(seen)), true) => {
                    let failure = seen.failure.unwrap().to_string();
                    assert_eq!(failure, "tool_denied:shell", "{form}");
                }
                (other, _) => panic!("{form}: {other:?}"),
            }
        }
    }
    // Whoever forgets the question does not get a gateway.
    let built = Gateway::builder(MemoryStore::shared())
        .effect(shell.clone())
        .policy(Policy::new().allow(["shell"]))
        .build();
    assert!(built.unwrap_err().to_string().contains("`shell`"));
    assert_eq!(shell.0.load(Ordering::SeqCst), 0);
}

/// E13, claude-cookbooks#701: one amount is approved and ten times that is executed.
#[tokio::test]
async fn e13_what_was_approved_signs_no_other_amount() {
    // Whoever can write into the store changes the bytes of the row that was signed; or moves its signature to the
    // larger one, whose digest they write over or leave.
    type Forgery = fn(ActionRow, &ActionRow) -> ActionRow;
    let bytes: Forgery = |signed, _| {
        let mut action = Action::clone(&signed.action);
        action.bytes = action.bytes.replace("82000", "820000");
        action.said.args = Json::read(r#"{"cents":820000}"#, Bounds::default()).unwrap();
        ActionRow {
            action: Arc::new(action),
            ..signed
        }
    };
    let moved: Forgery = |signed, larger| ActionRow {
        action: larger.action.clone(),
        ..signed
    };
    let moved_whole: Forgery = |signed, larger| ActionRow {
        action: larger.action.clone(),
        digest: larger.digest.clone(),
        ..signed
    };
    for (n, forgery) in [bytes, moved, moved_whole].into_iter().enumerate() {
        let (store, pay) = (MemoryStore::shared(), Pay::default());
        let gateway = Gateway::builder(store.clone())
            .effect(pay.clone())
            .policy(Policy::new().ask("pay", Ask::default()))
            .build()
            .unwrap();
        let session = gateway.session(scope(), Limits::default()).await.unwrap();
        let question = waits(session.call("k", &cents(82_000)).await);
        let desk = gateway.approvals();
        let signed = desk
            .approve(question.action, &question.digest, "ann")
            .await
            .unwrap();
        let reused = Stop::KeyReused {
            key: "k".into(),
            tool: "pay".into(),
        };
        assert_eq!(session.call("k", &cents(820_000)).await, Err(reused));
        let other = waits(session.call("k2", &cents(820_000)).await);
        assert_ne!(other.digest, question.digest);
        let larger = desk.show(other.action).await.unwrap();
        let forged = forgery(signed.clone(), &larger);
        let (key, amount) = match forged.id() == signed.id() {
            true => ("k", 82_000),
            false => ("k2", 820_000),
        };
        let change = Change {
            actions: vec![forged],
            ..Change::default()
        };
        // A store may refuse it; of what it takes nothing is started.
        let taken = store.commit(change).await;
        let started = session.call(key, &cents(amount)).await;
        match taken {
            Ok(()) => assert_eq!(started, Err(Stop::Drifted), "forgery {n}"),
            Err(error) => panic!("forgery {n} was not taken: {error}"),
        }
        assert!(pay.paid().is_empty(), "forgery {n}");
    }
}

/// The same refund as an older and as a newer version of its tool reads it.
struct Newer;

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct InMills {
    cents: u32,
    #[serde(default = "ten")]
    times: u32,
}

fn ten() -> u32 {
    10
}

impl Effect for Newer {
    type Args = InMills;
    type Receipt = String;
    const NAME: &'static str = "pay";
    const ABOUT: &'static str = "Pays money";

    fn describe(&self, amount: &InMills) -> String {
        format!("Pay {} cents {} times", amount.cents, amount.times)
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<String, EffectError> {
        panic!("it ran with {}", warrant.args.times)
    }

    async fn reconcile(&self, _: Attempt<'_, Self>) -> Result<Found<String>, ToolError> {
        Ok(Found::CannotTell)
    }
}

/// E01, openclaw#124738: what was approved was changed before it ran. Here it is the tool, which by now means
/// something else by the same arguments.
#[tokio::test]
async fn e01_what_became_something_else_while_it_waited_does_not_run() {
    let (store, pay) = (MemoryStore::shared(), Pay::default());
    let asked = || Policy::new().ask("pay", Ask::default());
    let before = Gateway::builder(store.clone())
        .effect(pay.clone())
        .policy(asked())
        .build()
        .unwrap();
    let session = before.session(scope(), Limits::default()).await.unwrap();
    let question = waits(session.call("k", &cents(5)).await);
    drop(session);
    let after = Gateway::builder(store.clone())
        .effect(Newer)
        .policy(asked())
        .build()
        .unwrap();
    let desk = after.approvals();
    desk.approve(question.action, &question.digest, "ann")
        .await
        .unwrap();
    let later = Scope {
        epoch: 2,
        ..scope()
    };
    let session = after.session(later, Limits::default()).await.unwrap();
    assert_eq!(session.call("k", &cents(5)).await, Err(Stop::Drifted));
    let row = desk.show(question.action).await.unwrap();
    assert_eq!(
        (row.state, row.ended.unwrap().why.as_str()),
        (
            State::Drifted,
            "the tool would read its arguments in another way"
        )
    );
    assert!(pay.paid().is_empty());
}

/// K02, razorpay-mcp-server#128: an agent that asks three times for the same, with no way to pass a key. The key
/// is the gateway's own, the same at each attempt of one action, and never the model's.
#[tokio::test]
async fn k02_three_attempts_of_one_action_have_one_key_and_three_actions_have_three() {
    let pay = Pay::default();
    let grant = Grant {
        at_most: vec![("/cents".into(), 500)],
        per_day: Some(9),
        ..Grant::new("small", "pay", 4_102_444_800_000)
    };
    let gateway = Gateway::builder(MemoryStore::shared())
        .effect(pay.clone())
        .policy(Policy::new().ask("pay", Ask::default()).grant(grant))
        .build()
        .unwrap();
    let session = gateway.session(scope(), Limits::default()).await.unwrap();
    for _ in 0..3 {
        assert!(seen(session.call("k", &cents(400)).await).ok());
    }
    assert_eq!(pay.paid().values().copied().collect::<Vec<_>>(), [400]);
    // A model that asks again in another call asks people: no rule signs the same thing twice on one thread.
    waits(session.call("k2", &cents(399)).await);
    assert_eq!(pay.paid().len(), 1);
}
