//! What a run tells the outside: one enum of events, and the modes by which they are asked for.

use crate::{
    Name, State,
    checkpoint::{Scope, Source},
    ids::{Birth, CheckpointId, RunId, TaskId},
    run::Interrupt,
};
use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::Value;
use std::{any::Any, fmt, sync::Arc};

/// One thing that happened, already saved.
///
/// As JSON: `seq`, `run_id`, `namespace`, `superstep`, `task` where there is one, `type`, and what
/// the type brings.
#[derive(Clone, Debug)]
pub struct Event {
    /// Counts the events of one stream, from 0.
    pub seq: u64,
    /// The run.
    pub run: RunId,
    /// The thread, and the subgraph it happened in.
    pub scope: Scope,
    /// The superstep.
    pub superstep: i64,
    pub(crate) birth: Option<Birth>,
    /// What the thread is called in the identities of its tasks, if otherwise than now.
    pub(crate) origin: Option<Arc<str>>,
    /// Whether an update came from the node's cache.
    pub cached: bool,
    /// What happened.
    pub data: EventData,
}

impl Event {
    /// The task it happened in, if it did in one.
    #[must_use]
    pub fn task(&self) -> Option<TaskId> {
        let birth = self.birth?;
        let thread = self.origin.as_ref().unwrap_or(&self.scope.thread);
        Some(birth.task(thread, &self.scope.namespace))
    }
}

/// What happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventData {
    /// A superstep ended (or input was taken): the whole state.
    Values {
        /// The state, shared with the run.
        state: StateView,
    },
    /// A task finished.
    Update {
        /// Its node.
        node: Name,
        /// What it wrote, by channel.
        update: UpdateView,
    },
    /// A task asked; the run pauses when its siblings are done.
    Interrupt(Interrupt),
    /// What a node said with `ctx.emit`.
    Custom {
        /// The node.
        node: Name,
        /// Its words.
        data: Value,
    },
    /// A part of a model's message, passed through unread.
    Message(MessageEvent),
    /// A task begins.
    TaskStart {
        /// Its node.
        node: Name,
        /// What it was sent, if it was sent something.
        #[serde(skip_serializing_if = "Option::is_none")]
        payload: Option<Value>,
    },
    /// A task ended.
    TaskEnd {
        /// Its node.
        node: Name,
        /// What it wrote, if it finished.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Why it failed, if it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// What it asks, if it waits.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        interrupts: Vec<Interrupt>,
    },
    /// A checkpoint was saved.
    Checkpoint {
        /// Its id.
        id: CheckpointId,
        /// The one it follows.
        parent: Option<CheckpointId>,
        /// How it came about.
        source: Source,
        /// The nodes that are due now.
        next: Vec<Name>,
        /// The state in it.
        state: StateView,
    },
}

impl EventData {
    /// By which mode a reader asks for it; nothing for interrupts, which every reader gets.
    pub(crate) fn mode(&self) -> Option<Mode> {
        Some(match self {
            EventData::Values { .. } => Mode::Values,
            EventData::Update { .. } => Mode::Updates,
            EventData::Interrupt(_) => return None,
            EventData::Custom { .. } => Mode::Custom,
            EventData::Message(_) => Mode::Messages,
            EventData::TaskStart { .. } | EventData::TaskEnd { .. } => Mode::Tasks,
            EventData::Checkpoint { .. } => Mode::Checkpoints,
        })
    }
}

/// A part of a message that a model is writing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageEvent {
    /// The node in which the model runs.
    pub node: Name,
    /// The message.
    pub id: String,
    /// Where the message stands.
    pub phase: MessagePhase,
    /// The chunk, the usage or the error, in whatever shape the model layer gave it.
    pub payload: Value,
    /// Labels of the model call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessagePhase {
    /// The model begins.
    Start,
    /// A piece of it.
    Chunk,
    /// It is complete; the payload says what was used.
    Finish,
    /// It will not be completed.
    Error,
}

/// Which events a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The whole state after each superstep. A reader who keeps one makes the next superstep copy it.
    Values,
    /// What each task wrote, as it finishes.
    Updates,
    /// Pieces of models' messages.
    Messages,
    /// What nodes say with `ctx.emit`.
    Custom,
    /// Beginnings and ends of tasks.
    Tasks,
    /// Checkpoints as they are saved.
    Checkpoints,
    /// Tasks and checkpoints.
    Debug,
}

