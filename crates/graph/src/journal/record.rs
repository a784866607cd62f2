//! What a run writes into its thread's log: each event as the text that a [`LogEntry`] holds, in the order
//! of telling.
//!
//! Called by the journal, which hands the entries over with what they tell of. There is one [`Log`] for a
//! run with all its subgraphs, and none where the store keeps no events.

use crate::{
    Name,
    checkpoint::{Delta, Source},
    event::{Event, EventData, Line, MessageEvent, MessagePhase, Mode, Modes},
    ids::CheckpointId,
    log::LogEntry,
    session::lock,
};
use serde::Serialize;
use serde_json::{Value, value::RawValue};
use std::{collections::BTreeMap, sync::Mutex};

/// Values at least this long, in bytes, are not repeated if the checkpoint has them.
const WORTH: usize = 256;
/// How many bytes may wait before they are saved on their own.
const LONG: usize = 256 * 1024;
/// How many bytes may wait where nothing is saved before the end ([`crate::Durability::Exit`]). What nodes
/// and models say beyond that is left out of the log.
const LONGEST: usize = 16 * 1024 * 1024;
/// How many pieces of a message become one entry.
const JOINED: usize = 256;

/// What a run logs, and what of it waits to be saved.
pub(crate) struct Log {
    modes: Modes,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    entries: Vec<LogEntry>,
    bytes: usize,
    /// Pieces of one message that came one after the other.
    chunks: Option<Box<Chunks>>,
    /// Whether something was left out.
    full: bool,
}

struct Chunks {
    first: Event,
    message: MessageEvent,
    payloads: Vec<Value>,
    created_ms: u64,
}

/// What the log has in other words than readers.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Kept<'a> {
    Update {
        node: &'a Name,
        update: BTreeMap<String, &'a RawValue>,
    },
    Message {
        node: &'a Name,
        id: &'a str,
        phase: MessagePhase,
        payloads: &'a [Value],
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        tags: &'a [String],
    },
    Checkpoint {
        id: CheckpointId,
        parent: Option<CheckpointId>,
        source: Source,
        next: &'a [Name],
    },
}

impl Log {
    /// For these modes; nothing, if nothing is to be kept.
    pub(crate) fn of(modes: &[Mode]) -> Option<Self> {
        let kept: Vec<Mode> = modes
            .iter()
            .filter(|mode| **mode != Mode::Values)
            .copied()
            .collect();
        (!kept.is_empty()).then(|| Log {
            modes: Modes::of(&kept),
            waiting: Mutex::default(),
        })
    }

    pub(crate) fn keeps(&self, mode: Mode) -> bool {
        self.modes.has(mode)
    }

    /// Whether so much waits that it should be saved on its own.
    pub(crate) fn is_long(&self) -> bool {
        lock(&self.waiting).bytes > LONG
    }

    /// Adds events, as far as they are to be kept, for the next that is saved.
    pub(crate) fn record(&self, events: &[Event], now_ms: u64) {
        let mut waiting = lock(&self.waiting);
        for event in events {
            self.add(&mut waiting, event, &[], now_ms);
        }
    }

    /// Adds events, and takes all that waits, to be saved now together with `deltas`. Under one lock: what
    /// names the pieces of a checkpoint must not be saved with another's.
    pub(crate) fn take_with(
        &self,
        events: &[Event],
        deltas: &[Delta],
        now_ms: u64,
    ) -> Vec<LogEntry> {
        let mut waiting = lock(&self.waiting);
        for event in events {
            self.add(&mut waiting, event, deltas, now_ms);
        }
        waiting.take()
    }

