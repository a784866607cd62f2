//! [`OpenAiEmbedder`]: OpenAI's `/embeddings`, as its own server and all that follow its protocol speak it.
//!
//! Made by [`init_embedder`](super::init_embedder). Each batch is one call within the bounds of every model call: time,
//! attempts, the provider's limits.

use std::sync::OnceLock;

use futures::future::BoxFuture;
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;

use super::{Embedder, Embeddings, check};
use crate::error::{Error, ModelError};
use crate::http::{Failure, MAX_BODY_BYTES, Post, Refusal, Server, Wire, base_url, read_body};
use crate::limits::Permit;
use crate::retry::{Bounds, Call};
use crate::tokens::estimate_text;

/// Most texts of one request.
const MAX_BATCH: usize = 128;

/// Most tokens of one request, by our estimate; servers take 300,000 and more.
const MAX_BATCH_TOKENS: usize = 200_000;

/// An embedding model behind an OpenAI-compatible server.
pub(super) struct OpenAiEmbedder {
    pub(super) name: String,
    pub(super) model: String,
    pub(super) url: Url,
    pub(super) server: Server,
    pub(super) bounds: Bounds,
    /// The length of its vectors, once one came.
    pub(super) dimension: OnceLock<usize>,
}

/// The vectors of one request, with their cost.
struct Batch {
    vectors: Vec<Vec<f32>>,
    tokens: Option<u64>,
}

impl OpenAiEmbedder {
    async fn batch(&self, texts: &[String]) -> Result<Batch, ModelError> {
        let tokens = texts.iter().map(|text| estimate_text(text)).sum::<usize>();
        let call = Call {
            name: &self.name,
            tokens: u64::try_from(tokens).unwrap_or(u64::MAX),
            deadline: None,
            waits: None,
        };
        let attempt = |_, permit: Option<Permit>| async move {
            let answered = self.attempt(texts).await;
            match (&answered, permit) {
                (Ok(batch), Some(permit)) => permit.settle(batch.tokens.unwrap_or(call.tokens)),
                (Err(error), Some(permit)) => permit.fail(error),
                (_, None) => {}
            }
            answered
        };
        let (batch, _) = self.bounds.attempts(call, attempt).await?;
        Ok(batch)
    }

    async fn attempt(&self, texts: &[String]) -> Result<Batch, ModelError> {
        let body = json!({ "model": self.model, "input": texts, "encoding_format": "float" });
        let post = Post {
            url: self.url.clone(),
            body: body.to_string().into_bytes(),
            headers: Vec::new(),
        };
        let answered = match self.server.post(post, Wire::Whole).await {
            Ok(response) => read_body(response, MAX_BODY_BYTES).await,
            Err(Failure::Refused(refusal)) => Err(refusal.into_error()),
            Err(Failure::Network(error)) => Err(error),
        };
        let batch = answered.and_then(|body| read(&body, texts.len()));
        batch.map_err(|error| self.server.hide(error))
    }

    /// Checks that all vectors are of one length, which is kept.
    fn agree(&self, vectors: &[Vec<f32>]) -> Result<(), ModelError> {
        for vector in vectors {
            let known = *self.dimension.get_or_init(|| vector.len());
            if vector.len() != known {
                return Err(unreadable(format!(
                    "a vector of {} numbers among vectors of {known}",
                    vector.len()
                )));
            }
        }
        Ok(())
    }
}

impl Embedder for OpenAiEmbedder {
    fn name(&self) -> &str {
        &self.name
    }

    fn dimension(&self) -> Option<usize> {
        self.dimension.get().copied()
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        Box::pin(async move {
            check(texts)?;
            let mut all = Embeddings::default();
            for texts in batches(texts) {
                let batch = self.batch(texts).await?;
                self.agree(&batch.vectors)?;
                all.vectors.extend(batch.vectors);
                all.tokens = match (all.tokens, batch.tokens) {
                    (Some(before), Some(now)) => Some(before.saturating_add(now)),
                    (before, now) => before.or(now),
                };
            }
            Ok(all)
        })
    }
}

/// Cuts the texts into pieces that one request can carry; a text that is too long alone goes alone.
fn batches(mut texts: &[String]) -> Vec<&[String]> {
    let mut batches = Vec::new();
    while !texts.is_empty() {
        let mut tokens = 0_usize;
        let fit = texts.iter().take(MAX_BATCH).take_while(|text| {
            tokens = tokens.saturating_add(estimate_text(text));
            tokens <= MAX_BATCH_TOKENS
        });
        let (batch, rest) = texts.split_at(fit.count().max(1));
        batches.push(batch);
        texts = rest;
    }
    batches
}

/// Reads the answer to so many texts. The order is that of the indices, whatever the order in the answer.
fn read(body: &[u8], texts: usize) -> Result<Batch, ModelError> {
    #[derive(Deserialize)]
    struct Wire {
        data: Vec<Item>,
        usage: Option<Cost>,
    }
    #[derive(Deserialize)]
    struct Item {
        index: Option<usize>,
        embedding: Vec<f32>,
    }
    #[derive(Deserialize)]
    struct Cost {
        total_tokens: Option<u64>,
        prompt_tokens: Option<u64>,
    }
    let wire: Wire = serde_json::from_slice(body).map_err(|error| {
        let refusal = Refusal::read(body);
        // An error may come with the status of a success.
        match refusal.message.is_empty() || !body.trim_ascii_start().starts_with(b"{\"error\"") {
            true => unreadable(error.to_string()),
            false => refusal.into_error(),
        }
    })?;
    if wire.data.len() != texts {
        return Err(unreadable(format!(
            "{} vectors for {texts} texts",
            wire.data.len()
        )));
    }
    let mut vectors = vec![Vec::new(); texts];
    for (place, item) in wire.data.into_iter().enumerate() {
        let index = item.index.unwrap_or(place);
        let Some(vector) = vectors.get_mut(index) else {
            return Err(unreadable(format!(
                "a vector for text {index} of {texts}, counted from 0"
            )));
        };
        if !vector.is_empty() {
            return Err(unreadable(format!(
                "two vectors for text {index}, counted from 0"
            )));
        }
        if item.embedding.is_empty() {
            return Err(unreadable(format!(
                "text {index}, counted from 0, has no vector"
            )));
        }
        *vector = item.embedding;
    }
    let usage = wire.usage;
    Ok(Batch {
        vectors,
        tokens: usage.and_then(|usage| usage.prompt_tokens.or(usage.total_tokens)),
    })
}

fn unreadable(message: String) -> ModelError {
    ModelError::Decode { message }
}

/// The address of embeddings under a base URL; as for chat, but that `/embeddings` is complete.
pub(super) fn endpoint(base: &str) -> Result<Url, Error> {
    let mut url = base_url(base)?;
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/chat/completions").unwrap_or(path);
    let path = match path {
        "" => "/v1/embeddings".to_owned(),
        whole if whole.ends_with("/embeddings") => whole.to_owned(),
        base => format!("{base}/embeddings"),
    };
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests;
