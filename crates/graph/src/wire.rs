//! The JSON forms of what notes say about tasks. Part of the checkpoint format.

use crate::{
    Command, Error, State,
    checkpoint::{Note, NoteKind},
    ids::{CheckpointId, TaskId},
    node::Target,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use std::{sync::Arc, time::Duration};

/// A finished task's command.
#[derive(Deserialize)]
struct Done {
    update: Map<String, Value>,
    #[serde(default)]
    goto: Vec<Goto>,
    #[serde(default)]
    child: Option<(String, CheckpointId)>,
}

/// What there is of it besides the update.
#[derive(Serialize)]
struct Rest {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    goto: Vec<Goto>,
    #[serde(skip_serializing_if = "Option::is_none")]
    child: Option<(String, CheckpointId)>,
}

#[derive(Serialize, Deserialize)]
struct Goto {
    node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<Arc<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
}

/// Why a task failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) attempts: u32,
    /// The node that took over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) handler: Option<String>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The node returned an error or panicked.
    Error,
    /// A time limit was passed.
    Timeout,
    /// The run was cancelled while the node ran.
    Cancelled,
}

/// The key of a failure that a handler took over: it stays when the handler fails or is cancelled,
/// so that the handler is what runs again.
const HANDLED: &str = "handled";

impl Failure {
    pub(crate) fn note(&self, task: TaskId) -> Result<Note, Error> {
        let key = if self.handler.is_some() { HANDLED } else { "" };
        Ok(Note {
            task,
            kind: NoteKind::Failure,
            key: key.to_owned(),
            json: serde_json::to_string(self).map_err(Error::store)?,
        })
    }
}

pub(crate) fn write_command<S: State>(command: &Command<S>) -> Result<String, Error> {
    let goto = command.goto.iter().map(|target| Goto {
        node: target.node.to_string(),
        payload: target.payload.clone().and_then(Result::ok),
        timeout_ms: target
            .timeout
            .map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
    });
    let rest = Rest {
        goto: goto.collect(),
        child: command.child.clone(),
    };
    let rest = serde_json::to_string(&rest).map_err(Error::store)?;
    // `{"update":…` and what else there is; the update is text already.
    let mut json = format!("{{\"update\":{}", S::note(&command.update)?);
    if rest.len() > "{}".len() {
        json.push(',');
        json.push_str(&rest[1..]);
    } else {
        json.push('}');
    }
    Ok(json)
}

pub(crate) fn read_command<S: State>(json: &str) -> Result<Command<S>, Error> {
    let done: Done = serde_json::from_str(json).map_err(Error::store)?;
    let goto = done.goto.into_iter().map(|goto| Target {
        node: goto.node.into(),
        payload: goto.payload.map(Ok),
        timeout: goto.timeout_ms.map(Duration::from_millis),
    });
    Ok(Command {
        update: S::update_from_json(Value::Object(done.update))?,
        goto: goto.collect(),
        child: done.child,
    })
}

/// The update of a finished task, as readers see it: without markers.
pub(crate) fn result<S: State>(json: &str) -> Result<Value, Error> {
    S::update_to_json(&read_command::<S>(json)?.update)
}
