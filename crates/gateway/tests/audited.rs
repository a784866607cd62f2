//! What is told to the audit: every kind of event there is, anchors, and what is erased beside the chain.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use paraph_gateway::examples::{Amount, Pay};
use paraph_gateway::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pays, and never knows whether it did.
struct Lost;

impl Effect for Lost {
    type Args = Amount;
    type Receipt = String;
    const NAME: &'static str = "lost";
    const ABOUT: &'static str = "Pays, and nobody sees whether it did";

    fn describe(&self, amount: &Amount) -> String {
        format!("Pay {} cents somewhere", amount.cents)
    }

    async fn run(&self, _: Warrant<'_, Self>) -> Result<String, EffectError> {
        Err(std::io::Error::other("the line went dead"))?
    }

    async fn reconcile(&self, _: Attempt<'_, Self>) -> Result<Found<String>, ToolError> {
        Ok(Found::CannotTell)
    }
}

struct Stage {
    store: Arc<dyn Store>,
    clock: Arc<AtomicU64>,
}

impl Stage {
    fn new() -> Stage {
        let (store, clock) = stage::clocked(1_000_000);
        Stage { store, clock }
    }

    fn desk(&self) -> Approvals {
        Approvals::new(self.store.clone())
    }

    /// A run on a thread of its own.
    async fn run(&self, thread: &str, run: &str, policy: Policy) -> Session {
        let gateway = Gateway::builder(self.store.clone())
            .effect(Pay::default())
            .effect(Lost)
            .policy(policy)
            .build()
            .unwrap();
        let scope = Scope {
            run: run.into(),
            user: format!("customer of {thread}"),
            ..Scope::new("clerk", thread)
        };
        gateway.session(scope, Limits::default()).await.unwrap()
    }

