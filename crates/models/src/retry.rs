//! [`Retrying`]: the one layer that bounds a model call in time and tries it again.
//!
//! [`init_chat_model`](crate::init_chat_model) wraps every model in it. Nothing above or below may retry a model
//! call, or waits would multiply. Time is tokio's, so tests pause it.

mod bounds;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};

pub(crate) use bounds::{Bounds, Call};
use bounds::{Limit, fail};

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
    bounds: Bounds,
}

impl<M: ChatModel> Retrying<M> {
    /// Wraps a model.
    pub fn new(model: M, policy: RetryPolicy) -> Self {
        Self {
            model,
            bounds: Bounds {
                policy,
                limiter: None,
            },
        }
    }

    /// The same within the limits of its provider, which others share.
    #[must_use]
    pub fn within(self, limiter: Arc<Limiter>) -> Self {
        let bounds = Bounds {
            limiter: Some(limiter),
            ..self.bounds
        };
        Self { bounds, ..self }
    }

    /// Runs attempts until one succeeds, fails for good, or no other can follow. Gives the attempt's number too.
    async fn attempts<T, F>(
        &self,
        request: &ChatRequest,
        attempt: impl Fn(Limit, Option<Permit>) -> F,
    ) -> Result<(T, u32), ModelError>
    where
        F: Future<Output = Result<T, ModelError>>,
    {
        check_window(request)?;
        let answer = u64::from(request.max_tokens.unwrap_or_default());
        let tokens = u64::try_from(Estimate::of(request).total()).unwrap_or(u64::MAX);
        let call = Call {
            name: self.model.name(),
            tokens: tokens.saturating_add(answer),
            deadline: request.deadline,
            waits: request.waits.as_ref(),
        };
        self.bounds.attempts(call, attempt).await
    }

    /// Begins a streamed answer: up to its first word, or to its end if it says nothing.
    async fn begin<'a>(
        &'a self,
        request: &'a ChatRequest,
        limit: Limit,
        permit: Option<Permit>,
    ) -> Result<Begun<'a>, ModelError> {
        let mut rest = self.model.stream(request);
        let soon = limit.or_sooner(self.bounds.policy.first_token, TimeLimit::FirstToken);
        match soon.within(beginning(&mut rest)).await {
            Ok(first) => {
                let mut usage = None;
                for chunk in &first {
                    usage = chunk.usage.clone().or(usage);
                }
                let rest = Rest {
                    stream: rest,
                    limit,
                    idle: self.bounds.policy.idle,
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
