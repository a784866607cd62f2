//! Pieces of answers as providers really send them, and in any order.

use proptest::prelude::*;

use super::*;
use crate::raw::{Arguments, MAX_ARGUMENT_BYTES};

fn delta(index: Option<u32>, id: &str, name: &str, arguments: &str) -> ToolCallDelta {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    ToolCallDelta {
        index,
        id: some(id),
        name: some(name),
        arguments: arguments.to_owned(),
        signature: None,
    }
}

fn calls(deltas: impl IntoIterator<Item = ToolCallDelta>) -> Chunk {
    Chunk {
        tool_calls: deltas.into_iter().collect(),
        ..Chunk::default()
    }
}

fn assembled(chunks: impl IntoIterator<Item = Chunk>) -> Result<ChatReply, ModelError> {
    let mut assembler = Assembler::with_id("m");
    for chunk in chunks {
        assembler.push(chunk)?;
    }
    assembler.finish()
}

/// `id name args` of each call, each piece arriving in a chunk of its own.
fn joined(deltas: impl IntoIterator<Item = ToolCallDelta>) -> Vec<String> {
    let reply = assembled(deltas.into_iter().map(|delta| calls([delta]))).unwrap();
    let show = |call: &ToolCall| format!("{} {} {}", call.id, call.name, call.args.as_str());
    reply.message.tool_calls().iter().map(show).collect()
}

/// C01, rig#1827: pieces without an optional field were dropped. Unknown events are counted, see below.
#[test]
fn a_piece_without_the_optional_index_is_not_dropped() {
    let deltas = [
        delta(Some(0), "c", "add", ""),
        delta(None, "", "", "{\"a\""),
        delta(None, "c", "", ":1"),
        delta(Some(0), "", "", "}"),
    ];
    assert_eq!(joined(deltas), ["c add {\"a\":1}"]);
}

/// C03, bifrost#1829: names of parallel calls were joined.
#[test]
fn the_same_name_on_three_indexes_is_three_calls() {
    let deltas = (0..3).map(|n| delta(Some(n), &format!("c{n}"), "search", "{}"));
    assert_eq!(
        joined(deltas),
        ["c0 search {}", "c1 search {}", "c2 search {}"]
    );
}

/// C05, openai-python#3438: two pieces of one index in the first chunk.
#[test]
fn two_pieces_of_one_index_in_one_chunk_are_one_call() {
    let chunk = calls([
        delta(Some(0), "c", "add", "{\""),
        delta(Some(0), "", "", "a\":1}"),
    ]);
    let reply = assembled([chunk]).unwrap();
    let call = ToolCall::new("c", "add", Arguments::parse("{\"a\":1}").unwrap());
    assert_eq!(reply.message.tool_calls(), [call]);
}

#[test]
fn servers_that_number_every_call_zero_still_get_their_calls_apart() {
    let deltas = [
        delta(Some(0), "a", "x", "{}"),
        delta(Some(0), "b", "y", "{}"),
    ];
    assert_eq!(joined(deltas), ["a x {}", "b y {}"]);
}

#[test]
fn servers_that_number_nothing_start_a_call_with_each_name() {
    let deltas = [
        delta(None, "", "x", "{"),
        delta(None, "", "", "}"),
        delta(None, "", "x", "{\"n\":2}"),
    ];
    assert_eq!(joined(deltas), ["call-m-0 x {}", "call-m-1 x {\"n\":2}"]);
}

#[test]
fn servers_that_invent_an_id_for_every_piece_make_one_call() {
    let deltas = [
        delta(Some(0), "a", "x", "{\"n\""),
        delta(Some(0), "b", "", ":1}"),
    ];
    assert_eq!(joined(deltas), ["a x {\"n\":1}"]);
}

#[test]
fn a_name_may_be_repeated_or_come_in_parts() {
    let repeated = [
        delta(Some(0), "a", "get", "{"),
        delta(Some(0), "a", "get", "}"),
    ];
    assert_eq!(joined(repeated), ["a get {}"]);
    let parts = [
        delta(Some(0), "a", "get_", ""),
        delta(Some(0), "", "time", "{}"),
    ];
    assert_eq!(joined(parts), ["a get_time {}"]);
}

#[test]
fn arguments_that_are_no_json_are_an_invalid_call_with_the_raw_text() {
    let reply = assembled([calls([
        delta(Some(0), "a", "book", "{\"city\":\"Oslo\",\"days\":3"),
        delta(Some(1), "b", "", "{}"),
        delta(Some(2), "c", "now", ""),
    ])])
    .unwrap();
    let shown: Vec<_> = reply
        .message
        .invalid_tool_calls()
        .iter()
        .map(|call| (call.id.as_str(), call.name.as_deref(), call.args.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            ("a", Some("book"), "{\"city\":\"Oslo\",\"days\":3"),
            ("b", None, "{}")
        ]
    );
    assert_eq!(
        reply.message.tool_calls(),
        [ToolCall::new("c", "now", Arguments::default())]
    );
}

