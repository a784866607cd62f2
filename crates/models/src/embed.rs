//! Texts as vectors: the trait [`Embedder`], and what implements it.
//!
//! Whoever ranks texts by meaning calls it. The parts: `openai` (servers with OpenAI's `/embeddings`), `local` (a model
//! from files on disk, behind the feature `local-embeddings`), `spec` (from a line of text to an embedder). It must not
//! rank or store anything.

#[cfg(feature = "local-embeddings")]
mod local;
mod openai;
mod spec;

use std::sync::Arc;

use futures::future::BoxFuture;

#[cfg(feature = "local-embeddings")]
pub use local::LocalEmbedder;
pub use spec::{EmbedderSpec, init_embedder};

use crate::error::ModelError;

/// Most texts of one call.
pub const MAX_TEXTS: usize = 100_000;

/// Largest text, in bytes. Models read far less of it; a text this long should have been cut into pieces.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// Turns texts into vectors that lie close together where the texts mean the like.
///
/// Dropping the future cancels the call. Implementations send many texts in batches of a size that their model takes.
pub trait Embedder: Send + Sync {
    /// Provider and model, as a person would name them: `openai:text-embedding-3-small`. Vectors of different names
    /// cannot be compared.
    fn name(&self) -> &str;

    /// How many numbers a vector has; none before that is known, which it is after the first call.
    fn dimension(&self) -> Option<usize>;

    /// A vector for each text, in the order of the texts.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>>;
}

impl<E: Embedder + ?Sized> Embedder for Arc<E> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn dimension(&self) -> Option<usize> {
        (**self).dimension()
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        (**self).embed(texts)
    }
}

/// What texts became.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Embeddings {
    /// One vector a text, in the order of the texts; all have the same length, and only finite numbers.
    pub vectors: Vec<Vec<f32>>,
    /// What they cost in tokens, where the provider said it.
    pub tokens: Option<u64>,
}

/// How close two vectors are, from -1 to 1: the cosine of the angle between them. 0 if one has no length, or if they
/// are not of one model.
///
/// ```
/// use paraph_models::cosine;
/// assert_eq!(cosine(&[1.0, 0.0], &[2.0, 0.0]), 1.0);
/// assert_eq!(cosine(&[1.0, 0.0], &[0.0, 3.0]), 0.0);
/// assert_eq!(cosine(&[0.0, 0.0], &[1.0, 0.0]), 0.0);
/// ```
pub fn cosine(one: &[f32], other: &[f32]) -> f32 {
    if one.len() != other.len() {
        return 0.0;
    }
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
        products.sum()
    };
    let lengths = dot(one, one).sqrt() * dot(other, other).sqrt();
    if lengths == 0.0 || !lengths.is_finite() {
        return 0.0;
    }
    (dot(one, other) / lengths) as f32
}

/// Refuses what no model takes, before anything is sent.
fn check(texts: &[String]) -> Result<(), ModelError> {
    let refuse = |message: String| Err(ModelError::BadRequest { message });
    if texts.len() > MAX_TEXTS {
        return refuse(format!(
            "{} texts at once, more than {MAX_TEXTS}",
            texts.len()
        ));
    }
    for (n, text) in texts.iter().enumerate() {
        if text.trim().is_empty() {
            return refuse(format!("text {} of {} is empty", n + 1, texts.len()));
        }
        if text.len() > MAX_TEXT_BYTES {
            let all = texts.len();
            return refuse(format!(
                "text {} of {all} is larger than {MAX_TEXT_BYTES} bytes",
                n + 1
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
