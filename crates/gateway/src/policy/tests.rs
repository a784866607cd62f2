//! Patterns, numbers, times, names of counters, mistakes and hashes, as tables and as properties.
//!
//! What the engine decides is shown in `tests/policy`.

use super::decimal::Exact;
use super::pointer::Pointer;
use super::*;
use crate::json::{Bounds, Json};
use crate::tool::ToolSpec;
use proptest::prelude::*;

#[test]
fn patterns_fit_whole_names() {
    let table = [
        ("rm", "rm", true),
        ("rm", "rmdir", false),
        ("rm*", "rmdir", true),
        ("rm*", "rm", true),
        ("*dir", "rmdir", true),
        ("*dir", "dirs", false),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "acb", false),
        ("a*a", "a", false),
        ("ab*ba", "aba", false),
        ("*", "", true),
        ("*", "anything", true),
        ("", "", true),
        ("", "x", false),
        ("**", "x", true),
        ("Drop_*", "drop_table", false),
    ];
    for (pattern, name, expected) in table {
        assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn a_mistyped_name_finds_the_close_one() {
    let known = ["search", "get_user_profile", "get_user_billing", "rm"];
    let table = [
        ("serach", Some("search")),
        ("get_user_profil", Some("get_user_profile")),
        ("get_user_biling", Some("get_user_billing")),
        ("Search", Some("search")),
        ("pay", None),
        ("", None),
    ];
    for (name, expected) in table {
        assert_eq!(closest(name, known.into_iter()), expected, "{name}");
    }
}

#[test]
fn a_policy_reads_from_configuration() {
    let json = r#"{"allow":["search"],"deny":["drop_*"]}"#;
    let policy: Policy = serde_json::from_str(json).unwrap();
    assert_eq!(policy, Policy::new().allow(["search"]).deny(["drop_*"]));
    assert!(serde_json::from_str::<Policy>(r#"{"alow":[]}"#).is_err());
}

fn pattern() -> impl Strategy<Value = String> {
    "[ab*]{1,4}"
}

/// The obvious way, for comparison.
fn fits_by_definition(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|i| fits_by_definition(rest, &name[i..])),
        Some((byte, rest)) => name.first() == Some(byte) && fits_by_definition(rest, &name[1..]),
    }
}

proptest! {
    #[test]
    fn patterns_mean_what_they_say(pattern in "[ab*]{0,6}", name in "[ab]{0,8}") {
        prop_assert_eq!(
            fits(&pattern, &name),
            fits_by_definition(pattern.as_bytes(), name.as_bytes())
        );
    }

    #[test]
    fn deny_beats_ask_beats_allow_in_any_order_of_the_rules(
        rules in prop::collection::vec((0..3_u8, pattern()), 0..8),
        shuffled in any::<prop::sample::Index>(),
        name in "[ab]{0,4}",
    ) {
        let build = |rules: &[(u8, String)]| {
            rules.iter().fold(Policy::new(), |policy, (kind, pattern)| match kind {
                0 => policy.deny([pattern]),
                1 => policy.ask(pattern, Ask::default()),
                _ => policy.allow([pattern]),
            })
        };
        let hit = |wanted: u8| rules.iter().any(|(kind, pattern)| *kind == wanted && fits(pattern, &name));
        let expected = match (hit(0), hit(1), hit(2)) {
            (true, _, _) => Verdict::Denied { named: true },
            (false, true, _) => Verdict::Ask(Ask::default()),
            (false, false, true) => Verdict::Allowed,
            (false, false, false) => Verdict::Denied { named: false },
        };
        let policy = build(&rules);
        prop_assert_eq!(policy.verdict(&name), expected);
        let mut other = rules.clone();
        if !other.is_empty() {
            let by = shuffled.index(other.len());
            other.rotate_left(by);
            other.reverse();
        }
        let policy = build(&other);
        prop_assert_eq!(policy.verdict(&name), expected);
    }
}

fn exact(text: &str) -> Option<Exact> {
    Exact::read(text)
}

#[test]
fn numbers_are_ordered_exactly_by_their_text() {
    // Each group is one number in several spellings, and larger than the group before.
    let ascending: [&[&str]; 16] = [
        &["-1e400", "-10e399", "-0.1E+401"],
        &["-18446744073709551617"],
        &["-18446744073709551616", "-18446744073709551616.000"],
        &["-5", "-5.0", "-0.5e1", "-50e-1"],
        &["-1e-400"],
        &["0", "-0", "0.0", "0e5", "-0.000e-9"],
        &["1e-400", "0.1e-399"],
        &["0.1", "1e-1", "0.10"],
        &["0.10000000000000001"],
        &["5", "5e0", "0.05e2"],
        &["100", "1e2", "1E+2", "100.0", "1000e-1"],
        &["9007199254740992"],
        &["9007199254740993", "9007199254740993.0"],
        &["18446744073709551616"],
        &[
            "123456789012345678901234567890",
            "1.2345678901234567890123456789e29",
        ],
        &["1e999999999999999999"],
    ];
    let all: Vec<(usize, &str)> = ascending
        .iter()
        .enumerate()
        .flat_map(|(rank, group)| group.iter().map(move |text| (rank, *text)))
        .collect();
    for (rank, text) in &all {
        for (other_rank, other) in &all {
            let found = exact(text).unwrap().cmp(&exact(other).unwrap());
            assert_eq!(found, rank.cmp(other_rank), "{text} {other}");
        }
    }
}

#[test]
fn what_is_no_number_in_json_is_none() {
    let none = [
        "",
        "-",
        "+1",
        "01",
        "-01",
        ".5",
        "5.",
        "1e",
        "1e+",
        "e5",
        "1e5.0",
        "1_000",
        "0x10",
        " 1",
        "1 ",
        "NaN",
        "Infinity",
        "1e1000000000000000000",
        "1e-1000000000000000000",
        "\u{661}",
        "--1",
        "1.2.3",
    ];
    for text in none {
        assert_eq!(exact(text), None, "{text}");
        assert_eq!(Decimal::read(text), None, "{text}");
    }
    assert!(exact("1e0000000000000000000000001").is_some());
}

#[test]
fn amounts_are_integers_that_fit() {
    let table = [
        ("0", Some(0)),
        ("-0", Some(0)),
        ("7e2", Some(700)),
        ("700.0", Some(700)),
        ("70000e-2", Some(700)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("1e20", None),
        ("1e400", None),
        ("0.5", None),
        ("-1", None),
        ("1e-1", None),
    ];
    for (text, expected) in table {
        assert_eq!(exact(text).unwrap().to_u64(), expected, "{text}");
    }
}

#[test]
fn pointers_find_what_rfc_6901_says() {
    // The document of section 5 of the RFC, and what the pointers there point to.
    let text = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
    let json = Json::read(text, Bounds::default()).unwrap();
    let table = [
        ("/foo", Some(r#"["bar","baz"]"#)),
        ("/foo/0", Some(r#""bar""#)),
        ("/", Some("0")),
        ("/a~1b", Some("1")),
        ("/c%d", Some("2")),
        ("/e^f", Some("3")),
        ("/g|h", Some("4")),
        ("/i\\j", Some("5")),
        ("/k\"l", Some("6")),
        ("/ ", Some("7")),
        ("/m~0n", Some("8")),
        ("/foo/2", None),
        ("/foo/-", None),
        ("/foo/00", None),
        ("/foo/+1", None),
        ("/foo/0/x", None),
        ("/m~01n", None),
        ("/nothing", None),
    ];
    for (pointer, expected) in table {
        let found = Pointer::read(pointer).unwrap().find(json.view());
        let found = found.map(|value| value.to_string());
        assert_eq!(found.as_deref(), expected, "{pointer}");
    }
    let whole = Pointer::read("").unwrap().find(json.view()).unwrap();
    assert_eq!(whole.to_string(), json.to_string());
    for bad in [
        "foo",
        "~",
        "/~",
        "/a~2",
        "/a~",
        &format!("/{}", "a".repeat(1024)),
    ] {
        assert_eq!(Pointer::read(bad), None, "{bad}");
    }
}

#[test]
fn instants_are_read_as_rfc_3339_says() {
    let table = [
        ("1970-01-01T00:00:00Z", Some(0)),
        ("2026-11-30T16:30:00Z", Some(1_796_056_200_000)),
        ("2026-11-30T17:30:00+01:00", Some(1_796_056_200_000)),
        ("2026-11-30t11:00:00.25-05:30", Some(1_796_056_200_250)),
        ("2024-02-29T00:00:00Z", Some(1_709_164_800_000)),
        ("2000-02-29T23:59:59.9999Z", Some(951_868_799_999)),
        ("1985-04-12T23:20:50.52Z", Some(482_196_050_520)),
        ("2023-02-29T00:00:00Z", None),
        ("2100-02-29T00:00:00Z", None),
        ("1969-12-31T23:59:59Z", None),
        ("1970-01-01T00:00:00+01:00", None),
        ("2026-11-30T16:30:00", None),
        ("2026-11-30 16:30:00Z", None),
        ("2026-11-30", None),
        ("2026-13-01T00:00:00Z", None),
        ("2026-04-31T00:00:00Z", None),
        ("2026-11-30T24:00:00Z", None),
        ("2026-11-30T16:30:60Z", None),
        ("2026-11-30T16:30:00.Z", None),
        ("2026-11-30T16:30:00+0100", None),
        ("26-11-30T16:30:00Z", None),
        ("2026-11-30T16:30:00Zjunk", None),
        ("", None),
    ];
    for (text, expected) in table {
        assert_eq!(time::instant(text), expected, "{text}");
    }
}

#[test]
fn days_are_the_calendar_s() {
    for (text, day) in [
        ("1970-01-01T00:00:00Z", "1970-01-01"),
        ("1999-12-31T23:59:59Z", "1999-12-31"),
        ("2000-02-29T12:00:00Z", "2000-02-29"),
        ("2000-03-01T00:00:00Z", "2000-03-01"),
        ("2026-11-30T16:30:00Z", "2026-11-30"),
        ("9999-12-31T23:59:59Z", "9999-12-31"),
    ] {
        assert_eq!(time::day(time::instant(text).unwrap()), day);
    }
}

#[test]
fn hours_go_over_midnight() {
    let speaks = |from: &str, to: &str, at: &str| {
        let hours = format!(r#"{{"from":"{from}","to":"{to}"}}"#);
        let rule = Rule {
            hours: Some(serde_json::from_str(&hours).unwrap()),
            ..Rule::new("hours", Then::Allow, ["search"])
        };
        let day = format!("2026-11-30T{at}:59Z");
        let now_ms = time::instant(&day).unwrap();
        decided(Policy::new().rule(rule), now_ms) == Verdict::Allowed
    };
    let table = [
        ("08:00", "18:00", "07:59", false),
        ("08:00", "18:00", "08:00", true),
        ("08:00", "18:00", "17:59", true),
        ("08:00", "18:00", "18:00", false),
        ("22:00", "06:00", "23:00", true),
        ("22:00", "06:00", "05:59", true),
        ("22:00", "06:00", "06:00", false),
        ("22:00", "06:00", "21:59", false),
        ("00:00", "24:00", "23:59", true),
        ("12:00", "00:00", "23:59", true),
        ("12:00", "00:00", "00:00", false),
        ("23:00", "24:00", "23:00", true),
        ("23:00", "24:00", "00:00", false),
    ];
    for (from, to, at, expected) in table {
        assert_eq!(speaks(from, to, at), expected, "{from} {to} {at}");
    }
}

fn spec(name: &str, level: Level, arguments: &[&str]) -> ToolSpec {
    let mut properties = serde_json::Map::new();
    for argument in arguments {
        properties.insert((*argument).to_owned(), serde_json::json!({}));
    }
    ToolSpec {
        name: name.to_owned(),
        about: "about".to_owned(),
        schema: serde_json::json!({
            "type": "object", "properties": properties, "additionalProperties": false,
        }),
        level,
    }
}

pub(super) fn shop() -> Vec<ToolSpec> {
    vec![
        spec("search", Level::Read, &["query"]),
        spec(
            "issue_refund",
            Level::Write,
            &["user_id", "amount_cents", "a/b"],
        ),
    ]
}

fn request<'a>(args: &'a Json, targets: &'a Targets, tool: &'a str) -> Request<'a> {
    Request {
        tenant: "a/b%",
        agent: "support",
        user: "ann",
        thread: "case/7",
        tool,
        args,
        tainted: &[],
        targets,
        now_ms: 1_796_056_200_000,
    }
}

fn decided(policy: Policy, now_ms: u64) -> Verdict {
    let engine = PolicyEngine::new(policy, &shop());
    let (args, targets) = (Json::empty_object(), Targets::new());
    let request = Request {
        now_ms,
        ..request(&args, &targets, "search")
    };
    engine.decide(&request).verdict
}

fn grant() -> Grant {
    Grant {
        at_most: vec![("/amount_cents".into(), 500)],
        per_thread: Some(1),
        per_day: Some(20),
        sum_per_day: Some(("/amount_cents".into(), 10_000)),
        ..Grant::new("small refunds", "issue_refund", 1_796_056_200_001)
    }
}

/// What the grants of a policy would count for a call.
fn takes(grant: Grant, args: &str, now_ms: u64) -> Vec<(String, u64, u64)> {
    let policy = Policy::new()
        .ask("issue_refund", Ask::default())
        .grant(grant);
    let engine = PolicyEngine::new(policy, &shop());
    let (args, targets) = (Json::read(args, Bounds::default()).unwrap(), Targets::new());
    let request = Request {
        now_ms,
        ..request(&args, &targets, "issue_refund")
    };
    let decision = engine.decide(&request);
    assert!(matches!(decision.verdict, Verdict::Ask(_)));
    let fits = decision.grants.into_iter().flat_map(|fit| fit.takes);
    fits.map(|take| (take.counter, take.by, take.max)).collect()
}

#[test]
fn a_grant_counts_by_tenant_and_thread_or_day_in_names_that_cannot_be_forged() {
    let now = 1_796_056_200_000;
    assert_eq!(
        takes(grant(), r#"{"amount_cents":4e2}"#, now),
        [
            (
                "grant/small refunds/a%2Fb%25/thread/case%2F7".to_owned(),
                1,
                1
            ),
            (
                "grant/small refunds/a%2Fb%25/day/2026-11-30".to_owned(),
                1,
                20
            ),
            (
                "grant/small refunds/a%2Fb%25/sum/2026-11-30".to_owned(),
                400,
                10_000
            ),
        ]
    );
}

#[test]
fn a_grant_signs_only_within_its_caps_and_until_it_ends() {
    let now = 1_796_056_200_000;
    for (args, at, signs) in [
        (r#"{"amount_cents":500}"#, now, true),
        (r#"{"amount_cents":0}"#, now, true),
        (r#"{"amount_cents":500}"#, now + 1, false),
        (r#"{"amount_cents":501}"#, now, false),
        (r#"{"amount_cents":-1}"#, now, false),
        (r#"{"amount_cents":0.5}"#, now, false),
        (r#"{"amount_cents":"5"}"#, now, false),
        (r#"{"amount_cents":null}"#, now, false),
        ("{}", now, false),
    ] {
        assert_eq!(!takes(grant(), args, at).is_empty(), signs, "{args} {at}");
    }
    let spent = Grant {
        sum_per_day: Some(("/amount_cents".into(), 399)),
        ..grant()
    };
    assert_eq!(takes(spent, r#"{"amount_cents":400}"#, now), []);
    let nobody = Grant {
        users: vec!["bob".into()],
        ..grant()
    };
    assert_eq!(takes(nobody, r#"{"amount_cents":400}"#, now), []);
}

fn refuse(table: &[(String, &str)]) {
    for (text, expected) in table {
        let error = serde_json::from_str::<Policy>(text)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn conditions_and_hours_that_are_not_understood_are_refused_with_a_reason() {
    let rule =
        |rest: &str| format!(r#"{{"rules":[{{"name":"r","tools":["x"],"then":"deny"{rest}}}]}}"#);
    let when = |condition: &str| rule(&format!(r#","when":[{condition}]"#));
    let table = [
        (rule(r#","tool":"x""#), "unknown field `tool`"),
        (
            rule(r#","hours":{"from":"8:00","to":"18:00"}"#),
            "`8:00` is no time of the day such as `08:30`",
        ),
        (
            rule(r#","hours":{"from":"08:00","to":"24:01"}"#),
            "`24:01` is no time of the day such as `08:30`",
        ),
        (
            when(r#"{"at_most":5}"#),
            "a condition has no `pointer`: it says which argument is meant",
        ),
        (
            when(r#"{"pointer":"/n"}"#),
            "a condition has exactly one operator, and `/n` has 0",
        ),
        (
            when(r#"{"pointer":"/n","above":1,"below":3}"#),
            "a condition has exactly one operator, and `/n` has 2",
        ),
        (
            when(r#"{"pointer":"/n","atmost":5}"#),
            "unknown field `atmost`",
        ),
        (
            when(r#"{"pointer":"/n","at_most":0.1}"#),
            "0.1 was read inexactly: write the number as a text, in quotes",
        ),
        (
            when(r#"{"pointer":"/n","equals":1e3}"#),
            "1000 was read inexactly: write the number as a text, in quotes",
        ),
        (
            when(r#"{"pointer":"/n","at_most":"ten"}"#),
            "invalid value: string \"ten\", expected an integer, or a number as a text",
        ),
        (
            when(r#"{"pointer":"/n","equals":null}"#),
            "a condition has exactly one operator, and `/n` has 0",
        ),
        (
            when(r#"{"pointer":"/n","equals":[1]}"#),
            "invalid type: sequence, expected a text, an integer, a truth value",
        ),
    ];
    refuse(&table);
}

#[test]
fn rules_grants_and_flow_rules_that_are_not_understood_are_refused_with_a_reason() {
    let table = [
        (
            r#"{"rules":[{"name":"r","tools":["x"],"then":"permit"}]}"#.to_owned(),
            "invalid value: string \"permit\", expected \"allow\", \"ask\", \"deny\"",
        ),
        (
            r#"{"rules":[{"name":"r","tools":["x"],"then":{"ask":{"expire":5}}}]}"#.to_owned(),
            "unknown field `expire`",
        ),
        (
            r#"{"rules":[{"tools":["x"],"then":"deny"}]}"#.to_owned(),
            "missing field `name`",
        ),
        (
            r#"{"grants":[{"name":"g","tool":"x"}]}"#.to_owned(),
            "missing field `until`",
        ),
        (
            r#"{"grants":[{"name":"g","tool":"x","until":"2026-12-31"}]}"#.to_owned(),
            "invalid value: string \"2026-12-31\", expected an instant such as \"2026-11-30T16:30:00Z\"",
        ),
        (
            r#"{"ask":[["pay"]]}"#.to_owned(),
            "invalid length 1, expected a name and how to ask",
        ),
        (
            r#"{"flow":{"trusted":[]}}"#.to_owned(),
            "unknown field `trusted`",
        ),
    ];
    refuse(&table);
}

#[test]
fn the_list_of_questions_reads_names_alone_or_with_how_to_ask() {
    let text = r#"{"ask":["pay",["wire",{"expires":600,"quorum":2,"verified":true}]]}"#;
    let policy: Policy = serde_json::from_str(text).unwrap();
    let wire = Ask {
        expires: std::time::Duration::from_secs(600),
        quorum: 2,
        verified: true,
        not_by_requester: false,
    };
    assert_eq!(
        policy,
        Policy::new().ask("pay", Ask::default()).ask("wire", wire)
    );
    assert_eq!(wire.to_string(), "2 verified people have");
}

#[test]
fn the_hash_is_the_same_in_every_build() {
    // Both were computed by Python: sha256(b"paraph/policy/v1" + json.dumps(policy, sort_keys=True,
    // separators=(",", ":")).encode()).
    assert_eq!(
        Policy::new().hash(),
        "6ea3e97b1f9f4b9b41a5102cf07777c675fe829e69aa4e3b084c51628f736992"
    );
    let policy = Policy::new()
        .ask("pay", Ask::default())
        .grant(grant())
        .rule(Rule {
            when: vec![Condition::new("/n", Operator::AtMost(5.into()))],
            ..Rule::new("é", Then::Deny, ["pay"])
        });
    assert_eq!(
        policy.hash(),
        "22755952c275bdaa66147ac14af3af1d53e0d0149a08d8c9f7df611d341ede07"
    );
}

#[test]
fn the_verdict_on_a_name_is_the_most_that_rules_allow() {
    let condition = || vec![Condition::new("/n", Operator::AtMost(5.into()))];
    let ask = Ask::default();
    let always = |then| Policy::new().rule(Rule::new("r", then, ["pay"]));
    let sometimes = |then| {
        let rule = Rule {
            when: condition(),
            ..Rule::new("r", then, ["pay"])
        };
        Policy::new().rule(rule)
    };
    let table = [
        (always(Then::Allow), Verdict::Allowed),
        (always(Then::Ask(ask)), Verdict::Ask(ask)),
        (always(Then::Deny), Verdict::Denied { named: true }),
        (sometimes(Then::Allow), Verdict::Allowed),
        (sometimes(Then::Ask(ask)), Verdict::Ask(ask)),
        (sometimes(Then::Deny), Verdict::Denied { named: false }),
        (sometimes(Then::Deny).allow(["pay"]), Verdict::Allowed),
        (sometimes(Then::Ask(ask)).allow(["pay"]), Verdict::Allowed),
        (
            always(Then::Deny).allow(["pay"]),
            Verdict::Denied { named: true },
        ),
        (always(Then::Ask(ask)).allow(["pay"]), Verdict::Ask(ask)),
    ];
    for (policy, expected) in table {
        assert_eq!(policy.verdict("pay"), expected, "{policy:?}");
        assert_eq!(policy.verdict("Pay"), Verdict::Denied { named: false });
    }
}
