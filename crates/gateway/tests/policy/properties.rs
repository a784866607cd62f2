//! What holds for every policy and every call, over random ones.

use crate::random::{self, Random};
use paraph_gateway::{Decision, Heard, Part, Policy, PolicyEngine, Rule, Then, Verdict};
use std::collections::BTreeSet;

const CASES: u64 = 500;

/// The larger, the more may happen.
fn width(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Denied { .. } => 0,
        Verdict::Ask(_) => 1,
        Verdict::Allowed => 2,
    }
}

/// Changes a policy in some way, and looks at what both say about the same call.
fn compare(
    change: impl Fn(&mut Random, &mut Policy),
    look: impl Fn(&Decision<'_>, &Decision<'_>, &str),
) {
    let tools = random::tools();
    for round in 0..CASES {
        let mut random = Random::of(11, round);
        let policy = random::policy(&mut random);
        let mut changed = policy.clone();
        change(&mut random, &mut changed);
        let (before, after) = (
            PolicyEngine::new(policy, &tools),
            PolicyEngine::new(changed, &tools),
        );
        for _ in 0..12 {
            let call = random::call(&mut random);
            let request = call.request();
            let note = format!("round {round}: {request:?}");
            look(&before.decide(&request), &after.decide(&request), &note);
        }
    }
}

fn add(random: &mut Random, policy: &mut Policy, then: Then) {
    let rule = Rule {
        then,
        ..random::rule(random, "added")
    };
    let place = random.below(policy.rules.len() + 1);
    policy.rules.insert(place, rule);
}

#[test]
fn the_order_of_rules_does_not_matter() {
    let shuffle = |random: &mut Random, policy: &mut Policy| {
        random.shuffle(&mut policy.allow);
        random.shuffle(&mut policy.ask);
        random.shuffle(&mut policy.deny);
        random.shuffle(&mut policy.rules);
        random.shuffle(&mut policy.grants);
        for rule in &mut policy.rules {
            random.shuffle(&mut rule.tools);
            random.shuffle(&mut rule.agents);
        }
    };
    compare(shuffle, |before, after, note| {
        let of = |decision: &Decision<'_>| {
            let own = decision.clone();
            (
                own.verdict,
                own.rule.map(str::to_owned),
                own.grants.len(),
                own.error,
            )
        };
        assert_eq!(of(before), of(after), "{note}");
        let names = |decision: &Decision<'_>| {
            let names = decision.grants.iter().map(|fit| fit.grant.to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(before), names(after), "{note}");
    });
}

#[test]
fn a_further_denial_never_widens() {
    let deny = |random: &mut Random, policy: &mut Policy| add(random, policy, Then::Deny);
    compare(deny, |before, after, note| {
        assert!(width(after.verdict) <= width(before.verdict), "{note}");
        assert!(after.grants.len() <= before.grants.len(), "{note}");
    });
}

#[test]
fn a_further_question_never_lets_run_what_did_not_and_never_asks_less() {
    let ask = |random: &mut Random, policy: &mut Policy| {
        add(random, policy, Then::Ask(Default::default()));
    };
    compare(ask, |before, after, note| {
        let (wide, wider) = (width(before.verdict), width(after.verdict));
        assert!(wider < 2 || wide == 2, "{note}");
        if let (Verdict::Ask(first), Verdict::Ask(second)) = (before.verdict, after.verdict) {
            assert!(second.expires <= first.expires, "{note}");
            assert!(second.quorum >= first.quorum, "{note}");
            assert!(second.verified >= first.verified, "{note}");
            assert!(second.not_by_requester >= first.not_by_requester, "{note}");
        }
    });
}

#[test]
fn a_further_allowance_never_lifts_a_denial_by_name_or_a_question() {
    let allow = |random: &mut Random, policy: &mut Policy| add(random, policy, Then::Allow);
    compare(allow, |before, after, note| match before.verdict {
        Verdict::Allowed | Verdict::Denied { named: false } => {}
        earlier => assert!(width(after.verdict) <= width(earlier), "{note}"),
    });
}

#[test]
fn an_effect_is_never_simply_allowed() {
    let same = |_: &mut Random, _: &mut Policy| {};
    let effects: Vec<_> = random::TOOLS
        .iter()
        .filter(|(_, level)| level.is_effect())
        .collect();
    let allow = |_: &mut Random, policy: &mut Policy| *policy = Policy::new().allow(["*"]);
    for change in [&same as &dyn Fn(&mut Random, &mut Policy), &allow] {
        compare(change, |_, after, note| {
            let effect = effects
                .iter()
                .any(|(name, _)| note.contains(&format!("tool: {name:?}")));
            assert!(!effect || after.verdict != Verdict::Allowed, "{note}");
        });
    }
}

#[test]
fn an_account_tells_of_the_same_decision_and_names_who_made_it() {
    let tools = random::tools();
    for round in 0..CASES {
        let mut random = Random::of(19, round);
        let policy = random::policy(&mut random);
        let engine = PolicyEngine::new(policy.clone(), &tools);
        let call = random::call(&mut random);
        let request = call.request();
        let decision = engine.decide(&request);
        let account = engine.account(&request);
        let note = format!("round {round}: {account:?}");
        assert_eq!(account.decision, decision, "{note}");
        let deciding = account
            .rules
            .iter()
            .filter(|heard| heard.part == Part::Decides);
        let deciding: Vec<_> = deciding.map(|heard| heard.rule).collect();
        let by_rule = !decision.error && decision.rule != Some("flow:untrusted");
        let expected: Vec<_> = decision.rule.filter(|_| by_rule).into_iter().collect();
        assert!(deciding == expected || has_twins(&account.rules), "{note}");
        let fits = account.grants.iter().filter_map(|heard| heard.fit.clone());
        assert!(fits.eq(decision.grants.iter().cloned()), "{note}");
        for silent in account
            .rules
            .iter()
            .filter(|heard| heard.part == Part::Silent)
        {
            let mut without = policy.clone();
            without.rules.retain(|rule| rule.name != silent.rule);
            let engine = PolicyEngine::new(without, &tools);
            let again = engine.decide(&request);
            assert_eq!(
                (again.verdict, again.rule),
                (decision.verdict, decision.rule),
                "{note}"
            );
        }
    }
}

/// Whether a policy says the same in one of its lists twice.
fn has_twins(rules: &[Heard<'_>]) -> bool {
    let names: BTreeSet<_> = rules.iter().map(|heard| heard.rule).collect();
    names.len() < rules.len()
}

#[test]
fn what_a_name_may_have_at_most_is_never_exceeded() {
    let tools = random::tools();
    for round in 0..CASES {
        let mut random = Random::of(13, round);
        let policy = random::policy(&mut random);
        let engine = PolicyEngine::new(policy, &tools);
        let call = random::call(&mut random);
        let decision = engine.decide(&call.request());
        let most = engine.policy().verdict(&call.tool);
        assert!(
            width(decision.verdict) <= width(most),
            "round {round}: {decision}, {most:?}"
        );
    }
}

#[test]
fn a_policy_survives_being_written_and_keeps_its_hash() {
    for round in 0..CASES {
        let mut random = Random::of(17, round);
        let policy = random::policy(&mut random);
        let text = serde_json::to_string(&policy).unwrap();
        let again: Policy = serde_json::from_str(&text).unwrap();
        assert_eq!(again, policy);
        assert_eq!(again.hash(), policy.hash());
        let mut other = policy.clone();
        add(&mut random, &mut other, Then::Deny);
        assert_ne!(other.hash(), policy.hash());
    }
}
