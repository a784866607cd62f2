//! Only the spelling of a registered name is that tool: a thousand others are none, whatever is allowed.

use crate::random::{Call, Random};
use crate::tool;
use paraph_gateway::{
    Gateway, Level, Limits, MemoryStore, Policy, PolicyEngine, Reply, Scope, ToolCall, Verdict,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const NAME: &str = "issue_refund";

/// Letters that look like others, and what is invisible.
const ALIKE: [(char, &str); 10] = [
    ('i', "\u{456}\u{131}\u{ff49}\u{2170}l1I"),
    ('s', "\u{455}\u{ff53}\u{17f}5S"),
    ('u', "\u{3c5}\u{ff55}\u{fc}U"),
    ('e', "\u{435}\u{ff45}\u{e9}3E"),
    ('_', "\u{ff3f}\u{203f}-. \u{2d}"),
    ('r', "\u{433}\u{ff52}R"),
    ('f', "\u{192}\u{ff46}\u{17f}F"),
    ('n', "\u{578}\u{ff4e}N"),
    ('d', "\u{501}\u{ff44}D"),
    (
        '\0',
        "\0\t\n\r \u{a0}\u{ad}\u{200b}\u{200d}\u{202e}\u{2060}\u{feff}\u{301}\u{e0041}",
    ),
];

/// Another spelling of a name; now and then the name itself.
pub(crate) fn variant(random: &mut Random, name: &str) -> String {
    let mut letters: Vec<char> = name.chars().collect();
    let place = random.below(letters.len());
    match random.below(8) {
        0..3 => {
            for _ in 0..=random.below(3) {
                let place = random.below(letters.len());
                let alike = ALIKE.iter().find(|(letter, _)| *letter == letters[place]);
                if let Some((_, others)) = alike {
                    letters[place] = random.pick(&others.chars().collect::<Vec<_>>());
                }
            }
        }
        3..5 => {
            let invisible: Vec<char> = ALIKE[9].1.chars().collect();
            for _ in 0..=random.below(3) {
                letters.insert(random.below(letters.len() + 1), random.pick(&invisible));
            }
        }
        5 => letters[place] = letters[place].to_ascii_uppercase(),
        6 => {
            letters.remove(place);
        }
        _ => {
            let affixes = [
                "functions.",
                "default_api:",
                "mcp__",
                "tool:",
                "/",
                "`",
                "\"",
                "%5F",
                "*",
                "()",
                ".v2",
                "_",
                "\u{2026}",
            ];
            let affix = random.pick(&affixes);
            return match random.chance(50) {
                true => format!("{affix}{name}"),
                false => format!("{name}{affix}"),
            };
        }
    }
    letters.into_iter().collect()
}

/// A thousand different spellings, none of them the name.
fn variants() -> Vec<String> {
    let mut random = Random::of(25, 0);
    let mut found = BTreeSet::new();
    while found.len() < 1000 {
        let other = variant(&mut random, NAME);
        if other != NAME {
            found.insert(other);
        }
    }
    found.into_iter().collect()
}

#[test]
fn a_thousand_other_spellings_are_denied_even_if_everything_is_allowed() {
    let policies = [
        Policy::new().ask(NAME, Default::default()),
        Policy::new().ask("*", Default::default()),
        Policy::new().allow(["*"]).allow_unregistered(["*"]),
    ];
    for policy in policies {
        let engine = PolicyEngine::new(policy, &[tool(NAME, Level::Write)]);
        for name in variants() {
            let call = Call::plain(&name, "{}");
            let decision = engine.decide(&call.request());
            assert_eq!(
                decision.verdict,
                Verdict::Denied { named: false },
                "{name:?}"
            );
        }
        let call = Call::plain(NAME, "{}");
        let decision = engine.decide(&call.request());
        assert!(matches!(decision.verdict, Verdict::Ask(_)), "{decision}");
    }
}

#[tokio::test]
async fn a_thousand_other_spellings_never_reach_the_tool() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    let ran = Arc::new(AtomicU64::new(0));
    let counted = ran.clone();
    let run = move |_: Nothing| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok("ran") }
    };
    let gateway = Gateway::builder(MemoryStore::shared())
        .read(NAME, "about", run)
        .policy(Policy::new().allow(["*"]))
        .build()
        .unwrap();
    let limits = Limits {
        tool_calls: 2000,
        ..Limits::default()
    };
    let session = gateway.session(Scope::new("a", "t"), limits).await.unwrap();
    for (index, name) in variants().into_iter().enumerate() {
        let call = ToolCall::native(name.as_str(), "{}");
        let reply = session.call(&index.to_string(), &call).await.unwrap();
        let Reply::Observed(seen) = reply else {
            panic!("{name:?}: {reply:?}");
        };
        assert!(!seen.ok(), "{name:?}: {seen:?}");
    }
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    let call = ToolCall::native(NAME, "{}");
    session.call("the name", &call).await.unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}
