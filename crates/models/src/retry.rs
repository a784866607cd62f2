//! [`Retrying`]: the one layer that bounds a model call in time and tries it again.
//!
//! [`init_chat_model`](crate::init_chat_model) wraps every model in it. Nothing above or below may retry a model
//! call, or waits would multiply. Time is tokio's, so tests pause it.

use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::chat::{ChatModel, ChatReply, ChatRequest, Chunk, ChunkStream, beginning};
use crate::error::{ModelError, TimeLimit};
use crate::limits::{Limiter, Permit};
use crate::message::Usage;
use crate::tokens::Estimate;

/// How long a call may take and how often it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The longest time of one attempt, answer included.
    pub timeout: Duration,
    /// The longest time from the request to the first word of a streamed answer, reasoning counted; `None` for no
    /// limit but [`RetryPolicy::timeout`].
    pub first_token: Option<Duration>,
    /// The longest silence within a streamed answer; a server's sign of life breaks it.
    pub idle: Option<Duration>,
    /// Attempts in all; 1 never retries.
    pub attempts: u32,
    /// The wait before the second attempt if the server names none; it doubles with each further one.
    pub first_wait: Duration,
    /// The longest wait. If the server asks for more, the call is not tried again.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    /// 60 seconds an attempt, of which 30 in silence once the answer has begun; three attempts, waits from half a
    /// second up to a minute.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            first_token: None,
            idle: Some(Duration::from_secs(30)),
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
///   A streamed answer that does not begin, or falls silent, is ended sooner; the error says which limit it was.
/// - `Retry-After` is honoured: never earlier, at most a quarter later, so that many waiting callers spread.
/// - An attempt that could only start at or after the deadline is not waited for: the error at hand is returned at once.
/// - Other errors, timeouts and failed connections are not retried; nor is an answer of which a word was given.
/// - With a [`Limiter`] each attempt waits for its turn, which ends only with the deadline, and settles what it used.
/// - A request estimated larger than its [`ChatRequest::context_window`] is refused before it is sent.
#[derive(Clone, Debug)]
pub struct Retrying<M> {
    model: M,
    policy: RetryPolicy,
    limiter: Option<Arc<Limiter>>,
}

impl<M: ChatModel> Retrying<M> {
    /// Wraps a model.
    pub fn new(model: M, policy: RetryPolicy) -> Self {
        Self {
            model,
            policy,
            limiter: None,
        }
    }

    /// The same within the limits of its provider, which others share.
    #[must_use]
    pub fn within(self, limiter: Arc<Limiter>) -> Self {
        Self {
            limiter: Some(limiter),
            ..self
        }
    }

    /// Runs attempts until one succeeds, fails for good, or no other can follow. Gives the attempt's number too.
    async fn attempts<'a, T, F>(
        &'a self,
        request: &'a ChatRequest,
        attempt: impl Fn(Limit, Option<Permit>) -> F,
    ) -> Result<(T, u32), ModelError>
    where
        F: Future<Output = Result<T, ModelError>>,
    {
        check_window(request)?;
        let mut number = 1;
        let mut original: Option<ModelError> = None;
        loop {
            let permit = self.admitted(request).await?;
            let limit = Limit::of(self.policy.timeout, request.deadline);
            let error = match limit.within(attempt(limit, permit)).await {
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

    /// Waits for leave to make an attempt, which no time of the attempt is spent on.
    async fn admitted(&self, request: &ChatRequest) -> Result<Option<Permit>, ModelError> {
        let Some(limiter) = &self.limiter else {
            return Ok(None);
        };
        let answer = u64::from(request.max_tokens.unwrap_or_default());
        let tokens = u64::try_from(Estimate::of(request).total()).unwrap_or(u64::MAX);
        let admitted = limiter.admit(tokens.saturating_add(answer));
        let permit = match request.deadline {
            Some(deadline) => timeout_at(deadline, admitted)
                .await
                .map_err(|_| ModelError::OutOfTime)?,
            None => admitted.await,
        };
        Ok(Some(permit))
    }

    /// Begins a streamed answer: up to its first word, or to its end if it says nothing.
    async fn begin<'a>(
        &'a self,
        request: &'a ChatRequest,
        limit: Limit,
        permit: Option<Permit>,
    ) -> Result<Begun<'a>, ModelError> {
        let mut rest = self.model.stream(request);
        let soon = limit.or_sooner(self.policy.first_token, TimeLimit::FirstToken);
        match soon.within(beginning(&mut rest)).await {
            Ok(first) => {
                let mut usage = None;
                for chunk in &first {
                    usage = chunk.usage.clone().or(usage);
                }
                let rest = Rest {
                    stream: rest,
                    limit,
                    idle: self.policy.idle,
                    permit,
                    usage,
                };
                Ok(Begun { first, rest })
            }
            Err(error) => {
                fail(permit, &error);
                Err(error)
            }
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

fn fail(permit: Option<Permit>, error: &ModelError) {
    if let Some(permit) = permit {
        permit.fail(error);
    }
}

/// When something has to end, and what it is called if it has not.
#[derive(Clone, Copy, Debug)]
struct Limit {
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
    fn or_sooner(self, after: Option<Duration>, limit: TimeLimit) -> Self {
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
        match self.own {
            None => ModelError::OutOfTime,
            Some((limit, after)) => ModelError::Timeout {
                limit,
                after: Some(after),
            },
        }
    }
}

/// A streamed answer that has begun.
struct Begun<'a> {
    first: Vec<Chunk>,
    rest: Rest<'a>,
}

/// The rest of a streamed answer, within its attempt's limits.
struct Rest<'a> {
    stream: ChunkStream<'a>,
    limit: Limit,
    idle: Option<Duration>,
    permit: Option<Permit>,
    usage: Option<Usage>,
}

impl<'a> Rest<'a> {
    fn chunks(self) -> ChunkStream<'a> {
        let next = |rest: Option<Self>| async move {
            let mut rest = rest?;
            let limit = rest.limit.or_sooner(rest.idle, TimeLimit::Idle);
            let item = limit.within(async { Ok(rest.stream.next().await) }).await;
            match item {
                Ok(None) => {
                    if let Some(permit) = rest.permit {
                        permit.done(rest.usage.as_ref());
                    }
                    None
                }
                Ok(Some(Ok(chunk))) => {
                    rest.usage = chunk.usage.clone().or(rest.usage.take());
                    Some((Ok(chunk), Some(rest)))
                }
                Ok(Some(Err(error))) | Err(error) => {
                    fail(rest.permit, &error);
                    Some((Err(error), None))
                }
            }
        };
        stream::unfold(Some(self), next).boxed()
    }
}

impl<M: ChatModel> ChatModel for Retrying<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        let opened = async move {
            let begin = |limit, permit| self.begin(request, limit, permit);
            let (begun, attempt) = self.attempts(request, begin).await?;
            // The first piece tells the attempt.
            let mut attempt = Some(attempt);
            let first = begun.first.into_iter().map(move |chunk| {
                Ok(match attempt.take() {
                    Some(attempt) => Chunk { attempt, ..chunk },
                    None => chunk,
                })
            });
            Ok::<_, ModelError>(stream::iter(first).chain(begun.rest.chunks()))
        };
        stream::once(opened).try_flatten().boxed()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let call = |_, permit: Option<Permit>| async move {
                match self.model.complete(request).await {
                    Ok(reply) => {
                        if let Some(permit) = permit {
                            permit.done(reply.usage.as_ref());
                        }
                        Ok(reply)
                    }
                    Err(error) => {
                        fail(permit, &error);
                        Err(error)
                    }
                }
            };
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
