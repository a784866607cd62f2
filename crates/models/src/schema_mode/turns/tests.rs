//! A history with calls, as text.

use super::*;
use crate::message::ToolCall;
use crate::raw::Arguments;

fn said(messages: &[Message]) -> Vec<(&'static str, String)> {
    let said = messages.iter().map(|m| (m.kind(), m.text().into_owned()));
    said.collect()
}

fn history() -> Vec<Message> {
    let args = Arguments::parse(r#"{"id": 10000000000000000000001}"#).unwrap_or_default();
    let calls = vec![
        ToolCall::new("1", "find", args),
        ToolCall::new("2", "look", Arguments::default()),
    ];
    vec![
        Message::system("Be brief."),
        Message::human("Where is it?"),
        Message::ai_calling("I shall look.", calls),
        Message::tool("1", "on the table"),
        Message::tool_error("2", "no such room"),
        Message::human("Well?"),
        Message::ai("On the table."),
        Message::human("Thanks"),
        Message::remove("x"),
    ]
}

#[test]
fn calls_are_the_steps_that_made_them_and_results_are_told() {
    assert_eq!(
        said(&written(&history(), Some("final_answer"))),
        [
            ("system", "Be brief."),
            ("human", "Where is it?"),
            (
                "ai",
                "I shall look.\n{\"action\":\"find\",\"arguments\":{\"id\": 10000000000000000000001}}\n\
                 {\"action\":\"look\",\"arguments\":{}}"
            ),
            (
                "human",
                "Result of find: on the table\n\nlook failed: no such room\n\nWell?"
            ),
            ("ai", "{\"action\":\"final_answer\",\"answer\":\"On the table.\"}"),
            ("human", "Thanks"),
        ]
        .map(|(kind, text)| (kind, text.to_owned()))
    );
}

#[test]
fn without_tools_answers_are_plain_text() {
    let turns = written(&history(), None);
    assert_eq!(
        turns.get(4).map(|turn| turn.text().into_owned()).as_deref(),
        Some("On the table.")
    );
    assert!(!has_calls(&turns) && has_calls(&history()));
    assert_eq!(written(&turns, None), turns, "what is text stays as it is");
}
