//! Cuts that never part a call from its results.

use proptest::prelude::*;

use super::*;
use crate::history::repair;
use crate::message::ToolCall;
use crate::raw::Arguments;

fn turn(calls: usize) -> Vec<Message> {
    let ids: Vec<String> = (0..calls).map(|n| format!("c{n}")).collect();
    let made = ids
        .iter()
        .map(|id| ToolCall::new(id, "act", Arguments::default()));
    let mut turn = vec![Message::ai_calling("", made.collect())];
    turn.extend(ids.iter().map(|id| Message::tool(id, "done")));
    turn
}

fn soft(target: usize) -> Window {
    Window {
        target,
        ceiling: None,
    }
}

/// Kept messages, dropped messages, above target.
fn cut(history: &[Message], window: Window) -> (usize, usize, bool) {
    let trimmed = trim(history, window, |_| 1);
    assert_eq!(trimmed.size, trimmed.messages.len());
    (trimmed.messages.len(), trimmed.dropped, trimmed.over_target)
}

/// A06, langchainjs#9740: a cut between a call and its results.
#[test]
fn a_cut_between_ten_parallel_calls_and_their_results_moves_so_that_none_is_parted() {
    let mut history = vec![Message::human("go")];
    history.extend(turn(10));
    assert_eq!(cut(&history, soft(6)), (11, 1, true));
    history.push(Message::human("next"));
    assert_eq!(cut(&history, soft(6)), (12, 1, true));
}

#[test]
fn a_group_that_would_break_the_ceiling_is_dropped_whole() {
    let mut history = turn(10);
    history.push(Message::human("next"));
    let window = Window {
        target: 6,
        ceiling: Some(8),
    };
    assert_eq!(cut(&history, window), (1, 11, false));
}

#[test]
fn the_newest_group_is_always_kept_and_said_to_be_too_large() {
    let window = Window {
        target: 2,
        ceiling: Some(4),
    };
    assert_eq!(cut(&turn(10), window), (11, 0, true));
}

#[test]
fn instructions_stay_and_count() {
    let mut history = vec![Message::system("be brief")];
    history.extend((0..10).map(|n| Message::human(n.to_string())));
    let trimmed = trim(&history, soft(4), |_| 1);
    assert_eq!(trimmed.messages[0].text(), "be brief");
    assert_eq!((trimmed.messages.len(), trimmed.dropped), (4, 7));
}

#[test]
fn a_history_that_fits_is_not_touched() {
    let history = turn(3);
    assert_eq!(trim(&history, soft(4), |_| 1).messages, history);
    assert_eq!(cut(&[], soft(4)), (0, 0, false));
}

proptest! {
    #[test]
    fn a_sound_history_stays_sound_wherever_it_is_cut(
        calls in proptest::collection::vec(0..5_usize, 0..12), target in 0..30_usize, ceiling in proptest::option::of(0..40_usize),
    ) {
        let mut history = Vec::new();
        for n in calls {
            history.push(Message::human("go"));
            history.extend(turn(n));
        }
        let history = repair(&history).messages;
        let trimmed = trim(&history, Window { target, ceiling }, |_| 1);
        prop_assert_eq!(repair(&trimmed.messages).repairs, vec![]);
        prop_assert!(history.ends_with(&trimmed.messages));
        prop_assert_eq!(trimmed.over_target, trimmed.size > target);
        prop_assert_eq!(trimmed.dropped + trimmed.messages.len(), history.len());
    }
}
