//! The last answer: when it is asked for, with what, out of whose money, and that it changes no reason.

use crate::outcome::RunResult;
use crate::{Terms, react};
use paraph_gateway::{Gateway, Limits, MemoryStore, Policy, Price};
use paraph_models::{ChatModel, ChatRequest, ChunkStream, ScriptedModel, ToolChoice};
use std::sync::{Arc, Mutex};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {
    #[serde(default)]
    at: String,
}

fn gateway() -> Gateway {
    Gateway::builder(MemoryStore::shared())
        .read("look", "Looks", async |look: Look| {
            Ok(format!("saw {}", look.at))
        })
        .policy(Policy::new().allow(["look"]))
        .build()
        .unwrap()
}

/// A script, and what it was asked.
struct Noted(ScriptedModel, Mutex<Vec<ChatRequest>>);

impl ChatModel for Noted {
    fn name(&self) -> &str {
        "noted"
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        self.1.lock().unwrap().push(request.clone());
        self.0.stream(request)
    }
}

fn looks(at: &[&str], tokens: u64) -> String {
    let calls = at.iter().enumerate().map(|(n, at)| {
        serde_json::json!({"id": format!("{at}{n}"), "name": "look", "arguments": {"at": at}})
    });
    let usage = serde_json::json!({"input_tokens": tokens, "output_tokens": 10});
    serde_json::json!({"tool_calls": calls.collect::<Vec<_>>(), "usage": usage}).to_string()
}

fn says(text: &str) -> String {
    let usage = serde_json::json!({"input_tokens": 100, "output_tokens": 20});
    serde_json::json!({"content": text, "usage": usage}).to_string()
}

struct Ended {
    result: RunResult,
    asked: Vec<ChatRequest>,
}

impl Ended {
    fn told(&self) -> (String, Option<&str>) {
        (self.result.stop().to_string(), self.result.answer())
    }
}

async fn run(lines: &[String], limits: Limits, reserve: u64) -> Ended {
    let script = ScriptedModel::parse(&lines.join("\n"), "script").unwrap();
    let model = Arc::new(Noted(script, Mutex::default()));
    let terms = Terms {
        limits,
        price: Some(Price {
            input: 1_000_000,
            output: 2_000_000,
            source: String::new(),
        }),
        ..Terms::new(model.clone(), "t")
    };
    let agent = react("looker", "Look.", gateway()).unwrap();
    let run = agent.keeping_back(reserve).start("Go", &terms).await;
    let result = run.unwrap().result().await;
    let asked = model.1.lock().unwrap().clone();
    Ended { result, asked }
}

fn limits() -> Limits {
    Limits {
        seconds: 600,
        ..Limits::default()
    }
}

#[tokio::test]
async fn a_run_that_met_a_limit_says_what_it_has_and_keeps_its_reason() {
    let one = |limits: Limits| (limits, vec![looks(&["a"], 330), says("Partial.")]);
    let two = |limits| (limits, vec![looks(&["a", "b"], 330), says("Partial.")]);
    let table = [
        (
            "max_steps",
            one(Limits {
                steps: 1,
                ..limits()
            }),
        ),
        (
            "max_tool_calls",
            two(Limits {
                tool_calls: 1,
                ..limits()
            }),
        ),
        (
            "max_tokens",
            one(Limits {
                tokens: 1_400,
                ..limits()
            }),
        ),
        // A token in costs one millionth of a dollar here, one out two.
        (
            "max_cost",
            one(Limits {
                micro_dollars: 2_400,
                ..limits()
            }),
        ),
    ];
    for (reason, (limits, lines)) in table {
        let ended = run(&lines, limits.clone(), 1_000).await;
        assert_eq!(ended.told(), (reason.to_owned(), Some("Partial.")));
        let last = ended.asked.last().unwrap();
        assert_eq!(
            (last.tool_choice.clone(), last.tools.len()),
            (ToolChoice::None, 1),
            "{reason}"
        );
        assert!(last.max_tokens.is_some_and(|most| most <= 500), "{reason}");
        // What was seen is shown, and every call has its result.
        let shown: Vec<_> = last.messages.iter().map(|m| m.kind()).collect();
        assert_eq!(
            (shown.first(), shown.last()),
            (Some(&"system"), Some(&"human")),
            "{reason}"
        );
        assert!(
            last.messages.iter().any(|m| m.text().contains("saw a")),
            "{reason}"
        );
        // It is no message of the conversation: whoever goes on with the thread is not told to stop.
        let RunResult::Messages(result) = &ended.result else {
            panic!("{reason}")
        };
        assert!(
            result
                .messages
                .iter()
                .all(|m| !m.text().contains("used up"))
        );
        // Without a reserve the run just stops.
        let bare = run(&lines, limits, 0).await;
        if reason != "max_tokens" && reason != "max_cost" {
            assert_eq!(bare.told(), (reason.to_owned(), None));
        }
    }
}

