//! A run in memory becomes checkpoints: what changed, the machine, how the thread stands; and what of them
//! is told.

use super::Live;
use crate::{
    Error, State,
    checkpoint::{Delta, Metadata, Note, Put, Source},
    event::{Event, EventData, Mode, StateView, project},
    graph::Shape,
    ids::CheckpointId,
    session::Session,
    start::next,
    state::{Change, PatchKind, json},
    threads::{Standing, ThreadStatus},
};
use serde_json::Value;

impl<S: State> Live<S> {
    /// Saves the machine as it stands under a new id, with `notes`, and tells.
    pub(crate) async fn save(
        &mut self,
        shape: &Shape<S>,
        session: &Session,
        (id, source): (CheckpointId, Source),
        notes: Vec<Note>,
    ) -> Result<(), Error> {
        let journal = &session.journal;
        if journal.store.is_none() {
            journal.tell(std::mem::take(&mut self.untold)).await;
            return Ok(());
        }
        let (parent, _) = journal.parent();
        journal.open(id);
        self.tell_values(shape, session);
        self.source = source;
        if journal.holds_back() && matches!(source, Source::Loop | Source::Input) {
            journal.tell(std::mem::take(&mut self.untold)).await;
            return Ok(());
        }
        self.tell_checkpoint(shape, session, (id, parent, source));
        self.broken = true;
        let put = self.put(shape, session, (id, source), notes)?;
        journal.put(put, std::mem::take(&mut self.untold)).await?;
        self.broken = false;
        Ok(())
    }

    /// Without a store: tells what can be told without waiting, and whether that was all.
    pub(crate) fn is_told_at_once(&mut self, shape: &Shape<S>, session: &Session) -> bool {
        if session.journal.store.is_some() {
            return false;
        }
        self.tell_values(shape, session);
        session.journal.tell_now(&mut self.untold);
        self.untold.is_empty()
    }

    fn tell_values(&mut self, shape: &Shape<S>, session: &Session) {
        if session.journal.wants(Mode::Values) {
            let state = StateView::new(self.state.clone(), shape.output.clone());
            self.tell(session, EventData::Values { state });
        }
    }

    fn tell_checkpoint(
        &mut self,
        shape: &Shape<S>,
        session: &Session,
        (id, parent, source): (CheckpointId, Option<CheckpointId>, Source),
    ) {
        if session.journal.wants(Mode::Checkpoints) {
            let tasks = self.run.tasks.iter();
            let checkpoint = EventData::Checkpoint {
                id,
                parent,
                source,
                next: tasks.map(|t| shape.topology.name(t.node)).collect(),
                state: StateView::new(self.state.clone(), shape.output.clone()),
            };
            self.tell(session, checkpoint);
        }
    }

    fn tell(&mut self, session: &Session, data: EventData) {
        self.untold.push(Event {
            // The state belongs to the superstep that has ended, as the checkpoint's metadata say.
            superstep: self.run.superstep - 1,
            ..session.event(None, data)
        });
    }

    fn put(
        &mut self,
        shape: &Shape<S>,
        session: &Session,
        (id, source): (CheckpointId, Source),
        notes: Vec<Note>,
    ) -> Result<Put, Error> {
        let mut deltas = Vec::new();
        let mut sizes = Vec::new();
        for (i, change) in self.unsaved.iter_mut().enumerate() {
            let channel = &S::CHANNELS[i];
            if *change == Change::Unchanged || channel.untracked {
                *change = Change::Unchanged;
                continue;
            }
            let patch = self
                .state
                .encode(i, change)
                .map_err(|source| json::bad(channel.name, source))?;
            *change = Change::Unchanged;
            sizes.push((i, patch.kind, patch.json.len()));
            deltas.push(Delta {
                channel: channel.name.to_owned(),
                kind: patch.kind,
                json: patch.json,
            });
        }
        for (channel, kind, bytes) in sizes {
            self.sized(channel, kind, bytes);
        }
        let mut saved = self.run.save(&shape.topology);
        self.save_own(&mut saved)?;
        saved.origin = session.origin.get().cloned();
        let (parent, expect) = session.journal.parent();
        Ok(Put {
            id,
            parent,
            expect,
            metadata: Metadata {
                source,
                superstep: self.run.superstep - 1,
                run: session.run.id,
                created_ms: session.run.clock.now_ms(),
                user: session.run.options.metadata.clone(),
            },
            machine: serde_json::to_vec(&saved).map_err(Error::store)?,
            deltas,
            notes,
            epoch: session.run.epoch,
            standing: self.standing(shape, session),
            events: Vec::new(),
        })
    }

