//! [`Remote`]: a chat model behind a server, whatever protocol the two speak.
//!
//! Made by [`init_chat_model`](crate::init_chat_model). A [`Protocol`] writes requests and reads answers and is pure;
//! everything about connections is here and in the parts: `client` (proxies, certificates), `server` (sending, keys),
//! `events` (streams), `refusal` (what errors say), `sse` (event streams). One attempt per call: time limits and
//! retries belong to [`Retrying`](crate::Retrying).

mod client;
mod count;
mod events;
mod halves;
mod refusal;
mod server;
mod sse;

use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use reqwest::Url;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};

pub(crate) use client::http_client;
pub(crate) use count::{count, counts, record};
pub(crate) use events::{Event, EventReader};
pub(crate) use refusal::{Refusal, WireError};
pub(crate) use server::{Auth, Failure, MAX_BODY_BYTES, Post, Server, base_url, read_body};

use halves::Halves;

use crate::chat::{ChatModel, ChatReply, ChatRequest, Chunk, ChunkStream, collect};
use crate::error::{ModelError, shorten};
use crate::suggest::closest;

/// Most names of models that an error lists.
const MAX_NAMES: usize = 30;

/// How an answer is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire {
    /// In one piece.
    Whole,
    /// As server-sent events.
    Events,
}

/// How requests and answers are written. Pure: no connection, no clock, no key.
pub(crate) trait Protocol: Send + Sync + 'static {
    /// Where a request goes, and what it says.
    fn post(&self, request: &ChatRequest, wire: Wire) -> Result<Post, ModelError>;

    /// Reads an answer that came in one piece.
    fn whole(&self, body: &[u8]) -> Result<Vec<Chunk>, ModelError>;

    /// Reads the events of one answer.
    fn reader(&self) -> Box<dyn EventReader>;

    /// Where the server lists its models as OpenAI's does, if it may.
    fn models(&self) -> Option<Url>;
}

/// What is no answer of a model at all, however well it was sent: a page for people, nothing, or what was packed
/// although nobody asked for it. Mostly the address is wrong, or something stands in between.
fn is_an_answer(response: &reqwest::Response) -> Result<(), ModelError> {
    let header = |name| {
        let value = response
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok());
        value.unwrap_or_default().trim().to_ascii_lowercase()
    };
    let packed = header(CONTENT_ENCODING);
    let wrong = if header(CONTENT_TYPE).starts_with("text/html") {
        "a page for people (text/html)".to_owned()
    } else if response.content_length() == Some(0) {
        format!("nothing (status {})", response.status().as_u16())
    } else if !["", "identity"].contains(&packed.as_str()) {
        format!(
            "in an encoding that was not asked for ({})",
            shorten(&packed)
        )
    } else {
        return Ok(());
    };
    let host = response.url().host_str().unwrap_or_default();
    Err(ModelError::Decode {
        message: format!("{host} answered {wrong}; is the base URL right?"),
    })
}

/// A chat model behind a server.
pub(crate) struct Remote<P> {
    provider: &'static str,
    model: String,
    name: String,
    server: Server,
    protocol: P,
    /// The model refused to be told its temperature once; it is not told again.
    no_temperature: AtomicBool,
}

impl<P: Protocol> Remote<P> {
    /// `name` is what a person would call the model, the spec that makes it.
    pub(crate) fn new(
        provider: &'static str,
        model: &str,
        name: String,
        server: Server,
        protocol: P,
    ) -> Self {
        Self {
            provider,
            model: model.to_owned(),
            name,
            server,
            protocol,
            no_temperature: AtomicBool::new(false),
        }
    }

    /// The chunks of an answer that came in one piece.
    fn whole(&self, body: &[u8]) -> Result<Vec<Chunk>, ModelError> {
        let Ok(text) = std::str::from_utf8(body) else {
            return self.protocol.whole(body);
        };
        let mut halves = Halves::default();
        let mut chunks = self.protocol.whole(halves.mark(text).as_bytes())?;
        chunks.iter_mut().for_each(|chunk| halves.join(chunk));
        Ok(chunks)
    }