#[tokio::test]
async fn what_is_kept_back_is_used_by_nothing_else_and_never_more_than_the_limit() {
    // Ten steps would fit into the tokens, were nothing kept back.
    let mut lines: Vec<_> = (0..10).map(|n| looks(&[&format!("{n}")], 290)).collect();
    lines.insert(3, says("Partial."));
    let limits = Limits {
        tokens: 2_000,
        ..limits()
    };
    let ended = run(&lines, limits, 1_000).await;
    assert_eq!(ended.told(), ("max_tokens".to_owned(), Some("Partial.")));
    assert_eq!(ended.asked.len(), 4);
}

#[tokio::test]
async fn other_ends_are_not_followed_by_an_answer() {
    let table = [
        (
            vec![looks(&["a"], 100), looks(&["a"], 100)],
            "loop_detected",
        ),
        (
            vec![r#"{"error":{"kind":"timeout"}}"#.to_owned()],
            "llm_timeout",
        ),
    ];
    for (mut lines, reason) in table {
        lines.push(says("Never asked for."));
        let ended = run(&lines, limits(), 1_000).await;
        assert_eq!(ended.told(), (reason.to_owned(), None));
    }
    // A last answer that cannot be had, or that is none, is none.
    for last in [
        r#"{"error":{"kind":"timeout"}}"#.to_owned(),
        says(" "),
        looks(&["b"], 1),
    ] {
        let lines = [looks(&["a"], 100), last];
        let ended = run(
            &lines,
            Limits {
                steps: 1,
                ..limits()
            },
            1_000,
        )
        .await;
        assert_eq!(ended.told(), ("max_steps".to_owned(), None));
    }
    // Nor is one asked for that would have no room for the task.
    let lines = [looks(&["a"], 100), says("Never asked for.")];
    let ended = run(
        &lines,
        Limits {
            steps: 1,
            ..limits()
        },
        60,
    )
    .await;
    assert_eq!(ended.told(), ("max_steps".to_owned(), None));
    assert_eq!(ended.asked.len(), 1);
}

#[tokio::test]
async fn of_a_long_conversation_the_last_answer_is_shown_the_newest_that_fits() {
    let long = "x".repeat(2_000);
    let (first, second) = (format!("old {long}"), "new");
    let lines = [
        looks(&[&first], 100),
        looks(&[second], 100),
        says("Partial."),
    ];
    let limits = Limits {
        steps: 2,
        ..limits()
    };
    let ended = run(&lines, limits, 900).await;
    assert_eq!(ended.told(), ("max_steps".to_owned(), Some("Partial.")));
    let last = ended.asked.last().unwrap();
    let shows = |text: &str| last.messages.iter().any(|m| m.text().contains(text));
    assert!(shows("saw new") && !shows("saw old"));
    assert!(last.worst_case_tokens().unwrap() <= 900);
}
