//! A running graph, seen by the one who runs it: events one by one, then the outcome.
//!
//! The run happens where its stream is polled: whoever does not read holds it up, nobody buffers
//! without bound, and a plain `.await` is the same stream read to its end.

use crate::{
    Error,
    attempt::guarded,
    control::{CancelReason, Control, Ending},
    event::Event,
    run::Interrupt,
};
use futures::future::BoxFuture;
use std::{
    future::poll_fn,
    task::{Context, Poll, ready},
};
use tokio::sync::mpsc;

/// How a run stopped without failing.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<S> {
    /// It is over.
    Done(S),
    /// Questions are open; answer them on the thread.
    Paused {
        /// The state, with what finished siblings wrote.
        state: S,
        /// All open questions.
        interrupts: Vec<Interrupt>,
    },
    /// It stopped between two supersteps; `resume` goes on.
    Stopped {
        /// The state.
        state: S,
        /// The nodes that are due.
        next: Vec<crate::Name>,
        /// What stopped it.
        why: StoppedBy,
    },
}

/// What stops a run between two supersteps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedBy {
    /// A node of `pause_before` or `pause_after`.
    Breakpoint,
    /// [`Control::drain`].
    Drain,
}

impl<S> Outcome<S> {
    /// The final state.
    ///
    /// # Errors
    /// [`Error::Paused`] or [`Error::Stopped`] if the run is not over.
    pub fn done(self) -> Result<S, Error> {
        match self {
            Outcome::Done(state) => Ok(state),
            Outcome::Paused { interrupts, .. } => Err(Error::Paused(interrupts)),
            Outcome::Stopped { next, .. } => Err(Error::Stopped(next)),
        }
    }

    /// The open questions; none if the run did not pause on one.
    pub fn interrupts(&self) -> &[Interrupt] {
        match self {
            Outcome::Paused { interrupts, .. } => interrupts,
            Outcome::Done(_) | Outcome::Stopped { .. } => &[],
        }
    }

    /// The state, however the run stopped.
    pub fn state(&self) -> &S {
        let (Outcome::Done(state) | Outcome::Paused { state, .. } | Outcome::Stopped { state, .. }) =
            self;
        state
    }

    /// The same outcome with another form of the state.
    ///
    /// # Errors
    /// Those of `form`.
    pub fn map<T>(self, form: impl FnOnce(S) -> Result<T, Error>) -> Result<Outcome<T>, Error> {
        Ok(match self {
            Outcome::Done(state) => Outcome::Done(form(state)?),
            Outcome::Paused { state, interrupts } => Outcome::Paused {
                state: form(state)?,
                interrupts,
            },
            Outcome::Stopped { state, next, why } => Outcome::Stopped {
                state: form(state)?,
                next,
                why,
            },
        })
    }
}

// Nothing in a stream is pinned in place: the driver is boxed, the outcome is plain data.
impl<S: Send + 'static> Unpin for Stream<S> {}

type Driver<S> = BoxFuture<'static, Result<Outcome<S>, Error>>;

/// A running graph. It runs while it is polled.
///
/// Dropping it cancels the run: tasks inside `ctx.step` finish that step in the background, what was
/// finished stays saved, and the cancellation is recorded. [`Stream::detach`] lets it run on.
pub struct Stream<S: Send + 'static> {
    events: Option<mpsc::Receiver<Event>>,
    driver: Option<Driver<S>>,
    outcome: Option<Result<Outcome<S>, Error>>,
    control: Control,
    /// Whether there may be more events than the one that was given last.
    unread: bool,
    seq: u64,
}

