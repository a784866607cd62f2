//! [`Limiter`]: how much of one provider this process uses at once and per minute, over all models and runs.
//!
//! What a caller waits for is told to whoever listens ([`WaitListener`]): a wait that nobody sees looks like a model that
//! is slow. Asked by [`Retrying`](crate::Retrying) before each attempt. Requests and tokens are set aside before the call and
//! settled after it, so that parallel calls cannot overshoot together. Time is tokio's, so tests pause it.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use crate::error::ModelError;
use crate::message::Usage;

const MINUTE: f64 = 60.0;

/// The longest wait that is reckoned with, in seconds: a year.
const MAX_WAIT: f64 = 365.0 * 24.0 * 3600.0;

/// Shorter waits are not told: they are the usual spreading of calls.
const TOLD: Duration = Duration::from_secs(1);

/// What may be used of a provider. `None` sets no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Calls at the same time, from the request to the end of the answer.
    pub in_flight: Option<NonZeroU32>,
    /// Attempts in a minute, retries included.
    pub requests_per_minute: Option<NonZeroU32>,
    /// Tokens in a minute, sent and received.
    pub tokens_per_minute: Option<NonZeroU64>,
}

/// Why a call is not made yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitWait {
    /// What is waited for, such as "the configured limit requests_per_minute = 5".
    pub what: String,
    /// How long, as far as that is known; another's call ends when it ends.
    pub time: Option<Duration>,
}

impl LimitWait {
    fn limit(name: &str, amount: u64, time: Option<Duration>) -> LimitWait {
        LimitWait {
            what: format!("the configured limit {name} = {amount}"),
            time,
        }
    }

    fn is_long(&self) -> bool {
        self.time.is_none_or(|time| time >= TOLD)
    }
}

/// Who is told when a call has to wait for its turn, and, with nothing, when it is its turn.
#[derive(Clone)]
pub struct WaitListener(Arc<dyn Fn(Option<LimitWait>) + Send + Sync>);

impl WaitListener {
    /// One that does this; it should return at once.
    pub fn new(tell: impl Fn(Option<LimitWait>) + Send + Sync + 'static) -> WaitListener {
        WaitListener(Arc::new(tell))
    }

    fn tell(&self, wait: Option<LimitWait>) {
        (self.0)(wait);
    }
}

impl std::fmt::Debug for WaitListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WaitListener")
    }
}

/// Keeps the [`RateLimits`] of one provider. Share one among everything that uses the provider.
///
/// Who comes first goes first. A minute's amount may be used at once and comes back evenly over the next one. A request
/// that is larger than a minute's tokens goes when all of them are there, and those behind it wait the longer.
///
/// ```
/// use paraph_models::{Limiter, RateLimits};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let limits = RateLimits { in_flight: std::num::NonZeroU32::new(4), ..RateLimits::default() };
/// let limiter = std::sync::Arc::new(Limiter::new(limits));
/// let permit = limiter.admit(1_000).await;
/// permit.settle(870);
/// # }
/// ```
#[derive(Debug)]
pub struct Limiter {
    slots: Option<Arc<Semaphore>>,
    /// How many those are.
    in_flight: u64,
    rates: Mutex<Rates>,
}

#[derive(Debug)]
struct Rates {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    /// The server asked everybody to wait until then.
    paused: Option<Instant>,
}

/// An amount that is used up and comes back; below zero if somebody has taken it in advance.
#[derive(Debug)]
struct Bucket {
    per_minute: f64,
    level: f64,
    at: Instant,
}

impl Bucket {
    fn new(per_minute: f64) -> Self {
        Self {
            per_minute,
            level: per_minute,
            at: Instant::now(),
        }
    }

    /// Takes this much and says how long to wait until it is there.
    fn take(&mut self, amount: f64) -> Duration {
        let now = Instant::now();
        let gone = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        self.give(gone * self.per_minute / MINUTE);
        let missing = amount.min(self.per_minute) - self.level;
        self.level -= amount;
        let seconds = (missing * MINUTE / self.per_minute).clamp(0.0, MAX_WAIT);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    fn give(&mut self, amount: f64) {
        self.level = (self.level + amount).min(self.per_minute);
    }
}

impl Limiter {
    /// A limiter with everything still to be used.
    pub fn new(limits: RateLimits) -> Self {
        let slots = limits.in_flight.map(|slots| {
            let slots = usize::try_from(slots.get()).unwrap_or(Semaphore::MAX_PERMITS);
            Arc::new(Semaphore::new(slots.min(Semaphore::MAX_PERMITS)))
        });
        let requests = limits.requests_per_minute;
        let tokens = limits.tokens_per_minute;
        Self {
            slots,
            in_flight: limits.in_flight.map_or(0, |slots| u64::from(slots.get())),
            rates: Mutex::new(Rates {
                requests: requests.map(|amount| Bucket::new(f64::from(amount.get()))),
                tokens: tokens.map(|amount| Bucket::new(amount.get() as f64)),
                paused: None,
            }),
        }
    }

    /// Waits until a call that may use so many tokens can be made. Dropping the future gives everything back.
    pub async fn admit(self: &Arc<Self>, tokens: u64) -> Permit {
        self.admit_told(tokens, None).await
    }

