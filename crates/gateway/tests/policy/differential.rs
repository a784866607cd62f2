//! The engine beside the naive evaluator, over random policies and calls; and with faults put into rules.
//!
//! `PARAPH_POLICY_CASES` says how many cases there are, `PARAPH_POLICY_SEED` where they begin.

use crate::random::{self, Random};
use crate::reference::{Coverage, Is, Judgement, Naive, Notes};
use paraph_gateway::{
    Binding, Condition, Decision, Fit, Grant, Hours, Operator, Policy, PolicyEngine, Rule, Then,
    Verdict,
};
use std::collections::HashMap;

/// Calls that each policy is asked about.
const CALLS: usize = 25;

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap(),
        Err(_) => default,
    }
}

/// What the engine said, in the words of the naive evaluator.
fn plain(decision: &Decision<'_>) -> Judgement {
    let (is, ask) = match decision.verdict {
        Verdict::Allowed => (Is::Allowed, None),
        Verdict::Denied { .. } => (Is::Denied, None),
        Verdict::Ask(ask) => {
            let asked = (
                ask.expires.as_secs(),
                ask.not_by_requester,
                u64::from(ask.quorum),
                ask.verified,
            );
            (Is::Asked, Some(asked))
        }
    };
    let take = |take: &paraph_gateway::Take| (take.counter.clone(), take.by, take.max);
    let grants = decision.grants.iter().map(|fit| {
        let takes = fit.takes.iter().map(take).collect();
        (fit.grant.to_owned(), takes)
    });
    Judgement {
        is,
        rule: decision.rule.map(str::to_owned),
        ask,
        grants: grants.collect(),
        error: decision.error,
    }
}

