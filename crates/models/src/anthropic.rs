//! [`Anthropic`]: Anthropic's messages, as Claude's own server speaks them.
//!
//! Behind [`Remote`](crate::http::Remote); pure. The parts: `encode` (requests), `decode` (answers). Why this is our
//! own and no library's is said in ARCHITECTURE.md ("No provider library").

mod decode;
mod encode;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

use crate::chat::{ChatRequest, Chunk};
use crate::error::{Error, ModelError};
use crate::http::{EventReader, Post, Protocol, Wire, base_url};
use decode::{Reader, read_whole};

/// The provider's name, under which signed reasoning is kept.
const PROVIDER: &str = "anthropic";

/// The version of the protocol that this is.
const VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("anthropic-version"),
    HeaderValue::from_static("2023-06-01"),
);

/// Messages of one model under one address.
pub(crate) struct Anthropic {
    model: String,
    url: Url,
}

impl Anthropic {
    /// `url` comes from [`endpoint`].
    pub(crate) fn new(model: &str, url: Url) -> Self {
        Self {
            model: model.to_owned(),
            url,
        }
    }
}

impl Protocol for Anthropic {
    fn post(&self, request: &ChatRequest, wire: Wire) -> Result<Post, ModelError> {
        Ok(Post {
            url: self.url.clone(),
            body: encode::body(request, &self.model, wire)?,
            headers: vec![VERSION],
        })
    }

    fn whole(&self, body: &[u8]) -> Result<Vec<Chunk>, ModelError> {
        read_whole(body)
    }

    fn reader(&self) -> Box<dyn EventReader> {
        Box::new(Reader::default())
    }

    fn models(&self) -> Option<Url> {
        None
    }
}

/// The address of messages under a base URL: `…/v1/messages`, behind any path as Anthropic's own clients do it; one
/// that ends in `/v1` or `/messages` is taken at its word.
pub(crate) fn endpoint(base: &str) -> Result<Url, Error> {
    let mut url = base_url(base)?;
    let path = match url.path().trim_end_matches('/') {
        whole if whole.ends_with("/messages") => whole.to_owned(),
        version if version.ends_with("/v1") => format!("{version}/messages"),
        base => format!("{base}/v1/messages"),
    };
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests;