    /// Brings to the store what a durability other than `Sync` held back, however the run stopped.
    pub(crate) async fn close(&mut self, shape: &Shape<S>, session: &Session) -> Result<(), Error> {
        let journal = &session.journal;
        if self.broken {
            self.reopen(session);
        }
        if let Some(head) = journal.head()
            && journal.saved() != Some(head)
            && journal.store.is_some()
            && !self.broken
        {
            let held = journal.take_held();
            let (parent, _) = journal.parent();
            self.untold.clear();
            self.tell_checkpoint(shape, session, (head, parent, self.source));
            let put = self.put(shape, session, (head, self.source), held)?;
            journal.put(put, std::mem::take(&mut self.untold)).await?;
        }
        journal.finish().await
    }

    /// How the thread stands from this checkpoint on; nothing in a subgraph, whose thread stands as its
    /// graph does.
    fn standing(&self, shape: &Shape<S>, session: &Session) -> Option<Standing> {
        if !session.is_root() {
            return None;
        }
        let status = match (self.run.is_over(), session.run.outside) {
            (true, _) => ThreadStatus::Idle,
            (false, true) => ThreadStatus::Interrupted,
            (false, false) => ThreadStatus::Busy,
        };
        // In the middle of a run nobody is served by the state.
        let values = session.run.outside.then(|| self.values(shape));
        Some(self.stands(shape, status, values))
    }

    /// How the thread stands when its run has come to rest.
    pub(crate) fn at_rest(&self, shape: &Shape<S>, status: ThreadStatus) -> Standing {
        self.stands(shape, status, Some(self.values(shape)))
    }

    fn stands(&self, shape: &Shape<S>, status: ThreadStatus, values: Option<Value>) -> Standing {
        Standing {
            status,
            next: next(self, shape),
            interrupts: self.run.waiting(),
            values,
        }
    }

    /// The state for the thread's row, or null if it is too long for that.
    fn values(&self, shape: &Shape<S>) -> Value {
        // What is saved of each channel says how long it is, without writing it once more.
        if self.sizes.iter().sum::<usize>() > Standing::LONGEST {
            return Value::Null;
        }
        let shown = self.done.iter().any(Option::is_some).then(|| self.shown());
        let state = shown.as_ref().unwrap_or(&self.state);
        let Ok(mut values) = project(state, shape.output.as_deref()) else {
            return Value::Null;
        };
        if let Value::Object(channels) = &mut values {
            for untracked in S::CHANNELS.iter().filter(|channel| channel.untracked) {
                channels.remove(untracked.name);
            }
        }
        let mut length = Length(0);
        match serde_json::to_writer(&mut length, &values) {
            Ok(()) if length.0 <= Standing::LONGEST => values,
            _ => Value::Null,
        }
    }

    /// Notes how long a channel is now that this was saved of it, or read.
    pub(super) fn sized(&mut self, channel: usize, kind: PatchKind, bytes: usize) {
        let size = &mut self.sizes[channel];
        *size = match kind {
            PatchKind::Whole => bytes,
            PatchKind::Append => size.saturating_add(bytes),
            // It may replace much or little: this only decides whether the state is looked at closely.
            PatchKind::Edit => bytes.max(*size),
        };
    }
}

/// Counts what is written to it.
struct Length(usize);

impl std::io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