/// What a store does with the grants that fit: the first of which every counter has room signs, and its counters rise.
fn sign(counters: &mut HashMap<String, u64>, fits: &[Fit<'_>]) -> Option<String> {
    let after = |counters: &HashMap<String, u64>, take: &paraph_gateway::Take| {
        let used = counters.get(&take.counter).copied().unwrap_or(0);
        used.checked_add(take.by).filter(|after| *after <= take.max)
    };
    let room = |fit: &&Fit<'_>| fit.takes.iter().all(|take| after(counters, take).is_some());
    let fit = fits.iter().find(room)?;
    for take in &fit.takes {
        *counters.entry(take.counter.clone()).or_default() += take.by;
    }
    Some(fit.grant.to_owned())
}

/// What became of the cases.
#[derive(Default)]
struct Outcomes {
    denied: u64,
    asked: u64,
    allowed: u64,
    in_error: u64,
    signed: u64,
    used_up: u64,
}

impl Outcomes {
    fn note(&mut self, found: &Judgement, signed: bool) {
        match found.is {
            Is::Denied => self.denied += 1,
            Is::Asked => self.asked += 1,
            Is::Allowed => self.allowed += 1,
        }
        self.in_error += u64::from(found.error);
        self.signed += u64::from(signed);
        self.used_up += u64::from(!found.grants.is_empty() && !signed);
    }
}

/// Trials that all came out as they should, and how often at most they might not: the rule of three.
fn told(what: &str, trials: u64) {
    println!(
        "{what}: {trials} trials, 0 failures, 95 % bound {:.1e}",
        3.0 / trials as f64
    );
}

#[test]
fn the_engine_and_the_naive_evaluator_never_disagree() {
    let cases = number("PARAPH_POLICY_CASES", 20_000);
    let seed = number("PARAPH_POLICY_SEED", 5);
    let tools = random::tools();
    let mut coverage = Coverage::default();
    let mut outcomes = Outcomes::default();
    for round in 0..cases.div_ceil(CALLS as u64) {
        let mut random = Random::of(seed, round);
        let policy = random::policy(&mut random);
        let json = serde_json::to_value(&policy).unwrap();
        let naive = Naive::new(&json);
        let engine = PolicyEngine::new(policy, &tools);
        let (mut counters, mut notes) = (HashMap::new(), Notes::default());
        let mut last: Option<random::Call> = None;
        for _ in 0..CALLS {
            // What a grant has signed is asked for again, so that grants are used up.
            let call = match last.take() {
                Some(call) if random.chance(70) => call,
                _ => random::call(&mut random),
            };
            let decision = engine.decide(&call.request());
            let found = plain(&decision);
            let expected = naive.judge(&tools, &call.request(), &mut coverage);
            assert_eq!(
                found,
                expected,
                "round {round} of seed {seed}: {decision}\n{json:#}\n{:?}",
                call.request()
            );
            let signed = sign(&mut counters, &decision.grants);
            let noted = notes.sign(&naive, &call.request(), &expected.grants);
            assert_eq!(
                signed,
                noted,
                "round {round} of seed {seed}: {counters:?}\n{json:#}\n{:?}",
                call.request()
            );
            outcomes.note(&found, signed.is_some());
            last = signed.is_some().then_some(call);
        }
    }
    told("decisions beside the naive evaluator", cases);
    // A handful of cases, run to look at one of them, cannot reach everything.
    if cases >= 10_000 {
        check_coverage(&coverage, &outcomes, cases);
    }
}

/// What was never reached proves nothing.
fn check_coverage(coverage: &Coverage, outcomes: &Outcomes, cases: u64) {
    // The last one needs several calls of one thread or day, and is rarer.
    let counts = [
        ("denied", outcomes.denied, 100),
        ("asked", outcomes.asked, 100),
        ("allowed", outcomes.allowed, 100),
        ("in error", outcomes.in_error, 100),
        ("signed by a grant", outcomes.signed, 100),
        ("within a grant that was used up", outcomes.used_up, 1000),
    ];
    for (name, count, one_in) in counts {
        println!("{name}: {count}");
        assert!(
            count * one_in >= cases,
            "only {count} calls of {cases} were {name}"
        );
    }
    assert_eq!(coverage.0.len(), 14, "{:?}", coverage.0.keys());
    let all: u64 = coverage.0.values().flatten().sum();
    for (operator, counts) in &coverage.0 {
        println!(
            "{operator}: yes {}, no {}, undefined {}",
            counts[0], counts[1], counts[2]
        );
        let own: u64 = counts.iter().sum();
        assert!(
            own * 100 >= all,
            "{operator} was asked only {own} times of {all}"
        );
        let total = matches!(operator.as_str(), "present" | "absent");
        for (outcome, count) in ["yes", "no", "undefined"].into_iter().zip(counts) {
            let reached = count * 100 >= own || (total && outcome == "undefined");
            assert!(
                reached,
                "{operator} said {outcome} only {count} times of {own}"
            );
        }
    }
}

/// Ways in which a rule cannot be read.
fn break_rule(random: &mut Random, rule: &mut Rule) {
    let bad = match random.below(9) {
        0 => return rule.tools = Vec::new(),
        1 => return rule.tools.push(String::new()),
        2 => return rule.agents.push(String::new()),
        3 => return rule.hours = Some(Hours { from: 90, to: 90 }),
        4 => {
            return rule.hours = Some(Hours {
                from: 9_000,
                to: 90,
            });
        }
        5 => Condition::new("no slash", Operator::Present),
        6 => Condition::new("/a~b", Operator::AtMost(5.into())),
        7 => Condition::new("/a", Operator::OneOf(Vec::new())),
        _ => Condition::new("/a", Operator::Glob("*".repeat(17))),
    };
    let place = random.below(rule.when.len() + 1);
    rule.when.insert(place, bad);
}

#[test]
fn whatever_is_wrong_with_a_rule_what_it_is_about_is_denied() {
    let tools = random::tools();
    let cases = number("PARAPH_POLICY_CASES", 20_000) / 20;
    for round in 0..cases {
        let mut random = Random::of(26, round);
        let mut policy = random::policy(&mut random);
        let mut call = random::call(&mut random);
        call.tool = random.pick(&random::TOOLS).0.to_owned();
        let effect = tools
            .iter()
            .any(|one| one.name == call.tool && one.level.is_effect());
        match effect && random.chance(20) {
            true => policy.flow.bound.push(Binding {
                tools: vec![call.tool.clone()],
                pointer: "user_id".to_owned(),
                target: "user".to_owned(),
            }),
            false => {
                let mut rule = random::rule(&mut random, "the broken one");
                rule.tools = vec![call.tool.clone()];
                break_rule(&mut random, &mut rule);
                let place = random.below(policy.rules.len() + 1);
                policy.rules.insert(place, rule);
            }
        }
        let engine = PolicyEngine::new(policy, &tools);
        let decision = engine.decide(&call.request());
        let denied = matches!(decision.verdict, Verdict::Denied { named: true });
        assert!(denied && decision.error, "round {round}: {decision}");
    }
    told("faults in rules, each denied", cases);
}

#[test]
fn a_faulty_untrusted_pattern_takes_every_tool_for_untrusted() {
    let policy = Policy::new().allow(["search"]).untrusted([""]);
    assert!(PolicyEngine::new(policy, &random::tools()).is_untrusted("search"));
    let policy = Policy::new().allow(["search"]).untrusted(["fetch_*"]);
    let engine = PolicyEngine::new(policy, &random::tools());
    assert!(engine.is_untrusted("fetch_page") && !engine.is_untrusted("search"));
}

#[test]
fn a_faulty_grant_signs_nothing() {
    let rule = Rule::new("asks", Then::Ask(Default::default()), ["pay"]);
    let broken = [
        Grant::new("no caps", "pay", u64::MAX),
        Grant {
            at_most: vec![("amount".into(), 5)],
            per_day: Some(1),
            ..Grant::new("bad pointer", "pay", u64::MAX)
        },
        Grant {
            at_most: vec![("/amount".into(), 5)],
            per_day: Some(1),
            ..Grant::new("a pattern", "p*", u64::MAX)
        },
    ];
    for grant in broken {
        let policy = Policy::new().rule(rule.clone()).grant(grant);
        let engine = PolicyEngine::new(policy, &random::tools());
        let call = random::Call::plain("pay", r#"{"amount":1}"#);
        let decision = engine.decide(&call.request());
        assert_eq!(decision.verdict, Verdict::Ask(Default::default()));
        assert_eq!(decision.grants, []);
    }
}
