//! What is written down of the policy's decisions: with the call, and in the audit; and that a person who changes an
//! action is held to the rules for what it has become.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use paraph_gateway::examples::Pay;
use paraph_gateway::*;
use std::sync::Arc;
use std::time::Duration;

/// The policy of all tests here.
fn policy() -> Policy {
    let large = |name: &str, then, cents: i64| Rule {
        when: vec![Condition::new("/cents", Operator::Above(cents.into()))],
        because: "it is too much".into(),
        ..Rule::new(name, then, ["pay"])
    };
    let two = Ask {
        quorum: 2,
        not_by_requester: true,
        expires: Duration::from_secs(60),
        ..Ask::default()
    };
    Policy::new()
        .allow(["search", "page"])
        .ask("pay", Ask::default())
        .deny(["secret"])
        .untrusted(["page"])
        .rule(large("never", Then::Deny, 10_000))
        .rule(large("by two", Then::Ask(two), 1_000))
        .grant(Grant {
            at_most: vec![("/cents".into(), 5)],
            per_thread: Some(1),
            ..Grant::new("small", "pay", u64::MAX)
        })
}

fn gateway(store: Arc<dyn Store>) -> Gateway {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    let run = async |_: Nothing| Ok("text");
    Gateway::builder(store)
        .read("search", "about", run)
        .read("page", "about", run)
        .read("secret", "about", run)
        .effect(Pay::default())
        .policy(policy())
        .build()
        .unwrap()
}

