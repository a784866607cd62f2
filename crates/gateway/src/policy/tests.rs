//! Patterns, suggestions and the precedence of rules, as tables and as properties.

use super::*;
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
        let ask = Ask::default();
        let expected = match (hit(0), hit(1), hit(2)) {
            (true, _, _) => Verdict::Denied { named: true },
            (false, true, _) => Verdict::Ask(&ask),
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
