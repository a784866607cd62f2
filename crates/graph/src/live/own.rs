//! What a subgraph over its parent's state hands back: its own writes, and nothing the parent had.
//!
//! The writes are kept, not the values they made: so that what siblings wrote meanwhile is folded with
//! them and not overwritten. A checkpoint leaves out what its own deltas say already.

use super::Live;
use crate::{Change, Error, State, run::Saved, state::Rejected};
use serde_json::Value;
use std::collections::BTreeMap;

impl<S: State> Live<S> {
    /// The updates of a superstep, if they are to be handed back.
    pub(super) fn to_hand_back(&self, updates: &[S::Update]) -> Option<Vec<S::Update>> {
        self.shared.then(|| updates.to_vec())
    }

    /// Adds what was folded to what is handed back.
    pub(super) fn hand_back(&mut self, updates: &[S::Update]) -> Result<(), Rejected> {
        for (total, change) in self.total.iter_mut().zip(&self.changes) {
            *total = std::mem::take(total).then(change.clone());
        }
        S::gather(&mut self.own, updates)
    }

    /// What a checkpoint must say of it.
    pub(super) fn save_own(&self, saved: &mut Saved) -> Result<(), Error> {
        if !self.shared {
            return Ok(());
        }
        let changed = self.total.iter().zip(S::CHANNELS);
        let changed = changed.filter(|(change, _)| **change != Change::Unchanged);
        saved.changes = changed
            .map(|(change, channel)| (channel.name.to_owned(), change.clone()))
            .collect();
        saved.own = serde_json::from_str(&S::note(&self.own)?).map_err(Error::store)?;
        // New items of a list are in the deltas of the checkpoints.
        let in_deltas = |name: &str| matches!(saved.changes.get(name), Some(Change::Appended(_)));
        saved.own.retain(|name, _| !in_deltas(name));
        Ok(())
    }

    /// What was changed so far. New items come after those that the parent has now, which may be more
    /// than it had then. Called before the state is brought back.
    pub(super) fn changed_before(&mut self, changes: BTreeMap<String, Change>) {
        for (name, change) in changes {
            if let Some(channel) = crate::state::find::<S>(&name) {
                self.total[channel] = change.after(self.state.length(channel));
            }
        }
    }

    /// What is handed back of what was changed so far. Called when the state is back.
    pub(super) fn restore_own(&mut self, own: Value) -> Result<(), Error> {
        let in_deltas = self.total.iter().map(|change| match change {
            Change::Appended(from) => Change::Appended(*from),
            _ => Change::Unchanged,
        });
        self.own = self.state.since(&in_deltas.collect::<Vec<_>>());
        let others = S::update_from_json(own)?;
        // A reducer that took these writes before takes them now.
        let _ = S::gather(&mut self.own, &[others]);
        Ok(())
    }
}
