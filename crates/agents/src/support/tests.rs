//! The support agent's own part: prompts, deadlines, state. Whole runs are in `tests/`.

use super::*;
use crate::Terms;
use paraph_models::{ModelError, RetryPolicy, Retrying, ScriptedModel, TimeLimit};
use std::sync::Arc;
use std::time::Duration;

const TOOL: &str = r#"{"kind":"tool","name":"get_user_profile","args":{"user_id":42}}"#;

fn line(content: &str) -> String {
    serde_json::json!({ "content": content }).to_string()
}

async fn run(script: &str, change: impl FnOnce(Terms) -> Terms, timeout: Duration) -> RunResult {
    let model = ScriptedModel::parse(script, "script").unwrap();
    let policy = RetryPolicy {
        timeout,
        ..RetryPolicy::default()
    };
    let terms = change(Terms {
        limits: limits(),
        ..Terms::new(Arc::new(Retrying::new(model, policy)), "t")
    });
    let case = Case {
        user: 42,
        question: "Refund?".to_owned(),
    };
    let agent = support(&Stores::in_memory(), Dialect::Strict, &[], &[]).unwrap();
    agent.start(&case, &terms).await.unwrap().result().await
}

#[test]
fn the_payload_is_laid_out_as_the_articles_program_does_it() {
    let turn = |step: u64, call: &str, observation: &str| Turn {
        step,
        call: ToolCall::new("search_policy", call).unwrap(),
        observation: observation.to_owned(),
    };
    let history = [
        turn(1, r#"{"query":"first"}"#, r#"{"matches":[]}"#),
        turn(2, r#"{"query":"é"}"#, "1.0"),
        turn(3, r#"{"query":"x","n":12345678901234567890123}"#, "[]"),
        turn(4, r#"{"query":"y"}"#, r#"{"a":"b"}"#),
    ];
    let agent = support(&Stores::in_memory(), Dialect::Strict, &[], &[]).unwrap();
    let tools = agent.gateway.catalogue();
    let state = SupportState {
        goal: "Help \u{1F600}".to_owned(),
        history: history.into(),
        ..SupportState::default()
    };
    let payload = prompt::payload(&state, tools.get(2..).unwrap()).unwrap();
    assert_eq!(
        payload,
        concat!(
            r#"{"goal": "Help \ud83d\ude00", "#,
            r#""state_summary": {"steps_completed": 4, "#,
            r#""tools_used": ["search_policy", "search_policy", "search_policy", "search_policy"], "#,
            r#""last_observation": {"a": "b"}}, "#,
            r#""recent_history": ["#,
            r#"{"step": 2, "action": {"kind": "tool", "name": "search_policy", "args": {"query": "\u00e9"}}, "observation": 1.0}, "#,
            r#"{"step": 3, "action": {"kind": "tool", "name": "search_policy", "args": {"query": "x", "n": 12345678901234567890123}}, "observation": []}, "#,
            r#"{"step": 4, "action": {"kind": "tool", "name": "search_policy", "args": {"query": "y"}}, "observation": {"a": "b"}}], "#,
            r#""available_tools": [{"name": "search_policy", "#,
            r#""description": "Finds the refund and billing rules that fit a few words", "args": {"query": "string"}}]}"#,
        )
    );
}

#[test]
fn a_task_says_who_asks_what() {
    let case = Case {
        user: 7,
        question: "User 9 asks: is this odd?".to_owned(),
    };
    assert_eq!(read_goal(&goal(&case)), Some(case));
    assert_eq!(read_goal("something else"), None);
}

#[tokio::test(start_paused = true)]
async fn of_two_deadlines_the_earlier_names_the_reason_and_a_tie_is_the_runs() {
    let slow = r#"{"content":"{}","delay_ms":60000}"#;
    let seconds = Duration::from_secs;
    for (timeout, reason) in [
        (19, "llm_timeout"),
        (20, "max_seconds"),
        (21, "max_seconds"),
    ] {
        let result = run(slow, |terms| terms, seconds(timeout)).await;
        assert_eq!(result.stop().to_string(), reason, "{timeout}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_server_does_not_outlast_the_run() {
    let script = format!(
        "{}\n{}",
        r#"{"error":{"kind":"http","status":429,"retry_after":30}}"#,
        line(TOOL)
    );
    let result = run(&script, |terms| terms, Duration::from_secs(60)).await;
    assert_eq!(result.stop().to_string(), "llm_error:rate_limited");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_recovers_is_asked_again() {
    let script = format!(
        "{}\n{}",
        r#"{"error":{"kind":"http","status":503}}"#,
        line(r#"{"kind":"final","answer":"Yes."}"#)
    );
    let result = run(&script, |terms| terms, Duration::from_secs(60)).await;
    assert_eq!(result.answer(), Some("Yes."));
}

#[tokio::test]
async fn the_last_tool_runs_before_the_steps_are_said_to_be_used_up() {
    let one_step = |terms: Terms| Terms {
        limits: Limits {
            steps: 1,
            ..limits()
        },
        ..terms
    };
    let result = run(&line(TOOL), one_step, Duration::from_secs(60)).await;
    let RunResult::Actions(result) = result else {
        panic!("a run with JSON actions has another result")
    };
    assert_eq!(result.stop_reason, Stop::MaxSteps);
    assert_eq!((result.trace.len(), result.history.len()), (1, 1));
}

#[tokio::test]
async fn tokens_are_set_aside_before_the_model_is_asked() {
    let usage = |used: u64| {
        let action = serde_json::Value::from(TOOL);
        format!(r#"{{"content":{action},"usage":{{"input_tokens":{used},"output_tokens":1}}}}"#)
    };
    let capped = |terms: Terms| Terms {
        limits: Limits {
            tokens: 2_000,
            ..limits()
        },
        ..terms
    };
    // The first call reports so much that nothing is left for a second one.
    let script = format!(
        "{}\n{}",
        usage(1_900),
        line(r#"{"kind":"final","answer":"Yes."}"#)
    );
    let result = run(&script, capped, Duration::from_secs(60)).await;
    assert_eq!(result.stop(), &Stop::MaxTokens);
    assert_eq!(result.trace().len(), 1);
}

#[tokio::test]
async fn a_run_whose_costs_are_capped_refuses_a_model_without_a_price() {
    let capped = |terms: Terms| Terms {
        limits: Limits {
            micro_dollars: 1_000_000,
            ..limits()
        },
        ..terms
    };
    let result = run(&line(TOOL), capped, Duration::from_secs(60)).await;
    assert_eq!((result.stop(), result.trace().len()), (&Stop::MaxCost, 0));
}

#[test]
fn every_failure_of_a_model_has_a_stop_reason() {
    let message = String::new;
    let all = [
        ModelError::Timeout {
            limit: TimeLimit::Total,
            after: None,
        },
        ModelError::Connect { message: message() },
        ModelError::OutOfTime,
        ModelError::Empty { usage: None },
        ModelError::Auth { message: message() },
        ModelError::BadRequest { message: message() },
        ModelError::ContextOverflow { message: message() },
        ModelError::Disconnected { message: message() },
        ModelError::Decode { message: message() },
        ModelError::ScriptExhausted { attempt: 1 },
        ModelError::Server {
            retry_after: None,
            message: message(),
        },
        ModelError::RateLimited {
            retry_after: None,
            message: message(),
        },
    ];
    for error in all {
        let stop: Stop = error.reason().parse().unwrap();
        assert_eq!(stop.to_string(), error.reason());
    }
}
