//! How a run comes to rest: what is left is saved, its rows say how it ended, and its thread is given back.
//! And what may end it from the store: a wish, a lease that is lost.
//!
//! Called by `start.rs`. A row that cannot be written is no failure of the run: what it did is saved, and
//! whoever takes the thread next finds it.

use super::next;
use crate::{
    Error, Outcome, RunId, State,
    attempt::{guarded, guarded_now},
    checkpoint::{Lease, RunEnd},
    control::CancelReason,
    drive::{End, note_open},
    graph::Shape,
    live::Live,
    session::{RunShared, Session},
    thread::outside,
    threads::{RunStatus, Standing, ThreadStatus},
    wire::FailureKind,
};
use std::sync::{Arc, atomic::Ordering};
use tokio::task::AbortHandle;

/// A run that has ended in memory, and all that its rows are to say.
pub(super) struct Rested<S> {
    outcome: Result<Outcome<S>, Error>,
    standing: Option<Standing>,
}

/// A run whose process ended when it was over and had not said so.
pub(super) struct LeftBehind {
    pub(super) run: RunId,
    pub(super) standing: Standing,
}

/// How a run ended, when what was left of it is saved, and how its thread stands.
pub(super) type Ended = (Result<End, Error>, Option<Standing>);

/// Saves what is left of a run.
pub(super) async fn rest<S: State>(
    live: &mut Live<S>,
    shape: &Shape<S>,
    session: &Session,
    end: Result<End, Error>,
) -> Ended {
    let saved = guarded(save_rest(live, shape, session, end)).await;
    let standing = guarded(standing(live, shape, session, &saved)).await;
    let standing = standing.unwrap_or_else(|error| {
        tracing::warn!(%error, "how the thread stands cannot be told");
        None
    });
    (saved, standing)
}

async fn save_rest<S: State>(
    live: &mut Live<S>,
    shape: &Shape<S>,
    session: &Session,
    end: Result<End, Error>,
) -> Result<End, Error> {
    if matches!(end, Ok(End::Halted)) && !session.run.is_lost() {
        let reason = reason(session);
        note_open(live, session, FailureKind::Cancelled, reason.to_string()).await?;
    }
    let closed = match (&end, session.run.is_lost()) {
        // The thread is another's by now.
        (Ok(End::Halted), true) => Ok(()),
        _ => live.close(shape, session).await,
    };
    session.run.settle(None).await;
    match (end, closed) {
        (Err(e), Err(closing)) => {
            tracing::warn!(error = %closing, "the end of a failed run could not be saved");
            Err(e)
        }
        (Err(e), Ok(())) | (Ok(_), Err(e)) => Err(e),
        (Ok(end), Ok(())) => Ok(end),
    }
}

fn reason(session: &Session) -> CancelReason {
    let reason = session.run.control.cancelled();
    reason.unwrap_or(CancelReason::Shutdown)
}

fn outcome<S: State>(
    live: Live<S>,
    shape: &Shape<S>,
    session: &Session,
    end: Result<End, Error>,
) -> Result<Outcome<S>, Error> {
    Ok(match end? {
        End::Over => Outcome::Done(Arc::unwrap_or_clone(live.state)),
        End::Waiting => Outcome::Paused {
            state: live.shown(),
            interrupts: live.run.waiting(),
        },
        End::Stopped(why) => Outcome::Stopped {
            state: live.shown(),
            next: next(&live, shape),
            why,
        },
        End::Halted => return Err(Error::Cancelled(reason(session))),
    })
}

/// How the thread stands when the run has ended so; nothing without a store.
async fn standing<S: State>(
    live: &Live<S>,
    shape: &Shape<S>,
    session: &Session,
    end: &Result<End, Error>,
) -> Result<Option<Standing>, Error> {
    let Some(store) = &session.journal.store else {
        return Ok(None);
    };
    let status = match end {
        Ok(End::Over) => ThreadStatus::Idle,
        Ok(_) | Err(Error::RecursionLimit(_) | Error::Cancelled(_)) => ThreadStatus::Interrupted,
        Err(_) => ThreadStatus::Error,
    };
    if !live.broken {
        return Ok(Some(live.at_rest(shape, status)));
    }
    // What is in memory is not what was saved.
    let look = outside(
        shape,
        store,
        session.scope().clone(),
        (session.run.id, session.run.epoch),
    );
    let Some(head) = store.load(look.scope(), None).await? else {
        return Ok(Some(Standing {
            status,
            ..Standing::IDLE
        }));
    };
    let saved = Live::restore(shape, &look, None, head)?;
    Ok(Some(saved.at_rest(shape, status)))
}

