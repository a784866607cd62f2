//! Estimates count everything that is sent.

use serde_json::json;

use super::*;
use crate::chat::ToolSpec;

/// A14, langchain#34664: a meter that saw the messages alone.
#[test]
fn tool_schemas_and_instructions_count_beside_the_messages() {
    let tool = ToolSpec {
        name: "t".repeat(4),
        description: "d".repeat(2_368),
        schema: json!({}),
    };
    let mut request = ChatRequest::new([
        Message::system("s".repeat(400 - 16)),
        Message::human("m".repeat(1_400 - 16)),
    ]);
    request.tools.push(tool);
    let estimate = Estimate::of(&request);
    let window = 1_000;
    assert_eq!(
        estimate,
        Estimate {
            system: 100,
            messages: 350,
            tools: 598
        }
    );
    assert!(
        estimate.total() > window,
        "schemas of 60 % and messages of 45 % do not fit"
    );
}

#[test]
fn the_worst_case_of_a_call_is_the_request_and_the_longest_answer() {
    let mut request = ChatRequest::new([Message::human("m".repeat(400 - 16))]);
    assert_eq!(request.worst_case_tokens(), None);
    request.max_tokens = Some(1_000);
    assert_eq!(request.worst_case_tokens(), Some(1_100));
}

#[test]
fn characters_beyond_ascii_are_not_underestimated() {
    assert_eq!(estimate_text(""), 0);
    assert_eq!(estimate_text("abcde"), 2);
    assert_eq!(estimate_text("日本語"), 3);
}