    /// The same, and tells what it waits for.
    pub async fn admit_told(
        self: &Arc<Self>,
        tokens: u64,
        listener: Option<&WaitListener>,
    ) -> Permit {
        let mut told = Told {
            listener,
            waits: false,
        };
        let slot = match &self.slots {
            Some(slots) => self.slot(slots, &mut told).await,
            None => None,
        };
        let (mut permit, mut at, mut wait) = self.take(slot, tokens);
        loop {
            told.tell(wait);
            sleep_until(at).await;
            let now = Instant::now();
            match self.rates().paused {
                Some(paused) if paused > now => {
                    at = paused;
                    wait = LimitWait {
                        what: "the provider, which asked to wait".to_owned(),
                        time: Some(paused.saturating_duration_since(now)),
                    };
                }
                _ => break,
            }
        }
        told.end();
        permit.sent = true;
        permit
    }

    /// A place among those that are called at the same time.
    async fn slot(
        &self,
        slots: &Arc<Semaphore>,
        told: &mut Told<'_>,
    ) -> Option<OwnedSemaphorePermit> {
        if let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
            return Some(slot);
        }
        told.tell(LimitWait::limit("in_flight", self.in_flight, None));
        // The semaphore is never closed.
        Arc::clone(slots).acquire_owned().await.ok()
    }

    /// Sets a request and its tokens aside, and says when they will be there, and for which of them that is.
    fn take(
        self: &Arc<Self>,
        slot: Option<OwnedSemaphorePermit>,
        tokens: u64,
    ) -> (Permit, Instant, LimitWait) {
        let mut rates = self.rates();
        let now = Instant::now();
        let requests = rates.requests.as_mut().map(|bucket| bucket.take(1.0));
        let tokens_wait = rates
            .tokens
            .as_mut()
            .map(|bucket| bucket.take(tokens as f64));
        let (requests, of_tokens) = (
            requests.unwrap_or_default(),
            tokens_wait.unwrap_or_default(),
        );
        let wait = requests.max(of_tokens);
        let (name, bucket) = match requests >= of_tokens {
            true => ("requests_per_minute", &rates.requests),
            false => ("tokens_per_minute", &rates.tokens),
        };
        let amount = bucket.as_ref().map_or(0.0, |bucket| bucket.per_minute) as u64;
        let waits = LimitWait::limit(name, amount, Some(wait));
        let permit = Permit {
            limiter: Arc::clone(self),
            _slot: slot,
            reserved: tokens,
            sent: false,
        };
        (permit, now.checked_add(wait).unwrap_or(now), waits)
    }

    /// Makes everybody wait who has not been admitted yet: the server has asked for it.
    pub fn pause(&self, wait: Duration) {
        let until = Instant::now().checked_add(wait.min(Duration::from_secs_f64(MAX_WAIT)));
        let mut rates = self.rates();
        rates.paused = rates.paused.max(until);
    }

    fn rates(&self) -> MutexGuard<'_, Rates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What of one call's waits was told.
struct Told<'l> {
    listener: Option<&'l WaitListener>,
    waits: bool,
}

impl Told<'_> {
    fn tell(&mut self, wait: LimitWait) {
        if let Some(listener) = self.listener.filter(|_| wait.is_long()) {
            self.waits = true;
            listener.tell(Some(wait));
        }
    }

    /// It is the call's turn.
    fn end(&self) {
        if let Some(listener) = self.listener.filter(|_| self.waits) {
            listener.tell(None);
        }
    }
}

/// Leave for one call. Dropped without [`Permit::settle`], it keeps what was set aside: nobody knows what was used.
#[derive(Debug)]
pub struct Permit {
    limiter: Arc<Limiter>,
    _slot: Option<OwnedSemaphorePermit>,
    reserved: u64,
    sent: bool,
}

impl Permit {
    /// Ends the call, which used so many tokens.
    pub fn settle(self, used: u64) {
        let mut rates = self.limiter.rates();
        if let Some(bucket) = &mut rates.tokens {
            bucket.give(self.reserved as f64 - used as f64);
        }
    }

    /// Ends the call that failed. A call that was refused used no tokens; of others nobody knows.
    pub(crate) fn fail(self, error: &ModelError) {
        if let ModelError::RateLimited { retry_after, .. } = error {
            self.limiter.pause(retry_after.unwrap_or_default());
        }
        match error {
            ModelError::RateLimited { .. }
            | ModelError::Connect { .. }
            | ModelError::Auth { .. }
            | ModelError::BadRequest { .. }
            | ModelError::UnknownModel { .. }
            | ModelError::ContextOverflow { .. } => self.settle(0),
            ModelError::Empty { usage: Some(usage) } => self.settle(usage.total_tokens),
            _ => drop(self),
        }
    }

    /// Ends the call with what the server says it used, if it says so.
    pub(crate) fn done(self, usage: Option<&Usage>) {
        match usage {
            Some(usage) => self.settle(usage.total_tokens),
            None => drop(self),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.sent {
            return;
        }
        let mut rates = self.limiter.rates();
        if let Some(bucket) = &mut rates.requests {
            bucket.give(1.0);
        }
        if let Some(bucket) = &mut rates.tokens {
            bucket.give(self.reserved as f64);
        }
    }
}

#[cfg(test)]
mod tests;
