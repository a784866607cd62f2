//! What was signed, looked at again before it is done: targets and preconditions, who may sign, and reads that were cut
//! off.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use futures::future::BoxFuture;
use paraph_gateway::*;
use stage::{clocked, seen, waits};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A lock somewhere else, which people open and close meanwhile.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    /// What each look finds, in order; the last one for all later looks. A text that begins with `!` is a failure.
    looks: VecDeque<&'static str>,
    looked: usize,
    /// What was done, with the target that was signed and the state that was seen.
    done: Vec<(u64, String, String)>,
    /// What nobody sees the end of.
    lost: usize,
    /// Done while the n-th look is under way.
    meanwhile: Option<(usize, BoxFuture<'static, ()>)>,
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Open {
    number: u64,
}

impl Effect for Gate {
    type Args = Open;
    type Receipt = String;
    const NAME: &'static str = "open_gate";
    const ABOUT: &'static str = "Opens a gate";

    fn describe(&self, open: &Open) -> String {
        format!("Open gate {}", open.number)
    }

    fn subject(&self, open: &Open) -> String {
        format!("gate:{}", open.number)
    }

    async fn resolve(&self, open: &Open) -> Result<Resolved, ToolError> {
        let (found, meanwhile) = {
            let mut world = self.0.lock().unwrap();
            world.looked += 1;
            let found = match world.looks.len() {
                0 => "shut",
                1 => world.looks[0],
                _ => world.looks.pop_front().unwrap(),
            };
            let looked = world.looked;
            let now = world.meanwhile.take_if(|(at, _)| *at == looked);
            (found, now)
        };
        if let Some((_, deed)) = meanwhile {
            deed.await;
        }
        match (found.strip_prefix('!'), found.strip_prefix('?')) {
            (Some(why), _) => Err(ToolError::new(why)),
            (_, Some(why)) => Err(ToolError::bad_args(why)),
            _ => Ok(Resolved::new()
                .target("gate", format!("g_{}", open.number))
                .precondition("state", found)),
        }
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<String, EffectError> {
        let target = warrant.target("gate").unwrap().to_owned();
        let state = warrant.precondition("state").unwrap().to_owned();
        assert_eq!(warrant.target("no such name"), None);
        let mut world = self.0.lock().unwrap();
        if world.lost > 0 {
            world.lost -= 1;
            return Err(EffectError::unknown("the line went dead"));
        }
        world.done.push((warrant.args.number, target, state));
        Ok("open".to_owned())
    }

    async fn reconcile(&self, _: Attempt<'_, Self>) -> Result<Found<String>, ToolError> {
        Ok(Found::SendAgain)
    }
}

/// Knows who may sign: nobody, while the list says who may not; whoever answers in its own time.
#[derive(Clone, Default)]
struct Duty(Arc<Mutex<VecDeque<Result<Entitled, ToolError>>>>);

impl Rights for Duty {
    fn still_entitled<'a>(
        &'a self,
        signers: &'a [Signer],
        action: &'a Action,
    ) -> BoxFuture<'a, Result<Entitled, ToolError>> {
        assert_eq!((signers.len(), action.said.tool.as_str()), (1, "open_gate"));
        let answer = self.0.lock().unwrap().pop_front();
        Box::pin(std::future::ready(answer.unwrap_or(Ok(Entitled::Yes))))
    }
}

struct Stage {
    gate: Gate,
    duty: Option<Duty>,
    store: Arc<dyn Store>,
    clock: Arc<AtomicU64>,
    policy: Policy,
}

