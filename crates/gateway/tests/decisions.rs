//! What people say beside yes and no: ask for a change, answer in words; and what becomes of what a run left behind.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use paraph_gateway::examples::{Comment, Pay};
use paraph_gateway::*;
use stage::{cents, clocked, seen, waits};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A gateway with both example effects, at a store whose clock the test turns.
struct Stage {
    pay: Pay,
    store: Arc<dyn Store>,
}

impl Stage {
    fn new() -> Stage {
        Stage {
            pay: Pay::default(),
            store: clocked(1_000_000).0,
        }
    }

    async fn session(&self, scope: Scope, policy: Policy) -> Session {
        let gateway = Gateway::builder(self.store.clone())
            .effect(self.pay.clone())
            .effect(Comment::default())
            .policy(policy)
            .build()
            .unwrap();
        gateway.session(scope, Limits::default()).await.unwrap()
    }

    /// A run of the thread, about which people are asked.
    async fn run(&self, run: &str, dialect: Dialect) -> Session {
        let scope = Scope {
            run: run.into(),
            dialect,
            ..Scope::new("clerk", "case-7")
        };
        let ask = Ask::default();
        self.session(scope, Policy::new().ask("pay", ask).ask("comment", ask))
            .await
    }

    fn desk(&self) -> Approvals {
        Approvals::new(self.store.clone())
    }

    async fn chain(&self) -> Vec<Event> {
        let entries = self.desk().audit("local", 0, 1_000).await.unwrap();
        Verifier::check("local", &entries, &[]).unwrap();
        let events = entries.iter().map(|entry| Event::read(&entry.event));
        events.map(Result::unwrap).collect()
    }
}

/// What was asked for goes back to the model, in either dialect, as data that says that nothing was done; it may ask
/// again, and what it then gets is another action.
#[tokio::test]
async fn what_a_person_wants_changed_is_read_by_the_model_which_may_ask_again() {
    for dialect in [Dialect::Native, Dialect::Strict] {
        let stage = Stage::new();
        let session = stage.run("r", dialect).await;
        let first = waits(session.call("1", &cents(500)).await.unwrap());
        let desk = stage.desk();
        let over = desk
            .ask_change(first.action, &first.digest, "ann", "  only \"half\" of it ")
            .await
            .unwrap();
        assert_eq!((over.state, over.closes), (State::Superseded, false));
        assert_eq!(desk.wakes().await.unwrap().len(), 1);
        let read = seen(session.call("1", &cents(500)).await.unwrap());
        assert_eq!(
            (read.content.as_str(), &read.failure, read.action),
            (
                r#"{"a_person":"asks for a change","happened":false,"words":"only \"half\" of it"}"#,
                &None,
                Some(first.action)
            )
        );
        let second = waits(session.call("2", &cents(250)).await.unwrap());
        assert_ne!(second.action, first.action);
        desk.approve(second.action, &second.digest, "ann")
            .await
            .unwrap();
        assert!(seen(session.call("2", &cents(250)).await.unwrap()).ok());
        assert_eq!(stage.pay.paid().into_values().collect::<Vec<_>>(), [250]);
        // The same once more is the same answer; anything else names what it is.
        let again = desk.ask_change(first.action, &first.digest, "ann", "only \"half\" of it");
        assert_eq!(again.await.unwrap(), over);
        let late = desk.approve(first.action, &first.digest, "ann").await;
        assert_eq!(late, Err(ApprovalError::Conflict(Box::new(over))));
    }
}

#[tokio::test]
async fn changes_are_asked_for_so_often_and_then_somebody_has_to_decide() {
    let stage = Stage::new();
    let session = stage.run("r", Dialect::Native).await;
    let desk = stage.desk();
    for n in 0..3 {
        let call = cents(n);
        let asked = waits(session.call(&n.to_string(), &call).await.unwrap());
        desk.ask_change(asked.action, &asked.digest, "ann", "less")
            .await
            .unwrap();
        seen(session.call(&n.to_string(), &call).await.unwrap());
    }
    let last = waits(session.call("last", &cents(9)).await.unwrap());
    let refused = desk
        .ask_change(last.action, &last.digest, "bob", "less")
        .await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "a change was asked for 3 times about `pay` on this thread: approve it, edit it or refuse it"
    );
    assert_eq!(desk.show(last.action).await.unwrap().state, State::Pending);
    // About something else it may be asked.
    let other = ToolCall::native("comment", r#"{"text":"Hello"}"#);
    let other = waits(session.call("other", &other).await.unwrap());
    let over = desk
        .ask_change(other.action, &other.digest, "ann", "more")
        .await;
    assert_eq!(over.unwrap().state, State::Superseded);
    desk.reject(last.action, &last.digest, "ann", "no")
        .await
        .unwrap();
}

#[tokio::test]
async fn an_answer_in_words_stands_in_the_place_of_what_was_asked_for() {
    for dialect in [Dialect::Native, Dialect::Strict] {
        let stage = Stage::new();
        let session = stage.run("r", dialect).await;
        let asked = waits(session.call("1", &cents(500)).await.unwrap());
        let desk = stage.desk();
        let over = desk
            .respond(asked.action, &asked.digest, "ann", "It is paid already.")
            .await
            .unwrap();
        assert_eq!((over.state, over.closes), (State::Answered, false));
        let read = seen(session.call("1", &cents(500)).await.unwrap());
        assert_eq!(
            read.content,
            r#"{"a_person":"answers","happened":false,"words":"It is paid already."}"#
        );
        assert_eq!(stage.pay.paid().len(), 0);
        let other = desk
            .respond(asked.action, &asked.digest, "ann", "No.")
            .await;
        assert_eq!(other, Err(ApprovalError::Conflict(Box::new(over))));
    }
}

