//! [`Server`]: sends one request to one server under its key, and bounds what is read of the answer.
//!
//! The key lives in a secret type and enters nothing but one header; no text of an error may contain it.

use std::time::{Duration, SystemTime};

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::Wire;
use super::refusal::{Refusal, retry_after, wait_in_seconds};
use crate::error::{Error, ModelError, TimeLimit, shorten};

/// Largest body of an answer that is read, in bytes.
pub(crate) const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Largest body of an error that is read, in bytes.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Largest list of models that is read, in bytes.
const MAX_LIST_BYTES: usize = 2 * 1024 * 1024;

/// How long the list of models may take: it only makes an error better.
const LIST_PATIENCE: Duration = Duration::from_secs(5);

/// How a server is told the key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Auth {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// A header of the provider's own.
    Header(&'static str),
}

/// A request that is ready to go.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) url: Url,
    /// JSON.
    pub(crate) body: Vec<u8>,
    /// What the protocol wants said beside the body.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

/// Why there is no answer to read.
pub(crate) enum Failure {
    /// The server did not answer, or the request cannot be sent.
    Network(ModelError),
    /// It answered with another status than 2xx.
    Refused(Refusal),
}

/// A server, and how we are known to it.
pub(crate) struct Server {
    client: Client,
    key: Option<SecretString>,
    auth: Auth,
    /// The client's own limit, for the error that tells of it.
    connect_timeout: Duration,
}

impl Server {
    pub(crate) fn new(
        client: Client,
        connect_timeout: Duration,
        key: Option<SecretString>,
        auth: Auth,
    ) -> Self {
        Self {
            client,
            key,
            auth,
            connect_timeout,
        }
    }

    /// Sends a request. Gives the answer if its status is 2xx.
    pub(crate) async fn post(&self, post: Post, wire: Wire) -> Result<Response, Failure> {
        let accept = match wire {
            Wire::Whole => "application/json",
            Wire::Events => "text/event-stream",
        };
        let mut call = self
            .client
            .post(post.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, accept);
        for (name, value) in post.headers {
            call = call.header(name, value);
        }
        self.send(call.body(post.body)).await
    }

    /// The names of the server's models as OpenAI's protocol lists them; none if it does not say in time.
    pub(super) async fn models(&self, url: Url) -> Vec<String> {
        #[derive(Deserialize)]
        struct List {
            data: Vec<Named>,
        }
        #[derive(Deserialize)]
        struct Named {
            id: String,
        }
        let listed = async {
            let response = self.send(self.client.get(url)).await.ok()?;
            let body = read_body(response, MAX_LIST_BYTES).await.ok()?;
            serde_json::from_slice::<List>(&body).ok()
        };
        let listed = tokio::time::timeout(LIST_PATIENCE, listed).await;
        let list = listed
            .ok()
            .flatten()
            .map_or_else(Vec::new, |list| list.data);
        let key = self.key.as_ref().map(ExposeSecret::expose_secret);
        let told = list.into_iter().map(|model| shorten(&model.id));
        // Nor may a list carry the key into an error.
        let told = told.filter(|name| key.is_none_or(|key| !name.contains(key)));
        let mut names: Vec<String> = told.collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The same error without the key.
    pub(crate) fn hide(&self, error: ModelError) -> ModelError {
        match self.hidden() {
            Some(key) => error.without(key, "[key]"),
            None => error,
        }
    }

    /// The key, if it is long enough to be one: a letter that stands for none would be found in every word.
    fn hidden(&self) -> Option<&str> {
        const SHORTEST: usize = 6;
        let key = self.key.as_ref()?.expose_secret();
        (key.len() >= SHORTEST).then_some(key)
    }

    async fn send(&self, call: RequestBuilder) -> Result<Response, Failure> {
        let call = self.with_key(call).map_err(Failure::Network)?;
        let response = call.send().await;
        let response = response.map_err(|error| Failure::Network(self.not_reached(&error)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(Failure::Refused(self.refused(response).await))
    }

    fn with_key(&self, call: RequestBuilder) -> Result<RequestBuilder, ModelError> {
        let Some(key) = &self.key else {
            return Ok(call);
        };
        let (name, value) = match self.auth {
            Auth::Bearer => (
                AUTHORIZATION.as_str(),
                format!("Bearer {}", key.expose_secret()),
            ),
            Auth::Header(name) => (name, key.expose_secret().to_owned()),
        };
        let mut value = HeaderValue::try_from(value).map_err(|_| ModelError::Auth {
            message: "the key has characters that no header can carry".to_owned(),
        })?;
        value.set_sensitive(true);
        Ok(call.header(name, value))
    }

    /// What a status other than 2xx says.
    async fn refused(&self, response: Response) -> Refusal {
        let status = response.status().as_u16();
        let wait = wait_of(response.headers());
        // What the body says is a courtesy; the status alone is enough.
        let body = read_body(response, MAX_ERROR_BYTES)
            .await
            .unwrap_or_default();
        let mut refusal = Refusal::read(&body);
        refusal.status = status;
        refusal.retry_after = wait.or(refusal.retry_after);
        if let Some(key) = self.hidden() {
            refusal.message = refusal.message.replace(key, "[key]");
        }
        if (300..400).contains(&status) {
            refusal.message = "the server redirects; give the base URL it redirects to".to_owned();
        }
        refusal
    }

    /// No answer began: whatever the network's reason, the model was not reached.
    fn not_reached(&self, error: &reqwest::Error) -> ModelError {
        if error.is_timeout() {
            return ModelError::Timeout {
                limit: TimeLimit::Connect,
                after: Some(self.connect_timeout),
            };
        }
        ModelError::Connect {
            message: root_cause(error),
        }
    }
}

/// The whole body, if it is no larger than so many bytes.
pub(crate) async fn read_body(mut response: Response, limit: usize) -> Result<Vec<u8>, ModelError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|error| broke(&error))? {
        check_size(body.len().saturating_add(bytes.len()), limit)?;
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

pub(super) fn check_size(bytes: usize, limit: usize) -> Result<(), ModelError> {
    if bytes <= limit {
        return Ok(());
    }
    Err(ModelError::Decode {
        message: format!("the answer is larger than {limit} bytes"),
    })
}

pub(super) fn broke(error: &reqwest::Error) -> ModelError {
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

pub(super) fn wait_of(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let exact = text("retry-after-ms").and_then(|ms| ms.trim().parse::<f64>().ok());
    if let Some(wait) = exact.and_then(|ms| wait_in_seconds(ms / 1_000.0)) {
        return Some(wait);
    }
    retry_after(text("retry-after")?, text("date"), SystemTime::now())
}

/// A base URL that can be used: http or https, a host, no credentials in it, no fragment.
pub(crate) fn base_url(base: &str) -> Result<Url, Error> {
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
    url.set_fragment(None);
    Ok(url)
}
