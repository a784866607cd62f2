//! Makes a history fit to send: every tool call is answered once, right after it, under an id of its own.
//!
//! Providers refuse a conversation in which a call has no result, and a crash, a cancelled run or a cut leaves
//! such histories behind, possibly far from the end. Called before each request; pure, so that the same history
//! is always repaired the same way. It must not run anything: what an interrupted call did is unknown.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::message::{Body, Message, ToolBody, ToolStatus};
use crate::raw::Fields;

/// What the model reads in place of a result that was never recorded.
pub const MISSING_RESULT: &str =
    "interrupted, outcome unknown: this call may or may not have taken effect";

/// A history that every provider accepts, with what had to be done to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repaired {
    /// The messages to send.
    pub messages: Vec<Message>,
    /// The repairs, in the order of the history; empty for a sound one.
    pub repairs: Vec<Repair>,
}

/// One repair of a history. Worth a line in the trace, since each tells of something lost. In JSON its name is the
/// `kind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Repair {
    /// A call without a result was given [`MISSING_RESULT`].
    Answered {
        /// The call, under the id it is sent with.
        call_id: String,
        /// The tool.
        tool: String,
    },
    /// A result was moved to its place behind its call.
    MovedResult {
        /// The call, under the id it is sent with.
        call_id: String,
    },
    /// A result whose call is not in the history, or that has a later result for the same call, was left out.
    DroppedResult {
        /// The message that was left out.
        message_id: String,
        /// The call it named.
        call_id: String,
    },
    /// A call's id was empty or in use by an earlier call and was changed, with its result's.
    RenamedCall {
        /// The id in the history.
        from: String,
        /// The id that is sent.
        to: String,
    },
    /// A removal marker, which is no turn, was left out.
    DroppedRemoval {
        /// The message the marker names.
        message_id: String,
    },
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { call_id, tool } => write!(
                f,
                "the call `{call_id}` of `{tool}` has no result: its outcome is unknown"
            ),
            Self::MovedResult { call_id } => {
                write!(
                    f,
                    "the result of `{call_id}` stood elsewhere than behind its call"
                )
            }
            Self::DroppedResult { call_id, .. } => {
                write!(
                    f,
                    "a result for `{call_id}` answers no call and was left out"
                )
            }
            Self::RenamedCall { from, to } => {
                write!(
                    f,
                    "the call id `{from}` was in use or empty and is `{to}` here"
                )
            }
            Self::DroppedRemoval { message_id } => {
                write!(
                    f,
                    "the removal of `{message_id}` is no turn and was left out"
                )
            }
        }
    }
}

/// Repairs the whole history, not just its end.
///
/// - A call without a result gets [`MISSING_RESULT`] right behind it; no call is run again.
/// - Results stand right behind their calls, in the order of the calls. A result belongs to the nearest earlier
///   call of its id; of several for one call the last counts.
/// - Call ids are unique in what is sent; two calls of one turn with one id take their results in order.
///
/// Repairing a repaired history changes nothing.
///
/// ```
/// use paraph_models::{Arguments, Message, ToolCall, repair};
/// let call = ToolCall::new("c1", "refund", Arguments::default());
/// let broken = [Message::human("Refund me"), Message::ai_calling("", vec![call]), Message::human("Hello?")];
/// let repaired = repair(&broken);
/// assert_eq!(repaired.messages[2].tool_call_id(), Some("c1"));
/// assert_eq!(repaired.repairs.len(), 1);
/// ```
pub fn repair(history: &[Message]) -> Repaired {
    let mut desk = Desk::default();
    desk.assign(history);
    for (at, message) in history.iter().enumerate() {
        desk.take(at, message, history);
    }
    desk.done
}

/// One call of the history and the position of the result that counts.
struct Slot<'a> {
    id: &'a str,
    tool: &'a str,
    result: Option<usize>,
}

#[derive(Default)]
struct Desk<'a> {
    /// The calls of each model message, by its position.
    slots: HashMap<usize, Vec<Slot<'a>>>,
    /// Positions of results that count.
    used: HashSet<usize>,
    /// Outgoing call ids.
    ids: HashSet<String>,
    done: Repaired,
}

impl<'a> Desk<'a> {
    /// Finds for each call the result that counts.
    fn assign(&mut self, history: &'a [Message]) {
        // For each call id the calls of the nearest message that uses it, still waiting for their result.
        let mut waiting: HashMap<&str, VecDeque<(usize, usize)>> = HashMap::new();
        for (at, message) in history.iter().enumerate() {
            if let Body::Ai(_) = message.body {
                let slots = slots_of(message);
                let mut here: HashMap<&str, VecDeque<(usize, usize)>> = HashMap::new();
                for (n, slot) in slots.iter().enumerate() {
                    here.entry(slot.id).or_default().push_back((at, n));
                }
                waiting.extend(here);
                self.slots.insert(at, slots);
            }
            let Some(queue) = message.tool_call_id().and_then(|id| waiting.get_mut(id)) else {
                continue;
            };
            // The last open call of an id stays in its queue, so that a later result replaces an earlier one.
            let target = if queue.len() > 1 {
                queue.pop_front()
            } else {
                queue.front().copied()
            };
            if let Some((owner, n)) = target
                && let Some(slot) = self.slots.get_mut(&owner).and_then(|s| s.get_mut(n))
                && let Some(earlier) = slot.result.replace(at)
            {
                self.used.remove(&earlier);
            }
            self.used.insert(at);
        }
    }

