//! Every mistake that a policy can have, with the words in which it is told.

use super::*;
use crate::policy::tests::shop;
use crate::policy::{Ask, Example, Examples, Grant, Hours, time};
use crate::tool::Level;

fn mistakes(policy: &Policy) -> Vec<String> {
    let faults = policy.check(&shop());
    faults.iter().map(ToString::to_string).collect()
}

fn pay() -> Rule {
    Rule::new("r", Then::Ask(Ask::default()), ["issue_refund"])
}

fn when(conditions: impl IntoIterator<Item = (&'static str, Operator)>) -> Rule {
    let conditions = conditions.into_iter();
    Rule {
        when: conditions
            .map(|(pointer, is)| Condition::new(pointer, is))
            .collect(),
        ..pay()
    }
}

fn tell(table: impl IntoIterator<Item = (Rule, &'static str)>) {
    for (rule, expected) in table {
        assert_eq!(mistakes(&Policy::new().rule(rule)), [expected]);
    }
}

#[test]
fn what_is_wrong_with_a_rule_s_name_hours_and_question_is_told() {
    let named = |name: &str| Rule {
        name: name.into(),
        ..pay()
    };
    let hours = |from, to| Rule {
        hours: Some(Hours { from, to }),
        ..pay()
    };
    let nobody = Ask {
        quorum: 0,
        ..Ask::default()
    };
    let bad_name = "its name is to be 1 to 64 letters, digits, spaces, `_`, `-` or `.`";
    let bad_hours =
        "the rule `r`: its hours are to be two different times of the day, `00:00` to `24:00`";
    for name in ["", "deny:x", "é", "a\nb", &"a".repeat(65)] {
        let policy = Policy::new().rule(named(name));
        assert_eq!(
            mistakes(&policy),
            [format!("the rule `{name}`: {bad_name}")]
        );
    }
    tell([
        (hours(60, 60), bad_hours),
        (hours(1440, 60), bad_hours),
        (hours(60, 1441), bad_hours),
        (
            Rule {
                then: Then::Ask(nobody),
                ..pay()
            },
            "the rule `r`: its quorum is 0: at least one person has to approve",
        ),
    ]);
    let twice = Policy::new().rule(pay()).rule(pay());
    assert_eq!(
        mistakes(&twice),
        ["the rule `r`: another one has the same name"]
    );
    let listed = Policy::new().ask("issue_refund", nobody);
    assert_eq!(
        mistakes(&listed),
        ["the rule `ask:issue_refund`: its quorum is 0: at least one person has to approve"]
    );
}

#[test]
fn what_is_wrong_with_a_rule_s_tools_is_told() {
    let tools = |then, pattern: &str| Rule::new("r", then, [pattern]);
    tell([
        (
            Rule {
                tools: vec![],
                ..pay()
            },
            "the rule `r`: it names no tool: `\"*\"` would be all of them",
        ),
        (
            Rule {
                users: vec![String::new()],
                ..pay()
            },
            "the rule `r`: `users` has an empty pattern",
        ),
        (
            tools(Then::Deny, "pay[0-9]"),
            "the rule `r`: `pay[0-9]` is no pattern for tools: only `*` is special, and names are letters, digits, `_`, `-` and `.`",
        ),
        (
            tools(Then::Deny, "serach"),
            "the rule `r`: it names `serach`, which is not registered; did you mean `search`?",
        ),
        (
            tools(Then::Allow, "x_*"),
            "the rule `r`: it names `x_*`, which is not registered",
        ),
        (
            tools(Then::Allow, "issue_refund"),
            "`issue_refund` is an effect (write): `allow` is not enough, it needs `ask`",
        ),
    ]);
    let reading = Rule {
        levels: vec![Level::Read],
        ..tools(Then::Allow, "*")
    };
    for fine in [tools(Then::Deny, "mcp_*"), reading] {
        assert_eq!(mistakes(&Policy::new().rule(fine)), Vec::<String>::new());
    }
}

#[test]
fn what_is_wrong_with_a_rule_s_conditions_is_told() {
    let both = |one, other| when([("/user_id", one), ("/user_id", other)]);
    let impossible = "the rule `r`: no value of `/user_id` meets all its conditions";
    tell([
        (
            when([("/amount_cent", Operator::AtMost(5.into()))]),
            "the rule `r`: `/amount_cent` points to an argument that its tools do not take; did you mean `/amount_cents`?",
        ),
        (
            when([("/a~1c", Operator::Present)]),
            "the rule `r`: `/a~1c` points to an argument that its tools do not take; did you mean `/a~1b`?",
        ),
        (
            when([("amount_cents", Operator::Present)]),
            "the rule `r`: `amount_cents` is no JSON pointer: it begins with `/`, and in it `~1` is `/` and `~0` is `~`",
        ),
        (
            when([("/user_id", Operator::Glob(String::new()))]),
            "the rule `r`: the pattern for `/user_id` is to have 1 to 1024 bytes, and at most 16 `*`",
        ),
        (
            when([("/user_id", Operator::OneOf(vec![]))]),
            "the rule `r`: the list of values for `/user_id` is empty",
        ),
        (
            both(Operator::AtMost(5.into()), Operator::Above(5.into())),
            impossible,
        ),
        (
            both(Operator::Equals(7.into()), Operator::Below(7.into())),
            impossible,
        ),
        (
            both(Operator::Equals("a".into()), Operator::Equals("b".into())),
            impossible,
        ),
        (
            both(Operator::LengthAtLeast(3), Operator::LengthAtMost(2)),
            impossible,
        ),
        (both(Operator::Present, Operator::Absent), impossible),
    ]);
    let fine = both(Operator::AtMost(5.into()), Operator::AtLeast(5.into()));
    assert_eq!(mistakes(&Policy::new().rule(fine)), Vec::<String>::new());
}

#[test]
fn all_that_is_wrong_with_grants_and_flow_rules_is_told() {
    let bare = |tool: &str| Grant::new("g", tool, u64::MAX);
    let small = |tool: &str| Grant {
        at_most: vec![("/amount_cents".into(), 5)],
        per_day: Some(1),
        ..bare(tool)
    };
    let table = [
        (
            bare("issue_refund"),
            "the grant `g`: it signs without end: say `per_thread`, `per_day` or `sum_per_day`",
        ),
        (
            Grant {
                per_day: Some(1),
                ..bare("issue_refund")
            },
            "the grant `g`: it signs any arguments: say `at_most`, `when` or `sum_per_day`",
        ),
        (
            small("issue_*"),
            "the grant `g`: `issue_*` is a pattern: a grant is for one tool",
        ),
        (
            small("issue_refnd"),
            "the grant `g`: it names `issue_refnd`, which is not registered; did you mean `issue_refund`?",
        ),
        (
            Grant {
                at_most: vec![("/cents".into(), 5)],
                ..small("issue_refund")
            },
            "the grant `g`: `/cents` points to an argument that its tools do not take",
        ),
    ];
    for (grant, expected) in table {
        assert_eq!(mistakes(&Policy::new().grant(grant)), [expected]);
    }
    let twice = Policy::new()
        .grant(small("issue_refund"))
        .grant(small("issue_refund"));
    assert_eq!(
        mistakes(&twice),
        ["the grant `g`: another one has the same name"]
    );
    let flow = Policy::new()
        .untrusted(["serach", "mcp_*", ""])
        .bound("issue_refund", "/user", "user")
        .bound("issue_refund", "user_id", "user");
    assert_eq!(
        mistakes(&flow),
        [
            "the flow rules: it names `serach`, which is not registered; did you mean `search`?",
            "the flow rules: `untrusted` has an empty pattern",
            "the flow rules: `/user` points to an argument that its tools do not take",
            "the flow rules: `user_id` is no JSON pointer: it begins with `/`, and in it `~1` is `/` and `~0` is `~`",
        ]
    );
}

#[test]
fn examples_that_do_not_come_out_are_told_with_their_number() {
    let example = |args: &str| Example {
        args: args.into(),
        ..Example::default()
    };
    let rule = Rule {
        users: vec!["ann".into()],
        origin: vec!["search".into()],
        hours: Some(Hours {
            from: 480,
            to: 1080,
        }),
        when: vec![Condition::new("/amount_cents", Operator::Above(500.into()))],
        ..Rule::new("r", Then::Deny, ["issue_refund"])
    };
    let ann = |args: &str| Example {
        user: "ann".into(),
        origin: vec!["search".into()],
        ..example(args)
    };
    let late = |text: &str| time::instant(text);
    let examples = Examples {
        matching: vec![
            ann(r#"{"amount_cents":501}"#),
            ann(""),
            ann(r#"{"amount_cents":500}"#),
            ann("{"),
            example("{}"),
            Example {
                user: "ann".into(),
                ..example("{}")
            },
            Example {
                at: late("2026-11-30T18:00:00Z"),
                ..ann("{}")
            },
            Example {
                tool: "search".into(),
                ..ann("{}")
            },
        ],
        not_matching: vec![
            ann(r#"{"amount_cents":500}"#),
            ann(r#"{"amount_cents":5e2}"#),
            ann("{}"),
        ],
    };
    let policy = Policy::new()
        .untrusted(["search"])
        .rule(Rule { examples, ..rule });
    assert_eq!(
        mistakes(&policy),
        [
            "the rule `r`: example 3 of `matching` is not spoken about: it does not hold that `/amount_cents` is above 500",
            "the rule `r`: example 4 of `matching` has arguments that cannot be read: expected a key at byte 1",
            "the rule `r`: example 5 of `matching` is not spoken about: the user is another",
            "the rule `r`: example 6 of `matching` is not spoken about: the run has read nothing of that origin",
            "the rule `r`: example 7 of `matching` is not spoken about: it is at another time",
            "the rule `r`: example 8 of `matching` is not spoken about: the rule is not about `search`",
            "the rule `r`: example 3 of `not_matching` is spoken about, and is not to be",
        ]
    );
}

#[test]
fn examples_are_tried_one_by_one_for_whoever_asks() {
    let example = |args: &str| Example {
        args: args.into(),
        ..Example::default()
    };
    let rule = |name: &str| Rule {
        when: vec![Condition::new("/amount_cents", Operator::Above(500.into()))],
        examples: Examples {
            matching: vec![example(r#"{"amount_cents":501}"#)],
            not_matching: vec![example(r#"{"amount_cents":501}"#)],
        },
        ..Rule::new(name, Then::Deny, ["issue_refund"])
    };
    let broken = Rule {
        hours: Some(Hours { from: 5, to: 5 }),
        ..rule("b")
    };
    let tried = |rule: &str, list, fault: Option<&str>| Tried {
        rule: rule.to_owned(),
        list,
        number: 1,
        fault: fault.map(str::to_owned),
    };
    let unread = "its rule cannot be read: its hours are to be two different times of the day, `00:00` to `24:00`";
    let policy = Policy::new().rule(rule("a")).rule(broken);
    assert_eq!(
        policy.try_examples(&shop()),
        [
            tried("a", "matching", None),
            tried(
                "a",
                "not_matching",
                Some("is spoken about, and is not to be")
            ),
            tried("b", "matching", Some(unread)),
            tried("b", "not_matching", Some(unread)),
        ]
    );
}

#[test]
fn an_origin_that_nobody_distrusts_is_told() {
    let rule = Rule {
        origin: vec!["search".into(), "fetch_*".into()],
        ..Rule::new("r", Then::Deny, ["issue_refund"])
    };
    let policy = Policy::new().untrusted(["se*"]).rule(rule);
    assert_eq!(
        mistakes(&policy),
        [
            "the rule `r`: its origin `fetch_*` is no tool that `flow.untrusted` names, and so it would never speak"
        ]
    );
}
