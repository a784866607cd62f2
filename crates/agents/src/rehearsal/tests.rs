//! The rehearsal model's rules: other facts give other answers.

use super::*;
use crate::Case;
use crate::support::goal;

fn brief(question: &str) -> Brief {
    let case = Case {
        user: 42,
        question: question.to_owned(),
    };
    Brief {
        goal: goal(&case),
        ..Brief::default()
    }
}

fn said(brief: &Brief) -> String {
    match brief.next_move() {
        Move::Answer(answer) => answer,
        Move::Call(calls) => format!("{calls:?}"),
    }
}

#[test]
fn the_answer_follows_from_the_facts() {
    let window = |text: &str| json!({"matches": [{"id": "p-1", "title": "", "snippet": text}]});
    let two_weeks = || window("Refundable within 14 days.");
    let table = [
        (
            49.0,
            10,
            two_weeks(),
            "Yes, you can get a refund of 49.00 USD",
        ),
        (
            19.5,
            14,
            two_weeks(),
            "Yes, you can get a refund of 19.50 USD",
        ),
        (
            49.0,
            15,
            two_weeks(),
            "No, the 49.00 USD cannot be refunded",
        ),
        (
            49.0,
            15,
            window("Within 30 days."),
            "Yes, you can get a refund of 49.00 USD",
        ),
        (
            0.0,
            120,
            two_weeks(),
            "There is nothing to refund (0.00 USD)",
        ),
        (
            49.0,
            10,
            window("Ask us."),
            "I cannot confirm a refund: the policy names no period",
        ),
        (
            49.0,
            10,
            json!({"error": "tool_denied:search_policy"}),
            "I cannot confirm a refund: the policy could not be read",
        ),
    ];
    for (price, days, policy, expected) in table {
        let billing =
            json!({"plan": "pro_monthly", "price_usd": price, "days_since_first_payment": days});
        let brief = Brief {
            profile: Some(json!({"user": {"name": "Anna"}})),
            billing: Some(json!({ "billing": billing })),
            policy: Some(policy),
            ..brief("Can I get a refund?")
        };
        let answer = said(&brief);
        assert!(answer.starts_with(expected), "{answer}");
    }
}

#[test]
fn facts_are_asked_for_before_anything_is_said() {
    let mut brief = brief("Refund?");
    assert!(said(&brief).contains("get_user_profile"));
    brief.profile = Some(json!({"error": "user 42 not found"}));
    assert_eq!(
        said(&brief),
        "I cannot tell whether a refund is possible, so none is: user 42 not found."
    );
}

#[test]
fn a_question_about_the_plan_needs_no_policy() {
    let brief = Brief {
        profile: Some(json!({"user": {"name": "Anna"}})),
        billing: Some(json!({"billing": {"plan": "pro_monthly", "price_usd": 49.0}})),
        ..brief("How much does my subscription cost?")
    };
    assert_eq!(
        said(&brief),
        "Anna, you are on the pro_monthly plan, which costs 49.00 USD."
    );
}

#[test]
fn a_task_of_another_kind_is_declined() {
    let brief = Brief {
        goal: "Write a poem".to_owned(),
        ..Brief::default()
    };
    assert_eq!(
        said(&brief),
        "The rehearsal model only knows the support agent's task."
    );
}
