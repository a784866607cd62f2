//! A superstep that could not be closed, where nothing is saved before the end of a run: what was finished
//! before it, and in it, is saved all the same.
//!
//! With the other durabilities the store has it already. Here the state in memory is the only one, and what
//! the tasks wrote may be folded into it: so the superstep is saved as open again, on the state as it is,
//! with its tasks done and what is not folded in yet as their updates.

use super::Live;
use crate::{Command, Error, State, checkpoint::Note, run::Run, session::Session, state::Rejected};
use serde_json::Value;

/// A superstep that is being closed, as it was when its tasks were done.
pub(super) struct Opened<S: State> {
    run: Run,
    done: Vec<Option<Command<S>>>,
    /// Per task the channels that it wrote and that are not folded in yet; nothing while it is not known
    /// how far the folding came.
    left: Option<Vec<Vec<usize>>>,
}

impl<S: State> Opened<S> {
    pub(super) fn of(live: &Live<S>) -> Self {
        Opened {
            run: live.run.clone(),
            done: live.done.clone(),
            left: None,
        }
    }

    /// How the folding of `updates` came out; what was folded in is no longer in them.
    pub(super) fn is_folded(&mut self, folded: Result<&(), &Rejected>, updates: &[S::Update]) {
        let mut left: Vec<Vec<usize>> = updates.iter().map(S::writes).collect();
        if let Err(Rejected::Refused {
            channel, writer, ..
        }) = folded
            && let Some(left) = left.get_mut(*writer)
        {
            // The write that was refused has been handed to the reducer and is nowhere else.
            left.extend(S::CHANNELS.iter().position(|c| c.name == *channel));
        }
        self.left = Some(left);
    }
}

impl<S: State> Live<S> {
    /// Brings the superstep back that could not be closed, if its checkpoint is not saved yet.
    pub(super) fn reopen(&mut self, session: &Session) {
        let Some(opened) = self.opened.take() else {
            return;
        };
        let unsaved = session.journal.head() != session.journal.saved();
        let refused = opened
            .left
            .as_ref()
            .is_some_and(|left| left.iter().any(|channels| !channels.is_empty()));
        // What a subgraph hands back is not gathered in part.
        if !unsaved || (self.shared && refused) {
            return;
        }
        let Some(left) = opened.left else { return };
        let births = opened.run.tasks.iter().map(|task| task.birth);
        let tasks = births.zip(opened.done).zip(left);
        let notes: Result<Vec<Note>, Error> = tasks
            .filter_map(|((birth, done), left)| {
                let command = done.map(|command| unfolded(command, &left))?;
                Some(command.and_then(|command| Live::done_note(session, birth, &command)))
            })
            .collect();
        match notes {
            Ok(notes) => {
                session.journal.hold(notes);
                self.run = opened.run;
                self.broken = false;
            }
            Err(error) => {
                tracing::warn!(%error, "a superstep that could not be closed cannot be saved");
            }
        }
    }
}

/// The command without what is folded into the state. A channel that is cleared in each superstep is folded
/// again, as it will be cleared again.
fn unfolded<S: State>(command: Command<S>, left: &[usize]) -> Result<Command<S>, Error> {
    let stays = |channel: &str| {
        S::CHANNELS
            .iter()
            .enumerate()
            .any(|(i, c)| c.name == channel && (c.ephemeral || left.contains(&i)))
    };
    let update: Value = serde_json::from_str(&S::note(&command.update)?).map_err(Error::store)?;
    let update = match update {
        Value::Object(mut channels) => {
            channels.retain(|channel, _| stays(channel));
            Value::Object(channels)
        }
        other => other,
    };
    Ok(Command {
        update: S::update_from_json(update)?,
        ..command
    })
}
