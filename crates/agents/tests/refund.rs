//! The support agent with a tool that gives money back: when it asks for it, and what people's decisions make of it.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use paraph_agents::{
    Agent, Approval, Case, Rehearsal, RunResult, Stores, Terms, builtin, support,
    support_that_refunds,
};
use paraph_gateway::{
    Approvals, Attempt, Dialect, DynTool, Effect, EffectError, Found, ToolError, Warrant,
};
use paraph_graph::RunId;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Gives money back, and remembers to whom and how much.
#[derive(Clone, Default)]
struct Till(Arc<Mutex<Vec<Value>>>);

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Refund {
    user_id: u64,
    amount_cents: u64,
    reason: String,
}

impl Effect for Till {
    type Args = Refund;
    type Receipt = Value;
    const NAME: &'static str = "issue_refund";
    const ABOUT: &'static str = "Gives a user money back";

    fn describe(&self, refund: &Refund) -> String {
        format!("Refund {} cents to {}", refund.amount_cents, refund.user_id)
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<Value, EffectError> {
        let refund = serde_json::to_value(&warrant.args)?;
        self.0.lock().unwrap().push(refund);
        Ok(json!({"refund": "R-1", "amount": "49.00 USD"}))
    }

    async fn reconcile(&self, _: Attempt<'_, Self>) -> Result<Found<Value>, ToolError> {
        Ok(Found::CannotTell)
    }
}

struct Stage {
    till: Till,
    stores: Stores,
    dialect: Dialect,
}

impl Stage {
    fn new(dialect: Dialect) -> Stage {
        Stage {
            till: Till::default(),
            stores: Stores::in_memory(),
            dialect,
        }
    }

    fn support(&self, allow: &[&str], deny: &[&str]) -> Agent {
        let names = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let refund = DynTool::effect(self.till.clone());
        let (allow, deny) = (names(allow), names(deny));
        support_that_refunds(&self.stores, self.dialect, refund, &allow, &deny).unwrap()
    }

    fn terms(&self) -> Terms {
        Terms {
            limits: builtin().remove(0).limits,
            ..Terms::new(Arc::new(Rehearsal::Support), "case-7")
        }
    }

    async fn ask(&self, support: &Agent, user: u64, question: &str) -> (RunId, RunResult) {
        let question = question.to_owned();
        let terms = self.terms();
        let run = support.start(Case { user, question }, &terms);
        let run = run.await.unwrap();
        (run.run_id(), run.result().await)
    }

    /// What the run waits for, of which nothing was done.
    async fn proposed(&self, support: &Agent) -> (RunId, Approval) {
        let (run, result) = self.ask(support, 42, WANTS).await;
        assert_eq!(
            (result.stop().to_string(), result.stop().exit_code()),
            ("approval_pending".to_owned(), 5)
        );
        assert!(self.done().is_empty());
        let [approval] = result.approvals() else {
            panic!("{result:?}")
        };
        (run, approval.clone())
    }

    async fn go_on(&self, run: RunId) -> RunResult {
        let support = self.support(&[], &[]);
        let run = support.resume(run, &self.terms()).await;
        run.unwrap().result().await
    }

    fn desk(&self) -> Approvals {
        Approvals::new(self.stores.records.clone())
    }

    fn done(&self) -> Vec<Value> {
        self.till.0.lock().unwrap().clone()
    }
}

const WANTS: &str = "Please refund me now.";
const DIALECTS: [Dialect; 2] = [Dialect::Strict, Dialect::Native];

#[tokio::test]
async fn who_only_asks_is_answered_as_without_the_tool() {
    for dialect in DIALECTS {
        let stage = Stage::new(dialect);
        let plain = support(&Stores::in_memory(), dialect, &[], &[]).unwrap();
        for question in ["Can I get a refund now?", "Do not refund me, just tell me."] {
            let (_, with) = stage.ask(&stage.support(&[], &[]), 42, question).await;
            let (_, without) = stage.ask(&plain, 42, question).await;
            assert_eq!(with.answer(), without.answer());
            assert!(with.answer().unwrap().starts_with("Yes, you can get"));
        }
        assert!(stage.done().is_empty());
    }
}

#[tokio::test]
async fn a_refund_that_is_approved_is_made_once_and_its_receipt_is_told() {
    for dialect in DIALECTS {
        let stage = Stage::new(dialect);
        let (run, approval) = stage.proposed(&stage.support(&[], &[])).await;
        assert_eq!(approval.says, "Refund 4900 cents to 42");
        let desk = stage.desk();
        desk.approve(approval.id, &approval.digest, "ann")
            .await
            .unwrap();
        let result = stage.go_on(run).await;
        assert_eq!(
            result.answer(),
            Some("Done: 49.00 USD are refunded to you (receipt R-1).")
        );
        let reason =
            "the first payment was 10 days ago, within the 14 days of the policy (refund-v3)";
        assert_eq!(
            stage.done(),
            [json!({"user_id": 42, "amount_cents": 4_900, "reason": reason})]
        );
        // A later question on the same thread does not do it again.
        let (_, again) = stage
            .ask(&stage.support(&[], &[]), 42, "Can I get a refund now?")
            .await;
        assert!(again.answer().is_some());
        assert_eq!(stage.done().len(), 1);
    }
}

#[tokio::test]
async fn a_refund_that_is_refused_is_not_made_and_the_reason_is_told() {
    for dialect in DIALECTS {
        let stage = Stage::new(dialect);
        let (run, approval) = stage.proposed(&stage.support(&[], &[])).await;
        let desk = stage.desk();
        desk.reject(
            approval.id,
            &approval.digest,
            "ann",
            "paid back by bank already",
        )
        .await
        .unwrap();
        let result = stage.go_on(run).await;
        match dialect {
            // The first call that fails ends such a run.
            Dialect::Strict => {
                let rows = result.trace();
                let last = rows.last().unwrap();
                assert_eq!(
                    (result.stop().to_string(), last.stop_reason.as_deref()),
                    ("approval_rejected".to_owned(), Some("approval_rejected"))
                );
            }
            Dialect::Native => assert!(
                result.answer().unwrap().starts_with(
                    "The refund was not made. A person refused this call: paid back by bank already."
                ),
                "{result:?}"
            ),
        }
        assert!(stage.done().is_empty());
    }
}

#[tokio::test]
async fn whom_the_policy_gives_nothing_no_refund_is_proposed_for() {
    for dialect in DIALECTS {
        for (user, says) in [(7, "There is nothing to refund"), (99, "I cannot tell")] {
            let stage = Stage::new(dialect);
            let (_, result) = stage.ask(&stage.support(&[], &[]), user, WANTS).await;
            assert!(result.answer().unwrap().starts_with(says), "{result:?}");
            assert!(result.approvals().is_empty() && stage.done().is_empty());
        }
    }
}

#[tokio::test]
async fn to_be_allowed_is_not_to_be_approved_and_denied_is_denied() {
    let stage = Stage::new(Dialect::Strict);
    stage.proposed(&stage.support(&["issue_refund"], &[])).await;
    let stage = Stage::new(Dialect::Strict);
    let denied = stage.support(&["issue_refund"], &["issue_refund"]);
    let (_, result) = stage.ask(&denied, 42, WANTS).await;
    assert_eq!(result.stop().to_string(), "tool_denied:issue_refund");
}
