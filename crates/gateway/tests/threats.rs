//! Threats, each tried out at the gateway: decisions that are guessed, repeated or late, two tenants on one store,
//! clocks that jump. Each test begins with the number of the threat in SECURITY.md.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use paraph_gateway::examples::{Amount, Pay};
use paraph_gateway::*;
use stage::{cents, clocked, scope, seen, waits};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;

/// The default time that people have.
const EXPIRES: u64 = 600 * SECOND;

/// A gateway at a store whose clock the test turns.
struct Stage {
    pay: Pay,
    store: Arc<dyn Store>,
    clock: Arc<AtomicU64>,
}

impl Stage {
    fn new() -> Stage {
        let (store, clock) = clocked(100 * DAY);
        Stage {
            pay: Pay::default(),
            store,
            clock,
        }
    }

    fn gateway(&self) -> Gateway {
        let ask = Ask {
            expires: std::time::Duration::from_millis(EXPIRES),
            ..Ask::default()
        };
        let schema = serde_json::json!({"type": "object"});
        let look = DynTool::new("look", "Looks", schema, async |args: Json| {
            Ok::<_, ToolError>(args)
        });
        Gateway::builder(self.store.clone())
            .effect(self.pay.clone())
            .dynamic(look)
            .policy(Policy::new().ask("pay", ask).allow(["look"]))
            .build()
            .unwrap()
    }

    async fn session(&self, scope: Scope) -> Session {
        let gateway = self.gateway();
        gateway.session(scope, Limits::default()).await.unwrap()
    }

    fn desk(&self) -> Approvals {
        Approvals::new(self.store.clone())
    }

    async fn kinds(&self, tenant: &str) -> Vec<EventKind> {
        let chain = self.desk().audit(tenant, 0, 1_000).await.unwrap();
        Verifier::check(tenant, &chain, &[]).unwrap();
        let read = |entry: &AuditEntry| Event::read(&entry.event).unwrap().kind;
        chain.iter().map(read).collect()
    }
}

