//! Histories that crashes, cancels and cuts leave behind, and what is sent instead.

use proptest::prelude::*;

use super::*;
use crate::message::{AiBody, InvalidToolCall, ToolCall};
use crate::raw::Arguments;

/// Words: `u` a person, `s` instructions, `a` an answer, `a(c1,c2)` calls, `c1` a result of c1, `-x` a removal.
fn history(words: &str) -> Vec<Message> {
    let read = |(n, word): (usize, &str)| {
        let message = match word {
            "u" => Message::human("hello?"),
            "s" => Message::system("be brief"),
            "a" => Message::ai("done"),
            word if word.starts_with('-') => Message::remove(&word[1..]),
            word if word.starts_with("a(") => {
                let ids = word[2..word.len() - 1].split(',');
                let call = |id: &str| ToolCall::new(id, "act", Arguments::default());
                Message::ai_calling("", ids.map(call).collect())
            }
            id => Message::tool(id, format!("result {n}")),
        };
        Message {
            id: format!("m{n}"),
            ..message
        }
    };
    words.split_whitespace().enumerate().map(read).collect()
}

/// The same words, with `!c1` for a result that was missing.
fn words(messages: &[Message]) -> String {
    let word = |message: &Message| match &message.body {
        Body::Human => "u".to_owned(),
        Body::System => "s".to_owned(),
        Body::Remove => format!("-{}", message.id),
        Body::Ai(_) => {
            let ids: Vec<_> = slots_of(message).iter().map(|s| s.id.to_owned()).collect();
            if ids.is_empty() {
                "a".to_owned()
            } else {
                format!("a({})", ids.join(","))
            }
        }
        Body::Tool(tool) => {
            let missing = message.text() == MISSING_RESULT;
            format!("{}{}", if missing { "!" } else { "" }, tool.tool_call_id)
        }
    };
    messages.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn repaired(input: &str) -> (String, usize) {
    let repaired = repair(&history(input));
    (words(&repaired.messages), repaired.repairs.len())
}

#[test]
fn a_sound_history_is_sent_as_it_is() {
    for sound in ["", "s u a", "u a(c1,c2) c1 c2 a u a(c3) c3 a"] {
        assert_eq!(repaired(sound), (sound.to_owned(), 0));
    }
}

/// A01, langgraph#4289: a saved turn whose calls have no results. What the run tells of it is in the agents' tests.
#[test]
fn a_call_without_result_before_a_new_question_is_answered_with_outcome_unknown() {
    let repaired = repair(&history("u a(c1) u"));
    assert_eq!(words(&repaired.messages), "u a(c1) !c1 u");
    let answered = Repair::Answered {
        call_id: "c1".into(),
        tool: "act".into(),
    };
    assert_eq!(repaired.repairs, [answered]);
    assert_eq!(
        repaired.messages[2].text(),
        "interrupted, outcome unknown: this call may or may not have taken effect"
    );
    assert!(
        matches!(&repaired.messages[2].body, Body::Tool(tool) if tool.status == ToolStatus::Error)
    );
}

/// A02, letta#3273: the whole history is looked through, not its end. On each protocol: `tests/http`.
#[test]
fn an_orphan_deep_in_a_long_history_with_a_healthy_tail_is_found() {
    let tail = " u a".repeat(15);
    let input = format!("u a u a u a u a u a(c1){tail}");
    let output = format!("u a u a u a u a u a(c1) !c1{tail}");
    assert_eq!(repaired(&input), (output, 1));
}

/// A08, autogen#3408: saved while a call was pending, loaded, sent.
#[test]
fn a_history_saved_while_a_call_was_pending_can_be_sent() {
    assert_eq!(repaired("u a(c1)"), ("u a(c1) !c1".into(), 1));
    assert_eq!(
        repaired("u a(c1,c2,c3) c2"),
        ("u a(c1,c2,c3) !c1 c2 !c3".into(), 2)
    );
}

#[test]
fn a_call_id_used_again_on_a_later_turn_is_unique_in_what_is_sent() {
    let repaired = repair(&history("u a(d1) d1 u a(d1) d1"));
    assert_eq!(words(&repaired.messages), "u a(d1) d1 u a(d1-2) d1-2");
    let renamed = Repair::RenamedCall {
        from: "d1".into(),
        to: "d1-2".into(),
    };
    assert_eq!(repaired.repairs, [renamed]);
    assert_eq!(repaired.messages[2].text(), "result 2");
    assert_eq!(repaired.messages[5].text(), "result 5");
}

#[test]
fn two_calls_of_one_turn_that_share_an_id_get_one_result_each() {
    assert_eq!(repaired("u a(x,x) x x").0, "u a(x,x-2) x x-2");
    assert_eq!(repaired("u a(x,x) x").0, "u a(x,x-2) x !x-2");
    assert_eq!(
        repaired("u a(x,x-2,x) x x-2 x").0,
        "u a(x,x-2,x-3) x x-2 x-3"
    );
}

/// B14, pydantic-ai#1105: more calls in one turn than a provider takes back. Which of them run: `b14_…` of the
/// gateway.
#[test]
fn two_hundred_parallel_calls_have_one_result_each_in_order() {
    let ids: Vec<String> = (0..200).map(|n| format!("c{n}")).collect();
    let results: Vec<_> = ids
        .iter()
        .map(String::as_str)
        .rev()
        .filter(|id| *id != "c7")
        .collect();
    let input = format!("u a({}) {}", ids.join(","), results.join(" "));
    let sent = repair(&history(&input)).messages;
    let answered: Vec<_> = sent.iter().filter_map(Message::tool_call_id).collect();
    assert_eq!(answered, ids);
}

#[test]
fn results_that_answer_nothing_are_left_out_and_said() {
    assert_eq!(repaired("c1 u a"), ("u a".into(), 1));
    assert_eq!(repaired("u a(c1) c1 zz a"), ("u a(c1) c1 a".into(), 1));
    assert_eq!(repaired("c1 u a(c1)"), ("u a(c1) !c1".into(), 2));
}

#[test]
fn results_stand_behind_their_calls_in_the_order_of_the_calls() {
    assert_eq!(repaired("u a(c1,c2) c2 c1"), ("u a(c1,c2) c1 c2".into(), 1));
    assert_eq!(
        repaired("u a(c1,c2) u c1 c2"),
        ("u a(c1,c2) c1 c2 u".into(), 2)
    );
}

#[test]
fn of_two_results_for_one_call_the_later_counts() {
    let sent = repair(&history("u a(c1) c1 u c1"));
    assert_eq!(words(&sent.messages), "u a(c1) c1 u");
    assert_eq!(sent.messages[2].text(), "result 4");
}

#[test]
fn calls_with_unreadable_arguments_are_answered_too() {
    let invalid = InvalidToolCall {
        id: "c1".into(),
        name: Some("act".into()),
        args: "{".into(),
        error: "cut".into(),
    };
    let body = AiBody {
        invalid_tool_calls: vec![invalid],
        ..AiBody::default()
    };
    let sent = repair(&[Message::new(Body::Ai(body), "")]);
    assert_eq!(words(&sent.messages), "a(c1) !c1");
}

#[test]
fn calls_without_an_id_get_one() {
    let call = || ToolCall::new("", "act", Arguments::default());
    let sent = repair(&[Message::ai_calling("", vec![call(), call()])]);
    assert_eq!(words(&sent.messages), "a(call-2,call-3) !call-2 !call-3");
}

#[test]
fn removal_markers_are_never_sent() {
    assert_eq!(repaired("u -m0 a"), ("u a".into(), 1));
}

/// What strict providers demand.
fn is_sound(messages: &[Message]) -> bool {
    let mut open: VecDeque<String> = VecDeque::new();
    let mut seen = HashSet::new();
    for message in messages {
        match message.tool_call_id() {
            Some(id) if open.front().is_some_and(|next| next == id) => drop(open.pop_front()),
            Some(_) => return false,
            None if !open.is_empty() || matches!(message.body, Body::Remove) => return false,
            None => open.extend(slots_of(message).iter().map(|slot| slot.id.to_owned())),
        }
        if !open.iter().all(|id| !id.is_empty()) {
            return false;
        }
        for slot in slots_of(message) {
            if !seen.insert(slot.id.to_owned()) {
                return false;
            }
        }
    }
    open.is_empty()
}

proptest! {
    #[test]
    fn any_history_becomes_sound_and_a_repaired_one_needs_no_repair(
        words in proptest::collection::vec("u|s|a|c[1-4]|c1-2|-m1|a\\(c[1-4](,c[1-4]){0,3}\\)|a\\(c1-2\\)", 0..24),
    ) {
        let input = history(&words.join(" "));
        let once = repair(&input);
        prop_assert!(is_sound(&once.messages), "{}", super::tests::words(&once.messages));
        let again = repair(&once.messages);
        prop_assert_eq!(again.repairs, vec![]);
        prop_assert_eq!(again.messages, once.messages);
        let spoken = |list: &[Message]| list.iter().filter(|m| matches!(m.body, Body::Human | Body::System | Body::Ai(_))).count();
        prop_assert_eq!(spoken(&input), spoken(&repair(&input).messages));
    }
}