impl Stage {
    fn new(looks: &[&'static str]) -> Stage {
        let (store, clock) = clocked(1_000_000);
        let gate = Gate::default();
        gate.0.lock().unwrap().looks = looks.iter().copied().collect();
        Stage {
            gate,
            duty: None,
            store,
            clock,
            policy: Policy::new().ask("open_gate", Ask::default()),
        }
    }

    fn later(&self, seconds: u64) {
        self.clock.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    fn gateway(&self) -> Gateway {
        let builder = Gateway::builder(self.store.clone())
            .effect(self.gate.clone())
            .policy(self.policy.clone());
        let builder = match &self.duty {
            Some(duty) => builder.rights(duty.clone()),
            None => builder,
        };
        builder.build().unwrap()
    }

    async fn session(&self) -> Session {
        let scope = Scope::new("porter", "night");
        self.gateway()
            .session(scope, Limits::default())
            .await
            .unwrap()
    }

    fn desk(&self) -> Approvals {
        Approvals::new(self.store.clone())
    }

    /// Proposes and has it approved.
    async fn approved(&self, session: &Session) -> ActionRow {
        let question = waits(session.call("k", &call()).await);
        let desk = self.desk();
        let signed = desk.approve(question.action, &question.digest, "ann");
        let signed = signed.await.unwrap();
        assert_eq!(signed.state, State::Approved);
        signed
    }

    async fn row(&self, id: ActionId) -> ActionRow {
        self.desk().show(id).await.unwrap()
    }

    fn done(&self) -> usize {
        self.gate.0.lock().unwrap().done.len()
    }

    fn looked(&self) -> usize {
        self.gate.0.lock().unwrap().looked
    }

    /// The kinds of events in the audit, whose chain is whole.
    async fn audit(&self) -> Vec<String> {
        let chain = self.desk().audit("local", 0, 1_000).await.unwrap();
        Verifier::check("local", &chain, &[]).unwrap();
        let kinds = chain.iter().map(|entry| {
            let event: serde_json::Value = serde_json::from_str(&entry.event).unwrap();
            event["kind"].as_str().unwrap().to_owned()
        });
        kinds.collect()
    }
}

fn call() -> ToolCall {
    ToolCall::native("open_gate", r#"{"number":7}"#)
}

#[tokio::test]
async fn what_an_effect_found_is_signed_and_stands_in_its_warrant() {
    let stage = Stage::new(&["shut"]);
    let session = stage.session().await;
    let row = stage.approved(&session).await;
    for part in [
        r#""targets":{"gate":"g_7"}"#,
        r#""preconditions":{"state":"shut"}"#,
    ] {
        assert!(row.action.bytes.contains(part), "{}", row.action.bytes);
    }
    assert!(seen(session.call("k", &call()).await).ok());
    assert!(seen(session.call("k", &call()).await).ok());
    let done = stage.gate.0.lock().unwrap().done.clone();
    assert_eq!(done, [(7, "g_7".to_owned(), "shut".to_owned())]);
    // When it was proposed, when it was started, and just before it was handed over.
    assert_eq!(stage.looked(), 3);
}

#[tokio::test]
async fn what_changed_before_the_start_is_shown_and_not_done() {
    let stage = Stage::new(&["shut", "open"]);
    let session = stage.session().await;
    let row = stage.approved(&session).await;
    assert_eq!(session.call("k", &call()).await, Err(Stop::Drifted));
    let row = stage.row(row.id()).await;
    let changed = Changed {
        name: "state".into(),
        target: false,
        seen: Some("shut".into()),
        now: Some("open".into()),
    };
    assert_eq!((row.state, row.changed), (State::Drifted, vec![changed]));
    assert_eq!(
        row.ended.unwrap().why,
        "it is not as it was when it was proposed: `state` was shut and is open"
    );
    assert_eq!(session.call("k", &call()).await, Err(Stop::Drifted));
    assert_eq!((row.sending.times, stage.done()), (0, 0));
    assert_eq!(stage.audit().await, ["proposed", "decided", "drifted"]);
}

#[tokio::test]
async fn arguments_that_fit_nothing_any_more_have_drifted_and_are_not_asked_about_again() {
    for looks in [
        &["shut", "?it was torn down"][..],
        &["shut", "shut", "?it was torn down"],
    ] {
        let stage = Stage::new(looks);
        let session = stage.session().await;
        let row = stage.approved(&session).await;
        assert_eq!(session.call("k", &call()).await, Err(Stop::Drifted));
        let row = stage.row(row.id()).await;
        assert_eq!((row.state, stage.done()), (State::Drifted, 0));
        assert_eq!(row.ended.unwrap().why, "it was torn down");
    }
}

#[tokio::test]
async fn what_changes_between_the_claim_and_the_deed_is_not_done_either() {
    let stage = Stage::new(&["shut", "shut", "open"]);
    let session = stage.session().await;
    let row = stage.approved(&session).await;
    assert_eq!(session.call("k", &call()).await, Err(Stop::Drifted));
    let row = stage.row(row.id()).await;
    assert_eq!((row.state, row.sending.times), (State::Drifted, 0));
    assert_eq!((row.changed.len(), stage.done()), (1, 0));
    let told = [
        "proposed",
        "decided",
        "revalidated",
        "attempt_started",
        "drifted",
    ];
    assert_eq!(stage.audit().await, told);
}

#[tokio::test]
async fn what_cannot_be_looked_at_waits_and_is_done_once_it_can() {
    // The second look, before the claim, and the fourth, after it.
    for (failing, looks) in [
        (2, &["shut", "!no answer", "shut"][..]),
        (3, &["shut", "shut", "!no answer", "shut"]),
    ] {
        let stage = Stage::new(looks);
        let session = stage.session().await;
        let row = stage.approved(&session).await;
        let waiting = waits(session.call("k", &call()).await);
        assert_eq!(waiting.why, Why::Unchecked);
        let row = stage.row(row.id()).await;
        assert_eq!((row.state, row.sending.times), (State::Approved, 0));
        assert_eq!(row.ended.as_ref().unwrap().why, "no answer");
        let wakes = stage.desk().wakes().await.unwrap();
        assert_eq!(
            (wakes[0].due_ms, wakes[0].version),
            (waiting.due_ms.unwrap(), row.version)
        );
        // Nobody is asked before it is due.
        assert_eq!(waits(session.call("k", &call()).await), waiting);
        assert_eq!((stage.looked(), stage.done()), (failing, 0));

        stage.later(60);
        assert!(seen(session.call("k", &call()).await).ok());
        assert_eq!(stage.done(), 1);
        let row = stage.row(row.id()).await;
        assert_eq!((row.state, row.sending.times), (State::Succeeded, 1));
        assert!(stage.audit().await.contains(&"revalidated".to_owned()));
    }
}

#[tokio::test]
async fn what_is_never_told_expires() {
    let stage = Stage::new(&["shut", "!no answer"]);
    let session = stage.session().await;
    stage.approved(&session).await;
    waits(session.call("k", &call()).await);
    stage.later(3_600);
    let expired = seen(session.call("k", &call()).await);
    let tool = "open_gate".to_owned();
    assert_eq!(expired.failure, Some(Failure::Expired { tool }));
    assert_eq!(stage.done(), 0);
}

#[tokio::test]
async fn a_call_whose_targets_cannot_be_found_proposes_nothing() {
    let stage = Stage::new(&["!there is no gate 7"]);
    let session = stage.session().await;
    let failed = seen(session.call("k", &call()).await);
    let failure = Failure::Error {
        tool: "open_gate".into(),
        detail: "there is no gate 7".into(),
    };
    assert_eq!(failed.failure, Some(failure));
    assert!(stage.desk().waiting().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_kill_that_comes_while_it_is_looked_at_holds_it() {
    let stage = Stage::new(&["shut"]);
    let session = stage.session().await;
    let row = stage.approved(&session).await;
    let desk = stage.desk();
    let kill = async move {
        // It is claimed by now, so there is nothing that the switch itself could hold.
        assert_eq!(desk.kill("writes", "ann", "stop").await.unwrap(), 0);
    };
    stage.gate.0.lock().unwrap().meanwhile = Some((3, Box::pin(kill)));
    assert_eq!(waits(session.call("k", &call()).await).why, Why::Held);
    let row = stage.row(row.id()).await;
    assert_eq!(
        (row.state, row.votes.len(), stage.done()),
        (State::Held, 0, 0)
    );

    let desk = stage.desk();
    desk.unkill("writes", "ann").await.unwrap();
    assert_eq!(waits(session.call("k", &call()).await).why, Why::Held);
    let signed = desk.approve(row.id(), &row.digest, "bob").await.unwrap();
    assert_eq!(signed.ended, None);
    assert!(seen(session.call("k", &call()).await).ok());
    assert_eq!(stage.done(), 1);
    stage.audit().await;
}

#[tokio::test]
async fn what_may_have_been_done_by_an_earlier_attempt_is_left_to_a_person_when_it_changed() {
    let stage = Stage::new(&["shut", "shut", "shut", "open"]);
    stage.gate.0.lock().unwrap().lost = 1;
    let session = stage.session().await;
    let row = stage.approved(&session).await;
    assert_eq!(waits(session.call("k", &call()).await).why, Why::Unknown);
    stage.later(60);
    let waiting = waits(session.call("k", &call()).await);
    assert_eq!((waiting.why, waiting.due_ms), (Why::Unknown, None));
    let row = stage.row(row.id()).await;
    assert_eq!(
        (row.state, row.sending.times, stage.done()),
        (State::Unknown, 2, 0)
    );
    stage.audit().await;
}

#[tokio::test]
async fn an_edit_looks_at_its_own_targets() {
    let stage = Stage::new(&["shut"]);
    let session = stage.session().await;
    let question = waits(session.call("k", &call()).await);
    let row = stage.row(question.action).await;
    let edited = stage.gateway();
    let edited = edited
        .edit(&row, &row.digest, "ann", r#"{"number":8}"#)
        .await;
    assert_eq!(edited.unwrap().action.said.resolved.targets["gate"], "g_8");
}

#[tokio::test]
async fn who_signed_and_may_not_any_more_holds_it_for_others() {
    let no = || Ok(Entitled::No("ann has left".into()));
    let yes = || Ok(Entitled::Yes);
    // Before the claim, and after it.
    for answers in [vec![no()], vec![yes(), no()]] {
        let mut stage = Stage::new(&["shut"]);
        let duty = Duty(Arc::new(Mutex::new(answers.into())));
        stage.duty = Some(duty);
        let session = stage.session().await;
        let row = stage.approved(&session).await;
        let held = waits(session.call("k", &call()).await);
        assert_eq!(held.why, Why::Held);
        let row = stage.row(row.id()).await;
        assert_eq!((row.state, row.votes.len()), (State::Held, 0));
        assert_eq!(row.ended.unwrap().why, "ann has left");
        assert_eq!(stage.done(), 0);
        let desk = stage.desk();
        desk.approve(row.action.id, &row.digest, "bob")
            .await
            .unwrap();
        assert!(seen(session.call("k", &call()).await).ok());
        assert_eq!(stage.done(), 1);
        stage.audit().await;
    }
}

#[tokio::test]
async fn nobody_who_knows_the_people_means_nothing_is_done() {
    let mut stage = Stage::new(&["shut"]);
    let answers = [Err(ToolError::new("the directory is down"))];
    stage.duty = Some(Duty(Arc::new(Mutex::new(answers.into()))));
    let session = stage.session().await;
    let row = stage.approved(&session).await;
    assert_eq!(waits(session.call("k", &call()).await).why, Why::Unchecked);
    let row = stage.row(row.id()).await;
    assert_eq!(
        row.ended.unwrap().why,
        "whether who signed may still sign it: the directory is down"
    );
    stage.later(60);
    assert!(seen(session.call("k", &call()).await).ok());
}

#[tokio::test]
async fn a_grant_that_was_taken_back_signs_nothing_any_more() {
    let mut stage = Stage::new(&["shut", "!no answer", "shut"]);
    let grant = Grant {
        at_most: vec![("/number".into(), 10)],
        per_thread: Some(1),
        ..Grant::new("night", "open_gate", 9_000_000)
    };
    let without = stage.policy.clone();
    stage.policy = without.clone().grant(grant);
    let granted = waits(stage.session().await.call("k", &call()).await);
    assert_eq!(granted.why, Why::Unchecked);
    stage.policy = without;
    stage.later(60);
    let held = waits(stage.session().await.call("k", &call()).await);
    assert_eq!(held.why, Why::Held);
    let row = stage.row(held.action).await;
    assert_eq!(
        row.ended.unwrap().why,
        "the grant `night`, which signed it, is not in force any more"
    );
    assert_eq!(stage.done(), 0);
}

/// A stage whose policy has a grant that opens gates at night.
fn at_night(looks: &[&'static str]) -> Stage {
    let mut stage = Stage::new(looks);
    let grant = Grant {
        at_most: vec![("/number".into(), 10)],
        per_thread: Some(1),
        ..Grant::new("night", "open_gate", 9_000_000)
    };
    stage.policy = stage.policy.clone().grant(grant);
    stage
}

const NIGHT: (&str, &str) = ("porter", "night");

#[tokio::test]
async fn a_revoked_grant_signs_nothing_until_it_is_restored() {
    let stage = at_night(&["shut"]);
    let desk = stage.desk();
    assert_eq!(desk.revoke(NIGHT, "ann", "burglars").await, Ok(0));
    let revoked = Revocation {
        agent: "porter".into(),
        grant: "night".into(),
        by: "ann".into(),
        reason: "burglars".into(),
        at_ms: 1_000_000,
    };
    assert_eq!(desk.revocations().await, Ok(vec![revoked]));
    // It is no kill switch, and is listed as none.
    assert_eq!(desk.kills().await, Ok(Vec::new()));
    let session = stage.session().await;
    let asked = waits(session.call("k", &call()).await);
    assert_eq!(asked.why, Why::Approval);
    let refused = desk.reject(asked.action, &asked.digest, "ann", "not now");
    refused.await.unwrap();
    assert!(!seen(session.call("k", &call()).await).ok());
    assert_eq!(desk.restore(NIGHT, "ann", "all is quiet").await, Ok(0));
    assert_eq!(desk.revocations().await, Ok(Vec::new()));
    let gateway = stage.gateway();
    let on = async |night: &str| {
        let session = gateway.session(Scope::new("porter", night), Limits::default());
        seen(session.await.unwrap().call("k", &call()).await)
    };
    assert!(on("another night").await.ok());
    assert_eq!(stage.done(), 1);
    // The grants of others are others.
    for other in [("porter", "nigh"), ("porte", "night"), ("porter/night", "")] {
        let revoked = desk.revoke(other, "ann", "another").await;
        assert_eq!(revoked.is_ok(), !other.1.is_empty(), "{other:?}");
    }
    assert!(on("a third night").await.ok());
    let used = desk.grant_use("local", "night").await.unwrap();
    let threads = ["a third night", "another night"].map(|thread| (thread.to_owned(), 1));
    assert_eq!(used.threads, threads.into());
    let chain = desk.audit("local", 0, 1_000).await.unwrap();
    Verifier::check("local", &chain, &[]).unwrap();
}

#[tokio::test]
async fn what_a_grant_signed_is_held_when_it_is_revoked_before_the_start() {
    let stage = at_night(&["shut", "!no answer", "shut"]);
    let session = stage.session().await;
    let granted = waits(session.call("k", &call()).await);
    assert_eq!(granted.why, Why::Unchecked);
    let desk = stage.desk();
    assert_eq!(desk.revoke(NIGHT, "ann", "burglars").await, Ok(1));
    stage.later(60);
    let held = waits(session.call("k", &call()).await);
    assert_eq!((held.why, held.action), (Why::Held, granted.action));
    let row = stage.row(held.action).await;
    assert_eq!(
        row.ended.unwrap().why,
        "the grant `night`, which signed it, was revoked: burglars"
    );
    // To restore the grant does not bring its signature back; a person's is one of their own.
    assert_eq!(desk.restore(NIGHT, "ann", "all is quiet").await, Ok(0));
    assert_eq!(waits(session.call("k", &call()).await).why, Why::Held);
    assert_eq!(stage.done(), 0);
    let signed = desk.approve(held.action, &held.digest, "ann").await;
    assert_eq!(signed.unwrap().state, State::Approved);
    assert!(seen(session.call("k", &call()).await).ok());
    assert_eq!(stage.done(), 1);
    let chain = desk.audit("local", 0, 1_000).await.unwrap();
    Verifier::check("local", &chain, &[]).unwrap();
}

#[tokio::test]
async fn a_grant_that_is_revoked_between_the_claim_and_the_deed_starts_nothing() {
    let stage = at_night(&["shut"]);
    let desk = stage.desk();
    let deed = async move {
        // What is claimed already cannot be held from here: whoever claimed it has to see it.
        assert_eq!(desk.revoke(NIGHT, "ann", "burglars").await, Ok(0));
    };
    stage.gate.0.lock().unwrap().meanwhile = Some((3, Box::pin(deed)));
    let session = stage.session().await;
    let held = waits(session.call("k", &call()).await);
    assert_eq!(held.why, Why::Held);
    let row = stage.row(held.action).await;
    assert_eq!(
        (row.state, row.ended.unwrap().why.as_str()),
        (
            State::Held,
            "the grant `night`, which signed it, was revoked"
        )
    );
    assert_eq!(stage.done(), 0);
    let chain = stage.desk().audit("local", 0, 1_000).await.unwrap();
    Verifier::check("local", &chain, &[]).unwrap();
}

#[tokio::test]
async fn what_may_have_arrived_is_not_sent_again_under_a_revoked_grant() {
    let stage = at_night(&["shut"]);
    stage.gate.0.lock().unwrap().lost = 1;
    let session = stage.session().await;
    assert_eq!(waits(session.call("k", &call()).await).why, Why::Unknown);
    let desk = stage.desk();
    assert_eq!(desk.revoke(NIGHT, "ann", "burglars").await, Ok(0));
    stage.later(3_600);
    let unknown = waits(session.call("k", &call()).await);
    assert_eq!((unknown.why, unknown.due_ms), (Why::Unknown, None));
    let row = stage.row(unknown.action).await;
    assert_eq!(
        row.ended.unwrap().why,
        "the grant `night`, which signed it, was revoked"
    );
    assert_eq!(stage.done(), 0);
}

#[tokio::test]
async fn rules_that_ask_for_more_by_now_are_not_met_by_what_was_signed() {
    for ask in [
        Ask {
            quorum: 2,
            ..Ask::default()
        },
        Ask {
            verified: true,
            ..Ask::default()
        },
    ] {
        let mut stage = Stage::new(&["shut"]);
        let row = stage.approved(&stage.session().await).await;
        stage.policy = Policy::new().ask("open_gate", ask);
        let session = stage.session().await;
        assert_eq!(session.call("k", &call()).await, Err(Stop::Drifted));
        let why = stage.row(row.id()).await.ended.unwrap().why;
        assert_eq!(
            why,
            format!("the rules ask for more than when it was signed: {ask} to approve it")
        );
        assert_eq!(stage.done(), 0);
    }
}

#[tokio::test]
async fn too_much_to_sign_is_a_mistake_of_the_tool() {
    let long: &'static str = "x".repeat(1_025).leak();
    let stage = Stage::new(&[long]);
    let failed = seen(stage.session().await.call("k", &call()).await);
    let Some(Failure::Error { detail, .. }) = failed.failure else {
        panic!()
    };
    assert_eq!(
        detail,
        "a name has 1 to 64 bytes and what stands for it at most 1024: `state` has 5 and 1025"
    );
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Page {
    number: u64,
}

/// A gateway that asks before it reads. The first read never ends.
fn reading(store: &Arc<dyn Store>, reads: &Arc<AtomicU64>) -> Gateway {
    let reads = reads.clone();
    Gateway::builder(store.clone())
        .read("read_page", "Reads a page", move |page: Page| {
            let first = reads.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
                Ok::<_, ToolError>(page.number)
            }
        })
        .policy(Policy::new().ask("read_page", Ask::default()))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_read_that_was_approved_and_cut_off_is_read_again() {
    // By the same process under the same lease, and by one that comes after it.
    for epoch in [1, 2] {
        let store = MemoryStore::shared();
        let reads = Arc::new(AtomicU64::new(0));
        let gateway = reading(&store, &reads);
        let call = ToolCall::native("read_page", r#"{"number":3}"#);
        let scope = Scope::new("reader", "book");
        let session = gateway
            .session(scope.clone(), Limits::default())
            .await
            .unwrap();
        let question = waits(session.call("k", &call).await);
        let desk = Approvals::new(store.clone());
        desk.approve(question.action, &question.digest, "ann")
            .await
            .unwrap();
        let cut = tokio::time::timeout(Duration::from_millis(5), session.call("k", &call)).await;
        assert!(cut.is_err());
        let row = desk.show(question.action).await.unwrap();
        assert_eq!(row.state, State::Executing);

        let session = match epoch {
            1 => session,
            epoch => {
                let scope = Scope { epoch, ..scope };
                gateway.session(scope, Limits::default()).await.unwrap()
            }
        };
        assert_eq!(seen(session.call("k", &call).await).content, "3");
        let row = desk.show(question.action).await.unwrap();
        assert_eq!((row.state, row.sending.times), (State::Succeeded, 2));
        assert_eq!(reads.load(Ordering::SeqCst), 2);
    }
}
