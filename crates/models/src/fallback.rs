//! [`Fallback`]: several models of which one answers, the first that can.
//!
//! Each model keeps its own time limits and retries ([`Retrying`](crate::Retrying)); this layer only goes on to the
//! next. It must not go on once an answer has begun: what was said cannot be unsaid.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::time::Instant;

use crate::chat::{ChatModel, ChatReply, ChatRequest, Chunk, ChunkStream, beginning};
use crate::error::ModelError;

/// How long a model that failed is asked last.
const REST: Duration = Duration::from_secs(60);

/// The same for one whose failure somebody has to put right: a wrong key, a model that is not there.
const LONG_REST: Duration = Duration::from_secs(600);

/// A model that asks others in its place when it cannot answer.
///
/// - The next model is asked after every error that concerns one model only
///   ([`ModelError::concerns_this_model_only`]): its server, its key, its limits, its context. A request that is wrong,
///   and a run whose time is over, end the call.
/// - Nothing is asked again once a word of an answer was given.
/// - A model that failed is remembered: for a minute (or as long as its server asks; ten minutes where a key or a
///   name is wrong) it is asked last, and not first.
/// - If none answers, [`ModelError::AllFailed`] lists every one with its error. [`ChatReply::provider`] and
///   [`ChatReply::model`] say who answered.
pub struct Fallback {
    models: Vec<Standing>,
    name: String,
}

struct Standing {
    model: Arc<dyn ChatModel>,
    rests_until: Mutex<Option<Instant>>,
}

impl Fallback {
    /// The wanted model, and those that stand in for it, best first.
    pub fn new(wanted: Arc<dyn ChatModel>, others: Vec<Arc<dyn ChatModel>>) -> Self {
        let mut name = wanted.name().to_owned();
        for (n, other) in others.iter().enumerate() {
            name.push_str(if n == 0 { ", else " } else { ", " });
            name.push_str(other.name());
        }
        let models = std::iter::once(wanted).chain(others);
        let models = models.map(|model| Standing {
            model,
            rests_until: Mutex::new(None),
        });
        Self {
            models: models.collect(),
            name,
        }
    }

    /// The models in the order in which they are asked now, with their places.
    fn order(&self) -> Vec<(usize, &Standing)> {
        let now = Instant::now();
        let mut order: Vec<_> = self.models.iter().enumerate().collect();
        order.sort_by_key(|(_, standing)| standing.rests(now));
        order
    }

    /// The error of a call that nobody answered.
    fn nobody(&self, mut tried: Vec<(usize, ModelError)>) -> ModelError {
        tried.sort_by_key(|(place, _)| *place);
        if tried.len() == 1
            && let Some((_, error)) = tried.pop()
        {
            return error;
        }
        let named = tried.into_iter().map(|(place, error)| {
            let model = self.models.get(place).map(|standing| standing.model.name());
            (model.unwrap_or_default().to_owned(), error)
        });
        ModelError::AllFailed {
            tried: named.collect(),
        }
    }

    async fn open<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> Result<(Vec<Chunk>, ChunkStream<'a>), ModelError> {
        let mut tried = Vec::new();
        for (place, standing) in self.order() {
            let mut rest = standing.model.stream(request);
            match beginning(&mut rest).await {
                Ok(begun) if begun.iter().any(Chunk::is_spoken) => return Ok((begun, rest)),
                Ok(begun) => {
                    let usage = begun.into_iter().rev().find_map(|chunk| chunk.usage);
                    let usage = usage.map(Box::new);
                    self.failed(place, standing, ModelError::Empty { usage }, &mut tried)?;
                }
                Err(error) => self.failed(place, standing, error, &mut tried)?,
            }
        }
        Err(self.nobody(tried))
    }

    /// Remembers a failure, or ends the call with it.
    fn failed(
        &self,
        place: usize,
        standing: &Standing,
        error: ModelError,
        tried: &mut Vec<(usize, ModelError)>,
    ) -> Result<(), ModelError> {
        let goes_on = error.concerns_this_model_only();
        if goes_on {
            tracing::warn!(model = standing.model.name(), %error, "the next model is asked");
            standing.rest(&error);
        }
        tried.push((place, error));
        if goes_on {
            return Ok(());
        }
        // The run's time is over for all of them; a wrong request says so in the words of whoever refused it.
        match tried.pop() {
            Some((_, error)) if error == ModelError::OutOfTime || tried.is_empty() => Err(error),
            Some(last) => {
                tried.push(last);
                Err(self.nobody(std::mem::take(tried)))
            }
            None => Ok(()),
        }
    }
}

impl Standing {
    fn rests(&self, now: Instant) -> bool {
        let until = self.rests_until.lock();
        until
            .unwrap_or_else(PoisonError::into_inner)
            .is_some_and(|until| until > now)
    }

    fn rest(&self, error: &ModelError) {
        let rest = match error {
            // What a model did with one request says nothing of the next.
            ModelError::Empty { .. }
            | ModelError::Decode { .. }
            | ModelError::ContextOverflow { .. } => return,
            ModelError::Auth { .. } | ModelError::UnknownModel { .. } => LONG_REST,
            error => error.retry_after().unwrap_or(REST).min(LONG_REST),
        };
        let mut until = self
            .rests_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *until = Instant::now().checked_add(rest);
    }
}

impl ChatModel for Fallback {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        let opened = async move {
            let (begun, rest) = self.open(request).await?;
            let begun = stream::iter(begun.into_iter().map(Ok));
            Ok::<_, ModelError>(begun.chain(rest))
        };
        stream::once(opened).try_flatten().boxed()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let mut tried = Vec::new();
            for (place, standing) in self.order() {
                match standing.model.complete(request).await {
                    Ok(reply) => return Ok(reply),
                    Err(error) => self.failed(place, standing, error, &mut tried)?,
                }
            }
            Err(self.nobody(tried))
        })
    }

    fn enforces_schemas(&self) -> bool {
        let mut models = self.models.iter();
        models.all(|standing| standing.model.enforces_schemas())
    }

    fn go_on_after(&self, attempts: u64) {
        if let Some(wanted) = self.models.first() {
            wanted.model.go_on_after(attempts);
        }
    }
}

#[cfg(test)]
mod tests;