/// The state in which somebody else's decision left the action.
fn winner(decided: Result<ActionRow, ApprovalError>) -> State {
    match decided {
        Err(ApprovalError::Conflict(row)) => row.state,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn t06_who_guesses_an_id_or_repeats_a_request_decides_nothing_more() {
    let stage = Stage::new();
    let session = stage.session(scope()).await;
    let mine = waits(session.call("a", &cents(1)).await);
    let other = waits(
        stage
            .session(Scope::new("clerk", "case-8"))
            .await
            .call("a", &cents(2))
            .await,
    );
    let desk = stage.desk();
    // An id that is none, the right id with another action's digest, and the other way round.
    let nil = "\"00000000-0000-0000-0000-000000000000\"";
    let nobody: ActionId = serde_json::from_str(nil).unwrap();
    let decided = desk.approve(nobody, &mine.digest, "eve").await;
    assert_eq!(decided, Err(ApprovalError::NoAction(nobody)));
    for (id, digest) in [(mine.action, &other.digest), (other.action, &mine.digest)] {
        let decided = desk.approve(id, digest, "eve").await;
        assert_eq!(decided, Err(ApprovalError::OtherDigest));
    }
    // The same request again, before and after it was done, is the same answer and no second one.
    for _ in 0..3 {
        desk.approve(mine.action, &mine.digest, "ann")
            .await
            .unwrap();
    }
    assert!(seen(session.call("a", &cents(1)).await).ok());
    let again = desk.approve(mine.action, &mine.digest, "ann").await;
    assert_eq!(again.unwrap().state, State::Succeeded);
    assert!(seen(session.call("a", &cents(1)).await).ok());
    assert_eq!(stage.pay.paid().len(), 1);
    let kinds = stage.kinds("local").await;
    let count = |kind| kinds.iter().filter(|it| **it == kind).count();
    assert_eq!(
        (count(EventKind::Decided), count(EventKind::AttemptStarted)),
        (1, 1),
        "{kinds:?}"
    );
    // And in another store, which has not the action, the request means nothing.
    let elsewhere = Approvals::new(MemoryStore::shared());
    let decided = elsewhere.approve(mine.action, &mine.digest, "ann").await;
    assert_eq!(decided, Err(ApprovalError::NoAction(mine.action)));
}

/// T7 at the tick at which the time is over, and T23: what was signed in time is worth nothing the next day.
#[tokio::test]
async fn t07_t23_at_the_tick_of_its_expiry_an_action_has_expired_whoever_comes_first() {
    for decides_first in [true, false] {
        let stage = Stage::new();
        let session = stage.session(scope()).await;
        let question = waits(session.call("k", &cents(1)).await);
        assert_eq!(question.expires_ms, 100 * DAY + EXPIRES);
        stage.clock.store(question.expires_ms - 1, Ordering::SeqCst);
        assert_eq!(stage.desk().expire().await, Ok(0));
        stage.clock.store(question.expires_ms, Ordering::SeqCst);
        let decide = async || {
            let desk = stage.desk();
            let late = desk.approve(question.action, &question.digest, "ann").await;
            assert_eq!(winner(late), State::Expired);
        };
        match decides_first {
            true => {
                decide().await;
                assert_eq!(stage.desk().expire().await, Ok(0));
            }
            false => {
                assert_eq!(stage.desk().expire().await, Ok(1));
                decide().await;
            }
        }
        let row = stage.desk().show(question.action).await.unwrap();
        assert_eq!(row.ended.unwrap().by, Signer::Clock);
        let ends = [EventKind::Proposed, EventKind::Expired];
        assert_eq!(stage.kinds("local").await, ends);
    }
    // Signed at the last moment, started at the next.
    for (wait, paid) in [(0, 1), (1, 0), (DAY, 0)] {
        let stage = Stage::new();
        let session = stage.session(scope()).await;
        let question = waits(session.call("k", &cents(1)).await);
        let last = question.expires_ms - 1;
        stage.clock.store(last, Ordering::SeqCst);
        let desk = stage.desk();
        let signed = desk.approve(question.action, &question.digest, "ann").await;
        assert_eq!(signed.unwrap().state, State::Approved);
        stage.clock.store(last + wait, Ordering::SeqCst);
        assert_eq!(seen(session.call("k", &cents(1)).await).ok(), paid == 1);
        assert_eq!(stage.pay.paid().len(), paid, "{wait}");
    }
}

/// Names that are the same text when they are put one behind the other.
const TENANTS: [(&str, &str); 4] = [
    ("acme", "shop/case-7"),
    ("acme/shop", "case-7"),
    ("ACME", "shop/case-7"),
    ("acme\u{0}shop", "case-7"),
];

#[tokio::test]
async fn t35_tenants_with_the_same_names_for_everything_share_nothing() {
    let stage = Stage::new();
    let at = |tenant: &str, thread: &str| Scope {
        tenant: tenant.to_owned(),
        run: "r".to_owned(),
        ..Scope::new("clerk", thread)
    };
    let look = ToolCall::native("look", r#"{"marker":"x"}"#);
    let mut waiting = Vec::new();
    for (n, (tenant, thread)) in TENANTS.into_iter().enumerate() {
        let session = stage.session(at(tenant, thread)).await;
        // The same calls under the same keys are first ones for each: no loop, no result of another's.
        assert!(seen(session.call("look", &look).await).ok(), "{tenant}");
        waiting.push(waits(session.call("pay", &cents(n as u32 + 1)).await));
        assert_eq!(session.records().len(), 2);
        assert_eq!(session.budget().used().tool_calls, 2);
    }
    let desk = stage.desk();
    // One is refused, which closes the subject; one tenant is stopped. Neither is anything to the others.
    let refused = &waiting[0];
    desk.reject(refused.action, &refused.digest, "ann", "no")
        .await
        .unwrap();
    desk.kill("tenant:acme/shop", "ann", "test").await.unwrap();
    for (n, (tenant, thread)) in TENANTS.into_iter().enumerate() {
        let session = stage.session(at(tenant, thread)).await;
        let again = session.call("pay 2", &cents(50 + n as u32)).await;
        match n {
            0 => assert!(!seen(again).ok()),
            1 => assert_eq!(again, Err(Stop::KilledTenant)),
            _ => drop(waits(again)),
        }
        let question = &waiting[n];
        if n > 1 {
            desk.approve(question.action, &question.digest, "ann")
                .await
                .unwrap();
            assert!(seen(session.call("pay", &cents(n as u32 + 1)).await).ok());
        }
        let chain = desk.audit(tenant, 0, 1_000).await.unwrap();
        Verifier::check(tenant, &chain, &[]).unwrap();
        for entry in &chain {
            let event = Event::read(&entry.event).unwrap();
            let thread_of = [thread, ""];
            assert_eq!(event.tenant, tenant);
            assert!(thread_of.contains(&event.thread.as_str()), "{event:?}");
        }
    }
    // Each payment has a key of its own.
    let paid: Vec<_> = stage.pay.paid().into_values().collect();
    assert_eq!(paid.iter().sum::<u32>(), 3 + 4, "{paid:?}");
}

/// Pays, while the clock jumps.
struct Jumps {
    runs: Arc<AtomicU64>,
    clock: Arc<AtomicU64>,
    to: u64,
}

impl Effect for Jumps {
    type Args = Amount;
    type Receipt = u32;
    const NAME: &'static str = "pay";
    const ABOUT: &'static str = "Pays";

    fn describe(&self, amount: &Amount) -> String {
        format!("Pay {}", amount.cents)
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<u32, EffectError> {
        self.clock.store(self.to, Ordering::SeqCst);
        self.runs.fetch_add(1, Ordering::SeqCst);
        Ok(warrant.args.cents)
    }

    async fn reconcile(&self, _: Attempt<'_, Self>) -> Result<Found<u32>, ToolError> {
        Ok(Found::CannotTell)
    }
}

#[tokio::test(start_paused = true)]
async fn t36_whatever_the_clock_does_what_expired_does_not_start_and_what_started_ends() {
    let start = 100 * DAY;
    for to in [start - DAY, start - HOUR, start, start + HOUR, start + DAY] {
        let is_over = to >= start + EXPIRES;
        // Between the approval and the start.
        let stage = Stage::new();
        let session = stage.session(scope()).await;
        let question = waits(session.call("k", &cents(1)).await);
        let desk = stage.desk();
        desk.approve(question.action, &question.digest, "ann")
            .await
            .unwrap();
        stage.clock.store(to, Ordering::SeqCst);
        assert_eq!(seen(session.call("k", &cents(1)).await).ok(), !is_over);
        assert_eq!(stage.pay.paid().len(), usize::from(!is_over));
        // And back again: what has expired does not come to life.
        stage.clock.store(start, Ordering::SeqCst);
        assert_eq!(seen(session.call("k", &cents(1)).await).ok(), !is_over);
        assert_eq!(stage.pay.paid().len(), usize::from(!is_over));

        // While it runs: it ends as it ended.
        let stage = Stage::new();
        let runs = Arc::new(AtomicU64::new(0));
        let jumps = Jumps {
            runs: runs.clone(),
            clock: stage.clock.clone(),
            to,
        };
        let gateway = Gateway::builder(stage.store.clone())
            .effect(jumps)
            .policy(Policy::new().ask("pay", Ask::default()))
            .build()
            .unwrap();
        let session = gateway.session(scope(), Limits::default()).await.unwrap();
        let question = waits(session.call("k", &cents(1)).await);
        let desk = stage.desk();
        desk.approve(question.action, &question.digest, "ann")
            .await
            .unwrap();
        assert_eq!(seen(session.call("k", &cents(1)).await).content, "1");
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        let row = desk.show(question.action).await.unwrap();
        assert_eq!((row.state, row.sending.times), (State::Succeeded, 1));
        stage.kinds("local").await;

        // A run's own time is not told by that clock: it has used what passed here, which is nothing.
        let used = session.budget().used().active;
        assert_eq!(used, std::time::Duration::ZERO, "{to}");
    }
}
