//! Bringing a saved run back: the state from its pieces, the machine, and what its tasks had left.

use super::Live;
use crate::{
    Error, Interrupt, State,
    attempt::Tried,
    checkpoint::{Loaded, Note, NoteKind, Source},
    graph::Shape,
    ids::TaskId,
    run::{Failed, Run, Saved, Status},
    session::{Session, lock},
    wire,
};
use std::{collections::HashMap, sync::Arc};

impl<S: State> Live<S> {
    /// Brings a saved run back.
    pub(crate) fn restore(
        shape: &Shape<S>,
        session: &Session,
        base: Option<Arc<S>>,
        loaded: Loaded,
    ) -> Result<Self, Error> {
        let corrupt = |why: String| Error::Corrupt {
            thread: session.scope().to_string(),
            checkpoint: loaded.id,
            why,
        };
        let mut saved: Saved =
            serde_json::from_slice(&loaded.machine).map_err(|e| corrupt(e.to_string()))?;
        let changes = std::mem::take(&mut saved.changes);
        let own = std::mem::take(&mut saved.own);
        if let Some(origin) = saved.origin.take() {
            // All checkpoints of a thread have the same.
            let _ = session.origin.set(origin);
        }
        let mut live = match base {
            Some(base) => Live::over(base),
            None => Live::new(Arc::default()),
        };
        live.run = Run::restore(&shape.topology, saved).map_err(|node| Error::UnknownNode {
            graph: shape.name.clone(),
            node,
        })?;
        live.reset_tasks();
        live.changed_before(changes);
        live.decode(&loaded, &corrupt)?;
        if live.shared {
            live.restore_own(own.into())?;
        }
        session.journal.at(loaded.id);
        live.recall(shape, session, &loaded.notes, &corrupt)?;
        let is_next = loaded.metadata.source == Source::Loop && loaded.notes.is_empty();
        live.untouched_since = loaded.parent.filter(|_| is_next);
        Ok(live)
    }

    fn decode(&mut self, loaded: &Loaded, corrupt: &dyn Fn(String) -> Error) -> Result<(), Error> {
        // What was saved under an older name comes first: what followed it has the new one.
        let is_old = |name: &str| !S::CHANNELS.iter().any(|c| c.name == name);
        let (old, new): (Vec<_>, Vec<_>) = loaded.channels.iter().partition(|(n, _)| is_old(n));
        for (name, pieces) in old.into_iter().chain(new) {
            let Some(channel) = crate::state::find::<S>(name) else {
                let known = crate::state::known(S::CHANNELS);
                return Err(corrupt(format!(
                    "it has a channel `{name}`, which the state does not (known: {known})"
                )));
            };
            let state = Arc::make_mut(&mut self.state);
            for piece in pieces {
                state
                    .decode(channel, piece.kind, &piece.json)
                    .map_err(|e| corrupt(format!("channel `{name}`: {e}")))?;
            }
            for piece in pieces {
                self.sized(channel, piece.kind, piece.json.len());
            }
            self.written[channel] = true;
            if S::CHANNELS[channel].ephemeral {
                self.dirty.push(channel);
            }
        }
        Ok(())
    }

    /// Reads what tasks left on the checkpoint.
    fn recall(
        &mut self,
        shape: &Shape<S>,
        session: &Session,
        notes: &[Note],
        corrupt: &dyn Fn(String) -> Error,
    ) -> Result<(), Error> {
        let ids = self.run.tasks.iter().enumerate();
        let tasks: HashMap<TaskId, usize> = ids.map(|(i, t)| (session.task(t.birth), i)).collect();
        let mut memos = HashMap::new();
        for note in notes {
            if note.kind == NoteKind::Pause {
                self.passed_breakpoint = true;
                continue;
            }
            if note.kind == NoteKind::Answer {
                let answer =
                    serde_json::from_str(&note.json).map_err(|e| corrupt(e.to_string()))?;
                let mut answers = lock(&session.run.answers);
                if session.is_root() {
                    answers.insert(note.key.clone(), answer);
                    lock(&session.run.fresh).insert(note.key.clone());
                } else {
                    // The root may have been given another answer since.
                    answers.entry(note.key.clone()).or_insert(answer);
                }
            }
            // A note of a task that is gone belongs to what `update_as` dropped.
            let Some(&i) = tasks.get(&note.task) else {
                continue;
            };
            let bad = |e: serde_json::Error| corrupt(format!("a note of task {}: {e}", note.task));
            match note.kind {
                NoteKind::Done => {
                    let command = wire::read_command::<S>(&note.json)?;
                    if let Some((namespace, _)) = &command.child {
                        lock(&session.callers).insert(namespace.clone(), note.task);
                    }
                    self.done[i] = Some(command);
                    self.run.tasks[i].status = Status::Done;
                }
                NoteKind::Question => {
                    let asked: Vec<Interrupt> = serde_json::from_str(&note.json).map_err(bad)?;
                    if session.is_root() {
                        // What is asked after its answer was looked at waits for another one.
                        let mut fresh = lock(&session.run.fresh);
                        fresh.retain(|id| asked.iter().all(|q| q.id != *id));
                    }
                    self.run.tasks[i].status = Status::Waiting(asked);
                }
                NoteKind::Answer => self.run.tasks[i].status = Status::Due,
                NoteKind::Memo => {
                    let json = serde_json::from_str(&note.json).map_err(bad)?;
                    memos.insert((note.task, note.key.clone()), json);
                }
                NoteKind::Retry => {
                    self.tried[i] = serde_json::from_str(&note.json).map_err(bad)?;
                    self.run.tasks[i].status = Status::Due;
                }
                NoteKind::Failure => {
                    let failure: wire::Failure = serde_json::from_str(&note.json).map_err(bad)?;
                    self.failed(shape, i, failure);
                }
                NoteKind::Pause => {}
            }
        }
        *lock(&session.memos) = memos;
        Ok(())
    }

    /// A failure whose handler had been named before the crash goes on with the handler.
    fn failed(&mut self, shape: &Shape<S>, task: usize, failure: wire::Failure) {
        if failure.attempts > 0 {
            self.tried[task] = Tried::default();
        }
        let Some(handler) = failure.handler.and_then(|h| shape.topology.find(&h)) else {
            return;
        };
        let failed = Failed {
            node: shape.topology.name(self.run.tasks[task].node),
            message: failure.message,
            attempts: failure.attempts,
        };
        self.hand_over(task, handler, failed);
    }

    /// From here on `handler` runs in place of the task's node.
    pub(crate) fn hand_over(&mut self, task: usize, handler: usize, failed: Failed) {
        let task = &mut self.run.tasks[task];
        task.failed = Some(failed);
        task.node = handler;
    }
}
