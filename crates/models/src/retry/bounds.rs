//! [`Bounds`]: how any call to a model's server is bounded in time and tried again. Called by the layer for chat models
//! and by embedders, so that there is one set of rules.

use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::RetryPolicy;
use crate::error::{ModelError, TimeLimit};
use crate::limits::{Limiter, Permit, WaitListener};

/// The time and the number of attempts that calls may take, and the limits of their provider.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) policy: RetryPolicy,
    pub(crate) limiter: Option<Arc<Limiter>>,
}

/// What is known of a call before it is made.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The model's name.
    pub(crate) name: &'a str,
    /// The tokens it may use, as far as can be told.
    pub(crate) tokens: u64,
    /// When the run's time is over.
    pub(crate) deadline: Option<Instant>,
    /// Who is told when it waits for its turn.
    pub(crate) waits: Option<&'a WaitListener>,
}

impl Bounds {
    /// Runs attempts until one succeeds, fails for good, or no other can follow. Gives the attempt's number too.
    pub(crate) async fn attempts<T, F>(
        &self,
        call: Call<'_>,
        attempt: impl Fn(Limit, Option<Permit>) -> F,
    ) -> Result<(T, u32), ModelError>
    where
        F: Future<Output = Result<T, ModelError>>,
    {
        let mut number = 1;
        let mut original: Option<ModelError> = None;
        loop {
            let permit = self.admitted(call).await?;
            let limit = Limit::of(self.policy.timeout, call.deadline);
            let error = match limit.within(attempt(limit, permit)).await {
                Ok(answer) => return Ok((answer, number)),
                // A script that ends in the middle of a retry has nothing to say about why it was needed.
                Err(ModelError::ScriptExhausted { attempt }) => {
                    return Err(original.unwrap_or(ModelError::ScriptExhausted { attempt }));
                }
                Err(error) => error,
            };
            let Some(wake) = self.next_attempt(&error, number, call.deadline) else {
                return Err(error);
            };
            tracing::debug!(model = call.name, attempt = number, %error, "model call is tried again");
            original = Some(error);
            sleep_until(wake).await;
            number += 1;
        }
    }

    /// Waits for leave to make an attempt, which no time of the attempt is spent on.
    async fn admitted(&self, call: Call<'_>) -> Result<Option<Permit>, ModelError> {
        let Some(limiter) = &self.limiter else {
            return Ok(None);
        };
        let admitted = limiter.admit_told(call.tokens, call.waits);
        let permit = match call.deadline {
            Some(deadline) => timeout_at(deadline, admitted)
                .await
                .map_err(|_| ModelError::OutOfTime)?,
            None => admitted.await,
        };
        Ok(Some(permit))
    }

    /// When to try again; `None` if that is of no use.
    fn next_attempt(
        &self,
        error: &ModelError,
        number: u32,
        deadline: Option<Instant>,
    ) -> Option<Instant> {
        if !error.is_transient() || number >= self.policy.attempts {
            return None;
        }
        let doubled = 2_u32.saturating_pow(number - 1);
        let own = self.policy.first_wait.saturating_mul(doubled);
        let wait = error.retry_after().unwrap_or(own.min(self.policy.max_wait));
        if wait > self.policy.max_wait {
            return None;
        }
        let now = Instant::now();
        let earliest = now.checked_add(wait)?;
        if deadline.is_some_and(|deadline| earliest >= deadline) {
            return None;
        }
        let wake = now.checked_add(wait.saturating_add(jitter(wait)))?;
        Some(deadline.map_or(wake, |deadline| wake.min(earliest.max(before(deadline)))))
    }
}

/// The last instant at which an attempt may still start.
fn before(deadline: Instant) -> Instant {
    let a_moment = Duration::from_millis(1);
    deadline.checked_sub(a_moment).unwrap_or(deadline)
}

/// Up to a quarter of the wait. The hasher's random keys are random enough to spread callers.
pub(super) fn jitter(wait: Duration) -> Duration {
    let random = std::hash::RandomState::new().build_hasher().finish();
    wait.mul_f64((random % 1024) as f64 / 4096.0)
}

pub(super) fn fail(permit: Option<Permit>, error: &ModelError) {
    if let Some(permit) = permit {
        permit.fail(error);
    }
}

/// When something has to end, and what it is called if it has not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    at: Option<Instant>,
    /// Whose limit it is; none for the run's own deadline.
    own: Option<(TimeLimit, Duration)>,
}

impl Limit {
    fn of(timeout: Duration, deadline: Option<Instant>) -> Self {
        let run = Self {
            at: deadline,
            own: None,
        };
        run.or_sooner(Some(timeout), TimeLimit::Total)
    }

    /// The same limit, or one that ends sooner, counted from now.
    pub(super) fn or_sooner(self, after: Option<Duration>, limit: TimeLimit) -> Self {
        let Some(after) = after else { return self };
        let at = Instant::now().checked_add(after);
        let sooner = match (at, self.at) {
            (Some(at), Some(own)) => at < own,
            (at, None) => at.is_some(),
            (None, Some(_)) => false,
        };
        if !sooner {
            return self;
        }
        Self {
            at,
            own: Some((limit, after)),
        }
    }

    pub(super) async fn within<T>(
        self,
        work: impl Future<Output = Result<T, ModelError>>,
    ) -> Result<T, ModelError> {
        let Some(at) = self.at else {
            return work.await;
        };
        // A deadline that has passed leaves no room for even an instant answer.
        if at <= Instant::now() {
            return Err(self.error());
        }
        timeout_at(at, work)
            .await
            .unwrap_or_else(|_| Err(self.error()))
    }

    fn error(self) -> ModelError {
        match self.own {
            None => ModelError::OutOfTime,
            Some((limit, after)) => ModelError::Timeout {
                limit,
                after: Some(after),
            },
        }
    }
}
