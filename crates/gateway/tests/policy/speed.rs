//! How long a decision takes with a thousand rules. Only by hand, with optimisation:
//! `cargo test --release -p paraph-gateway --test policy speed -- --ignored --nocapture`.

use crate::random::Call;
use crate::tool;
use paraph_gateway::{Condition, Level, Operator, Policy, PolicyEngine, Rule, Then};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 20_000;

/// A thousand rules about so many tools, none of which lets a decision end early.
fn engine(tools: usize) -> PolicyEngine {
    let specs: Vec<_> = (0..tools)
        .map(|index| tool(&format!("tool_{index}"), Level::Read))
        .collect();
    let mut policy = Policy::new().allow(["*"]);
    for index in 0..1000 {
        let then = match index % 3 {
            0 => Then::Deny,
            1 => Then::Ask(Default::default()),
            _ => Then::Allow,
        };
        let rule = Rule {
            when: vec![
                Condition::new("/amount_cents", Operator::Above((1_000_000 + index).into())),
                Condition::new("/reason", Operator::Glob("*never*said*".to_owned())),
            ],
            ..Rule::new(
                format!("rule {index}"),
                then,
                [format!("tool_{}", index as usize % tools)],
            )
        };
        policy = policy.rule(rule);
    }
    PolicyEngine::new(policy, &specs)
}

#[test]
#[ignore = "a measurement"]
fn a_decision_with_a_thousand_rules() {
    let args = r#"{"user_id":42,"amount_cents":900,"reason":"the parcel came late"}"#;
    let call = Call::plain("tool_1", args);
    for tools in [100, 10, 2] {
        let engine = engine(tools);
        let begun = Instant::now();
        for _ in 0..ROUNDS {
            black_box(engine.decide(black_box(&call.request())));
        }
        let each = begun.elapsed() / ROUNDS;
        println!(
            "1000 rules about {tools} tools, {} about the one that is called: {each:?}",
            1000 / tools
        );
    }
    let begun = Instant::now();
    for _ in 0..100 {
        black_box(engine(100));
    }
    println!(
        "reading 1000 rules for 100 tools: {:?}",
        begun.elapsed() / 100
    );
}