fn pay(cents: u32) -> ToolCall {
    ToolCall::native("pay", &format!(r#"{{"cents":{cents}}}"#))
}

fn ruling(is: Ruled, rule: Option<&str>, grant: Option<&str>) -> Option<Ruling> {
    Some(Ruling {
        is,
        rule: rule.map(str::to_owned),
        grant: grant.map(str::to_owned),
        policy: policy().hash(),
    })
}

/// What an entry says of a decision: its kind, state and tool, the rule and the grant, and what stands beside it.
type Told = (
    EventKind,
    Option<String>,
    Option<String>,
    Option<Field>,
    Option<Field>,
    String,
);

async fn audit(store: &Arc<dyn Store>) -> Vec<Told> {
    let entries = store.audit("local", 0, 100).await.unwrap();
    Verifier::check("local", &entries, &[]).unwrap();
    entries
        .into_iter()
        .filter_map(|entry| {
            let event = Event::read(&entry.event).unwrap();
            let decides = [EventKind::PolicyDecided, EventKind::Proposed];
            decides.contains(&event.kind).then(|| {
                let hash = Field::Text(policy().hash());
                assert_eq!(event.fields.get("policy"), Some(&hash));
                let detail = entry.detail.unwrap_or_default();
                let said: serde_json::Value = serde_json::from_str(&detail).unwrap();
                (
                    event.kind,
                    event.state,
                    event.tool,
                    event.fields.get("rule").cloned(),
                    event.fields.get("grant").cloned(),
                    said["said"].to_string(),
                )
            })
        })
        .collect()
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn field(text: &str) -> Option<Field> {
    Some(text.into())
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of every decision")]
async fn every_decision_stands_with_its_call_and_what_is_more_than_reading_in_the_audit() {
    let store: Arc<dyn Store> = MemoryStore::shared();
    let limits = Limits {
        tool_calls: 20,
        ..Limits::default()
    };
    let gateway = gateway(store.clone());
    let session = gateway.session(Scope::new("clerk", "t"), limits);
    let session = session.await.unwrap();
    let calls = [
        ToolCall::native("search", "{}"),
        ToolCall::native("secret", "{}"),
        ToolCall::native("rm ann@example.com", "{}"),
        pay(20_000),
        pay(7),
        pay(5),
        pay(4),
        ToolCall::native("page", "{}"),
        pay(3),
    ];
    for (index, call) in calls.iter().enumerate() {
        session.call(&index.to_string(), call).await.unwrap();
    }
    let records = store.calls(&session.scope().run_ref()).await.unwrap();
    let found: Vec<_> = records.into_iter().map(|record| record.ruling).collect();
    use Ruled::{Allowed, Asked, Denied};
    assert_eq!(
        found,
        [
            ruling(Allowed, Some("allow:search"), None),
            ruling(Denied, Some("deny:secret"), None),
            ruling(Denied, None, None),
            ruling(Denied, Some("never"), None),
            ruling(Asked, Some("ask:pay"), None),
            ruling(Asked, Some("ask:pay"), Some("small")),
            ruling(Asked, Some("ask:pay"), None),
            ruling(Allowed, Some("allow:page"), None),
            ruling(Denied, Some("flow:untrusted"), None),
        ]
    );
    let hash = |call: &ToolCall| call.args_hash().to_owned();
    let denied = |tool: Option<&str>, rule: Option<&str>, said: String| {
        (
            EventKind::PolicyDecided,
            text("denied"),
            tool.map(str::to_owned),
            rule.map(Field::from),
            None,
            said,
        )
    };
    let proposed = |state: &str, grant: Option<&str>, said: &str| {
        (
            EventKind::Proposed,
            text(state),
            text("pay"),
            field("ask:pay"),
            grant.map(Field::from),
            said.to_owned(),
        )
    };
    let (empty, large, small) = (hash(&calls[0]), hash(&calls[3]), hash(&calls[8]));
    let names = "no tool has that name; there are search, page, pay";
    let flow =
        "the run has read untrusted text (`page`), and nothing says which argument is the target";
    assert_eq!(
        audit(&store).await,
        [
            denied(
                Some("secret"),
                Some("deny:secret"),
                format!(
                    r#"{{"args_hash":"{empty}","requester":"local","why":"a rule denies it"}}"#
                )
            ),
            denied(
                None,
                None,
                format!(
                    r#"{{"args_hash":"{empty}","requester":"local","tool":"rm ann@example.com","why":"{names}"}}"#
                )
            ),
            denied(
                Some("pay"),
                Some("never"),
                format!(r#"{{"args_hash":"{large}","requester":"local","why":"it is too much"}}"#)
            ),
            proposed(
                "pending",
                None,
                r#"{"requester":"local","says":"Pay 7 cents","subject":"pay"}"#
            ),
            proposed(
                "approved",
                Some("small"),
                r#"{"by":"rule:small","requester":"local","says":"Pay 5 cents","subject":"pay"}"#
            ),
            proposed(
                "pending",
                None,
                r#"{"requester":"local","says":"Pay 4 cents","subject":"pay"}"#
            ),
            denied(
                Some("pay"),
                Some("flow:untrusted"),
                format!(r#"{{"args_hash":"{small}","requester":"local","why":"{flow}"}}"#)
            ),
        ]
    );
}

#[tokio::test]
async fn whoever_edits_an_action_is_held_to_the_rules_for_what_it_becomes() {
    let store: Arc<dyn Store> = MemoryStore::shared();
    let gateway = gateway(store.clone());
    let session = gateway.session(Scope::new("clerk", "t"), Limits::default());
    let session = session.await.unwrap();
    let reply = session.call("k", &pay(7)).await.unwrap();
    let Reply::Waiting(question) = reply else {
        panic!("{reply:?}");
    };
    let row = gateway.approvals().show(question.action).await.unwrap();
    assert_eq!(row.action.said.quorum, 1);
    let edit = async |row: &ActionRow, cents: u32| {
        let args = format!(r#"{{"cents":{cents}}}"#);
        gateway.edit(row, &row.digest, "ann", &args).await
    };
    let refused = edit(&row, 10_001).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        ApprovalError::BadArgs("it is denied by `never`: it is too much".to_owned()).to_string()
    );
    let large = edit(&row, 1_001).await.unwrap();
    let said = &large.action.said;
    assert_eq!(
        (said.quorum, said.not_by_requester, said.expires_ms),
        (2, true, said.created_ms + 60_000)
    );
    // What was asked before is asked still.
    let small = edit(&large, 6).await.unwrap();
    let said = &small.action.said;
    assert_eq!((said.quorum, said.not_by_requester), (2, true));
    let rules: Vec<_> = audit(&store).await.into_iter().map(|told| told.3).collect();
    assert_eq!(
        rules,
        [field("ask:pay"), field("ask:pay"), field("ask:pay")]
    );
}
