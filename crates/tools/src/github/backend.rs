//! Where the client's requests go: to GitHub, or into a file of this machine that stands in for it.
//!
//! Only the client calls it. Both answer the same requests in the same form, so that nothing above knows which it is.

use std::time::Duration;

use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, IF_NONE_MATCH,
};
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};

use super::heads::Heads;
use super::local::Local;
use crate::error::Error;
use crate::outbound::{Outbound, Request};

/// The version of the interface that is spoken.
pub(super) const API_VERSION: &str = "2022-11-28";

const VERSION: HeaderName = HeaderName::from_static("x-github-api-version");

/// How long one request may take.
const TOTAL: Duration = Duration::from_secs(20);

/// How many bytes of one answer are read.
const BYTES: usize = 16 << 20;

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) body: Option<Vec<u8>>,
    /// What is known already.
    pub(super) etag: Option<String>,
}

/// An answer, whatever its status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) heads: Heads,
    pub(super) body: Vec<u8>,
}

/// What a test says to a request.
#[cfg(test)]
pub(super) type Tell = Box<dyn Fn(&Asked) -> Result<Answered, Error> + Send + Sync>;

/// Where requests go.
pub(super) enum Backend {
    /// To a server.
    Http(Http),
    /// Into a file of this machine.
    Local(Local),
    /// To what a test says.
    #[cfg(test)]
    Told(Tell),
}

/// A server, and what it is sent to be let in.
pub(super) struct Http {
    outbound: Outbound,
    token: Option<(SecretString, HeaderValue)>,
}

impl Http {
    /// # Errors
    /// [`Error::Config`] for a token that no header can carry.
    pub(super) fn new(outbound: &Outbound, token: Option<SecretString>) -> Result<Http, Error> {
        let token = token.filter(|token| !token.expose_secret().is_empty());
        let token = token.map(|token| {
            let header = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()));
            let mut header = header.map_err(|_| {
                let problem = "it has characters that no header can carry";
                Error::config("the token of GitHub", problem)
            })?;
            header.set_sensitive(true);
            Ok((token, header))
        });
        Ok(Http {
            outbound: outbound.clone(),
            token: token.transpose()?,
        })
    }

    async fn answer(&self, asked: &Asked) -> Result<Answered, Error> {
        let mut request = Request::new(asked.method.clone(), asked.url.clone());
        request.total = TOTAL;
        request.bytes = BYTES;
        request.body = asked.body.clone();
        let headers = &mut request.headers;
        let json = HeaderValue::from_static("application/vnd.github+json");
        headers.insert(ACCEPT, json);
        headers.insert(VERSION, HeaderValue::from_static(API_VERSION));
        if asked.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some((_, token)) = &self.token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        if let Some(etag) = asked.etag.as_deref()
            && let Ok(etag) = HeaderValue::from_str(etag)
        {
            headers.insert(IF_NONE_MATCH, etag);
        }
        let answer = self.outbound.answer(request).await?;
        Ok(Answered {
            status: answer.status,
            heads: Heads::of(&answer.headers),
            body: answer.body,
        })
    }
}

impl Backend {
    pub(super) async fn answer(&self, asked: &Asked) -> Result<Answered, Error> {
        match self {
            Backend::Http(http) => http.answer(asked).await,
            Backend::Local(local) => local.answer(asked).await,
            #[cfg(test)]
            Backend::Told(told) => told(asked),
        }
    }

    /// Whether requests are made in somebody's name.
    pub(super) fn is_signed_in(&self) -> bool {
        match self {
            Backend::Http(http) => http.token.is_some(),
            Backend::Local(_) => true,
            #[cfg(test)]
            Backend::Told(_) => true,
        }
    }

    /// A server's words without the token.
    pub(super) fn hide(&self, text: &str) -> String {
        match self {
            Backend::Http(Http {
                token: Some((token, _)),
                ..
            }) => crate::said::without(text, [token.expose_secret()]),
            _ => text.to_owned(),
        }
    }
}