    fn take(&mut self, at: usize, message: &'a Message, history: &'a [Message]) {
        match &message.body {
            Body::Human | Body::System => self.done.messages.push(message.clone()),
            Body::Remove => self.done.repairs.push(Repair::DroppedRemoval {
                message_id: message.id.clone(),
            }),
            // Results that count are written behind their calls.
            Body::Tool(_) if self.used.contains(&at) => {}
            Body::Tool(tool) => self.done.repairs.push(Repair::DroppedResult {
                message_id: message.id.clone(),
                call_id: tool.tool_call_id.clone(),
            }),
            Body::Ai(_) => self.take_turn(at, message, history),
        }
    }

    /// Writes a model message with its calls renamed where needed, and all its results.
    fn take_turn(&mut self, at: usize, message: &'a Message, history: &'a [Message]) {
        let slots = self.slots.remove(&at).unwrap_or_default();
        let ids: Vec<String> = slots.iter().map(|slot| self.unique(slot.id)).collect();
        let mut turn = message.clone();
        if let Body::Ai(ai) = &mut turn.body {
            let valid = ai.tool_calls.iter_mut().map(|call| &mut call.id);
            let invalid = ai.invalid_tool_calls.iter_mut().map(|call| &mut call.id);
            for (place, id) in valid.chain(invalid).zip(&ids) {
                place.clone_from(id);
            }
        }
        let turn_id = turn.id.clone();
        self.done.messages.push(turn);
        let mut previous = at;
        for (slot, id) in slots.iter().zip(ids) {
            match slot
                .result
                .and_then(|place| Some((place, history.get(place)?)))
            {
                Some((place, result)) => {
                    let between = history.get(at + 1..place).unwrap_or_default();
                    if place < previous || between.iter().any(|m| m.tool_call_id().is_none()) {
                        let call_id = id.clone();
                        self.done.repairs.push(Repair::MovedResult { call_id });
                    }
                    previous = previous.max(place);
                    self.push_result(result, id);
                }
                None => self.push_missing(&turn_id, slot.tool, id),
            }
        }
    }

    fn push_result(&mut self, result: &Message, call_id: String) {
        let mut result = result.clone();
        if let Body::Tool(tool) = &mut result.body {
            tool.tool_call_id = call_id;
        }
        self.done.messages.push(result);
    }

    fn push_missing(&mut self, turn_id: &str, tool: &str, call_id: String) {
        self.done.repairs.push(Repair::Answered {
            call_id: call_id.clone(),
            tool: tool.to_owned(),
        });
        // The id follows from the call, so that the same history is always repaired into the same messages.
        self.done.messages.push(Message {
            id: format!("{turn_id}:{call_id}:missing"),
            body: Body::Tool(ToolBody {
                tool_call_id: call_id,
                status: ToolStatus::Error,
                artifact: None,
            }),
            content: MISSING_RESULT.into(),
            name: Some(tool.to_owned()).filter(|tool| !tool.is_empty()),
            additional_kwargs: Fields::new(),
            response_metadata: Fields::new(),
            extra: Fields::new(),
        });
    }

    /// The id itself the first time, then `id-2`, `id-3`, …
    fn unique(&mut self, id: &str) -> String {
        let base = if id.is_empty() { "call" } else { id };
        let mut name = base.to_owned();
        let mut n = 1_usize;
        while self.ids.contains(&name) || (n == 1 && id.is_empty()) {
            n += 1;
            name = format!("{base}-{n}");
        }
        self.ids.insert(name.clone());
        if name != id {
            self.done.repairs.push(Repair::RenamedCall {
                from: id.to_owned(),
                to: name.clone(),
            });
        }
        name
    }
}

/// The calls of a model message, valid ones first, as they are sent.
fn slots_of(message: &Message) -> Vec<Slot<'_>> {
    let valid = message.tool_calls().iter().map(|call| Slot {
        id: &call.id,
        tool: &call.name,
        result: None,
    });
    let invalid = message.invalid_tool_calls().iter().map(|call| Slot {
        id: &call.id,
        tool: call.name.as_deref().unwrap_or_default(),
        result: None,
    });
    valid.chain(invalid).collect()
}

#[cfg(test)]
mod tests;
