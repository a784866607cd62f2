//! How a task ended: noted in the open superstep, then told.
//!
//! Called by the driver for each task that has come to rest, and where a run ends with tasks still due.

use super::Step;
use crate::{
    Command, Error, Interrupt, Name, NodeError, State,
    attempt::{Settled, Tried},
    checkpoint::{Note, NoteKind},
    error::{Kind, TimedOut},
    event::{Event, EventData, Mode, UpdateView},
    graph::Shape,
    live::Live,
    run::{Failed, Status},
    session::Session,
    wire::{Failure, FailureKind},
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Notes how a task ended; but for a lone one that finished, which its superstep's checkpoint says.
/// `true` if a handler is to run in its place.
pub(super) async fn settle<S: State>(
    live: &mut Live<S>,
    shape: &Shape<S>,
    session: &Session,
    (i, settled): (usize, Settled<S>),
    step: &mut Step,
) -> Result<bool, Error> {
    let attempts = settled.attempts;
    let error = match settled.result {
        Ok(command) => {
            finished(live, shape, session, i, (command, settled.cached)).await?;
            return Ok(false);
        }
        Err(NodeError(kind)) => match kind {
            Kind::Interrupt(asked) => {
                waits(live, shape, session, i, asked).await?;
                return Ok(false);
            }
            Kind::Halted => {
                step.halted = true;
                return Ok(false);
            }
            Kind::Stopped(why) => {
                step.stopped = Some(why);
                return Ok(false);
            }
            Kind::Failed(error) => error,
        },
    };
    let kind = if error.is::<TimedOut>() {
        FailureKind::Timeout
    } else {
        FailureKind::Error
    };
    let node = live.run.tasks[i].node;
    let own = error
        .downcast_ref::<Error>()
        .is_some_and(Error::ends_the_run);
    let handler = shape.topology.nodes[node].handler.filter(|_| !own);
    let failure = Failure {
        kind,
        message: error.to_string(),
        attempts,
        handler: handler.map(|h| shape.topology.name(h).to_string()),
    };
    note_failure(live, shape, session, i, &failure).await?;
    if let Some(handler) = handler {
        let failed = Failed {
            node: shape.topology.name(node),
            message: failure.message,
            attempts,
        };
        live.hand_over(i, handler, failed);
        live.tried[i] = Tried::default();
        return Ok(true);
    }
    let leaf = shape.leaf[node];
    step.failed.get_or_insert(match error.downcast::<Error>() {
        // The error of a subgraph says by itself which node it was.
        Ok(error) if !leaf || error.ends_the_run() => *error,
        Ok(error) => Error::Node {
            node: shape.topology.name(node),
            source: error,
        },
        Err(source) => Error::Node {
            node: shape.topology.name(node),
            source,
        },
    });
    Ok(false)
}

async fn finished<S: State>(
    live: &mut Live<S>,
    shape: &Shape<S>,
    session: &Session,
    i: usize,
    (command, cached): (Command<S>, bool),
) -> Result<(), Error> {
    let heard = session.journal.is_heard();
    if heard {
        tell_finished(live, shape, session, i, (&command, cached))?;
    }
    let task = &live.run.tasks[i];
    if session.journal.store.is_some() {
        let note = Live::done_note(session, task.birth, &command)?;
        let told = std::mem::take(&mut live.untold);
        session.journal.note(vec![note], told, false).await?;
    } else if heard {
        let told = std::mem::take(&mut live.untold);
        session.journal.tell(told).await;
    }
    live.run.tasks[i].status = Status::Done;
    live.done[i] = Some(command);
    Ok(())
}

/// Adds what is to be told of a finished task.
pub(super) fn tell_finished<S: State>(
    live: &mut Live<S>,
    shape: &Shape<S>,
    session: &Session,
    i: usize,
    (command, cached): (&Command<S>, bool),
) -> Result<(), Error> {
    let (node, birth) = (live.run.tasks[i].node, live.run.tasks[i].birth);
    if session.journal.wants(Mode::Updates) && !shape.hidden.contains(&node) {
        let update = EventData::Update {
            node: shape.topology.name(node),
            update: UpdateView::new::<S>(&command.update)?,
        };
        let mut event = session.event(Some(birth), update);
        event.cached = cached;
        live.untold.push(event);
    }
    if session.journal.wants(Mode::Tasks) {
        let result = S::update_to_json(&command.update)?;
        let end = task_end(shape.topology.name(node), Some(result), None);
        live.untold.push(session.event(Some(birth), end));
    }
    Ok(())
}

async fn waits<S: State>(
    live: &mut Live<S>,
    shape: &Shape<S>,
    session: &Session,
    i: usize,
    asked: Vec<Interrupt>,
) -> Result<(), Error> {
    let task = &live.run.tasks[i];
    let ids: Vec<&str> = asked.iter().map(|q| q.id.as_str()).collect();
    let note = Note {
        task: session.task(task.birth),
        kind: NoteKind::Question,
        // Each set of questions is a note of its own, so that what was asked stays on record.
        key: set_of(&ids),
        json: serde_json::to_string(&asked).map_err(Error::store)?,
    };
    let mut told = Vec::new();
    if session.journal.is_heard() {
        let event = |data| session.event(Some(task.birth), data);
        if session.is_root() {
            told.extend(asked.iter().map(|q| event(EventData::Interrupt(q.clone()))));
        }
        if session.journal.wants(Mode::Tasks) {
            let mut end = task_end(shape.topology.name(task.node), None, None);
            if let EventData::TaskEnd { interrupts, .. } = &mut end {
                interrupts.clone_from(&asked);
            }
            told.push(event(end));
        }
    }
    session.journal.note(vec![note], told, true).await?;
    live.run.tasks[i].status = Status::Waiting(asked);
    Ok(())
}

/// A name for a set of questions: the question's own where it is alone, else a digest, since databases
/// bound what a key may take.
fn set_of(ids: &[&str]) -> String {
    match ids {
        [id] => (*id).to_owned(),
        ids => {
            let digest = Sha256::digest(ids.join(","));
            digest.iter().take(16).map(|b| format!("{b:02x}")).collect()
        }
    }
}

fn task_end(node: Name, result: Option<Value>, error: Option<String>) -> EventData {
    EventData::TaskEnd {
        node,
        result,
        error,
        interrupts: Vec::new(),
    }
}

async fn note_failure<S: State>(
    live: &Live<S>,
    shape: &Shape<S>,
    session: &Session,
    i: usize,
    failure: &Failure,
) -> Result<(), Error> {
    let task = &live.run.tasks[i];
    let mut told: Vec<Event> = Vec::new();
    if session.journal.wants(Mode::Tasks) {
        let end = task_end(
            shape.topology.name(task.node),
            None,
            Some(failure.message.clone()),
        );
        told.push(session.event(Some(task.birth), end));
    }
    let mut notes = Vec::new();
    if session.journal.store.is_some() {
        notes.push(failure.note(session.task(task.birth))?);
    }
    session.journal.note(notes, told, true).await
}

/// Records for each task that is still due why it did not finish.
pub(crate) async fn note_open<S: State>(
    live: &Live<S>,
    session: &Session,
    kind: FailureKind,
    message: String,
) -> Result<(), Error> {
    if session.journal.store.is_none() {
        return Ok(());
    }
    let failure = Failure {
        kind,
        message,
        attempts: 0,
        handler: None,
    };
    let open = live
        .run
        .due()
        .map(|i| session.task(live.run.tasks[i].birth));
    let notes = open
        .map(|task| failure.note(task))
        .collect::<Result<Vec<_>, _>>()?;
    session.journal.note(notes, Vec::new(), true).await
}