    fn add(&self, waiting: &mut Waiting, event: &Event, deltas: &[Delta], now_ms: u64) {
        let mode = event.data.mode().unwrap_or(Mode::Updates);
        if !self.keeps(mode) {
            return;
        }
        if waiting.bytes > LONGEST && matches!(mode, Mode::Custom | Mode::Messages) {
            if !std::mem::replace(&mut waiting.full, true) {
                tracing::warn!(run = %event.run, "the log leaves out what is said until the run is saved");
            }
            return;
        }
        if let EventData::Message(message) = &event.data
            && message.phase == MessagePhase::Chunk
        {
            return waiting.chunk(event, message, now_ms);
        }
        waiting.close_chunks();
        match entry(event, deltas, now_ms) {
            Ok(entry) => waiting.push(entry),
            // Each is text or JSON values, which can be written.
            Err(error) => tracing::warn!(%error, "an event cannot be kept"),
        }
    }

    /// All that waits, to be saved now.
    pub(crate) fn take(&self) -> Vec<LogEntry> {
        lock(&self.waiting).take()
    }
}

impl Waiting {
    fn take(&mut self) -> Vec<LogEntry> {
        self.close_chunks();
        self.bytes = 0;
        std::mem::take(&mut self.entries)
    }

    fn push(&mut self, entry: LogEntry) {
        self.bytes += entry.json.len();
        self.entries.push(entry);
    }

    fn chunk(&mut self, event: &Event, message: &MessageEvent, now_ms: u64) {
        let joins = self.chunks.as_ref().is_some_and(|open| {
            open.payloads.len() < JOINED
                && (open.first.birth, open.first.superstep) == (event.birth, event.superstep)
                && open.first.scope == event.scope
                && (&open.message.node, &open.message.id) == (&message.node, &message.id)
                && open.message.tags == message.tags
        });
        if !joins {
            self.close_chunks();
        }
        let open = self.chunks.get_or_insert_with(|| {
            Box::new(Chunks {
                first: event.clone(),
                message: message.clone(),
                payloads: Vec::new(),
                created_ms: now_ms,
            })
        });
        open.payloads.push(message.payload.clone());
    }

    fn close_chunks(&mut self) {
        let Some(open) = self.chunks.take() else {
            return;
        };
        let MessageEvent {
            node,
            id,
            phase,
            tags,
            ..
        } = &open.message;
        let json = match open.payloads.as_slice() {
            [_] => serde_json::to_string(&Line::of(&open.first, None, &open.first.data)),
            payloads => {
                let joined = Kept::Message {
                    node,
                    id,
                    phase: *phase,
                    payloads,
                    tags,
                };
                serde_json::to_string(&Line::of(&open.first, None, joined))
            }
        };
        match json {
            Ok(json) => self.push(LogEntry {
                run: open.first.run,
                namespace: open.first.scope.namespace.to_string(),
                created_ms: open.created_ms,
                json,
                same: Vec::new(),
            }),
            Err(error) => tracing::warn!(%error, "a message cannot be kept"),
        }
    }
}

fn entry(event: &Event, deltas: &[Delta], now_ms: u64) -> Result<LogEntry, serde_json::Error> {
    let mut same = Vec::new();
    let json = match &event.data {
        EventData::Update { node, update } if update.as_str().len() >= WORTH => {
            let mut channels: BTreeMap<String, &RawValue> = serde_json::from_str(update.as_str())?;
            channels.retain(|name, value| {
                let saved = value.get().len() >= WORTH
                    && deltas
                        .iter()
                        .any(|d| d.channel == *name && d.json == value.get().as_bytes());
                if saved {
                    same.push(name.clone());
                }
                !saved
            });
            let update = Kept::Update {
                node,
                update: channels,
            };
            serde_json::to_string(&Line::of(event, None, update))?
        }
        EventData::Checkpoint {
            id,
            parent,
            source,
            next,
            ..
        } => {
            let checkpoint = Kept::Checkpoint {
                id: *id,
                parent: *parent,
                source: *source,
                next,
            };
            serde_json::to_string(&Line::of(event, None, checkpoint))?
        }
        data => serde_json::to_string(&Line::of(event, None, data))?,
    };
    Ok(LogEntry {
        run: event.run,
        namespace: event.scope.namespace.to_string(),
        created_ms: now_ms,
        json,
        same,
    })
}