#[test]
fn an_answer_with_neither_text_nor_call_is_empty_and_says_what_it_cost() {
    let usage = Usage::new(10, 0);
    let silent = Chunk {
        usage: Some(usage.clone()),
        finish_reason: Some(FinishReason::Stop),
        ..Chunk::default()
    };
    let error = assembled([Chunk::text(""), silent]).unwrap_err();
    assert_eq!(error.reason(), "llm_empty");
    assert_eq!(
        error,
        ModelError::Empty {
            usage: Some(Box::new(usage))
        }
    );
    assert_eq!(
        assembled([]).unwrap_err(),
        ModelError::Empty { usage: None }
    );
}

#[test]
fn a_thought_is_no_answer() {
    let thought = Chunk {
        usage: Some(Usage::new(3, 9)),
        ..Chunk::reasoning("hm")
    };
    let error = assembled([thought]).unwrap_err();
    let usage = Some(Box::new(Usage::new(3, 9)));
    assert_eq!(error, ModelError::Empty { usage });
}

#[test]
fn thoughts_are_kept_where_clients_look_for_them_and_shown_nowhere_else() {
    let reply = assembled([
        Chunk::reasoning("hm, "),
        Chunk::reasoning("well"),
        Chunk::text("Yes."),
    ]);
    let message = reply.unwrap().message;
    let wire = serde_json::to_value(&message).unwrap();
    assert_eq!(wire["content"], "Yes.");
    let kept = serde_json::json!({ "reasoning_content": "hm, well" });
    assert_eq!(wire["additional_kwargs"], kept);
    let shown = Chunk::reasoning("hm").to_message_chunk("m");
    let chunk = serde_json::json!({ "type": "AIMessageChunk", "id": "m", "content": "",
        "additional_kwargs": { "reasoning_content": "hm" } });
    assert_eq!(shown, chunk);
}

#[test]
fn the_last_word_on_cost_and_end_counts_and_unknown_events_are_counted() {
    let end = |n, reason| Chunk {
        usage: Some(Usage::new(n, n)),
        finish_reason: Some(reason),
        model: Some(format!("model-{n}")),
        unknown_events: 1,
        ..Chunk::text("x")
    };
    let reply = assembled([end(1, FinishReason::Length), end(2, FinishReason::Stop)]).unwrap();
    assert_eq!(reply.usage, Some(Usage::new(2, 2)));
    assert_eq!(reply.message.usage(), Some(&Usage::new(2, 2)));
    assert_eq!(reply.finish_reason, Some(FinishReason::Stop));
    assert_eq!((reply.unknown_events, reply.attempts), (2, 1));
    let wire = serde_json::to_string(&reply.message).unwrap();
    assert!(
        wire.contains(r#""response_metadata":{"finish_reason":"stop","model_name":"model-2"}"#)
    );
}

#[test]
fn an_endless_answer_ends_at_its_bounds() {
    let mut assembler = Assembler::new();
    let piece = Chunk::text("x".repeat(MAX_REPLY_BYTES / 4));
    let pushed: Vec<bool> = (0..5)
        .map(|_| assembler.push(piece.clone()).is_ok())
        .collect();
    assert_eq!(pushed, [true, true, true, true, false]);
    let many = (0..=MAX_CALLS).map(|n| delta(Some(n as u32), "", "x", ""));
    assert_eq!(
        assembled([calls(many)]).unwrap_err().reason(),
        "llm_error:decode"
    );
    let huge = format!("{{\"x\":\"{}\"}}", "a".repeat(MAX_ARGUMENT_BYTES));
    let reply = assembled([calls([delta(Some(0), "a", "x", &huge)])]).unwrap();
    assert_eq!(reply.message.tool_calls(), []);
}

#[test]
fn a_chunk_is_shown_as_langchain_shows_it() {
    let chunk = Chunk {
        usage: Some(Usage::new(1, 2)),
        ..calls([delta(Some(0), "c", "add", "{\"a")])
    };
    let shown = serde_json::json!({
        "type": "AIMessageChunk", "id": "m", "content": "",
        "tool_call_chunks": [{ "name": "add", "args": "{\"a", "id": "c", "index": 0, "type": "tool_call_chunk" }],
        "usage_metadata": { "input_tokens": 1, "output_tokens": 2, "total_tokens": 3 },
    });
    assert_eq!(chunk.to_message_chunk("m"), shown);
}

/// Which fields the pieces of a call have.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// The index always, the id and the name at first.
    Indexed,
    /// Everything always.
    Chatty,
    /// The index always, an id never.
    Nameless,
    /// The id always, an index never.
    ById,
    /// Id and name at first, then nothing: one call after the other.
    InTurn,
}

const HABITS: [Habit; 5] = [
    Habit::Indexed,
    Habit::Chatty,
    Habit::Nameless,
    Habit::ById,
    Habit::InTurn,
];