    /// What a call of a run on this thread waits for.
    async fn asked(&self, thread: &str, tool: &str) -> (Session, ToolCall, Waiting) {
        let session = self.run(thread, thread, asks()).await;
        let call = ToolCall::native(tool, r#"{"cents":7}"#);
        let Reply::Waiting(asked) = session.call("k", &call).await.unwrap() else {
            panic!("{thread}")
        };
        (session, call, asked)
    }

    async fn chain(&self) -> Vec<AuditEntry> {
        self.desk().audit("local", 0, 10_000).await.unwrap()
    }

    async fn kinds(&self) -> Vec<EventKind> {
        let entries = self.chain().await;
        entries
            .iter()
            .map(|entry| Event::read(&entry.event).unwrap().kind)
            .collect()
    }
}

fn asks() -> Policy {
    let ask = Ask::default();
    Policy::new().ask("pay", ask).ask("lost", ask)
}

/// Whatever there is a kind for happens somewhere, and is told.
#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "every kind there is, one after the other"
)]
async fn every_kind_of_event_is_told_where_it_happens() {
    let stage = Stage::new();
    let desk = stage.desk();
    // Shown, approved and done.
    let (session, call, asked) = stage.asked("done", "pay").await;
    let row = desk.show(asked.action).await.unwrap();
    desk.shown(&row, "ann", "test 1.0").await.unwrap();
    desk.approve(asked.action, &asked.digest, "ann")
        .await
        .unwrap();
    session.call("k", &call).await.unwrap();
    assert_eq!(
        stage.kinds().await,
        [
            EventKind::Proposed,
            EventKind::Shown,
            EventKind::Decided,
            EventKind::Revalidated,
            EventKind::AttemptStarted,
            EventKind::ProviderReplied
        ]
    );
    // Refused, and reopened.
    let (_, _, asked) = stage.asked("refused", "pay").await;
    desk.reject(asked.action, &asked.digest, "ann", "no")
        .await
        .unwrap();
    desk.reopen(asked.action, "ann").await.unwrap();
    // Handed over, and nobody saw what came of it; a person found out.
    let (session, call, asked) = stage.asked("lost", "lost").await;
    desk.approve(asked.action, &asked.digest, "ann")
        .await
        .unwrap();
    session.call("k", &call).await.unwrap();
    let found = (Finding::DidNotHappen, "the bank has nothing");
    desk.settle(asked.action, &asked.digest, "ann", found)
        .await
        .unwrap();
    // Signed, and forbidden since.
    let (_, call, asked) = stage.asked("drifted", "pay").await;
    desk.approve(asked.action, &asked.digest, "ann")
        .await
        .unwrap();
    let strict = stage.run("drifted", "drifted", asks().deny(["pay"])).await;
    assert_eq!(strict.call("k", &call).await, Err(Stop::Drifted));
    // Signed, and held by a switch.
    let (_, _, asked) = stage.asked("held", "pay").await;
    desk.approve(asked.action, &asked.digest, "ann")
        .await
        .unwrap();
    desk.kill("tool:pay", "ann", "odd").await.unwrap();
    desk.unkill("tool:pay", "ann").await.unwrap();
    // Signed by a grant.
    let grant = Grant {
        per_day: Some(3),
        at_most: vec![("/cents".into(), 500)],
        ..Grant::new("small", "pay", u64::MAX)
    };
    let granted = stage.run("granted", "granted", asks().grant(grant)).await;
    granted.call("k", &call).await.unwrap();
    // Denied.
    let denied = stage.run("denied", "denied", asks().deny(["pay"])).await;
    denied.call("k", &call).await.unwrap();
    desk.revoke(("clerk", "small"), "ann", "odd").await.unwrap();
    desk.restore(("clerk", "small"), "ann", "fine")
        .await
        .unwrap();
    // Left behind by a later run, whose own is taken back.
    stage.asked("behind", "pay").await;
    let later = stage.run("behind", "later", asks()).await;
    later.call("k", &call).await.unwrap();
    let taken = desk.cancel(&later.scope().run_ref(), "ann", "over").await;
    assert_eq!(taken, Ok(1));
    // Not decided about in time.
    stage.asked("late", "pay").await;
    stage.clock.fetch_add(u64::from(u32::MAX), Ordering::SeqCst);
    desk.expire().await.unwrap();
    // A conversation that was mended before it was sent.
    let tools = ["pay".to_owned()];
    later.history_repaired(1, &tools).await.unwrap();
    // Anchored, and erased.
    let AnchorDue::Now(anchor) = desk.anchor_due("local", 1).await.unwrap() else {
        panic!()
    };
    desk.anchored(&anchor, "a file").await.unwrap();
    let whose = Whose::User("customer of done".to_owned());
    desk.erase("local", &whose, "ann", "they asked for it")
        .await
        .unwrap();

    let told: BTreeSet<_> = stage.kinds().await.into_iter().collect();
    let missing: Vec<_> = EventKind::ALL
        .iter()
        .filter(|kind| !told.contains(kind))
        .collect();
    assert_eq!(missing, Vec::<&EventKind>::new());
    let found = Verifier::check("local", &stage.chain().await, &[anchor]).unwrap();
    assert_eq!((found.anchored, found.erased_untold), (1, 0));
}

