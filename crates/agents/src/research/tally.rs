//! What a researcher's conversation says of its work: searches, reflections, whether anything new came. Pure.
//!
//! It is counted from the messages each time, so that a researcher that goes on in another process counts the same.

use paraph_models::{Body, Message};
use std::collections::BTreeSet;

/// The tools of a researcher, by what they are for.
pub(crate) const SEARCH: &str = "web_search";
/// Writes down what it makes of what it read.
pub(crate) const THINK: &str = "think";

/// So many rounds of tools in a row that brought nothing new are enough.
const IDLE_ROUNDS: u64 = 4;

/// What was done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Searches that were made, or tried.
    pub(crate) searches: u64,
    /// Searches that came after another one without a reflection between the two.
    pub(crate) unreflected: u64,
    /// Rounds of tools.
    pub(crate) rounds: u64,
    /// Rounds of tools at the end that brought no source which was not known, and no reflection on a new one.
    pub(crate) idle: u64,
    /// Whether the newest search was not reflected on yet.
    pub(crate) owes_reflection: bool,
    /// Whether it was reminded of that.
    pub(crate) reminded: bool,
}

impl Tally {
    /// Of a researcher's conversation. `named` finds what was read in a result: a name for each text.
    pub(crate) fn of<'m>(
        messages: impl IntoIterator<Item = &'m Message>,
        named: impl Fn(&str) -> Vec<String>,
    ) -> Tally {
        let mut tally = Tally::default();
        let mut known = BTreeSet::new();
        for message in messages {
            match &message.body {
                Body::Ai(_) => tally.decided(message),
                Body::Tool(_) => {
                    let text = message.text();
                    tally.reminded |= text.contains(REMINDER);
                    let before = known.len();
                    known.extend(named(&text));
                    if known.len() > before {
                        tally.idle = 0;
                    }
                }
                _ => {}
            }
        }
        tally
    }

    fn decided(&mut self, message: &Message) {
        let calls = message.tool_calls();
        if calls.is_empty() {
            return;
        }
        self.rounds += 1;
        self.idle += 1;
        let reflects = calls.iter().any(|call| call.name == THINK);
        let searches = calls.iter().filter(|call| call.name == SEARCH).count() as u64;
        if searches > 0 {
            // Searches of one message are made at once: the first of them may owe something, the others do.
            self.unreflected += searches - 1 + u64::from(self.owes_reflection);
            self.owes_reflection = true;
        } else if reflects {
            self.owes_reflection = false;
        }
        self.searches += searches;
    }

    /// Whether it goes round in circles.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle >= IDLE_ROUNDS
    }
}

/// What stands in a search's result when the one before was not reflected on.
pub(crate) const REMINDER: &str = "[reminder: call `think` after each search, before the next one]";

#[cfg(test)]
mod tests {
    use super::*;
    use paraph_models::{Arguments, ToolCall};

    /// `s` a search that finds something new, `o` one that finds what is known, `t` a reflection, `b` both at once.
    fn conversation(form: &str) -> Vec<Message> {
        let mut messages = vec![Message::human("topic")];
        for (n, letter) in form.chars().enumerate() {
            let names: &[&str] = match letter {
                't' => &[THINK],
                'b' => &[SEARCH, THINK],
                'd' => &[SEARCH, SEARCH],
                _ => &[SEARCH],
            };
            let call = |(i, name): (usize, &&str)| {
                ToolCall::new(format!("{n}-{i}"), *name, Arguments::default())
            };
            let calls: Vec<_> = names.iter().enumerate().map(call).collect();
            let results = calls.iter().map(|call| {
                let text = match letter {
                    'o' => "src-0".to_owned(),
                    _ if call.name == SEARCH => format!("src-{n}"),
                    _ => "noted".to_owned(),
                };
                Message::tool(&call.id, text)
            });
            let results: Vec<_> = results.collect();
            messages.push(Message::ai_calling("", calls));
            messages.extend(results);
        }
        messages
    }

    fn named(text: &str) -> Vec<String> {
        let words = text.split_whitespace();
        words
            .filter(|word| word.starts_with("src-"))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn searches_reflections_and_rounds_without_news_are_counted() {
        // searches, unreflected, rounds, idle, owes
        let table = [
            ("", (0, 0, 0, 0, false)),
            ("s", (1, 0, 1, 0, true)),
            ("st", (1, 0, 2, 1, false)),
            ("sts", (2, 0, 3, 0, true)),
            ("ss", (2, 1, 2, 0, true)),
            ("sss", (3, 2, 3, 0, true)),
            ("d", (2, 1, 1, 0, true)),
            ("b", (1, 0, 1, 0, true)),
            ("bb", (2, 1, 2, 0, true)),
            ("sooo", (4, 3, 4, 3, true)),
            ("sttt", (1, 0, 4, 3, false)),
        ];
        for (form, expected) in table {
            let tally = Tally::of(&conversation(form), named);
            let counted = (
                tally.searches,
                tally.unreflected,
                tally.rounds,
                tally.idle,
                tally.owes_reflection,
            );
            assert_eq!(counted, expected, "{form}");
        }
        assert!(Tally::of(&conversation("soooo"), named).is_idle());
        assert!(!Tally::of(&conversation("sooo"), named).is_idle());
    }

    #[test]
    fn a_reminder_is_seen_in_the_conversation() {
        let mut messages = conversation("s");
        messages.push(Message::tool("x", format!("found\n{REMINDER}")));
        assert!(Tally::of(&messages, named).reminded);
        assert!(!Tally::of(&conversation("ss"), named).reminded);
    }
}