    /// Sends the request and gives the chunks of the answer.
    fn chunks<'a>(&'a self, request: &'a ChatRequest, wire: Wire) -> ChunkStream<'a> {
        let opened = async move {
            let response = self.send(request, wire).await?;
            let kind = response.headers().get(CONTENT_TYPE);
            let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            is_an_answer(&response)?;
            // Some servers answer whole although they were asked for events, and some give events no type.
            if wire == Wire::Whole || kind.starts_with("application/json") {
                let body = read_body(response, MAX_BODY_BYTES).await?;
                let chunks = self.whole(&body)?;
                let chunks: ChunkStream<'_> = stream::iter(chunks.into_iter().map(Ok)).boxed();
                return Ok::<_, ModelError>(chunks);
            }
            Ok(events::read(response, self.protocol.reader()))
        };
        // A server may repeat the key in an error of any kind, also after a status of 200.
        let answer = stream::once(opened).try_flatten();
        let answer = answer.map_err(|error| self.server.hide(error));
        // Told with the first piece, so that an answer that never comes tells nothing.
        let mut provider = Some(self.provider.to_owned());
        answer
            .map_ok(move |chunk| match provider.take() {
                Some(provider) => Chunk {
                    provider: Some(provider),
                    ..chunk
                },
                None => chunk,
            })
            .boxed()
    }

    async fn send(
        &self,
        request: &ChatRequest,
        wire: Wire,
    ) -> Result<reqwest::Response, ModelError> {
        let told = request.temperature.is_some() && !self.no_temperature.load(Ordering::Relaxed);
        let refusal = match self.attempt(request, wire, told).await? {
            Ok(response) => return Ok(response),
            Err(refusal) => refusal,
        };
        if told && refusal.wants_no_temperature() {
            // Models that reason accept none, and which those are changes: the server knows. Nothing was generated
            // yet, so this is the same attempt.
            let second = self.attempt(request, wire, false).await?;
            if second.is_ok() {
                self.no_temperature.store(true, Ordering::Relaxed);
            }
            return match second {
                Ok(response) => Ok(response),
                Err(refusal) => Err(self.refused(refusal).await),
            };
        }
        Err(self.refused(refusal).await)
    }

    /// One request; the inner error is what the server refused it with.
    async fn attempt(
        &self,
        request: &ChatRequest,
        wire: Wire,
        with_temperature: bool,
    ) -> Result<Result<reqwest::Response, Refusal>, ModelError> {
        let post = if with_temperature || request.temperature.is_none() {
            self.protocol.post(request, wire)?
        } else {
            let cold = ChatRequest {
                temperature: None,
                ..request.clone()
            };
            self.protocol.post(&cold, wire)?
        };
        match self.server.post(post, wire).await {
            Ok(response) => Ok(Ok(response)),
            Err(Failure::Refused(refusal)) => Ok(Err(refusal)),
            Err(Failure::Network(error)) => Err(error),
        }
    }

    /// The error that a refusal means. A model that is not there is looked for among those that are, once.
    async fn refused(&self, refusal: Refusal) -> ModelError {
        if !refusal.misses_model(&self.model) {
            return refusal.into_error();
        }
        let known = match self.protocol.models() {
            Some(url) => self.server.models(url).await,
            None => Vec::new(),
        };
        let suggestion = closest(&self.model, known.iter().map(String::as_str)).map(str::to_owned);
        let mut known = known;
        known.truncate(MAX_NAMES);
        ModelError::UnknownModel {
            provider: self.provider.to_owned(),
            model: self.model.clone(),
            suggestion,
            known,
        }
    }
}

impl<P: Protocol> ChatModel for Remote<P> {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        self.chunks(request, Wire::Events)
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(collect(self.chunks(request, Wire::Whole), |_, _| {}))
    }

    fn enforces_schemas(&self) -> bool {
        // All three protocols have a field for it.
        true
    }
}

#[cfg(test)]
mod tests;