#[tokio::test]
async fn what_the_effect_gave_back_is_told_without_its_secrets() {
    let stage = Stage::new();
    let (session, call, asked) = stage.asked("t", "pay").await;
    stage
        .desk()
        .approve(asked.action, &asked.digest, "ann")
        .await
        .unwrap();
    session.call("k", &call).await.unwrap();
    let last = stage.chain().await.pop().unwrap();
    let detail: serde_json::Value = serde_json::from_str(&last.detail.unwrap()).unwrap();
    assert_eq!(detail["said"]["reply"], r#""paid 7 cents""#);
    assert_eq!(detail["said"]["by"], "gateway");
}

#[tokio::test]
async fn an_anchor_is_due_after_so_many_entries_and_not_for_its_own() {
    let stage = Stage::new();
    let desk = stage.desk();
    assert_eq!(desk.anchor_due("local", 3).await, Ok(AnchorDue::In(3)));
    for thread in ["a", "b"] {
        stage.asked(thread, "pay").await;
    }
    assert_eq!(desk.anchor_due("local", 3).await, Ok(AnchorDue::In(1)));
    stage.asked("c", "pay").await;
    let head = stage.chain().await.pop().unwrap().head();
    let AnchorDue::Now(anchor) = desk.anchor_due("local", 3).await.unwrap() else {
        panic!()
    };
    assert_eq!((anchor.seq, &anchor.hash), (3, &head.hash));
    desk.anchored(&anchor, "a file").await.unwrap();
    assert_eq!(desk.anchor_due("local", 1).await, Ok(AnchorDue::In(1)));
    // An older one than what is anchored already is not told of.
    let older = Anchor::new("local", &stage.chain().await[0].head(), 1);
    desk.anchored(&older, "a file").await.unwrap();
    assert_eq!(stage.chain().await.len(), 4);
    stage.asked("d", "pay").await;
    let due = desk.anchor_due("local", 1).await;
    assert!(matches!(due, Ok(AnchorDue::Now(anchor)) if anchor.seq == 5));
}

/// A store that shows its audit otherwise than it was written.
struct Forged {
    inner: Arc<dyn Store>,
    forge: fn(&mut Vec<AuditEntry>),
}

impl StoreLayer for Forged {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn audit<'a>(
        &'a self,
        tenant: &'a str,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditEntry>> {
        Box::pin(async move {
            let mut entries = self.inner.audit(tenant, 0, 1_000).await?;
            (self.forge)(&mut entries);
            entries.retain(|entry| entry.seq > after);
            entries.truncate(limit);
            Ok(entries)
        })
    }
}

#[tokio::test]
async fn a_chain_that_is_broken_since_its_last_anchor_is_not_anchored() {
    let stage = Stage::new();
    for thread in ["a", "b", "c"] {
        stage.asked(thread, "pay").await;
    }
    let desk = stage.desk();
    let second = Anchor::new("local", &stage.chain().await[1].head(), 1);
    desk.anchored(&second, "a file").await.unwrap();
    type Forgery = fn(&mut Vec<AuditEntry>);
    let table: [(&str, Forgery, Option<&str>); 7] = [
        ("nothing", |_| {}, None),
        // What is before the anchor, whoever verifies the chain finds.
        ("before", |all| all[0].event = all[1].event.clone(), None),
        (
            "the anchored entry",
            |all| all[1].event = all[0].event.clone(),
            Some("entry 2: it was changed: its hash is not that of its content"),
        ),
        (
            "a later one",
            |all| all[2].event = all[0].event.clone(),
            Some("entry 3: it was changed: its hash is not that of its content"),
        ),
        (
            "a gap",
            |all| drop(all.remove(2)),
            Some("entry 3: it is missing; entry 4 stands in its place"),
        ),
        (
            "the anchored one is gone",
            |all| drop(all.remove(1)),
            Some("entry 2: it is missing; entry 3 stands in its place"),
        ),
        (
            "the end",
            |all| all.truncate(1),
            Some("entry 2: it was anchored and is gone: the chain ends at entry 1"),
        ),
    ];
    for (what, forge, broken) in table {
        let desk = Approvals::new(Arc::new(Forged {
            inner: stage.store.clone(),
            forge,
        }));
        let due = desk.anchor_due("local", 1).await;
        let said = due.as_ref().err().map(ToString::to_string);
        let expected = broken.map(|why| format!("the audit is broken: {why}"));
        assert_eq!(said, expected, "{what}");
        if broken.is_none() {
            assert!(
                matches!(due, Ok(AnchorDue::Now(anchor)) if anchor.seq == 4),
                "{what}"
            );
        }
    }
}

