//! What a session knows of its calls: pure bookkeeping that decides who may run, without a store.
//!
//! The session holds it behind one lock and asks it in the documented order. Nothing here waits.

use crate::action::{ActionId, Evidence};
use crate::call::ToolCall;
use crate::dialect::Dialect;
use crate::loops::{LoopRule, Watch};
use crate::record::{CallRecord, Outcome};
use crate::stop::Stop;
use std::borrow::Cow;
use std::collections::HashMap;

#[derive(Debug)]
pub(crate) struct Book {
    entries: HashMap<String, Entry>,
    watch: Watch,
    next_seq: u64,
}

#[derive(Debug)]
struct Entry {
    place: Place,
    /// A caller is at it right now.
    running: bool,
    /// The loop detector has let it pass: it is not asked about this key again.
    noted: bool,
}

/// A call's place in the book: what a caller works on while it has the key.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) record: CallRecord,
    /// Whether the store has the record, in this state or an earlier one.
    pub(crate) stored: bool,
    /// Whether a write about it was begun and nobody knows how it ended.
    pub(crate) in_doubt: bool,
}

/// What the book knows of a key.
#[expect(
    clippy::large_enum_variant,
    reason = "it stands on the stack for a moment, and a box would cost every call"
)]
pub(crate) enum Known {
    /// Nothing: a call at first sight.
    No,
    /// It ended like this.
    Ended(Outcome),
    /// It was counted and cut off before it ended: it may run again, without being counted again.
    CutOff(Box<Place>),
}

/// How far a call has come.
pub(crate) enum Stands {
    /// It has an outcome.
    Ended,
    /// At its action.
    At(ActionId),
    /// It was begun, and has asked for nothing itself.
    Begun,
    /// Nobody has begun it, or somebody is at it.
    Nowhere,
}

impl Book {
    /// The book of a run that may have had an earlier life. Records come in the order of their `seq`.
    pub(crate) fn open(rule: LoopRule, dialect: Dialect, records: Vec<CallRecord>) -> Book {
        let mut book = Book {
            entries: HashMap::new(),
            watch: Watch::new(rule),
            next_seq: records
                .last()
                .map_or(1, |record| record.seq.saturating_add(1)),
        };
        for record in records {
            let key = record.key.clone();
            let call = ToolCall::native(record.tool.clone(), &record.arguments);
            let noted = got_as_far_as_loops(&record, dialect);
            let entry = Entry {
                place: Place {
                    record,
                    stored: true,
                    in_doubt: false,
                },
                running: false,
                noted: false,
            };
            book.entries.insert(key.clone(), entry);
            if noted {
                book.closes_loop(&key, &call);
            }
        }
        book
    }

    /// Looks a key up, and takes it if it may run again.
    pub(crate) fn look_up(&mut self, key: &str, call: &ToolCall) -> Result<Known, Stop> {
        let Some(entry) = self.entries.get_mut(key) else {
            return Ok(Known::No);
        };
        let record = &entry.place.record;
        if record.tool != call.name() || record.args_digest != call.digest() {
            return Err(Stop::KeyReused {
                key: key.to_owned(),
                tool: record.tool.clone(),
            });
        }
        if entry.running || entry.place.in_doubt {
            return Err(Stop::Conflict(format!("the call `{key}` is under way")));
        }
        match &record.outcome {
            Some(outcome) => Ok(Known::Ended(outcome.clone())),
            None => {
                entry.running = true;
                Ok(Known::CutOff(Box::new(entry.place.clone())))
            }
        }
    }

    /// How far a call has come that is known and that nobody is at: its outcome, or its action.
    pub(crate) fn stands(&self, key: &str, call: &ToolCall) -> Stands {
        let entry = self.entries.get(key).filter(|entry| !entry.running);
        let record = entry.map(|entry| &entry.place.record);
        let own = |record: &&CallRecord| {
            record.tool == call.name() && record.args_digest == call.digest()
        };
        match record.filter(own) {
            Some(record) if record.outcome.is_some() => Stands::Ended,
            Some(record) => record.action.map_or(Stands::Begun, Stands::At),
            None => Stands::Nowhere,
        }
    }

    /// Notes the call, if it is not noted yet, and says whether it closes a loop.
    pub(crate) fn closes_loop(&mut self, key: &str, call: &ToolCall) -> bool {
        let digest = match self.watch.rule() {
            LoopRule::Off => return false,
            LoopRule::Soft => Cow::Owned(call.soft_digest()),
            LoopRule::Exact | LoopRule::Cycle => Cow::Borrowed(call.digest()),
        };
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        if entry.noted {
            return false;
        }
        // A digest has a fixed length, so the two parts cannot run into each other.
        let closes = self.watch.note(key, format!("{digest} {}", call.name()));
        entry.noted = !closes;
        closes
    }

    /// Enters a call at first sight, as being under way, at the end of the run's order.
    pub(crate) fn enter(&mut self, mut record: CallRecord) -> Place {
        record.seq = self.next_seq;
        self.next_seq = self.next_seq.saturating_add(1);
        let place = Place {
            record,
            stored: false,
            in_doubt: false,
        };
        let entry = Entry {
            place: place.clone(),
            running: true,
            noted: false,
        };
        self.entries.insert(place.record.key.clone(), entry);
        place
    }

    /// Whether the store has to be asked about a key before it can be used again.
    pub(crate) fn is_in_doubt(&self, key: &str) -> bool {
        let entry = self.entries.get(key);
        entry.is_some_and(|entry| entry.place.in_doubt && !entry.running)
    }

    /// What the store said about a key that was in doubt.
    pub(crate) fn settle_doubt(&mut self, key: &str, stored: Option<CallRecord>) {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| !entry.running) else {
            return;
        };
        let place = &mut entry.place;
        place.in_doubt = false;
        place.stored = stored.is_some();
        match stored {
            Some(record) => place.record = record,
            // What is not saved did not happen.
            None => {
                place.record.outcome = None;
                place.record.full_output = None;
            }
        }
    }

    /// The caller is done with the key: with an outcome, if the record has one now.
    /// They keep what the book had of it until now.
    pub(crate) fn leave(&mut self, place: &mut Place) {
        if let Some(entry) = self.entries.get_mut(&place.record.key) {
            std::mem::swap(&mut entry.place, place);
            entry.running = false;
        }
    }

    /// On what an action of this step rests; nothing if it is not known of every call how the store has it.
    pub(crate) fn evidence(&self, step: u64) -> Option<Option<Evidence>> {
        let places = || self.entries.values().map(|entry| &entry.place);
        if places().any(|place| place.in_doubt) {
            return None;
        }
        Some(Evidence::of(step, places().map(|place| &place.record)))
    }

    /// All records, in the order in which they were admitted.
    pub(crate) fn records(&self) -> Vec<CallRecord> {
        let entries = self.entries.values();
        let mut records: Vec<_> = entries.map(|entry| entry.place.record.clone()).collect();
        records.sort_by_key(|record| record.seq);
        records
    }
}

/// A call that closed a loop is not noted; one that was refused only where refusals are watched.
fn got_as_far_as_loops(record: &CallRecord, dialect: Dialect) -> bool {
    use crate::stop::Failure;
    match &record.outcome {
        None => true,
        Some(Outcome::Stopped(_)) => false,
        Some(Outcome::Observed(seen)) => {
            let refused = matches!(
                seen.failure,
                Some(Failure::Denied { .. } | Failure::Missing { .. })
            );
            !refused || dialect.watches_refusals()
        }
    }
}
