//! How a conversation grows: the rules of `add_messages`, and a plain model to compare with.

use proptest::prelude::*;

use super::*;

fn message(id: &str, text: &str) -> Message {
    Message {
        id: id.into(),
        ..Message::human(text)
    }
}

/// `id:text` pairs; `-id` removes, `*` removes all.
fn batch(words: &str) -> Vec<Message> {
    let read = |word: &str| match word.split_once(':') {
        Some((id, text)) => message(id, text),
        None if word == "*" => Message::remove_all(),
        None => Message::remove(word.trim_start_matches('-')),
    };
    words.split_whitespace().map(read).collect()
}

fn words(messages: &Messages) -> String {
    let words: Vec<String> = messages
        .iter()
        .map(|m| format!("{}:{}", m.id, m.text()))
        .collect();
    words.join(" ")
}

fn edit(edited: &[usize], appended_from: usize) -> Edit {
    Edit {
        edited: edited.to_vec(),
        appended_from,
        replaced: false,
    }
}

#[test]
fn adding_follows_the_rules_of_add_messages_and_says_what_changed() {
    let table = [
        // before, added, after, edit
        ("", "a:1 b:2", "a:1 b:2", edit(&[], 0)),
        ("a:1", "b:2", "a:1 b:2", edit(&[], 1)),
        ("a:1 b:2", "", "a:1 b:2", edit(&[], 2)),
        ("a:1 b:2 c:3", "b:new", "a:1 b:new c:3", edit(&[1], 3)),
        (
            "a:1 b:2",
            "b:x c:3 a:y b:z",
            "a:y b:z c:3",
            edit(&[0, 1], 2),
        ),
        ("a:1", "b:1 b:2 b:3", "a:1 b:3", edit(&[], 1)),
        ("a:1 b:2", "-a", "b:2", Edit::whole()),
        ("a:1 b:2", "-a a:again", "a:again b:2", edit(&[0], 2)),
        ("a:1 b:2", "a:x -a", "b:2", Edit::whole()),
        ("a:1", "b:2 -b", "a:1", Edit::whole()),
        ("a:1 b:2", "-a -a", "b:2", Edit::whole()),
        ("a:1 b:2", "c:3 * d:4 d:5", "d:5", Edit::whole()),
        ("a:1", "* b:2 * c:3", "c:3", Edit::whole()),
        ("a:1", "*", "", Edit::whole()),
    ];
    for (before, added, after, expected) in table {
        let mut messages = Messages::from(batch(before));
        let edit = messages.add(batch(added)).unwrap();
        assert_eq!(
            (words(&messages).as_str(), edit),
            (after, expected),
            "{before} + {added}"
        );
    }
}

#[test]
fn a_removal_of_an_unknown_id_is_an_error_and_changes_nothing() {
    for added in ["a:changed b:2 -zz", "-zz", "* a:2 -b"] {
        let mut messages = Messages::from(batch("a:1"));
        let before = messages.clone();
        let error = messages.add(batch(added)).unwrap_err();
        assert!(matches!(error, Error::UnknownMessage { .. }), "{error}");
        assert_eq!(messages, before, "{added}");
        messages.add(batch("b:2")).unwrap();
        assert_eq!(words(&messages), "a:1 b:2");
    }
}

#[test]
fn ids_are_found_by_index_after_removals_too() {
    let mut messages = Messages::from(batch("a:1 b:2 c:3"));
    messages.add(batch("-a")).unwrap();
    let found = messages.add(batch("c:new")).unwrap();
    assert_eq!(
        (words(&messages).as_str(), found),
        ("b:2 c:new", edit(&[1], 2))
    );
}

#[test]
fn messages_are_a_plain_json_array_and_read_one_bare_message_too() {
    let two =
        r#"[{"type":"human","content":"x","id":"a"},{"type":"remove","content":"","id":"b"}]"#;
    let messages: Messages = serde_json::from_str(two).unwrap();
    assert_eq!(serde_json::to_string(&messages).unwrap(), two);
    for one in [
        r#""x""#,
        r#"{"role":"user","content":"x"}"#,
        r#"["x"]"#,
        r#"[["user","x"]]"#,
    ] {
        let messages: Messages = serde_json::from_str(one).unwrap();
        assert_eq!(
            (messages.len(), messages[0].text().as_ref()),
            (1, "x"),
            "{one}"
        );
    }
}

#[test]
fn exact_digits_survive_a_bare_message() {
    let bare = r#"{"type":"ai","content":"","id":"m","tool_calls":[{"name":"f","args":{"n":99999999999999999999999},"id":"c","type":"tool_call"}]}"#;
    let messages: Messages = serde_json::from_str(bare).unwrap();
    assert_eq!(
        serde_json::to_string(&messages).unwrap(),
        format!("[{bare}]")
    );
}

/// The same rules without an index.
fn slow_add(list: &mut Vec<Message>, new: &[Message]) {
    let mut removed = Vec::new();
    for message in new {
        match list.iter().position(|m| m.id == message.id) {
            Some(_) if is_removal(message) => removed.push(message.id.clone()),
            Some(at) => {
                removed.retain(|id| *id != message.id);
                list[at] = message.clone();
            }
            None => list.push(message.clone()),
        }
    }
    list.retain(|m| !removed.contains(&m.id));
}

fn any_batch() -> impl Strategy<Value = Vec<(u8, u8, bool)>> {
    proptest::collection::vec((0..12_u8, any::<u8>(), proptest::bool::weighted(0.2)), 0..8)
}

proptest! {
    #[test]
    fn any_row_of_batches_gives_what_a_plain_scan_gives(batches in proptest::collection::vec(any_batch(), 0..12)) {
        let mut messages = Messages::new();
        let mut model: Vec<Message> = Vec::new();
        for batch in batches {
            let mut known: HashSet<String> = model.iter().map(|m| m.id.clone()).collect();
            let mut new = Vec::new();
            for (id, text, remove) in batch {
                let id = id.to_string();
                if remove && known.contains(&id) {
                    new.push(Message::remove(id));
                } else {
                    known.insert(id.clone());
                    new.push(message(&id, &text.to_string()));
                }
            }
            let before = messages.clone().into_vec();
            let edit = messages.add(new.clone()).unwrap();
            slow_add(&mut model, &new);
            prop_assert_eq!(messages.as_slice(), model.as_slice());
            if !edit.replaced {
                // A store that applies the edit to what it has must arrive at the same list.
                let mut stored = before;
                for at in edit.edited {
                    stored[at] = messages[at].clone();
                }
                stored.extend_from_slice(&messages[edit.appended_from..]);
                prop_assert_eq!(stored.as_slice(), messages.as_slice());
            }
        }
    }

    #[test]
    fn without_removals_two_batches_are_one(first in any_batch(), second in any_batch()) {
        let make = |batch: &[(u8, u8, bool)]| -> Vec<Message> {
            batch.iter().map(|(id, text, _)| message(&id.to_string(), &text.to_string())).collect()
        };
        let (first, second) = (make(&first), make(&second));
        let mut apart = Messages::new();
        apart.add(first.clone()).unwrap();
        apart.add(second.clone()).unwrap();
        let mut together = Messages::new();
        together.add(first.into_iter().chain(second)).unwrap();
        // Ids the generator repeats make `first` hold messages with other random bodies, so texts are compared.
        prop_assert_eq!(words(&apart), words(&together));
    }
}