impl<S: State> Rested<S> {
    /// What a run that has ended so hands out.
    pub(super) fn of(
        live: Live<S>,
        shape: &Shape<S>,
        session: &Session,
        (end, standing): Ended,
    ) -> Self {
        let outcome = guarded_now(|| outcome(live, shape, session, end));
        Rested { outcome, standing }
    }

    /// A run that ended before it began: the thread stands as it did.
    pub(super) fn at_once(error: Error) -> Self {
        Rested {
            outcome: Err(error),
            standing: None,
        }
    }

    /// Writes down how the run ended and gives its thread back.
    pub(super) async fn finish(self, session: &Session) -> Result<Outcome<S>, Error> {
        let (status, error) = match &self.outcome {
            Ok(Outcome::Done(_)) => (RunStatus::Success, None),
            Ok(Outcome::Paused { .. }) => (RunStatus::Paused, None),
            Ok(Outcome::Stopped { .. }) => (RunStatus::Stopped, None),
            Err(e @ Error::RecursionLimit(_)) => (RunStatus::Stopped, Some(e.to_string())),
            Err(e @ Error::Cancelled(_)) => (RunStatus::Cancelled, Some(e.to_string())),
            Err(e) => (RunStatus::Error, Some(e.to_string())),
        };
        let log = session.run.log.as_ref();
        let end = RunEnd {
            run: session.run.id,
            epoch: session.run.epoch,
            status,
            error,
            standing: self.standing,
            events: log.map(|log| log.take()).unwrap_or_default(),
        };
        end_run(end, session).await;
        self.outcome
    }
}

/// Writes down the end of a run that could not do it itself.
pub(super) async fn finish_for(over: LeftBehind, session: &Session) {
    let end = RunEnd {
        run: over.run,
        epoch: session.run.epoch,
        status: RunStatus::Success,
        error: None,
        standing: Some(over.standing),
        events: Vec::new(),
    };
    end_run(end, session).await;
}

async fn end_run(end: RunEnd, session: &Session) {
    let Some(store) = &session.journal.store else {
        return;
    };
    if session.run.is_lost() {
        return;
    }
    let run = end.run;
    if let Err(error) = store.finish(&session.scope().thread, end).await {
        tracing::warn!(%run, %error, "the end of a run could not be written down");
    }
}

/// Ends with the run.
pub(super) struct Watched(AbortHandle);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Ends the run when the store wishes it, or has lost the lease. In a task of its own, so that the run pays
/// nothing for it between two wishes.
pub(super) fn watch(lease: &Lease, run: &RunShared) -> Option<Watched> {
    let mut wish = lease.wish.clone()?;
    let runtime = tokio::runtime::Handle::try_current().ok()?;
    // No more than it needs: it may be there a moment longer than the run.
    let (lost, control) = (run.lost.clone(), run.control.clone());
    let watching = runtime.spawn(async move {
        loop {
            let wished = wish.wait_for(Option::is_some).await.map(|wished| *wished);
            let Ok(Some(reason)) = wished else { return };
            if reason == CancelReason::LeaseLost {
                lost.store(true, Ordering::Relaxed);
            }
            control.request_cancel(reason);
            // Whoever was asked to end may lose the lease yet.
            if reason == CancelReason::LeaseLost || wish.changed().await.is_err() {
                return;
            }
        }
    });
    Some(Watched(watching.abort_handle()))
}

impl<S: State> Live<S> {
    /// The thread is over, and `run` wrote its last checkpoint.
    pub(super) fn left_behind(&self, shape: &Shape<S>, run: RunId) -> LeftBehind {
        LeftBehind {
            run,
            standing: self.at_rest(shape, ThreadStatus::Idle),
        }
    }
}
