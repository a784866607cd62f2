//! Cuts a history down to its newest part without ever parting a call from its results.
//!
//! Called before a request when a conversation grows too long. Pure; the caller brings the counter.

use crate::message::{Body, Message};

/// How much of a history to keep, in whatever unit the counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Keep about this much.
    pub target: usize,
    /// Never keep more than this, except for the newest group alone. `None`: a group on the border is kept whole.
    pub ceiling: Option<usize>,
}

/// The newest part of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Trimmed {
    /// The leading system messages and the newest groups, in order.
    pub messages: Vec<Message>,
    /// How many messages were left out.
    pub dropped: usize,
    /// The size of what was kept.
    pub size: usize,
    /// Whether that is above [`Window::target`], because a group could not be parted.
    pub over_target: bool,
}

/// Keeps leading system messages and as many of the newest messages as fit.
///
/// A model's message with calls and the results that follow it are one group. The cut never falls into one: a group
/// on the border of the target is kept whole if [`Window::ceiling`] allows it. The newest group is always kept.
/// What is kept never starts with a tool's result, so a history that [`repair`](crate::repair) made sound stays sound.
///
/// ```
/// use paraph_models::{Message, Window, trim};
/// let history: Vec<_> = (0..10).map(|n| Message::human(n.to_string())).collect();
/// let kept = trim(&history, Window { target: 3, ceiling: None }, |_| 1);
/// assert_eq!((kept.messages.len(), kept.dropped), (3, 7));
/// ```
pub fn trim(
    history: &[Message],
    window: Window,
    mut count: impl FnMut(&Message) -> usize,
) -> Trimmed {
    let is_system = |message: &&Message| matches!(message.body, Body::System);
    let head = history.iter().take_while(is_system).count();
    let (system, rest) = history.split_at(head);
    let mut size = total(system, &mut count);
    let mut start = rest.len();
    while start > 0 {
        let group_start = group_before(rest, start);
        let group = rest.get(group_start..start).unwrap_or_default();
        let newest = start == rest.len();
        let with_group = size.saturating_add(total(group, &mut count));
        let on_border = group.len() > 1
            && size < window.target
            && window.ceiling.is_none_or(|ceiling| with_group <= ceiling);
        if with_group > window.target && !newest && !on_border {
            break;
        }
        size = with_group;
        start = group_start;
    }
    // Orphaned results at the very start have no call to stand behind.
    let orphans = rest.iter().skip(start).take_while(is_result).count();
    if orphans > 0 && start + orphans < rest.len() {
        let lost = rest.get(start..start + orphans).unwrap_or_default();
        size = size.saturating_sub(total(lost, &mut count));
        start += orphans;
    }
    let kept = rest.iter().skip(start);
    Trimmed {
        messages: system.iter().chain(kept).cloned().collect(),
        dropped: start,
        size,
        over_target: size > window.target,
    }
}

fn total(messages: &[Message], count: &mut impl FnMut(&Message) -> usize) -> usize {
    let sizes = messages.iter().map(count);
    sizes.fold(0, usize::saturating_add)
}

/// Where the group that ends at `end` starts: results reach back to the message before them.
fn group_before(rest: &[Message], end: usize) -> usize {
    let before = rest.iter().take(end).rev();
    let results = before.take_while(is_result).count();
    let start = end - results;
    let called = start
        .checked_sub(1)
        .and_then(|at| rest.get(at))
        .is_some_and(Message::is_ai);
    match (results, called) {
        (0, _) => end - 1,
        (_, true) => start - 1,
        (_, false) => start,
    }
}

fn is_result(message: &&Message) -> bool {
    matches!(message.body, Body::Tool(_))
}

#[cfg(test)]
mod tests;
