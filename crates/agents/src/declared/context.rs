//! How much of a conversation a model is shown: what the run is about, the newest of what came of it, and of what was
//! said before as much as fits. A call and its results are never parted. Pure.

use super::file::ContextSpec;
use paraph_models::{Body, Message, Window, estimate_message, trim};

/// The part of a conversation that is shown.
#[derive(Debug, PartialEq)]
pub(crate) struct Shown {
    /// The messages, in order.
    pub(crate) messages: Vec<Message>,
    /// Those that are left out, in order.
    pub(crate) left_out: Vec<Message>,
}

/// What these limits leave for the conversation, where so many tokens are sent beside it in any case.
///
/// # Errors
/// A sentence that names both, if nothing is left: then there is no request that keeps within the limit.
pub(crate) fn beside(limits: &ContextSpec, fixed: usize) -> Result<ContextSpec, String> {
    let max_tokens = match limits.max_tokens {
        Some(most) if most <= fixed => {
            return Err(format!(
                "instructions and tools alone take about {fixed} tokens of the {most} that `context.max_tokens` \
                 allows; nothing was sent"
            ));
        }
        most => most.map(|most| most - fixed),
    };
    Ok(ContextSpec {
        max_tokens,
        ..limits.clone()
    })
}

/// What of a conversation (without instructions) keeps within these limits. The task, which is the last message of a
/// person, is shown whatever the limits say, and so is the newest group of a call and its results.
pub(crate) fn shown(messages: Vec<Message>, limits: &ContextSpec) -> Shown {
    let by_number = within(messages, limits.max_messages, |_| 1);
    let by_tokens = within(by_number.messages, limits.max_tokens, estimate_message);
    Shown {
        messages: by_tokens.messages,
        left_out: [by_number.left_out, by_tokens.left_out].concat(),
    }
}

fn within(
    messages: Vec<Message>,
    limit: Option<usize>,
    count: impl Fn(&Message) -> usize + Copy,
) -> Shown {
    let Some(limit) = limit else {
        return Shown {
            messages,
            left_out: Vec::new(),
        };
    };
    let is_human = |message: &Message| message.body == Body::Human;
    let at = messages.iter().rposition(is_human).unwrap_or(0);
    let (before, run) = messages.split_at(at);
    let Some((task, work)) = run.split_first() else {
        return Shown {
            messages,
            left_out: Vec::new(),
        };
    };
    let room = limit.saturating_sub(count(task));
    let work_kept = newest(work, room, count);
    let used: usize = work_kept.iter().map(count).sum();
    // Where the run itself is cut, nothing older has room.
    let room = match work_kept.len() == work.len() {
        true => room.saturating_sub(used),
        false => 0,
    };
    let before_kept = match newest(before, room, count) {
        kept if kept.iter().map(count).sum::<usize>() <= room => kept,
        _ => Vec::new(),
    };
    let (before_cut, work_cut) = (
        before.len() - before_kept.len(),
        work.len() - work_kept.len(),
    );
    let left_out = before
        .iter()
        .take(before_cut)
        .chain(work.iter().take(work_cut));
    Shown {
        left_out: left_out.cloned().collect(),
        messages: [before_kept, vec![task.clone()], work_kept].concat(),
    }
}

/// The newest groups that fit; the last one in any case.
fn newest(messages: &[Message], room: usize, count: impl Fn(&Message) -> usize) -> Vec<Message> {
    let window = Window {
        target: room,
        ceiling: Some(room),
    };
    trim(messages, window, count).messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use paraph_models::{Arguments, ToolCall};

    fn call(id: &str) -> Message {
        let call = ToolCall {
            id: id.to_owned(),
            name: "think".to_owned(),
            args: Arguments::parse("{}").unwrap(),
            extra: paraph_models::Fields::new(),
        };
        Message::ai_calling("", vec![call])
    }

    /// `h` a person's message, `a` an answer, `c` a call with its result.
    fn conversation(form: &str) -> Vec<Message> {
        let mut messages = Vec::new();
        for (n, letter) in form.chars().enumerate() {
            let id = format!("{letter}{n}");
            match letter {
                'h' => messages.push(Message::human(id)),
                'a' => messages.push(Message::ai(id)),
                _ => messages.extend([call(&id), Message::tool(&id, id.clone())]),
            }
        }
        messages
    }

    fn form(messages: &[Message]) -> String {
        let letter = |message: &Message| match (&message.body, message.tool_calls().is_empty()) {
            (Body::Human, _) => 'h',
            (Body::Tool(_), _) => 'r',
            (_, true) => 'a',
            (_, false) => 'c',
        };
        messages.iter().map(letter).collect()
    }

    #[test]
    fn the_task_and_the_newest_are_shown_and_pairs_stay_together() {
        let table = [
            ("hahah", 10, "hahah", ""),
            ("hahah", 3, "hah", "ha"),
            ("hahah", 1, "h", "haha"),
            ("hahccc", 4, "hcr", "hacrcr"),
            ("hahccc", 5, "hcrcr", "hacr"),
            ("hahccc", 7, "hcrcrcr", "ha"),
            ("hcahc", 4, "ahcr", "hcr"),
            ("hcahc", 5, "ahcr", "hcr"),
            ("hcahc", 6, "crahcr", "h"),
            ("hccc", 1, "hcr", "crcr"),
            ("a", 1, "a", ""),
            ("", 1, "", ""),
        ];
        for (whole, most, kept, cut) in table {
            let limits = ContextSpec {
                max_messages: Some(most),
                ..ContextSpec::default()
            };
            let shown = shown(conversation(whole), &limits);
            assert_eq!(
                (
                    form(&shown.messages).as_str(),
                    form(&shown.left_out).as_str()
                ),
                (kept, cut),
                "{whole} {most}"
            );
        }
    }

    /// A14, langchain#34664: the meter of the context counted the messages alone.
    #[test]
    fn a14_what_is_sent_beside_the_conversation_counts_against_the_limit() {
        let limits = ContextSpec {
            max_messages: Some(9),
            max_tokens: Some(1_000),
            ..ContextSpec::default()
        };
        let left = ContextSpec {
            max_tokens: Some(400),
            ..limits.clone()
        };
        assert_eq!(beside(&limits, 600), Ok(left));
        let nothing = "instructions and tools alone take about 1000 tokens of the 1000 that \
                       `context.max_tokens` allows; nothing was sent";
        assert_eq!(beside(&limits, 1_000), Err(nothing.to_owned()));
        let by_number = ContextSpec {
            max_tokens: None,
            ..limits
        };
        assert_eq!(beside(&by_number, 1_000_000), Ok(by_number));
    }

    #[test]
    fn tokens_bound_it_too() {
        let long = |text: &str| Message::human(text.repeat(400));
        let messages = vec![long("a"), Message::ai("b"), long("c"), long("d")];
        let limits = ContextSpec {
            max_tokens: Some(300),
            ..ContextSpec::default()
        };
        let shown = shown(messages.clone(), &limits);
        assert_eq!(shown.messages, messages[1..]);
        assert_eq!(shown.left_out, messages[..1]);
    }
}
