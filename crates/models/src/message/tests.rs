//! Reading and writing of messages, as tables.

use serde_json::{Value, json};

use super::*;
use crate::error::Error;
use crate::raw::{MAX_ARGUMENT_BYTES, MAX_DEPTH};

/// Reads a message and writes it again; the id is fixed so that it can be compared.
fn rewritten(input: &str) -> String {
    let message: Message = serde_json::from_str(input).unwrap();
    serde_json::to_string(&Message {
        id: "m".into(),
        ..message
    })
    .unwrap()
}

fn refusal(input: &str) -> String {
    serde_json::from_str::<Message>(input)
        .unwrap_err()
        .to_string()
}

#[test]
fn every_spelling_of_a_message_is_written_in_langchains_shape() {
    let table = [
        (r#""hi""#, r#"{"type":"human","content":"hi","id":"m"}"#),
        (
            r#"["user","hi"]"#,
            r#"{"type":"human","content":"hi","id":"m"}"#,
        ),
        (r#"["ai","hi"]"#, r#"{"type":"ai","content":"hi","id":"m"}"#),
        (
            r#"{"role":"user","content":"hi"}"#,
            r#"{"type":"human","content":"hi","id":"m"}"#,
        ),
        (
            r#"{"type":"human","content":"hi","id":"x"}"#,
            r#"{"type":"human","content":"hi","id":"m"}"#,
        ),
        (
            r#"{"role":"assistant","content":null}"#,
            r#"{"type":"ai","content":"","id":"m"}"#,
        ),
        (
            r#"{"role":"assistant","type":"message","content":"a"}"#,
            r#"{"type":"ai","content":"a","id":"m"}"#,
        ),
        (
            r#"{"role":"system","content":"be brief","name":"boss"}"#,
            r#"{"type":"system","content":"be brief","id":"m","name":"boss"}"#,
        ),
        (
            r#"{"role":"developer","content":"be brief"}"#,
            r#"{"type":"system","content":"be brief","id":"m","additional_kwargs":{"__openai_role__":"developer"}}"#,
        ),
        (
            r#"{"role":"tool","content":"7","tool_call_id":"c1"}"#,
            r#"{"type":"tool","content":"7","id":"m","tool_call_id":"c1","status":"success"}"#,
        ),
        (
            r#"{"type":"tool","content":"no","tool_call_id":"c1","status":"error","name":"add","artifact":[1,2]}"#,
            r#"{"type":"tool","content":"no","id":"m","name":"add","tool_call_id":"c1","status":"error","artifact":[1,2]}"#,
        ),
        (
            r#"{"type":"remove","id":"x","content":""}"#,
            r#"{"type":"remove","content":"","id":"m"}"#,
        ),
        (
            r#"{"type":"human","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":"data:"}]}"#,
            r#"{"type":"human","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":"data:"}],"id":"m"}"#,
        ),
        (
            r#"{"type":"AIMessageChunk","content":"a","tool_call_chunks":[],"chunk_position":"last"}"#,
            r#"{"type":"ai","content":"a","id":"m"}"#,
        ),
        (
            r#"{"lc":1,"type":"constructor","id":["langchain_core","messages","HumanMessage"],"kwargs":{"content":"hi","additional_kwargs":{},"response_metadata":{}}}"#,
            r#"{"type":"human","content":"hi","id":"m"}"#,
        ),
        (
            r#"{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\": 1}"}}]}"#,
            r#"{"type":"ai","content":"","id":"m","tool_calls":[{"name":"add","args":{"a": 1},"id":"c1","type":"tool_call"}]}"#,
        ),
        (
            r#"{"type":"ai","content":"","tool_calls":[{"name":"now","args":{},"id":"c1","type":"tool_call","extras":{"signature":"s"}}],"invalid_tool_calls":[],"usage_metadata":null}"#,
            r#"{"type":"ai","content":"","id":"m","tool_calls":[{"name":"now","args":{},"id":"c1","type":"tool_call","extras":{"signature":"s"}}]}"#,
        ),
        (
            r#"{"type":"ai","content":"a","usage_metadata":{"input_tokens":3,"output_tokens":2,"total_tokens":5,"input_token_details":{"cache_read":1}},"response_metadata":{"finish_reason":"stop"}}"#,
            r#"{"type":"ai","content":"a","id":"m","usage_metadata":{"input_tokens":3,"output_tokens":2,"total_tokens":5,"input_token_details":{"cache_read":1}},"response_metadata":{"finish_reason":"stop"}}"#,
        ),
    ];
    for (input, output) in table {
        assert_eq!(rewritten(input), output, "{input}");
        assert_eq!(rewritten(output), output, "what is written reads as itself");
    }
}

#[test]
fn wrong_messages_are_refused_with_what_is_wrong() {
    let table = [
        (
            r#"{"role":"chat","content":"x"}"#,
            "unknown message role `chat`",
        ),
        (r#"{"content":"x"}"#, "neither `type` nor `role`"),
        (
            r#"{"role":"tool","content":"x"}"#,
            "`tool` needs the field `tool_call_id`",
        ),
        (r#"{"type":"remove"}"#, "`remove` needs the field `id`"),
        (
            r#"{"role":"user","content":"x","tool_call_id":"c"}"#,
            "`human` cannot have the field `tool_call_id`",
        ),
        (r#"{"role":"user","content":5}"#, "field `content`"),
        (
            r#"{"role":"user","content":[5]}"#,
            "a content block is an object or a string",
        ),
        (r#"{"role":"user","content":"x","id":5}"#, "field `id`"),
        (
            r#"{"type":"tool","tool_call_id":"c","status":"odd"}"#,
            "field `status`",
        ),
        (
            r#"{"type":"ai","tool_calls":[{"name":"a","args":"{}"}]}"#,
            "not a JSON object",
        ),
        (
            r#"{"type":"ai","tool_calls":[{"args":{}}]}"#,
            "needs the field `tool_calls.name`",
        ),
        (r#"["user"]"#, "a pair [role, content]"),
        (r#"["user","a","b"]"#, "a pair [role, content]"),
        (
            "5",
            "a message: an object, a pair [role, content], or a string",
        ),
    ];
    for (input, problem) in table {
        let refusal = refusal(input);
        assert!(refusal.contains(problem), "{input}: {refusal}");
    }
}

#[test]
fn unknown_fields_are_kept_and_written_again() {
    let kept = r#"{"type":"human","content":"hi","id":"m","example":false,"precise":1.10}"#;
    assert_eq!(rewritten(kept), kept);
}

#[test]
fn integers_above_64_bits_and_decimals_keep_every_digit_in_a_calls_arguments() {
    let args = r#"{"id":2512292042121000001,"big":340282366920938463463374607431768211457,"d":1.10,"e":1E+2}"#;
    let wire = format!(
        r#"{{"type":"ai","content":"","id":"m","tool_calls":[{{"name":"pay","args":{args},"id":"c","type":"tool_call"}}]}}"#
    );
    let message: Message = serde_json::from_str(&wire).unwrap();
    assert_eq!(message.tool_calls()[0].args.as_str(), args);
    assert_eq!(serde_json::to_string(&message).unwrap(), wire);
}

#[test]
fn arguments_that_are_no_json_are_kept_as_the_model_wrote_them_beside_the_valid_calls() {
    let message: Message = serde_json::from_value(json!({
        "role": "assistant", "content": "", "id": "m",
        "tool_calls": [
            { "id": "c1", "function": { "name": "book", "arguments": "{\"city\":\"Oslo\",\"days\":3" } },
            { "id": "c2", "function": { "name": "now", "arguments": "" } },
        ],
    }))
    .unwrap();
    let now = ToolCall::new("c2", "now", Arguments::default());
    assert_eq!(message.tool_calls(), [now]);
    let [invalid] = message.invalid_tool_calls() else {
        panic!("one invalid call")
    };
    assert_eq!(invalid.args, "{\"city\":\"Oslo\",\"days\":3");
    assert_eq!(
        (invalid.id.as_str(), invalid.name.as_deref()),
        ("c1", Some("book"))
    );
    let again: Message = serde_json::from_str(&serde_json::to_string(&message).unwrap()).unwrap();
    assert_eq!(again, message);
}

#[test]
fn deep_arguments_are_an_error_and_not_a_crash() {
    let deep = |levels| format!("{}1{}", "{\"x\":".repeat(levels), "}".repeat(levels));
    let deepest = Arguments::parse(&deep(MAX_DEPTH)).unwrap();
    assert!(deepest.decode::<Value>().is_ok());
    for levels in [MAX_DEPTH + 1, 5_000, 150_000] {
        assert!(matches!(
            Arguments::parse(&deep(levels)),
            Err(Error::TooDeep { limit: MAX_DEPTH })
        ));
        let wire = format!(
            r#"{{"type":"ai","tool_calls":[{{"name":"t","args":{}}}]}}"#,
            deep(levels)
        );
        assert!(refusal(&wire).contains("nested deeper than 100 levels"));
    }
    let brackets_in_text = format!(r#"{{"x":"{}\"{}"}}"#, "[".repeat(500), "{".repeat(500));
    assert!(Arguments::parse(&brackets_in_text).is_ok());
}

#[test]
fn arguments_are_one_object_of_bounded_size() {
    let too_large = format!("{{\"x\":\"{}\"}}", "a".repeat(MAX_ARGUMENT_BYTES));
    assert!(matches!(
        Arguments::parse(&too_large),
        Err(Error::TooLarge { .. })
    ));
    for text in ["[]", "\"x\"", "1", "{} {}", "{\"a\":}", "NaN"] {
        assert!(
            matches!(Arguments::parse(text), Err(Error::Json { .. })),
            "{text}"
        );
    }
    for text in ["", "  ", "null", "{}", " {} "] {
        assert_eq!(
            Arguments::parse(text).unwrap(),
            Arguments::default(),
            "{text:?}"
        );
    }
}

#[test]
fn line_breaks_between_tokens_never_reach_a_line_of_output() {
    let args = Arguments::parse("{\r\n  \"a\": \"x\\ny\"\n}").unwrap();
    assert_eq!(args.as_str(), "{    \"a\": \"x\\ny\" }");
    assert_eq!(args.decode::<Value>().unwrap(), json!({ "a": "x\ny" }));
}

#[test]
fn an_id_is_there_from_the_start_and_later_messages_sort_later() {
    let (first, second) = (Message::human("a"), Message::human("b"));
    assert!(first.id < second.id);
    let read: Message = serde_json::from_str(r#"{"role":"user","content":"c","id":""}"#).unwrap();
    assert!(second.id < read.id);
    assert_eq!(read.clone().id, read.id);
}

#[test]
fn a_message_survives_the_way_through_a_json_value() {
    let call = ToolCall::new(
        "c",
        "pay",
        Arguments::parse(r#"{"id":2512292042121000001}"#).unwrap(),
    );
    let message = Message::ai_calling("paying", vec![call]);
    let value = serde_json::to_value(&message).unwrap();
    assert_eq!(serde_json::from_value::<Message>(value).unwrap(), message);
}

#[test]
fn the_text_of_blocks_is_the_text_blocks_joined() {
    let content: Content = serde_json::from_value(json!([
        "plain ", { "type": "text", "text": "typed" }, { "type": "image_url", "text": "alt" },
    ]))
    .unwrap();
    assert_eq!(content.text(), "plain typed");
    assert!(Content::Blocks(vec![]).is_empty());
}