impl<S: Send + 'static> Stream<S> {
    pub(crate) fn new(
        events: Option<mpsc::Receiver<Event>>,
        driver: Driver<S>,
        control: Control,
    ) -> Self {
        Stream {
            events,
            driver: Some(driver),
            outcome: None,
            control,
            unread: false,
            seq: 0,
        }
    }

    /// The next event; `None` when the run has stopped.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Reads what is left, and says how the run stopped.
    ///
    /// # Errors
    /// Whatever ended the run: see [`Error`].
    pub async fn outcome(self) -> Result<Outcome<S>, Error> {
        self.into_outcome().await
    }

    /// The same in a box, which holds the stream once and not, as an `async fn`, twice.
    pub(crate) fn into_outcome(mut self) -> BoxFuture<'static, Result<Outcome<S>, Error>> {
        Box::pin(poll_fn(move |cx| {
            while ready!(self.poll_next(cx)).is_some() {}
            // The stream ends only after the driver did.
            let outcome = self.outcome.take();
            Poll::Ready(outcome.unwrap_or(Err(Error::Cancelled(CancelReason::Disconnect))))
        }))
    }

    /// A handle to cancel or drain the run from elsewhere.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Asks the run to stop at the next superstep, reads on to its end, and says what happened.
    pub async fn drain(&mut self) -> Ending {
        self.control.request_drain();
        while self.next().await.is_some() {}
        self.control.ended().await
    }

    /// Asks the run to end now, reads on to its end, and says what happened.
    pub async fn cancel(&mut self, reason: CancelReason) -> Ending {
        self.control.request_cancel(reason);
        while self.next().await.is_some() {}
        self.control.ended().await
    }

    /// Lets the run go on in the background, unread. Must be called inside a Tokio runtime.
    pub fn detach(mut self) -> Control {
        self.events = None;
        if let Some(driver) = self.driver.take() {
            tokio::spawn(driver);
        }
        self.control.clone()
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.unread {
            if let Some(event) = self.told() {
                return Poll::Ready(Some(event));
            }
            self.unread = false;
        }
        if let Some(driver) = &mut self.driver
            && let Poll::Ready(outcome) = driver.as_mut().poll(cx)
        {
            self.driver = None;
            self.outcome = Some(outcome);
        }
        if let Some(event) = self.told() {
            self.unread = true;
            return Poll::Ready(Some(event));
        }
        if self.driver.is_none() {
            return Poll::Ready(None);
        }
        if let Some(events) = &mut self.events {
            // Registers for events that come from other threads. `None` would mean that all senders
            // are gone while the driver still runs: then only the driver can wake us.
            if let Poll::Ready(Some(event)) = events.poll_recv(cx) {
                return Poll::Ready(Some(self.number(event)));
            }
        }
        Poll::Pending
    }

    /// An event that is there already. Unlike polling it never holds back what is there, as Tokio's
    /// channels do when a task has had its turn; whoever still holds a sender when the driver is gone
    /// has nothing to say any more.
    fn told(&mut self) -> Option<Event> {
        let event = self.events.as_mut()?.try_recv().ok()?;
        Some(self.number(event))
    }

    fn number(&mut self, mut event: Event) -> Event {
        event.seq = self.seq;
        self.seq += 1;
        event
    }

    /// The same run with another form of the state.
    pub(crate) fn map<T: Send + 'static>(
        mut self,
        form: impl FnOnce(S) -> Result<T, Error> + Send + 'static,
    ) -> Stream<T> {
        let driver = self.driver.take();
        // The form is JSON in the words of the state's own code, which may panic too.
        let mapped = Box::pin(guarded(async move {
            match driver {
                Some(driver) => driver.await?.map(form),
                None => Err(Error::Cancelled(CancelReason::Disconnect)),
            }
        }));
        Stream::new(self.events.take(), mapped, self.control.clone())
    }
}

impl<S: Send + 'static> futures::Stream for Stream<S> {
    type Item = Event;
    fn poll_next(self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        Stream::poll_next(self.get_mut(), cx)
    }
}

impl<S: Send + 'static> Drop for Stream<S> {
    fn drop(&mut self) {
        let Some(driver) = self.driver.take() else {
            return;
        };
        self.control.request_cancel(CancelReason::Disconnect);
        self.events = None;
        // Without a runtime nothing can wind down; what was saved is saved.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(driver);
        }
    }
}
