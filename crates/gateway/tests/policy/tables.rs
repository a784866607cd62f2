//! The manual's page on policies: its configuration is read, and each row of its tables is evaluated.

use crate::random::Call;
use crate::tool;
use paraph_gateway::{
    Ask, Condition, Grant, Level, Policy, PolicyEngine, Rule, Scalar, Then, ToolSpec, Verdict,
};
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../src/docs/policy.md");

/// The cells of the table with this head, without its first two lines.
fn table(head: &str) -> Vec<Vec<&'static str>> {
    let rows = PAGE
        .lines()
        .skip_while(|line| !line.starts_with(head))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let cells = |line: &'static str| {
        let inner = line.trim_matches('|').split('|');
        inner.map(|cell| cell.trim().trim_matches('`')).collect()
    };
    rows.map(cells).collect()
}

fn code(language: &str) -> &'static str {
    let fence = format!("```{language}\n");
    let (_, rest) = PAGE.split_once(&fence).unwrap();
    rest.split_once("```").unwrap().0
}

/// What happens in a row of the first table, as configuration and as a call of a run.
fn first_table(case: [bool; 7], by_lists: bool) -> (Policy, ToolSpec, Call) {
    let [denied, asked, allowed, effect, tainted, kept, granted] = case;
    let mut policy = Policy::new().bound("act", "/user", "user");
    for (said, list, then) in [
        (denied, "deny", Then::Deny),
        (asked, "ask", Then::Ask(Ask::default())),
        (allowed, "allow", Then::Allow),
    ] {
        policy = match (said, by_lists, then) {
            (false, _, _) => policy,
            (true, false, then) => policy.rule(Rule::new(list, then, ["act"])),
            (true, true, Then::Deny) => policy.deny(["act"]),
            (true, true, Then::Ask(ask)) => policy.ask("act", ask),
            (true, true, Then::Allow) => policy.allow(["act"]),
        };
    }
    if granted {
        policy = policy.grant(Grant {
            at_most: vec![("/n".into(), 5)],
            per_thread: Some(1),
            ..Grant::new("small", "act", u64::MAX)
        });
    }
    let level = if effect { Level::Write } else { Level::Read };
    let call = Call::plain("act", r#"{"n":5,"user":42}"#);
    let call = call.bind("user", Scalar::from(if kept { 42 } else { 43 }));
    let sources: &[&str] = if tainted { &["search"] } else { &[] };
    (policy, tool("act", level), call.read(sources))
}

/// The same policy, whose grants sign also in a run that has read untrusted text.
fn after_untrusted(mut policy: Policy) -> Policy {
    for grant in &mut policy.grants {
        grant.after_untrusted = true;
    }
    policy
}

#[test]
fn the_first_table_says_which_one_wins_for_every_case() {
    let rows = table("| denied | asked");
    for bits in 0..128_u32 {
        let case: [bool; 7] = std::array::from_fn(|index| bits >> index & 1 == 1);
        let fits = |row: &&Vec<&str>| {
            row.iter().zip(case).all(|(cell, yes)| match *cell {
                "any" => true,
                "yes" | "effect" => yes,
                "no" | "read" => !yes,
                other => panic!("`{other}` is no word of this table"),
            })
        };
        let fitting: Vec<_> = rows.iter().filter(|row| fits(row)).collect();
        let [row] = fitting.as_slice() else {
            panic!("{} rows speak about {case:?}", fitting.len());
        };
        for by_lists in [true, false] {
            let (policy, tool, call) = first_table(case, by_lists);
            let [.., granted] = case;
            let after = after_untrusted(policy.clone());
            let engine = PolicyEngine::new(policy, std::slice::from_ref(&tool));
            let decision = engine.decide(&call.request());
            let after = PolicyEngine::new(after, &[tool]);
            let after = after.decide(&call.request());
            // The sentence below the table.
            let signs = matches!(decision.verdict, Verdict::Ask(_)) && granted;
            assert_eq!(after.verdict, decision.verdict, "{case:?}");
            assert_eq!(!after.grants.is_empty(), signs, "{case:?}");
            let is = match decision.verdict {
                Verdict::Denied { .. } => "denied",
                Verdict::Ask(_) => "asked",
                Verdict::Allowed => "allowed",
            };
            let signs = if decision.grants.is_empty() {
                "no"
            } else {
                "yes"
            };
            assert_eq!([is, signs], row[7..], "{case:?} {by_lists}: {decision}");
        }
    }
}

#[test]
fn the_second_table_says_what_each_operator_holds() {
    let rows = table("| condition | arguments");
    let mut operators = BTreeSet::new();
    for row in &rows {
        let [condition, args, allows, narrows] = row.as_slice() else {
            panic!("{row:?}");
        };
        let written: serde_json::Value = serde_json::from_str(condition).unwrap();
        let condition: Condition = serde_json::from_str(condition).unwrap();
        operators.extend(written.as_object().unwrap().keys().cloned());
        let holds = |text: &str| match text {
            "holds" => true,
            "does not" => false,
            other => panic!("`{other}` is no word of this table"),
        };
        let call = Call::plain("look", args);
        let verdict = |policy: Policy| {
            let engine = PolicyEngine::new(policy, &[tool("look", Level::Read)]);
            let decision = engine.decide(&call.request());
            (decision.verdict, !decision.grants.is_empty())
        };
        let rule = |then| Rule {
            when: vec![condition.clone()],
            ..Rule::new("rule", then, ["look"])
        };
        let ask = Ask::default();
        let (found, _) = verdict(Policy::new().rule(rule(Then::Allow)));
        assert_eq!(found == Verdict::Allowed, holds(allows), "allow {row:?}");
        let (found, _) = verdict(Policy::new().rule(rule(Then::Ask(ask))));
        assert_eq!(found == Verdict::Ask(ask), holds(narrows), "ask {row:?}");
        let (found, _) = verdict(Policy::new().allow(["look"]).rule(rule(Then::Deny)));
        let denied = found == Verdict::Denied { named: true };
        assert_eq!(denied, holds(narrows), "deny {row:?}");
        let grant = Grant {
            when: vec![condition],
            per_thread: Some(1),
            ..Grant::new("grant", "look", u64::MAX)
        };
        let (_, signs) = verdict(Policy::new().ask("look", ask).grant(grant));
        assert_eq!(signs, holds(allows), "grant {row:?}");
    }
    assert_eq!(
        operators.len(),
        14,
        "the pointer and thirteen keys: {operators:?}"
    );
    assert!(rows.len() > 60, "the table was not found");
}

fn shop() -> Vec<ToolSpec> {
    let spec = |name: &str, level, arguments: &[&str]| {
        let properties: serde_json::Map<_, _> = arguments
            .iter()
            .map(|name| ((*name).to_owned(), serde_json::json!({})))
            .collect();
        ToolSpec {
            schema: serde_json::json!({
                "type": "object", "properties": properties, "additionalProperties": false,
            }),
            ..tool(name, level)
        }
    };
    vec![
        spec("search", Level::Read, &["query"]),
        spec("fetch_page", Level::Read, &["url"]),
        spec(
            "issue_refund",
            Level::Write,
            &["user_id", "amount_cents", "reason"],
        ),
        spec("drop_table", Level::Delete, &["name"]),
    ]
}

#[test]
fn the_configuration_on_the_page_is_read_and_is_fine() {
    let policy: Policy = toml::from_str(code("toml")).unwrap();
    assert_eq!(policy.check(&shop()), []);
    assert_eq!(policy.rules.len(), 3);
    let json = serde_json::to_string(&policy).unwrap();
    let again: Policy = serde_json::from_str(&json).unwrap();
    assert_eq!(again, policy);
    assert_eq!(again.hash(), policy.hash());
}

#[test]
fn the_configuration_on_the_page_decides_as_it_reads() {
    let policy: Policy = toml::from_str(code("toml")).unwrap();
    let engine = PolicyEngine::new(policy, &shop());
    let say = |call: Call| engine.decide(&call.request()).to_string();
    let refund = |cents: &str| {
        Call::plain(
            "issue_refund",
            &format!(r#"{{"user_id":42,"amount_cents":{cents},"reason":"late"}}"#),
        )
    };
    let evil = || Call::plain("fetch_page", r#"{"url":"https://evil.example/"}"#);
    let bound = |cents| refund(cents).read(&["search"]).bind("user", 42.into());
    let table = [
        (
            refund("499"),
            "a person has to approve it, as `ask:issue_refund` says; the grant `small refunds` can sign it",
        ),
        (
            refund("501"),
            "a person has to approve it, as `ask:issue_refund` says",
        ),
        (
            refund("1e5"),
            "it is denied by `no large refunds`: refunds above 500.00 go through the back office",
        ),
        (
            refund("\"5\""),
            "it is denied by `no large refunds`: refunds above 500.00 go through the back office",
        ),
        (
            bound("499"),
            "a person has to approve it, as `ask:issue_refund` says",
        ),
        (
            refund("499").read(&["search"]),
            "it is denied by `flow:untrusted`: the run has read untrusted text (`search`), and the program bound no `user`, which `/user_id` has to be",
        ),
        (
            refund("499").read(&["search"]).bind("user", 43.into()),
            "it is denied by `flow:untrusted`: the run has read untrusted text (`search`), and `/user_id` is not the `user` that the program bound",
        ),
        (evil(), "it is allowed by `allow:fetch_page`"),
        (
            evil().read(&["search"]),
            "it is denied by `only our pages after a search`: a search result could ask for an address that carries data out",
        ),
        (
            Call::plain("drop_table", "{}"),
            "it is denied by `deny:drop_*`",
        ),
        (
            Call::plain("rm", "{}"),
            "it is denied: no tool is registered under exactly this name",
        ),
    ];
    for (call, expected) in table {
        assert_eq!(say(call), expected);
    }
}

#[test]
fn a_tool_is_explained_in_sentences() {
    let policy: Policy = toml::from_str(code("toml")).unwrap();
    let engine = PolicyEngine::new(policy, &shop());
    assert_eq!(
        engine.explain("issue_refund"),
        [
            "`issue_refund` is an effect (write)",
            "`no large refunds`: it is denied if `/amount_cents` is above 50000; refunds above 500.00 go through the back office",
            "`ask:issue_refund`: a person has to approve it",
            "`two people at night`: 2 verified people other than the requester have to approve it from 22:00 to 06:00 UTC; nobody watches the account at night",
            "after untrusted text, `/user_id` has to be the `user` that the program bound",
            "the grant `small refunds` signs: `/amount_cents` at most 500, 1 per thread, `/amount_cents` at most 10000 in a day, until 2027-06-30",
        ]
    );
    assert_eq!(
        engine.explain("search"),
        [
            "`search` only reads",
            "`allow:search`: it is allowed",
            "what it gives is untrusted text"
        ]
    );
    assert_eq!(
        engine.explain("serach"),
        ["`serach` is not registered, and so it is denied; the closest is `search`"]
    );
}