#[tokio::test]
async fn words_are_needed_and_bounded_and_of_the_bytes_that_were_seen() {
    let stage = Stage::new();
    let session = stage.run("r", Dialect::Native).await;
    let asked = waits(session.call("1", &cents(5)).await.unwrap());
    let desk = stage.desk();
    let (id, digest) = (asked.action, asked.digest.as_str());
    let long = "x".repeat(8_001);
    for (digest, words, error) in [
        (digest, " \n", ApprovalError::NoReason),
        (
            digest,
            &*long,
            ApprovalError::TooLong {
                count: 8_001,
                most: 8_000,
            },
        ),
        ("0", "less", ApprovalError::OtherDigest),
    ] {
        let refused = Err(error);
        assert_eq!(desk.ask_change(id, digest, "ann", words).await, refused);
        assert_eq!(desk.respond(id, digest, "ann", words).await, refused);
        assert_eq!(desk.reject(id, digest, "ann", words).await, refused);
    }
    assert_eq!(desk.show(id).await.unwrap().state, State::Pending);
}

/// A later run on the thread leaves the earlier one behind: what that asked for about the same is not decided any more.
#[tokio::test]
async fn a_later_run_takes_the_place_of_what_an_earlier_one_asked_about_the_same() {
    let stage = Stage::new();
    let desk = stage.desk();
    let comment = ToolCall::native("comment", r#"{"text":"Hello"}"#);
    let earlier = stage.run("1", Dialect::Native).await;
    let same = waits(earlier.call("k", &cents(1)).await.unwrap());
    let beside = waits(earlier.call("l", &cents(2)).await.unwrap());
    let other = waits(earlier.call("m", &comment).await.unwrap());
    let later = stage.run("2", Dialect::Native).await;
    let new = waits(later.call("k", &cents(3)).await.unwrap());
    for old in [&same, &beside] {
        let row = desk.show(old.action).await.unwrap();
        assert_eq!(
            (row.state, row.replaced_by, row.closes),
            (State::Superseded, Some(new.action), false)
        );
        let late = desk.approve(old.action, &old.digest, "ann").await;
        assert!(
            matches!(late, Err(ApprovalError::Conflict(row)) if row.replaced_by == Some(new.action))
        );
    }
    let waiting: BTreeSet<_> = desk
        .waiting()
        .await
        .unwrap()
        .iter()
        .map(ActionRow::id)
        .collect();
    assert_eq!(waiting, BTreeSet::from([other.action, new.action]));
    // Should somebody drive the earlier run all the same, it reads why.
    let read = seen(earlier.call("k", &cents(1)).await.unwrap());
    let failure = Failure::Error {
        tool: "pay".into(),
        detail: "a later run on the thread asks about the same".into(),
    };
    assert_eq!(read.failure, Some(failure));
    // What another agent asked for there is its own.
    let scope = Scope {
        run: "3".into(),
        ..Scope::new("cashier", "case-7")
    };
    let third = stage
        .session(scope, Policy::new().ask("pay", Ask::default()))
        .await;
    waits(third.call("k", &cents(4)).await.unwrap());
    assert_eq!(desk.show(new.action).await.unwrap().state, State::Pending);
    let told = stage.chain().await;
    let over = told
        .iter()
        .filter(|event| event.kind == EventKind::Superseded);
    assert_eq!(over.count(), 2);
}

/// Whoever edits cannot evade what larger amounts need, nor what a rule denies.
#[tokio::test]
async fn edited_arguments_are_judged_like_any_others() {
    let stage = Stage::new();
    let above = |name: &str, then: Then, most: i64| {
        let rule = Rule::new(name, then, ["pay"]);
        let large = Condition::new("/cents", Operator::Above(most.into()));
        Rule {
            when: vec![large],
            ..rule
        }
    };
    let two = Ask {
        quorum: 2,
        ..Ask::default()
    };
    let policy = Policy::new()
        .ask("pay", Ask::default())
        .rule(above("large", Then::Ask(two), 999))
        .rule(above("huge", Then::Deny, 4_999));
    let gateway = Gateway::builder(stage.store.clone())
        .effect(stage.pay.clone())
        .policy(policy)
        .build()
        .unwrap();
    let scope = Scope::new("clerk", "case-7");
    let session = gateway.session(scope, Limits::default()).await.unwrap();
    let asked = waits(session.call("k", &cents(10)).await.unwrap());
    let row = stage.desk().show(asked.action).await.unwrap();
    assert_eq!(row.action.said.quorum, 1);
    let denied = gateway
        .edit(&row, &row.digest, "ann", r#"{"cents":5000}"#)
        .await;
    assert!(
        matches!(&denied, Err(ApprovalError::BadArgs(why)) if why.contains("it is denied by `huge`")),
        "{denied:?}"
    );
    let new = gateway
        .edit(&row, &row.digest, "ann", r#"{"cents":1000}"#)
        .await;
    assert_eq!(new.unwrap().action.said.quorum, 2);
}
