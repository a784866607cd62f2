//! [`Google`]: Google's `generateContent`, as Gemini's own server speaks it.
//!
//! Behind [`Remote`](crate::http::Remote); pure. The parts: `encode` (requests), `decode` (answers). Why this is our
//! own and no library's is said in ARCHITECTURE.md ("No provider library").

mod decode;
mod encode;

use reqwest::Url;

use crate::chat::{ChatRequest, Chunk};
use crate::error::{Error, ModelError};
use crate::http::{EventReader, Post, Protocol, Wire, base_url};
use decode::{Reader, read_whole};

/// The provider's name, under which signed reasoning is kept.
const PROVIDER: &str = "google";

/// Content of one model under one base URL.
pub(crate) struct Google {
    model: String,
    base: Url,
}

impl Google {
    /// `base` comes from [`base`].
    pub(crate) fn new(model: &str, base: Url) -> Self {
        Self {
            model: model.to_owned(),
            base,
        }
    }

    fn url(&self, wire: Wire) -> Url {
        let (verb, query) = match wire {
            Wire::Whole => ("generateContent", None),
            Wire::Events => ("streamGenerateContent", Some("alt=sse")),
        };
        // Tuned models have a collection of their own.
        let model = match self.model.contains('/') {
            true => self.model.clone(),
            false => format!("models/{}", self.model),
        };
        let mut url = self.base.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/{model}:{verb}"));
        if query.is_some() {
            url.set_query(query);
        }
        url
    }
}

impl Protocol for Google {
    fn post(&self, request: &ChatRequest, wire: Wire) -> Result<Post, ModelError> {
        Ok(Post {
            url: self.url(wire),
            body: encode::body(request, &self.model)?,
            headers: Vec::new(),
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

/// The base under which models stand: with `/v1beta` unless it ends in a version.
pub(crate) fn base(base: &str) -> Result<Url, Error> {
    let mut url = base_url(base)?;
    let path = url.path().trim_end_matches('/');
    let last = path.rsplit('/').next().unwrap_or_default();
    let version = last.strip_prefix('v').and_then(|rest| rest.chars().next());
    let path = match version.is_some_and(|c| c.is_ascii_digit()) {
        true => path.to_owned(),
        false => format!("{path}/v1beta"),
    };
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests;
