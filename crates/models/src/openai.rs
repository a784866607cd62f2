//! [`OpenAi`]: OpenAI's chat completions, as its own server and all that follow its protocol speak them.
//!
//! Behind [`Remote`](crate::http::Remote); pure. The parts: `encode` (requests), `decode` (answers).

mod decode;
mod encode;

use reqwest::Url;

use crate::chat::{ChatRequest, Chunk};
use crate::error::{Error, ModelError};
use crate::http::{Event, EventReader, Post, Protocol, Wire, base_url};
use decode::{read_event, read_whole};
pub(crate) use encode::Dialect;

/// Chat completions of one model under one address.
pub(crate) struct OpenAi {
    model: String,
    url: Url,
    dialect: Dialect,
}

impl OpenAi {
    /// `url` comes from [`endpoint`].
    pub(crate) fn new(model: &str, url: Url) -> Self {
        let official = url.host_str() == Some("api.openai.com");
        Self {
            model: model.to_owned(),
            url,
            dialect: if official {
                Dialect::OpenAi
            } else {
                Dialect::Compatible
            },
        }
    }
}

impl Protocol for OpenAi {
    fn post(&self, request: &ChatRequest, wire: Wire) -> Result<Post, ModelError> {
        let stream = wire == Wire::Events;
        Ok(Post {
            url: self.url.clone(),
            body: encode::body(request, &self.model, stream, self.dialect)?,
            headers: Vec::new(),
        })
    }

    fn whole(&self, body: &[u8]) -> Result<Vec<Chunk>, ModelError> {
        read_whole(body).map(|chunk| vec![chunk])
    }

    fn reader(&self) -> Box<dyn EventReader> {
        Box::new(Reader)
    }

    fn models(&self) -> Option<Url> {
        let base = self.url.path().strip_suffix("/chat/completions")?;
        let mut url = self.url.clone();
        url.set_path(&format!("{base}/models"));
        Some(url)
    }
}

/// Every event of this protocol stands for itself.
struct Reader;

impl EventReader for Reader {
    fn read(&mut self, data: &str) -> Result<Event, ModelError> {
        read_event(data)
    }
}

/// The address of chat completions under a base URL.
///
/// The base is used as it stands (`…/openai/v1`, with or without a closing slash); a base without a path gets
/// `/v1`, and one that ends in `/chat/completions` is complete.
pub(crate) fn endpoint(base: &str) -> Result<Url, Error> {
    let mut url = base_url(base)?;
    let path = match url.path().trim_end_matches('/') {
        "" => "/v1/chat/completions".to_owned(),
        whole if whole.ends_with("/chat/completions") => whole.to_owned(),
        base => format!("{base}/chat/completions"),
    };
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests;