/// A set of modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes(u8);

impl Modes {
    pub(crate) fn of(all: &[Mode]) -> Self {
        Modes(all.iter().fold(0, |bits, mode| {
            bits | match mode {
                Mode::Debug => 1 << Mode::Tasks as u8 | 1 << Mode::Checkpoints as u8,
                mode => 1 << *mode as u8,
            }
        }))
    }

    pub(crate) fn has(self, mode: Mode) -> bool {
        self.0 & 1 << mode as u8 != 0
    }
}

/// What a task wrote, as the JSON text of an object keyed by channel. Cheap to make and to pass on;
/// read only by those who want to look inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateView(String);

impl UpdateView {
    pub(crate) fn new<S: State>(update: &S::Update) -> Result<Self, crate::Error> {
        S::update_to_text(update).map(UpdateView)
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The object. (A number beyond 64 bits loses digits here, but not in the text.)
    #[must_use]
    pub fn json(&self) -> Value {
        // It was written by us just before.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for UpdateView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<Value> for UpdateView {
    fn eq(&self, other: &Value) -> bool {
        self.json() == *other
    }
}

impl Serialize for UpdateView {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let raw: &serde_json::value::RawValue =
            serde_json::from_str(&self.0).map_err(Z::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// A state as it was at one moment, without its type. Becomes JSON only when somebody asks.
#[derive(Clone)]
pub struct StateView(Arc<dyn View>);

trait View: Send + Sync {
    fn json(&self) -> Result<Value, crate::Error>;
    fn any(&self) -> &dyn Any;
}

struct Of<S> {
    state: Arc<S>,
    /// The channels that readers may see; all, if none are named.
    output: Option<Arc<[usize]>>,
}

impl<S: State> View for Of<S> {
    fn json(&self) -> Result<Value, crate::Error> {
        project::<S>(&self.state, self.output.as_deref())
    }
    fn any(&self) -> &dyn Any {
        &*self.state
    }
}

/// The state as JSON, with the channels at `output` only.
pub(crate) fn project<S: State>(
    state: &S,
    output: Option<&[usize]>,
) -> Result<Value, crate::Error> {
    let mut json = state.to_json()?;
    if let (Some(output), Value::Object(map)) = (output, &mut json) {
        let shown: Vec<_> = output.iter().map(|&i| S::CHANNELS[i].name).collect();
        map.retain(|channel, _| shown.contains(&channel.as_str()));
    }
    Ok(json)
}

impl StateView {
    pub(crate) fn new<S: State>(state: Arc<S>, output: Option<Arc<[usize]>>) -> Self {
        StateView(Arc::new(Of { state, output }))
    }

    /// The state as a JSON object keyed by channel, as far as it is part of the graph's output.
    ///
    /// # Errors
    /// [`crate::Error::BadChannel`] when a value cannot be written as JSON.
    pub fn json(&self) -> Result<Value, crate::Error> {
        self.0.json()
    }

    /// The state itself, if it is an `S`.
    #[must_use]
    pub fn get<S: State>(&self) -> Option<&S> {
        self.0.any().downcast_ref()
    }
}

impl fmt::Debug for StateView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.json() {
            Ok(json) => json.fmt(f),
            Err(e) => write!(f, "<{e}>"),
        }
    }
}

impl Serialize for StateView {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        self.json().map_err(Z::Error::custom)?.serialize(serializer)
    }
}

impl Serialize for Event {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        Line::of(self, Some(self.seq), &self.data).serialize(serializer)
    }
}

/// An event as one object, with what its type brings in the form `D`.
#[derive(Serialize)]
pub(crate) struct Line<'a, D> {
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    run_id: RunId,
    thread_id: &'a str,
    namespace: &'a str,
    superstep: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskId>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cached: bool,
    #[serde(flatten)]
    data: D,
}

impl<'a, D: Serialize> Line<'a, D> {
    pub(crate) fn of(event: &'a Event, seq: Option<u64>, data: D) -> Self {
        Line {
            seq,
            run_id: event.run,
            thread_id: &event.scope.thread,
            namespace: &event.scope.namespace,
            superstep: event.superstep,
            task: event.task(),
            cached: event.cached,
            data,
        }
    }
}
