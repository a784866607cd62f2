//! Both dialects run the same gateway: the same intents, and what each dialect makes of them.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use paraph_agents::{Case, Rehearsal, RunResult, Stores, Terms, builtin, support};
use paraph_gateway::{Dialect, Limits};
use paraph_models::ScriptedModel;
use serde_json::{Value, json};
use std::sync::Arc;

/// What a model wants: a tool with arguments.
type Intent = (&'static str, Value);

/// A script in which the model wants these things one after the other, and then answers.
fn script(dialect: Dialect, intents: &[Intent]) -> String {
    let call = |(name, args): &Intent| match dialect {
        Dialect::Strict => {
            let action = json!({"kind": "tool", "name": name, "args": args});
            json!({"content": action.to_string()})
        }
        Dialect::Native => json!({"tool_calls": [{"name": name, "arguments": args}]}),
    };
    let answer = match dialect {
        Dialect::Strict => json!({"content": r#"{"kind":"final","answer":"Done."}"#}),
        Dialect::Native => json!({"content": "Done."}),
    };
    let lines = intents.iter().map(call).chain([answer]);
    lines.map(|line| line.to_string() + "\n").collect()
}

fn support_limits() -> Limits {
    builtin().remove(0).limits
}

async fn run(
    dialect: Dialect,
    intents: &[Intent],
    limits: Limits,
    allow: &[String],
    deny: &[String],
) -> RunResult {
    let model = ScriptedModel::parse(&script(dialect, intents), "script").unwrap();
    let terms = Terms {
        limits,
        ..Terms::new(Arc::new(model), "t")
    };
    let case = Case {
        user: 42,
        question: "Refund?".to_owned(),
    };
    let agent = support(&Stores::in_memory(), dialect, allow, deny).unwrap();
    agent.start(&case, &terms).await.unwrap().result().await
}

#[tokio::test]
async fn what_a_call_does_wrong_stops_one_dialect_and_is_read_in_the_other() {
    let allow = ["translate".to_owned()];
    let deny = ["search_policy".to_owned()];
    let table: [(Intent, &str); 4] = [
        (("rm", json!({})), "tool_denied:rm"),
        (
            ("search_policy", json!({"query": "refund"})),
            "tool_denied:search_policy",
        ),
        (("translate", json!({})), "tool_missing:translate"),
        (
            ("get_user_profile", json!({"user_id": "42"})),
            "tool_bad_args:get_user_profile",
        ),
    ];
    for (intent, reason) in table {
        let intents = [intent];
        let strict = run(Dialect::Strict, &intents, support_limits(), &allow, &deny).await;
        assert_eq!(strict.stop().to_string(), reason);
        let native = run(Dialect::Native, &intents, support_limits(), &allow, &deny).await;
        assert_eq!(native.answer(), Some("Done."), "{reason}");
        // Up to there the two are the same.
        assert_eq!(strict.trace(), native.trace());
        assert_eq!(native.trace()[0].stop_reason.as_deref(), Some(reason));
    }
}

#[tokio::test]
async fn budget_and_loops_stop_both_dialects() {
    let profile = || ("get_user_profile", json!({"user_id": 42}));
    let billing = || ("get_user_billing", json!({"user_id": 42}));
    let wrong = || ("get_user_billing", json!({"user_id": "x"}));
    let limited = |change: fn(&mut Limits)| {
        let mut limits = support_limits();
        change(&mut limits);
        limits
    };
    let table = [
        (
            vec![profile(), profile()],
            support_limits(),
            "loop_detected",
        ),
        (
            vec![profile(), billing()],
            limited(|l| l.tool_calls = 1),
            "max_tool_calls",
        ),
        (
            vec![profile(), billing()],
            limited(|l| l.steps = 2),
            "max_steps",
        ),
        (vec![profile()], limited(|l| l.seconds = 0), "max_seconds"),
        (vec![profile()], limited(|l| l.tokens = 10), "max_tokens"),
        (
            vec![profile()],
            limited(|l| l.micro_dollars = 10),
            "max_cost",
        ),
    ];
    for (intents, limits, reason) in table {
        let strict = run(Dialect::Strict, &intents, limits.clone(), &[], &[]).await;
        let native = run(Dialect::Native, &intents, limits, &[], &[]).await;
        assert_eq!(strict.stop().to_string(), reason);
        assert_eq!(native.stop().to_string(), reason);
        assert_eq!(strict.trace(), native.trace(), "{reason}");
    }
    // What was refused has used the budget too.
    let limits = limited(|l| l.tool_calls = 1);
    let native = run(Dialect::Native, &[wrong(), profile()], limits, &[], &[]).await;
    assert_eq!(native.stop().to_string(), "max_tool_calls");
}

#[tokio::test]
async fn the_rehearsal_speaks_both_dialects_and_says_the_same() {
    for user in [42, 7, 99] {
        let case = Case {
            user,
            question: "Can I get a refund now?".to_owned(),
        };
        let mut answers = Vec::new();
        for dialect in [Dialect::Strict, Dialect::Native] {
            let agent = support(&Stores::in_memory(), dialect, &[], &[]).unwrap();
            let terms = Terms {
                limits: support_limits(),
                ..Terms::new(Arc::new(Rehearsal::Support), format!("{user}-{dialect:?}"))
            };
            let result = agent.start(&case, &terms).await.unwrap().result().await;
            answers.push(result.answer().unwrap().to_owned());
        }
        assert_eq!(answers[0], answers[1]);
    }
}

#[tokio::test]
async fn a_second_run_on_a_thread_begins_anew_with_actions_and_goes_on_with_messages() {
    let case = Case {
        user: 42,
        question: "Can I get a refund now?".to_owned(),
    };
    for (dialect, messages) in [(Dialect::Strict, None), (Dialect::Native, Some(14))] {
        let agent = support(&Stores::in_memory(), dialect, &[], &[]).unwrap();
        let terms = Terms {
            limits: support_limits(),
            ..Terms::new(Arc::new(Rehearsal::Support), format!("{dialect:?}"))
        };
        let first = agent.start(&case, &terms).await.unwrap().result().await;
        let second = agent.start(&case, &terms).await.unwrap().result().await;
        match (second, messages) {
            (RunResult::Actions(second), None) => assert_eq!(RunResult::Actions(second), first),
            (RunResult::Messages(second), Some(_)) => {
                // The facts of the first run are still in the conversation.
                assert!(second.messages.len() > 2 && second.trace.is_empty());
            }
            (other, _) => panic!("{other:?}"),
        }
    }
}

/// ContestTrade PR#96: steps that fail count as steps.
#[tokio::test]
async fn a_model_that_only_makes_mistakes_is_stopped_too() {
    let limits = Limits {
        steps: 4,
        ..support_limits()
    };
    let wrong: Vec<_> = (0..9).map(|n| ("rm", json!({ "n": n }))).collect();
    let native = run(Dialect::Native, &wrong, limits, &[], &[]).await;
    assert_eq!(native.stop().to_string(), "max_steps");
    assert_eq!(native.trace().len(), 4);
}

/// langgraphjs PR#2552: one agent, many callers.
#[tokio::test(flavor = "multi_thread")]
async fn runs_at_the_same_time_know_nothing_of_each_other() {
    let agent = support(&Stores::in_memory(), Dialect::Strict, &[], &[]);
    let agent = Arc::new(agent.unwrap());
    let runs = (0..50).map(|n| {
        let agent = agent.clone();
        tokio::spawn(async move {
            let user = if n % 2 == 0 { 42 } else { 1_000 + n };
            let case = Case {
                user,
                question: "Can I get a refund now?".to_owned(),
            };
            let terms = Terms {
                limits: support_limits(),
                ..Terms::new(Arc::new(Rehearsal::Support), format!("case-{n}"))
            };
            let run = agent.start(&case, &terms).await.unwrap();
            (user, run.result().await.answer().unwrap().to_owned())
        })
    });
    for run in runs.collect::<Vec<_>>() {
        let (user, answer) = run.await.unwrap();
        let expected = match user {
            42 => "49.00 USD".to_owned(),
            other => format!("user {other} not found"),
        };
        assert!(answer.contains(&expected), "{user}: {answer}");
    }
}
