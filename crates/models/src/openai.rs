//! [`OpenAi`]: chat completions over HTTP, with OpenAI or any server that speaks its protocol.
//!
//! Made by [`init_chat_model`](crate::init_chat_model). One attempt per call: time limits and retries belong to
//! [`Retrying`](crate::Retrying). The parts: `encode` (request), `decode` (answers and errors), `sse` (event stream).
//! The key lives in a secret type and enters nothing but one header; no text of an error may contain it.

mod decode;
mod encode;
mod sse;

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};
use secrecy::{ExposeSecret, SecretString};

use crate::chat::{ChatModel, ChatReply, ChatRequest, Chunk, ChunkStream, collect};
use crate::error::{Error, ModelError, shorten};
use decode::{Event, read_error, read_event, read_whole, retry_after, wait_in_seconds};
pub(crate) use encode::Dialect;
use sse::SseDecoder;

/// Largest body of an answer that is read, in bytes.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Largest body of an error that is read, in bytes.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// A chat model behind an OpenAI-compatible server.
pub(crate) struct OpenAi {
    name: String,
    model: String,
    url: Url,
    key: Option<SecretString>,
    client: Client,
    dialect: Dialect,
}

/// How an answer is asked for.
#[derive(Clone, Copy, PartialEq)]
enum Wire {
    Whole,
    Events,
}

impl OpenAi {
    /// `provider` is for the name only; `url` comes from [`endpoint`].
    pub(crate) fn new(
        provider: &str,
        model: &str,
        url: Url,
        key: Option<SecretString>,
        client: Client,
    ) -> Self {
        let official = url.host_str() == Some("api.openai.com");
        Self {
            name: format!("{provider}:{model}"),
            model: model.to_owned(),
            url,
            key,
            client,
            dialect: if official {
                Dialect::OpenAi
            } else {
                Dialect::Compatible
            },
        }
    }

    /// Sends the request and gives the chunks of the answer.
    fn chunks<'a>(&'a self, request: &'a ChatRequest, wire: Wire) -> ChunkStream<'a> {
        let opened = async move {
            let response = self.send(request, wire).await?;
            let kind = response.headers().get(CONTENT_TYPE);
            let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            // Some servers answer whole although they were asked for events, and some give events no type.
            if wire == Wire::Whole || kind.starts_with("application/json") {
                let body = read_body(response, MAX_BODY_BYTES).await?;
                return Ok(stream::iter([read_whole(&body)]).boxed());
            }
            Ok(events(response))
        };
        // A server may repeat the key in an error of any kind, also after a status of 200.
        let hidden = |error: ModelError| match &self.key {
            Some(key) => error.without(key.expose_secret(), "[key]"),
            None => error,
        };
        stream::once(opened).try_flatten().map_err(hidden).boxed()
    }

    async fn send(&self, request: &ChatRequest, wire: Wire) -> Result<Response, ModelError> {
        let body = encode::body(request, &self.model, wire == Wire::Events, self.dialect)?;
        let accept = match wire {
            Wire::Whole => "application/json",
            Wire::Events => "text/event-stream",
        };
        let mut call = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, accept)
            .body(body);
        if let Some(key) = &self.key {
            let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose_secret()))
                .map_err(|_| ModelError::Auth {
                    message: "the key has characters that no header can carry".to_owned(),
                })?;
            value.set_sensitive(true);
            call = call.header(AUTHORIZATION, value);
        }
        let response = call.send().await.map_err(|error| not_reached(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(response).await)
    }

    /// The error that a status other than 2xx means.
    async fn refused(&self, response: Response) -> ModelError {
        let status = response.status().as_u16();
        let wait = wait_of(response.headers());
        // What the body says is a courtesy; the status alone is enough.
        let body = read_body(response, MAX_ERROR_BYTES)
            .await
            .unwrap_or_default();
        let (code, mut message) = read_error(&body);
        if let Some(key) = &self.key {
            message = message.replace(key.expose_secret(), "[key]");
        }
        if (300..400).contains(&status) {
            message = "the server redirects; give the base URL it redirects to".to_owned();
        }
        ModelError::from_status(status, &code, &message, wait)
    }
}

