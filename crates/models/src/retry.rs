//! [`Retrying`]: the one layer that bounds a model call in time and tries it again.
//!
//! [`init_chat_model`](crate::init_chat_model) wraps every model in it. Nothing above or below may retry a model
//! call, or waits would multiply. Time is tokio's, so tests pause it.

use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::chat::{ChatModel, ChatReply, ChatRequest, Chunk, ChunkStream};
use crate::error::ModelError;
use crate::tokens::Estimate;

/// How long a call may take and how often it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The longest time of one attempt, answer included.
    pub timeout: Duration,
    /// Attempts in all; 1 never retries.
    pub attempts: u32,
    /// The wait before the second attempt if the server names none; it doubles with each further one.
    pub first_wait: Duration,
    /// The longest wait. If the server asks for more, the call is not tried again.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    /// 60 seconds an attempt, three attempts, waits from half a second up to a minute.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            attempts: 3,
            first_wait: Duration::from_millis(500),
            max_wait: Duration::from_secs(60),
        }
    }
}

/// A model whose calls end in time and are tried again after 429 and 5xx.
///
/// - An attempt lasts at most [`RetryPolicy::timeout`] and ends at [`ChatRequest::deadline`]. The earlier of the two
///   names the error ([`ModelError::Timeout`] or [`ModelError::OutOfTime`]); if both fall together it is the latter.
/// - `Retry-After` is honoured: never earlier, at most a quarter later, so that many waiting callers spread.
/// - An attempt that could only start at or after the deadline is not waited for: the error at hand is returned at once.
/// - Other errors, timeouts and failed connections are not retried; nor is a stream that has begun.
/// - A request estimated larger than its [`ChatRequest::context_window`] is refused before it is sent.
#[derive(Clone, Debug)]
pub struct Retrying<M> {
    model: M,
    policy: RetryPolicy,
}

impl<M: ChatModel> Retrying<M> {
    /// Wraps a model.
    pub fn new(model: M, policy: RetryPolicy) -> Self {
        Self { model, policy }
    }

    /// Runs attempts until one succeeds, fails for good, or no other can follow. Gives the attempt's number too.
    async fn attempts<'a, T, F>(
        &'a self,
        request: &'a ChatRequest,
        attempt: impl Fn(Limit) -> F,
    ) -> Result<(T, u32), ModelError>
    where
        F: Future<Output = Result<T, ModelError>>,
    {
        check_window(request)?;
        let mut number = 1;
        let mut original: Option<ModelError> = None;
        loop {
            let limit = Limit::of(self.policy.timeout, request.deadline);
            let error = match limit.within(attempt(limit)).await {
                Ok(answer) => return Ok((answer, number)),
                // A script that ends in the middle of a retry has nothing to say about why it was needed.
                Err(ModelError::ScriptExhausted { attempt }) => {
                    return Err(original.unwrap_or(ModelError::ScriptExhausted { attempt }));
                }
                Err(error) => error,
            };
            let Some(wake) = self.next_attempt(&error, number, request.deadline) else {
                return Err(error);
            };
            tracing::debug!(model = self.model.name(), attempt = number, %error, "model call is tried again");
            original = Some(error);
            sleep_until(wake).await;
            number += 1;
        }
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
fn jitter(wait: Duration) -> Duration {
    let random = std::hash::RandomState::new().build_hasher().finish();
    wait.mul_f64((random % 1024) as f64 / 4096.0)
}

fn check_window(request: &ChatRequest) -> Result<(), ModelError> {
    let Some(window) = request.context_window else {
        return Ok(());
    };
    let tokens = Estimate::of(request).total();
    if tokens <= window {
        return Ok(());
    }
    Err(ModelError::ContextOverflow {
        message: format!("about {tokens} tokens for a context of {window}, nothing was sent"),
    })
}

/// When an attempt has to end, and what it is called if it has not.
#[derive(Clone, Copy, Debug)]
struct Limit {
    at: Option<Instant>,
    by_deadline: bool,
}

impl Limit {
    fn of(timeout: Duration, deadline: Option<Instant>) -> Self {
        let own = Instant::now().checked_add(timeout);
        let by_deadline = match (deadline, own) {
            (Some(deadline), Some(own)) => deadline <= own,
            (deadline, None) => deadline.is_some(),
            (None, Some(_)) => false,
        };
        Self {
            at: if by_deadline { deadline } else { own },
            by_deadline,
        }
    }

    async fn within<T>(
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
        if self.by_deadline {
            ModelError::OutOfTime
        } else {
            ModelError::Timeout
        }
    }
}

/// The rest of a stream that has begun, within its attempt's limit.
fn limited<'a>(rest: ChunkStream<'a>, limit: Limit) -> ChunkStream<'a> {
    let next = move |rest: Option<ChunkStream<'a>>| async move {
        let mut rest = rest?;
        let item = limit.within(async { Ok(rest.next().await) }).await;
        match item {
            Ok(None) => None,
            Ok(Some(Ok(chunk))) => Some((Ok(chunk), Some(rest))),
            Ok(Some(Err(error))) | Err(error) => Some((Err(error), None)),
        }
    };
    stream::unfold(Some(rest), next).boxed()
}

impl<M: ChatModel> ChatModel for Retrying<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        let opened = async move {
            let open = |limit: Limit| async move {
                let mut rest = self.model.stream(request);
                let first = rest.next().await.transpose()?;
                Ok((first, rest, limit))
            };
            let ((first, rest, limit), attempt) = self.attempts(request, open).await?;
            let first = first.map(|chunk| Chunk { attempt, ..chunk });
            let first = stream::iter(first.map(Ok));
            Ok::<_, ModelError>(first.chain(limited(rest, limit)))
        };
        stream::once(opened).try_flatten().boxed()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let call = |_| self.model.complete(request);
            let (reply, attempts) = self.attempts(request, call).await?;
            Ok(ChatReply { attempts, ..reply })
        })
    }

    fn enforces_schemas(&self) -> bool {
        self.model.enforces_schemas()
    }

    fn go_on_after(&self, attempts: u64) {
        self.model.go_on_after(attempts);
    }
}

#[cfg(test)]
mod tests;