impl Habit {
    fn piece(self, call: usize, first: bool, arguments: &str) -> ToolCallDelta {
        let id = format!("c{call}");
        let (index, id, name) = match self {
            Self::Indexed if first => (true, id.as_str(), "act"),
            Self::Indexed => (true, "", ""),
            Self::Chatty => (true, id.as_str(), "act"),
            Self::Nameless => (true, "", if first { "act" } else { "" }),
            Self::ById => (false, id.as_str(), if first { "act" } else { "" }),
            Self::InTurn if first => (false, id.as_str(), "act"),
            Self::InTurn => (false, "", ""),
        };
        delta(index.then_some(call as u32), id, name, arguments)
    }
}

proptest! {
    #[test]
    fn any_pieces_with_any_fields_left_out_are_the_same_calls_beside_the_same_text_and_thoughts(
        texts in proptest::collection::vec("[a-zä🦀]{0,9}", 1..5),
        habit in prop::sample::select(&HABITS[..]),
        cuts in proptest::collection::vec(1..4_usize, 64),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 256),
        together in proptest::collection::vec(1..4_usize, 64),
    ) {
        let arguments: Vec<String> = texts.iter().map(|text| format!("{{\"x\":\"{text}\"}}")).collect();
        let mut cuts = cuts.into_iter().cycle();
        let mut queues: Vec<std::collections::VecDeque<ToolCallDelta>> = Vec::new();
        for (n, text) in arguments.iter().enumerate() {
            let mut queue = std::collections::VecDeque::from([habit.piece(n, true, "")]);
            let letters: Vec<char> = text.chars().collect();
            let mut rest = letters.as_slice();
            while !rest.is_empty() {
                let (piece, tail) = rest.split_at(cuts.next().unwrap().min(rest.len()));
                queue.push_back(habit.piece(n, false, &piece.iter().collect::<String>()));
                rest = tail;
            }
            queues.push(queue);
        }
        let mut mixed = Vec::new();
        let mut order = order.into_iter().cycle();
        while queues.iter().any(|queue| !queue.is_empty()) {
            let at = match habit {
                Habit::InTurn => 0,
                _ => order.next().unwrap().index(queues.len()),
            };
            let open = (0..queues.len()).map(|n| (at + n) % queues.len()).find(|n| !queues[*n].is_empty());
            mixed.extend(open.and_then(|n| queues[n].pop_front()));
        }
        // Several pieces may share a chunk, with text and thoughts between them.
        let mut assembler = Assembler::with_id("m");
        let (mut said, mut thought) = (String::new(), String::new());
        let mut together = together.into_iter().cycle();
        let mut rest = mixed.as_slice();
        while !rest.is_empty() {
            let (some, tail) = rest.split_at(together.next().unwrap().min(rest.len()));
            rest = tail;
            let (word, idea) = (format!("w{} ", rest.len()), format!("t{} ", rest.len()));
            said.push_str(&word);
            thought.push_str(&idea);
            let chunk = Chunk { tool_calls: some.to_vec(), text: word, ..Chunk::reasoning(idea) };
            assembler.push(chunk).unwrap();
        }
        let reply = assembler.finish().unwrap();
        let mut got: Vec<(&str, &str)> = reply.message.tool_calls().iter()
            .map(|call| (call.name.as_str(), call.args.as_str())).collect();
        let mut expected: Vec<(&str, &str)> = arguments.iter().map(|text| ("act", text.as_str())).collect();
        if matches!(habit, Habit::ById) {
            // Without an index nothing says the order but who came first.
            got.sort_unstable();
            expected.sort_unstable();
        }
        prop_assert_eq!(got, expected);
        prop_assert_eq!(reply.message.invalid_tool_calls(), &[]);
        prop_assert_eq!(reply.message.text(), said);
        prop_assert_eq!(reply.message.reasoning(), Some(thought));
    }

    #[test]
    fn any_interleaving_of_any_pieces_gives_the_same_calls(
        texts in proptest::collection::vec("[a-z0-9]{0,12}", 1..5),
        cuts in proptest::collection::vec(1..4_usize, 64),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 256),
    ) {
        let arguments: Vec<String> = texts.iter().map(|text| format!("{{\"x\":\"{text}\"}}")).collect();
        let mut cuts = cuts.into_iter().cycle();
        let mut queues: Vec<Vec<ToolCallDelta>> = Vec::new();
        for (n, text) in arguments.iter().enumerate() {
            let index = Some(n as u32);
            let mut queue = vec![delta(index, &format!("c{n}"), "act", "")];
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (piece, tail) = rest.split_at(cuts.next().unwrap().min(rest.len()));
                queue.push(delta(index, "", "", piece));
                rest = tail;
            }
            queue.reverse();
            queues.push(queue);
        }
        let mut mixed = Vec::new();
        let mut order = order.into_iter().cycle();
        while queues.iter().any(|queue| !queue.is_empty()) {
            let at = order.next().unwrap().index(queues.len());
            let open = (0..queues.len()).map(|n| (at + n) % queues.len()).find(|n| !queues[*n].is_empty());
            mixed.extend(open.and_then(|n| queues[n].pop()));
        }
        let expected: Vec<String> = arguments.iter().enumerate().map(|(n, text)| format!("c{n} act {text}")).collect();
        prop_assert_eq!(joined(mixed), expected);
    }
}
