//! Stopping a run from outside: cancel now, or drain at the next superstep.
//!
//! One [`Control`] belongs to a run and all its subgraphs. It only says what is wished; the driver
//! says what happened.

use serde::{Deserialize, Serialize};
use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Why a run is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CancelReason {
    /// A person asked for it.
    User,
    /// The stream was dropped.
    Disconnect,
    /// Another run takes the thread over.
    Superseded,
    /// The process ends.
    Shutdown,
    /// The thread's lease was lost.
    LeaseLost,
}

impl CancelReason {
    const ALL: [CancelReason; 5] = [
        CancelReason::User,
        CancelReason::Disconnect,
        CancelReason::Superseded,
        CancelReason::Shutdown,
        CancelReason::LeaseLost,
    ];
}

impl std::fmt::Display for CancelReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CancelReason::User => "user",
            CancelReason::Disconnect => "disconnect",
            CancelReason::Superseded => "superseded",
            CancelReason::Shutdown => "shutdown",
            CancelReason::LeaseLost => "lease_lost",
        })
    }
}

/// How a run ended, as the one who wanted it stopped learns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It had finished, or paused on a question or a breakpoint, before the wish took hold.
    Finished,
    /// It was cancelled.
    Cancelled,
    /// It was drained: stopped between two supersteps, to be resumed.
    Drained,
    /// It failed.
    Failed,
}

impl Ending {
    const ALL: [Ending; 4] = [
        Ending::Finished,
        Ending::Cancelled,
        Ending::Drained,
        Ending::Failed,
    ];
}

/// A value as one byte: its place in the list of all, from 1 on.
fn code_of<T: PartialEq>(all: &[T], value: T) -> u8 {
    let place = all.iter().position(|one| *one == value);
    place.and_then(|at| u8::try_from(at).ok()).unwrap_or(0) + 1
}

/// The value of such a byte; nothing of 0.
fn coded<T: Copy>(all: &[T], code: u8) -> Option<T> {
    all.get(usize::from(code.checked_sub(1)?)).copied()
}

/// Ends tasks, and those below them. Shared, since a clone of the token itself takes a lock.
pub(crate) type Halt = Arc<CancellationToken>;

/// A handle on a running graph; clones are the same handle.
#[derive(Clone)]
pub struct Control {
    pub(crate) token: Halt,
    shared: Arc<Shared>,
}

/// What is wished of a run, and how it ended. A channel would say the latter too, in ten times the room.
#[derive(Default)]
struct Shared {
    wishes: AtomicU8,
    /// 0, or one more than the place in [`Ending::ALL`].
    ending: AtomicU8,
    ended: Notify,
}

const DRAIN: u8 = 0x80;

impl Default for Control {
    fn default() -> Self {
        Control {
            token: Arc::new(CancellationToken::new()),
            shared: Arc::default(),
        }
    }
}

impl Control {
    /// Asks the run to end now, and waits until it has: tasks inside `ctx.step` finish and save
    /// that step, the others end at their next `.await`. The answer is what really happened; a node
    /// that blocks its thread makes this wait.
    ///
    /// Somebody must go on polling the run (or have dropped its stream), since it runs where it is
    /// polled.
    pub async fn cancel(&self, reason: CancelReason) -> Ending {
        self.request_cancel(reason);
        self.ended().await
    }

    /// Asks the run to stop between two supersteps, and waits until it has. `resume` goes on.
    pub async fn drain(&self) -> Ending {
        self.request_drain();
        self.ended().await
    }

    /// [`Control::cancel`] without waiting. The first reason counts.
    pub fn request_cancel(&self, reason: CancelReason) {
        let code = code_of(&CancelReason::ALL, reason);
        let first = |old: u8| (old & !DRAIN == 0).then_some(old | code);
        // An error means that a reason was there before, and that one stands.
        let _ = self
            .shared
            .wishes
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, first);
        self.token.cancel();
    }

    /// [`Control::drain`] without waiting.
    pub fn request_drain(&self) {
        self.shared.wishes.fetch_or(DRAIN, Ordering::SeqCst);
    }

    /// Waits for the run's end.
    pub async fn ended(&self) -> Ending {
        loop {
            // Before the look, so that no end falls between them.
            let ended = self.shared.ended.notified();
            let code = self.shared.ending.load(Ordering::SeqCst);
            if let Some(ending) = coded(&Ending::ALL, code) {
                return ending;
            }
            ended.await;
        }
    }

    /// Waits until somebody wishes the run to end. For whoever drives a run by hand; graphs listen themselves.
    pub async fn cancel_requested(&self) {
        self.token.cancelled().await;
    }

    pub(crate) fn cancelled(&self) -> Option<CancelReason> {
        let code = self.shared.wishes.load(Ordering::Relaxed) & !DRAIN;
        coded(&CancelReason::ALL, code)
    }

    pub(crate) fn draining(&self) -> bool {
        self.shared.wishes.load(Ordering::Relaxed) & DRAIN != 0
    }

    /// Says how the run ended, to those who wait for it. For whoever drives a run by hand; graphs say it themselves.
    pub fn end(&self, ending: Ending) {
        let code = code_of(&Ending::ALL, ending);
        self.shared.ending.store(code, Ordering::SeqCst);
        self.shared.ended.notify_waiters();
    }
}