#[tokio::test]
async fn who_was_refused_by_a_rule_is_erased_with_what_is_theirs() {
    let stage = Stage::new();
    let session = stage.run("t", "t", asks().deny(["pay"])).await;
    let call = ToolCall::native("pay", r#"{"cents":7}"#);
    assert!(matches!(session.call("k", &call).await, Ok(Reply::Observed(seen)) if !seen.ok()));
    let other = Whose::User("customer of another".into());
    let desk = stage.desk();
    assert_eq!(desk.personal("local", &other).await, Ok(Vec::new()));
    let user = Whose::User("customer of t".into());
    assert_eq!(desk.erase("local", &user, "eve", "they asked").await, Ok(1));
    let left = serde_json::to_string(&stage.chain().await).unwrap();
    assert!(!left.contains("customer of t"), "{left}");
}

/// Everything personal of one person, one subject or one action goes, nothing else does, and the chain tells of it.
#[tokio::test]
async fn what_is_personal_can_be_erased_and_the_chain_stays_whole() {
    let stage = Stage::new();
    let desk = stage.desk();
    let mut ids = Vec::new();
    for (thread, by) in [("1", "ann"), ("2", "ann"), ("3", "bob")] {
        let (session, call, asked) = stage.asked(thread, "pay").await;
        desk.approve(asked.action, &asked.digest, by).await.unwrap();
        session.call("k", &call).await.unwrap();
        ids.push(asked.action);
    }
    let all: Vec<u64> = (1..=15).collect();
    let of = |thread: u64| all[(thread as usize - 1) * 5..][..5].to_vec();
    let with_detail = |seqs: Vec<u64>| seqs;
    let find = async |whose: Whose| desk.personal("local", &whose).await.unwrap();
    assert_eq!(find(Whose::Action(ids[1])).await, with_detail(of(2)));
    assert_eq!(
        find(Whose::User("customer of 3".into())).await,
        with_detail(of(3))
    );
    assert_eq!(find(Whose::Subject("pay".into())).await, all);
    assert_eq!(
        find(Whose::Subject("order:7".into())).await,
        Vec::<u64>::new()
    );

    let user = Whose::User("customer of 3".into());
    assert_eq!(
        desk.erase("local", &user, "eve", " ").await,
        Err(ApprovalError::NoReason)
    );
    assert_eq!(desk.erase("local", &user, "eve", "asked").await, Ok(5));
    assert_eq!(desk.erase("local", &user, "eve", "asked").await, Ok(0));
    let chain = stage.chain().await;
    let found = Verifier::check("local", &chain, &[]).unwrap();
    assert_eq!(
        (found.entries, found.erased, found.erased_untold),
        (16, 5, 0)
    );
    let last = chain.last().unwrap();
    let event = Event::read(&last.event).unwrap();
    assert_eq!(
        (event.kind, &event.fields["entries"], &event.fields["of"]),
        (
            EventKind::Erased,
            &Field::from("11-15"),
            &Field::from("a user")
        )
    );
    assert!(!last.event.contains("customer"), "{}", last.event);
    assert!(last.detail.as_ref().unwrap().contains("person:eve"));
    let left = serde_json::to_string(&chain).unwrap();
    assert!(!left.contains("customer of 3") && left.contains("customer of 2"));

    // Somebody who decided is named no more, but that they erased something stays.
    desk.erase("local", &Whose::User("ann".into()), "ann", "I asked")
        .await
        .unwrap();
    let left = serde_json::to_string(&stage.chain().await).unwrap();
    assert_eq!(left.matches("person:ann").count(), 1, "{left}");

    // What is taken away by hand is seen.
    let by_hand = Change {
        erase: vec![Erase {
            tenant: "local".into(),
            seq: 1,
        }],
        ..Change::default()
    };
    stage.store.commit(by_hand).await.unwrap();
    let found = Verifier::check("local", &stage.chain().await, &[]).unwrap();
    assert_eq!(found.erased_untold, 1);
}