impl ChatModel for OpenAi {
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
        true
    }
}

/// The chunks of an event stream. It must say how the answer ended: a stream that only breaks off is an error.
fn events(response: Response) -> ChunkStream<'static> {
    struct Reading {
        response: Response,
        decoder: SseDecoder,
        ready: VecDeque<Result<Chunk, ModelError>>,
        bytes: usize,
        finished: bool,
        closed: bool,
    }
    let reading = Reading {
        response,
        decoder: SseDecoder::default(),
        ready: VecDeque::new(),
        bytes: 0,
        finished: false,
        closed: false,
    };
    let next = |mut reading: Reading| async move {
        loop {
            if let Some(chunk) = reading.ready.pop_front() {
                return Ok(Some((chunk?, reading)));
            }
            if reading.closed && !reading.finished {
                return Err(ModelError::Disconnected {
                    message: "the event stream ended before the answer did".to_owned(),
                });
            }
            if reading.closed {
                return Ok(None);
            }
            let bytes = reading.response.chunk().await.map_err(|e| broke(&e))?;
            let events = match bytes {
                Some(bytes) => {
                    reading.bytes = reading.bytes.saturating_add(bytes.len());
                    check_size(reading.bytes, MAX_BODY_BYTES)?;
                    reading.decoder.push(&bytes)
                }
                None => {
                    reading.closed = true;
                    reading.decoder.end()
                }
            };
            for data in events {
                match read_event(&data) {
                    Ok(Event::Chunk(chunk)) => {
                        reading.finished |= chunk.finish_reason.is_some();
                        reading.ready.push_back(Ok(chunk));
                    }
                    Ok(Event::Done) => {
                        reading.finished = true;
                        reading.closed = true;
                        break;
                    }
                    // After what came before it, however the network cut the two.
                    Err(error) => {
                        reading.ready.push_back(Err(error));
                        break;
                    }
                }
            }
        }
    };
    stream::try_unfold(reading, next).boxed()
}

async fn read_body(mut response: Response, limit: usize) -> Result<Vec<u8>, ModelError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|error| broke(&error))? {
        check_size(body.len().saturating_add(bytes.len()), limit)?;
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

fn check_size(bytes: usize, limit: usize) -> Result<(), ModelError> {
    if bytes <= limit {
        return Ok(());
    }
    Err(ModelError::Decode {
        message: format!("the answer is larger than {limit} bytes"),
    })
}

/// No answer began: whatever the network's reason, the model was not reached.
fn not_reached(error: &reqwest::Error) -> ModelError {
    if error.is_timeout() {
        return ModelError::Timeout;
    }
    ModelError::Connect {
        message: root_cause(error),
    }
}

fn broke(error: &reqwest::Error) -> ModelError {
    ModelError::Disconnected {
        message: root_cause(error),
    }
}

/// The innermost error: the outer ones repeat the address, which may hold what should not be logged.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    shorten(&cause.to_string())
}

fn wait_of(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let exact = text("retry-after-ms").and_then(|ms| ms.trim().parse::<f64>().ok());
    if let Some(wait) = exact.and_then(|ms| wait_in_seconds(ms / 1_000.0)) {
        return Some(wait);
    }
    retry_after(text("retry-after")?, text("date"), SystemTime::now())
}

/// The address of chat completions under a base URL.
///
/// The base is used as it stands (`…/openai/v1`, with or without a closing slash); a base without a path gets
/// `/v1`, and one that ends in `/chat/completions` is complete.
pub(crate) fn endpoint(base: &str) -> Result<Url, Error> {
    let refuse = |problem: String| Error::Http {
        what: "base URL".to_owned(),
        problem,
    };
    let mut url = Url::parse(base.trim()).map_err(|error| refuse(error.to_string()))?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() {
        return Err(refuse("not an http or https address".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("it must not contain credentials".to_owned()));
    }
    let path = url.path().trim_end_matches('/');
    let path = match path {
        "" => "/v1/chat/completions".to_owned(),
        whole if whole.ends_with("/chat/completions") => whole.to_owned(),
        base => format!("{base}/chat/completions"),
    };
    url.set_path(&path);
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests;
